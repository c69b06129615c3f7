"""Lowerings that build operations of StableHLO, against JAX's: values on which ferrax computes with `ferrax.lax`."""

import importlib

import numpy as np
import pytest

import ferrax

X = np.array([[0.5, -1.5, 2.5], [3.0, 0.25, -4.0]], np.float32)
Y = np.array([[1.5, 2.0, -0.5], [3.0, 1.0, 4.0]], np.float32)
N = np.array([[1, 2, 3], [7, 12, 30]], np.int32)


class Given:
    """JAX's modules, or ferrax's in their place."""

    def __init__(self, jax):
        self.jax = jax
        for name, path in (
            ("core", "extend.core"),
            ("mlir", "interpreters.mlir"),
            ("hlo", "_src.lib.mlir.dialects.hlo"),
            ("ir", "_src.lib.mlir.ir"),
        ):
            package, _, last = f"{jax.__name__}.{path}".rpartition(".")
            setattr(self, name, getattr(__import__(package, fromlist=[last]), last))

    def run(self, rule, out, *args):
        p = self.core.Primitive("lowered")
        p.def_abstract_eval(lambda *avals: self.jax.core.ShapedArray(*out))
        self.mlir.register_lowering(p, lambda ctx, *values: rule(self, ctx, *values))
        return np.asarray(self.jax.jit(lambda *a: p.bind(*a))(*args))


def both(rule, out, *args):
    jax = pytest.importorskip("jax")
    got, want = (Given(d).run(rule, out, *args) for d in (ferrax, jax))
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)


F32 = ((2, 3), np.float32)
RULES = {
    "classes": (lambda d, ctx, x, y: [d.hlo.AddOp(d.hlo.MulOp(x, y), y).result], F32, X, Y),
    "results": (lambda d, ctx, x, y: d.hlo.SubtractOp(d.hlo.DivOp(x, y), y).results, F32, X, Y),
    "keywords": (lambda d, ctx, x, y: [d.hlo.maximum(x, y, loc=None)], F32, X, Y),
    "elements": (lambda d, ctx, x: [d.hlo.tanh(d.hlo.abs(d.hlo.negate(d.hlo.sine(x))))], F32, X),
    "rounded": (lambda d, ctx, x: [d.hlo.add(d.hlo.round_nearest_afz(x), d.hlo.round_nearest_even(x))], F32, X),
    "integers": (
        lambda d, ctx, x, y: [d.hlo.xor(d.hlo.and_(x, y), d.hlo.shift_left(x, y))],
        ((2, 3), np.int32),
        N,
        N % 5,
    ),
    "constant": (lambda d, ctx, x: [d.hlo.multiply(x, d.mlir.ir_constant(Y))], F32, X),
    "attribute": (
        lambda d, ctx, x: [d.hlo.add(x, d.hlo.constant(d.ir.DenseElementsAttr.get(Y)))],
        F32,
        X,
    ),
    "compared": (
        lambda d, ctx, x, y: [
            d.hlo.select(d.hlo.compare(x, y, d.hlo.ComparisonDirectionAttr.get("LT")), x, d.hlo.exponential(y))
        ],
        F32,
        X,
        Y,
    ),
    "types": (
        lambda d, ctx, x: [d.hlo.convert(d.mlir.aval_to_ir_type(ctx.module_context, ctx.avals_out[0]), x)],
        ((2, 3), np.int32),
        X,
    ),
    "made types": (
        lambda d, ctx, x: [
            d.hlo.reshape(d.ir.RankedTensorType.get([6], d.ir.RankedTensorType(x.type).element_type), x)
        ],
        ((6,), np.float32),
        X,
    ),
    "broadcast": (
        lambda d, ctx, x: [
            d.hlo.broadcast_in_dim(
                d.ir.RankedTensorType.get((4, 2, 3), d.ir.F32Type.get()), x, d.mlir.dense_int_array([1, 2])
            )
        ],
        ((4, 2, 3), np.float32),
        X,
    ),
    "transposed": (
        lambda d, ctx, x: [d.hlo.reverse(d.hlo.transpose(x, d.mlir.dense_int_array([1, 0])), [0])],
        ((3, 2), np.float32),
        X,
    ),
    "cut": (
        lambda d, ctx, x: [d.hlo.slice(x, *(d.mlir.dense_int_array(i) for i in ([0, 1], [2, 3], [1, 2])))],
        ((2, 1), np.float32),
        X,
    ),
    "padded": (
        lambda d, ctx, x: [
            d.hlo.pad(
                x, d.mlir.ir_constant(np.float32(7)), *(d.mlir.dense_int_array(i) for i in ([1, 0], [0, 2], [0, 1]))
            )
        ],
        ((3, 7), np.float32),
        X,
    ),
    "joined": (
        lambda d, ctx, x, y: [d.hlo.concatenate([x, y], d.mlir.i64_attr(1))],
        ((2, 6), np.float32),
        X,
        Y,
    ),
    "counted": (
        lambda d, ctx, x: [
            d.hlo.iota(d.mlir.aval_to_ir_type(ctx.module_context, ctx.avals_out[0]), d.mlir.i64_attr(1))
        ],
        ((2, 3), np.uint8),
        X,
    ),
    "a function of arrays": (
        lambda d, ctx, x, y: d.mlir.lower_fun(lambda a: d.jax.numpy.cumsum(a, 1), multiple_results=False)(
            ctx.replace(avals_in=ctx.avals_in[:1]), d.hlo.add(x, y)
        ),
        F32,
        X,
        Y,
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_operations(name):
    both(*RULES[name])


def test_types_have_texts():
    texts = []

    def rule(d, ctx, x, y):
        made = [d.ir.IntegerType.get_signless(8), d.ir.IntegerType.get_signless(1), d.ir.IntegerType.get_unsigned(32)]
        made += [
            d.ir.ComplexType.get(d.ir.F32Type.get()),
            d.mlir.dtype_to_ir_type(np.dtype("int16")),
            d.ir.BF16Type.get(),
        ]
        texts.append([str(t) for t in (x.type, x, x.type.element_type, *made)] + [list(y.type.shape)])
        assert (
            x.type == y.type and hash(x.type) == hash(y.type) and x.type.rank == 2 and x.type.element_type.width == 32
        )
        return [x]

    both(rule, F32, X, Y)
    assert texts[0] == texts[-1]


def test_derivatives_and_batches_of_what_is_lowered():
    jax = pytest.importorskip("jax")

    def compute(jax):
        d = Given(jax)
        ad, batching = (importlib.import_module(f"{jax.__name__}.interpreters.{n}") for n in ("ad", "batching"))
        p = d.core.Primitive("sine")
        p.def_abstract_eval(lambda x: jax.core.ShapedArray(x.shape, x.dtype))
        d.mlir.register_lowering(p, lambda ctx, x: [d.hlo.sine(x)])
        ad.defjvp(p, lambda t, x: t * jax.numpy.cos(x))
        batching.defvectorized(p)
        f = jax.jit(p.bind)
        return jax.jit(jax.grad(f))(0.5), jax.jit(jax.vmap(f))(X[0])

    for got, want in zip(compute(ferrax), compute(jax), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_a_lowering_comes_before_the_implementation():
    d = Given(ferrax)
    p = d.core.Primitive("doubled")
    p.def_impl(lambda x: pytest.fail("called"))
    p.def_abstract_eval(lambda x: x)
    d.mlir.register_lowering(p, lambda ctx, x: [d.hlo.add(x, x)])
    assert ferrax.jit(p.bind)(3.0) == 6.0
