"""Elementwise activation functions.

Each is the textbook formula over ``ferrax.numpy``; the ones with a kink (``relu``, ``relu6``) carry their own
derivative, so that the gradient at the kink is 0 as in JAX. Read next: ``_normalize.py``.
"""

from __future__ import annotations

import math
from typing import Any

import ferrax.numpy as jnp
from ferrax import custom_jvp, jit, lax
from ferrax._ferrax import Array
from ferrax.nn._arguments import to_array, to_inexact
from ferrax.typing import ArrayLike

__all__ = [
    "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity", "leaky_relu",
    "log_sigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softplus", "sparse_plus",
    "sparse_sigmoid", "squareplus", "swish", "tanh",
]  # fmt: skip

_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


@jit
def identity(x: ArrayLike) -> Array:
    """The input itself.

    Args:
      x: array of any shape and dtype.

    Returns:
      ``x``.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.identity(jnp.array([1.0, 2.0]))
    Array([1., 2.], dtype=float32)
    """
    return to_array("identity", x)


def _select_zero(pred, x):
    """``x`` where ``pred`` holds, else 0."""
    return lax.select(pred, x, lax.full_like(x, 0))


@custom_jvp
@jit
def relu(x: ArrayLike) -> Array:
    """Rectified linear unit: ``max(x, 0)``, with derivative 0 at 0.

    Args:
      x: real array of any shape.

    Returns:
      Array of the shape and dtype of ``x``.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.relu(jnp.array([-2.0, 0.0, 3.0]))
    Array([0., 0., 3.], dtype=float32)
    """
    return jnp.maximum(x, 0)


relu.defjvps(lambda t, ans, x: _select_zero(x > 0, t))


@custom_jvp
@jit
def relu6(x: ArrayLike) -> Array:
    """Rectified linear unit capped at 6: ``min(max(x, 0), 6)``, with derivative 0 at both kinks.

    Args:
      x: real array of any shape.

    Returns:
      Array of the shape and dtype of ``x``.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.relu6(jnp.array([-1.0, 3.0, 8.0]))
    Array([0., 3., 6.], dtype=float32)
    """
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


relu6.defjvps(lambda t, ans, x: _select_zero((x > 0) & (x < 6), t))


@jit
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """Smooth approximation of ``relu`` without exponentials: ``(x + sqrt(x**2 + b)) / 2``.

    Args:
      x: real array of any shape.
      b: smoothness, a scalar or array; 0 gives ``relu``.

    Returns:
      Array of the broadcast shape.

    >>> import ferrax.nn
    >>> ferrax.nn.squareplus(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    x = to_array("squareplus", x)
    b = to_array("squareplus", b, 1)
    return (x + jnp.sqrt(jnp.square(x) + b)) / 2


@jit
def softplus(x: ArrayLike) -> Array:
    """Smooth approximation of ``relu``: ``log(1 + exp(x))``, without overflow.

    Args:
      x: array of any shape.

    Returns:
      Array of the shape of ``x``.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.softplus(jnp.array([-1000.0, 1000.0]))
    Array([   0., 1000.], dtype=float32)
    """
    return jnp.logaddexp(x, 0)


@jit
def sparse_plus(x: ArrayLike) -> Array:
    """Twice differentiable relative of ``softplus`` that is 0 below -1 and ``x`` above 1.

    Args:
      x: real array of any shape.

    Returns:
      Array of the shape of ``x``: 0, ``(x + 1)**2 / 4`` or ``x``.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.sparse_plus(jnp.array([-2.0, 0.0, 2.0]))
    Array([0.  , 0.25, 2.  ], dtype=float32)
    """
    x = to_array("sparse_plus", x)
    return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


@jit
def soft_sign(x: ArrayLike) -> Array:
    """``x / (1 + |x|)``, a sigmoid in (-1, 1) with polynomial tails.

    Args:
      x: real array of any shape.

    Returns:
      Array of the shape of ``x``.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.soft_sign(jnp.array([-1.0, 0.0, 3.0]))
    Array([-0.5 ,  0.  ,  0.75], dtype=float32)
    """
    x = to_array("soft_sign", x)
    return x / (jnp.abs(x) + 1)


def sigmoid(x: ArrayLike) -> Array:
    """Logistic sigmoid: ``1 / (1 + exp(-x))``.

    Args:
      x: array of any shape.

    Returns:
      Array of the shape of ``x``, in [0, 1] for real inputs.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.sigmoid(jnp.array([-1000.0, 0.0, 1000.0]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    return lax.logistic(x)


@jit
def sparse_sigmoid(x: ArrayLike) -> Array:
    """Piecewise linear sigmoid, the derivative of ``sparse_plus``: ``clip(x + 1, 0, 2) / 2``.

    Args, Returns: as in `soft_sign`.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.sparse_sigmoid(jnp.array([-2.0, 0.5, 2.0]))
    Array([0.  , 0.75, 1.  ], dtype=float32)
    """
    return 0.5 * jnp.clip(to_array("sparse_sigmoid", x) + 1.0, 0.0, 2.0)


@jit
def silu(x: ArrayLike) -> Array:
    """Sigmoid-weighted linear unit: ``x * sigmoid(x)`` (also called swish).

    Args, Returns: as in `softplus`.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.silu(jnp.array([0.0, 1.0]))
    Array([0.       , 0.7310586], dtype=float32)
    """
    x = to_array("silu", x)
    return x * sigmoid(x)


swish = silu


@jit
def mish(x: ArrayLike) -> Array:
    """``x * tanh(softplus(x))``.

    Args, Returns: as in `softplus`.

    >>> import ferrax.nn
    >>> ferrax.nn.mish(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    x = to_array("mish", x)
    return x * jnp.tanh(softplus(x))


@jit
def log_sigmoid(x: ArrayLike) -> Array:
    """Logarithm of the logistic sigmoid, without underflow: ``-softplus(-x)``.

    Args, Returns: as in `softplus`.

    >>> import ferrax.nn
    >>> ferrax.nn.log_sigmoid(-1000.0)
    Array(-1000., dtype=float32, weak_type=True)
    """
    return -softplus(-to_array("log_sigmoid", x))


@jit
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Exponential linear unit: ``x`` where positive, else ``alpha * (exp(x) - 1)``.

    Args:
      x: real array of any shape.
      alpha: scale of the negative side.

    Returns:
      Array of the broadcast shape.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.elu(jnp.array([-1000.0, 2.0]))
    Array([-1.,  2.], dtype=float32)
    """
    x = to_array("elu", x)
    # the inner where keeps exp's argument, and so its gradient, finite on the positive side
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x)))


@jit
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """``x`` where non-negative, else ``negative_slope * x``.

    Args:
      x: real array of any shape.
      negative_slope: slope of the negative side.

    Returns:
      Array of the broadcast shape.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.leaky_relu(jnp.array([-1.0, 2.0]))
    Array([-0.01,  2.  ], dtype=float32)
    """
    x = to_array("leaky_relu", x)
    return jnp.where(x >= 0, x, negative_slope * x)


@jit
def hard_tanh(x: ArrayLike) -> Array:
    """``x`` clipped to [-1, 1], with derivative 0 outside.

    Args, Returns: as in `soft_sign`.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.hard_tanh(jnp.array([-2.0, 0.5, 2.0]))
    Array([-1. ,  0.5,  1. ], dtype=float32)
    """
    x = to_array("hard_tanh", x)
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


@jit
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Continuously differentiable exponential linear unit.

    Args:
      x: real array of any shape.
      alpha: scale of the negative side.

    Returns:
      Array of the broadcast shape: ``x`` where positive, else ``alpha * (exp(x / alpha) - 1)``.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.celu(jnp.array([-1000.0, 2.0]), alpha=0.5)
    Array([-0.5,  2. ], dtype=float32)
    """
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


@jit
def selu(x: ArrayLike) -> Array:
    """Scaled exponential linear unit, whose fixed point has mean 0 and variance 1.

    Args, Returns: as in `soft_sign`.

    >>> import ferrax.nn
    >>> ferrax.nn.selu(1.0)
    Array(1.050701, dtype=float32, weak_type=True)
    """
    return _SELU_SCALE * elu(x, _SELU_ALPHA)


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """Gaussian error linear unit: ``x`` times the normal distribution function at ``x``.

    Args:
      x: real array of any shape.
      approximate: use the approximation by ``tanh`` rather than ``erfc``.

    Returns:
      Array of the shape of ``x``.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.gelu(jnp.array([0.0, 10.0]))
    Array([ 0., 10.], dtype=float32)
    """
    x = to_inexact("gelu", x)
    if approximate:
        coefficient = jnp.asarray(math.sqrt(2 / math.pi), x.dtype)
        angle = coefficient * (x + 0.044715 * (x**3))
        if x.dtype.itemsize < 4:
            # narrow floats are rounded where JAX rounds them
            result = x * (0.5 * (1.0 + jnp.tanh(angle)))
        else:
            # the same as (1 + tanh) / 2, of which nothing is left where tanh is near -1
            result = x * sigmoid(2.0 * angle)
    else:
        sqrt_half = jnp.asarray(math.sqrt(0.5), x.dtype)
        result = 0.5 * x * lax.erfc(-x * sqrt_half)
    return lax.convert_element_type(result, x.dtype)


class OddSizeError(ValueError, AssertionError):
    """An axis that has no halves: a bad value, which JAX asserts."""


@jit(static_argnames=("axis",))
def glu(x: ArrayLike, axis: Any = -1) -> Array:
    """Gated linear unit: the first half along an axis times the sigmoid of the second.

    Args:
      x: array with an even size along ``axis``.
      axis: the axis to halve.

    Returns:
      Array with half the size of ``x`` along ``axis``.

    Raises:
      ValueError: the size along ``axis`` is odd; it is an AssertionError too, as in JAX.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.glu(jnp.array([2.0, 0.0]))
    Array([1.], dtype=float32)
    """
    x = to_array("glu", x)
    size = x.shape[axis]
    if size % 2:
        raise OddSizeError(f"glu halves axis {axis}, whose size must be even; x has shape {x.shape}")
    first, second = jnp.split(x, 2, axis)
    return first * sigmoid(second)


@jit
def hard_sigmoid(x: ArrayLike) -> Array:
    """Piecewise linear sigmoid: ``relu6(x + 3) / 6``.

    Args, Returns: as in `soft_sign`.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.hard_sigmoid(jnp.array([-4.0, 0.0, 4.0]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    return relu6(to_array("hard_sigmoid", x) + 3.0) / 6.0


@jit
def hard_silu(x: ArrayLike) -> Array:
    """``x * hard_sigmoid(x)`` (also called hard swish).

    Args, Returns: as in `soft_sign`.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> ferrax.nn.hard_silu(jnp.array([-4.0, 0.0, 4.0]))
    Array([-0.,  0.,  4.], dtype=float32)
    """
    x = to_array("hard_silu", x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu
tanh = jnp.tanh
