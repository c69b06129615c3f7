"""Which lines of the user's code the lines of a program's texts come from, as source maps.

A pass makes one of the texts: `"jaxpr"`, `"hlo:stable-hlo"`, `"hlo:original"`. Read next: `_texts.py`, which finds the
places in them, and `ferrax/_src/sourcemap.py`, the maps.

>>> import ferrax as jax
>>> from ferrax.experimental import source_mapper
>>> passes = source_mapper.filter_passes("jaxpr")
>>> (dump,) = source_mapper.generate_sourcemaps(lambda x: jax.numpy.sin(x), passes)(1.0)
>>> dump.pass_name, dump.generated_code
('jaxpr', '{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }')
>>> len(dump.source_map.sources), dump.source_map.mappings[0][0][0]
(1, 24)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ferrax._boundary import expose as _expose
from ferrax._src.sourcemap import MappingsGenerator as MappingsGenerator, SourceMap as SourceMap
from ferrax.experimental.source_mapper._texts import (
    canonicalize_filename as canonicalize_filename,
    create_mlir_sourcemap as create_mlir_sourcemap,
    hlo_sourcemap,
    jaxpr_sourcemap,
)

__all__ = [
    "MappingsGenerator",
    "Pass",
    "SourceMap",
    "SourceMapDump",
    "all_passes",
    "canonicalize_filename",
    "create_mlir_sourcemap",
    "filter_passes",
    "generate_sourcemaps",
    "register_pass",
]


@dataclass(frozen=True)
class SourceMapDump:
    """A text, and its map.

    Args:
      source_map: the map.
      generated_code: the text.
      pass_name: the pass that made it.
    """

    source_map: SourceMap
    generated_code: str
    pass_name: str


@dataclass(frozen=True)
class Pass:
    """One of a program's texts.

    Args:
      name: its name.
      compile_fn: function of a folder, a function, its arguments and its named arguments; gives what the text is of.
      generate_dump: function of that, which gives a `SourceMapDump`.
    """

    name: str
    compile_fn: Callable[..., Any]
    generate_dump: Callable[..., SourceMapDump]


_passes: dict[str, Pass] = {}


def register_pass(pass_: Pass) -> None:
    """Adds a pass; ValueError where there is one of its name."""
    if pass_.name in _passes:
        raise ValueError(f"Pass {pass_.name} already registered")
    _passes[pass_.name] = pass_


def all_passes() -> Sequence[Pass]:
    """The passes that there are."""
    return list(_passes.values())


def filter_passes(regex: str) -> Sequence[Pass]:
    """The passes whose names begin with a match of a regular expression."""
    return [pass_ for pass_ in all_passes() if re.match(regex, pass_.name)]


def generate_sourcemaps(f: Callable[..., Any], passes: Sequence[Pass], **pass_kwargs: Any) -> Callable[..., Any]:
    """A function that gives the texts of a function's program with their maps, instead of running it.

    Args:
      f: the function.
      passes: which texts.
      **pass_kwargs: what the passes' own functions take besides.

    Returns:
      A function of the arguments of `f` that gives a list of `SourceMapDump`.
    """

    def dumps(*args: Any, **kwargs: Any) -> list[SourceMapDump]:
        from tempfile import TemporaryDirectory

        compiled: dict[Any, Any] = {}
        with TemporaryDirectory() as folder:
            for pass_ in passes:
                if pass_.compile_fn not in compiled:
                    compiled[pass_.compile_fn] = pass_.compile_fn(folder, f, args, kwargs, **pass_kwargs)
            return [pass_.generate_dump(compiled[pass_.compile_fn], **pass_kwargs) for pass_ in passes]

    return dumps


def _traced(_: str, f: Callable[..., Any], args: Any, kwargs: Any, **others: Any) -> Any:
    from ferrax._api import make_jaxpr

    return make_jaxpr(f)(*args, **kwargs)


def _lowered(_: str, f: Callable[..., Any], args: Any, kwargs: Any, **others: Any) -> Any:
    from ferrax import jit

    return jit(lambda *args: f(*args, **kwargs)).lower(*args)


def _pass(name: str, compile_fn: Callable[..., Any], text_of: Callable[..., Any], mapped: Callable[..., Any]) -> None:
    def dump(compiled: Any, **others: Any) -> SourceMapDump:
        text = text_of(compiled)
        return SourceMapDump(mapped(compiled, text), text, name)

    register_pass(Pass(name, compile_fn, dump))


_pass("jaxpr", _traced, str, jaxpr_sourcemap)
_pass("hlo:stable-hlo", _lowered, lambda x: x.as_text(debug_info=True), lambda _, text: create_mlir_sourcemap(text))
_pass("hlo:original", _lowered, lambda x: x.as_text("hlo", debug_info=True), lambda _, text: hlo_sourcemap(text))

_expose(globals())
