"""Experimental functions of JAX's: `io_callback`, and modules for meshes, `shard_map` and many processes."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._callbacks import io_callback as io_callback
from ferrax._lazy import defer as _defer

if _TYPE_CHECKING:
    from ferrax.experimental import mesh_utils as mesh_utils
    from ferrax.experimental import multihost_utils as multihost_utils
    from ferrax.experimental import pjit as pjit
    from ferrax.experimental import shard_map as shard_map


_SUBMODULES = """
mesh_utils
multihost_utils
pjit
shard_map
"""

_defer(globals(), {}, _SUBMODULES)
