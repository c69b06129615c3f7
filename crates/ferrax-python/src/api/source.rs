//! Source tokens from Python frames: a number for the code object and the instruction offset.
//!
//! Code objects are numbered the first time they are seen; whether one belongs to the library itself is found out once.
//! The last [`MOST`] of them are kept alive: a program that makes functions without end loses the lines of the oldest.
//! Text is made only when an error is shown.

use ferrax_base::Source;
use ferrax_base::source::{Location, SourceHost, set_host};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCode;
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Mutex, OnceLock};

struct Unit {
    code: Py<PyAny>,
    library: bool,
}

/// Code objects that are kept.
const MOST: usize = 1 << 16;

#[derive(Default)]
struct Units {
    numbers: FxHashMap<usize, u32>,
    /// The number of the oldest that is kept; others follow it.
    oldest: u32,
    units: VecDeque<Unit>,
}

impl Units {
    fn get(&self, number: u32) -> Option<&Unit> {
        self.units.get(number.checked_sub(self.oldest)? as usize)
    }

    /// Numbers a code object that has none, and gives up the oldest where there are too many.
    fn add(&mut self, unit: Unit) -> (u32, Option<Unit>) {
        let n = self.oldest + self.units.len() as u32;
        self.numbers.insert(unit.code.as_ptr() as usize, n);
        self.units.push_back(unit);
        let gone = if self.units.len() > MOST { self.units.pop_front() } else { None };
        if let Some(gone) = &gone {
            self.oldest += 1;
            self.numbers.remove(&(gone.code.as_ptr() as usize));
        }
        (n, gone)
    }
}

static UNITS: Mutex<Option<Units>> = Mutex::new(None);
static LIBRARY: OnceLock<String> = OnceLock::new();

/// Frames of files below this folder belong to the library and are skipped.
#[pyfunction]
pub fn set_library_folder(folder: String) {
    let _ = LIBRARY.set(folder);
}

/// Whether a file, or a place in one, belongs to the library.
pub fn is_library_file(place: &str) -> bool {
    LIBRARY.get().is_some_and(|folder| place.starts_with(folder.as_str()))
}

/// Makes Python the host of source tokens.
pub fn install() {
    set_host(SourceHost { capture, describe });
}

fn number(py: Python<'_>, code: *mut ffi::PyObject) -> (u32, bool) {
    let mut guard = UNITS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let table = guard.get_or_insert_default();
    if let Some(&n) = table.numbers.get(&(code as usize)) {
        return (n, table.get(n).is_some_and(|unit| unit.library));
    }
    // SAFETY: `code` is a live code object: the caller holds a reference.
    let code: Py<PyAny> = unsafe { Bound::from_borrowed_ptr(py, code) }.unbind();
    let file: String = code.getattr(py, "co_filename").and_then(|f| f.extract(py)).unwrap_or_default();
    let library = LIBRARY.get().is_some_and(|folder| file.starts_with(folder.as_str()));
    let (n, gone) = table.add(Unit { code, library });
    // a code object that goes may run code of users: not under the lock
    drop(guard);
    drop(gone);
    (n, library)
}

/// Whether a code object is the library's own.
pub fn in_library(code: &Bound<'_, PyAny>) -> bool {
    number(code.py(), code.as_ptr()).1
}

thread_local! {
    /// The frame that called the function of the library that is traced; null for none.
    static CALLER: Cell<*mut ffi::PyFrameObject> = const { Cell::new(std::ptr::null_mut()) };
}

/// While it lives, operations of a function of the library have no place: its program serves every caller, and the
/// place of the call stands for theirs.
pub struct OfAnyCaller(*mut ffi::PyFrameObject);

impl OfAnyCaller {
    /// Starts it where the code is the library's.
    pub fn start(code: &Bound<'_, PyAny>) -> Option<OfAnyCaller> {
        // SAFETY: the interpreter is attached; the frame is kept alive while it is compared with
        in_library(code).then(|| unsafe {
            let frame = ffi::PyEval_GetFrame();
            ffi::Py_XINCREF(frame.cast());
            OfAnyCaller(CALLER.replace(frame))
        })
    }
}

impl Drop for OfAnyCaller {
    fn drop(&mut self) {
        // SAFETY: it is dropped where it was started, with the interpreter attached
        unsafe { ffi::Py_XDECREF(CALLER.replace(self.0).cast()) }
    }
}

/// The innermost frame outside the library.
fn capture() -> Source {
    // SAFETY: frames are walked with the interpreter attached; every owned reference is released.
    unsafe {
        if ffi::Py_IsInitialized() == 0 || ffi::PyGILState_Check() == 0 {
            return Source::default();
        }
        let py = Python::assume_attached();
        let first = ffi::PyEval_GetFrame();
        if first.is_null() {
            return Source::default();
        }
        ffi::Py_INCREF(first.cast());
        let mut frame = first;
        while !frame.is_null() {
            if frame == CALLER.get() {
                ffi::Py_DECREF(frame.cast());
                return Source::default();
            }
            let code = ffi::PyFrame_GetCode(frame);
            let (n, library) = number(py, code.cast());
            ffi::Py_DECREF(code.cast());
            if !library {
                let offset = ffi::PyFrame_GetLasti(frame);
                ffi::Py_DECREF(frame.cast());
                return Source { unit: n + 1, offset: offset.max(0) as u32, ..Source::default() };
            }
            let back = ffi::PyFrame_GetBack(frame);
            ffi::Py_DECREF(frame.cast());
            frame = back;
        }
        Source::default()
    }
}

fn code_of(py: Python<'_>, source: Source) -> Option<Py<PyAny>> {
    let guard = UNITS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    Some(guard.as_ref()?.get(source.unit.checked_sub(1)?)?.code.clone_ref(py))
}

/// The column of the expression, counted from zero, and the line and the column of its end.
pub fn extent(source: Source) -> Option<(u32, u32, u32)> {
    Python::attach(|py| {
        let positions = code_of(py, source)?.bind(py).call_method0("co_positions").ok()?;
        let at = positions.try_iter().ok()?.nth(source.offset as usize / 2)?.ok()?;
        let part = |i: usize| at.get_item(i).ok()?.extract().ok();
        Some((part(2)?, part(1)?, part(3)?))
    })
}

fn describe(source: Source) -> Option<Location> {
    Python::attach(|py| {
        let code = code_of(py, source)?;
        let code = code.bind(py).cast::<PyCode>().ok()?.clone();
        let file: String = code.getattr("co_filename").ok()?.extract().ok()?;
        let function: String = code.getattr("co_qualname").ok()?.extract().ok()?;
        // SAFETY: a code object and an offset inside it.
        let line = unsafe { ffi::PyCode_Addr2Line(code.as_ptr().cast(), source.offset as i32) };
        let linecache = py.import("linecache").ok()?;
        let text: Option<String> = linecache.call_method1("getline", (&file, line)).ok()?.extract().ok();
        let text = text.filter(|t| !t.trim().is_empty());
        Some(Location { file, line: line.max(0) as u32, function, text })
    })
}
