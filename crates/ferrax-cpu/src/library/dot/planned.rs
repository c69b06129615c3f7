//! Products whose shapes are known when a program is planned: a step of a loop calls the kernel with three addresses.

use super::{Sizes, Steps, free_axes, product, single_stride};
use crate::library::matmul::{Kernels, Matrix, Product};
use crate::library::movement::Walk;
use ferrax_base::{DType, Result, shape::strides};
use ferrax_loops::{DotDims, Graph, Kind, Node, Type};

/// Multiply-adds of a product that threads may share.
const LARGE: usize = 1 << 16;

/// Where the operands and the result are.
type At = (*const u8, *const u8, *mut u8);

/// A product of real matrices of one dtype and one batch, read where they are.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    sizes: Sizes,
    steps: Steps,
    double: bool,
}

impl Planned {
    /// The product, if it is of this kind.
    pub fn new(dims: &DotDims, lhs: &Type, rhs: &Type, out: &Type) -> Option<Planned> {
        if dims.lhs_batch.is_empty() { Planned::first(dims, lhs, rhs, out) } else { None }
    }

    /// The product of the first batch.
    fn first(dims: &DotDims, lhs: &Type, rhs: &Type, out: &Type) -> Option<Planned> {
        let d = out.dtype;
        let real = matches!(d, DType::F32 | DType::F64) && lhs.dtype == d && rhs.dtype == d;
        if !real || out.size() == 0 {
            return None;
        }
        let side = |x: &Type, batch: &[usize], contract: &[usize]| {
            let st = strides(&x.shape);
            let free = free_axes(x.shape.len(), batch, contract);
            Some((
                single_stride(&x.shape, &st, &free)?,
                single_stride(&x.shape, &st, contract)?,
                product(&x.shape, &free),
            ))
        };
        let (a_free, a_contract, m) = side(lhs, &dims.lhs_batch, &dims.lhs_contract)?;
        let (b_free, b_contract, n) = side(rhs, &dims.rhs_batch, &dims.rhs_contract)?;
        let k = product(&lhs.shape, &dims.lhs_contract);
        let steps = Steps { a: (a_free, a_contract), b: (b_contract, b_free) };
        (k > 0).then_some(Planned { sizes: Sizes { m, n, k }, steps, double: d == DType::F64 })
    }

    /// The product that a node is, if its operands can be read where they are.
    pub fn of(g: &Graph, node: &Node) -> Option<Planned> {
        let Kind::Dot(dims) = &node.kind else { return None };
        Planned::new(dims, g.ty(node.inputs[0]), g.ty(node.inputs[1]), g.ty(node.first))
    }

    /// The products of all batches that a node is: the first one, and where the factors of each begin.
    pub fn batched(g: &Graph, node: &Node) -> Option<(Planned, Vec<(usize, usize)>)> {
        let Kind::Dot(dims) = &node.kind else { return None };
        let (lhs, rhs) = (g.ty(node.inputs[0]), g.ty(node.inputs[1]));
        let first = Planned::first(dims, lhs, rhs, g.ty(node.first))?;
        let offsets = |x: &Type, batch: &[usize]| -> Vec<usize> {
            let st = strides(&x.shape);
            let extents = batch.iter().map(|&a| x.shape[a]).collect();
            Walk { extents, strides: batch.iter().map(|&a| st[a]).collect() }.offsets().collect()
        };
        let starts = offsets(lhs, &dims.lhs_batch).into_iter().zip(offsets(rhs, &dims.rhs_batch));
        Some((first, starts.collect()))
    }

    /// Whether each element is one product, of an element of the left with one of the right.
    pub fn is_outer(&self) -> bool {
        self.sizes.k == 1 && !self.double && self.steps.b.1 == 1
    }

    /// Rows, columns, and the distance between the rows' factors, where it is outer.
    pub fn outer(&self) -> (usize, usize, isize) {
        (self.sizes.m, self.sizes.n, self.steps.a.0)
    }

    /// Products that an element of the result is the sum of.
    pub fn depth(&self) -> usize {
        self.sizes.k
    }

    /// The places of the factors of an element of the result, in order.
    pub fn factors(&self, row: usize, column: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let Steps { a, b } = self.steps;
        let place = |at: usize, step: (isize, isize), k: usize| (at as isize * step.0 + k as isize * step.1) as usize;
        (0..self.sizes.k).map(move |k| (place(row, a, k), place(column, (b.1, b.0), k)))
    }

    /// The sums that products join in turn, the k-th sum number k modulo their number, before these are added up in
    /// halves; nothing where that is not all.
    pub fn running_sums(&self) -> Option<usize> {
        let nowhere = (std::ptr::null(), std::ptr::null(), std::ptr::null_mut());
        if self.double { self.at::<f64>(nowhere).running_sums() } else { self.at::<f32>(nowhere).running_sums() }
    }

    /// Computes the product.
    ///
    /// # Safety
    /// The addresses must be those of operands and a result of the types given to `new`.
    pub unsafe fn run(&self, a: *const u8, b: *const u8, out: *mut u8) -> Result<()> {
        // SAFETY: the caller's contract; strides come from the operands' shapes.
        unsafe { if self.double { self.run_as::<f64>((a, b, out)) } else { self.run_as::<f32>((a, b, out)) } }
    }

    /// Rows and columns of the result.
    pub fn shape(&self) -> (usize, usize) {
        (self.sizes.m, self.sizes.n)
    }

    /// Whether `run_rows` is the better way.
    pub fn suits_rows(&self) -> bool {
        let nowhere = (std::ptr::null(), std::ptr::null(), std::ptr::null_mut());
        if self.double { self.at::<f64>(nowhere).suits_rows() } else { self.at::<f32>(nowhere).suits_rows() }
    }

    /// Computes the product by rows, and calls `after(worker, first, end)` where rows are done.
    ///
    /// # Safety
    /// As for `run`.
    pub unsafe fn run_rows(&self, at: At, after: &(dyn Fn(usize, usize, usize) + Sync)) -> Result<()> {
        // SAFETY: the caller's contract.
        unsafe { if self.double { self.at::<f64>(at).run_rows(after) } else { self.at::<f32>(at).run_rows(after) } }
    }

    /// The product of operands at these addresses.
    fn at<T>(&self, (a, b, out): At) -> Product<T> {
        let (Sizes { m, n, k }, Steps { a: (ar, ac), b: (br, bc) }) = (self.sizes, self.steps);
        let a = Matrix { ptr: a.cast::<T>(), row: ar, column: ac };
        let b = Matrix { ptr: b.cast::<T>(), row: br, column: bc };
        Product { m, n, k, a, b, c: out.cast() }
    }

    unsafe fn run_as<T: Kernels>(&self, at: At) -> Result<()> {
        let Sizes { m, n, k } = self.sizes;
        // SAFETY: the caller's contract.
        unsafe { self.at::<T>(at).run(m * n * k >= LARGE) }
    }
}
