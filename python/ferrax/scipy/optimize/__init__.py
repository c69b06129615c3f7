"""Minimization with SciPy's interface, as JAX has it.

The public function is in `_minimize.py`, the methods in `_quasi_newton.py`, the search along a line in
`_line_search.py`.
"""

from ferrax._boundary import expose as _expose
from ferrax.scipy.optimize._minimize import OptimizeResults, minimize

__all__ = ["OptimizeResults", "minimize"]

_expose(globals())
