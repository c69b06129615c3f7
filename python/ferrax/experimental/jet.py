"""Taylor-mode differentiation: derivatives of any order along a curve in one pass, without nesting `jvp`.

A function is traced, and its program is run on truncated Taylor series. Read next: `_jet_rules.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ferrax import lax, numpy as jnp, tree_util
from ferrax._boundary import expose as _expose
from ferrax._core import typeof
from ferrax._evaluate import traced
from ferrax.experimental._jet_rules import Jet, run
from ferrax.experimental._series import factorial

__all__ = ["fact", "jet", "zero_series"]


class _ZeroSeries:
    """Stands for a series of zeros."""

    def __repr__(self) -> str:
        return "zero_series"


#: The series of an argument that does not move.
zero_series = _ZeroSeries()


def fact(n: Any) -> Any:
    """n! as a float.

    Args:
      n: array of numbers that are not negative.

    Returns:
      Array of a float dtype.

    >>> from ferrax.experimental.jet import fact
    >>> print(fact(4).round(3))
    24.0
    """
    return lax.exp(lax.lgamma(jnp.asarray(n) + 1.0))


def jet(
    fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Any], factorial_scaled: bool = True, **_: Any
) -> tuple[Any, Any]:
    """The Taylor series of a function along a curve, from the curve's Taylor series.

    Args:
      fun: function of arrays that gives a pytree of arrays.
      primals: its arguments: where the curve is at first.
      series: for each argument a sequence of arrays like it: the curve's derivatives, from the first on, all sequences
        of one length; or `zero_series`.
      factorial_scaled: whether series are derivatives; otherwise coefficients, which are the k-th derivatives over k!.

    Returns:
      `(values, series)`: the function's value, and for each leaf of it the list of derivatives.

    Raises:
      ValueError: the sequences have several lengths, or an argument is not an array.
      NotImplementedError: the function uses an operation that has no derivative.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.jet import jet
    >>> value, (first, second) = jet(jnp.exp, (0.0,), ((1.0, 0.0),))
    >>> print(value, first, second)
    1.0 1.0 1.0
    """
    lengths = {len(terms) for terms in series if terms is not zero_series}
    if len(lengths) > 1:
        raise ValueError("jet terms have inconsistent lengths for different arguments")
    if len(primals) != len(series):
        raise ValueError(f"jet got {len(primals)} primals and {len(series)} series")
    order = lengths.pop() if lengths else 0
    series = [[0.0] * order if terms is zero_series else terms for terms in series]
    leaf = tree_util.tree_structure(0)
    for i, (x, terms) in enumerate(zip(primals, series, strict=True)):
        if tree_util.tree_structure(x) != leaf:
            raise ValueError(f"primal value at position {i} is not an array")
        for j, term in enumerate(terms):
            if tree_util.tree_structure(term) != leaf:
                raise ValueError(f"term {j} for argument {i} is not an array")
    scales = [factorial(k) if factorial_scaled else 1.0 for k in range(1, order + 1)]
    values = [jnp.asarray(x) for x in primals]
    jets = [Jet([x, *(_scaled(t, x, 1 / s) for t, s in zip(ts, scales, strict=True))]) for x, ts in zip(values, series)]
    trees: list[Any] = []

    def flat(*args: Any) -> list[Any]:
        leaves, tree = tree_util.tree_flatten(fun(*args))
        trees.append(tree)
        return [jnp.asarray(x) for x in leaves]

    program = traced(flat, [typeof(x) for x in values], "jet")
    outs = run(program, [*program.captured, *jets], order)
    firsts = [v.terms[0] if isinstance(v, Jet) else v for v in outs]
    rest = [
        [t if s == 1.0 else t * s for t, s in zip(v.terms[1:], scales, strict=True)]
        if isinstance(v, Jet)
        else [_zero(v) for _ in scales]
        for v in outs
    ]
    return trees[-1].unflatten(firsts), trees[-1].unflatten(rest)


def _scaled(term: Any, like: Any, by: float) -> Any:
    """A term of an argument's series as a coefficient, in the argument's shape and dtype."""
    term = jnp.zeros_like(like) if isinstance(term, float) and term == 0.0 else jnp.asarray(term)
    if term.shape != like.shape:
        raise ValueError(f"jet terms must have their argument's shape {like.shape}, got {term.shape}")
    term = term.astype(like.dtype) if term.dtype != like.dtype else term
    return term if by == 1.0 else term * by


def _zero(x: Any) -> Any:
    """The slope of a result that has none."""
    return jnp.zeros(x.shape, x.dtype if jnp.issubdtype(x.dtype, jnp.inexact) else jnp.result_type(float))


_expose(globals())
