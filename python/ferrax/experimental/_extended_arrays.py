"""Arrays of dtypes that users define: there are none yet, but the class that they will have."""

from __future__ import annotations

from typing import Any, NoReturn

from ferrax._core import Array

__all__ = ["EArray"]


class EArray(Array):
    """An array of an extended dtype that is no random key.

    Args:
      aval: its type.
      data: an array of the numbers that stand for it.

    Raises:
      NotImplementedError: always: arrays of extended dtypes are random keys.

    >>> import ferrax as jax
    >>> isinstance(jax.numpy.ones(2), jax.experimental.EArray)
    False
    """

    def __new__(cls, aval: Any, data: Any) -> NoReturn:
        raise NotImplementedError(
            "EArray is not implemented: arrays of extended dtypes are random keys, of jax.random.key"
        )

    def __init__(self, aval: Any, data: Any):
        """Says what the class is called with; `__new__` raises."""
