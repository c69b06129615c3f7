"""Primitives bound as JAX's are, and dtypes that the operations beside them take."""

import jax
import numpy as np
import pytest
from jax._src import dispatch as jax_dispatch

import ferrax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax._src import dispatch

RNG = np.random.RandomState(0)
Z = (RNG.randn(3, 4) + 1j * RNG.randn(3, 4)).astype(np.complex64)
X = RNG.randn(3, 8).astype(np.float32)


def same(ours, theirs, rtol=1e-5):
    for a, b in zip(ferrax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=1e-6)


@pytest.mark.parametrize(("kind", "x", "n"), [("FFT", Z, 4), ("IFFT", Z, 4), ("RFFT", X, 8), ("IRFFT", Z, 6)])
@pytest.mark.parametrize("wrap", ["eager", "jit", "jvp", "vmap"])
def test_transforms_by_their_kinds(kind, x, n, wrap):
    def call(lib):
        def f(x):
            return lib.lax.fft_p.bind(x, fft_type=lib.lax.FftType[kind], fft_lengths=(n,))

        run = {"eager": lambda: f(x), "jit": lambda: lib.jit(f)(x), "vmap": lambda: lib.vmap(f)(x)}
        return run.get(wrap, lambda: lib.jvp(f, (x,), (2 * x,)))()

    same(call(ferrax), call(jax))


def test_programs_with_transforms_are_evaluated():
    program = ferrax.make_jaxpr(jnp.fft.fft)(Z)
    (out,) = ferrax.core.eval_jaxpr(program.jaxpr, program.consts, Z)
    same(out, np.fft.fft(Z).astype(np.complex64))


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_approximate_choices(largest, dtype):
    x = jnp.asarray(RNG.permutation(64).reshape(2, 32), dtype)
    params = {"k": 3, "reduction_dimension": -1, "recall_target": 0.95, "is_max_k": largest}
    params |= {"reduction_input_size_override": -1, "aggregate_to_topk": True}
    got = lax.approx_top_k_p.bind(x, **params)
    want = jax.lax.approx_top_k_p.bind(jax.numpy.asarray(np.asarray(x)), **params)
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype and np.array_equal(np.asarray(a, float), np.asarray(b, float))


def test_conjugates_need_no_parameters():
    same(lax.conj_p.bind(Z), np.conj(Z))
    same(lax.conj_p.bind(X, input_dtype=np.dtype("float32")), jax.lax.conj_p.bind(X, input_dtype=np.dtype("float32")))


def test_transfers():
    device = ferrax.devices()[0]
    for how in dispatch.ArrayCopySemantics:
        assert how == jax_dispatch.ArrayCopySemantics[how.name].value
        put = dispatch.device_put_p.bind(X, Z, devices=[device, None], srcs=[None, None], copy_semantics=[how, how])
        same(put, [X, Z])


OUTSIDE = np.array([[0, 0], [2, 3], [-1, 1]], np.int32)


@pytest.mark.parametrize("mode", [None, "clip", "fill", "promise_in_bounds"])
@pytest.mark.parametrize("index", [np.int8, np.int32])
def test_windows_outside_by_mode(mode, index):
    """Without a mode, windows are promised to be inside; those that are not are moved, as XLA moves them."""

    def call(lib):
        numbers = lib.lax.GatherDimensionNumbers(offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(0, 1))
        gather = lib.lax.gather
        x = np.arange(12, dtype=np.float32).reshape(3, 4)
        fun = lambda x, i: gather(x, i, numbers, (2, 2), mode=mode)
        i = OUTSIDE.astype(index)
        return fun(x, i), lib.jit(fun)(x, i), lib.vmap(fun, (0, None))(np.stack([x, -x]), i)

    same(call(ferrax), call(jax))


@pytest.mark.parametrize(("name", "init"), [("max", -np.inf), ("min", np.inf)])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_extremes_of_complex_windows(name, init, dtype):
    def call(lib):
        op = getattr(lib.lax, name)
        return [
            lib.lax.reduce_window(x, np.asarray(init, dtype), op, (2, 3), (1, 2), pads)
            for pads in ("VALID", "SAME", ((1, 0), (0, 2)))
            for x in (Z.astype(dtype),)
        ]

    with jax.enable_x64(True), ferrax.enable_x64(True):
        same(call(ferrax), call(jax))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("lower", [True, False])
def test_narrow_triangular_systems(dtype, left, lower):
    a = np.triu(RNG.rand(2, 3, 3) + 1) + 2 * np.eye(3)
    a, b = (a.swapaxes(1, 2) if lower else a).astype(jnp.dtype(dtype)), RNG.randn(2, 3, 3).astype(jnp.dtype(dtype))

    def solve(a, b):
        return lax.linalg.triangular_solve(a, b, left_side=left, lower=lower)

    wide = np.linalg.solve(np.float64(a), np.float64(b)) if left else np.float64(b) @ np.linalg.inv(np.float64(a))
    for got in (solve(a, b), ferrax.jit(solve)(a, b), ferrax.vmap(solve)(a, b)):
        assert got.dtype == dtype
        near = float(jnp.finfo(dtype).eps)
        np.testing.assert_allclose(np.asarray(got, float), wide, rtol=near, atol=near)
    slope = ferrax.grad(lambda b: solve(a, b).astype(float).sum())(b)
    assert slope.dtype == dtype and np.isfinite(np.asarray(slope, float)).all()
    with pytest.raises(TypeError):
        solve(a, b.astype(np.float32))


@pytest.mark.parametrize("wrap", ["eager", "jit", "jvp", "vmap"])
def test_angles_of_complex_points(wrap):
    def call(lib):
        y = Z[::-1] * 2
        run = {
            "eager": lambda: lib.lax.atan2(Z, y),
            "jit": lambda: lib.jit(lib.lax.atan2)(Z, y),
            "vmap": lambda: lib.vmap(lib.lax.atan2)(Z, y),
            "jvp": lambda: lib.jvp(lib.lax.atan2, (Z, y), (y, Z)),
        }
        return run[wrap]()

    same(call(ferrax), call(jax))
