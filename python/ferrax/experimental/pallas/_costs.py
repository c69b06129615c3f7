"""How much work a function is, equation by equation: `estimate_cost`.

An estimate of the function as it is written: reductions, comparisons and moves count nothing, the steps of a `scan`
count each, those of a `while_loop` once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from ferrax import tree_util
from ferrax.experimental.pallas._specs import CostEstimate

__all__ = ["estimate_cost"]

#: Primitives that are one operation for each element of the result.
_PLAIN = {"add", "and", "ceil", "div", "floor", "max", "min", "mul", "neg", "not", "or", "round", "sub", "xor"}
#: Those that are a transcendental function of each element.
_TRANSCENDENTAL = {"acos", "asin", "atan", "cos", "cosh", "exp", "log", "logistic", "sin", "sinh", "sqrt"}
_TRANSCENDENTAL |= {"tan", "tanh"}


def _power(size: int, y: int) -> int:
    """Operations of a whole power by repeated squaring: a square for each bit but one, a product for each set bit."""
    return 0 if y in (0, 1) else size * (abs(y).bit_length() - 1 + abs(y).bit_count())


def _product(eqn: Any) -> int:
    """Multiplications and additions of a product of arrays."""
    (contracted, _), _ = eqn.params["dimension_numbers"]
    summed = math.prod(eqn.invars[0].aval.shape[axis] for axis in contracted)
    return 2 * summed * math.prod(eqn.outvars[0].aval.shape)


def _counted(jaxpr: Any) -> tuple[int, int]:
    """Operations and transcendental functions of a program."""
    flops = functions = 0
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        size = math.prod(eqn.outvars[0].aval.shape) if eqn.outvars else 0
        if name in _PLAIN:
            flops += size
        elif name in _TRANSCENDENTAL:
            functions += size
        elif name == "integer_pow":
            flops += _power(size, eqn.params["y"])
        elif name == "dot_general":
            flops += _product(eqn)
        else:
            times = eqn.params.get("length", 1) if name == "scan" else 1
            inner = [p for p in eqn.params.values() if hasattr(getattr(p, "jaxpr", p), "eqns")]
            for a, b in (_counted(getattr(p, "jaxpr", p)) for p in inner):
                flops, functions = flops + times * a, functions + times * b
    return flops, functions


def estimate_cost(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> CostEstimate:
    """How much work a function is, for `pallas_call(cost_estimate=)`.

    Args:
      fun: the function.
      *args: its arguments, or what has their shapes and dtypes.
      **kwargs: keyword arguments, which are not traced.

    Returns:
      A `CostEstimate`; its bytes are those of the arguments and results.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental import pallas as pl
    >>> x = jnp.ones((4, 8))
    >>> pl.estimate_cost(lambda x: jnp.exp(x @ x.T), x).flops
    256
    """
    from ferrax._api import make_jaxpr

    program = make_jaxpr(functools.partial(fun, **kwargs))(*args)
    flops, functions = _counted(program.jaxpr)
    avals = [*tree_util.tree_leaves(args), *program.out_avals]
    moved = sum(math.prod(a.shape) * a.dtype.itemsize for a in avals)
    return CostEstimate(flops=flops, transcendentals=functions, bytes_accessed=moved)
