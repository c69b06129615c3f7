"""Arrays and programs on an engine that is not the embedded CPU: the one of tests/engine, in processes of their own.

An extension that was built without it (`make develop` with the release profile) leaves these out.
"""

import pytest

from tests.spec.backend import run_program

START = """

from ferrax import _ferrax
here, cpu = jax.devices("interpreter"), jax.devices("cpu")[0]
"""


def run(text, mode="async", **environment):
    """What a program prints in a process with the engine."""
    return run_program(START + text, FERRAX_TEST_ENGINE=mode, **environment).strip()


@pytest.fixture(autouse=True)
def engine():
    if "True" not in run_program("from ferrax import _ferrax; print(hasattr(_ferrax, '_inject_fault'))",
                                 FERRAX_TEST_ENGINE="async"):  # fmt: skip
        pytest.skip("the extension was built without the engine for tests")


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_devices_and_placement(mode):
    assert run(
        """
assert [d.id for d in here] == [0, 1, 2] and here[0] != cpu and jax.default_backend() == "cpu"
x = jax.device_put(jnp.arange(6.0), here[1])
assert repr(x.device) == "InterpreterDevice(id=1)" and str(x.device) == "interpreter:1" and x.committed
assert x.sharding.device_set == {here[1]}
results = [x + 1, x[2], x[1:3], x.at[1].set(5.0), x.reshape(2, 3), jnp.sort(-x), *x, jax.grad(lambda x: x @ x)(x)]
assert {r.device for r in results} == {here[1]}
for r, wanted in zip(results, [np.arange(6) + 1, 2, [1, 2], [0, 5, 2, 3, 4, 5], [[0, 1, 2], [3, 4, 5]]]):
    np.testing.assert_array_equal(r, wanted)
back = jax.device_put(x, cpu)
assert back.device == cpu and (back + 1).device == cpu
with jax.default_device(here[2]):
    assert jnp.zeros(3).device == here[2] == jax.jit(lambda: jnp.ones(2))().device
assert here[0].memory_stats()["bytes_in_use"] == 0 and here[1].memory_stats()["bytes_in_use"] >= 24
print("well")
""",
        mode,
    ) == "well"  # fmt: skip


def test_platforms_that_are_not_there():
    text = run("""
for name in ("tpu", "cuda"):
    try:
        jax.devices(name)
    except RuntimeError as e:
        print(e)
""")
    assert text.count("Available backends are ['cpu', 'interpreter']") == 2 and "Unknown backend tpu." in text


def test_the_platform_that_computes_by_default_is_a_setting():
    text = run("""
jax.config.update("jax_platforms", "interpreter,cpu")
print(jnp.ones(2).device, jax.default_backend())
jax.config.update("jax_platforms", None)
print(jnp.ones(2).device)
try:
    jax.config.update("jax_platforms", "cpu,tpu")
except RuntimeError as e:
    print(e)
""")
    assert text.startswith("interpreter:0 interpreter\ncpu:0\nUnknown backend tpu. Available"), text
    assert run("print(jnp.ones(2).device)", FERRAX_PLATFORMS="interpreter") == "interpreter:0"


def test_memory_of_a_device_is_not_the_hosts():
    text = run("""
x = jax.device_put(jnp.arange(3), here[0])
for ask in (lambda: x.__dlpack__(), x.unsafe_buffer_pointer):
    try:
        ask()
    except BufferError as e:
        print(e)
print(np.asarray(x), x.tolist(), int(x[1]))
""")
    assert text.count("jax.device_put it on a CPU device first") == 2 and text.endswith("[0 1 2] [0, 1, 2] 1")


@pytest.mark.parametrize("point", ["upload", "compile", "run", "node", "download"])
def test_a_fault_is_an_error_at_the_use_that_names_the_call(point):
    text = run(f"""
def program():
    x = jax.device_put(jnp.arange(30.0), here[0])
    y = jax.jit(lambda x: jnp.sin(x).sum() + x)(x)  # the call
    return y.tolist()

import time
wanted = program()
held = _ferrax._bytes_in_use()
_ferrax._inject_fault({point!r}, 0)
try:
    program()
except RuntimeError as e:
    print(type(e).__name__, e)
assert not _ferrax._withdraw_fault({point!r})
assert program() == wanted
for _ in range(500):  # a device's thread lets go of a run a moment after its results are there
    if _ferrax._bytes_in_use() <= held:
        break
    time.sleep(0.01)
else:
    raise AssertionError((_ferrax._bytes_in_use(), held))
""")
    assert text.startswith("JaxRuntimeError injected fault")
    if point in ("node", "download"):
        assert "The computation that failed was started at" in text and "(program)" in text


def test_host_code_computes_while_its_program_waits():
    assert (
        run("""
def double(x):
    return np.asarray(jnp.asarray(x) * 2, np.float32)

x = jax.device_put(jnp.arange(4.0), here[0])
with jax.default_device(here[0]):
    f = jax.jit(lambda x: jax.pure_callback(double, jax.ShapeDtypeStruct(x.shape, x.dtype), jnp.sin(x)) + 1)
    np.testing.assert_allclose(f(x), 2 * np.sin(np.arange(4.0)) + 1, rtol=1e-6)
print("well")
""")
        == "well"
    )


def test_arrays_are_pickled_with_their_elements_and_devices_by_name():
    assert (
        run("""
import pickle
x = jax.device_put(jnp.arange(3), here[2])
np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)), x)
assert pickle.loads(pickle.dumps(here[2])) is here[2] and pickle.loads(pickle.dumps(cpu)) is cpu
print("well")
""")
        == "well"
    )


def test_reading_an_array_is_a_transfer_that_guards_see():
    assert run(
        """
x, s = jax.device_put(jnp.arange(3.0), here[1]), jax.device_put(1.0, here[1])
def refused(f):
    try:
        f()
    except jax.errors.JaxRuntimeError as error:
        return "device-to-host" in str(error)
    return False
reads = [lambda: np.asarray(x), lambda: float(s), lambda: s.item(), lambda: x.tolist(), lambda: bool(s)]
with jax.transfer_guard("disallow"):
    assert all(refused(f) for f in reads), [refused(f) for f in reads]
    assert not refused(lambda: jax.device_get(x)) and not refused(lambda: x + x)
with jax.transfer_guard("disallow_explicit"):
    assert refused(lambda: jax.device_get(x))
with jax.transfer_guard_host_to_device("disallow_explicit"):
    assert not any(refused(f) for f in reads)
print("well")
"""
    ) == "well"  # fmt: skip
