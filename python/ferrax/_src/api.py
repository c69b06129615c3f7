"""Transformations, and what is put on devices and taken from them."""

from ferrax._derivatives import _std_basis as _std_basis
from ferrax._linearized import NotNeeded as NotNeeded
from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax.extend.backend import clear_backends as clear_backends

__getattr__ = unprovided_names(
    __name__,
    "VJP _mapped_axis_size api_boundary device_put_replicated device_put_sharded",
    "what is under these names in JAX are steps of its own transformations",
    names_of(__name__, "ferrax", "ferrax.api_util", "ferrax.ad"),
)
