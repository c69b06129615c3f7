"""Transformations, and what is put on devices and taken from them."""

from ferrax._derivatives import _std_basis as _std_basis
from ferrax._src._public import names_of
from ferrax.extend.backend import clear_backends as clear_backends

__getattr__ = names_of(__name__, "ferrax", "ferrax.api_util")
