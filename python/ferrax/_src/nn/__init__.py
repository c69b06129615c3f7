"""Functions for neural networks, by JAX's files."""

from ferrax._src._public import with_submodules

__getattr__ = with_submodules(__name__)
