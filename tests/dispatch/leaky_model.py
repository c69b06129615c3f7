"""A module whose functions leak into its own globals, as an imported model does (`test_leak_places.py`)."""

from typing import ClassVar

import ferrax

_last = None
_history = []


class Cache:
    values: ClassVar = {}


@ferrax.jit
def step(x):
    global _last
    _last = x + 1
    return x


@ferrax.jit
def remember(x):
    _history.append(x * 2)
    return x


@ferrax.jit
def fill(x):
    Cache.values["x"] = x * 2
    return x


def clear():
    global _last
    _last = None
    _history.clear()
    Cache.values.clear()
