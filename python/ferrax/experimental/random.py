"""A random generator with a state that draws move on, in the manner of NumPy's: a key and a counter in a reference.

Read next: `ferrax/random`, whose functions take a key that does not change.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import numpy as jnp, random, tree_util
from ferrax._boundary import expose as _expose
from ferrax._core import Array
from ferrax._shapes import static_shape
from ferrax.ref import new_ref
from ferrax.typing import ArrayLike, DTypeLike

__all__ = ["StatefulPRNG", "stateful_rng"]

_Size = int | Sequence[int] | None


def _shape(size: _Size, *args: ArrayLike) -> tuple[int, ...]:
    """A shape that is given, or that of the parameters together."""
    if size is None:
        return tuple(np.broadcast_shapes(*(np.shape(x) for x in args)))
    return static_shape(size)


@dataclasses.dataclass(frozen=True)
class StatefulPRNG:
    """A random generator whose draws move its state on; made by `stateful_rng`.

    Args:
      _base_key: a typed key.
      _counter: a reference to an integer scalar.

    >>> from ferrax.experimental import random
    >>> rng = random.stateful_rng(42)
    >>> bool(rng.uniform() == rng.uniform())
    False
    """

    _base_key: Array
    _counter: Any

    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """A new key.

        Args:
          shape: the shape of an array of new keys; `()` for one.

        Returns:
          Typed keys of that shape.

        >>> from ferrax.experimental import random
        >>> random.stateful_rng(42).key((2,)).shape
        (2,)
        """
        if self._base_key.shape:
            raise ValueError("cannot operate on split stateful generator: give its parts to a function under jax.vmap")
        key = random.fold_in(self._base_key, self._counter[...])
        self._counter[...] = self._counter[...] + 1
        sizes = _shape(shape)
        return random.split(key, sizes) if sizes else key

    def random(self, size: _Size = None, dtype: DTypeLike = float) -> Array:
        """Uniformly distributed values in [0, 1).

        Args:
          size: shape of the result.
          dtype: its dtype.

        Returns:
          Array.

        >>> from ferrax.experimental import random
        >>> random.stateful_rng(42).random(3).shape
        (3,)
        """
        return self.uniform(size=size, dtype=dtype)

    def uniform(
        self, low: ArrayLike = 0, high: ArrayLike = 1, size: _Size = None, *, dtype: DTypeLike = float
    ) -> Array:
        """Uniformly distributed values in [low, high).

        Args:
          low: lower bounds.
          high: upper bounds.
          size: shape of the result; by default that of the bounds.
          dtype: its dtype.

        Returns:
          Array.

        >>> from ferrax.experimental import random
        >>> random.stateful_rng(42).uniform(1, 2, (3,)).shape
        (3,)
        """
        shape = _shape(size, low, high)
        return random.uniform(self.key(), shape, jnp.result_type(dtype), minval=low, maxval=high)

    def normal(
        self, loc: ArrayLike = 0, scale: ArrayLike = 1, size: _Size = None, *, dtype: DTypeLike = float
    ) -> Array:
        """Normally distributed values.

        Args:
          loc: means.
          scale: standard deviations.
          size: shape of the result; by default that of the parameters.
          dtype: its dtype.

        Returns:
          Array.

        >>> from ferrax.experimental import random
        >>> random.stateful_rng(42).normal(size=3).shape
        (3,)
        """
        kind = jnp.result_type(dtype)
        shape = _shape(size, loc, scale)
        drawn = random.normal(self.key(), shape, kind)
        mean, deviation = (jnp.broadcast_to(jnp.asarray(x, kind), shape) for x in (loc, scale))
        return mean + deviation * drawn

    def integers(
        self, low: ArrayLike, high: ArrayLike | None = None, size: _Size = None, *, dtype: DTypeLike = int
    ) -> Array:
        """Integers in [low, high), or in [0, low) without `high`.

        Args:
          low: lower bounds, or upper ones.
          high: upper bounds.
          size: shape of the result; by default that of the bounds.
          dtype: its dtype.

        Returns:
          Array.

        >>> from ferrax.experimental import random
        >>> random.stateful_rng(42).integers(10, size=3).shape
        (3,)
        """
        if high is None:
            low, high = 0, low
        return random.randint(self.key(), _shape(size, low, high), low, high, jnp.result_type(dtype))

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """Generators that are independent of this one and of each other.

        Args:
          n_children: how many.

        Returns:
          A list of generators.

        >>> from ferrax.experimental import random
        >>> len(random.stateful_rng(42).spawn(2))
        2
        """
        return [StatefulPRNG(key, new_ref(0)) for key in self.key((n_children,))]

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """Independent generators as one object, for `vmap`.

        Args:
          num: how many, or the shape of an array of them.

        Returns:
          A generator whose key and counter have leading axes.

        >>> from ferrax.experimental import random
        >>> random.stateful_rng(42).split(3)._base_key.shape
        (3,)
        """
        sizes = _shape(num)
        return StatefulPRNG(self.key(sizes), new_ref(jnp.zeros(sizes, int)))


tree_util.register_dataclass(StatefulPRNG, data_fields=["_base_key", "_counter"], meta_fields=[])


def stateful_rng(seed: ArrayLike | None = None, *, impl: Any = None) -> StatefulPRNG:
    """A random generator whose draws move its state on.

    Args:
      seed: an integer; by default one that NumPy draws from the system, outside of traces.
      impl: name of the generator of keys.

    Returns:
      The generator.

    Raises:
      TypeError: the seed is not an integer scalar, or there is none in a trace.

    >>> from ferrax.experimental import random
    >>> rng = random.stateful_rng(42)
    >>> print(rng.uniform(), rng.uniform())
    0.5302608 0.72766423
    """
    if seed is None:
        from ferrax import _ferrax

        if not _ferrax.is_eager():
            raise TypeError("When used within transformed code, stateful_rng() needs an explicit seed.")
        seed = np.random.default_rng().integers(0, np.iinfo(np.int32).max)
    return StatefulPRNG(random.key(seed, impl=impl), new_ref(0))


_expose(globals())
