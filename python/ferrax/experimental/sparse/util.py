"""JAX's module of what the formats share: warnings, the static part of an array, functions over batches."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ferrax._api import vmap
from ferrax._boundary import expose as _expose
from ferrax._lazy import lend as _lend
from ferrax.api_util import flatten_axes
from ferrax.experimental.sparse._base import (
    CuSparseEfficiencyWarning,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
    SparseInfo,
)
from ferrax.experimental.sparse._bcsr_functions import rows_of
from ferrax.lax import convert_element_type, squeeze
from ferrax.tree_util import tree_flatten

__all__ = [
    "CuSparseEfficiencyWarning",
    "SparseEfficiencyError",
    "SparseEfficiencyWarning",
    "SparseInfo",
    "broadcasting_vmap",
    "nfold_vmap",
]

# what JAX's module has from elsewhere
__getattr__ = _lend(
    __name__,
    {
        "ferrax": "Array",
        "ferrax.experimental.sparse._base": "Shape",
        "ferrax.experimental.sparse._bcoo_dot": "DotDimensionNumbers",
        "ferrax.experimental.sparse._parts": """
            _coo_extract _count_stored_elements _count_stored_elements_per_batch _csr_extract
        """,
        "ferrax._src.util": "safe_zip",
    },
)


def nfold_vmap(fun: Callable[..., Any], N: int, *, broadcasted: bool = True, in_axes: Any = 0) -> Callable[..., Any]:
    """A function over several leading axes of its arguments.

    Args:
      fun: a function of arrays.
      N: the number of axes.
      broadcasted: whether axes of size 1 broadcast.
      in_axes: as of `vmap`.

    Returns:
      A function with `fun`'s arguments.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.sparse import util
    >>> util.nfold_vmap(jnp.sum, 2)(jnp.ones((2, 3, 4))).shape
    (2, 3)
    """
    for _ in range(N):
        fun = broadcasting_vmap(fun, in_axes) if broadcasted else vmap(fun, in_axes)
    return fun


def broadcasting_vmap(fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """`vmap` whose mapped axes of size 1 broadcast.

    Args:
      fun: a function of pytrees of arrays.
      in_axes: as of `vmap`.
      out_axes: as of `vmap`.

    Returns:
      A function with `fun`'s arguments.

    Raises:
      ValueError: mapped axes have several sizes, and not all others are 1.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.sparse import util
    >>> print(util.broadcasting_vmap(jnp.add)(jnp.ones(1), jnp.arange(3.0)))
    [1. 2. 3.]
    """

    @functools.wraps(fun)
    def mapped(*args: Any) -> Any:
        leaves, tree = tree_flatten(args)
        axes = flatten_axes("vmap in_axes", tree, in_axes)
        lengths = {x.shape[a] for x, a in zip(leaves, axes, strict=True) if a is not None}
        if len(lengths - {1}) > 1:
            raise ValueError("broadcasting_vmap: mismatched input shapes")
        size = next(iter(lengths - {1}), 1)
        single = [a is not None and x.shape[a] == 1 != size for x, a in zip(leaves, axes, strict=True)]
        taken = [squeeze(x, (a,)) if on else x for x, a, on in zip(leaves, axes, single, strict=True)]
        kept = [None if on else a for a, on in zip(axes, single, strict=True)]
        return vmap(fun, tree.unflatten(kept), out_axes, axis_size=size)(*tree.unflatten(taken))

    return mapped


def _csr_to_coo(indices: Any, indptr: Any) -> tuple[Any, Any]:
    """The row and the column of each element of a matrix of compressed rows."""
    return convert_element_type(rows_of(indptr, indices.shape[0]), indices.dtype), indices


_expose(globals())
