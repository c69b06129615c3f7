//! Elementwise nodes as expressions of CUDA C.
//!
//! Operands are names of registers. Floats of fewer than 32 bits are computed in `float` and rounded once, functions of
//! complex numbers in double precision. Sums, products and quotients go through functions of `device/numbers.cu`, which no
//! compiler contracts into fused ones, so that they have the embedded engine's bits. Read next: `convert.rs`, `device/`.

use super::convert::convert;
use super::types::{c_type, compute, literal, narrowed, signed, unsigned, widened, wrapped};
use ferrax_base::{DType, Result, Scalar, bail};
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{BinaryOp, Division, DivisionPart, Kind, UnaryOp};
use std::fmt::Debug;

#[cold]
fn missing<T>(what: &dyn Debug, d: DType) -> Result<T> {
    bail!(NotImplemented, "the CUDA engine has no {what:?} for {d}")
}

/// What a node computes of operands in registers.
pub fn expression(kind: &Kind, x: &[&str], of: &[DType], out: DType) -> Result<String> {
    match kind {
        Kind::Unary(op) => unary(*op, x[0], of[0]),
        Kind::Binary(op) => binary(*op, x[0], x[1], of[0]),
        Kind::Compare(op) => compare(*op, x[0], x[1], of[0]),
        Kind::Select => Ok(select(x, of[0])),
        Kind::Clamp => clamp(x, of[1]),
        Kind::IntegerPow(n) => integer_pow(*n, x[0], of[0]),
        Kind::DivideBy(division) => divide_by(*division, x[0], of[0]),
        Kind::Convert => convert(x[0], of[0], out),
        Kind::ReducePrecision { exponent_bits, mantissa_bits } if of[0].is_float() => {
            let call = format!("fx_precision({}, {exponent_bits}, {mantissa_bits})", widened(of[0], x[0]));
            Ok(narrowed(of[0], &call))
        }
        other => missing(other, of[0]),
    }
}

fn unary(op: UnaryOp, x: &str, d: DType) -> Result<String> {
    match d {
        DType::Bool => match op {
            UnaryOp::Not => Ok(format!("(unsigned char)({x} ^ 1)")),
            UnaryOp::Sign | UnaryOp::Abs => Ok(x.to_owned()),
            _ => missing(&op, d),
        },
        d if d.is_integer() => integer_unary(op, x, d),
        d if d.is_complex() => complex_unary(op, x, d),
        d if d.is_float() => float_unary(op, x, d),
        _ => missing(&op, d),
    }
}

fn float_unary(op: UnaryOp, x: &str, d: DType) -> Result<String> {
    use UnaryOp::*;
    let (w, t) = (widened(d, x), c_type(compute(d)));
    let name = match op {
        Real | Conj => return Ok(x.to_owned()),
        IsFinite => return Ok(format!("(unsigned char)fx_is_finite({w})")),
        Imag => return Ok(narrowed(d, &format!("fx_mul(({t})0, {w})"))),
        Rsqrt => return Ok(narrowed(d, &format!("fx_div(({t})1, fx_sqrt({w}))"))),
        Neg => "fx_neg",
        Sign => "fx_sign",
        Abs => "fx_abs",
        Floor => "fx_floor",
        Ceil => "fx_ceil",
        RoundAway => "fx_round_away",
        RoundEven => "fx_rint",
        Exp => "fx_exp",
        Exp2 => "fx_exp2",
        Expm1 => "fx_expm1",
        Log => "fx_log",
        Log1p => "fx_log1p",
        Sqrt => "fx_sqrt",
        Cbrt => "fx_cbrt",
        Sin => "fx_sin",
        Cos => "fx_cos",
        Tan => "fx_tan",
        Asin => "fx_asin",
        Acos => "fx_acos",
        Atan => "fx_atan",
        Sinh => "fx_sinh",
        Cosh => "fx_cosh",
        Tanh => "fx_tanh",
        Asinh => "fx_asinh",
        Acosh => "fx_acosh",
        Atanh => "fx_atanh",
        Logistic => "fx_logistic",
        _ => return missing(&op, d),
    };
    Ok(narrowed(d, &format!("{name}({w})")))
}

fn integer_unary(op: UnaryOp, x: &str, d: DType) -> Result<String> {
    use UnaryOp::*;
    let (u, bits) = (unsigned(d), d.bits());
    let negative = || format!("0ull - (unsigned long long){x}");
    Ok(match op {
        Neg => wrapped(d, &negative()),
        Not => wrapped(d, &format!("~{x}")),
        Sign => wrapped(
            d,
            &format!("{x} > 0 ? 1 : {}", if d.is_signed() { format!("{x} < 0 ? -1 : 0") } else { "0".into() }),
        ),
        Abs if d.is_signed() => format!("({x} < 0 ? {} : {x})", wrapped(d, &negative())),
        Abs => x.to_owned(),
        PopulationCount => wrapped(d, &format!("fx_bit_count<{u}, {bits}>({x})")),
        CountLeadingZeros => wrapped(d, &format!("fx_leading_zeros<{u}, {bits}>({x})")),
        _ => return missing(&op, d),
    })
}

fn complex_unary(op: UnaryOp, x: &str, d: DType) -> Result<String> {
    use UnaryOp::*;
    let name = match op {
        Neg => return Ok(format!("fx_c_neg({x})")),
        Conj => return Ok(format!("fx_c_conj({x})")),
        Real => return Ok(format!("{x}.re")),
        Imag => return Ok(format!("{x}.im")),
        IsFinite => return Ok(format!("(unsigned char)(fx_is_finite({x}.re) && fx_is_finite({x}.im))")),
        Abs => return Ok(format!("({})fx_z_abs(fx_wide({x}), {})", c_type(d.real()), d == DType::C64)),
        Sign => "sign",
        Exp => "exp",
        Exp2 => "exp2",
        Expm1 => "expm1",
        Log => "log",
        Log1p => "log1p",
        Sqrt => "sqrt",
        Rsqrt => "rsqrt",
        Cbrt => "cbrt",
        Sin => "sin",
        Cos => "cos",
        Tan => "tan",
        Asin => "asin",
        Acos => "acos",
        Atan => "atan",
        Sinh => "sinh",
        Cosh => "cosh",
        Tanh => "tanh",
        Asinh => "asinh",
        Acosh => "acosh",
        Atanh => "atanh",
        Logistic => "logistic",
        _ => return missing(&op, d),
    };
    Ok(format!("fx_rounded({x}, fx_z_{name}(fx_wide({x})))"))
}

/// What an operation of two operands gives.
pub fn binary(op: BinaryOp, x: &str, y: &str, d: DType) -> Result<String> {
    use BinaryOp::*;
    match d {
        DType::Bool => match op {
            Add | Max | Or => Ok(format!("(unsigned char)({x} | {y})")),
            Mul | Min | And => Ok(format!("(unsigned char)({x} & {y})")),
            Sub | Xor => Ok(format!("(unsigned char)({x} ^ {y})")),
            _ => missing(&op, d),
        },
        d if d.is_integer() => integer_binary(op, x, y, d),
        d if d.is_complex() => complex_binary(op, x, y, d),
        d if d.is_float() => float_binary(op, x, y, d),
        _ => missing(&op, d),
    }
}

fn float_binary(op: BinaryOp, x: &str, y: &str, d: DType) -> Result<String> {
    use BinaryOp::*;
    let (a, b) = (widened(d, x), widened(d, y));
    let name = match op {
        Add => "fx_add",
        Sub => "fx_sub",
        Mul => "fx_mul",
        Div => "fx_div",
        Rem => "fx_fmod",
        Pow => "fx_pow",
        Max => "fx_max",
        Min => "fx_min",
        Atan2 => "fx_atan2",
        Nextafter if d == DType::F16 => return Ok(format!("fx_next_half({x}, {y}, 0x7c00)")),
        Nextafter if d == DType::BF16 => return Ok(format!("fx_next_half({x}, {y}, 0x7f80)")),
        Nextafter => "fx_next",
        Complex => return Ok(format!("{}_of({a}, {b})", c_type(d.to_complex()))),
        _ => return missing(&op, d),
    };
    Ok(narrowed(d, &format!("{name}({a}, {b})")))
}

fn integer_binary(op: BinaryOp, x: &str, y: &str, d: DType) -> Result<String> {
    use BinaryOp::*;
    let (u, s, bits) = (unsigned(d), signed(d), d.bits());
    let word = if d.size() == 8 { "unsigned long long" } else { "unsigned" };
    let plain = |sign: &str| format!("({word}){x} {sign} ({word}){y}");
    let value = match op {
        Add => plain("+"),
        Sub => plain("-"),
        Mul => plain("*"),
        And => plain("&"),
        Or => plain("|"),
        Xor => plain("^"),
        Div => format!("fx_quotient({x}, {y})"),
        Rem => format!("fx_remainder({x}, {y})"),
        Pow => format!("fx_power({x}, {y})"),
        Max => format!("fx_max({x}, {y})"),
        Min => format!("fx_min({x}, {y})"),
        ShiftLeft => format!("fx_shift_left<{u}, {bits}>({x}, {y})"),
        ShiftRightLogical => format!("fx_shift_right<{u}, {bits}>({x}, {y})"),
        ShiftRightArithmetic => format!("fx_shift_sign<{u}, {s}, {bits}>({x}, {y})"),
        _ => return missing(&op, d),
    };
    Ok(wrapped(d, &value))
}

fn complex_binary(op: BinaryOp, x: &str, y: &str, d: DType) -> Result<String> {
    use BinaryOp::*;
    Ok(match op {
        Add => format!("fx_c_add({x}, {y})"),
        Sub => format!("fx_c_sub({x}, {y})"),
        Mul => format!("fx_c_mul({x}, {y})"),
        Div => format!("fx_rounded({x}, fx_z_div(fx_wide({x}), fx_wide({y})))"),
        Pow => format!("fx_rounded({x}, fx_z_pow(fx_wide({x}), fx_wide({y})))"),
        Max => format!("(fx_c_less({y}, {x}) ? {x} : {y})"),
        Min => format!("(fx_c_less({x}, {y}) ? {x} : {y})"),
        _ => return missing(&op, d),
    })
}

fn compare(op: CompareOp, x: &str, y: &str, d: DType) -> Result<String> {
    use CompareOp::*;
    if d.is_key() {
        return missing(&op, d);
    }
    let text = if d.is_complex() {
        match op {
            Eq | EqTotal => format!("fx_c_eq({x}, {y})"),
            Ne => format!("!fx_c_eq({x}, {y})"),
            Lt | LtTotal => format!("fx_c_less({x}, {y})"),
            Gt => format!("fx_c_less({y}, {x})"),
            Le | LeTotal => format!("!fx_c_less({y}, {x})"),
            Ge => format!("!fx_c_less({x}, {y})"),
        }
    } else {
        let (a, b) = (widened(d, x), widened(d, y));
        match op {
            Eq => format!("({a} == {b})"),
            Ne => format!("({a} != {b})"),
            Lt => format!("({a} < {b})"),
            Le => format!("({a} <= {b})"),
            Gt => format!("({a} > {b})"),
            Ge => format!("({a} >= {b})"),
            LtTotal => format!("(fx_total({a}) < fx_total({b}))"),
            LeTotal => format!("(fx_total({a}) <= fx_total({b}))"),
            EqTotal => format!("(fx_total({a}) == fx_total({b}))"),
        }
    };
    Ok(format!("(unsigned char){text}"))
}

fn select(x: &[&str], which: DType) -> String {
    let (at, cases) = (x[0], &x[1..]);
    if which.is_bool() && cases.len() == 2 {
        return format!("({at} ? {} : {})", cases[1], cases[0]);
    }
    let mut text = cases[cases.len() - 1].to_owned();
    for (i, case) in cases[..cases.len() - 1].iter().enumerate().rev() {
        text = format!("({at} <= {i} ? {case} : {text})");
    }
    text
}

fn clamp(x: &[&str], d: DType) -> Result<String> {
    if d.is_complex() {
        let below = complex_binary(BinaryOp::Min, x[1], x[2], d)?;
        return complex_binary(BinaryOp::Max, &below, x[0], d);
    }
    if !(d.is_number() || d.is_bool()) {
        return missing(&Kind::Clamp, d);
    }
    let [low, x, high] = [0, 1, 2].map(|i| widened(d, x[i]));
    Ok(narrowed(d, &format!("fx_min(fx_max({x}, {low}), {high})")))
}

fn integer_pow(n: i32, x: &str, d: DType) -> Result<String> {
    match d {
        d if d.is_float() => Ok(narrowed(d, &format!("fx_repeated({}, {n})", widened(d, x)))),
        d if d.is_complex() => Ok(format!("fx_rounded({x}, fx_z_powi(fx_wide({x}), {n}))")),
        d if d.is_integer() && n >= 0 => Ok(wrapped(d, &format!("fx_repeated_integer({x}, {n})"))),
        d => missing(&Kind::IntegerPow(n), d),
    }
}

fn divide_by(division: Division, x: &str, d: DType) -> Result<String> {
    if !matches!(d, DType::I32 | DType::U32) {
        return missing(&Kind::DivideBy(division), d);
    }
    let name = match division.part {
        DivisionPart::Quotient => "fx_quotient",
        DivisionPart::Remainder => "fx_remainder",
        DivisionPart::Floor => "fx_floor_quotient",
        DivisionPart::Modulo => "fx_modulo",
    };
    Ok(format!("{name}({x}, {})", literal(Scalar::from_i64(d, division.by))))
}
