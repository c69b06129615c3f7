"""ferrax.numpy against NumPy over random shapes, axes and indices."""

import numpy as np
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

import ferrax.numpy as jnp

SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4)
FLOATS = st.integers(-8, 8).map(float)


def arrays(shape=SHAPES, dtype=np.float32):
    elements = FLOATS if np.dtype(dtype).kind == "f" else None
    return hnp.arrays(dtype, shape, elements=elements)


@st.composite
def array_and_axes(draw):
    x = draw(arrays())
    axes = draw(st.one_of(st.none(), st.integers(-x.ndim, x.ndim - 1), hnp.valid_tuple_axes(x.ndim)))
    return x, axes


def check(mine, theirs, **kwargs):
    assert mine.shape == theirs.shape
    np.testing.assert_allclose(np.asarray(mine), theirs, rtol=1e-5, atol=1e-5, **kwargs)


@given(array_and_axes(), st.booleans())
def test_reductions(pair, keepdims):
    x, axis = pair
    for name in ("sum", "prod", "max", "min", "mean", "std", "any", "all"):
        check(getattr(jnp, name)(x, axis=axis, keepdims=keepdims), getattr(np, name)(x, axis=axis, keepdims=keepdims))


@given(array_and_axes())
def test_masked_reductions(pair):
    x, axis = pair
    where = x > 0
    check(jnp.sum(x, axis=axis, where=where), np.sum(x, axis=axis, where=where))
    check(jnp.max(x, axis=axis, where=where, initial=-9), np.max(x, axis=axis, where=where, initial=-9))
    check(jnp.all(x, axis=axis, where=where), np.all(x, axis=axis, where=where))


@given(arrays(), st.data())
def test_axis_functions(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    check(jnp.cumsum(x, axis=axis), np.cumsum(x, axis=axis))
    check(jnp.sort(x, axis=axis), np.sort(x, axis=axis))
    check(jnp.argsort(x, axis=axis), np.argsort(x, axis=axis, kind="stable"))
    check(jnp.argmax(x, axis=axis), np.argmax(x, axis=axis))
    check(jnp.median(x, axis=axis), np.median(x, axis=axis))
    check(jnp.flip(x, axis), np.flip(x, axis))
    shift = data.draw(st.integers(-9, 9))
    check(jnp.roll(x, shift, axis), np.roll(x, shift, axis))
    check(jnp.diff(x, axis=axis), np.diff(x, axis=axis))
    check(jnp.repeat(x, 2, axis=axis), np.repeat(x, 2, axis=axis))
    check(jnp.concatenate([x, x], axis=axis), np.concatenate([x, x], axis=axis))
    check(jnp.stack([x, x], axis=axis), np.stack([x, x], axis=axis))


@given(arrays(), st.data())
def test_quantiles(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    q = data.draw(st.sampled_from([0.0, 0.25, 0.5, 0.8, 1.0]))
    for method in ("linear", "lower", "higher", "midpoint"):
        if q in (0.0, 0.5, 1.0, 0.25):
            check(jnp.quantile(x, q, axis=axis, method=method), np.quantile(x, q, axis=axis, method=method))


@given(arrays(), st.data())
def test_movement(x, data):
    order = data.draw(st.permutations(range(x.ndim)))
    check(jnp.transpose(x, order), np.transpose(x, order))
    source = data.draw(st.integers(0, x.ndim - 1))
    check(jnp.moveaxis(x, source, -1), np.moveaxis(x, source, -1))
    check(jnp.reshape(x, -1), np.reshape(x, -1))
    check(jnp.ravel(x, order="F"), np.ravel(x, order="F"))
    reps = tuple(data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=4)))
    check(jnp.tile(x, reps), np.tile(x, reps))
    new = data.draw(st.integers(0, x.ndim))
    check(jnp.expand_dims(x, new), np.expand_dims(x, new))


@given(arrays(), st.data())
def test_pads(x, data):
    widths = tuple(data.draw(st.tuples(st.integers(0, 3), st.integers(0, 3))) for _ in range(x.ndim))
    mode = data.draw(st.sampled_from(["constant", "edge", "wrap", "reflect", "symmetric", "maximum"]))
    check(jnp.pad(x, widths, mode=mode), np.pad(x, widths, mode=mode))


@given(arrays(), st.data())
def test_takes(x, data):
    axis = data.draw(st.integers(0, x.ndim - 1))
    n = x.shape[axis]
    index = np.array(data.draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=5)))
    check(jnp.take(x, index, axis=axis), np.take(x, index, axis=axis))
    order = np.argsort(x, axis=axis)
    check(jnp.take_along_axis(x, order, axis), np.take_along_axis(x, order, axis))
    check(jnp.delete(x, index, axis=axis), np.delete(x, index, axis=axis))
    places = np.sort(index % n)
    check(jnp.insert(x, places, 7.0, axis=axis), np.insert(x, places, 7.0, axis=axis))


@given(arrays(dtype=np.int8), arrays(dtype=np.int8))
def test_sets(x, y):
    for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
        check(getattr(jnp, name)(x, y), getattr(np, name)(x, y))
    check(jnp.isin(x, y), np.isin(x, y))
    values, index, inverse, counts = jnp.unique(x, True, True, True)
    want = np.unique(x, True, True, True)
    check(values, want[0])
    check(index, want[1])
    check(jnp.ravel(inverse), np.ravel(want[2]))
    check(counts, want[3])


@given(arrays(st.integers(0, 12)), arrays(st.integers(0, 6)), st.sampled_from(["left", "right"]))
def test_searches(x, v, side):
    x = np.sort(x)
    for method in ("scan", "scan_unrolled", "sort", "compare_all"):
        check(jnp.searchsorted(x, v, side, method=method), np.searchsorted(x, v, side))
    check(jnp.nonzero(x)[0], np.nonzero(x)[0])


@given(st.data())
def test_einsum(data):
    sizes = {c: data.draw(st.integers(1, 3)) for c in "abcd"}
    terms = data.draw(st.lists(st.text("abcd", min_size=0, max_size=3), min_size=1, max_size=4))
    present = sorted(set("".join(terms)))
    output = "".join(data.draw(st.lists(st.sampled_from(present), unique=True))) if present else ""
    text = ",".join(terms) + "->" + output
    operands = [data.draw(arrays(tuple(sizes[c] for c in t))) for t in terms]
    check(jnp.einsum(text, *operands), np.einsum(text, *operands))


@given(st.data())
def test_matmul_broadcasts(data):
    shapes = data.draw(hnp.mutually_broadcastable_shapes(signature="(m?,k),(k,n?)->(m?,n?)", max_dims=3, max_side=3))
    x, y = (data.draw(arrays(s)) for s in shapes.input_shapes)
    check(jnp.matmul(x, y), np.matmul(x, y))
