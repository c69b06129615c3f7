"""Places of the user's code in the texts of programs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ferrax._program_text import places_of_equations
from ferrax._scopes import user_frame
from ferrax._src.sourcemap import MappingsGenerator, SourceMap
from ferrax.config import config

__all__ = ["canonicalize_filename", "create_mlir_sourcemap", "hlo_sourcemap", "jaxpr_sourcemap", "parse_tables"]

#: Of a line of text a column, and the file, line (from 1) and column that it comes from.
_Segment = tuple[int, str, int, int]


def canonicalize_filename(file_name: str) -> str:
    """A file's name without what `jax_hlo_source_file_canonicalization_regex` matches."""
    pattern = config.jax_hlo_source_file_canonicalization_regex
    return re.sub(pattern, "", file_name) if pattern else file_name


def _map_of(lines: Iterable[list[_Segment]]) -> SourceMap:
    """The map of a text's lines; one more has no segments."""
    mappings, sources = MappingsGenerator(), list[str]()
    for segments in lines:
        mappings.new_group()
        for column, file, line, source_column in sorted(segments):
            name = canonicalize_filename(file)
            if name not in sources:
                sources.append(name)
            mappings.new_segment(column, sources.index(name), line - 1, source_column)
    mappings.new_group()
    return SourceMap(3, sources, [], [], mappings.mappings())


def jaxpr_sourcemap(program: Any, text: str) -> SourceMap:
    """The map of a program's own text."""
    lines = text.split("\n")
    segments: list[list[_Segment]] = [[] for _ in lines]
    for eqn, number, end in places_of_equations(program, text):
        frame = user_frame(eqn.source_info.traceback)
        if frame is not None:
            before = re.match(r".*(?:\blet|;) |\s*", lines[number][:end])
            column = before.end() if before else 0
            segments[number].append((column, frame.file_name, frame.start_line, frame.start_column))
    return _map_of(segments)


_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_FILE = re.compile(r'"((?:[^"\\]|\\.)+)":(\d+):(\d+)')


def create_mlir_sourcemap(mlir_dump: str) -> SourceMap:
    """The map of a text of MLIR with locations: of an operation that functions called the innermost one counts."""
    lines = mlir_dump.split("\n")
    aliases = {alias[1]: alias[2] for line in lines if (alias := _ALIAS.match(line))}

    def place(text: str) -> tuple[str, int, int] | None:
        if found := _FILE.search(text):
            return found[1], int(found[2]), int(found[3])
        inner = (place(aliases[name]) for name in re.findall(r"#loc\d*", text) if name in aliases)
        return next((p for p in inner if p), None)

    def segments(line: str) -> list[_Segment]:
        location = None if _ALIAS.match(line) else re.search(r" loc\((.*)\)$", line)
        found = place(location[1]) if location else None
        return [(len(line) - len(line.lstrip()), *found)] if found else []

    return _map_of(map(segments, lines))


def parse_tables(lines: list[str]) -> dict[str, tuple[str, int, int]]:
    """The places of the stack frames that tables before a program in HLO tell of, by number."""
    tables: dict[str, dict[str, str]] = {}
    table: dict[str, str] = {}
    for line in lines:
        if re.fullmatch(r"(FileNames|FunctionNames|FileLocations|StackFrames)", line):
            table = tables[line] = {}
        elif entry := re.fullmatch(r"(\d+) (.*)", line):
            table[entry[1]] = entry[2]
    number = lambda row, name: re.findall(rf"\b{name}=(\d+)", row)[0]
    places = {}
    for frame, row in tables.get("StackFrames", {}).items():
        location = tables["FileLocations"][number(row, "file_location_id")]
        file = tables["FileNames"][number(location, "file_name_id")].strip('"')
        places[frame] = (file, int(number(location, "line")), int(number(location, "column")))
    return places


def hlo_sourcemap(text: str) -> SourceMap:
    """The map of a text in HLO, whose instructions say their stack frames, or a file and a line."""
    lines = text.split("\n")
    places = parse_tables(lines)

    def segments(line: str) -> list[_Segment]:
        column = len(line) - len(line.lstrip())
        if (frame := re.search(r"\bstack_frame_id=(\d+)", line)) and frame[1] in places:
            return [(column, *places[frame[1]])]
        if found := re.search(r'\bsource_file="([^"]*)" source_line=(\d+)', line):
            return [(column, found[1], int(found[2]), 0)]
        return []

    return _map_of(map(segments, lines))
