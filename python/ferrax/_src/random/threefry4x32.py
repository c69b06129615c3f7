"""The generator whose keys are four words, under which counters are encrypted."""

from ferrax._src._public import names_of
from ferrax.random._generators import IMPLS

threefry4x32_prng_impl = IMPLS["threefry4x32"]

__getattr__ = names_of(__name__, "ferrax.extend.random")
