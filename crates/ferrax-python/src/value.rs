//! Values across the boundary: Python objects to [`Value`], and back.
//!
//! What counts as an array: our own arrays and tracers, Python's numbers (weakly typed constants, no
//! allocation), NumPy's scalars and arrays, and objects with `__jax_array__`. Lists and tuples do not count
//! here (JAX's functions reject them); `jnp.asarray` takes them, see `creation.rs`.
//!
//! Read next: `array.rs` for the classes, `ufunc.rs` for functions of values.

use crate::api::references;
use crate::array::{self, PyArray};
use crate::interpreter::attribute;
use crate::numpy_interop;
use crate::{shorten, watch};
use ferrax_base::{Aval, DType, Scalar, config};
use ferrax_ir::{Array, Lit, Value};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt};
use pyo3::{PyTypeInfo, ffi, intern};

/// A [`Value`] as an argument or result of a Rust function for Python.
#[derive(Clone, Debug)]
pub struct PyValue(pub Value);

impl<'a, 'py> FromPyObject<'a, 'py> for PyValue {
    type Error = PyErr;
    #[inline]
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        to_value(&object).map(PyValue)
    }
}

impl<'py> IntoPyObject<'py> for PyValue {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;
    #[inline]
    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_py(py, self.0)
    }
}

/// The array object, tracer object or (for constants) new rank-0 array of a value.
#[inline]
pub fn to_py(py: Python<'_>, value: Value) -> PyResult<Bound<'_, PyAny>> {
    array::wrap(py, value)
}

/// As [`to_py`], giving an owned object.
#[inline]
pub fn from_value(py: Python<'_>, value: Value) -> PyResult<Py<PyAny>> {
    to_py(py, value).map(Bound::unbind)
}

/// The value of a Python object; an error when it is nothing that operations take.
#[inline]
pub fn to_value(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    match value_of(object)? {
        Some(v) => Ok(v),
        None => Err(not_an_array(object)),
    }
}

/// The value of an array or tracer, ours or a library's, or of a Python number; `None` for everything else.
#[inline]
pub fn quick_value(object: &Bound<'_, PyAny>) -> Option<Value> {
    if let Ok(a) = object.cast::<PyArray>() {
        return Some(a.get().value.clone());
    }
    number_of(object).ok().flatten().map(Value::Lit).or_else(|| crate::api::hosted::value_of(object).ok().flatten())
}

/// Shape, dtype and weak type of an argument, which may be abstract: anything with `shape` and `dtype` will do.
pub fn abstract_value(object: &Bound<'_, PyAny>) -> PyResult<Aval> {
    if let Ok(a) = object.cast::<PyArray>() {
        return Ok(a.get().value.aval());
    }
    if let Some(lit) = number_of(object)? {
        return Ok(Value::Lit(lit).aval());
    }
    if let Ok(aval) = object.cast::<crate::aval::ShapedArray>() {
        return Ok(aval.get().0.clone());
    }
    let py = object.py();
    if references::is_reference(object) || references::is_high(object) {
        return Err(references::used());
    }
    let is_numpy = numpy_interop::is_array(object)? || numpy_interop::is_scalar(object)?;
    let shape = attribute(object, intern!(py, "shape"))?;
    let dtype = attribute(object, intern!(py, "dtype"))?;
    if let (Some(shape), Some(dtype)) = (shape, dtype)
        && (is_numpy || value_of(object).ok().flatten().is_none())
    {
        let weak = match attribute(object, intern!(py, "weak_type"))? {
            Some(w) => w.is_truthy()?,
            None => false,
        };
        let dtype = crate::dtypes::parse(&dtype, "an abstract value")?.canonical(py, None)?;
        let shape = shape.extract::<ShapeArg>()?.0;
        let sharding = if is_numpy { None } else { attribute(object, intern!(py, "sharding"))? };
        let spread = crate::aval::spread_of(sharding.as_ref(), &shape)?;
        return Ok(Aval { shape, dtype, weak, vary: 0, spread });
    }
    to_value(object).map(|v| v.aval())
}

/// The value of a Python object; `None` when it is nothing that operations take.
#[inline]
pub fn value_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    if let Ok(a) = object.cast::<PyArray>() {
        return Ok(Some(a.get().value.clone()));
    }
    match python_number(object)? {
        Some(lit) => Ok(Some(Value::Lit(lit))),
        None => foreign(object),
    }
}

/// A Python number that an operation is given, as a constant; exact types only (NumPy's scalars may derive from them).
#[inline]
pub fn python_number(object: &Bound<'_, PyAny>) -> PyResult<Option<Lit>> {
    if config::watched() {
        return number_handed(object);
    }
    number_of(object)
}

#[cold]
fn number_handed(object: &Bound<'_, PyAny>) -> PyResult<Option<Lit>> {
    let lit = number_of(object)?;
    if lit.is_some() {
        watch::handed(object)?;
    }
    Ok(lit)
}

/// The constant that a Python number is, of which nobody is told.
#[inline]
pub fn number_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Lit>> {
    let (py, raw) = (object.py(), object.as_ptr());
    // SAFETY: `raw` is a valid object.
    let class = unsafe { ffi::Py_TYPE(raw) };
    let weak = |scalar| Ok(Some(Lit { scalar, weak: true }));
    if class == PyFloat::type_object_raw(py) {
        // SAFETY: exactly a float.
        let v = unsafe { ffi::PyFloat_AS_DOUBLE(raw) };
        return weak(Scalar::from_f64(DType::F64.canonical(config::x64()), v));
    }
    if class == PyInt::type_object_raw(py) {
        return weak(integer(object)?);
    }
    if class == PyBool::type_object_raw(py) {
        return Ok(Some(Lit { scalar: Scalar::from_bool(object.is_truthy()?), weak: false }));
    }
    if class == PyComplex::type_object_raw(py) {
        let c = object.cast::<PyComplex>()?;
        return weak(Scalar::from_complex(DType::C128.canonical(config::x64()), c.real(), c.imag()));
    }
    Ok(None)
}

/// A Python `int` as the default integer dtype.
fn integer(object: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    let dtype = DType::I64.canonical(config::x64());
    let wide: Option<i64> = object.extract().ok();
    match wide {
        Some(v) if dtype == DType::I64 || i32::try_from(v).is_ok() => Ok(Scalar::from_i64(dtype, v)),
        _ => Err(PyOverflowError::new_err(format!("Python int {} too large to convert to {dtype}", object.str()?))),
    }
}

/// Tracers of libraries' own, NumPy's arrays and scalars, subclasses of Python's numbers, objects with `__jax_array__`.
fn foreign(object: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    if let Some(traced) = crate::api::hosted::value_of(object)? {
        return Ok(Some(traced));
    }
    if config::watched() {
        watch::handed(object)?;
    }
    if numpy_interop::is_array(object)? {
        return Ok(Some(Value::Array(numpy_interop::from_array(object)?)));
    }
    if numpy_interop::is_scalar(object)? {
        return Ok(Some(Value::Lit(numpy_interop::from_scalar(object)?)));
    }
    if let Some(method) = attribute(object, intern!(object.py(), "__jax_array__"))? {
        let converted = method.call0()?;
        if let Ok(a) = converted.cast::<PyArray>() {
            return Ok(Some(a.get().value.clone()));
        }
        return value_of(&converted);
    }
    let weak = |scalar| Ok(Some(Value::Lit(Lit { scalar, weak: true })));
    if object.is_instance_of::<PyInt>() {
        return weak(integer(object)?);
    }
    if let Ok(f) = object.cast::<PyFloat>() {
        return weak(Scalar::from_f64(DType::F64.canonical(config::x64()), f.value()));
    }
    if let Ok(c) = object.cast::<PyComplex>() {
        return weak(Scalar::from_complex(DType::C128.canonical(config::x64()), c.real(), c.imag()));
    }
    Ok(None)
}

/// The error of an argument that is no array.
#[cold]
pub fn not_an_array(object: &Bound<'_, PyAny>) -> PyErr {
    if references::is_reference(object) {
        return references::used();
    }
    let class = object.get_type();
    let shown = shorten::repr(object);
    PyTypeError::new_err(format!("Argument {shown} of type {class} is not a valid JAX type"))
}

/// The concrete array of an argument; an error for tracers that says what needed the value.
pub fn concrete(value: &Value, what: &str) -> PyResult<Array> {
    match value {
        Value::Tracer(t) => match t.concrete() {
            Some(v) => concrete(&v, what),
            None => Err(crate::tracer::concretization(t, what)),
        },
        other => crate::errors::IntoPyResult::py(ferrax::executable::materialize(other.clone())),
    }
}

/// An integer argument: an `int`, a NumPy integer or a concrete integer array.
pub fn index(object: &Bound<'_, PyAny>, what: &str) -> PyResult<i64> {
    if let Ok(v) = object.extract::<i64>() {
        return Ok(v);
    }
    if let Ok(a) = object.cast::<PyArray>()
        && let Value::Tracer(t) = &a.get().value
        && t.concrete().is_none()
    {
        return Err(crate::tracer::concretization(t, &format!("It was used as {what}.")));
    }
    if let Some(code) = crate::symbolic::code_of(object) {
        return Ok(code);
    }
    let kind = object.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "{what} must be an integer; got {}: '{kind}' object cannot be interpreted as an integer",
        shorten::repr(object)
    )))
}

/// The size of an axis: an integer that is not negative, or a symbolic size.
#[derive(Clone, Copy, Debug)]
pub struct SizeArg(pub usize);

impl<'py> FromPyObject<'_, 'py> for SizeArg {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match crate::symbolic::code_of(&object) {
            Some(code) => Ok(SizeArg(code as usize)),
            None => object.extract().map(SizeArg),
        }
    }
}

/// An integer, or a symbolic size: a padding, a step.
#[derive(Clone, Copy, Debug)]
pub struct IndexArg(pub i64);

impl<'py> FromPyObject<'_, 'py> for IndexArg {
    type Error = PyErr;
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match crate::symbolic::code_of(&object) {
            Some(code) => Ok(IndexArg(code)),
            None => object.extract().map(IndexArg),
        }
    }
}

/// Low and high paddings.
pub fn paddings(pairs: &[(IndexArg, IndexArg)]) -> impl Iterator<Item = (i64, i64)> + '_ {
    pairs.iter().map(|(low, high)| (low.0, high.0))
}

/// A shape argument: an integer or a sequence of integers.
#[derive(Clone, Debug)]
pub struct ShapeArg(pub ferrax_base::Shape);

impl<'a, 'py> FromPyObject<'a, 'py> for ShapeArg {
    type Error = PyErr;
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let dim = |o: &Bound<'_, PyAny>| -> PyResult<usize> {
            let v = index(o, "an element of a shape").map_err(|e| {
                if e.is_instance_of::<PyTypeError>(o.py()) && !o.is_instance_of::<PyArray>() {
                    return PyTypeError::new_err(format!(
                        "Shapes must be 1D sequences of concrete values of integer type, got {}.",
                        shorten::repr(&object)
                    ));
                }
                e
            })?;
            usize::try_from(v).map_err(|_| {
                let shown = shorten::repr(&object);
                PyTypeError::new_err(format!("shape must have every element be nonnegative, got {shown}."))
            })
        };
        let is_sequence = object.cast::<pyo3::types::PyTuple>().is_ok() || object.cast::<pyo3::types::PyList>().is_ok();
        if !is_sequence && object.extract::<i64>().is_ok() {
            return Ok(ShapeArg(smallvec::smallvec![dim(&object)?]));
        }
        match object.try_iter() {
            Ok(items) => Ok(ShapeArg(items.map(|o| dim(&o?)).collect::<PyResult<_>>()?)),
            Err(_) => Ok(ShapeArg(smallvec::smallvec![dim(&object)?])),
        }
    }
}

/// A Python number of a scalar: `bool`, `int`, `float` or `complex`.
pub fn number(py: Python<'_>, s: Scalar) -> PyResult<Bound<'_, PyAny>> {
    Ok(if s.dtype.is_bool() {
        PyBool::new(py, s.bits != 0).to_owned().into_any()
    } else if s.dtype.is_unsigned() {
        (s.bits as u64).into_pyobject(py)?.into_any()
    } else if s.dtype.is_signed() {
        s.to_i64().into_pyobject(py)?.into_any()
    } else if s.dtype.is_complex() {
        PyComplex::from_doubles(py, s.to_f64(), s.imag()).into_any()
    } else {
        PyFloat::new(py, s.to_f64()).into_any()
    })
}
