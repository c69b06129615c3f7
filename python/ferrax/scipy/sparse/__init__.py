"""What `ferrax.scipy` has for operators that are not matrices: `linalg`. Read next: `linalg.py`."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._lazy import defer as _defer

if _TYPE_CHECKING:
    from ferrax.scipy.sparse import linalg as linalg

_defer(globals(), {}, "linalg")
