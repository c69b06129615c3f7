//! The iterator over an array's first axis.
//!
//! Read next: `array.rs`, whose `__iter__` makes it.

use crate::array::{PyArray, wrap_array};
use crate::host;
use ferrax_ir::Value;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Iterates over an array's first axis.
#[pyclass(frozen, module = "ferrax", name = "_Rows")]
pub struct Rows {
    pub of: Py<PyArray>,
    /// The number of the next one.
    pub next: AtomicUsize,
}

#[pymethods]
impl Rows {
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let of = self.of.bind(py);
        let i = self.next.fetch_add(1, Ordering::Relaxed);
        if i >= of.get().value.shape()[0] {
            return Ok(None);
        }
        match &of.get().value {
            Value::Array(a) if ferrax_ir::trace::is_eager() => wrap_array(py, host::row(a, i)?).map(Some),
            _ => of.as_any().get_item(i).map(Some),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.of)
    }

    fn __length_hint__(&self, py: Python<'_>) -> usize {
        let done = self.next.load(Ordering::Relaxed);
        self.of.bind(py).get().value.shape()[0].saturating_sub(done)
    }
}
