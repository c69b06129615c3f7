"""Checks that the functions of ``ferrax.nn`` make on their array arguments."""

from __future__ import annotations

import ferrax.numpy as jnp
from ferrax.numpy._dtype_functions import inexact_dtype


def to_array(function: str, x, position: int = 0):
    """``x`` as an array, weak types kept; Python containers are refused, as everywhere in the array API."""
    if x is None or isinstance(x, (list, tuple, dict, set, str, bytes)):
        raise TypeError(f"{function} requires ndarray or scalar arguments, got {type(x)} at position {position}.")
    return jnp.asarray(x)


def to_inexact(function: str, x, position: int = 0):
    """``x`` as an array of a floating or complex dtype, integers and booleans becoming floats."""
    x = to_array(function, x, position)
    if jnp.issubdtype(x.dtype, jnp.inexact):
        return x
    return x.astype(inexact_dtype(x.dtype))
