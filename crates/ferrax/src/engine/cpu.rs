//! The embedded CPU engine behind the seam: its memory is the host's, and its devices are names of one engine.

use super::{Compiled, Engine, Source, Stats};
use ferrax_base::{Arg, Buffer, Memory, Outputs, Result, buffer};
use ferrax_cpu::Program;
use ferrax_loops::Type;
use smallvec::SmallVec;

/// The engine.
pub(super) struct Embedded;

/// A compiled program.
struct Planned {
    program: Program,
    reusable: SmallVec<[bool; 8]>,
}

impl Engine for Embedded {
    fn platform(&self) -> &'static str {
        "cpu"
    }

    fn devices(&self) -> Result<usize> {
        Ok(crate::device::cpu_count())
    }

    fn compile(&self, source: &Source<'_>) -> Result<Box<dyn Compiled>> {
        source.without_options()?;
        let graph = source.graph.clone();
        let program = match source.donated {
            [] => Program::compile(graph)?,
            donated => Program::compile_donating(graph, donated)?,
        };
        let reusable = program.donations();
        Ok(Box::new(Planned { program, reusable }))
    }

    fn upload(&self, elements: &Buffer, _: &Type, _: usize) -> Result<Memory> {
        Buffer::from_bytes(elements.bytes()).map(Memory::Host)
    }

    fn stats(&self, _: usize) -> Stats {
        let buffer::Stats { live, peak, cached } = buffer::stats();
        Stats { in_use: live, peak, kept: cached, limit: None }
    }
}

impl Compiled for Planned {
    fn reusable(&self) -> &[bool] {
        &self.reusable
    }

    #[inline]
    fn run(&self, args: &mut [Arg<'_>], _: usize) -> Result<Outputs> {
        Ok(self.program.run(args)?.into_iter().map(Memory::Host).collect())
    }

    fn text(&self) -> Result<String> {
        Ok(self.program.kernels())
    }

    fn temporary_bytes(&self) -> Option<usize> {
        Some(self.program.temporary_bytes())
    }
}
