//! Sorting: stable, along one axis, of several operands by one or more keys; and the k largest.
//!
//! Keys become unsigned integers that order as the values do (-0.0 equal to 0.0, NaN last), so that one radix
//! sort serves every dtype. A single operand without ties to tell apart is sorted by itself (`alone.rs`); otherwise the
//! stable permutation is found first and applied to each operand. The k largest are found in `largest.rs`.

mod alone;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod largest;
#[cfg(target_arch = "x86_64")]
mod quick;

use crate::elementwise::kernel::{In, Out, by_size};
use crate::elementwise::{compute_dtype, convert};
use crate::pool;
use ferrax_base::{Buffer, DType, Result, bail};
pub use largest::top_k;
use smallvec::SmallVec;

/// A key that orders as the element does. `total` tells zeros apart.
#[inline(always)]
fn float_key32(bits: u32, total: bool) -> u32 {
    let nan = bits & 0x7fff_ffff > 0x7f80_0000;
    let bits = if bits == 0x8000_0000 && !total { 0 } else { bits };
    let flipped = bits ^ (((bits as i32 >> 31) as u32) | 0x8000_0000);
    if nan { u32::MAX } else { flipped }
}

#[inline(always)]
fn float_key64(bits: u64, total: bool) -> u64 {
    let nan = bits & (u64::MAX >> 1) > 0x7ff0_0000_0000_0000;
    let bits = if bits == 1 << 63 && !total { 0 } else { bits };
    let flipped = bits ^ (((bits as i64 >> 63) as u64) | 1 << 63);
    if nan { u64::MAX } else { flipped }
}

/// An array as rows along the sorted axis.
#[derive(Clone, Copy)]
struct Rows {
    outer: usize,
    n: usize,
    inner: usize,
}

impl Rows {
    fn of(shape: &[usize], axis: usize) -> Rows {
        Rows { outer: shape[..axis].iter().product(), n: shape[axis], inner: shape[axis + 1..].iter().product() }
    }

    /// First element of each row.
    fn starts(self) -> impl Iterator<Item = usize> {
        (0..self.outer).flat_map(move |o| (0..self.inner).map(move |i| o * self.n * self.inner + i))
    }
}

/// Buffers that rows share.
struct Scratch {
    /// Key lists, each a row of u64.
    keys: SmallVec<[Buffer; 2]>,
    /// How many of them the current row has.
    lists: usize,
    pairs: [Option<Buffer>; 2],
}

impl Scratch {
    fn new() -> Self {
        Scratch { keys: SmallVec::new(), lists: 0, pairs: [None, None] }
    }

    fn push(&mut self, n: usize, keys: impl Iterator<Item = u64>) -> Result<()> {
        if self.lists == self.keys.len() {
            self.keys.push(Buffer::allocate(n * 8)?);
        }
        self.keys[self.lists].typed_mut::<u64>().iter_mut().zip(keys).for_each(|(o, k)| *o = k);
        self.lists += 1;
        Ok(())
    }

    fn key(&self, list: usize) -> &[u64] {
        self.keys[list].typed()
    }
}

/// Appends the keys of a row: one list for most dtypes, two for complex ones. `wide` holds the compute dtype.
fn row_keys(d: DType, wide: *const u8, rows: Rows, start: usize, total: bool, scratch: &mut Scratch) -> Result<()> {
    macro_rules! keys {
        ($T:ty, $x:ident => $($key:expr),+) => {{
            $(
                // SAFETY: the row's elements are start + r·inner for r < n, inside the operand.
                scratch.push(rows.n, (0..rows.n).map(|r| unsafe {
                    let $x = *wide.cast::<$T>().add(start + r * rows.inner);
                    $key
                }))?;
            )+
        }};
    }
    match compute_dtype(d) {
        DType::Bool | DType::U8 => keys!(u8, x => u64::from(x)),
        DType::U16 => keys!(u16, x => u64::from(x)),
        DType::U32 => keys!(u32, x => u64::from(x)),
        DType::U64 => keys!(u64, x => x),
        DType::I8 => keys!(i8, x => u64::from(x as u8 ^ 0x80)),
        DType::I16 => keys!(i16, x => u64::from(x as u16 ^ 0x8000)),
        DType::I32 => keys!(i32, x => u64::from(x as u32 ^ 0x8000_0000)),
        DType::I64 => keys!(i64, x => x as u64 ^ 1 << 63),
        DType::F32 => keys!(u32, x => u64::from(float_key32(x, total))),
        DType::F64 => keys!(u64, x => float_key64(x, total)),
        DType::C64 => {
            keys!([u32; 2], x => u64::from(float_key32(x[0], total)), u64::from(float_key32(x[1], total)));
        }
        DType::C128 => keys!([u64; 2], x => float_key64(x[0], total), float_key64(x[1], total)),
        other => bail!(NotImplemented, "the CPU engine cannot sort {other}"),
    }
    Ok(())
}

/// Rows up to this length are sorted by comparisons.
const RADIX_FROM: usize = 256;

/// The stable permutation that sorts a row by the scratch's key lists, first list first.
fn permutation(scratch: &mut Scratch, perm: &mut [u32]) -> Result<()> {
    let n = perm.len();
    perm.iter_mut().zip(0..).for_each(|(p, i)| *p = i);
    if n < RADIX_FROM {
        if let [k] = &scratch.keys[..scratch.lists] {
            let k: &[u64] = k.typed();
            perm.sort_by_key(|&i| k[i as usize]);
        } else {
            perm.sort_by(|&a, &b| {
                let mut orders =
                    (0..scratch.lists).map(|l| scratch.key(l)[a as usize].cmp(&scratch.key(l)[b as usize]));
                orders.find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
            });
        }
        return Ok(());
    }
    let [a, b] = &mut scratch.pairs;
    // Least significant list first: each pass is stable.
    for list in scratch.keys[..scratch.lists].iter().rev() {
        let k: &[u64] = list.typed();
        if u32::try_from(k[..n].iter().fold(0, |all, k| all | k)).is_ok() {
            let (a, b) = (buffer_of::<u64>(a, n)?, buffer_of::<u64>(b, n)?);
            a.iter_mut().zip(&*perm).for_each(|(a, &i)| *a = k[i as usize] << 32 | u64::from(i));
            radix_sort::<_, 4, 4>(a, b, |&p| p);
            perm.iter_mut().zip(&*a).for_each(|(p, &pair)| *p = pair as u32);
        } else {
            let (a, b) = (buffer_of::<[u64; 2]>(a, n)?, buffer_of::<[u64; 2]>(b, n)?);
            a.iter_mut().zip(&*perm).for_each(|(a, &i)| *a = [k[i as usize], u64::from(i)]);
            radix_sort::<_, 0, 8>(a, b, |p| p[0]);
            perm.iter_mut().zip(&*a).for_each(|(p, pair)| *p = pair[1] as u32);
        }
    }
    Ok(())
}

/// At least `n` elements of T in a buffer that is kept.
fn buffer_of<T: Copy>(held: &mut Option<Buffer>, n: usize) -> Result<&mut [T]> {
    if held.as_ref().is_none_or(|b| b.len() < n * size_of::<T>()) {
        *held = Some(Buffer::allocate(n * size_of::<T>())?);
    }
    match held {
        Some(b) => Ok(&mut b.typed_mut()[..n]),
        None => bail!(Internal, "a scratch buffer vanished"),
    }
}

/// Stable least-significant-digit radix sort by `BYTES` bytes of the key from `FIRST` on; bytes that all elements share
/// are skipped. Their number is a constant so that all bytes of an element are counted in straight-line code.
fn radix_sort<T: Copy, const FIRST: usize, const BYTES: usize>(
    data: &mut [T],
    other: &mut [T],
    key: impl Fn(&T) -> u64,
) {
    let mut counts = [[0u32; 256]; BYTES];
    for x in data.iter() {
        let k = key(x) >> (8 * FIRST);
        for (b, c) in counts.iter_mut().enumerate() {
            c[(k >> (8 * b)) as usize & 255] += 1;
        }
    }
    let (mut from, mut to) = (data, other);
    let mut moved = false;
    for (b, c) in counts.iter_mut().enumerate() {
        if c.contains(&(from.len() as u32)) {
            continue;
        }
        let mut at = 0;
        for c in c.iter_mut() {
            let here = *c;
            *c = at;
            at += here;
        }
        let shift = 8 * (b + FIRST);
        for x in from.iter() {
            let place = &mut c[(key(x) >> shift) as usize & 255];
            to[*place as usize] = *x;
            *place += 1;
        }
        std::mem::swap(&mut from, &mut to);
        moved = !moved;
    }
    if moved {
        to.copy_from_slice(from);
    }
}

/// `Sort`.
pub fn sort(axis: usize, num_keys: usize, ins: &[In<'_>], outs: &mut [Out<'_>]) -> Result<()> {
    let rows = Rows::of(ins[0].shape(), axis);
    if u32::try_from(rows.n).is_err() {
        bail!(NotImplemented, "the CPU engine sorts axes of at most 2**32 - 1 elements");
    }
    if ins.len() == 1 && alone::sort(ins[0].ty.dtype, ins[0], &mut outs[0], rows)? {
        return Ok(());
    }
    let wide = ins[..num_keys]
        .iter()
        .map(|x| {
            let d = x.ty.dtype;
            (compute_dtype(d) != d).then(|| convert::widened(d, x.ptr, x.ty.size())).transpose()
        })
        .collect::<Result<Vec<_>>>()?;
    let mut scratch = Scratch::new();
    let mut perm = Buffer::allocate(4 * rows.n)?;
    for start in rows.starts() {
        scratch.lists = 0;
        for (x, w) in ins[..num_keys].iter().zip(&wide) {
            let ptr = w.as_ref().map_or(x.ptr, Buffer::as_ptr);
            row_keys(x.ty.dtype, ptr, rows, start, false, &mut scratch)?;
        }
        let perm = perm.typed_mut::<u32>();
        permutation(&mut scratch, perm)?;
        for (x, out) in ins.iter().zip(outs.iter_mut()) {
            by_size!(x.ty.dtype.size(), T => {
                let (src, dst) = (x.of::<T>(), out.of::<T>());
                for (r, &p) in perm.iter().enumerate() {
                    dst[start + r * rows.inner] = src[start + p as usize * rows.inner];
                }
            });
        }
    }
    Ok(())
}

/// Runs `f` on each of `count` rows, on several threads where `nanoseconds` a row make it worth it.
fn shared_rows(count: usize, nanoseconds: u64, f: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    pool::try_share(nanoseconds * count as u64, count, &|_, row| f(row))
}
