//! Matrix operations: batches of matrices to `ferrax-linalg`, which factors one at a time.
//!
//! Matrices are row-major here and column-major there. Small ones (up to [`small::SMALL`] rows) are worked on where
//! they are; larger ones are copied across. A batch is shared out over the pool matrix by matrix, a single large matrix
//! block by block: results are the same either way. Read next: `factor.rs`, `reflect.rs`, `spectral.rs`.

mod factor;
mod reflect;
mod spectral;

use crate::elementwise::kernel::{In, Out};
use crate::library::movement::strided_copy;
use crate::pool;
use ferrax_base::{Buffer, DType, Result, bail, error};
use ferrax_linalg::{ALONE, Element, OutOfMemory, Real, Scalar, Share, c32, c64, small};
use ferrax_loops::linalg::LinalgOp;

/// `Linalg`.
pub fn run(op: LinalgOp, ins: &[In<'_>], outs: &mut [Out<'_>]) -> Result<()> {
    if op == LinalgOp::PivotsToPermutation {
        factor::permutation(ins[0], &mut outs[0]);
        return Ok(());
    }
    if op == LinalgOp::CholeskyUpdate {
        return factor::cholesky_update(ins, &mut outs[0]);
    }
    match ins[0].ty.dtype {
        DType::F32 => typed::<f32>(op, ins, outs),
        DType::F64 => typed::<f64>(op, ins, outs),
        DType::C64 => typed::<c32>(op, ins, outs),
        DType::C128 => typed::<c64>(op, ins, outs),
        other => bail!(NotImplemented, "Unsupported dtype {other}: the CPU engine has no {op:?} of it"),
    }
}

fn typed<T: Element>(op: LinalgOp, ins: &[In<'_>], outs: &mut [Out<'_>]) -> Result<()> {
    match op {
        LinalgOp::Cholesky => factor::cholesky::<T>(ins[0], &mut outs[0]),
        LinalgOp::CholeskyUpdate => bail!(Internal, "updates of Cholesky factors are of real numbers"),
        LinalgOp::TriangularSolve { left, lower, transpose, conjugate, unit } => {
            let how = ferrax_linalg::Triangle { lower, transpose, conjugate, unit };
            factor::triangular_solve::<T>(ins[0], ins[1], left, how, &mut outs[0])
        }
        LinalgOp::Lu => factor::lu::<T>(ins[0], outs),
        LinalgOp::LuSolve { transpose, conjugate } => factor::lu_solve::<T>(ins, (transpose, conjugate), &mut outs[0]),
        LinalgOp::Qr { pivoted } => reflect::qr::<T>(ins[0], pivoted, outs),
        LinalgOp::HouseholderProduct => reflect::product::<T>(ins[0], ins[1], &mut outs[0]),
        LinalgOp::Reflect { left, adjoint } => reflect::reflect::<T>(ins, left, adjoint, &mut outs[0]),
        LinalgOp::Eigh { lower } => spectral::eigh::<T>(ins[0], lower, outs),
        LinalgOp::Svd { vectors } => spectral::svd::<T>(ins[0], vectors, outs),
        LinalgOp::Eig { left, right } => spectral::eig::<T>(ins[0], left, right, outs),
        LinalgOp::Schur { vectors } => spectral::schur::<T>(ins[0], vectors, outs),
        LinalgOp::Hessenberg => reflect::hessenberg::<T>(ins[0], outs),
        LinalgOp::Tridiagonal { lower } => reflect::tridiagonal::<T>(ins[0], lower, outs),
        LinalgOp::PivotsToPermutation => bail!(Internal, "pivots are integers"),
        LinalgOp::TridiagonalSolve => factor::tridiagonal_solve::<T>(ins, &mut outs[0]),
    }
}

/// Rows and columns of the matrices of an operand.
fn matrix(shape: &[usize]) -> (usize, usize) {
    (shape[shape.len() - 2], shape[shape.len() - 1])
}

/// Number of matrices of an operand, vectors of it if `rank` is 1.
fn batch(shape: &[usize], rank: usize) -> usize {
    shape[..shape.len() - rank].iter().product()
}

/// Items of one size, each of which one task works on.
struct Items<T> {
    first: *mut T,
    len: usize,
    count: usize,
}
// SAFETY: tasks take disjoint items.
unsafe impl<T: Send> Sync for Items<T> {}

impl<T: Copy> Items<T> {
    /// The results of a node, `count` of them.
    fn of(out: &mut Out<'_>, count: usize) -> Self {
        let all = out.of::<T>();
        Items { first: all.as_mut_ptr(), len: all.len().checked_div(count).unwrap_or(0), count }
    }

    /// The item at an index.
    ///
    /// # Safety
    /// No two live slices may be of one item.
    #[allow(clippy::mut_from_ref)]
    unsafe fn item(&self, i: usize) -> &mut [T] {
        assert!(i < self.count, "no such item");
        // SAFETY: items lie one after the other, and the caller keeps them apart.
        unsafe { std::slice::from_raw_parts_mut(self.first.add(i * self.len), self.len) }
    }
}

/// The item of an operand at an index, of `count`.
fn nth<T: Copy>(x: In<'_>, count: usize, i: usize) -> &[T] {
    let all = x.of::<T>();
    let len = all.len().checked_div(count).unwrap_or(0);
    &all[i * len..(i + 1) * len]
}

/// Runs a task for every matrix, estimated at some nanoseconds each; a single one may share out its blocks.
fn each(count: usize, nanoseconds: u64, task: &(dyn Fn(usize, Share<'_>) -> Result<()> + Sync)) -> Result<()> {
    if count == 1 {
        return task(0, &|ns, tasks, run| pool::share(ns, tasks, &|_, i| run(i)));
    }
    let chunk = (20_000 / nanoseconds.max(1)).clamp(1, 4096) as usize;
    pool::try_share(nanoseconds.saturating_mul(count as u64), count.div_ceil(chunk), &|_, c| {
        (c * chunk..count.min((c + 1) * chunk)).try_for_each(|i| task(i, ALONE))
    })
}

/// What is said where the memory of a factorization cannot be had.
fn no_memory(asked: OutOfMemory) -> ferrax_base::Error {
    error!(Memory, "out of memory: allocating {} bytes for a factorization failed", asked.bytes)
}

/// Memory for `n` elements, whatever is in it.
struct Scratch(Buffer);

impl Scratch {
    fn new<T>(n: usize) -> Result<Scratch> {
        Buffer::allocate(n * size_of::<T>()).map(Scratch)
    }

    fn of<T: Copy>(&mut self) -> &mut [T] {
        self.0.typed_mut()
    }
}

/// The transpose of a row-major rows × cols matrix; also the way from column-major back, with the sizes exchanged.
fn transposed<T: Copy>(src: &[T], rows: usize, cols: usize, dst: &mut [T]) {
    let (src, dst) = (&src[..rows * cols], &mut dst[..rows * cols]);
    let (across, down) = ([1, cols as isize], [rows as isize, 1]);
    // SAFETY: both sides have the elements of the matrix.
    unsafe {
        strided_copy(size_of::<T>(), &[cols, rows], src.as_ptr().cast(), &across, dst.as_mut_ptr().cast(), &down);
    }
}

/// What failed factorizations give.
fn not_a_number<T: Scalar>() -> T {
    T::of_parts(<T::R as Real>::NAN, <T::R as Real>::NAN)
}
