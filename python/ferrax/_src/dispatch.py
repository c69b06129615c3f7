"""Waiting for effects."""

from ferrax._api import effects_barrier as wait_for_tokens
from ferrax.interpreters.xla import apply_primitive as apply_primitive

__all__ = ["apply_primitive", "wait_for_tokens"]
