"""What programs and traced values know of the functions that they come from (`debug_info`); beside JAX."""

import functools
import operator
import re

import numpy as np
import pytest

import ferrax
from tests.recorded import expected


def described(info):
    """An info without the places of files, and whether its results are known."""
    paths = info.result_paths
    known = paths if isinstance(paths, tuple) or paths is None else "not yet"
    return info.traced_for, re.sub(" at .*", "", info.func_src_info), info.arg_names, known


def programs(jaxpr):
    """A program and those in it, outer ones first."""
    yield jaxpr
    for eqn in jaxpr.eqns:
        for _, value in sorted(eqn.params.items()):
            for inner in value if isinstance(value, tuple) else (value,):
                if hasattr(inner, "eqns"):
                    yield from programs(getattr(inner, "jaxpr", inner))


def pair(x, y):
    return {"c": x * y, "d": y}


def rest(x, *args, **kwargs):
    return x["hi"] + args[1] + sum(kwargs.values())


def branch(z):
    return z + 1


def body(carry, row):
    return carry + row, carry * row


class Named:
    def method(self, x, y):
        return x * y


class Called:
    def __call__(self, y):
        return y


def with_rule(jax, fun):
    """A function with a rule, whose last argument is not differentiated."""
    ruled = jax.custom_jvp(fun, nondiff_argnums=(2,))
    ruled.defjvp(lambda z, primals, tangents: (primals[0], tangents[0]))
    return lambda x, y, z: ruled(x, y, 3)


#: Functions of the library, with their arguments.
CASES = {
    "trees": lambda jax: (pair, (1.0, [2.0][0])),
    "containers": lambda jax: (lambda x, y: {"a": x, "b": [y]}, (1.0, (2.0,))),
    "any arguments": lambda jax: (functools.partial(rest, z=5.0, w=6.0), ({"hi": 1.0}, 2.0, 3.0)),
    "partial": lambda jax: (functools.partial(pair, 1.0), (2.0,)),
    "partial of a method": lambda jax: (functools.partial(Named().method, 1.0), (2.0,)),
    "jit": lambda jax: (lambda x: jax.jit(pair)(x, x)["c"], (1.0,)),
    "cond": lambda jax: (lambda x: jax.lax.cond(x > 0, branch, lambda u: u, x), (1.0,)),
    "switch": lambda jax: (lambda x: jax.lax.switch(1, [branch, lambda u: u * 2, branch], x), (1.0,)),
    "scan": lambda jax: (lambda x: jax.lax.scan(body, x, jax.numpy.ones(3)), (1.0,)),
    "checkpoint": lambda jax: (lambda x: jax.checkpoint(branch)(x), (1.0,)),
    "vmap": lambda jax: (lambda x: jax.vmap(jax.jit(branch))(x), (np.ones(3, np.float32),)),
    "fori_loop": lambda jax: (lambda x: jax.lax.fori_loop(0, 3, lambda i, c: {"w": c["w"] * x}, {"w": x}), (1.0,)),
    "fori_loop to the end": lambda jax: (lambda x, n: jax.lax.fori_loop(0, n, lambda i, c: c + x, x), (1.0, 3)),
    "while_loop": lambda jax: (
        lambda x: jax.lax.while_loop(lambda c: c[0] < x, lambda d: (d[0] + x, x), (x, x)),
        (1.0,),
    ),
    "of C": lambda jax: (operator.add, (1.0, 2.0)),
    "custom_jvp": lambda jax: (with_rule(jax, lambda x, y, z: x * y["a"]), (1.0, {"a": 2.0}, 3)),
}
#: What is traced for `make_jaxpr` is what `jit` traces.
SHOWN = {
    "make_jaxpr": lambda jax: (pair, (1.0, 2.0)),
    "an object": lambda jax: (Called(), (1.0,)),
}


@pytest.mark.parametrize("name", CASES)
def test_programs_know_what_they_are_of(name):
    def described_of(jax):
        f, args = CASES[name](jax)
        return [described(p.debug_info) for p in programs(jax.jit(f).trace(*args).jaxpr.jaxpr)]

    assert described_of(ferrax) == expected(described_of)


@pytest.mark.parametrize("name", SHOWN)
def test_shown_programs_know_what_they_are_of(name):
    def described_of(jax):
        f, args = SHOWN[name](jax)
        info = described(jax.make_jaxpr(f)(*args).jaxpr.debug_info)
        return info[0], info[2], info[3]

    assert described_of(ferrax) == expected(described_of)


def traced(jax, wrap):
    seen = []

    def keep(x, *args, **kwargs):
        seen.append(described(x._debug_info))
        return x

    wrap(jax, keep)
    return seen


VALUES = {
    "jit": lambda jax, keep: jax.jit(keep)(1.0, 2.0, k=3.0),
    "cond": lambda jax, keep: jax.lax.cond(True, keep, keep, 1.0),
    "scan": lambda jax, keep: jax.lax.scan(lambda c, _: (keep(c), None), 1.0, None, length=2),
    "checkpoint": lambda jax, keep: jax.checkpoint(keep)(1.0),
}


@pytest.mark.parametrize("name", VALUES)
def test_traced_values_know_what_is_traced(name):
    found, wanted = (run(lambda jax: traced(jax, VALUES[name])) for run in (lambda f: f(ferrax), expected))
    assert found == wanted


def test_other_values_know_of_no_function():
    for transform in (ferrax.vmap, ferrax.grad):
        with pytest.raises(AttributeError):
            transform(lambda x: x._debug_info)(ferrax.numpy.ones(2))


class Unnamed:
    def __call__(self, y):
        return y

    def __repr__(self):
        raise NotImplementedError


def keywords(x, y, *, z, w):
    return x


INFOS = {
    "in the order of names": (keywords, (1, (2, 3)), {"z": 3, "w": {"a": 4}}, {}),
    "static": (keywords, ((1, 2), 3), {"z": 3, "w": 4}, {"static_argnums": (-1,), "static_argnames": ("w",)}),
    "too many": (pair, (1, 2, 3), {"k": (4,)}, {}),
    "any": (rest, (1, 2, 3), {"k": (4,)}, {}),
    "built-in": (max, (1,), {}, {}),
    "no function": (False, (1,), {}, {}),
    "an object": (Unnamed(), (1,), {}, {}),
    "partial": (functools.partial(pair, 1), (1,), {}, {}),
}


@pytest.mark.parametrize("name", INFOS)
def test_infos_of_functions(name):
    fun, args, kwargs, options = INFOS[name]
    of = lambda jax: described(jax.api_util.debug_info("jit", fun, args, kwargs, **options))
    assert of(ferrax) == expected(of)


def test_functions_that_stand_for_others():
    from ferrax._src.api_util import save_wrapped_fun_debug_info

    info = ferrax.api_util.debug_info("test", pair, (1, 2), {})
    wrapper = lambda *args: pair(*args)
    save_wrapped_fun_debug_info(wrapper, info)
    assert ferrax.api_util.debug_info("jit", wrapper, (1, 2), {}) is info


def test_errors_name_the_users_functions():
    def positive(x):
        return x if x > 0 else -x

    for call, what in [
        (lambda: ferrax.lax.fori_loop(0, 3, lambda i, x: positive(x), 1.0), f"<lambda> at {__file__}"),
        (lambda: ferrax.checkpoint(positive)(1.0), f"positive at {__file__}"),
        (lambda: ferrax.checkpoint(lambda n, x: positive(x), static_argnums=0)(2, 1.0), f"<lambda> at {__file__}"),
    ]:
        with pytest.raises(ferrax.errors.ConcretizationTypeError, match=re.escape(what)) as caught:
            call()
        assert ("static_argnums` parameter for `jax.remat`" in str(caught.value)) == ("checkpoint" in str(caught.value))
    with pytest.raises(ferrax.errors.ConcretizationTypeError, match=r"arguments kwargs\['x'\] and kwargs\['z'\]"):
        ferrax.jit(lambda **kwargs: positive(kwargs["x"] - kwargs["z"]))(x=1.0, y=2.0, z=3.0)
    with pytest.raises(ferrax.errors.ConcretizationTypeError, match="became a tracer due to JAX operations on these"):
        ferrax.jit(lambda: positive(ferrax.numpy.add(1, 1)))()
    with pytest.raises(
        ferrax.errors.ConcretizationTypeError, match=r"for jit.*on the value of the argument n\."
    ) as caught:
        ferrax.make_jaxpr(lambda n: positive(n))(1)
    with pytest.raises(ferrax.errors.ConcretizationTypeError, match=r"on the value of the argument state\['w'\]"):
        ferrax.lax.fori_loop(0, 3, lambda i, state: {"w": positive(state["w"])}, {"w": 1.0})
    with pytest.raises(
        TypeError, match=r"traced for jit returned a value of type <class 'str'> at output component \['a'\]"
    ):
        ferrax.jit(lambda x: {"a": "text"})(1)
