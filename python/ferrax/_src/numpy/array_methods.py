"""Functions of `ferrax.numpy`, under the name of JAX's file `array_methods`."""

from ferrax import numpy as jnp
from ferrax._src._public import names_of

__getattr__ = names_of(__name__, "ferrax.numpy")

_IndexUpdateHelper = type(jnp.zeros(0).at)
_IndexUpdateRef = type(jnp.zeros(0).at[()])
