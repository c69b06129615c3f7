//! The Hurwitz zeta function Σ (q + k)^-x by Euler and Maclaurin's summation (DLMF 25.11), and polygamma functions by it,
//! in double precision, as the CPU engine has them.

use super::code::X;
use super::gamma::{digamma, lgamma};
use crate::BinaryOp;
use crate::coefficients::BERNOULLI;
use ferrax_base::DType;

/// ζ(x, q) for x > 1.
pub(super) fn zeta<'c>(x: X<'c>, q: X<'c>) -> X<'c> {
    let number = |v: f64| x.code.number(x.dtype(), v);
    let outside = x.is_nan() | q.is_nan() | x.lt(1.0);
    let whole = q.le(0.0) & q.eq(q.floor());
    let broken = q.le(0.0) & x.ne(x.floor());
    let inside = x.is_finite() & q.is_finite() & !(outside | whole | broken | x.eq(1.0));
    let y = summed(inside.pick(x, number(2.0)), inside.pick(q, number(1.0)));
    let endless = number(f64::INFINITY);
    let at_end = q.gt(1.0).pick(number(0.0), q.eq(1.0).pick(number(1.0), endless));
    let y = q.eq(f64::INFINITY).pick(number(0.0), y);
    let y = q.eq(f64::NEG_INFINITY).pick(number(f64::NAN), y);
    let y = x.eq(f64::INFINITY).pick(at_end, y);
    let even = x.bin(BinaryOp::Rem, 2.0).eq(0.0);
    let y = broken.pick(number(f64::NAN), y);
    let y = whole.pick(even.pick(endless, number(f64::NAN)), y);
    let y = outside.pick(number(f64::NAN), y);
    x.eq(1.0).pick(endless, y)
}

/// The sum for arguments that have one: at least twelve terms, and those below 10, then the rest.
fn summed<'c>(x: X<'c>, q: X<'c>) -> X<'c> {
    let c = x.code;
    let shape = if x.shape().is_empty() { q.shape() } else { x.shape() };
    let (x, q) = (x.spread(&shape), q.spread(&shape));
    let zero = c.full(x.dtype(), &shape, 0.0);
    let never = zero.ne(zero);
    let [sum, a, done, _, _] = c.repeat_while(
        [x],
        [zero, q, never, !never, c.number(DType::I32, 0.0)],
        |_, [_, _, _, on, _]| on.any(),
        |[x], [sum, a, done, on, k]| {
            let term = a.bin(BinaryOp::Pow, -x);
            let total = on.pick(sum + term, sum);
            let small = on & term.abs().lt(total.abs() * 1e-17) & a.gt(1.0);
            let done = done | small;
            let a = (on & !small).pick(a + 1.0, a);
            let k = k + 1i64;
            let on = !done & (k.lt(12i64).pick(done | !done, a.lt(10.0)));
            [total, a, done, on, k]
        },
    );
    let p = a.bin(BinaryOp::Pow, -x);
    let mut total = sum + p * a / (x - 1.0) + p * 0.5;
    let (mut factor, mut power, mut factorial) = (x, p / a, 2.0);
    for (i, b) in BERNOULLI.iter().enumerate() {
        let j = 2.0 * (i as f64 + 1.0);
        total = total + factor * power * (b / factorial);
        factor = factor * (x + (j - 1.0)) * (x + j);
        power = power / (a * a);
        factorial *= (j + 1.0) * (j + 2.0);
    }
    done.pick(sum, total)
}

/// The n-th derivative of digamma, n a nonnegative integer.
pub(super) fn polygamma<'c>(n: X<'c>, x: X<'c>) -> X<'c> {
    let number = |v: f64| x.code.number(x.dtype(), v);
    let even = n.bin(BinaryOp::Rem, 2.0).eq(0.0);
    let sign = even.pick(number(-1.0), number(1.0));
    let y = sign * lgamma(n + 1.0).exp() * zeta(n + 1.0, x);
    let outside = n.lt(0.0) | n.ne(n.floor());
    let y = outside.pick(number(f64::NAN), y);
    n.eq(0.0).pick(digamma(x), y)
}
