"""Names for annotations."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax.typing import Array as Array, ArrayLike as ArrayLike, DTypeLike as DTypeLike, SupportsDType as SupportsDType


class DeprecatedArg:
    """Stands for an argument that JAX no longer has and nobody gave."""

    def __repr__(self) -> str:
        return "Deprecated"


DType = np.dtype
ExtendedDType = Any
DimSize = int | Any
Shape = Sequence[DimSize]
