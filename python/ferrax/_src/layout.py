"""Layouts in memory."""

from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "AutoLayout LayoutOptions get_layout_for_vmap",
    "arrays are laid out row after row",
    names_of(__name__, "ferrax.experimental.layout"),
)
