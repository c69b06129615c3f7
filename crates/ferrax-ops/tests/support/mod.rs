//! Running operations through the CPU engine, and comparing with references.
#![allow(dead_code)]

use ferrax_base::{Arg, Aval, Buffer, DType, Result, Scalar};
use ferrax_cpu::Program;
use ferrax_ir::lower::lower_op;
use ferrax_ir::reference::RefTensor;
use ferrax_ir::{Array, OpRef, Value, Values};
use std::sync::{Arc, Once};

/// Results of an operation computed by its kernel lowering.
pub fn run(op: &OpRef, args: &[RefTensor]) -> Result<Vec<RefTensor>> {
    let avals: Vec<&Aval> = args.iter().map(|a| &a.aval).collect();
    let outs = op.abstract_eval(&avals)?;
    let graph = lower_op(op, &avals, &outs)?;
    let program = Program::compile(Arc::new(graph))?;
    let buffers = args.iter().map(RefTensor::to_buffer).collect::<Result<Vec<Buffer>>>()?;
    let mut given: Vec<Arg<'_>> = buffers.iter().map(Arg::Host).collect();
    let results = program.run(&mut given)?;
    Ok(outs.iter().zip(&results).map(|(a, b)| RefTensor::from_buffer(a, b)).collect())
}

/// Installs an evaluator that runs every operation through the CPU engine.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        ferrax_ir::trace::set_evaluator(|op, args| {
            if let Some(out) = op.eager(op, args) {
                return out;
            }
            let tensors = args.iter().map(tensor).collect::<Result<Vec<_>>>()?;
            run(op, &tensors)?.iter().map(value).collect::<Result<Values>>()
        });
    });
}

/// The elements of a concrete value.
pub fn tensor(v: &Value) -> Result<RefTensor> {
    let array = v.to_array().expect("a concrete value")?;
    let pin = array.pin()?;
    Ok(RefTensor::from_buffer(array.aval(), &pin))
}

/// A concrete value.
pub fn value(t: &RefTensor) -> Result<Value> {
    Ok(Value::Array(Array::new(t.aval.clone(), t.to_buffer()?)))
}

/// A tensor of floats.
pub fn floats(dtype: DType, shape: &[usize], data: impl IntoIterator<Item = f64>) -> RefTensor {
    let aval = Aval::new(dtype, shape);
    let data: Vec<Scalar> = data.into_iter().map(|v| Scalar::from_f64(dtype, v)).collect();
    assert_eq!(data.len(), aval.size());
    RefTensor { aval, data }
}

/// A float64 array value.
pub fn array(shape: &[usize], data: impl IntoIterator<Item = f64>) -> Value {
    value(&floats(DType::F64, shape, data)).expect("an array")
}

/// The elements of a float value.
pub fn data(v: &Value) -> Vec<f64> {
    tensor(v).expect("a tensor").data.iter().map(|s| s.to_f64()).collect()
}

/// Relative error that a kernel may make.
pub fn tolerance(dtype: DType) -> f64 {
    match dtype.real() {
        DType::F64 => 2e-13,
        DType::F32 => 4e-6,
        DType::F16 => 2e-3,
        DType::BF16 => 1.6e-2,
        _ => 0.0,
    }
}

/// Whether two numbers agree: integers exactly, floats within a relative tolerance, NaN with NaN.
pub fn close(got: Scalar, want: Scalar, rtol: f64) -> bool {
    if !want.dtype.is_inexact() {
        return if want.dtype.is_integer() { got.to_i64() == want.to_i64() } else { got.bits == want.bits };
    }
    let part = |g: f64, w: f64, scale: f64| {
        g == w || g.is_nan() && w.is_nan() || (g - w).abs() <= rtol * scale + f64::from(f32::MIN_POSITIVE)
    };
    if want.dtype.is_complex() && want.imag().is_infinite() {
        // At a pole only the infinite part is defined.
        return got.imag() == want.imag();
    }
    let scale = want.to_f64().hypot(want.imag());
    part(got.to_f64(), want.to_f64(), scale) && part(got.imag(), want.imag(), scale)
}

/// Panics with the first elements that differ.
pub fn assert_close(what: &str, got: &RefTensor, want: &RefTensor, args: &[RefTensor], rtol: f64) {
    assert_eq!(got.aval, want.aval, "{what}");
    for (i, (g, w)) in got.data.iter().zip(&want.data).enumerate() {
        if !close(*g, *w, rtol) {
            let operands: Vec<String> =
                args.iter().map(|a| a.data[if a.data.len() == got.data.len() { i } else { 0 }].to_string()).collect();
            panic!("{what}: element {i} of {operands:?} is {g}, not {w} ({})", want.aval);
        }
    }
}
