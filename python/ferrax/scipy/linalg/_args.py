"""What the functions of `ferrax.scipy.linalg` share: arguments made arrays, products, right-hand sides of systems.

Read next: `_factors.py`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from ferrax import lax
from ferrax._core import asarray
from ferrax.numpy import _functional, _products
from ferrax.numpy._args import Array, ArrayLike, broadcast_to_shape, common_shape, promote_inexact
from ferrax.numpy._dtype_functions import complex_dtype, dtype_kind

__all__ = ["adjoint", "conj", "dot", "inexact", "over_matrices", "real_dtype_as", "solve_shaped", "square",
           "to_complex"]  # fmt: skip

#: The product of matrices, in full precision on every backend.
dot = partial(_products.matmul, precision="highest")


def inexact(name: str, *args: ArrayLike) -> list[Any]:
    """The arguments, lists too, as arrays of their common dtype, made floating where it is integer or bool."""
    return promote_inexact(f"ferrax.scipy.linalg.{name}", *(asarray(a) for a in args))


def to_complex(x: Array) -> Array:
    """`x` in the complex dtype that holds its values."""
    return lax.convert_element_type(x, complex_dtype(x.dtype))


def real_dtype_as(x: Array, like: Array) -> Array:
    """`x` without its imaginary part where `like` is real."""
    return x if dtype_kind(like.dtype) == "c" or dtype_kind(x.dtype) != "c" else lax.real(x)


def conj(x: Array) -> Array:
    """The conjugate of `x`; `x` itself when it is real."""
    return lax.conj(x) if dtype_kind(x.dtype) == "c" else x


def adjoint(x: Array) -> Array:
    """The matrices transposed and conjugated."""
    return conj(lax.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)))


def square(name: str, argument: str, x: Array) -> Array:
    """`x`, or ValueError unless its last two axes are equal."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(
            f"Expected {argument} to be a (batched) square matrix, got {argument}.shape={x.shape} in "
            f"scipy.linalg.{name}."
        )
    return x


def over_matrices(function: Callable[..., Any], signature: str) -> Callable[..., Any]:
    """A function of single matrices, mapped over batch axes that broadcast."""
    return _functional.vectorize(function, signature=signature)


def solve_shaped(name: str, a: Array, b: Array, solve: Callable[[Array, Array], Array], *, warn: bool = True) -> Array:
    """`solve(a, b)` of matrices with equal batch axes, for a right-hand side of any shape that is allowed.

    Args:
      name: the public function.
      a: array of shape (..., n, n).
      b: array of shape (n,), or (..., n, k); or one vector for each matrix, with a warning.
      solve: takes `a` and a `b` of as many axes.
      warn: whether a batch of vectors is taken at all.
    """
    square(name, "the matrix", a)
    vector = b.ndim == 1
    if warn and not vector and a.ndim == b.ndim + 1 and a.shape[-1] == b.shape[-1]:
        warnings.warn(
            f"jax.scipy.linalg.{name}: batched 1D solves with b.ndim > 1 are deprecated: b of shape {b.shape}, one "
            "vector for each matrix here, will count as matrices. Pass b[..., None], and squeeze(-1) the result.",
            FutureWarning,
            stacklevel=3,
        )
        vector = True
    if b.ndim == 0 or b.shape[-1 if vector else -2] != a.shape[-1]:
        raise ValueError(f"scipy.linalg.{name}: shapes {a.shape} of the matrix and {b.shape} of b do not fit.")
    if vector:
        b = lax.expand_dims(b, (-1,))
    batch = common_shape(a.shape[:-2], b.shape[:-2])
    x = solve(broadcast_to_shape(a, batch + a.shape[-2:]), broadcast_to_shape(b, batch + b.shape[-2:]))
    return lax.squeeze(x, (x.ndim - 1,)) if vector else x
