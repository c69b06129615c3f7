"""Control flow, `eval_shape` and `jit` call a function once for each type of its arguments, and keep nothing alive.

The numbers of calls are those of JAX 0.10.2. Where a function finds other values from outside in another
transformation, it is called again (JAX would give the first values' result).
"""

import gc
import weakref

import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax
from tests.support import assert_same

ROWS = jnp.arange(5.0)


class Counted:
    """Calls of functions."""

    def __init__(self):
        self.calls = 0

    def body(self):
        def body(carry, x):
            self.calls += 1
            return carry + x, carry

        return body

    def step(self):
        def step(x):
            self.calls += 1
            return x + 1

        return step


@pytest.fixture
def counted():
    return Counted()


def calls_of(counted, times, call):
    before = counted.calls
    for _ in range(times):
        call()
    return counted.calls - before


def test_a_body_is_called_once_for_a_type(counted):
    body = counted.body()
    assert calls_of(counted, 3, lambda: lax.scan(body, jnp.zeros(()), ROWS)) == 1
    assert calls_of(counted, 3, lambda: lax.scan(body, jnp.zeros(2), ROWS)) == 1
    assert calls_of(counted, 3, lambda: lax.scan(body, jnp.zeros(()), ROWS, reverse=True)) == 0
    last, before = lax.scan(body, jnp.ones(()), ROWS)
    assert float(last) == 11 and before.tolist() == [1, 1, 2, 4, 7]


def test_a_body_is_called_once_for_all_transformations(counted):
    body = counted.body()
    total = lambda x: lax.scan(body, x, ROWS)[0]
    one = jnp.ones(())
    run = lambda: (ferrax.jit(total)(one), ferrax.grad(total)(one), ferrax.vmap(total)(jnp.ones(2)), total(one))
    assert calls_of(counted, 2, run) == 1


def test_loops_and_branches_of_one_function(counted):
    step, other, test = counted.step(), counted.step(), lambda x: x < 5
    with_index = lambda i, x: step(x + i)
    assert calls_of(counted, 3, lambda: lax.while_loop(test, step, 1)) == 1
    assert calls_of(counted, 3, lambda: lax.fori_loop(0, 3, with_index, 1)) == 1
    assert calls_of(counted, 3, lambda: lax.fori_loop(0, jnp.asarray(3), with_index, 1)) <= 1
    assert calls_of(counted, 3, lambda: lax.cond(True, step, other, 1)) == 2
    assert calls_of(counted, 3, lambda: lax.switch(1, [step, other, step], 1.0)) == 2


def test_shapes_programs_and_checkpoints_of_one_function(counted):
    step, other = counted.step(), counted.step()
    assert calls_of(counted, 3, lambda: ferrax.eval_shape(step, 1.0)) == 1
    assert calls_of(counted, 3, lambda: ferrax.make_jaxpr(other)(1.0)) == 1
    saved = ferrax.checkpoint(counted.step())
    assert calls_of(counted, 3, lambda: saved(1.0)) == 1


def test_a_counting_loop_is_no_scan_of_the_same_function():
    def take(a, b):
        return (a[0] + 1, a[1]) if b is None else b + a

    assert int(lax.fori_loop(0, 3, take, 1)) == 4

    def step(carry, x):
        return carry, x

    assert lax.scan(step, (0, 1), None, length=2)[0] == (0, 1)


def test_functions_that_are_made_anew_are_called_anew(counted):
    class Model:
        def body(self, carry, x):
            counted.calls += 1
            return carry + x, None

    model = Model()
    assert calls_of(counted, 3, lambda: lax.scan(model.body, jnp.zeros(()), ROWS)) == 3
    assert calls_of(counted, 3, lambda: lax.map(lambda x: x * counted.step()(x), ROWS)) == 3


def test_settings_and_clearing_call_again(counted):
    body = counted.body()
    run = lambda: lax.scan(body, jnp.zeros((), "float32"), ROWS)
    assert calls_of(counted, 2, run) == 1
    with ferrax.default_matmul_precision("highest"):
        assert calls_of(counted, 2, run) == 1
    assert calls_of(counted, 2, run) == 0
    ferrax.clear_caches()
    assert calls_of(counted, 2, run) == 1


def test_values_from_outside_are_those_of_the_transformation():
    class State:
        w = jnp.array([2.0, 3.0])

    def body(carry, x):
        return carry + State.w * x, None

    def total(w):
        State.w = w
        return lax.scan(body, jnp.zeros(2), ROWS)[0].sum()

    plain = lax.scan(body, jnp.zeros(2), ROWS)[0]
    assert plain.tolist() == [20, 30]
    assert ferrax.grad(total)(jnp.ones(2)).tolist() == [10, 10]
    assert float(ferrax.jit(total)(jnp.ones(2))) == 20
    assert ferrax.vmap(total)(jnp.array([[1.0, 2.0], [3.0, 4.0]])).tolist() == [30, 70]
    assert ferrax.grad(lambda w: ferrax.grad(total)(w).sum() + total(w))(jnp.ones(2)).tolist() == [10, 10]
    assert float(ferrax.jit(total)(jnp.ones(2) * 2)) == 40


def test_a_number_from_outside_is_that_of_the_transformation():
    class State:
        w = jnp.float32(2.0)

    inner = lambda carry, x: (carry + State.w * x, None)
    outer = lambda carry, _: (lax.scan(inner, carry, ROWS)[0], None)

    def total(w, body, xs):
        State.w = w
        return lax.scan(body, jnp.zeros(()), xs)[0]

    for body, xs in ((inner, ROWS), (outer, jnp.zeros(3)), (inner, ROWS)):
        State.w = jnp.float32(2.0)
        times = xs.size if body is outer else 1
        assert float(lax.scan(body, jnp.zeros(()), xs)[0]) == 20 * times
        assert float(ferrax.grad(total)(3.0, body, xs)) == 10 * times
        assert float(ferrax.jit(total, static_argnums=1)(jnp.float32(3.0), body, xs)) == 30 * times


def test_one_closure_in_a_trace_is_called_once(counted):
    @ferrax.jit
    def layers(x, w):
        def body(carry, row):
            counted.calls += 1
            return carry * w + row, None

        for _ in range(4):
            x, _ = lax.scan(body, x, ROWS)
        return x

    def plain(x, w):
        for _ in range(4):
            for row in ROWS:
                x = x * w + row
        return x

    assert calls_of(counted, 1, lambda: layers(jnp.ones(()), jnp.full((), 0.5))) == 1
    assert_same(layers(jnp.ones(()), jnp.full((), 0.5)), plain(jnp.ones(()), jnp.full((), 0.5)))
    assert calls_of(counted, 1, lambda: ferrax.grad(layers)(1.0, 0.5)) <= 2


def test_a_function_and_what_it_holds_go():
    held = jnp.arange(7.0) + 1

    def make(array):
        def body(carry, x):
            return carry + array.sum() * x, None

        lax.scan(body, jnp.zeros(()), ROWS)
        ferrax.eval_shape(body, 1.0, 2.0)
        return weakref.ref(body)

    gone, array = make(held), weakref.ref(held)
    del held
    gc.collect()
    assert gone() is None and array() is None


def test_tracers_from_outside_are_not_kept(counted):
    class State:
        w = None

    def body(carry, x):
        counted.calls += 1
        return carry + State.w * x, None

    def total(w):
        State.w = w * 2
        seen.append(weakref.ref(State.w))
        out = lax.scan(body, jnp.zeros(2), ROWS)[0].sum()
        State.w = None
        return out

    seen = []
    with ferrax.checking_leaks():
        assert float(ferrax.jit(total)(jnp.ones(2))) == 40
    ferrax.grad(total)(jnp.ones(2))
    gc.collect()
    assert [ref() for ref in seen] == [None, None]


def test_references_are_noted_at_every_call():
    ref = ferrax.new_ref(jnp.zeros(()))

    def body(carry, x):
        ref[...] += x
        return carry + ref[...], None

    for total in (10.0, 20.0):
        lax.scan(body, jnp.zeros(()), ROWS)
        assert float(ref[...]) == total


def test_an_error_is_raised_at_every_call(counted):
    def body(carry, x):
        counted.calls += 1
        raise KeyError("missing")

    for _ in range(2):
        with pytest.raises(KeyError):
            lax.scan(body, 0.0, ROWS)
    assert counted.calls == 2


def test_what_is_captured_is_looked_at_where_that_is_asked_for():
    class State:
        w = 2.0

    body = lambda carry, x: (carry + State.w * x, None)
    for w in (2.0, 3.0):
        State.w = w
        with ferrax.check_captures():
            assert float(lax.scan(body, jnp.zeros(()), ROWS)[0]) == 10 * w


def test_named_axes_are_part_of_the_type(counted):
    def body(carry, x):
        counted.calls += 1
        return carry + lax.psum(x, "i"), None

    mapped = lambda size: ferrax.vmap(lambda x: lax.scan(body, x * 0, x[None])[0], axis_name="i")(jnp.ones(size))
    assert mapped(2).tolist() == [2, 2]
    assert mapped(3).tolist() == [3, 3, 3]
    assert mapped(2).tolist() == [2, 2]


def test_branches_that_differ_in_weak_types_have_the_type_of_the_first(counted):
    strong, weak = lambda x: x * jnp.float32(2), lambda x: x
    both = lambda run: (ferrax.typeof(run(1.0)).weak_type, ferrax.typeof(ferrax.jit(run)(1.0)).weak_type)
    # the first branch of a cond's equation is what runs where the condition does not hold
    assert both(lambda x: lax.cond(x > 0, strong, weak, x)) == (True, True)
    assert both(lambda x: lax.cond(x > 0, weak, strong, x)) == (False, False)
    assert both(lambda x: lax.switch(jnp.int32(x), [strong, weak, weak], x)) == (False, False)
    assert both(lambda x: lax.switch(jnp.int32(x), [weak, strong], x)) == (True, True)
    step = counted.step()
    assert calls_of(counted, 1, lambda: lax.cond(True, step, lambda x: jnp.float32(x), 1.0)) == 1
    assert ferrax.typeof(1.0).str_short() == "float32[]"


def test_a_jitted_function_is_traced_once_for_calls_and_stages(counted):
    step, x = counted.step(), jnp.ones(3)
    f = ferrax.jit(step)
    assert calls_of(counted, 1, lambda: f.lower(x)) == 1
    assert calls_of(counted, 2, lambda: f(x)) == 0
    f.clear_cache()
    assert calls_of(counted, 2, lambda: f(x)) == 1
    for use in [
        lambda: ferrax.jit(step, inline=True)(x),
        lambda: f.lower(x).compile(),
        lambda: f.trace(ferrax.ShapeDtypeStruct((3,), "float32")),
        lambda: f.eval_shape(x),
        lambda: ferrax.jit(step).lower(x),
        lambda: ferrax.jit(step, donate_argnums=0).lower(x),
        lambda: ferrax.jit(lambda y: f(y) * 2)(x),
    ]:
        assert calls_of(counted, 2, use) == 0
    assert calls_of(counted, 2, lambda: f(jnp.ones(4))) == 1
    assert calls_of(counted, 2, lambda: f.lower(jnp.ones(4))) == 0
    assert_same(f.lower(x).compile()(x), x + 1)
    ferrax.clear_caches()
    assert calls_of(counted, 2, lambda: f.lower(x)) == 1
    with ferrax.enable_x64(True):
        assert calls_of(counted, 2, lambda: f.lower(x)) == 1


def test_static_arguments_are_told_apart(counted):
    f, x = ferrax.jit(lambda x, n: x * n, static_argnums=1), jnp.ones(3)
    assert_same(f.lower(x, 2).compile()(x), 2 * x)
    assert_same(f.lower(x, 3).compile()(x), 3 * x)
    assert_same(f(x, 4), 4 * x)


def test_a_jitted_function_finds_the_values_of_each_transformation(counted):
    def outer(y):
        def inner(x):
            return x * y

        f = ferrax.jit(inner)
        f.lower(1.0)
        return f(2.0) + ferrax.jit(inner)(3.0)

    assert_same(ferrax.vmap(outer)(ROWS), 5 * ROWS)
    assert_same(ferrax.grad(outer)(1.0), ferrax.grad(lambda y: 5 * y)(1.0))
    held = []
    f = ferrax.jit(lambda x: x + held[-1])
    for scale in (1.0, 2.0):

        def around(y, scale=scale):
            held.append(scale * y)
            return f(y)

        assert_same(ferrax.jit(around)(ROWS), ROWS + scale * ROWS)


def test_programs_of_jitted_functions_go_with_them(counted):
    step = counted.step()
    gone = weakref.ref(step)
    f = ferrax.jit(step)
    f.lower(1.0)
    f(1.0)
    del step, f
    gc.collect()
    assert gone() is None


def test_checkpoints_with_static_arguments_are_traced_once_for_them(counted):
    def powers(x, n, *, scale=1):
        counted.calls += 1
        return scale * x**n

    f = ferrax.checkpoint(powers, static_argnums=1, static_argnames="scale")
    assert calls_of(counted, 3, lambda: f(2.0, 3)) == 1
    assert calls_of(counted, 2, lambda: f(2.0, 2, scale=3)) == 1
    assert calls_of(counted, 2, lambda: f(2.0, 2.0, scale=3)) == 1  # equal, of another type
    assert [float(f(2.0, n)) for n in (2, 3, 3.0)] == [4, 8, 8]
    assert float(ferrax.checkpoint(lambda x, s: x * s[0], static_argnums=1)(2.0, [3])) == 6
