"""The checks of `shard_map`: that specs are specs, that arrays can be cut by them, that results can be put together.

Read next: `_shard_map.py`, which asks for them.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import _ferrax, tree_util
from ferrax._prefixes import prefix_leaves
from ferrax.sharding._marks import not_varying
from ferrax.sharding._mesh import AxisType
from ferrax.sharding._named import NamedSharding, _check_spec
from ferrax.sharding._spec import PartitionSpec, entry_names

__all__ = [
    "check",
    "check_arguments",
    "check_explicit",
    "check_replication",
    "check_sums",
    "names_of",
    "of_arguments",
    "of_results",
]


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, PartitionSpec)


def names_of(spec: PartitionSpec) -> set[Any]:
    """The mesh axes that a spec names."""
    return {n for entry in spec for n in entry_names(entry)}


def _name(f: Any) -> str:
    return getattr(f, "__name__", str(f))


def check(specs: Any, names: frozenset[Any], what: str, infer: Any) -> None:
    """Raises unless the leaves are specs of manual axes.

    Args:
      specs: the pytree.
      names: the mesh axes that are mapped over.
      what: `"in_specs"` or `"out_specs"`.
      infer: stands for specs that follow from the arguments.
    """
    if specs is infer:
        return
    leaves = tree_util.tree_leaves(specs, is_leaf=_is_spec)
    bad = [s for s in leaves if not _is_spec(s)]
    if bad:
        listed = "\n".join(f"  {what} is {s} of type {type(s).__name__}, " for s in bad)
        raise TypeError(
            f"shard_map {what} argument must be a pytree of `jax.sharding.PartitionSpec` instances, "
            f"but:\n\n{listed}\n\nCheck the {what} values passed to shard_map."
        )
    for spec in leaves:
        if spec is None:
            continue
        other = [n for entry in spec for n in entry_names(entry) if n not in names]
        if other:
            listed = "\n".join(f"  {what} refers to {n!r}" for n in other)
            raise ValueError(
                f"shard_map {what} argument must refer to an axis marked as manual ({names}), but:\n\n{listed}\n\n"
                f"Check the {what} values passed to shard_map."
            )


def _spec_in_type(x: Any) -> PartitionSpec:
    """How explicit axes divide an argument."""
    found = _ferrax.typeof(x)._spread if _ferrax.is_tracer(x) else 0
    if found:
        from ferrax.sharding._typed import sharding_of

        return sharding_of(found).spec  # type: ignore[no-any-return]
    sharding = getattr(x, "sharding", None)
    spec = sharding.spec if isinstance(sharding, NamedSharding) else PartitionSpec()
    return spec.update(partitions=(*spec, *(None,) * (np.ndim(x) - len(spec))))


def _restricted(spec: PartitionSpec, names: frozenset[Any]) -> PartitionSpec:
    """The part of a spec that names these axes."""
    kept = [tuple(n for n in entry_names(entry) if n in names) for entry in spec]
    return spec.update(partitions=tuple(k[0] if len(k) == 1 else k or None for k in kept))


def check_explicit(values: Sequence[Any], specs: Sequence[PartitionSpec], mesh: Any, names: frozenset[Any]) -> None:
    """Raises where explicit axes divide an argument in another way than its spec says, if all are mapped over.

    Types of traced values say nothing of it where no explicit axes are in use: those of `vmap` and `grad` outside of
    programs, and of loops and branches there.
    """
    if names != frozenset(mesh.axis_names) or not mesh.are_all_axes_explicit:
        return
    for x, spec in zip(values, specs, strict=True):
        if _ferrax.is_tracer(x) and not _ferrax.typeof(x)._spread and not _ferrax.explicit_in_use():
            continue
        have = _spec_in_type(x)
        want = spec.update(partitions=(*spec, *(None,) * (np.ndim(x) - len(spec))))
        if tuple(map(entry_names, have)) != tuple(map(entry_names, want)) or have.unreduced != want.unreduced:
            kind = _ferrax.typeof(x) if _ferrax.is_tracer(x) else _typeof(x)
            raise ValueError(
                f"in_specs passed to shard_map: {want} does not match the specs of the input: {have} for arg: "
                f"{kind}. `in_specs` is an optional argument so you can omit specifying it and shard_map will infer "
                "the in_specs from the arguments. If you want to reshard your inputs, you can use `jax.reshard` on the "
                "arguments and then pass those args to shard_map."
            )


def _typeof(x: Any) -> Any:
    from ferrax._api import typeof

    return typeof(x)


def check_sums(specs: Sequence[PartitionSpec], mesh: Any, names: frozenset[Any], what: str) -> None:
    """Raises unless specs with `unreduced` or `reduced` axes are for explicit axes, all of which are mapped over.

    Args:
      specs: the specs.
      mesh: the mesh.
      names: the axes that are mapped over.
      what: `"in_specs"` or `"out_specs"`.
    """
    for spec in specs:
        for kind, axes in (("unreduced", spec.unreduced), ("reduced", spec.reduced)):
            if axes and names != frozenset(mesh.axis_names):
                raise NotImplementedError(
                    f"unreduced/reduced can only be passed to {what} when shard_map is in full manual mode. Got mesh "
                    f"axis names {mesh.axis_names}, manual_axes: {names}, specs: {spec}."
                )
            if any(mesh._name_to_type[n] is not AxisType.Explicit for n in axes):
                raise ValueError(
                    f"{kind} in {what} {spec} can only be used when the mesh passed to shard_map contains axis names "
                    f"all of type `Explicit`. Got mesh {mesh}"
                )


def of_arguments(
    f: Any, in_specs: Any, args: tuple[Any, ...], mesh: Any, infer: Any, names: frozenset[Any]
) -> list[PartitionSpec | None]:
    """A spec for every leaf of the arguments; `None` for one that may be anything, and is handed through."""
    if in_specs is infer:
        if any(mesh._name_to_type[n] is not AxisType.Explicit for n in names):
            raise TypeError(
                "shard_map in_specs argument must be given: it follows from the arguments when all axes of the mesh "
                f"are of type Explicit, and the mesh is {mesh}"
            )
        return [_restricted(_spec_in_type(x), names) for x in tree_util.tree_leaves(args)]
    if isinstance(in_specs, list):
        in_specs = tuple(in_specs)
    return list(_spread(in_specs, args, "in_specs", _is_spec))


def _spread(specs: Any, tree: Any, what: str, is_leaf: Callable[[Any], bool]) -> list[Any]:
    """A spec for every leaf of a tree, of which specs must be a prefix."""
    try:
        return prefix_leaves(specs, tree, is_leaf)
    except ValueError as error:
        raise ValueError(str(error).replace("broadcast_prefix prefix_tree", f"shard_map {what}")) from None


def of_results(f: Any, out_specs: Any, result: Any, outs: Sequence[Any]) -> list[PartitionSpec]:
    """A spec for every leaf of a result, which must have enough axes for it."""
    specs = _spread(out_specs, result, "out_specs", lambda x: isinstance(x, PartitionSpec))
    for spec, out in zip(specs, outs, strict=True):
        if len(spec) > out.ndim:
            raise ValueError(
                f"shard_map applied to the function '{_name(f)}' was given an out_specs entry which is too long to be "
                f"compatible with the corresponding output value from the function:\n\nout_specs is {spec} which has "
                f"length {len(spec)}, but {_name(f)}(*args) has shape {out.dtype.name}{list(out.shape)}, which has "
                f"rank {out.ndim} (and {out.ndim} < {len(spec)})\n\nEntries in out_specs must be of length no greater "
                f"than the number of axes in the corresponding output value.\n\n{_shorter(f, 'out', out.ndim)}"
                + (" Scalars that differ between devices need an axis of size one." if out.ndim == 0 else "")
            )
    return specs


def _shorter(f: Any, what: str, rank: int) -> str:
    """What to do about a spec that is too long."""
    text = f"Either revise the spec to be shorter, or modify '{_name(f)}' so that its {what}puts have sufficient rank."
    return text if rank else f"{text}\n\nFor scalar values (rank 0), consider using an {what}_specs entry of `P()`."


def _describe(f: Callable[..., Any], args: tuple[Any, ...], at: int, shape: str = "") -> str:
    """Where a leaf is in the arguments: `args[0]`, with its shape and the name of the parameter."""
    path = tree_util.tree_flatten_with_path(args)[0][at][0]
    index, text = path[0].idx, f"args{tree_util.keystr(path)}{shape}"
    try:
        parameters = list(inspect.signature(f).parameters.values())
        at = min(index, next((i for i, p in enumerate(parameters) if p.kind is p.VAR_POSITIONAL), index))
        bound = f"bound to {_name(f)}'s parameter '{parameters[at].name}'"
    except (TypeError, ValueError, IndexError):
        return text
    if parameters[at].kind is inspect.Parameter.VAR_POSITIONAL:
        bound = f"the index {index - at} component of {_name(f)}'s varargs parameter '{parameters[at].name}'"
    return f"{text}, where args[{index}] is {bound},"


def _key(in_specs: Any, args: tuple[Any, ...], at: int) -> str:
    """Where in a tree of specs the one of a leaf of the arguments is: `in_specs[0]`."""
    path = tree_util.tree_flatten_with_path(args)[0][at][0]
    paths = tree_util.tree_flatten_with_path(in_specs, lambda s: s is None or isinstance(s, PartitionSpec))[0]
    return "in_specs" + next((tree_util.keystr(p) for p, _ in paths if path[: len(p)] == p), "")


def check_arguments(
    f: Any,
    in_specs: Any,
    args: tuple[Any, ...],
    values: Sequence[Any],
    specs: Sequence[PartitionSpec],
    sizes: dict[Any, int],
    mesh: Any,
    places: Sequence[int],
) -> None:
    """Raises unless every array can be cut by its spec; `places` are those of the arrays among the leaves of `args`."""
    for at, x, spec in zip(places, values, specs, strict=True):
        kind = f"{x.dtype.name}[{','.join(map(str, x.shape))}]"
        if len(spec) > x.ndim:
            raise ValueError(
                f"shard_map applied to the function '{_name(f)}' was given an in_specs entry which is too long to be "
                f"compatible with the corresponding input value from the function:\n\n{_key(in_specs, args, at)} is "
                f"{spec} which has length {len(spec)}, but the passed {_describe(f, args, at)} has shape {kind}, "
                f"which has rank {x.ndim} (and {x.ndim} < {len(spec)})\n\nEntries in in_specs must be of length no "
                f"greater than the number of axes in the corresponding input value.\n\n{_shorter(f, 'in', x.ndim)}"
            )
        _check_spec(mesh, spec)
        for axis, entry in enumerate(spec):
            names = entry_names(entry)
            count = math.prod(sizes[n] for n in names)
            if x.shape[axis] % count:
                axes = f"mesh axis {names[0]!r}" if len(names) == 1 else f"mesh axes {names}"
                total = f"of size {count}" if len(names) == 1 else f"of total size {count}"
                raise ValueError(
                    f"shard_map applied to the function '{_name(f)}' was given argument arrays with axis sizes that "
                    "are not evenly divisible by the corresponding mesh axis sizes:\n\nThe mesh given has shape "
                    f"{mesh.axis_sizes} with corresponding axis names {mesh.axis_names}.\n\nthe passed "
                    f"{_describe(f, args, at, f' of shape {kind}')} corresponds to {_key(in_specs, args, at)} of value "
                    f"{spec}, which maps array axis {axis} (of size {x.shape[axis]}) to {axes} ({total}), but {count} "
                    f"does not evenly divide {x.shape[axis]}"
                )


def check_replication(
    f: Any, mesh: Any, names: Sequence[Any], specs: Sequence[PartitionSpec], outs: Sequence[Any]
) -> None:
    """Raises when a result varies over an axis that its spec does not name."""
    for spec, out in zip(specs, outs, strict=True):
        said = names_of(spec) | set(spec.unreduced)
        inside = [n for n in names if str(n) in _ferrax.typeof(out).vma]
        varies = [n for n in inside if n not in said]
        missing = [n for n in spec.unreduced if n not in inside]
        if missing:
            raise not_varying(missing, frozenset(inside))
        if varies:
            unnamed = [n for n in mesh.axis_names if n not in said]
            braces = lambda axes: "{" + ",".join(map(str, axes)) + "}"
            if len(unnamed) > 1:
                named = [n for n in mesh.axis_names if n in names_of(spec)]
                which = (
                    f"only varying across mesh axes {braces(named)} and not {braces(varies)}, but it was inferred to "
                    f"be possibly varying over {braces(n for n in mesh.axis_names if n in inside)}"
                )
            else:
                which = f"replicated across mesh axis {unnamed[0]!r}, but could not infer replication over any axes"
            raise ValueError(
                f"shard_map applied to the function '{_name(f)}' was given out_specs which require replication which "
                f"can't be statically inferred given the mesh:\n\nThe mesh given has shape {mesh.axis_sizes} with "
                f"corresponding axis names {mesh.axis_names}.\n\nout_specs is {spec} which implies that the "
                f"corresponding output value is {which}\n\nCheck if these output values are meant to be replicated "
                "over those mesh axes. If not, consider revising the corresponding out_specs entries. If so, consider "
                "disabling the check by passing the check_vma=False argument to `jax.shard_map`."
            )
