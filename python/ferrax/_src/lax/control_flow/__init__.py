"""Loops and branches."""

from ferrax._src._public import names_of, with_submodules
from ferrax._src.lax.control_flow import common as common

__getattr__ = with_submodules(__name__, names_of(__name__, "ferrax.lax", "ferrax.extend.core.primitives"))
