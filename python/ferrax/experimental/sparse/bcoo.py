"""JAX's module of the batched coordinate format: the names are those of `_bcoo.py` and the files that it names."""

import numpy as _np

from ferrax._boundary import expose as _expose
from ferrax._lazy import lend as _lend
from ferrax.experimental.sparse._base import Properties as BCOOProperties
from ferrax.experimental.sparse._bcoo import BCOO
from ferrax.experimental.sparse._bcoo_core import (
    bcoo_eliminate_zeros,
    bcoo_extract,
    bcoo_fromdense,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    bcoo_todense,
    bcoo_transpose,
)
from ferrax.experimental.sparse._bcoo_dot import (
    bcoo_dot_general,
    bcoo_dot_general_sampled,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
)
from ferrax.experimental.sparse._bcoo_layout import bcoo_broadcast_in_dim, bcoo_squeeze, bcoo_update_layout
from ferrax.experimental.sparse._bcoo_shape import (
    bcoo_concatenate,
    bcoo_conv_general_dilated,
    bcoo_dynamic_slice,
    bcoo_gather,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
)

__all__ = [
    "BCOO",
    "BCOOProperties",
    "bcoo_broadcast_in_dim",
    "bcoo_concatenate",
    "bcoo_conv_general_dilated",
    "bcoo_dot_general",
    "bcoo_dot_general_sampled",
    "bcoo_dynamic_slice",
    "bcoo_eliminate_zeros",
    "bcoo_extract",
    "bcoo_fromdense",
    "bcoo_gather",
    "bcoo_multiply_dense",
    "bcoo_multiply_sparse",
    "bcoo_reduce_sum",
    "bcoo_reshape",
    "bcoo_rev",
    "bcoo_slice",
    "bcoo_sort_indices",
    "bcoo_squeeze",
    "bcoo_sum_duplicates",
    "bcoo_todense",
    "bcoo_transpose",
    "bcoo_update_layout",
]

#: What a vendor's library takes on a GPU; the functions here take every dtype.
CUSPARSE_DATA_DTYPES = [_np.float32, _np.float64, _np.complex64, _np.complex128]
CUSPARSE_INDEX_DTYPES = [_np.int32]

# what JAX's module has from elsewhere
__getattr__ = _lend(
    __name__,
    {
        "ferrax": "Array vmap",
        "ferrax.typing": "ArrayLike DTypeLike",
        "ferrax.experimental.sparse._base": """
            CuSparseEfficiencyWarning JAXSparse Shape SparseEfficiencyError SparseEfficiencyWarning SparseInfo
        """,
        "ferrax.experimental.sparse._bcoo": "Buffer",
        "ferrax.experimental.sparse._bcoo_dot": "DotDimensionNumbers",
        "ferrax.experimental.sparse._parts": """
            _bcoo_dot_general _bcoo_extract _bcoo_fromdense _bcoo_multiply_dense _bcoo_multiply_sparse
            _bcoo_rdot_general _bcoo_reduce_sum _bcoo_sum_duplicates _bcoo_todense _bcoo_transpose _validate_bcoo
            _validate_bcoo_indices
        """,
        "ferrax.experimental.sparse._primitives": """
            bcoo_dot_general_p bcoo_dot_general_sampled_p bcoo_extract_p bcoo_fromdense_p bcoo_sort_indices_p
            bcoo_spdot_general_p bcoo_sum_duplicates_p bcoo_todense_p bcoo_transpose_p coo_spmm_p coo_spmv_p
        """,
        "ferrax.experimental.sparse.util": "nfold_vmap",
        "ferrax.lax": "GatherDimensionNumbers GatherScatterMode",
        "ferrax._src.lax.lax": "ranges_like remaining",
        "ferrax._src.util": "canonicalize_axis safe_zip split_list unzip2",
    },
)

_expose(globals())
