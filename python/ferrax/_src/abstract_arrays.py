"""Types of values that are arrays or numbers."""

import numpy as np

from ferrax._src._public import names_of
from ferrax.extend.core import array_types as array_types

#: NumPy's types of numbers.
numpy_scalar_types: set[type] = array_types - {np.ndarray}

__getattr__ = names_of(__name__, "ferrax.core")
