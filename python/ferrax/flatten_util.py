"""Pytrees as one vector: `ravel_pytree`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ferrax import tree_util
from ferrax._boundary import expose as _expose

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """All arrays of a pytree joined to one vector, with the way back.

    Args:
      pytree: pytree of arrays and numbers.

    Returns:
      The vector, in the dtype that the leaves promote to, and a function from a vector of that length and dtype to a
      pytree like the given one.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.flatten_util import ravel_pytree
    >>> flat, unravel = ravel_pytree({"a": jnp.ones(2), "b": 3.0})
    >>> print(flat, unravel(2 * flat)["b"])
    [1. 1. 3.] 6.0
    """
    import ferrax.numpy as jnp

    leaves, tree = tree_util.tree_flatten(pytree)
    arrays = [jnp.asarray(leaf) for leaf in leaves]
    if not arrays:
        return jnp.zeros(0), _Unravel(tree, (), (), None)
    dtypes = tuple(a.dtype for a in arrays)
    unravel = _Unravel(tree, tuple(a.shape for a in arrays), dtypes, jnp.result_type(*dtypes))
    return jnp.concatenate([a.ravel().astype(unravel.common) for a in arrays]), unravel


@dataclasses.dataclass(frozen=True)
class _Unravel:
    """The way back, equal for trees of one structure: it may be a static argument."""

    tree: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[Any, ...]
    common: Any

    def __call__(self, vector: Any) -> Any:
        import ferrax.numpy as jnp

        if not self.shapes:
            return self.tree.unflatten([])
        vector, common = jnp.asarray(vector), self.common
        ends = np.cumsum([math.prod(s) for s in self.shapes]).tolist()
        if vector.shape != (ends[-1],):
            raise ValueError(
                f"the unravel function expected an array of shape {(ends[-1],)}, but got one of shape {vector.shape}"
            )
        mixed = any(d != common for d in self.dtypes)
        if vector.dtype != common and mixed:
            raise TypeError(f"unravel function given array of dtype {vector.dtype}, but expected dtype {common}")
        parts = [vector[end - math.prod(s) : end].reshape(s) for end, s in zip(ends, self.shapes, strict=True)]
        if mixed:
            drops = [common.kind == "c" != d.kind for d in self.dtypes]
            parts = [(p.real if drop else p).astype(d) for p, d, drop in zip(parts, self.dtypes, drops, strict=True)]
        return self.tree.unflatten(parts)


_expose(globals())
