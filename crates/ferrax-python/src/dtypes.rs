//! Dtype objects: from Python's ways to say a dtype to [`DType`], and back to NumPy's objects.
//!
//! The objects are made once and then found by identity, so that neither direction allocates. Narrow floats and
//! integers are those of `ml_dtypes`, which is imported with the first of them; `float0` is JAX's structured dtype of no
//! bytes; typed PRNG keys have a dtype object of our own, [`KeyTy`].

use crate::interpreter::attribute;
use ferrax_base::DType;
use ferrax_base::config;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyComplex, PyFloat, PyInt, PyString, PyType};
use pyo3::{PyTypeInfo, intern};

/// An object for each of [`DType::ALL`]; `None` where there is none.
type Objects = Vec<Option<Py<PyAny>>>;

/// NumPy's own dtypes, and ours.
static OBJECTS: PyOnceLock<Objects> = PyOnceLock::new();
/// Those of `ml_dtypes`.
static NARROW: PyOnceLock<Objects> = PyOnceLock::new();
static NUMPY_DTYPE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Imports an attribute once.
pub fn imported<'py>(
    cell: &PyOnceLock<Py<PyAny>>,
    py: Python<'py>,
    module: &str,
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let get = || Ok::<_, PyErr>(py.import(module)?.getattr(name)?.unbind());
    Ok(cell.get_or_try_init(py, get)?.bind(py).clone())
}

/// `numpy.dtype`.
fn numpy_dtype(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    imported(&NUMPY_DTYPE, py, "numpy", "dtype")
}

/// Whether NumPy has no such dtype itself.
fn is_narrow(d: DType) -> bool {
    use DType::{Bool, C64, C128, F16, F32, F64, Float0, I8, I16, I32, I64, KeyFry, U8, U16, U32, U64};
    !matches!(d, Bool | I8 | I16 | I32 | I64 | U8 | U16 | U32 | U64 | F16 | F32 | F64 | C64 | C128 | Float0 | KeyFry)
}

fn make_objects(py: Python<'_>) -> PyResult<Objects> {
    let dtype = numpy_dtype(py)?;
    let make = |&d: &DType| -> PyResult<Option<Py<PyAny>>> {
        let object = match d {
            DType::KeyFry => Bound::new(py, KeyTy)?.into_any(),
            DType::Float0 => dtype.call1((vec![("float0", py.import("numpy")?.getattr("void")?, 0)],))?,
            _ if is_narrow(d) => return Ok(None),
            _ => dtype.call1((d.name(),))?,
        };
        Ok(Some(object.unbind()))
    };
    DType::ALL.iter().map(make).collect()
}

fn make_narrow(py: Python<'_>) -> PyResult<Objects> {
    let (dtype, module) = (numpy_dtype(py)?, py.import("ml_dtypes")?);
    let make = |&d: &DType| -> PyResult<Option<Py<PyAny>>> {
        // an older ml_dtypes may be without one of these formats
        let scalar = if is_narrow(d) { module.getattr_opt(d.name())? } else { None };
        scalar.map(|scalar| Ok(dtype.call1((scalar,))?.unbind())).transpose()
    };
    DType::ALL.iter().map(make).collect()
}

fn objects(py: Python<'_>) -> PyResult<&Objects> {
    OBJECTS.get_or_try_init(py, || make_objects(py))
}

fn narrow(py: Python<'_>) -> PyResult<&Objects> {
    NARROW.get_or_try_init(py, || make_narrow(py))
}

/// The dtype object that stands for a dtype in Python.
#[inline]
pub fn to_object(py: Python<'_>, d: DType) -> PyResult<Bound<'_, PyAny>> {
    let found = match &objects(py)?[d as usize] {
        Some(object) => Some(object),
        None => narrow(py)?[d as usize].as_ref(),
    };
    match found {
        Some(object) => Ok(object.bind(py).clone()),
        None => Err(PyTypeError::new_err(format!("the installed ml_dtypes has no {}", d.name()))),
    }
}

/// The dtype of one of our dtype objects, by identity; a narrow one is not found before somebody asked for the object
/// of one, but [`from_descr`] knows it by its name.
#[inline]
pub fn by_identity(py: Python<'_>, object: *mut pyo3::ffi::PyObject) -> PyResult<Option<DType>> {
    let position = |known: &Objects| known.iter().position(|o| o.as_ref().is_some_and(|o| o.as_ptr() == object));
    let found = position(objects(py)?).or_else(|| NARROW.get(py).and_then(position));
    Ok(found.map(|i| DType::ALL[i]))
}

/// The dtype of a `numpy.dtype` object; `None` when ferrax has no such dtype (strings, records, …).
pub fn from_descr(object: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    if let Some(d) = by_identity(object.py(), object.as_ptr())? {
        return Ok(Some(d));
    }
    if object.is_instance_of::<KeyTy>() {
        return Ok(Some(DType::KeyFry));
    }
    if !object.is_instance(&numpy_dtype(object.py())?)? {
        return Ok(None);
    }
    if object.eq(to_object(object.py(), DType::Float0)?)? {
        return Ok(Some(DType::Float0));
    }
    let name: String = object.getattr(intern!(object.py(), "name"))?.extract()?;
    Ok(DType::from_name(&name).filter(|d| !matches!(d, DType::Float0 | DType::KeyFry)))
}

/// A dtype as somebody wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The dtype named, 64-bit ones as they are.
    pub dtype: DType,
    /// Whether it is one of Python's `int`, `float`, `complex`, which mean "of the default width".
    pub python: bool,
}

impl Spec {
    /// The dtype under the present width; with `asker` (an empty one stands for the function that the user called), does
    /// what `jax_explicit_x64_dtypes` says of 64-bit dtypes that are asked for by name.
    pub fn canonical(self, py: Python<'_>, asker: Option<&str>) -> PyResult<DType> {
        let canonical = self.dtype.canonical(config::x64());
        if canonical == self.dtype || self.python {
            return Ok(canonical);
        }
        match asker {
            Some(asker) => crate::warning::truncated(py, self.dtype, canonical, asker),
            None => Ok(canonical),
        }
    }
}

/// Reads a dtype: dtype objects, scalar types, names, Python's number types, anything with a `dtype`.
pub fn parse(object: &Bound<'_, PyAny>, asker: &str) -> PyResult<Spec> {
    let py = object.py();
    let strong = |dtype| Ok(Spec { dtype, python: false });
    if let Some(d) = by_identity(py, object.as_ptr())? {
        return strong(d);
    }
    let raw = object.as_ptr();
    let python = [
        (PyFloat::type_object_raw(py), DType::F64),
        (PyInt::type_object_raw(py), DType::I64),
        (PyComplex::type_object_raw(py), DType::C128),
        (pyo3::types::PyBool::type_object_raw(py), DType::Bool),
    ];
    if let Some((_, dtype)) = python.iter().find(|(t, _)| t.cast() == raw) {
        return Ok(Spec { dtype: *dtype, python: true });
    }
    if object.is_instance_of::<KeyTy>() {
        return strong(DType::KeyFry);
    }
    if let Ok(name) = object.cast::<PyString>()
        && let Some(d) = DType::from_name(name.to_str()?)
    {
        return strong(d);
    }
    if object.is_instance_of::<crate::array::PyArray>() {
        return Err(PyValueError::new_err(format!(
            "Passing an array as a dtype argument is no longer supported (in {asker}); pass its dtype, x.dtype"
        )));
    }
    let inner = attribute(object, intern!(py, "dtype"))?;
    if let Some(inner) = &inner
        && let Some(d) = from_descr(inner)?
    {
        return strong(d);
    }
    if object.is_none() {
        return Err(PyTypeError::new_err(format!("a dtype is needed in {asker}; got None")));
    }
    if object.is_instance_of::<PyInt>() {
        return Err(PyTypeError::new_err(format!(
            "Cannot interpret '{}' as a data type. A shape is one argument: jnp.zeros((3, 4)), not jnp.zeros(3, 4).",
            object.str()?
        )));
    }
    let descr = numpy_dtype(py)?.call1((object,))?;
    match from_descr(&descr)? {
        Some(d) => strong(d),
        None => Err(PyTypeError::new_err(format!(
            "JAX only supports number, bool, and string dtypes, got dtype {} in {asker}",
            object.str()?
        ))),
    }
}

/// An argument that is a dtype in any spelling; canonical.
pub struct DTypeArg(pub DType);

impl<'a, 'py> FromPyObject<'a, 'py> for DTypeArg {
    type Error = PyErr;
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(DTypeArg(parse(&object, "this function")?.canonical(object.py(), Some(""))?))
    }
}

/// The dtype of typed PRNG keys.
#[pyclass(frozen, module = "ferrax.dtypes", name = "KeyTy")]
pub struct KeyTy;

#[pymethods]
impl KeyTy {
    /// `"key<fry>"`.
    #[getter]
    fn name(&self) -> &'static str {
        DType::KeyFry.name()
    }

    /// Bytes of one key.
    #[getter]
    fn itemsize(&self) -> usize {
        DType::KeyFry.size()
    }

    /// The abstract type of keys.
    #[getter]
    fn r#type<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("ferrax.dtypes")?.getattr("prng_key")
    }

    /// The generator that the keys are for.
    #[getter]
    fn _impl<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static THREEFRY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        imported(&THREEFRY, py, "ferrax.random._generators", "THREEFRY")
    }

    fn __repr__(&self) -> &'static str {
        DType::KeyFry.name()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.is_instance_of::<KeyTy>()
    }

    fn __hash__(&self) -> isize {
        0x6b65_795f
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str,))> {
        Ok((py.import("ferrax._ferrax")?.getattr("dtype_object")?, (DType::KeyFry.name(),)))
    }
}

/// The dtype object of this name.
#[pyfunction]
fn dtype_object<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    match DType::from_name(name) {
        Some(d) => to_object(py, d),
        None => Err(PyTypeError::new_err(format!("data type '{name}' not understood"))),
    }
}

/// The dtype that is written, 64-bit ones as they are.
#[pyfunction]
fn dtype_as_written<'py>(dtype: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    to_object(dtype.py(), parse(dtype, "dtype")?.dtype)
}

/// The dtype that `dtype` means now: 64-bit ones become 32-bit unless x64 is enabled. With `asker`, warns then.
#[pyfunction]
#[pyo3(signature = (dtype, asker=None))]
fn canonicalize_dtype<'py>(dtype: &Bound<'py, PyAny>, asker: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
    let py = dtype.py();
    let spec = parse(dtype, asker.unwrap_or("canonicalize_dtype"))?;
    to_object(py, spec.canonical(py, asker)?)
}

static PROMOTION_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// `TypePromotionError(ValueError)`.
fn promotion_class(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    let make = || {
        let base = PyValueError::type_object(py);
        let doc = c"Dtypes that have no common dtype without an explicit conversion.\n\n\
            >>> import ferrax\n>>> issubclass(ferrax.dtypes.TypePromotionError, ValueError)\nTrue";
        PyErr::new_type(py, c"ferrax.dtypes.TypePromotionError", Some(doc), Some(&base), None)
    };
    Ok(PROMOTION_ERROR.get_or_try_init(py, make)?.bind(py).clone())
}

/// The exception of dtypes that do not combine.
#[cold]
pub fn promotion_error(py: Python<'_>, text: String) -> PyErr {
    match promotion_class(py).and_then(|class| class.call1((text,))) {
        Ok(value) => PyErr::from_value(value),
        Err(e) => e,
    }
}

/// Adds the dtype functions to the extension module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<KeyTy>()?;
    m.add("TypePromotionError", promotion_class(m.py())?)?;
    m.add_function(wrap_pyfunction!(dtype_object, m)?)?;
    m.add_function(wrap_pyfunction!(dtype_as_written, m)?)?;
    m.add_function(wrap_pyfunction!(canonicalize_dtype, m)?)
}
