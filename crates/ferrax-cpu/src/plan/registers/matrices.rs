//! Factors of matrices of a few rows, and solving with them, element by element.
//!
//! The operations, and their order, are those of `ferrax_linalg::small`, so results have their bits. What depends on
//! numbers there (which rows are exchanged, whether there is a factor at all) is computed both ways here, and chosen.
//! Read next: `cells.rs`.

use super::forms::{Fit, Form};
use super::packed::Places;
use super::translate::{Translator, bits};
use crate::machine::loops::assemble::Val;
use crate::machine::loops::families::Two;
use ferrax_base::{DType, Scalar};
use ferrax_loops::kind::CompareOp;
use ferrax_loops::linalg::LinalgOp;
use ferrax_loops::{BinaryOp, Graph, Node, Type, UnaryOp};

/// Rows of a matrix at most; those of one whose rows are exchanged, and of the right sides times the square of the rows.
const MOST_ROWS: usize = 6;
const MOST_EXCHANGED: usize = 4;
const MOST_SOLVED: usize = 128;

/// Rows and columns of the matrices of a type, and how many there are.
fn matrices(ty: &Type) -> Option<(usize, usize, usize)> {
    let [batch @ .., rows, cols] = &ty.shape[..] else { return None };
    Some((*rows, *cols, batch.iter().product()))
}

/// Whether a node's matrices are small enough.
pub(super) fn are_small(op: LinalgOp, g: &Graph, node: &Node) -> bool {
    let of = |i: usize| matrices(g.ty(node.inputs[i]));
    let float = matches!(g.ty(node.inputs[0]).dtype, DType::F32 | DType::F64);
    match op {
        LinalgOp::Cholesky => float && of(0).is_some_and(|(n, ..)| n <= MOST_ROWS),
        LinalgOp::Lu => float && of(0).is_some_and(|(n, m, _)| n.max(m) <= MOST_EXCHANGED),
        LinalgOp::PivotsToPermutation => g.ty(node.first).shape.last().is_some_and(|&n| n <= MOST_EXCHANGED),
        LinalgOp::TriangularSolve { left: true, .. } => {
            float && of(1).is_some_and(|(n, columns, _)| n.max(columns) <= MOST_ROWS && n * n * columns <= MOST_SOLVED)
        }
        _ => false,
    }
}

/// What a node of matrices makes of one of them: the elements of each result.
type Made = Vec<Vec<Val>>;

impl Translator {
    /// The results of a node of small matrices.
    pub fn matrices(&mut self, op: LinalgOp, g: &Graph, node: &Node, x: &[Form]) -> Option<Vec<Form>> {
        if !are_small(op, g, node) || x.iter().any(|f| self.is_whole(f)) {
            return None;
        }
        let of = |i: usize| g.ty(node.inputs[i]);
        let results: Vec<&Type> = node.outputs().map(|v| g.ty(v)).collect();
        let core = if op == LinalgOp::PivotsToPermutation { 1 } else { 2 };
        let batch: usize = of(0).shape[..of(0).shape.len() - core].iter().product();
        let mut all: Vec<Places> = vec![Places::new(); results.len()];
        for k in 0..batch {
            let elements: Made = (0..x.len())
                .map(|i| {
                    let n = of(i).size() / batch;
                    (k * n..(k + 1) * n).map(|at| self.picked(&x[i], at..=at)).collect()
                })
                .collect::<Option<_>>()?;
            for (all, made) in all.iter_mut().zip(self.matrix(op, (g, node), elements)?) {
                all.extend(made.into_iter().map(|v| (v, 0)));
            }
        }
        let mut forms = Vec::new();
        for (ty, places) in results.into_iter().zip(&all) {
            if self.fit(ty)? == Fit::Vector {
                return None;
            }
            let cells = self.together(places)?;
            forms.push(self.form_of(ty, cells)?);
        }
        Some(forms)
    }

    fn matrix(&mut self, op: LinalgOp, (g, node): (&Graph, &Node), mut x: Made) -> Option<Made> {
        let d = g.ty(node.inputs[0]).dtype;
        let last = node.inputs.len() - 1;
        let size = g.ty(node.inputs[last]).shape.last().copied()?;
        match op {
            LinalgOp::Cholesky => Some(vec![self.cholesky(d, x.remove(0), size)?]),
            LinalgOp::Lu => self.lu(d, x.remove(0), size),
            LinalgOp::PivotsToPermutation => {
                let n = g.ty(node.first).shape.last().copied()?;
                let most = self.integer(n as i64 - 1);
                let zero = self.constant(0);
                let mut order: Vec<Val> = (0..n).map(|i| self.integer(i as i64)).collect();
                for (k, &pivot) in x[0].iter().enumerate() {
                    let low = self.binary(BinaryOp::Max, DType::I32, pivot, zero)?;
                    let pivot = self.binary(BinaryOp::Min, DType::I32, low, most)?;
                    self.exchange(&mut order, (k, pivot), 0, 1)?;
                }
                Some(vec![order])
            }
            LinalgOp::TriangularSolve { lower, transpose, unit, .. } => {
                let b = x.pop()?;
                Some(vec![self.solved(d, (&x[0], lower, transpose, unit), b, size)?])
            }
            _ => None,
        }
    }

    /// Exchanges row `k` of some columns with the one that has this number, from row `first` on.
    fn exchange(&mut self, rows: &mut [Val], (k, with): (usize, Val), first: usize, columns: usize) -> Option<()> {
        for i in (first..rows.len() / columns).filter(|&i| i != k) {
            let number = self.integer(i as i64);
            let here = self.two(Two::EqInt, with, number)?;
            for c in 0..columns {
                let (a, b) = (rows[k * columns + c], rows[i * columns + c]);
                rows[k * columns + c] = self.choose(here, a, b)?;
                rows[i * columns + c] = self.choose(here, b, a)?;
            }
        }
        Some(())
    }

    /// x - a · b.
    fn less(&mut self, d: DType, x: Val, a: Val, b: Val) -> Option<Val> {
        let product = self.binary(BinaryOp::Mul, d, a, b)?;
        self.binary(BinaryOp::Sub, d, x, product)
    }

    fn cholesky(&mut self, d: DType, mut a: Vec<Val>, n: usize) -> Option<Vec<Val>> {
        let zero = self.constant(0);
        let mut done = self.constant(1);
        for j in 0..n {
            let mut rest = a[j * n + j];
            for k in 0..j {
                rest = self.less(d, rest, a[j * n + k], a[j * n + k])?;
            }
            let positive = self.compare(CompareOp::Gt, d, rest, zero)?;
            done = self.two(Two::And, done, positive)?;
            let root = self.unary(UnaryOp::Sqrt, d, rest)?;
            a[j * n + j] = root;
            for i in j + 1..n {
                let mut s = a[i * n + j];
                for k in 0..j {
                    s = self.less(d, s, a[i * n + k], a[j * n + k])?;
                }
                a[i * n + j] = self.binary(BinaryOp::Div, d, s, root)?;
            }
            a[j * n + j + 1..(j + 1) * n].fill(zero);
        }
        let nan = self.constant(bits(Scalar::from_f64(d, f64::NAN)));
        for i in (0..n * n).filter(|i| i % n <= i / n) {
            a[i] = self.choose(done, nan, a[i])?;
        }
        Some(a)
    }

    /// L and U, which row each step exchanges, and the order that makes.
    fn lu(&mut self, d: DType, mut a: Vec<Val>, cols: usize) -> Option<Made> {
        let (zero, rows) = (self.constant(0), a.len() / cols);
        let mut order: Vec<Val> = (0..rows).map(|i| self.integer(i as i64)).collect();
        let mut pivots = Vec::new();
        for k in 0..rows.min(cols) {
            let (mut at, mut best) = (self.integer(k as i64), self.unary(UnaryOp::Abs, d, a[k * cols + k])?);
            for i in k + 1..rows {
                let (number, size) = (self.integer(i as i64), self.unary(UnaryOp::Abs, d, a[i * cols + k])?);
                let larger = self.compare(CompareOp::Gt, d, size, best)?;
                at = self.choose(larger, at, number)?;
                best = self.choose(larger, best, size)?;
            }
            pivots.push(at);
            self.exchange(&mut a, (k, at), k + 1, cols)?;
            self.exchange(&mut order, (k, at), k + 1, 1)?;
            let pivot = a[k * cols + k];
            let none = self.compare(CompareOp::Eq, d, pivot, zero)?;
            for i in k + 1..rows {
                let factor = self.binary(BinaryOp::Div, d, a[i * cols + k], pivot)?;
                a[i * cols + k] = self.choose(none, factor, a[i * cols + k])?;
                for c in k + 1..cols {
                    let rest = self.less(d, a[i * cols + c], factor, a[k * cols + c])?;
                    a[i * cols + c] = self.choose(none, rest, a[i * cols + c])?;
                }
            }
        }
        Some(vec![a, pivots, order])
    }

    /// The solution with a triangle from the left.
    fn solved(
        &mut self,
        d: DType,
        (a, lower, transpose, unit): (&[Val], bool, bool, bool),
        mut b: Vec<Val>,
        columns: usize,
    ) -> Option<Vec<Val>> {
        let n = b.len() / columns;
        let at = |i: usize, k: usize| if transpose { a[k * n + i] } else { a[i * n + k] };
        let row = |step: usize| if lower == transpose { n - 1 - step } else { step };
        for step in 0..n {
            let i = row(step);
            for k in (0..step).map(row) {
                for c in 0..columns {
                    b[i * columns + c] = self.less(d, b[i * columns + c], at(i, k), b[k * columns + c])?;
                }
            }
            for c in (0..columns).filter(|_| !unit) {
                b[i * columns + c] = self.binary(BinaryOp::Div, d, b[i * columns + c], at(i, i))?;
            }
        }
        Some(b)
    }
}
