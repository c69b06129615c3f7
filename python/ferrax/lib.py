"""Nothing: JAX keeps this module for its own history."""

from ferrax._boundary import expose as _expose

__all__: list[str] = []

_expose(globals())
