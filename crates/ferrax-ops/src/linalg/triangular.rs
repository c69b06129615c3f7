//! Triangular systems. Linear in the right-hand side; the other triangle of the matrix never matters.

use super::{
    check, check_square, leading_batch, matrices, matrix, node, product, tensor, transposed, tril, triu, weak_like,
};
use crate::common::{FROM_KERNEL, NO_REWRITE, one};
use crate::elementwise::binary::sub;
use crate::elementwise::unary::{conj, neg};
use crate::numbers::Complex;
use crate::registry::Primitive;
use ferrax_base::shape::Tuple;
use ferrax_base::{Aval, Result, bail};
use ferrax_ir::reference::RefTensor;
use ferrax_ir::trace::bind1;
use ferrax_ir::{Avals, Def, OpRef, Slot, Special, Tangents, TransposeArg, Value, Values, params};
use ferrax_loops::linalg::LinalgOp;
use smallvec::smallvec;

params! {
    /// Parameters of `triangular_solve`.
    pub struct TriangularSolve {
        /// The matrix is conjugated.
        conjugate_a: bool,
        /// The matrix stands left of the unknown.
        left_side: bool,
        /// Its lower triangle counts, else the upper one; before transposition.
        lower: bool,
        /// The matrix is transposed.
        transpose_a: bool,
        /// Its diagonal counts as ones.
        unit_diagonal: bool,
    }
}

/// (a, b) → x with op(a) x = b, or x op(a) = b.
pub static TRIANGULAR_SOLVE: Def<TriangularSolve> = Def {
    name: "triangular_solve",
    doc: "The solution of linear systems with triangular matrices.",
    arity: Some(2),
    shape: triangular_shape,
    jvp: Slot::Rule(triangular_jvp),
    transpose: Slot::Rule(triangular_transpose),
    batch: Slot::Rule(leading_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        let op = LinalgOp::TriangularSolve {
            left: p.left_side,
            lower: p.lower,
            transpose: p.transpose_a,
            conjugate: p.conjugate_a,
            unit: p.unit_diagonal,
        };
        Ok(node(op, b, args, outs))
    }),
    reference: Slot::Rule(triangular_reference),
    special: Special::NONE,
};

fn triangular_shape(p: &TriangularSolve, args: &[&Aval]) -> Result<Avals> {
    let (a, b) = (args[0], args[1]);
    check("triangular_solve", args, &[2, 2])?;
    if matrix(a).0 != matrix(a).1 {
        bail!(
            Value,
            "The first input to triangular_solve must be a square matrix. Got shape {}.",
            Tuple(&a.shape[a.rank() - 2..])
        );
    }
    let n = check_square("triangular_solve", a)?;
    let (rows, cols) = matrix(b);
    if n != if p.left_side { rows } else { cols } {
        let (a, b) = (Tuple(&a.shape), Tuple(&b.shape));
        bail!(Value, "Incompatible shapes for arguments to triangular_solve: {a} and {b}.");
    }
    weak_like(args, smallvec![Aval::new(b.dtype, &b.shape)])
}

/// x' = op(a)⁻¹ (b' - op(a') x), where of a' the triangle counts.
fn triangular_jvp(
    op: &OpRef,
    p: &TriangularSolve,
    primals: &[Value],
    tangents: &[Option<Value>],
) -> Result<(Values, Tangents)> {
    let x = bind1(op, primals)?;
    let db = tangents[1].clone();
    let moved = match &tangents[0] {
        None => db,
        Some(da) => {
            let offset = i64::from(p.unit_diagonal);
            let mut da = if p.lower { tril(da, -offset)? } else { triu(da, offset)? };
            if p.transpose_a {
                da = transposed(&da)?;
            }
            if p.conjugate_a {
                da = conj(&da)?;
            }
            let pushed = if p.left_side { product(&da, &x)? } else { product(&x, &da)? };
            Some(match db {
                Some(db) => sub(&db, &pushed)?,
                None => neg(&pushed)?,
            })
        }
    };
    let tangent = moved.map(|m| bind1(op, &[primals[0].clone(), m])).transpose()?;
    Ok(one(x, tangent))
}

fn triangular_transpose(
    _: &OpRef,
    p: &TriangularSolve,
    cts: &[Option<Value>],
    args: &[TransposeArg],
) -> Result<Tangents> {
    let Some(ct) = &cts[0] else { return Ok(smallvec![None, None]) };
    if args[0].is_linear() {
        bail!(Value, "triangular_solve is linear in its right-hand side alone, and cannot be transposed otherwise");
    }
    let flipped = TriangularSolve { transpose_a: !p.transpose_a, ..p.clone() };
    Ok(smallvec![None, Some(triangular_solve(args[0].known()?, ct, flipped)?)])
}

fn triangular_reference(p: &TriangularSolve, args: &[RefTensor], outs: &[Aval]) -> Result<Vec<RefTensor>> {
    let solve = |(a, b): (Vec<Vec<Complex>>, Vec<Vec<Complex>>)| {
        let n = a.len();
        let at = |i: usize, j: usize| {
            let (r, c) = if p.transpose_a { (j, i) } else { (i, j) };
            if p.conjugate_a { a[r][c].conj() } else { a[r][c] }
        };
        // From the right it is the transposed system for the rows of b.
        let entry = |i: usize, j: usize| if p.left_side { at(i, j) } else { at(j, i) };
        let forward = (p.lower != p.transpose_a) == p.left_side;
        let mut x = b;
        let lines = if p.left_side { x.first().map_or(0, Vec::len) } else { x.len() };
        for line in 0..lines {
            for step in 0..n {
                let i = if forward { step } else { n - 1 - step };
                let get = |x: &[Vec<Complex>], k: usize| if p.left_side { x[k][line] } else { x[line][k] };
                let done = (0..step).map(|s| if forward { s } else { n - 1 - s });
                let mut v = done.fold(get(&x, i), |v, k| v - entry(i, k) * get(&x, k));
                if !p.unit_diagonal {
                    v = v / entry(i, i);
                }
                *(if p.left_side { &mut x[i][line] } else { &mut x[line][i] }) = v;
            }
        }
        x
    };
    let pairs = matrices(&args[0]).into_iter().zip(matrices(&args[1]));
    Ok(vec![tensor(&outs[0], pairs.map(solve))])
}

/// The solution of op(a) x = b, or of x op(a) = b.
pub fn triangular_solve(a: &Value, b: &Value, params: TriangularSolve) -> Result<Value> {
    bind1(&OpRef::new(&TRIANGULAR_SOLVE, params), &[a.clone(), b.clone()])
}

/// The primitives of this file.
pub(crate) static PRIMITIVES: &[&'static dyn Primitive] = &[&TRIANGULAR_SOLVE];
