"""Running combination of elements by an associative function, in logarithmic depth.

Neighbours are combined in pairs, their running combinations found in the same way, and the rest by one more combination
(Blelloch 1990, "Prefix sums and their applications"). Read next: `control_flow.py` for loops.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ferrax import tree_util
from ferrax._core import with_weak_type

__all__ = ["associative_scan"]


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Running combination of elements by an associative function, in logarithmic depth.

    Args:
      fn: associative function of two pytrees like `elems`, vectorized along `axis`.
      elems: pytree of arrays with one size along `axis`.
      reverse: whether to run from the last element.
      axis: axis to run along.

    Returns:
      A pytree like `elems`: element i combines elements 0 to i.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.associative_scan(jnp.add, jnp.arange(5)))
    [ 0  1  3  6 10]
    """
    import ferrax.numpy as jnp

    if not callable(fn):
        raise TypeError("lax.associative_scan: fn argument should be callable.")
    leaves, tree = tree_util.tree_flatten(elems)
    leaves = [jnp.asarray(x) for x in leaves]
    if not leaves:
        return elems
    axis = operator.index(axis)
    if not -leaves[0].ndim <= axis < leaves[0].ndim:
        raise ValueError(f"associative_scan axis {axis} is out of bounds for arrays of rank {leaves[0].ndim}")
    axis %= leaves[0].ndim
    if any(x.shape[axis] != leaves[0].shape[axis] for x in leaves[1:]):
        raise ValueError(
            f"Array inputs to associative_scan must have the same first dimension. (saw: {[x.shape for x in leaves]})"
        )
    if reverse:
        leaves = [jnp.flip(x, axis) for x in leaves]

    def combine(a: list[Any], b: list[Any]) -> list[Any]:
        return tree_util.tree_leaves(fn(tree.unflatten(a), tree.unflatten(b)))

    def part(x: Any, start: int, stop: int | None = None, step: int = 1) -> Any:
        return x[(slice(None),) * axis + (slice(start, stop, step),)]

    def run(xs: list[Any]) -> list[Any]:
        n = xs[0].shape[axis]
        if n < 2:
            return xs
        pairs = combine([part(x, 0, n - n % 2, 2) for x in xs], [part(x, 1, None, 2) for x in xs])
        odd = run(pairs)
        if n == 2:
            even: list[Any] = []
        else:
            left = odd if n % 2 else [part(o, 0, -1) for o in odd]
            even = combine(left, [part(x, 2, None, 2) for x in xs])
        firsts = [part(x, 0, 1) for x in xs]
        evens = [jnp.concatenate([f, e], axis) for f, e in zip(firsts, even, strict=True)] if even else firsts
        both = [_interleave(e, o, axis) for e, o in zip(evens, odd, strict=True)]
        return [with_weak_type(x, False) for x in both]

    out = run(leaves)
    if reverse:
        out = [jnp.flip(x, axis) for x in out]
    return tree.unflatten(out)


def _interleave(a: Any, b: Any, axis: int) -> Any:
    """Elements of `a` and `b` in turn along an axis; `a` has as many as `b`, or one more."""
    import ferrax.numpy as jnp

    n = b.shape[axis]
    head = a[(slice(None),) * axis + (slice(0, n),)]
    both = jnp.stack([head, b], axis + 1)
    both = both.reshape((*b.shape[:axis], 2 * n, *b.shape[axis + 1 :]))
    if a.shape[axis] == n:
        return both
    return jnp.concatenate([both, a[(slice(None),) * axis + (slice(n, None),)]], axis)
