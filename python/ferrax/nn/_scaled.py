"""Matrix products of block-scaled (microscaling) operands.

Source: the OCP Microscaling Formats specification, version 1.0 (2023): a block of consecutive elements along the
contracted axis shares one scale.
"""

from __future__ import annotations

from typing import Any

import ferrax.numpy as jnp
from ferrax import lax
from ferrax._ferrax import Array
from ferrax.typing import ArrayLike, DTypeLike

__all__ = ["get_scaled_dot_general_config", "scaled_dot_general", "scaled_matmul"]


def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike = jnp.float32,
) -> Array:
    """Batched product of two block-scaled matrices, contracted over their last axes.

    Args:
      lhs: array of shape (B, M, K).
      rhs: array of shape (B, N, K).
      lhs_scales: array of shape (B, M, K / block).
      rhs_scales: array of shape (B, N, K / block).
      preferred_element_type: dtype of the result.

    Returns:
      Array of shape (B, M, N).

    Raises:
      ValueError: the shapes do not go together.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> a, b = jnp.array([[[1, 2, 3]]]), jnp.array([[[4, 5, 6]]])
    >>> half = jnp.array([[[0.5]]])
    >>> ferrax.nn.scaled_matmul(a, b, half, half)
    Array([[[8.]]], dtype=float32)
    """
    lhs, rhs, lhs_scales, rhs_scales = map(jnp.asarray, (lhs, rhs, lhs_scales, rhs_scales))
    for name, x in (("lhs", lhs), ("rhs", rhs), ("lhs_scales", lhs_scales), ("rhs_scales", rhs_scales)):
        if x.ndim != 3:
            raise ValueError(f"scaled_matmul: {name} must have 3 axes, got shape {x.shape}")
    if lhs.shape[0] != rhs.shape[0] or lhs.shape[2] != rhs.shape[2]:
        raise ValueError(f"scaled_matmul: lhs has shape {lhs.shape}, rhs has {rhs.shape}")
    product = jnp.einsum(
        "BMK,BNK->BMN", _unscaled("lhs", lhs, lhs_scales), _unscaled("rhs", rhs, rhs_scales),
        precision=lax.Precision.HIGHEST,
    )  # fmt: skip
    return product.astype(preferred_element_type)


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: Any,
    preferred_element_type: DTypeLike = jnp.float32,
    configs: Any = None,
    implementation: Any = None,
) -> Array:
    """``lax.dot_general`` with its operands quantized in scaled blocks.

    Args:
      lhs: array.
      rhs: array.
      dimension_numbers: ``((lhs contracted, rhs contracted), (lhs batch, rhs batch))``.
      preferred_element_type: dtype of the result.
      configs: how to quantize; None for not at all, the only value that is available.
      implementation: ignored.

    Returns:
      Array: batch axes, then those of ``lhs``, then those of ``rhs``.

    Raises:
      NotImplementedError: ``configs`` is given.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> x = jnp.ones((1, 2, 3))
    >>> ferrax.nn.scaled_dot_general(x, x, (((2,), (2,)), ((0,), (0,)))).shape
    (1, 2, 2)
    """
    if configs is not None:
        raise NotImplementedError("scaled_dot_general with configs: quantize the operands and use scaled_matmul")
    return lax.dot_general(lhs, rhs, dimension_numbers, preferred_element_type=preferred_element_type)


def get_scaled_dot_general_config(mode: str, global_scale: Any = None) -> Any:
    """The quantization of a named block-scaled format.

    Args:
      mode: ``"nvfp4"`` or ``"mxfp8"``.
      global_scale: scale of a whole tensor.

    Returns:
      Nothing: there is no such format yet.

    Raises:
      ValueError: ``mode`` is neither.
      NotImplementedError: always, otherwise.

    >>> import ferrax.nn
    >>> ferrax.nn.get_scaled_dot_general_config("mxfp8")
    Traceback (most recent call last):
        ...
    NotImplementedError: get_scaled_dot_general_config('mxfp8')
    """
    if mode not in ("nvfp4", "mxfp8"):
        raise ValueError(f"Unsupported mode: {mode}")
    raise NotImplementedError(f"get_scaled_dot_general_config({mode!r})")


def _unscaled(name, x, scales):
    """The values that scaled elements stand for, in float32."""
    if scales.shape[:2] != x.shape[:2] or not scales.shape[2] or x.shape[2] % scales.shape[2]:
        raise ValueError(f"scaled_matmul: {name} has shape {x.shape}, its scales have {scales.shape}")
    block = x.shape[2] // scales.shape[2]
    return x.astype(jnp.float32) * jnp.repeat(scales.astype(jnp.float32), block, axis=-1)
