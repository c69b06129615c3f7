"""What one cannot compare with JAX: bits, donation, caches, threads and memory of arrays over eight devices.

The cases run in one process of their own with eight CPU devices; each prints `ok` or what is wrong.
"""

from __future__ import annotations

import pytest

from tests.cases import endings

SETUP = """
import copy, json, math, threading, traceback
import numpy as np
import ferrax as jax, ferrax.numpy as jnp
from ferrax import lax
from ferrax.sharding import *
P = PartitionSpec
devs = jax.devices()
m = Mesh(np.array(devs).reshape(4, 2), ("x", "y"))
s = lambda *e: NamedSharding(m, P(*e))
x = jax.random.normal(jax.random.key(0), (64, 48))
w = jax.random.normal(jax.random.key(1), (48, 32))
def same(a, b):
    # the same bits; on XLA, whose partitioner sums parts, numbers that are near
    if jax.default_backend() == "cpu":
        return np.array_equal(a, b)
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-5, atol=2e-5)
"""

CASES = {
    "a donated argument that has to be put somewhere is deleted": """
        everywhere = NamedSharding(m, P())
        a, b = jnp.arange(16), jnp.arange(16)
        out = jax.jit(lambda x, y: (x * 2, y * 2), in_shardings=everywhere, donate_argnums=0)(a, b)
        assert out[0].is_fully_replicated and (out[0] == 2 * jnp.arange(16)).all()
        assert a.is_deleted() and not b.is_deleted()
    """,
    "parts that arrays are made of are concrete": """
        one = SingleDeviceSharding(devs[0])
        make = lambda x: jax.make_array_from_single_device_arrays(x.shape, one, [x])
        assert (make(jnp.arange(3)) == jnp.arange(3)).all()
        raises(ValueError, "requires a list of concrete arrays", lambda: jax.jit(make)(jnp.arange(3)))
        assert m._flat_devices_tuple == tuple(m.devices.flat)
    """,
    "vmap may be told an axis of the mesh that shard_map maps over": """
        from ferrax.config import State
        one = Mesh(np.array(devs[:2]), ("i",))
        f = jax.shard_map(lambda v: v + lax.psum(v, "i"), mesh=one, in_specs=P("i"), out_specs=P("i"))
        xs = jnp.arange(8.0).reshape(2, 4)
        raises(ValueError, "spmd_axis_name cannot appear in shard_map", lambda: jax.vmap(f, spmd_axis_name="i")(xs))
        with State("jax_disable_vmap_shmap_error", True)(True):
            assert same(np.asarray(jax.vmap(f, spmd_axis_name="i")(xs)), np.asarray(jnp.stack([f(x) for x in xs])))
    """,
    "texts say the shardings of arguments, results and constrained values": """
        mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
        s = lambda *spec: NamedSharding(mesh, P(*spec))
        inner = jax.jit(lambda x: lax.with_sharding_constraint(x + 1, s(P.UNCONSTRAINED, "y")) * 2)
        f = jax.jit(lambda x, y: (inner(x), y), in_shardings=(s("x"), None), out_shardings=(s(("x", "y")), None))
        text = f.lower(np.ones((4, 2), np.float32), np.ones(3, np.float32)).as_text()
        assert "num_partitions = 4" in text and 'sdy.mesh @mesh = <["x"=2, "y"=2]>' in text
        assert '%arg0: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tens' in text
        assert 'result_info = "result[0]", sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}' in text
        assert text.count("sdy.sharding_constraint") == 1 and '<@mesh, [{?}, {"y"}]>' in text
        assert "sdy" not in jax.jit(lambda x: x).lower(1.0).as_text()
    """,
    "pjit: None is on all devices of a mesh in use": """
        from ferrax.experimental.pjit import pjit
        with Mesh(np.array(devs[:2]), ("x",)):
            f = pjit(lambda x: x, in_shardings=P("x"), out_shardings=None)
            assert f(jnp.arange(8)).sharding.spec == P() and len(f(jnp.arange(8)).devices()) == 2
            assert pjit(lambda x: x, in_shardings=P("x"))(jnp.arange(8)).sharding.spec == P("x")
            assert pjit(lambda x, y: x + y, in_shardings=None)(1, y=2) == 3
    """,
    "lowered for an abstract mesh, compiled for devices": """
        mesh = jax.make_mesh((2, 1), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
        sds = lambda mesh: jax.ShapeDtypeStruct((8, 2), jnp.float32, sharding=NamedSharding(mesh, P("x")))
        f = jax.jit(lambda x: x * 2)
        lowered = f.trace(sds(mesh.abstract_mesh)).lower(lowering_platforms=("tpu",))
        assert "num_partitions = 2" in lowered.as_text()
        out = lowered.compile(device_assignment=tuple(devs[2:4]))(jnp.ones((8, 2)))
        assert out.sharding.spec == P("x") and out.devices() == set(devs[2:4]) and (out == 2).all()
        raises(RuntimeError, "device_assignment cannot be `None`", lowered.compile)
        raises(ValueError, "The size of abstract mesh 2", lambda: lowered.compile(device_assignment=devs[:1]))
        raises(ValueError, "must match the device_assignment calculated",
               lambda: f.lower(sds(mesh)).compile(device_assignment=devs[:1]))
        raises(ValueError, "Passing lowering_platforms", lambda: f.lower(sds(mesh.abstract_mesh)))
        one = jax.jit(lambda x: x + 1).lower(1.0).compile(device_assignment=devs[3:4])
        assert one(1.0).devices() == {devs[3]}
        assert f.lower(sds(mesh)).compile().out_info.sharding == NamedSharding(mesh, P("x"))
    """,
    "derivatives go back to the devices of the values": """
        here, there = (NamedSharding(Mesh(np.array(d), ("x",)), P("x")) for d in (devs[:4], devs[4:]))
        x = jax.device_put(np.arange(4.0), here)
        f = lambda x: (jax.jit(lambda x: x * 3)(jax.device_put(jax.jit(jnp.square)(x), there))).sum()
        out, grad = f(x), jax.grad(f)(x)
        assert out == 42 and out.devices() == set(devs[4:])
        assert grad.sharding == here and grad.tolist() == [0, 6, 12, 18]
        assert jax.jvp(f, (x,), (x,))[1] == 84
        g = lambda x: jnp.sin(jax.device_put(jnp.sin(x), devs[2])).sum()
        y = jax.device_put(0.5, devs[1])
        twice = jax.grad(lambda y: jax.grad(g)(y))(y)
        assert twice.devices() == {devs[1]}
        assert abs(twice - jax.grad(jax.grad(lambda y: jnp.sin(jnp.sin(y))))(0.5)) < 1e-6
        assert jax.vmap(jax.grad(g))(jax.device_put(np.arange(3.0), devs[1])).devices() == {devs[1]}
    """,
    "constraints bind by their parameters": """
        mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
        jaxpr = jax.make_jaxpr(lambda x: lax.with_sharding_constraint(x, NamedSharding(mesh, P(P.UNCONSTRAINED, "x"))))
        (eqn,) = jaxpr(jnp.ones((2, 2))).eqns
        assert eqn.params["unconstrained_dims"] == {0}
        again = lambda x: eqn.primitive.bind(x, **eqn.params)
        for f in (again, jax.jit(again), jax.grad(lambda x: again(x).sum())):
            assert (f(jnp.ones((2, 2))) == 1).all()
    """,
    "what runs without operands runs where its constants are committed": """
        c = jax.device_put(jnp.arange(3.0), devs[3])
        y = jnp.ones(3)
        for f in (
            lambda: lax.cond(True, lambda: c, lambda: c * 2),
            lambda: lax.scan(lambda v, _: (v + c, None), y, None, length=2)[0],
            lambda: lax.fori_loop(0, 2, lambda i, v: v + c, y),
            lambda: jax.checkpoint(lambda v: v + c)(y),
            jax.jit(lambda: c), jax.jit(lambda: c + 1), lambda: jax.jit(lambda v: v + c)(y),
            lambda: jnp.zeros_like(c), lambda: jnp.ones_like(c, shape=(2,)), lambda: lax.full_like(c, 2, shape=(2,)),
            lambda: lax.full_like(c, 1, int),
        ):
            assert f().devices() == {devs[3]} and f().committed
        assert not jnp.zeros_like(y).committed and not lax.cond(True, lambda: y, lambda: y * 2).committed
        there = jax.device_put(y, devs[2])
        assert jnp.zeros_like(there).devices() == {devs[2]}
    """,
    "a loop puts what it carries where each step does": """
        mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
        put = lambda v: lax.with_sharding_constraint(v, NamedSharding(mesh, P("x")))
        loop = lambda v: lax.scan(lambda v, _: (put(v), None), v, None, length=2)[0]
        assert loop(jnp.ones((4, 2))).sharding.spec == P("x") == jax.jit(loop)(jnp.ones((4, 2))).sharding.spec
        assert jax.vmap(loop, spmd_axis_name="y")(jnp.ones((2, 4))).sharding.spec == P("y", "x")
        assert lax.fori_loop(0, 2, lambda i, v: put(v), jnp.ones(4)).sharding.spec == P("x")
    """,
    "keys of other generators say where they are": """
        mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
        keys = jax.random.split(jax.random.key(0, impl="rbg"), 4)
        assert keys.sharding == SingleDeviceSharding(devs[0]) and not keys.committed
        there = jax.device_put(keys, NamedSharding(mesh, P("x")))
        assert there.sharding == NamedSharding(mesh, P("x")) and there.devices() == set(devs[:2])
        assert there.committed and there.is_fully_addressable and not there.is_fully_replicated
    """,
    "specs from what HLO says": """
        from ferrax._src.sharding_impls import parse_flatten_op_sharding as parsed
        three = Mesh(np.array(devs).reshape(2, 2, 2), ("x", "y", "z"))
        for spec in (P(), P("x"), P(None, "z"), P(("z", "x"), None, "y"), P("y", ("x", "z")), P(("y", "z"))):
            assert parsed(NamedSharding(three, spec)._to_xla_hlo_sharding(3), three) == [spec], spec
        raises(ValueError, "cannot contain a nested tuple", lambda: P("x", ("y", ("z",))))
        assert P("x")._normalized_spec_for_aval(3) == P("x", None, None)
    """,
    "what has no devices": """
        mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
        raises(ValueError, "`axis_shapes` passed to `make_mesh` should be a sequence of ints",
               lambda: jax.make_mesh(((4,), 4), ("x", "y")))
        raises(TypeError, "the context mesh cannot be empty", lambda: jax.ShapeDtypeStruct((2,), int, sharding=P("x")))
        with jax.set_mesh(mesh):
            assert jax.ShapeDtypeStruct((2,), int, sharding=P("x")).sharding.spec == P("x")
        raises(ValueError, "requires the input passed should be a `jax.Array`",
               lambda: lax.with_sharding_constraint(np.ones(2), NamedSharding(mesh.abstract_mesh, P("x"))))
        on_one = jax.jit(lambda x: x @ x.T, device=devs[1])
        there = jax.device_put(np.ones((4, 2)), NamedSharding(mesh, P("x")))
        assert on_one.lower(there).compile()(there).devices() == {devs[1]}
    """,
    "a program puts nothing on other devices than its arguments'": """
        half = lambda part: jax.make_mesh((4,), ("x",), devices=part)
        there = jax.device_put(jnp.arange(8.0), NamedSharding(half(devs[:4]), P("x")))
        for part, shown in [(devs[4:], [4, 5, 6, 7]), (devs[:4][::-1], [3, 2, 1, 0])]:
            put = lambda x: jax.device_put(x, NamedSharding(half(part), P("x")))
            again = lambda x: lax.scan(lambda c, _: (put(c), None), x, None, length=2)[0]
            for f in (put, again):
                try:
                    jax.jit(f)(there)
                except ValueError as error:
                    text = str(error)
                assert text.startswith("Received incompatible devices for jitted computation. Got argument x of ")
                assert "with device ids [0, 1, 2, 3]" in text and f"with device ids {shown}" in text
            assert jax.jit(put)(jnp.arange(8.0)).tolist() == there.tolist()
        whole = jax.jit(lambda x: jax.device_put(x, NamedSharding(half(devs[:4]), P())))
        assert whole(there).tolist() == there.tolist()
    """,
    "parts of an array are on the devices of its sharding": """
        pair = NamedSharding(Mesh(np.array(devs[:2]), ("x",)), P("x"))
        parts = lambda *ids: [jax.device_put(jnp.ones(2), devs[i]) for i in ids]
        whole = jax.make_array_from_single_device_arrays((4,), pair, parts(1, 0))
        assert whole.sharding == pair and whole.sum() == 4
        absent = "Sharding contains devices {} that are not present in per-device arrays. Per-device arrays contain "
        absent += "devices {}"
        for ids, text in [
            ((2, 3), absent.format({0, 1}, {2, 3})),
            ((0, 2), absent.format({1}, {2})),
            ((0, 0), "the input arrays must be from distinct devices, but got device IDs [0, 0]"),
        ]:
            try:
                jax.make_array_from_single_device_arrays((4,), pair, parts(*ids))
            except ValueError as error:
                assert text in str(error), error
            else:
                raise AssertionError(ids)
    """,
    "the count of devices is the environment's": "assert len(devs) == 8 == jax.device_count()",
    "a sharded program has the unsharded bits": """
        def f(x, w):
            y = jnp.tanh(x @ w)
            return (y / y.sum(1, keepdims=True)).mean(0), jnp.linalg.norm(y)
        want = jax.jit(f)(x, w)
        for spec in [P("x"), P("x", "y"), P(None, "y"), P(("x", "y"))]:
            got = jax.jit(f)(jax.device_put(x, NamedSharding(m, spec)), jax.device_put(w, s()))
            assert all(same(a, b) for a, b in zip(want, got))
        got = jax.device_put(x, s("x")) @ w
        assert same(got, x @ w) and got.sharding.spec == P("x")
    """,
    "a new axis of stacked arrays is not divided": """
        a = jax.device_put(jnp.ones((8, 4)), s("x", "y"))
        for axis, spec in ((0, P(None, "x", "y")), (1, P("x", None, "y")), (2, P("x", "y"))):
            for f in (lambda a: jnp.stack([a, a], axis), jax.jit(lambda a: jnp.stack([a, a], axis))):
                assert f(a).sharding.spec == spec
    """,
    "parts of a sum that is still due add up to it": """
        me = jax.make_mesh((4, 2), ("x", "y"))
        v = np.arange(16.0).reshape(8, 2)
        cases = [(P("x", unreduced={"y"}), (2,)), (P(unreduced={"x"}), (4,)), (P(unreduced={"x", "y"}), (4, 2))]
        for spec, axes in cases:
            y = jax.device_put(v, NamedSharding(me, spec))
            total = np.zeros_like(v)
            for shard in y.addressable_shards:
                total[shard.index] += np.asarray(shard.data)
            copies = 8 // np.prod(axes) // (4 if spec and spec[0] == "x" else 1)
            assert same(total, v * copies), (spec, total)
            assert same(y, v)
    """,
    "gradients of a sharded loss have the unsharded bits": """
        loss = lambda w, x: (jnp.tanh(x @ w) ** 2).sum()
        want = jax.jit(jax.grad(loss))(w, x)
        got = jax.jit(jax.grad(loss))(jax.device_put(w, s(None, "y")), jax.device_put(x, s("x")))
        assert same(want, got) and got.sharding.spec == P(None, "y"), got.sharding
    """,
    "data parallel by shard_map is the whole gradient": """
        loss = lambda w, x: (jnp.tanh(x @ w) ** 2).sum()
        step = jax.shard_map(jax.grad(loss), mesh=m, in_specs=(P(), P(("x", "y"))), out_specs=P())
        np.testing.assert_allclose(jax.jit(step)(w, x), jax.grad(loss)(w, x), rtol=2e-5, atol=2e-5)
    """,
    "functions with rules of their own are steps of loops over parts": """
        f = jax.custom_vjp(jnp.sin)
        f.defvjp(lambda x: (jnp.sin(x), x), lambda r, g: (jnp.cos(r) * g,))
        g = jax.custom_jvp(jnp.sin)
        g.defjvp(lambda p, t: (jnp.sin(p[0]), t[0] * jnp.cos(p[0])))
        over = lambda h: jax.shard_map(h, mesh=m, in_specs=P("x"), out_specs=P("x"))
        rows = jnp.arange(8.0)
        for h in (f, g, jax.nn.relu, jax.jit(jnp.sin)):
            def loop(v):
                return lax.scan(lambda c, e: (h(c * 2.0) + e, c), lax.pcast(0.0, "x", to="varying"), v)[1]
            def plain(v):
                return lax.scan(lambda c, e: (h(c * 2.0) + e, c), 0.0, v)[1]
            want = jnp.concatenate([plain(rows[i : i + 2]) for i in range(0, 8, 2)])
            for got in (over(loop)(rows), jax.jit(over(loop))(rows)):
                np.testing.assert_allclose(got, want, rtol=1e-6)
            grad = jax.grad(lambda v: (over(loop)(v) ** 2).sum())(rows)
            whole = jax.grad(lambda v: (plain(v) ** 2).sum())
            wanted = jnp.concatenate([whole(rows[i : i + 2]) for i in range(0, 8, 2)])
            np.testing.assert_allclose(grad, wanted, rtol=1e-5)
    """,
    "one program serves all shardings": """
        f = jax.jit(lambda x: x * 2 + 1)
        for y in [x, jax.device_put(x, s("x")), jax.device_put(x, s("y")), jax.device_put(x, s())]:
            f(y)
        assert f.cache_info().misses == 1
    """,
    "the mesh in use is part of the signature": """
        f = jax.jit(lambda x: lax.with_sharding_constraint(x, P("a")))
        for size in (2, 4):
            mesh = Mesh(np.array(devs[:size]), "a", axis_types=AxisType.Auto)
            with jax.set_mesh(mesh):
                assert f(x).sharding == NamedSharding(mesh, P("a"))
        assert f.cache_info().misses == 2
    """,
    "a mesh in use belongs to its thread": """
        seen = []
        with jax.set_mesh(m):
            thread = threading.Thread(target=lambda: seen.append((get_mesh().empty, jnp.ones(2).sharding)))
            thread.start(); thread.join()
            assert jnp.ones(2).sharding == s()
        assert seen == [(True, SingleDeviceSharding(devs[0]))]
        assert jnp.ones(2).sharding == SingleDeviceSharding(devs[0])
    """,
    "donated sharded arguments give their memory": """
        y = jax.device_put(jnp.ones((256, 256)), s("x"))
        out = jax.jit(lambda y: y + 1, donate_argnums=0, out_shardings=s("x"))(y)
        assert y.is_deleted() and out.sharding == s("x") and float(out[0, 0]) == 2
        z = jnp.ones((4, 4))
        put = jax.device_put(z, s("x"), donate=True)
        assert z.is_deleted() and not put.is_deleted()
        rows = jnp.ones((8, 64, 64))
        jax.pmap(lambda v: v * 2, donate_argnums=0)(rows)
        # what is copied to devices of XLA is not taken
        assert rows.is_deleted() == (jax.default_backend() == "cpu")
    """,
    "a callback of the user sees one device's part": """
        seen = []
        def f(v):
            jax.debug.callback(lambda part: seen.append(part.shape), v)
            return v
        out = jax.shard_map(f, mesh=m, in_specs=P("x"), out_specs=P("x"))(x)
        jax.effects_barrier()
        assert set(seen) == {(16, 48)} and np.array_equal(out, x)
    """,
    "shards are the parts": """
        y = jax.device_put(x, s("y", "x"))
        for shard in y.addressable_shards:
            assert np.array_equal(shard.data, np.asarray(x)[shard.index]) and shard.data.devices() == {shard.device}
        assert [k.replica_id for k in jax.device_put(x, s("y")).addressable_shards] == [0, 0, 1, 1, 2, 2, 3, 3]
        keys = jax.device_put(jax.random.split(jax.random.key(0), 8), s("x"))
        assert keys.addressable_shards[1].data.shape == (2,)
    """,
    "asynchronous programs keep shardings": """
        big = jax.device_put(jnp.ones((2048, 2048)), s("x"))
        f = jax.jit(lambda v: (jnp.sin(v) + 1, v.sum()))
        for _ in range(5):
            a, b = f(big)
        assert a.sharding.spec == P("x") and b.sharding.spec == P() and float(b) == 2048 * 2048
    """,
    "errors of operations name both placements": """
        other = Mesh(np.array(devs[:2]), "z")
        try:
            jax.device_put(x, s("x")) + jax.device_put(x, NamedSharding(other, P("z")))
        except ValueError as error:
            assert "[0, 1, 2, 3, 4, 5, 6, 7]" in str(error) and "[0, 1]" in str(error)
        else:
            raise AssertionError
    """,
    "a gradient that varies is summed in loops": """
        loss = lambda w, v: jnp.sin(v * w).sum()
        def steps(w, v):
            return lax.fori_loop(0, 3, lambda _, w: w - 0.1 * jax.grad(loss)(w, v), w)
        v = jnp.arange(8.0)
        got = jax.shard_map(steps, mesh=m, in_specs=(P(), P(("x", "y"))), out_specs=P())(0.5, v)
        np.testing.assert_allclose(got, steps(0.5, v), rtol=1e-4)
    """,
    "rules of programs are asked once for arguments that follow": """
        from ferrax.sharding import _propagation
        asked, places = [], _propagation.places
        _propagation.places = lambda *args: (asked.append(args), places(*args))[1]
        f = jax.pmap(lambda v: v * 2)
        v = jnp.ones((8, 2))
        for _ in range(4):
            assert f(v).sharding.num_devices == 8
        assert len(asked) == 1, asked
        assert jax.jit(lambda v: lax.with_sharding_constraint(v, s("x")))(v).sharding == s("x")
        assert len(asked) == 2, asked
    """,
    "rules of operations are asked once, where nothing else decides": """
        from ferrax.sharding import _propagation
        asked, places = [], _propagation.places
        _propagation.places = lambda *args: (asked.append(args), places(*args))[1]
        put = lambda *e: jax.device_put(x, NamedSharding(jax.make_mesh((8,), ("e",)), P(*e)))
        try:
            a, b = put("e"), put(None, "e")
            for _ in range(3):
                assert (a - 3).sharding.spec == P("e", None) and (b - 3).sharding.spec == P(None, "e")
            assert len(asked) == 2, asked
            told = lambda: jnp.einsum("ij,kj->ik", b, b, out_sharding=P("e"))
            for _ in range(2):
                with jax.set_mesh(a.sharding.mesh):
                    assert told().sharding.spec == P("e", None)
                for ambiguous in (lambda: b @ b.T, lambda: a + b):
                    try:
                        ambiguous()
                    except Exception as error:
                        assert type(error).__name__ == "ShardingTypeError"
                        continue
                    raise AssertionError("an operation is told by another one")
        finally:
            _propagation.places = places
    """,
    "calls find programs of the mesh of their arguments": """
        meshes = [jax.make_mesh((8,), (n,)) for n in "ab"]
        put = lambda k, v: jax.device_put(v, NamedSharding(meshes[k], P("ab"[k])))
        traced = []
        def f(tree, n=1):
            traced.append(str(jax.typeof(tree["v"])))
            return tree["v"] * n
        kept = ["float32[8]"]
        for g in (jax.jit(f), jax.jit(f, static_argnames="n"), jax.jit(f, donate_argnums=0)):
            for _ in range(3):
                got = [g({"v": put(k, jnp.arange(8.0))}) for k in (0, 1)] + [g({"v": jnp.arange(8.0)})]
                assert [str(v.sharding.spec) for v in got[:2]] == ["P('a',)", "P('b',)"], got
                assert got[2].sharding == jnp.arange(8.0).sharding and jax.sharding.get_abstract_mesh().empty
            # the program that is of no mesh is the function's, whatever the options
            assert traced == ["float32[8@a]", "float32[8@b]", *kept], traced
            traced.clear()
            kept = []
        h, v = jax.jit(lambda v: v + 1, in_shardings=NamedSharding(meshes[0], P("a"))), put(0, jnp.arange(8.0))
        assert all(np.array_equal(h(w), np.arange(8) + 1.0) for w in (v, v, jnp.arange(8.0)))
        for _ in range(2):
            try:
                h(jax.device_put(v, NamedSharding(meshes[0], P())))
            except ValueError as error:
                assert "Sharding passed to jit does not match" in str(error)
            else:
                raise AssertionError("an argument over another mesh passed")
    """,
    "types of operations are asked once": """
        from ferrax.sharding import _typed
        asked, results = [], _typed.results
        _typed.results = lambda program: (asked.append(program), results(program))[1]
        f = lambda v: (jnp.sinh(v) * v).sum()
        try:
            got = []
            for name in "uv":
                mesh = jax.make_mesh((8,), (name,))
                a = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P(name)))
                with jax.set_mesh(mesh):
                    for g in (jax.grad(f), jax.jit(jax.grad(f))):
                        got += [g(a)]
                    before = len(asked)
                    assert before and jax.grad(f)(a).sharding.spec == got[-1].sharding.spec == P(name)
                    assert len(asked) == before, asked[before:]
            assert all(np.allclose(g, got[0]) for g in got)
        finally:
            _typed.results = results
    """,
    "groups exchange slices of their own": """
        def send(operand, output, *numbers):
            groups = ((0, 2), (1, 3))
            parts = (v[0] for v in (operand, output, *numbers))
            return lax.ragged_all_to_all(*parts, axis_name="i", axis_index_groups=groups)[None]
        both = lambda a, b: jnp.array([a, a, b, b], jnp.int32)
        operand = jnp.array([[1, 2, 2], [10, 20, 20], [3, 4, 0], [30, 40, 0]])
        numbers = both([0, 1], [0, 1]), both([1, 2], [1, 1]), both([0, 0], [1, 2]), both([1, 1], [2, 1])
        four = jax.make_mesh((4,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
        f = jax.shard_map(send, mesh=four, in_specs=(P("i"),) * 6, out_specs=P("i"), check_vma=False)
        got = f(operand, jnp.zeros((4, 4), int), *numbers)
        assert got.tolist() == [[1, 3, 0, 0], [10, 30, 0, 0], [2, 2, 4, 0], [20, 20, 40, 0]], got
        for at, text in [(0, "must be integer type"), (1, "must be rank 1")]:
            bad = (numbers[0] + 0.5 if at == 0 else numbers[0][:, :, None], *numbers[1:])
            try:
                f(operand, jnp.zeros((4, 4), int), *bad)
            except ValueError as error:
                assert text in str(error), error
            else:
                raise AssertionError
    """,
    "a jitted function is traced for what varies": """
        loss = jax.jit(lambda w, v: (w * v).sum() + (jnp.arange(4.0) * v).sum())
        seen = []
        def f(w, v):
            for over in ((), ("x",), ("x", "y"), ("x",), ()):
                u = lax.pcast(v, over, to="varying") if over else v
                seen.append(jax.typeof(loss(u, u)).vma == set(over))
                seen.append(float(np.prod([m.shape[n] for n in over])))
                seen.append(jax.grad(loss)(w, u))
            return seen[2::3]
        v = jnp.arange(4.0)
        got = jax.shard_map(f, mesh=m, in_specs=P(), out_specs=P())(v, v)
        assert all(seen[::3]), seen
        for k, g in zip(seen[1::3], got):
            assert np.array_equal(g, k * v), (k, g)
    """,
    "custom rules whose cotangents vary": """
        @jax.custom_vjp
        def f(w, v):
            return (w * v).sum()
        f.defvjp(lambda w, v: (f(w, v), (w, v)), lambda r, g: (g * r[1].sum(), g * r[0] * jnp.ones_like(r[1])))
        got = jax.shard_map(lambda w, v: jax.grad(f)(w, v), mesh=m, in_specs=(P(), P("x")), out_specs=P())(
            jnp.float32(2), jnp.arange(8.0))
        assert float(got) == 28, got
    """,
    "ragged exchange": """
        send = lambda v, o, n: lax.ragged_all_to_all(v, jnp.zeros(4), jnp.array([0, 1]), jnp.array([1, 2]),
                                                     jnp.array([o, 2 * o]), n, axis_name="i")
        mesh = Mesh(np.array(devs[:2]), "i")
        v = jnp.array([1.0, 2, 3, 4, 5, 6])
        got = jax.shard_map(lambda v: send(v, lax.axis_index("i"), jnp.array([1, 1])), mesh=mesh, in_specs=P("i"),
                            out_specs=P("i"))(v)
        assert got.tolist() == [1, 4, 0, 0, 2, 3, 5, 6], got
    """,
    "compiled calls put arguments where the program was lowered for": """
        a = s("x")
        n = np.arange(8)
        struct = jax.ShapeDtypeStruct((8,), n.dtype)
        for c in (
            jax.jit(lambda v: v + v).lower(jax.ShapeDtypeStruct((8,), n.dtype, sharding=a)).compile(),
            jax.jit(lambda v: v + v, in_shardings=a).lower(struct).compile(),
            jax.jit(lambda v: v + v, in_shardings=(a,)).trace(n).lower().compile(),
        ):
            assert c.input_shardings == ((a,), {}) and c.output_shardings == a
            for v in (n, jnp.asarray(n), jax.device_put(n, a)):
                got = c(v)
                assert got.sharding == a and np.array_equal(got, 2 * n)
            try:
                c(jax.device_put(n, s()))
            except ValueError as error:
                assert "input shardings that disagree" in str(error) and "Argument v" in str(error), error
            else:
                raise AssertionError("an argument from elsewhere")
        c = jax.jit(lambda k, v, u: (k * v, u), in_shardings=(a, None), static_argnums=0).lower(3, n, n).compile()
        assert c.input_shardings == ((a, s()), {})
        assert [r.sharding for r in c(n, n)] == [a, s()]
        try:
            jax.jit(jnp.sin, in_shardings=a).lower(np.ones(9))
        except ValueError as error:
            assert "partitioned 4 times" in str(error), error
        else:
            raise AssertionError("parts of different sizes")
    """,
    "samples go where they are asked for": """
        k = jax.random.key(0)
        with jax.set_mesh(jax.make_mesh((4, 2), ("x", "y"))):
            for f in (
                lambda o: jax.random.normal(k, (8, 2), out_sharding=o),
                lambda o: jax.random.randint(k, (8,), 0, 9, out_sharding=o),
                lambda o: jax.random.dirichlet(k, jnp.ones(3), (8,), out_sharding=o),
                lambda o: jax.random.permutation(k, 8, out_sharding=o),
                lambda o: jax.random.categorical(k, jnp.zeros((8, 3)), out_sharding=o),
            ):
                want = f(None)
                for got in (f(P("x")), jax.jit(f, static_argnums=0)(P("x"))):
                    assert str(jax.typeof(got)).startswith(f"{want.dtype.name}[8@x") and same(got, want)
            try:
                jax.random.normal(k, (9,), out_sharding=P("x"))
            except ValueError as error:
                assert "partitioned 4 times" in str(error), error
            else:
                raise AssertionError("parts of different sizes")
    """,
    "a mesh of other axes over the same devices": """
        @jax.jit
        def f(v):
            with use_abstract_mesh(AbstractMesh((8,), ("a",), (AxisType.Explicit,))):
                return jax.reshard(v, P("a", None)) * 2
        with jax.set_mesh(jax.make_mesh((4, 2), ("x", "y"))):
            v = jax.device_put(np.arange(32.0).reshape(8, 4), P("x", "y"))
            got = f(v)
            assert str(jax.typeof(got)).endswith("[8@a,4]") and np.array_equal(got, 2 * v), jax.typeof(got)
            assert [q.device.id for q in got.addressable_shards] == list(range(8))
    """,
    "types of traced values name explicit axes": """
        ty = lambda v: str(jax.typeof(v))
        with jax.set_mesh(jax.make_mesh((4, 2), ("x", "y"))):
            a = jax.device_put(np.arange(32, dtype=np.float32).reshape(8, 4), P("x", "y"))
            b = jax.device_put(a, P("x", None))
            r = jnp.ones((4, 4))
            step = lambda v: v + 1
            cases = [
                (lambda a, b: jnp.sin(a), "[8@x,4@y]"),
                (lambda a, b: a.T, "[4@y,8@x]"),
                (lambda a, b: a.sum(0), "[4@y]"),
                (lambda a, b: a.mean(), "[]"),
                (lambda a, b: b @ r, "[8@x,4]"),
                (lambda a, b: a[None] + jnp.ones((3, 1, 1)), "[3,8@x,4@y]"),
                (lambda a, b: jax.reshard(a, P(None, "x")), "[8,4@x]"),
                (lambda a, b: jax.nn.softmax(b), "[8@x,4]"),
                (lambda a, b: jax.grad(lambda v: (v * v).sum())(a), "[8@x,4@y]"),
                (lambda a, b: jax.vmap(jnp.sin)(a), "[8@x,4@y]"),
                (lambda a, b: lax.cond(a.sum() > 0, lambda v: 2 * v, lambda v: v, a), "[8@x,4@y]"),
                (lambda a, b: lax.cond(a.sum() > 0, lambda v: v, lambda v: v * 3, a), "[8@x,4@y]"),
                (lambda a, b: lax.while_loop(lambda v: v.sum() < 9, step, a), "[8@x,4@y]"),
                (lambda a, b: lax.scan(lambda c, _: (c + 1, None), a, length=3)[0], "[8@x,4@y]"),
                (lambda a, b: jax.checkpoint(jnp.sin)(a), "[8@x,4@y]"),
            ]
            log = []
            for f, want in cases:
                traced = jax.jit(lambda a, b, f=f: (log.append(ty(f(a, b))), f(a, b))[1])(a, b)
                assert log.pop() == ty(f(a, b)) == ty(traced) == "float32" + want, (want, ty(f(a, b)), ty(traced))
            # a trace for each placement
            g = jax.jit(lambda v: log.append([ty(v), ty(v + 1), ty(v.T), ty(v.sum(1))]))
            for v in (a, b, a, b, jnp.ones((8, 4))):
                g(v)
            spell = lambda x, y: [f"float32{s}" for s in (f"[8{x},4{y}]", f"[8{x},4{y}]", f"[4{y},8{x}]", f"[8{x}]")]
            assert log == [spell("@x", "@y"), spell("@x", ""), spell("", "")], log
            log.clear()
            see = lambda v: (log.append(ty(v)), (v * v).sum())[1]
            jax.grad(see)(a), jax.jit(jax.grad(see))(a), jax.make_jaxpr(see)(a), jax.eval_shape(see, a)
            jax.jit(see).lower(jax.ShapeDtypeStruct((8, 4), a.dtype, sharding=a.sharding))
            lax.scan(lambda c, _: (c, see(c)), a, length=2)
            assert log == ["float32[8@x,4@y]"] * 6, log
            log.clear()
            jax.jit(jax.vmap(see))(a)
            jax.vmap(see, in_axes=1)(a)
            assert log == ["float32[4@y]", "float32[8@x]"], log
            # the mesh says which axes are in types
            log.clear()
            auto_axes(see, axes="x", out_sharding=P())(a)
            jax.jit(auto_axes(see, out_sharding=P()))(a)
            assert log == ["float32[8,4@y]", "float32[8,4]"], log
        with jax.set_mesh(Mesh(np.array(devs).reshape(4, 2), ("x", "y"))):
            log.clear()
            jax.jit(explicit_axes(see, in_sharding=P("x", "y")))(jnp.ones((8, 4)))
            jax.jit(see)(jax.device_put(jnp.ones((8, 4)), P("x")))
            assert log == ["float32[8@x,4@y]", "float32[8,4]"], log
    """,
    "one explicit axis cannot divide two axes of a sum": """
        from ferrax.sharding._explicit import ShardingTypeError
        me = jax.make_mesh((4, 2), ("x", "y"))
        n = np.arange(64, dtype=np.int32).reshape(8, 8)
        a, b = (jax.device_put(n, NamedSharding(me, p)) for p in (P("x", None), P(None, "x")))
        c = jax.device_put(n, NamedSharding(me, P(None, "y")))
        with jax.set_mesh(me):
            for f in (lambda: a + b, lambda: jnp.minimum(a, b), lambda: jnp.maximum(a, b)):
                try:
                    f()
                except ShardingTypeError as error:
                    assert "produces an illegally sharded result" in str(error) and "[8@x,8@x]" in str(error), error
                else:
                    raise AssertionError("it went")
            assert np.array_equal(a + c, 2 * n) and str(jax.typeof(a + c)) == "int32[8@x,8@y]"
            got = auto_axes(lambda u, v: u + v, out_sharding=P("x", None))(a, b)
            assert np.array_equal(got, 2 * n) and str(jax.typeof(got)) == "int32[8@x,8]"
            assert np.array_equal(jax.reshard(a, P(None, "x")) + b, 2 * n)
            assert np.array_equal(a + n, 2 * n)
        auto = Mesh(me.devices, ("x", "y"))
        u, v = (jax.device_put(n, NamedSharding(auto, p)) for p in (P("x"), P(None, "x")))
        assert np.array_equal(u + v, 2 * n)
    """,
    "what results keep of explicit axes": """
        me = jax.make_mesh((2, 4), ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
        def over(shape, *spec):
            return jax.device_put(np.arange(math.prod(shape), dtype=np.float32).reshape(shape), P(*spec))
        with jax.set_mesh(me):
            a, xy = over((8, 16), "x", None), over((8, 16), "x", "y")
            y = over((8, 16), None, "y")
            kernel = jnp.ones((4, 2, 3, 3))
            pooled = lambda v: jax.lax.reduce_window(v, -jnp.inf, jax.lax.max, (1, 2), (1, 2), "VALID")
            images = over((8, 2, 8, 8), "x")
            for f, args, spec in [
                (lambda v: v.reshape(128), (xy,), P(("x", "y"))),
                (lambda v: v.reshape(128), (a,), P("x")),
                (lambda v: v.reshape(2, 4, 16), (xy,), P("x", None, "y")),
                (lambda v: v.reshape(8, 1, 4, 4), (xy,), P("x", None, "y", None)),
                (lambda v: jax.lax.slice(v, (0, 0), (4, 16)), (a,), P("x", None)),
                (lambda v: jax.lax.dynamic_slice(v, (0, 0), (2, 16)), (a,), P("x", None)),
                (lambda v: jnp.pad(v, ((1, 1), (0, 0))), (a,), P("x", None)),
                (lambda v: jnp.concatenate([v, v]), (a,), P("x", None)),
                (lambda v: jax.lax.top_k(v, 2)[0], (a,), P("x", None)),
                (lambda v: v[jnp.array([0, 1])], (y,), P(None, "y")),
                (lambda v: jnp.take_along_axis(v, jnp.zeros((8, 1), int), 1), (a,), P("x", None)),
                (lambda v: jax.lax.conv(v, kernel, (1, 1), "SAME"), (images,), P("x", None, None, None)),
                (pooled, (a,), P("x", None)),
                (lambda v: v.at[jnp.arange(4)].get(out_sharding=P("x", None)), (a,), P("x", None)),
                (lambda v: v.at[0].set(1.0, out_sharding=P(None, "y")), (a,), P(None, "y")),
                (lambda v: jnp.zeros_like(v) + jnp.full_like(v, 2), (xy,), P("x", "y")),
            ]:
                for g in (f, jax.jit(f)):
                    assert g(*args).sharding.spec == spec, (spec, g(*args).sharding.spec)
                assert np.array_equal(f(*args), jax.jit(f)(*args))
    """,
    "what has to be told over explicit axes": """
        from ferrax.sharding._explicit import ShardingTypeError
        me = jax.make_mesh((2, 4), ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
        def over(shape, *spec):
            return jax.device_put(np.arange(math.prod(shape), dtype=np.float32).reshape(shape), P(*spec))
        with jax.set_mesh(me):
            x0, x1, y0, y1 = (over((8, 8), *s) for s in (("x", None), (None, "x"), ("y", None), (None, "y")))
            b0, b1 = over((8, 4, 8), "x", None, None), over((8, 8, 4), "y", None, None)
            for f, args, text in [
                (jnp.dot, (x1, x0), "Contracting dimensions are sharded and it is ambiguous"),
                (jnp.dot, (x1, y0), "dot_general requires contracting dimensions to have consistent sharding"),
                (jnp.dot, (x0, x1), "produces an illegally sharded result: f32[8@x,8@x]"),
                (jnp.matmul, (b0, b1), "dot_general requires lhs batch dimensions and rhs batch dimensions"),
                (jnp.add, (x0, y0), "add got incompatible shardings for broadcasting: ('x', None), ('y', None)."),
                (lambda a, b: jnp.where(a > 3, a, b), (x0, y0), "select cases must have the same shardings"),
                (lambda a, b: jnp.concatenate([a, b]), (x1, y1), "All operands should have the same sharding"),
                (lambda a, b: jnp.stack([a, b]), (x0, y0), "All operands should have the same sharding"),
                (lambda a: a.reshape(64), (x1,), "This reshape is not supported"),
                (lambda a: a.reshape(8, 2, 4), (y1,), "This reshape is not supported"),
                (lambda a: a[:3], (x0,), "slicing on sharded dims where out dim (3) is not divisible by mesh axes (2)"),
                (lambda a: a[jnp.array([0, 1])], (x0,), "Use `.at[...].get(out_sharding=)`"),
            ]:
                for g in (f, jax.jit(f)):
                    try:
                        g(*args)
                    except ShardingTypeError as error:
                        assert text in str(error), error
                    else:
                        raise AssertionError(text)
            # who says where the result goes need not be told, nor do the ways back of who was not
            told = lambda a, b: jnp.einsum("ij,jk->ik", a, b, out_sharding=P("x", None))
            def by_hand(a, b):
                return told(a, b).sum()
            w, v, rows = over((8, 8), None, "y"), over((8, 4), None, None), over((8, 8), "x", None)
            def two(w, v, rows):
                return jnp.matmul(jnp.tanh(rows @ w), v, out_sharding=P("x", None)).sum()
            for f, args in ((by_hand, (x1, x0)), (lambda w, v: two(w, v, rows), (w, v))):
                for g in (jax.grad(f, (0, 1)), jax.jit(jax.grad(f, (0, 1)))):
                    found = g(*args)
                    for got, arg in zip(found, args):
                        assert got.shape == arg.shape
            assert told(x1, x0).sharding.spec == jax.jit(told)(x1, x0).sharding.spec == P("x", None)
            assert np.array_equal(told(x1, x0), np.asarray(x1) @ np.asarray(x0))
    """,
    "old interfaces": """
        from ferrax.experimental.shard_map import shard_map
        from ferrax.experimental.pjit import pjit
        assert np.array_equal(shard_map(lambda v: 2 * v, m, P("x"), P("x"), check_rep=False)(x), 2 * x)
        assert pjit(lambda v: v, out_shardings=s("x"))(x).sharding == s("x")
    """,
}


@pytest.fixture(scope="session")
def results() -> dict[str, str]:
    return endings(SETUP, CASES)


@pytest.mark.parametrize("name", CASES)
def test_case(name, results):
    assert results[name] == "ok", results[name]
