"""Operations across the rows of a mapped axis that `vmap` has named: `psum`, `all_gather`, `ppermute` and relatives.

They may be used wherever the name is bound: in the mapped function, and in functions under `jit`, `grad`, `scan` and
the like inside it. Read next: `crates/ferrax-ops/src/collective.rs`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import _ferrax, tree_util
from ferrax._ferrax import Array, lax as _lax
from ferrax.lax._axis_names import groups_of, in_order_of_mesh, names_of
from ferrax.lax._pcast import pcast as pcast
from ferrax.sharding._marks import marks_of, reduced_over

__all__ = [
    "all_gather",
    "all_to_all",
    "axis_index",
    "axis_size",
    "pbroadcast",
    "pcast",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "precv",
    "psend",
    "pshuffle",
    "psum",
    "psum_scatter",
    "pswapaxes",
    "ragged_all_to_all",
]


def _split(axis_name: Any) -> tuple[list[str], list[int]]:
    """Names of mapped axes, and positions of axes of the operand itself."""
    names = names_of(axis_name)
    return [str(n) for n in names if not isinstance(n, int)], [n for n in names if isinstance(n, int)]


def _gathered(x: Array, axis_name: Any) -> Array:
    """All rows of mapped axes, the last varying fastest, on a new first axis."""
    gathered: Array = all_gather(x, axis_name, axis=0)
    return gathered


def _members(x: Array, axis_name: Any, groups: tuple[tuple[int, ...], ...]) -> Array:
    """The rows of one's own group, of groups of one size, on a new first axis."""
    import ferrax.numpy as jnp

    if len({len(group) for group in groups}) > 1:
        raise ValueError("axis_index_groups must all be the same size")
    own = {row: group for group in groups for row in group}
    table = np.array([own[row] for row in range(len(own))], dtype=np.int32)
    return jnp.take(_gathered(x, axis_name), jnp.asarray(table)[axis_index(axis_name)], axis=0)


def _place_in_group(axis_name: Any, groups: tuple[tuple[int, ...], ...]) -> Array:
    """Where the row stands in its group."""
    import ferrax.numpy as jnp

    place = {row: i for group in groups for i, row in enumerate(group)}
    return jnp.asarray(np.array([place[row] for row in range(len(place))], dtype=np.int32))[axis_index(axis_name)]


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
    groups = groups_of(name, axis_name, axis_index_groups)
    names, positions = _split(axis_name)
    for n in names:
        _lax.axis_size(n, name)

    def one(leaf: Any) -> Any:
        import ferrax.numpy as jnp

        leaf = jnp.asarray(leaf)
        if positions:
            leaf = local(leaf, tuple(positions))
        if name == "psum" and leaf.dtype == np.bool_:
            leaf = leaf.astype(np.int32)
        if groups is None:
            return _lax.reduce_across(name, leaf, names) if names else leaf
        if len({len(group) for group in groups}) == 1:
            return local(_members(leaf, axis_name, groups), (0,))
        others = jnp.zeros_like(leaf) if name == "psum" else leaf
        return local(jnp.where(_is_member(leaf.ndim, axis_name, groups), _gathered(leaf, axis_name), others), (0,))

    return tree_util.tree_map(one, x)


def _is_member(rank: int, axis_name: Any, groups: tuple[tuple[int, ...], ...]) -> Array:
    """Which rows are of one's own group, as a column for arrays of a rank."""
    import ferrax.numpy as jnp

    own = {row: group for group in groups for row in group}
    table = np.array([[other in own[row] for other in range(len(own))] for row in range(len(own))])
    return jnp.asarray(table)[axis_index(axis_name)].reshape(-1, *(1,) * rank)


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Sums over the rows of mapped axes.

    Args:
      x: array or pytree of arrays, of which booleans count as integers. A Python number is taken as one in every row:
        its sum is it times the axes' sizes, a Python number again.
      axis_name: name of a mapped axis, or a tuple of names; integers stand for axes of `x` itself.
      axis_index_groups: lists of rows that the operation works in apart from each other; under `pmap`, not under
        `vmap`.

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
        groups = groups_of("psum", axis_name, axis_index_groups)
        names, positions = _split(axis_name)
        if not positions:
            size = math.prod(_lax.axis_size(n) for n in names) if groups is None else len(groups[0])
            return tree_util.tree_map(lambda leaf: size * leaf, x)
    from ferrax.lax.reductions import reduce_sum

    return _reduce("psum", x, axis_name, axis_index_groups, reduce_sum)


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Averages over the rows of mapped axes.

    Args:
      x: array or pytree of arrays.
      axis_name: name of a mapped axis, or a tuple of names.
      axis_index_groups: lists of rows that the operation works in apart from each other; under `pmap`, not under
        `vmap`.

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
      axis_name, axis_index_groups: as in `psum`.

    Returns:
      The maxima, the same in every row. They have no derivative.

    Raises: as in `psum`.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.vmap(lambda x: jax.lax.pmax(x, "i"), axis_name="i")(jnp.array([1.0, 3.0])))
    [3. 3.]
    """
    from ferrax.lax.reductions import reduce_max

    return _reduce("pmax", x, axis_name, axis_index_groups, reduce_max)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Minima over the rows of mapped axes.

    Args:
      x: array or pytree of arrays.
      axis_name, axis_index_groups: as in `psum`.

    Returns:
      The minima, the same in every row. They have no derivative.

    Raises: as in `psum`.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.vmap(lambda x: jax.lax.pmin(x, "i"), axis_name="i")(jnp.array([1.0, 3.0])))
    [1. 1.]
    """
    from ferrax.lax.reductions import reduce_min

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
    return math.prod(_lax.axis_size(str(n)) for n in names_of(axis_name))


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

    names = [str(n) for n in names_of(axis_name)]
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
      axis_index_groups: lists of rows that the operation works in apart from each other; under `pmap`, not under
        `vmap`.
      axis: where the rows go in the results.
      tiled: whether rows are joined along `axis` instead of stacked on a new axis there.
      to: what the types under `shard_map` with `check_vma` say of the results: `"varying"` over the axes;
        `"invarying"`, the same everywhere; `"reduced"`, the same everywhere with gradients that are due over the axes.
        Under `vmap` results are the same in every row.

    Returns:
      The rows, stacked or joined.

    Raises:
      NameError: no `vmap` binds the name.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.vmap(lambda x: jax.lax.all_gather(x, "i"), axis_name="i")(jnp.array([1.0, 3.0])))
    [[1. 3.]
     [1. 3.]]
    """
    if to not in ("varying", "reduced", "invarying"):
        raise ValueError(
            "Got unexpected `to` value for `jax.lax.all_gather`. Allowed `to` values are: {'varying', 'reduced', "
            f"'invarying'}}. Got {to!r}"
        )
    groups = groups_of("all_gather", axis_name, axis_index_groups)
    names = [str(n) for n in names_of(axis_name)]
    same = to != "varying" and bool(_ferrax.checked_axes(names))
    if same and groups is not None:
        raise NotImplementedError(f"all_gather with to={to!r} and axis_index_groups is not implemented")

    def one(leaf: Any) -> Any:
        import ferrax.numpy as jnp

        leaf = jnp.asarray(leaf)
        at = _axis(axis, leaf.ndim + (not tiled), "all_gather")
        if same:
            stacked = jnp.moveaxis(_gathered_once(leaf, axis_name), 0, at)
            out = _merged(stacked, at) if tiled else stacked
            return reduced_over(out, names) if to == "reduced" else out
        if groups is not None:
            stacked = jnp.moveaxis(_members(leaf, axis_name, groups), 0, at)
            return _merged(stacked, at) if tiled else stacked
        for i, name in enumerate(reversed(names)):
            # The axes named before the last one are joined in front of what has been gathered.
            leaf = _lax.all_gather(leaf, name, at, tiled or i > 0)
        return leaf

    return tree_util.tree_map(one, x)


def _gathered_once(x: Array, axis_name: Any) -> Array:
    """All rows of manual axes on a new first axis, the same on all devices: the sum of each row and negative zeros."""
    import ferrax.numpy as jnp

    if x.dtype == np.bool_:
        return _gathered_once(x.astype(np.uint8), axis_name) != 0
    rows = jnp.arange(axis_size(axis_name)).reshape(-1, *(1,) * x.ndim)
    nothing = jnp.asarray(-0.0 if jnp.issubdtype(x.dtype, jnp.inexact) else 0, x.dtype)
    nothing = reduced_over(nothing, sorted(marks_of(_ferrax.typeof(x))[1]))
    total: Array = psum(jnp.where(rows == axis_index(axis_name), x, nothing), axis_name)
    return total


def _merged(x: Array, axis: int) -> Array:
    """An array with an axis and the next joined."""
    shape = x.shape
    return x.reshape(*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])


def _parted(x: Array, axis: int, *sizes: int) -> Array:
    """An array with an axis divided."""
    return x.reshape(*x.shape[:axis], *sizes, *x.shape[axis + 1 :])


def psum_scatter(
    x: Any, axis_name: Any, *, scatter_dimension: int = 0, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """Sums over the rows of a mapped axis, of which every row keeps its own part.

    Args:
      x: array or pytree of arrays.
      axis_name: name of the mapped axis.
      scatter_dimension: the axis of `x` that is divided among the rows.
      axis_index_groups: lists of rows that the operation works in apart from each other; under `pmap`, not under
        `vmap`.
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
    groups = groups_of("psum_scatter", axis_name, axis_index_groups)
    names = [str(n) for n in names_of(axis_name)]

    def one(leaf: Any) -> Any:
        import ferrax.numpy as jnp

        leaf = jnp.asarray(leaf)
        if leaf.dtype == np.bool_:
            raise TypeError("psum_scatter does not accept dtype bool. Accepted dtypes are subtypes of number.")
        at = _axis(scatter_dimension, leaf.ndim, "psum_scatter")
        if groups is not None:
            total = _members(leaf, axis_name, groups).sum(0)
            place, count = _place_in_group(axis_name, groups), len(groups[0])
            if tiled:
                return jnp.take(_parted(total, at, count, total.shape[at] // count), place, axis=at)
            return jnp.take(total, place, axis=at)
        if len(names) > 1 and not tiled:
            _whole_number(leaf.shape[at], axis_size(axis_name), "psum_scatter", exactly=True)
            leaf = _parted(leaf, at, *(_lax.axis_size(n) for n in names))
        for name in names:
            leaf = _lax.reduce_scatter(leaf, name, at, tiled)
        return leaf

    return tree_util.tree_map(one, x)


def all_to_all(
    x: Any, axis_name: Any, split_axis: int, concat_axis: int, *, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """Divides every row along an axis and exchanges the parts: row i gets the i-th part of every row.

    Args:
      x, axis_name: as in `psum_scatter`.
      split_axis: the axis of `x` that is divided among the rows.
      concat_axis: where the parts that a row gets go in the result.
      axis_index_groups: as in `psum_scatter`.
      tiled: whether parts are joined along `concat_axis` instead of stacked on a new axis there; without it,
        `split_axis` has one entry a row and disappears.

    Returns:
      The parts that each row gets.

    Raises: as in `psum_scatter`.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.vmap(lambda x: jax.lax.all_to_all(x, "i", 0, 0), axis_name="i")(jnp.array([[1, 2], [3, 4]])))
    [[1 3]
     [2 4]]
    """
    groups = groups_of("all_to_all", axis_name, axis_index_groups)
    names = [str(n) for n in names_of(axis_name)]

    def one(leaf: Any) -> Any:
        import ferrax.numpy as jnp

        leaf = jnp.asarray(leaf)
        split = _axis(split_axis, leaf.ndim, "all_to_all")
        concat = _axis(concat_axis, leaf.ndim, "all_to_all")
        if len(names) == 1 and groups is None:
            return _lax.all_to_all(leaf, names[0], split, concat, tiled)
        return _exchanged(leaf, axis_name, groups, split, concat, tiled)

    return tree_util.tree_map(one, x)


def _whole_number(size: int, rows: int, function: str, exactly: bool) -> None:
    """Raises unless an axis can be divided among rows."""
    if size % rows or (exactly and size != rows):
        must = "equal" if exactly else "be a multiple of"
        raise ValueError(
            f"{function}: the size of the axis that is divided, {size}, must {must} the rows' number, {rows}"
        )


def _exchanged(x: Array, axis_name: Any, groups: Any, split: int, concat: int, tiled: bool) -> Array:
    """`all_to_all` over several axes, or in groups of rows."""
    import ferrax.numpy as jnp

    names = [str(n) for n in names_of(axis_name)]
    rows = math.prod(_lax.axis_size(n, "all_to_all") for n in names) if groups is None else len(groups[0])
    _whole_number(x.shape[split], rows, "all_to_all", exactly=not tiled)
    # [.., rows that get a part, part, ..] with tiles, else [.., rows, ..]
    x = _parted(x, split, rows, x.shape[split] // rows) if tiled else x
    if groups is None:
        sizes = [_lax.axis_size(n) for n in names]
        x = _parted(x, split, *sizes)
        for i, name in enumerate(names):
            x = _lax.all_to_all(x, name, split + i, split + i, False)
        for _ in names[1:]:
            x = _merged(x, split)
    else:
        x = jnp.take(_members(x, axis_name, groups), _place_in_group(axis_name, groups), axis=split + 1)
        x = jnp.moveaxis(x, 0, split)
    x = jnp.moveaxis(x, split, concat)
    return _merged(x, concat) if tiled else x


def ppermute(x: Any, axis_name: Any, perm: Any) -> Any:
    """Sends rows of a mapped axis to other rows.

    Args:
      x: array or pytree of arrays.
      axis_name: name of the mapped axis.
      perm: pairs `(source, destination)`; rows that are no destination get zeros. Rows of several axes of a mesh are
        counted in the mesh's order, whatever the order of the names.

    Returns:
      What each row gets.

    Raises:
      NameError: no `vmap` binds the name.
      ValueError: a row is the destination of two others, or a number is no row.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.vmap(lambda x: jax.lax.ppermute(x, "i", [(0, 1), (1, 2)]), axis_name="i")(jnp.arange(3) + 1))
    [0 1 2]
    """
    pairs = [(operator.index(source), operator.index(target)) for source, target in perm]
    size = axis_size(axis_name)
    axis_name = in_order_of_mesh(axis_name)
    names = [str(n) for n in names_of(axis_name)]
    sources, targets = [p[0] for p in pairs], [p[1] for p in pairs]
    if len(set(sources)) != len(pairs) or len(set(targets)) != len(pairs):
        raise ValueError(f"ppermute sources and destinations must be unique, got {perm}.")
    if any(not 0 <= row < size for row in sources + targets):
        raise ValueError(f"ppermute got a row outside the axis {axis_name!r} of size {size}: {perm}.")

    def one(leaf: Any) -> Any:
        import ferrax.numpy as jnp

        leaf = jnp.asarray(leaf)
        if len(names) == 1:
            return _lax.ppermute(leaf, names[0], pairs)
        source = np.full(size, -1, dtype=np.int32)
        source[targets] = sources
        mine = jnp.asarray(source)[axis_index(axis_name)]
        got = jnp.take(_gathered(leaf, axis_name), jnp.maximum(mine, jnp.int32(0)), axis=0)
        return jnp.where(mine >= jnp.int32(0), got, jnp.zeros_like(got))

    return tree_util.tree_map(one, x)


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Rearranges the rows of a mapped axis: row i gets row `perm[i]`.

    Args:
      x, axis_name: as in `ppermute`.
      perm: for every row the number of the row that it gets.

    Returns: as in `ppermute`.

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
      axis_index_groups: lists of rows that the operation works in apart from each other; under `pmap`, not under
        `vmap`.

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
    size = axis_size(axis_name)
    names = [str(n) for n in names_of(axis_name)]
    if not 0 <= source < size:
        raise ValueError(f"pbroadcast source {source} is no row of the axis {axis_name!r} of size {size}.")

    def one(leaf: Any) -> Any:
        import ferrax.numpy as jnp

        leaf = jnp.asarray(leaf)
        if len(names) == 1:
            return _lax.pbroadcast(leaf, names[0], operator.index(source))
        return _gathered(leaf, axis_name)[source]

    return tree_util.tree_map(one, x)


@tree_util.register_pytree_node_class
class _Sent:
    """What `psend` has sent, for `precv`."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def tree_flatten(self) -> tuple[tuple[Any], None]:
        return (self.value,), None

    @classmethod
    def tree_unflatten(cls, _: None, children: tuple[Any]) -> _Sent:
        return cls(*children)


def psend(x: Any, axis_name: Any, perm: Any) -> Any:
    """Begins to send rows of a mapped axis to other rows; `precv` gets them.

    Args:
      x: an array.
      axis_name: name of the mapped axis.
      perm: pairs `(source, destination)`.

    Returns:
      A token for `precv`.

    Raises:
      NameError: nothing binds the name.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> def shift(x):
    ...     token = jax.lax.psend(x, "i", [(0, 1)])
    ...     return jax.lax.precv(token, jax.typeof(x), "i", [(0, 1)])
    >>> print(jax.vmap(shift, axis_name="i")(jnp.array([1.0, 3.0])))
    [0. 1.]
    """
    axis_size(axis_name)
    return _Sent(x)


def precv(token: Any, out_shape: Any, axis_name: Any, perm: Any) -> Array:
    """Gets what `psend` sent.

    Args:
      token: the token of `psend`.
      out_shape: what the value is like: anything with a shape and a dtype.
      axis_name: name of the mapped axis.
      perm: the pairs that `psend` got.

    Returns:
      What each row gets, zeros where nothing was sent.

    Raises:
      TypeError: `token` is no token of `psend`, or what was sent is not of the type.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> def swap(x):
    ...     perm = [(0, 1), (1, 0)]
    ...     return jax.lax.precv(jax.lax.psend(x, "i", perm), jax.typeof(x), "i", perm)
    >>> print(jax.vmap(swap, axis_name="i")(jnp.array([1.0, 3.0])))
    [3. 1.]
    """
    if not isinstance(token, _Sent):
        raise TypeError(f"precv needs the token of a psend, got {token!r}")
    got: Array = ppermute(token.value, axis_name, perm)
    if (tuple(out_shape.shape), np.dtype(out_shape.dtype)) != (got.shape, got.dtype):
        raise TypeError(f"precv expects {out_shape}, but what was sent is {_ferrax.typeof(got)}")
    return got


def ragged_all_to_all(
    operand: Any,
    output: Any,
    input_offsets: Any,
    send_sizes: Any,
    output_offsets: Any,
    recv_sizes: Any,
    *,
    axis_name: Any,
    axis_index_groups: Any = None,
) -> Array:
    """Exchanges slices of different sizes along the first axis among the rows of a mapped axis.

    Args:
      operand: array whose slices are sent.
      output: array that what arrives is written into.
      input_offsets: int array (rows,): where the slice for each row begins in `operand`.
      send_sizes: int array (rows,): how long it is.
      output_offsets: int array (rows,): where it begins in the receiving row's `output`.
      recv_sizes: int array (rows,): how long the slice from each row is.
      axis_name: name of the mapped axis.
      axis_index_groups: lists of rows, all of one length, that exchange slices apart from each other; `rows` is that
        length.

    Returns:
      `output` with the slices that arrived.

    Raises:
      ValueError: the dtypes of `operand` and `output` differ, or offsets or sizes are no integers, one for each row.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> send = lambda x, o, k: jax.lax.ragged_all_to_all(
    ...     x, jnp.zeros(3), jnp.array([0, 1]), jnp.array([1, 1]), jnp.array([o, o]), k, axis_name="i")
    >>> x = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    >>> print(jax.vmap(send, axis_name="i", in_axes=(0, 0, None))(x, jnp.arange(2), jnp.ones(2, int)))
    [[1. 3. 0.]
     [2. 4. 0.]]
    """
    import ferrax.numpy as jnp

    operand, output = jnp.asarray(operand), jnp.asarray(output)
    groups = groups_of("ragged_all_to_all", axis_name, axis_index_groups)
    rows = axis_size(axis_name) if groups is None else len(groups[0])
    if operand.dtype != output.dtype or operand.shape[1:] != output.shape[1:]:
        raise ValueError(
            f"ragged_all_to_all: operand and output must agree in dtype and in all axes but the first; got "
            f"{_ferrax.typeof(operand)} and {_ferrax.typeof(output)}"
        )
    numbers = [jnp.asarray(x) for x in (input_offsets, send_sizes, output_offsets, recv_sizes)]
    for name, x in zip(("input_offsets", "send_sizes", "output_offsets", "recv_sizes"), numbers, strict=True):
        if not jnp.issubdtype(x.dtype, jnp.integer):
            raise ValueError(f"ragged_all_to_all {name} must be integer type.")
        if x.ndim != 1 or not x.size:
            raise ValueError(
                f"ragged_all_to_all {name} must be rank 1 with positive dimension size, but got shape {x.shape}"
            )
        if x.shape != (rows,):
            raise ValueError(f"ragged_all_to_all {name} must have one number for each of {rows} rows, got {x.size}")

    def gathered(x: Any) -> Array:
        return _gathered(x, axis_name) if groups is None else _members(x, axis_name, groups)

    me = axis_index(axis_name) if groups is None else _place_in_group(axis_name, groups)
    first, size, target = (jnp.take(gathered(x.astype(jnp.int32)), me, axis=1) for x in numbers[:3])
    at = jnp.arange(output.shape[0], dtype=jnp.int32)
    inside = (target[:, None] <= at) & (at < (target + size)[:, None])
    sender = jnp.argmax(inside, axis=0).astype(jnp.int32)
    place = jnp.clip(first[sender] + at - target[sender], 0, max(operand.shape[0] - 1, 0))
    got = gathered(operand)[sender, place]
    here = inside.any(0).reshape(-1, *(1,) * (output.ndim - 1))
    return jnp.where(here, got, output)
