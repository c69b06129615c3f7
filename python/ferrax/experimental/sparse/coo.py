"""JAX's module of the coordinate format: the names are those of `_coo.py`."""

from ferrax._boundary import expose as _expose
from ferrax._lazy import lend as _lend
from ferrax.experimental.sparse._coo import COO, COOInfo, coo_fromdense, coo_matmat, coo_matvec, coo_todense

__all__ = ["COO", "COOInfo", "coo_fromdense", "coo_matmat", "coo_matvec", "coo_todense"]

# what JAX's module has from elsewhere
__getattr__ = _lend(
    __name__,
    {
        "ferrax": "Array",
        "ferrax.typing": "ArrayLike DTypeLike",
        "ferrax.experimental.sparse._base": "CuSparseEfficiencyWarning JAXSparse Shape",
        "typing": "Dtype=Any",
        "ferrax.experimental.sparse._parts": "_coo_fromdense _coo_matmat _coo_matvec _coo_todense",
        "ferrax.experimental.sparse._primitives": "coo_fromdense_p coo_matmat_p coo_matvec_p coo_todense_p",
        "ferrax._src.numpy.util": "promote_dtypes",
    },
)

_expose(globals())
