"""What a profile tells a compiler: costs of instructions of compiled programs."""

from __future__ import annotations

import os
import pathlib

from ferrax._boundary import expose as _expose
from ferrax._profile_data import ProfileData as _ProfileData
from ferrax.errors import JaxRuntimeError

__all__ = ["get_profiled_instructions_proto"]


def get_profiled_instructions_proto(tensorboard_dir: str | os.PathLike[str]) -> bytes:
    """The costs of instructions in a trace, as XLA takes them (`ProfiledInstructionsProto`).

    Only traces of programs on a GPU have such; traces that ferrax takes have the host's events.

    Args:
      tensorboard_dir: the folder of a run, `<log_dir>/plugins/profile/<run>`.

    Returns:
      The bytes of the message: none where no device is in the trace.

    Raises:
      JaxRuntimeError: there is no such folder.
      NotImplementedError: the trace has events of a device, which another library took.

    >>> import ferrax as jax, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with jax.profiler.trace(folder):
    ...         pass
    ...     (path,) = pathlib.Path(folder).rglob("*.xplane.pb")
    ...     jax.experimental.profiler.get_profiled_instructions_proto(path.parent)
    b''
    """
    folder = pathlib.Path(tensorboard_dir)
    if not folder.is_dir():
        raise JaxRuntimeError(f"NOT_FOUND: {folder}; No such file or directory")
    for path in sorted(folder.glob("*.xplane.pb")):
        for plane in _ProfileData.from_file(path).planes:
            if plane.name.startswith("/device:"):
                raise NotImplementedError(
                    f"get_profiled_instructions_proto is not implemented for events of devices, and {path.name} has "
                    f"those of {plane.name}"
                )
    return b""


_expose(globals())
