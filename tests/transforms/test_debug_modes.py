"""Debug modes: NaNs named with operation, line, loop step and operands; indices checked; the other settings."""

import jax as reference
import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax.scipy.special import logsumexp


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
    assert ", in iteration 1 of while_loop: " in text_of(lambda: wrap(repeated)(4.0))
    assert ", in iteration 2 of scan: " in text_of(
        lambda: wrap(ferrax.value_and_grad(lambda x: scanned(x)[0]))(jnp.array([5.0, 4.0, 1.0, 7.0]))
    )

    def nested(xs):
        return ferrax.lax.map(lambda row: scanned(row)[0], xs)

    text = text_of(lambda: wrap(nested)(jnp.array([[5.0, 4.0], [4.0, 1.0]])))
    assert ", in iteration 1 of scan, in iteration 1 of map: " in text


A = np.ones((4, 3), np.float32)
A[3, 2] = -1.0


@pytest.mark.parametrize("jit", [False, True])
def test_the_element(jit):
    wrap = ferrax.jit if jit else (lambda f: f)
    text = text_of(lambda: wrap(jnp.log)(A))
    assert ": log of -1.0 at index (3, 2) gives nan; its result has type f32[4,3]" in text
    text = text_of(lambda: wrap(lambda x, y: x / y)(jnp.zeros(3), jnp.array([1.0, 0.0, 1.0])))
    assert "div of 0.0 and 0.0 at index (1,) gives nan" in text
    spoilt = jnp.array([[1.0, 2.0], [np.inf, -np.inf]])
    text = text_of(lambda: wrap(lambda x: x.sum(axis=1))(spoilt))
    assert "reduce_sum" in text and "is nan at index (1,), its operands are f32[2,2] = [1.0 2.0 inf -inf]" in text
    text = text_of(lambda: wrap(lambda x, y: x @ y)(jnp.array([[1.0, np.nan]]), jnp.ones((2, 2))))
    assert "nan at index (0, 0)" in text and "(holds nan already, first at index (0, 1))" in text
    with ferrax.debug_infs(), pytest.raises(FloatingPointError, match=r"\(inf\).*div of 1.0 and 0.0 at index \(1,\)"):
        wrap(lambda x: 1 / x)(jnp.array([1.0, 0.0]))


@pytest.mark.parametrize("jit", [False, True])
def test_loops_have_their_names(jit):
    wrap = ferrax.jit if jit else (lambda f: f)

    def counted(n):
        return ferrax.lax.fori_loop(5, n, lambda i, c: c + bad(8.5 - i), 0.0)

    # the bound is static at once, and traced under jit
    assert ", in iteration 2 of fori_loop (i = 7): " in text_of(lambda: wrap(counted)(9))
    assert ", in iteration 2 of fori_loop (i = 7): " in text_of(lambda: wrap(lambda: counted(9))())
    assert ", in iteration 3 of map: " in text_of(lambda: wrap(lambda x: ferrax.lax.map(lambda r: bad(r + 2), x))(A))

    def nested():
        return ferrax.lax.fori_loop(0, 4, lambda i, c: ferrax.lax.scan(lambda d, x: (bad(x - i), None), c, xs)[0], 0.0)

    xs = jnp.array([6.0, 5.0, 4.5])
    assert ", in iteration 2 of scan, in iteration 3 of fori_loop: " in text_of(lambda: wrap(nested)())


@pytest.mark.parametrize(
    "wrap",
    [
        lambda f: ferrax.vmap(f, axis_name="i"),
        lambda f: ferrax.jit(ferrax.vmap(f, axis_name="i")),
        lambda f: ferrax.vmap(ferrax.jit(f), axis_name="i"),
        lambda f: ferrax.grad(lambda x: ferrax.vmap(f, axis_name="i")(x).sum()),
        lambda f: ferrax.jit(ferrax.vmap(ferrax.value_and_grad(f), axis_name="i")),
    ],
)
def test_the_row(wrap):
    text = text_of(lambda: wrap(bad)(jnp.full(8, 3.0).at[5].set(1.0)))
    assert ", in row 5 of the vmap axis 'i' of size 8: log of -1.0 gives nan; its result has type f32[]" in text


def test_rows_of_several_axes():
    def inner(x):
        return ferrax.vmap(ferrax.vmap(bad, in_axes=1), axis_name="outer")(x)

    x = jnp.full((2, 3, 8), 3.0).at[1, 2, 5].set(1.0)
    for f in (inner, ferrax.jit(inner)):
        text = text_of(lambda f=f: f(x))
        assert ", in row 1 of the vmap axis 'outer' of size 2, in row 5 of the vmap axis of size 8: " in text
        assert "log of -1.0 at index (2,)" in text
    text = text_of(lambda: ferrax.vmap(lambda r: ferrax.lax.scan(lambda c, v: (bad(v), None), 0.0, r)[0])(A + 2))
    assert ", in iteration 2 of scan, in row 3 of the vmap axis of size 4: " in text


def root(x):
    return jnp.where(x > 0, jnp.sqrt(x), 0.0)


ROOT = f"{__file__}:{root.__code__.co_firstlineno + 1} (root)"
ZEROS = np.ones(8, np.float32)
ZEROS[5] = 0.0


@pytest.mark.parametrize(
    ("call", "where"),
    [
        (lambda: ferrax.grad(root)(0.0), ""),
        (lambda: ferrax.jit(ferrax.grad(root))(0.0), ""),
        (lambda: ferrax.grad(ferrax.jit(root))(0.0), ""),
        (lambda: ferrax.vmap(ferrax.grad(root))(ZEROS), ", in row 5 of the vmap axis of size 8"),
        (lambda: ferrax.jit(ferrax.vmap(ferrax.grad(root)))(ZEROS), ", in row 5 of the vmap axis of size 8"),
        (lambda: ferrax.grad(lambda x: ferrax.vmap(root)(x).sum())(ZEROS), ", in row 5 of the vmap axis of size 8"),
        (
            lambda: ferrax.grad(lambda x: ferrax.lax.scan(lambda c, v: (c + root(v), None), 0.0, x)[0])(ZEROS),
            ", in iteration 5 of scan",
        ),
        (
            lambda: ferrax.jit(
                ferrax.grad(lambda x: ferrax.lax.fori_loop(0, 4, lambda i, c: c + root(x * (i - 2) ** 2), 0.0))
            )(1.0),
            ", in iteration 2 of fori_loop",
        ),
        (
            lambda: ferrax.grad(
                lambda x: ferrax.lax.while_loop(
                    lambda s: s[0] < 4, lambda s: (s[0] + 1, s[1] + root(x * (s[0] - 2) ** 2)), (0, 0.0)
                )[1]
            )(1.0),
            ", in iteration 2 of while_loop",
        ),
    ],
)
def test_the_backward_pass(call, where):
    text = text_of(call)
    assert text.startswith(f"invalid value (nan) encountered in mul, in the backward pass of sqrt at {ROOT}{where}: ")
    assert "mul of 0.0 and inf gives nan" in text or "mul of inf and 0.0 gives nan" in text


def test_the_derivative():
    with (
        ferrax.debug_infs(),
        pytest.raises(FloatingPointError, match=r"in the derivative of sqrt at .*div of 0.5 and 0.0"),
    ):
        ferrax.grad(jnp.sqrt)(0.0)


def test_programs_of_one_structure_have_their_own_lines():
    def first(x):
        return jnp.log(x)

    def second(x):
        return jnp.log(x)

    for f in (first, second, first):
        text = text_of(
            lambda f=f: ferrax.grad(lambda x: ferrax.lax.scan(lambda c, v: (c + f(v), None), 0.0, x)[0])(A[3])
        )
        assert f":{f.__code__.co_firstlineno + 1} (" in text


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


N = np.array([1.0, np.nan, 3.0], np.float32)
I = np.array([1.0, np.inf, -np.inf], np.float32)


@pytest.mark.parametrize(
    "call",
    [
        lambda: jnp.isclose(I, I[::-1]),
        lambda: jnp.allclose(I, I),
        lambda: jnp.nanquantile(N, 0.5),
        lambda: jnp.nanmedian(N),
        lambda: (jnp.nanmax(N), jnp.nanmin(N), jnp.nanmean(N), jnp.nanvar(N), jnp.nansum(N)),
        lambda: jnp.nan_to_num(N),
        lambda: (jnp.isinf(N), jnp.hypot(I, I), jnp.logaddexp(I, I[::-1]), jnp.asarray(I) // 0.0),
        lambda: logsumexp(I),
        lambda: logsumexp(np.ones(3, np.float32), b=-np.ones(3, np.float32)),
        lambda: ferrax.vmap(lambda x: jnp.isclose(x, I))(I),
        lambda: ferrax.jvp(jnp.nanmean, (N,), (np.ones(3, np.float32),)),
    ],
)
def test_what_the_library_throws_away_is_not_reported(call):
    with ferrax.debug_nans():
        call()


def test_results_of_the_library_are_reported():
    everything = np.full(3, np.nan, np.float32)
    for call in (
        lambda: jnp.nanmean(everything),
        lambda: ferrax.vmap(lambda x: jnp.nanmean(x * everything))(I),
        lambda: ferrax.jvp(jnp.nanmean, (everything,), (I,)),
        # a function of the user's is his own
        lambda: jnp.apply_along_axis(lambda row: jnp.where(row < 0, 0.0, jnp.log(row - 4.0)) > 0, 0, np.ones(3)),
    ):
        text_of(call)


def test_constants_of_branches():
    def chosen(x):
        return ferrax.lax.cond(x == 1, lambda _: np.nan, lambda _: 2.0, None)

    for call in (chosen, ferrax.jit(chosen)):
        with ferrax.debug_nans():
            assert call(2) == 2.0
        assert text_of(lambda call=call: call(1)).startswith(f"invalid value (nan) encountered in cond at {__file__}")
    text = text_of(lambda: ferrax.lax.scan(lambda c, x: (c, np.nan), 0.0, N))
    assert "encountered in scan" in text


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


def test_debug_print_shows_arrays(capfd):
    """Values in containers show as arrays, and those that stand alone as numbers."""
    text = []
    for jax in (reference, ferrax):
        x = jax.numpy.arange(2.0)

        @jax.jit
        def f(x, jax=jax):
            jax.debug.print("{} {t} {n:.2f}", {"a": x, "b": [x[0], "text"]}, t=(x,), n=x[1] / 3)

        f(x)
        jax.effects_barrier()
        text.append(capfd.readouterr().out)
    assert text[0] == text[1]


def test_debug_print_names_what_it_does_not_use():
    for args in ((1.5,), (1.5, "b")):
        texts = []
        for jax in (reference, ferrax):
            with pytest.raises(ValueError) as info:
                jax.debug.print("nothing", *args)
            texts.append(str(info.value))
        assert texts[0] == texts[1]
