"""BCSR, COO, CSR and CSC against dense arrays."""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax.experimental import sparse
from tests.sparse.layouts import close, dense_array, messy

BCSR_LAYOUTS = [((4, 3), 0, 0), ((2, 4, 3), 1, 0), ((4, 3, 2), 0, 1), ((2, 4, 3, 2), 1, 1), ((2, 2, 4, 3), 2, 0)]


@pytest.mark.parametrize("shape, n_batch, n_dense", BCSR_LAYOUTS)
def test_bcsr(shape, n_batch, n_dense):
    dense = dense_array(shape)
    mat = sparse.BCSR.fromdense(dense, n_batch=n_batch, n_dense=n_dense)
    assert (mat.n_batch, mat.n_dense, mat.n_sparse, mat.shape) == (n_batch, n_dense, 2, shape)
    close(mat, dense, 0)
    more = sparse.bcsr_fromdense(dense, n_batch=n_batch, n_dense=n_dense, nse=mat.nse + 2)
    close(more, dense, 0)
    close(jax.jit(lambda m: m.todense())(more), dense)
    close(more.to_bcoo(), dense)
    close(sparse.BCSR.from_bcoo(more.to_bcoo()), dense)
    values = dense_array(shape, seed=1, filled=1.0)
    data = sparse.bcsr_extract(mat.indices, mat.indptr, values)
    close(sparse.BCSR((data, mat.indices, mat.indptr), shape=shape), np.where(dense_places(mat), values, 0))
    v = dense_array((4,), seed=2)
    numbers = (((n_batch,), (0,)), ((), ()))
    axes = [i for i in range(len(shape)) if i != n_batch]
    close(
        sparse.bcsr_dot_general(mat, v, dimension_numbers=numbers),
        np.einsum(dense, [*axes[:n_batch], 9, *axes[n_batch:]], v, [9]),
    )


def dense_places(mat):
    return np.asarray(sparse.BCSR((jnp.ones_like(mat.data), mat.indices, mat.indptr), shape=mat.shape).todense()) > 0


@pytest.mark.parametrize("shape, n_batch, n_dense", BCSR_LAYOUTS)
def test_bcsr_of_unsorted_elements(shape, n_batch, n_dense):
    mat, dense = messy(shape, n_batch, n_dense)
    compressed = sparse.BCSR.from_bcoo(mat)
    close(compressed, dense)
    close(compressed.sum_duplicates(), dense)
    close(compressed.sum_duplicates(nse=compressed.nse, remove_zeros=False), dense)
    close(sparse.bcsr.bcsr_eliminate_zeros(compressed), dense)
    for axis in range(n_batch + 2):
        close(sparse.bcsr_concatenate([compressed, compressed], dimension=axis), np.concatenate([dense, dense], axis))
    dims = tuple(range(1, 1 + len(shape)))
    out = sparse.bcsr_broadcast_in_dim(compressed, shape=(3, *shape), broadcast_dimensions=dims)
    close(out, np.broadcast_to(dense, (3, *shape)))


def test_elements_of_bcsr():
    """As JAX has them."""
    mat = sparse.BCSR.fromdense(jnp.array([[0.0, 1, 0, 2], [3, 0, 0, 0], [0, 0, 4, 0]]), nse=6)
    assert mat.indices.tolist() == [1, 3, 0, 2, 4, 4] and mat.indptr.tolist() == [0, 2, 3, 4]
    assert repr(mat) == "BCSR(float32[3, 4], nse=6)"
    assert (mat @ jnp.arange(4.0)).tolist() == [7, 0, 8]
    close(mat @ jnp.eye(4), mat.todense())
    with pytest.raises(ValueError, match="must have 2 sparse dimensions"):
        sparse.BCSR.fromdense(jnp.ones((2, 2, 2)))
    with pytest.raises(NotImplementedError, match="BCSR lhs and ndarray rhs"):
        mat @ mat
    with pytest.raises(NotImplementedError, match="BCSR lhs and ndarray rhs"):
        jnp.ones((2, 3)) @ mat
    for arrays in [((3,), (2,), (4,)), ((2,), (2,), (3,)), ((2, 2), (2,), (4,))]:
        with pytest.raises(ValueError, match="Invalid"):
            sparse.BCSR(tuple(jnp.zeros(s, int) for s in arrays), shape=(3, 4))


def test_bcsr_under_vmap():
    dense = dense_array((3, 4, 2))
    mats = sparse.BCSR.fromdense(dense, n_batch=1)
    out, product = jax.vmap(lambda m: (m, m @ jnp.ones(2)))(mats)
    assert out.shape == (3, 4, 2)
    close(out, dense)
    close(product, dense.sum(-1))
    with pytest.raises(ValueError, match="Cannot map in_axis=1 for BCSR array with n_batch=1"):
        jax.vmap(lambda m: m, in_axes=1)(mats)
    for nse in (2, 5):
        with pytest.raises(ValueError, match=r"Cannot map in_axis=0 for BCSR array with n_batch=0|inconsistent sizes"):
            jax.vmap(lambda m: m)(sparse.BCSR.fromdense(dense[0], nse=nse))


@pytest.mark.parametrize("cls", [sparse.COO, sparse.CSR, sparse.CSC])
def test_matrices(cls):
    dense = dense_array((4, 3))
    for mat in (cls.fromdense(dense), cls.fromdense(dense, nse=12), jax.jit(lambda x: cls.fromdense(x, nse=9))(dense)):
        close(mat, dense, 0)
        close(mat.T, dense.T, 0)
        close(mat.T.T, dense, 0)
        close(mat @ jnp.arange(3.0), dense @ np.arange(3))
        close(jax.jit(lambda m, x: m @ x)(mat, dense.T), dense @ dense.T)
        close(mat.T @ dense, dense.T @ dense)
    assert repr(mat) == f"{cls.__name__}(float32[4, 3], nse=9)"
    assert (mat @ jnp.arange(3)).dtype == np.float32
    assert cls.fromdense(dense.astype("int32")).dtype == np.int32
    leaves, tree = jax.tree.flatten(mat)
    assert [type(x) for x in leaves] == [type(jnp.ones(1))] * 3
    close(jax.tree.unflatten(tree, leaves), dense)
    assert cls.fromdense(np.zeros((0, 3), "float32")).todense().shape == (0, 3)
    with pytest.raises(AssertionError):
        mat @ jnp.ones(4)
    with pytest.raises(AssertionError):
        cls.fromdense(jnp.ones(3))
    with pytest.raises(jax.errors.ConcretizationTypeError, match="nse argument"):
        jax.jit(cls.fromdense)(dense)


@pytest.mark.parametrize("name", ["coo", "csr"])
def test_functions_of_matrices(name):
    dense = dense_array((4, 3))
    fromdense, todense, matvec, matmat = (
        getattr(sparse, f"{name}_{f}") for f in ("fromdense", "todense", "matvec", "matmat")
    )
    mat = fromdense(dense, index_dtype="int16")
    assert mat._bufs[1].dtype == np.int16
    close(todense(mat), dense, 0)
    close(matvec(mat, row(3)), dense @ row(3))
    close(matvec(mat, row(4), transpose=True), dense.T @ row(4))
    close(matmat(mat, dense.T), dense @ dense.T)
    close(matmat(mat, dense, transpose=True), dense.T @ dense)
    gradient = jax.grad(lambda d, v: matvec(type(mat)((d, *mat._bufs[1:]), shape=mat.shape), v).sum(), (0, 1))
    by_data, by_vector = gradient(mat.data, row(3))
    close(by_vector, dense.sum(0))
    close(by_data, row(3)[np.nonzero(dense)[1]])


def row(n):
    return np.arange(1.0, n + 1, dtype="float32")


def test_order_of_coo():
    mat = sparse.COO.fromdense(dense_array((4, 3)))
    assert mat._info == sparse.coo.COOInfo((4, 3), rows_sorted=True, cols_sorted=False)
    assert mat.T._info == sparse.coo.COOInfo((3, 4), rows_sorted=False, cols_sorted=True)
    ordered = mat.T._sort_indices()
    assert ordered._rows_sorted and sorted(ordered.row.tolist()) == ordered.row.tolist()
    close(ordered, mat.T.todense())
    with pytest.raises(NotImplementedError):
        mat.transpose((1, 0))


def test_layouts_of_a_shape():
    layouts = list(sparse.test_util.iter_sparse_layouts((2, 3)))
    assert [tuple(layout) for layout in layouts] == [(0, 0, 2), (0, 1, 1), (0, 2, 0), (1, 0, 1), (1, 1, 0), (2, 0, 0)]
    rng = np.random.RandomState(0)
    mat = sparse.test_util.rand_bcoo(rng, nse=0.5, n_batch=1)((2, 3, 4), "float32")
    assert mat.nse == 6 and (np.count_nonzero(mat.todense(), axis=(1, 2)) == 6).all()
    assert sparse.test_util.rand_bcsr(rng, nse=3)((3, 4), "float32").nse == 3


def test_nfold_vmap():
    out = sparse.util.nfold_vmap(jnp.dot, 2)(jnp.ones((2, 1, 4)), jnp.ones((1, 3, 4)))
    close(out, np.full((2, 3), 4.0))
    assert sparse.util.nfold_vmap(jnp.sum, 1, broadcasted=False)(jnp.ones((2, 3))).shape == (2,)


class TestCase(sparse.test_util.SparseTestCase):
    """The test case's own checks find what is right and what is wrong."""

    def make(self):
        rng = self.rng()
        mats = [sparse.test_util.rand_bcoo(rng, nse=0.5)((4, 3), "float32") for _ in range(1)]
        return [*mats, jnp.asarray(rng.standard_normal(3), "float32")]

    def test_right(self):
        checks = [self._CheckAgainstDense, self._CheckGradsSparse, self._CheckBatchingSparse]
        for check in checks:
            check(lambda m, v: m @ v, lambda m, v: m @ v, self.make)

    def test_wrong(self):
        checks = [self._CheckAgainstDense, self._CheckGradsSparse, self._CheckBatchingSparse]
        for check in checks:
            with self.assertRaises(AssertionError):
                check(lambda m, v: m @ v, lambda m, v: 2 * (m @ v), self.make)
        for other in (2 * sparse.eye(3), sparse.eye(3, n_batch=1), sparse.BCSR.from_bcoo(sparse.eye(3)), jnp.eye(3)):
            with self.assertRaises(AssertionError):
                self.assertSparseArraysEquivalent(sparse.eye(3), other)
