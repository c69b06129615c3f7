"""A stale program is never run: mutated static arguments, and captured values under `check_captures`."""

import dataclasses
import enum
import functools
import gc
import types
import weakref
from collections import OrderedDict, UserDict, defaultdict, deque

import ml_dtypes
import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp


class Config:
    """A plain object, hashed by identity."""

    def __init__(self, **fields):
        self.__dict__.update(fields)


class Slotted:
    __slots__ = ("scale",)

    def __init__(self, scale):
        self.scale = scale


@dataclasses.dataclass(eq=False)
class Record:
    scale: float = 2.0
    layers: list = dataclasses.field(default_factory=lambda: [1.0, 2.0])


class Model:
    factor = 2.0

    def __init__(self):
        self.scale = 2.0
        self.steps = 0
        self.unread = [1]
        self.layers = [1.0, 2.0]
        self.table = {"a": 1.0}
        self.weights = np.arange(3.0)
        self.inner = Config(scale=3.0, deep=Config(scale=4.0))
        self.many = [Config(scale=1.0), Config(scale=2.0)]
        self.names = {"x"}
        self._hidden = 5.0

    @property
    def hidden(self):
        return self._hidden

    @functools.cached_property
    def product(self):
        return self.scale * self.factor

    def helper(self):
        return self.scale + 1.0


def setter(name, value):
    return lambda m: setattr(m, name, value)


# What the function reads, how that is changed, what the message names.
MUTATIONS = {
    "attribute": (lambda m: m.scale, setter("scale", 3.0), "self.scale changed from 2.0 to 3.0"),
    "kind of number": (lambda m: m.scale, setter("scale", 2), "self.scale changed from 2.0 to 2"),
    "sign of zero": (lambda m: m.zero, setter("zero", -0.0), "self.zero changed from 0.0 to -0.0"),
    "removed": (lambda m: m.scale, lambda m: delattr(m, "scale"), "self.scale was removed"),
    "added": (lambda m: getattr(m, "extra", 1.0), setter("extra", 2.0), "self.extra was added with the value 2.0"),
    "list append": (lambda m: sum(m.layers), lambda m: m.layers.append(5.0), r"self.layers\[2\] was added .* 5.0"),
    "list item": (lambda m: sum(m.layers), lambda m: m.layers.__setitem__(0, 9.0), r"self.layers\[0\] changed .* 9.0"),
    "list pop": (lambda m: sum(m.layers), lambda m: m.layers.pop(), r"self.layers\[1\] was removed"),
    "dict set": (lambda m: m.table["a"], lambda m: m.table.update(a=2.0), r"self.table\['a'\] changed from 1.0 to 2.0"),
    "dict add": (lambda m: sum(m.table.values()), lambda m: m.table.update(b=2.0), r"self.table\['b'\] was added"),
    "dict del": (lambda m: sum(m.table.values()), lambda m: m.table.clear(), r"self.table\['a'\] was removed"),
    "set": (lambda m: len(m.names), lambda m: m.names.add("y"), "self.names changed"),
    "ndarray": (
        lambda m: m.weights,
        lambda m: m.weights.__setitem__(1, 7.0),
        r"self.weights\[1\] changed from 1.0 to 7.0",
    ),
    "nested": (lambda m: m.inner.scale, lambda m: setattr(m.inner, "scale", 0.0), "self.inner.scale changed"),
    "deep": (
        lambda m: m.inner.deep.scale,
        lambda m: setattr(m.inner.deep, "scale", 0.0),
        "self.inner.deep.scale changed",
    ),
    "replaced object": (lambda m: m.inner.scale, setter("inner", Config(scale=1.0)), "self.inner changed"),
    "in a list": (
        lambda m: sum(c.scale for c in m.many),
        lambda m: setattr(m.many[1], "scale", 0.0),
        r"self.many\[...\].scale",
    ),
    "class attribute": (
        lambda m: m.factor,
        lambda m: setattr(type(m), "factor", 4.0),
        "self.factor changed from 2.0 to 4.0",
    ),
    "hidden by the instance": (lambda m: m.factor, setter("factor", 4.0), "self.factor changed from 2.0 to 4.0"),
    "through a property": (lambda m: m.hidden, setter("_hidden", 6.0), "self._hidden changed from 5.0 to 6.0"),
    "through a method": (lambda m: m.helper(), setter("scale", 3.0), "self.scale changed"),
    "through vars": (lambda m: vars(m)["scale"], setter("scale", 3.0), r"self\['scale'\] changed"),
    "through hasattr": (lambda m: 2.0 if hasattr(m, "extra") else 1.0, setter("extra", 2.0), "self.extra was added"),
    "cached property": (lambda m: m.product, setter("scale", 7.0), "self.scale changed"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_what_the_trace_read_must_not_change(name):
    read, mutate, message = MUTATIONS[name]
    model = type("Model", (Model,), {"factor": 2.0})()
    model.zero = 0.0
    f = jax.jit(lambda self, x: x * read(self), static_argnums=0)
    x = jnp.arange(3.0)
    expected = np.asarray(f(model, x))
    np.testing.assert_array_equal(f(model, x), expected)
    mutate(model)
    for _ in range(2):
        with pytest.raises(ValueError, match=message) as caught:
            f(model, x)
    assert "static argument self of" in str(caught.value) and "mutated" in str(caught.value)


def test_slots_dataclasses_and_containers_of_other_kinds():
    def check(value, read, mutate, message):
        f = jax.jit(lambda cfg, x: x * read(cfg), static_argnames="cfg")
        f(cfg=value, x=1.0)
        f(cfg=value, x=1.0)
        mutate(value)
        with pytest.raises(ValueError, match=message):
            f(cfg=value, x=1.0)

    check(Slotted(2.0), lambda c: c.scale, lambda c: setattr(c, "scale", 3.0), "cfg.scale changed from 2.0 to 3.0")
    check(Slotted([1.0]), lambda c: c.scale[0], lambda c: c.scale.append(3.0), r"cfg.scale\[1\] was added")
    check(Record(), lambda c: sum(c.layers), lambda c: c.layers.append(3.0), r"cfg.layers\[2\] was added")
    for container in (deque([1.0]), OrderedDict(a=1.0), defaultdict(float, a=1.0), UserDict(a=1.0)):
        value = Config(box=container)

        def mutate(c):
            c.box.append(2.0) if isinstance(c.box, deque) else c.box.__setitem__("b", 2.0)

        check(value, lambda c: len(c.box), mutate, "was added")


@pytest.mark.parametrize("dtype", ["float32", "bool", "object", "complex128", ml_dtypes.bfloat16])
@pytest.mark.parametrize("layout", ["C", "F", "strided", "rank 0"])
def test_arrays_written_in_place(dtype, layout):
    array = {
        "C": np.zeros((4, 6)),
        "F": np.zeros((6, 4)).T,
        "strided": np.zeros((8, 12))[::2, ::2],
        "rank 0": np.zeros(()),
    }[layout].astype(dtype, order="K")
    cfg = Config(w=array)
    f = jax.jit(lambda cfg, x: x * cfg.w.size, static_argnums=0)
    f(cfg, 1.0)
    f(cfg, 1.0)
    array[(2, 3) if array.ndim else ()] = 1
    with pytest.raises(ValueError, match=r"cfg.w\[(2, 3)?\] changed from"):
        f(cfg, 1.0)


def test_static_functions_and_what_they_hold():
    def make(scale):
        def g(x, offset=[1.0]):
            return x * scale + offset[0]

        def change(value):
            nonlocal scale
            scale = value

        return g, change

    f = jax.jit(lambda g, x: g(x), static_argnums=0)
    g, change = make(2.0)
    assert f(g, 1.0) == 3.0
    assert f(g, 1.0) == 3.0
    change(5.0)
    with pytest.raises(ValueError, match=r"closure variable scale changed from 2.0 to 5.0"):
        f(g, 1.0)
    g, _ = make(2.0)
    assert f(g, 1.0) == 3.0
    g.__defaults__[0][0] = 9.0
    with pytest.raises(ValueError, match="default arguments"):
        f(g, 1.0)
    model = Model()
    assert f(functools.partial(lambda m, x: x * m.scale, model), 1.0) == 2.0
    bound = types.MethodType(lambda self, x: x * self.scale, model)
    assert f(bound, 1.0) == 2.0
    model.scale = 4.0
    with pytest.raises(ValueError, match=r"scale changed from 2.0 to 4.0"):
        f(bound, 1.0)


def test_what_the_trace_did_not_read_may_change():
    class Counting(Model):
        @functools.partial(jax.jit, static_argnums=0)
        def step(self, x):
            self.steps += 1
            self.layers.append(1.0)
            return x * self.scale

    model = Counting()
    calls = [jnp.arange(3.0), jnp.arange(4.0), jnp.arange(3.0), jnp.arange(4.0)]
    for x in calls:
        np.testing.assert_array_equal(model.step(x), x * 2.0)
        model.unread.append(2)
        model.new = 3
        model.product
        model.hidden
    assert model.steps == 2
    model.steps = 100
    np.testing.assert_array_equal(model.step(calls[0]), calls[0] * 2.0)


def test_a_cached_property_is_read_before_and_after_it_is_filled():
    model = Model()
    f = jax.jit(lambda m, x: x * m.scale, static_argnums=0)
    f(model, 1.0)
    assert model.product == 4.0
    f(model, 1.0)
    g = jax.jit(lambda m, x: x * m.product, static_argnums=0)
    other = Model()
    assert g(other, 1.0) == 4.0
    assert g(other, 1.0) == 4.0
    del other.product
    assert g(other, 1.0) == 4.0
    other.product = 9.0
    with pytest.raises(ValueError, match=r"product changed from 4.0 to 9.0"):
        g(other, 1.0)


def test_equal_values_may_be_put_in_place():
    model = Model()
    f = jax.jit(lambda m, x: x * m.scale * m.weights.sum() * sum(m.layers), static_argnums=0)
    f(model, 1.0)
    model.scale, model.weights, model.layers = float("2"), np.arange(3.0), [1.0, 2.0]
    f(model, 1.0)


def test_objects_with_an_equality_of_their_own():
    class Named:
        def __init__(self, name, scale):
            self.name, self.scale = name, scale

        def __hash__(self):
            return hash(self.name)

        def __eq__(self, other):
            return isinstance(other, Named) and self.name == other.name

    f = jax.jit(lambda c, x: x * c.scale, static_argnums=0)
    first, second = Named("a", 2.0), Named("a", 3.0)
    assert f(first, 1.0) == 2.0
    assert f(second, 1.0) == 2.0, "its class says that it is the same"
    first.scale = 4.0
    with pytest.raises(ValueError, match=r"c.scale changed"):
        f(first, 1.0)


def test_classes_are_as_before_when_a_trace_has_ended():
    class Base:
        def __init__(self):
            self.scale = 2.0

        def __getattr__(self, name):
            return 7.0 if name == "dynamic" else object.__getattribute__(self, name)

    seen = {}

    @functools.partial(jax.jit, static_argnums=0)
    def f(self, x):
        class Derived(Base):
            pass

        seen["class"] = Derived
        seen["derived"] = Derived().scale, Derived().dynamic
        with pytest.raises(AttributeError, match="missing"):
            self.missing
        return x * self.scale * self.dynamic

    base = Base()
    assert f(base, 1.0) == 14.0
    assert seen["derived"] == (2.0, 7.0) and seen["class"]().dynamic == 7.0
    with pytest.raises(RuntimeError, match="on purpose"):
        jax.jit(lambda self, x: fail(self.scale), static_argnums=0)(base, 1.0)
    base.scale = 2.0
    assert f(base, 1.0) == 14.0
    assert base.dynamic == 7.0 and Base().scale == 2.0


def fail(_):
    raise RuntimeError("on purpose")


def test_reads_of_an_inner_program_are_those_of_the_outer():
    class Inner(Model):
        @functools.partial(jax.jit, static_argnums=0)
        def loss(self, x):
            return x * self.scale

    model = Inner()
    assert model.loss(1.0) == 2.0
    outer = jax.jit(lambda m, x: m.loss(x) + 1.0, static_argnums=0)
    assert outer(model, 1.0) == 3.0
    model.scale = 5.0
    with pytest.raises(ValueError, match=r"scale changed from 2.0 to 5.0"):
        outer(model, 1.0)


def test_enums_types_and_numbers_are_static_arguments_as_before():
    class Mode(enum.Enum):
        ONE = 1.0

    f = jax.jit(lambda mode, kind, n, x: x * mode.value * n, static_argnums=(0, 1, 2))
    assert f(Mode.ONE, float, 3, 2.0) == 6.0
    assert f(Mode.ONE, float, 3, 2.0) == 6.0
    assert Mode.ONE.value == 1.0


SOURCE = """
import ferrax as jax
import ferrax.numpy as jnp
import numpy as np

scale = 2.0
table = {"a": [1.0]}
weights = np.ones(3)

class Settings:
    rate = 1.0

settings = Settings()
settings.depth = 3.0

def helper(x):
    return x * scale

def make():
    inner = 2.0
    def f(x):
        return x * inner
    def change(value):
        nonlocal inner
        inner = value
    return jax.jit(f), change

@jax.jit
def direct(x):
    return x * scale

@jax.jit
def through_helper(x):
    return helper(x) + 1.0

@jax.jit
def of_container(x):
    return x * table["a"][0]

@jax.jit
def of_array(x):
    return x * weights.sum()

@jax.jit
def of_object(x):
    return x * settings.depth

@jax.jit
def of_class(x):
    return x * Settings.rate

class Model:
    def __init__(self):
        self.scale = 2.0
    def step(self, x):
        return x * self.scale

model = Model()
of_method = jax.jit(model.step)

calls = 0

@jax.jit
def counting(x):
    global calls
    calls += 1
    return x * 2.0
"""

CHANGES = {
    "direct": ("scale = 3.0", "global scale changed from 2.0 to 3.0"),
    "through_helper": ("scale = 3.0", "global scale changed from 2.0 to 3.0"),
    "of_container": ("table['a'][0] = 4.0", r"global table\['a'\]\[0\] changed from 1.0 to 4.0"),
    "of_array": ("weights[1] = 5.0", r"global weights\[1\] changed from 1.0 to 5.0"),
    "of_object": ("settings.depth = 4.0", "global settings.depth changed from 3.0 to 4.0"),
    "of_class": ("Settings.rate = 4.0", "global Settings.rate changed from 1.0 to 4.0"),
    "of_method": ("model.scale = 4.0", "self.scale changed from 2.0 to 4.0"),
}


@pytest.mark.parametrize("traced", ["inside", "before"])
@pytest.mark.parametrize("name", CHANGES)
def test_captured_values_are_named_under_check_captures(name, traced):
    change, message = CHANGES[name]
    module = types.ModuleType("captures_of_a_test")
    exec(SOURCE, module.__dict__)
    f = getattr(module, name)
    if traced == "before":
        expected = f(1.0)
        assert f(1.0) == expected
        exec(change, module.__dict__)
        assert f(1.0) == expected, "as in JAX, outside"
    with jax.check_captures():
        if traced == "inside":
            expected = f(1.0)
            assert f(1.0) == expected
            exec(change, module.__dict__)
        for _ in range(2):
            with pytest.raises(jax.errors.CaptureError, match=message) as caught:
                f(1.0)
        assert "was traced" in str(caught.value)
        f.clear_cache()
        assert f(1.0) != expected or name == "of_array"


def test_a_captured_closure_variable_is_named():
    module = types.ModuleType("captures_of_a_test")
    exec(SOURCE, module.__dict__)
    f, change = module.make()
    with jax.check_captures():
        assert f(1.0) == 2.0
        change(2.0)
        assert f(1.0) == 2.0
        change(7.0)
        with pytest.raises(jax.errors.CaptureError, match=r"closure variable inner of f changed from 2.0 to 7.0"):
            f(1.0)


def test_captured_values_that_did_not_change_are_no_error():
    module = types.ModuleType("captures_of_a_test")
    exec(SOURCE, module.__dict__)
    with jax.check_captures():
        for name in CHANGES:
            f = getattr(module, name)
            assert f(1.0) == f(1.0)
        module.unrelated = 1
        module.settings.unread = 5
        for name in CHANGES:
            getattr(module, name)(1.0)
        for x in (1.0, jnp.arange(3.0), 1.0, jnp.arange(3.0)):
            module.counting(x)
        assert module.calls == 2, "what the function itself writes is its own"


def test_what_was_captured_is_not_kept_alive():
    def traced():
        captured = Config(size=2.0)
        f = jax.jit(lambda x: x * captured.size)
        assert f(1.0) == 2.0
        return weakref.ref(f), weakref.ref(captured)

    gone = traced()
    gc.collect()
    assert gone[0]() is None and gone[1]() is None


def test_a_call_knows_what_was_captured_when_a_stage_traced_it():
    scale = 2.0

    def times(x):
        return x * scale

    f, x = jax.jit(times), jnp.ones(2)
    f.lower(x)
    scale = 3.0
    np.testing.assert_array_equal(f(x), [2, 2])  # as in JAX
    with jax.check_captures(), pytest.raises(Exception, match="scale"):
        f(x)
