//! Running: programs on buffers, and single operations with no graph.
//!
//! Plans are not known here. Read next: `frame.rs` for the loop over steps, `control.rs` for loops and branches,
//! `leaf.rs` for nodes that are kernels of their own, `eager.rs` for single operations.

mod control;
pub mod eager;
mod frame;
mod leaf;

use crate::program::{OutputPlace, Program};
use ferrax_base::{Arg, Buffer, Memory, Result, bail};
use frame::Frame;
use smallvec::SmallVec;

/// Result buffers of a run, row by row.
pub type Outputs = SmallVec<[Buffer; 1]>;

impl Program {
    /// Runs on one buffer per parameter. Donated buffers that became outputs are left as [`Arg::Taken`].
    pub fn run(&self, args: &mut [Arg<'_>]) -> Result<Outputs> {
        let mut frame = Frame::empty();
        frame.prepare(self)?;
        self.run_in(&mut frame, args)
    }

    fn run_in(&self, frame: &mut Frame, args: &mut [Arg<'_>]) -> Result<Outputs> {
        let graph = &*self.graph;
        if args.len() != graph.params {
            bail!(Internal, "a program of {} parameters was run with {} arguments", graph.params, args.len());
        }
        let mut ins: SmallVec<[*mut u8; 16]> = SmallVec::with_capacity(args.len());
        let mut private: SmallVec<[(u32, Buffer); 2]> = SmallVec::new();
        let takes = self.outputs.iter().any(|o| matches!(o, OutputPlace::Param(_)));
        for (j, arg) in args.iter_mut().enumerate() {
            let (bytes, buffer) = (self.bytes.0[j], arg.host()?);
            if buffer.len() < bytes {
                bail!(Internal, "argument {j} has {} bytes instead of {bytes}", buffer.len());
            }
            let moved = self.written[j] || (takes && self.outputs.contains(&OutputPlace::Param(j as u32)));
            if !moved {
                ins.push(buffer.as_ptr().cast_mut());
                continue;
            }
            let mut buffer = match std::mem::replace(arg, Arg::Taken) {
                Arg::Owned(Memory::Host(b)) if b.is_owned() && b.len() == bytes => b,
                other => {
                    let copy = Buffer::from_bytes(&other.host()?.bytes()[..bytes])?;
                    *arg = other;
                    copy
                }
            };
            ins.push(buffer.as_mut_ptr());
            private.push((j as u32, buffer));
        }
        let mut outs: SmallVec<[*mut u8; 8]> = SmallVec::with_capacity(graph.outputs.len());
        let mut results: Outputs = SmallVec::with_capacity(graph.outputs.len());
        for (k, place) in self.outputs.iter().enumerate() {
            let mut buffer = match place {
                OutputPlace::Given => Buffer::allocate(self.bytes.1[k])?,
                OutputPlace::Param(j) => {
                    let at = private.iter().position(|p| p.0 == *j);
                    let Some(at) = at else { bail!(Internal, "parameter {j} was planned for two outputs") };
                    private.swap_remove(at).1
                }
            };
            outs.push(buffer.as_mut_ptr());
            results.push(buffer);
        }
        // SAFETY: every argument was checked to hold its parameter, results were allocated for their types, and
        // parameters that are written are private.
        unsafe { frame.exec(self, &ins, &outs)? };
        Ok(results)
    }
}
