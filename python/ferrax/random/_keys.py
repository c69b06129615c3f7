"""Keys: making, splitting and unwrapping them.

A key is a scalar array of a key dtype (``key<fry>`` for Threefry), or, in the older form, a ``uint32`` array of its
data. Functions take both: ``checked_key`` turns either into a typed key, and what splits or folds gives back the form
it was given. The primitives (``random_seed``, ``random_split`` ...) live in the extension module.
Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011). Read next: ``_bits.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import ferrax.numpy as jnp
from ferrax import dtypes
from ferrax._core import Array, is_tracer
from ferrax._ferrax import lax as _prims
from ferrax._frames import warn_user
from ferrax._shapes import static_shape
from ferrax._texts import short
from ferrax.config import config
from ferrax.random._generators import IMPLS, THREEFRY, PRNGImpl, native_split
from ferrax.random._key_arrays import KeyArray, KeyDType
from ferrax.typing import ArrayLike, DTypeLike

__all__ = ["PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split", "wrap_key_data"]


def is_key(x) -> bool:
    """Whether ``x`` is an array of typed keys."""
    dtype = getattr(x, "dtype", None)
    return dtype is not None and dtypes.issubdtype(dtype, dtypes.prng_key)


def impl_of(spec: Any) -> PRNGImpl:
    """The generator that a name, a key dtype or the generator itself says; None says the one of the settings."""
    if spec is None:
        spec = config.read("jax_default_prng_impl")
    if isinstance(spec, PRNGImpl):
        return spec
    if isinstance(spec, KeyDType):
        return spec._impl
    if str(spec) == "key<fry>":
        return THREEFRY
    if not isinstance(spec, str):
        raise TypeError(f"unrecognized type {type(spec)} for specifying PRNG implementation.")
    if spec not in IMPLS:
        known = ", ".join(f'"{name}"' for name in sorted(IMPLS))
        raise ValueError(f'unrecognized PRNG implementation "{spec}". Did you mean one of: {known}?')
    return IMPLS[spec]


def _wrap(data, impl: PRNGImpl):
    """Typed keys from their data, checked."""
    if not all(hasattr(data, name) for name in ("ndim", "shape", "dtype")):
        raise TypeError(
            "JAX encountered invalid PRNG key data: expected key_data to have ndim, shape, and dtype attributes. "
            f"Got {short(data)}"
        )
    size = impl.key_shape
    if data.ndim < 1 or tuple(data.shape[data.ndim - len(size) :]) != size:
        raise TypeError(
            f"JAX encountered invalid PRNG key data: expected key_data.shape to end with {size}; got "
            f"shape={data.shape} for impl={impl.name}. Make keys with jax.random.key(seed)."
        )
    if data.dtype != np.uint32:
        raise TypeError(
            f"JAX encountered invalid PRNG key data: expected key_data.dtype = uint32; got dtype={data.dtype}"
        )
    return wrapped(jnp.asarray(data), impl)


def wrapped(data: Array, impl: PRNGImpl) -> Any:
    """Typed keys from their data: arrays of the core for the default generator."""
    return _prims.random_wrap(data) if impl is THREEFRY else KeyArray(impl, data)


def unwrapped(keys: Any) -> Array:
    """The data of typed keys."""
    return keys._base_array if isinstance(keys, KeyArray) else _prims.random_unwrap(keys)


def split_each(keys: Any, shape: tuple[int, ...]) -> Any:
    """Keys from each of an array of typed keys, with the shape behind the array's."""
    if isinstance(keys, KeyArray):
        return KeyArray(keys._impl, keys._impl.over(keys._impl.split, keys._base_array, shape))
    return native_split(keys, shape)


def chosen_keys(mask: Array, new: KeyArray, old: KeyArray) -> KeyArray:
    """An elementwise choice between arrays of keys."""
    axes = tuple(range(mask.ndim, mask.ndim + len(new._impl.key_shape)))
    return KeyArray(new._impl, jnp.where(jnp.expand_dims(mask, axes), new._base_array, old._base_array))


def typed_keys(x: ArrayLike) -> tuple[Any, bool]:
    """``(typed keys, whether x was raw)``."""
    if is_key(x):
        if isinstance(x, KeyArray) and config.read("jax_debug_key_reuse"):
            raise NotImplementedError(f"the setting jax_debug_key_reuse is not implemented for keys of {x._impl.name}")
        return x, False
    if x is None:
        raise TypeError(f"unexpected PRNG key type {type(x)}")
    keys = _wrap(x, impl_of(None))
    if config.read("jax_legacy_prng_key") != "allow":
        _raw_key()
    return keys, True


def _raw_key() -> None:
    """What `jax_legacy_prng_key` says of a raw key."""
    text = (
        "Legacy uint32 key array passed as key to jax.random function. Please create keys using jax.random.key(). If "
        'use of a raw key array was intended, set jax_legacy_prng_key="allow".'
    )
    if config.read("jax_legacy_prng_key") == "error":
        raise ValueError(text)
    warn_user(text)


def checked_key(function: str, x: ArrayLike) -> tuple[Any, bool]:
    """The single typed key that ``x`` is, and whether it came raw."""
    keys, raw = typed_keys(x)
    if keys.ndim:
        raise ValueError(
            f"{function} accepts a single key, but was given a key array of shape {np.shape(x)} != (). "
            "Use jax.vmap for batching."
        )
    return keys, raw


def _seeded(function: str, seed, impl: PRNGImpl):
    """A typed key from an integer."""
    if is_key(seed):
        raise TypeError(f"{function} accepts a scalar seed, but was given a PRNG key.")
    if not is_tracer(seed) and not isinstance(seed, Array):
        if isinstance(seed, str):
            raise TypeError(f"PRNG key seed must be an integer; got {short(seed)}")
        if isinstance(seed, int) and not -(2**63) <= seed < 2**63:
            raise OverflowError(f"Python int {seed} is too large for a PRNG key seed of 64 bits")
        own = getattr(seed, "dtype", None)
        seed = np.asarray(seed)
        if np.issubdtype(seed.dtype, np.integer):
            # a seed wider than the default integer loses its high bits, and one of 32 bits has none, as in JAX
            width = 8 * min(jnp.zeros((), int).dtype.itemsize, max(4, getattr(own, "itemsize", 8)))
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
    return seeded(jnp.asarray(seed), impl)


def seeded(seeds: Array, impl: PRNGImpl) -> Any:
    """Typed keys from an array of integers."""
    return _prims.random_seed(seeds) if impl is THREEFRY else KeyArray(impl, impl.over_seeds(seeds))


def key(seed: ArrayLike, *, impl: Any = None, dtype: DTypeLike | None = None) -> Array:
    """A typed random key from an integer.

    Args:
      seed: integer scalar; all its bits count with 64-bit types enabled, else the low 32.
      impl: name of the generator, that of ``jax_default_prng_impl`` by default: ``"threefry2x32"``, ``"rbg"``,
        ``"unsafe_rbg"``, ``"philox2x32"``, ``"philox4x32"`` or ``"threefry4x32"``.
      dtype: a key dtype, in place of ``impl``.

    Returns:
      Scalar array of dtype ``key<fry>``, or of another generator's.

    Raises:
      TypeError: the seed is not an integer scalar.
      ValueError: both ``impl`` and ``dtype`` are given, or the name is not known.

    >>> import ferrax
    >>> ferrax.random.key(0).shape
    ()
    """
    if impl is not None and dtype is not None:
        raise ValueError("Only specify one of `impl` or `dtype`; got both.")
    return _seeded("key", seed, impl_of(dtype if impl is None else impl))


def PRNGKey(seed: ArrayLike, *, impl: Any = None) -> Array:
    """A random key in the older form, a ``uint32`` array, from an integer.

    Args:
      seed: integer scalar.
      impl: name of the generator, that of ``jax_default_prng_impl`` by default: ``"threefry2x32"``, ``"rbg"``,
        ``"unsafe_rbg"``, ``"philox2x32"``, ``"philox4x32"`` or ``"threefry4x32"``.

    Returns:
      uint32 array: of shape (2,) for the default generator; a typed key under ``jax_enable_custom_prng``.

    >>> import ferrax
    >>> ferrax.random.PRNGKey(7)
    Array([0, 7], dtype=uint32)
    """
    made = _seeded("PRNGKey", seed, impl_of(impl))
    return made if config.jax_enable_custom_prng else unwrapped(made)


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
    return key(0, impl=impl_of(impl_spec)).dtype


def key_data(keys: Array) -> Array:
    """The bits of keys.

    Args:
      keys: array of typed keys, or raw keys.

    Returns:
      uint32 array; keys of the default generator have two words, along the last axis.

    >>> import ferrax
    >>> ferrax.random.key_data(ferrax.random.key(7))
    Array([0, 7], dtype=uint32)
    """
    keys, _ = typed_keys(keys)
    return unwrapped(keys)


def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: DTypeLike | None = None) -> Array:
    """Typed keys from their bits.

    Args:
      key_bits_array: uint32 array whose last axes are a key's data: two words for the default generator.
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
    return _wrap(key_bits_array, impl_of(dtype if impl is None else impl))


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
    impl = impl_of(keys.dtype)
    return impl.name if IMPLS.get(impl.name) is impl else impl


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
    keys = split_each(typed, static_shape(num))
    return unwrapped(keys) if raw else keys


def split_keys(key: Array, num: int) -> list[Array]:
    """``num`` keys, one by one, from each of an array of typed keys."""
    keys = split_each(key, (num,))
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
    if isinstance(typed, KeyArray):
        folded = KeyArray(typed._impl, typed._impl.fold_in(typed._base_array, jnp.asarray(data)))
    else:
        folded = _prims.random_fold_in(typed, jnp.asarray(data))
    return unwrapped(folded) if raw else folded


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
    raw = not is_key(key)
    typed = _wrap(key, impl_of(None)) if raw else key
    cloned = typed.copy() if isinstance(typed, KeyArray) else _prims.random_clone(typed)
    return unwrapped(cloned) if raw else cloned
