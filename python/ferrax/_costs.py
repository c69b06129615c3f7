"""Estimates of what a program costs: operations and bytes, counted equation by equation as if nothing were fused.

`Lowered.cost_analysis` and `Compiled.cost_analysis` give them. Read next: `_stages.py`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

#: Operations of one real operand that are no functions like `exp`; those are all others.
_SIMPLE = frozenset(
    [
        "abs",
        "add_any",
        "ceil",
        "cholesky",
        "conj",
        "copy",
        "fft",
        "floor",
        "imag",
        "integer_pow",
        "is_finite",
        "neg",
        "optimization_barrier",
        "real",
        "reduce_precision",
        "round",
        "sign",
        "sqrt",
        "square",
    ]
)
_MOVING = frozenset(
    [
        "bitcast_convert_type",
        "broadcast_in_dim",
        "concatenate",
        "convert_element_type",
        "copy",
        "copy_p",
        "dynamic_slice",
        "dynamic_update_slice",
        "expand_dims",
        "gather",
        "iota",
        "pad",
        "reshape",
        "rev",
        "select_n",
        "slice",
        "sort",
        "split",
        "squeeze",
        "stop_gradient",
        "tile",
        "transpose",
    ]
)


def costs(program: Any) -> dict[str, float]:
    """What a program costs.

    Args:
      program: a closed program.

    Returns:
      `flops`: additions, multiplications and other simple operations; a loop whose length is not known counts once,
      of branches the dearest counts. `transcendentals`: values of functions like `exp`. `bytes accessed`: sizes of the
      operands and results of all equations. What is zero is left out.
    """
    return {name: float(n) for name, n in _of(program.jaxpr).items() if n}


def _of(jaxpr: Any) -> Counter[str]:
    total: Counter[str] = Counter()
    for equation in jaxpr.eqns:
        total.update(_of_equation(equation))
    return total


def _size(x: Any) -> int:
    return math.prod(x.aval.shape)


def _of_equation(equation: Any) -> Counter[str]:
    name, params = equation.primitive.name, equation.params
    if name == "scan":
        inner = _of(_program(params["jaxpr"]))
        return Counter({k: n * int(params["length"]) for k, n in inner.items()})
    if name == "cond":
        return max((_of(_program(b)) for b in params["branches"]), key=lambda c: (c["flops"], c["bytes accessed"]))
    bodies = [_program(v) for v in params.values() if hasattr(v, "eqns") or hasattr(v, "jaxpr")]
    if bodies:
        return sum((_of(b) for b in bodies), Counter())
    out = Counter({"bytes accessed": sum(_bytes(x) for x in (*equation.invars, *equation.outvars))})
    results = sum(map(_size, equation.outvars))
    if _is_transcendental(name, equation):
        out["transcendentals"] = results
    elif name not in _MOVING:
        out["flops"] = _PRODUCTS[name](equation) if name in _PRODUCTS else _simple(name, equation, results)
    return out


def _is_transcendental(name: str, equation: Any) -> bool:
    if name in ("pow", "atan2"):
        return True
    if len(equation.invars) != 1 or name in _SIMPLE or name in _MOVING or name.startswith(("cum", "reduce_")):
        return False
    x, y = equation.invars[0].aval, equation.outvars[0].aval
    return x.shape == y.shape and all(getattr(a.dtype, "kind", "V") in "fcV" for a in (x, y))


def _program(value: Any) -> Any:
    return getattr(value, "jaxpr", value)


def _bytes(x: Any) -> int:
    return _size(x) * getattr(x.aval.dtype, "itemsize", 0)


def _simple(name: str, equation: Any, results: int) -> int:
    if name.startswith(("reduce_", "argm")) and name != "reduce_precision":
        return sum(map(_size, equation.invars)) - results
    return results


def _dot(equation: Any) -> int:
    (contracted, _), _ = equation.params["dimension_numbers"]
    return 2 * _size(equation.outvars[0]) * math.prod(equation.invars[0].aval.shape[i] for i in contracted)


def _convolution(equation: Any) -> int:
    kernel = equation.invars[1].aval.shape
    at = re.search(r"rhs_spec=\((\d+)", str(equation.params["dimension_numbers"]))
    features = kernel[int(at[1])] if at else 1
    return 2 * _size(equation.outvars[0]) * math.prod(kernel) // max(features, 1)


_PRODUCTS: dict[str, Callable[[Any], int]] = {"dot_general": _dot, "conv_general_dilated": _convolution}
