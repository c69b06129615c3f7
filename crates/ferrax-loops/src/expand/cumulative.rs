//! Running reductions as a doubling scan: after k steps every element holds the join of the last 2^k, so a logarithm of
//! the axis' length of pads and joins does it.
//!
//! Narrow floats and f32 sums run in a wider dtype. A running log-sum-exp carries pairs (greatest, sum of exponentials
//! over it) in double precision, so that errors of rounded logarithms do not add up.

use super::code::{Code, X};
use crate::ReduceOp;
use ferrax_base::{DType, Result, Scalar, bail};

/// `Cumulative`.
pub(super) fn cumulative(op: ReduceOp, axis: usize, reverse: bool, x: X<'_>) -> Result<X<'_>> {
    let d = x.dtype();
    if op == ReduceOp::LogSumExp {
        if !d.is_float() {
            bail!(NotImplemented, "this engine has no cumulative logsumexp of {d}");
        }
        let wide = x.to(DType::F64);
        return Ok(logsumexp(axis, reverse, wide).to(d));
    }
    let wide = match (op, d) {
        (ReduceOp::Sum | ReduceOp::Prod, d) if d.is_float() && d.size() < 4 => DType::F32,
        (ReduceOp::Sum, DType::F32) => DType::F64,
        _ => d,
    };
    let Some(join) = op.joining() else { bail!(Internal, "{op:?} joins by no operation") };
    let scanned = doubling(axis, reverse, [(x.to(wide), op.start(wide))], |[a], [b]| [a.bin(join, b)]);
    Ok(scanned[0].to(d))
}

/// The running join of tuples, given with what stands before the first of them; `join(earlier, later)`.
fn doubling<'c, const N: usize>(
    axis: usize,
    reverse: bool,
    parts: [(X<'c>, Scalar); N],
    join: impl Fn([X<'c>; N], [X<'c>; N]) -> [X<'c>; N],
) -> [X<'c>; N] {
    let n = parts[0].0.shape()[axis];
    let mut values = parts.map(|p| p.0);
    let mut step = 1;
    while step < n {
        let shift = step as i64;
        let (low, high) = if reverse { (-shift, shift) } else { (shift, -shift) };
        let earlier = std::array::from_fn(|i| values[i].pad(axis, low, high, parts[i].1));
        values = join(earlier, values);
        step *= 2;
    }
    values
}

/// The running log of the sum of exponentials, in double precision.
fn logsumexp<'c>(axis: usize, reverse: bool, x: X<'c>) -> X<'c> {
    let code: &Code = x.code;
    let one = code.full(DType::F64, &x.shape(), 1.0);
    let (nothing, zero) = (Scalar::from_f64(DType::F64, f64::NEG_INFINITY), Scalar::zero(DType::F64));
    let [top, sum] = doubling(axis, reverse, [(x, nothing), (one, zero)], |[a, s], [b, t]| {
        let top = a.max(b);
        // Infinities differ from themselves by nothing.
        let scaled = |v: X<'c>, sum: X<'c>| v.eq(top).pick(sum, sum * (v - top).exp());
        [top, scaled(a, s) + scaled(b, t)]
    });
    let endless = top.eq(f64::INFINITY) | top.eq(f64::NEG_INFINITY);
    endless.pick(top, top + sum.ln())
}
