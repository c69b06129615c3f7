//! Reductions, running reductions and reductions over windows. Read next: `ferrax-ops/src/reduce.rs`.

use super::args::Truth;
use crate::api::jaxpr::PyClosed;
use crate::dtypes::parse;
use crate::errors::IntoPyResult;
use crate::value::{IndexArg, PyValue, ShapeArg, index, paddings};
use ferrax_base::Result;
use ferrax_base::shape::Tuple;
use ferrax_ir::Value;
use ferrax_ops::{self as ops, Window};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use smallvec::SmallVec;

/// Axes that are reduced, which must lie in the operand and differ.
fn axes(object: &Bound<'_, PyAny>, x: &Value) -> PyResult<SmallVec<[usize; 4]>> {
    let given: SmallVec<[i64; 4]> = object.try_iter()?.map(|o| index(&o?, "an axis")).collect::<PyResult<_>>()?;
    let shown = || crate::shorten::text(object, crate::shorten::SENTENCE);
    if given.iter().enumerate().any(|(i, a)| given[..i].contains(a)) {
        return Err(PyValueError::new_err(format!("duplicate value in 'axes' of reduction: {}", shown())));
    }
    if given.iter().any(|&a| a < 0 || a >= x.rank() as i64) {
        return Err(PyValueError::new_err(format!(
            "reduction axes {} contains out-of-bounds indices for {}.",
            shown(),
            x.aval().long_text()
        )));
    }
    let mut out: SmallVec<[usize; 4]> = given.into_iter().map(|a| a as usize).collect();
    out.sort_unstable();
    Ok(out)
}

/// Declares a reduction over axes.
macro_rules! reduction {
    ($($name:ident),*) => {$(
        #[pyfunction]
        fn $name(operand: PyValue, axes: &Bound<'_, PyAny>) -> PyResult<PyValue> {
            let axes = self::axes(axes, &operand.0)?;
            ops::$name(&operand.0, &axes).py().map(PyValue)
        }
    )*};
}
reduction!(reduce_sum, reduce_prod, reduce_max, reduce_min);

/// Declares a reduction of bits, which rejects other dtypes in its own words.
macro_rules! logical {
    ($($name:ident),*) => {$(
        #[pyfunction]
        fn $name(operand: PyValue, axes: &Bound<'_, PyAny>) -> PyResult<PyValue> {
            let d = operand.0.dtype();
            if !d.is_bool() && !d.is_integer() {
                let text = format!("logical reduction requires operand dtype bool or int, got {d}.");
                return Err(PyTypeError::new_err(text));
            }
            let axes = self::axes(axes, &operand.0)?;
            ops::$name(&operand.0, &axes).py().map(PyValue)
        }
    )*};
}
logical!(reduce_and, reduce_or, reduce_xor);

fn arg_reduction(
    f: fn(&Value, usize, ferrax_base::DType) -> Result<Value>,
    operand: &Value,
    axis: &Bound<'_, PyAny>,
    index_dtype: &Bound<'_, PyAny>,
) -> PyResult<PyValue> {
    let at = index(axis, "axis")?;
    let Some(at) = usize::try_from(at).ok().filter(|&a| a < operand.rank()) else {
        let text = format!("Invalid axis {at} for operand shape {}", Tuple(operand.shape()));
        return Err(PyValueError::new_err(text));
    };
    let dtype = parse(index_dtype, "argmax")?.canonical(axis.py(), Some(""))?;
    f(operand, at, dtype).py().map(PyValue)
}

#[pyfunction]
fn argmax(operand: PyValue, axis: &Bound<'_, PyAny>, index_dtype: &Bound<'_, PyAny>) -> PyResult<PyValue> {
    arg_reduction(ops::argmax, &operand.0, axis, index_dtype)
}

#[pyfunction]
fn argmin(operand: PyValue, axis: &Bound<'_, PyAny>, index_dtype: &Bound<'_, PyAny>) -> PyResult<PyValue> {
    arg_reduction(ops::argmin, &operand.0, axis, index_dtype)
}

/// Operands reduced with a traced function of scalars.
#[pyfunction]
fn reduce(
    operands: Vec<PyValue>,
    init_values: Vec<PyValue>,
    body: &PyClosed,
    dimensions: &Bound<'_, PyAny>,
) -> PyResult<Vec<PyValue>> {
    if !body.captured.is_empty() {
        let text = "Reduction computations can't close over Tracers. Please open an issue if you need this.";
        return Err(pyo3::exceptions::PyNotImplementedError::new_err(text));
    }
    let Some(first) = operands.first() else {
        return Err(PyValueError::new_err("reduce requires at least one operand"));
    };
    let axes = self::axes(dimensions, &first.0)?;
    let strip = |vs: Vec<PyValue>| vs.into_iter().map(|v| v.0).collect::<Vec<Value>>();
    let outs = ops::reduce(&strip(operands), &strip(init_values), body.jaxpr().clone(), &axes).py()?;
    Ok(outs.into_iter().map(PyValue).collect())
}

/// Declares a running reduction.
macro_rules! cumulative {
    ($($name:ident),*) => {$(
        #[pyfunction]
        fn $name(operand: PyValue, axis: i64, reverse: Truth) -> PyResult<PyValue> {
            let Ok(axis) = usize::try_from(axis) else {
                return Err(PyValueError::new_err("XLA operations do not allow negative axes"));
            };
            ops::$name(&operand.0, axis, reverse.0).py().map(PyValue)
        }
    )*};
}
cumulative!(cumsum, cumprod, cummax, cummin, cumlogsumexp);

/// Where windows lie, from the arguments of `reduce_window`.
fn window(
    dimensions: ShapeArg,
    strides: ShapeArg,
    padding: Vec<(IndexArg, IndexArg)>,
    base_dilation: ShapeArg,
    window_dilation: ShapeArg,
) -> Window {
    Window {
        base_dilation: base_dilation.0,
        padding: paddings(&padding).collect(),
        window_dilation: window_dilation.0,
        window_dimensions: dimensions.0,
        window_strides: strides.0,
    }
}

/// Windows reduced by a monoid: `"sum"`, `"max"` or `"min"`.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn reduce_window_monoid(
    operand: PyValue,
    name: &str,
    dimensions: ShapeArg,
    strides: ShapeArg,
    padding: Vec<(IndexArg, IndexArg)>,
    base_dilation: ShapeArg,
    window_dilation: ShapeArg,
) -> PyResult<PyValue> {
    let w = window(dimensions, strides, padding, base_dilation, window_dilation);
    match name {
        "sum" => ops::reduce_window_sum(&operand.0, w),
        "max" => ops::reduce_window_max(&operand.0, w),
        _ => ops::reduce_window_min(&operand.0, w),
    }
    .py()
    .map(PyValue)
}

/// Windows reduced with a traced function of scalars.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn reduce_window(
    operands: Vec<PyValue>,
    init_values: Vec<PyValue>,
    body: &PyClosed,
    dimensions: ShapeArg,
    strides: ShapeArg,
    padding: Vec<(IndexArg, IndexArg)>,
    base_dilation: ShapeArg,
    window_dilation: ShapeArg,
) -> PyResult<Vec<PyValue>> {
    if !body.captured.is_empty() {
        let text = "Reduction computations can't close over Tracers.";
        return Err(pyo3::exceptions::PyNotImplementedError::new_err(text));
    }
    let w = window(dimensions, strides, padding, base_dilation, window_dilation);
    let strip = |vs: Vec<PyValue>| vs.into_iter().map(|v| v.0).collect::<Vec<Value>>();
    let outs = ops::reduce_window(&strip(operands), &strip(init_values), body.jaxpr().clone(), w).py()?;
    Ok(outs.into_iter().map(PyValue).collect())
}

/// Adds the functions of this family.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(reduce_sum, m)?)?;
    m.add_function(wrap_pyfunction!(reduce_prod, m)?)?;
    m.add_function(wrap_pyfunction!(reduce_max, m)?)?;
    m.add_function(wrap_pyfunction!(reduce_min, m)?)?;
    m.add_function(wrap_pyfunction!(reduce_and, m)?)?;
    m.add_function(wrap_pyfunction!(reduce_or, m)?)?;
    m.add_function(wrap_pyfunction!(reduce_xor, m)?)?;
    m.add_function(wrap_pyfunction!(argmax, m)?)?;
    m.add_function(wrap_pyfunction!(argmin, m)?)?;
    m.add_function(wrap_pyfunction!(reduce, m)?)?;
    m.add_function(wrap_pyfunction!(cumsum, m)?)?;
    m.add_function(wrap_pyfunction!(cumprod, m)?)?;
    m.add_function(wrap_pyfunction!(cummax, m)?)?;
    m.add_function(wrap_pyfunction!(cummin, m)?)?;
    m.add_function(wrap_pyfunction!(cumlogsumexp, m)?)?;
    m.add_function(wrap_pyfunction!(reduce_window_monoid, m)?)?;
    m.add_function(wrap_pyfunction!(reduce_window, m)?)
}
