"""Functions of `ferrax.numpy`, under the name of JAX's file `scalar_types`."""

from ferrax._src._public import names_of

__getattr__ = names_of(__name__, "ferrax.numpy")
