"""Packages whose files load when one of their names is asked for: what `ferrax/_lazy.py` promises."""

import importlib
import pathlib
import subprocess
import sys

import pytest

import ferrax
from ferrax import _ferrax, _members
from ferrax._lazy import DeferredMember

#: Packages with a table of whole files, and of some names of files.
PACKAGES, PARTS = ["ferrax.numpy", "ferrax.lax"], ["ferrax.sharding"]
TABLES = {"ferrax": ferrax._DEFERRED, **{p: importlib.import_module(p)._LATER for p in PACKAGES + PARTS}}

#: What `import ferrax, ferrax.numpy` loads, and why: a module that many programs do without has no place here.
LOADED = {
    # the extension module, and its part that is a module
    "ferrax", "ferrax._ferrax", "ferrax._ferrax.lax",
    # what makes names and members load later, and the tables of it
    "ferrax._boundary", "ferrax._documentation", "ferrax._lazy", "ferrax._members", "ferrax.version",
    # names of dtypes for NumPy; settings and plugins, which the environment may name
    "ferrax._narrow", "ferrax._plugins", "ferrax._setting_values", "ferrax._unread_settings", "ferrax.config",
    # the table of NumPy's names, and those that are Rust or numbers
    "ferrax.numpy", "ferrax.numpy._constants", "ferrax.numpy._ufuncs",
}  # fmt: skip
#: What of the standard library it loads beyond what NumPy does: how to end, and a value for each thread.
STANDARD = {"__future__", "atexit", "threading"}


def run(code):
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_what_an_import_loads():
    first = "import numpy, sys; before = {*sys.modules}; import ferrax, ferrax.numpy; print(*{*sys.modules} - before)"
    assert set(run(first)) - STANDARD == LOADED


def test_what_a_first_result_loads():
    """A small program loads what it uses: nothing of linear algebra, shardings, random numbers and so on."""
    program = """
import sys
import ferrax as jax, ferrax.numpy as jnp
assert float(jax.jit(lambda x: x * 2 + 1)(jnp.arange(3.0))[2]) == 5
print(*sys.modules)
"""
    loaded = run(program)
    parts = {name.split(".")[1] for name in loaded if name.startswith("ferrax.")}
    assert not parts & {
        "scipy",
        "sharding",
        "random",
        "nn",
        "export",
        "experimental",
        "extend",
        "image",
        "ops",
        "_stages",
    }
    assert not {"ferrax.numpy.linalg", "ferrax.numpy.fft", "ferrax.lax.linalg", "scipy", "ml_dtypes"} & set(loaded)


@pytest.mark.parametrize("package", [*PACKAGES, "ferrax.scipy.special"])
def test_tables_have_the_names_of_their_files(package):
    module = importlib.import_module(package)
    for file, names in module._LATER.items():
        assert names.split() == importlib.import_module(f"{package}.{file}").__all__, file


@pytest.mark.parametrize("package", TABLES)
def test_names_of_tables_are_there_once(package):
    """A name that a file has, too, would become that file when it is loaded."""
    folder = pathlib.Path(importlib.import_module(package).__file__).parent
    names = [name for names in TABLES[package].values() for name in names.split()]
    assert len(names) == len(set(names))
    assert not set(names) & {path.stem for path in folder.iterdir()}
    for file, names in TABLES[package].items():
        found = vars(importlib.import_module(f"{package}.{file}"))
        assert set(names.split()) <= set(found), file


@pytest.mark.parametrize("package", TABLES)
def test_names_are_there_in_every_way_of_asking(package):
    module = importlib.import_module(package)
    names = [name for names in TABLES[package].values() for name in names.split()]
    assert set(names) < set(dir(module)) and set(names) < set(module.__all__)
    assert set(names) < set(run(f"from {package} import *; print(*globals())"))
    for name in names:
        assert getattr(module, name) is vars(module)[name] is getattr(module, name)
    assert run(f"from {package} import {', '.join(names)}; import {package} as m; print(m.__name__)") == [package]


def test_submodules_are_attributes():
    assert run("import ferrax.numpy as jnp; print(jnp.fft.fft.__module__, jnp.linalg.norm.__module__)") == [
        "ferrax.numpy.fft", "ferrax.numpy.linalg",
    ]  # fmt: skip
    names = ["custom_derivatives", "errors", "numpy", "sharding", "stages", "tree", "tree_util"]
    asked = run(f"import ferrax; print(*(getattr(ferrax, name).__name__ for name in {names}))")
    assert asked == [f"ferrax.{name}" for name in names]


@pytest.mark.parametrize(("cls", "file", "names"), _members.MEMBERS, ids=lambda x: getattr(x, "__name__", None))
def test_files_have_the_members_that_are_put_off(cls, file, names):
    importlib.import_module(f"ferrax.{file}")
    for name in names.split():
        assert not isinstance(vars(cls)[name], DeferredMember), name


def test_no_other_member_of_arrays_is_there_before_the_methods_are():
    before = set(run("import ferrax, ferrax.core; print(*dir(ferrax.Array), *dir(ferrax._ferrax.Tracer))"))
    importlib.import_module("ferrax.numpy._methods")
    assert before == {*dir(_ferrax.Array), *dir(_ferrax.Tracer)}


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("print(jax.Array.sum.__name__)", "sum"),
        ("print(jnp.ones(3).sum())", "3.0"),
        ("import copy; print(copy.deepcopy(jnp.ones(())))", "1.0"),
        ("print(jax.jit(lambda x: x.T.mean())(1.0))", "1.0"),
        ("import numpy as np; print(np.mean(jnp.ones(3)))", "1.0"),
        ("print(jnp.add.identity, jnp.add.reduce(jnp.ones(3)))", "0 3.0"),
        ("import inspect; print(*inspect.signature(jax.jit(lambda x, y: x)).parameters)", "x y"),
        ("print(jax.jit(lambda x: x).__class__.__doc__.split()[1])", "jitted"),
        ("print('>>>' in jax.Device.__doc__, jax.devices()[0].client.platform)", "True cpu"),
        ("print('>>>' in jax.sharding.SingleDeviceSharding.__doc__)", "True"),
        ("print(isinstance(jnp.ones(3).sharding, jax.sharding.Sharding))", "True"),
        ("print(len(jax.tree.leaves(jax.vjp(jnp.sin, jnp.ones(3))[1])))", "1"),
        (
            "print(hasattr(jnp.ones(3), 'no_such'), hasattr(jnp, 'no_such'), hasattr(jax, 'no_such'))",
            "False False False",
        ),
        ("import pickle; print(pickle.loads(pickle.dumps(jnp.cumsum)) is jnp.cumsum)", "True"),
        ("print('cumsum' in dir(jnp), 'sum' in dir(jnp.ones(3)), 'grad' in dir(jax))", "True True True"),
    ],
)
def test_members_are_there_from_the_first_use(code, wanted):
    assert " ".join(run(f"import ferrax as jax, ferrax.numpy as jnp; {code}")) == wanted


def test_threads_may_ask_at_once():
    code = """
import threading
import ferrax as jax, ferrax.numpy as jnp
names = "zeros cumsum where einsum float32 bfloat16 pad sort".split()
found, start = [], threading.Barrier(8)
def ask():
    start.wait()
    found.append((jax.jit, jax.vmap, *(getattr(jnp, n) for n in names), str(jnp.arange(3).sum())))
threads = [threading.Thread(target=ask) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(len(found), len(set(found)))
"""
    assert run(code) == ["8", "1"]


def test_where_functions_are_from_does_not_depend_on_who_asks_first():
    names = "print(ferrax.closure_convert.__module__, ferrax.jit.__module__, jnp.take.__module__)"
    asked = "import ferrax, ferrax.numpy as jnp"
    first = "import ferrax.custom_derivatives, ferrax.image, ferrax.scipy.stats, ferrax.ops"
    assert run(f"{asked}; {names}") == run(f"{first}; {asked}; {names}") == ["ferrax", "ferrax", "ferrax.numpy"]


def test_narrow_dtypes_are_known_to_numpy_before_they_are_loaded():
    code = """
import sys, numpy as np, ferrax, ferrax.numpy as jnp
x = jnp.ones(2) * 2
assert "ml_dtypes" not in sys.modules and x.dtype == "float32" and jnp.issubdtype(x.dtype, jnp.floating)
print(np.dtype("bfloat16"), np.zeros(2, "int4").astype("float8_e4m3fn").dtype, jnp.zeros(2, "bfloat16").dtype)
import ml_dtypes
assert np.dtype("bfloat16") == ml_dtypes.bfloat16 == jnp.bfloat16 == jnp.asarray(np.ones(2, "bfloat16")).dtype
assert np.sctypeDict["bfloat16"] is ml_dtypes.bfloat16 and x.astype("bfloat16").dtype is np.dtype("bfloat16")
"""
    assert run(code) == ["bfloat16", "float8_e4m3fn", "bfloat16"]


@pytest.mark.parametrize("module", ["numpy.ma", "ml_dtypes"])
def test_the_size_of_numpys_table_of_names_does_not_change(module):
    """Packages go through the table, and ask for the dtype of each of its members: `numpy.ma` when it is imported."""
    code = f"""
import numpy as np, ferrax
names = {{*np.sctypeDict}}
for scalar in np.sctypeDict.values():
    np.dtype(scalar)
import {module}, ml_dtypes
assert names == {{*np.sctypeDict}} and all(np.dtype(name) is not None for name in names)
print(np.dtype("int4") == ml_dtypes.int4)
"""
    assert run(code) == ["True"]


@pytest.mark.parametrize("found", ["None", "importlib.machinery.ModuleSpec('ml_dtypes', None)"])
def test_names_of_narrow_dtypes_where_the_source_of_their_package_cannot_be_read(found):
    code = f"""
import importlib.machinery, sys
real = importlib.machinery.PathFinder.find_spec
found = [{found}]
find = lambda name, *args: found.pop() if name == "ml_dtypes" and found else real(name, *args)
importlib.machinery.PathFinder.find_spec = find
import numpy as np, ferrax, numpy.ma
print(np.dtype("bfloat16"), "ml_dtypes" in sys.modules, not found)
"""
    assert run(code) == ["bfloat16", "True", "True"]


def test_a_name_that_a_dependency_lacks_is_not_offered():
    """Older releases of `ml_dtypes` have no integers of one bit."""
    code = """
import ml_dtypes
del ml_dtypes.int1, ml_dtypes.uint1
import ferrax.numpy as jnp
from ferrax.numpy import *
print("int1" in dir(jnp), hasattr(jnp, "int1"), "uint1" in globals(), "int4" in globals())
"""
    assert run(code) == ["False", "False", "False", "True"]


def test_their_errors_show_no_frame_of_the_library():
    code = """
import traceback, ferrax.numpy as jnp
try:
    jnp.pad(jnp.ones(2), 1, mode="none")
except Exception as error:
    print(len(traceback.extract_tb(error.__traceback__)), type(error).__name__)
"""
    assert run(code) == ["1", "NotImplementedError"]
    with pytest.raises(AttributeError, match="has no attribute 'uniqe'"):
        ferrax.numpy.uniqe
