"""Fourier transforms: `ferrax.numpy.fft`. Axes are moved to the end and cut or padded, then `lax.fft` does the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._boundary import expose as _expose
from ferrax._core import asarray
from ferrax._one_program import one_program
from ferrax._shapes import is_symbolic_dim, max_dim, static_size
from ferrax.numpy import _rearrange
from ferrax.numpy._args import (  # fmt: skip
    Array,
    ArrayLike,
    DTypeLike,
    cast,
    cast_to,
    normalize_axes,
    normalize_axis,
    place,
    to_array,
)
from ferrax.numpy._dtype_functions import dtype_kind, inexact_dtype, real_dtype

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_DIRECTIONS = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _known(norm: str | None) -> str:
    """The name of a scaling, "backward" for None; ValueError for others."""
    norm = "backward" if norm is None else norm
    if norm not in _DIRECTIONS:
        raise ValueError(f'Invalid norm value {norm}; should be "backward","ortho" or "forward".')
    return norm


def _scale(x: Array, norm: str, lengths: Sequence[int], inverse: bool) -> Array:
    """What `norm` asks for, of a transform that `lax.fft` gave."""
    total = math.prod(lengths)
    if is_symbolic_dim(total):
        total = lax.convert_element_type(asarray(total), real_dtype(x.dtype))
        root = lax.sqrt(total)
    else:
        total, root = float(total), math.sqrt(total)
    if norm == "ortho":
        return x * root if inverse else x / root
    if norm == "forward":
        return x * total if inverse else x / total
    return x


def _fitted(x: Array, sizes: dict[int, int]) -> Array:
    """`x` cut, or padded with zeros, at the end of axes."""
    for axis, size in sizes.items():
        if x.shape[axis] > size:
            x = lax.slice_in_dim(x, 0, size, axis=axis)
        elif x.shape[axis] < size:
            config = [(0, size - x.shape[i] if i == axis else 0, 0) for i in range(x.ndim)]
            x = lax.pad(x, lax.full_like(x, 0, shape=()), config)
    return x


def _transform(name: str, kind: str, a: ArrayLike, s: Any, axes: Any, norm: str | None) -> Array:
    x = to_array(f"jnp.fft.{name}", a)
    if kind == "RFFT" and dtype_kind(x.dtype) == "c":
        raise ValueError(f"only real valued inputs supported for {name}")
    if kind == "RFFT":
        x = cast(x, _single_or_double(x.dtype))
    else:
        x = lax.convert_element_type(x, np.result_type(_single_or_double(x.dtype), np.complex64))
    if axes is None:
        axes = tuple(range(x.ndim)) if s is None else tuple(range(x.ndim - len(s), x.ndim))
    if s is not None and len(s) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    repeated = len(set(axes)) != len(axes)
    places = () if repeated else tuple(normalize_axis(i, x.ndim) for i in axes)
    if repeated or len(set(places)) != len(places):
        raise ValueError(f"jax.numpy.fft.{name} does not support repeated axes. Got axes {axes}.")
    if not places:
        return x
    lengths = [x.shape[i] for i in places] if s is None else [static_size(n) for n in s]
    real = kind == "IRFFT"
    if real and s is None:
        lengths[-1] = max_dim(0, 2 * (lengths[-1] - 1))
    norm = _known(norm)
    if any(n < 1 for n in lengths if not is_symbolic_dim(n)):
        if s is not None or kind == "RFFT":
            raise ValueError("Shape should be positive.")
        shape = [dict(zip(places, lengths)).get(i, n) for i, n in enumerate(x.shape)]
        return lax.full(shape, 0, real_dtype(x.dtype) if real else x.dtype)  # of nothing
    x = _fitted(x, {i: n // 2 + 1 if real and i == places[-1] else n for i, n in zip(places, lengths)})
    order = tuple(i for i in range(x.ndim) if i not in places) + places
    out = lax.fft(lax.transpose(x, order), kind, lengths)
    back = tuple(order.index(i) for i in range(x.ndim))
    return _scale(lax.transpose(out, back), norm, lengths, kind in ("IFFT", "IRFFT"))


def _single_or_double(dtype: Any) -> np.dtype:
    """The real dtype that a transform of `dtype` is taken in."""
    dtype = inexact_dtype(dtype)
    return np.dtype(np.float64 if dtype in (np.float64, np.complex128) else np.float32)


def _one(name: str, kind: str, a: ArrayLike, n: int | None, axis: int | None, norm: str | None) -> Array:
    if isinstance(axis, (tuple, list)):
        raise ValueError(f"jax.numpy.fft.{name} does not support multiple axes. Please use jax.numpy.fft.{name}n. "
                         f"Got axis = {axis!r}.")  # fmt: skip
    return _transform(name, kind, a, None if n is None else (n,), None if axis is None else (axis,), norm)


def _two(name: str, kind: str, a: ArrayLike, s: Any, axes: Any, norm: str | None) -> Array:
    if len(axes) != 2:
        raise ValueError(f"jax.numpy.fft.{name} only supports 2 axes. Got axes = {axes!r}.")
    return _transform(name, kind, a, s, axes, norm)


def _opposite(norm: str | None) -> str:
    """The `norm` that scales an inverse transform as this one scales a forward one."""
    norm = "backward" if norm is None else norm
    return _DIRECTIONS.get(norm, norm)


@one_program("n", "axis", "norm")
def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The Fourier transform along an axis.

    Args:
      a: array.
      n: size along the axis, which is cut or padded with zeros to it; None for the array's.
      axis: the axis.
      norm: "backward" divides inverse transforms by the number of elements (None too), "forward" forward ones, "ortho"
        both by its root.

    Returns:
      Complex array.

    Raises:
      ValueError: for an axis or a `norm` that there is not.

    >>> import ferrax.numpy as jnp
    >>> jnp.fft.fft(jnp.array([1., 2.]))
    Array([ 3.+0.j, -1.+0.j], dtype=complex64)
    """
    return _one("fft", "FFT", a, n, axis, norm)


@one_program("n", "axis", "norm")
def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse Fourier transform along an axis.

    Args, Returns, Raises: as in `fft`.

    >>> import ferrax.numpy as jnp
    >>> jnp.fft.ifft(jnp.array([3., -1.]))
    Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    return _one("ifft", "IFFT", a, n, axis, norm)


@one_program("n", "axis", "norm")
def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The Fourier transform of real arrays along an axis: its first half, n // 2 + 1 entries.

    Args:
      a: real array.
      n, axis, norm: as in `fft`.

    Returns: as in `fft`.

    Raises:
      ValueError: for an axis or a `norm` that there is not, or a complex array.

    >>> import ferrax.numpy as jnp
    >>> jnp.fft.rfft(jnp.array([1., 2.]))
    Array([ 3.+0.j, -1.+0.j], dtype=complex64)
    """
    return _one("rfft", "RFFT", a, n, axis, norm)


@one_program("n", "axis", "norm")
def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `rfft` along an axis.

    Args:
      a: array of m = n // 2 + 1 entries along the axis.
      n: size of the result along the axis; None for 2 (m - 1), where the axis has m entries.
      axis, norm: as in `fft`.

    Returns:
      Real array.

    Raises: as in `fft`.

    >>> import ferrax.numpy as jnp
    >>> jnp.fft.irfft(jnp.array([3., -1.]))
    Array([1., 2.], dtype=float32)
    """
    return _one("irfft", "IRFFT", a, n, axis, norm)


@one_program("n", "axis", "norm")
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The Fourier transform, which is real, of arrays that are Hermitian along an axis.

    Args:
      a: array with the first half along the axis.
      n: size of the result along the axis; None for 2 (m - 1), where the axis has m entries.
      axis, norm: as in `fft`.

    Returns:
      Real array.

    Raises: as in `fft`.

    >>> import ferrax.numpy as jnp
    >>> jnp.fft.hfft(jnp.array([1., 2.]))
    Array([ 3., -1.], dtype=float32)
    """
    return _one("hfft", "IRFFT", to_array("jnp.fft.hfft", a).conj(), n, axis, _opposite(norm))


@one_program("n", "axis", "norm")
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `hfft` along an axis: its first half.

    Args:
      a: real array.
      n, axis, norm: as in `fft`.

    Returns: as in `fft`.

    Raises:
      ValueError: for an axis or a `norm` that there is not, or a complex array.

    >>> import ferrax.numpy as jnp
    >>> jnp.fft.ihfft(jnp.array([3., -1.]))
    Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    out = _one("ihfft", "RFFT", a, n, axis, None).conj()
    part = 1 / (np.shape(a)[axis] if n is None else n)
    # the product is what decides the signs of zeros
    return out * {"backward": part, "ortho": part**0.5, "forward": 1.0}[_known(norm)]


@one_program("s", "axes", "norm")
def fft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The Fourier transform over two axes.

    Args:
      a: array.
      s: sizes along the axes, which are cut or padded with zeros to them; None for the array's.
      axes: the axes.
      norm: "backward" divides inverse transforms by the number of elements (None too), "forward" forward ones, "ortho"
        both by its root.

    Returns:
      Complex array.

    Raises:
      ValueError: for axes or a `norm` that there are not, or sizes that do not fit the axes.

    >>> import ferrax.numpy as jnp
    >>> jnp.fft.fft2(jnp.eye(2))
    Array([[2.+0.j, 0.+0.j],
           [0.+0.j, 2.+0.j]], dtype=complex64)
    """
    return _two("fft2", "FFT", a, s, axes, norm)


@one_program("s", "axes", "norm")
def fftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The Fourier transform over axes.

    Args:
      a, s: as in `fft2`.
      axes: the axes; None for all, or for the last ones if `s` is given.
      norm: as in `fft2`.

    Returns, Raises: as in `fft2`.

    >>> import ferrax.numpy as jnp
    >>> jnp.fft.fftn(jnp.eye(2))
    Array([[2.+0.j, 0.+0.j],
           [0.+0.j, 2.+0.j]], dtype=complex64)
    """
    return _transform("fftn", "FFT", a, s, axes, norm)


@one_program("s", "axes", "norm")
def ifft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The inverse Fourier transform over two axes.

    Args, Returns, Raises: as in `fft2`.

    >>> import ferrax.numpy as jnp
    >>> jnp.fft.ifft2(2 * jnp.eye(2))
    Array([[1.+0.j, 0.+0.j],
           [0.+0.j, 1.+0.j]], dtype=complex64)
    """
    return _two("ifft2", "IFFT", a, s, axes, norm)


@one_program("s", "axes", "norm")
def ifftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The inverse Fourier transform over axes.

    Args:
      a, s: as in `fft2`.
      axes: the axes; None for all, or for the last ones if `s` is given.
      norm: as in `fft2`.

    Returns, Raises: as in `fft2`.

    >>> import ferrax.numpy as jnp
    >>> jnp.fft.ifftn(2 * jnp.eye(2))
    Array([[1.+0.j, 0.+0.j],
           [0.+0.j, 1.+0.j]], dtype=complex64)
    """
    return _transform("ifftn", "IFFT", a, s, axes, norm)


@one_program("s", "axes", "norm")
def rfft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The Fourier transform of real arrays over two axes.

    Args:
      a: real array.
      s, axes, norm: as in `fft2`.

    Returns:
      Complex array, with the first half along the last of the axes.

    Raises:
      ValueError: for axes or a `norm` that there are not, or sizes that do not fit the axes, or a complex array.

    >>> import ferrax.numpy as jnp
    >>> jnp.fft.rfft2(jnp.eye(2))
    Array([[2.+0.j, 0.+0.j],
           [0.+0.j, 2.+0.j]], dtype=complex64)
    """
    return _two("rfft2", "RFFT", a, s, axes, norm)


@one_program("s", "axes", "norm")
def rfftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The Fourier transform of real arrays over axes.

    Args:
      a: real array.
      s: sizes along the axes, which are cut or padded with zeros to them; None for the array's.
      axes: the axes; None for all, or for the last ones if `s` is given.
      norm: "backward" divides inverse transforms by the number of elements (None too), "forward" forward ones, "ortho"
        both by its root.

    Returns, Raises: as in `rfft2`.

    >>> import ferrax.numpy as jnp
    >>> jnp.fft.rfftn(jnp.eye(2))
    Array([[2.+0.j, 0.+0.j],
           [0.+0.j, 2.+0.j]], dtype=complex64)
    """
    return _transform("rfftn", "RFFT", a, s, axes, norm)


@one_program("s", "axes", "norm")
def irfft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The inverse of `rfft2` over two axes.

    Args:
      a: array with the first half along the last of the axes.
      s: sizes of the result along the axes; None for the array's, and 2 (m - 1) along the last, which has m entries.
      axes, norm: as in `fft2`.

    Returns:
      Real array.

    Raises: as in `fft2`.

    >>> import ferrax.numpy as jnp
    >>> jnp.fft.irfft2(2 * jnp.eye(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return _two("irfft2", "IRFFT", a, s, axes, norm)


@one_program("s", "axes", "norm")
def irfftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The inverse of `rfftn` over axes.

    Args:
      a: array with the first half along the last of the axes.
      s: sizes of the result along the axes; None for the array's, and 2 (m - 1) along the last, which has m entries.
      axes, norm: as in `rfftn`.

    Returns:
      Real array.

    Raises:
      ValueError: for axes or a `norm` that there are not, or sizes that do not fit the axes.

    >>> import ferrax.numpy as jnp
    >>> jnp.fft.irfftn(2 * jnp.eye(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return _transform("irfftn", "IRFFT", a, s, axes, norm)


def _frequencies(name: str, n: int, d: ArrayLike, dtype: DTypeLike, device: Any) -> Array:
    if isinstance(n, (list, tuple)):
        raise ValueError(f"The n argument of jax.numpy.fft.{name} only takes an int. Got n = {n}.")
    if isinstance(d, (list, tuple)):
        raise ValueError(f"The d argument of jax.numpy.fft.{name} only takes a single value. Got d = {d}.")
    count = np.arange(int(n) if name == "fftfreq" else int(n) // 2 + 1)
    if name == "fftfreq":
        count = np.where(count < (n + 1) // 2, count, count - n)
    out = cast_to(count, dtype, np.float64)
    return place(cast(out / (d * n), out.dtype), device)


def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike = None, device: Any = None) -> Array:
    """The frequencies of the entries of `fft`.

    Args:
      n: number of entries.
      d: distance of the samples.
      dtype: floating dtype; None for the default one.
      device: device of the result.

    Returns:
      Array of shape (n,): 0, 1, …, -2, -1 divided by n d.

    Raises:
      ValueError: the arguments are sequences.

    >>> import ferrax.numpy as jnp
    >>> jnp.fft.fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    return _frequencies("fftfreq", n, d, dtype, device)


def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike = None, device: Any = None) -> Array:
    """The frequencies of the entries of `rfft`.

    Args:
      n: number of samples.
      d, dtype, device: as in `fftfreq`.

    Returns:
      Array of shape (n // 2 + 1,): 0, 1, … divided by n d.

    Raises: as in `fftfreq`.

    >>> import ferrax.numpy as jnp
    >>> jnp.fft.rfftfreq(4)
    Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    return _frequencies("rfftfreq", n, d, dtype, device)


def _shift_axes(x: Array, axes: Any) -> tuple[int, ...]:
    return normalize_axes(axes, x.ndim)


def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Axes turned by half of their size: the frequency zero comes into the middle.

    Args:
      x: array.
      axes: the axis or axes; None for all.

    Returns:
      Array of the shape of `x`.

    >>> import ferrax.numpy as jnp
    >>> jnp.fft.fftshift(jnp.arange(5))
    Array([3, 4, 0, 1, 2], dtype=int32)
    """
    a = to_array("jnp.fft.fftshift", x)
    places = _shift_axes(a, axes)
    return _rearrange.roll(a, [a.shape[i] // 2 for i in places], places)


def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of `fftshift`.

    Args, Returns: as in `fftshift`.

    >>> import ferrax.numpy as jnp
    >>> jnp.fft.ifftshift(jnp.array([3, 4, 0, 1, 2]))
    Array([0, 1, 2, 3, 4], dtype=int32)
    """
    a = to_array("jnp.fft.ifftshift", x)
    places = _shift_axes(a, axes)
    return _rearrange.roll(a, [-(a.shape[i] // 2) for i in places], places)


_expose(globals())
