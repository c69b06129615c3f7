"""Keys and draws."""

from ferrax._src._public import names_of

__getattr__ = names_of(__name__, "ferrax._src.random", "ferrax.extend.random", "ferrax._src.random.prng")
