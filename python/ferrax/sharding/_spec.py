"""`PartitionSpec`: which mesh axes divide each axis of an array.

Read next: `_named.py`, which pairs one with a mesh.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["UNCONSTRAINED", "PartitionSpec", "entry_names"]


class _Unconstrained:
    """Stands for "whatever the compiler finds best" in a `PartitionSpec`; there is one."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __copy__(self) -> _Unconstrained:
        return self

    def __deepcopy__(self, memo: Any) -> _Unconstrained:
        return self

    def __reduce__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()


def _canonical(entry: Any) -> Any:
    """One entry: `None` for no axis, the axis for a sequence of one, else a tuple."""
    if isinstance(entry, (tuple, list)):
        axes = tuple(entry)
        for axis in axes:
            if isinstance(axis, (tuple, list)):
                raise ValueError(
                    "A tuple inside PartitionSpec cannot contain a nested tuple. Got partition: "
                    f"{entry} and the nested tuple: {axis}"
                )
        return None if not axes else axes[0] if len(axes) == 1 else axes
    return entry


def entry_names(entry: Any) -> tuple[Any, ...]:
    """The mesh axes that an entry names, in order, the first varying slowest."""
    if entry is None or entry is UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


def _axes(what: str, axes: Any, partitions: tuple[Any, ...]) -> frozenset[Any]:
    if not isinstance(axes, (set, frozenset)):
        raise TypeError(f"{what} argument of PartitionSpec should of type `frozenset` or `set`. Got type {axes}")
    if None in axes:
        raise ValueError(f"{what} cannot contain None. All elements in {what} should refer to the mesh axes.")
    if any(name in axes for entry in partitions for name in entry_names(entry)):
        raise ValueError(
            f"partitions cannot overlap with {what} axes passed to PartitionSpec. Got partitions: {partitions} and "
            f"{what} axes: {frozenset(axes)}"
        )
    return frozenset(axes)


class PartitionSpec:
    """Which axes of a mesh divide each axis of an array.

    Args:
      *partitions: for each axis of the array, from the first on, the name of a mesh axis, a tuple of names (the first
        varies slowest), `None` for an axis that is not divided, or `PartitionSpec.UNCONSTRAINED`. Axes of the array
        without an entry are not divided.
      unreduced: mesh axes over which a sum is still due.
      reduced: mesh axes whose gradient is unreduced.

    Raises:
      TypeError: `unreduced` or `reduced` is no set.
      ValueError: an axis is in two of the three places.

    >>> from ferrax.sharding import PartitionSpec as P
    >>> P("x", None, ("y", "z"))
    P('x', None, ('y', 'z'))
    """

    __slots__ = ("__weakref__", "_hash", "_partitions", "reduced", "unreduced")

    UNCONSTRAINED = UNCONSTRAINED

    unreduced: frozenset[Any]
    reduced: frozenset[Any]

    def __init__(self, *partitions: Any, unreduced: Any = frozenset(), reduced: Any = frozenset()):
        entries = tuple(map(_canonical, partitions))
        self._partitions = entries
        self.unreduced = _axes("unreduced", unreduced, entries) if unreduced else frozenset()
        self.reduced = _axes("reduced", reduced, entries) if reduced else frozenset()
        if self.unreduced & self.reduced:
            raise ValueError(
                "`unreduced` and `reduced` argument to PartitionSpec cannot overlap. Got unreduced: "
                f"{self.unreduced} and reduced: {self.reduced}"
            )
        self._hash = hash((entries, self.unreduced, self.reduced))

    @property
    def partitions(self) -> tuple[Any, ...]:
        """The entries, one for each leading axis."""
        return self._partitions

    def _normalized_spec_for_aval(self, rank: int) -> PartitionSpec:
        """The same with an entry for each axis of an array."""
        return self.update(partitions=(*self._partitions, *[None] * (rank - len(self._partitions))))

    def __repr__(self) -> str:
        more = [
            f"{what}={{{', '.join(sorted(map(repr, axes)))}}}"
            for what, axes in (("unreduced", self.unreduced), ("reduced", self.reduced))
            if axes
        ]
        entries = list(map(repr, self._partitions))
        if len(entries) == 1 and not more:
            return f"P({entries[0]},)"
        return f"P({', '.join(entries + more)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartitionSpec):
            return False
        return (self._partitions, self.unreduced, self.reduced) == (other._partitions, other.unreduced, other.reduced)

    def __hash__(self) -> int:
        return self._hash

    def __getitem__(self, i: Any) -> Any:
        return self._partitions[i]

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._partitions)

    def __add__(self, other: Any) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            return PartitionSpec(
                *self, *other, unreduced=self.unreduced | other.unreduced, reduced=self.reduced | other.reduced
            )
        if isinstance(other, tuple):
            return PartitionSpec(*self._places(other, "__add__"), *other)
        raise NotImplementedError(f"a PartitionSpec and a {type(other).__name__} cannot be joined")

    def __radd__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, tuple):
            raise NotImplementedError(f"a {type(other).__name__} and a PartitionSpec cannot be joined")
        return PartitionSpec(*other, *self._places(other, "__radd__"))

    def _places(self, other: tuple[Any, ...], method: str) -> tuple[Any, ...]:
        """The entries, where there are no others to be joined with a tuple."""
        for what in ("unreduced", "reduced"):
            if getattr(self, what):
                raise TypeError(
                    f"other {other} cannot be of instance `tuple` when self {self} has {what} in `{method}` of "
                    "PartitionSpec."
                )
        return self._partitions

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (self._partitions, self.unreduced, self.reduced)

    def index(self, value: Any) -> int:
        """Where an entry is first."""
        return self._partitions.index(_canonical(value))

    def count(self, value: Any) -> int:
        """How often an entry is there."""
        return self._partitions.count(_canonical(value))

    def update(self, partitions: Any = None, unreduced: Any = None, reduced: Any = None) -> PartitionSpec:
        """A copy with some parts changed; those that are `None` stay.

        Args:
          partitions: the entries.
          unreduced: mesh axes over which a sum is still due.
          reduced: mesh axes whose gradient is unreduced.

        Returns:
          A `PartitionSpec`.

        >>> from ferrax.sharding import PartitionSpec as P
        >>> P("x").update(partitions=("y", None))
        P('y', None)
        """
        return PartitionSpec(
            *(self._partitions if partitions is None else partitions),
            unreduced=self.unreduced if unreduced is None else unreduced,
            reduced=self.reduced if reduced is None else reduced,
        )

    def to_tangent_spec(self) -> PartitionSpec:
        """The spec of tangents: the same."""
        return self

    def to_ct_spec(self) -> PartitionSpec:
        """The spec of cotangents: sums that are due here were done there, and the other way round."""
        return self.update(unreduced=self.reduced, reduced=self.unreduced)

    def to_lo(self) -> list[PartitionSpec]:
        """The specs of the arrays behind the value: its own."""
        return [self]

    def without(self, names: Iterable[Any]) -> PartitionSpec:
        """A copy that does not name some mesh axes; `UNCONSTRAINED` entries stay."""
        gone = frozenset(names)
        entries = (
            e if e is UNCONSTRAINED else tuple(n for n in entry_names(e) if n not in gone) for e in self._partitions
        )
        return PartitionSpec(*entries, unreduced=self.unreduced - gone, reduced=self.reduced - gone)


def _make(partitions: tuple[Any, ...], unreduced: frozenset[Any], reduced: frozenset[Any]) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)
