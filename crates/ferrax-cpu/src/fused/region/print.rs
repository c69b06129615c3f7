//! The printed form of regions.

use super::Regions;
use ferrax_loops::Graph;
use std::fmt::{self, Write};

impl Regions {
    /// What a region computes, one line a node under its phases.
    pub(crate) fn describe(&self, g: &Graph, index: u32, out: &mut String) -> fmt::Result {
        let r = &self.list[index as usize];
        write!(out, "kernel[{} rows of {}]", r.n / r.inner, r.inner)?;
        if r.block < r.n / r.inner {
            write!(out, " in blocks of {}", r.block)?;
        }
        writeln!(out, ":")?;
        let mut phase = None;
        for note in &self.notes[r.notes.0 as usize..r.notes.1 as usize] {
            if phase != Some(note.phase) && r.phases.1 - r.phases.0 > 1 {
                let p = &self.phases[(r.phases.0 + note.phase) as usize];
                writeln!(out, "    {}:", if p.over_rows { "for each row" } else { "for each element" })?;
            }
            phase = Some(note.phase);
            writeln!(out, "      {}", g.node_text(note.node as usize))?;
        }
        Ok(())
    }
}
