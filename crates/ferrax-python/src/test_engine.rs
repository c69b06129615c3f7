//! The engine for tests (`tests/engine`), where the environment asks for it: see there. Extensions that users get are
//! built without it.

use crate::errors::IntoPyResult;
use ferrax_interpreter::faults::{self, Point};
use ferrax_interpreter::memory;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::time::Duration;

fn point(name: &str) -> PyResult<Point> {
    faults::named(name).ok_or_else(|| PyValueError::new_err(format!("there is no point {name}")))
}

/// Has a point of the engine fail once, after it was passed so many times.
#[pyfunction]
fn _inject_fault(at: &str, after: u32) -> PyResult<()> {
    faults::inject(point(at)?, after);
    Ok(())
}

/// Takes a fault back; says whether it had not happened yet.
#[pyfunction]
fn _withdraw_fault(at: &str) -> PyResult<bool> {
    Ok(faults::withdraw(point(at)?))
}

/// Has every node of a run take this many seconds longer.
#[pyfunction]
fn _delay_nodes(seconds: f64) {
    faults::delay(Duration::from_secs_f64(seconds));
}

/// Bytes in the memory of all devices.
#[pyfunction]
fn _bytes_in_use() -> usize {
    memory::in_use()
}

/// Registers the engine and adds the functions, where the environment asks for it.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    if std::env::var_os("FERRAX_TEST_ENGINE").is_none() {
        return Ok(());
    }
    ferrax_interpreter::install_from_environment().py()?;
    m.add_function(wrap_pyfunction!(_inject_fault, m)?)?;
    m.add_function(wrap_pyfunction!(_withdraw_fault, m)?)?;
    m.add_function(wrap_pyfunction!(_delay_nodes, m)?)?;
    m.add_function(wrap_pyfunction!(_bytes_in_use, m)?)
}
