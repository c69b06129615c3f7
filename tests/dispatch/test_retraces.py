"""Why a call had to be traced: each scripted miss names exactly what changed, in argument names (promise P6)."""

import functools
import gc
import inspect
import logging
import weakref
from collections import namedtuple
from typing import NamedTuple

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp


class Pair(NamedTuple):
    a: object
    b: object


class Config:
    """Compared by identity."""

    def __repr__(self):
        return "Config()"


def step(state, batch, n=2, *rest, scale=1.0):
    return state


def f32(*shape):
    return jnp.zeros(shape, jnp.float32)


def calls(first, second):
    return (first, {}), (second, {})


def named(first, second):
    return ((f32(3), f32(3)), first), ((f32(3), f32(3)), second)


# name -> ((args, kwargs) of the first call, of the second, options of jit, the explanation)
MISSES = {
    "dtype": (
        *calls((f32(3), f32(3)), (f32(3), jnp.zeros(3, jnp.int32))),
        {},
        "argument batch: dtype: was float32, now int32",
    ),
    "shape": (*calls((f32(3), f32(3)), (f32(4), f32(3))), {}, "argument state: shape: was (3,), now (4,)"),
    "rank": (*calls((f32(3), f32(3)), (f32(3), f32(1, 3))), {}, "argument batch: shape: was (3,), now (1, 3)"),
    "weak type": (
        *calls((f32(), f32(3)), (1.0, f32(3))),
        {},
        "argument state: weak_type: was false, now true",
    ),
    "Python number of another type": (
        *calls((1.0, f32(3)), (1, f32(3))),
        {},
        "argument state: dtype: was float32, now int32",
    ),
    "leaf of a dict": (
        *calls(({"w": f32(3), "b": f32(1)}, f32(3)), ({"w": f32(5), "b": f32(1)}, f32(3))),
        {},
        "argument state['w']: shape: was (3,), now (5,)",
    ),
    "leaf of a nested tree": (
        *calls(({"layers": [Pair(f32(1), f32(2))]}, f32(3)), ({"layers": [Pair(f32(1), f32(3))]}, f32(3))),
        {},
        "argument state['layers'][0].b: shape: was (2,), now (3,)",
    ),
    "key of a dict": (
        *calls(({"w": f32(3)}, f32(3)), ({"v": f32(3)}, f32(3))),
        {},
        "argument state: key state['w'] is missing; argument state: key state['v'] was added",
    ),
    "length of a list": (
        *calls((f32(3), [f32(3)]), (f32(3), [f32(3), f32(3)])),
        {},
        "argument batch: batch is a list of length 2 where it was a list of length 1",
    ),
    "tuple for a list": (
        *calls((f32(3), [f32(3)]), (f32(3), (f32(3),))),
        {},
        "argument batch: batch is a tuple of length 1 where it was a list of length 1",
    ),
    "None": (
        *calls((f32(3), None), (f32(3), f32(3))),
        {},
        "argument batch: batch is a leaf where it was None",
    ),
    "key of a large dict": (
        *calls(({f"w{i}": 1.0 for i in range(1000)}, 1), ({f"w{i}": 1.0 for i in range(1000) if i != 7}, 1)),
        {},
        "argument state: key state['w7'] is missing",
    ),
    "many leaves": (
        *calls((dict.fromkeys(range(100), 1.0), 1), (dict.fromkeys(range(100), 1), 1)),
        {},
        "; ".join(f"argument state[{i}]: dtype: was float32, now int32" for i in range(5)) + "; and 95 more",
    ),
    "container inside a tree": (
        *calls(({"opt": [1.0, (2.0,)]}, 1), ({"opt": [1.0, [2.0]]}, 1)),
        {},
        "argument state: state['opt'][1] is a list of length 1 where it was a tuple of length 1",
    ),
    "structure and type at once": (
        *calls(([1.0], 1), ([1.0, 2.0], 1.0)),
        {},
        "argument state: state is a list of length 2 where it was a list of length 1; "
        "argument batch: dtype: was int32, now float32",
    ),
    "named tuples of one name": (
        *calls((Pair(1.0, 2.0), 1), (namedtuple("Pair", "a c", module=__name__)(1.0, 2.0), 1)),
        {},
        f"argument state: state is a {__name__}.Pair with the fields ('a', 'c') where it was a {__name__}.Pair with "
        "the fields ('a', 'b')",
    ),
    "keyword for position": (
        ((f32(3), f32(3), 1), {}),
        ((f32(3), f32(3)), {"n": 1}),
        {},
        "argument n: was passed by position, now by keyword",
    ),
    "position for keyword": (
        ((f32(3),), {"batch": 1}),
        ((f32(3), 1), {}),
        {},
        "argument batch: was passed by keyword, now by position",
    ),
    "static by keyword": (
        ((f32(3), f32(3), 2), {}),
        ((f32(3), f32(3)), {"n": 2}),
        {"static_argnames": "n"},
        "static argument n: was passed by position, now by keyword",
    ),
    "long static value": (
        *named({"n": "a" * 1000}, {"n": tuple(range(1000))}),
        {"static_argnames": "n"},
        f"static argument n: was '{'a' * 80}'…, now ({', '.join(map(str, range(23)))}, … 977 more)",
    ),
    "one more argument": (*calls((f32(3), f32(3)), (f32(3), f32(3), 1)), {}, "argument n: was not given, now given"),
    "rest of the arguments": (
        *calls((f32(3), f32(3), 1), (f32(3), f32(3), 1, f32(2))),
        {},
        "argument rest[0]: was not given, now given",
    ),
    "keyword argument": (*named({}, {"scale": 2.0}), {}, "argument scale: was not given, now given"),
    "keyword argument's dtype": (
        *named({"scale": f32()}, {"scale": jnp.int32(1)}),
        {},
        "argument scale: dtype: was float32, now int32",
    ),
    "static by position": (
        *calls((f32(3), f32(3), 2), (f32(3), f32(3), 3)),
        {"static_argnums": 2},
        "static argument n: was 2, now 3",
    ),
    "static by name": (*named({"n": 2}, {"n": "two"}), {"static_argnames": "n"}, "static argument n: was 2, now 'two'"),
    "static object compared by identity": (
        *named({"n": Config()}, {"n": Config()}),
        {"static_argnames": "n"},
        "static argument n: was Config(), now Config(), an object that is not equal to it "
        "(does its class define __eq__ and __hash__?)",
    ),
    "two things at once": (
        *calls((f32(3), f32(3)), (f32(2), jnp.zeros(3, jnp.int32))),
        {},
        "argument state: shape: was (3,), now (2,); argument batch: dtype: was float32, now int32",
    ),
}


def explanation(caplog, call):
    """What the log says of the misses of a call."""
    caplog.clear()
    with ferrax.explain_cache_misses(), caplog.at_level(logging.WARNING, "ferrax.jit"):
        call()
    return [r.getMessage().partition("\n")[0].partition(": ")[2] for r in caplog.records]


@pytest.mark.parametrize("name", MISSES)
def test_misses(name, caplog):
    (args, kwargs), (other_args, other_kwargs), options, expected = MISSES[name]
    f = ferrax.jit(step, **options)
    f.clear_cache()
    f(*args, **kwargs)
    assert explanation(caplog, lambda: f(*args, **kwargs)) == []
    assert explanation(caplog, lambda: f(*other_args, **other_kwargs)) == [expected]
    assert f.cache_info()[:3] == (1, 2, 2)
    f.clear_cache()


def test_the_nearest_of_several(caplog):
    f = ferrax.jit(lambda x, y: x)
    f(f32(3), f32(3))
    f(jnp.zeros(4, jnp.int32), f32(4))
    assert explanation(caplog, lambda: f(jnp.zeros(4, jnp.int32), f32(5))) == ["argument y: shape: was (4,), now (5,)"]


@pytest.mark.parametrize(
    "setting, value, expected",
    [
        ("jax_enable_x64", True, "setting jax_enable_x64: was False, now True"),
        ("jax_numpy_rank_promotion", "raise", "setting jax_numpy_rank_promotion: was 'allow', now 'raise'"),
        ("jax_default_matmul_precision", "highest", "setting jax_default_matmul_precision: was None, now 'highest'"),
    ],
)
def test_settings(setting, value, expected, caplog):
    f = ferrax.jit(lambda x: x + 1)
    x = f32(3)
    f(x)
    context = getattr(ferrax, setting.removeprefix("jax_"))
    with context(value):
        assert explanation(caplog, lambda: f(x)) == [expected]
    assert explanation(caplog, lambda: f(x)) == []


def test_new_function_object(caplog):
    def call():
        return ferrax.jit(lambda x: x + 1)(f32(3))

    call()
    (text,) = explanation(caplog, call)
    assert text.startswith("this is another function object with the same code")


def test_new_bound_method(caplog):
    class Model:
        def apply(self, x):
            return x + 1

    model = Model()
    ferrax.jit(model.apply)(f32(3))
    (text,) = explanation(caplog, lambda: ferrax.jit(model.apply)(f32(3)))
    assert text.startswith("this is another bound method of the same function and object.")
    other = Model()
    (text,) = explanation(caplog, lambda: ferrax.jit(other.apply)(f32(3)))
    assert text.startswith("this is the method of another object, <") and "Model object> as before." in text


def scaled(factor):
    def scale(x, offset=factor):
        return x * factor

    return ferrax.jit(scale)


def test_what_a_function_holds(caplog):
    class Loud:
        def __repr__(self):
            raise AssertionError("nobody asked")

    scaled(2)(1.0)
    (text,) = explanation(caplog, lambda: scaled(3)(1.0))
    assert "; the closure's variable factor: was 2, now 3; the default of offset: was 2, now 3. " in text
    (text,) = explanation(caplog, lambda: scaled(np.zeros((300, 3)))(1.0))
    assert "the closure's variable factor: was 3, now float64[300,3];" in text
    held = f32(3), f32(3)
    scaled(held[0])(1.0)
    (text,) = explanation(caplog, lambda: scaled(held[1])(1.0))
    assert "the closure's variable factor: another object, float32[3];" in text
    loud = ferrax.jit(lambda x, n=Loud(): x)
    assert explanation(caplog, lambda: loud(1.0)) == ["it is called for the first time"]


def test_what_a_partial_binds(caplog):
    def f(x, n, m=1):
        return x * n

    ferrax.jit(functools.partial(f, n=2))(1.0)
    (text,) = explanation(caplog, lambda: ferrax.jit(functools.partial(f, n=3))(1.0))
    assert "; what functools.partial binds to n: was 2, now 3. " in text
    ferrax.jit(functools.partial(f, 2))(1.0)
    (text,) = explanation(caplog, lambda: ferrax.jit(functools.partial(f, 3))(1.0))
    assert "; what functools.partial binds to x: was 2, now 3. " in text


def test_what_is_noted_of_a_function_keeps_nothing_alive():
    class Value:
        pass

    value = Value()
    gone = weakref.ref(value)
    f = ferrax.jit(lambda x, n=value: x)
    f(1.0)
    del f, value
    gc.collect()
    assert gone() is None


def test_static_functions_get_a_hint(caplog):
    f = ferrax.jit(lambda x, n: x, static_argnames="n")
    f(1.0, n=lambda x: x)
    (text,) = explanation(caplog, lambda: f(1.0, n=lambda x: x))
    assert "another function object (one that is defined in a loop or a call is new each time" in text


def test_named_axes(caplog):
    f = ferrax.jit(lambda x: x)
    f(jnp.float32(1.0))
    (text,) = explanation(caplog, lambda: ferrax.vmap(f, axis_name="i")(f32(3)))
    assert text == "the named axes (axis_name of vmap) around the call are others"


def test_the_call_is_named(caplog):
    f = ferrax.jit(lambda x: x)
    f(f32(3))
    line = inspect.currentframe().f_lineno + 2
    with ferrax.no_retrace(), pytest.raises(ferrax.errors.RetraceError, match=rf"The call is at {__file__}:{line}\."):
        f(f32(4))
    explanation(caplog, lambda: f(f32(4)))
    assert f"called at {__file__}:{line + 1}: " in caplog.text


def test_other_options(caplog):
    def f(x, n):
        return x * n

    ferrax.jit(f)(f32(3), 2)
    texts = explanation(caplog, lambda: ferrax.jit(f, static_argnums=1)(f32(3), 2))
    assert texts == ["jit's static_argnums: was [], now [1]; jit's static_argnames: was [], now [\"n\"]"]


def test_first_call_and_dropped_programs(caplog):
    def f(x):
        return x + 2

    jitted = ferrax.jit(f)
    assert explanation(caplog, lambda: jitted(f32(3))) == ["it is called for the first time"]
    jitted(f32(4))
    jitted.clear_cache()
    (text,) = explanation(caplog, lambda: jitted(f32(3)))
    assert text == "its programs were dropped (clear_cache, or the limit of the cache)"


def test_programs_are_dropped_by_the_private_name():
    placed = ferrax.sharding.SingleDeviceSharding(ferrax.devices()[0])
    for options in ({}, {"in_shardings": placed}, {"out_shardings": placed}):
        jitted = ferrax.jit(lambda x: x + 2, **options)
        jitted(f32(3))
        assert jitted._cache_size() == 1
        jitted._clear_cache()
        assert jitted._cache_size() == 0


def test_a_device_is_no_reason(caplog):
    f = ferrax.jit(lambda x: x + 1)
    f(f32(3))
    on_device = ferrax.device_put(np.zeros(3, np.float32), ferrax.devices()[0])
    assert explanation(caplog, lambda: f(on_device)) == []


def test_no_retrace_raises_with_the_difference():
    @ferrax.jit
    def f(x):
        return x + 1

    with ferrax.no_retrace():
        f(f32(3))  # never traced before
        f(f32(3))
        with pytest.raises(ferrax.errors.RetraceError, match=r"argument x: shape: was \(3,\), now \(4,\)"):
            f(f32(4))
    f(f32(4))
    assert f.cache_info().currsize == 2


def test_no_retrace_finds_a_lambda_in_a_loop():
    def loop():
        for _ in range(2):
            ferrax.jit(lambda x: x * 2)(f32(3))

    with ferrax.no_retrace(), pytest.raises(ferrax.errors.RetraceError, match="another function object"):
        loop()


def test_no_tracing():
    f = ferrax.jit(lambda x: x + 1)
    f(f32(3))
    with ferrax.no_tracing():
        f(f32(3))
        with pytest.raises(RuntimeError, match=r"re-tracing function <lambda> .*'no_tracing' is set"):
            f(f32(4))


def test_log_compiles(caplog):
    def f(x):
        return x + 1

    with ferrax.log_compiles(), caplog.at_level(logging.WARNING, "ferrax.jit"):
        ferrax.jit(f)(f32(3))
        ferrax.jit(f)(f32(3))
    traced, compiling, compiled = (record.getMessage() for record in caplog.records)
    assert compiling.startswith("Compiling jit(f) at ") and compiling.endswith("types [float32[3]]")
    assert traced.startswith("Finished tracing f for jit in ")
    assert compiled.startswith("Finished XLA compilation of jit(f) in ")


def test_compilations_are_logged_for_debugging_without_the_setting(caplog):
    with caplog.at_level(logging.DEBUG, "ferrax.jit"):
        ferrax.grad(ferrax.jit(lambda x: x * 2.0))(f32())
    assert [record.levelname for record in caplog.records] == [
        "DEBUG",
        "DEBUG",
    ]  # what is part of another is not compiled
    caplog.clear()
    with caplog.at_level(logging.INFO, "ferrax.jit"):
        ferrax.jit(lambda x: x * 3.0)(f32(3))
    assert not caplog.records


def test_one_function_object_has_one_set_of_programs():
    def f(x):
        return x + 1

    ferrax.jit(f)(f32(3))
    again = ferrax.jit(f)
    again(f32(3))
    assert again.cache_info()[:3] == (1, 1, 1)
    assert ferrax.jit(f, inline=True).cache_info()[:3] == (0, 0, 0)
    assert ferrax.jit(functools.partial(f)).cache_info()[:3] == (0, 0, 0)


def in_jax_words(caplog, call):
    caplog.clear()
    with ferrax.explain_cache_misses(), caplog.at_level(logging.WARNING, "ferrax.jit"):
        call()
    return [r.getMessage().partition("\n")[2] for r in caplog.records]


def test_words_that_programs_look_for(caplog):
    f = ferrax.jit(lambda x, y: x)
    told = lambda *args, **kwargs: in_jax_words(caplog, lambda: f(*args, **kwargs))
    (first,) = told(f32(3), {"a": f32(2)})
    place = f"defined at {__file__}:{f.__wrapped__.__code__.co_firstlineno}"
    assert first == f"  never seen function:\n    <lambda> id={id(f.__wrapped__)} {place}"
    assert told(f32(3), {"a": f32(2)}) == []
    (shape,) = told(f32(3), {"a": f32(2, 3)})
    assert shape.startswith(f"  for <lambda> {place}\n")
    assert "all previously seen cache keys differ. For the closest previous key:\n  different input types:\n" in shape
    assert shape.endswith("\n  * at y['a'], now f32[2,3] and before f32[2]")
    (weak,) = told(1.0, {"a": f32(2)})
    assert "* at x, now f32[] and before f32[3]" in weak or "weak_type=True" in weak
    f(jnp.float32(1), {"a": f32(2)})
    f.clear_cache()
    f(jnp.float32(1), {"a": f32(2)})
    (weak,) = told(1.0, {"a": f32(2)})
    assert "  * at x, now f32[]{weak_type=True} and before f32[]{weak_type=False}: https" in weak
    assert "different input pytree" in told(f32(3), {"b": f32(2)})[0]
    with ferrax.numpy_rank_promotion("warn"):
        (setting,) = told(1.0, {"a": f32(2)})
        assert "  Tracing context doesn't match, e.g. due to config" in setting
        assert setting.endswith("\n  * jax_numpy_rank_promotion differs: now warn and before allow")
    again = lambda: [ferrax.jit(lambda x: x + 1)(1) for _ in range(2)]
    assert "but seen another function defined on the same line" in in_jax_words(caplog, again)[-1]
