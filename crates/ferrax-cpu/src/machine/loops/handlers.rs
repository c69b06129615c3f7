//! Handlers of register loops for what is not one instruction: they work on register 0, with register 1 as a second
//! operand, and leave the others as they are. Expressions are those of `elementwise.rs`, so bits are the same as in
//! every other path. The first operand field of an instruction says how many lanes are of use. Rules for the jump at
//! the end are those of `machine/handler.rs`.

use super::super::handler::{Handler, Lane, function, jump};
use super::super::table::{self, Lanes};
use crate::elementwise::{
    comparisons, float_binary, float_power, float_unary, integer_binary, integer_power, integer_unary, wrapping_pow,
};
use crate::math::integer::{divisions, divisor};
use crate::math::{single, special};
use ferrax_base::DType;
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{BinaryOp, DivisionPart, Kind, UnaryOp};

/// Compiles a body over the lanes of registers 0 and 1 for every instruction set.
macro_rules! on_registers {
    (|$pc:ident, $x:ident, $y:ident| $body:block) => {{
        use $crate::machine::handler::Instr;
        #[inline(always)]
        #[allow(unused_variables, unused_unsafe, clippy::needless_range_loop)]
        unsafe fn body<const F: bool, const N: usize>($pc: *const Instr, $x: &mut [u32; N], $y: &[u32; N]) {
            // SAFETY: the instruction is there.
            unsafe { $body }
        }
        $crate::machine::handler::sets!([variant] body)
    }};
}

macro_rules! variant {
    ($name:ident, $V:ty, $abi:literal, $features:literal, $body:ident) => {
        function!($name, $V, $abi, $features, |pc, p, o, e, start, a| {
            let mut x: [u32; size_of::<$V>() / 4] = core::mem::transmute(a[0]);
            let y: [u32; size_of::<$V>() / 4] = core::mem::transmute(a[1]);
            $body::<true, _>(pc, &mut x, &y);
            a[0] = core::mem::transmute::<[u32; size_of::<$V>() / 4], $V>(x);
            jump!($V, pc.add(1), p, o, e, start, a)
        });
    };
}

macro_rules! map {
    ($x:ident: $T:ty => $R:ty, $e:expr) => {
        on_registers!(|pc, lanes, other| {
            for i in 0..N {
                let $x: $T = Lane::get(lanes[i]);
                let r: $R = $e;
                lanes[i] = Lane::put(r);
            }
        })
    };
}

macro_rules! map_imm {
    ($imm:ident, $x:ident: $T:ty => $R:ty, $e:expr) => {
        on_registers!(|pc, lanes, other| {
            let $imm = (*pc).imm;
            for i in 0..N {
                let $x: $T = Lane::get(lanes[i]);
                let r: $R = $e;
                lanes[i] = Lane::put(r);
            }
        })
    };
}

macro_rules! pair {
    ($x:ident, $y:ident: $T:ty => $R:ty, $e:expr) => {
        on_registers!(|pc, lanes, other| {
            for i in 0..N {
                let $x: $T = Lane::get(lanes[i]);
                let $y: $T = Lane::get(other[i]);
                let r: $R = $e;
                lanes[i] = Lane::put(r);
            }
        })
    };
}

/// As `map`, for functions that take lanes one by one: of a scalar, which all lanes hold, one is enough.
macro_rules! plain {
    ($x:ident: $T:ty => $R:ty, $e:expr) => {
        on_registers!(|pc, lanes, other| {
            for i in 0..((*pc).p as usize).min(N) {
                let $x: $T = Lane::get(lanes[i]);
                let r: $R = $e;
                lanes[i] = Lane::put(r);
            }
            if (*pc).p == 1 {
                *lanes = [lanes[0]; N];
            }
        })
    };
}

macro_rules! plain_pair {
    ($x:ident, $y:ident: $T:ty => $R:ty, $e:expr) => {
        on_registers!(|pc, lanes, other| {
            for i in 0..((*pc).p as usize).min(N) {
                let $x: $T = Lane::get(lanes[i]);
                let $y: $T = Lane::get(other[i]);
                let r: $R = $e;
                lanes[i] = Lane::put(r);
            }
            if (*pc).p == 1 {
                *lanes = [lanes[0]; N];
            }
        })
    };
}

/// Functions of tiles.
macro_rules! tile {
    ($T:ident, $m:ident::$f:ident) => {
        on_registers!(|pc, lanes, other| {
            let (mut x, mut y): ([$T; N], [$T; N]) = ([0.0; N], [0.0; N]);
            for i in 0..N {
                x[i] = f32::from_bits(lanes[i]);
            }
            $m::$f::<F, false, N>(&x, &mut y);
            for i in 0..N {
                lanes[i] = y[i].to_bits();
            }
        })
    };
}

float_unary!(unary_f32: Handler, f32, single, map, plain, tile);
float_binary!(binary_f32: Handler, f32, single, pair, plain_pair, None);
integer_unary!(unary_i32: Handler, i32, map, i32::wrapping_abs, i32::signum);
integer_unary!(unary_u32: Handler, u32, map, std::convert::identity, |x| u32::from(x != 0));
integer_binary!(binary_i32: Handler, i32, u32, i32, pair, plain_pair, pair);
integer_binary!(binary_u32: Handler, u32, u32, i32, pair, plain_pair, pair);

/// The lanes of a dtype of which the loops' registers hold an element each.
pub fn lanes(d: DType) -> Option<Lanes> {
    table::lanes(d).filter(|_| d.size() == 4 || d.is_bool())
}

/// f(x) of register 0.
pub fn unary(op: UnaryOp, d: DType) -> Option<Handler> {
    match lanes(d)? {
        _ if d.is_bool() => None,
        Lanes::F32 => unary_f32(op),
        Lanes::I32 => unary_i32(op),
        Lanes::U32 => unary_u32(op),
    }
}

/// f(x, y) of registers 0 and 1.
pub fn binary(op: BinaryOp, d: DType) -> Option<Handler> {
    match lanes(d)? {
        _ if d.is_bool() => None,
        Lanes::F32 => binary_f32(op),
        Lanes::I32 => binary_i32(op),
        Lanes::U32 => binary_u32(op),
    }
}

/// A comparison of registers 0 and 1; gives 0 or 1.
pub fn compare(op: CompareOp, d: DType) -> Option<Handler> {
    Some(match lanes(d)? {
        Lanes::F32 => comparisons!(pair, op, f32, a, b, single::total_key(a), single::total_key(b)),
        Lanes::I32 => comparisons!(pair, op, i32, a, b, a, b),
        Lanes::U32 => comparisons!(pair, op, u32, a, b, a, b),
    })
}

/// A node of one operand that is neither of these, with its immediate.
pub fn other(kind: &Kind, from: DType, to: DType) -> Option<(Handler, u64)> {
    let of = lanes(from)?;
    lanes(to)?;
    let imm = match kind {
        Kind::IntegerPow(n) if *n < 0 => u64::from(*n as u32),
        Kind::IntegerPow(n) => *n as u64,
        Kind::ReducePrecision { exponent_bits, mantissa_bits } => {
            u64::from(*exponent_bits) | u64::from(*mantissa_bits) << 32
        }
        Kind::DivideBy(division) => divisor(from.is_signed(), division.by),
        _ => 0,
    };
    let handler = match (kind, of) {
        (Kind::DivideBy(division), Lanes::I32) => divisions!(i32, divide_i32, division.part, map_imm),
        (Kind::DivideBy(division), Lanes::U32) => divisions!(u32, divide_u32, division.part, map_imm),
        (Kind::IntegerPow(n), Lanes::F32) => float_power!(f32, *n, map, map_imm),
        (Kind::IntegerPow(n), _) if *n < 0 || from.is_bool() => return None,
        (Kind::IntegerPow(_), Lanes::I32) => integer_power!(i32, map_imm),
        (Kind::IntegerPow(_), Lanes::U32) => integer_power!(u32, map_imm),
        (Kind::ReducePrecision { .. }, Lanes::F32) => map_imm!(p, v: f32 => f32, single::reduce_precision(v, p)),
        (Kind::Convert, _) => convert(of, to)?,
        _ => return None,
    };
    Some((handler, imm))
}

/// Conversions that change lanes.
#[allow(clippy::unnecessary_cast)]
fn convert(of: Lanes, to: DType) -> Option<Handler> {
    macro_rules! by_target {
        ($T:ty) => {
            match to {
                DType::Bool => map!(x: $T => u8, u8::from(x != (0 as $T))),
                DType::I32 => map!(x: $T => i32, x as i32),
                DType::U32 => map!(x: $T => u32, x as u32),
                DType::F32 => map!(x: $T => f32, x as f32),
                _ => return None,
            }
        };
    }
    Some(match of {
        Lanes::F32 => by_target!(f32),
        Lanes::I32 => by_target!(i32),
        Lanes::U32 => by_target!(u32),
    })
}
