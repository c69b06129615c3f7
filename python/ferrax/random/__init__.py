"""Pseudo-random numbers: the same key gives the same numbers, on any device and with any transformation.

Keys are explicit. A function consumes a key, and ``split`` makes new ones from it. The streams are JAX's (Threefry,
counter based), bit for bit.

>>> import ferrax
>>> key, subkey = ferrax.random.split(ferrax.random.key(0))
>>> ferrax.random.uniform(subkey)
Array(0.00729382, dtype=float32)

Read next: ``_keys.py``.
"""

from ferrax._boundary import expose as _expose
from ferrax._lazy import lend as _lend
from ferrax.random._bits import *
from ferrax.random._continuous import *
from ferrax.random._discrete import *
from ferrax.random._gamma import *
from ferrax.random._keys import *

# what JAX's module has besides
__getattr__ = _lend(__name__, {"ferrax.random._gamma": "random_gamma_p"})

_expose(globals())
