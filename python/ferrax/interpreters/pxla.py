"""Compilation for meshes of devices: nothing that libraries use of JAX's is here."""

from ferrax._boundary import expose as _expose

__all__: list[str] = []

_expose(globals())
