//! Hessenberg and tridiagonal forms, and solving with tridiagonal matrices.

use super::{NOT_UNIQUE, check, check_square, item, leading_batch, matrix, node, weak_like};
use crate::common::{FROM_KERNEL, NO_REWRITE, NOT_LINEAR, constant, one};
use crate::elementwise::binary::{add, mul, sub};
use crate::elementwise::unary::neg;
use crate::numbers::{Complex, complex, to_complex};
use crate::registry::Primitive;
use crate::slice::{PadDim, pad};
use ferrax_base::shape::Tuple;
use ferrax_base::{Aval, Result, bail};
use ferrax_ir::reference::RefTensor;
use ferrax_ir::trace::bind1;
use ferrax_ir::{Def, OpRef, Slot, Special, Tangents, TransposeArg, Value, Values, bind, params};
use ferrax_loops::linalg::LinalgOp;
use ferrax_transform::structural::{Axes, broadcast_in_dim};
use smallvec::smallvec;

/// Why the packed forms have no derivative.
const PACKED: &str = "not defined: the form is unique up to phases only";

/// (a) → the Hessenberg form with the reflections below it, and their factors.
pub static HESSENBERG: Def<()> = Def {
    name: "hessenberg",
    doc: "Matrices reduced to Hessenberg form by Householder reflections, which are stored below it.",
    arity: Some(1),
    shape: |(), args| {
        check("hessenberg", args, &[2])?;
        let x = args[0];
        let n = check_square("hessenberg", x)?;
        if n == 0 {
            bail!(Value, "hessenberg does not accept empty matrices, got shape {}", Tuple(&x.shape));
        }
        weak_like(args, smallvec![Aval::new(x.dtype, &x.shape), item(x, 2, &[n - 1], x.dtype)])
    },
    jvp: Slot::None(PACKED),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(leading_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), b, args, outs| Ok(node(LinalgOp::Hessenberg, b, args, outs))),
    reference: Slot::None(NOT_UNIQUE),
    special: Special::NONE,
};

/// Matrices in Hessenberg form, with the reflections that take them there and their factors.
pub fn hessenberg(x: &Value) -> Result<Values> {
    bind(&HESSENBERG.op(), std::slice::from_ref(x))
}

params! {
    /// Parameters of `tridiagonal`.
    pub struct Tridiagonal {
        /// The lower triangle is read and written, else the upper one.
        lower: bool,
    }
}

/// (a) → the tridiagonal form with its reflections, diagonal, off-diagonal, factors.
pub static TRIDIAGONAL: Def<Tridiagonal> = Def {
    name: "tridiagonal",
    doc: "Hermitian matrices reduced to tridiagonal form by Householder reflections, which are stored outside it.",
    arity: Some(1),
    shape: |_, args| {
        check("tridiagonal", args, &[2])?;
        let x = args[0];
        let n = check_square("tridiagonal", x)?;
        if n == 0 {
            bail!(Value, "tridiagonal does not accept empty matrices, got shape {}", Tuple(&x.shape));
        }
        let outs = smallvec![
            Aval::new(x.dtype, &x.shape),
            item(x, 2, &[n], x.dtype.real()),
            item(x, 2, &[n - 1], x.dtype.real()),
            item(x, 2, &[n - 1], x.dtype)
        ];
        weak_like(args, outs)
    },
    jvp: Slot::None(PACKED),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(leading_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| Ok(node(LinalgOp::Tridiagonal { lower: p.lower }, b, args, outs))),
    reference: Slot::None(NOT_UNIQUE),
    special: Special::NONE,
};

/// Hermitian matrices in tridiagonal form: packed, the diagonal, the off-diagonal, the factors of the reflections.
pub fn tridiagonal(x: &Value, lower: bool) -> Result<Values> {
    bind(&OpRef::new(&TRIDIAGONAL, Tridiagonal { lower }), std::slice::from_ref(x))
}

// ---- tridiagonal_solve ---------------------------------------------------------------------------------------------

/// (dl, d, du, b) → x.
pub static TRIDIAGONAL_SOLVE: Def<()> = Def {
    name: "tridiagonal_solve",
    doc: "The solution of linear systems with tridiagonal matrices, given by their diagonals.",
    arity: Some(4),
    shape: |(), args| {
        check("tridiagonal_solve", args, &[1, 1, 1, 2])?;
        let b = args[3];
        let shapes = || args.iter().map(|x| Tuple(&x.shape).to_string()).collect::<Vec<_>>().join(", ");
        if args[..3].iter().any(|d| d.shape != args[0].shape) {
            bail!(Type, "tridiagonal_solve requires that all diagonal arguments have the same shape, got {}", shapes());
        }
        if args[0].shape[args[0].rank() - 1] != matrix(b).0 {
            bail!(
                Type,
                "tridiagonal_solve requires that the leading ndim-1 dimensions of b equal the dimensions of the \
                 diagonal arguments, got {}",
                shapes()
            );
        }
        weak_like(args, smallvec![Aval::new(b.dtype, &b.shape)])
    },
    jvp: Slot::Rule(tridiagonal_solve_jvp),
    transpose: Slot::Rule(|_, (), cts, args| {
        let Some(ct) = &cts[0] else { return Ok(smallvec![None, None, None, None]) };
        if args[..3].iter().any(TransposeArg::is_linear) {
            bail!(
                Value,
                "tridiagonal_solve is linear in its right-hand side alone, and cannot be transposed otherwise"
            );
        }
        let [dl, d, du] = [args[0].known()?, args[1].known()?, args[2].known()?];
        let moved = tridiagonal_solve(&shifted(du, 1)?, d, &shifted(dl, -1)?, ct)?;
        Ok(smallvec![None, None, None, Some(moved)])
    }),
    batch: Slot::Rule(leading_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), b, args, outs| Ok(node(LinalgOp::TridiagonalSolve, b, args, outs))),
    reference: Slot::Rule(|(), args, outs| Ok(vec![tridiagonal_reference(args, &outs[0])])),
    special: Special::NONE,
};

/// Vectors moved one place to the right (or left), with a zero where they came from.
fn shifted(x: &Value, by: i64) -> Result<Value> {
    let mut config = vec![PadDim(0, 0, 0); x.rank()];
    config[x.rank() - 1] = PadDim(by, -by, 0);
    pad(x, &constant(x, 0.0), &config)
}

/// Rows of matrices moved down (or up) by one.
fn rows_shifted(x: &Value, by: i64) -> Result<Value> {
    let mut config = vec![PadDim(0, 0, 0); x.rank()];
    config[x.rank() - 2] = PadDim(by, -by, 0);
    pad(x, &constant(x, 0.0), &config)
}

fn tridiagonal_solve_jvp(
    op: &OpRef,
    (): &(),
    primals: &[Value],
    tangents: &[Option<Value>],
) -> Result<(Values, Tangents)> {
    let x = bind1(op, primals)?;
    let mut pushed: Option<Value> = None;
    // Row i of the matrix times x: dl_i x_{i-1} + d_i x_i + du_i x_{i+1}.
    for (slope, by) in tangents[..3].iter().zip([1, 0, -1]) {
        let Some(slope) = slope else { continue };
        let moved = if by == 0 { x.clone() } else { rows_shifted(&x, by)? };
        let dims: Axes = (0..x.rank() - 1).collect();
        let part = mul(&broadcast_in_dim(slope, x.shape(), &dims)?, &moved)?;
        pushed = Some(match pushed {
            Some(p) => add(&p, &part)?,
            None => part,
        });
    }
    let moved = match (tangents[3].clone(), pushed) {
        (Some(db), Some(p)) => Some(sub(&db, &p)?),
        (None, Some(p)) => Some(neg(&p)?),
        (db, None) => db,
    };
    let with = |m: Value| bind1(op, &[primals[0].clone(), primals[1].clone(), primals[2].clone(), m]);
    let tangent = moved.map(with).transpose()?;
    Ok(one(x, tangent))
}

/// Gauss elimination on the whole matrix.
fn tridiagonal_reference(args: &[RefTensor], out: &Aval) -> RefTensor {
    let n = args[1].aval.shape.last().copied().unwrap_or(0);
    let line = |k: usize, i: usize| -> Vec<Complex> {
        args[k].data[i * n..(i + 1) * n].iter().map(|s| to_complex(*s)).collect()
    };
    let solve = |(i, mut b): (usize, Vec<Vec<Complex>>)| {
        let (dl, d, du) = (line(0, i), line(1, i), line(2, i));
        let mut a = vec![vec![complex(0.0, 0.0); n]; n];
        for r in 0..n {
            a[r][r] = d[r];
            if r > 0 {
                a[r][r - 1] = dl[r];
            }
            if r + 1 < n {
                a[r][r + 1] = du[r];
            }
        }
        super::eliminate(&mut a, &mut b);
        b
    };
    super::tensor(out, super::matrices(&args[3]).into_iter().enumerate().map(solve))
}

/// The solution of systems with tridiagonal matrices; the first of `dl` and the last of `du` are outside the matrix.
pub fn tridiagonal_solve(dl: &Value, d: &Value, du: &Value, b: &Value) -> Result<Value> {
    bind1(&TRIDIAGONAL_SOLVE.op(), &[dl.clone(), d.clone(), du.clone(), b.clone()])
}

/// The primitives of this file.
pub(crate) static PRIMITIVES: &[&'static dyn Primitive] = &[&HESSENBERG, &TRIDIAGONAL, &TRIDIAGONAL_SOLVE];
