"""Constants of programs that keep whether their type was said."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "LiteralArray TypedComplex TypedFloat TypedInt TypedNdArray",
    "constants of ferrax's programs are NumPy's arrays and Python's numbers",
)
