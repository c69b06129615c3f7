"""Events, and who is told of them."""

from ferrax import monitoring as _monitoring
from ferrax._src._public import names_of

__getattr__ = names_of(__name__, "ferrax.monitoring")


def get_event_listeners() -> list[_monitoring._Listener]:
    """The listeners of events."""
    return list(_monitoring._events)


def get_event_duration_listeners() -> list[_monitoring._Listener]:
    """The listeners of durations."""
    return list(_monitoring._durations)


def get_event_time_span_listeners() -> list[_monitoring._Listener]:
    """The listeners of time spans."""
    return list(_monitoring._spans)


def get_scalar_listeners() -> list[_monitoring._Listener]:
    """The listeners of numbers."""
    return list(_monitoring._scalars)
