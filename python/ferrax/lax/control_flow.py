"""Structured control flow: `cond`, `switch`, `scan`, `while_loop`, `fori_loop`, `map`.

Bodies are traced to programs on abstract values, whether or not a transformation is in progress; the loop itself is
one primitive of the Rust core. Under `disable_jit` Python runs them (`_unjitted.py`). Read next:
`ferrax._ferrax.bind_scan` and its kin in `crates/ferrax-ops/src/control`, and `solves.py` for solvers of the caller's.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ferrax import _ferrax, tree_util
from ferrax._core import result_type
from ferrax._high_tangents import branches_of_values, closed, has_values, opened, scan_of_values
from ferrax._high_values import classes as high_classes
from ferrax._shapes import static_size
from ferrax._texts import listed, short
from ferrax.errors import ConcretizationTypeError, TracerIntegerConversionError
from ferrax.lax import _unjitted
from ferrax.lax._control_errors import branches_error, carry_error, function_text, is_own, refuse_effects
from ferrax.lax.conversion import convert_element_type

__all__ = [
    "cond",
    "fori_loop",
    "map",
    "scan",
    "switch",
    "while_loop",
]


def _follows(aval: Any, dtype: Any) -> bool:
    """Whether a weakly typed value takes on a dtype beside which it stands: it is of no higher kind."""
    return aval.weak_type and result_type(aval, dtype) == dtype


def _strengthen(leaves: Sequence[Any], wanted: Sequence[Any], given: Sequence[Any]) -> list[Any] | None:
    """Weakly typed leaves converted to the types that a body gives back; `None` when nothing changes."""
    from ferrax.lax import convert_element_type

    changed = False
    out = []
    for leaf, want, have in zip(leaves, wanted, given, strict=True):
        if have.shape == want.shape and have.dtype != want.dtype and _follows(have, want.dtype):
            changed = True
            leaf = convert_element_type(leaf, want.dtype)
        out.append(leaf)
    return out if changed else None


def _widened(leaves: Sequence[Any], wanted: Sequence[Any], given: Sequence[Any]) -> list[Any] | None:
    """Leaves that vary over the manual axes that the body's results do; `None` when they do."""
    missing = [sorted(want.vma - have.vma) for want, have in zip(wanted, given, strict=True)]
    if not any(missing):
        return None
    return [_ferrax.pvary(x, names) if names else x for x, names in zip(leaves, missing, strict=True)]


def _giving(fun: Callable[..., Any], wanted: Sequence[Any], position: int | None) -> Callable[..., Any]:
    """A function whose results (the part at `position`) vary over the manual axes that these types say."""

    @functools.wraps(fun)
    def varying(*args: Any) -> Any:
        result = fun(*args)
        leaves, tree = tree_util.tree_flatten(result if position is None else result[position])
        given = [_ferrax.typeof(x) for x in leaves]
        part = tree.unflatten(_widened([_ferrax.asarray(x) for x in leaves], wanted, given) or leaves)
        return part if position is None else (part, *result[1:])

    return varying


def _traced_carry(name: str, fun: Callable[..., Any], carry: Any, rest: Sequence[Any], split: bool, of: Any) -> Any:
    """Traces a loop body until its carry types agree; gives the program and the carry's leaves and structure.

    `of` is the user's function where `fun` is one of ours that calls it; None otherwise.
    """
    leaves, tree = tree_util.tree_flatten(carry)
    for _ in range(5):
        traced_for = "fori_loop" if hasattr(fun, "user_body") else {"while_loop": "while_body"}.get(name, name)
        program = _ferrax.trace_to_jaxpr(fun, (tree.unflatten(leaves), *rest), None, traced_for, of)
        out_tree = program.out_tree
        if split:
            if not is_pair(out_tree):
                raise TypeError(
                    f"scan body output must be a pair, got {_types(program)}. {function_text(fun)} must return the "
                    "carry and what is stacked."
                )
            out_tree = out_tree.children()[0]
        given = program.in_avals[: len(leaves)]
        got = program.out_avals[: out_tree.num_leaves]
        if tree == out_tree:
            stronger = _strengthen(leaves, got, given)
            if stronger is not None:
                leaves = stronger
                continue
            if is_own(of or fun) and any(a.vma != b.vma for a, b in zip(given, got, strict=True)):
                # what varies over manual axes must go in so, and come back so
                leaves = _widened(leaves, got, given) or leaves
                fun, of = _giving(fun, [_ferrax.typeof(x) for x in leaves], 0 if split else None), None
                continue
        error = carry_error(name, fun, 0, tree, out_tree, given, got)
        if error is not None:
            raise error
        refuse_effects(name, program)
        return program, leaves, tree
    raise TypeError(f"{name} carry types do not settle: they change at every step")


def is_pair(tree: Any) -> bool:
    """Whether a structure is that of a tuple or list of two."""
    node = tree.node_data()
    return node is not None and issubclass(node[0], (tuple, list)) and len(tree.children()) == 2


def _types(program: Any) -> str:
    """What a traced function returned, as types."""
    types = program.out_tree.unflatten(program.out_avals)
    return short(types) if program.out_tree.num_nodes != 1 else str(types)


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """Applies a function along the leading axis of its inputs, carrying a value from step to step.

    Args:
      f: function `(carry, x) -> (carry, y)`; the carry keeps its structure, shapes and dtypes.
      init: the first carry, a pytree.
      xs: pytree of arrays that are taken row by row; `None` for none.
      length: number of steps; needed when `xs` has no arrays.
      reverse: whether rows are taken, and results stacked, from the last to the first.
      unroll: steps per loop iteration; a hint (`True`: all).
      _split_transpose: accepted for compatibility.

    Returns:
      `(carry, ys)`: the last carry, and the `y`s stacked on a new leading axis.

    Raises:
      TypeError: the carry changes its type.
      ValueError: leading axes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> total, running = lax.scan(lambda c, x: (c + x, c + x), 0, jnp.arange(1, 5))
    >>> print(total, running)
    10 [ 1  3  6 10]
    """
    return _scan("scan", f, init, xs, length, bool(reverse), unroll)


def _scan(
    asked: str,
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    of: Any = None,
) -> tuple[Any, Any]:
    """`scan`, for a loop that the user asked for by the name `asked`, with the function `of` where that is not `f`."""
    if not callable(f):
        raise TypeError("lax.scan: f argument should be a callable.")
    if high_classes and of is None and has_values((init, xs)):
        return _scan_of_values(asked, f, init, xs, length, reverse, unroll)
    rows, rows_tree = tree_util.tree_flatten(xs)
    if _any_reference(rows) or _any_reference(tree_util.tree_leaves(init)):
        from ferrax._refs_loops import scan_of_references

        again = lambda step, first, rows: _scan(asked, step, first, rows, length, reverse, unroll)
        return scan_of_references(again, f, init, xs)
    rows = [_array(x) for x in rows]
    for x in rows:
        if np.ndim(x) == 0:
            scalars = listed(x for x in rows if np.ndim(x) == 0)
            raise ValueError(f"scan got value with no leading axis to scan over: {scalars}.")
    sizes = {x.shape[0] for x in rows}
    if length is not None:
        try:
            length = static_size(length)
        except (ConcretizationTypeError, TracerIntegerConversionError) as e:
            raise ConcretizationTypeError(
                f"The `length` argument to `scan` expects a concrete `int` value, got {short(length)}, which is traced."
            ) from e
        except TypeError as e:
            raise TypeError(
                f"The `length` argument to `scan` expects a concrete `int` value, got {short(length)}."
            ) from e
        if length < 0:
            raise ValueError(f"scan takes no negative number of steps, got `length` {length}.")
        if any(s != length for s in sizes):
            raise ValueError(
                f"scan got `length` argument of {length} which disagrees with leading axis sizes "
                f"[{listed(sorted(sizes))}]."
            )
    elif len(sizes) == 1:
        length = sizes.pop()
    elif not sizes:
        raise ValueError("scan got no values to scan over and `length` not provided.")
    else:
        raise ValueError(
            f"scan got values with different leading axis sizes: {listed(sorted(sizes))}. "
            f"The arrays in xs have the shapes {listed(x.shape for x in rows)}."
        )
    assert length is not None
    if _ferrax.is_tracer(unroll):
        raise ConcretizationTypeError(
            "The `unroll` argument to `scan` expects a concrete `int` or `bool` value, got "
            f"{short(unroll)}, which is traced."
        )
    if isinstance(unroll, bool):
        unroll = max(length, 1) if unroll else 1
    elif unroll < 0:
        raise ValueError("`unroll` must be a `bool` or a non-negative `int`.")
    if length and _unjitted.wanted():
        return _unjitted.scan(f, init, rows, rows_tree, length, reverse)
    if _ferrax.explicit_in_use():
        _check_rows(rows)
    row_types = rows_tree.unflatten([_ferrax.row_type(x) for x in rows])
    clock = _ferrax.trace_clock()
    try:
        program, carry, _ = _traced_carry("scan", f, init, (row_types,), True, of)
    except _ferrax.ReferenceUsed:
        if not high_classes or of is not None:
            raise
        return _scan_of_values(asked, f, init, xs, length, reverse, unroll)
    if _ferrax.references_since(clock) and (refs := _found(clock)):
        from ferrax._refs import differentiated
        from ferrax._refs_calls import scan as scan_with

        loop = lambda step, first: _scan(asked, step, first, xs, length, reverse, unroll)
        plain = lambda: _unjitted.scan(f, init, rows, rows_tree, length, reverse)
        return scan_with(refs, loop, f, init, differentiated([*carry, *rows, *program.captured]), plain)
    outs = _ferrax.bind_scan(program, [*carry, *rows], length, len(carry), reverse, unroll, asked)
    return program.out_tree.unflatten(outs)


def _scan_of_values(
    asked: str, f: Callable[..., Any], init: Any, xs: Any, length: int | None, reverse: bool, unroll: int | bool
) -> Any:
    """`scan` where there are values that are no arrays."""
    again = lambda step, first, rows: _scan(asked, step, first, rows, length, reverse, unroll, f)
    return scan_of_values(again, f, init, xs)


def _check_rows(rows: Sequence[Any]) -> None:
    """Raises where an explicit axis of a mesh divides the axis that a scan goes along."""
    specs = [_ferrax.typeof(x).sharding.spec for x in rows]
    if any(spec[0] is not None for spec in specs):
        raise ValueError(f"0th dimension of all xs should be replicated. Got {', '.join(str(spec) for spec in specs)}")


def _found(clock: int) -> Any:
    """The references that bodies traced after `clock` use and that are older."""
    from ferrax._refs import found_since

    return found_since(clock)


def _any_reference(leaves: Sequence[Any]) -> bool:
    return any(_ferrax.is_reference(x) for x in leaves)


def _array(x: Any) -> Any:
    from ferrax.numpy import asarray

    return x if isinstance(x, _ferrax.Array) else asarray(x)


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """Repeats a function as long as a condition holds.

    Args:
      cond_fun: function from the carried value to a boolean scalar.
      body_fun: function from the carried value to the next one, of the same structure, shapes and dtypes.
      init_val: the first value, a pytree.

    Returns:
      The first value for which `cond_fun` is false.

    Raises:
      TypeError: the value changes its type, or `cond_fun` gives no boolean scalar.

    Reverse-mode differentiation repeats the loop: it runs forward up to three times more, and keeps carries in two
    buffers of fixed size. Where the number of steps is known, `scan` or `fori_loop` keep what they need at once.

    >>> from ferrax import lax
    >>> print(lax.while_loop(lambda x: x < 100, lambda x: 2 * x, 3))
    192
    """
    return _while_loop("while_loop", cond_fun, body_fun, init_val)


def _while_loop(
    asked: str,
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: Any,
    of: Any = None,
) -> Any:
    """`while_loop`, for a loop that the user asked for by the name `asked`, with the body `of` if that is another."""
    if not (callable(body_fun) and callable(cond_fun)):
        raise TypeError("lax.while_loop: body_fun and cond_fun arguments should be callable.")
    if _unjitted.wanted() and (found := _unjitted.while_loop(cond_fun, body_fun, init_val)):
        return found[0]
    if high_classes and has_values(init_val):
        test, body = branches_of_values([cond_fun, body_fun])
        return opened(_while_loop(asked, test, body, closed(init_val, whole=True), of or body_fun))
    if _any_reference(tree_util.tree_leaves(init_val)):
        from ferrax._refs_loops import with_own_carry

        body_fun, init_val = with_own_carry("while_body" if asked == "while_loop" else asked, body_fun, init_val)
        of = None
    clock = _ferrax.trace_clock()
    body, carry, tree = _traced_carry("while_loop", body_fun, init_val, (), False, of)
    test = _ferrax.trace_to_jaxpr(cond_fun, (tree.unflatten(carry),), None, "while_cond")
    if _ferrax.references_since(clock) and (refs := _found(clock)):
        from ferrax._refs_calls import while_loop as while_with

        return while_with(refs, lambda *loop: _while_loop(asked, *loop), cond_fun, body_fun, init_val)
    outs = test.out_avals
    if test.out_tree.num_leaves != 1 or test.out_tree.num_nodes != 1:
        raise TypeError(
            f"cond_fun must return a boolean scalar, but got pytree {short(test.out_tree)}. In while_loop it is "
            f"{function_text(cond_fun)}."
        )
    if outs[0].shape != () or outs[0].dtype != np.dtype(bool):
        raise TypeError(
            f"cond_fun must return a boolean scalar, but got output type(s) {outs}. In while_loop it is "
            f"{function_text(cond_fun)}."
        )
    refuse_effects("while_loop", test)
    return tree.unflatten(_ferrax.bind_while(test, body, carry, asked))


def _concrete_int(x: Any) -> int | None:
    x = _ferrax.untraced(x)
    if isinstance(x, _ferrax.Tracer):
        return None
    try:
        return operator.index(x)
    except TypeError:
        return None


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any, *, unroll: Any = None) -> Any:
    """Applies `body_fun(i, value)` for `i` from `lower` up to `upper`.

    With static bounds the loop can be differentiated in reverse mode.

    Args:
      lower: first index, an integer scalar.
      upper: end of the indices (not included), an integer scalar.
      body_fun: function `(i, value) -> value`; the value keeps its structure, shapes and dtypes.
      init_val: the first value, a pytree.
      unroll: steps per loop iteration; a hint.

    Returns:
      The last value.

    >>> from ferrax import lax
    >>> print(lax.fori_loop(0, 5, lambda i, total: total + i, 0))
    10
    """
    import ferrax.numpy as jnp

    if not callable(body_fun):
        raise TypeError("lax.fori_loop: body_fun argument should be callable.")
    if high_classes and has_values(init_val):
        (body,) = branches_of_values([body_fun])
        return opened(fori_loop(lower, upper, body, closed(init_val, whole=True), unroll=unroll))
    given = [jnp.result_type(x) for x in (lower, upper)]
    dtype = jnp.result_type(lower, upper)
    signed = all(np.issubdtype(t, np.signedinteger) for t in given)
    if given[0] != given[1] and not (signed and any(_ferrax.typeof(x).weak_type for x in (lower, upper))):
        raise TypeError(
            f"lower and upper arguments to fori_loop must have equal types, got {given[0].name} and {given[1].name}."
        )
    plain = _plain((lower, upper)) and np.issubdtype(dtype, np.floating)
    start, stop = (int(x) if plain and np.ndim(x) == 0 else _concrete_int(x) for x in (lower, upper))
    if start is not None and stop is not None and _unjitted.wanted():
        return functools.reduce(lambda value, i: body_fun(i, value), range(start, stop), init_val)
    if start is not None and stop is not None:

        def step(carry: Any, _: Any) -> Any:
            i, value = carry
            return (i + 1, body_fun(i, value)), None

        step.user_body, step.user_carry = body_fun, (0, 1)  # type: ignore[attr-defined]
        step.__name__ = getattr(body_fun, "__name__", "body_fun")
        steps = max(stop - start, 0)
        counter = jnp.result_type(int)
        if steps > np.iinfo(counter).max:
            raise OverflowError(
                f"fori_loop from {start} to {stop} takes {steps} steps, more than {counter.name} can count. Nest two "
                "loops, or enable 64-bit types."
            )
        (_, value), _ = _scan("fori_loop", step, (start, init_val), None, steps, False, unroll or 1, body_fun)
        return value
    if unroll not in (None, False, 1):
        raise ValueError("Can only use `unroll` in `fori_loop` if the loop bounds are statically known.")
    typed = lambda x: x if isinstance(x, int) or _ferrax.typeof(x).dtype == dtype else jnp.asarray(x, dtype)
    first, last = typed(lower), typed(upper)
    for bound in (first, last):
        if np.ndim(bound) != 0:
            raise TypeError(
                f"lower and upper arguments to fori_loop must be scalars, got one of shape {np.shape(bound)}."
            )

    def advance(carry: Any) -> Any:
        i, end, value = carry
        return i + 1, end, body_fun(i, value)

    advance.user_body, advance.user_carry = body_fun, (0, None, 1)  # type: ignore[attr-defined]
    advance.__name__ = getattr(body_fun, "__name__", "body_fun")
    return _while_loop("fori_loop", _fori_cond_fun, advance, (first, last, init_val), body_fun)[2]


def _fori_cond_fun(loop_carry: Any) -> Any:
    """Whether a `fori_loop` goes on."""
    return loop_carry[0] < loop_carry[1]


def _promoted(programs: Sequence[Any], branches: Sequence[Callable[..., Any]]) -> Sequence[Callable[..., Any]]:
    """Branches whose weakly typed results follow the other branches' types."""
    from ferrax.lax import convert_element_type

    if any(p.out_tree != programs[0].out_tree for p in programs):
        return branches
    targets = []
    for avals in zip(*(p.out_avals for p in programs), strict=True):
        strong = {a.dtype for a in avals if not a.weak_type}
        mixed = len({a.dtype for a in avals}) > 1
        target = strong.pop() if mixed and len(strong) == 1 else None
        fits = target is not None and all(a.dtype == target or _follows(a, target) for a in avals)
        targets.append(target if fits else None)
    if not any(t is not None for t in targets):
        return branches

    def converted(branch: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            leaves, tree = tree_util.tree_flatten(branch(*args))
            pairs = zip(leaves, targets, strict=True)
            return tree.unflatten([x if t is None else convert_element_type(x, t) for x, t in pairs])

        call.__name__ = getattr(branch, "__name__", "branch")
        return call

    return [converted(b) for b in branches]


def _run_branches(
    name: str,
    labels: Sequence[str],
    branches: Sequence[Callable[..., Any]],
    index: Callable[[], Any],
    operands: tuple[Any, ...],
) -> Any:
    at = index() if _unjitted.wanted() else None
    if at is not None and (chosen := _concrete_int(at)) is not None:
        return branches[chosen](*operands)
    clock = _ferrax.trace_clock()
    try:
        first = {id(b): i for i, b in reversed(list(enumerate(branches)))}
        # of a cond true_fun, the last one, is traced first
        order = sorted(first.values(), reverse=name == "cond")
        traced = {i: _ferrax.trace_to_jaxpr(branches[i], operands, None, name) for i in order}
        programs = [traced[first[id(b)]] for b in branches]  # one that is there twice is called once
    except _ferrax.ReferenceUsed:
        if high_classes and not hasattr(branches[0], "of_values"):
            given = closed(operands, whole=True)
            return opened(_run_branches(name, labels, branches_of_values(branches), index, given))
        from ferrax._refs_calls import closed_over

        return _run_branches(name, labels, *closed_over(name, branches, index, operands))
    if _ferrax.references_since(clock) and (refs := _found(clock)):
        from ferrax._refs_calls import branches as branches_with

        return branches_with(
            refs, lambda each, args: _run_branches(name, labels, each, index, args), branches, operands
        )
    promoted = _promoted(programs, branches)
    if promoted is not branches:
        programs = [_ferrax.trace_to_jaxpr(b, operands, None, name) for b in promoted]
    # and named first, as in its call
    called = slice(None, None, -1 if name == "cond" else 1)
    error = branches_error(name, labels[called], branches[called], programs[called])
    if error is not None and not (all(is_own(b) for b in branches) and _alike_but_for_axes(programs)):
        raise error
    refuse_effects(name, *programs)
    leaves = tree_util.tree_leaves(operands)
    at = index() if at is None else at
    axes = [frozenset().union(_ferrax.typeof(at).vma, *(a.vma for a in t)) for t in _columns(programs)]
    if any(a.vma != names for p in programs for a, names in zip(p.out_avals, axes, strict=True)):
        # what varies over manual axes in one branch does in all
        wanted = [SimpleNamespace(vma=names) for names in axes]
        programs = [_ferrax.trace_to_jaxpr(_giving(b, wanted, None), operands, None, name) for b in promoted]
    return programs[0].out_tree.unflatten(_ferrax.bind_cond(programs, at, leaves))


def _alike_but_for_axes(programs: Sequence[Any]) -> bool:
    """Whether branches differ in nothing but the manual axes that their results vary over."""
    kinds = [(p.out_tree, [(a.shape, a.dtype) for a in p.out_avals]) for p in programs]
    return all(kind == kinds[0] for kind in kinds)


def _columns(programs: Sequence[Any]) -> list[tuple[Any, ...]]:
    """For each result its types in all programs."""
    return list(zip(*(p.out_avals for p in programs), strict=True))


class _NoOperand:
    """Stands for the operand that a call does not give: None is one."""

    def __repr__(self) -> str:
        return "<no operand>"


_NO_OPERAND = _NoOperand()


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = _NO_OPERAND) -> Any:
    """Applies one of several functions, chosen by an index.

    Args:
      index: integer scalar; it is clamped to the range of `branches`.
      branches: functions of the operands with results of one type.
      *operands: arguments of the branches, pytrees.
      operand: a single operand by name, for compatibility.

    Returns:
      The result of the chosen branch.

    >>> from ferrax import lax
    >>> print(lax.switch(1, [lambda x: x, lambda x: -x], 3))
    -3
    """
    import ferrax.numpy as jnp

    if not all(callable(b) for b in branches):
        raise TypeError("lax.switch: branches argument should be a sequence of callables.")
    if operand is not _NO_OPERAND:
        operands = (operand, *operands)
    if _no_number(index):
        raise TypeError(f"Index type must be an integer, got {index}.")
    shape = np.shape(index) if _plain(index) or not isinstance(index, (list, tuple)) else (len(index),)
    if shape != ():
        raise TypeError(f"Branch index must be scalar, got {index} of shape {shape}.")
    if not jnp.issubdtype(jnp.result_type(index), np.integer):
        raise TypeError(f"Index type must be an integer, got {index} as {jnp.result_type(index)}.")
    branches = list(branches)
    if not branches:
        raise ValueError("Empty branch sequence; lax.switch needs at least one function in branches.")
    if len(branches) == 1:
        return branches[0](*operands)
    # spelled as in JAX's messages: the first one with a space
    labels = ["branch 0", *(f"branch{i}" for i in range(1, len(branches)))]
    chosen = _concrete_int(index)
    if chosen is not None and _ferrax.is_eager() and _plain(operands):
        place = min(max(chosen, 0), len(branches) - 1)
        return _run_branches("switch", labels, branches, lambda: jnp.int32(place), operands)
    return _run_branches("switch", labels, branches, lambda: _branch(index, len(branches) - 1), operands)


def _branch(index: Any, last: int) -> Any:
    """The index of a branch, from 0 to the last one, as int32."""
    import ferrax.numpy as jnp
    from ferrax import lax

    index = jnp.asarray(index)
    if index.dtype.itemsize < 4 or index.dtype == np.int32:
        return lax.clamp(np.int32(0), lax.convert_element_type(index, np.int32), np.int32(last))
    return lax.convert_element_type(jnp.clip(index, 0, last), np.int32)


def _no_number(x: Any) -> bool:
    known = x is None or isinstance(x, (bool, int, float, complex, list, tuple))
    return not (known or hasattr(x, "dtype") or hasattr(x, "__jax_array__"))


def _plain(tree: Any) -> bool:
    return not any(isinstance(x, _ferrax.Tracer) for x in tree_util.tree_leaves(tree))


def cond(pred: Any, true_fun: Any, false_fun: Any, *operands: Any, operand: Any = _NO_OPERAND) -> Any:
    """Applies `true_fun` if `pred` holds, else `false_fun`.

    Args:
      pred: boolean scalar (numbers are compared with zero).
      true_fun: function of the operands.
      false_fun: function of the operands with a result of the same type.
      *operands: arguments of the functions, pytrees.
      operand: a single operand by name, for compatibility.

    Returns:
      The result of the function that was chosen. Under `vmap` over `pred` rows are selected; a function with a loop or
      other costly work runs only when a row chooses it, and only on the values of rows that do.

    >>> from ferrax import lax
    >>> print(lax.cond(True, lambda x: x + 1, lambda x: x - 1, 3))
    4
    """
    import ferrax.numpy as jnp

    if operand is not _NO_OPERAND:
        operands = (operand, *operands)
    if not (callable(true_fun) and callable(false_fun)):
        if callable(false_fun) and len(operands) == 2 and callable(operands[1]):
            # The five-argument form: cond(pred, true_operand, true_fun, false_operand, false_fun).
            return _cond_five(pred, true_fun, false_fun, *operands)
        raise TypeError("lax.cond: true_fun and false_fun arguments should be callable.")
    if pred is None:
        raise TypeError("cond predicate is None: pred must be a boolean scalar.")
    if isinstance(pred, (str, list, tuple)):
        raise TypeError(f"Pred must be a scalar, got {pred} of type {type(pred)}.")
    if _no_number(pred):
        raise TypeError(f"Pred type must be either boolean or number, got {pred}.")
    if np.ndim(pred) != 0:
        shown = str(pred) if np.size(pred) <= 16 else short(pred)
        raise TypeError(
            f"Pred must be a scalar, got {shown} of shape {np.shape(pred)} in lax.cond. Reduce it with jnp.any or "
            "jnp.all, or choose element by element with jnp.where."
        )
    dtype = jnp.result_type(pred)
    kinds = (np.bool_, np.integer, np.floating)
    if not any(jnp.issubdtype(dtype, kind) for kind in kinds):
        raise TypeError(f"Pred type must be either boolean or number, got {dtype}.")
    flag = pred if dtype == np.dtype(bool) else jnp.asarray(pred) != 0
    labels, branches = ["false_fun", "true_fun"], [false_fun, true_fun]
    return _run_branches("cond", labels, branches, lambda: convert_element_type(flag, np.int32), operands)


def _cond_five(pred: Any, true_operand: Any, true_fun: Any, false_operand: Any, false_fun: Any) -> Any:
    return cond(pred, lambda t, _: true_fun(t), lambda _, f: false_fun(f), true_operand, false_operand)


def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """Applies a function to every row of its inputs, one after the other.

    Args:
      f: function of one row (a pytree).
      xs: pytree of arrays with one leading size.
      batch_size: rows done at a time, with `vmap`; `None` or 0 for one.

    Returns:
      The results stacked on a new leading axis.

    Raises:
      ValueError: for a negative `batch_size`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.map(lambda x: x * x, jnp.arange(4)))
    [0 1 4 9]
    """
    if not batch_size:
        return _scan("map", lambda _, x: ((), f(x)), (), xs)[1]
    if batch_size < 0:
        raise ValueError(f"map takes a batch_size of at least 1, got {batch_size}")
    from ferrax._api import vmap

    leaves, tree = tree_util.tree_flatten(xs)
    if not leaves:
        raise ValueError("map with batch_size needs at least one array")
    import ferrax.numpy as jnp

    leaves = [jnp.asarray(x) for x in leaves]
    rows = leaves[0].shape[0]
    full, rest = divmod(rows, batch_size)
    head = tree.unflatten([x[: full * batch_size].reshape((full, batch_size, *x.shape[1:])) for x in leaves])
    mapped = _scan("map", lambda _, x: ((), vmap(f)(x)), (), head, length=full)[1]
    flat = tree_util.tree_map(lambda y: y.reshape((full * batch_size, *y.shape[2:])), mapped)
    if not rest:
        return flat
    tail = vmap(f)(tree.unflatten([x[full * batch_size :] for x in leaves]))
    return tree_util.tree_map(lambda a, b: jnp.concatenate([a, b]), flat, tail)
