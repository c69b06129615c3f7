"""What `dtypes` has from `ml_dtypes`, which takes long to load. Read next: `_narrow.py`."""

from ml_dtypes import bfloat16 as bfloat16, finfo as finfo, iinfo as iinfo

__all__ = ["bfloat16", "finfo", "iinfo"]
