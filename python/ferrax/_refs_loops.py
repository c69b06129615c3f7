"""References among the inputs of loops and branches: the body gets references of its own in their places.

`scan` takes references row by row: what a step writes to its row is a row of the reference afterwards. A reference that
is carried cannot be returned, as a carry must be, so that loops which carry one end in an error that says so.
Read next: `_refs_calls.py`, for references that bodies close over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ferrax import _ferrax, tree_util
from ferrax._refs import Ref, bound, hidden, lent, read, write
from ferrax._refs_calls import argument_names, check_once, check_result, fill, take, with_values

__all__ = ["among", "jvp_of_references", "scan_of_references", "with_own", "with_own_carry"]


def among(tree: Any) -> bool:
    """Whether leaves of a tree are references."""
    return any(map(_ferrax.is_reference, tree_util.tree_leaves(tree)))


def scan_of_references(loop: Callable[..., Any], f: Callable[..., Any], init: Any, xs: Any) -> Any:
    """A scan whose carry or rows are references; `loop` is the scan of a body from a first carry over rows."""
    places, carried = take(init)
    rows, given = take(xs, apart=False)
    whole = [*carried, *(getattr(x, "ref", x) for x in given)]
    check_once(f, "scan", (init, xs), {}, whole, ())
    names = argument_names(f, (init, xs), {})
    for ref in given:
        if not ref.shape:
            raise ValueError(f"scan got value with no leading axis to scan over: {ref!r}.")

    def step(carry: Any, x: Any) -> Any:
        values, own_rows = x
        own, first = lent(values), [lent([read(ref)])[0] for ref in carried]
        with bound([*first, *own], [*map(read, carried), *values]), hidden(whole, names, f, "scan"):
            out = f(fill(carry, first), fill(own_rows, own))
            check_result(f, "scan", out, [*first, *own], names)
            new = [read(ref) for ref in own]
        if not (isinstance(out, (tuple, list)) and len(out) == 2):
            return out  # the loop says what is wrong with it
        return out[0], (out[1], new)

    _named_after(step, f)
    carry, (ys, new) = loop(step, places, ([x[...] for x in given], rows))
    for x, value in zip(given, new, strict=True):
        x.set(value)
    return carry, ys


def with_own_carry(name: str, body: Callable[..., Any], init: Any) -> tuple[Callable[..., Any], Any]:
    """The body and the first value of a loop that carries references; it raises, since no body can return them."""
    places, carried = take(init)
    check_once(body, name, (init,), {}, carried, ())
    names = argument_names(body, (init,), {})

    def step(carry: Any) -> Any:
        values = [read(ref) for ref in carried]
        own = lent(values)
        with bound(own, values), hidden(carried, names, body, name):
            out = body(fill(carry, own))
            check_result(body, name, out, own, names)
        return out

    _named_after(step, body)
    return step, places


def _named_after(step: Any, body: Any) -> None:
    step.__name__ = getattr(body, "__name__", "body")
    if hasattr(body, "user_body"):  # of fori_loop, whose carry is (index, the user's)
        step.user_body = body.user_body
        step.user_carry = body.user_carry


def with_own(name: str, fun: Callable[..., Any], operands: Any, places: Any, refs: Sequence[Ref]) -> Callable[..., Any]:
    """A branch that gets references of its own for those among its operands, and writes what they hold at its end."""
    check_once(fun, name, operands, {}, list(refs), ())
    names = argument_names(fun, operands, {})

    def branch(*args: Any) -> Any:
        values = [read(ref) for ref in refs]
        own = lent(values)
        with bound(own, values):
            with hidden(refs, names, fun, name):
                out = fun(*fill(args, own))
                check_result(fun, name, out, own, names)
            new = [read(ref) for ref in own]
        for ref, before, after in zip(refs, values, new, strict=True):
            if after is not before:
                write(ref, after)
        return out

    branch.__name__ = getattr(fun, "__name__", "branch")
    return branch


def jvp_of_references(fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool) -> tuple[Any, ...]:
    """`jvp` of a function that takes references: those among the tangents hold the tangents of theirs."""
    places, given = take(tuple(primals))
    directions, moved = take(tuple(tangents))
    if len(given) != len(moved):
        raise TypeError(
            "primal and tangent arguments to jax.jvp do not match: each reference among the primals needs one among "
            f"the tangents, got {len(given)} and {len(moved)}"
        )
    check_once(fun, "jvp", primals, {}, given, ())

    (out, values), (slope, slopes), aux = _ferrax.jvp(
        with_values(fun, "jvp", has_aux),
        ([read(ref) for ref in given], places),
        ([read(ref) for ref in moved], directions),
        True,
    )
    for ref, value in zip([*given, *moved], [*values, *slopes], strict=True):
        write(ref, value)
    return (out, slope, aux) if has_aux else (out, slope)
