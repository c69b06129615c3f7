"""Functions of `jax.scipy` beside jax.jit and SciPy, and the time of the first call of each: with its compilation.

ferrax and JAX run jitted, SciPy as it is, on the same float32 operands. JAX computes most special functions in float32;
ours are computed in float64 where the bounds of docs/numerics.md need that. Rows that lose stay in the table, at whose
end stand the geometric means. `--only` picks rows by name.
"""

import importlib
import math
import time
from functools import partial

import harness
import numpy as np
from cpu import floats

#: Milliseconds of the first call, by row and library.
FIRST = {}


def positive(n, high=5.0, seed=0):
    return np.random.default_rng(seed).uniform(0.1, high, n).astype(np.float32)


def units(n, seed=0):
    return np.random.default_rng(seed).uniform(0.02, 0.98, n).astype(np.float32)


def system(n):
    x = floats(n, n)
    return x @ x.T + n * np.eye(n, dtype=np.float32)


def special():
    line, some = positive(100_000), positive(10_000)
    a, b, x = positive(10_000, seed=1), positive(10_000, seed=2), units(10_000)
    one = ("gammaln", "digamma", "gamma", "factorial", "expi", "exp1", "i0", "i0e", "i1", "i1e", "erf", "erfc", "ndtr",
           "log_ndtr", "entr", "spence", "expit")  # fmt: skip
    rows = {name: ((line,), {}) for name in one}
    rows |= {name: ((units(100_000),), {}) for name in ("erfinv", "logit", "ndtri")}
    rows |= {name: ((line, positive(100_000, seed=1)), {}) for name in ("xlogy", "xlog1py", "kl_div", "rel_entr")}
    rows |= {name: ((a, b), {}) for name in ("gammainc", "gammaincc", "betaln", "beta")}
    rows |= {
        "zeta": ((a + 1.1, b), {}), "polygamma": ((np.int32(1), some), {}), "poch": ((a, b), {}),
        "betainc": ((a, b, x), {}), "hyp1f1": ((a, b, x), {}), "hyp2f1": ((a, b, b + 1, x), {}),
        "multigammaln": ((some + 2,), {"d": 3}), "expn": ((np.int32(2), some), {}),
    }  # fmt: skip
    return {f"special.{name}": value for name, value in rows.items()}


def stats():
    line, counts = floats(100_000), np.random.default_rng(0).integers(0, 10, 100_000).astype(np.float32)
    rows = {f"norm.{name}": ((line,), {}) for name in ("pdf", "logpdf", "cdf", "logcdf", "sf")}
    rows |= {f"{name}.logpdf": ((line,), {}) for name in ("cauchy", "laplace", "logistic")}
    rows |= {f"{name}.logpdf": ((positive(100_000), 2.5), {}) for name in ("gamma", "chi2", "pareto", "t")}
    rows |= {"beta.logpdf": ((units(100_000), 2.0, 3.0), {}), "expon.cdf": ((positive(100_000),), {}),
             "gamma.logcdf": ((positive(10_000), 2.5), {}), "poisson.logpmf": ((counts, 3.5), {}),
             "rankdata": ((floats(10_000),), {}), "sem": ((line,), {}), "mode": ((counts[:1000],), {})}  # fmt: skip
    return {f"stats.{name}": value for name, value in rows.items()}


def linear():
    a, b = system(200), floats(200, 10)
    rows = {
        "det": ((a,), {}), "inv": ((a,), {}), "solve": ((a, b), {}), "cholesky": ((a,), {}), "lu": ((a,), {}),
        "qr": ((a,), {}), "eigh": ((a,), {}), "svd": ((system(100),), {}), "expm": ((system(50) / 2500,), {}),
        "schur": ((floats(50, 50),), {}), "sqrtm": ((system(30),), {}), "solve_triangular": ((a, b), {}),
        "toeplitz": ((floats(500),), {}), "polar": ((system(50),), {}), "block_diag": ((a, a), {}),
    }  # fmt: skip
    return {f"linalg.{name}": value for name, value in rows.items()}


def signals():
    line, image = floats(10_000), floats(200, 200)
    places = np.random.default_rng(0).uniform(0, 199, (2, 10_000)).astype(np.float32)
    return {
        "signal.convolve": ((line, floats(100)), {}), "signal.fftconvolve": ((line, floats(1000)), {}),
        "signal.convolve2d": ((image, floats(9, 9)), {}), "signal.correlate": ((floats(2000), floats(500)), {}),
        "signal.detrend": ((line,), {}), "signal.welch": ((line,), {}), "signal.stft": ((line,), {}),
        "fft.dct": ((image,), {}), "fft.idct": ((image,), {}), "fft.dctn": ((image,), {}),
        "ndimage.map_coordinates": ((image, places), {"order": 1}),
        "integrate.trapezoid": ((line,), {}), "cluster.vq.vq": ((floats(5_000, 8), floats(16, 8)), {}),
    }  # fmt: skip


def found(package, path):
    """A function by its path in a library's `scipy`."""
    module, _, rest = path.partition(".")
    value = importlib.import_module(f"{package}.{module}")
    for name in rest.split("."):
        if not hasattr(value, name):
            value = importlib.import_module(f"{value.__name__}.{name}")
        else:
            value = getattr(value, name)
    return value


def jitted(name, path, operands, options):
    """The jitted function of a library on its own arrays; the first call is timed."""
    jax, jnp = importlib.import_module(name), importlib.import_module(f"{name}.numpy")
    function = jax.jit(partial(found(f"{name}.scipy", path), **options))
    arrays = [jnp.asarray(x) if isinstance(x, np.ndarray) else x for x in operands]
    start = time.perf_counter()
    jax.block_until_ready(function(*arrays))
    FIRST[path, name] = 1e3 * (time.perf_counter() - start)
    return lambda: jax.block_until_ready(function(*arrays))


def as_it_is(path, operands, options):
    """SciPy's function, where it has it."""
    return partial(found("scipy", path), *operands, **options)


def rows(libs, family):
    for path, (operands, options) in family().items():
        contenders = {name: partial(jitted, name, path, operands, options) for name in libs}
        contenders["scipy"] = partial(as_it_is, path, operands, options)
        firsts = lambda row, path=path: "  ".join(f"{n} {ms:.1f} ms" for (p, n), ms in FIRST.items() if p == path)
        yield harness.Row(path, contenders, budget=0.2, note=firsts)


def main():
    options = harness.parse_arguments(__doc__.splitlines()[0])
    libs = harness.libraries(options)
    families = [partial(rows, libs, family) for family in (special, stats, linear, signals)]
    done = harness.run(families, options, [*libs, "scipy"])
    for other in ("jax", "scipy"):
        ratios = [r.times[other] / r.times[options.target] for r in done if {other, options.target} <= r.times.keys()]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            ahead = sum(ratio >= 1 for ratio in ratios)
            print(f"ahead of {other} in {ahead} of {len(ratios)} rows, geometric mean {mean:.2f}x")
    ours = [ms for (_, name), ms in FIRST.items() if name == options.target]
    if ours:
        print(f"first calls of {options.target}: median {np.median(ours):.1f} ms, longest {max(ours):.1f} ms")


if __name__ == "__main__":
    main()
