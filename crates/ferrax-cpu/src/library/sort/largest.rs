//! The k largest along an axis.

use super::{Rows, Scratch, float_key32, row_keys, shared_rows};
use crate::elementwise::kernel::{In, Out, by_size};
use crate::elementwise::{compute_dtype, convert};
use ferrax_base::{Buffer, DType, Result};
use std::sync::{Mutex, PoisonError};

/// `TopK`: the k largest along the axis, NaN first, and where they were; of equal ones the first.
pub fn top_k(k: usize, axis: usize, x: In<'_>, outs: &mut [Out<'_>]) -> Result<()> {
    let rows = Rows::of(x.shape(), axis);
    let d = x.ty.dtype;
    let wide = (compute_dtype(d) != d).then(|| convert::widened(d, x.ptr, x.ty.size())).transpose()?;
    let ptr = wide.as_ref().map_or(x.ptr, Buffer::as_ptr);
    let starts: Vec<usize> = rows.starts().collect();
    let largest = Largest { k, rows, d, keys: ptr };
    let orders: Vec<Mutex<Vec<u32>>> = starts.iter().map(|_| Mutex::default()).collect();
    let found = &largest;
    shared_rows(starts.len(), rows.n as u64, |row| {
        // SAFETY: the row of the operand that starts there.
        *orders[row].lock().unwrap_or_else(PoisonError::into_inner) = unsafe { found.row(starts[row])? };
        Ok(())
    })?;
    for (row, (start, order)) in starts.into_iter().zip(orders).enumerate() {
        let to = row / rows.inner * k * rows.inner + row % rows.inner;
        for (r, i) in order.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().enumerate() {
            by_size!(d.size(), T => {
                outs[0].of::<T>()[to + r * rows.inner] = x.of::<T>()[start + i as usize * rows.inner];
            });
            crate::library::reduce::store_index(&mut outs[1], to + r * rows.inner, i64::from(i));
        }
    }
    Ok(())
}

/// What top-k reads: rows of an operand in the compute dtype.
struct Largest {
    k: usize,
    rows: Rows,
    d: DType,
    keys: *const u8,
}
// SAFETY: threads only read the operand.
unsafe impl Sync for Largest {}

impl Largest {
    /// Where the k largest of a row are, in order.
    unsafe fn row(&self, start: usize) -> Result<Vec<u32>> {
        if self.d == DType::F32 && self.rows.inner == 1 {
            // SAFETY: the row's elements follow one another.
            let row = unsafe { std::slice::from_raw_parts(self.keys.cast::<u32>().add(start), self.rows.n) };
            return Ok(largest_floats(row, self.k));
        }
        let mut scratch = Scratch::new();
        row_keys(self.d, self.keys, self.rows, start, true, &mut scratch)?;
        let (major, minor) = (scratch.key(0), if scratch.lists > 1 { scratch.key(1) } else { &[] });
        let mut least = Least::new(self.k);
        for (&key, i) in major.iter().zip(0u32..) {
            least.push((!key, minor.get(i as usize).map_or(0, |m| !m), i));
        }
        Ok(least.finish().into_iter().map(|item| item.2).collect())
    }
}

/// Where the k largest floats of a row are, in order; blocks without a candidate cost a comparison.
fn largest_floats(row: &[u32], k: usize) -> Vec<u32> {
    const BLOCK: usize = 64;
    let mut least = Least::new(k);
    for (b, block) in row.chunks(BLOCK).enumerate() {
        let mut keys = [u32::MAX; BLOCK];
        keys.iter_mut().zip(block).for_each(|(k, &bits)| *k = !float_key32(bits, true));
        let best = keys.iter().fold(u32::MAX, |best, &k| best.min(k));
        if least.limit.is_some_and(|l| u64::from(best) << 32 >= l) {
            continue;
        }
        for (&key, i) in keys[..block.len()].iter().zip((b * BLOCK) as u32..) {
            least.push(u64::from(key) << 32 | u64::from(i));
        }
    }
    least.finish().into_iter().map(|item| item as u32).collect()
}

/// The k least of distinct items so far, and some that may be.
struct Least<P> {
    k: usize,
    kept: Vec<P>,
    /// The k-th least when it was last looked for: items from there on are passed over.
    limit: Option<P>,
}

impl<P: Ord + Copy> Least<P> {
    fn new(k: usize) -> Self {
        Least { k, kept: Vec::with_capacity(4 * k + 64), limit: None }
    }

    fn push(&mut self, item: P) {
        if self.limit.is_some_and(|l| item >= l) {
            return;
        }
        self.kept.push(item);
        if self.kept.len() == 4 * self.k + 64 {
            self.limit = Some(*self.kept.select_nth_unstable(self.k - 1).1);
            self.kept.truncate(self.k);
        }
    }

    fn finish(mut self) -> Vec<P> {
        self.kept.sort_unstable();
        self.kept.truncate(self.k);
        self.kept
    }
}
