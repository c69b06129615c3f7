"""Waiting for effects, and primitives that are applied."""

import enum

from ferrax._api import effects_barrier as wait_for_tokens
from ferrax._src._public import names_of
from ferrax.interpreters.xla import apply_primitive as apply_primitive

__all__ = ["ArrayCopySemantics", "apply_primitive", "wait_for_tokens"]

__getattr__ = names_of(__name__, "ferrax.extend.core.primitives")


class ArrayCopySemantics(enum.IntEnum):
    """What a transfer may do with its operand; arrays are immutable, so that none differs in what one sees."""

    ALWAYS_COPY = 0
    REUSE_INPUT = 1
    DONATE_INPUT = 2
