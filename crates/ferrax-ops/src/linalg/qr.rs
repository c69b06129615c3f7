//! QR factorization, and products of Householder reflections.
//!
//! With k = min(m, n), R₁ the first k columns of R, W = Qᴴ A₁' R₁⁻¹ and Ω = tril(W, -1) - tril(W, -1)ᴴ + i Im diag W
//! (the diagonal of R stays real): Qᴴ Q' = Ω, R' = Qᴴ A' - Ω R, and what of A₁' R₁⁻¹ is outside the range of a thin Q is
//! added to Q'. Source: Walter, Lehmann, Lamour, "On evaluating higher-order derivatives of the QR decomposition of
//! tall matrices with full column rank in forward and reverse mode algorithmic differentiation" (2012).

use super::triangular::{TriangularSolve, triangular_solve};
use super::{
    NOT_UNIQUE, adjoint, check, item, known_matrix, leading_batch, matrix, node, product, tril, triu, weak_like,
};
use crate::common::{FROM_KERNEL, NO_REWRITE, NOT_LINEAR, constant};
use crate::elementwise::binary::{add, complex, sub};
use crate::elementwise::unary::imag;
use crate::gather_scatter::{GatherOptions, take_along_axis};
use crate::registry::Primitive;
use crate::slice::{PadDim, pad, slice_in_dim};
use ferrax_base::symbolic::{self, Operation};
use ferrax_base::{Aval, DType, Result, Shape, bail};
use ferrax_ir::{Avals, Def, OpRef, Slot, Special, Tangents, Value, Values, bind, params};
use ferrax_loops::linalg::LinalgOp;
use ferrax_loops::{Builder, CompareOp, IndexMode, Kind, SliceDims, Type, ValueId};
use ferrax_transform::structural::{Axes, broadcast_in_dim};
use smallvec::{SmallVec, smallvec};

params! {
    /// Parameters of `qr`.
    pub struct Qr {
        /// Q is square; else it has as many columns as the matrix has rows or columns, whichever are fewer.
        full_matrices: bool,
        /// Columns are taken in an order in which the diagonal of R falls in size.
        pivoting: bool,
    }
}

/// (a) → Q, R, and with pivoting the order of columns.
pub static QR: Def<Qr> = Def {
    name: "qr",
    doc: "QR factorization of matrices, with or without pivoting.",
    arity: Some(1),
    shape: |p, args| {
        check("qr", args, &[2])?;
        let x = args[0];
        let (m, n) = matrix(x);
        let k = if p.full_matrices { m } else { symbolic::dims(Operation::Min, m, n)? };
        let mut outs: Avals = smallvec![item(x, 2, &[m, k], x.dtype), item(x, 2, &[k, n], x.dtype)];
        if p.pivoting {
            outs.push(item(x, 2, &[n], DType::I32));
        }
        weak_like(args, outs)
    },
    jvp: Slot::Rule(qr_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(leading_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(qr_kernel),
    reference: Slot::None(NOT_UNIQUE),
    special: Special::NONE,
};

/// The columns of matrices in an order.
fn in_order(x: &Value, order: &Value) -> Result<Value> {
    let rank = x.rank();
    let dims: Axes = (0..rank - 2).chain([rank - 1]).collect();
    let index = broadcast_in_dim(order, x.shape(), &dims)?;
    let options = GatherOptions { mode: IndexMode::PromiseInBounds, ..GatherOptions::default() };
    take_along_axis(x, &index, rank - 1, options)
}

/// Ω of the module's text, of W.
fn rotation(w: &Value) -> Result<Value> {
    let lower = tril(w, -1)?;
    let skew = sub(&lower, &adjoint(&lower)?)?;
    if !w.dtype().is_complex() {
        return Ok(skew);
    }
    let diagonal = sub(&tril(w, 0)?, &lower)?;
    let phase = imag(&diagonal)?;
    let none = crate::common::zeros_like(&phase)?;
    add(&skew, &complex(&none, &phase)?)
}

fn qr_jvp(op: &OpRef, p: &Qr, primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
    let outs = bind(op, primals)?;
    let Some(da) = &tangents[0] else {
        let none = smallvec![None; outs.len()];
        return Ok((outs, none));
    };
    let (q, r) = (&outs[0], &outs[1]);
    let rank = q.rank();
    let da = match outs.get(2) {
        Some(order) => in_order(da, order)?,
        None => da.clone(),
    };
    let (m, _, k) = known_matrix("qr", &da.aval())?;
    let first = |x: &Value, axis: usize| slice_in_dim(x, Some(0), Some(k as i64), 1, axis);
    let square = first(&first(r, rank - 1)?, rank - 2)?;
    let solve = TriangularSolve {
        left_side: false,
        lower: false,
        transpose_a: false,
        conjugate_a: false,
        unit_diagonal: false,
    };
    let pushed = triangular_solve(&square, &first(&da, rank - 1)?, solve)?;
    let qh = adjoint(q)?;
    let mut w = product(&qh, &pushed)?;
    let dq = if p.full_matrices {
        let mut config = vec![PadDim(0, 0, 0); rank];
        config[rank - 1] = PadDim(0, (m - k) as i64, 0);
        w = pad(&w, &constant(&w, 0.0), &config)?;
        product(q, &rotation(&w)?)?
    } else {
        add(&product(q, &sub(&rotation(&w)?, &w)?)?, &pushed)?
    };
    let dr = sub(&product(&qh, &da)?, &product(&rotation(&w)?, r)?)?;
    // What is below the diagonal cancels but for rounding.
    let mut slopes: Tangents = smallvec![Some(dq), Some(triu(&dr, 0)?)];
    slopes.resize(outs.len(), None);
    Ok((outs, slopes))
}

fn qr_kernel(_: &OpRef, p: &Qr, b: &mut Builder, args: &[ValueId], outs: &[Aval]) -> Result<SmallVec<[ValueId; 1]>> {
    let ty = b.ty(args[0]).clone();
    let rank = ty.shape.len();
    let k = ty.shape[rank - 2].min(ty.shape[rank - 1]);
    let with = |tail: &[usize], dtype: DType| {
        let mut shape: Shape = ty.shape[..rank - 2].iter().copied().collect();
        shape.extend_from_slice(tail);
        Type { dtype, shape }
    };
    let mut types: SmallVec<[Type; 3]> = smallvec![ty.clone()];
    if p.pivoting {
        types.push(Type::from(&outs[2]));
    }
    types.push(with(&[k], ty.dtype));
    let parts = b.push_many(Kind::Linalg(LinalgOp::Qr { pivoted: p.pivoting }), args, &types);
    let (packed, taus) = (parts[0], parts[parts.len() - 1]);
    let q = b.push(Kind::Linalg(LinalgOp::HouseholderProduct), &[packed, taus], Type::from(&outs[0]));
    // R: the rows that are there, and zeros below the diagonal.
    let shape = outs[1].shape.clone();
    let start: Shape = smallvec![0; rank];
    let stride: Shape = smallvec![1; rank];
    let first = Kind::Slice(Box::new(SliceDims { start, limit: shape.clone(), stride }));
    let rows = b.push(first, &[packed], Type::from(&outs[1]));
    let (i, j) = (b.iota(DType::I32, &shape, rank - 2), b.iota(DType::I32, &shape, rank - 1));
    let below = b.compare(CompareOp::Gt, i, j);
    let zero = b.scalar(ferrax_base::Scalar::zero(ty.dtype));
    let zeros = b.broadcast(zero, &shape, &[]);
    let r = b.select(below, rows, zeros);
    let mut results = smallvec![q, r];
    if p.pivoting {
        results.push(parts[1]);
    }
    Ok(results)
}

/// Q and R, and with pivoting the order of columns.
pub fn qr(x: &Value, full_matrices: bool, pivoting: bool) -> Result<Values> {
    bind(&OpRef::new(&QR, Qr { full_matrices, pivoting }), std::slice::from_ref(x))
}

// ---- products of reflections ---------------------------------------------------------------------------------------

/// Why reflections have no derivative.
const PACKED: &str = "derivatives are those of the factorization, not of its packed form";

fn check_reflections(name: &str, args: &[&Aval]) -> Result<()> {
    let (m, n) = matrix(args[0]);
    let k = args[1].shape[args[1].rank() - 1];
    let most = symbolic::dims(Operation::Min, m, n)?;
    if !symbolic::all_at_least(&[most], &[k]) {
        bail!(
            Value,
            "The second argument to {name} must not have more rows than the minimum of the first argument's rows and \
             columns: {most} for matrices of shape ({m}, {n}), got {k}."
        );
    }
    Ok(())
}

/// (reflections, factors) → the first columns of their product.
pub static HOUSEHOLDER_PRODUCT: Def<()> = Def {
    name: "householder_product",
    doc: "The first columns of a product of Householder reflections, which stand below the diagonal of a matrix.",
    arity: Some(2),
    shape: |(), args| {
        check("householder_product", args, &[2, 1])?;
        check_reflections("householder_product", args)?;
        let (m, n) = matrix(args[0]);
        if m < n {
            bail!(
                Value,
                "The first argument to householder_product must have at least as many rows as columns, got shape ({m}, {n})"
            );
        }
        weak_like(args, smallvec![Aval::new(args[0].dtype, &args[0].shape)])
    },
    jvp: Slot::None(PACKED),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(leading_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), b, args, outs| Ok(node(LinalgOp::HouseholderProduct, b, args, outs))),
    reference: Slot::None(NOT_UNIQUE),
    special: Special::NONE,
};

/// The first columns of the product of the reflections in `a` with these factors.
pub fn householder_product(a: &Value, taus: &Value) -> Result<Value> {
    ferrax_ir::trace::bind1(&HOUSEHOLDER_PRODUCT.op(), &[a.clone(), taus.clone()])
}

params! {
    /// Parameters of `ormqr`.
    pub struct Ormqr {
        /// The product stands left of the matrix.
        left: bool,
        /// Its adjoint is taken.
        transpose: bool,
    }
}

/// (reflections, factors, c) → Q c, c Q, Qᴴ c or c Qᴴ.
pub static ORMQR: Def<Ormqr> = Def {
    name: "ormqr",
    doc: "A product of Householder reflections, or its adjoint, times a matrix from the left or from the right.",
    arity: Some(3),
    shape: |p, args| {
        check("ormqr", args, &[2, 1, 2])?;
        check_reflections("ormqr", args)?;
        let ((m, _), (rows, cols)) = (matrix(args[0]), matrix(args[2]));
        let side = if p.left { rows } else { cols };
        if m != side {
            bail!(Value, "ormqr multiplies matrices of shape ({rows}, {cols}) by reflections of size {side}, got {m}");
        }
        weak_like(args, smallvec![Aval::new(args[2].dtype, &args[2].shape)])
    },
    jvp: Slot::None(PACKED),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(leading_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        Ok(node(LinalgOp::Reflect { left: p.left, adjoint: p.transpose }, b, args, outs))
    }),
    reference: Slot::None(NOT_UNIQUE),
    special: Special::NONE,
};

/// The product of reflections, or its adjoint, times `c`.
pub fn ormqr(a: &Value, taus: &Value, c: &Value, left: bool, transpose: bool) -> Result<Value> {
    ferrax_ir::trace::bind1(&OpRef::new(&ORMQR, Ormqr { left, transpose }), &[a.clone(), taus.clone(), c.clone()])
}

/// The primitives of this file.
pub(crate) static PRIMITIVES: &[&'static dyn Primitive] = &[&QR, &HOUSEHOLDER_PRODUCT, &ORMQR];
