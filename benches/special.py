"""Errors of the functions of `ferrax.scipy.special` against mpmath, in units in the last place.

    python benches/special.py             # the table of docs/numerics.md
    python benches/special.py gamma beta  # some rows

An error is in units of the result, or of 1 where `UNIT` names the function: it has zeros, near which no formula that
rounds on the way keeps all digits. Operands are what a dtype makes of the grid; results are compared where they are
normal numbers. mpmath's own incomplete functions are slow or wrong for large parameters: the series are summed here.
"""

import argparse
import zlib

import numpy as np
from mpmath import mp, mpf

COUNT = 2500
DTYPES = ("float32", "float64")
mp.dps = 40

#: Functions with zeros.
UNIT = {"betaln", "digamma", "gammaln", "multigammaln", "polygamma"}


def log(low, high):
    """Numbers whose logarithms are uniform."""
    return lambda rng, n, _: np.exp(rng.uniform(np.log(low), np.log(high), n))


def flat(low, high, narrow=None):
    """Uniform numbers; `narrow` is the interval in float32 where another one is needed."""
    return lambda rng, n, dtype: rng.uniform(*(narrow if narrow and dtype == "float32" else (low, high)), n)


def near(center, width):
    return lambda rng, n, _: center + width * rng.normal(size=n)


def complement(grid):
    return lambda rng, n, dtype: 1 - grid(rng, n, dtype)


def mixed(*grids):
    """Some numbers of each grid."""

    def draw(rng, n, dtype):
        parts = [grid(rng, n // len(grids) + 1, dtype) for grid in grids]
        return np.concatenate(parts)[:n]

    return draw


def around_gamma(low, high):
    """Parameters and bounds of incomplete gamma functions: half of the bounds within some deviations of the mean."""

    def draw(rng, n, dtype):
        a = log(low, high)(rng, n, dtype)
        spread = np.abs(a + 4 * rng.normal(size=n) * np.sqrt(a))
        return [a, np.where(rng.random(n) < 0.5, spread, a * log(0.3, 3)(rng, n, dtype))]

    return draw


def around_beta(low, high):
    def draw(rng, n, dtype):
        a, b = log(low, high)(rng, n, dtype), log(low, high)(rng, n, dtype)
        mean = a / (a + b)
        x = mean + 3 * rng.normal(size=n) * np.sqrt(mean * (1 - mean) / (a + b + 1))
        x = np.where(rng.random(n) < 0.5, x, mean * log(0.3, 1)(rng, n, dtype))
        return [a, b, np.clip(x, 1e-3, 0.99)]

    return draw


# ---- references -----------------------------------------------------------------------------------------------------


def normal_quantile(p):
    q = min(p, 1 - p)
    x = -mp.sqrt(2) * mp.erfinv(1 - 2 * q) if q > 1e-12 else -mp.sqrt(-2 * mp.log(q))
    for _ in range(12):
        step = (mp.ncdf(x) - q) / mp.npdf(x)
        x -= step / (1 + x * step / 2)
    return x if p < 0.5 else -x


def log_ndtr(x):
    if x > -300:
        return mp.log(mp.erfc(-x / mp.sqrt(2)) / 2) if x < 0 else mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2)
    total = term = mpf(1)
    for k in range(1, 15):
        term *= -(2 * k - 1) / (x * x)
        total += term
    return -x * x / 2 - mp.log(-x * mp.sqrt(2 * mp.pi)) + mp.log(total)


def series(ratio):
    """1 and the products of ratios, summed."""
    total, term, n = mpf(1), mpf(1), 0
    while term > total * mpf(10) ** -36:
        term *= ratio(n)
        total += term
        n += 1
    return total


def gammaincc(a, x):
    if x <= a + 1 or x < 1:
        with mp.workdps(60):
            return 1 - gammainc(a, x)
    with mp.workdps(50):
        b, c = x + 1 - a, mpf(10) ** 400
        h = d = 1 / b
        for i in range(1, 100_000):
            b += 2
            d, c = 1 / (b - i * (i - a) * d), b - i * (i - a) / c
            h *= c * d
            if abs(c * d - 1) < mpf(10) ** -38:
                break
        return h * mp.exp(a * mp.log(x) - x - mp.loggamma(a))


def gammainc(a, x):
    if x > a + 1 and x >= 1:
        return 1 - gammaincc(a, x)
    return series(lambda n: x / (a + 1 + n)) * mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1))


def betainc(a, b, x):
    return 1 - _beta_series(b, a, 1 - x) if x > a / (a + b) else _beta_series(a, b, x)


def _beta_series(a, b, x):
    scale = mp.exp(a * mp.log(x) + b * mp.log(1 - x) + mp.loggamma(a + b) - mp.loggamma(a) - mp.loggamma(b)) / a
    return scale * series(lambda n: x * (a + b + n) / (a + 1 + n))


def beta(a, b):
    return mp.exp(mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b))


def multigamma(a):
    return 1.5 * mp.log(mp.pi) + sum(mp.loggamma(a - mpf(j) / 2) for j in range(3))


def transform(log_x, lmbda):
    return mp.expm1(lmbda * log_x) / lmbda


GAMMA = mixed(flat(-170, 170, (-34, 34)), flat(-6, 12), log(1e-30, 1))
POSITIVE, PAIR = log(1e-5, 1e5), [log(1e-3, 1e6), log(1e-3, 1e6)]
UNITS = mixed(flat(0, 1), log(1e-30, 1), complement(log(1e-6, 1)))
EXPONENTS = near(0, 3)

#: Arguments that are not arrays.
STATIC = {"multigammaln": (3,)}

# name -> (where, reference, one grid an operand or one that draws all)
FUNCTIONS = {
    "erfinv": ("-1 to 1", mp.erfinv, [mixed(flat(-1, 1), log(1e-10, 1), complement(log(1e-7, 1)))]),
    "ndtr": ("-38 to 10", mp.ncdf, [mixed(flat(-38, 10, (-13, 10)), flat(-3, 3))]),
    "log_ndtr": ("-10⁹ to 10", log_ndtr, [mixed(flat(-60, 10), near(0, 3), lambda *a: -log(1e-3, 1e9)(*a))]),
    "ndtri": ("0 to 1", normal_quantile, [UNITS]),
    "gamma": ("-170 to 170", mp.gamma, [GAMMA]),
    "gammaln": ("-30 to 10³⁰", lambda x: mp.log(abs(mp.gamma(x))) if x < 0 else mp.loggamma(x),
                [mixed(flat(-30, 30), log(1e-30, 1e30))]),
    "factorial": ("0 to 169", lambda n: mp.gamma(n + 1), [flat(0, 169, (0, 33))]),
    "digamma": ("-30 to 10³⁰", mp.digamma, [mixed(flat(-30, 30), log(1e-30, 1e30))]),
    "polygamma": ("order 1, -10 to 10⁴", lambda n, x: mp.polygamma(int(n), x),
                  [lambda rng, n, _: np.ones(n, np.int32), mixed(flat(-10, 10), log(1e-3, 1e4))]),
    "zeta": ("1 to 30, from 10⁻³ on", mp.zeta, [flat(1.001, 30), log(1e-3, 30)]),
    "multigammaln": ("d = 3, 1 to 10⁴", multigamma, [lambda *a: 1 + log(1e-2, 1e4)(*a)]),
    "beta": ("10⁻³ to 10⁶", beta, PAIR),
    "betaln": ("10⁻³ to 10⁶", lambda a, b: mp.log(beta(a, b)), PAIR),
    "comb": ("0 to 300", mp.binomial, [flat(1, 300), flat(0, 1)]),
    "poch": ("-20 to 100", mp.rf, [mixed(flat(-20, 20), log(1e-3, 100)), flat(-5, 20)]),
    "gammainc": ("10⁻³ to 10⁴, both", gammainc, around_gamma(1e-3, 1e4)),
    "gammaincc": ("10⁻² to 10⁴, both", gammaincc, around_gamma(1e-2, 1e4)),
    "betainc": ("10⁻³ to 300", betainc, around_beta(1e-3, 300)),
    "logit": ("0 to 1", lambda x: mp.log(x) - mp.log1p(-x), [UNITS]),
    "expit": ("-80 to 40", lambda x: 1 / (1 + mp.exp(-x)), [flat(-80, 40)]),
    "xlogy": ("10⁻⁵ to 10⁵", lambda x, y: x * mp.log(y), [POSITIVE, POSITIVE]),
    "xlog1py": ("10⁻⁵ to 10⁵", lambda x, y: x * mp.log1p(y), [POSITIVE, POSITIVE]),
    "entr": ("10⁻⁵ to 10⁵", lambda x: -x * mp.log(x), [POSITIVE]),
    "rel_entr": ("10⁻² to 10²", lambda p, q: p * mp.log(p / q), [log(1e-2, 1e2), log(1e-2, 1e2)]),
    "kl_div": ("10⁻² to 10²", lambda p, q: p * mp.log(p / q) - p + q, [log(1e-2, 1e2), log(1e-2, 1e2)]),
    "boxcox": ("10⁻² to 10²", lambda x, k: transform(mp.log(x), k), [log(1e-2, 1e2), EXPONENTS]),
    "boxcox1p": ("10⁻⁵ to 10²", lambda x, k: transform(mp.log1p(x), k), [log(1e-5, 1e2), EXPONENTS]),
    "i0": ("-80 to 80", lambda x: mp.besseli(0, x), [flat(-80, 80)]),
    "i1": ("-80 to 80", lambda x: mp.besseli(1, x), [flat(-80, 80)]),
}  # fmt: skip


def measure(name, dtype):
    """The largest error of a function over its grid."""
    import ferrax
    import ferrax.numpy as jnp
    import ferrax.scipy.special

    _, reference, grids = FUNCTIONS[name]
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    drawn = grids(rng, COUNT, dtype) if callable(grids) else [grid(rng, COUNT, dtype) for grid in grids]
    operands = [x if x.dtype.kind == "i" else x.astype(dtype) for x in drawn]
    got = getattr(ferrax.scipy.special, name)(*map(jnp.asarray, operands), *STATIC.get(name, ()))
    assert got.dtype == dtype
    info, worst = np.finfo(dtype), 0.0
    for row in zip(np.asarray(got).tolist(), *(x.tolist() for x in operands), strict=True):
        want = reference(*map(mpf, row[1:]))
        if not float(info.tiny) <= abs(want) <= float(info.max):
            continue
        size = max(abs(want), 1) if name in UNIT else abs(want)
        unit = mpf(2) ** (int(mp.floor(mp.log(size, 2))) - info.nmant)
        error = float(abs(mpf(row[0]) - want) / unit)
        worst = max(worst, error if error == error else np.inf)
    return worst


def main():
    import ferrax

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="functions; all of them by default")
    for name in parser.parse_args().names or FUNCTIONS:
        with ferrax.enable_x64(True):
            errors = [measure(name, dtype) for dtype in DTYPES]
        print(f"| `{name}` | {FUNCTIONS[name][0]} | {errors[0]:.2f} | {errors[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
