"""`help` says something of every public module, function, class, method and attribute; `x.at` has a page."""

import doctest
import importlib
import inspect
import pkgutil
import pydoc
import re
import types
import typing

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp

MODULES = ["ferrax"] + [
    found.name
    for found in pkgutil.walk_packages(ferrax.__path__, "ferrax.")
    if not any(part.startswith("_") for part in found.name.split("."))
]
# classes that are not modules' names, but what users hold in their hands
HELD = {
    "x.at": type(jnp.zeros(1).at),
    "x.at[0]": type(jnp.zeros(1).at[0]),
    "jit(f)": type(ferrax.jit(lambda x: x)),
    "vjp": type(ferrax.vjp(jnp.sin, 1.0)[1]),
    "linearize": type(ferrax.linearize(jnp.sin, 1.0)[1]),
    "device": type(ferrax.devices()[0]),
    "sharding": type(jnp.zeros(1).sharding),
    "shard": type(jnp.zeros(1).addressable_shards[0]),
    "aval": type(jnp.zeros(1).aval),
    "structure": type(ferrax.tree.structure(1)),
    "jaxpr": type(ferrax.make_jaxpr(jnp.sin)(1.0)),
}


def is_ours(value):
    return str(getattr(value, "__module__", "")).partition(".")[0] == "ferrax"


def is_field(cls, name, value):
    """Whether an attribute is a slot or the default of one, which its class says something of."""
    slot = isinstance(value, types.MemberDescriptorType) and not inspect.getdoc(value)
    plain = slot or not hasattr(type(value), "__get__")
    return plain and re.search(rf"^ +([a-z_]+, )*{name}(, [a-z_]+)*: ", cls.__doc__ or "", re.M) is not None


def members(name, cls):
    """Public attributes of a class that ferrax's classes define."""
    for base in cls.__mro__:
        if is_ours(base):
            for attribute, value in vars(base).items():
                if not (attribute.startswith("_") or is_field(base, attribute, value)):
                    yield f"{name}.{attribute}", getattr(cls, attribute)


def documented():
    """(name, object) of whatever a user may ask about."""
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        yield module_name, module
        for name in getattr(module, "__all__", None) or dir(module):
            value = getattr(module, name)
            whole = f"{module_name}.{name}"
            if name.startswith("_") or isinstance(value, types.ModuleType) or not is_ours(value):
                continue
            yield whole, value
            if isinstance(value, type):
                yield from members(whole, value)
    for name, cls in HELD.items():
        yield name, cls
        yield from members(name, cls)


OBJECTS = {name: value for name, value in documented() if not isinstance(value, (np.dtype, int, str, typing.TypeVar))}


def test_there_are_many():
    assert len(OBJECTS) > 900
    assert {"ferrax.Array.at", "ferrax.Array.shape", "x.at[0].set", "ferrax.ShapeDtypeStruct.dtype"} <= set(OBJECTS)


def test_everything_says_what_it_is():
    silent = [name for name, value in OBJECTS.items() if len((inspect.getdoc(value) or "").strip()) < 10]
    assert silent == []


def test_no_text_is_that_of_its_class():
    """An object without a docstring of its own shows its class's: what a `partial` is, not what the function does."""
    borrowed = [
        name
        for name, value in OBJECTS.items()
        if not isinstance(value, type)
        and not is_ours(type(value))
        and inspect.getdoc(value) == inspect.getdoc(type(value))
    ]
    assert borrowed == []


def page(value):
    return pydoc.render_doc(value, renderer=pydoc.plaintext)


METHODS = ["set", "add", "subtract", "multiply", "divide", "power", "min", "max", "apply", "get"]


def test_the_page_of_updates():
    text = page(ferrax.Array.at)
    for method in METHODS:
        assert f"x.at[i].{method}(" in text
    for mode in ("promise_in_bounds", "drop", "clip", "fill"):
        assert f'"{mode}"' in text
    assert "help(jax.Array.at)" in page(jnp.zeros(3).at)
    assert "help(jax.Array.at)" in page(jnp.zeros(3).at[0])


@pytest.mark.parametrize("method", [*METHODS, "mul"])
def test_the_pages_of_its_methods(method):
    text = page(getattr(jnp.zeros(3).at[0], method))
    assert "mode" in text
    assert "wrap_negative_indices" in text
    assert ">>> " in text


EXAMPLES = {name: value for name, value in OBJECTS.items() if ">>> " in (inspect.getdoc(value) or "")}


@pytest.mark.parametrize(
    "name",
    # in an order that does not change from process to process, as that of a class's attributes may
    sorted(n for n in EXAMPLES if n.startswith((*HELD, "ferrax.Array.")) and not n.startswith(("jit(f)", "jaxpr"))),
)
def test_examples_of_attributes(name):
    report = []
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(EXAMPLES[name]), {}, name, name, 0)
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False).run(test, out=report.append)
    assert "".join(report) == ""


def test_modes_do_what_the_page_says():
    x, out = jnp.arange(4.0), jnp.array([1, 9])
    assert x.at[out].set(7.0).tolist() == x.at[out].set(7.0, mode="drop").tolist() == [0, 7, 2, 3]
    assert x.at[out].set(7.0, mode="fill").tolist() == [0, 7, 2, 3]
    assert x.at[out].set(7.0, mode="clip").tolist() == [0, 7, 2, 7]
    assert x.at[out].get().tolist() == x.at[out].get(mode="clip").tolist() == [1, 3]
    assert x.at[out].get(mode="fill", fill_value=-1).tolist() == [1, -1]
    assert np.isnan(x.at[out].get(mode="fill")[1])
