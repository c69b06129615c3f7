//! A callable Python type over a Rust value: one vectorcall, no Python frame, no allocation of its own.
//!
//! Implement [`FastCall`] for a struct and make instances with [`new_callable`]. Each implementing type gets a
//! Python type of its own (so that `isinstance(jnp.add, jnp.ufunc)` can hold), made when first needed. The
//! Rust value lies inside the Python object. Instances have a `__dict__` (`__name__`, `__doc__`,
//! `__wrapped__`, `__signature__` ... can be set), weak references and garbage collection; those of a type
//! with [`FastCall::METHOD`] bind as methods do. A panic becomes an `InternalError`.
//!
//! Arguments are read through [`Args`], or, with names and Python's error texts, through [`Params`].

use std::any::TypeId;
use std::ffi::{CStr, c_int, c_void};
use std::marker::PhantomData;
use std::mem::{align_of, offset_of, size_of};
use std::ptr;
use std::sync::Mutex;

use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::impl_::trampoline::{self, MethodDef};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};
use pyo3::{Borrowed, ffi, intern};

use crate::errors::guard;

/// A Rust value that Python can call.
pub trait FastCall: Send + Sync + Sized + 'static {
    /// Dotted name of the Python type.
    const TYPE_NAME: &'static CStr = c"ferrax.function";
    /// Whether an instance that is a class attribute binds as a method, as functions of Python do.
    const METHOD: bool = true;

    /// The call itself.
    fn call<'py>(&self, py: Python<'py>, args: Args<'_, 'py>) -> PyResult<Py<PyAny>>;

    /// Shows every Python object that the value holds to the garbage collector.
    fn traverse(&self, _visit: &mut Visit) {}

    /// Drops the Python objects that the value holds in interior-mutable places.
    fn clear(&self) {}

    /// `repr` of an instance.
    fn repr(&self, slf: &Bound<'_, PyAny>) -> PyResult<String> {
        let name = slf.getattr_opt(intern!(slf.py(), "__qualname__"))?;
        let name = name.map_or_else(|| Ok("?".to_owned()), |n| n.extract())?;
        Ok(format!("<function {name}>"))
    }

    /// An attribute that neither the type nor the instance has (like `__getattr__`).
    fn getattr(&self, _slf: &Bound<'_, PyAny>, _name: &str) -> PyResult<Option<Py<PyAny>>> {
        Ok(None)
    }

    /// Adds attributes (methods: callables with [`FastCall::METHOD`]) to the type when it is made.
    fn populate(_class: &Bound<'_, PyType>) -> PyResult<()> {
        Ok(())
    }
}

/// What `inspect.signature` shows.
pub enum Signature<'a> {
    /// Nothing known.
    Unknown,
    /// As in a `def`, `"(x, /, *, axis=None)"`, default values being literals; made when asked for.
    Text(&'a str),
    /// An `inspect.Signature`.
    Object(Py<PyAny>),
}

/// The object: Python's header, then the Rust value.
#[repr(C)]
struct Object<T> {
    base: ffi::PyObject,
    vectorcall: Option<ffi::vectorcallfunc>,
    kind: TypeId,
    dict: *mut ffi::PyObject,
    weakrefs: *mut ffi::PyObject,
    value: T,
}

/// Makes an instance; `name` may be dotted (`Array.at`), then the last part is `__name__`.
pub fn new_callable<T: FastCall>(
    py: Python<'_>,
    value: T,
    name: &str,
    doc: &str,
    signature: Signature<'_>,
) -> PyResult<Py<PyAny>> {
    let object = new_bare(py, value)?;
    let bound = object.bind(py);
    let short = name.rsplit('.').next().unwrap_or(name);
    bound.setattr(intern!(py, "__name__"), PyString::intern(py, short))?;
    bound.setattr(intern!(py, "__qualname__"), PyString::intern(py, name))?;
    if !doc.is_empty() {
        bound.setattr(intern!(py, "__doc__"), doc)?;
    }
    match signature {
        Signature::Unknown => {}
        Signature::Text(text) => bound.setattr(intern!(py, "__text_signature__"), text)?,
        Signature::Object(object) => bound.setattr(intern!(py, "__signature__"), object)?,
    }
    Ok(object)
}

/// Makes an instance without any name or other attribute.
pub fn new_bare<T: FastCall>(py: Python<'_>, value: T) -> PyResult<Py<PyAny>> {
    let class = type_of::<T>(py)?;
    let class = class.as_ptr().cast::<ffi::PyTypeObject>();
    // SAFETY: `class` is a heap type whose instances are `Object<T>`; the fields are written before anybody else
    // sees the object (the collector skips the null pointers that GenericAlloc leaves, and `traverse` is told by
    // the vectorcall field, written last, that the value is there).
    unsafe {
        let raw = ffi::PyType_GenericAlloc(class, 0);
        if raw.is_null() {
            return Err(PyErr::fetch(py));
        }
        let object = raw.cast::<Object<T>>();
        ptr::addr_of_mut!((*object).kind).write(TypeId::of::<T>());
        ptr::addr_of_mut!((*object).value).write(value);
        ptr::addr_of_mut!((*object).vectorcall).write(Some(vectorcall::<T>));
        Ok(Bound::from_owned_ptr(py, raw).unbind())
    }
}

/// The Rust value inside a callable, if it is one of type `T`.
#[inline]
pub fn get<'a, T: FastCall>(object: &'a Bound<'_, PyAny>) -> Option<&'a T> {
    // SAFETY: only the types of this module have `is_callable_type` as `tp_finalize`, all their instances start with
    // the fields of `Object<()>`, and the type id says what the value is; `object` keeps it alive.
    unsafe {
        let raw = object.as_ptr();
        if (*ffi::Py_TYPE(raw)).tp_finalize.map(|f| f as usize) != Some(is_callable_type as *const () as usize) {
            return None;
        }
        let object = raw.cast::<Object<T>>();
        ((*object).kind == TypeId::of::<T>()).then(|| &(*object).value)
    }
}

/// Marks the types of this module (see [`get`]); there is nothing to finalize.
// One address for the whole library: small functions are otherwise copied into each unit that names them.
#[inline(never)]
unsafe extern "C" fn is_callable_type(_object: *mut ffi::PyObject) {}

/// The Python type for `T`, made when first asked for.
pub fn type_of<T: FastCall>(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    static TYPES: Mutex<Vec<(TypeId, Py<PyType>)>> = Mutex::new(Vec::new());
    let find = || {
        let types = TYPES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        types.iter().find(|(id, _)| *id == TypeId::of::<T>()).map(|(_, class)| class.bind(py).clone())
    };
    if let Some(class) = find() {
        return Ok(class);
    }
    let class = make_type::<T>(py)?;
    if let Some(class) = find() {
        return Ok(class);
    }
    let entry = (TypeId::of::<T>(), class.clone().unbind());
    TYPES.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(entry);
    T::populate(&class)?;
    Ok(class)
}

const fn member(name: &'static CStr, offset: usize) -> ffi::PyMemberDef {
    ffi::PyMemberDef {
        name: name.as_ptr(),
        type_code: ffi::Py_T_PYSSIZET,
        offset: offset as ffi::Py_ssize_t,
        flags: ffi::Py_READONLY,
        doc: ptr::null(),
    }
}

const fn slot(slot: c_int, pfunc: *mut c_void) -> ffi::PyType_Slot {
    ffi::PyType_Slot { slot, pfunc }
}

fn make_type<T: FastCall>(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    const { assert!(align_of::<Object<T>>() <= 16) };
    // CPython keeps the pointers into this table for the life of the type: one per Rust type, never freed
    let members = Box::leak(Box::new([
        member(c"__vectorcalloffset__", offset_of!(Object<T>, vectorcall)),
        member(c"__dictoffset__", offset_of!(Object<T>, dict)),
        member(c"__weaklistoffset__", offset_of!(Object<T>, weakrefs)),
        // SAFETY: an all-zero entry ends the table
        unsafe { std::mem::zeroed() },
    ]));
    let getset = Box::leak(Box::new([
        ffi::PyGetSetDef {
            name: c"__dict__".as_ptr(),
            get: Some(ffi::PyObject_GenericGetDict),
            set: Some(ffi::PyObject_GenericSetDict),
            doc: ptr::null(),
            closure: ptr::null_mut(),
        },
        ffi::PyGetSetDef::default(),
    ]));
    let methods = Box::leak(Box::new([
        ffi::PyMethodDef {
            ml_name: c"__reduce__".as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunction: reduce },
            ml_flags: ffi::METH_NOARGS,
            ml_doc: c"Pickles by qualified name, as functions do; jitted ones that have no place in a module by what they are made of.".as_ptr(),
        },
        ffi::PyMethodDef::zeroed(),
    ]));
    let mut slots = vec![
        slot(ffi::Py_tp_dealloc, dealloc::<T> as *mut c_void),
        slot(ffi::Py_tp_traverse, traverse::<T> as *mut c_void),
        slot(ffi::Py_tp_clear, trampoline::inquiry::<Clear<T>> as *mut c_void),
        slot(ffi::Py_tp_finalize, is_callable_type as *mut c_void),
        slot(ffi::Py_tp_call, ffi::PyVectorcall_Call as *mut c_void),
        slot(ffi::Py_tp_repr, trampoline::reprfunc::<Slots<T>> as *mut c_void),
        slot(ffi::Py_tp_getattro, trampoline::getattrofunc::<Slots<T>> as *mut c_void),
        slot(ffi::Py_tp_setattro, ffi::PyObject_GenericSetAttr as *mut c_void),
        slot(ffi::Py_tp_members, members.as_mut_ptr().cast()),
        slot(ffi::Py_tp_getset, getset.as_mut_ptr().cast()),
        slot(ffi::Py_tp_methods, methods.as_mut_ptr().cast()),
    ];
    let mut flags = ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_HAVE_GC | ffi::Py_TPFLAGS_HAVE_VECTORCALL;
    if T::METHOD {
        slots.push(slot(ffi::Py_tp_descr_get, descr_get as *mut c_void));
        flags |= ffi::Py_TPFLAGS_METHOD_DESCRIPTOR;
    } else {
        slots.push(slot(ffi::Py_tp_descr_get, descr_same as *mut c_void));
    }
    slots.push(slot(0, ptr::null_mut()));
    let mut spec = ffi::PyType_Spec {
        name: T::TYPE_NAME.as_ptr(),
        basicsize: size_of::<Object<T>>() as c_int,
        itemsize: 0,
        flags: (flags | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION) as _,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the spec describes `Object<T>`; tables that outlive this call are leaked
    unsafe { Ok(Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&raw mut spec))?.cast_into_unchecked()) }
}

unsafe extern "C" fn vectorcall<T: FastCall>(
    callable: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargsf: usize,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: CPython calls with the interpreter attached; the trampoline only counts and catches
    unsafe {
        let nargs = ffi::PyVectorcall_NARGS(nargsf);
        trampoline::fastcall_cfunction_with_keywords::<Slots<T>>(callable, args, nargs, kwnames)
    }
}

/// The trampolines of `pyo3` (attach count, panics, error return) over the functions of `T`.
struct Slots<T>(PhantomData<T>);

impl<T: FastCall> MethodDef<trampoline::fastcall_cfunction_with_keywords::Func> for Slots<T> {
    const METH: trampoline::fastcall_cfunction_with_keywords::Func = call::<T>;
}

impl<T: FastCall> MethodDef<trampoline::reprfunc::Func> for Slots<T> {
    const METH: trampoline::reprfunc::Func = repr::<T>;
}

impl<T: FastCall> MethodDef<trampoline::getattrofunc::Func> for Slots<T> {
    const METH: trampoline::getattrofunc::Func = getattr::<T>;
}

/// The destructor behind a trampoline, and the collector's clear.
struct Dealloc<T>(PhantomData<T>);
struct Clear<T>(PhantomData<T>);

impl<T: FastCall> MethodDef<trampoline::inquiry::Func> for Dealloc<T> {
    const METH: trampoline::inquiry::Func = drop_value::<T>;
}

impl<T: FastCall> MethodDef<trampoline::inquiry::Func> for Clear<T> {
    const METH: trampoline::inquiry::Func = clear_value::<T>;
}

unsafe fn call<T: FastCall>(
    py: Python<'_>,
    callable: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> PyResult<*mut ffi::PyObject> {
    // SAFETY: `callable` is an `Object<T>` that the caller keeps alive, and the other three are a vectorcall's
    unsafe {
        let value = &(*callable.cast::<Object<T>>()).value;
        let args = Args { py, callable, first: args, nargs: nargs as usize, kwnames, _life: PhantomData };
        guard(|| value.call(py, args)).map(Py::into_ptr)
    }
}

unsafe fn repr<T: FastCall>(py: Python<'_>, slf: *mut ffi::PyObject) -> PyResult<*mut ffi::PyObject> {
    // SAFETY: `slf` is an `Object<T>` that the caller keeps alive
    unsafe {
        let bound = Borrowed::from_ptr(py, slf);
        let text = guard(|| (*slf.cast::<Object<T>>()).value.repr(&bound))?;
        Ok(PyString::new(py, &text).into_ptr())
    }
}

unsafe fn getattr<T: FastCall>(
    py: Python<'_>,
    slf: *mut ffi::PyObject,
    name: *mut ffi::PyObject,
) -> PyResult<*mut ffi::PyObject> {
    // SAFETY: `slf` is an `Object<T>`, `name` an attribute name; both are kept alive by the caller
    unsafe {
        let found = ffi::PyObject_GenericGetAttr(slf, name);
        if !found.is_null() {
            return Ok(found);
        }
        let missing = PyErr::fetch(py);
        if !missing.is_instance_of::<PyAttributeError>(py) {
            return Err(missing);
        }
        let (bound, name) = (Borrowed::from_ptr(py, slf), Borrowed::from_ptr(py, name));
        let name = name.cast::<PyString>()?;
        let name = name.to_str()?;
        if name == "__signature__" {
            return signature(&bound)?.map(Bound::into_ptr).ok_or(missing);
        }
        let value = &(*slf.cast::<Object<T>>()).value;
        guard(|| value.getattr(&bound, name))?.map(Py::into_ptr).ok_or(missing)
    }
}

/// An `inspect.Signature` from `__definition__` (a Python function with the same parameters) or `__text_signature__`.
fn signature<'py>(slf: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = slf.py();
    let function = if let Some(definition) = slf.getattr_opt(intern!(py, "__definition__"))? {
        definition
    } else {
        let Some(text) = slf.getattr_opt(intern!(py, "__text_signature__"))? else { return Ok(None) };
        let Ok(text) = text.extract::<String>() else { return Ok(None) };
        let inner = text.trim_start_matches('(').trim_end_matches(')');
        py.eval(&std::ffi::CString::new(format!("lambda {inner}: None"))?, None, None)?
    };
    let signature = py.import("inspect")?.call_method1("signature", (function,))?;
    slf.setattr(intern!(py, "__signature__"), &signature)?;
    Ok(Some(signature))
}

/// `__reduce__`: the qualified name, which makes pickle store a reference to the module's attribute; of a jitted
/// function that is found nowhere, its parts.
unsafe extern "C" fn reduce(slf: *mut ffi::PyObject, _unused: *mut ffi::PyObject) -> *mut ffi::PyObject {
    Python::attach(|py| {
        // SAFETY: `slf` is a live object
        let function = unsafe { Borrowed::from_ptr(py, slf) };
        let reduced = guard(|| py.import("ferrax._pickling")?.call_method1("reduced", (&*function,)));
        reduced.map_or_else(
            |e| {
                e.restore(py);
                ptr::null_mut()
            },
            Bound::into_ptr,
        )
    })
}

unsafe extern "C" {
    fn PyMethod_New(function: *mut ffi::PyObject, object: *mut ffi::PyObject) -> *mut ffi::PyObject;
}

unsafe extern "C" fn descr_get(
    slf: *mut ffi::PyObject,
    object: *mut ffi::PyObject,
    _class: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: arguments of a descriptor's get; the result is a new reference in both cases
    unsafe {
        if object.is_null() || object == ffi::Py_None() {
            ffi::Py_INCREF(slf);
            slf
        } else {
            PyMethod_New(slf, object)
        }
    }
}

/// Found in a class, a function of the library is itself. (That it is a descriptor makes it a routine to `inspect`, so
/// that `help` shows its signature.)
unsafe extern "C" fn descr_same(
    slf: *mut ffi::PyObject,
    _object: *mut ffi::PyObject,
    _class: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: `slf` is a live object; the result is a new reference
    unsafe {
        ffi::Py_INCREF(slf);
        slf
    }
}

unsafe fn drop_value<T: FastCall>(_py: Python<'_>, slf: *mut ffi::PyObject) -> PyResult<c_int> {
    // SAFETY: called once, from `dealloc`, when nobody else has a reference
    unsafe {
        let object = slf.cast::<Object<T>>();
        if (*object).vectorcall.take().is_some() {
            ptr::drop_in_place(ptr::addr_of_mut!((*object).value));
        }
    }
    Ok(0)
}

unsafe extern "C" fn dealloc<T: FastCall>(slf: *mut ffi::PyObject) {
    // SAFETY: the last reference is gone; order as in CPython's own types
    unsafe {
        ffi::PyObject_GC_UnTrack(slf.cast());
        let object = slf.cast::<Object<T>>();
        if !(*object).weakrefs.is_null() {
            ffi::PyObject_ClearWeakRefs(slf);
        }
        ffi::Py_CLEAR(&raw mut (*object).dict);
        trampoline::inquiry::<Dealloc<T>>(slf);
        let class = ffi::Py_TYPE(slf);
        ffi::PyObject_GC_Del(slf.cast());
        ffi::Py_DECREF(class.cast());
    }
}

unsafe extern "C" fn traverse<T: FastCall>(slf: *mut ffi::PyObject, visit: ffi::visitproc, arg: *mut c_void) -> c_int {
    // SAFETY: `slf` is an `Object<T>`; its value is there once `vectorcall` is
    unsafe {
        let object = slf.cast::<Object<T>>();
        let mut visit = Visit { report: visit, arg, result: 0 };
        visit.raw(ffi::Py_TYPE(slf).cast());
        visit.raw((*object).dict);
        if (*object).vectorcall.is_some() {
            (*object).value.traverse(&mut visit);
        }
        visit.result
    }
}

unsafe fn clear_value<T: FastCall>(_py: Python<'_>, slf: *mut ffi::PyObject) -> PyResult<c_int> {
    // SAFETY: `slf` is an `Object<T>` that the collector found unreachable
    unsafe {
        let object = slf.cast::<Object<T>>();
        ffi::Py_CLEAR(&raw mut (*object).dict);
        if (*object).vectorcall.is_some() {
            (*object).value.clear();
        }
    }
    Ok(0)
}

/// The garbage collector's visitor.
pub struct Visit {
    report: ffi::visitproc,
    arg: *mut c_void,
    result: c_int,
}

impl Visit {
    /// Shows one object.
    #[inline]
    pub fn object<T>(&mut self, object: &Py<T>) {
        self.raw(object.as_ptr());
    }

    fn raw(&mut self, object: *mut ffi::PyObject) {
        if self.result == 0 && !object.is_null() {
            // SAFETY: the pair that CPython passed, and an object that the visited one holds
            self.result = unsafe { (self.report)(object, self.arg) };
        }
    }
}

/// The arguments of a call, borrowed from the caller.
#[derive(Clone, Copy)]
pub struct Args<'a, 'py> {
    py: Python<'py>,
    callable: *mut ffi::PyObject,
    first: *const *mut ffi::PyObject,
    nargs: usize,
    kwnames: *mut ffi::PyObject,
    _life: PhantomData<&'a ()>,
}

impl<'a, 'py> Args<'a, 'py> {
    /// The interpreter token.
    pub fn py(&self) -> Python<'py> {
        self.py
    }

    /// The object that is called.
    pub fn callable(&self) -> Borrowed<'a, 'py, PyAny> {
        // SAFETY: the caller holds it for the time of the call
        unsafe { Borrowed::from_ptr(self.py, self.callable) }
    }

    /// Number of positional arguments.
    #[inline]
    pub fn len(&self) -> usize {
        self.nargs
    }

    /// Whether there is no positional argument.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.nargs == 0
    }

    /// Positional argument `i`.
    ///
    /// # Panics
    /// When there are not that many.
    #[inline]
    pub fn at(&self, i: usize) -> Borrowed<'a, 'py, PyAny> {
        assert!(i < self.nargs);
        // SAFETY: `i` is in range; the caller holds the arguments for the time of the call
        unsafe { Borrowed::from_ptr(self.py, *self.first.add(i)) }
    }

    /// Positional argument `i`, if there are that many.
    #[inline]
    pub fn get(&self, i: usize) -> Option<Borrowed<'a, 'py, PyAny>> {
        (i < self.nargs).then(|| self.at(i))
    }

    /// The positional arguments.
    pub fn positional(&self) -> impl ExactSizeIterator<Item = Borrowed<'a, 'py, PyAny>> + '_ {
        (0..self.nargs).map(|i| self.at(i))
    }

    /// Number of keyword arguments.
    #[inline]
    pub fn kwlen(&self) -> usize {
        if self.kwnames.is_null() {
            0
        } else {
            // SAFETY: `kwnames` is a tuple
            unsafe { ffi::PyTuple_GET_SIZE(self.kwnames) as usize }
        }
    }

    /// Keyword argument `i`: name and value.
    ///
    /// # Panics
    /// When there are not that many.
    #[inline]
    pub fn kw(&self, i: usize) -> (Borrowed<'a, 'py, PyString>, Borrowed<'a, 'py, PyAny>) {
        assert!(i < self.kwlen());
        // SAFETY: names are strings in a tuple, values follow the positional arguments
        unsafe {
            let name = Borrowed::from_ptr(self.py, ffi::PyTuple_GET_ITEM(self.kwnames, i as ffi::Py_ssize_t));
            let value = Borrowed::from_ptr(self.py, *self.first.add(self.nargs + i));
            (name.cast_unchecked(), value)
        }
    }

    /// The keyword arguments.
    pub fn keywords(
        &self,
    ) -> impl ExactSizeIterator<Item = (Borrowed<'a, 'py, PyString>, Borrowed<'a, 'py, PyAny>)> + '_ {
        (0..self.kwlen()).map(|i| self.kw(i))
    }

    /// The keyword argument of that name.
    pub fn keyword(&self, name: &str) -> Option<Borrowed<'a, 'py, PyAny>> {
        self.keywords().find(|(n, _)| n.to_str().is_ok_and(|n| n == name)).map(|(_, value)| value)
    }

    /// The names of the keyword arguments, as the caller's tuple.
    pub fn kwnames(&self) -> Option<Borrowed<'a, 'py, PyTuple>> {
        // SAFETY: null or a tuple that the caller holds
        unsafe { Borrowed::from_ptr_or_opt(self.py, self.kwnames).map(|t| t.cast_unchecked()) }
    }

    /// The arguments without the first `n` positional ones (`self`, say).
    ///
    /// # Panics
    /// When there are not that many.
    #[must_use]
    pub fn skip(&self, n: usize) -> Self {
        assert!(n <= self.nargs);
        // SAFETY: within the caller's array
        Args { first: unsafe { self.first.add(n) }, nargs: self.nargs - n, ..*self }
    }

    /// The raw array, positional arguments first, then the keywords' values.
    pub fn as_ptr(&self) -> *const *mut ffi::PyObject {
        self.first
    }

    /// Calls another callable with the same arguments.
    pub fn forward(&self, callable: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the arguments are a valid vectorcall's, without the offset flag
        unsafe {
            let out = ffi::PyObject_Vectorcall(callable.as_ptr(), self.first, self.nargs, self.kwnames);
            Bound::from_owned_ptr_or_err(self.py, out)
        }
    }
}

/// Named parameters, with Python's error texts.
pub struct Params {
    function: &'static str,
    names: &'static [&'static str],
    positional_only: usize,
    positional: usize,
    required: usize,
}

impl Params {
    /// `names` in order; the first `required` have no default, those from `positional` on are keyword-only.
    pub const fn new(
        function: &'static str,
        names: &'static [&'static str],
        required: usize,
        positional: usize,
    ) -> Self {
        Params { function, names, positional_only: 0, positional, required }
    }

    /// The first `n` parameters cannot be given by name.
    #[must_use]
    pub const fn positional_only(mut self, n: usize) -> Self {
        self.positional_only = n;
        self
    }

    /// The names in order.
    pub const fn names(&self) -> &'static [&'static str] {
        self.names
    }

    /// One entry per name (`None`: not given). `N` is at least the number of names.
    #[inline]
    pub fn parse<'a, 'py, const N: usize>(
        &self,
        args: &Args<'a, 'py>,
    ) -> PyResult<[Option<Borrowed<'a, 'py, PyAny>>; N]> {
        let mut out = [None; N];
        if args.len() > self.positional {
            return Err(self.too_many(args.len()));
        }
        for (i, place) in out.iter_mut().enumerate().take(args.len()) {
            *place = Some(args.at(i));
        }
        for (name, value) in args.keywords() {
            let place = self.place(name.to_str()?)?;
            if out[place].replace(value).is_some() {
                return Err(self.error(format_args!("got multiple values for argument '{}'", self.names[place])));
            }
        }
        if args.len() < self.required && out[..self.required].iter().any(Option::is_none) {
            return Err(self.missing(&out[..self.required]));
        }
        Ok(out)
    }

    #[inline]
    fn place(&self, name: &str) -> PyResult<usize> {
        match self.names.iter().position(|n| *n == name) {
            Some(i) if i >= self.positional_only => Ok(i),
            Some(_) => {
                Err(self
                    .error(format_args!("got some positional-only arguments passed as keyword arguments: '{name}'")))
            }
            None => Err(self.error(format_args!("got an unexpected keyword argument '{name}'"))),
        }
    }

    #[cold]
    fn error(&self, what: std::fmt::Arguments<'_>) -> PyErr {
        PyTypeError::new_err(format!("{}() {what}", self.function))
    }

    #[cold]
    fn too_many(&self, given: usize) -> PyErr {
        let s = if self.positional == 1 { "" } else { "s" };
        let takes = if self.required < self.positional {
            format!("from {} to {}", self.required, self.positional)
        } else {
            self.positional.to_string()
        };
        let were = if given == 1 { "was" } else { "were" };
        self.error(format_args!("takes {takes} positional argument{s} but {given} {were} given"))
    }

    #[cold]
    fn missing(&self, given: &[Option<Borrowed<'_, '_, PyAny>>]) -> PyErr {
        let names: Vec<String> =
            given.iter().zip(self.names).filter(|(g, _)| g.is_none()).map(|(_, n)| format!("'{n}'")).collect();
        let s = if names.len() == 1 { "" } else { "s" };
        let list = match names.split_last() {
            Some((last, rest)) if rest.len() > 1 => format!("{}, and {last}", rest.join(", ")),
            Some((last, rest)) if rest.len() == 1 => format!("{} and {last}", rest[0]),
            _ => names.join(", "),
        };
        self.error(format_args!("missing {} required positional argument{s}: {list}", names.len()))
    }
}
