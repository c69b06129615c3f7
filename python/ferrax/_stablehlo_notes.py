"""Notes for compilers in StableHLO: attributes of operations, and composites.

The core writes what is said of an operation as a comment behind it (`// notes %3 {a = "b"}`), by a result's number.
Read next: `_stablehlo_text.py`, which gives the operations their notes; `ferrax_base::scopes`, which keeps them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

_NOTE = re.compile(r" *// (notes|composite) %(\d+) (.*)")
_DEFINED = re.compile(r"( *)%(\d+)(?::\d+)? = ")
_ATTRIBUTE = re.compile(r'([\w.$]+|"(?:[^"\\]|\\.)*") = "((?:[^"\\]|\\.)*)"')
_DEFAULTS = (" : i64", " : f64")


def attribute(value: Any) -> str:
    """A value as an attribute of MLIR.

    Args:
      value: a number, text, dtype or array, or a list or dict of them.

    Raises:
      TypeError: there is no attribute for it.

    >>> from ferrax._stablehlo_notes import attribute
    >>> attribute({"axes": (1, 2), "name": "a"})
    '{axes = [1, 2], name = "a"}'
    """
    from ferrax._stablehlo_text import nested

    match value:
        case bool() | np.bool_():
            return str(bool(value)).lower()
        case str():
            return quoted(value)
        case Mapping():
            return dictionary((k, attribute(v)) for k, v in value.items() if v is not None)
        case list() | tuple():
            inner = (attribute(v) for v in value)
            # the types that numbers have without a word
            return f"[{', '.join(v.removesuffix(_DEFAULTS[0]).removesuffix(_DEFAULTS[1]) for v in inner)}]"
        case int() | float() | np.number() | np.ndarray() | np.dtype():
            array = value if isinstance(value, np.dtype) else np.asarray(value)
            element = _element(array if isinstance(array, np.dtype) else array.dtype)
            if element is None:
                raise TypeError(f"Unsupported scalar attribute type: {type(value)}")
            if isinstance(array, np.dtype):
                return element
            if not isinstance(value, np.ndarray):
                return f"{nested(array)} : {element}"
            same = array.size and (array == array.flat[0]).all()
            numbers = nested(np.asarray(array.flat[0], array.dtype) if same else array) if array.size else ""
            return f"dense<{numbers}> : tensor<{''.join(f'{n}x' for n in array.shape)}{element}>"
    raise TypeError(f"No attribute handler defined for type: {type(value)}")


def _element(dtype: np.dtype[Any]) -> str | None:
    bits = dtype.itemsize * 8
    return {"b": "i1", "i": f"i{bits}", "u": f"ui{bits}", "f": f"f{bits}"}.get(dtype.kind)


def quoted(text: str) -> str:
    """A text as MLIR quotes it.

    >>> from ferrax._stablehlo_notes import quoted
    >>> print(quoted('a "b"'))
    "a \\22b\\22"
    """
    codes = ("\\\\" if b == 92 else chr(b) if 32 <= b < 127 and b != 34 else f"\\{b:02X}" for b in text.encode())
    return f'"{"".join(codes)}"'


def dictionary(items: Iterable[tuple[str, str]]) -> str:
    """Attributes by name, in the order of their names.

    >>> from ferrax._stablehlo_notes import dictionary
    >>> dictionary([("b c", "1"), ("a", "2")])
    '{a = 2, "b c" = 1}'
    """
    named = sorted(items)
    return f"{{{', '.join(f'{_bare(k)} = {v}' for k, v in named)}}}"


def notes_in(text: str) -> dict[str, str]:
    """The texts of such a dictionary, by name.

    >>> from ferrax._stablehlo_notes import notes_in
    >>> notes_in('{a = "b"}')
    {'a': 'b'}
    """
    return dict(_ATTRIBUTE.findall(text))


def _bare(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][\w.$]*", name) else quoted(name)


def composite(name: str, attributes: dict[str, Any], version: int) -> str:
    """What is said of a call of a composite.

    >>> from ferrax._stablehlo_notes import composite
    >>> composite("my.square", {"n": 2}, 1)
    '"my.square" {composite_attributes = {n = 2 : i64}, decomposition = @my.square, version = 1 : i32}'
    """
    said = [f"composite_attributes = {attribute(attributes)}"] if attributes else []
    said.append(f"decomposition = @{_bare(name)}")
    if version:
        said.append(f"version = {version} : i32")
    return f"{quoted(name)} {{{', '.join(said)}}}"


def taken_out(lines: Sequence[str]) -> tuple[list[str], dict[int, str], dict[int, str]]:
    """The lines of a module without notes; the notes, and the composites, by the number of their operation's last line.

    >>> from ferrax._stablehlo_notes import taken_out
    >>> taken_out(['    %0 = "stablehlo.abs"(%arg0)', '    // notes %0 {a = "b"}'])
    (['    %0 = "stablehlo.abs"(%arg0)'], {0: '{a = "b"}'}, {})
    """
    kept: list[str] = []
    notes: dict[int, str] = {}
    composites: dict[int, str] = {}
    ends: dict[str, int] = {}  # of operations, by the numbers of their results
    open_: list[tuple[str, str]] = []
    for line in lines:
        found = _NOTE.fullmatch(line)
        if found is None:
            kept.append(line)
            defined = _DEFINED.match(line)
            if line.startswith("  func.func "):
                ends.clear()
            if defined is not None and line.endswith("({"):
                open_.append((defined[1], defined[2]))
            elif defined is not None:
                ends[defined[2]] = len(kept) - 1
            elif open_ and line.startswith(f"{open_[-1][0]}}})"):
                ends[open_.pop()[1]] = len(kept) - 1
        elif found[2] in ends:
            at, said = ends[found[2]], found[3]
            if found[1] == "composite":
                composites[at] = said
            else:
                earlier = notes_in(notes.get(at, ""))
                both = {**notes_in(said), **earlier}
                notes[at] = dictionary((k.strip('"'), f'"{v}"') for k, v in both.items())
    return kept, notes, composites


def noted(line: str, notes: str) -> str:
    """An operation with attributes for its compiler.

    >>> from ferrax._stablehlo_notes import noted
    >>> noted("%0 = stablehlo.abs %arg0 : tensor<f32>", '{a = "b"}')
    '%0 = stablehlo.abs %arg0 {mhlo.frontend_attributes = {a = "b"}} : tensor<f32>'
    """
    head, colon, types = line.rpartition(" : ")
    said = f"mhlo.frontend_attributes = {notes}"
    if head.endswith("}"):
        return f"{head[:-1]}, {said}}}{colon}{types}"
    return f"{head} {{{said}}}{colon}{types}"


class Composites:
    """Calls of composites, and the names that their functions get."""

    def __init__(self) -> None:
        self.symbols: dict[str, str] = {}

    def call(self, line: str, said: str) -> str:
        """A call of a function as one of a composite."""
        found = re.fullmatch(r'( *(?:%[\d:]+ = )?)"func.call"(\([^()]*\)) \{callee = (@\w+)\} : (.*)', line)
        assert found is not None
        start, operands, function, signature = found.groups()
        takes, _, gives = signature.partition(" -> ")
        gives = re.sub(r"^\(([^,]*)\)$", r"\1", gives)
        if said.startswith("call "):  # of a function with a name of its own
            symbol = self.symbols.setdefault(function, self._free(said.removeprefix("call ")))
            return f"{start}call {symbol}{operands} : {takes} -> {gives}"
        wanted = re.search(r'decomposition = (@(?:[\w.$]+|"[^"]*"))', said)
        assert wanted is not None
        symbol = self.symbols.setdefault(function, self._free(wanted[1]))
        said = said.replace(f"decomposition = {wanted[1]}", f"decomposition = {symbol}")
        name, _, settings = re.split(r'((?<=")) (?=\{)', said, maxsplit=1)
        return f"{start}stablehlo.composite {name} {operands[1:-1]} {settings} : {takes} -> {gives}"

    def _free(self, wanted: str) -> str:
        names = (wanted, *(f"{wanted}_{i}" for i in range(len(self.symbols))))
        return next(name for name in names if name not in self.symbols.values())

    def renamed(self, text: str) -> str:
        """The text with the functions' names."""
        if not self.symbols:
            return text
        return re.sub(r"@f\d+\b", lambda m: self.symbols.get(m[0], m[0]), text)
