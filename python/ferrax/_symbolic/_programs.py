"""Programs with symbolic sizes as text, and the programs that they are for sizes that are known.

The text of a program has the codes of its sizes. In a file there are marks in their place, `$0$`, `$1$`, and a list of
the expressions that they stand for; a program for a call has the call's sizes there. So what a size is used for needs
no rule of its own, and the reader of programs checks every type again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ferrax import _ferrax, tree_util
from ferrax._symbolic._expressions import _DimExpr
from ferrax._symbolic._scopes import SymbolicScope
from ferrax._symbolic._text import read_size

_MARK = re.compile(r"\$(\d+)\$")
#: Numbers as large as codes: what is left of them was calculated with as if it were a size.
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e\+?\d+)?(?![\w.])")
#: The sizes of a type, and what no array has.
_SHAPE = re.compile(r"\[([\d,$]+)\]")
_TOO_LARGE = 1 << 56


def marked(text: str) -> tuple[str, list[_DimExpr]]:
    """A program's text with marks in place of sizes, and the sizes.

    Raises:
      NotImplementedError: the program has an operation that is not implemented for symbolic sizes.
    """
    sizes = _ferrax.symbolic_sizes_in(text)
    if not sizes:
        return text, []
    least, largest = _ferrax.symbolic_codes()
    places = {code: k for k, (code, _) in enumerate(sizes)}
    # codes have nineteen digits each, and stand alone
    text = re.sub(r"\d{19}", lambda m: f"${places[m[0]]}$" if m[0] in places else m[0], text)
    sizes_of_types = {n for shape in _SHAPE.findall(text) for n in shape.split(",") if n.isdigit()}
    for number in {*_NUMBER.findall(text), *sizes_of_types}:
        too_large = number in sizes_of_types and int(number) > _TOO_LARGE
        if too_large or least <= float(number) <= largest:
            line = next((line.strip() for line in text.split("\n") if number in line), text)
            raise NotImplementedError(
                f"a symbolic size is calculated with as a number, which is not implemented: {line}"
            )
    return text, [size for _, size in sizes]


def with_sizes(text: str, sizes: Sequence[Any]) -> str:
    """The text for these sizes, integers or symbolic ones.

    Raises:
      ValueError: it has other marks.
    """
    numbers = {f"${k}$": str(s._code if isinstance(s, _DimExpr) else s) for k, s in enumerate(sizes)}
    if unknown := {m[0] for m in _MARK.finditer(text)} - numbers.keys():
        raise ValueError(f"the file is malformed: it has no sizes for {sorted(unknown)}")
    return _MARK.sub(lambda m: numbers[m[0]], text)


def evaluated(sizes: Sequence[Any], variables: Mapping[str, Any]) -> list[Any]:
    """Sizes for values of their variables.

    Raises:
      ValueError: no argument has one of the variables.
    """
    try:
        return [size._evaluate(variables) if isinstance(size, _DimExpr) else size for size in sizes]
    except KeyError as error:
        raise ValueError(
            f"Encountered dimension variable {error} that is not appearing in the shapes of the function arguments. "
            f"The following dimension variables are: {sorted(variables)}."
        ) from None


def scope_of(shapes: Sequence[Sequence[Any]]) -> SymbolicScope | None:
    """The scope of the symbolic sizes in shapes; None where there are none.

    Raises:
      ValueError: they have several.
    """
    scope: SymbolicScope | None = None
    for size in (d for shape in shapes for d in shape if isinstance(d, _DimExpr)):
        scope = scope or size.scope
        scope._check_same(size, "in the arguments of one function")
    return scope


def check_scopes(args: Any, kwargs: Any, name: str) -> None:
    """Raises ValueError where the symbolic sizes of a function's arguments are of several scopes."""
    first: tuple[SymbolicScope, str] | None = None
    paths = tree_util.tree_flatten_with_path((args, kwargs))[0]
    for (which, *path), leaf in paths:
        for size in getattr(leaf, "shape", ()):
            if isinstance(size, _DimExpr):
                text = ("kwargs" if which.idx else "args") + tree_util.keystr(tuple(path))
                first = first or (size.scope, text)
                first[0]._check_same(size, f"when exporting {name}", f"current (from {first[1]})", text)


def written(size: Any) -> Any:
    """A size as JSON."""
    return str(size) if isinstance(size, _DimExpr) else size


def read(size: Any, scope: SymbolicScope) -> Any:
    """A size from JSON."""
    return read_size(size, scope) if isinstance(size, str) else size
