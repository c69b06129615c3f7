"""Runs a library's programs on ferrax or on JAX, and prints their results as JSON.

    python tests/ecosystem/run.py ferrax optax

Libraries import `jax`: on ferrax, every `jax.x` is `ferrax.x`. The programs are in `programs_<library>.py`, in the
table `PROGRAMS` of functions that return a tree of arrays. Read next: `test_libraries.py`, which compares the two.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import json
import sys
import traceback
import warnings

VERSION = "0.10.2"  # what libraries are told that JAX is

# modules that are there after `import jax`, which libraries look up; ferrax imports them when they are asked for
IMPORTED = [
    "api_util", "core", "custom_batching", "custom_derivatives", "debug", "distributed", "dlpack", "dtypes",
    "errors", "experimental", "export", "ffi", "image", "interpreters", "interpreters.ad",
    "interpreters.batching", "interpreters.mlir", "interpreters.partial_eval", "interpreters.pxla",
    "interpreters.xla", "lax", "lax.linalg", "lib", "monitoring", "nn", "nn.initializers", "numpy",
    "numpy.fft", "numpy.linalg", "ops", "profiler", "random", "ref", "scipy", "sharding", "stages", "tree",
    "tree_util", "typing", "version",
]  # fmt: skip


class _Loader(importlib.abc.Loader):
    def __init__(self, real):
        self.real = real

    def create_module(self, spec):
        self.module = importlib.import_module(self.real)
        self.spec = self.module.__spec__
        return self.module

    def exec_module(self, module):
        module.__spec__ = self.spec  # the import machinery has replaced it


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        if not fullname.startswith("jax."):
            return None
        real = "ferrax" + fullname[3:]
        if real not in sys.modules:
            try:
                if importlib.util.find_spec(real) is None:
                    return None
            except ImportError:
                return None
        return importlib.machinery.ModuleSpec(fullname, _Loader(real), is_package=True)


def _rename(kind):
    """Arrays and tracers are of JAX's modules: autoray, and quimb with it, chooses functions by the module's name."""
    kind.__module__ = "jax" + kind.__module__.removeprefix("ferrax")
    for below in kind.__subclasses__():
        if below.__module__.startswith("ferrax"):
            _rename(below)


def stand_in():
    """Makes `import jax` give ferrax."""
    import ferrax

    sys.modules["jax"] = ferrax
    for name in IMPORTED:
        importlib.import_module(f"ferrax.{name}")
    for name, module in list(sys.modules.items()):
        if name.startswith("ferrax."):
            sys.modules["jax" + name[len("ferrax") :]] = module
    sys.meta_path.insert(0, _Finder())
    _rename(ferrax.Array)
    ferrax.__version__ = ferrax.version.__version__ = VERSION
    ferrax.__version_info__ = ferrax.version.__version_info__ = tuple(int(x) for x in VERSION.split("."))
    version = importlib.metadata.version
    importlib.metadata.version = lambda name: VERSION if name in ("jax", "jaxlib") else version(name)


def result(program):
    """What a program gives: its leaves with dtypes, or its error."""
    import jax
    import numpy as np

    try:
        leaves = jax.tree_util.tree_leaves(program())
        arrays = [np.asarray(x) for x in leaves]
        return [
            [str(a.dtype), list(a.shape), np.asarray(a, "complex128" if a.dtype.kind == "c" else "float64")]
            for a in arrays
        ]
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}", "where": traceback.format_exc()}


def as_json(value):
    """Arrays as lists; complex numbers as pairs."""
    if value.dtype.kind == "c":
        return [value.real.tolist(), value.imag.tolist()]
    return value.tolist()


def main(target, library, *only):
    if target == "ferrax":
        stand_in()
    warnings.simplefilter("ignore")
    programs = importlib.import_module(f"programs_{library}").PROGRAMS
    out = {name: result(p) for name, p in programs.items() if not only or name in only}
    print("RESULTS" + json.dumps(out, default=as_json))


if __name__ == "__main__":
    main(*sys.argv[1:])
