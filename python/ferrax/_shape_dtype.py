"""`ShapeDtypeStruct`: what functions are traced and lowered for where there is no array.

Read next: `_api.py`, whose `eval_shape` gives them, and `_stages.py`, whose `lower` takes them.
"""

from __future__ import annotations

import math
from typing import Any

from ferrax import _ferrax
from ferrax._shapes import static_size

__all__ = ["ShapeDtypeStruct", "struct_of"]


def _known_sharding(sharding: Any) -> tuple[Any, Any]:
    """The sharding, also of a format, and the format's layout."""
    from ferrax.experimental.layout import Format, Layout
    from ferrax.sharding import NamedSharding, PartitionSpec, Sharding

    if not isinstance(sharding, (Sharding, PartitionSpec, Format)):
        raise ValueError(
            "sharding should be an instance of `jax.sharding.Sharding`, `jax.sharding.PartitionSpec` or "
            f"`jax.experimental.layout.Format`. Got {sharding!r} of type {type(sharding)}."
        )
    if getattr(sharding, "layout", None) is Layout.AUTO:
        raise TypeError(
            f"`Layout.AUTO` cannot be used in place of a device-local layout in a `ShapeDtypeStruct`. Got {sharding}"
        )
    if isinstance(sharding, PartitionSpec):
        from ferrax.sharding._context import context_mesh

        mesh = context_mesh(physical=False)
        if mesh is None:
            raise TypeError(
                "When specifying PartitionSpec to `ShapeDtypeStruct`, the context mesh cannot be empty. Please use "
                "`jax.set_mesh` to set the mesh context."
            )
        return NamedSharding(mesh, sharding), None
    return (sharding.sharding, sharding.layout) if isinstance(sharding, Format) else (sharding, None)


class ShapeDtypeStruct:
    """Shape and dtype of an array, without its data.

    Args:
      shape: dimensions.
      dtype: element type.
      sharding: placement, or `None`; in a `Format` with the order of axes in memory, too.
      weak_type: whether the dtype yields to others in promotion.
      manual_axis_type: accepted for compatibility.
      is_ref: whether it tells of a reference to such an array, for `lower` and `trace` of a jitted function.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> jax.ShapeDtypeStruct((2, 3), jnp.float32)
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    # with the text that `help` shows
    __slots__ = {
        "_layout": "Order of the axes in memory, or `None`.",
        "dtype": "Type of the elements, a NumPy dtype.",
        "is_ref": "Whether it tells of a reference to such an array.",
        "manual_axis_type": "As it was given.",
        "shape": "Sizes of the axes.",
        "sharding": "Placement, or `None`.",
        "weak_type": "Whether the dtype yields to others in promotion.",
    }

    def __init__(
        self,
        shape: Any,
        dtype: Any,
        *,
        sharding: Any = None,
        weak_type: bool = False,
        manual_axis_type: Any = None,
        is_ref: bool = False,
    ):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        self.shape = tuple(map(static_size, shape))
        self.dtype = _ferrax.dtype_as_written(dtype)
        self.sharding: Any
        self._layout: Any
        self.sharding, self._layout = (None, None) if sharding is None else _known_sharding(sharding)
        self.weak_type = weak_type
        self.manual_axis_type = manual_axis_type
        self.is_ref = is_ref

    size = property(lambda self: math.prod(self.shape), doc="Number of elements.")
    ndim = property(lambda self: len(self.shape), doc="Number of axes.")

    @property
    def format(self) -> Any:
        """Layout and placement, each `None` where it is not said."""
        from ferrax.experimental.layout import Format

        return Format(self._layout, self.sharding)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        place = f", sharding={self.sharding}" if self.sharding is not None else ""
        place += f", format={self._layout}" if self._layout is not None else ""
        of_ref = f", is_ref={self.is_ref}" if self.is_ref else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{place}{weak}{of_ref})"

    __str__ = __repr__

    def _key(self) -> tuple[Any, ...]:
        return (self.shape, self.dtype, self.sharding, self._layout, self.weak_type, self.is_ref)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """The shape, dtype and weak type of an array or number, and its placement if it is committed."""
        from ferrax._api import typeof

        aval = typeof(x)
        placed = not _ferrax.is_tracer(x) and getattr(x, "committed", False)
        return cls(aval.shape, aval.dtype, sharding=x.sharding if placed else None, weak_type=aval.weak_type)

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """A copy with some fields changed.

        Raises:
          TypeError: there is no such field.
          ValueError: a sharding replaces a format, whose layout would be lost.
        """
        fields = {name: getattr(self, name) for name in self.__slots__ if name != "_layout"}
        unknown = set(changes) - set(fields)
        if unknown:
            raise TypeError(f"ShapeDtypeStruct has no field {sorted(unknown)[0]!r}")
        if self._layout is not None:
            sharding = changes.get("sharding")
            if sharding is not None and not hasattr(sharding, "layout"):
                raise ValueError(
                    f"You are updating ShapeDtypeStruct with a {type(sharding)} when the original ShapeDtypeStruct had "
                    f"a concrete layout {self.format}, which would be lost. Make a new ShapeDtypeStruct instead."
                )
            fields["sharding"] = self.format
        return ShapeDtypeStruct(**{**fields, **changes})


def struct_of(aval: Any) -> ShapeDtypeStruct:
    """What a type says, as a `ShapeDtypeStruct`."""
    sharding = aval.sharding if aval._spread else None
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=sharding)
