"""What XLA makes of programs over several devices: which messages the devices send each other.

A program that says how values inside of it are divided, by `with_sharding_constraint`, by `shard_map` or by the types
of explicit axes, is cut so: a device sends what others need, and no more. The counts are those of the programs that XLA
makes of JAX's, where no comment says otherwise; results are those of the embedded engine. A process has eight devices.
"""

import pytest

from tests.cases import endings

SETUP = """
import collections, re
import numpy as np
import ferrax as jax, ferrax.numpy as jnp
from ferrax import lax
from ferrax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P, reshard
WORDS = "all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter|while|dot"
NUMBERS = np.arange(64 * 64, dtype=np.float32).reshape(64, 64) / 4096
AROUND = [(i, (i + 1) % 4) for i in range(4)]
constrain = lax.with_sharding_constraint

def mesh_of(platform, kind=AxisType.Auto, order=1):
    kinds = kind if isinstance(kind, tuple) else (kind, kind)
    return Mesh(np.array(jax.devices(platform)[:8][::order]).reshape(4, 2), ("x", "y"), axis_types=kinds)

def messages(f, *args):
    text = jax.jit(f).lower(*args).compile().as_text()
    return dict(sorted(collections.Counter(re.findall(rf" ({WORDS})(?:-start)?\\(", text)).items()))

def checked(make, *specs, **kinds):
    # the messages of a function of arrays with these specs, which is made for a mesh, and whose results are checked
    results = []
    for platform in ("cpu", "xla_cpu"):
        mesh = mesh_of(platform, **kinds)
        with jax.set_mesh(mesh):
            args = [jax.device_put(NUMBERS, NamedSharding(mesh, spec)) for spec in specs]
            f = make(mesh)
            results.append((jax.tree.leaves(jax.jit(f)(*args)), messages(f, *args)))
    for want, got in zip(results[0][0], results[1][0], strict=True):
        assert got.sharding.spec == want.sharding.spec, (got.sharding, want.sharding)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    return results[1][1]

def equal(got, wanted):
    assert got == wanted, got

def mapped(f, in_specs, out_specs):
    # as it is checked, for the specs of its arguments
    return checked(lambda mesh: jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs), *in_specs)
"""

CASES = {
    "values inside lie as the program says": """
        other = lambda mesh: NamedSharding(mesh, P("y", "x"))
        rows = lambda mesh: lambda x: jnp.sum(constrain(jnp.sin(x) @ jnp.cos(x).T, other(mesh)) ** 2)
        equal(checked(rows, P("x", "y")), {"all-gather": 1, "all-reduce": 3, "dot": 1})
        left = lambda mesh: lambda x: constrain(jnp.sin(x) @ x, NamedSharding(mesh, P(P.UNCONSTRAINED, "y"))) * 2
        equal(checked(left, P("x")), {"all-gather": 1, "dot": 1})
        rows = lambda mesh: jax.vmap(lambda x: constrain(jnp.sin(x), NamedSharding(mesh, P("y"))) * 2)
        equal(checked(rows, P("x")), {})
    """,
    "bodies of loops and their gradients, too": """
        def make(mesh):
            def layer(x, w):
                h = constrain(jax.nn.relu(x @ w), NamedSharding(mesh, P("x", "y")))
                return constrain(h @ w.T, NamedSharding(mesh, P("x", None))) / 64, None
            loss = lambda w, x: jnp.mean(lax.scan(jax.checkpoint(layer), x, jnp.stack([w, w, w]))[0] ** 2)
            return jax.grad(loss)
        equal(checked(make, P(None, "y"), P("x", None)), {"all-reduce": 3, "dot": 7, "while": 2})
    """,
    "devices in an order that no mesh of Shardy has": """
        turned = lambda mesh: lambda x: constrain(jnp.sin(x), NamedSharding(mesh, P("y", "x"))).sum(0)
        equal(checked(turned, P("x", "y"), order=-1), {"all-reduce": 1, "all-to-all": 1, "collective-permute": 1})
        left = lambda mesh: lambda x: constrain(jnp.sin(x) @ x, NamedSharding(mesh, P(P.UNCONSTRAINED, "y"))) * 2
        equal(checked(left, P("x"), order=-1), {"all-gather": 1, "dot": 1})
    """,
    "constraints over an abstract mesh are for the program's devices": """
        rows = lambda mesh: lambda x: constrain(jnp.sin(x), P("y", "x")).sum(0)
        equal(checked(rows, P("x", "y")), {"all-reduce": 1, "all-to-all": 1, "collective-permute": 1})
    """,
    "types over explicit axes": """
        explicit = dict(kind=AxisType.Explicit)
        inside = lambda mesh: lambda x: jnp.sum(reshard(jnp.sin(x) @ jnp.ones((64, 64)), P("y", "x")) * 2, axis=0)
        equal(checked(inside, P("x", None), **explicit), {
            "all-reduce": 1, "all-to-all": 1, "collective-permute": 1, "dot": 1
        })
        product = lambda mesh: lambda x, w: jnp.tanh(jnp.einsum("ij,jk->ik", x, w, out_sharding=P("x", None)))
        equal(checked(product, P("x", "y"), P("y", None), **explicit), {"all-reduce": 1, "dot": 1})
        mixed = (AxisType.Explicit, AxisType.Auto)
        both = lambda mesh: lambda x: constrain(jnp.sin(x), NamedSharding(mesh, P(None, "y"))) @ jnp.ones((64, 8))
        equal(checked(both, P("x", None), kind=mixed), {"all-reduce": 1, "dot": 1})
    """,
    "sums in shard_map": """
        equal(mapped(lambda a, b: lax.psum(a @ b, "y"), (P("x", "y"), P("y", None)), P("x", None)), {
            "all-reduce": 1, "dot": 1
        })
        equal(mapped(lambda a: a - lax.pmax(a, "x"), (P("x", "y"),), P("x", "y")), {"all-reduce": 1})
        # one reduce-scatter in JAX's
        equal(mapped(lambda a: lax.psum_scatter(a, "x", tiled=True), (P("x", "y"),), P("x", "y")), {"all-reduce": 1})
        loss = lambda a, b: lax.psum(jnp.sum(jnp.tanh(a @ b)), ("x", "y"))
        make = lambda mesh: jax.grad(
            jax.shard_map(loss, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P()), argnums=(0, 1)
        )
        equal(checked(make, P("x", "y"), P("y", None)), {"all-reduce": 1, "dot": 3})
    """,
    "messages in shard_map": """
        send = lambda pairs: lambda a: lax.ppermute(a, "x", pairs)
        for pairs in (AROUND, AROUND[:3], [(0, 1), (1, 0), (2, 3), (3, 2)], [(i, 3 - i) for i in range(4)]):
            equal(mapped(send(pairs), (P("x", "y"),), P("x", "y")), {"collective-permute": 1})
        rows = lambda a: lax.all_gather(a, "x", tiled=True) * lax.axis_index("x")
        equal(mapped(rows, (P("x", "y"),), P("x", "y")), {"all-gather": 1})
        turned = lambda a: lax.all_to_all(a, "x", 1, 0, tiled=True)
        equal(mapped(turned, (P("x", None),), P(None, "x")), {"all-to-all": 1})
        equal(mapped(lambda a: a * lax.axis_index("x"), (P("x", "y"),), P("x", "y")), {})
        equal(mapped(lambda a: a[jnp.argsort(a[:, 0])].at[:4].add(1.0), (P("x", "y"),), P("x", "y")), {})
    """,
    "loops in shard_map": """
        ring = lambda a: lax.scan(lambda c, _: (lax.ppermute(c, "x", AROUND) * 1.5, None), a, None, length=5)[0]
        equal(mapped(ring, (P("x", None),), P("x", None)), {"collective-permute": 1, "while": 1})
        def product(a, b):
            here, rows = lax.axis_index("x"), a.shape[0]
            def step(k, state):
                out, block = state
                out = lax.dynamic_update_slice(out, block @ b, ((here + k) % 4 * rows, 0))
                return out, lax.ppermute(block, "x", [(to, source) for source, to in AROUND])
            out = lax.pcast(jnp.zeros((4 * rows, b.shape[1])), ("x",), to="varying")
            return lax.fori_loop(0, 4, step, (out, a))[0]
        equal(mapped(product, (P("x", None), P(None, "x")), P(None, "x")), {
            "collective-permute": 1, "dot": 1, "while": 1
        })
    """,
    "bytes are those of one device": """
        mesh = mesh_of("xla_cpu")
        x = jax.device_put(NUMBERS, NamedSharding(mesh, P("x", "y")))
        double = jax.jit(lambda v: v * 2, out_shardings=NamedSharding(mesh, P("x")), donate_argnums=0)
        used = double.lower(x).compile().memory_analysis()
        sizes = used.argument_size_in_bytes, used.output_size_in_bytes, used.alias_size_in_bytes
        assert sizes == (NUMBERS.nbytes // 8, NUMBERS.nbytes // 4, 0)
        same = jax.jit(lambda v: v * 2, donate_argnums=0).lower(x).compile().memory_analysis()
        assert same.alias_size_in_bytes == NUMBERS.nbytes // 8
    """,
}


@pytest.fixture(scope="module")
def results():
    return endings(SETUP, CASES, FERRAX_PLATFORMS="xla_cpu,cpu")


@pytest.mark.parametrize("name", CASES)
def test_case(results, name):
    assert results[name] == "ok", results[name]
