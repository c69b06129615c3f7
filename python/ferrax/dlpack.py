"""DLPack: arrays to and from other libraries without a copy.

Arrays have `__dlpack__`, so that `numpy.from_dlpack(x)` and `torch.from_dlpack(x)` take them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ferrax import _ferrax
from ferrax._boundary import expose as _expose
from ferrax.numpy import from_dlpack as _from_dlpack

__all__ = ["from_dlpack", "is_supported_dtype"]


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Any:
    """An array of another library's memory; see `ferrax.numpy.from_dlpack`.

    Args:
      external_array: object with `__dlpack__` and `__dlpack_device__`.
      device: where to place the array.
      copy: None to share memory that is marked read-only, True never to share, False to share in any case.

    Returns:
      Array of the shape and dtype of `external_array`.

    >>> import numpy, ferrax
    >>> ferrax.dlpack.from_dlpack(numpy.ones(2, "float32"))
    Array([1., 1.], dtype=float32)
    """
    return _from_dlpack(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of a dtype can go through DLPack.

    Args:
      dtype: anything that names a dtype.

    Returns:
      A bool: false for dtypes that only NumPy has, as for those that DLPack lacks.

    Raises:
      TypeError: of what names no dtype.

    >>> import ferrax
    >>> ferrax.dlpack.is_supported_dtype("bfloat16"), ferrax.dlpack.is_supported_dtype("int4")
    (True, False)
    """
    try:
        return bool(_ferrax.has_dlpack_type(dtype))
    except TypeError:
        if dtype is None:
            raise
        np.dtype(dtype)  # NumPy knows it, or says that it is none
        return False


_expose(globals())
