"""Names of JAX's that are not implemented yet say so; those that are, are not on the list."""

import importlib

import pytest

from ferrax._planned import PLANNED

NAMES = [(module, name) for module, names in PLANNED.items() for name in sorted(names)]


@pytest.mark.parametrize("module, name", NAMES)
def test_planned_names(module, name):
    package = importlib.import_module(module)
    assert not hasattr(package, name)
    if module != "ferrax.debug":
        with pytest.raises(NotImplementedError, match=f"{module}.{name} is part of JAX's interface"):
            getattr(package, name)


@pytest.mark.parametrize("module, name", [(m, n) for m, n in NAMES if m != "ferrax"])
def test_planned_names_are_names_of_jax(module, name):
    jax = pytest.importorskip("jax")
    assert jax
    assert hasattr(importlib.import_module(module.replace("ferrax", "jax", 1)), name) or name == "linalg"


def test_typing_errors_are_told_apart():
    import ferrax

    with pytest.raises(AttributeError, match="has no attribute 'vmapp'") as caught:
        _ = ferrax.vmapp
    assert not isinstance(caught.value, NotImplementedError)
