//! Functions of the interpreter that have other names in some versions, or none: looked up once, so that an interpreter
//! without one works as well, if slower.

use pyo3::exceptions::PyAttributeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

/// The address of a function of this process, as a function pointer of its type.
#[cfg(unix)]
fn symbol(name: &CStr) -> *mut c_void {
    unsafe extern "C" {
        fn dlsym(handle: *mut c_void, symbol: *const std::ffi::c_char) -> *mut c_void;
    }
    // SAFETY: a null handle means every library of the process; the name ends in a zero
    unsafe { dlsym(std::ptr::null_mut(), name.as_ptr()) }
}

#[cfg(not(unix))]
fn symbol(_name: &CStr) -> *mut c_void {
    std::ptr::null_mut()
}

type Presized = unsafe extern "C" fn(ffi::Py_ssize_t) -> *mut ffi::PyObject;
type Lookup = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject, *mut *mut ffi::PyObject) -> c_int;

/// An empty dictionary with room for that many items where the interpreter can make one: growing to 100 items in steps
/// costs a microsecond.
pub fn dict_of(py: Python<'_>, len: usize) -> PyResult<Bound<'_, PyDict>> {
    // up to this many items fit a new dictionary
    const SMALL: usize = 5;
    static FOUND: OnceLock<Option<Presized>> = OnceLock::new();
    if len <= SMALL {
        return Ok(PyDict::new(py));
    }
    let presized = FOUND.get_or_init(|| {
        let found = symbol(c"_PyDict_NewPresized");
        // SAFETY: the address of a function of this type, in every version that exports it
        (!found.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, Presized>(found) })
    });
    let Some(presized) = presized else { return Ok(PyDict::new(py)) };
    // SAFETY: the interpreter's own function
    let dict = unsafe { Bound::from_owned_ptr_or_err(py, presized(len as ffi::Py_ssize_t)) }?;
    Ok(dict.cast_into::<PyDict>()?)
}

/// An attribute of an object, if it has it. No exception is made for one that it has not, which takes a microsecond
/// where `getattr` has to make one.
pub fn attribute<'py>(object: &Bound<'py, PyAny>, name: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
    static FOUND: OnceLock<Option<Lookup>> = OnceLock::new();
    let lookup = FOUND.get_or_init(|| {
        let found =
            [c"PyObject_GetOptionalAttr", c"_PyObject_LookupAttr"].map(symbol).into_iter().find(|f| !f.is_null());
        // SAFETY: both are of this type, in every version that exports them
        found.map(|f| unsafe { std::mem::transmute::<*mut c_void, Lookup>(f) })
    });
    let Some(lookup) = lookup else {
        return match object.getattr(name) {
            Ok(value) => Ok(Some(value)),
            Err(e) if e.is_instance_of::<PyAttributeError>(object.py()) => Ok(None),
            Err(e) => Err(e),
        };
    };
    let mut value = std::ptr::null_mut();
    // SAFETY: two live objects; what is given back is a new reference, or null
    unsafe {
        if lookup(object.as_ptr(), name.as_ptr(), &raw mut value) < 0 {
            return Err(PyErr::fetch(object.py()));
        }
        Ok(Bound::from_owned_ptr_or_opt(object.py(), value))
    }
}
