"""JAX's module of the batched compressed row format: the names are those of `_bcsr.py` and `_bcsr_functions.py`."""

from ferrax._boundary import expose as _expose
from ferrax._lazy import lend as _lend
from ferrax.experimental.sparse._bcsr import BCSR, BCSRProperties
from ferrax.experimental.sparse._bcsr_functions import (
    bcsr_broadcast_in_dim,
    bcsr_concatenate,
    bcsr_dot_general,
    bcsr_eliminate_zeros,
    bcsr_extract,
    bcsr_fromdense,
    bcsr_sum_duplicates,
    bcsr_todense,
)

__all__ = [
    "BCSR",
    "BCSRProperties",
    "bcsr_broadcast_in_dim",
    "bcsr_concatenate",
    "bcsr_dot_general",
    "bcsr_eliminate_zeros",
    "bcsr_extract",
    "bcsr_fromdense",
    "bcsr_sum_duplicates",
    "bcsr_todense",
]

# what JAX's module has from elsewhere
__getattr__ = _lend(
    __name__,
    {
        "ferrax": "Array",
        "ferrax.typing": "ArrayLike DTypeLike",
        "ferrax.experimental.sparse._base": """
            CuSparseEfficiencyWarning JAXSparse Shape SparseEfficiencyWarning SparseInfo
        """,
        "ferrax.experimental.sparse._bcoo_dot": "DotDimensionNumbers",
        "ferrax.experimental.sparse._parts": """
            _bcoo_to_bcsr _bcsr_dot_general _bcsr_fromdense _bcsr_to_bcoo _bcsr_todense _validate_bcsr
        """,
        "ferrax.experimental.sparse._primitives": "bcsr_dot_general_p bcsr_extract_p bcsr_fromdense_p bcsr_todense_p",
        "ferrax.experimental.sparse.util": "nfold_vmap",
        "ferrax._src.util": "safe_zip split_list",
    },
)

_expose(globals())
