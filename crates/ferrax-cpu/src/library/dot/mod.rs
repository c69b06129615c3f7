//! Dot products: batched matrix products over any contracting and batch axes.
//!
//! Each side's axes are brought to (batch, free, contracted); where the free or contracted axes do not walk
//! memory with one stride the operand is copied first. Real products are those of `matmul`; large complex ones go to the
//! `gemm` crate, small ones and matrix-vector products to loops here; integers wrap. f16, bf16 and the float8 formats
//! are multiplied and summed in f32.

pub mod planned;
mod small;

use crate::elementwise::kernel::{In, Out};
use crate::elementwise::{compute_dtype, convert};
use crate::library::matmul::{Kernels, Matrix, Product};
use crate::library::movement::{Walk, strided_copy};
use crate::math::complex::Complex;
use crate::pool;
use ferrax_base::{Buffer, DType, Result, bail, shape::strides};
use ferrax_loops::DotDims;
use smallvec::SmallVec;

/// One side, as strides in elements over (batch…, free, contracted).
struct Side {
    ptr: *const u8,
    free: isize,
    contract: isize,
    batch: SmallVec<[usize; 4]>,
    /// What the pointer points into, where the operand was converted or packed.
    _held: SmallVec<[Buffer; 2]>,
}

/// Sizes of one matrix product.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    m: usize,
    n: usize,
    k: usize,
}

/// Strides of one matrix product: (row, column) of each operand; the result is row-major.
#[derive(Clone, Copy, Debug)]
struct Steps {
    a: (isize, isize),
    b: (isize, isize),
}

fn product(shape: &[usize], axes: &[usize]) -> usize {
    axes.iter().map(|&a| shape[a]).product()
}

fn free_axes(rank: usize, batch: &[usize], contract: &[usize]) -> SmallVec<[usize; 4]> {
    (0..rank).filter(|a| !batch.contains(a) && !contract.contains(a)).collect()
}

/// The one stride with which these axes walk memory in row-major order, if there is one.
fn single_stride(shape: &[usize], st: &[usize], axes: &[usize]) -> Option<isize> {
    let mut live = axes.iter().filter(|&&a| shape[a] != 1).rev();
    let Some(&last) = live.next() else { return Some(1) };
    let mut expected = st[last] * shape[last];
    for &a in live {
        if st[a] != expected {
            return None;
        }
        expected *= shape[a];
    }
    Some(st[last] as isize)
}

impl Side {
    fn new(x: In<'_>, compute: DType, batch: &[usize], contract: &[usize]) -> Result<Side> {
        let shape = x.shape();
        let mut held: SmallVec<[Buffer; 2]> = SmallVec::new();
        let mut ptr = x.ptr;
        if x.ty.dtype != compute {
            let plan = convert::plan(x.ty.dtype, compute)?;
            let converted = plan.run_whole(x.ptr, x.ty.size(), compute)?;
            ptr = converted.as_ptr();
            held.push(converted);
        }
        let st = strides(shape);
        let free = free_axes(shape.len(), batch, contract);
        if let (Some(f), Some(c)) = (single_stride(shape, &st, &free), single_stride(shape, &st, contract)) {
            let batch = batch.iter().map(|&a| st[a]).collect();
            return Ok(Side { ptr, free: f, contract: c, batch, _held: held });
        }
        let order: SmallVec<[usize; 6]> = batch.iter().chain(&free).chain(contract).copied().collect();
        let packed_shape: SmallVec<[usize; 6]> = order.iter().map(|&a| shape[a]).collect();
        let ss: SmallVec<[isize; 6]> = order.iter().map(|&a| st[a] as isize).collect();
        let packed_strides = strides(&packed_shape);
        let ds: SmallVec<[isize; 6]> = packed_strides.iter().map(|&s| s as isize).collect();
        let mut packed = Buffer::allocate(x.ty.size() * compute.size())?;
        // SAFETY: both sides have the operand's elements; strides come from its shape.
        unsafe { strided_copy(compute.size(), &packed_shape, ptr, &ss, packed.as_mut_ptr(), &ds) };
        let side = Side {
            ptr: packed.as_ptr(),
            free: product(shape, contract) as isize,
            contract: 1,
            batch: packed_strides[..batch.len()].iter().copied().collect(),
            _held: SmallVec::from_iter([packed]),
        };
        Ok(side)
    }
}

/// A matrix in memory, its strides in elements.
#[derive(Clone, Copy)]
pub(crate) struct Dense {
    pub ptr: *const u8,
    pub row: isize,
    pub column: isize,
}

/// The product of (m, k) and (k, n) matrices of one dtype, row-major at `out`; on several threads where `shared` and
/// worth it.
///
/// # Safety
/// The addresses that sizes and strides reach must be valid for reads, m·n elements at `out` for writes.
pub(crate) unsafe fn multiply(
    dtype: DType,
    (m, n, k): (usize, usize, usize),
    a: Dense,
    b: Dense,
    out: *mut u8,
    shared: bool,
) -> Result<()> {
    macro_rules! real {
        ($T:ty) => {{
            let a = Matrix { ptr: a.ptr.cast::<$T>(), row: a.row, column: a.column };
            let b = Matrix { ptr: b.ptr.cast::<$T>(), row: b.row, column: b.column };
            // SAFETY: the caller's contract.
            unsafe { Product { m, n, k, a, b, c: out.cast::<$T>() }.run(shared) }
        }};
    }
    match dtype {
        DType::F32 => real!(f32),
        DType::F64 => real!(f64),
        _ => {
            let steps = Steps { a: (a.row, a.column), b: (b.row, b.column) };
            // SAFETY: the caller's contract.
            unsafe { matmul(dtype, Sizes { m, n, k }, steps, a.ptr, b.ptr, out) }
        }
    }
}

/// The dtype in which products are summed.
fn accumulation(lhs: DType, rhs: DType, out: DType) -> DType {
    let c = compute_dtype(out);
    let wide = [compute_dtype(lhs), compute_dtype(rhs)].into_iter().find(|d| d.size() > c.size());
    match wide {
        Some(d) if d.category() == c.category() && d.is_inexact() => d,
        _ => c,
    }
}

/// `Dot`.
pub fn dot(dims: &DotDims, lhs: In<'_>, rhs: In<'_>, out: &mut Out<'_>) -> Result<()> {
    let compute = accumulation(lhs.ty.dtype, rhs.ty.dtype, out.ty.dtype);
    let free = free_axes(lhs.shape().len(), &dims.lhs_batch, &dims.lhs_contract);
    let rhs_free = free_axes(rhs.shape().len(), &dims.rhs_batch, &dims.rhs_contract);
    let sizes = Sizes {
        m: product(lhs.shape(), &free),
        n: product(rhs.shape(), &rhs_free),
        k: product(lhs.shape(), &dims.lhs_contract),
    };
    if sizes.k == 0 {
        out.bytes().fill(0);
        return Ok(());
    }
    let a = Side::new(lhs, compute, &dims.lhs_batch, &dims.lhs_contract)?;
    let b = Side::new(rhs, compute, &dims.rhs_batch, &dims.rhs_contract)?;
    let mut wide = if compute == out.ty.dtype { None } else { Some(Buffer::allocate(out.ty.size() * compute.size())?) };
    let dst = wide.as_mut().map_or(out.ptr, Buffer::as_mut_ptr);
    let extents: SmallVec<[usize; 4]> = dims.lhs_batch.iter().map(|&x| lhs.shape()[x]).collect();
    let batches = Batches::new(&extents, &a.batch, &b.batch);
    let steps = Steps { a: (a.free, a.contract), b: (b.contract, b.free) };
    let ends = (a.ptr, b.ptr, dst);
    match compute {
        // SAFETY: strides come from the operands' shapes, and the result has m·n elements a batch.
        DType::F32 => unsafe { real::<f32>(sizes, steps, &batches, ends) }?,
        // SAFETY: as above.
        DType::F64 => unsafe { real::<f64>(sizes, steps, &batches, ends) }?,
        _ => {
            let rows = if batches.count == 1 { ROWS } else { sizes.m };
            let tasks = Tasks { rows, per_batch: sizes.m.div_ceil(rows), batches: &batches, sizes, steps };
            tasks.run(compute, ends)?;
        }
    }
    if let Some(wide) = wide {
        let plan = convert::plan(compute, out.ty.dtype)?;
        let narrow = plan.run_whole(wide.as_ptr(), out.ty.size(), out.ty.dtype)?;
        out.bytes().copy_from_slice(narrow.bytes());
    }
    Ok(())
}

/// Where the matrices of each batch are, in elements.
struct Batches {
    count: usize,
    /// The distance from one batch to the next in each operand, where there is one.
    step: (usize, usize),
    /// All offsets, where there is none.
    offsets: Vec<(usize, usize)>,
}

impl Batches {
    fn new(extents: &[usize], a: &[usize], b: &[usize]) -> Batches {
        let axes: SmallVec<[usize; 4]> = (0..extents.len()).collect();
        let count = extents.iter().product();
        if let (Some(a), Some(b)) = (single_stride(extents, a, &axes), single_stride(extents, b, &axes)) {
            return Batches { count, step: (a as usize, b as usize), offsets: Vec::new() };
        }
        let walk = |strides: &[usize]| Walk { extents: extents.into(), strides: strides.into() };
        Batches { count, step: (0, 0), offsets: walk(a).offsets().zip(walk(b).offsets()).collect() }
    }

    fn at(&self, i: usize) -> (usize, usize) {
        if self.offsets.is_empty() { (i * self.step.0, i * self.step.1) } else { self.offsets[i] }
    }
}

/// Products of real matrices: a batch after the other on all threads where they are large and few, else some batches a
/// thread.
unsafe fn real<T: Kernels>(
    s: Sizes,
    t: Steps,
    batches: &Batches,
    (a, b, out): (*const u8, *const u8, *mut u8),
) -> Result<()> {
    let of = |i: usize, ends: &Operands| {
        let (oa, ob) = batches.at(i);
        let a = Matrix { ptr: ends.0.cast::<T>().wrapping_add(oa), row: t.a.0, column: t.a.1 };
        let b = Matrix { ptr: ends.1.cast::<T>().wrapping_add(ob), row: t.b.0, column: t.b.1 };
        Product { m: s.m, n: s.n, k: s.k, a, b, c: ends.2.cast::<T>().wrapping_add(i * s.m * s.n) }
    };
    let operands = Operands(a, b, out);
    if let Some(small) = small::Small::new(of(0, &operands), batches) {
        // SAFETY: the caller's contract.
        unsafe { small.run() };
        return Ok(());
    }
    let each = s.m * s.n * s.k;
    if batches.count == 1 || (each > LARGE && batches.count < 4 * pool::threads()) {
        // SAFETY: the caller's contract.
        return (0..batches.count).try_for_each(|i| unsafe { of(i, &operands).run(true) });
    }
    let group = (LARGE / 8 / each.max(1)).clamp(1, batches.count.div_ceil(4 * pool::threads()));
    pool::try_share((batches.count * each / 30) as u64, batches.count.div_ceil(group), &|_, task| {
        let operands = &operands;
        // SAFETY: the caller's contract; each batch has a result of its own.
        (task * group..((task + 1) * group).min(batches.count)).try_for_each(|i| unsafe { of(i, operands).run(false) })
    })
}

/// Multiply-adds of a product that is worth several threads of its own.
const LARGE: usize = 1 << 22;
/// Rows of a product that one thread takes: by shape alone, so that the order of sums is.
const ROWS: usize = 256;

/// A product in parts: batches, or blocks of rows of the only one.
struct Tasks<'a> {
    rows: usize,
    per_batch: usize,
    batches: &'a Batches,
    sizes: Sizes,
    steps: Steps,
}

/// Memory that threads use in disjoint parts, or read.
struct Operands(*const u8, *const u8, *mut u8);
// SAFETY: see the type.
unsafe impl Sync for Operands {}

impl Tasks<'_> {
    fn run(&self, d: DType, (a, b, out): (*const u8, *const u8, *mut u8)) -> Result<()> {
        let Sizes { m, n, k } = self.sizes;
        let count = self.batches.count * self.per_batch;
        let work = self.batches.count as u64 * (m as u64 * n as u64 * k as u64);
        let share = if self.per_batch > 1 { count } else { count.min(8 * pool::threads()) };
        let each = count.div_ceil(share.max(1));
        let operands = Operands(a, b, out);
        pool::try_share(work / 20, count.div_ceil(each), &|_, task| {
            let operands = &operands;
            // SAFETY: the offsets and strides come from the operands' shapes, the result has m·n elements a
            // batch, and parts have rows of their own.
            (task * each..((task + 1) * each).min(count)).try_for_each(|part| unsafe { self.part(d, part, operands) })
        })
    }

    unsafe fn part(&self, d: DType, part: usize, at: &Operands) -> Result<()> {
        let (i, first) = (part / self.per_batch, part % self.per_batch * self.rows);
        let (oa, ob) = self.batches.at(i);
        let (size, s, t) = (d.size(), self.sizes, self.steps);
        let rows = Sizes { m: self.rows.min(s.m - first), ..s };
        // SAFETY: the caller's contract.
        unsafe {
            let a = at.0.add(oa * size).offset(first as isize * t.a.0 * size as isize);
            matmul(d, rows, t, a, at.1.add(ob * size), at.2.add((i * s.m + first) * s.n * size))
        }
    }
}

/// Products below this many multiplications are done by the loops here.
const SMALL: usize = 2048;

unsafe fn matmul(d: DType, s: Sizes, t: Steps, a: *const u8, b: *const u8, out: *mut u8) -> Result<()> {
    let small = s.m * s.n * s.k <= SMALL;
    macro_rules! complex {
        ($T:ty, $G:ty) => {{
            // SAFETY: the caller's pointers and strides cover the product.
            unsafe {
                if small || (s.m == 1 && t.b.1 == 1) || (t.a.1 == 1 && t.b.0 == 1 && (s.m == 1 || s.n == 1)) {
                    direct::<$T>(s, t, a.cast(), b.cast(), out.cast());
                } else {
                    gemm::gemm::<$G>(
                        s.m,
                        s.n,
                        s.k,
                        out.cast(),
                        1,
                        s.n as isize,
                        false,
                        a.cast(),
                        t.a.1,
                        t.a.0,
                        b.cast(),
                        t.b.1,
                        t.b.0,
                        <$G>::new(0.0, 0.0),
                        <$G>::new(1.0, 0.0),
                        false,
                        false,
                        false,
                        gemm::Parallelism::None,
                    );
                }
            }
        }};
    }
    macro_rules! integer {
        ($($D:ident $T:ty),*) => {
            match d {
                DType::C64 => complex!(Complex<f32>, gemm::c32),
                DType::C128 => complex!(Complex<f64>, gemm::c64),
                // SAFETY: the caller's pointers and strides cover the product.
                $(DType::$D => unsafe { direct::<$T>(s, t, a.cast(), b.cast(), out.cast()) },)*
                other => bail!(NotImplemented, "the CPU engine has no dot product of {other}"),
            }
        };
    }
    integer!(Bool Truth, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64);
    Ok(())
}

/// Multiply-add of a dot product's element type.
trait Ring: Copy {
    const ZERO: Self;
    fn mul_add(self, b: Self, acc: Self) -> Self;
    fn plus(self, b: Self) -> Self;
}

macro_rules! rings {
    ($($T:ty, $zero:expr, |$a:ident, $b:ident, $c:ident| $mul:expr, $plus:expr;)*) => {
        $(
            impl Ring for $T {
                const ZERO: $T = $zero;
                #[inline(always)]
                fn mul_add(self, $b: $T, $c: $T) -> $T {
                    let $a = self;
                    $mul
                }
                #[inline(always)]
                fn plus(self, $b: $T) -> $T {
                    let $a = self;
                    $plus
                }
            }
        )*
    };
}
rings! {
    Complex<f32>, Complex::new(0.0, 0.0),
        |a, b, c| Complex::new(c.re + a.re * b.re - a.im * b.im, c.im + a.re * b.im + a.im * b.re),
        Complex::new(a.re + b.re, a.im + b.im);
    Complex<f64>, Complex::new(0.0, 0.0),
        |a, b, c| Complex::new(c.re + a.re * b.re - a.im * b.im, c.im + a.re * b.im + a.im * b.re),
        Complex::new(a.re + b.re, a.im + b.im);
    Truth, Truth(0), |a, b, c| Truth((a.0 & b.0) | c.0), Truth(a.0 | b.0);
}
macro_rules! integer_rings {
    ($($T:ty)*) => {
        $(rings! { $T, 0, |a, b, c| a.wrapping_mul(b).wrapping_add(c), a.wrapping_add(b); })*
    };
}
integer_rings!(i8 i16 i32 i64 u8 u16 u32 u64);

/// A `bool` element.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Truth(u8);

/// The sum of products of two contiguous rows: runs in rotating accumulators, combined pairwise like the
/// digits of a counter.
#[inline(always)]
fn inner<T: Ring>(a: &[T], b: &[T]) -> T {
    const RUN: usize = 1024;
    if a.len() <= RUN {
        return inner_run(a, b);
    }
    let mut levels = [T::ZERO; 48];
    let mut count = 0usize;
    for (a, b) in a.chunks(RUN).zip(b.chunks(RUN)) {
        let mut value = inner_run(a, b);
        let carries = count.trailing_ones() as usize;
        for level in &levels[..carries] {
            value = level.plus(value);
        }
        levels[carries] = value;
        count += 1;
    }
    (0..48).filter(|k| count >> k & 1 == 1).fold(T::ZERO, |r, k| levels[k].plus(r))
}

#[inline(always)]
fn inner_run<T: Ring>(a: &[T], b: &[T]) -> T {
    // Short rows have little to hide the latency of the last sums behind.
    if a.len() < 256 { inner_lanes::<T, 16>(a, b) } else { inner_lanes::<T, 32>(a, b) }
}

#[inline(always)]
fn inner_lanes<T: Ring, const LANES: usize>(a: &[T], b: &[T]) -> T {
    let mut acc = [T::ZERO; LANES];
    let (ca, cb) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let (ta, tb) = (ca.remainder(), cb.remainder());
    for (x, y) in ca.zip(cb) {
        for j in 0..LANES {
            acc[j] = x[j].mul_add(y[j], acc[j]);
        }
    }
    let mut width = LANES / 2;
    while width > 0 {
        for j in 0..width {
            acc[j] = acc[j].plus(acc[j + width]);
        }
        width /= 2;
    }
    ta.iter().zip(tb).fold(acc[0], |s, (&x, &y)| x.mul_add(y, s))
}

/// Products without packing, in the better order of the two.
#[inline(always)]
unsafe fn direct_body<T: Ring>(s: Sizes, t: Steps, a: *const T, b: *const T, out: *mut T) {
    // SAFETY: the caller's contract.
    unsafe {
        match s.n {
            _ if t.a.1 == 1 && t.b.0 == 1 => rows_times_rows(s, t, a, b, out),
            4 if t.b.1 == 1 => narrow::<T, 4>(s, t, a, b, out),
            8 if t.b.1 == 1 => narrow::<T, 8>(s, t, a, b, out),
            16 if t.b.1 == 1 => narrow::<T, 16>(s, t, a, b, out),
            _ => loops(s, t, a, b, out),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn direct_fast<T: Ring>(s: Sizes, t: Steps, a: *const T, b: *const T, out: *mut T) {
    // SAFETY: the caller's contract.
    unsafe { direct_body(s, t, a, b, out) }
}

unsafe fn direct<T: Ring>(s: Sizes, t: Steps, a: *const T, b: *const T, out: *mut T) {
    // SAFETY: the caller's contract, and the machine has the instructions of the fast variant.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if crate::simd::wide() {
            return direct_fast(s, t, a, b, out);
        }
        direct_body(s, t, a, b, out);
    }
}

/// Both operands have their contracted axis contiguous: one inner product an element.
#[inline(always)]
unsafe fn rows_times_rows<T: Ring>(s: Sizes, t: Steps, a: *const T, b: *const T, out: *mut T) {
    for i in 0..s.m {
        for j in 0..s.n {
            // SAFETY: the caller's strides cover rows i and j of k elements, and the result has m·n.
            unsafe {
                let x = std::slice::from_raw_parts(a.offset(i as isize * t.a.0), s.k);
                let y = std::slice::from_raw_parts(b.offset(j as isize * t.b.1), s.k);
                *out.add(i * s.n + j) = inner(x, y);
            }
        }
    }
}

/// As `loops`, for rows of the result that fit registers.
#[inline(always)]
unsafe fn narrow<T: Ring, const N: usize>(s: Sizes, t: Steps, a: *const T, b: *const T, out: *mut T) {
    for i in 0..s.m {
        let mut row = [T::ZERO; N];
        for k in 0..s.k {
            // SAFETY: the caller's strides cover (i, k) and (k, 0..n), which is contiguous.
            unsafe {
                let x = *a.offset(i as isize * t.a.0 + k as isize * t.a.1);
                let y = b.offset(k as isize * t.b.0);
                for (j, o) in row.iter_mut().enumerate() {
                    *o = x.mul_add(*y.add(j), *o);
                }
            }
        }
        // SAFETY: the result has m rows of n elements.
        unsafe { out.add(i * N).cast::<[T; N]>().write(row) };
    }
}

/// The textbook product, row by row: each row of the result gathers multiples of rows of `b`.
#[inline(always)]
unsafe fn loops<T: Ring>(s: Sizes, t: Steps, a: *const T, b: *const T, out: *mut T) {
    for i in 0..s.m {
        // SAFETY: the result has m rows of n elements.
        let row = unsafe { std::slice::from_raw_parts_mut(out.add(i * s.n), s.n) };
        row.fill(T::ZERO);
        for k in 0..s.k {
            // SAFETY: the caller's strides cover (i, k) and (k, 0..n).
            unsafe {
                let x = *a.offset(i as isize * t.a.0 + k as isize * t.a.1);
                let y = b.offset(k as isize * t.b.0);
                if t.b.1 == 1 {
                    for (o, &y) in row.iter_mut().zip(std::slice::from_raw_parts(y, s.n)) {
                        *o = x.mul_add(y, *o);
                    }
                } else {
                    for (j, o) in row.iter_mut().enumerate() {
                        *o = x.mul_add(*y.offset(j as isize * t.b.1), *o);
                    }
                }
            }
        }
    }
}
