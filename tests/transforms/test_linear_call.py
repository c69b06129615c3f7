"""`linear_call`: functions with transposes that are given, under every transformation."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax.custom_derivatives import linear_call


def scaled(r, x):
    """x / r, with a transpose that is three times the true one: what uses it shows."""
    return linear_call(lambda r, x: {"y": x["a"] / r}, lambda r, ct: {"a": 3 * ct["y"] / r}, r, {"a": x})["y"]


XS, RS = jnp.arange(3.0), jnp.arange(1.0, 4.0)


@pytest.mark.parametrize(
    "got, wanted",
    [
        (lambda: scaled(2.0, 3.0), 1.5),
        (lambda: ferrax.jvp(lambda x: scaled(2.0, x), (3.0,), (5.0,)), (1.5, 2.5)),
        (lambda: ferrax.linearize(lambda x: scaled(2.0, x), 3.0)[1](5.0), 2.5),
        (lambda: ferrax.grad(scaled, 1)(2.0, 3.0), 1.5),
        (lambda: ferrax.jit(ferrax.grad(scaled, 1))(2.0, 3.0), 1.5),
        (lambda: ferrax.grad(ferrax.jit(scaled), 1)(2.0, 3.0), 1.5),
        (lambda: ferrax.linear_transpose(lambda x: scaled(2.0, x), 1.0)(5.0), (7.5,)),
        (lambda: ferrax.linear_transpose(ferrax.jit(lambda x: scaled(2.0, x)), 1.0)(5.0), (7.5,)),
        (lambda: ferrax.vmap(scaled)(RS, XS), XS / RS),
        (lambda: ferrax.vmap(scaled, (None, 0))(2.0, XS), XS / 2),
        (lambda: ferrax.vmap(scaled, (0, None))(RS, 6.0), 6 / RS),
        (lambda: ferrax.vmap(ferrax.grad(scaled, 1))(RS, XS), 3 / RS),
        (lambda: ferrax.grad(lambda x: ferrax.vmap(scaled)(RS, x).sum())(XS), 3 / RS),
        # one operand for every row: the rows' cotangents add up
        (lambda: ferrax.grad(lambda x: ferrax.vmap(scaled, (0, None))(RS, x).sum())(6.0), 3 * (1 + 1 / 2 + 1 / 3)),
        (lambda: ferrax.grad(lambda x: ferrax.lax.scan(lambda c, r: (scaled(r, c), None), x, RS)[0])(6.0), 27 / 6),
        (lambda: ferrax.jacrev(lambda x: ferrax.jvp(lambda x: scaled(2.0, x) ** 2, (x,), (1.0,))[1])(3.0), 1.5),
    ],
)
@pytest.mark.parametrize("jit", [False, True])
def test_the_transpose_that_is_given_is_used(got, wanted, jit):
    found = (ferrax.jit(got) if jit else got)()
    ferrax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), found, wanted)


def test_transposing_twice_gives_the_function_back():
    constant = lambda x: linear_call(lambda _, x: x, lambda _, ct: 7.0, (), x)
    transposed = lambda f: lambda y: ferrax.linear_transpose(f, 1.0)(y)[0]
    values = []
    for _ in range(4):
        values.append(float(constant(1.0)))
        constant = transposed(constant)
    assert values == [1.0, 7.0, 1.0, 7.0]


def test_functions_that_are_each_others_transposes():
    def forward(x):
        return linear_call(lambda _, x: 2 * x, lambda _, ct: backward(ct), (), x)

    def backward(ct):
        return linear_call(lambda _, ct: 5 * ct, lambda _, x: forward(x), (), ct)

    assert ferrax.grad(forward)(1.0) == 5 and ferrax.grad(backward)(1.0) == 2


def test_what_the_function_closes_over():
    def f(c, x):
        return linear_call(lambda _, x: c * x, lambda _, ct: 9.0 * ct, (), x)

    assert ferrax.jit(f)(2.0, 3.0) == 6
    np.testing.assert_array_equal(ferrax.vmap(f)(RS, XS), RS * XS)
    assert ferrax.jit(ferrax.grad(f, 1))(2.0, 3.0) == 9
    with pytest.raises(NotImplementedError, match="closes over"):
        ferrax.grad(f)(2.0, 3.0)


def test_errors():
    for transform in (lambda f: ferrax.grad(f)(2.0, 3.0), lambda f: ferrax.jvp(f, (2.0, 3.0), (1.0, 1.0))):
        with pytest.raises(NotImplementedError, match="no derivative with respect to its residual_args"):
            transform(scaled)
    uneven = lambda x: linear_call(lambda _, x: x, lambda _, ct: (ct, ct), (), x)
    assert uneven(2.0) == 2
    with pytest.raises(TypeError, match="transpose output pytree structure must match that of linear inputs"):
        ferrax.grad(uneven)(2.0)
