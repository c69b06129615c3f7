"""Convolutions, all of them special cases of `conv_general_dilated`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias, Union

import numpy as np

from ferrax._ferrax import Array, lax as _lax
from ferrax._out_sharding import with_out_sharding
from ferrax.lax.contraction import chosen, dot_general
from ferrax.lax.conversion import convert_element_type
from ferrax.lax.reductions import _dilated, padtype_to_pads, reduce_window_shape_tuple
from ferrax.lax.shape import reshape, rev, transpose
from ferrax.typing import ArrayLike

__all__ = [
    "ConvDimensionNumbers",
    "ConvGeneralDilatedDimensionNumbers",
    "conv",
    "conv_dimension_numbers",
    "conv_general_dilated",
    "conv_general_dilated_local",
    "conv_general_dilated_patches",
    "conv_general_permutations",
    "conv_general_shape_tuple",
    "conv_shape_tuple",
    "conv_transpose",
    "conv_transpose_shape_tuple",
    "conv_with_general_padding",
]


class ConvDimensionNumbers(NamedTuple):
    """Which axis of each array of a convolution is which.

    Attributes:
      lhs_spec: batch, feature and spatial axes of the left operand.
      rhs_spec: output feature, input feature and spatial axes of the kernel.
      out_spec: batch, feature and spatial axes of the result.

    >>> from ferrax import lax
    >>> lax.ConvDimensionNumbers((0, 2, 1), (2, 1, 0), (0, 2, 1)).lhs_spec
    (0, 2, 1)
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


ConvGeneralDilatedDimensionNumbers: TypeAlias = Union[tuple[str, str, str], ConvDimensionNumbers, None]  # noqa: UP007


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """The axes that `conv_general_dilated`'s `dimension_numbers` stand for.

    Args:
      lhs_shape: shape of the left operand.
      rhs_shape: shape of the kernel.
      dimension_numbers: ``None`` (batch and features, or outputs and inputs, before the spatial axes), a
        `ConvDimensionNumbers`, or three strings with a letter for each axis, such as ``("NHWC", "HWIO", "NHWC")``:
        ``N`` batch, ``C`` features, ``O`` and ``I`` output and input features, others spatial.

    Returns:
      A `ConvDimensionNumbers`.

    Raises:
      TypeError: ranks differ, or letters and axes do not match.

    >>> from ferrax import lax
    >>> lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 4), ("NHWC", "HWIO", "NHWC")).rhs_spec
    (3, 2, 0, 1)
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    rank = len(lhs_shape)
    if rank != len(rhs_shape):
        raise TypeError(f"convolution requires lhs and rhs ndim to be equal, got {rank} and {len(rhs_shape)}.")
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(rank))] * 3)
    if not isinstance(dimension_numbers, (list, tuple)):
        raise TypeError(f"convolution dimension_numbers must be tuple/list or None, got {type(dimension_numbers)}.")
    if len(dimension_numbers) != 3:
        raise TypeError(f"convolution dimension_numbers list/tuple must be length 3, got {len(dimension_numbers)}.")
    for i, letters in enumerate(dimension_numbers):
        if not isinstance(letters, str):
            raise TypeError(f"convolution dimension_numbers elements must be strings, got {type(letters)} at {i}.")
        if len(letters) != rank:
            raise TypeError(
                f"convolution dimension_numbers[{i}] must have len equal to the ndim of lhs and rhs, got "
                f"{len(letters)} for lhs and rhs shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}."
            )
        for own in "OI" if i == 1 else "NC":
            if letters.count(own) != 1:
                both = "'O' and 'I'" if i == 1 else "'N' and 'C'"
                raise TypeError(
                    f"convolution dimension_numbers[{i}] must contain the characters {both} exactly once, "
                    f"got {letters}."
                )
        if len(set(letters)) != rank:
            raise TypeError(f"convolution dimension_numbers[{i}] cannot have duplicate characters, got {letters}.")
    return _from_letters(*dimension_numbers)


def _from_letters(lhs: str, rhs: str, out: str) -> ConvDimensionNumbers:
    # spatial letters in the order of the kernel's
    spatial = [c for c in rhs if c not in "OI"]
    for letters, own in ((lhs, "NC"), (out, "NC")):
        if set(letters) - set(own) != set(spatial):
            raise TypeError(
                "convolution dimension_numbers elements must each have the same set of spatial characters, got "
                f"{(lhs, rhs, out)}."
            )
    axes = lambda letters, own: tuple(letters.index(c) for c in (*own, *spatial))
    return ConvDimensionNumbers(axes(lhs, "NC"), axes(rhs, "OI"), axes(out, "NC"))


def _ones(value: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    return (1,) * rank if value is None else tuple(value)


def _pads(
    padding: Any, lhs: Sequence[int], rhs: Sequence[int], strides: Sequence[int], lhs_dilation: Any, rhs_dilation: Any
) -> list[tuple[int, int]]:
    """The padding of each spatial axis; sizes are those of the spatial axes."""
    if not isinstance(padding, str):
        if not all(isinstance(p, Sequence) or np.ndim(p) == 1 for p in padding):
            raise ValueError(
                f"padding argument to conv_general_dilated should be a string or a sequence of (low, high) pairs, got "
                f"{padding}"
            )
        pads = [tuple(p) for p in padding]
        if len(pads) != len(lhs):
            raise TypeError(f"Wrong number of explicit pads for convolution: expected {len(lhs)}, got {len(pads)}.")
        return pads
    if len(strides) != len(lhs):
        raise ValueError(
            "conv_general_dilated window and window_strides must have the same number of dimensions, but got "
            f"{len(lhs)} and {len(strides)}"
        )
    if any(d != 1 for d in lhs_dilation):
        raise ValueError(
            f"padding={padding!r} says too little where lhs_dilation is {tuple(lhs_dilation)}: give (low, high) for "
            "each spatial axis, or use conv_transpose."
        )
    return padtype_to_pads(lhs, [_dilated(n, d) for n, d in zip(rhs, rhs_dilation)], strides, padding)


def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Convolution over any number of spatial axes, with strides, padding, dilations and groups.

    The kernel is not flipped: ``out[n, o, t] = sum(lhs[n, c, t * stride + k * rhs_dilation] * rhs[o, c, k])`` over
    ``c`` and ``k``, of the left operand dilated and padded with zeros.

    Args:
      lhs: array with a batch axis, a feature axis and spatial axes.
      rhs: the kernel, of the same rank and dtype: an output feature axis, an input feature axis and spatial axes.
      window_strides: steps of the window, one a spatial axis.
      padding: ``"SAME"``, ``"SAME_LOWER"``, ``"VALID"``, or (low, high) for each spatial axis; negative ones crop.
      lhs_dilation: spacing of the left operand's elements (transposed convolution); by default 1.
      rhs_dilation: spacing of the kernel's cells (atrous convolution); by default 1.
      dimension_numbers: which axis is which; see `conv_dimension_numbers`.
      feature_group_count: groups of input and output features; a group of outputs sees its group of inputs.
      batch_group_count: groups of the batch; a group of outputs sees its group of the batch.
      precision: see `Precision`; the CPU computes in full.
      preferred_element_type: dtype to accumulate in and to give.
      out_sharding: how the result is spread over explicit axes of the mesh in use.

    Returns:
      Array with batch, output features and spatial axes where ``dimension_numbers`` says.

    Raises:
      TypeError: dtypes or ranks differ.
      ValueError: features and groups do not match; padding by name with ``lhs_dilation``; or ranks differ beside a
        `ConvDimensionNumbers`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> image, kernel = jnp.arange(16.0).reshape(1, 1, 4, 4), jnp.ones((1, 1, 3, 3))
    >>> lax.conv_general_dilated(image, kernel, (1, 1), "VALID")
    Array([[[[45., 54.],
             [81., 90.]]]], dtype=float32)
    """
    if out_sharding is not None:
        convolved = lambda: conv_general_dilated(
            lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, feature_group_count,
            batch_group_count, precision, preferred_element_type,
        )  # fmt: skip
        return with_out_sharding(convolved, out_sharding, "dot_general")
    lhs_shape, rhs_shape = _shape(lhs), _shape(rhs)
    specs = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    if len(lhs_shape) != len(rhs_shape):  # these numbers were given, not made here
        raise ValueError(
            "conv_general_dilated lhs and rhs must have the same number of dimensions, "
            f"but got {lhs_shape} and {rhs_shape}."
        )
    rank = len(specs.lhs_spec) - 2
    near, far = _ones(lhs_dilation, rank), _ones(rhs_dilation, rank)
    spatial = [lhs_shape[a] for a in specs.lhs_spec[2:]], [rhs_shape[a] for a in specs.rhs_spec[2:]]
    pads = _pads(padding, *spatial, window_strides, near, far)
    return _lax.conv_general_dilated(
        lhs, rhs, tuple(window_strides), pads, near, far, specs, feature_group_count, batch_group_count,
        chosen(precision), preferred_element_type,
    )  # fmt: skip


def _shape(x: Any) -> tuple[int, ...]:
    import numpy as np

    return tuple(x.shape) if hasattr(x, "shape") else np.shape(x)


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Convolution with batch and features, or outputs and inputs, before the spatial axes.

    Args:
      lhs: array (batch, features, spatial…).
      rhs: kernel (output features, input features, spatial…).
      window_strides: steps of the window, one a spatial axis.
      padding: ``"SAME"``, ``"SAME_LOWER"`` or ``"VALID"``.
      precision: see `Precision`.
      preferred_element_type: dtype to accumulate in and to give.

    Returns:
      Array (batch, output features, spatial…).

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> lax.conv(jnp.ones((1, 1, 3)), jnp.ones((1, 1, 2)), (1,), "VALID")
    Array([[[2., 2.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """`conv` with explicit padding and dilations.

    Args:
      lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision, preferred_element_type: as for
        `conv_general_dilated`.

    Returns:
      Array (batch, output features, spatial…).

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> lax.conv_with_general_padding(jnp.ones((1, 1, 3)), jnp.ones((1, 1, 2)), (1,), [(1, 0)], None, None)
    Array([[[1., 2., 2.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def _transposed_pad(span: int, stride: int, padding: str) -> tuple[int, int]:
    """The padding under which the transposed convolution has `size * stride` places (SAME) or covers every window."""
    word = padding.upper()
    if word == "SAME":
        total = span + stride - 2
        low = span - 1 if stride > span - 1 else -(-total // 2)
    elif word == "VALID":
        total = span + stride - 2 + max(span - stride, 0)
        low = span - 1
    else:
        raise ValueError(f"Padding mode must be 'SAME' or 'VALID', got {padding!r}.")
    return low, total - low


def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: Any,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> Array:
    """Transposed convolution: the left operand dilated by the strides, convolved with the kernel.

    Args:
      lhs: array with a batch axis, a feature axis and spatial axes.
      rhs: the kernel, of the same rank.
      strides: spacing of the left operand's elements: how often larger the result is.
      padding: ``"SAME"``, ``"VALID"``, or (low, high) for each spatial axis of the dilated operand.
      rhs_dilation: spacing of the kernel's cells; by default 1.
      dimension_numbers: which axis is which; by default features last: ``("NHWC", "HWIO", "NHWC")`` and the like.
      transpose_kernel: whether the kernel is flipped and its input and output features exchanged, which makes this the
        transpose of a convolution with that kernel.
      precision: see `Precision`.
      preferred_element_type: dtype to accumulate in and to give.
      use_consistent_padding: whether explicit padding is that of the convolution of which this is the transpose.

    Returns:
      Array with batch, output features and spatial axes where ``dimension_numbers`` says.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> lax.conv_transpose(jnp.ones((1, 2, 1)), jnp.ones((2, 1, 1)), (2,), "SAME")[0, :, 0]
    Array([1., 1., 1., 1.], dtype=float32)
    """
    lhs_shape, rhs_shape = _shape(lhs), _shape(rhs)
    rank = len(lhs_shape) - 2
    if dimension_numbers is None:
        if not 1 <= rank <= 3:
            raise ValueError("conv_transpose has default dimension_numbers for 1, 2 and 3 spatial axes alone.")
        letters = "HWD"[:rank]
        dimension_numbers = (f"N{letters}C", f"{letters}IO", f"N{letters}C")
    specs = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    far = _ones(rhs_dilation, rank)
    spans = [_dilated(rhs_shape[a], d) for a, d in zip(specs.rhs_spec[2:], far)]
    if isinstance(padding, str):
        pads = [_transposed_pad(n, s, padding) for n, s in zip(spans, strides)]
    elif use_consistent_padding:
        pads = [(n - 1 - low, n - 1 - high) for n, (low, high) in zip(spans, padding)]
    else:
        pads = [tuple(p) for p in padding]
    if transpose_kernel:
        rhs = rev(rhs, tuple(specs.rhs_spec[2:]))
        outputs, inputs, *spatial = specs.rhs_spec
        specs = specs._replace(rhs_spec=(inputs, outputs, *spatial))
    return conv_general_dilated(
        lhs, rhs, (1,) * rank, pads, strides, rhs_dilation, specs, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """The windows that a convolution would see, as features.

    Args:
      lhs: array with a batch axis, a feature axis and spatial axes.
      filter_shape: sizes of the window, one a spatial axis.
      window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, precision, preferred_element_type: as for
        `conv_general_dilated`.

    Returns:
      Array whose feature axis has ``features * prod(filter_shape)`` entries: for each feature, the cells of its window.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> lax.conv_general_dilated_patches(jnp.arange(4.0).reshape(1, 1, 4), (2,), (1,), "VALID")
    Array([[[0., 1., 2.],
            [1., 2., 3.]]], dtype=float32)
    """
    import ferrax.numpy as jnp

    filter_shape = tuple(filter_shape)
    lhs_shape = _shape(lhs)
    specs = conv_dimension_numbers(lhs_shape, (1,) * len(lhs_shape), dimension_numbers)
    features, cells = lhs_shape[specs.lhs_spec[1]], math.prod(filter_shape)
    dtype = jnp.result_type(lhs)
    one_of_each = reshape(jnp.eye(cells, dtype=dtype), (cells, 1, *filter_shape))
    kernel = jnp.tile(one_of_each, (features, *(1,) * (len(filter_shape) + 1)))
    order = [list(specs.rhs_spec).index(a) for a in range(len(lhs_shape))]
    return conv_general_dilated(
        lhs, transpose(kernel, order), window_strides, padding, lhs_dilation, rhs_dilation, specs,
        feature_group_count=features, precision=precision, preferred_element_type=preferred_element_type,
    )  # fmt: skip


def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Any,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
) -> Array:
    """Convolution with a kernel of its own for each place of the result.

    Args:
      lhs: array with a batch axis, a feature axis and spatial axes.
      rhs: the kernels: spatial axes are the result's, the input feature axis has ``features * prod(filter_shape)``
        entries, ordered as `conv_general_dilated_patches` orders them.
      window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, precision: as for `conv_general_dilated`.
      filter_shape: sizes of the window, one a spatial axis.

    Returns:
      Array with batch, output features and spatial axes where ``dimension_numbers`` says.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> kernels = jnp.array([[[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]]])
    >>> lax.conv_general_dilated_local(jnp.arange(4.0).reshape(1, 1, 4), kernels, (1,), "VALID", (2,))
    Array([[[0., 2., 4.]]], dtype=float32)
    """
    import ferrax.numpy as jnp

    specs = conv_dimension_numbers(_shape(lhs), _shape(rhs), dimension_numbers)
    dtype = jnp.result_type(lhs)
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, specs, precision
    )
    contract = ((specs.out_spec[1],), (specs.rhs_spec[1],))
    batch = (tuple(specs.out_spec[2:]), tuple(specs.rhs_spec[2:]))
    out = dot_general(patches, convert_element_type(rhs, dtype), (contract, batch), precision=precision)
    # its axes: spatial, batch, features
    spatial = len(specs.out_spec) - 2
    where = {specs.out_spec[0]: spatial, specs.out_spec[1]: spatial + 1}
    where.update({a: i for i, a in enumerate(specs.out_spec[2:])})
    return transpose(out, [where[a] for a in range(spatial + 2)])


# ---- shapes ----------------------------------------------------------------------------------------------------------


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[Sequence[int], ...]:
    """The axes of three arrays of a convolution in the order that has the spatial axes last.

    Args:
      dimension_numbers: three strings of letters, as for `conv_dimension_numbers`.

    Returns:
      Batch, feature and spatial axes of the left operand, output feature, input feature and spatial axes of the
      kernel, batch, feature and spatial axes of the result.

    Raises:
      TypeError: letters and axes do not match.

    >>> from ferrax import lax
    >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    if not isinstance(dimension_numbers, (list, tuple)) or not dimension_numbers:
        raise TypeError(f"convolution dimension_numbers must be three strings, got {dimension_numbers!r}.")
    axes = range(len(dimension_numbers[0]))
    return tuple(conv_dimension_numbers(axes, axes, dimension_numbers))


def conv_shape_tuple(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], strides: Sequence[int], pads: Any, batch_group_count: int = 1
) -> tuple[int, ...]:
    """The shape of a convolution's result, where batch and features come before the spatial axes.

    Args:
      lhs_shape: batch, features and spatial sizes of the left operand, dilated.
      rhs_shape: output features, input features and spatial sizes of the kernel, dilated.
      strides: steps of the window, one a spatial axis.
      pads: a word of `padtype_to_pads`, or (low, high) for each spatial axis.
      batch_group_count: groups of the batch.

    Returns:
      A shape.

    Raises:
      TypeError: there is not one padding for each spatial axis.
      ValueError: the batch does not have that many groups.

    >>> from ferrax import lax
    >>> lax.conv_shape_tuple((4, 3, 9, 8), (6, 3, 3, 2), (2, 1), "VALID")
    (4, 6, 4, 7)
    """
    lhs_shape, rhs_shape = tuple(lhs_shape), tuple(rhs_shape)
    sizes, spans = lhs_shape[2:], rhs_shape[2:]
    pads = padtype_to_pads(sizes, spans, strides, pads) if isinstance(pads, str) else pads
    if len(pads) != len(sizes):
        raise TypeError(f"Wrong number of explicit pads for convolution: expected {len(sizes)}, got {len(pads)}.")
    if lhs_shape[0] % batch_group_count:
        raise ValueError(f"a batch of {lhs_shape[0]} does not have {batch_group_count} groups of one size")
    spatial = reduce_window_shape_tuple(sizes, spans, strides, pads)
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *spatial)


def _ordered(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(shape[a] for a in axes)


def _placed(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """A shape whose entries go to these axes."""
    return tuple(size for _, size in sorted(zip(axes, shape)))


def conv_general_shape_tuple(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], window_strides: Sequence[int], padding: Any,
    dimension_numbers: Any,
) -> tuple[int, ...]:  # fmt: skip
    """The shape of the result of `conv_general_dilated` without dilation and groups.

    Args:
      lhs_shape: shape of the left operand.
      rhs_shape: shape of the kernel.
      window_strides: steps of the window, one a spatial axis.
      padding: a word of `padtype_to_pads`, or (low, high) for each spatial axis.
      dimension_numbers: which axis is which; see `conv_dimension_numbers`.

    Returns:
      A shape.

    Raises:
      TypeError: ranks differ, letters and axes do not match, or there is not one padding for each spatial axis.

    >>> from ferrax import lax
    >>> lax.conv_general_shape_tuple((2, 9, 8, 3), (3, 2, 3, 5), (2, 1), "SAME", ("NHWC", "HWIO", "NHWC"))
    (2, 5, 8, 5)
    """
    specs = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    lhs, rhs = _ordered(lhs_shape, specs.lhs_spec), _ordered(rhs_shape, specs.rhs_spec)
    return _placed(conv_shape_tuple(lhs, rhs, window_strides, padding), specs.out_spec)


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], window_strides: Sequence[int], padding: Any,
    dimension_numbers: Any,
) -> tuple[int, ...]:  # fmt: skip
    """The shape of the result of `conv_transpose` without dilation of the kernel.

    Args:
      lhs_shape, rhs_shape: as in `conv_general_shape_tuple`.
      window_strides: spacing of the left operand's elements.
      padding: ``"SAME"``, ``"VALID"``, or (low, high) for each spatial axis of the dilated operand.
      dimension_numbers: which axis is which; see `conv_dimension_numbers`.

    Returns: as in `conv_general_shape_tuple`.

    Raises:
      TypeError: ranks differ, or letters and axes do not match.
      ValueError: the padding is another word.

    >>> from ferrax import lax
    >>> lax.conv_transpose_shape_tuple((2, 9, 8, 3), (3, 2, 3, 5), (2, 3), "SAME", ("NHWC", "HWIO", "NHWC"))
    (2, 18, 24, 5)
    """
    specs = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    lhs, rhs = _ordered(lhs_shape, specs.lhs_spec), _ordered(rhs_shape, specs.rhs_spec)
    if isinstance(padding, str):
        padding = [_transposed_pad(n, s, padding) for n, s in zip(rhs[2:], window_strides)]
    dilated = (*lhs[:2], *(_dilated(n, s) for n, s in zip(lhs[2:], window_strides)))
    return _placed(conv_shape_tuple(dilated, rhs, (1,) * len(lhs[2:]), padding), specs.out_spec)
