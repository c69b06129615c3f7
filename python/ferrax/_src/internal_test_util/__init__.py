"""Tables of cases for JAX's tests."""

from ferrax._src._public import with_submodules

__getattr__ = with_submodules(__name__)
