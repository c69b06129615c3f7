"""Names of scopes: what equations and lowered programs are called, as JAX has it."""

import importlib
import re

import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax.extend import core, source_info_util
from tests.recorded import expected

scope = jax.named_scope


def f(x):
    with scope("bar"):
        return jnp.sin(x) * 2.0


def loop(x):
    return lax.while_loop(scope("test")(lambda c: c < 5), scope("step")(lambda c: c + 1), x)


def branch(x, which):
    return lax.cond(which, scope("yes")(lambda x: x + 1), scope("no")(lambda x: x - 1), x)


def names(jaxpr):
    """Names of equations and of those inside them, in order."""
    found = []
    for eqn in jaxpr.eqns:
        found.append(f"{eqn.primitive.name}:{eqn.source_info.name_stack}")
        for param in eqn.params.values():
            for inner in param if isinstance(param, tuple) else [param]:
                found += names(inner.jaxpr) if hasattr(inner, "jaxpr") else []
    return found


# functions of (jax, f, loop, branch) with their arguments, and what names of their equations are
PROGRAMS = {
    "f": ["sin:bar", "mul:bar"],
    "scope('foo')(f)": ["sin:foo/bar", "mul:foo/bar"],
    "jax.named_call(f, name='g')": ["sin:g/bar", "mul:g/bar"],
    "jax.named_call(f)": ["sin:f/bar", "mul:f/bar"],
    "scope('foo')(jax.grad(f))": [
        *["sin:foo/jvp(bar)", "cos:foo/jvp(bar)", "mul:foo/jvp(bar)"],
        *["mul:foo/transpose(jvp(bar))"] * 2,
    ],
    "lambda x: scope('q')(jax.vjp)(f, x)[1](x)": [
        *["sin:q/jvp(bar)", "cos:q/jvp(bar)", "mul:q/jvp(bar)"],
        *["mul:transpose(jvp(bar))"] * 2,
    ],
    "lambda x: scope('out')(jax.vjp(f, x)[1])(x)": [
        *["sin:jvp(bar)", "cos:jvp(bar)", "mul:jvp(bar)"],
        *["mul:out/transpose(jvp(bar))"] * 2,
    ],
    "lambda x: jax.linearize(f, x)[1](x)": ["sin:jvp(bar)", "cos:jvp(bar)", *["mul:jvp(bar)"] * 3],
    "lambda x: jax.jvp(f, (x,), (x,))": ["sin:jvp(bar)", "cos:jvp(bar)", *["mul:jvp(bar)"] * 3],
    "scope('foo')(jax.jit(f))": ["jit:foo", "sin:bar", "mul:bar"],
    "scope('foo')(lambda x: lax.scan(lambda c, y: (f(c), y), x, None, length=3))": ["scan:foo", "sin:bar", "mul:bar"],
    "scope('foo')(loop)": ["while:foo", "add:step", "lt:test"],
}


@pytest.mark.parametrize("text", PROGRAMS)
def test_names_of_equations(text):
    assert names(jax.make_jaxpr(eval(text))(1.0).jaxpr) == PROGRAMS[text]


def test_names_of_equations_of_arrays():
    x = jnp.ones(2)
    assert names(jax.make_jaxpr(scope("foo")(jax.vmap(f)))(x).jaxpr) == ["sin:foo/vmap(bar)", "mul:foo/vmap(bar)"]
    assert names(jax.make_jaxpr(jax.vmap(jax.grad(f)))(x).jaxpr) == [
        *["sin:vmap(jvp(bar))", "cos:vmap(jvp(bar))", "mul:vmap(jvp(bar))"],
        *["mul:vmap(transpose(jvp(bar)))"] * 2,
    ]
    outer = jax.make_jaxpr(scope("foo")(jax.vmap(jax.jit(f))))(x).jaxpr
    assert names(outer) == ["jit:foo/vmap()", "sin:bar", "mul:bar"]


def test_equal_programs_in_other_scopes_keep_their_names():
    x = jnp.ones(2)
    for name in ("a", "b"):
        g = jax.vmap(jax.jit(scope(name)(lambda x: x + 1)))
        assert names(jax.make_jaxpr(g)(x).jaxpr) == ["jit:vmap()", f"add:{name}"]


def test_a_scope_is_entered_again_and_left_after_errors():
    @scope("a")
    def g(x, n):
        return g(x + 1, n - 1) if n else x

    assert names(jax.make_jaxpr(lambda x: g(x, 2))(1.0).jaxpr) == ["add:a", "add:a/a"]

    def h(x):
        with pytest.raises(ValueError, match="left"), scope("a"):
            raise ValueError("left")
        return x + 1

    assert names(jax.make_jaxpr(h)(1.0).jaxpr) == ["add:"]
    with scope("outside"):
        assert names(jax.make_jaxpr(f)(1.0).jaxpr) == ["sin:bar", "mul:bar"]
        assert float(f(0.0)) == 0.0
    with pytest.raises(TypeError, match="named_scope name argument must be a string"):
        scope(3)


def test_programs_that_are_applied_again_stand_in_the_scopes_around():
    program = jax.make_jaxpr(f)(1.0)
    again = jax.make_jaxpr(scope("foo")(core.jaxpr_as_fun(program)))(1.0)
    assert names(again.jaxpr) == ["sin:foo/bar", "mul:foo/bar"]


def test_equations_are_given_other_scopes():
    eqn = jax.make_jaxpr(f)(1.0).jaxpr.eqns[0]
    assert str(eqn.replace(primitive=core.primitives.cos_p).source_info.name_stack) == "bar"
    info = eqn.source_info.replace(name_stack=source_info_util.new_name_stack("other"))
    other = eqn.replace(source_info=info)
    assert str(other.source_info.name_stack) == "other"
    made = core.new_jaxpr_eqn(eqn.invars, eqn.outvars, eqn.primitive, eqn.params, source_info=info)
    assert names(core.Jaxpr([], eqn.invars, eqn.outvars, [made])) == ["sin:other"]


def test_scopes_of_libraries_name_operations():
    def g(x):
        with source_info_util.extend_name_stack("a") as stack, source_info_util.transform_name_stack("t"):
            assert str(source_info_util.current_name_stack()) == "a/t()"
            assert stack.stack == source_info_util.new_name_stack("a").stack
            with scope("b"):
                y = x + 1
            with source_info_util.reset_name_stack():
                return y * 2

    assert names(jax.make_jaxpr(g)(1.0).jaxpr) == ["add:a/t(b)", "mul:"]


def op_names(fun, *args):
    text = jax.jit(fun).lower(*args).as_text("hlo", debug_info=True)
    return set(re.findall(r'op_name="([^"]*)"', text))


def test_names_in_hlo():
    assert "metadata" not in jax.jit(f).lower(1.0).as_text("hlo")
    assert op_names(scope("foo")(f), 1.0) == {"x", "jit(f)/foo/bar/sin", "jit(f)/foo/bar/mul"}
    assert op_names(jax.value_and_grad(f), 1.0) >= {
        *("jit(f)/jvp(bar)/sin", "jit(f)/jvp(bar)/cos", "jit(f)/transpose(jvp(bar))/mul"),
    }
    vmapped = op_names(jax.vmap(scope("foo")(loop)), jnp.arange(2.0))
    assert vmapped >= {"jit(loop)/vmap(foo)/while", "jit(loop)/vmap(foo)/while/body/step/add"}
    assert op_names(scope("foo")(loop), 1.0) >= {
        "jit(loop)/foo/while/cond/test/lt",
        "jit(loop)/foo/while/body/step/add",
    }
    assert op_names(scope("foo")(jax.vmap(branch, in_axes=(0, None))), jnp.arange(2.0), True) >= {
        *("jit(branch)/foo/vmap()/cond", "jit(branch)/foo/vmap()/cond/branch_0_fun/no/sub"),
        *("jit(branch)/foo/vmap()/cond/branch_1_fun/yes/add",),
    }
    called = op_names(scope("foo")(jax.vmap(jax.jit(f))), jnp.ones(2))
    assert called == {"x", "jit(f)/foo/vmap(jit(f))", "bar/sin", "bar/mul"}
    transposed = op_names(jax.value_and_grad(jax.jit(f)), 1.0)
    assert transposed >= {"jit(f)/jvp(jit(f))", "jit(f)/transpose(jvp(jit(f)))"}
    forward, backward = op_names(jax.checkpoint(f), 1.0), op_names(jax.grad(jax.checkpoint(f)), 1.0)
    assert "jit(f)/checkpoint/bar/sin" in forward
    assert not any("remat" in name for name in forward)
    assert any("rematted_computation/bar/cos" in name for name in backward)


def test_names_in_stablehlo():
    text = jax.jit(scope("foo")(jax.vmap(f))).lower(jnp.ones(2)).as_text(debug_info=True)
    assert set(re.findall(r'loc\("([^"]*)"', text)) == {"x", "jit(f)/foo/vmap(bar)/sin", "jit(f)/foo/vmap(bar)/mul"}
    assert 'loc("jit(f)/vmap()/mul"' in jax.jit(jax.vmap(lambda x: x * 2)).lower(jnp.ones(2)).as_text(
        debug_info=True
    ).replace("<lambda>", "f")


NAMED = """f
scope('foo')(jax.grad(f))
jax.grad(jax.grad(f))
lambda x: jax.jvp(jax.jit(f), (x,), (x,))
jax.grad(lambda x: jax.vmap(f)(x * jnp.ones(2)).sum())
jax.value_and_grad(jax.jit(f))
jax.grad(lambda x: lax.scan(lambda c, y: (f(c), None), x, None, length=3)[0])
scope('foo')(loop)
scope('foo')(lambda x: branch(x, x > 0))""".splitlines()


@pytest.mark.parametrize("text", NAMED)
def test_names_as_in_jax(text):
    ours = sorted(n for n in names(jax.make_jaxpr(eval(text))(1.0).jaxpr) if "convert" not in n)
    assert ours == expected(theirs, text)


def theirs(jax, text):
    own = {"jax": jax, "lax": jax.lax, "jnp": jax.numpy, "scope": jax.named_scope}
    for function in (f, loop, branch):
        own[function.__name__] = type(function)(function.__code__, own)
    return sorted(n for n in names(jax.make_jaxpr(eval(text, own))(1.0).jaxpr) if "convert" not in n)


def test_equations_know_their_place_as_in_jax():
    def told(jax):
        source = importlib.import_module(f"{jax.__name__}._src.source_info_util")
        util = importlib.import_module(f"{jax.__name__}._src.jaxpr_util")
        sin = jax.named_call(jax.numpy.sin, name="wave")

        def f(x):
            y = jax.lax.mul(
                sin(x),
                x + 1.0,
            )
            return jax.jit(lambda z: z - x)(y)

        # the file's name is the machine's, and no part of the question
        here = f.__code__.co_filename
        program = jax.make_jaxpr(f)(2.0)
        inner = program.eqns[-1].params["jaxpr"]
        frames = [source.user_frame(e.source_info.traceback) for e in (*program.eqns, *inner.eqns)]
        assert all(frame.file_name == here for frame in frames)
        lines = [source.summarize(e.source_info).removeprefix(here) for e in program.eqns]
        counts = {place.removeprefix(here): n for place, n in util.source_locations(program.jaxpr).items()}
        return [list(frame[1:]) for frame in frames], lines, counts

    assert told(jax) == expected(told)


def test_the_place_that_runs():
    def told(jax):
        source = importlib.import_module(f"{jax.__name__}.extend.source_info_util")
        info = source.current()
        here = told.__code__.co_filename
        return source.summarize(info).removeprefix(here), len(source.summarize(info, 2).split("\n"))

    assert told(jax) == told(pytest.importorskip("jax"))
