"""What libraries on top of ferrax use of its insides, under JAX's names: `core` and `random`."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._lazy import defer as _defer

if _TYPE_CHECKING:
    from ferrax.extend import core as core
    from ferrax.extend import random as random

_SUBMODULES = "core random"

_defer(globals(), {}, _SUBMODULES)
