//! Elementwise nodes against the CPU engine: every operation on every dtype that it takes.

use crate::against::{Array, Case, Near, Report, Rng};
use ferrax_base::{DType, Scalar};
use ferrax_loops::kind::{CompareOp, highest, lowest};
use ferrax_loops::{BinaryOp, Division, DivisionPart, Kind, Type, UnaryOp};

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
const HALVES: [DType; 2] = [DType::F16, DType::BF16];
const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];
const COMPLEX: [DType; 2] = [DType::C64, DType::C128];
const NARROW: [DType; 9] = [
    DType::F4E2M1FN,
    DType::F8E3M4,
    DType::F8E4M3,
    DType::F8E4M3B11FNUZ,
    DType::F8E4M3FN,
    DType::F8E4M3FNUZ,
    DType::F8E5M2,
    DType::F8E5M2FNUZ,
    DType::F8E8M0FNU,
];
const N: usize = 192;

fn numbers() -> impl Iterator<Item = DType> {
    INTEGERS.into_iter().chain(FLOATS).chain(COMPLEX).chain(NARROW).chain([DType::Bool])
}

/// Without the format of powers of two, to which the CPU engine rounds by the logarithm and gives its least number for 0;
/// XLA and ml_dtypes round to the nearest number, and have NaN for 0.
fn rounded() -> impl Iterator<Item = DType> {
    numbers().filter(|d| *d != DType::F8E8M0FNU)
}

/// Awkward values of a dtype: all codes of a small one, else zeros, ends, neighbours of powers of two, and random ones.
fn values(rng: &mut Rng, d: DType, n: usize) -> Array {
    let scalar = |rng: &mut Rng| {
        let (k, sign) = (rng.below(12), if rng.below(2) == 0 { 1.0 } else { -1.0 });
        if d.is_bool() {
            return Scalar::from_bool(rng.below(2) == 1);
        }
        if d.is_integer() {
            let bits = u128::from(rng.next()) & ((1u128 << d.bits()) - 1);
            return match k {
                0 => lowest(d),
                1 => highest(d),
                2 => Scalar::zero(d),
                3 => Scalar::from_i64(d, -1),
                4..=7 => Scalar::from_i64(d, rng.below(2 * d.bits()) as i64 - 3),
                8 => Scalar { dtype: d, bits: bits >> rng.below(d.bits()) },
                _ => Scalar { dtype: d, bits },
            };
        }
        if NARROW.contains(&d) {
            return Scalar { dtype: d, bits: u128::from(rng.next()) & ((1 << d.bits()) - 1) };
        }
        let mut real = || {
            let k = rng.below(14);
            let fraction = 1.0 + (rng.next() >> 12) as f64 / (1u64 << 52) as f64;
            sign * match k {
                0 => 0.0,
                1 => f64::INFINITY,
                2 => f64::NAN,
                3 => 1.0,
                4 => rng.below(9) as f64,
                5 => rng.below(9) as f64 + 0.5,
                6 => fraction * 2f64.powi(rng.below(250) as i32 - 125),
                7 => fraction * 100.0,
                _ => fraction * 2f64.powi(rng.below(10) as i32 - 6),
            }
        };
        let (re, im) = (real(), real());
        Scalar::from_complex(d, re, im)
    };
    Array::new(d, &[n], (0..n).map(|_| scalar(rng)).collect())
}

/// Complex numbers of middling size, on both sides of branch cuts too: what NaN and infinities give is the compiler's.
fn tame(rng: &mut Rng, d: DType) -> Array {
    let mut part = || {
        let fraction = 1.0 + (rng.next() >> 12) as f64 / (1u64 << 52) as f64;
        let sign = if rng.below(2) == 0 { 1.0 } else { -1.0 };
        sign * if rng.below(6) == 0 { 0.0 } else { fraction * 2f64.powi(rng.below(10) as i32 - 6) }
    };
    let data = (0..N).map(|_| Scalar::from_complex(d, part(), part())).collect();
    Array::new(d, &[N], data)
}

fn case(what: String, kind: Kind, inputs: &[usize], dtype: DType, near: Near) -> Case {
    Case { what, kind, inputs: inputs.to_vec(), results: vec![Type::new(dtype, &[N])], near }
}

const UNARY: [UnaryOp; 34] = [
    UnaryOp::Neg,
    UnaryOp::Sign,
    UnaryOp::Abs,
    UnaryOp::Floor,
    UnaryOp::Ceil,
    UnaryOp::RoundAway,
    UnaryOp::RoundEven,
    UnaryOp::IsFinite,
    UnaryOp::Exp,
    UnaryOp::Exp2,
    UnaryOp::Expm1,
    UnaryOp::Log,
    UnaryOp::Log1p,
    UnaryOp::Sqrt,
    UnaryOp::Rsqrt,
    UnaryOp::Cbrt,
    UnaryOp::Sin,
    UnaryOp::Cos,
    UnaryOp::Tan,
    UnaryOp::Asin,
    UnaryOp::Acos,
    UnaryOp::Atan,
    UnaryOp::Sinh,
    UnaryOp::Cosh,
    UnaryOp::Tanh,
    UnaryOp::Asinh,
    UnaryOp::Acosh,
    UnaryOp::Atanh,
    UnaryOp::Logistic,
    UnaryOp::Real,
    UnaryOp::Imag,
    UnaryOp::Conj,
    UnaryOp::Not,
    UnaryOp::PopulationCount,
];

fn unary_result(op: UnaryOp, d: DType) -> DType {
    match op {
        UnaryOp::IsFinite => DType::Bool,
        UnaryOp::Abs | UnaryOp::Real | UnaryOp::Imag => d.real(),
        _ => d,
    }
}

fn unary_near(op: UnaryOp, d: DType) -> Near {
    use UnaryOp::*;
    match op {
        // XLA's own log(1 + x) of f64 is some ten units off around x = -0.4.
        Log1p if d == DType::C128 => Near::Norm(64.0),
        _ if d.is_complex() && !matches!(op, Neg | IsFinite | Real | Imag | Conj) => Near::Norm(16.0),
        Neg | Sign | Abs | Floor | Ceil | RoundAway | RoundEven | IsFinite | Real | Imag | Conj | Not | Sqrt => {
            Near::Same
        }
        Atanh => Near::Ulps(8.0),
        _ if d.is_float() && !NARROW.contains(&d) => Near::Ulps(4.0),
        _ => Near::Same,
    }
}

pub fn unary() {
    let mut report = Report::default();
    let mut rng = Rng(1);
    for d in rounded() {
        let args = [if d.is_complex() { tame(&mut rng, d) } else { values(&mut rng, d, N) }];
        let takes = |op: &UnaryOp| crate::against::has_unary(*op, d);
        let ops = UNARY.into_iter().chain([UnaryOp::CountLeadingZeros]).filter(takes);
        let cases: Vec<Case> = ops
            .map(|op| case(format!("{op:?} {d}"), Kind::Unary(op), &[0], unary_result(op, d), unary_near(op, d)))
            .collect();
        report.check(&cases, &args);
    }
    report.finish();
}

const BINARY: [BinaryOp; 17] = [
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::Rem,
    BinaryOp::Pow,
    BinaryOp::Max,
    BinaryOp::Min,
    BinaryOp::Atan2,
    BinaryOp::And,
    BinaryOp::Or,
    BinaryOp::Xor,
    BinaryOp::ShiftLeft,
    BinaryOp::ShiftRightArithmetic,
    BinaryOp::ShiftRightLogical,
    BinaryOp::Nextafter,
    BinaryOp::Complex,
];

fn binary_near(op: BinaryOp, d: DType) -> Near {
    match op {
        BinaryOp::Mul | BinaryOp::Div if d.is_complex() => Near::Norm(8.0),
        BinaryOp::Pow if d.is_complex() => Near::Norm(4096.0),
        BinaryOp::Pow | BinaryOp::Atan2 if d.is_float() && !NARROW.contains(&d) => Near::Ulps(4.0),
        _ => Near::Same,
    }
}

pub fn binary() {
    let mut report = Report::default();
    let mut rng = Rng(2);
    for d in rounded() {
        let args = if d.is_complex() {
            [tame(&mut rng, d), tame(&mut rng, d)]
        } else {
            [values(&mut rng, d, N), values(&mut rng, d, N)]
        };
        let ops = BINARY.into_iter().filter(|op| crate::against::has_binary(*op, d));
        let cases: Vec<Case> = ops
            .map(|op| {
                let out = if op == BinaryOp::Complex { d.to_complex() } else { d };
                case(format!("{op:?} {d}"), Kind::Binary(op), &[0, 1], out, binary_near(op, d))
            })
            .collect();
        report.check(&cases, &args);
    }
    report.finish();
}

const COMPARE: [CompareOp; 9] = [
    CompareOp::Eq,
    CompareOp::Ne,
    CompareOp::Lt,
    CompareOp::Le,
    CompareOp::Gt,
    CompareOp::Ge,
    CompareOp::LtTotal,
    CompareOp::LeTotal,
    CompareOp::EqTotal,
];

pub fn comparisons_and_choices() {
    let mut report = Report::default();
    let mut rng = Rng(3);
    for d in rounded() {
        let which = Array::from_fn(DType::I32, &[N], |_| Scalar::from_i64(DType::I32, rng.below(7) as i64 - 2));
        let pred = values(&mut rng, DType::Bool, N);
        let scalar = Array::new(d, &[], vec![rng.tame(d)]);
        let (x, y, z) = (values(&mut rng, d, N), values(&mut rng, d, N), values(&mut rng, d, N));
        let one = Array::new(DType::I32, &[], vec![Scalar::from_i64(DType::I32, 1)]);
        let args = [x, y, z, pred, which, scalar, one];
        let mut cases: Vec<Case> = COMPARE
            .into_iter()
            .map(|op| case(format!("{op:?} {d}"), Kind::Compare(op), &[0, 1], DType::Bool, Near::Same))
            .collect();
        cases.push(case(format!("Eq {d} scalar"), Kind::Compare(CompareOp::Eq), &[5, 1], DType::Bool, Near::Same));
        for inputs in [&[3, 0, 1][..], &[4, 0, 1, 2], &[3, 5, 1], &[6, 0, 1, 2], &[4, 0, 5, 2, 1]] {
            cases.push(case(format!("Select {d} {inputs:?}"), Kind::Select, inputs, d, Near::Same));
        }
        if !d.is_complex() {
            cases.push(case(format!("Clamp {d}"), Kind::Clamp, &[0, 1, 2], d, Near::Same));
            cases.push(case(format!("Clamp {d} scalar"), Kind::Clamp, &[5, 1, 2], d, Near::Same));
        }
        report.check(&cases, &args);
    }
    report.finish();
}

pub fn conversions() {
    let mut report = Report::default();
    let mut rng = Rng(4);
    for from in numbers() {
        let args = [values(&mut rng, from, N)];
        let cases: Vec<Case> =
            rounded().map(|to| case(format!("Convert {from} {to}"), Kind::Convert, &[0], to, Near::Same)).collect();
        report.check(&cases, &args);
    }
    report.finish();
}

/// What is between the numbers of narrow formats, and around the ends of integers.
pub fn conversions_near_ties() {
    let mut report = Report::default();
    for from in [DType::F64, DType::F32] {
        for to in NARROW.into_iter().chain(HALVES).filter(|d| *d != DType::F8E8M0FNU) {
            let mut data: Vec<Scalar> = Vec::new();
            let codes: Vec<f64> = (0..1u128 << to.bits())
                .step_by(if to.size() == 2 { 37 } else { 1 })
                .map(|bits| Scalar { dtype: to, bits }.to_f64())
                .filter(|v| v.is_finite())
                .collect();
            let mut sorted = codes;
            sorted.sort_by(f64::total_cmp);
            for pair in sorted.windows(2) {
                let middle = f64::midpoint(pair[0], pair[1]);
                for v in [
                    middle,
                    middle * (1.0 + 1e-15),
                    middle * (1.0 - 1e-15),
                    middle * (1.0 + 1e-7),
                    middle * (1.0 - 1e-7),
                ] {
                    data.push(Scalar::from_f64(from, v));
                }
            }
            let n = data.len();
            let args = [Array::new(from, &[n], data)];
            let case = Case {
                what: format!("Convert {from} {to} near ties"),
                kind: Kind::Convert,
                inputs: vec![0],
                results: vec![Type::new(to, &[n])],
                near: Near::Same,
            };
            report.check(&[case], &args);
        }
        for to in INTEGERS {
            let ends = [lowest(to).to_f64(), highest(to).to_f64(), highest(to).to_f64() + 1.0, 0.0];
            let data: Vec<Scalar> = ends
                .iter()
                .flat_map(|&e| [e, e + 0.5, e - 0.5, e + 1.0, e - 1.0, e * (1.0 + 1e-7), e * (1.0 - 1e-7), e * 1e9])
                .chain([f64::NAN, f64::INFINITY, f64::NEG_INFINITY])
                .map(|v| Scalar::from_f64(from, v))
                .collect();
            let n = data.len();
            let args = [Array::new(from, &[n], data)];
            let case = Case {
                what: format!("Convert {from} {to} near ends"),
                kind: Kind::Convert,
                inputs: vec![0],
                results: vec![Type::new(to, &[n])],
                near: Near::Same,
            };
            report.check(&[case], &args);
        }
    }
    report.finish();
}

pub fn powers_divisions_and_precisions() {
    let mut report = Report::default();
    let mut rng = Rng(5);
    for d in rounded().filter(|d| !d.is_bool()) {
        let args = [if d.is_complex() { tame(&mut rng, d) } else { values(&mut rng, d, N) }];
        let near = |d: DType| match d {
            d if d.is_complex() => Near::Norm(64.0),
            _ => Near::Same,
        };
        let mut cases: Vec<Case> = [0, 1, 2, 3, 4, 5, 7, 13, -1, -2, -3, -7]
            .into_iter()
            .filter(|n| *n >= 0 || d.is_inexact())
            .map(|n| case(format!("{d} ** {n}"), Kind::IntegerPow(n), &[0], d, near(d)))
            .collect();
        if d.is_float() {
            for (exponent_bits, mantissa_bits) in [(8, 23), (5, 10), (8, 7), (4, 3), (2, 0), (1, 3), (11, 52), (6, 30)]
            {
                let kind = Kind::ReducePrecision { exponent_bits, mantissa_bits };
                cases.push(case(format!("{kind:?} {d}"), kind, &[0], d, Near::Same));
            }
        }
        if matches!(d, DType::I32 | DType::U32) {
            for by in [2i64, 3, 7, 641, 1 << 20, i64::from(i32::MAX)] {
                for part in [DivisionPart::Quotient, DivisionPart::Remainder, DivisionPart::Floor, DivisionPart::Modulo]
                {
                    let kind = Kind::DivideBy(Division { by, part });
                    cases.push(case(format!("{kind:?} {d}"), kind, &[0], d, Near::Same));
                }
            }
        }
        report.check(&cases, &args);
    }
    report.finish();
}

pub fn bits() {
    let mut report = Report::default();
    let mut rng = Rng(6);
    for from in numbers() {
        let cases: Vec<(Vec<usize>, Vec<Case>)> = [vec![6, 8], vec![3, 8], vec![2, 3, 4, 8], vec![2], vec![5, 1, 2]]
            .into_iter()
            .map(|shape| {
                let results = numbers().filter_map(|to| cast_shape(&shape, from, to).map(|s| Type::new(to, &s)));
                let cases = results
                    .map(|ty| Case {
                        what: format!("Bitcast {from}{shape:?} to {}{:?}", ty.dtype, ty.shape),
                        kind: Kind::Bitcast,
                        inputs: vec![0],
                        results: vec![ty],
                        near: Near::Same,
                    })
                    .collect();
                (shape, cases)
            })
            .collect();
        for (shape, cases) in cases {
            let args = [Array::random(&mut rng, from, &shape)];
            report.check(&cases, &args);
        }
    }
    report.finish();
}

fn cast_shape(shape: &[usize], from: DType, to: DType) -> Option<Vec<usize>> {
    if to.is_bool() && !from.is_bool() {
        // Bytes other than 0 and 1 are no elements.
        return None;
    }
    let (a, b) = (from.bits(), to.bits());
    if a == 128 && b < 8 {
        // The CPU engine loses the bits of these.
        return None;
    }
    if a == b && a < 8 && from != to {
        // The CPU engine copies the bytes, whose upper bits are those of the other format.
        return None;
    }
    let mut shape = shape.to_vec();
    if a > b {
        shape.push(a / b);
    } else if b > a && shape.pop() != Some(b / a) {
        return None;
    }
    Some(shape)
}
