//! Eigenvalues and singular values.
//!
//! A = V diag(w) Vᴴ: with P = Vᴴ A' V, w' = diag P and V' = V (F ∘ P), F_ij = 1 / (w_j - w_i). A = U diag(s) Vᴴ: with
//! P = Uᴴ A' V, s' = Re diag P; U' and V' are likewise with F_ij = 1 / (s_j² - s_i²), and the parts outside the ranges of
//! thin factors are added. Of a general matrix w' = diag(V⁻¹ A' V). Equal eigenvalues give infinities, as the
//! derivatives of their vectors do. Source: Giles, "Collected matrix derivative results" (2008), sections 3.1 and 3.2.

use super::{
    NOT_UNIQUE, adjoint, check, check_square, item, known_matrix, leading_batch, matrix, node, product, weak_like,
};
use crate::common::{FROM_KERNEL, NO_REWRITE, NOT_LINEAR, constant};
use crate::convert_element_type;
use crate::elementwise::binary::{add, div, mul, sub};
use crate::elementwise::compare::eq;
use crate::elementwise::select::select;
use crate::elementwise::unary::real;
use crate::registry::Primitive;
use crate::shape::iota;
use ferrax_base::symbolic::{self, Operation};
use ferrax_base::{Aval, DType, Result, bail};
use ferrax_ir::{Avals, Def, OpRef, Slot, Special, Tangents, Value, Values, bind, params};
use ferrax_loops::linalg::LinalgOp;
use ferrax_transform::structural::{Axes, broadcast_in_dim, reduce_sum, zeros};
use smallvec::smallvec;

/// Where row = column, in the shape of `x`.
fn on_diagonal(x: &Value) -> Result<Value> {
    let own = &x.shape()[x.rank() - 2..];
    let mask = eq(&iota(DType::I32, own, 0)?, &iota(DType::I32, own, 1)?)?;
    let dims: Axes = (x.rank() - 2..x.rank()).collect();
    broadcast_in_dim(&mask, x.shape(), &dims)
}

/// The diagonals of matrices.
fn diagonal(x: &Value) -> Result<Value> {
    let kept = select(&on_diagonal(x)?, x, &zeros(&x.aval())?)?;
    reduce_sum(&kept, &[x.rank() - 2])
}

/// Vectors along the columns' axis of matrices: entry (i, j) is v_j, or v_i along the rows'.
fn spread(v: &Value, rows: usize, cols: usize, along_rows: bool) -> Result<Value> {
    let lead = v.rank() - 1;
    let mut shape: ferrax_base::Shape = v.shape()[..lead].iter().copied().collect();
    shape.extend([rows, cols]);
    let dims: Axes = (0..lead).chain([if along_rows { lead } else { lead + 1 }]).collect();
    broadcast_in_dim(v, &shape, &dims)
}

/// 1 / differences with zeros on the diagonal.
fn inverse_off_diagonal(differences: &Value) -> Result<Value> {
    let mask = on_diagonal(differences)?;
    let one = crate::common::full_like(differences, 1.0)?;
    let inverse = div(&one, &select(&mask, &one, differences)?)?;
    select(&mask, &zeros(&differences.aval())?, &inverse)
}

/// A real factor for values of a dtype.
fn as_dtype(x: &Value, dtype: DType) -> Result<Value> {
    if x.dtype() == dtype { Ok(x.clone()) } else { convert_element_type(x, dtype) }
}

// ---- eigh ----------------------------------------------------------------------------------------------------------

params! {
    /// Parameters of `eigh`.
    pub struct Eigh {
        /// The lower triangle is read, else the upper one.
        lower: bool,
        /// Eigenvalues come in ascending order, which they always do here.
        sort_eigenvalues: bool,
    }
}

/// (a) → eigenvectors, eigenvalues.
pub static EIGH: Def<Eigh> = Def {
    name: "eigh",
    doc: "Eigenvectors and eigenvalues, in ascending order, of Hermitian matrices.",
    arity: Some(1),
    shape: |_, args| {
        check("eigh", args, &[2])?;
        let x = args[0];
        let n = check_square("eigh", x)?;
        weak_like(args, smallvec![Aval::new(x.dtype, &x.shape), item(x, 2, &[n], x.dtype.real())])
    },
    jvp: Slot::Rule(eigh_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(leading_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| Ok(node(LinalgOp::Eigh { lower: p.lower }, b, args, outs))),
    reference: Slot::None(NOT_UNIQUE),
    special: Special::NONE,
};

fn eigh_jvp(op: &OpRef, _: &Eigh, primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
    let outs = bind(op, primals)?;
    let Some(da) = &tangents[0] else { return Ok((outs, smallvec![None, None])) };
    let (v, w) = (&outs[0], &outs[1]);
    let n = w.shape()[w.rank() - 1];
    let p = product(&product(&adjoint(v)?, da)?, v)?;
    let differences = sub(&spread(w, n, n, false)?, &spread(w, n, n, true)?)?;
    let f = as_dtype(&inverse_off_diagonal(&differences)?, v.dtype())?;
    let dv = product(v, &mul(&f, &p)?)?;
    let mut dw = diagonal(&p)?;
    if dw.dtype().is_complex() {
        dw = real(&dw)?;
    }
    Ok((outs, smallvec![Some(dv), Some(dw)]))
}

/// Eigenvectors and eigenvalues of Hermitian matrices, of which one triangle is read.
pub fn eigh(x: &Value, lower: bool, sort_eigenvalues: bool) -> Result<Values> {
    bind(&OpRef::new(&EIGH, Eigh { lower, sort_eigenvalues }), std::slice::from_ref(x))
}

// ---- svd -----------------------------------------------------------------------------------------------------------

params! {
    /// Parameters of `svd`.
    pub struct Svd {
        /// U and V are given too.
        compute_uv: bool,
        /// They are square; else as wide as there are singular values.
        full_matrices: bool,
    }
}

/// (a) → singular values, U, Vᴴ.
pub static SVD: Def<Svd> = Def {
    name: "svd",
    doc: "Singular values, in descending order, and singular vectors of matrices.",
    arity: Some(1),
    shape: |p, args| {
        check("svd", args, &[2])?;
        let x = args[0];
        let (m, n) = matrix(x);
        let k = symbolic::dims(Operation::Min, m, n)?;
        let mut outs: Avals = smallvec![item(x, 2, &[k], x.dtype.real())];
        if p.compute_uv {
            let (u, v) = if p.full_matrices { (m, n) } else { (k, k) };
            outs.push(item(x, 2, &[m, u], x.dtype));
            outs.push(item(x, 2, &[v, n], x.dtype));
        }
        weak_like(args, outs)
    },
    jvp: Slot::Rule(svd_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(leading_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| Ok(node(LinalgOp::Svd { vectors: p.compute_uv }, b, args, outs))),
    reference: Slot::None(NOT_UNIQUE),
    special: Special::NONE,
};

fn svd_jvp(op: &OpRef, p: &Svd, primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
    let Some(da) = &tangents[0] else {
        let outs = bind(op, primals)?;
        let none = smallvec![None; outs.len()];
        return Ok((outs, none));
    };
    let (m, n, k) = known_matrix("svd", &da.aval())?;
    if p.compute_uv && p.full_matrices && m != n {
        bail!(
            NotImplemented,
            "the derivative of svd with full_matrices=True is not defined for matrices that are not square, got shape \
             ({m}, {n}); pass full_matrices=False"
        );
    }
    let outs = svd(&primals[0], false, true)?;
    let (s, u, vh) = (&outs[0], &outs[1], &outs[2]);
    let v = adjoint(vh)?;
    let inner = product(&product(&adjoint(u)?, da)?, &v)?;
    let mut ds = diagonal(&inner)?;
    if ds.dtype().is_complex() {
        ds = real(&ds)?;
    }
    if !p.compute_uv {
        return Ok((smallvec![s.clone()], smallvec![Some(ds)]));
    }
    let (across, down) = (spread(s, k, k, false)?, spread(s, k, k, true)?);
    let differences = mul(&add(&across, &down)?, &sub(&across, &down)?)?;
    let f = as_dtype(&inverse_off_diagonal(&differences)?, u.dtype())?;
    let (across, down) = (as_dtype(&across, u.dtype())?, as_dtype(&down, u.dtype())?);
    let twice = |x: &Value| add(x, &adjoint(x)?);
    let turn_u = mul(&f, &twice(&mul(&across, &inner)?)?)?;
    let turn_v = mul(&f, &twice(&mul(&down, &inner)?)?)?;
    let mut du = product(u, &add(&turn_u, &phases(&inner, &across)?)?)?;
    let mut dv = product(&v, &turn_v)?;
    if m > n {
        du = add(&du, &outside(da, &v, u, s, (m, k))?)?;
    }
    if n > m {
        dv = add(&dv, &outside(&adjoint(da)?, u, &v, s, (n, k))?)?;
    }
    let slopes = smallvec![Some(ds), Some(du), Some(adjoint(&dv)?)];
    Ok((outs, slopes))
}

/// The turning of the phases of U, which V does not take part in: (P - Pᴴ) / 2 s on the diagonal.
fn phases(inner: &Value, s: &Value) -> Result<Value> {
    let none = zeros(&inner.aval())?;
    let skew = mul(&sub(inner, &adjoint(inner)?)?, &constant(inner, 0.5))?;
    let flat = eq(s, &none)?;
    let divided = div(&skew, &select(&flat, &crate::common::full_like(s, 1.0)?, s)?)?;
    let wanted = crate::bitwise_and(&on_diagonal(inner)?, &crate::bitwise_not(&flat)?)?;
    select(&wanted, &divided, &none)
}

/// The part of A' V / s outside the range of U.
fn outside(da: &Value, v: &Value, u: &Value, s: &Value, (rows, k): (usize, usize)) -> Result<Value> {
    let moved = product(da, v)?;
    let kept = sub(&moved, &product(u, &product(&adjoint(u)?, &moved)?)?)?;
    div(&kept, &as_dtype(&spread(s, rows, k, false)?, kept.dtype())?)
}

/// Singular values, and with `compute_uv` U and Vᴴ.
pub fn svd(x: &Value, full_matrices: bool, compute_uv: bool) -> Result<Values> {
    bind(&OpRef::new(&SVD, Svd { compute_uv, full_matrices }), std::slice::from_ref(x))
}

// ---- eig -----------------------------------------------------------------------------------------------------------

params! {
    /// Parameters of `eig`.
    pub struct Eig {
        /// Left eigenvectors are given.
        compute_left_eigenvectors: bool,
        /// Right eigenvectors are given.
        compute_right_eigenvectors: bool,
    }
}

/// (a) → eigenvalues, left and right eigenvectors.
pub static EIG: Def<Eig> = Def {
    name: "eig",
    doc: "Eigenvalues and eigenvectors of general matrices.",
    arity: Some(1),
    shape: |p, args| {
        check("eig", args, &[2])?;
        let x = args[0];
        let n = check_square("eig", x)?;
        let dtype = x.dtype.to_complex();
        let mut outs: Avals = smallvec![item(x, 2, &[n], dtype)];
        let sides = [p.compute_left_eigenvectors, p.compute_right_eigenvectors];
        outs.extend(sides.iter().filter(|on| **on).map(|_| item(x, 2, &[n, n], dtype)));
        weak_like(args, outs)
    },
    jvp: Slot::Rule(eig_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(leading_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        let op = LinalgOp::Eig { left: p.compute_left_eigenvectors, right: p.compute_right_eigenvectors };
        Ok(node(op, b, args, outs))
    }),
    reference: Slot::None(NOT_UNIQUE),
    special: Special::NONE,
};

fn eig_jvp(op: &OpRef, p: &Eig, primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
    let Some(da) = &tangents[0] else {
        let outs = bind(op, primals)?;
        let none = smallvec![None; outs.len()];
        return Ok((outs, none));
    };
    if p.compute_left_eigenvectors || p.compute_right_eigenvectors {
        bail!(
            NotImplemented,
            "eigenvectors of general matrices have no derivative here: only eigenvalues do (jnp.linalg.eigvals, or \
             lax.linalg.eig without eigenvectors)"
        );
    }
    let outs = eig(&primals[0], false, true)?;
    let (w, v) = (&outs[0], &outs[1]);
    let moved = product(&as_dtype(da, v.dtype())?, v)?;
    let dw = diagonal(&super::lu::solve(v, &moved)?)?;
    Ok((smallvec![w.clone()], smallvec![Some(dw)]))
}

/// Eigenvalues, then left and right eigenvectors where they are asked for.
pub fn eig(x: &Value, left: bool, right: bool) -> Result<Values> {
    let params = Eig { compute_left_eigenvectors: left, compute_right_eigenvectors: right };
    bind(&OpRef::new(&EIG, params), std::slice::from_ref(x))
}

// ---- schur ---------------------------------------------------------------------------------------------------------

params! {
    /// Parameters of `schur`.
    pub struct Schur {
        /// Z is given too.
        compute_schur_vectors: bool,
    }
}

/// (a) → T, and Z if it is asked for, with a = Z T Zᴴ.
pub static SCHUR: Def<Schur> = Def {
    name: "schur",
    doc: "The Schur form of general matrices: unitarily similar ones that are triangular, or nearly so if real.",
    arity: Some(1),
    shape: |p, args| {
        check("schur", args, &[2])?;
        let x = args[0];
        check_square("schur", x)?;
        let out = Aval::new(x.dtype, &x.shape);
        weak_like(args, if p.compute_schur_vectors { smallvec![out.clone(), out] } else { smallvec![out] })
    },
    jvp: Slot::None("not defined: the form hangs on the order of the eigenvalues"),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(leading_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        Ok(node(LinalgOp::Schur { vectors: p.compute_schur_vectors }, b, args, outs))
    }),
    reference: Slot::None(NOT_UNIQUE),
    special: Special::NONE,
};

/// The Schur form T of matrices, then Z where it is asked for.
pub fn schur(x: &Value, compute_schur_vectors: bool) -> Result<Values> {
    bind(&OpRef::new(&SCHUR, Schur { compute_schur_vectors }), std::slice::from_ref(x))
}

/// The primitives of this file.
pub(crate) static PRIMITIVES: &[&'static dyn Primitive] = &[&EIGH, &SVD, &EIG, &SCHUR];
