"""Rematerialization."""

from ferrax._src._public import names_of
from ferrax.ad_checkpoint import saved_residuals as saved_residuals

__getattr__ = names_of(__name__, "ferrax.ad_checkpoint", "ferrax.extend.core.primitives")
