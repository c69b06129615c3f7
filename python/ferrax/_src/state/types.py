"""The type of references."""

from typing import Any

from ferrax._ref_programs import (
    AccumEffect as AccumEffect,
    ReadEffect as ReadEffect,
    RefEffect as RefEffect,
    WriteEffect as WriteEffect,
)
from ferrax._ref_views import (
    BitcastTransform as BitcastTransform,
    RefIndexer as RefIndexer,
    ReshapeTransform as ReshapeTransform,
    TransformedRef as TransformedRef,
    TransformedRefAvalError as TransformedRefAvalError,
    TransposeTransform as TransposeTransform,
)
from ferrax._src._unprovided import unprovided_names
from ferrax.core import ShapedArray
from ferrax.ref import AbstractRef as AbstractRef


def shaped_array_ref(shape: tuple[int, ...], dtype: Any, weak_type: bool = False) -> AbstractRef:
    """The type of a reference to an array of a shape and a dtype."""
    return AbstractRef(ShapedArray(shape, dtype, weak_type=weak_type))


__getattr__ = unprovided_names(
    __name__,
    "RefBitcaster RefReshaper StateEffect Transform get_ref_state_effects transform_type",
    "effects and transforms have no common class here",
)
