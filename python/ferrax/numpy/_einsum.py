"""Sums of products in Einstein's notation.

An expression is parsed into labels, a path of pairwise contractions is planned (exactly for up to six operands,
greedily above), and each step is one `lax.dot_general` or, when nothing is contracted, one product. Read
`_products.py` first.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ferrax import lax
from ferrax._core import asarray, promote_dtypes
from ferrax.numpy._args import Array, DTypeLike, no_out, require, user_dtype, with_out_sharding
from ferrax.numpy._diagonal import diagonal
from ferrax.numpy._einsum_search import contraction_order
from ferrax.numpy._reductions import sum as _sum

__all__ = ["einsum", "einsum_path"]

Labels = tuple[Any, ...]


class _Expression(NamedTuple):
    inputs: list[Labels]
    output: Labels
    text: str


def _split_term(term: str, ndim: int, number: int) -> Labels:
    """Labels of one operand; the axes under an ellipsis get the labels -1, -2, … from the last one."""
    if "..." not in term:
        if "." in term:
            raise ValueError("Einstein sum subscripts string contains a '.' that is not part of an ellipsis ('...')")
        if len(term) != ndim:
            raise ValueError(
                f"Einstein sum subscript '{term}' does not contain the correct number of indices for operand {number}, "
                f"which has {ndim} axes."
            )
        return tuple(term)
    before, after = term.split("...", 1)
    hidden = ndim - len(before) - len(after)
    if "." in before + after or hidden < 0:
        raise ValueError(f"Einstein sum subscript '{term}' does not fit operand {number}, which has {ndim} axes.")
    return (*before, *range(-hidden, 0), *after)


def _check_labels(terms: Sequence[str]) -> None:
    """Any character is a label that has no other meaning in the text."""
    for c in "->":
        if any(c in term for term in terms):
            raise ValueError(f"Character '{c}' is not a valid symbol in the subscripts of einsum.")


def _parse_text(subscripts: str, operands: Sequence[Array]) -> _Expression:
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    _check_labels([*terms, right])
    if len(terms) != len(operands):
        raise ValueError(
            f"Number of einsum subscripts, {len(terms)}, must be equal to the number of operands, {len(operands)}."
        )
    inputs = [_split_term(term, x.ndim, i) for i, (term, x) in enumerate(zip(terms, operands))]
    hidden = max(sum(isinstance(c, int) for c in labels) for labels in inputs) if "..." in left else 0
    ellipsis = tuple(range(-hidden, 0))
    if not arrow:
        letters = sorted(c for c in set(left) - set(",.") if left.count(c) == 1)
        return _Expression(inputs, (*ellipsis, *letters), f"{left}->{'...' if ellipsis else ''}{''.join(letters)}")
    if "..." in right:
        before, after = right.split("...", 1)
        output: Labels = (*before, *ellipsis, *after)
    else:
        if "." in right:
            raise ValueError("Einstein sum subscripts string contains a '.' that is not part of an ellipsis ('...')")
        output = tuple(right)
    for c in output:
        if output.count(c) > 1:
            raise ValueError(f"Output character '{c}' appeared more than once in the output.")
        if isinstance(c, str) and c not in left:
            raise ValueError(f"Output character '{c}' did not appear in the input")
    return _Expression(inputs, output, text)


def _interleaved_to_text(args: Sequence[Any]) -> tuple[str, list[Any]]:
    """The text form of einsum(x, [0, 1], y, [1, 2], [0, 2]); labels are put in order as they compare."""
    operands, lists = list(args[0 : 2 * (len(args) // 2) : 2]), list(args[1::2])
    output = args[-1] if len(args) % 2 else None
    names = list({i for labels in [*lists, output or []] for i in labels if i is not Ellipsis})
    try:
        names.sort()
    except TypeError as error:
        raise TypeError(
            "For this input type lists must contain either Ellipsis or hashable and comparable object (e.g. int, str)."
        ) from error
    letters = {n: string.ascii_letters[i] if i < 52 else chr(140 + i) for i, n in enumerate(names)}
    term = lambda labels: "".join("..." if i is Ellipsis else letters[i] for i in labels)
    text = ",".join(term(labels) for labels in lists)
    return (text if output is None else f"{text}->{term(output)}"), operands


def _parse(subscripts: Any, operands: Sequence[Any]) -> tuple[_Expression, list[Array]]:
    if not isinstance(subscripts, str):
        subscripts, operands = _interleaved_to_text((subscripts, *operands))
    if not operands:
        raise ValueError("einsum needs at least one operand.")
    operands = [x if hasattr(x, "shape") and hasattr(x, "dtype") else _shaped(x) for x in operands]
    return _parse_text(subscripts, operands), list(operands)


def _shaped(x: Any) -> Any:
    require("einsum", x)
    return asarray(x)


def _sizes(expression: _Expression, operands: Sequence[Array]) -> dict[Any, int]:
    """The length of each label; length 1 broadcasts."""
    sizes: dict[Any, int] = {}
    for number, (labels, x) in enumerate(zip(expression.inputs, operands)):
        for label, n in zip(labels, x.shape):
            if sizes.setdefault(label, n) != n and n != 1:
                if sizes[label] != 1:
                    raise ValueError(
                        f"Size of label '{label}' for operand {number} ({n}) does not match previous terms "
                        f"({sizes[label]}): einsum got operands of shapes {', '.join(str(o.shape) for o in operands)}."
                    )
                sizes[label] = n
    return sizes


def _plan(expression: _Expression, sizes: dict[Any, int], optimize: Any) -> list[tuple[int, ...]]:
    n = len(expression.inputs)
    if isinstance(optimize, (list, tuple)):
        steps = list(optimize)
        if steps and steps[0] == "einsum_path":
            steps = steps[1:]
        return [tuple(step) for step in steps]
    if n == 1:
        return [(0,)]
    if n == 2:
        return [(0, 1)]
    if optimize is False:
        return [(0, 1), *((0, n - i - 1) for i in range(1, n - 1))]
    sets = [frozenset(labels) for labels in expression.inputs]
    return contraction_order(sets, frozenset(expression.output), sizes, optimize)


def _diagonals(x: Array, labels: Labels) -> tuple[Array, Labels]:
    """An operand in which no label occurs twice."""
    while len(set(labels)) < len(labels):
        label = next(c for c in labels if labels.count(c) > 1)
        i = labels.index(label)
        j = labels.index(label, i + 1)
        x = diagonal(x, 0, i, j)
        labels = (*(c for k, c in enumerate(labels) if k not in (i, j)), label)
    return x, labels


def _without_ones(x: Array, labels: Labels, sizes: dict[Any, int]) -> tuple[Array, Labels]:
    """An operand without the axes of length 1 that broadcast."""
    drop = tuple(i for i, c in enumerate(labels) if x.shape[i] == 1 and sizes[c] != 1)
    return (lax.squeeze(x, drop), tuple(c for i, c in enumerate(labels) if i not in drop)) if drop else (x, labels)


def _sum_out(x: Array, labels: Labels, keep: set[Any]) -> tuple[Array, Labels]:
    axes = tuple(i for i, c in enumerate(labels) if c not in keep)
    if not axes:
        return x, labels
    return _sum(x, axes, dtype=x.dtype), tuple(c for c in labels if c in keep)


def _outer_product(x: Array, x_labels: Labels, y: Array, y_labels: Labels) -> tuple[Array, Labels]:
    """The product over shared labels and all pairs of the others."""
    shared = [c for c in x_labels if c in y_labels]
    labels = (*shared, *(c for c in x_labels if c not in shared), *(c for c in y_labels if c not in shared))

    def spread(z: Array, own: Labels) -> Array:
        order = [c for c in labels if c in own]
        z = lax.transpose(z, tuple(own.index(c) for c in order))
        return lax.expand_dims(z, tuple(i for i, c in enumerate(labels) if c not in own))

    return spread(x, x_labels) * spread(y, y_labels), labels


def _contract_pair(x, x_labels, y, y_labels, keep, precision, preferred, dot_general):
    x, x_labels = _sum_out(x, x_labels, keep | set(y_labels))
    y, y_labels = _sum_out(y, y_labels, keep | set(x_labels))
    contracted = [c for c in x_labels if c in y_labels and c not in keep]
    if not contracted and preferred is None:
        return _outer_product(x, x_labels, y, y_labels)
    batch = [c for c in x_labels if c in y_labels and c in keep]
    numbers = (
        (tuple(x_labels.index(c) for c in contracted), tuple(y_labels.index(c) for c in contracted)),
        (tuple(x_labels.index(c) for c in batch), tuple(y_labels.index(c) for c in batch)),
    )
    result = dot_general(x, y, numbers, precision=precision, preferred_element_type=preferred)
    free = [c for c in x_labels if c not in (*contracted, *batch)] + [
        c for c in y_labels if c not in (*contracted, *batch)
    ]
    return result, (*batch, *free)


def einsum(subscripts: Any, /, *operands: Any, out: None = None, optimize: Any = "auto", precision: Any = None,
           preferred_element_type: DTypeLike = None, _dot_general: Callable[..., Array] | None = None,
           out_sharding: None = None) -> Array:  # fmt: skip
    """A sum of products in Einstein's notation.

    Args:
      subscripts: such as "ij,jk->ik": one letter for each axis; letters that are not in the result are summed over.
        "..." stands for axes that broadcast. Instead of a text, operands and lists of integers may alternate.
      *operands: arrays.
      out: not supported.
      optimize: "auto", "optimal" (or True), "branch-all", "branch-2", "branch-1", "greedy", False, or a path from
        `einsum_path`.
      precision: as for `lax.dot_general`.
      preferred_element_type: dtype in which to accumulate and return.
      out_sharding: how the result is spread over explicit axes of the mesh in use.

    Returns:
      Array.

    Raises:
      ValueError: for subscripts that do not fit the operands.

    >>> import ferrax.numpy as jnp
    >>> jnp.einsum("ij,j->i", jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
    Array([21, 43], dtype=int32)
    """
    no_out("jnp.einsum", out)
    if out_sharding is not None:
        return with_out_sharding(
            lambda: einsum(
                subscripts,
                *operands,
                out=out,
                optimize=optimize,
                precision=precision,
                preferred_element_type=preferred_element_type,
                _dot_general=_dot_general,
            ),
            out_sharding,
            "einsum",
        )
    expression, arrays = _parse(subscripts, operands)
    require("einsum", *arrays)
    sizes = _sizes(expression, arrays)
    preferred = None if preferred_element_type is None else user_dtype(preferred_element_type)
    dot_general, promoted = lax.dot_general, promote_dtypes(*arrays)
    if _dot_general is not None:
        # a product of the caller's may be of other dtypes than its operands: it is told of which
        dot_general = _dot_general
        preferred = promoted[0].dtype if preferred is None else preferred
    terms = [_without_ones(*_diagonals(x, labels), sizes) for x, labels in zip(promoted, expression.inputs)]
    for step in _plan(expression, sizes, optimize):
        group = [terms[i] for i in step]
        terms = [t for i, t in enumerate(terms) if i not in step]
        keep = set(expression.output).union(*(labels for _, labels in terms))
        x, labels = group[0]
        for number, (y, y_labels) in enumerate(group[1:]):
            later = set().union(*(more for _, more in group[number + 2 :]))
            x, labels = _contract_pair(x, labels, y, y_labels, keep | later, precision, preferred, dot_general)
        terms.append(_sum_out(x, labels, keep))
    ((x, labels),) = terms
    result = lax.transpose(x, tuple(labels.index(c) for c in expression.output if c in labels))
    missing = tuple(i for i, c in enumerate(expression.output) if c not in labels)
    if missing:
        shape = tuple(sizes[c] for c in expression.output)
        result = lax.broadcast_in_dim(result, shape, tuple(i for i in range(len(shape)) if i not in missing))
    return result if preferred is None else lax.convert_element_type(result, preferred)


def einsum_path(subscripts: Any, /, *operands: Any, optimize: Any = "auto") -> tuple[list[tuple[int, ...]], Any]:
    """The order in which `einsum` contracts its operands.

    Args:
      subscripts: as for `einsum`.
      *operands: arrays, or objects with `shape` and `dtype`.
      optimize: a search, as `einsum` takes it, or a path to describe.

    Returns:
      The path, a list of tuples of positions (each step removes them and appends its result), and a description.

    >>> import ferrax.numpy as jnp
    >>> path, info = jnp.einsum_path("ij,jk,k->i", jnp.ones((9, 9)), jnp.ones((9, 9)), jnp.ones(9))
    >>> path
    [(1, 2), (0, 1)]
    """
    expression, arrays = _parse(subscripts, operands)
    sizes = _sizes(expression, arrays)
    path = _plan(expression, sizes, optimize)
    from ferrax.numpy._einsum_path import PathInfo

    unused = [c for c in string.ascii_letters if c not in expression.text]
    unused = unused[: max(len(x.shape) for x in arrays)]  # axes under an ellipsis take the last of these
    named = lambda term: "".join(c if isinstance(c, str) else unused[c] for c in term)
    eq = f"{','.join(map(named, expression.inputs))}->{named(expression.output)}"
    return path, PathInfo(eq, {named([c]): n for c, n in sizes.items()}, path)
