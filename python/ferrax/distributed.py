"""Programs of several processes: `initialize` and `shutdown`. Only one process is there yet."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ferrax._boundary import expose as _expose

__all__ = ["initialize", "is_initialized", "shutdown"]

_started = False


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> None:
    """Connects the processes of a program; a program of one process is connected at once.

    Args:
      coordinator_address: address of the first process, `"host:port"`.
      num_processes: number of processes.
      process_id: number of this one.
      local_device_ids: the devices that this process uses; all by default.
      cluster_detection_method: accepted for compatibility.
      initialization_timeout: accepted for compatibility: nobody is waited for.
      heartbeat_timeout_seconds: accepted for compatibility.
      shutdown_timeout_seconds: accepted for compatibility.
      coordinator_bind_address: accepted for compatibility.
      slice_index: accepted for compatibility.
      partition_index: accepted for compatibility.

    Raises:
      RuntimeError: it was called before.
      ValueError: the arguments do not say how many processes there are, or which this is.
      NotImplementedError: there are several processes.

    >>> import ferrax as jax
    >>> jax.distributed.initialize("localhost:1234", num_processes=1, process_id=0)
    >>> jax.distributed.is_initialized()
    True
    >>> jax.distributed.shutdown()
    """
    global _started
    if _started:
        raise RuntimeError("distributed.initialize should only be called once.")
    address = coordinator_address or os.environ.get("JAX_COORDINATOR_ADDRESS")
    if address is None:
        raise ValueError("coordinator_address should be defined.")
    if num_processes is None:
        raise ValueError("Number of processes must be defined.")
    if process_id is None:
        raise ValueError("The process id of the current process must be defined.")
    if num_processes != 1:
        raise NotImplementedError(
            f"jax.distributed.initialize with {num_processes} processes is not implemented yet: it needs a platform "
            "whose "
            "plugin connects them"
        )
    if process_id != 0:
        raise ValueError(f"process_id must be 0 in a program of one process, got {process_id}")
    _started = True


def is_initialized() -> bool:
    """Whether `initialize` was called.

    >>> import ferrax as jax
    >>> jax.distributed.is_initialized()
    False
    """
    return _started


def shutdown() -> None:
    """Ends what `initialize` began.

    >>> import ferrax as jax
    >>> jax.distributed.shutdown()
    """
    global _started
    _started = False


_expose(globals())
