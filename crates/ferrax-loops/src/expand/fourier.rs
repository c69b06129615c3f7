//! Fourier transforms as products with small matrices of roots of unity, for engines that have no transform.
//!
//! A length a·b is transformed in parts (J. W. Cooley and J. W. Tukey, "An algorithm for the machine calculation of complex
//! Fourier series", 1965): lines of length a, factors between, lines of length b. Short lengths, and primes that are not
//! long, are a product with the whole matrix; a long prime is a convolution with a chirp (L. I. Bluestein, "A linear
//! filtering approach to the computation of discrete Fourier transform", 1970) by transforms of a power of two. Roots are
//! computed in double precision, tables of them on the host where they are small.

use super::code::{Code, X};
use crate::fft::FftKind;
use crate::kind::Bytes;
use crate::{DotDims, Graph, Kind, Type, UnaryOp};
use ferrax_base::{DType, Result, Scalar};
use smallvec::smallvec;
use std::f64::consts::TAU;

/// Lengths that are one product, factors that lengths are taken apart by, and primes that are one product.
const WHOLE: usize = 32;
const FACTOR: usize = 16;
const PRIME: usize = 256;
/// Roots of a table.
const TABLE: usize = 1 << 16;

/// The graph of a transform over the last `axes` axes of an operand.
pub fn transform(kind: FftKind, axes: usize, operand: &Type, result: &Type) -> Result<Graph> {
    super::code::graph(std::slice::from_ref(operand), |x| {
        let rank = operand.shape.len();
        let forward = matches!(kind, FftKind::Forward | FftKind::Real);
        let mut y = if kind == FftKind::Real { x[0].to(result.dtype) } else { x[0] };
        // The halved axis comes first where it is made, and last where it is made whole.
        for axis in (rank - axes..rank).rev() {
            if axis + 1 == rank && kind == FftKind::RealInverse {
                continue;
            }
            y = along(y, axis, forward);
            if axis + 1 == rank && kind == FftKind::Real {
                y = y.part(axis, 0, result.shape[axis]);
            }
        }
        if kind == FftKind::RealInverse {
            y = along(whole(y, result.shape[rank - 1]), rank - 1, forward).re();
        }
        Ok(vec![if forward { y } else { divided(y, axes) }])
    })
}

/// The same for an engine whose own transforms divide by nothing, which are the nodes of that kind in it.
pub fn divided_transform(kind: FftKind, axes: usize, operand: &Type, result: &Type) -> Result<Graph> {
    super::code::graph(std::slice::from_ref(operand), |x| {
        let y = x[0].code.node(Kind::Fft { kind, axes }, x, result.clone());
        Ok(vec![if matches!(kind, FftKind::Forward | FftKind::Real) { y } else { divided(y, axes) }])
    })
}

/// A result of an inverse transform, divided by the number of its elements.
fn divided(y: X<'_>, axes: usize) -> X<'_> {
    let shape = y.shape();
    let count: usize = shape[shape.len() - axes..].iter().product();
    let count = count.max(1) as f64;
    if y.dtype().is_complex() { (y.re() / count).with_im(y.im() / count) } else { y / count }
}

/// All `n` elements of the last axis of a Hermitian line, of which the first n / 2 + 1 are there.
fn whole(half: X<'_>, n: usize) -> X<'_> {
    let last = half.shape().len() - 1;
    let mirrored = half.part(last, 1, n.div_ceil(2).max(1));
    let reversed = mirrored.code.node(Kind::Rev(smallvec![last]), &[mirrored], mirrored.ty());
    half.code.concat(&[half.part(last, 0, n / 2 + 1), reversed.conj()], last)
}

/// The unscaled transform along one axis.
fn along(x: X<'_>, axis: usize, forward: bool) -> X<'_> {
    let shape = x.shape();
    let (n, inner) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
    let rows: usize = shape.iter().product::<usize>() / n.max(1);
    if n <= 1 || rows == 0 {
        return x;
    }
    if inner == 1 {
        return line(x.reshape(&[rows, n]), forward).reshape(&shape);
    }
    let outer = rows / inner;
    let lines = x.reshape(&[outer, n, inner]).t().reshape(&[rows, n]);
    line(lines, forward).reshape(&[outer, inner, n]).t().reshape(&shape)
}

/// The transform of each row.
fn line(x: X<'_>, forward: bool) -> X<'_> {
    let n = x.shape()[1];
    if n <= WHOLE {
        return product(x, 1, n, forward);
    }
    let Some(a) = (2..=FACTOR).rev().find(|a| n.is_multiple_of(*a)) else {
        return if n <= PRIME { product(x, 1, n, forward) } else { chirped(x, forward) };
    };
    let (rows, b) = (x.shape()[0], n / a);
    // Element j₁·b + j₂ counts to k₁ + a·k₂ as w(a)^(j₁k₁) · w(n)^(j₂k₁) · w(b)^(j₂k₂).
    let first = product(x.reshape(&[rows, a, b]), 1, a, forward);
    let turned = first * roots(x.code, x.dtype(), [b, a], n, forward).axis(0);
    let second = line(turned.t().reshape(&[rows * a, b]), forward);
    second.reshape(&[rows, a, b]).t().reshape(&[rows, n])
}

/// The product of an axis of `n` elements with the matrix of roots, which becomes the last one.
fn product(x: X<'_>, axis: usize, n: usize, forward: bool) -> X<'_> {
    let matrix = roots(x.code, x.dtype(), [n, n], n, forward);
    let mut shape = x.shape();
    shape.remove(axis);
    shape.push(n);
    let dims = DotDims {
        lhs_contract: smallvec![axis],
        rhs_contract: smallvec![0],
        lhs_batch: smallvec![],
        rhs_batch: smallvec![],
        ..DotDims::default()
    };
    x.code.node(Kind::Dot(Box::new(dims)), &[x, matrix], Type { dtype: x.dtype(), shape })
}

/// The transform of rows of any length, as a convolution by transforms of a power of two.
fn chirped(x: X<'_>, forward: bool) -> X<'_> {
    let (n, d) = (x.shape()[1], x.dtype());
    let m = (2 * n - 1).next_power_of_two();
    let zero = Scalar::zero(d);
    let chirp = squares(x.code, d, n, forward);
    let filter = chirp.conj();
    // Elements at distances -(n - 1) to n - 1, those below 0 at the end.
    let mirrored = filter.part(1, 1, n);
    let mirrored = x.code.node(Kind::Rev(smallvec![1]), &[mirrored], mirrored.ty());
    let filter = x.code.concat(&[filter.pad(1, 0, (m - 2 * n + 1) as i64, zero), mirrored], 1);
    let product = line((x * chirp).pad(1, 0, (m - n) as i64, zero), true) * line(filter, true);
    line(product, false).part(1, 0, n) * chirp * (1.0 / m as f64)
}

/// Roots of unity: of degree `n`, to the power of the product of both indices.
fn roots(code: &Code, d: DType, [rows, columns]: [usize; 2], n: usize, forward: bool) -> X<'_> {
    if rows * columns <= TABLE {
        let powers = (0..rows).flat_map(|j| (0..columns).map(move |k| j * k % n));
        return table(code, d, [rows, columns], powers, n, forward);
    }
    let index = |axis| code.iota(&[rows, columns], axis).to(DType::I64);
    powers_of(index(0) * index(1), d, n, forward)
}

/// Roots of degree 2n to the power of the square of the index.
fn squares(code: &Code, d: DType, n: usize, forward: bool) -> X<'_> {
    if n <= TABLE {
        return table(code, d, [1, n], (0..n).map(|j| j * j % (2 * n)), 2 * n, forward);
    }
    let index = code.iota(&[1, n], 1).to(DType::I64);
    powers_of(index * index, d, 2 * n, forward)
}

fn powers_of(power: X<'_>, d: DType, n: usize, forward: bool) -> X<'_> {
    let power = power.bin(crate::BinaryOp::Rem, n as i64).to(DType::F64);
    let angle = power * (if forward { -TAU } else { TAU } / n as f64);
    angle.un(UnaryOp::Cos).to(d.real()).with_im(angle.un(UnaryOp::Sin).to(d.real()))
}

fn table(
    code: &Code,
    d: DType,
    shape: [usize; 2],
    powers: impl Iterator<Item = usize>,
    n: usize,
    forward: bool,
) -> X<'_> {
    let mut bytes = Vec::new();
    for power in powers {
        let (re, im) = root(power, n);
        let im = if forward { -im } else { im };
        if d == DType::C64 {
            [re as f32, im as f32].iter().for_each(|x| bytes.extend(x.to_ne_bytes()));
        } else {
            [re, im].iter().for_each(|x| bytes.extend(x.to_ne_bytes()));
        }
    }
    code.node(Kind::Dense(Bytes::of(bytes)), &[], Type::new(d, &shape))
}

/// Cosine and sine of the `power`-th of `n` parts of a turn, exact for quarters.
fn root(power: usize, n: usize) -> (f64, f64) {
    let (quarter, rest) = (4 * power / n, 4 * power % n);
    let (sin, cos) = (TAU * (rest as f64 / (4 * n) as f64)).sin_cos();
    match quarter {
        0 => (cos, sin),
        1 => (-sin, cos),
        2 => (-cos, -sin),
        _ => (sin, -cos),
    }
}
