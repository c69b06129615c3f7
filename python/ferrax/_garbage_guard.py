"""`array_garbage_collection_guard`: what happens where Python's garbage collector deletes arrays.

An array that a cycle of references holds keeps its memory until a collection. Arrays have no part in collections
themselves: those that live are counted before each of them, and after it. Read next: `config.py`.
"""

from __future__ import annotations

import collections
import gc
import os
import sys
import threading
from typing import Any

from ferrax import _ferrax
from ferrax.config import config

_Counts = collections.Counter[str]


class _Before(threading.local):
    """What lived when the collection began that runs on this thread."""

    counts: _Counts | None = None


_before = _Before()


def _living() -> _Counts:
    return collections.Counter(str(_ferrax.typeof(x)) for x in _ferrax.live_arrays())


def _watch(phase: str, _: Any) -> None:
    """Called by Python when a collection begins and ends."""
    if phase == "start":
        guarded = config.read("jax_array_garbage_collection_guard") in ("log", "fatal")
        _before.counts = _living() if guarded else None
    elif _before.counts is not None:
        gone, _before.counts = _before.counts - _living(), None
        for kind in gone.elements():
            print(
                "`jax.Array` was deleted by the Python garbage collector instead of reference counting: a cycle of "
                f"references held {kind}. Break the cycle, so that the memory is free as soon as nobody needs it.",
                file=sys.stderr,
                flush=True,
            )
        if gone and config.read("jax_array_garbage_collection_guard") == "fatal":
            os.abort()


def install() -> None:
    """Has collections watched from now on.

    >>> from ferrax import _garbage_guard
    >>> _garbage_guard.install()
    >>> _garbage_guard._watch in gc.callbacks
    True
    """
    if _watch not in gc.callbacks:
        gc.callbacks.append(_watch)
