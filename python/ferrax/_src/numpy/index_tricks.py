"""Functions of `ferrax.numpy`, under the name of JAX's file `index_tricks`."""

from ferrax._src._public import names_of
from ferrax.numpy._grid import CClass as CClass, RClass as RClass

__getattr__ = names_of(__name__, "ferrax.numpy")
