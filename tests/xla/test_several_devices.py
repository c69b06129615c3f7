"""Arrays over several devices of a CPU client of XLA, beside what `tests/sharding` asks of every platform.

Other orders of devices and other meshes, narrow and empty arrays, memory, errors. A process has eight devices.
"""

import pytest

from tests.cases import endings

SETUP = """
import gc
import numpy as np
import ferrax as jax, ferrax.numpy as jnp
from ferrax import lax
from ferrax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding
devs = jax.devices("xla_cpu")
first, second = (Mesh(np.array(d), ("x",), axis_types=AxisType.Auto) for d in (devs[:4], devs[4:]))
turned = Mesh(np.array(devs[:4][::-1]), ("x",), axis_types=AxisType.Auto)
put = lambda x, mesh=first, spec=P("x"): jax.device_put(x, NamedSharding(mesh, spec))
host = np.arange(8, dtype=np.float32)
"""

CASES = {
    "each device has its part": """
        x = put(host)
        assert [s.device for s in x.addressable_shards] == devs[:4]
        assert [np.asarray(s.data).tolist() for s in x.addressable_shards] == host.reshape(4, 2).tolist()
        assert all(s.data.devices() == {s.device} for s in x.addressable_shards)
    """,
    "arrays go from mesh to mesh, to one device and back": """
        x = put(host)
        for mesh in (second, turned):
            there = jax.device_put(x, NamedSharding(mesh, P("x")))
            assert [s.device for s in there.addressable_shards] == list(mesh.devices)
            assert np.array_equal(there, host) and np.array_equal(there * 2, host * 2)
        one = jax.device_put(x, devs[5])
        assert one.devices() == {devs[5]} and np.array_equal(one + 1, host + 1)
        cpu = jax.device_put(x, jax.devices("cpu")[0])
        assert np.array_equal(put(cpu) + cpu.sum().item(), host + 28)
    """,
    "operands over other devices are an error that names them": """
        x, y = put(host), put(host, second)
        text = "Received incompatible devices"
        raises(ValueError, text, lambda: x + y)
        raises(ValueError, text, lambda: jax.jit(lambda x, y: x @ y)(x, y))
        raises(ValueError, text, lambda: jax.jit(lambda x: lax.with_sharding_constraint(x, y.sharding))(x))
        assert float(x.sum()) == 28
    """,
    "what no device is told goes where the mesh is": """
        ones = jax.jit(lambda: lax.with_sharding_constraint(jnp.ones(8), NamedSharding(first, P("x"))))()
        assert ones.sharding.spec == P("x") and len(ones.addressable_shards) == 4
        got = jax.jit(lambda x, y: x * y, out_shardings=NamedSharding(second, P("x")))(host, 2.0)
        assert got.devices() == set(devs[4:]) and np.array_equal(got, host * 2)
        assert np.array_equal(put(host) + host, host * 2)
    """,
    "all dtypes": """
        for dtype in (np.bool_, np.int8, np.uint16, np.int32, np.float16, jnp.bfloat16, jnp.int4, np.complex64):
            x = np.arange(24).reshape(8, 3).astype(np.int32) % 5
            x = np.asarray(jnp.asarray(x).astype(dtype))
            for spec in (P("x"), P(), P(None, None)):
                there = put(x, spec=spec)
                assert there.dtype == x.dtype and np.array_equal(there, x), (dtype, spec)
                assert np.array_equal(jax.jit(lambda v: v[::-1].T)(there), x[::-1].T), (dtype, spec)
    """,
    "empty arrays and single numbers": """
        assert put(np.zeros((4, 0), np.float32)).sum() == 0 and put(np.zeros((0, 4)), spec=P(None, "x")).shape == (0, 4)
        one = put(np.float32(3), spec=P())
        assert one.shape == () and float(one * one) == 9
    """,
    "operations by themselves keep how arrays lie": """
        x = put(host)
        for f in (jnp.sin, lambda v: v.at[2].set(7.0), lambda v: jnp.where(v > 3, v, 0), lambda v: v[::-1]):
            assert f(x).sharding.spec == P("x") and np.allclose(f(x), f(jnp.asarray(host)), rtol=1e-6)
        assert x[3] == 3 and x.sum().sharding.spec == P()
    """,
    "reductions over parts, loops, gradients and factorizations": """
        m = np.cos(np.arange(64.0)).reshape(8, 8).astype(np.float32)
        for f in (
            lambda v: jnp.cumsum(v, 0),
            lambda v: lax.fori_loop(0, 3, lambda i, w: w @ v / 4, v),
            lambda v: lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(8), v)[1],
            lambda v: jax.grad(lambda w: (jnp.tanh(w @ v) ** 2).sum())(v),
            lambda v: jnp.linalg.solve(v @ v.T + 8 * jnp.eye(8), v),
            lambda v: jnp.sort(v, axis=0),
        ):
            want = jax.jit(f)(jax.device_put(m, jax.devices("cpu")[0]))
            for spec in (P("x"), P(None, "x")):
                assert np.allclose(jax.jit(f)(put(m, spec=spec)), want, rtol=1e-4, atol=1e-5)
    """,
    "callbacks see whole arrays of a program": """
        seen = []
        def f(v):
            w = jax.pure_callback(lambda a: np.asarray(a) + 1, jax.ShapeDtypeStruct(v.shape, v.dtype), v * 2)
            jax.debug.callback(lambda a: seen.append(np.asarray(a).tolist()), w.sum())
            return lax.fori_loop(0, 2, lambda i, c: c + w, w)
        got = jax.jit(f, out_shardings=NamedSharding(first, P("x")))(put(host))
        jax.effects_barrier()
        assert got.sharding.spec == P("x") and np.array_equal(got, 3 * (2 * host + 1)) and seen == [64.0]
    """,
    "donated arguments give their memory where results lie alike": """
        x, other = put(host), put(host)
        jax.jit(lambda v: v + 1, donate_argnums=0)(x)
        assert x.is_deleted()
        raises(RuntimeError, "has been deleted", lambda: x + 1)
        out = jax.jit(lambda v: v + 1, donate_argnums=0, out_shardings=NamedSharding(first, P()))(other)
        assert np.array_equal(out, host + 1)
    """,
    "memory of each device is counted and freed": """
        used = lambda: [d.memory_stats()["bytes_in_use"] for d in devs]
        gc.collect()
        before = used()
        x = put(np.zeros(1024, np.float32))
        y = jax.jit(lambda v: v + 1)(x)
        assert [a - b for a, b in zip(used(), before)] == [2048] * 4 + [0] * 4
        del x, y
        gc.collect()
        assert used() == before
    """,
    "errors of a run come with the result": """
        def wrong(a):
            raise ArithmeticError("of the user's")
        f = jax.jit(lambda v: jax.pure_callback(wrong, jax.ShapeDtypeStruct(v.shape, v.dtype), v) * 2)
        raises(Exception, "of the user's", lambda: np.asarray(f(put(host))))
        assert float(put(host).sum()) == 28
    """,
}


@pytest.fixture(scope="module")
def results():
    return endings(SETUP, CASES, FERRAX_PLATFORMS="xla_cpu,cpu")


@pytest.mark.parametrize("name", CASES)
def test_case(results, name):
    assert results[name] == "ok", results[name]
