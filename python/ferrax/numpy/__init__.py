"""NumPy's functions over ferrax's arrays: `import ferrax.numpy as jnp`.

The functions work under every transformation. Elementwise functions and indexing are Rust; the rest is Python over
`ferrax.lax`, one private module for each family, which loads when one of its functions is asked for. Read `_args.py`
first.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._ferrax import Array as ndarray
from ferrax._lazy import defer as _defer
from ferrax.numpy._constants import *
from ferrax.numpy._ufuncs import *

if _TYPE_CHECKING:
    from ferrax.numpy import fft as fft
    from ferrax.numpy import linalg as linalg
    from ferrax.numpy._calculus import *
    from ferrax.numpy._creation import *
    from ferrax.numpy._cumulative import *
    from ferrax.numpy._diagonal import *
    from ferrax.numpy._dtype_functions import *
    from ferrax.numpy._dtypes import *
    from ferrax.numpy._einsum import *
    from ferrax.numpy._elementwise import *
    from ferrax.numpy._floats import *
    from ferrax.numpy._functional import *
    from ferrax.numpy._grid import *
    from ferrax.numpy._histogram import *
    from ferrax.numpy._io import *
    from ferrax.numpy._join import *
    from ferrax.numpy._namespace import __array_namespace_info__ as __array_namespace_info__
    from ferrax.numpy._nan_reductions import *
    from ferrax.numpy._narrow_dtypes import *
    from ferrax.numpy._pad import *
    from ferrax.numpy._polynomial import *
    from ferrax.numpy._products import *
    from ferrax.numpy._quantiles import *
    from ferrax.numpy._ranges import *
    from ferrax.numpy._rearrange import *
    from ferrax.numpy._reductions import *
    from ferrax.numpy._search import *
    from ferrax.numpy._select import *
    from ferrax.numpy._sets import *
    from ferrax.numpy._shape import *
    from ferrax.numpy._sort import *
    from ferrax.numpy._statistics import *
    from ferrax.numpy._take import *
    from ferrax.numpy._ufunc import *
    from ferrax.numpy._windows import *

_LATER = {
    "_calculus": "diff ediff1d gradient interp trapezoid unwrap",
    "_creation": (
        "array asarray astype copy empty empty_like from_dlpack frombuffer fromfile fromfunction fromiter "
        "fromstring full full_like ones ones_like zeros zeros_like"
    ),
    "_cumulative": "cumprod cumsum cumulative_prod cumulative_sum",
    "_diagonal": (
        "diag diag_indices diag_indices_from diagflat diagonal fill_diagonal mask_indices trace tri tril "
        "tril_indices tril_indices_from triu triu_indices triu_indices_from vander"
    ),
    "_dtype_functions": "can_cast iscomplexobj isdtype isrealobj issubdtype promote_types result_type",
    "_dtypes": (
        "bool bool_ cdouble character complex128 complex64 complex_ complexfloating ComplexWarning csingle double "
        "dtype flexible float16 float32 float64 float_ floating generic inexact int16 int32 int64 int8 int_ "
        "integer number object_ signedinteger single uint uint16 uint32 uint64 uint8 unsignedinteger"
    ),
    "_einsum": "einsum einsum_path",
    "_elementwise": (
        "allclose angle around array_equal array_equiv divmod gcd i0 isclose isscalar iterable lcm modf "
        "nan_to_num round sinc"
    ),
    "_floats": "frexp ldexp packbits spacing unpackbits",
    "_functional": "apply_along_axis apply_over_axes vectorize",
    "_grid": "c_ index_exp mgrid ogrid r_ s_",
    "_histogram": "bincount histogram histogram2d histogram_bin_edges histogramdd",
    "_io": "array_repr array_str get_printoptions load printoptions save savez set_printoptions",
    "_join": (
        "array_split block column_stack concat concatenate dsplit dstack hsplit hstack repeat split stack tile "
        "unstack vsplit vstack"
    ),
    "_namespace": "__array_namespace_info__",
    "_nan_reductions": ("nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar"),
    "_narrow_dtypes": (
        "bfloat16 finfo float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz "
        "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu iinfo int1 int2 int4 uint1 "
        "uint2 uint4"
    ),
    "_pad": "pad",
    "_polynomial": "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots",
    "_products": "cross dot inner kron matmul matvec outer tensordot vdot vecdot vecmat",
    "_quantiles": "median nanmedian nanpercentile nanquantile percentile quantile",
    "_ranges": "arange eye geomspace identity linspace logspace",
    "_rearrange": "append delete flip fliplr flipud insert resize roll rot90 trim_zeros",
    "_reductions": ("all amax amin any argmax argmin average count_nonzero max mean min prod ptp std sum var"),
    "_search": "argwhere digitize flatnonzero nonzero searchsorted",
    "_select": "choose compress extract piecewise place select",
    "_sets": (
        "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse unique_values"
    ),
    "_shape": (
        "atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_shapes broadcast_to expand_dims "
        "matrix_transpose moveaxis ndim permute_dims ravel reshape rollaxis shape size squeeze swapaxes transpose"
    ),
    "_sort": "argpartition argsort lexsort partition sort sort_complex",
    "_statistics": "convolve corrcoef correlate cov",
    "_take": ("indices ix_ meshgrid put put_along_axis ravel_multi_index take take_along_axis unravel_index"),
    "_ufunc": "frompyfunc logaddexp logaddexp2 ufunc",
    "_windows": "bartlett blackman hamming hanning kaiser",
}

_defer(globals(), _LATER, "fft linalg", optional="int1 uint1")
