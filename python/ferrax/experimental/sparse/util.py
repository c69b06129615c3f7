"""JAX's module of what the formats share: warnings, the static part of an array, functions over batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ferrax._api import vmap
from ferrax._boundary import expose as _expose
from ferrax.experimental.sparse._base import (
    CuSparseEfficiencyWarning,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
    SparseInfo,
)

__all__ = [
    "CuSparseEfficiencyWarning",
    "SparseEfficiencyError",
    "SparseEfficiencyWarning",
    "SparseInfo",
    "nfold_vmap",
]


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
        fun = _broadcasting(fun, in_axes) if broadcasted else vmap(fun, in_axes)
    return fun


def _broadcasting(fun: Callable[..., Any], in_axes: Any) -> Callable[..., Any]:
    """`vmap` whose axes of size 1 broadcast."""

    def mapped(*args: Any) -> Any:
        axes = in_axes if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
        size = max((x.shape[a] for x, a in zip(args, axes) if a is not None), default=1)
        if any(x.shape[a] == 0 for x, a in zip(args, axes) if a is not None):
            size = 0
        single = [a is not None and x.shape[a] == 1 != size for x, a in zip(args, axes)]
        args = tuple(x.reshape(x.shape[:a] + x.shape[a + 1 :]) if s else x for x, a, s in zip(args, axes, single))
        return vmap(fun, tuple(None if s else a for a, s in zip(axes, single)), axis_size=size)(*args)

    return mapped


_expose(globals())
