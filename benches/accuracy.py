"""Errors of the elementwise functions in units in the last place: ferrax, and JAX beside it.

    python benches/accuracy.py            # the table of docs/numerics.md

Float32 functions are held against float64 ones; float64 functions against 80-bit ones where the platform's
`long double` has them, else against the float64 ones of the C library or SciPy, whose own error is then part of the
figure.
"""

import argparse
import importlib
import math

import numpy as np
from scipy import special

COUNT = 200_000


def _lower(f):
    """SciPy's functions take no long double: they are asked in float64."""
    return lambda x: f(x.astype(np.float64))


def _scalar(f):
    """A function of the C library, called for each number."""
    return lambda x: np.array([f(float(v)) for v in x])


# name -> (reference, parts of the domain as (low, high, logarithmic))
FUNCTIONS = {
    "exp": (np.exp, [(-80, 80, False)]),
    "exp2": (np.exp2, [(-120, 120, False)]),
    "expm1": (np.expm1, [(-10, 80, False), (1e-20, 1, True)]),
    "log": (np.log, [(1e-30, 1e30, True), (0.5, 2, False)]),
    "log1p": (np.log1p, [(-0.99, 5, False), (1e-20, 1e20, True)]),
    "sin": (np.sin, [(-10, 10, False), (1e-5, 1e5, True)]),
    "cos": (np.cos, [(-10, 10, False), (1e-5, 1e5, True)]),
    "tan": (np.tan, [(-10, 10, False), (1e-5, 1e5, True)]),
    "asin": (np.arcsin, [(-1, 1, False), (1e-10, 1, True)]),
    "acos": (np.arccos, [(-1, 1, False)]),
    "atan": (np.arctan, [(-5, 5, False), (1e-10, 1e10, True)]),
    "sinh": (np.sinh, [(-80, 80, False), (1e-10, 10, True)]),
    "cosh": (np.cosh, [(-80, 80, False)]),
    "tanh": (np.tanh, [(-10, 10, False), (1e-10, 10, True)]),
    "asinh": (np.arcsinh, [(-10, 10, False), (1e-10, 1e10, True)]),
    "acosh": (np.arccosh, [(1, 10, False), (1, 1e10, True)]),
    "atanh": (np.arctanh, [(-0.999, 0.999, False), (1e-10, 0.99, True)]),
    "logistic": (lambda x: 1 / (1 + np.exp(-x)), [(-80, 80, False)]),
    "sqrt": (np.sqrt, [(1e-30, 1e30, True)]),
    "rsqrt": (lambda x: 1 / np.sqrt(x), [(1e-30, 1e30, True)]),
    "cbrt": (np.cbrt, [(1e-30, 1e30, True), (-5, 5, False)]),
    "erf": (_scalar(math.erf), [(-4, 4, False), (1e-10, 4, True)]),
    "erfc": (_scalar(math.erfc), [(-4, 9, False)]),
    "erf_inv": (_lower(special.erfinv), [(-1, 1, False), (1e-10, 0.999, True)]),
    "lgamma": (_lower(special.gammaln), [(3, 100, False), (1e-5, 0.9, True)]),
    "digamma": (_lower(special.digamma), [(2, 100, False), (1e-5, 1, True)]),
}
BINARY = {
    "pow": (np.power, [(0.01, 50, True), (-15, 15, False)]),
    "atan2": (np.arctan2, [(-5, 5, False), (-5, 5, False)]),
}
DTYPES = ("float32", "float64")


def points(parts, dtype, rng):
    """Numbers of a dtype over the parts of a domain."""
    out = []
    for low, high, logarithmic in parts:
        if logarithmic:
            x = np.exp(rng.uniform(np.log(low), np.log(high), COUNT))
        else:
            x = rng.uniform(low, high, COUNT)
        out.append(np.clip(x.astype(dtype), np.dtype(dtype).type(low), np.dtype(dtype).type(high)))
    return np.concatenate(out)


def ulps(got, want, dtype):
    """The largest error, in units in the last place of the exact result, where that is a normal number."""
    info = np.finfo(dtype)
    size = np.abs(want)
    normal = (size >= info.tiny) & (size <= info.max)
    unit = np.exp2(np.floor(np.log2(size[normal]))) * info.eps
    return float(np.max(np.abs(got[normal].astype(want.dtype) - want[normal]) / unit))


def measure(lax, asarray, name, dtype):
    """The error of one function of a library."""
    rng = np.random.default_rng(0)
    wide = np.float64 if dtype == "float32" else np.longdouble
    if name in FUNCTIONS:
        reference, parts = FUNCTIONS[name]
        args = [points(parts, dtype, rng)]
    else:
        reference, parts = BINARY[name]
        args = [points([part], dtype, rng) for part in parts]
    with np.errstate(all="ignore"):
        want = reference(*(a.astype(wide) for a in args))
        got = np.asarray(getattr(lax, name)(*map(asarray, args)))
        return ulps(got, np.asarray(want), dtype)


def library(name):
    """The `lax` module of a library, its `asarray` and its switch for 64 bits."""
    module = importlib.import_module(name)
    return importlib.import_module(f"{name}.lax"), importlib.import_module(f"{name}.numpy").asarray, module.enable_x64


def rows(libraries):
    """(function, dtype, errors) for every function and dtype."""
    for name in (*FUNCTIONS, *BINARY):
        for dtype in DTYPES:
            errors = []
            for lax, asarray, enable_x64 in libraries:
                with enable_x64(True):
                    errors.append(measure(lax, asarray, name, dtype))
            yield name, dtype, errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-jax", action="store_true", help="leave JAX out")
    names = ["ferrax"] if parser.parse_args().no_jax else ["ferrax", "jax"]
    print(f"| function | dtype | {' | '.join(names)} |\n|---|---|{'---|' * len(names)}")
    for name, dtype, errors in rows([library(n) for n in names]):
        print(f"| {name} | {dtype} | {' | '.join(f'{e:.2f}' for e in errors)} |", flush=True)


if __name__ == "__main__":
    main()
