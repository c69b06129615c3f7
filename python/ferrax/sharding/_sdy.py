"""What the text of a program says of shardings, in the dialect `sdy` of MLIR: where its arguments, its results and the
values that it constrains are.

The core writes that for values whose types have a sharding (`_typed.py`). Here a program gets such types for its text
alone. Programs that it calls are written in place where they constrain values; the bodies of loops and branches are
left as they are. Read next: `ferrax/_stages.py`, which asks for texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ferrax import _ferrax
from ferrax._ferrax import Literal
from ferrax.extend.core import ClosedJaxpr, Jaxpr, Var, new_jaxpr_eqn
from ferrax.extend.core.primitives import broadcast_in_dim_p, name_p
from ferrax.sharding._mesh import AxisType
from ferrax.sharding._named import NamedSharding
from ferrax.sharding._spec import UNCONSTRAINED, entry_names
from ferrax.sharding._typed import number_of_text, sdy, sharding_of

__all__ = ["Shown"]

_CONSTRAINT = "sharding_constraint"
#: Operations of elements of several operands, each of which is divided as the result is.
_OF_ELEMENTS = frozenset(
    [
        "add",
        "add_any",
        "and",
        "atan2",
        "complex",
        "div",
        "eq",
        "ge",
        "gt",
        "le",
        "lt",
        "max",
        "min",
        "mul",
        "ne",
        "nextafter",
        "or",
        "pow",
        "rem",
        "select_n",
        "shift_left",
        "shift_right_arithmetic",
        "shift_right_logical",
        "sub",
        "xor",
    ]
)


class Shown:
    """A program as its text shows it.

    Args:
      program: the program.
      arguments: for each argument its sharding, or None.
      results: for each result the sharding that is asked for, or None.
    """

    def __init__(self, program: Any, arguments: Sequence[Any], results: Sequence[Any]) -> None:
        self._meshes: list[Any] = []
        for s in (*arguments, *results):
            self._over(s)
        self._known: dict[Any, Any] = {}
        self._asked: dict[Any, Any] = {}
        self._equations: list[Any] = []
        #: The program, whose types say how values are sharded.
        self.program = self._rewritten(program, arguments, results)
        spreads = [sharding_of(a._spread) if a._spread else None for a in (*program.in_avals, *program.out_avals)]
        for s in spreads:
            self._over(s)
        owns = spreads[len(program.in_avals) :]
        #: For each result what is said of it; empty where that is nothing.
        self.results = [self._said(o, s, a) for o, s, a in zip(owns, results, program.out_avals, strict=True)]
        #: Whether any sharding is known.
        self.over_a_mesh = bool(self._meshes)
        #: Number of devices that the program is for.
        self.devices = max((m.size for m in self._meshes), default=1)

    def counted(self, text: str) -> str:
        """A module that says how many devices it is for."""
        counts = f"attributes {{mhlo.num_partitions = {self.devices} : i32, mhlo.num_replicas = 1 : i32}} "
        return re.sub(r"^(module @jit )(?:attributes \{[^}]*\} )?", rf"\g<1>{counts}", text)

    def _over(self, sharding: Any) -> bool:
        """Whether a sharding is over the mesh of the text, which is the first one."""
        if not isinstance(sharding, NamedSharding) or sharding.mesh.empty:
            return False
        self._meshes.append(sharding.mesh)
        return bool(sharding.mesh.shape_tuple == self._meshes[0].shape_tuple)

    def _rewritten(self, program: Any, arguments: Sequence[Any], results: Sequence[Any]) -> Any:
        jaxpr = program.jaxpr
        given = [*jaxpr.constvars, *jaxpr.invars]
        if not self._meshes and not _constrains(jaxpr):
            return program
        places = [None] * (len(given) - len(arguments)) + list(arguments)
        taken = [self._typed(v, s) for v, s in zip(given, places, strict=True)]
        self._known.update(zip(given, taken, strict=True))
        self._asked = {v: s for v, s in zip(jaxpr.outvars, results, strict=True) if not isinstance(v, Literal)}
        self._add(jaxpr.eqns)
        return ClosedJaxpr(Jaxpr([], taken, self._read(jaxpr.outvars), self._equations), [])

    def _typed(self, v: Any, sharding: Any) -> Any:
        """The variable that stands for one, with a sharding in its type."""
        own = sharding_of(v.aval._spread)
        if not self._over(sharding) or (own is not None and not _says_little(own)):
            return Var(v.aval)
        if own is not None:
            said = _text(sharding, len(v.aval.shape))
            return Var(_ferrax.with_spread(v.aval, number_of_text(own, said)))
        return Var(_ferrax.with_spread(v.aval, _number(sharding, len(v.aval.shape))))

    def _read(self, atoms: Iterable[Any]) -> list[Any]:
        return [x if isinstance(x, Literal) else self._known[x] for x in atoms]

    def _add(self, equations: Iterable[Any]) -> None:
        for eqn in equations:
            name, operands = eqn.primitive.name, self._read(eqn.invars)
            if name == _CONSTRAINT:
                self._constrained(eqn, operands)
            elif name == "jit" and _constrains(eqn.params["jaxpr"].jaxpr):
                inner = eqn.params["jaxpr"].jaxpr
                self._known.update(zip([*inner.constvars, *inner.invars], operands, strict=True))
                self._add(inner.eqns)
                self._known.update(zip(eqn.outvars, self._read(inner.outvars), strict=True))
            else:
                if name in _OF_ELEMENTS and len(operands) > 1:
                    operands = [self._like(x, eqn.outvars[0].aval) for x in operands]
                outs = [Var(v.aval) for v in eqn.outvars]
                self._equations.append(eqn.replace(invars=operands, outvars=outs))
                self._known.update(zip(eqn.outvars, outs, strict=True))

    def _like(self, x: Any, aval: Any) -> Any:
        """An operand of an operation of elements, which is divided as the result is."""
        if not aval._spread or sharding_of(x.aval._spread) == sharding_of(aval._spread):
            return x
        if isinstance(x, Literal):
            params = {"shape": aval.shape, "broadcast_dimensions": (), "sharding": None}
            whole = Var(_ferrax.with_spread(x.aval.update(shape=aval.shape), aval._spread))
            self._equations.append(new_jaxpr_eqn([x], [whole], broadcast_in_dim_p, params))
            return whole
        if x.aval.shape != aval.shape:
            return x
        like = Var(_ferrax.with_spread(x.aval, aval._spread))
        self._equations.append(new_jaxpr_eqn([x], [like], name_p, {"name": _CONSTRAINT}))
        return like

    def _constrained(self, eqn: Any, operands: list[Any]) -> None:
        """The operand of a constraint; the shardings that results are asked to have are said of the results."""
        (out,) = eqn.outvars
        sharding = eqn.params["sharding"]
        if out in self._asked and self._asked[out] == sharding:
            self._known[out] = operands[0]
            return
        self._known[out] = self._typed(out, sharding)
        self._equations.append(new_jaxpr_eqn(operands, [self._known[out]], name_p, {"name": _CONSTRAINT}))

    def _said(self, own: Any, asked: Any, aval: Any) -> str:
        """What a type says itself, or what is asked for."""
        own = None if own is not None and _says_little(own) else own
        if not self._over(own or asked):
            return ""
        return f"sdy.sharding = #sdy.sharding{_text(asked, len(aval.shape)) if own is None else sdy(own)[0]}"


def _says_little(sharding: NamedSharding) -> bool:
    """Whether a type is over a mesh that also has axes of which types say nothing."""
    return AxisType.Auto in sharding.mesh.axis_types


def _constrains(jaxpr: Any) -> bool:
    return any(
        e.primitive.name == _CONSTRAINT or (e.primitive.name == "jit" and _constrains(e.params["jaxpr"].jaxpr))
        for e in jaxpr.eqns
    )


def _number(sharding: NamedSharding, rank: int) -> int:
    """The number of a type that says a sharding, of automatic axes as well."""
    whole = sharding.update(spec=sharding.spec._normalized_spec_for_aval(rank))
    return number_of_text(whole, _text(sharding, rank))


def _text(sharding: NamedSharding, rank: int) -> str:
    """A sharding as `sdy` writes it: `?` stands for axes that are left to the compiler."""
    spec = sharding.spec._normalized_spec_for_aval(rank)
    dims = ", ".join("{?}" if e is UNCONSTRAINED else f"{{{_quoted(entry_names(e))}}}" for e in spec)
    return f"<@mesh, [{dims}]>"


def _quoted(names: Iterable[Any]) -> str:
    return ", ".join(f'"{n}"' for n in names)
