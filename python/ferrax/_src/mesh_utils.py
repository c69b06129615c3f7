"""Meshes for devices that there are."""

from ferrax._src._public import names_of

__getattr__ = names_of(__name__, "ferrax.experimental.mesh_utils")
