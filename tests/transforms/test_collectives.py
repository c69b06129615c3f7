"""Operations across named mapped axes, against JAX's: values, gradients, and what each raises."""

import itertools
import math

import numpy as np
import pytest

import ferrax
import ferrax.numpy as ferrax_numpy
from tests.recorded import expected


def powers(*shape):
    """k ** 1.5 for the numbers of a row: the same bits on every machine."""
    k = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    return k * np.sqrt(k)


X, SQUARE, WIDE = powers(4, 2, 3), powers(4, 4, 2), powers(4, 8, 2)


def both(make, *args):
    """A program in both libraries, on the same numbers."""
    wanted = expected(lambda jax: make(jax, jax.numpy)(*args))
    got = make(ferrax, ferrax_numpy)(*args)
    ferrax.tree.map(same, got, wanted)


def same(got, wanted):
    assert got.dtype == wanted.dtype
    assert getattr(got, "weak_type", False) == getattr(wanted, "weak_type", False)
    np.testing.assert_allclose(got, wanted, rtol=2e-6)


#: (name, function of (lax, x), operand); every function is linear unless its name says "max" or "min".
LINEAR = [
    ("psum", lambda lax, x: lax.psum(x, "i"), X),
    ("psum tree", lambda lax, x: lax.psum({"a": x, "b": (x[0], x[1])}, "i")["b"][1], X),
    ("psum and own axis", lambda lax, x: lax.psum(x, ("i", 0)), X),
    ("psum own axis", lambda lax, x: lax.psum(x, 1), X),
    ("pmean", lambda lax, x: lax.pmean(x, "i"), X),
    ("all_gather", lambda lax, x: lax.all_gather(x, "i"), X),
    ("all_gather axis", lambda lax, x: lax.all_gather(x, "i", axis=2), X),
    ("all_gather negative axis", lambda lax, x: lax.all_gather(x, "i", axis=-1), X),
    ("all_gather tiled", lambda lax, x: lax.all_gather(x, "i", axis=1, tiled=True), X),
    ("psum_scatter", lambda lax, x: lax.psum_scatter(x, "i"), SQUARE),
    ("psum_scatter tiled", lambda lax, x: lax.psum_scatter(x, "i", scatter_dimension=0, tiled=True), WIDE),
    ("all_to_all", lambda lax, x: lax.all_to_all(x, "i", 0, 0), SQUARE),
    ("all_to_all other axis", lambda lax, x: lax.all_to_all(x, "i", 0, 1), SQUARE),
    ("all_to_all tiled", lambda lax, x: lax.all_to_all(x, "i", 0, 1, tiled=True), WIDE),
    ("all_to_all tiled same", lambda lax, x: lax.all_to_all(x, "i", 0, 0, tiled=True), WIDE),
    ("ppermute", lambda lax, x: lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 3), (3, 0)]), X),
    ("pshuffle", lambda lax, x: lax.pshuffle(x, "i", [2, 3, 0, 1]), X),
    ("pswapaxes", lambda lax, x: lax.pswapaxes(x, "i", 0), SQUARE),
]
OTHERS = [
    ("pmax", lambda lax, x: lax.pmax(x, "i"), X),
    ("pmin", lambda lax, x: lax.pmin(-x, "i"), X),
    ("axis_index", lambda lax, x: lax.axis_index("i") + 0 * x, X),
    ("axis_size", lambda lax, x: x * lax.axis_size("i"), X),
    ("psum of a constant", lambda lax, x: x / lax.psum(1, "i"), X),
    ("pmean of a constant", lambda lax, x: x * lax.pmean(2, "i"), X),
    ("what is not mapped", lambda lax, x: x + lax.psum(np.float32(2), "i") + lax.pmax(np.ones(3, "f4"), "i"), X),
    ("not mapped, gathered", lambda lax, x: lax.all_gather(np.arange(3.0, dtype="f4"), "i") + x[:1], X),
    ("not mapped, scattered", lambda lax, x: lax.psum_scatter(np.arange(4.0, dtype="f4"), "i") + x, X),
]
ids = {"ids": lambda case: case[0]}

WRAPS = {
    "vmap": lambda jax, f: jax.vmap(f, axis_name="i"),
    "vmap of jit": lambda jax, f: jax.vmap(jax.jit(f), axis_name="i"),
    "jit of vmap": lambda jax, f: jax.jit(jax.vmap(f, axis_name="i")),
    "other axis inside": lambda jax, f: jax.vmap(lambda x: jax.vmap(f)(x[None])[0], axis_name="i"),
    "other axis outside": lambda jax, f: lambda x: jax.vmap(jax.vmap(f, axis_name="i"))(x[None])[0],
    "other named axis inside": lambda jax, f: jax.vmap(
        lambda x: jax.vmap(f, axis_name="j", in_axes=-1, out_axes=-1)(x[..., None])[..., 0], axis_name="i"
    ),
    "scan": lambda jax, f: jax.vmap(lambda x: jax.lax.scan(lambda c, y: (c, f(y)), 0.0, x[None])[1][0], axis_name="i"),
    "cond": lambda jax, f: jax.vmap(lambda x: jax.lax.cond(True, f, f, x), axis_name="i"),
    "checkpoint": lambda jax, f: jax.vmap(jax.checkpoint(f), axis_name="i"),
}


#: JAX 0.10.2 fails on these itself.
FAILS_IN_JAX = {("psum_scatter", "other named axis inside"), ("all_to_all other axis", "inside")}


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("case", LINEAR + OTHERS, **ids)
def test_values(case, wrap):
    name, f, x = case
    if (name, wrap) in FAILS_IN_JAX:
        plain, wrapped = (WRAPS[w](ferrax, lambda x: f(ferrax.lax, x))(x) for w in ("vmap", wrap))
        np.testing.assert_array_equal(wrapped, plain)
        return
    both(lambda jax, _: WRAPS[wrap](jax, lambda x: f(jax.lax, x)), x)


@pytest.mark.parametrize("wrap", ["vmap", "jit of vmap", "other axis inside", "checkpoint"])
@pytest.mark.parametrize("case", LINEAR, **ids)
def test_gradients(case, wrap):
    _, f, x = case

    def make(jax, jnp):
        mapped = WRAPS[wrap](jax, lambda x: f(jax.lax, jnp.sin(x)))
        return jax.grad(lambda x: jnp.sum(mapped(x) ** 2))

    both(make, x / 20)


@pytest.mark.parametrize("inner_jit", [False, True])
@pytest.mark.parametrize("case", [c for c in LINEAR if "own axis" not in c[0]], **ids)
def test_gradients_inside(case, inner_jit):
    name, f, x = case

    def make(jax, jnp):
        def loss(x):
            return jnp.sum(f(jax.lax, jnp.sin(x)) ** 2)

        return jax.vmap(jax.grad(jax.jit(loss) if inner_jit else loss), axis_name="i")

    if (name, "inside") not in FAILS_IN_JAX:
        both(make, x / 20)

    def total(x):
        return ferrax.vmap(lambda x: ferrax_numpy.sum(f(ferrax.lax, ferrax_numpy.sin(x)) ** 2), axis_name="i")(x).sum()

    # Every row's gradient is that of the sum of all rows' losses.
    np.testing.assert_allclose(make(ferrax, ferrax_numpy)(x / 20), ferrax.grad(total)(x / 20), rtol=2e-6)


@pytest.mark.parametrize("case", LINEAR, **ids)
def test_forward_mode(case):
    _, f, x = case

    def make(jax, jnp):
        return jax.vmap(lambda x: jax.jvp(lambda x: f(jax.lax, jnp.sin(x)), (x,), (jnp.cos(x),))[1], axis_name="i")

    both(make, x / 20)


def test_two_axes():
    x = X.reshape(4, 6)

    def mapped(f):
        return lambda jax, jnp: jax.vmap(jax.vmap(lambda x: f(jax, x), axis_name="j"), axis_name="i")

    both(mapped(lambda jax, x: x / jax.lax.psum(x, ("i", "j"))), x)
    both(mapped(lambda jax, x: x - jax.lax.pmean(x, ("j", "i"))), x)
    both(mapped(lambda jax, x: jax.lax.axis_index(("i", "j"))), x)
    both(mapped(lambda jax, x: jax.lax.psum(jax.lax.psum(x, "i") * x, "j")), x)
    both(mapped(lambda jax, x: x * jax.lax.axis_size(("i", "j"))), x)
    both(mapped(lambda jax, x: jax.lax.ppermute(x, "i", [(0, 3), (1, 2), (2, 1), (3, 0)])), x)


def test_gather_over_two_axes():
    x = X.reshape(4, 6)
    out = ferrax.vmap(ferrax.vmap(lambda x: ferrax.lax.all_gather(x, ("i", "j")), axis_name="j"), axis_name="i")(x)
    np.testing.assert_array_equal(out, np.broadcast_to(x.ravel(), (4, 6, 24)))


def test_the_inner_of_two_equal_names():
    def make(jax, jnp):
        return jax.vmap(jax.vmap(lambda x: jax.lax.psum(x, "i"), axis_name="i"), axis_name="i")

    both(make, X.reshape(4, 6))


def test_rows_that_get_nothing():
    out = ferrax.vmap(lambda x: ferrax.lax.ppermute(x, "i", [(0, 2)]), axis_name="i")(X)
    np.testing.assert_array_equal(out, np.stack([0 * X[0], 0 * X[0], X[0], 0 * X[0]]))


@pytest.mark.parametrize("rows", [1, 2, 4, 6, 8])
def test_rows_sent_to_any_others(rows):
    pairs = [perm for count in range(min(rows, 4) + 1) for perm in sends(min(rows, 4), count)]
    turned = [[(i, (i + k) % rows) for i in range(rows)] for k in range(rows)]
    swapped = [[(i, i ^ k) for i in range(rows)] for k in range(rows) if all(i ^ k < rows for i in range(rows))]
    x = powers(rows, 3)
    for perm in [*pairs, *turned, *swapped, swapped[-1][1:]]:
        wanted = np.zeros_like(x)
        for source, to in perm:
            wanted[to] = x[source]
        got = ferrax.vmap(lambda x, perm=perm: ferrax.lax.ppermute(x, "i", perm), axis_name="i")(x)
        np.testing.assert_array_equal(got, wanted, err_msg=str(perm))


def sends(rows, count):
    """All ways in which so many of some rows go to others, as lists of pairs."""
    ways = itertools.product(itertools.combinations(range(rows), count), itertools.permutations(range(rows), count))
    return [list(zip(sources, to, strict=True)) for sources, to in ways]


def test_pbroadcast():
    def send(x):
        return ferrax.lax.pbroadcast(x, "i", 2)

    np.testing.assert_array_equal(ferrax.vmap(send, axis_name="i")(X), np.stack([X[2]] * 4))
    slope = ferrax.grad(lambda x: (ferrax.vmap(send, axis_name="i")(x) * X).sum())(X)
    np.testing.assert_allclose(slope, np.stack([0 * X[0], 0 * X[0], X.sum(0), 0 * X[0]]), rtol=1e-6)
    inside = ferrax.vmap(ferrax.grad(lambda x: send(x).sum()), axis_name="i")(X)
    np.testing.assert_array_equal(inside, np.stack([0 * X[0], 0 * X[0], 4 * np.ones_like(X[0]), 0 * X[0]]))


def test_programs_print_like_jax():
    def make(jax, jnp):
        texts = []

        def f(x):
            def program(x):
                return (
                    jax.lax.psum(x, "i"),
                    jax.lax.all_gather(x, "i"),
                    jax.lax.axis_index("i"),
                    jax.lax.ppermute(x, "i", [(0, 1)]),
                    jax.lax.pmax(x, "i"),
                    jax.lax.all_to_all(x, "i", 0, 0),
                    jax.lax.psum_scatter(x, "i"),
                )

            texts.append(str(jax.make_jaxpr(program)(x)))
            return x

        jax.vmap(f, axis_name="i")(SQUARE)
        return texts[0]

    assert make(ferrax, ferrax_numpy) == expected(lambda jax: make(jax, jax.numpy))


def test_a_jitted_function_under_axes_of_other_sizes():
    gather = ferrax.jit(lambda x: ferrax.lax.all_gather(x, "i"))
    for rows in (2, 3, 2):
        assert ferrax.vmap(gather, axis_name="i")(np.zeros(rows, "f4")).shape == (rows, rows)
    with pytest.raises(NameError, match="unbound axis name: i"):
        gather(np.float32(0))


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (NameError, lambda lax, x: lax.psum(x, "k")),
        (NameError, lambda lax, x: lax.axis_index("k")),
        (NameError, lambda lax, x: lax.axis_size("k")),
        (NameError, lambda lax, x: lax.all_gather(x, "k")),
        (NotImplementedError, lambda lax, x: lax.psum(x, "i", axis_index_groups=[[0, 1], [2, 3]])),
        (NotImplementedError, lambda lax, x: lax.all_gather(x, "i", axis_index_groups=[[0, 1], [2, 3]])),
        (ValueError, lambda lax, x: lax.pshuffle(x, "i", [1, 1, 2, 3])),
        (ValueError, lambda lax, x: lax.pswapaxes(x, "i", 0)),
    ],
)
def test_errors(error, call):
    raising = lambda jax: jax.vmap(lambda x: call(jax.lax, x), axis_name="i")(X)
    with pytest.raises(error):
        raising(ferrax)
    with pytest.raises(error):
        expected(raising)


@pytest.mark.parametrize("perm", [[(0, 1), (1, 1)], [(0, 1), (0, 2)], [(0, 9)]])
def test_permutations_that_are_none(perm):
    with pytest.raises(ValueError, match="ppermute"):
        ferrax.vmap(lambda x: ferrax.lax.ppermute(x, "i", perm), axis_name="i")(X)


def test_what_cannot_be_divided():
    for call in (
        lambda x: ferrax.lax.psum_scatter(x, "i"),
        lambda x: ferrax.lax.psum_scatter(x, "i", tiled=True),
        lambda x: ferrax.lax.all_to_all(x, "i", 0, 1, tiled=True),
    ):
        with pytest.raises(ValueError, match="size"):
            ferrax.vmap(call, axis_name="i")(X[:3])


def test_what_is_not_mapped_is_exchanged():
    out = ferrax.vmap(lambda x: ferrax.lax.all_to_all(np.arange(4.0), "i", 0, 0), axis_name="i")(X)
    np.testing.assert_array_equal(out, np.repeat(np.arange(4.0)[:, None], 4, 1))


def test_no_derivative_of_maxima():
    raising = lambda jax: jax.vmap(jax.grad(lambda x: jax.lax.pmax(x, "i").sum()), axis_name="i")(X)
    with pytest.raises(NotImplementedError):
        raising(ferrax)
    with pytest.raises(NotImplementedError):
        expected(raising)


def test_a_process_has_names_of_axes_without_end():
    for i in range(5000):
        name = f"axis {i}"
        mapped = ferrax.vmap(lambda x, name=name: ferrax.lax.axis_size(name) * x, axis_name=name)(np.ones(2))
    np.testing.assert_array_equal(mapped, [2, 2])
