"""Sparse arrays: BCOO and other formats, functions of them, derivatives, and `sparsify`.

Each file loads when a name of it is asked for. Read next: `_base.py`.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._lazy import defer as _defer

if _TYPE_CHECKING:
    from ferrax.experimental.sparse import ad as ad
    from ferrax.experimental.sparse import api as api
    from ferrax.experimental.sparse import bcoo as bcoo
    from ferrax.experimental.sparse import bcsr as bcsr
    from ferrax.experimental.sparse import coo as coo
    from ferrax.experimental.sparse import csr as csr
    from ferrax.experimental.sparse import linalg as linalg
    from ferrax.experimental.sparse import random as random
    from ferrax.experimental.sparse import test_util as test_util
    from ferrax.experimental.sparse import transform as transform
    from ferrax.experimental.sparse import util as util
    from ferrax.experimental.sparse._base import CuSparseEfficiencyWarning as CuSparseEfficiencyWarning
    from ferrax.experimental.sparse._base import JAXSparse as JAXSparse
    from ferrax.experimental.sparse._base import SparseEfficiencyError as SparseEfficiencyError
    from ferrax.experimental.sparse._base import SparseEfficiencyWarning as SparseEfficiencyWarning
    from ferrax.experimental.sparse._bcoo import BCOO as BCOO
    from ferrax.experimental.sparse._bcoo_core import *
    from ferrax.experimental.sparse._bcoo_dot import *
    from ferrax.experimental.sparse._bcoo_layout import *
    from ferrax.experimental.sparse._bcoo_shape import *
    from ferrax.experimental.sparse._bcsr import BCSR as BCSR
    from ferrax.experimental.sparse._bcsr_functions import *
    from ferrax.experimental.sparse._coo import COO as COO
    from ferrax.experimental.sparse._coo import coo_fromdense as coo_fromdense
    from ferrax.experimental.sparse._coo import coo_matmat as coo_matmat
    from ferrax.experimental.sparse._coo import coo_matvec as coo_matvec
    from ferrax.experimental.sparse._coo import coo_todense as coo_todense
    from ferrax.experimental.sparse._csr import *
    from ferrax.experimental.sparse._primitives import *
    from ferrax.experimental.sparse._tracers import SparseTracer as SparseTracer
    from ferrax.experimental.sparse._transform import sparsify as sparsify
    from ferrax.experimental.sparse.ad import *
    from ferrax.experimental.sparse.api import *
    from ferrax.experimental.sparse.random import *

_FILES = {
    "_base": "CuSparseEfficiencyWarning JAXSparse SparseEfficiencyError SparseEfficiencyWarning",
    "_bcoo": "BCOO",
    "_bcoo_core": """
        bcoo_extract bcoo_fromdense bcoo_sort_indices bcoo_sum_duplicates bcoo_todense bcoo_transpose
    """,
    "_bcoo_dot": "bcoo_dot_general bcoo_dot_general_sampled bcoo_multiply_dense bcoo_multiply_sparse",
    "_bcoo_layout": "bcoo_broadcast_in_dim bcoo_squeeze bcoo_update_layout",
    "_bcoo_shape": """
        bcoo_concatenate bcoo_conv_general_dilated bcoo_dynamic_slice bcoo_gather bcoo_reduce_sum bcoo_reshape bcoo_rev
        bcoo_slice
    """,
    "_bcsr": "BCSR",
    "_bcsr_functions": """
        bcsr_broadcast_in_dim bcsr_concatenate bcsr_dot_general bcsr_extract bcsr_fromdense bcsr_sum_duplicates
        bcsr_todense
    """,
    "_coo": "COO coo_fromdense coo_matmat coo_matvec coo_todense",
    "_csr": "CSC CSR csr_fromdense csr_matmat csr_matvec csr_todense",
    "_primitives": """
        bcoo_dot_general_p bcoo_dot_general_sampled_p bcoo_extract_p bcoo_fromdense_p bcoo_sort_indices_p
        bcoo_spdot_general_p bcoo_sum_duplicates_p bcoo_todense_p bcoo_transpose_p bcsr_dot_general_p bcsr_extract_p
        bcsr_fromdense_p bcsr_todense_p coo_fromdense_p coo_matmat_p coo_matvec_p coo_todense_p csr_fromdense_p
        csr_matmat_p csr_matvec_p csr_todense_p todense_p
    """,
    "_tracers": "SparseTracer",
    "_transform": "sparsify",
    "ad": "grad jacfwd jacobian jacrev value_and_grad",
    "api": "empty eye todense",
    "random": "random_bcoo",
}
_SUBMODULES = "ad api bcoo bcsr coo csr linalg random test_util transform util"

_defer(globals(), _FILES, _SUBMODULES)
