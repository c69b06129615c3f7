//! Triangular systems and Cholesky factors, which the expansions of other factorizations rest on.
//!
//! A thread solves a system for one right side; a block computes a factor column by column, a thread some of the rows. Both
//! are plain: right, and not fast for large matrices.

use crate::plan::frame::Frame;
use crate::print::elementwise::binary;
use crate::print::kernel::{BLOCK, blocks, element_loop, finish};
use crate::print::types::{c_type, literal};
use ferrax_base::{DType, Result, Scalar, bail};
use ferrax_loops::linalg::LinalgOp;
use ferrax_loops::{BinaryOp, Node};

/// A matrix operation with a kernel of its own.
pub fn linalg(f: &mut Frame<'_>, node: &Node, op: LinalgOp) -> Result<()> {
    let d = f.dtype(node.first);
    match op {
        LinalgOp::PivotsToPermutation => permutation(f, node),
        _ if !matches!(d, DType::F32 | DType::F64 | DType::C64 | DType::C128) => {
            bail!(NotImplemented, "the CUDA engine has no {op:?} of {d}")
        }
        LinalgOp::Cholesky => cholesky(f, node, d),
        LinalgOp::TriangularSolve { .. } => solve(f, node, op, d),
        other => bail!(NotImplemented, "the CUDA engine has no kernel for {other:?} of {d}"),
    }
}

/// The permutation of rows that exchanges make, a thread a matrix: exchanges come one after another.
fn permutation(f: &mut Frame<'_>, node: &Node) -> Result<()> {
    let last = |shape: &[usize]| shape.last().copied().unwrap_or(1);
    let (steps, rows) = (last(&f.g.ty(node.inputs[0]).shape), last(&f.g.ty(node.first).shape));
    let count = f.g.ty(node.first).size() / rows;
    let to = f.result(node.first);
    let kernel = f.print(|mut body| {
        let pivots = body.pointer(node.inputs[0]);
        body.largest = body.largest.max(count * rows);
        body.open(&element_loop(count));
        body.line(&format!("int* order = o0 + i * {rows};"));
        body.line(&format!("for (int r = 0; r < {rows}; ++r) order[r] = r;"));
        body.open(&format!("for (int k = 0; k < {steps}; ++k)"));
        body.line(&format!("int at = p{pivots}[i * {steps} + k];"));
        body.line(&format!("at = at < 0 ? 0 : at < {rows} ? at : {};", rows - 1));
        body.line("const int here = order[k];");
        body.line("order[k] = order[at];");
        body.line("order[at] = here;");
        body.close();
        body.close();
        Ok(finish(body, &[DType::I32], 0, true, [blocks(count), 1, 1], BLOCK))
    })?;
    f.launch(kernel, &[to], &[])
}

/// `s` less a product.
fn less(s: &str, x: &str, y: &str, d: DType) -> Result<String> {
    binary(BinaryOp::Sub, s, &binary(BinaryOp::Mul, x, y, d)?, d)
}

fn conjugated(x: &str, d: DType, conjugate: bool) -> String {
    if conjugate && d.is_complex() { format!("fx_c_conj({x})") } else { x.to_owned() }
}

fn cholesky(f: &mut Frame<'_>, node: &Node, d: DType) -> Result<()> {
    let shape = &f.g.ty(node.first).shape;
    let n = shape[shape.len() - 1];
    let count = f.g.ty(node.first).size() / (n * n);
    let (t, real) = (c_type(d), c_type(d.real()));
    let to = f.result(node.first);
    let part = |x: &str| if d.is_complex() { format!("{x}.re") } else { x.to_owned() };
    let kernel = f.print(|mut body| {
        body.pointer(node.inputs[0]);
        let place = |i: &str, j: &str| format!("o0[m + {i} * {n} + {j}]");
        body.open(&format!("for (I w = blockIdx.x; w < {count}; w += gridDim.x)"));
        body.line(&format!("const I m = w * {};", n * n));
        body.line("bool good = true;");
        body.open(&format!("for (I k = 0; k < {n}; ++k)"));
        let rows = format!("for (I i = k + threadIdx.x; i < {n}; i += {BLOCK})");
        body.open(&rows);
        body.line(&format!("{t} s = p0[m + i * {n} + k];"));
        let other = conjugated(&place("k", "j"), d, true);
        body.line(&format!("for (I j = 0; j < k; ++j) s = {};", less("s", &place("i", "j"), &other, d)?));
        body.line(&format!("{} = s;", place("i", "k")));
        body.close();
        body.line("__syncthreads();");
        body.line(&format!("const {real} pivot = fx_sqrt({});", part(&place("k", "k"))));
        body.line("good = good && pivot > 0;");
        // Everybody knows the pivot before it is written over.
        body.line("__syncthreads();");
        body.open(&rows);
        body.line(&format!("const {t} s = {};", place("i", "k")));
        let (diagonal, below) = if d.is_complex() {
            (format!("{t}_of(pivot, 0)"), format!("{t}_of(fx_div(s.re, pivot), fx_div(s.im, pivot))"))
        } else {
            ("pivot".to_owned(), "fx_div(s, pivot)".to_owned())
        };
        body.line(&format!("{} = i == k ? {diagonal} : {below};", place("i", "k")));
        body.close();
        body.line("__syncthreads();");
        body.close();
        body.open(&format!("for (I e = threadIdx.x; e < {}; e += {BLOCK})", n * n));
        let nan = literal(Scalar::from_complex(d, f64::NAN, if d.is_complex() { f64::NAN } else { 0.0 }));
        body.line(&format!("if (e % {n} > e / {n}) o0[m + e] = {};", literal(Scalar::zero(d))));
        body.line(&format!("else if (!good) o0[m + e] = {nan};"));
        body.close();
        body.close();
        Ok(finish(body, &[d], 0, true, [count.clamp(1, 1 << 16) as u32, 1, 1], BLOCK))
    })?;
    f.launch(kernel, &[to], &[])
}

fn solve(f: &mut Frame<'_>, node: &Node, op: LinalgOp, d: DType) -> Result<()> {
    let LinalgOp::TriangularSolve { left, lower, transpose, conjugate, unit } = op else {
        bail!(Internal, "{op:?} solves nothing");
    };
    let shape = &f.g.ty(node.first).shape;
    let [rows, columns] = [shape[shape.len() - 2], shape[shape.len() - 1]];
    let (n, sides) = if left { (rows, columns) } else { (columns, rows) };
    let total = f.g.ty(node.first).size() / n;
    // x op(a) = b is op(a)ᵀ xᵀ = bᵀ.
    let swapped = transpose == left;
    let down = lower != swapped;
    let to = f.result(node.first);
    let kernel = f.print(|mut body| {
        let (a, b) = (body.pointer(node.inputs[0]), body.pointer(node.inputs[1]));
        let entry = |r: &str, c: &str| {
            let (r, c) = if swapped { (c, r) } else { (r, c) };
            conjugated(&format!("p{a}[first + {r} * {n} + {c}]"), d, conjugate)
        };
        let place = |k: &str| {
            if left { format!("[(batch * {n} + {k}) * {sides} + side]") } else { format!("[i * {n} + {k}]") }
        };
        body.open(&element_loop(total));
        body.line(&format!("const I batch = i / {sides}, side = i % {sides}, first = batch * {};", n * n));
        body.open(&format!("for (I q = 0; q < {n}; ++q)"));
        body.line(&format!("const I r = {};", if down { "q".to_owned() } else { format!("{} - q", n - 1) }));
        body.line(&format!("{} s = p{b}{};", c_type(d), place("r")));
        let (begin, end) = if down { ("0".to_owned(), "r".to_owned()) } else { ("r + 1".to_owned(), n.to_string()) };
        let next = less("s", &entry("r", "c"), &format!("o0{}", place("c")), d)?;
        body.line(&format!("for (I c = {begin}; c < {end}; ++c) s = {next};"));
        let found = if unit { "s".to_owned() } else { binary(BinaryOp::Div, "s", &entry("r", "r"), d)? };
        body.line(&format!("o0{} = {found};", place("r")));
        body.close();
        body.close();
        Ok(finish(body, &[d], 0, true, [blocks(total), 1, 1], BLOCK))
    })?;
    f.launch(kernel, &[to], &[])
}
