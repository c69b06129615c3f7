"""Text in lines of some width: documents of texts and breaks, whose groups are on one line where they fit.

Programs are printed by the core; this is for printers of the user's. Source: Oppen, "Prettyprinting", and Wadler, "A
prettier printer".
"""

from __future__ import annotations

import enum
import html
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from ferrax.config import config

__all__ = [
    "Color",
    "Doc",
    "Intensity",
    "OutputFormat",
    "brk",
    "color",
    "concat",
    "group",
    "join",
    "keyword",
    "nest",
    "nil",
    "source_map",
    "text",
    "type_annotation",
]

#: Whether what is printed goes to a terminal.
CAN_USE_COLOR = sys.stdout is not None and sys.stdout.isatty()


class Color(enum.Enum):
    """Colours of letters, by their codes; those of what is behind them are larger by 10."""

    BLACK = 30
    RED = 31
    GREEN = 32
    YELLOW = 33
    BLUE = 34
    MAGENTA = 35
    CYAN = 36
    WHITE = 37
    RESET = 39


class Intensity(enum.Enum):
    """How bright letters are."""

    DIM = 2
    NORMAL = 22
    BRIGHT = 1


class OutputFormat(enum.Enum):
    """What colours are said in."""

    TEXT = 1
    HTML = 2


class _Look(NamedTuple):
    """How letters look."""

    foreground: Color = Color.RESET
    background: Color = Color.RESET
    intensity: Intensity = Intensity.NORMAL

    def codes(self, before: _Look) -> list[tuple[str, int]]:
        """What differs from before, with its codes."""
        shifts = ("fg", 0), ("bg", 10), ("intensity", 0)
        pairs = zip(shifts, self, before, strict=True)
        return [(kind, now.value + shift) for (kind, shift), now, then in pairs if now is not then]


_PLAIN, _DIM = _Look(), _Look(intensity=Intensity.DIM)


class Doc:
    """A document."""

    def __init__(self) -> None:
        if type(self) is Doc:
            raise TypeError("Doc is abstract and cannot be instantiated")

    def __add__(self, other: Doc) -> Doc:
        return concat([self, other])

    def __str__(self) -> str:
        return self.format()

    def __repr__(self) -> str:
        name = {"Break": "break", "SourceMap": "source"}.get(short := type(self).__name__[:-3], short.lower())
        parts = ", ".join(self._parts())
        return name if isinstance(self, NilDoc) else f"{name}({parts})"

    def _parts(self) -> list[str]:
        return []

    def format(
        self,
        width: int = 80,
        *,
        use_color: bool | None = None,
        annotation_prefix: str = " # ",
        source_map: list[list[tuple[int, int, Any]]] | None = None,
        output_format: OutputFormat = OutputFormat.TEXT,
        separable_lines: bool = False,
    ) -> str:
        """The document as text.

        Args:
          width: the length that lines should not exceed.
          use_color: whether colours are said; by default on terminals, where `jax_pprint_use_color` is on.
          annotation_prefix: what stands before annotations at the ends of lines.
          source_map: for each line of the text, gets the places of what was marked: start, end, mark.
          output_format: whether colours are said in codes of terminals or in HTML.
          separable_lines: whether each line says its colours by itself.
        """
        if use_color is None:
            use_color = CAN_USE_COLOR and config.jax_pprint_use_color
        in_html, marked = output_format is OutputFormat.HTML, source_map is not None
        page = _Page(bool(use_color), annotation_prefix, in_html, separable_lines or marked, marked)
        _lay_out(self, width, page)
        lines = page.lines()
        if source_map is not None:
            source_map.extend(page.maps)
        return "\n".join(lines)


class NilDoc(Doc):
    """Nothing."""


class TextDoc(Doc):
    """Letters."""

    def __init__(self, text: str, annotation: str | None, anchor: str | None, href: str | None):
        self.text, self.annotation, self.anchor, self.href = text, annotation, anchor, href

    def _parts(self) -> list[str]:
        more = {"annotation": self.annotation, "anchor": self.anchor, "href": self.href}
        return [f'"{self.text}"', *(f'{key}="{value}"' for key, value in more.items() if value is not None)]


class ConcatDoc(Doc):
    """Documents one after the other."""

    def __init__(self, children: Sequence[Doc]):
        self.children = _docs("concat", children)

    def _parts(self) -> list[str]:
        return list(map(repr, self.children))


class BreakDoc(Doc):
    """Letters, or a new line."""

    def __init__(self, text: str):
        self.text = text

    def _parts(self) -> list[str]:
        return [f'"{self.text}"']


class GroupDoc(Doc):
    """A document that is on one line where it fits."""

    def __init__(self, child: Doc):
        (self.child,) = _docs("group", [child])

    def _parts(self) -> list[str]:
        return [repr(self.child)]


class NestDoc(Doc):
    """A document whose new lines are indented."""

    def __init__(self, n: int, child: Doc):
        if not isinstance(n, int):
            raise TypeError(f"nest takes a number of letters, got {n!r}")
        self.n = n
        (self.child,) = _docs("nest", [child])

    def _parts(self) -> list[str]:
        return [str(self.n), repr(self.child)]


class ColorDoc(Doc):
    """A document in colour."""

    def __init__(self, child: Doc, *look: Any):
        (self.child,) = _docs("color", [child])
        self.look = look

    def _parts(self) -> list[str]:
        return [repr(self.child), *("None" if part is None else part.name.lower() for part in self.look)]


class SourceMapDoc(Doc):
    """A document that is marked."""

    def __init__(self, child: Doc, source: Any):
        (self.child,) = _docs("source_map", [child])
        self.source = source

    def _parts(self) -> list[str]:
        return [repr(self.child), repr(self.source)]


def _docs(name: str, docs: Sequence[Any]) -> list[Doc]:
    for doc in docs:
        if not isinstance(doc, Doc):
            raise TypeError(f"{name} takes documents, got {type(doc).__name__}")
    return list(docs)


def _fits(doc: Doc, room: int) -> bool:
    """Whether a document on one line is no longer than the room."""
    todo = [doc]
    while todo and room >= 0:
        doc = todo.pop()
        if isinstance(doc, (TextDoc, BreakDoc)):
            room -= len(doc.text)
        elif isinstance(doc, ConcatDoc):
            todo.extend(reversed(doc.children))
        elif not isinstance(doc, NilDoc):
            todo.append(doc.child)  # type: ignore[attr-defined]
    return room >= 0


def _lay_out(doc: Doc, width: int, page: _Page) -> None:
    todo: list[tuple[Doc, int, bool, _Look, Any]] = [(doc, 0, False, _PLAIN, None)]
    while todo:
        doc, indent, flat, look, mark = todo.pop()
        page.mark(mark)
        if isinstance(doc, TextDoc):
            page.write(doc.text, look, doc.anchor, doc.href)
            if doc.annotation is not None:
                page.notes.append(doc.annotation)
        elif isinstance(doc, BreakDoc):
            if flat:
                page.write(doc.text, look)
            else:
                page.end_line(indent)
        elif isinstance(doc, ConcatDoc):
            todo.extend((child, indent, flat, look, mark) for child in reversed(doc.children))
        elif isinstance(doc, GroupDoc):
            todo.append((doc.child, indent, flat or _fits(doc.child, width - page.column), look, mark))
        elif isinstance(doc, NestDoc):
            todo.append((doc.child, indent + doc.n, flat, look, mark))
        elif isinstance(doc, ColorDoc):
            chosen: list[Any] = [old if new is None else new for old, new in zip(look, doc.look, strict=True)]
            own = _Look(*chosen)
            todo.append((doc.child, indent, flat, own, mark))
        elif isinstance(doc, SourceMapDoc):
            todo.append((doc.child, indent, flat, look, doc.source))
    page.mark(None)
    page.end_line(0)


class _Page:
    """Lines that are written from left to right."""

    def __init__(self, coloured: bool, prefix: str, in_html: bool, separable: bool, marked: bool):
        self.coloured, self.prefix, self.in_html, self.separable = coloured, prefix, in_html, separable
        self.marked = marked
        self.maps: list[list[tuple[int, int, Any]]] = []
        self.notes: list[str] = []
        self.column = 0
        self._line, self._look = "", _PLAIN
        # the mark that is in force, that of the letters from `since` on, and whether another one was between them
        self._mark, self._open, self._since, self._changed = None, None, 0, False
        self._places: list[tuple[int, int, Any]] = []
        self._done: list[tuple[str, int, list[str]]] = []

    def mark(self, mark: Any) -> None:
        """What is written from here on belongs to a mark."""
        if self.marked and mark is not self._mark:
            self._mark, self._changed = mark, True

    def _close(self) -> None:
        if self._open is not None and len(self._line) > self._since:
            self._places.append((self._since, len(self._line), self._open))
        self._open, self._since, self._changed = self._mark, len(self._line), False

    def _turn(self, look: _Look) -> str:
        """What changes how letters look."""
        before, self._look = self._look, look
        if not self.coloured or look == before:
            return ""
        if not self.in_html:
            return f"\x1b[{';'.join(str(code) for _, code in look.codes(before))}m"
        classes = " ".join(f"ansi-{kind}-{code}" for kind, code in look.codes(_PLAIN))
        return ("" if before == _PLAIN else "</span>") + (f'<span class="{classes}">' if classes else "")

    def write(self, text: str, look: _Look, anchor: str | None = None, href: str | None = None) -> None:
        """Adds letters."""
        if self._changed:
            self._line += self._turn(_PLAIN)
            self._close()
        self.column += len(text)
        if self.in_html:
            text = html.escape(text).replace("&#x27;", "&apos;")
            names = "".join(f' {k}="{html.escape(v)}"' for k, v in (("id", anchor), ("href", href)) if v is not None)
            text = f"<a{names}>{text}</a>" if names else text
        self._line += self._turn(look) + text

    def end_line(self, indent: int) -> None:
        """Begins another line."""
        if self.separable or self.notes:
            self._line += self._turn(_PLAIN)
        self._close()
        self._done.append((self._line, self.column, self.notes))
        self.maps.append(self._places)
        self._line, self.column, self.notes, self._places, self._since = " " * indent, indent, [], [], indent

    def lines(self) -> list[str]:
        """The lines, with their annotations."""
        last, column, notes = self._done[-1]
        self._done[-1] = last + self._turn(_PLAIN), column, notes
        most = max(column for _, column, _ in self._done)
        out = []
        for line, column, notes in self._done:
            pad = " " * (most - column)
            for note in notes:
                note = self.prefix + (html.escape(note) if self.in_html else note)
                out.append(line + self._turn(_DIM) + pad + note + self._turn(_PLAIN))
                line, pad = "", " " * most
            if not notes:
                out.append(line)
        return out


def nil() -> Doc:
    """Nothing."""
    return NilDoc()


def text(text: str, annotation: str | None = None, anchor: str | None = None, href: str | None = None) -> Doc:
    """Letters, with what is said of them at the end of the line; in HTML with a name and a link."""
    if not isinstance(text, str):
        raise TypeError(f"text takes a str, got {type(text).__name__}")
    return TextDoc(text, annotation, anchor, href)


def concat(children: Sequence[Doc]) -> Doc:
    """Documents one after the other."""
    return ConcatDoc(children)


def brk(text: str = " ") -> Doc:
    """Letters in a group that fits on one line, a new line elsewhere."""
    return BreakDoc(text)


def group(doc: Doc) -> Doc:
    """A document that is on one line where it fits."""
    return GroupDoc(doc)


def nest(n: int, doc: Doc) -> Doc:
    """A document whose new lines are indented by n letters."""
    return NestDoc(n, doc)


def color(
    child: Doc,
    foreground: Color | None = None,
    background: Color | None = None,
    intensity: Intensity | None = None,
) -> Doc:
    """A document in colour."""
    return ColorDoc(child, foreground, background, intensity)


def source_map(doc: Doc, source: Any) -> Doc:
    """A document whose places `format(source_map=...)` tells."""
    if source is None:
        raise TypeError("source_map takes a mark other than None")
    return SourceMapDoc(doc, source)


def join(sep: Doc, docs: Sequence[Doc]) -> Doc:
    """Documents with another one between each two of them."""
    parts = [part for doc in docs for part in (sep, doc)]
    return concat(parts[1:])


def keyword(
    child: Doc,
    *,
    foreground: Color | None = Color.BLUE,
    background: Color | None = None,
    intensity: Intensity | None = Intensity.BRIGHT,
) -> Doc:
    """A document that looks as words of the language do."""
    return color(child, foreground, background, intensity)


def type_annotation(
    child: Doc,
    *,
    foreground: Color | None = Color.MAGENTA,
    background: Color | None = None,
    intensity: Intensity | None = Intensity.NORMAL,
) -> Doc:
    """A document that looks as types do."""
    return color(child, foreground, background, intensity)
