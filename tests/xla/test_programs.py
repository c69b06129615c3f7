"""Programs on a CPU client of XLA, through its plugin: results, placement, donation, errors and memory.

Kinds of nodes one by one are compared in `crates/ferrax-pjrt/tests`.
"""

import gc
import os
import subprocess
import sys

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax
from tests.xla.processes import plugin, run


@pytest.fixture(scope="module")
def xla():
    """The first device of the plugin."""
    return jax.devices("xla_cpu")[0]


@pytest.fixture(scope="module")
def cpu():
    """The embedded engine's first device."""
    return jax.devices("cpu")[0]


def on_both(f, xla, cpu, *args):
    """The results of a jitted function on both devices, the plugin's first; those are checked to be there."""
    results = []
    for device in (xla, cpu):
        placed = jax.tree.map(lambda x: jax.device_put(x, device), args)
        out = jax.jit(f)(*placed)
        assert {leaf.device for leaf in jax.tree.leaves(out)} == {device}
        results.append(jax.tree.map(np.asarray, out))
    return results


def assert_close(f, xla, cpu, *args, rtol=2e-6, atol=1e-6):
    theirs, ours = on_both(f, xla, cpu, *args)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=rtol, atol=atol), theirs, ours)
    assert jax.tree.map(lambda a: a.dtype, theirs) == jax.tree.map(lambda a: a.dtype, ours)


def network(params, x):
    for w, b in params:
        x = jnp.tanh(x @ w + b)
    return x


def parameters():
    keys = jax.random.split(jax.random.key(0), 3)
    sizes = [(8, 16), (16, 16), (16, 4)]
    return [(jax.random.normal(k, s) / s[0] ** 0.5, jnp.zeros(s[1])) for k, s in zip(keys, sizes, strict=True)]


def test_a_training_step(xla, cpu):
    def step(params, x, y):
        loss, slopes = jax.value_and_grad(lambda p: ((network(p, x) - y) ** 2).mean())(params)
        return loss, jax.tree.map(lambda p, g: p - 0.1 * g, params, slopes)

    x = jax.random.normal(jax.random.key(1), (32, 8))
    assert_close(step, xla, cpu, parameters(), x, jnp.sin(x[:, :4]))


def test_loops_and_branches(xla, cpu):
    def program(x):
        def body(carry, row):
            carry = lax.cond(row.sum() > 0, lambda c: c + row, lambda c: c * 0.5, carry)
            return carry, carry.max()

        last, most = lax.scan(body, jnp.zeros(4), x)
        turned = lax.while_loop(lambda s: s[1] < 5, lambda s: (s[0] * 1.5, s[1] + 1), (last, 0))
        picked = lax.switch(jnp.int32(2), [jnp.sin, jnp.cos, jnp.tanh], last)
        return last, most, turned, picked, lax.fori_loop(0, 3, lambda i, v: v.at[i].add(1.0), last)

    assert_close(program, xla, cpu, jax.random.normal(jax.random.key(2), (7, 4)))


def test_random_bits_are_the_same(xla, cpu):
    def program(key):
        a, b = jax.random.split(key)
        return jax.random.bits(a, (100,)), jax.random.randint(b, (50,), 0, 1000), jax.random.permutation(a, 20)

    theirs, ours = on_both(program, xla, cpu, jax.random.PRNGKey(7))
    jax.tree.map(np.testing.assert_array_equal, theirs, ours)
    assert_close(lambda key: jax.random.normal(key, (1000,)), xla, cpu, jax.random.PRNGKey(3))


def test_indexing_and_sorting(xla, cpu):
    x = jax.random.normal(jax.random.key(4), (6, 5))
    i = jnp.array([4, -1, 0, 99, 2])

    def program(x, i):
        a = x[i], x.at[i].set(0.0), x.at[:, 1].add(2.0), jnp.take(x, i, axis=0, mode="fill"), x[::-1, 1:4:2]
        b = jnp.sort(x, 0), jnp.argsort(x, 1), lax.top_k(x, 3), jnp.median(x), jnp.cumsum(x, 1)
        return a, b

    theirs, ours = on_both(program, xla, cpu, x, i)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), theirs, ours)


def test_factorizations(xla, cpu):
    a = jax.random.normal(jax.random.key(5), (2, 6, 6))
    spd = a @ a.mT + 6 * jnp.eye(6)

    def program(a, spd):
        q, r = jnp.linalg.qr(a)
        u, s, v = jnp.linalg.svd(a)
        w, e = jnp.linalg.eigh(spd)
        lost = [q @ r - a, (u * s[:, None, :]) @ v - a, (e * w[:, None, :]) @ e.mT - spd]
        return jnp.linalg.cholesky(spd), jnp.linalg.solve(spd, a), jnp.linalg.det(a), s, w, lost

    assert_close(program, xla, cpu, a, spd, rtol=3e-4, atol=3e-5)


def test_transforms_and_convolutions(xla, cpu):
    x = jax.random.normal(jax.random.key(6), (2, 9, 9, 3))
    k = jax.random.normal(jax.random.key(7), (3, 3, 3, 4))

    def program(x, k):
        y = lax.conv_general_dilated(x, k, (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        pooled = lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return y, pooled, jnp.fft.fft2(x[..., 0]), jnp.fft.irfft(jnp.fft.rfft(x, axis=1), 9, axis=1)

    assert_close(program, xla, cpu, x, k, rtol=1e-4, atol=2e-5)
    assert_close(jax.grad(lambda x, k: program(x, k)[1].sum(), argnums=(0, 1)), xla, cpu, x, k, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize(
    "dtype",
    [
        "bool",
        "int8",
        "int16",
        "int32",
        "uint8",
        "uint16",
        "uint32",
        "float16",
        "bfloat16",
        "float32",
        "complex64",
        "int4",
        "float8_e4m3fn",
    ],
)
def test_elements_go_there_and_back(xla, cpu, dtype):
    x = jnp.arange(12).reshape(3, 4).astype(dtype)
    there = jax.device_put(x, xla)
    assert there.device == xla and there.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(jax.device_put(there, cpu)), np.asarray(x))
    np.testing.assert_array_equal(np.asarray(jax.jit(lambda x: x.T)(there)), np.asarray(x).T)


def test_eager_operations_stay_on_the_device(xla):
    x = jax.device_put(jnp.arange(6.0), xla)
    slope = jax.grad(lambda x: (x * x).sum())(x)
    results = [x + 1, x[2], x[1:3], x.reshape(2, 3), x.sum(), jnp.where(x > 2, x, 0), slope]
    assert {r.device for r in results} == {xla}
    assert float(results[4]) == 15.0


def test_donated_memory_is_used_and_then_gone(xla):
    f = jax.jit(lambda x: x * 2, donate_argnums=0)
    x = jax.device_put(jnp.arange(1000.0), xla)
    y = f(x)
    assert float(y[999]) == 1998.0
    with pytest.raises(RuntimeError, match="donated"):
        x + 1
    text = f.lower(y).as_text()
    assert "tf.aliasing_output = 0" in text and "stablehlo.multiply" in text


def test_a_donated_argument_that_is_passed_twice_stays(xla):
    f = jax.jit(lambda x, y: x + y, donate_argnums=0)
    x = jax.device_put(jnp.ones(8), xla)
    with pytest.raises(RuntimeError, match=r"f\(donate\(a\), a\)"):
        f(x, x)
    assert float(x[0]) == 1.0


def test_memory_that_there_is_not_is_an_error_and_the_next_call_works(xla):
    x = jax.device_put(jnp.ones(2), xla)
    with pytest.raises((MemoryError, RuntimeError)):
        jax.block_until_ready(jax.jit(lambda x: jnp.broadcast_to(x[:, None], (2, 2**43)) + 1)(x))
    assert float(jax.jit(lambda x: x.sum())(x)) == 2.0


def test_many_programs_leave_nothing(xla):
    x = jax.device_put(jnp.ones(16), xla)
    gc.collect()
    before = xla.memory_stats()["bytes_in_use"]
    for i in range(150):
        y = jax.jit(lambda x, i=i: x * i + 1)(x)
        assert float(y[0]) == i + 1
    del y
    jax.clear_caches()
    gc.collect()
    gc.collect()
    assert xla.memory_stats()["bytes_in_use"] == before


def test_a_compiled_program_is_a_text_with_counts(xla):
    compiled = jax.jit(lambda x: jnp.sin(x) @ x.T).lower(jnp.ones((4, 8))).compile()
    assert compiled.cost_analysis()["flops"] == 2 * 4 * 4 * 8
    assert compiled.memory_analysis().output_size_in_bytes == 4 * 4 * 4


def test_the_platform_computes_by_default_where_the_environment_says_so():
    code = "import ferrax as jax, ferrax.numpy as jnp; print(jax.default_backend(), jnp.ones(3).sum().device)"
    assert run(code, FERRAX_PLATFORMS="xla_cpu") == "xla_cpu xla_cpu:0"


def test_importing_starts_no_plugin():
    code = """
import ferrax as jax, ferrax.numpy as jnp
jnp.ones(3) + 1
jax.devices()
print("libpjrt_cpu" in open("/proc/self/maps").read())
jax.devices("xla_cpu")
print("libpjrt_cpu" in open("/proc/self/maps").read())
"""
    assert run(code, FERRAX_PLATFORMS="cpu").split() == ["False", "True"]


def test_options_make_several_devices():
    code = f"""
import ferrax as jax, ferrax.numpy as jnp
jax.register_plugin("many", {plugin()!r}, {{"cpu_device_count": 3}})
here = jax.devices("many")
print(len(here))
xs = [jax.device_put(jnp.arange(4.0) * d.id, d) for d in here]
print([x.sum().device.id for x in xs], [float(jax.jit(jnp.sum)(x)) for x in xs])
try:
    xs[0] + xs[1]
except ValueError as e:
    print("mixed")
"""
    assert run(code, FERRAX_PLATFORMS="cpu").splitlines() == ["3", "[0, 1, 2] [0.0, 6.0, 12.0]", "mixed"]


def test_the_doctor_knows_the_plugin():
    env = os.environ | {"JAX_PLATFORMS": "xla_cpu"}
    done = subprocess.run([sys.executable, "-m", "ferrax.doctor"], check=False, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Platform xla_cpu: works" in done.stdout and "PJRT C API  0." in done.stdout
