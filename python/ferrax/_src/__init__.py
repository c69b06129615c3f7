"""JAX's private paths: the public names that JAX defines there, and helpers that libraries and their tests use.

Most files say only of which public modules they have the names (`_public.py`). Nothing of ferrax's own imports from
here, and nothing else is promised: what is not here is not part of the interface.
"""

from ferrax._src._public import with_submodules

__getattr__ = with_submodules(__name__)
