"""Functions of the parts of sparse arrays, by JAX's private names: each gives what JAX's gives."""

import jax
import jax.experimental.sparse.bcoo
import jax.experimental.sparse.bcsr
import jax.experimental.sparse.coo
import jax.experimental.sparse.csr
import jax.experimental.sparse.util
import numpy as np
import pytest

import ferrax
import ferrax.experimental.sparse.bcoo
import ferrax.experimental.sparse.bcsr
import ferrax.experimental.sparse.coo
import ferrax.experimental.sparse.csr
import ferrax.experimental.sparse.util

M = np.array([[0, 2, 0, 3], [4, 0, 0, 0], [0, 0, 5, 6]], np.float32)
B = np.stack([M, M[::-1] * 2])
V, W = np.arange(4, dtype=np.float32), np.arange(8, dtype=np.float32).reshape(4, 2)
DOT, RDOT = (((1,), (0,)), ((), ())), (((0,), (0,)), ((), ()))


def info(j, shape=M.shape):
    return j.experimental.sparse.util.SparseInfo(shape)


def parts(j, mat=M, n_batch=0):
    return j.experimental.sparse.bcoo._bcoo_fromdense(mat, nse=6, n_batch=n_batch)


def rows(j):
    return j.experimental.sparse.bcsr._bcsr_fromdense(M, nse=5)


def coo(j):
    return j.experimental.sparse.coo._coo_fromdense(M, nse=5)


def csr(j):
    return j.experimental.sparse.csr._csr_fromdense(M, nse=5)


def of_coo(j, name, *args, **kwargs):
    spinfo = j.experimental.sparse.coo.COOInfo(M.shape)
    return getattr(j.experimental.sparse.coo, name)(*coo(j), *args, spinfo=spinfo, **kwargs)


def of_csr(j, name, *args, **kwargs):
    return getattr(j.experimental.sparse.csr, name)(*csr(j), *args, shape=M.shape, **kwargs)


CASES = {
    "fromdense": lambda j: parts(j),
    "fromdense, batches": lambda j: parts(j, B, 1),
    "todense": lambda j: j.experimental.sparse.bcoo._bcoo_todense(*parts(j), spinfo=info(j)),
    "todense, jacobian": lambda j: j.jacfwd(
        lambda d: j.experimental.sparse.bcoo._bcoo_todense(d, parts(j)[1], spinfo=info(j))
    )(parts(j)[0]),
    "todense, vmap": lambda j: j.vmap(lambda d, i: j.experimental.sparse.bcoo._bcoo_todense(d, i, spinfo=info(j)))(
        *parts(j, B, 1)
    ),
    "extract": lambda j: j.experimental.sparse.bcoo._bcoo_extract(parts(j)[1], j.numpy.asarray(M)),
    "extract, jacobian": lambda j: j.jacrev(lambda m: j.experimental.sparse.bcoo._bcoo_extract(parts(j)[1], m))(
        j.numpy.asarray(M)
    ),
    "extract, batches": lambda j: j.experimental.sparse.bcoo._bcoo_extract(parts(j, B, 1)[1], j.numpy.asarray(B)),
    "transpose": lambda j: j.experimental.sparse.bcoo._bcoo_transpose(*parts(j), permutation=(1, 0), spinfo=info(j)),
    "sum duplicates": lambda j: j.experimental.sparse.bcoo._bcoo_sum_duplicates(*parts(j), spinfo=info(j), nse=5),
    "multiply dense": lambda j: j.experimental.sparse.bcoo._bcoo_multiply_dense(
        *parts(j), j.numpy.asarray(V), spinfo=info(j)
    ),
    "reduce sum": lambda j: j.experimental.sparse.bcoo._bcoo_reduce_sum(*parts(j), spinfo=info(j), axes=(0,)),
    "dot": lambda j: j.experimental.sparse.bcoo._bcoo_dot_general(
        *parts(j), j.numpy.asarray(W), dimension_numbers=DOT, preferred_element_type=None, lhs_spinfo=info(j)
    ),
    "rdot": lambda j: j.experimental.sparse.bcoo._bcoo_rdot_general(
        j.numpy.asarray(M), *parts(j), dimension_numbers=RDOT, preferred_element_type=None, rhs_spinfo=info(j)
    ),
    "validate": lambda j: tuple(j.experimental.sparse.bcoo._validate_bcoo(*parts(j, B, 1), B.shape)),
    "validate indices": lambda j: tuple(j.experimental.sparse.bcoo._validate_bcoo_indices(parts(j)[1], M.shape)),
    "bcsr": lambda j: rows(j),
    "bcsr todense": lambda j: j.experimental.sparse.bcsr._bcsr_todense(*rows(j), spinfo=info(j)),
    "bcsr to bcoo": lambda j: j.experimental.sparse.bcsr._bcsr_to_bcoo(*rows(j)[1:], shape=M.shape),
    "bcoo to bcsr": lambda j: j.experimental.sparse.bcsr._bcoo_to_bcsr(
        j.experimental.sparse.bcoo._bcoo_fromdense(M, nse=5)[1], shape=M.shape, index_dtype=np.int32
    ),
    "bcsr dot": lambda j: j.experimental.sparse.bcsr._bcsr_dot_general(
        *rows(j), j.numpy.asarray(W), dimension_numbers=DOT, preferred_element_type=None, lhs_spinfo=info(j)
    ),
    "validate bcsr": lambda j: tuple(j.experimental.sparse.bcsr._validate_bcsr(*rows(j), M.shape)),
    "coo": lambda j: coo(j),
    "coo todense": lambda j: of_coo(j, "_coo_todense"),
    "coo matvec": lambda j: of_coo(j, "_coo_matvec", j.numpy.asarray(V)),
    "coo matmat": lambda j: of_coo(j, "_coo_matmat", j.numpy.asarray(M), transpose=True),
    "csr": lambda j: csr(j),
    "csr todense": lambda j: of_csr(j, "_csr_todense"),
    "csr matvec": lambda j: of_csr(j, "_csr_matvec", j.numpy.asarray(V)),
    "csr matmat": lambda j: of_csr(j, "_csr_matmat", j.numpy.asarray(M), transpose=True),
    "count": lambda j: j.experimental.sparse.util._count_stored_elements(j.numpy.asarray(B), 1, 0),
    "count, dense": lambda j: j.experimental.sparse.util._count_stored_elements(j.numpy.asarray(B), 0, 1),
    "count, batches": lambda j: j.experimental.sparse.util._count_stored_elements_per_batch(j.numpy.asarray(B), 1, 1),
    "coo extract": lambda j: j.experimental.sparse.util._coo_extract(*coo(j)[1:], j.numpy.asarray(M)),
    "csr extract": lambda j: j.experimental.sparse.util._csr_extract(*csr(j)[1:], j.numpy.asarray(M)),
}


@pytest.mark.parametrize("name", CASES)
def test_parts(name):
    ours, theirs = CASES[name](ferrax), CASES[name](jax)
    mine, structure = ferrax.tree_util.tree_flatten(ours)
    wanted, other = jax.tree_util.tree_flatten(theirs)
    assert str(structure) == str(other)
    for a, b in zip(mine, wanted, strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


def test_products_of_two():
    def product(j):
        data, indices, shape = j.experimental.sparse.bcoo._bcoo_multiply_sparse(
            *parts(j), *parts(j), lhs_spinfo=info(j), rhs_spinfo=info(j)
        )
        return j.experimental.sparse.bcoo._bcoo_todense(data, indices, spinfo=info(j, shape))

    np.testing.assert_allclose(product(ferrax), product(jax))
