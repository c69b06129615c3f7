"""Whether a transformation is at work, and what `ferrax.core` and `ferrax.extend.core` have."""

from typing import Any

from ferrax import _ferrax, core as _core
from ferrax.extend import core as _extend_core


def trace_state_clean() -> bool:
    """Whether no transformation is at work."""
    return bool(_ferrax.current_trace() == 0)


def __getattr__(name: str) -> Any:
    if name in _core.__all__:
        return getattr(_core, name)
    return getattr(_extend_core, name)
