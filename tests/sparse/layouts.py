"""Random sparse arrays of all layouts, for the tests of this folder."""

import itertools
import math

import numpy as np

import ferrax.numpy as jnp
from ferrax.experimental import sparse

SHAPES = [(5,), (4, 3), (2, 3, 4)]
LAYOUTS = [
    (shape, n_batch, n_dense)
    for shape in SHAPES
    for n_batch in range(len(shape) + 1)
    for n_dense in range(len(shape) + 1 - n_batch)
]


def dense_array(shape, dtype="float32", seed=0, filled=0.5):
    """A NumPy array, about half of whose elements are zero."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape) + 2
    if np.issubdtype(np.dtype(dtype), np.complexfloating):
        values = values + 1j * rng.standard_normal(shape)
    if np.issubdtype(np.dtype(dtype), np.integer):
        values = rng.integers(1, 7, shape)
    return np.asarray(np.where(rng.random(shape) < filled, values, 0)).astype(dtype)


def messy(shape, n_batch=0, n_dense=0, dtype="float32", seed=0, nse=None):
    """A BCOO array with duplicates and padding in no order, and the dense array that it stands for (float64)."""
    rng = np.random.default_rng(seed)
    batch, inner = shape[:n_batch], shape[n_batch : len(shape) - n_dense]
    dense = shape[len(shape) - n_dense :] if n_dense else ()
    nse = nse if nse is not None else max(2, math.prod(inner) // 2 + 2)
    data = dense_array((*batch, nse, *dense), dtype, seed, filled=0.9)
    indices = np.stack([rng.integers(0, n + 1, (*batch, nse)) for n in inner], axis=-1) if inner else None
    if indices is None:
        indices = np.zeros((*batch, nse, 0), int)
    out = np.zeros(shape, np.result_type(dtype, np.int64 if np.issubdtype(np.dtype(dtype), np.integer) else np.float64))
    for place in itertools.product(*(range(n) for n in (*batch, nse))):
        index = tuple(indices[place])
        if all(i < n for i, n in zip(index, inner)):
            out[(*place[:-1], *index)] += data[place]
    mat = sparse.BCOO((jnp.asarray(data), jnp.asarray(indices.astype(np.int32))), shape=shape)
    return mat, out


def close(got, wanted, tol=1e-5):
    """Whether a dense or sparse array has the values and the shape of another."""
    got = got.todense() if sparse.test_util.is_sparse(got) else got
    assert got.shape == np.shape(wanted)
    np.testing.assert_allclose(np.asarray(got).astype(np.asarray(wanted).dtype), wanted, rtol=tol, atol=tol)
