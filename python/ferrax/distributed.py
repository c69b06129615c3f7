"""Programs of several processes: `initialize` connects them, `shutdown` ends that.

Process 0 runs the coordinator. Processes know each other's devices, meet at barriers and exchange values
(`jax.experimental.multihost_utils`); a process that dies makes the others' next request an error that names it. Plugins
that start after it have the devices of all processes, and arrays over them. Read next: `_coordination.py`.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Any

from ferrax import _ferrax, _processes
from ferrax._boundary import expose as _expose
from ferrax.errors import JaxRuntimeError

__all__ = ["initialize", "is_initialized", "shutdown"]


class State:
    """The process among others: number 0 of 1, without a client or a service, until `initialize` was called."""

    process_id: int = 0
    num_processes: int = 1
    service: Any = None
    client: Any = None
    preemption_sync_manager: Any = None
    coordinator_address: str | None = None
    partition_index: int | None = None

    def initialize(self, *args: Any, **kwargs: Any) -> None:
        """As `ferrax.distributed.initialize`."""
        initialize(*args, **kwargs)

    def shutdown(self) -> None:
        """As `ferrax.distributed.shutdown`."""
        shutdown()


global_state = State()


def _slurm() -> dict[str, Any] | None:
    """What SLURM tells its processes."""
    names = ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID")
    if not all(n in os.environ for n in names):
        return None
    job, nodes, count, process, local = (os.environ[n] for n in names)
    port = os.environ.get("JAX_COORDINATOR_PORT") or str(int(job) % 2**12 + 65535 - 2**12 + 1)
    prefix, bracket, rest = nodes.partition("[")
    first = nodes.split(",")[0]
    if bracket and "," not in prefix:
        first = prefix + rest.replace("]", ",").replace("-", ",").split(",")[0]
    return {"address": f"{first}:{port}", "count": int(count), "process": int(process), "local": int(local)}


def _open_mpi() -> dict[str, Any] | None:
    """What Open MPI tells its processes."""
    names = ("OMPI_MCA_orte_hnp_uri", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")
    if not all(n in os.environ for n in names):
        return None
    uri, count, process, local = (os.environ[n] for n in names)
    job = int(uri.split(".", maxsplit=1)[0])
    host = uri.split(";")[1].split(",")[0].split("://")[-1].rpartition(":")[0]
    port = os.environ.get("JAX_COORDINATOR_PORT") or str(job % 2**12 + 65535 - 2**12 + 1)
    return {"address": f"{host.strip('[]')}:{port}", "count": int(count), "process": int(process), "local": int(local)}


_CLUSTERS = {"slurm": _slurm, "ompi": _open_mpi}


def _detected(method: str | None) -> dict[str, Any]:
    """What the cluster that started this process says of it."""
    if method == "deactivate":
        return {}
    if method is not None and method not in _CLUSTERS:
        raise NotImplementedError(
            f"jax.distributed.initialize(cluster_detection_method={method!r}) is not implemented: processes are found "
            f"by {', '.join(map(repr, _CLUSTERS))}, or say themselves which they are"
        )
    for find in [_CLUSTERS[method]] if method else _CLUSTERS.values():
        found = find()
        if found is not None:
            return found
    return {}


def _gpus(numbers: Sequence[int] | None, own: int | None) -> None:
    """Leaves this process some of the GPUs that it could see, by the variable that the driver reads when it starts.

    Args:
      numbers: which of them, as the user says.
      own: the number of the process on its machine, where its cluster says one: it gets the GPU of this number, unless
        it has been given one already.

    Raises:
      ValueError: it does not see so many.
    """
    text = os.environ.get("CUDA_VISIBLE_DEVICES")
    seen = None if text is None else [name for name in text.split(",") if name]
    if numbers is None:
        if own is None or (seen is not None and len(seen) <= max(own, 1)):
            return
        numbers = [own]
    missing = [n for n in numbers if n < 0 or (seen is not None and n >= len(seen))]
    if missing:
        of = "" if seen is None else f", and CUDA_VISIBLE_DEVICES={text} leaves {len(seen)}"
        means = f"local_device_ids are numbers of GPUs that the process sees, from 0 on{of}"
        raise ValueError(f"{means}; got {missing[0]}.")
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(str(n) if seen is None else seen[n] for n in numbers)


def _local_ids(given: int | Sequence[int] | None) -> list[int] | None:
    text = os.environ.get("JAX_LOCAL_DEVICE_IDS")
    if given is None and text:
        given = [int(n) for n in text.split(",")]
    if given is None or isinstance(given, int):
        return None if given is None else [given]
    return list(given) or None


def _whole(name: str, value: Any, what: str) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{name} must be a {what} int. Got {name}={value} of type {type(value)}.")
    return value


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
    """Connects the processes of a program. Process 0 runs the coordinator, and all wait until all are there.

    Devices of plugins are those of all processes from then on, and arrays may lie over them; of the embedded
    CPU, those of others are only counted.

    Args:
      coordinator_address: address of process 0, `"host:port"`; the variable `JAX_COORDINATOR_ADDRESS` by default, then
        what SLURM or Open MPI say, as of the number of processes and this one's.
      num_processes: number of processes.
      process_id: number of this one.
      local_device_ids: number or numbers of the GPUs that this process uses, of those that it sees: the others are
        left out of `CUDA_VISIBLE_DEVICES`. By default what the variable `JAX_LOCAL_DEVICE_IDS` says, then the one GPU
        that has the process's number on its machine, where SLURM or Open MPI started it, then all. A CPU's devices are
        not meant.
      cluster_detection_method: `"slurm"`, `"ompi"`, or `"deactivate"`, which looks for neither.
      initialization_timeout: seconds in which all processes have to be there.
      heartbeat_timeout_seconds: seconds without a sign of life after which a process counts as dead.
      shutdown_timeout_seconds: seconds that a process that ends waits for the others.
      coordinator_bind_address: address that process 0 listens at; the coordinator's port on all addresses by default.
      slice_index: the former name of `partition_index`.
      partition_index: number of the part of the machine that the process is in; noted.

    Raises:
      RuntimeError: it was called before, or devices of a plugin were used before it.
      ValueError: it is not known how many processes there are, or which this is, or it sees no such GPUs.
      JaxRuntimeError: the coordinator or a process is not there in time.

    >>> import ferrax as jax
    >>> jax.distributed.initialize("localhost:12345", num_processes=1, process_id=0)
    >>> jax.distributed.is_initialized()
    True
    >>> jax.distributed.shutdown()
    """
    from ferrax._coordination import Client, Service, address_of

    state = global_state
    if state.client is not None or state.service is not None:
        raise RuntimeError("distributed.initialize should only be called once.")
    address = coordinator_address or os.environ.get("JAX_COORDINATOR_ADDRESS")
    local = _local_ids(local_device_ids)
    known = None not in (address, num_processes, process_id, local)
    said = {} if known else _detected(cluster_detection_method)
    address = address or said.get("address")
    num_processes = said.get("count") if num_processes is None else num_processes
    process_id = said.get("process") if process_id is None else process_id
    if address is None:
        raise ValueError("coordinator_address should be defined.")
    if num_processes is None:
        raise ValueError("Number of processes must be defined.")
    if process_id is None:
        raise ValueError("The process id of the current process must be defined.")
    process, count = _whole("process_id", process_id, "nonnegative"), _whole("num_processes", num_processes, "positive")
    if not 0 <= process < count:
        raise ValueError(
            "process_id and num_processes must be nonnegative, with process_id < num_processes. Got "
            f"process_id={process}, num_processes={count}."
        )
    if count > 1 or local:
        _ferrax.require_no_plugin_in_use()
    _gpus(local, said.get("local"))
    if process == 0:
        default = f"[::]:{address_of(address)[1]}"
        bind = coordinator_bind_address or os.environ.get("JAX_COORDINATOR_BIND_ADDRESS") or default
        state.service = Service(bind, count, heartbeat_timeout_seconds)
    client = Client(
        address, process, count, initialization_timeout, heartbeat_timeout_seconds, shutdown_timeout_seconds
    )
    try:
        client.connect()
    except BaseException:
        _end_service()
        raise
    state.process_id, state.num_processes, state.coordinator_address = process, count, address
    state.client = client
    state.partition_index = slice_index if partition_index is None else partition_index
    _processes.joined(process, count, client)
    atexit.register(_at_exit)


def _end_service() -> None:
    if global_state.service is not None:
        global_state.service.shutdown()
        global_state.service = None


def _at_exit() -> None:
    """Leaves as `shutdown` does; a process that ends with an error does not wait: for the others it has died."""
    client = global_state.client
    if client is not None and getattr(sys, "last_value", None) is not None:
        client.abandon()
    with contextlib.suppress(JaxRuntimeError):
        shutdown()


def is_initialized() -> bool:
    """Whether `initialize` was called.

    >>> import ferrax as jax
    >>> jax.distributed.is_initialized()
    False
    """
    return global_state.client is not None


def shutdown() -> None:
    """Ends what `initialize` began, when all processes do; does nothing without it.

    Raises:
      JaxRuntimeError: the others do not end in time, or one of them died.

    >>> import ferrax as jax
    >>> jax.distributed.shutdown()
    """
    state = global_state
    client, state.client = state.client, None
    try:
        if client is not None:
            _ferrax.wait_for_runs(client.leaving)
            client.shutdown()
    finally:
        _end_service()
        state.process_id, state.num_processes, state.coordinator_address = 0, 1, None
        _processes.joined(0, 1, None)


_expose(globals())
