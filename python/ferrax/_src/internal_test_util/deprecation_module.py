"""A module of which one name goes away and another is gone."""

from typing import Any

from ferrax._src.deprecations import deprecation_getattr

x = 42
_deprecations: dict[str, tuple[str, Any]] = {"y": ("Please use x", 101), "z": ("Please do not use z", None)}
__getattr__ = deprecation_getattr(__name__, _deprecations)
