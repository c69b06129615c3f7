"""What JAX says, recorded: tests ask `expected(compute, *args)` for `compute(jax, *args)`, and no JAX runs.

JAX compiles each program for a good part of a second, several gigabytes stay with it, and its answers never change.
So they lie in `tests/recordings`, one file for each file of tests, and JAX is not even imported where all are there.
`make record` (FERRAX_RECORD=1) asks JAX again and writes them; `make test-live` (FERRAX_LIVE=1) asks JAX and compares
with that. An answer is found by the test's name and the fingerprint of the question (`fingerprints.py`): where the
question changed, the test fails and says what to do, as it does where another version of JAX was recorded.

Answers have one form in all three modes. Containers and numbers are themselves; JAX's arrays are NumPy's that know
their weak type (`Answer`); errors have the class names of JAX's and are raised.

A file is JSON, sorted, compressed with xz: recording twice gives the same bytes.
"""

import builtins
import collections
import functools
import importlib
import json
import lzma
import os
import pathlib
import re
import sys
import tomllib

import ml_dtypes
import numpy as np
import pytest

from tests.fingerprints import fingerprint

TESTS = pathlib.Path(__file__).parent
FOLDER = TESTS / "recordings"
RECORD = os.environ.get("FERRAX_RECORD") == "1"
LIVE = RECORD or os.environ.get("FERRAX_LIVE") == "1"


class Answer(np.ndarray):
    """An array of JAX's: its values, dtype, shape and weak type."""

    weak_type = False

    def __array_finalize__(self, other):
        self.weak_type = getattr(other, "weak_type", False)


@functools.cache
def pinned():
    """The version of JAX that the tests are held against, as pyproject.toml names it."""
    project = tomllib.loads((TESTS.parent / "pyproject.toml").read_text())["project"]
    (jax,) = [d for d in project["optional-dependencies"]["test"] if d.startswith("jax==")]
    return jax.removeprefix("jax==")


# ---- answers as JSON -------------------------------------------------------------------------------------------------


def encode(value):
    """JSON of an answer: a value that is no JSON is a list of its kind and parts."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, complex):
        return ["complex", value.real, value.imag]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return ["named", type(value).__name__, list(value._fields), *map(encode, value)]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(encode, value)]
    if isinstance(value, slice):
        return ["slice", *map(encode, (value.start, value.stop, value.step))]
    if isinstance(value, dict):
        return ["dict", *([encode(k), encode(v)] for k, v in value.items())]
    if isinstance(value, (np.dtype, type)):
        return ["dtype", np.dtype(value).name]
    if hasattr(value, "dtype") and isinstance(value.dtype, np.dtype) and value.dtype != object:
        array = np.asarray(value)
        kind = "scalar" if isinstance(value, np.generic) else "array"
        weak = bool(value.weak_type) if hasattr(value, "weak_type") else None
        return [kind, array.dtype.name, list(array.shape), weak, np.ascontiguousarray(array).tobytes().hex()]
    raise TypeError(f"a {type(value).__module__}.{type(value).__qualname__} cannot be recorded: {value!r}")


def decode(code):
    """The answer of its JSON."""
    if not isinstance(code, list):
        return code
    kind, *parts = code
    if kind == "complex":
        return complex(*parts)
    if kind == "named":
        return collections.namedtuple(parts[0], parts[1])(*map(decode, parts[2:]))
    if kind == "slice":
        return slice(*map(decode, parts))
    if kind in ("list", "tuple"):
        return {"list": list, "tuple": tuple}[kind](map(decode, parts))
    if kind == "dict":
        return {decode(k): decode(v) for k, v in parts}
    if kind == "dtype":
        return dtype_of(parts[0])
    name, shape, weak, data = parts
    array = np.frombuffer(bytes.fromhex(data), dtype_of(name)).reshape(shape)
    if kind == "scalar":
        return array[()]
    if weak is None:
        return array
    answer = array.view(Answer)
    answer.weak_type = weak
    return answer


def dtype_of(name):
    """The dtype of a name of NumPy's or of ml_dtypes'."""
    return np.dtype(getattr(ml_dtypes, name, name))


def encode_error(error):
    """The names of an error's classes, and its text without what differs from machine to machine."""
    text = re.sub(r"0x[0-9a-f]+", "0x", str(error))
    for path in {str(TESTS.parent), sys.prefix, sys.base_prefix}:
        text = text.replace(path, "")
    return ["error", [c.__name__ for c in type(error).__mro__], text]


@functools.cache
def error_class(*names):
    """A class with these names of classes in its line of ancestors; those that Python has are Python's."""
    made = object
    for name in reversed(names):
        known = getattr(builtins, name, None)
        if isinstance(known, type):
            made = known if issubclass(known, made) else made
        else:
            made = type(name, (made,), {})
    return made


# ---- files -----------------------------------------------------------------------------------------------------------


def path_of(file):
    """Where the answers for a file of tests lie."""
    return FOLDER / pathlib.Path(file).relative_to("tests").with_suffix(".json.xz")


def read(path):
    """``{"jax": version, "tests": {test: {fingerprint: answer}}}`` of a file."""
    return json.loads(lzma.decompress(path.read_bytes()))


@functools.cache
def recording(file):
    """The recording of a file of tests, None where there is none."""
    return read(path_of(file)) if path_of(file).exists() else None


#: {file of tests: {test: {fingerprint: answer}}} of this run, to be written at its end.
_asked = collections.defaultdict(lambda: collections.defaultdict(dict))


def save():
    """Writes what was recorded; tests of the same files that did not run keep their answers."""
    for file, tests in _asked.items():
        path, old = path_of(file), recording(file)
        kept = old["tests"] if old and old["jax"] == pinned() else {}
        new = {"jax": pinned(), "tests": {**kept, **tests}}
        if new != old:
            text = json.dumps(new, sort_keys=True, indent=0)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    _asked.clear()


# ---- questions -------------------------------------------------------------------------------------------------------


def expected(compute, *args):
    """The answer of ``compute(jax, *args)``.

    Args:
        compute: a function of the module `jax`. It reads nothing but its arguments, what it closes over and globals.
            64-bit dtypes are enabled in JAX while it runs where they are in ferrax.
        args: numbers, texts, NumPy's arrays, containers of these, functions.

    Returns:
        what it returned, with `Answer` for arrays.

    Raises:
        Exception: what it raised, by the names of its classes.
        pytest.fail.Exception: there is no recorded answer to this question. No `except Exception` catches that.
    """
    return answered(*running(), compute, args)


def shared(compute, *args):
    """As `expected`, for what the tests of a file share: the answer is the file's, whichever test asks for it first."""
    return answered(running()[0], "all", compute, args)


def running():
    """The file of the running test, and its name there."""
    # pytest names it here: "tests/lax/test_windows.py::test_name[parameters] (call)"
    file, test = os.environ["PYTEST_CURRENT_TEST"].rsplit(" ", 1)[0].split("::", 1)
    return file, test


def answered(file, test, compute, args):
    """The answer to a test's question."""
    import ferrax

    wide = bool(ferrax.config.jax_enable_x64)
    key = None if LIVE and not RECORD else fingerprint(wide, compute, args)
    if LIVE:
        code = ask(compute, args, wide)
        if RECORD:
            # through the text, as a reader will have it
            _asked[file][test][key] = code = json.loads(json.dumps(code))
    else:
        code = look_up(file, test, key)
    if isinstance(code, list) and code[0] == "error":
        raise error_class(*code[1])(code[2])
    return decode(code)


def both(compute, *args):
    """``(compute(ferrax, *args), expected(compute, *args))``, whose errors are raised."""
    import ferrax

    return compute(ferrax, *args), expected(compute, *args)


#: Modules that questions read as attributes of `jax`.
SUBMODULES = ("ad_checkpoint", "custom_batching", "flatten_util")


def ask(compute, args, wide):
    """JAX's answer as JSON."""
    jax = pytest.importorskip("jax")
    for name in SUBMODULES:
        importlib.import_module(f"jax.{name}")
    assert jax.__version__ == pinned(), f"JAX {jax.__version__} is installed, pyproject.toml names {pinned()}"
    try:
        with jax.enable_x64(wide):
            answer = jax.block_until_ready(compute(jax, *args))
    except Exception as error:
        return encode_error(error)
    return encode(answer)


def look_up(file, test, key):
    """The recorded answer; where there is none the test fails."""
    found = recording(file)
    if found is None or test not in found["tests"]:
        pytest.fail(f"nothing is recorded for {file}::{test}: run `make record` (tests/recorded.py)")
    if found["jax"] != pinned():
        pytest.fail(f"{file} is recorded from JAX {found['jax']}, not from {pinned()}: run `make record`")
    if key not in found["tests"][test]:
        pytest.fail(
            f"the recording of {file}::{test} is stale, another question was asked: run `make record`. Where that "
            "helps on one machine alone, the inputs are what NumPy rounds by the processor: take exact ones"
        )
    return found["tests"][test][key]
