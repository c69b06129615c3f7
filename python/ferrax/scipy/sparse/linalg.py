"""Krylov methods for linear systems: conjugate gradients, GMRES, BiCGStab.

Vectors are trees of arrays, operators are functions on them. Loops run on the device; derivatives are those of the
solution, by another run of the same method (`lax.custom_linear_solve`). Sources: Saad, "Iterative Methods for Sparse
Linear Systems" (algorithms 6.9, 6.18, 9.1); van der Vorst, "Bi-CGSTAB" (1992). Read next: `lax/control_flow.py`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ferrax import lax, tree
from ferrax._boundary import expose as _expose
from ferrax._core import Array, Tracer, asarray
from ferrax.lax import linalg as _lax_linalg
from ferrax.numpy import _linalg_rank, _products, _reductions, _ufuncs
from ferrax.numpy._dtype_functions import dtype_kind, inexact_dtype, real_dtype, result_type

__all__ = ["bicgstab", "cg", "gmres"]

Operator = Callable[[Any], Any]
_dot = partial(_products.matmul, precision="highest")


# Vectors: trees whose leaves have one dtype.


def _cast(tree_: Any, dtype: Any) -> Any:
    return tree.map(lambda x: lax.convert_element_type(x, dtype), tree_)


def _inner(x: Any, y: Any) -> Array:
    """xᴴ y."""
    parts = [_dot(_conj(a.ravel()), b.ravel()) for a, b in zip(tree.leaves(x), tree.leaves(y))]
    return functools.reduce(operator.add, parts)


def _conj(x: Array) -> Array:
    return lax.conj(x) if dtype_kind(x.dtype) == "c" else x


def _real(x: Array) -> Array:
    return lax.real(x) if dtype_kind(x.dtype) == "c" else x


def _square(x: Any) -> Array:
    """|x|², real."""
    return _real(_inner(x, x))


def _plus(x: Any, scale: Array, y: Any) -> Any:
    """x + scale y."""
    return tree.map(lambda a, b: a + lax.convert_element_type(scale, a.dtype) * b, x, y)


def _minus(x: Any, y: Any) -> Any:
    return tree.map(operator.sub, x, y)


def _scaled(scale: Array, x: Any) -> Any:
    return tree.map(lambda a: lax.convert_element_type(scale, a.dtype) * a, x)


def _chosen(flag: Array, x: Any, y: Any) -> Any:
    return tree.map(lambda a, b: _ufuncs.where(flag, a, b), x, y)


# Arguments.


def _operator(name: str, f: Any) -> Operator:
    """A matrix, or what has a product, as a function."""
    if callable(f):
        return f
    if not (isinstance(f, (np.ndarray, Array, Tracer)) or hasattr(f, "__matmul__")):
        raise TypeError(f"linear operator must be either a function or ndarray: {f}")
    shape = getattr(f, "shape", None)
    if shape is not None and (len(shape) != 2 or shape[0] != shape[1]):
        raise ValueError(f"linear operator must be a square matrix, but has shape: {shape}")
    if isinstance(f, (np.ndarray, Array, Tracer)):
        return partial(_dot, asarray(f))
    return partial(operator.matmul, f)


def _in_dtype(f: Operator, dtype: Any) -> Operator:
    """An operator whose results are cast to the dtype of the vectors, which must be complex where they are."""

    def applied(x: Any) -> Any:
        out = f(x)
        for leaf in tree.leaves(out):
            if dtype_kind(leaf.dtype) == "c" and dtype_kind(dtype) != "c":
                raise TypeError(f"the operator gives {leaf.dtype} for vectors of {dtype}: b or x0 must be complex then")
        return _cast(out, dtype)

    return applied


def _identity(x: Any) -> Any:
    return x


def _check_start(x0: Any, b: Any) -> None:
    if tree.structure(x0) != tree.structure(b):
        raise ValueError(f"x0 and b must have matching tree structure: {tree.structure(x0)} vs {tree.structure(b)}")
    shapes = [[x.shape for x in tree.leaves(t)] for t in (x0, b)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"arrays in x0 and b must have matching shapes: {shapes[0]} vs {shapes[1]}")


def _solved(method: Callable[..., Any], A: Any, b: Any, x0: Any, tol: Any, atol: Any, maxiter: Any, M: Any,
            hermitian: bool) -> Any:  # fmt: skip
    """The solution that a method gives, in the dtype of `b` (or of `x0`, when that is wider)."""
    a, m = _operator("A", A), _identity if M is None else _operator("M", M)
    b = tree.map(asarray, b)
    x0 = tree.map(lambda x: lax.full_like(x, 0), b) if x0 is None else tree.map(asarray, x0)
    _check_start(x0, b)
    leaves = tree.leaves(b)
    if not leaves:
        return b
    dtype = inexact_dtype(result_type(*leaves, *tree.leaves(x0)))
    b, x0 = _cast(b, dtype), _cast(x0, dtype)
    size = sum(x.size for x in leaves)
    most = 10 * size if maxiter is None else maxiter
    m = m if m is _identity else _in_dtype(m, dtype)

    def solve(a: Operator, b: Any) -> Any:
        real = real_dtype(dtype)
        size_of_b = lax.sqrt(_square(b))
        enough = _ufuncs.maximum(asarray(tol, dtype=real) * size_of_b, asarray(atol, dtype=real))
        return method(a, b, lax.stop_gradient(x0), enough, most, m)

    symmetric = hermitian and dtype_kind(dtype) != "c"
    return lax.custom_linear_solve(_in_dtype(a, dtype), b, solve, solve, symmetric)


# Methods: (operator, b, start, largest norm of the residual, most steps, preconditioner) to the solution.


def _to_do(k: Array, size: Array, enough: Array) -> Array:
    """Whether the residual is still too large. NaN is so for one step, which hands it on to the solution."""
    return (size > enough) | ((k == 0) & (size != size))


def _cg(a: Operator, b: Any, x: Any, enough: Array, most: Any, m: Operator) -> Any:
    r = _minus(b, a(x))
    z = m(r)

    def unfinished(state):
        k, _, r, _, gamma = state
        size = gamma if m is _identity else _square(r)
        return _to_do(k, size, enough * enough) & (k < most)

    def step(state):
        k, x, r, p, gamma = state
        q = a(p)
        alpha = gamma / _real(_inner(p, q))
        x, r = _plus(x, alpha, p), _plus(r, -alpha, q)
        z = m(r)
        new = _real(_inner(r, z))
        return k + 1, x, r, _plus(z, new / gamma, p), new

    return lax.while_loop(unfinished, step, (np.int32(0), x, r, z, _real(_inner(r, z))))[1]


def _bicgstab(a: Operator, b: Any, x: Any, enough: Array, most: Any, m: Operator) -> Any:
    r = _minus(b, a(x))
    shadow = r
    limit = enough * enough

    def unfinished(state):
        k, lost, _, r, *_ = state
        return _to_do(k, _square(r), limit) & (k < most) & ~lost

    def step(state):
        k, _, x, r, p, q, alpha, omega, rho = state
        new = _inner(shadow, r)
        p = _plus(r, new / rho * alpha / omega, _plus(p, -omega, q))
        better = m(p)
        q = a(better)
        alpha = new / _inner(shadow, q)
        s = _plus(r, -alpha, q)
        half = _plus(x, alpha, better)
        early = _square(s) < limit
        better = m(s)
        t = a(better)
        omega = _inner(t, s) / _inner(t, t)
        x = _chosen(early, half, _plus(half, omega, better))
        r = _chosen(early, s, _plus(s, -omega, t))
        # nothing more is to be had where one of them is zero
        lost = (new == 0) | (alpha == 0) | (omega == 0)
        return k + 1, lost, x, r, p, q, alpha, omega, new

    one = lax.full_like(_inner(r, r), 1)
    return lax.while_loop(unfinished, step, (np.int32(0), asarray(False), x, r, r, r, one, one, one))[2]


def _columns(v: Any, coefficients: Array) -> Any:
    """The sum of basis vectors, which the last axis of each leaf counts."""
    return tree.map(lambda x: _dot(x, coefficients), v)


def _overlaps(v: Any, w: Any) -> Array:
    """The inner products of basis vectors with `w`."""
    parts = [_dot(_conj(x.reshape(-1, x.shape[-1])).T, y.ravel()) for x, y in zip(tree.leaves(v), tree.leaves(w))]
    return functools.reduce(operator.add, parts)


def _arnoldi_step(a: Operator, m: Operator, v: Any, k: Any) -> tuple[Any, Array, Array]:
    """(basis with one more vector, column of the Hessenberg matrix, whether there is no other vector)."""
    w = m(a(tree.map(lambda x: lax.dynamic_index_in_dim(x, k, x.ndim - 1, keepdims=False), v)))
    before = lax.sqrt(_square(w))
    # Gram and Schmidt, twice: the second time takes away what rounding left
    h = _overlaps(v, w)
    w = _minus(w, _columns(v, h))
    again = _overlaps(v, w)
    w, h = _minus(w, _columns(v, again)), h + again
    size = lax.sqrt(_square(w))
    lost = size <= float(np.finfo(h.dtype).eps) * before
    size = _ufuncs.where(lost, lax.full_like(size, 0), size)
    unit = _scaled(_ufuncs.where(lost, lax.full_like(size, 0), 1 / size), w)
    v = tree.map(lambda x, y: lax.dynamic_update_index_in_dim(x, y, k + 1, x.ndim - 1), v, unit)
    h = lax.dynamic_update_index_in_dim(h, lax.convert_element_type(size, h.dtype), k + 1, 0)
    return v, h, lost


def _start(r: Any, size: Array, restart: int) -> Any:
    unit = _scaled(1 / size, r)
    return tree.map(lambda x: lax.pad(x[..., None], lax.full_like(x, 0, shape=()), [(0, 0, 0)] * x.ndim
                                      + [(0, restart, 0)]), unit)  # fmt: skip


def _cycle_batched(a: Operator, m: Operator, r: Any, size: Array, enough: Array, restart: int) -> Any:
    """The best correction in the Krylov space of `restart` vectors, by a least-squares problem at its end."""
    v = _start(r, size, restart)
    dtype = tree.leaves(v)[0].dtype
    h = lax.full((restart + 1, restart), 0, dtype)

    def unfinished(state):
        k, _, _, lost = state
        return (k < restart) & ~lost

    def step(state):
        k, v, h, _ = state
        v, column, lost = _arnoldi_step(a, m, v, k)
        return k + 1, v, lax.dynamic_update_index_in_dim(h, column, k, 1), lost

    _, v, h, _ = lax.while_loop(unfinished, step, (np.int32(0), v, h, asarray(False)))
    rhs = lax.pad(lax.convert_element_type(size, dtype)[None], lax.full((), 0, dtype), [(0, restart, 0)])
    y = _linalg_rank.lstsq(h, rhs)[0]
    return _columns(tree.map(lambda x: x[..., :-1], v), y)


def _rotated(row: Array, i: Any, cosine: Array, sine: Array) -> Array:
    """A Givens rotation of elements i and i + 1."""
    pair = lax.dynamic_slice_in_dim(row, i, 2)
    x, y = pair[0], pair[1]
    new = lax.concatenate([(cosine * x + sine * y)[None], (cosine * y - _conj(sine) * x)[None]], 0)
    return lax.dynamic_update_slice_in_dim(row, new, i, 0)


def _rotation(x: Array, y: Array) -> tuple[Array, Array]:
    """The rotation that makes `y`, which is real, zero: (cosine, sine)."""
    size = lax.sqrt(_real(_conj(x) * x) + _real(_conj(y) * y))
    none = size == 0
    safe = _ufuncs.where(none, lax.full_like(size, 1), size)
    length = lax.abs(x)
    phase = _ufuncs.where(length == 0, lax.full_like(x, 1), x / lax.convert_element_type(
        _ufuncs.where(length == 0, lax.full_like(length, 1), length), x.dtype))  # fmt: skip
    cosine = lax.convert_element_type(_ufuncs.where(none, lax.full_like(size, 1), length / safe), x.dtype)
    return cosine, phase * _conj(y) / lax.convert_element_type(safe, x.dtype)


def _cycle_incremental(a: Operator, m: Operator, r: Any, size: Array, enough: Array, restart: int) -> Any:
    """As `_cycle_batched`, by rotations in each step, which tell the residual: it stops where that is small enough."""
    v = _start(r, size, restart)
    dtype = tree.leaves(v)[0].dtype
    upper = lax.convert_element_type(np.eye(restart + 1, restart), dtype)
    rhs = lax.pad(lax.convert_element_type(size, dtype)[None], lax.full((), 0, dtype), [(0, restart, 0)])
    rotations = lax.full((restart, 2), 0, dtype)

    def unfinished(state):
        k, *_, error = state
        return (k < restart) & (error > enough)

    def step(state):
        k, v, upper, rhs, rotations, _ = state
        v, column, _ = _arnoldi_step(a, m, v, k)
        column = lax.fori_loop(0, k, lambda i, c: _rotated(c, i, rotations[i, 0], rotations[i, 1]), column)
        pair = lax.dynamic_slice_in_dim(column, k, 2)
        cosine, sine = _rotation(pair[0], pair[1])
        rotations = lax.dynamic_update_index_in_dim(rotations, lax.concatenate([cosine[None], sine[None]], 0), k, 0)
        upper = lax.dynamic_update_index_in_dim(upper, _rotated(column, k, cosine, sine), k, 1)
        rhs = _rotated(rhs, k, cosine, sine)
        error = lax.abs(lax.dynamic_index_in_dim(rhs, k + 1, 0, keepdims=False))
        return k + 1, v, upper, rhs, rotations, error

    k, v, upper, rhs, _, _ = lax.while_loop(unfinished, step, (np.int32(0), v, upper, rhs, rotations, size))
    rhs = _ufuncs.where(lax.iota(np.int32, restart) < k, rhs[:-1], lax.full((), 0, dtype))
    y = _lax_linalg.triangular_solve(upper[:-1], rhs, left_side=True)
    return _columns(tree.map(lambda x: x[..., :-1], v), y)


_CYCLES = {"batched": _cycle_batched, "incremental": _cycle_incremental}


def _gmres(a: Operator, b: Any, x: Any, enough: Array, most: Any, m: Operator, *, restart: int, cycle: Any) -> Any:
    # residuals are those of the preconditioned system, and so is what is small enough
    size_of_b, after = lax.sqrt(_square(b)), lax.sqrt(_square(m(b)))
    safe = _ufuncs.where(size_of_b == 0, lax.full_like(size_of_b, 1), size_of_b)
    enough_after = after * _ufuncs.minimum(lax.full_like(safe, 1), enough / safe)

    def residual(x):
        r = m(_minus(b, a(x)))
        return r, lax.sqrt(_square(r))

    def unfinished(state):
        k, _, _, size = state
        return (k < most) & _to_do(k, size, enough_after)

    def step(state):
        k, x, r, size = state
        x = tree.map(operator.add, x, cycle(a, m, r, size, enough_after, restart))
        return k + 1, x, *residual(x)

    return lax.while_loop(unfinished, step, (np.int32(0), x, *residual(x)))[1]


# The public functions.


def cg(A: Any, b: Any, x0: Any = None, *, tol: Any = 1e-5, atol: Any = 0.0, maxiter: Any = None,
       M: Any = None) -> tuple[Any, None]:  # fmt: skip
    """The solution of A x = b with a Hermitian positive definite A, by conjugate gradients.

    Args:
      A: a square matrix, something with a product ``A @ x``, or a linear function on trees like `b`.
      b: a tree of arrays of any shapes, which together are one vector.
      x0: where to start, a tree like `b`; None for zeros.
      tol: the residual may be as large as ``tol * norm(b)``
      atol: or this, whichever is larger.
      maxiter: the largest number of steps; None for ten times the number of elements.
      M: an approximate inverse of `A`, given as `A` is.

    Returns:
      The solution, a tree like `b` of one floating dtype, and None. Derivatives are those of the exact solution.

    Raises:
      ValueError: the matrix is not square, or `x0` is not like `b`.
      TypeError: `A` is no operator.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.sparse.linalg
    >>> x, _ = ferrax.scipy.sparse.linalg.cg(lambda x: 2 * x, jnp.array([2., 4.]))
    >>> x
    Array([1., 2.], dtype=float32)
    """
    return _solved(_cg, A, b, x0, tol, atol, maxiter, M, hermitian=True), None


def bicgstab(A: Any, b: Any, x0: Any = None, *, tol: Any = 1e-5, atol: Any = 0.0, maxiter: Any = None,
             M: Any = None) -> tuple[Any, None]:  # fmt: skip
    """The solution of A x = b with any A, by the stabilized method of biconjugate gradients.

    Args, Returns, Raises: as in `cg`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.sparse.linalg
    >>> x, _ = ferrax.scipy.sparse.linalg.bicgstab(lambda x: 2 * x, jnp.array([2., 4.]))
    >>> x
    Array([1., 2.], dtype=float32)
    """
    return _solved(_bicgstab, A, b, x0, tol, atol, maxiter, M, hermitian=False), None


def gmres(A: Any, b: Any, x0: Any = None, *, tol: Any = 1e-5, atol: Any = 0.0, restart: int = 20, maxiter: Any = None,
          M: Any = None, solve_method: str = "batched") -> tuple[Any, Array]:  # fmt: skip
    """The solution of A x = b with any A, by generalized minimal residuals.

    Args:
      A, b, x0, tol, atol: as in `cg`.
      restart: static; the number of vectors that are kept, after which the method starts again.
      maxiter: the largest number of such cycles; None for ten times the number of elements.
      M: an approximate inverse of `A`, given as `A` is; residuals are those of the system times `M`.
      solve_method: "batched" for whole cycles; "incremental" to stop in a cycle as soon as the residual is small.

    Returns:
      The solution, a tree like `b` of one floating dtype; and 0, or -1 where it is NaN.

    Raises:
      ValueError: the matrix is not square, `x0` is not like `b`, or there is no such method.
      TypeError: `A` is no operator.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.sparse.linalg
    >>> x, info = ferrax.scipy.sparse.linalg.gmres(lambda x: 2 * x, jnp.array([2., 4.]))
    >>> jnp.round(x, 3), int(info)
    (Array([1., 2.], dtype=float32), 0)
    """
    if solve_method not in _CYCLES:
        raise ValueError(f"invalid solve_method {solve_method}, must be either 'incremental' or 'batched'")
    size = sum(int(np.size(x)) for x in tree.leaves(b))
    method = partial(_gmres, restart=min(operator.index(restart), size), cycle=_CYCLES[solve_method])
    x = _solved(method, A, b, x0, tol, atol, maxiter, M, hermitian=False)
    lost = [_reductions.any(_ufuncs.isnan(leaf)) for leaf in tree.leaves(x)]
    failed = functools.reduce(operator.or_, lost, asarray(False))
    return x, _ufuncs.where(failed, asarray(-1), asarray(0))


_expose(globals())
