//! What an instruction set computes, tried before it is used: small ragged products, sorts, reductions and transforms.
//!
//! An instruction set whose results are wrong here, or whose handlers use the stack, is not used: the next narrower one
//! is, with a warning that names it. The trial takes a fraction of a millisecond, once in a process; what it finds would
//! otherwise be wrong numbers. Read next: `simd/isa.rs`, which asks.

use crate::elementwise::kernel::{In, Out};
use crate::library::matmul::{Kernels, Matrix, Product};
use crate::library::sort;
use crate::machine;
use crate::program::Program;
use crate::simd::{Isa, on_trial};
use ferrax_base::{Arg, Buffer, DType, Result, warning};
use ferrax_loops::{BinaryOp, Builder, Graph, ReduceOp, Type, UnaryOp};
use std::sync::Arc;

/// The widest of the candidates, wider ones first, whose results are right; a warning names those that are not used.
pub fn choose(candidates: impl Iterator<Item = Isa>) -> Option<Isa> {
    for isa in candidates {
        if machine::flat(isa) && on_trial(isa, is_right) {
            return Some(isa);
        }
        // A host that makes errors of warnings learns of this one from its results' speed.
        let _ = warning::warn(&format!(
            "the CPU engine does not use {isa:?}: it failed its test at start-up on this machine (FERRAX_CPU_ISA chooses)"
        ));
    }
    None
}

/// Whether small computations of all kinds come out right.
fn is_right() -> bool {
    // Whole and ragged tiles; operands that are packed, with columns for whole, half and fewer vectors.
    let products = [(3, 5, 7), (15, 33, 20), (17, 70, 1025), (29, 40, 300)];
    products.into_iter().all(|sizes| product::<f32>(sizes) && product::<f64>(sizes))
        && [1, 7, 64, 203].into_iter().all(|n| sorted(n).unwrap_or(false))
        && [5, 77, 1030].into_iter().all(|n| regions(n).unwrap_or(false))
}

/// A small whole number that looks random: sums of products of such numbers are exact.
fn number(i: usize) -> f64 {
    ((i * 7919 + 13) % 17) as f64 - 8.0
}

fn product<T: Kernels + From<i8> + Into<f64>>((m, n, k): (usize, usize, usize)) -> bool {
    let values = |count: usize, from: usize| (0..count).map(|i| T::from(number(i + from) as i8)).collect::<Vec<T>>();
    let (a, b, mut c) = (values(m * k, 0), values(k * n, 5), values(m * n, 0));
    let p = Product {
        m,
        n,
        k,
        a: Matrix { ptr: a.as_ptr(), row: k as isize, column: 1 },
        b: Matrix { ptr: b.as_ptr(), row: n as isize, column: 1 },
        c: c.as_mut_ptr(),
    };
    // SAFETY: the strides are those of the arrays.
    let done = unsafe { p.run(false) }.is_ok();
    let right = |i: usize, j: usize| {
        let want: f64 = (0..k).map(|q| number(i * k + q) * number(q * n + j + 5)).sum();
        c[i * n + j].into() == want
    };
    // The last rows and columns are those of ragged tiles.
    done && (0..m).all(|i| right(i, n - 1) && right(i, i % n)) && (0..n).all(|j| right(m - 1, j) && right(j % m, j))
}

fn sorted(n: usize) -> Result<bool> {
    let x: Vec<f32> = (0..n).map(|i| (number(i) * 31.0 + number(i / 17)) as f32).collect();
    let (ty, mut out) = (Type::new(DType::F32, &[n]), vec![0f32; n]);
    // SAFETY: the arrays have the type's elements.
    let (from, to) = unsafe { (In::new(x.as_ptr().cast(), &ty), Out::new(out.as_mut_ptr().cast(), &ty)) };
    sort::sort(0, 1, &[from], &mut [to])?;
    let mut want = x;
    want.sort_unstable_by(f32::total_cmp);
    Ok(out == want)
}

/// Kernels over rows and over columns, and in registers, beside those without the machine: the same bits.
fn regions(n: usize) -> Result<bool> {
    let graph = Arc::new(rows(n));
    let x: Vec<f32> = (0..3 * n).map(|i| (number(i) / 9.0) as f32).collect();
    let x = Buffer::from_slice(&x)?;
    let run = |program: Program| program.run(&mut [Arg::Host(&x)]);
    let (got, want) = (run(Program::compile(graph.clone())?)?, run(Program::compile_plain(graph)?)?);
    Ok(got.iter().zip(&want).all(|(got, want)| got.bytes() == want.bytes()))
}

/// Of three rows: exponentials, their sums and greatest elements, the sums of columns, and sin(sum) of each row.
fn rows(n: usize) -> Graph {
    let mut b = Builder::new([Type::new(DType::F32, &[3, n])]);
    let x = b.params().next().unwrap_or(ferrax_loops::passes::NOTHING);
    let e = b.unary(UnaryOp::Exp, x);
    let y = b.binary(BinaryOp::Mul, e, x);
    let sums = b.reduce(ReduceOp::Sum, y, &[1]);
    let most = b.reduce(ReduceOp::Max, y, &[1]);
    let columns = b.reduce(ReduceOp::Sum, y, &[0]);
    let small = b.unary(UnaryOp::Sin, sums);
    b.finish(&[y, sums, most, columns, small])
}
