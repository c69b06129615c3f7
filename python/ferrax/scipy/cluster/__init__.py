"""What `ferrax.scipy` has of clusters: `vq`. Read next: `vq.py`."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._lazy import defer as _defer

if _TYPE_CHECKING:
    from ferrax.scipy.cluster import vq as vq

_defer(globals(), {}, "vq")
