"""What tests may change for all that runs after them in a process, of the library's own."""

from ferrax import _ferrax, _high_values, _vmappable, config, monitoring
from ferrax.config import _overrides

__all__ = ["forget_types", "settings", "types"]

_TYPES = (_vmappable.vmappables, _vmappable.spec_types, _high_values.classes)


def settings():
    """All that users can set, with its values."""
    listeners = (monitoring._events, monitoring._durations, monitoring._spans, monitoring._scalars)
    return {
        **config.values,
        "mesh": _overrides.mesh,
        "listeners": [list(kind) for kind in listeners],
    }


def types():
    """The types of users' values that are registered, which nothing takes back."""
    return [registered.copy() for registered in _TYPES]


def forget_types(but):
    """Forgets types of users' values, but those that were registered earlier."""
    for registered, earlier in zip(_TYPES, but, strict=True):
        registered.clear()
        registered.update(earlier)
    _ferrax.use_vmappable_types(bool(_vmappable.vmappables))
