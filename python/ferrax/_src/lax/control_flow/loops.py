"""Loops."""

from ferrax._src._public import names_of
from ferrax.lax.associative import _interleave as _interleave

__getattr__ = names_of(__name__, "ferrax.lax", "ferrax.extend.core.primitives")
