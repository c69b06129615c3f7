"""The search along a line that `minimize` makes, by itself."""

from collections.abc import Callable
from typing import Any, NamedTuple

from ferrax import lax
from ferrax._core import Array
from ferrax._src.numpy.util import promote_dtypes_inexact
from ferrax.numpy import asarray, where
from ferrax.scipy.optimize import _line_search
from ferrax.scipy.optimize._line_search import real_dot, value_and_gradient


class _LineSearchResults(NamedTuple):
    """What a search found: `a_k` is the step, `f_k` and `g_k` the value and the gradient there."""

    failed: Array
    nit: Array
    nfev: Array
    ngev: Array
    #: the step outwards that would be next
    k: Array
    a_k: Array
    f_k: Array
    g_k: Array
    #: 0 where the search succeeded, 1 where the bracket could not be narrowed, 3 where there were too many steps
    status: Array


def line_search(
    f: Callable[[Array], Array],
    xk: Any,
    pk: Any,
    old_fval: Any = None,
    old_old_fval: Any = None,
    gfk: Any = None,
    c1: float = 1e-4,
    c2: float = 0.9,
    maxiter: int = 20,
) -> _LineSearchResults:
    """A step that meets the strong conditions of Wolfe.

    Args:
      f: function of an array, with a real scalar as result.
      xk: where to start.
      pk: the direction, in which `f` falls.
      old_fval: `f` at `xk`, where it is known together with `gfk`.
      old_old_fval: `f` at the point before, which says how far the first step goes.
      gfk: the gradient of `f` at `xk`.
      c1: which part of the fall that the first slope promises is enough.
      c2: which part of the first slope is flat enough.
      maxiter: the most steps outwards.

    Returns:
      The step and what is known of it.
    """
    x, direction = promote_dtypes_inexact(xk, pk)
    known = old_fval is not None and gfk is not None
    value, gradient = (asarray(old_fval), asarray(gfk)) if known else value_and_gradient(f, x)
    first = lax.full_like(value, 1)
    if old_old_fval is not None:
        guess = 2.02 * (value - old_old_fval) / real_dot(gradient, direction)
        first = where(guess > 1, first, guess)
    found = _line_search.line_search(f, x, direction, value, gradient, first, maxiter, c1, c2)
    evaluations = found.evaluations + (0 if known else 1)
    return _LineSearchResults(
        found.failed, found.count, evaluations, evaluations, found.count + 1, found.step, found.value, found.gradient,
        found.status,
    )  # fmt: skip
