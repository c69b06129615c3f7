"""NVIDIA's driver, NVRTC and libraries without a GPU, for programs of tests: `crates/ferrax-cuda/tests/fake`.

The host computes its kernels. `python -m tests.cuda.fake` builds it and prints the variables of the environment that
have ferrax use it. What it takes for a fault of ours (memory that is not there, work before its time, something written
beside an array) it notes as a violation.
"""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "crates" / "ferrax-cuda"
FOLDER = ROOT / "target" / "fake-cuda"
LIBRARY = FOLDER / "libcuda.so.1"

#: What kernels that are not there are refused with.
REFUSED = "the CUDA engine has no"


def missing():
    """Why the fake cannot be here; an empty text where it can."""
    if not sys.platform.startswith("linux"):
        return "the fake driver is for Linux"
    lacking = [tool for tool in ("rustc", "cc", "c++") if shutil.which(tool) is None]
    return f"the fake driver needs {', '.join(lacking)}" if lacking else ""


def build():
    """Builds the library unless it is newer than its sources."""
    sources = [*SOURCES.glob("tests/fake/*.rs"), SOURCES / "tests/host/cuda.h", SOURCES / "src/driver/sys.rs"]
    if LIBRARY.exists() and all(LIBRARY.stat().st_mtime > source.stat().st_mtime for source in sources):
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    own = FOLDER / f"libcuda-{os.getpid()}.so"
    flags = ["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "fake", "-C", "opt-level=1"]
    more = ["-C", "panic=abort", "-C", "strip=symbols", "-o", own, SOURCES / "tests/fake/lib.rs"]
    subprocess.run(["rustc", *flags, *more], check=True)
    os.replace(own, LIBRARY)


def environment():
    """The variables that have a process use the fake."""
    kernels = str(FOLDER / "kernels")
    libraries = ("FERRAX_LIBCUDA", "FERRAX_NVRTC", "FERRAX_CUBLASLT", "FERRAX_CUFFT", "FERRAX_CUSOLVER")
    return {**dict.fromkeys(libraries, str(LIBRARY)), "FAKE_CUDA_KERNELS": kernels}


class Driver:
    """The fake that this process uses."""

    def __init__(self):
        self._library = ctypes.CDLL(os.environ["FERRAX_LIBCUDA"])
        self._library.fake_get.restype = ctypes.c_int64
        self._library.fake_take.restype = ctypes.c_size_t

    def get(self, name):
        """A number: calls so far, kernels run, compilations, blocks of memory that live."""
        return self._library.fake_get(name.encode())

    def set(self, name, value):
        """Sets something: bytes of memory, which kernel meets a fault."""
        self._library.fake_set(name.encode(), ctypes.c_int64(value))

    def fail(self, call, code):
        """Has a call from now on fail; the next is number one."""
        self._library.fake_fail(ctypes.c_int64(call), ctypes.c_int(code))

    def ran(self):
        """The calls of libraries since this was last asked."""
        return self._taken(b"ran")

    def violations(self):
        """What was done that must not be."""
        return self._taken(b"violations")

    def _taken(self, name):
        room = ctypes.create_string_buffer(1 << 20)
        size = self._library.fake_take(name, room, ctypes.c_size_t(len(room)))
        return room.raw[:size].decode().splitlines()


if __name__ == "__main__":
    if missing():
        sys.exit(missing())
    build()
    print(" ".join(f"{name}={value}" for name, value in environment().items()))
