"""Backends: there is nothing that has to be set up before devices are asked for."""

from typing import Any

from ferrax.extend.backend import backends as backends, get_backend as get_backend

#: Clients of XLA that have been made: none.
_backends: dict[str, Any] = {}
