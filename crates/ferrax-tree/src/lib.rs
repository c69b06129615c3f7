//! Pytrees: nested containers with values at their leaves, generic over the host's node types.
//!
//! * [`Host`] says what a host's dictionary keys, classes and auxiliary data are; [`Nodes`] opens the
//!   containers among its values and [`Build`] makes them.
//! * [`TreeDef`] is the structure without the leaves: an arena of nodes in postorder, cheap to clone, compare and
//!   hash.
//! * [`flatten`] and [`unflatten`] are inverse; [`flatten_up_to`] follows a known structure, [`matches()`] asks whether
//!   a value has exactly that structure (what a call cache needs).
//! * [`postorder`] makes structures of nodes that come from outside, [`proto`] reads those that JAX writes.
//! * [`prefix`] broadcasts prefix trees and says where two trees differ.
//!
//! [`rust::Tree`] is a host in plain Rust; the Python one is in `ferrax-python`. Read next: [`treedef`].

pub mod flatten;
pub mod postorder;
pub mod prefix;
pub mod proto;
pub mod rust;
pub mod treedef;

use std::hash::Hasher;

use smallvec::SmallVec;

pub use flatten::{flatten, flatten_up_to, flatten_with_path, matches, unflatten};
pub use treedef::{Builder, TreeDef};

/// The kinds of data that a host stores in structures.
///
/// Comparisons and hashes can fail, because a host's objects may run code; equal things must hash alike.
pub trait Host: Sized + 'static {
    /// A dictionary's key.
    type Key: Clone;
    /// The class of a named tuple.
    type Class: Clone;
    /// The handle of a registered container type.
    type Custom: Clone;
    /// What a registered container carries besides its children.
    type Aux: Clone;
    /// One step of a path from the root to a leaf.
    type PathKey: Clone;
    /// What the host's code fails with.
    type Error;
    /// What the host needs to touch its objects (Python's token, or nothing).
    type Cx<'a>: Copy;

    /// A ferrax error as the host's.
    fn error(error: ferrax_base::Error) -> Self::Error;
    /// Whether two keys are equal.
    fn key_eq(cx: Self::Cx<'_>, a: &Self::Key, b: &Self::Key) -> Result<bool, Self::Error>;
    /// Feeds a key to a hasher.
    fn hash_key(cx: Self::Cx<'_>, key: &Self::Key, state: &mut impl Hasher) -> Result<(), Self::Error>;
    /// Whether two classes are the same.
    fn class_eq(a: &Self::Class, b: &Self::Class) -> bool;
    /// Feeds a class to a hasher.
    fn hash_class(class: &Self::Class, state: &mut impl Hasher);
    /// Whether two registered types are the same.
    fn custom_eq(a: &Self::Custom, b: &Self::Custom) -> bool;
    /// Feeds a registered type to a hasher.
    fn hash_custom(custom: &Self::Custom, state: &mut impl Hasher);
    /// Whether two containers' auxiliary data are equal.
    fn aux_eq(cx: Self::Cx<'_>, a: &Self::Aux, b: &Self::Aux) -> Result<bool, Self::Error>;
    /// Feeds auxiliary data to a hasher, as far as it can be hashed.
    fn hash_aux(cx: Self::Cx<'_>, aux: &Self::Aux, state: &mut impl Hasher) -> Result<(), Self::Error>;
    /// A key, as the host prints it; text much longer than `limit` bytes may be cut.
    fn key_text(cx: Self::Cx<'_>, key: &Self::Key, limit: usize) -> Result<String, Self::Error>;
    /// The head of a named tuple, `namedtuple[P]`.
    fn class_text(cx: Self::Cx<'_>, class: &Self::Class) -> Result<String, Self::Error>;
    /// The head of a registered container, `C[aux]`; data much longer than `limit` bytes may be cut.
    fn custom_text(
        cx: Self::Cx<'_>,
        custom: &Self::Custom,
        aux: &Self::Aux,
        limit: usize,
    ) -> Result<String, Self::Error>;
    /// The path key for a child of a node of which only the structure is known.
    fn child_key(cx: Self::Cx<'_>, kind: KindRef<'_, Self>, index: usize) -> Result<Self::PathKey, Self::Error>;
    /// The error for a tree deeper than [`Host::max_depth`].
    fn too_deep() -> Self::Error {
        Self::error(ferrax_base::error!(Value, "the tree is too deep; it may contain itself"))
    }
    /// How deep a tree may be before it is taken for a cycle.
    fn max_depth(_cx: Self::Cx<'_>) -> usize {
        1000
    }
}

/// A container as [`Nodes::open`] finds it.
pub enum Kind<H: Host> {
    /// The empty container `None`.
    None,
    /// A tuple.
    Tuple,
    /// A list.
    List,
    /// A dictionary with its keys in order.
    Dict(Box<[H::Key]>),
    /// A named tuple.
    Named(H::Class),
    /// A registered container.
    Custom(H::Custom, H::Aux),
}

/// A node of a structure.
pub enum KindRef<'a, H: Host> {
    /// A leaf.
    Leaf,
    /// The empty container `None`.
    None,
    /// A tuple.
    Tuple,
    /// A list.
    List,
    /// A dictionary with its keys in order.
    Dict(&'a [H::Key]),
    /// A named tuple.
    Named(&'a H::Class),
    /// A registered container.
    Custom(&'a H::Custom, &'a H::Aux),
}

impl<H: Host> Clone for KindRef<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H: Host> Copy for KindRef<'_, H> {}

impl<H: Host> Kind<H> {
    /// The borrowed form.
    pub fn borrowed(&self) -> KindRef<'_, H> {
        match self {
            Kind::None => KindRef::None,
            Kind::Tuple => KindRef::Tuple,
            Kind::List => KindRef::List,
            Kind::Dict(keys) => KindRef::Dict(keys),
            Kind::Named(class) => KindRef::Named(class),
            Kind::Custom(custom, aux) => KindRef::Custom(custom, aux),
        }
    }
}

impl<H: Host> KindRef<'_, H> {
    /// The kind with its data cloned; `None` for a leaf.
    pub fn to_kind(self) -> Option<Kind<H>> {
        Some(match self {
            KindRef::Leaf => return None,
            KindRef::None => Kind::None,
            KindRef::Tuple => Kind::Tuple,
            KindRef::List => Kind::List,
            KindRef::Dict(keys) => Kind::Dict(keys.into()),
            KindRef::Named(class) => Kind::Named(class.clone()),
            KindRef::Custom(custom, aux) => Kind::Custom(custom.clone(), aux.clone()),
        })
    }

    /// Whether two nodes have the same kind, keys, class and auxiliary data.
    pub fn equals(self, cx: H::Cx<'_>, other: KindRef<'_, H>) -> Result<bool, H::Error> {
        Ok(match (self, other) {
            (KindRef::Leaf, KindRef::Leaf)
            | (KindRef::None, KindRef::None)
            | (KindRef::Tuple, KindRef::Tuple)
            | (KindRef::List, KindRef::List) => true,
            (KindRef::Dict(a), KindRef::Dict(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (a, b) in a.iter().zip(b) {
                    if !H::key_eq(cx, a, b)? {
                        return Ok(false);
                    }
                }
                true
            }
            (KindRef::Named(a), KindRef::Named(b)) => H::class_eq(a, b),
            (KindRef::Custom(a, x), KindRef::Custom(b, y)) => H::custom_eq(a, b) && H::aux_eq(cx, x, y)?,
            _ => false,
        })
    }
}

/// The children of one container.
pub type Children<V> = SmallVec<[V; 8]>;

/// A host's values, leaves and containers alike, as they are taken apart.
pub trait Nodes<H: Host>: Sized {
    /// Pushes the children of a container and says what it is; `None`, and nothing pushed, for a leaf.
    fn open(&self, cx: H::Cx<'_>, children: &mut Children<Self>) -> Result<Option<Kind<H>>, H::Error>;

    /// As [`Nodes::open`], with each child's path key.
    fn open_with_keys(
        &self,
        cx: H::Cx<'_>,
        children: &mut Children<(H::PathKey, Self)>,
    ) -> Result<Option<Kind<H>>, H::Error>;

    /// The path key of a child of this value, which [`Nodes::open`] found to be of that kind.
    fn child_key(&self, cx: H::Cx<'_>, kind: &Kind<H>, index: usize) -> Result<H::PathKey, H::Error> {
        H::child_key(cx, kind.borrowed(), index)
    }

    /// Pushes the children of a value that should be such a container; `false` when it is not.
    fn open_as(
        &self,
        cx: H::Cx<'_>,
        kind: KindRef<'_, H>,
        arity: usize,
        children: &mut Children<Self>,
    ) -> Result<bool, H::Error>;

    /// Whether the value is a container.
    fn is_container(&self, cx: H::Cx<'_>) -> Result<bool, H::Error>;

    /// What to raise when [`Nodes::open_as`] said no.
    fn mismatch(&self, cx: H::Cx<'_>, kind: KindRef<'_, H>, arity: usize) -> H::Error;
}

/// Values that containers can be built of.
pub trait Build<H: Host>: Sized {
    /// Builds a container from its children; never called for a leaf.
    fn close(
        cx: H::Cx<'_>,
        kind: KindRef<'_, H>,
        children: impl ExactSizeIterator<Item = Self>,
    ) -> Result<Self, H::Error>;
}
