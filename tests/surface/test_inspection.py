"""Every public name can be inspected: what finds out about it meets no other error than Python's own for absence."""

import contextlib
import importlib
import inspect
import pkgutil
import types
import warnings

import pytest

import ferrax


def public_modules():
    found = ["ferrax"]
    for info in pkgutil.walk_packages(ferrax.__path__, "ferrax."):
        if not any(part.startswith("_") for part in info.name.split(".")):
            found.append(info.name)
    return found


MODULES = public_modules()


def names_of(module):
    """The names of a module, and those that JAX's has, some of which are found only when they are asked for."""
    names = {*dir(module), *getattr(module, "__all__", ())}
    try:
        theirs = importlib.import_module(module.__name__.replace("ferrax", "jax", 1))
    except Exception:  # no such module, or one that needs what is not installed
        theirs = types.ModuleType("none")
    names.update(dir(theirs), getattr(theirs, "_deprecations", ()))
    return sorted(name for name in names if not name.startswith("_"))


def questions(thing):
    """What libraries, `help`, notebooks and this project's own tools ask of a name."""
    yield lambda: inspect.signature(thing)
    yield lambda: inspect.unwrap(thing) if callable(thing) else None
    yield lambda: dir(thing)
    yield lambda: inspect.getdoc(thing)
    yield lambda: inspect.getmodule(thing)
    yield lambda: isinstance(thing, type) and (isinstance(3, thing), issubclass(int, thing))
    yield lambda: repr(thing)
    for name in ("__wrapped__", "__members__", "__name__", "__len__", "aval", "dtype", "shape", "unknown_to_all"):
        yield lambda name=name: hasattr(thing, name)
    for name in dir(thing) if isinstance(thing, type) else ():
        yield lambda name=name: hasattr(thing, name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", MODULES)
def test_names_can_be_inspected(module):
    module = importlib.import_module(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names_of(module):
            try:
                thing = getattr(module, name)
            except AttributeError:
                continue
            for question in questions(thing):
                with contextlib.suppress(AttributeError, TypeError, ValueError):
                    question()


def test_modules_are_found():
    assert len(MODULES) > 100
    assert {"ferrax.numpy", "ferrax.experimental.sparse.transform", "ferrax.extend.lowering"} <= set(MODULES)
