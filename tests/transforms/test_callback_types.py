"""Types of what callbacks give, against JAX's."""

import importlib

import numpy as np
import pytest

import ferrax


def types(jax):
    io_callback = importlib.import_module(f"{jax.__name__}.experimental").io_callback
    weak = jax.ShapeDtypeStruct((), np.float32, weak_type=True)
    x = jax.numpy.asarray(1.0)
    assert x.weak_type
    return [
        str(a)
        for call in (jax.pure_callback, io_callback)
        for a in (
            call(lambda v: v, weak, x).aval,
            call(lambda v: v, x, x).aval,
            jax.jit(lambda x, call=call: call(lambda v: v, x, x))(1.0).aval,
            jax.make_jaxpr(lambda x, call=call: call(lambda v: v, x, x))(1.0),
            jax.eval_shape(lambda x, call=call: call(lambda v: v, [weak, x], x), x),
        )
        if "pure_callback" not in str(a) and "io_callback" not in str(a)
    ]


def test_results_are_strong():
    assert types(ferrax) == types(pytest.importorskip("jax"))
