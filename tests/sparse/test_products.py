"""Contractions and products of elements against dense ones."""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax.experimental import sparse
from tests.sparse.layouts import LAYOUTS, close, dense_array, messy


def contraction(x, y, numbers):
    return np.asarray(lax.dot_general(jnp.asarray(x, "float32"), jnp.asarray(y, "float32"), numbers))


# shape, n_batch, n_dense, shape of the dense operand, dimension numbers
DENSE = [
    ((4, 3), 0, 0, (3,), (((1,), (0,)), ((), ()))),
    ((4, 3), 0, 0, (4, 2), (((0,), (0,)), ((), ()))),
    ((4, 3), 0, 0, (5, 3), (((1,), (1,)), ((), ()))),
    ((4, 3), 0, 0, (3, 4), (((0, 1), (1, 0)), ((), ()))),
    ((4, 3), 0, 0, (2,), (((), ()), ((), ()))),
    ((5,), 0, 0, (5,), (((0,), (0,)), ((), ()))),
    ((4, 3), 1, 0, (3, 2), (((1,), (0,)), ((), ()))),
    ((4, 3), 1, 0, (4, 3), (((1,), (1,)), ((0,), (0,)))),
    ((4, 3), 1, 0, (4, 2), (((0,), (0,)), ((), ()))),
    ((4, 3), 0, 1, (4, 2), (((0,), (0,)), ((), ()))),
    ((4, 3), 0, 1, (2,), (((), ()), ((), ()))),
    ((2, 3, 4), 0, 0, (4, 3), (((2, 1), (0, 1)), ((), ()))),
    ((2, 3, 4), 0, 0, (3, 5), (((1,), (0,)), ((), ()))),
    ((2, 3, 4), 1, 0, (2, 4, 5), (((2,), (1,)), ((0,), (0,)))),
    ((2, 3, 4), 1, 0, (2, 4, 5), (((2, 0), (1, 0)), ((), ()))),
    ((2, 3, 4), 2, 0, (2, 3, 4), (((2,), (2,)), ((1, 0), (1, 0)))),
    ((2, 3, 4), 2, 0, (2, 4, 3), (((2, 1), (1, 2)), ((0,), (0,)))),
    ((2, 3, 4), 3, 0, (2, 4), (((2,), (1,)), ((0,), (0,)))),
    ((2, 3, 4), 1, 1, (2, 3, 5), (((1,), (1,)), ((0,), (0,)))),
    ((2, 3, 4), 1, 1, (3, 2), (((1,), (0,)), ((), ()))),
]


@pytest.mark.parametrize("shape, n_batch, n_dense, other, numbers", DENSE)
def test_with_dense(shape, n_batch, n_dense, other, numbers):
    mat, dense = messy(shape, n_batch, n_dense)
    rhs = dense_array(other, seed=3)
    wanted = contraction(dense, rhs, numbers)
    close(sparse.bcoo_dot_general(mat, rhs, dimension_numbers=numbers), wanted)
    close(jax.jit(lambda m, r: sparse.bcoo_dot_general(m, r, dimension_numbers=numbers))(mat, rhs), wanted)
    (lc, rc), (lb, rb) = numbers
    turned = ((rc, lc), (rb, lb))
    close(sparse.bcoo_dot_general(rhs, mat, dimension_numbers=turned), contraction(rhs, dense, turned))
    with_lists = [[list(d) for d in pair] for pair in numbers]
    close(sparse.bcoo_dot_general(mat, rhs, dimension_numbers=with_lists), wanted)


SPARSE = [
    ((4, 3), 0, (3, 2), 0, (((1,), (0,)), ((), ()))),
    ((4, 3), 0, (4, 3), 0, (((0, 1), (0, 1)), ((), ()))),
    ((5,), 0, (3,), 0, (((), ()), ((), ()))),
    ((2, 3, 4), 1, (2, 4, 5), 1, (((2,), (1,)), ((0,), (0,)))),
    ((2, 3, 4), 1, (4, 5), 0, (((2,), (0,)), ((), ()))),
    ((2, 3, 4), 2, (3, 4, 2), 1, (((2,), (1,)), ((1,), (0,)))),
    ((2, 4), 1, (3, 4), 1, (((1,), (1,)), ((), ()))),
]


@pytest.mark.parametrize("shape, n_batch, other, other_batch, numbers", SPARSE)
def test_of_two_sparse_arrays(shape, n_batch, other, other_batch, numbers):
    lhs, dense = messy(shape, n_batch)
    rhs, other_dense = messy(other, other_batch, seed=5)
    out = sparse.bcoo_dot_general(lhs, rhs, dimension_numbers=numbers)
    assert isinstance(out, sparse.BCOO)
    close(out, contraction(dense, other_dense, numbers))
    close(jax.jit(lambda x, y: sparse.bcoo_dot_general(x, y, dimension_numbers=numbers))(lhs, rhs), out.todense())


def test_number_of_elements_of_products():
    """As JAX has them: the pairs, or the positions of the result where these are fewer."""
    few = sparse.BCOO.fromdense(jnp.ones((10, 10)), nse=2)
    assert (few @ few).nse == 4
    assert (sparse.eye(3) @ sparse.eye(3)).nse == 9
    assert sparse.bcoo_multiply_sparse(few, few).nse == 4
    vector = sparse.BCOO.fromdense(jnp.array([0.0, 1, 0, 2]))
    product = vector @ vector
    assert product.shape == () and product.nse == 1
    close(product, 5.0)


@pytest.mark.parametrize(
    "lhs, rhs, numbers, error, text",
    [
        ((0, 1), None, (((2,), (2,)), ((), ())), NotImplementedError, "contracting over dense dimensions"),
        ((0, 0), None, (((2,), (2,)), ((0,), (0,))), NotImplementedError, "batch dimensions must be among"),
        ((0, 0), (0, 0), (((2,), (2,)), ((0,), (0,))), NotImplementedError, "batch_dims must correspond"),
        ((1, 0), (1, 0), (((0,), (0,)), ((), ())), NotImplementedError, "contraction of sparse indices"),
        ((0, 0), (1, 0), (((2,), (2,)), ((), ())), ValueError, "cannot have unused batch dims on rhs"),
        ((0, 1), (0, 1), (((1,), (1,)), ((), ())), NotImplementedError, "dense dimensions"),
        ((0, 0), None, (((1,), (2,)), ((), ())), TypeError, "contracting dimensions to have the same shape"),
    ],
)
def test_contractions_that_are_not_there(lhs, rhs, numbers, error, text):
    lhs = messy((2, 3, 4), *lhs)[0]
    rhs = jnp.ones((2, 3, 4)) if rhs is None else messy((2, 3, 4), *rhs)[0]
    with pytest.raises(error, match=text):
        sparse.bcoo_dot_general(lhs, rhs, dimension_numbers=numbers)


def test_types_of_contractions():
    mat, dense = messy((4, 3), dtype="int32")
    numbers = (((1,), (0,)), ((), ()))
    out = sparse.bcoo_dot_general(mat, jnp.ones(3, "float16"), dimension_numbers=numbers)
    assert out.dtype == np.float16
    close(out, dense.sum(1).astype("float16"), 1e-2)
    half = mat.astype("bfloat16")
    out = sparse.bcoo_dot_general(
        half, half, dimension_numbers=(((1,), (1,)), ((), ())), preferred_element_type="float32"
    )
    assert out.dtype == np.float32
    out = sparse.bcoo_dot_general(mat, jnp.ones(3), dimension_numbers=numbers, preferred_element_type="int8")
    assert out.dtype == np.int8
    logical = sparse.BCOO((mat.data > 3, mat.indices), shape=mat.shape)
    assert (logical.todense() @ jnp.ones(3, bool)).tolist() == (logical @ jnp.ones(3, bool)).tolist()


def test_padding_takes_part_in_nothing():
    """Not even where it is NaN, or where the dense array is."""
    mat = sparse.BCOO((jnp.array([2.0, jnp.nan]), jnp.array([[1], [4]])), shape=(4,))
    v = jnp.array([jnp.inf, 3.0, jnp.nan, 1.0])
    assert float(mat @ v) == 6
    assert float(sparse.bcoo_dot_general(v, mat, dimension_numbers=(((0,), (0,)), ((), ())))) == 6
    two = sparse.BCOO((jnp.array([2.0, jnp.nan, 5.0]), jnp.array([[1, 0], [3, 4], [0, 7]])), shape=(3, 4))
    assert (two @ jnp.array([1.0, jnp.nan, 1.0, 1.0])).tolist() == [0, 2, 0]
    assert two.sum(0).todense().tolist() == [2, 0, 0, 0]
    assert two.T.sum_duplicates().todense().tolist()[0] == [0, 2, 0]
    assert (two @ two.T).todense().tolist() == [[0, 0, 0], [0, 4, 0], [0, 0, 0]]
    assert sparse.bcoo_reshape(two, new_sizes=(12,)).todense().tolist() == [0] * 4 + [2] + [0] * 7
    assert sparse.bcoo_concatenate([mat, mat], dimension=0).todense().tolist() == [0, 2, 0, 0, 0, 2, 0, 0]
    assert sparse.bcoo_rev(mat, (0,)).todense().tolist() == [0, 0, 2, 0]


@pytest.mark.parametrize("shape", [((3,), (3,)), ((4, 3), (3,)), ((4,), (4, 3)), ((4, 3), (3, 2))])
def test_matmul(shape):
    (lhs, x), (rhs, y) = messy(shape[0]), messy(shape[1], seed=1)
    for left in (lhs, x.astype("float32")):
        for right in (rhs, jnp.asarray(y, "float32")):
            if left is lhs or right is rhs:
                out = left @ right
                assert sparse.test_util.is_sparse(out) == (left is lhs and right is rhs)
                close(out, x @ y)


def test_matmul_of_batches():
    mats, dense = messy((2, 3, 4), 1)
    other = dense_array((2, 4, 5), seed=1)
    close(mats @ other, dense @ other)
    close(mats @ other[0], dense @ other[0])
    close(mats @ other[:1], dense @ other[:1])
    close(other.swapaxes(1, 2) @ mats.transpose((0, 2, 1)), other.swapaxes(1, 2) @ dense.swapaxes(1, 2))
    mat, one = messy((3, 4))
    close(mat @ other, one @ other)
    close(mats @ mat.T, dense @ one.T)
    with pytest.raises(ValueError, match="matmul input operand 1 must have ndim at least 1"):
        mat @ 2.0
    with pytest.raises(TypeError, match="contracting dimensions"):
        mat @ jnp.ones(3)


@pytest.mark.parametrize("n_batch", [0, 1])
def test_sampled(n_batch):
    a, b = dense_array((2, 3, 4)), dense_array((2, 5, 4), seed=1)
    if not n_batch:
        a, b = a[0], b[0]
    lead = tuple(range(n_batch))
    numbers = (((a.ndim - 1,), (b.ndim - 1,)), (lead, lead))
    full = contraction(a, b, numbers)
    mat, _ = messy(full.shape, n_batch)
    wanted = sparse.bcoo_extract(mat, full, assume_unique=True).data
    out = sparse.bcoo_dot_general_sampled(a, b, mat.indices, dimension_numbers=numbers)
    close(out, wanted)
    rows = mat.indices[..., :1]
    out = sparse.bcoo_dot_general_sampled(a, b, rows, dimension_numbers=numbers)
    close(
        out,
        sparse.bcoo_extract(sparse.BCOO((jnp.zeros(out.shape), rows), shape=full.shape), full, assume_unique=True).data,
    )


@pytest.mark.parametrize("shape, n_batch, n_dense", LAYOUTS)
def test_product_of_elements(shape, n_batch, n_dense):
    mat, dense = messy(shape, n_batch, n_dense)
    other, other_dense = messy(shape, n_batch, n_dense, seed=2)
    close(sparse.bcoo_multiply_sparse(mat, other), dense * other_dense)
    for part in [shape, shape[1:], (1,) * len(shape), (*shape[:-1], 1), (1, *shape[1:]), ()]:
        values = dense_array(part, seed=4)
        close(mat * values, dense * values)
        assert sparse.bcoo_multiply_dense(mat, values).shape == mat.data.shape
    close(values * mat, dense * values)


def test_products_of_layouts_and_shapes():
    mat, dense = messy((2, 3, 4), 1)
    flat, flat_dense = messy((2, 3, 4), 0, seed=1)
    close(sparse.bcoo_multiply_sparse(mat, flat), dense * flat_dense)
    for part in [(1, 3, 4), (2, 1, 4), (1, 1, 1), (2, 3, 1)]:
        other, other_dense = messy(part, 1, seed=3)
        close(sparse.bcoo_multiply_sparse(mat, other), dense * other_dense)
        close(sparse.bcoo_multiply_sparse(other, mat), dense * other_dense)
    with pytest.raises(ValueError, match="Incompatible shapes"):
        sparse.bcoo_multiply_sparse(mat, messy((2, 4, 3))[0])
    with pytest.raises(TypeError, match="same number of dimensions"):
        sparse.bcoo_multiply_sparse(mat, messy((3, 4))[0])
    with pytest.raises(NotImplementedError, match="output shape matches"):
        sparse.bcoo_multiply_dense(mat, jnp.ones((5, 2, 3, 4)))


def test_operators():
    mat, dense = messy((4, 3))
    other, other_dense = messy((4, 3), seed=1)
    row = dense_array((3,), seed=2, filled=1.0)
    for got, wanted in [
        (-mat, -dense),
        (+mat, dense),
        (mat * 2, dense * 2),
        (0.5 * mat, dense / 2),
        (mat / 2, dense / 2),
        (mat / row, dense / row),
        (mat + other, dense + other_dense),
        (mat - other, dense - other_dense),
        (mat * other, dense * other_dense),
        (mat * mat, dense * dense),
        (mat + mat, 2 * dense),
        (mat - mat, 0 * dense),
        (mat + dense.astype("float32"), 2 * dense),
        (dense.astype("float32") + mat, 2 * dense),
        (mat**2, dense**2),
        (abs(mat), abs(dense)),
        (np.float32(2) * mat, 2 * dense),
        (jnp.float32(2) * mat, 2 * dense),
        (mat.T @ row_of(4), dense.T @ row_of(4)),
    ]:
        close(got, wanted)
    unique = sparse.BCOO.fromdense(dense.astype("float32"))
    assert (unique + unique).nse == unique.nse and (unique * unique).unique_indices
    assert (mat * 2).dtype == np.float32 and (mat.astype("int32") * 2.5).dtype == np.float32
    assert len(mat) == 4 and mat.size == 12 and [m.shape for m in mat] == [(3,)] * 4


def row_of(n):
    return np.arange(n, dtype="float32")


@pytest.mark.parametrize(
    "operation, text",
    [
        (lambda m: m + 1, "output shape is larger than Y.shape"),
        (lambda m: 1 - m, "Subtraction between sparse and dense array"),
        (lambda m: 2 / m, "Division by a sparse array"),
        (lambda m: m / m, "Division by a sparse array"),
        (lambda m: m**0.5, "sparse rule for pow is not implemented"),
        (lambda m: m == m, "sparse rule for eq is not implemented because it would result in dense output"),
        (lambda m: m > 0, "sparse rule for gt is not implemented because it would result in dense output"),
        (lambda m: m + sparse.BCOO.fromdense(jnp.ones((3, 3)), n_batch=1), "different batch/dense dimensions"),
        (lambda m: sparse.CSR.fromdense(jnp.eye(3)) * 2, "__mul__"),
        (lambda m: sparse.COO.fromdense(jnp.eye(3)) + m, "__add__"),
        (lambda m: sparse.BCSR.fromdense(jnp.eye(3)).T, "Transpose is not implemented"),
        (lambda m: sparse.BCSR.fromdense(jnp.eye(3))[0], "sparse rule for slice is not implemented"),
        (lambda m: sparse.COO.fromdense(jnp.eye(3)) @ sparse.COO.fromdense(jnp.eye(3)), "two sparse objects"),
    ],
)
def test_operators_that_are_not_there(operation, text):
    with pytest.raises(NotImplementedError, match=text):
        operation(sparse.eye(3))
