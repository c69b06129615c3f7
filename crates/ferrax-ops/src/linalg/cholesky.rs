//! The Cholesky factorization of Hermitian positive-definite matrices, and its update.
//!
//! With A = L Lᴴ: L' = L Φ(L⁻¹ A' L⁻ᴴ), where Φ takes the lower triangle and half of the diagonal (Murray, "Differentiation of the Cholesky decomposition", 2016).

use super::triangular::{TriangularSolve, triangular_solve};
use super::{
    check, check_square, leading_batch, lower_mask, matrices, matrix, node, product, tensor, tril, unit, weak_like,
};
use crate::common::{Accept, FROM_KERNEL, NO_REWRITE, NOT_LINEAR, check_operand, one};
use crate::numbers::{Complex, complex, to_complex};
use crate::registry::Primitive;
use ferrax_base::shape::Tuple;
use ferrax_base::{Aval, DType, Result, bail};
use ferrax_ir::reference::RefTensor;
use ferrax_ir::trace::bind1;
use ferrax_ir::{Def, OpRef, Slot, Special, Tangents, Value, Values};
use ferrax_loops::linalg::LinalgOp;
use smallvec::smallvec;

/// The lower factor; of the operand only the lower triangle is read.
pub static CHOLESKY: Def<()> = Def {
    name: "cholesky",
    doc: "The lower Cholesky factor of Hermitian positive-definite matrices, of which the lower triangle is read.",
    arity: Some(1),
    shape: |(), args| {
        check("cholesky", args, &[2])?;
        check_square("cholesky", args[0])?;
        weak_like(args, smallvec![Aval::new(args[0].dtype, &args[0].shape)])
    },
    jvp: Slot::Rule(cholesky_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(leading_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), b, args, outs| Ok(node(LinalgOp::Cholesky, b, args, outs))),
    reference: Slot::Rule(|(), args, outs| Ok(vec![cholesky_reference(&args[0], &outs[0])])),
    special: Special::NONE,
};

fn cholesky_jvp(op: &OpRef, (): &(), primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
    let l = bind1(op, primals)?;
    let Some(da) = &tangents[0] else { return Ok(one(l, None)) };
    let right = TriangularSolve {
        left_side: false,
        lower: true,
        transpose_a: true,
        conjugate_a: l.dtype().is_complex(),
        unit_diagonal: false,
    };
    let left = TriangularSolve { left_side: true, transpose_a: false, conjugate_a: false, ..right.clone() };
    let inner = triangular_solve(&l, &triangular_solve(&l, da, right)?, left)?;
    // Φ: the strict lower triangle, and half of the diagonal.
    let half = crate::mul(&inner, &crate::common::constant(&inner, 0.5))?;
    let phi = crate::select(&lower_mask(&inner, -1)?, &inner, &tril(&half, 0)?)?;
    let dl = product(&l, &phi)?;
    Ok(one(l, Some(dl)))
}

fn cholesky_reference(a: &RefTensor, out: &Aval) -> RefTensor {
    let factor = |a: Vec<Vec<Complex>>| {
        let n = a.len();
        let mut l = vec![vec![complex(0.0, 0.0); n]; n];
        for j in 0..n {
            let d = (0..j).fold(a[j][j].re, |d, k| d - (l[j][k] * l[j][k].conj()).re);
            if d.is_nan() || d <= 0.0 {
                let bad = complex(f64::NAN, f64::NAN);
                return (0..n).map(|i| (0..n).map(|j| if j <= i { bad } else { unit(0, 1) }).collect()).collect();
            }
            l[j][j] = complex(d.sqrt(), 0.0);
            for i in j + 1..n {
                let s = (0..j).fold(a[i][j], |s, k| s - l[i][k] * l[j][k].conj());
                l[i][j] = s / l[j][j];
            }
        }
        l
    };
    tensor(out, matrices(a).into_iter().map(factor))
}

/// The lower Cholesky factor; only the lower triangle is read.
pub fn cholesky(x: &Value) -> Result<Value> {
    bind1(&CHOLESKY.op(), std::slice::from_ref(x))
}

// ---- cholesky_update -----------------------------------------------------------------------------------------------

/// (r, w) → the upper factor of rᵀ r + w wᵀ.
pub static CHOLESKY_UPDATE: Def<()> = Def {
    name: "cholesky_update",
    doc: "The upper Cholesky factor after a real vector's product with itself was added to the matrix.",
    arity: Some(2),
    shape: |(), args| {
        let name = "cholesky_update";
        (0..args.len()).try_for_each(|i| check_operand(name, Accept::FLOAT, args, i))?;
        check(name, args, &[2, 1])?;
        let ((rows, cols), w) = (matrix(args[0]), &args[1].shape);
        if rows != cols || w[w.len() - 1] != cols {
            bail!(
                Value,
                "Rank-1 update to Cholesky decomposition takes a square matrix and a vector of the same size as input. \
                 Got shapes {} and {} instead",
                Tuple(&args[0].shape),
                Tuple(w)
            );
        }
        weak_like(args, smallvec![Aval::new(args[0].dtype, &args[0].shape)])
    },
    jvp: Slot::None("not defined in JAX: that of cholesky(rᵀ r + w wᵀ) is"),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(leading_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), b, args, outs| {
        // Narrow floats are computed in float32, and round once.
        let out = &outs[0];
        let dtype = if out.dtype == DType::F64 { DType::F64 } else { DType::F32 };
        let args = [b.convert(args[0], dtype), b.convert(args[1], dtype)];
        let wide = node(LinalgOp::CholeskyUpdate, b, &args, &[Aval::new(dtype, &out.shape)]);
        Ok(smallvec![b.convert(wide[0], out.dtype)])
    }),
    reference: Slot::Rule(|(), args, outs| Ok(vec![update_reference(args, &outs[0])])),
    special: Special::NONE,
};

/// Turns each row with the vector so that the vector's entry there vanishes.
fn update_reference(args: &[RefTensor], out: &Aval) -> RefTensor {
    let n = matrix(out).1;
    let update = |(i, mut r): (usize, Vec<Vec<Complex>>)| {
        let mut w: Vec<f64> = args[1].data[i * n..(i + 1) * n].iter().map(|s| to_complex(*s).re).collect();
        for (k, row) in r.iter_mut().enumerate().take(n) {
            let (x, y) = (row[k].re, w[k]);
            let (c, s) = if y == 0.0 { (1.0, 0.0) } else { (x / x.hypot(y), y / x.hypot(y)) };
            for (r, w) in row.iter_mut().zip(&mut w) {
                (r.re, *w) = (c * r.re + s * *w, c * *w - s * r.re);
            }
        }
        r
    };
    tensor(out, matrices(&args[0]).into_iter().enumerate().map(update))
}

/// The upper Cholesky factor of rᵀ r + w wᵀ, of one matrix and one vector.
pub fn cholesky_update(r: &Value, w: &Value) -> Result<Value> {
    for (i, (x, rank)) in [(r, 2), (w, 1)].into_iter().enumerate() {
        if x.rank() != rank {
            bail!(
                Type,
                "Input {i} to cholesky_update must have a rank of exactly {rank}, but got shape={}; ferrax.vmap maps it \
                 over batches",
                Tuple(x.shape())
            );
        }
    }
    bind1(&CHOLESKY_UPDATE.op(), &[r.clone(), w.clone()])
}

/// The primitives of this file.
pub(crate) static PRIMITIVES: &[&'static dyn Primitive] = &[&CHOLESKY, &CHOLESKY_UPDATE];
