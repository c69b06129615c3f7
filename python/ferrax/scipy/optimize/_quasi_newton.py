"""BFGS, and BFGS with a limited memory.

Source: Nocedal and Wright, "Numerical Optimization" (2006), algorithms 6.1 and 7.4. Read next: `_line_search.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ferrax import lax
from ferrax._core import asarray
from ferrax.numpy import _linalg_norms, _products, _ufuncs
from ferrax.numpy._args import Array
from ferrax.numpy._dtype_functions import dtype_kind
from ferrax.scipy.optimize._line_search import line_search, real_dot, value_and_gradient

__all__ = ["State", "bfgs", "lbfgs"]

_dot = partial(_products.matmul, precision="highest")


class State(NamedTuple):
    """Where a minimization is; `memory` is the inverse Hessian, or what stands for it."""

    converged: Array
    failed: Array
    steps: Array
    evaluations: Array
    x: Array
    value: Array
    gradient: Array
    memory: Any
    last_value: Array
    status: Array


class Pairs(NamedTuple):
    """The last steps and changes of the gradient, and the factors 1 / (yᵀ s); `gamma` scales the first Hessian."""

    s: Array
    y: Array
    rho: Array
    gamma: Array


def _conj(x: Array) -> Array:
    return lax.conj(x) if dtype_kind(x.dtype) == "c" else x


def _cast(x: Array, like: Array) -> Array:
    return lax.convert_element_type(x, like.dtype)


def _start(fun: Callable[[Array], Array], x: Array, memory: Any, order: Any, gtol: float) -> State:
    value, gradient = value_and_gradient(fun, x)
    zero, one = (asarray(i, dtype=np.int32) for i in (0, 1))
    small = _linalg_norms.norm(gradient, order) < gtol
    last = value + _cast(_linalg_norms.norm(gradient), value) / 2
    return State(small, asarray(False), zero, one, x, value, gradient, memory, last, zero)


def bfgs(fun: Callable[[Array], Array], x0: Array, maxiter: int | None = None, norm: Any = np.inf, gtol: float = 1e-5,
         line_search_maxiter: int = 10) -> State:  # fmt: skip
    """Minimizes a function of a real vector; `memory` of the result is the inverse Hessian."""
    n = x0.shape[0]
    most = 200 * n if maxiter is None else maxiter
    one = lax.convert_element_type(np.eye(n), x0.dtype)

    def unfinished(state):
        return ~state.converged & ~state.failed & (state.steps < most)

    def step(state):
        direction = -_dot(state.memory, state.gradient)
        first = 1.01 * 2 * (state.value - state.last_value) / real_dot(state.gradient, direction)
        first = _ufuncs.where((first > 0) & (first <= 1), first, lax.full_like(first, 1))
        found = line_search(fun, state.x, direction, state.value, state.gradient, first, line_search_maxiter)
        s, y = _cast(found.step, x0) * direction, found.gradient - state.gradient
        rho = 1.0 / real_dot(y, s)
        w = one - rho * s[:, None] * y[None, :]
        memory = _dot(_dot(w, state.memory), w.T) + rho * s[:, None] * s[None, :]
        status = _ufuncs.where(found.failed, 2 + found.status, lax.full_like(found.status, 0))
        return State(
            converged=_linalg_norms.norm(found.gradient, norm) < gtol,
            failed=found.failed,
            steps=state.steps + 1,
            evaluations=state.evaluations + found.evaluations,
            x=state.x + s,
            value=found.value,
            gradient=found.gradient,
            memory=_ufuncs.where(lax.is_finite(rho), memory, state.memory),
            last_value=state.value,
            status=status,
        )

    out = lax.while_loop(unfinished, step, _start(fun, x0, one, norm, gtol))
    number = partial(lax.full_like, out.status)
    status = _ufuncs.where(out.failed, out.status, number(1))
    return out._replace(status=_ufuncs.where(out.converged, number(0), status))


def _direction(state: State) -> Array:
    """Minus the inverse Hessian times the gradient, by two loops over the pairs; empty pairs have rho zero."""
    s, y, rho, gamma = state.memory

    def back(q, pair):
        s, y, rho = pair
        a = rho * real_dot(_conj(s), q)
        return q - _cast(a, q) * _conj(y), a

    def forth(q, pair):
        s, y, rho, a = pair
        b = rho * real_dot(y, q)
        return q + _cast(a - b, q) * s, None

    q, a = lax.scan(back, -_conj(state.gradient), (s, y, rho), reverse=True)
    return lax.scan(forth, _cast(gamma, q) * q, (s, y, rho, a))[0]


def _remembered(pairs: Pairs, s: Array, y: Array) -> Pairs:
    """The pairs with a new one in place of the oldest."""
    product = real_dot(y, s)
    rho = 1.0 / product

    def shifted(old, x):
        return lax.concatenate([old[1:], x[None]], 0)

    gamma = product / real_dot(_conj(y), y)
    new = Pairs(shifted(pairs.s, s), shifted(pairs.y, y), shifted(pairs.rho, rho), gamma)
    good = lax.is_finite(rho) & (product > 0)
    return Pairs(*(_ufuncs.where(good, a, b) for a, b in zip(new, pairs)))


def lbfgs(fun: Callable[[Array], Array], x0: Array, maxiter: float | None = None, norm: Any = np.inf, maxcor: int = 10,
          ftol: float = 2.220446049250313e-09, gtol: float = 1e-05, maxfun: float | None = None,
          maxgrad: float | None = None, maxls: int = 20) -> State:  # fmt: skip
    """Minimizes a function of a real or complex vector."""
    n = x0.shape[0]
    if maxiter is None and maxfun is None and maxgrad is None:
        maxiter = 200 * n
    limits = [np.inf if limit is None else limit for limit in (maxiter, maxfun, maxgrad)]
    real = lax.full_like(lax.real(x0) if dtype_kind(x0.dtype) == "c" else x0, 0)
    empty = lax.full_like(x0, 0, shape=(maxcor, n))
    pairs = Pairs(empty, empty, lax.full_like(real, 0, shape=(maxcor,)), lax.full_like(real, 1, shape=()))

    def unfinished(state):
        return ~state.converged & ~state.failed

    def step(state):
        direction = _direction(state)
        found = line_search(fun, state.x, direction, state.value, state.gradient, lax.full_like(state.value, 1), maxls)
        s, y = _cast(found.step, x0) * direction, found.gradient - state.gradient
        number = partial(lax.full_like, state.status)
        evaluations = lax.convert_element_type(state.evaluations, np.float32)
        status = _ufuncs.where(state.value - found.value < ftol, number(4), number(0))
        status = _ufuncs.where(evaluations >= limits[2], number(3), status)
        status = _ufuncs.where(evaluations >= limits[1], number(2), status)
        status = _ufuncs.where(lax.convert_element_type(state.steps, np.float32) >= limits[0], number(1), status)
        status = _ufuncs.where(found.failed, number(5), status)
        converged = _linalg_norms.norm(found.gradient, norm) < gtol
        return State(
            converged=converged,
            failed=(status > 0) & ~converged,
            steps=state.steps + 1,
            evaluations=state.evaluations + found.evaluations,
            x=state.x + s,
            value=found.value,
            gradient=found.gradient,
            memory=_remembered(state.memory, s, y),
            last_value=state.value,
            status=_ufuncs.where(converged, number(0), status),
        )

    return lax.while_loop(unfinished, step, _start(fun, x0, pairs, norm, gtol))
