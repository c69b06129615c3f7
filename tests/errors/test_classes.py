"""The exception classes: bases, constructors and texts as JAX's, pickling, and panics as exceptions."""

import gc
import inspect
import pickle
import subprocess
import sys
import weakref

import pytest

import ferrax
from ferrax import _ferrax, errors

jax = pytest.importorskip("jax")

SHARED = [name for name in errors.__all__ if hasattr(jax.errors, name)]
TRACER_CLASSES = [
    "ConcretizationTypeError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "TracerArrayConversionError",
    "NonConcreteBooleanIndexError",
]


class FakeTracer:
    def _error_repr(self):
        return "traced array with shape float32[3]"

    def _origin_msg(self):
        return "\nIt depends on x."

    def __str__(self):
        return "Traced<float32[3]>"


def test_every_class_of_jax_is_there():
    names = {n for n in dir(jax.errors) if isinstance(getattr(jax.errors, n), type)}
    assert names <= set(errors.__all__)


@pytest.mark.parametrize("name", SHARED)
def test_bases_and_signature(name):
    ours, theirs = getattr(errors, name), getattr(jax.errors, name)
    assert [c.__name__ for c in ours.__mro__] == [c.__name__ for c in theirs.__mro__]
    assert ours.__module__ == "ferrax.errors"
    assert ours.__doc__.strip()
    if "__init__" in theirs.__dict__ and name != "JaxRuntimeError":
        assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)


@pytest.mark.parametrize("name", TRACER_CLASSES)
def test_text_from_a_tracer(name):
    def text(module):
        return getattr(module, name)(FakeTracer()).args[0].split("See ")[0].strip()

    ours, theirs = text(errors), text(jax.errors)
    # JAX's text, and then what to do instead
    assert ours.startswith(theirs)
    assert (ours == theirs) is (name == "NonConcreteBooleanIndexError")


def test_context():
    error = errors.ConcretizationTypeError(FakeTracer(), "the axis argument")
    assert error.args == errors.ConcretizationTypeError(tracer=FakeTracer(), context="the axis argument").args
    assert "the axis argument" in str(error)


@pytest.mark.parametrize("name", errors.__all__)
def test_pickle(name):
    error = getattr(errors, name)("some text")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert copy.args == error.args


def test_see_line_names_the_public_class():
    class Mine(errors.ConcretizationTypeError):
        pass

    assert str(Mine("text")) == "text\nSee help(ferrax.errors.ConcretizationTypeError)."


def test_wrong_arguments():
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'tracer'"):
        errors.ConcretizationTypeError()
    with pytest.raises(TypeError, match=r"takes 2 positional arguments but 3 were given"):
        errors.TracerBoolConversionError(FakeTracer(), 1)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'y'"):
        errors.TracerBoolConversionError(FakeTracer(), y=1)
    with pytest.raises(TypeError, match=r"multiple values for argument 'tracer'"):
        errors.TracerBoolConversionError(FakeTracer(), tracer=1)


@pytest.mark.parametrize("args", [(), ("text",), ("text", 3), (None, 8), ("text", 99)])
def test_runtime_error(args):
    ours, theirs = errors.JaxRuntimeError(*args), jax.errors.JaxRuntimeError(*args)
    for name in ["args", "error_code", "error_code_string", "error_message"]:
        assert getattr(ours, name) == getattr(theirs, name)


@pytest.mark.parametrize("guarded", [True, False])
def test_a_panic_is_an_exception(guarded, capfd):
    with pytest.raises(ferrax.errors.InternalError, match=r"bug in ferrax.*asked for by a test(.|\n)*report"):
        _ferrax._panic_for_tests(guarded)
    assert ("asked for by a test" in capfd.readouterr().err) is not guarded


PANICS = """
import threading
import ferrax as jax, ferrax.numpy as jnp
from ferrax import _ferrax

def panicking(x):
    _ferrax._panic_for_tests(True)
    return x

def attempt(run):
    try:
        run()
    except jax.errors.InternalError as error:
        assert isinstance(error, RuntimeError) and "report" in str(error)
        caught.append(error)

caught = []
transformed = [
    lambda: _ferrax._panic_for_tests(True), lambda: panicking(1.0), lambda: jax.jit(panicking)(1.0),
    lambda: jax.grad(panicking)(1.0), lambda: jax.vmap(panicking)(jnp.ones(3)), lambda: jax.make_jaxpr(panicking)(1.0),
    lambda: jax.lax.scan(lambda c, x: (panicking(c), x), 0.0, jnp.ones(3)),
    lambda: jax.jit(lambda x: jax.pure_callback(panicking, x, x))(jnp.ones(3)),
]
for run in transformed:
    attempt(run)
    # nothing of the failed trace is in force
    assert isinstance(jnp.ones(3) + 1, jax.Array) and float(jax.jit(jax.grad(lambda x: x * x))(3.0)) == 6.0
threads = [threading.Thread(target=attempt, args=(run,)) for run in transformed]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(len(caught), "panics,", float(jnp.sum(jnp.arange(4.0))))
"""


def test_a_process_survives_panics():
    """A panic anywhere, on any thread, inside any transformation: an exception, and the process goes on."""
    done = subprocess.run([sys.executable, "-c", PANICS], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "16 panics, 6.0\n"


def test_internal_errors_without_text():
    assert "no details" in str(ferrax.errors.InternalError())


def test_callables_look_like_functions():
    init = errors.JAXTypeError.__dict__["__init__"]
    assert init.__name__ == "__init__"
    assert str(inspect.signature(init)) == "(self, message)"
    init.extra = 1
    assert init.__dict__["extra"] == 1
    del init.extra
    assert not hasattr(init, "extra")
    assert init.__get__(None, int) is init


def test_callables_are_collected():
    function = _ferrax.tree_function("leaves")
    function.itself = function
    ref = weakref.ref(function)
    assert function([1]) == [1]
    del function
    gc.collect()
    assert ref() is None


def test_callables_bind_when_they_are_methods():
    method, function = errors.JAXTypeError.__dict__["__init__"], _ferrax.tree_function("leaves")
    holder = type("Holder", (), {"method": method, "function": function})()
    assert holder.method.__self__ is holder
    assert holder.function.__self__ is holder and holder.function() == [holder]
