//! Reductions of rows that come tile by tile or piece by piece, in the order that `library/reduce.rs` keeps for a whole row.
//!
//! The accumulators of a run are a place in a program: a handler joins each tile to them. At the end of a run their
//! result joins those of the runs before. States that cover whole runs can be put together, which is how spans of
//! one long row are shared among threads.

use super::columns::ColumnReducer;
use super::terms::Operand;
use crate::library::reduce::{
    IntMonoid, Itself, LANES, LEVELS, MaxF32, MaxF64, MinF32, MinF64, Monoid, ProdF32, ProdF64, RUN, SumF32, SumF64,
    collapse, reduce_row, reduce_run,
};
use crate::library::short_rows;
use ferrax_base::DType;
use ferrax_loops::ReduceOp;

/// The state of a row: the bits of the results of runs so far.
#[derive(Clone, Copy)]
pub struct Running {
    levels: [u64; LEVELS],
    count: usize,
}

impl Running {
    /// The state before the first element.
    pub const fn new() -> Self {
        Running { levels: [0; LEVELS], count: 0 }
    }
}

/// A reduction of rows of lanes.
#[derive(Clone, Copy)]
pub struct RowReducer {
    /// Makes `LANES` accumulators ready for a run.
    pub reset: unsafe fn(*mut u8),
    /// Ends a run: takes in the accumulators.
    pub collapse: unsafe fn(&mut Running, *mut u8),
    /// The result of accumulators that took in a whole row.
    pub value: unsafe fn(*mut u8) -> u64,
    /// Appends another state that covers what comes next; `self` must cover a power of two of runs, or whole
    /// multiples of what the other covers.
    pub append: fn(&mut Running, &Running),
    /// The result.
    pub finish: fn(&Running) -> u64,
    /// How elements in memory are taken in.
    pub memory: FromMemory,
    /// Rows of this many elements that lie side by side, their number, and where their results go as lanes.
    pub rows: unsafe fn(*const u8, usize, usize, *mut u8),
    /// The same over columns, of elements that are lanes.
    pub columns: ColumnReducer,
}

/// How a reduction takes in elements from memory. Where they are made of two operands (`terms.rs`), the second address
/// is that of the other one.
#[derive(Clone, Copy)]
pub struct FromMemory {
    /// Takes in elements; all pieces but the last hold whole runs.
    pub feed: unsafe fn(&mut Running, [*const u8; 2], usize),
    /// A whole row at once.
    pub whole: unsafe fn([*const u8; 2], usize) -> u64,
}

impl FromMemory {
    /// The reduction of what `P` makes of the elements.
    pub fn of<M: Monoid<T: Bits>, P: Operand<M::T>>() -> Self {
        #[cfg(target_arch = "x86_64")]
        if crate::simd::isa() == Some(crate::simd::Isa::Avx512) {
            return FromMemory { feed: feed_wide::<M, P>, whole: whole_wide::<M, P> };
        }
        FromMemory { feed: feed::<M, P>, whole: whole::<M, P> }
    }
}

/// Elements of 4 or 8 bytes.
pub trait Bits: Copy {
    /// The element's bits.
    fn bits(self) -> u64;
    /// The element of these bits.
    fn of(bits: u64) -> Self;
}

macro_rules! bits {
    ($($T:ty: $x:ident => $to:expr, $from:expr;)*) => {
        $(impl Bits for $T {
            #[inline(always)]
            fn bits(self) -> u64 {
                let $x = self;
                $to
            }
            #[inline(always)]
            fn of($x: u64) -> $T {
                $from
            }
        })*
    };
}
bits! {
    f32: x => x.to_bits().into(), f32::from_bits(x as u32);
    f64: x => x.to_bits(), f64::from_bits(x);
    i32: x => x as u64, x as i32;
    u32: x => x.into(), x as u32;
    i64: x => x as u64, x as i64;
    u64: x => x, x;
}

/// Joins one result that stands for 2^level runs.
#[inline(always)]
fn carry<M: Monoid<T: Bits>>(state: &mut Running, mut value: M::T, mut level: usize) {
    let from = state.count >> level;
    state.count += 1 << level;
    for _ in 0..from.trailing_ones() {
        value = M::join(M::T::of(state.levels[level]), value);
        level += 1;
    }
    state.levels[level] = value.bits();
}

unsafe fn reset<M: Monoid<T: Bits>>(lanes: *mut u8) {
    // SAFETY: the caller passes the accumulators.
    unsafe { std::slice::from_raw_parts_mut(lanes.cast::<M::T>(), LANES) }.fill(M::IDENTITY);
}

#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma"))]
unsafe fn end_run<M: Monoid<T: Bits>>(state: &mut Running, lanes: *mut u8) {
    // SAFETY: the caller passes the accumulators, lanes of the element type.
    carry::<M>(state, collapse::<M>(unsafe { &mut *lanes.cast() }), 0);
}

#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma"))]
unsafe fn value<M: Monoid<T: Bits>>(lanes: *mut u8) -> u64 {
    // SAFETY: the caller passes the accumulators, lanes of the element type.
    collapse::<M>(unsafe { &mut *lanes.cast() }).bits()
}

macro_rules! from_memory {
    ($feed:ident, $whole:ident, $rows:ident, $wide:literal, $features:literal) => {
        #[cfg_attr(target_arch = "x86_64", target_feature(enable = $features))]
        unsafe fn $feed<M: Monoid<T: Bits>, P: Operand<M::T>>(state: &mut Running, [x, y]: [*const u8; 2], n: usize) {
            // SAFETY: the caller passes n elements as the term has them, and the other operand.
            let (x, term) = unsafe { (std::slice::from_raw_parts(x.cast::<P::From>(), n), P::new(y)) };
            for (k, run) in x.chunks(RUN).enumerate() {
                carry::<M>(state, reduce_run::<M, P, $wide>(run, term.from(k * RUN)), 0);
            }
        }

        #[cfg_attr(target_arch = "x86_64", target_feature(enable = $features))]
        unsafe fn $whole<M: Monoid<T: Bits>, P: Operand<M::T>>([x, y]: [*const u8; 2], n: usize) -> u64 {
            // SAFETY: the caller passes n elements as the term has them, and the other operand.
            let (x, term) = unsafe { (std::slice::from_raw_parts(x.cast(), n), P::new(y)) };
            reduce_row::<M, P, $wide>(x, term).bits()
        }

        #[cfg_attr(target_arch = "x86_64", target_feature(enable = $features))]
        unsafe fn $rows<M: Monoid<T: Bits>>(x: *const u8, n: usize, count: usize, out: *mut u8) {
            // SAFETY: the caller passes `count` rows of n elements, and room for as many results.
            let (x, out) = unsafe {
                let x: &[M::T] = std::slice::from_raw_parts(x.cast(), n * count);
                (x, std::slice::from_raw_parts_mut(out.cast::<M::T>(), count))
            };
            short_rows::reduce::<M, $wide>(x, n, out);
        }
    };
}
from_memory!(feed, whole, rows, false, "avx2,fma");
#[cfg(target_arch = "x86_64")]
from_memory!(feed_wide, whole_wide, rows_wide, true, "avx512f,avx512bw,avx512dq,avx512vl");

fn append<M: Monoid<T: Bits>>(state: &mut Running, next: &Running) {
    for level in (0..LEVELS).rev().filter(|level| next.count >> level & 1 == 1) {
        carry::<M>(state, M::T::of(next.levels[level]), level);
    }
}

fn finish<M: Monoid<T: Bits>>(state: &Running) -> u64 {
    let levels = (0..LEVELS).filter(|k| state.count >> k & 1 == 1).map(|k| M::T::of(state.levels[k]));
    levels.reduce(|r, level| M::join(level, r)).unwrap_or(M::IDENTITY).bits()
}

/// The reduction of rows of lanes of `d`'s compute dtype.
pub fn row_reducer(op: ReduceOp, d: DType) -> Option<RowReducer> {
    fn of<M: Monoid<T: Bits>>() -> Option<RowReducer> {
        let narrow = RowReducer {
            reset: reset::<M>,
            collapse: end_run::<M>,
            value: value::<M>,
            append: append::<M>,
            finish: finish::<M>,
            memory: FromMemory::of::<M, Itself>(),
            rows: rows::<M>,
            columns: ColumnReducer::of::<M>(),
        };
        #[cfg(target_arch = "x86_64")]
        if crate::simd::isa() == Some(crate::simd::Isa::Avx512) {
            return Some(RowReducer { rows: rows_wide::<M>, ..narrow });
        }
        Some(narrow)
    }
    // Only order tells signed integers from unsigned ones.
    macro_rules! integers {
        ($T:ident, $signed:ident) => {
            match op {
                ReduceOp::Sum => of::<IntMonoid<$signed, 0>>(),
                ReduceOp::Prod => of::<IntMonoid<$signed, 1>>(),
                ReduceOp::Max => of::<IntMonoid<$T, 2>>(),
                ReduceOp::Min => of::<IntMonoid<$T, 3>>(),
                ReduceOp::And => of::<IntMonoid<$signed, 4>>(),
                ReduceOp::Or => of::<IntMonoid<$signed, 5>>(),
                ReduceOp::Xor => of::<IntMonoid<$signed, 6>>(),
                ReduceOp::LogSumExp => None,
            }
        };
    }
    match (d, op) {
        // Lanes of 0 and 1.
        (DType::Bool, ReduceOp::Sum | ReduceOp::Or | ReduceOp::Max) => of::<IntMonoid<i32, 5>>(),
        (DType::Bool, ReduceOp::Prod | ReduceOp::And | ReduceOp::Min) => of::<IntMonoid<i32, 4>>(),
        (DType::Bool, ReduceOp::Xor) => of::<IntMonoid<i32, 6>>(),
        (DType::I32, _) => integers!(i32, i32),
        (DType::U32, _) => integers!(u32, i32),
        (DType::I64, _) => integers!(i64, i64),
        (DType::U64, _) => integers!(u64, i64),
        (DType::F64, ReduceOp::Sum) => of::<SumF64>(),
        (DType::F64, ReduceOp::Prod) => of::<ProdF64>(),
        (DType::F64, ReduceOp::Max) => of::<MaxF64>(),
        (DType::F64, ReduceOp::Min) => of::<MinF64>(),
        (DType::F32 | DType::BF16 | DType::F16, ReduceOp::Sum) => of::<SumF32>(),
        (DType::F32 | DType::BF16 | DType::F16, ReduceOp::Prod) => of::<ProdF32>(),
        (DType::F32 | DType::BF16 | DType::F16, ReduceOp::Max) => of::<MaxF32>(),
        (DType::F32 | DType::BF16 | DType::F16, ReduceOp::Min) => of::<MinF32>(),
        _ => None,
    }
}
