"""The generator Philox of blocks of 4 words."""

from ferrax._src._public import names_of
from ferrax.random._generators import IMPLS

philox4x32_prng_impl = IMPLS["philox4x32"]

__getattr__ = names_of(__name__, "ferrax.extend.random")
