"""Writes python/ferrax/scipy/special/_coefficients.py: the rational functions that approximate special functions.

Each is p(t) / q(t), t being the named variable shifted and scaled. It meets the function at Chebyshev's nodes of its
interval (a linear system, solved in 60 digits), which is within a small factor of the best approximation; the degrees
are the least ones with a relative error below 2**-55. Run: python tools/special_coefficients.py
"""

import textwrap
from pathlib import Path

from mpmath import mp, mpf

mp.dps = 60
TARGET = mpf(2) ** -55
OUT = Path(__file__).parents[1] / "python/ferrax/scipy/special/_coefficients.py"
HEADER = '''"""Numerators and denominators of rational approximations, highest powers first.

Written by tools/special_coefficients.py. (p, q, shift, scale) stands for p(t) / q(t), t = (u - shift) scale. The
comments name the function of u, and the interval of u. Read next: `_rational.py`, which evaluates them.
"""

# fmt: off
'''


def fit(f, nodes, degree_p, degree_q):
    """p, q (lowest powers first, q[0] = 1) with p / q equal to `f` at the nodes."""
    matrix, right = mp.matrix(len(nodes), len(nodes)), mp.matrix(len(nodes), 1)
    for row, t in enumerate(nodes):
        value = f(t)
        for k in range(degree_p + 1):
            matrix[row, k] = t**k
        for k in range(1, degree_q + 1):
            matrix[row, degree_p + k] = -value * t**k
        right[row] = value
    solution = list(mp.lu_solve(matrix, right))
    return solution[: degree_p + 1], [mpf(1), *solution[degree_p + 1 :]]


def quality(f, p, q, lo, hi, zeros):
    """The largest error on 51 points, relative to the function (with `zeros`: to 1/10 at least), and the condition."""
    worst, condition = mpf(0), mpf(0)
    for t in (lo + k * (hi - lo) / 50 for k in range(51)):
        value, above, below = f(t), mp.polyval(p[::-1], t), mp.polyval(q[::-1], t)
        if below <= 0:
            return mpf(1), mp.inf
        scale = max(abs(value), mpf(zeros) / 10)
        worst = max(worst, abs(above / below - value) / scale)
        sizes = [sum(abs(c * t**k) for k, c in enumerate(r)) for r in (p, q)]
        condition = max(condition, sizes[0] / below / scale, sizes[1] / below)
    return worst, condition


def best(f, lo, hi, zeros):
    """(p, q, shift, scale, condition): the approximation of least degree, of (u - shift) scale, that is good enough.

    The variable is u / hi or runs from -1 to 1, whichever makes the polynomials' terms cancel less.
    """
    for degree in range(6, 40):
        count = degree + 1 if zeros else 2 * degree + 1
        chosen = None
        for shift, scale in [(0, 1 / hi), ((lo + hi) / 2, 2 / (hi - lo))]:
            ends = [(u - shift) * scale for u in (lo, hi)]
            cosines = [mp.cos(mp.pi * (2 * k + 1) / (2 * count)) for k in range(count)]
            nodes = [ends[0] + (1 + c) / 2 * (ends[1] - ends[0]) for c in cosines]

            def scaled(t, shift=shift, scale=scale):
                return f(t / scale + shift)

            p, q = fit(scaled, nodes, degree, 0 if zeros else degree)
            worst, condition = quality(scaled, p, q, *ends, zeros)
            if worst < TARGET and (chosen is None or condition < chosen[-1]):
                chosen = p, q, shift, scale, condition
        if chosen:
            return chosen
    raise ValueError("no approximation of degree 40 is good enough")


def far(f):
    """`f`, which takes a power of 1 / x, from 10**-18 on: what lies below is the limit to all digits."""
    return lambda v: f(max(v, mpf(10) ** -18))


def auxiliary_si(x):
    """f and g of DLMF 6.2.17-18."""
    s, c = mp.si(x) - mp.pi / 2, mp.ci(x)
    return c * mp.sin(x) - s * mp.cos(x), -c * mp.cos(x) - s * mp.sin(x)


def auxiliary_fresnel(x):
    """f and g of DLMF 7.2.10-11."""
    s, c = mpf(1) / 2 - mp.fresnels(x), mpf(1) / 2 - mp.fresnelc(x)
    a = mp.pi * x * x / 2
    return s * mp.cos(a) - c * mp.sin(a), c * mp.cos(a) + s * mp.sin(a)


def auxiliary_bessel(order, x):
    """P and Q of Hankel's expansion: J = sqrt(2 / (pi x)) (P cos w - Q sin w)."""
    w = x - (2 * order + 1) * mp.pi / 4
    j, y, scale = mp.besselj(order, x), mp.bessely(order, x), mp.sqrt(mp.pi * x / 2)
    return scale * (j * mp.cos(w) + y * mp.sin(w)), scale * (y * mp.cos(w) - j * mp.sin(w))


def dawson(x):
    return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)


def beyond_first(f):
    """x^2 (f(x) - 1) for an f that tends to 1 + c / x^2."""
    return power(lambda x: x * x * (f(x) - 1), -0.5)


EI_ZERO = mp.findroot(mp.ei, mpf("0.3725"))


def ei_near(x):
    """(Ei(x) - log(x / x0)) / (x - x0), x0 the zero of Ei."""
    return (mp.euler + mp.log(EI_ZERO) + x * mp.hyp2f2(1, 1, 2, 2, x)) / (x - EI_ZERO)


def power(f, exponent):
    """`f` of v ** exponent."""
    return lambda v: f(v**exponent)


def limit(f, at_zero):
    """`f` of the square root, or fourth root, whose value at 0 is given."""
    return lambda v: f(v) if v else mpf(at_zero)


#: Name, what is approximated, the function, its interval, whether it has zeros there.
TABLES = [
    ("ERFCX_NEAR", "erfcx(x) of x", lambda x: mp.exp(x * x) * mp.erfc(x), 0, 3, False),
    ("ERFCX_FAR", "x^2 (sqrt(pi) x erfcx(x) - 1) of 1 / x^2",
     far(beyond_first(lambda x: mp.sqrt(mp.pi) * x * mp.exp(x * x) * mp.erfc(x))), 0, mpf(1) / 9, False),
    ("DAWSON_NEAR", "dawsn(x) / x of x^2", limit(power(lambda x: dawson(x) / x, 0.5), 1), 0, 9, False),
    ("DAWSON_MIDDLE", "x^2 (2x dawsn(x) - 1) of 1 / x^2",
     beyond_first(lambda x: 2 * x * dawson(x)), mpf(1) / 36, mpf(1) / 9, False),
    ("DAWSON_FAR", "x^2 (2x dawsn(x) - 1) of 1 / x^2",
     far(beyond_first(lambda x: 2 * x * dawson(x))), 0, mpf(1) / 36, False),
    ("EIN", "(E1(x) + log(x) + gamma) / x of x", lambda x: mp.hyp2f2(1, 1, 2, 2, -x), 0, 1, False),
    ("E1_MIDDLE", "x exp(x) E1(x) of 1 / x", power(lambda x: x * mp.exp(x) * mp.e1(x), -1), mpf(1) / 4, 1, False),
    ("E1_FAR", "x exp(x) E1(x) of 1 / x", far(power(lambda x: x * mp.exp(x) * mp.e1(x), -1)), 0, mpf(1) / 4, False),
    ("EI_NEAR", "(Ei(x) - log(x / x0)) / (x - x0) of x, x0 the zero of Ei", ei_near, 0, 6, False),
    ("EI_12", "x exp(-x) Ei(x) of 1 / x",
     power(lambda x: x * mp.exp(-x) * mp.ei(x), -1), mpf(1) / 12, mpf(1) / 6, False),
    ("EI_24", "x exp(-x) Ei(x) of 1 / x",
     power(lambda x: x * mp.exp(-x) * mp.ei(x), -1), mpf(1) / 24, mpf(1) / 12, False),
    ("EI_60", "x exp(-x) Ei(x) of 1 / x",
     power(lambda x: x * mp.exp(-x) * mp.ei(x), -1), mpf(1) / 60, mpf(1) / 24, False),
    ("EI_FAR", "x exp(-x) Ei(x) of 1 / x",
     far(power(lambda x: x * mp.exp(-x) * mp.ei(x), -1)), 0, mpf(1) / 60, False),
    ("SI_NEAR", "Si(x) / x of x^2", limit(power(lambda x: mp.si(x) / x, 0.5), 1), 0, 16, False),
    ("CI_NEAR", "(Ci(x) - log(x) - gamma) / x^2 of x^2",
     lambda s: -mp.hyp2f3(1, 1, 2, 2, mpf(3) / 2, -s / 4) / 4, 0, 16, False),
    ("SI_F_8", "x f(x) of 1 / x^2", power(lambda x: x * auxiliary_si(x)[0], -0.5), mpf(1) / 64, mpf(1) / 16, False),
    ("SI_F_FAR", "x f(x) of 1 / x^2", far(power(lambda x: x * auxiliary_si(x)[0], -0.5)), 0, mpf(1) / 64, False),
    ("SI_G_8", "x^2 g(x) of 1 / x^2",
     power(lambda x: x * x * auxiliary_si(x)[1], -0.5), mpf(1) / 64, mpf(1) / 16, False),
    ("SI_G_FAR", "x^2 g(x) of 1 / x^2",
     far(power(lambda x: x * x * auxiliary_si(x)[1], -0.5)), 0, mpf(1) / 64, False),
    ("FRESNEL_S", "S(x) / x^3 of x^4", limit(power(lambda x: mp.fresnels(x) / x**3, 0.25), mp.pi / 6), 0, 8, False),
    ("FRESNEL_C", "C(x) / x of x^4", limit(power(lambda x: mp.fresnelc(x) / x, 0.25), 1), 0, 8, False),
    ("FRESNEL_F", "x f(x) of 1 / x^4",
     far(power(lambda x: x * auxiliary_fresnel(x)[0], -0.25)), 0, mpf(1) / 8, False),
    ("FRESNEL_G", "x^3 g(x) of 1 / x^4",
     far(power(lambda x: x**3 * auxiliary_fresnel(x)[1], -0.25)), 0, mpf(1) / 8, False),
    ("J0_NEAR", "J0(x) of x^2", power(lambda x: mp.besselj(0, x), 0.5), 0, 64, True),
    ("J1_NEAR", "J1(x) / x of x^2", limit(power(lambda x: mp.besselj(1, x) / x, 0.5), 0.5), 0, 64, True),
    ("J0_P", "P(x) of 1 / x^2", far(power(lambda x: auxiliary_bessel(0, x)[0], -0.5)), 0, mpf(1) / 64, False),
    ("J0_Q", "x Q(x) of 1 / x^2", far(power(lambda x: x * auxiliary_bessel(0, x)[1], -0.5)), 0, mpf(1) / 64, False),
    ("J1_P", "P(x) of 1 / x^2", far(power(lambda x: auxiliary_bessel(1, x)[0], -0.5)), 0, mpf(1) / 64, False),
    ("J1_Q", "x Q(x) of 1 / x^2", far(power(lambda x: x * auxiliary_bessel(1, x)[1], -0.5)), 0, mpf(1) / 64, False),
]  # fmt: skip


def formatted(values):
    """The coefficients as the lines of a tuple, highest powers first."""
    text = ", ".join(repr(float(v)) for v in reversed(values)) + ("," if len(values) == 1 else "")
    return textwrap.fill(f"({text}),", 120, initial_indent="    ", subsequent_indent="     ")


def main():
    text = HEADER
    for name, comment, f, lo, hi, zeros in TABLES:
        p, q, shift, scale, condition = best(f, mpf(lo), mpf(hi), zeros)
        print(f"{name}: degrees {len(p) - 1} and {len(q) - 1}, condition {float(condition):.1f}", flush=True)
        interval = f"from {mp.nstr(mpf(lo), 6)} to {mp.nstr(mpf(hi), 6)}"
        text += f"\n#: {comment}, {interval}.\n{name} = (\n{formatted(p)}\n{formatted(q)}\n"
        text += f"    {float(shift)!r}, {float(scale)!r},\n)\n"
    OUT.write_text(text)


if __name__ == "__main__":
    main()
