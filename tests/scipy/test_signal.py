"""`ferrax.scipy.signal` against SciPy: modes, sizes, windows, trends, spectra; dtypes and transforms against JAX."""

import warnings

import jax
import jax.scipy.signal as theirs
import numpy as np
import pytest
import scipy.signal

import ferrax
import ferrax.numpy as jnp
from ferrax.scipy import signal as ours
from ferrax.scipy.signal import _convolve, _windows
from tests.support import dtype_name

MODES = ("full", "same", "valid")


def numbers(*shape, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def close(got, want, tolerance=1e-10):
    got, want = (v if isinstance(v, tuple) else (v,) for v in (got, want))
    for g, w in zip(got, want, strict=True):
        assert np.shape(g) == np.shape(w)
        np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance)


# ---- convolutions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtypes", ["dd", "DD", "dD"])
@pytest.mark.parametrize("n, m", [(5, 3), (3, 5), (6, 6), (1, 4), (10, 4)])
def test_vectors(x64, mode, dtypes, n, m):
    x, y = numbers(n, dtype=dtypes[0]), numbers(m, seed=1, dtype=dtypes[1])
    for name in ("convolve", "correlate", "fftconvolve"):
        close(getattr(ours, name)(x, y, mode), getattr(scipy.signal, name)(x, y, mode))
    for name in ("convolve", "correlate"):
        close(getattr(ours, name)(x, y, mode, "fft"), getattr(scipy.signal, name)(x, y, mode))


@pytest.mark.parametrize("mode", MODES)
def test_arrays(x64, mode):
    x, y = numbers(5, 6, 4), numbers(3, 2, 4, seed=1)
    for name in ("convolve", "correlate", "fftconvolve"):
        close(getattr(ours, name)(x, y, mode), getattr(scipy.signal, name)(x, y, mode))
    for axes in ([0, 2], [1], 1, [-1, -2], None):
        close(ours.fftconvolve(x, x, mode, axes), scipy.signal.fftconvolve(x, x, mode, axes))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("a, b", [((5, 6), (2, 4)), ((2, 4), (5, 6)), ((5, 5), (3, 3)), ((6, 3), (3, 2))])
def test_matrices(x64, mode, a, b):
    x, y = numbers(*a, dtype=complex), numbers(*b, seed=1, dtype=complex)
    for name in ("convolve2d", "correlate2d"):
        close(getattr(ours, name)(x, y, mode), getattr(scipy.signal, name)(x, y, mode))


def test_lengths_of_transforms():
    for n in (*range(1, 400), 1021, 65537):
        m = n
        while _rest(m) > 1:
            m += 1
        assert _convolve._smooth_length(n) == m


def _rest(n):
    for p in (2, 3, 5):
        while n % p == 0:
            n //= p
    return n


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "float16", "bfloat16", "float32", "complex64"])
def test_dtypes_of_convolutions(dtype):
    x, y = jax.numpy.arange(1, 5).astype(dtype), jax.numpy.arange(1, 3).astype(dtype)
    mine = [jnp.asarray(np.asarray(v)) for v in (x, y)]
    for name in ("convolve", "correlate", "fftconvolve"):
        got = getattr(ours, name)(*mine)
        if (name, dtype) not in {("fftconvolve", "float16"), ("fftconvolve", "bfloat16")}:  # JAX has none
            want = getattr(theirs, name)(x, y)
            assert (dtype_name(got), got.weak_type) == (dtype_name(want), want.weak_type)
        assert dtype_name(got) == ("float32" if dtype in ("bool", "int8", "int32") else dtype)
        wide = [np.asarray(v).astype(np.complex64) for v in mine]
        np.testing.assert_allclose(np.asarray(got).astype(np.complex64), getattr(scipy.signal, name)(*wide), atol=1e-5)
    assert ours.convolve(mine[0], jnp.ones(2, "complex64")).dtype == np.complex64


def test_scalars():
    for f in (ours.convolve, ours.correlate, ours.fftconvolve):
        assert f(jnp.float32(2), jnp.float32(3)) == 6


@pytest.mark.parametrize("name", ["convolve", "correlate", "fftconvolve"])
def test_transforms_of_convolutions(name):
    x, y = jnp.asarray(numbers(3, 9), jnp.float32), jnp.asarray(numbers(3, 4, seed=1), jnp.float32)
    f = getattr(ours, name)
    loop = jnp.stack([f(a, b) for a, b in zip(x, y, strict=True)])
    np.testing.assert_allclose(ferrax.vmap(f)(x, y), loop, atol=1e-5)
    np.testing.assert_allclose(ferrax.jit(f)(x[0], y[0]), loop[0], atol=1e-6)
    # convolution is linear: its derivative along an argument is itself, and what pulls back is a correlation
    loss = lambda x, y: (f(x, y, "full") * jnp.arange(12.0)).sum()
    slopes = ferrax.grad(loss, (0, 1))(x[0], y[0])
    for i, e in enumerate((x[0], y[0])):
        np.testing.assert_allclose((slopes[i] * e).sum(), loss(x[0], y[0]), rtol=1e-4)


# ---- trends ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("type", ["linear", "constant"])
@pytest.mark.parametrize("bp", [0, [5], [5, 5, 20], [29], 30, np.array([3, 4])])
def test_detrend(x64, type, bp):
    x = numbers(4, 30, 3, dtype=complex)
    close(ours.detrend(x, 1, type, bp), scipy.signal.detrend(x, 1, type, bp))


def test_detrend_of_large_numbers():
    """The mean goes first, so that a line's slope is not lost in it."""
    x = np.float32(1e6) + np.arange(1000, dtype=np.float32)
    np.testing.assert_allclose(ours.detrend(x), 0, atol=0.2)


def test_dtypes_of_detrend():
    for dtype in ("int32", "bool", "float16", "bfloat16", "float32", "complex64"):
        for type in ("linear", "constant"):
            got = ours.detrend(jnp.arange(4).astype(dtype), type=type)
            assert dtype_name(got) == ("float32" if dtype in ("int32", "bool") else dtype)
    assert ours.detrend([1.0, 2.0]).shape == (2,) and ours.detrend(jnp.ones((0, 3)), axis=0).shape == (0, 3)
    slope = ferrax.grad(lambda x: (ours.detrend(x) * jnp.arange(5.0)).sum())(jnp.ones(5))
    np.testing.assert_allclose(slope, scipy.signal.detrend(np.arange(5.0)), atol=1e-6)


# ---- spectra ---------------------------------------------------------------------------------------------------------

OPTIONS = {
    "default": {},
    "even": {"nperseg": 16},
    "odd": {"nperseg": 17},
    "overlaps": {"nperseg": 16, "noverlap": 3, "nfft": 20},
    "odd transforms": {"nperseg": 15, "nfft": 21},
    "boxcar": {"window": "boxcar", "nperseg": 8},
    "kaiser": {"window": ("kaiser", 4.0), "nperseg": 20},
    "vector": {"window": np.arange(1.0, 13), "nperseg": None},
    "linear": {"fs": 4.0, "nperseg": 10, "detrend": "linear"},
    "no trend": {"nperseg": 10, "detrend": False},
    "own trend": {"nperseg": 10, "detrend": lambda v: v - v.max(-1, keepdims=True)},
    "two-sided": {"nperseg": 10, "return_onesided": False},
    "axis": {"nperseg": 12, "axis": 0},
}
DENSITIES = {
    "spectrum": {"nperseg": 10, "scaling": "spectrum"},
    "median": {"nperseg": 10, "average": "median"},
    "two-sided median": {"nperseg": 10, "average": "median", "return_onesided": False},
}


def both(function, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(ours, function)(*args, **options), getattr(scipy.signal, function)(*args, **options)


def oriented(options, *signals):
    return [x.T if options.get("axis") == 0 else x for x in signals]


@pytest.mark.parametrize("name", OPTIONS | DENSITIES)
def test_densities(x64, name):
    options = (OPTIONS | DENSITIES)[name]
    for dtype in (float, complex):
        x, y = oriented(options, numbers(3, 101, dtype=dtype), numbers(3, 101, seed=1))
        close(*both("welch", x, **options))
        close(*both("csd", x, y, **options))


def test_densities_of_signals_of_two_lengths(x64):
    close(*both("csd", numbers(3, 101), numbers(3, 60, seed=1), nperseg=16))
    close(*both("csd", numbers(3, 60), numbers(3, 101, seed=1), nperseg=16))
    close(*both("csd", numbers(3, 60), numbers(1, 60, seed=1), nperseg=16))
    f, p = ours.csd(numbers(50), None, nperseg=8)
    assert p.dtype == np.float64 and f.shape == p.shape
    close(ours.csd(numbers(50), None, nperseg=8), ours.welch(numbers(50), nperseg=8))


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("boundary", ["zeros", "even", "odd", "constant", None])
def test_stft(x64, name, boundary):
    options = {"nperseg": 64} | OPTIONS[name]
    x = oriented(options, numbers(3, 101))[0]
    for padded in (True, False):
        got, want = both("stft", x, boundary=boundary, padded=padded, **options)
        if options["nperseg"] and options["nperseg"] % 2 and boundary:  # SciPy's times begin half a step late
            want = (want[0], np.arange(want[1].size) * (want[1][1] - want[1][0]), want[2])
        close(got, want)


@pytest.mark.parametrize(
    "options",
    [
        {"nperseg": 16},
        {"nperseg": 17},
        {"nperseg": 16, "noverlap": 13},
        {"nperseg": 32, "noverlap": 31},
        {"nperseg": 16, "noverlap": 12, "nfft": 20},
        {"nperseg": 16, "window": "hamming", "noverlap": 4},
        {"nperseg": 10, "fs": 3.0},
    ],
)
@pytest.mark.parametrize("onesided", [True, False])
def test_istft(x64, options, onesided):
    x = numbers(101)
    z = both("stft", x, return_onesided=onesided, **options)[1][2]
    for boundary in (True, False):
        if boundary or options["nperseg"] % 2 == 0:
            got, want = both("istft", z, input_onesided=onesided, boundary=boundary, **options)
            close(got, want)
    back = ours.istft(z, input_onesided=onesided, **options)[1]
    np.testing.assert_allclose(back[:101], x, atol=1e-10)


def test_axes_of_istft(x64):
    z = both("stft", numbers(101, 3), axis=0, nperseg=16)[1][2]
    close(*both("istft", z, freq_axis=0, time_axis=-1))
    turned = np.moveaxis(z, (0, 1, 2), (2, 1, 0))
    close(*both("istft", turned, freq_axis=2, time_axis=0))
    turned = np.moveaxis(z, (0, 1, 2), (1, 0, 2))
    close(*both("istft", turned, freq_axis=1, time_axis=2))


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32", "complex64"])
def test_dtypes_of_spectra(dtype):
    x = np.arange(16).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for f in (
            lambda lib: lib.stft(x, nperseg=4),
            lambda lib: lib.welch(x, nperseg=4),
            lambda lib: lib.csd(x, x, nperseg=4),
            lambda lib: lib.istft(np.ones((3, 4), "complex64")),
        ):
            for got, want in zip(f(ours), f(theirs), strict=True):
                assert (dtype_name(got), got.weak_type, got.shape) == (dtype_name(want), want.weak_type, want.shape)
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    for got in ours.stft(jnp.arange(16).astype("bfloat16"), nperseg=4):
        assert got.dtype in (np.float32, np.complex64)


def test_empty_signals():
    x = jnp.ones((3, 0))
    assert [v.shape for v in ours.stft(x)] == [(3, 0)] * 3 and ours.stft(x)[2].dtype == np.complex64
    assert [v.shape for v in ours.welch(x)] == [(3, 0)] * 2 and ours.csd(x, x)[1].dtype == np.complex64


def test_transforms_of_spectra():
    x = jnp.asarray(numbers(3, 50), jnp.float32)
    f = lambda x: ours.welch(x, 2.0, nperseg=8)[1]
    np.testing.assert_allclose(ferrax.vmap(f)(x), f(x), rtol=1e-5)
    np.testing.assert_allclose(ferrax.jit(lambda x, fs: ours.welch(x, fs, nperseg=8)[1])(x, 2.0), f(x), rtol=1e-5)
    for function in (
        lambda x, w: ours.welch(x, window=w)[1].sum(),
        lambda x, w: (abs(ours.stft(x, window=w, nperseg=None)[2]) ** 2).sum(),
        lambda x, w: (ours.istft(ours.stft(x, nperseg=8)[2], window=w)[1] ** 2).sum(),
    ):
        w = jnp.asarray(_windows.periodic("hamming", 8), jnp.float32)
        slopes = ferrax.grad(function, (0, 1))(x[0], w)
        _, along = ferrax.jvp(function, (x[0], w), (x[1], w))
        np.testing.assert_allclose((slopes[0] * x[1]).sum() + (slopes[1] * w).sum(), along, rtol=1e-3, atol=1e-4)


def test_windows_of_small_integers():
    """Their squares are taken as floats."""
    x, w = numbers(64, dtype=np.float32), np.full(8, 200, np.uint8)
    for window in (w, jnp.asarray(w), w.tolist()):
        close(ours.welch(x, window=window), ours.welch(x, window=w.astype(np.float32)), 1e-6)


def test_under_strict_settings():
    with ferrax.numpy_rank_promotion("raise"), ferrax.numpy_dtype_promotion("strict"):
        x = jnp.ones((2, 32), "bfloat16")
        ours.welch(x, nperseg=8, average="median"), ours.csd(x, x, 2, nperseg=8, detrend="linear")
        for boundary in ("zeros", "odd", "even", "constant"):
            z = ours.stft(x, 3, nperseg=8, boundary=boundary)[2]
        ours.istft(z, 3), ours.detrend(x, bp=3), ours.detrend(x.astype("complex64"), type="constant")
        ours.convolve(x, x), ours.fftconvolve(x, x), ours.correlate(x, x, "same")


# ---- windows ---------------------------------------------------------------------------------------------------------

PARAMETERS = {
    "chebwin": [(60.0,)],
    "dpss": [(2.5,), (1.0,)],
    "exponential": [(), (None, 3.0), (2, 1.5)],
    "gaussian": [(3.0,)],
    "general_cosine": [([0.5, 0.3, 0.2],)],
    "general_gaussian": [(1.5, 4.0)],
    "general_hamming": [(0.6,)],
    "kaiser": [(5.0,)],
    "taylor": [(), (5, 40), (4, 30, False)],
    "tukey": [(), (0.3,), (0,), (2.0,)],
}


@pytest.mark.parametrize("names", _windows._WINDOWS)
def test_windows(names):
    first, *others = names.split()
    for parameters in PARAMETERS.get(first, [()]):
        for n in (1, 2, 3, 5, 8, 17, 64) if first != "dpss" else (8, 17, 64):
            want = scipy.signal.get_window((first, *parameters), n)
            for name in (first, *others):
                np.testing.assert_allclose(_windows.periodic((name, *parameters), n), want, atol=1e-12)


# ---- errors and warnings ---------------------------------------------------------------------------------------------

X, Y, M = jnp.arange(1.0, 17), jnp.arange(1.0, 3), jnp.ones((2, 2))
Z = jnp.ones((3, 9), "complex64")


@pytest.mark.parametrize(
    "error, match, call",
    [
        (ValueError, "mode must be one of", lambda: ours.convolve(X, Y, "foo")),
        (ValueError, "mode must be one of", lambda: ours.fftconvolve(X, Y, "foo")),
        (ValueError, "expected 'auto', 'fft', or 'direct'", lambda: ours.correlate(X, Y, method="foo")),
        (ValueError, "same number of dimensions", lambda: ours.convolve(X, M)),
        (ValueError, "same dimensionality", lambda: ours.fftconvolve(X, M)),
        (ValueError, "zero-size arrays", lambda: ours.convolve(X, Y[:0])),
        (ValueError, "zero-size arrays", lambda: ours.fftconvolve(X, Y[:0])),
        (TypeError, "requires ndarray or scalar", lambda: ours.convolve([1.0], [2.0])),
        (ValueError, "only supports 2-dimensional", lambda: ours.convolve2d(X, X)),
        (NotImplementedError, "only supports boundary='fill'", lambda: ours.convolve2d(M, M, boundary="wrap")),
        (NotImplementedError, "only supports boundary='fill'", lambda: ours.correlate2d(M, M, fillvalue=1)),
        (ValueError, "smaller than the other", lambda: ours.convolve(jnp.ones((2, 5)), jnp.ones((3, 2)), "valid")),
        (ValueError, "smaller than the other", lambda: ours.fftconvolve(jnp.ones((2, 5)), jnp.ones((3, 2)), "valid")),
        (ValueError, "mapped axes must have same shape", lambda: ours.fftconvolve(M, M[:1], axes=[1])),
        (ValueError, "out of bounds", lambda: ours.fftconvolve(M, M, axes=[2])),
        (ValueError, "Trend type", lambda: ours.detrend(X, type="foo")),
        (ValueError, "Breakpoints", lambda: ours.detrend(X, bp=[17])),
        (ValueError, "Breakpoints", lambda: ours.detrend(X, bp=[-1])),
        (NotImplementedError, "overwrite_data", lambda: ours.detrend(X, overwrite_data=True)),
        (ferrax.errors.ConcretizationTypeError, "bp", lambda: ferrax.jit(lambda b: ours.detrend(X, bp=b))(3)),
        (ValueError, "different from length of window", lambda: ours.stft(X, nperseg=5, window=jnp.ones(4))),
        (ValueError, "window must be 1-D", lambda: ours.stft(X, nperseg=4, window=jnp.ones((4, 1)))),
        (ValueError, "longer than input signal", lambda: ours.welch(X, window=jnp.ones(17))),
        (ValueError, "Invalid window name 'foo'", lambda: ours.stft(X, nperseg=4, window="foo")),
        (ValueError, "parameters", lambda: ours.stft(X, nperseg=4, window=("hann", 3))),
        (ValueError, "noverlap must be less", lambda: ours.stft(X, nperseg=4, noverlap=4)),
        (ValueError, "nfft must be greater", lambda: ours.stft(X, nperseg=4, nfft=3)),
        (ValueError, "positive integer", lambda: ours.stft(X, nperseg=0)),
        (ValueError, "Trend type", lambda: ours.welch(X, nperseg=4, detrend="foo")),
        (ValueError, "Unsupported detrend", lambda: ours.welch(X, nperseg=4, detrend=True)),
        (ValueError, "Unknown boundary option 'foo'", lambda: ours.stft(X, nperseg=4, boundary="foo")),
        (ValueError, "Unknown scaling: foo", lambda: ours.welch(X, nperseg=4, scaling="foo")),
        (ValueError, 'average must be "median" or "mean"', lambda: ours.welch(X, nperseg=4, average="foo")),
        (ValueError, "same rank", lambda: ours.csd(M, Y, nperseg=2)),
        (ValueError, "roadcast", lambda: ours.csd(jnp.ones((2, 8)), jnp.ones((3, 8)), nperseg=4)),
        (ValueError, "out of bounds", lambda: ours.welch(X, nperseg=4, axis=1)),
        (ferrax.errors.ConcretizationTypeError, "nperseg", lambda: ferrax.jit(lambda n: ours.stft(X, nperseg=n))(3)),
        (ValueError, "at least 2d", lambda: ours.istft(Z[0])),
        (ValueError, "differing time and frequency", lambda: ours.istft(Z, time_axis=1, freq_axis=1)),
        (ValueError, "must be longer than nperseg", lambda: ours.istft(Z, nperseg=7)),
        (ValueError, "must be longer than nperseg", lambda: ours.istft(Z, nfft=3)),
        (ValueError, "noverlap must be less", lambda: ours.istft(Z, noverlap=4)),
        (ValueError, "length of 4", lambda: ours.istft(Z, window=jnp.ones(5))),
    ],
)
def test_errors(error, match, call):
    with pytest.raises(error, match=match):
        call()


def test_warnings():
    for f in (lambda: ours.stft(X), lambda: ours.welch(X, nperseg=17), lambda: ours.csd(X, X, nperseg=17)):
        with pytest.warns(UserWarning, match="greater than input_length") as record:
            f()
        assert record[0].filename == __file__
    with pytest.warns(UserWarning, match="switching to return_onesided=False"):
        ours.stft(X * 1j, nperseg=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours.welch(X)
