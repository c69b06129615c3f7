"""Eigenvalues and eigenvectors of symmetric tridiagonal matrices.

Eigenvalues alone come from bisection over Sturm counts, in memory proportional to the size; vectors, and derivatives,
from the full matrix. Source: Golub and Van Loan, "Matrix Computations", section 8.4. Read next: `_factors.py`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._api import jit
from ferrax._core import asarray, concrete_or_error
from ferrax.custom_derivatives import custom_jvp
from ferrax.lax import linalg as _lax_linalg
from ferrax.numpy import _join, _reductions, _ufuncs
from ferrax.numpy._args import Array, ArrayLike, broadcast_to_shape
from ferrax.numpy._dtype_functions import dtype_kind
from ferrax.scipy.linalg._args import conj

__all__ = ["eigh_tridiagonal"]


def _full(d: Array, e: Array) -> Array:
    """The matrix with `d` on its diagonal, `e` above it and the conjugate of `e` below."""
    n = d.shape[0]
    i, j = (lax.broadcasted_iota(np.int32, (n, n), axis) for axis in (0, 1))
    e = lax.pad(e, lax.full_like(e, 0, shape=()), [(0, 1, 0)])
    zero = lax.full_like(e, 0, shape=(n, n))
    above = _ufuncs.where(j == i + 1, broadcast_to_shape(e[:, None], (n, n)), zero)
    below = _ufuncs.where(i == j + 1, broadcast_to_shape(conj(e)[None, :], (n, n)), zero)
    diagonal = lax.convert_element_type(broadcast_to_shape(d[:, None], (n, n)), e.dtype)
    return _ufuncs.where(i == j, diagonal, zero) + above + below


def _counts(d: Array, e2: Array, least: Array, x: Array) -> Array:
    """How many eigenvalues are below each `x`: how many pivots of the shifted matrix are negative."""

    def step(state, row):
        q, count = state
        a, b2 = row
        q = a - x - b2 / q
        q = _ufuncs.where(lax.abs(q) <= least, -least, q)
        return (q, count + lax.convert_element_type(q < 0, np.int32)), None

    before = _join.concatenate([lax.full_like(d, 0)[:1], e2])
    start = (lax.full_like(x, 1), lax.full_like(x, 0, dtype=np.int32))
    return lax.scan(step, start, (d, before))[0][1]


def _bisected(d: Array, e: Array, tol: Array, wanted: Array) -> Array:
    size = lax.abs(e)
    zero = lax.full_like(size, 0)[:1]
    radius = _join.concatenate([zero, size]) + _join.concatenate([size, zero])
    low, high = _reductions.min(d - radius), _reductions.max(d + radius)
    info = np.finfo(d.dtype)
    scale = _ufuncs.maximum(lax.abs(low), lax.abs(high))
    e2 = size * size
    least = float(info.tiny) * _ufuncs.maximum(lax.full_like(low, 1), _reductions.max(e2))
    slack = 2.1 * (d.shape[0] * float(info.eps) * scale + 2 * least)
    enough = _ufuncs.maximum(tol, float(info.eps) * scale)
    ends = tuple(broadcast_to_shape(x[None], wanted.shape) for x in (low - slack, high + slack))

    def unfinished(state):
        i, low, high = state
        return (i < info.nmant + 3) & (_reductions.max(high - low) > enough)

    def step(state):
        i, low, high = state
        middle = 0.5 * (low + high)
        below = _counts(d, e2, least, middle) <= wanted
        return i + 1, _ufuncs.where(below, middle, low), _ufuncs.where(below, high, middle)

    _, low, high = lax.while_loop(unfinished, step, (asarray(0, dtype=np.int32), *ends))
    return 0.5 * (low + high)


@partial(custom_jvp, nondiff_argnums=(2, 3))
def _values(d: Array, e: Array, indices: tuple[int, int], tol: float) -> Array:
    wanted = lax.iota(np.int32, indices[1] - indices[0] + 1) + indices[0]
    return _bisected(d, e, asarray(tol, dtype=d.dtype), wanted)


@_values.defjvp
def _values_jvp(indices, tol, primals, tangents):
    v, _ = _lax_linalg.eigh(_full(*primals), symmetrize_input=False)
    v = v[:, indices[0] : indices[1] + 1]
    dd, de = tangents
    cross = conj(v[:-1]) * v[1:] * de[:, None]
    change = _reductions.sum(lax.abs(v) ** 2 * dd[:, None], 0)
    cross = lax.real(cross) if dtype_kind(cross.dtype) == "c" else cross
    return _values(*primals, indices, tol), change + 2 * _reductions.sum(cross, 0)


@partial(jit, static_argnames=("indices", "values_only", "tol"))
def _eigh_tridiagonal(d: Array, e: Array, indices: tuple[int, int], values_only: bool, tol: float) -> Any:
    if values_only:
        return _values(d, e, indices, tol)
    v, w = _lax_linalg.eigh(_full(d, e), symmetrize_input=False)
    return w[indices[0] : indices[1] + 1], v[:, indices[0] : indices[1] + 1]


def _arguments(d: ArrayLike, e: ArrayLike) -> tuple[Array, Array]:
    x, y = asarray(d), asarray(e)
    if x.dtype != y.dtype:
        raise TypeError(f"diagonal and off-diagonal values must have same dtype, got {x.dtype} and {y.dtype}")
    if x.dtype not in (np.float32, np.float64, np.complex64, np.complex128):
        raise TypeError(f"scipy.linalg.eigh_tridiagonal: dtype {x.dtype} is not supported; convert to float32.")
    if x.ndim != 1 or y.ndim != 1 or y.shape[0] != max(x.shape[0] - 1, 0):
        raise ValueError(f"scipy.linalg.eigh_tridiagonal: shapes {x.shape} and {y.shape} are not (n,) and (n - 1,).")
    return (lax.real(x) if dtype_kind(x.dtype) == "c" else x), y


def _indices(select: str, select_range: Any, n: int) -> tuple[int, int]:
    """The first and the last eigenvalue that are asked for; all of them where their values select."""
    if select not in ("a", "i", "v"):
        raise ValueError(f"select must have a value in {{'a', 'i', 'v'}}, got {select!r}.")
    if select == "a":
        return 0, n - 1
    if select_range is None:
        raise ValueError(f"for select={select!r}, select_range must be specified.")
    if select == "v":
        return 0, n - 1
    first, last = (int(i) for i in select_range)
    if first > last:
        raise ValueError("Got empty index range in select_range.")
    if first < 0 or last >= n:
        raise ValueError(f"select_range {select_range} has no indices of {n} eigenvalues.")
    return first, last


def eigh_tridiagonal(d: ArrayLike, e: ArrayLike, *, eigvals_only: bool = False, select: str = "a",
                     select_range: tuple[float, float] | None = None, tol: float | None = None,
                     key: Array | None = None) -> Any:  # fmt: skip
    """Eigenvalues and eigenvectors of a Hermitian tridiagonal matrix.

    Args:
      d: array of shape (n,): the diagonal, whose imaginary part does not count.
      e: array of shape (n - 1,) and the dtype of `d`: above the diagonal; below it stands the conjugate.
      eigvals_only: give the eigenvalues alone.
      select: "a" for all of them, "i" for those of the indices in `select_range`, "v" for those with values in
        the half-open interval `select_range`, which needs concrete arrays.
      select_range: static; the first and the last index, or the ends of the interval.
      tol: static; the error that eigenvalues alone may have; None for the precision of the dtype.
      key: accepted, and means nothing: vectors do not start at random.

    Returns:
      Eigenvalues, real and ascending, of shape (k,), and eigenvectors in columns, of shape (n, k).

    Raises:
      TypeError: dtypes differ or are not float32, float64, complex64 or complex128.
      ValueError: shapes do not fit, or there is no such selection.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.linalg
    >>> w, v = ferrax.scipy.linalg.eigh_tridiagonal(jnp.array([2., 2.]), jnp.array([1.]))
    >>> jnp.round(w, 3)
    Array([1., 3.], dtype=float32)
    """
    del key
    x, y = _arguments(d, e)
    n = x.shape[0]
    if n <= 1:
        return x if eigvals_only else (x, lax.full((n, n), 1, y.dtype))
    first, last = _indices(select, select_range, n)
    out = _eigh_tridiagonal(x, y, (first, last), eigvals_only, 0.0 if tol is None else float(tol))
    if select != "v":
        return out
    w = concrete_or_error(np.asarray, out if eigvals_only else out[0], "eigh_tridiagonal with select='v'")
    assert select_range is not None
    inside = np.flatnonzero((w > select_range[0]) & (w <= select_range[1]))
    return out[inside] if eigvals_only else (out[0][inside], out[1][:, inside])
