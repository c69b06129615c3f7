"""Operators do not take Python's containers: they are neither compared by identity nor repeated."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp

OPERATORS = [
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow),
    *(operator.matmul, operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, divmod),
    *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
]
CONTAINERS = [[1, 2], (1, 2), {"a": 1}, {1, 2}, [], [[1, 2]]]
SYMBOLS = {operator.eq: "==", operator.ne: "!=", operator.add: r"\+", operator.mul: r"\*", operator.truediv: "/"}


@pytest.mark.parametrize("container", CONTAINERS, ids=repr)
@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
@pytest.mark.parametrize("shape", [(), (2,)])
def test_containers_are_refused(op, container, shape):
    x = jnp.ones(shape, jnp.int32)
    text = rf"unsupported operand type\(s\) for {SYMBOLS[op]}: '" if op in SYMBOLS else None
    for call in (lambda v: op(v, container), lambda v: op(container, v)):
        with pytest.raises(TypeError, match=text):
            call(x)
        with pytest.raises(TypeError, match=text):
            jax.jit(call)(x)
        with pytest.raises(TypeError, match=text):
            jax.vmap(call)(x[None])


@pytest.mark.parametrize(
    "other", ["a text", None, object(), ..., slice(None), b"bytes"], ids=lambda v: type(v).__name__
)
def test_other_objects_are_different(other):
    for x in (jnp.ones(2), jnp.int32(3)):
        assert (x == other) is False and (x != other) is True and (other == x) is False
    with pytest.raises(TypeError):
        jnp.ones(2) < other


def test_arrays_of_numpy_and_numbers_are_operands():
    x = jnp.arange(3)
    assert (x == np.array([0, 1, 5])).tolist() == [True, True, False]
    assert (np.array([0, 1, 5]) != x).tolist() == [False, False, True]
    assert (x == 1).tolist() == [False, True, False]
