//! Scopes of names for Python: `named_scope` and what reads them. See [`ferrax_base::scopes`].

use ferrax_base::scopes::{self, Kind};
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
        outer => scopes::set(scopes::inside(outer, Kind::Scope, name)),
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
    let kind = |transform| if transform { Kind::Transform } else { Kind::Scope };
    names.iter().fold(1, |outer, (transform, name)| scopes::inside(outer, kind(*transform), name))
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

/// Makes notes for compilers hold, as attributes of StableHLO; gives what [`undo_notes`] takes.
#[pyfunction]
fn set_notes(notes: &str) -> (u32, u32) {
    scopes::set_notes(notes)
}

/// Undoes the notes.
#[pyfunction]
fn undo_notes(before: (u32, u32)) {
    scopes::undo_notes(before);
}

/// As [`enter_scope`], for the one operation that is a composite.
#[pyfunction]
fn enter_composite(attributes: &str) -> u32 {
    match scopes::here() {
        0 => 0,
        outer => scopes::set(scopes::inside(outer, Kind::Composite, attributes)),
    }
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(enter_scope, m)?)?;
    m.add_function(wrap_pyfunction!(set_scope, m)?)?;
    m.add_function(wrap_pyfunction!(scope_of, m)?)?;
    m.add_function(wrap_pyfunction!(present_scopes, m)?)?;
    m.add_function(wrap_pyfunction!(scope_text, m)?)?;
    m.add_function(wrap_pyfunction!(set_notes, m)?)?;
    m.add_function(wrap_pyfunction!(undo_notes, m)?)?;
    m.add_function(wrap_pyfunction!(enter_composite, m)?)
}
