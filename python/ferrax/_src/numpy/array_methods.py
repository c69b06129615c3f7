"""Functions of `ferrax.numpy`, under the name of JAX's file `array_methods`, and bases for `x.at` of other types."""

import abc
import functools
from collections.abc import Callable
from typing import Any

from ferrax import numpy as jnp
from ferrax._src._public import names_of

__getattr__ = names_of(__name__, "ferrax.numpy")


class _IndexUpdateHelper(abc.ABC):  # noqa: B024 (for `register`)
    """What `x.at` is, `x.at` of an array included."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> "_IndexUpdateRef":
        return _IndexUpdateRef(self.array, index)

    def __repr__(self) -> str:
        return f"_IndexUpdateHelper({self.array!r})"


class _IndexUpdateRef(abc.ABC):  # noqa: B024 (for `register`)
    """What `x.at[i]` is, `x.at[i]` of an array included: it has all of its methods."""

    def __init__(self, array: Any, index: Any) -> None:
        self.array, self.index = array, index

    def __repr__(self) -> str:
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"


def _method(name: str, core: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(core)
    def method(self: _IndexUpdateRef, *args: Any, **kwargs: Any) -> Any:
        return core(jnp.asarray(self.array).at[self.index], *args, **kwargs)

    return method


_IndexUpdateHelper.register(type(jnp.zeros(0).at))
_IndexUpdateRef.register(_core := type(jnp.zeros(0).at[()]))
for _name in dir(_core):
    if not _name.startswith("_"):
        setattr(_IndexUpdateRef, _name, _method(_name, getattr(_core, _name)))
