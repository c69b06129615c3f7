"""Systems of equations by iteration."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax.scipy.sparse.linalg import _identity as _identity

__getattr__ = unprovided_names(
    __name__,
    "_gmres_batched _gmres_incremental _gmres_solve _isolve _iterative_classical_gram_schmidt _norm _normalize_matvec "
    "_safe_normalize _shapes _vdot_real_tree",
    "a step of the solver that is not by itself here",
    names_of(__name__, "ferrax.scipy.sparse.linalg"),
)
