"""Rematerialization."""

from typing import Any

from ferrax import checkpoint_policies
from ferrax._src._public import names_of
from ferrax.ad_checkpoint import saved_residuals as saved_residuals

_others = names_of(__name__, "ferrax.ad_checkpoint", "ferrax.extend.core.primitives")


def __getattr__(name: str) -> Any:
    policy = None if name.startswith("_") else getattr(checkpoint_policies, name, None)
    return _others(name) if policy is None else policy
