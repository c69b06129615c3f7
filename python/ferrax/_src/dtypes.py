"""Questions about dtypes."""

from typing import Any

from ferrax import dtypes as _dtypes
from ferrax.dtypes import TypePromotionError as TypePromotionError


def __getattr__(name: str) -> Any:
    return getattr(_dtypes, name)
