"""The errors of loops and branches whose types do not fit: which function, which part of its result, what to change."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ferrax import _ferrax
from ferrax._core import ShapedArray
from ferrax._texts import differences, first_lines
from ferrax._tree_errors import Difference, structure_differences


def type_text(aval: Any) -> str:
    """``float32[3]`` for an aval or an array."""
    spread = getattr(aval, "_spread", 0)
    text: str = _ferrax.with_spread(ShapedArray(aval.shape, aval.dtype), spread).str_short()
    varies = sorted(_varies(aval))
    return f"{text}{{V:{','.join(varies)}}}" if varies else text


def _varies(aval: Any) -> frozenset[str]:
    """The manual axes that a value varies over."""
    return getattr(aval, "vma", frozenset())


def is_own(fun: Callable[..., Any]) -> bool:
    """Whether a body is the library's: of the loops inside its functions nobody can say what is to vary."""
    while wrapped := getattr(fun, "user_body", None) or getattr(fun, "__wrapped__", None) or getattr(fun, "func", None):
        fun = wrapped
    return (getattr(fun, "__module__", None) or "").partition(".")[0] == "ferrax"


def function_text(fun: Callable[..., Any]) -> str:
    """Name and place of a user's function: ``body at program.py:3``."""
    while wrapped := getattr(fun, "__wrapped__", None):
        fun = wrapped
    code = getattr(getattr(fun, "func", fun), "__code__", None)
    name = getattr(fun, "__name__", type(fun).__name__)
    return f"{name} at {code.co_filename}:{code.co_firstlineno}" if code else name


def same_type(a: Any, b: Any) -> bool:
    """Whether two avals have one shape and dtype, vary over the same manual axes, and are divided alike."""
    return a.shape == b.shape and a.dtype == b.dtype and _varies(a) == _varies(b) and _divided_alike(a, b)


def _divided_alike(a: Any, b: Any) -> bool:
    left, right = getattr(a, "_spread", 0), getattr(b, "_spread", 0)
    return left == right or not left or not right


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
    """What does not match in two types: `the dtypes do not match, and the shapes do not match`."""
    differs = {
        "dtypes": a.dtype != b.dtype,
        "shapes": a.shape != b.shape,
        "manual axis types": _varies(a) != _varies(b),
    }
    texts = [f"the {what} do not match" for what, d in differs.items() if d] or ["the shardings do not match"]
    return ", and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def _advice(lines: Sequence[tuple[Any, Any, str]]) -> str:
    """What makes values vary as others do, for (type, the type to have, what to apply it to)."""
    missing = [(tuple(sorted(_varies(b) - _varies(a))), to) for a, b, to in lines]
    texts = [f"applying `jax.lax.pcast(..., {names}, to='varying')`{to}" for names, to in missing if names]
    if not texts:
        return ""
    shown = f" {texts[0]}." if len(texts) == 1 else ":" + first_lines(range(len(texts)), texts.__getitem__)
    return f"This might be fixed by{shown}\n\n"


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
    head = f"{name} body function carry input and carry output must have"
    revise = "Revise the function so that"
    where = f"The body function is {function_text(fun)}."
    if tree != out_tree:

        def place(d: Difference) -> str:
            return (
                f"the input carry {_part(carry, d.path)} is {d.left} but the corresponding component of the carry "
                f"output is {d.right}, {d.why}"
            )

        texts = [place(d) for d in structure_differences(tree, out_tree)]
        lines = differences(tree, out_tree, "the input carry", "the output carry", carry)
        return TypeError(
            f"{head} the same pytree structure, but they differ:\n\n{_sentences(texts)}\n\n{revise} the carry output "
            f"has the same pytree structure as the carry input.\n\n{where}{lines}"
        )

    def line(i: int) -> str:
        return (
            f"{_of_carry(carry, tree, i)} has type {type_text(given[i])} but the "
            f"corresponding output carry component has type {type_text(got[i])}, so {_why(given[i], got[i])}"
        )

    differ = [i for i, (a, b) in enumerate(zip(given, got, strict=True)) if not same_type(a, b)]
    if not differ:
        return None
    start = lambda i: f", to the initial carry value corresponding to {_of_carry(carry, tree, i)}"
    advice = _advice([(given[i], got[i], start(i)) for i in differ])
    return TypeError(
        f"{head} equal types, but they differ:\n\n{_sentences([line(i) for i in differ])}\n\n{advice}{revise} all "
        f"output types match the corresponding input types.\n\n{where}"
    )


def _of_carry(carry: str, tree: Any, i: int) -> str:
    return f"the input carry {_part(carry, _ferrax.tree_leaf_path(tree, i))}"


def _part(carry: str, path: str) -> str:
    return f"component {carry}{path}" if path else carry


def _sentences(texts: Sequence[str]) -> str:
    """One sentence, or a list of the first ones."""
    if len(texts) == 1:
        return f"{texts[0][0].upper()}{texts[0][1:]}."
    return first_lines(range(len(texts)), texts.__getitem__)[1:].replace("\n", ";\n") + "."


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
        where = f"{labels[0]} is {function_text(branches[0])}\n{label} is {function_text(branch)}\n\n"
        revise = f"\n\nRevise {labels[0]} and/or {label} so that "
        if other.out_tree != first.out_tree:
            found = structure_differences(first.out_tree, other.out_tree)
            texts = [
                f"{labels[0]} output{_at(d.path)} is {d.left} but {label} output{_at(d.path)} is {d.right}, {d.why}"
                for d in found
            ]
            sides = f"the output of {labels[0]}", f"the output of {label}"
            shown = f"{texts[0]}." if len(texts) == 1 else first_lines(range(len(texts)), texts.__getitem__)[1:]
            lines = differences(first.out_tree, other.out_tree, *sides, "output")
            return TypeError(
                f"{name} branch outputs must have the same pytree structure, but they differ:\n\n{where}{shown}{revise}"
                f"they have the same pytree structure.{lines}"
            )
        given, got, tree = first.out_avals, other.out_avals, first.out_tree
        differ = [i for i, (a, b) in enumerate(zip(given, got, strict=True)) if not same_type(a, b)]
        if differ:
            texts = [_output_line(tree, given, got, labels[0], label, i) for i in differ]
            ways: tuple[tuple[str, Any, Any], ...] = ((labels[0], given, got), (label, got, given))
            to = lambda side, i: f" to the output of {side}{_at(_ferrax.tree_leaf_path(tree, i))}"
            advice = _advice([(a[i], b[i], to(side, i)) for i in differ for side, a, b in ways])
            return TypeError(
                f"{name} branches must have equal output types but they differ.\n\n{where}{_sentences(texts)}\n\n"
                f"{advice}{revise[2:]}all output types match."
            )
    return None


def _at(path: str) -> str:
    return f" at path {path}" if path else ""


def _output_line(tree: Any, given: Sequence[Any], got: Sequence[Any], first: str, label: str, i: int) -> str:
    at = _at(_ferrax.tree_leaf_path(tree, i))
    return (
        f"the output of {first}{at} has type {type_text(given[i])} but the corresponding output of {label} has type "
        f"{type_text(got[i])}, so {_why(given[i], got[i])}"
    )


def refuse_effects(name: str, *programs: Any) -> None:
    """Raises NotImplementedError where a body or branch has effects of users' primitives that may not be in loops."""
    effects = sys.modules.get("ferrax.extend.core._effects")  # without it, nobody has defined a primitive
    if effects is not None:
        from ferrax._src.effects import control_flow_allowed_effects

        text = f"Effects not supported in `{'while' if name == 'while_loop' else name}`"
        effects.refuse_effects(NotImplementedError, text, control_flow_allowed_effects, *programs)
