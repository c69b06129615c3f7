"""Why a call had to be traced: each scripted miss names exactly what changed, in argument names (promise P6)."""

import functools
import logging
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
        "argument state: structure: was PyTreeDef({'w': *}), now PyTreeDef({'v': *})",
    ),
    "length of a list": (
        *calls((f32(3), [f32(3)]), (f32(3), [f32(3), f32(3)])),
        {},
        "argument batch: structure: was PyTreeDef([*]), now PyTreeDef([*, *])",
    ),
    "tuple for a list": (
        *calls((f32(3), [f32(3)]), (f32(3), (f32(3),))),
        {},
        "argument batch: structure: was PyTreeDef([*]), now PyTreeDef((*,))",
    ),
    "None": (
        *calls((f32(3), None), (f32(3), f32(3))),
        {},
        "argument batch: structure: was PyTreeDef(None), now PyTreeDef(*)",
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
    return [r.getMessage().partition(": ")[2] for r in caplog.records]


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
        ("jax_enable_x64", True, "setting x64: was false, now true"),
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
    assert text.startswith("this is another bound method of the same function")


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
    (record,) = caplog.records
    assert record.getMessage().startswith("Compiling f at ") and record.getMessage().endswith("types [float32[3]]")


def test_one_function_object_has_one_set_of_programs():
    def f(x):
        return x + 1

    ferrax.jit(f)(f32(3))
    again = ferrax.jit(f)
    again(f32(3))
    assert again.cache_info()[:3] == (1, 1, 1)
    assert ferrax.jit(f, inline=True).cache_info()[:3] == (0, 0, 0)
    assert ferrax.jit(functools.partial(f)).cache_info()[:3] == (0, 0, 0)
