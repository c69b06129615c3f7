"""Shapes, reductions, running reductions and windows, against JAX."""

import numpy as np
import pytest

import ferrax
from ferrax import lax as ours
from ferrax._core import asarray
from tests.recorded import dtype_of, expected
from tests.support import assert_same

RTOL = {"float32": 2e-6, "bfloat16": 3e-2, "float16": 4e-3, "complex64": 5e-6}


def to_ours(x):
    return asarray(np.asarray(x))


def numbers(dtype, shape, salt=0):
    rng = np.random.default_rng(salt)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if "int" in dtype:
        return rng.integers(0 if dtype[0] == "u" else -9, 9, shape).astype(dtype)
    x = rng.uniform(-2, 2, shape)
    if dtype == "complex64":
        return (x + 1j * rng.uniform(-2, 2, shape)).astype(dtype)
    return x.astype("float32").astype(dtype_of(dtype))


def with_values(x, values):
    """A copy that has other values at some indices."""
    x = x.copy()
    for index, value in values.items():
        x[index] = value
    return x


SHAPES = {
    "reshape": lambda lax, x: lax.reshape(x, (4, 6)),
    "reshape, permuted": lambda lax, x: lax.reshape(x, (24,), (2, 0, 1)),
    "transpose": lambda lax, x: lax.transpose(x, (2, 0, 1)),
    "squeeze": lambda lax, x: lax.squeeze(lax.expand_dims(x, (1,)), (1,)),
    "expand_dims": lambda lax, x: lax.expand_dims(x, (0, -1)),
    "rev": lambda lax, x: lax.rev(x, (0, 2)),
    "tile": lambda lax, x: lax.tile(x, (2, 1, 3)),
    "collapse": lambda lax, x: lax.collapse(x, 0, -1),
    "broadcast": lambda lax, x: lax.broadcast(x, (2,)),
    "broadcast_in_dim": lambda lax, x: lax.broadcast_in_dim(x, (2, 3, 5, 4), (0, 1, 3)),
    "broadcast_to_rank": lambda lax, x: lax.broadcast_to_rank(x, 5),
    "stack": lambda lax, x: lax.stack([x, x * x], 1),
    "unstack": lambda lax, x: lax.unstack(x, -1)[1],
    "reduce_sum": lambda lax, x: lax.reduce_sum(x, (0, 2)),
    "reduce_prod": lambda lax, x: lax.reduce_prod(x, (1,)),
    "reduce_prod of all": lambda lax, x: lax.reduce_prod(x, (0, 1, 2)),
    "cumsum": lambda lax, x: lax.cumsum(x, 1),
    "cumprod": lambda lax, x: lax.cumprod(x, 2, reverse=True),
}

ORDERED = {
    "reduce_max": lambda lax, x: lax.reduce_max(x, (0, 2)),
    "reduce_min": lambda lax, x: lax.reduce_min(x, (1,)),
    "cummax": lambda lax, x: lax.cummax(x, 1),
    "cummin": lambda lax, x: lax.cummin(x, 2, reverse=True),
    "window sum": lambda lax, x: lax.reduce_window(x, zero(x), lax.add, (1, 2, 2), (1, 1, 1), "SAME"),
    "window max": lambda lax, x: lax.reduce_window(x, low(x), lax.max, (2, 1, 2), (1, 2, 1)),
    "window min": lambda lax, x: lax.reduce_window(x, high(x), lax.min, (1, 2, 3), (1, 1, 1)),
}

INDEX = {
    "argmax": lambda lax, x: lax.argmax(x, 1, "int32"),
    "argmin": lambda lax, x: lax.argmin(x, 2, "int32"),
}


def float_of(x):
    return "float" in str(x.dtype)


def of_dtype(value, x):
    """A scalar of the operand's dtype, which windows need for their initial value."""
    return np.asarray(value, np.asarray(x).dtype if isinstance(x, np.ndarray) else x.dtype)[()]


def zero(x):
    return of_dtype(0, x)


def low(x):
    return of_dtype(-np.inf if float_of(x) else np.iinfo(str(x.dtype)).min, x)


def high(x):
    return of_dtype(np.inf if float_of(x) else np.iinfo(str(x.dtype)).max, x)


def theirs(f, *args):
    """JAX's result of a function of `lax` and arrays."""
    return expected(lambda jax: f(jax.lax, *map(jax.numpy.asarray, args)))


def check(f, x, rtol):
    mine = to_ours(x)
    eager = f(ours, mine)
    assert_same(eager, theirs(f, x), rtol=rtol, atol=rtol)
    assert_same(ferrax.jit(lambda v: f(ours, v))(mine), eager, rtol=rtol, atol=rtol)


def check_vmap(f, x, rtol):
    rows = np.stack([x, x * 2])
    want = expected(lambda jax: jax.numpy.stack([f(jax.lax, r) for r in jax.numpy.asarray(rows)]))
    for axis in range(rows.ndim):
        got = ferrax.vmap(lambda v: f(ours, v), in_axes=axis)(to_ours(np.moveaxis(rows, 0, axis)))
        assert_same(got, want, rtol=rtol, atol=rtol)


def check_grad(f, x):
    def weigh(lax):
        def g(v):
            out = f(lax, v)
            w = np.arange(1.0, out.size + 1, dtype="float32").reshape(out.shape)
            return lax.reduce_sum(lax.mul(out, w), range(out.ndim))

        return g

    want = expected(lambda jax: jax.grad(weigh(jax.lax))(jax.numpy.asarray(x)))
    assert_same(ferrax.grad(weigh(ours))(to_ours(x)), want, rtol=3e-5, atol=3e-5)


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name):
    f = SHAPES[name]
    for dtype in ("float32", "int32", "complex64", "bfloat16"):
        check(f, numbers(dtype, (2, 3, 4)), RTOL.get(dtype, 0.0))
    check_vmap(f, numbers("float32", (2, 3, 4)), 1e-5)
    check_grad(f, numbers("float32", (2, 3, 4)))


@pytest.mark.parametrize("name", ORDERED)
def test_ordered(name):
    f = ORDERED[name]
    for dtype in ("float32", "int32", "uint8", "bfloat16"):
        check(f, numbers(dtype, (3, 4, 5)), RTOL.get(dtype, 0.0))
    check_vmap(f, numbers("float32", (3, 4, 5)), 1e-6)
    check_grad(f, numbers("float32", (3, 4, 5)))


@pytest.mark.parametrize("name", INDEX)
def test_indices(name):
    f = INDEX[name]
    for dtype in ("float32", "int32", "bool", "float16"):
        check(f, numbers(dtype, (3, 4, 5)), 0.0)
    with_nan = with_values(numbers("float32", (3, 4, 5)), {(1, 2, 3): np.nan})
    check(f, with_nan, 0.0)
    check_vmap(f, numbers("float32", (3, 4, 5)), 0.0)


def test_logical_reductions():
    for dtype in ("bool", "int32", "uint8"):
        x = numbers(dtype, (3, 4))
        for name in ("reduce_and", "reduce_or", "reduce_xor"):
            check(lambda lax, v: getattr(lax, name)(v, (0,)), x, 0.0)


def test_cumlogsumexp():
    x = with_values(numbers("float32", (3, 4)), {(0, 0): -np.inf})
    for reverse in (False, True):
        f = lambda lax, v: lax.cumlogsumexp(v, 1, reverse=reverse)
        check(f, x, 3e-6)
        check_grad(f, numbers("float32", (3, 5)))
        check_vmap(f, numbers("float32", (3, 5)), 1e-5)


def test_ties_share_the_gradient():
    x = np.asarray([1.0, 3.0, 3.0, 2.0, 3.0], "float32")
    for f in (
        lambda lax, v: lax.reduce_max(v, (0,)),
        lambda lax, v: lax.cummax(v, 0),
        lambda lax, v: lax.reduce_prod(v, (0,)),
    ):
        check_grad(f, x)
    check_grad(lambda lax, v: lax.reduce_prod(v, (0,)), with_values(x, {1: 0.0}))
    check_grad(lambda lax, v: lax.reduce_prod(v, (0,)), with_values(x, {1: 0.0, 3: 0.0}))


def test_second_derivative_of_products():
    x = numbers("float32", (4,))
    f = lambda lax: lambda v: lax.reduce_prod(v, (0,))
    assert_same(
        ferrax.hessian(f(ours))(to_ours(x)), expected(lambda jax: jax.hessian(f(jax.lax))(x)), rtol=1e-5, atol=1e-5
    )
    g = lambda lax: lambda v: lax.reduce_sum(lax.cumprod(v, 0), (0,))
    assert_same(
        ferrax.hessian(g(ours))(to_ours(x)), expected(lambda jax: jax.hessian(g(jax.lax))(x)), rtol=1e-5, atol=1e-5
    )


def test_empty_reductions():
    x = np.zeros((0, 3), "float32")
    for name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min"):
        check(lambda lax, v: getattr(lax, name)(v, (0,)), x, 0.0)
    check(lambda lax, v: lax.cumsum(v, 0), x, 0.0)


def test_initial_values_count_whatever_the_sizes():
    assert ours.reduce(to_ours(np.full((1, 2), -3, np.int32)), 0, ours.max, (0,)).tolist() == [0, 0]
    assert ours.reduce(to_ours(np.full((1,), -3, np.int32)), 5, ours.add, (0,)) == 2


def test_long_running_logarithms_of_sums_do_not_gather_errors():
    x = np.random.default_rng(0).normal(size=(30_000,)).astype(np.float32)
    wanted = np.logaddexp.accumulate(x.astype(np.float64))
    for operand in (to_ours(x), to_ours(np.stack([x, x], 1))):
        result = np.asarray(ours.cumlogsumexp(operand, 0)).reshape(30_000, -1)
        np.testing.assert_allclose(result[:, -1], wanted, rtol=1.2e-7, atol=1e-7)
    with ferrax.enable_x64(True):
        for wide in (x.astype(np.float64), np.linspace(-900, 900, 3000), np.array([-np.inf, 3, -np.inf, np.inf, 1])):
            wanted = np.logaddexp.accumulate(wide.astype(np.longdouble)).astype(np.float64)
            # CUDA's and XLA's logarithms are a little less exact (docs/numerics.md).
            near_zero = 0 if ferrax.default_backend() == "cpu" else 4e-16
            np.testing.assert_allclose(ours.cumlogsumexp(wide, 0), wanted, rtol=4.5e-16, atol=near_zero)


def test_reduce_with_any_function():
    x = numbers("float32", (3, 4))
    cases = [
        lambda lax, v: lax.reduce(v, 0.0, lax.add, (0,)),
        lambda lax, v: lax.reduce(v, 1.0, lax.add, (1,)),
        lambda lax, v: lax.reduce(v, -np.inf, lax.max, (0, 1)),
        lambda lax, v: lax.reduce(v, np.float32(0.5), lambda a, b: a + b * 1.0, (0,)),
        lambda lax, v: lax.reduce(
            (v, v), (np.float32(0), np.float32(1)), lambda a, b: (a[0] + b[0], a[1] * b[1]), (1,)
        )[1],
    ]
    for f in cases:
        check(f, x, 1e-5)
        check_vmap(f, x, 1e-5)
    indices = np.arange(12, dtype="int32").reshape(3, 4)

    def arg(lax, v, i):
        def pick(a, b):
            return lax.select(a[0] >= b[0], a[0], b[0]), lax.select(a[0] >= b[0], a[1], b[1])

        return lax.reduce((v, i), (np.float32(-np.inf), np.int32(0)), pick, (1,))[1]

    assert_same(arg(ours, to_ours(x), to_ours(indices)), theirs(arg, x, indices))


def test_windows():
    x = numbers("float32", (5, 6))
    settings = [
        dict(window_dimensions=(2, 3)),
        dict(window_dimensions=(2, 2), window_strides=(2, 1), padding="SAME"),
        dict(window_dimensions=(3, 2), window_strides=(1, 1), padding="SAME_LOWER"),
        dict(window_dimensions=(2, 2), padding=((1, 0), (2, 1)), window_strides=(1, 3)),
        dict(window_dimensions=(3, 2), base_dilation=(2, 1), window_dilation=(1, 2)),
        dict(window_dimensions=(2, 2), padding=((-1, 0), (0, -1))),
    ]
    for s in settings:
        f = lambda lax, v: lax.reduce_window(v, 0.0, lax.add, **s)
        check(f, x, 1e-5)
        check_grad(f, x)
        check_vmap(f, x, 1e-5)
        check(lambda lax, v: lax.reduce_window(v, -np.inf, lax.max, **s), x, 0.0)
        check(lambda lax, v: lax.reduce_window(v, np.float32(1), lambda a, b: a * b, **s), x, 1e-5)
    assert ours.padtype_to_pads((5, 6), (2, 3), (1, 2), "SAME") == expected(
        lambda jax: jax.lax.padtype_to_pads((5, 6), (2, 3), (1, 2), "SAME")
    )


def test_creation():
    for f in (
        lambda lax: lax.iota("int32", 4),
        lambda lax: lax.iota("float32", 0),
        lambda lax: lax.broadcasted_iota("uint8", (2, 3), 1),
        lambda lax: lax.full((2, 3), 7),
        lambda lax: lax.full((), 1.5, "bfloat16"),
        lambda lax: lax.full(3, True),
        lambda lax: lax.shape_as_value((2, 3)),
        lambda lax: lax.full_like(np.ones(2, "float32"), 3),
        lambda lax: lax.full_like(np.ones(2, "float32"), 3, "int32", (4,)),
        lambda lax: lax.empty((2,), "float32"),
    ):
        assert_same(f(ours), theirs(f))
    assert ours.broadcast_shapes((2, 1), (1, 3), (4, 1, 1)) == (4, 2, 3)


@pytest.mark.parametrize("reps", [2**62, 2**63 - 1])
def test_tiles_that_cannot_be_counted(reps):
    with pytest.raises((MemoryError, ValueError, OverflowError)):
        ours.tile(np.arange(5), (reps,))


@pytest.mark.embedded  # other engines add up fused rows in another order
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("long", [16_383, 16_385, 20_000, 32_768, 32_769])
def test_rows_that_are_read_again_after_their_reduction(long, rows):
    # What threads share depends on when a call comes: many calls meet both ways.
    x = np.sin(np.arange(rows * long, dtype="float32")).reshape(rows, long)
    distances = lambda x: ferrax.nn.selu(x) - ferrax.nn.selu(x).max(axis=1, keepdims=True)
    shares = lambda x: ferrax.nn.softmax(ferrax.nn.elu(x), axis=1)
    for function in (distances, shares):
        want, jitted = np.asarray(function(to_ours(x))), ferrax.jit(function)
        for _ in range(30):
            np.testing.assert_array_equal(np.asarray(jitted(x)), want)


def test_nothing_padded():
    for shape, config in [((32, 19, 5, 0), (13, 0, 0)), ((66_668, 3), (-2, 1, 1)), ((0, 4), (0, 0, 2))]:
        x = np.zeros(shape, "float16")
        edges = [(0, 0, 0), config] if len(shape) > 2 else [config, (-2, -1, 0)]
        edges += [(0, 0, 0)] * (len(shape) - 2)
        one = np.float16(1)
        want = theirs(lambda lax, x, one=one, edges=edges: lax.pad(x, one, edges), x)
        assert_same(ours.pad(to_ours(x), one, edges), want)
        assert_same(ferrax.jit(lambda v: ours.pad(v * 2, one, edges) + one)(x), want + one)
