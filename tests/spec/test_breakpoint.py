"""`debug.breakpoint`: its debugger shows the user's variables with the values of the run."""

from __future__ import annotations

import io
import linecache

import pytest

import ferrax as jax
import ferrax.numpy as jnp

SOURCE = """
import ferrax as jax, ferrax.numpy as jnp
kept = []

def inner(q, text):
    tree = {"twice": q * 2, "text": text}
    jax.debug.breakpoint(**options)
    return tree["twice"]

def outer(x):
    y = x + 1
    return inner(y, "word")

def leaving(x):
    kept.append(x)
    return x

def beside_a_leak(x):
    leak, odd, reference, knot = kept[0], {1: x, "a": x}, jax.new_ref(x), [x]
    knot.append(knot)
    jax.debug.breakpoint()
    return x
"""


@pytest.fixture
def program():
    """The functions, in a file that the debugger can read."""
    linecache.cache["stops.py"] = (len(SOURCE), None, SOURCE.splitlines(True), "stops.py")
    names = {"options": {}, "__name__": "stops"}
    exec(compile(SOURCE, "stops.py", "exec"), names)
    yield names
    del linecache.cache["stops.py"]


def told(monkeypatch, capsys, call, *commands):
    """What the debugger answers to each command."""
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(commands) + "\n"))
    call()
    jax.effects_barrier()
    first, *answers = capsys.readouterr().out.split("(jdb) ")
    assert first == "Entering jdb:\n"
    return [answer.rstrip("\n") for answer in answers]


TRANSFORMS = {
    "eager": (lambda f: f, 2.0, ["3.0", "6.0"]),
    "jit": (jax.jit, 2.0, ["Array(3., dtype=float32)", "Array(6., dtype=float32)"]),
    "jit of grad": (lambda f: jax.jit(jax.grad(f)), 2.0, ["Array(3., dtype=float32)", "Array(6., dtype=float32)"]),
    "scan": (
        lambda f: lambda x: jax.lax.scan(lambda c, v: (c, f(v)), 0, x),
        jnp.ones(1),
        ["Array(2., dtype=float32)", "Array(4., dtype=float32)"],
    ),
    "vmap": (jax.vmap, jnp.ones(1), ["Array(2., dtype=float32)", "Array(4., dtype=float32)"]),
    "cond": (
        lambda f: lambda x: jax.lax.cond(x > 0, f, lambda x: x, x),
        2.0,
        ["Array(3., dtype=float32)", "Array(6., dtype=float32)"],
    ),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_variables_have_the_values_of_the_run(name, program, monkeypatch, capsys):
    transform, x, (q, twice) = TRANSFORMS[name]
    call = lambda: transform(program["outer"])(x)
    got = told(monkeypatch, capsys, call, "p q", "p tree['twice']", "text", "u", "p y - x", "d", "p y", "c")
    assert got[0] == q and got[1] in (twice, f"Array({twice[0]}., dtype=float32, weak_type=True)")
    assert got[2] == "'word'" and got[3].startswith("> stops.py(12)\n") and got[4].startswith(("1.0", "Array(1., "))
    assert got[5].startswith("> stops.py(7)\n") and got[6] == "*** NameError: name 'y' is not defined"


def test_places(program, monkeypatch, capsys):
    got = told(monkeypatch, capsys, lambda: jax.jit(program["outer"])(1.0), "list", "where", "args", "help p", "", "c")
    assert got[0].splitlines() == [
        "> stops.py(7)",
        "    def inner(q, text):",
        '        tree = {"twice": q * 2, "text": text}',
        "->      jax.debug.breakpoint(**options)",
        '        return tree["twice"]',
        "    ",
    ]
    where = got[1].splitlines()
    assert where[0] == "Traceback:"
    assert where[-2:] == ['  File "stops.py", line 7', "    jax.debug.breakpoint(**options)"]
    assert where[-4:-2] == ['  File "stops.py", line 12', '    return inner(y, "word")']
    assert not any("ferrax/" in line for line in where if "tests" not in line)
    assert got[2].splitlines()[:2] == ["q = Array(2., dtype=float32)", "text = 'word'"]
    assert got[3].startswith("p expression") and got[4] == ""


def test_commands_come_from_files_that_are_given(program):
    stdin, stdout = io.StringIO("p q\nc\n"), io.StringIO()
    program["options"].update(stdin=stdin, stdout=stdout, backend="cli")
    jax.jit(program["outer"])(1.0)
    jax.effects_barrier()
    assert stdout.getvalue() == "Entering jdb:\n(jdb) Array(2., dtype=float32)\n(jdb) "


def test_frames_can_be_bounded_and_shown_whole(program, monkeypatch, capsys):
    program["options"]["num_frames"] = 1
    got = told(monkeypatch, capsys, lambda: program["outer"](1.0), "u", "c")
    assert got[0].startswith("At topmost frame.\n> stops.py(7)")
    program["options"].update(num_frames=None, filter_frames=False)
    assert "_derivatives.py" in told(monkeypatch, capsys, lambda: jax.jacfwd(program["outer"])(1.0), "where", "c")[0]


def test_each_row_of_a_map_stops(program, monkeypatch, capsys):
    got = told(monkeypatch, capsys, lambda: jax.vmap(program["outer"])(jnp.arange(2.0)), "p q", "c", "p q", "c")
    assert [g.split("\n")[0] for g in got] == [
        "Array(1., dtype=float32)",
        "Entering jdb:",
        "Array(2., dtype=float32)",
        "",
    ]


def test_values_that_are_no_operands_are_shown_as_they_are(program, monkeypatch, capsys):
    jax.jit(program["leaving"])(1)
    got = told(
        monkeypatch,
        capsys,
        lambda: jax.jit(program["beside_a_leak"])(1.0),
        "p x",
        "p odd[1]",
        "p leak is kept[0]",
        "p knot[1] is knot",
        "c",
    )
    assert got[0].startswith("Array(1.") and "Tracer" in got[1] and got[2] == got[3] == "True"


@pytest.mark.parametrize("commands", [["q"], ["p q"]], ids=["quit", "the end of the input"])
def test_what_ends_the_process(program, monkeypatch, capsys, commands):
    with pytest.raises(SystemExit):
        told(monkeypatch, capsys, lambda: program["outer"](1.0), *commands)


def test_other_backends_are_refused(program):
    program["options"]["backend"] = "web"
    with pytest.raises(NotImplementedError, match="'web'"):
        program["outer"](1.0)
