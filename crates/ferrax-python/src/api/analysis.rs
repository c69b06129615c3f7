//! What is known of a program before and after it is compiled: texts, counts of its work, bytes of a run.
//!
//! `python/ferrax/_stages.py` gives them to users.

use crate::api::jaxpr::PyClosed;
use crate::devices;
use crate::errors::IntoPyResult;
use ferrax::executable::{Executable, executable};
use ferrax_base::scopes;
use ferrax_ir::DeviceId;
use pyo3::prelude::*;

/// The kernels that a program runs as, in text, on operands at these places; on the default device if none are given.
#[pyfunction]
fn kernels_text(jaxpr: &PyClosed, places: Vec<Bound<'_, PyAny>>) -> PyResult<String> {
    executable(jaxpr.jaxpr()).py()?.kernels(&parsed(&places)?).py()
}

fn parsed(places: &[Bound<'_, PyAny>]) -> PyResult<Vec<Option<DeviceId>>> {
    places.iter().map(devices::parse).collect()
}

/// A program as StableHLO, with the memory of these arguments donated, its notes for compilers as comments, and the names
/// and lines that it comes from if asked.
#[pyfunction]
fn stablehlo_text(jaxpr: &PyClosed, donate: Vec<bool>, placed: bool) -> PyResult<String> {
    if placed || scopes::any_notes() || jaxpr.jaxpr().avals.iter().any(|a| a.spread != 0) {
        return Executable::placed_stablehlo(jaxpr.jaxpr(), &donate, placed).py();
    }
    executable(jaxpr.jaxpr()).py()?.stablehlo(&donate).py()
}

/// Operations, transcendental functions and bytes of a program.
#[pyfunction]
fn work(jaxpr: &PyClosed) -> PyResult<(f64, f64, f64)> {
    let work = executable(jaxpr.jaxpr()).py()?.work();
    Ok((work.flops, work.transcendentals, work.bytes))
}

/// Bytes of a run on operands at these places, as for `kernels_text`: arguments, results, those of the results that donated
/// arguments give, temporary ones where known.
#[pyfunction]
fn memory_use(
    jaxpr: &PyClosed,
    places: Vec<Bound<'_, PyAny>>,
    donate: Vec<bool>,
) -> PyResult<(usize, usize, usize, Option<usize>)> {
    let used = executable(jaxpr.jaxpr()).py()?.memory(&parsed(&places)?, &donate).py()?;
    Ok((used.arguments, used.results, used.donated, used.temporary))
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(kernels_text, m)?)?;
    m.add_function(wrap_pyfunction!(stablehlo_text, m)?)?;
    m.add_function(wrap_pyfunction!(work, m)?)?;
    m.add_function(wrap_pyfunction!(memory_use, m)?)
}
