"""Plugins of the PJRT C API: how platforms beside the embedded CPU are found and added.

A plugin comes from three places: `register_plugin`, the environment (`FERRAX_PJRT_PLUGIN=name:path`), and wheels that
are installed under `jax_plugins` (`jax-cuda13-plugin`, say) or as `libtpu`. None is loaded before its devices are asked
for. The Rust side is `crates/ferrax/src/engine/xla.rs`; `python -m ferrax.doctor` says what was found. Where NVIDIA's
driver is, `cuda` is ferrax's own engine (`crates/ferrax/src/engine/cuda.rs`), and a plugin of that name is `xla_cuda`.
Read next: `doctor.py`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ferrax import _ferrax

__all__ = ["register_plugin"]

#: Platforms whose plugins take the options of GPUs, with the file that a machine with their driver has.
GPUS = {"cuda": "/dev/nvidiactl", "rocm": "/dev/kfd"}


def register_plugin(name: str, path: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> None:
    """Adds a plugin of the PJRT C API as a platform.

    The plugin is loaded when somebody first asks for its devices (`jax.devices(name)`). Where NVIDIA's driver is,
    `cuda` is ferrax's own engine, and a plugin of that name becomes `xla_cuda`.

    Args:
      name: what the platform is called from now on: letters, digits and `_`.
      path: the plugin's shared library.
      options: what its client is made with, by name: bools, integers, floats, texts or lists of integers. GPUs get
        `preallocate=False` unless the environment (`XLA_PYTHON_CLIENT_PREALLOCATE`) or this says otherwise.

    Raises:
      ValueError: there is a platform of this name already, or it cannot be a name.
      TypeError: an option has another type.

    >>> import ferrax as jax
    >>> jax.register_plugin("my platform", "/opt/libpjrt.so")
    Traceback (most recent call last):
    ValueError: a platform's name has letters, digits and '_'; got 'my platform'
    """
    given = {**_gpu_options(), **(options or {})} if name.lower() in GPUS else dict(options or {})
    _ferrax.register_plugin(name, os.fspath(path), list(given.items()))


def hardware(platform: str) -> str:
    """What a platform computes on: `cuda` of `xla_cuda`, a plugin's name where ferrax has an engine of its own."""
    bare = platform.removeprefix("xla_")
    return bare if bare in GPUS else platform


def _gpu_options() -> dict[str, Any]:
    """What clients of GPUs are made with: memory is taken when it is needed, unless the environment asks for more."""
    options: dict[str, Any] = {"preallocate": False}
    preallocate = os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE", "").lower()
    if preallocate:
        options["preallocate"] = preallocate not in ("false", "0", "f")
    fraction = os.environ.get("XLA_PYTHON_CLIENT_MEM_FRACTION") or os.environ.get("XLA_CLIENT_MEM_FRACTION")
    if fraction:
        options["memory_fraction"] = float(fraction)
    allocator = os.environ.get("XLA_PYTHON_CLIENT_ALLOCATOR", "").lower()
    if allocator:
        options["allocator"] = allocator
    return options


def installed() -> Iterator[tuple[str, str]]:
    """The plugins of installed wheels, in the order of the import path: platform and shared library.

    Only folders are looked at: nothing is imported, since the modules of these wheels want `jax`.
    """
    for place in sys.path:
        plugins = os.path.join(place, "jax_plugins")
        if os.path.isdir(plugins):
            for folder in sorted(os.listdir(plugins)):
                path = _library(os.path.join(plugins, folder))
                if path:
                    yield _platform(folder), path
        tpu = os.path.join(place, "libtpu", "libtpu.so")
        if os.path.exists(tpu):
            yield "tpu", tpu


#: What is in the names of NVIDIA's libraries that the engine of its GPUs uses.
_LIBRARIES = ("nvrtc", "cublasLt", "cufft")


def library_folders() -> Iterator[str]:
    """The folders of installed wheels that may have NVIDIA's compiler and libraries, in the import path's order."""
    for place in sys.path:
        packages = os.path.join(place, "nvidia")
        if os.path.isdir(packages):
            for package in sorted(os.listdir(packages), reverse=True):
                for inside in ("lib", "bin"):
                    folder = os.path.join(packages, package, inside)
                    names = os.listdir(folder) if os.path.isdir(folder) else ()
                    if any(part in name for name in names for part in _LIBRARIES):
                        yield folder


def _library(folder: str) -> str | None:
    """The shared library of a plugin's folder."""
    if not os.path.isdir(folder):
        return None
    names = sorted(n for n in os.listdir(folder) if n.endswith(".so") and "plugin" in n)
    return os.path.join(folder, names[0]) if names else None


def _platform(folder: str) -> str:
    """The platform of a plugin's folder: `xla_cuda13` is `cuda`."""
    for gpu in GPUS:
        if gpu in folder:
            return gpu
    return folder.removeprefix("xla_")


#: Seconds that a plugin has to load in a process of its own.
_PATIENCE = 120.0
_PROBE = "import sys; sys.path = eval(sys.argv[1]); from ferrax import _ferrax; _ferrax.answer_probe(*sys.argv[2:])"


def _cache() -> str:
    """The folder where plugins that load are remembered."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("FERRAX_CACHE_DIR") or os.path.join(home, "ferrax")


def install() -> None:
    """Adds the plugins of installed wheels; the first GPU that is there computes when nobody says where."""
    if sys.executable:
        command = [sys.executable, "-c", _PROBE, repr(list(map(str, sys.path)))]
        _ferrax.try_plugins_by(command, os.path.join(_cache(), "plugins"), _PATIENCE)
    if "cuda" in _ferrax.platforms():
        _ferrax.look_for_libraries_in(list(library_folders()))
    chosen = any(f"{prefix}_PLATFORM{end}" in os.environ for prefix in ("FERRAX", "JAX") for end in ("S", "_NAME"))
    for name, path in installed():
        platform = _ferrax.plugin_platform(name)
        if platform in _ferrax.platforms():
            continue
        register_plugin(name, path)
        if not chosen and name in GPUS and os.path.exists(GPUS[name]):
            _ferrax.set_platforms([platform])
            chosen = True
