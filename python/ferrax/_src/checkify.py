"""Checks in traced functions."""

from typing import Any

from ferrax.experimental import checkify as _checkify


def __getattr__(name: str) -> Any:
    return getattr(_checkify, name)
