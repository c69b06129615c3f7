"""JAX's module of compressed rows and columns: the names are those of `_csr.py`."""

from ferrax._boundary import expose as _expose
from ferrax.experimental.sparse._csr import CSC, CSR, csr_fromdense, csr_matmat, csr_matvec, csr_todense

__all__ = ["CSC", "CSR", "csr_fromdense", "csr_matmat", "csr_matvec", "csr_todense"]

_expose(globals())
