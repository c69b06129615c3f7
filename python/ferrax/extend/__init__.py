"""What libraries on top of ferrax use of its insides, under JAX's names: programs, primitives, wrapped functions."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._lazy import defer as _defer

if _TYPE_CHECKING:
    from ferrax.extend import backend as backend
    from ferrax.extend import core as core
    from ferrax.extend import linear_util as linear_util
    from ferrax.extend import lowering as lowering
    from ferrax.extend import random as random
    from ferrax.extend import sharding as sharding
    from ferrax.extend import source_info_util as source_info_util
    from ferrax.extend import xla as xla

_SUBMODULES = "backend core linear_util lowering random sharding source_info_util xla"

_defer(globals(), {}, _SUBMODULES)
