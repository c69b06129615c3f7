//! Structures from nodes in postorder that come from outside: files, other processes.
//!
//! Each node is looked at as it comes, takes time for itself only, and an error ends the work: what a few bytes can make
//! is bounded, in nodes and in depth. Read next: `proto.rs`, one way in which structures are written down.

use ferrax_base::{Result, bail};

use crate::treedef::{Builder, Mark};
use crate::{Host, Kind, TreeDef};

/// Makes a [`TreeDef`] of nodes that may be anything.
pub struct Assembler<H: Host> {
    builder: Builder<H>,
    /// Where each tree that has no parent yet starts, and its depth.
    trees: Vec<(Mark, usize)>,
    nodes: usize,
    max_nodes: usize,
    max_depth: usize,
}

impl<H: Host> Assembler<H> {
    /// For structures of at most so many nodes, nested so deep.
    pub fn new(max_nodes: usize, max_depth: usize) -> Self {
        Assembler { builder: Builder::new(), trees: Vec::new(), nodes: 0, max_nodes, max_depth }
    }

    /// Adds a node whose children are the last `arity` trees; `None` is a leaf.
    pub fn add(&mut self, kind: Option<Kind<H>>, arity: usize) -> Result<()> {
        self.nodes += 1;
        if self.nodes > self.max_nodes {
            bail!(Value, "Malformed pytree: more than {} nodes", self.max_nodes);
        }
        let Some(first) = self.trees.len().checked_sub(arity) else {
            bail!(Value, "Malformed pytree: a node of {arity} children after {} trees", self.trees.len());
        };
        let fits = match &kind {
            None | Some(Kind::None) => arity == 0,
            Some(Kind::Dict(keys)) => keys.len() == arity,
            Some(_) => true,
        };
        if !fits {
            bail!(Value, "Malformed pytree: a node that cannot have {arity} children");
        }
        let depth = 1 + self.trees[first..].iter().map(|(_, depth)| *depth).max().unwrap_or(0);
        if depth > self.max_depth {
            bail!(Value, "Malformed pytree: nodes nested more than {} deep", self.max_depth);
        }
        let mark = self.trees.get(first).map_or_else(|| self.builder.mark(), |(mark, _)| *mark);
        match kind {
            None => self.builder.leaf(),
            Some(kind) => self.builder.close(mark, kind, arity),
        }
        self.trees.truncate(first);
        self.trees.push((mark, depth));
        Ok(())
    }

    /// The structure, if the nodes were those of one tree.
    pub fn finish(self) -> Option<TreeDef<H>> {
        (self.trees.len() == 1).then(|| self.builder.finish())
    }
}
