//! `PyTreeDef`, the class of structures that Python sees.

use ferrax_tree::postorder::Assembler;
use ferrax_tree::{Build, Host, Kind, KindRef};
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple, PyType};

use super::host::{Object, PyHost, TreeDef};
use super::registry::{Container, is_node, lookup};
use super::{Leaves, unflatten};
use crate::errors::IntoPyResult;

/// The structure of a tree, without its leaves.
///
/// Structures compare, hash and pickle; `unflatten` puts leaves into one.
///
/// >>> import ferrax
/// >>> ferrax.tree.structure({"a": (1, 2)})
/// PyTreeDef({'a': (*, *)})
#[pyclass(frozen, module = "ferrax.tree_util", weakref)]
pub struct PyTreeDef(pub TreeDef);

impl PyTreeDef {
    /// As a Python object.
    pub fn wrap(py: Python<'_>, tree: TreeDef) -> PyResult<Py<PyAny>> {
        Ok(Py::new(py, PyTreeDef(tree))?.into_any())
    }
}

#[pymethods]
impl PyTreeDef {
    /// Number of leaves.
    #[getter]
    fn num_leaves(&self) -> usize {
        self.0.num_leaves()
    }

    /// Number of nodes, leaves included.
    #[getter]
    fn num_nodes(&self) -> usize {
        self.0.num_nodes()
    }

    /// The tree of this structure with the given leaves.
    #[pyo3(signature = (leaves, /))]
    fn unflatten(&self, leaves: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let leaves = super::collect(leaves)?;
        guarded(|py| unflatten(py, &self.0, leaves))
    }

    /// What a tree that starts like this structure has at the places of its leaves.
    #[pyo3(signature = (tree, /))]
    fn flatten_up_to<'py>(&self, tree: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = tree.py();
        let mut out = Leaves::new();
        ferrax_tree::flatten_up_to(py, &self.0, tree.clone().unbind(), &mut |leaf| out.push(leaf))?;
        PyList::new(py, out)
    }

    /// This structure with another one in place of each leaf.
    #[pyo3(signature = (inner, /))]
    fn compose(&self, inner: &Self) -> Self {
        PyTreeDef(self.0.compose(&inner.0))
    }

    /// The structures of the root's children.
    fn children(&self) -> Vec<Self> {
        self.0.children().into_iter().map(PyTreeDef).collect()
    }

    /// Type and data of the root, `None` for a leaf.
    fn node_data(&self, py: Python<'_>) -> PyResult<Option<(Py<PyAny>, Py<PyAny>)>> {
        node_data(py, self.0.kind())
    }

    /// Calls `f_node(children, data)` at containers and `f_leaf` at leaves, children first.
    #[pyo3(signature = (f_node, f_leaf, leaves, /))]
    fn walk<'py>(
        &self,
        f_node: &Bound<'py, PyAny>,
        f_leaf: Option<&Bound<'py, PyAny>>,
        leaves: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = f_node.py();
        let mut leaves = leaves.try_iter()?;
        let mut stack: Vec<Bound<'py, PyAny>> = Vec::new();
        for (kind, arity) in self.0.postorder() {
            let data = match kind {
                KindRef::Named(class) => Some(class.0.clone_ref(py)),
                kind => node_data(py, kind)?.map(|(_, data)| data),
            };
            let Some(data) = data else {
                let Some(leaf) = leaves.next().transpose()? else {
                    return Err(PyValueError::new_err("Too few leaves for PyTreeDef"));
                };
                stack.push(match f_leaf {
                    Some(f) => f.call1((leaf,))?,
                    None => leaf,
                });
                continue;
            };
            let children = PyTuple::new(py, stack.split_off(stack.len() - arity))?;
            stack.push(f_node.call1((children, data))?);
        }
        if leaves.next().is_some() {
            return Err(PyValueError::new_err(format!(
                "Too many leaves for PyTreeDef; expected {}.",
                self.0.num_leaves()
            )));
        }
        stack.pop().ok_or_else(|| PyValueError::new_err("an empty structure"))
    }

    /// The tree of this structure from nested iterables of the same shape.
    #[allow(clippy::wrong_self_convention)]
    #[pyo3(signature = (tree, /))]
    fn from_iterable_tree(&self, tree: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        from_iterables(self.0.root(), tree)
    }

    /// A structure from what `node_data()` and `children()` give.
    #[staticmethod]
    #[pyo3(signature = (registry, node_data, children))]
    fn from_node_data_and_children(
        registry: &Bound<'_, PyAny>,
        node_data: Option<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
        children: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let _ = registry;
        let children: Vec<TreeDef> = children
            .try_iter()?
            .map(|child| Ok(child?.cast::<PyTreeDef>()?.get().0.clone()))
            .collect::<PyResult<_>>()?;
        let kind = node_data.map(|(class, data)| kind_from_data(&class, &data)).transpose()?;
        if kind.is_none() && !children.is_empty() {
            return Err(PyValueError::new_err("a leaf has no children"));
        }
        Ok(PyTreeDef(TreeDef::from_children(kind, &children)))
    }

    /// An older name of `from_node_data_and_children`.
    #[staticmethod]
    #[pyo3(signature = (registry, node_data, children))]
    fn make_from_node_data_and_children(
        registry: &Bound<'_, PyAny>,
        node_data: Option<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
        children: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        Self::from_node_data_and_children(registry, node_data, children)
    }

    /// The structure as a protocol buffer; builtin containers and string keys only.
    fn serialize_using_proto<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &super::proto::encode(py, &self.0)?))
    }

    /// A structure from what `serialize_using_proto` gives, here or in JAX.
    #[staticmethod]
    #[pyo3(signature = (registry, data, /))]
    fn deserialize_using_proto(registry: &Bound<'_, PyAny>, data: &Bound<'_, PyBytes>) -> PyResult<Self> {
        Ok(PyTreeDef(super::proto::decode(registry.py(), data.as_bytes())?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("PyTreeDef({})", self.0.text(py)?))
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        match other.cast::<PyTreeDef>() {
            Ok(other) => self.0.equals(py, &other.get().0),
            Err(_) => Ok(false),
        }
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        Ok(self.0.hash(py)? as isize)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyList>,))> {
        let py = slf.py();
        let mut state = Vec::new();
        for (kind, arity) in slf.get().0.postorder() {
            state.push(node_data(py, kind)?.map(|(class, data)| (class, data, arity)));
        }
        Ok((slf.get_type().getattr("_from_postorder")?, (PyList::new(py, state)?,)))
    }

    #[classmethod]
    fn _from_postorder(_class: &Bound<'_, PyType>, state: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut nodes = Assembler::new(usize::MAX, PyHost::max_depth(state.py()));
        for node in state.try_iter()? {
            let node: Option<(Bound<'_, PyAny>, Bound<'_, PyAny>, usize)> = node?.extract()?;
            let (kind, arity) = match node {
                None => (None, 0),
                Some((class, data, arity)) => (Some(kind_from_data(&class, &data)?), arity),
            };
            nodes.add(kind, arity).py()?;
        }
        nodes.finish().map(PyTreeDef).ok_or_else(|| PyValueError::new_err("not a structure"))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // what several owners share would be counted several times
        if self.0.is_unique() {
            for (kind, _) in self.0.postorder() {
                match kind {
                    KindRef::Dict(keys) => keys.iter().try_for_each(|key| visit.call(&key.0))?,
                    KindRef::Named(class) => visit.call(&class.0)?,
                    KindRef::Custom(_, aux) => visit.call(&aux.0)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// Runs with the token and turns a panic into an exception.
fn guarded<R>(f: impl FnOnce(Python<'_>) -> PyResult<R>) -> PyResult<R> {
    crate::errors::guard(|| Python::attach(f))
}

fn from_iterables(node: ferrax_tree::treedef::Cursor<'_, PyHost>, tree: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    if node.is_leaf() {
        return Ok(tree.clone().unbind());
    }
    let parts: Vec<Bound<'_, PyAny>> = tree.try_iter()?.collect::<PyResult<_>>()?;
    let nodes = node.children();
    if parts.len() != nodes.len() {
        return Err(PyValueError::new_err("Arity mismatch between trees"));
    }
    let built: Vec<Py<PyAny>> =
        nodes.into_iter().zip(&parts).map(|(node, part)| from_iterables(node, part)).collect::<PyResult<_>>()?;
    <Py<PyAny> as Build<PyHost>>::close(tree.py(), node.kind(), built.into_iter())
}

/// Type and data of a node as Python sees them: `(type, data)`, none for a leaf.
pub fn node_data(py: Python<'_>, kind: KindRef<'_, PyHost>) -> PyResult<Option<(Py<PyAny>, Py<PyAny>)>> {
    let none = py.None();
    Ok(Some(match kind {
        KindRef::Leaf => return Ok(None),
        KindRef::None => (none.bind(py).get_type().into_any().unbind(), none),
        KindRef::Tuple => (py.get_type::<PyTuple>().into_any().unbind(), none),
        KindRef::List => (py.get_type::<PyList>().into_any().unbind(), none),
        KindRef::Dict(keys) => {
            let keys = PyList::new(py, keys.iter().map(|k| &k.0))?;
            (py.get_type::<PyDict>().into_any().unbind(), keys.into_any().unbind())
        }
        KindRef::Named(class) => (class.0.clone_ref(py), none),
        KindRef::Custom(custom, aux) => (custom.class.clone_ref(py).into_any(), aux.0.clone_ref(py)),
    }))
}

/// The reverse of [`node_data`].
pub fn kind_from_data(class: &Bound<'_, PyAny>, data: &Bound<'_, PyAny>) -> PyResult<Kind<PyHost>> {
    let py = class.py();
    let class = class.cast::<PyType>()?;
    let Some(registered) = lookup(class.as_type_ptr()) else {
        if is_node(class)? {
            return Ok(Kind::Named(Object(class.clone().into_any().unbind())));
        }
        return Err(PyValueError::new_err(format!("{} is not registered as a pytree node", class.repr()?)));
    };
    if !matches!(registered.container, Container::Builtin) {
        return Ok(Kind::Custom(registered, Object(data.clone().unbind())));
    }
    Ok(if class.is(py.get_type::<PyTuple>()) {
        Kind::Tuple
    } else if class.is(py.get_type::<PyList>()) {
        Kind::List
    } else if class.is(py.get_type::<PyDict>()) {
        Kind::Dict(data.try_iter()?.map(|key| Ok(Object(key?.unbind()))).collect::<PyResult<_>>()?)
    } else {
        Kind::None
    })
}
