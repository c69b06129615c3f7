"""Programs of cuDNN, which ferrax does not use."""

from ferrax._src._public import with_submodules

__getattr__ = with_submodules(__name__)
