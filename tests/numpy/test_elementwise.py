"""Elementwise functions, dtype questions and functions of functions against JAX."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from tests.numpy.oracle import cases, compare
from tests.support import on_xla

ELEMENTWISE = """
round(x)
round(array([0.5, 1.5, 2.675]), 2)
round(array([15., 25., -15.]), -1)
round(i, -1)
round(i, 1)
round(b)
round(array(1.5 + 2.5j))
round(h, 1)
round(x, 1.0)
around(x, 1)
nan_to_num(f)
nan_to_num(f, nan=1., posinf=2., neginf=3.)
nan_to_num(i)
nan_to_num(c)
isclose(f, f)
isclose(f, f, equal_nan=True)
isclose(1, 1 + 1e-9)
isclose(i, i + 1)
isclose(x, x + 1e-6)
isclose(c, c)
isclose(x, v)
allclose(f, f, equal_nan=True)
allclose(x, y)
array_equal(x, i)
array_equal(x, x)
array_equal(f, f, equal_nan=True)
array_equal([1], [1])
array_equiv(x, x[0])
array_equiv(ones((2, 2)), ones(2))
sinc(f[:4])
sinc(c)
sinc(i)
sinc(0.5)
i0(x)
i0(i)
i0(array([30., 5., 9.99, 10.01, -12.]))
i0(1j)
ldexp(x, i[0])
ldexp(i, i)
ldexp(1., 1.)
ldexp(f, 3)
ldexp(float32(1e-38), 20)
ldexp(float32(1.), -140)
ldexp(h, 2)
frexp(f)
frexp(i)
frexp(h)
modf(f[:4])
modf(x)
modf(i)
divmod(i, 2)
divmod(x, 2)
divmod(x, y)
logaddexp(f, f)
logaddexp(array([-inf, inf]), -inf)
logaddexp(x, y)
logaddexp(1j, 1.)
logaddexp(c, c[0])
logaddexp2(1, 2)
logaddexp2(x, y)
logaddexp2(c, 1.)
angle(f)
angle(1j, deg=True)
angle(i)
angle(c)
spacing(f)
spacing(h)
spacing(i)
gcd(i, 6)
gcd(array([0, -4]), array([0, 6]))
gcd(x, 1)
gcd(4, 2)
gcd(array(12, dtype='uint8'), array(18, dtype='uint8'))
lcm(i, 4)
lcm(array([0, -4]), array([0, 6]))
packbits(array([1, 0, 1, 1, 0, 0, 0, 0, 1], dtype=bool))
packbits(array([1, 0, 1, 1, 0, 0, 0, 0, 1]), bitorder='little')
packbits(j, axis=1)
packbits(j, axis=0)
packbits(x)
packbits(i, bitorder='foo')
unpackbits(q)
unpackbits(q, count=5)
unpackbits(q, count=-5)
unpackbits(q, count=30)
unpackbits(q.reshape(3, 1), axis=1, bitorder='little')
unpackbits(i)
isscalar(1), isscalar(o), isscalar('a'), isscalar(x)
iterable(1), iterable([1])
real_if_close(x) if False else 1
"""

DTYPES = """
result_type(x, i)
result_type(i, 2.5)
result_type(int16(1), 2.5)
result_type('int8', 'uint8')
result_type(h, 'bfloat16')
result_type(x, 1j)
result_type()
promote_types('int32', 'bfloat16')
promote_types('int32', float)
promote_types('uint8', int)
promote_types(bool, 'int8')
can_cast('int32', 'float64'), can_cast('float32', 'int8'), can_cast(int, 'float32', 'same_kind')
can_cast(dtype('float64').type, 'float32'), can_cast(dtype('int8').type, 'int16')
issubdtype(bfloat16, floating), issubdtype(float32, integer), issubdtype('int8', signedinteger)
issubdtype(int4, integer), issubdtype(float8_e5m2, floating), issubdtype(bfloat16, bfloat16)
issubdtype(float32, float32), issubdtype(float32, 'float32'), issubdtype(floating, inexact), issubdtype(bool_, number)
isdtype(float32, 'real floating'), isdtype('int8', ('bool', float32)), isdtype(bfloat16, 'numeric')
isdtype('int8', 'integral'), isdtype('uint8', 'signed integer'), isdtype(bool_, 'bool'), isdtype('int32', int32)
isdtype('int8', 'foo')
iscomplexobj(c), iscomplexobj(1j), iscomplexobj(x), isrealobj(x)
str(finfo('bfloat16').eps), iinfo('int8').max, iinfo(int4).min, float(finfo(float32).tiny)
float32 == np.float32, float32 == 'float32', float32 == np.dtype('float32'), float32 != int32
np.dtype(float32), np.zeros(2, dtype=bfloat16).dtype
isinstance(np.float32(1), float32), isinstance(np.int32(1), float32)
pi, e, euler_gamma, inf, newaxis
s_[1:2, None], index_exp[3]
"""

FUNCTIONAL = """
vectorize(lambda a, b: a @ b, signature='(n,k),(k)->(n)')(x, x[0])
vectorize(lambda a, b: a @ b, signature='(n,k),(k)->(n)')(t, v)
vectorize(lambda a, b: a @ b, signature='(n,k),(k)->(n)')(v, v)
vectorize(lambda a, b: a @ b, signature='(n,k),(k)->(n)')(x, v)
vectorize(lambda a, b: jnp.sum(a * b), signature='(k),(k)->()')(x, expand_dims(y, 1))
vectorize(lambda a, b: a + b)(x, v[:3])
vectorize(lambda a, b: a + b, excluded={1})(x, 1)
vectorize(lambda a: (a + 1, a * 2), signature='()->(),()')(x)
vectorize(lambda a: a, signature='foo')(x)
vectorize(lambda a: a, signature='(n)->(m)')(x)
vectorize(lambda a: a.sum(), signature='(n)->(n)')(x)
vectorize(lambda a: a, signature='(2)->(2)')(x)
vectorize(lambda a, b: a * b, excluded=(-1,))
apply_along_axis(sum, 1, x)
apply_along_axis(lambda v: jnp.diag(v), 0, x)
apply_along_axis(lambda v, s: v[:1] * s, 1, t, 3)
apply_over_axes(sum, x, [0, 1])
frompyfunc(lambda a, b: a + b, 2, 1, identity=0).reduce(i)
frompyfunc(lambda a, b: a + 2 * b, 2, 1).reduce(x, axis=1)
frompyfunc(lambda a, b: a + 2 * b, 2, 1).reduce(x, axis=None)
frompyfunc(lambda a, b: a + 2 * b, 2, 1).reduce(x, axis=0, initial=3., where=x > 0)
frompyfunc(lambda a, b: a + 2 * b, 2, 1).accumulate(x, axis=1)
frompyfunc(lambda a, b: a + b, 2, 1).outer(v, i)
frompyfunc(lambda a, b: a + b, 2, 1).at(x, (0, array([1, 1])), 2., inplace=False)
frompyfunc(lambda a, b: a + b, 2, 1).reduceat(i, array([0, 3, 1]))
frompyfunc(lambda a, b: a + b, 2, 1).reduce(e)
frompyfunc(lambda a, b: a + b, 2, 1)(x, y)
frompyfunc(lambda a: a + 1, 1, 1).reduce(x)
"""


@cases(ELEMENTWISE)
def test_elementwise(text):
    compare(text, rtol=1e-5)


@cases(DTYPES)
def test_dtypes(text):
    compare(text)


@cases(FUNCTIONAL)
def test_functional(text):
    compare(text)


def test_frexp_of_subnormal_numbers():
    """They are numbers as all others; JAX's CPU code takes them for zeros on the way."""
    if on_xla():
        pytest.skip("XLA's CPU code takes them for zeros")
    x = np.array([1e-41, -1e-45, 5e-39], "float32")
    for ours, numpys in zip(jnp.frexp(jnp.asarray(x)), np.frexp(x)):
        np.testing.assert_array_equal(ours, numpys)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_parts_of_narrow_floats_are_refused_by_name(dtype):
    x = jnp.ones(3).astype(dtype)
    with pytest.raises(TypeError, match=f"frexp does not support {dtype}"):
        jnp.frexp(x)
    with pytest.raises(TypeError, match=f"ldexp does not support {dtype}"):
        jnp.ldexp(x, 2)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_whole_exponents_that_are_known_multiply(dtype):
    known = jnp.asarray(3, "int8")
    assert "integer_pow[y=3]" in str(ferrax.make_jaxpr(lambda x: jnp.power(x, known))(jnp.ones(2, dtype)))
    program = str(ferrax.make_jaxpr(jnp.power)(jnp.ones(2, dtype), known))
    assert "pow a b" in program and "convert_element_type" not in program
