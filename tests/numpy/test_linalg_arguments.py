"""What functions of linear algebra, promotion and samplers say of arguments that they cannot take."""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
import ferrax.scipy.linalg
import ferrax.scipy.sparse.linalg
from ferrax import lax
from tests.recorded import expected

tall = np.arange(15, dtype="float32").reshape(5, 3)
square = np.eye(3, dtype="float32")
SVD, EIG = lax.linalg.SvdAlgorithm, lax.linalg.EigImplementation

REFUSED = [
    (lambda: jnp.linalg.matrix_power(square, 2.5), TypeError, r"exponent must be an integer, got 2\.5"),
    (lambda: jax.jit(jnp.linalg.matrix_power)(square, 2), jax.errors.TracerIntegerConversionError, "argument n"),
    (lambda: jnp.linalg.matrix_rank(square, rtol=0.1, tol=0.1), ValueError, "only one of tol or rtol"),
    (lambda: jnp.linalg.multi_dot([tall]), ValueError, r"requires at least two arrays; got len\(arrays\)=1"),
    (lambda: jnp.linalg.multi_dot([tall, tall]), ValueError, r"last dimension of each array .*\[\(5, 3\), \(5, 3\)\]"),
    (lambda: jnp.linalg.multi_dot([square[None], square]), ValueError, "which may be 1 or 2 dimensional"),
    (lambda: jnp.linalg.tensorsolve(np.ones((2, 3, 4)), np.ones((2, 3))), ValueError, r"must have prod\(a\.shape"),
    (lambda: jnp.linalg.tensorsolve(np.ones((2, 3, 6)), np.ones((3, 2))), ValueError, "leading shape of a must match"),
    (lambda: lax.linalg.eig(square, implementation=EIG.CUSOLVER), ValueError, "Only the lapack implementation"),
    (lambda: lax.linalg.svd(tall, algorithm=SVD.JACOBI), NotImplementedError, "SVD Jacobi and Polar"),
    (lambda: lax.linalg.svd(tall, algorithm=SVD.POLAR), NotImplementedError, "SVD Jacobi and Polar"),
    (lambda: lax.linalg.symmetric_product(tall, np.ones((4, 5))), ValueError, r"symmetric_update .*\(5, 3\) and \(4"),
    (lambda: jnp.promote_types("int32", "datetime64[s]"), ValueError, r"dtype=dtype\('<M8\[s\]'\) is not a valid"),
    (lambda: jnp.promote_types("U1", "float32"), ValueError, r"dtype=dtype\('<U1'\) is not a valid dtype for JAX"),
    (lambda: jax.random.ball(jax.random.key(0), 2.5), TypeError, "'float' object cannot be interpreted"),
]


@pytest.mark.parametrize(("call", "error", "text"), REFUSED)
def test_refused_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("solver", ["cg", "gmres", "bicgstab"])
def test_complex_operators_of_real_vectors(solver):
    solve = getattr(ferrax.scipy.sparse.linalg, solver)
    with pytest.raises(TypeError, match="the operator gives complex64 for vectors of float32"):
        solve(square * 2j, np.ones(3, "float32"))
    x, _ = solve(square * 2, np.ones(3, "complex64"))
    np.testing.assert_allclose(x, np.full(3, 0.5), rtol=1e-6)


@pytest.mark.parametrize("mode", ["reduced", "full"])
def test_full_is_the_old_name_of_reduced(mode):
    q, r = jnp.linalg.qr(tall, mode=mode)
    assert (q.shape, r.shape) == ((5, 3), (3, 3))


@pytest.mark.parametrize(("algorithm", "kind"), [(SVD.QR, None), (None, EIG.LAPACK)])
def test_algorithms_that_there_are(algorithm, kind):
    assert lax.linalg.svd(tall, algorithm=algorithm)[1].shape == (3,)
    np.testing.assert_array_equal(lax.linalg.eig(square, implementation=kind)[0], np.ones(3))


def test_matrices_of_numbers_have_strong_types():
    assert not ferrax.scipy.linalg.toeplitz(1).weak_type
    assert not ferrax.scipy.linalg.block_diag().weak_type


def test_counts_are_drawn_before_they_are_cast():
    # float16 has no 4001, so that counts of its own would not add up
    key, p = jax.random.key(3), np.full(3, 1 / 3, "float32")
    counts = jax.random.multinomial(key, 4001, p, dtype="int32")
    assert (counts.dtype, int(counts.sum())) == (np.int32, 4001)
    half = jax.random.multinomial(key, 4001, p, dtype="float16")
    np.testing.assert_array_equal(half, counts.astype("float16"))


@pytest.mark.parametrize("how", ["set", "add", "multiply", "divide", "power", "min", "max"])
@pytest.mark.parametrize(("dtype", "value"), [("float32", np.int32(1)), ("float16", np.float32(1)), ("int32", 1.5)])
def test_strict_promotion_holds_for_updates(how, dtype, value):
    x = jnp.ones(3, dtype)
    with jax.numpy_dtype_promotion("strict"):
        with pytest.raises(jax.dtypes.TypePromotionError, match="when jax_numpy_dtype_promotion=strict"):
            getattr(x.at[0], how)(value)
        assert getattr(x.at[0], how)(1).shape == (3,)


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 2), (3, 0, 2)], ids=str)
def test_norms_of_nothing(shape):
    def told(jax):
        found = []
        for ord in (None, 1, -1, 2, -2, np.inf, -np.inf, "fro", "nuc"):
            for axis in (None, -1, (-2, -1)):
                try:
                    found.append(jax.numpy.linalg.norm(np.zeros(shape, np.float32), ord, axis).tolist())
                except ValueError as error:
                    found.append(str(error).split(",")[0])
        return found

    same = lambda a, b: a == b or (isinstance(a, str) and isinstance(b, str))
    assert all(map(same, told(jax), expected(told)))


def test_singular_values_of_equal_size_share_the_slope_of_the_norm():
    slope = lambda jax: jax.grad(lambda x: jax.numpy.linalg.norm(x, 2))(jax.numpy.eye(2))
    np.testing.assert_allclose(slope(jax), expected(slope), atol=1e-6)


@pytest.mark.parametrize("algorithm", ["QR", lax.linalg.SvdAlgorithm.JACOBI, lax.linalg.SvdAlgorithm.POLAR], ids=str)
def test_algorithms_of_svd_that_are_not_there(algorithm):
    with pytest.raises(NotImplementedError, match="not implemented"):
        lax.linalg.svd(np.eye(2, dtype=np.float32), algorithm=algorithm)
