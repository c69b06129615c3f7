"""The gamma distribution and those made of it.

Gamma values come from the method of Marsaglia and Tsang, "A simple method for generating gamma variables" (2000): a
cubed normal value, accepted with high probability. Each value has a key of its own, so that how often one of them is
rejected changes no other. Read next: ``_discrete.py``.
"""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import numpy as np

import ferrax.numpy as jnp
from ferrax import custom_jvp, jit, lax, vmap
from ferrax._composites import Composite
from ferrax._ferrax import Array
from ferrax.lax.special import log_gamma_grad
from ferrax.numpy._ranks import check_ranks
from ferrax.random import _arguments as args
from ferrax.random._bits import SQRT2, below_one, rademacher, scaled_uniform, unit_uniform
from ferrax.random._continuous import exponential, normal
from ferrax.random._key_arrays import KeyArray
from ferrax.random._keys import checked_key, chosen_keys, split_each, split_keys
from ferrax.typing import ArrayLike, DTypeLike

__all__ = ["ball", "beta", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma", "t"]


@args.placed
def gamma(
    key: Array, a: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Values with density proportional to ``x**(a - 1) * exp(-x)``, ``x > 0``.

    Args:
      key: a key.
      a: the shape parameter, positive.
      shape: shape of the result; that of ``a`` when None.
      dtype: a float dtype; the default when None.
      out_sharding: where the result goes; a `PartitionSpec` over explicit axes of the mesh in use, or a sharding.

    Returns:
      Array of that shape and dtype.

    >>> import ferrax
    >>> ferrax.random.gamma(ferrax.random.key(0), 2.0, (2,)).shape
    (2,)
    """
    key, shape, dtype = args.sampler("gamma", key, shape, dtype, a)
    return _gamma(key, a, shape, dtype)


@args.placed
def loggamma(
    key: Array, a: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Logarithms of gamma values, accurate where these underflow.

    Args, Returns: as in `gamma`.

    >>> import ferrax
    >>> ferrax.random.loggamma(ferrax.random.key(0), 2.0, (2,)).shape
    (2,)
    """
    key, shape, dtype = args.sampler("loggamma", key, shape, dtype, a)
    return _gamma(key, a, shape, dtype, True)


@partial(jit, static_argnums=(2, 3, 4))
def _gamma(key, a, shape, dtype, log_space=False):
    args.broadcast_shape(shape, a)
    # keys of some generators are no arrays of the core, and no operands of a primitive
    draw = _of_each_key if isinstance(key, KeyArray) else random_gamma_p.bind
    return draw(key, jnp.broadcast_to(args.as_dtype(a, dtype), shape), log_space=log_space)


@partial(custom_jvp, nondiff_argnums=(2,))
def _random_gamma(key, alpha, log_space):
    flat = alpha.reshape(-1)
    keys = split_keys_array(key, flat.size)
    return _marsaglia_tsang(keys, flat, log_space).reshape(alpha.shape)


@_random_gamma.defjvp
def _random_gamma_jvp(log_space, primals, tangents):
    key, alpha = primals
    sample = _random_gamma(key, alpha, log_space)
    # a logarithm has the slope of its own: the value itself may underflow
    slope = log_gamma_grad if log_space else lax.random_gamma_grad
    return sample, tangents[1] * slope(alpha, sample)


def _of_each_key(key, alpha, *, log_space):
    function = partial(_random_gamma, log_space=log_space)
    for _ in range(key.ndim):
        function = vmap(function)
    return function(key, alpha)


random_gamma_p = Composite("random_gamma", _of_each_key)


def split_keys_array(key: Array, num: int) -> Array:
    """An array of ``num`` keys from one."""

    return split_each(key, (num,))


def _draw(keys, dtype, low=None):
    """One uniform value for each key: in [0, 1), or in [low, 1)."""
    unit = unit_uniform(keys, (), dtype)
    low = np.zeros((), dtype) if low is None else low
    return scaled_uniform(unit, jnp.asarray(low, dtype), jnp.asarray(1, dtype))


def _draw_normal(keys, dtype):
    """One standard normal value for each key."""
    return np.array(SQRT2, dtype) * lax.erf_inv(_draw(keys, dtype, below_one(dtype)))


def _pick(mask, new, old):
    """Elementwise choice that also takes arrays of keys."""
    return chosen_keys(mask, new, old) if isinstance(new, KeyArray) else jnp.where(mask, new, old)


def _marsaglia_tsang(keys, alpha, log_space):
    """One gamma value (or its logarithm) for each key and shape parameter."""
    dtype = alpha.dtype
    number = lambda value: np.array(value, dtype)
    boosted = alpha >= number(1)
    # below 1 the value for alpha + 1 is drawn and multiplied by a power of a uniform value
    d = jnp.where(boosted, alpha, alpha + number(1)) - number(1 / 3)
    c = number(1 / 3) / lax.sqrt(d)
    keys, boost_keys = split_keys(keys, 2)
    v = _accepted(keys, c, d)
    if log_space:
        log_unit = lax.log1p(lax.neg(_draw(boost_keys, dtype)))
        power = jnp.where(boosted | (log_unit == 0), number(0), log_unit * (number(1) / alpha))
        return lax.log(d) + lax.log(v) + power
    unit = number(1) - _draw(boost_keys, dtype)
    power = jnp.where(boosted, number(1), lax.pow(unit, number(1) / alpha))
    return d * v * power


#: From so many elements on those that are drawn again are gathered.
_MANY = 256


def _again_while(open_, draw, start, *given):
    """A state for each element, ``draw(keys, *given)``, drawn again from its new keys while ``open_(state, *given)``.

    ``start`` is open everywhere. Of many elements few are left after the first time: at most an eighth is gathered,
    and drawn at once, which changes no element's bits.
    """
    count = given[0].size

    def all_again(state):
        still = open_(state, *given)
        return tuple(_pick(still, after, before) for after, before in zip(draw(state[0], *given), state))

    def some_again(state):
        (at,) = jnp.nonzero(open_(state, *given), size=count // 8, fill_value=count)
        some = lambda x: x.at[at].get(mode="clip")
        return tuple(x.at[at].set(y, mode="drop") for x, y in zip(state, draw(some(state[0]), *map(some, given))))

    few = count < _MANY or isinstance(start[0], KeyArray)
    first, step = (start, all_again) if few else (draw(start[0], *given), some_again)
    return lax.while_loop(lambda state: jnp.any(open_(state, *given)), step, first)


def _accepted(keys, c, d):
    """The cubes ``v`` that the acceptance test lets pass, drawing again for those it does not."""
    dtype = d.dtype
    number = lambda value: np.array(value, dtype)

    def rejected(state, c, d):
        _, x_square, v, unit = state
        squeeze = unit >= number(1) - number(0.0331) * (x_square * x_square)
        exact = lax.log(unit) >= x_square * number(0.5) + d * (number(1) - v + lax.log(v))
        return squeeze & exact

    def draw(keys, c, d):
        next_keys, normal_keys, uniform_keys = split_keys(keys, 3)
        x, cube_root = _positive(normal_keys, c)
        return next_keys, x * x, cube_root * cube_root * cube_root, _draw(uniform_keys, dtype)

    start = (keys, jnp.zeros_like(d), jnp.ones_like(d), jnp.full_like(d, 2))
    return _again_while(rejected, draw, start, c, d)[2]


def _positive(keys, c):
    """Normal values ``x`` with ``1 + c * x`` positive, and that."""
    dtype = c.dtype

    def draw(keys, c):
        next_keys, normal_keys = split_keys(keys, 2)
        drawn = _draw_normal(normal_keys, dtype)
        return next_keys, drawn, np.ones((), dtype) + drawn * c

    start = (keys, jnp.zeros_like(c), jnp.full_like(c, -1))
    _, x, v = _again_while(lambda state, c: state[2] <= 0, draw, start, c)
    return x, v


@args.placed
def chisquare(
    key: Array, df: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Values of the chi-square distribution.

    Args:
      key: a key.
      df: degrees of freedom, positive.
      shape: shape of the result; that of ``df`` when None.
      dtype: a float dtype; the default when None.
      out_sharding: where the result goes; a `PartitionSpec` over explicit axes of the mesh in use, or a sharding.

    Returns:
      Array of that shape and dtype.

    >>> import ferrax
    >>> ferrax.random.chisquare(ferrax.random.key(0), 3.0, (2,)).shape
    (2,)
    """
    key, shape, dtype = args.sampler("chisquare", key, shape, dtype, df)
    return _chisquare(key, df, shape, dtype)


@partial(jit, static_argnums=(2, 3))
def _chisquare(key, df, shape, dtype):
    half = args.as_dtype(df, dtype) / np.array(2, dtype)
    return lax.exp(loggamma(key, half, shape=shape, dtype=dtype)) * np.array(2, dtype)


@args.placed
def f(
    key: Array,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: Any = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Values of the F distribution: a ratio of chi-square values, each over its degrees of freedom.

    Args:
      key: a key.
      dfnum: degrees of freedom of the numerator.
      dfden: degrees of freedom of the denominator.
      shape: shape of the result; what the parameters broadcast to when None.
      dtype: a float dtype; the default when None.
      out_sharding: where the result goes; a `PartitionSpec` over explicit axes of the mesh in use, or a sharding.

    Returns:
      Array of that shape and dtype.

    >>> import ferrax
    >>> ferrax.random.f(ferrax.random.key(0), 3.0, 4.0, (2,)).shape
    (2,)
    """
    key, shape, dtype = args.sampler("f", key, shape, dtype, dfnum, dfden)
    return _f(key, dfnum, dfden, shape, dtype)


@partial(jit, static_argnums=(3, 4))
def _f(key, dfnum, dfden, shape, dtype):
    dfden, dfnum = args.as_dtype(dfden, dtype), args.as_dtype(dfnum, dtype)
    dfden_key, dfnum_key = split_keys(key, 2)
    dfnum, dfden = jnp.broadcast_to(dfnum, shape), jnp.broadcast_to(dfden, shape)
    numerator = chisquare(dfnum_key, dfnum, shape=shape, dtype=dtype) / dfnum
    return numerator / (chisquare(dfden_key, dfden, shape=shape, dtype=dtype) / dfden)


@args.placed
def t(
    key: Array, df: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Values of Student's t distribution.

    Args, Returns: as in `chisquare`.

    >>> import ferrax
    >>> ferrax.random.t(ferrax.random.key(0), 3.0, (2,)).shape
    (2,)
    """
    key, shape, dtype = args.sampler("t", key, shape, dtype, df)
    check_ranks("true_divide", jnp.asarray(df), np.broadcast_to(0, shape))
    return _t(key, df, shape, dtype)


@partial(jit, static_argnums=(2, 3))
def _t(key, df, shape, dtype):
    df = jnp.broadcast_to(args.as_dtype(df, dtype), shape)
    normal_key, gamma_key = split_keys(key, 2)
    deviate = normal(normal_key, shape, dtype)
    half = df / np.array(2, dtype)
    return deviate * lax.sqrt(half / gamma(gamma_key, half, shape, dtype))


@args.placed
def beta(
    key: Array,
    a: ArrayLike,
    b: ArrayLike,
    shape: Any = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Values with density proportional to ``x**(a - 1) * (1 - x)**(b - 1)``, between 0 and 1.

    Args:
      key: a key.
      a: the first parameter, positive.
      b: the second parameter, positive.
      shape, dtype, out_sharding: as in `f`.

    Returns: as in `f`.

    >>> import ferrax
    >>> ferrax.random.beta(ferrax.random.key(0), 2.0, 3.0, (2,)).shape
    (2,)
    """
    key, shape, dtype = args.sampler("beta", key, shape, dtype, a, b)
    return _beta(key, a, b, shape, dtype)


@partial(jit, static_argnums=(3, 4))
def _beta(key, a, b, shape, dtype):
    a_key, b_key = split_keys(key, 2)
    a, b = (jnp.broadcast_to(args.as_dtype(x, dtype), shape) for x in (a, b))
    log_a, log_b = loggamma(a_key, a, shape, dtype), loggamma(b_key, b, shape, dtype)
    peak = lax.max(log_a, log_b)
    scaled_a, scaled_b = jnp.exp(log_a - peak), jnp.exp(log_b - peak)
    return scaled_a / (scaled_a + scaled_b)


@args.placed
def dirichlet(
    key: Array, alpha: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Vectors of the Dirichlet distribution: non-negative, with sum 1.

    Args:
      key: a key.
      alpha: array of shape (..., n): the concentrations, positive.
      shape: shape of the result without its last axis; that of ``alpha`` without it when None.
      dtype: a float dtype; the default when None.
      out_sharding: where the result goes; a `PartitionSpec` over explicit axes of the mesh in use, or a sharding.

    Returns:
      Array of shape ``shape + (n,)``.

    Raises:
      ValueError: ``alpha`` is a scalar.

    >>> import ferrax, ferrax.numpy as jnp
    >>> ferrax.random.dirichlet(ferrax.random.key(0), jnp.ones(3), (2,)).shape
    (2, 3)
    """
    key, _ = checked_key("dirichlet", key)
    dtype = args.checked_dtype("dirichlet", args.float_or(dtype))
    alpha = jnp.asarray(alpha)
    if alpha.ndim < 1:
        raise ValueError(f"dirichlet requires alpha.ndim >= 1, got alpha.ndim == {alpha.ndim}")
    batch = alpha.shape[:-1]
    shape = batch if shape is None else args.broadcast_shape(shape, np.empty(batch))
    return _dirichlet(key, alpha, shape, dtype)


@partial(jit, static_argnums=(2, 3))
def _dirichlet(key, alpha, shape, dtype):
    logs = loggamma(key, args.as_dtype(alpha, dtype), (*shape, alpha.shape[-1]), dtype)
    # a softmax, so that values that underflow keep their proportions
    unnormalized = jnp.exp(logs - lax.stop_gradient(jnp.max(logs, axis=-1, keepdims=True, initial=-jnp.inf)))
    return unnormalized / jnp.sum(unnormalized, axis=-1, keepdims=True)


@args.placed
def generalized_normal(
    key: Array, p: ArrayLike, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Values with density proportional to ``exp(-|x|**p)``.

    Args:
      key: a key.
      p: the exponent.
      shape, dtype, out_sharding: as in `exponential`.

    Returns: as in `exponential`.

    >>> import ferrax
    >>> ferrax.random.generalized_normal(ferrax.random.key(0), 2.0, (2,)).shape
    (2,)
    """
    key, shape, dtype = args.sampler("generalized_normal", key, shape, dtype)
    return _generalized_normal(key, p, shape, dtype)


@partial(jit, static_argnums=(2, 3))
def _generalized_normal(key, p, shape, dtype):
    gamma_key, sign_key = split_keys(key, 2)
    size = gamma(gamma_key, 1 / p, shape, dtype)
    return rademacher(sign_key, shape, dtype) * size ** (1 / p)


@args.placed
def ball(
    key: Array, d: int, p: ArrayLike = 2, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Points uniformly distributed in the unit ball of the p-norm.

    Args:
      key: a key.
      d: number of dimensions.
      p: which norm.
      shape: how many points.
      dtype: a float dtype; the default when None.
      out_sharding: where the result goes; a `PartitionSpec` over explicit axes of the mesh in use, or a sharding.

    Returns:
      Array of shape ``shape + (d,)``.

    Source: Barthe et al., "A probabilistic approach to the geometry of the l_p^n-ball" (2005).

    >>> import ferrax
    >>> ferrax.random.ball(ferrax.random.key(0), 3, shape=(2,)).shape
    (2, 3)
    """
    key, shape, dtype = args.sampler("ball", key, shape, dtype)
    return _ball(key, operator.index(d), p, shape, dtype)


@partial(jit, static_argnums=(1, 3, 4))
def _ball(key, d, p, shape, dtype):
    direction_key, radius_key = split_keys(key, 2)
    direction = generalized_normal(direction_key, p, (*shape, d), dtype)
    excess = exponential(radius_key, shape, dtype)
    length = ((jnp.abs(direction) ** p).sum(-1) + excess) ** (1 / p)
    return direction / length[..., None]
