//! The objects of arrays, made without what CPython 3.11 and 3.12 do for each object that may have attributes.
//!
//! Read next: `array.rs` for the classes.

use crate::array::{ArrayImpl, PyArray};
use ferrax_base::{DType, Scalar};
use ferrax_ir::{Lit, Value};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::type_object::PyTypeInfo;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where the value lies in the object of an array.
static VALUE: AtomicUsize = AtomicUsize::new(0);

/// The object of an array. CPython 3.11 and 3.12 make a dictionary for each object that PyO3 makes of a class that can have
/// one; here it is made when a user sets the first attribute.
#[inline]
pub fn fresh(py: Python<'_>, value: PyArray) -> PyResult<Bound<'_, PyAny>> {
    let class = ArrayImpl::type_object_raw(py);
    // SAFETY: an object of this class has its value at `VALUE`, and pointers that are zero, as `find_value` made sure
    unsafe {
        let object = ffi::PyObject_GC_New::<ffi::PyObject>(class);
        if object.is_null() {
            return Err(PyErr::fetch(py));
        }
        let rest = (*class).tp_basicsize as usize - size_of::<ffi::PyObject>();
        object.add(1).cast::<u8>().write_bytes(0, rest);
        object.byte_add(VALUE.load(Ordering::Relaxed)).cast::<PyArray>().write(value);
        ffi::PyObject_GC_Track(object.cast());
        Ok(Bound::from_owned_ptr(py, object))
    }
}

/// Finds where PyO3 puts the value: beside it are a dictionary and a list of weak references, whose pointers begin as
/// zeros, and padding.
pub fn find_value(py: Python<'_>) -> PyResult<()> {
    let value = Value::Lit(Lit { scalar: Scalar { dtype: DType::Bool, bits: 0 }, weak: false });
    let sample = Bound::new(py, PyClassInitializer::from(PyArray { value }).add_subclass(ArrayImpl))?;
    // SAFETY: the class of an object that lives
    let size = unsafe { (*sample.get_type().as_type_ptr()).tp_basicsize as usize };
    let known = size_of::<ffi::PyObject>() + size_of::<PyArray>() + 2 * size_of::<usize>();
    assert!(
        size >= known && size < known + 2 * align_of::<PyArray>(),
        "arrays' objects have {size} bytes, not {known}"
    );
    VALUE.store(ptr::from_ref(sample.as_super().get()).addr() - sample.as_ptr().addr(), Ordering::Relaxed);
    Ok(())
}
