"""Python's numbers with a dtype: what a number of a program is, where a library wants to say of which dtype."""

from typing import Any

import numpy as np

from ferrax._src._unprovided import unprovided_names
from ferrax._src.lax.lax import _convert_element_type
from ferrax.core import ShapedArray

__getattr__ = unprovided_names(
    __name__,
    "LiteralArray TypedNdArray",
    "constants of ferrax's programs are NumPy's arrays and Python's numbers",
)


class _Typed:
    """A number that meets arrays as Python's do, which leave it their dtype; alone it has its own."""

    dtype: np.dtype
    _kind: type

    def __new__(cls, value: Any, dtype: Any) -> Any:
        self = super().__new__(cls, value)  # type: ignore[call-arg]
        self.dtype = np.dtype(dtype)
        return self

    @property
    def aval(self) -> ShapedArray:
        """Its type: a scalar of its dtype, weak."""
        return ShapedArray((), self.dtype, weak_type=True)

    def __jax_array__(self) -> Any:
        return _convert_element_type(self._kind(self), self.dtype, weak_type=True)  # type: ignore[call-arg]

    def __getnewargs__(self) -> Any:
        return self._kind(self), self.dtype  # type: ignore[call-arg]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._kind(self)}, dtype={self.dtype.name})"  # type: ignore[call-arg]


class TypedInt(_Typed, int):
    """An integer of a dtype.

    Args:
      value: the number.
      dtype: its dtype as an array.

    >>> import ferrax.numpy as jnp
    >>> jnp.asarray(TypedInt(5, "int8"))
    Array(5, dtype=int8, weak_type=True)
    """

    _kind = int


class TypedFloat(_Typed, float):
    """A real number of a dtype.

    Args:
      value: the number.
      dtype: its dtype as an array.

    >>> TypedFloat(0.5, "float32").aval
    ShapedArray(float32[], weak_type=True)
    """

    _kind = float
    __str__ = float.__repr__


class TypedComplex(_Typed, complex):
    """A complex number of a dtype.

    Args:
      value: the number.
      dtype: its dtype as an array.

    >>> TypedComplex(1j, "complex64") + 1
    (1+1j)
    """

    _kind = complex


typed_scalar_types: set[type] = {TypedInt, TypedFloat, TypedComplex}
