"""ferrax.numpy under jit, grad and vmap against JAX."""

import numpy as np

import ferrax
import ferrax.numpy as ferrax_numpy
from tests.numpy.oracle import OPERANDS, assert_same, cases, namespace, outcome, result
from tests.recorded import expected

JITTED = """
sum(x, axis=0), prod(x), max(x, axis=1), min(x), all(b), any(b, axis=0), argmax(x, axis=1), argmin(x)
mean(x, axis=0), var(x, ddof=1), std(x, axis=1), ptp(x), average(x, axis=0, weights=y), count_nonzero(x)
nansum(n), nanmean(n, axis=1), nanmax(n), nanvar(n), nanargmin(n, axis=0)
cumsum(x, axis=1), cumprod(v), cumulative_sum(v, include_initial=True)
median(x, axis=1), quantile(x, 0.3), percentile(x, array([10., 90.]), axis=0), nanquantile(n, 0.5, axis=1)
reshape(x, (3, -1)), ravel(x), transpose(t), moveaxis(t, 0, 2), expand_dims(x, 1), squeeze(x[:1], 0), rot90(x)
concatenate([x, y]), stack([v, w]), hstack([v, w]), tile(v, 2), repeat(v, 2), split(i, 3), block([[x, y], [y, x]])
repeat(v, i[:4], total_repeat_length=8)
roll(x, i[0], axis=1), roll(x, 1), flip(x), pad(x, 1, mode='reflect'), pad(x, 1, constant_values=o)
delete(v, i[1]), delete(v, i[1:3] % 2 * 2 + array([0, 1]), assume_unique_indices=True), insert(v, i[0], 9.)
append(v, w)
tril(x), triu(x), diag(v), diagonal(t), trace(x), fill_diagonal(x, 7., inplace=False), vander(v), eye(3, k=i[1])
take(x, i, axis=1), take_along_axis(x, argsort(x, axis=1), 1), put(x, i, 1., inplace=False)
put_along_axis(x, argmax(x, axis=1, keepdims=True), 0., 1, inplace=False), unravel_index(i, (2, 3))
choose(i % 2, [i, i * 10], mode='clip'), select([x > 0, x < -1], [x, y])
piecewise(x, [x < 0, x > 1], [-1, lambda v: v * 2])
where(x > 0, x, y), nonzero(x, size=4), argwhere(x, size=3), flatnonzero(i > 1, size=9, fill_value=-1)
compress(b[0], x, axis=1, size=3), extract(x > 0, x, size=4), place(x, x > 0, v, inplace=False)
sort(x, axis=0), argsort(x, axis=1, descending=True), lexsort((i, i[::-1])), partition(v, 1)[1]
searchsorted(w, x), searchsorted(w, x, method='sort'), digitize(x, w), isin(i, k), bincount(i, length=5)
unique(i, size=5, return_inverse=True, return_counts=True), union1d(i, k, size=6), intersect1d(i, k, size=3)
setdiff1d(i, k, size=4), setxor1d(i, k, size=6)
histogram(x, 4), histogram_bin_edges(x, 3), interp(x, w, v), trapezoid(x), diff(x, axis=0), gradient(x), unwrap(x)
dot(x, y.T), matmul(t, u), tensordot(x, y, 2), inner(x, y), outer(v, w), kron(x, y), cross(x, y), vdot(x, y)
einsum('bij,bjk,kl->bil', t, u, m), einsum('ii->i', m), linalg.norm(x), linalg.norm(x, ord=1), linalg.matrix_power(m, 3)
cov(x), corrcoef(x), convolve(v, w), correlate(v, k, mode='same'), polyval(v, x), polymul(v, w), polyint(v), polyder(v)
round(x, 1), nan_to_num(f), isclose(x, y), sinc(x), i0(x), ldexp(x, j), frexp(x), modf(x), logaddexp(x, y), gcd(i, 4)
packbits(b), unpackbits(q), angle(c), array_equal(x, y), divmod(i, 2), lcm(i, 4)
linspace(o, 3., 5), full((2,), o), full_like(x, o), zeros_like(x), arange(4), array([o, 1.])
array([[o, 2.], [v[0], v[1]]])
vectorize(lambda a, b: a @ b, signature='(n,k),(k)->(n)')(t, v), apply_along_axis(sort, 0, x), ix_(i, k), meshgrid(v, w)
add.reduce(x), add.accumulate(x), add.at(x, 0, 1., inplace=False), maximum.reduce(x, axis=1), multiply.outer(v, w)
x.sum(axis=0), x.mean(), x.reshape(3, 2), x.reshape((3, -1)), x.T, t.mT, x.astype(int), x.flatten(), x.argsort(axis=1)
"""

STATIC = """
arange(i[0])
reshape(x, (i[1], -1))
zeros(i[0])
sum(x, axis=i[1])
nonzero(x)
unique(x)
bincount(i)
repeat(v, i[:4])
where(x)
linspace(0, 1, i[0])
split(i, k)
choose(i, [i, i, i, i])
ravel_multi_index((i, i), (4, 4))
delete(v, i[:2])
trim_zeros(v)
"""

GRADIENTS = """
sum(x * y)
sum(prod(x, axis=1))
sum(prod(x))
max(x)
sum(min(x, axis=1))
mean(x, axis=0)[1]
var(x)
sum(std(x, axis=0))
sum(cumsum(x, axis=1) * y)
sum(cumprod(y + x, axis=0))
sum(median(x, axis=1) * array([1., 2.]))
quantile(x, 0.3)
sum(sort(x, axis=1) * y)
sum(take(x, array([0, 2, 2]), axis=1))
sum(take_along_axis(x, argsort(x, axis=1), 1) * y)
sum(where(x > 0, x * x, -x))
sum(pad(x, 2, mode='reflect') ** 2)
sum(pad(x, 1, mode='mean'))
sum(concatenate([x, y]) ** 2)
sum(tile(x, (2, 2)) ** 2)
sum(repeat(x, array([1, 3]), axis=0) ** 2)
sum(roll(x, 1, axis=1) * y)
sum(dot(x, y.T) ** 2)
sum(matmul(x, t) ** 2) if False else sum(matmul(x.T, x) ** 2)
sum(einsum('ij,kj->ik', x, y) ** 2)
linalg.norm(x)
linalg.norm(x, ord=1)
sum(interp(x, w, v))
sum(convolve(x[0], x[1]) ** 2)
sum(polyval(x[0], x[1]))
sum(diff(x) ** 2)
sum(trapezoid(x, y))
sum(cov(x))
sum(logaddexp(x, y))
sum(hypot(x, y))
sum(sinc(x))
sum(i0(x))
sum(ldexp(x, j))
sum(frexp(x)[0])
sum(unwrap(x * 3))
sum(select([x > 1, x < 0], [x ** 2, x ** 3], 7.))
sum(piecewise(x, [x < 0, x > 1], [lambda v: -v, lambda v: v * v]))
sum(nanmean(where(x > 3, nan, x), axis=0))
sum(tril(x) ** 2)
sum(fill_diagonal(x, 0., inplace=False))
sum(insert(x, 1, x[0], axis=0) ** 2)
sum(delete(x, 1, axis=1) ** 2)
sum(unique(x) ** 2)
sum(nan_to_num(x) ** 2)
sum(gradient(x)[0] ** 2)
sum(average(x, axis=1, weights=abs(y)))
sum(cross(x, y))
sum(kron(x, y) ** 2)
sum(percentile(x, array([20., 70.]), axis=1))
sum(x.reshape(3, 2).T ** 2)
sum(maximum.reduce(x, axis=1))
"""

BATCHED = """
sum(r), max(r), argmin(r), cumsum(r), median(r), sort(r), argsort(r), diff(r), flip(r), roll(r, 1), tile(r, 2)
pad(r, 1)
take(r, array([2, 0])), r[::2], concatenate([r, r]), stack([r, r]), outer(r, r), dot(r, r), diag(r), where(r > 0, r, 0.)
searchsorted(sort(r), 0.5), interp(0.3, sort(r), r), convolve(r, r), nonzero(r, size=3), unique(r, size=3)
isin(r, r[:1])
linspace(r[0], r[1], 4), einsum('i,j->ij', r, r), linalg.norm(r), var(r), histogram(r, 3), polyval(r, 2.), cov(r)
insert(r, 1, 5.), delete(r, 1), repeat(r, 2), nan_to_num(r), select([r > 0], [r], 1.), take(r, argmax(r))
r.at[argmin(r)].set(9.)
"""


def run(package, text, function):
    code = compile(text, "<case>", "eval")
    operands = {k: package.numpy.asarray(a) for k, a in OPERANDS.items()}
    return function(package, lambda **names: eval(code, namespace(package, {**operands, **names})), operands["x"])


@cases(JITTED)
def test_jit(text):
    kind, mine = outcome(result, ferrax, text, True)
    if kind == "error":
        raise mine
    assert_same(mine, outcome(expected, result, text)[1], text, rtol=1e-5)


@cases(STATIC)
def test_static_arguments_are_asked_for(text):
    kind, error = outcome(result, ferrax, text, True)
    assert kind == "error" and isinstance(error, TypeError), f"{text}: {error!r}"


@cases(GRADIENTS)
def test_gradients(text):
    gradient = lambda package, f, x: package.grad(lambda x: f(x=x))(x)
    mine, theirs = run(ferrax, text, gradient), expected(run, text, gradient)
    assert_same(mine, theirs, text, rtol=3e-5)


@cases(GRADIENTS)
def test_gradients_under_jit(text):
    if "unique" in text or "repeat(x, array" in text:
        return  # shapes that depend on what is traced
    value = lambda package, f, x: package.jit(package.value_and_grad(lambda x: f(x=x)))(x)
    plain = lambda package, f, x: package.value_and_grad(lambda x: f(x=x))(x)
    assert_same(run(ferrax, text, value), run(ferrax, text, plain), text, rtol=3e-5)


@cases(BATCHED)
def test_vmap(text):
    mapped = lambda package, f, x: package.vmap(lambda r: f(r=r))(x)
    mine, theirs = run(ferrax, text, mapped), expected(run, text, mapped)
    assert_same(mine, theirs, text, rtol=1e-5)


def test_traced_roll_equals_the_static_one():
    x = ferrax_numpy.arange(6)
    for shift in (-7, -1, 0, 4, 13):
        want = np.roll(np.arange(6), shift)
        assert np.array_equal(np.asarray(ferrax.jit(ferrax_numpy.roll)(x, shift)), want)
