"""Two values that are divided over devices in the same way."""

from __future__ import annotations

from typing import Any

from ferrax import _ferrax, tree_util
from ferrax._boundary import expose as _expose
from ferrax._core import Tracer as _Tracer
from ferrax._devices import device_put as _device_put

__all__ = ["shard_alike"]


def shard_alike(x: Any, y: Any) -> tuple[Any, Any]:
    """Both values, divided alike: as the first of them that is divided.

    Inside of programs nothing is divided on the embedded engine, whose devices share one memory, and values are
    themselves.

    Args:
      x: tree of arrays.
      y: tree of arrays of the same shapes.

    Returns:
      Both.

    Raises:
      ValueError: structures or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.shard_alike import shard_alike
    >>> x, y = shard_alike(jnp.zeros(2), jnp.ones(2))
    >>> print(x, y)
    [0. 0.] [1. 1.]
    """
    xs, x_tree = tree_util.tree_flatten(x)
    ys, y_tree = tree_util.tree_flatten(y)
    if x_tree != y_tree:
        raise ValueError(f"Trees should match. Got x tree: {x_tree}, y tree: {y_tree}")
    pairs = []
    for a, b in zip(xs, ys, strict=True):
        left, right = _ferrax.shape(a), _ferrax.shape(b)
        if left != right:
            raise ValueError(
                f"The leaves shapes of `x` and `y` should match. Got `x` leaf shape: {left} and `y` leaf shape: "
                f"{right}."
            )
        pairs.append(_alike(a, b))
    return tree_util.tree_unflatten(x_tree, [a for a, _ in pairs]), tree_util.tree_unflatten(
        y_tree, [b for _, b in pairs]
    )


def _alike(a: Any, b: Any) -> tuple[Any, Any]:
    if any(isinstance(v, _Tracer) for v in (a, b)):
        return a, b
    known = [getattr(v, "sharding", None) for v in (a, b)]
    divided = next((s for s in known if s is not None and not s.is_fully_replicated), None)
    if divided is None:
        return a, b
    return _device_put(a, divided), _device_put(b, divided)


_expose(globals())
