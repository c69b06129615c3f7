"""Taking, putting, selecting, searching, sorting and sets against JAX."""

import functools

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from tests.numpy.oracle import cases, compare
from tests.recorded import expected

TAKE = """
take(x, array([1, -1, 7, -8]))
take(i, array([1, -1, 7, -8]))
take(b, array([1, -1, 7, -8]))
take(q, array([1, -1, 7, -8]))
take(c, array([0, 9]))
take(i, array([1, -1, 7, -8]), mode='clip')
take(i, array([1, -1, 7, -8]), mode='wrap')
take(i, 1, mode='raise')
take(i, True)
trim_zeros(array(0.))
take(x, array([True, False]), axis=0)
take(i, 1, mode='foo')
take(i, array([1, 9]), fill_value=3)
take(x, [1])
take(x, 1, axis=1)
take(x, array([[0, 1], [1, 0]]), axis=0)
take(t, array([2, 0]), axis=-1)
take(e, array([0]))
take(e, array([], dtype=int))
take(i, array([1, 2], dtype='uint8'))
take_along_axis(x, array([[0], [1]]), 1)
take_along_axis(x, array([[0], [-1]]), 1)
take_along_axis(x, array([[0], [9]]), 1)
take_along_axis(x, array([[0], [9]]), 1, mode='clip')
take_along_axis(x, array([[0], [9]]), 1, fill_value=-1)
take_along_axis(x, array([[0]]), 1)
take_along_axis(x, array([[1, 0, 1]]), 0)
take_along_axis(x, array([0]), 1)
take_along_axis(x, array([0, -9]), None)
take_along_axis(x, array([[0.]]), 1)
take_along_axis(x, argsort(x, axis=1), axis=1)
take_along_axis(t, argsort(t, axis=0), axis=0)
put(x, array([0, 7]), array([9., 8.]), inplace=False)
put(x, array([0, 7]), array([9., 8.]), mode='wrap', inplace=False)
put(x, array([0, 1, 2]), array([9., 8.]), inplace=False)
put(x, 0, 1)
put(x, -1, 3, inplace=False)
put_along_axis(x, array([[0], [1]]), 9, 1, inplace=False)
put_along_axis(x, array([[0], [1]]), 9, 1)
put_along_axis(x, array([[0, 1, 0]]), -1., 0, inplace=False)
put_along_axis(x, array([0, 5]), 9., None, inplace=False)
unravel_index(array([5, -1, 100, -100]), (2, 3))
unravel_index(5, (2, 3))
unravel_index(5, 6)
ravel_multi_index((array([0, 1]), array([2, 1])), (2, 3))
ravel_multi_index((array([0, 5]), array([2, 1])), (2, 3))
ravel_multi_index((array([0, 5]), array([2, 1])), (2, 3), mode='clip')
ravel_multi_index((array([0, 5]), array([2, 1])), (2, 3), mode='wrap', order='F')
choose(array([0, 1, 2]), [arange(3), arange(3) + 10])
choose(array([0, 1, 2]), [arange(3), arange(3) + 10], mode='clip')
choose(array([0, 1, 2]), [arange(3), arange(3) + 10], mode='wrap')
choose(array([0, 1, 1]), [arange(3), arange(3) + 10])
choose(array([[0], [1]]), [arange(3), 7.5])
choose(v, [arange(3)])
select([i < 2, i < 3], [i, i * 10], default=-1)
select([i < 2, i < 3], [i, i * 10.])
select([], [])
select([i > 1], [i, i])
piecewise(x, [x < 0, x >= 3], [-1, lambda v: v * 2])
piecewise(x, [x < 0, x >= 3], [-1, lambda v: v * 2, 7])
piecewise(x, [x < 3, x < 0], [1, 2])
piecewise(i, [i < 2], [1.5, 2.5])
piecewise(x, [x < 1], [1.5, 2.5, 3.5])
compress(array([True, False, True]), x, axis=1)
compress(array([True, False, True]), x)
compress(array([True, False, True]), x, axis=1, size=3, fill_value=-1)
compress(array([True, False]), x, axis=1)
compress(array([False] * 3 + [True]), x, axis=1)
extract(x > 0, x)
extract(x > 0, x, size=5)
place(x, x > 0, array([9., 8.]), inplace=False)
place(x, x > 0, array([9., 8.]))
"""

SEARCH = """
nonzero(x)
nonzero(i > 1)
nonzero(i > 1, size=8)
nonzero(i > 1, size=8, fill_value=-1)
nonzero(i > 1, size=2)
nonzero(x, size=8, fill_value=(7, 8))
nonzero(x, size=8, fill_value=(7, 8, 9))
nonzero(1)
nonzero(z)
argwhere(x)
argwhere(x, size=7)
argwhere(1.)
argwhere(0.)
flatnonzero(x)
flatnonzero(x, size=3)
where(x)
where(x, size=3)
where(x > 1, x, x, size=3)
where([True], 1, 2)
where(x > 1, x, y)
where(x > 1, 1, 2)
where(b, v[:3], 0)
where(x, i[:3], 2.5)
searchsorted(w, v)
searchsorted(w, v, side='right')
searchsorted(sort(i), array([[1, 2], [3, 4]]))
searchsorted(sort(i), array([[1, 2], [3, 4]]), side='right')
searchsorted(w, 2.5, method='compare_all')
searchsorted(w, v, method='sort')
searchsorted(sort(i), i, method='sort', side='right')
searchsorted(w, v, method='scan_unrolled')
searchsorted(w, 1, side='foo')
searchsorted(w, 1, method='foo')
searchsorted(x, 1)
searchsorted(array([1., 2., nan]), array([nan, 5.]))
searchsorted(array([1., 2., nan]), array([nan, 5.]), side='right')
searchsorted(k, 4, sorter=array([1, 0, 2]))
searchsorted(e, v)
digitize(x, array([1, 2, 4]))
digitize(x, array([4, 2, 1]), right=True)
digitize(x, array([4, 2, 1]))
digitize(x, x)
digitize(x, array([1.]))
isin(i, k)
isin(x, array([2.0, -1.5]))
isin(i, k, invert=True, method='sort')
isin(i, arange(30) * 3, method='binary_search')
isin(i, k, method='compare_all')
isin(i, k, method='foo')
histogram(i, 3)
histogram(x, 4)
histogram(i, array([1, 2, 3]))
histogram(i, 3, weights=arange(6))
histogram(i, 3, density=True)
histogram(i, 3, range=(0, 2))
histogram(array([2, 2]), 2)
histogram(x, 2.5)
histogram_bin_edges(i, 3)
histogram_bin_edges(i, 3, range=(0., 1.))
histogram2d(v, w, 2)
histogram2d(v, w, [2, 3], density=True)
histogramdd(x, 2)
histogramdd(t[0], [2, 1, 3, 2], weights=array([1., 2., 3.]))
bincount(i)
bincount(i, weights=arange(6.), minlength=6)
bincount(i, length=2)
bincount(array([-1, 2]))
bincount(array([-3, -1]))
bincount(array([-3, -1]), weights=array([1., 2.]))
bincount(x)
bincount(v)
bincount(array([], dtype=int))
bincount(b[0])
"""

SORT = """
sort(x)
sort(x, axis=0)
sort(x, axis=None)
sort(i, descending=True)
sort(f)
sort(n, axis=1, descending=True)
sort(c)
sort(b)
sort(1)
sort(i, kind='quicksort')
sort(i, order='x')
argsort(i)
argsort(x, axis=0)
argsort(x, axis=None)
argsort(i, descending=True)
argsort(n)
argsort(i, dtype='int8')
argsort(i, kind='quicksort')
lexsort((i, arange(6)[::-1]))
lexsort((array([1, 2, 1]), k))
lexsort(x)
lexsort(())
lexsort((v, x))
partition(i, 2)[2]
partition(i, 9)
argpartition(v, 1)[1]
sort_complex(i)
sort_complex(x)
unique(i)
unique(x)
unique(i, size=5)
unique(i, size=2)
unique(i, True, True, True)
unique(i, True, True, True, size=5)
unique(i, True, True, True, size=2)
unique(i, True, True, True, size=5, fill_value=-7)
unique(n, True, True, True)
unique(n, True, True, True, equal_nan=False)
unique(i.reshape(2, 3), True, True, True)
unique(i.reshape(3, 2), True, True, True, axis=0)
unique(i.reshape(3, 2), True, True, True, axis=1, size=4)
unique(array([[1, 0], [1, 0], [0, 2]]), axis=0)
unique(e, True, True, True)
unique(e, size=2)
unique(e, size=2, fill_value=3)
unique([1, 2])
unique(1)
unique(b)
unique_all(i)
unique_counts(i, size=4)
unique_inverse(i)
unique_values(i)
union1d(i, k)
union1d(i, k, size=7)
union1d(i, k, size=7, fill_value=0)
union1d(x, k)
intersect1d(i, k)
intersect1d(i, k, return_indices=True)
intersect1d(i, k, return_indices=True, size=3)
intersect1d(i, k, size=3, fill_value=-1)
intersect1d(array([7, 5]), k, assume_unique=True)
intersect1d(x, y, return_indices=True)
setdiff1d(i, k)
setdiff1d(i, k, size=4)
setdiff1d(i, k, size=4, fill_value=-1)
setdiff1d(i, k, assume_unique=True)
setxor1d(i, k)
setxor1d(i, k, size=6)
setxor1d(i, k, size=6, fill_value=-1)
setxor1d(array([7, 5]), k, assume_unique=True)
"""


@cases(TAKE)
def test_take(text):
    compare(text)


@cases(SEARCH)
def test_search(text):
    compare(text)


@cases(SORT)
def test_sort(text):
    compare(text)


@pytest.mark.parametrize("count", [1, 7, 300, 20_000])
def test_many_indices_count_from_the_end(count):
    rng = np.random.default_rng(count)
    vector, rows = rng.normal(size=500).astype("float32"), rng.normal(size=(40, 3)).astype("float32")
    for table in (vector, rows, rows[..., 0], rows.astype("int8")):
        n = len(table)
        inside, mixed = rng.integers(0, n, count), rng.integers(-n, n, count)
        far = rng.integers(-3 * n, 3 * n, count)
        for index in (inside, mixed, far, mixed.reshape(1, -1)):
            index = index.astype("int32")
            functions = {
                "plain": lambda t, i: t[i],
                "fill": lambda t, i: t.at[i].get(mode="fill", fill_value=7),
                "clip": lambda t, i: t.at[i].get(mode="clip"),
            }
            for name, f in functions.items():
                eager = f(jnp.asarray(table), jnp.asarray(index))
                jitted = ferrax.jit(f)(jnp.asarray(table), jnp.asarray(index))
                np.testing.assert_array_equal(np.asarray(eager), np.asarray(jitted), err_msg=name)
                want = expected(lambda jax: f(jax.numpy.asarray(table), jax.numpy.asarray(index)))
                np.testing.assert_array_equal(np.asarray(jitted), want, err_msg=name)


@pytest.mark.parametrize("bucket_size", [None, 2])
@pytest.mark.parametrize("mode", [None, "clip", "promise_in_bounds"])
def test_segments_leave_out_negative_ids(mode, bucket_size):
    """They do not count from the end, as indices do."""
    ids = jnp.array([1, -1, 0, -3, 1, 7] if mode is None else [1, 0, 0, 1, 1, 0])
    kept = np.asarray(ids) if mode else np.array([1, 9, 0, 9, 1, 9])
    data = np.array([3.0, 5.0, 2.0, 7.0, 4.0, 6.0], np.float32)
    for name, reduce in {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}.items():
        call = functools.partial(getattr(ferrax.ops, f"segment_{name}"), num_segments=2, mode=mode)
        found = ferrax.jit(functools.partial(call, bucket_size=bucket_size))(jnp.asarray(data), ids)
        np.testing.assert_array_equal(found, [reduce(data[kept == n]) for n in range(2)])


@pytest.mark.parametrize("shape", [(), (1, 3), (4, 3), (1,)])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_one_row_of_data_stands_for_as_many_as_there_are_ids(name, shape):
    """As in JAX, where updates broadcast against the places that they go to."""
    data, ids = np.full(shape, 2.0, np.float32), np.array([0, 1, 1, 2])
    want = expected(lambda jax: getattr(jax.ops, f"segment_{name}")(data, ids, num_segments=4))
    np.testing.assert_array_equal(getattr(ferrax.ops, f"segment_{name}")(data, ids, num_segments=4), want)
    slopes = ferrax.grad(lambda d: ferrax.ops.segment_sum(d, ids, num_segments=4).sum())(jnp.asarray(data))
    np.testing.assert_array_equal(slopes, np.full(shape, 1.0 if shape == (4, 3) else 4.0))


@pytest.mark.parametrize("how", ["set", "add", "subtract", "multiply", "divide", "power", "min", "max"])
def test_updates_take_lists(how):
    """As `asarray` does: lists, tuples and ranges, with arrays in them."""

    def program(jax):
        x = jax.numpy.full((2, 4), 2.5)
        lists = [1, 2.5, jax.numpy.float32(3), 4], ((1,), (2,)), range(4), [True, 2, 3, 4]
        return [getattr(x.at[:], how)(values) for values in lists]

    for got, wanted in zip(program(ferrax), expected(program), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


@pytest.mark.parametrize("values", [None, "a", [1, None], [[1, 2]]])
def test_updates_that_no_array_is_made_of(values):
    def program(jax):
        return jax.numpy.zeros(4).at[:].set(values)

    with pytest.raises((TypeError, ValueError)) as wanted:
        expected(program)
    with pytest.raises(type(wanted.value)):
        program(ferrax)


def test_what_is_read_past_an_empty_axis_may_be_empty_itself():
    def program(jax):
        a, b = jax.numpy.array([0, -1]), jax.numpy.array([0])
        square, wide, deep = (jax.numpy.zeros(shape) for shape in ((0, 0), (0, 5), (0, 0, 2)))
        return [
            square[a, :], jax.jit(lambda x, i: x[i])(square, a), square.at[a].get(mode="clip"), wide[b, 2:2],
            square.at[a].get(mode="fill"), wide[b, 2:2, None], deep[a[:, None]], jax.grad(lambda x: x[a].sum())(square),
        ]  # fmt: skip

    for got, wanted in zip(program(ferrax), expected(program), strict=True):
        assert got.shape == wanted.shape and got.dtype == wanted.dtype
    for shape in ((0, 3), (0,)):
        with pytest.raises(IndexError, match="axis 0 with size 0"):
            jnp.zeros(shape)[jnp.array([0, -1])]


@pytest.mark.parametrize("mode", [None, "fill", "clip", "promise_in_bounds"])
def test_an_empty_axis_gives_zeros_along_an_axis(mode):
    jax = pytest.importorskip("jax")
    x, index = np.zeros((0, 3), np.float32), np.zeros((2, 3), np.int32)
    ours, theirs = (lib.numpy.take_along_axis(x, index, axis=0, mode=mode) for lib in (ferrax, jax))
    np.testing.assert_array_equal(ours, theirs)
    assert ours.shape == (2, 3) and ours.dtype == theirs.dtype
