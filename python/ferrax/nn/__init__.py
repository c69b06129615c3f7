"""Common functions of neural networks: activations, the softmax family, attention, initializers.

Read next: ``_activations.py``.
"""

from ferrax._boundary import expose as _expose
from ferrax.nn import initializers as initializers
from ferrax.nn._activations import *
from ferrax.nn._attention import *
from ferrax.nn._normalize import *
from ferrax.nn._scaled import *


_expose(globals())
