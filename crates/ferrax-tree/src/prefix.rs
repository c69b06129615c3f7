//! Prefix trees: broadcasting them, and saying where two trees part.
//!
//! A tree is a prefix of another when it is the other with some subtrees replaced by leaves (`(0, None)` for
//! `({'a': x}, y)`). [`leaf_counts`] gives how many leaves of the full structure each leaf of the prefix covers.
//! [`mismatch`] compares two values, with the host's own path keys; [`difference`] compares two structures.

use crate::treedef::Cursor;
use crate::{Children, Host, Kind, KindRef, Nodes, TreeDef};

/// Where and how two structures part.
pub struct Difference<'a, H: Host> {
    /// Path from the root.
    pub path: Vec<H::PathKey>,
    /// The first structure's node there, and its arity.
    pub left: (KindRef<'a, H>, usize),
    /// The second's.
    pub right: (KindRef<'a, H>, usize),
}

/// What differs between the two nodes of a [`Difference`] or [`Mismatch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The kinds, or the classes of named tuples or registered containers.
    Types,
    /// The lengths of two lists or two tuples.
    Lengths,
    /// The numbers of children of two other containers.
    Children,
    /// The keys or the auxiliary data.
    Metadata,
}

impl<H: Host> Difference<'_, H> {
    /// What differs.
    pub fn what(&self) -> What {
        what(self.left, self.right)
    }
}

fn what<H: Host>(left: (KindRef<'_, H>, usize), right: (KindRef<'_, H>, usize)) -> What {
    use KindRef::{Custom, Dict, Leaf, List, Named, None, Tuple};
    match (left.0, right.0) {
        (Leaf, Leaf) | (None, None) => What::Metadata,
        (Tuple, Tuple) | (List, List) => What::Lengths,
        (Dict(_), Dict(_)) if left.1 == right.1 => What::Metadata,
        (Dict(_), Dict(_)) => What::Children,
        (Named(a), Named(b)) if H::class_eq(a, b) => What::Lengths,
        (Custom(a, _), Custom(b, _)) if H::custom_eq(a, b) => {
            if left.1 == right.1 {
                What::Metadata
            } else {
                What::Children
            }
        }
        _ => What::Types,
    }
}

/// The first place (in order of leaves) where `full` stops looking like `prefix`; none when `prefix` is a prefix.
pub fn difference<'a, H: Host>(
    cx: H::Cx<'_>,
    prefix: &'a TreeDef<H>,
    full: &'a TreeDef<H>,
) -> Result<Option<Difference<'a, H>>, H::Error> {
    let mut found = Vec::new();
    compare(cx, prefix.root(), full.root(), &mut Vec::new(), Goal::Prefix, &mut found)?;
    Ok(found.pop())
}

/// Every place where two structures part.
pub fn differences<'a, H: Host>(
    cx: H::Cx<'_>,
    left: &'a TreeDef<H>,
    right: &'a TreeDef<H>,
) -> Result<Vec<Difference<'a, H>>, H::Error> {
    let mut found = Vec::new();
    compare(cx, left.root(), right.root(), &mut Vec::new(), Goal::Equal, &mut found)?;
    Ok(found)
}

#[derive(Clone, Copy, PartialEq)]
enum Goal {
    /// Leaves on the left stand for anything; stop at the first difference.
    Prefix,
    /// Everything has to agree; collect all differences.
    Equal,
}

fn compare<'a, H: Host>(
    cx: H::Cx<'_>,
    left: Cursor<'a, H>,
    right: Cursor<'a, H>,
    path: &mut Vec<H::PathKey>,
    goal: Goal,
    found: &mut Vec<Difference<'a, H>>,
) -> Result<(), H::Error> {
    if left.is_leaf() && (goal == Goal::Prefix || right.is_leaf()) {
        return Ok(());
    }
    let (kind, arity) = (left.kind(), left.arity());
    if arity != right.arity() || !kind.equals(cx, right.kind())? {
        found.push(Difference { path: path.clone(), left: (kind, arity), right: (right.kind(), right.arity()) });
        return Ok(());
    }
    let keys = H::child_keys(cx, kind, arity)?;
    for ((key, left), right) in keys.into_iter().zip(left.children()).zip(right.children()) {
        path.push(key);
        compare(cx, left, right, path, goal, found)?;
        path.pop();
        if goal == Goal::Prefix && !found.is_empty() {
            return Ok(());
        }
    }
    Ok(())
}

/// How many leaves of `full` each leaf of `prefix` covers, or where `prefix` is not a prefix.
pub fn leaf_counts<'a, H: Host>(
    cx: H::Cx<'_>,
    prefix: &'a TreeDef<H>,
    full: &'a TreeDef<H>,
) -> Result<Result<Vec<usize>, Difference<'a, H>>, H::Error> {
    let mut counts = Vec::with_capacity(prefix.num_leaves());
    if count(cx, prefix.root(), full.root(), &mut counts)? {
        return Ok(Ok(counts));
    }
    match difference(cx, prefix, full)? {
        Some(difference) => Ok(Err(difference)),
        None => Err(H::error(ferrax_base::error!(Internal, "a prefix is not one, and no difference was found"))),
    }
}

fn count<H: Host>(
    cx: H::Cx<'_>,
    prefix: Cursor<'_, H>,
    full: Cursor<'_, H>,
    counts: &mut Vec<usize>,
) -> Result<bool, H::Error> {
    if prefix.is_leaf() {
        counts.push(full.num_leaves());
        return Ok(true);
    }
    if prefix.arity() != full.arity() || !prefix.kind().equals(cx, full.kind())? {
        return Ok(false);
    }
    for (prefix, full) in prefix.children().into_iter().zip(full.children()) {
        if !count(cx, prefix, full, counts)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// One side of a [`Mismatch`].
pub struct Side<H: Host, V> {
    /// The value.
    pub value: V,
    /// What it is; none for a leaf.
    pub kind: Option<Kind<H>>,
    /// The path keys of its children.
    pub keys: Vec<H::PathKey>,
}

/// Where and how a value stops looking like its prefix.
pub struct Mismatch<H: Host, V> {
    /// Path from the root.
    pub path: Vec<H::PathKey>,
    /// What differs.
    pub what: What,
    /// The prefix's part.
    pub prefix: Side<H, V>,
    /// The full tree's part.
    pub full: Side<H, V>,
}

/// The first place where `full` stops looking like `prefix`, by the values themselves; none when `prefix` is a prefix.
pub fn mismatch<H: Host, V: Nodes<H>>(
    cx: H::Cx<'_>,
    prefix: V,
    full: V,
    is_leaf: &mut dyn FnMut(&V) -> Result<bool, H::Error>,
) -> Result<Option<Mismatch<H, V>>, H::Error> {
    find(cx, prefix, full, &mut Vec::new(), is_leaf)
}

fn find<H: Host, V: Nodes<H>>(
    cx: H::Cx<'_>,
    prefix: V,
    full: V,
    path: &mut Vec<H::PathKey>,
    is_leaf: &mut dyn FnMut(&V) -> Result<bool, H::Error>,
) -> Result<Option<Mismatch<H, V>>, H::Error> {
    if is_leaf(&prefix)? {
        return Ok(None);
    }
    let (mut ours, mut theirs) = (Children::new(), Children::new());
    let Some(kind) = prefix.open_with_keys(cx, &mut ours)? else { return Ok(None) };
    let other = full.open_with_keys(cx, &mut theirs)?;
    let (left, right) = (as_ref(Some(&kind)), as_ref(other.as_ref()));
    if ours.len() != theirs.len() || !left.equals(cx, right)? {
        let keys = |children: Children<(H::PathKey, V)>| children.into_iter().map(|(key, _)| key).collect();
        return Ok(Some(Mismatch {
            path: std::mem::take(path),
            what: what((left, ours.len()), (right, theirs.len())),
            prefix: Side { value: prefix, kind: Some(kind), keys: keys(ours) },
            full: Side { value: full, kind: other, keys: keys(theirs) },
        }));
    }
    for ((key, prefix), (_, full)) in ours.into_iter().zip(theirs) {
        path.push(key);
        if let Some(found) = find(cx, prefix, full, path, is_leaf)? {
            return Ok(Some(found));
        }
        path.pop();
    }
    Ok(None)
}

fn as_ref<H: Host>(kind: Option<&Kind<H>>) -> KindRef<'_, H> {
    match kind {
        None => KindRef::Leaf,
        Some(Kind::None) => KindRef::None,
        Some(Kind::Tuple) => KindRef::Tuple,
        Some(Kind::List) => KindRef::List,
        Some(Kind::Dict(keys)) => KindRef::Dict(keys),
        Some(Kind::Named(class)) => KindRef::Named(class),
        Some(Kind::Custom(custom, aux)) => KindRef::Custom(custom, aux),
    }
}
