"""What `export` asks of a call besides its types: the calling convention, donation, and functions that it calls itself.

Read next: `_exported.py`, which asks.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["check_donation", "convention", "note_use", "noting"]

OLDEST, NEWEST = 9, 10

#: Platforms of JAX's whose programs can reuse the memory of donated arguments.
_DONATING = frozenset(["cpu", "cuda", "rocm", "tpu", "neuron"])


class _Traces(threading.local):
    """For each trace of this thread for an export, whether it called a function that depends on the call."""

    def __init__(self) -> None:
        self.used: list[bool] = []


_traces = _Traces()
#: Jitted functions whose traces called such a function; they are kept, and a later export does not trace again.
_known: weakref.WeakSet[Any] = weakref.WeakSet()


@contextlib.contextmanager
def noting(jitted: Any) -> Iterator[list[bool]]:
    """While a function is traced for an export, learns whether it calls a function that depends on sizes or platforms.

    Args:
      jitted: the function.

    Yields:
      A list, whose one item says so at the end.
    """
    found = [False]
    _traces.used.append(False)
    try:
        yield found
    finally:
        if _traces.used.pop():
            _known.add(jitted)
        found[0] = jitted in _known


def note_use() -> None:
    """Says that such a function is called."""
    _traces.used[:] = [True] * len(_traces.used)


def convention() -> int:
    """The version of the calling convention that is asked for.

    Raises:
      ValueError: there is none of this number.
    """
    from ferrax.config import config

    version: int = config.jax_export_calling_convention_version
    if not OLDEST <= version <= NEWEST:
        raise ValueError(
            f"The requested export calling convention version {version} is outside the range of supported versions "
            f"[{OLDEST}..{NEWEST}]"
        )
    return version


def check_donation(platforms: Sequence[str], donated: Any) -> None:
    """Raises where arguments are donated, and only some of the platforms can use that.

    Args:
      platforms: names.
      donated: positions of donated arguments.

    Raises:
      NotImplementedError: so it is.
    """
    using = [p for p in platforms if p in _DONATING]
    if donated and using and len(using) != len(platforms):
        raise NotImplementedError(
            "In multi-platform lowering either all or no lowering platforms should support donation: of "
            f"{list(platforms)}, {using} do"
        )
