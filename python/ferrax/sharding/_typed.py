"""Types with shardings: what the types of traced values say of explicit axes of a mesh, by numbers that the core keeps.

An aval has a number for a sharding over the mesh in use, of which only the explicit axes count. The results of an
operation get theirs from the rules for programs (`_propagation.py`, `_explicit.py`) as soon as it is recorded.

Read next: `_explicit.py` for the rules, `crates/ferrax-ir/src/spread.rs` for who asks.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

from ferrax import _ferrax
from ferrax.sharding._context import context_mesh, get_abstract_mesh, set_mesh
from ferrax.sharding._due import due
from ferrax.sharding._entries import Spec
from ferrax.sharding._mesh import AbstractMesh, AxisType, Mesh
from ferrax.sharding._named import NamedSharding
from ferrax.sharding._placement import concrete, opened, place
from ferrax.sharding._propagation import Walk
from ferrax.sharding._spec import UNCONSTRAINED, PartitionSpec, entry_names

__all__ = ["axis_entry", "moved", "of_axis", "of_mapped", "of_sharding", "results", "settled", "sharding_of"]

#: By sharding, or by sharding and text.
_numbers: dict[Any, int] = {}
#: By number; nothing has the number 0.
_shardings: list[Any] = [None]
_lock = threading.Lock()


def sharding_of(number: int) -> Any:
    """The sharding of a number, over an abstract mesh; `None` of 0."""
    return _shardings[number]


def place_of(number: int) -> Any:
    """The place that a type's number means in programs over devices; `None` where it says nothing of them."""
    sharding = sharding_of(number)
    mesh, spec = sharding.mesh, sharding.spec
    if AxisType.Manual in mesh.axis_types or spec.unreduced or spec.reduced:
        return None
    return place(opened(sharding, "a type"))


def number_of(sharding: NamedSharding) -> int:
    """The number of a sharding over an abstract mesh, with an entry for each axis of the array."""
    found = _numbers.get(sharding)
    return _numbered(sharding, sharding, sdy(sharding)) if found is None else found


def number_of_text(sharding: NamedSharding, said: str) -> int:
    """The number of a type in a program that is made to be printed, in which automatic axes divide arrays, too.

    Args:
      sharding: the sharding, with an entry for each axis of the array.
      said: the sharding as the dialect `sdy` writes it.
    """
    key = (sharding, said)
    return _numbers[key] if key in _numbers else _numbered(key, sharding, (said, mesh_text(sharding.mesh)))


def _numbered(key: Any, sharding: NamedSharding, said: tuple[str, str]) -> int:
    spec = sharding.spec
    unreduced, reduced = (sorted(map(str, axes)) for axes in (spec.unreduced, spec.reduced))
    texts = [None if e is UNCONSTRAINED or not entry_names(e) else _joined(entry_names(e)) for e in spec]
    with _lock:
        if key not in _numbers:
            number = _ferrax.intern_spread(texts, unreduced, reduced, said)
            assert number == len(_shardings)
            _shardings.append(sharding)
            _numbers[key] = number
    return _numbers[key]


def mesh_text(mesh: Any) -> str:
    """A mesh as the dialect `sdy` of MLIR writes it."""
    sizes = ", ".join(f'"{n}"={size}' for n, size in mesh.shape_tuple)
    return f"<[{sizes}]>"


def sdy(sharding: NamedSharding) -> tuple[str, str]:
    """The sharding and its mesh, as the dialect `sdy` of MLIR writes them: `?` stands for axes that XLA divides."""
    mesh, spec = sharding.mesh, sharding.spec
    open_ = ["?"] if AxisType.Auto in mesh.axis_types else []
    quoted = lambda names: [f'"{n}"' for n in names]
    dims = ", ".join(f"{{{', '.join([*quoted(entry_names(e)), *open_])}}}" for e in spec)
    used = {n for e in spec for n in entry_names(e)} | set(spec.unreduced)
    kinds = mesh._name_to_type
    rest = [n for n in mesh.axis_names if kinds[n] is AxisType.Explicit and n not in used] if open_ else []
    marks = [
        f"{k}={{{', '.join(quoted(v))}}}" for k, v in (("replicated", rest), ("unreduced", sorted(spec.unreduced))) if v
    ]
    return f"<@mesh, {', '.join([f'[{dims}]', *marks])}>", mesh_text(mesh)


def _joined(names: Any) -> str:
    names = list(names)
    return str(names[0]) if len(names) == 1 else f"({','.join(str(n) for n in names)})"


def of_sharding(sharding: Any, rank: int, shape: Any = None) -> int:
    """The number in the type of an array of a rank with a sharding; 0 without explicit axes.

    Args:
      sharding: the sharding.
      rank: number of the array's axes.
      shape: their sizes, where it is to be checked that they can be divided so.

    Raises:
      ValueError: they cannot.
    """
    if not isinstance(sharding, NamedSharding) or AxisType.Explicit not in sharding.mesh.axis_types:
        return 0
    mesh, spec = sharding.mesh.abstract_mesh, sharding.spec
    if len(spec) > rank:
        return 0
    if shape is not None:
        _check_sizes(sharding, tuple(shape))
    kinds = mesh._name_to_type
    names = [
        () if e is UNCONSTRAINED else tuple(n for n in entry_names(e) if kinds[n] is AxisType.Explicit) for e in spec
    ]
    return _of_entries(mesh, (*names, *((),) * (rank - len(spec))), spec)


def _check_sizes(sharding: NamedSharding, shape: tuple[int, ...]) -> None:
    for axis, entry in enumerate(sharding.spec):
        names = () if entry is UNCONSTRAINED else entry_names(entry)
        parts = math.prod(sharding.mesh.shape[n] for n in names)
        if shape[axis] % parts:
            raise ValueError(
                f"Sharding spec {names} implies that array axis {axis} is partitioned {parts} times, but does not "
                f"evenly divide the dimension size {shape[axis]}. Got shape: {shape} and sharding {sharding}"
            )


def _of_entries(mesh: AbstractMesh, entries: Sequence[Sequence[Any]], like: PartitionSpec | None = None) -> int:
    shown = [None if not names else names[0] if len(names) == 1 else tuple(names) for names in entries]
    spec = PartitionSpec(*shown) if like is None else like.update(partitions=tuple(shown))
    return number_of(NamedSharding(mesh, spec))


def entries_of(number: int) -> Spec | None:
    """What divides each axis, by the number of a type; `None` of 0."""
    sharding = _shardings[number]
    return None if sharding is None else tuple(entry_names(e) for e in sharding.spec)


def moved(number: int, at: int, more: int | None) -> int:
    """The number of a type with one more axis, or one less.

    Args:
      number: that of the type.
      at: where the axis is.
      more: the number of what divides the axis that there is more; `None` for one less.
    """
    sharding = _shardings[number]
    entries = list(sharding.spec)
    if more is not None:
        kinds = sharding.mesh._name_to_type
        names = [n for n in entry_names(_axes[more]) if kinds.get(n) is AxisType.Explicit]
        entries.insert(at, names[0] if len(names) == 1 else tuple(names) or None)
    elif at < len(entries):
        del entries[at]
    mesh, seen = sharding.mesh, get_abstract_mesh()
    if seen.shape_tuple == mesh.shape_tuple and AxisType.Manual in seen.axis_types:
        # the part of one device along the manual axes
        mesh, kinds = seen, seen._name_to_type
        return _of_entries(mesh, [[n for n in entry_names(e) if kinds[n] is AxisType.Explicit] for e in entries])
    return number_of(sharding.update(spec=sharding.spec.update(partitions=tuple(entries))))


def mesh_in_use(sharding: NamedSharding) -> Any:
    """Enters the mesh of an argument, which has explicit axes; `None` where another one is in use.

    Args:
      sharding: the argument's sharding.

    Returns:
      What has to be left.
    """
    if context_mesh(physical=False) is not None or not isinstance(sharding.mesh, Mesh):
        return None
    return set_mesh(sharding.mesh)


class _Typing(Walk):
    """One operation, on the mesh in use."""

    def known(self, sharding: Any, rank: int) -> Any:
        """The explicit part of a sharding."""
        number = of_sharding(sharding, rank)
        return entries_of(number)


def results(program: Any) -> list[int]:
    """The numbers of the results of an operation, from those of its operands.

    Args:
      program: a program of the operation alone.

    Raises:
      ShardingTypeError: the operation has to be told how its result is divided.
      ValueError: an operand is over another mesh than the one in use.
    """
    mesh = get_abstract_mesh()
    (eqn,) = program.eqns
    if mesh.empty:
        # arrays outside of programs have their mesh with them
        mesh = next(s.mesh for v in eqn.invars if (s := _shardings[v.aval._spread]) is not None)
    if eqn.primitive.name == "sharding_constraint":
        return [of_sharding(eqn.params["sharding"], len(eqn.outvars[0].aval.shape))]
    walk = _Typing(True)
    walk.mesh = mesh
    known = [_seen(mesh, eqn, v.aval) for v in eqn.invars]
    found = walk.equation(eqn, known)
    types = [_shardings[v.aval._spread] for v in eqn.invars]
    unreduced, reduced = due(eqn, [None if t is None else t.spec for t in types])
    like = PartitionSpec(unreduced=unreduced, reduced=reduced) if unreduced or reduced else None
    return [_fitted(mesh, s, v.aval.shape, like) for s, v in zip(found, eqn.outvars, strict=True)]


def _seen(mesh: AbstractMesh, eqn: Any, aval: Any) -> Spec | None:
    """What explicit axes of the mesh in use divide an operand; others than manual ones must be of the type's kinds."""
    sharding = _shardings[aval._spread]
    if sharding is None:
        return None
    entries = entries_of(aval._spread)
    if sharding.mesh.axis_types == mesh.axis_types and sharding.mesh.axis_names == mesh.axis_names:
        return entries
    if sharding.mesh.shape_tuple == mesh.shape_tuple:
        kinds, own = mesh._name_to_type, sharding.mesh._name_to_type
        if all(kinds[n] is own[n] or AxisType.Manual in (kinds[n], own[n]) for n in kinds):
            return tuple(tuple(n for n in names if kinds[n] is AxisType.Explicit) for names in entries or ())
    if not eqn._made:
        raise ValueError(
            f"For primitive {eqn.primitive.name}, context mesh {mesh} should match the aval mesh {sharding.mesh} for "
            f"shape {_ferrax.with_spread(aval, 0)}: a value over axes of other types has to be resharded first"
        )
    return None


def _fitted(mesh: AbstractMesh, found: Any, shape: Sequence[Any], like: PartitionSpec | None) -> int:
    """The number of a result; axes of the mesh that do not divide one of it are left out."""
    entries: Spec = found if isinstance(found, tuple) and len(found) == len(shape) else ((),) * len(shape)
    sizes = mesh.shape
    fits = (
        names if n % math.prod(sizes[k] for k in names) == 0 else () for names, n in zip(entries, shape, strict=True)
    )
    return _of_entries(mesh, tuple(fits), like)


def settled(x: Any, number: int) -> Any:
    """A value, divided as the type of this number says, where that means devices, or types.

    Args:
      x: the value.
      number: that of the type.
    """
    if _shardings[number].mesh.are_all_axes_manual:
        return x
    sharding = concrete(_shardings[number])
    spec = sharding.spec
    if spec.unreduced or spec.reduced:
        # what comes back to a value that is the same everywhere is due, and the other way round
        sharding = sharding.update(spec=spec.update(unreduced=spec.reduced, reduced=spec.unreduced))
    concretely = isinstance(sharding.mesh, Mesh)
    if len(sharding.spec) != x.ndim or (_ferrax.is_eager() and not concretely):
        return x
    if _ferrax.is_tracer(x) or not _ferrax.is_eager():
        return _ferrax.sharding_constraint(x, place(sharding))
    have = x.sharding
    if isinstance(have, NamedSharding) and have.spec == sharding.spec and have.is_equivalent_to(sharding, x.ndim):
        return x
    return _ferrax.device_put_leaf(x, place(sharding), True)


#: What divides an axis that `vmap` maps, by number; nothing has the number 0.
_axes: list[Any] = [None]


def of_axis(entry: Any) -> int:
    """The number of what divides an axis.

    Args:
      entry: a name of a mesh axis, a tuple of such, or `None`.
    """
    with _lock:
        if entry not in _axes:
            _axes.append(entry)
        return _axes.index(entry)


def axis_entry(number: int) -> Any:
    """What divides an axis, as a spec says it, by its number."""
    return _axes[number]


def of_mapped(mapped: Sequence[tuple[int, int]], given: int) -> int:
    """The number of what divides the axes that `vmap` maps.

    Args:
      mapped: for each of them where it is, and the number of the type that has it.
      given: the number of what the user says divides them.

    Raises:
      ValueError: they are not divided alike, or are divided and the user says by what.
    """
    specs = [_shardings[number].spec[at] for at, number in mapped if number]
    for spec in specs[1:]:
        if spec != specs[0]:
            raise ValueError(
                "Mapped away dimension of inputs passed to vmap should be sharded the same. Got inconsistent axis "
                f"specs: {specs[0]} vs {spec}"
            )
    found = specs[0] if specs else None
    if found is not None and given and entry_names(_axes[given]) != entry_names(found):
        raise ValueError(
            "Only one of spmd_axis_name or arrays sharded on `Explicit` mesh axis type is allowed. Got "
            f"spmd_axis_name={entry_names(_axes[given])} and arrays sharded on explicit_mesh_axis={entry_names(found)}"
        )
    return given or of_axis(found)
