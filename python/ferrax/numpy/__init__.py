"""NumPy's functions over ferrax's arrays: `import ferrax.numpy as jnp`.

The functions work under every transformation. Elementwise functions and indexing are Rust; the rest is Python over
`ferrax.lax`, one private module for each family. Read `_args.py` first.
"""

import sys as _sys
from typing import Any as _Any

from ferrax._boundary import expose as _expose
from ferrax._boundary import missing as _missing
from ferrax._core import Array as ndarray
from ferrax.numpy import fft as fft
from ferrax.numpy import linalg as linalg
from ferrax.numpy._calculus import *
from ferrax.numpy._constants import *
from ferrax.numpy._creation import *
from ferrax.numpy._cumulative import *
from ferrax.numpy._diagonal import *
from ferrax.numpy._dtype_functions import (
    can_cast, iscomplexobj, isdtype, isrealobj, issubdtype, promote_types, result_type,
)  # fmt: skip
from ferrax.numpy._dtypes import *
from ferrax.numpy._einsum import *
from ferrax.numpy._elementwise import *
from ferrax.numpy._floats import *
from ferrax.numpy._functional import *
from ferrax.numpy._grid import *
from ferrax.numpy._histogram import *
from ferrax.numpy._io import *
from ferrax.numpy._join import *
from ferrax.numpy._nan_reductions import *
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
from ferrax.numpy._ufuncs import *
from ferrax.numpy._ufunc import *
from ferrax.numpy._ufuncs import *
from ferrax.numpy._windows import *
from ferrax.numpy._methods import attach as _attach

_attach()


def __getattr__(name: str) -> _Any:
    raise _missing(_sys.modules[__name__], name)


_expose(globals())
