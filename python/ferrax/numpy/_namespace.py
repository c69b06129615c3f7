"""What the array API's standard asks of a namespace. Source: data-apis.org/array-api, "inspection"."""

from __future__ import annotations

from typing import Any

import numpy as np

from ferrax.config import config
from ferrax.numpy._dtype_functions import isdtype

__all__ = ["__array_namespace_info__"]

_SIGNED, _UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")
_OTHERS = ("bool", "float32", "float64", "complex64", "complex128")
_DOUBLES = {"int64", "uint64", "float64", "complex128"}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """What there is in `ferrax.numpy`: dtypes, devices and capabilities.

    Returns:
      An object with the standard's methods.

    >>> import ferrax.numpy as jnp
    >>> jnp.__array_namespace_info__().dtypes(kind="real floating")
    {'float32': dtype('float32')}
    """
    return ArrayNamespaceInfo()


class ArrayNamespaceInfo:
    """Dtypes, devices and capabilities, by the standard's methods."""

    def capabilities(self) -> dict[str, Any]:
        """What functions can do: shapes never depend on values, within transformations."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """None: arrays without a device are put where the computation wants them."""

    def devices(self) -> list[Any]:
        """The devices, after None for no device in particular."""
        import ferrax

        return [None, *ferrax.devices()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The dtypes of Python's numbers and of positions."""
        bits = 64 if config.x64_enabled else 32
        integer = np.dtype(f"int{bits}")
        return {
            "real floating": np.dtype(f"float{bits}"),
            "complex floating": np.dtype(f"complex{2 * bits}"),
            "integral": integer,
            "indexing": integer,
        }

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, np.dtype]:
        """The dtypes of a kind, or of any of some kinds, by name.

        Raises:
          KeyError: there is no such kind.
        """
        kinds = ("bool", "numeric") if kind is None else kind if isinstance(kind, tuple) else (kind,)
        wide = config.x64_enabled
        there = [np.dtype(n) for n in (*_OTHERS, *_SIGNED, *_UNSIGNED) if wide or n not in _DOUBLES]
        try:
            return {d.name: d for k in kinds for d in there if isdtype(d, k)}
        except ValueError as error:
            raise KeyError(kind) from error
