"""Programs computed again."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "remat_transform",
    "what is computed again is decided by ferrax.checkpoint",
)
