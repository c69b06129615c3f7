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
from ferrax._lazy import lend as _lend
from ferrax._src.numpy.util import promote_dtypes_inexact
from ferrax.custom_derivatives import custom_vjp
from ferrax.extend.core import valid_jaxtype
from ferrax.extend.linear_util import transformation2, wrap_init
from ferrax.flatten_util import ravel_pytree

__all__ = [
    "abs2",
    "fit_4th_order_polynomial",
    "initial_step_size",
    "interp_fit_dopri",
    "mean_error_ratio",
    "odeint",
    "optimal_step_size",
    "ravel_first_arg",
    "ravel_first_arg_",
    "runge_kutta_step",
]

# what JAX's module has from elsewhere
__getattr__ = _lend(
    __name__,
    {
        "ferrax._src.util": "map=safe_map safe_map safe_zip zip=safe_zip",
        "ferrax.tree_util": "tree_leaves tree_map",
    },
)

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
    first = jnp.clip(initial_step_size(func, times[0], y0, 4, rtol, atol, f0), 0.0, hmax).astype(times.dtype)

    def to_time(carry: Any, target: Array) -> tuple[Any, Array]:
        def short(state: Any) -> Array:
            steps, (_, _, t, dt, _, _) = state
            return (t < target) & (steps < mxstep) & (dt > 0)

        def step(state: Any) -> Any:
            steps, (y, f, t, dt, last, quartic) = state
            y_next, f_next, error, slopes = runge_kutta_step(func, y, f, t, dt)
            ratio = mean_error_ratio(error, rtol, atol, y, y_next)
            accepted = (y_next, f_next, t + dt, t, interp_fit_dopri(y, y_next, slopes, dt))
            kept = (y, f, t, last, quartic)
            y, f, t, last, quartic = (jnp.where(ratio <= 1.0, a, b) for a, b in zip(accepted, kept, strict=True))
            return steps + 1, (
                y,
                f,
                t,
                jnp.clip(optimal_step_size(dt, ratio), 0.0, hmax).astype(dt.dtype),
                last,
                quartic,
            )

        _, carry = lax.while_loop(short, step, (jnp.zeros((), times.dtype), carry))
        _, _, t, _, last, quartic = carry
        place = ((target - last) / (t - last)).astype(quartic.dtype)
        return carry, jnp.polyval(quartic, place)

    carry = (y0, f0, times[0], first, times[0], jnp.stack([y0] * 5))
    _, states = lax.scan(to_time, carry, times[1:])
    return jnp.concatenate([y0[None], states])


def ravel_first_arg(f: Callable[..., Any], unravel: Callable[[Array], Any], debug_info: Any) -> _Function:
    """A function of pytrees as one whose first argument and result are vectors.

    Args:
      f: function whose first argument, and result, are pytrees of arrays.
      unravel: makes the argument of a vector, as `ravel_pytree` gives it.
      debug_info: what errors say of the function, or None.

    Returns:
      The function; its other arguments stay as they are.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.ode import ravel_first_arg
    >>> f = ravel_first_arg(lambda y, t: [y["a"], t], lambda flat: {"a": flat[0]}, None)
    >>> print(f(jnp.array([3.0]), 2.0))
    [3. 2.]
    """
    return ravel_first_arg_(wrap_init(f, debug_info=debug_info), unravel).call_wrapped


@transformation2
def ravel_first_arg_(f: Callable[..., Any], unravel: Callable[[Array], Any], y_flat: Array, *args: Any) -> Array:
    """`ravel_first_arg` of wrapped functions.

    Args:
      f: function wrapped by `ferrax.extend.linear_util.wrap_init`.
      unravel: makes the argument of a vector.
      y_flat: the vector.
      *args: further arguments.

    Returns:
      The function's result as a vector.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.ode import ravel_first_arg_
    >>> from ferrax.extend.linear_util import wrap_init
    >>> print(ravel_first_arg_(wrap_init(lambda y: [y, y]), lambda flat: flat).call_wrapped(jnp.ones(1)))
    [1. 1.]
    """
    return ravel_pytree(f(unravel(y_flat), *args))[0]


def runge_kutta_step(func: _Function, y0: Array, f0: Array, t0: Array, dt: Array) -> tuple[Array, Array, Array, Array]:
    """A step of Dormand and Prince's pair.

    Args:
      func: function `(y, t)` that gives the slope of a state.
      y0: the state, of shape (size,).
      f0: its slope.
      t0: the time.
      dt: the length of the step, an array.

    Returns:
      `(y1, f1, error, slopes)`: the next state and its slope, the estimated error, and the slopes (7, size) of all
      stages.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.ode import runge_kutta_step
    >>> y, *_ = runge_kutta_step(lambda y, t: -y, jnp.ones(1), -jnp.ones(1), jnp.array(0.0), jnp.array(0.5))
    >>> print(y.round(4))
    [0.6065]
    """
    y0, f0, dt = jnp.asarray(y0), jnp.asarray(f0), jnp.asarray(dt)
    size = dt.astype(f0.dtype)
    slopes = jnp.zeros((7, *f0.shape), f0.dtype).at[0].set(f0)
    for i, time in enumerate(_TIMES):
        stage = y0 + size * jnp.tensordot(jnp.asarray(_STAGES[i], f0.dtype), slopes, 1)
        slopes = slopes.at[i + 1].set(func(stage, t0 + dt * time))
    y_next = size * jnp.tensordot(jnp.asarray(_END, f0.dtype), slopes, 1) + y0
    error = size * jnp.tensordot(jnp.asarray(_ERROR, f0.dtype), slopes, 1)
    return y_next, slopes[-1], error, slopes


def interp_fit_dopri(y0: Array, y1: Array, k: Array, dt: Array) -> Array:
    """Coefficients, the highest first, of the quartic of a step that runs from 0 to 1.

    Args:
      y0: the state at the start.
      y1: the state at the end.
      k: the slopes of the stages, of shape (7, size).
      dt: the length of the step, an array.

    Returns:
      Array of shape (5, size).

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.ode import interp_fit_dopri
    >>> print(interp_fit_dopri(jnp.zeros(1), jnp.ones(1), jnp.ones((7, 1)), jnp.array(1.0))[3:].ravel())
    [1. 0.]
    """
    y0, dt = jnp.asarray(y0), jnp.asarray(dt)
    middle = y0 + dt.astype(y0.dtype) * jnp.tensordot(jnp.asarray(_MIDDLE, y0.dtype), k, 1)
    return jnp.stack(fit_4th_order_polynomial(y0, y1, middle, k[0], k[-1], dt))


def fit_4th_order_polynomial(
    y0: Array, y1: Array, y_mid: Array, dy0: Array, dy1: Array, dt: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """Coefficients, the highest first, of the quartic through two ends with slopes, and the middle.

    Args:
      y0: the value at 0.
      y1: the value at 1.
      y_mid: the value at 1/2.
      dy0: the slope at the start, for a step of length `dt`.
      dy1: the slope at the end.
      dt: the length of the step, an array.

    Returns:
      Five arrays.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.ode import fit_4th_order_polynomial
    >>> print(*fit_4th_order_polynomial(*(jnp.array(x) for x in (0.0, 1.0, 0.0625, 0.0, 4.0, 1.0))))
    1.0 0.0 0.0 0.0 0.0
    """
    y0 = jnp.asarray(y0)
    dt = jnp.asarray(dt).astype(y0.dtype)
    return (
        -2.0 * dt * dy0 + 2.0 * dt * dy1 - 8.0 * y0 - 8.0 * y1 + 16.0 * y_mid,
        5.0 * dt * dy0 - 3.0 * dt * dy1 + 18.0 * y0 + 14.0 * y1 - 32.0 * y_mid,
        -4.0 * dt * dy0 + dt * dy1 - 11.0 * y0 - 5.0 * y1 + 16.0 * y_mid,
        dt * dy0,
        y0,
    )


def initial_step_size(fun: _Function, t0: Array, y0: Array, order: float, rtol: float, atol: float, f0: Array) -> Array:
    """A first step from sizes of the state and of its first two derivatives.

    Args:
      fun: function `(y, t)` that gives the slope of a state.
      t0: the time.
      y0: the state.
      order: the order of the method whose error is estimated.
      rtol: bound of the error of a step relative to the state.
      atol: bound of the error of a step.
      f0: the slope of the state.

    Returns:
      Array of shape ().

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.ode import initial_step_size
    >>> step = initial_step_size(lambda y, t: -y, jnp.array(0.0), jnp.ones(1), 4, 1e-6, 1e-6, -jnp.ones(1))
    >>> print(step.round(4))
    0.0289
    """
    y0, f0 = promote_dtypes_inexact(y0, f0)
    scale = (atol + jnp.abs(y0) * rtol).astype(y0.dtype)
    d0, d1 = jnp.linalg.norm(y0 / scale), jnp.linalg.norm(f0 / scale)
    small = (d0 < 1e-5) | (d1 < 1e-5)
    h0 = jnp.where(small, 1e-6, 0.01 * d0 / jnp.where(small, 1.0, d1))
    f1 = fun(y0 + h0.astype(y0.dtype) * f0, t0 + h0.astype(jnp.result_type(t0)))
    d2 = jnp.linalg.norm((f1 - f0) / scale) / h0
    flat = (d1 <= 1e-15) & (d2 <= 1e-15)
    steepest = jnp.where(flat, 1.0, jnp.maximum(d1, d2))
    h1 = jnp.where(flat, jnp.maximum(1e-6, h0 * 1e-3), (0.01 / steepest) ** (1.0 / (order + 1.0)))
    return jnp.minimum(100.0 * h0, h1)


def abs2(x: Array) -> Array:
    """The squares of magnitudes.

    Args:
      x: array of numbers, complex ones too.

    Returns:
      Array of real numbers.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.ode import abs2
    >>> print(abs2(jnp.array(3.0 + 4.0j)))
    25.0
    """
    return x.real**2 + x.imag**2 if jnp.iscomplexobj(x) else x**2


def mean_error_ratio(error_estimate: Array, rtol: float, atol: float, y0: Array, y1: Array) -> Array:
    """The root mean square of a step's errors in units of what is allowed.

    Args:
      error_estimate: the errors.
      rtol: bound of the error of a step relative to the state.
      atol: bound of the error of a step.
      y0: the state before the step.
      y1: the state after it.

    Returns:
      Array of shape (); a step of at most 1 is good.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.ode import mean_error_ratio
    >>> print(mean_error_ratio(jnp.array([0.5]), 0.0, 0.25, jnp.ones(1), jnp.ones(1)))
    2.0
    """
    allowed = atol + rtol * jnp.maximum(jnp.abs(y0), jnp.abs(y1))
    return jnp.sqrt(jnp.mean(abs2(error_estimate / allowed.astype(error_estimate.dtype))))


def optimal_step_size(
    last_step: Array,
    mean_error_ratio: Array,
    safety: float = 0.9,
    ifactor: float = 10.0,
    dfactor: float = 0.2,
    order: float = 5.0,
) -> Array:
    """The next step from the error of the last one.

    Args:
      last_step: the length of the last step.
      mean_error_ratio: its error in units of what is allowed.
      safety: factor by which the next step is shorter than the error says.
      ifactor: how many times longer it is at most.
      dfactor: how much of the last one it is at least; a good step is followed by none that is shorter.
      order: the order of the error.

    Returns:
      Array of shape ().

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.ode import optimal_step_size
    >>> print(optimal_step_size(jnp.array(1.0), jnp.array(0.0)))
    10.0
    """
    shrink = jnp.where(mean_error_ratio < 1, 1.0, dfactor)
    ratio = jnp.where(mean_error_ratio == 0, 1.0, mean_error_ratio)
    factor = jnp.minimum(ifactor, jnp.maximum(ratio ** (-1.0 / order) * safety, shrink))
    return jnp.where(mean_error_ratio == 0, last_step * ifactor, last_step * factor)


_expose(globals())
