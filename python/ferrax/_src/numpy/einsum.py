"""Functions of `ferrax.numpy`, under the name of JAX's file `einsum`."""

from ferrax._src._public import names_of

__getattr__ = names_of(__name__, "ferrax.numpy")
