//! The Cholesky factorization of Hermitian positive-definite matrices.
//!
//! With A = L Lᴴ: L' = L Φ(L⁻¹ A' L⁻ᴴ), where Φ takes the lower triangle and half of the diagonal (Murray, "Differentiation of the Cholesky decomposition", 2016).

use super::triangular::{TriangularSolve, triangular_solve};
use super::{check, check_square, leading_batch, lower_mask, matrices, node, product, tensor, tril, unit};
use crate::common::{LATER, NO_REWRITE, NOT_LINEAR, one};
use crate::numbers::complex;
use crate::registry::Primitive;
use ferrax_base::{Aval, Result};
use ferrax_ir::reference::RefTensor;
use ferrax_ir::trace::bind1;
use ferrax_ir::{Def, OpRef, Slot, Special, Tangents, Value, Values};
use ferrax_loops::linalg::LinalgOp;
use smallvec::smallvec;

/// The lower factor; of the operand only the lower triangle is read.
pub static CHOLESKY: Def<()> = Def {
    name: "cholesky",
    doc: "The lower Cholesky factor of Hermitian positive-definite matrices, of which the lower triangle is read.",
    shape: |(), args| {
        check("cholesky", args, &[2])?;
        check_square("cholesky", args[0])?;
        Ok(smallvec![Aval::new(args[0].dtype, &args[0].shape)])
    },
    jvp: Slot::Rule(cholesky_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(leading_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(LATER),
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
    let factor = |a: Vec<Vec<crate::numbers::Complex>>| {
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

/// The primitives of this file.
pub(crate) static PRIMITIVES: &[&'static dyn Primitive] = &[&CHOLESKY];
