"""Linear algebra with SciPy's interface, as JAX has it. The last two axes of an operand are its matrices.

Factorizations are in `_factors.py`, systems in `_solve.py`, functions of matrices in `_functions.py`, eigenvalues of
tridiagonal matrices in `_tridiagonal.py`, matrices of a given form in `_special_matrices.py`.
"""

from ferrax._boundary import expose as _expose
from ferrax.scipy.linalg._factors import (
    cho_factor,
    cholesky,
    eigh,
    hessenberg,
    lu,
    lu_factor,
    qr,
    qr_multiply,
    rsf2csf,
    schur,
    svd,
)
from ferrax.scipy.linalg._functions import expm, expm_frechet, funm, polar, sqrtm
from ferrax.scipy.linalg._solve import cho_solve, det, inv, lu_solve, solve, solve_sylvester, solve_triangular
from ferrax.scipy.linalg._special_matrices import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
    toeplitz,
)
from ferrax.scipy.linalg._tridiagonal import eigh_tridiagonal

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion", "convolution_matrix", "det",
    "dft", "eigh", "eigh_tridiagonal", "expm", "expm_frechet", "fiedler", "fiedler_companion", "funm",
    "hadamard", "hankel", "helmert", "hessenberg", "hilbert", "inv", "invhilbert", "invpascal", "leslie", "lu",
    "lu_factor", "lu_solve", "pascal", "polar", "qr", "qr_multiply", "rsf2csf", "schur", "solve",
    "solve_sylvester", "solve_triangular", "sqrtm", "svd", "toeplitz",
]  # fmt: skip

_expose(globals())
