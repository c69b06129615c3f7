//! Nodes whose kernels need more than shapes: what they ask of dimension numbers is found once, when a program is planned.
//!
//! A step of a loop gathers a few elements in less time than it takes to find strides, axes that go together and bounds. Read next:
//! `gather.rs`, `scatter.rs`.

use crate::elementwise::kernel::{In, Out};
use crate::library::{gather, movement, scatter};
use ferrax_base::{Result, bail};
use ferrax_loops::{Graph, Kind, Node};

/// What the planner knows of a node whose kernel asks for more than shapes.
pub enum Known {
    Gather(gather::Taking),
    Scatter(scatter::Putting),
}

impl Known {
    /// What is known of a node; nothing of most.
    pub fn of(g: &Graph, node: &Node) -> Option<Known> {
        let ty = |i: usize| g.ty(node.inputs[i]);
        let has_elements = || node.inputs.iter().copied().chain([node.first]).all(|v| g.ty(v).size() > 0);
        match &node.kind {
            Kind::Gather(gathering) if has_elements() => {
                Some(Known::Gather(gather::Taking::of(gathering, ty(0), ty(1), g.ty(node.first))))
            }
            Kind::Scatter { dims, mode, .. } if has_elements() => {
                Some(Known::Scatter(scatter::Putting::of(dims, *mode, ty(0), ty(1), ty(2))))
            }
            _ => None,
        }
    }

    /// Computes the node.
    pub fn run(&self, kind: &Kind, ins: &[In<'_>], out: &mut Out<'_>) -> Result<()> {
        match (self, kind) {
            (Known::Gather(taking), Kind::Gather(g)) => taking.run(g, ins[0], ins[1], out),
            (Known::Scatter(putting), Kind::Scatter { op, mode, sorted, unique, .. }) => {
                movement::copy_unless_same(ins[0], out);
                let hints = scatter::Hints { sorted: *sorted, unique: *unique };
                putting.run(*op, (*mode, hints), ins[1], ins[2], out)
            }
            (_, other) => bail!(Internal, "{other:?} is not what was planned"),
        }
    }
}
