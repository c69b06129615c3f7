"""JAX's answers for the samplers, recorded in `golden.json` because JAX takes minutes to compile them all.

`FERRAX_TEST_LIVE=1` asks JAX itself instead, and `FERRAX_TEST_RECORD=1` writes what it said:

    FERRAX_TEST_RECORD=1 python -m pytest tests/random
"""

import atexit
import base64
import json
import os
import pathlib

import numpy as np

from tests.support import as_numpy, dtype_name

PATH = pathlib.Path(__file__).with_name("golden.json")
RECORD = bool(os.environ.get("FERRAX_TEST_RECORD"))
LIVE = RECORD or bool(os.environ.get("FERRAX_TEST_LIVE"))
_golden = {} if RECORD or not PATH.exists() else json.loads(PATH.read_text())


def _id(name, args, kwargs, seed, raw, x64):
    shown = ", ".join(
        [f"{a.dtype}{a.tolist()}" if isinstance(a, np.ndarray) else repr(a) for a in args]
        + [f"{k}={v.dtype}{v.tolist()}" if isinstance(v, np.ndarray) else f"{k}={v!r}" for k, v in kwargs.items()]
    )
    return f"{name}({shown}) seed={seed} raw={raw} x64={x64}"


def call(module, name, args, kwargs, seed, raw):
    """The sampler of that name, with a key made from the seed."""
    key = module.random.PRNGKey(seed) if raw else module.random.key(seed)
    moved = lambda a: module.numpy.asarray(a) if isinstance(a, np.ndarray) else a
    return getattr(module.random, name)(key, *map(moved, args), **{k: moved(v) for k, v in kwargs.items()})


def expected(name, args, kwargs, seed, raw, x64):
    """``(values, dtype name)`` of JAX's result."""
    key = _id(name, args, kwargs, seed, raw, x64)
    if LIVE or key not in _golden:
        import jax

        result = call(jax, name, args, kwargs, seed, raw)
        values = as_numpy(result)
        text = base64.b64encode(values.tobytes()).decode()
        _golden[key] = [dtype_name(result), values.dtype.name, list(values.shape), text]
    dtype, stored, shape, text = _golden[key]
    return np.frombuffer(base64.b64decode(text), stored).reshape(shape), dtype


if RECORD:
    atexit.register(lambda: PATH.write_text(json.dumps(_golden, indent=0, sort_keys=True) + "\n"))
