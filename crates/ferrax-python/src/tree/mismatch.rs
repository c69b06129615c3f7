//! Errors that say where two trees differ, with the key path and what is there on either side.
//!
//! Texts are bounded, whatever the size of the trees: the first few places, keys and items, and how many more there
//! are. Read next: [`crate::shorten`] for how values are written.

use ferrax_tree::prefix::{Difference, What, differences, mismatch};
use ferrax_tree::{Host, KindRef, Nodes};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySet, PyTuple, PyType};
use rustc_hash::FxHashSet;
use std::borrow::Cow;

use super::host::{Object, PyHost, TreeDef};
use super::keys;
use super::registry::{Container, Registered};
use crate::shorten;

type Predicate<'a> = &'a mut dyn FnMut(&Py<PyAny>) -> PyResult<bool>;

/// Places where two structures differ that an error tells.
const PLACES: usize = 5;

/// A node of either tree at the place where they part.
struct Side<'a, 'py> {
    kind: KindRef<'a, PyHost>,
    arity: usize,
    /// The value there, where one is known.
    value: Option<&'a Bound<'py, PyAny>>,
}

/// The error for a tree that does not look like its prefix, or none if it does. `name` is what the prefix is called.
pub fn prefix_error(
    prefix: &Bound<'_, PyAny>,
    full: &Bound<'_, PyAny>,
    is_leaf: Predicate<'_>,
    name: &str,
) -> PyResult<Option<PyErr>> {
    let py = prefix.py();
    let Some(found) = mismatch(py, prefix.clone().unbind(), full.clone().unbind(), is_leaf)? else { return Ok(None) };
    let [(left, ours), (right, theirs)] = [&found.prefix, &found.full].map(|side| (side.node(), side.value.bind(py)));
    let ours = Side { kind: left.0, arity: left.1, value: Some(ours) };
    let theirs = Side { kind: right.0, arity: right.1, value: Some(theirs) };
    Ok(Some(PyValueError::new_err(text(py, &found.path, found.what(), &ours, &theirs, name)?)))
}

/// The error for a specification (`in_axes`, `out_axes` ...) that is not a prefix of a structure.
pub fn spec_error(py: Python<'_>, found: &Difference<'_, PyHost>, what: &str) -> PyErr {
    let side = |(kind, arity)| Side { kind, arity, value: None };
    match text(py, &found.path, found.what(), &side(found.left), &side(found.right), what) {
        Ok(details) => PyValueError::new_err(format!(
            "{what} specification must be a tree prefix of the corresponding value; \n  Mismatch details (1 found):\n  \
             {details}"
        )),
        Err(error) => error,
    }
}

/// `keystr` of a path.
pub fn path_text(py: Python<'_>, path: &[Object]) -> PyResult<String> {
    let mut out = String::new();
    for key in path {
        out.push_str(&shorten::cut(key.0.bind(py).str()?.to_str()?, shorten::SENTENCE));
    }
    Ok(out)
}

/// `keystr` of the path to a leaf, by its number.
pub fn leaf_text(py: Python<'_>, tree: &TreeDef, leaf: usize) -> PyResult<String> {
    match leaf_texts(py, tree) {
        Ok(texts) if texts.len() == tree.num_leaves() => Ok(texts[leaf].clone()),
        // a class that is not made of numbers
        _ => path_text(py, &tree.path_of_leaf(py, leaf)?),
    }
}

/// `keystr` of the paths to all leaves: what classes call their children, only objects of them say.
pub fn leaf_texts(py: Python<'_>, tree: &TreeDef) -> PyResult<Vec<String>> {
    let zero = 0i64.into_pyobject(py)?.into_any().unbind();
    let sample = super::unflatten(py, tree, (0..tree.num_leaves()).map(|_| zero.clone_ref(py)))?;
    let module = py.import(intern!(py, "ferrax.tree_util"))?;
    let pairs = module.call_method1(intern!(py, "tree_flatten_with_path"), (sample,))?.get_item(0)?;
    let text = |pair: PyResult<Bound<'_, PyAny>>| {
        module.call_method1(intern!(py, "keystr"), (pair?.get_item(0)?,))?.extract::<String>()
    };
    pairs.try_iter()?.map(text).collect()
}

impl Side<'_, '_> {
    /// What `repr` of the class prints.
    fn class(&self, py: Python<'_>) -> PyResult<String> {
        let class = match (self.value, self.kind) {
            (Some(value), _) => value.get_type(),
            (None, KindRef::Leaf) => return Ok("a leaf".to_owned()),
            (None, KindRef::None) => py.None().bind(py).get_type(),
            (None, KindRef::Tuple) => py.get_type::<PyTuple>(),
            (None, KindRef::List) => py.get_type::<PyList>(),
            (None, KindRef::Dict(_)) => py.get_type::<PyDict>(),
            (None, KindRef::Named(class)) => class.0.bind(py).clone().cast_into::<PyType>()?,
            (None, KindRef::Custom(custom, _)) => custom.class.bind(py).clone(),
        };
        Ok(class.repr()?.to_string())
    }

    /// The path keys of the children, in the short form of `keystr(simple=True)`.
    fn words(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        if let (Some(value), KindRef::Custom(Registered { container: Container::Functions(_), .. }, _)) =
            (self.value, self.kind)
        {
            let mut children = ferrax_tree::Children::new();
            Nodes::<PyHost>::open_with_keys(value.as_unbound(), py, &mut children)?;
            return children.iter().map(|(key, _)| keys::simple_text(key.0.bind(py))).collect();
        }
        (0..self.arity).map(|i| keys::simple_text(PyHost::child_key(py, self.kind, i)?.0.bind(py))).collect()
    }

    /// The keys of a mapping, of whichever type.
    fn keys(&self, py: Python<'_>) -> PyResult<Option<Cow<'_, [Object]>>> {
        let keys = match self.kind {
            KindRef::Dict(keys) => return Ok(Some(Cow::Borrowed(keys))),
            KindRef::Custom(Registered { container: Container::OrderedDict, .. }, aux) => aux.0.bind(py).clone(),
            KindRef::Custom(Registered { container: Container::DefaultDict, .. }, aux) => aux.0.bind(py).get_item(1)?,
            _ => return Ok(None),
        };
        let keys = keys.try_iter()?.map(|key| Ok(Object(key?.unbind()))).collect::<PyResult<Vec<_>>>()?;
        Ok(Some(Cow::Owned(keys)))
    }

    /// What a container carries besides its children: the keys of a dictionary, or the auxiliary data.
    fn metadata(&self, py: Python<'_>) -> PyResult<String> {
        Ok(match self.kind {
            KindRef::Dict(keys) => {
                let shown = keys.iter().take(shorten::BLOCK).map(|k| &k.0);
                shorten::within(PyTuple::new(py, shown.collect::<Vec<_>>())?.as_any(), shorten::BLOCK)
            }
            KindRef::Custom(_, aux) => shorten::text(aux.0.bind(py), shorten::BLOCK),
            _ => "None".to_owned(),
        })
    }
}

fn text(
    py: Python<'_>,
    path: &[Object],
    what: What,
    ours: &Side<'_, '_>,
    theirs: &Side<'_, '_>,
    name: &str,
) -> PyResult<String> {
    let place = format!("{name}{}", path_text(py, path)?);
    let head = format!("At that key path, the prefix pytree {name} has a subtree of type");
    let class = ours.class(py)?;
    Ok(match what {
        What::Types => format!(
            "pytree structure error: different types at key path\n    {place}\n{head}\n    {class}\nbut at the same key \
             path the full pytree has a subtree of different type\n    {}.",
            theirs.class(py)?
        ),
        What::Lengths => {
            let class = match ours.kind {
                KindRef::Named(class) => class.0.bind(py).getattr("__name__")?.to_string(),
                KindRef::List => "list".to_owned(),
                _ => "tuple".to_owned(),
            };
            format!(
                "pytree structure error: different lengths of {class} at key path\n    {place}\n{head} {class} of length \
                 {}, but the full pytree has a subtree of the same type but of length {}.",
                ours.arity, theirs.arity
            )
        }
        What::Children => {
            let [left, right, symmetric] = child_texts(py, ours, theirs)?;
            format!(
                "pytree structure error: different numbers of pytree children at key path\n    {place}\n{head}\n    \
                 {class}\nwith {} child keys\n    {left}\nbut at the same key path the full pytree has a subtree of the \
                 same type but with {} child keys\n    {right}\nso the symmetric difference on key sets is\n    {symmetric}",
                ours.arity, theirs.arity
            )
        }
        What::Metadata => {
            let (left, right) = (ours.metadata(py)?, theirs.metadata(py)?);
            let difference = match (&ours.kind, &theirs.kind) {
                (KindRef::Dict(a), KindRef::Dict(b)) => key_difference(py, a, b)?,
                _ => line_difference(py, &left, &right)?,
            };
            format!(
                "pytree structure error: different pytree metadata at key path\n    {place}\n{head}\n    {class}\nwith \
                 metadata\n    {left}\nbut at the same key path the full pytree has a subtree of the same type but with \
                 metadata\n    {right}{difference}"
            )
        }
    })
}

/// The first path keys of the children of either side, and of those that one side alone has.
fn child_texts(py: Python<'_>, ours: &Side<'_, '_>, theirs: &Side<'_, '_>) -> PyResult<[String; 3]> {
    if let (Some(left), Some(right)) = (ours.keys(py)?, theirs.keys(py)?) {
        let text = |key: &Object| Ok(shorten::text(key.0.bind(py), shorten::SENTENCE));
        let list = |keys: &[Object]| shorten::list(keys.len(), " ", shorten::BLOCK, |i| text(&keys[i]));
        let single = single_keys(py, &left, &right)?.concat();
        let symmetric = shorten::list(single.len(), " ", shorten::BLOCK, |i| text(single[i]))?;
        return Ok([list(&left)?, list(&right)?, symmetric]);
    }
    let (left, right) = (ours.words(py)?, theirs.words(py)?);
    let list = |words: &[String]| {
        shorten::list(words.len(), " ", shorten::BLOCK, |i| Ok(shorten::cut(&words[i], shorten::SENTENCE)))
    };
    let known = |words: &[String]| words.iter().cloned().collect::<FxHashSet<String>>();
    let (in_left, in_right) = (known(&left), known(&right));
    let mut symmetric: Vec<String> = left.iter().filter(|w| !in_right.contains(*w)).cloned().collect();
    symmetric.extend(right.iter().filter(|w| !in_left.contains(*w)).cloned());
    Ok([list(&left)?, list(&right)?, list(&symmetric)?])
}

/// The keys that only one of two mappings has, first those of the left.
fn single_keys<'a>(py: Python<'_>, left: &'a [Object], right: &'a [Object]) -> PyResult<[Vec<&'a Object>; 2]> {
    let same = |a: &Object, b: &Object| PyHost::key_eq(py, a, b);
    // trees that differ in a few of many keys have most of them at both ends
    let (mut left, mut right) = (left, right);
    while let ([a, ours @ ..], [b, theirs @ ..]) = (left, right)
        && same(a, b)?
    {
        (left, right) = (ours, theirs);
    }
    while let ([ours @ .., a], [theirs @ .., b]) = (left, right)
        && same(a, b)?
    {
        (left, right) = (ours, theirs);
    }
    let only = |a: &'a [Object], b: &[Object]| -> PyResult<Vec<&'a Object>> {
        const FEW: usize = 8;
        let known = if b.len() > FEW { Some(PySet::new(py, b.iter().map(|k| &k.0))?) } else { None };
        let mut out = Vec::new();
        for key in a {
            let mut found = false;
            match &known {
                Some(known) => found = known.contains(&key.0)?,
                None => {
                    for other in b {
                        found = found || same(key, other)?;
                    }
                }
            }
            if !found {
                out.push(key);
            }
        }
        Ok(out)
    };
    Ok([only(left, right)?, only(right, left)?])
}

/// The keys that only one of two dictionaries has, as a sentence.
fn key_difference(py: Python<'_>, ours: &[Object], theirs: &[Object]) -> PyResult<String> {
    let [ours, theirs] = single_keys(py, ours, theirs)?.map(|keys| {
        if keys.is_empty() {
            return Ok("no key".to_owned());
        }
        shorten::list(keys.len(), ", ", shorten::BLOCK, |i| Ok(shorten::repr(keys[i].0.bind(py))))
    });
    Ok(format!("\nso the prefix pytree alone has {} and the full pytree alone has {}", ours?, theirs?))
}

/// The lines in which two texts differ; nothing for single lines, which can be compared as they stand.
fn line_difference(py: Python<'_>, ours: &str, theirs: &str) -> PyResult<String> {
    if !ours.contains('\n') && !theirs.contains('\n') {
        return Ok(String::new());
    }
    let lines = |text: &str| PyList::new(py, text.lines());
    let diff = py.import("difflib")?.call_method1("ndiff", (lines(ours)?, lines(theirs)?))?;
    let diff: Vec<String> = diff.try_iter()?.map(|line| line?.extract()).collect::<PyResult<_>>()?;
    let diff: String = py.import("textwrap")?.call_method1("indent", (diff.join("\n"), "    "))?.extract()?;
    Ok(format!("\nso the diff in the metadata at these pytree nodes is\n{diff}"))
}

/// How two structures are called in the sentences of [`describe`].
pub struct Sides<'a> {
    /// What the root is called; paths follow it.
    pub root: &'a str,
    /// Where the left structure is: `the input carry`.
    pub left: &'a str,
    /// Where the right one is.
    pub right: &'a str,
}

/// Sentences for the first places where two structures differ, and a last one for the others.
pub fn describe(py: Python<'_>, left: &TreeDef, right: &TreeDef, sides: &Sides<'_>) -> PyResult<Vec<String>> {
    let parted = part(py, left, right, sides.root)?;
    let mut lines = parted.lines(|place| match place {
        Place::Key { name, left: true } => format!("{name} is in {} but not in {}", sides.left, sides.right),
        Place::Key { name, left: false } => format!("{name} is in {} but not in {}", sides.right, sides.left),
        Place::Node { name, left, right } => {
            let name = if name.is_empty() { "the root" } else { name };
            format!("{name} is {left} in {} but {right} in {}", sides.left, sides.right)
        }
    });
    if lines.is_empty() {
        lines.push(format!("{} and {} differ", sides.left, sides.right));
    }
    Ok(lines)
}

/// A place where two structures differ.
pub enum Place {
    /// A key that only one of two mappings has.
    Key {
        /// The path to it.
        name: String,
        /// Whether it is the left one that has it.
        left: bool,
    },
    /// A node that is something else.
    Node {
        /// The path to it.
        name: String,
        /// What the left structure has there.
        left: String,
        /// What the right structure has there.
        right: String,
    },
}

/// Where two structures part.
pub struct Parted {
    /// The first places.
    pub places: Vec<Place>,
    /// How many more there are.
    pub more: usize,
}

impl Parted {
    /// A line for each place, and one for the others.
    pub fn lines(&self, line: impl Fn(&Place) -> String) -> Vec<String> {
        let mut lines: Vec<String> = self.places.iter().map(line).collect();
        if self.more > 0 {
            lines.push(format!("and {} more", self.more));
        }
        lines
    }
}

/// Where two structures part; paths begin with `root`.
pub fn part(py: Python<'_>, left: &TreeDef, right: &TreeDef, root: &str) -> PyResult<Parted> {
    let (found, mut more) = differences(py, left, right, PLACES)?;
    let mut places = Vec::new();
    for found in found {
        let name = format!("{root}{}", path_text(py, &found.path)?);
        let [left, right] = [found.left, found.right].map(|(kind, arity)| Side { kind, arity, value: None });
        let same_class = found.what() == What::Children || found.what() == What::Metadata;
        let keys = if same_class { left.keys(py)?.zip(right.keys(py)?) } else { None };
        let single = keys.as_ref().map(|(a, b)| single_keys(py, a, b)).transpose()?;
        let Some([ours, theirs]) = single.filter(|keys| keys.iter().any(|side| !side.is_empty())) else {
            let (a, b) = node_texts(py, &left, &right)?;
            places.push(Place::Node { name, left: a, right: b });
            continue;
        };
        let keys = ours.into_iter().map(|k| (k, true)).chain(theirs.into_iter().map(|k| (k, false)));
        for (key, left) in keys {
            if places.len() >= PLACES {
                more += 1;
                continue;
            }
            places.push(Place::Key { name: format!("{name}[{}]", shorten::repr(key.0.bind(py))), left });
        }
    }
    more += places.len().saturating_sub(PLACES);
    places.truncate(PLACES);
    Ok(Parted { places, more })
}

/// What two nodes are; classes of one name are told apart by their modules, or by their fields.
fn node_texts(py: Python<'_>, left: &Side<'_, '_>, right: &Side<'_, '_>) -> PyResult<(String, String)> {
    for detail in [Detail::Name, Detail::Module, Detail::Fields, Detail::Address] {
        let (a, b) = (node_text(py, left, detail)?, node_text(py, right, detail)?);
        if a != b {
            return Ok((a, b));
        }
    }
    Ok((node_text(py, left, Detail::Name)?, "one that is not equal to it".to_owned()))
}

/// How much is said of a class.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Name,
    Module,
    Fields,
    Address,
}

fn class_text(class: &Bound<'_, PyAny>, detail: Detail) -> PyResult<String> {
    let name = class.getattr("__qualname__")?;
    let module = class.getattr("__module__")?;
    Ok(match detail {
        Detail::Name => class.getattr("__name__")?.to_string(),
        Detail::Module => format!("{module}.{name}"),
        Detail::Fields => match class.getattr_opt("_fields")? {
            Some(fields) => format!("{module}.{name} with the fields {}", shorten::repr(&fields)),
            None => format!("{module}.{name}"),
        },
        Detail::Address => {
            format!("{module}.{name} (the class object at {:#x})", class.as_ptr() as usize)
        }
    })
}

fn node_text(py: Python<'_>, node: &Side<'_, '_>, detail: Detail) -> PyResult<String> {
    let arity = node.arity;
    Ok(match node.kind {
        KindRef::Leaf => "a leaf".to_owned(),
        KindRef::None => "None".to_owned(),
        KindRef::Tuple => format!("a tuple of length {arity}"),
        KindRef::List => format!("a list of length {arity}"),
        KindRef::Dict(_) => format!("a dict of {arity} keys"),
        KindRef::Named(class) => format!("a {}", class_text(class.0.bind(py), detail)?),
        KindRef::Custom(custom, aux) => {
            let (class, aux) = (class_text(custom.class.bind(py), detail)?, aux.0.bind(py));
            let children = if arity == 1 { "child" } else { "children" };
            format!("a {class} with {arity} {children} and metadata {}", shorten::text(aux, shorten::SENTENCE))
        }
    })
}
