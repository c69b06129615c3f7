"""Parameters of equations as Python's values: dtypes, dimension numbers and modes as objects, and what text leaves out.

The core prints an operation's parameters, and leaves out those that say nothing. Programs that read Jaxprs look for
them by JAX's names, whatever they say. Read next: `_evaluate.py`, which parses the texts.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ferrax import _ferrax
from ferrax._precisions import DotAlgorithmPreset

__all__ = ["completed", "own"]

_DTYPES = ("new_dtype", "dtype", "index_dtype", "input_dtype", "preferred_element_type")
_OBJECTS = ("dimension_numbers", "mode", "precision")

_UNARY = "cbrt cos exp exp2 expm1 log log1p logistic rsqrt sin sqrt tan tanh"

#: Operations whose parameters are programs and rules, with what makes JAX's of them in `_rule_parameters.py`.
_WITH_PROGRAMS = {
    "custom_jvp_call": "of_custom_jvp",
    "custom_linear_solve": "of_linear_solve",
    "custom_vjp_call": "of_custom_vjp",
}

#: Parameters that are not printed where they are these.
_SILENT: dict[str, dict[str, Any]] = {
    **{name: {"accuracy": None} for name in _UNARY.split()},
    "broadcast_in_dim": {"broadcast_dimensions": (), "sharding": None},
    "convert_element_type": {"sharding": None},
    "dot_general": {"precision": None, "preferred_element_type": None, "out_sharding": None},
    "eigh": {"algorithm": None, "subset_by_index": None},
    "mul": {"out_dtype": None},
    "qr": {"use_magma": None},
    "svd": {"algorithm": None, "subset_by_index": None},
}


def _dtype(name: str) -> Any:
    """The dtype of this name; the name itself where there is none."""
    from ferrax import dtypes

    scalar = getattr(dtypes, name, None)
    return name if scalar is None and name not in np.sctypeDict else np.dtype(scalar or name)


def _value(name: str, key: str, value: Any) -> Any:
    if key in _DTYPES and isinstance(value, str):
        return _dtype(value)
    if key in _OBJECTS and isinstance(value, str):
        from ferrax._evaluate import _parsed

        return DotAlgorithmPreset.__members__.get(value) or _parsed(value)
    if key == "fft_type":
        from ferrax import lax

        return lax.FftType(int(value))
    if name == "dot_general" and key == "dimension_numbers":
        return tuple(tuple(map(tuple, pair)) for pair in value)
    return value


def _unconstrained(sharding: Any) -> frozenset[int]:
    """The axes of an array that a constraint leaves to the compiler."""
    from ferrax.sharding import PartitionSpec

    spec = getattr(sharding, "spec", ())
    return frozenset(i for i, entry in enumerate(spec) if entry is PartitionSpec.UNCONSTRAINED)


def _of_call(params: dict[str, Any]) -> dict[str, Any]:
    """What JAX says of a jitted function inside of a program: here the program itself says where its values go, and
    nothing is donated to it."""
    from ferrax.sharding._context import concrete_mesh, empty_mesh
    from ferrax.sharding._jit import UNSPECIFIED

    taken, given = len(params["jaxpr"].in_avals), len(params["jaxpr"].out_avals)
    return {
        "jaxpr": params["jaxpr"],
        "in_shardings": (UNSPECIFIED,) * taken,
        "out_shardings": (UNSPECIFIED,) * given,
        "in_layouts": (None,) * taken,
        "out_layouts": (None,) * given,
        "donated_invars": (False,) * taken,
        "ctx_mesh": concrete_mesh() or empty_mesh,
        "name": params["name"],
        "keep_unused": False,
        "inline": params.get("inline", False),
        "compiler_options_kvs": (),
    }


def _avals(text: str) -> tuple[Any, ...]:
    """The types that a text spells, each of them `ShapedArray(float32[2,3])`."""
    from ferrax.core import ShapedArray

    spelled = re.findall(r"(\w+)\[([^\]]*)\]", text)
    return tuple(ShapedArray([int(n) for n in shape.split(",") if n], _dtype(dtype)) for dtype, shape in spelled)


def own(params: dict[str, Any]) -> dict[str, Any]:
    """The core's parameters of an operation, of those that `completed` gave.

    Args:
      params: all parameters of an equation.

    Returns:
      A dictionary in which the core's values stand for JAX's rules and programs.

    >>> import ferrax
    >>> (equation,) = ferrax.make_jaxpr(ferrax.nn.relu)(1.0).eqns
    >>> sorted(equation.params), sorted(own(equation.params))
    (['call_jaxpr', 'jvp_jaxpr_fun', 'num_consts', 'symbolic_zeros'], ['call_jaxpr', 'jvp', 'name', 'symbolic_zeros'])
    """
    rule = params.get("jvp_jaxpr_fun", params.get("fwd_jaxpr_thunk"))
    if rule is not None:
        return {**{key: params[key] for key in ("call_jaxpr", "symbolic_zeros")}, **rule.core}
    if "jaxprs" in params:
        return {"const_lengths": tuple(params["const_lengths"]), **params["jaxprs"]._asdict()}
    if "prevent_cse" in params and isinstance(params["jaxpr"], _ferrax.Jaxpr):
        return {**params, "jaxpr": _ferrax.ClosedJaxpr(params["jaxpr"], ())}
    return params


def completed(name: str, params: dict[str, Any]) -> dict[str, Any]:
    """All parameters of an operation of the core.

    Args:
      name: the operation's.
      params: those that it prints, texts where they are no programs, numbers or tuples of these.

    Returns:
      A dictionary with JAX's values.

    >>> completed("dot_general", {"dimension_numbers": (([1], [0]), ([], [])), "preferred_element_type": "float32"})
    {'precision': None, 'preferred_element_type': dtype('float32'), 'out_sharding': None, \
'dimension_numbers': (((1,), (0,)), ((), ()))}
    """
    if name == "sharding_constraint":
        return {**params, "layout": None, "unconstrained_dims": _unconstrained(params["sharding"])}
    if name == "jit":
        return _of_call(params)
    if name in _WITH_PROGRAMS:
        from ferrax import _rule_parameters

        return getattr(_rule_parameters, _WITH_PROGRAMS[name])(params)
    if name == "remat2" and not params["jaxpr"].consts:
        return {**params, "jaxpr": params["jaxpr"].jaxpr}
    if name in ("pure_callback", "io_callback"):
        return {**params, "result_avals": _avals(str(params["result_avals"]))}
    return {**_SILENT.get(name, {}), **{key: _value(name, key, value) for key, value in params.items()}}
