"""`pmap`: a function mapped over the rows of its arguments, one a device.

It is a jitted program that maps the function over a named axis and says that rows are on different devices. Read next:
`_shard_map.py`, which does the same over a mesh.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ferrax import _api, _ferrax, tree_util
from ferrax.sharding._blocks import first
from ferrax.sharding._manual import manual, names_in_force
from ferrax.sharding._mesh import Mesh
from ferrax.sharding._named import IndivisibleError, NamedSharding
from ferrax.sharding._placement import _constrained
from ferrax.sharding._spec import PartitionSpec

__all__ = ["pmap"]

#: The name of an axis that nobody named.
_UNNAMED = "_internal_pmap_axis_name"


def _is_none(x: Any) -> bool:
    return x is None


def pmap(
    fun: Callable[..., Any],
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> Any:
    """Maps a function over an axis of its arguments, one row on each device, as one compiled program.

    Args:
      fun: function of arrays, or pytrees of arrays.
      axis_name: name of the mapped axis, for collectives.
      in_axes: axis to map of each positional argument: an int, `None` for what all devices get, or a pytree prefix of
        such. Keyword arguments are mapped over axis 0.
      out_axes: where the mapped axis stands in each result; `None` for the first device's.
      static_broadcasted_argnums: positions of arguments that are compile-time constants.
      devices: the devices, as many as there are rows at least; those of this process by default.
      backend: the platform whose devices are used.
      axis_size: number of rows, which follows from the arguments otherwise.
      donate_argnums: positions of arguments whose memory the results may take over.

    Returns:
      A function with `fun`'s arguments, and `lower` for its program.

    Raises:
      ValueError: no argument is mapped, numbers of rows differ, or there are too few devices.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> print(jax.pmap(lambda x: x / jax.lax.psum(x, "i"), axis_name="i")(jnp.array([2.0])))
    [1.]
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r}")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    _check_axes("in_axes", in_axes)
    _check_axes("out_axes", out_axes)
    name = _UNNAMED if axis_name is None else axis_name
    statics = _api._indices(static_broadcasted_argnums, "static_broadcasted_argnums")  # type: ignore[arg-type]
    donated = _api._indices(donate_argnums, "donate_argnums")  # type: ignore[arg-type]

    @functools.wraps(fun)
    def program(*args: Any, **kwargs: Any) -> Any:
        if any(not -len(args) <= n < len(args) for n in statics):
            count = f"{len(args)} positional argument{'' if len(args) == 1 else 's'}"
            raise ValueError(
                f"pmapped function has static_broadcasted_argnums={tuple(statics)} but was called with only {count}. "
                "All static broadcasted arguments must be passed positionally."
            )
        fixed = {n % len(args) for n in statics}
        dynamic = tuple(a for i, a in enumerate(args) if i not in fixed)
        leaves, tree = tree_util.tree_flatten((dynamic, kwargs))
        axes = _in_axes(in_axes, dynamic, kwargs, fixed)
        values = [_ferrax.asarray(x) if not isinstance(x, _ferrax.Array) else x for x in leaves]
        axes = [None if a is None else _normal(a, x, "in_axes") for a, x in zip(axes, values, strict=True)]
        size = _size(axes, values, axis_size)
        mesh = _mesh(name, size, devices, backend)
        call = _Call(fun, args, fixed, tree)
        pairs = _mapped(call, values, axes, size, name)
        places = _out_axes(out_axes, call.out_tree, len(pairs))
        outs = [_result(x, at, to, size, name, mesh) for (x, at), to in zip(pairs, places, strict=True)]
        return call.out_tree.unflatten(outs)

    if _beyond(fun, statics):
        del program.__wrapped__  # type: ignore[attr-defined]  # the call says which arguments it lacks
    compiled = _api.jit(program, static_argnums=tuple(statics) or None, donate_argnums=tuple(donated) or None)
    return _api.standing_for(fun, compiled)


def _beyond(fun: Callable[..., Any], positions: Sequence[int]) -> bool:
    """Whether a position is none of a function's positional arguments."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return False
    count = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    return all(p.kind != p.VAR_POSITIONAL for p in parameters) and any(not -count <= n < count for n in positions)


def _check_axes(what: str, axes: Any) -> None:
    for axis in tree_util.tree_leaves(axes):
        if not isinstance(axis, (int, np.integer)) or isinstance(axis, bool):
            raise TypeError(
                f"pmap {what} must be an int, None, or (nested) container with those types as leaves, but got {axes}."
            )


class _Call:
    """The function with its static arguments, on a flat list of one row of the others."""

    def __init__(self, fun: Callable[..., Any], args: tuple[Any, ...], fixed: set[int], tree: Any):
        self.fun, self.args, self.fixed, self.tree = fun, args, fixed, tree
        self.out_tree: Any = None

    def __call__(self, values: list[Any]) -> list[Any]:
        dynamic, kwargs = self.tree.unflatten(values)
        rest = iter(dynamic)
        args = [a if i in self.fixed else next(rest) for i, a in enumerate(self.args)]
        outs, self.out_tree = tree_util.tree_flatten(self.fun(*args, **kwargs))
        return outs


def _mapped(call: Any, values: list[Any], axes: list[Any], size: int, name: Any) -> list[tuple[Any, Any]]:
    with manual((name,)):
        pairs: list[tuple[Any, Any]] = _ferrax.map_flat(call, values, axes, size, str(name), False)
    return pairs


def _in_axes(in_axes: Any, dynamic: tuple[Any, ...], kwargs: dict[str, Any], fixed: set[int]) -> list[Any]:
    """The axis of every leaf of the arguments that are not static."""
    if isinstance(in_axes, tuple):
        count = len(dynamic) + len(fixed)
        if len(in_axes) != count:
            raise ValueError(
                "pmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments "
                f"passed to the function, but got len(in_axes)={len(in_axes)}, len(args)={count}"
            )
        in_axes = tuple(a for i, a in enumerate(in_axes) if i not in fixed)
    try:
        axes = _spread(in_axes, dynamic)
    except ValueError as error:
        raise ValueError(f"pmap in_axes specification must be a tree prefix of the arguments: {error}") from None
    return [*axes, *(0 for _ in tree_util.tree_leaves(kwargs))]


def _spread(axes: Any, tree: Any) -> list[Any]:
    """The axis of every leaf of a tree that the axes are a prefix of, where None is an axis and no leaf of the tree."""
    leaves: list[Any] = []
    tree_util.tree_map(
        lambda axis, part: leaves.extend([axis] * tree_util.tree_structure(part).num_leaves),
        axes,
        tree,
        is_leaf=_is_none,
    )
    return leaves


def _normal(axis: int, x: Any, what: str) -> int:
    at = operator.index(axis)
    if not -x.ndim <= at < x.ndim:
        if x.ndim == 0:
            raise ValueError("pmap requires at least one argument with a mapped axis.")
        raise ValueError(f"pmap {what} {axis} is out of bounds for an array of shape {x.shape}")
    return at % x.ndim


def _size(axes: list[Any], values: list[Any], axis_size: int | None) -> int:
    sizes = [x.shape[a] for a, x in zip(axes, values, strict=True) if a is not None]
    if not sizes:
        if axis_size is None:
            raise ValueError("pmap requires at least one argument with a mapped axis.")
        return axis_size
    if len(set(sizes)) > 1:
        raise ValueError(f"pmap got inconsistent sizes for array axes to be mapped: {sizes}")
    if axis_size is not None and axis_size != sizes[0]:
        raise ValueError(f"Specified axis_size {axis_size} doesn't match received axis_size {sizes[0]}.")
    return sizes[0]


def _mesh(name: Any, size: int, devices: Sequence[Any] | None, backend: str | None) -> Mesh | None:
    """The devices of the rows; `None` inside another mapped function, which has them."""
    if names_in_force():
        return None
    found: list[Any] = list(_ferrax.devices(backend) if devices is None else devices)
    if not found:
        raise ValueError("'devices' argument to pmap must be non-empty, or None.")
    if len(found) < size:
        raise IndivisibleError(
            f"compiling computation that requires {size} logical devices, but only {len(found)} XLA devices are "
            f"available (num_replicas={size}): an axis of size {size} is mapped over them"
        )
    array = np.empty(size, dtype=object)
    array[:] = found[:size]
    return Mesh(array, (name,))


def _out_axes(out_axes: Any, out_tree: Any, count: int) -> list[Any]:
    if out_axes is None or isinstance(out_axes, int):
        return [out_axes] * count
    result = out_tree.unflatten(list(range(count)))
    try:
        return _spread(out_axes, result)
    except ValueError as error:
        raise ValueError(f"pmap out_axes specification must be a tree prefix of the result: {error}") from None


def _result(x: Any, at: int | None, to: int | None, size: int, name: Any, mesh: Mesh | None) -> Any:
    """A whole result: rows along an axis, or the first one."""
    from ferrax import lax
    from ferrax.numpy import moveaxis

    if to is None:
        x = x if at is None else first(x, at)
        spec = PartitionSpec()
    else:
        rank = x.ndim + (at is None)
        if not -rank <= to < rank:
            raise ValueError(
                f"pmap out_axes {to} is out of bounds for a result of rank {rank}, the mapped axis included"
            )
        to %= rank
        if at is None:
            x = lax.broadcast_in_dim(x, (size, *x.shape), tuple(range(1, rank)))
            at = 0
        x = x if at == to else moveaxis(x, at, to)
        spec = PartitionSpec(*(None,) * to, name)
    return x if mesh is None else _constrained(x, NamedSharding(mesh, spec))
