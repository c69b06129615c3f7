//! Which Python types are containers.
//!
//! A process-wide table from type to [`Registered`], read without locks: open addressing over pointers that are only
//! ever added. Types that were registered live on for good. Exact types count; a subclass of a registered type is a
//! leaf unless it is registered itself (named tuples are recognised by their `_fields`).

use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};

/// A registered container type.
pub struct Registered {
    /// The type.
    pub class: Py<PyType>,
    /// How its instances are taken apart and built.
    pub container: Container,
}

/// How instances of a registered type are taken apart and built.
pub enum Container {
    /// Handled by the tree code itself: tuple, list, dict and None.
    Builtin,
    /// `collections.OrderedDict`, keys in their order.
    OrderedDict,
    /// `collections.defaultdict`, keys sorted.
    DefaultDict,
    /// By functions that the user gave.
    Functions(Functions),
    /// By attributes.
    Dataclass(Fields),
}

impl Container {
    /// The word in messages that tells classes registered by their fields from others.
    pub fn word(&self) -> &'static str {
        if matches!(self, Container::Dataclass(_)) { "dataclass " } else { "" }
    }
}

/// The functions of `register_pytree_node`.
pub struct Functions {
    /// `obj -> (children, aux)`
    pub flatten: Py<PyAny>,
    /// `(aux, children) -> obj`
    pub unflatten: Py<PyAny>,
    /// `obj -> ((key, child) pairs, aux)`
    pub flatten_with_keys: Option<Py<PyAny>>,
}

/// The fields of a dataclass.
pub struct Fields {
    /// Names of the children.
    pub data: Py<PyTuple>,
    /// Names of the static fields.
    pub meta: Py<PyTuple>,
    /// Both, for building an instance by keyword.
    pub all: Py<PyTuple>,
}

struct Table {
    slots: Box<[AtomicPtr<Registered>]>,
    used: usize,
}

static TABLE: AtomicPtr<Table> = AtomicPtr::new(null_mut());
static WRITER: Mutex<()> = Mutex::new(());

impl Table {
    fn new(size: usize) -> Self {
        Table { slots: (0..size).map(|_| AtomicPtr::new(null_mut())).collect(), used: 0 }
    }

    #[inline]
    fn start(&self, class: usize) -> usize {
        (class >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32 & (self.slots.len() - 1)
    }

    #[inline]
    fn find(&self, class: *mut ffi::PyTypeObject) -> Option<&'static Registered> {
        let mut i = self.start(class as usize);
        loop {
            let entry = self.slots[i].load(Ordering::Acquire);
            // SAFETY: null, or an entry that was leaked when it was added
            let entry = unsafe { entry.as_ref() }?;
            if entry.class.as_ptr() == class.cast() {
                return Some(entry);
            }
            i = (i + 1) & (self.slots.len() - 1);
        }
    }

    fn insert(&self, entry: *mut Registered, class: usize) {
        let mut i = self.start(class);
        while !self.slots[i].load(Ordering::Relaxed).is_null() {
            i = (i + 1) & (self.slots.len() - 1);
        }
        self.slots[i].store(entry, Ordering::Release);
    }
}

/// The entry of a type, if it is registered.
#[inline]
pub fn lookup(class: *mut ffi::PyTypeObject) -> Option<&'static Registered> {
    // SAFETY: null, or a table that was leaked when it was installed
    unsafe { TABLE.load(Ordering::Acquire).as_ref() }?.find(class)
}

/// Adds a type; it must not be there yet.
pub fn add(class: &Bound<'_, PyType>, container: Container) -> PyResult<()> {
    let _writer = WRITER.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if lookup(class.as_type_ptr()).is_some() {
        let word = container.word();
        return Err(PyValueError::new_err(format!(
            "Duplicate custom {word}PyTreeDef type registration for {}.",
            class.repr()?
        )));
    }
    let entry = Box::into_raw(Box::new(Registered { class: class.clone().unbind(), container }));
    // SAFETY: writers hold the lock; readers only see tables through TABLE, which are never freed
    unsafe {
        let old = TABLE.load(Ordering::Acquire);
        let used = old.as_ref().map_or(0, |t| t.used) + 1;
        let size = old.as_ref().map_or(64, |t| t.slots.len());
        if old.is_null() || used * 2 > size {
            let mut table = Table::new(size * 2);
            table.used = used;
            for slot in old.as_ref().map_or(&[][..], |t| &t.slots) {
                let slot = slot.load(Ordering::Relaxed);
                if !slot.is_null() {
                    table.insert(slot, (*slot).class.as_ptr() as usize);
                }
            }
            table.insert(entry, class.as_ptr() as usize);
            TABLE.store(Box::into_raw(Box::new(table)), Ordering::Release);
        } else {
            (*old).used = used;
            (*old).insert(entry, class.as_ptr() as usize);
        }
    }
    Ok(())
}

/// Registers the containers that every program has.
pub fn add_builtins(py: Python<'_>) -> PyResult<()> {
    if lookup(py.get_type::<PyTuple>().as_type_ptr()).is_some() {
        return Ok(());
    }
    add(&py.get_type::<PyTuple>(), Container::Builtin)?;
    add(&py.get_type::<PyList>(), Container::Builtin)?;
    add(&py.get_type::<PyDict>(), Container::Builtin)?;
    add(&py.None().bind(py).get_type(), Container::Builtin)?;
    let collections = py.import("collections")?;
    let class = |name: &str| collections.getattr(name)?.cast_into::<PyType>().map_err(PyErr::from);
    add(&class("OrderedDict")?, Container::OrderedDict)?;
    add(&class("defaultdict")?, Container::DefaultDict)
}

/// Whether instances of a type are containers.
pub fn is_node(class: &Bound<'_, PyType>) -> PyResult<bool> {
    Ok(lookup(class.as_type_ptr()).is_some()
        || (class.is_subclass_of::<PyTuple>()? && class.hasattr(pyo3::intern!(class.py(), "_fields"))?))
}
