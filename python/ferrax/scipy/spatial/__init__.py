"""What `ferrax.scipy` has for points in space: `transform`. Read next: `transform.py`."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._lazy import defer as _defer

if _TYPE_CHECKING:
    from ferrax.scipy.spatial import transform as transform

_defer(globals(), {}, "transform")
