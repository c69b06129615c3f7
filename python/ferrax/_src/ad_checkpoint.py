"""Rematerialization."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ferrax import checkpoint_policies
from ferrax._checkpoint import checkpoint
from ferrax._src._public import names_of
from ferrax.ad_checkpoint import checkpoint_name, saved_residuals as saved_residuals

_others = names_of(__name__, "ferrax.ad_checkpoint", "ferrax.extend.core.primitives")


def checkpoint_name3(name: str, x: Any) -> Any:
    """`checkpoint_name`, the name first."""
    return checkpoint_name(x, name)


def remat3(
    f: Callable[..., Any] | None = None,
    /,
    policy: Callable[..., Any] | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
) -> Any:
    """`checkpoint`, with arguments in another order."""
    return checkpoint(f, policy=policy, static_argnums=static_argnums, static_argnames=static_argnames)


def __getattr__(name: str) -> Any:
    policy = None if name.startswith("_") else getattr(checkpoint_policies, name, None)
    return _others(name) if policy is None else policy
