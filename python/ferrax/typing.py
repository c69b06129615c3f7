"""Types for annotations: what the functions of `ferrax.numpy` take as arrays and as dtypes."""

from __future__ import annotations

from typing import Any, Protocol, Union, runtime_checkable

import numpy as np

from ferrax._ferrax import Array

__all__ = ["ArrayLike", "DTypeLike"]


@runtime_checkable
class SupportsDType(Protocol):
    """What has a dtype."""

    @property
    def dtype(self) -> Any:
        """The dtype."""
        ...


#: What can be converted to an array without a copy of a container: arrays, NumPy arrays and scalars, Python numbers.
ArrayLike = Union[Array, np.ndarray, np.bool_, np.number, bool, int, float, complex]  # noqa: UP007
#: What names a dtype.
DTypeLike = Union[str, type[Any], np.dtype, SupportsDType]  # noqa: UP007
