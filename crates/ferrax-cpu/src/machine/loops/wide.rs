//! Handlers of register loops for lanes of 8 bytes; `handlers.rs` has those for 4, and says what they are.

use super::handlers::{map_imm_of, map_of, pair_of, plain_pair_of, tile_of, tile_pair_of};
use crate::elementwise::{
    comparisons, float_binary, float_power, float_unary, integer_binary, integer_power, integer_unary, wrapping_pow,
};
use crate::machine::handler::{Handler, Lane, none};
use crate::math::double;
use ferrax_base::DType;
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{BinaryOp, Kind, UnaryOp};

macro_rules! map {
    ($($t:tt)*) => {
        map_of!(u64, $($t)*)
    };
}
macro_rules! map_imm {
    ($($t:tt)*) => {
        map_imm_of!(u64, $($t)*)
    };
}
macro_rules! pair {
    ($($t:tt)*) => {
        pair_of!(u64, $($t)*)
    };
}
macro_rules! plain_pair {
    ($($t:tt)*) => {
        plain_pair_of!(u64, $($t)*)
    };
}
macro_rules! tile_pair {
    ($($t:tt)*) => {
        tile_pair_of!(u64, $($t)*)
    };
}
macro_rules! tile {
    ($($t:tt)*) => {
        tile_of!(u64, $($t)*)
    };
}

float_unary!(unary_f64: Handler, f64, double, map, tile);
float_binary!(binary_f64: Handler, f64, double, pair, tile_pair, none, None);
integer_unary!(unary_i64: Handler, i64, map, i64::wrapping_abs, i64::signum);
integer_unary!(unary_u64: Handler, u64, map, std::convert::identity, |x| u64::from(x != 0));
integer_binary!(binary_i64: Handler, i64, u64, i64, pair, plain_pair, plain_pair);
integer_binary!(binary_u64: Handler, u64, u64, i64, pair, plain_pair, plain_pair);

/// f(x) of register 0.
pub fn unary(op: UnaryOp, d: DType) -> Option<Handler> {
    match d {
        DType::F64 => unary_f64(op),
        DType::I64 => unary_i64(op),
        DType::U64 => unary_u64(op),
        _ => None,
    }
}

/// f(x, y) of registers 0 and 1.
pub fn binary(op: BinaryOp, d: DType) -> Option<Handler> {
    match d {
        DType::F64 => binary_f64(op),
        DType::I64 => binary_i64(op),
        DType::U64 => binary_u64(op),
        _ => None,
    }
}

/// A comparison of registers 0 and 1; gives 0 or 1.
pub fn compare(op: CompareOp, d: DType) -> Option<Handler> {
    Some(match d {
        DType::F64 => comparisons!(pair, op, f64, a, b, double::total_key(a), double::total_key(b)),
        DType::I64 => comparisons!(pair, op, i64, a, b, a, b),
        DType::U64 | DType::Bool => comparisons!(pair, op, u64, a, b, a, b),
        _ => return None,
    })
}

/// A node of one operand that is neither of these.
pub fn other(kind: &Kind, from: DType, to: DType) -> Option<Handler> {
    Some(match (kind, from) {
        (Kind::IntegerPow(n), DType::F64) => float_power!(f64, *n, map, map_imm),
        (Kind::IntegerPow(n), _) if *n < 0 => return None,
        (Kind::IntegerPow(_), DType::I64) => integer_power!(i64, map_imm),
        (Kind::IntegerPow(_), DType::U64) => integer_power!(u64, map_imm),
        (Kind::Convert, _) => convert(from, to)?,
        _ => return None,
    })
}

/// Conversions that change lanes.
#[allow(clippy::unnecessary_cast)]
fn convert(from: DType, to: DType) -> Option<Handler> {
    macro_rules! by_target {
        ($T:ty) => {
            match to {
                DType::Bool => map!(x: $T => u8, u8::from(x != (0 as $T))),
                DType::I64 => map!(x: $T => i64, x as i64),
                DType::U64 => map!(x: $T => u64, x as u64),
                DType::F64 => map!(x: $T => f64, x as f64),
                _ => return None,
            }
        };
    }
    Some(match from {
        DType::F64 => by_target!(f64),
        // An i32 is there by its sign.
        DType::I64 | DType::I32 => by_target!(i64),
        // A `bool` is a lane of 0 or 1.
        DType::U64 | DType::Bool => by_target!(u64),
        _ => return None,
    })
}
