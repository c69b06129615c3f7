//! What `jit` remembers: traced programs by the signature of a call.
//!
//! A signature is the structure of the arguments, the avals of the leaves, the static arguments and the settings
//! that change tracing. Lookups compare everything; a hash collision costs time, never a wrong program. Static
//! arguments that are hashed by identity are also compared attribute by attribute with what they were when traced.

use crate::tree::TreeDef;
use ferrax::executable::Executable;
use ferrax_base::{Aval, Result};
use ferrax_ir::{JaxprRef, Value};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock};

/// A static argument as it was when the function was traced.
pub struct Static {
    /// Position or name, for messages.
    pub label: String,
    /// The object.
    pub value: Py<PyAny>,
    hash: isize,
    /// Attributes of an object that is hashed by identity.
    attributes: Option<Vec<(String, Py<PyAny>)>>,
}

impl Static {
    /// Takes a static argument; errors when it cannot be hashed.
    pub fn new(label: String, value: &Bound<'_, PyAny>, function: &str) -> PyResult<Static> {
        let hash = value.hash().map_err(|e| {
            let kind = value.get_type().name().map_or_else(|_| "?".to_owned(), |n| n.to_string());
            let error = PyValueError::new_err(format!(
                "Non-hashable static arguments are used in a jitted function: static argument {label} of {function} has \
                 the unhashable type {kind}. Static arguments must be hashable and comparable: pass a tuple instead of a \
                 list, or let the argument be traced."
            ));
            error.set_cause(value.py(), Some(e));
            error
        })?;
        Ok(Static { label, hash, attributes: None, value: value.clone().unbind() })
    }

    /// Keeps the attributes of an object that is hashed by identity.
    fn keep_attributes(&mut self, py: Python<'_>) -> PyResult<()> {
        self.attributes = attributes(self.value.bind(py))?;
        Ok(())
    }

    /// Errors when the traced object has changed since.
    fn check(&self, now: &Bound<'_, PyAny>, function: &str) -> PyResult<()> {
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

/// What a call looks like from outside.
pub struct Signature {
    /// Structure of the dynamic arguments; `None` when all are positional leaves.
    pub tree: Option<TreeDef>,
    /// Avals of the leaves.
    pub avals: SmallVec<[Aval; 4]>,
    /// Static arguments.
    pub statics: Vec<Static>,
    /// Settings in force.
    pub config: u64,
}

/// A traced program.
pub struct Entry {
    signature: Signature,
    /// The program.
    pub jaxpr: JaxprRef,
    /// Structure of the result.
    pub out_tree: TreeDef,
    /// The result is one leaf.
    pub single: bool,
    /// Which leaves are donated; empty when none is.
    pub donate: Vec<bool>,
    executable: OnceLock<Arc<Executable>>,
}

impl Entry {
    /// A fresh entry.
    pub fn new(
        py: Python<'_>,
        mut signature: Signature,
        jaxpr: JaxprRef,
        out_tree: TreeDef,
        donate: Vec<bool>,
    ) -> PyResult<Entry> {
        for s in &mut signature.statics {
            s.keep_attributes(py)?;
        }
        let single = out_tree.is_leaf();
        Ok(Entry { signature, jaxpr, out_tree, single, donate, executable: OnceLock::new() })
    }

    /// The compiled program.
    pub fn executable(&self) -> Result<&Arc<Executable>> {
        if let Some(e) = self.executable.get() {
            return Ok(e);
        }
        let made = ferrax::executable::executable(&self.jaxpr)?;
        Ok(self.executable.get_or_init(|| made))
    }
}

/// Counters of a jitted function's cache.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Calls that found their program.
    pub hits: usize,
    /// Calls that traced.
    pub misses: usize,
    /// Programs kept.
    pub entries: usize,
}

#[derive(Default)]
struct Table {
    entries: FxHashMap<u64, SmallVec<[Arc<Entry>; 1]>>,
    counts: Counts,
}

/// The programs of one jitted function.
#[derive(Default)]
pub struct JitCache(Mutex<Table>);

/// Hash of a signature's parts.
pub fn hash(
    py: Python<'_>,
    tree: Option<&TreeDef>,
    values: &[Value],
    statics: &[Static],
    config: u64,
) -> PyResult<u64> {
    let mut h = FxHasher::default();
    if let Some(t) = tree {
        t.hash(py)?.hash(&mut h);
    }
    for v in values {
        (v.dtype() as u8, v.weak(), v.shape()).hash(&mut h);
    }
    for s in statics {
        s.hash.hash(&mut h);
    }
    config.hash(&mut h);
    Ok(h.finish())
}

impl JitCache {
    fn lock(&self) -> std::sync::MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The program for a call, if there is one; errors when a static argument was mutated since.
    pub fn find(
        &self,
        py: Python<'_>,
        hash: u64,
        tree: Option<&TreeDef>,
        values: &[Value],
        statics: &[Static],
        config: u64,
        function: &str,
    ) -> PyResult<Option<Arc<Entry>>> {
        let candidates: SmallVec<[Arc<Entry>; 1]> = match self.lock().entries.get(&hash) {
            Some(found) => found.clone(),
            None => return Ok(None),
        };
        for entry in candidates {
            let s = &entry.signature;
            if s.config == config
                && same_tree(py, s.tree.as_ref(), tree)?
                && same_avals(&s.avals, values)
                && same_statics(py, &s.statics, statics)?
            {
                for (then, now) in s.statics.iter().zip(statics) {
                    then.check(now.value.bind(py), function)?;
                }
                self.lock().counts.hits += 1;
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Keeps a program.
    pub fn insert(&self, hash: u64, entry: Arc<Entry>) {
        let mut table = self.lock();
        table.entries.entry(hash).or_default().push(entry);
        table.counts.entries += 1;
    }

    /// Counts a call that traced.
    pub fn missed(&self) {
        self.lock().counts.misses += 1;
    }

    /// Counters.
    pub fn counts(&self) -> Counts {
        self.lock().counts
    }

    /// Forgets everything.
    pub fn clear(&self) {
        *self.lock() = Table::default();
    }
}

fn same_tree(py: Python<'_>, a: Option<&TreeDef>, b: Option<&TreeDef>) -> PyResult<bool> {
    match (a, b) {
        (None, None) => Ok(true),
        (Some(a), Some(b)) => a.equals(py, b),
        _ => Ok(false),
    }
}

#[inline]
fn same_avals(avals: &[Aval], values: &[Value]) -> bool {
    avals.len() == values.len()
        && avals
            .iter()
            .zip(values)
            .all(|(a, v)| a.dtype == v.dtype() && a.weak == v.weak() && a.shape.as_slice() == v.shape())
}

fn same_statics(py: Python<'_>, then: &[Static], now: &[Static]) -> PyResult<bool> {
    if then.len() != now.len() {
        return Ok(false);
    }
    for (a, b) in then.iter().zip(now) {
        if a.label != b.label {
            return Ok(false);
        }
        if a.value.is(&b.value) {
            continue;
        }
        let (x, y) = (a.value.bind(py), b.value.bind(py));
        if a.hash != b.hash || !x.get_type().is(y.get_type()) || !x.eq(y)? {
            return Ok(false);
        }
    }
    Ok(true)
}
