"""The version of the compiled part; the rest of what JAX kept here is gone."""

from ferrax._boundary import expose as _expose
from ferrax.version import __version__ as __version__

__all__: list[str] = []

_expose(globals())
