"""Images of any rank resampled: `resize`, and `scale_and_translate` with derivatives by scale and place.

An axis of n pixels is resampled by a matrix of weights: of each output pixel's place in the input, a kernel says how
much each input pixel adds; weights are divided by their sum. Where an image shrinks, antialiasing widens the kernel.
Kernels: Keys, "Cubic convolution interpolation for digital image processing" (1981); Turkowski, "Filters for common
resampling tasks" (1990). The sizes of `resize` are static, so its weights are NumPy's, in double precision; those of
symbolic sizes are computed by the program, in the image's.
Read next: `scipy/ndimage/__init__.py`, which looks up any places.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._api import jit
from ferrax._boundary import expose as _expose
from ferrax._core import asarray
from ferrax._shapes import constant_size, is_symbolic_dim
from ferrax.numpy import _elementwise, _reductions, _ufuncs
from ferrax.numpy._args import Array, ArrayLike, broadcast_to_shape, normalize_axis, static_shape, to_array
from ferrax.numpy._dtype_functions import dtype_kind, inexact_dtype, real_dtype
from ferrax.numpy._take import take

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """How pixels between others are made up.

    Members: ``NEAREST`` takes the nearest pixel, ``LINEAR`` a triangle's weights, ``CUBIC`` those of Keys' cubic with
    a = -0.5, ``LANCZOS3`` and ``LANCZOS5`` those of a windowed sinc of radius 3 and 5, ``AREA`` the mean over the area
    of a pixel; ``CUBIC_PYTORCH`` is Keys' cubic with a = -0.75 and the edges repeated where there is no antialiasing,
    and ``CUBIC`` where there is.

    >>> from ferrax.image import ResizeMethod
    >>> ResizeMethod.from_string("bilinear")
    <ResizeMethod.LINEAR: 1>
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method that a word stands for.

        Args:
          s: ``"nearest"``, ``"linear"`` (``"bilinear"``, ``"trilinear"``, ``"triangle"``), ``"lanczos3"``,
            ``"lanczos5"``, ``"cubic"`` (``"bicubic"``, ``"tricubic"``), ``"cubic-pytorch"`` (``"bicubic-pytorch"``)
            or ``"area"``.

        Returns:
          The method.

        Raises:
          ValueError: the word is another.

        >>> from ferrax.image import ResizeMethod
        >>> ResizeMethod.from_string("triangle")
        <ResizeMethod.LINEAR: 1>
        """
        if s not in _WORDS:
            raise ValueError(f'Unknown resize method "{s}"; there are {", ".join(_WORDS)}.')
        return _WORDS[s]


_WORDS = {
    "nearest": ResizeMethod.NEAREST,
    "linear": ResizeMethod.LINEAR,
    "bilinear": ResizeMethod.LINEAR,
    "trilinear": ResizeMethod.LINEAR,
    "triangle": ResizeMethod.LINEAR,
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    "cubic": ResizeMethod.CUBIC,
    "bicubic": ResizeMethod.CUBIC,
    "tricubic": ResizeMethod.CUBIC,
    "cubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "bicubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "area": ResizeMethod.AREA,
}


def _method(method: Any) -> ResizeMethod:
    if isinstance(method, ResizeMethod):
        return method
    if not isinstance(method, str):
        raise TypeError(f"the method of resampling must be a string or a ResizeMethod, got {method!r}")
    return ResizeMethod.from_string(method)


# ---- weights ---------------------------------------------------------------------------------------------------------

# The functions that weights are made of: NumPy's where places are static, else the library's.
_TRACED = SimpleNamespace(
    abs=lax.abs,
    floor=lax.floor,
    maximum=_ufuncs.maximum,
    minimum=_ufuncs.minimum,
    sinc=_elementwise.sinc,
    sum=_reductions.sum,
    where=_ufuncs.where,
)


def _triangle(xp: Any, x: Any) -> Any:
    return xp.maximum(0, 1 - x)


def _keys(xp: Any, x: Any, a: float = -0.5) -> Any:
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = a * (((x - 5) * x + 8) * x - 4)
    return xp.where(x < 1, near, xp.where(x < 2, far, 0))


def _lanczos(radius: int, xp: Any, x: Any) -> Any:
    # the window's sinc of places beyond the radius is not asked for: its derivative there is none of the kernel's
    inside = xp.minimum(x, radius)
    return xp.where(x < radius, xp.sinc(inside) * xp.sinc(inside / radius), 0)


_KERNELS: dict[ResizeMethod, Callable[[Any, Any], Any]] = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: partial(_lanczos, 3),
    ResizeMethod.LANCZOS5: partial(_lanczos, 5),
    ResizeMethod.CUBIC: _keys,
    ResizeMethod.CUBIC_PYTORCH: _keys,
}


def _normalized(xp: Any, weights: Any, dtype: np.dtype) -> Any:
    """Weights (input, output) divided by their sums; zero where there is nothing to divide."""
    total = xp.sum(weights, 0, keepdims=True)
    some = xp.abs(total) > 1000 * float(np.finfo(np.float32 if dtype.itemsize < 8 else np.float64).eps)
    return xp.where(some, weights / xp.where(some, total, 1), 0)


def _areas(xp: Any, pixels: Any, low: Any, high: Any) -> Any:
    """The part of each input pixel that lies between two places."""
    first, last = xp.minimum(low, high), xp.maximum(low, high)
    return xp.maximum(0, xp.minimum(pixels + 1, last) - xp.maximum(pixels, first))


def _repeated_edges(xp: Any, n: Any, pixels: Any, place: Any) -> Any:
    """Keys' four weights with a = -0.75 in an image whose edges are there twice more, added up by the edge."""
    first = xp.floor(place)
    weights = 0
    for step in (-1, 0, 1, 2):
        tap = first + step
        at = xp.where((tap >= -2) & (tap <= n + 1), xp.minimum(xp.maximum(tap, 0), n - 1), -1)
        weights = weights + xp.where(pixels == at, _keys(xp, xp.abs(place - tap), -0.75), 0)
    return weights


def _weights(xp: Any, n: Any, inverse: Any, shift: Any, method: ResizeMethod, antialias: bool, steps: Any) -> Any:
    """The matrix (input, output) that resamples an axis.

    Args:
      xp: the functions to compute with, NumPy's or `_TRACED`.
      n: size of the input's axis.
      inverse: input pixels to an output pixel.
      shift: place in the input of the output's beginning.
      method: the method.
      antialias: whether kernels widen where the image shrinks.
      steps: the output's pixels and the input's as a row and a column, of the dtype to compute in.
    """
    outputs, pixels = steps
    dtype = outputs.dtype
    place = (outputs + 0.5) * inverse + shift - 0.5
    if method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        return _normalized(xp, _repeated_edges(xp, n, pixels, place), dtype)
    if method is ResizeMethod.AREA:
        weights = _areas(xp, pixels, outputs * inverse + shift, (outputs + 1) * inverse + shift)
    else:
        width = xp.maximum(inverse, 1) if antialias else 1
        weights = _KERNELS[method](xp, xp.abs(place - pixels) / width)
    weights = _normalized(xp, weights, dtype)
    return xp.where((place >= -0.5) & (place <= n - 0.5), weights, 0)


def _grid(n: int, m: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    n, m = (constant_size(size, "jax.image.resize") for size in (n, m))
    return np.arange(m, dtype=dtype)[None, :], np.arange(n, dtype=dtype)[:, None]


def _computed_in(dtype: np.dtype) -> np.dtype:
    """The real dtype in which pixels of a floating dtype are added up."""
    dtype = real_dtype(dtype)
    return np.dtype(np.float32) if dtype.itemsize < 4 else dtype


def _resampled(x: Array, matrices: Sequence[tuple[int, Any]], precision: Any) -> Array:
    """An image's axes multiplied by matrices, that which shrinks it most first."""
    dtype = x.dtype
    wide = _computed_in(dtype)
    x = lax.convert_element_type(x, np.result_type(wide, np.complex64) if dtype_kind(dtype) == "c" else wide)
    if not any(_is_symbolic(matrix.shape) for _, matrix in matrices):
        matrices = sorted(matrices, key=lambda pair: pair[1].shape[1] / max(pair[1].shape[0], 1))
    for axis, matrix in matrices:
        matrix = lax.convert_element_type(asarray(matrix), x.dtype)
        x = lax.dot_general(x, matrix, (((axis,), (0,)), ((), ())), precision=precision)
        order = list(range(x.ndim - 1))
        order.insert(axis, x.ndim - 1)
        x = lax.transpose(x, order)
    return lax.convert_element_type(x, dtype)


def _image(name: str, image: Any, shape: Any) -> tuple[Array, tuple[int, ...]]:
    x = to_array(name, image)
    shape = static_shape(shape)
    if len(shape) != x.ndim:
        raise ValueError(
            f"{name}: the shape must have length equal to the number of dimensions of x, got {shape} for {x.shape}"
        )
    return x, shape


def _floating(x: Array) -> Array:
    dtype = inexact_dtype(x.dtype)
    return x if dtype == x.dtype else _ufuncs.true_divide(x, 1) if x.weak_type else lax.convert_element_type(x, dtype)


# ---- resize ----------------------------------------------------------------------------------------------------------


@partial(jit, static_argnames=("shape",))
def _nearest(x: Array, shape: tuple[int, ...]) -> Array:
    changed = [axis for axis in range(x.ndim) if x.shape[axis] != shape[axis]]
    if not _is_symbolic(x.shape, shape):
        changed.sort(key=lambda i: shape[i] / max(x.shape[i], 1))
    for axis in changed:
        n, m = x.shape[axis], shape[axis]
        if _is_symbolic((n, m)):
            x = take(x, _nearest_index(n, m), axis, mode="clip", indices_are_sorted=True)
            continue
        # the middle (k + 1/2) n / m of an output pixel, rounded down, without an error of rounding
        x = take(x, (2 * np.arange(m, dtype=np.int64) + 1) * n // (2 * m), axis, mode="clip", indices_are_sorted=True)
    return x


def _is_symbolic(*shapes: Sequence[Any]) -> bool:
    return any(is_symbolic_dim(n) for shape in shapes for n in shape)


def _nearest_index(n: Any, m: Any) -> Array:
    """The input's pixel of each output pixel, for sizes that are not known yet."""
    size, wanted = asarray(n), asarray(m)
    steps = lax.iota(size.dtype, m)
    exact = (2 * steps + 1) * size // (2 * wanted)
    # products of large sizes are beyond the integers
    place = (lax.convert_element_type(steps, np.float32) + 0.5) * (size / wanted)
    fits = lax.convert_element_type(size, np.float32) * wanted < 2.0**29
    return _ufuncs.where(fits, exact, lax.convert_element_type(lax.floor(place), size.dtype))


def _traced_weights(n: Any, m: Any, method: ResizeMethod, antialias: bool, dtype: np.dtype) -> Any:
    """The weights of an axis whose sizes are not known yet, in the dtype of the image."""
    size, wanted = (lax.convert_element_type(asarray(k), dtype) for k in (n, m))
    steps = (lax.broadcasted_iota(dtype, (n, m), 1), lax.broadcasted_iota(dtype, (n, m), 0))
    inverse = broadcast_to_shape(size / wanted, (n, m))
    return _weights(_TRACED, size, inverse, lax.full_like(inverse, 0), method, antialias, steps)


@partial(jit, static_argnames=("shape", "method", "antialias", "precision"))
def _resize(x: Array, shape: tuple[int, ...], method: ResizeMethod, antialias: bool, precision: Any) -> Array:
    matrices = []
    for axis, (n, m) in enumerate(zip(x.shape, shape)):
        if n != m and _is_symbolic((n, m)):
            matrices.append((axis, _traced_weights(n, m, method, antialias, _computed_in(x.dtype))))
        elif n != m:
            matrix = _weights(np, n, n / max(m, 1), 0.0, method, antialias, _grid(n, m, np.dtype(np.float64)))
            matrices.append((axis, matrix.astype(_computed_in(x.dtype))))
    return _resampled(x, matrices, precision)


def resize(
    image: ArrayLike,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = lax.Precision.HIGHEST,
) -> Array:
    """An image of another size.

    Args:
      image: array of any rank.
      shape: the sizes of the result, one for each axis; axes of batches and channels keep theirs.
      method: a `ResizeMethod` or one of its words.
      antialias: whether each pixel of a smaller image sees all pixels that it covers.
      precision: see `lax.Precision`; the CPU computes in full.

    Returns:
      Array of the shape, and of the image's dtype where the method is nearest or the dtype is floating or complex,
      else of a floating one.

    Raises:
      ValueError: the shape has not one entry for each axis, the method is none, or an image without pixels shall get
        some.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import image
    >>> image.resize(jnp.array([[0., 4.]]), (1, 4), "linear")
    Array([[0., 1., 3., 4.]], dtype=float32)
    """
    x, sizes = _image("resize", image, shape)
    method = _method(method)
    if 0 in x.shape and 0 not in sizes:
        raise ValueError(f"resize: an image of shape {x.shape} has no pixels to make {sizes} of")
    if method is ResizeMethod.NEAREST:
        return _nearest(x, sizes)
    x = _floating(x)
    return x if x.shape == sizes else _resize(x, sizes, method, bool(antialias), precision)


# ---- scale_and_translate ---------------------------------------------------------------------------------------------


@partial(jit, static_argnames=("shape", "axes", "method", "antialias", "precision"))
def _scale_and_translate(
    x: Array, scale: Array, translation: Array, shape: tuple[int, ...], axes: tuple[int, ...], method: ResizeMethod,
    antialias: bool, precision: Any,
) -> Array:  # fmt: skip
    double = np.dtype(np.float64) in (_computed_in(x.dtype), scale.dtype, translation.dtype)
    dtype = np.dtype(np.float64 if double else np.float32)
    scale, translation = (lax.convert_element_type(v, dtype) for v in (scale, translation))
    inverse = 1 / scale
    shift = -translation * inverse
    matrices = []
    for i, axis in enumerate(axes):
        n, m = x.shape[axis], shape[axis]
        steps = tuple(broadcast_to_shape(asarray(v), (n, m)) for v in _grid(n, m, dtype))
        at = lambda v, i=i, n=n, m=m: broadcast_to_shape(lax.index_in_dim(v, i, keepdims=False), (n, m))
        matrices.append((axis, _weights(_TRACED, n, at(inverse), at(shift), method, antialias, steps)))
    return _resampled(x, matrices, precision)


def scale_and_translate(
    image: ArrayLike,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = lax.Precision.HIGHEST,
) -> Array:
    """An image stretched and moved: a pixel's middle (i + 1/2) goes to (i + 1/2) scale + translation.

    Args:
      image: array of any rank.
      shape: the sizes of the result, one for each axis.
      spatial_dims: the axes that are resampled; others keep their sizes.
      scale: array with the scale of each of those axes.
      translation: array with the translation of each of those axes, in pixels of the result.
      method: a `ResizeMethod`, other than nearest, or one of its words.
      antialias: whether each pixel of a smaller image sees all pixels that it covers.
      precision: see `lax.Precision`; the CPU computes in full.

    Returns:
      Floating or complex array; zero where a pixel's place lies outside the image.

    Raises:
      ValueError: the method is nearest or none, there is not one size for each axis, or there is not one scale and
        translation for each axis that is resampled.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import image
    >>> x = jnp.array([1., 3., 5.])
    >>> image.scale_and_translate(x, (3,), (0,), jnp.ones(1), jnp.array([1.]), "linear")
    Array([0., 1., 3.], dtype=float32)
    """
    x, sizes = _image("scale_and_translate", image, shape)
    method = _method(method)
    if method is ResizeMethod.NEAREST:
        raise ValueError("Nearest neighbor resampling is not currently supported for scale_and_translate.")
    axes = tuple(normalize_axis(axis, x.ndim) for axis in spatial_dims)
    scales, places = to_array("scale_and_translate", scale), to_array("scale_and_translate", translation)
    for name, value in (("scale", scales), ("translation", places)):
        if value.shape != (len(axes),):
            raise ValueError(f"scale_and_translate: {name} has shape {value.shape}, not one entry for each of {axes}")
    if len(set(axes)) != len(axes):
        raise ValueError(f"scale_and_translate: spatial_dims {tuple(spatial_dims)} has an axis twice")
    changed = [i for i in range(x.ndim) if i not in axes and x.shape[i] != sizes[i]]
    if changed:
        raise ValueError(f"scale_and_translate: {sizes} changes axis {changed[0]} of {x.shape}, not in spatial_dims")
    return _scale_and_translate(_floating(x), scales, places, sizes, axes, method, bool(antialias), precision)


_expose(globals())
