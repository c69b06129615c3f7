//! Arguments that several `lax` functions share: integers, axes, starts, modes, precisions.

use crate::array::PyArray;
use crate::errors::IntoPyResult;
use crate::value::{PyValue, index};
use ferrax_base::{Scalar, Shape};
use ferrax_ir::{Lit, Value};
use ferrax_loops::IndexMode;
use ferrax_ops::dot::{DotPrecision, Precision};
use ferrax_ops::dynamic_slice::unstack_starts;
use pyo3::exceptions::{PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

/// Whether an object counts as true: flags may be given as 0 and 1.
pub struct Truth(pub bool);

impl<'py> FromPyObject<'_, 'py> for Truth {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        object.is_truthy().map(Truth)
    }
}

/// A sequence of integers.
pub fn integers(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<i64>> {
    object.try_iter()?.map(|o| index(&o?, what)).collect()
}

/// A sequence of integers that are not negative.
pub fn naturals(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Shape> {
    let values = integers(object, what)?;
    if values.iter().any(|&v| v < 0) {
        let shown = crate::shorten::repr(object);
        return Err(PyTypeError::new_err(format!("{what} must be greater than or equal to zero, got {shown}")));
    }
    Ok(values.into_iter().map(|v| v as usize).collect())
}

/// Start indices: a sequence of scalars, or a rank-1 array.
pub fn starts(object: &Bound<'_, PyAny>) -> PyResult<Vec<Value>> {
    let is_array = object.is_instance_of::<PyArray>()
        || crate::api::hosted::is_one(object)
        || crate::numpy_interop::is_array(object)?;
    if is_array {
        return unstack_starts(&object.extract::<PyValue>()?.0).py();
    }
    object.try_iter()?.map(|o| Ok(o?.extract::<PyValue>()?.0)).collect()
}

/// `allow_negative_indices`: one truth value or one for each axis.
pub fn wraps(object: &Bound<'_, PyAny>) -> PyResult<Vec<bool>> {
    match object.extract::<bool>() {
        Ok(one) => Ok(vec![one]),
        Err(_) => object.try_iter()?.map(|o| o?.extract()).collect(),
    }
}

/// The mode of a gather or scatter: `None`, a name, or a `GatherScatterMode`.
pub fn mode(object: Option<&Bound<'_, PyAny>>) -> PyResult<Option<IndexMode>> {
    let Some(object) = object.filter(|o| !o.is_none()) else { return Ok(None) };
    let name = match object.cast::<PyString>() {
        Ok(s) => Some(s.to_string()),
        Err(_) => match object.getattr_opt("name")? {
            Some(n) => n.extract::<String>().ok().map(|n| n.to_lowercase()),
            None => None,
        },
    };
    match name.as_deref() {
        Some("clip") => Ok(Some(IndexMode::Clip)),
        Some("fill" | "drop" | "fill_or_drop") => Ok(Some(IndexMode::FillOrDrop)),
        Some("promise_in_bounds") => Ok(Some(IndexMode::PromiseInBounds)),
        Some("one_hot") => Err(PyNotImplementedError::new_err("the gather mode ONE_HOT is not implemented")),
        _ => Err(PyValueError::new_err(format!("Unknown gather mode \"{}\"", object.str()?))),
    }
}

/// A fill value: a Python or NumPy scalar.
pub fn fill(object: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Scalar>> {
    let Some(object) = object.filter(|o| !o.is_none()) else { return Ok(None) };
    match object.extract::<PyValue>()?.0 {
        Value::Lit(Lit { scalar, .. }) => Ok(Some(scalar)),
        Value::Array(a) if a.aval().rank() == 0 => a.item().py().map(Some),
        _ => Err(PyTypeError::new_err(format!(
            "fill_value must be a concrete scalar, got {}",
            crate::shorten::repr(object)
        ))),
    }
}

const PRESETS: [&str; 15] = [
    "ANY_F8_ANY_F8_F32",
    "ANY_F8_ANY_F8_F32_FAST_ACCUM",
    "ANY_F8_ANY_F8_ANY",
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
    "F16_F16_F16",
    "F16_F16_F32",
    "BF16_BF16_BF16",
    "BF16_BF16_F32",
    "BF16_BF16_F32_X3",
    "BF16_BF16_F32_X6",
    "BF16_BF16_F32_X9",
    "TF32_TF32_F32",
    "TF32_TF32_F32_X3",
    "F32_F32_F32",
    "F64_F64_F64",
];

fn precision_name(name: &str) -> Option<Precision> {
    Some(match name {
        "highest" | "float32" => Precision::Highest,
        "high" | "bfloat16_3x" | "tensorfloat32" => Precision::High,
        "default" | "bfloat16" | "fastest" => Precision::Default,
        _ => return None,
    })
}

fn one_precision(object: &Bound<'_, PyAny>) -> PyResult<Option<Precision>> {
    if let Ok(s) = object.cast::<PyString>() {
        return Ok(precision_name(&s.to_string()));
    }
    match (object.get_type().name()?.to_string().as_str(), object.getattr_opt("name")?) {
        ("Precision", Some(name)) => Ok(Precision::from_name(&name.extract::<String>()?)),
        _ => Ok(None),
    }
}

/// The `precision` argument of dot products.
pub fn precision(object: Option<&Bound<'_, PyAny>>) -> PyResult<Option<DotPrecision>> {
    let Some(object) = object.filter(|o| !o.is_none()) else { return Ok(None) };
    if let Some(p) = one_precision(object)? {
        return Ok(Some(DotPrecision::Pair(p, p)));
    }
    if let Ok(s) = object.cast::<PyString>() {
        let name = s.to_string();
        if PRESETS.contains(&name.as_str()) {
            return Ok(Some(DotPrecision::Algorithm(name.into())));
        }
    }
    match object.get_type().name()?.to_string().as_str() {
        "DotAlgorithmPreset" => {
            return Ok(Some(DotPrecision::Algorithm(object.getattr("name")?.extract::<String>()?.into())));
        }
        "DotAlgorithm" => return Ok(Some(DotPrecision::Algorithm(object.repr()?.to_string().into()))),
        _ => {}
    }
    if let Ok(pair) = object.cast::<PyTuple>()
        && pair.len() == 2
        && let (Some(a), Some(b)) = (one_precision(&pair.get_item(0)?)?, one_precision(&pair.get_item(1)?)?)
    {
        return Ok(Some(DotPrecision::Pair(a, b)));
    }
    Err(PyValueError::new_err(format!(
        "Precision argument must be one of:\n- None,\n- a string in ['highest', 'float32', 'high', 'bfloat16_3x', \
         'tensorfloat32', 'default', 'bfloat16', 'fastest', None],\n- a lax.Precision value,\n- a tuple of two \
         lax.Precision values or strings,\n- a lax.DotAlgorithmPreset or the name of one of these presets, or\n- a \
         lax.DotAlgorithm value;\nbut got {}",
        object.str()?
    )))
}

/// Results as a list of Python values.
pub fn listed(values: impl IntoIterator<Item = Value>) -> Vec<PyValue> {
    values.into_iter().map(PyValue).collect()
}
