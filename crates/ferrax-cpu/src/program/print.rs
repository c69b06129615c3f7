//! The printed form of programs: what each step computes.

use super::{Program, Step};
use crate::fused::NONE;
use ferrax_loops::{Graph, Kind, Node};
use std::sync::Arc;

impl Program {
    /// The steps as text, one a line: kernels with what they compute, and calls.
    pub fn kernels(&self) -> String {
        let mut out = String::new();
        self.describe(&self.steps, &mut out, 0);
        out
    }

    fn describe(&self, steps: &[Step], out: &mut String, depth: usize) {
        use std::fmt::Write;
        let g = &*self.graph;
        let mut moved = None;
        for step in steps {
            let mut text = String::new();
            let mut subs: &[Arc<Program>] = &[];
            match step {
                Step::Group(group) => {
                    let kernels = group.ops.1 - group.ops.0;
                    text = format!("kernel[{}]: {kernels} operations block by block", group.n);
                }
                // Writing to a string cannot fail.
                Step::Region(index) => drop(self.regions.describe(g, *index, &mut text)),
                Step::Tiles(index) => drop(self.tiles[*index as usize].describe(g, &mut text)),
                Step::Accumulate(index) => {
                    let node = g.node_text(self.sums[*index as usize].dot as usize);
                    text = format!("add to a matrix: {node}");
                }
                Step::Product { node, after, .. } => {
                    text = format!("call {}\n", g.node_text(*node as usize));
                    if *after != NONE {
                        text.push_str("and on its rows ");
                        let _ = self.regions.describe(g, *after, &mut text);
                    }
                }
                Step::Registers { node, index, .. } => {
                    // Writing to a string cannot fail.
                    let node = &g.nodes[*node as usize];
                    let _ = self.register_loops[*index as usize].describe(g, node, &mut text);
                }
                Step::Move { node, .. } | Step::View { node, .. } if moved == Some(*node) => continue,
                Step::Move { node, .. } | Step::View { node, .. } => {
                    // Further pieces of the same result follow.
                    moved = Some(*node);
                    text = format!("call {}", g.node_text(*node as usize));
                }
                Step::Leaf { node, .. } => text = format!("call {}", g.node_text(*node as usize)),
                Step::Control { node, sub, .. } => {
                    let count;
                    (text, count) = control_text(g, &g.nodes[*node as usize]);
                    subs = &self.subs[*sub as usize..*sub as usize + count];
                }
                Step::Alloc { .. } | Step::Free { .. } | Step::Dead { .. } => continue,
                Step::Together { steps, .. } => {
                    let _ = writeln!(out, "{:depth$}at the same time:", "");
                    self.describe(steps, out, depth + 4);
                    continue;
                }
                Step::Copy { .. } | Step::Splat { .. } | Step::Rows { .. } | Step::Repeat { .. } => {
                    text = step.copies();
                }
            }
            for line in text.lines() {
                let _ = writeln!(out, "{:depth$}{line}", "");
            }
            for (k, sub) in subs.iter().enumerate() {
                let _ = writeln!(out, "{:depth$}  part {k}:", "");
                sub.describe(&sub.steps, out, depth + 4);
            }
        }
    }
}

impl Step {
    /// What a step that only copies does.
    fn copies(&self) -> String {
        match self {
            Step::Copy { bytes, .. } => format!("copy {bytes} bytes"),
            Step::Splat { n, .. } => format!("fill {n} elements"),
            Step::Rows { n, inner, .. } => format!("repeat each {inner} times: {n} elements"),
            Step::Repeat { n, len, .. } => format!("repeat {len} elements: {n} elements"),
            _ => String::new(),
        }
    }
}

/// A node with subgraphs as text, and their number.
fn control_text(g: &Graph, node: &Node) -> (String, usize) {
    let (name, count) = match &node.kind {
        Kind::While { .. } => ("while", 2),
        Kind::Scan { .. } => ("scan", 1),
        Kind::Switch(branches) => ("switch", branches.len()),
        Kind::Call(_) => ("call", 1),
        _ => ("reduce", 1),
    };
    let outs: Vec<String> = node.outputs().map(|v| format!("%{}: {}", v.0, g.ty(v))).collect();
    let ins: Vec<String> = node.inputs.iter().map(|v| format!("%{}", v.0)).collect();
    (format!("{} = {name} {}", outs.join(", "), ins.join(" ")), count)
}
