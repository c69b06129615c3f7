"""What programs that walk other programs ask: contexts of equations, last uses, what is at work, wrong programs."""

import jax
import jax._src.core as jax_core
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax._src import core
from ferrax.extend.core import Jaxpr, JaxprEqn, JaxprTypeError, Var, check_jaxpr


def program():
    return ferrax.make_jaxpr(lambda x, y: (jnp.sin(x) * y, x + y))(1.0, 2.0).jaxpr


def test_equations_are_evaluated_in_their_contexts():
    def evaluate(jaxpr, *args):
        env = dict(zip(jaxpr.invars, args, strict=True))
        last = core.last_used(jaxpr)
        for eqn in jaxpr.eqns:
            with eqn.ctx.manager:
                out = eqn.primitive.bind(*(env[v] for v in eqn.invars), **eqn.params)
            env[eqn.outvars[0]] = out
            core.clean_up_dead_vars(eqn, env, last)
        return [env[v] for v in jaxpr.outvars], len(env)

    (product, total), left = evaluate(program(), 0.5, 2.0)
    assert (product, total) == (2 * jnp.sin(0.5), 2.5) and left == 2
    ctx = program().eqns[0].ctx
    assert (ctx.compute_type, ctx.xla_metadata, ctx.threefry_partitionable) == (None, None, True)
    assert isinstance(ctx, core.JaxprEqnContext) and ctx.cur_abstract_mesh.empty


def test_last_uses_like_jax():
    def places(jaxpr, last_used):
        last = last_used(jaxpr)
        eqns = [str(e) for e in jaxpr.eqns]
        return [None if last[v] is None else eqns.index(str(last[v])) for e in jaxpr.eqns for v in e.outvars]

    other = jax.make_jaxpr(lambda x, y: (jax.numpy.sin(x) * y, x + y))(1.0, 2.0).jaxpr
    assert places(program(), core.last_used) == places(other, jax_core.last_used) == [1, None, None]


def test_what_is_at_work():
    assert core.trace_ctx.is_top_level() and core.trace_ctx.trace is core.eval_trace
    with pytest.warns(DeprecationWarning):
        assert ferrax.core.trace_ctx is core.trace_ctx

    def inside(x):
        assert not core.trace_ctx.is_top_level()
        env = core.get_axis_env()
        assert env.axis_sizes == {"i": 3} and env.axis_size("i") == 3 and env.axis_exists("i")
        assert env.axis_names() == ("i",)
        with pytest.raises(NameError, match="unbound axis name: j"):
            env.axis_size("j")
        return x

    ferrax.vmap(inside, axis_name="i")(jnp.ones(3))
    ferrax.jit(lambda x: (core.trace_ctx.trace is core.eval_trace and pytest.fail()) or x)(1.0)
    assert core.get_axis_env().axis_sizes == {}


def test_programs_that_are_wrong():
    whole = program()
    check_jaxpr(whole)
    first, second, _ = whole.eqns
    number = ferrax.core.ShapedArray((), "int32")
    for eqns, outvars, text in (
        ([second], whole.outvars, "Variable '.*' not defined"),
        ([first, first, second], [], "Variable '.*' already bound"),
        (
            [JaxprEqn(first.invars, [Var(number)], first.primitive, first.params)],
            [],
            "equation 0, sin: result 0 has type",
        ),
        ([first], whole.outvars, "Variable '.*' not defined"),
    ):
        with pytest.raises(JaxprTypeError, match=text):
            Jaxpr([], whole.invars, outvars, eqns)
