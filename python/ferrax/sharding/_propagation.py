"""Which shardings the results of a program get: rules for each primitive, applied to a program from its operands on.

On the embedded CPU a sharding moves nothing, so the rules need not be XLA's: they keep an axis of a mesh with the axis
of the array that it divides for as long as that axis is there whole, and leave it out otherwise. `sharding_constraint`
says what it says. Programs that are called are gone through.

Read next: `_rules.py` for the primitives' rules, `_placement.py`, which numbers shardings;
`crates/ferrax/src/sharded.rs`, which asks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from ferrax import _ferrax
from ferrax._composites import Composite
from ferrax._ferrax import Device, Literal, Place, SingleDeviceSharding, devices
from ferrax.config import config
from ferrax.sharding import _explicit
from ferrax.sharding._context import get_abstract_mesh
from ferrax.sharding._due import due
from ferrax.sharding._entries import Spec, like_operands
from ferrax.sharding._mesh import AbstractMesh, AxisType, Mesh
from ferrax.sharding._named import DuplicateSpecError, InMemory, NamedSharding, OpenSharding
from ferrax.sharding._placement import concrete, place
from ferrax.sharding._rules import RULES
from ferrax.sharding._spec import UNCONSTRAINED, PartitionSpec, entry_names

__all__ = ["Walk", "batched", "places", "with_rule"]

_CALLS = ("jit", "closed_call", "custom_jvp_call", "custom_vjp_call", "checkpoint", "remat", "custom_vjp_call_jaxpr")


def places(program: Any, operands: Sequence[Any], alone: bool = False) -> tuple[list[Any], bool]:
    """The place of each result of a program, and whether it is the same wherever that is asked.

    Args:
      program: the program.
      operands: the sharding or device of each operand; `None` for those that follow.
      alone: whether it is one operation that runs by itself, of which no trace has asked how results are divided.

    Returns:
      For each result a place, or `None` where it is replicated over the operands' devices; false where another mesh in
      use or another caller may get another answer, or an error.

    Raises:
      ValueError: shardings are over different devices.
      ShardingTypeError: explicit axes are in use, and an operation has to be told how its result is divided.
    """
    walk = Walk(alone)
    specs = []
    for i, (s, aval) in enumerate(zip(operands, program.in_avals, strict=True)):
        specs.append(walk.known(s, len(aval.shape)))
        if isinstance(s, (Device, NamedSharding)) and walk.committed is None:
            names = program.argument_names()
            function = program.jaxpr.function_name.split(" at ")[0]
            of = f" of {function}" if function else ""
            name = names[i] if i < len(names) else f"number {i}"
            walk.committed = f"argument {name}{of} with shape {aval.str_short()}"
    found = walk.run(program, specs)
    if alone and any(isinstance(s, NamedSharding) and (s.spec.unreduced or s.spec.reduced) for s in operands):
        walk.due, walk.everywhere = due(program.eqns[0], _operand_specs(program, operands)), False
    results = zip(found, program.out_avals, _constraints(program), strict=True)
    placed = [walk.place(s, aval, said) for s, aval, said in results]
    return _handed_on(program, operands, placed, walk.mesh), walk.everywhere


def _handed_on(program: Any, operands: Sequence[Any], placed: list[Any], mesh: Any) -> list[Any]:
    """The places of results, of which those that are operands over a mesh with axes of other types stay as they are."""
    others = [isinstance(s, NamedSharding) and s.mesh.axis_types != mesh.axis_types for s in operands]
    if not any(others):
        return placed
    program = getattr(program, "jaxpr", program)
    given = {v: s for v, s, other in zip(program.invars, operands, others, strict=True) if other}
    outs = (None if isinstance(v, Literal) else given.get(v) for v in program.outvars)
    return [p if s is None else place(s) for p, s in zip(placed, outs, strict=True)]


def _constraints(program: Any) -> list[Any]:
    """The sharding that each result is put to by the operation that makes it; `None` of other results."""
    program = getattr(program, "jaxpr", program)
    said = {e.outvars[0]: e.params["sharding"] for e in program.eqns if e.primitive.name == "sharding_constraint"}
    return [None if isinstance(v, Literal) else said.get(v) for v in program.outvars]


def _operand_specs(program: Any, operands: Sequence[Any]) -> list[PartitionSpec | None]:
    """The spec of each operand of the only operation of a program."""
    given = dict(zip(program.jaxpr.invars, operands, strict=True))
    found = (None if isinstance(v, Literal) else given.get(v) for v in program.eqns[0].invars)
    return [s.spec if isinstance(s, NamedSharding) else None for s in found]


def shardings(program: Any, operands: Sequence[Any]) -> list[Any]:
    """The sharding of each result of a program, from those of its operands; `None` for operands that follow."""
    return [_object(p) for p in places(program, [_on_one(s) for s in operands])[0]]


def _on_one(sharding: Any) -> Any:
    """The device of a sharding on one; other shardings as they are."""
    if isinstance(sharding, SingleDeviceSharding) and sharding.memory_kind == "device":
        (device,) = sharding.device_set
        return device
    return sharding


#: Functions that want to know shardings, by number.
_inspectors: list[Callable[[Any], None]] = []
#: What they have been told: a program is gone through when it is compiled, when it runs, and when it is asked.
_told: set[tuple[int, Any]] = set()
#: The start of the names of values whose shardings are wanted; `crates/ferrax/src/sharded.rs` looks for it.
_INSPECTED = "the sharding is asked for by "


def inspected() -> bool:
    """Whether some function wants to know the sharding of a traced value."""
    return bool(_inspectors)


def inspect(x: Any, callback: Callable[[Any], None]) -> None:
    """Hands the sharding of a traced value to a function, when the program is compiled for operands of some shardings.

    Args:
      x: the value.
      callback: function of the sharding.
    """
    from ferrax.ad_checkpoint import checkpoint_name

    _inspectors.append(callback)
    checkpoint_name(x, f"{_INSPECTED}{len(_inspectors) - 1}")


def batched(sharding: Any, axis: int, spread: int = 0) -> Any:
    """The place of what has one more axis than what has a sharding.

    Args:
      sharding: the sharding.
      axis: where the axis is.
      spread: the number of what divides the axis; 0 for nothing.
    """
    if not isinstance(sharding, NamedSharding):
        return place(sharding)
    entries = list(sharding.spec)
    # outside of programs there are no rules to close it
    left_open = not (_ferrax.is_eager() or isinstance(sharding, OpenSharding))
    left_open = left_open and AxisType.Auto in sharding.mesh.axis_types
    more: Any = UNCONSTRAINED if left_open else None
    if spread:
        from ferrax.sharding._typed import axis_entry

        more = axis_entry(spread)
        names = entry_names(more)
        if any(n in names for entry in entries for n in entry_names(entry)):
            if not isinstance(sharding, OpenSharding):
                raise ValueError(
                    f"vmap spmd_axis_name {names} cannot appear in with_sharding_constraint spec, but got spec "
                    f"{sharding.spec}"
                )
            if sharding.where and not config.read("jax_disable_vmap_shmap_error"):
                raise ValueError(f"vmap spmd_axis_name cannot appear in {sharding.where}")
            return place(sharding)
        entries += [None] * (axis - len(entries))
    if axis <= len(entries):
        entries.insert(axis, more)
    return place(sharding.update(spec=sharding.spec.update(partitions=entries)))


#: (mesh, what is known of operands, their types, the results' types) → what is known of the results, or None.
Own = Callable[[Any, Sequence[Any], Sequence[Any], Sequence[Any]], Any]
#: Rules of functions that say themselves how they are divided, by number, and whether they hold under `vmap`.
_own: list[tuple[Own, bool]] = []
_OWN = "custom_partitioning_"


def _number_of_rule(eqn: Any) -> int | None:
    """The number of the rule of a call; `None` where it has none."""
    found = re.fullmatch(rf"((?:vmap\()*){_OWN}(\d+)\)*", str(eqn.params["name"]))
    return int(found[2]) if found and (not found[1] or _own[int(found[2])][1]) else None


def with_rule(fun: Callable[..., Any], rule: Own, mapped: bool = False) -> Callable[..., Any]:
    """A jitted function of arrays that has a rule of its own (`ferrax.experimental.custom_partitioning`).

    Args:
      fun: the function.
      rule: its rule.
      mapped: whether the rule holds of the mapped function, too, some of whose operands have more leading axes.
    """
    from ferrax import jit

    _own.append((rule, mapped))
    fun.__name__ = fun.__qualname__ = f"{_OWN}{len(_own) - 1}"
    inner = jit(fun)
    # the rule is that of an equation, which a call outside of programs is not
    outer = jit(inner)

    def call(*args: Any) -> Any:
        return outer(*args) if _ferrax.is_eager() else inner(*args)

    return call


def named(mesh: Any, spec: Spec) -> NamedSharding:
    """The sharding of a spec."""
    return NamedSharding(mesh, PartitionSpec(*(names or None for names in spec)))


def spec_of(sharding: Any, rank: int) -> Spec | None:
    """The spec of a sharding; None of one that names no axes."""
    return _of(sharding.spec, rank) if isinstance(sharding, NamedSharding) else None


class _Divided(tuple[Any, ...]):
    """What divides each axis of a value, with the kind of memory that the value is in."""

    memory: str | None


def _divided(entries: Spec, memory: str | None) -> Spec:
    found = _Divided(entries)
    found.memory = memory
    return found


class Walk:
    """One program, on one mesh: the first that is met."""

    def __init__(self, alone: bool) -> None:
        #: whether it is one operation that runs by itself: it raises where it has to be told how its result is divided
        self.alone = alone
        #: whether what is found holds in every context
        self.everywhere = True
        self.mesh: Any = None
        #: the first operand's sharding, and its rank: a result that is spread in the same way has its spec
        self.first: tuple[Any, int] | None = None
        #: mesh axes over which results are unreduced, and reduced
        self.due: Any = (frozenset(), frozenset())
        self.memory: str | None = None
        self.device: Device | None = None
        #: the first operand that is committed to devices
        self.committed: str | None = None

    def known(self, sharding: Any, rank: int) -> Any:
        """The spec of an operand; of other shardings than named ones, the sharding itself."""
        if sharding is None:
            return None
        if isinstance(sharding, Device):
            self.device = sharding
            return None
        if not isinstance(sharding, NamedSharding):
            return sharding
        if self.mesh is None:
            self.mesh, self.memory = sharding.mesh, sharding.memory_kind
            self.first = (sharding, rank)
        if sharding.mesh is not self.mesh and sharding.mesh.shape_tuple != self.mesh.shape_tuple:
            if tuple(sharding.mesh.devices.flat) != tuple(self.mesh.devices.flat):
                raise ValueError(
                    f"Received incompatible devices for jitted computation: a value is on {sharding.mesh}, another on "
                    f"{self.mesh}"
                )
            return sharding
        return _divided(_of(sharding.spec, rank), sharding.memory_kind)

    def place(self, found: Any, aval: Any, said: Any = None) -> Any:
        """The place of a result, in the words of the sharding that it was put to, or of the first that was met."""
        if found is None:
            if self.mesh is None:
                return self.device
            entries = [None] * len(aval.shape) if self.mesh.are_all_axes_explicit else []
            return place(NamedSharding(self.mesh, PartitionSpec(*entries), memory_kind=self.memory))
        if not isinstance(found, tuple):
            return place(found)
        assert self.mesh is not None
        mesh = self.mesh
        if (
            isinstance(said, NamedSharding)
            and isinstance(said.mesh, Mesh)
            and said.mesh.shape_tuple == mesh.shape_tuple
        ):
            mesh = said.mesh  # its axes may be of other types
        sizes = mesh.shape
        entries = []
        for size, names in zip(aval.shape, found, strict=True):
            entries.append(names if names and size % math.prod(sizes[n] for n in names) == 0 else None)
        while entries and entries[-1] is None and not mesh.are_all_axes_explicit:
            entries.pop()
        memory = getattr(found, "memory", self.memory)
        whole = not isinstance(said, OpenSharding) and UNCONSTRAINED not in getattr(said, "spec", ())
        named = isinstance(said, NamedSharding) and whole
        first = (said, len(aval.shape)) if named else self.first
        if first is not None and first[1] == len(aval.shape) and isinstance(first[0].mesh, Mesh):
            same = tuple(entry_names(e) for e in first[0].spec)
            if same == tuple(() if e is None else tuple(e) for e in (*entries, *(None,) * (len(same) - len(entries)))):
                entries += [None] * (len(same) - len(entries))
        unreduced, reduced = self.due
        if aval._spread:
            from ferrax.sharding._typed import sharding_of

            spec = sharding_of(aval._spread).spec
            unreduced, reduced = spec.unreduced, spec.reduced
        spec = PartitionSpec(*entries, unreduced=unreduced, reduced=reduced)
        return place(NamedSharding(mesh, spec, memory_kind=memory))

    def run(self, program: Any, operands: Sequence[Any]) -> list[Any]:
        """What is known of the results, from what is known of the operands."""
        env: dict[Any, Any] = {}
        program = getattr(program, "jaxpr", program)
        for v, found in zip(program.invars, operands, strict=True):
            env[v] = found
        for eqn in program.eqns:
            known = [None if isinstance(v, Literal) else env.get(v) for v in eqn.invars]
            outs = self.equation(eqn, known)
            memory = next((s.memory for s in known if isinstance(s, _Divided)), self.memory)
            for v, found in zip(eqn.outvars, outs, strict=True):
                own = found.memory if isinstance(found, _Divided) else memory
                if getattr(v.aval, "_spread", 0):
                    found = self.typed(found, v.aval)
                plain = isinstance(found, tuple) and not isinstance(found, _Divided)
                env[v] = _divided(found, own) if plain else found
        return [None if isinstance(v, Literal) else env.get(v) for v in program.outvars]

    def check_devices(self, sharding: Any) -> None:
        """Raises where an argument is committed to another device than those that a program puts a value on."""
        if not isinstance(sharding, NamedSharding) or not isinstance(sharding.mesh, Mesh):
            return
        if self.device is not None:
            have = [self.device]
        elif self.first is not None and isinstance(self.first[0].mesh, Mesh):
            have = list(self.first[0].mesh.devices.flat)
        else:
            return
        held, ids = [d.id for d in have], [d.id for d in sharding.mesh.devices.flat]
        if ids != held:
            platform = have[0].platform.upper()
            raise ValueError(
                "Received incompatible devices for jitted computation. Got "
                f"{self.committed or 'an argument'} and with device ids {held} on platform {platform} and "
                f"sharding_constraint inside jit with device ids {ids} on platform {platform}"
            )

    def typed(self, found: Any, aval: Any) -> Any:
        """What is known of a result whose type says how explicit axes divide it; rules are asked for the other axes."""
        from ferrax.sharding._typed import entries_of, sharding_of

        said, mesh = entries_of(aval._spread), sharding_of(aval._spread).mesh
        if self.mesh is None:
            self.mesh = concrete(NamedSharding(mesh, PartitionSpec())).mesh
            self.mesh = self.mesh if isinstance(self.mesh, Mesh) else None
        if self.mesh is None or said is None or self.mesh.shape_tuple != mesh.shape_tuple:
            return found
        if mesh.are_all_axes_explicit or not isinstance(found, tuple):
            return said
        kinds = mesh._name_to_type
        others = [tuple(n for n in names if kinds[n] is not AxisType.Explicit) for names in found]
        return tuple((*a, *b) for a, b in zip(said, others, strict=True))

    def equation(self, eqn: Any, known: list[Any]) -> list[Any]:
        """What is known of an equation's results."""
        name = eqn.primitive.name
        if name == "sharding_constraint":
            return [self.constraint(eqn.params["sharding"], known[0], len(eqn.outvars[0].aval.shape))]
        if name == "name" and str(eqn.params["name"]).startswith(_INSPECTED):
            found = _object(self.place(known[0], eqn.outvars[0].aval))
            told = (int(eqn.params["name"].removeprefix(_INSPECTED)), found)
            # the sharding of a type is over an abstract mesh: the program runs later
            if not isinstance(getattr(found, "mesh", None), AbstractMesh) and told not in _told:
                _told.add(told)
                _inspectors[told[0]](found)
            return known
        if all(s is None for s in known):
            return self.inside(eqn, known)
        if name == "jit" and (number := _number_of_rule(eqn)) is not None:
            return self.own(_own[number][0], eqn, known)
        if any(s is not None and not isinstance(s, tuple) for s in known):
            # a sharding of another kind is for values of its shape
            pairs = reversed(list(zip(eqn.invars, known, strict=True)))  # the first one counts
            shapes = {tuple(v.aval.shape): s for v, s in pairs if s is not None}
            return [shapes.get(tuple(v.aval.shape)) for v in eqn.outvars]
        outs = eqn.outvars
        if self.mesh is not None and (self.mesh.are_all_axes_explicit or isinstance(self.mesh, AbstractMesh)):
            found = self.explicit(eqn, known)
            if found is not None:
                return found
        rule = RULES.get("indexing" if name == "slice" and self.alone else name)
        if rule is not None:
            found = rule(eqn, known)
            return found if isinstance(found, list) else [found] * len(outs)
        if name in _CALLS or _programs(eqn):
            return self.inside(eqn, known)
        return [like_operands(eqn, known, v.aval.shape) for v in outs]

    def constraint(self, sharding: Any, have: Any, rank: int) -> Any:
        """What is known of a value that a program puts somewhere."""
        if isinstance(sharding, InMemory):
            return self.in_memory(sharding.memory_kind, have, rank)
        self.check_devices(sharding)
        if not isinstance(sharding, NamedSharding):
            return self.known(sharding, rank)
        if isinstance(sharding.mesh, AbstractMesh):
            if self.mesh is None or not isinstance(self.mesh, Mesh) or self.mesh.size != sharding.mesh.size:
                return have
            mesh = self.mesh
            if mesh.shape_tuple != sharding.mesh.shape_tuple:
                mesh = Mesh(mesh.devices.reshape(sharding.mesh.axis_sizes), sharding.mesh.axis_names)
            sharding = sharding.update(mesh=mesh)
        return self.known(self.closed(sharding, have if isinstance(have, tuple) else ((),) * rank), rank)

    def in_memory(self, kind: str, have: Any, rank: int) -> Any:
        """What is known of a value that stays where it is, in memory of a kind."""
        if have is not None and not isinstance(have, tuple):
            return have.with_memory_kind(kind)
        if self.mesh is not None:
            return _divided(have or ((),) * rank, kind)
        (first, *_) = devices()
        return SingleDeviceSharding(self.device or first, memory_kind=kind)

    def closed(self, sharding: NamedSharding, have: Spec) -> NamedSharding:
        """A sharding that leaves nothing open, of a value of which it is known what divides it."""
        free = sharding.free if isinstance(sharding, OpenSharding) else frozenset()
        said = {n for entry in sharding.spec if entry is not UNCONSTRAINED for n in entry_names(entry)}
        entries: list[Any] = []
        for at, names in enumerate(have):
            entry = sharding.spec[at] if at < len(sharding.spec) else None
            own = () if entry is UNCONSTRAINED else entry_names(entry)
            more = tuple(n for n in names if n not in said and (entry is UNCONSTRAINED or n in free))
            entries.append((*own, *more) or None)
        whole = len(sharding.spec) if free or UNCONSTRAINED not in sharding.spec else 0
        while entries and entries[-1] is None and len(entries) > whole:
            entries.pop()
        spec = sharding.spec.update(partitions=tuple(e[0] if e and len(e) == 1 else e for e in entries))
        return NamedSharding(sharding.mesh, spec, memory_kind=sharding.memory_kind)

    def explicit(self, eqn: Any, known: list[Any]) -> list[Any] | None:
        """What the rules for explicit axes say of an equation's results; `None` where those for other axes say it."""
        if not eqn.outvars:
            return []
        name = eqn.primitive.name
        rule = _explicit.RULES.get(name)
        if rule is None and (name in RULES or name in _CALLS or _programs(eqn)):
            return None
        try:
            found = rule(self.mesh, eqn, known) if rule else _explicit.elementwise(self.mesh, eqn, known)
        except (_explicit.ShardingTypeError, DuplicateSpecError):
            # a function that was told, or that differentiation makes, need not tell
            self.everywhere = self.everywhere and bool(eqn._made)
            seen = get_abstract_mesh()
            if self.alone and not eqn._made and (seen.empty or seen == self.mesh.abstract_mesh):
                raise
            return None
        return found if isinstance(found, list) else [found] * len(eqn.outvars)

    def own(self, rule: Own, eqn: Any, known: list[Any]) -> list[Any]:
        """What a function's own rule says; of what transformations made of the function, its program."""
        operands, results = ([v.aval for v in vs] for vs in (eqn.invars, eqn.outvars))
        specs = [s if isinstance(s, tuple) else None for s in known]
        found = rule(self.mesh, specs, operands, results) if self.mesh is not None else None
        return self.inside(eqn, known) if found is None else found

    def inside(self, eqn: Any, known: list[Any]) -> list[Any]:
        """What the programs of a call, a loop or branches say of the results."""
        if eqn.primitive.name == "cond":
            return self.cond(eqn, known[1:])
        if eqn.primitive.name == "while":
            return self.loop(eqn, known)
        programs = _programs(eqn)
        if len(programs) == 1 and eqn.primitive.name != "scan":
            (program,) = programs
            inner = getattr(program, "jaxpr", program)
            if len(inner.invars) == len(known) and len(inner.outvars) == len(eqn.outvars):
                return self.run(program, known)
        if eqn.primitive.name == "scan":
            return self.scan(eqn, known)
        return [None] * len(eqn.outvars)

    def cond(self, eqn: Any, known: list[Any]) -> list[Any]:
        """What all branches say of a result."""
        first, *others = (self.run(branch, known) for branch in eqn.params["branches"])
        return [found if all(o[i] == found for o in others) else None for i, found in enumerate(first)]

    def loop(self, eqn: Any, known: list[Any]) -> list[Any]:
        """A carry keeps what it begins with, where a step gives that again."""
        conds, consts = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
        begun = known[conds + consts :]
        after = self.run(eqn.params["body_jaxpr"], known[conds:])
        return [a if b is None or a == b else None for a, b in zip(after, begun, strict=True)]

    def scan(self, eqn: Any, known: list[Any]) -> list[Any]:
        """A carry keeps what it begins with; stacked results have an undivided axis in front."""
        params, (program,) = eqn.params, _programs(eqn)
        first, carried = params["num_consts"], params["num_carry"]
        carry = known[first : first + carried]
        rows = [s[1:] if isinstance(s, tuple) else None for s in known[first + carried :]]
        outs = self.run(program, [*known[:first], *carry, *rows])
        if any(begun is None and after is not None for begun, after in zip(carry, outs, strict=False)):
            # what nothing is known of to begin with is where each step puts it
            carry = [after if begun is None else begun for begun, after in zip(carry, outs, strict=False)]
            outs = self.run(program, [*known[:first], *carry, *rows])
        stacked = [_divided(((), *s), s.memory) if isinstance(s, _Divided) else None for s in outs[carried:]]
        return [*carry, *stacked]


def _object(found: Any) -> Any:
    """The sharding of a place."""
    if isinstance(found, Place):
        return _ferrax.sharding_of(found)
    (first, *_) = devices()
    return SingleDeviceSharding(found if isinstance(found, Device) else first)


def _programs(eqn: Any) -> list[Any]:
    if isinstance(eqn.primitive, Composite):
        return [eqn.primitive.program([v.aval for v in eqn.invars], eqn.params)]
    from ferrax.extend.core import jaxprs_in_params

    return list(jaxprs_in_params(eqn.params))


def _of(spec: PartitionSpec, rank: int) -> Spec:
    entries = [entry_names(e) for e in spec]
    return (*entries, *((),) * (rank - len(entries)))
