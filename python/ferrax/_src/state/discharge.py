"""Functions of references as functions of their values."""

import functools
from collections.abc import Callable
from typing import Any

from ferrax import tree_util
from ferrax._ref_programs import discharged
from ferrax._src._unprovided import unprovided_names
from ferrax.ref import freeze, new_ref


def run_state(f: Callable[..., None]) -> Callable[..., Any]:
    """A function of values from one of references: what these hold when it has returned."""

    @functools.wraps(f)
    def wrapped(args: Any) -> Any:
        refs = tree_util.tree_map(new_ref, args)
        f(refs)
        return tree_util.tree_map(freeze, refs)

    return wrapped


run_state_reference = run_state


def discharge_state(closed_jaxpr: Any, *, should_discharge: Any = True, lower: bool = True) -> Any:
    """A program of arrays that does what one of references does: it takes and gives, last, the references' values."""
    return discharged(closed_jaxpr, should_discharge)


__getattr__ = unprovided_names(
    __name__,
    "run_state_p register_discharge_rule register_partial_discharge_rule",
    "references become values in the core, whose rules are not Python's",
)
