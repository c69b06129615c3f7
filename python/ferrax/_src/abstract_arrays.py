"""Types of values that are arrays or numbers."""

from typing import Any

import numpy as np

from ferrax._ferrax import Array
from ferrax._src._public import names_of

numpy_scalar_types: set[type] = {
    t for t in np.sctypeDict.values() if issubclass(t, (np.number, np.bool_)) and t is not np.longdouble
} - {np.clongdouble}
array_types: set[Any] = {Array, np.ndarray, *numpy_scalar_types}

__getattr__ = names_of(__name__, "ferrax.core")
