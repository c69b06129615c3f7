//! What is known of a program before and after it is compiled: texts, counts of its work, bytes of a run.
//!
//! `python/ferrax/_stages.py` gives them to users.

use crate::api::jaxpr::PyClosed;
use crate::errors::IntoPyResult;
use ferrax::executable::{Executable, executable};
use ferrax_base::scopes;
use pyo3::prelude::*;

/// The kernels that a program runs as, in text.
#[pyfunction]
fn kernels_text(jaxpr: &PyClosed) -> PyResult<String> {
    executable(jaxpr.jaxpr()).py()?.kernels().py()
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

/// Bytes of a run: arguments, results, those of the results that donated arguments give, temporary ones where known.
#[pyfunction]
fn memory_use(jaxpr: &PyClosed, donate: Vec<bool>) -> PyResult<(usize, usize, usize, Option<usize>)> {
    let used = executable(jaxpr.jaxpr()).py()?.memory(&donate).py()?;
    Ok((used.arguments, used.results, used.donated, used.temporary))
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(kernels_text, m)?)?;
    m.add_function(wrap_pyfunction!(stablehlo_text, m)?)?;
    m.add_function(wrap_pyfunction!(work, m)?)?;
    m.add_function(wrap_pyfunction!(memory_use, m)?)
}
