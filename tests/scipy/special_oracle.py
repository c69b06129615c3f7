"""Distances of special functions from mpmath's values, in units in the last place, and checks that families share."""

import numpy as np
from mpmath import mp, mpf

import ferrax
import ferrax.numpy as jnp


def ulps(got, wanted, dtype, scale=0.0):
    """The largest distance of floats from mpmath's numbers, in ulp of those or of `scale` where that is larger.

    Results beyond the dtype's range must be infinite, and NaN is infinitely far away.
    """
    worst, limits = 0.0, np.finfo(dtype)
    for g, w in zip(np.asarray(got, np.float64).ravel(), wanted, strict=True):
        if abs(w) > float(limits.max):
            worst = max(worst, 0.0 if np.isinf(g) else np.inf)
            continue
        unit = float(np.spacing(dtype(max(abs(float(w)), float(limits.tiny), scale))))
        worst = max(worst, float(abs(mpf(float(g)) - w) / mpf(unit)) if np.isfinite(g) else np.inf)
    return worst


def distance(function, reference, operands, dtype, scale=0.0, digits=40):
    """`ulps` of a function of arrays against a function of mpmath's numbers, under the dtype's precision."""
    operands = [np.asarray(x).astype(dtype) for x in operands]
    with ferrax.enable_x64(dtype == np.float64), mp.workdps(digits):
        got = function(*(jnp.asarray(x) for x in operands))
        assert got.dtype == dtype
        return ulps(
            got, [reference(*(mpf(float(v)) for v in row)) for row in zip(*operands, strict=True)], dtype, scale
        )


def slopes(function, reference, x, position=0, orders=(1, 2), digits=30):
    """(derivatives, mpmath's derivatives) of some orders at float64 operands, by one of them."""
    with ferrax.enable_x64(True), mp.workdps(digits):
        derivative, got, wanted = function, [], []
        for order in range(1, max(orders) + 1):
            derivative = ferrax.grad(derivative, position)
            if order in orders:
                which = tuple(order if i == position else 0 for i in range(len(x)))
                got.append(float(derivative(*x)))
                exact = mp.diff(reference, x, which) if len(x) > 1 else mp.diff(reference, x[0], order)
                wanted.append(float(mp.re(exact)))
        return got, wanted


def assert_transforms(function, *operands):
    """Eager, jitted and mapped calls agree bit for bit, and 16-bit operands give the rounded float32 result."""
    eager = function(*operands)
    for got in (ferrax.jit(function)(*operands), ferrax.vmap(function)(*operands)):
        for a, b in zip(ferrax.tree.leaves(got), ferrax.tree.leaves(eager), strict=True):
            np.testing.assert_array_equal(a, b)
    for dtype in (jnp.bfloat16, jnp.float16):
        narrow = [jnp.asarray(x, dtype) for x in operands]
        wide = function(*(x.astype(np.float32) for x in narrow))
        for a, b in zip(ferrax.tree.leaves(function(*narrow)), ferrax.tree.leaves(wide), strict=True):
            assert a.dtype == dtype
            relative, absolute = (float(v) * 0.51 for v in (jnp.finfo(dtype).eps, jnp.finfo(dtype).smallest_subnormal))
            np.testing.assert_allclose(a.astype(np.float32), b, rtol=relative, atol=absolute)
