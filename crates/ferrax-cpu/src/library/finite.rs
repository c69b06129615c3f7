//! Whether a buffer holds a NaN or an infinity: what the checks of results ask after every operation.
//!
//! One pass over the bits, as integers: no branch and no comparison of floats inside a block, so that the loops are
//! vectors on every machine. The distance from the smallest bad number is negative for bad ones, and what is kept of a
//! block is the union of all distances, whose sign says it. Long buffers are shared out, and the search ends early.
//!
//! Read next: `ferrax::debug`, which asks.

use crate::pool;
use ferrax_base::{Buffer, DType, Scalar};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sought {
    /// NaN.
    Nan,
    /// An infinity.
    Infinity,
    /// Either.
    Both,
}

impl Sought {
    /// Whether it is this number.
    pub fn is(self, v: f64) -> bool {
        match self {
            Sought::Nan => v.is_nan(),
            Sought::Infinity => v.is_infinite(),
            Sought::Both => !v.is_finite(),
        }
    }
}

/// Bytes that are looked at before the next question whether to go on.
const BLOCK: usize = 1 << 13;
/// Bytes of a task.
const TASK: usize = 1 << 17;
/// Bytes that one thread looks at in a nanosecond, about, where they are in a cache.
const SPEED: usize = 30;

/// The bits of a floating-point number as a signed integer.
trait Bits: Copy + Sync {
    /// Those of infinity.
    const INFINITY: Self;
    const ZERO: Self;
    /// Negative for NaN where that is sought, for infinities where those are.
    fn distance<const NAN: bool, const INF: bool>(self) -> Self;
    fn union(self, other: Self) -> Self;
    fn negative(self) -> bool;
}

macro_rules! bits {
    ($($T:ty: $infinity:expr;)*) => {$(
        impl Bits for $T {
            const INFINITY: $T = $infinity;
            const ZERO: $T = 0;
            #[inline(always)]
            fn distance<const NAN: bool, const INF: bool>(self) -> $T {
                let magnitude = self & <$T>::MAX;
                match (NAN, INF) {
                    (true, true) => Self::INFINITY - 1 - magnitude,
                    (true, false) => Self::INFINITY - magnitude,
                    (false, _) => (magnitude ^ Self::INFINITY) - 1,
                }
            }
            #[inline(always)]
            fn union(self, other: $T) -> $T {
                self | other
            }
            #[inline(always)]
            fn negative(self) -> bool {
                self < 0
            }
        }
    )*};
}
bits! {
    i32: 0x7f80_0000;
    i64: 0x7ff0_0000_0000_0000;
}

/// `float16` and `bfloat16` have as many bits, and their infinities elsewhere.
#[derive(Clone, Copy)]
struct Half<const INFINITY: i16>(i16);

impl<const INFINITY: i16> Bits for Half<INFINITY> {
    const INFINITY: Self = Half(INFINITY);
    const ZERO: Self = Half(0);
    #[inline(always)]
    fn distance<const NAN: bool, const INF: bool>(self) -> Self {
        let magnitude = self.0 & i16::MAX;
        Half(match (NAN, INF) {
            (true, true) => INFINITY - 1 - magnitude,
            (true, false) => INFINITY - magnitude,
            (false, _) => (magnitude ^ INFINITY) - 1,
        })
    }
    #[inline(always)]
    fn union(self, other: Self) -> Self {
        Half(self.0 | other.0)
    }
    #[inline(always)]
    fn negative(self) -> bool {
        self.0 < 0
    }
}

#[inline(always)]
fn block_body<T: Bits, const NAN: bool, const INF: bool>(xs: &[T]) -> bool {
    xs.iter().fold(T::ZERO, |all, x| all.union(x.distance::<NAN, INF>())).negative()
}

/// Whether a block holds it: compiled for the baseline and for AVX2.
fn block<T: Bits, const NAN: bool, const INF: bool>(xs: &[T]) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn fast<T: Bits, const NAN: bool, const INF: bool>(xs: &[T]) -> bool {
            block_body::<T, NAN, INF>(xs)
        }
        if crate::simd::wide() {
            // SAFETY: the machine has the instructions.
            return unsafe { fast::<T, NAN, INF>(xs) };
        }
    }
    block_body::<T, NAN, INF>(xs)
}

fn search<T: Bits, const NAN: bool, const INF: bool>(xs: &[T]) -> bool {
    let some = |xs: &[T]| xs.chunks(BLOCK / size_of::<T>()).any(block::<T, NAN, INF>);
    let (each, bytes) = (TASK / size_of::<T>(), size_of_val(xs));
    if bytes <= TASK {
        return some(xs);
    }
    let found = AtomicBool::new(false);
    pool::share((bytes / SPEED) as u64, xs.len().div_ceil(each), &|_, task| {
        if !found.load(Relaxed) && some(&xs[task * each..xs.len().min((task + 1) * each)]) {
            found.store(true, Relaxed);
        }
    });
    found.into_inner()
}

fn search_for<T: Bits>(sought: Sought, xs: &[T]) -> bool {
    match sought {
        Sought::Nan => search::<T, true, false>(xs),
        Sought::Infinity => search::<T, false, true>(xs),
        Sought::Both => search::<T, true, true>(xs),
    }
}

/// Formats of one byte: what each of their 256 numbers is, where that is worth finding out.
fn search_bytes(sought: Sought, dtype: DType, bytes: &[u8]) -> bool {
    let bad = |b: u8| sought.is(Scalar::from_bytes(dtype, &[b]).to_f64());
    if bytes.len() < 512 {
        return bytes.iter().any(|&b| bad(b));
    }
    let table: [bool; 256] = std::array::from_fn(|b| bad(b as u8));
    bytes.iter().any(|&b| table[b as usize])
}

/// Whether the elements of a buffer, of this dtype, hold what is sought; never for dtypes without such numbers.
pub fn holds(buffer: &Buffer, dtype: DType, sought: Sought) -> bool {
    match dtype {
        DType::F32 | DType::C64 => search_for(sought, buffer.typed::<i32>()),
        DType::F64 | DType::C128 => search_for(sought, buffer.typed::<i64>()),
        DType::F16 => search_for(sought, buffer.typed::<Half<0x7c00>>()),
        DType::BF16 => search_for(sought, buffer.typed::<Half<0x7f80>>()),
        dtype if dtype.is_float() => search_bytes(sought, dtype, buffer.bytes()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every format, every number of two bytes or less and many others, at every place of short and long buffers.
    #[test]
    fn finds_what_is_there_and_nothing_else() {
        let odd = [0.0, -0.0, 1.0, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -f64::NAN];
        for dtype in DType::ALL.iter().copied().filter(|d| d.is_inexact()) {
            let part = dtype.real();
            for v in odd {
                let number = Scalar::from_f64(part, v);
                let bytes = &number.to_bytes()[..part.size()];
                for (n, places) in
                    [(1, vec![0]), (7, vec![0, 3, 6]), (3000, vec![0, 1023, 2999]), (300_001, vec![300_000])]
                {
                    let one =
                        Scalar::from_f64(part, 1.0).to_bytes()[..part.size()].repeat(n * dtype.size() / part.size());
                    for place in places {
                        let mut all = one.clone();
                        let at = (place + 1) * dtype.size() - part.size();
                        all[at..at + part.size()].copy_from_slice(bytes);
                        let buffer = Buffer::from_bytes(&all).unwrap();
                        for sought in [Sought::Nan, Sought::Infinity, Sought::Both] {
                            let want = sought.is(number.to_f64()) || sought.is(Scalar::from_f64(part, 1.0).to_f64());
                            assert_eq!(holds(&buffer, dtype, sought), want, "{dtype:?} {v} {n} {place} {sought:?}");
                        }
                    }
                }
            }
        }
        for bits in 0..=u16::MAX {
            for dtype in [DType::F16, DType::BF16] {
                let buffer = Buffer::from_bytes(&bits.to_ne_bytes()).unwrap();
                let number = Scalar::from_bytes(dtype, &bits.to_ne_bytes()).to_f64();
                for sought in [Sought::Nan, Sought::Infinity, Sought::Both] {
                    assert_eq!(holds(&buffer, dtype, sought), sought.is(number), "{dtype:?} {bits:#x}");
                }
            }
        }
        let buffer = Buffer::from_bytes(&[0xff; 64]).unwrap();
        assert!(!holds(&buffer, DType::I32, Sought::Both) && !holds(&buffer, DType::Bool, Sought::Both));
    }
}
