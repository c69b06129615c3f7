"""Functions that use references run once in Python: what their first trace found stands for them afterwards."""

import functools

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax


def counted(fun):
    """The function, and a list that grows with every call of it in Python."""
    calls = []

    def called(*args, **kwargs):
        calls.append(1)
        return fun(*args, **kwargs)

    return called, calls


def test_jitted_functions_run_once():
    ref = jax.new_ref(jnp.float32(1))

    def add(x):
        ref[...] += x
        return {"twice": 2 * ref[...], "x": x}

    add, calls = counted(add)
    jitted = jax.jit(add)
    assert [float(jitted(x)["twice"]) for x in (2.0, 3.0)] == [6, 12] and len(calls) == 1
    ref[...] = 0.0
    assert float(jitted(1)["twice"]) == 2 and len(calls) == 2  # for another type
    other, calls = counted(lambda: ref[...] * 2)
    assert float(jax.jit(other)()) == 2 and len(calls) == 1


def test_static_arguments():
    ref = jax.new_ref(jnp.float32(0))

    def step(scale, x, *, shift, more):
        ref[...] += scale * x + shift + more
        return ref[...]

    step, calls = counted(step)
    jitted = jax.jit(step, static_argnums=0, static_argnames="shift")
    assert float(jitted(3, 2.0, shift=1, more=0.5)) == 7.5 and len(calls) == 1
    assert float(jitted(4, 2.0, shift=1, more=0.5)) == 17 and len(calls) == 2
    assert float(jitted(3, 2.0, shift=1, more=0.5)) == 24.5 and len(calls) == 2


def test_the_value_of_a_reference_is_its_own():
    # the reference holds what the function closes over too, at first
    @jax.jit
    def outer(x):
        ref = jax.new_ref(x)

        @jax.jit
        def inner(y):
            ref[...] = ref[...] * x + y
            return ref[...] - x

        return inner(1.0), inner(2.0), ref[...]

    # 3 * 3 + 1 = 10, 10 * 3 + 2 = 32
    assert [float(v) for v in outer(3.0)] == [7, 29, 32]


def test_what_was_written_before_a_call_counts():
    ref = jax.new_ref(jnp.float32(0))

    @jax.jit
    def outer(x):
        ref[...] = x

        @jax.jit
        def inner():
            ref[...] *= 2
            return ref[...]

        return inner(), inner()

    assert [float(v) for v in outer(3.0)] == [6, 12] and float(ref[...]) == 12


@pytest.mark.parametrize("jit", [False, True])
def test_loops_and_branches_run_once(jit):
    ref = jax.new_ref(jnp.float32(1))

    def body(c, x):
        ref[...] *= x
        return c + ref[...], ref[...]

    body, of_scan = counted(body)
    test, of_test = counted(lambda i: (ref[...] < 50) & (i < 20))
    step, of_step = counted(lambda i: (ref.addupdate(i.astype("float32")), i + 1)[1])
    yes, of_yes = counted(lambda x: ref.set(x))
    no, of_no = counted(lambda x: ref.set(-x))

    def all_of_them(x, k):
        c, ys = lax.scan(body, 0.0, x)
        n = lax.while_loop(test, step, 0)
        lax.cond(k, yes, no, c)
        return c, ys, n

    c, ys, n = (jax.jit(all_of_them) if jit else all_of_them)(jnp.arange(1.0, 4.0), False)
    np.testing.assert_array_equal(ys, [1, 2, 6])
    assert (float(c), int(n), float(ref[...])) == (9, 10, -9)
    assert [len(calls) for calls in (of_scan, of_test, of_step, of_yes, of_no)] == [1] * 5


def test_a_carry_that_changes_its_type():
    ref = jax.new_ref(jnp.float32(0))

    def body(c, x):
        ref[...] += x
        return c + jnp.float32(0.5), c

    (c, ys) = lax.scan(body, 0, jnp.arange(3.0))
    assert (float(c), c.dtype, float(ref[...])) == (1.5, "float32", 3)
    np.testing.assert_array_equal(ys, [0, 0.5, 1])


def test_derivatives_and_maps():
    def f(x):
        ref = jax.new_ref(x)

        def inner(a):
            ref[...] = jnp.sin(ref[...]) * a
            return ref[...]

        inner, calls = counted(inner)
        out = jax.jit(inner)(3.0)
        assert len(calls) == 1
        return out

    assert jax.grad(f)(2.0) == pytest.approx(3 * np.cos(2.0))
    assert jax.grad(jax.grad(f))(2.0) == pytest.approx(-3 * np.sin(2.0))
    np.testing.assert_allclose(jax.vmap(f)(jnp.arange(3.0)), 3 * np.sin(np.arange(3.0)), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(f)))(jnp.arange(3.0)), 3 * np.cos(np.arange(3.0)), rtol=1e-6)


def test_constants_are_used_once():
    # a body that takes what it needs off a list works, as in JAX
    def f(values):
        refs = [jax.new_ref(v) for v in values]
        left = list(refs)

        def body(c, x):
            while left:
                x = x + left.pop()[...]
            return c + x, ()

        return lax.scan(body, 0.0, jnp.arange(2.0))[0]

    assert float(f([1.0, 2.0])) == 7
    np.testing.assert_array_equal(jax.grad(f)([1.0, 2.0]), [2, 2])


def test_what_is_printed_is_printed_once(capfd):
    ref = jax.new_ref(jnp.float32(0))

    @jax.jit
    def f(x):
        print("traced")
        jax.debug.print("at {}", ref[...])
        ref[...] += x

    f(1.0)
    f(2.0)
    jax.effects_barrier()
    assert capfd.readouterr().out.split() == ["traced", "at", "0.0", "at", "1.0"]


def test_rules_that_take_references():
    ref = jax.new_ref(jnp.float32(0))

    @jax.custom_vjp
    def stash(ref, x):
        return x

    def backward(ref, g):
        ref[...] = g
        return None, g

    stash.defvjp(lambda ref, x: (x, ref), backward)
    f = jax.jit(lambda x: jnp.sin(stash(ref, jnp.sin(x))))
    assert float(jax.grad(f)(1.0)) == pytest.approx(np.cos(np.sin(1.0)) * np.cos(1.0))
    assert float(ref[...]) == pytest.approx(np.cos(np.sin(1.0)))


def test_true_fun_is_traced_first():
    order = []
    branches = lambda: [lambda name=name: order.append(name) or 1.0 for name in ("yes", "no")]
    lax.cond(True, *branches())
    jax.jit(lambda k: lax.cond(k, *branches()))(True)
    lax.switch(1, branches())
    assert order == ["yes", "no"] * 3


def test_stages_of_types_of_references():
    struct = jax.ShapeDtypeStruct((3,), jnp.float32, is_ref=True)
    assert repr(struct) == "ShapeDtypeStruct(shape=(3,), dtype=float32, is_ref=True)"

    def add(ref, x):
        ref[1:] += x

    compiled = jax.jit(add).lower(struct, 1.0).compile()
    ref = jax.new_ref(jnp.zeros(3))
    compiled(ref, 2.0)
    np.testing.assert_array_equal(ref[...], [0, 2, 2])


def test_anything_else_asks_for_the_cotangent():
    total = jax.new_ref(jnp.float32(1))
    _, pull = jax.vjp(lambda x, y: x * y, jnp.float32(2), jnp.float32(3))
    first, second = pull.with_refs(total, object())(jnp.float32(1))
    assert (float(total[...]), float(second), first) == (4, 2, jax.ad.GradRef())


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_functions_with_rules_write(wrap):
    @jax.custom_vjp
    def f(x, ref):
        ref[...] = x + 1
        return x * ref[...]

    f.defvjp(lambda x, ref: (f(x, ref), (x, ref)), lambda kept, g: (g * kept[1][...], None))
    ref = jax.new_ref(jnp.float32(0))
    assert float(wrap(f)(2.0, ref)) == 6 and float(ref[...]) == 3
    ref = jax.new_ref(jnp.float32(0))
    assert float(wrap(jax.grad(lambda x: f(x, ref)))(2.0)) == 3 and float(ref[...]) == 3
    g = jax.custom_vjp(lambda k, x, ref: (ref.set(x * k), x)[1], nondiff_argnums=(0,))
    g.defvjp(lambda k, x, ref: (g(k, x, ref), ref), lambda k, ref, ct: (ct * k + ref[...], None))
    ref = jax.new_ref(jnp.float32(0))
    assert float(wrap(lambda x: g(3, x, ref))(2.0)) == 2 and float(ref[...]) == 6
    assert float(wrap(jax.grad(lambda x: g(3, x, ref)))(4.0)) == 15 and float(ref[...]) == 12
    ref = jax.new_ref(jnp.float32(0))
    c, ys = wrap(lambda x: lax.scan(lambda c, _: (c + f(c, ref), ref[...]), x, None, length=2))(2.0)
    assert float(c) == 80 and ys.tolist() == [3, 9] and float(ref[...]) == 9


def test_programs_with_references_have_values_of_their_constants():
    def f(ref, x):
        ref[...] += x * np.arange(3.0)
        return ref[1:]

    program = jax.make_jaxpr(f)(jax.new_ref(jnp.zeros(3)), 1.0)
    assert isinstance(program, jax.extend.core.ClosedJaxpr) and isinstance(program.jaxpr, jax.extend.core.Jaxpr)
    assert isinstance(program.jaxpr.invars[0], jax.extend.core.Var)
    for closed, step in (
        (jax.extend.core.ClosedJaxpr(program.jaxpr, program.consts), 1),
        (jax.extend.core.ClosedJaxpr(program.jaxpr, [np.full(3, 2, np.float32)]), 0),
    ):
        ref = jax.new_ref(jnp.ones(3))
        wanted = 1 + 2 * np.arange(3.0) if step else np.full(3, 5.0)
        np.testing.assert_array_equal(jax.extend.core.jaxpr_as_fun(closed)(ref, 2.0)[0], wanted[1:])
        np.testing.assert_array_equal(ref[...], wanted)
        assert str(closed) == str(program)
    ref = jax.new_ref(jnp.ones(3))
    assert jax.core.eval_jaxpr(program.jaxpr, program.consts, ref, 1.0)[0].tolist() == [2, 3]


@pytest.mark.parametrize("jit", [False, True])
def test_checkpoints_compute_again_and_write_once(jit):
    ref, seen = jax.new_ref(jnp.float32(1)), []

    @jax.checkpoint
    @functools.partial(jax.checkpoint, policy=lambda *_, **__: False)
    def f(y):
        jax.debug.callback(lambda _: seen.append(1), y)
        out = y * ref[...]
        ref[...] += 1
        return jnp.sin(out)

    g = jax.jit(f) if jit else f
    assert float(jax.grad(g)(2.0)) == pytest.approx(np.cos(2.0)) and float(ref[...]) == 2
    jax.effects_barrier()
    assert len(seen) == 3
    h = jax.checkpoint(lambda x, ref: (ref.set(x), jnp.sin(x * ref[...]))[1])
    assert float(jax.grad(lambda x: h(x, jax.new_ref(x)))(0.5)) == pytest.approx(np.cos(0.25))


def test_references_without_slopes():
    ref = jax.new_ref(jnp.float32(1), kind="no_grad_no_remat")

    def f(y, ref):
        ref[...] += y * y
        return y * ref[...]

    for call in (f, jax.jit(f), jax.checkpoint(f)):
        ref[...] = 1.0
        assert float(jax.grad(call)(2.0, ref)) == 5 and float(ref[...]) == 5
        ref[...] = 1.0
        assert float(jax.grad(lambda y, call=call: call(y, ref))(2.0)) == 5
    with pytest.raises(Exception, match="differentiated value on a non-differentiated"):
        jax.grad(f)(2.0, jax.new_ref(jnp.float32(1)))
