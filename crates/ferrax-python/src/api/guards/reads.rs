//! What a function reads of its static arguments while it is traced: attributes, closure cells, default arguments.
//!
//! A program is as good as what it was made from. So while a function is traced, attributes that are looked up on its
//! static arguments, and on objects reached from them, are noted with their values ([`super::seen`]). What the trace
//! itself changed is left out afterwards. A later call compares what is left; whatever the trace never read may change.
//!
//! Attributes are noticed by taking the place of `tp_getattro` of the objects' classes for the time of the trace. Only
//! classes made by a `class` statement are watched; others hold what NumPy and Python's containers hold, which is copied.
//! A property is not noted, but what its getter reads is; the same goes for methods.
//!
//! Read next: [`super::Guards`] for what a program keeps of it.

use super::seen::{Change, Keep, Seen, look};
use crate::api::function::Partial;
use crate::shorten;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyModule, PyString, PyTuple, PyType};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

// Parts of CPython's interface that PyO3 does not declare.
unsafe extern "C" {
    /// The class of bound methods.
    static mut PyMethod_Type: ffi::PyTypeObject;
    /// The object that a class or its bases have under a name, borrowed. No error is set.
    fn _PyType_Lookup(class: *mut ffi::PyTypeObject, name: *mut ffi::PyObject) -> *mut ffi::PyObject;
}

/// How far containers are searched for objects to watch: levels, and elements of each.
const LEVELS: usize = 3;
const ELEMENTS: usize = 64;

/// Where a value was read.
enum Place {
    /// An attribute of an object.
    Attribute(Py<PyAny>, Py<PyString>),
    /// A free variable of a function.
    Cell(Py<PyAny>, usize),
    /// `__defaults__` or `__kwdefaults__` of a function.
    Defaults(Py<PyAny>, &'static str),
}

/// One read.
pub struct Row {
    place: Place,
    /// What was there; `None` where there was no such attribute.
    seen: Option<Seen>,
}

/// The value at a place now.
enum Now<'py> {
    Value(Bound<'py, PyAny>),
    Nothing,
    /// It takes code of the user's to tell.
    Unknown,
}

impl Row {
    fn now<'py>(&self, py: Python<'py>) -> Now<'py> {
        let found = match &self.place {
            Place::Attribute(object, name) => return attribute(object.bind(py), name.bind(py)),
            Place::Cell(function, i) => cell(function.bind(py), *i),
            Place::Defaults(function, which) => function.bind(py).getattr(*which),
        };
        found.map_or(Now::Nothing, Now::Value)
    }

    /// Bytes of what is kept, about.
    pub fn bytes(&self, py: Python<'_>) -> usize {
        size_of::<Row>() + self.seen.as_ref().map_or(0, |seen| seen.bytes(py))
    }

    /// What happened since.
    pub fn change(&self, py: Python<'_>) -> Option<Change> {
        let plain = |what: String| Some(Change { path: String::new(), what });
        match (&self.seen, self.now(py)) {
            (_, Now::Unknown) | (None, Now::Nothing) => None,
            (Some(seen), Now::Value(now)) => seen.change(&now),
            (Some(_), Now::Nothing) => plain("was removed".to_owned()),
            (None, Now::Value(now)) => plain(format!("was added with the value {}", shorten::repr(&now))),
        }
    }

    /// What was read, in the terms of `roots`, the names of the objects that the function was given.
    pub fn path(&self, py: Python<'_>, rows: &[Arc<Row>], roots: &[(String, Py<PyAny>)]) -> String {
        match &self.place {
            Place::Attribute(object, name) => {
                let (object, name) = (object.bind(py), name.bind(py));
                if name == "__dict__" {
                    path_of(object, rows, roots, 8)
                } else {
                    format!("{}.{name}", path_of(object, rows, roots, 8))
                }
            }
            Place::Cell(function, i) => {
                let function = function.bind(py);
                let names = function.getattr("__code__").and_then(|code| code.getattr("co_freevars")?.get_item(*i));
                let name = names.map_or_else(|_| "?".to_owned(), |n| n.to_string());
                format!("{}'s closure variable {name}", path_of(function, rows, roots, 8))
            }
            Place::Defaults(function, _) => {
                format!("{}'s default arguments", path_of(function.bind(py), rows, roots, 8))
            }
        }
    }
}

/// How an object was reached, as Python source would say it.
fn path_of(object: &Bound<'_, PyAny>, rows: &[Arc<Row>], roots: &[(String, Py<PyAny>)], depth: usize) -> String {
    let py = object.py();
    if let Some((name, _)) = roots.iter().find(|(_, root)| root.is(object)) {
        return name.clone();
    }
    let holder = rows.iter().find(|row| depth > 0 && row.seen.as_ref().is_some_and(|seen| seen.holds(object)));
    if let Some(row) = holder {
        let inside = matches!(row.seen, Some(Seen::Items(_) | Seen::Entries(_)));
        let path = match &row.place {
            Place::Attribute(parent, name) => {
                format!("{}.{}", path_of(parent.bind(py), rows, roots, depth - 1), name.bind(py))
            }
            _ => row.path(py, &[], roots),
        };
        return if inside { format!("{path}[...]") } else { path };
    }
    match object.getattr("__qualname__") {
        Ok(name) => name.to_string(),
        Err(_) => object.get_type().name().map_or_else(|_| "an object".to_owned(), |n| format!("an object of {n}")),
    }
}

/// What a free variable of a function is.
pub(super) fn cell<'py>(function: &Bound<'py, PyAny>, i: usize) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    function.getattr(intern!(py, "__closure__"))?.get_item(i)?.getattr(intern!(py, "cell_contents"))
}

/// What the class has under a name, and whether a lookup would run code of it.
enum Descriptor {
    /// Nothing, or an object that is the value itself, or a slot.
    Plain,
    /// A property: its getter runs on each lookup.
    Data,
    /// A function or the like, which an attribute of the instance hides.
    Method,
}

fn descriptor(object: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> Descriptor {
    // SAFETY: borrowed references of live objects; the class keeps what was found alive while nothing else runs.
    unsafe {
        let found = _PyType_Lookup(ffi::Py_TYPE(object.as_ptr()), name.as_ptr());
        if found.is_null() {
            return Descriptor::Plain;
        }
        let class = ffi::Py_TYPE(found);
        if (*class).tp_descr_get.is_none() || std::ptr::eq(class, &raw mut ffi::PyMemberDescr_Type) {
            return Descriptor::Plain;
        }
        if (*class).tp_descr_set.is_some() { Descriptor::Data } else { Descriptor::Method }
    }
}

/// The value of an attribute, as long as that takes no code of the user's.
fn attribute<'py>(object: &Bound<'py, PyAny>, name: &Bound<'py, PyString>) -> Now<'py> {
    let py = object.py();
    // SAFETY: it returns a new reference or sets an error. Unlike a lookup, it is not noticed.
    let own = || unsafe {
        Bound::from_owned_ptr_or_err(py, ffi::PyObject_GenericGetDict(object.as_ptr(), std::ptr::null_mut()))
    };
    let found = if name == "__dict__" {
        own()
    } else {
        match descriptor(object, name) {
            Descriptor::Data => return Now::Unknown,
            // SAFETY: the lookup that `object` has, which returns a new reference or sets an error.
            Descriptor::Plain => unsafe {
                Bound::from_owned_ptr_or_err(py, ffi::PyObject_GenericGetAttr(object.as_ptr(), name.as_ptr()))
            },
            Descriptor::Method => {
                let own = own().ok().and_then(|d| d.cast_into::<PyDict>().ok());
                return own.and_then(|d| d.get_item(name).ok().flatten()).map_or(Now::Unknown, Now::Value);
            }
        }
    };
    found.map_or(Now::Nothing, Now::Value)
}

/// What a module, a class or an object has under a name, as long as finding it takes no code of the user's.
pub(super) fn plain_attribute<'py>(
    holder: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> Option<Bound<'py, PyAny>> {
    if holder.is_instance_of::<PyModule>() || holder.is_instance_of::<PyType>() {
        return holder.getattr_opt(name).ok().flatten();
    }
    match attribute(holder, name) {
        Now::Value(value) if is_of_class(holder) => Some(value),
        _ if is_of_class(holder) => holder.get_type().getattr_opt(name).ok().flatten().filter(is_function),
        _ => None,
    }
}

/// Notes reads while a function is traced.
#[derive(Default)]
struct Recorder {
    rows: Vec<Arc<Row>>,
    /// Attributes that were noted, by the addresses of the object and of the name.
    known: FxHashSet<(usize, usize)>,
    /// Classes whose lookups go through [`getattro`] for this recorder.
    classes: Vec<Py<PyType>>,
    /// Objects whose reads are noted, by their addresses.
    watched: FxHashMap<usize, Py<PyAny>>,
}

thread_local! {
    /// Those of the traces of this thread, the innermost last.
    static RECORDERS: RefCell<Vec<Recorder>> = const { RefCell::new(Vec::new()) };
}

/// Lookups of classes that are watched, and for how many recorders they are.
static LOOKUPS: Mutex<Option<FxHashMap<usize, (ffi::getattrofunc, usize)>>> = Mutex::new(None);

type Lookups = MutexGuard<'static, Option<FxHashMap<usize, (ffi::getattrofunc, usize)>>>;

fn lookups() -> Lookups {
    LOOKUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lookup that a class has without being watched. A class derived from a watched one may have inherited ours.
fn lookup_of(mut class: *mut ffi::PyTypeObject) -> ffi::getattrofunc {
    let table = lookups();
    while !class.is_null() {
        if let Some((lookup, _)) = table.as_ref().and_then(|t| t.get(&(class as usize))) {
            return *lookup;
        }
        // SAFETY: a class keeps its base alive.
        class = unsafe { (*class).tp_base };
    }
    ffi::PyObject_GenericGetAttr
}

/// Stands in for the lookup of watched classes.
unsafe extern "C" fn getattro(object: *mut ffi::PyObject, name: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: called by the interpreter with live objects and its lock held.
    unsafe {
        let result = lookup_of(ffi::Py_TYPE(object))(object, name);
        let py = Python::assume_attached();
        let error = if result.is_null() { Some(PyErr::fetch(py)) } else { None };
        let object = Bound::from_borrowed_ptr(py, object);
        if let Ok(name) = Bound::from_borrowed_ptr(py, name).cast::<PyString>() {
            match &error {
                None => note(&object, name, Some(&Bound::from_borrowed_ptr(py, result))),
                Some(e) if e.is_instance_of::<pyo3::exceptions::PyAttributeError>(py) => note(&object, name, None),
                Some(_) => {}
            }
        }
        if let Some(e) = error {
            e.restore(py);
        }
        result
    }
}

/// Takes a lookup into account.
fn note(object: &Bound<'_, PyAny>, name: &Bound<'_, PyString>, value: Option<&Bound<'_, PyAny>>) {
    let key = (object.as_ptr() as usize, name.as_ptr() as usize);
    let first = |r: &mut Recorder| r.watched.contains_key(&key.0) && r.known.insert(key);
    if RECORDERS.with_borrow_mut(|all| all.iter_mut().filter_map(|r| first(r).then_some(())).count()) == 0 {
        return;
    }
    let special = name.to_str().map_or(true, |n| n.starts_with("__") && n.ends_with("__"));
    if special && name != "__dict__" {
        return;
    }
    let seen = match (value, attribute(object, name)) {
        (Some(_), Now::Value(now)) => {
            watch(&now, LEVELS);
            Some(look(&now, Keep::Strongly))
        }
        (None, Now::Nothing) => None,
        (Some(value), _) => return watch(value, LEVELS),
        _ => return,
    };
    add(Place::Attribute(object.clone().unbind(), name.clone().unbind()), seen);
}

fn add(place: Place, seen: Option<Seen>) {
    let row = Arc::new(Row { place, seen });
    RECORDERS.with_borrow_mut(|all| all.iter_mut().for_each(|r| r.rows.push(row.clone())));
}

/// Has reads of an object noted, and of those that it holds where it is a container or a function.
fn watch(object: &Bound<'_, PyAny>, levels: usize) {
    let id = object.as_ptr() as usize;
    let kept = object.clone().unbind();
    let new = RECORDERS.with_borrow_mut(|all| all.last_mut().is_some_and(|r| r.watched.insert(id, kept).is_none()));
    if new && levels > 0 {
        // What cannot be looked through is not watched.
        let _ = watch_within(object, levels);
    }
}

fn watch_within(object: &Bound<'_, PyAny>, levels: usize) -> PyResult<()> {
    let py = object.py();
    let inner = |found: PyResult<Bound<'_, PyAny>>| found.iter().for_each(|o| watch(o, levels - 1));
    if is_function(object) {
        return watch_function(object, levels);
    }
    if object.is_instance_of::<PyType>() {
        return Ok(());
    }
    if is_method(object) {
        inner(object.getattr(intern!(py, "__self__")));
        inner(object.getattr(intern!(py, "__func__")));
    } else if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        object.try_iter()?.take(ELEMENTS).for_each(inner);
    } else if let Ok(dict) = object.cast::<PyDict>() {
        dict.values().iter().take(ELEMENTS).for_each(|v| watch(&v, levels - 1));
    } else if let Some(partial) = Partial::of(object) {
        [partial.func, partial.args.into_any(), partial.keywords.into_any()].iter().for_each(|o| watch(o, levels - 1));
    }
    if is_of_class(object) {
        watch_class(&object.get_type());
    }
    Ok(())
}

fn is_function(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: a check of the class of a live object.
    unsafe { ffi::PyFunction_Check(object.as_ptr()) != 0 }
}

/// Whether an object is a method bound to another.
pub fn is_method(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: comparing addresses of classes.
    unsafe { std::ptr::eq(ffi::Py_TYPE(object.as_ptr()), &raw mut PyMethod_Type) }
}

/// Notes what a function has in its closure and its default arguments.
fn watch_function(function: &Bound<'_, PyAny>, levels: usize) -> PyResult<()> {
    let py = function.py();
    let kept = || function.clone().unbind();
    let closure = function.getattr(intern!(py, "__closure__"))?;
    let count = if closure.is_none() { 0 } else { closure.len()? };
    for i in 0..count {
        if let Ok(value) = cell(function, i) {
            add(Place::Cell(kept(), i), Some(look(&value, Keep::Strongly)));
            watch(&value, levels - 1);
        }
    }
    for which in ["__defaults__", "__kwdefaults__"] {
        let value = function.getattr(which)?;
        if !value.is_none() {
            add(Place::Defaults(kept(), which), Some(look(&value, Keep::Strongly)));
            watch(&value, levels - 1);
        }
    }
    Ok(())
}

/// Whether a `class` statement made the class of an object: its instances are freed as those of all such classes are.
pub(super) fn is_of_class(object: &Bound<'_, PyAny>) -> bool {
    static FREED: PyOnceLock<usize> = PyOnceLock::new();
    let py = object.py();
    let of_class = FREED.get_or_try_init(py, || {
        let class = py.import("ferrax.config")?.getattr("State")?.cast_into::<PyType>()?;
        // SAFETY: reading a slot of a live class.
        Ok::<_, PyErr>(unsafe { (*class.as_type_ptr()).tp_dealloc.map_or(0, |f| f as usize) })
    });
    // SAFETY: as above.
    let freed = unsafe { (*ffi::Py_TYPE(object.as_ptr())).tp_dealloc.map_or(0, |f| f as usize) };
    of_class.is_ok_and(|f| *f == freed) && !is_ours(object)
}

fn is_ours(object: &Bound<'_, PyAny>) -> bool {
    let module = object.get_type().module();
    module.is_ok_and(|m| {
        m.to_str().is_ok_and(|m| ["ferrax", "numpy", "enum"].iter().any(|p| m.split('.').next() == Some(p)))
    })
}

fn watch_class(class: &Bound<'_, PyType>) {
    let pointer = class.as_type_ptr();
    let new = RECORDERS.with_borrow_mut(|all| {
        let Some(recorder) = all.last_mut() else { return false };
        let new = !recorder.classes.iter().any(|c| c.is(class));
        if new {
            recorder.classes.push(class.clone().unbind());
        }
        new
    });
    if !new {
        return;
    }
    // SAFETY: the slot of a live class, with the interpreter's lock held.
    unsafe {
        let own = (*pointer).tp_getattro.unwrap_or(ffi::PyObject_GenericGetAttr);
        let ours = own as usize == getattro as *const () as usize;
        let inherited = ours.then(|| lookup_of((*pointer).tp_base));
        let mut table = lookups();
        table.get_or_insert_default().entry(pointer as usize).or_insert((inherited.unwrap_or(own), 0)).1 += 1;
        drop(table);
        if !ours {
            (*pointer).tp_getattro = Some(getattro);
            // Specialized bytecode must not go past it.
            ffi::PyType_Modified(pointer);
        }
    }
}

/// Gives a class its own lookup back when nobody watches it any more, and those derived from it meanwhile theirs.
fn leave_class(class: &Bound<'_, PyType>) {
    let key = class.as_type_ptr() as usize;
    let mut table = lookups();
    let Some(entry) = table.as_mut().and_then(|t| t.get_mut(&key)) else { return };
    entry.1 -= 1;
    let (own, count) = *entry;
    drop(table);
    if count == 0 {
        give_back(class, own);
        lookups().as_mut().map(|t| t.remove(&key));
    }
}

fn give_back(class: &Bound<'_, PyType>, own: ffi::getattrofunc) {
    let pointer = class.as_type_ptr();
    // SAFETY: as in `watch_class`.
    unsafe {
        if (*pointer).tp_getattro.is_none_or(|f| f as usize != getattro as *const () as usize) {
            return;
        }
        (*pointer).tp_getattro = Some(own);
        ffi::PyType_Modified(pointer);
    }
    let derived = class.call_method0("__subclasses__").and_then(|all| all.extract::<Vec<Bound<'_, PyType>>>());
    for class in derived.unwrap_or_default() {
        if lookups().as_ref().is_none_or(|t| !t.contains_key(&(class.as_type_ptr() as usize))) {
            give_back(&class, own);
        }
    }
}

/// A recording; it ends when this is dropped.
pub struct Recording(());

impl Recording {
    /// Notes reads of these objects and of what they hold from now on.
    pub fn start(objects: &[Bound<'_, PyAny>]) -> Recording {
        RECORDERS.with_borrow_mut(|all| all.push(Recorder::default()));
        objects.iter().for_each(|o| watch(o, LEVELS));
        Recording(())
    }

    /// What was read, and is still as it was when it was read.
    pub fn end(self, py: Python<'_>) -> Vec<Arc<Row>> {
        let mut rows =
            RECORDERS.with_borrow_mut(|all| all.last_mut().map(|r| std::mem::take(&mut r.rows))).unwrap_or_default();
        drop(self);
        rows.retain(|row| row.change(py).is_none());
        rows
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let recorder = RECORDERS.with_borrow_mut(Vec::pop).unwrap_or_default();
        Python::attach(|py| recorder.classes.iter().for_each(|class| leave_class(class.bind(py))));
    }
}

/// Takes over what an inner program has read, for the traces around it.
pub fn adopt(rows: &[Arc<Row>]) {
    RECORDERS.with_borrow_mut(|all| all.iter_mut().for_each(|r| r.rows.extend(rows.iter().cloned())));
}
