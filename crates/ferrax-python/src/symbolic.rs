//! Symbolic sizes across the boundary: the objects of `ferrax._symbolic` and their codes in the core.
//!
//! An object is made with its code and kept here for the life of the process, as programs hold codes and nothing else.
//! Read next: `ferrax-base/src/symbolic.rs`.

use crate::errors::{IntoPyResult, carry, raise};
use crate::value::PyValue;
use ferrax_base::fork::Lock;
use ferrax_base::symbolic::{self, Algebra, Operation};
use ferrax_base::{Result, Shape};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};

/// The objects by the numbers of their codes.
static SIZES: Lock<Vec<Option<Py<PyAny>>>> = Lock::new(Vec::new());
static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// A new size: what a function makes of the code that it is given.
#[pyfunction]
fn symbolic_size<'py>(make: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = make.py();
    symbolic::set_algebra(Box::new(Objects));
    let (code, number) = symbolic::new_code();
    let size = make.call1((code,))?;
    CLASS.get_or_init(py, || size.get_type().unbind());
    let mut sizes = SIZES.lock();
    if sizes.len() <= number {
        sizes.resize_with(number + 1, || None);
    }
    sizes[number] = Some(size.clone().unbind());
    Ok(size)
}

/// A size as Python sees it: an integer, or the object of a code.
pub fn size_object(py: Python<'_>, size: usize) -> PyResult<Bound<'_, PyAny>> {
    match symbolic::number_of(size as i64) {
        Some(number) if symbolic::is_symbolic(size) => {
            let found = SIZES.lock().get(number).and_then(|s| s.as_ref().map(|s| s.clone_ref(py)));
            found
                .map(|s| s.into_bound(py))
                .ok_or_else(|| pyo3::exceptions::PyRuntimeError::new_err("a symbolic size is used before it is made"))
        }
        _ => Ok(size.into_pyobject(py)?.into_any()),
    }
}

/// A shape as a tuple.
#[inline]
pub fn shape_tuple<'py>(py: Python<'py>, shape: &[usize]) -> PyResult<Bound<'py, PyTuple>> {
    if !symbolic::any(shape) {
        return PyTuple::new(py, shape);
    }
    let sizes: Vec<_> = shape.iter().map(|&d| size_object(py, d)).collect::<PyResult<_>>()?;
    PyTuple::new(py, sizes)
}

/// A number, or a tuple with numbers in it, with objects in place of the codes.
pub fn with_sizes(literal: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let py = literal.py();
    if let Ok(tuple) = literal.cast::<PyTuple>() {
        let items: Vec<_> = tuple.iter().map(with_sizes).collect::<PyResult<_>>()?;
        return Ok(PyTuple::new(py, items)?.into_any());
    }
    match literal.extract::<i64>() {
        Ok(n) if symbolic::is_symbolic(n as usize) => size_object(py, n as usize),
        _ => Ok(literal),
    }
}

/// The code of a symbolic size; `None` for other objects.
#[inline]
pub fn code_of(object: &Bound<'_, PyAny>) -> Option<i64> {
    let py = object.py();
    let class = CLASS.get(py)?;
    if !object.get_type().is(class) {
        return None;
    }
    object.getattr(intern!(py, "_code")).ok()?.extract().ok()
}

/// The expressions are Python's objects.
struct Objects;

impl Objects {
    fn number(py: Python<'_>, n: i64) -> PyResult<Bound<'_, PyAny>> {
        if n >= 0 && !symbolic::is_known(n as usize) {
            return Err(raise(symbolic::unsupported("an operation of this program")));
        }
        if symbolic::is_symbolic(n as usize) {
            size_object(py, n as usize)
        } else {
            Ok(n.into_pyobject(py)?.into_any())
        }
    }

    fn calculate(operation: Operation, a: i64, b: i64) -> PyResult<i64> {
        Python::attach(|py| {
            let (x, y) = (Objects::number(py, a)?, Objects::number(py, b)?);
            let larger = |name: &str| py.import("ferrax.core")?.call_method1(name, (&x, &y));
            let out = match operation {
                Operation::Add => x.add(&y),
                Operation::Sub => x.sub(&y),
                Operation::Mul => x.mul(&y),
                Operation::Div => x.floor_div(&y),
                Operation::Rem => x.rem(&y),
                Operation::Max => larger("max_dim"),
                Operation::Min => larger("min_dim"),
            }?;
            code_of(&out).map_or_else(|| out.extract(), Ok)
        })
    }
}

impl Algebra for Objects {
    fn apply(&self, operation: Operation, a: i64, b: i64) -> Result<i64> {
        Objects::calculate(operation, a, b).map_err(carry)
    }

    fn at_least(&self, a: i64, b: i64) -> Result<bool> {
        Python::attach(|py| Objects::number(py, a)?.ge(Objects::number(py, b)?)).map_err(carry)
    }

    fn text(&self, code: i64) -> String {
        let shown = Python::attach(|py| Ok::<_, PyErr>(Objects::number(py, code)?.str()?.to_string()));
        shown.unwrap_or_else(|_: PyErr| code.to_string())
    }
}

/// The least and the largest number that can be a code.
#[pyfunction]
fn symbolic_codes() -> (usize, usize) {
    (symbolic::LEAST, symbolic::LARGEST)
}

/// A size as a scalar array.
#[pyfunction]
fn dim_as_value(size: &Bound<'_, PyAny>) -> PyResult<PyValue> {
    let code = crate::value::index(size, "a size")?;
    ferrax_ops::dim_as_value(code as usize).py().map(PyValue)
}

/// The sizes that a text has codes of, once each, in order.
#[pyfunction]
fn symbolic_sizes_in<'py>(py: Python<'py>, text: &str) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    let mut seen = Shape::new();
    for number in text.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse::<usize>().ok()) {
        if symbolic::is_symbolic(number) && symbolic::number_of(number as i64).is_some() && !seen.contains(&number) {
            seen.push(number);
        }
    }
    seen.iter().map(|&n| Ok((n.to_string(), size_object(py, n)?))).collect()
}

/// Adds the functions to the extension module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(symbolic_codes, m)?)?;
    m.add_function(wrap_pyfunction!(symbolic_size, m)?)?;
    m.add_function(wrap_pyfunction!(dim_as_value, m)?)?;
    m.add_function(wrap_pyfunction!(symbolic_sizes_in, m)?)
}
