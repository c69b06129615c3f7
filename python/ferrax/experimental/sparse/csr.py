"""JAX's module of compressed rows and columns: the names are those of `_csr.py`."""

from ferrax._boundary import expose as _expose
from ferrax._lazy import lend as _lend
from ferrax.experimental.sparse._csr import CSC, CSR, csr_fromdense, csr_matmat, csr_matvec, csr_todense

__all__ = ["CSC", "CSR", "csr_fromdense", "csr_matmat", "csr_matvec", "csr_todense"]

# what JAX's module has from elsewhere
__getattr__ = _lend(
    __name__,
    {
        "ferrax": "Array",
        "ferrax.typing": "DTypeLike",
        "ferrax.experimental.sparse._base": "CuSparseEfficiencyWarning JAXSparse Shape",
        "ferrax.experimental.sparse._coo": "COOInfo",
        "ferrax.experimental.sparse._parts": "_csr_fromdense _csr_matmat _csr_matvec _csr_todense",
        "ferrax.experimental.sparse._primitives": "csr_fromdense_p csr_matmat_p csr_matvec_p csr_todense_p",
        "ferrax._src.numpy.util": "promote_dtypes",
    },
)

_expose(globals())
