"""BCOO arrays of all layouts against the dense arrays that they stand for."""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax.experimental import sparse
from tests.sparse.layouts import LAYOUTS, close, dense_array, messy

DTYPES = ["float32", "float16", "bfloat16", "int8", "int32", "uint16", "complex64"]


@pytest.mark.parametrize("shape, n_batch, n_dense", LAYOUTS)
def test_from_dense_and_back(shape, n_batch, n_dense):
    dense = dense_array(shape)
    mat = sparse.BCOO.fromdense(dense, n_batch=n_batch, n_dense=n_dense)
    assert (mat.n_batch, mat.n_dense, mat.n_sparse) == (n_batch, n_dense, len(shape) - n_batch - n_dense)
    assert mat.shape == shape and mat.indices_sorted and mat.unique_indices
    close(mat, dense, 0)
    close(sparse.bcoo_fromdense(dense, n_batch=n_batch, n_dense=n_dense, nse=mat.nse + 2), dense, 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype):
    dense = jnp.asarray(dense_array((4, 3), "float32")).astype(dtype)
    mat = sparse.BCOO.fromdense(dense, index_dtype="int8")
    assert mat.dtype == dense.dtype and mat.indices.dtype == np.int8
    assert mat.todense().dtype == dense.dtype
    assert (mat.todense() == dense).all()
    v = jnp.ones(3, dtype)
    assert (mat @ v).dtype == dense.dtype
    np.testing.assert_allclose(
        np.asarray((mat @ v).astype("complex64")), np.asarray((dense @ v).astype("complex64")), rtol=2e-2, atol=2e-2
    )


@pytest.mark.parametrize("shape, n_batch, n_dense", LAYOUTS)
def test_duplicates_and_padding(shape, n_batch, n_dense):
    mat, dense = messy(shape, n_batch, n_dense)
    close(mat, dense)
    close(jax.jit(lambda m: m.todense())(mat), dense)
    ordered = mat.sort_indices()
    assert ordered.indices_sorted
    close(ordered, dense)
    rows = np.asarray(ordered.indices)[tuple([0] * n_batch)][None]
    assert all(sorted(map(tuple, r)) == list(map(tuple, r)) for r in rows)
    for remove_zeros in (True, False):
        summed = mat.sum_duplicates(remove_zeros=remove_zeros)
        assert summed.unique_indices and summed.nse <= mat.nse
        close(summed, dense)
        close(jax.jit(lambda m: m.sum_duplicates(nse=mat.nse, remove_zeros=remove_zeros))(mat), dense)


def test_number_of_elements():
    """As JAX has them."""
    mat = sparse.BCOO((jnp.array([1.0, 2, 3, 0]), jnp.array([[1, 0], [1, 0], [0, 2], [2, 2]])), shape=(3, 4))
    out = sparse.bcoo_sum_duplicates(mat)
    assert out.indices.tolist() == [[0, 2], [1, 0], [2, 2]] and out.data.tolist() == [3, 3, 0]
    assert mat.sum_duplicates().indices.tolist() == [[0, 2], [1, 0]]
    out = mat.sum_duplicates(nse=4)
    assert out.indices.tolist() == [[0, 2], [1, 0], [3, 4], [3, 4]] and out.data.tolist() == [3, 3, 0, 0]
    assert mat.sum_duplicates(nse=1).indices.tolist() == [[0, 2]]
    assert sparse.bcoo.bcoo_eliminate_zeros(mat).nse == 2
    # elements that cancel stay
    cancel = sparse.BCOO((jnp.array([1.0, -1]), jnp.array([[1], [1]])), shape=(3,))
    assert cancel.sum_duplicates().nse == 1
    with pytest.raises(ValueError, match="nse must be specified"):
        jax.jit(lambda m: m.sum_duplicates())(mat)


def test_from_dense_needs_a_number():
    with pytest.raises(jax.errors.ConcretizationTypeError, match="nse argument"):
        jax.jit(sparse.BCOO.fromdense)(jnp.eye(3))
    assert jax.jit(lambda x: sparse.BCOO.fromdense(x, nse=4))(jnp.eye(3)).indices.tolist()[-1] == [3, 3]
    assert sparse.BCOO.fromdense(jnp.eye(3), nse=2).indices.tolist() == [[0, 0], [1, 1]]


@pytest.mark.parametrize("shape, n_batch, n_dense", LAYOUTS)
@pytest.mark.parametrize("unique", [True, False])
def test_extract(shape, n_batch, n_dense, unique):
    mat, _ = messy(shape, n_batch, n_dense)
    values = dense_array(shape, seed=1, filled=1.0)
    out = sparse.bcoo_extract(mat, values, assume_unique=unique)
    inner = shape[n_batch : len(shape) - n_dense]
    seen = set()
    for place in np.ndindex(*mat.indices.shape[:-1]):
        index = tuple(np.asarray(mat.indices)[place].tolist())
        inside = all(i < n for i, n in zip(index, inner)) and (unique or (place[:-1], index) not in seen)
        wanted = values[(*place[:-1], *index)] if inside else 0
        np.testing.assert_array_equal(np.asarray(out.data)[place], wanted)
        seen.add((place[:-1], index))


@pytest.mark.parametrize(
    "shape, n_batch, n_dense, axes",
    [
        ((4, 3), 0, 0, (1, 0)),
        ((2, 3, 4), 0, 0, (2, 0, 1)),
        ((2, 3, 4), 1, 0, (0, 2, 1)),
        ((2, 3, 4), 2, 0, (1, 0, 2)),
        ((2, 3, 4), 0, 1, (1, 0, 2)),
        ((2, 3, 4), 0, 2, (0, 2, 1)),
        ((2, 3, 4), 3, 0, (2, 0, 1)),
    ],
)
def test_transpose(shape, n_batch, n_dense, axes):
    mat, dense = messy(shape, n_batch, n_dense)
    close(mat.transpose(axes), dense.transpose(axes))
    close(jax.jit(lambda m: m.transpose(axes))(mat), dense.transpose(axes))


@pytest.mark.parametrize("shape, n_batch, n_dense", LAYOUTS)
def test_update_layout(shape, n_batch, n_dense):
    mat, dense = messy(shape, n_batch, n_dense)
    for other in LAYOUTS:
        if other[0] == shape:
            out = mat.update_layout(n_batch=other[1], n_dense=other[2], on_inefficient=None)
            assert (out.n_batch, out.n_dense) == other[1:]
            close(out, dense)


def test_inefficient_layouts():
    mat = sparse.BCOO.fromdense(jnp.eye(3))
    with pytest.raises(sparse.SparseEfficiencyError, match="increasing n_batch from 0 to 1"):
        mat.update_layout(n_batch=1)
    for _ in range(2):
        with pytest.warns(sparse.SparseEfficiencyWarning, match="increasing n_dense from 0 to 1"):
            mat.update_layout(n_dense=1, on_inefficient="warn")
    with pytest.raises(ValueError, match="sum of n_batch=3 and n_dense=0"):
        mat.update_layout(n_batch=3)
    with pytest.raises(ValueError, match="on_inefficient"):
        mat.update_layout(n_batch=1, on_inefficient="never")
    sparse.BCOO.fromdense(jnp.eye(1)).update_layout(n_batch=1)


def test_batch_axes_of_size_one():
    data, indices = jnp.ones((1, 2)), jnp.array([[[0], [1]], [[1], [1]], [[2], [4]]])
    mat = sparse.BCOO((data, indices), shape=(3, 4))
    dense = np.array([[1, 1, 0, 0], [0, 2, 0, 0], [0, 0, 1, 0]], float)
    close(mat, dense)
    close(mat.sum_duplicates(nse=3), dense)
    close(mat @ jnp.arange(4.0), dense @ np.arange(4.0))
    close(mat * 2 + mat, 3 * dense)
    close(mat[1:], dense[1:])
    close(mat.sum(0), dense.sum(0))
    both = sparse.BCOO((data, jnp.zeros((1, 2, 1), int)), shape=(3, 4))
    close(both, np.eye(4)[:1].repeat(3, 0) * 2)
    close(both.update_layout(n_batch=0), np.eye(4)[:1].repeat(3, 0) * 2)


@pytest.mark.parametrize(
    "data, indices, shape, error",
    [
        ((3,), (2, 1), (3,), ValueError),
        ((3,), (3, 2), (3,), AssertionError),
        ((2, 2), (3, 2, 1), (3, 4), ValueError),
        ((3, 2), (2, 2, 1), (3, 4), ValueError),
        ((2, 5), (2, 1), (3, 4), ValueError),
    ],
)
def test_shapes_that_do_not_go_together(data, indices, shape, error):
    with pytest.raises(error):
        sparse.BCOO((jnp.ones(data), jnp.zeros(indices, int)), shape=shape)


def test_trees():
    mat = sparse.BCOO.fromdense(jnp.eye(3), n_batch=1)
    (data, indices), tree = jax.tree.flatten(mat)
    assert data is mat.data and indices is mat.indices
    assert str(tree) == (
        "PyTreeDef(CustomNode(BCOO[{'shape': (3, 3), 'indices_sorted': True, 'unique_indices': True}], [*, *]))"
    )
    assert hash(tree) == hash(jax.tree.structure(mat)) and repr(jax.tree.unflatten(tree, [None, None])).startswith(
        "BCOO"
    )
    assert repr(mat) == "BCOO(float32[3, 3], nse=1, n_batch=1)"
    assert repr(sparse.BCOO.fromdense(jnp.ones((2, 3)), n_dense=1)) == "BCOO(float32[2, 3], nse=2, n_dense=1)"
    shown = []
    jax.jit(lambda m: (shown.append(repr(m)), m)[1])(mat)
    assert shown == ["DynamicJaxprTracer[BCOO(float32[3, 3], nse=1, n_batch=1)]"]
    with pytest.raises(TypeError, match="unhashable"):
        hash(mat)
    with pytest.raises(ValueError, match="invalid aux_data"):
        sparse.BCOO.tree_unflatten({}, (data, indices))


def test_vmap_maps_batch_axes():
    mats, dense = messy((2, 3, 4), 1)
    seen = []

    def f(mat, v):
        seen.append((mat.shape, mat.n_batch))
        return mat, mat @ v

    out, product = jax.vmap(f, in_axes=(0, None))(mats, jnp.arange(4.0))
    assert seen == [((3, 4), 0)] and (out.shape, out.n_batch) == ((2, 3, 4), 1)
    close(out, dense)
    close(product, dense @ np.arange(4.0))
    twice, dense = messy((2, 3, 4), 2)
    out = jax.vmap(lambda m: m, in_axes=1, out_axes=1)(twice)
    assert out.shape == (2, 3, 4)
    close(out, dense)
    close(jax.vmap(lambda m: m, in_axes=1)(twice), dense.swapaxes(0, 1))
    made = jax.vmap(lambda x: sparse.BCOO.fromdense(x, nse=4))(dense.astype("float32"))
    assert made.n_batch == 1
    close(jax.vmap(jax.vmap(lambda m: m.sum()))(twice), dense.sum(-1))
    for bad in (1, -1):
        with pytest.raises(ValueError, match=f"Cannot map in_axis={bad} for BCOO array with n_batch=1"):
            jax.vmap(lambda m: m, in_axes=bad)(mats)
    with pytest.raises(ValueError, match="Cannot map in_axis=0 for BCOO array with n_batch=0"):
        jax.vmap(lambda m: m)(sparse.eye(3))
    with pytest.raises(ValueError, match="cannot add out_axis=1 for BCOO array with n_batch=0"):
        jax.vmap(lambda x: sparse.BCOO.fromdense(x, nse=4), out_axes=1)(jnp.ones((2, 2, 2)))


def test_empty_arrays():
    for shape in [(0,), (3, 0), (0, 3), (2, 0, 3)]:
        dense = np.zeros(shape, "float32")
        for n_batch in range(len(shape) + 1):
            for nse in (None, 2):
                mat = sparse.BCOO.fromdense(dense, n_batch=n_batch, nse=nse)
                close(mat, dense)
                close(mat.sum(0), dense.sum(0))
                close(mat.sum_duplicates(nse=1), dense)
    close(sparse.empty((2, 3), nse=2, n_batch=1), np.zeros((2, 3)))
    close(sparse.empty((2, 3)) @ jnp.ones(3), np.zeros(2))


@pytest.mark.parametrize("sparse_format", ["bcoo", "bcsr", "coo", "csr", "csc"])
def test_made_of_any_format(sparse_format):
    for n, m, k in [(3, 3, 0), (3, 4, 1), (4, 3, -2), (3, 4, -5), (3, None, 2), (3, 4, 9)]:
        mat = sparse.eye(n, m, k, sparse_format=sparse_format)
        assert type(mat).__name__ == sparse_format.upper()
        close(mat, np.eye(n, m, k))
        assert mat.dtype == np.float32 and mat.nse == np.count_nonzero(np.eye(n, m, k))
    mat = sparse.empty((3, 4), "int32", sparse_format=sparse_format)
    assert mat.dtype == np.int32 and mat.nse == 0
    close(mat, np.zeros((3, 4)))
    with pytest.raises(ValueError, match="sparse_format='none' not recognized"):
        sparse.eye(3, sparse_format="none")


@pytest.mark.parametrize("n_batch, n_dense", [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2)])
def test_eye_of_layouts(n_batch, n_dense):
    for k in (0, 1, -1, 5):
        mat = sparse.eye(3, 4, k, n_batch=n_batch, n_dense=n_dense, dtype="int32", index_dtype="int16")
        assert (mat.n_batch, mat.n_dense, mat.indices.dtype) == (n_batch, n_dense, np.int16)
        close(mat, np.eye(3, 4, k, dtype="int32"))


def test_random():
    """The indices and elements are JAX's for the same key."""
    key = jax.random.key(0)
    mat = sparse.random_bcoo(key, (4, 5), dtype="float32")
    assert mat.indices.tolist() == [[0, 0], [0, 3], [1, 4], [1, 0]]
    np.testing.assert_allclose(mat.data, [0.8423141, 0.18237865, 0.2271781, 0.12072563], rtol=1e-6)
    mat = sparse.random_bcoo(key, (3, 4, 5), dtype="float32", n_batch=1, nse=3)
    assert (mat.indices @ jnp.array([5, 1])).tolist() == [[0, 3, 9], [16, 7, 4], [12, 11, 16]]
    mat = sparse.random_bcoo(key, (4, 5), dtype="float32", unique_indices=False)
    assert (mat.indices @ jnp.array([5, 1])).tolist() == [2, 2, 16, 15]
    mat = sparse.random_bcoo(key, (4, 5), nse=6, sorted_indices=True, dtype="float32")
    assert mat.indices_sorted and mat.indices.tolist() == sorted(mat.indices.tolist())
    mat = sparse.random_bcoo(key, (4, 5), n_dense=1, dtype="int32", generator=jax.random.randint, minval=1, maxval=3)
    assert mat.data.shape == (1, 5) and set(mat.data.ravel().tolist()) <= {1, 2}
    with pytest.raises(ValueError, match="between 0 and 20"):
        sparse.random_bcoo(key, (4, 5), nse=21)
    with pytest.raises(ValueError, match="Invalid n_batch=1, n_dense=2"):
        sparse.random_bcoo(key, (4, 5), n_batch=1, n_dense=2)


def test_scipy():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    dense = dense_array((4, 3))
    for cls in (sparse.BCOO, sparse.BCSR):
        mat = cls.from_scipy_sparse(scipy_sparse.csr_matrix(dense))
        assert mat.indices.dtype == np.int32
        close(mat, dense)
        close(cls.from_scipy_sparse(scipy_sparse.csc_array(dense), index_dtype="int16"), dense)
        with pytest.raises(NotImplementedError):
            cls.from_scipy_sparse(scipy_sparse.csr_matrix(dense), n_batch=1)


def test_wide_types():
    with jax.enable_x64(True):
        dense = dense_array((4, 3), "float64")
        mat = sparse.BCOO.fromdense(dense, index_dtype="int64")
        assert mat.dtype == np.float64 and mat.indices.dtype == np.int64
        close(mat, dense, 0)
        close(mat @ dense.T, dense @ dense.T, 1e-14)
        assert sparse.eye(3).dtype == np.float64


def test_strict_settings():
    dense = dense_array((2, 3, 4))
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        for n_batch in (0, 1):
            mat = sparse.BCOO.fromdense(dense, n_batch=n_batch)
            close(mat.sum_duplicates(nse=30), dense)
            close(sparse.bcoo_extract(mat, dense), dense)
            close(mat.sum(axis=1), dense.sum(1))
            close(mat[:, 1:, ::2], dense[:, 1:, ::2])
            close(mat.reshape(2, 12), dense.reshape(2, 12))
            close(mat @ jnp.ones(4), dense.sum(-1))
            close(mat * mat, dense * dense)
        close(sparse.BCSR.fromdense(dense[0]) @ jnp.ones(4), dense[0].sum(-1))
        close(sparse.CSR.fromdense(dense[0]) @ jnp.ones(4), dense[0].sum(-1))
        close(sparse.random_bcoo(jax.random.key(0), (3, 3), dtype="float32", nse=0), np.zeros((3, 3)))


def test_narrow_indices():
    """Where a size does not fit them, they widen or are refused."""
    for make in (sparse.BCOO.fromdense, sparse.BCSR.fromdense, sparse.CSR.fromdense, sparse.COO.fromdense):
        with pytest.raises(ValueError, match="cannot count to 128"):
            make(jnp.eye(128), index_dtype="int8")
        close(make(jnp.eye(127, 3), index_dtype="int8", nse=5), np.eye(127, 3))
    mat, dense = sparse.BCOO.fromdense(jnp.eye(100, 2), index_dtype="int8", nse=4), np.eye(100, 2)
    assert mat.indices.dtype == np.int8
    close(sparse.bcoo_concatenate([mat, mat], dimension=0), np.concatenate([dense, dense]))
    close(sparse.bcoo_concatenate([mat, mat], dimension=1), np.concatenate([dense, dense], 1))
    close(mat.reshape(200), dense.ravel())
    close(mat.reshape(50, 4), dense.reshape(50, 4))
    batch = sparse.BCOO.fromdense(jnp.eye(200, 2), index_dtype="int8", n_batch=1)
    close(batch.update_layout(n_batch=0), np.eye(200, 2))
    wide = sparse.BCOO.fromdense(jnp.eye(2, 200), index_dtype="int8", n_dense=1)
    close(wide.update_layout(n_dense=0), np.eye(2, 200))
    close(wide.update_layout(n_batch=1, on_inefficient=None), np.eye(2, 200))
    full = sparse.BCSR.fromdense(jnp.ones((20, 20)), index_dtype="int8")
    close(full, np.ones((20, 20)))
    close(full @ jnp.ones(20), np.full(20, 20.0))
    close(sparse.CSR.fromdense(jnp.ones((20, 20)), index_dtype="int8"), np.ones((20, 20)))
