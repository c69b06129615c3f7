//! Static arguments: compared by hash and equality, and guarded against mutation.
//!
//! An object whose class hashes by identity is also compared attribute by attribute with what it was when the
//! function was traced: a stale program is an error, never a result.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A static argument as it was when the function was traced.
pub struct Static {
    /// Position or name, for messages.
    pub label: String,
    /// The object.
    pub value: Py<PyAny>,
    /// Python's hash.
    pub hash: isize,
    /// Attributes of an object that is hashed by identity.
    attributes: Option<Vec<(String, Py<PyAny>)>>,
}

impl Static {
    /// Takes a static argument; errors when it cannot be hashed.
    pub fn new(label: String, value: &Bound<'_, PyAny>, function: &str) -> PyResult<Static> {
        let hash = value.hash().map_err(|e| {
            let shown = value.repr().map_or_else(|_| "?".to_owned(), |r| r.to_string());
            let error = PyValueError::new_err(format!(
                "Non-hashable static arguments are used in a jitted function: static argument {label} of {function}, \
                 {shown:.100}, cannot be hashed: {}. Static arguments must be hashable and comparable: pass tuples instead \
                 of lists, or let the argument be traced.",
                e.value(value.py())
            ));
            error.set_cause(value.py(), Some(e));
            error
        })?;
        Ok(Static { label, hash, attributes: None, value: value.clone().unbind() })
    }

    fn same(&self, py: Python<'_>, o: &Static) -> PyResult<bool> {
        if self.value.is(&o.value) {
            return Ok(true);
        }
        let (x, y) = (self.value.bind(py), o.value.bind(py));
        Ok(self.hash == o.hash && x.get_type().is(y.get_type()) && x.eq(y)?)
    }

    /// Whether two static arguments are equal; objects that cannot be compared are not.
    pub fn equals(&self, py: Python<'_>, o: &Static) -> bool {
        self.same(py, o).unwrap_or(false)
    }

    /// Keeps the attributes of an object that is hashed by identity.
    pub fn keep_attributes(&mut self, py: Python<'_>) -> PyResult<()> {
        self.attributes = attributes(self.value.bind(py))?;
        Ok(())
    }

    /// Errors when the traced object has changed since.
    pub fn check(&self, now: &Bound<'_, PyAny>, function: &str) -> PyResult<()> {
        let py = now.py();
        let Some(then) = &self.attributes else { return Ok(()) };
        let Some(current) = attributes(now)? else { return Ok(()) };
        let fail = |what: String| {
            Err(PyValueError::new_err(format!(
                "static argument {} of {function} was mutated since the function was traced: {what}. A static argument \
                 is compared by identity here, so the compiled program would be stale. Make the class a pytree, or give \
                 it __hash__ and __eq__ and do not mutate it.",
                self.label
            )))
        };
        for (name, old) in then {
            let Some((_, new)) = current.iter().find(|(n, _)| n == name) else {
                return fail(format!("attribute {name} was removed"));
            };
            if !old.is(new) && !same(old.bind(py), new.bind(py)) {
                let (a, b) = (old.bind(py).repr()?, new.bind(py).repr()?);
                return fail(format!("attribute {name} changed from {a} to {b}"));
            }
        }
        match current.iter().find(|(n, _)| !then.iter().any(|(m, _)| m == n)) {
            Some((name, _)) => fail(format!("attribute {name} was added")),
            None => Ok(()),
        }
    }
}

fn same(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> bool {
    a.eq(b).unwrap_or(false)
}

/// The instance attributes of an object whose class hashes by identity.
fn attributes(value: &Bound<'_, PyAny>) -> PyResult<Option<Vec<(String, Py<PyAny>)>>> {
    // SAFETY: reading type slots of a live object.
    let by_identity = unsafe {
        let class = pyo3::ffi::Py_TYPE(value.as_ptr());
        let object = &raw mut pyo3::ffi::PyBaseObject_Type;
        (*class).tp_hash.map(|f| f as usize) == (*object).tp_hash.map(|f| f as usize)
    };
    if !by_identity {
        return Ok(None);
    }
    let Some(dict) = value.getattr_opt("__dict__")? else { return Ok(None) };
    let Ok(dict) = dict.cast::<PyDict>() else { return Ok(None) };
    dict.iter().map(|(k, v)| Ok((k.extract()?, v.unbind()))).collect::<PyResult<Vec<_>>>().map(Some)
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
