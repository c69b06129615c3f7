"""JAX's module of the coordinate format: the names are those of `_coo.py`."""

from ferrax._boundary import expose as _expose
from ferrax.experimental.sparse._coo import COO, COOInfo, coo_fromdense, coo_matmat, coo_matvec, coo_todense

__all__ = ["COO", "COOInfo", "coo_fromdense", "coo_matmat", "coo_matvec", "coo_todense"]

_expose(globals())
