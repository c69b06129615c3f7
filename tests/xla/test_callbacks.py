"""Programs that call the host, on a CPU client of XLA: effects in order, results and errors as on the embedded engine.

Where programs are cut: `crates/ferrax-loops/tests/segments.rs`; random ones: `tests/engine/tests/driven.rs`.
"""

import gc

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax.experimental import io_callback

SHAPE = jax.ShapeDtypeStruct((3,), jnp.float32)


@pytest.fixture(scope="module")
def xla():
    """The first device of the plugin."""
    return jax.devices("xla_cpu")[0]


class Host:
    """Host code that notes what it is called with."""

    def __init__(self):
        self.seen = []

    def note(self, *args):
        self.seen.append([np.asarray(a).tolist() for a in args])

    def double(self, x):
        self.note(x)
        return np.asarray(x) * 2

    def refuse(self, x):
        self.note(x)
        if len(self.seen) > 2:
            raise LookupError("enough is enough")
        return np.asarray(x)


def same(xla, program, *args):
    """Runs `program(host)` as a jitted function on both devices; gives what the host saw."""
    ran = []
    for device in (xla, jax.devices("cpu")[0]):
        host = Host()
        placed = jax.device_put(args, device)
        out = jax.block_until_ready(jax.jit(program(host))(*placed))
        assert {leaf.device for leaf in jax.tree.leaves(out)} == {device}
        jax.effects_barrier()
        ran.append((jax.tree.map(np.asarray, out), host.seen))
    (theirs, seen), (ours, expected) = ran
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), theirs, ours)
    np.testing.assert_equal(jax.tree.map(np.float32, seen), jax.tree.map(np.float32, expected))
    return seen


def doubled(host, x):
    return jax.pure_callback(host.double, jax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="sequential")


def test_between_operations(xla):
    def program(host):
        def f(x):
            y = doubled(host, x * 0.5) + 1
            jax.debug.callback(host.note, y.sum())
            return doubled(host, y), x, y

        return f

    assert len(same(xla, program, jnp.arange(3.0))) == 3


def test_in_a_scan(xla):
    def program(host):
        def step(carry, row):
            io_callback(host.note, None, row, ordered=True)
            carry = carry + doubled(host, row)
            return carry, (carry.sum(), row)

        return lambda rows: (
            lax.scan(step, jnp.zeros(3), rows),
            lax.scan(step, jnp.ones(3), rows, reverse=True, unroll=2),
            lax.scan(step, jnp.ones(3), rows[:0]),
        )

    assert len(same(xla, program, jnp.arange(15.0).reshape(5, 3))) == 20


def test_in_a_while_loop_and_its_condition(xla):
    def program(host):
        def cond(state):
            jax.debug.callback(host.note, state[1], ordered=True)
            return state[1] < 4

        def body(state):
            x, n, fixed = state
            return doubled(host, x) + fixed, n + 1, fixed

        return lambda x: lax.while_loop(cond, body, (x, 0, x + 1))

    assert len(same(xla, program, jnp.arange(3.0))) == 9


def test_only_the_chosen_branch_calls(xla):
    def program(host):
        def quiet(x):
            return jnp.sin(x)

        def loud(x):
            return doubled(host, x)

        def f(x):
            a = lax.cond(x.sum() > 0, loud, quiet, x)
            b = lax.cond(x.sum() < 0, loud, quiet, a)
            return lax.switch(jnp.int32(7), [quiet, quiet, loud], b)

        return f

    assert len(same(xla, program, jnp.arange(3.0))) == 2


def test_loops_in_branches_in_loops(xla):
    def program(host):
        def inner(i, x):
            return lax.cond(i % 2 == 0, lambda x: doubled(host, x), lambda x: x + i, x)

        def f(x):
            return lax.fori_loop(0, 3, lambda i, x: lax.fori_loop(0, i + 1, inner, x), x)

        return f

    assert len(same(xla, program, jnp.ones(3))) == 4


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_under_vmap(xla, method):
    def program(host):
        return jax.vmap(
            lambda x, y: jax.pure_callback(
                lambda x, y: host.double(x) + np.asarray(y), SHAPE, x, y, vmap_method=method
            ),
            in_axes=(0, None),
        )

    assert len(same(xla, program, jnp.arange(6.0).reshape(2, 3), jnp.ones(3))) == (2 if method == "sequential" else 1)


def test_under_grad(xla):
    def program(host):
        @jax.custom_vjp
        def f(x):
            return doubled(host, x)

        f.defvjp(lambda x: (f(x), x), lambda x, g: (g * doubled(host, jnp.cos(x)),))

        def loss(x):
            jax.debug.callback(host.note, x)
            y, _ = lax.scan(lambda c, _: (f(c), None), x, None, length=3)
            return (y**2).sum()

        return jax.value_and_grad(loss)

    assert len(same(xla, program, jnp.arange(3.0))) == 7


def test_outside_jit(xla):
    host = Host()
    x = jax.device_put(jnp.arange(3.0), xla)
    y = doubled(host, x)
    z, _ = lax.scan(lambda c, _: (doubled(host, c), None), y, None, length=2)
    io_callback(host.note, None, z)
    assert {y.device, z.device} == {xla}
    assert host.seen == [[[0, 1, 2]], [[0, 2, 4]], [[0, 4, 8]], [[[0, 8, 16]]][0]]


def test_prints_come_in_order(xla, capsys):
    @jax.jit
    def f(x):
        jax.debug.print("start {}", x[0])

        def body(i, x):
            jax.debug.print("step {i}: {s:.1f}", i=i, s=x.sum(), ordered=True)
            return x * 2

        x = lax.fori_loop(0, 3, body, x)
        jax.debug.print("end {}", x)
        return x

    f(jax.device_put(jnp.ones(2), xla))
    jax.effects_barrier()
    assert capsys.readouterr().out.splitlines() == [
        "start 1.0",
        "step 0: 2.0",
        "step 1: 4.0",
        "step 2: 8.0",
        "end [8. 8.]",
    ]


CALLS = {
    "straight": lambda call, x: call(call(call(x))),
    "scan": lambda call, x: lax.scan(lambda c, _: (call(c), c), x, None, length=9)[1],
    "while": lambda call, x: lax.while_loop(lambda s: s[1] < 9, lambda s: (call(s[0]), s[1] + 1), (x, 0)),
    "cond": lambda call, x: lax.cond(x[1] > 0, lambda x: call(call(call(x))), lambda x: x, x),
    "vmap": lambda call, x: jax.vmap(call)(jnp.stack([x, x, x, x])),
}


@pytest.mark.parametrize("where", CALLS)
@pytest.mark.parametrize("ordered", [False, True])
def test_an_error_of_host_code_surfaces_as_it_does_on_the_embedded_engine(xla, where, ordered):
    if where == "vmap" and ordered:
        pytest.skip("ordered effects cannot be batched")

    def outcome(device):
        host = Host()

        def call(x):
            if ordered:
                return io_callback(host.refuse, SHAPE, x, ordered=True)
            return jax.pure_callback(host.refuse, SHAPE, x, vmap_method="sequential")

        f = jax.jit(lambda x: CALLS[where](call, x + 1))
        x = jax.device_put(jnp.arange(3.0), device)
        with pytest.raises(Exception) as caught:
            jax.block_until_ready(f(x))
        # the next call works
        host.seen = []
        host.refuse = host.double
        return type(caught.value), str(caught.value), len(host.seen), np.asarray(x).tolist()

    assert outcome(xla) == outcome(jax.devices("cpu")[0])


def test_a_wrong_result_of_host_code_is_an_error_as_on_the_embedded_engine(xla):
    def outcome(device, wrong):
        f = jax.jit(lambda x: jax.pure_callback(lambda x: wrong, SHAPE, x))
        with pytest.raises(Exception) as caught:
            jax.block_until_ready(f(jax.device_put(jnp.arange(3.0), device)))
        return type(caught.value), str(caught.value)

    for wrong in (np.zeros(4, np.float32), np.zeros(3, np.int32), (np.zeros(3, np.float32),) * 2, "text"):
        assert outcome(xla, wrong) == outcome(jax.devices("cpu")[0], wrong)


def test_host_code_may_compute_on_the_device(xla):
    def there(x):
        return np.asarray(jax.jit(jnp.cumsum)(jax.device_put(np.asarray(x), xla)))

    f = jax.jit(lambda x: jax.pure_callback(there, SHAPE, jnp.sin(x)) + 1)
    np.testing.assert_allclose(f(jax.device_put(jnp.ones(3), xla)), np.cumsum(np.sin(np.ones(3))) + 1, rtol=1e-6)


def test_donated_memory_is_used_and_nothing_is_left(xla):
    host = Host()

    def program(x, y):
        def body(carry, row):
            jax.debug.callback(host.note, row[0])
            return carry + row, carry

        return lax.scan(body, x, y)

    f = jax.jit(program, donate_argnums=0)
    y = jax.device_put(jnp.ones((50, 1000)), xla)
    gc.collect()
    before = xla.memory_stats()["bytes_in_use"]
    for _ in range(3):
        x = jax.device_put(jnp.zeros(1000), xla)
        last, rows = f(x, y)
        assert x.is_deleted() and float(last[0]) == 50 and float(rows[49, 999]) == 49
    peak = xla.memory_stats()["bytes_in_use"] - before
    assert peak == last.nbytes + rows.nbytes
    del x, last, rows
    gc.collect()
    assert xla.memory_stats()["bytes_in_use"] == before
    assert len(host.seen) == 150


def test_a_program_says_how_it_was_cut(xla):
    def f(x):
        jax.debug.print("{}", x)
        return lax.fori_loop(0, 3, lambda i, x: jnp.sin(x) + i, x)

    with jax.default_device(xla):
        text = jax.jit(f).lower(jnp.ones(3)).compile().as_text()
    assert text.startswith("1 segments, driven from the host") and "sine" in text


def test_a_reduction_that_calls_the_host_is_an_error_that_names_the_call(xla):
    def add(x, y):
        jax.debug.callback(print, x)
        return x + y

    f = jax.jit(lambda x: lax.reduce(x, 0.0, add, (0,)))
    with pytest.raises(NotImplementedError, match="reduction calls the host"):
        f(jax.device_put(jnp.ones(3), xla))
