"""A package whose module loads when it is asked for."""

from ferrax._src.lazy_loader import attach

__getattr__, __dir__, __all__ = attach(__name__, ["lazy_test_submodule"])
