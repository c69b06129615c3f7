"""References, under JAX's path."""

from ferrax._src._public import with_submodules
from ferrax._src._unprovided import unprovided_names
from ferrax._src.state.types import (
    AbstractRef as AbstractRef,
    AccumEffect as AccumEffect,
    ReadEffect as ReadEffect,
    RefEffect as RefEffect,
    TransformedRef as TransformedRef,
    WriteEffect as WriteEffect,
    shaped_array_ref as shaped_array_ref,
)

__getattr__ = with_submodules(
    __name__,
    unprovided_names(
        __name__,
        "StateEffect Transform transform_type",
        "effects and transforms have no common class here",
    ),
)
