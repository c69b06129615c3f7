"""Functions of `ferrax.numpy`, under the name of JAX's file `vectorize`."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "_apply_excluded _check_output_dims _parse_gufunc_signature _parse_input_dimensions _update_dim_sizes",
    "signatures are read by ferrax.numpy.vectorize",
    names_of(__name__, "ferrax.numpy"),
)
