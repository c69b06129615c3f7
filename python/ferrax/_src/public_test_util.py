"""Comparisons for tests."""

from typing import Any

from ferrax.test_util import _assert_close, check_grads as check_grads, check_jvp as check_jvp, check_vjp as check_vjp


def check_close(xs: Any, ys: Any, atol: float | None = None, rtol: float | None = None, err_msg: str = "") -> None:
    """Raises unless two trees of arrays are close, by tolerances of their dtypes."""
    _assert_close(xs, ys, atol, rtol, err_msg)
