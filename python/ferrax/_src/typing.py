"""Names for annotations."""

from collections.abc import Sequence
from typing import Any

from ferrax.typing import Array as Array, ArrayLike as ArrayLike, DTypeLike as DTypeLike, SupportsDType as SupportsDType

DType = Any
DimSize = int | Any
Shape = Sequence[DimSize]
