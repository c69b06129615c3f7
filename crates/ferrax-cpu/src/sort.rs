//! Sorting: stable, along one axis, of several operands by one or more keys; and the k largest.
//!
//! Keys become unsigned integers that order as the values do (-0.0 equal to 0.0, NaN last), so that one radix
//! sort serves every dtype. A single operand without ties to tell apart is sorted by itself; otherwise the
//! stable permutation is found first and applied to each operand.

use crate::convert;
use crate::elementwise::compute_dtype;
use crate::kernel::{In, Out, by_size};
use ferrax_base::{DType, Result, bail};

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

/// The keys of a row: one list for most dtypes, two for complex ones. `wide` holds the compute dtype.
fn row_keys(d: DType, wide: *const u8, rows: Rows, start: usize, total: bool, keys: &mut Vec<Vec<u64>>) -> Result<()> {
    macro_rules! keys {
        ($T:ty, $x:ident => $($key:expr),+) => {{
            $(
                // SAFETY: the row's elements are start + r·inner for r < n, inside the operand.
                keys.push((0..rows.n).map(|r| unsafe {
                    let $x = *wide.cast::<$T>().add(start + r * rows.inner);
                    $key
                }).collect());
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
            keys!([u32; 2], x => u64::from(float_key32(x[0], total)), u64::from(float_key32(x[1], total)))
        }
        DType::C128 => keys!([u64; 2], x => float_key64(x[0], total), float_key64(x[1], total)),
        other => bail!(NotImplemented, "the CPU engine cannot sort {other}"),
    }
    Ok(())
}

/// Rows up to this length are sorted by comparisons.
const RADIX_FROM: usize = 512;

/// The stable permutation that sorts by the key lists, first list first.
fn permutation(keys: &[Vec<u64>], perm: &mut Vec<u32>) {
    let n = keys[0].len();
    perm.clear();
    perm.extend(0..n as u32);
    if n < RADIX_FROM {
        match keys {
            [k] => perm.sort_by_key(|&i| k[i as usize]),
            _ => perm.sort_by(|&a, &b| {
                keys.iter()
                    .map(|k| k[a as usize].cmp(&k[b as usize]))
                    .find(|o| o.is_ne())
                    .unwrap_or(std::cmp::Ordering::Equal)
            }),
        }
        return;
    }
    // Least significant list first: each pass is stable.
    for k in keys.iter().rev() {
        let mut pairs: Vec<(u64, u32)> = perm.iter().map(|&i| (k[i as usize], i)).collect();
        radix_sort(&mut pairs, |p| p.0);
        for (p, pair) in perm.iter_mut().zip(&pairs) {
            *p = pair.1;
        }
    }
}

/// Stable least-significant-digit radix sort, 11 bits a pass; digits that all elements share are skipped.
fn radix_sort<T: Copy>(data: &mut Vec<T>, key: impl Fn(&T) -> u64) {
    const BITS: u32 = 11;
    const BUCKETS: usize = 1 << BITS;
    let Some(first) = data.first().map(&key) else { return };
    let differ = data.iter().fold(0, |d, x| d | (key(x) ^ first));
    let mut other: Vec<T> = data.clone();
    let mut shift = 0;
    while shift < 64 && differ >> shift != 0 {
        if (differ >> shift) & (BUCKETS as u64 - 1) != 0 {
            let digit = |x: &T| (key(x) >> shift) as usize & (BUCKETS - 1);
            let mut counts = [0u32; BUCKETS];
            for x in data.iter() {
                counts[digit(x)] += 1;
            }
            let mut at = 0;
            for c in &mut counts {
                let here = *c;
                *c = at;
                at += here;
            }
            for x in data.iter() {
                let place = &mut counts[digit(x)];
                other[*place as usize] = *x;
                *place += 1;
            }
            std::mem::swap(data, &mut other);
        }
        shift += BITS;
    }
}

/// Sorts one contiguous row of a dtype whose equal keys mean equal bits; NaNs and zeros are put back as found.
fn sort_alone(d: DType, x: In<'_>, out: &mut Out<'_>, rows: Rows) -> bool {
    macro_rules! plain {
        ($T:ty, $key:expr) => {{
            out.bytes().copy_from_slice(x.bytes());
            for row in out.of::<$T>().chunks_exact_mut(rows.n.max(1)) {
                if row.len() < RADIX_FROM {
                    row.sort_unstable();
                } else {
                    let mut v = row.to_vec();
                    radix_sort(&mut v, $key);
                    row.copy_from_slice(&v);
                }
            }
        }};
    }
    macro_rules! float {
        ($B:ty, $K:ident, $sign:expr, $inf:expr) => {{
            out.bytes().copy_from_slice(x.bytes());
            for row in out.of::<$B>().chunks_exact_mut(rows.n.max(1)) {
                let odd = |b: &$B| *b == $sign || *b & !$sign > $inf;
                if row.iter().any(odd) {
                    // Zeros of both signs and NaNs keep their order: sort by key alone would mix their bits.
                    let mut v: Vec<($B, u32)> = row.iter().copied().zip(0..).collect();
                    v.sort_by_key(|p| ($K(p.0, false), p.1));
                    for (o, p) in row.iter_mut().zip(v) {
                        *o = p.0;
                    }
                } else if row.len() < RADIX_FROM {
                    row.sort_unstable_by_key(|&b| $K(b, false));
                } else {
                    let mut v = row.to_vec();
                    radix_sort(&mut v, |&b| u64::from($K(b, false)));
                    row.copy_from_slice(&v);
                }
            }
        }};
    }
    if rows.inner != 1 {
        return false;
    }
    match d {
        DType::Bool | DType::U8 => plain!(u8, |&k| u64::from(k)),
        DType::U16 => plain!(u16, |&k| u64::from(k)),
        DType::U32 => plain!(u32, |&k| u64::from(k)),
        DType::U64 => plain!(u64, |&k| k),
        DType::I8 => plain!(i8, |&k| u64::from(k as u8 ^ 0x80)),
        DType::I16 => plain!(i16, |&k| u64::from(k as u16 ^ 0x8000)),
        DType::I32 => plain!(i32, |&k| u64::from(k as u32 ^ 0x8000_0000)),
        DType::I64 => plain!(i64, |&k| k as u64 ^ 1 << 63),
        DType::F32 => float!(u32, float_key32, 1u32 << 31, 0x7f80_0000u32),
        DType::F64 => float!(u64, float_key64, 1u64 << 63, 0x7ff0_0000_0000_0000u64),
        _ => return false,
    }
    true
}

/// `Sort`.
pub fn sort(axis: usize, num_keys: usize, ins: &[In<'_>], outs: &mut [Out<'_>]) -> Result<()> {
    let rows = Rows::of(ins[0].shape(), axis);
    if ins[0].ty.size() == 0 {
        return Ok(());
    }
    if u32::try_from(rows.n).is_err() {
        bail!(NotImplemented, "the CPU engine sorts axes of at most 2**32 - 1 elements");
    }
    if ins.len() == 1 && sort_alone(ins[0].ty.dtype, ins[0], &mut outs[0], rows) {
        return Ok(());
    }
    let wide = ins[..num_keys]
        .iter()
        .map(|x| {
            let d = x.ty.dtype;
            (compute_dtype(d) != d).then(|| convert::widened(d, x.ptr, x.ty.size())).transpose()
        })
        .collect::<Result<Vec<_>>>()?;
    let (mut keys, mut perm) = (Vec::new(), Vec::new());
    for start in rows.starts() {
        keys.clear();
        for (x, w) in ins[..num_keys].iter().zip(&wide) {
            let ptr = w.as_ref().map_or(x.ptr, ferrax_base::Buffer::as_ptr);
            row_keys(x.ty.dtype, ptr, rows, start, false, &mut keys)?;
        }
        permutation(&keys, &mut perm);
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

/// `TopK`: the k largest along the axis, NaN first, and where they were; of equal ones the first.
pub fn top_k(k: usize, axis: usize, x: In<'_>, outs: &mut [Out<'_>]) -> Result<()> {
    let rows = Rows::of(x.shape(), axis);
    if outs[0].ty.size() == 0 {
        return Ok(());
    }
    let d = x.ty.dtype;
    let wide = (compute_dtype(d) != d).then(|| convert::widened(d, x.ptr, x.ty.size())).transpose()?;
    let ptr = wide.as_ref().map_or(x.ptr, ferrax_base::Buffer::as_ptr);
    let mut keys = Vec::new();
    let mut order: Vec<(u64, u64, u32)> = Vec::with_capacity(rows.n);
    for (row, start) in rows.starts().enumerate() {
        keys.clear();
        row_keys(d, ptr, rows, start, true, &mut keys)?;
        let minor = keys.get(1);
        order.clear();
        order.extend((0..rows.n).map(|i| (!keys[0][i], minor.map_or(0, |m| !m[i]), i as u32)));
        if k < rows.n {
            order.select_nth_unstable(k);
            order.truncate(k);
        }
        order.sort_unstable();
        let to = row / rows.inner * k * rows.inner + row % rows.inner;
        for (r, &(_, _, i)) in order.iter().enumerate() {
            by_size!(d.size(), T => {
                outs[0].of::<T>()[to + r * rows.inner] = x.of::<T>()[start + i as usize * rows.inner];
            });
            crate::reduce::store_index(&mut outs[1], to + r * rows.inner, i64::from(i));
        }
    }
    Ok(())
}
