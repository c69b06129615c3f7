"""Slices, shapes and sums of BCOO arrays against those of dense arrays."""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax.experimental import sparse
from tests.sparse.layouts import LAYOUTS, close, messy

THREE = [layout for layout in LAYOUTS if len(layout[0]) == 3]


@pytest.mark.parametrize("shape, n_batch, n_dense", THREE)
def test_slice(shape, n_batch, n_dense):
    mat, dense = messy(shape, n_batch, n_dense)
    for starts, limits, strides in [
        ((0, 1, 1), (2, 3, 3), None),
        ((0, 0, 0), (2, 3, 4), None),
        ((1, 0, 2), (2, 3, 2), None),
        ((0, 1, 1), (2, 3, 4), (1, 2, 2)),
        ((1, 2, 3), (2, 3, 4), (2, 1, 3)),
    ]:
        out = sparse.bcoo_slice(mat, start_indices=starts, limit_indices=limits, strides=strides)
        index = tuple(slice(a, b, c) for a, b, c in zip(starts, limits, strides or (1, 1, 1)))
        close(out, dense[index])
        assert (out.n_batch, out.n_dense) == (n_batch, n_dense)


@pytest.mark.parametrize("shape, n_batch, n_dense", THREE)
def test_dynamic_slice(shape, n_batch, n_dense):
    mat, dense = messy(shape, n_batch, n_dense)
    function = jax.jit(lambda m, i: sparse.bcoo_dynamic_slice(m, i, (1, 2, 3)))
    for start in [(0, 0, 0), (1, 1, 1), (5, 2, -2), (-1, -3, 0)]:
        wanted = lax.dynamic_slice(jnp.asarray(dense), start, (1, 2, 3))
        close(sparse.bcoo_dynamic_slice(mat, start, (1, 2, 3)), wanted)
        close(function(mat, start), wanted)


def test_number_of_elements_of_slices():
    """As JAX has them: no more than the sparse axes have positions."""
    mat = sparse.BCOO.fromdense(jnp.array([[0.0, 1, 0, 2], [3, 0, 0, 0], [0, 0, 4, 0]]))
    assert sparse.bcoo_slice(mat, start_indices=(1, 0), limit_indices=(3, 2)).indices.tolist() == [
        [2, 2],
        [2, 2],
        [0, 0],
        [2, 2],
    ]
    assert sparse.bcoo_slice(mat, start_indices=(1, 0), limit_indices=(2, 2)).nse == 2
    assert mat[0].indices.tolist() == [[1], [3], [4], [4]] and mat[:, 1].nse == 3 and mat[1, 0].nse == 1


INDICES = {
    "int": 1,
    "slice": slice(0, 1),
    "negative": (slice(None), -1),
    "steps": (slice(None), slice(None, None, 2)),
    "reversed": (slice(None, None, -1), slice(2, 0, -1)),
    "ellipsis": (..., 1),
    "new": (None, slice(1, 2), None),
    "all": (0, 1, 2),
    "array": np.array([1, 0, 1]),
    "mask": np.array([True, False]),
    "two": (np.array([0, 1]), np.array([2, 0])),
    "matrix": np.array([[0, 1], [1, 1]]),
    "traced": (0, np.int32(2)),
}


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("n_batch, n_dense", [(0, 0), (1, 0), (0, 1), (2, 0)])
def test_getitem(name, n_batch, n_dense):
    mat, dense = messy((2, 3, 4), n_batch, n_dense)
    index = INDICES[name]
    if name == "new" and n_batch == 0:
        index = (None, slice(1, 2))
    close(mat[index], dense[index])


@pytest.mark.parametrize(
    "n_batch, n_dense, new",
    [
        (0, 0, (24,)),
        (0, 0, (3, 2, 4)),
        (0, 0, (2, 1, 12)),
        (0, 0, (6, 4)),
        (1, 0, (2, 12)),
        (1, 0, (2, 2, 6)),
        (2, 0, (6, 4)),
        (2, 0, (3, 2, 2, 2)),
        (0, 1, (6, 4)),
        (0, 1, (6, 2, 2)),
        (0, 2, (2, 12)),
        (1, 1, (2, 3, 1, 4)),
        (0, 3, (24,)),
        (3, 0, (24,)),
    ],
)
def test_reshape(n_batch, n_dense, new):
    mat, dense = messy((2, 3, 4), n_batch, n_dense)
    close(sparse.bcoo_reshape(mat, new_sizes=new), dense.reshape(new))
    close(mat.reshape(*new), dense.reshape(new))
    close(jax.jit(lambda m: m.reshape(new))(mat), dense.reshape(new))


def test_reshape_of_all_kinds():
    mat, dense = messy((4, 3))
    close(mat.reshape(-1), dense.ravel())
    close(mat.reshape(2, -1, order="F"), dense.reshape(2, -1, order="F"))
    close(sparse.bcoo_reshape(mat, new_sizes=(2, 6), dimensions=(1, 0)), dense.T.reshape(2, 6))
    with pytest.raises(ValueError, match="cannot mix batch and sparse dimensions"):
        messy((2, 3, 4), 1)[0].reshape(6, 4)
    with pytest.raises(ValueError, match="cannot mix sparse and dense dimensions"):
        messy((2, 3, 4), 0, 1)[0].reshape(2, 12)
    with pytest.raises(TypeError):
        mat.reshape(5)
    large = sparse.BCOO((jnp.ones(1), jnp.array([[70000, 3, 1]])), shape=(100000, 4, 100000))
    assert large.reshape(100000, 2, 200000).indices.tolist() == [[70000, 1, 100001]]
    with pytest.raises(OverflowError, match="enable x64"):
        large.reshape(4 * 10**10)


@pytest.mark.parametrize("shape, n_batch, n_dense", THREE)
def test_sums(shape, n_batch, n_dense):
    mat, dense = messy(shape, n_batch, n_dense)
    for axes in [(), (0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)]:
        out = sparse.bcoo_reduce_sum(mat, axes=axes)
        assert isinstance(out, sparse.BCOO)
        close(out, dense.sum(axes))
        close(mat.sum(axes), dense.sum(axes))
    close(mat.sum(-1, keepdims=True), dense.sum(-1, keepdims=True))
    assert isinstance(mat.sum(), jax.Array) and mat.sum(1, dtype="int32").dtype == np.int32
    with pytest.raises(ValueError, match="out of bounds"):
        mat.sum(3)


@pytest.mark.parametrize("shape, n_batch, n_dense", THREE)
def test_joined_and_reversed(shape, n_batch, n_dense):
    mat, dense = messy(shape, n_batch, n_dense)
    for axis in range(3):
        other_shape = tuple(n + (i == axis) for i, n in enumerate(shape))
        other, other_dense = messy(other_shape, n_batch, n_dense, seed=1)
        close(sparse.bcoo_rev(mat, (axis,)), np.flip(dense, axis))
        if axis >= 3 - n_dense:
            with pytest.raises(NotImplementedError, match="along dense dimensions"):
                sparse.bcoo_concatenate([mat, other], dimension=axis)
            continue
        out = sparse.bcoo_concatenate([mat, other, mat], dimension=axis)
        close(out, np.concatenate([dense, other_dense, dense], axis))
        assert out.nse == (max(mat.nse, other.nse) if axis < n_batch else 2 * mat.nse + other.nse)
    close(sparse.bcoo_rev(mat, (0, 1, 2)), np.flip(dense))


def test_joined_of_other_layouts():
    with pytest.raises(ValueError, match="matching batch dimensions"):
        sparse.bcoo_concatenate([messy((2, 3), 1)[0], messy((2, 3), 0)[0]], dimension=0)
    with pytest.raises(ValueError, match="sequence of BCOO arrays"):
        sparse.bcoo_concatenate([messy((2, 3))[0], jnp.ones((2, 3))], dimension=0)
    with pytest.raises(TypeError, match="concatenat"):
        sparse.bcoo_concatenate([messy((2, 3))[0], messy((2, 2))[0]], dimension=0)


@pytest.mark.parametrize(
    "n_batch, n_dense, shape, dims",
    [
        (0, 0, (5, 2, 3), (1, 2)),
        (0, 0, (2, 1, 3), (0, 2)),
        (0, 0, (2, 3, 1), (0, 1)),
        (0, 0, (2, 3, 4), (0, 1)),
        (1, 0, (2, 5, 3), (0, 2)),
        (1, 0, (4, 2, 3), (1, 2)),
        (0, 1, (2, 5, 3), (0, 2)),
        (0, 1, (2, 3, 5), (0, 1)),
        (0, 1, (4, 2, 3), (1, 2)),
        (2, 0, (2, 3, 4), (0, 1)),
        (0, 2, (4, 2, 3), (1, 2)),
        (1, 1, (2, 5, 3), (0, 2)),
    ],
)
def test_broadcast(n_batch, n_dense, shape, dims):
    mat, dense = messy((2, 3), n_batch, n_dense)
    wanted = np.asarray(lax.broadcast_in_dim(jnp.asarray(dense), shape, dims))
    close(sparse.bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=dims), wanted)


def test_broadcasts_that_are_not_there():
    with pytest.raises(NotImplementedError, match="Adding sparse dimensions"):
        sparse.bcoo_broadcast_in_dim(messy((2, 3))[0], shape=(2, 4, 3), broadcast_dimensions=(0, 2))
    with pytest.raises(NotImplementedError, match="Adding sparse dimensions"):
        sparse.bcoo_broadcast_in_dim(messy((1, 3))[0], shape=(2, 3), broadcast_dimensions=(0, 1))
    for shape, dims in [((2, 3), (1, 0)), ((2, 3), (0,)), ((2, 4), (0, 1))]:
        with pytest.raises(TypeError, match="broadcast_in_dim"):
            sparse.bcoo_broadcast_in_dim(messy((2, 3))[0], shape=shape, broadcast_dimensions=dims)
    batch, dense = messy((1, 3), 1)
    close(sparse.bcoo_broadcast_in_dim(batch, shape=(4, 3), broadcast_dimensions=(0, 1)), dense.repeat(4, 0))


@pytest.mark.parametrize("n_batch, n_dense", [(0, 0), (1, 0), (2, 0), (0, 1), (0, 2), (1, 1), (1, 2), (3, 0), (0, 3)])
def test_squeeze(n_batch, n_dense):
    mat, dense = messy((1, 3, 1), n_batch, n_dense)
    for dims in [(0,), (2,), (0, 2), (-1,), ()]:
        close(sparse.bcoo_squeeze(mat, dimensions=dims), dense.squeeze(dims))
    with pytest.raises(ValueError, match="not equal to one"):
        sparse.bcoo_squeeze(mat, dimensions=(1,))


def test_squeeze_to_no_axis():
    mat, dense = messy((1, 1))
    close(sparse.bcoo_squeeze(mat, dimensions=(0, 1)), dense[0, 0])


def test_gather():
    mat, dense = messy((4, 3))
    numbers = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    at = jnp.array([[0], [3], [1]])
    out = sparse.bcoo_gather(mat, at, numbers, (1, 3))
    close(out, dense[[0, 3, 1]])
    with pytest.raises(NotImplementedError, match="fill_value"):
        sparse.bcoo_gather(mat, at, numbers, (1, 3), fill_value=1)
    numbers = lax.GatherDimensionNumbers(offset_dims=(0,), collapsed_slice_dims=(1,), start_index_map=(1,))
    with pytest.raises(NotImplementedError, match="cannot permute batch axes with non-batch axes"):
        sparse.bcoo_gather(mat, at[:1], numbers, (4, 1))


@pytest.mark.parametrize(
    "lhs, rhs, options",
    [
        ((1, 1, 8), (1, 1, 3), {"window_strides": (1,), "padding": "SAME"}),
        ((1, 1, 8), (1, 1, 3), {"window_strides": (1,), "padding": [(2, 1)]}),
        ((2, 3, 8), (4, 3, 3), {"window_strides": (2,), "padding": "VALID"}),
        (
            (1, 2, 5),
            (2, 2, 2),
            {"window_strides": (3,), "padding": [(1, 2)], "lhs_dilation": (2,), "rhs_dilation": (3,)},
        ),
        ((1, 1, 4, 5), (1, 1, 2, 3), {"window_strides": (1, 2), "padding": "SAME"}),
        ((1, 6, 2), (3, 2, 1), {"window_strides": (1,), "padding": "SAME", "dimension_numbers": ("NHC", "HIO", "NHC")}),
    ],
)
def test_convolution(lhs, rhs, options):
    (x, dense), (y, window) = messy(lhs), messy(rhs, seed=1)
    wanted = np.asarray(
        lax.conv_general_dilated(jnp.asarray(dense, "float32"), jnp.asarray(window, "float32"), **options)
    )
    close(sparse.bcoo_conv_general_dilated(x, y, **options), wanted)
    close(sparse.bcoo_conv_general_dilated(x, jnp.asarray(window, "float32"), **options), wanted)
    close(jax.jit(lambda x, y: sparse.bcoo_conv_general_dilated(x, y, **options))(x, y), wanted)


def test_convolution_of_groups():
    with pytest.raises(NotImplementedError, match="feature_group_count"):
        sparse.bcoo_conv_general_dilated(
            messy((1, 2, 8))[0], messy((2, 1, 3))[0], window_strides=(1,), padding="SAME", feature_group_count=2
        )


def test_one_stored_row_of_a_batch_that_stands_for_all_stays_one():
    """As in JAX: batch axes of what is stored may be 1, and operations do not repeat it."""
    x = sparse.BCOO(([[1.0, 2.0]], [[[0], [2]]]), shape=(2, 3))
    y = sparse.BCOO(([[4.0, 5.0]], [[[0], [1]]]), shape=(2, 3))
    dense = np.array([[1, 0, 2]] * 2, np.float32), np.array([[4, 5, 0]] * 2, np.float32)
    for out, wanted in [
        (sparse.bcoo_sort_indices(x), dense[0]),
        (sparse.bcoo_sum_duplicates(x, nse=3), dense[0]),
        (x + y, dense[0] + dense[1]),
        (x * y, dense[0] * dense[1]),
        (sparse.bcoo_concatenate([x, y], dimension=1), np.concatenate(dense, axis=1)),
    ]:
        assert out.data.shape[0] == out.indices.shape[0] == out.n_batch == 1
        close(out, wanted)
    # what needs each row has it
    close(sparse.bcoo_concatenate([x, y], dimension=0), np.concatenate(dense, axis=0))
    close(sparse.bcoo_reduce_sum(x, axes=(0,)), dense[0].sum(0))
    close(sparse.bcoo_update_layout(x, n_batch=0, on_inefficient=None), dense[0])


@pytest.mark.parametrize("n_dense", [0, 1])
def test_new_axes_of_size_1_behind_sparse_ones_are_sparse(n_dense):
    dense = np.arange(12.0, dtype=np.float32).reshape(3, 4) * (np.arange(12).reshape(3, 4) % 2)
    mat = sparse.BCOO.fromdense(dense, n_dense=n_dense)
    out = sparse.bcoo_broadcast_in_dim(mat, shape=(3, 1, 4), broadcast_dimensions=(0, 2))
    assert (out.n_batch, out.n_sparse, out.n_dense) == (0, 3 - n_dense, n_dense)
    close(out, dense[:, None])
    last = sparse.sparsify(lambda m: jnp.expand_dims(m, -1))(mat)
    assert (last.n_batch, last.n_dense) == (0, 2 * n_dense)
    close(last, dense[..., None])


def test_shapes_that_are_refused():
    mat = sparse.BCOO.fromdense(jnp.ones((2, 2, 3)), n_batch=1)
    shared = sparse.BCOO((mat.data[:1], mat.indices), shape=mat.shape)
    with pytest.raises(NotImplementedError, match=r"reshape of arrays with broadcasted batch dimensions\."):
        shared.reshape(2, 3, 2)
    mat = sparse.eye(3)
    for starts, limits, steps, text in [
        ((0,), (1,), None, "each axis"),
        ((0, 0), (5, 5), None, "invalid indices"),
        ((-1, 0), (2, 2), None, "invalid indices"),
        ((0, 0), (2, 2), (0, 1), "positive integers"),
    ]:
        with pytest.raises(ValueError, match=text):
            sparse.bcoo_slice(mat, start_indices=starts, limit_indices=limits, strides=steps)
