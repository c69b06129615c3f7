//! Scopes of names for Python: `named_scope` and what reads them. See [`ferrax_base::scopes`].

use ferrax_base::scopes;
use pyo3::prelude::*;

/// Names of a scope from the outermost on, and whether each is a transformation's.
pub fn listed(scope: u32) -> Vec<(bool, String)> {
    scopes::names(scope).into_iter().map(|(transform, name)| (transform, name.to_string())).collect()
}

/// Starts a scope inside the present one; gives the present one, to be set again. Nothing where no program is recorded.
#[pyfunction]
fn enter_scope(name: &str) -> u32 {
    match scopes::here() {
        0 => 0,
        outer => scopes::set(scopes::inside(outer, false, name)),
    }
}

/// Makes this the present scope; gives the one before.
#[pyfunction]
fn set_scope(scope: u32) -> u32 {
    scopes::set(scope)
}

/// The number of scopes with these names inside one another.
#[pyfunction]
fn scope_of(names: Vec<(bool, String)>) -> u32 {
    names.iter().fold(1, |outer, (transform, name)| scopes::inside(outer, *transform, name))
}

/// Names of the present scope.
#[pyfunction]
fn present_scopes() -> Vec<(bool, String)> {
    listed(scopes::here())
}

/// Names as one text.
#[pyfunction]
fn scope_text(names: Vec<(bool, String)>) -> String {
    scopes::text(&names)
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(enter_scope, m)?)?;
    m.add_function(wrap_pyfunction!(set_scope, m)?)?;
    m.add_function(wrap_pyfunction!(scope_of, m)?)?;
    m.add_function(wrap_pyfunction!(present_scopes, m)?)?;
    m.add_function(wrap_pyfunction!(scope_text, m)?)
}
