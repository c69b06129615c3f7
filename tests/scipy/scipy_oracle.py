"""Expressions over `ferrax.scipy` and `jax.scipy`, evaluated with both and compared (see `tests/numpy/oracle.py`)."""

import importlib
import warnings

import numpy as np

import ferrax
from tests.numpy import oracle
from tests.recorded import expected

cases = oracle.cases


def result(package, text, submodule, operands):
    """The value of an expression over `sp`, the submodule, and named operands."""
    module = importlib.import_module(f"{package.__name__}.scipy.{submodule}")
    names = {
        "sp": module, "jnp": package.numpy, "lax": package.lax, "np": np, "jit": package.jit, "vmap": package.vmap,
        "grad": package.grad, "jvp": package.jvp,
    }  # fmt: skip
    names.update({name: package.numpy.asarray(x) for name, x in operands.items()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(text, names)


def compare(text, submodule, operands, rtol=2e-5):
    """Holds ferrax's value or error of an expression against JAX's."""
    kind, theirs = oracle.outcome(expected, result, text, submodule, operands)
    mine_kind, mine = oracle.outcome(result, ferrax, text, submodule, operands)
    if kind == "error":
        assert mine_kind == "error", f"{text}: {mine!r} instead of {type(theirs).__name__}: {theirs}"
        wanted = {c.__name__ for c in type(theirs).__mro__}
        assert type(mine).__name__ in wanted, f"{text}: {mine!r} instead of {theirs!r}"
        return
    if mine_kind == "error":
        raise AssertionError(f"{text}: {type(mine).__name__}: {mine}") from mine
    oracle.assert_same(mine, theirs, text, rtol)
