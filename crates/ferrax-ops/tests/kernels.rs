//! Every kernel lowering, run by the CPU engine, against the reference of its block.

mod support;

use ferrax_base::{Aval, DType, ErrorKind, Scalar};
use ferrax_ir::reference::RefTensor;
use ferrax_ir::{Def, OpRef, Params};
use ferrax_ops::*;
use support::{assert_close, run, tolerance};

const FLOATS: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];
const INTEGERS: [DType; 8] =
    [DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64];
const COMPLEX: [DType; 2] = [DType::C64, DType::C128];

const REALS: [f64; 24] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    0.25,
    1.5,
    -1.5,
    2.5,
    -2.5,
    3.25,
    -3.25,
    0.1,
    -0.1,
    0.9,
    10.0,
    -10.0,
    1e-3,
    30.0,
    7.75,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];
const WHOLE: [i64; 12] = [0, 1, 2, 3, 5, 7, -1, -2, -7, 100, i64::MAX, i64::MIN];

/// `n` numbers of a dtype, a different selection for each `salt`.
fn sample(dtype: DType, shape: &[usize], salt: usize) -> RefTensor {
    let aval = Aval::new(dtype, shape);
    let step = [1, 5, 7, 11][salt % 4];
    let real = |i: usize| REALS[(i * step + salt * 3) % REALS.len()];
    let number = |i: usize| match dtype {
        DType::Bool => Scalar::from_bool((i * step + salt).is_multiple_of(3)),
        d if d.is_complex() => {
            let finite = |k: usize| REALS[(k * step + salt) % (REALS.len() - 3)];
            Scalar::from_complex(d, finite(i), finite(i / 2 + 3))
        }
        d if d.is_float() => Scalar::from_f64(d, real(i)),
        d => {
            let v = WHOLE[(i * step + salt * 5) % WHOLE.len()];
            let small = if v == i64::MAX {
                (1i64 << (d.bits() - 1)).wrapping_sub(1)
            } else if v == i64::MIN {
                1i64 << (d.bits() - 1)
            } else {
                v
            };
            Scalar::from_i64(d, small)
        }
    };
    let data = (0..aval.size()).map(number).collect();
    RefTensor { aval, data }
}

fn check(op: &OpRef, args: &[RefTensor], rtol: f64) {
    let name = format!("{} {:?}", op.name(), args.iter().map(|a| a.aval.to_string()).collect::<Vec<_>>());
    let got = match run(op, args) {
        Err(e) if matches!(*e.0, ErrorKind::NotImplemented(_)) => return,
        got => got.unwrap_or_else(|e| panic!("{name}: {e}")),
    };
    let avals: Vec<Aval> = got.iter().map(|g| g.aval.clone()).collect();
    let want = op.reference(args, &avals).unwrap_or_else(|e| panic!("{name}: {e}"));
    for (g, w) in got.iter().zip(&want) {
        assert_close(&name, g, w, args, rtol);
    }
}

fn op<P: Params>(def: &'static Def<P>, params: P) -> OpRef {
    OpRef::new(def, params)
}

fn unary(defs: &[&'static Def<()>], dtypes: &[DType]) {
    for def in defs {
        for &d in dtypes {
            for shape in [&[][..], &[24], &[5, 12], &[0, 3]] {
                check(&def.op(), &[sample(d, shape, 0)], tolerance(d));
            }
        }
    }
}

fn binary(defs: &[&'static Def<()>], dtypes: &[DType]) {
    for def in defs {
        for &d in dtypes {
            for (a, b) in [
                (&[][..], &[][..]),
                (&[150], &[150]),
                (&[30], &[]),
                (&[], &[30]),
                (&[4, 1], &[4, 24]),
                (&[5, 24], &[1, 24]),
            ] {
                check(&def.op(), &[sample(d, a, 0), sample(d, b, 1)], tolerance(d));
            }
        }
    }
}

#[test]
fn unary_functions_of_floats() {
    unary(
        &[
            &NEG, &SIGN, &FLOOR, &CEIL, &IS_FINITE, &EXP, &EXP2, &LOG, &EXPM1, &LOG1P, &TANH, &LOGISTIC, &SIN, &COS,
            &TAN, &ASIN, &ACOS, &ATAN, &SINH, &COSH, &ASINH, &ACOSH, &ATANH, &SQRT, &RSQRT, &CBRT, &SQUARE, &ABS,
        ],
        &FLOATS,
    );
}

#[test]
fn special_functions() {
    unary(&[&ERF, &ERFC, &ERF_INV, &LGAMMA, &DIGAMMA], &FLOATS);
}

#[test]
fn unary_functions_of_complex_numbers() {
    unary(
        &[
            &NEG, &SIGN, &EXP, &EXP2, &LOG, &EXPM1, &LOG1P, &TANH, &LOGISTIC, &SIN, &COS, &TAN, &ASIN, &ACOS, &ATAN,
            &SINH, &COSH, &ASINH, &ACOSH, &ATANH, &SQRT, &RSQRT, &SQUARE, &ABS, &REAL, &IMAG,
        ],
        &COMPLEX,
    );
}

#[test]
fn unary_functions_of_integers() {
    unary(&[&NEG, &SIGN, &SQUARE, &NOT, &POPULATION_COUNT, &CLZ], &INTEGERS);
    unary(&[&ABS], &INTEGERS[..4]);
    unary(&[&NOT], &[DType::Bool]);
}

#[test]
fn arithmetic() {
    let mut numbers: Vec<DType> = FLOATS.to_vec();
    numbers.extend(INTEGERS);
    binary(&[&REM], &numbers);
    binary(&[&MAX, &MIN], &[&numbers[..], &[DType::Bool, DType::C64]].concat());
    numbers.extend(COMPLEX);
    binary(&[&ADD, &SUB, &MUL, &DIV], &numbers);
    binary(&[&POW, &ATAN2, &NEXTAFTER], &FLOATS);
}

#[test]
fn bits() {
    binary(&[&AND, &OR, &XOR], &[&INTEGERS[..], &[DType::Bool]].concat());
    binary(&[&SHIFT_LEFT, &SHIFT_RIGHT_ARITHMETIC, &SHIFT_RIGHT_LOGICAL, &MULHI], &INTEGERS);
}

#[test]
fn comparisons() {
    let ordered = [&FLOATS[..], &INTEGERS, &[DType::Bool]].concat();
    binary(&[&LT, &LE, &GT, &GE, &LT_TO, &LE_TO], &ordered);
    binary(&[&EQ, &NE, &EQ_TO], &[&ordered[..], &COMPLEX].concat());
}

#[test]
fn parameters() {
    for d in FLOATS {
        let x = sample(d, &[48], 0);
        for rounding_method in [0, 1] {
            check(&op(&ROUND, Round { rounding_method }), std::slice::from_ref(&x), 0.0);
        }
        for y in [-3, -1, 0, 1, 2, 3, 5] {
            check(&op(&INTEGER_POW, IntegerPow { y }), std::slice::from_ref(&x), tolerance(d));
        }
        for (exponent_bits, mantissa_bits) in [(5, 10), (8, 7), (4, 3), (8, 23), (11, 52), (2, 0)] {
            check(
                &op(&REDUCE_PRECISION, ReducePrecision { exponent_bits, mantissa_bits }),
                std::slice::from_ref(&x),
                0.0,
            );
        }
        check(&op(&CONJ, Conj { input_dtype: DType::C64 }), &[sample(DType::C64, &[20], 0)], 0.0);
    }
    check(&op(&CONJ, Conj { input_dtype: DType::F32 }), &[sample(DType::F32, &[20], 0)], 0.0);
    check(&COMPLEX_OP.op(), &[sample(DType::F32, &[20], 0), sample(DType::F32, &[20], 1)], 0.0);
}

use ferrax_ops::COMPLEX as COMPLEX_OP;

#[test]
fn conversions() {
    let all = [&FLOATS[..], &INTEGERS, &COMPLEX, &[DType::Bool, DType::I4, DType::U4, DType::F8E4M3FN, DType::F8E5M2]]
        .concat();
    for &from in &all {
        for &to in &all {
            if from.is_complex() && !to.is_complex() {
                continue;
            }
            let mut x = sample(from, &[24], 0);
            if from.is_inexact() && !to.is_inexact() {
                x.data.retain(|s| s.to_f64().abs() < 100.0);
                x.aval.shape[0] = x.data.len();
            }
            let p = ConvertElementType { new_dtype: to, weak_type: false };
            check(&op(&CONVERT_ELEMENT_TYPE, p), &[x], 0.0);
        }
    }
    for (from, to, shape) in [
        (DType::F32, DType::I32, &[3, 4][..]),
        (DType::F32, DType::U8, &[3, 4]),
        (DType::U8, DType::F32, &[3, 4]),
        (DType::F64, DType::U32, &[3]),
        (DType::BF16, DType::I16, &[7]),
    ] {
        check(&op(&BITCAST_CONVERT_TYPE, BitcastConvertType { new_dtype: to }), &[sample(from, shape, 0)], 0.0);
    }
}

#[test]
fn choices() {
    for d in [DType::F32, DType::I8, DType::C128, DType::Bool, DType::F16] {
        let (x, y, z) = (sample(d, &[40], 0), sample(d, &[40], 1), sample(d, &[40], 2));
        check(&SELECT_N.op(), &[sample(DType::Bool, &[40], 0), x.clone(), y.clone()], 0.0);
        check(&SELECT_N.op(), &[sample(DType::Bool, &[], 0), x.clone(), y.clone()], 0.0);
        check(&SELECT_N.op(), &[sample(DType::I32, &[40], 0), x.clone(), y.clone(), z.clone()], 0.0);
        if !d.is_complex() {
            check(&CLAMP.op(), &[x.clone(), y.clone(), z.clone()], 0.0);
            check(&CLAMP.op(), &[sample(d, &[], 3), y.clone(), z.clone()], 0.0);
        }
        check(&COPY.op(), std::slice::from_ref(&x), 0.0);
        check(&STOP_GRADIENT.op(), std::slice::from_ref(&x), 0.0);
        check(&OPTIMIZATION_BARRIER.op(), &[x.clone(), y], 0.0);
    }
}

#[test]
fn shapes() {
    use smallvec::smallvec;
    for d in [DType::F32, DType::I8, DType::C128, DType::Bool, DType::F16] {
        let x = sample(d, &[2, 3, 4], 0);
        check(&op(&RESHAPE, Reshape { new_sizes: smallvec![4, 6] }), std::slice::from_ref(&x), 0.0);
        check(&op(&REV, Rev { dimensions: smallvec![0, 2] }), std::slice::from_ref(&x), 0.0);
        check(&op(&TILE, Tile { reps: smallvec![2, 1, 3] }), std::slice::from_ref(&x), 0.0);
        check(&op(&SQUEEZE, Squeeze { dimensions: smallvec![1] }), &[sample(d, &[2, 1, 4], 0)], 0.0);
        for axis in 0..3 {
            check(&op(&UNSTACK, Stack { axis }), std::slice::from_ref(&x), 0.0);
            check(&op(&STACK, Stack { axis }), &[x.clone(), sample(d, &[2, 3, 4], 1)], 0.0);
        }
    }
    for dtype in [DType::F32, DType::I32, DType::U8, DType::C64] {
        check(&op(&IOTA, Iota { dimension: 1, dtype, shape: smallvec![3, 5] }), &[], 0.0);
    }
}

/// As `sample`, without infinities and NaN, which make the order of additions visible.
fn tame(dtype: DType, shape: &[usize], salt: usize) -> RefTensor {
    let mut x = sample(dtype, shape, salt);
    for s in &mut x.data {
        if dtype.is_float() && !s.to_f64().is_finite() {
            *s = Scalar::from_f64(dtype, 0.75);
        }
    }
    x
}

#[test]
fn reductions() {
    use smallvec::smallvec;
    let numbers = [&FLOATS[..], &INTEGERS, &COMPLEX].concat();
    for axes in [smallvec![0], smallvec![1], smallvec![0, 2], smallvec![0, 1, 2]] {
        for &d in &numbers {
            let x = tame(d, &[3, 5, 4], 0);
            let rtol = 10.0 * tolerance(d);
            check(&op(&REDUCE_PROD, Reduction { axes: axes.clone() }), std::slice::from_ref(&x), rtol);
            if !d.is_complex() {
                let x = sample(d, &[3, 5, 4], 0);
                check(&op(&REDUCE_MAX, Reduction { axes: axes.clone() }), std::slice::from_ref(&x), 0.0);
                check(&op(&REDUCE_MIN, Reduction { axes: axes.clone() }), std::slice::from_ref(&x), 0.0);
            }
        }
        for d in [DType::Bool, DType::I32, DType::U8] {
            for def in [&REDUCE_AND, &REDUCE_OR, &REDUCE_XOR] {
                check(&op(def, Reduction { axes: axes.clone() }), &[sample(d, &[3, 5, 4], 0)], 0.0);
            }
        }
    }
    for &d in &[&FLOATS[..], &INTEGERS, &[DType::Bool]].concat() {
        for axis in 0..2 {
            for x in [sample(d, &[4, 7], 0), tame(d, &[4, 7], 1)] {
                let p = ArgReduction { axes: smallvec![axis], index_dtype: DType::I32 };
                check(&op(&ARGMAX, p.clone()), std::slice::from_ref(&x), 0.0);
                check(&op(&ARGMIN, p), &[x], 0.0);
            }
        }
    }
}

#[test]
fn running_reductions() {
    for &d in &[&FLOATS[..], &INTEGERS].concat() {
        for (axis, reverse) in [(0, false), (1, true), (1, false)] {
            let x = tame(d, &[4, 6], 2);
            let p = Cumulative { axis, reverse };
            for def in [&CUMSUM, &CUMPROD, &CUMMAX, &CUMMIN] {
                check(&op(def, p.clone()), std::slice::from_ref(&x), 20.0 * tolerance(d));
            }
            if d.is_float() {
                check(&op(&CUMLOGSUMEXP, p), &[x], 20.0 * tolerance(d));
            }
        }
    }
}

#[test]
fn windows() {
    use smallvec::smallvec;
    let windows = [
        Window::new(&[2, 3]),
        Window { padding: smallvec![(1, 0), (2, 1)], window_strides: smallvec![2, 1], ..Window::new(&[2, 2]) },
        Window { base_dilation: smallvec![2, 1], window_dilation: smallvec![1, 2], ..Window::new(&[3, 2]) },
    ];
    for d in [DType::F32, DType::I32, DType::F16] {
        for w in &windows {
            for def in [&REDUCE_WINDOW_SUM, &REDUCE_WINDOW_MAX, &REDUCE_WINDOW_MIN] {
                check(&op(def, w.clone()), &[tame(d, &[4, 6], 0)], 10.0 * tolerance(d));
            }
        }
    }
}
