"""NumPy's functions over ferrax's arrays: `import ferrax.numpy as jnp`.

The functions work under every transformation. Elementwise functions and indexing are Rust; the rest is Python over
`ferrax.lax`, one private module for each family. Read `_args.py` first.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._lazy import defer as _defer
from ferrax._core import Array as ndarray
from ferrax.numpy._constants import *
from ferrax.numpy._creation import *
from ferrax.numpy._cumulative import *
from ferrax.numpy._diagonal import *
from ferrax.numpy._dtype_functions import (
    can_cast, iscomplexobj, isdtype, isrealobj, issubdtype, promote_types, result_type,
)  # fmt: skip
from ferrax.numpy._dtypes import *
from ferrax.numpy._elementwise import *
from ferrax.numpy._join import *
from ferrax.numpy._products import *
from ferrax.numpy._ranges import *
from ferrax.numpy._reductions import *
from ferrax.numpy._search import *
from ferrax.numpy._select import *
from ferrax.numpy._shape import *
from ferrax.numpy._sort import *
from ferrax.numpy._take import *
from ferrax.numpy._ufunc import *
from ferrax.numpy._ufuncs import *
from ferrax.numpy._methods import attach as _attach

_attach()

if _TYPE_CHECKING:
    from ferrax.numpy import fft as fft
    from ferrax.numpy import linalg as linalg
    from ferrax.numpy._calculus import *
    from ferrax.numpy._einsum import *
    from ferrax.numpy._floats import *
    from ferrax.numpy._functional import *
    from ferrax.numpy._grid import *
    from ferrax.numpy._histogram import *
    from ferrax.numpy._io import *
    from ferrax.numpy._nan_reductions import *
    from ferrax.numpy._pad import *
    from ferrax.numpy._polynomial import *
    from ferrax.numpy._quantiles import *
    from ferrax.numpy._rearrange import *
    from ferrax.numpy._sets import *
    from ferrax.numpy._statistics import *
    from ferrax.numpy._windows import *


_LATER = {
    "_calculus": "diff ediff1d gradient interp trapezoid unwrap",
    "_einsum": "einsum einsum_path",
    "_floats": "frexp ldexp packbits spacing unpackbits",
    "_functional": "apply_along_axis apply_over_axes vectorize",
    "_grid": "c_ index_exp mgrid ogrid r_ s_",
    "_histogram": "bincount histogram histogram2d histogram_bin_edges histogramdd",
    "_io": "array_repr array_str get_printoptions load printoptions save savez set_printoptions",
    "_nan_reductions": "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar",
    "_pad": "pad",
    "_polynomial": "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots",
    "_quantiles": "median nanmedian nanpercentile nanquantile percentile quantile",
    "_rearrange": "append delete flip fliplr flipud insert resize roll rot90 trim_zeros",
    "_sets": (
        "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse unique_values"
    ),
    "_statistics": "convolve corrcoef correlate cov",
    "_windows": "bartlett blackman hamming hanning kaiser",
}

_defer(globals(), _LATER, "fft linalg")
