"""Parameters in the texts of programs, beside JAX's: calls of the host, prints, convolutions, named axes of no map."""

import functools
import re

import numpy as np
import pytest

import ferrax
import ferrax.custom_batching


def shown(x):
    return x


def _float(jax):
    return jax.ShapeDtypeStruct((), np.float32)


CALLS = {
    "pure": lambda jax, x: jax.pure_callback(shown, _float(jax), x),
    "pure, rows": lambda jax, x: jax.pure_callback(shown, _float(jax), x, vmap_method="sequential"),
    "pure, a tree": lambda jax, x: jax.pure_callback(shown, (_float(jax), {"a": _float(jax)}), x, b=(x, 2)),
    "io": lambda jax, x: jax.experimental.io_callback(shown, _float(jax), x),
    "io, ordered": lambda jax, x: jax.experimental.io_callback(shown, None, x, ordered=True),
    "debug": lambda jax, x: jax.debug.callback(shown, x),
    "debug, ordered": lambda jax, x: jax.debug.callback(shown, x, ordered=True),
    "print": lambda jax, x: jax.debug.print("hi {x} {}", 3, x=x),
    "print, ordered": lambda jax, x: jax.debug.print("hi {x}", x=(x, 2), ordered=True),
    "print, no fields": lambda jax, x: jax.debug.print("hi"),
    "print, a text": lambda jax, x: jax.debug.print("{} {}", "text", x),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_the_host(name):
    jax = pytest.importorskip("jax")
    ours, theirs = (str(j.make_jaxpr(lambda x, j=j: CALLS[name](j, x))(1.0)) for j in (ferrax, jax))
    assert ours == theirs


def test_prints_still_print(capsys):
    @ferrax.jit
    def f(x):
        ferrax.debug.print("x = {x} {}", "text", x=x, ordered=True)
        return x

    ferrax.vmap(lambda x: ferrax.debug.print("row {}", x))(np.arange(2))
    f(3)
    ferrax.effects_barrier()
    assert sorted(capsys.readouterr().out.splitlines()) == ["row 0", "row 1", "x = 3 text"]


def test_calls_of_the_host_are_bound_again(capsys):
    def bound(function):
        (equation,) = ferrax.make_jaxpr(function)(1.0).eqns
        outs = equation.primitive.bind(np.float32(2), **equation.params)
        ferrax.effects_barrier()
        return equation.params, [float(x) for x in outs]

    params, outs = bound(lambda x: ferrax.pure_callback(shown, _float(ferrax), x))
    assert outs == [2] and params["sharding"] is None and params["vmap_method"] is None
    params, outs = bound(lambda x: ferrax.debug.print("{}", x, ordered=True))
    assert not outs and params["fmt"] == "{}" and params["ordered"] is True and params["static_args"] == ()
    assert capsys.readouterr().out == "2.0\n"


def test_the_sharding_of_a_convolution():
    text = str(ferrax.make_jaxpr(lambda x: ferrax.lax.conv(x, x, (1,), "SAME"))(np.ones((1, 1, 3), np.float32)))
    assert re.search(r"lhs_dilation=\(1,\)\s+out_sharding=None\s+padding=", text)


AXES = {
    "sum": lambda jax, x: jax.lax.psum(x, "i"),
    "several": lambda jax, x: jax.lax.pmax(x, ("i", "j")),
    "index": lambda jax, x: jax.lax.axis_index("i") + jax.lax.axis_size("j"),
    "gather": lambda jax, x: jax.lax.all_gather(x, "j"),
    "size": lambda jax, x: jax.lax.psum(1, "i") * x,
    "gradient": lambda jax, x: jax.grad(lambda x: jax.lax.psum(jax.numpy.sin(x), "i"))(x),
    "inside of a map": lambda jax, x: jax.vmap(lambda y: jax.lax.psum(x * y, "j"))(jax.numpy.ones(3)),
    "inside of a call": lambda jax, x: jax.jit(lambda x: jax.lax.psum(x, "i"))(x),
    "none": lambda jax, x: jax.numpy.sin(x),
}


@pytest.mark.parametrize("name", AXES)
def test_named_axes_of_no_map(name):
    jax = pytest.importorskip("jax")
    env = [("i", 3), ("j", 2)]
    ours, theirs = (str(j.make_jaxpr(lambda x, j=j: AXES[name](j, x), axis_env=env)(1.0)) for j in (ferrax, jax))
    assert ours == theirs
    with pytest.raises(NameError):  # the axes end with the program
        ferrax.lax.psum(1.0, "i")


def test_a_map_hides_a_named_axis():
    program = ferrax.make_jaxpr(
        lambda x: ferrax.vmap(lambda y: ferrax.lax.psum(y, "i"), axis_name="i")(x), axis_env=[("i", 3)]
    )(np.ones(2, np.float32))
    assert ferrax.core.eval_jaxpr(program.jaxpr, program.consts, np.ones(2, np.float32))[0].tolist() == [2, 2]


def test_the_shape_across_named_axes():
    program, shape = ferrax.make_jaxpr(
        lambda x, n: ferrax.lax.all_gather(x * n, "i"), static_argnums=1, axis_env=[("i", 3)], return_shape=True
    )(np.ones(2, np.float32), 2)
    assert shape == ferrax.ShapeDtypeStruct((3, 2), np.float32)
    assert [eqn.primitive.name for eqn in program.eqns] == ["mul", "all_gather"]


def test_the_generator_of_a_dtype_of_keys():
    jax = pytest.importorskip("jax")
    for name in ("threefry2x32", "rbg"):
        ours, theirs = (j.random.key(0, impl=name).dtype._impl for j in (ferrax, jax))
        assert (ours.name, ours.tag, ours.key_shape) == (theirs.name, theirs.tag, theirs.key_shape)
        again = ferrax.random.key(3, impl=ours)
        assert again.dtype._impl is ours
        np.testing.assert_array_equal(
            ferrax.random.key_data(again), jax.random.key_data(jax.random.key(3, impl=theirs))
        )


def test_a_program_prints_the_same_each_time():
    def scattered(x):
        return x.at[ferrax.numpy.array([0, 1])].set(2.0).at[0].add(1.0).at[1].multiply(2.0).at[2].min(0.3)

    program = ferrax.make_jaxpr(scattered)(ferrax.numpy.ones((4, 4)))
    texts, kept = set(), []
    for i in range(300):
        texts.add(str(program))
        # memory of other sizes each time: what one print frees, the next may or may not get
        kept.append(bytearray(32 * (i % 97)))
        if i % 3 == 0:
            del kept[::2]
    assert len(texts) == 1


POLICIES = {
    "names": lambda policies: policies.save_only_these_names("a"),
    "other names": lambda policies: policies.save_any_names_but_these("a"),
    "dots": lambda policies: policies.dots_saveable,
    "matrices": lambda policies: policies.checkpoint_dots_with_no_batch_dims,
    "all": lambda policies: policies.everything_saveable,
    "none": lambda policies: policies.nothing_saveable,
}


@pytest.mark.parametrize("name", POLICIES)
def test_policies(name):
    import jax

    def shown_policy(of):
        f = of.checkpoint(lambda x: of.numpy.sin(x), policy=POLICIES[name](of.checkpoint_policies))
        return re.search(r"policy=(.*)", str(of.make_jaxpr(f)(1.0)))[1]

    assert shown_policy(ferrax) == shown_policy(jax)
    first, second = (POLICIES[name](ferrax.checkpoint_policies) for _ in range(2))
    assert first == second and hash(first) == hash(second)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "uint32", "bool", "complex64"])
@pytest.mark.parametrize("mode", ["fill", "clip", "promise_in_bounds"])
def test_parameters_of_indexing_are_objects(dtype, mode):
    lax, x = ferrax.lax, ferrax.numpy.ones((3, 3)).astype(dtype)

    def f(x, i):
        rows = ferrax.numpy.take_along_axis(x, i[:, None], 1, mode=mode)
        return rows, x.at[i, 0].set(0, mode=mode), x[i]

    program = ferrax.make_jaxpr(f)(x, np.arange(3))
    calls = [e for e in program.eqns if e.primitive.name in ("gather", "scatter")]
    assert len(calls) == 3
    for e in calls:
        kind = lax.GatherDimensionNumbers if e.primitive.name == "gather" else lax.ScatterDimensionNumbers
        assert isinstance(e.params["dimension_numbers"], kind), e
        assert isinstance(e.params["mode"], lax.GatherScatterMode), e
        again = ferrax.make_jaxpr(lambda *a, e=e: e.primitive.bind(*a, **e.params))(*(v.aval for v in e.invars))
        assert str(again.eqns[0].params) == str(e.params)


def scaled(n, x):
    return n * x


class Doubled:
    def __call__(self, x):
        return 2 * x


def _with_rules(f):
    forward, mapped = ferrax.custom_jvp(f), ferrax.custom_batching.custom_vmap(f)
    backward = ferrax.custom_vjp(f)
    forward.defjvp(lambda p, t: (p[0], t[0]))
    backward.defvjp(lambda x: (x, None), lambda _, g: (g,))
    mapped.def_vmap(functools.partial(lambda n, size, batched, x: (x, True), 1))
    return [forward, backward, mapped]


@pytest.mark.parametrize(("f", "name"), [(functools.partial(scaled, 2), "scaled"), (Doubled(), "Doubled")])
@pytest.mark.parametrize("rules", [0, 1, 2])
def test_names_of_partial_functions_and_of_objects(f, name, rules):
    assert f"name={name}\n" in str(ferrax.make_jaxpr(_with_rules(f)[rules])(1.0))


def test_a_partial_function_without_a_rule_is_named():
    with pytest.raises(AttributeError, match="No JVP defined for custom_jvp function scaled using defjvp"):
        ferrax.grad(ferrax.custom_jvp(functools.partial(scaled, 2)))(1.0)
