"""Host functions in traced programs: prints in order under transformations, and results of callbacks."""

import functools

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax.experimental import io_callback


def show(x):
    jax.debug.print("{}", x, ordered=True)
    return x * x


def scanned(x):
    return lax.scan(lambda c, _: (show(c), None), x, None, length=2)[0]


ROWS = np.arange(3.0, dtype=np.float32)
FUNCTIONS = {
    "grad": (jax.grad(show), 2.0, 4.0, ["2.0"]),
    "grad of jit": (jax.grad(jax.jit(show)), 2.0, 4.0, ["2.0"]),
    "grad of scan": (jax.grad(scanned), 2.0, 32.0, ["2.0", "4.0"]),
    "grad of checkpoint": (jax.grad(jax.checkpoint(show)), 2.0, 4.0, ["2.0", "2.0"]),
    "grad of cond": (jax.grad(lambda x: lax.cond(x > 0, show, lambda x: x, x)), 2.0, 4.0, ["2.0"]),
    "vmap": (lambda x: jax.vmap(show)(x).sum(), ROWS, 5.0, ["0.0", "1.0", "2.0"]),
    "jit of vmap": (jax.jit(lambda x: jax.vmap(show)(x).sum()), ROWS, 5.0, ["0.0", "1.0", "2.0"]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_ordered_prints_are_transformed(name, capsys):
    fun, x, value, lines = FUNCTIONS[name]
    assert float(fun(x)) == value
    jax.effects_barrier()
    assert capsys.readouterr().out.splitlines()[: len(lines)] == lines


def test_ordered_callbacks_of_programs_are_not():
    call = functools.partial(jax.experimental.io_callback, lambda x: x, np.float32(0), ordered=True)
    with pytest.raises(ValueError, match="IO callbacks do not support JVP"):
        jax.grad(call)(1.0)
    with pytest.raises(ValueError, match=r"Cannot `vmap` ordered IO callback: .* not supported in vmap"):
        jax.vmap(call)(jnp.ones(2))


def test_results_of_callbacks_are_taken_by_their_leaves():
    announced = {"y": [jax.ShapeDtypeStruct((), jnp.float32)]}
    out = jax.jit(lambda x: jax.pure_callback(lambda x: {"y": [x]}, announced, [x]))(jnp.float32(2))
    assert jax.tree.structure(out) == jax.tree.structure(announced)
    assert float(out["y"][0]) == 2.0
    with pytest.raises(RuntimeError, match="announced was"):
        jax.pure_callback(lambda x: (x, x), announced, 1.0)


def test_traced_numbers_in_nested_indices():
    x = jnp.arange(24).reshape(2, 3, 4)
    inner = jax.jit(lambda i: x[((i, 0), (0, i)), i])(1)
    np.testing.assert_array_equal(inner, x[((1, 0), (0, 1)), 1])
    np.testing.assert_array_equal(jax.jit(lambda i: x[(i, 0),])(1), x[jnp.array([1, 0])])
    with pytest.raises(TypeError):
        jax.jit(lambda i: x[(i, 0.5),])(1)


@pytest.mark.parametrize("ordered", [False, True])
def test_callbacks_get_what_is_no_array_as_it_is(ordered):
    seen = []
    note = lambda *args, **kwargs: seen.append((args[0], float(args[1]), args[2], kwargs))
    f = jax.jit(lambda x: jax.debug.callback(note, "a", x, (None, note), ordered=ordered, key="b"))
    f(1.5)
    jax.effects_barrier()
    assert seen == [("a", 1.5, (None, note), {"key": "b"})]


ALL = jax.checkpoint_policies.everything_saveable
DOTS = jax.checkpoint_policies.dots_saveable


def shown(x, ordered):
    jax.debug.print("{}", jnp.round(x), ordered=ordered)
    return jnp.sin(x)


#: Functions under `checkpoint`, their argument, and what a gradient prints: what is computed again is shown again.
AGAIN = {
    "itself": (lambda show: jax.checkpoint(show), ["2.0"] * 2),
    "of a call": (lambda show: jax.checkpoint(jax.jit(show)), ["2.0"] * 2),
    "all is kept": (lambda show: jax.checkpoint(show, policy=ALL), ["2.0"]),
    "products are kept": (lambda show: jax.checkpoint(show, policy=DOTS), ["2.0"] * 2),
    "twice": (lambda show: jax.checkpoint(lambda x: jnp.cos(jax.checkpoint(show)(x))), ["2.0"] * 3),
    "a branch": (
        lambda show: jax.checkpoint(lambda x: jnp.cos(lax.cond(x > 0, show, lambda x: x, x))),
        ["2.0"] * 2,
    ),
    "steps": (
        lambda show: jax.checkpoint(lambda x: lax.scan(lambda c, _: (show(c), None), x, None, length=2)[0]),
        ["2.0", "1.0"] * 2,
    ),
    "a step": (
        lambda show: lambda x: lax.scan(lambda c, _: (jax.checkpoint(show)(c), None), x, None, length=2)[0],
        ["2.0", "1.0", "1.0", "2.0"],
    ),
    "steps without results": (
        lambda show: jax.checkpoint(
            lambda x: (lax.scan(lambda c, _: (show(c) * 0 + c, None), x, None, length=2), jnp.sin(x))[1]
        ),
        ["2.0"] * 4,
    ),
}


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("name", AGAIN)
def test_what_is_computed_again_is_shown_again(name, ordered, capsys):
    make, lines = AGAIN[name]
    for whole in (lambda f: f, jax.jit):
        whole(jax.grad(make(functools.partial(shown, ordered=ordered))))(2.0)
        jax.effects_barrier()
        assert capsys.readouterr().out.splitlines() == lines


def test_rows_call_the_host_as_their_branches_do():
    seen = []
    call = lambda name, x: lambda: io_callback(lambda v: seen.append((name, int(v))), None, x)
    f = jax.vmap(lambda p, x: lax.cond(p, call("yes", x), call("no", x)))
    f(np.array([True, False, True]), np.arange(3))
    assert seen == [("yes", 0), ("no", 1), ("yes", 2)]


def test_rows_that_have_stopped_do_not_call_the_host():
    def counted(bound):
        def step(i):
            io_callback(lambda v: seen.append(int(v)), None, i)
            return i + 1

        return lambda i: lax.while_loop(lambda i: i < bound, step, i)

    seen = []
    with pytest.raises(NotImplementedError, match="Unordered IO effects not supported in while_loop with batched"):
        jax.vmap(counted(5))(np.array([0, 4]))
    jax.vmap(
        lambda x: lax.fori_loop(0, 2, lambda _, v: (io_callback(lambda u: seen.append(int(u)), None, v), v)[1], x)
    )(np.array([3, 4]))
    assert seen == [3, 4, 3, 4]


@pytest.mark.parametrize("ordered", [False, True])
def test_host_code_with_effects_is_not_called_again(ordered):
    def f(x, y):
        io_callback(lambda v: v, y, y, ordered=ordered)
        return x * 2

    assert float(jax.checkpoint(f)(2.0, np.float32(3))) == 4
    with pytest.raises(NotImplementedError, match="Effects not supported in partial-eval of `checkpoint`"):
        jax.grad(jax.checkpoint(f))(2.0, np.float32(3))


def test_values_that_are_shown_at_once_keep_their_weak_types():
    oracle = pytest.importorskip("jax")

    def shown(j, run):
        seen = []
        run(j, lambda *args: j.debug.callback(lambda *a: seen.append(a), *args))
        j.effects_barrier()
        return [[str(x.dtype) + str(x.weak_type) for x in args] for args in seen]

    runs = [
        lambda j, show: show(3, 2.0, True, 1j, j.numpy.asarray(1), j.numpy.ones(1)),
        lambda j, show: j.vmap(lambda x: show(x, 3, j.numpy.asarray(2.0)))(j.numpy.arange(2)),
        lambda j, show: j.grad(lambda x: (show(x, 3), x)[1])(1.0),
        lambda j, show: j.jit(lambda x: show(x, 3))(1),
    ]
    for run in runs:
        assert shown(jax, run) == shown(oracle, run)


def test_printed_trees_show_weak_types(capsys):
    for j in (jax, pytest.importorskip("jax")):
        j.debug.print("{} {}", [1], {"a": j.numpy.asarray(1.0)})
        j.effects_barrier()
    ours, theirs = capsys.readouterr().out.splitlines()
    assert ours == theirs
