//! The steps of a key path: `SequenceKey`, `DictKey`, `GetAttrKey` and `FlattenedIndexKey`.

use pyo3::PyTypeInfo;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

/// A position in a list or tuple.
///
/// >>> import ferrax
/// >>> ferrax.tree.leaves_with_path([10])[0][0]
/// (SequenceKey(idx=0),)
#[pyclass(frozen, subclass, module = "ferrax.tree_util")]
pub struct SequenceKey {
    /// The position in the list or tuple.
    #[pyo3(get)]
    idx: isize,
}

/// A key of a dictionary.
///
/// >>> import ferrax
/// >>> ferrax.tree.leaves_with_path({"a": 10})[0][0]
/// (DictKey(key='a'),)
#[pyclass(frozen, subclass, module = "ferrax.tree_util")]
pub struct DictKey {
    /// The key in the dictionary.
    #[pyo3(get)]
    key: Py<PyAny>,
}

/// An attribute of an object.
///
/// >>> import ferrax
/// >>> ferrax.tree_util.keystr((ferrax.tree_util.GetAttrKey("weights"),))
/// '.weights'
#[pyclass(frozen, subclass, module = "ferrax.tree_util")]
pub struct GetAttrKey {
    /// The name of the attribute.
    #[pyo3(get)]
    name: Py<PyString>,
}

/// A child of a container that was registered without keys.
///
/// >>> import ferrax
/// >>> ferrax.tree_util.keystr((ferrax.tree_util.FlattenedIndexKey(0),))
/// '[<flat index 0>]'
#[pyclass(frozen, subclass, module = "ferrax.tree_util")]
pub struct FlattenedIndexKey {
    /// The number of the child.
    #[pyo3(get)]
    key: isize,
}

fn match_args<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, [name])
}

#[pymethods]
impl SequenceKey {
    #[new]
    fn new(idx: isize) -> Self {
        SequenceKey { idx }
    }
    #[classattr]
    fn __match_args__(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        match_args(py, "idx")
    }
    fn __repr__(&self) -> String {
        format!("SequenceKey(idx={})", self.idx)
    }
    fn __str__(&self) -> String {
        format!("[{}]", self.idx)
    }
    fn __hash__(&self) -> isize {
        self.idx.wrapping_add(1)
    }
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|o| o.get().idx == self.idx)
    }
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (isize,))> {
        Ok((Self::type_object(py).into_any(), (self.idx,)))
    }
}

#[pymethods]
impl FlattenedIndexKey {
    #[new]
    fn new(key: isize) -> Self {
        FlattenedIndexKey { key }
    }
    #[classattr]
    fn __match_args__(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        match_args(py, "key")
    }
    fn __repr__(&self) -> String {
        format!("FlattenedIndexKey(key={})", self.key)
    }
    fn __str__(&self) -> String {
        format!("[<flat index {}>]", self.key)
    }
    fn __hash__(&self) -> isize {
        self.key.wrapping_add(7)
    }
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|o| o.get().key == self.key)
    }
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (isize,))> {
        Ok((Self::type_object(py).into_any(), (self.key,)))
    }
}

#[pymethods]
impl DictKey {
    #[new]
    fn new(key: Py<PyAny>) -> Self {
        DictKey { key }
    }
    #[classattr]
    fn __match_args__(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        match_args(py, "key")
    }
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("DictKey(key={})", self.key.bind(py).repr()?))
    }
    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("[{}]", self.key.bind(py).repr()?))
    }
    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.key.bind(py).hash()
    }
    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        match other.cast::<Self>() {
            Ok(other) => self.key.bind(py).eq(&other.get().key),
            Err(_) => Ok(false),
        }
    }
    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyAny>, (Py<PyAny>,)) {
        (Self::type_object(py).into_any(), (self.key.clone_ref(py),))
    }
}

#[pymethods]
impl GetAttrKey {
    #[new]
    fn new(name: Py<PyString>) -> Self {
        GetAttrKey { name }
    }
    #[classattr]
    fn __match_args__(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        match_args(py, "name")
    }
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("GetAttrKey(name={})", self.name.bind(py).repr()?))
    }
    fn __str__(&self, py: Python<'_>) -> String {
        format!(".{}", self.name.bind(py))
    }
    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.name.bind(py).hash()
    }
    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        match other.cast::<Self>() {
            Ok(other) => self.name.bind(py).as_any().eq(&other.get().name),
            Err(_) => Ok(false),
        }
    }
    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyAny>, (Py<PyString>,)) {
        (Self::type_object(py).into_any(), (self.name.clone_ref(py),))
    }
}

/// `SequenceKey(i)`
pub fn sequence_key(py: Python<'_>, i: usize) -> PyResult<Py<PyAny>> {
    Ok(Py::new(py, SequenceKey { idx: i as isize })?.into_any())
}

/// `FlattenedIndexKey(i)`
pub fn flat_key(py: Python<'_>, i: usize) -> PyResult<Py<PyAny>> {
    Ok(Py::new(py, FlattenedIndexKey { key: i as isize })?.into_any())
}

/// `DictKey(key)`
pub fn dict_key(key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    Ok(Py::new(key.py(), DictKey { key: key.clone().unbind() })?.into_any())
}

/// `GetAttrKey(name)`
pub fn attr_key(name: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let py = name.py();
    Ok(Py::new(py, GetAttrKey { name: name.clone().cast_into::<PyString>()?.unbind() })?.into_any())
}

/// A key in the short form of `keystr(simple=True)`.
pub fn simple_text(key: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = key.py();
    if let Ok(key) = key.cast::<SequenceKey>() {
        return Ok(key.get().idx.to_string());
    }
    if let Ok(key) = key.cast::<FlattenedIndexKey>() {
        return Ok(key.get().key.to_string());
    }
    if let Ok(key) = key.cast::<DictKey>() {
        return key.get().key.bind(py).str()?.extract();
    }
    if let Ok(key) = key.cast::<GetAttrKey>() {
        return Ok(key.get().name.bind(py).to_string());
    }
    key.str()?.extract()
}
