//! Handlers of register loops for what is not one instruction: they work on register 0, with register 1 as a second
//! operand, and leave the others as they are. Expressions are those of `elementwise/mod.rs`, so bits are the same as in
//! every other path. The first operand field of an instruction says how many lanes are of use. Rules for the jump at
//! the end are those of `machine/handler.rs`. Here are those for lanes of 4 bytes; `wide.rs` has those for 8.

use super::assemble::PLACE;
use super::families::Width;
use super::wide;
use crate::elementwise::{
    comparisons, float_binary, float_power, float_unary, integer_binary, integer_power, integer_unary, wrapping_pow,
};
use crate::library::random;
use crate::machine::handler::{Handler, Instr, Lane, none};
use crate::math::integer::{divisions, divisor};
use crate::math::single;
use ferrax_base::DType;
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{BinaryOp, DivisionPart, Kind, ReduceOp, UnaryOp};

/// Compiles a body over the lanes of registers 0 and 1 for every instruction set.
macro_rules! on_registers {
    ($L:ty, |$pc:ident, $x:ident, $y:ident| $body:block) => {{
        use $crate::machine::handler::Instr;
        #[inline(always)]
        #[allow(unused_variables, unused_unsafe, clippy::needless_range_loop)]
        unsafe fn body<const F: bool, const N: usize>($pc: *const Instr, $x: &mut [$L; N], $y: &[$L; N]) {
            // SAFETY: the instruction is there.
            unsafe { $body }
        }
        $crate::machine::handler::sets!([$crate::machine::loops::handlers::variant] body, $L)
    }};
}

macro_rules! variant {
    ($name:ident, $V:ty, $abi:literal, $features:literal, $body:ident, $L:ty) => {
        $crate::machine::handler::function!($name, $V, $abi, $features, |pc, p, o, e, start, a| {
            let mut x: [$L; size_of::<$V>() / size_of::<$L>()] = core::mem::transmute(a[0]);
            let y: [$L; size_of::<$V>() / size_of::<$L>()] = core::mem::transmute(a[1]);
            $body::<true, _>(pc, &mut x, &y);
            a[0] = core::mem::transmute::<[$L; size_of::<$V>() / size_of::<$L>()], $V>(x);
            $crate::machine::handler::jump!($V, pc.add(1), p, o, e, start, a)
        });
    };
}

macro_rules! map_of {
    ($L:ty, $x:ident: $T:ty => $R:ty, $e:expr) => {
        $crate::machine::loops::handlers::on_registers!($L, |pc, lanes, other| {
            for i in 0..N {
                let $x: $T = Lane::get(lanes[i]);
                let r: $R = $e;
                lanes[i] = Lane::put(r);
            }
        })
    };
}

macro_rules! map_imm_of {
    ($L:ty, $imm:ident, $x:ident: $T:ty => $R:ty, $e:expr) => {
        $crate::machine::loops::handlers::on_registers!($L, |pc, lanes, other| {
            let $imm = (*pc).imm;
            for i in 0..N {
                let $x: $T = Lane::get(lanes[i]);
                let r: $R = $e;
                lanes[i] = Lane::put(r);
            }
        })
    };
}

macro_rules! pair_of {
    ($L:ty, $x:ident, $y:ident: $T:ty => $R:ty, $e:expr) => {
        $crate::machine::loops::handlers::on_registers!($L, |pc, lanes, other| {
            for i in 0..N {
                let $x: $T = Lane::get(lanes[i]);
                let $y: $T = Lane::get(other[i]);
                let r: $R = $e;
                lanes[i] = Lane::put(r);
            }
        })
    };
}

macro_rules! plain_pair_of {
    ($L:ty, $x:ident, $y:ident: $T:ty => $R:ty, $e:expr) => {
        $crate::machine::loops::handlers::on_registers!($L, |pc, lanes, other| {
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
macro_rules! tile_of {
    ($L:ty, $T:ident, $m:ident::$f:ident) => {
        $crate::machine::loops::handlers::on_registers!($L, |pc, lanes, other| {
            let (mut x, mut y): ([$T; N], [$T; N]) = ([0.0; N], [0.0; N]);
            for i in 0..N {
                x[i] = $T::from_bits(lanes[i]);
            }
            // Tables of 8-byte numbers are in registers where those have 64 bytes, which only AVX-512 has.
            if size_of::<$T>() == 8 && N == 8 {
                $m::$f::<F, true, N>(&x, &mut y);
            } else {
                $m::$f::<F, false, N>(&x, &mut y);
            }
            for i in 0..N {
                lanes[i] = y[i].to_bits();
            }
        })
    };
}

/// Functions of two tiles.
macro_rules! tile_pair_of {
    ($L:ty, $T:ident, $m:ident::$f:ident) => {
        $crate::machine::loops::handlers::on_registers!($L, |pc, lanes, other| {
            let (mut x, mut y, mut r): ([$T; N], [$T; N], [$T; N]) = ([0.0; N], [0.0; N], [0.0; N]);
            for i in 0..N {
                x[i] = $T::from_bits(lanes[i]);
                y[i] = $T::from_bits(other[i]);
            }
            $m::$f::<F, false, N>(&x, &y, &mut r);
            for i in 0..N {
                lanes[i] = r[i].to_bits();
            }
        })
    };
}
pub(super) use {map_imm_of, map_of, on_registers, pair_of, plain_pair_of, tile_of, tile_pair_of, variant};

macro_rules! map {
    ($($t:tt)*) => {
        map_of!(u32, $($t)*)
    };
}
macro_rules! map_imm {
    ($($t:tt)*) => {
        map_imm_of!(u32, $($t)*)
    };
}
macro_rules! pair {
    ($($t:tt)*) => {
        pair_of!(u32, $($t)*)
    };
}
macro_rules! plain_pair {
    ($($t:tt)*) => {
        plain_pair_of!(u32, $($t)*)
    };
}
macro_rules! tile_pair {
    ($($t:tt)*) => {
        tile_pair_of!(u32, $($t)*)
    };
}
macro_rules! tile {
    ($($t:tt)*) => {
        tile_of!(u32, $($t)*)
    };
}

float_unary!(unary_f32: Handler, f32, single, map, tile);
float_binary!(binary_f32: Handler, f32, single, pair, tile_pair, none, None);
integer_unary!(unary_i32: Handler, i32, map, i32::wrapping_abs, i32::signum);
integer_unary!(unary_u32: Handler, u32, map, std::convert::identity, |x| u32::from(x != 0));
integer_binary!(binary_i32: Handler, i32, u32, i32, pair, plain_pair, pair);
integer_binary!(binary_u32: Handler, u32, u32, i32, pair, plain_pair, pair);

/// What the lanes of a value are, whatever their width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// f32 or f64.
    Float,
    /// i32 or i64.
    Signed,
    /// u32 or u64, and `bool`.
    Unsigned,
}

/// The lanes of a dtype of which the registers of loops with lanes of this width hold an element each.
pub fn lanes(d: DType, lane: Width) -> Option<Lanes> {
    Some(match (d, lane) {
        (DType::Bool, _) => Lanes::Unsigned,
        (DType::F32, Width::Four) | (DType::F64, Width::Eight) => Lanes::Float,
        (DType::I32, _) | (DType::I64, Width::Eight) => Lanes::Signed,
        (DType::U32, Width::Four) | (DType::U64, Width::Eight) => Lanes::Unsigned,
        _ => return None,
    })
}

/// f(x) of register 0.
pub fn unary(op: UnaryOp, d: DType, lane: Width) -> Option<Handler> {
    match d {
        _ if lane == Width::Eight => wide::unary(op, d),
        DType::F32 => unary_f32(op),
        DType::I32 => unary_i32(op),
        DType::U32 => unary_u32(op),
        _ => None,
    }
}

/// f(x, y) of registers 0 and 1.
pub fn binary(op: BinaryOp, d: DType, lane: Width) -> Option<Handler> {
    match d {
        _ if lane == Width::Eight => wide::binary(op, d),
        DType::F32 => binary_f32(op),
        DType::I32 => binary_i32(op),
        DType::U32 => binary_u32(op),
        _ => None,
    }
}

/// Running sums of f32, in double precision as `library/scan.rs` has them, from the number in the first two lanes of
/// register 1: where the sums go the lanes of register 0, or the last number goes its first two.
macro_rules! running_sum {
    ($carry:literal) => {
        on_registers!(u32, |pc, lanes, other| {
            let (n, from) =
                (((*pc).p as usize).min(N), f64::from_bits(u64::from(other[0]) | u64::from(other[1]) << 32));
            let (mut sums, mut sum, mut overflow) = (*lanes, from, false);
            for i in 0..n {
                sum += f64::from(f32::from_bits(lanes[i]));
                sums[i] = (sum as f32).to_bits();
                overflow |= (sum as f32).is_infinite();
            }
            if overflow {
                // It stays infinite.
                sum = from;
                for i in 0..n {
                    sum += f64::from(f32::from_bits(lanes[i]));
                    let rounded = sum as f32;
                    sums[i] = rounded.to_bits();
                    if rounded.is_infinite() {
                        sum = f64::from(rounded);
                    }
                }
            }
            *lanes = sums;
            if $carry {
                (lanes[0], lanes[1]) = (sum.to_bits() as u32, (sum.to_bits() >> 32) as u32);
            }
        })
    };
}

/// Running results of a float operation from a number in register 1.
macro_rules! running_of {
    ($L:ty, $x:ident, $y:ident: $T:ty, $e:expr) => {
        $crate::machine::loops::handlers::on_registers!($L, |pc, lanes, other| {
            let mut $x: $T = Lane::get(other[0]);
            for i in 0..((*pc).p as usize).min(N) {
                let $y: $T = Lane::get(lanes[i]);
                $x = $e;
                lanes[i] = Lane::put($x);
            }
        })
    };
}

/// Compiles a body over the lanes of registers 0 and 1, and of the places from one on that the immediate names.
macro_rules! with_places {
    ($name:ident, $V:ty, $abi:literal, $features:literal, $body:ident, $L:ty) => {
        $crate::machine::handler::function!($name, $V, $abi, $features, |pc, p, o, e, start, a| {
            let mut x: [$L; size_of::<$V>() / size_of::<$L>()] = core::mem::transmute(a[0]);
            let y: [$L; size_of::<$V>() / size_of::<$L>()] = core::mem::transmute(a[1]);
            let places = p.cast::<u8>().cast_mut().add((*pc).imm as usize);
            $body(places, &mut x, &y);
            a[0] = core::mem::transmute::<[$L; size_of::<$V>() / size_of::<$L>()], $V>(x);
            $crate::machine::handler::jump!($V, pc.add(1), p, o, e, start, a)
        });
    };
}

/// The blocks of the Threefry cipher that registers 0 and 1 and the keys in two places make: the first word of each; the
/// second one is left in the place after these.
pub fn cipher() -> Handler {
    const SECOND: usize = PLACE as usize;
    const THIRD: usize = 2 * SECOND;
    #[inline(always)]
    unsafe fn body<const N: usize>(places: *mut u8, x: &mut [u32; N], y: &[u32; N]) {
        // SAFETY: the places are in the loop's memory, each has a register's lanes.
        unsafe {
            let (k0, k1) = (places.cast::<[u32; N]>().read(), places.add(SECOND).cast::<[u32; N]>().read());
            let mut z = [0; N];
            for i in 0..N {
                (x[i], z[i]) = random::block(k0[i], k1[i], x[i], y[i]);
            }
            places.add(THIRD).cast::<[u32; N]>().write(z);
        }
    }
    crate::machine::handler::sets!([with_places] body, u32)
}

/// What is in a place.
pub fn from_place() -> Handler {
    #[inline(always)]
    unsafe fn body<const N: usize>(places: *mut u8, x: &mut [u32; N], _: &[u32; N]) {
        // SAFETY: the place is in the loop's memory.
        *x = unsafe { places.cast::<[u32; N]>().read() };
    }
    crate::machine::handler::sets!([with_places] body, u32)
}

/// The running sum or product of floats in register 0 after what register 1 says, and where that is not the last one
/// of the register before, what gives it.
pub fn running(op: ReduceOp, d: DType) -> Option<(Handler, Option<Handler>)> {
    Some(match (op, d) {
        (ReduceOp::Sum, DType::F32) => (running_sum!(false), Some(running_sum!(true))),
        (ReduceOp::Prod, DType::F32) => (running_of!(u32, a, b: f32, a * b), None),
        (ReduceOp::Sum, DType::F64) => (running_of!(u64, a, b: f64, a + b), None),
        (ReduceOp::Prod, DType::F64) => (running_of!(u64, a, b: f64, a * b), None),
        _ => return None,
    })
}

/// A comparison of registers 0 and 1; gives 0 or 1.
pub fn compare(op: CompareOp, d: DType, lane: Width) -> Option<Handler> {
    Some(match d {
        _ if lane == Width::Eight => return wide::compare(op, d),
        DType::F32 => comparisons!(pair, op, f32, a, b, single::total_key(a), single::total_key(b)),
        DType::I32 => comparisons!(pair, op, i32, a, b, a, b),
        DType::U32 | DType::Bool => comparisons!(pair, op, u32, a, b, a, b),
        _ => return None,
    })
}

/// A node of one operand that is neither of these, with its immediate, in lanes of a width.
pub fn other(kind: &Kind, from: DType, to: DType, lane: Width) -> Option<(Handler, u64)> {
    let imm = match kind {
        Kind::IntegerPow(n) if *n < 0 => u64::from(*n as u32),
        Kind::IntegerPow(n) => *n as u64,
        Kind::ReducePrecision { exponent_bits, mantissa_bits } => {
            u64::from(*exponent_bits) | u64::from(*mantissa_bits) << 32
        }
        Kind::DivideBy(division) => divisor(from.is_signed(), division.by),
        _ => 0,
    };
    if lane == Width::Eight {
        return Some((wide::other(kind, from, to)?, imm));
    }
    let handler = match (kind, from) {
        (Kind::DivideBy(division), DType::I32) => divisions!(i32, divide_i32, division.part, map_imm),
        (Kind::DivideBy(division), DType::U32) => divisions!(u32, divide_u32, division.part, map_imm),
        (Kind::IntegerPow(n), DType::F32) => float_power!(f32, *n, map, map_imm),
        (Kind::IntegerPow(n), _) if *n < 0 => return None,
        (Kind::IntegerPow(_), DType::I32) => integer_power!(i32, map_imm),
        (Kind::IntegerPow(_), DType::U32) => integer_power!(u32, map_imm),
        (Kind::ReducePrecision { .. }, DType::F32) => map_imm!(p, v: f32 => f32, single::reduce_precision(v, p)),
        (Kind::Convert, _) => convert(from, to)?,
        _ => return None,
    };
    Some((handler, imm))
}

/// Conversions that change lanes.
#[allow(clippy::unnecessary_cast)]
fn convert(from: DType, to: DType) -> Option<Handler> {
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
    Some(match from {
        DType::F32 => by_target!(f32),
        DType::I32 => by_target!(i32),
        // A `bool` is a lane of 0 or 1.
        DType::U32 | DType::Bool => by_target!(u32),
        _ => return None,
    })
}
