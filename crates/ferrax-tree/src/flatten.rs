//! Between trees and lists of leaves: [`flatten`], [`flatten_with_path`], [`unflatten`], [`flatten_up_to`], [`matches()`].

use ferrax_base::error;
use smallvec::SmallVec;

use crate::treedef::{Cursor, Mark};
use crate::{Build, Builder, Children, Host, Kind, KindRef, Nodes, TreeDef};

/// A question asked of each value on the way down: is this to be treated as a leaf?
pub type IsLeaf<'a, H, V> = &'a mut dyn FnMut(&V) -> Result<bool, <H as Host>::Error>;

/// The same with the path that led there.
pub type IsLeafAt<'a, H, V> = &'a mut dyn FnMut(&[<H as Host>::PathKey], &V) -> Result<bool, <H as Host>::Error>;

/// What is done with each leaf.
pub type AtLeaf<'a, H, V> = &'a mut dyn FnMut(&[<H as Host>::PathKey], V) -> Result<(), <H as Host>::Error>;

/// What becomes of the structure while a tree is walked: a [`Builder`] keeps it, `()` does not.
pub trait Structure<H: Host> {
    /// Where a container starts.
    type Mark: Copy;
    /// Room for that many more nodes.
    fn reserve(&mut self, nodes: usize);
    /// A leaf.
    fn leaf(&mut self);
    /// Before the children of a container.
    fn mark(&self) -> Self::Mark;
    /// After the children of a container.
    fn close(&mut self, mark: Self::Mark, kind: Kind<H>, arity: usize);
}

impl<H: Host> Structure<H> for Builder<H> {
    type Mark = Mark;
    fn reserve(&mut self, nodes: usize) {
        Builder::reserve(self, nodes);
    }
    #[inline]
    fn leaf(&mut self) {
        Builder::leaf(self);
    }
    #[inline]
    fn mark(&self) -> Mark {
        Builder::mark(self)
    }
    fn close(&mut self, mark: Mark, kind: Kind<H>, arity: usize) {
        Builder::close(self, mark, kind, arity);
    }
}

impl<H: Host> Structure<H> for () {
    type Mark = ();
    fn reserve(&mut self, _nodes: usize) {}
    fn leaf(&mut self) {}
    fn mark(&self) {}
    fn close(&mut self, (): (), _kind: Kind<H>, _arity: usize) {}
}

/// Hands the leaves of `value` to `leaves` in order and returns the structure.
pub fn flatten<H: Host, V: Nodes<H>, L: FnMut(V)>(
    cx: H::Cx<'_>,
    value: V,
    leaves: &mut L,
    is_leaf: Option<IsLeaf<'_, H, V>>,
) -> Result<TreeDef<H>, H::Error> {
    let mut builder = Builder::new();
    flatten_into(cx, value, &mut builder, leaves, is_leaf)?;
    Ok(builder.finish())
}

/// As [`flatten`], adding the structure to one under construction, or to `()`.
pub fn flatten_into<H: Host, V: Nodes<H>, L: FnMut(V), S: Structure<H>>(
    cx: H::Cx<'_>,
    value: V,
    structure: &mut S,
    leaves: &mut L,
    is_leaf: Option<IsLeaf<'_, H, V>>,
) -> Result<(), H::Error> {
    let depth = H::max_depth(cx);
    match is_leaf {
        None => walk::<H, V, L, S>(cx, value, structure, leaves, depth),
        Some(is_leaf) => walk_asking::<H, V, L, S>(cx, value, structure, leaves, depth, is_leaf),
    }
}

fn walk<H: Host, V: Nodes<H>, L: FnMut(V), S: Structure<H>>(
    cx: H::Cx<'_>,
    value: V,
    structure: &mut S,
    leaves: &mut L,
    depth: usize,
) -> Result<(), H::Error> {
    let mut children = Children::new();
    let Some(kind) = value.open(cx, &mut children)? else {
        structure.leaf();
        leaves(value);
        return Ok(());
    };
    if depth == 0 {
        return Err(H::too_deep());
    }
    let (mark, arity) = (structure.mark(), children.len());
    structure.reserve(arity + 1);
    for child in children.drain(..) {
        if child.is_container(cx)? {
            walk::<H, V, L, S>(cx, child, structure, leaves, depth - 1)?;
        } else {
            structure.leaf();
            leaves(child);
        }
    }
    structure.close(mark, kind, arity);
    Ok(())
}

fn walk_asking<H: Host, V: Nodes<H>, L: FnMut(V), S: Structure<H>>(
    cx: H::Cx<'_>,
    value: V,
    structure: &mut S,
    leaves: &mut L,
    depth: usize,
    is_leaf: IsLeaf<'_, H, V>,
) -> Result<(), H::Error> {
    let mut children = Children::new();
    let kind = if is_leaf(&value)? { None } else { value.open(cx, &mut children)? };
    let Some(kind) = kind else {
        structure.leaf();
        leaves(value);
        return Ok(());
    };
    if depth == 0 {
        return Err(H::too_deep());
    }
    let (mark, arity) = (structure.mark(), children.len());
    for child in children.drain(..) {
        walk_asking::<H, V, L, S>(cx, child, structure, leaves, depth - 1, is_leaf)?;
    }
    structure.close(mark, kind, arity);
    Ok(())
}

/// Calls `leaf` with the path and value of each leaf, in order, and returns the structure.
pub fn flatten_with_path<H: Host, V: Nodes<H>>(
    cx: H::Cx<'_>,
    value: V,
    leaf: AtLeaf<'_, H, V>,
    is_leaf: Option<IsLeafAt<'_, H, V>>,
) -> Result<TreeDef<H>, H::Error> {
    let mut walk = PathWalk { builder: Builder::new(), path: Vec::new(), leaf, is_leaf };
    walk.visit(cx, value, H::max_depth(cx))?;
    Ok(walk.builder.finish())
}

struct PathWalk<'l, 'a, H: Host, V> {
    builder: Builder<H>,
    path: Vec<H::PathKey>,
    leaf: AtLeaf<'l, H, V>,
    is_leaf: Option<IsLeafAt<'a, H, V>>,
}

impl<H: Host, V: Nodes<H>> PathWalk<'_, '_, H, V> {
    fn visit(&mut self, cx: H::Cx<'_>, value: V, depth: usize) -> Result<(), H::Error> {
        let stop = match &mut self.is_leaf {
            Some(is_leaf) => is_leaf(&self.path, &value)?,
            None => false,
        };
        let mut children = Children::new();
        let kind = if stop { None } else { value.open_with_keys(cx, &mut children)? };
        let Some(kind) = kind else {
            self.builder.leaf();
            return (self.leaf)(&self.path, value);
        };
        if depth == 0 {
            return Err(H::too_deep());
        }
        let (mark, arity) = (self.builder.mark(), children.len());
        for (key, child) in children {
            self.path.push(key);
            self.visit(cx, child, depth - 1)?;
            self.path.pop();
        }
        self.builder.close(mark, kind, arity);
        Ok(())
    }
}

/// Builds the tree of that structure from its leaves, of which there must be just enough.
pub fn unflatten<H: Host, V: Build<H>>(
    cx: H::Cx<'_>,
    tree: &TreeDef<H>,
    leaves: impl IntoIterator<Item = V>,
) -> Result<V, H::Error> {
    let mut leaves = leaves.into_iter();
    let mut stack: SmallVec<[V; 8]> = SmallVec::with_capacity(tree.num_leaves() + 1);
    let mut used = 0;
    for (kind, arity) in tree.postorder() {
        if let KindRef::Leaf = kind {
            let Some(leaf) = leaves.next() else {
                let expected = tree.num_leaves();
                return Err(H::error(error!(Value, "Too few leaves for PyTreeDef; expected {expected}, got {used}")));
            };
            used += 1;
            stack.push(leaf);
        } else {
            let start = stack.len() - arity;
            let node = V::close(cx, kind, stack.drain(start..))?;
            stack.push(node);
        }
    }
    if leaves.next().is_some() {
        return Err(H::error(error!(Value, "Too many leaves for PyTreeDef; expected {}.", tree.num_leaves())));
    }
    stack.pop().ok_or_else(|| H::error(error!(Internal, "an empty structure")))
}

/// Hands on what `value` has at the places where `tree` has leaves; a tree that does not start like `tree` is an error.
pub fn flatten_up_to<H: Host, V: Nodes<H>, L: FnMut(V)>(
    cx: H::Cx<'_>,
    tree: &TreeDef<H>,
    value: V,
    out: &mut L,
) -> Result<(), H::Error> {
    follow::<H, V, L, false>(cx, tree.root(), value, out).map(|_| ())
}

/// Whether `value` has exactly the structure `tree`; its leaves are handed on (some of them
/// even when the answer is no).
pub fn matches<H: Host, V: Nodes<H>, L: FnMut(V)>(
    cx: H::Cx<'_>,
    tree: &TreeDef<H>,
    value: V,
    out: &mut L,
) -> Result<bool, H::Error> {
    follow::<H, V, L, true>(cx, tree.root(), value, out)
}

/// [`flatten_up_to`] or, with `EXACT`, [`matches()`], from a node on.
pub fn follow<H: Host, V: Nodes<H>, L: FnMut(V), const EXACT: bool>(
    cx: H::Cx<'_>,
    node: Cursor<'_, H>,
    value: V,
    out: &mut L,
) -> Result<bool, H::Error> {
    if node.is_leaf() {
        if EXACT && value.is_container(cx)? {
            return Ok(false);
        }
        out(value);
        return Ok(true);
    }
    let mut children = Children::new();
    let (kind, arity) = (node.kind(), node.arity());
    if !value.open_as(cx, kind, arity, &mut children)? {
        return if EXACT { Ok(false) } else { Err(value.mismatch(cx, kind, arity)) };
    }
    if node.has_only_leaves() {
        for value in children.drain(..) {
            if EXACT && value.is_container(cx)? {
                return Ok(false);
            }
            out(value);
        }
        return Ok(true);
    }
    for (child, value) in node.children().iter().zip(children.drain(..)) {
        if !follow::<H, V, L, EXACT>(cx, *child, value, out)? {
            return Ok(false);
        }
    }
    Ok(true)
}
