//! Arrays from Python objects: `jnp.asarray` and `jnp.array`, and the dtype questions that need the objects.
//!
//! Nested lists are looked through once: numbers alone go through NumPy in the dtype that JAX's promotion gives;
//! lists that hold arrays or tracers are stacked.

use crate::api::hosted;
use crate::array::{PyArray, wrap, wrap_number};
use crate::dtypes;
use crate::errors::IntoPyResult;
use crate::interpreter::attribute;
use crate::numpy_interop::{self, from_array};
use crate::symbolic::shape_tuple;
use crate::value::{self, python_number, to_value, value_of};
use crate::warning;
use ferrax::numpy::{Rule, promote};
use ferrax_base::DType;
use ferrax_base::config::{self, Flag};
use ferrax_ir::{Lit, Value};
use ferrax_ops as ops;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};
use pyo3::{PyTypeInfo, intern};

/// What a nested list holds.
#[derive(Default)]
struct Contents {
    /// Dtypes of the numbers, joined.
    joined: Option<(DType, bool)>,
    /// Whether there are arrays or tracers among them.
    arrays: bool,
    /// Whether there is anything that NumPy must judge.
    foreign: bool,
}

impl Contents {
    fn add(&mut self, dtype: DType, weak: bool) -> PyResult<()> {
        self.joined = Some(match self.joined {
            None => (dtype, weak),
            Some(j) => promote::result_type(&[j, (dtype, weak)]).py()?,
        });
        Ok(())
    }
}

fn is_list(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>()
}

/// The elements of a list or tuple.
fn elements<'py>(object: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    object.try_iter()?.collect()
}

/// Lists in lists at most: as many axes as NumPy has.
const DEEPEST: usize = 64;

fn too_deep() -> PyErr {
    PyValueError::new_err("the list is nested too deeply for an array")
}

fn look_through(object: &Bound<'_, PyAny>, found: &mut Contents, depth: usize) -> PyResult<()> {
    if depth > DEEPEST {
        return Err(too_deep());
    }
    for item in object.try_iter()? {
        let item = item?;
        if is_list(&item) {
            look_through(&item, found, depth + 1)?;
        } else if let Ok(a) = item.cast::<PyArray>() {
            found.arrays = true;
            found.add(a.get().value.dtype(), a.get().value.weak())?;
        } else if let Some(dtype) = plain_number(&item) {
            found.add(dtype.canonical(config::x64()), !dtype.is_bool())?;
        } else if item.is_none() {
            return Err(PyValueError::new_err("None is not a valid value for jnp.array"));
        } else if numpy_interop::is_scalar(&item)? || numpy_interop::is_array(&item)? {
            match dtypes::from_descr(&item.getattr(intern!(item.py(), "dtype"))?)? {
                Some(d) => found.add(d.canonical(config::x64()), false)?,
                None => found.foreign = true,
            }
        } else if hosted::value_of(&item)?.is_some() || item.hasattr(intern!(item.py(), "__jax_array__"))? {
            found.arrays = true;
            let v = to_value(&item)?;
            found.add(v.dtype(), v.weak())?;
        } else {
            found.foreign = true;
        }
    }
    Ok(())
}

/// The dtype that a Python number would have in 64 bits; its size is for NumPy to judge.
fn plain_number(item: &Bound<'_, PyAny>) -> Option<DType> {
    let py = item.py();
    let class = item.get_type_ptr();
    let of = |t: *mut pyo3::ffi::PyTypeObject| class == t;
    if of(pyo3::types::PyFloat::type_object_raw(py)) {
        Some(DType::F64)
    } else if of(pyo3::types::PyInt::type_object_raw(py)) {
        Some(DType::I64)
    } else if of(pyo3::types::PyBool::type_object_raw(py)) {
        Some(DType::Bool)
    } else if of(pyo3::types::PyComplex::type_object_raw(py)) {
        Some(DType::C128)
    } else {
        None
    }
}

/// Through NumPy, in a dtype if one is given.
fn through_numpy(object: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Value> {
    let py = object.py();
    let kwargs = PyDict::new(py);
    if let Some(d) = dtype {
        kwargs.set_item(intern!(py, "dtype"), dtypes::to_object(py, d)?)?;
    }
    let array = py.import(intern!(py, "numpy"))?.call_method(intern!(py, "array"), (object,), Some(&kwargs))?;
    if config::watched() {
        crate::watch::handed(&array)?;
    }
    // 64 bits that were asked for stay, where `jax_explicit_x64_dtypes` allows them
    let wide = config::x64() || dtype.is_some_and(|d| d.canonical(false) != d);
    config::with(Flag::X64, wide, || from_array(&array).map(Value::Array))
}

fn from_list(object: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Value> {
    let mut found = Contents::default();
    look_through(object, &mut found, 0)?;
    if found.arrays {
        let (joined, _) = found.joined.unwrap_or((DType::F32, false));
        return stacked(object, dtype.unwrap_or(joined));
    }
    if found.foreign {
        // Elements of other classes run their own code, which may change a list while NumPy reads it.
        return through_numpy(&frozen(object, 0)?, dtype);
    }
    let default = || DType::F64.canonical(config::x64());
    let dtype = dtype.unwrap_or_else(|| found.joined.map_or_else(default, |(d, _)| d.canonical(config::x64())));
    through_numpy(object, Some(dtype))
}

/// Lists in lists as tuples in tuples.
fn frozen<'py>(object: &Bound<'py, PyAny>, depth: usize) -> PyResult<Bound<'py, PyAny>> {
    if !is_list(object) {
        return Ok(object.clone());
    }
    if depth > DEEPEST {
        return Err(too_deep());
    }
    let items = elements(object)?.iter().map(|item| frozen(item, depth + 1)).collect::<PyResult<Vec<_>>>()?;
    Ok(PyTuple::new(object.py(), items)?.into_any())
}

/// A list with arrays in it: its elements converted and put together. A program gets JAX's equations for it, which are
/// two for an element; values get one for all.
fn stacked(object: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Value> {
    let items = elements(object)?;
    let tracers = |item: &Bound<'_, PyAny>| is_tracer(item);
    let staged = !ferrax_ir::trace::is_eager() || items.iter().any(tracers);
    let element = |item: &Bound<'_, PyAny>| {
        if staged && let Some(Lit { scalar, .. }) = python_number(item)? {
            let there = scalar.convert(dtype);
            if there.convert(scalar.dtype) == scalar {
                return Ok(Value::Lit(Lit { scalar: there, weak: false }));
            }
        }
        as_value(item, Some(dtype))
    };
    let (mut parts, mut rows) = (Vec::with_capacity(items.len()), Vec::new());
    for item in &items {
        let part = element(item)?;
        if staged {
            rows.push(ops::expand_dims(&part, &[0]).py()?);
        }
        parts.push(part);
    }
    if parts.iter().any(|p| p.shape() != parts[0].shape()) {
        let shapes: Vec<String> = parts.iter().map(|p| ferrax_base::shape::Tuple(p.shape()).to_string()).collect();
        return Err(PyTypeError::new_err(format!(
            "Cannot concatenate arrays with different shapes into one array: the elements of the list have shapes {}.",
            shapes.join(", ")
        )));
    }
    match &rows[..] {
        [] => ops::stack(&parts, 0).py(),
        [row] => Ok(row.clone()),
        rows => ferrax_ops::slice::concatenate(rows, 0).py(),
    }
}

/// The value of an object that an array can be made of, in a dtype (canonical) if one is given.
pub fn as_value(object: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Value> {
    if let Ok(a) = object.cast::<PyArray>() {
        return converted(a.get().value.clone(), dtype);
    }
    if is_list(object) {
        return from_list(object, dtype);
    }
    if dtype.is_none()
        && let Some(lit) = python_number(object)?
    {
        return Ok(Value::Lit(lit));
    }
    if object.is_none() {
        return Err(PyValueError::new_err("None is not a valid value for jnp.array"));
    }
    if let Some(traced) = hosted::value_of(object)? {
        return converted(traced, dtype);
    }
    if plain_number(object).is_some() {
        return through_numpy(object, dtype);
    }
    if numpy_interop::is_array(object)? || numpy_interop::is_scalar(object)? {
        let py = object.py();
        if let Some(d) = dtype.filter(|d| !d.is_complex() && !d.is_bool())
            && let Some(from) = dtypes::from_descr(&object.getattr(intern!(py, "dtype"))?)?
            && warning::is_lossy(from, d)
        {
            // NumPy's own warning would point at whoever called NumPy.
            warning::imaginary_parts(py)?;
            return through_numpy(&object.getattr(intern!(py, "real"))?, dtype);
        }
        return match dtype {
            Some(_) => through_numpy(object, dtype),
            None => to_value(object),
        };
    }
    if object.hasattr(intern!(object.py(), "__jax_array__"))? {
        return converted(to_value(object)?, dtype);
    }
    if object.hasattr(intern!(object.py(), "__array__"))? {
        let py = object.py();
        let array = py.import("numpy")?.call_method1(intern!(py, "asarray"), (object,))?;
        return as_value(&array, dtype);
    }
    if let Some(v) = value_of(object)? {
        return converted(v, dtype);
    }
    through_numpy(object, dtype)
}

fn converted(v: Value, dtype: Option<DType>) -> PyResult<Value> {
    match dtype {
        Some(d) => {
            if warning::is_lossy(v.dtype(), d) {
                Python::attach(warning::imaginary_parts)?;
            }
            ops::convert_element_type(&v, d).py()
        }
        None => Ok(v),
    }
}

/// The array of an object; the object itself when it is one already and nothing has to change.
#[pyfunction]
#[pyo3(signature = (x, dtype=None, copy=None, asker="asarray"))]
fn asarray<'py>(
    x: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
    asker: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let dtype = crate::host::dtype_arg(dtype, asker)?;
    if let Ok(a) = x.cast::<PyArray>() {
        let v = &a.get().value;
        let same = dtype.is_none_or(|d| d == v.dtype() && !v.weak());
        if same && copy != Some(true) {
            return Ok(x.clone());
        }
        if same {
            return wrap(x.py(), ops::copy(v).py()?);
        }
    }
    wrap(x.py(), ferrax_ir::trace::made(as_value(x, dtype)?).py()?)
}

/// A copy of an array.
#[pyfunction]
fn copy_array<'py>(x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    wrap(x.py(), ops::copy(&to_value(x)?).py()?)
}

/// Dtype and weak type of an operand, a dtype or a Python number type.
fn type_of(object: &Bound<'_, PyAny>) -> PyResult<(DType, bool)> {
    if let Some(v) = value::quick_value(object) {
        return Ok((v.dtype(), v.weak()));
    }
    if object.is_instance_of::<pyo3::types::PyInt>() {
        // one too large for the dtype has a type all the same; using it is the error
        return Ok((DType::I64.canonical(config::x64()), object.is_exact_instance_of::<pyo3::types::PyInt>()));
    }
    if numpy_interop::is_array(object)? || numpy_interop::is_scalar(object)? {
        let descr = object.getattr(intern!(object.py(), "dtype"))?;
        return match dtypes::from_descr(&descr)? {
            Some(d) => Ok((d.canonical(config::x64()), false)),
            None => Err(PyTypeError::new_err(format!("dtype {descr} is not a valid JAX dtype"))),
        };
    }
    // numbers of subclasses of Python's are not weakly typed
    for (number, dtype) in [
        (object.is_instance_of::<pyo3::types::PyFloat>(), DType::F64),
        (object.is_instance_of::<pyo3::types::PyComplex>(), DType::C128),
    ] {
        if number {
            return Ok((dtype.canonical(config::x64()), false));
        }
    }
    if let Ok(aval) = object.cast::<crate::aval::ShapedArray>() {
        return Ok((aval.get().0.dtype, aval.get().0.weak));
    }
    if let Some(v) = if object.hasattr(intern!(object.py(), "__jax_array__"))? { value_of(object)? } else { None } {
        return Ok((v.dtype(), v.weak()));
    }
    let spec = dtypes::parse(object, "result_type")?;
    let weak = spec.python && !spec.dtype.is_bool()
        || !spec.python
            && attribute(object, intern!(object.py(), "weak_type"))?.is_some_and(|w| w.is_truthy().unwrap_or(false));
    Ok((spec.dtype.canonical(config::x64()), weak))
}

/// Whether it is a dtype of NumPy's, a scalar type of it, or the name of one.
fn is_dtype(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.is_instance_of::<PyString>() {
        return Ok(true);
    }
    if value::quick_value(object).is_some() || numpy_interop::is_array(object)? {
        return Ok(false);
    }
    let of_numpy = |name: &str| object.py().import("numpy")?.getattr(name);
    match object.cast::<PyType>() {
        Ok(class) => class.is_subclass(&of_numpy("generic")?),
        Err(_) => object.is_instance(&of_numpy("dtype")?),
    }
}

fn joined(args: &Bound<'_, PyTuple>) -> PyResult<(DType, bool)> {
    let floats = (DType::F64.canonical(config::x64()), false); // what NumPy takes None for
    let of = |a: Bound<'_, PyAny>| match type_of(&a) {
        _ if a.is_none() => Ok(floats),
        // dtypes of NumPy are explicit requests
        Ok((_, weak)) if !config::x64() && is_dtype(&a)? => {
            Ok((dtypes::parse(&a, "result_type")?.canonical(a.py(), Some("dtype"))?, weak))
        }
        found => found,
    };
    let types = args.iter().map(of).collect::<PyResult<Vec<_>>>()?;
    promote::result_type(&types).py()
}

/// The dtype of combining operands or dtypes.
#[pyfunction]
#[pyo3(signature = (*args, return_weak_type_flag=false))]
fn result_type<'py>(args: &Bound<'py, PyTuple>, return_weak_type_flag: bool) -> PyResult<Bound<'py, PyAny>> {
    let py = args.py();
    let (d, weak) = joined(args)?;
    let dtype = dtypes::to_object(py, d)?;
    if return_weak_type_flag {
        return Ok((dtype, weak).into_pyobject(py)?.into_any());
    }
    Ok(dtype)
}

fn rule(name: &str) -> PyResult<Rule> {
    match name {
        "common" => Ok(Rule::Common),
        "numeric" => Ok(Rule::Numeric),
        "inexact" => Ok(Rule::Inexact),
        other => Err(PyValueError::new_err(format!("there is no promotion rule '{other}'"))),
    }
}

/// The operands as arrays of their common dtype.
#[pyfunction]
#[pyo3(signature = (*args, to="common"))]
fn promote_dtypes<'py>(args: &Bound<'py, PyTuple>, to: &str) -> PyResult<Bound<'py, PyList>> {
    let mut values = args.iter().map(|a| to_value(&a)).collect::<PyResult<Vec<Value>>>()?;
    promote::dtypes(rule(to)?, &mut values).py()?;
    PyList::new(args.py(), values.into_iter().map(value::PyValue))
}

/// The operands with leading axes of size one, so that all but scalars have one rank.
#[pyfunction]
#[pyo3(signature = (name, *args))]
fn promote_ranks<'py>(name: &str, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyList>> {
    let mut values = args.iter().map(|a| to_value(&a)).collect::<PyResult<Vec<Value>>>()?;
    promote::ranks(name, &mut values).py()?;
    PyList::new(args.py(), values.into_iter().map(value::PyValue))
}

/// The dtype an operand has.
#[pyfunction]
fn dtype_of<'py>(x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    dtypes::to_object(x.py(), type_of(x)?.0)
}

/// Whether an operand's dtype yields to others in promotion.
#[pyfunction]
fn weak_type(x: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(type_of(x)?.1)
}

/// The shape of an operand.
#[pyfunction]
fn shape<'py>(x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    let py = x.py();
    match value::quick_value(x) {
        Some(v) => shape_tuple(py, v.shape()),
        None => shape_tuple(py, &value::abstract_value(x)?.shape),
    }
}

/// The type of an operand, which may be abstract.
#[pyfunction]
fn typeof_(x: &Bound<'_, PyAny>) -> PyResult<crate::aval::ShapedArray> {
    value::abstract_value(x).map(crate::aval::ShapedArray)
}

/// The type of a row of an operand, which has an axis in front.
#[pyfunction]
fn row_type(x: &Bound<'_, PyAny>) -> PyResult<crate::aval::ShapedArray> {
    Ok(crate::aval::ShapedArray(ferrax_ir::spread::without_axis(value::abstract_value(x)?, 0)))
}

/// A number that a function made while it is traced as the array that it is; other objects as they are.
#[pyfunction]
fn untraced<'py>(x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match x.cast::<PyArray>().ok().and_then(|a| a.get().value.literal()) {
        Some(number) => wrap_number(x.py(), &number),
        None => Ok(x.clone()),
    }
}

/// Whether an object is a traced value.
#[pyfunction]
fn is_tracer(x: &Bound<'_, PyAny>) -> bool {
    match x.cast::<PyArray>() {
        Ok(a) => matches!(a.get().value, Value::Tracer(_)),
        Err(_) => hosted::is_one(x),
    }
}

/// Whether an object is an operand: an array, a tracer, a number, a NumPy array.
#[pyfunction]
fn is_arraylike(x: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(value_of(x).ok().flatten().is_some())
}

/// `kind(x)` of a concrete operand; for traced ones the error that says what needed the value.
#[pyfunction]
#[pyo3(signature = (kind, x, context=""))]
fn concrete_or_error<'py>(
    kind: &Bound<'py, PyAny>,
    x: &Bound<'py, PyAny>,
    context: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    let mut object = x.clone();
    if is_tracer(x) {
        let concrete = value::concrete(&to_value(x)?, context)?;
        object = wrap(py, Value::Array(concrete))?;
    }
    if kind.is_none() { Ok(object) } else { kind.call1((object,)) }
}

/// A weakly typed copy of a strongly typed operand, or the other way round.
#[pyfunction]
fn with_weak_type<'py>(x: &Bound<'py, PyAny>, weak: bool) -> PyResult<Bound<'py, PyAny>> {
    let v = to_value(x)?;
    if let Value::Lit(l) = v {
        return wrap(x.py(), Value::Lit(Lit { weak, ..l }));
    }
    wrap(x.py(), ops::convert_weak(&v, v.dtype(), weak).py()?)
}

/// Adds the functions of this file to the extension module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(asarray, m)?)?;
    m.add_function(wrap_pyfunction!(copy_array, m)?)?;
    m.add_function(wrap_pyfunction!(result_type, m)?)?;
    m.add_function(wrap_pyfunction!(promote_dtypes, m)?)?;
    m.add_function(wrap_pyfunction!(promote_ranks, m)?)?;
    m.add_function(wrap_pyfunction!(dtype_of, m)?)?;
    m.add_function(wrap_pyfunction!(weak_type, m)?)?;
    m.add_function(wrap_pyfunction!(shape, m)?)?;
    m.add("typeof", wrap_pyfunction!(typeof_, m)?)?;
    m.add_function(wrap_pyfunction!(row_type, m)?)?;
    m.add_function(wrap_pyfunction!(is_tracer, m)?)?;
    m.add_function(wrap_pyfunction!(untraced, m)?)?;
    m.add_function(wrap_pyfunction!(is_arraylike, m)?)?;
    m.add_function(wrap_pyfunction!(concrete_or_error, m)?)?;
    m.add_function(wrap_pyfunction!(with_weak_type, m)?)
}
