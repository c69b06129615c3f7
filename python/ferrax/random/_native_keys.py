"""What arrays of keys of the default generator have besides an array's members: their data and their generator.

Read next: `_keys.py`.
"""

from __future__ import annotations

from typing import Any

import ferrax.numpy as jnp
from ferrax import _ferrax
from ferrax.random._generators import IMPLS, PRNGImpl
from ferrax.random._keys import unwrapped

__all__: list[str] = []


def _base_array(self: Any) -> Any:
    """The data of the keys, with the words of each along the last axis; deleted where the keys are."""
    if self.is_deleted():
        data = jnp.empty((*self.shape, 2), jnp.uint32)
        data.delete()
        return data
    return unwrapped(self)


def _impl(self: Any) -> PRNGImpl:
    """The generator that the keys belong to."""
    return IMPLS["threefry2x32"]


for _name, _member in {"_base_array": property(_base_array), "_impl": property(_impl)}.items():
    setattr(_ferrax.PRNGKeyArray, _name, _member)
