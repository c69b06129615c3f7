//! Factorizations as NVIDIA's library has them: columns first, in the memory of the matrix, with a code for each.
//!
//! A `Linalg` node that is left with a code (int32, one a matrix) behind its results is such a call, of matrices that are the
//! transpositions of what it is given; around it stand nodes that turn results and show what failed. What a
//! Hermitian matrix needs not be turned for, another triangle is asked for. Codes become NaN as JAX's do: those of Cholesky
//! factors, eigenvalues and singular values; a singular matrix has L and U.
//! Read next: `library/factor.rs`, which makes the call.

use crate::routine::{Libraries, is_factored};
use ferrax_base::{DType, Scalar};
use ferrax_loops::kind::PadConfig;
use ferrax_loops::linalg::LinalgOp;
use ferrax_loops::{BinaryOp, Builder, CompareOp, Kind, Type, UnaryOp, ValueId};

/// A factorization by the library; none where it is no work for it.
pub fn factored(
    b: &mut Builder,
    op: LinalgOp,
    inputs: &[ValueId],
    results: &[Type],
    l: Libraries,
) -> Option<Vec<ValueId>> {
    let a = b.ty(inputs[0]).clone();
    if !is_factored(l, op, &a, &results[0]) {
        return None;
    }
    let [m, n] = a.shape[a.shape.len() - 2..] else { return None };
    let batch = a.size() / (m * n);
    let x = b.reshape(inputs[0], &[batch, m, n]);
    let vectors = |rows: usize| Type::new(a.dtype, &[batch, rows]);
    let values = match op {
        LinalgOp::Cholesky => {
            let [factor, code] = call(b, op, &[x], [])[..] else { return None };
            let (row, column) = (b.iota(DType::I32, &[n, n], 0), b.iota(DType::I32, &[n, n], 1));
            let below = b.compare(CompareOp::Ge, row, column);
            let (below, zero) = (b.broadcast(below, &[batch, n, n], &[1, 2]), b.scalar(Scalar::zero(a.dtype)));
            // zeros stay where a factor is lost
            let factor = or_lost(b, factor, code);
            vec![b.select(below, zero, factor)]
        }
        LinalgOp::Lu => {
            let x = turned(b, x);
            let [lu, pivots, _] = call(b, op, &[x], [Type::new(DType::I64, &[batch, m.min(n)])])[..] else {
                return None;
            };
            let one = b.scalar(Scalar::from_i64(DType::I64, 1));
            let pivots = b.binary(BinaryOp::Sub, pivots, one);
            let pivots = b.convert(pivots, DType::I32);
            let order = Kind::Linalg(LinalgOp::PivotsToPermutation);
            vec![turned(b, lu), pivots, b.push(order, &[pivots], Type::new(DType::I32, &[batch, m]))]
        }
        LinalgOp::Qr { .. } => {
            let x = turned(b, x);
            let [r, factors, _] = call(b, op, &[x], [vectors(m.min(n))])[..] else { return None };
            vec![turned(b, r), factors]
        }
        LinalgOp::HouseholderProduct => {
            let factors = b.ty(inputs[1]).shape.last().copied().unwrap_or(0);
            let columns = results[0].shape.last().copied().unwrap_or(0);
            let factors = b.reshape(inputs[1], &[batch, factors]);
            // as many columns as are asked for; what stands in more of them does not count
            let behind = PadConfig { low: 0, high: columns as i64 - n as i64, interior: 0 };
            let pads = Box::new([PadConfig::default(), PadConfig::default(), behind]);
            let zero = b.scalar(Scalar::zero(a.dtype));
            let x = b.push(Kind::Pad(pads), &[x, zero], Type::new(a.dtype, &[batch, m, columns]));
            let x = turned(b, x);
            let q = call(b, op, &[x, factors], [])[0];
            vec![turned(b, q)]
        }
        LinalgOp::Eigh { .. } => {
            let values = Type::new(a.dtype.real(), &[batch, n]);
            let [v, w, code] = call(b, op, &[x], [values])[..] else { return None };
            let v = turned(b, v);
            // what it sees is the conjugate
            let v = if a.dtype.is_complex() { b.unary(UnaryOp::Conj, v) } else { v };
            vec![or_lost(b, v, code), or_lost(b, w, code)]
        }
        LinalgOp::Svd { vectors } => {
            // it wants no fewer rows than columns, and sees the transposition
            let turns = m > n;
            let x = if turns { turned(b, x) } else { x };
            let (long, short) = (m.max(n), m.min(n));
            let whole = vectors && results[if turns { 1 } else { 2 }].shape.iter().rev().take(2).all(|&e| e == long);
            let square = |rows: usize, columns: usize| Type::new(a.dtype, &[batch, rows, columns]);
            let mut types = vec![Type::new(a.dtype.real(), &[batch, short])];
            if vectors {
                types.extend([square(if whole { long } else { short }, long), square(short, short)]);
            }
            let found = call(b, op, &[x], types);
            let (s, code) = (found[1], found[found.len() - 1]);
            let mut all = vec![or_lost(b, s, code)];
            if vectors {
                let of = |b: &mut Builder, v| {
                    let v = if turns { turned(b, v) } else { v };
                    or_lost(b, v, code)
                };
                let (of_long, of_short) = (of(b, found[2]), of(b, found[3]));
                all.extend(if turns { [of_long, of_short] } else { [of_short, of_long] });
            }
            all
        }
        _ => return None,
    };
    Some(values.into_iter().zip(results).map(|(v, ty)| b.reshape(v, &ty.shape)).collect())
}

/// The call: the matrix that it writes over, more results, and a code for each.
fn call(b: &mut Builder, op: LinalgOp, inputs: &[ValueId], more: impl IntoIterator<Item = Type>) -> Vec<ValueId> {
    let matrix = b.ty(inputs[0]).clone();
    let codes = Type::new(DType::I32, &[matrix.shape[0]]);
    let types: Vec<Type> = std::iter::once(matrix).chain(more).chain([codes]).collect();
    b.push_many(Kind::Linalg(op), inputs, &types).to_vec()
}

fn turned(b: &mut Builder, v: ValueId) -> ValueId {
    let ty = b.ty(v);
    let ty = Type::new(ty.dtype, &[ty.shape[0], ty.shape[2], ty.shape[1]]);
    b.push(Kind::Transpose([0, 2, 1].as_slice().into()), &[v], ty)
}

/// NaN where the code of a matrix is not 0, else its elements.
fn or_lost(b: &mut Builder, v: ValueId, code: ValueId) -> ValueId {
    let (ty, zero) = (b.ty(v).clone(), b.scalar(Scalar::from_i64(DType::I32, 0)));
    let good = b.compare(CompareOp::Eq, code, zero);
    let good = b.broadcast(good, &ty.shape, &[0]);
    let imaginary = if ty.dtype.is_complex() { f64::NAN } else { 0.0 };
    let nan = b.scalar(Scalar::from_complex(ty.dtype, f64::NAN, imaginary));
    b.select(good, nan, v)
}
