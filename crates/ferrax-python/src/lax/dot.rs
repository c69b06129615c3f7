//! Dot products.

use super::args::{naturals, precision};
use crate::dtypes::DTypeArg;
use crate::errors::IntoPyResult;
use crate::value::PyValue;
use ferrax_base::shape::Tuple;
use ferrax_loops::DotDims;
use ferrax_ops::dot as ops;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use smallvec::SmallVec;

type Axes = SmallVec<[usize; 2]>;

fn pair<'py>(object: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let mut items = object.try_iter()?;
    match (items.next().transpose()?, items.next().transpose()?, items.next()) {
        (Some(a), Some(b), None) => Ok((a, b)),
        _ => Err(PyValueError::new_err(format!(
            "dot_general dimension_numbers must be ((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch)), got {}",
            crate::shorten::repr(object)
        ))),
    }
}

fn axes(object: &Bound<'_, PyAny>) -> PyResult<Axes> {
    Ok(naturals(object, "dot_general dimension numbers")?.into_iter().collect())
}

fn dims(numbers: &Bound<'_, PyAny>) -> PyResult<DotDims> {
    let (contract, batch) = pair(numbers)?;
    let ((lc, rc), (lb, rb)) = (pair(&contract)?, pair(&batch)?);
    let out = DotDims {
        lhs_contract: axes(&lc)?,
        rhs_contract: axes(&rc)?,
        lhs_batch: axes(&lb)?,
        rhs_batch: axes(&rb)?,
        ..DotDims::default()
    };
    for (what, a, b) in
        [("contracting", &out.lhs_contract, &out.rhs_contract), ("batch", &out.lhs_batch, &out.rhs_batch)]
    {
        if a.len() != b.len() {
            return Err(PyTypeError::new_err(format!(
                "dot_general requires equal numbers of lhs_{what} and rhs_{what} dimensions, got lhs_{what} {} and \
                 rhs_{what} {}.",
                Tuple(a),
                Tuple(b)
            )));
        }
    }
    Ok(out)
}

#[pyfunction]
#[pyo3(signature = (lhs, rhs, dimension_numbers, precision_=None, preferred_element_type=None))]
fn dot_general(
    lhs: PyValue,
    rhs: PyValue,
    dimension_numbers: &Bound<'_, PyAny>,
    precision_: Option<&Bound<'_, PyAny>>,
    preferred_element_type: Option<DTypeArg>,
) -> PyResult<PyValue> {
    let dims = dims(dimension_numbers)?;
    ops::dot_general(&lhs.0, &rhs.0, &dims, precision(precision_)?, preferred_element_type.map(|d| d.0))
        .py()
        .map(PyValue)
}

#[pyfunction]
#[pyo3(signature = (lhs, rhs, precision_=None, preferred_element_type=None))]
fn dot(
    lhs: PyValue,
    rhs: PyValue,
    precision_: Option<&Bound<'_, PyAny>>,
    preferred_element_type: Option<DTypeArg>,
) -> PyResult<PyValue> {
    ops::dot(&lhs.0, &rhs.0, precision(precision_)?, preferred_element_type.map(|d| d.0)).py().map(PyValue)
}

#[pyfunction]
#[pyo3(signature = (lhs, rhs, precision_=None))]
fn batch_matmul(lhs: PyValue, rhs: PyValue, precision_: Option<&Bound<'_, PyAny>>) -> PyResult<PyValue> {
    ops::batch_matmul(&lhs.0, &rhs.0, precision(precision_)?).py().map(PyValue)
}

/// Adds the functions of this family.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(dot_general, m)?)?;
    m.add_function(wrap_pyfunction!(dot, m)?)?;
    m.add_function(wrap_pyfunction!(batch_matmul, m)?)
}
