//! A host in plain Rust: trees of any leaf type, for programs without Python and for the tests of this crate.
//!
//! ```
//! use ferrax_tree::rust::Tree;
//!
//! let tree = Tree::dict([("w", Tree::Leaf(1.0)), ("b", Tree::Tuple(vec![Tree::Leaf(2.0), Tree::None]))]);
//! let (leaves, treedef) = tree.flatten()?;
//! assert_eq!(leaves, [&2.0, &1.0]);
//! assert_eq!(treedef.text(())?, "{b: (*, None), w: *}");
//! let doubled = Tree::unflatten(&treedef, leaves.into_iter().map(|x| 2.0 * x))?;
//! assert_eq!(doubled.flatten()?.0, [&4.0, &2.0]);
//! # Ok::<(), ferrax_base::Error>(())
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use ferrax_base::{Error, Result, error};

use crate::{Build, Children, Host, Kind, KindRef, Nodes, TreeDef, flatten, unflatten};

/// A struct's name and the names of its fields.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Class {
    /// Name of the struct.
    pub name: Arc<str>,
    /// Names of the fields, in order.
    pub fields: Arc<[Arc<str>]>,
}

/// A tree of `T`s.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree<T> {
    /// A leaf.
    Leaf(T),
    /// Nothing.
    None,
    /// A tuple.
    Tuple(Vec<Tree<T>>),
    /// A list.
    List(Vec<Tree<T>>),
    /// A dictionary.
    Dict(BTreeMap<Arc<str>, Tree<T>>),
    /// A struct: its class and the values of its fields.
    Struct(Class, Vec<Tree<T>>),
    /// A container with a name, static data and children.
    Tagged(Arc<str>, Arc<str>, Vec<Tree<T>>),
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A position.
    Index(usize),
    /// A dictionary's key.
    Key(Arc<str>),
    /// A field.
    Field(Arc<str>),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Index(i) => write!(f, "[{i}]"),
            Step::Key(key) => write!(f, "[{key:?}]"),
            Step::Field(name) => write!(f, ".{name}"),
        }
    }
}

/// Bytes of a structure that an error shows, about.
const SHOWN: usize = 200;

/// The host of [`Tree`].
pub enum RustHost {}

impl Host for RustHost {
    type Key = Arc<str>;
    type Class = Class;
    type Custom = Arc<str>;
    type Aux = Arc<str>;
    type PathKey = Step;
    type Error = Error;
    type Cx<'a> = ();

    fn error(error: Error) -> Error {
        error
    }
    fn key_eq((): (), a: &Arc<str>, b: &Arc<str>) -> Result<bool> {
        Ok(a == b)
    }
    fn hash_key((): (), key: &Arc<str>, state: &mut impl Hasher) -> Result<()> {
        key.hash(state);
        Ok(())
    }
    fn class_eq(a: &Class, b: &Class) -> bool {
        a == b
    }
    fn hash_class(class: &Class, state: &mut impl Hasher) {
        class.hash(state);
    }
    fn custom_eq(a: &Arc<str>, b: &Arc<str>) -> bool {
        a == b
    }
    fn hash_custom(custom: &Arc<str>, state: &mut impl Hasher) {
        custom.hash(state);
    }
    fn aux_eq((): (), a: &Arc<str>, b: &Arc<str>) -> Result<bool> {
        Ok(a == b)
    }
    fn hash_aux((): (), aux: &Arc<str>, state: &mut impl Hasher) -> Result<()> {
        aux.hash(state);
        Ok(())
    }
    fn key_text((): (), key: &Arc<str>, _limit: usize) -> Result<String> {
        Ok(key.to_string())
    }
    fn class_text((): (), class: &Class) -> Result<String> {
        Ok(class.name.to_string())
    }
    fn custom_text((): (), custom: &Arc<str>, aux: &Arc<str>, _limit: usize) -> Result<String> {
        Ok(format!("{custom}[{aux}]"))
    }
    fn child_key((): (), kind: KindRef<'_, Self>, index: usize) -> Result<Step> {
        Ok(match kind {
            KindRef::Dict(keys) => Step::Key(keys[index].clone()),
            KindRef::Named(class) => Step::Field(class.fields[index].clone()),
            _ => Step::Index(index),
        })
    }
}

/// The structure of a [`Tree`].
pub type RustTreeDef = TreeDef<RustHost>;

impl<T> Tree<T> {
    /// A dictionary from pairs.
    pub fn dict<K: Into<Arc<str>>>(items: impl IntoIterator<Item = (K, Tree<T>)>) -> Self {
        Tree::Dict(items.into_iter().map(|(k, v)| (k.into(), v)).collect())
    }

    /// The leaves and the structure.
    pub fn flatten(&self) -> Result<(Vec<&T>, RustTreeDef)> {
        let mut leaves: Vec<&Tree<T>> = Vec::new();
        let tree = flatten::<RustHost, _, _>((), self, &mut |leaf| leaves.push(leaf), None)?;
        Ok((leaves.into_iter().filter_map(Tree::as_leaf).collect(), tree))
    }

    /// The structure.
    pub fn structure(&self) -> Result<RustTreeDef> {
        Ok(self.flatten()?.1)
    }

    /// The value of a leaf.
    pub fn as_leaf(&self) -> Option<&T> {
        match self {
            Tree::Leaf(leaf) => Some(leaf),
            _ => None,
        }
    }

    /// The tree of that structure with those leaves.
    pub fn unflatten(tree: &RustTreeDef, leaves: impl IntoIterator<Item = T>) -> Result<Self> {
        unflatten((), tree, leaves.into_iter().map(Tree::Leaf))
    }

    /// What kind of container this is, and its children.
    fn parts(&self) -> (Option<Kind<RustHost>>, Children<&Tree<T>>) {
        match self {
            Tree::Leaf(_) => (None, Children::new()),
            Tree::None => (Some(Kind::None), Children::new()),
            Tree::Tuple(children) => (Some(Kind::Tuple), children.iter().collect()),
            Tree::List(children) => (Some(Kind::List), children.iter().collect()),
            Tree::Dict(map) => (Some(Kind::Dict(map.keys().cloned().collect())), map.values().collect()),
            Tree::Struct(class, children) => (Some(Kind::Named(class.clone())), children.iter().collect()),
            Tree::Tagged(name, aux, children) => {
                (Some(Kind::Custom(name.clone(), aux.clone())), children.iter().collect())
            }
        }
    }
}

impl<T> Nodes<RustHost> for &Tree<T> {
    fn open(&self, (): (), children: &mut Children<Self>) -> Result<Option<Kind<RustHost>>> {
        let (kind, parts) = self.parts();
        children.extend(parts);
        Ok(kind)
    }

    fn open_with_keys(&self, (): (), children: &mut Children<(Step, Self)>) -> Result<Option<Kind<RustHost>>> {
        let (kind, parts) = self.parts();
        for (i, part) in parts.into_iter().enumerate() {
            let key = kind.as_ref().map_or(Ok(Step::Index(i)), |kind| RustHost::child_key((), kind.borrowed(), i))?;
            children.push((key, part));
        }
        Ok(kind)
    }

    fn open_as(
        &self,
        (): (),
        kind: KindRef<'_, RustHost>,
        arity: usize,
        children: &mut Children<Self>,
    ) -> Result<bool> {
        let (own, parts) = self.parts();
        let same = match (&own, kind) {
            (Some(Kind::None), KindRef::None)
            | (Some(Kind::Tuple), KindRef::Tuple)
            | (Some(Kind::List), KindRef::List) => true,
            (Some(Kind::Dict(a)), KindRef::Dict(b)) => **a == *b,
            (Some(Kind::Named(a)), KindRef::Named(b)) => a == b,
            (Some(Kind::Custom(a, x)), KindRef::Custom(b, y)) => a == b && x == y,
            _ => false,
        };
        if !same || parts.len() != arity {
            return Ok(false);
        }
        children.extend(parts);
        Ok(true)
    }

    fn is_container(&self, (): ()) -> Result<bool> {
        Ok(!matches!(self, Tree::Leaf(_)))
    }

    fn mismatch(&self, (): (), kind: KindRef<'_, RustHost>, arity: usize) -> Error {
        let expected = match kind.to_kind() {
            Some(kind) => TreeDef::from_children(Some(kind), &vec![TreeDef::leaf(); arity]).short_text((), SHOWN),
            None => Ok("a leaf".to_owned()),
        };
        let found = match self.parts() {
            (None, _) => Ok("a leaf".to_owned()),
            (Some(kind), parts) => {
                TreeDef::from_children(Some(kind), &vec![TreeDef::leaf(); parts.len()]).short_text((), SHOWN)
            }
        };
        match (expected, found) {
            (Ok(expected), Ok(found)) => error!(Value, "expected {expected}, got {found}"),
            (Err(e), _) | (_, Err(e)) => e,
        }
    }
}

impl<T> Build<RustHost> for Tree<T> {
    fn close((): (), kind: KindRef<'_, RustHost>, children: impl ExactSizeIterator<Item = Self>) -> Result<Self> {
        Ok(match kind {
            KindRef::Leaf => return Err(error!(Internal, "a leaf has no children")),
            KindRef::None => Tree::None,
            KindRef::Tuple => Tree::Tuple(children.collect()),
            KindRef::List => Tree::List(children.collect()),
            KindRef::Dict(keys) => Tree::Dict(keys.iter().cloned().zip(children).collect()),
            KindRef::Named(class) => Tree::Struct(class.clone(), children.collect()),
            KindRef::Custom(name, aux) => Tree::Tagged(name.clone(), aux.clone(), children.collect()),
        })
    }
}
