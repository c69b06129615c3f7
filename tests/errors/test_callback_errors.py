"""What code that programs call raises: a `JaxRuntimeError` of the user's own class too, with the traceback's text."""

import pickle

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax.errors import JaxRuntimeError
from ferrax.experimental import io_callback

SHAPE = jax.ShapeDtypeStruct((), np.float32)


class Told(KeyError):
    """An error with more to it than a text."""

    def __init__(self, key, *, depth):
        super().__init__(key)
        self.depth = depth


class Fixed(Exception):
    """A class that cannot be derived from together with another."""

    __slots__ = ("there",)

    def __init_subclass__(cls, **kwargs):
        raise TypeError("nobody derives from it")


def raising(error):
    def refuse(*_):
        raise error

    return refuse


CALLS = {
    "pure": lambda f, x: jax.pure_callback(f, SHAPE, x, vmap_method="sequential"),
    "io": lambda f, x: io_callback(f, SHAPE, x),
    "ordered": lambda f, x: io_callback(f, None, x, ordered=True),
    "debug": lambda f, x: jax.debug.callback(f, x),
}
PROGRAMS = {
    "eager": lambda f: f(1.0),
    "jit": lambda f: jax.jit(f)(1.0),
    "scan": lambda f: jax.lax.scan(lambda c, _: (f(c), c)[::-1], 1.0, None, length=2),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("call", CALLS)
def test_both_classes_are_caught(call, program):
    own = Told("where", depth=3)
    with pytest.raises(Told) as caught:
        jax.block_until_ready(PROGRAMS[program](lambda x: CALLS[call](raising(own), x)))
    got = caught.value
    if (call, program) == ("debug", "eager"):  # it is called by itself, as in JAX
        assert got is own
        return
    assert isinstance(got, JaxRuntimeError) and got.raised is own and got.depth == 3
    lines = str(got).splitlines()
    assert lines[0] == "INTERNAL: CpuCallback error calling callback: Traceback (most recent call last):"
    assert lines[-1].endswith("Told: 'where'") and "in refuse" in lines[1]
    assert not any("_callbacks.py" in line for line in lines)
    assert got.error_code_string == "INTERNAL" and type(got).__name__ == "JaxRuntimeError"


def test_what_built_in_classes_keep_stays():
    missing = FileNotFoundError(2, "not there", "a.txt")
    with pytest.raises(FileNotFoundError) as caught:
        CALLS["pure"](raising(missing), 1.0)
    assert (caught.value.errno, caught.value.filename) == (2, "a.txt") and isinstance(caught.value, JaxRuntimeError)
    assert pickle.loads(pickle.dumps(caught.value)).filename == "a.txt"
    text = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "why")
    with pytest.raises(JaxRuntimeError, match="why"):
        CALLS["pure"](raising(text), 1.0)


@pytest.mark.parametrize("error", [Fixed("as it is"), KeyboardInterrupt(), SystemExit(3)], ids=repr)
def test_what_cannot_be_both_stays_itself(error):
    with pytest.raises(type(error)) as caught:
        jax.jit(lambda x: CALLS["pure"](raising(error), x))(1.0)
    assert caught.value is error


def test_programs_in_callbacks_are_told_once():
    inner = jax.jit(lambda x: CALLS["pure"](raising(ValueError("deep")), x))
    with pytest.raises(ValueError, match="deep") as caught:
        jax.jit(lambda x: CALLS["pure"](lambda v: inner(v), x))(1.0)
    assert str(caught.value).count("INTERNAL") == 1


def test_results_of_another_structure():
    with pytest.raises(JaxRuntimeError, match="structure"):
        jax.jit(lambda x: jax.pure_callback(lambda v: (v, v), SHAPE, x))(jnp.float32(1))
    with pytest.raises(JaxRuntimeError, match="dtype"):
        jax.jit(lambda x: jax.pure_callback(lambda v: "text", SHAPE, x))(jnp.float32(1))
