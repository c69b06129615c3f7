"""Events that programs record and listeners that are told of them, as for collecting metrics.

ferrax records how long jitted functions take to be traced and compiled (and run for the first time), by JAX's names of
these events; everything else is the libraries'.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ferrax._boundary import expose as _expose

__all__ = [
    "clear_event_listeners",
    "record_event",
    "record_event_duration_secs",
    "record_event_time_span",
    "record_scalar",
    "register_event_duration_secs_listener",
    "register_event_listener",
    "register_event_time_span_listener",
    "register_scalar_listener",
    "unregister_event_duration_listener",
    "unregister_event_listener",
    "unregister_event_time_span_listener",
    "unregister_scalar_listener",
]

_Listener = Callable[..., None]

_events: list[_Listener] = []
_durations: list[_Listener] = []
_spans: list[_Listener] = []
_scalars: list[_Listener] = []


def _tell(listeners: list[_Listener], *args: Any, **kwargs: Any) -> None:
    # a listener may register others, or take itself off
    for listener in tuple(listeners):
        listener(*args, **kwargs)


def somebody_listens() -> bool:
    """Whether there are listeners of durations or of time spans."""
    return bool(_durations or _spans)


def took(event: str, seconds: float, name: str) -> None:
    """Records an event that ends now, of a function of a name."""
    end = time.time()
    record_event_duration_secs(event, seconds, fun_name=name)
    record_event_time_span(event, end - seconds, end, fun_name=name)


def _take_off(listeners: list[_Listener], callback: _Listener, what: str) -> None:
    # as in JAX, an AssertionError
    if callback not in listeners:
        raise AssertionError(f"{callback!r} is not registered as a listener of {what}")
    listeners.remove(callback)


def record_event(event: str, **kwargs: str | int) -> None:
    """Tells the listeners of events that one happened.

    Args:
      event: its name.
      **kwargs: what else is to be said.

    >>> import ferrax.monitoring as monitoring
    >>> monitoring.register_event_listener(print)
    >>> monitoring.record_event("checkpoint/saved")
    checkpoint/saved
    >>> monitoring.unregister_event_listener(print)
    """
    _tell(_events, event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tells the listeners of durations how long something took.

    Args:
      event: its name.
      duration: in seconds.
      **kwargs: what else is to be said.

    >>> import ferrax.monitoring as monitoring
    >>> monitoring.register_event_duration_secs_listener(print)
    >>> monitoring.record_event_duration_secs("data/loaded", 1.5)
    data/loaded 1.5
    >>> monitoring.unregister_event_duration_listener(print)
    """
    _tell(_durations, event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Tells the listeners of time spans when something began and ended.

    Args:
      event: its name.
      start_time: in seconds.
      end_time: in seconds.
      **kwargs: what else is to be said.

    >>> import ferrax.monitoring as monitoring
    >>> monitoring.register_event_time_span_listener(print)
    >>> monitoring.record_event_time_span("step", 1.0, 2.0)
    step 1.0 2.0
    >>> monitoring.unregister_event_time_span_listener(print)
    """
    _tell(_spans, event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Tells the listeners of scalars a value.

    Args:
      event: its name.
      value: the value.
      **kwargs: what else is to be said.

    >>> import ferrax.monitoring as monitoring
    >>> monitoring.register_scalar_listener(print)
    >>> monitoring.record_scalar("loss", 0.5)
    loss 0.5
    >>> monitoring.unregister_scalar_listener(print)
    """
    _tell(_scalars, event, value, **kwargs)


def register_event_listener(callback: _Listener) -> None:
    """Lets a function be called at every `record_event`.

    Args:
      callback: called as `callback(event, **kwargs)`.

    >>> import ferrax.monitoring as monitoring
    >>> seen = []
    >>> monitoring.register_event_listener(lambda event, **more: seen.append((event, more)))
    >>> monitoring.record_event("start", step=1)
    >>> monitoring.clear_event_listeners()
    >>> seen
    [('start', {'step': 1})]
    """
    _events.append(callback)


def register_event_duration_secs_listener(callback: _Listener) -> None:
    """Lets a function be called at every `record_event_duration_secs`.

    Args:
      callback: called as `callback(event, duration, **kwargs)`.

    >>> import ferrax.monitoring as monitoring
    >>> monitoring.register_event_duration_secs_listener(print)
    >>> monitoring.record_event_duration_secs("wait", 0.25)
    wait 0.25
    >>> monitoring.clear_event_listeners()
    """
    _durations.append(callback)


def register_event_time_span_listener(callback: _Listener) -> None:
    """Lets a function be called at every `record_event_time_span`.

    Args:
      callback: called as `callback(event, start_time, end_time, **kwargs)`.

    >>> import ferrax.monitoring as monitoring
    >>> monitoring.register_event_time_span_listener(print)
    >>> monitoring.record_event_time_span("epoch", 0.0, 9.0)
    epoch 0.0 9.0
    >>> monitoring.clear_event_listeners()
    """
    _spans.append(callback)


def register_scalar_listener(callback: _Listener) -> None:
    """Lets a function be called at every `record_scalar`.

    Args:
      callback: called as `callback(event, value, **kwargs)`.

    >>> import ferrax.monitoring as monitoring
    >>> monitoring.register_scalar_listener(print)
    >>> monitoring.record_scalar("accuracy", 1)
    accuracy 1
    >>> monitoring.clear_event_listeners()
    """
    _scalars.append(callback)


def unregister_event_listener(callback: _Listener) -> None:
    """Takes a listener of events off.

    Args:
      callback: the function that was registered.

    Raises:
      AssertionError: it is not registered.

    >>> import ferrax.monitoring as monitoring
    >>> monitoring.register_event_listener(print)
    >>> monitoring.unregister_event_listener(print)
    >>> monitoring.record_event("nobody listens")
    """
    _take_off(_events, callback, "events")


def unregister_event_duration_listener(callback: _Listener) -> None:
    """Takes a listener of durations off.

    Args, Raises: as in `unregister_event_listener`.

    >>> import ferrax.monitoring as monitoring
    >>> monitoring.register_event_duration_secs_listener(print)
    >>> monitoring.unregister_event_duration_listener(print)
    """
    _take_off(_durations, callback, "durations")


def unregister_event_time_span_listener(callback: _Listener) -> None:
    """Takes a listener of time spans off.

    Args, Raises: as in `unregister_event_listener`.

    >>> import ferrax.monitoring as monitoring
    >>> monitoring.register_event_time_span_listener(print)
    >>> monitoring.unregister_event_time_span_listener(print)
    """
    _take_off(_spans, callback, "time spans")


def unregister_scalar_listener(callback: _Listener) -> None:
    """Takes a listener of scalars off.

    Args, Raises: as in `unregister_event_listener`.

    >>> import ferrax.monitoring as monitoring
    >>> monitoring.register_scalar_listener(print)
    >>> monitoring.unregister_scalar_listener(print)
    """
    _take_off(_scalars, callback, "scalars")


def clear_event_listeners() -> None:
    """Takes every listener off.

    >>> import ferrax.monitoring as monitoring
    >>> monitoring.register_scalar_listener(print)
    >>> monitoring.clear_event_listeners()
    >>> monitoring.record_scalar("loss", 0.5)
    """
    for listeners in (_events, _durations, _spans, _scalars):
        listeners.clear()


_expose(globals())
