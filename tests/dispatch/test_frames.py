"""No Python frame of ferrax's runs in eager operations, cached jitted calls, tree functions and gradients (P1)."""

import os
import sys

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import _ferrax

FOLDER = os.path.dirname(ferrax.__file__) + os.sep
X = jnp.arange(10, dtype=jnp.float32)
Y = X + 1
TREE = {"layers": [{"w": X, "b": Y}, {"w": Y, "b": X}], "step": jnp.int32(0)}
PLUS = ferrax.jit(lambda x, y=1.0: x + y)
PLUS_TREE = ferrax.jit(lambda tree: ferrax.tree.map(lambda v: v + 1, tree))
POWER = ferrax.jit(lambda x, n: x**n, static_argnums=1)


@pytest.fixture(autouse=True, scope="module")
def without_registered_types():
    """Once a program has registered types with `vmap`, calls of it ask Python for these: examples in docstrings do."""
    _ferrax.use_vmappable_types(False)


def loss(x):
    return jnp.sin(x[3]) * x[1]


GRAD = ferrax.grad(loss)
VALUE_AND_GRAD = ferrax.value_and_grad(loss)
VMAP = ferrax.vmap(lambda x: jnp.sin(x) * 2)

CALLS = {
    "x + y": lambda: X + Y,
    "x + 1.0": lambda: X + 1.0,
    "2 * x": lambda: 2 * X,
    "x > y": lambda: X > Y,
    "-x": lambda: -X,
    "x ** 2": lambda: X**2,
    "jnp.sin": lambda: jnp.sin(X),
    "jnp.add": lambda: jnp.add(X, Y),
    "jnp.where": lambda: jnp.where(X > 3, X, Y),
    "x[3]": lambda: X[3],
    "x[2:5]": lambda: X[2:5],
    "x.at[3].set": lambda: X.at[3].set(1.0),
    "float(x[0])": lambda: float(X[0]),
    "jitted call": lambda: PLUS(X),
    "jitted call with keyword": lambda: PLUS(X, y=Y),
    "jitted call of a tree": lambda: PLUS_TREE(TREE),
    "jitted call with static": lambda: POWER(X, 2),
    "tree.map": lambda: ferrax.tree.map(np.shape, TREE),
    "tree.leaves": lambda: ferrax.tree.leaves(TREE),
    "tree_util.tree_flatten": lambda: ferrax.tree_util.tree_flatten(TREE),
    "grad": lambda: GRAD(X),
    "value_and_grad": lambda: VALUE_AND_GRAD(X),
    "vmap": lambda: VMAP(X),
}


def frames(call):
    """The functions of ferrax's that ran as Python code in a call."""
    call()
    seen = []

    def profile(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(FOLDER):
            seen.append(frame.f_code.co_qualname)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen


@pytest.mark.parametrize("name", CALLS)
def test_no_frame(name):
    assert frames(CALLS[name]) == []


def test_frames_are_seen():
    assert "device_get" in frames(lambda: ferrax.device_get(X))
