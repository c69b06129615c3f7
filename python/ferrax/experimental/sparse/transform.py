"""JAX's module of `sparsify`. Read next: `_transform.py`."""

from ferrax._boundary import expose as _expose
from ferrax.experimental.sparse._transform import sparsify

__all__ = ["sparsify"]

_expose(globals())
