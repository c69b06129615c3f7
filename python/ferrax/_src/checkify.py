"""Checks in traced functions."""

from typing import Any

from ferrax._src._unprovided import unprovided_names
from ferrax.experimental import checkify as _checkify


def _public(name: str) -> Any:
    return getattr(_checkify, name)


__getattr__ = unprovided_names(
    __name__,
    "BatchedError ErrorEffect check_p checkify_jaxpr default_checkify_rule error_checks init_error update_error",
    "checks become values in ferrax.experimental.checkify",
    _public,
)
