"""JAX's module of the batched compressed row format: the names are those of `_bcsr.py` and `_bcsr_functions.py`."""

from ferrax._boundary import expose as _expose
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

_expose(globals())
