//! Guards of a traced program: what it was made from beside its arguments, to tell when it has become stale.
//!
//! Two kinds. What the trace read of **static arguments** ([`reads`]) is compared with every call that has the same
//! objects: a program that would answer for something else is an error, never a result. What the function **captures**
//! from outside ([`captures`]) is compared under `ferrax.check_captures()` alone, as JAX and its users rely on captured
//! values being those of the trace.
//!
//! Read next: [`super::jit`], which traces under a [`Watch`] and asks [`Guards::check`] when a program is found.

mod captures;
mod reads;
mod seen;

use super::function::Function;
use super::jit_cache::Programs;
use super::statics::Static;
use crate::errors::Class;
pub use captures::Captured;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
pub use reads::is_method;
use reads::{Recording, Row};
use seen::Change;
use std::sync::Arc;

/// Whether `ferrax.check_captures()` is in force; asked only where some setting kept in Python is not at its default.
pub fn checks_captures(py: Python<'_>, config: u64) -> PyResult<bool> {
    if ferrax_base::config::host_number(config) == 0 {
        return Ok(false);
    }
    py.import(intern!(py, "ferrax.config"))?.getattr("check_captures")?.getattr("value")?.is_truthy()
}

/// What a program was made from.
#[derive(Default)]
pub struct Guards {
    /// Reads of static arguments.
    reads: Vec<Arc<Row>>,
    /// Names of the static arguments, and the objects.
    roots: Vec<(String, Py<PyAny>)>,
    captured: Arc<Captured>,
    /// Reads of captured objects, where the program was traced under `check_captures`.
    deep: Option<Vec<Arc<Row>>>,
}

/// Notes what a trace reads, from its beginning to its end.
pub struct Watch {
    statics: Option<Recording>,
    captures: Option<Recording>,
    roots: Vec<(String, Py<PyAny>)>,
}

impl Watch {
    /// Begins, for a call of a function with these static arguments, which `name` names. Under `check_captures`, errors
    /// when some other program of the function has become stale.
    pub fn start(
        py: Python<'_>,
        function: &Function,
        statics: &[Static],
        name: impl Fn(&Static) -> String,
        programs: &Programs,
        config: u64,
    ) -> PyResult<Watch> {
        let roots: Vec<_> = statics.iter().map(|s| (name(s), s.value.clone_ref(py))).collect();
        let mut captures = None;
        if checks_captures(py, config)? {
            programs.entries().iter().try_for_each(|e| e.value.guards.check_captured(py, function))?;
            captures = Some(Recording::start(&captures::objects(function.fun.bind(py))));
        }
        let objects: Vec<_> = statics.iter().map(|s| s.value.bind(py).clone()).collect();
        let statics = (!objects.is_empty()).then(|| Recording::start(&objects));
        Ok(Watch { statics, captures, roots })
    }

    /// What the program was made from.
    pub fn end(self, function: &Bound<'_, PyAny>) -> Guards {
        let py = function.py();
        let reads = self.statics.map(|r| r.end(py)).unwrap_or_default();
        let deep = self.captures.map(|r| r.end(py));
        Guards { reads, roots: self.roots, captured: Arc::new(Captured::of(function)), deep }
    }
}

impl Guards {
    /// What is compared where static arguments are none, and nobody asked for more: what the function captured then.
    pub fn of_captured(captured: Arc<Captured>) -> Guards {
        Guards { captured, ..Guards::default() }
    }

    /// What the function captured.
    pub fn captured(&self) -> Arc<Captured> {
        self.captured.clone()
    }

    /// Bytes of what is kept, about.
    pub fn bytes(&self, py: Python<'_>) -> usize {
        let rows = self.reads.iter().chain(self.deep.iter().flatten());
        rows.map(|row| row.bytes(py)).sum::<usize>() + self.captured.bytes(py)
    }

    /// Whether every call has to ask, because the program was traced under `check_captures`.
    pub fn ask_always(&self) -> bool {
        self.deep.is_some()
    }

    /// Errors when what the program was made from has changed; `statics` are those of the call.
    pub fn check(&self, py: Python<'_>, function: &Function, statics: &[Static]) -> PyResult<()> {
        let same = statics.iter().zip(&self.roots).all(|(s, (_, root))| s.value.is(root));
        if same {
            for row in &self.reads {
                if let Some(change) = row.change(py) {
                    return Err(self.mutated(py, function, row, &change));
                }
            }
            reads::adopt(&self.reads);
        }
        if self.deep.is_some() { self.check_captured(py, function) } else { Ok(()) }
    }

    /// Errors when what the function captures has changed since the program was traced.
    pub fn check_captured(&self, py: Python<'_>, function: &Function) -> PyResult<()> {
        let fun = function.fun.bind(py);
        if let Some((path, change)) = self.captured.change(fun) {
            return Err(stale(py, function, &format!("{path}{}", change.path), &change.what));
        }
        for row in self.deep.iter().flatten() {
            if let Some(change) = row.change(py) {
                let path = row.path(py, self.deep.as_deref().unwrap_or_default(), &[]);
                return Err(stale(py, function, &format!("{path}{}", change.path), &change.what));
            }
        }
        Ok(())
    }

    #[cold]
    fn mutated(&self, py: Python<'_>, function: &Function, row: &Row, change: &Change) -> PyErr {
        let path = row.path(py, &self.reads, &self.roots);
        let holds =
            |root: &str| path == root || path.strip_prefix(root).is_some_and(|rest| rest.starts_with(['.', '[', '\'']));
        let root = self.roots.iter().map(|(name, _)| name.as_str()).find(|name| holds(name));
        PyValueError::new_err(format!(
            "static argument {} of {} was mutated since the function was traced: {path}{} {}. The compiled program has \
             what was read while tracing, and would be stale. Make the class a pytree, or give it __hash__ and __eq__ that \
             see the change, or do not mutate it.",
            root.unwrap_or(&path),
            function.debug.describe(),
            change.path,
            change.what,
        ))
    }
}

#[cold]
fn stale(py: Python<'_>, function: &Function, path: &str, what: &str) -> PyErr {
    let text = format!(
        "{path} {what} since {} was traced, and its compiled program still has what it was. Pass it as an argument, or \
         call clear_cache() of the jitted function after a change.",
        function.debug.describe()
    );
    Class::Capture.error(py, text)
}
