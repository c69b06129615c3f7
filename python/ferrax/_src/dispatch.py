"""Waiting for effects, and primitives that are applied."""

from ferrax._api import effects_barrier as wait_for_tokens
from ferrax._src._public import names_of
from ferrax.interpreters.xla import apply_primitive as apply_primitive

__all__ = ["apply_primitive", "wait_for_tokens"]

__getattr__ = names_of(__name__, "ferrax.extend.core.primitives")
