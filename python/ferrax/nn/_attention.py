"""Scaled dot-product attention, in its multi-head, grouped-query and multi-query forms.

Sources: Vaswani et al., "Attention is all you need" (2017); Ainslie et al., "GQA" (2023). Axis letters: B batch, T
query positions, S key positions, N query heads, K key heads, G = N / K heads of a group, H features.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import ferrax.numpy as jnp
from ferrax import lax
from ferrax._narrow import limits
from ferrax._shapes import is_symbolic_dim
from ferrax.nn._arguments import to_array
from ferrax.nn._normalize import logsumexp, softmax
from ferrax.typing import ArrayLike

__all__ = ["dot_product_attention"]


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: ArrayLike | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: Any = None,
    implementation: Any = None,
    return_residual: bool = False,
) -> Any:
    """``softmax(query @ key.T * scale + bias) @ value``, per head.

    Args:
      query: array of shape (B, T, N, H) or (T, N, H).
      key: array of shape (B, S, K, H) or (S, K, H); N is a multiple of K.
      value: array of the shape of ``key``.
      bias: added to the logits; broadcastable to (B, N, T, S), of rank 4 (3 without batch).
      mask: boolean, True where a query may attend; broadcastable as ``bias``.
      scale: factor of the logits; ``1 / sqrt(H)`` when None.
      is_causal: a query attends to no later position.
      query_seq_lengths: int32 array (B,): later queries give zeros.
      key_value_seq_lengths: int32 array (B,): later keys are not attended to.
      local_window_size: (left, right) window around each position, or one integer for both.
      implementation: None or ``"xla"``.
      return_residual: also return the log-sum-exp of the logits.

    Returns:
      Array of the shape of ``query``; with ``return_residual`` a pair with an array of shape (B, T, N).

    Raises:
      ValueError: the shapes do not go together.
      NotImplementedError: ``implementation`` is ``"cudnn"``.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> x = jnp.ones((1, 3, 2, 4))
    >>> ferrax.nn.dot_product_attention(x, x, x).shape
    (1, 3, 2, 4)
    """
    if implementation == "cudnn":
        raise NotImplementedError("dot_product_attention with implementation='cudnn'; leave it None")
    if implementation not in (None, "xla"):
        raise ValueError(f"Unsupported implementation option: {implementation}")
    query, key, value = (to_array("dot_product_attention", x, i) for i, x in enumerate((query, key, value)))
    shape = query.shape
    query, key, value, bias, mask = (_with_batch(x) for x in (query, key, value, bias, mask))
    query_seq_lengths, key_value_seq_lengths = (
        None if x is None else jnp.asarray(x) for x in (query_seq_lengths, key_value_seq_lengths)
    )
    _check(query, key, value, bias, mask, query_seq_lengths, key_value_seq_lengths)
    if scale is None:
        features = query.shape[-1]
        scale = 1 / jnp.sqrt(features) if is_symbolic_dim(features) else 1 / math.sqrt(features)
    window = (local_window_size,) * 2 if isinstance(local_window_size, int) else local_window_size

    batch, targets, heads, features = query.shape
    sources, groups = key.shape[1], key.shape[2]
    grouped = query.reshape(batch, targets, groups, heads // groups, features)
    logits = jnp.einsum("BTKGH,BSKH->BKGTS", grouped, key, preferred_element_type=jnp.float32)
    logits = (logits * jnp.asarray(scale, logits.dtype)).astype(jnp.result_type(jnp.float32, logits))
    if bias is not None:
        logits = (logits + _grouped(bias, heads, groups)).astype(logits.dtype)
    allowed = _mask(mask, targets, sources, heads, groups, is_causal, query_seq_lengths, key_value_seq_lengths, window)
    if allowed is not None:
        # a large finite value, so that a row with nothing to attend to does not become NaN
        lowest = jnp.asarray(-0.7 * float(limits(logits.dtype).max), logits.dtype)
        logits = jnp.where(allowed, logits, lowest)
    weights = softmax(logits, axis=-1).astype(key.dtype)
    result = jnp.einsum("BKGTS,BSKH->BTKGH", weights, value)
    if query_seq_lengths is not None:
        valid = jnp.arange(targets)[None, :] < query_seq_lengths[:, None]
        result = result * valid[:, :, None, None, None].astype(result.dtype)
    result = result.reshape(batch, targets, heads, features).reshape(shape)
    if not return_residual:
        return result
    residual = jnp.transpose(logsumexp(logits, axis=-1), (0, 3, 1, 2)).reshape(batch, targets, heads)
    return result, lax.stop_gradient(residual.astype(key.dtype).reshape(shape[:-1]))


def _with_batch(x):
    """``x`` with axes in front of its own up to four, or None."""
    if x is None:
        return None
    x = to_array("dot_product_attention", x)
    return jnp.expand_dims(x, tuple(range(4 - x.ndim))) if x.ndim < 4 else x


def _check(query, key, value, bias, mask, query_lengths, key_lengths):
    """Raises ValueError where the operands do not go together."""
    if key.ndim != 4:
        raise ValueError(f"key ndim should be 4, but got {key.ndim}")
    batch, sources, groups, features = key.shape
    int32 = np.dtype(np.int32)
    wanted = {
        "value": (value, [batch, sources, groups, features], key.dtype),
        "query": (query, [batch, -1, -1, features], key.dtype),
        "mask": (mask, [-1] * 4, np.dtype(bool)),
        "bias": (bias, [-1] * 4, None),
        "query_seq_lengths": (query_lengths, [batch], int32),
        "key_value_seq_lengths": (key_lengths, [batch], int32),
    }
    for name, (x, shape, dtype) in wanted.items():
        if x is None:
            continue
        if x.ndim != len(shape):
            raise ValueError(f"{name} ndim should be {len(shape)}, but got {x.ndim}")
        if dtype is not None and x.dtype != dtype:
            advice = "; pass it as bias to add it" if name == "mask" else ""
            raise ValueError(f"{name} dtype should be {dtype}, but got {x.dtype}{advice}")
        if any(want not in (-1, have) for have, want in zip(x.shape, shape)):
            raise ValueError(f"{name} shape should be {shape}: but got {x.shape}")
    targets, heads = query.shape[1:3]
    if heads % groups:
        raise ValueError(
            f"The number of query heads must be a multiple of key/value heads, but got {heads} vs {groups}"
        )
    full = (batch, heads, targets, sources)
    for name, x in (("bias", bias), ("mask", mask)):
        if x is not None and any(have not in (1, want) for have, want in zip(x.shape, full)):
            raise ValueError(f"dot_product_attention: {name} of shape {x.shape} does not broadcast to {full}")


def _grouped(x, heads, groups):
    """(B, N or 1, T, S) as (B, K or 1, G or 1, T, S)."""
    batch, n, targets, sources = x.shape
    return x.reshape(batch, *((groups, heads // groups) if n == heads else (1, 1)), targets, sources)


def _mask(mask, targets, sources, heads, groups, is_causal, query_lengths, key_lengths, window):
    """The conjunction of all that limits attention, broadcastable to (B, K, G, T, S), or None."""
    rows, columns = jnp.arange(targets)[:, None], jnp.arange(sources)[None, :]
    parts = []
    if mask is not None:
        parts.append(_grouped(mask, heads, groups))
    if is_causal:
        parts.append((rows >= columns)[None, None, None])
    if window is not None:
        left, right = window
        parts.append(((rows <= columns + left) & (rows >= columns - right))[None, None, None])
    if query_lengths is not None:
        parts.append((rows[None] < query_lengths[:, None, None])[:, None, None])
    if key_lengths is not None:
        parts.append((columns[None] < key_lengths[:, None, None])[:, None, None])
    if not parts:
        return None
    allowed = parts[0]
    for part in parts[1:]:
        allowed = allowed & part
    return allowed
