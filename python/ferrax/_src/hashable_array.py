"""Arrays by their values."""

from typing import Any

import numpy as np


class HashableArray:
    """A hashable wrapper of an array of NumPy's, equal to one of the same elements.

    Args:
      val: the array.
    """

    __slots__ = ("_hash", "val")

    def __init__(self, val: Any):
        self.val = np.array(val, copy=True)
        self.val.setflags(write=False)
        self._hash = hash((self.val.tobytes(), self.val.shape, self.val.dtype.name))

    def __repr__(self) -> str:
        return f"HashableArray({self.val!r})"

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, HashableArray)
            and self._hash == other._hash
            and self.val.dtype == other.val.dtype
            and np.array_equal(self.val, other.val, equal_nan=self.val.dtype.kind in "fc")
        )
