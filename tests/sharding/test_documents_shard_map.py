"""What JAX's page on `shard_map` shows, in programs of our own: blocks, what varies, collectives, networks."""

from __future__ import annotations

import pytest

from tests.cases import endings
from tests.sharding.document_cases import SETUP

SETUP = (
    SETUP
    + """
mesh = mesh_of((8,), ("i",))
ring = [(k, (k + 1) % 8) for k in range(8)]
over = lambda f, i=P("i"), o=P("i"), m=mesh, **k: jax.shard_map(f, mesh=m, in_specs=i, out_specs=o, **k)
put = lambda x, *s, m=mesh: jax.device_put(x, NamedSharding(m, P(*s)))
rand = lambda seed, *shape: jax.random.normal(jax.random.key(seed), shape)
"""
)

CASES = {
    "a product of blocks": """
        m = mesh_of((4, 2), ("x", "y"))
        a, b = put(rand(0, 8, 16), "x", "y", m=m), put(rand(1, 16, 4), "y", None, m=m)
        with jax.set_mesh(m):
            @jax.shard_map(in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))
            def product(a, b):
                assert a.shape == (2, 8) and b.shape == (8, 4)
                return lax.psum(a @ b, "y")
            for f in (product, jax.jit(product)):
                assert spec(f(a, b)) == P("x", None) and near(f(a, b), rand(0, 8, 16) @ rand(1, 16, 4))
            assert near(product(a, b), jnp.dot(a, b, out_sharding=P("x", None)))
    """,
    "blocks keep their rank, rows do not": """
        x = rand(0, 16, 3)
        blocks = over(lambda v: v.T @ v)(put(x, "i"))
        assert near(blocks, jnp.concatenate([v.T @ v for v in jnp.split(x, 8)]))
        assert near(jax.vmap(lambda v: v @ v)(x), jnp.stack([v @ v for v in x]))
    """,
    "what a spec does not name is there everywhere": """
        m = mesh_of((4, 2), ("i", "j"), Auto)
        shapes = []
        same = lambda v: (shapes.append(v.shape), v)[1]
        f = jax.shard_map(same, mesh=m, in_specs=P("i", None), out_specs=P("i", "j"))
        x = jnp.arange(144.0).reshape(12, 12)
        assert near(f(x), jnp.tile(x, (1, 2))) and set(shapes) == {(3, 12)}
        one = jnp.array([[3.0]])
        for o, reps in ((P("i", "j"), (4, 2)), (P("i", None), (4, 1)), (P(None, None), (1, 1))):
            assert near(jax.shard_map(lambda: one, mesh=m, in_specs=(), out_specs=o)(), jnp.tile(one, reps))
        sums = (("j", P("i", None), (12, 6)), ("i", P(None, "j"), (3, 12)), (("i", "j"), P(None, None), (3, 6)))
        for axes, o, shape in sums:
            out = jax.shard_map(lambda v: lax.psum(v, axes), mesh=m, in_specs=P("i", "j"), out_specs=o)(x)
            assert out.shape == shape and near(out.sum(), x.sum())
    """,
    "types say what varies": """
        seen = []
        def f(x, y):
            total = lax.psum(x, "i")
            seen.extend(jax.typeof(v).vma for v in (x, y, total, x + y, lax.pcast(y, "i", to="varying")))
            return x * total + y
        out = over(f, (P("i"), P()))(put(jnp.arange(16.0), "i"), jnp.ones(2))
        x = jnp.arange(16.0).reshape(8, 2)
        assert near(out, (x * x.sum(0) + 1).ravel())
        assert seen[:5] == [{"i"}, set(), set(), {"i"}, {"i"}]
        twice, v = lambda x: 2 * x, put(jnp.arange(16.0), "i")
        raises(ValueError, "require replication", lambda: over(twice, P("i"), P())(v))
        raises(ValueError, "Unsupported pcast", lambda: over(lambda x: lax.pcast(x, "i", to="varying"))(v))
        first = over(twice, P("i"), P(), check_vma=False)(v)
        assert near(first, 2 * jnp.arange(2.0))
    """,
    "what a loop carries varies from the start": """
        def loop(start):
            def f(x):
                c = lax.pcast(jnp.zeros(2), "i", to="varying") if start else jnp.zeros(2)
                return lax.scan(lambda c, _: (c + x, None), c, None, length=3)[0]
            return over(f)(put(jnp.arange(16.0), "i"))
        assert near(loop(True), 3 * jnp.arange(16.0))
        raises(TypeError, "pcast", lambda: over(
            lambda x, y: lax.scan(lambda c, _: ((c[1], c[0]), None), (x, y), None, length=2)[0], (P("i"), P()), P("i")
        )(put(jnp.arange(8.0), "i"), jnp.ones(1)))
    """,
    "collectives": """
        x = jnp.arange(64.0).reshape(8, 8)
        d = put(x, "i")
        assert near(over(lambda v: lax.psum(v, "i"), o=P())(d), x.sum(0, keepdims=True))
        assert near(over(lambda v: lax.pmean(v, "i"), o=P())(d), x.mean(0, keepdims=True))
        assert near(over(lambda v: lax.pmax(v, "i"), o=P())(d), x.max(0, keepdims=True))
        assert near(over(lambda v: lax.all_gather(v, "i", tiled=True), o=P("i"))(d), jnp.tile(x, (8, 1)))
        assert near(over(lambda v: lax.all_gather(v, "i", tiled=True, to="invarying"), o=P())(d), x)
        assert near(over(lambda v: lax.psum_scatter(v[0], "i", tiled=True))(d), x.sum(0))
        assert near(over(lambda v: lax.ppermute(v, "i", ring))(d), jnp.roll(x, 1, 0))
        swapped = over(lambda v: lax.all_to_all(v, "i", 1, 0, tiled=True), o=P(None, "i"))(d)
        assert near(swapped, x) and spec(swapped) == P(None, "i")
        assert near(over(lambda: lax.axis_index("i")[None], ())(), jnp.arange(8))
        assert over(lambda: jnp.full(1, lax.axis_size("i")), (), P("i"))().tolist() == [8] * 8
        halves = over(lambda v: lax.psum(v, "i", axis_index_groups=[[0, 1, 2, 3], [4, 5, 6, 7]]), check_vma=False)(d)
        assert near(np.asarray(halves)[::4], jnp.stack([x[:4].sum(0), x[4:].sum(0)]))
    """,
    "a sum is a scatter and a gather": """
        x = rand(2, 8, 16)
        def both(v):
            part = lax.psum_scatter(v[0], "i", tiled=True)
            return lax.all_gather(part, "i", tiled=True, to="invarying")
        assert near(over(both, o=P())(put(x, "i")), x.sum(0))
        def on(_, c):
            moved = lax.ppermute(c[1], "i", ring)
            return c[0] + moved, moved
        around = lambda v: lax.fori_loop(0, 7, on, (v, v))[0]
        assert near(over(around)(put(x, "i")), jnp.tile(x.sum(0), (8, 1)))
    """,
    "products whose rows are gathered step by step": """
        a, b = rand(0, 16, 24), rand(1, 24, 8)
        columns = (P(None, "i"), P(None, "i")), P(None, "i")
        args = put(a, None, "i"), put(b, None, "i")
        whole = over(lambda a, b: lax.all_gather(a, "i", tiled=True, axis=1) @ b, *columns)
        assert near(whole(*args), a @ b)
        def overlapped(a, b):
            here, rows = lax.axis_index("i"), a.shape[1]
            def step(k, c):
                out, block = c
                at = (here - k) % 8 * rows
                return out + block @ lax.dynamic_slice_in_dim(b, at, rows), lax.ppermute(block, "i", ring)
            start = lax.pcast(jnp.zeros((a.shape[0], b.shape[1])), "i", to="varying")
            return lax.fori_loop(0, 8, step, (start, a))[0]
        assert near(jax.jit(over(overlapped, *columns))(*args), a @ b)
        rows = (P(None, "i"), P("i", None)), P("i", None)
        scattered = over(lambda a, b: lax.psum_scatter(a @ b, "i", tiled=True), *rows)
        assert near(scattered(put(a, None, "i"), put(b, "i", None)), a @ b)
    """,
    "derivatives": """
        x, w = rand(0, 16, 4), rand(1, 4)
        f = over(lambda x, w: jnp.tanh(x @ w), (P("i"), P()))
        plain = lambda x, w: jnp.tanh(x @ w)
        for wrap in (lambda g: g, jax.jit):
            with jax.set_mesh(mesh):
                got = wrap(jax.grad(lambda x, w: f(x, w).sum(), argnums=(0, 1)))(put(x, "i"), put(w))
            assert near(got, jax.grad(lambda x, w: plain(x, w).sum(), argnums=(0, 1))(x, w))
            assert [spec(g) for g in got] == [P("i", None), P(None)]
        assert near(jax.jvp(f, (put(x, "i"), put(w)), (put(x, "i"), put(w)))[1], jax.jvp(plain, (x, w), (x, w))[1])
        total = over(lambda x: lax.psum((x**2).sum(), "i"), o=P())
        assert near(jax.grad(total)(put(x, "i")), 2 * x) and near(jax.grad(jax.remat(total))(put(x, "i")), 2 * x)
        rows = jax.vmap(over(lambda v: v - lax.pmean(v, "i")))(put(x.T, None, "i"))
        assert near(rows.sum(), jnp.zeros(()))
    """,
    "some axes are mapped over, others are not": """
        m = mesh_of((4, 2), ("i", "j"))
        x = put(rand(0, 8, 6), "i", "j", m=m)
        seen = []
        with jax.set_mesh(m):
            @partial(jax.shard_map, out_specs=P("i"), axis_names={"i"})
            def f(v):
                here = get_abstract_mesh()
                seen.append((here.manual_axes, here.explicit_axes, jax.typeof(v).sharding.spec))
                return v - lax.pmean(v, "i")
            out = jax.jit(f)(x)
            inner = lambda v: jax.smap(lambda v: v * 2, in_axes=1, out_axes=1, axis_name="j")(v) + 1
            nested = jax.smap(inner, in_axes=0, out_axes=0, axis_name="i")(x)
        blocks = rand(0, 8, 6).reshape(4, 2, 6)
        assert near(out, (blocks - blocks.mean(0)).reshape(8, 6)) and spec(out) == P("i", "j")
        assert seen[-1] == (("i",), ("j",), P(None, "j")) and near(nested, 2 * rand(0, 8, 6) + 1)
    """,
    "the parts of a network: batches, weights, both": """
        sizes = (16, 32, 32, 8)
        keys = jax.random.split(jax.random.key(4), 3)
        params = [(jax.random.normal(k, (m, n)) / m**0.5, jnp.zeros(n)) for k, m, n in zip(keys, sizes[:-1], sizes[1:])]
        x, y = rand(5, 24, 16), rand(6, 24, 8)
        act = jax.nn.relu
        def predict(params, x):
            for w, b in params[:-1]:
                x = act(x @ w + b)
            return x @ params[-1][0] + params[-1][1]
        loss = lambda params, x, y: ((predict(params, x) - y) ** 2).sum(-1).mean()
        value, grads = jax.value_and_grad(loss)(params, x, y)
        xs, ys = put(x, "i"), put(y, "i")
        # data parallel: each device has all weights and its rows
        data = over(lambda p, x, y: lax.pmean(loss(p, x, y), "i"), (P(), P("i"), P("i")), P())
        assert near(jax.jit(jax.value_and_grad(data))(put(params), xs, ys), (value, grads))
        # fully sharded: weights are gathered for each layer
        def gathered(p, x, y):
            whole = [tuple(lax.all_gather(v, "i", tiled=True) for v in layer) for layer in p]
            return lax.pmean(loss(whole, x, y), "i")
        full = over(gathered, (P("i"), P("i"), P("i")), P())
        got = jax.jit(jax.value_and_grad(full))(put(params, "i"), xs, ys)
        assert near(got, (value, grads)) and all(spec(g)[0] == "i" for g in jax.tree.leaves(got[1]))
        # tensor parallel: columns of weights, sums of parts are scattered
        def tensor(p, x, y):
            for w, b in p[:-1]:
                x = act(lax.psum_scatter(x @ w, "i", scatter_dimension=1, tiled=True) + b)
            w, b = p[-1]
            out = lax.psum_scatter(x @ w, "i", scatter_dimension=1, tiled=True) + b
            return lax.psum(((out - y) ** 2).sum(-1), "i").mean()
        cut = [(put(w, "i"), put(b, "i")) for w, b in params]
        parts = over(tensor, (P("i"), P(None, "i"), P(None, "i")), P())
        assert near(jax.jit(jax.value_and_grad(parts))(cut, put(x, None, "i"), put(y, None, "i")), (value, grads))
    """,
    "a pipeline of stages": """
        w, x = rand(0, 8, 4, 4) / 2, rand(1, 6, 3, 4)
        def stages(w, x):
            here, state = lax.axis_index("i"), jnp.zeros((3, 4))
            outs = lax.pcast(jnp.zeros_like(x), "i", to="varying")
            state = lax.pcast(state, "i", to="varying")
            for t in range(6 + 7):
                state = jnp.where(here == 0, x[min(t, 5)], state)
                state = jnp.tanh(state @ w[0])
                if t >= 7:
                    outs = outs.at[t - 7].set(jnp.where(here == 7, state, outs[t - 7]))
                state = lax.ppermute(state, "i", ring)
            return lax.psum(outs, "i")
        run = over(stages, (P("i"), P()), P())
        def plain(w, x):
            for one in w:
                x = jnp.tanh(x @ one)
            return x
        assert near(jax.jit(run)(put(w, "i"), put(x)), plain(w, x))
        grads = [jax.jit(jax.grad(lambda w, x: (f(w, x) ** 2).sum()))(w, x) for f in (run, plain)]
        assert near(*grads)
    """,
    "random numbers of each device": """
        keys = put(jax.random.split(jax.random.key(0), 8), "i")
        drawn = over(lambda k: jax.random.normal(k[0], (2,)))(keys)
        each = jax.random.split(jax.random.key(0), 8)
        assert near(drawn, jnp.concatenate([jax.random.normal(k, (2,)) for k in each]))
        draw = lambda k: jax.random.uniform(jax.random.fold_in(k, lax.axis_index("i")), (1,))
        assert len(set(over(draw, P())(jax.random.key(1)).tolist())) == 8
    """,
    "sums that are due, in types inside": """
        seen = []
        def note(v):
            mat = jax.typeof(v).mat
            seen.append((mat.varying, mat.unreduced, mat.reduced))
        def late(x):
            y = lax.pcast(x, "i", to="unreduced")
            note(y), note(-y + y), note(lax.psum(y, "i"))
            return y
        x = put(jnp.arange(16.0), "i")
        out = over(late, P("i"), P(unreduced={"i"}))(x)
        assert near(reshard(out, NamedSharding(mesh, P())), x.reshape(8, 2).sum(0))
        assert [set(a) for a in seen[1]] == [set(a) for a in seen[0]] == [set(), {"i"}, set()]
        assert not any(seen[2])
        raises(NotImplementedError, "unreduced rule for sin",
               lambda: over(lambda x: jnp.sin(lax.pcast(x, "i", to="unreduced")), P("i"), P(unreduced={"i"}))(x))
        cast = lambda x: lax.pcast(x, "i", to="unreduced")
        raises(ValueError, "vary_unreduced_cast", lambda: over(cast, P(), P())(jnp.ones(2)))
        del seen[:]
        whole = over(lambda v: lax.all_gather(v, "i", tiled=True, to="reduced"), P("i"), P(None, reduced={"i"}))
        def use(v, x):
            note(v), note(v.reshape(2, 8)), note(v[:2] * x)
            return v[:2] * x
        f = over(use, (P(None, reduced={"i"}), P("i")), P("i"))
        assert near(f(whole(x), x), jnp.tile(jnp.arange(2.0), 8) * x)
        assert [set(a) for a in seen[1]] == [set(a) for a in seen[0]] == [set(), set(), {"i"}]
        assert [set(a) for a in seen[2]] == [{"i"}, set(), set()]
        grad = jax.jit(jax.grad(lambda v: f(v, x).sum()))(whole(x))
        assert spec(grad) == P(None, unreduced={"i"})
        assert near(reshard(grad, NamedSharding(mesh, P())), jnp.zeros(16).at[:2].set(x.reshape(8, 2).sum(0)))
    """,
}


@pytest.fixture(scope="module")
def found() -> dict[str, str]:
    return endings(SETUP, CASES)


@pytest.mark.parametrize("name", CASES)
def test_documents_shard_map(found: dict[str, str], name: str) -> None:
    assert found[name] == "ok", found[name]
