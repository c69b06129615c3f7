"""Transfer guards: what `jax_transfer_guard` and its three parts say of data that goes from one memory to another.

What a user hands to an operation that runs at once goes from the host to a device: Python's numbers, NumPy's arrays,
the number that `jnp.zeros` fills with. `device_put` and `device_get` are explicit transfers, everything else is
implicit. On a CPU, reading an array is none. Read next: `_watch.py`, which sees the transfers.
"""

from __future__ import annotations

from typing import Any

from ferrax import _ferrax
from ferrax._frames import user_frame
from ferrax._logging import logger as _logger_of
from ferrax.config import config
from ferrax.errors import JaxRuntimeError

__all__ = ["active", "check", "is_host_data"]

_logger = _logger_of("ferrax.transfers")


def active(direction: str) -> bool:
    """Whether there is anything to say of transfers.

    Args:
      direction: `"host_to_device"`, `"device_to_device"` or `"device_to_host"`.

    Returns:
      A bool.

    >>> active("host_to_device")
    False
    """
    return config.read(f"jax_transfer_guard_{direction}") not in (None, "allow")


def is_host_data(x: Any) -> bool:
    """Whether an object is a number or an array of the host's.

    Args:
      x: the object.

    Returns:
      A bool.

    >>> import numpy as np
    >>> is_host_data(1.0), is_host_data(np.ones(2)), is_host_data("a")
    (True, True, False)
    """
    return not isinstance(x, _ferrax.Array) and (
        isinstance(x, (bool, int, float, complex)) or hasattr(x, "__array_interface__")
    )


def check(direction: str, aval: Any, device: Any, *, explicit: bool = False) -> None:
    """Allows a transfer, logs it, or refuses it.

    Args:
      direction: as for `active`.
      aval: the type of the data.
      device: where it goes.
      explicit: whether the user asked for the transfer itself.

    Raises:
      JaxRuntimeError: the guard disallows it.

    >>> check("host_to_device", "float32[2]", "the CPU")
    """
    level = config.read(f"jax_transfer_guard_{direction}") or "allow"
    words = direction.replace("_", "-")
    if level == "disallow_explicit" or (level == "disallow" and not explicit):
        way = "even an explicit one" if explicit else "jax.device_put and jax.device_get transfer explicitly"
        raise JaxRuntimeError(
            f"INVALID_ARGUMENT: Disallowed {words} transfer: aval={aval!r}, to {device}; {way} (the setting "
            f"jax_transfer_guard_{direction} is {level!r})."
        )
    if level == "log_explicit" or (level == "log" and not explicit):
        frame = user_frame()
        _logger.warning(
            "%s transfer: aval=%r, to %s, at %s:%d", words, aval, device, frame.f_code.co_filename, frame.f_lineno
        )
