//! The printed form of a graph: one line a node.

use crate::graph::{Graph, Type};
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

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "graph(")?;
        for (i, t) in self.param_types().iter().enumerate() {
            write!(f, "{}%{i}: {t}", if i > 0 { ", " } else { "" })?;
        }
        writeln!(f, ") {{")?;
        for node in &self.nodes {
            write!(f, "  ")?;
            for (i, v) in node.outputs().enumerate() {
                write!(f, "{}%{}: {}", if i > 0 { ", " } else { "" }, v.0, self.ty(v))?;
            }
            write!(f, " = {:?}", node.kind)?;
            for v in &node.inputs {
                write!(f, " %{}", v.0)?;
            }
            writeln!(f)?;
        }
        write!(f, "  return")?;
        for v in &self.outputs {
            write!(f, " %{}", v.0)?;
        }
        write!(f, "\n}}")
    }
}
