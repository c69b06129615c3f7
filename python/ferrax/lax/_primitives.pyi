"""Type stubs of the primitives' objects; written by `tools/stubs.py`, not by hand."""

from ferrax._primitives import Primitive

__all__ = [
    "abs_p",
    "acos_p",
    "acosh_p",
    "add_p",
    "after_all_p",
    "all_gather_p",
    "all_to_all_p",
    "and_p",
    "approx_top_k_p",
    "argmax_p",
    "argmin_p",
    "asin_p",
    "asinh_p",
    "atan2_p",
    "atan_p",
    "atanh_p",
    "axis_index_p",
    "bessel_i0e_p",
    "bessel_i1e_p",
    "bitcast_convert_type_p",
    "broadcast_in_dim_p",
    "cbrt_p",
    "ceil_p",
    "clamp_p",
    "clz_p",
    "complex_p",
    "concatenate_p",
    "cond_p",
    "conj_p",
    "conv_general_dilated_p",
    "convert_element_type_p",
    "copy_p",
    "cos_p",
    "cosh_p",
    "create_token_p",
    "cumlogsumexp_p",
    "cummax_p",
    "cummin_p",
    "cumprod_p",
    "cumsum_p",
    "dce_sink_p",
    "device_put_p",
    "digamma_p",
    "dim_as_value_p",
    "div_p",
    "dot_general_p",
    "dynamic_slice_p",
    "dynamic_update_slice_p",
    "eq_p",
    "eq_to_p",
    "erf_inv_p",
    "erf_p",
    "erfc_p",
    "exp2_p",
    "exp_p",
    "expm1_p",
    "fft_p",
    "floor_p",
    "gather_p",
    "ge_p",
    "gt_p",
    "igamma_grad_a_p",
    "igamma_p",
    "igammac_p",
    "imag_p",
    "integer_pow_p",
    "iota_p",
    "is_finite_p",
    "le_p",
    "le_to_p",
    "lgamma_p",
    "linear_solve_p",
    "log1p_p",
    "log_p",
    "logistic_p",
    "lt_p",
    "lt_to_p",
    "max_p",
    "min_p",
    "mul_p",
    "mulhi_p",
    "ne_p",
    "neg_p",
    "nextafter_p",
    "not_p",
    "optimization_barrier_p",
    "or_p",
    "pad_p",
    "permute_rows_p",
    "pmax_p",
    "pmin_p",
    "polygamma_p",
    "population_count_p",
    "pow_p",
    "ppermute_p",
    "psum_p",
    "ragged_all_to_all_p",
    "real_p",
    "reduce_and_p",
    "reduce_max_p",
    "reduce_min_p",
    "reduce_or_p",
    "reduce_p",
    "reduce_precision_p",
    "reduce_prod_p",
    "reduce_sum_p",
    "reduce_window_max_p",
    "reduce_window_min_p",
    "reduce_window_p",
    "reduce_window_sum_p",
    "reduce_xor_p",
    "regularized_incomplete_beta_p",
    "rem_p",
    "reshape_p",
    "rev_p",
    "rng_bit_generator_p",
    "rng_uniform_p",
    "round_p",
    "rsqrt_p",
    "scan_p",
    "scatter_add_p",
    "scatter_max_p",
    "scatter_min_p",
    "scatter_mul_p",
    "scatter_p",
    "scatter_sub_p",
    "select_and_gather_add_p",
    "select_and_scatter_add_p",
    "select_and_scatter_p",
    "select_n_p",
    "sharding_constraint_p",
    "shift_left_p",
    "shift_right_arithmetic_p",
    "shift_right_logical_p",
    "sign_p",
    "sin_p",
    "sinh_p",
    "slice_p",
    "sort_p",
    "split_p",
    "sqrt_p",
    "square_p",
    "squeeze_p",
    "stack_p",
    "stage_p",
    "stop_gradient_p",
    "sub_p",
    "tan_p",
    "tanh_p",
    "tile_p",
    "top_k_p",
    "transpose_p",
    "unstack_p",
    "while_p",
    "xor_p",
    "zeta_p",
]

abs_p: Primitive
acos_p: Primitive
acosh_p: Primitive
add_p: Primitive
after_all_p: Primitive
all_gather_p: Primitive
all_to_all_p: Primitive
and_p: Primitive
approx_top_k_p: Primitive
argmax_p: Primitive
argmin_p: Primitive
asin_p: Primitive
asinh_p: Primitive
atan2_p: Primitive
atan_p: Primitive
atanh_p: Primitive
axis_index_p: Primitive
bessel_i0e_p: Primitive
bessel_i1e_p: Primitive
bitcast_convert_type_p: Primitive
broadcast_in_dim_p: Primitive
cbrt_p: Primitive
ceil_p: Primitive
clamp_p: Primitive
clz_p: Primitive
complex_p: Primitive
concatenate_p: Primitive
cond_p: Primitive
conj_p: Primitive
conv_general_dilated_p: Primitive
convert_element_type_p: Primitive
copy_p: Primitive
cos_p: Primitive
cosh_p: Primitive
create_token_p: Primitive
cumlogsumexp_p: Primitive
cummax_p: Primitive
cummin_p: Primitive
cumprod_p: Primitive
cumsum_p: Primitive
dce_sink_p: Primitive
device_put_p: Primitive
digamma_p: Primitive
dim_as_value_p: Primitive
div_p: Primitive
dot_general_p: Primitive
dynamic_slice_p: Primitive
dynamic_update_slice_p: Primitive
eq_p: Primitive
eq_to_p: Primitive
erf_inv_p: Primitive
erf_p: Primitive
erfc_p: Primitive
exp2_p: Primitive
exp_p: Primitive
expm1_p: Primitive
fft_p: Primitive
floor_p: Primitive
gather_p: Primitive
ge_p: Primitive
gt_p: Primitive
igamma_grad_a_p: Primitive
igamma_p: Primitive
igammac_p: Primitive
imag_p: Primitive
integer_pow_p: Primitive
iota_p: Primitive
is_finite_p: Primitive
le_p: Primitive
le_to_p: Primitive
lgamma_p: Primitive
linear_solve_p: Primitive
log1p_p: Primitive
log_p: Primitive
logistic_p: Primitive
lt_p: Primitive
lt_to_p: Primitive
max_p: Primitive
min_p: Primitive
mul_p: Primitive
mulhi_p: Primitive
ne_p: Primitive
neg_p: Primitive
nextafter_p: Primitive
not_p: Primitive
optimization_barrier_p: Primitive
or_p: Primitive
pad_p: Primitive
permute_rows_p: Primitive
pmax_p: Primitive
pmin_p: Primitive
polygamma_p: Primitive
population_count_p: Primitive
pow_p: Primitive
ppermute_p: Primitive
psum_p: Primitive
ragged_all_to_all_p: Primitive
real_p: Primitive
reduce_and_p: Primitive
reduce_max_p: Primitive
reduce_min_p: Primitive
reduce_or_p: Primitive
reduce_p: Primitive
reduce_precision_p: Primitive
reduce_prod_p: Primitive
reduce_sum_p: Primitive
reduce_window_max_p: Primitive
reduce_window_min_p: Primitive
reduce_window_p: Primitive
reduce_window_sum_p: Primitive
reduce_xor_p: Primitive
regularized_incomplete_beta_p: Primitive
rem_p: Primitive
reshape_p: Primitive
rev_p: Primitive
rng_bit_generator_p: Primitive
rng_uniform_p: Primitive
round_p: Primitive
rsqrt_p: Primitive
scan_p: Primitive
scatter_add_p: Primitive
scatter_max_p: Primitive
scatter_min_p: Primitive
scatter_mul_p: Primitive
scatter_p: Primitive
scatter_sub_p: Primitive
select_and_gather_add_p: Primitive
select_and_scatter_add_p: Primitive
select_and_scatter_p: Primitive
select_n_p: Primitive
sharding_constraint_p: Primitive
shift_left_p: Primitive
shift_right_arithmetic_p: Primitive
shift_right_logical_p: Primitive
sign_p: Primitive
sin_p: Primitive
sinh_p: Primitive
slice_p: Primitive
sort_p: Primitive
split_p: Primitive
sqrt_p: Primitive
square_p: Primitive
squeeze_p: Primitive
stack_p: Primitive
stage_p: Primitive
stop_gradient_p: Primitive
sub_p: Primitive
tan_p: Primitive
tanh_p: Primitive
tile_p: Primitive
top_k_p: Primitive
transpose_p: Primitive
unstack_p: Primitive
while_p: Primitive
xor_p: Primitive
zeta_p: Primitive
