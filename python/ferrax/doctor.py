"""What this machine, this process and ferrax make of each other: `python -m ferrax.doctor`.

Prints versions, the processor and the kernels that were chosen for it, every platform with what was found, and where
else was looked; ends with 1 when a platform that was asked for is not there. Read next: `_plugins.py`.
"""

from __future__ import annotations

import ctypes
import os
import platform as _machine
import sys
from collections.abc import Iterator

from ferrax import _ferrax, _plugins
from ferrax.version import __version__

__all__ = ["main", "report"]

#: A name and what there is to say of it.
Row = tuple[str, str]

#: What NVIDIA's driver and libraries are called, each with the function that gives its version.
_LIBRARIES = (
    ("driver", "libcuda.so.1", "cuDriverGetVersion"),
    ("CUDA runtime", "libcudart.so.13", "cudaRuntimeGetVersion"),
    ("CUDA runtime", "libcudart.so.12", "cudaRuntimeGetVersion"),
)


def _here() -> Iterator[Row]:
    import ml_dtypes
    import numpy as np

    yield "ferrax", f"{__version__} in {os.path.dirname(_ferrax.__file__)}"
    yield "python", f"{_machine.python_version()} at {sys.executable}"
    yield "numpy, ml_dtypes", f"{np.__version__}, {ml_dtypes.__version__}"
    yield "system", f"{_machine.system()} {_machine.release()} on {_machine.machine()}"
    kernels, threads = _ferrax.cpu_kernels()
    yield "kernels", f"{kernels}; {threads} threads of {os.cpu_count()} processors"
    for name in sorted(os.environ):
        if name.startswith(("FERRAX_", "JAX_", "XLA_", "CUDA_", "TF_CPP_")):
            yield name, os.environ[name]


def _platforms() -> Iterator[tuple[str, list[Row], bool]]:
    """Each platform: its rows, and whether it works."""
    for name in _ferrax.platforms():
        try:
            rows = [*_ferrax.about_platform(name), *((str(d), _device(d)) for d in _ferrax.devices(name))]
        except Exception as error:
            yield name, [("error", str(error))], False
        else:
            yield name, rows, True


def _device(device: object) -> str:
    stats = device.memory_stats()  # type: ignore[attr-defined]
    limit = f" of {_size(stats['bytes_limit'])}" if "bytes_limit" in stats else ""
    return f"{device.device_kind}, {_size(stats['bytes_in_use'])}{limit} in use"  # type: ignore[attr-defined]


def _size(count: int) -> str:
    return f"{count / 2**20:.1f} MiB"


def _libraries() -> Iterator[Row]:
    for what, usual, function in _LIBRARIES:
        name = (os.environ.get("FERRAX_LIBCUDA") if what == "driver" else None) or usual
        try:
            library = ctypes.CDLL(name)
            version = ctypes.c_int()
            getattr(library, function)(ctypes.byref(version))
        except (OSError, AttributeError) as error:
            yield f"{what}, {name}", f"not found ({error})"
        else:
            yield f"{what}, {name}", f"{version.value // 1000}.{version.value % 1000 // 10}"
    for file in _plugins.GPUS.values():
        yield file, "there" if os.path.exists(file) else "not there"


def _wheels() -> Iterator[Row]:
    found = list(_plugins.installed())
    yield from found
    if not found:
        yield "none", f"jax_plugins and libtpu were looked for in {len(sys.path)} places of sys.path"


def _wanted() -> list[str]:
    """The platforms that the environment asks for."""
    text = os.environ.get("FERRAX_PLATFORMS") or os.environ.get("JAX_PLATFORMS") or ""
    return [name.strip() for name in text.split(",") if name.strip()]


def _table(title: str, rows: Iterator[Row] | list[Row]) -> list[str]:
    listed = list(rows)
    width = max((len(name) for name, _ in listed), default=0)
    return [title, *(f"  {name:{width}}  {text}" for name, text in listed)]


def report() -> tuple[str, bool]:
    """The report, and whether every platform that was asked for is there.

    Returns:
      A text of several lines, and a bool.

    >>> from ferrax import doctor
    >>> text, well = doctor.report()
    >>> text.splitlines()[0], well
    ('This process', True)
    """
    lines = _table("This process", _here())
    working = []
    for name, rows, works in _platforms():
        lines += _table(f"Platform {name}: {'works' if works else 'does not work'}", rows)
        working += [name] * works
    lines += _table("Wheels with plugins", _wheels()) + _table("GPUs", _libraries())
    gpus = {"gpu"} if _plugins.GPUS.keys() & {_plugins.hardware(name) for name in working} else set()
    missing = [name for name in _wanted() if name not in working and name not in gpus]
    lines += [f"Asked for, and not there: {name}" for name in missing]
    return "\n".join(lines), not missing


def main() -> int:
    """Prints the report; gives the status that the process ends with.

    >>> from ferrax import doctor
    >>> doctor.main()  # doctest: +ELLIPSIS
    This process...
    0
    """
    text, well = report()
    print(text)
    return 0 if well else 1


if __name__ == "__main__":
    # JAX's names for platforms that are not there must not end the import: they are what is asked about
    sys.exit(main())
