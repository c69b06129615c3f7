//! Nodes that an engine may have no operation of, or none that is accurate or means the same, as kernel graphs of simpler
//! nodes: XLA and CUDA run them, and so does the CPU engine, which they are tested on.
//!
//! Read next: `code.rs` for how such graphs are written.

mod bessel;
mod code;
mod cumulative;
mod eig;
mod erf;
mod factor;
mod fourier;
mod francis;
mod gamma;
mod jacobi;
mod order;
mod reflect;
mod schur;
mod threefry;
mod zeta;

use crate::linalg::LinalgOp;
use crate::{BinaryOp, Graph, Kind, Type, UnaryOp};
use code::X;
use ferrax_base::{DType, Result, bail};
pub use fourier::{divided_transform, transform};
pub use order::is_key;

/// The graph that a node with these operands and results is printed as; none where the node is printed itself.
pub fn expansion(kind: &Kind, operands: &[Type], results: &[Type]) -> Result<Option<Graph>> {
    let whole = match kind {
        Kind::Sort { num_keys, .. } => operands[..*num_keys].iter().all(|ty| is_key(ty.dtype)),
        Kind::Unary(op) => !is_special(*op),
        Kind::Binary(op) => !matches!(op, BinaryOp::Igamma | BinaryOp::Igammac | BinaryOp::Zeta | BinaryOp::Polygamma),
        Kind::Linalg(op) => matches!(op, LinalgOp::TriangularSolve { .. } | LinalgOp::Cholesky),
        Kind::Cumulative { .. } | Kind::TopK { .. } | Kind::Threefry2x32 => false,
        _ => true,
    };
    if whole {
        return Ok(None);
    }
    let graph = code::graph(operands, |x| match kind {
        Kind::Unary(op) => special(*op, x[0]).map(|y| vec![y]),
        Kind::Binary(op) => special_of_two(*op, x[0], x[1]).map(|y| vec![y]),
        Kind::Cumulative { op, axis, reverse } => cumulative::cumulative(*op, *axis, *reverse, x[0]).map(|y| vec![y]),
        Kind::Sort { axis, num_keys, stable } => order::sort(*axis, *num_keys, *stable, x),
        Kind::TopK { k, axis } => order::top_k(*k, *axis, x[0]),
        Kind::Threefry2x32 => Ok(threefry::threefry([x[0], x[1], x[2], x[3]]).to_vec()),
        Kind::Linalg(op) => linalg(*op, x, results),
        other => bail!(Internal, "{other:?} has no expansion"),
    })?;
    Ok(Some(graph))
}

/// What is shown of the lower Cholesky factors that a compiler found.
pub fn cholesky_shown(factor: &Type) -> Result<Graph> {
    code::graph(std::slice::from_ref(factor), |x| {
        Ok(vec![factor::cholesky_shown(flat(x[0], 2)).reshape(&factor.shape)])
    })
}

fn is_special(op: UnaryOp) -> bool {
    use UnaryOp::*;
    matches!(op, Erf | Erfc | ErfInv | Lgamma | Digamma | BesselI0e | BesselI1e)
}

/// A special function of f32 and f64, by way of f64 where nothing is said.
fn special(op: UnaryOp, x: X<'_>) -> Result<X<'_>> {
    let d = x.dtype();
    match (op, d) {
        (UnaryOp::Erf, DType::F32) => return Ok(erf::erf_single(x)),
        (UnaryOp::ErfInv, DType::F32) => return Ok(erf::erf_inv_single(x)),
        (_, DType::F32 | DType::F64) => {}
        _ => bail!(NotImplemented, "the XLA engine has no {op:?} for {d}"),
    }
    let x = x.to(DType::F64);
    let y = match op {
        UnaryOp::Erf => erf::erf(x),
        UnaryOp::Erfc => erf::erfc(x),
        UnaryOp::ErfInv => erf::erf_inv(x),
        UnaryOp::Lgamma => gamma::lgamma(x),
        UnaryOp::Digamma => gamma::digamma(x),
        UnaryOp::BesselI0e => bessel::bessel_ie(x, 0),
        UnaryOp::BesselI1e => bessel::bessel_ie(x, 1),
        other => bail!(Internal, "{other:?} is no special function"),
    };
    Ok(y.to(d))
}

/// A special function of two operands of f32 or f64.
fn special_of_two<'c>(op: BinaryOp, x: X<'c>, y: X<'c>) -> Result<X<'c>> {
    let d = x.dtype();
    if !matches!(d, DType::F32 | DType::F64) {
        bail!(NotImplemented, "the XLA engine has no {op:?} for {d}");
    }
    let (x, y) = (x.to(DType::F64), y.to(DType::F64));
    let shape = if x.shape().is_empty() { y.shape() } else { x.shape() };
    let (x, y) = (x.spread(&shape), y.spread(&shape));
    let z = match op {
        BinaryOp::Igamma => gamma::igamma(x, y),
        BinaryOp::Igammac => gamma::igammac(x, y),
        BinaryOp::Zeta => zeta::zeta(x, y),
        BinaryOp::Polygamma => zeta::polygamma(x, y),
        other => bail!(Internal, "{other:?} is no special function"),
    };
    Ok(z.to(d))
}

/// A batch of matrices, or of vectors, with its batch axes as one.
fn flat(x: X<'_>, rank: usize) -> X<'_> {
    let shape = x.shape();
    let own = &shape[shape.len() - rank..];
    let batch: usize = shape[..shape.len() - rank].iter().product();
    x.reshape(&[&[batch], own].concat())
}

/// A matrix operation.
fn linalg<'c>(op: LinalgOp, x: &[X<'c>], results: &[Type]) -> Result<Vec<X<'c>>> {
    if results.iter().all(|ty| ty.size() == 0) {
        return Ok(results.iter().map(|ty| x[0].code.full(ty.dtype, &ty.shape, 0.0)).collect());
    }
    let width = |i: usize| results[i].shape[results[i].shape.len() - 1];
    let m = |i: usize| flat(x[i], 2);
    let v = |i: usize| flat(x[i], 1);
    let found = match op {
        LinalgOp::CholeskyUpdate => vec![factor::cholesky_update(m(0), v(1))],
        LinalgOp::Lu => factor::lu(m(0)).to_vec(),
        LinalgOp::PivotsToPermutation => vec![factor::permutation(v(0), width(0))],
        LinalgOp::LuSolve { transpose, conjugate } => vec![factor::lu_solve(m(0), v(1), m(2), transpose, conjugate)],
        LinalgOp::Qr { pivoted: false } => reflect::qr(m(0)).to_vec(),
        LinalgOp::Qr { pivoted: true } => reflect::qr_pivoted(m(0)).to_vec(),
        LinalgOp::HouseholderProduct => vec![reflect::product(m(0), v(1), width(0))],
        LinalgOp::Reflect { left, adjoint } => vec![reflect::reflect(m(0), v(1), m(2), left, adjoint)],
        LinalgOp::Hessenberg => reflect::hessenberg(m(0)).to_vec(),
        LinalgOp::Tridiagonal { lower } => reflect::tridiagonal(m(0), lower).to_vec(),
        LinalgOp::TridiagonalSolve => vec![factor::tridiagonal_solve(v(0), v(1), v(2), m(3))],
        LinalgOp::Eigh { lower } => jacobi::eigh(m(0), lower).to_vec(),
        LinalgOp::Svd { vectors: false } => vec![jacobi::singular_values(m(0))],
        LinalgOp::Svd { vectors: true } => {
            let rows = results[2].shape[results[2].shape.len() - 2];
            jacobi::svd(m(0), width(1), rows).to_vec()
        }
        LinalgOp::Eig { left, right } => eig::eig(m(0), left, right),
        LinalgOp::Schur { vectors } => schur::schur(m(0), vectors),
        LinalgOp::Cholesky | LinalgOp::TriangularSolve { .. } => bail!(Internal, "{op:?} has no expansion"),
    };
    Ok(found.into_iter().zip(results).map(|(y, ty)| y.reshape(&ty.shape)).collect())
}
