//! The interval that an operation's result lies in, from those of its operands.
//!
//! Bounds hold for what is computed, not for real numbers: they are rounded to the dtype, as the operation rounds, and
//! functions that may be off by some last digits get bounds a little wider; `exp` may be zero, as it underflows. Operations
//! that are missing here give any number. NaN is in every interval: where it comes from is reported there.

use crate::{INTEGER_POW, IntegerPow};
use ferrax_base::{Aval, DType, Scalar};
use ferrax_ir::OpRef;
use ferrax_transform::where_check::{Fact, Range};

const INF: f64 = f64::INFINITY;
/// What functions may be off by, in their own size.
const SLACK: f64 = 1e-5;

/// The range of an operation's results.
pub(super) fn of(op: &OpRef, args: &[Fact], ranges: &[Range], avals: &[Aval], out: &Aval) -> Range {
    if out.dtype.is_complex() || avals.iter().any(|a| a.dtype.is_complex()) {
        return Range::ALL;
    }
    let squares = op.name() == "dot_general" && out.rank() == 0 && args[0].id == args[1].id;
    let found = match ranges {
        _ if squares => Some(Range::of(0.0, INF)),
        [x] => unary(op, *x, avals.first()),
        [x, y] => binary(op, args, *x, *y),
        [lo, x, hi] if op.name() == "clamp" => Some(least(greatest(*x, *lo), *hi)),
        _ => None,
    };
    let found = found.or_else(|| several(op.name(), ranges));
    rounded(found.unwrap_or(Range::ALL), out.dtype).and(Range::of_dtype(out.dtype))
}

/// Bounds as the dtype has them.
fn rounded(r: Range, dtype: DType) -> Range {
    if !dtype.is_float() {
        return r;
    }
    let round = |v: f64| Scalar::from_f64(dtype, v).to_f64();
    Range { lo: round(r.lo), hi: round(r.hi), without_zero: r.without_zero }
}

/// A function that never decreases, off by its slack; where it is zero or exact at zero, so is the bound.
fn rising(r: Range, f: impl Fn(f64) -> f64) -> Range {
    let (lo, hi) = (f(r.lo), f(r.hi));
    Range::of(lo - lo.abs() * SLACK, hi + hi.abs() * SLACK)
}

fn unary(op: &OpRef, x: Range, aval: Option<&Aval>) -> Option<Range> {
    if let Some(p) = op.of(&INTEGER_POW) {
        return Some(power(x, p));
    }
    Some(match op.name() {
        "neg" => Range { lo: -x.hi, hi: -x.lo, ..x },
        "abs" => Range { without_zero: x.nonzero(), ..magnitude(x) },
        "square" => {
            let m = magnitude(x);
            Range::of(m.lo * m.lo, m.hi * m.hi)
        }
        "sign" => Range::of(x.lo.clamp(-1.0, 1.0).floor(), x.hi.clamp(-1.0, 1.0).ceil()),
        "floor" | "ceil" | "round" => Range::of(x.lo.floor(), x.hi.ceil()),
        "exp" => rising(x, f64::exp).and(Range::of(0.0, INF)),
        "exp2" => rising(x, f64::exp2).and(Range::of(0.0, INF)),
        "expm1" => rising(x, f64::exp_m1).and(Range::of(-1.0, INF)),
        "log" if x.lo > 0.0 => rising(x, f64::ln),
        "log1p" if x.lo > -1.0 => rising(x, f64::ln_1p),
        "sqrt" => Range { without_zero: x.nonzero(), ..Range::of(x.lo.max(0.0).sqrt(), x.hi.max(0.0).sqrt()) },
        "rsqrt" => {
            let inverse = |v: f64| 1.0 / v.max(0.0).sqrt();
            Range::of(inverse(x.hi) * (1.0 - SLACK), inverse(x.lo) * (1.0 + SLACK))
        }
        "cbrt" => Range { without_zero: x.nonzero(), ..rising(x, f64::cbrt) },
        "tanh" => rising(x, f64::tanh).and(Range::of(-1.0, 1.0)),
        "erf" | "sin" | "cos" => match op.name() {
            "erf" if x.lo >= 0.0 => Range::of(0.0, 1.0),
            _ => Range::of(-1.0, 1.0),
        },
        "erfc" => Range::of(0.0, 2.0),
        "logistic" => rising(x, |v| 1.0 / (1.0 + (-v).exp())).and(Range::of(0.0, 1.0)),
        "sinh" => rising(x, f64::sinh),
        "asinh" => rising(x, f64::asinh),
        "atan" => rising(x, f64::atan),
        "cosh" => {
            let m = magnitude(x);
            Range::of(1.0, rising(m, f64::cosh).hi)
        }
        "acosh" => Range::of(0.0, INF),
        "acos" => Range::of(0.0, 3.2),
        "asin" => Range::of(-1.6, 1.6),
        "population_count" | "clz" => Range::of(0.0, INF),
        "reduce_sum" | "cumsum" => sum(x, aval),
        "reduce_prod" | "cumprod" if x.lo >= 0.0 => Range::of(0.0, INF),
        "is_finite" | "not" => return None,
        name if moves(name) => x,
        _ => return None,
    })
}

/// Operations whose results are elements of their operands.
fn moves(name: &str) -> bool {
    matches!(
        name,
        "broadcast_in_dim"
            | "reshape"
            | "squeeze"
            | "expand_dims"
            | "transpose"
            | "slice"
            | "rev"
            | "tile"
            | "split"
            | "unstack"
            | "copy"
            | "copy_p"
            | "convert_element_type"
            | "reduce_precision"
            | "stop_gradient"
            | "optimization_barrier"
            | "name"
            | "real"
            | "reduce_max"
            | "reduce_min"
            | "cummax"
            | "cummin"
            | "sort"
            | "stack"
            | "concatenate"
            | "pad"
            | "dynamic_update_slice"
    )
}

/// Operations of several operands whose results are elements of theirs.
fn several(name: &str, ranges: &[Range]) -> Option<Range> {
    let all = |r: &[Range]| r.iter().copied().reduce(Range::or);
    match name {
        "dynamic_slice" => ranges.first().copied(),
        "dynamic_update_slice" => all(&ranges[..2.min(ranges.len())]),
        // what lies outside may be filled with zeros
        "gather" => ranges.first().map(|r| r.or(Range::just(0.0))),
        "iota" => Some(Range::of(0.0, INF)),
        _ if moves(name) => all(ranges),
        _ => None,
    }
}

fn magnitude(x: Range) -> Range {
    let least = if x.lo > 0.0 {
        x.lo
    } else if x.hi < 0.0 {
        -x.hi
    } else {
        0.0
    };
    Range::of(least, x.lo.abs().max(x.hi.abs()))
}

fn greatest(x: Range, y: Range) -> Range {
    let without_zero = x.nonzero() && y.nonzero();
    Range { lo: x.lo.max(y.lo), hi: x.hi.max(y.hi), without_zero }
}

fn least(x: Range, y: Range) -> Range {
    let without_zero = x.nonzero() && y.nonzero();
    Range { lo: x.lo.min(y.lo), hi: x.hi.min(y.hi), without_zero }
}

/// A sum of one or more elements, or of none.
fn sum(x: Range, aval: Option<&Aval>) -> Range {
    let some = aval.is_some_and(|a| a.size() > 0);
    Range::of(
        if x.lo >= 0.0 { if some { x.lo } else { 0.0 } } else { -INF },
        if x.hi <= 0.0 { if some { x.hi } else { 0.0 } } else { INF },
    )
}

fn power(x: Range, p: &IntegerPow) -> Range {
    let whole = |r: Range, n: i32| match n {
        0 => Range::just(1.0),
        n if n % 2 == 0 => rising(magnitude(r), |v| v.powi(n)),
        n => rising(r, |v| v.powi(n)),
    };
    if p.y >= 0 { whole(x, p.y) } else { inverse(whole(x, -p.y)) }
}

/// 1/x.
fn inverse(x: Range) -> Range {
    if x.lo > 0.0 || x.hi < 0.0 {
        return Range::of((1.0 / x.hi) * if x.lo > 0.0 { 1.0 - SLACK } else { 1.0 + SLACK }, 1.0 / x.lo);
    }
    if x.lo >= 0.0 { Range::of(0.0, INF) } else { Range::ALL }
}

/// The product of every end with every end.
fn product(x: Range, y: Range) -> Range {
    let times = |a: f64, b: f64| if a == 0.0 || b == 0.0 { 0.0 } else { a * b };
    let ends = [times(x.lo, y.lo), times(x.lo, y.hi), times(x.hi, y.lo), times(x.hi, y.hi)];
    Range::of(ends.into_iter().fold(INF, f64::min), ends.into_iter().fold(-INF, f64::max))
}

fn binary(op: &OpRef, args: &[Fact], x: Range, y: Range) -> Option<Range> {
    let same = args[0].id == args[1].id;
    Some(match op.name() {
        "add" | "add_any" => Range::of(x.lo + y.lo, x.hi + y.hi),
        "sub" if same => Range::just(0.0),
        "sub" => Range::of(x.lo - y.hi, x.hi - y.lo),
        "mul" if same => {
            let m = magnitude(x);
            Range::of(m.lo * m.lo, m.hi * m.hi)
        }
        "mul" => product(x, y),
        "div" => product(x, inverse(y)),
        "max" => greatest(x, y),
        "min" => least(x, y),
        "rem" if x.lo >= 0.0 => Range::of(0.0, x.hi),
        "pow" if x.lo >= 1.0 && y.lo >= 0.0 => Range::of(1.0, INF),
        "pow" if x.lo >= 0.0 => Range::of(0.0, INF),
        "atan2" => Range::of(-3.2, 3.2),
        "nextafter" | "shift_right_arithmetic" | "shift_right_logical" if x.lo >= 0.0 => Range::of(0.0, INF),
        "dot_general" if x.lo >= 0.0 && y.lo >= 0.0 => Range::of(0.0, INF),
        "scatter_add" | "scatter-add" if x.lo >= 0.0 && y.lo >= 0.0 => Range::of(0.0, INF),
        _ => return None,
    })
}

/// The next number of a dtype after `v`, away from it by `up`.
pub(super) fn next(v: f64, up: bool, dtype: DType) -> f64 {
    if dtype.is_integer() {
        return if up { v.floor() + 1.0 } else { v.ceil() - 1.0 };
    }
    let narrow = v as f32;
    if dtype == DType::F64 || f64::from(narrow) != v {
        return if up { v.next_up() } else { v.next_down() };
    }
    f64::from(if up { narrow.next_up() } else { narrow.next_down() })
}
