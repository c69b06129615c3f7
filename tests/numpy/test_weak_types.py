"""Dtypes and weak types of elementwise functions and reductions against JAX: every dtype, x64 on and off.

JAX's side is abstract evaluation of all functions of one dtype in one trace.
"""

import warnings

import numpy as np
import pytest

import ferrax
import ferrax.numpy as ours
from tests.recorded import expected

UNARY = """
abs acos acosh angle arccos arcsin arcsinh arctan arctanh bitwise_count bitwise_not cbrt ceil conj cos cosh deg2rad
exp exp2 expm1 fabs floor i0 imag invert iscomplex isfinite isinf isnan isneginf isposinf isreal log log10 log1p log2
logical_not modf frexp nan_to_num negative positive rad2deg real reciprocal rint round sign signbit sin sinc sinh
spacing sqrt square tan tanh trunc cumsum cumprod sum prod max min mean std var argmax median ptp nansum nanmean
nanprod nanmax any all average sort argsort count_nonzero diff cov corrcoef
"""
BINARY = """
add arctan2 bitwise_and bitwise_or bitwise_xor copysign divide divmod equal float_power floor_divide fmax fmin fmod
gcd greater lcm ldexp left_shift less logaddexp logaddexp2 maximum minimum multiply nextafter not_equal power
remainder right_shift subtract true_divide polyval inner outer
"""
DTYPES = """
bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64 complex64 complex128
"""
NUMBERS = {"int": 2, "float": 0.5, "complex": 0.5j}


def operand(lib, dtype):
    return NUMBERS[dtype] if dtype in NUMBERS else lib.ones((3,), dtype)


def types(value):
    if isinstance(value, (tuple, list)):
        return tuple(types(v) for v in value)
    return str(np.dtype(value.dtype)), bool(value.weak_type)


def outcome(f, *args):
    try:
        return types(f(*args))
    except Exception:
        return "error"


def abstract(jax, names, operands):
    """JAX's outcomes of functions of operands of these dtypes, by their names."""
    theirs = jax.numpy
    args = [operand(theirs, d) for d in operands]
    return {name: outcome(lambda f: jax.eval_shape(lambda: f(*args)), getattr(theirs, name)) for name in names.split()}


def compared(names, operands):
    """(function, ours, JAX's) where they differ."""
    out = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        args = [operand(ours, d) for d in operands]
        for name, want in expected(abstract, names, operands).items():
            got = outcome(getattr(ours, name), *args)
            if got != want:
                out.append((name, got, want))
    return out


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("dtype", [*DTYPES.split(), *NUMBERS])
def test_one_operand(dtype, wide):
    with ferrax.enable_x64(wide):
        assert compared(UNARY, [dtype]) == []


# pairs whose common dtype is neither operand's, and numbers beside arrays
PAIRS = [
    ("int8", "uint8"), ("int8", "uint32"), ("int64", "uint64"), ("uint64", "int8"), ("bool", "uint16"),
    ("float16", "bfloat16"), ("int32", "float16"), ("uint64", "bfloat16"), ("float64", "complex64"),
    ("bool", "int"), ("int", "bool"), ("float", "bool"), ("int8", "int"), ("int", "float"), ("int", "int"),
    ("int32", "float"), ("float", "uint8"), ("float16", "float"), ("complex", "float32"), ("float", "complex"),
    ("bfloat16", "complex"), ("int32", "complex"),
]  # fmt: skip


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("pair", PAIRS)
def test_two_operands(pair, wide):
    with ferrax.enable_x64(wide):
        # powers of numbers by bool arrays have weak types of their own
        names = BINARY.replace(" power", "") if pair[1] == "bool" else BINARY
        assert compared(names, pair) == []


def test_signed_beside_the_widest_unsigned_integers(x64):
    """No integer holds both: they become the weak float, which is float64."""
    x = ours.array([2**53 + 1], "int64") + ours.array([0], "uint64")
    assert x.dtype == np.float64 and x.weak_type
    for others in (("float16",), ("float32",), ("bfloat16", "float16"), ("complex64",)):
        assert ours.result_type("int64", "uint64", *others) == expected(
            lambda jax: jax.numpy.result_type("int64", "uint64", *others)
        )


NARROW = ["int4", "uint4", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"]


@pytest.mark.parametrize("narrow", NARROW)
def test_narrow_dtypes(narrow):
    for other in [*DTYPES.split(), *NARROW]:
        promoted = expected(outcome_of_promotion, narrow, other), outcome_of_promotion(ferrax, narrow, other)
        assert promoted[0] == promoted[1], other
    for number in NUMBERS.values():
        assert outcome_of_addition(ferrax, narrow, number) == expected(outcome_of_addition, narrow, number), number
    kinds = "integer signedinteger unsignedinteger floating inexact number complexfloating generic"
    for kind in kinds.split():
        want = expected(lambda jax: jax.numpy.issubdtype(narrow, getattr(jax.numpy, kind)))
        assert ours.issubdtype(narrow, getattr(ours, kind)) == want
    for kind in ("signed integer", "unsigned integer", "integral", "real floating", "numeric", "bool"):
        dtype = ours.dtype(narrow)
        assert ours.isdtype(dtype, kind) == expected(lambda jax: jax.numpy.isdtype(dtype, kind))


def outcome_of_addition(jax, dtype, number):
    return outcome(jax.numpy.add, jax.numpy.zeros(2, dtype), number)


def outcome_of_promotion(jax, a, b):
    try:
        return str(jax.numpy.promote_types(a, b))
    except Exception as error:
        return type(error).__name__


def test_kinds_that_are_none():
    for kind in (ours.integer, 5, ("real floating", ("integral",))):
        with pytest.raises(TypeError, match="Expected kind to be a dtype, string, or tuple"):
            ours.isdtype(np.float32, kind)
    with pytest.raises(ValueError, match="Unrecognized kind"):
        ours.isdtype(np.float32, "foo")


@pytest.mark.parametrize("name", ["fmax", "fmin"])
def test_operands_by_name(name):
    f = getattr(ours, name)
    assert f(x1=ours.nan, x2=3.0) == f(ours.nan, x2=3.0) == f(ours.nan, 3.0) == 3
    with pytest.raises(TypeError, match="x3"):
        f(1.0, x3=2.0)
    with pytest.raises(TypeError, match="'x2'"):
        f(1.0)


def types_of_numbers(jax):
    """Types of functions of two numbers or of one, weak and strong ones, NumPy's and arrays."""
    jnp = jax.numpy
    numbers = [True, 1, 0.5, 1j, np.int8(1), np.float16(1), np.float64(1), np.complex128(1), np.int64(3)]
    numbers += [jnp.int8(1), jnp.bfloat16(1), jnp.asarray(1), jnp.asarray(0.5), jnp.asarray(1j), jnp.array(True)]
    pairs = [(x, y) for x in numbers for y in numbers]
    out = {n: [outcome(getattr(jnp, n), *p) for p in pairs] for n in ("gcd", "lcm", "logaddexp", "logaddexp2")}
    out["round"] = [outcome(jnp.round, x, d) for x in [*numbers, jnp.full((2,), 0.5)] for d in (0, 1)]
    out["angle"] = [outcome(jnp.angle, x) for x in [*numbers, jnp.ones(2, "float16")]]
    return out


@pytest.mark.parametrize("wide", [False, True])
def test_types_of_numbers(wide):
    with ferrax.enable_x64(wide):
        want, got = expected(types_of_numbers), types_of_numbers(ferrax)
    for name, types_ in want.items():
        assert got[name] == types_, name


def test_operand_by_name():
    assert ours.trunc(x=1.5) == 1 and ours.iscomplex(x=1j) and ours.isreal(x=1.0)
    with pytest.raises(TypeError, match="positional-only"):
        ours.exp(x=1.0)
    for f in (ours.isneginf, ours.isposinf):
        assert not f(1.0, None) and not f(1.0, out=None)
        with pytest.raises(NotImplementedError, match="out"):
            f(1.0, out=ours.zeros(()))


def test_angle_of_complex_pairs(x64):
    x, y = np.array([1 + 2j, 3 - 1j, 0.5]), np.array([2j, 1, 1 + 0.25j])
    np.testing.assert_allclose(
        ours.arctan2(x, y), expected(lambda jax: jax.numpy.arctan2(x, y)), rtol=1e-12, atol=1e-12
    )
    real = np.array([0.5, -2.0, 3.0])
    np.testing.assert_allclose(ours.arctan2(real, real + 0j + 1), np.arctan2(real, real + 1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape, axis", [((0, 3), 1), ((3, 0), 0), ((0, 3), 0), ((3, 0), 1), ((0,), 0), ((2, 0, 2), 2)])
def test_distinct_rows_without_elements(shape, axis):
    x = np.zeros(shape, np.float32)
    distinct = lambda jax: jax.numpy.unique(x, True, True, True, axis=axis)
    want, got = expected(distinct), distinct(ferrax)
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape
        np.testing.assert_array_equal(g, w)
    filled = ours.unique(x, axis=axis, size=4, fill_value=7)
    np.testing.assert_array_equal(filled, expected(lambda jax: jax.numpy.unique(x, axis=axis, size=4, fill_value=7)))


def test_distinct_numbers_that_are_none():
    x = np.array([3, np.nan, 1, np.nan, 2, 1], np.float32)
    rows = np.array([[1, np.nan], [1, np.nan], [0, 2]], np.float32)
    for equal in (True, False):
        for v, axis in ((x, None), (x, 0), (rows, 0), (rows, 1), (rows, None)):
            distinct = lambda jax: jax.numpy.unique(v, True, True, True, axis=axis, equal_nan=equal)
            for g, w in zip(distinct(ferrax), expected(distinct), strict=True):
                np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("signed", ["int8", "int16", "int32"])
def test_narrow_integers_of_both_signs_meet_where_arrays_do(signed):
    assert ours.promote_types(signed, "uint32") == ours.promote_types("uint32", signed) == "int32"
    with ferrax.enable_x64(True):
        assert ours.promote_types(signed, "uint32") == "int64"


def filled_on_a_device(jax):
    """Weak types of what is filled where it is asked for, and of what is filled where its model is."""
    jnp, (there, *_) = jax.numpy, jax.devices()
    model = jax.device_put(jnp.full(3, 1.0), there)
    made = jnp.full(3, 2.0, device=there), jnp.full_like(model, 2.0, device=there), jnp.zeros_like(model, device=there)
    kept = jnp.full(3, 2.0), jnp.full_like(model, 2.0), jax.jit(lambda: jnp.full(3, 2.0, device=there))()
    return [x.aval.weak_type for x in (*made, *kept)]


def test_what_is_filled_on_a_device_is_strongly_typed():
    want = expected(filled_on_a_device)
    assert filled_on_a_device(ferrax) == want
    assert not any(want[:3]) and want[3]
