//! Sorting of a single operand: its rows become keys, which are sorted and become values again.
//!
//! Keys of 4 and 8 bytes are sorted in registers where the machine has AVX2, by radix elsewhere, as shorter ones are. A
//! long row is shared out among threads. Read next: `quick.rs`.

#[cfg(target_arch = "x86_64")]
use super::{RADIX_FROM, Rows, buffer_of, float_key32, float_key64, quick, radix_sort, shared_rows};
use crate::elementwise::kernel::{In, Kernel, Out, map1};
use ferrax_base::{Buffer, DType, Result};
use std::sync::{Mutex, PoisonError};

/// Elements that a thread turns into keys, or back, at once.
const CHUNK: usize = 32 << 10;

/// Keys that are sorted as they are: unsigned integers.
trait Key: Copy + Ord + Send + Sync + 'static {
    const LAST: Self;
    /// Sorts `row`, with room for as many keys in `other`.
    fn sort(row: &mut [Self], other: &mut [Self]);
}

macro_rules! keys {
    ($($K:ident, $bytes:literal;)*) => {
        $(impl Key for $K {
            const LAST: $K = $K::MAX;

            fn sort(row: &mut [$K], other: &mut [$K]) {
                #[cfg(target_arch = "x86_64")]
                if quick::suits() {
                    return quick::sort(row, other);
                }
                if row.len() < RADIX_FROM { row.sort_unstable() } else { radix_sort::<_, 0, $bytes>(row, other, |&k| u64::from(k)) }
            }
        })*
    };
}
keys!(u32, 4; u64, 8;);

/// How values become keys and keys values, and the key of a value where several values share one.
struct Change<K> {
    to_keys: Kernel,
    to_values: Kernel,
    ties: Option<(fn(K) -> K, K)>,
}

/// Sorts contiguous rows of an operand of a dtype whose equal keys mean equal bits; zeros of both signs and NaNs are put
/// back in the order in which they came. Says whether the dtype is one of those.
pub fn sort(d: DType, x: In<'_>, out: &mut Out<'_>, rows: Rows) -> Result<bool> {
    macro_rules! short {
        ($T:ty, $bytes:literal, $key:expr) => {
            each_row(x.of::<$T>(), out.of::<$T>(), rows.n, |x, out, held| {
                out.copy_from_slice(x);
                if out.len() < RADIX_FROM {
                    out.sort_unstable();
                } else {
                    let other = buffer_of::<$T>(held, out.len())?;
                    radix_sort::<_, 0, $bytes>(out, other, $key);
                }
                Ok(())
            })?
        };
    }
    macro_rules! long {
        ($K:ident, $x:ident => $key:expr, $k:ident => $value:expr, $ties:expr) => {{
            let (to_keys, to_values) = (map1!($x: $K => $K, $key), map1!($k: $K => $K, $value));
            let change = Change::<$K> { to_keys, to_values, ties: $ties };
            each_row(x.of::<$K>(), out.of::<$K>(), rows.n, |x, out, held| through_keys(x, out, held, &change))?
        }};
    }
    macro_rules! unsigned {
        ($K:ident) => {
            each_row(x.of::<$K>(), out.of::<$K>(), rows.n, |x, out, held| {
                out.copy_from_slice(x);
                $K::sort(out, buffer_of(held, x.len())?);
                Ok(())
            })?
        };
    }
    const SIGN: u32 = 1 << 31;
    const SIGN64: u64 = 1 << 63;
    if rows.inner != 1 {
        return Ok(false);
    }
    match d {
        DType::Bool | DType::U8 => short!(u8, 1, |&k| u64::from(k)),
        DType::U16 => short!(u16, 2, |&k| u64::from(k)),
        DType::I8 => short!(i8, 1, |&k| u64::from(k as u8 ^ 0x80)),
        DType::I16 => short!(i16, 2, |&k| u64::from(k as u16 ^ 0x8000)),
        DType::U32 => unsigned!(u32),
        DType::U64 => unsigned!(u64),
        DType::I32 => long!(u32, x => x ^ SIGN, k => k ^ SIGN, None),
        DType::I64 => long!(u64, x => x ^ SIGN64, k => k ^ SIGN64, None),
        DType::F32 => long!(
            u32, x => float_key32(x, false), k => k ^ if k & SIGN != 0 { SIGN } else { !0 },
            Some((|x| float_key32(x, false), SIGN))
        ),
        DType::F64 => long!(
            u64, x => float_key64(x, false), k => k ^ if k & SIGN64 != 0 { SIGN64 } else { !0 },
            Some((|x| float_key64(x, false), SIGN64))
        ),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Runs `f` on rows of `n` elements with a buffer that it may keep, on several threads where it is worth it.
fn each_row<T: Send + Sync>(
    x: &[T],
    out: &mut [T],
    n: usize,
    f: impl Fn(&[T], &mut [T], &mut Option<Buffer>) -> Result<()> + Sync,
) -> Result<()> {
    let n = n.max(1);
    let group = (4096 / n).max(1);
    in_parts(x, out, group * n, 6 * (group * n) as u64, |x, out| {
        let mut held = None;
        x.chunks_exact(n).zip(out.chunks_exact_mut(n)).try_for_each(|(x, out)| f(x, out, &mut held))
    })
}

/// Runs `f` on parts of `each` elements, on several threads where `nanoseconds` a part make it worth it.
fn in_parts<T: Send + Sync>(
    x: &[T],
    out: &mut [T],
    each: usize,
    nanoseconds: u64,
    f: impl Fn(&[T], &mut [T]) -> Result<()> + Sync,
) -> Result<()> {
    if x.len() <= each {
        return f(x, out);
    }
    let parts: Vec<_> = x.chunks(each).zip(out.chunks_mut(each)).map(Mutex::new).collect();
    shared_rows(parts.len(), nanoseconds, |i| {
        let (x, out) = &mut *parts[i].lock().unwrap_or_else(PoisonError::into_inner);
        f(x, out)
    })
}

/// Sorts a row by keys that are made of it.
fn through_keys<K: Key>(x: &[K], out: &mut [K], held: &mut Option<Buffer>, change: &Change<K>) -> Result<()> {
    let keys = buffer_of::<K>(held, x.len())?;
    map(change.to_keys, x, keys)?;
    K::sort(keys, out);
    map(change.to_values, keys, out)?;
    let Some((key, zero)) = change.ties else { return Ok(()) };
    for shared in [zero, K::LAST] {
        let first = keys.partition_point(|&k| k < shared);
        let end = first + keys[first..].partition_point(|&k| k <= shared);
        if first < end {
            let those = x.iter().filter(|&&x| key(x) == shared);
            out[first..end].iter_mut().zip(those).for_each(|(out, &x)| *out = x);
        }
    }
    Ok(())
}

/// Runs a kernel on a row, on several threads where it is worth it.
fn map<K: Key>(kernel: Kernel, x: &[K], out: &mut [K]) -> Result<()> {
    in_parts(x, out, CHUNK, CHUNK as u64 / 2, |x, out| {
        // SAFETY: the kernel is one of this type, both sides have its elements, and they are not the same.
        unsafe { kernel(&x.as_ptr().cast(), out.as_mut_ptr().cast(), x.len(), 0) };
        Ok(())
    })
}
