//! Kernel graphs as programs.
//!
//! A graph is rewritten into nodes that have kernels or steps (`rewrite.rs`, `products.rs`, `factors.rs`), its values are divided into
//! those in memory and those that kernels compute on the way (`group.rs`, `rows.rs`), and its items become steps in order
//! (`frame.rs`, `control.rs`).
//! Temporary arrays lie one behind the other until the steps are known; then those that are not needed at the same time
//! share memory (`memory.rs`).
//!
//! Read next: `group.rs`, `frame.rs`, and `library` for nodes with kernels of their own.

mod control;
mod factors;
pub mod frame;
pub mod group;
pub(crate) mod memory;
mod narrow;
pub mod products;
mod rewrite;
pub mod rows;

use crate::print::kernel::NAME;
use crate::program::{Output, Place, Program, Span, Step, Unit};
use crate::routine::Libraries;
use ferrax_base::Result;
use ferrax_cache::store::digest;
use ferrax_loops::kind::Bytes;
use ferrax_loops::passes::{fold_transpositions, hoist};
use ferrax_loops::{Graph, Type};
use frame::{Binding, Frame};
use std::sync::Arc;

/// The number of an array in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub usize);

/// An array in memory, or a place for one.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// Where it lies; in the temporary memory, before that is shared.
    pub span: Span,
}

/// What all graphs of a program share: its kernels, arrays and steps so far.
#[derive(Default)]
pub struct Planner {
    program: Program,
    libraries: Libraries,
    buffers: Vec<Buffer>,
}

/// The program of a graph. Donated parameters lend results their memory, as [`Graph::aliases`] says.
///
/// What there is no kernel for raises `NotImplementedError` with its name; nothing is computed elsewhere.
///
/// ```
/// use ferrax_base::DType;
/// use ferrax_loops::{Builder, Type, UnaryOp};
///
/// let mut b = Builder::new([Type::new(DType::F32, &[1000])]);
/// let x = b.params().next().unwrap();
/// let y = b.unary(UnaryOp::Tanh, x);
/// let program = ferrax_cuda::plan::plan(&b.finish(&[y]), &[])?;
/// assert_eq!((program.steps.len(), program.arena), (1, 0));
/// # Ok::<(), ferrax_base::Error>(())
/// ```
pub fn plan(graph: &Graph, donated: &[bool]) -> Result<Program> {
    plan_with(graph, donated, Libraries::default())
}

/// The same with calls of NVIDIA's libraries that are there.
pub fn plan_with(graph: &Graph, donated: &[bool], libraries: Libraries) -> Result<Program> {
    let mut p = Planner { libraries, ..Planner::default() };
    let aliases = graph.aliases(donated);
    p.program.params = graph.param_types().to_vec();
    let taken = |k: usize| aliases.iter().position(|a| *a == Some(k));
    p.program.results =
        graph.outputs.iter().enumerate().map(|(k, &v)| Output { ty: graph.ty(v).clone(), takes: taken(k) }).collect();
    let params: Vec<Binding> = (0..graph.params)
        .map(|i| {
            let buffer = p.place(Place::Param(i), graph.types[i].bytes());
            Binding { buffer, owned: aliases[i].is_some() }
        })
        .collect();
    let results: Vec<BufferId> = (0..graph.outputs.len())
        .map(|k| match taken(k) {
            Some(i) => params[i].buffer,
            None => p.place(Place::Result(k), graph.ty(graph.outputs[k]).bytes()),
        })
        .collect();
    let rewritten = rewrite::rewrite(&hoist(fold_transpositions(Arc::new(graph.clone()))), libraries)?;
    let mut steps = Vec::new();
    Frame::run(&mut p, &rewritten, &params, &results, &mut steps)?;
    p.program.steps = steps;
    memory::share(&mut p.program, &p.buffers);
    Ok(p.program)
}

impl Planner {
    /// An array outside the temporary memory.
    fn place(&mut self, place: Place, bytes: usize) -> BufferId {
        self.buffers.push(Buffer { span: Span { place, offset: 0, bytes } });
        BufferId(self.buffers.len() - 1)
    }

    /// An array in the temporary memory.
    fn temporary(&mut self, bytes: usize) -> BufferId {
        let offset = self.program.arena;
        // Every array has bytes of its own, so that spans tell arrays apart.
        self.program.arena += bytes.max(1).next_multiple_of(memory::ALIGNMENT);
        self.buffers.push(Buffer { span: Span { place: Place::Arena, offset, bytes } });
        BufferId(self.buffers.len() - 1)
    }

    /// An array of constant bytes.
    fn constant(&mut self, bytes: &Bytes) -> BufferId {
        self.program.constants.push(bytes.clone());
        self.place(Place::Constant(self.program.constants.len() - 1), bytes.len())
    }

    /// The libraries that are there.
    pub fn libraries(&self) -> Libraries {
        self.libraries
    }

    /// The bytes of an array.
    pub fn span(&self, buffer: BufferId) -> Span {
        self.buffers[buffer.0].span
    }

    /// The name of a kernel of this text, which is written down the first time. The text alone decides it, so that a kernel
    /// that was compiled for one program serves others.
    fn kernel(&mut self, text: &str) -> String {
        let kernel = format!("fx_k{:016x}", digest(text.as_bytes()));
        if self.program.units.iter().all(|unit| unit.kernel != kernel) {
            self.program.units.push(Unit { text: text.replace(NAME, &kernel), kernel: kernel.clone() });
        }
        kernel
    }
}

/// The number of bytes of a type.
fn bytes(ty: &Type) -> usize {
    ty.bytes()
}

/// All steps, those inside loops and branches too.
pub fn walk(steps: &[Step], see: &mut dyn FnMut(&Step)) {
    for step in steps {
        see(step);
        match step {
            Step::While { cond, body, .. } => {
                walk(cond, see);
                walk(body, see);
            }
            Step::Repeat { body, .. } => walk(body, see),
            Step::Switch { branches, .. } => branches.iter().for_each(|b| walk(b, see)),
            Step::Launch(_) | Step::Copy { .. } | Step::Fill { .. } | Step::Call { .. } => {}
        }
    }
}

/// A graph inside of a node in nodes that have kernels or expressions.
pub fn simpler(g: &Graph) -> Result<Graph> {
    rewrite::rewrite(g, Libraries::default())
}
