"""Search along a line for a point that satisfies the strong Wolfe conditions.

Source: Nocedal and Wright, "Numerical Optimization" (2006), algorithms 3.5 (doubling the step until it brackets such
points) and 3.6 (narrowing the bracket), in one loop: each step evaluates the function once, whichever it is doing.
Constants are SciPy's. Read next: `_quasi_newton.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ferrax import lax, tree
from ferrax._core import asarray
from ferrax._derivatives import vjp
from ferrax.numpy import _products, _ufuncs
from ferrax.numpy._args import Array
from ferrax.numpy._dtype_functions import dtype_kind

__all__ = ["Found", "line_search", "real_dot", "value_and_gradient"]

_SUFFICIENT, _CURVATURE = 1e-4, 0.9
_MOST_NARROWINGS = 30


class Found(NamedTuple):
    """What a search gives."""

    step: Array
    value: Array
    gradient: Array
    failed: Array
    evaluations: Array
    #: steps outwards
    count: Array
    #: 0 where it succeeded, 1 where narrowing failed, 3 where there were too many steps
    status: Array


class Point(NamedTuple):
    """A step, the value there, and the slope along the line."""

    step: Any
    value: Any
    slope: Any


class Search(NamedTuple):
    """Where a search is: while `low` and `high` bracket nothing, `low` is the last step that was tried."""

    count: Array
    narrowings: Array
    narrowing: Array
    done: Array
    failed: Array
    low: Point
    high: Point
    other: Point
    best: Point
    gradient: Array


def real_dot(x: Array, y: Array) -> Array:
    """The real part of the sum of products."""
    out = _products.dot(x, y, precision="highest")
    return lax.real(out) if dtype_kind(out.dtype) == "c" else out


def value_and_gradient(fun: Callable[[Array], Array], x: Array) -> tuple[Array, Array]:
    """A real function of a real or complex vector, and its gradient (the conjugate of that of steepest ascent)."""
    value, back = vjp(fun, x)
    if value.shape != () or dtype_kind(value.dtype) != "f":
        raise TypeError(
            f"scipy.optimize.minimize: the function must give a real scalar, got {value.dtype}{value.shape}."
        )
    return value, back(lax.full_like(value, 1))[0]


def _chosen(flag: Any, x: Any, y: Any) -> Any:
    return tree.map(lambda a, b: _ufuncs.where(flag, a, b), x, y)


def _cubic(low: Point, high: Point, other: Point) -> Array:
    """The least point of the cubic through three points with the slope of the first."""
    b, c = high.step - low.step, other.step - low.step
    fb = high.value - low.value - low.slope * b
    fc = other.value - low.value - low.slope * c
    scale = (b * c) * (b * c) * (b - c)
    third = (c * c * fb - b * b * fc) / scale
    second = (b * b * b * fc - c * c * c * fb) / scale
    return low.step + (lax.sqrt(second * second - 3.0 * third * low.slope) - second) / (3.0 * third)


def _parabola(low: Point, high: Point) -> Array:
    """The least point of the parabola through two points with the slope of the first."""
    b = high.step - low.step
    return low.step - low.slope * b * b / (2.0 * (high.value - low.value - low.slope * b))


def _inside(state: Search) -> Array:
    """The next step within a bracket: by a cubic, else a parabola, else the middle."""
    low, high = state.low, state.high
    width = lax.abs(high.step - low.step)
    left, right = _ufuncs.minimum(low.step, high.step), _ufuncs.maximum(low.step, high.step)

    def well_inside(x, margin):
        return (x > left + margin * width) & (x < right - margin * width)

    cubic, parabola = _cubic(low, high, state.other), _parabola(low, high)
    out = _ufuncs.where(well_inside(parabola, 0.1), parabola, 0.5 * (low.step + high.step))
    return _ufuncs.where((state.narrowings > 0) & well_inside(cubic, 0.2), cubic, out)


def _narrowed(state: Search, new: Point, worse: Array) -> Search:
    """The bracket after a step within it that is not yet good enough."""
    # the far end becomes the new point, or the near one where the slope points back to it
    turned = new.slope * (state.high.step - state.low.step) >= 0
    low = _chosen(worse, state.low, new)
    high = _chosen(worse, new, _chosen(turned, state.low, state.high))
    other = _chosen(worse | turned, state.high, state.low)
    return state._replace(low=low, high=high, other=other)


def _bracketed(state: Search, new: Point, worse: Array) -> Search:
    """The state after a step beyond the last one: between them are good points where it is worse or turns up."""
    found = worse | (new.slope >= 0)
    low = _chosen(worse, state.low, new)
    high = _chosen(worse, new, state.low)
    return state._replace(low=low, high=high, other=high, narrowing=found)


def line_search(fun: Callable[[Array], Array], x: Array, direction: Array, value: Array, gradient: Array, first: Array,
                maxiter: int, sufficient: float = _SUFFICIENT, curvature: float = _CURVATURE) -> Found:  # fmt: skip
    """A step along `direction` with enough decrease and a flat enough slope.

    Args:
      fun: a function of an array of shape (n,), with a real scalar as result.
      x: where to start.
      direction: in which `fun` falls.
      value: of `fun` at `x`.
      gradient: of `fun` at `x`.
      first: the first step to try.
      maxiter: the largest number of steps outwards.
      sufficient: which part of the fall that the first slope promises is enough.
      curvature: which part of the first slope is flat enough.
    """
    origin = Point(lax.full_like(value, 0), value, real_dot(gradient, direction))
    least = 1e-5 if np.finfo(value.dtype).bits < 64 else 1e-10

    def evaluated(step):
        new_value, new_gradient = value_and_gradient(fun, x + lax.convert_element_type(step, x.dtype) * direction)
        return Point(step, new_value, real_dot(new_gradient, direction)), new_gradient

    def unfinished(state):
        return ~state.done & ~state.failed & (state.narrowing | (state.count < maxiter))

    def advanced(state):
        outward = _ufuncs.where(state.count == 0, first, 2.0 * state.low.step)
        step = _ufuncs.where(state.narrowing, _inside(state), outward)
        new, new_gradient = evaluated(step)
        enough = new.value <= origin.value + sufficient * step * origin.slope
        known = state.narrowing | (state.count > 0)
        worse = ~enough | (known & (new.value >= state.low.value))
        good = ~worse & (lax.abs(new.slope) <= -curvature * origin.slope)
        short = state.narrowing & (lax.abs(state.high.step - state.low.step) <= least)
        moved = _chosen(state.narrowing, _narrowed(state, new, worse), _bracketed(state, new, worse))
        narrowings = state.narrowings + lax.convert_element_type(state.narrowing, np.int32)
        return moved._replace(
            count=state.count + lax.convert_element_type(~state.narrowing, np.int32),
            narrowings=narrowings,
            done=good,
            failed=~good & (short | (narrowings >= _MOST_NARROWINGS)),
            best=_chosen(good, new, state.best),
            gradient=_ufuncs.where(good, new_gradient, state.gradient),
        )

    zero, no = asarray(0, dtype=np.int32), asarray(False)
    state = Search(zero, zero, no, no, no, origin, origin, origin, origin, gradient)
    state = lax.while_loop(unfinished, advanced, state)
    # where nothing is good enough, what has the least value of a bracket that falls is still better than nothing
    fallen = ~state.done & (state.low.value < origin.value)
    step = _ufuncs.where(fallen, state.low.step, state.best.step)
    status = _ufuncs.where(state.failed, np.int32(1), _ufuncs.where(state.done, np.int32(0), np.int32(3)))
    return _settled(evaluated, Found(step, state.best.value, state.gradient, ~state.done,
                                     state.count + state.narrowings, state.count, status), fallen)  # fmt: skip


def _settled(evaluated: Callable[[Array], Any], found: Found, fallen: Array) -> Found:
    """`found`, with value and gradient at its step where that is not the best one's."""

    def again(found):
        point, gradient = evaluated(found.step)
        return found._replace(value=point.value, gradient=gradient, evaluations=found.evaluations + 1)

    return lax.cond(fallen, again, lambda found: found, found)
