"""SciPy's functions on arrays, with JAX's interface: `ferrax.scipy.linalg`, `optimize` and others.

Each submodule loads when it is asked for. Read next: `linalg/__init__.py`.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._lazy import defer as _defer

if _TYPE_CHECKING:
    from ferrax.scipy import cluster as cluster
    from ferrax.scipy import fft as fft
    from ferrax.scipy import integrate as integrate
    from ferrax.scipy import interpolate as interpolate
    from ferrax.scipy import linalg as linalg
    from ferrax.scipy import ndimage as ndimage
    from ferrax.scipy import optimize as optimize
    from ferrax.scipy import signal as signal
    from ferrax.scipy import sparse as sparse
    from ferrax.scipy import spatial as spatial
    from ferrax.scipy import special as special
    from ferrax.scipy import stats as stats

_SUBMODULES = """
cluster
fft
integrate
interpolate
linalg
ndimage
optimize
signal
sparse
spatial
special
stats
"""

_defer(globals(), {}, _SUBMODULES)
