"""Initial value problems of ordinary differential equations: `odeint`.

Steps of Dormand and Prince's pair of orders 5 and 4, of a length that keeps the estimated error within bounds; values
between them by the quartic through ends, slopes and the middle of a step. Gradients solve the adjoint equation backward
in time, so that their memory does not grow with the number of steps.
Sources: Dormand and Prince, "A family of embedded Runge-Kutta formulae" (1980); Shampine, "Some practical Runge-Kutta
formulas" (1986), error and middle; Hairer, Norsett, Wanner, "Solving Ordinary Differential Equations I" (1993), II.4;
Chen et al., "Neural ordinary differential equations" (2018), adjoint.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ferrax import dtypes, lax, numpy as jnp, tree_util
from ferrax._api import closure_convert, jit, vmap
from ferrax._boundary import expose as _expose
from ferrax._core import Array
from ferrax._derivatives import vjp
from ferrax.custom_derivatives import custom_vjp
from ferrax.extend.core import valid_jaxtype
from ferrax.flatten_util import ravel_pytree

__all__ = ["odeint"]

_TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_STAGES = np.array(
    [
        [1 / 5, 0, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0],
    ]
)
_END = np.array([35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0])
_ERROR = _END - np.array([1951 / 21600, 0, 22642 / 50085, 451 / 720, -12231 / 42400, 649 / 6300, 1 / 60])
_MIDDLE = (
    np.array(
        [
            6025192743 / 30085553152,
            0,
            51252292925 / 65400821598,
            -2691868925 / 45128329728,
            187940372067 / 1594534317056,
            -1776094331 / 19743644256,
            11237099 / 235043384,
        ]
    )
    / 2
)

_Function = Callable[..., Array]


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = math.inf,
    hmax: float = math.inf,
) -> Any:
    """The solution of dy/dt = func(y, t, *args) at given times; differentiable in reverse mode.

    Args:
      func: function `(y, t, *args)` that gives the time derivative, a pytree like `y`.
      y0: pytree of arrays, the state at the first time.
      t: float array of increasing times, of shape (n,).
      *args: pytrees of arrays, further arguments of `func`.
      rtol: bound of the error of a step relative to the state.
      atol: bound of the error of a step.
      mxstep: largest number of steps from one time to the next.
      hmax: longest step.

    Returns:
      The state at each time: a pytree like `y0`, whose leaves have a leading axis of length n.

    Raises:
      TypeError: an argument is not made of arrays, or `t` is not made of floats.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.ode import odeint
    >>> y = odeint(lambda y, t: -y, jnp.array(1.0), jnp.array([0.0, 1.0]), rtol=1e-5)
    >>> print(y.round(4))
    [1.     0.3679]
    """
    for leaf in tree_util.tree_leaves(args):
        if not valid_jaxtype(leaf):
            raise TypeError(f"The contents of odeint *args must be arrays or scalars, but got {leaf!r}.")
    times = jnp.asarray(t)
    if not dtypes.issubdtype(times.dtype, np.floating):
        raise TypeError(f"t must be an array of floats, but got {t}.")
    y0, args = tree_util.tree_map(jnp.asarray, (y0, args))
    closed, captured = closure_convert(func, y0, times[0], *args)
    if not captured:
        closed = func
    return _solved(closed, rtol, atol, mxstep, hmax, y0, times, *args, *captured)


@partial(jit, static_argnums=(0, 1, 2, 3, 4))
def _solved(
    func: _Function, rtol: float, atol: float, mxstep: float, hmax: float, y0: Any, times: Array, *args: Any
) -> Any:
    flat, unravel = ravel_pytree(y0)

    def slope(y: Array, t: Array, *args: Any) -> Array:
        return ravel_pytree(func(unravel(y), t, *args))[0].astype(y.dtype)

    # what has no derivative is not an operand of the function with the adjoint rule
    leaves, tree = tree_util.tree_flatten(args)
    moving = [dtypes.issubdtype(x.dtype, np.inexact) for x in leaves]
    fixed = [x for x, moves in zip(leaves, moving, strict=True) if not moves]

    def joined(y: Array, t: Array, fixed: Any, *floats: Any) -> Array:
        ints, rest = iter(fixed), iter(floats)
        return slope(y, t, *tree.unflatten([next(rest) if moves else next(ints) for moves in moving]))

    floats = [x for x, moves in zip(leaves, moving, strict=True) if moves]
    options = (rtol, atol, mxstep, hmax)
    states = _adjoint(joined, options)(flat, times, fixed, *floats)
    return vmap(unravel)(states)


def _adjoint(func: _Function, options: tuple[float, ...]) -> Callable[..., Array]:
    """The solver as a function `(y0, times, fixed, *floats) -> states` with its derivative rule."""

    @custom_vjp
    def solve(y0: Array, times: Array, fixed: Any, *floats: Array) -> Array:
        return _integrated(lambda y, t: func(y, t, fixed, *floats), y0, times, options)

    def forward(y0: Array, times: Array, fixed: Any, *floats: Array) -> tuple[Array, Any]:
        states = solve(y0, times, fixed, *floats)
        return states, (states, times, fixed, floats)

    def backward(kept: Any, cotangents: Array) -> Any:
        states, times, fixed, floats = kept
        zeros = tree_util.tree_map(jnp.zeros_like, floats)
        blank = (states[-1], cotangents[-1], jnp.zeros_like(times[0]), zeros)
        _, unravel = ravel_pytree(blank)

        def reversed_slope(packed: Array, t: Array) -> Array:
            # time runs backward: s = -t
            y, y_bar, _, _ = unravel(packed)
            slope, pull = vjp(lambda y, t, *floats: func(y, t, fixed, *floats), y, -t, *floats)
            y_dot, t_dot, *rest = pull(y_bar.astype(slope.dtype))
            return ravel_pytree((-slope, y_dot, t_dot, tuple(rest)))[0]

        def step(carry: Any, i: Array) -> tuple[Any, Array]:
            y_bar, t0_bar, args_bar = carry
            slope = func(states[i], times[i], fixed, *floats)
            t_bar = jnp.real(jnp.sum(slope * cotangents[i])).astype(times.dtype)
            packed = ravel_pytree((states[i], y_bar, t0_bar - t_bar, args_bar))[0]
            between = jnp.stack([-times[i], -times[i - 1]])
            _, y_bar, t0_bar, args_bar = unravel(_integrated(reversed_slope, packed, between, options)[1])
            return (y_bar + cotangents[i - 1], t0_bar, args_bar), t_bar

        carry = (cotangents[-1], jnp.zeros_like(times[0]), zeros)
        (y_bar, t0_bar, args_bar), t_bars = lax.scan(step, carry, jnp.arange(len(times) - 1, 0, -1))
        times_bar = jnp.concatenate([t0_bar[None], t_bars[::-1]])
        return y_bar, times_bar, tree_util.tree_map(lambda _: None, fixed), *args_bar

    solve.defvjp(forward, backward)
    return solve


def _integrated(func: _Function, y0: Array, times: Array, options: tuple[float, ...]) -> Array:
    """The states at the times, of shape (n, size)."""
    rtol, atol, mxstep, hmax = options
    f0 = func(y0, times[0])
    first = jnp.clip(_first_step(func, times[0], y0, rtol, atol, f0), 0.0, hmax).astype(times.dtype)

    def to_time(carry: Any, target: Array) -> tuple[Any, Array]:
        def short(state: Any) -> Array:
            steps, (_, _, t, dt, _, _) = state
            return (t < target) & (steps < mxstep) & (dt > 0)

        def step(state: Any) -> Any:
            steps, (y, f, t, dt, last, quartic) = state
            y_next, f_next, error, slopes = _step(func, y, f, t, dt)
            ratio = _error_ratio(error, rtol, atol, y, y_next)
            accepted = (y_next, f_next, t + dt, t, _quartic(y, y_next, slopes, dt))
            kept = (y, f, t, last, quartic)
            y, f, t, last, quartic = (jnp.where(ratio <= 1.0, a, b) for a, b in zip(accepted, kept, strict=True))
            return steps + 1, (y, f, t, jnp.clip(_next_step(dt, ratio), 0.0, hmax).astype(dt.dtype), last, quartic)

        _, carry = lax.while_loop(short, step, (jnp.zeros((), times.dtype), carry))
        _, _, t, _, last, quartic = carry
        place = ((target - last) / (t - last)).astype(quartic.dtype)
        return carry, jnp.polyval(quartic, place)

    carry = (y0, f0, times[0], first, times[0], jnp.stack([y0] * 5))
    _, states = lax.scan(to_time, carry, times[1:])
    return jnp.concatenate([y0[None], states])


def _step(func: _Function, y: Array, f: Array, t: Array, dt: Array) -> tuple[Array, Array, Array, Array]:
    """A step of the pair: the next state and its slope, the estimated error, and the slopes of all stages."""
    size = dt.astype(y.dtype)
    slopes = jnp.zeros((7, *f.shape), f.dtype).at[0].set(f)
    for i, time in enumerate(_TIMES):
        stage = y + size * jnp.tensordot(jnp.asarray(_STAGES[i], f.dtype), slopes, 1)
        slopes = slopes.at[i + 1].set(func(stage, t + dt * time))
    y_next = size * jnp.tensordot(jnp.asarray(_END, f.dtype), slopes, 1) + y
    error = size * jnp.tensordot(jnp.asarray(_ERROR, f.dtype), slopes, 1)
    return y_next, slopes[-1], error, slopes


def _quartic(y0: Array, y1: Array, slopes: Array, dt: Array) -> Array:
    """Coefficients, the highest first, of the quartic of a step that runs from 0 to 1."""
    size = dt.astype(y0.dtype)
    middle = y0 + size * jnp.tensordot(jnp.asarray(_MIDDLE, slopes.dtype), slopes, 1)
    d0, d1 = size * slopes[0], size * slopes[-1]
    return jnp.stack(
        [
            -2 * d0 + 2 * d1 - 8 * y0 - 8 * y1 + 16 * middle,
            5 * d0 - 3 * d1 + 18 * y0 + 14 * y1 - 32 * middle,
            -4 * d0 + d1 - 11 * y0 - 5 * y1 + 16 * middle,
            d0,
            y0,
        ]
    )


def _first_step(func: _Function, t0: Array, y0: Array, rtol: float, atol: float, f0: Array) -> Array:
    """A first step from sizes of the state and of its first two derivatives."""
    scale = atol + jnp.abs(y0) * rtol
    d0, d1 = jnp.linalg.norm(y0 / scale), jnp.linalg.norm(f0 / scale)
    small = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = jnp.where(small, 1e-6, 0.01 * d0 / jnp.where(small, 1.0, d1))
    f1 = func(y0 + h0.astype(y0.dtype) * f0, t0 + h0.astype(t0.dtype))
    d2 = jnp.linalg.norm((f1 - f0) / scale) / h0
    flat = (d1 <= 1e-15) & (d2 <= 1e-15)
    steepest = jnp.where(flat, 1.0, jnp.maximum(d1, d2))
    h1 = jnp.where(flat, jnp.maximum(1e-6, h0 * 1e-3), (0.01 / steepest) ** (1 / 5))
    return jnp.minimum(100.0 * h0, h1)


def _error_ratio(error: Array, rtol: float, atol: float, y0: Array, y1: Array) -> Array:
    """The root mean square of a step's errors in units of what is allowed."""
    allowed = atol + rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))
    return jnp.sqrt(jnp.mean(jnp.square(jnp.abs(error / allowed))))


def _next_step(dt: Array, ratio: Array) -> Array:
    """The next step from the error of the last one, which has order 5."""
    shrink = jnp.where(ratio < 1, 1.0, 0.2)
    factor = jnp.where(ratio == 0, 10.0, 0.9 * jnp.where(ratio == 0, 1.0, ratio) ** -0.2)
    return dt * jnp.minimum(10.0, jnp.maximum(factor, shrink)).astype(dt.dtype)


_expose(globals())
