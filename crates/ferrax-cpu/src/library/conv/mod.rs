//! Convolutions: windows are copied into the rows of a matrix, block by block, and multiplied by the kernel.
//!
//! Operands come with features last and with padding and dilation of the left one done, so a window is a few contiguous
//! runs: with one group and cells side by side, one for each row of the kernel. A block of windows stays in the
//! second-level cache. Kernels of a single cell need no copy: they are a matrix product. Groups of one feature
//! (depthwise) are summed directly, a vector of features at a time, and so are stretches of windows where there is one
//! feature at all (`single.rs`). Blocks are shared among threads, and are cut by shape alone. Read next: `dot/mod.rs`.

mod single;

use crate::elementwise::kernel::{In, Out, by_size};
use crate::library::dot;
use crate::library::movement::Walk;
use crate::pool::{self, Disjoint};
use ferrax_base::shape::strides;
use ferrax_base::{Buffer, DType, Result};
use ferrax_loops::ConvDims;

/// Bytes of a block of windows, about.
const BLOCK: usize = 128 << 10;

/// A convolution's sizes, in elements.
struct Sizes {
    /// Output places of an image, and where the window of each starts in it.
    starts: Vec<usize>,
    /// Where each contiguous run of a window starts in it.
    runs: Vec<usize>,
    /// Elements of a run.
    run: usize,
    /// Elements of an image.
    image: usize,
    groups: usize,
    /// Features of a group: of the left operand and of the result.
    inputs: usize,
    outputs: usize,
}

/// Places of a grid, as offsets.
fn offsets(extents: &[usize], strides: impl Iterator<Item = usize>) -> Vec<usize> {
    Walk { extents: extents.into(), strides: strides.collect() }.offsets().collect()
}

impl Sizes {
    fn new(dims: &ConvDims, x: &[usize], w: &[usize], out: &[usize]) -> Sizes {
        let spatial = x.len() - 2;
        let step = strides(x);
        let places = (0..spatial).map(|i| step[i + 1] * dims.strides[i]);
        let cells = (0..spatial).map(|i| step[i + 1] * dims.rhs_dilation[i]);
        let inputs = w[spatial];
        // cells of the last axis side by side make one run
        let joined = spatial > 0 && dims.groups == 1 && (dims.rhs_dilation[spatial - 1] == 1 || w[spatial - 1] == 1);
        let outer = if joined { spatial - 1 } else { spatial };
        Sizes {
            starts: offsets(&out[1..=spatial], places),
            runs: offsets(&w[..outer], cells.take(outer)),
            run: if joined { w[spatial - 1] * inputs } else { inputs },
            image: step[0],
            groups: dims.groups,
            inputs,
            outputs: w[spatial + 1] / dims.groups,
        }
    }

    /// Elements of a window.
    fn depth(&self) -> usize {
        self.runs.len() * self.run
    }
}

/// `Conv`.
pub fn conv(dims: &ConvDims, x: In<'_>, w: In<'_>, out: &mut Out<'_>) -> Result<()> {
    let s = Sizes::new(dims, x.shape(), w.shape(), out.shape());
    let dtype = x.ty.dtype;
    let images = out.shape()[0];
    let single = s.runs.len() == 1 && s.groups == 1 && s.run == s.inputs;
    if single && s.starts.len() * s.inputs == s.image {
        // every element is the window of one place
        let a = dot::Dense { ptr: x.ptr, row: s.inputs as isize, column: 1 };
        let b = dot::Dense { ptr: w.ptr, row: s.outputs as isize, column: 1 };
        // SAFETY: the operands and the result are dense matrices of these sizes.
        return unsafe { dot::multiply(dtype, (images * s.starts.len(), s.outputs, s.inputs), a, b, out.ptr, true) };
    }
    if s.groups > 1 && s.inputs == 1 && s.outputs == 1 {
        match dtype {
            DType::F32 => return depthwise::<f32>(&s, images, x, w, out),
            DType::F64 => return depthwise::<f64>(&s, images, x, w, out),
            _ => {}
        }
    }
    let spatial = dims.strides.len();
    let line = if spatial > 0 { out.shape()[spatial] } else { 0 };
    if line > 0 && s.groups * s.inputs * s.outputs == 1 && (dims.strides[spatial - 1] == 1 || line == 1) {
        match dtype {
            DType::F32 => {
                single::run::<f32>(&s, images, line, x, w, out);
                return Ok(());
            }
            DType::F64 => {
                single::run::<f64>(&s, images, line, x, w, out);
                return Ok(());
            }
            _ => {}
        }
    }
    let windows = Windows { s: &s, dtype, x: x.ptr, w: w.ptr, out: out.ptr };
    windows.run(images)
}

/// A convolution by blocks of windows.
struct Windows<'a> {
    s: &'a Sizes,
    dtype: DType,
    x: *const u8,
    w: *const u8,
    out: *mut u8,
}
// SAFETY: threads read the operands and write disjoint rows of the result.
unsafe impl Sync for Windows<'_> {}

impl Windows<'_> {
    fn run(&self, images: usize) -> Result<()> {
        let s = self.s;
        let places = s.starts.len();
        let rows = (BLOCK / (s.depth() * self.dtype.size()).max(1)).clamp(16, 1024).min(places);
        let blocks = places.div_ceil(rows);
        let work = images * places * s.groups * s.depth() * s.outputs;
        pool::try_share((work / 30) as u64, images * blocks, &|_, task| {
            let (image, first) = (task / blocks, task % blocks * rows);
            self.block(image, first, rows.min(places - first))
        })
    }

    /// The results of some places of an image.
    fn block(&self, image: usize, first: usize, rows: usize) -> Result<()> {
        let (s, size) = (self.s, self.dtype.size());
        let (depth, features) = (s.depth(), s.groups * s.outputs);
        let mut windows = Buffer::allocate(rows * depth * size)?;
        let mut part = if s.groups == 1 { None } else { Some(Buffer::allocate(rows * s.outputs * size)?) };
        let starts = &s.starts[first..first + rows];
        // SAFETY: windows lie inside the image, the result has rows for every place, and the scratch memory is as large
        // as what is written there.
        unsafe {
            let out = self.out.add((image * s.starts.len() + first) * features * size);
            for g in 0..s.groups {
                let x = self.x.add((image * s.image + g * s.inputs) * size);
                by_size!(size, T => copy_windows::<T>(s, starts, x.cast(), windows.as_mut_ptr().cast()));
                let a = dot::Dense { ptr: windows.as_ptr(), row: depth as isize, column: 1 };
                let b = dot::Dense { ptr: self.w.add(g * s.outputs * size), row: features as isize, column: 1 };
                let to = part.as_mut().map_or(out, Buffer::as_mut_ptr);
                dot::multiply(self.dtype, (rows, s.outputs, depth), a, b, to, false)?;
                if let Some(part) = &part {
                    let bytes = s.outputs * size;
                    for r in 0..rows {
                        let to = out.add((r * features + g * s.outputs) * size);
                        std::ptr::copy_nonoverlapping(part.as_ptr().add(r * bytes), to, bytes);
                    }
                }
            }
        }
        Ok(())
    }
}

unsafe fn copy_windows<T: Copy>(s: &Sizes, starts: &[usize], x: *const T, mut to: *mut T) {
    for &start in starts {
        for &at in &s.runs {
            // SAFETY: the caller's contract.
            unsafe {
                let from = x.add(start + at);
                // short runs are copied faster in pieces than by a call
                if s.run <= 64 {
                    let whole = s.run / 8 * 8;
                    for i in (0..whole).step_by(8) {
                        to.add(i).cast::<[T; 8]>().write_unaligned(from.add(i).cast::<[T; 8]>().read_unaligned());
                    }
                    (whole..s.run).for_each(|i| to.add(i).write(from.add(i).read()));
                } else {
                    std::ptr::copy_nonoverlapping(from, to, s.run);
                }
                to = to.add(s.run);
            }
        }
    }
}

/// Floats that are multiplied and added at once.
trait Float: Copy + Default + Send + Sync {
    fn mul_add(self, b: Self, c: Self) -> Self;
}
impl Float for f32 {
    #[inline(always)]
    fn mul_add(self, b: f32, c: f32) -> f32 {
        f32::mul_add(self, b, c)
    }
}
impl Float for f64 {
    #[inline(always)]
    fn mul_add(self, b: f64, c: f64) -> f64 {
        f64::mul_add(self, b, c)
    }
}

/// Each feature with a kernel of its own: the kernel is (cells, features).
fn depthwise<T: Float>(s: &Sizes, images: usize, x: In<'_>, w: In<'_>, out: &mut Out<'_>) -> Result<()> {
    let (features, places) = (s.groups, s.starts.len());
    let (x, w, y) = (x.of::<T>(), w.of::<T>(), Disjoint(out.of::<T>().as_mut_ptr()));
    let rows = (BLOCK / (features * size_of::<T>())).clamp(1, 1024).min(places);
    let blocks = places.div_ceil(rows);
    pool::share((images * places * features * s.runs.len() / 8) as u64, images * blocks, &|_, task| {
        let (image, first) = (task / blocks, task % blocks * rows);
        let x = &x[image * s.image..(image + 1) * s.image];
        for (i, &start) in s.starts[first..(first + rows).min(places)].iter().enumerate() {
            let at = (image * places + first + i) * features;
            // SAFETY: each task has rows of the result of its own.
            let y = unsafe { std::slice::from_raw_parts_mut(y.at(at), features) };
            let cells: Cells<'_, T> = Cells { x: &x[start..], w, runs: &s.runs };
            sum_cells(&cells, y);
        }
    });
    Ok(())
}

/// The cells of a window, a vector of features each.
struct Cells<'a, T> {
    x: &'a [T],
    w: &'a [T],
    runs: &'a [usize],
}

#[inline(always)]
fn sum_body<T: Float>(c: &Cells<'_, T>, y: &mut [T]) {
    const LANES: usize = 32;
    let features = y.len();
    for (f, y) in y.chunks_mut(LANES).enumerate() {
        let mut acc = [T::default(); LANES];
        let n = y.len();
        for (k, &run) in c.runs.iter().enumerate() {
            let (x, w) = (&c.x[run + f * LANES..][..n], &c.w[k * features + f * LANES..][..n]);
            if let (Ok(x), Ok(w)) = (<&[T; LANES]>::try_from(x), <&[T; LANES]>::try_from(w)) {
                (0..LANES).for_each(|i| acc[i] = x[i].mul_add(w[i], acc[i]));
            } else {
                (0..n).for_each(|i| acc[i] = x[i].mul_add(w[i], acc[i]));
            }
        }
        y.copy_from_slice(&acc[..n]);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn sum_fast<T: Float>(c: &Cells<'_, T>, y: &mut [T]) {
    sum_body(c, y);
}

#[inline]
fn sum_cells<T: Float>(c: &Cells<'_, T>, y: &mut [T]) {
    #[cfg(target_arch = "x86_64")]
    if crate::simd::wide() {
        // SAFETY: the machine has the instruction set.
        return unsafe { sum_fast(c, y) };
    }
    sum_body(c, y);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrax_base::Shape;
    use ferrax_loops::Type;

    /// By the definition.
    fn plain(d: &ConvDims, x: &[f32], w: &[f32], [xs, ws, os]: [&[usize]; 3]) -> Vec<f64> {
        let (rows, columns, inputs) = (xs[1], xs[2], ws[2]);
        let (c, o) = (xs[3], ws[3]);
        let mut out = vec![0.0; os.iter().product()];
        for (at, y) in out.iter_mut().enumerate() {
            let (n, i, j, f) = (at / (os[1] * os[2] * o), at / (os[2] * o) % os[1], at / o % os[2], at % o);
            let g = f / (o / d.groups);
            for (k, l, e) in (0..ws[0]).flat_map(|k| (0..ws[1]).flat_map(move |l| (0..inputs).map(move |e| (k, l, e))))
            {
                let (r, q) = (i * d.strides[0] + k * d.rhs_dilation[0], j * d.strides[1] + l * d.rhs_dilation[1]);
                let a = x[((n * rows + r) * columns + q) * c + g * inputs + e];
                *y += f64::from(a) * f64::from(w[((k * ws[1] + l) * inputs + e) * o + f]);
            }
        }
        out
    }

    #[test]
    fn every_path_sums_its_windows() {
        for (groups, cin, cout) in [(1, 1, 1), (1, 3, 5), (1, 8, 16), (2, 4, 6), (4, 4, 4), (40, 40, 40), (3, 3, 6)] {
            for (kernel, strides, dilation) in
                [([3, 3], [1, 1], [1, 1]), ([1, 1], [1, 1], [1, 1]), ([1, 1], [2, 2], [1, 1]), ([2, 3], [2, 1], [1, 2])]
            {
                let out = |n: usize, i: usize| (n - ((kernel[i] - 1) * dilation[i] + 1)) / strides[i] + 1;
                let xs = [2, 9, 8, cin];
                let ws = [kernel[0], kernel[1], cin / groups, cout];
                let os = [2, out(9, 0), out(8, 1), cout];
                let d = ConvDims {
                    strides: Shape::from_slice(&strides),
                    rhs_dilation: Shape::from_slice(&dilation),
                    groups,
                    tf32: false,
                };
                let value = |i: usize| ((i * 37 % 101) as f32 - 50.0) / 16.0;
                let x: Vec<f32> = (0..xs.iter().product()).map(value).collect();
                let w: Vec<f32> = (0..ws.iter().product()).map(|i| value(i + 7)).collect();
                let mut y = vec![0f32; os.iter().product()];
                let [tx, tw, ty] = [&xs, &ws, &os].map(|s| Type::new(DType::F32, s));
                // SAFETY: the vectors have the types' elements.
                unsafe {
                    let out = &mut Out::new(y.as_mut_ptr().cast(), &ty);
                    conv(&d, In::new(x.as_ptr().cast(), &tx), In::new(w.as_ptr().cast(), &tw), out).unwrap();
                }
                for (a, b) in y.iter().zip(plain(&d, &x, &w, [&xs, &ws, &os])) {
                    assert!((f64::from(*a) - b).abs() <= 1e-5 * b.abs().max(10.0), "{groups} {kernel:?}: {a} {b}");
                }
            }
        }
    }
}
