# ruff: noqa: E501 (a table of expressions)
"""What arrays print, give and refuse: each expression has JAX's text, or raises what JAX raises."""

import re
import warnings

import numpy as np
import pytest

import ferrax
from tests.recorded import both

VALUES = """
x = jnp.arange(3.)
m = jnp.ones((2, 3), jnp.int32)
s = jnp.float32(1.5)
i = jnp.int32(4)
b = jnp.array([True, False])
c = jnp.array([1 + 2j, 3])
e = jnp.zeros((0, 3))
h = jnp.ones(2, jnp.bfloat16)
w = jnp.asarray(1.0)
big = jnp.arange(2000.)
wide = jnp.arange(40.).reshape(2, 20) * 1e-3
nan = jnp.array([jnp.nan, jnp.inf, -jnp.inf, -0.0])
d = jnp.ones(3)
d.delete()
key = jax.random.key(0)
"""

EXPRESSIONS = """
repr(x) | repr(m) | repr(s) | repr(i) | repr(b) | repr(c) | repr(e) | repr(h) | repr(w) | repr(big) | repr(wide) | repr(nan)
str(x) | str(m) | str(s) | str(b) | str(c) | str(e) | str(h) | str(big) | str(wide) | str(nan) | repr(m[0, 0]) | repr(key)
repr(jnp.zeros((0,))) | repr(jnp.zeros((2, 0, 3))) | repr(jnp.int8(3)) | repr(jnp.bool_(True)) | repr(jnp.uint32(3)) | repr(jnp.float16(0.1))
f"{s:.2f}" | f"{i:03d}" | f"{x}" | f"{s}" | f"{x:.2f}" | format(w, ".3e") | "%d" % i | "%.1f" % s | f"{c[0]}"
hash(x) | {x} | bool(x) | bool(e) | bool(s) | bool(b[0]) | not w | int(s) | int(x) | float(x) | float(jnp.ones(1)) | float(c[0]) | complex(c[0])
[1, 2, 3, 4, 5][i] | [1, 2][s] | range(i) | i.__index__() | len(m) | len(s) | list(s) | m.tolist() | s.tolist() | s.item() | m.item(1) | m.item()
[float(v) for v in reversed(x)] | 2.0 in x | 7.0 in x | 1 in m | 1 in s | [v.shape for v in m] | next(iter(x)) | m.item(1, 2) | m.item(5, 5)
x == None | x == "a" | x != x | x + "a" | x + [1, 2, 3] | x < None | x @ 2 | m @ x | x @ x | np.ones((3, 3), np.float32) @ x | 3 @ x
type(np.ones(3, np.float32) + x).__name__ | (np.float32(2) * x).dtype | (np.float64(2) * x).dtype | (np.arange(3) + x).dtype | (x + np.int8(1)).dtype
(m + 1.5).dtype | (m + np.float32(1)).dtype | (h + 1).dtype | (h + x[:2]).dtype | (b + 1).dtype | (b + b).dtype | (i / 2).dtype | (m // 2).dtype | (m ** 2).dtype
m ** -1 | 2 ** x | pow(x, 2) | divmod(x, 2) | divmod(m, 2) | m << 2 | m >> 1 | m & 1 | m | 2 | m ^ 3 | ~b | ~x | -b | +x | abs(c) | round(s) | m % 2 | x // 0.5
x[5] | x[-4] | x[1.0] | x["a"] | x[None].shape | x[...].shape | x[()].shape | m[0, 1, 2] | m[:, ::-1] | x[[0, 1]] | x[(0, 1)] | x[b] | m[b] | x[jnp.array([2, 0])]
type(np.sin(x)).__name__ | np.sum(x) | np.asarray(h).dtype | np.asarray(x, dtype=np.float64).dtype | np.add(x, 1).dtype | np.stack([x, x]).shape
m.shape | m.dtype | m.ndim | m.size | m.nbytes | m.itemsize | m.T.shape | m.mT.shape | x.mT | m.real.dtype | c.imag | m.weak_type | w.weak_type | m.aval
m.is_fully_addressable | m.is_fully_replicated | m.committed | len(m.devices()) | len(m.addressable_shards) | m.is_deleted() | m.block_until_ready() is m
m.foo | m.fill(1) | m.strides | m.flags | m.resize(2) | m.on_device_size_in_bytes() | [v for v in m.flat] | m.sharding.device_set == m.devices()
repr(d) | d + 1 | np.asarray(d) | d.shape | d.dtype | d.delete() | d.is_deleted() | d[0] | d.sum() | float(d)
isinstance(x, jax.Array) | isinstance(np.ones(1), jax.Array) | isinstance(1.0, jax.Array) | jax.jit(lambda v: isinstance(v, jax.Array) and v * 2)(x)
m.sum() | m.mean() | m.std() | m.max(0) | m.argmax() | m.cumsum() | m.prod() | m.any() | m.all() | m.ptp() | m.dot(x) | m.clip(0, 1) | m.astype(np.float16) | m.var()
m.view(np.uint32) | m.view(np.int8).shape | m.reshape(3, 2).shape | m.reshape((3, 2)).shape | m.reshape(-1).shape | m.reshape(4) | m.ravel().shape | m.flatten().shape
m.squeeze().shape | m.transpose().shape | m.transpose(1, 0).shape | m.swapaxes(0, 1).shape | m.repeat(2).shape | m.round() | m.conj() | m.conjugate() | c.conj()
m.sort() | m.argsort() | x.searchsorted(1.0) | m.nonzero() | m.take(jnp.array([0])) | m.trace() | m.diagonal() | m.compress(b, 0) | m.min() | m.argmin() | m.cumprod()
m.choose([x]) | x.argpartition(1) | m.tobytes() | x.copy() | m.sum(axis=1) | m.sum(axis=(0, 1), keepdims=True) | x.sum(where=x > 0) | x.max(initial=9.0) | bool(key) | int(key) | complex(key) | key == key
jnp.array([1, 2.5]) | jnp.array([[1, 2], [3, 4]]).dtype | jnp.array([[1, 2], [3]]) | jnp.array("abc") | jnp.array([None]) | jnp.array(np.arange(3.)).dtype | jnp.array(2 ** 40)
jnp.asarray(np.uint64(3)).dtype | jnp.array([x, x]).shape | jnp.zeros(2, dtype="float64").dtype | jnp.array(np.datetime64("2020-01-01")) | jnp.array([x, 1.0]) | jnp.array((x, m))
jnp.arange(3, dtype=jnp.int4) | jnp.ones(2, jnp.float8_e4m3fn) | jnp.arange(3, dtype=jnp.int4) + jnp.int4(7) | np.asarray(jnp.arange(3, dtype=jnp.uint4)).dtype
jnp.ones(2, jnp.float8_e5m2) + jnp.ones(2, jnp.float8_e5m2) | jnp.ones(2, jnp.bfloat16) * jnp.float16(2) | jnp.array(True) + True | jnp.array(1j).dtype
x.at[0].set(9.0) | x.at[0].add(1) | x.at[7].set(1.0) | x.at[7].get() | x.at[7].get(mode="fill", fill_value=-1) | x.at[-1].mul(3) | x.at[1:].min(0.5) | x.at[0].apply(jnp.sin)
m.at[:, 0].set(7) | m.at[b].add(1) | x.at[jnp.array([0, 0])].add(1.0) | x.at[0].power(2) | x.at[0].divide(2) | x.at[2].max(9) | x.at[0].set("a") | x.at[0].foo
key.shape | key.dtype | key + 1 | jax.random.key_data(key) | jax.random.split(key).shape | jax.random.wrap_key_data(jnp.array([0, 0], jnp.uint32)) | float(key)
"""

CASES = [e.strip() for line in EXPRESSIONS.strip().splitlines() for e in re.split(r" \| (?![12]\b)", line)]


def evaluate(package, expression):
    """The text of a value, or the classes of the exception."""
    names = {"jax": package, "jnp": package.numpy, "np": np}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(VALUES, names)
        try:
            value = eval(expression, names)
        except Exception as error:
            builtin = [c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"]
            return "raises", builtin[0]
    return type(value).__name__.replace("ArrayImpl", "Array"), repr(value)


@pytest.mark.parametrize("expression", CASES)
def test_expression(expression):
    got, want = both(evaluate, expression)
    assert got == want


def test_errors_say_what_was_asked():
    with pytest.raises(TypeError, match=r"unhashable type"):
        hash(ferrax.numpy.ones(3))
    with pytest.raises(TypeError, match=r"x = x\.at\[idx\]\.set\(y\)"):
        ferrax.numpy.ones(3)[0] = 1
    with pytest.raises(ValueError, match=r"got arr\.shape=\(2, 3\)"):
        _ = 1 in ferrax.numpy.ones((2, 3))


@pytest.mark.parametrize("sizes", [(-1, 4), (5, -1), (-1, 7, 1)])
def test_sizes_that_do_not_divide_an_array_are_named(sizes):
    jax, x = pytest.importorskip("jax"), np.zeros((2, 3), np.float32)

    def refused(lib):
        texts = []
        for call in (
            lambda: lib.numpy.reshape(lib.numpy.asarray(x), sizes),
            lambda: lib.numpy.asarray(x).reshape(*sizes),
            lambda: lib.jit(lambda x: x.reshape(sizes))(x),
        ):
            with pytest.raises(TypeError) as info:
                call()
            texts.append(str(info.value).splitlines()[0])
        return texts

    assert refused(ferrax) == refused(jax)
