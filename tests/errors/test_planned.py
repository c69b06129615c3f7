"""Names and modules of JAX's that are not implemented yet say so, in whatever way they are asked for."""

import importlib
import importlib.util
import pickle
import pkgutil
import traceback

import pytest

import ferrax
from ferrax import errors
from ferrax._planned import MODULES, PLANNED

NAMES = [(module, name) for module, names in PLANNED.items() for name in sorted(names)]


def says(name):
    return pytest.raises(
        errors.MissingFeatureError, match=f"^{name} is part of JAX's interface, and is not implemented"
    )


@pytest.mark.parametrize("module, name", NAMES)
def test_planned_names(module, name):
    package = importlib.import_module(module)
    assert not hasattr(package, name)
    assert getattr(package, name, 3) == 3
    with says(f"{module}.{name}") as caught:
        getattr(package, name)
    assert isinstance(caught.value, NotImplementedError)
    with says(f"{module}.{name}") as caught:
        exec(f"from {module} import {name}")
    assert isinstance(caught.value, ImportError)


@pytest.mark.parametrize("module, name", NAMES)
def test_planned_names_are_names_of_jax(module, name):
    pytest.importorskip("jax")
    theirs = module.replace("ferrax", "jax", 1)
    try:
        importlib.import_module(f"{theirs}.{name}")
    except ImportError:
        assert hasattr(importlib.import_module(theirs), name)


@pytest.mark.parametrize("module", sorted(MODULES))
@pytest.mark.parametrize(
    "statement",
    [
        "import {module}",
        "import {module} as m",
        "import {module}.inner",
        "from {module} import something",
        "from {module}.inner import something",
        "from {package} import {name}",
        "import importlib; importlib.import_module('{module}')",
        "__import__('{module}')",
    ],
)
def test_imports_of_planned_modules(module, statement):
    package, _, name = module.rpartition(".")
    with says(module) as caught:
        exec(statement.format(module=module, package=package, name=name))
    assert isinstance(caught.value, ModuleNotFoundError)
    assert caught.value.name == module
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert not [f for f in files if "ferrax" in f and "tests" not in f]


@pytest.mark.parametrize("module", sorted(MODULES))
def test_planned_modules_are_missing_for_those_who_ask(module):
    package, _, name = module.rpartition(".")
    parent = importlib.import_module(package)
    assert not hasattr(parent, name)
    with says(module) as caught:
        getattr(parent, name)
    assert isinstance(caught.value, AttributeError)
    assert importlib.util.find_spec(module) is None
    with pytest.raises(pytest.skip.Exception):
        pytest.importorskip(module)


def test_every_public_module_of_jax_is_there_or_says_so():
    jax = pytest.importorskip("jax")
    for found in pkgutil.iter_modules(jax.__path__, "ferrax."):
        name = found.name.rpartition(".")[2]
        if name.startswith("_"):
            continue
        try:
            importlib.import_module(found.name)
        except errors.MissingFeatureError:
            assert found.name in MODULES
    inner = {m.name for m in pkgutil.iter_modules(importlib.import_module("jax.experimental").__path__)}
    for name in inner:
        whole = f"ferrax.experimental.{name}"
        if whole in MODULES:
            with says(whole):
                importlib.import_module(whole)
        elif not name.startswith("_") and name != "x64_context":
            importlib.import_module(whole)


def test_optional_features_fall_back():
    """The usual way of a library to use what may not be there."""
    try:
        from ferrax.experimental import jax2tf
    except ImportError:
        jax2tf = None
    assert jax2tf is None
    try:
        from ferrax.experimental.pallas import core_map
    except ImportError:
        core_map = None
    assert core_map is None


def test_the_text_points_to_the_class():
    with pytest.raises(errors.MissingFeatureError) as caught:
        _ = ferrax.cloud_tpu_init
    assert str(caught.value).endswith("See help(ferrax.errors.MissingFeatureError).")
    for name in ("MissingFeatureError", "MissingNameError", "MissingModuleError"):
        error = getattr(errors, name)("text")
        assert type(pickle.loads(pickle.dumps(error))) is type(error)


def test_typing_errors_are_told_apart():
    with pytest.raises(AttributeError, match="has no attribute 'vmapp'") as caught:
        _ = ferrax.vmapp
    assert not isinstance(caught.value, NotImplementedError)
    with pytest.raises(ImportError, match="cannot import name 'vmapp'") as caught:
        exec("from ferrax import vmapp")
    assert not isinstance(caught.value, NotImplementedError)
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'ferrax\.vmapp'") as caught:
        importlib.import_module("ferrax.vmapp")
    assert not isinstance(caught.value, NotImplementedError)
