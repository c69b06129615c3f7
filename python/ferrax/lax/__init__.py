"""JAX's `lax`: primitives as functions, structured control flow, reductions, slicing.

Nothing here promotes dtypes or broadcasts ranks; `ferrax.numpy` does. Read next: `elementwise.py`, `reduce.py`,
`control_flow.py`, `parallel.py`.
"""

import sys as _sys
from typing import Any as _Any

from ferrax._boundary import expose as _expose
from ferrax._boundary import missing as _missing
from ferrax.lax.contraction import *
from ferrax.lax.convolution import *
from ferrax.lax.control_flow import *
from ferrax.lax.conversion import *
from ferrax.lax.elementwise import *
from ferrax.lax.fourier import *
from ferrax.lax.gather_scatter import *
from ferrax.lax.other import *
from ferrax.lax.parallel import *
from ferrax.lax.reduce import *
from ferrax.lax.shape import *
from ferrax.lax.slicing import *
from ferrax.lax.sorting import *

from ferrax.lax import linalg as linalg  # isort: skip


def __getattr__(name: str) -> _Any:
    raise _missing(_sys.modules[__name__], name)


_expose(globals())
