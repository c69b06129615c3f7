//! Several processes: the coordinator's keys and values as the store by which plugins of the processes find each other.
//!
//! Read next: `python/ferrax/_coordination.py`.

use crate::errors::IntoPyResult;
use ferrax::device;
use ferrax::engine::xla::{self, Store};
use ferrax_base::{Result, error};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::time::Duration;

/// The client of the coordinator.
struct Keys(Py<PyAny>);

/// Whether this process has left: plugins that still ask are not let into Python, which may be ending.
static LEFT: AtomicBool = AtomicBool::new(false);

impl Keys {
    /// Asks the client; a text of an error begins with XLA's code.
    fn ask<T>(&self, ask: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Result<T> {
        let ended = || error!(Runtime, "UNAVAILABLE: this process has left the others");
        if LEFT.load(Acquire) {
            return Err(ended());
        }
        let asked = Python::try_attach(|py| {
            let answer = ask(self.0.bind(py));
            answer.map_err(|e| error!(Runtime, "{}", e.value(py)))
        });
        asked.unwrap_or_else(|| Err(ended()))
    }
}

impl Store for Keys {
    fn get(&self, key: &str, patience: Duration) -> Result<Vec<u8>> {
        let milliseconds = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        self.ask(|client| client.call_method1("blocking_key_value_get_bytes", (key, milliseconds))?.extract())
    }

    fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        match self.ask(|client| client.call_method1("key_value_try_get_bytes", (key,))?.extract()) {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.to_string().starts_with("NOT_FOUND") => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn put(&self, key: &str, value: &[u8]) -> Result<()> {
        self.ask(|client| {
            let value = PyBytes::new(client.py(), value);
            client.call_method1("key_value_set_bytes", (key, value, true)).map(drop)
        })
    }
}

/// Says which process this is of how many, and gives the coordinator's client; `None` for a process alone.
#[pyfunction]
fn set_processes(index: usize, count: usize, client: Option<Py<PyAny>>) {
    let store = client.filter(|_| count > 1).map(|client| Arc::new(Keys(client)) as Arc<dyn Store>);
    LEFT.store(store.is_none(), Release);
    xla::set_processes(store.map(|store| (count, store)));
    device::set_process(index);
}

/// Errors where a plugin runs already, which knows nothing of other processes.
#[pyfunction]
fn require_no_plugin_in_use() -> PyResult<()> {
    xla::require_none().py()
}

/// Waits until no run over several processes goes on here, or for so many seconds; gives whether none does.
#[pyfunction]
fn wait_for_runs(py: Python<'_>, seconds: f64) -> bool {
    let patience = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    py.detach(|| xla::wait_for_runs(patience))
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(require_no_plugin_in_use, m)?)?;
    m.add_function(wrap_pyfunction!(wait_for_runs, m)?)?;
    m.add_function(wrap_pyfunction!(set_processes, m)?)
}
