//! Values in texts for people: about so many characters at most, made in time that does not grow with the value.
//!
//! Containers of the interpreter and dataclasses are written item by item until the room is used up, and the rest is
//! counted (`[0, 1, … 998 more]`); arrays inside them are written as their types (`float32[8,8]`), so that nothing is
//! waited for, copied or formatted. Other objects say themselves what they are, and long answers are cut.

use crate::interpreter::attribute;
use ferrax_ir::Value;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple};
use std::fmt::Write;

use crate::api::function::Partial;
use crate::array::PyArray;
use crate::tree::PyTreeDef;

/// Characters of a value in a sentence.
pub const SENTENCE: usize = 80;
/// Characters of a value that stands on lines of its own, and of a structure.
pub const BLOCK: usize = 400;

/// Elements of an array that are shown.
const FEW: usize = 8;

/// `repr(object)` in about [`SENTENCE`] characters at most.
pub fn repr(object: &Bound<'_, PyAny>) -> String {
    within(object, SENTENCE)
}

/// `str(object)` in about `limit` characters at most.
pub fn text(object: &Bound<'_, PyAny>, limit: usize) -> String {
    match object.cast::<PyString>() {
        Ok(text) => cut(&text.str().map_or_else(|_| "?".into(), |t| t.to_string_lossy().into_owned()), limit),
        Err(_) => within(object, limit),
    }
}

/// `repr(object)` in about `limit` characters at most.
pub fn within(object: &Bound<'_, PyAny>, limit: usize) -> String {
    let few = object.cast::<PyArray>().is_ok_and(|a| shows(&a.get().value)) || is_small_numpy(object);
    if few && let Ok(text) = object.repr() {
        return cut(&text.to_string_lossy(), limit);
    }
    let mut short = Short { out: String::new(), limit, quiet: false };
    short.value(object).unwrap_or_else(|_| short.out.push('?'));
    short.out
}

/// As [`repr`], without waiting for arrays that are computed and without running a user's `__repr__`: objects are written
/// as their classes, functions as their names.
pub fn peek(object: &Bound<'_, PyAny>) -> String {
    let mut short = Short { out: String::new(), limit: SENTENCE, quiet: true };
    short.value(object).unwrap_or_else(|_| short.out.push('?'));
    short.out
}

/// The beginning of a text, with a mark if it is not all.
pub fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The first items of a list and how many more there are; texts are asked for while they fit into `limit` characters.
pub fn list(
    count: usize,
    separator: &str,
    limit: usize,
    mut item: impl FnMut(usize) -> PyResult<String>,
) -> PyResult<String> {
    let mut out = String::new();
    for i in 0..count {
        let before = if i > 0 { separator } else { "" };
        if out.len() >= limit {
            write!(out, "{before}… {} more", count - i).ok();
            break;
        }
        out.push_str(before);
        out.push_str(&item(i)?);
    }
    Ok(out)
}

/// The name of an object's class, with its module unless that is Python's own.
pub fn class_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().fully_qualified_name().map_or_else(|_| "?".to_owned(), |n| n.to_string())
}

/// Whether an array's elements are few, and there.
fn shows(value: &Value) -> bool {
    match value {
        Value::Array(a) => a.aval().size() <= FEW && !a.is_deleted(),
        Value::Lit(_) => true,
        Value::Tracer(t) => t.aval().size() <= FEW,
    }
}

/// Whether an object is a NumPy array of few elements, or a NumPy scalar.
fn is_small_numpy(object: &Bound<'_, PyAny>) -> bool {
    is_numpy(object)
        && !holds_objects(object)
        && object.getattr(intern!(object.py(), "size")).and_then(|n| n.extract()).unwrap_or(FEW + 1) <= FEW
}

fn is_numpy(object: &Bound<'_, PyAny>) -> bool {
    object.get_type().module().is_ok_and(|m| m == "numpy")
        && object.hasattr(intern!(object.py(), "dtype")).unwrap_or(false)
}

/// Whether an array's elements are Python objects, which print as long as they like.
fn holds_objects(array: &Bound<'_, PyAny>) -> bool {
    let dtype = array.getattr(intern!(array.py(), "dtype"));
    dtype.and_then(|d| d.getattr(intern!(array.py(), "hasobject"))?.extract()).unwrap_or(true)
}

/// Whether an object prints as builtin numbers, texts and containers do.
fn is_builtin(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: reads a flag of a live object's type
    unsafe { (*ffi::Py_TYPE(object.as_ptr())).tp_flags & ffi::Py_TPFLAGS_HEAPTYPE == 0 }
}

/// Whether instances of an object's class print as those of a builtin class do.
fn prints_as(object: &Bound<'_, PyAny>, class: *mut ffi::PyTypeObject) -> bool {
    // SAFETY: reads slots of the type of a live object and of one of the interpreter's own types
    unsafe { (*ffi::Py_TYPE(object.as_ptr())).tp_repr.map(|f| f as usize) == (*class).tp_repr.map(|f| f as usize) }
}

/// A text that stops growing at about `limit` bytes.
struct Short {
    out: String,
    limit: usize,
    /// Runs no code of the user's.
    quiet: bool,
}

impl Short {
    fn room(&self) -> usize {
        self.limit.saturating_sub(self.out.len())
    }

    /// Writes as much of a text as there is room for; a number or a type is not cut.
    fn push(&mut self, text: &str) {
        const WHOLE: usize = 24;
        let room = self.room().max(WHOLE);
        self.out.push_str(&cut(text, room));
    }

    fn value(&mut self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = object.py();
        if let Ok(array) = object.cast::<PyArray>() {
            let text = crate::tracer::LongAval(&array.get().value.aval()).to_string();
            self.push(&text);
            return Ok(());
        }
        if let Ok(tree) = object.cast::<PyTreeDef>() {
            let text = tree.get().0.short_text(py, self.room())?;
            write!(self.out, "PyTreeDef({text})").ok();
            return Ok(());
        }
        if let Ok(text) = object.cast_exact::<PyString>() {
            let part = text.get_item(pyo3::types::PySlice::new(py, 0, self.room() as isize, 1))?;
            let end = if part.len()? < text.len()? { "…" } else { "" };
            write!(self.out, "{}{end}", part.repr()?).ok();
            return Ok(());
        }
        if let Ok(bytes) = object.cast_exact::<PyBytes>() {
            let all = bytes.as_bytes();
            let part = &all[..all.len().min(self.room())];
            let end = if part.len() < all.len() { "…" } else { "" };
            write!(self.out, "{}{end}", PyBytes::new(py, part).repr()?).ok();
            return Ok(());
        }
        if object.is_exact_instance_of::<PyInt>() {
            return self.integer(object);
        }
        if is_numpy(object) {
            let shape: Vec<usize> = object.getattr(intern!(py, "shape"))?.extract()?;
            if !shape.is_empty() {
                let shape: Vec<String> = shape.iter().map(ToString::to_string).collect();
                let text = format!("{}[{}]", object.getattr(intern!(py, "dtype"))?.str()?, shape.join(","));
                self.push(&text);
                return Ok(());
            }
            if holds_objects(object) {
                return self.value(&object.call_method0(intern!(py, "item"))?);
            }
        }
        if self.container(object)? || self.dataclass(object)? || self.partial(object)? {
            return Ok(());
        }
        if self.quiet
            && let Some(name) = attribute(object, intern!(py, "__qualname__"))?
        {
            let text = format!("<{} {}>", object.get_type().name()?, name.str()?);
            self.push(&text);
            return Ok(());
        }
        if self.quiet && !is_builtin(object) {
            let text = format!("<{} object>", class_name(object));
            self.push(&text);
            return Ok(());
        }
        let text = object.repr()?;
        self.push(&text.to_string_lossy());
        Ok(())
    }

    /// A long number takes time that grows as its square to print.
    fn integer(&mut self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        let bits: usize = object.call_method0(intern!(object.py(), "bit_length"))?.extract()?;
        let text = if bits > 256 { format!("an int of {bits} bits") } else { object.repr()?.to_string() };
        self.push(&text);
        Ok(())
    }

    /// The builtin containers, and subclasses that print as they do; whether it was one.
    fn container(&mut self, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        if let Ok(dict) = object.cast::<PyDict>() {
            return self.mapping(dict);
        }
        if let Ok(tuple) = object.cast::<PyTuple>() {
            return self.tuple(tuple);
        }
        if let Ok(items) = object.cast::<PyList>() {
            let list = prints_as(object, &raw mut ffi::PyList_Type);
            if list {
                self.items(["[", "]"], items.len(), &mut items.iter(), |this, item| this.value(&item))?;
            }
            return Ok(list);
        }
        let ends = if object.is_exact_instance_of::<PySet>() {
            ["{", "}"]
        } else if object.is_exact_instance_of::<PyFrozenSet>() {
            ["frozenset({", "})"]
        } else {
            return Ok(false);
        };
        let count = object.len()?;
        if count > 0 {
            self.items(ends, count, &mut object.try_iter()?, |this, item| this.value(&item?))?;
        }
        Ok(count > 0)
    }

    /// A dictionary, or one of the interpreter's own kinds of it; whether it was one.
    fn mapping(&mut self, dict: &Bound<'_, PyDict>) -> PyResult<bool> {
        let py = dict.py();
        let name = dict.get_type().name()?.to_string();
        let exact = prints_as(dict, &raw mut ffi::PyDict_Type);
        if !exact && !matches!(&*name, "OrderedDict" | "defaultdict" | "Counter") {
            return Ok(false);
        }
        if !exact {
            write!(self.out, "{name}(").ok();
        }
        if name == "defaultdict" && !exact {
            self.value(&dict.getattr(intern!(py, "default_factory"))?)?;
            self.out.push_str(", ");
        }
        // pairs until Python 3.12
        let pairs = name == "OrderedDict" && !exact && py.version_info() < (3, 12);
        let ends = if pairs { ["[", "]"] } else { ["{", "}"] };
        self.items(ends, dict.len(), &mut dict.iter(), |this, (key, value)| {
            this.out.push_str(if pairs { "(" } else { "" });
            this.value(&key)?;
            this.out.push_str(if pairs { ", " } else { ": " });
            this.value(&value)?;
            this.out.push_str(if pairs { ")" } else { "" });
            Ok(())
        })?;
        self.out.push_str(if exact { "" } else { ")" });
        Ok(true)
    }

    /// A tuple or a named tuple; whether it was one.
    fn tuple(&mut self, tuple: &Bound<'_, PyTuple>) -> PyResult<bool> {
        if prints_as(tuple, &raw mut ffi::PyTuple_Type) {
            let ends = if tuple.len() == 1 { ["(", ",)"] } else { ["(", ")"] };
            self.items(ends, tuple.len(), &mut tuple.iter(), |this, item| this.value(&item))?;
            return Ok(true);
        }
        let Some(names) = attribute(tuple, intern!(tuple.py(), "_fields"))? else { return Ok(false) };
        write!(self.out, "{}", tuple.get_type().name()?).ok();
        let names: Vec<_> = names.try_iter()?.take(self.limit).collect::<PyResult<_>>()?;
        self.items(["(", ")"], tuple.len(), &mut names.into_iter().zip(tuple.iter()), |this, (name, item)| {
            write!(this.out, "{}=", name.str()?).ok();
            this.value(&item)
        })?;
        Ok(true)
    }

    /// Items while there is room, and the number of the others.
    fn items<T>(
        &mut self,
        ends: [&str; 2],
        count: usize,
        items: &mut dyn Iterator<Item = T>,
        mut write_item: impl FnMut(&mut Self, T) -> PyResult<()>,
    ) -> PyResult<()> {
        self.out.push_str(ends[0]);
        for (i, item) in items.enumerate() {
            let separator = if i > 0 { ", " } else { "" };
            if self.room() == 0 {
                write!(self.out, "{separator}… {} more", count - i).ok();
                break;
            }
            self.out.push_str(separator);
            write_item(self, item)?;
        }
        self.out.push_str(ends[1]);
        Ok(())
    }

    /// An instance of a dataclass whose `__repr__` is the generated one; whether it was one.
    fn dataclass(&mut self, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = object.py();
        let class = object.get_type();
        let Some(fields) = attribute(&class, intern!(py, "__dataclass_fields__"))? else { return Ok(false) };
        let generated = class.getattr(intern!(py, "__repr__"))?.hasattr(intern!(py, "__wrapped__"))?;
        let Ok(fields) = fields.cast::<PyDict>() else { return Ok(false) };
        if !generated || object.is_instance_of::<pyo3::types::PyType>() {
            return Ok(false);
        }
        self.push(&class.qualname()?.to_string_lossy());
        let shown =
            |field: &Bound<'_, PyAny>| field.getattr(intern!(py, "repr")).is_ok_and(|r| r.is_truthy().unwrap_or(true));
        let rows: Vec<_> = fields.iter().filter(|(_, field)| shown(field)).collect();
        self.items(["(", ")"], rows.len(), &mut rows.iter(), |this, (name, _)| {
            let name = name.cast::<PyString>()?;
            write!(this.out, "{name}=").ok();
            match object.getattr(name) {
                Ok(value) => this.value(&value),
                Err(_) => Err(PyTypeError::new_err("a dataclass without its field")),
            }
        })?;
        Ok(true)
    }

    /// A `functools.partial`, whose own `repr` prints all that it holds; whether it was one.
    fn partial(&mut self, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Some(partial) = Partial::of(object) else { return Ok(false) };
        self.out.push_str("functools.partial(");
        self.value(&partial.func)?;
        let named = partial.keywords.iter().map(|(name, item)| (Some(name), item));
        let count = partial.args.len() + partial.keywords.len();
        let mut all = partial.args.iter().map(|item| (None, item)).chain(named);
        self.items([if count > 0 { ", " } else { "" }, ")"], count, &mut all, |this, (name, item)| {
            if let Some(name) = name {
                write!(this.out, "{}=", name.str()?).ok();
            }
            this.value(&item)
        })?;
        Ok(true)
    }
}

/// `repr` in about `limit` characters, for the façade.
#[pyfunction]
#[pyo3(signature = (object, limit=SENTENCE))]
fn shorten(object: &Bound<'_, PyAny>, limit: usize) -> String {
    within(object, limit)
}

/// Adds the function to the extension module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(shorten, m)?)
}
