"""Pytrees as one vector: `ravel_pytree`."""

from __future__ import annotations

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
        return jnp.zeros(0), lambda vector: tree.unflatten([])
    shapes = [a.shape for a in arrays]
    dtypes = [a.dtype for a in arrays]
    common = jnp.result_type(*dtypes)
    ends = np.cumsum([math.prod(s) for s in shapes]).tolist()
    flat = jnp.concatenate([a.ravel().astype(common) for a in arrays])

    def unravel(vector: Any) -> Any:
        vector = jnp.asarray(vector)
        if vector.shape != (ends[-1],):
            raise ValueError(
                f"the unravel function expected an array of shape {(ends[-1],)}, but got one of shape {vector.shape}"
            )
        if vector.dtype != common and any(d != common for d in dtypes):
            raise TypeError(f"unravel function given array of dtype {vector.dtype}, but expected dtype {common}")
        parts = [vector[end - math.prod(s) : end].reshape(s) for end, s in zip(ends, shapes, strict=True)]
        if any(d != common for d in dtypes):
            parts = [p.real.astype(d) if _drops_imaginary(common, d) else p.astype(d) for p, d in zip(parts, dtypes)]
        return tree.unflatten(parts)

    def _drops_imaginary(source: Any, target: Any) -> bool:
        return bool(jnp.issubdtype(source, np.complexfloating)) and not jnp.issubdtype(target, np.complexfloating)

    return flat, unravel


_expose(globals())
