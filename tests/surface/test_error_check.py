"""Errors that programs note, and that are raised afterwards (`jax._src.error_check`)."""

import traceback

import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax._src import error_check
from ferrax._src.error_check import JaxValueError, raise_if_error, set_error_if

RUNS = pytest.mark.parametrize("run", [lambda f: f, jax.jit], ids=["eager", "jit"])


@pytest.fixture(autouse=True)
def nothing_noted():
    with error_check.error_checking_context():
        yield


def positive(x):
    set_error_if(x <= 0, "not positive")  # the line that is shown
    return x + 1


@RUNS
def test_an_error_is_raised_when_it_is_asked_for(run):
    f = run(positive)
    assert f(jnp.arange(3.0)).tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(JaxValueError, match=r"^not positive$") as found:
        raise_if_error()
    shown = "".join(traceback.format_tb(found.value.__traceback__))
    assert "in positive\n" in shown and "the line that is shown" in shown
    raise_if_error()  # it is forgotten
    f(jnp.ones(3))
    raise_if_error()


@RUNS
def test_the_first_error_counts(run):
    first = run(lambda x: set_error_if(x > 1, "first"))
    second = run(lambda x: set_error_if(x > 0, "second"))
    first(1.0), second(1.0), first(2.0)
    with pytest.raises(JaxValueError, match="second"):
        raise_if_error()


@RUNS
def test_errors_are_noted_in_branches_and_loops(run):
    def other(x):
        set_error_if(x == 0, "zero")
        return x

    def small(c, x):
        set_error_if(x >= 3, "too large")
        return c + x, x

    programs = [
        (lambda x: lax.cond(jnp.all(x == 0), positive, other, x), "not positive"),
        (lambda x: lax.cond(jnp.any(x != 0), positive, other, x), "zero"),
        (lambda x: lax.while_loop(lambda x: jnp.any(x < 2), positive, x), "not positive"),
        (lambda x: lax.scan(small, 0, jnp.arange(4)), "too large"),
    ]
    for program, text in programs:
        run(program)(jnp.zeros(2))
        with pytest.raises(JaxValueError, match=text):
            raise_if_error()
    run(lambda: lax.scan(small, 0, jnp.arange(3)))()
    raise_if_error()


def test_it_cannot_be_asked_in_a_trace():
    positive(jnp.ones(2))
    with pytest.raises(ValueError, match="should not be called within a traced context"):
        jax.jit(raise_if_error)()


def test_contexts_have_errors_of_their_own():
    with error_check.error_checking_context():
        positive(jnp.zeros(2))
    raise_if_error()


def test_exported_functions_give_their_errors():
    x = jax.ShapeDtypeStruct((), jnp.float32)
    exported = jax.export.export(jax.jit(error_check.wrap_for_export(jax.jit(positive))))(x)
    again = jax.export.deserialize(exported.serialize())
    f = jax.jit(error_check.unwrap_from_import(again.call))
    assert f(jnp.float32(2)) == 3
    raise_if_error()
    f(jnp.float32(-2))
    with pytest.raises(JaxValueError, match=r"^not positive\nThe original traceback") as found:
        raise_if_error()
    assert "in positive" in str(found.value) and "the line that is shown" in str(found.value)
    set_error_if(jnp.array(True), "mine")  # what is noted already stays
    f(jnp.float32(-2))
    with pytest.raises(JaxValueError, match=r"^mine$"):
        raise_if_error()


def test_a_number_of_no_error():
    wrong = error_check._ErrorClass(jnp.uint32(999), [])
    error_check.unwrap_from_import(lambda: (None, wrong))()
    with pytest.raises(JaxValueError, match=r"(?s)unknown error .*Traceback not available"):
        raise_if_error()
