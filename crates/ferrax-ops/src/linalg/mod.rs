//! Linear algebra: factorizations and what solves with them.
//!
//! The last two axes of an operand are its matrices, axes before them are batches, equal for all operands. A
//! factorization that fails gives NaN. Derivatives are those of Giles, "Collected matrix derivative results for forward
//! and reverse mode algorithmic differentiation" (2008), as jvp rules; transposition of them gives reverse mode.
//!
//! Read next: `cholesky.rs`, then `lu.rs`.

pub mod cholesky;
pub mod lu;
pub mod qr;
pub mod reduced;
pub mod spectral;
pub mod triangular;

use crate::common::Accept;
use crate::common::check_operand;
use crate::elementwise::compare::ge;
use crate::elementwise::select::select;
use crate::elementwise::unary::conj;
use crate::numbers::{Complex, complex, to_complex};
use crate::registry::Primitive;
use crate::shape::iota;
use ferrax_base::shape::Tuple;
use ferrax_base::symbolic;
use ferrax_base::{Aval, DType, Result, Scalar, Shape, bail};
use ferrax_ir::op::{BatchAxis, BatchDims};
use ferrax_ir::reference::RefTensor;
use ferrax_ir::{Avals, OpRef, Value, Values, bind};
use ferrax_loops::linalg::LinalgOp;
use ferrax_loops::{Builder, Kind, Type, ValueId};
use ferrax_transform::structural::{Axes, broadcast_batch, broadcast_in_dim, transpose, zeros};
use smallvec::{SmallVec, smallvec};

/// Why a slot of the reference is empty.
const NOT_UNIQUE: &str = "its factors are unique up to phases: tests check the equations that they solve";

// ---- shapes --------------------------------------------------------------------------------------------------------

/// Errors unless every operand is an array of matrices of floats, with the same batch axes; `ranks` are those of one
/// item of each operand.
fn check(name: &str, args: &[&Aval], ranks: &[usize]) -> Result<()> {
    for (i, (x, &rank)) in args.iter().zip(ranks).enumerate() {
        check_operand(name, Accept::INEXACT, args, i)?;
        if x.rank() < rank {
            bail!(Type, "Input {i} to {name} must have rank at least {rank}, but got shape={}", Tuple(&x.shape));
        }
    }
    crate::common::check_same_dtypes(name, args)?;
    check_batches(name, args, ranks)
}

fn check_batches(name: &str, args: &[&Aval], ranks: &[usize]) -> Result<()> {
    let batch = |i: usize| args[i].shape.get(..args[i].rank().saturating_sub(ranks[i])).unwrap_or_default();
    let (first, others) = (batch(0), 1..args.len());
    let counts: Vec<usize> = (0..args.len()).map(|i| batch(i).len()).collect();
    if counts.iter().any(|&n| n != counts[0]) {
        bail!(
            Type,
            "All inputs to {name} must have the same number of batch dimensions, but got {counts:?} batch dimensions for \
             the inputs."
        );
    }
    if let Some(i) = others.into_iter().find(|&i| batch(i) != first) {
        bail!(
            Type,
            "All inputs to {name} must have the same batch dimensions, but got {} and {}.",
            Tuple(first),
            Tuple(batch(i))
        );
    }
    Ok(())
}

/// Rows and columns of an operand's matrices.
fn matrix(x: &Aval) -> (usize, usize) {
    (x.shape[x.rank() - 2], x.shape[x.rank() - 1])
}

/// Rows, columns and the smaller of both, for derivatives that tell them apart.
fn known_matrix(name: &str, x: &Aval) -> Result<(usize, usize, usize)> {
    let (m, n) = matrix(x);
    if m != n {
        symbolic::check_number(&format!("the derivative of {name} of matrices that are not square"), &[m, n])?;
    }
    Ok((m, n, m.min(n)))
}

/// Errors unless the matrices are square.
fn check_square(name: &str, x: &Aval) -> Result<usize> {
    match matrix(x) {
        (m, n) if m == n => Ok(n),
        _ => bail!(Value, "The input to {name} must be a square matrix. Got shape {}.", Tuple(&x.shape)),
    }
}

/// An aval with an operand's batch axes and an item of this shape.
fn item(x: &Aval, rank: usize, shape: &[usize], dtype: DType) -> Aval {
    let mut out: Shape = x.shape[..x.rank() - rank].iter().copied().collect();
    out.extend_from_slice(shape);
    Aval::new(dtype, &out)
}

/// Results that are weakly typed where all operands are.
fn weak_like(args: &[&Aval], mut outs: Avals) -> Result<Avals> {
    let weak = args.iter().all(|a| a.weak);
    outs.iter_mut().for_each(|out| out.weak = weak);
    Ok(outs)
}

// ---- batching and lowering -----------------------------------------------------------------------------------------

/// Batching of operations that have batch axes of their own: one more in front.
fn leading_batch<P>(
    op: &OpRef,
    _: &P,
    axis: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
) -> Result<(Values, BatchDims)> {
    let args = args.iter().zip(dims).map(|(x, d)| broadcast_batch(x, *d, axis.size, 0)).collect::<Result<Vec<_>>>()?;
    let outs = bind(op, &args)?;
    let dims = smallvec![Some(0); outs.len()];
    Ok((outs, dims))
}

/// A node of the engine's library.
fn node(op: LinalgOp, b: &mut Builder, args: &[ValueId], outs: &[Aval]) -> SmallVec<[ValueId; 1]> {
    let types: SmallVec<[Type; 3]> = outs.iter().map(Type::from).collect();
    b.push_many(Kind::Linalg(op), args, &types)
}

// ---- matrices as values --------------------------------------------------------------------------------------------

/// The product of matrices, over equal batch axes.
fn product(x: &Value, y: &Value) -> Result<Value> {
    crate::dot::batch_matmul(x, y, Some(crate::dot::HIGHEST))
}

/// The matrices transposed.
pub fn transposed(x: &Value) -> Result<Value> {
    let n = x.rank();
    let perm: Axes = (0..n - 2).chain([n - 1, n - 2]).collect();
    transpose(x, &perm)
}

/// The matrices transposed and conjugated.
pub fn adjoint(x: &Value) -> Result<Value> {
    let t = transposed(x)?;
    if t.dtype().is_complex() { conj(&t) } else { Ok(t) }
}

/// Where row + `offset` ≥ column, in the shape of `x`.
fn lower_mask(x: &Value, offset: i64) -> Result<Value> {
    let shape = x.shape();
    let own = &shape[shape.len() - 2..];
    let rows = iota(DType::I32, own, 0)?;
    let shift = Value::Lit(ferrax_ir::Lit { scalar: Scalar::from_i64(DType::I32, offset), weak: false });
    let mask = ge(&crate::add(&rows, &shift)?, &iota(DType::I32, own, 1)?)?;
    let dims: Axes = (shape.len() - 2..shape.len()).collect();
    broadcast_in_dim(&mask, shape, &dims)
}

/// The matrices with zeros above the `offset`-th diagonal.
pub fn tril(x: &Value, offset: i64) -> Result<Value> {
    select(&lower_mask(x, offset)?, x, &zeros(&x.aval())?)
}

/// The matrices with zeros below the `offset`-th diagonal.
pub fn triu(x: &Value, offset: i64) -> Result<Value> {
    select(&lower_mask(x, offset - 1)?, &zeros(&x.aval())?, x)
}

// ---- references ----------------------------------------------------------------------------------------------------

/// The matrices of a tensor as lists of rows.
fn matrices(x: &RefTensor) -> Vec<Vec<Vec<Complex>>> {
    let (m, n) = matrix(&x.aval);
    let all: Vec<Complex> = x.data.iter().map(|s| to_complex(*s)).collect();
    if m * n == 0 {
        let count = ferrax_base::shape::size(&x.aval.shape[..x.aval.rank() - 2]);
        return vec![vec![Vec::new(); m]; count];
    }
    all.chunks_exact(m * n).map(|a| a.chunks_exact(n).map(<[Complex]>::to_vec).collect()).collect()
}

/// A tensor of matrices.
fn tensor(aval: &Aval, matrices: impl IntoIterator<Item = Vec<Vec<Complex>>>) -> RefTensor {
    let scalar = |c: &Complex| {
        if aval.dtype.is_complex() {
            Scalar::from_complex(aval.dtype, c.re, c.im)
        } else {
            Scalar::from_f64(aval.dtype, c.re)
        }
    };
    let data = matrices.into_iter().flatten().flatten().map(|c| scalar(&c)).collect();
    RefTensor { aval: aval.clone(), data }
}

/// Solves a x = b in place of b, by Gauss-Jordan elimination with exchanges of rows.
fn eliminate(a: &mut [Vec<Complex>], b: &mut [Vec<Complex>]) {
    let n = a.len();
    for k in 0..n {
        let mut top = k;
        (k + 1..n).for_each(|i| top = if a[i][k].abs() > a[top][k].abs() { i } else { top });
        a.swap(k, top);
        b.swap(k, top);
        for i in (0..n).filter(|&i| i != k) {
            let f = a[i][k] / a[k][k];
            (0..n).for_each(|j| a[i][j] = a[i][j] - f * a[k][j]);
            (0..b[i].len()).for_each(|j| b[i][j] = b[i][j] - f * b[k][j]);
        }
    }
    (0..n).for_each(|i| (0..b[i].len()).for_each(|j| b[i][j] = b[i][j] / a[i][i]));
}

/// The identity's element.
fn unit(i: usize, j: usize) -> Complex {
    complex(f64::from(u8::from(i == j)), 0.0)
}

/// The primitives of this family.
pub(crate) fn primitives() -> Vec<&'static dyn Primitive> {
    [
        cholesky::PRIMITIVES,
        triangular::PRIMITIVES,
        lu::PRIMITIVES,
        qr::PRIMITIVES,
        spectral::PRIMITIVES,
        reduced::PRIMITIVES,
    ]
    .concat()
}
