//! Python as a host of trees: what keys, classes and auxiliary data are, and how they compare, hash and print.

use std::hash::Hasher;

use ferrax_tree::{Host, KindRef};
use pyo3::exceptions::{PyRecursionError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple, PyType};
use pyo3::{ffi, intern};

use super::keys;
use super::registry::{Container, Registered};
use crate::errors::raise;
use crate::shorten;

/// A Python object that can be cloned wherever the interpreter is attached.
pub struct Object(pub Py<PyAny>);

impl Clone for Object {
    #[inline]
    fn clone(&self) -> Self {
        Python::attach(|py| Object(self.0.clone_ref(py)))
    }
}

/// The Python host.
pub enum PyHost {}

/// The structure of a Python tree.
pub type TreeDef = ferrax_tree::TreeDef<PyHost>;
/// A node of such a structure.
pub type Kind<'a> = KindRef<'a, PyHost>;

/// Whether two objects are the same or equal.
fn same(py: Python<'_>, a: &Object, b: &Object) -> PyResult<bool> {
    if a.0.is(&b.0) { Ok(true) } else { a.0.bind(py).eq(&b.0) }
}

/// Whether an object is made of immutable builtins only, whose hashes agree with their equality.
fn plainly_hashable(object: &Bound<'_, PyAny>) -> bool {
    if let Ok(tuple) = object.cast_exact::<PyTuple>() {
        return tuple.iter().all(|item| plainly_hashable(&item));
    }
    object.is_none()
        || object.is_exact_instance_of::<PyString>()
        || object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyBool>()
        || object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyBytes>()
        || object.is_exact_instance_of::<PyType>()
}

impl Host for PyHost {
    type Key = Object;
    type Class = Object;
    type Custom = &'static Registered;
    type Aux = Object;
    type PathKey = Object;
    type Error = PyErr;
    type Cx<'a> = Python<'a>;

    fn error(error: ferrax_base::Error) -> PyErr {
        raise(error)
    }

    fn key_eq(py: Python<'_>, a: &Object, b: &Object) -> PyResult<bool> {
        same(py, a, b)
    }

    fn hash_key(py: Python<'_>, key: &Object, state: &mut impl Hasher) -> PyResult<()> {
        state.write_isize(key.0.bind(py).hash()?);
        Ok(())
    }

    fn class_eq(a: &Object, b: &Object) -> bool {
        a.0.is(&b.0)
    }

    fn hash_class(class: &Object, state: &mut impl Hasher) {
        state.write_usize(class.0.as_ptr() as usize);
    }

    fn custom_eq(a: &&'static Registered, b: &&'static Registered) -> bool {
        std::ptr::eq(*a, *b)
    }

    fn hash_custom(custom: &&'static Registered, state: &mut impl Hasher) {
        state.write_usize(std::ptr::from_ref(*custom) as usize);
    }

    fn aux_eq(py: Python<'_>, a: &Object, b: &Object) -> PyResult<bool> {
        same(py, a, b).map_err(|cause| {
            let error = PyValueError::new_err(
                "Exception raised while checking equality of metadata fields of pytree. Make sure that metadata \
                 fields are hashable and have simple equality semantics. (Note: arrays cannot be passed as metadata \
                 fields!)",
            );
            error.set_cause(py, Some(cause));
            error
        })
    }

    fn hash_aux(py: Python<'_>, aux: &Object, state: &mut impl Hasher) -> PyResult<()> {
        let aux = aux.0.bind(py);
        if plainly_hashable(aux) {
            state.write_isize(aux.hash()?);
        }
        Ok(())
    }

    fn key_text(py: Python<'_>, key: &Object, limit: usize) -> PyResult<String> {
        let key = key.0.bind(py);
        if limit == usize::MAX { key.repr()?.extract() } else { Ok(shorten::within(key, limit)) }
    }

    fn class_text(py: Python<'_>, class: &Object) -> PyResult<String> {
        let name: String = class.0.bind(py).getattr("__name__")?.extract()?;
        Ok(format!("namedtuple[{name}]"))
    }

    fn custom_text(py: Python<'_>, custom: &&'static Registered, aux: &Object, limit: usize) -> PyResult<String> {
        let (name, aux) = (custom.class.bind(py).name()?, aux.0.bind(py));
        let aux = if limit == usize::MAX { aux.str()?.extract()? } else { shorten::text(aux, limit) };
        Ok(format!("{name}[{aux}]"))
    }

    fn child_key(py: Python<'_>, kind: Kind<'_>, index: usize) -> PyResult<Object> {
        Ok(Object(match kind {
            KindRef::Dict(names) => keys::dict_key(names[index].0.bind(py))?,
            KindRef::Named(class) => {
                keys::attr_key(&class.0.bind(py).getattr(intern!(py, "_fields"))?.get_item(index)?)?
            }
            KindRef::Custom(custom, aux) => match &custom.container {
                Container::Dataclass(fields) => keys::attr_key(fields.data.bind(py).get_item(index)?.as_any())?,
                Container::OrderedDict => keys::dict_key(&aux.0.bind(py).get_item(index)?)?,
                Container::DefaultDict => keys::dict_key(&aux.0.bind(py).get_item(1)?.get_item(index)?)?,
                _ => keys::flat_key(py, index)?,
            },
            KindRef::Leaf | KindRef::None | KindRef::Tuple | KindRef::List => keys::sequence_key(py, index)?,
        }))
    }

    fn too_deep() -> PyErr {
        PyRecursionError::new_err(
            "maximum recursion depth exceeded in flatten; PyTree may have cyclical node references.",
        )
    }

    fn max_depth(_py: Python<'_>) -> usize {
        // SAFETY: reads a setting; the interpreter is attached. The bound keeps native stacks in size.
        unsafe { ffi::Py_GetRecursionLimit() }.clamp(100, 10_000) as usize
    }
}
