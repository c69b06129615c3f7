"""Callbacks."""

from ferrax._callbacks import pure_callback as pure_callback
