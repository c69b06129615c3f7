//! Operations across named mapped axes; `python/ferrax/lax/parallel.py` maps them over trees.

use crate::errors::IntoPyResult;
use crate::value::PyValue;
use ferrax_ir::trace::named_axis;
use ferrax_ops::collective::{self as ops, AxisNames};
use pyo3::prelude::*;
use std::sync::Arc;

/// Size of a named mapped axis.
#[pyfunction]
fn axis_size(name: &str) -> PyResult<usize> {
    named_axis(name).ok_or_else(|| ops::unbound(name)).py()
}

fn names(names: Vec<String>) -> PyResult<AxisNames> {
    for n in &names {
        axis_size(n)?;
    }
    Ok(AxisNames(names.into_iter().map(Arc::from).collect()))
}

/// The reduction `name` of `x` over mapped axes.
#[pyfunction]
fn reduce_across(name: &str, x: PyValue, axes: Vec<String>) -> PyResult<PyValue> {
    let axes = names(axes)?;
    let reduce = match name {
        "psum" => ops::psum,
        "pmax" => ops::pmax,
        _ => ops::pmin,
    };
    reduce(&x.0, axes).py().map(PyValue)
}

#[pyfunction]
fn all_gather(x: PyValue, name: String, axis: usize, tiled: bool) -> PyResult<PyValue> {
    let axis_size = axis_size(&name)?;
    let params = ops::AllGather { all_gather_dimension: axis, axis_name: names(vec![name])?, axis_size, tiled };
    ops::all_gather(&x.0, params).py().map(PyValue)
}

#[pyfunction]
fn reduce_scatter(x: PyValue, name: String, axis: usize, tiled: bool) -> PyResult<PyValue> {
    let axis_size = axis_size(&name)?;
    let params = ops::Scatter { axis_name: names(vec![name])?, axis_size, scatter_dimension: axis, tiled };
    ops::reduce_scatter(&x.0, params).py().map(PyValue)
}

#[pyfunction]
fn all_to_all(x: PyValue, name: String, split_axis: usize, concat_axis: usize, tiled: bool) -> PyResult<PyValue> {
    let axis_size = axis_size(&name)?;
    let params = ops::AllToAll { axis_name: names(vec![name])?, axis_size, concat_axis, split_axis, tiled };
    ops::all_to_all(&x.0, params).py().map(PyValue)
}

#[pyfunction]
fn ppermute(x: PyValue, name: String, perm: Vec<(usize, usize)>) -> PyResult<PyValue> {
    ops::ppermute(&x.0, ops::Permute { axis_name: names(vec![name])?, perm }).py().map(PyValue)
}

#[pyfunction]
fn pbroadcast(x: PyValue, name: String, source: usize) -> PyResult<PyValue> {
    ops::pbroadcast(&x.0, ops::Broadcast { axis_name: names(vec![name])?, source }).py().map(PyValue)
}

#[pyfunction]
fn axis_index(name: &str) -> PyResult<PyValue> {
    axis_size(name)?;
    ops::axis_index(name.into()).py().map(PyValue)
}

/// Adds the functions of this family.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(axis_size, m)?)?;
    m.add_function(wrap_pyfunction!(reduce_across, m)?)?;
    m.add_function(wrap_pyfunction!(all_gather, m)?)?;
    m.add_function(wrap_pyfunction!(reduce_scatter, m)?)?;
    m.add_function(wrap_pyfunction!(all_to_all, m)?)?;
    m.add_function(wrap_pyfunction!(ppermute, m)?)?;
    m.add_function(wrap_pyfunction!(pbroadcast, m)?)?;
    m.add_function(wrap_pyfunction!(axis_index, m)?)
}
