"""Donation one can rely on: by position, name or path; `donate="must"`; and who took a donated array (promise P9)."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp


def update(state, batch, scale=1.0):
    return {"w": state["w"] + batch, "b": state["b"] * 2.0}


def arguments():
    return {"w": jnp.ones(4), "b": jnp.ones((2, 2))}, jnp.full(4, 2.0)


@pytest.mark.parametrize("options", [{"donate_argnums": 0}, {"donate_argnames": "state"}])
@pytest.mark.parametrize("by_keyword", [False, True])
def test_by_position_and_name(options, by_keyword):
    state, batch = arguments()
    f = ferrax.jit(update, **options)
    out = f(state=state, batch=batch) if by_keyword else f(state, batch)
    assert state["w"].is_deleted() and state["b"].is_deleted() and not batch.is_deleted()
    np.testing.assert_array_equal(out["w"], np.full(4, 3.0, np.float32))


@pytest.mark.parametrize("by_keyword", [False, True])
def test_by_path(by_keyword):
    state, batch = arguments()
    f = ferrax.jit(update, donate_argnames="state['w']")
    _ = f(state=state, batch=batch) if by_keyword else f(state, batch)
    assert state["w"].is_deleted() and not state["b"].is_deleted()


def test_a_path_covers_what_lies_below_it():
    state = {"opt": [jnp.ones(2), jnp.ones(3)], "optimum": jnp.ones(4)}
    f = ferrax.jit(lambda state: ferrax.tree.map(lambda x: x + 1, state), donate_argnames=["state['opt']"])
    f(state)
    assert [x.is_deleted() for x in state["opt"]] == [True, True] and not state["optimum"].is_deleted()


def test_a_path_that_nothing_has():
    state, batch = arguments()
    with pytest.raises(
        ValueError, match=r"path state\['v'\], which no argument has; the paths are state\['b'\], state\['w'\]"
    ):
        ferrax.jit(update, donate_argnames="state['v']")(state, batch)


def test_a_donated_array_names_who_took_it():
    state, batch = arguments()
    ferrax.jit(update, donate_argnums=0)(state, batch)
    line = test_a_donated_array_names_who_took_it.__code__.co_firstlineno + 2
    who = r"its buffer was donated to update at .*test_donation\.py:\d+ as its argument state\['w'\], in the call at "
    with pytest.raises(RuntimeError, match=rf"{who}.*test_donation\.py:{line} \(test_a_donated_array_names"):
        _ = state["w"] + 1


def test_must_donate_runs_where_memory_can_be_taken():
    f = ferrax.jit(update, donate_argnums=0, donate="must")
    state, batch = arguments()
    for _ in range(3):
        old, state = state, f(state, batch)
        assert old["w"].is_deleted() and old["b"].is_deleted()


def numpy_view():
    x = jnp.ones(4)
    return x, np.asarray(x)


def twice():
    x = jnp.ones(4)
    return x, x


MUST = {
    "no result left": (lambda x: x[:2], lambda: (jnp.ones(4),), "no result of the same shape and dtype is left"),
    "a Python number": (lambda x: x + 1, lambda: (1.0,), "a Python number has no memory"),
    "donated before": (lambda x: x + 1, lambda: (deleted(),), "it was deleted or donated before"),
    "the same array": (lambda x, y: (x + 1, y + 1), twice, "the same array is passed twice"),
}


def deleted():
    x = jnp.ones(4)
    x.delete()
    return x


@pytest.mark.parametrize("name", MUST)
def test_must_donate_raises_with_the_reason(name):
    fun, make, reason = MUST[name]
    args = make()
    f = ferrax.jit(fun, donate_argnums=tuple(range(len(args))), donate="must")
    with pytest.raises(ValueError, match=f"argument x of <lambda>.* cannot be donated: {reason}"):
        f(*args)


def test_must_donate_with_a_view_of_the_memory():
    x, view = numpy_view()
    f = ferrax.jit(lambda x: x + 1, donate_argnums=0, donate="must")
    with pytest.raises(ValueError, match="somebody else sees its memory"):
        f(x)
    del view
    f(x)
    assert x.is_deleted()


@pytest.mark.parametrize("n", [4, 1000, 100_000])
def test_the_state_of_an_optimizer_is_replaced_in_place(n):
    def adam(p, m, v, g):
        m = 0.9 * m + 0.1 * g
        v = 0.99 * v + 0.01 * g * g
        return p - 0.1 * m / (jnp.sqrt(v) + 1e-8), m, v

    state = [jnp.full(n, k + 1.0) for k in range(3)]
    kept, g = [jnp.array(s) for s in state], jnp.linspace(-1.0, 1.0, n)
    out = ferrax.jit(adam, donate_argnums=(0, 1, 2), donate="must")(*state, g)
    assert all(s.is_deleted() for s in state)
    for got, want in zip(out, ferrax.jit(adam)(*kept, g)):
        np.testing.assert_array_equal(got, want)


def test_donate_is_checked():
    with pytest.raises(ValueError, match="donate must be 'may' or 'must', got 'maybe'"):
        ferrax.jit(update, donate="maybe")


@pytest.mark.parametrize("path", ["state['w']", 'state["w"]'])
def test_paths_have_either_quotes(path):
    state, batch = arguments()
    ferrax.jit(update, donate_argnames=path)(state, batch)
    assert state["w"].is_deleted() and not state["b"].is_deleted()


def test_paths_that_are_almost_right():
    with pytest.raises(ValueError, match=r"path state\['ww'\].*Did you mean state\['w'\]\?"):
        ferrax.jit(update, donate_argnames='state["ww"]')(*arguments())
    many = {f"layer{i}": jnp.ones(1) for i in range(20)}
    with pytest.raises(ValueError, match=r"the nearest of the 20 paths are .*Did you mean p\['layer1'\]\?"):
        ferrax.jit(lambda p: p, donate_argnames="p['layr1']")(many)


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        (np.ones(4, np.float32), "a NumPy array keeps its memory"),
        (np.float32(1.0), "a NumPy scalar has no memory"),
        (True, "a Python number has no memory"),
    ],
)
@pytest.mark.parametrize("options", [{"donate_argnums": 0}, {"donate_argnames": "x", "static_argnums": 1}])
def test_must_donate_what_is_no_array(argument, reason, options):
    f = ferrax.jit(lambda x, n=1: x + n, donate="must", **options)
    for _ in range(2):
        with pytest.raises(ValueError, match=f"argument x of <lambda> cannot be donated: {reason}"):
            f(argument)
    g = ferrax.jit(lambda x: {"a": x["a"] + 1, "b": x["b"]}, donate="must", donate_argnames="x['a']")
    with pytest.raises(ValueError, match=rf"argument x\['a'\] of <lambda> cannot be donated: {reason}"):
        g({"a": argument, "b": jnp.ones(2)})


def test_must_donate_nothing():
    with pytest.raises(ValueError, match=r"update at .*donate='must', but no argument is donated"):
        ferrax.jit(update, donate="must")
    with pytest.raises(ValueError, match="no argument is donated"):
        ferrax.jit(lambda *xs: xs[0], donate_argnums=3, donate="must")(jnp.ones(3))
