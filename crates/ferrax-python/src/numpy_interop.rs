//! NumPy arrays and scalars, in and out, through NumPy's stable C layout and function table.
//!
//! In: elements are copied (and narrowed to the enabled width on the way). Out: a read-only NumPy array over the
//! same memory, which stays valid, pinned, however the ferrax array is deleted or donated afterwards.
//! Source: NumPy's C API documentation; the function numbers are part of its ABI.

use crate::dtypes;
use crate::errors::IntoPyResult;
use ferrax::device::Placement;
use ferrax_base::{Aval, Buffer, DType, Scalar, Shape, config};
use ferrax_ir::array::OwnedPin;
use ferrax_ir::{Array, Lit};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyCapsule;
use pyo3::{ffi, intern};
use std::ffi::{c_char, c_int, c_void};

/// The head of NumPy's array object.
#[repr(C)]
struct ArrayObject {
    base: ffi::PyObject,
    data: *mut u8,
    nd: c_int,
    dimensions: *const isize,
    strides: *const isize,
    owner: *mut ffi::PyObject,
    descr: *mut ffi::PyObject,
    flags: c_int,
}

/// The head of NumPy's dtype object, the same in NumPy 1 and 2.
#[repr(C)]
struct DescrObject {
    base: ffi::PyObject,
    scalar_type: *mut ffi::PyTypeObject,
    kind: c_char,
    letter: c_char,
    byteorder: c_char,
    flags: c_char,
    type_num: c_int,
}

/// Type numbers from here on belong to dtypes of other packages.
const USER_DEFINED: c_int = 256;

const C_CONTIGUOUS: c_int = 1;
const ALIGNED: c_int = 0x100;

type NewFromDescr = unsafe extern "C" fn(
    *mut ffi::PyTypeObject,
    *mut ffi::PyObject,
    c_int,
    *const isize,
    *const isize,
    *mut c_void,
    c_int,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;
type SetBaseObject = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> c_int;
type DescrFromScalar = unsafe extern "C" fn(*mut ffi::PyObject) -> *mut ffi::PyObject;
type ScalarAsCtype = unsafe extern "C" fn(*mut ffi::PyObject, *mut c_void);

/// The functions and types of NumPy that are used here.
struct Api {
    array_type: *mut ffi::PyTypeObject,
    generic_type: *mut ffi::PyTypeObject,
    new_from_descr: NewFromDescr,
    set_base_object: SetBaseObject,
    descr_from_scalar: DescrFromScalar,
    scalar_as_ctype: ScalarAsCtype,
}

// SAFETY: addresses of immortal types and functions.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

static API: PyOnceLock<Api> = PyOnceLock::new();

fn load(py: Python<'_>) -> PyResult<Api> {
    let module = py.import("numpy._core._multiarray_umath").or_else(|_| py.import("numpy.core._multiarray_umath"))?;
    let capsule = module.getattr("_ARRAY_API")?.cast_into::<PyCapsule>()?;
    // SAFETY: the capsule holds NumPy's function table, which is never freed; entries have the types of NumPy's ABI.
    unsafe {
        let table = ffi::PyCapsule_GetPointer(capsule.as_ptr(), std::ptr::null::<c_char>()).cast::<*mut c_void>();
        if table.is_null() {
            return Err(PyErr::fetch(py));
        }
        let entry = |i: usize| *table.add(i);
        Ok(Api {
            array_type: entry(2).cast(),
            generic_type: entry(10).cast(),
            descr_from_scalar: std::mem::transmute::<*mut c_void, DescrFromScalar>(entry(57)),
            scalar_as_ctype: std::mem::transmute::<*mut c_void, ScalarAsCtype>(entry(62)),
            new_from_descr: std::mem::transmute::<*mut c_void, NewFromDescr>(entry(94)),
            set_base_object: std::mem::transmute::<*mut c_void, SetBaseObject>(entry(282)),
        })
    }
}

fn api(py: Python<'_>) -> PyResult<&Api> {
    API.get_or_try_init(py, || load(py))
}

/// Whether an object is a NumPy array.
#[inline]
pub fn is_array(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let api = api(object.py())?;
    // SAFETY: two valid pointers.
    Ok(unsafe { ffi::PyObject_TypeCheck(object.as_ptr(), api.array_type) != 0 })
}

/// Whether an object is a NumPy scalar.
#[inline]
pub fn is_scalar(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let api = api(object.py())?;
    // SAFETY: two valid pointers.
    Ok(unsafe { ffi::PyObject_TypeCheck(object.as_ptr(), api.generic_type) != 0 })
}

#[cold]
fn not_numeric(object: &Bound<'_, PyAny>, descr: &Bound<'_, PyAny>) -> PyErr {
    let text = crate::shorten::text(object, crate::shorten::SENTENCE);
    // NumPy's own text of a dtype takes Python calls
    let objects = descr.getattr(intern!(object.py(), "hasobject")).is_ok_and(|o| o.is_truthy().unwrap_or(false));
    let plain = descr.getattr(intern!(object.py(), "names")).is_ok_and(|n| n.is_none());
    let dtype = if objects && plain { "object".to_owned() } else { descr.to_string() };
    PyTypeError::new_err(format!(
        "Value '{text}' with dtype {dtype} is not a valid JAX array type. Only arrays of numeric types are supported by JAX."
    ))
}

/// Bytes of elements converted to their canonical dtype, or `None` where they need no conversion.
fn narrowed(from: DType, to: DType, bytes: &[u8]) -> ferrax_base::Result<Option<Buffer>> {
    if from == to {
        return Ok(None);
    }
    let mut out = Buffer::allocate(bytes.len() / from.size() * to.size())?;
    let words = bytes.chunks_exact(8).map(|b| b.try_into().map_or(0, u64::from_le_bytes));
    match from {
        DType::F64 | DType::C128 => {
            out.typed_mut::<f32>().iter_mut().zip(words).for_each(|(o, w)| *o = f64::from_bits(w) as f32);
        }
        _ => out.typed_mut::<u32>().iter_mut().zip(words).for_each(|(o, w)| *o = w as u32),
    }
    Ok(Some(out))
}

/// Makes 1 of every true byte: others may hold any byte but 0 for true, and ours is 1.
pub fn settle_truths(dtype: DType, bytes: &mut [u8]) {
    if dtype == DType::Bool {
        bytes.iter_mut().for_each(|b| *b = u8::from(*b != 0));
    }
}

/// A copy of elements that somebody else has made.
pub fn copied(dtype: DType, bytes: &[u8]) -> ferrax_base::Result<Buffer> {
    let mut buffer = Buffer::from_bytes(bytes)?;
    settle_truths(dtype, buffer.bytes_mut());
    Ok(buffer)
}

/// Whether elements of a dtype object lie in this machine's byte order.
fn is_native(descr: &Bound<'_, PyAny>) -> bool {
    // SAFETY: callers checked that it is a dtype object, whose head has NumPy's stable layout.
    let order = unsafe { (*descr.as_ptr().cast::<DescrObject>()).byteorder };
    let own = if cfg!(target_endian = "little") { b'<' } else { b'>' };
    matches!(order as u8, b'=' | b'|') || order as u8 == own
}

/// A copy of a NumPy array, in the canonical dtype, on the default device.
pub fn from_array(object: &Bound<'_, PyAny>) -> PyResult<Array> {
    let py = object.py();
    // SAFETY: callers checked `is_array`; the head of the object has NumPy's stable layout.
    let raw = unsafe { &*object.as_ptr().cast::<ArrayObject>() };
    // SAFETY: `descr` is a valid dtype object, held by the array.
    let descr = unsafe { Bound::from_borrowed_ptr(py, raw.descr) };
    // SAFETY: `object` is a valid object.
    let exact = unsafe { ffi::Py_TYPE(object.as_ptr()) } == api(py)?.array_type;
    if !exact && object.hasattr(pyo3::intern!(py, "filled"))? {
        return Err(PyValueError::new_err(
            "numpy masked arrays are not supported as direct inputs to JAX functions. Use arr.filled() to convert the value \
             to a standard numpy array.",
        ));
    }
    let dtype = match dtypes::by_identity(py, raw.descr)? {
        Some(d) => d,
        None => match dtypes::from_descr(&descr)? {
            Some(DType::Float0) => DType::Float0,
            // one of C's other types of this width (`long long`), or with metadata
            Some(d) if is_native(&descr) => d,
            Some(d) => {
                let kwargs = pyo3::types::PyDict::new(py);
                kwargs.set_item("copy", false)?;
                let native = dtypes::to_object(py, d)?;
                return from_array(&object.call_method(intern!(py, "astype"), (native,), Some(&kwargs))?);
            }
            None => return Err(not_numeric(object, &descr)),
        },
    };
    // SAFETY: an array has `nd` dimensions.
    let dims =
        unsafe { std::slice::from_raw_parts(if raw.nd == 0 { [].as_ptr() } else { raw.dimensions }, raw.nd as usize) };
    let shape: Shape = dims.iter().map(|&d| d as usize).collect();
    let aval = Aval { shape, dtype: dtype.canonical(config::x64()), weak: false, vary: 0, spread: 0 };
    let placed = |buffer| Placement::uncommitted().array(aval.clone(), buffer).py();
    if dtype == DType::Float0 {
        return placed(Buffer::from_bytes(&vec![0; aval.size()]).py()?);
    }
    let wanted = C_CONTIGUOUS | ALIGNED;
    if raw.flags & wanted != wanted {
        let plain = py.import("numpy")?.call_method1(intern!(py, "ascontiguousarray"), (object,))?;
        let flat = from_array(&plain)?;
        // `ascontiguousarray` makes rank 0 rank 1
        let bytes = flat.pin().py()?;
        return placed(Buffer::from_bytes(bytes.bytes()).py()?);
    }
    // SAFETY: a contiguous array of `size` elements; it is not written while the interpreter is held.
    let bytes = unsafe { std::slice::from_raw_parts(raw.data, aval.size() * dtype.size()) };
    let buffer = match narrowed(dtype, aval.dtype, bytes).py()? {
        Some(buffer) => buffer,
        None => copied(dtype, bytes).py()?,
    };
    placed(buffer)
}

/// The bytes of a NumPy scalar, the first ones of 16.
fn scalar_bytes(api: &Api, object: &Bound<'_, PyAny>, descr: &Bound<'_, PyAny>, dtype: DType) -> [u8; 16] {
    let mut bytes = [0u8; 16];
    // SAFETY: every dtype of ours takes at most 16 bytes. Of the types of other packages (ml_dtypes) NumPy gives, instead
    // of the number, the address of the number inside of the scalar, which is alive.
    unsafe {
        if (*descr.as_ptr().cast::<DescrObject>()).type_num < USER_DEFINED {
            (api.scalar_as_ctype)(object.as_ptr(), bytes.as_mut_ptr().cast());
        } else {
            let mut number = std::ptr::null::<u8>();
            (api.scalar_as_ctype)(object.as_ptr(), (&raw mut number).cast());
            std::ptr::copy_nonoverlapping(number, bytes.as_mut_ptr(), dtype.size());
        }
    }
    bytes
}

/// A NumPy scalar as a strongly typed constant.
pub fn from_scalar(object: &Bound<'_, PyAny>) -> PyResult<Lit> {
    let py = object.py();
    let api = api(py)?;
    // SAFETY: callers checked `is_scalar`; NumPy gives a new reference.
    let descr = unsafe { Bound::from_owned_ptr_or_err(py, (api.descr_from_scalar)(object.as_ptr()))? };
    let Some(dtype) = dtypes::from_descr(&descr)?.filter(|d| !matches!(d, DType::Float0 | DType::KeyFry)) else {
        return Err(not_numeric(object, &descr));
    };
    let scalar = Scalar::from_bytes(dtype, &scalar_bytes(api, object, &descr, dtype));
    let canonical = dtype.canonical(config::x64());
    // integers wrap, as arrays of them do
    let scalar =
        if dtype.is_integer() { Scalar::from_i64(canonical, scalar.to_i64()) } else { scalar.convert(canonical) };
    Ok(Lit { scalar, weak: false })
}

/// Keeps the memory of a ferrax array alive under a NumPy array.
#[pyclass(frozen, module = "ferrax", name = "_HostView")]
struct HostView {
    _pin: OwnedPin,
}

/// A read-only NumPy array over an array's memory.
pub fn to_array<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyAny>> {
    let aval = array.aval();
    if aval.dtype == DType::Float0 {
        return float0_zeros(py, &aval.shape);
    }
    if aval.dtype.is_key() {
        return Err(PyTypeError::new_err(
            "JAX array with PRNGKey dtype cannot be converted to a NumPy array. Use jax.random.key_data(arr) if you \
             wish to extract the underlying integer array.",
        ));
    }
    crate::watch::copied(array)?;
    let pin = array.pin_owned().py()?;
    let data = pin.buffer().as_ptr();
    let owner = Bound::new(py, HostView { _pin: pin })?;
    let dims: smallvec::SmallVec<[isize; 4]> = aval.shape.iter().map(|&d| d as isize).collect();
    let api = api(py)?;
    let descr = dtypes::to_object(py, aval.dtype)?;
    // SAFETY: the dtype and dimensions describe `data`; NumPy takes over the references to `descr` and `owner`.
    unsafe {
        let made = (api.new_from_descr)(
            api.array_type,
            descr.into_ptr(),
            dims.len() as c_int,
            dims.as_ptr(),
            std::ptr::null(),
            data.cast_mut().cast(),
            C_CONTIGUOUS | ALIGNED,
            std::ptr::null_mut(),
        );
        let made = Bound::from_owned_ptr_or_err(py, made)?;
        if (api.set_base_object)(made.as_ptr(), owner.into_ptr()) != 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(made)
    }
}

/// NumPy's array of `float0` elements, which hold nothing.
pub fn float0_zeros<'py>(py: Python<'py>, shape: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    let dims = pyo3::types::PyTuple::new(py, shape)?;
    py.import("numpy")?.call_method1(intern!(py, "zeros"), (dims, dtypes::to_object(py, DType::Float0)?))
}
