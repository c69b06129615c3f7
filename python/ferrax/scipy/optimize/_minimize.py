"""`minimize`: its arguments, and what it gives back. Read next: `_quasi_newton.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ferrax import lax
from ferrax._core import asarray
from ferrax.numpy._args import Array, ArrayLike
from ferrax.numpy._dtype_functions import dtype_kind, inexact_dtype
from ferrax.scipy.optimize._quasi_newton import bfgs, lbfgs

__all__ = ["OptimizeResults", "minimize"]

_LIMITED = "l-bfgs-experimental-do-not-rely-on-this"


class OptimizeResults(NamedTuple):
    """What a minimization gives.

    Attributes:
      x: the last point, of shape (n,).
      success: whether the gradient there is small enough.
      status: 0 for success; for BFGS 1 for too many steps, 3 or 5 for a search along a line that failed; for L-BFGS 1,
        2 and 3 for too many steps, evaluations and gradients, 4 where the value no longer falls, 5 for a search that
        failed.
      fun: the value at `x`.
      jac: the gradient at `x`.
      hess_inv: an approximation of the inverse Hessian at `x`, of shape (n, n); None for L-BFGS.
      nfev: number of evaluations of the function.
      njev: number of evaluations of its gradient.
      nit: number of steps.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.optimize
    >>> x = jnp.ones(2)
    >>> ferrax.scipy.optimize.minimize(lambda x: jnp.sum(x * x), x, method="BFGS").success
    Array(True, dtype=bool)
    """

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


def minimize(fun: Callable[..., Array], x0: ArrayLike, args: tuple = (), *, method: str, tol: float | None = None,
             options: Mapping[str, Any] | None = None) -> OptimizeResults:  # fmt: skip
    """The minimum of a function that can be differentiated, near a point.

    Args:
      fun: takes an array of shape (n,) and `args`, and gives a real scalar.
      x0: where to start, an array of shape (n,).
      args: tuple of more arguments.
      method: "BFGS", or "l-bfgs-experimental-do-not-rely-on-this" for BFGS with a limited memory, which takes complex
        points too. Case does not count.
      tol: the largest gradient that counts as converged; None for what `options` say.
      options: `maxiter`, `norm` (the order of the norm of gradients), `gtol`; for BFGS `line_search_maxiter`; for
        L-BFGS `maxcor` (number of steps that are remembered), `ftol`, `maxfun`, `maxgrad`, `maxls`.

    Returns:
      An `OptimizeResults`. It has no derivatives with respect to `args` (the loop has none in reverse).

    Raises:
      TypeError: `args` is no tuple, an option is unknown, or BFGS gets a complex point.
      ValueError: there is no such method, or `x0` is no vector.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.optimize
    >>> result = ferrax.scipy.optimize.minimize(lambda x, y: jnp.sum((x - y) ** 2), jnp.zeros(2), (3.,), method="BFGS")
    >>> jnp.round(result.x, 3)
    Array([3., 3.], dtype=float32)
    """
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to jax.scipy.optimize.minimize must be a tuple, got {args}")
    methods = {"bfgs": bfgs, _LIMITED: lbfgs}
    if method.lower() not in methods:
        raise ValueError(f"Method {method} not recognized; methods are 'BFGS' and '{_LIMITED}'.")
    x = asarray(x0)
    if x.ndim != 1:
        raise ValueError(f"scipy.optimize.minimize: x0 must have shape (n,), got {x.shape}; ravel it.")
    x = lax.convert_element_type(x, inexact_dtype(x.dtype))
    if method.lower() == "bfgs" and dtype_kind(x.dtype) == "c":
        raise TypeError(
            f"scipy.optimize.minimize: BFGS needs a real x0, got {x.dtype}; '{_LIMITED}' takes complex ones."
        )
    chosen = dict(options or {}) | ({} if tol is None else {"gtol": tol})
    out = methods[method.lower()](lambda x: fun(x, *args), x, **chosen)
    return OptimizeResults(
        x=out.x,
        success=out.converged & ~out.failed,
        status=out.status,
        fun=out.value,
        jac=out.gradient,
        hess_inv=out.memory if method.lower() == "bfgs" else None,
        nfev=out.evaluations,
        njev=out.evaluations,
        nit=out.steps,
    )
