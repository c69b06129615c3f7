//! The printed form of a graph: one line a node.

use crate::graph::{Graph, Node, Type};
use std::fmt;

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.dtype.short_name())?;
        for (i, d) in self.shape.iter().enumerate() {
            write!(f, "{}{d}", if i > 0 { "," } else { "" })?;
        }
        f.write_str("]")
    }
}

/// A node as its graph prints it.
struct NodeText<'a>(&'a Graph, &'a Node);

impl fmt::Display for NodeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NodeText(graph, node) = self;
        for (i, v) in node.outputs().enumerate() {
            write!(f, "{}%{}: {}", if i > 0 { ", " } else { "" }, v.0, graph.ty(v))?;
        }
        write!(f, " = {:?}", node.kind)?;
        node.inputs.iter().try_for_each(|v| write!(f, " %{}", v.0))
    }
}

impl Graph {
    /// A node's line of the printed form.
    pub fn node_text(&self, node: usize) -> String {
        NodeText(self, &self.nodes[node]).to_string()
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "graph(")?;
        for (i, t) in self.param_types().iter().enumerate() {
            write!(f, "{}%{i}: {t}", if i > 0 { ", " } else { "" })?;
        }
        writeln!(f, ") {{")?;
        for node in &self.nodes {
            writeln!(f, "  {}", NodeText(self, node))?;
        }
        write!(f, "  return")?;
        for v in &self.outputs {
            write!(f, " %{}", v.0)?;
        }
        write!(f, "\n}}")
    }
}
