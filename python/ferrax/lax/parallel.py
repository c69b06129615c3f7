"""Operations across the rows of a mapped axis that `vmap` has named: `psum`, `all_gather`, `ppermute` and relatives.

They may be used wherever the name is bound: in the mapped function, and in functions under `jit`, `grad`, `scan` and
the like inside it. Read next: `crates/ferrax-ops/src/collective.rs`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ferrax import tree_util
from ferrax._ferrax import Array
from ferrax._ferrax import lax as _lax

__all__ = [
    "all_gather",
    "all_to_all",
    "axis_index",
    "axis_size",
    "pbroadcast",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "pshuffle",
    "psum",
    "psum_scatter",
    "pswapaxes",
]


def _names(axis_name: Hashable | Sequence[Hashable]) -> list[Hashable]:
    """The axes of an argument that is one name or a sequence of them."""
    return list(axis_name) if isinstance(axis_name, (tuple, list)) else [axis_name]


def _split(axis_name: Any) -> tuple[list[str], list[int]]:
    """Names of mapped axes, and positions of axes of the operand itself."""
    names = _names(axis_name)
    return [str(n) for n in names if not isinstance(n, int)], [n for n in names if isinstance(n, int)]


def _one(function: str, axis_name: Any) -> str:
    """The one axis that an operation works across."""
    names = _names(axis_name)
    if len(names) != 1:
        raise NotImplementedError(f"{function} over several named axes at once is not implemented: {axis_name!r}")
    return str(names[0])


def _no_groups(axis_index_groups: Any) -> None:
    if axis_index_groups is not None:
        raise NotImplementedError(
            "axis_index_groups has no meaning under vmap, which binds the named axes: split the axis in two instead"
        )


def _axis(axis: int, rank: int, function: str) -> int:
    """The axis counted from the end when negative."""
    at = operator.index(axis)
    shifted = at + rank if at < 0 else at
    if not 0 <= shifted < rank:
        raise ValueError(f"{function}: axis {axis} is out of bounds for array of dimension {rank}")
    return shifted


def _is_constant(x: Any) -> bool:
    return isinstance(x, (bool, int, float, complex, np.generic))


def _reduce(name: str, x: Any, axis_name: Any, axis_index_groups: Any, local: Callable[[Any, Any], Any]) -> Any:
    _no_groups(axis_index_groups)
    names, positions = _split(axis_name)
    for n in names:
        _lax.axis_size(n)

    def one(leaf: Any) -> Any:
        import ferrax.numpy as jnp

        leaf = jnp.asarray(leaf)
        if positions:
            leaf = local(leaf, tuple(positions))
        return _lax.reduce_across(name, leaf, names) if names else leaf

    return tree_util.tree_map(one, x)


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Sums over the rows of mapped axes.

    Args:
      x: array or pytree of arrays. A Python number is taken as one in every row: its sum is it times the axes' sizes,
        a Python number again.
      axis_name: name of a mapped axis, or a tuple of names; integers stand for axes of `x` itself.
      axis_index_groups: not available under `vmap`.

    Returns:
      The sums, the same in every row.

    Raises:
      NameError: no `vmap` binds the name.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.vmap(lambda x: x / jax.lax.psum(x, "i"), axis_name="i")(jnp.array([1.0, 3.0])))
    [0.25 0.75]
    """
    leaves = tree_util.tree_leaves(x)
    if leaves and all(_is_constant(leaf) for leaf in leaves):
        _no_groups(axis_index_groups)
        names, positions = _split(axis_name)
        if not positions:
            size = math.prod(_lax.axis_size(n) for n in names)
            return tree_util.tree_map(lambda leaf: size * leaf, x)
    from ferrax.lax.reduce import reduce_sum

    return _reduce("psum", x, axis_name, axis_index_groups, reduce_sum)


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Averages over the rows of mapped axes.

    Args:
      x: array or pytree of arrays.
      axis_name: name of a mapped axis, or a tuple of names.
      axis_index_groups: not available under `vmap`.

    Returns:
      The means, the same in every row.

    Raises:
      NameError: no `vmap` binds the name.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.vmap(lambda x: x - jax.lax.pmean(x, "i"), axis_name="i")(jnp.array([1.0, 3.0])))
    [-1.  1.]
    """
    total = psum(x, axis_name=axis_name, axis_index_groups=axis_index_groups)
    count = psum(1, axis_name=axis_name, axis_index_groups=axis_index_groups)
    return tree_util.tree_map(lambda leaf: leaf / count, total)


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Maxima over the rows of mapped axes.

    Args:
      x: array or pytree of arrays.
      axis_name: name of a mapped axis, or a tuple of names; integers stand for axes of `x` itself.
      axis_index_groups: not available under `vmap`.

    Returns:
      The maxima, the same in every row. They have no derivative.

    Raises:
      NameError: no `vmap` binds the name.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.vmap(lambda x: jax.lax.pmax(x, "i"), axis_name="i")(jnp.array([1.0, 3.0])))
    [3. 3.]
    """
    from ferrax.lax.reduce import reduce_max

    return _reduce("pmax", x, axis_name, axis_index_groups, reduce_max)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Minima over the rows of mapped axes.

    Args:
      x: array or pytree of arrays.
      axis_name: name of a mapped axis, or a tuple of names; integers stand for axes of `x` itself.
      axis_index_groups: not available under `vmap`.

    Returns:
      The minima, the same in every row. They have no derivative.

    Raises:
      NameError: no `vmap` binds the name.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.vmap(lambda x: jax.lax.pmin(x, "i"), axis_name="i")(jnp.array([1.0, 3.0])))
    [1. 1.]
    """
    from ferrax.lax.reduce import reduce_min

    return _reduce("pmin", x, axis_name, axis_index_groups, reduce_min)


def axis_size(axis_name: Any) -> int:
    """The number of rows of mapped axes.

    Args:
      axis_name: name of a mapped axis, or a tuple of names.

    Returns:
      The product of the sizes, a Python integer.

    Raises:
      NameError: no `vmap` binds the name.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.vmap(lambda x: x * jax.lax.axis_size("i"), axis_name="i")(jnp.arange(3)))
    [0 3 6]
    """
    return math.prod(_lax.axis_size(str(n)) for n in _names(axis_name))


def axis_index(axis_name: Any) -> Array:
    """The number of the row along mapped axes.

    Args:
      axis_name: name of a mapped axis, or a tuple of names, the last varying fastest.

    Returns:
      An int32 scalar in every row.

    Raises:
      NameError: no `vmap` binds the name.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.vmap(lambda x: jax.lax.axis_index("i"), axis_name="i")(jnp.zeros(3)))
    [0 1 2]
    """
    import ferrax.numpy as jnp

    names = [str(n) for n in _names(axis_name)]
    if not names:
        return jnp.int32(0)
    index = _lax.axis_index(names[0])
    for name in names[1:]:
        index = index * jnp.int32(_lax.axis_size(name)) + _lax.axis_index(name)
    return index


def all_gather(
    x: Any, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0, tiled: bool = False, to: str = "varying"
) -> Any:
    """The rows of a mapped axis, all of them in every row.

    Args:
      x: array or pytree of arrays.
      axis_name: name of the mapped axis, or a tuple of names, the last varying fastest.
      axis_index_groups: not available under `vmap`.
      axis: where the rows go in the results.
      tiled: whether rows are joined along `axis` instead of stacked on a new axis there.
      to: accepted for compatibility; under `vmap` results are the same in every row.

    Returns:
      The rows, stacked or joined.

    Raises:
      NameError: no `vmap` binds the name.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.vmap(lambda x: jax.lax.all_gather(x, "i"), axis_name="i")(jnp.array([1.0, 3.0])))
    [[1. 3.]
     [1. 3.]]
    """
    _no_groups(axis_index_groups)
    names = [str(n) for n in _names(axis_name)]

    def one(leaf: Any) -> Any:
        import ferrax.numpy as jnp

        leaf = jnp.asarray(leaf)
        at = _axis(axis, leaf.ndim + (not tiled), "all_gather")
        for i, name in enumerate(reversed(names)):
            # The axes named before the last one are joined in front of what has been gathered.
            leaf = _lax.all_gather(leaf, name, at, tiled or i > 0)
        return leaf

    return tree_util.tree_map(one, x)


def psum_scatter(
    x: Any, axis_name: Any, *, scatter_dimension: int = 0, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """Sums over the rows of a mapped axis, of which every row keeps its own part.

    Args:
      x: array or pytree of arrays.
      axis_name: name of the mapped axis.
      scatter_dimension: the axis of `x` that is divided among the rows.
      axis_index_groups: not available under `vmap`.
      tiled: whether a row keeps an equal part of the axis (which must be a multiple of the number of rows) instead of
        one entry (of as many as there are rows).

    Returns:
      The parts of the sums.

    Raises:
      NameError: no `vmap` binds the name.
      ValueError: the axis cannot be divided so.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.vmap(lambda x: jax.lax.psum_scatter(x, "i"), axis_name="i")(jnp.array([[1.0, 2.0], [3.0, 4.0]])))
    [4. 6.]
    """
    _no_groups(axis_index_groups)
    name = _one("psum_scatter", axis_name)

    def one(leaf: Any) -> Any:
        import ferrax.numpy as jnp

        leaf = jnp.asarray(leaf)
        return _lax.reduce_scatter(leaf, name, _axis(scatter_dimension, leaf.ndim, "psum_scatter"), tiled)

    return tree_util.tree_map(one, x)


def all_to_all(
    x: Any, axis_name: Any, split_axis: int, concat_axis: int, *, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """Divides every row along an axis and exchanges the parts: row i gets the i-th part of every row.

    Args:
      x: array or pytree of arrays.
      axis_name: name of the mapped axis.
      split_axis: the axis of `x` that is divided among the rows.
      concat_axis: where the parts that a row gets go in the result.
      axis_index_groups: not available under `vmap`.
      tiled: whether parts are joined along `concat_axis` instead of stacked on a new axis there; without it,
        `split_axis` has one entry a row and disappears.

    Returns:
      The parts that each row gets.

    Raises:
      NameError: no `vmap` binds the name.
      ValueError: the axis cannot be divided so.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.vmap(lambda x: jax.lax.all_to_all(x, "i", 0, 0), axis_name="i")(jnp.array([[1, 2], [3, 4]])))
    [[1 3]
     [2 4]]
    """
    _no_groups(axis_index_groups)
    name = _one("all_to_all", axis_name)

    def one(leaf: Any) -> Any:
        import ferrax.numpy as jnp

        leaf = jnp.asarray(leaf)
        split = _axis(split_axis, leaf.ndim, "all_to_all")
        concat = _axis(concat_axis, leaf.ndim, "all_to_all")
        return _lax.all_to_all(leaf, name, split, concat, tiled)

    return tree_util.tree_map(one, x)


def ppermute(x: Any, axis_name: Any, perm: Any) -> Any:
    """Sends rows of a mapped axis to other rows.

    Args:
      x: array or pytree of arrays.
      axis_name: name of the mapped axis.
      perm: pairs `(source, destination)`; rows that are no destination get zeros.

    Returns:
      What each row gets.

    Raises:
      NameError: no `vmap` binds the name.
      ValueError: a row is the destination of two others, or a number is no row.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.vmap(lambda x: jax.lax.ppermute(x, "i", [(0, 1), (1, 2)]), axis_name="i")(jnp.arange(3) + 1))
    [0 1 2]
    """
    name = _one("ppermute", axis_name)
    pairs = [(operator.index(source), operator.index(target)) for source, target in perm]
    size = _lax.axis_size(name)
    sources, targets = [p[0] for p in pairs], [p[1] for p in pairs]
    if len(set(sources)) != len(pairs) or len(set(targets)) != len(pairs):
        raise ValueError(f"ppermute sources and destinations must be unique, got {perm}.")
    if any(not 0 <= row < size for row in sources + targets):
        raise ValueError(f"ppermute got a row outside the axis {name!r} of size {size}: {perm}.")

    def one(leaf: Any) -> Any:
        import ferrax.numpy as jnp

        return _lax.ppermute(jnp.asarray(leaf), name, pairs)

    return tree_util.tree_map(one, x)


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Rearranges the rows of a mapped axis: row i gets row `perm[i]`.

    Args:
      x: array or pytree of arrays.
      axis_name: name of the mapped axis.
      perm: for every row the number of the row that it gets.

    Returns:
      What each row gets.

    Raises:
      NameError: no `vmap` binds the name.
      ValueError: `perm` is no permutation.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.vmap(lambda x: jax.lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(jnp.arange(3)))
    [2 0 1]
    """
    if set(perm) != set(range(len(perm))):
        raise ValueError(f"`perm` does not represent a permutation: {perm}")
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)), strict=True)))


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Exchanges a mapped axis with an axis of the operand.

    Args:
      x: array or pytree of arrays whose `axis` is as long as the mapped axis.
      axis_name: name of the mapped axis.
      axis: the axis of `x`.
      axis_index_groups: not available under `vmap`.

    Returns:
      The exchanged arrays.

    Raises:
      NameError: no `vmap` binds the name.
      ValueError: the axes differ in size.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.vmap(lambda x: jax.lax.pswapaxes(x, "i", 0), axis_name="i")(jnp.array([[1, 2], [3, 4]])))
    [[1 3]
     [2 4]]
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """One row of a mapped axis, for all rows.

    Args:
      x: array or pytree of arrays.
      axis_name: name of the mapped axis.
      source: number of the row.

    Returns:
      That row's value, the same in every row.

    Raises:
      NameError: no `vmap` binds the name.
      ValueError: `source` is no row.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.vmap(lambda x: jax.lax.pbroadcast(x, "i", 1), axis_name="i")(jnp.arange(3)))
    [1 1 1]
    """
    name = _one("pbroadcast", axis_name)
    size = _lax.axis_size(name)
    if not 0 <= source < size:
        raise ValueError(f"pbroadcast source {source} is no row of the axis {name!r} of size {size}.")

    def one(leaf: Any) -> Any:
        import ferrax.numpy as jnp

        return _lax.pbroadcast(jnp.asarray(leaf), name, operator.index(source))

    return tree_util.tree_map(one, x)
