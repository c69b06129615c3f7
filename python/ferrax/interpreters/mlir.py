"""Lowerings of primitives that users define: functions that can be traced.

ferrax has no MLIR: a lowering is a function of arrays (`lower_fun`), traced into the program that is compiled. For a
rule that builds MLIR, operations of StableHLO on elements and shapes are traced (`ferrax/_src/lib/mlir`); where it
builds others, the primitive's implementation (`def_impl`) runs, called back from the program. Read next:
`ferrax/_primitives.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ferrax._boundary import expose as _expose
from ferrax._lazy import lend as _lend
from ferrax._primitives import Lowering, Primitive, primitive_lowerings
from ferrax._src._unprovided import unprovided_names as _unprovided_names
from ferrax.extend.lowering import LoweringRuleContext

__all__ = [
    "LoweringRuleContext",
    "aval_to_ir_type",
    "dense_int_array",
    "dtype_to_ir_type",
    "i32_attr",
    "i64_attr",
    "ir_constant",
    "lower_fun",
    "register_lowering",
]


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Callable[..., Any]:
    """A lowering given by a function of arrays.

    Args:
      fun: function of the operands and the parameters.
      multiple_results: whether it returns a sequence of results.

    Returns:
      A rule for `register_lowering`.

    >>> import ferrax as jax
    >>> rule = jax.interpreters.mlir.lower_fun(lambda x: 2 * x, multiple_results=False)
    >>> callable(rule)
    True
    """
    return Lowering(fun, multiple_results)


def ir_constant(val: Any) -> Any:
    """The value of a constant, for a lowering that builds operations.

    Args:
      val: an array or a number.

    Returns:
      A value.

    >>> import ferrax as jax, numpy as np
    >>> print(jax.interpreters.mlir.ir_constant(np.float32(2)).type)
    tensor<f32>
    """
    from ferrax._src.lib.mlir._values import OpResult
    from ferrax.numpy import asarray

    return OpResult(asarray(val))


def dtype_to_ir_type(dtype: Any) -> Any:
    """The type of an array's elements, for a lowering that builds operations.

    Args:
      dtype: the dtype.

    Returns:
      A type.

    >>> import ferrax as jax
    >>> print(jax.interpreters.mlir.dtype_to_ir_type("int32"))
    i32
    """
    from ferrax._src.lib.mlir._values import ElementType

    return ElementType(dtype)


def aval_to_ir_type(ctx: Any, aval: Any) -> Any:
    """The type of an array, for a lowering that builds operations.

    Args:
      ctx: not read.
      aval: the array's abstract value.

    Returns:
      A type.

    >>> import ferrax as jax
    >>> print(jax.interpreters.mlir.aval_to_ir_type(None, jax.core.ShapedArray((2, 3), "float32")))
    tensor<2x3xf32>
    """
    from ferrax._src.lib.mlir._values import ElementType, RankedTensorType

    return RankedTensorType.get(aval.shape, ElementType(aval.dtype))


def dense_int_array(xs: Sequence[int]) -> list[int]:
    """Integers as an operation's constructor takes them.

    Args:
      xs: the integers.

    Returns:
      A list.

    >>> import ferrax as jax
    >>> jax.interpreters.mlir.dense_int_array((0, 1))
    [0, 1]
    """
    return [int(x) for x in xs]


def i32_attr(i: int) -> int:
    """An integer as an operation's constructor takes it.

    Args:
      i: the integer.

    Returns:
      The integer.

    >>> import ferrax as jax
    >>> jax.interpreters.mlir.i32_attr(3)
    3
    """
    return int(i)


def i64_attr(i: int) -> int:
    """An integer as an operation's constructor takes it.

    Args:
      i: the integer.

    Returns:
      The integer.

    >>> import ferrax as jax
    >>> jax.interpreters.mlir.i64_attr(3)
    3
    """
    return int(i)


_PLATFORMS = ("cpu", "cuda", "gpu", "interpreter", "oneapi", "rocm", "tpu")


def register_lowering(
    prim: Primitive,
    rule: Callable[..., Any],
    platform: str | None = None,
    inline: bool = True,
    cacheable: bool = True,
) -> None:
    """Sets how a primitive is compiled.

    Args:
      prim: the primitive.
      rule: what `lower_fun` gives, or a function of a context and values that builds operations of StableHLO; where
        there are no such operations, the primitive's implementation is called from the program.
      platform: the platform that the rule is for; None for all.
      inline: accepted for compatibility.
      cacheable: accepted for compatibility.

    Raises:
      NotImplementedError: there is no such platform.

    >>> import ferrax as jax
    >>> twice_p = jax.extend.core.Primitive("twice")
    >>> _ = twice_p.def_abstract_eval(lambda x: x)
    >>> rule = jax.interpreters.mlir.lower_fun(lambda x: 2 * x, multiple_results=False)
    >>> jax.interpreters.mlir.register_lowering(twice_p, rule)
    >>> print(jax.jit(twice_p.bind)(3.0))
    6.0
    """
    if platform is not None and platform not in _PLATFORMS:
        raise NotImplementedError(
            f"Registering an MLIR lowering rule for primitive {prim} for an unknown platform {platform}. Known "
            f"platforms are: {', '.join(_PLATFORMS)}."
        )
    primitive_lowerings.setdefault(prim, {})[platform] = rule


# what JAX's module has besides
__getattr__ = _unprovided_names(
    __name__,
    "AxisContext DEVICE_TO_DEVICE_TYPE LoweringParameters LoweringResult ModuleContext RECV_FROM_HOST_TYPE "
    "SEND_TO_HOST_TYPE ShapePolyLoweringState SPMDAxisContext ShardingContext Token TokenSet aval_to_ir_types "
    "core_call_lowering dense_int_elements emit_python_callback flatten_ir_types flatten_ir_values ir_attribute "
    "ir_constants ir_tree_registry ir_type_handlers jaxpr_subcomp lower_jaxpr_to_fun lower_jaxpr_to_module "
    "lowerable_effects make_ir_context merge_mlir_modules module_to_bytecode module_to_string "
    "register_constant_handler shape_tensor token_type unflatten_ir_values_like_types",
    "ferrax lowers programs to no MLIR",
    _lend(__name__, {"ferrax._src.lib.mlir": "ir", "ferrax._src.lib.mlir.ir": "Value", "ferrax.sharding": "Mesh"}),
)
_expose(globals())
