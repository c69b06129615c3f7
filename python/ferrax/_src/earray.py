"""Arrays of types that users define."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "EArray",
    "arrays of extended dtypes are random keys, of ferrax._src.random.prng.PRNGKeyArray",
)
