"""Operations of StableHLO as JAX's lowerings build them: each computes with `ferrax.lax` what it stands for.

`hlo.add(x, y)` and `hlo.AddOp(x, y).result` give values (`_values.py`). There are operations on elements, and those
that change shapes; any other name says what to give instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ferrax import lax
from ferrax._src.lib.mlir._none import nothing_in
from ferrax._src.lib.mlir._values import OpView, RankedTensorType, Value
from ferrax.numpy import asarray

#: Operations whose operands are those of a function of `ferrax.lax`: the function's name here, the operation's class,
#: and the function's name there.
_SAME = """
abs Abs abs, add Add add, and_ And bitwise_and, atan2 Atan2 atan2, cbrt Cbrt cbrt, ceil Ceil ceil, clamp Clamp clamp,
complex Complex complex, concatenate Concatenate concatenate, cosine Cosine cos, count_leading_zeros Clz clz,
divide Div div, dynamic_slice DynamicSlice dynamic_slice, dynamic_update_slice DynamicUpdateSlice dynamic_update_slice,
exponential Exp exp, exponential_minus_one Expm1 expm1, floor Floor floor, imag Imag imag, is_finite IsFinite is_finite,
log Log log, log_plus_one Log1p log1p, logistic Logistic logistic, maximum Max max, minimum Min min, multiply Mul mul,
negate Neg neg, not_ Not bitwise_not, or_ Or bitwise_or, popcnt PopulationCount population_count, power Pow pow,
real Real real, reduce_precision ReducePrecision reduce_precision, remainder Rem rem, reverse Reverse rev,
rsqrt Rsqrt rsqrt, select Select select, shift_left ShiftLeft shift_left,
shift_right_arithmetic ShiftRightArithmetic shift_right_arithmetic,
shift_right_logical ShiftRightLogical shift_right_logical, sign Sign sign, sine Sine sin, slice Slice slice,
sqrt Sqrt sqrt, subtract Subtract sub, tan Tan tan, tanh Tanh tanh, transpose Transpose transpose, xor Xor bitwise_xor
"""


def _compare(x: Any, y: Any, comparison_direction: str, compare_type: Any = None) -> Any:
    return getattr(lax, str(comparison_direction).lower())(x, y)


def _convert(result: RankedTensorType, x: Any) -> Any:
    return lax.convert_element_type(x, result.element_type.dtype)


def _bitcast_convert(result: RankedTensorType, x: Any) -> Any:
    return lax.bitcast_convert_type(x, result.element_type.dtype)


def _reshape(result: RankedTensorType, x: Any) -> Any:
    return lax.reshape(x, result.shape)


def _broadcast_in_dim(result: RankedTensorType, x: Any, broadcast_dimensions: Any) -> Any:
    return lax.broadcast_in_dim(x, result.shape, broadcast_dimensions)


def _iota(output: RankedTensorType, iota_dimension: int) -> Any:
    return lax.broadcasted_iota(output.element_type.dtype, output.shape, iota_dimension)


def _pad(x: Any, value: Any, low: Any, high: Any, interior: Any) -> Any:
    return lax.pad(x, value, list(zip(low, high, interior, strict=True)))


def _rounded(method: lax.RoundingMethod) -> Callable[[Any], Any]:
    return lambda x: lax.round(x, method)


_OPERATIONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "bitcast_convert": ("BitcastConvert", _bitcast_convert),
    "broadcast": ("Broadcast", lax.broadcast),
    "broadcast_in_dim": ("BroadcastInDim", _broadcast_in_dim),
    "compare": ("Compare", _compare),
    "constant": ("Constant", asarray),
    "convert": ("Convert", _convert),
    "iota": ("Iota", _iota),
    "pad": ("Pad", _pad),
    "reshape": ("Reshape", _reshape),
    "round_nearest_afz": ("Round", _rounded(lax.RoundingMethod.AWAY_FROM_ZERO)),
    "round_nearest_even": ("RoundNearestEven", _rounded(lax.RoundingMethod.TO_NEAREST_EVEN)),
}
for _row in _SAME.replace("\n", " ").split(","):
    _function, _class, _name = _row.split()
    _OPERATIONS[_function] = (_class, getattr(lax, _name))


def _built_by(operation: type[OpView]) -> Callable[..., Value]:
    def build(*operands: Any, **settings: Any) -> Value:
        return operation(*operands, **settings).result

    return build


for _function, (_class, _compute) in _OPERATIONS.items():
    _operation = type(f"{_class}Op", (OpView,), {"compute": staticmethod(_compute), "__module__": __name__})
    globals()[f"{_class}Op"] = _operation
    globals()[_function] = _built_by(_operation)


class ComparisonDirectionAttr:
    """How two values are compared."""

    @staticmethod
    def get(direction: str) -> str:
        """The direction of a name, one of EQ, NE, GE, GT, LE and LT."""
        return direction


class ComparisonTypeAttr:
    """The kind of number that is compared, which the operands' type says here."""

    @staticmethod
    def get(kind: str) -> str:
        """The kind of a name."""
        return kind


__getattr__ = nothing_in(__name__)
