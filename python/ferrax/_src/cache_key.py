"""Names of compiled programs on disk."""

from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__, "IgnoreCallbacks Type custom_hook get", "programs on disk are named by the core"
)
