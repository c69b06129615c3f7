"""Common functions of neural networks: activations, the softmax family, attention, initializers.

Read next: ``_activations.py``.
"""

import sys as _sys
from typing import Any as _Any

from ferrax._boundary import expose as _expose
from ferrax._boundary import missing as _missing
from ferrax.nn import initializers as initializers
from ferrax.nn._activations import *
from ferrax.nn._attention import *
from ferrax.nn._normalize import *
from ferrax.nn._scaled import *


def __getattr__(name: str) -> _Any:
    raise _missing(_sys.modules[__name__], name)


_expose(globals())
