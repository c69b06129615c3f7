//! LU factorization with partial pivoting, and solving with its factors.
//!
//! With P A = L U: L' = L tril(L⁻¹ P A' U⁻¹, -1), U' = triu(L⁻¹ P A' U⁻¹) U; for matrices that are not square, L and U
//! are completed by the identity. `lu_solve` takes the matrix along with its factors: its derivative comes from A x = b
//! (A x' = b' - A' x), so the factorization itself is not differentiated.

use super::triangular::{TriangularSolve, triangular_solve};
use super::{
    check, check_square, eliminate, item, known_matrix, leading_batch, matrices, matrix, node, product, tensor,
    transposed, tril, triu, weak_like,
};
use crate::common::{Accept, FROM_KERNEL, NO_REWRITE, NOT_LINEAR, check_operand, constant, full_like, one, zero_jvp};
use crate::elementwise::binary::{add, bitwise_and, sub};
use crate::elementwise::compare::{eq, ge};
use crate::elementwise::identity::stop_gradient;
use crate::elementwise::select::select;
use crate::elementwise::unary::{conj, neg};
use crate::gather_scatter::{GatherOptions, take_along_axis};
use crate::numbers::{Complex, complex};
use crate::registry::Primitive;
use crate::shape::iota;
use crate::slice::{PadDim, pad, slice_in_dim};
use ferrax_base::shape::Tuple;
use ferrax_base::symbolic::{self, Operation};
use ferrax_base::{Aval, DType, Result, Scalar, bail};
use ferrax_ir::reference::RefTensor;
use ferrax_ir::trace::bind1;
use ferrax_ir::{Def, OpRef, Slot, Special, Tangents, TransposeArg, Value, Values, bind, params};
use ferrax_loops::IndexMode;
use ferrax_loops::linalg::LinalgOp;
use ferrax_transform::structural::{Axes, broadcast_in_dim};
use smallvec::smallvec;

/// (a) → L and U in one matrix, the exchanged rows, the permutation of rows.
pub static LU: Def<()> = Def {
    name: "lu",
    doc: "LU factors with partial pivoting, the pivots, and the permutation that they make.",
    arity: Some(1),
    shape: |(), args| {
        check("lu", args, &[2])?;
        let x = args[0];
        let (m, n) = matrix(x);
        let pivots = item(x, 2, &[symbolic::dims(Operation::Min, m, n)?], DType::I32);
        weak_like(args, smallvec![Aval::new(x.dtype, &x.shape), pivots, item(x, 2, &[m], DType::I32)])
    },
    jvp: Slot::Rule(lu_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(leading_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), b, args, outs| Ok(node(LinalgOp::Lu, b, args, outs))),
    reference: Slot::Rule(|(), args, outs| Ok(lu_reference(&args[0], outs))),
    special: Special::NONE,
};

/// `x` with zeros below and right of it, `size` rows and columns in all.
fn enlarged(x: &Value, size: usize) -> Result<Value> {
    let (m, n) = matrix(&x.aval());
    let mut config = vec![PadDim(0, 0, 0); x.rank() - 2];
    config.extend([m, n].map(|k| PadDim(0, (size - k) as i64, 0)));
    pad(x, &constant(x, 0.0), &config)
}

/// Square matrices with ones on the diagonal from an index on.
fn unit_diagonal(x: &Value, from: usize) -> Result<Value> {
    let own = &x.shape()[x.rank() - 2..];
    let (rows, cols) = (iota(DType::I32, own, 0)?, iota(DType::I32, own, 1)?);
    let from = Value::Lit(ferrax_ir::Lit { scalar: Scalar::from_i64(DType::I32, from as i64), weak: false });
    let there = bitwise_and(&eq(&rows, &cols)?, &ge(&rows, &from)?)?;
    let dims: Axes = (x.rank() - 2..x.rank()).collect();
    select(&broadcast_in_dim(&there, x.shape(), &dims)?, &full_like(x, 1.0)?, x)
}

/// The rows of matrices in the order of a permutation.
fn permuted(x: &Value, permutation: &Value) -> Result<Value> {
    let shape = x.shape();
    let dims: Axes = (0..x.rank() - 1).collect();
    let index = broadcast_in_dim(permutation, shape, &dims)?;
    let options = GatherOptions { mode: IndexMode::PromiseInBounds, ..GatherOptions::default() };
    take_along_axis(x, &index, x.rank() - 2, options)
}

fn lu_jvp(op: &OpRef, (): &(), primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
    let outs = bind(op, primals)?;
    let Some(da) = &tangents[0] else { return Ok((outs, smallvec![None, None, None])) };
    let lu = &outs[0];
    let (m, n, k) = known_matrix("lu", &lu.aval())?;
    let rank = lu.rank();
    let part = |axis: usize| slice_in_dim(lu, Some(0), Some(k as i64), 1, axis);
    let l = unit_diagonal(&enlarged(&tril(&part(rank - 1)?, -1)?, m)?, 0)?;
    let u = unit_diagonal(&enlarged(&triu(&part(rank - 2)?, 0)?, n)?, k)?;
    let lower =
        TriangularSolve { left_side: true, lower: true, transpose_a: false, conjugate_a: false, unit_diagonal: true };
    let upper = TriangularSolve { left_side: false, lower: false, unit_diagonal: false, ..lower.clone() };
    let inner = triangular_solve(&u, &triangular_solve(&l, &permuted(da, &outs[2])?, lower)?, upper)?;
    let d = add(&product(&l, &tril(&inner, -1)?)?, &product(&triu(&inner, 0)?, &u)?)?;
    Ok((outs, smallvec![Some(d), None, None]))
}

fn lu_reference(a: &RefTensor, outs: &[Aval]) -> Vec<RefTensor> {
    let (m, n) = matrix(&a.aval);
    let (mut all, mut pivots, mut orders) = (Vec::new(), Vec::new(), Vec::new());
    for mut a in matrices(a) {
        let mut order: Vec<i64> = (0..m as i64).collect();
        for k in 0..m.min(n) {
            let size = |c: Complex| c.re.abs() + c.im.abs();
            let mut at = k;
            (k + 1..m).for_each(|i| at = if size(a[i][k]) > size(a[at][k]) { i } else { at });
            a.swap(k, at);
            order.swap(k, at);
            pivots.push(Scalar::from_i64(DType::I32, at as i64));
            if a[k][k] == complex(0.0, 0.0) {
                continue;
            }
            for i in k + 1..m {
                a[i][k] = a[i][k] / a[k][k];
                for j in k + 1..n {
                    a[i][j] = a[i][j] - a[i][k] * a[k][j];
                }
            }
        }
        orders.extend(order.iter().map(|&o| Scalar::from_i64(DType::I32, o)));
        all.push(a);
    }
    vec![
        tensor(&outs[0], all),
        RefTensor { aval: outs[1].clone(), data: pivots },
        RefTensor { aval: outs[2].clone(), data: orders },
    ]
}

/// L and U in one matrix, the pivots, and the permutation of rows (both int32).
pub fn lu(x: &Value) -> Result<Values> {
    bind(&LU.op(), std::slice::from_ref(x))
}

// ---- lu_pivots_to_permutation --------------------------------------------------------------------------------------

params! {
    /// Parameters of `lu_pivots_to_permutation`.
    pub struct PivotsToPermutation {
        /// Number of rows that are permuted.
        permutation_size: usize,
    }
}

/// Successive exchanges of rows as a permutation.
pub static PIVOTS_TO_PERMUTATION: Def<PivotsToPermutation> = Def {
    name: "lu_pivots_to_permutation",
    doc: "The permutation of rows that exchanging row k with row pivots[k] one after the other makes.",
    arity: Some(1),
    shape: |p, args| {
        let x = args[0];
        check_operand("lu_pivots_to_permutation", Accept::INTEGER, args, 0)?;
        if x.dtype != DType::I32 {
            bail!(
                Type,
                "lu_pivots_to_permutation does not accept dtype {} at position 0. Accepted dtypes at position 0 are \
                 subtypes of int32.",
                x.dtype
            );
        }
        let Some(&size) = x.shape.last() else {
            bail!(Type, "Input 0 to lu_pivots_to_permutation must have rank at least 1, but got shape=()")
        };
        if !symbolic::all_at_least(&[p.permutation_size], &[size]) {
            bail!(
                Value,
                "Output permutation size {} has to exceed the trailing dimension of the pivots. Got pivots size {size}",
                p.permutation_size
            );
        }
        Ok(smallvec![item(x, 1, &[p.permutation_size], DType::I32)])
    },
    jvp: Slot::Rule(zero_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(leading_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, _, b, args, outs| Ok(node(LinalgOp::PivotsToPermutation, b, args, outs))),
    reference: Slot::Rule(|p, args, outs| {
        let size = args[0].aval.shape.last().copied().unwrap_or(0);
        let batches = ferrax_base::shape::product(args[0].aval.shape.iter().rev().skip(1).copied());
        let mut data = Vec::new();
        for b in 0..batches {
            let mut order: Vec<i64> = (0..p.permutation_size as i64).collect();
            for k in 0..size {
                order.swap(k, (args[0].data[b * size + k].to_i64() as usize).min(p.permutation_size - 1));
            }
            data.extend(order.iter().map(|&o| Scalar::from_i64(DType::I32, o)));
        }
        Ok(vec![RefTensor { aval: outs[0].clone(), data }])
    }),
    special: Special::NONE,
};

/// The permutation of `permutation_size` rows that exchanges with `pivots` make.
pub fn lu_pivots_to_permutation(pivots: &Value, permutation_size: usize) -> Result<Value> {
    bind1(&OpRef::new(&PIVOTS_TO_PERMUTATION, PivotsToPermutation { permutation_size }), std::slice::from_ref(pivots))
}

// ---- lu_solve ------------------------------------------------------------------------------------------------------

params! {
    /// Parameters of `lu_solve`.
    pub struct LuSolve {
        /// The matrix is conjugated.
        conjugate_a: bool,
        /// The matrix is transposed.
        transpose_a: bool,
    }
}

/// (a, lu, permutation, b) → x with op(a) x = b. `lu` and `permutation` are what `lu` gives of a.
pub static LU_SOLVE: Def<LuSolve> = Def {
    name: "lu_solve",
    doc: "The solution of linear systems, from a matrix and its LU factors.",
    arity: Some(4),
    shape: |_, args| {
        let (a, b) = (args[0], args[3]);
        check("lu_solve", &[a, args[1], b], &[2, 2, 2])?;
        let n = check_square("lu_solve", a)?;
        let order = item(a, 2, &[n], DType::I32);
        if args[1].shape != a.shape || args[2].shape != order.shape || args[2].dtype != DType::I32 || matrix(b).0 != n {
            let shapes: Vec<String> = args.iter().map(|x| Tuple(&x.shape).to_string()).collect();
            bail!(Value, "Incompatible shapes for arguments to lu_solve: {}.", shapes.join(", "));
        }
        weak_like(&[a, b], smallvec![Aval::new(b.dtype, &b.shape)])
    },
    jvp: Slot::Rule(lu_solve_jvp),
    transpose: Slot::Rule(|_, p, cts, args| {
        let Some(ct) = &cts[0] else { return Ok(smallvec![None, None, None, None]) };
        if args[..3].iter().any(TransposeArg::is_linear) {
            bail!(Value, "lu_solve is linear in its right-hand side alone, and cannot be transposed otherwise");
        }
        let flipped = LuSolve { transpose_a: !p.transpose_a, ..p.clone() };
        let moved = lu_solve(args[0].known()?, args[1].known()?, args[2].known()?, ct, flipped)?;
        Ok(smallvec![None, None, None, Some(moved)])
    }),
    batch: Slot::Rule(leading_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        let op = LinalgOp::LuSolve { transpose: p.transpose_a, conjugate: p.conjugate_a };
        Ok(node(op, b, &args[1..], outs))
    }),
    reference: Slot::Rule(lu_solve_reference),
    special: Special::NONE,
};

fn lu_solve_jvp(op: &OpRef, p: &LuSolve, primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
    let x = bind1(op, primals)?;
    let mut moved = tangents[3].clone();
    if let Some(da) = &tangents[0] {
        let mut da = if p.transpose_a { transposed(da)? } else { da.clone() };
        if p.conjugate_a {
            da = conj(&da)?;
        }
        let pushed = product(&da, &x)?;
        moved = Some(match moved {
            Some(db) => sub(&db, &pushed)?,
            None => neg(&pushed)?,
        });
    }
    let with = |m: Value| bind1(op, &[primals[0].clone(), primals[1].clone(), primals[2].clone(), m]);
    let tangent = moved.map(with).transpose()?;
    Ok(one(x, tangent))
}

/// Gauss elimination on the matrix itself.
fn lu_solve_reference(p: &LuSolve, args: &[RefTensor], outs: &[Aval]) -> Result<Vec<RefTensor>> {
    let solve = |(a, mut b): (Vec<Vec<Complex>>, Vec<Vec<Complex>>)| {
        let n = a.len();
        let at = |i: usize, j: usize| {
            let v = if p.transpose_a { a[j][i] } else { a[i][j] };
            if p.conjugate_a { v.conj() } else { v }
        };
        let mut a: Vec<Vec<Complex>> = (0..n).map(|i| (0..n).map(|j| at(i, j)).collect()).collect();
        eliminate(&mut a, &mut b);
        b
    };
    let pairs = matrices(&args[0]).into_iter().zip(matrices(&args[3]));
    Ok(vec![tensor(&outs[0], pairs.map(solve))])
}

/// x with op(a) x = b, from the factors of a.
pub fn lu_solve(a: &Value, lu: &Value, permutation: &Value, b: &Value, params: LuSolve) -> Result<Value> {
    bind1(&OpRef::new(&LU_SOLVE, params), &[a.clone(), lu.clone(), permutation.clone(), b.clone()])
}

/// x with a x = b: factors a, and solves. Derivatives do not go through the factors.
pub fn solve(a: &Value, b: &Value) -> Result<Value> {
    let factors = lu(&stop_gradient(a)?)?;
    lu_solve(a, &factors[0], &factors[2], b, LuSolve { conjugate_a: false, transpose_a: false })
}

/// The primitives of this file.
pub(crate) static PRIMITIVES: &[&'static dyn Primitive] = &[&LU, &PIVOTS_TO_PERMUTATION, &LU_SOLVE];
