//! Conversions between dtypes, and of bits, as expressions of CUDA C.
//!
//! What rounds, rounds once, to the nearest. Floats to integers truncate and saturate and NaN gives 0; integers wrap;
//! anything to `bool` is `x != 0`; complex to real drops the imaginary part.

use super::types::{c_type, compute, is_narrow, literal, narrowed, signed, unsigned, widened, wrapped};
use ferrax_base::{DType, Result, bail};
use ferrax_loops::kind::{highest, lowest};

/// x as another dtype.
pub fn convert(x: &str, from: DType, to: DType) -> Result<String> {
    if from == to {
        return Ok(x.to_owned());
    }
    let number = |d: DType| d.is_number() || d.is_bool();
    if !number(from) || !number(to) {
        bail!(Type, "cannot convert {from} to {to}");
    }
    Ok(match (from, to) {
        (_, DType::Bool) if from.is_complex() => format!("(unsigned char)({x}.re != 0 || {x}.im != 0)"),
        _ if from.is_complex() && to.is_complex() => {
            let part = c_type(to.real());
            format!("{}_of(({part}){x}.re, ({part}){x}.im)", c_type(to))
        }
        _ if from.is_complex() => convert(&format!("{x}.re"), from.real(), to)?,
        _ if to.is_complex() => format!("{}_of({}, 0)", c_type(to), convert(x, from, to.real())?),
        (_, DType::Bool) => format!("(unsigned char)({} != 0)", widened(from, x)),
        _ if from.is_float() && to.is_float() => float(x, from, to),
        _ if from.is_float() => saturated(x, from, to),
        _ if to.is_float() => from_integer(x, from, to),
        _ => wrapped(to, x),
    })
}

fn float(x: &str, from: DType, to: DType) -> String {
    if from == DType::F64 && is_narrow(to) {
        return narrowed(to, &format!("fx_odd({x})"));
    }
    narrowed(to, &format!("({})({})", c_type(compute(to)), widened(from, x)))
}

fn from_integer(x: &str, from: DType, to: DType) -> String {
    // Floats of 8 bits are rounded from single precision, as the embedded engine does.
    if matches!(to, DType::F16 | DType::BF16) && from.size() >= 4 {
        let wide = if from.is_signed() { "long long" } else { "unsigned long long" };
        return narrowed(to, &format!("fx_odd(({wide}){x})"));
    }
    narrowed(to, &format!("({}){x}", c_type(compute(to))))
}

fn saturated(x: &str, from: DType, to: DType) -> String {
    let (t, f) = (c_type(to), c_type(compute(from)));
    let value_bits = to.bits() - usize::from(to.is_signed());
    let end = 2f64.powi(value_bits as i32);
    let low = if to.is_signed() { -end } else { 0.0 };
    let (least, most) = (literal(lowest(to)), literal(highest(to)));
    format!("fx_saturate<{t}>({}, ({f}){low:.1}, ({f}){end:.1}, {least}, {most})", widened(from, x))
}

/// The bits of an element, as an unsigned integer of its width; of complex numbers of 16 bytes those of a part.
fn raw(x: &str, d: DType, part: usize) -> String {
    match d {
        DType::F32 | DType::F64 => format!("fx_bits({x})"),
        DType::C64 => format!("((unsigned long long)fx_bits({x}.im) << 32 | fx_bits({x}.re))"),
        DType::C128 => format!("fx_bits({x}.{})", ["re", "im"][part]),
        d if d.bits() < 8 => format!("({x} & {})", (1 << d.bits()) - 1),
        d => format!("({}){x}", unsigned(d)),
    }
}

/// An element of these bits; those of complex numbers of 16 bytes are two words.
fn of_raw(words: &[String], d: DType) -> String {
    let bits = &words[0];
    match d {
        DType::Bool => format!("(unsigned char)(({bits}) != 0)"),
        DType::F32 => format!("fx_single((unsigned)({bits}))"),
        DType::F64 => format!("fx_double({bits})"),
        DType::C64 => format!("fx_c64_of(fx_single((unsigned)({bits})), fx_single((unsigned)(({bits}) >> 32)))"),
        DType::C128 => format!("fx_c128_of(fx_double({bits}), fx_double({}))", words[1]),
        d if d.is_integer() => {
            wrapped(d, &format!("({})({bits})", if d.size() == 8 { "long long" } else { signed(d) }))
        }
        d if d.bits() < 8 => format!("(unsigned char)(({bits}) & {})", (1 << d.bits()) - 1),
        d => format!("({})({bits})", c_type(d)),
    }
}

/// An element of the same bits, of a dtype of the same width.
pub fn same_bits(x: &str, from: DType, to: DType) -> String {
    if from.size() == 16 {
        return of_raw(&[raw(x, from, 0), raw(x, from, 1)], to);
    }
    of_raw(&[raw(x, from, 0)], to)
}

/// The part with number `at` (an expression) of the bits of an element of a wider dtype.
pub fn part_of_bits(x: &str, at: &str, from: DType, to: DType) -> String {
    let (wide, bits) = (from.bits(), to.bits());
    let words: Vec<String> = (0..from.size().div_ceil(8)).map(|part| raw(x, from, part)).collect();
    let chosen = match &words[..] {
        [low, high] => format!("(({at}) * {bits} >= 64 ? {high} : {low})"),
        _ => words[0].clone(),
    };
    let shifted = format!("((unsigned long long){chosen} >> (({at}) * {bits} & {}))", wide.min(64) - 1);
    of_raw(&[if bits < 64 { format!("({shifted} & {}ull)", (1u64 << bits) - 1) } else { shifted }], to)
}

/// An element made of the bits of several of a narrower dtype, the lowest first.
pub fn joined_bits(parts: &[String], from: DType, to: DType) -> String {
    let bits = from.bits();
    let word = |parts: &[String]| {
        let of = |(i, x): (usize, &String)| format!("(unsigned long long){} << {}", raw(x, from, 0), i * bits);
        format!("({})", parts.iter().enumerate().map(of).collect::<Vec<_>>().join(" | "))
    };
    let per_word = (64 / bits).min(parts.len());
    of_raw(&parts.chunks(per_word).map(word).collect::<Vec<_>>(), to)
}
