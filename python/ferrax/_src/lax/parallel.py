"""Collectives."""

from collections.abc import Callable
from typing import Any

from ferrax import lax, numpy
from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names
from ferrax.lax import all_gather


class Future:
    """A collective that has been started. The embedded engine's devices share one memory: it is done at once.

    Args:
      value: its result.
    """

    def __init__(self, value: Any):
        self._value = value

    def done(self) -> Any:
        """The result."""
        return self._value

    def __repr__(self) -> str:
        return f"Future({self._value!r})"


def _started(collective: Callable[..., Any]) -> Callable[..., Future]:
    def start(*args: Any, **kwargs: Any) -> Future:
        return Future(collective(*args, **kwargs))

    start.__name__ = f"{collective.__name__}_start"
    start.__doc__ = f"Starts `lax.{collective.__name__}`, which takes the same arguments."
    return start


all_gather_start = _started(lax.all_gather)
all_to_all_start = _started(lax.all_to_all)
pbroadcast_start = _started(lax.pbroadcast)
ppermute_start = _started(lax.ppermute)
psum_scatter_start = _started(lax.psum_scatter)
psum_start = _started(lax.psum)


def all_gather_invariant(x: Any, axis_name: Any, *, axis: int = 0, tiled: bool = False) -> Any:
    """The rows of a mapped axis, the same on all devices along it."""
    return all_gather(x, axis_name, axis=axis, tiled=tiled, to="invariant")


def _position(extreme: Any, x: Any, axis_name: Any) -> Any:
    """Where along a mapped axis each element is the extreme one; the first place counts."""
    if isinstance(axis_name, (tuple, list)):
        raise TypeError(f"the position of an extreme is along one axis, got {axis_name}")
    place = lax.axis_index(axis_name)
    return lax.pmin(numpy.where(extreme == x, place, numpy.iinfo(place.dtype).max), axis_name)


def pargmin(x: Any, axis_name: Any) -> Any:
    """Where along a mapped axis each element is least."""
    return _position(lax.pmin(x, axis_name), x, axis_name)


def pargmax(x: Any, axis_name: Any) -> Any:
    """Where along a mapped axis each element is greatest."""
    return _position(lax.pmax(x, axis_name), x, axis_name)


__getattr__ = unprovided_names(
    __name__,
    "all_gather_invariant_p all_gather_reduced all_gather_reduced_p preduced unreduced_psum "
    "unreduced_psum_scatter vary_unreduced_cast",
    "arrays are summed over axes at once",
    names_of(__name__, "ferrax.lax", "ferrax.extend.core.primitives"),
)
