"""Scripted mistakes (`mistakes.py`): the class is one that JAX's callers catch, the text helps, no library frame shows.

Each program runs on ferrax and on JAX, and ferrax's class is a subclass of the builtin one that JAX's is.
"""

import inspect
import os
import pathlib
import subprocess
import sys
import traceback

import mistakes
import pytest

import ferrax

jax = pytest.importorskip("jax")

LIBRARY = str(pathlib.Path(ferrax.__file__).parent) + os.sep
BUILTIN = (
    ValueError,
    TypeError,
    IndexError,
    AttributeError,
    RuntimeError,
    FloatingPointError,
    NotImplementedError,
    OverflowError,
)
PARAMS = [pytest.param(m, id=m.name) for m in mistakes.MISTAKES if m.devices == 1]


def run(mistake, library):
    """The exception of a program; `None` when it passes."""
    try:
        mistake.program(library, library.numpy, library.lax)
    except Exception as error:
        return error
    return None


def family(error):
    """The builtin class that a caller would catch."""
    return next(c for c in type(error).__mro__ if c in BUILTIN)


@pytest.mark.parametrize("mistake", PARAMS)
def test_mistake(mistake):
    check(mistake)


def check(mistake):
    ours, theirs = run(mistake, ferrax), run(mistake, jax)
    assert ours is not None, "ferrax lets it pass"
    if mistake.jax is None:
        assert theirs is not None, "JAX lets it pass"
        assert isinstance(ours, family(theirs)), f"{type(ours)} is no {family(theirs)}"
    else:
        assert (None if theirs is None else family(theirs)) is mistake.jax
    text = str(ours)
    assert [word for word in mistake.says if word not in text] == []
    names = [entry.filename for entry in traceback.extract_tb(ours.__traceback__)]
    assert [name for name in names if name.startswith(LIBRARY)] == []
    assert LIBRARY not in "".join(traceback.format_exception(ours))


def test_there_are_sixty():
    assert len(mistakes.MISTAKES) >= 60


def test_mistakes_on_two_devices():
    """Runs the mistakes that need two devices in a process that has them."""
    program = (
        "import jax, ferrax, mistakes, test_messages\n"
        "several = [m for m in mistakes.MISTAKES if m.devices > 1]\n"
        "assert several and len(ferrax.devices()) == 2\n"
        "for m in several:\n    test_messages.check(m)\n"
    )
    path = os.pathsep.join([str(pathlib.Path(__file__).parent), *sys.path])
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run([sys.executable, "-c", program], check=False, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_names_that_are_almost_right(capsys):
    """Python's own display of the error says what is spelled almost like it."""
    for module, name, near in [
        (ferrax.numpy, "sine", "sin"),
        (ferrax, "vmapp", "vmap"),
        (ferrax.lax, "scann", "scan"),
        (ferrax.random, "unifrom", "uniform"),
        (ferrax.nn, "rel", "relu"),
    ]:
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'") as caught:
            getattr(module, name)
        sys.__excepthook__(AttributeError, caught.value, None)
        assert capsys.readouterr().err.rstrip().endswith(f"Did you mean: '{near}'?")


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("jax_enable_x65", "jax_enable_x64"),
        ("jax_enable_64", "jax_enable_x64"),
        ("enable_x64", "jax_enable_x64"),
        ("jax_debug_nan", "jax_debug_nans"),
        ("jax_numpy_rank_promtion", "jax_numpy_rank_promotion"),
        ("ferrax_strict_numeric", "ferrax_strict_numerics"),
        ("something_else", None),
        ("", None),
    ],
)
def test_settings_that_are_almost_right(wrong, near):
    with pytest.raises(AttributeError) as caught:
        ferrax.config.update(wrong, True)
    assert str(caught.value) == f"Unrecognized config option: {wrong}." + (f" Did you mean {near}?" if near else "")


class Nonsense:
    """Nothing that a function of the library takes."""


def nonsensical_calls():
    """The public functions that need arguments, with how many they need."""
    from test_docstrings import OBJECTS

    # these look at no argument before they are used, stop the program, or begin what lasts
    harmless = (
        "breakpoint",
        "register_",
        "debug.",
        "disable_jit",
        "named_",
        "_guard",
        "profiler.start_",
        "profiler.trace",
    )
    for name, function in OBJECTS.items():
        if isinstance(function, (type, type(ferrax.enable_x64))) or any(word in name for word in harmless):
            continue
        parameters = inspect.signature(function).parameters.values()
        count = sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
        if count:
            yield name, function, count


# what takes programs, equations and traces apart: for authors of libraries, who get Python's own errors, as in JAX
INNER = (
    "ferrax.core.",
    "ferrax.api_util.",
    "ferrax.interpreters.",
    "ferrax.extend.",
    "ferrax.experimental.jet.linear_prop",
    "ferrax.experimental.jet.zero_prop",
    "ferrax.experimental.rnn.rnn_abstract_eval",
    "ferrax.experimental.sparse.transform.",
)


@pytest.mark.parametrize("value", [Nonsense(), "seven", None], ids=["object", "str", "None"])
def test_nonsense(value, tmp_path, monkeypatch):
    """Whatever a function is given, its error says what is wrong with the call, and shows no library frame."""
    monkeypatch.chdir(tmp_path)  # where "seven" may be the name of a file
    wrong = []
    usual = (TypeError, ValueError, IndexError, NotImplementedError, NameError, FileNotFoundError)
    also = {
        "ferrax.experimental.multihost_utils.reached_preemption_sync_point": RuntimeError,
        "ferrax.lax.padtype_to_pads": RuntimeError,
        "ferrax.numpy.from_dlpack": AttributeError,
        "ferrax.lax.conv_shape_tuple": RuntimeError,
        "ferrax.sharding.make_single_device_sharding": RuntimeError,
    }
    for name, function, count in nonsensical_calls():
        try:
            function(*[value] * count)
        except Exception as error:
            frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(LIBRARY)]
            if name.startswith(INNER):
                continue
            if frames or not isinstance(error, (*usual, also.get(name, TypeError))):
                wrong.append((name, error, frames[-1:]))
    assert wrong == []


@pytest.mark.parametrize("value", ["off", "auto"])
def test_filtering_is_a_setting(value):
    """With filtering off, the library's frames are shown."""
    with pytest.raises(ValueError, match="jax_traceback_filtering"):
        ferrax.config.update("jax_traceback_filtering", "never")
    ferrax.config.update("jax_traceback_filtering", value)
    try:
        error = run(next(m for m in mistakes.MISTAKES if m.name == "negative_shape"), ferrax)
        names = [entry.filename for entry in traceback.extract_tb(error.__traceback__)]
        assert any(name.startswith(LIBRARY) for name in names) is (value == "off")
    finally:
        ferrax.config.update("jax_traceback_filtering", "auto")


def test_frames_of_the_user_stay():
    """A mistake inside a function that the library calls shows the user's frames, inside and outside."""

    def body(carry, x):
        return carry.no_such_method(), x

    def program():
        return ferrax.lax.scan(body, 0.0, ferrax.numpy.ones(3))

    with pytest.raises(AttributeError) as caught:
        program()
    names = [entry.name for entry in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-2:] == ["program", "body"]
