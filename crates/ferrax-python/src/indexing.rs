//! `x[…]` and `x.at[…]` for Python: objects to [`Index`], and the two helper classes of `.at`.
//!
//! Read next: `ferrax/src/numpy/indexing`, where an index is resolved and applied.

use crate::api::explicit::placed;
use crate::array::{PyArray, wrap_array};
use crate::errors::IntoPyResult;
use crate::lax::args::{fill, mode};
use crate::numpy_interop;
use crate::value::{PyValue, to_py, value_of};
use crate::{warning, watch};
use ferrax::numpy::indexing::{Index, Indices, ReadOptions, Update, UpdateOptions, get, row, safe_to_cast, update};
use ferrax_base::config::watched;
use ferrax_ir::Value;
use pyo3::exceptions::{PyFutureWarning, PyIndexError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyEllipsis, PyFloat, PyInt, PyList, PySlice, PyString, PyTuple, PyType};
use pyo3::{PyTypeInfo, ffi, intern};

/// Windows (`ferrax.ds`): their class, what reads at an index that has some, and what `x.at[index]` is of one.
struct Windows {
    class: Py<PyType>,
    read: Py<PyAny>,
    at: Py<PyAny>,
}

/// Not there before the first window is.
static WINDOWS: PyOnceLock<Windows> = PyOnceLock::new();

/// Who takes an index that has windows.
#[inline]
fn windows(index: &Bound<'_, PyAny>) -> Option<&'static Windows> {
    let windows = WINDOWS.get(index.py())?;
    let is_window = |o: &Bound<'_, PyAny>| o.get_type_ptr() == windows.class.as_ptr().cast();
    let any = match index.cast::<PyTuple>() {
        Ok(parts) => parts.iter_borrowed().any(|part| is_window(&part)),
        Err(_) => is_window(index),
    };
    any.then_some(windows)
}

/// Says what windows are, and who takes indices that have some.
#[pyfunction]
fn set_window_hooks(py: Python<'_>, class: Py<PyType>, read: Py<PyAny>, at: Py<PyAny>) {
    // a second time says the same
    let _ = WINDOWS.set(py, Windows { class, read, at });
}

/// Whether an index has windows.
#[pyfunction]
fn has_windows(index: &Bound<'_, PyAny>) -> bool {
    windows(index).is_some()
}

/// An index expression as parts.
pub fn parse(object: &Bound<'_, PyAny>) -> PyResult<Indices> {
    if let Ok(tuple) = object.cast::<PyTuple>() {
        let parts = tuple.iter().enumerate().map(|(at, o)| part(&o, at));
        return parts.collect();
    }
    if is_sequence(object)? {
        return Err(bare_sequence(object)?);
    }
    Ok(std::iter::once(part(object, 0)?).collect())
}

/// A list or another sequence that is neither an array nor a string.
fn is_sequence(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.cast::<PyList>().is_ok() {
        return Ok(true);
    }
    if object.is_instance_of::<PyArray>()
        || object.is_instance_of::<PyInt>()
        || object.is_none()
        || object.cast::<PySlice>().is_ok()
        || object.cast::<PyString>().is_ok()
    {
        return Ok(false);
    }
    let abc = object.py().import(intern!(object.py(), "collections.abc"))?.getattr(intern!(object.py(), "Sequence"))?;
    object.is_instance(&abc)
}

#[cold]
fn bare_sequence(object: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    let mut nested = false;
    for item in object.try_iter()? {
        let item = item?;
        nested |= item.is_none() || item.cast::<PySlice>().is_ok() || item.cast::<PyEllipsis>().is_ok();
        nested |= item.cast::<PyTuple>().is_ok() || is_sequence(&item)?;
    }
    let way = if nested { "tuple" } else { "array" };
    Ok(PyTypeError::new_err(format!(
        "Using a non-tuple sequence for multidimensional indexing is not allowed; use `arr[{way}(seq)]` instead of \
         `arr[seq]`. A {} is copied to an array at each use: make the array once, with jnp.array.",
        object.get_type().name()?
    )))
}

#[cold]
fn wrong_dtype(dtype: &str) -> PyErr {
    PyTypeError::new_err(format!("Indexer must have integer or boolean type, got indexer with type {dtype}"))
}

/// An exact `int`, as machine integer.
#[inline]
fn exact_int(object: &Bound<'_, PyAny>) -> Option<PyResult<i64>> {
    // SAFETY: a valid object's type.
    let class = unsafe { ffi::Py_TYPE(object.as_ptr()) };
    if class != PyInt::type_object_raw(object.py()) {
        return None;
    }
    let mut overflow = 0;
    // SAFETY: exactly an int.
    let v = unsafe { ffi::PyLong_AsLongLongAndOverflow(object.as_ptr(), &raw mut overflow) };
    Some(if overflow == 0 {
        Ok(v)
    } else {
        Err(PyOverflowError::new_err(format!("Python int {object} too large to convert to an index")))
    })
}

fn part(object: &Bound<'_, PyAny>, at: usize) -> PyResult<Index> {
    if let Some(i) = exact_int(object) {
        return i.map(Index::Int);
    }
    if object.is_none() {
        return Ok(Index::NewAxis);
    }
    if let Ok(s) = object.cast::<PySlice>() {
        return slice(s, at);
    }
    if let Ok(a) = object.cast::<PyArray>() {
        return of_value(a.get().value.clone());
    }
    if object.cast::<PyEllipsis>().is_ok() {
        return Ok(Index::Ellipsis);
    }
    if let Ok(b) = object.cast::<PyBool>() {
        return Ok(Index::Bool(b.is_true()));
    }
    other(object)
}

fn of_value(value: Value) -> PyResult<Index> {
    match value.dtype() {
        d if d.is_bool() => Ok(Index::Mask(value)),
        d if d.is_integer() => Ok(Index::Array(value)),
        d => Err(wrong_dtype(d.name())),
    }
}

/// NumPy's arrays and scalars, sequences inside a tuple, objects that convert, and everything that is no index.
fn other(object: &Bound<'_, PyAny>) -> PyResult<Index> {
    let py = object.py();
    if let Some(code) = crate::symbolic::code_of(object) {
        return Ok(Index::Int(code));
    }
    if let Some(traced) = crate::api::hosted::value_of(object)? {
        return of_value(traced);
    }
    if let Ok(s) = object.cast::<PyString>() {
        return Err(PyTypeError::new_err(format!(
            "JAX does not support string indexing; got idx={}",
            crate::shorten::repr(s)
        )));
    }
    if object.is_instance_of::<PyFloat>() && !numpy_interop::is_scalar(object)? {
        return Err(wrong_dtype("float64"));
    }
    if object.is_instance_of::<PyComplex>() && !numpy_interop::is_scalar(object)? {
        return Err(wrong_dtype("complex128"));
    }
    if numpy_interop::is_array(object)? || numpy_interop::is_scalar(object)? {
        let kind: char = object.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "kind"))?.extract()?;
        if !matches!(kind, 'b' | 'i' | 'u') && !is_small_integer(object)? {
            return Err(wrong_dtype(&object.getattr(intern!(py, "dtype"))?.str()?.to_string()));
        }
        return match value_of(object)? {
            Some(v) => of_value(v),
            None => Err(not_an_index(object)?),
        };
    }
    if object.cast::<PyTuple>().is_ok() || is_sequence(object)? {
        let numpy = py.import(intern!(py, "numpy"))?;
        let array = match numpy.call_method1(intern!(py, "asarray"), (object,)) {
            // traced integers among the others
            Err(e) if e.is_instance_of::<PyTypeError>(py) => {
                let array = py.import(intern!(py, "ferrax.numpy"))?.call_method1(intern!(py, "asarray"), (object,))?;
                return value_of(&array)?.map_or_else(|| Err(e), of_value);
            }
            array => array?,
        };
        if array.getattr(intern!(py, "size"))?.extract::<usize>()? == 0 {
            return other(&array.call_method1(intern!(py, "astype"), ("int32",))?);
        }
        return other(&array);
    }
    match value_of(object) {
        Ok(Some(v)) => of_value(v),
        _ => match object.call_method0(intern!(py, "__index__")) {
            Ok(i) => i.extract().map(Index::Int),
            Err(_) => Err(not_an_index(object)?),
        },
    }
}

/// Integers that NumPy knows through `ml_dtypes` (kind `V`).
fn is_small_integer(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    let name: String = object.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "name"))?.extract()?;
    Ok(name.starts_with("int") || name.starts_with("uint"))
}

#[cold]
fn not_an_index(object: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    let shown = crate::shorten::repr(object);
    Ok(PyIndexError::new_err(format!(
        "only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or boolean arrays are valid \
         indices. Got {shown}"
    )))
}

fn slice(s: &Bound<'_, PySlice>, at: usize) -> PyResult<Index> {
    // SAFETY: the object is a slice, whose fields live as long as it does.
    let (start, stop, step) = unsafe {
        let raw = &*s.as_ptr().cast::<ffi::PySliceObject>();
        let field = |p: *mut ffi::PyObject| Borrowed::from_ptr(s.py(), p);
        (field(raw.start), field(raw.stop), field(raw.step))
    };
    let bound = |o: Borrowed<'_, '_, PyAny>| -> PyResult<Option<i64>> {
        if o.is_none() {
            return Ok(None);
        }
        if let Some(i) = exact_int(&o) {
            // Bounds beyond the machine's integers are beyond every axis.
            return Ok(Some(i.unwrap_or_else(|_| if o.lt(0).unwrap_or(false) { i64::MIN } else { i64::MAX })));
        }
        static_bound(s, &o, at).map(Some)
    };
    Ok(Index::Slice { start: bound(start)?, stop: bound(stop)?, step: bound(step)? })
}

/// A slice bound that is no plain `int`: anything with `__index__`, concrete scalar arrays among them.
fn static_bound(s: &Bound<'_, PySlice>, object: &Bound<'_, PyAny>, at: usize) -> PyResult<i64> {
    if let Ok(a) = object.cast::<PyArray>()
        && let Value::Tracer(t) = &a.get().value
        && t.concrete().is_none()
    {
        return Err(PyIndexError::new_err(format!(
            "Slice entries must be static integers. Got {} at position {at}{}\nTo take a window of static size at a \
             dynamic place, use lax.dynamic_slice or lax.dynamic_update_slice.",
            crate::shorten::repr(s),
            crate::tracer::origin(t)
        )));
    }
    if let Some(code) = crate::symbolic::code_of(object) {
        return Ok(code);
    }
    // SAFETY: a valid object; the result is new or null with an exception set.
    let index = unsafe { Bound::from_owned_ptr_or_err(object.py(), ffi::PyNumber_Index(object.as_ptr()))? };
    index.extract()
}

/// `x[index]`.
pub fn getitem<'py>(x: &Bound<'py, PyArray>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let value = &x.get().value;
    if watched() && matches!(value, Value::Array(_)) {
        return watch::read(x, index);
    }
    if let Some(i) = exact_int(index) {
        let i = i?;
        if let Some(row) = row(value, i).py()? {
            return wrap_array(x.py(), row);
        }
        let parts = [Index::Int(i)];
        return to_py(x.py(), get(value, &parts, ReadOptions::default()).py()?);
    }
    if let Some(windows) = windows(index) {
        return windows.read.bind(x.py()).call1((x, index));
    }
    to_py(x.py(), get(value, &parse(index)?, ReadOptions::default()).py()?)
}

/// The error of `x[index] = value`.
#[cold]
pub fn immutable() -> PyErr {
    PyTypeError::new_err(
        "JAX arrays are immutable and do not support in-place item assignment. Instead of x[idx] = y, use x = \
         x.at[idx].set(y) or another .at[] method; see help(jax.Array.at).",
    )
}

/// What `x.at` is: with an index in brackets it gives `x.at[index]`, whose methods make arrays with other values
/// there. See `help(jax.Array.at)` for all of them.
///
/// >>> import ferrax.numpy as jnp
/// >>> jnp.zeros(3).at[1].set(5)
/// Array([0., 5., 0.], dtype=float32)
#[pyclass(frozen, module = "ferrax.numpy", name = "_IndexUpdateHelper")]
pub struct IndexUpdateHelper {
    /// The array that is to be updated.
    #[pyo3(get)]
    array: Py<PyArray>,
}

impl IndexUpdateHelper {
    /// `x.at`.
    pub fn new(array: Bound<'_, PyArray>) -> Self {
        IndexUpdateHelper { array: array.unbind() }
    }
}

#[pymethods]
impl IndexUpdateHelper {
    fn __getitem__<'py>(&self, py: Python<'py>, index: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(windows) = windows(&index) {
            return windows.at.bind(py).call1((&self.array, index));
        }
        let array = self.array.clone_ref(py);
        Ok(Bound::new(py, IndexUpdateRef { array, index: index.unbind() })?.into_any())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.array)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("_IndexUpdateHelper({})", self.array.bind(py).repr()?))
    }
}

/// What `x.at[index]` is: its methods `set`, `add`, `subtract`, `multiply`, `divide`, `power`, `min`, `max` and `apply`
/// give a new array with other values at the index, and `get` the entries there. See `help(jax.Array.at)`.
///
/// >>> import ferrax.numpy as jnp
/// >>> jnp.zeros(3).at[1:].add(jnp.array([1, 2]))
/// Array([0., 1., 2.], dtype=float32)
#[pyclass(frozen, module = "ferrax.numpy", name = "_IndexUpdateRef")]
pub struct IndexUpdateRef {
    /// The array that is to be updated.
    #[pyo3(get)]
    array: Py<PyArray>,
    /// Which of its entries.
    #[pyo3(get)]
    index: Py<PyAny>,
}

fn unsafe_cast(py: Python<'_>, x: &Value, values: &Value) -> PyResult<()> {
    let text = format!(
        "scatter inputs have incompatible types: cannot safely cast value from dtype={} to dtype={} with \
         jax_numpy_dtype_promotion=standard. In future JAX releases this will result in an error.",
        values.dtype(),
        x.dtype()
    );
    warning::at_user(py, py.get_type::<PyFutureWarning>().as_any(), |_| text)?;
    if warning::is_lossy(values.dtype(), x.dtype()) { warning::imaginary_parts(py) } else { Ok(()) }
}

impl IndexUpdateRef {
    fn update<'py>(
        &self,
        py: Python<'py>,
        how: Update,
        values: &PyValue,
        options: UpdateOptions,
    ) -> PyResult<Bound<'py, PyAny>> {
        let x = &self.array.bind(py).get().value;
        let (of, given) = (x.dtype(), values.0.dtype());
        if (of.is_key() || given.is_key()) && (of != given || !matches!(how, Update::Set)) {
            let text = format!(
                "x.at[...] of dtype {of} cannot take values of dtype {given} here: entries that are keys can only be set, \
                 to keys of the same dtype"
            );
            return Err(if of.is_key() { PyTypeError::new_err(text) } else { PyValueError::new_err(text) });
        }
        if given != of && !safe_to_cast(x, &values.0).py()? {
            unsafe_cast(py, x, &values.0)?;
        }
        let index = self.index.bind(py);
        let parts = match exact_int(index) {
            Some(i) => std::iter::once(Index::Int(i?)).collect(),
            None => parse(index)?,
        };
        to_py(py, update(x, &parts, &values.0, how, options).py()?)
    }
}

/// The values of an update; lists and what else is no array are made one.
fn given(values: &Bound<'_, PyAny>) -> PyResult<PyValue> {
    values.extract().or_else(|error: PyErr| {
        let py = values.py();
        if !error.is_instance_of::<PyTypeError>(py) {
            return Err(error);
        }
        py.import(intern!(py, "ferrax._core"))?.call_method1(intern!(py, "asarray"), (values,))?.extract()
    })
}

fn options(sorted: bool, unique: bool, mode_: Option<&Bound<'_, PyAny>>, wrap: bool) -> PyResult<UpdateOptions> {
    Ok(UpdateOptions { mode: mode(mode_)?, sorted, unique, raw: !wrap })
}

macro_rules! updates {
    ($($name:ident = $how:ident, $text:literal, $example:literal;)*) => {
        #[pymethods]
        impl IndexUpdateRef {
            fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
                visit.call(&self.array)?;
                visit.call(&self.index)
            }

            fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
                Ok(format!("_IndexUpdateRef({}, {})", self.array.bind(py).repr()?, self.index.bind(py).repr()?))
            }

            /// The entries at the index, with the choice of what those out of bounds give.
            ///
            /// Args:
            ///   indices_are_sorted: promise that indices ascend.
            ///   unique_indices: promise that no entry is named twice.
            ///   mode: what indices out of bounds give: "fill", "clip" or "promise_in_bounds"; see `help(jax.Array.at)`.
            ///   fill_value: what "fill" gives; otherwise NaN, or the least or greatest integer of the dtype.
            ///   out_sharding: how the result is spread over explicit axes of the mesh in use.
            ///   wrap_negative_indices: whether negative integers count from the end.
            ///
            /// Returns:
            ///   Array of the entries `x[index]`.
            ///
            /// >>> import ferrax.numpy as jnp
            /// >>> jnp.arange(3).at[jnp.array([1, 7])].get(mode="fill", fill_value=-1)
            /// Array([ 1, -1], dtype=int32)
            #[pyo3(signature = (*, indices_are_sorted=false, unique_indices=false, mode=None, fill_value=None,
                                out_sharding=None, wrap_negative_indices=true))]
            #[allow(clippy::too_many_arguments)]
            fn get<'py>(
                &self,
                py: Python<'py>,
                indices_are_sorted: bool,
                unique_indices: bool,
                mode: Option<&Bound<'py, PyAny>>,
                fill_value: Option<&Bound<'py, PyAny>>,
                out_sharding: Option<&Bound<'py, PyAny>>,
                wrap_negative_indices: bool,
            ) -> PyResult<Bound<'py, PyAny>> {
                let options = ReadOptions {
                    mode: crate::lax::args::mode(mode)?,
                    fill: fill(fill_value)?,
                    sorted: indices_are_sorted,
                    unique: unique_indices,
                    raw: !wrap_negative_indices,
                };
                let x = &self.array.bind(py).get().value;
                let index = parse(self.index.bind(py))?;
                placed(py, out_sharding, "at[...].get", || to_py(py, get(x, &index, options).py()?))
            }

            /// The array with a function applied to the entries at the index, once for each time it names them.
            ///
            /// Args:
            ///   func: elementwise function of one array.
            ///   indices_are_sorted: promise that indices ascend.
            ///   unique_indices: promise that no entry is named twice.
            ///   mode: what happens to entries out of bounds: "drop" (the default), "clip" or "promise_in_bounds".
            ///   wrap_negative_indices: whether negative integers count from the end.
            ///
            /// Returns:
            ///   Array of the shape and dtype of `x`.
            ///
            /// >>> import ferrax.numpy as jnp
            /// >>> jnp.array([1.0, 4.0, 9.0]).at[1:].apply(jnp.sqrt)
            /// Array([1., 2., 3.], dtype=float32)
            #[pyo3(signature = (func, *, indices_are_sorted=false, unique_indices=false, mode=None,
                                wrap_negative_indices=true))]
            fn apply<'py>(
                slf: &Bound<'py, Self>,
                func: &Bound<'py, PyAny>,
                indices_are_sorted: bool,
                unique_indices: bool,
                mode: Option<&Bound<'py, PyAny>>,
                wrap_negative_indices: bool,
            ) -> PyResult<Bound<'py, PyAny>> {
                let module = slf.py().import(intern!(slf.py(), "ferrax._indexing"))?;
                let flags = (indices_are_sorted, unique_indices, mode, wrap_negative_indices);
                module.call_method1(intern!(slf.py(), "apply_at"), (slf, func, flags.0, flags.1, flags.2, flags.3))
            }

            $(
                #[doc = $text]
                ///
                /// Args:
                ///   values: array, or list of numbers, that broadcasts to the shape of `x[index]`; taken to the dtype of `x`.
                ///   indices_are_sorted: promise that indices ascend.
                ///   unique_indices: promise that no entry is named twice.
                ///   mode: what happens to entries out of bounds: "drop" (the default), "clip" or "promise_in_bounds".
                ///   out_sharding: how the result is spread over explicit axes of the mesh in use.
                ///   wrap_negative_indices: whether negative integers count from the end.
                ///
                /// Returns:
                ///   Array of the shape and dtype of `x`, which stays as it is.
                ///
                /// >>> import ferrax.numpy as jnp
                #[doc = $example]
                #[pyo3(signature = (values, *, indices_are_sorted=false, unique_indices=false, mode=None,
                                    out_sharding=None, wrap_negative_indices=true))]
                #[allow(clippy::too_many_arguments)]
                fn $name<'py>(
                    &self,
                    py: Python<'py>,
                    values: &Bound<'py, PyAny>,
                    indices_are_sorted: bool,
                    unique_indices: bool,
                    mode: Option<&Bound<'py, PyAny>>,
                    out_sharding: Option<&Bound<'py, PyAny>>,
                    wrap_negative_indices: bool,
                ) -> PyResult<Bound<'py, PyAny>> {
                    let options = options(indices_are_sorted, unique_indices, mode, wrap_negative_indices)?;
                    let name = concat!("at[...].", stringify!($name));
                    placed(py, out_sharding, name, || self.update(py, Update::$how, &given(values)?, options))
                }
            )*
        }
    };
}

updates! {
    set = Set, "The array with the entries at the index replaced by `values`.",
        ">>> jnp.array([1, 2, 3]).at[1].set(7)\nArray([1, 7, 3], dtype=int32)";
    add = Add, "The array with `values` added to the entries at the index.",
        ">>> jnp.array([1, 2, 3]).at[1].add(7)\nArray([1, 9, 3], dtype=int32)";
    subtract = Subtract, "The array with `values` subtracted from the entries at the index.",
        ">>> jnp.array([1, 2, 3]).at[1].subtract(7)\nArray([ 1, -5,  3], dtype=int32)";
    multiply = Multiply, "The array with the entries at the index multiplied by `values`.",
        ">>> jnp.array([1, 2, 3]).at[1].multiply(7)\nArray([ 1, 14,  3], dtype=int32)";
    mul = Multiply, "As `multiply`: the array with the entries at the index multiplied by `values`.",
        ">>> jnp.array([1, 2, 3]).at[1].mul(7)\nArray([ 1, 14,  3], dtype=int32)";
    divide = Divide, "The array with the entries at the index divided by `values`.",
        ">>> jnp.array([1.0, 2.0, 3.0]).at[1].divide(4.0)\nArray([1. , 0.5, 3. ], dtype=float32)";
    power = Power, "The array with the entries at the index raised to the powers `values`.",
        ">>> jnp.array([1, 2, 3]).at[1].power(3)\nArray([1, 8, 3], dtype=int32)";
    min = Min, "The array with the smaller of the entries at the index and `values`.",
        ">>> jnp.array([1, 2, 3]).at[1].min(0)\nArray([1, 0, 3], dtype=int32)";
    max = Max, "The array with the larger of the entries at the index and `values`.",
        ">>> jnp.array([1, 2, 3]).at[1].max(7)\nArray([1, 7, 3], dtype=int32)";
}

/// Adds the classes of `.at` and the functions of windows.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(set_window_hooks, m)?)?;
    m.add_function(wrap_pyfunction!(has_windows, m)?)?;
    m.add_class::<IndexUpdateHelper>()?;
    m.add_class::<IndexUpdateRef>()
}
