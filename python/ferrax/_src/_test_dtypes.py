"""Groups of dtypes for tests, and how close results are to be in each. Read next: `test_util.py`."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import ferrax
from ferrax import dtypes as _dtypes, tree_util
from ferrax.config import config
from ferrax.numpy._dtype_functions import inexact_dtype
from ferrax.test_util import _given

_GROUPS = {
    "boolean": ("bool_",),
    "integer": ("int32", "int64"),
    "all_integer": ("int8", "int16", "int32", "int64"),
    "unsigned": ("uint32", "uint64"),
    "all_unsigned": ("uint8", "uint16", "uint32", "uint64"),
    "floating": ("float32", "float64"),
    "custom_floats": ("bfloat16",),
    "all_floating": ("bfloat16", "float16", "float32", "float64"),
    "complex": ("complex64", "complex128"),
}
_GROUPS["inexact"] = _GROUPS["floating"] + _GROUPS["complex"]
_GROUPS["all_inexact"] = _GROUPS["all_floating"] + _GROUPS["complex"]
_GROUPS["numeric"] = _GROUPS["floating"] + _GROUPS["integer"] + _GROUPS["unsigned"] + _GROUPS["complex"]
_GROUPS["all"] = (
    _GROUPS["all_floating"] + _GROUPS["all_integer"] + _GROUPS["all_unsigned"] + _GROUPS["complex"] + _GROUPS["boolean"]
)


class _LazyDtypes:
    """Groups of dtypes, of those that there are: 64-bit ones where they are enabled."""

    def supported(self, among: Iterable[Any]) -> list[Any]:
        """Those of some dtypes that there are."""
        wide = bool(config.jax_enable_x64)
        return [d for d in among if wide or np.dtype(d) == np.dtype(_dtypes.canonicalize_dtype(d))]

    def __getattr__(self, name: str) -> Any:
        if name not in _GROUPS:
            raise AttributeError(f"there is no group of dtypes {name!r}; there are {', '.join(_GROUPS)}")
        return self.supported([getattr(ferrax.numpy, member).dtype.type for member in _GROUPS[name]])


dtypes = _LazyDtypes()


def supported_dtypes() -> set[Any]:
    """The dtypes that tests use on a device."""
    return {
        *dtypes.all,
        *(getattr(ferrax.numpy, name).dtype.type for name in ("int4", "uint4")),
    }


_TOLERANCES = {
    "bfloat16": 1e-2,
    "float16": 1e-3,
    "float32": 1e-6,
    "complex64": 1e-6,
    "float64": 1e-15,
    "complex128": 1e-15,
}


def tolerance(dtype: Any, tol: Any = None) -> float:
    """The tolerance of a dtype: given as a number, by dtype, or the dtype's own."""
    if isinstance(tol, dict):
        tol = _given(tol, np.dtype(dtype), np.dtype(_dtypes.canonicalize_dtype(dtype)))
    if tol is not None:
        return float(tol)
    name = np.dtype(dtype).name
    if name == "float8_e8m0fnu":  # powers of two
        return 1.0
    return _TOLERANCES.get(name, 0.1 if name.startswith("float8") else 1.0 if name.startswith("float4") else 0.0)


def join_tolerance(tol1: Any, tol2: Any) -> Any:
    """The larger of two tolerances, for each dtype that one of them names."""
    if not isinstance(tol1, dict) and not isinstance(tol2, dict):
        return max(tol1 or 0, tol2 or 0) or None
    named = {np.dtype(k) for t in (tol1, tol2) if isinstance(t, dict) for k in t}
    return {d: max(tolerance(d, tol1), tolerance(d, tol2)) for d in named}


def to_default_dtype(arr: Any) -> np.ndarray:
    """An array in the default dtype of its kind."""
    arr = np.asarray(arr)
    return arr.astype(
        np.dtype(_dtypes.canonicalize_dtype({"f": float, "i": int, "c": complex}.get(arr.dtype.kind, arr.dtype)))
    )


def with_jax_dtype_defaults(func: Callable[..., Any], use_defaults: Any = True) -> Callable[..., Any]:
    """A reference function whose results have the library's default dtypes: all of them, or those that a tree marks."""
    convert = lambda result, marked: to_default_dtype(result) if marked else np.asarray(result)

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        results = func(*args, **kwargs)
        if isinstance(use_defaults, bool):
            return tree_util.tree_map(lambda r: convert(r, use_defaults), results)
        return tree_util.tree_map(convert, results, use_defaults)

    return wrapped


def promote_like_jnp(fun: Callable[..., Any], inexact: bool = False) -> Callable[..., Any]:
    """A reference function of NumPy's whose arguments are promoted as `ferrax.numpy` promotes them."""

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = tree_util.tree_flatten(args)
        dtype = ferrax.numpy.result_type(*leaves)
        if inexact and not _dtypes.issubdtype(dtype, np.inexact):
            dtype = inexact_dtype(dtype)
        return fun(*tree_util.tree_unflatten(tree, [np.asarray(x, dtype) for x in leaves]), **kwargs)

    return wrapped


def strict_promotion_if_dtypes_match(dtypes: Sequence[Any]) -> Any:
    """A context of strict promotion where all dtypes are one."""
    same = all(np.dtype(d) == np.dtype(dtypes[0]) for d in dtypes)
    return ferrax.numpy_dtype_promotion("strict") if same else contextlib.nullcontext()
