//! Prefix trees: broadcasting them, and saying where two trees part.
//!
//! A tree is a prefix of another when it is the other with some subtrees replaced by leaves (`(0, None)` for
//! `({'a': x}, y)`). [`leaf_counts`] gives how many leaves of the full structure each leaf of the prefix covers.
//! [`mismatch`] compares two values, with the host's own path keys; [`difference`] and [`differences`] compare two
//! structures.

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
    let mut walk = Walk { path: Vec::new(), prefix: true, found: Vec::new(), limit: 1, more: 0 };
    walk.compare(cx, prefix.root(), full.root())?;
    Ok(walk.found.pop())
}

/// The first `limit` places where two structures part, and how many more there are.
pub fn differences<'a, H: Host>(
    cx: H::Cx<'_>,
    left: &'a TreeDef<H>,
    right: &'a TreeDef<H>,
    limit: usize,
) -> Result<(Vec<Difference<'a, H>>, usize), H::Error> {
    let mut walk = Walk { path: Vec::new(), prefix: false, found: Vec::new(), limit, more: 0 };
    walk.compare(cx, left.root(), right.root())?;
    Ok((walk.found, walk.more))
}

/// A walk through two structures at once; path keys are made for the places that are told.
struct Walk<'a, H: Host> {
    /// The nodes above, each with the number of the child that is visited.
    path: Vec<(KindRef<'a, H>, usize)>,
    /// Leaves on the left stand for anything, and the first difference ends the walk.
    prefix: bool,
    found: Vec<Difference<'a, H>>,
    limit: usize,
    /// Differences beyond the limit.
    more: usize,
}

impl<'a, H: Host> Walk<'a, H> {
    fn compare(&mut self, cx: H::Cx<'_>, left: Cursor<'a, H>, right: Cursor<'a, H>) -> Result<(), H::Error> {
        if left.is_leaf() && (self.prefix || right.is_leaf()) {
            return Ok(());
        }
        let (kind, arity) = (left.kind(), left.arity());
        if arity != right.arity() || !kind.equals(cx, right.kind())? {
            return self.differ(cx, (kind, arity), (right.kind(), right.arity()));
        }
        if left.has_only_leaves() && (self.prefix || right.has_only_leaves()) {
            return Ok(());
        }
        for (i, (left, right)) in left.children().into_iter().zip(right.children()).enumerate() {
            self.path.push((kind, i));
            self.compare(cx, left, right)?;
            self.path.pop();
            if self.prefix && !self.found.is_empty() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn differ(
        &mut self,
        cx: H::Cx<'_>,
        left: (KindRef<'a, H>, usize),
        right: (KindRef<'a, H>, usize),
    ) -> Result<(), H::Error> {
        if self.found.len() == self.limit {
            self.more += 1;
            return Ok(());
        }
        let path = self.path.iter().map(|(kind, i)| H::child_key(cx, *kind, *i)).collect::<Result<_, _>>()?;
        self.found.push(Difference { path, left, right });
        Ok(())
    }
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
    /// How many children it has.
    pub arity: usize,
}

impl<H: Host, V> Side<H, V> {
    /// As a node of a structure.
    pub fn node(&self) -> (KindRef<'_, H>, usize) {
        (self.kind.as_ref().map_or(KindRef::Leaf, Kind::borrowed), self.arity)
    }
}

/// Where and how a value stops looking like its prefix.
pub struct Mismatch<H: Host, V> {
    /// Path from the root.
    pub path: Vec<H::PathKey>,
    /// The prefix's part.
    pub prefix: Side<H, V>,
    /// The full tree's part.
    pub full: Side<H, V>,
}

impl<H: Host, V> Mismatch<H, V> {
    /// What differs.
    pub fn what(&self) -> What {
        what(self.prefix.node(), self.full.node())
    }
}

/// The first place where `full` stops looking like `prefix`, by the values themselves; none when `prefix` is a prefix.
pub fn mismatch<H: Host, V: Nodes<H>>(
    cx: H::Cx<'_>,
    prefix: V,
    full: V,
    is_leaf: &mut dyn FnMut(&V) -> Result<bool, H::Error>,
) -> Result<Option<Mismatch<H, V>>, H::Error> {
    let mut found = find(cx, prefix, full, is_leaf)?;
    if let Some(found) = &mut found {
        found.path.reverse();
    }
    Ok(found)
}

/// As [`mismatch`], with the path from the place up to the root.
fn find<H: Host, V: Nodes<H>>(
    cx: H::Cx<'_>,
    prefix: V,
    full: V,
    is_leaf: &mut dyn FnMut(&V) -> Result<bool, H::Error>,
) -> Result<Option<Mismatch<H, V>>, H::Error> {
    if is_leaf(&prefix)? {
        return Ok(None);
    }
    let (mut ours, mut theirs) = (Children::new(), Children::new());
    let Some(kind) = prefix.open(cx, &mut ours)? else { return Ok(None) };
    let other = full.open(cx, &mut theirs)?;
    let same = other.as_ref().is_some_and(|_| ours.len() == theirs.len());
    if !same || !kind.borrowed().equals(cx, other.as_ref().map_or(KindRef::Leaf, Kind::borrowed))? {
        return Ok(Some(Mismatch {
            path: Vec::new(),
            prefix: Side { value: prefix, kind: Some(kind), arity: ours.len() },
            full: Side { value: full, kind: other, arity: theirs.len() },
        }));
    }
    for (i, (ours, theirs)) in ours.into_iter().zip(theirs).enumerate() {
        if let Some(mut found) = find(cx, ours, theirs, is_leaf)? {
            found.path.push(prefix.child_key(cx, &kind, i)?);
            return Ok(Some(found));
        }
    }
    Ok(None)
}
