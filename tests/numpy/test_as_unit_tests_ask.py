"""What JAX's unit tests of NumPy's functions ask for: members that stay, copies, committed arrays, programs kept."""

import enum
import warnings

import jax
import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax

UFUNCS = sorted(name for name in dir(jnp) if isinstance(getattr(jnp, name), jnp.ufunc))


@pytest.mark.parametrize("name", UFUNCS)
def test_members_of_ufuncs_cannot_be_changed(name):
    f, theirs = getattr(jnp, name), getattr(jax.numpy, name)
    for member in ("nargs", "nin", "nout", "identity", "_func"):
        before = getattr(f, member)
        with pytest.raises(AttributeError):
            setattr(f, member, None)
        assert getattr(f, member) is before
    assert (f.nargs, f.nin, f.nout, f.identity) == (theirs.nargs, theirs.nin, theirs.nout, theirs.identity)


@pytest.mark.parametrize("name", ["logical_and", "logical_or"])
@pytest.mark.parametrize("initial", [False, True])
def test_logical_reductions_begin_with_a_value(name, initial):
    x = np.array([[True, False, True], [True, True, True]])
    expected = getattr(np, name).reduce(x, axis=1, initial=initial)
    np.testing.assert_array_equal(getattr(jnp, name).reduce(x, axis=1, initial=initial), expected)


@pytest.mark.parametrize("convert", [lambda x, *a, **k: x.astype(*a, **k), jnp.astype])
@pytest.mark.parametrize("copy", [False, True])
def test_conversion_to_the_same_dtype_copies_when_told(convert, copy):
    x = jnp.arange(5)
    convert(x, "int32", copy=copy).delete()
    assert x.is_deleted() is not copy


class _Own:
    """An array by `__jax_array__` alone."""

    def __init__(self, x):
        self.x = x

    def __jax_array__(self):
        return jnp.asarray(self.x)

    def __array__(self, *_, **__):
        raise AssertionError


def test_arrays_of_ones_own_reach_every_argument():
    np.testing.assert_array_equal(jnp.roll(_Own(np.arange(4)), _Own(np.array([1]))), [3, 0, 1, 2])
    np.testing.assert_array_equal(jnp.roll(np.eye(2), _Own(1), axis=0), np.eye(2)[::-1])
    assert jnp.iscomplexobj(_Own(1j)) and jnp.isrealobj(_Own(np.ones(2)))


def test_masked_arrays_lose_their_mask():
    masked = np.ma.array([1, 2], mask=[True, False])
    np.testing.assert_array_equal(jnp.array(masked), [1, 2])
    with pytest.raises(ValueError, match="numpy masked arrays are not supported"):
        ferrax.jit(jnp.asarray)(masked)


def test_pieces_keep_their_program():
    traced = []

    def function(x):
        traced.append(x)
        return x * 2

    x = jnp.arange(4.0)
    for _ in range(3):
        found = jnp.piecewise(x, [x < 2, x > 2], [function, 7.0])
    np.testing.assert_array_equal(found, [0, 2, 0, 7])
    assert len(traced) == 1
    slope = ferrax.grad(lambda x: jnp.piecewise(x, [x < 2], [lambda v, k, by: v * k + by, 1.0], 3.0, by=x).sum())(x)
    np.testing.assert_array_equal(slope, [4, 4, 0, 0])


def test_arrays_like_a_committed_one_are_committed():
    x = jnp.arange(3)
    assert not lax.full_like(x, 1)._committed
    x = ferrax.device_put(x, ferrax.devices()[-1])
    made = lax.full_like(x, 1.5)
    assert made._committed and made.sharding == x.sharding and made.dtype == x.dtype


@pytest.mark.parametrize("grid", ["mgrid", "ogrid"])
def test_grids_of_whole_numbers_and_points(grid):
    with ferrax.numpy_dtype_promotion("strict"), jax.numpy_dtype_promotion("standard"):
        found = getattr(jnp, grid)[1:6:8j, 2:4]
    expected = getattr(jax.numpy, grid)[1:6:8j, 2:4]
    for a, b in zip(found, expected):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("name", ["mgrid", "ogrid", "r_", "c_"])
def test_nothing_between_no_ends(name):
    found, expected = getattr(jnp, name)[:], getattr(jax.numpy, name)[:]
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)


def test_a_grid_of_no_axes_is_of_integers():
    assert jnp.mgrid[()].dtype == jax.numpy.mgrid[()].dtype and jnp.mgrid[()].shape == (0,)


@pytest.mark.parametrize("name", ["mgrid", "ogrid", "r_", "c_"])
def test_traced_ends_name_the_grid(name):
    with pytest.raises(ferrax.errors.ConcretizationTypeError, match=f"slice start of jnp.{name}"):
        ferrax.jit(lambda a, b: getattr(jnp, name)[a:b])(0, 2)


@pytest.mark.parametrize("num", [0, 1])
def test_no_step_between_fewer_than_two_values(num):
    found = jnp.linspace(jnp.zeros(2), jnp.ones((3, 2)), num, retstep=True)
    expected = jax.numpy.linspace(np.zeros(2, "f"), np.ones((3, 2), "f"), num, retstep=True)
    assert [a.shape for a in found] == [a.shape for a in expected] and np.isnan(found[1])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: jnp.expand_dims(jnp.ones((2, 3)), [1, 1]), "repeated axis"),
        (lambda: jnp.size(jnp.ones((2, 3, 4)), (0, -3)), "repeated axis"),
        (lambda: jnp.trace(jnp.ones((2, 3, 2)), axis1=1, axis2=-2), "axis1 and axis2 can not be same"),
        (lambda: jnp.corrcoef(jnp.arange(5), dtype=int), "corrcoef: dtype must be a subclass of float or complex"),
    ],
)
def test_errors(call, text):
    with pytest.raises(ValueError, match=text):
        call()


class Wrapped:
    """Something that makes an array of itself."""

    def __init__(self, x):
        self.x = x

    def __jax_array__(self):
        return jnp.asarray(self.x)


@pytest.mark.parametrize(
    "name", ["shape", "ndim", "size", "diag_indices_from", "tril_indices_from", "triu_indices_from", "interp"]
)
def test_shapes_of_what_makes_an_array_of_itself(name):
    x = np.arange(9, dtype="float32").reshape(3, 3)
    args = [x[0], x[1], x[2]] if name == "interp" else [x]
    found, expected = getattr(jnp, name)(*map(Wrapped, args)), getattr(jnp, name)(*args)
    assert ferrax.tree.all(ferrax.tree.map(np.array_equal, found, expected))


@pytest.mark.parametrize("make", ["ones", "zeros", "empty"])
def test_a_shape_in_pieces_is_explained(make):
    meant = rf"`jax\.numpy\.{make}\(2, 3\)` when you meant `jax\.numpy\.{make}\(\(2, 3\)\)`"
    with pytest.raises(TypeError, match="Did you accidentally write " + meant):
        getattr(jnp, make)(2, 3)


SPECIAL = [complex(a, b) for a in (-np.inf, np.inf, -3e38, 3e38, 0.0, np.nan, 1.0) for b in (-np.inf, np.inf, np.nan)]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["exp", "exp2"])
def test_powers_of_no_angle_are_nothing(name, dtype):
    with ferrax.enable_x64(True):
        found = np.asarray(getattr(jnp, name)(np.array(SPECIAL, dtype)))
    assert np.isnan(found.real).all() and np.isnan(found.imag).all()


@pytest.mark.parametrize("jit", [False, True])
def test_tangents_of_no_angle(jit):
    x = np.array([complex(a, b) for a in (-np.inf, np.inf, np.nan) for b in (-3e38, 3e38, 1e30)], "complex64")
    found = np.asarray((ferrax.jit(jnp.tan) if jit else jnp.tan)(x))
    assert np.isnan(found.real).all() and np.isnan(found.imag).all()
    limits = np.asarray(jnp.tan(np.array([2 - np.inf * 1j, 2 + np.inf * 1j], "complex64")))
    np.testing.assert_array_equal(limits.imag, [-1, 1])


@pytest.mark.parametrize("jit", [False, True])
def test_complex_squares_beyond_all_numbers(jit):
    big = np.float32(3.4e38)
    x = np.array([complex(a, b) for a in (-np.inf, np.inf, -big, big, 2) for b in (-big, big, 3)], "complex64")
    found = np.asarray((ferrax.jit(jnp.square) if jit else jnp.square)(x))
    expected = np.asarray(jax.numpy.square(x))
    np.testing.assert_array_equal(found.real, expected.real)
    np.testing.assert_array_equal(found.imag, expected.imag)


@pytest.mark.parametrize("name", ["fft", "ifft", "irfft", "hfft", "fft2", "ifft2", "irfft2", "fftn", "irfftn"])
def test_transforms_of_nothing(name):
    x = np.zeros((3, 0), "complex64")
    found, expected = getattr(jnp.fft, name)(x), getattr(jax.numpy.fft, name)(x)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    with pytest.raises(ValueError, match="Invalid norm value"):
        getattr(jnp.fft, name)(x, norm="none")


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_transforms_over_no_axis_in_particular(name):
    x = np.arange(12.0, dtype="float32").reshape(3, 4)
    for n in (None, 3):
        expected = getattr(jax.numpy.fft, name)(x, n, axis=None)
        np.testing.assert_allclose(getattr(jnp.fft, name)(x, n, axis=None), expected, rtol=1e-5, atol=1e-5)


def test_transforms_to_nothing_are_refused():
    with pytest.raises(ValueError, match="Shape should be positive"):
        jnp.fft.fft(jnp.ones(3), n=0)
    with pytest.raises(ValueError, match="Shape should be positive"):
        jnp.fft.rfft(jnp.ones((3, 0)))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "float16"])
@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "logaddexp", "logaddexp2", "logical_xor", "bitwise_or"])
def test_methods_of_ufuncs_keep_results_in_the_dtype_of_the_function(name, dtype):
    a = np.array([[100, 2, 3], [100, 1, 2]]).astype(dtype)
    if name == "bitwise_or" and dtype == "float16":
        return
    for axis in (0, 1):
        calls = [
            lambda f: f.reduce(a, axis=axis),
            lambda f: f.accumulate(a[:0], axis=0),
            lambda f: f.accumulate(a, axis=axis),
            lambda f: f.at(a, (0, np.array([0, 0, 2])), a[1], inplace=False),
        ]
        if dtype in ("int8", "uint8") and name in ("maximum", "logaddexp"):
            calls.append(lambda f: f.at(a, 0, 1.5, inplace=False))
        if not name.startswith("logaddexp"):  # there JAX fails
            calls += [lambda f: f.reduceat(a, np.array([0, 1]), axis=axis), lambda f: f.reduce(a, axis=axis, initial=1)]
        if name != "maximum":
            calls.append(lambda f: f.reduce(a[:0], axis=0))
        for call in calls:
            found, expected = call(getattr(jnp, name)), call(getattr(jax.numpy, name))
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(np.asarray(found, float), np.asarray(expected, float), rtol=1e-2)
    halves = jnp.frompyfunc(lambda x, y: x / y, nin=2, nout=1)
    np.testing.assert_array_equal(halves.accumulate(np.array([1, 2, 2])), [1, 0.5, 0.25])


@pytest.mark.parametrize("method", ["accumulate", "reduceat"])
@pytest.mark.parametrize("axis", [None, (0, 1)])
def test_ufuncs_work_along_one_axis(method, axis):
    arguments = (np.array([0]),) if method == "reduceat" else ()
    with pytest.raises(ValueError, match="multiple axes" if method == "accumulate" else "single integer axis"):
        getattr(jnp.logaddexp, method)(np.ones((2, 2)), *arguments, axis=axis)


def test_vectorized_functions_heed_ranks():
    dot = jnp.vectorize(jnp.dot, signature="(n),(n)->()")
    for f in (jnp.vectorize(jnp.add), dot):
        with ferrax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match=r"with shapes.*require rank"):
            f(np.ones((2, 3)), np.ones(3))
        with ferrax.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match=r"with shapes.*require rank"):
            f(np.ones((2, 3)), np.ones(3))
    with ferrax.numpy_rank_promotion("raise"):
        assert jnp.vectorize(jnp.add)(np.ones((2, 3)), 1.0).shape == (2, 3)
    assert jnp.vectorize(jnp.sin)([0.0, 0.0]).tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match=r"Cannot pass None at locations \{1\} with signature='\(n\),\(n\)->\(\)'"):
        dot(np.ones(3), None)
    with pytest.raises(ValueError, match=r"Incompatible shapes for broadcasting: shapes=\[\(2,\), \(3,\)\]"):
        jnp.vectorize(jnp.add)(np.ones(2), np.ones(3))


def test_vectorized_functions_pass_none_on():
    f = jnp.vectorize(lambda x, y: x if y is None else x + y, signature="(n),()->(n)")
    np.testing.assert_array_equal(f(np.ones(3), None), np.ones(3))
    np.testing.assert_array_equal(f(np.ones(3), np.ones(2)), np.full((2, 3), 2.0))


@pytest.mark.parametrize("signature", ["(n?)->()", "(n|1)->()", " (n)->()", "(n,)->()", "n->()"])
def test_signatures_of_other_names_are_refused(signature):
    with pytest.raises(ValueError, match="not a valid gufunc signature"):
        jnp.vectorize(jnp.sum, signature=signature)(np.ones(3))


def test_several_outputs_are_a_tuple():
    with pytest.raises(TypeError, match="output must be a tuple when multiple outputs are expected"):
        jnp.vectorize(lambda x: [x, x], signature="(n)->(n),(n)")(np.ones(3))


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies_name_the_argument(name):
    f = getattr(jnp.fft, name)
    with pytest.raises(
        ValueError, match=rf"The n argument of jax.numpy.fft.{name} only takes an int. Got n = \[0, 1\]"
    ):
        f([0, 1])
    with pytest.raises(ValueError, match=rf"The d argument of jax.numpy.fft.{name} only takes a single value. Got d ="):
        f(10, d=[0, 1])
    with pytest.raises(ValueError, match=r"does not support repeated axes. Got axes \[1, 1\]."):
        jnp.fft.fftn(np.ones(9), axes=[1, 1])


@pytest.mark.parametrize("dtype", ["int2", "int4", "int8", "int16", "bool", "float32"])
def test_views_of_floats_of_four_bits(dtype):
    for names in [("float4_e2m1fn", dtype), (dtype, "float4_e2m1fn")]:
        found, expected = (m.numpy.ones((2, 16), names[0]).view(names[1]) for m in (ferrax, jax))
        assert found.shape == expected.shape and found.dtype == expected.dtype
        assert np.array_equal(found, expected)


class _Half(float):
    pass


class _Pick(enum.IntEnum):
    SOME = 3


def test_subclasses_of_numbers_have_their_types():
    for args in [(_Pick.SOME,), (_Half(0.5),), (np.int8(1), _Pick.SOME), (np.int8(1), _Half(0.5)), (True,)]:
        assert jnp.result_type(*args) == jax.numpy.result_type(*args)


@pytest.mark.parametrize(
    "args", [("int64",), (np.float64, 1), (np.dtype("complex128"), np.float32(1)), (np.int8(1), "i8")]
)
def test_dtypes_to_combine_are_explicit_requests(args):
    with pytest.warns(UserWarning, match="Explicitly requested dtype"):
        narrow = jnp.result_type(*args)
    try:
        ferrax.config.update("jax_explicit_x64_dtypes", "allow")
        with jax.enable_x64(True):
            assert jnp.result_type(*args) == jax.numpy.result_type(*args) != narrow
        ferrax.config.update("jax_explicit_x64_dtypes", "error")
        with pytest.raises(ValueError, match="Explicitly requested dtype"):
            ferrax.dtypes.result_type(*args)
    finally:
        ferrax.config.update("jax_explicit_x64_dtypes", "warn")


@pytest.mark.parametrize(
    "args", [(jnp.float64,), (np.float64(1),), (np.ones(2),), (int,), ("int32",), (jnp.ones(2), 1.0)]
)
def test_other_operands_to_combine_request_nothing(args):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jnp.result_type(*args)


def test_least_squares_of_nothing_but_zeros():
    found, expected = (module.linalg.lstsq(np.zeros((3, 2)), np.ones((3, 2))) for module in (jnp, np))
    for ours, theirs in zip(found, expected):
        np.testing.assert_array_equal(ours, theirs if theirs is not expected[1] else [3.0, 3.0])


def test_dtypes_that_dlpack_hands_over():
    from jax._src import dlpack as theirs

    from ferrax._src import dlpack as ours

    assert ours.SUPPORTED_DTYPES_SET == theirs.SUPPORTED_DTYPES_SET
    assert jnp.float32 in ours.SUPPORTED_DTYPES and jnp.int4 not in ours.SUPPORTED_DTYPES


def test_slices_of_reduceat_that_begin_outside_are_what_take_gives():
    x = np.arange(8)
    for numbers in (x, x.astype("float32")):
        got = jnp.add.reduceat(numbers, np.array([0, 9]))
        expected = jax.numpy.add.reduceat(numbers, np.array([0, 9]))
        np.testing.assert_array_equal(got, expected)
    with pytest.raises(ValueError, match="indices must have an integer type"):
        jnp.add.reduceat(x, np.array([0.0]))


@pytest.mark.parametrize("choices", [[1, 2], [1, 2.0], [True, 2], [np.float32(1), 2], [np.arange(3), 2]])
def test_what_is_chosen_has_no_weak_type(choices):
    index = np.array([0, 1, 1])
    got, expected = jnp.choose(index, choices, mode="clip"), jax.numpy.choose(index, choices, mode="clip")
    np.testing.assert_array_equal(got, expected)
    assert (got.dtype, got.weak_type) == (expected.dtype, expected.weak_type)


def _primitives(f, *args):
    return [e.primitive.name for e in ferrax.make_jaxpr(f)(*args).eqns]


KINDS = ["float32", "float16", "bfloat16", "complex64", "int8", "int32", "uint8"]


@pytest.mark.parametrize("left", KINDS)
@pytest.mark.parametrize("right", KINDS)
def test_products_take_operands_of_several_dtypes_as_they_are(left, right):
    x, y = jnp.array([[1, 2, 3], [4, 5, 6]], left), jnp.array([[1, 0], [2, 1], [0, 3]], right)
    assert _primitives(jnp.dot, x, y) == ["dot_general"] == _primitives(jnp.matmul, x, y)
    for f in (jnp.dot, jnp.matmul, lambda a, b: jnp.tensordot(a, b, 1), lambda a, b: jnp.inner(a, b.T)):
        product = f(x, y)
        assert product.dtype == jnp.promote_types(left, right)
        np.testing.assert_array_equal(jnp.real(product).astype("float32"), [[5, 11], [14, 23]])


def test_products_of_several_dtypes_keep_strict_promotion_and_slopes():
    x, y = jnp.ones((2, 3), "float16"), jnp.ones((3, 2), "float32")
    with ferrax.numpy_dtype_promotion("strict"), pytest.raises(ValueError, match="no available implicit dtype"):
        jnp.dot(x, y)
    slopes = ferrax.grad(lambda a, b: jnp.dot(a, b).sum(), (0, 1))(x, y)
    assert [s.dtype for s in slopes] == ["float16", "float32"]
    np.testing.assert_array_equal(slopes[0], np.full((2, 3), 2))


def test_axes_of_tensordot_that_are_words():
    with pytest.raises(TypeError, match="tensordot requires both axes lists to be either ints, tuples or lists"):
        jnp.tensordot(jnp.ones((3, 2)), jnp.ones(2), axes=("bad", "axes"))


@pytest.mark.parametrize("narrow", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["sum", "prod"])
def test_sums_in_a_dtype_that_is_asked_for_have_no_conversions(name, narrow):
    x, f = jnp.ones(10, narrow), getattr(jnp, name)
    assert _primitives(lambda x: f(x, dtype=narrow), x) == [f"reduce_{name}"]
    assert _primitives(f, x) == ["convert_element_type", f"reduce_{name}", "convert_element_type"]


def test_sums_in_a_narrow_dtype_are_accumulated_wide():
    x = jnp.full(100_000, 1e-3, "float16")
    assert jnp.sum(x, dtype="float16") == jnp.sum(x) == np.float16(np.asarray(x, "float64").sum())


def test_places_of_interpolation_are_real():
    with pytest.raises(ValueError, match=r"jnp.interp: complex x values not supported\."):
        jnp.interp(1j, 1j * np.arange(3.0), np.arange(3.0))


@pytest.mark.parametrize("make", [lambda n: jnp.tri(n, M=n), lambda n: jnp.tri(3, M=n), jnp.eye])
def test_traced_sizes_of_matrices(make):
    with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values of integer type"):
        ferrax.jit(make)(3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("decimals", [10, 38, 40, 100, 1000])
def test_rounding_behind_the_last_digit_leaves_numbers(dtype, decimals):
    x = jnp.array([1.2345, -3.5e4, 0.1, 0.0], dtype)
    np.testing.assert_allclose(
        np.asarray(jnp.round(x, decimals), "complex64"), np.asarray(x, "complex64"), rtol=1e-6, atol=0
    )


def test_rounding_before_the_first_digit_gives_zero():
    x = jnp.array([1.5, -3e38, np.inf])
    np.testing.assert_array_equal(jnp.round(x, -1000), [0, 0, np.nan])


def test_scalars_are_repeated_along_their_only_axis():
    for axis in (None, 0, -1):
        np.testing.assert_array_equal(jnp.repeat(np.int32(3), 2, axis=axis), [3, 3])
    with pytest.raises(ValueError, match="axis 1 is out of bounds"):
        jnp.repeat(3, 2, axis=1)


@pytest.mark.parametrize("dtype", ["int16", "uint8", "int32"])
def test_flat_indices_into_an_array_of_traced_sizes(dtype):
    index = np.array([0, 5, 11, 40] if dtype == "uint8" else [0, 5, 11, 40, -1, -12, -40], dtype)
    expected = jnp.unravel_index(index, (3, 4))
    for got in (
        ferrax.jit(jnp.unravel_index)(index, (3, 4)),
        ferrax.jit(lambda n: jnp.unravel_index(index, (3, n)))(4),
    ):
        for a, b in zip(got, expected, strict=True):
            assert a.dtype == b.dtype == dtype
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["sum", "prod", "nansum", "nanprod", "cumsum", "cumprod"])
def test_sums_and_products_of_truth(name):
    x = np.array([[0.5, 0.0, 2.0], [0.25, 0.0, 0.0]], "float32")
    result = getattr(jnp, name)(x, axis=0, dtype=bool)
    assert result.dtype == bool
    np.testing.assert_array_equal(result, getattr(np, name)(x != 0, axis=0, dtype=bool))


def test_sums_of_truth_begin_with_a_value():
    assert jnp.sum(np.zeros(2), dtype=bool, initial=0.3) == np.True_
    assert jnp.prod(np.ones(2), dtype=bool, initial=0) == np.False_


@pytest.mark.parametrize("initial", [False, True])
@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_running_sums_of_truth(name, initial):
    x = np.array([[0.0], [0.1], [0.0]], "float32")
    result = getattr(jnp, name)(x, axis=0, dtype=bool, include_initial=initial)
    expected = getattr(np, name)(x != 0, axis=0, dtype=bool, include_initial=initial)
    assert result.dtype == bool
    np.testing.assert_array_equal(result, expected)
    assert getattr(jnp, name)(x != 0, axis=0).dtype == jnp.int32


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
def test_variances_have_the_complex_dtype_that_is_asked_for(name):
    x = jnp.array([1.0, 5.0, 5.0, 1.0])
    value = getattr(jnp, name)(x, dtype="complex64")
    assert value.dtype == "complex64" and value == {"v": 4, "s": 2}[name.removeprefix("nan")[0]]
    assert getattr(jnp, name)(x.astype("complex64")).dtype == "float32"


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_means_in_an_integer_dtype_are_means_of_integers(dtype):
    x = np.array([[1.5, 2.5, -3.75], [0.5, 1.5, -0.75]]).astype(dtype)
    whole = x.astype("int32")
    np.testing.assert_array_equal(jnp.mean(x, axis=1, dtype="int32"), np.trunc(whole.sum(1) / 3))
    kept = np.array([[True, True, False]] * 2)
    np.testing.assert_array_equal(
        jnp.mean(x, axis=1, dtype="int32", where=kept), np.trunc(whole.sum(1, where=kept) / 2)
    )


def test_weights_of_covariances_may_be_truth_values():
    kept = np.array([True, True, False])
    np.testing.assert_allclose(jnp.cov(jnp.array([1.0, 2.0, 7.0]), aweights=kept), 0.5)


def test_complex_numbers_with_a_nan_are_one():
    parts = [0.0, 1.0, np.nan]
    x = np.array([complex(a, b) for a in parts for b in parts], "complex64")
    values, counts = jnp.unique(x, return_counts=True)
    np.testing.assert_array_equal(values[:4], [0, 1j, 1, 1 + 1j])
    assert bool(jnp.isnan(values[4])) and counts.tolist() == [1, 1, 1, 1, 5]
    assert jnp.unique(x, equal_nan=False).shape == (9,)


@pytest.mark.parametrize("exponent", [np.int32(2), np.uint8(2), np.array(2), jnp.int32(2)])
def test_integer_exponents_say_nothing_of_the_dtype(exponent):
    for dtype in ("int8", "uint16", "float16", "complex64"):
        x = jnp.array([2, 3], dtype)
        for power in (jnp.power(x, exponent), x**exponent, ferrax.jit(lambda x: x**exponent)(x)):
            assert power.dtype == dtype
            np.testing.assert_array_equal(jnp.real(power).astype("float32"), [4, 9])
    assert _primitives(lambda x: jnp.power(x, exponent), 1) == ["integer_pow"]
    assert jnp.power(jnp.array([True]), exponent).dtype == jnp.int32


def test_what_has_no_dimensions_or_no_output():
    for name in ("ndim", "shape", "size"):
        with pytest.warns(DeprecationWarning, match=f"{name} requires ndarray or scalar arguments, got .*NoneType"):
            getattr(jnp, name)(None)
    for name in ("quantile", "nanquantile", "percentile", "nanpercentile"):
        for refused in ({"out": 1}, {"overwrite_input": True}):
            with pytest.raises(ValueError, match="does not support overwrite_input=True or out != None"):
                getattr(jnp, name)(jnp.arange(3.0), 0.5, **refused)
    with pytest.raises(ValueError, match=r"must be 1D, got shapes \[\(\), \(3,\)\]"):
        jnp.meshgrid(1, jnp.arange(3))


@pytest.mark.parametrize("value", [1, 1.5, 2j])
def test_padded_arrays_stay_weak(value):
    weak = jnp.full(3, value)
    assert jnp.pad(weak, 1).weak_type and ferrax.jit(lambda x: jnp.pad(x, 1))(weak).weak_type
    assert not jnp.pad(weak.astype("complex64"), 1).weak_type


def _said(call):
    """A result, or an error with its text."""
    try:
        return call()
    except (TypeError, ValueError) as error:
        return type(error).__name__, " ".join(str(error).split())


def _helpers_of_vectorize(v):
    """What libraries that vectorize by themselves call, on arguments that fit and on some that do not."""
    pair = np.ones((4, 2, 3)), np.ones(3)
    cores = [("n", "m"), ("m",)]
    yield v._parse_gufunc_signature("(n,m),(m)->(n),()")
    yield _said(lambda: v._parse_gufunc_signature("n->n"))
    yield v._parse_input_dimensions(pair, cores, "here")
    yield _said(lambda: v._parse_input_dimensions(pair, cores[:1], "here"))
    yield _said(lambda: v._parse_input_dimensions((np.ones((2, 3)), np.ones(2)), cores, "here"))
    f, args, kwargs = v._apply_excluded(lambda *a, **k: (a, k), {1, "z"}, (1, 2, 3), {"z": 4, "y": 5})
    yield tuple(args), kwargs, f(*args, **kwargs), f(7, 8)
    for size, outputs, core in ((2, [("n",)], None), (3, [("n",), ("k",)], None), (3, [("n",)], 0), (3, [()], 1)):
        result = (1.5, 2.5, 3.5) if core is None else (np.ones(3), 1.5)[core]
        yield _said(lambda: np.shape(v._check_output_dims(lambda: result, {"n": size}, outputs, "here")()))


def test_helpers_of_vectorize():
    from jax._src.numpy import vectorize as theirs

    from ferrax._src.numpy import vectorize as ours

    assert list(map(str, _helpers_of_vectorize(ours))) == list(map(str, _helpers_of_vectorize(theirs)))


def test_functions_made_alike_of_one_function_are_equal():
    made = [jnp.frompyfunc(abs, 1, 1) for _ in range(2)]
    assert made[0] == made[1] and hash(made[0]) == hash(made[1])
    assert made[0] != jnp.frompyfunc(abs, 1, 1, identity=0) and made[0] != jnp.logaddexp
    assert jnp.logaddexp != jnp.add and jnp.add != jnp.logaddexp
    with pytest.raises(TypeError, match="takes a function, got 1 of type int"):
        jnp.frompyfunc(1, 2, 1)


def test_take_by_booleans_and_by_floats():
    x = jnp.arange(3) + 5
    np.testing.assert_array_equal(jnp.take(x, jnp.array([True, False])), [6, 5])
    with pytest.raises(ValueError, match="indices must have an integer type"):
        jnp.take(x, 1.0)


def test_variance_of_complex_numbers_in_a_real_dtype_is_refused():
    with pytest.raises(ValueError, match="does not yet support real dtype parameters when computing the variance"):
        jnp.var(jnp.array([1j]), dtype=float)


def test_cond_takes_no_other_keywords():
    with pytest.raises(TypeError, match="unexpected keyword argument 'linear'"):
        ferrax.lax.cond(True, lambda x: x, lambda x: x, 1.0, linear=(False,))


_QUERY = jnp.ones((1, 2, 2, 3))
_NARROW = _QUERY.astype(jnp.bfloat16)


@pytest.mark.parametrize(
    ("operands", "options", "words"),
    [
        ((_QUERY, _NARROW, _NARROW), {}, "query dtype should be bfloat16, but got float32"),
        ((_QUERY, _QUERY, _NARROW), {}, "value dtype should be float32, but got bfloat16"),
        ((_QUERY, _QUERY, _QUERY[:, :1]), {}, r"value shape should be \[1, 2, 2, 3\]: but got \(1, 1, 2, 3\)"),
        ((_QUERY,) * 3, {"mask": jnp.ones((1, 1, 2, 2))}, "mask dtype should be bool, but got float32"),
        ((_QUERY,) * 3, {"query_seq_lengths": jnp.array([1, 2])}, r"query_seq_lengths shape should be \[1\]"),
        ((_QUERY,) * 3, {"key_value_seq_lengths": jnp.array([1.0])}, "key_value_seq_lengths dtype should be int32"),
        ((_QUERY,) * 3, {"key_value_seq_lengths": 1}, "key_value_seq_lengths ndim should be 1, but got 0"),
    ],
)
def test_attention_refuses_operands_of_other_types(operands, options, words):
    with pytest.raises(ValueError, match=words):
        ferrax.nn.dot_product_attention(*operands, **options)
