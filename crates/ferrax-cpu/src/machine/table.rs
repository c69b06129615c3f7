//! Which handler an operation of the kernel IR is.
//!
//! The handlers here are for lanes of 4 bytes; `wide.rs` has those for 8. Values of `bool` and of the integers up to 16 bits take a lane each, extended;
//! bf16 and f16 are f32 in the lanes, rounded after every operation. Expressions are those of `elementwise/mod.rs`.

use crate::elementwise::convert::{bf16_bits, odd_i32, odd_u32, saturating};
use crate::elementwise::{
    comparisons, float_binary, float_power, float_unary, integer_binary, integer_power, integer_unary, wrapping_pow,
};
use crate::library::reduce::LANES as STATE;
use crate::machine::handler::{
    self, Binary, Handler, first_alone, fold, handler, lanes1, lanes1_imm, lanes2, load, load_apart, none, store,
    store_apart, tile, tile2,
};
use crate::machine::wide;
use crate::math::integer::divisions;
use crate::math::single;
use ferrax_base::DType;
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{BinaryOp, DivisionPart, ReduceOp, UnaryOp};

macro_rules! map {
    ($($t:tt)*) => {
        lanes1!(u32, $($t)*)
    };
}
macro_rules! map_imm {
    ($($t:tt)*) => {
        lanes1_imm!(u32, $($t)*)
    };
}
macro_rules! tiles {
    ($($t:tt)*) => {
        tile!(u32, $($t)*)
    };
}
macro_rules! tile_pair {
    ($($t:tt)*) => {
        tile2!(u32, $($t)*)
    };
}
macro_rules! pair {
    ($($t:tt)*) => {
        lanes2!(u32, $($t)*)
    };
}

/// What the lanes of a value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// f32, and the half formats.
    F32,
    /// i32, and narrower signed integers.
    I32,
    /// u32, narrower unsigned integers and `bool`.
    U32,
}

/// Whether programs of lanes of `lane` bytes can hold a dtype.
pub fn holds(lane: usize, d: DType) -> bool {
    if lane == 8 { wide::lanes(d).is_some() } else { lanes(d).is_some() }
}

/// The lanes of a dtype, if programs of 4-byte lanes can hold it.
pub fn lanes(d: DType) -> Option<Lanes> {
    Some(match d {
        DType::F32 | DType::BF16 | DType::F16 => Lanes::F32,
        DType::I32 | DType::I16 | DType::I8 => Lanes::I32,
        DType::U32 | DType::U16 | DType::U8 | DType::Bool => Lanes::U32,
        _ => return None,
    })
}

float_unary!(unary_f32: Handler, f32, single, map, tiles);
float_binary!(binary_f32: Binary, f32, single, pair, tile_pair, none, None);
integer_unary!(unary_i32: Handler, i32, map, i32::wrapping_abs, i32::signum);
integer_unary!(unary_u32: Handler, u32, map, std::convert::identity, |x| u32::from(x != 0));
integer_binary!(binary_i32: Binary, i32, u32, i32, pair, pair, pair);
integer_binary!(binary_u32: Binary, u32, u32, i32, pair, pair, pair);

/// Whether a dtype's arithmetic is that of its lanes, perhaps with rounding.
fn computes(d: DType) -> Option<Lanes> {
    lanes(d).filter(|l| *l == Lanes::F32 || d.size() == 4)
}

/// f(acc).
pub fn unary(lane: usize, op: UnaryOp, d: DType) -> Option<Handler> {
    if lane == 8 {
        return wide::unary(op, d);
    }
    if d.is_bool() {
        return match op {
            UnaryOp::Not => Some(map!(v: u32 => u32, v ^ 1)),
            _ => None,
        };
    }
    match computes(d)? {
        Lanes::F32 => unary_f32(op),
        Lanes::I32 => unary_i32(op),
        Lanes::U32 => unary_u32(op),
    }
}

/// The operation on lanes of 0 and 1 that is an operation on `bool`.
pub fn bool_binary(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Add | BinaryOp::Max | BinaryOp::Or => BinaryOp::Or,
        BinaryOp::Mul | BinaryOp::Min | BinaryOp::And => BinaryOp::And,
        BinaryOp::Xor | BinaryOp::Sub => BinaryOp::Xor,
        _ => return None,
    })
}

/// f(x, y).
pub fn binary(lane: usize, op: BinaryOp, d: DType) -> Option<Binary> {
    if lane == 8 {
        return wide::binary(op, d);
    }
    if d.is_bool() {
        return bool_binary(op).and_then(binary_u32);
    }
    match computes(d)? {
        // The next half is not the next float.
        Lanes::F32 if op == BinaryOp::Nextafter && d != DType::F32 => None,
        Lanes::F32 => binary_f32(op),
        Lanes::I32 => binary_i32(op),
        Lanes::U32 => binary_u32(op),
    }
}

/// A comparison; gives 0 or 1.
pub fn compare(lane: usize, op: CompareOp, d: DType) -> Option<Binary> {
    if lane == 8 {
        return wide::compare(op, d);
    }
    Some(match lanes(d)? {
        Lanes::F32 => comparisons!(pair, op, f32, a, b, single::total_key(a), single::total_key(b)),
        Lanes::I32 => comparisons!(pair, op, i32, a, b, a, b),
        Lanes::U32 => comparisons!(pair, op, u32, a, b, a, b),
    })
}

/// x ** n.
pub fn integer_pow(lane: usize, n: i32, d: DType) -> Option<Handler> {
    if lane == 8 {
        return wide::integer_pow(n, d);
    }
    match computes(d)? {
        Lanes::F32 => Some(float_power!(f32, n, map, map_imm)),
        _ if n < 0 || d.is_bool() => None,
        Lanes::I32 => Some(integer_power!(i32, map_imm)),
        Lanes::U32 => Some(integer_power!(u32, map_imm)),
    }
}

/// A division by a constant; the immediate is `math::integer::divisor`.
pub fn divide_by(lane: usize, part: DivisionPart, d: DType) -> Option<Handler> {
    match d {
        _ if lane == 8 => None,
        DType::I32 => Some(divisions!(i32, divide_i32, part, map_imm)),
        DType::U32 => Some(divisions!(u32, divide_u32, part, map_imm)),
        _ => None,
    }
}

/// f(acc) = acc times the number whose bits the immediate is.
pub fn scale(lane: usize, d: DType) -> Option<Handler> {
    match (lane, d) {
        (8, DType::F64) => Some(lanes1_imm!(u64, by, x: f64 => f64, x * f64::from_bits(by))),
        (4, DType::F32 | DType::BF16 | DType::F16) => Some(map_imm!(by, x: f32 => f32, x * f32::from_bits(by as u32))),
        _ => None,
    }
}

/// The bits, as lanes have them, of a power of two's reciprocal, if both are normal numbers of the dtype's lanes.
pub fn reciprocal(d: DType, n: f64) -> Option<u64> {
    let normal = |x: f64| if d == DType::F64 { x.is_normal() } else { (x as f32).is_normal() };
    let power = n.to_bits() << 12 == 0 && normal(n) && normal(1.0 / n);
    power.then(|| if d == DType::F64 { (1.0 / n).to_bits() } else { u64::from(((1.0 / n) as f32).to_bits()) })
}

/// Rounds to fewer bits.
pub fn reduce_precision(lane: usize, d: DType) -> Option<Handler> {
    if lane == 8 {
        return wide::reduce_precision(d);
    }
    (lanes(d)? == Lanes::F32).then(|| map_imm!(p, v: f32 => f32, single::reduce_precision(v, p)))
}

/// From one dtype to another: `None` when there is no way, `Some(None)` when the lanes stay as they are.
pub fn convert(lane: usize, from: DType, to: DType) -> Option<Option<Handler>> {
    if lane == 8 {
        return wide::convert(from, to);
    }
    #[allow(clippy::unnecessary_cast)]
    macro_rules! by_target {
        ($T:ty) => {
            match to {
                DType::Bool => map!(x: $T => u8, u8::from(x != (0 as $T))),
                DType::I8 => map!(x: $T => i8, x as i8),
                DType::I16 => map!(x: $T => i16, x as i16),
                DType::I32 => map!(x: $T => i32, x as i32),
                DType::U8 => map!(x: $T => u8, x as u8),
                DType::U16 => map!(x: $T => u16, x as u16),
                DType::U32 => map!(x: $T => u32, x as u32),
                _ => map!(x: $T => f32, x as f32),
            }
        };
    }
    let (a, b) = (lanes(from)?, lanes(to)?);
    let half = matches!(to, DType::BF16 | DType::F16);
    if half && from == DType::U32 {
        return Some(Some(map!(x: u32 => f32, odd_u32(x))));
    }
    if half && from == DType::I32 {
        return Some(Some(map!(x: i32 => f32, odd_i32(x))));
    }
    if a == b && (from == to || a == Lanes::F32) {
        return Some(None);
    }
    // 0 and 1 are themselves in every integer.
    if from.is_bool() && b != Lanes::F32 {
        return Some(None);
    }
    Some(Some(match a {
        Lanes::F32 => saturating!(map, to, by_target!(f32)),
        Lanes::I32 => by_target!(i32),
        Lanes::U32 => by_target!(u32),
    }))
}

/// Rounds lanes to a half format.
pub fn round(lane: usize, d: DType) -> Option<Handler> {
    match d {
        _ if lane == 8 => None,
        DType::BF16 => Some(map!(x: f32 => f32, f32::from_bits(u32::from(bf16_bits(x)) << 16))),
        DType::F16 => Some(handler!(u32, |pc, p, o, acc| {
            for lanes in acc.as_chunks_mut::<8>().0 {
                *lanes = halves::values(halves::bits(*lanes));
            }
        })),
        _ => None,
    }
}

/// A number in a half format.
pub fn half(d: DType, x: f32) -> u16 {
    if d == DType::BF16 { bf16_bits(x) } else { half_bits(x) }
}

/// Joins the accumulator to the rotating accumulators of a reduction.
pub fn fold(lane: usize, op: ReduceOp, d: DType) -> Option<Handler> {
    if lane == 8 {
        return wide::fold(op, d);
    }
    let l = lanes(d)?;
    Some(match (op, l) {
        (ReduceOp::LogSumExp, _) => return None,
        (ReduceOp::Sum | ReduceOp::Max, _) if d.is_bool() => fold!(u32, a, b: u32, a | b),
        (ReduceOp::Prod | ReduceOp::Min, _) if d.is_bool() => fold!(u32, a, b: u32, a & b),
        (ReduceOp::Sum, Lanes::F32) => fold!(u32, a, b: f32, a + b),
        (ReduceOp::Prod, Lanes::F32) => fold!(u32, a, b: f32, a * b),
        (ReduceOp::Max, Lanes::F32) => fold!(u32, a, b: f32, single::max(a, b)),
        (ReduceOp::Min, Lanes::F32) => fold!(u32, a, b: f32, single::min(a, b)),
        (_, Lanes::F32) => return None,
        (ReduceOp::Max, Lanes::I32) => fold!(u32, a, b: i32, a.max(b)),
        (ReduceOp::Min, Lanes::I32) => fold!(u32, a, b: i32, a.min(b)),
        (ReduceOp::Max, Lanes::U32) => fold!(u32, a, b: u32, a.max(b)),
        (ReduceOp::Min, Lanes::U32) => fold!(u32, a, b: u32, a.min(b)),
        (ReduceOp::Sum, _) => fold!(u32, a, b: u32, a.wrapping_add(b)),
        (ReduceOp::Prod, _) => fold!(u32, a, b: u32, a.wrapping_mul(b)),
        (ReduceOp::And, _) => fold!(u32, a, b: u32, a & b),
        (ReduceOp::Or, _) => fold!(u32, a, b: u32, a | b),
        (ReduceOp::Xor, _) => fold!(u32, a, b: u32, a ^ b),
    })
}

/// The load of halves, or of one that is repeated.
macro_rules! load_halves {
    ($splat:literal) => {
        handler!(u32, |pc, p, o, acc| {
            let memory = at(p, (*pc).p, (*pc).ps, o).cast::<u16>();
            for (k, lanes) in acc.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let held = if $splat { [*memory; 8] } else { memory.add(8 * k).cast::<[u16; 8]>().read_unaligned() };
                *lanes = halves::values(held);
            }
        })
    };
}

/// Loads an array's elements, or repeats one.
pub fn load(lane: usize, d: DType, splat: bool) -> Option<Handler> {
    if lane == 8 {
        return wide::load(d, splat);
    }
    macro_rules! either {
        ($($t:tt)*) => {
            if splat { load!(u32, $($t)*, true) } else { load!(u32, $($t)*, false) }
        };
    }
    lanes(d)?;
    Some(match d {
        DType::BF16 => either!(x: u16 => f32, f32::from_bits(u32::from(x) << 16)),
        DType::F16 if splat => load_halves!(true),
        DType::F16 => load_halves!(false),
        DType::I16 => either!(x: i16 => i32, i32::from(x)),
        DType::I8 => either!(x: i8 => i32, i32::from(x)),
        DType::U16 => either!(x: u16 => u32, u32::from(x)),
        DType::U8 | DType::Bool => either!(x: u8 => u32, u32::from(x)),
        _ => either!(x: u32 => u32, x),
    })
}

/// The store of halves; `$part` as in `store`.
macro_rules! store_halves {
    ($part:literal) => {
        handler!(u32, |pc, p, o, acc| {
            let memory = at(p, (*pc).p, (*pc).ps, o).cast::<u16>();
            let first = if $part { first_alone::<N>(o) } else { 0 };
            for (k, lanes) in acc.as_chunks::<8>().0.iter().enumerate() {
                let (halves, from) = (halves::bits(*lanes), first.saturating_sub(8 * k));
                if from == 0 {
                    memory.add(8 * k).cast::<[u16; 8]>().write_unaligned(halves);
                } else {
                    for i in 0..8 {
                        if i >= from {
                            memory.add(8 * k + i).write_unaligned(halves[i]);
                        }
                    }
                }
            }
        })
    };
}

/// Stores lanes as a dtype's elements; with `part`, of a row's last tile only what no whole tile has.
pub fn store(lane: usize, d: DType, part: bool) -> Option<Handler> {
    if lane == 8 {
        return wide::store(d, part);
    }
    macro_rules! either {
        ($($t:tt)*) => {
            if part { store!(u32, $($t)*, true) } else { store!(u32, $($t)*, false) }
        };
    }
    lanes(d)?;
    Some(match d {
        DType::BF16 => either!(x: u32 => u16, (x >> 16) as u16),
        DType::F16 if part => store_halves!(true),
        DType::F16 => store_halves!(false),
        DType::I16 | DType::U16 => either!(x: u32 => u16, x as u16),
        DType::I8 | DType::U8 | DType::Bool => either!(x: u32 => u8, x as u8),
        _ if part => handler::store_alone(4),
        _ => store!(u32, x: u32 => u32, x, false),
    })
}

/// Loads elements of rows that lie apart, or repeats one for each: of dtypes that fill lanes, bfloat16 and bool.
pub fn load_apart(lane: usize, d: DType, splat: bool) -> Option<Handler> {
    macro_rules! either {
        ($($t:tt)*) => {
            if splat { load_apart!($($t)*, true) } else { load_apart!($($t)*, false) }
        };
    }
    Some(match (lane, d) {
        (4, DType::BF16) => either!(u32, x: u16 => f32, f32::from_bits(u32::from(x) << 16)),
        (4, DType::Bool) => either!(u32, x: u8 => u32, u32::from(x)),
        (8, DType::Bool) => either!(u64, x: u8 => u64, u64::from(x)),
        (4, _) if d.size() == 4 => either!(u32, x: u32 => u32, x),
        (8, _) if d.size() == 8 => either!(u64, x: u64 => u64, x),
        _ => return None,
    })
}

/// Stores lanes as elements of rows that lie apart: of the dtypes of `load_apart`; `part` as in `store`.
pub fn store_apart(lane: usize, d: DType, part: bool) -> Option<Handler> {
    macro_rules! either {
        ($($t:tt)*) => {
            if part { store_apart!($($t)*, true) } else { store_apart!($($t)*, false) }
        };
    }
    Some(match (lane, d) {
        (4, DType::BF16) => either!(u32, x: u32 => u16, (x >> 16) as u16),
        (4, DType::Bool) => either!(u32, x: u32 => u8, x as u8),
        (8, DType::Bool) => either!(u64, x: u64 => u8, x as u8),
        (4, _) if d.size() == 4 => either!(u32, x: u32 => u32, x),
        (8, _) if d.size() == 8 => either!(u64, x: u64 => u64, x),
        _ => return None,
    })
}

/// Which operand of a select the accumulator holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// The predicate; operands in memory are the false and the true case.
    Which,
    /// The false case; operands are the predicate and the true case.
    OnFalse,
    /// The true case; operands are the predicate and the false case.
    OnTrue,
}

/// The handlers of a select in lanes of a type; the lane of the predicate is 0 or 1.
macro_rules! selects {
    ($L:ident, $held:expr, $splat:expr) => {{
        use $crate::elementwise::blend;
        macro_rules! form {
            (|$a:ident, $x:ident, $y:ident| $e:expr, $sx:literal, $sy:literal) => {
                handler!($L, |pc, p, o, acc| {
                    let first = at(p, (*pc).p, (*pc).ps, o).cast::<$L>();
                    let second = at(p, (*pc).q, (*pc).qs, o).cast::<$L>();
                    for i in 0..N {
                        let $a = acc[i];
                        let $x = first.add(if $sx { 0 } else { i }).read_unaligned();
                        let $y = second.add(if $sy { 0 } else { i }).read_unaligned();
                        acc[i] = $e;
                    }
                })
            };
        }
        macro_rules! forms {
            (|$a:ident, $x:ident, $y:ident| $e:expr) => {
                match $splat {
                    (false, false) => form!(|$a, $x, $y| $e, false, false),
                    (false, true) => form!(|$a, $x, $y| $e, false, true),
                    (true, false) => form!(|$a, $x, $y| $e, true, false),
                    (true, true) => form!(|$a, $x, $y| $e, true, true),
                }
            };
        }
        match $held {
            Held::Which => forms!(|a, x, y| blend!(a, x, y)),
            Held::OnFalse => forms!(|a, x, y| blend!(x, a, y)),
            Held::OnTrue => forms!(|a, x, y| blend!(x, y, a)),
        }
    }};
}
pub(crate) use selects;

/// `on_true` where the predicate is not 0, else `on_false`; says which of the two memory operands is a scalar.
pub fn select(lane: usize, held: Held, splat: (bool, bool)) -> Handler {
    if lane == 8 {
        return wide::select(held, splat);
    }
    selects!(u32, held, splat)
}

/// Conversions of eight halves at once, by the instructions that every handler on x86-64 has.
#[cfg(target_arch = "x86_64")]
mod halves {
    use core::arch::x86_64::{__m128i, __m256, _mm256_cvtph_ps, _mm256_cvtps_ph};

    /// The bits of the values.
    ///
    /// # Safety
    /// The caller has F16C, as for `bits`.
    #[inline(always)]
    pub unsafe fn values(h: [u16; 8]) -> [u32; 8] {
        // SAFETY: the caller's contract; vectors are plain numbers.
        unsafe { std::mem::transmute::<__m256, [u32; 8]>(_mm256_cvtph_ps(std::mem::transmute::<[u16; 8], __m128i>(h))) }
    }

    /// The nearest halves, ties to even.
    ///
    /// # Safety
    /// As for `values`.
    #[inline(always)]
    pub unsafe fn bits(x: [u32; 8]) -> [u16; 8] {
        // SAFETY: as above.
        unsafe {
            std::mem::transmute::<__m128i, [u16; 8]>(_mm256_cvtps_ph::<0>(std::mem::transmute::<[u32; 8], __m256>(x)))
        }
    }
}

/// Conversions of eight halves.
#[cfg(not(target_arch = "x86_64"))]
mod halves {
    /// The bits of the values.
    ///
    /// # Safety
    /// None is needed here.
    #[inline(always)]
    pub unsafe fn values(h: [u16; 8]) -> [u32; 8] {
        h.map(|h| super::half_value(h).to_bits())
    }

    /// The nearest halves, ties to even.
    ///
    /// # Safety
    /// None is needed here.
    #[inline(always)]
    pub unsafe fn bits(x: [u32; 8]) -> [u16; 8] {
        x.map(|x| super::half_bits(f32::from_bits(x)))
    }
}

/// The value of a half's bits: the exponent is moved by a multiplication, which also scales subnormals.
#[inline(always)]
pub fn half_value(h: u16) -> f32 {
    const SCALE: f32 = 5.192_296_858_534_828e33;
    let h = u32::from(h);
    let scaled = f32::from_bits((h & 0x7fff) << 13) * SCALE;
    let bits = scaled.to_bits();
    let bits = if h & 0x7c00 == 0x7c00 { (h & 0x7fff) << 13 | 0x7f80_0000 } else { bits };
    f32::from_bits(bits | (h & 0x8000) << 16)
}

/// The nearest half, ties to even; NaN stays a quiet NaN. After Giesen's `float_to_half_fast3_rtne`.
#[inline(always)]
pub fn half_bits(x: f32) -> u16 {
    let all = x.to_bits();
    let sign = all >> 16 & 0x8000;
    let b = all & 0x7fff_ffff;
    let odd = b >> 13 & 1;
    let normal = b.wrapping_sub(0x3800_0000).wrapping_add(0xfff + odd) >> 13;
    let tiny = (f32::from_bits(b) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let special = if b > 0x7f80_0000 { 0x7e00 | (b >> 13 & 0x3ff) } else { 0x7c00 };
    let finite = if b < 0x3880_0000 { tiny } else { normal };
    (sign | if b >= 0x4780_0000 { special } else { finite }) as u16
}
