"""Functions of `ferrax.scipy.optimize`."""

from ferrax._src._public import names_of, with_submodules

__getattr__ = with_submodules(__name__, names_of(__name__, "ferrax.scipy.optimize"))
