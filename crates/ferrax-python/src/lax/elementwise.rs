//! Elementwise functions: callables without a Python frame for those of one and two operands, plain functions
//! for the rest. Read next: `ferrax-ops/src/elementwise`.

use crate::dtypes::parse;
use crate::errors::IntoPyResult;
use crate::fastcall::{self, Args, FastCall, Params, Signature};
use crate::value::{PyValue, value_of};
use crate::warning;
use ferrax_base::{Aval, Result};
use ferrax_ir::Value;
use ferrax_ops as ops;
use ferrax_ops::elementwise::functions::{self, Call, Function};
use pyo3::exceptions::{PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

/// The error of an argument that no operation takes.
#[cold]
fn problem(name: &str, object: &Bound<'_, PyAny>, position: usize) -> PyErr {
    PyTypeError::new_err(format!(
        "Error interpreting argument to {name} as a JAX value. The problematic value is of type {} and was passed to \
         {name} at position {position}.",
        object.get_type()
    ))
}

/// The value of an argument; the error names the function and the position.
#[inline]
pub fn operand(name: &str, object: &Bound<'_, PyAny>, position: usize) -> PyResult<Value> {
    match value_of(object)? {
        Some(v) => Ok(v),
        None => Err(problem(name, object, position)),
    }
}

/// A function of one operand.
struct Unary {
    f: fn(&Value) -> Result<Value>,
    params: Params,
    name: &'static str,
}

impl FastCall for Unary {
    fn call<'py>(&self, py: Python<'py>, args: Args<'_, 'py>) -> PyResult<Py<PyAny>> {
        let x = if args.len() == 1 && args.kwlen() == 0 {
            args.at(0)
        } else {
            let [x, accuracy] = self.params.parse::<2>(&args)?;
            if let Some(a) = accuracy.filter(|a| !a.is_none()) {
                check_accuracy(&a)?;
            }
            match x {
                Some(x) => x,
                None => return Ok(py.None()),
            }
        };
        crate::array::wrap(py, (self.f)(&operand(self.name, &x, 0)?).py()?).map(Bound::unbind)
    }
}

/// Accuracies are hints, which the engine meets with one implementation for all; others are errors.
fn check_accuracy(accuracy: &Bound<'_, PyAny>) -> PyResult<()> {
    let class = accuracy.get_type().name()?.to_string();
    if class == "AccuracyMode" || class == "Tolerance" {
        return Ok(());
    }
    Err(PyNotImplementedError::new_err(format!("Accuracy {} not supported", accuracy.str()?)))
}

/// A function of two operands.
struct Binary {
    f: fn(&Value, &Value) -> Result<Value>,
    params: Params,
    name: &'static str,
}

impl FastCall for Binary {
    fn call<'py>(&self, py: Python<'py>, args: Args<'_, 'py>) -> PyResult<Py<PyAny>> {
        let (x, y) = if args.len() == 2 && args.kwlen() == 0 {
            (args.at(0), args.at(1))
        } else {
            match self.params.parse::<2>(&args)? {
                [Some(x), Some(y)] => (x, y),
                _ => return Ok(py.None()),
            }
        };
        let (x, y) = (operand(self.name, &x, 0)?, operand(self.name, &y, 1)?);
        crate::array::wrap(py, (self.f)(&x, &y).py()?).map(Bound::unbind)
    }
}

/// `x * y`, both converted to `out_dtype` first when that is given.
struct Mul;

impl FastCall for Mul {
    fn call<'py>(&self, py: Python<'py>, args: Args<'_, 'py>) -> PyResult<Py<PyAny>> {
        const PARAMS: Params = Params::new("mul", &["x", "y", "out_dtype"], 2, 2);
        let [x, y, out_dtype] = PARAMS.parse::<3>(&args)?;
        let (Some(x), Some(y)) = (x, y) else { return Ok(py.None()) };
        let (mut x, mut y) = (operand("mul", &x, 0)?, operand("mul", &y, 1)?);
        if let Some(d) = out_dtype.filter(|d| !d.is_none()) {
            let d = parse(&d, "mul")?.canonical(py, Some("mul"))?;
            (x, y) = (ops::convert_element_type(&x, d).py()?, ops::convert_element_type(&y, d).py()?);
        }
        crate::array::wrap(py, ops::mul(&x, &y).py()?).map(Bound::unbind)
    }
}

#[pyfunction]
fn round(x: PyValue, rounding_method: i64) -> PyResult<PyValue> {
    let method = match rounding_method {
        0 => ops::RoundingMethod::AwayFromZero,
        1 => ops::RoundingMethod::ToNearestEven,
        other => return Err(PyValueError::new_err(format!("{other} is not a valid RoundingMethod"))),
    };
    ops::round(&x.0, method).py().map(PyValue)
}

#[pyfunction]
fn integer_pow(x: PyValue, y: i32) -> PyResult<PyValue> {
    ops::integer_pow(&x.0, y).py().map(PyValue)
}

/// A conversion with a weak type; `dtype` `None` keeps the operand's.
#[pyfunction]
#[pyo3(signature = (operand, dtype, weak_type=false))]
fn convert(py: Python<'_>, operand: PyValue, dtype: Option<&Bound<'_, PyAny>>, weak_type: bool) -> PyResult<PyValue> {
    let dtype = match dtype {
        Some(d) => parse(d, "convert_element_type")?.canonical(py, Some("convert_element_type"))?,
        None => operand.0.dtype(),
    };
    if warning::is_lossy(operand.0.dtype(), dtype) {
        warning::imaginary_parts(py)?;
    }
    ops::convert_weak(&operand.0, dtype, weak_type).py().map(PyValue)
}

#[pyfunction]
fn bitcast_convert_type(py: Python<'_>, operand: PyValue, new_dtype: &Bound<'_, PyAny>) -> PyResult<PyValue> {
    let dtype = parse(new_dtype, "bitcast_convert_type")?.canonical(py, Some("bitcast_convert_type"))?;
    ops::bitcast_convert_type(&operand.0, dtype).py().map(PyValue)
}

#[pyfunction]
fn reduce_precision(operand: PyValue, exponent_bits: i64, mantissa_bits: i64) -> PyResult<PyValue> {
    if exponent_bits < 1 {
        let text = format!("reduce_precision: exponent_bits must be positive; got {exponent_bits}");
        return Err(PyValueError::new_err(text));
    }
    if mantissa_bits < 0 {
        let text = format!("reduce_precision: mantissa_bits must be non-negative; got {mantissa_bits}");
        return Err(PyValueError::new_err(text));
    }
    ops::reduce_precision(&operand.0, exponent_bits as u32, mantissa_bits as u32).py().map(PyValue)
}

/// The primitive's error for cases of different shapes, which binding it would stretch when some are constants.
fn same_cases(which: &Value, cases: &[Value]) -> PyResult<()> {
    if cases.iter().all(|c| c.shape() == cases[0].shape()) {
        return Ok(());
    }
    let avals: Vec<Aval> = std::iter::once(which).chain(cases).map(Value::aval).collect();
    let avals: Vec<&Aval> = avals.iter().collect();
    ops::SELECT_N.op().abstract_eval(&avals).py().map(drop)
}

#[pyfunction]
#[pyo3(signature = (which, *cases))]
fn select_n(which: PyValue, cases: Vec<PyValue>) -> PyResult<PyValue> {
    if cases.is_empty() {
        return Err(PyValueError::new_err("select_n() must have at least one case"));
    }
    let cases: Vec<Value> = cases.into_iter().map(|v| v.0).collect();
    same_cases(&which.0, &cases)?;
    ops::select_n(&which.0, &cases).py().map(PyValue)
}

#[pyfunction]
fn select(pred: PyValue, on_true: PyValue, on_false: PyValue) -> PyResult<PyValue> {
    let cases = [on_false.0, on_true.0];
    same_cases(&pred.0, &cases)?;
    ops::select_n(&pred.0, &cases).py().map(PyValue)
}

#[pyfunction]
fn clamp(min: PyValue, x: PyValue, max: PyValue) -> PyResult<PyValue> {
    ops::clamp(&min.0, &x.0, &max.0).py().map(PyValue)
}

#[pyfunction]
fn stop_gradient(x: PyValue) -> PyResult<PyValue> {
    ops::stop_gradient(&x.0).py().map(PyValue)
}

#[pyfunction]
fn optimization_barrier(operands: Vec<PyValue>) -> PyResult<Vec<PyValue>> {
    let values: Vec<Value> = operands.into_iter().map(|v| v.0).collect();
    Ok(ops::optimization_barrier(&values).py()?.into_iter().map(PyValue).collect())
}

/// The operand under a name, for policies of `checkpoint`.
#[pyfunction]
fn checkpoint_name(x: PyValue, name: &str) -> PyResult<PyValue> {
    ops::name(&x.0, name).py().map(PyValue)
}

/// The callable of a function.
fn callable(py: Python<'_>, function: &'static Function) -> PyResult<Py<PyAny>> {
    let name = function.name;
    let (doc, signature) = (function.documentation(), function.signature());
    let signature = Signature::Text(&signature);
    match function.call {
        Call::One(f) => {
            let names = if function.approximate { &["x", "accuracy"][..] } else { function.operands };
            let params = Params::new(name, names, 1, 1);
            fastcall::new_callable(py, Unary { f, params, name }, name, &doc, signature)
        }
        Call::Two(_) if function.out_dtype => fastcall::new_callable(py, Mul, name, &doc, signature),
        Call::Two(f) => {
            let params = Params::new(name, function.operands, 2, 2);
            let params = if function.positional_only { params.positional_only(2) } else { params };
            fastcall::new_callable(py, Binary { f, params, name }, name, &doc, signature)
        }
    }
}

/// Adds the functions of this family.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    for function in functions::all() {
        let callable = callable(py, function)?;
        callable.bind(py).setattr(intern!(py, "__module__"), "ferrax.lax")?;
        m.add(function.name, callable)?;
    }
    let copy = Unary { f: ops::copy, params: Params::new("copy", &["x"], 1, 1), name: "copy" };
    m.add("copy", fastcall::new_callable(py, copy, "copy", "", Signature::Text("(x)"))?)?;
    m.add_function(wrap_pyfunction!(round, m)?)?;
    m.add_function(wrap_pyfunction!(integer_pow, m)?)?;
    m.add_function(wrap_pyfunction!(convert, m)?)?;
    m.add_function(wrap_pyfunction!(bitcast_convert_type, m)?)?;
    m.add_function(wrap_pyfunction!(reduce_precision, m)?)?;
    m.add_function(wrap_pyfunction!(select_n, m)?)?;
    m.add_function(wrap_pyfunction!(select, m)?)?;
    m.add_function(wrap_pyfunction!(clamp, m)?)?;
    m.add_function(wrap_pyfunction!(stop_gradient, m)?)?;
    m.add_function(wrap_pyfunction!(checkpoint_name, m)?)?;
    m.add_function(wrap_pyfunction!(optimization_barrier, m)?)
}
