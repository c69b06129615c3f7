"""Compilation for meshes of devices: which mesh is in use, as older libraries ask for it."""

from __future__ import annotations

import warnings
from typing import Any

from ferrax._boundary import expose as _expose

__all__: list[str] = []


class _Environment:
    """The meshes of `with mesh:`."""

    @property
    def physical_mesh(self) -> Any:
        """The mesh in use; one without axes where there is none."""
        from ferrax.sharding._context import physical_mesh

        return physical_mesh()

    @property
    def empty(self) -> bool:
        """Whether there is none."""
        return bool(self.physical_mesh.empty)

    def __repr__(self) -> str:
        return f"ResourceEnv(mesh={self.physical_mesh!s})"


class _ThreadResources:
    """What a thread has in use."""

    env = _Environment()


_thread_resources = _ThreadResources()


def __getattr__(name: str) -> Any:
    if name == "thread_resources":
        warnings.warn(
            "jax.interpreters.pxla.thread_resources is deprecated. Use jax.sharding.get_mesh or "
            "jax.sharding.get_abstract_mesh.",
            DeprecationWarning,
            stacklevel=2,
        )
        return _thread_resources
    import sys

    from ferrax._boundary import missing

    raise missing(sys.modules[__name__], name)


_expose(globals())
