"""Tracebacks that outlive their frames (`jax._src.lib._jax.Traceback`), as in JAX."""

import traceback

import pytest
from jax._src.lib import _jax as theirs

from ferrax._src.lib import _jax as ours, xla_client

BOTH = pytest.mark.parametrize("lib", [ours, theirs], ids=["ferrax", "jax"])


def outer(lib):
    def inner():
        return lib.Traceback.get_traceback()

    return inner()


@BOTH
def test_functions_are_named_innermost_first(lib):
    taken = outer(lib)
    assert isinstance(taken, lib.Traceback)
    first, second, third, *_ = taken.frames
    assert first.function_name == "outer.<locals>.inner" and second.function_name == "outer"
    assert third.function_name == "test_functions_are_named_innermost_first"
    start = outer.__code__.co_firstlineno
    assert (first.function_start_line, first.line_num) == (start + 1, start + 2)
    assert (second.file_name, second.function_start_line, second.line_num) == (__file__, start, start + 4)
    assert str(first) == f"outer.<locals>.inner;{__file__}:{start + 2}"
    assert str(taken).splitlines()[0] == f"{__file__}:{start + 2} (outer.<locals>.inner)"
    assert taken == taken and taken != outer(lib) and len({taken, taken}) == 1


@BOTH
def test_codes_and_instructions(lib):
    codes, instructions = outer(lib).raw_frames()
    assert codes[1] is outer.__code__ and len(codes) == len(instructions)
    line = outer.__code__.co_firstlineno + 4
    assert lib.Traceback.code_addr2line(codes[1], instructions[1]) == line
    assert lib.Traceback.code_addr2location(codes[1], instructions[1]) == (line, 11, line, 18)


@BOTH
def test_tracebacks_of_python(lib):
    found = outer(lib).as_python_traceback()
    lines = {frame.f_code.co_name: line for frame, line in traceback.walk_tb(found)}
    start = outer.__code__.co_firstlineno
    assert (lines["outer"], lines["inner"]) == (start + 4, start + 2)
    assert [frame.f_code.co_name for frame, _ in traceback.walk_tb(found)][-2:] == ["outer", "inner"]
    assert all(isinstance(frame.f_locals, dict) for frame, _ in traceback.walk_tb(found))
    last = traceback.format_tb(found)[-1]
    assert last.splitlines() == [
        f'  File "{__file__}", line {start + 2}, in inner',
        "    return lib.Traceback.get_traceback()",
    ]


@BOTH
def test_tracebacks_of_places(lib):
    places = [lib.Frame("x.py", "foo", 3, 5), lib.Frame("y.py", "bar", 1, 2)]
    shown = traceback.format_tb(lib.Traceback.traceback_from_frames(places))
    assert shown == ['  File "y.py", line 2, in bar\n', '  File "x.py", line 5, in foo\n']


@BOTH
def test_no_tracebacks_are_taken_unless_they_are_wanted(lib):
    before = lib.tracebacks_enabled()
    lib.set_tracebacks_enabled(False)
    try:
        assert lib.Traceback.get_traceback() is None and not lib.tracebacks_enabled()
    finally:
        lib.set_tracebacks_enabled(before)
    assert lib.Traceback.get_traceback() is not None


def test_they_are_taken_in_one_way():
    assert xla_client.Traceback is ours.Traceback
    with pytest.raises(TypeError):
        ours.Traceback()
