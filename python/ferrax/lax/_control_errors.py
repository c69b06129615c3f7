"""The errors of loops and branches whose types do not fit: which function, which part of its result, what to change."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ferrax import _ferrax
from ferrax._core import ShapedArray
from ferrax._texts import differences, first_lines, short


def type_text(aval: Any) -> str:
    """``float32[3]`` for an aval or an array."""
    return ShapedArray(aval.shape, aval.dtype).str_short()


def function_text(fun: Callable[..., Any]) -> str:
    """Name and place of a user's function: ``body at program.py:3``."""
    while wrapped := getattr(fun, "__wrapped__", None):
        fun = wrapped
    code = getattr(getattr(fun, "func", fun), "__code__", None)
    name = getattr(fun, "__name__", type(fun).__name__)
    return f"{name} at {code.co_filename}:{code.co_firstlineno}" if code else name


def same_type(a: Any, b: Any) -> bool:
    """Whether two avals have one shape and dtype."""
    return a.shape == b.shape and a.dtype == b.dtype


def _argument_name(fun: Callable[..., Any], position: int, default: str) -> str:
    """The name that the function gives to a positional argument."""
    code = getattr(fun, "__code__", None)
    if code is not None and position < code.co_argcount:
        return str(code.co_varnames[position])
    try:
        names = list(inspect.signature(fun).parameters)
    except (TypeError, ValueError):
        return default
    return names[position] if position < len(names) else default


def _why(a: Any, b: Any) -> str:
    shapes, dtypes = a.shape != b.shape, a.dtype != b.dtype
    return "shapes and dtypes" if shapes and dtypes else "shapes" if shapes else "dtypes"


def carry_error(
    name: str,
    fun: Callable[..., Any],
    position: int,
    tree: Any,
    out_tree: Any,
    given: Sequence[Any],
    got: Sequence[Any],
) -> TypeError | None:
    """The error of a carry that comes back with another structure or other types, if it does.

    Args:
      name: the loop, ``scan`` or ``while_loop``.
      fun: the user's body function.
      position: which argument of `fun` is the carry.
      tree: structure of the carry that goes in.
      out_tree: structure of the carry that comes back.
      given: avals that go in.
      got: avals that come back.
    """
    user_body = getattr(fun, "user_body", None)
    if user_body is not None:
        # The body of a fori_loop: the last part of the carry is the user's.
        tree, out_tree = (t.children()[-1] for t in (tree, out_tree))
        given, got = given[len(given) - tree.num_leaves :], got[len(got) - out_tree.num_leaves :]
        name, fun, position = "fori_loop", user_body, 1
    carry = _argument_name(fun, position, "carry")
    head = f"{name} body function carry input and carry output must have equal types, but they differ:\n"
    where = f"\n\nThe body function is {function_text(fun)}. "
    if tree != out_tree:
        return TypeError(
            f"{head}\nThe input carry {carry} has the pytree structure {short(tree)} but the output carry has "
            f"{short(out_tree)}:{differences(tree, out_tree, 'the input carry', 'the output carry', carry)}"
            f"{where}Revise it so that the carry output has the same pytree structure as the carry input."
        )
    differ = [i for i, (a, b) in enumerate(zip(given, got, strict=True)) if not same_type(a, b)]
    if not differ:
        return None

    def line(i: int) -> str:
        return (
            f"the input carry {carry}{_ferrax.tree_leaf_path(tree, i)} has type {type_text(given[i])} but the "
            f"corresponding output carry component has type {type_text(got[i])}, so the {_why(given[i], got[i])} do "
            "not match"
        )

    return TypeError(
        f"{head}{first_lines(differ, line)}{where}Revise it so that all output types match the corresponding input "
        "types."
    )


def branches_error(
    name: str, labels: Sequence[str], branches: Sequence[Callable[..., Any]], programs: Sequence[Any]
) -> TypeError | None:
    """The error of branches whose results differ in structure or types, if they do.

    Args:
      name: ``cond`` or ``switch``.
      labels: what the branches are called, ``true_fun`` say.
      branches: the user's functions.
      programs: what they were traced to.
    """
    first = programs[0]
    for label, branch, other in zip(labels[1:], branches[1:], programs[1:], strict=True):
        where = (
            f"\n  {labels[0]} is {function_text(branches[0])}\n  {label} is "
            f"{function_text(branch)}\nRevise {labels[0]} and/or {label} so that "
        )
        if other.out_tree != first.out_tree:
            sides = f"the output of {labels[0]}", f"the output of {label}"
            return TypeError(
                f"{name} branch outputs must have the same pytree structure, but {labels[0]} gives "
                f"{short(first.out_tree)} and {label} gives {short(other.out_tree)}:"
                f"{differences(first.out_tree, other.out_tree, *sides, 'output')}{where}they return the same structure."
            )
        given, got, tree = first.out_avals, other.out_avals, first.out_tree
        differ = [i for i, (a, b) in enumerate(zip(given, got, strict=True)) if not same_type(a, b)]
        if differ:
            lines = first_lines(differ, functools.partial(_output_line, tree, given, got, labels[0], label))
            return TypeError(
                f"{name} branches must have equal output types but they differ:{lines}{where}all output types match."
            )
    return None


def _output_line(tree: Any, given: Sequence[Any], got: Sequence[Any], first: str, label: str, i: int) -> str:
    return (
        f"the output{_ferrax.tree_leaf_path(tree, i)} of {first} has type {type_text(given[i])} but the corresponding "
        f"output of {label} has type {type_text(got[i])}, so the {_why(given[i], got[i])} do not match"
    )
