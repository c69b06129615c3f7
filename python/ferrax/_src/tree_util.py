"""The registry of pytree nodes, as a container of their types."""

from ferrax import tree_util as _tree_util
from ferrax.tree_util import default_registry as default_registry


class _Types:
    """The types that are nodes."""

    def __contains__(self, cls: type) -> bool:
        return bool(default_registry.is_node(cls))


_registry = _Types()


def __getattr__(name):  # type: ignore[no-untyped-def]
    return getattr(_tree_util, name)
