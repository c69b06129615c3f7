//! Arrays as the host sees them: Python numbers, NumPy arrays, buffers, pickles and text.

use crate::array::PyArray;
use crate::errors::IntoPyResult;
use crate::{array, dtypes, numpy_interop, tracer, value};
use ferrax::device::Placement;
use ferrax_base::shape::Tuple;
use ferrax_base::{Aval, Buffer, DType, Scalar, Shape};
use ferrax_ir::array::OwnedPin;
use ferrax_ir::{Array, Payload, Value};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{ffi, intern};
use std::ffi::{CString, c_int, c_void};

/// The concrete value behind a value, looking through derivative tracers.
fn concrete(v: &Value) -> Result<Value, &ferrax_ir::Tracer> {
    match v {
        Value::Tracer(t) => match t.concrete() {
            Some(Value::Tracer(_)) | None => Err(t),
            Some(v) => Ok(v),
        },
        other => Ok(other.clone()),
    }
}

fn first(v: &Value) -> PyResult<Scalar> {
    match v {
        Value::Lit(l) => Ok(l.scalar),
        Value::Array(a) => {
            crate::watch::copied(a)?;
            Ok(Scalar::from_bytes(a.aval().dtype, a.pin().py()?.bytes()))
        }
        Value::Tracer(t) => Err(tracer::concretization(t, "")),
    }
}

/// The error of `bool(x)` for several elements, or none.
#[cold]
fn no_truth(size: usize) -> PyErr {
    PyValueError::new_err(if size == 0 {
        "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an array is not empty."
    } else {
        "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
    })
}

/// `bool(x)`.
pub fn truth(v: &Value) -> PyResult<bool> {
    check_number(v)?;
    if v.size() != 1 {
        return Err(tracer::unless_leaked(v, || no_truth(v.size())));
    }
    match concrete(v) {
        Ok(c) => Ok(first(&c)?.is_nonzero()),
        Err(t) => Err(tracer::bool_conversion(t)),
    }
}

fn check_scalar(v: &Value) -> PyResult<()> {
    check_number(v)?;
    match v.rank() {
        0 => Ok(()),
        rank => Err(tracer::unless_leaked(v, || {
            PyTypeError::new_err(format!(
                "Only scalar arrays can be converted to Python scalars; got arr.ndim={rank}, shape {}",
                ferrax_base::shape::Tuple(v.shape())
            ))
        })),
    }
}

fn check_number(v: &Value) -> PyResult<()> {
    if v.dtype().is_key() {
        let text = "a random key is no number; jax.random.key_data(key) gives its bits";
        return Err(tracer::unless_leaked(v, || PyTypeError::new_err(text)));
    }
    Ok(())
}

/// The context of a failed `int(x)`, `float(x)`, `complex(x)`.
fn conversion(name: &str) -> String {
    format!(
        "The problem arose with the `{name}` function. If trying to convert the data type of a value, try using \
         `x.astype({name})` or `jnp.array(x, {name})` instead."
    )
}

/// `int(x)`.
pub fn int<'py>(py: Python<'py>, v: &Value) -> PyResult<Bound<'py, PyAny>> {
    check_scalar(v)?;
    let c = concrete(v).map_err(|t| tracer::concretization(t, &conversion("int")))?;
    let n = value::number(py, first(&c)?)?;
    // SAFETY: a valid object; the result is a new reference.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyNumber_Long(n.as_ptr())) }
}

/// `float(x)`. A derivative tracer has no float: the derivative would be lost without a word.
pub fn float(py: Python<'_>, v: &Value) -> PyResult<f64> {
    check_scalar(v)?;
    if let Value::Tracer(t) = v {
        return Err(tracer::concretization(t, &conversion("float")));
    }
    let s = first(v)?;
    if s.dtype.is_complex() {
        let n = value::number(py, s)?;
        // SAFETY: a valid object; CPython sets the exception.
        let out = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyNumber_Float(n.as_ptr())) }?;
        return out.extract();
    }
    Ok(if s.dtype.is_unsigned() { s.bits as u64 as f64 } else { s.to_f64() })
}

/// `complex(x)`; of tracers as `float`.
pub fn complex<'py>(py: Python<'py>, v: &Value) -> PyResult<Bound<'py, PyAny>> {
    check_scalar(v)?;
    if let Value::Tracer(t) = v {
        return Err(tracer::concretization(t, &conversion("complex")));
    }
    let s = first(v)?;
    Ok(pyo3::types::PyComplex::from_doubles(py, s.to_f64(), s.imag()).into_any())
}

/// `operator.index(x)`.
pub fn index<'py>(py: Python<'py>, v: &Value) -> PyResult<Bound<'py, PyAny>> {
    if v.rank() != 0 || !v.dtype().is_integer() {
        let text = "Only integer scalar arrays can be converted to a scalar index.";
        return Err(tracer::unless_leaked(v, || PyTypeError::new_err(text)));
    }
    match concrete(v) {
        Ok(c) => value::number(py, first(&c)?),
        Err(t) => Err(tracer::integer_conversion(t)),
    }
}

/// `x.item(*args)`.
pub fn item<'py>(slf: &Bound<'py, PyArray>, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    let v = &slf.get().value;
    check_number(v)?;
    let c = concrete(v).map_err(|t| tracer::concretization(t, "This occurred in the item() method of jax.Array"))?;
    if args.is_empty() && v.size() == 1 {
        return value::number(slf.py(), first(&c)?);
    }
    if args.is_empty() {
        return Err(PyValueError::new_err("can only convert an array of size 1 to a Python scalar"));
    }
    let a = value::concrete(&c, "")?;
    numpy_interop::to_array(slf.py(), &a)?.call_method1(intern!(slf.py(), "item"), args.clone())
}

/// Row `i` of the first axis, copied.
pub fn row(a: &Array, i: usize) -> PyResult<Array> {
    let shape = Shape::from_slice(&a.aval().shape[1..]);
    let aval = Aval { shape, dtype: a.aval().dtype, weak: a.aval().weak, vary: 0, spread: 0 };
    let bytes = aval.bytes();
    let buffer = Buffer::from_bytes(&a.pin().py()?.bytes()[i * bytes..(i + 1) * bytes]).py()?;
    Placement { device: a.device(), committed: a.committed() }.array(aval, buffer).py()
}

/// Errors unless an array's memory is the host's.
pub fn on_cpu(a: &Array, asked: &str) -> PyResult<()> {
    let devices = a.device().devices().len();
    if devices > 1 {
        return Err(PyBufferError::new_err(format!(
            "{asked} needs an array on a single device; the array has a Sharding over {devices} devices"
        )));
    }
    if a.device().on_cpu() {
        return Ok(());
    }
    let platform = ferrax::engine::of(a.device()).py()?.platform();
    Err(PyBufferError::new_err(format!(
        "{asked} needs memory of the CPU; the array is on platform {platform}: jax.device_put it on a CPU device first"
    )))
}

/// `x.__array__(dtype, copy=…)`: a read-only view unless another dtype or a copy is asked for.
pub fn to_numpy<'py>(
    py: Python<'py>,
    a: &Array,
    dtype: Option<&Bound<'py, PyAny>>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let view = numpy_interop::to_array(py, a)?;
    let Some(dtype) = dtype.filter(|d| !d.is_none()) else {
        return if copy == Some(true) { view.call_method0(intern!(py, "copy")) } else { Ok(view) };
    };
    let kwargs = PyDict::new(py);
    kwargs.set_item(intern!(py, "dtype"), dtype)?;
    match copy {
        Some(copy) => {
            kwargs.set_item(intern!(py, "copy"), copy)?;
            py.import("numpy")?.call_method(intern!(py, "array"), (view,), Some(&kwargs))
        }
        None => py.import("numpy")?.call_method(intern!(py, "asarray"), (view,), Some(&kwargs)),
    }
}

/// `x.__reduce__()`: the data as a NumPy array, and the weak type.
pub fn reduce<'py>(slf: &Bound<'py, PyArray>) -> PyResult<Bound<'py, PyAny>> {
    let py = slf.py();
    let a = match &slf.get().value {
        Value::Array(a) => a.clone(),
        Value::Tracer(t) => {
            let context = "The error occurred in the __reduce__ method, which may indicate an attempt to \
                           serialize/pickle a traced value.";
            return Err(tracer::concretization(t, context));
        }
        Value::Lit(l) => ferrax::dispatch::scalar_array(l).py()?,
    };
    let dtype = a.aval().dtype;
    let bytes = pyo3::types::PyBytes::new(py, a.pin().py()?.bytes());
    let dims = PyTuple::new(py, a.aval().shape.iter())?;
    let make = py.import("ferrax._ferrax")?.getattr("_reconstruct_array")?;
    Ok((make, (bytes, dims, dtype.name(), a.aval().weak)).into_pyobject(py)?.into_any())
}

/// The array of a pickle.
#[pyfunction]
fn _reconstruct_array<'py>(
    py: Python<'py>,
    bytes: &[u8],
    dims: value::ShapeArg,
    dtype: &str,
    weak: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(dtype) = DType::from_name(dtype) else {
        return Err(PyTypeError::new_err(format!("data type '{dtype}' not understood")));
    };
    let aval = Aval { shape: dims.0, dtype, weak, vary: 0, spread: 0 };
    if aval.bytes() != bytes.len() {
        return Err(PyValueError::new_err(format!("a pickled {aval} has {} bytes, not {}", aval.bytes(), bytes.len())));
    }
    let a = Placement::uncommitted().array(aval, numpy_interop::copied(dtype, bytes).py()?).py()?;
    array::wrap_array(py, a)
}

/// The elements as unsigned words, for showing keys.
fn key_words<'py>(py: Python<'py>, a: &Array) -> PyResult<Bound<'py, PyAny>> {
    let mut dims = a.aval().shape.clone();
    dims.push(2);
    let words = Array::new(
        Aval { shape: dims, dtype: DType::U32, weak: false, vary: 0, spread: 0 },
        Buffer::from_bytes(a.pin().py()?.bytes()).py()?,
    );
    numpy_interop::to_array(py, &words)
}

/// The text of a value that is no array of this process as a whole: of one inside a function that `shard_map` runs on known
/// values, what each device holds of it; of an array that other processes have parts of, its type.
fn on_devices(py: Python<'_>, v: &Value) -> PyResult<Option<String>> {
    static TEXT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if let Value::Array(a) = v
        && !ferrax::device::has_all(a.device()).py()?
    {
        let Aval { shape, dtype, weak, .. } = a.aval();
        return Ok(Some(format!(
            "Array(shape={}, dtype={dtype}{})",
            Tuple(shape),
            if *weak { ", weak_type=True" } else { "" }
        )));
    }
    if !ferrax_ir::trace::is_mapped_eagerly() {
        return Ok(None);
    }
    let (mut whole, mut axes) = (v.clone(), Vec::new());
    while let Some(t) = whole.as_tracer() {
        let Payload::Batched { value, axis } = t.payload() else { return Ok(None) };
        let Some(name) = ferrax_ir::trace::axis_of(t.trace().id()) else { return Ok(None) };
        axes.push((name.to_string(), *axis));
        whole = value.clone();
    }
    let whole = value::to_py(py, whole)?;
    dtypes::imported(&TEXT, py, "ferrax.sharding._manual", "text")?.call1((whole, axes))?.extract()
}

/// `repr(x)`.
pub fn repr(py: Python<'_>, v: &Value) -> PyResult<String> {
    if let Some(text) = on_devices(py, v)? {
        return Ok(text);
    }
    let a = match v {
        Value::Tracer(t) => return Ok(tracer::repr(py, t)),
        other => value::concrete(other, "")?,
    };
    let aval = a.aval();
    if aval.dtype.is_key() {
        let words = key_words(py, &a)?.str()?;
        return Ok(format!("Array({}, dtype={}) overlaying:\n{words}", Tuple(&aval.shape), aval.dtype));
    }
    const PREFIX: &str = "Array(";
    let numpy = py.import("numpy")?;
    let width: usize = numpy.call_method0("get_printoptions")?.get_item("linewidth")?.extract()?;
    let body = if aval.size() == 0 {
        a.pin().py()?;
        format!("[], shape={}", Tuple(&aval.shape))
    } else {
        let kwargs = PyDict::new(py);
        kwargs.set_item("prefix", PREFIX)?;
        kwargs.set_item("suffix", ",")?;
        kwargs.set_item("separator", ", ")?;
        kwargs.set_item("max_line_width", width)?;
        numpy.call_method("array2string", (numpy_interop::to_array(py, &a)?,), Some(&kwargs))?.extract()?
    };
    let dtype = format!("dtype={}{}", aval.dtype, if aval.weak { ", weak_type=True" } else { "" });
    let last_line = body.rsplit('\n').next().unwrap_or("").len();
    // what does not fit, with room for four more, stays on the line, further to the right, as in JAX
    let separator = " ".repeat(if last_line + dtype.len() + 4 > width { PREFIX.len() } else { 1 });
    Ok(format!("{PREFIX}{body},{separator}{dtype})"))
}

/// `str(x)`.
pub fn text(py: Python<'_>, v: &Value) -> PyResult<String> {
    if let Some(text) = on_devices(py, v)? {
        return Ok(text);
    }
    let a = match v {
        Value::Tracer(t) => return Ok(tracer::repr(py, t)),
        other => value::concrete(other, "")?,
    };
    if a.aval().dtype.is_key() {
        return repr(py, v);
    }
    Ok(numpy_interop::to_array(py, &a)?.str()?.to_string())
}

/// `format(x, spec)`: that of the Python number for rank 0, of the NumPy array otherwise.
pub fn format<'py>(slf: &Bound<'py, PyArray>, spec: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = slf.py();
    let v = &slf.get().value;
    if v.as_tracer().is_some() || v.dtype().is_key() {
        if spec.is_truthy()? {
            let name = slf.get_type().name()?;
            let error = || PyTypeError::new_err(format!("unsupported format string passed to {name}.__format__"));
            return Err(tracer::unless_leaked(v, error));
        }
        return Ok(slf.str()?.into_any());
    }
    if let Some(text) = on_devices(py, v)? {
        return Ok(text.into_pyobject(py)?.into_any());
    }
    let shown = numpy_interop::to_array(py, &value::concrete(v, "")?)?;
    // indexing with () makes the NumPy scalar of a rank-0 array
    let shown = if v.rank() == 0 { shown.get_item(PyTuple::empty(py))? } else { shown };
    shown.call_method1(intern!(py, "__format__"), (spec,))
}

/// `x @ y`; `NotImplemented` for operands of foreign types.
pub fn matmul<'py>(x: &Bound<'py, PyAny>, y: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
    static MATMUL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = x.py();
    if let Some(out) = crate::shortcut::product(x, y)? {
        return Ok(out);
    }
    if value::value_of(x)?.is_none() || value::value_of(y)?.is_none() {
        return Ok(py.NotImplemented());
    }
    dtypes::imported(&MATMUL, py, "ferrax.numpy", "matmul")?.call1((x, y)).map(Bound::unbind)
}

/// `round(x, ndigits)`; without digits the result is an integer.
pub fn round<'py>(x: &Bound<'py, PyArray>, ndigits: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    let rounded = py.import("ferrax.numpy")?.call_method1(intern!(py, "round"), (x, ndigits.unwrap_or(0)))?;
    if ndigits.is_some() {
        return Ok(rounded);
    }
    rounded.call_method1(intern!(py, "astype"), (py.get_type::<pyo3::types::PyInt>(),))
}

// ---- the buffer protocol ---------------------------------------------------------------------------------------

/// What a `Py_buffer` of ours keeps: the pin, and the arrays it points into.
struct Exported {
    _pin: OwnedPin,
    dims: Vec<isize>,
    strides: Vec<isize>,
    format: CString,
}

/// Whether C's `long` has 64 bits: where it has, NumPy's `int64` is that type, not `long long`.
const LONG: bool = size_of::<std::ffi::c_long>() == 8;

/// The `struct`-module format of a dtype.
fn format_code(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::Bool => "?",
        DType::I8 => "b",
        DType::U8 => "B",
        DType::I16 => "h",
        DType::U16 => "H",
        DType::I32 => "i",
        DType::U32 => "I",
        DType::I64 if LONG => "l",
        DType::I64 => "q",
        DType::U64 if LONG => "L",
        DType::U64 => "Q",
        DType::F16 => "e",
        DType::F32 => "f",
        DType::F64 => "d",
        DType::C64 => "=Zf",
        DType::C128 => "=Zd",
        _ => return None,
    })
}

/// Fills a `Py_buffer` with a read-only view.
///
/// # Safety
/// `view` must point to a `Py_buffer` that may be written.
pub unsafe fn fill_buffer(
    owner: &Bound<'_, PyAny>,
    a: &Array,
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    if flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
        return Err(PyBufferError::new_err("INVALID_ARGUMENT: XLA buffers are read-only."));
    }
    let aval = a.aval();
    let Some(code) = format_code(aval.dtype) else {
        return Err(PyBufferError::new_err(format!(
            "INVALID_ARGUMENT: Buffers of type {} are not supported by the Python buffer protocol.",
            aval.dtype.short_name().to_uppercase()
        )));
    };
    crate::watch::copied(a)?;
    let pin = a.pin_owned().py()?;
    let data = pin.buffer().as_ptr();
    let itemsize = aval.dtype.size() as isize;
    let mut exported = Box::new(Exported {
        _pin: pin,
        dims: aval.shape.iter().map(|&d| d as isize).collect(),
        strides: ferrax_base::shape::strides(&aval.shape).iter().map(|&s| s as isize * itemsize).collect(),
        format: CString::new(code)?,
    });
    let asked = |flag: c_int| flags & flag == flag;
    // SAFETY: the caller's structure; the pointers stay valid until `release_buffer` frees `exported`
    unsafe {
        (*view).obj = owner.clone().into_ptr();
        (*view).buf = data.cast_mut().cast::<c_void>();
        (*view).len = aval.bytes() as isize;
        (*view).readonly = 1;
        (*view).itemsize = itemsize;
        (*view).ndim = exported.dims.len() as c_int;
        (*view).format =
            if asked(ffi::PyBUF_FORMAT) { exported.format.as_ptr().cast_mut() } else { std::ptr::null_mut() };
        (*view).shape = if asked(ffi::PyBUF_ND) { exported.dims.as_mut_ptr() } else { std::ptr::null_mut() };
        (*view).strides = if asked(ffi::PyBUF_STRIDES) { exported.strides.as_mut_ptr() } else { std::ptr::null_mut() };
        (*view).suboffsets = std::ptr::null_mut();
        (*view).internal = Box::into_raw(exported).cast();
    }
    Ok(())
}

/// Frees what [`fill_buffer`] made.
///
/// # Safety
/// `view` must have been filled by [`fill_buffer`] and not been released.
pub unsafe fn release_buffer(view: *mut ffi::Py_buffer) {
    // SAFETY: as said above, `internal` is the box that `fill_buffer` made
    unsafe {
        let exported = (*view).internal.cast::<Exported>();
        if !exported.is_null() {
            (*view).internal = std::ptr::null_mut();
            drop(Box::from_raw(exported));
        }
    }
}

/// A dtype argument that may be left out, canonical, with the warning of `asker` for 64-bit ones.
pub fn dtype_arg(dtype: Option<&Bound<'_, PyAny>>, asker: &str) -> PyResult<Option<DType>> {
    match dtype.filter(|d| !d.is_none()) {
        Some(d) => Ok(Some(dtypes::parse(d, asker)?.canonical(d.py(), Some(asker))?)),
        None => Ok(None),
    }
}

/// Adds the functions of this file to the extension module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(_reconstruct_array, m)?)
}
