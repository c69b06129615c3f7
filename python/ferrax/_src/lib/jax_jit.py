"""What `jit` knows of an argument."""

import dataclasses
from typing import Any

import ferrax

_NUMBERS = (bool, int, float, complex)


@dataclasses.dataclass(frozen=True)
class ArgSignature:
    """The type of an argument, as programs are kept by it."""

    dtype: Any
    shape: tuple[int, ...]
    weak_type: bool


def _ArgSignatureOfValue(value: Any, jax_enable_x64: bool) -> ArgSignature:
    """The signature of an array or a number; Python's numbers, booleans too, are weakly typed."""
    with ferrax.enable_x64(jax_enable_x64):
        aval = ferrax.typeof(value)
    return ArgSignature(aval.dtype, aval.shape, aval.weak_type or type(value) in _NUMBERS)
