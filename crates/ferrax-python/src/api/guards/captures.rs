//! What a function captures: globals, closure variables and default arguments of it and of the functions that it names.
//!
//! The names are read off the bytecode, with the attributes that follow at once (`config.scale`), so that looking takes
//! no code of the user's and about a microsecond a function. Nothing that could hold the function itself is kept alive:
//! a captured object is held weakly unless it is a number, a text or an array of ours.
//!
//! Read next: [`super::Guards`] for when captured values are compared.

use super::reads;
use super::seen::{Change, Keep, Seen, look};
use crate::api::function::Partial;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyFunction, PyModule, PyString, PyTuple, PyType};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Functions that are looked through at most, and values that are looked at.
const FUNCTIONS: usize = 32;
const VALUES: usize = 512;

/// What was captured, by how the function's source names it.
#[derive(Default)]
pub struct Captured(Vec<(String, Seen)>);

impl Captured {
    /// Looks at what a function captures now.
    pub fn of(function: &Bound<'_, PyAny>) -> Captured {
        let mut rows = Vec::new();
        walk(function, &mut |path, value| rows.push((path, look(value, Keep::Weakly))));
        Captured(rows)
    }

    /// Bytes of what is kept, about.
    pub fn bytes(&self, py: Python<'_>) -> usize {
        self.0.iter().map(|(path, seen)| path.len() + seen.bytes(py)).sum()
    }

    /// What is different now, and its name.
    pub fn change(&self, function: &Bound<'_, PyAny>) -> Option<(String, Change)> {
        let mut found = None;
        walk(function, &mut |path, value| {
            if found.is_none() {
                let row = self.0.iter().find(|(p, _)| *p == path);
                found = row.and_then(|(_, seen)| seen.change(value)).map(|change| (path, change));
            }
        });
        found
    }
}

/// The objects that a function captures.
pub fn objects<'py>(function: &Bound<'py, PyAny>) -> Vec<Bound<'py, PyAny>> {
    let mut found = Vec::new();
    walk(function, &mut |_, value| found.push(value.clone()));
    found
}

type Visit<'a, 'py> = &'a mut dyn FnMut(String, &Bound<'py, PyAny>);

/// A function to look through, and the object that it is a method of.
type Todo<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>);

/// Visits what a function captures, with its name; always in the same order.
fn walk<'py>(function: &Bound<'py, PyAny>, visit: Visit<'_, 'py>) {
    let mut left = VALUES;
    let mut seen = FxHashSet::default();
    let mut queue = VecDeque::new();
    let mut named = FxHashSet::default();
    let visit: Visit<'_, 'py> = &mut |path, value| {
        if named.insert(path.clone()) {
            visit(path, value);
        }
    };
    enqueue(function, &mut queue);
    while let Some((function, bound)) = queue.pop_front() {
        if seen.len() < FUNCTIONS && seen.insert(function.as_ptr() as usize) {
            // What cannot be looked through captures nothing that is known.
            let _ = look_through(&function, bound.as_ref(), &mut queue, &mut left, visit);
        }
    }
}

/// Puts the Python function behind a callable into the queue.
fn enqueue<'py>(callable: &Bound<'py, PyAny>, queue: &mut VecDeque<Todo<'py>>) {
    let py = callable.py();
    let mut callable = callable.clone();
    let mut bound = None;
    for _ in 0..16 {
        let part = |name: &Bound<'py, PyString>| callable.getattr_opt(name).ok().flatten();
        let next = if callable.is_instance_of::<PyFunction>() {
            if is_users(&callable) {
                queue.push_back((callable, bound));
            }
            return;
        } else if reads::is_method(&callable) {
            bound = part(intern!(py, "__self__"));
            part(intern!(py, "__func__"))
        } else if let Some(partial) = Partial::of(&callable) {
            Some(partial.func)
        } else if reads::is_of_class(&callable) {
            bound = Some(callable.clone());
            callable.get_type().getattr(intern!(py, "__call__")).ok()
        } else {
            part(intern!(py, "__wrapped__"))
        };
        match next {
            Some(inner) => callable = inner,
            None => return,
        }
    }
}

/// Whether a function or module is neither ours nor Python's nor NumPy's.
fn is_users(object: &Bound<'_, PyAny>) -> bool {
    static STANDARD: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = object.py();
    let name = if object.is_instance_of::<PyModule>() { intern!(py, "__name__") } else { intern!(py, "__module__") };
    let Ok(Ok(name)) = object.getattr(name).map(|n| n.extract::<String>()) else { return true };
    let first = name.split('.').next().unwrap_or_default();
    if matches!(first, "ferrax" | "numpy") {
        return false;
    }
    let standard = STANDARD.get_or_try_init(py, || py.import("sys")?.getattr("stdlib_module_names").map(Bound::unbind));
    first == "__main__" || !standard.is_ok_and(|names| names.bind(py).contains(first).unwrap_or(false))
}

fn look_through<'py>(
    function: &Bound<'py, PyAny>,
    bound: Option<&Bound<'py, PyAny>>,
    queue: &mut VecDeque<Todo<'py>>,
    left: &mut usize,
    visit: Visit<'_, 'py>,
) -> PyResult<()> {
    let py = function.py();
    let name = function.getattr(intern!(py, "__name__"))?.to_string();
    let globals = function.getattr(intern!(py, "__globals__"))?.cast_into::<PyDict>()?;
    let code = function.getattr(intern!(py, "__code__"))?;
    for reference in parsed(&code, bound.is_some())?.iter() {
        let (first, path) = match &reference.name {
            Name::Global(name) => (globals.get_item(name)?, format!("global {name}")),
            Name::Free(variable) => {
                let free = code.getattr(intern!(py, "co_freevars"))?.cast_into::<PyTuple>()?;
                let Ok(i) = free.index(variable) else { continue };
                (reads::cell(function, i).ok(), format!("closure variable {variable} of {name}"))
            }
            Name::Bound => (bound.cloned(), code.getattr(intern!(py, "co_varnames"))?.get_item(0)?.to_string()),
        };
        if let Some(value) = first {
            follow(value, path, &reference.attributes, queue, left, visit);
        }
    }
    for which in ["__defaults__", "__kwdefaults__"] {
        let value = function.getattr(which)?;
        if !value.is_none() {
            visit(format!("default arguments of {name}"), &value);
        }
    }
    Ok(())
}

/// Visits a value and the attributes that are read of it.
fn follow<'py>(
    mut value: Bound<'py, PyAny>,
    mut path: String,
    attributes: &[Py<PyString>],
    queue: &mut VecDeque<Todo<'py>>,
    left: &mut usize,
    visit: Visit<'_, 'py>,
) {
    for attribute in attributes.iter().map(Some).chain([None]) {
        if *left == 0 || ((value.is_instance_of::<PyModule>() || value.is_callable()) && !is_users(&value)) {
            return;
        }
        *left -= 1;
        visit(path.clone(), &value);
        if value.is_callable() && !value.is_instance_of::<PyType>() {
            enqueue(&value, queue);
        }
        let Some(attribute) = attribute else { return };
        let attribute = attribute.bind(value.py());
        let Some(next) = reads::plain_attribute(&value, attribute) else { return };
        path = format!("{path}.{attribute}");
        value = next;
    }
}

/// What a reference of bytecode begins with.
#[derive(PartialEq)]
enum Name {
    Global(String),
    Free(String),
    /// The object that a method is bound to.
    Bound,
}

/// A name that code reads, and the attributes that it reads of it at once.
struct Reference {
    name: Name,
    attributes: Vec<Py<PyString>>,
}

/// What pieces of code read, by their addresses; the objects are kept, so that an address stands for one piece.
type Parsed = FxHashMap<(usize, bool), (Py<PyAny>, Arc<[Reference]>)>;

static PARSED: Mutex<Option<Parsed>> = Mutex::new(None);

/// Pieces of code beyond this number are forgotten, all at once.
const KEPT: usize = 1024;

/// What code reads; parsed once.
fn parsed(code: &Bound<'_, PyAny>, bound: bool) -> PyResult<Arc<[Reference]>> {
    let key = (code.as_ptr() as usize, bound);
    let lock = || PARSED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, found)) = lock().as_ref().and_then(|table| table.get(&key)) {
        return Ok(found.clone());
    }
    let made: Arc<[Reference]> = references(code, bound, 3)?.into();
    let mut table = lock();
    let table = table.get_or_insert_default();
    let forgotten = if table.len() >= KEPT { std::mem::take(table) } else { Parsed::default() };
    table.insert(key, (code.clone().unbind(), made.clone()));
    drop(forgotten);
    Ok(made)
}

/// The instructions that are looked for; their numbers differ between versions of Python.
struct Instructions {
    global: u8,
    name: u8,
    free: u8,
    fast: u8,
    store_global: u8,
    store_free: u8,
    attribute: u8,
    method: Option<u8>,
    extended: u8,
    cache: Option<u8>,
    /// Bits of the argument below the index of an attribute's name.
    attribute_bits: u32,
}

fn instructions(py: Python<'_>) -> PyResult<&'static Instructions> {
    static FOUND: PyOnceLock<Instructions> = PyOnceLock::new();
    FOUND.get_or_try_init(py, || {
        let numbers = py.import("opcode")?.getattr("opmap")?.cast_into::<PyDict>()?;
        let maybe = |name: &str| numbers.get_item(name)?.map(|n| n.extract::<u8>()).transpose();
        let number = |name: &str| Ok::<u8, PyErr>(maybe(name)?.unwrap_or(u8::MAX));
        Ok(Instructions {
            global: number("LOAD_GLOBAL")?,
            name: number("LOAD_NAME")?,
            free: number("LOAD_DEREF")?,
            fast: number("LOAD_FAST")?,
            store_global: number("STORE_GLOBAL")?,
            store_free: number("STORE_DEREF")?,
            attribute: number("LOAD_ATTR")?,
            method: maybe("LOAD_METHOD")?,
            extended: number("EXTENDED_ARG")?,
            cache: maybe("CACHE")?,
            attribute_bits: u32::from(py.version_info() >= (3, 12)),
        })
    })
}

/// One instruction's part in a reference.
enum Part<'py> {
    Read(Name),
    Attribute(Bound<'py, PyString>),
    /// The code has a value of its own under the name: a counter, say.
    Written(Name),
    Other,
}

/// The names that a piece of code has.
struct Names<'py> {
    code: Bound<'py, PyAny>,
    names: Bound<'py, PyAny>,
    bound: bool,
}

impl<'py> Names<'py> {
    fn at(&self, i: usize) -> PyResult<Bound<'py, PyString>> {
        Ok(self.names.get_item(i)?.cast_into::<PyString>()?)
    }

    fn global(&self, i: usize) -> PyResult<Name> {
        Ok(Name::Global(self.at(i)?.to_string()))
    }

    fn free(&self, i: usize) -> PyResult<Name> {
        let name = self.code.call_method1(intern!(self.code.py(), "_varname_from_oparg"), (i,))?;
        Ok(Name::Free(name.to_string()))
    }

    fn part(&self, ops: &Instructions, op: u8, argument: usize) -> PyResult<Part<'py>> {
        Ok(match op {
            // The lowest bit says something else.
            _ if op == ops.global => Part::Read(self.global(argument >> 1)?),
            _ if op == ops.name => Part::Read(self.global(argument)?),
            _ if op == ops.free => Part::Read(self.free(argument)?),
            _ if op == ops.fast && argument == 0 && self.bound => Part::Read(Name::Bound),
            _ if op == ops.store_global => Part::Written(self.global(argument)?),
            _ if op == ops.store_free => Part::Written(self.free(argument)?),
            _ if op == ops.attribute => Part::Attribute(self.at(argument >> ops.attribute_bits)?),
            _ if Some(op) == ops.method => Part::Attribute(self.at(argument)?),
            _ => Part::Other,
        })
    }
}

/// What code, and the code of functions defined in it, reads and does not write.
fn references(code: &Bound<'_, PyAny>, bound: bool, depth: usize) -> PyResult<Vec<Reference>> {
    let py = code.py();
    let ops = instructions(py)?;
    let bytes = code.getattr(intern!(py, "co_code"))?.cast_into::<PyBytes>()?;
    let names = Names { code: code.clone(), names: code.getattr(intern!(py, "co_names"))?, bound };
    let (mut found, mut written) = (Vec::<Reference>::new(), Vec::new());
    let (mut open, mut high) = (false, 0usize);
    for pair in bytes.as_bytes().chunks_exact(2) {
        let (op, argument) = (pair[0], high | usize::from(pair[1]));
        high = if op == ops.extended { argument << 8 } else { 0 };
        if op == ops.extended || Some(op) == ops.cache {
            continue;
        }
        match (names.part(ops, op, argument)?, found.last_mut()) {
            (Part::Read(name), _) => {
                found.push(Reference { name, attributes: Vec::new() });
                open = true;
            }
            (Part::Attribute(name), Some(last)) if open => last.attributes.push(name.unbind()),
            (part, _) => {
                open = false;
                if let Part::Written(name) = part {
                    written.push(name);
                }
            }
        }
    }
    found.retain(|r| !written.contains(&r.name));
    if depth > 0 {
        for constant in code.getattr(intern!(py, "co_consts"))?.try_iter()? {
            let constant = constant?;
            if constant.get_type().is(code.get_type()) {
                found.extend(references(&constant, false, depth - 1)?);
            }
        }
    }
    Ok(found)
}
