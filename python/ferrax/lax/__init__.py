"""JAX's `lax`: primitives as functions, structured control flow, reductions, slicing.

Nothing here promotes dtypes or broadcasts ranks; `ferrax.numpy` does. Read next: `elementwise.py`, `reduce.py`,
`control_flow.py`.
"""

from ferrax.lax.contraction import *
from ferrax.lax.control_flow import *
from ferrax.lax.conversion import *
from ferrax.lax.elementwise import *
from ferrax.lax.gather_scatter import *
from ferrax.lax.reduce import *
from ferrax.lax.shape import *
from ferrax.lax.slicing import *
from ferrax.lax.sorting import *
