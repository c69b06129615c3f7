//! What results are compared with, and how near they must be.

#[path = "../common/mod.rs"]
#[allow(unexpected_cfgs, reason = "it asks for a feature of the crate that it belongs to")]
pub mod common;

use super::FLUSHES;
use common::{Array, same};
use ferrax_base::{Arg, Buffer, DType, Result, Scalar};
use ferrax_cpu::Program;
use ferrax_loops::{Builder, Graph, Kind, Type};
use std::sync::Arc;

/// The results of a graph on the CPU engine.
pub fn on_cpu(graph: &Arc<Graph>, args: &[&Array]) -> Result<Vec<Array>> {
    let program = Program::compile(graph.clone())?;
    let buffers: Vec<Buffer> = args.iter().map(|a| a.buffer()).collect();
    let mut args: Vec<Arg<'_>> = buffers.iter().map(Arg::Host).collect();
    let results = program.run(&mut args)?;
    let types = graph.outputs.iter().map(|&v| graph.ty(v));
    Ok(results.iter().zip(types).map(|(r, ty)| Array::of(ty, r)).collect())
}

/// How near results must be.
#[derive(Clone, Copy, Debug)]
pub enum Near {
    /// The same bits, or NaN in the same parts; where an engine has no subnormal numbers, zero for one.
    Same,
    /// As `Same`, and zeros of any sign.
    Zeros,
    /// So many units in the last place; results below the smallest normal number may be zero.
    Ulps(f64),
    /// So many units in the last place of the larger part of a complex number.
    Norm(f64),
    /// This far from each other at most.
    Far(f64),
}

/// A unit in the last place of a number of a dtype.
fn unit(d: DType, x: f64) -> f64 {
    let (digits, least) = match d.real() {
        DType::F16 => (10, -14),
        DType::BF16 => (7, -126),
        DType::F32 => (23, -126),
        DType::F64 => (52, -1022),
        DType::F8E4M3FN | DType::F8E4M3 => (3, -6),
        DType::F8E5M2 => (2, -14),
        other => panic!("units of {other}"),
    };
    let exponent = if x == 0.0 { least } else { (x.abs().log2().floor() as i32).max(least) };
    2f64.powi(exponent.max(-1022)) * 2f64.powi(-digits)
}

fn part_near(d: DType, got: f64, want: f64, most: f64, scale: f64) -> bool {
    if got.is_nan() || want.is_nan() || got.is_infinite() || want.is_infinite() {
        let largest = if d.real() == DType::F64 { f64::MAX } else { f64::from(f32::MAX) };
        return got == want || (got.is_nan() && want.is_nan()) || {
            // An overflow of the one where the other is just below it.
            let finite = if got.is_finite() { got } else { want };
            got.is_nan() == want.is_nan() && finite.abs() > largest * (1.0 - 1e-5) && got * want > 0.0
        };
    }
    let least = if d.real() == DType::F64 { f64::MIN_POSITIVE } else { f64::from(f32::MIN_POSITIVE) };
    (got - want).abs() <= most * unit(d, scale) || (FLUSHES && got.abs() < least && want.abs() < least)
}

/// Whether a number is the wanted one, or a zero in place of a subnormal one.
fn flushed(d: DType, got: f64, want: f64) -> bool {
    let least = if d.real() == DType::F64 { f64::MIN_POSITIVE } else { f64::from(f32::MIN_POSITIVE) };
    let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
    d.is_inexact() && (same || (got == 0.0 && want.abs() < least && want != 0.0))
}

/// Whether a result is near enough.
pub fn near(how: Near, got: Scalar, want: Scalar) -> bool {
    let (g, w) = ((got.to_f64(), got.imag()), (want.to_f64(), want.imag()));
    same(got, want)
        || match how {
            Near::Same => FLUSHES && flushed(got.dtype, g.0, w.0) && flushed(got.dtype, g.1, w.1),
            Near::Zeros => want.dtype.is_inexact() && g == w,
            Near::Ulps(most) => part_near(got.dtype, g.0, w.0, most, w.0) && part_near(got.dtype, g.1, w.1, most, w.1),
            // What becomes of infinite complex numbers is the compiler's.
            Near::Norm(_) if !w.0.is_finite() || !w.1.is_finite() => !g.0.is_finite() || !g.1.is_finite(),
            Near::Norm(most) => {
                let scale = w.0.abs().max(w.1.abs());
                part_near(got.dtype, g.0, w.0, most, scale) && part_near(got.dtype, g.1, w.1, most, scale)
            }
            Near::Far(most) => {
                let far = |g: f64, w: f64| g == w || (g.is_nan() && w.is_nan()) || (g - w).abs() <= most;
                far(g.0, w.0) && far(g.1, w.1)
            }
        }
}

/// A node to compare: the places of its operands among the arguments, and its results.
pub struct Case {
    pub what: String,
    pub kind: Kind,
    pub inputs: Vec<usize>,
    pub results: Vec<Type>,
    pub near: Near,
}

/// What is wrong with an array's elements, by the first and the number of them.
pub fn difference(how: Near, got: &Array, want: &Array, args: &[&Array]) -> Option<String> {
    assert_eq!(got.ty, want.ty);
    let pairs = got.data.iter().zip(&want.data).enumerate();
    let bad: Vec<_> = pairs.filter(|(_, (g, w))| !near(how, **g, **w)).collect();
    let shown = bad.iter().take(4).map(|(i, (g, w))| {
        let of = args.iter().filter(|a| a.data.len() == got.data.len()).map(|a| a.data[*i].to_string());
        format!("at {i} of ({}): got {g}, want {w}", of.collect::<Vec<_>>().join(", "))
    });
    (!bad.is_empty())
        .then(|| format!("{} of {} differ: {}", bad.len(), got.data.len(), shown.collect::<Vec<_>>().join("; ")))
}

/// A node alone on the CPU engine.
pub fn alone(case: &Case, inputs: &[&Array]) -> Vec<Array> {
    let mut builder = Builder::new(inputs.iter().map(|a| a.ty.clone()));
    let params: Vec<_> = builder.params().collect();
    let outputs = builder.push_many(case.kind.clone(), &params, &case.results);
    let graph = Arc::new(builder.finish(&outputs));
    on_cpu(&graph, inputs).unwrap_or_else(|e| panic!("{}: {e}", case.what))
}

/// Whether the CPU engine has an operation on a dtype.
pub fn has_unary(op: ferrax_loops::UnaryOp, d: DType) -> bool {
    let x = Buffer::from_bytes(&[0; 16]).expect("a buffer");
    ferrax_cpu::eager::unary(op, d, &x, 1).is_ok()
}

/// Whether the CPU engine has an operation on a dtype.
pub fn has_binary(op: ferrax_loops::BinaryOp, d: DType) -> bool {
    let x = Buffer::from_bytes(&[0; 16]).expect("a buffer");
    ferrax_cpu::eager::binary(op, d, (&x, false), (&x, false), 1).is_ok()
}
