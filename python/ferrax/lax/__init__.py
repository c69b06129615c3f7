"""JAX's `lax`: primitives as functions, structured control flow, reductions, slicing.

Nothing here promotes dtypes or broadcasts ranks; `ferrax.numpy` does. Read next: `elementwise.py`, `reductions.py`,
`control_flow.py`, `parallel.py`.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._lazy import defer as _defer
from ferrax.lax._primitive_names import NAMES as _PRIMITIVES
from ferrax.lax.elementwise import *

if _TYPE_CHECKING:
    from ferrax.lax import linalg as linalg
    from ferrax.lax._primitives import *
    from ferrax.lax.associative import *
    from ferrax.lax.control_flow import *
    from ferrax.lax.contraction import *
    from ferrax.lax.conversion import *
    from ferrax.lax.convolution import *
    from ferrax.lax.fourier import *
    from ferrax.lax.gather_scatter import *
    from ferrax.lax.other import *
    from ferrax.lax.parallel import *
    from ferrax.lax.ragged import *
    from ferrax.lax.random_bits import *
    from ferrax.lax.reductions import *
    from ferrax.lax.shape import *
    from ferrax.lax.slicing import *
    from ferrax.lax.solves import *
    from ferrax.lax.sorting import *
    from ferrax.lax.special import *


_LATER = {
    "_primitives": _PRIMITIVES,
    "associative": "associative_scan",
    "contraction": (
        "DotAlgorithm DotAlgorithmPreset DotDimensionNumbers Precision PrecisionLike batch_matmul dot dot_general"
    ),
    "control_flow": "cond fori_loop map scan switch while_loop",
    "conversion": (
        "AccuracyMode RoundingMethod Tolerance bitcast_convert_type clamp convert_element_type dtype integer_pow "
        "optimization_barrier reduce_precision round select select_n stop_gradient"
    ),
    "convolution": (
        "ConvDimensionNumbers ConvGeneralDilatedDimensionNumbers conv conv_dimension_numbers conv_general_dilated "
        "conv_general_dilated_local conv_general_dilated_patches conv_general_permutations conv_general_shape_tuple "
        "conv_shape_tuple conv_transpose conv_transpose_shape_tuple conv_with_general_padding"
    ),
    "fourier": "FftType fft",
    "gather_scatter": (
        "GatherDimensionNumbers GatherScatterMode ScatterDimensionNumbers gather index_take scatter scatter_add "
        "scatter_apply scatter_max scatter_min scatter_mul scatter_sub"
    ),
    "other": (
        "after_all composite create_token dce_sink platform_dependent rng_uniform stage with_sharding_constraint"
    ),
    "parallel": (
        "all_gather all_to_all axis_index axis_size pbroadcast pcast pmax pmean pmin ppermute precv psend "
        "pshuffle psum psum_scatter pswapaxes ragged_all_to_all"
    ),
    "ragged": "RaggedDotDimensionNumbers ragged_dot ragged_dot_general scaled_dot",
    "random_bits": "RandomAlgorithm rng_bit_generator",
    "reductions": (
        "argmax argmin cumlogsumexp cummax cummin cumprod cumsum padtype_to_pads reduce reduce_and reduce_max "
        "reduce_min reduce_or reduce_prod reduce_sum reduce_window reduce_window_shape_tuple reduce_xor"
    ),
    "shape": (
        "broadcast broadcast_in_dim broadcast_like broadcast_shapes broadcast_to_rank broadcasted_iota collapse "
        "empty expand_dims full full_like iota reshape rev shape_as_value squeeze stack tile transpose unstack"
    ),
    "slicing": (
        "concatenate dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim dynamic_update_index_in_dim "
        "dynamic_update_slice dynamic_update_slice_in_dim index_in_dim pad slice slice_in_dim split"
    ),
    "solves": "custom_linear_solve custom_root",
    "sorting": "approx_max_k approx_min_k sort sort_key_val top_k",
    "special": "betainc igamma igamma_grad_a igammac random_gamma_grad zeta",
}

# of these the primitives lack derivatives, which their functions in special.py have
del igamma, igammac, zeta  # noqa: F821

_defer(globals(), _LATER, "linalg")
