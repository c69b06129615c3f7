"""Samplers of permutations, choices, categories and counts.

Poisson counts come from Knuth's product of uniform values for small rates and from Hörmann's transformed rejection
for large ones; binomial counts from geometric gaps and from Hörmann's BTRS in the same way. Sources: Hörmann, "The
transformed rejection method for generating Poisson random variables" (1993) and "The generation of binomial random
variates" (1993). Read next: ``__init__.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

import ferrax.numpy as jnp
from ferrax import jit, lax
from ferrax._ferrax import Array
from ferrax._narrow import limits
from ferrax._shapes import broadcast_shapes, static_shape
from ferrax.numpy._args import promote_inexact
from ferrax.random import _arguments as args
from ferrax.random._bits import randint, random_words, uniform
from ferrax.random._continuous import gumbel
from ferrax.random._keys import checked_key, clone, is_key, split_each, split_keys
from ferrax.typing import ArrayLike, DTypeLike

__all__ = ["binomial", "categorical", "choice", "geometric", "multinomial", "permutation", "poisson"]


def _population(function, x):
    """``x`` as an array; Python containers are refused."""
    if isinstance(x, (list, tuple)) or x is None:
        raise TypeError(f"{function} requires ndarray or scalar arguments, got {type(x)} at position 0.")
    return x if is_key(x) else jnp.asarray(x)


@args.placed
def permutation(
    key: Array, x: ArrayLike, axis: Any = 0, independent: bool = False, *, out_sharding: Any = None
) -> Array:
    """A random permutation of an array along an axis, or of ``arange(x)``.

    Args:
      key: a key.
      x: array, or an integer.
      axis: the axis to permute.
      independent: permute each vector along the axis by itself, rather than whole slices.
      out_sharding: where the result goes; a `PartitionSpec` over explicit axes of the mesh in use, or a sharding.

    Returns:
      Array of the shape and dtype of ``x``.

    Raises:
      TypeError: ``x`` is a scalar, and not an integer.

    >>> import ferrax
    >>> ferrax.random.permutation(ferrax.random.key(0), 5).shape
    (5,)
    """
    key, _ = checked_key("permutation", key)
    count, x = x, _population("permutation", x)
    axis = _axis(axis, max(x.ndim, 1))
    if not x.ndim:
        if not jnp.issubdtype(x.dtype, jnp.integer):
            raise TypeError("x must be an integer or at least 1-dimensional")
        return _shuffle(key, jnp.arange(int(count)), axis)
    if independent or x.ndim == 1:
        return _shuffle(key, x, axis)
    order = _shuffle(key, jnp.arange(x.shape[axis]), 0)
    return jnp.take(x, order, axis, unique_indices=True)


def _axis(axis, ndim):
    """``axis`` counted from the front."""
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return axis % ndim


@partial(jit, static_argnums=(2,))
def _shuffle(key, x, axis):
    # sorting by random words; ties keep their order, so a large array is sorted again, until with high probability
    # no pair has been tied in every round
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, round_key = split_keys(key, 2)
        _, x = lax.sort_key_val(random_words(round_key, 32, x.shape), x, axis)
    return x


def choice(
    key: Array,
    a: ArrayLike,
    shape: Any = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: Any = 0,
    mode: Any = None,
) -> Array:
    """Random entries of an array, or random numbers below an integer.

    Args:
      key: a key.
      a: array, or an integer for ``arange(a)``.
      shape: shape of the result in place of the axis.
      replace: whether an entry can be drawn more than once.
      p: array of the probabilities of the entries; uniform when None.
      axis: the axis that the entries lie along.
      mode: precision of the Gumbel values used with ``p`` and without replacement, as of `gumbel`.

    Returns:
      Array of the dtype of ``a``.

    Raises:
      ValueError: more entries asked for than there are, or ``p`` has the wrong shape.

    >>> import ferrax, ferrax.numpy as jnp
    >>> ferrax.random.choice(ferrax.random.key(0), jnp.array([5, 7, 9]), (4,)).shape
    (4,)
    """
    key, _ = checked_key("choice", key)
    if not isinstance(shape, Sequence):
        raise TypeError(f"shape argument of jax.random.choice must be a sequence, got {shape}")
    shape = static_shape(shape)
    population = _population("choice", a)
    scalar = population.ndim == 0
    count = int(a) if scalar else population.shape[_axis(axis, population.ndim)]
    axis = 0 if scalar else _axis(axis, population.ndim)
    draws = math.prod(shape)
    full = shape if scalar else population.shape[:axis] + shape + population.shape[axis + 1 :]
    if draws == 0:
        return jnp.zeros(full, dtype=population.dtype)
    if count <= 0:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and draws > count:
        raise ValueError(
            f"Cannot take a larger sample (size {draws}) than population (size {count}) when 'replace=False'"
        )
    if p is None:
        if not replace:
            window = (slice(None),) * axis + (slice(draws),)
            return permutation(key, count if scalar else population, axis)[window].reshape(full)
        index = randint(key, shape, 0, count)
    else:
        index = _weighted(key, count, shape, replace, p, mode)
    return (index if scalar else jnp.take(population, index, axis=axis)).reshape(full)


def _weighted(key, count, shape, replace, p, mode):
    """Indices below ``count`` drawn with probabilities ``p``."""
    p = jnp.asarray(p)
    p = p.astype(p.dtype if jnp.issubdtype(p.dtype, jnp.inexact) else float)
    if p.shape != (count,):
        raise ValueError(
            "p must be None or a 1D vector with the same size as a.shape[axis]. "
            f"p has shape {p.shape} and a.shape[axis] is {count}."
        )
    if replace:
        cumulative = jnp.cumsum(p)
        level = cumulative[-1] * (1 - uniform(key, shape, dtype=cumulative.dtype))
        return jnp.searchsorted(cumulative, level).astype(int)
    # the largest of Gumbel-perturbed log probabilities are a weighted sample without replacement
    perturbed = gumbel(key, (count,), dtype=p.dtype, mode=mode) + jnp.log(p)
    return lax.top_k(perturbed, math.prod(shape))[1].reshape(shape).astype(int)


@args.placed
def categorical(
    key: Array,
    logits: ArrayLike,
    axis: Any = -1,
    shape: Any = None,
    replace: bool = True,
    mode: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Random categories, given the logarithms of their (unnormalized) probabilities.

    Args:
      key: a key.
      logits: array of log probabilities.
      axis: the axis that the categories lie along.
      shape: shape of the result: any axes, followed by those of ``logits`` without ``axis``; only these when None.
      replace: whether the draws along the leading axes may repeat a category.
      mode: precision of the Gumbel values, as of `gumbel`.
      out_sharding: where the result goes; a `PartitionSpec` over explicit axes of the mesh in use, or a sharding.

    Returns:
      Integer array.

    Raises:
      ValueError: the shape does not fit, or more draws without replacement than categories.

    >>> import ferrax, ferrax.numpy as jnp
    >>> ferrax.random.categorical(ferrax.random.key(0), jnp.log(jnp.array([0.5, 0.5])), shape=(4,)).shape
    (4,)
    """
    key, _ = checked_key("categorical", key)
    logits = _population("categorical", logits)
    axis = _axis(axis, logits.ndim) - logits.ndim
    batch = logits.shape[:axis] + (logits.shape[axis + 1 :] if axis != -1 else ())
    shape = batch if shape is None else args.broadcast_shape(shape, SimpleNamespace(shape=batch))
    lead = shape[: len(shape) - len(batch)]
    if replace:
        own = list(shape[len(shape) - len(batch) :])
        own.insert(axis % logits.ndim, logits.shape[axis])
        noise = gumbel(key, (*lead, *own), logits.dtype, mode=mode)
        return jnp.argmax(noise + jnp.expand_dims(logits, tuple(range(len(lead)))), axis=axis)
    draws = math.prod(lead)
    if draws > logits.shape[axis]:
        raise ValueError(
            f"Number of samples without replacement ({draws}) cannot exceed number of categories "
            f"({logits.shape[axis]})."
        )
    perturbed = jnp.moveaxis(logits + gumbel(key, logits.shape, logits.dtype, mode=mode), axis, -1)
    indices = lax.top_k(perturbed, draws)[1]
    return jnp.moveaxis(indices, -1, 0).reshape(shape)


@args.placed
def geometric(
    key: Array, p: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Numbers of trials up to the first success.

    Args:
      key: a key.
      p: probability of success of a trial.
      shape: shape of the result; that of ``p`` when None.
      dtype: an integer dtype; the default when None.
      out_sharding: where the result goes; a `PartitionSpec` over explicit axes of the mesh in use, or a sharding.

    Returns:
      Array of that shape and dtype, at least 1.

    >>> import ferrax
    >>> ferrax.random.geometric(ferrax.random.key(0), 0.5, (2,)).shape
    (2,)
    """
    key, _ = checked_key("geometric", key)
    dtype = args.checked_dtype("geometric", args.int_or(dtype), "int")
    return _geometric(key, p, args.broadcast_shape(shape, p), dtype)


@partial(jit, static_argnums=(2, 3))
def _geometric(key, p, shape, dtype):
    args.broadcast_shape(shape, p)
    p = jnp.asarray(p)
    p = p.astype(p.dtype if jnp.issubdtype(p.dtype, jnp.inexact) else float)
    unit = uniform(key, shape, p.dtype)
    unit = jnp.where(unit == 0, 1, unit)
    return (jnp.floor(lax.log(unit) / jnp.broadcast_to(lax.log1p(-p), shape)) + 1).astype(dtype)


@args.placed
def poisson(
    key: Array, lam: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Counts of the Poisson distribution.

    Args:
      key: a key.
      lam: the rate, non-negative.
      shape: shape of the result; that of ``lam`` when None.
      dtype: an integer dtype; the default when None.
      out_sharding: where the result goes; a `PartitionSpec` over explicit axes of the mesh in use, or a sharding.

    Returns:
      Array of that shape and dtype.

    >>> import ferrax
    >>> ferrax.random.poisson(ferrax.random.key(0), 3.0, (2,)).shape
    (2,)
    """
    key, _ = checked_key("poisson", key)
    dtype = args.int_or(dtype)
    if not jnp.issubdtype(dtype, jnp.integer):
        raise ValueError(f"dtype argument to `poisson` must be an int dtype, got {dtype}")
    shape = args.broadcast_shape(shape, lam)
    rate = args.as_dtype(jnp.broadcast_to(jnp.asarray(lam), shape), jnp.float32)
    return _poisson(key, rate, shape, dtype)


@partial(jit, static_argnums=(2, 3))
def _poisson(key, lam, shape, dtype):
    small = jnp.isnan(lam) | (lam < 10)
    # each method sees a harmless rate where the other is used; of a result only one of them has used the key
    few = _poisson_knuth(key, jnp.where(small, lam, 0.0), shape, dtype)
    many = _poisson_rejection(clone(key), jnp.where(small, 1e5, lam), shape, dtype)
    return jnp.where(lam == 0, jnp.zeros((), dtype), jnp.where(small, few, many))


@partial(jit, static_argnums=(2, 3))
def _poisson_knuth(key, lam, shape, dtype):
    largest = min(limits(dtype).max, np.iinfo(np.int32).max)  # rounds are counted in int32

    def body(state):
        i, count, key, log_product = state
        key, round_key = split_keys(key, 2)
        count = jnp.where(log_product > -lam, count + 1, count)
        # of rates in single precision, whatever the default dtype: the streams are JAX's
        return i + 1, count, key, log_product + jnp.log(uniform(round_key, shape, lam.dtype))

    def open_(state):
        i, _, _, log_product = state
        return (log_product > -lam).any() & (i < largest)

    start = (jnp.zeros((), jnp.int32), jnp.zeros(shape, dtype), key, jnp.zeros(shape, lam.dtype))
    return (lax.while_loop(open_, body, start)[1] - 1).astype(dtype)


@partial(jit, static_argnums=(2, 3))
def _poisson_rejection(key, lam, shape, dtype):
    log_lam = lax.log(lam)
    b = 0.931 + 2.53 * lax.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)
    largest = min(limits(dtype).max, np.iinfo(np.int32).max)  # rounds are counted in int32

    def body(state):
        i, chosen, accepted, key = state
        key, u_key, v_key = split_keys(key, 3)
        u = uniform(u_key, shape, lam.dtype) - 0.5
        v = uniform(v_key, shape, lam.dtype)
        u_shifted = 0.5 - abs(u)
        k = lax.floor((2 * a / u_shifted + b) * u + lam + 0.43)
        s = lax.log(v * inverse_alpha / (a / (u_shifted * u_shifted) + b))
        t = -lam + k * log_lam - lax.lgamma(k + 1)
        quick = (u_shifted >= 0.07) & (v <= v_r)
        reject = (k < 0) | ((u_shifted < 0.013) & (v > u_shifted))
        accept = quick | (~reject & (s <= t))
        return i + 1, jnp.where(accept, k, chosen), accepted | accept, key

    def open_(state):
        i, _, accepted, _ = state
        return (~accepted).any() & (i < largest)

    start = (jnp.zeros((), jnp.int32), jnp.full(shape, -1, lam.dtype), jnp.zeros(shape, bool), key)
    return lax.while_loop(open_, body, start)[1].astype(dtype)


def binomial(key: Array, n: ArrayLike, p: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None) -> Array:
    """Numbers of successes in ``n`` trials.

    Args:
      key: a key.
      n: number of trials.
      p: probability of success of a trial.
      shape: shape of the result; what the parameters broadcast to when None.
      dtype: a float dtype; the default when None.

    Returns:
      Array of that shape and dtype; NaN where the parameters make no sense.

    >>> import ferrax
    >>> ferrax.random.binomial(ferrax.random.key(0), 10, 0.5, (2,)).shape
    (2,)
    """
    key, _ = checked_key("binomial", key)
    dtype = args.checked_dtype("binomial", args.float_or(dtype))
    p = jnp.asarray(p)
    # floats of a byte have neither the range nor the infinity that gaps between successes need
    p = p.astype(p.dtype if jnp.issubdtype(p.dtype, jnp.inexact) and p.dtype.itemsize > 1 else float)
    n = jnp.asarray(n).astype(p.dtype)
    return _binomial(key, n, p, args.broadcast_shape(shape, n, p), dtype)


@partial(jit, static_argnums=(3, 4))
def _binomial(key, n, p, shape, dtype):
    n, p = jnp.broadcast_to(n, shape), jnp.broadcast_to(p, shape)
    # successes and failures change roles above 1/2
    below_half = p < 0.5
    q = jnp.where(below_half, p, 1.0 - p)
    n_bad, q_nan, q_negative = jnp.isnan(n) | (n < 0.0), jnp.isnan(q), q < 0.0
    n_infinite = jnp.isinf(n)
    q = jnp.where(q_nan | q_negative, 0.01, q)
    # an endless number of trials is not drawn: some probabilities would never be done
    inversion = n_bad | n_infinite | (n * q <= 10.0)
    trials = lax.floor(jnp.where(n_infinite, 0.0, n))
    by_gaps = _binomial_gaps(key, jnp.where(inversion, trials, 0.0), q, shape, dtype)
    by_rejection = _btrs(clone(key), jnp.where(inversion, 10_000.0, trials), jnp.where(inversion, 0.5, q), shape, dtype)
    trials = trials.astype(dtype)
    count = jnp.where(inversion, by_gaps, by_rejection)
    invalid = q_nan | q_negative | n_bad
    count = jnp.where(invalid, jnp.nan, count)
    count = jnp.where(n_infinite & ~invalid, jnp.inf, count)
    as_drawn = below_half | n_bad | q_nan | n_infinite
    return jnp.where(as_drawn, count, trials - count).astype(dtype)


def _binomial_gaps(key, n, p, shape, dtype):
    """Successes counted by the geometric gaps between them."""
    log1_p = jnp.log1p(-p)
    largest = limits(dtype).max

    def body(state):
        i, gaps, position, key = state
        gap_key, key = split_keys(key, 2)
        gaps = jnp.where(position <= n, gaps + 1, gaps)
        gap = lax.ceil(lax.log(uniform(gap_key, shape, p.dtype)) / log1_p)
        return i + 1, gaps, position + gap, key

    def open_(state):
        i, _, position, _ = state
        return (position <= n).any() & (lax.convert_element_type(i, dtype) < largest)

    start = (jnp.zeros((), jnp.int32), jnp.zeros(shape, p.dtype), jnp.zeros(shape, p.dtype), key)
    return (lax.while_loop(open_, body, start)[1] - 1).astype(dtype)


# log k! less Stirling's formula for it, for k = 0 to 9; above, three terms of the asymptotic series
_STIRLING_TAIL = [
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
    0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
]  # fmt: skip


def _stirling_tail(k, dtype):
    small = k <= 9
    clipped = jnp.clip(k, 0.0, 9.0)
    square = (clipped + 1) * (clipped + 1)
    series = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (clipped + 1)
    table = jnp.asarray(_STIRLING_TAIL, dtype)
    return jnp.where(small, table[lax.floor(clipped).astype(jnp.int32)], series)


def _btrs(key, n, p, shape, dtype):
    """Successes by transformed rejection with squeeze."""
    spread = lax.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * spread
    mode = lax.floor((n + 1) * p)
    largest = limits(dtype).max

    def body(state):
        i, chosen, accepted, key = state
        key, u_key, v_key = split_keys(key, 3)
        u = uniform(u_key, shape, p.dtype)
        v = uniform(v_key, shape, p.dtype)
        u = u - 0.5
        u_shifted = 0.5 - jnp.abs(u)
        quick = (u_shifted >= 0.07) & (v <= v_r)
        k = lax.floor((2 * a / u_shifted + b) * u + c)
        reject = (k < 0) | (k > n)
        v = lax.log(v * alpha / (a / (u_shifted * u_shifted) + b))
        bound = (
            (mode + 0.5) * lax.log((mode + 1) / (odds * (n - mode + 1)))
            + (n + 1) * lax.log((n - mode + 1) / (n - k + 1))
            + (k + 0.5) * lax.log(odds * (n - k + 1) / (k + 1))
            + _stirling_tail(mode, p.dtype)
            + _stirling_tail(n - mode, p.dtype)
            - _stirling_tail(k, p.dtype)
            - _stirling_tail(n - k, p.dtype)
        )
        accept = quick | (~reject & (v <= bound))
        return i + 1, jnp.where(accept, k, chosen), accepted | accept, key

    def open_(state):
        i, _, accepted, _ = state
        return (~accepted).any() & (lax.convert_element_type(i, dtype) < largest)

    start = (jnp.zeros((), jnp.int32), jnp.full(shape, -1, p.dtype), jnp.zeros(shape, bool), key)
    return lax.while_loop(open_, body, start)[1].astype(dtype)


def multinomial(
    key: Array, n: ArrayLike, p: ArrayLike, *, shape: Any = None, dtype: DTypeLike | None = None, unroll: Any = 1
) -> Array:
    """Numbers of each outcome in ``n`` trials.

    Args:
      key: a key.
      n: number of trials; array of shape (...).
      p: probabilities of the outcomes; array of shape (..., k).
      shape: shape of the result, the last axis being ``k``; what the parameters broadcast to when None.
      dtype: of the result; the default float when None. The counts are drawn in the parameters' own.
      unroll: how many outcomes a step of the loop handles.

    Returns:
      Array of shape (..., k), with sum ``n`` along the last axis.

    >>> import ferrax, ferrax.numpy as jnp
    >>> ferrax.random.multinomial(ferrax.random.key(0), 10, jnp.array([0.5, 0.5])).sum()
    Array(10., dtype=float32)
    """
    key, _ = checked_key("multinomial", key)
    dtype = args.float_or(dtype)
    n, p = promote_inexact("multinomial", n, p)
    batch = tuple(broadcast_shapes(n.shape, p.shape[:-1]))
    full = (*batch, p.shape[-1])
    shape = full if shape is None else args.broadcast_shape(shape, np.empty(full))
    n, p = jnp.broadcast_to(n, shape[:-1]), jnp.broadcast_to(p, shape)
    # an outcome is a binomial count among the trials that earlier outcomes left
    remaining = lax.cumsum(p, axis=p.ndim - 1, reverse=True)
    ratios = jnp.moveaxis(p / jnp.where(remaining == 0, 1, remaining), -1, 0)
    keys = split_each(key, (ratios.shape[0],))

    def step(left, item):
        ratio, outcome_key = item
        count = binomial(outcome_key, left, jnp.clip(ratio, 0, 1), shape=left.shape, dtype=left.dtype)
        return left - count, count

    _, counts = lax.scan(step, n, (ratios, keys), unroll=unroll)
    return jnp.moveaxis(counts, 0, -1).astype(dtype)
