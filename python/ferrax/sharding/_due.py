"""Sums that are due over explicit axes of a mesh, in types: what operations make of `unreduced` and `reduced` axes.

A value that is unreduced over an axis is a sum whose terms the devices along the axis hold; one that is reduced is the
same on all of them, and its gradient is unreduced. Only operations that are linear in a sum may be given one.

Source: JAX's rules for unreduced and reduced axes in types. Read next: `_typed.py`, which asks.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ferrax import dtypes
from ferrax.sharding._entries import ShardingTypeError
from ferrax.sharding._manual import names_in_force
from ferrax.sharding._spec import PartitionSpec, entry_names

__all__ = ["due", "products", "require_contracted"]

Axes = frozenset[Any]
_NONE: Axes = frozenset()

#: Operations that give a sum of results for a sum of operands.
_LINEAR = frozenset(
    [
        "broadcast_in_dim",
        "concatenate",
        "convert_element_type",
        "copy",
        "copy_p",
        "expand_dims",
        "imag",
        "name",
        "neg",
        "optimization_barrier",
        "pvary",
        "real",
        "reduce_sum",
        "reshape",
        "rev",
        "select_n",
        "slice",
        "split",
        "squeeze",
        "stack",
        "transpose",
        "unstack",
    ]
)
#: Operations across manual axes, which have their names as a parameter.
_COLLECTIVE = frozenset(
    [
        "psum",
        "psum_invariant",
        "pvary",
        "preduced",
        "vary_unreduced_cast_p",
        "pmax",
        "pmin",
        "reduce_scatter",
        "all_gather",
        "all_to_all",
        "ppermute",
    ]
)
_BINARY = frozenset(["add", "sub"])


class _State(threading.local):
    """What the products that are being made sum over; `None` where nobody asks."""

    contracted: list[tuple[Any, Any]] | None = None


_state = _State()


@contextlib.contextmanager
def products() -> Iterator[list[tuple[Any, Any]]]:
    """Notes of products what divides the axes that they sum over, of both operands."""
    before = _state.contracted
    found: list[tuple[Any, Any]] = []
    _state.contracted = found
    try:
        yield found
    finally:
        _state.contracted = before


def note_product(lhs: tuple[Any, ...], rhs: tuple[Any, ...]) -> None:
    """Notes a product for `products`."""
    if _state.contracted is not None:
        _state.contracted.append((lhs, rhs))


def require_contracted(contracted: Sequence[tuple[Any, Any]], unreduced: Axes) -> None:
    """Raises unless the last product sums over axes that just these mesh axes divide, so that the sum can be due.

    Args:
      contracted: what `products` has noted.
      unreduced: the axes of the mesh.
    """
    if not contracted:
        return
    lhs, rhs = contracted[-1]
    if lhs != rhs:
        raise ShardingTypeError(
            "lhs and rhs contracting dims should be sharded identically when out_sharding provided to dot_general "
            f"mentions unreduced_axes. Got lhs_contracting_spec={lhs}, rhs_contracting_spec={rhs}"
        )
    if {n for entry in lhs if entry is not None for n in entry_names(entry)} != set(unreduced):
        raise ShardingTypeError(
            "out_sharding's unreduced axes should be equal to the contracting specs. Got unreduced "
            f"axes={unreduced} and contracting spec={lhs}"
        )


def due(eqn: Any, specs: Sequence[PartitionSpec | None]) -> tuple[Axes, Axes]:
    """The axes over which an operation's results are unreduced, and those over which they are reduced.

    Args:
      eqn: the equation.
      specs: the spec in the type of each operand, `None` where it has none.

    Raises:
      ShardingTypeError: operands are due over different axes.
      NotImplementedError: the operation is not linear in a sum that is due.
    """
    casts = eqn.primitive.name in ("preduced", "vary_unreduced_cast_p")
    if not casts and all(s is None or not (s.unreduced or s.reduced) for s in specs):
        return _NONE, _NONE
    unreduced = [_NONE if s is None else s.unreduced for s in specs]
    reduced = [_NONE if s is None else s.reduced for s in specs]
    across = _across(eqn)
    if across:
        return _after_collective(eqn, across, unreduced[0], reduced[0])
    if eqn._made:
        terms = _of_made(unreduced)
        return terms, _of_made(reduced) - terms
    return _sums(eqn, unreduced, reduced), _reductions(eqn, specs, reduced)


def _across(eqn: Any) -> Axes:
    """The manual axes that an operation works across."""
    params = eqn.params
    names = params.get("axes", params.get("axis_name", ())) if eqn.primitive.name in _COLLECTIVE else ()
    return frozenset([names] if isinstance(names, str) else names)


def _after_collective(eqn: Any, across: Axes, unreduced: Axes, reduced: Axes) -> tuple[Axes, Axes]:
    """What is left to say after a collective: a sum is due no longer, what was the same everywhere may vary."""
    if eqn.primitive.name == "preduced":
        return unreduced, reduced | across
    if eqn.primitive.name == "vary_unreduced_cast_p":
        return unreduced | across, reduced - across
    if unreduced & across and not eqn.primitive.name.startswith(("psum", "reduce_scatter")):
        raise NotImplementedError(f"unreduced rule for {eqn.primitive.name} is not implemented: sum the operand before")
    if eqn.primitive.name == "pvary":
        return unreduced, reduced  # what is told by whether it varies; what it meets may be due
    return unreduced - across, reduced - across


def _of_made(axes: Sequence[Axes]) -> Axes:
    """What results say of an operation that differentiation made: inside of maps all that operands say.

    What a user writes there has been checked, so that the others are weights; a sum's cotangents are all its terms.
    """
    every = _NONE.union(*axes)
    first = axes[0]
    return every if every <= frozenset(names_in_force()) or all(a == first for a in axes) else _NONE


def _sums(eqn: Any, axes: Sequence[Axes], reduced: Sequence[Axes]) -> Axes:
    name = eqn.primitive.name
    if not any(axes):
        return _NONE
    if name == "add_any":
        return _of_made(axes)  # where nothing has been added yet there are zeros
    if name in _BINARY:
        x, y = axes
        if x and y and x != y:
            raise ShardingTypeError(
                f"lhs and rhs to `{name}` must be unreduced along the same mesh axes. Got lhs={x}, rhs={y}"
            )
        if x != y:
            one, other = ("lhs", "rhs") if x else ("rhs", "lhs")
            raise ShardingTypeError(
                f"{one} is unreduced while {other} is not. `{name}` operation does not allow this because there will "
                f"be implicit communication. Please reduce {one} via `reshard` before calling `{name}`."
            )
        return x
    if name == "mul":
        return _product(axes, reduced)
    if name == "dot_general":
        raise ShardingTypeError(
            f"lhs or rhs passed to dot_general cannot be unreduced. Got lhs={axes[0]} and rhs={axes[1]}"
        )
    if name in _LINEAR:
        found = {a for a in axes if a}
        if len(found) > 1 or (name in ("concatenate", "stack", "select_n") and _NONE in axes[name == "select_n" :]):
            raise ShardingTypeError(
                f"All operands should be unreduced along the same mesh axes. Got unreduced specs: {list(axes)}"
            )
        return found.pop()
    raise NotImplementedError(f"unreduced rule for {name} is not implemented: reduce the operand via `reshard` before")


def _product(axes: Sequence[Axes], reduced: Sequence[Axes]) -> Axes:
    x, y = axes
    if x and y:
        raise ShardingTypeError(f"lhs and rhs to `mul` cannot be unreduced since mul is bilinear. Got lhs={x}, rhs={y}")
    if (reduced[1] if x else reduced[0]) != (x or y):
        one, other = ("RHS", "LHS") if x else ("LHS", "RHS")
        raise ShardingTypeError(
            f"{one} should be reduced along the same axes {other} is unreduced on. Got {other}={x or y} and "
            f"{one}={reduced[1] if x else reduced[0]}"
        )
    return x or y


def _reductions(eqn: Any, specs: Sequence[PartitionSpec | None], reduced: Sequence[Axes]) -> Axes:
    """The axes over which results stay reduced: those of every operand."""
    found = {r for r in reduced if r}
    if not found or eqn.primitive.name == "dot_general":
        return _NONE
    if len(found) > 1:
        raise ShardingTypeError(f"All inputs should be reduced across the same mesh axes. Got specs: {found}")
    (axes,) = found
    if axes <= frozenset(names_in_force()):
        # a reduced value that meets one that varies is made to vary, too; places and masks have no gradients
        others = [v.aval for v, own in zip(eqn.invars, reduced, strict=True) if not own and _has_gradient(v.aval)]
        for aval in others:
            if not axes & aval.vma:
                raise _replicated(aval, axes)
        return _NONE if others else axes
    for v, spec, own in zip(eqn.invars, specs, reduced, strict=True):
        if spec is None or own or not v.aval.shape:
            continue
        if axes & {n for entry in spec for n in entry_names(entry)}:
            raise ShardingTypeError(
                "Inputs cannot be sharded/varying on the same axes that another input is reduced on. Reshard the input "
                "which is reduced to be sharded on the mesh axes it is reduced on via `jax.sharding.reshard(inp, "
                f"jax.P(...))`. Got input type: {v.aval} and reduced spec: {axes}"
            )
        if not spec.unreduced:
            raise _replicated(v.aval, axes)
    return axes


def _has_gradient(aval: Any) -> bool:
    return dtypes.issubdtype(aval.dtype, np.inexact)


def _replicated(aval: Any, axes: Axes) -> ShardingTypeError:
    return ShardingTypeError(
        "Inputs cannot be replicated on the same axes that another input is reduced on. Got input type: "
        f"{aval} and reduced spec: {axes}"
    )
