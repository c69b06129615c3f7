"""Ten ways to leak a tracer: errors name place and function, with `checking_leaks` the storing line too (P5)."""

import functools
import threading

import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import _leaks, errors

kept_global = None
kept_list = []
kept_dict = {"by": {"name": []}}


class Store:
    shared = None

    def __init__(self):
        self.d = {"k": [None]}
        self.last = None


store = Store()


def by_global(x):
    global kept_global
    kept_global = x + 1  # stores
    return x


def by_attribute(x):
    store.last = x + 1  # stores
    return x


def by_list(x):
    y = x + 1
    kept_list.append(y)  # stores
    z = y * 2
    return z + x


def by_dict(x):
    for i in range(3):
        x = x + i
    kept_dict["by"]["name"] = [x]  # stores
    return x * 2


def by_nested_path(x):
    store.d["k"][0] = x  # stores
    return x


def make_closure():
    kept = None

    def by_closure(x):
        nonlocal kept
        kept = x + 1  # stores
        return x

    def read():
        return kept

    by_closure.read = read
    return by_closure


by_closure = make_closure()


def by_default(x, memo=[]):
    memo.append(x + 1)  # stores
    return x


def numbers(x):
    yield x + 1
    yield x + 2


kept_generators = {}


def by_generator(x):
    kept_generators["one"] = numbers(x)
    next(kept_generators["one"])
    return x


@functools.lru_cache
def cached():
    return hidden[0] + 1


hidden = []


def by_cache(x):
    hidden.append(x)
    cached()
    hidden.clear()
    return x


def by_class_attribute(x):
    Store.shared = x + 1  # stores
    return x


kept_by_thread = []


def by_thread(x):
    worker = threading.Thread(target=kept_by_thread.append, args=(x + 1,))
    worker.start()
    worker.join()
    return x


# function, how to get at the leaked value, the place
WAYS = {
    "global": (by_global, lambda: kept_global, "the variable kept_global"),
    "attribute": (by_attribute, lambda: store.last, "store.last"),
    "list": (by_list, lambda: kept_list[0], "kept_list[0]"),
    "dict": (by_dict, lambda: kept_dict["by"]["name"][0], "kept_dict['by']['name'][0]"),
    "nested path": (by_nested_path, lambda: store.d["k"][0], "store.d['k'][0]"),
    "closure": (by_closure, lambda: by_closure.read(), "by_closure's closure variable kept"),
    "default argument": (by_default, lambda: by_default.__defaults__[0][0], "by_default's default argument memo[0]"),
    "generator": (by_generator, lambda: next(kept_generators["one"]), "kept_generators['one'].gi_frame.f_locals['x']"),
    "cache decorator": (by_cache, lambda: cached(), "the cache of cached"),
    "class attribute": (by_class_attribute, lambda: Store.shared, "Store.shared"),
    "thread": (by_thread, lambda: kept_by_thread[0], "kept_by_thread[0]"),
}


@pytest.fixture(autouse=True)
def empty():
    yield
    global kept_global
    kept_global = Store.shared = store.last = by_closure.__closure__[0].cell_contents = None
    store.d["k"][0] = None
    kept_dict["by"]["name"] = []
    for container in (kept_list, kept_by_thread, kept_generators, by_default.__defaults__[0], hidden):
        container.clear()
    cached.cache_clear()


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """As much time as it takes, so that results do not depend on the machine's load."""
    monkeypatch.setattr(_leaks, "_SEARCH", 30.0)
    monkeypatch.setattr(_leaks, "_WHOLE", 60.0)


TRANSFORMS = {
    "jit": lambda f: ferrax.jit(lambda x: f(x)),
    "grad": lambda f: ferrax.grad(lambda x: f(x)),
    "vmap": lambda f: ferrax.vmap(lambda x: f(x)),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_error_names_the_place_and_the_function(way):
    fun, leaked, place = WAYS[way]
    ferrax.jit(fun)(1.0)
    with pytest.raises(errors.UnexpectedTracerError) as caught:
        leaked() + 1
    text = str(caught.value)
    assert f"It is kept in {place}." in text
    assert f"The function {fun.__name__} at {__file__}" in text
    assert "traced for jit" in text


def stored_line(fun):
    """The line of the function that is marked as the one that stores."""
    with open(__file__) as f:
        lines = f.read().splitlines()
    first = fun.__code__.co_firstlineno
    return next(n for n in range(first, first + 12) if lines[n - 1].endswith("# stores"))


MARKED = ["global", "attribute", "list", "dict", "nested path", "closure", "default argument", "class attribute"]


@pytest.mark.parametrize("way", MARKED)
def test_the_checker_names_the_storing_line(way):
    fun, _, place = WAYS[way]
    with pytest.raises(Exception, match="Leaked trace") as caught, ferrax.checking_leaks():
        ferrax.jit(fun)(1.0)
    text = str(caught.value)
    assert f"{fun.__name__} at {__file__}" in text
    assert f"It is kept in {place}, stored at {__file__}:{stored_line(fun)}" in text


@pytest.mark.parametrize("way", [w for w in WAYS if w not in MARKED])
def test_the_checker_names_the_place(way):
    fun, _, place = WAYS[way]
    with pytest.raises(Exception, match="Leaked trace") as caught, ferrax.checking_leaks():
        ferrax.jit(fun)(1.0)
    assert f"It is kept in {place}" in str(caught.value)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_other_transformations(transform):
    f = TRANSFORMS[transform](by_list)
    x = jnp.ones(2) if transform == "vmap" else 1.0
    with pytest.raises(Exception, match="Leaked trace") as caught, ferrax.checking_leaks():
        f(x)
    assert f"kept_list[0], stored at {__file__}:{stored_line(by_list)}" in str(caught.value)


def test_checking_retraces_what_was_traced_before():
    f = ferrax.jit(by_list)
    f(1.0)
    kept_list.clear()
    with pytest.raises(Exception, match="Leaked trace"), ferrax.checking_leaks():
        f(1.0)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_nothing_is_found_where_nothing_leaks(transform):
    def fine(x):
        values = [x + 1]
        table = {"a": values[0] * 2}
        memo = tuple(table.values())
        return jnp.sin(memo[0])

    x = jnp.ones(2) if transform == "vmap" else 1.0
    with ferrax.checking_leaks():
        TRANSFORMS[transform](fine)(x)


def _of_a_rule(decorate):
    def called(x):
        f = decorate(lambda x: jnp.sin(x))
        if decorate is ferrax.custom_jvp:
            f.defjvp(lambda primals, tangents: (f(*primals), 2.0 * tangents[0]))
        else:
            f.defvjp(lambda x: (f(x), x), lambda x, g: (2.0 * g,))
        return f(x)

    return called


RULES = {
    "custom_jvp": _of_a_rule(ferrax.custom_jvp),
    "custom_vjp": _of_a_rule(ferrax.custom_vjp),
    "relu": ferrax.nn.relu,
    "softmax": lambda x: ferrax.nn.softmax(jnp.stack([x, 2 * x])).sum(),
    "checkpoint": ferrax.checkpoint(lambda x: ferrax.nn.relu(jnp.sin(x))),
    "scan": lambda x: ferrax.lax.scan(lambda c, y: (ferrax.nn.relu(c) * y, c), x, jnp.arange(3.0))[0],
    "cond": lambda x: ferrax.lax.cond(x > 0, ferrax.nn.relu, jnp.cos, x),
    "map": lambda x: ferrax.lax.map(ferrax.nn.relu, jnp.stack([x, x])).sum(),
}


@pytest.mark.parametrize("name", RULES)
def test_rules_of_derivatives_keep_no_values_of_a_call(name):
    f = RULES[name]
    with ferrax.checking_leaks():
        ferrax.jit(lambda x: f(x))(1.5)
        ferrax.jit(ferrax.grad(lambda x: f(x)))(1.5)
        ferrax.vmap(lambda x: f(x))(jnp.ones(2))
        ferrax.jit(lambda x: ferrax.vjp(f, x))(1.5)
