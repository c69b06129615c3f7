"""What JAX's pages on explicit sharding, meshes and memory show, in programs of our own."""

from __future__ import annotations

import pytest

from tests.cases import endings
from tests.sharding.document_cases import SETUP

CASES = {
    "types say how arrays are divided": """
        seen = []
        assert kind(np.arange(8, dtype=np.int32)) == "int32[8]"
        with jax.set_mesh(mesh_of((2, 4), ("X", "Y"))):
            assert str(get_abstract_mesh()).startswith("AbstractMesh('X': 2, 'Y': 4, axis_types=(Explicit, Explicit)")
            a = reshard(np.arange(8, dtype=np.int32).reshape(4, 2), P("X", None))
            assert kind(a) == "int32[4@X,2]"
            ones = lambda *shape: np.ones(shape, np.int32)
            column, row = reshard(ones(4, 1), P("X", None)), reshard(ones(1, 8), P(None, "Y"))
            @jax.jit
            def add(x, y):
                out = x + y
                seen.extend(kind(v) for v in (x, y, out))
                return out
            assert kind(add(column, row)) == kind(column + row) == "int32[4@X,8@Y]"
            assert seen == ["int32[4@X,1]", "int32[1,8@Y]", "int32[4@X,8@Y]"]
    """,
    "what is not plain is an error that asks": """
        from ferrax._src.core import ShardingTypeError
        with jax.set_mesh(mesh_of((2, 4), ("X", "Y"))):
            x, y = reshard(jnp.ones((4, 4)), P("X", None)), reshard(jnp.ones((4, 4)), P(None, "X"))
            raises(ShardingTypeError, "illegally sharded result", lambda: x + y)
            raises(ShardingTypeError, "incompatible shardings for broadcasting", lambda: x + reshard(y, P("Y")))
            raises(ShardingTypeError, "out_sharding", lambda: reshard(x, P(None, "X")) @ x)
            assert spec(jnp.matmul(reshard(x, P(None, "X")), x, out_sharding=P("Y"))) == P("Y", None)
            assert spec(jnp.einsum("ij,jk->ik", x, y, out_sharding=P(None, "Y"))) == P(None, "Y")
    """,
    "auto_axes steps out of types": """
        with jax.set_mesh(mesh_of((2, 4), ("X", "Y"))):
            x, y = reshard(np.arange(16.0).reshape(4, 4), P("X", None)), reshard(np.ones((4, 4)), P(None, "X"))
            meshes = []
            @auto_axes
            def add(x, y):
                meshes.append(get_abstract_mesh().axis_types)
                return x + y
            out = add(x, y, out_sharding=P("X", None))
            assert kind(out) == "float32[4@X,4]" and meshes == [(Auto, Auto)]
            assert near(out, np.arange(16.0).reshape(4, 4) + 1)
            kinds = []
            @partial(auto_axes, axes="X", out_sharding=P("X", "Y"))
            def g(y):
                kinds.append((get_abstract_mesh().axis_types, kind(y)))
                return y * 2
            z = jax.jit(lambda x: g(jnp.sin(x)) + 1)(reshard(x, P("X", "Y")))
            assert kinds == [((Auto, Explicit), "float32[4,4@Y]")] and spec(z) == P("X", "Y")
    """,
    "explicit_axes steps into types": """
        kinds = []
        with jax.set_mesh(mesh_of((2, 4), ("X", "Y"), Auto)):
            @partial(explicit_axes, axes=("X", "Y"))
            def g(y):
                z = y * 2
                kinds.append((get_abstract_mesh().axis_types, kind(y), kind(z)))
                return z
            x = jax.device_put(np.arange(16.0, dtype=np.float32).reshape(4, 4), P("X", "Y"))
            out = jax.jit(lambda x: g(x + 1, in_sharding=P("X", "Y")) - 1)(x)
            assert near(out, 2 * (x + 1) - 1)
        assert kinds == [((Explicit, Explicit), "float32[4@X,4@Y]", "float32[4@X,4@Y]")]
    """,
    "arrays know their mesh where none is in use": """
        mesh = mesh_of((2, 2), ("X", "Y"))
        x = jax.device_put(np.arange(16.0).reshape(8, 2), NamedSharding(mesh, P("X", "Y")))
        f = jax.jit(lambda x: (jnp.sin(x) ** 2).sum(1))
        assert spec(f(x)) == P("X") and spec(jax.grad(lambda x: f(x).sum())(x)) == P("X", "Y")
        assert auto_axes(lambda x: x * 2, out_sharding=NamedSharding(mesh, P("Y", "X")))(x).sharding.spec == P("Y", "X")
    """,
    "functions that see other types of axes are told how results are divided": """
        with jax.set_mesh(mesh_of((2, 2), ("X", "Y"))):
            for f, name in ((auto_axes(jnp.sin), "out_sharding"), (explicit_axes(jnp.sin), "in_sharding")):
                for call in (f, jax.jit(f)):
                    try:
                        call(jnp.ones((8, 2)))
                    except TypeError as error:
                        assert str(error) == f"Missing required keyword argument: '{name}'", error
                    else:
                        raise AssertionError("it went")
    """,
    "derivatives, maps and loops keep types": """
        with jax.set_mesh(mesh_of((2, 4), ("X", "Y"))):
            w, x = reshard(jnp.ones((4, 8)), P(None, "Y")), reshard(jnp.ones((6, 4)), P("X", None))
            gw, gx = jax.jit(jax.grad(lambda w, x: jnp.tanh(x @ w).sum(), argnums=(0, 1)))(w, x)
            assert (spec(gw), spec(gx)) == (P(None, "Y"), P("X", None))
            assert spec(jax.vmap(lambda v: v @ w)(x)) == P("X", "Y")
            start = jnp.zeros(8, out_sharding=P("Y"))
            carry, ys = lax.scan(lambda c, v: (c + v, c * v), start, reshard(w, P(None, "Y")))
            assert (spec(carry), spec(ys)) == (P("Y"), P(None, "Y"))
            raises(TypeError, "equal types", lambda: lax.scan(lambda c, _: (reshard(c, P()), None), carry, None, 2))
            out = lax.cond(True, lambda v: v + 1, lambda v: v * 2, x)
            assert spec(out) == P("X", None)
            raises(ValueError, "should be sharded the same", lambda: jax.vmap(jnp.dot)(x, reshard(x, P())))
    """,
    "what is made has the sharding that is asked for": """
        with jax.set_mesh(mesh_of((2, 4), ("X", "Y"))):
            assert spec(jnp.zeros((4, 4), out_sharding=P("X"))) == P("X", None)
            assert spec(jnp.arange(8, out_sharding=P("Y"))) == P("Y")
            drawn = jax.random.normal(jax.random.key(0), (4, 8), out_sharding=P("X", "Y"))
            assert spec(drawn) == P("X", "Y") and near(drawn, jax.random.normal(jax.random.key(0), (4, 8)))
            table, tokens = reshard(jnp.arange(40.0).reshape(10, 4), P()), reshard(jnp.arange(6), P("X"))
            assert spec(table.at[tokens].get(out_sharding=P("X", None))) == P("X", None)
            flat = reshard(jnp.arange(16.0), P("X"))
            assert spec(jnp.reshape(flat, (4, 4), out_sharding=P("X", None))) == P("X", None)
            raises(AssertionError, "acts as an assert", lambda: lax.with_sharding_constraint(drawn, P("Y")))
    """,
    "arguments and results of jitted functions are put where shardings ask": """
        with jax.set_mesh(mesh_of((2, 4), ("X", "Y"))):
            x = reshard(np.arange(8.0), P("X"))
            for wanted in (P("Y"), P(("X", "Y")), P(None)):
                twice = jax.jit(lambda x: x * 2, out_shardings=wanted)
                assert spec(twice(x)) == wanted and np.array_equal(twice(x), 2 * np.arange(8.0))
                assert spec(twice.lower(x).compile()(x)) == wanted
            assert spec(jax.jit(lambda: jnp.zeros(8), out_shardings=P("Y"))()) == P("Y")
            both = jax.jit(lambda x: {"a": x, "b": x[None]}, out_shardings={"a": P("Y"), "b": P(None, "Y")})(x)
            assert (spec(both["a"]), spec(both["b"])) == (P("Y"), P(None, "Y"))
            of_rows = jax.jit(lambda x: x + 1, in_shardings=P("Y"), out_shardings=P("X"))
            assert spec(of_rows(np.arange(8.0))) == P("X")
            assert np.array_equal(jax.jit(lambda x: of_rows(x))(np.arange(8.0)), np.arange(1.0, 9.0))
            raises(ValueError, "does not match the sharding", lambda: of_rows(x))
    """,
    "a sum may stay due": """
        with jax.set_mesh(mesh_of((2, 2), ("X", "Y"))):
            numbers = np.arange(8.0)
            a, b = reshard(numbers.reshape(4, 2), P("X", "Y")), reshard(numbers.reshape(2, 4), P("Y", None))
            @jax.jit
            def f(a, b):
                late = jnp.einsum("ij,jk->ik", a, b, out_sharding=P("X", unreduced={"Y"}))
                assert spec_of(late) == P("X", None, unreduced={"Y"})
                return reshard(late + late, P("X"))
            spec_of = lambda x: jax.typeof(x).sharding.spec
            assert near(f(a, b), 2 * np.asarray(a) @ np.asarray(b))
            grads = jax.jit(jax.grad(lambda a, b: f(a, b).sum(), argnums=(0, 1)))(a, b)
            assert [spec(g) for g in grads] == [P("X", "Y"), P("Y", None)]
    """,
    "reshard says nothing of axes of type Auto": """
        from ferrax.sharding import use_abstract_mesh
        numbers = np.arange(16.0).reshape(8, 2)
        mesh = mesh_of((2, 2), ("X", "Y"), Auto)
        with jax.set_mesh(mesh):
            x = jax.device_put(numbers, P("X", "Y"))
            @jax.jit
            def f(x):
                with use_abstract_mesh(mesh.abstract_mesh.update_axis_types({"X": Explicit, "Y": Explicit})):
                    z = jnp.sin(reshard(x * 2, P(None, "Y")))
                return reshard(z, P(None, None))
            assert spec(f(x)) == P(None, "Y") and near(f(x), np.sin(numbers * 2))
            @partial(explicit_axes, axes="Y", in_sharding=P(None, "Y"))
            def square(y):
                return jnp.einsum("ab,bc->ac", y, y.T, out_sharding=P(None, "Y"))
            assert spec(jax.jit(square)(x)) == P("X", "Y") and near(jax.jit(square)(x), numbers @ numbers.T)
        mesh = mesh_of((2,), ("X",))
        with jax.set_mesh(mesh):
            x = jax.device_put(numbers, P("X"))
            @jax.jit
            def g(x):
                with use_abstract_mesh(mesh.abstract_mesh.update_axis_types({"X": Auto})):
                    return reshard(x, P(None, None))
            assert g(x).sharding == NamedSharding(mesh.update(axis_types=(Auto,)), P("X"))
            with jax.set_mesh(mesh_of((2,), ("X",), Auto)):
                y = jnp.ones(8)
            kinds = [z.sharding.mesh.axis_types for z in jax.jit(lambda x, y: (x, y))(x, y)]
            assert kinds == [(Explicit,), (Auto,)]
        mesh = mesh_of((2, 2), ("X", "Y"), Auto)
        for asked, got in [(P(P.UNCONSTRAINED, "Y", None), P(None, "Y")), (P("X", P.UNCONSTRAINED, None), P("X"))]:
            put = lambda x: lax.with_sharding_constraint(x, NamedSharding(mesh, asked))
            assert spec(jax.jit(put)(np.ones((2, 8, 8)))) == got
    """,
    "memory of a device, and of its host": """
        mesh = mesh_of((4, 2), ("X", "Y"), Auto)
        on_host = NamedSharding(mesh, P("X"), memory_kind="pinned_host")
        x = jax.device_put(jnp.arange(8.0), on_host)
        assert x.sharding.memory_kind == "pinned_host"
        back = jax.device_put(x, on_host.with_memory_kind("device"))
        assert back.sharding.memory_kind == "device" and near(back, np.arange(8.0))
    """,
}

#: Not of XLA's CPU client: its devices have other kinds of memory.
EMBEDDED = {"memory of a device, and of its host"}


@pytest.fixture(scope="module")
def found() -> dict[str, str]:
    return endings(SETUP, CASES)


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.embedded] * (n in EMBEDDED)) for n in CASES])
def test_documents_explicit(found: dict[str, str], name: str) -> None:
    assert found[name] == "ok", found[name]
