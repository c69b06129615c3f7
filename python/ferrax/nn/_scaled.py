"""Matrix products of block-scaled (microscaling) operands.

Source: the OCP Microscaling Formats specification, version 1.0 (2023): a block of consecutive elements along the
contracted axis shares one scale.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from functools import partial
from typing import Any

import ferrax.numpy as jnp
from ferrax import custom_vjp, lax
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
            raise ValueError(
                f"scaled_matmul requires all inputs to be 3-dimensional arrays; {name} has shape {x.shape}"
            )
    if lhs.shape[0] != rhs.shape[0] or lhs.shape[2] != rhs.shape[2]:
        raise ValueError(f"scaled_matmul: lhs has shape {lhs.shape}, rhs has {rhs.shape}")
    product = jnp.einsum(
        "BMK,BNK->BMN", _unscaled("lhs", lhs, lhs_scales), _unscaled("rhs", rhs, rhs_scales),
        precision=lax.Precision.HIGHEST,
    )  # fmt: skip
    return product.astype(preferred_element_type)


@dataclasses.dataclass(slots=True)
class BlockScaleConfig:
    """How an operand is quantized: blocks of ``block_size`` elements share a scale."""

    mode: str
    block_size: int
    data_type: DTypeLike
    scale_type: DTypeLike
    global_scale: Any
    infer_only: bool


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: Any,
    preferred_element_type: DTypeLike = jnp.float32,
    configs: Any = None,
    implementation: Any = None,
) -> Array:
    """``lax.dot_general`` with its operands quantized in scaled blocks along the contracted axes.

    Gradients are products of operands that are quantized anew, along the axes that those contract; in ``"nvfp4"`` they
    are products of the operands themselves, and 0 where an operand was too large for its format.

    Args:
      lhs: array.
      rhs: array.
      dimension_numbers: ``((lhs contracted, rhs contracted), (lhs batch, rhs batch))``.
      preferred_element_type: dtype of the result: float32, bfloat16 or float16 where ``configs`` is given.
      configs: how ``lhs``, ``rhs`` and the gradient of the result are quantized (``get_scaled_dot_general_config``);
        None for not at all.
      implementation: ignored, with a DeprecationWarning.

    Returns:
      Array: batch axes, then those of ``lhs``, then those of ``rhs``.

    Raises:
      TypeError: ``preferred_element_type`` is another one.
      ValueError: the elements that are contracted do not fill blocks.

    >>> import ferrax.nn, ferrax.numpy as jnp
    >>> x = jnp.ones((1, 2, 64))
    >>> configs = [ferrax.nn.get_scaled_dot_general_config("mxfp8")] * 3
    >>> ferrax.nn.scaled_dot_general(x, x, (((2,), (2,)), ((0,), (0,))), configs=configs)
    Array([[[64., 64.],
            [64., 64.]]], dtype=float32)
    """
    if implementation is not None:
        warnings.warn("Backend selector, now ignored. The system chooses the backend automatically.",
                      DeprecationWarning, stacklevel=2)  # fmt: skip
    if configs is None:
        return lax.dot_general(lhs, rhs, dimension_numbers, preferred_element_type=preferred_element_type)
    if preferred_element_type not in (jnp.dtype("float32"), jnp.dtype("bfloat16"), jnp.dtype("float16")):
        raise TypeError(
            f"scaled_dot_general: preferred_element_type is float32, bfloat16 or float16, got {preferred_element_type}"
        )
    lhs, rhs = jnp.asarray(lhs), jnp.asarray(rhs)
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    a, batch, rows = _as_rows(lhs, lhs_contract, lhs_batch)
    b, _, columns = _as_rows(rhs, rhs_contract, rhs_batch)
    return _quantized_product(a, b, preferred_element_type, tuple(configs)).reshape(batch + rows + columns)


def get_scaled_dot_general_config(mode: str, global_scale: Any = None) -> BlockScaleConfig:
    """The quantization of a named block-scaled format, for ``scaled_dot_general``.

    Args:
      mode: ``"nvfp4"`` (blocks of 16 elements of ``float4_e2m1fn``, scales of ``float8_e4m3fn``) or ``"mxfp8"``
        (blocks of 32 elements of ``float8_e4m3fn``, scales that are powers of two).
      global_scale: in ``"nvfp4"`` the scale of the whole array, of shape (1,) in float32; 1 by default.

    Returns:
      The format's parameters.

    Raises:
      ValueError: ``mode`` is neither.

    >>> import ferrax.nn
    >>> ferrax.nn.get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode == "nvfp4":
        scale = jnp.ones((1,), jnp.float32) if global_scale is None else global_scale
        return BlockScaleConfig(mode, 16, jnp.float4_e2m1fn, jnp.float8_e4m3fn, scale, False)
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, jnp.float8_e4m3fn, jnp.float8_e8m0fnu, None, False)
    raise ValueError(f"Unsupported mode: {mode}")


def _as_rows(x, contract, batch):
    """An operand with the axes (batch, own, contracted), and the sizes of its batch axes and its own."""
    own = [i for i in range(x.ndim) if i not in (*contract, *batch)]
    sizes = [tuple(x.shape[i] for i in axes) for axes in (batch, own)]
    rows = x.transpose(*batch, *own, *contract)
    return rows.reshape(math.prod(sizes[0]), math.prod(sizes[1]), -1), *sizes


@partial(custom_vjp, nondiff_argnums=(2, 3))
def _quantized_product(a, b, dtype, configs):
    return _product_of_blocks(a, b, dtype, configs[0], configs[1])


def _forward(a, b, dtype, configs):
    return _quantized_product(a, b, dtype, configs), (a, b)


def _backward(dtype, configs, operands, g):
    a, b = operands
    ours, theirs, gradient = configs
    g_turned, a_turned, b_turned = (x.swapaxes(1, 2) for x in (g, a, b))
    if gradient.mode != "nvfp4":
        of_a = _product_of_blocks(g, b_turned, dtype, gradient, theirs)
        of_b = _product_of_blocks(g_turned, a_turned, dtype, gradient, ours)
        return of_a.astype(a.dtype), of_b.astype(b.dtype)
    of_a, of_b = (jnp.matmul(x, y, preferred_element_type=dtype) for x, y in ((g, b), (g_turned, a)))
    return _where_it_fits(a, ours, of_a), _where_it_fits(b, theirs, of_b)


_quantized_product.defvjp(_forward, _backward)


def _where_it_fits(x, config, gradient):
    most = float(jnp.finfo(config.data_type).max) * float(jnp.finfo(config.scale_type).max)
    return jnp.where(jnp.abs(x) <= config.global_scale * most, gradient, 0).astype(x.dtype)


def _product_of_blocks(a, b, dtype, of_a, of_b):
    """The product of two arrays of shapes (B, M, K) and (B, N, K), each quantized along K."""
    (a, a_scales), (b, b_scales) = _quantized(a, of_a), _quantized(b, of_b)
    if of_a.mode != "nvfp4":
        return scaled_matmul(a, b, a_scales, b_scales, dtype)
    return (scaled_matmul(a, b, a_scales, b_scales) * (of_a.global_scale * of_b.global_scale)).astype(dtype)


def _quantized(x, config):
    """An array's elements and scales in a block-scaled format."""
    size = config.block_size
    if x.shape[-1] % size or not x.shape[-1]:
        raise ValueError(f"scaled_dot_general: {x.shape[-1]} contracted elements do not fill blocks of {size}")
    most = float(jnp.finfo(config.data_type).max)
    blocks = x.astype(jnp.float32).reshape(*x.shape[:-1], -1, size)
    if config.mode == "nvfp4":
        blocks = blocks / config.global_scale
    scales = jnp.abs(blocks).max(axis=-1, keepdims=True) / most
    if config.mode == "nvfp4":
        scales = jnp.clip(scales, 0, float(jnp.finfo(config.scale_type).max))
    else:
        # the power of two that is not below it
        part, power = jnp.frexp(scales)
        scales = jnp.where(scales > 0, jnp.exp2(power - (part == 0.5)), 0)
        scales = jnp.clip(scales, 2.0**-126)
    scales = scales.astype(config.scale_type)
    divisor = scales.astype(jnp.float32)
    elements = jnp.where(divisor > 0, blocks / jnp.where(divisor > 0, divisor, 1), 0)
    return jnp.clip(elements, -most, most).astype(config.data_type).reshape(x.shape), scales.squeeze(-1)


def _unscaled(name, x, scales):
    """The values that scaled elements stand for, in float32."""
    if scales.shape[:2] != x.shape[:2] or not scales.shape[2] or x.shape[2] % scales.shape[2]:
        raise ValueError(f"scaled_matmul: {name} has shape {x.shape}, its scales have {scales.shape}")
    block = x.shape[2] // scales.shape[2]
    return x.astype(jnp.float32) * jnp.repeat(scales.astype(jnp.float32), block, axis=-1)
