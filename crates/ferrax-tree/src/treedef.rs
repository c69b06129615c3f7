//! [`TreeDef`]: the structure of a tree, without its leaves.
//!
//! Nodes lie in postorder, so that unflattening is one pass with a stack, a subtree is a contiguous range, and two
//! structures are compared as two arrays. Keys, classes and auxiliary data lie in a table beside them. The hash is
//! computed once.

use std::fmt::Write;
use std::hash::Hasher;
use std::sync::{Arc, OnceLock};

use ferrax_base::error;
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use crate::{Host, Kind, KindRef};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Tag {
    Leaf,
    None,
    Tuple,
    List,
    Dict,
    Named,
    Custom,
}

/// One node; `leaves` and `nodes` count the subtree that ends here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    tag: Tag,
    arity: u32,
    leaves: u32,
    nodes: u32,
    /// Index into the data table, for the kinds that have data.
    data: u32,
}

const LEAF: Node = Node { tag: Tag::Leaf, arity: 0, leaves: 1, nodes: 1, data: 0 };

enum Data<H: Host> {
    Keys(Box<[H::Key]>),
    Class(H::Class),
    Custom(H::Custom, H::Aux),
}

impl<H: Host> Clone for Data<H> {
    fn clone(&self) -> Self {
        match self {
            Data::Keys(keys) => Data::Keys(keys.clone()),
            Data::Class(class) => Data::Class(class.clone()),
            Data::Custom(custom, aux) => Data::Custom(custom.clone(), aux.clone()),
        }
    }
}

struct Arena<H: Host> {
    nodes: Vec<Node>,
    data: Vec<Data<H>>,
    hash: OnceLock<u64>,
}

/// The structure of a tree.
pub struct TreeDef<H: Host>(Arc<Arena<H>>);

impl<H: Host> Clone for TreeDef<H> {
    #[inline]
    fn clone(&self) -> Self {
        TreeDef(Arc::clone(&self.0))
    }
}

impl<H: Host> std::fmt::Debug for TreeDef<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TreeDef({} leaves, {} nodes)", self.num_leaves(), self.num_nodes())
    }
}

/// Where a container starts in a [`Builder`].
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    leaves: u32,
    nodes: u32,
}

/// Makes a [`TreeDef`] node by node, children before parents.
pub struct Builder<H: Host> {
    nodes: Vec<Node>,
    data: Vec<Data<H>>,
    leaves: u32,
}

impl<H: Host> Default for Builder<H> {
    fn default() -> Self {
        Builder { nodes: Vec::with_capacity(8), data: Vec::new(), leaves: 0 }
    }
}

impl<H: Host> Builder<H> {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Room for that many more nodes.
    pub fn reserve(&mut self, nodes: usize) {
        self.nodes.reserve(nodes);
    }

    /// Number of leaves so far.
    pub fn num_leaves(&self) -> usize {
        self.leaves as usize
    }

    /// Adds a leaf.
    #[inline]
    pub fn leaf(&mut self) {
        self.nodes.push(LEAF);
        self.leaves += 1;
    }

    /// Call before the children of a container; the mark goes to [`Builder::close`].
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark { leaves: self.leaves, nodes: self.nodes.len() as u32 }
    }

    /// Ends a container of the `arity` nodes that came since the mark.
    pub fn close(&mut self, mark: Mark, kind: Kind<H>, arity: usize) {
        let (tag, data) = match kind {
            Kind::None => (Tag::None, None),
            Kind::Tuple => (Tag::Tuple, None),
            Kind::List => (Tag::List, None),
            Kind::Dict(keys) => (Tag::Dict, Some(Data::Keys(keys))),
            Kind::Named(class) => (Tag::Named, Some(Data::Class(class))),
            Kind::Custom(custom, aux) => (Tag::Custom, Some(Data::Custom(custom, aux))),
        };
        let index = if data.is_some() { self.data.len() as u32 } else { 0 };
        self.data.extend(data);
        self.nodes.push(Node {
            tag,
            arity: arity as u32,
            leaves: self.leaves - mark.leaves,
            nodes: self.nodes.len() as u32 - mark.nodes + 1,
            data: index,
        });
    }

    /// Adds a whole structure as one node.
    pub fn append(&mut self, tree: &TreeDef<H>) {
        self.append_range(tree, 0, tree.0.nodes.len());
    }

    fn append_range(&mut self, tree: &TreeDef<H>, from: usize, to: usize) {
        for node in &tree.0.nodes[from..to] {
            let mut node = *node;
            if matches!(node.tag, Tag::Dict | Tag::Named | Tag::Custom) {
                self.data.push(tree.0.data[node.data as usize].clone());
                node.data = self.data.len() as u32 - 1;
            }
            self.leaves += u32::from(node.tag == Tag::Leaf);
            self.nodes.push(node);
        }
    }

    /// The structure, which must be one tree by now.
    pub fn finish(self) -> TreeDef<H> {
        debug_assert_eq!(self.nodes.last().map(|n| n.nodes as usize), Some(self.nodes.len()));
        TreeDef(Arc::new(Arena { nodes: self.nodes, data: self.data, hash: OnceLock::new() }))
    }
}

impl<H: Host> TreeDef<H> {
    /// Whether no clone of this structure is around.
    pub fn is_unique(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// A single leaf.
    pub fn leaf() -> Self {
        let mut builder = Builder::new();
        builder.leaf();
        builder.finish()
    }

    /// A container of the given structures; `None` for a leaf.
    pub fn from_children(kind: Option<Kind<H>>, children: &[TreeDef<H>]) -> Self {
        let Some(kind) = kind else { return Self::leaf() };
        let mut builder = Builder::new();
        let mark = builder.mark();
        for child in children {
            builder.append(child);
        }
        builder.close(mark, kind, children.len());
        builder.finish()
    }

    /// A tuple of the given structures.
    pub fn tuple(children: &[TreeDef<H>]) -> Self {
        Self::from_children(Some(Kind::Tuple), children)
    }

    /// Number of leaves.
    #[inline]
    pub fn num_leaves(&self) -> usize {
        self.root_node().leaves as usize
    }

    /// Number of nodes, leaves included.
    #[inline]
    pub fn num_nodes(&self) -> usize {
        self.0.nodes.len()
    }

    /// Number of the root's children.
    #[inline]
    pub fn arity(&self) -> usize {
        self.root_node().arity as usize
    }

    /// Whether the structure is a single leaf.
    #[inline]
    pub fn is_leaf(&self) -> bool {
        self.root_node().tag == Tag::Leaf
    }

    /// The root's kind and data.
    pub fn kind(&self) -> KindRef<'_, H> {
        self.root().kind()
    }

    /// The root, for walking down.
    pub fn root(&self) -> Cursor<'_, H> {
        Cursor { tree: self, end: self.0.nodes.len() - 1 }
    }

    fn root_node(&self) -> &Node {
        &self.0.nodes[self.0.nodes.len() - 1]
    }

    /// The nodes in postorder, as (kind, arity).
    pub fn postorder(&self) -> impl Iterator<Item = (KindRef<'_, H>, usize)> {
        self.0.nodes.iter().map(|n| (self.kind_of(n), n.arity as usize))
    }

    fn kind_of(&self, node: &Node) -> KindRef<'_, H> {
        match node.tag {
            Tag::Leaf => KindRef::Leaf,
            Tag::None => KindRef::None,
            Tag::Tuple => KindRef::Tuple,
            Tag::List => KindRef::List,
            Tag::Dict | Tag::Named | Tag::Custom => match &self.0.data[node.data as usize] {
                Data::Keys(keys) => KindRef::Dict(keys),
                Data::Class(class) => KindRef::Named(class),
                Data::Custom(custom, aux) => KindRef::Custom(custom, aux),
            },
        }
    }

    /// The structures of the root's children.
    pub fn children(&self) -> Vec<TreeDef<H>> {
        self.root().children().iter().map(Cursor::subtree).collect()
    }

    /// The structure with `inner` in place of each leaf.
    #[must_use]
    pub fn compose(&self, inner: &TreeDef<H>) -> Self {
        let mut builder = Builder::new();
        // where the subtree that ends at each open node began, in the new arena
        let mut starts: SmallVec<[Mark; 16]> = SmallVec::new();
        for (kind, arity) in self.postorder() {
            let Some(kind) = kind.to_kind() else {
                starts.push(builder.mark());
                builder.append(inner);
                continue;
            };
            let first = starts.len() - arity;
            let mark = starts.get(first).copied().unwrap_or_else(|| builder.mark());
            starts.truncate(first);
            starts.push(mark);
            builder.close(mark, kind, arity);
        }
        builder.finish()
    }

    /// Whether two structures are the same, keys, classes and auxiliary data included.
    pub fn equals(&self, cx: H::Cx<'_>, other: &Self) -> Result<bool, H::Error> {
        let (a, b) = (&*self.0, &*other.0);
        if Arc::ptr_eq(&self.0, &other.0) {
            return Ok(true);
        }
        if a.nodes != b.nodes || a.data.len() != b.data.len() {
            return Ok(false);
        }
        if let (Some(x), Some(y)) = (a.hash.get(), b.hash.get())
            && x != y
        {
            return Ok(false);
        }
        for node in &a.nodes {
            if matches!(node.tag, Tag::Dict | Tag::Named | Tag::Custom)
                && !self.kind_of(node).equals(cx, other.kind_of(node))?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A hash that equal structures share; computed once.
    pub fn hash(&self, cx: H::Cx<'_>) -> Result<u64, H::Error> {
        if let Some(hash) = self.0.hash.get() {
            return Ok(*hash);
        }
        let mut state = FxHasher::default();
        for node in &self.0.nodes {
            state.write_u64(u64::from(node.arity) << 8 | node.tag as u64);
        }
        for data in &self.0.data {
            match data {
                Data::Keys(keys) => {
                    for key in keys {
                        H::hash_key(cx, key, &mut state)?;
                    }
                }
                Data::Class(class) => H::hash_class(class, &mut state),
                Data::Custom(custom, aux) => {
                    H::hash_custom(custom, &mut state);
                    H::hash_aux(cx, aux, &mut state)?;
                }
            }
        }
        let hash = state.finish();
        Ok(*self.0.hash.get_or_init(|| hash))
    }

    /// The structure as text, `{'a': *, 'b': (*, *)}`.
    pub fn text(&self, cx: H::Cx<'_>) -> Result<String, H::Error> {
        let mut stack: Vec<String> = Vec::new();
        for (kind, arity) in self.postorder() {
            let parts = stack.split_off(stack.len() - arity);
            stack.push(match kind {
                KindRef::Leaf => "*".to_owned(),
                KindRef::None => "None".to_owned(),
                KindRef::Tuple if arity == 1 => format!("({},)", parts[0]),
                KindRef::Tuple => format!("({})", parts.join(", ")),
                KindRef::List => format!("[{}]", parts.join(", ")),
                KindRef::Dict(keys) => {
                    let mut items = Vec::with_capacity(arity);
                    for (key, part) in keys.iter().zip(&parts) {
                        items.push(format!("{}: {part}", H::key_text(cx, key, usize::MAX)?));
                    }
                    format!("{{{}}}", items.join(", "))
                }
                KindRef::Named(class) => {
                    format!("CustomNode({}, [{}])", H::class_text(cx, class)?, parts.join(", "))
                }
                KindRef::Custom(custom, aux) => {
                    format!("CustomNode({}, [{}])", H::custom_text(cx, custom, aux, usize::MAX)?, parts.join(", "))
                }
            });
        }
        stack.pop().ok_or_else(|| H::error(error!(Internal, "an empty structure")))
    }

    /// As [`TreeDef::text`], in about `limit` bytes at most: children that do not fit are counted, `[*, *, … 98 more]`.
    pub fn short_text(&self, cx: H::Cx<'_>, limit: usize) -> Result<String, H::Error> {
        let mut out = String::new();
        self.root().write(cx, limit, &mut out)?;
        Ok(out)
    }

    /// The path to a leaf, by its number in the order of leaves.
    pub fn path_of_leaf(&self, cx: H::Cx<'_>, leaf: usize) -> Result<Vec<H::PathKey>, H::Error> {
        let count = self.num_leaves();
        if leaf >= count {
            return Err(H::error(error!(Index, "leaf {leaf} of a tree with {count} leaves")));
        }
        let (mut path, mut before, mut node) = (Vec::new(), 0, self.root());
        while !node.is_leaf() {
            for (i, child) in node.children().into_iter().enumerate() {
                if leaf < before + child.num_leaves() {
                    path.push(H::child_key(cx, node.kind(), i)?);
                    node = child;
                    break;
                }
                before += child.num_leaves();
            }
        }
        Ok(path)
    }
}

/// A node of a structure, for walking from the root down.
pub struct Cursor<'a, H: Host> {
    tree: &'a TreeDef<H>,
    end: usize,
}

impl<H: Host> Clone for Cursor<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H: Host> Copy for Cursor<'_, H> {}

impl<'a, H: Host> Cursor<'a, H> {
    fn node(&self) -> &'a Node {
        &self.tree.0.nodes[self.end]
    }

    /// Kind and data.
    pub fn kind(&self) -> KindRef<'a, H> {
        self.tree.kind_of(self.node())
    }

    /// Whether this is a leaf.
    #[inline]
    pub fn is_leaf(&self) -> bool {
        self.node().tag == Tag::Leaf
    }

    /// Number of children.
    pub fn arity(&self) -> usize {
        self.node().arity as usize
    }

    /// Number of leaves below.
    pub fn num_leaves(&self) -> usize {
        self.node().leaves as usize
    }

    /// Whether every child is a leaf.
    #[inline]
    pub fn has_only_leaves(&self) -> bool {
        self.node().nodes == self.node().arity + 1 && self.node().leaves == self.node().arity
    }

    /// The children, first to last.
    pub fn children(&self) -> SmallVec<[Cursor<'a, H>; 8]> {
        let arity = self.arity();
        let mut out: SmallVec<[Cursor<'a, H>; 8]> = SmallVec::with_capacity(arity);
        let mut end = self.end;
        for _ in 0..arity {
            end -= 1;
            out.push(Cursor { tree: self.tree, end });
            end = end + 1 - self.tree.0.nodes[end].nodes as usize;
        }
        out.reverse();
        out
    }

    /// Writes the structure below until `out` has about `limit` bytes.
    fn write(&self, cx: H::Cx<'_>, limit: usize, out: &mut String) -> Result<(), H::Error> {
        let room = limit.saturating_sub(out.len());
        let end = match self.kind() {
            KindRef::Leaf => {
                out.push('*');
                return Ok(());
            }
            KindRef::None => {
                out.push_str("None");
                return Ok(());
            }
            KindRef::Tuple => {
                out.push('(');
                if self.arity() == 1 { ",)" } else { ")" }
            }
            KindRef::List => {
                out.push('[');
                "]"
            }
            KindRef::Dict(_) => {
                out.push('{');
                "}"
            }
            KindRef::Named(class) => {
                write!(out, "CustomNode({}, [", H::class_text(cx, class)?).ok();
                "])"
            }
            KindRef::Custom(custom, aux) => {
                write!(out, "CustomNode({}, [", H::custom_text(cx, custom, aux, room)?).ok();
                "])"
            }
        };
        let children = self.children();
        for (i, child) in children.iter().enumerate() {
            let separator = if i > 0 { ", " } else { "" };
            if out.len() >= limit {
                write!(out, "{separator}… {} more", children.len() - i).ok();
                break;
            }
            out.push_str(separator);
            if let KindRef::Dict(keys) = self.kind() {
                const SHORT: usize = 24;
                let room = limit.saturating_sub(out.len()).max(SHORT);
                write!(out, "{}: ", H::key_text(cx, &keys[i], room)?).ok();
            }
            child.write(cx, limit, out)?;
        }
        out.push_str(end);
        Ok(())
    }

    /// A structure of its own for the part below.
    pub fn subtree(&self) -> TreeDef<H> {
        let mut builder = Builder::new();
        builder.append_range(self.tree, self.end + 1 - self.node().nodes as usize, self.end + 1);
        builder.finish()
    }
}
