"""Samplers of continuous distributions that transform uniform or normal values directly.

Most invert the distribution function. Read next: ``_gamma.py``.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

import ferrax.numpy as jnp
from ferrax import jit, lax
from ferrax._ferrax import Array
from ferrax._narrow import limits
from ferrax._shapes import broadcast_shapes
from ferrax.config import config
from ferrax.numpy._args import promote_inexact
from ferrax.random import _arguments as args
from ferrax.random._bits import SQRT2, below_one, bits, rademacher, tiny, uniform
from ferrax.random._keys import checked_key, split_keys
from ferrax.typing import ArrayLike, DTypeLike

__all__ = [
    "cauchy", "double_sided_maxwell", "exponential", "gumbel", "laplace", "logistic", "lognormal", "maxwell",
    "multivariate_normal", "normal", "orthogonal", "pareto", "rayleigh", "triangular", "truncated_normal", "wald",
    "weibull_min",
]  # fmt: skip


@args.placed
def normal(key: Array, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Standard normal values.

    Args:
      key: a key.
      shape: shape of the result.
      dtype: a float or complex dtype; the default float when None.
      out_sharding: where the result goes; a `PartitionSpec` over explicit axes of the mesh in use, or a sharding.

    Returns:
      Array of that shape and dtype; complex values have independent parts of variance 1/2.

    Raises:
      ValueError: ``dtype`` is neither float nor complex.

    >>> import ferrax
    >>> ferrax.random.normal(ferrax.random.key(0), (3,))
    Array([ 1.6226422 ,  2.0252647 , -0.43359444], dtype=float32)
    """
    key, shape, dtype = args.sampler("normal", key, shape, dtype, kind="float or complex")
    return _normal(key, shape, dtype)


@partial(jit, static_argnums=(1, 2))
def _normal(key, shape, dtype):
    if not jnp.issubdtype(dtype, jnp.complexfloating):
        return _normal_real(key, shape, dtype)
    real_key, imaginary_key = split_keys(key, 2)
    part = np.zeros((), dtype).real.dtype
    real = _normal_real(real_key, shape, part).astype(dtype)
    imaginary = _normal_real(imaginary_key, shape, part).astype(dtype)
    return (real + 1j * imaginary) / np.array(SQRT2, dtype)


@partial(jit, static_argnums=(1, 2))
def _normal_real(key, shape, dtype):
    unit = uniform(key, shape, dtype, below_one(dtype), np.array(1, dtype))
    return np.array(SQRT2, dtype) * lax.erf_inv(unit)


@args.placed
def truncated_normal(
    key: Array,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: Any = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Values of a standard normal distribution cut off to [lower, upper].

    Args:
      key: a key.
      lower: lower bound.
      upper: upper bound.
      shape: shape of the result; what the bounds broadcast to when None.
      dtype: a float dtype; the default when None.
      out_sharding: where the result goes; a `PartitionSpec` over explicit axes of the mesh in use, or a sharding.

    Returns:
      Array of that shape and dtype, strictly inside the bounds.

    >>> import ferrax
    >>> x = ferrax.random.truncated_normal(ferrax.random.key(0), -1.0, 1.0, (100,))
    >>> bool((abs(x) < 1).all())
    True
    """
    key, shape, dtype = args.sampler("truncated_normal", key, shape, dtype, lower, upper)
    return _truncated_normal(key, lower, upper, shape, dtype)


@partial(jit, static_argnums=(3, 4))
def _truncated_normal(key, lower, upper, shape, dtype):
    args.broadcast_shape(shape, lower, upper)
    sqrt2 = np.array(SQRT2, dtype)
    lower, upper = args.as_dtype(lower, dtype), args.as_dtype(upper, dtype)
    unit = uniform(key, shape, dtype, minval=lax.erf(lower / sqrt2), maxval=lax.erf(upper / sqrt2))
    result = sqrt2 * lax.erf_inv(unit)
    # rounding can reach the bounds, where the density of the inverse is infinite
    return jnp.clip(
        result,
        jnp.nextafter(lax.stop_gradient(lower), np.array(np.inf, dtype)),
        jnp.nextafter(lax.stop_gradient(upper), np.array(-np.inf, dtype)),
    )


@args.placed
def exponential(key: Array, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Values with density ``exp(-x)``, ``x >= 0``.

    Args:
      key: a key.
      shape: shape of the result.
      dtype: a float dtype; the default when None.
      out_sharding: where the result goes; a `PartitionSpec` over explicit axes of the mesh in use, or a sharding.

    Returns:
      Array of that shape and dtype.

    >>> import ferrax
    >>> ferrax.random.exponential(ferrax.random.key(0), (2,)).shape
    (2,)
    """
    return _exponential(*args.sampler("exponential", key, shape, dtype))


@partial(jit, static_argnums=(1, 2))
def _exponential(key, shape, dtype):
    # 1 - u is in (0, 1], so that the logarithm is finite
    return lax.neg(lax.log1p(lax.neg(uniform(key, shape, dtype))))


@args.placed
def gumbel(
    key: Array, shape: Any = (), dtype: DTypeLike | None = None, mode: Any = None, *, out_sharding: Any = None
) -> Array:
    """Values of the standard Gumbel distribution, of density ``exp(-(x + exp(-x)))``.

    Args:
      key, shape, dtype: as in `exponential`.
      mode: ``"low"``; ``"high"``, which draws twice the bits, for an accurate upper tail; ``"highest"``,
        whose tails are accurate to 2**-64 in float32. None is ``"low"``, or ``"high"`` as the setting
        ``jax_high_dynamic_range_gumbel`` says.
      out_sharding: where the result goes; a `PartitionSpec` over explicit axes of the mesh in use, or a sharding.

    Returns: as in `exponential`.

    Raises:
      ValueError: ``mode`` is none of these.

    >>> import ferrax
    >>> ferrax.random.gumbel(ferrax.random.key(0), (2,)).shape
    (2,)
    """
    if mode not in (None, "highest", "high", "low"):
        raise ValueError(f"Must provide valid mode for gumbel got: {mode}")
    if mode is None:
        mode = "high" if config.read("jax_high_dynamic_range_gumbel") else "low"
    return _gumbel(*args.sampler("gumbel", key, shape, dtype), mode)


def fraction(high: Array, low: Array) -> Array:
    """``(high * 2**32 + low) / 2**64`` for 32-bit words as float32, not rounded but cut off; never 0."""
    lead, rest = lax.clz(high), lax.clz(low)
    word = jnp.where(high == 0, low << rest, (high << lead) | lax.shift_right_logical(low, np.uint32(32) - lead))
    zeros = jnp.where(high == 0, rest + np.uint32(32), lead)
    digits = lax.max(word >> np.uint32(8), np.uint32(1 << 23)).astype(np.float32)
    return digits * lax.bitcast_convert_type((np.uint32(127 - 24) - zeros) << np.uint32(23), np.float32)


@partial(jit, static_argnums=(1, 2, 3))
def _gumbel(key, shape, dtype, mode):
    if mode == "low":
        return -jnp.log(-jnp.log(uniform(key, shape, dtype, minval=tiny(dtype), maxval=1.0)))
    if mode == "highest" and dtype == np.float32:
        high, low = bits(key, (2, *shape), np.uint32)
        # in the upper half the distance to 1, which floats near 0 hold better
        near_one = high >= np.uint32(1 << 31)
        mirrored = ~high + (low == 0).astype(np.uint32), np.uint32(0) - low
        share = fraction(*(jnp.where(near_one, m, w) for m, w in zip(mirrored, (high, low))))
        return -jnp.log(-jnp.where(near_one, jnp.log(share), jnp.log1p(-share)))
    high, low = uniform(key, (2, *shape), dtype, minval=0.0, maxval=1.0)
    eps = np.array(limits(dtype).eps, dtype)
    unit = jnp.where(high >= 0.5, high, high + eps * low + tiny(dtype))
    return -jnp.log(-jnp.log1p(-unit))


@args.placed
def laplace(key: Array, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Values with density ``exp(-|x|) / 2``.

    Args, Returns: as in `exponential`.

    >>> import ferrax
    >>> ferrax.random.laplace(ferrax.random.key(0), (2,)).shape
    (2,)
    """
    return _laplace(*args.sampler("laplace", key, shape, dtype))


@partial(jit, static_argnums=(1, 2))
def _laplace(key, shape, dtype):
    unit = uniform(key, shape, dtype, minval=below_one(dtype), maxval=1.0)
    return lax.mul(lax.sign(unit), lax.log1p(lax.neg(lax.abs(unit))))


@args.placed
def logistic(key: Array, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Values of the standard logistic distribution.

    Args, Returns: as in `exponential`.

    >>> import ferrax
    >>> ferrax.random.logistic(ferrax.random.key(0), (2,)).shape
    (2,)
    """
    return _logistic(*args.sampler("logistic", key, shape, dtype))


@partial(jit, static_argnums=(1, 2))
def _logistic(key, shape, dtype):
    unit = uniform(key, shape, dtype, minval=tiny(dtype), maxval=1.0)
    return lax.sub(lax.log(unit), lax.log1p(lax.neg(unit)))


@args.placed
def cauchy(key: Array, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Values of the standard Cauchy distribution.

    Args, Returns: as in `exponential`.

    >>> import ferrax
    >>> ferrax.random.cauchy(ferrax.random.key(0), (2,)).shape
    (2,)
    """
    return _cauchy(*args.sampler("cauchy", key, shape, dtype))


@partial(jit, static_argnums=(1, 2))
def _cauchy(key, shape, dtype):
    unit = uniform(key, shape, dtype, minval=np.array(limits(dtype).eps, dtype), maxval=1.0)
    return lax.tan(np.array(math.pi, dtype) * (unit - np.array(0.5, dtype)))


@args.placed
def pareto(
    key: Array, b: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Values with density ``b / x**(b + 1)``, ``x >= 1``.

    Args:
      key: a key.
      b: the exponent, positive.
      shape: shape of the result; that of ``b`` when None.
      dtype, out_sharding: as in `exponential`.

    Returns: as in `exponential`.

    >>> import ferrax
    >>> ferrax.random.pareto(ferrax.random.key(0), 3.0, (2,)).shape
    (2,)
    """
    key, shape, dtype = args.sampler("pareto", key, shape, dtype, b)
    return _pareto(key, b, shape, dtype)


@partial(jit, static_argnums=(2, 3))
def _pareto(key, b, shape, dtype):
    args.broadcast_shape(shape, b)
    return lax.exp(exponential(key, shape, dtype) / args.as_dtype(b, dtype))


def weibull_min(
    key: Array, scale: ArrayLike, concentration: ArrayLike, shape: Any = (), dtype: DTypeLike | None = None
) -> Array:
    """Values of the Weibull distribution.

    Args:
      key: a key.
      scale: scale.
      concentration: the exponent.
      shape, dtype: as in `exponential`.

    Returns: as in `exponential`.

    >>> import ferrax
    >>> ferrax.random.weibull_min(ferrax.random.key(0), 2.0, 3.0, (2,)).shape
    (2,)
    """
    key, shape, dtype = args.sampler("weibull_min", key, shape, dtype)
    return _weibull_min(key, scale, concentration, shape, dtype)


@partial(jit, static_argnums=(3, 4))
def _weibull_min(key, scale, concentration, shape, dtype):
    unit = uniform(key, shape, dtype, minval=0, maxval=1)
    return jnp.power(-jnp.log1p(-unit), 1.0 / concentration) * scale


@args.placed
def rayleigh(
    key: Array, scale: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Values with density ``x / scale**2 * exp(-x**2 / (2 * scale**2))``, ``x >= 0``.

    Args:
      key: a key.
      scale: scale.
      shape: shape of the result; that of ``scale`` when None.
      dtype, out_sharding: as in `exponential`.

    Returns: as in `exponential`.

    >>> import ferrax
    >>> ferrax.random.rayleigh(ferrax.random.key(0), 2.0, (2,)).shape
    (2,)
    """
    key, shape, dtype = args.sampler("rayleigh", key, shape, dtype, scale)
    return _rayleigh(key, scale, shape, dtype)


@partial(jit, static_argnums=(2, 3))
def _rayleigh(key, scale, shape, dtype):
    args.broadcast_shape(shape, scale)
    unit = uniform(key, shape, dtype)
    scale = jnp.broadcast_to(args.as_dtype(scale, dtype), shape)
    return lax.mul(scale, lax.sqrt(lax.log(unit) * np.array(-2, dtype)))


@args.placed
def maxwell(key: Array, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Lengths of standard normal vectors of three components.

    Args, Returns: as in `exponential`.

    >>> import ferrax
    >>> ferrax.random.maxwell(ferrax.random.key(0), (2,)).shape
    (2,)
    """
    return _maxwell(*args.sampler("maxwell", key, shape, dtype))


@partial(jit, static_argnums=(1, 2))
def _maxwell(key, shape, dtype):
    vectors = normal(key, (*shape, 3), dtype)
    return jnp.sqrt(jnp.sum(vectors * vectors, axis=-1))


def double_sided_maxwell(
    key: Array, loc: ArrayLike, scale: ArrayLike, shape: Any = (), dtype: DTypeLike | None = None
) -> Array:
    """Maxwell-distributed values with a random sign, scaled and moved.

    Args:
      key: a key.
      loc: the centre.
      scale: scale.
      shape: shape of the result, in front of what ``loc`` and ``scale`` broadcast to.
      dtype: a float dtype; the default when None.

    Returns:
      Array of that dtype.

    >>> import ferrax
    >>> ferrax.random.double_sided_maxwell(ferrax.random.key(0), 0.0, 1.0, (2,)).shape
    (2,)
    """
    key, shape, dtype = args.sampler("double_sided_maxwell", key, shape, dtype)
    return _double_sided_maxwell(key, loc, scale, shape, dtype)


@partial(jit, static_argnums=(3, 4))
def _double_sided_maxwell(key, loc, scale, shape, dtype):
    shape = shape + tuple(broadcast_shapes(np.shape(loc), np.shape(scale)))
    maxwell_key, sign_key = split_keys(key, 2)
    signs = rademacher(sign_key, shape=shape).astype(dtype)
    return signs * maxwell(maxwell_key, shape, dtype) * scale + loc


@args.placed
def lognormal(
    key: Array,
    sigma: ArrayLike = np.float32(1.0),
    shape: Any = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """``exp`` of normal values.

    Args:
      key: a key.
      sigma: standard deviation of the logarithm.
      shape: shape of the result; that of ``sigma`` when None.
      dtype, out_sharding: as in `exponential`.

    Returns: as in `exponential`.

    >>> import ferrax
    >>> ferrax.random.lognormal(ferrax.random.key(0), 0.5, (2,)).shape
    (2,)
    """
    key, shape, dtype = args.sampler("lognormal", key, shape, dtype, sigma)
    return jnp.exp(normal(key, shape, dtype) * jnp.asarray(sigma, dtype))


@args.placed
def triangular(
    key: Array,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: Any = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Values whose density rises linearly from ``left`` to ``mode`` and falls linearly to ``right``.

    Args:
      key: a key.
      left: lower end.
      mode: the peak.
      right: upper end.
      shape: shape of the result; what the parameters broadcast to when None.
      dtype, out_sharding: as in `exponential`.

    Returns: as in `exponential`.

    >>> import ferrax
    >>> ferrax.random.triangular(ferrax.random.key(0), 0.0, 1.0, 2.0, (2,)).shape
    (2,)
    """
    key, shape, dtype = args.sampler("triangular", key, shape, dtype, left, mode, right)
    left, mode, right = (jnp.broadcast_to(jnp.asarray(x, dtype), shape) for x in (left, mode, right))
    at_mode = (mode - left) / (right - left)
    unit = uniform(key, shape, dtype)
    rising = left + lax.sqrt(unit * (right - left) * (mode - left))
    falling = right - lax.sqrt((1 - unit) * (right - left) * (right - mode))
    return lax.select(unit < at_mode, rising, falling)


@args.placed
def wald(
    key: Array, mean: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Values of the inverse Gaussian distribution with shape parameter 1.

    Args:
      key: a key.
      mean: the mean.
      shape: shape of the result; that of ``mean`` when None.
      dtype, out_sharding: as in `exponential`.

    Returns: as in `exponential`.

    Source: Michael, Schucany and Haas, "Generating random variates using transformations with multiple roots" (1976).

    >>> import ferrax
    >>> ferrax.random.wald(ferrax.random.key(0), 2.0, (2,)).shape
    (2,)
    """
    key, shape, dtype = args.sampler("wald", key, shape, dtype, mean)
    return _wald(key, mean, shape, dtype)


@partial(jit, static_argnums=(2, 3))
def _wald(key, mean, shape, dtype):
    args.broadcast_shape(shape, mean)
    normal_key, uniform_key = split_keys(key, 2)
    mean = jnp.broadcast_to(args.as_dtype(mean, dtype), shape)
    deviate = normal(normal_key, shape, dtype)
    unit = uniform(uniform_key, shape, dtype)
    square = lax.integer_pow(deviate, 2)
    fourth, mean_square = lax.integer_pow(square, 2), lax.integer_pow(mean, 2)
    root = lax.sqrt(4 * mean * square + mean_square * fourth)
    smaller = mean + mean_square * square / 2 - mean / 2 * root
    return lax.select(unit <= mean / (mean + smaller), smaller, mean_square / smaller)


@args.placed
def multivariate_normal(
    key: Array,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: Any = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: Any = None,
) -> Array:
    """Normal vectors with a given mean and covariance.

    Args:
      key: a key.
      mean: array of shape (..., n).
      cov: array of shape (..., n, n), positive semidefinite.
      shape: shape of the result without its last axis; what the parameters' batch axes broadcast to when None.
      dtype: the float dtype of the normal numbers, which meets that of the parameters; the latter when None.
      method: how the covariance is factored: ``"cholesky"``, ``"eigh"`` or ``"svd"``.
      out_sharding: where the result goes; a `PartitionSpec` over explicit axes of the mesh in use, or a sharding.

    Returns:
      Array of shape ``shape + (n,)``.

    Raises:
      ValueError: the shapes do not go together, or ``method`` is none of these.

    >>> import ferrax
    >>> callable(ferrax.random.multivariate_normal)
    True
    """
    key, _ = checked_key("multivariate_normal", key)
    mean, cov = promote_inexact("multivariate_normal", jnp.asarray(mean), jnp.asarray(cov))
    dtype = args.checked_dtype("multivariate_normal", mean.dtype if dtype is None else dtype)
    if method not in ("svd", "eigh", "cholesky"):
        raise ValueError("method must be one of {'svd', 'eigh', 'cholesky'}")
    if mean.ndim < 1:
        raise ValueError(f"multivariate_normal requires mean.ndim >= 1, got mean.ndim == {mean.ndim}")
    n = mean.shape[-1]
    if cov.ndim < 2:
        raise ValueError(f"multivariate_normal requires cov.ndim >= 2, got cov.ndim == {cov.ndim}")
    if cov.shape[-2:] != (n, n):
        raise ValueError(
            f"multivariate_normal requires cov.shape == (..., n, n) for n={n}, but got cov.shape == {cov.shape}."
        )
    batch = tuple(broadcast_shapes(mean.shape[:-1], cov.shape[:-2]))
    shape = batch if shape is None else args.broadcast_shape(shape, np.empty(batch))
    return _multivariate_normal(key, mean, cov, shape, dtype, method)


@partial(jit, static_argnums=(3, 4, 5))
def _multivariate_normal(key, mean, cov, shape, dtype, method):
    if method == "cholesky":
        factor = jnp.linalg.cholesky(cov)
    elif method == "svd":
        vectors, values, _ = jnp.linalg.svd(cov)
        factor = vectors * jnp.sqrt(values[..., None, :])
    else:
        values, vectors = jnp.linalg.eigh(cov)
        factor = vectors * jnp.sqrt(values[..., None, :])
    deviates = normal(key, (*shape, mean.shape[-1]), dtype)
    return jnp.broadcast_to(mean, deviates.shape) + jnp.einsum("...ij,...j->...i", factor, deviates)


@args.placed
def orthogonal(
    key: Array,
    n: int,
    shape: Any = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Uniformly (Haar) distributed orthogonal or unitary matrices.

    Args:
      key: a key.
      n: number of rows.
      shape: how many matrices, in front of their axes.
      dtype: a float or complex dtype; the default float when None.
      m: number of columns; ``n`` when None. The smaller number of vectors is orthonormal.
      out_sharding: where the result goes; a `PartitionSpec` over explicit axes of the mesh in use, or a sharding.

    Returns:
      Array of shape ``shape + (n, m)``.

    Source: Mezzadri, "How to generate random matrices from the classical compact groups" (2007).

    >>> import ferrax
    >>> callable(ferrax.random.orthogonal)
    True
    """
    key, shape, dtype = args.sampler("orthogonal", key, shape, dtype, kind="float or complex")
    return _orthogonal(key, n, n if m is None else m, shape, dtype)


@partial(jit, static_argnums=(1, 2, 3, 4))
def _orthogonal(key, n, m, shape, dtype):
    q, r = jnp.linalg.qr(normal(key, (*shape, max(n, m), min(n, m)), dtype))
    # the signs of the diagonal make the factorization unique, and so the distribution uniform
    q = q * jnp.expand_dims(lax.sign(jnp.diagonal(r, axis1=-2, axis2=-1)), -2)
    return q.swapaxes(-1, -2) if n < m else q
