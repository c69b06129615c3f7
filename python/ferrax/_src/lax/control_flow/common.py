"""Caches of branches' programs, which tests clear: the core makes these programs, and keeps nothing of Python's."""

from __future__ import annotations

from typing import Any, NoReturn


class _NoCache:
    """A function that JAX caches, and that ferrax has no use for."""

    def __init__(self, name: str):
        self._name = name

    def cache_clear(self) -> None:
        """Forgets what is cached, which is nothing."""

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{__name__}.{self._name}: the core makes the programs of branches")


_dedup_consts = _NoCache("_dedup_consts")
_pad_constvars = _NoCache("_pad_constvars")
