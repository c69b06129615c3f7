"""The FAQ's programs about arrays: placement, benchmarks, donation, gradients of `where` and of sorting functions.

Sections and their order are the page's.
"""

import time
import warnings

import numpy as np
import pytest

from tests.spec.backend import ferrax_only, jax, jnp, run_program


class TestControllingPlacement:
    def test_the_default_device(self):
        devices = jnp.ones(3).devices()
        assert devices == {jax.devices()[0]}
        assert jax.devices()[0].platform == jax.default_backend()

    @pytest.mark.embedded  # the setting makes several devices of the embedded engine
    def test_committed_and_uncommitted(self):
        out = run_program(
            """
jax.config.update("jax_num_cpu_devices", 3)
from jax import device_put
arr = device_put(1, jax.devices()[2])
print(arr.devices() == {jax.devices()[2]}, arr.committed)
free = jnp.ones(3)
print(free.devices() == {jax.devices()[0]}, free.committed)

# computation follows committed data, and its result is committed there
total = arr + free
print(total.devices() == {jax.devices()[2]}, total.committed)
print((free + free).committed)
jitted = jax.jit(lambda a, b: a * b)(arr, free)
print(jitted.devices() == {jax.devices()[2]}, jitted.committed)

# without a device: left as it is
same = device_put(arr)
print(same.devices() == {jax.devices()[2]}, same.committed)
print(device_put(np.ones(2)).committed)

# committed to more than one device
other = device_put(jnp.ones(3), jax.devices()[1])
for f in (lambda a, b: a + b, jax.jit(lambda a, b: a + b)):
    try:
        f(arr, other)
    except ValueError as e:
        print("incompatible devices" in str(e).lower())

with jax.default_device(jax.devices()[1]):
    placed = jnp.ones(3)
    print(placed.devices() == {jax.devices()[1]}, placed.committed)
""".replace("from jax import device_put", "device_put = jax.device_put")
        )
        assert out.split("\n")[:-1] == [
            "True True", "True False", "True True", "False", "True True", "True True", "False", "True", "True",
            "True False",
        ]  # fmt: skip

    @pytest.mark.embedded  # FERRAX_PLATFORMS, by which tests choose another engine, goes before JAX_PLATFORMS
    def test_platforms_from_the_environment(self):
        assert run_program("print(jax.devices()[0].platform)", JAX_PLATFORMS="cpu") == "cpu\n"

    def test_devices_of_a_forced_host_platform(self):
        flags = "--xla_force_host_platform_device_count=4"
        assert run_program("print(len(jax.devices()))", XLA_FLAGS=flags) == "4\n"


class TestBenchmarking:
    def test_the_microbenchmark(self, capsys):
        def f(x):  # function we're benchmarking (works in both NumPy & JAX)
            return x.T @ (x - x.mean(axis=0))

        def timed(label, run):
            start = time.perf_counter()
            result = run()
            print(f"{label}: {(time.perf_counter() - start) * 1e3:.2f} ms")
            return result

        x_np = np.ones((1000, 1000), dtype=np.float32)  # same as JAX default dtype
        expected = timed("NumPy runtime", lambda: f(x_np))
        x_jax = timed("device transfer", lambda: jax.device_put(x_np))
        f_jit = jax.jit(f)
        timed("compilation", lambda: f_jit(x_jax).block_until_ready())
        result = timed("JAX runtime", lambda: f_jit(x_jax).block_until_ready())
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, expected, atol=1e-3)
        assert capsys.readouterr().out.count(" ms\n") == 4

    def test_values_at_work(self):
        x_np = np.random.default_rng(0).normal(size=(100, 80)).astype(np.float32)
        f = lambda x: x.T @ (x - x.mean(axis=0))
        np.testing.assert_allclose(jax.jit(f)(x_np), f(x_np), rtol=1e-4, atol=1e-3)


def add(x, y):
    return x + y


def add_ones(xs):
    return [x + 1 for x in xs]


def put(*shape):
    return jax.device_put(np.ones(shape))


class TestBufferDonation:
    def test_by_position(self):
        x, y = put(2, 3), put(2, 3)
        z = jax.jit(add, donate_argnums=(1,))(x, y)
        np.testing.assert_array_equal(z, np.full((2, 3), 2.0))
        assert y.is_deleted() and not x.is_deleted()

    def test_params_and_state(self):
        update_fn = lambda params, state: ({"w": params["w"] + 1}, state * 2)
        params, state = {"w": put(4)}, put(3)
        step = jax.jit(update_fn, donate_argnums=(0, 1))
        for _ in range(3):
            params, state = step(params, state)
        np.testing.assert_array_equal(params["w"], np.full(4, 4.0))
        np.testing.assert_array_equal(state, np.full(3, 8.0))

    @ferrax_only
    def test_keyword_arguments(self):
        # the page: "this currently does not work when calling your function with key-word arguments"
        x, y = put(2, 3), put(2, 3)
        z = jax.jit(add, donate_argnums=(1,))(x=x, y=y)
        np.testing.assert_array_equal(z, np.full((2, 3), 2.0))
        assert y.is_deleted() and not x.is_deleted()
        y = put(2, 3)
        jax.jit(add, donate_argnames="y")(x, y=y)
        assert y.is_deleted() and not x.is_deleted()

    def test_a_pytree(self):
        xs = [put(2, 3), put(3, 4)]
        z = jax.jit(add_ones, donate_argnums=0)(xs)
        assert [a.shape for a in z] == [(2, 3), (3, 4)]
        assert all(x.is_deleted() for x in xs)

    def test_reuse_raises(self):
        x, y = put(2, 3), put(2, 3)
        jax.jit(add, donate_argnums=(1,))(x, y)
        with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[2,3\]"):
            y + 1
        with pytest.raises(RuntimeError, match="deleted"):
            np.asarray(y)

    @ferrax_only
    def test_reuse_names_the_call(self):
        x, y = put(2, 3), put(2, 3)
        jax.jit(add, donate_argnums=(1,))(x, y)
        with pytest.raises(RuntimeError, match="donated to add"):
            y + 1

    def test_more_donated_than_used(self):
        with pytest.warns(UserWarning, match=r"Some donated buffers were not usable: float32\[2,3\]"):
            jax.jit(add, donate_argnums=(0, 1))(put(2, 3), put(2, 3))

    def test_no_output_of_that_shape(self):
        y = put(1, 3)  # `y` has different shape than the output
        with pytest.warns(UserWarning, match=r"Some donated buffers were not usable: float32\[1,3\]"):
            jax.jit(add, donate_argnums=(1,))(put(2, 3), y)

    def test_no_warning_where_all_is_used(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            jax.jit(add, donate_argnums=(1,))(put(2, 3), put(2, 3))


def my_log(x):
    return jnp.where(x > 0.0, jnp.log(x), 0.0)


class TestGradientsContainNaNWhereUsingWhere:
    def test_the_trap(self):
        assert my_log(0.0) == 0.0
        assert np.isnan(jax.grad(my_log)(0.0))

    def test_where_inside(self):
        def safe_for_grad_log(x):
            return jnp.log(jnp.where(x > 0.0, x, 1.0))

        assert safe_for_grad_log(0.0) == 0.0
        assert jax.grad(safe_for_grad_log)(0.0) == 0.0

    def test_where_inside_and_outside(self):
        def my_log_or_y(x, y):
            """Return log(x) if x > 0 or y"""
            return jnp.where(x > 0.0, jnp.log(jnp.where(x > 0.0, x, 1.0)), y)

        assert my_log_or_y(0.0, 5.0) == 5.0
        assert jax.grad(my_log_or_y, argnums=(0, 1))(0.0, 5.0) == (0.0, 1.0)
        assert jax.grad(my_log_or_y)(2.0, 5.0) == 0.5

    @ferrax_only
    def test_safe_where(self):
        with jax.safe_where(True):
            assert jax.grad(my_log)(0.0) == 0.0
            assert jax.grad(my_log)(2.0) == 0.5
            assert jax.jit(jax.grad(my_log))(0.0) == 0.0
            assert jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0))(0.0) == 0.0
            x = jnp.array([-1.0, 0.0, 4.0])
            np.testing.assert_array_equal(jax.vmap(jax.grad(my_log))(x), [0.0, 0.0, 0.25])
        assert np.isnan(jax.grad(my_log)(0.0))


class TestZeroGradientsOfFunctionsBasedOnSortOrder:
    def test_a_step_function(self, capsys):
        def f(x):
            return (x > 0).astype(float)

        df = jax.vmap(jax.grad(f))
        x = jnp.array([-1.0, -0.5, 0.0, 0.5, 1.0])
        print(f"f(x)  = {f(x)}")
        print(f"df(x) = {df(x)}")
        assert capsys.readouterr().out == "f(x)  = [0. 0. 0. 1. 1.]\ndf(x) = [0. 0. 0. 0. 0.]\n"

    def test_a_smooth_replacement(self, capsys):
        def g(x):
            return jax.nn.sigmoid(x)

        dg = jax.vmap(jax.grad(g))
        x = jnp.array([-10.0, -1.0, 0.0, 1.0, 10.0])
        with np.printoptions(suppress=True, precision=2):
            print(f"g(x)  = {g(x)}")
            print(f"dg(x) = {dg(x)}")
        assert capsys.readouterr().out == "g(x)  = [0.   0.27 0.5  0.73 1.  ]\ndg(x) = [0.   0.2  0.25 0.2  0.  ]\n"

    @pytest.mark.parametrize("name", ["argsort", "argmax", "sign", "floor"])
    def test_others(self, name):
        x = jnp.array([3.0, -1.0, 2.0])
        slope = jax.grad(lambda x: (getattr(jnp, name)(x) * 1.0).sum())(x)
        np.testing.assert_array_equal(slope, np.zeros(3))

    def test_the_nn_replacements(self):
        x = jnp.array([3.0, -1.0, 2.0])
        for f in (jax.nn.softmax, jax.nn.soft_sign, jax.nn.softplus, jax.nn.squareplus):
            slope = jax.grad(lambda x: (f(x) * jnp.arange(1.0, 4.0)).sum())(x)
            assert np.all(np.asarray(slope) != 0)
