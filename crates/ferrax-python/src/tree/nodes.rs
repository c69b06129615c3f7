//! Taking Python containers apart and building them: [`Nodes`] and [`Build`] for `Py<PyAny>`.
//!
//! The exact builtin types are handled through the C API without running Python code; dictionaries are sorted by key,
//! by bytes when all keys are strings and by value when all are small integers.

use ferrax_tree::{Build, Children, Host, Kind, KindRef, Nodes};
use pyo3::exceptions::{PyDeprecationWarning, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use pyo3::{ffi, intern};
use smallvec::SmallVec;
use std::ffi::CString;

use super::host::{Object, PyHost};
use super::keys;
use super::registry::{Container, Fields, Functions, Registered, lookup};
use crate::interpreter::dict_of;
use crate::shorten;

type Found = Kind<PyHost>;

/// What kind of container an object is.
enum Shape {
    Leaf,
    None,
    Tuple,
    List,
    Dict,
    Named,
    Registered(&'static Registered),
}

#[inline]
fn shape(object: &Bound<'_, PyAny>) -> PyResult<Shape> {
    // SAFETY: reads the type of a live object, and addresses of the interpreter's types
    unsafe {
        let raw = object.as_ptr();
        let class = ffi::Py_TYPE(raw);
        if class == &raw mut ffi::PyTuple_Type {
            return Ok(Shape::Tuple);
        }
        if class == &raw mut ffi::PyDict_Type {
            return Ok(Shape::Dict);
        }
        if class == &raw mut ffi::PyList_Type {
            return Ok(Shape::List);
        }
        if raw == ffi::Py_None() {
            return Ok(Shape::None);
        }
        if let Some(registered) = lookup(class) {
            return Ok(Shape::Registered(registered));
        }
        if ffi::PyTuple_Check(raw) != 0 && object.hasattr(intern!(object.py(), "_fields"))? {
            return Ok(Shape::Named);
        }
    }
    Ok(Shape::Leaf)
}

/// Whether an object is a node; nothing is said of iterators.
pub fn is_node(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(!matches!(shape(object)?, Shape::Leaf))
}

/// The iterators that are warned of where they are leaves.
const ITERATORS: [&str; 11] = [
    "dict_itemiterator",
    "dict_keyiterator",
    "dict_valueiterator",
    "enumerate",
    "filter",
    "generator",
    "list_iterator",
    "map",
    "set_iterator",
    "tuple_iterator",
    "zip",
];

/// An iterator is a leaf, which is seldom meant: its items are none.
#[inline]
fn leaf(object: &Bound<'_, PyAny>) -> PyResult<Option<Found>> {
    // SAFETY: reads the type of a live object
    if unsafe { ffi::PyIter_Check(object.as_ptr()) } != 0 {
        warn_of_iterator(object)?;
    }
    Ok(None)
}

#[cold]
fn warn_of_iterator(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let (py, class) = (object.py(), object.get_type());
    let name = class.name()?.to_string();
    if !ITERATORS.contains(&name.as_str()) || class.module()? != "builtins" {
        return Ok(());
    }
    let text = format!(
        "Python iterable type '{name}' is treated as a leaf in PyTree: its items are no leaves. Make a tuple or list of \
         it, or let is_leaf say that it is one. In a future version of JAX, this will become an error."
    );
    PyErr::warn(py, &py.get_type::<PyDeprecationWarning>(), &CString::new(text)?, 1)
}

/// Pushes the items of a tuple (or of an instance of a subclass).
fn push_tuple(object: &Bound<'_, PyAny>, children: &mut Children<Py<PyAny>>) {
    // SAFETY: `object` is a tuple; its items live as long as it does
    unsafe {
        let raw = object.as_ptr();
        let len = ffi::PyTuple_GET_SIZE(raw);
        children.reserve(len as usize);
        for i in 0..len {
            children.push(Bound::from_borrowed_ptr(object.py(), ffi::PyTuple_GET_ITEM(raw, i)).unbind());
        }
    }
}

fn push_list(object: &Bound<'_, PyAny>, children: &mut Children<Py<PyAny>>) -> PyResult<()> {
    children.extend(object.cast::<PyList>()?.iter().map(Bound::unbind));
    Ok(())
}

/// Pushes the keys and the values of a dictionary, sorted by key.
fn push_items(dict: &Bound<'_, PyDict>, keys: &mut Vec<Object>, values: &mut Children<Py<PyAny>>) -> PyResult<()> {
    let py = dict.py();
    keys.reserve_exact(dict.len());
    values.reserve(dict.len());
    for (key, value) in dict.iter() {
        keys.push(Object(key.unbind()));
        values.push(value.unbind());
    }
    match order(py, keys) {
        Order::Sorted => Ok(()),
        Order::Permuted(order) => {
            permute(order, keys, values);
            Ok(())
        }
        Order::Unknown => sort_generally(dict, keys, values),
    }
}

/// What is known about the order of keys without running Python code.
enum Order {
    Sorted,
    /// The indices in sorted order.
    Permuted(SmallVec<[u32; 8]>),
    Unknown,
}

fn order(py: Python<'_>, keys: &[Object]) -> Order {
    if keys.len() < 2 {
        return Order::Sorted;
    }
    order_by(keys, |key| key.0.bind(py).cast_exact::<PyString>().ok()?.to_str().ok())
        .or_else(|| order_by(keys, |key| small_int(key.0.bind(py))))
        .unwrap_or(Order::Unknown)
}

/// The order by what stands for each key; none when something does not stand for some key.
fn order_by<'a, K: Ord>(keys: &'a [Object], stand_in: impl Fn(&'a Object) -> Option<K>) -> Option<Order> {
    let mut last = stand_in(&keys[0])?;
    let mut sorted = true;
    for key in &keys[1..] {
        let next = stand_in(key)?;
        if next < last {
            sorted = false;
            break;
        }
        last = next;
    }
    if sorted {
        return Some(Order::Sorted);
    }
    let mut pairs: SmallVec<[(K, u32); 8]> = SmallVec::with_capacity(keys.len());
    for (i, key) in keys.iter().enumerate() {
        pairs.push((stand_in(key)?, i as u32));
    }
    pairs.sort_unstable();
    Some(Order::Permuted(pairs.into_iter().map(|(_, i)| i).collect()))
}

/// Puts at each place what is at the place that `order` names, in both slices.
fn permute<A, B>(mut order: SmallVec<[u32; 8]>, a: &mut [A], b: &mut [B]) {
    for start in 0..order.len() {
        let mut place = start;
        loop {
            let next = order[place] as usize;
            order[place] = place as u32;
            if next == start {
                break;
            }
            a.swap(place, next);
            b.swap(place, next);
            place = next;
        }
    }
}

fn small_int(key: &Bound<'_, PyAny>) -> Option<i64> {
    // SAFETY: the type is checked first; the call cannot run other code for an exact int
    unsafe {
        if ffi::PyLong_CheckExact(key.as_ptr()) == 0 {
            return None;
        }
        let mut overflow = 0;
        let value = ffi::PyLong_AsLongLongAndOverflow(key.as_ptr(), &raw mut overflow);
        (overflow == 0).then_some(value)
    }
}

/// By Python's own comparisons.
fn sort_generally(dict: &Bound<'_, PyDict>, keys: &mut Vec<Object>, values: &mut Children<Py<PyAny>>) -> PyResult<()> {
    let py = dict.py();
    let sorted = PyList::new(py, keys.iter().map(|k| &k.0))?;
    sorted.sort().map_err(|cause| {
        let error = PyValueError::new_err("Comparator raised exception while sorting pytree dictionary keys.");
        error.set_cause(py, Some(cause));
        error
    })?;
    keys.clear();
    values.clear();
    for key in sorted {
        if let Some(value) = dict.get_item(&key)? {
            keys.push(Object(key.unbind()));
            values.push(value.unbind());
        }
    }
    Ok(())
}

/// Opens an `OrderedDict` (data: its keys in its order) or a `defaultdict` (data: factory and sorted keys).
fn open_mapping(object: &Bound<'_, PyAny>, sorted: bool, children: &mut Children<Py<PyAny>>) -> PyResult<Object> {
    let py = object.py();
    let mut keys = Vec::new();
    if sorted {
        push_items(object.cast::<PyDict>()?, &mut keys, children)?;
    } else {
        for item in object.call_method0(intern!(py, "items"))?.try_iter()? {
            let (key, value): (Py<PyAny>, Py<PyAny>) = item?.extract()?;
            keys.push(Object(key));
            children.push(value);
        }
    }
    let keys = PyTuple::new(py, keys.into_iter().map(|k| k.0))?;
    if !sorted {
        return Ok(Object(keys.into_any().unbind()));
    }
    let factory = object.getattr(intern!(py, "default_factory"))?;
    Ok(Object((factory, keys).into_pyobject(py)?.into_any().unbind()))
}

fn open_dict(object: &Bound<'_, PyAny>, children: &mut Children<Py<PyAny>>) -> PyResult<Found> {
    let mut keys = Vec::new();
    push_items(object.cast::<PyDict>()?, &mut keys, children)?;
    Ok(Kind::Dict(keys.into()))
}

/// What a flatten function returned, checked to be a pair.
fn pair<'py>(out: Bound<'py, PyAny>, function: &str, first: &str) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    match out.cast::<PyTuple>() {
        Ok(tuple) if tuple.len() == 2 => Ok((tuple.get_item(0)?, tuple.get_item(1)?)),
        _ => Err(PyValueError::new_err(format!(
            "The {function} function for a custom PyTree node should return a ({first}, aux_data) tuple, got {}",
            shorten::repr(&out)
        ))),
    }
}

fn not_iterable(error: PyErr, py: Python<'_>, function: &str, first: &str, out: &Bound<'_, PyAny>) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(py) {
        return error;
    }
    let got = shorten::repr(out);
    PyValueError::new_err(format!(
        "The {function} function for a custom PyTree node should return a ({first}, aux_data) tuple where '{first}' is \
         iterable, got {got}"
    ))
}

impl Functions {
    /// Children and auxiliary data as the user's function gives them.
    pub fn raw<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        pair(self.flatten.bind(object.py()).call1((object,))?, "to_iterable", "children")
    }

    fn open(&self, object: &Bound<'_, PyAny>, children: &mut Children<Py<PyAny>>) -> PyResult<Object> {
        let py = object.py();
        let (items, aux) = self.raw(object)?;
        if items.is_exact_instance_of::<PyTuple>() {
            push_tuple(&items, children);
        } else {
            let iterator = items.try_iter().map_err(|e| {
                let whole = (&items, &aux).into_pyobject(py).map(Bound::into_any);
                whole.map_or_else(|e| e, |whole| not_iterable(e, py, "to_iterable", "children", &whole))
            })?;
            for item in iterator {
                children.push(item?.unbind());
            }
        }
        Ok(Object(aux.unbind()))
    }

    fn open_with_keys(
        &self,
        object: &Bound<'_, PyAny>,
        children: &mut Children<(Object, Py<PyAny>)>,
    ) -> PyResult<Object> {
        const WHAT: (&str, &str) = ("to_iterable_with_keys", "key_leaf_pairs");
        let py = object.py();
        let Some(with_keys) = &self.flatten_with_keys else {
            let mut plain = Children::new();
            let aux = self.open(object, &mut plain)?;
            for (i, child) in plain.into_iter().enumerate() {
                children.push((Object(keys::flat_key(py, i)?), child));
            }
            return Ok(aux);
        };
        let out = with_keys.bind(py).call1((object,))?;
        let (items, aux) = pair(out.clone(), WHAT.0, WHAT.1)?;
        for item in items.try_iter().map_err(|e| not_iterable(e, py, WHAT.0, WHAT.1, &out))? {
            let (key, child): (Py<PyAny>, Py<PyAny>) = item?
                .extract()
                .map_err(|_| not_iterable(PyTypeError::new_err(()), py, WHAT.0, "key_leaf_pairs", &out))?;
            children.push((Object(key), child));
        }
        Ok(Object(aux.unbind()))
    }
}

impl Fields {
    fn open(&self, object: &Bound<'_, PyAny>, children: &mut Children<Py<PyAny>>) -> PyResult<Object> {
        let py = object.py();
        for name in self.data.bind(py) {
            children.push(object.getattr(name.cast::<PyString>()?)?.unbind());
        }
        let meta = self.meta.bind(py);
        if meta.is_empty() {
            return Ok(Object(PyTuple::empty(py).into_any().unbind()));
        }
        let values: PyResult<Vec<_>> = meta.iter().map(|name| object.getattr(name.cast::<PyString>()?)).collect();
        Ok(Object(PyTuple::new(py, values?)?.into_any().unbind()))
    }

    /// An instance by keyword: children, then static fields.
    fn build(
        &self,
        py: Python<'_>,
        class: &Py<pyo3::types::PyType>,
        children: impl ExactSizeIterator<Item = Py<PyAny>>,
        meta: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        let mut values: Children<Py<PyAny>> = children.collect();
        push_tuple(meta.cast::<PyTuple>()?.as_any(), &mut values);
        let pointers: Children<*mut ffi::PyObject> = values.iter().map(Py::as_ptr).collect();
        // SAFETY: as many values as names, all of them alive; no positional arguments
        unsafe {
            let out = ffi::PyObject_Vectorcall(class.as_ptr(), pointers.as_ptr(), 0, self.all.as_ptr());
            Ok(Bound::from_owned_ptr_or_err(py, out)?.unbind())
        }
    }
}

impl Registered {
    fn open(&'static self, object: &Bound<'_, PyAny>, children: &mut Children<Py<PyAny>>) -> PyResult<Found> {
        let aux = match &self.container {
            Container::Functions(functions) => functions.open(object, children)?,
            Container::Dataclass(fields) => fields.open(object, children)?,
            Container::OrderedDict => open_mapping(object, false, children)?,
            Container::DefaultDict => open_mapping(object, true, children)?,
            Container::Builtin => Object(object.py().None()),
        };
        Ok(Kind::Custom(self, aux))
    }
}

fn open(object: &Bound<'_, PyAny>, shape: Shape, children: &mut Children<Py<PyAny>>) -> PyResult<Option<Found>> {
    Ok(Some(match shape {
        Shape::Leaf => return leaf(object),
        Shape::None => Kind::None,
        Shape::Tuple => {
            push_tuple(object, children);
            Kind::Tuple
        }
        Shape::List => {
            push_list(object, children)?;
            Kind::List
        }
        Shape::Dict => open_dict(object, children)?,
        Shape::Named => {
            push_tuple(object, children);
            Kind::Named(Object(object.get_type().into_any().unbind()))
        }
        Shape::Registered(registered) => registered.open(object, children)?,
    }))
}

impl Nodes<PyHost> for Py<PyAny> {
    #[inline]
    fn open(&self, py: Python<'_>, children: &mut Children<Self>) -> PyResult<Option<Found>> {
        let object = self.bind(py);
        match shape(object)? {
            Shape::Leaf => leaf(object),
            shape => open(object, shape, children),
        }
    }

    fn open_with_keys(&self, py: Python<'_>, children: &mut Children<(Object, Self)>) -> PyResult<Option<Found>> {
        let object = self.bind(py);
        let shape = shape(object)?;
        if let Shape::Registered(registered) = shape
            && let Container::Functions(functions) = &registered.container
        {
            let aux = functions.open_with_keys(object, children)?;
            return Ok(Some(Kind::Custom(registered, aux)));
        }
        let mut plain = Children::new();
        let Some(kind) = open(object, shape, &mut plain)? else { return Ok(None) };
        for (i, child) in plain.into_iter().enumerate() {
            children.push((PyHost::child_key(py, kind.borrowed(), i)?, child));
        }
        Ok(Some(kind))
    }

    /// Containers with functions of their own may have keys of their own.
    fn child_key(&self, py: Python<'_>, kind: &Found, index: usize) -> PyResult<Object> {
        if let Kind::Custom(Registered { container: Container::Functions(functions), .. }, _) = kind {
            let mut children = Children::new();
            functions.open_with_keys(self.bind(py), &mut children)?;
            if index < children.len() {
                return Ok(children.swap_remove(index).0);
            }
        }
        PyHost::child_key(py, kind.borrowed(), index)
    }

    fn open_as(
        &self,
        py: Python<'_>,
        kind: KindRef<'_, PyHost>,
        arity: usize,
        children: &mut Children<Self>,
    ) -> PyResult<bool> {
        let object = self.bind(py);
        match (shape(object)?, kind) {
            (Shape::None, KindRef::None) => {}
            (Shape::Tuple, KindRef::Tuple) => push_tuple(object, children),
            (Shape::List, KindRef::List) => push_list(object, children)?,
            (Shape::Dict, KindRef::Dict(keys)) => return look_up(object, keys, children),
            (Shape::Named, KindRef::Named(class)) => {
                if !object.get_type().is(&class.0) {
                    return Ok(false);
                }
                push_tuple(object, children);
            }
            (Shape::Registered(registered), KindRef::Custom(expected, aux)) => {
                if !std::ptr::eq(registered, *expected) {
                    return Ok(false);
                }
                let Kind::Custom(_, own) = registered.open(object, children)? else { return Ok(false) };
                if children.len() != arity || !PyHost::aux_eq(py, &own, aux)? {
                    return Ok(false);
                }
            }
            _ => return Ok(false),
        }
        Ok(children.len() == arity)
    }

    #[inline]
    fn is_container(&self, py: Python<'_>) -> PyResult<bool> {
        match shape(self.bind(py))? {
            Shape::Leaf => leaf(self.bind(py)).map(|_| false),
            _ => Ok(true),
        }
    }

    #[cold]
    fn mismatch(&self, py: Python<'_>, kind: KindRef<'_, PyHost>, arity: usize) -> PyErr {
        match mismatch_text(self.bind(py), kind, arity) {
            Ok(text) => PyValueError::new_err(text),
            Err(error) => error,
        }
    }
}

/// Pushes the values of `keys`; `false` unless they are all there and nothing else.
fn look_up(object: &Bound<'_, PyAny>, keys: &[Object], children: &mut Children<Py<PyAny>>) -> PyResult<bool> {
    let dict = object.cast::<PyDict>()?;
    if dict.len() != keys.len() {
        return Ok(false);
    }
    children.reserve(keys.len());
    // as long as the dictionary has the very same keys in the same order, nothing needs to be looked up
    for (expected, (key, value)) in keys.iter().zip(dict.iter()) {
        if !key.is(&expected.0) {
            break;
        }
        children.push(value.unbind());
    }
    for key in &keys[children.len()..] {
        match dict.get_item(key.0.bind(object.py()))? {
            Some(value) => children.push(value.unbind()),
            None => return Ok(false),
        }
    }
    Ok(true)
}

/// The keys of a dictionary, for a text: in order when they are few enough to be read.
fn present_keys(dict: &Bound<'_, PyDict>) -> PyResult<Vec<Object>> {
    const FEW: usize = 100;
    if dict.len() > FEW {
        return Ok(dict.iter().take(FEW).map(|(key, _)| Object(key.unbind())).collect());
    }
    let mut keys = Vec::new();
    push_items(dict, &mut keys, &mut Children::new())?;
    Ok(keys)
}

/// Why a value is not a container of that kind.
fn mismatch_text(object: &Bound<'_, PyAny>, kind: KindRef<'_, PyHost>, arity: usize) -> PyResult<String> {
    let py = object.py();
    let got = shorten::within(object, shorten::BLOCK);
    let shape = shape(object)?;
    // a class of named tuples that is registered is one too
    let named = object.is_instance_of::<PyTuple>() && object.hasattr("_fields")?;
    let list = |keys: &[Object]| {
        let keys = shorten::list(keys.len(), ", ", shorten::BLOCK, |i| Ok(shorten::repr(keys[i].0.bind(py))));
        keys.map(|keys| format!("[{keys}]"))
    };
    Ok(match (kind, &shape) {
        (KindRef::Tuple, Shape::Tuple) => format!("Tuple arity mismatch: {} != {arity}; tuple: {got}.", object.len()?),
        (KindRef::List, Shape::List) => format!("List arity mismatch: {} != {arity}; list: {got}.", object.len()?),
        (KindRef::Dict(keys), Shape::Dict) => {
            let present = present_keys(object.cast::<PyDict>()?)?;
            format!("Dict key mismatch; expected keys: {}; present keys: {}.", list(keys)?, list(&present)?)
        }
        (KindRef::Named(_), _) if named && object.len()? != arity => {
            format!("Named tuple arity mismatch: {} != {arity}; tuple: {got}.", object.len()?)
        }
        (KindRef::Named(class), _) if named => {
            format!("Named tuple type mismatch: expected type: {}, tuple: {got}.", class.0.bind(py).repr()?)
        }
        (KindRef::Custom(expected, aux), Shape::Registered(own)) if std::ptr::eq(*expected, *own) => {
            let mut children = Children::new();
            let Kind::Custom(_, own) = own.open(object, &mut children)? else { return Ok(String::new()) };
            if children.len() == arity {
                let text = |aux: &Object| shorten::within(aux.0.bind(py), shorten::BLOCK);
                let (aux, own, word) = (text(aux), text(&own), expected.container.word());
                format!("Mismatch custom {word}node data: {aux} != {own}; value: {got}.")
            } else {
                format!("Custom type arity mismatch: {} != {arity}; value: {got}.", children.len())
            }
        }
        (KindRef::Custom(expected, _), _) => {
            let (word, class) = (expected.container.word(), expected.class.bind(py).repr()?);
            format!("Custom {word}node type mismatch: expected type: {class}, value: {got}.")
        }
        (KindRef::None, _) => format!(
            "Expected None, got {got}.\n\nNone is a container without leaves, which only None matches. To let it stand \
             for anything, treat it as a leaf: is_leaf=lambda x: x is None."
        ),
        (KindRef::Tuple, _) => format!("Expected tuple, got {got}."),
        (KindRef::List, _) => format!("Expected list, got {got}."),
        (KindRef::Dict(_), _) => format!("Expected dict, got {got}."),
        (KindRef::Named(_), _) => format!("Expected named tuple, got {got}."),
        (KindRef::Leaf, _) => format!("Expected a leaf, got {got}."),
    })
}

impl Build<PyHost> for Py<PyAny> {
    fn close(
        py: Python<'_>,
        kind: KindRef<'_, PyHost>,
        children: impl ExactSizeIterator<Item = Self>,
    ) -> PyResult<Self> {
        Ok(match kind {
            KindRef::Leaf | KindRef::None => py.None(),
            KindRef::Tuple => PyTuple::new(py, children)?.into_any().unbind(),
            KindRef::List => PyList::new(py, children)?.into_any().unbind(),
            KindRef::Dict(keys) => {
                let dict = dict_of(py, keys.len())?;
                for (key, child) in keys.iter().zip(children) {
                    dict.set_item(&key.0, child)?;
                }
                dict.into_any().unbind()
            }
            KindRef::Named(class) => class.0.bind(py).call1(PyTuple::new(py, children)?)?.unbind(),
            KindRef::Custom(registered, aux) => build_registered(py, registered, aux, children)?,
        })
    }
}

/// Sets the items of a new mapping.
fn fill(
    out: Bound<'_, PyAny>,
    keys: &Bound<'_, PyAny>,
    children: impl ExactSizeIterator<Item = Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    for (key, child) in keys.try_iter()?.zip(children) {
        out.set_item(key?, child)?;
    }
    Ok(out.unbind())
}

fn build_registered(
    py: Python<'_>,
    registered: &'static Registered,
    aux: &Object,
    children: impl ExactSizeIterator<Item = Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let aux = aux.0.bind(py);
    match &registered.container {
        Container::OrderedDict => fill(registered.class.bind(py).call0()?, aux, children),
        Container::DefaultDict => {
            fill(registered.class.bind(py).call1((aux.get_item(0)?,))?, &aux.get_item(1)?, children)
        }
        Container::Functions(functions) => {
            Ok(functions.unflatten.bind(py).call1((aux, PyTuple::new(py, children)?))?.unbind())
        }
        Container::Dataclass(fields) => fields.build(py, &registered.class, children, aux),
        Container::Builtin => Err(PyTypeError::new_err("a builtin container is not built by its type")),
    }
}
