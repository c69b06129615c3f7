"""Scopes of names as Python shows them: `NameStack` and what it is made of.

The names are kept by `ferrax_base::scopes`, which also writes them as text. Read next: `extend/source_info_util.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ferrax import _ferrax

__all__ = ["NameStack", "Scope", "Transform"]


@dataclasses.dataclass(frozen=True)
class Scope:
    """A name that a user gave."""

    name: str


@dataclasses.dataclass(frozen=True)
class Transform:
    """A transformation: it stands around the names inside it."""

    name: str


@dataclasses.dataclass(frozen=True)
class NameStack:
    """Names of scopes, outer ones first.

    Args:
      stack: the names, each of a scope or a transformation.

    >>> import ferrax as jax
    >>> str(jax.extend.source_info_util.new_name_stack("layer").extend("norm"))
    'layer/norm'
    """

    stack: tuple[Scope | Transform, ...] = ()

    @classmethod
    def of(cls, names: Iterable[tuple[bool, str]]) -> NameStack:
        """Of names, with whether each is a transformation's."""
        return cls(tuple(Transform(name) if transform else Scope(name) for transform, name in names))

    def names(self) -> list[tuple[bool, str]]:
        """The names, with whether each is a transformation's."""
        return [(isinstance(part, Transform), part.name) for part in self.stack]

    def extend(self, name: str) -> NameStack:
        """With one more scope inside."""
        return NameStack((*self.stack, Scope(name)))

    def transform(self, name: str) -> NameStack:
        """With a transformation around what comes inside."""
        return NameStack((*self.stack, Transform(name)))

    def __getitem__(self, at: slice) -> NameStack:
        return NameStack(self.stack[at])

    def __len__(self) -> int:
        return len(self.stack)

    def __add__(self, other: NameStack) -> NameStack:
        return NameStack(self.stack + other.stack)

    def __str__(self) -> str:
        return _ferrax.scope_text(self.names())
