"""References, under JAX's path."""

from ferrax._src._unprovided import unprovided_names
from ferrax._src.state.types import (
    AbstractRef as AbstractRef,
    TransformedRef as TransformedRef,
    shaped_array_ref as shaped_array_ref,
)

__getattr__ = unprovided_names(
    __name__,
    "AccumEffect ReadEffect RefEffect StateEffect Transform WriteEffect transform_type",
    "effects of references are not classes of programs here",
)
