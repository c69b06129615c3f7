//! Static arguments: compared by hash and equality.
//!
//! Read next: [`super::guards`], which keeps what a trace has read of them.

use crate::shorten;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// A static argument as it was when the function was traced.
pub struct Static {
    /// Position or name, for messages.
    pub label: String,
    /// The object.
    pub value: Py<PyAny>,
    /// Python's hash.
    pub hash: isize,
}

impl Static {
    /// Takes a static argument; errors when it cannot be hashed.
    pub fn new(label: String, value: &Bound<'_, PyAny>, function: &str) -> PyResult<Static> {
        let hash = value.hash().map_err(|e| {
            if !e.is_instance_of::<PyTypeError>(value.py()) {
                return e;
            }
            let shown = shorten::repr(value);
            let error = PyValueError::new_err(format!(
                "Non-hashable static arguments are not supported: static argument {label} of the jitted function \
                 {function}, {shown}, cannot be hashed: {}. Static arguments must be hashable and comparable: pass tuples instead \
                 of lists, or let the argument be traced.",
                e.value(value.py())
            ));
            error.set_cause(value.py(), Some(e));
            error
        })?;
        Ok(Static { label, hash, value: value.clone().unbind() })
    }

    fn same(&self, py: Python<'_>, o: &Static) -> PyResult<bool> {
        if self.value.is(&o.value) {
            return Ok(true);
        }
        let (x, y) = (self.value.bind(py), o.value.bind(py));
        if self.hash != o.hash || !x.get_type().is(y.get_type()) {
            return Ok(false);
        }
        x.eq(y).map_err(|e| {
            let error = PyValueError::new_err(format!(
                "static arguments should be comparable using __eq__. Comparing two values of the static argument {}, \
                 both of type {}, failed: {}",
                self.label,
                x.get_type(),
                e.value(py)
            ));
            error.set_cause(py, Some(e));
            error
        })
    }

    /// Whether two static arguments are equal; objects that cannot be compared are not.
    pub fn equals(&self, py: Python<'_>, o: &Static) -> bool {
        self.same(py, o).unwrap_or(false)
    }
}

/// Whether two lists of static arguments are equal.
pub fn same_statics(py: Python<'_>, then: &[Static], now: &[Static]) -> PyResult<bool> {
    if then.len() != now.len() {
        return Ok(false);
    }
    for (a, b) in then.iter().zip(now) {
        if a.label != b.label || !a.same(py, b)? {
            return Ok(false);
        }
    }
    Ok(true)
}
