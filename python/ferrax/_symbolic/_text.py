"""Symbolic sizes and shapes as text, read by descent: `"(b, 2*h, floordiv(w, 4), ...)"`.

A shape is sizes between commas, in parentheses or not; `_` and, at the end, `...` are sizes of another shape. A size is
a sum of products of powers of factors: integers, variables, and the four operations of two sizes.
Read next: `_scopes.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ferrax._symbolic._expressions import larger, operation, polynomial_of
from ferrax._symbolic._scopes import SymbolicScope

__all__ = ["symbolic_args_specs", "symbolic_shape"]

_TOKEN = re.compile(r"\s*(\.\.\.|\d+|[^\W\d]\w*|[-+*^(),]|\S|$)")
_OPERATIONS = ("floordiv", "max", "min", "mod")


class _Reader:
    """One text, and how far it is read.

    Args:
      text: the text.
      shown: how errors call it.
      scope: where variables are made.
      like: the shape of placeholders, whose sizes may be None.
    """

    def __init__(self, text: str, shown: str, scope: SymbolicScope, like: Sequence[Any] | None = None):
        self.text, self.shown, self.scope, self.like = text, shown, scope, like
        self.sizes: list[Any] = []
        self.at = 0
        self.token, self.start = "", 0
        self.advance()

    def advance(self) -> str:
        """Goes to the next token; gives the one that was there."""
        read = self.token
        found = _TOKEN.match(self.text, self.at)
        assert found is not None
        self.token, self.start, self.at = found[1], found.start(1), found.end()
        return read

    def wrong(self, what: str) -> ValueError:
        return ValueError(
            f"syntax error in symbolic shape {self.shown} in dimension {len(self.sizes)}: {what}. "
            f"Parsed '{self.text[: self.start]}', remaining '{self.text[self.start :]}'."
        )

    def expect(self, *tokens: str) -> str:
        if self.token not in tokens:
            found = repr(self.token) if self.token else "the end"
            raise self.wrong(f"expecting one of {', '.join(map(repr, tokens))} but found {found}")
        return self.advance()

    # ---- shapes ------------------------------------------------------------------------------------------------------

    def whole_shape(self) -> tuple[Any, ...]:
        depth = 0
        while self.token == "(":
            self.advance()
            depth += 1
        self.shape()
        for _ in range(depth):
            self.expect(")")
        self.expect("")
        return tuple(self.sizes)

    def shape(self) -> None:
        while self.token not in ("", ")"):
            if self.token == "...":
                for size in self.placeholder(0):
                    self.add(size)
                self.advance()
                return
            if self.token == "_":
                self.add(self.placeholder(1)[0])
                self.advance()
            else:
                self.add(self.sum())
            if self.token not in ("", ")"):
                self.expect(",")

    def placeholder(self, least: int) -> Sequence[Any]:
        """The sizes of the other shape from here on."""
        if self.like is None:
            raise self.wrong("spec contains ... but no 'like' shape was given")
        if len(self.like) < len(self.sizes) + least:
            raise self.wrong(
                f"cannot resolve placeholder '{self.token}' because we parsed {len(self.sizes)} already and 'like' "
                f"shape has only {len(self.like)} dimensions"
            )
        return self.like[len(self.sizes) :]

    def add(self, size: Any) -> None:
        if size is None:
            raise self.wrong(f"unexpected placeholder for unknown dimension; like={self.like}")
        at = len(self.sizes)
        if isinstance(size, int) and self.like is not None and (at >= len(self.like) or size != self.like[at]):
            raise self.wrong(f"different size {size} for known dimension; like={self.like}")
        self.sizes.append(size)

    # ---- sizes -------------------------------------------------------------------------------------------------------

    def sum(self) -> Any:
        negative = self.token in ("+", "-") and self.advance() == "-"
        total = -self.product() if negative else self.product()
        while self.token in ("+", "-"):
            total = total + self.product() if self.advance() == "+" else total - self.product()
        return total

    def product(self) -> Any:
        value = self.power()
        while self.token == "*":
            self.advance()
            value = value * self.power()
        return value

    def power(self) -> Any:
        base = self.factor()
        if self.token != "^":
            return base
        self.advance()
        return base ** self.number()

    def number(self) -> int:
        if not self.token.isdigit():
            raise self.wrong(f"expecting a number but found {self.token!r}")
        return int(self.advance())

    def factor(self) -> Any:
        if self.token == "-":
            self.advance()
            return -self.number()
        if self.token.isdigit():
            return self.number()
        if not self.token.isidentifier() or self.token == "_":
            found = repr(self.token) if self.token else "the end"
            raise self.wrong(f"expecting a name, '-' or a number but found {found}")
        name = self.advance()
        if name not in _OPERATIONS:
            return self.scope._variable(name)
        self.expect("(")
        a = self.sum()
        self.expect(",")
        b = self.sum()
        self.expect(")")
        if name in ("max", "min"):
            return larger(a, b, name)
        return operation(self.scope, name, polynomial_of(a), polynomial_of(b))


def read_size(text: str, scope: SymbolicScope) -> Any:
    """The size that a text says."""
    reader = _Reader(text, repr(text), scope)
    size = reader.sum()
    reader.expect("")
    return size


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[Any, ...]:
    """A shape with symbolic sizes, from text.

    Args:
      shape_spec: sizes between commas: integers, variables, sums, differences, products, powers (`b^2`), and
        `floordiv(e1, e2)`, `mod(e1, e2)`, `max(e1, e2)`, `min(e1, e2)` of sizes. `_`, and `...` at the end, stand for
        the sizes of `like`; None is `"..."`.
      constraints: what is known of the variables, as for `SymbolicScope`; beyond that, that each is at least 1.
      scope: the scope of the variables; None for a new one.
      like: a shape for the placeholders.

    Returns:
      A tuple of integers and symbolic sizes.

    Raises:
      ValueError: the text cannot be read, or both a scope and constraints are given.

    >>> import ferrax as jax
    >>> jax.export.symbolic_shape("b, 2*h, _", like=(3, 4, 5))
    (b, 2*h, 5)
    """
    shown = repr(shape_spec)
    if shape_spec is None:
        shape_spec = "..."
    if not isinstance(shape_spec, str):
        raise ValueError(f"polymorphic shape spec should be None or a string. Found {shown}.")
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ValueError("Cannot specify both a `scope` and `constraints`.")
    return _Reader(shape_spec, shown, scope, like).whole_shape()


def symbolic_args_specs(
    args: Any,
    shapes_specs: Any,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
) -> Any:
    """Types of arguments with symbolic shapes, for `export`.

    Args:
      args: a pytree of arrays, or of `ShapeDtypeStruct`s: they have the dtypes, and the sizes of placeholders.
      shapes_specs: texts as for `symbolic_shape`, or None, in a pytree that is a prefix of `args`.
      constraints, scope: as for `symbolic_shape`.

    Returns:
      A pytree like `args` of `ShapeDtypeStruct`s.

    Raises:
      ValueError: the specifications are no prefix, cannot be read, or both a scope and constraints are given.

    >>> import ferrax as jax, numpy as np
    >>> jax.export.symbolic_args_specs((np.ones((2, 3)), np.ones(3)), ("b, ...", None))
    (ShapeDtypeStruct(shape=(b, 3), dtype=float32), ShapeDtypeStruct(shape=(3,), dtype=float32))
    """
    from ferrax import tree_util
    from ferrax._core import typeof
    from ferrax._shape_dtype import ShapeDtypeStruct
    from ferrax._src.tree_util import broadcast_prefix, prefix_errors

    leaves, tree = tree_util.tree_flatten(args)
    if isinstance(args, tuple) and isinstance(shapes_specs, list):
        shapes_specs = tuple(shapes_specs)
    is_none = lambda x: x is None
    try:
        specs = broadcast_prefix(shapes_specs, args, is_leaf=is_none)
    except ValueError:
        error, *_ = prefix_errors(shapes_specs, args, is_leaf=is_none)
        raise error("export.symbolic_args_specs shapes_specs") from None
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ValueError("Cannot use both `scope` and `constraints`")
    types = [x if isinstance(x, ShapeDtypeStruct) else typeof(x) for x in leaves]
    return tree.unflatten(
        ShapeDtypeStruct(symbolic_shape(spec, like=t.shape, scope=scope), t.dtype)
        for t, spec in zip(types, specs, strict=True)
    )
