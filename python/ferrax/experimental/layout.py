"""How arrays lie in memory, as libraries ask for it: ferrax's arrays are always row by row.

Read next: `ferrax/sharding/__init__.py` for the devices that arrays are on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ferrax._boundary import expose as _expose
from ferrax._prefixes import prefix_leaves
from ferrax.sharding._named import Sharding
from ferrax.tree_util import tree_flatten

__all__ = ["Format", "Layout", "with_layout_constraint"]


@dataclass(frozen=True)
class Layout:
    """The order of axes in memory.

    Args:
      major_to_minor: axes, the one with the largest steps first.
      tiling: sizes of tiles; empty for none.
      sub_byte_element_size_in_bits: of elements smaller than a byte that share bytes; 0 where they do not.

    Attributes:
      AUTO: stands for the layout that is chosen for an array.

    >>> import ferrax as jax
    >>> jax.experimental.layout.Layout((0, 1)) == jax.experimental.layout.Layout((0, 1))
    True
    """

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    AUTO: ClassVar[Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "major_to_minor", tuple(self.major_to_minor))

    def update(self, **kwargs: Any) -> Layout:
        """The layout with other parts."""
        return replace(self, **kwargs)

    @staticmethod
    def from_pjrt_layout(pjrt_layout: Any) -> Layout:
        """The layout that a library's object of XLA's says (`PjRtLayout`)."""
        said = pjrt_layout._xla_layout()
        return Layout(said.minor_to_major()[::-1], said.tiling(), said.element_size_in_bits())

    def check_compatible_aval(self, aval_shape: tuple[int, ...]) -> None:
        """Raises ValueError where an array of a shape has another number of axes."""
        if len(self.major_to_minor) != len(aval_shape):
            raise ValueError(
                f"Length of major_to_minor and the rank of the value should match. Got major_to_minor="
                f"{self.major_to_minor} and shape={tuple(aval_shape)}"
            )


class _Auto:
    def __repr__(self) -> str:
        return "AUTO"


Layout.AUTO = _Auto()


@dataclass(frozen=True)
class Format:
    """The devices that an array is on, and the order of its axes in memory.

    Args:
      layout: the order of axes; None for the default one.
      sharding: the devices.

    Raises:
      TypeError: these are no layout, or no sharding.
      ValueError: a layout without a sharding.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> jnp.ones((2, 3)).format.layout
    Layout(major_to_minor=(0, 1), tiling=(), sub_byte_element_size_in_bits=0)
    """

    layout: Any = None
    sharding: Any = None

    def __post_init__(self) -> None:
        if not (self.layout is None or self.layout is Layout.AUTO or isinstance(self.layout, Layout)):
            raise TypeError(
                "Invalid value received for the layout argument. Expected values are `None`, `Layout.AUTO` or an "
                f"instance of `Layout`. Got {self.layout} of type {type(self.layout)}"
            )
        if not (self.sharding is None or isinstance(self.sharding, Sharding)):
            raise TypeError(
                "Invalid value received for the sharding argument. Expected values are `None` or an instance of "
                f"`jax.Sharding`. Got {self.sharding} of type {type(self.sharding)}"
            )
        if isinstance(self.layout, Layout) and self.sharding is None:
            raise ValueError(
                f"Sharding has to be concrete when layout is of type {type(self.layout)}. Please pass a "
                "`jax.sharding.NamedSharding` or `jax.sharding.SingleDeviceSharding` to the sharding argument. Got "
                "sharding None"
            )


def row_by_row(shape: tuple[int, ...], sharding: Any) -> Format:
    """The format of an array of ferrax's."""
    return Format(Layout(tuple(range(len(shape))), ()), sharding)


def sharding_of(format: Format, shape: tuple[int, ...], function: str) -> Any:
    """The sharding that a format asks for, `None` for none.

    Args:
      format: the format.
      shape: shape of the array.
      function: who asks, for the error.

    Raises:
      ValueError: the layout is of another number of axes than the array.
      NotImplementedError: it is another one than row by row.
    """
    if isinstance(format.layout, Layout):
        _check_rows(format.layout, shape, function)
    return format.sharding


def _check_rows(layout: Layout, shape: tuple[int, ...], function: str) -> None:
    layout.check_compatible_aval(shape)
    if layout.major_to_minor != tuple(range(len(shape))) or layout.tiling:
        raise NotImplementedError(f"{function}: arrays of ferrax lie row by row, not in {layout}")


def _is_layout(value: Any) -> bool:
    return isinstance(value, Layout)


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """A tree of arrays with an order of axes in memory: ferrax has them row by row.

    Args:
      x: a tree of arrays.
      layouts: a `Layout`, or a tree of them.

    Returns:
      `x`.

    Raises:
      ValueError: one is no layout, or of another number of axes than its array, or they are no prefix of `x`.
      NotImplementedError: it is another one than row by row.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.layout import Layout, with_layout_constraint
    >>> with_layout_constraint(jnp.ones((1, 2)), Layout((0, 1)))
    Array([[1., 1.]], dtype=float32)
    """
    leaves, tree = tree_flatten(x)
    flat = prefix_leaves(layouts, x, _is_layout)
    for leaf, wanted in zip(leaves, flat, strict=True):
        if not isinstance(wanted, Layout):
            raise ValueError(
                f"layouts passed to `with_layout_constraint` must be of type `Layout`. Got [{type(wanted)}]"
            )
        try:
            wanted.check_compatible_aval(leaf.shape)
        except ValueError as error:
            text = (
                f"One of with_layout_constraint arguments is incompatible with its layout annotation {wanted}: {error}"
            )
            raise ValueError(text) from None
        _check_rows(wanted, leaf.shape, "with_layout_constraint")
    return tree.unflatten(leaves)


_expose(globals())
