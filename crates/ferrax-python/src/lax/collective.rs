//! Operations across named mapped axes; `python/ferrax/lax/parallel.py` maps them over trees.

use crate::errors::IntoPyResult;
use crate::value::PyValue;
use ferrax_base::Result;
use ferrax_ir::trace::{AxisGuard, base, named_axis};
use ferrax_ops::collective::{self as ops, AxisNames};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::Arc;

/// Size of a named mapped axis, for an operation along it.
#[pyfunction]
#[pyo3(signature = (name, operation="axis_size"))]
fn axis_size(name: &str, operation: &str) -> PyResult<usize> {
    size_of(name, operation)
}

fn size_of(name: &str, operation: &str) -> PyResult<usize> {
    named_axis(name).ok_or_else(|| ops::unbound(name, operation)).py()
}

/// Calls a function that is staged, with named axes of these sizes in force that no transformation maps over:
/// operations across them stay in the program.
#[pyfunction]
fn with_axes<'py>(axes: Vec<(String, usize)>, fun: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let staging = base().ok_or_else(|| PyRuntimeError::new_err("named axes without a map need a program to be in"))?;
    let enter = |(name, size): (String, usize)| AxisGuard::enter(Arc::from(name), size, 0, staging.clone());
    let mut guards = axes.into_iter().map(enter).collect::<Result<Vec<AxisGuard>>>().py()?;
    let out = fun.call0();
    while guards.pop().is_some() {} // the innermost first
    out
}

fn names(names: Vec<String>, operation: &str) -> PyResult<AxisNames> {
    for n in &names {
        size_of(n, operation)?;
    }
    Ok(AxisNames(names.into_iter().map(Arc::from).collect()))
}

/// The reduction `name` of `x` over mapped axes.
#[pyfunction]
fn reduce_across(name: &str, x: PyValue, axes: Vec<String>) -> PyResult<PyValue> {
    let axes = names(axes, name)?;
    let reduce = match name {
        "psum" => ops::psum,
        "pmax" => ops::pmax,
        _ => ops::pmin,
    };
    reduce(&x.0, axes).py().map(PyValue)
}

#[pyfunction]
fn all_gather(x: PyValue, name: String, axis: usize, tiled: bool) -> PyResult<PyValue> {
    let axis_size = size_of(&name, "all_gather")?;
    let params =
        ops::AllGather { all_gather_dimension: axis, axis_name: names(vec![name], "all_gather")?, axis_size, tiled };
    ops::all_gather(&x.0, params).py().map(PyValue)
}

#[pyfunction]
fn reduce_scatter(x: PyValue, name: String, axis: usize, tiled: bool) -> PyResult<PyValue> {
    let axis_size = size_of(&name, "reduce_scatter")?;
    let params =
        ops::Scatter { axis_name: names(vec![name], "reduce_scatter")?, axis_size, scatter_dimension: axis, tiled };
    ops::reduce_scatter(&x.0, params).py().map(PyValue)
}

#[pyfunction]
fn all_to_all(x: PyValue, name: String, split_axis: usize, concat_axis: usize, tiled: bool) -> PyResult<PyValue> {
    let axis_size = size_of(&name, "all_to_all")?;
    let params =
        ops::AllToAll { axis_name: names(vec![name], "all_to_all")?, axis_size, concat_axis, split_axis, tiled };
    ops::all_to_all(&x.0, params).py().map(PyValue)
}

#[pyfunction]
fn ppermute(x: PyValue, name: String, perm: Vec<(usize, usize)>) -> PyResult<PyValue> {
    ops::ppermute(&x.0, ops::Permute { axis_name: names(vec![name], "ppermute")?, perm }).py().map(PyValue)
}

#[pyfunction]
fn pbroadcast(x: PyValue, name: String, source: usize) -> PyResult<PyValue> {
    ops::pbroadcast(&x.0, ops::Broadcast { axis_name: names(vec![name], "ppermute")?, source }).py().map(PyValue)
}

#[pyfunction]
fn axis_index(name: &str) -> PyResult<PyValue> {
    size_of(name, "axis_index")?;
    ops::axis_index(name.into()).py().map(PyValue)
}

/// Adds the functions of this family.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(axis_size, m)?)?;
    m.add_function(wrap_pyfunction!(with_axes, m)?)?;
    m.add_function(wrap_pyfunction!(reduce_across, m)?)?;
    m.add_function(wrap_pyfunction!(all_gather, m)?)?;
    m.add_function(wrap_pyfunction!(reduce_scatter, m)?)?;
    m.add_function(wrap_pyfunction!(all_to_all, m)?)?;
    m.add_function(wrap_pyfunction!(ppermute, m)?)?;
    m.add_function(wrap_pyfunction!(pbroadcast, m)?)?;
    m.add_function(wrap_pyfunction!(axis_index, m)?)
}
