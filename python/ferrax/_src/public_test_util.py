"""Comparisons for tests, and how close results are to be."""

from typing import Any

import ml_dtypes
import numpy as np

from ferrax import dtypes as _dtypes, tree_util
from ferrax._src._test_dtypes import tolerance as tolerance
from ferrax._src.dtypes import _jax_types
from ferrax.test_util import (
    _TOLERANCES,
    Tolerance,
    _assert_close,
    check_grads as check_grads,
    check_jvp as check_jvp,
    check_vjp as check_vjp,
)

__all__ = ["check_grads", "check_jvp", "check_vjp"]

EPS = 1e-4
ToleranceDict = dict[np.dtype, int | float]

_FLOATS = [np.dtype(getattr(ml_dtypes, n)) for n in ("float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e8m0fnu")]
_default_tolerance: ToleranceDict = {_dtypes.float0: 0, **{d: tolerance(d) for d in [*_jax_types, *_FLOATS]}}
default_gradient_tolerance: ToleranceDict = {
    d: _TOLERANCES.get(d.name, _default_tolerance[d]) for d in _default_tolerance if _dtypes.issubdtype(d, np.inexact)
}


def default_tolerance() -> ToleranceDict:
    """How close results are to be, by dtype."""
    return _default_tolerance


def _dtype(x: Any) -> np.dtype:
    return x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype


def is_python_scalar(val: Any) -> bool:
    """Whether a value is a number of Python's."""
    return isinstance(val, (bool, int, float, complex)) and not isinstance(val, np.generic)


def check_close(xs: Any, ys: Any, atol: Tolerance = None, rtol: Tolerance = None, err_msg: str = "") -> None:
    """Raises unless two trees of arrays are close, by tolerances of their dtypes."""
    _assert_close(xs, ys, atol, rtol, err_msg, tolerance)


def _wide(x: Any) -> np.ndarray:
    x = np.asarray(x)
    narrow = x.dtype.kind == "V" or x.dtype == ml_dtypes.bfloat16
    return x.astype(np.float32) if narrow and x.dtype != _dtypes.float0 else x


def _assert_numpy_allclose(
    a: Any, b: Any, atol: float | None = None, rtol: float | None = None, err_msg: str = ""
) -> None:
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype == b.dtype == _dtypes.float0:
        np.testing.assert_array_equal(a, b, err_msg=err_msg)
        return
    near = 0.0 if atol is None else atol, 1e-7 if rtol is None else rtol
    np.testing.assert_allclose(_wide(a), _wide(b), atol=near[0], rtol=near[1], err_msg=err_msg)


def _check_dtypes_match(xs: Any, ys: Any) -> None:
    def match(x: Any, y: Any) -> None:
        assert _dtypes.canonicalize_dtype(_dtype(x)) == _dtypes.canonicalize_dtype(_dtype(y))

    tree_util.tree_map(match, xs, ys)


def rand_like(rng: np.random.RandomState, x: Any) -> Any:
    """Normally distributed numbers of a value's shape and dtype; a number of Python's where it is one."""
    drawn = rng.standard_normal(np.shape(x))
    if _dtypes.issubdtype(_dtype(x), np.complexfloating):
        drawn = drawn + 1j * rng.standard_normal(np.shape(x))
    drawn = np.asarray(drawn, _dtype(x))
    return drawn.item() if is_python_scalar(x) else drawn
