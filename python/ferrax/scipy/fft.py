"""Cosine transforms: `dct` and its inverse, of types 1 to 4, along one axis and along several.

Each is one Fourier transform between products with known factors. Types 2 and 3 take one of the array's own length:
Makhoul, "A fast cosine transform in one and two dimensions" (1980). Type 1 is that of the array mirrored, type 4 that
of the array turned by a quarter of a period and padded to twice its length. Read next: `ferrax/numpy/fft.py`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._api import jit
from ferrax._boundary import expose as _expose
from ferrax.numpy._args import Array, ArrayLike, normalize_axes, normalize_axis, to_array
from ferrax.numpy._dtype_functions import dtype_kind
from ferrax.numpy.fft import _fitted, _single_or_double

__all__ = ["dct", "dctn", "idct", "idctn"]

# The type of the transform that undoes one, but for a factor.
_INVERSES = {1: 1, 2: 3, 3: 2, 4: 4}


def _turned(x: Array, angles: np.ndarray) -> Array:
    """Vectors along the last axis, times exp(i angle)."""
    dtype = np.complex128 if x.dtype in (np.float64, np.complex128) else np.complex64
    factors = np.exp(1j * angles).astype(dtype)
    x = lax.convert_element_type(x, dtype)
    return lax.mul(x, lax.broadcast_in_dim(factors, x.shape, (x.ndim - 1,)))


def _scaled(x: Array, factors: np.ndarray) -> Array:
    """Vectors along the last axis, times real factors."""
    return lax.mul(x, lax.broadcast_in_dim(factors.astype(x.dtype), x.shape, (x.ndim - 1,)))


def _ends(n: int, first: float, last: float = 1.0) -> np.ndarray:
    """Factors that are 1 but at the ends."""
    factors = np.ones(n)
    factors[0] *= first
    factors[-1] *= last
    return factors


def _part(x: Array, start: int, stop: int, step: int = 1) -> Array:
    return lax.slice_in_dim(x, start, stop, step, axis=x.ndim - 1)


def _joined(*parts: Array) -> Array:
    return lax.concatenate(parts, parts[0].ndim - 1)


def _reversed(x: Array) -> Array:
    return lax.rev(x, (x.ndim - 1,))


def _type1(x: Array) -> Array:
    """x_0 + (-1)^k x_(n-1) + 2 sum_j x_j cos(pi j k / (n - 1)), j from 1 to n - 2."""
    n = x.shape[-1]
    mirrored = _joined(x, _reversed(_part(x, 1, n - 1)))
    return lax.real(lax.fft(mirrored, "RFFT", (2 * n - 2,)))


def _type2(x: Array) -> Array:
    """2 sum_j x_j cos(pi k (2 j + 1) / (2 n))."""
    n = x.shape[-1]
    woven = _joined(_part(x, 0, n, 2), _reversed(_part(x, 1, n, 2))) if n > 1 else x
    half = n // 2 + 1
    z = _turned(lax.fft(woven, "RFFT", (n,)), -math.pi / (2 * n) * np.arange(half))
    # the rest of the spectrum is conjugate: entry n - k is minus the imaginary part of entry k
    low, high = lax.real(z), lax.neg(lax.imag(_part(z, 1, (n + 1) // 2)))
    return 2 * (_joined(low, _reversed(high)) if n > 2 else _part(low, 0, n))


def _type3(x: Array) -> Array:
    """x_0 + 2 sum_k x_k cos(pi k (2 j + 1) / (2 n)), k from 1."""
    n = x.shape[-1]
    half = n // 2 + 1
    zero = lax.full_like(_part(x, 0, 1), 0)
    beyond = _joined(zero, _reversed(_part(x, n - half + 1, n))) if half > 1 else zero
    z = _turned(lax.complex(_part(x, 0, half) if half <= n else _joined(x, zero), lax.neg(beyond)),
                math.pi / (2 * n) * np.arange(half))  # fmt: skip
    woven = lax.fft(z, "IRFFT", (n,)) * n
    if n == 1:
        return woven
    even, odd = _part(woven, 0, (n + 1) // 2), _reversed(_part(woven, (n + 1) // 2, n))
    odd = odd if n % 2 == 0 else _joined(odd, zero)
    pairs = lax.concatenate([lax.expand_dims(even, (x.ndim,)), lax.expand_dims(odd, (x.ndim,))], x.ndim)
    return _part(lax.reshape(pairs, (*x.shape[:-1], 2 * even.shape[-1])), 0, n)


def _type4(x: Array) -> Array:
    """2 sum_j x_j cos(pi (2 k + 1) (2 j + 1) / (4 n))."""
    n = x.shape[-1]
    turned = _turned(x, -math.pi / (2 * n) * np.arange(n))
    z = lax.fft(_fitted(turned, {x.ndim - 1: 2 * n}), "FFT", (2 * n,))
    return 2 * lax.real(_turned(_part(z, 0, n), -math.pi / (4 * n) * (2 * np.arange(n) + 1)))


_KERNELS: dict[int, Callable[[Array], Array]] = {1: _type1, 2: _type2, 3: _type3, 4: _type4}


def _orthogonal(x: Array, type: int) -> Array:
    """The transform as an orthogonal matrix."""
    n, root = x.shape[-1], math.sqrt(2)
    period = 2 * (n - 1) if type == 1 else 2 * n
    before = {1: _ends(n, root, root), 3: _ends(n, root)}.get(type)
    after = {1: _ends(n, 1 / root, 1 / root), 2: _ends(n, 1 / root)}.get(type, np.ones(n)) / math.sqrt(period)
    x = x if before is None else _scaled(x, before)
    return _scaled(_KERNELS[type](x), after)


def _along(x: Array, type: int, inverse: bool, norm: str) -> Array:
    """The transform of a real array along its last axis."""
    n = x.shape[-1]
    kind = _INVERSES[type] if inverse else type
    if norm == "ortho":
        return _orthogonal(x, kind)
    out = _KERNELS[kind](x)
    divides = inverse if norm == "backward" else not inverse
    return out / (2 * (n - 1) if type == 1 else 2 * n) if divides else out


@partial(jit, static_argnames=("type", "sizes", "axes", "norm", "inverse"))
def _transform(
    x: Array, type: int, sizes: tuple[int, ...], axes: tuple[int, ...], norm: str, inverse: bool
) -> Array:  # fmt: skip
    if dtype_kind(x.dtype) == "c":
        parts = [_transform(part, type, sizes, axes, norm, inverse) for part in (lax.real(x), lax.imag(x))]
        return lax.complex(*parts)
    x = _fitted(lax.convert_element_type(x, _single_or_double(x.dtype)), dict(zip(axes, sizes)))
    if 0 in x.shape:
        return x
    for axis in axes:
        order = [i for i in range(x.ndim) if i != axis] + [axis]
        back = [order.index(i) for i in range(x.ndim)]
        x = lax.transpose(_along(lax.transpose(x, order), type, inverse, norm), back)
    return x


def _checked(name: str, x: Array, type: int, sizes: Sequence[int], axes: Sequence[int], norm: str | None,
             inverse: bool) -> Array:  # fmt: skip
    type = operator.index(type)
    if type not in _INVERSES:
        raise NotImplementedError(f"{name}: there are types 1 to 4 of the cosine transform, not {type}")
    norm = "backward" if norm is None else norm
    if norm not in ("backward", "ortho", "forward"):
        raise ValueError(f"{name}: norm={norm!r} is not implemented; there are 'backward', 'ortho' and 'forward'")
    least = 2 if type == 1 else 1
    if any(n < least for n in sizes):
        raise ValueError(f"{name}: type {type} takes at least {least} elements along an axis, got {tuple(sizes)}")
    return _transform(x, type, tuple(sizes), tuple(axes), norm, inverse)


def _one(name: str, x: ArrayLike, type: int, n: int | None, axis: int, norm: str | None, inverse: bool) -> Array:
    x = to_array(name, x)
    axis = normalize_axis(axis, x.ndim)
    return _checked(name, x, type, [x.shape[axis] if n is None else operator.index(n)], [axis], norm, inverse)


def _several(name: str, x: ArrayLike, type: int, s: Any, axes: Any, norm: str | None, inverse: bool) -> Array:
    x = to_array(name, x)
    sizes = None if s is None else [operator.index(n) for n in (s if isinstance(s, Sequence) else np.atleast_1d(s))]
    if axes is None and sizes is not None:
        if len(sizes) > x.ndim:
            raise ValueError(f"{name}: s must have at most x.ndim ({x.ndim}) elements, got {len(sizes)}")
        axes = tuple(range(x.ndim - len(sizes), x.ndim))
    places = normalize_axes(axes, x.ndim)
    if sizes is None:
        sizes = [x.shape[i] for i in places]
    if len(sizes) != len(places):
        raise ValueError(
            f"{name}: when given, axes and s must have the same length, got {len(places)} and {len(sizes)}"
        )
    return _checked(name, x, type, sizes, places, norm, inverse)


def dct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The cosine transform along an axis.

    Args:
      x: array; of a complex one, real and imaginary part are transformed.
      type: 1 to 4; see SciPy's documentation of `scipy.fft.dct` for their sums.
      n: size along the axis, which is cut or padded with zeros to it; None for the array's.
      axis: the axis.
      norm: "backward" (None too) divides inverse transforms by 2 n, 2 (n - 1) for type 1, "forward" forward ones;
        "ortho" makes the transform an orthogonal matrix.

    Returns:
      Array of float32 or float64, or complex.

    Raises:
      NotImplementedError: for a type that there is not.
      ValueError: for an axis or a `norm` that there is not, or an axis that is too short.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy import fft
    >>> fft.dct(jnp.ones(3)).round(3) + 0.
    Array([6., 0., 0.], dtype=float32)
    """
    return _one("dct", x, type, n, axis, norm, False)


def idct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `dct` along an axis.

    Args:
      x: array; of a complex one, real and imaginary part are transformed.
      type: the type, 1 to 4, of the transform that is undone.
      n, axis: as in `dct`.
      norm: the `norm` of the transform that is undone.

    Returns, Raises: as in `dct`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy import fft
    >>> fft.idct(jnp.array([6., 0., 0.]))
    Array([1., 1., 1.], dtype=float32)
    """
    return _one("idct", x, type, n, axis, norm, True)


def dctn(x: ArrayLike, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
         norm: str | None = None) -> Array:  # fmt: skip
    """The cosine transform along several axes.

    Args:
      x: array; of a complex one, real and imaginary part are transformed.
      type: 1 to 4, as for `dct`.
      s: sizes along the axes, which are cut or padded with zeros to them; None for the array's.
      axes: the axes; None for all, or for the last ones if `s` is given.
      norm: as for `dct`.

    Returns:
      Array of float32 or float64, or complex.

    Raises:
      NotImplementedError: for a type that there is not.
      ValueError: for axes or a `norm` that there are not, sizes that do not fit the axes, or an axis that is too
        short.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy import fft
    >>> fft.dctn(jnp.ones((2, 2))).round(3) + 0.
    Array([[16.,  0.],
           [ 0.,  0.]], dtype=float32)
    """
    return _several("dctn", x, type, s, axes, norm, False)


def idctn(x: ArrayLike, type: int = 2, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
          norm: str | None = None) -> Array:  # fmt: skip
    """The inverse of `dctn` along several axes.

    Args:
      x: array; of a complex one, real and imaginary part are transformed.
      type: the type, 1 to 4, of the transform that is undone.
      s, axes: as in `dctn`.
      norm: the `norm` of the transform that is undone.

    Returns, Raises: as in `dctn`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy import fft
    >>> fft.idctn(jnp.array([[16., 0.], [0., 0.]]))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return _several("idctn", x, type, s, axes, norm, True)


_expose(globals())
