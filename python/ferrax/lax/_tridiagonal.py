"""Systems with tridiagonal matrices that may be singular: factors with exchanged rows, whose small pivots are moved.

Read next: `linalg.py`, whose `tridiagonal_solve` calls it.
"""

from __future__ import annotations

from typing import Any

import ferrax.numpy as jnp
from ferrax._ferrax import Array
from ferrax.lax import custom_linear_solve, scan

__all__: list[str] = []


def _product(dl: Array, d: Array, du: Array, x: Array) -> Array:
    """The tridiagonal matrix times a matrix."""
    out = d[..., None] * x
    out = out.at[..., 1:, :].add(dl[..., 1:, None] * x[..., :-1, :])
    return out.at[..., :-1, :].add(du[..., :-1, None] * x[..., 1:, :])


def _eliminate(row: Any, below: Any) -> Any:
    """One step: the remaining row and the one below it give a row of the upper factor, and the next remaining row."""
    a, b, x = row
    c, d, e, y = below
    exchanged = jnp.abs(c) > jnp.abs(a)
    pivot, other = jnp.where(exchanged, c, a), jnp.where(exchanged, a, c)
    factor = jnp.where(pivot == 0, 0, other / jnp.where(pivot == 0, 1, pivot))
    zero = jnp.zeros_like(e)
    upper = pivot, jnp.where(exchanged, d, b), jnp.where(exchanged, e, zero)
    first, second = jnp.where(exchanged, b, d), jnp.where(exchanged, zero, e)
    swap = exchanged[..., None]
    kept, rest = jnp.where(swap, y, x), jnp.where(swap, x, y) - factor[..., None] * jnp.where(swap, y, x)
    return (first - factor * upper[1], second - factor * upper[2], rest), (*upper, kept)


def _substitute(after: Any, row: Any) -> Any:
    """One step from below: a row of the solution, by the two below it."""
    pivot, b, e, y = row
    x = (y - b[..., None] * after[0] - e[..., None] * after[1]) / pivot[..., None]
    return (x, after[0]), x


def _solve(dl: Array, d: Array, du: Array, b: Array) -> Array:
    """The solution where pivots below eps times the upper factor's largest element have that size."""
    dl, d, du = (jnp.moveaxis(x, -1, 0) for x in (dl, d, du))
    b = jnp.moveaxis(b, -2, 0)
    du = du.at[-1].set(0)
    last, rows = scan(_eliminate, (d[0], du[0], b[0]), (dl[1:], d[1:], du[1:], b[1:]))
    zero = jnp.zeros_like(d[:1])
    pivots, next_, second, right = (
        jnp.concatenate([x, y]) for x, y in zip(rows, (last[0][None], zero, zero, last[2][None]), strict=True)
    )
    largest = jnp.max(jnp.maximum(jnp.abs(pivots), jnp.maximum(jnp.abs(next_), jnp.abs(second))), axis=0)
    least = jnp.maximum(jnp.finfo(d.dtype).eps * largest, jnp.finfo(d.dtype).tiny)
    small = jnp.abs(pivots) < least
    pivots = jnp.where(small, jnp.where(jnp.real(pivots) < 0, -least, least).astype(d.dtype), pivots)
    none = jnp.zeros_like(b[0])
    _, x = scan(_substitute, (none, none), (pivots, next_, second, right), reverse=True)
    return jnp.moveaxis(x, 0, -2)


def solve_perturbed(dl: Array, d: Array, du: Array, b: Array) -> Array:
    """The solution of a tridiagonal system with perturbed pivots, linear in `b`; operands are those of the solver."""
    if b.size == 0:
        return b

    def transposed(_: Any, y: Array) -> Array:
        return _solve(jnp.roll(du, 1, -1), d, jnp.roll(dl, -1, -1), y)

    return custom_linear_solve(
        lambda x: _product(dl, d, du, x), b, lambda _, y: _solve(dl, d, du, y), transposed, symmetric=False
    )
