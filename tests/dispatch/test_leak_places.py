"""Where a leaked tracer can be kept: every ordinary container, other modules, whatever else there is in memory."""

import asyncio
import collections
import contextvars
import dataclasses
import functools
import gc
import itertools
import pickle
import queue
import re
import sys
import threading
import types
import weakref

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import _leaks, errors
from tests.cases import endings
from tests.dispatch import leaky_model


@dataclasses.dataclass(slots=True)
class Slotted:
    value: object = None


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: object = None


Point = collections.namedtuple("Point", "x y")


class Table(dict):
    pass


class Row(list):
    pass


class Private:
    __slots__ = ("__hidden", "__weakref__")

    def keep(self, value):
        self.__hidden = value


class Key:
    def __repr__(self):
        return "key"


class Managed:
    def __init__(self):
        self._value = None

    @property
    def value(self):
        raise AssertionError("a search runs no code of the user's")


def numbers(x):
    yield x
    yield x


async def wait(x):
    await asyncio.sleep(0)
    return x


async def produce(x):
    yield x
    yield x


def failing(x):
    error = ValueError("bad value", x)
    raise error


def caught(x):
    try:
        failing(x)
    except ValueError as e:
        return e


def chained(x):
    try:
        try:
            failing(x)
        except ValueError as e:
            e.__traceback__ = None
            raise KeyError("k") from e
    except KeyError as e:
        e.__traceback__ = None
        return e


def interrupted(y):
    try:
        raise RuntimeError("no")
    except RuntimeError as e:
        return e


def started(generator):
    next(generator)
    return generator


def awaited(coroutine):
    coroutine.send(None)
    return coroutine


def advanced(iterator):
    next(iterator)
    return iterator


def object_array(x):
    a = np.empty((2, 3), object)
    a[1, 2] = x
    return a


def record_array(x):
    a = np.zeros(2, [("n", int), ("o", object)])
    a["o"][1] = x
    return a


def weak_keys(x):
    d = weakref.WeakKeyDictionary()
    alive.append(Key())
    d[alive[-1]] = [x]
    return d


def weak_values(x):
    alive.append(Slot(x))
    return weakref.WeakValueDictionary({"k": alive[-1]})


class Slot:
    def __init__(self, value):
        self.value = value


def in_slots(cls, x):
    p = cls()
    p.keep(x)
    return p


def ordered(x):
    return collections.OrderedDict(a=1, k=x)


def with_default(x):
    d = collections.defaultdict(list)
    d["k"].append(x)
    return d


def managed(x):
    m = Managed()
    m._value = x
    return m


def queued(x):
    q = queue.Queue()
    q.put(x)
    return q


def simple_queue(x):
    q = queue.SimpleQueue()
    q.put(x)
    return q


def by_name(x):
    module = types.ModuleType("made")
    module.value = x
    return module


def in_thread_local(x):
    own = threading.local()
    own.value = x
    return own


def in_context(x):
    context = contextvars.copy_context()
    context.run(variable.set, x)
    return context


def method_of(x):
    return Slot(x).__init__


def closure_of(x):
    return lambda: x


def cached_by(decorator):
    def make(x):
        cached = decorator(lambda n: box.pop())
        box = [x]
        cached(2)
        return cached

    return make


def partial_cell(x):
    return closure_of(x).__closure__[0]


def jitted_closure(x):
    return ferrax.jit(lambda y: y + x)


def cycle(x):
    one = [None, x]
    one[0] = one
    return one


alive = []
variable = contextvars.ContextVar("variable")
unset = contextvars.ContextVar("unset")

# what the function stores in `kept`, made of a traced value; what the error says
WAYS = {
    "list": (lambda x: [1, [x]], "kept[1][0]"),
    "tuple": (lambda x: (1, x), "kept[1]"),
    "named tuple": (lambda x: Point(1, x), "kept.y"),
    "dict": (lambda x: {"a": {3: x}}, "kept['a'][3]"),
    "dict subclass": (lambda x: Table(k=x), "kept['k']"),
    "list subclass": (lambda x: Row([x]), "kept[0]"),
    "OrderedDict": (ordered, "kept['k']"),
    "defaultdict": (with_default, "kept['k'][0]"),
    "ChainMap": (lambda x: collections.ChainMap({}, {"k": x}), "kept.maps[1]['k']"),
    "UserDict": (lambda x: collections.UserDict(k=x), "kept.data['k']"),
    "UserList": (lambda x: collections.UserList([x]), "kept.data[0]"),
    "deque": (lambda x: collections.deque([1, x]), "kept[1]"),
    "set": (lambda x: {Slot(x)}, "list(kept)[0].value"),
    "frozenset": (lambda x: frozenset([Slot(x)]), "list(kept)[0].value"),
    "dictionary key": (lambda x: {Slot(x): 1}, "list(kept)[0].value"),
    "mapping proxy": (lambda x: types.MappingProxyType({"k": x}), "kept['k']"),
    "namespace": (lambda x: types.SimpleNamespace(a=x), "kept.a"),
    "slots": (Slotted, "kept.value"),
    "private slots": (lambda x: in_slots(Private, x), "kept._Private__hidden"),
    "frozen dataclass": (Frozen, "kept.value"),
    "property": (managed, "kept._value"),
    "class": (lambda x: type("Local", (), {"value": x}), "kept.value"),
    "class of an instance": (lambda x: type("Local", (), {"value": x})(), "type(kept).value"),
    "module": (by_name, "kept.value"),
    "closure": (closure_of, "kept's closure variable x"),
    "cell": (partial_cell, "kept.cell_contents"),
    "default argument": (lambda x: lambda y=x: y, "kept's default argument y"),
    "keyword default": (lambda x: lambda *, y=x: y, "kept's default argument y"),
    "function attribute": (lambda x: vars(f := lambda: 0).update(a=x) or f, "kept.a"),
    "jitted closure": (jitted_closure, "kept's closure variable x"),
    "partial": (lambda x: functools.partial(print, x, end=x), "kept.args[0]"),
    "partial keywords": (lambda x: functools.partial(print, end=x), "kept.keywords['end']"),
    "cache": (cached_by(functools.cache), "the cache of kept"),
    "method": (method_of, "kept.__self__.value"),
    "method of a list": (lambda x: [x].append, "kept.__self__[0]"),
    "static method": (lambda x: staticmethod(closure_of(x)), "kept.__func__'s closure variable x"),
    "slice": (lambda x: slice(x), "kept.stop"),
    "generator": (lambda x: started(numbers(x)), "kept.gi_frame.f_locals['x']"),
    "unstarted generator": (numbers, "kept.gi_frame.f_locals['x']"),
    "generator expression": (lambda x: (x for _ in range(3)), "kept.gi_frame.f_locals['x']"),
    "coroutine": (lambda x: awaited(wait(x)), "kept.cr_frame.f_locals['x']"),
    "async generator": (produce, "kept.ag_frame.f_locals['x']"),
    "exception": (lambda x: ValueError("bad", x), "kept.args[1]"),
    "exception raised": (caught, "kept.args[1]"),
    "exception attribute": (lambda x: vars(e := ValueError()).update(a=x) or e, "kept.a"),
    "cause": (chained, "kept.__cause__.args[1]"),
    "traceback": (interrupted, "kept.__traceback__.tb_frame.f_locals['y']"),
    "exception group": (lambda x: ExceptionGroup("g", [ValueError(x)]), "kept.exceptions[0].args[0]"),
    "stop": (StopIteration, "kept.value"),
    "object array": (object_array, "kept[1, 2]"),
    "object scalar": (lambda x: np.array(Slot(x)), "kept[()].value"),
    "record array": (record_array, "kept['o'][1]"),
    "map": (lambda x: map(abs, [x]), "kept (of type map)"),
    "map of a closure": (lambda x: map(closure_of(x), [1]), "kept (of type map)"),
    "filter": (lambda x: filter(None, [x]), "kept (of type filter)"),
    "zip": (lambda x: zip([x], [1], strict=True), "kept (of type zip)"),
    "enumerate": (lambda x: enumerate([x]), "kept (of type enumerate)"),
    "list iterator": (lambda x: iter([x]), "kept (of type list_iterator)"),
    "dict items": (lambda x: {"k": x}.items(), "kept (of type dict_items)"),
    "rows": (lambda x: iter(jnp.stack([x, x])), "kept (of type ferrax._Rows)"),
    "chain": (lambda x: advanced(itertools.chain([1, x])), "kept (of type itertools.chain)"),
    "queue": (queued, "kept.queue[0]"),
    "simple queue": (simple_queue, "kept (of type _queue.SimpleQueue)"),
    "weak keys": (weak_keys, "kept[key][0]"),
    "weak values": (weak_values, "alive[0].value"),
    "thread local": (in_thread_local, "kept.value"),
    "context": (in_context, "kept[variable]"),
    "token": (lambda x: (variable.set(x), variable.set(None))[1], "kept.old_value"),
    "context variable": (lambda x: variable.set(x), "variable.get()"),
    "indexed update": (lambda x: x.at[...], "kept.array"),
    "pulled-back function": (lambda x: ferrax.vjp(jnp.sin, x)[1], "the residuals of kept"),
    "linear function": (lambda x: ferrax.linearize(jnp.sin, x)[1], "the residuals of kept"),
    "cycle": (cycle, "kept[1]"),
}  # fmt: skip

kept = None


def leak(make, x=1.0):
    """Leaks through a container that is kept in this module; gives the leaked tracer."""
    tracers = []

    @ferrax.jit
    def leaking(x):
        global kept
        y = x + 1
        kept = make(y)
        # the test's own handle is weak, but for weak containers, whose tracer something else must hold
        tracers.append(weakref.ref(y))
        return x

    leaking(x)
    return tracers[0]


@pytest.fixture(autouse=True)
def empty():
    yield
    global kept
    kept = None
    alive.clear()
    variable.set(None)
    leaky_model.clear()
    gc.collect()


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """As much time as it takes, so that results do not depend on the machine's load."""
    monkeypatch.setattr(_leaks, "_SEARCH", 30.0)
    monkeypatch.setattr(_leaks, "_WHOLE", 60.0)


def place(use):
    """What the error of using a leaked tracer says of its place."""
    with pytest.raises(errors.UnexpectedTracerError) as caught:
        use()
    found = re.search(r"It is kept in (.*)\.\n", str(caught.value))
    return found and found[1]


# a weak reference keeps nothing; the tracers inside these are the test's to reach in another way
NO_HANDLE = ("pulled-back function", "linear function", "rows")


@pytest.mark.parametrize("way", [w for w in WAYS if w not in NO_HANDLE])
def test_the_place_is_named(way):
    make, expected = WAYS[way]
    reference = leak(make)
    assert place(lambda: reference() + 1) == expected


@pytest.mark.parametrize(
    "way, use", [(NO_HANDLE[0], lambda f: f(1.0)), (NO_HANDLE[1], lambda f: f(1.0)), (NO_HANDLE[2], next)]
)
def test_the_place_is_named_where_the_container_uses_it(way, use):
    make, expected = WAYS[way]
    leak(make)
    assert place(lambda: use(kept)) == expected


@pytest.mark.parametrize("way", [w for w in WAYS if not WAYS[w][1].startswith("the residuals")])
def test_the_checker_names_place_and_line(way):
    make, expected = WAYS[way]
    with pytest.raises(Exception, match="Leaked trace") as caught, ferrax.checking_leaks():
        leak(make)
    assert f"It is kept in {expected}, stored at {__file__}:" in str(caught.value)


def test_weak_references_keep_nothing():
    reference = leak(lambda y: weakref.ref(y))
    assert reference() is None
    with ferrax.checking_leaks():
        leak(lambda y: weakref.ref(y))
        leak(lambda y: weakref.WeakValueDictionary({"k": y}))


MODULE = leaky_model.__name__


@pytest.mark.parametrize(
    "function, use, expected",
    [
        ("step", lambda: leaky_model._last + 1, "_last"),
        ("remember", lambda: leaky_model._history[0] + 1, "_history[0]"),
        ("fill", lambda: leaky_model.Cache.values["x"] + 1, "Cache.values['x']"),
    ],
)
def test_other_modules_are_named(function, use, expected):
    getattr(leaky_model, function)(1.0)
    assert place(use) == f"{MODULE}.{expected}"
    leaky_model.clear()
    with pytest.raises(Exception, match="Leaked trace") as caught, ferrax.checking_leaks():
        getattr(leaky_model, function)(2.0)
    assert f"It is kept in {MODULE}.{expected}, stored at {leaky_model.__file__}:" in str(caught.value)


def test_a_module_that_does_not_import_the_function():
    """The function that leaks is one module's, the container another's, and neither is on the stack."""
    sys.modules["elsewhere"] = types.ModuleType("elsewhere")
    sys.modules["elsewhere"].table = {}
    try:
        reference = leak(lambda y: sys.modules["elsewhere"].table.update(y=y))
        assert place(lambda: reference() + 1) == "elsewhere.table['y']"
    finally:
        del sys.modules["elsewhere"]


def test_variables_of_other_threads():
    go, ready = threading.Event(), threading.Event()
    references = []

    @ferrax.jit
    def leaking(x):
        y = x + 1
        references.append(weakref.ref(y))

        def work(values):
            ready.set()
            go.wait()

        threading.Thread(target=work, args=([y],), name="worker").start()
        ready.wait()
        return x

    leaking(1.0)
    try:
        assert place(lambda: references[0]() + 1) == "work's local variable values[0]"
    finally:
        go.set()
        next(t for t in threading.enumerate() if t.name == "worker").join()


def test_containers_come_before_variables():
    leak(lambda y: {"k": y})
    fetched = kept["k"]
    assert place(lambda: fetched + 1) == "kept['k']"


def test_the_shortest_name_wins():
    one = leak(lambda y: {"far": {"away": [y]}, "near": y})
    assert place(lambda: one() + 1) == "kept['near']"


def test_what_has_no_name():
    """Only the interpreter holds it: the type of the holder is all there is to say."""
    import atexit

    def hold(value):
        pass

    reference = leak(lambda y: atexit.register(hold, y) and None)
    try:
        assert place(lambda: reference() + 1) == "an object of type tuple that no name was found for"
    finally:
        atexit.unregister(hold)


@pytest.fixture
def other_modules(monkeypatch):
    """As many more modules as a large program has, each with containers of containers."""
    for i in range(500):
        module = types.ModuleType(f"other_{i}")
        module.__file__ = f"/src/other_{i}.py"
        for j in range(4):
            setattr(module, f"table_{j}", {"rows": [[Key()], [Key()]], "columns": {"a": [Key()], "b": [Key()]}})
        monkeypatch.setitem(sys.modules, module.__name__, module)


def test_parts_of_libraries_are_libraries(monkeypatch):
    """Submodules of extension modules and folders of modules have no file; their package says whose they are."""
    for name, file in (("someone", "/lib/site-packages/someone/__init__.py"), ("someone.native", None)):
        module = types.ModuleType(name)
        module.__file__ = file
        monkeypatch.setitem(sys.modules, name, module)
    inner = types.ModuleType("someone.native.inner")
    monkeypatch.setitem(sys.modules, inner.__name__, inner)
    assert _leaks._origin(vars(inner)) == _leaks._INSTALLED
    assert _leaks._origin(vars(types.ModuleType("made"))) == _leaks._USER


def test_all_of_the_library_is_known_as_its_own():
    own = [m for name, m in sys.modules.items() if name.partition(".")[0] == "ferrax"]
    assert [m.__name__ for m in own if _leaks._origin(vars(m)) != _leaks._OWN] == []


def test_the_newest_of_a_long_list_comes_first(monkeypatch, other_modules):
    """However long the lists and however many the modules, a bounded number of steps finds what was appended last."""
    steps = 0

    def clock():
        nonlocal steps
        steps += 1
        return steps * 1e-3

    long = [[i] for i in range(100_000)]
    table = {i: [i] for i in range(100_000)}
    monkeypatch.setattr(_leaks, "_SEARCH", 2.0)
    monkeypatch.setattr(_leaks, "_SURE", 0)
    monkeypatch.setattr(_leaks.time, "perf_counter", clock)
    reference = leak(lambda y: long.append([y]))
    assert place(lambda: reference() + 1) == "long[100000][0]"
    long.clear()
    reference = leak(lambda y: table.update(k=[y]))
    assert place(lambda: reference() + 1) == "table['k'][0]"


def test_what_lies_near_is_named_however_late_it_is():
    """On a busy machine the time can be over before the search begins. Runners of tests keep much that is near."""
    case = """
    near = {}
    jax.jit(lambda y: (near.update(k=[y]), y)[1])(1.0)
    raises(jax.errors.UnexpectedTracerError, "near['k'][0]", lambda: near["k"][0] + 1)
    """
    setup = "import ferrax as jax\nfrom ferrax import _leaks\n_leaks._SEARCH = _leaks._WHOLE = -1.0\n"
    assert endings(setup, {"near": case}) == {"near": "ok"}


def test_the_search_ends_when_its_time_is_over(monkeypatch):
    reference = leak(lambda y: [[y]])
    monkeypatch.setattr(_leaks, "_SEARCH", 0.0)
    monkeypatch.setattr(_leaks, "_SURE", 0)
    monkeypatch.setattr(_leaks, "_WHOLE", 0.0)
    assert place(lambda: reference() + 1) is None


def test_old_cycles_are_no_leaks():
    """Garbage that only a whole collection finds, made while the function is traced, is not reported."""

    def clean(x):
        loop = [x + 1]
        loop.append(loop)
        del loop
        # the cycle grows old before it is collected
        held = [[] for _ in range(100_000)]
        return x + len(held)

    with ferrax.checking_leaks():
        assert ferrax.jit(clean)(1.0) == 100_001


# ---- conversions ----------------------------------------------------------------------------------------------------

CONVERSIONS = {
    "float": float,
    "int": int,
    "bool": bool,
    "complex": complex,
    "range": range,
    "len": len,
    "iter": list,
    "index": lambda t: [1, 2][t],
    "slice": lambda t: [1, 2][:t],
    "numpy index": lambda t: np.zeros(3)[t],
    "asarray": np.asarray,
    "array": lambda t: np.array([t]),
    "numpy function": np.sin,
    "numpy dtype": lambda t: np.float32(t),
    "item": lambda t: t.item(),
    "tolist": lambda t: t.tolist(),
    "tobytes": lambda t: t.tobytes(),
    "format": lambda t: f"{t:.2f}",
    "percent": lambda t: "%f" % t,  # noqa: UP031
    "shape": jnp.zeros,
    "shape element": lambda t: jnp.ones((2, t)),
    "reshape": lambda t: jnp.ones(1).reshape(t),
    "arange": jnp.arange,
    "axis": lambda t: jnp.ones(2).sum(t),
    "random shape": lambda t: ferrax.random.normal(ferrax.random.key(0), (t,)),
    "pickle": lambda t: pickle.dumps(t),
    "block": lambda t: t.block_until_ready(),
    "devices": lambda t: t.devices(),
    "if": lambda t: 1 if t else 2,
    "addition": lambda t: t + 1,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("how", CONVERSIONS)
def test_conversions_explain_the_leak(how, dtype):
    leak(lambda y: [y], jnp.zeros((), dtype))
    with pytest.raises(errors.UnexpectedTracerError) as caught:
        CONVERSIONS[how](kept[0])
    text = str(caught.value)
    assert "It is kept in kept[0]." in text
    assert "The function leaking at" in text
    assert "static_arg" not in text


def test_a_leaked_mask_explains_the_leak():
    leak(lambda y: [y > 0], jnp.ones(3))
    with pytest.raises(errors.UnexpectedTracerError, match=r"kept\[0\]"):
        jnp.ones(3)[kept[0]]


@pytest.mark.parametrize("how", ["float", "asarray", "tolist", "format", "addition"])
@pytest.mark.parametrize("transform", [ferrax.grad, ferrax.vmap], ids=["grad", "vmap"])
def test_conversions_after_other_transformations(how, transform):
    def leaking(x):
        global kept
        kept = [x * 2]
        return x

    transform(leaking)(jnp.ones(2) if transform is ferrax.vmap else 1.0)
    with pytest.raises(errors.UnexpectedTracerError, match=r"kept\[0\]"):
        CONVERSIONS[how](kept[0])


def test_what_needs_no_value_stays():
    leak(lambda y: [y], jnp.ones((2, 3)))
    leaked = kept[0]
    assert (leaked.shape, leaked.dtype, leaked.ndim, len(leaked)) == ((2, 3), jnp.float32, 2, 2)
    assert repr(leaked) == f"{leaked}" == "JitTracer(float32[2,3])"
    assert not hasattr(leaked, "device")


def test_tracers_that_live_are_advised_as_before():
    @ferrax.jit
    def alive_still(x):
        return float(x)

    with pytest.raises(errors.ConcretizationTypeError, match="static_argnums"):
        alive_still(1.0)


def test_assignments_to_variables_of_outer_functions_are_no_stores():
    """What an inner function assigns to a variable of a running function is not kept; what is stored later, is."""
    kept_rows = []

    def step(x):
        row = first = None

        def assign():
            nonlocal row
            row = x + 1
            row = row * 2

        assign()
        first = row
        kept_rows.append(first)  # stores
        del first
        return x

    number = step.__code__.co_firstlineno + 10
    with pytest.raises(Exception, match=rf"kept_rows\[0\], stored at {re.escape(__file__)}:{number}\b"):
        with ferrax.checking_leaks():
            ferrax.jit(step)(1.0)
