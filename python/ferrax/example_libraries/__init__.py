"""Small libraries that examples use: layers (`stax`) and optimizers (`optimizers`)."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._lazy import defer as _defer

if _TYPE_CHECKING:
    from ferrax.example_libraries import optimizers as optimizers
    from ferrax.example_libraries import stax as stax

_SUBMODULES = "optimizers stax"

_defer(globals(), {}, _SUBMODULES)
