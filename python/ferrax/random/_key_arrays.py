"""Arrays of typed keys of other generators than the default one: pytrees of their data.

Read next: `_generators.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

import ferrax.numpy as jnp
from ferrax import dtypes, tree_util
from ferrax._core import typeof
from ferrax._ferrax import Array, is_tracer
from ferrax.random._generators import PRNGImpl

__all__ = ["KeyArray", "KeyDType"]


class KeyDType:
    """The dtype of keys of a generator.

    Args:
      impl: the generator.

    >>> import ferrax
    >>> ferrax.random.key(0, impl="rbg").dtype
    key<rbg>
    """

    type = dtypes.prng_key

    def __init__(self, impl: PRNGImpl) -> None:
        self._impl = impl

    @property
    def name(self) -> str:
        """The name, such as `key<rbg>`."""
        return f"key<{self._impl.tag}>"

    @property
    def itemsize(self) -> int:
        """The size of a key in bytes."""
        return math.prod(self._impl.key_shape) * 4

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyDType) and other._impl is self._impl

    def __hash__(self) -> int:
        return hash(("KeyDType", self._impl))


class KeyArray:
    """An array of keys of a generator.

    Args:
      impl: the generator.
      data: uint32 array, the data of a key along its last axes.

    >>> import ferrax
    >>> keys = ferrax.random.split(ferrax.random.key(0, impl="rbg"), 3)
    >>> keys.shape, keys[0].shape, len(keys)
    ((3,), (), 3)
    """

    def __init__(self, impl: PRNGImpl, data: Any) -> None:
        self._impl = impl
        self._base_array = data

    def _with(self, data: Array) -> KeyArray:
        return KeyArray(self._impl, data)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, without the axes of keys' data."""
        base = jnp.shape(self._base_array)
        return base[: len(base) - len(self._impl.key_shape)]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of keys."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> KeyDType:
        """The dtype, which names the generator."""
        return KeyDType(self._impl)

    @property
    def itemsize(self) -> int:
        """The size of a key in bytes."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The size of all keys in bytes."""
        return self.size * self.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[KeyArray]:
        if not self.shape:
            raise TypeError("iteration over a 0-d key array")
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> KeyArray:
        whole = (slice(None),) * len(self._impl.key_shape)
        places = index if isinstance(index, tuple) else (index,)
        count = sum(place is not None and place is not Ellipsis for place in places)
        if count > self.ndim:
            raise IndexError(f"Too many indices: array is {self.ndim}-dimensional, but {count} were indexed")
        if not any(place is Ellipsis for place in places):
            places = (*places, Ellipsis)
        return self._with(self._base_array[(*places, *whole)])

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, KeyArray) or other._impl is not self._impl:
            return NotImplemented
        axes = tuple(range(-len(self._impl.key_shape), 0))
        return jnp.all(jnp.equal(self._base_array, other._base_array), axis=axes)

    def __ne__(self, other: object) -> Any:
        same = self.__eq__(other)
        return same if same is NotImplemented else jnp.logical_not(same)

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if is_tracer(self._base_array):
            np.asarray(self._base_array)  # raises
        raise TypeError(
            "JAX array with PRNGKey dtype cannot be converted to a NumPy array. Use jax.random.key_data(arr) if you "
            "wish to extract the underlying integer array."
        )

    def __bool__(self) -> bool:
        raise TypeError("key array cannot be converted to boolean.")

    def reshape(self, *shape: Any) -> KeyArray:
        """The keys in another shape."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        places = np.empty(self.shape, np.bool_).reshape(sizes).shape
        return self._with(self._base_array.reshape(*places, *self._impl.key_shape))

    def ravel(self) -> KeyArray:
        """The keys along one axis."""
        return self.reshape(-1)

    flatten = ravel

    def squeeze(self, axis: Any = None) -> KeyArray:
        """The keys without axes of size one."""
        places = np.empty(self.shape, np.bool_).squeeze(axis).shape
        return self.reshape(places)

    def transpose(self, *axes: Any) -> KeyArray:
        """The keys with their axes in another order."""
        order = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
        order = [a % self.ndim for a in order] if order else range(self.ndim)[::-1]
        rest = range(self.ndim, self.ndim + len(self._impl.key_shape))
        return self._with(jnp.transpose(self._base_array, (*order, *rest)))

    @property
    def T(self) -> KeyArray:
        """The keys with their axes reversed."""
        return self.transpose()

    def copy(self) -> KeyArray:
        """A copy."""
        return self._with(jnp.array(self._base_array))

    @property
    def sharding(self) -> Any:
        """Where the keys are: what divides the axes of the array, not those of a key's data."""
        from ferrax.sharding import NamedSharding, PartitionSpec

        found = self._base_array.sharding
        if not isinstance(found, NamedSharding):
            return found
        return NamedSharding(found.mesh, PartitionSpec(*found.spec[: self.ndim]), memory_kind=found.memory_kind)

    @property
    def committed(self) -> bool:
        """Whether operations on the keys must run where they are."""
        return bool(self._base_array.committed)

    _committed = committed

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device has all keys."""
        return bool(self._base_array.is_fully_replicated)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process has all devices that the keys are on."""
        return bool(self._base_array.is_fully_addressable)

    def devices(self) -> set[Any]:
        """The devices that the keys are on."""
        return set(self._base_array.devices())

    def block_until_ready(self) -> KeyArray:
        """Waits for the keys to be computed."""
        self._base_array.block_until_ready()
        return self

    def __repr__(self) -> str:
        if is_tracer(self._base_array):
            typed = lambda m: f"{self.dtype.name}[{m[1].rpartition(',')[0]}]"
            return re.sub(r"uint32\[([\d,]+)\]", typed, repr(self._base_array))
        if isinstance(self._base_array, (Array, np.ndarray)):
            return f"Array({self.shape}, dtype={self.dtype.name}) overlaying:\n{self._base_array}"
        return f"KeyArray({self._impl.name}, {self._base_array!r})"

    @property
    def aval(self) -> Any:
        """The type of the keys' data."""
        return typeof(self._base_array)


tree_util.register_pytree_node(
    KeyArray, lambda keys: ((keys._base_array,), keys._impl), lambda impl, data: KeyArray(impl, *data)
)
