"""What JAX's pages on distributed arrays, sharded computation and `pmap` show, in programs of our own."""

from __future__ import annotations

import pytest

from tests.cases import endings
from tests.sharding.document_cases import SETUP

CASES = {
    "an array is cut into one part for each device": """
        from ferrax.experimental import mesh_utils
        grid = mesh_utils.create_device_mesh((4, 2))
        assert grid.shape == (4, 2) and len({d.id for d in grid.flat}) == 8
        mesh = Mesh(grid, ("rows", "cols"))
        x = jax.random.normal(jax.random.key(3), (16, 12))
        y = jax.device_put(x, NamedSharding(mesh, P("rows", "cols")))
        assert len(y.addressable_shards) == 8 and (y == x).all()
        for shard in y.addressable_shards:
            assert shard.data.shape == (4, 6) and shard.replica_id == 0
            assert (np.asarray(shard.data) == np.asarray(x)[shard.index]).all()
            assert shard.data.devices() == {shard.device}
        assert not y.is_fully_replicated and y.committed
    """,
    "an axis that is not named holds copies": """
        mesh = mesh_of((4, 2), ("a", "b"), Auto)
        x = jnp.arange(32.0).reshape(8, 4)
        for s, block, copies in ((P("a", None), (2, 4), 2), (P(None, "b"), (8, 2), 4), (P("b", "a"), (4, 1), 1),
                                 (P(("a", "b"), None), (1, 4), 1), (P(), (8, 4), 8)):
            y = jax.device_put(x, NamedSharding(mesh, s))
            assert {shard.data.shape for shard in y.addressable_shards} == {block}
            assert sorted({shard.replica_id for shard in y.addressable_shards}) == list(range(copies))
            assert (y == x).all()
        assert jax.device_put(x, NamedSharding(mesh, P())).is_fully_replicated
        raises(ValueError, "partitioned 4 times", lambda: jax.device_put(jnp.ones(6), NamedSharding(mesh, P("a"))))
    """,
    "a picture shows where parts are": """
        import contextlib, io
        mesh = mesh_of((4, 2), ("a", "b"), Auto)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            jax.debug.visualize_array_sharding(jax.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P("a", None))))
            jax.debug.visualize_array_sharding(jnp.ones((4, 4)))
        assert all(f"{2 * i},{2 * i + 1}" in out.getvalue() for i in range(4))
    """,
    "a computation follows its data": """
        mesh = mesh_of((4, 2), ("a", "b"), Auto)
        put = lambda x, *s: jax.device_put(x, NamedSharding(mesh, P(*s)))
        x = jax.random.normal(jax.random.key(0), (16, 8))
        y = jnp.sin(put(x, "a", "b"))
        assert y.sharding == NamedSharding(mesh, P("a", "b")) and near(y, jnp.sin(x))
        left, right = put(x, "a", None), put(x.T, None, "b")
        out = left @ right
        assert out.sharding == NamedSharding(mesh, P("a", "b")) and near(out, x @ x.T)
        assert jnp.copy(out).sharding == out.sharding
        total = jax.jit(lambda x: x.sum(0))(put(x, "a", "b"))
        assert near(total, x.sum(0)) and total.sharding == NamedSharding(mesh, P("b"))
    """,
    "arrays that were put on other devices do not meet": """
        mesh, other = Mesh(np.array(devs[:4]), ("i",)), Mesh(np.array(devs[4:]), ("i",))
        a = jax.device_put(jnp.ones(4), NamedSharding(mesh, P("i")))
        b = jax.device_put(jnp.ones(4), NamedSharding(other, P("i")))
        raises(ValueError, "Got argument 0 of add with shape float32", lambda: a + b)
        raises(ValueError, "Received incompatible devices", lambda: a + jax.device_put(jnp.ones(4), devs[5]))
        c = a + jnp.ones(4) + np.ones(4, np.float32) + 1
        assert c.sharding == a.sharding and (c == 4).all()
    """,
    "one device has two kinds of shardings": """
        from ferrax.sharding import SingleDeviceSharding
        first, second = SingleDeviceSharding(devs[0]), SingleDeviceSharding(devs[1])
        for axes in (), ("i",):
            named = NamedSharding(Mesh(np.array(devs[:1]), ("i",)), P(*axes))
            assert first.is_equivalent_to(named, ndim=1) and named.is_equivalent_to(first, ndim=1)
            assert not second.is_equivalent_to(named, ndim=1) and not named.is_equivalent_to(second, ndim=1)
        assert not first.is_equivalent_to(NamedSharding(Mesh(np.array(devs[:2]), ("i",)), P()), ndim=1)
        assert not first.is_equivalent_to(second, ndim=0) and first.check_compatible_aval(aval_shape=(3,)) is None
    """,
    "new arrays take specs that are too long if the rest divides nothing": """
        mesh = Mesh(np.array(devs), ("i",))
        s, wrong = NamedSharding(mesh, P("i", None)), NamedSharding(mesh, P(None, "i"))
        made = [
            lambda s: lax.full((8,), 1.0, sharding=s), lambda s: lax.full_like(jnp.zeros(8), 1, sharding=s),
            lambda s: jnp.ones(8, device=s), lambda s: jnp.full((8,), 1.0, device=s),
            lambda s: jax.make_array_from_callback((8,), s, lambda index: np.ones(8, np.float32)[index]),
        ]
        for make in made:
            x = make(s)
            assert x.sharding.is_equivalent_to(s, 1) and x.addressable_shards[3].data.shape == (1,)
            assert float((x + 1).sum()) == 16
            raises(Exception, "", lambda: make(wrong))
        assert s.shard_shape((8,)) == (1,) and s.devices_indices_map((8,))[devs[2]] == (slice(2, 3),)
        raises(ValueError, "is only valid for values of rank at least 2", lambda: jax.device_put(jnp.ones(8), s))
    """,
    "a constraint inside of a program": """
        mesh = mesh_of((4, 2), ("a", "b"), Auto)
        s = lambda *e: NamedSharding(mesh, P(*e))
        @jax.jit
        def f(x):
            x = lax.with_sharding_constraint(x + 1, s("b", "a"))
            return lax.with_sharding_constraint(2 * x, s("a")), lax.with_sharding_constraint(x, s())
        one, whole = f(jax.device_put(jnp.ones((8, 4)), s("a", "b")))
        assert one.sharding.is_equivalent_to(s("a"), 2) and whole.is_fully_replicated and (one == 4).all()
        flat = NamedSharding(Mesh(np.array(devs), ("x",)), P("x"))
        g = jax.jit(lambda x: lax.with_sharding_constraint(x.sum(0), flat))
        x = jax.device_put(jnp.arange(32.0).reshape(4, 8), s(None, "b"))
        assert spec(g(x)) == P("x") and near(g(x), np.arange(32.0).reshape(4, 8).sum(0))
    """,
    "a layer on one device, on parts, with constraints, and mapped": """
        mesh = Mesh(np.array(devs), ("x",))
        s = NamedSharding(mesh, P("x"))
        x, w, b = (jax.random.normal(jax.random.key(i), n) for i, n in enumerate([(32,), (32, 4), (4,)]))
        layer = jax.jit(lambda x, w, b: jax.nn.sigmoid(x @ w + b))
        expected = layer(x, w, b)
        assert near(layer(jax.device_put(x, s), jax.device_put(w, s), b), expected)
        constrain = lambda v: lax.with_sharding_constraint(v, s)
        assert near(jax.jit(lambda x, w, b: layer(constrain(x), constrain(w), b))(x, w, b), expected)
        specs = (P("x"), P("x", None), P(None))
        mapped = jax.shard_map(lambda x, w, b: jax.nn.sigmoid(lax.psum(x @ w, "x") + b), mesh=mesh, in_specs=specs,
                               out_specs=P(None))
        assert near(jax.jit(mapped)(x, w, b), expected) and near(mapped(x, w, b), expected)
    """,
    "a network whose batch, or whose weights, are divided": """
        mesh = mesh_of((4, 2), ("batch", "model"), Auto)
        s = lambda *e: NamedSharding(mesh, P(*e))
        sizes = (12, 16, 8)
        keys = jax.random.split(jax.random.key(1), 2)
        params = [(jax.random.normal(k, (m, n)) / m, jnp.zeros(n)) for k, m, n in zip(keys, sizes[:-1], sizes[1:])]
        x, y = jax.random.normal(jax.random.key(2), (32, 12)), jax.random.normal(jax.random.key(3), (32, 8))
        def loss(params, x, y):
            (w1, b1), (w2, b2) = params
            return ((jnp.tanh(x @ w1 + b1) @ w2 + b2 - y) ** 2).mean()
        step = jax.jit(lambda p, x, y: jax.tree.map(lambda v, g: v - 0.1 * g, p, jax.grad(loss)(p, x, y)))
        expected = step(params, x, y)
        divided = jax.device_put(x, s("batch")), jax.device_put(y, s("batch"))
        everywhere = jax.device_put(params, s())
        assert near(step(everywhere, *divided), expected)
        cut = [(jax.device_put(params[0][0], s(None, "model")), jax.device_put(params[0][1], s("model"))),
               (jax.device_put(params[1][0], s("model", None)), jax.device_put(params[1][1], s()))]
        after = step(cut, *divided)
        assert near(after, expected) and after[0][0].sharding == cut[0][0].sharding
        for _ in range(20):
            after = step(after, *divided)
        assert loss(after, *divided) < loss(cut, *divided)
    """,
    "random numbers do not depend on how they are divided": """
        mesh = mesh_of((8,), ("x",), Auto)
        s = NamedSharding(mesh, P("x"))
        key = jax.random.key(7)
        draw = lambda key: jax.random.uniform(key, (16, 4))
        divided = jax.jit(draw, out_shardings=s)(key)
        assert spec(divided) == P("x") and (divided == draw(key)).all()
        keys = jax.device_put(jax.random.split(key, 8), s)
        assert near(jax.jit(jax.vmap(lambda k: jax.random.normal(k, (3,))))(keys),
                    jnp.stack([jax.random.normal(k, (3,)) for k in jax.random.split(key, 8)]))
    """,
    "an array from what each device holds": """
        mesh = mesh_of((4, 2), ("a", "b"), Auto)
        s = NamedSharding(mesh, P("a", "b"))
        data = np.arange(64.0, dtype=np.float32).reshape(8, 8)
        made = jax.make_array_from_callback(data.shape, s, lambda index: data[index])
        assert made.sharding == s and (made == data).all()
        parts = [jax.device_put(data[index], d) for d, index in s.addressable_devices_indices_map(data.shape).items()]
        joined = jax.make_array_from_single_device_arrays(data.shape, s, parts)
        assert (joined == data).all() and [p.device for p in joined.addressable_shards] == list(mesh.devices.flat)
        local = jax.make_array_from_process_local_data(s, data)
        assert local.shape == data.shape and (local == data).all()
        with jax.set_mesh(mesh):
            of_spec = jax.make_array_from_process_local_data(P("a"), {"x": data, "y": data[0]})
            assert spec(of_spec["x"]) == P("a") and (of_spec["x"] == data).all() and of_spec["y"].sharding.mesh == mesh
        raises(ValueError, "set a mesh", lambda: jax.make_array_from_process_local_data(P("a"), data))
        assert jax.process_count() == 1 and jax.local_devices() == jax.devices() and made.is_fully_addressable
    """,
    "pmap: one row for each device": """
        x = jnp.arange(24.0).reshape(8, 3)
        out = jax.pmap(lambda v: v * 2 + lax.axis_index("i"), axis_name="i")(x)
        assert near(out, 2 * x + jnp.arange(8)[:, None]) and len(out.devices()) == 8
        total = jax.pmap(lambda v: lax.psum(v, "i"), axis_name="i", out_axes=None)(x)
        assert near(total, x.sum(0)) and total.shape == (3,)
        f = jax.pmap(lambda a, b: a @ b, in_axes=(None, 0), devices=devs[:4])
        assert near(f(jnp.ones((2, 3)), x[:4]), jnp.stack([jnp.ones((2, 3)) @ v for v in x[:4]]))
        assert near(jax.pmap(lambda v: lax.ppermute(v, "i", [(k, (k + 1) % 8) for k in range(8)]), "i")(x),
                    jnp.roll(x, 1, 0))
        first = out.addressable_shards[0].data.squeeze(0)
        assert first.shape == (3,) and near(first, out[0])
    """,
    "pmap: a step of training in data parallel": """
        w = jnp.ones(3)
        x, y = jnp.arange(48.0).reshape(8, 2, 3) / 10, jnp.ones((8, 2))
        loss = lambda w, x, y: ((x @ w - y) ** 2).mean()
        @partial(jax.pmap, axis_name="data", in_axes=(None, 0, 0), out_axes=None)
        def step(w, x, y):
            return w - 0.01 * lax.pmean(jax.grad(loss)(w, x, y), "data")
        expected = w - 0.01 * jax.grad(loss)(w, x.reshape(16, 3), y.reshape(16))
        assert near(step(w, x, y), expected) and step(w, x, y).is_fully_replicated
    """,
    "functions for several processes with one": """
        from ferrax.experimental import multihost_utils
        mesh = mesh_of((8,), ("x",), Auto)
        x = jax.device_put(jnp.arange(16.0), NamedSharding(mesh, P("x")))
        assert near(multihost_utils.process_allgather(x, tiled=True), np.arange(16.0))
        assert near(multihost_utils.broadcast_one_to_all(np.arange(3.0)), np.arange(3.0))
        multihost_utils.sync_global_devices("here")
        multihost_utils.assert_equal(np.ones(2), "not the same")
        host = multihost_utils.global_array_to_host_local_array(x, mesh, P("x"))
        assert near(multihost_utils.host_local_array_to_global_array(host, mesh, P("x")), x)
        assert jax.process_index() == 0 and all(d.process_index == 0 for d in devs)
    """,
}


@pytest.fixture(scope="module")
def found() -> dict[str, str]:
    return endings(SETUP, CASES)


@pytest.mark.parametrize("name", CASES)
def test_documents_arrays(found: dict[str, str], name: str) -> None:
    assert found[name] == "ok", found[name]
