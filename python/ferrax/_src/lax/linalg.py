"""Factorizations of matrices."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax.lax.linalg import _adjoint as _H, _hermitian_part as symmetrize
from ferrax.numpy import matrix_transpose as _T

__all__ = ["_H", "_T", "symmetrize"]

__getattr__ = unprovided_names(
    __name__,
    "_broadcasting_select_hlo _nan_like_hlo geqp3 geqp3_p geqrf geqrf_p linalg_primitive "
    "register_cpu_gpu_lowering standard_linalg_primitive",
    "factorizations are ferrax.lax.linalg's",
    names_of(__name__, "ferrax.lax.linalg", "ferrax.lax", "ferrax.extend.core.primitives"),
)
