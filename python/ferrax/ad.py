"""What `with_refs` of a pullback takes and gives in the place of cotangents."""

from __future__ import annotations

import functools

from ferrax._boundary import expose as _expose
from ferrax.tree_util import register_pytree_node as _register

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]


class _Mark:
    """A word without content."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


class GradValue(_Mark):
    """Asks a pullback for a cotangent as a value.

    >>> import ferrax as jax
    >>> jax.ad.GradValue()
    GradValue()
    """


class GradRef(_Mark):
    """Stands for a cotangent that was added to a reference.

    >>> import ferrax as jax
    >>> jax.ad.GradRef()
    GradRef()
    """


class DontWant(_Mark):
    """Asks a pullback for no cotangent.

    >>> import ferrax as jax
    >>> jax.ad.DontWant()
    DontWant()
    """


class DidntWant(_Mark):
    """Stands for a cotangent that nobody asked for.

    >>> import ferrax as jax
    >>> jax.ad.DidntWant()
    DidntWant()
    """


for _kind in (GradRef, DidntWant):
    # they stand where no array is
    _register(_kind, lambda _: ((), ()), functools.partial(lambda kind, _, __: kind(), _kind))

_expose(globals())
