"""The narrow floats and integers of `ml_dtypes`, by name: that package loads with the first of them.

It takes as long to load as much of ferrax, and many programs have no narrow numbers. NumPy learns of them from it:
until then a placeholder stands in NumPy's table of names, so that `numpy.dtype("bfloat16")` means the same from the
start. Read next: `dtypes.py`.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

__all__ = ["KINDS", "limits", "name_for_numpy"]

#: Name -> the kind that NumPy has for wider ones: "f", "i" or "u".
KINDS = {
    "bfloat16": "f",
    "float4_e2m1fn": "f",
    "float6_e2m3fn": "f",
    "float6_e3m2fn": "f",
    "float8_e3m4": "f",
    "float8_e4m3": "f",
    "float8_e4m3b11fnuz": "f",
    "float8_e4m3fn": "f",
    "float8_e4m3fnuz": "f",
    "float8_e5m2": "f",
    "float8_e5m2fnuz": "f",
    "float8_e8m0fnu": "f",
    "int1": "i",
    "int2": "i",
    "int4": "i",
    "uint1": "u",
    "uint2": "u",
    "uint4": "u",
}


def limits(dtype: Any) -> Any:
    """`finfo` or `iinfo` of a dtype, whichever it has."""
    dtype = np.dtype(dtype)
    if dtype.name in KINDS:
        import ml_dtypes

        return ml_dtypes.finfo(dtype) if KINDS[dtype.name] == "f" else ml_dtypes.iinfo(dtype)
    return np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)


class _Placeholder(type):
    """The class of what NumPy finds by the name of a narrow dtype before `ml_dtypes` says what that is."""

    @property
    def dtype(cls) -> np.dtype:
        """The dtype, of which NumPy asks a class that it does not know."""
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, cls.__name__))


def _installed() -> list[str]:
    """The dtypes of the installed `ml_dtypes`, read from the text of its module, which takes long to run."""
    found = (finder.find_spec("ml_dtypes", None) for finder in sys.meta_path if hasattr(finder, "find_spec"))
    spec = next((spec for spec in found if spec is not None), None)
    if spec is None or spec.origin is None:
        return []
    with open(spec.origin, encoding="utf-8") as file:
        lines = [line.split() for line in file]
    return [words[3] for words in lines if words[:3] == ["from", "ml_dtypes._ml_dtypes_ext", "import"]]


def name_for_numpy() -> None:
    """Lets NumPy know the names: all that `ml_dtypes` adds, as code that goes through the table loads it on the way."""
    if "ml_dtypes" not in sys.modules:
        for name in _installed():
            np.sctypeDict.setdefault(name, _Placeholder(name, (), {}))  # type: ignore[arg-type]
