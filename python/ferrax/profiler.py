"""Traces of what a program does when, as Chrome and as XLA's profiler write them, and profiles of the memory of arrays.

A trace has what is seen from Python: the annotations of this module, the compilations of jitted functions, and the
bytes in use whenever one of these is noted. What runs inside a program is not in it. Read next: `_memory_profile.py`.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import logging
import os
import pathlib
import platform
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ferrax import _devices
from ferrax._boundary import expose as _expose
from ferrax._logging import logger as _logger_of
from ferrax._memory_profile import live_memory_profile
from ferrax._profile_data import (
    ProfileData as ProfileData,
    ProfileEvent as ProfileEvent,
    ProfilePlane as ProfilePlane,
    written,
)
from ferrax.config import config
from ferrax.version import __version__

__all__ = [
    "ProfileData",
    "ProfileEvent",
    "ProfileOptions",
    "ProfilePlane",
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "device_memory_profile",
    "register_subprocess",
    "save_device_memory_profile",
    "start_server",
    "start_trace",
    "stop_server",
    "stop_trace",
    "trace",
]

F = TypeVar("F", bound=Callable[..., Any])

_JIT = _logger_of("ferrax.jit")


class ProfileOptions:
    """How a trace is taken.

    `host_tracer_level` of 0 leaves the spans of annotations out, `session_id` names the folder of the trace. Calls of
    Python functions are in no trace, whatever `python_tracer_level` says. Nothing heeds the others.

    Attributes:
      duration_ms, enable_hlo_proto, host_tracer_level, include_dataset_ops, python_tracer_level: as above.
      raise_error_on_start_failure, repository_path, session_id, start_timestamp_ns: likewise.
      advanced_configuration: further options by name.

    >>> import ferrax as jax
    >>> options = jax.profiler.ProfileOptions()
    >>> options.host_tracer_level = 0
    """

    duration_ms = start_timestamp_ns = 0
    enable_hlo_proto = include_dataset_ops = True
    host_tracer_level = 2
    python_tracer_level = 1
    raise_error_on_start_failure = False
    repository_path = session_id = ""
    # an object has a dictionary of its own
    advanced_configuration: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self) -> None:
        self.advanced_configuration = {}


_UNHEEDED = [name for name in vars(ProfileOptions) if not name.startswith("_")]
for _name in ("host_tracer_level", "python_tracer_level", "session_id"):
    _UNHEEDED.remove(_name)


def _checked(options: ProfileOptions | None) -> ProfileOptions:
    """The options, of which only those that are heeded may differ from their defaults."""
    options, plain = ProfileOptions() if options is None else options, ProfileOptions()
    if not isinstance(options, ProfileOptions):
        raise TypeError(f"profiler_options must be a ProfileOptions, got {type(options).__name__}")
    for name in _UNHEEDED:
        if getattr(options, name) != getattr(plain, name):
            raise NotImplementedError(f"ProfileOptions.{name} is not implemented: nothing would heed it")
    return options


class _Session:
    """A trace that is being taken."""

    def __init__(self, log_dir: str, perfetto: bool, options: ProfileOptions):
        self.log_dir, self.perfetto = log_dir, perfetto
        self.spans, self.name = options.host_tracer_level > 0, options.session_id
        self.start, self.began = time.perf_counter_ns(), time.time_ns()
        self.events: list[dict[str, Any]] = []
        self.logged_before = config.jax_log_compiles

    def note(self, name: str, phase: str, begin: int, **more: Any) -> None:
        """Adds an event that began at a time of `time.perf_counter_ns`; the format counts microseconds."""
        place = {"pid": os.getpid(), "tid": threading.get_native_id()}
        self.events.append({"name": name, "ph": phase, "ts": (begin - self.start) / 1e3, **place, **more})

    def note_memory(self) -> None:
        """Adds the bytes that arrays use now."""
        used = _devices.device_memory_stats()["bytes_in_use"]
        self.note("memory", "C", time.perf_counter_ns(), args={"bytes_in_use": used})

    def filter(self, record: logging.LogRecord) -> bool:
        """Notes a compilation that is logged; shows the line only to those who asked for it."""
        said = record.getMessage()
        if said.startswith("Compiling "):
            self.note(said, "i", time.perf_counter_ns(), s="t")
        return bool(self.logged_before) or not said.startswith(("Compiling ", "Finished "))

    def written(self) -> dict[str, Any]:
        """The trace as its file has it, with the names of the process and its threads."""
        own = {"name": "process_name", "ph": "M", "pid": os.getpid(), "args": {"name": "ferrax"}}
        return {"displayTimeUnit": "ns", "traceEvents": [own, *self.events]}


_lock = threading.Lock()
_session: _Session | None = None


def start_trace(
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> None:
    """Starts a trace, which `stop_trace` ends and writes.

    Args:
      log_dir: folder of the traces; each gets a folder of its own at `plugins/profile/<time>` in it.
      create_perfetto_link: not supported; load the file that `create_perfetto_trace` writes.
      create_perfetto_trace: whether to write `perfetto_trace.json.gz` beside the trace.
      profiler_options: how it is taken.

    Raises:
      RuntimeError: a trace is already being taken.
      NotImplementedError: a link is asked for, or an option that nothing heeds.

    >>> import ferrax as jax, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     jax.profiler.start_trace(folder)
    ...     jax.profiler.stop_trace()
    """
    global _session
    if create_perfetto_link:
        raise NotImplementedError("create_perfetto_link: use create_perfetto_trace and open the file that it writes")
    options = _checked(profiler_options)
    with _lock:
        if _session is not None:
            raise RuntimeError("Profile has already been started. Only one profile may be run at a time.")
        _session = _Session(os.fspath(log_dir), create_perfetto_trace, options)
        _JIT.addFilter(_session)
        config.update("jax_log_compiles", True)
        _session.note_memory()


def stop_trace() -> None:
    """Ends the trace that `start_trace` started, and writes it as `<host>.trace.json.gz` and `<host>.xplane.pb`.

    Raises:
      RuntimeError: no trace is being taken.

    >>> import ferrax as jax, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     jax.profiler.start_trace(folder)
    ...     jax.profiler.stop_trace()
    ...     len(list(pathlib.Path(folder).rglob("*.trace.json.gz")))
    1
    """
    global _session
    with _lock:
        if _session is None:
            raise RuntimeError("No profile started")
        session, _session = _session, None
        _JIT.removeFilter(session)
        config.update("jax_log_compiles", session.logged_before)
        session.note_memory()
    folder = _new_folder(pathlib.Path(session.log_dir) / "plugins" / "profile", session.name)
    trace = session.written()
    if session.perfetto:
        _write(folder / "perfetto_trace.json.gz", trace)
    # what only some viewers take
    trace["metadata"] = {"ferrax_version": __version__}
    host = platform.node() or "host"
    _write(folder / f"{host}.trace.json.gz", trace)
    span = (session.began, session.began + time.perf_counter_ns() - session.start)
    (folder / f"{host}.xplane.pb").write_bytes(written(session.events, trace["metadata"], span))


def _new_folder(parent: pathlib.Path, name: str) -> pathlib.Path:
    """A folder of a name or else of the time, with a number where there are several."""
    stamp = name or time.strftime("%Y_%m_%d_%H_%M_%S")
    for name in (stamp, *(f"{stamp}_{i}" for i in range(1, 10_000))):
        try:
            (parent / name).mkdir(parents=True)
        except FileExistsError:
            continue
        return parent / name
    raise FileExistsError(f"{parent} has 10000 traces of {stamp}")


def _write(path: pathlib.Path, trace: dict[str, Any]) -> None:
    path.write_bytes(gzip.compress(json.dumps(trace).encode()))


@contextlib.contextmanager
def trace(
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Iterator[None]:
    """Takes a trace of what runs inside, and writes it at the end.

    Args:
      log_dir: as in `start_trace`.
      create_perfetto_link: not supported.
      create_perfetto_trace: as in `start_trace`.
      profiler_options: as in `start_trace`.

    Returns:
      A context manager.

    Raises: as in `start_trace`.

    >>> import ferrax as jax, ferrax.numpy as jnp, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with jax.profiler.trace(folder, create_perfetto_trace=True):
    ...         with jax.profiler.TraceAnnotation("square"):
    ...             y = jnp.square(3.0).block_until_ready()
    ...     len(list(pathlib.Path(folder).rglob("*.json.gz")))
    2
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


class TraceAnnotation:
    """A span of time with a name in the trace, from entering to leaving.

    Args:
      name: name of the span.
      **kwargs: what else the trace is to show of it.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> with jax.profiler.TraceAnnotation("product", size=3):
    ...     y = jnp.dot(jnp.ones(3), jnp.ones(3)).block_until_ready()
    """

    def __init__(self, name: str, **kwargs: Any):
        self._name, self._metadata = name, kwargs
        self._begin: int | None = None

    def __enter__(self) -> TraceAnnotation:
        self._begin = time.perf_counter_ns() if _session is not None else None
        return self

    def __exit__(self, *error: object) -> None:
        session, begin, self._begin = _session, self._begin, None
        if session is None or not session.spans or begin is None or begin < session.start:
            return
        args = {key: str(value) for key, value in self._metadata.items()}
        session.note(self._name, "X", begin, dur=(time.perf_counter_ns() - begin) / 1e3, args=args)
        session.note_memory()

    def set_metadata(self, **kwargs: Any) -> None:
        """Adds to what the trace shows of the span, also while it runs."""
        self._metadata.update(kwargs)

    @staticmethod
    def is_enabled() -> bool:
        """Whether a trace is being taken."""
        return _session is not None


class StepTraceAnnotation(TraceAnnotation):
    """A span that is a step of a program, such as one of training.

    Args:
      name: name of the span; the trace shows it with the number of the step.
      **kwargs: `step_num` for the number of the step, and what else the trace is to show.

    >>> import ferrax as jax
    >>> for step in range(2):
    ...     with jax.profiler.StepTraceAnnotation("train", step_num=step):
    ...         pass
    """

    def __init__(self, name: str, **kwargs: Any):
        shown = f"{name} {kwargs['step_num']}" if "step_num" in kwargs else name
        super().__init__(shown, **kwargs)


def annotate_function(func: F, name: str | None = None, **decorator_kwargs: Any) -> F:
    """A function whose calls are spans of the trace.

    Args:
      func: the function.
      name: name of the spans; None for the function's.
      **decorator_kwargs: what else the trace is to show of them.

    Returns:
      A function with the arguments and results of `func`.

    Raises:
      TypeError: `func` cannot be called.

    >>> import ferrax as jax
    >>> @jax.profiler.annotate_function
    ... def double(x):
    ...     return 2 * x
    >>> double(4)
    8
    """
    if not callable(func):
        raise TypeError(f"annotate_function takes a function, got {type(func).__name__}")
    label = name or getattr(func, "__qualname__", None) or type(func).__name__

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(label, **decorator_kwargs):
            return func(*args, **kwargs)

    return wrapper  # type: ignore[return-value]


def device_memory_profile(backend: str | None = None) -> bytes:
    """The arrays that are alive, as a profile that the tool `pprof` shows: their numbers and bytes by shape and dtype.

    Args:
      backend: `"cpu"`, or `None` for the default platform.

    Returns:
      The compressed protocol buffer.

    Raises:
      RuntimeError: there is no such platform.

    >>> import ferrax as jax, ferrax.numpy as jnp, gzip
    >>> x = jnp.ones((7, 43))
    >>> b"float32[7,43]" in gzip.decompress(jax.profiler.device_memory_profile())
    True
    """
    return live_memory_profile(backend)


def save_device_memory_profile(filename: os.PathLike[str] | str, backend: str | None = None) -> None:
    """Writes what `device_memory_profile` gives to a file.

    Args:
      filename: path of the file.
      backend: `"cpu"`, or `None` for the default platform.

    Raises:
      RuntimeError: there is no such platform.

    >>> import ferrax as jax, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     jax.profiler.save_device_memory_profile(os.path.join(folder, "memory.prof"))
    ...     os.listdir(folder)
    ['memory.prof']
    """
    pathlib.Path(filename).write_bytes(device_memory_profile(backend))


def start_server(port: int, requires_backend: bool = True) -> None:
    """Would start a server that takes traces when asked; there is none, use `start_trace`.

    Args:
      port: port of the server.
      requires_backend: whether devices are found first.

    Raises:
      NotImplementedError: always.

    >>> import ferrax as jax
    >>> jax.profiler.start_server(9999)
    Traceback (most recent call last):
        ...
    NotImplementedError: ferrax has no profiler server: take traces with start_trace and stop_trace
    """
    raise NotImplementedError("ferrax has no profiler server: take traces with start_trace and stop_trace")


def stop_server() -> None:
    """Would stop the server of `start_server`.

    Raises:
      ValueError: no server runs, always.

    >>> import ferrax as jax
    >>> jax.profiler.stop_server()
    Traceback (most recent call last):
        ...
    ValueError: No active profiler server.
    """
    raise ValueError("No active profiler server.")


def register_subprocess(pid: int, port: int) -> None:
    """Would join the traces of another process to those of this one; there is no server to ask for them.

    Args:
      pid: number of the process.
      port: port of its server.

    Raises:
      NotImplementedError: always.

    >>> import ferrax as jax
    >>> jax.profiler.register_subprocess(1, 9999)
    Traceback (most recent call last):
        ...
    NotImplementedError: ferrax has no profiler server: take a trace in each process, with start_trace and stop_trace
    """
    raise NotImplementedError(
        "ferrax has no profiler server: take a trace in each process, with start_trace and stop_trace"
    )


_expose(globals())
