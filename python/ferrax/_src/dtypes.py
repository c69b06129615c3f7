"""Questions about dtypes."""

from typing import Any

from ferrax import dtypes as _dtypes
from ferrax.dtypes import TypePromotionError as TypePromotionError


class ExtendedDType:
    """What dtypes that libraries define derive from; arrays of them are not supported."""


DType = Any


def __getattr__(name: str) -> Any:
    return getattr(_dtypes, name)
