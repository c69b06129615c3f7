"""Keys: making, splitting and unwrapping them.

A key is a scalar array of a key dtype (``key<fry>`` for Threefry), or, in the older form, a ``uint32`` array of its
data. Functions take both: ``checked_key`` turns either into a typed key, and what splits or folds gives back the form
it was given. The primitives (``random_seed``, ``random_split`` ...) live in the extension module.
Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011). Read next: ``_bits.py``.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import ferrax.numpy as jnp
from ferrax import dtypes
from ferrax._core import Array, is_tracer
from ferrax._ferrax import lax as _prims
from ferrax._texts import short
from ferrax.typing import ArrayLike, DTypeLike

__all__ = ["PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split", "wrap_key_data"]

DEFAULT_IMPL = "threefry2x32"
_KEY_SIZES = {"threefry2x32": 2}
_TAGS = {"fry": "threefry2x32"}


def is_key(x) -> bool:
    """Whether ``x`` is an array of typed keys."""
    dtype = getattr(x, "dtype", None)
    return dtype is not None and dtypes.issubdtype(dtype, dtypes.prng_key)


def _impl_name(impl) -> str:
    """The name of a key implementation, given by name or by key dtype."""
    if impl is None:
        return DEFAULT_IMPL
    if not isinstance(impl, str):
        name = _TAGS.get(str(impl).removeprefix("key<").removesuffix(">"))
        if name is None:
            raise TypeError(f"unrecognized type {type(impl)} for specifying PRNG implementation.")
        return name
    if impl not in _KEY_SIZES:
        known = ", ".join(f'"{name}"' for name in _KEY_SIZES)
        raise ValueError(f'unrecognized PRNG implementation "{impl}". Available: {known}')
    return impl


def _wrap(data, impl: str = DEFAULT_IMPL):
    """Typed keys from their data, checked."""
    if not all(hasattr(data, name) for name in ("ndim", "shape", "dtype")):
        raise TypeError(
            f"invalid PRNG key data: expected key_data to have ndim, shape, and dtype attributes. Got {short(data)}"
        )
    size = _KEY_SIZES[impl]
    if data.ndim < 1 or data.shape[-1] != size:
        raise TypeError(
            f"invalid PRNG key data: expected key_data.shape to end with ({size},); got "
            f"shape={data.shape}. Make keys with jax.random.key(seed)."
        )
    if data.dtype != np.uint32:
        raise TypeError(f"invalid PRNG key data: expected key_data.dtype = uint32; got dtype={data.dtype}")
    return _prims.random_wrap(jnp.asarray(data))


def typed_keys(x: ArrayLike) -> tuple[Any, bool]:
    """``(typed keys, whether x was raw)``."""
    if is_key(x):
        return x, False
    if x is None:
        raise TypeError(f"unexpected PRNG key type {type(x)}")
    return _wrap(x), True


def checked_key(function: str, x: ArrayLike) -> tuple[Any, bool]:
    """The single typed key that ``x`` is, and whether it came raw."""
    keys, raw = typed_keys(x)
    if keys.ndim:
        raise ValueError(
            f"{function} accepts a single key, but was given a key array of shape {np.shape(x)} != (). "
            "Use jax.vmap for batching."
        )
    return keys, raw


def _seeded(function: str, seed, impl):
    """A typed key from an integer."""
    if is_key(seed):
        raise TypeError(f"{function} accepts a scalar seed, but was given a PRNG key.")
    if not is_tracer(seed) and not isinstance(seed, Array):
        if isinstance(seed, str):
            raise TypeError(f"PRNG key seed must be an integer; got {short(seed)}")
        seed = np.asarray(seed)
        if np.issubdtype(seed.dtype, np.integer):
            # a seed wider than the default integer loses its high bits, as in JAX
            width = jnp.zeros((), int).dtype.itemsize * 8
            wrapped = [int(v) & (2**width - 1) for v in seed.reshape(-1)]
            seed = np.array(wrapped, f"uint{width}").view(f"int{width}").reshape(seed.shape)
    if np.ndim(seed):
        raise TypeError(
            f"{function} accepts a scalar seed, but was given an array of shape {np.shape(seed)} != (). "
            "Use jax.vmap for batching"
        )
    if seed.dtype == np.bool_:
        seed = jnp.asarray(seed).astype(int)
    if not jnp.issubdtype(seed.dtype, jnp.integer):
        raise TypeError(f"PRNG key seed must be an integer; got {short(seed)}")
    return _prims.random_seed(jnp.asarray(seed))


def key(seed: ArrayLike, *, impl: Any = None, dtype: DTypeLike | None = None) -> Array:
    """A typed random key from an integer.

    Args:
      seed: integer scalar; all its bits count with 64-bit types enabled, else the low 32.
      impl: name of the generator; only ``"threefry2x32"`` exists.
      dtype: a key dtype, in place of ``impl``.

    Returns:
      Scalar array of dtype ``key<fry>``.

    Raises:
      TypeError: the seed is not an integer scalar.
      ValueError: both ``impl`` and ``dtype`` are given, or the name is not known.

    >>> import ferrax
    >>> ferrax.random.key(0).shape
    ()
    """
    if impl is not None and dtype is not None:
        raise ValueError("Only specify one of `impl` or `dtype`; got both.")
    return _seeded("key", seed, _impl_name(dtype if impl is None else impl))


def PRNGKey(seed: ArrayLike, *, impl: Any = None) -> Array:
    """A random key in the older form, a ``uint32`` array, from an integer.

    Args:
      seed: integer scalar.
      impl: name of the generator; only ``"threefry2x32"`` exists.

    Returns:
      Array of shape (2,) and dtype uint32.

    >>> import ferrax
    >>> ferrax.random.PRNGKey(7)
    Array([0, 7], dtype=uint32)
    """
    return _prims.random_unwrap(_seeded("PRNGKey", seed, _impl_name(impl)))


def key_dtype(impl_spec: Any = None) -> Any:
    """The dtype of the keys of a generator.

    Args:
      impl_spec: name of the generator, or None for the default.

    Returns:
      The key dtype.

    >>> import ferrax
    >>> ferrax.random.key_dtype()
    key<fry>
    """
    return key(0, impl=_impl_name(impl_spec)).dtype


def key_data(keys: Array) -> Array:
    """The bits of keys.

    Args:
      keys: array of typed keys, or raw keys.

    Returns:
      uint32 array with a last axis of size 2.

    >>> import ferrax
    >>> ferrax.random.key_data(ferrax.random.key(7))
    Array([0, 7], dtype=uint32)
    """
    keys, _ = typed_keys(keys)
    return _prims.random_unwrap(keys)


def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: DTypeLike | None = None) -> Array:
    """Typed keys from their bits.

    Args:
      key_bits_array: uint32 array with a last axis of size 2.
      impl: name of the generator.
      dtype: a key dtype, in place of ``impl``.

    Returns:
      Array of keys, without that axis.

    Raises:
      TypeError: wrong dtype or shape.

    >>> import ferrax, ferrax.numpy as jnp
    >>> ferrax.random.wrap_key_data(jnp.array([0, 7], dtype="uint32")).shape
    ()
    """
    if impl is not None and dtype is not None:
        raise ValueError("Only specify one of `impl` or `dtype`; got both.")
    return _wrap(key_bits_array, _impl_name(dtype if impl is None else impl))


def key_impl(keys: Any) -> Any:
    """The name of the generator that keys belong to.

    Args:
      keys: array of typed keys, or raw keys.

    Returns:
      The name.

    >>> import ferrax
    >>> ferrax.random.key_impl(ferrax.random.key(0))
    'threefry2x32'
    """
    keys, _ = typed_keys(keys)
    return _impl_name(keys.dtype)


def split(key: Array, num: Any = 2) -> Array:
    """New keys from one key; the one given must not be used again.

    Args:
      key: a key, typed or raw.
      num: how many, or the shape of the array of new keys.

    Returns:
      Array of ``num`` keys, in the form of ``key``.

    Raises:
      ValueError: ``key`` is an array of keys.

    >>> import ferrax
    >>> a, b = ferrax.random.split(ferrax.random.key(0))
    >>> ferrax.random.key_data(a)
    Array([1797259609, 2579123966], dtype=uint32)
    """
    typed, raw = checked_key("split", key)
    shape = tuple(map(operator.index, num)) if isinstance(num, (tuple, list)) else (operator.index(num),)
    if any(n < 0 for n in shape):
        raise ValueError(f"split makes a non-negative number of keys, got num={num}")
    keys = _prims.random_split(typed, shape)
    return _prims.random_unwrap(keys) if raw else keys


def split_keys(key: Array, num: int) -> list[Array]:
    """``num`` keys, one by one, from each of an array of typed keys."""
    keys = _prims.random_split(key, (num,))
    return [keys[..., i] for i in range(num)]


def fold_in(key: Array, data: ArrayLike) -> Array:
    """A new key from a key and an integer: different for each integer.

    Args:
      key: a key, typed or raw.
      data: integer scalar, 0 to 2**32 - 1.

    Returns:
      A key, in the form of ``key``.

    Raises:
      TypeError: ``data`` is not a scalar.
      OverflowError: a Python integer out of range.

    >>> import ferrax
    >>> ferrax.random.key_data(ferrax.random.fold_in(ferrax.random.key(0), 1))
    Array([ 928981903, 3453687069], dtype=uint32)
    """
    typed, raw = checked_key("fold_in", key)
    if np.ndim(data):
        raise TypeError(
            f"fold_in accepts a scalar, but was given an array of shape {np.shape(data)} != (). "
            "Use jax.vmap for batching."
        )
    if isinstance(data, int) and not 0 <= data < 2**32:
        raise OverflowError(f"Python integer {data} out of bounds for uint32")
    data = np.uint32(data) if isinstance(data, int) else jnp.asarray(data).astype(jnp.uint32)
    folded = _prims.random_fold_in(typed, jnp.asarray(data))
    return _prims.random_unwrap(folded) if raw else folded


def clone(key: Array) -> Array:
    """The same key, marked as fit to be used again.

    Args:
      key: a key, typed or raw.

    Returns:
      An equal key, in the form of ``key``.

    >>> import ferrax
    >>> key = ferrax.random.key(7)
    >>> ferrax.random.key_data(ferrax.random.clone(key))
    Array([0, 7], dtype=uint32)
    """
    typed, raw = typed_keys(key)
    cloned = _prims.random_clone(typed)
    return key_data(cloned) if raw else cloned
