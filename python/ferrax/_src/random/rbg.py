"""The generators that draw by `lax.rng_bit_generator`."""

from ferrax._src._public import names_of

__getattr__ = names_of(__name__, "ferrax.extend.random")
