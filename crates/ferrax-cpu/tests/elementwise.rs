//! Elementwise nodes and conversions against arithmetic on single scalars.

mod common;

use common::{Array, NUMBERS, Rng, assert_same, cases, node, same};
use ferrax_base::{DType, Scalar};
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{BinaryOp, Kind, Type, UnaryOp};
use proptest::prelude::*;

const INTEGERS: [DType; 12] = [
    DType::I2,
    DType::I4,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U2,
    DType::U4,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
];
const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

fn int(s: Scalar) -> i128 {
    if s.dtype.is_signed() { i128::from(s.to_i64()) } else { s.bits as i128 }
}

fn wrap(d: DType, v: i128) -> Scalar {
    Scalar::from_i64(d, v as i64)
}

fn integer_binary(op: BinaryOp, a: Scalar, b: Scalar) -> Scalar {
    let (d, bits) = (a.dtype, a.dtype.bits() as i128);
    let (x, y) = (int(a), int(b));
    // The amount of a shift is its bit pattern.
    let amount = b.bits as i128;
    match op {
        BinaryOp::Add => wrap(d, x + y),
        BinaryOp::Sub => wrap(d, x - y),
        BinaryOp::Mul => wrap(d, x.wrapping_mul(y)),
        BinaryOp::Div => wrap(d, if y == 0 { -1 } else { x / y }),
        BinaryOp::Rem => wrap(d, if y == 0 { x } else { x % y }),
        BinaryOp::Max => wrap(d, x.max(y)),
        BinaryOp::Min => wrap(d, x.min(y)),
        BinaryOp::And => wrap(d, x & y),
        BinaryOp::Or => wrap(d, x | y),
        BinaryOp::Xor => wrap(d, x ^ y),
        BinaryOp::ShiftLeft => wrap(d, if amount < bits { x << amount } else { 0 }),
        BinaryOp::ShiftRightLogical => wrap(d, if amount < bits { (a.bits as i128) >> amount } else { 0 }),
        BinaryOp::ShiftRightArithmetic => {
            let signed = ((a.bits as i128) << (128 - bits)) >> (128 - bits);
            wrap(d, signed >> amount.min(bits - 1))
        }
        other => panic!("{other:?}"),
    }
}

const INTEGER_OPS: [BinaryOp; 13] = [
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::Rem,
    BinaryOp::Max,
    BinaryOp::Min,
    BinaryOp::And,
    BinaryOp::Or,
    BinaryOp::Xor,
    BinaryOp::ShiftLeft,
    BinaryOp::ShiftRightLogical,
    BinaryOp::ShiftRightArithmetic,
];

/// IEEE arithmetic in f64, rounded once: exact for formats of at most half its precision.
fn float_binary(op: BinaryOp, a: Scalar, b: Scalar) -> Scalar {
    let (x, y) = (a.to_f64(), b.to_f64());
    let larger = |x: f64, y: f64| {
        if x.is_nan() || y.is_nan() {
            f64::NAN
        } else if x == y {
            if x.is_sign_negative() { y } else { x }
        } else if x > y {
            x
        } else {
            y
        }
    };
    let v = match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        BinaryOp::Mul => x * y,
        BinaryOp::Div => x / y,
        BinaryOp::Rem => x % y,
        BinaryOp::Max => larger(x, y),
        BinaryOp::Min => -larger(-x, -y),
        other => panic!("{other:?}"),
    };
    Scalar::from_f64(a.dtype, v)
}

const FLOAT_OPS: [BinaryOp; 7] =
    [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div, BinaryOp::Rem, BinaryOp::Max, BinaryOp::Min];

/// Operands that are arrays, or scalars standing for every element.
fn operands(rng: &mut Rng, d: DType, n: usize) -> (Array, Array) {
    let shape = |scalar: bool| if scalar { vec![] } else { vec![n] };
    let which = rng.below(4);
    (Array::random(rng, d, &shape(which == 1)), Array::random(rng, d, &shape(which == 2)))
}

fn element(x: &Array, i: usize) -> Scalar {
    x.data[if x.ty.shape.is_empty() { 0 } else { i }]
}

fn binary(rng: &mut Rng, op: BinaryOp, d: DType, n: usize, f: impl Fn(Scalar, Scalar) -> Scalar) {
    let (x, y) = operands(rng, d, n);
    let want = Array::from_fn(d, &[n], |i| f(element(&x, i[0]), element(&y, i[0])));
    let got = node(&Kind::Binary(op), &[&x, &y], std::slice::from_ref(&want.ty));
    for i in 0..n {
        let (g, w) = (got[0].data[i], want.data[i]);
        assert!(same(g, w), "{op:?} {d}: {} and {}: {g}, want {w}", element(&x, i), element(&y, i));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(60), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn integers(seed: u64, n in 0usize..70) {
        let rng = &mut Rng(seed);
        for d in INTEGERS {
            for op in INTEGER_OPS {
                binary(rng, op, d, n, |a, b| integer_binary(op, a, b));
            }
        }
    }

    #[test]
    fn floats(seed: u64, n in 0usize..70) {
        let rng = &mut Rng(seed);
        for d in FLOATS {
            for op in FLOAT_OPS {
                binary(rng, op, d, n, |a, b| float_binary(op, a, b));
            }
        }
    }

    #[test]
    fn complex(seed: u64, n in 0usize..40) {
        let rng = &mut Rng(seed);
        for d in [DType::C64, DType::C128] {
            let (x, y) = (Array::tame(rng, d, &[n]), Array::tame(rng, d, &[n]));
            for op in [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul] {
                let want = Array::from_fn(d, &[n], |i| {
                    let (a, b) = (x.data[i[0]], y.data[i[0]]);
                    let (p, q, r, s) = (a.to_f64(), a.imag(), b.to_f64(), b.imag());
                    match op {
                        BinaryOp::Add => Scalar::from_complex(d, p + r, q + s),
                        BinaryOp::Sub => Scalar::from_complex(d, p - r, q - s),
                        _ => Scalar::from_complex(d, p * r - q * s, p * s + q * r),
                    }
                });
                let got = node(&Kind::Binary(op), &[&x, &y], std::slice::from_ref(&want.ty));
                assert_same(&got[0], &want, &op);
            }
            let got = node(&Kind::Binary(BinaryOp::Div), &[&x, &y], std::slice::from_ref(&x.ty));
            for i in 0..n {
                let (a, b, g) = (x.data[i], y.data[i], got[0].data[i]);
                let m = b.to_f64().powi(2) + b.imag().powi(2);
                if m > 0.0 {
                    let re = (a.to_f64() * b.to_f64() + a.imag() * b.imag()) / m;
                    let im = (a.imag() * b.to_f64() - a.to_f64() * b.imag()) / m;
                    prop_assert!((g.to_f64() - re).abs() <= 1e-6 * (1.0 + re.abs()));
                    prop_assert!((g.imag() - im).abs() <= 1e-6 * (1.0 + im.abs()));
                }
            }
        }
    }

    #[test]
    fn comparisons(seed: u64, n in 0usize..70) {
        let rng = &mut Rng(seed);
        for d in NUMBERS.into_iter().filter(|d| !d.is_complex()).chain([DType::I4, DType::F8E4M3FN]) {
            let (x, y) = operands(rng, d, n);
            for op in [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge] {
                let want = Array::from_fn(DType::Bool, &[n], |i| {
                    let (a, b) = (element(&x, i[0]), element(&y, i[0]));
                    let order = if d.is_float() { a.to_f64().partial_cmp(&b.to_f64()) } else { Some(int(a).cmp(&int(b))) };
                    Scalar::from_bool(match op {
                        CompareOp::Eq => order.is_some_and(std::cmp::Ordering::is_eq),
                        CompareOp::Ne => order.is_none_or(std::cmp::Ordering::is_ne),
                        CompareOp::Lt => order.is_some_and(std::cmp::Ordering::is_lt),
                        CompareOp::Le => order.is_some_and(std::cmp::Ordering::is_le),
                        CompareOp::Gt => order.is_some_and(std::cmp::Ordering::is_gt),
                        _ => order.is_some_and(std::cmp::Ordering::is_ge),
                    })
                });
                let got = node(&Kind::Compare(op), &[&x, &y], std::slice::from_ref(&want.ty));
                assert_same(&got[0], &want, &(op, d));
            }
        }
    }

    #[test]
    fn conversions(seed: u64, n in 0usize..40) {
        let rng = &mut Rng(seed);
        let numbers: Vec<DType> =
            DType::ALL.iter().copied().filter(|d| !d.is_key() && *d != DType::Float0).collect();
        for &from in &numbers {
            let x = Array::random(rng, from, &[n]);
            for &to in &numbers {
                let want = Array::from_fn(to, &[n], |i| convert(x.data[i[0]], to));
                let got = node(&Kind::Convert, &[&x], std::slice::from_ref(&want.ty));
                for (k, (g, w)) in got[0].data.iter().zip(&want.data).enumerate() {
                    prop_assert!(same(*g, *w), "{from} to {to}: {} gives {g}, want {w}", x.data[k]);
                }
            }
        }
    }

    #[test]
    fn selects_and_clamps(seed: u64, n in 0usize..70) {
        let rng = &mut Rng(seed);
        for d in NUMBERS.into_iter().chain([DType::Bool, DType::U4, DType::F8E5M2]) {
            let (a, b) = operands(rng, d, n);
            let c = Array::random(rng, d, &[n]);
            let p = if rng.below(3) == 0 { Array::tame(rng, DType::Bool, &[]) } else { Array::tame(rng, DType::Bool, &[n]) };
            let want = Array::from_fn(d, &[n], |i| element(if element(&p, i[0]).is_nonzero() { &b } else { &a }, i[0]));
            let got = node(&Kind::Select, &[&p, &a, &b], std::slice::from_ref(&want.ty));
            assert_same(&got[0], &want, &("select", d));
            let w = Array::tame(rng, DType::I32, &[n]);
            let want = Array::from_fn(d, &[n], |i| {
                let cases = [&a, &b, &c];
                element(cases[element(&w, i[0]).to_i64().clamp(0, 2) as usize], i[0])
            });
            let got = node(&Kind::Select, &[&w, &a, &b, &c], std::slice::from_ref(&want.ty));
            assert_same(&got[0], &want, &("select_n", d));
            if d.is_complex() || d.is_bool() {
                continue;
            }
            let limit = |a, b, op| if d.is_float() { float_binary(op, a, b) } else { integer_binary(op, a, b) };
            let want = Array::from_fn(d, &[n], |i| {
                let i = i[0];
                limit(limit(element(&c, i), element(&a, i), BinaryOp::Max), element(&b, i), BinaryOp::Min)
            });
            let got = node(&Kind::Clamp, &[&a, &c, &b], std::slice::from_ref(&want.ty));
            assert_same(&got[0], &want, &("clamp", d));
        }
    }
}

/// An integer rounded once to `digits` binary digits, ties to even.
fn rounded(v: i128, digits: u32) -> f64 {
    let m = v.unsigned_abs();
    let drop = (128 - m.leading_zeros()).saturating_sub(digits);
    let (kept, rest) = (m >> drop, m & ((1 << drop) - 1));
    let up = 2 * rest > 1 << drop || (drop > 0 && 2 * rest == 1 << drop && kept & 1 == 1);
    let value = ((kept + u128::from(up)) << drop) as f64;
    if v < 0 { -value } else { value }
}

/// Conversion by value; the engine converts to formats narrower than 16 bits by way of f32.
fn convert(s: Scalar, to: DType) -> Scalar {
    let from = s.dtype;
    if to.is_integer() && from.is_inexact() {
        // Truncate and saturate; NaN is 0.
        let v = s.to_f64();
        let (lo, hi) = (int(ferrax_loops::kind::lowest(to)), int(ferrax_loops::kind::highest(to)));
        return wrap(to, if v.is_nan() { 0 } else { (v as i128).clamp(lo, hi) });
    }
    if from.is_integer() && matches!(to, DType::F16 | DType::BF16) {
        return Scalar::from_f64(to, rounded(int(s), if to == DType::F16 { 11 } else { 8 }));
    }
    let narrow = to.is_float() && to.size() < 4;
    let direct = from == to || (from == DType::F64 && to.size() == 2);
    if narrow && !direct {
        let single =
            if from.is_integer() { Scalar::from_f64(DType::F32, int(s) as f64) } else { s.convert(DType::F32) };
        // Integers round once to f32: i128 to f64 is exact up to 2^53 only.
        let single = if from.is_integer() && from.bits() == 64 {
            Scalar { dtype: DType::F32, bits: (int(s) as f32).to_bits().into() }
        } else {
            single
        };
        return single.convert(to);
    }
    if to.is_float() && from.is_integer() && from.bits() == 64 && to == DType::F32 {
        return Scalar { dtype: to, bits: (int(s) as f32).to_bits().into() };
    }
    if to == DType::C64 && from.is_integer() && from.bits() == 64 {
        return Scalar::from_complex(to, f64::from(int(s) as f32), 0.0);
    }
    s.convert(to)
}

#[test]
fn unary_operations_on_integers() {
    let rng = &mut Rng(7);
    for d in INTEGERS {
        let x = Array::random(rng, d, &[200]);
        let check = |op: UnaryOp, f: &dyn Fn(Scalar) -> i128| {
            let want = Array::from_fn(d, &[200], |i| wrap(d, f(x.data[i[0]])));
            let got = node(&Kind::Unary(op), &[&x], std::slice::from_ref(&want.ty));
            assert_same(&got[0], &want, &(op, d));
        };
        check(UnaryOp::Neg, &|s| -int(s));
        check(UnaryOp::Abs, &|s| int(s).abs());
        check(UnaryOp::Sign, &|s| int(s).signum());
        check(UnaryOp::Not, &|s| !int(s));
        check(UnaryOp::PopulationCount, &|s| s.bits.count_ones().into());
        check(UnaryOp::CountLeadingZeros, &|s| i128::from(s.bits.leading_zeros()) - 128 + d.bits() as i128);
    }
}

#[test]
fn unary_operations_on_floats() {
    let rng = &mut Rng(8);
    for d in FLOATS.into_iter().chain([DType::F8E4M3FN]) {
        let mut x = Array::random(rng, d, &[300]);
        x.data.extend([0.5, 1.5, 2.5, -0.5, -1.5, 0.25].map(|v| Scalar::from_f64(d, v)));
        x.ty.shape[0] += 6;
        let n = x.data.len();
        let check = |op: UnaryOp, f: &dyn Fn(f64) -> f64| {
            let want = Array::from_fn(d, &[n], |i| Scalar::from_f64(d, f(x.data[i[0]].to_f64())));
            let got = node(&Kind::Unary(op), &[&x], std::slice::from_ref(&want.ty));
            assert_same(&got[0], &want, &(op, d));
        };
        check(UnaryOp::Neg, &|v| -v);
        check(UnaryOp::Abs, &f64::abs);
        check(UnaryOp::Sign, &|v| if v == 0.0 || v.is_nan() { v } else { v.signum() });
        check(UnaryOp::Floor, &f64::floor);
        check(UnaryOp::Ceil, &f64::ceil);
        check(UnaryOp::RoundAway, &f64::round);
        check(UnaryOp::RoundEven, &f64::round_ties_even);
        check(UnaryOp::Sqrt, &f64::sqrt);
        let want = Array::from_fn(DType::Bool, &[n], |i| Scalar::from_bool(x.data[i[0]].to_f64().is_finite()));
        let got = node(&Kind::Unary(UnaryOp::IsFinite), &[&x], std::slice::from_ref(&want.ty));
        assert_same(&got[0], &want, &("is_finite", d));
    }
}

#[test]
fn powers_by_multiplication() {
    for n in [-3, -2, -1, 0, 1, 2, 3, 4, 7] {
        for d in [DType::F32, DType::F64, DType::BF16] {
            let x = Array::floats(d, &[3], &[2.0, -1.0, 0.5]);
            let want = Array::floats(d, &[3], &[2f64.powi(n), (-1f64).powi(n), 0.5f64.powi(n)]);
            let got = node(&Kind::IntegerPow(n), &[&x], std::slice::from_ref(&x.ty));
            assert_same(&got[0], &want, &n);
        }
    }
    let x = Array::integers(DType::I8, &[2], &[3, -2]);
    let got = node(&Kind::IntegerPow(7), &[&x], std::slice::from_ref(&x.ty));
    assert_same(&got[0], &Array::integers(DType::I8, &[2], &[2187, -128]), &"wrapping");
}

#[test]
fn total_order_tells_zeros_and_nans_apart() {
    let v = [f64::NEG_INFINITY, -1.0, -0.0, 0.0, 1.0, f64::INFINITY, f64::NAN];
    for d in FLOATS {
        for (i, &a) in v.iter().enumerate() {
            for (j, &b) in v.iter().enumerate() {
                let (x, y) = (Array::floats(d, &[1], &[a]), Array::floats(d, &[1], &[b]));
                let ty = Type::new(DType::Bool, &[1]);
                let is = |op| node(&Kind::Compare(op), &[&x, &y], std::slice::from_ref(&ty))[0].data[0].is_nonzero();
                assert_eq!(is(CompareOp::LtTotal), i < j, "{d} {a} {b}");
                assert_eq!(is(CompareOp::LeTotal), i <= j, "{d} {a} {b}");
                assert_eq!(is(CompareOp::EqTotal), i == j, "{d} {a} {b}");
            }
        }
    }
}

#[test]
fn integers_round_once_to_half_formats() {
    // Just above the middle of two bfloat16 numbers, by less than f32 holds.
    let middle = (1i64 << 25) + (1 << 17);
    for d in [DType::U32, DType::I32, DType::U64, DType::I64] {
        for (v, want) in [(middle + 1, (1 << 25) + (1 << 18)), (middle, 1 << 25), (middle - 1, 1 << 25)] {
            for v in [(v, want), (-v, -want)].into_iter().take(1 + usize::from(d.is_signed())) {
                let x = Array::from_fn(d, &[100], |_| Scalar::from_i64(d, v.0));
                let want = Array::from_fn(DType::BF16, &[100], |_| Scalar::from_i64(DType::BF16, v.1));
                let got = node(&Kind::Convert, &[&x], std::slice::from_ref(&want.ty));
                assert_same(&got[0], &want, &(d, v.0));
            }
        }
    }
}

#[test]
fn reduced_precision_is_a_round_trip_through_the_format() {
    let rng = &mut Rng(9);
    let x = Array::random(rng, DType::F32, &[500]);
    let kind = Kind::ReducePrecision { exponent_bits: 8, mantissa_bits: 7 };
    let got = node(&kind, &[&x], std::slice::from_ref(&x.ty));
    let want = Array::from_fn(DType::F32, &[500], |i| x.data[i[0]].convert(DType::BF16).convert(DType::F32));
    assert_same(&got[0], &want, &"bfloat16");
    let x = Array::floats(DType::F32, &[4], &[65519.0, 65520.0, 1e-8, 1.0 + 1.0 / 4096.0]);
    let kind = Kind::ReducePrecision { exponent_bits: 5, mantissa_bits: 10 };
    let got = node(&kind, &[&x], std::slice::from_ref(&x.ty));
    assert_same(&got[0], &Array::floats(DType::F32, &[4], &[65504.0, f64::INFINITY, 0.0, 1.0]), &"float16");
}

#[test]
fn nextafter_steps_one_unit() {
    for (d, tiny, up) in [(DType::F32, 1e-45, 1.0 + 2f64.powi(-23)), (DType::BF16, 9.2e-41, 1.0 + 2f64.powi(-7))] {
        let x = Array::floats(d, &[4], &[0.0, 1.0, 1.0, f64::NAN]);
        let y = Array::floats(d, &[4], &[1.0, 2.0, 1.0, 0.0]);
        let got = node(&Kind::Binary(BinaryOp::Nextafter), &[&x, &y], std::slice::from_ref(&x.ty));
        assert_same(&got[0], &Array::floats(d, &[4], &[tiny, up, 1.0, f64::NAN]), &d);
    }
}
