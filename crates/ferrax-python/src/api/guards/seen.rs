//! What a value was when it was looked at: the object, or a copy of what changes in place.
//!
//! Lists, dictionaries, sets and arrays of NumPy are copied, with what they hold, within [`LIMIT`]; any other object is
//! compared by identity, then as a number or by its class's `==`. Read next: [`super::reads`], which keeps these.

use crate::numpy_interop;
use crate::shorten;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyBytes, PyComplex, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PySlice, PyString, PyTuple, PyType,
    PyWeakrefMethods, PyWeakrefReference,
};

/// Elements of containers that one value is compared by, at most.
const LIMIT: usize = 10_000;
/// Bytes of an array that are compared; of a longer one as many, spread evenly.
const BYTES: usize = 256 << 10;
/// How deep containers are followed.
const DEPTH: usize = 8;

/// How objects that are neither numbers, texts nor containers are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// They live as long as what was seen of them.
    Strongly,
    /// They may go; then all that is known is what they were.
    Weakly,
}

/// What a value was.
pub enum Seen {
    Object(Py<PyAny>),
    /// An object that may be gone, and its class.
    Weak(Py<PyWeakrefReference>, Py<PyType>),
    Items(Vec<Seen>),
    Entries(Vec<(Py<PyAny>, Seen)>),
    Set(Py<PyFrozenSet>),
    Array(ArraySeen),
    /// Too large or too deep, or of a kind that cannot be kept: never taken for another.
    Unknown,
}

/// How a value differs from what was seen: where in it, and what happened there.
pub struct Change {
    pub path: String,
    pub what: String,
}

impl Change {
    fn of(was: &Bound<'_, PyAny>, is: &Bound<'_, PyAny>) -> Change {
        Change { path: String::new(), what: format!("changed from {} to {}", shorten::repr(was), shorten::repr(is)) }
    }

    fn within(mut self, step: &str) -> Change {
        self.path.insert_str(0, step);
        self
    }
}

/// Looks at a value.
pub fn look(value: &Bound<'_, PyAny>, keep: Keep) -> Seen {
    let mut left = LIMIT;
    take(value, keep, DEPTH, &mut left)
}

/// Looks at a value; a container that cannot be read counts as an object.
fn take(value: &Bound<'_, PyAny>, keep: Keep, depth: usize, left: &mut usize) -> Seen {
    if depth == 0 || *left == 0 {
        return Seen::Unknown;
    }
    *left -= 1;
    contents(value, keep, depth, left).ok().flatten().unwrap_or_else(|| object(value, keep))
}

fn contents(value: &Bound<'_, PyAny>, keep: Keep, depth: usize, left: &mut usize) -> PyResult<Option<Seen>> {
    if let Ok(dict) = value.cast::<PyDict>() {
        let mut entries = Vec::with_capacity(dict.len().min(*left));
        for (k, v) in dict.iter() {
            entries.push((k.unbind(), take(&v, keep, depth - 1, left)));
        }
        return Ok(Some(Seen::Entries(entries)));
    }
    if is_sequence(value) {
        let items: PyResult<Vec<Seen>> =
            value.try_iter()?.map(|item| Ok(take(&item?, keep, depth - 1, left))).collect();
        return Ok(Some(Seen::Items(items?)));
    }
    if let Ok(set) = value.cast::<PySet>() {
        return Ok(Some(Seen::Set(PyFrozenSet::new(value.py(), set.iter())?.unbind())));
    }
    if numpy_interop::is_array(value)? {
        return ArraySeen::of(value).map(|seen| Some(Seen::Array(seen)));
    }
    Ok(None)
}

/// Lists, tuples and deques, and classes derived from them.
fn is_sequence(value: &Bound<'_, PyAny>) -> bool {
    static DEQUE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let is_deque = || {
        let deque = DEQUE.import(value.py(), "collections", "deque")?;
        value.is_instance(deque)
    };
    value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() || is_deque().unwrap_or(false)
}

fn object(value: &Bound<'_, PyAny>, keep: Keep) -> Seen {
    if keep == Keep::Strongly || is_plain(value) {
        return Seen::Object(value.clone().unbind());
    }
    match PyWeakrefReference::new(value) {
        Ok(weak) => Seen::Weak(weak.unbind(), value.get_type().unbind()),
        Err(_) => Seen::Unknown,
    }
}

/// Numbers, texts and what else refers to nothing, and arrays of ours.
fn is_plain(value: &Bound<'_, PyAny>) -> bool {
    value.is_none()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyFloat>()
        || value.is_exact_instance_of::<PyComplex>()
        || value.is_exact_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyBytes>()
        || value.is_instance_of::<crate::array::PyArray>()
        || numpy_interop::is_scalar(value).unwrap_or(false)
}

/// Whether two objects are one value to a program.
fn same(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> bool {
    if a.is(b) {
        return true;
    }
    if !a.get_type().is(b.get_type()) {
        return false;
    }
    if let (Ok(x), Ok(y)) = (a.cast_exact::<PyFloat>(), b.cast_exact::<PyFloat>()) {
        return x.value().to_bits() == y.value().to_bits();
    }
    match a.eq(b) {
        Ok(equal) => equal,
        // arrays compare element by element
        Err(_) => array_bits(a).and_then(|x| Ok(x == array_bits(b)?)).unwrap_or(false),
    }
}

/// Dtype, shape and elements of what is an array to NumPy.
fn array_bits(value: &Bound<'_, PyAny>) -> PyResult<(String, Vec<u8>)> {
    let array =
        value.py().import(intern!(value.py(), "numpy"))?.call_method1(intern!(value.py(), "asarray"), (value,))?;
    let kind = format!("{} {}", array.getattr("dtype")?, array.getattr("shape")?);
    Ok((kind, array.call_method0("tobytes")?.extract()?))
}

impl Seen {
    /// How a value differs now; `None` where it does not, as far as is known.
    pub fn change(&self, now: &Bound<'_, PyAny>) -> Option<Change> {
        let py = now.py();
        match self {
            Seen::Unknown => None,
            Seen::Object(was) => (!same(was.bind(py), now)).then(|| Change::of(was.bind(py), now)),
            Seen::Weak(was, class) => match was.bind(py).upgrade() {
                Some(was) => (!same(&was, now)).then(|| Change::of(&was, now)),
                None => {
                    let what = format!("changed from an object of {} to {}", class.bind(py), shorten::repr(now));
                    Some(Change { path: String::new(), what })
                }
            },
            Seen::Items(was) if is_sequence(now) => items_change(was, now),
            Seen::Entries(was) => match now.cast::<PyDict>() {
                Ok(now) => entries_change(was, now),
                Err(_) => Some(self.replaced(now)),
            },
            Seen::Set(was) => {
                let was = was.bind(py).as_any();
                (!was.eq(now).unwrap_or(false)).then(|| Change::of(was, now))
            }
            Seen::Array(was) if numpy_interop::is_array(now).unwrap_or(false) => was.change(now),
            Seen::Items(_) | Seen::Array(_) => Some(self.replaced(now)),
        }
    }

    /// A container in whose place there is another kind of object.
    fn replaced(&self, now: &Bound<'_, PyAny>) -> Change {
        let was = match self {
            Seen::Items(items) => format!("a sequence of {} elements", items.len()),
            Seen::Entries(entries) => format!("a dictionary of {} keys", entries.len()),
            _ => "an array".to_owned(),
        };
        Change { path: String::new(), what: format!("changed from {was} to {}", shorten::repr(now)) }
    }

    /// Bytes of the copies, about.
    pub fn bytes(&self, py: Python<'_>) -> usize {
        let inner = match self {
            Seen::Items(items) => items.iter().map(|s| s.bytes(py)).sum(),
            Seen::Entries(entries) => entries.iter().map(|(_, s)| s.bytes(py)).sum(),
            Seen::Array(array) => array.kept.bind(py).getattr("nbytes").and_then(|n| n.extract()).unwrap_or(0),
            _ => 0,
        };
        size_of::<Seen>() + inner
    }

    /// Whether the value is, or holds at the top, this object.
    pub fn holds(&self, object: &Bound<'_, PyAny>) -> bool {
        let is = |seen: &Seen| matches!(seen, Seen::Object(o) if o.is(object));
        match self {
            Seen::Items(items) => items.iter().any(is),
            Seen::Entries(entries) => entries.iter().any(|(_, v)| is(v)),
            seen => is(seen),
        }
    }
}

fn items_change(was: &[Seen], now: &Bound<'_, PyAny>) -> Option<Change> {
    let mut count = 0;
    for (i, item) in now.try_iter().ok()?.enumerate() {
        let Ok(item) = item else { break };
        let step = || format!("[{i}]");
        match was.get(i) {
            None => {
                return Some(Change {
                    path: step(),
                    what: format!("was added with the value {}", shorten::repr(&item)),
                });
            }
            Some(seen) => {
                if let Some(change) = seen.change(&item) {
                    return Some(change.within(&step()));
                }
            }
        }
        count += 1;
    }
    (count < was.len()).then(|| Change { path: format!("[{count}]"), what: "was removed".to_owned() })
}

fn entries_change(was: &[(Py<PyAny>, Seen)], now: &Bound<'_, PyDict>) -> Option<Change> {
    let py = now.py();
    let step = |key: &Bound<'_, PyAny>| format!("[{}]", shorten::repr(key));
    for (key, seen) in was {
        let key = key.bind(py);
        match now.get_item(key).ok().flatten() {
            None => return Some(Change { path: step(key), what: "was removed".to_owned() }),
            Some(value) => {
                if let Some(change) = seen.change(&value) {
                    return Some(change.within(&step(key)));
                }
            }
        }
    }
    if now.len() == was.len() {
        return None;
    }
    let known = |key: &Bound<'_, PyAny>| was.iter().any(|(k, _)| k.bind(py).eq(key).unwrap_or(false));
    let (key, value) = now.iter().find(|(key, _)| !known(key))?;
    Some(Change { path: step(&key), what: format!("was added with the value {}", shorten::repr(&value)) })
}

/// What an array of NumPy was.
pub struct ArraySeen {
    shape: Py<PyAny>,
    dtype: Py<PyAny>,
    /// Every how many elements one is kept.
    step: usize,
    /// Those elements, in a row.
    kept: Py<PyAny>,
}

impl ArraySeen {
    fn of(array: &Bound<'_, PyAny>) -> PyResult<ArraySeen> {
        let bytes: usize = array.getattr(intern!(array.py(), "nbytes"))?.extract()?;
        let step = bytes.div_ceil(BYTES).max(1);
        Ok(ArraySeen {
            shape: array.getattr(intern!(array.py(), "shape"))?.unbind(),
            dtype: array.getattr(intern!(array.py(), "dtype"))?.unbind(),
            step,
            kept: spread(array, step)?.unbind(),
        })
    }

    fn change(&self, now: &Bound<'_, PyAny>) -> Option<Change> {
        let py = now.py();
        let differs = |name: &str, was: &Py<PyAny>| {
            let is = now.getattr(name).ok()?;
            let what = || format!("changed from {} to {}", shorten::repr(was.bind(py)), shorten::repr(&is));
            (!same(was.bind(py), &is)).then(|| Change { path: format!(".{name}"), what: what() })
        };
        let kind = differs("shape", &self.shape).or_else(|| differs("dtype", &self.dtype));
        if kind.is_some() || (self.step == 1 && same_memory(self.kept.bind(py), now)) {
            return kind;
        }
        self.element_change(now).ok().flatten()
    }

    /// The first kept element that is another now.
    fn element_change<'py>(&self, now: &Bound<'py, PyAny>) -> PyResult<Option<Change>> {
        let py = now.py();
        let (was, is) = (self.kept.bind(py), spread(now, self.step)?);
        let bytes = |a: &Bound<'_, PyAny>| a.call_method0(intern!(py, "tobytes"))?.extract::<Vec<u8>>();
        let (a, b) = (bytes(was)?, bytes(&is)?);
        let Some(first) = a.iter().zip(&b).position(|(x, y)| x != y) else { return Ok(None) };
        let place = first / (a.len() / was.len()?).max(1);
        let index = py.import("numpy")?.call_method1("unravel_index", (place * self.step, &self.shape))?;
        let index: Vec<usize> = index.try_iter()?.map(|i| i?.extract()).collect::<PyResult<_>>()?;
        let index: Vec<String> = index.iter().map(ToString::to_string).collect();
        // Elements of object arrays are what they are; others are scalars of NumPy.
        let element = |a: &Bound<'py, PyAny>| a.get_item(place).map(|e| e.call_method0("item").unwrap_or(e));
        let change = Change::of(&element(was)?, &element(&is)?);
        Ok(Some(change.within(&format!("[{}]", index.join(", ")))))
    }
}

/// Every `step`-th element of an array, copied.
fn spread<'py>(array: &Bound<'py, PyAny>, step: usize) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    let slice = py.get_type::<PySlice>().call1((py.None(), py.None(), step))?;
    array.getattr(intern!(py, "flat"))?.get_item(slice)
}

/// Whether two arrays that lie in memory without gaps hold the same bytes; false where that cannot be seen.
fn same_memory(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> bool {
    let (Ok(a), Ok(b)) = (PyUntypedBuffer::get(a), PyUntypedBuffer::get(b)) else { return false };
    if !a.is_c_contiguous() || !b.is_c_contiguous() || a.len_bytes() != b.len_bytes() || a.len_bytes() == 0 {
        return false;
    }
    let bytes = |buffer: &PyUntypedBuffer| {
        // SAFETY: the memory that the buffer says it has, held by it; nobody writes while the interpreter's lock is held.
        unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast::<u8>(), buffer.len_bytes()) }
    };
    bytes(&a) == bytes(&b)
}
