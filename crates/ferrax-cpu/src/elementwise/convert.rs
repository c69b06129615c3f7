//! Conversions between dtypes, and between the narrow formats and the dtypes they are computed in.
//!
//! What rounds, rounds once, to the nearest. Float to integer truncates and saturates and takes NaN to 0 (Rust's `as`); integers wrap; anything to
//! `bool` is `x != 0`; complex to real drops the imaginary part.

use crate::elementwise::kernel::{Kernel, map1, plain1};
use crate::elementwise::{Plan, compute_dtype};
use crate::math::complex::Complex;
use ferrax_base::list::List;
use ferrax_base::narrow::NarrowFloat;
use ferrax_base::scalar::to_odd;
use ferrax_base::{DType, Result, bail};
use half::f16;
use half::slice::HalfFloatSliceExt;

/// How to convert elements of dtype `from` to `to`.
pub fn plan(from: DType, to: DType) -> Result<Plan> {
    if from.is_key() != to.is_key() || from == DType::Float0 || to == DType::Float0 {
        bail!(Type, "cannot convert {from} to {to}");
    }
    let base = Plan {
        kernel: copy(to.size()),
        imm: 0,
        widen: None,
        wide_size: from.size(),
        narrow: None,
        raw_size: to.size(),
        first_wide: 0,
    };
    if from == to {
        return Ok(base);
    }
    if let Some(kernel) = integer_to_half(from, to) {
        return Ok(Plan { kernel, ..base });
    }
    let (a, b) = (compute_dtype(from), compute_dtype(to));
    let narrow_integer = to.is_integer() && b != to;
    let narrow_float = to.is_float() && b != to;
    let kernel = match from {
        // an odd last bit lets the narrow format round once
        DType::F64 if narrow_float => map1!(x: f64 => f32, to_odd(x)),
        DType::C128 if narrow_float => map1!(x: [f64; 2] => f32, to_odd(x[0])),
        _ if narrow_integer && a.is_inexact() => saturate(a, to),
        _ => wide(a, b),
    };
    Ok(Plan {
        kernel,
        widen: (a != from).then(|| widen(from)),
        wide_size: a.size(),
        narrow: (b != to).then(|| narrow(to)),
        raw_size: b.size(),
        ..base
    })
}

/// A float near the integer that a half format rounds as it does the integer: of the two floats around it the one
/// with an odd last bit, where it is none.
#[inline(always)]
pub fn odd_u32(x: u32) -> f32 {
    let sticky = (x & !0xff) | u32::from(x & 0xff != 0) << 8;
    (if x >> 24 == 0 { x } else { sticky }) as f32
}

/// As `odd_u32`; the bits below the kept ones are a fraction towards zero or away from it alike.
#[inline(always)]
pub fn odd_i32(x: i32) -> f32 {
    let sticky = (x & !0xff) | i32::from(x & 0xff != 0) << 8;
    (if x.unsigned_abs() >> 24 == 0 { x } else { sticky }) as f32
}

/// As `odd_u32`.
fn odd_u64(x: u64) -> f32 {
    let drop = 40u32.saturating_sub(x.leading_zeros());
    let kept = x >> drop << drop;
    (kept | u64::from(kept != x) << drop) as f32
}

/// Integers that f32 does not hold round once on their way to a half format.
fn integer_to_half(from: DType, to: DType) -> Option<Kernel> {
    macro_rules! by_source {
        ($x:ident => $T:ty, $round:expr) => {
            match from {
                DType::U32 => map1!(v: u32 => $T, { let $x = odd_u32(v); $round }),
                DType::I32 => map1!(v: i32 => $T, { let $x = odd_i32(v); $round }),
                DType::U64 => plain1!(v: u64 => $T, { let $x = odd_u64(v); $round }),
                DType::I64 => plain1!(v: i64 => $T, {
                    let $x = odd_u64(v.unsigned_abs()) * if v < 0 { -1.0 } else { 1.0 };
                    $round
                }),
                _ => return None,
            }
        };
    }
    match to {
        DType::BF16 => Some(by_source!(x => u16, bf16_bits(x))),
        DType::F16 => Some(by_source!(x => f16, f16::from_f32(x))),
        _ => None,
    }
}

/// Copies elements of a size.
pub fn copy(size: usize) -> Kernel {
    unsafe fn bytes<const S: usize>(xs: *const *const u8, out: *mut u8, n: usize, _: u64) {
        // SAFETY: the caller keeps the contract of `Kernel`.
        unsafe { std::ptr::copy_nonoverlapping(*xs, out, n * S) }
    }
    match size {
        1 => bytes::<1>,
        2 => bytes::<2>,
        4 => bytes::<4>,
        8 => bytes::<8>,
        _ => bytes::<16>,
    }
}

macro_rules! to_number {
    ($x:ident: $T:ty, $value:expr, $to:expr) => {
        match $to {
            DType::Bool => map1!($x: $T => u8, u8::from($value != (0 as $T))),
            DType::I8 => map1!($x: $T => i8, $value as i8),
            DType::I16 => map1!($x: $T => i16, $value as i16),
            DType::I32 => map1!($x: $T => i32, $value as i32),
            DType::I64 => map1!($x: $T => i64, $value as i64),
            DType::U8 => map1!($x: $T => u8, $value as u8),
            DType::U16 => map1!($x: $T => u16, $value as u16),
            DType::U32 => map1!($x: $T => u32, $value as u32),
            DType::U64 => map1!($x: $T => u64, $value as u64),
            DType::F32 => map1!($x: $T => f32, $value as f32),
            DType::F64 => map1!($x: $T => f64, $value as f64),
            DType::C64 => map1!($x: $T => Complex<f32>, Complex::new($value as f32, 0.0)),
            _ => map1!($x: $T => Complex<f64>, Complex::new($value as f64, 0.0)),
        }
    };
}

macro_rules! from_complex {
    ($T:ident, $to:expr) => {
        match $to {
            DType::Bool => map1!(z: Complex<$T> => u8, u8::from(z.re != 0.0 || z.im != 0.0)),
            DType::C64 => map1!(z: Complex<$T> => Complex<f32>, Complex::new(z.re as f32, z.im as f32)),
            DType::C128 => map1!(z: Complex<$T> => Complex<f64>, Complex::new(z.re as f64, z.im as f64)),
            DType::I8 => map1!(z: Complex<$T> => i8, z.re as i8),
            DType::I16 => map1!(z: Complex<$T> => i16, z.re as i16),
            DType::I32 => map1!(z: Complex<$T> => i32, z.re as i32),
            DType::I64 => map1!(z: Complex<$T> => i64, z.re as i64),
            DType::U8 => map1!(z: Complex<$T> => u8, z.re as u8),
            DType::U16 => map1!(z: Complex<$T> => u16, z.re as u16),
            DType::U32 => map1!(z: Complex<$T> => u32, z.re as u32),
            DType::U64 => map1!(z: Complex<$T> => u64, z.re as u64),
            DType::F32 => map1!(z: Complex<$T> => f32, z.re as f32),
            _ => map1!(z: Complex<$T> => f64, z.re as f64),
        }
    };
}

/// A float as an integer of these bounds, saturating as `as` does, in a form that takes vectors. Bounds are floats.
#[inline(always)]
pub fn within(x: f32, low: f32, high: f32) -> i32 {
    let y = if x > low { x } else { low };
    let y = if y < high { y } else { high };
    // SAFETY: the value is in the range of i32, and NaN became the lowest.
    let y = unsafe { y.to_int_unchecked::<i32>() };
    if x.is_nan() { 0 } else { y }
}

/// `x as i32` in a form that takes vectors.
#[inline(always)]
pub fn to_i32(x: f32) -> i32 {
    if x >= 2_147_483_648.0 { i32::MAX } else { within(x, -2_147_483_648.0, 2_147_483_520.0) }
}

/// Conversions of f32 to integers of 32 bits and fewer, by the macro given: kernels, or the machine's handlers; else `$other`.
macro_rules! saturating {
    ($map:ident, $to:expr, $other:expr) => {{
        use $crate::elementwise::convert::{to_i32, within};
        match $to {
            DType::I8 => $map!(x: f32 => i8, within(x, -128.0, 127.0) as i8),
            DType::I16 => $map!(x: f32 => i16, within(x, -32768.0, 32767.0) as i16),
            DType::I32 => $map!(x: f32 => i32, to_i32(x)),
            DType::U8 => $map!(x: f32 => u8, within(x, 0.0, 255.0) as u8),
            DType::U16 => $map!(x: f32 => u16, within(x, 0.0, 65535.0) as u16),
            _ => $other,
        }
    }};
}
pub(crate) use saturating;

/// Conversion between two dtypes that are computed in themselves.
#[allow(clippy::unnecessary_cast)]
fn wide(from: DType, to: DType) -> Kernel {
    if from == to {
        return copy(to.size());
    }
    match from {
        DType::Bool | DType::U8 => to_number!(x: u8, x, to),
        DType::I8 => to_number!(x: i8, x, to),
        DType::I16 => to_number!(x: i16, x, to),
        DType::I32 => to_number!(x: i32, x, to),
        DType::I64 => to_number!(x: i64, x, to),
        DType::U16 => to_number!(x: u16, x, to),
        DType::U32 => to_number!(x: u32, x, to),
        DType::U64 => to_number!(x: u64, x, to),
        DType::F32 => saturating!(map1, to, to_number!(x: f32, x, to)),
        DType::F64 => to_number!(x: f64, x, to),
        DType::C64 => from_complex!(f32, to),
        _ => from_complex!(f64, to),
    }
}

/// Float to a sub-byte integer's byte, saturating at the narrow range.
fn saturate(from: DType, to: DType) -> Kernel {
    macro_rules! clamped {
        ($T:ty, $x:ident, $value:expr, $lo:literal, $hi:literal, $I:ty) => {
            plain1!($x: $T => $I, $value.clamp($lo, $hi) as $I)
        };
    }
    macro_rules! by_source {
        ($lo:literal, $hi:literal, $I:ty) => {
            match from {
                DType::F32 => clamped!(f32, x, x, $lo, $hi, $I),
                DType::F64 => clamped!(f64, x, x, $lo, $hi, $I),
                DType::C64 => clamped!(Complex<f32>, z, z.re, $lo, $hi, $I),
                _ => clamped!(Complex<f64>, z, z.re, $lo, $hi, $I),
            }
        };
    }
    match to {
        DType::I2 => by_source!(-2.0, 1.0, i8),
        DType::I4 => by_source!(-8.0, 7.0, i8),
        DType::U2 => by_source!(0.0, 3.0, u8),
        _ => by_source!(0.0, 15.0, u8),
    }
}

/// From a narrow dtype to its compute dtype.
pub fn widen(d: DType) -> Kernel {
    match d {
        DType::I2 => map1!(x: i8 => i8, (x << 6) >> 6),
        DType::I4 => map1!(x: i8 => i8, (x << 4) >> 4),
        DType::BF16 => map1!(x: u16 => f32, f32::from_bits(u32::from(x) << 16)),
        DType::F16 => half_to_single,
        DType::F4E2M1FN => table_kernel::<0>,
        DType::F8E3M4 => table_kernel::<1>,
        DType::F8E4M3 => table_kernel::<2>,
        DType::F8E4M3B11FNUZ => table_kernel::<3>,
        DType::F8E4M3FN => table_kernel::<4>,
        DType::F8E4M3FNUZ => table_kernel::<5>,
        DType::F8E5M2 => table_kernel::<6>,
        DType::F8E5M2FNUZ => table_kernel::<7>,
        DType::F8E8M0FNU => table_kernel::<8>,
        other => zero_extend(other),
    }
}

/// A sub-byte integer's value bits as an unsigned byte.
pub fn zero_extend(d: DType) -> Kernel {
    match d.bits() {
        2 => map1!(x: u8 => u8, x & 3),
        4 => map1!(x: u8 => u8, x & 15),
        _ => copy(d.size()),
    }
}

/// From its compute dtype to a narrow dtype.
pub fn narrow(d: DType) -> Kernel {
    match d {
        DType::I2 | DType::I4 | DType::U2 | DType::U4 => match (d.is_signed(), d.bits()) {
            (true, 2) => map1!(x: i8 => i8, (x << 6) >> 6),
            (true, _) => map1!(x: i8 => i8, (x << 4) >> 4),
            _ => zero_extend(d),
        },
        DType::BF16 => map1!(x: f32 => u16, bf16_bits(x)),
        DType::F16 => single_to_half,
        DType::F4E2M1FN => code_kernel::<0>,
        DType::F8E3M4 => code_kernel::<1>,
        DType::F8E4M3 => code_kernel::<2>,
        DType::F8E4M3B11FNUZ => code_kernel::<3>,
        DType::F8E4M3FN => code_kernel::<4>,
        DType::F8E4M3FNUZ => code_kernel::<5>,
        DType::F8E5M2 => code_kernel::<6>,
        DType::F8E5M2FNUZ => code_kernel::<7>,
        DType::F8E8M0FNU => code_kernel::<8>,
        other => copy(other.size()),
    }
}

/// The nearest bfloat16, ties to even; NaN stays NaN.
#[inline(always)]
pub fn bf16_bits(x: f32) -> u16 {
    let b = x.to_bits();
    let rounded = b.wrapping_add(0x7fff + ((b >> 16) & 1)) >> 16;
    (if x.is_nan() { (b >> 16) | 0x40 } else { rounded }) as u16
}

unsafe fn half_to_single(xs: *const *const u8, out: *mut u8, n: usize, _: u64) {
    // SAFETY: the caller keeps the contract of `Kernel`.
    let (x, o) = unsafe {
        let x = std::slice::from_raw_parts((*xs).cast::<f16>(), n);
        (x, std::slice::from_raw_parts_mut(out.cast::<f32>(), n))
    };
    x.convert_to_f32_slice(o);
}

unsafe fn single_to_half(xs: *const *const u8, out: *mut u8, n: usize, _: u64) {
    // SAFETY: the caller keeps the contract of `Kernel`.
    let (x, o) = unsafe {
        let x = std::slice::from_raw_parts((*xs).cast::<f32>(), n);
        (x, std::slice::from_raw_parts_mut(out.cast::<f16>(), n))
    };
    o.convert_from_f32_slice(x);
}

/// The formats that go through a table, in the order of the kernels' parameters.
const TABLED: [DType; 9] = [
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
/// Their tables, one each: two where threads made it at the same time.
static TABLES: [List<[f32; 256]>; 9] = [const { List::new() }; 9];

fn format<const D: usize>() -> NarrowFloat {
    NarrowFloat::of(TABLED[D]).unwrap_or_else(|| unreachable!("every dtype of the list is a narrow float"))
}

unsafe fn table_kernel<const D: usize>(xs: *const *const u8, out: *mut u8, n: usize, _: u64) {
    let made = || TABLES[D].push(std::array::from_fn(|code| format::<D>().to_f32(code as u8)));
    let table = TABLES[D].find(|_| true).unwrap_or_else(made);
    // SAFETY: the caller keeps the contract of `Kernel`.
    let (x, o) = unsafe {
        let x = std::slice::from_raw_parts(*xs, n);
        (x, std::slice::from_raw_parts_mut(out.cast::<f32>(), n))
    };
    for (o, &x) in o.iter_mut().zip(x) {
        *o = table[usize::from(x)];
    }
}

unsafe fn code_kernel<const D: usize>(xs: *const *const u8, out: *mut u8, n: usize, _: u64) {
    let format = format::<D>();
    // SAFETY: the caller keeps the contract of `Kernel`.
    let (x, o) = unsafe {
        let x = std::slice::from_raw_parts((*xs).cast::<f32>(), n);
        (x, std::slice::from_raw_parts_mut(out, n))
    };
    for (o, &x) in o.iter_mut().zip(x) {
        *o = format.from_f32(x);
    }
}

/// Elements of a narrow dtype (or any other) as its compute dtype, in a fresh buffer.
pub fn widened(d: DType, ptr: *const u8, n: usize) -> Result<ferrax_base::Buffer> {
    let mut wide = ferrax_base::Buffer::allocate(n * compute_dtype(d).size())?;
    // SAFETY: the caller's operand holds n elements of `d`; the buffer holds n of the compute dtype.
    unsafe { widen(d)(&raw const ptr, wide.as_mut_ptr(), n, 0) };
    Ok(wide)
}

/// Narrows `n` elements of `d`'s compute dtype.
pub fn narrowed(d: DType, wide: &ferrax_base::Buffer, out: &mut [u8], n: usize) {
    debug_assert!(out.len() >= n * d.size());
    let ptr = wide.as_ptr();
    // SAFETY: `wide` holds n elements of the compute dtype and `out` n of `d`.
    unsafe { narrow(d)(&raw const ptr, out.as_mut_ptr(), n, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_saturate_as_casts_do() {
        let near =
            [127.0, 127.5, 128.0, 255.0, 255.9, 256.0, 32768.0, 65535.5, 65536.0, 2147483520.0, 2147483648.0, 0.5];
        let far = [f32::NAN, f32::INFINITY, 2147483904.0, 1e-45, 0.0];
        let all = (0..1_000_000u32).map(|i| f32::from_bits(i.wrapping_mul(429_496_729)));
        for x in all.chain(near.into_iter().chain(far).flat_map(|x| [x, -x])) {
            assert_eq!(to_i32(x), x as i32, "{x:e}");
            assert_eq!(within(x, -128.0, 127.0) as i8, x as i8, "{x:e}");
            assert_eq!(within(x, -32768.0, 32767.0) as i16, x as i16, "{x:e}");
            assert_eq!(within(x, 0.0, 255.0) as u8, x as u8, "{x:e}");
            assert_eq!(within(x, 0.0, 65535.0) as u16, x as u16, "{x:e}");
        }
    }
}
