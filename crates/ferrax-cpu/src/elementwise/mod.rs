//! Kernels of the elementwise nodes, found by one match over operation and dtype.
//!
//! There are kernels for `bool`, the 8 to 64-bit integers, f32, f64, c64 and c128. The narrow formats
//! (bf16, f16, float8, int4, …) are computed in f32 or an 8-bit integer between two conversions, which
//! [`resolve`] plans. Semantics are said at each operation in `ferrax_loops::kind`.
//! Read next: `math` for the functions, `fused/blocks.rs` for how kernels are run block by block.

pub mod convert;
pub mod kernel;

use crate::math::complex::{self, Complex};
use crate::math::integer::{divisions, divisor};
use crate::math::{double, single, special};
use ferrax_base::{Buffer, DType, Result, bail};
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{BinaryOp, Division, DivisionPart, Kind, UnaryOp};
use kernel::{Kernel, by_size, complex1, complex2, map1, map1_imm, map2, map3, plain1, plain2, tile1, tile2};

/// How to compute an elementwise node: operands to the compute dtype, the kernel, and the result back.
#[derive(Clone, Copy)]
pub struct Plan {
    /// The loop.
    pub kernel: Kernel,
    /// Its immediate.
    pub imm: u64,
    /// From the operands' dtype to the one the kernel takes, where they differ (not applied to predicates).
    pub widen: Option<Kernel>,
    /// Bytes of an element after `widen`.
    pub wide_size: usize,
    /// From what the kernel gives to the result's dtype.
    pub narrow: Option<Kernel>,
    /// Bytes of an element that the kernel gives.
    pub raw_size: usize,
    /// Operands before this one are not widened (the predicate of a select).
    pub first_wide: usize,
}

impl Plan {
    fn simple(kernel: Kernel, x: DType, out: DType) -> Plan {
        Plan { kernel, imm: 0, widen: None, wide_size: x.size(), narrow: None, raw_size: out.size(), first_wide: 0 }
    }
}

impl Plan {
    /// Applies a plan of one operand to `n` elements at `x`, in a fresh buffer.
    pub fn run_whole(&self, x: *const u8, n: usize, out: DType) -> Result<Buffer> {
        let mut result = Buffer::allocate(n * out.size())?;
        let mut ptr = x;
        let mut wide = None;
        // SAFETY: callers pass n elements of the dtype the plan was made for.
        unsafe {
            if let Some(widen) = self.widen {
                let buffer = wide.insert(Buffer::allocate(n * self.wide_size)?);
                widen(&raw const ptr, buffer.as_mut_ptr(), n, 0);
                ptr = buffer.as_ptr();
            }
            match self.narrow {
                None => (self.kernel)(&raw const ptr, result.as_mut_ptr(), n, self.imm),
                Some(narrow) => {
                    let mut raw = Buffer::allocate(n * self.raw_size)?;
                    (self.kernel)(&raw const ptr, raw.as_mut_ptr(), n, self.imm);
                    let src = raw.as_ptr();
                    narrow(&raw const src, result.as_mut_ptr(), n, 0);
                }
            }
        }
        Ok(result)
    }
}

/// The dtype in which elements of a dtype are computed.
pub const fn compute_dtype(d: DType) -> DType {
    match d {
        DType::I2 | DType::I4 => DType::I8,
        DType::U2 | DType::U4 => DType::U8,
        DType::F64 => DType::F64,
        d if d.is_float() => DType::F32,
        d => d,
    }
}

#[cold]
fn missing<T>(what: &dyn std::fmt::Debug, d: DType) -> Result<T> {
    bail!(NotImplemented, "the CPU engine has no {what:?} for {d}")
}

/// The plan for an elementwise node with operands of dtype `x` (a select's cases) and result dtype `out`.
pub fn resolve(kind: &Kind, operands: usize, first: DType, x: DType, out: DType) -> Result<Plan> {
    match kind {
        Kind::Unary(op) => unary(*op, x, out),
        Kind::Binary(op) => binary(*op, x, out),
        Kind::Compare(op) => compare(*op, x),
        Kind::Select => Ok(select(operands - 1, first, x)),
        Kind::Clamp => clamp(x),
        Kind::IntegerPow(n) => integer_pow(*n, x),
        Kind::DivideBy(division) => divide_by(*division, x),
        Kind::Convert => convert::plan(x, out),
        Kind::ReducePrecision { exponent_bits, mantissa_bits } => {
            let c = compute_dtype(x);
            let kernel = match c {
                DType::F32 => map1_imm!(p, v: f32 => f32, single::reduce_precision(v, p)),
                DType::F64 => map1_imm!(p, v: f64 => f64, double::reduce_precision(v, p)),
                _ => return missing(kind, x),
            };
            let imm = u64::from(*exponent_bits) | u64::from(*mantissa_bits) << 32;
            Ok(Plan { imm, ..through(kernel, x, c, x) })
        }
        other => missing(other, x),
    }
}

/// A plan that widens `x` to `compute` and narrows the kernel's result (of `out`'s compute dtype) to `out`.
fn through(kernel: Kernel, x: DType, compute: DType, out: DType) -> Plan {
    let raw = compute_dtype(out);
    Plan {
        widen: (x != compute).then(|| convert::widen(x)),
        wide_size: compute.size(),
        narrow: (out != raw).then(|| convert::narrow(out)),
        raw_size: raw.size(),
        ..Plan::simple(kernel, x, out)
    }
}

/// The plan of a unary operation.
#[inline]
pub fn unary(op: UnaryOp, x: DType, out: DType) -> Result<Plan> {
    if x == DType::F32
        && let Some(k) = unary_f32(op)
    {
        return Ok(Plan::simple(k, x, out));
    }
    let c = compute_dtype(x);
    let kernel = match c {
        DType::F32 => unary_f32(op),
        DType::F64 => unary_f64(op),
        DType::C64 => unary_c64(op),
        DType::C128 => unary_c128(op),
        DType::Bool => match op {
            UnaryOp::Not => Some(map1!(v: u8 => u8, v ^ 1)),
            UnaryOp::Sign | UnaryOp::Abs => Some(map1!(v: u8 => u8, v)),
            _ => None,
        },
        DType::I8 => unary_i8(op),
        DType::I16 => unary_i16(op),
        DType::I32 => unary_i32(op),
        DType::I64 => unary_i64(op),
        DType::U8 => unary_u8(op),
        DType::U16 => unary_u16(op),
        DType::U32 => unary_u32(op),
        DType::U64 => unary_u64(op),
        _ => None,
    };
    let Some(kernel) = kernel else { return missing(&op, x) };
    let mut plan = through(kernel, x, c, out);
    if c != x && c.is_integer() && matches!(op, UnaryOp::PopulationCount | UnaryOp::CountLeadingZeros) {
        // The sign bits above the value do not count.
        plan.widen = Some(convert::zero_extend(x));
        plan.kernel = if op == UnaryOp::PopulationCount {
            plan.kernel
        } else if x.bits() == 4 {
            map1!(v: u8 => u8, (v.leading_zeros() - 4) as u8)
        } else {
            map1!(v: u8 => u8, (v.leading_zeros() - 6) as u8)
        };
    }
    Ok(plan)
}

/// The plan of a binary operation.
#[inline]
pub fn binary(op: BinaryOp, x: DType, out: DType) -> Result<Plan> {
    if x == DType::F32
        && let Some(k) = binary_f32(op)
    {
        return Ok(Plan::simple(k, x, out));
    }
    if op == BinaryOp::Nextafter && matches!(x, DType::F16 | DType::BF16) {
        let k = if x == DType::F16 {
            plain2!(a, b: u16 => u16, special::nextafter16::<0x7c00>(a, b))
        } else {
            plain2!(a, b: u16 => u16, special::nextafter16::<0x7f80>(a, b))
        };
        return Ok(Plan::simple(k, x, out));
    }
    let c = compute_dtype(x);
    let kernel = match c {
        DType::F32 => binary_f32(op),
        DType::F64 => binary_f64(op),
        DType::C64 => binary_c64(op),
        DType::C128 => binary_c128(op),
        DType::Bool => match op {
            BinaryOp::Add | BinaryOp::Max | BinaryOp::Or => Some(map2!(a, b: u8 => u8, a | b)),
            BinaryOp::Mul | BinaryOp::Min | BinaryOp::And => Some(map2!(a, b: u8 => u8, a & b)),
            BinaryOp::Xor | BinaryOp::Sub => Some(map2!(a, b: u8 => u8, a ^ b)),
            _ => None,
        },
        DType::I8 => binary_i8(op),
        DType::I16 => binary_i16(op),
        DType::I32 => binary_i32(op),
        DType::I64 => binary_i64(op),
        DType::U8 => binary_u8(op),
        DType::U16 => binary_u16(op),
        DType::U32 => binary_u32(op),
        DType::U64 => binary_u64(op),
        _ => None,
    };
    let Some(kernel) = kernel else { return missing(&op, x) };
    let mut plan = through(kernel, x, c, out);
    if c != x && c.is_integer() {
        narrow_shift(op, x, &mut plan);
    }
    Ok(plan)
}

/// Shifts of sub-byte integers: amounts compare with the narrow width, and logical shifts see no sign bits.
fn narrow_shift(op: BinaryOp, x: DType, plan: &mut Plan) {
    use BinaryOp::*;
    if !matches!(op, ShiftLeft | ShiftRightArithmetic | ShiftRightLogical) {
        return;
    }
    // An arithmetic shift repeats the top bit, whatever the type's sign.
    let arithmetic = op == ShiftRightArithmetic;
    let signed = if x.bits() == 4 { DType::I4 } else { DType::I2 };
    plan.widen = Some(if arithmetic { convert::widen(signed) } else { convert::zero_extend(x) });
    plan.kernel = match (op, x.bits()) {
        (ShiftLeft, 4) => map2!(a, b: u8 => u8, if b < 4 { a << b } else { 0 }),
        (ShiftLeft, _) => map2!(a, b: u8 => u8, if b < 2 { a << b } else { 0 }),
        (_, 4) if arithmetic => map2!(a, b: i8 => i8, a >> if (b as u8) < 4 { b } else { 7 }),
        (_, _) if arithmetic => map2!(a, b: i8 => i8, a >> if (b as u8) < 2 { b } else { 7 }),
        (_, 4) => map2!(a, b: u8 => u8, if b < 4 { a >> b } else { 0 }),
        (_, _) => map2!(a, b: u8 => u8, if b < 2 { a >> b } else { 0 }),
    };
}

/// Kernels (or the machine's handlers, by the macros given) of a float type's functions of one operand.
macro_rules! float_unary {
    ($name:ident: $Out:ty, $T:ident, $m:ident, $map:ident, $tile:ident) => {
        fn $name(op: UnaryOp) -> Option<$Out> {
            use UnaryOp::*;
            Some(match op {
                Neg => $map!(x: $T => $T, -x),
                Sign => $map!(x: $T => $T, if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { x }),
                Abs => $map!(x: $T => $T, x.abs()),
                Floor => $map!(x: $T => $T, x.floor()),
                Ceil => $map!(x: $T => $T, x.ceil()),
                RoundAway => $map!(x: $T => $T, $m::round_away(x)),
                RoundEven => $map!(x: $T => $T, x.round_ties_even()),
                IsFinite => $map!(x: $T => u8, u8::from(x.is_finite())),
                Exp => $tile!($T, $m::exp_all),
                Exp2 => $map!(x: $T => $T, $m::exp2::<F>(x)),
                Expm1 => $map!(x: $T => $T, $m::expm1::<F>(x)),
                Log => $map!(x: $T => $T, $m::log::<F>(x)),
                Log1p => $map!(x: $T => $T, $m::log1p::<F>(x)),
                Sqrt => $map!(x: $T => $T, x.sqrt()),
                Rsqrt => $map!(x: $T => $T, 1.0 / x.sqrt()),
                Cbrt => $map!(x: $T => $T, $m::cbrt::<F>(x)),
                Sin => $tile!($T, $m::sin_all),
                Cos => $tile!($T, $m::cos_all),
                Tan => $tile!($T, $m::tan_all),
                Asin => $map!(x: $T => $T, $m::asin::<F>(x)),
                Acos => $map!(x: $T => $T, $m::acos::<F>(x)),
                Atan => $map!(x: $T => $T, $m::atan::<F>(x)),
                Sinh => $map!(x: $T => $T, $m::sinh::<F>(x)),
                Cosh => $map!(x: $T => $T, $m::cosh::<F>(x)),
                Tanh => $tile!($T, $m::tanh_all),
                Asinh => $map!(x: $T => $T, $m::asinh::<F>(x)),
                Acosh => $map!(x: $T => $T, $m::acosh::<F>(x)),
                Atanh => $map!(x: $T => $T, $m::atanh::<F>(x)),
                Logistic => $tile!($T, $m::logistic_all),
                Erf => $map!(x: $T => $T, $m::erf::<F>(x)),
                Erfc => $map!(x: $T => $T, $m::erfc::<F>(x)),
                ErfInv => $map!(x: $T => $T, $m::erf_inv::<F>(x)),
                Lgamma => $tile!($T, $m::lgamma_all),
                Digamma => $tile!($T, $m::digamma_all),
                BesselI0e => $map!(x: $T => $T, $m::bessel_i0e::<F>(x)),
                BesselI1e => $map!(x: $T => $T, $m::bessel_i1e::<F>(x)),
                Real => $map!(x: $T => $T, x),
                Imag => $map!(x: $T => $T, 0.0 * x),
                Conj => $map!(x: $T => $T, x),
                Not | PopulationCount | CountLeadingZeros => return None,
            })
        }
    };
}
pub(crate) use float_unary;
float_unary!(unary_f32: Kernel, f32, single, map1, tile1);
float_unary!(unary_f64: Kernel, f64, double, map1, tile1);

macro_rules! complex_unary {
    ($name:ident, $T:ident, $abs:expr) => {
        fn $name(op: UnaryOp) -> Option<Kernel> {
            use UnaryOp::*;
            type C = Complex<$T>;
            Some(match op {
                Neg => map1!(x: C => C, C::new(-x.re, -x.im)),
                Sign => complex1!(C, sign),
                Abs => $abs,
                IsFinite => plain1!(x: C => u8, u8::from(x.re.is_finite() && x.im.is_finite())),
                Exp => complex1!(C, exp),
                Exp2 => plain1!(x: C => C, complex::exp2(x)),
                Expm1 => complex1!(C, expm1),
                Log => complex1!(C, log),
                Log1p => complex1!(C, log1p),
                Sqrt => complex1!(C, sqrt),
                Rsqrt => complex1!(C, rsqrt),
                Cbrt => complex1!(C, cbrt),
                Sin => complex1!(C, sin),
                Cos => complex1!(C, cos),
                Tan => complex1!(C, tan),
                Asin => complex1!(C, asin),
                Acos => complex1!(C, acos),
                Atan => complex1!(C, atan),
                Sinh => complex1!(C, sinh),
                Cosh => complex1!(C, cosh),
                Tanh => complex1!(C, tanh),
                Asinh => complex1!(C, asinh),
                Acosh => complex1!(C, acosh),
                Atanh => complex1!(C, atanh),
                Logistic => plain1!(x: C => C, complex::logistic(x)),
                Real => map1!(x: C => $T, x.re),
                Imag => map1!(x: C => $T, x.im),
                Conj => map1!(x: C => C, C::new(x.re, -x.im)),
                _ => return None,
            })
        }
    };
}
complex_unary!(unary_c64, f32, map1!(z: Complex<f32> => f32, complex::abs32::<F>(z)));
complex_unary!(unary_c128, f64, map1!(z: Complex<f64> => f64, complex::abs(z)));

/// As `float_unary`, for an integer type.
macro_rules! integer_unary {
    ($name:ident: $Out:ty, $T:ident, $map:ident, $abs:expr, $sign:expr) => {
        fn $name(op: UnaryOp) -> Option<$Out> {
            use UnaryOp::*;
            Some(match op {
                Neg => $map!(x: $T => $T, x.wrapping_neg()),
                Sign => $map!(x: $T => $T, $sign(x)),
                Abs => $map!(x: $T => $T, $abs(x)),
                Not => $map!(x: $T => $T, !x),
                PopulationCount => $map!(x: $T => $T, x.count_ones() as $T),
                CountLeadingZeros => $map!(x: $T => $T, x.leading_zeros() as $T),
                _ => return None,
            })
        }
    };
}
pub(crate) use integer_unary;
integer_unary!(unary_i8: Kernel, i8, map1, i8::wrapping_abs, i8::signum);
integer_unary!(unary_i16: Kernel, i16, map1, i16::wrapping_abs, i16::signum);
integer_unary!(unary_i32: Kernel, i32, map1, i32::wrapping_abs, i32::signum);
integer_unary!(unary_i64: Kernel, i64, map1, i64::wrapping_abs, i64::signum);
integer_unary!(unary_u8: Kernel, u8, map1, std::convert::identity, |x| u8::from(x != 0));
integer_unary!(unary_u16: Kernel, u16, map1, std::convert::identity, |x| u16::from(x != 0));
integer_unary!(unary_u32: Kernel, u32, map1, std::convert::identity, |x| u32::from(x != 0));
integer_unary!(unary_u64: Kernel, u64, map1, std::convert::identity, |x| u64::from(x != 0));

/// As `float_unary`, for functions of two operands.
macro_rules! float_binary {
    ($name:ident: $Out:ty, $T:ident, $m:ident, $map:ident, $tile:ident, $long:ident, $complex:expr) => {
        fn $name(op: BinaryOp) -> Option<$Out> {
            use BinaryOp::{Complex as Pair, *};
            Some(match op {
                Add => $map!(x, y: $T => $T, x + y),
                Sub => $map!(x, y: $T => $T, x - y),
                Mul => $map!(x, y: $T => $T, x * y),
                Div => $map!(x, y: $T => $T, x / y),
                Rem => $tile!($T, $m::rem_all),
                Pow => $tile!($T, $m::pow_all),
                Max => $map!(x, y: $T => $T, $m::max(x, y)),
                Min => $map!(x, y: $T => $T, $m::min(x, y)),
                Atan2 => $map!(x, y: $T => $T, $m::atan2::<F>(x, y)),
                Nextafter => $map!(x, y: $T => $T, $m::nextafter(x, y)),
                Pair => return $complex,
                Igamma => $long!($T, $m::igamma_all),
                Igammac => $long!($T, $m::igammac_all),
                Zeta => $long!($T, $m::zeta_all),
                Polygamma => $long!($T, $m::polygamma_all),
                _ => return None,
            })
        }
    };
}
pub(crate) use float_binary;
float_binary!(binary_f32: Kernel, f32, single, map2, tile2, tile2, Some(complex_f32()));
float_binary!(binary_f64: Kernel, f64, double, map2, tile2, tile2, Some(complex_f64()));

fn complex_f32() -> Kernel {
    map2!(x, y: f32 => Complex<f32>, Complex::new(x, y))
}

fn complex_f64() -> Kernel {
    map2!(x, y: f64 => Complex<f64>, Complex::new(x, y))
}

macro_rules! complex_binary {
    ($name:ident, $T:ident) => {
        fn $name(op: BinaryOp) -> Option<Kernel> {
            use BinaryOp::*;
            type C = crate::math::complex::Complex<$T>;
            Some(match op {
                Add => map2!(x, y: C => C, C::new(x.re + y.re, x.im + y.im)),
                Sub => map2!(x, y: C => C, C::new(x.re - y.re, x.im - y.im)),
                Mul => map2!(x, y: C => C, C::new(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re)),
                Div => complex2!(C, div),
                Pow => complex2!(C, pow),
                Max => map2!(x, y: C => C, complex::max(x, y)),
                Min => map2!(x, y: C => C, complex::min(x, y)),
                _ => return None,
            })
        }
    };
}
complex_binary!(binary_c64, f32);
complex_binary!(binary_c128, f64);

macro_rules! wrapping_pow {
    ($T:ident, $x:expr, $n:expr) => {{
        let (mut base, mut n, mut acc): ($T, u64, $T) = ($x, $n, 1);
        while n > 0 {
            if n & 1 == 1 {
                acc = acc.wrapping_mul(base);
            }
            base = base.wrapping_mul(base);
            n >>= 1;
        }
        acc
    }};
}

pub(crate) use wrapping_pow;

/// As `float_binary`, for an integer type; `$U` and `$S` are its unsigned and signed kin, `$divide` makes divisions.
macro_rules! integer_binary {
    ($name:ident: $Out:ty, $T:ident, $U:ident, $S:ident, $map:ident, $plain:ident, $divide:ident) => {
        fn $name(op: BinaryOp) -> Option<$Out> {
            use BinaryOp::*;
            Some(match op {
                Add => $map!(x, y: $T => $T, x.wrapping_add(y)),
                Sub => $map!(x, y: $T => $T, x.wrapping_sub(y)),
                Mul => $map!(x, y: $T => $T, x.wrapping_mul(y)),
                Div => $divide!(x, y: $T => $T, $crate::math::integer::Quotient::quotient(x, y)),
                Rem => $divide!(x, y: $T => $T, $crate::math::integer::Quotient::remainder(x, y)),
                Pow => $plain!(x, y: $T => $T, {
                    #[allow(unused_comparisons)]
                    let negative = y < 0;
                    if !negative {
                        wrapping_pow!($T, x, y as u64)
                    } else if x == 1 || (x.wrapping_add(1) == 0 && y & 1 == 0) {
                        1
                    } else if x.wrapping_add(1) == 0 {
                        x
                    } else if x == 0 {
                        !0
                    } else {
                        0
                    }
                }),
                Max => $map!(x, y: $T => $T, x.max(y)),
                Min => $map!(x, y: $T => $T, x.min(y)),
                And => $map!(x, y: $T => $T, x & y),
                Or => $map!(x, y: $T => $T, x | y),
                Xor => $map!(x, y: $T => $T, x ^ y),
                ShiftLeft => $map!(x, y: $T => $T, $crate::math::integer::Shifted::left(x, y)),
                ShiftRightArithmetic => $map!(x, y: $T => $T, $crate::math::integer::Shifted::right(x, y)),
                ShiftRightLogical => $map!(x, y: $T => $T, $crate::math::integer::Shifted::right_logical(x, y)),
                _ => return None,
            })
        }
    };
}
pub(crate) use integer_binary;
integer_binary!(binary_i8: Kernel, i8, u8, i8, map2, plain2, map2);
integer_binary!(binary_i16: Kernel, i16, u16, i16, map2, plain2, map2);
integer_binary!(binary_i32: Kernel, i32, u32, i32, map2, plain2, map2);
integer_binary!(binary_i64: Kernel, i64, u64, i64, map2, plain2, plain2);
integer_binary!(binary_u8: Kernel, u8, u8, i8, map2, plain2, map2);
integer_binary!(binary_u16: Kernel, u16, u16, i16, map2, plain2, map2);
integer_binary!(binary_u32: Kernel, u32, u32, i32, map2, plain2, map2);
integer_binary!(binary_u64: Kernel, u64, u64, i64, map2, plain2, plain2);

/// Kernels (or handlers, by the macro given) of the comparisons of a type; `$kx` and `$ky` order totally.
macro_rules! comparisons {
    ($map:ident, $op:expr, $T:ty, $x:ident, $y:ident, $kx:expr, $ky:expr) => {
        match $op {
            CompareOp::Eq => $map!($x, $y: $T => u8, u8::from($x == $y)),
            CompareOp::Ne => $map!($x, $y: $T => u8, u8::from($x != $y)),
            CompareOp::Lt => $map!($x, $y: $T => u8, u8::from($x < $y)),
            CompareOp::Le => $map!($x, $y: $T => u8, u8::from($x <= $y)),
            CompareOp::Gt => $map!($x, $y: $T => u8, u8::from($x > $y)),
            CompareOp::Ge => $map!($x, $y: $T => u8, u8::from($x >= $y)),
            CompareOp::LtTotal => $map!($x, $y: $T => u8, u8::from($kx < $ky)),
            CompareOp::LeTotal => $map!($x, $y: $T => u8, u8::from($kx <= $ky)),
            CompareOp::EqTotal => $map!($x, $y: $T => u8, u8::from($kx == $ky)),
        }
    };
}
pub(crate) use comparisons;

macro_rules! complex_comparisons {
    ($op:expr, $T:ident) => {{
        type C = Complex<$T>;
        match $op {
            CompareOp::Eq | CompareOp::EqTotal => map2!(x, y: C => u8, u8::from(x.re == y.re && x.im == y.im)),
            CompareOp::Ne => map2!(x, y: C => u8, u8::from(x.re != y.re || x.im != y.im)),
            CompareOp::Lt | CompareOp::LtTotal => map2!(x, y: C => u8, u8::from(complex::less(x, y))),
            CompareOp::Le | CompareOp::LeTotal => map2!(x, y: C => u8, u8::from(!complex::less(y, x))),
            CompareOp::Gt => map2!(x, y: C => u8, u8::from(complex::less(y, x))),
            CompareOp::Ge => map2!(x, y: C => u8, u8::from(!complex::less(x, y))),
        }
    }};
}

/// The plan of a comparison of operands of dtype `x`.
#[inline]
pub fn compare(op: CompareOp, x: DType) -> Result<Plan> {
    let c = compute_dtype(x);
    let kernel = match c {
        DType::F32 => comparisons!(map2, op, f32, a, b, single::total_key(a), single::total_key(b)),
        DType::F64 => comparisons!(map2, op, f64, a, b, double::total_key(a), double::total_key(b)),
        DType::C64 => complex_comparisons!(op, f32),
        DType::C128 => complex_comparisons!(op, f64),
        DType::I8 => comparisons!(map2, op, i8, a, b, a, b),
        DType::I16 => comparisons!(map2, op, i16, a, b, a, b),
        DType::I32 => comparisons!(map2, op, i32, a, b, a, b),
        DType::I64 => comparisons!(map2, op, i64, a, b, a, b),
        DType::U8 | DType::Bool | DType::Float0 => comparisons!(map2, op, u8, a, b, a, b),
        DType::U16 => comparisons!(map2, op, u16, a, b, a, b),
        DType::U32 => comparisons!(map2, op, u32, a, b, a, b),
        _ => comparisons!(map2, op, u64, a, b, a, b),
    };
    Ok(through(kernel, x, c, DType::Bool))
}

/// `$on_true` where the predicate, an unsigned integer of their size, is 1, `$on_false` where it is 0. A conditional would have the
/// optimizer choose between the operands' addresses.
macro_rules! blend {
    ($which:expr, $on_false:expr, $on_true:expr) => {
        $on_false ^ (($on_false ^ $on_true) & $which.wrapping_neg())
    };
}
pub(crate) use blend;

/// The plan of a select of `cases` cases of dtype `x`.
#[inline]
pub fn select(cases: usize, which: DType, x: DType) -> Plan {
    let kernel = match (which, cases) {
        (DType::Bool, 2) => match x.size() {
            1 => map3!(p: u8, a, b: u8 => u8, blend!(u8::from(p != 0), a, b)),
            2 => map3!(p: u8, a, b: u16 => u16, blend!(u16::from(p != 0), a, b)),
            4 => map3!(p: u8, a, b: u32 => u32, blend!(u32::from(p != 0), a, b)),
            8 => map3!(p: u8, a, b: u64 => u64, blend!(u64::from(p != 0), a, b)),
            _ => map3!(p: u8, a, b: [u64; 2] => [u64; 2], {
                let which = u64::from(p != 0);
                [blend!(which, a[0], b[0]), blend!(which, a[1], b[1])]
            }),
        },
        _ => by_size!(x.size(), T => match which {
            DType::U8 | DType::Bool => select_n::<T, u8> as Kernel,
            DType::U16 => select_n::<T, u16>,
            DType::U32 => select_n::<T, u32>,
            DType::U64 => select_n::<T, u64>,
            _ => match which.size() {
                1 => select_n::<T, i8> as Kernel,
                2 => select_n::<T, i16>,
                4 => select_n::<T, i32>,
                _ => select_n::<T, i64>,
            },
        }),
    };
    Plan { imm: cases as u64, first_wide: 1, ..Plan::simple(kernel, x, x) }
}

/// Picks among `imm` cases by an index that clamps.
unsafe fn select_n<T: Copy, I: Copy + TryInto<i64>>(xs: *const *const u8, out: *mut u8, n: usize, imm: u64) {
    for i in 0..n {
        // SAFETY: the caller keeps the contract of `Kernel`; the case index is clamped to the cases.
        unsafe {
            let which = (*(*xs).cast::<I>().add(i)).try_into().unwrap_or(i64::MAX);
            let case = *xs.add(1 + which.clamp(0, imm as i64 - 1) as usize);
            *out.cast::<T>().add(i) = *case.cast::<T>().add(i);
        }
    }
}

macro_rules! clamp_of {
    ($T:ty, $max:path, $min:path) => {
        map3!(lo: $T, x, hi: $T => $T, $min($max(x, lo), hi))
    };
}

/// NaN does not win in the order of complex numbers: XLA takes the upper bound first.
macro_rules! clamp_complex {
    ($T:ty) => {
        map3!(lo: complex::Complex<$T>, x, hi: complex::Complex<$T> => complex::Complex<$T>, complex::max(complex::min(x, hi), lo))
    };
}

/// The plan of a clamp: operands are the lower bound, the values and the upper bound.
#[inline]
pub fn clamp(x: DType) -> Result<Plan> {
    let c = compute_dtype(x);
    let kernel = match c {
        DType::F32 => clamp_of!(f32, single::max, single::min),
        DType::F64 => clamp_of!(f64, double::max, double::min),
        DType::I8 => clamp_of!(i8, i8::max, i8::min),
        DType::I16 => clamp_of!(i16, i16::max, i16::min),
        DType::I32 => clamp_of!(i32, i32::max, i32::min),
        DType::I64 => clamp_of!(i64, i64::max, i64::min),
        DType::U8 | DType::Bool => clamp_of!(u8, u8::max, u8::min),
        DType::U16 => clamp_of!(u16, u16::max, u16::min),
        DType::U32 => clamp_of!(u32, u32::max, u32::min),
        DType::U64 => clamp_of!(u64, u64::max, u64::min),
        DType::C64 => clamp_complex!(f32),
        DType::C128 => clamp_complex!(f64),
        _ => return missing(&Kind::Clamp, x),
    };
    Ok(through(kernel, x, c, x))
}

/// Integer powers of a float type by repeated multiplication.
macro_rules! float_power {
    ($T:ident, $n:expr, $map:ident, $imm:ident) => {
        match $n {
            0 => $map!(_x: $T => $T, 1.0),
            1 => $map!(x: $T => $T, x),
            2 => $map!(x: $T => $T, x * x),
            3 => $map!(x: $T => $T, x * x * x),
            4 => $map!(x: $T => $T, { let y = x * x; y * y }),
            -1 => $map!(x: $T => $T, 1.0 / x),
            -2 => $map!(x: $T => $T, 1.0 / (x * x)),
            _ => $imm!(imm, x: $T => $T, {
                let power = imm as i32;
                let (mut base, mut acc, mut k) = (x, 1.0, power.unsigned_abs());
                while k > 0 {
                    if k & 1 == 1 {
                        acc *= base;
                    }
                    base *= base;
                    k >>= 1;
                }
                if power < 0 { 1.0 / acc } else { acc }
            }),
        }
    };
}

pub(crate) use float_power;

/// Integer powers of an integer type.
macro_rules! integer_power {
    ($T:ident, $imm:ident) => {
        $imm!(imm, x: $T => $T, wrapping_pow!($T, x, imm))
    };
}
pub(crate) use integer_power;

/// The plan of a division by a constant.
fn divide_by(division: Division, x: DType) -> Result<Plan> {
    let kernel = match x {
        DType::I32 => divisions!(i32, divide_i32, division.part, map1_imm),
        DType::U32 => divisions!(u32, divide_u32, division.part, map1_imm),
        _ => return missing(&division, x),
    };
    Ok(Plan { imm: divisor(x.is_signed(), division.by), ..Plan::simple(kernel, x, x) })
}

/// The plan of `x ** n` for a constant integer `n`.
pub fn integer_pow(n: i32, x: DType) -> Result<Plan> {
    let c = compute_dtype(x);
    if n < 0 && c.is_integer() {
        bail!(Type, "integer_pow with the negative exponent {n} needs an inexact dtype, not {x}");
    }
    let kernel = match c {
        DType::F32 => float_power!(f32, n, map1, map1_imm),
        DType::F64 => float_power!(f64, n, map1, map1_imm),
        DType::C64 if n == -1 => complex1!(Complex<f32>, recip),
        DType::C128 if n == -1 => complex1!(Complex<f64>, recip),
        DType::C64 => map1_imm!(imm, x: Complex<f32> => Complex<f32>, complex::powi(x, imm as i32)),
        DType::C128 => map1_imm!(imm, x: Complex<f64> => Complex<f64>, complex::powi(x, imm as i32)),
        DType::I8 => integer_power!(i8, map1_imm),
        DType::I16 => integer_power!(i16, map1_imm),
        DType::I32 => integer_power!(i32, map1_imm),
        DType::I64 => integer_power!(i64, map1_imm),
        DType::U8 => integer_power!(u8, map1_imm),
        DType::U16 => integer_power!(u16, map1_imm),
        DType::U32 => integer_power!(u32, map1_imm),
        DType::U64 => integer_power!(u64, map1_imm),
        _ => return missing(&Kind::IntegerPow(n), x),
    };
    Ok(Plan { imm: if n < 0 { n as u32 as u64 } else { n as u64 }, ..through(kernel, x, c, x) })
}
