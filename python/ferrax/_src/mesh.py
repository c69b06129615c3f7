"""Meshes of devices."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax.sharding import Mesh
from ferrax.sharding._context import (
    _state,
    concrete_mesh,
    empty_abstract_mesh as empty_abstract_mesh,
    empty_mesh as empty_concrete_mesh,
)


def get_concrete_mesh() -> Mesh:
    """The mesh of `set_mesh`, in programs too; one without axes where there is none."""
    return concrete_mesh() or empty_concrete_mesh


class ResourceEnv:
    """A mesh of `with mesh:`."""

    def __init__(self, physical_mesh: Mesh) -> None:
        self.physical_mesh = physical_mesh


EMPTY_ENV = ResourceEnv(empty_concrete_mesh)


class _ThreadResources:
    """What this thread's `with mesh:` have set."""

    @property
    def env(self) -> ResourceEnv:
        """The innermost mesh; one without axes where there is none."""
        return ResourceEnv(_state.physical[-1]) if _state.physical else EMPTY_ENV


thread_resources = _ThreadResources()

__getattr__ = unprovided_names(
    __name__,
    "BaseMesh",
    "meshes in use are ferrax.sharding's",
    names_of(__name__, "ferrax.sharding"),
)
