"""Checkpoints that are written while a program goes on, as an interface; libraries such as Orbax implement it.

Writing arrays to TensorStore is not implemented here: those names can be imported, and say so when they are used.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any

from ferrax._boundary import expose as _expose
from ferrax._src._unprovided import unprovided_names

__all__ = ["BarrierTimeoutError", "GlobalAsyncCheckpointManagerBase", "is_remote_storage"]

_REMOTE = ("gs://", "s3://")


class BarrierTimeoutError(Exception):
    """Processes did not meet in time.

    >>> from ferrax.experimental.array_serialization.serialization import BarrierTimeoutError
    >>> issubclass(BarrierTimeoutError, Exception)
    True
    """


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """What writes checkpoints on a thread of its own; a new one waits for the one before.

    >>> from ferrax.experimental.array_serialization.serialization import GlobalAsyncCheckpointManagerBase
    >>> sorted(GlobalAsyncCheckpointManagerBase.__abstractmethods__)
    ['check_for_errors', 'deserialize', 'serialize', 'wait_until_finished']
    """

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raises what the thread has raised; does not wait for it."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Waits until everything is written."""

    @abc.abstractmethod
    def serialize(self, arrays: Any, tensorstore_specs: Any, *, on_commit_callback: Callable[[], None]) -> None:
        """Begins to write arrays, each where its spec says.

        Args:
          arrays: the arrays.
          tensorstore_specs: one for each.
          on_commit_callback: called when all are written.
        """

    @abc.abstractmethod
    def deserialize(
        self,
        shardings: Sequence[Any],
        tensorstore_specs: Sequence[dict[str, Any]],
        global_shapes: Sequence[tuple[int, ...]] | None = None,
        dtypes: Sequence[Any] | None = None,
    ) -> Any:
        """Reads arrays.

        Args:
          shardings: where each goes.
          tensorstore_specs: where each is.
          global_shapes: their shapes, where they differ from what is stored.
          dtypes: their dtypes, likewise.
        """


def is_remote_storage(tspec: dict[str, Any] | str) -> bool:
    """Whether a spec, or any within it, is of Google's or Amazon's storage.

    Args:
      tspec: a spec of TensorStore's, or a path.

    >>> from ferrax.experimental.array_serialization.serialization import is_remote_storage
    >>> is_remote_storage("gs://bucket/file"), is_remote_storage({"driver": "file", "path": "/tmp/x"})
    (True, False)
    """
    if isinstance(tspec, str):
        return tspec.startswith(_REMOTE)
    if tspec.get("driver") in ("gcs", "s3"):
        return True
    return any(is_remote_storage(v) for k, v in tspec.items() if isinstance(v, dict) or k == "base")


__getattr__ = unprovided_names(
    __name__,
    "AsyncManager GlobalAsyncCheckpointManager async_deserialize async_serialize get_tensorstore_spec "
    "run_deserialization run_serialization",
    "ferrax writes no arrays to TensorStore itself; orbax.checkpoint does",
)
_expose(globals())
