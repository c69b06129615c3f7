"""What type checkers know of transformed functions: they keep the parameters of the function, and mostly its result.

Nothing here runs. Read next: `_api.py`, `_derivatives.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

if TYPE_CHECKING:
    from ferrax._stages import CacheInfo, Lowered, Traced

__all__ = ["Jitted", "P", "R"]

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Jitted(Protocol[P, R_co]):
    """A function that `jit` has compiled."""

    __name__: str
    __wrapped__: Callable[..., Any]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Runs the function."""
        ...

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Jitted[P, R_co]: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> Callable[..., R_co]: ...

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The program for arguments, or for their shapes and dtypes, lowered."""
        ...

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """The program for arguments, or for their shapes and dtypes."""
        ...

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shapes and dtypes of the result."""
        ...

    def cache_info(self) -> CacheInfo:
        """Counters of the function's programs."""
        ...

    def clear_cache(self) -> None:
        """Drops the function's programs."""
        ...
