"""Draws by blocks that divide differently."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "NotDivisible blocked_fold_in sample_block",
    "ferrax draws arrays whole",
)
