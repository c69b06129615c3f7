"""Statistics of programs: how many equations of a kind there are, also in the programs inside of equations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from ferrax.extend.core import DropVar, Literal, jaxprs_in_params
from ferrax.extend.source_info_util import summarize


def all_eqns(jaxpr: Any, revisit_inner_jaxprs: bool = True) -> Iterator[tuple[Any, Any]]:
    """The equations with the program that each is in; equations inside of equations come before these.

    Args:
      jaxpr: the program.
      revisit_inner_jaxprs: whether a program that is in several equations counts as often.

    Returns:
      An iterator over pairs.
    """
    seen: set[int] | None = None if revisit_inner_jaxprs else set()

    def walk(jaxpr: Any) -> Iterator[tuple[Any, Any]]:
        for eqn in jaxpr.eqns:
            yield jaxpr, eqn
        for eqn in jaxpr.eqns:
            for inner in jaxprs_in_params(eqn.params):
                if seen is None or id(inner) not in seen:
                    if seen is not None:
                        seen.add(id(inner))
                    yield from walk(inner)

    return walk(jaxpr)


def collect_eqns(jaxpr: Any, key: Callable[[Any], Hashable]) -> dict[Any, list[tuple[Any, Any]]]:
    """The equations by what a function says of each."""
    found: dict[Any, list[tuple[Any, Any]]] = {}
    for inner, eqn in all_eqns(jaxpr):
        found.setdefault(key(eqn), []).append((inner, eqn))
    return found


def count_eqns(jaxpr: Any, revisit_inner_jaxprs: bool = True) -> int:
    """The number of equations."""
    return sum(1 for _ in all_eqns(jaxpr, revisit_inner_jaxprs))


def histogram(jaxpr: Any, key: Callable[[Any], Any], key_fmt: Callable[[Any], Any] = lambda x: x) -> dict[Any, int]:
    """How many equations a function says each thing of."""
    return dict(Counter(key_fmt(key(eqn)) for _, eqn in all_eqns(jaxpr)))


def primitives(jaxpr: Any) -> dict[str, int]:
    """How many equations each primitive has."""
    return histogram(jaxpr, lambda eqn: eqn.primitive.name)


def primitives_by_source(jaxpr: Any) -> dict[str, int]:
    """How many equations each primitive has from each line of the user's."""
    return histogram(jaxpr, lambda eqn: (eqn.primitive.name, summarize(eqn.source_info)), " @ ".join)


def primitives_by_shape(jaxpr: Any) -> dict[str, int]:
    """How many equations each primitive has with results of each type; `*` is a result that nothing reads."""

    def shapes(eqn: Any) -> str:
        return " ".join("*" if isinstance(v, DropVar) else v.aval.str_short() for v in eqn.outvars)

    return histogram(jaxpr, lambda eqn: (eqn.primitive.name, shapes(eqn)), " :: ".join)


def source_locations(jaxpr: Any) -> dict[str, int]:
    """How many equations each line of the user's has."""
    return histogram(jaxpr, lambda eqn: summarize(eqn.source_info))


def var_defs_and_refs(jaxpr: Any) -> Any:
    """Where variables are made and read.

    Args:
      jaxpr: the program.

    Returns:
      `(jaxpr, [(variable, equation that makes it, equations that read it)])`, None standing for the program itself; a
      list of it and of the same for the programs inside, where there are some.
    """
    made: dict[Any, Any] = dict.fromkeys([*jaxpr.constvars, *jaxpr.invars])
    for eqn in jaxpr.eqns:
        made.update((v, eqn) for v in eqn.outvars if not isinstance(v, DropVar))
    read: dict[Any, list[Any]] = {v: [] for v in made}
    for eqn in (*jaxpr.eqns, None):
        for v in jaxpr.outvars if eqn is None else eqn.invars:
            if not isinstance(v, Literal):
                read[v].append(eqn)
    own = jaxpr, [(v, made[v], read[v]) for v in made]
    inside = [var_defs_and_refs(inner) for eqn in jaxpr.eqns for inner in jaxprs_in_params(eqn.params)]
    return [own, *inside] if inside else own


def eqns_using_var_with_invar_index(jaxpr: Any, invar: Any) -> Iterator[tuple[Any, int]]:
    """The equations that read a variable, with its first position among their operands."""
    for eqn in jaxpr.eqns:
        if invar in eqn.invars:
            yield eqn, eqn.invars.index(invar)


def eqns_using_var(jaxpr: Any, invar: Any) -> Iterator[Any]:
    """The equations that read a variable, in the programs inside of equations where these have one."""
    for eqn, index in eqns_using_var_with_invar_index(jaxpr, invar):
        inside = list(jaxprs_in_params(eqn.params))
        if any(index >= len(inner.invars) for inner in inside):
            raise RuntimeError(f"operand {index} of {eqn.primitive} is none of the programs inside of it")
        if not inside:
            yield eqn
        for inner in inside:
            yield from eqns_using_var(inner, inner.invars[index])
