"""Sparse arrays of any format made, and made dense: `empty`, `eye`, `todense`. Read next: `_bcoo.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ferrax import tree_util
from ferrax._boundary import expose as _expose
from ferrax._core import Array
from ferrax._lazy import lend as _lend
from ferrax.experimental.sparse._base import JAXSparse, bound, is_sparse, is_traced
from ferrax.experimental.sparse._bcoo import BCOO
from ferrax.experimental.sparse._bcsr import BCSR
from ferrax.experimental.sparse._coo import COO
from ferrax.experimental.sparse._csr import CSC, CSR
from ferrax.typing import DTypeLike

__all__ = ["empty", "eye", "todense"]
# also there in JAX's module
__getattr__ = _lend(__name__, {"ferrax.experimental.sparse._primitives": "todense_p"})

_FORMATS: dict[str, type] = {"bcsr": BCSR, "bcoo": BCOO, "coo": COO, "csr": CSR, "csc": CSC}


def _format(name: str) -> Any:
    if name not in _FORMATS:
        raise ValueError(f"sparse_format={name!r} not recognized; must be one of {list(_FORMATS)}")
    return _FORMATS[name]


def todense(arr: JAXSparse | Array) -> Array:
    """The dense array of a sparse one; a dense array is returned as it is.

    Args:
      arr: a sparse or dense array.

    Returns:
      A dense array.

    >>> from ferrax.experimental import sparse
    >>> print(sparse.todense(sparse.eye(2)))
    [[1. 0.]
     [0. 1.]]
    """
    if is_traced(arr):
        # a sparse array may stand behind a traced one, which `sparsify` finds
        bufs, tree = tree_util.tree_flatten(arr)
        return bound("todense_p", *bufs, tree=tree)
    return arr.todense() if is_sparse(arr) else arr


def empty(
    shape: Sequence[int],
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> JAXSparse:
    """A sparse array without elements.

    Args:
      shape: the sizes of the axes.
      dtype: type of the elements; float where none is given.
      index_dtype: type of the indices.
      sparse_format: ``"bcoo"``, ``"bcsr"``, ``"coo"``, ``"csr"`` or ``"csc"``.
      **kwds: `n_batch`, `n_dense` and `nse`, for the batched formats.

    Returns:
      A sparse array.

    Raises:
      ValueError: there is no such format.

    >>> from ferrax.experimental import sparse
    >>> sparse.empty((2, 3))
    BCOO(float32[2, 3], nse=0)
    """
    return _format(sparse_format)._empty(shape, dtype=dtype, index_dtype=index_dtype, **kwds)


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> JAXSparse:
    """A sparse matrix with ones on a diagonal.

    Args:
      N: number of rows.
      M: number of columns; `N` where none is given.
      k: the diagonal: 0 is the main one, positive ones lie above.
      dtype, index_dtype, sparse_format: as in `empty`.
      **kwds: `n_batch` and `n_dense`, for the batched formats.

    Returns:
      A sparse matrix.

    Raises: as in `empty`.

    >>> from ferrax.experimental import sparse
    >>> print(sparse.eye(2, 3, k=1).todense())
    [[0. 1. 0.]
     [0. 0. 1.]]
    """
    M = N if M is None else M
    return _format(sparse_format)._eye(int(N), int(M), int(k), dtype=dtype, index_dtype=index_dtype, **kwds)


_expose(globals())
