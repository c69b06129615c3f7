"""Costs of functions (`jax.experimental.roofline`)."""

import itertools

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax.experimental import roofline
from ferrax.sharding import NamedSharding, PartitionSpec as P


def costs(f, *args, **options):
    return roofline.roofline(f, **options)(*args)[1]


def test_elementwise_functions_count_elements():
    x, y = jnp.zeros((3, 8)), jnp.ones((1, 1))
    for f in (lax.abs, lax.erf_inv, lax.logistic, lambda x: lax.integer_pow(x, 5), lax.is_finite):
        out, found = roofline.roofline(f)(x)
        assert out.shape == (3, 8)
        assert found.unfused_flops == 24 and found.flops == found.hbm_bytes == 0
        assert found.unfused_hbm_bytes == 96 + 24 * out.dtype.itemsize
    for args in ((x, y), (y, x), (2.0, x), (x, x)):
        assert costs(lambda a, b: a + b, *args).unfused_flops == 24
    selected = costs(lax.select_n, *(jnp.zeros((4, 8), int),) * 4)
    assert (selected.unfused_flops, selected.unfused_hbm_bytes) == (32, 256)


def test_calls_count_what_they_call():
    def f(x, y):
        return jax.jit(lambda x: x * y)(x) + jax.jit(lambda y: y * x)(y)

    assert costs(f, jnp.ones((11, 4)), jnp.ones((11, 4))).unfused_flops == 3 * 44
    custom = jax.custom_jvp(lambda x: jnp.sin(x) + x**2)
    custom.defjvp(lambda primals, tangents: (custom(*primals), *tangents))
    assert costs(lambda x: -custom(x), jnp.ones((3, 8))).unfused_flops == 4 * 24


def test_products_reductions_and_scans():
    product = costs(lambda a, b: a @ b, jnp.zeros((3, 7)), jnp.ones((7, 5)))
    assert product.flops == product.unfused_flops == 2 * 3 * 7 * 5
    assert product.hbm_bytes == 4 * (21 + 35 + 15) and product.peak_hbm_bytes == 4 * (21 + 35)
    pinned = costs(lambda a, b: a @ b, jnp.zeros((3, 7)), jnp.ones((7, 5)), pin_lhs_in_vmem=True)
    assert pinned.hbm_bytes == 4 * 35
    for axis, flops, size in ((None, 43, 45), (0, 40, 48), (1, 33, 55)):
        total = costs(lambda x: jnp.sum(x, axis=axis), jnp.zeros((11, 4)))
        assert (total.unfused_flops, total.unfused_hbm_bytes) == (flops, 4 * size)
    for f, each in ((lax.cumsum, 1), (lax.cummax, 1), (lax.cumlogsumexp, 2)):
        assert costs(lambda x: f(x, axis=1), jnp.zeros((3, 8, 15))).unfused_flops == 8 * each


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("pad", [(0, 0), (1, 2), (3, 0)])
@pytest.mark.parametrize("spread, apart", list(itertools.product([1, 2, 3], [1, 2, 4])))
def test_convolutions_count_what_meets(step, pad, spread, apart):
    size, taps = 9, 3
    f = lambda x, k: lax.conv_general_dilated(x, k, [step], [pad], lhs_dilation=[spread], rhs_dilation=[apart])
    out, found = roofline.roofline(f)(jnp.zeros((2, 4, size)), jnp.zeros((5, 4, taps)))
    meetings = 0
    for o, k in itertools.product(range(out.shape[2]), range(taps)):
        at = o * step + k * apart - pad[0]
        meetings += at % spread == 0 and 0 <= at // spread < size
    assert found.unfused_flops == 2 * 2 * 4 * 5 * meetings
    assert found.unfused_hbm_bytes == 4 * (2 * 4 * size + 5 * 4 * taps + 2 * 5 * out.shape[2])


def test_large_convolutions_are_counted_at_once():
    n = 1 << 19
    one, many = jnp.zeros((1, 1, 1)), jnp.zeros((1, 1, n))
    padded = lambda x, k: lax.conv_general_dilated(x, k, [1], [(n - 1, n - 1)])
    spread = lambda x, k: lax.conv_general_dilated(x, k, [n - 1], [(0, 0)], lhs_dilation=[n])
    assert costs(padded, one, many).unfused_flops == costs(spread, many, many).unfused_flops == 2 * n
    groups = lambda x, k: lax.conv_general_dilated(x, k, [1], [(0, 0)], batch_group_count=6)
    assert costs(groups, jnp.zeros((6, 1, 9)), jnp.zeros((6, 1, 3))).unfused_flops == 2 * 6 * 7 * 3


def test_gathers_and_scatters():
    operand, indices, updates = jnp.zeros((3, 3)), jnp.zeros((2, 1), "int32"), jnp.ones((2, 3))
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    for mode, flops in (("clip", 0), ("promise_in_bounds", 0), ("fill", 4 * 2 + 6)):
        found = costs(lambda x, i: lax.gather(x, i, numbers, (1, 3), mode=mode), operand, indices)
        assert (found.unfused_flops, found.unfused_hbm_bytes) == (flops, 56)
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    for f, flops in ((lax.scatter, 0), (lax.scatter_add, 6), (lax.scatter_max, 6)):
        found = costs(lambda x, i, y: f(x, i, y, numbers), operand, indices, updates)
        assert (found.unfused_flops, found.unfused_hbm_bytes) == (flops, 3 * 24 + 8)


def test_host_calls_and_unknown_primitives(caplog):
    x = jnp.zeros((3, 8))
    called = costs(lambda x: jax.pure_callback(np.sin, jax.typeof(x), x), x)
    assert (called.unfused_flops, called.unfused_hbm_bytes) == (0, 192)
    assert costs(lambda x: [jax.debug.callback(print, x), x][1], x).unfused_hbm_bytes == 96
    unknown = jax.extend.core.Primitive("unknown")
    unknown.def_abstract_eval(lambda x: x)
    assert costs(lambda x: lax.abs(unknown.bind(x)), x) == costs(lax.abs, x)
    assert "No roofline rule for unknown" in caplog.text
    roofline.register_roofline(unknown)(lambda ctx, x, **_: roofline.RooflineResult(flops=len(ctx.avals_in) + x.size))
    assert costs(unknown.bind, x).flops == 25
    roofline.register_standard_roofline(unknown)
    assert costs(unknown.bind, x).flops == 0
    assert costs(lambda key: jax.random.split(key)[0], jax.random.key(0)).unfused_flops == 0


MESH = jax.sharding.AbstractMesh((2, 2, 2), ("x", "y", "z"))


def arrays(*specs, dtype="float32"):
    return [jax.ShapeDtypeStruct((8, 8), dtype, sharding=NamedSharding(MESH, spec)) for spec in specs]


def test_collectives_go_around_rings():
    f = lambda a, b: (lax.pmin(a, ("x", "y")), lax.pmax(b, "z"))
    specs, results = (P("z", ("x", "y")), P(("x", "y"), "z")), (P("z", None), P(("x", "y"), None))
    out, found = roofline.roofline(f, MESH, specs, results)(*arrays(*specs))
    assert found.ici_bytes == {"x": 6, "y": 6, "z": 4} and found.ici_latency == {"x": 4, "y": 4, "z": 2}
    assert found.peak_hbm_bytes == 4 * 2 * 4 * 2
    assert [x.shape for x in out] == [(8, 2), (8, 4)] and out[0].sharding == NamedSharding(MESH, P("z", None))

    specs = (P("z", ("x", "y")), P(("x", "y"), None))
    found = costs(
        lambda a, b: lax.psum(a @ b, ("x", "y")), *arrays(*specs), mesh=MESH, in_specs=specs, out_specs=P("z", None)
    )
    assert found.flops == 2 * 4 * 2 * 8 and found.hbm_bytes == 4 * (8 + 16 + 32)
    part = 4 * 4 * 8 // 4 // 2  # a quarter of the result, halved between the axes
    assert found.ici_bytes == dict.fromkeys("xy", 2 * (part + 2 * part))
    assert found.ici_latency == dict.fromkeys("xy", 8)

    moved = costs(
        lambda a: lax.ppermute(lax.all_to_all(a, "z", 0, 1, tiled=True), "z", [(0, 1), (1, 0)]),
        *arrays(P("z")),
        mesh=MESH,
        in_specs=P("z"),
        out_specs=P("z"),
    )
    half = 4 * 8 * 8 // 2
    assert moved.ici_bytes == {"z": half + 2 * half} and moved.ici_latency == {"z": 2}


def test_axes_of_one_device_cost_nothing():
    mesh = jax.sharding.AbstractMesh((1, 4), ("x", "y"))

    def f(a):
        a = lax.psum(lax.all_gather(lax.pmin(a, "x"), "x", axis=1, tiled=True), "x")
        return lax.ppermute(lax.all_to_all(a, "x", 0, 1, tiled=True), "x", [(0, 0)])

    found = costs(f, jnp.ones((8, 8)), mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    assert found.ici_bytes == found.ici_latency == {"x": 0} and found.peak_hbm_bytes == 256


def test_costs_of_differentiation():
    specs = (P(None, "x"), P(None, None))
    f = lambda a, b: lax.all_gather(a, "x", axis=1, tiled=True) @ b
    out, forward, back = roofline.roofline_and_grad(f, MESH, specs, P("x", None))(*arrays(*specs, dtype="int8"))
    assert out.shape == (16, 8)
    assert forward.flops == 2 * 8**3 and forward.ici_bytes == {"x": 32} and forward.ici_latency == {"x": 2}
    assert back.flops == 2 * forward.flops and back.hbm_bytes == 2 * 2 * 3 * 64
    # the replicated operand's cotangent is summed, the other one scattered
    assert back.ici_bytes == {"x": 3 * 64} and back.ici_latency == {"x": 6} and back.peak_hbm_bytes == 2 * 3 * 64


def test_programs_are_printed_on_request(capsys):
    costs(jnp.sin, 1.0, print_jaxpr=True)
    assert "sin a" in capsys.readouterr().out
