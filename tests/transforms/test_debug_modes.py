"""Debug modes: NaNs named with operation, line, loop step and operands; indices checked; the other settings."""

import jax as reference
import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp


def bad(x):
    return jnp.log(x - 2.0)


HERE = f"{__file__}:{bad.__code__.co_firstlineno + 1} (bad)"


def text_of(call):
    with ferrax.debug_nans(), pytest.raises(FloatingPointError) as info:
        call()
    return str(info.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda: bad(1.0),
        lambda: ferrax.jit(bad)(1.0),
        lambda: ferrax.jit(lambda x: ferrax.jit(bad)(x) * 2)(1.0),
        lambda: ferrax.grad(bad)(1.0),
        lambda: ferrax.value_and_grad(ferrax.jit(bad))(1.0),
        lambda: ferrax.vmap(bad)(jnp.array([3.0, 1.0])),
        lambda: ferrax.jit(ferrax.vmap(ferrax.value_and_grad(bad)))(jnp.array([3.0, 1.0])),
        lambda: ferrax.checkpoint(bad)(1.0),
        lambda: ferrax.lax.cond(True, bad, lambda x: x, 1.0),
        lambda: ferrax.jvp(bad, (1.0,), (1.0,)),
    ],
)
def test_the_operation_and_its_line(call):
    text = text_of(call)
    assert text.startswith(f"invalid value (nan) encountered in log at {HERE}")
    assert "its operands are f32" in text
    assert "-1" in text


@pytest.mark.parametrize("jit", [False, True])
def test_the_iteration(jit):
    def scanned(xs):
        return ferrax.lax.scan(lambda c, x: (c + bad(x), c), 0.0, xs)

    def repeated(x):
        return ferrax.lax.while_loop(lambda s: s[0] < 9, lambda s: (s[0] + 1, bad(s[1])), (0, x))

    wrap = ferrax.jit if jit else (lambda f: f)
    assert ", in iteration 2 of scan: " in text_of(lambda: wrap(scanned)(jnp.array([5.0, 4.0, 1.0, 7.0])))
    assert ", in iteration 1 of while: " in text_of(lambda: wrap(repeated)(4.0))
    assert ", in iteration 2 of scan: " in text_of(
        lambda: wrap(ferrax.value_and_grad(lambda x: scanned(x)[0]))(jnp.array([5.0, 4.0, 1.0, 7.0]))
    )

    def nested(xs):
        return ferrax.lax.map(lambda row: scanned(row)[0], xs)

    text = text_of(lambda: wrap(nested)(jnp.array([[5.0, 4.0], [4.0, 1.0]])))
    assert ", in iteration 1 of scan, in iteration 1 of scan: " in text


def test_nan_that_was_given():
    text = text_of(lambda: ferrax.jit(lambda x: jnp.sin(x))(np.float32("nan")))
    assert "holds nan already" in text


def test_infinities():
    with ferrax.debug_infs(), pytest.raises(FloatingPointError, match=r"\(inf\) encountered in div"):
        ferrax.jit(lambda x: 1.0 / x)(0.0)
    with ferrax.debug_nans():
        assert ferrax.jit(lambda x: 1.0 / x)(0.0) == np.inf


def test_what_is_not_a_result_is_not_reported():
    """As in JAX: a jitted function's results are looked at, not what it throws away."""

    def f(jax):
        return jax.jit(lambda x: jax.numpy.where(x > 2, jax.numpy.log(x - 2), 0.0))(1.0)

    for jax in (reference, ferrax):
        with jax.debug_nans(True):
            assert f(jax) == 0.0


def test_prints_are_not_repeated(capsys):
    def f(x):
        ferrax.debug.print("once")
        return bad(x)

    text_of(lambda: ferrax.jit(f)(1.0))
    assert capsys.readouterr().out == "once\n"


def test_donated_arguments_survive_the_search():
    x = jnp.full(3, 1.0)
    text = text_of(lambda: ferrax.jit(bad, donate_argnums=0)(x))
    assert "log" in text


# ---- indices ---------------------------------------------------------------------------------------------------------


def index_error(call):
    with ferrax.check_indices(), pytest.raises(IndexError) as info:
        call()
    return str(info.value)


X = np.arange(6.0, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("call", "value", "axis", "size"),
    [
        (lambda x: x[5], 5, 0, 2),
        (lambda x: x[0, -4], -4, 1, 3),
        (lambda x: x.at[2].set(0.0), 2, 0, 2),
        (lambda x: x[np.array([0, 7])], 7, 0, 2),
        (lambda x: x.at[:, jnp.array([-5])].add(1.0), -5, 1, 3),
    ],
)
def test_static_indices(call, value, axis, size):
    x = jnp.asarray(X)
    for run in (lambda: call(x), lambda: ferrax.jit(call)(x), lambda: ferrax.jit(ferrax.vmap(lambda _: call(x)))(X)):
        assert f"index {value} is out of bounds for axis {axis} with size {size}" in index_error(run)


def read(x, i):
    return x[i]


def test_traced_indices():
    x = jnp.asarray(X)
    place = f"at {__file__}:{read.__code__.co_firstlineno + 1} (read)"
    rows = jnp.array([0, 1, 2])
    for run in (
        lambda: ferrax.jit(read)(x, 2),
        lambda: ferrax.vmap(read, (None, 0))(x, rows),
        lambda: ferrax.jit(ferrax.vmap(read, (None, 0)))(x, rows),
        lambda: ferrax.grad(lambda x: ferrax.jit(read)(x, 2).sum())(x),
        lambda: ferrax.lax.scan(lambda c, i: (c, read(x, i)), 0, rows),
        lambda: ferrax.jit(read)(x, rows),
    ):
        text = index_error(run)
        assert "index 2 is out of bounds for axis 0 with size 2" in text
        assert place in text


def test_what_is_in_range_or_has_a_mode_passes():
    x = jnp.asarray(X)
    with ferrax.check_indices():
        np.testing.assert_array_equal(ferrax.jit(read)(x, -2), X[0])
        np.testing.assert_array_equal(ferrax.jit(lambda x, i: x.at[i].get(mode="clip"))(x, 9), X[1])
        np.testing.assert_array_equal(ferrax.jit(lambda x, i: x.at[i].set(0.0, mode="drop"))(x, 9), X)
    np.testing.assert_array_equal(ferrax.jit(read)(x, 9), X[1])
    np.testing.assert_array_equal(x[9], X[1])


@pytest.mark.parametrize("jit", [lambda f: f, ferrax.jit])
@pytest.mark.parametrize("i", [9, -9, np.int32(9)])
def test_modes_are_honoured(i, jit):
    """An index with a mode means the same under the check, static or traced."""
    for call in (
        *[lambda x, i, m=m: x.at[i].get(mode=m) for m in ("clip", "fill", "drop")],
        *[lambda x, i, m=m: x.at[i].set(7.0, mode=m) for m in ("drop", "clip")],
        *[lambda x, i, m=m: jnp.take(x, i, axis=0, mode=m) for m in ("clip", "fill", "wrap")],
        *[lambda x, i, m=m: jnp.take_along_axis(x, jnp.full((1, 3), i), 0, mode=m) for m in ("clip", "fill")],
    ):
        x = jnp.asarray(X)
        for f in (lambda x, call=call: call(x, i), call):
            args = (x,) if f is not call else (x, i)
            want = jit(f)(*args)
            with ferrax.check_indices():
                np.testing.assert_array_equal(jit(f)(*args), want)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, i: x[i],
        lambda x, i: x.at[i].get(),
        lambda x, i: x.at[i].add(1.0),
        lambda x, i: jnp.take(x, i, axis=0),
        lambda x, i: jnp.take_along_axis(x, jnp.full((1, 3), i), 0),
        lambda x, i: ferrax.lax.dynamic_slice(x, (i, 0), (1, 3)),
        lambda x, i: ferrax.lax.dynamic_slice_in_dim(x, i, 1),
        lambda x, i: ferrax.lax.dynamic_index_in_dim(x, i),
        lambda x, i: ferrax.lax.dynamic_update_slice(x, x[:1], (i, 0)),
        lambda x, i: ferrax.lax.dynamic_update_index_in_dim(x, x[0], i, 0),
    ],
)
def test_every_way_to_index_is_checked(call):
    x = jnp.asarray(X)
    for i in (2, -3):
        for run in (
            lambda i=i: call(x, i),
            lambda i=i: ferrax.jit(lambda x: call(x, i))(x),
            lambda i=i: ferrax.jit(call)(x, i),
        ):
            run()  # as in JAX, clamped, dropped or filled by default
            assert f"index {i} is out of bounds for axis 0 with size 2" in index_error(run)
    with ferrax.check_indices():
        for i in (0, 1, -2):
            call(x, i), ferrax.jit(call)(x, i)


def test_windows_that_reach_over_the_end():
    x = jnp.arange(5)
    with ferrax.check_indices(), pytest.raises(IndexError, match=r"index 4 \(of a slice of size 2\) is out of bounds"):
        ferrax.lax.dynamic_slice(x, (4,), (2,))
    with ferrax.check_indices():
        np.testing.assert_array_equal(ferrax.lax.dynamic_slice(x, (3,), (2,)), [3, 4])


# ---- the other settings ----------------------------------------------------------------------------------------------


def test_rank_promotion():
    for jax in (reference, ferrax):
        with jax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank_promotion"):
            jax.numpy.ones((2, 3)) + jax.numpy.ones(3)
        with jax.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="rank promotion"):
            jax.jit(lambda x: x + jax.numpy.ones(3))(jax.numpy.ones((2, 3)))


def test_dtype_promotion():
    for jax in (reference, ferrax):
        with jax.numpy_dtype_promotion("strict"):
            with pytest.raises(jax.dtypes.TypePromotionError if jax is ferrax else Exception, match="promotion"):
                jax.numpy.float32(1) + jax.numpy.int32(1)
            assert jax.numpy.float32(1) + 1 == 2


def test_disable_jit():
    for jax in (reference, ferrax):
        seen = []

        @jax.jit
        def f(x, seen=seen):
            seen.append(float(x))
            return x * 2

        with jax.disable_jit():
            assert f(3.0) == 6.0
        assert seen == [3.0]


def test_settings_by_update():
    for name, wrong in (("jax_debug_nans", bad), ("jax_debug_infs", lambda x: 1.0 / (x - 1.0))):
        ferrax.config.update(name, True)
        try:
            with pytest.raises(FloatingPointError):
                ferrax.jit(wrong)(1.0)
        finally:
            ferrax.config.update(name, False)
        ferrax.jit(wrong)(1.0)
