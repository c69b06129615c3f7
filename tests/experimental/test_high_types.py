"""Values of types that are no arrays under transformations: `VJPHiPrimitive` takes and gives them."""

import functools
import importlib
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import ferrax
import ferrax.numpy
from tests.recorded import expected


@functools.cache
def of(jax):
    """Rows of whole numbers with a scale each, for one of the two libraries."""
    hijax, jnp = importlib.import_module(f"{jax.__name__}.experimental.hijax"), jax.numpy

    @dataclass(frozen=True)
    class Rows:
        whole: object
        scale: object

    @dataclass(frozen=True)
    class RowsTy(hijax.HiType):
        shape: tuple[int, ...]

        def lo_ty(self):
            whole = hijax.ShapedArray(self.shape, jnp.dtype("int8"))
            return [whole, hijax.ShapedArray(self.shape[:-1], jnp.dtype("float32"))]

        def lower_val(self, value):
            return [value.whole, value.scale]

        def raise_val(self, *arrays):
            return Rows(*arrays)

        def to_tangent_aval(self):
            return hijax.ShapedArray(self.shape, jnp.dtype("float32"))

        def dec_rank(self, size, spec):
            return RowsTy(self.shape[1:])

        def inc_rank(self, size, spec):
            return RowsTy((size, *self.shape))

        def leading_axis_spec(self):
            return "leading"

    hijax.register_hitype(Rows, lambda v: RowsTy(v.whole.shape))

    class Pack(hijax.VJPHiPrimitive):
        def __init__(self, x):
            self.in_avals, self.out_aval, self.params = (x,), RowsTy(x.shape), {}
            super().__init__()

        def expand(self, x):
            scale = jnp.max(jnp.abs(x), axis=-1) / 127
            return Rows(jnp.round(x / scale[..., None]).astype("int8"), scale)

        def vjp_fwd(self, nzs_in, x):
            return self(x), None

        def vjp_bwd_retval(self, res, g):
            return (g,)

    class Times(hijax.VJPHiPrimitive):
        def __init__(self, q, x):
            self.in_avals, self.out_aval, self.params = (q, x), x, {}
            super().__init__()

        def expand(self, q, x):
            return q.whole * q.scale[..., None] * x

        def vjp_fwd(self, nzs_in, q, x):
            return self(q, x), (q, x)

        def vjp_bwd_retval(self, res, g):
            q, x = res
            return g * x, times(q, g)

    pack = lambda x: Pack(jax.typeof(x))(x)
    times = lambda q, x: Times(jax.typeof(q), jax.typeof(x))(q, x)
    plain = lambda q: times(q, jnp.ones(jax.typeof(q).shape, "float32"))
    return SimpleNamespace(Rows=Rows, pack=pack, times=times, plain=plain)


def _loss(jax):
    high = of(jax)
    return lambda q: jax.numpy.sum(high.plain(q) ** 2)


def _scanned(jax):
    high, loss = of(jax), _loss(jax)

    def f(x):
        step = lambda c, row: (high.pack(high.plain(c) + row), high.pack(2 * row))
        carry, ys = jax.lax.scan(step, high.pack(x[0]), x)
        total, _ = jax.lax.scan(lambda c, q: (c + loss(q), ()), 0.0, ys, length=x.shape[0])
        return total + loss(carry)

    return f


def _counted(jax, bounds):
    high = of(jax)
    step = lambda i, q: high.pack(high.plain(q) + i)

    def f(x):
        return high.plain(jax.lax.fori_loop(*bounds(jax, x), step, high.pack(x)))

    return f


def _chosen(jax):
    high, loss = of(jax), _loss(jax)
    return lambda x: loss(jax.lax.cond(x[0, 0] > 0, lambda x: high.pack(x), lambda x: high.pack(3 * x), x))


PROGRAMS = {
    "round trip": lambda jax: lambda x: of(jax).plain(of(jax).pack(x)),
    "jit": lambda jax: lambda x: jax.jit(of(jax).plain)(jax.jit(of(jax).pack)(x)),
    "both operands": lambda jax: jax.jit(lambda x: of(jax).times(of(jax).pack(x), x)),
    "counted loop": lambda jax: _counted(jax, lambda jax, x: (0, 3)),
    "counted loop to a traced number": lambda jax: jax.jit(
        _counted(jax, lambda jax, x: (0, x.astype("int32")[0, 0] * 0 + 3))
    ),
    "grad": lambda jax: jax.grad(lambda x: _loss(jax)(of(jax).pack(x))),
    "grad of jit": lambda jax: jax.grad(jax.jit(lambda x: _loss(jax)(of(jax).pack(x)))),
    "jit of grad": lambda jax: jax.jit(jax.grad(lambda x: _loss(jax)(of(jax).pack(x)))),
    "grad through jits": lambda jax: jax.grad(lambda x: jax.jit(_loss(jax))(jax.jit(of(jax).pack)(x))),
    "grad of a value": lambda jax: lambda x: jax.grad(_loss(jax))(of(jax).pack(x)),
    "value and grad": lambda jax: lambda x: jax.value_and_grad(_loss(jax))(of(jax).pack(x)),
    "grad of two": lambda jax: (
        lambda x: jax.grad(lambda q, x: jax.numpy.sum(of(jax).times(q, x) ** 2), argnums=(0, 1))(of(jax).pack(x), x)
    ),
    "vjp": lambda jax: lambda x: jax.vjp(_loss(jax), of(jax).pack(x))[1](2.0),
    "scan": _scanned,
    "grad of scan": lambda jax: jax.grad(_scanned(jax)),
    "cond": _chosen,
    "grad of cond": lambda jax: jax.grad(_chosen(jax)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    x = np.array([[1.0, 2.0, 3.0], [4.0, -5.0, 6.0]], np.float32)

    def compute(jax, name, x):
        return jax.tree_util.tree_leaves(PROGRAMS[name](jax)(jax.numpy.asarray(x)))

    for got, want in zip(compute(ferrax, name, x), expected(compute, name, x), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_values_come_out_of_programs():
    """Of jitted functions, alone and in trees, compiled ahead of time and described."""
    high = of(ferrax)
    x = ferrax.numpy.arange(6.0).reshape(2, 3) + 1
    q = high.pack(x)
    both = ferrax.jit(lambda q, x: (q, {"new": high.pack(x)}))(q, 2 * x)
    assert isinstance(both[0], high.Rows) and isinstance(both[1]["new"], high.Rows)
    np.testing.assert_array_equal(both[0].whole, q.whole)
    np.testing.assert_array_equal(both[1]["new"].scale, 2 * q.scale)
    compiled = ferrax.jit(high.pack).lower(x).compile()
    np.testing.assert_array_equal(compiled(x).whole, q.whole)
    assert ferrax.eval_shape(high.pack, x) == ferrax.typeof(q)


def test_inside_of_vmap():
    """Programs of rows have values inside; each row is as it is alone."""
    high = of(ferrax)
    x = ferrax.numpy.arange(24.0).reshape(4, 2, 3) + 1
    slope = ferrax.grad(lambda x: _loss(ferrax)(high.pack(x)))
    np.testing.assert_allclose(ferrax.vmap(slope)(x), [slope(row) for row in x], rtol=1e-6)


def test_programs_of_values():
    """Programs have the arrays that stand for a value, and one for its tangent."""
    high = of(ferrax)
    q = high.pack(ferrax.numpy.ones((2, 3)))
    program = ferrax.make_jaxpr(high.plain)(q)
    assert [a.str_short() for a in program.in_avals] == ["int8[2,3]", "float32[2]"]
    assert "call_hi_primitive[_prim=Times[{}]]" in str(program)


def test_mapped_results_are_arrays():
    """A mapped function gives no values: `vmap` has no axes of these."""
    high = of(ferrax)
    with pytest.raises(NotImplementedError, match="vmap of a function that gives values that are no arrays"):
        ferrax.vmap(high.pack)(ferrax.numpy.ones((4, 2, 3)))


def test_tangents_that_are_no_arrays():
    """Their type says so where derivatives are asked for, and not before."""
    hijax = ferrax.experimental.hijax

    @dataclass(frozen=True)
    class Pair:
        first: object

    @dataclass(frozen=True)
    class PairTy(hijax.HiType):
        def lo_ty(self):
            return [hijax.ShapedArray((), ferrax.numpy.dtype("float32"))]

        def lower_val(self, value):
            return [value.first]

        def raise_val(self, *arrays):
            return Pair(*arrays)

    class First(hijax.VJPHiPrimitive):
        def __init__(self):
            self.in_avals, self.params = (PairTy(),), {}
            self.out_aval = hijax.ShapedArray((), ferrax.numpy.dtype("float32"))
            super().__init__()

        def expand(self, pair):
            return pair.first

    hijax.register_hitype(Pair, lambda pair: PairTy())
    pair = Pair(ferrax.numpy.float32(2.0))
    assert ferrax.jit(First())(pair) == 2.0
    with pytest.raises(TypeError, match="have no tangents that are arrays"):
        ferrax.grad(First())(pair)


def test_specs_of_values():
    """They say how the arrays of a value are divided; `shard_map` does not take them yet, and says so."""
    from ferrax.experimental.hijax import HiPspec, TransformedRef

    assert type(ferrax.new_ref(ferrax.numpy.ones(3)).at[0]) is TransformedRef
    for rule in ("to_lo", "to_tangent_spec", "to_ct_spec"):
        with pytest.raises(NotImplementedError, match=f"HiPspec does not define {rule}"):
            getattr(HiPspec(), rule)()
    mesh = ferrax.make_mesh((1,), ("i",))
    with pytest.raises(TypeError, match="in_specs argument must be a pytree of"):
        ferrax.shard_map(lambda x: x, mesh=mesh, in_specs=HiPspec(), out_specs=HiPspec())(ferrax.numpy.ones(4))


def test_no_derivative_is_lost():
    """What is read of a value with a tangent, and a value made of traced arrays, would lose theirs."""
    high = of(ferrax)
    x = ferrax.numpy.ones((2, 3))
    with pytest.raises(AttributeError, match="HighTracer has no attribute scale"):
        ferrax.grad(lambda x: high.pack(x).scale.sum())(x)
    with pytest.raises(AttributeError, match="HighTracer has no attribute scale"):
        ferrax.grad(lambda q: q.scale.sum())(high.pack(x))
    q = high.pack(x)
    with pytest.raises(TypeError, match="made of traced arrays"):
        ferrax.grad(lambda scale: high.plain(high.Rows(q.whole, scale)).sum())(q.scale)
