//! Handlers for lanes of 8 bytes; `table.rs` has those for 4.
//!
//! Programs of such lanes compute f64 and the 64-bit integers. Narrower integers and `bool` take a lane each,
//! extended, and f32 is there as the f64 of the same value: all of them come from conversions, comparisons and
//! memory, and go there. Functions that are computed element by element are left to `fused/blocks.rs`.

use crate::elementwise::{
    comparisons, float_binary, float_power, float_unary, integer_binary, integer_power, integer_unary, wrapping_pow,
};
use crate::library::reduce::LANES as STATE;
use crate::machine::handler::{
    self, Binary, Handler, fold, handler, lanes1, lanes1_imm, lanes2, load, none, store, tile, tile2,
};
use crate::machine::table::Held;
use crate::math::double;
use ferrax_base::DType;
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{BinaryOp, ReduceOp, UnaryOp};

macro_rules! map {
    ($($t:tt)*) => {
        lanes1!(u64, $($t)*)
    };
}
macro_rules! map_imm {
    ($($t:tt)*) => {
        lanes1_imm!(u64, $($t)*)
    };
}
macro_rules! tiles {
    ($($t:tt)*) => {
        tile!(u64, $($t)*)
    };
}
macro_rules! tile_pair {
    ($($t:tt)*) => {
        tile2!(u64, $($t)*)
    };
}
macro_rules! pair {
    ($($t:tt)*) => {
        lanes2!(u64, $($t)*)
    };
}
/// What the lanes of a value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// f64, and f32.
    F64,
    /// i64, and narrower signed integers.
    I64,
    /// u64, narrower unsigned integers and `bool`.
    U64,
}

/// The lanes of a dtype, if programs can hold it.
pub fn lanes(d: DType) -> Option<Lanes> {
    Some(match d {
        DType::F64 | DType::F32 => Lanes::F64,
        DType::I64 | DType::I32 | DType::I16 | DType::I8 => Lanes::I64,
        DType::U64 | DType::U32 | DType::U16 | DType::U8 | DType::Bool => Lanes::U64,
        _ => return None,
    })
}

float_unary!(unary_f64: Handler, f64, double, map, tiles);
float_binary!(binary_f64: Binary, f64, double, pair, tile_pair, none, None);
integer_unary!(unary_i64: Handler, i64, map, i64::wrapping_abs, i64::signum);
integer_unary!(unary_u64: Handler, u64, map, std::convert::identity, |x| u64::from(x != 0));
integer_binary!(binary_i64: Binary, i64, u64, i64, pair, none, none);
integer_binary!(binary_u64: Binary, u64, u64, i64, pair, none, none);

/// Whether a dtype's arithmetic is that of its lanes.
fn computes(d: DType) -> Option<Lanes> {
    lanes(d).filter(|_| d.size() == 8)
}

/// f(acc).
pub fn unary(op: UnaryOp, d: DType) -> Option<Handler> {
    if d.is_bool() {
        return (op == UnaryOp::Not).then(|| map!(v: u64 => u64, v ^ 1));
    }
    match computes(d)? {
        Lanes::F64 => unary_f64(op),
        Lanes::I64 => unary_i64(op),
        Lanes::U64 => unary_u64(op),
    }
}

/// f(x, y).
pub fn binary(op: BinaryOp, d: DType) -> Option<Binary> {
    if d.is_bool() {
        return super::table::bool_binary(op).and_then(binary_u64);
    }
    match computes(d)? {
        Lanes::F64 => binary_f64(op),
        Lanes::I64 => binary_i64(op),
        Lanes::U64 => binary_u64(op),
    }
}

/// A comparison; gives 0 or 1.
pub fn compare(op: CompareOp, d: DType) -> Option<Binary> {
    Some(match lanes(d).filter(|_| d != DType::F32)? {
        Lanes::F64 => comparisons!(pair, op, f64, a, b, double::total_key(a), double::total_key(b)),
        Lanes::I64 => comparisons!(pair, op, i64, a, b, a, b),
        Lanes::U64 => comparisons!(pair, op, u64, a, b, a, b),
    })
}

/// x ** n.
pub fn integer_pow(n: i32, d: DType) -> Option<Handler> {
    match computes(d)? {
        Lanes::F64 => Some(float_power!(f64, n, map, map_imm)),
        _ if n < 0 => None,
        Lanes::I64 => Some(integer_power!(i64, map_imm)),
        Lanes::U64 => Some(integer_power!(u64, map_imm)),
    }
}

/// Rounds to fewer bits.
pub fn reduce_precision(d: DType) -> Option<Handler> {
    (d == DType::F64).then(|| map_imm!(p, v: f64 => f64, double::reduce_precision(v, p)))
}

/// From one dtype to another: `None` when there is no way, `Some(None)` when the lanes stay as they are.
pub fn convert(from: DType, to: DType) -> Option<Option<Handler>> {
    #[allow(clippy::unnecessary_cast)]
    macro_rules! by_target {
        ($T:ty) => {
            match to {
                DType::Bool => map!(x: $T => u8, u8::from(x != (0 as $T))),
                DType::I8 => map!(x: $T => i8, x as i8),
                DType::I16 => map!(x: $T => i16, x as i16),
                DType::I32 => map!(x: $T => i32, x as i32),
                DType::I64 => map!(x: $T => i64, x as i64),
                DType::U8 => map!(x: $T => u8, x as u8),
                DType::U16 => map!(x: $T => u16, x as u16),
                DType::U32 => map!(x: $T => u32, x as u32),
                DType::U64 => map!(x: $T => u64, x as u64),
                DType::F32 => map!(x: $T => f64, f64::from(x as f32)),
                _ => map!(x: $T => f64, x as f64),
            }
        };
    }
    let (a, b) = (lanes(from)?, lanes(to)?);
    let floats = (a == Lanes::F64, b == Lanes::F64);
    let same = match floats {
        (true, true) => to == DType::F64,
        (false, false) => to.size() == 8 || from.is_bool(),
        _ => false,
    };
    if from == to || same {
        return Some(None);
    }
    Some(Some(match a {
        Lanes::F64 => by_target!(f64),
        Lanes::I64 => by_target!(i64),
        Lanes::U64 => by_target!(u64),
    }))
}

/// Loads an array's elements, or repeats one.
pub fn load(d: DType, splat: bool) -> Option<Handler> {
    macro_rules! either {
        ($($t:tt)*) => {
            if splat { load!(u64, $($t)*, true) } else { load!(u64, $($t)*, false) }
        };
    }
    lanes(d)?;
    Some(match d {
        DType::F32 => either!(x: f32 => f64, f64::from(x)),
        DType::I32 => either!(x: i32 => i64, i64::from(x)),
        DType::I16 => either!(x: i16 => i64, i64::from(x)),
        DType::I8 => either!(x: i8 => i64, i64::from(x)),
        DType::U32 => either!(x: u32 => u64, u64::from(x)),
        DType::U16 => either!(x: u16 => u64, u64::from(x)),
        DType::U8 | DType::Bool => either!(x: u8 => u64, u64::from(x)),
        _ => either!(x: u64 => u64, x),
    })
}

/// Stores lanes as a dtype's elements; `part` as in `table::store`.
pub fn store(d: DType, part: bool) -> Option<Handler> {
    macro_rules! either {
        ($($t:tt)*) => {
            if part { store!(u64, $($t)*, true) } else { store!(u64, $($t)*, false) }
        };
    }
    lanes(d)?;
    Some(match d {
        DType::F32 => either!(x: f64 => f32, x as f32),
        DType::I32 | DType::U32 => either!(x: u64 => u32, x as u32),
        DType::I16 | DType::U16 => either!(x: u64 => u16, x as u16),
        DType::I8 | DType::U8 | DType::Bool => either!(x: u64 => u8, x as u8),
        _ if part => handler::store_alone(8),
        _ => store!(u64, x: u64 => u64, x, false),
    })
}

/// Joins the accumulator to the rotating accumulators of a reduction.
pub fn fold(op: ReduceOp, d: DType) -> Option<Handler> {
    Some(match (op, computes(d)?) {
        (ReduceOp::LogSumExp, _) => return None,
        (ReduceOp::Sum, Lanes::F64) => fold!(u64, a, b: f64, a + b),
        (ReduceOp::Prod, Lanes::F64) => fold!(u64, a, b: f64, a * b),
        (ReduceOp::Max, Lanes::F64) => fold!(u64, a, b: f64, double::max(a, b)),
        (ReduceOp::Min, Lanes::F64) => fold!(u64, a, b: f64, double::min(a, b)),
        (_, Lanes::F64) => return None,
        (ReduceOp::Max, Lanes::I64) => fold!(u64, a, b: i64, a.max(b)),
        (ReduceOp::Min, Lanes::I64) => fold!(u64, a, b: i64, a.min(b)),
        (ReduceOp::Max, Lanes::U64) => fold!(u64, a, b: u64, a.max(b)),
        (ReduceOp::Min, Lanes::U64) => fold!(u64, a, b: u64, a.min(b)),
        (ReduceOp::Sum, _) => fold!(u64, a, b: u64, a.wrapping_add(b)),
        (ReduceOp::Prod, _) => fold!(u64, a, b: u64, a.wrapping_mul(b)),
        (ReduceOp::And, _) => fold!(u64, a, b: u64, a & b),
        (ReduceOp::Or, _) => fold!(u64, a, b: u64, a | b),
        (ReduceOp::Xor, _) => fold!(u64, a, b: u64, a ^ b),
    })
}

/// `on_true` where the predicate is not 0, else `on_false`; says which of the two memory operands is a scalar.
pub fn select(held: Held, splat: (bool, bool)) -> Handler {
    super::table::selects!(u64, held, splat)
}
