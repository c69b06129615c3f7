//! Functions that change shapes or make arrays. Read next: `ferrax-ops/src/shape.rs`.

use super::args::integers;
use crate::dtypes::parse;
use crate::errors::IntoPyResult;
use crate::value::{PyValue, ShapeArg};
use ferrax_base::shape::{Tuple, broadcast};
use ferrax_base::{DType, Shape};
use ferrax_ir::Value;
use ferrax_ops as ops;
use ferrax_ops::common::canonical_axis;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

/// Axes of an array of this rank, negative ones counted from the end.
fn axes(object: &Bound<'_, PyAny>, rank: usize) -> PyResult<SmallVec<[usize; 4]>> {
    integers(object, "an axis")?.into_iter().map(|a| canonical_axis(a, rank).py()).collect()
}

/// A dtype argument; `None` stays `None`.
fn dtype(object: Option<&Bound<'_, PyAny>>, asker: &str) -> PyResult<Option<DType>> {
    object.map(|d| parse(d, asker)?.canonical(d.py(), Some(asker))).transpose()
}

/// A shape as a Python tuple.
fn tuple<'py>(py: Python<'py>, shape: &[usize]) -> PyResult<Bound<'py, PyTuple>> {
    crate::symbolic::shape_tuple(py, shape)
}

#[pyfunction]
fn broadcast_in_dim(operand: PyValue, shape: ShapeArg, dims: &Bound<'_, PyAny>) -> PyResult<PyValue> {
    let given = integers(dims, "an element of broadcast_dimensions")?;
    let x = &operand.0;
    if shape.0.len() < x.rank() {
        return Err(PyTypeError::new_err(format!(
            "broadcast_in_dim target broadcast shape must have equal or higher rank to the operand shape; got operand \
             ndim {} and target broadcast ndim {}.",
            x.rank(),
            shape.0.len()
        )));
    }
    if given.len() != x.rank() {
        return Err(PyTypeError::new_err(format!(
            "broadcast_in_dim broadcast_dimensions must have length equal to operand ndim; got broadcast_dimensions \
             {} for operand ndim {}.",
            Tuple(&given),
            x.rank()
        )));
    }
    if let Some(d) = given.iter().find(|&&d| d < 0 || d >= shape.0.len() as i64) {
        return Err(PyTypeError::new_err(format!(
            "broadcast_in_dim broadcast_dimensions must be a subset of output dimensions, got {d} for operand ndim {} \
             and shape {}.",
            x.rank(),
            Tuple(&shape.0)
        )));
    }
    let dims: SmallVec<[usize; 4]> = given.into_iter().map(|d| d as usize).collect();
    if dims.iter().zip(x.shape()).any(|(&d, &n)| n != 1 && n != shape.0[d]) {
        return Err(PyTypeError::new_err(format!(
            "broadcast_in_dim operand dimension sizes must either be 1, or be equal to their corresponding dimensions \
             in the target broadcast shape; got operand of shape {}, target broadcast shape {}, broadcast_dimensions {}",
            Tuple(x.shape()),
            Tuple(&shape.0),
            Tuple(&dims)
        )));
    }
    if dims.is_sorted() {
        return ops::broadcast_in_dim(x, &shape.0, &dims).py().map(PyValue);
    }
    // the operand's axes in the order in which the result has them
    let mut order: SmallVec<[usize; 4]> = (0..dims.len()).collect();
    order.sort_by_key(|&axis| dims[axis]);
    let dims: SmallVec<[usize; 4]> = order.iter().map(|&axis| dims[axis]).collect();
    ops::broadcast_in_dim(&ops::transpose(x, &order).py()?, &shape.0, &dims).py().map(PyValue)
}

/// The operand with axes of these sizes put in front.
#[pyfunction]
fn broadcast_front(operand: PyValue, sizes: ShapeArg) -> PyResult<PyValue> {
    let mut shape = sizes.0.clone();
    shape.extend_from_slice(operand.0.shape());
    let dims: SmallVec<[usize; 4]> = (sizes.0.len()..shape.len()).collect();
    ops::broadcast_in_dim(&operand.0, &shape, &dims).py().map(PyValue)
}

#[pyfunction]
#[pyo3(signature = (*shapes))]
fn broadcast_shapes(py: Python<'_>, shapes: Vec<ShapeArg>) -> PyResult<Bound<'_, PyTuple>> {
    let mut out = Shape::new();
    for s in &shapes {
        out = broadcast(&out, &s.0).ok_or_else(|| {
            let list: Vec<String> = shapes.iter().map(|s| Tuple(&s.0).to_string()).collect();
            let text = format!("Incompatible shapes for broadcasting: shapes=[{}]", list.join(", "));
            PyValueError::new_err(ferrax_base::symbolic::named(text))
        })?;
    }
    tuple(py, &out)
}

#[pyfunction]
#[pyo3(signature = (operand, new_sizes, dimensions=None))]
fn reshape(operand: PyValue, new_sizes: &Bound<'_, PyAny>, dimensions: Option<&Bound<'_, PyAny>>) -> PyResult<PyValue> {
    let sizes = match new_sizes.extract::<i64>() {
        Ok(n) => vec![n],
        Err(_) => integers(new_sizes, "an element of new_sizes")?,
    };
    if sizes.iter().any(|&n| n < 0) {
        let shown = Tuple(&sizes);
        return Err(PyTypeError::new_err(format!("reshape new_sizes must all be positive, got {shown}.")));
    }
    let sizes: Shape = sizes.into_iter().map(|n| n as usize).collect();
    let x = match dimensions {
        Some(perm) => permuted(&operand.0, perm, "reshape dimensions")?,
        None => operand.0,
    };
    ops::reshape(&x, &sizes).py().map(PyValue)
}

fn permuted(x: &Value, permutation: &Bound<'_, PyAny>, what: &str) -> PyResult<Value> {
    let given = integers(permutation, "an element of the permutation")?;
    let mut sorted = given.clone();
    sorted.sort_unstable();
    if given.len() != x.rank() || sorted.iter().enumerate().any(|(i, &d)| d != i as i64) {
        return Err(PyTypeError::new_err(format!(
            "{what} isn't a permutation of operand dimensions, got permutation {} for operand shape {}.",
            crate::shorten::repr(permutation),
            Tuple(x.shape())
        )));
    }
    let perm: SmallVec<[usize; 4]> = given.into_iter().map(|d| d as usize).collect();
    ops::transpose(x, &perm).py()
}

#[pyfunction]
fn transpose(operand: PyValue, permutation: &Bound<'_, PyAny>) -> PyResult<PyValue> {
    permuted(&operand.0, permutation, "transpose permutation").map(PyValue)
}

#[pyfunction]
fn squeeze(array: PyValue, dimensions: &Bound<'_, PyAny>) -> PyResult<PyValue> {
    let mut at = axes(dimensions, array.0.rank())?;
    at.sort_unstable();
    if at.windows(2).any(|w| w[0] == w[1]) {
        return Err(PyValueError::new_err(format!("dimensions are not unique: {}", crate::shorten::repr(dimensions))));
    }
    ops::squeeze(&array.0, &at).py().map(PyValue)
}

#[pyfunction]
fn expand_dims(array: PyValue, dimensions: &Bound<'_, PyAny>) -> PyResult<PyValue> {
    let rank = array.0.rank() + dimensions.len()?;
    let at = axes(dimensions, rank)?;
    if at.iter().enumerate().any(|(i, a)| at[..i].contains(a)) {
        return Err(PyValueError::new_err(format!(
            "repeated axis in lax.expand_dims: {}",
            crate::shorten::repr(dimensions)
        )));
    }
    let at: SmallVec<[i64; 4]> = at.into_iter().map(|a| a as i64).collect();
    ops::expand_dims(&array.0, &at).py().map(PyValue)
}

#[pyfunction]
fn rev(operand: PyValue, dimensions: &Bound<'_, PyAny>) -> PyResult<PyValue> {
    let given = integers(dimensions, "a dimension")?;
    if given.iter().any(|&d| d < 0) {
        return Err(PyTypeError::new_err(format!(
            "rev dimensions must have every element be nonnegative, got {}.",
            crate::shorten::repr(dimensions)
        )));
    }
    let at: SmallVec<[usize; 4]> = given.into_iter().map(|d| d as usize).collect();
    ops::rev(&operand.0, &at).py().map(PyValue)
}

#[pyfunction]
fn collapse(operand: PyValue, start: i64, stop: Option<i64>) -> PyResult<PyValue> {
    let shape = operand.0.shape();
    let rank = shape.len() as i64;
    let clip = |d: i64| (if d < 0 { d + rank } else { d }).clamp(0, rank);
    let (lo, hi) = (clip(start), clip(stop.unwrap_or(rank)));
    if hi < lo {
        let stop = stop.map_or_else(|| "None".into(), |s| s.to_string());
        let text = format!("Invalid dimension range passed to collapse: {}[{start}:{stop}]", Tuple(shape));
        return Err(PyValueError::new_err(text));
    }
    let (lo, hi) = (lo as usize, hi as usize);
    let mut sizes = Shape::from_slice(&shape[..lo]);
    sizes.push(ferrax_base::shape::size(&shape[lo..hi]));
    sizes.extend_from_slice(&shape[hi..]);
    ops::reshape(&operand.0, &sizes).py().map(PyValue)
}

#[pyfunction]
fn tile(operand: PyValue, reps: ShapeArg) -> PyResult<PyValue> {
    let rank = operand.0.rank();
    if reps.0.len() != rank {
        let text =
            format!("reps length must be equal to the ndim of x, got len(reps)={} and x.ndim={rank}.", reps.0.len());
        return Err(PyTypeError::new_err(text));
    }
    ops::tile(&operand.0, &reps.0).py().map(PyValue)
}

#[pyfunction]
fn stack(operands: Vec<PyValue>, axis: i64) -> PyResult<PyValue> {
    let parts: Vec<Value> = operands.into_iter().map(|v| v.0).collect();
    let Some(first) = parts.first() else {
        return Err(PyValueError::new_err("stack requires at least one array"));
    };
    if parts.iter().any(|p| p.rank() != first.rank()) {
        let list: Vec<String> = parts.iter().map(|p| Tuple(p.shape()).to_string()).collect();
        let text = format!("Cannot stack arrays with different numbers of dimensions: got {}.", list.join(", "));
        return Err(PyValueError::new_err(text));
    }
    let axis = canonical_axis(axis, first.rank() + 1).py()?;
    ops::stack(&parts, axis).py().map(PyValue)
}

#[pyfunction]
fn unstack(py: Python<'_>, x: PyValue, axis: i64) -> PyResult<Bound<'_, PyTuple>> {
    let axis = canonical_axis(axis, x.0.rank()).py()?;
    PyTuple::new(py, ops::unstack(&x.0, axis).py()?.into_iter().map(PyValue))
}

#[pyfunction]
#[pyo3(signature = (shape, fill_value, dtype=None))]
fn full(shape: ShapeArg, fill_value: PyValue, dtype: Option<&Bound<'_, PyAny>>) -> PyResult<PyValue> {
    filled(&shape.0, &fill_value.0, self::dtype(dtype, "full")?, false)
}

/// The scalar in every place of an array; its own dtype and weak type when none is given.
fn filled(shape: &[usize], fill: &Value, dtype: Option<DType>, weak: bool) -> PyResult<PyValue> {
    if fill.rank() != 0 {
        let shown = Tuple(fill.shape());
        let text = format!("full must be called with scalar fill_value, got fill_value.shape {shown}.");
        return Err(PyTypeError::new_err(text));
    }
    let fill = match dtype {
        Some(d) => ops::convert_weak(fill, d, weak).py()?,
        None => fill.clone(),
    };
    ops::broadcast_in_dim(&fill, shape, &[]).py().map(PyValue)
}

#[pyfunction]
#[pyo3(signature = (x, fill_value, dtype=None, shape=None))]
fn full_like(
    x: &Bound<'_, PyAny>,
    fill_value: PyValue,
    dtype: Option<&Bound<'_, PyAny>>,
    shape: Option<ShapeArg>,
) -> PyResult<PyValue> {
    let aval = crate::value::abstract_value(x)?;
    let given = self::dtype(dtype, "full_like")?;
    let shape = shape.map_or(aval.shape, |s| s.0);
    let full = filled(&shape, &fill_value.0, Some(given.unwrap_or(aval.dtype)), given.is_none() && aval.weak)?;
    ferrax_ir::manual::widen(&full.0, aval.vary).py().map(PyValue)
}

#[pyfunction]
fn broadcasted_iota(dtype: &Bound<'_, PyAny>, shape: &Bound<'_, PyAny>, dimension: i64) -> PyResult<PyValue> {
    let d = parse(dtype, "iota")?.canonical(dtype.py(), Some("iota"))?;
    let sizes = integers(shape, "an element of a shape")?;
    if sizes.iter().any(|&n| n < 0) {
        let text = format!("iota shape must have every element be nonnegative, got {}.", crate::shorten::repr(shape));
        return Err(PyTypeError::new_err(text));
    }
    let sizes: Shape = sizes.into_iter().map(|n| n as usize).collect();
    let Some(axis) = usize::try_from(dimension).ok().filter(|&a| a < sizes.len()) else {
        return Err(PyValueError::new_err(format!(
            "iota dimension must be between 0 and len(shape), got dimension={dimension} for shape={}",
            Tuple(&sizes)
        )));
    };
    ops::iota(d, &sizes, axis).py().map(PyValue)
}

/// Adds the functions of this family.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(broadcast_in_dim, m)?)?;
    m.add_function(wrap_pyfunction!(broadcast_front, m)?)?;
    m.add_function(wrap_pyfunction!(broadcast_shapes, m)?)?;
    m.add_function(wrap_pyfunction!(reshape, m)?)?;
    m.add_function(wrap_pyfunction!(transpose, m)?)?;
    m.add_function(wrap_pyfunction!(squeeze, m)?)?;
    m.add_function(wrap_pyfunction!(expand_dims, m)?)?;
    m.add_function(wrap_pyfunction!(rev, m)?)?;
    m.add_function(wrap_pyfunction!(collapse, m)?)?;
    m.add_function(wrap_pyfunction!(tile, m)?)?;
    m.add_function(wrap_pyfunction!(stack, m)?)?;
    m.add_function(wrap_pyfunction!(unstack, m)?)?;
    m.add_function(wrap_pyfunction!(full, m)?)?;
    m.add_function(wrap_pyfunction!(full_like, m)?)?;
    m.add_function(wrap_pyfunction!(broadcasted_iota, m)?)
}
