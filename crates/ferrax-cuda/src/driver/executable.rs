//! A program on a GPU: its machine code and constants there, its steps checked and resolved.
//!
//! A plan comes from elsewhere, and a wrong one would write where other arrays are: every span is checked against its place before
//! anything runs. What is in a kernel is the planner's. Read next: `run.rs`.

use super::cubins::Cubins;
use super::device::Device;
use super::graph::Segment;
use super::libraries::{Call, Libraries};
use super::memory::{Block, Use};
use super::module::{Function, Module, Shape};
use crate::plan::memory::ALIGNMENT;
use crate::program::{Argument, Launch, Output, Place, Program, Span, Step, Unit};
use crate::routine::Routine;
use ferrax_base::{Error, Result, bail, error};
use std::collections::HashMap;
use std::sync::Arc;

/// The most threads of a block that any GPU runs.
const THREADS: u64 = 1024;

/// A program that a GPU can run.
pub struct Executable {
    pub(super) device: Arc<Device>,
    /// Bytes of the parameters.
    pub(super) params: Vec<usize>,
    /// Bytes of the results, each with the parameter whose memory it takes.
    pub(super) results: Vec<(usize, Option<usize>)>,
    pub(super) constants: Vec<Arc<Block>>,
    pub(super) arena: usize,
    /// Where in the temporary memory calls work.
    pub(super) work: usize,
    code: Code,
    reusable: Vec<bool>,
    waits: bool,
}

/// Steps and the machine code that they start, in the order in which they go.
struct Code {
    steps: Vec<Node>,
    _modules: Vec<Arc<Module>>,
}

/// Steps as they are run.
pub(super) enum Node {
    Straight(Segment),
    Call { call: Box<dyn Call>, reads: Vec<Span>, writes: Vec<Span> },
    While { cond: Vec<Node>, flag: Span, body: Vec<Node> },
    Repeat { count: u64, counter: Span, body: Vec<Node> },
    Switch { index: Span, branches: Vec<Vec<Node>> },
}

/// A step that the GPU does by itself.
pub(super) enum Op {
    Launch { shape: Shape, args: Box<[Argument]> },
    Copy { from: Span, to: Span },
    Fill { to: Span, byte: u8 },
}

impl Executable {
    /// Compiles a program for a GPU and uploads its constants; `name` is what messages call it.
    pub fn load(
        device: &Arc<Device>,
        cubins: &Cubins,
        libraries: &Libraries,
        program: &Program,
        name: &str,
    ) -> Result<Executable> {
        device.sweep();
        let prepare = |routine: &Routine| libraries.prepare(device.context(), routine);
        let plan = Plan { program, name, prepare: &prepare };
        let reusable = plan.reusable()?;
        let shared = plan.kernels()?;
        let units: Vec<&Unit> = program.units.iter().filter(|unit| shared.contains_key(unit.kernel.as_str())).collect();
        let modules = cubins.modules(device.context(), &units, name)?;
        let mut functions = HashMap::new();
        for (unit, module) in units.iter().zip(&modules) {
            let kernel = unit.kernel.as_str();
            functions.insert(kernel, module.function(kernel, shared[kernel])?);
        }
        let steps = plan.nodes(&program.steps, &functions)?;
        // calls come one after another, and work in the same memory behind all arrays
        let work = program.arena.next_multiple_of(ALIGNMENT);
        let arena = if worked_in(&steps) > 0 { work + worked_in(&steps) } else { program.arena };
        let here = device.context().enter()?;
        let place = |bytes: &ferrax_loops::kind::Bytes| Ok(device.place(&here, bytes, Use::Constant)?.0);
        Ok(Executable {
            device: device.clone(),
            params: program.params.iter().map(ferrax_loops::Type::bytes).collect(),
            results: program.results.iter().map(|r| (r.ty.bytes(), r.takes)).collect(),
            constants: program.constants.iter().map(place).collect::<Result<_>>()?,
            arena,
            work,
            code: Code { steps, _modules: modules },
            reusable,
            waits: waits(&program.steps),
        })
    }

    /// The GPU.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// For each parameter, whether its memory is used for a result when it is donated.
    pub fn reusable(&self) -> &[bool] {
        &self.reusable
    }

    /// Whether a run waits for the GPU, since what it does depends on what was computed.
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// Bytes that a run takes beside its arguments and results.
    pub fn temporary_bytes(&self) -> usize {
        self.arena
    }

    pub(super) fn steps(&self) -> &[Node] {
        &self.code.steps
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        // runs may not have come to their end
        let code = std::mem::replace(&mut self.code, Code { steps: Vec::new(), _modules: Vec::new() });
        let end = self.device.context().enter().and_then(|here| self.device.compute().record(&here));
        match end {
            Ok(end) => self.device.retire(Arc::new(end), Box::new(code)),
            Err(_) => {
                self.device.compute().settle();
                drop(code);
            }
        }
    }
}

/// Whether any step depends on what the ones before it computed.
fn waits(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::While { .. } | Step::Switch { .. } => true,
        Step::Repeat { body, .. } => waits(body),
        Step::Launch(_) | Step::Copy { .. } | Step::Fill { .. } | Step::Call { .. } => false,
    })
}

/// Bytes that calls work in.
fn worked_in(steps: &[Node]) -> usize {
    let of = |step: &Node| match step {
        Node::Call { call, .. } => call.bytes(),
        Node::While { cond, body, .. } => worked_in(cond).max(worked_in(body)),
        Node::Repeat { body, .. } => worked_in(body),
        Node::Switch { branches, .. } => branches.iter().map(|b| worked_in(b)).max().unwrap_or(0),
        Node::Straight(_) => 0,
    };
    steps.iter().map(of).max().unwrap_or(0)
}

/// A plan to check.
struct Plan<'a> {
    program: &'a Program,
    name: &'a str,
    prepare: &'a dyn Fn(&Routine) -> Result<Box<dyn Call>>,
}

impl<'a> Plan<'a> {
    #[cold]
    fn wrong(&self, what: impl std::fmt::Display) -> Error {
        error!(Internal, "the plan of {} for a GPU: {what}", self.name)
    }

    /// For each parameter, whether a result takes its memory.
    fn reusable(&self) -> Result<Vec<bool>> {
        let params = &self.program.params;
        let mut taken = vec![false; params.len()];
        for (i, Output { ty, takes }) in self.program.results.iter().enumerate() {
            let Some(p) = *takes else { continue };
            if p >= params.len() || taken[p] || params[p].bytes() != ty.bytes() {
                return Err(self.wrong(format_args!("result {i} takes the memory of parameter {p}")));
            }
            taken[p] = true;
        }
        Ok(taken)
    }

    /// Checks that bytes are within their place.
    fn within(&self, span: Span) -> Result<Span> {
        let Program { params, results, constants, arena, .. } = self.program;
        let bytes = match span.place {
            Place::Param(i) => params.get(i).map(ferrax_loops::Type::bytes),
            Place::Result(i) => results.get(i).map(|r| r.ty.bytes()),
            Place::Constant(i) => constants.get(i).map(|c| c.len()),
            Place::Arena => Some(*arena),
        };
        match (bytes, span.offset.checked_add(span.bytes)) {
            (Some(bytes), Some(end)) if end <= bytes => Ok(span),
            _ => Err(self.wrong(format_args!("{span:?} is not within its place"))),
        }
    }

    /// The same, of bytes that a step writes: those of parameters only where a result takes their memory.
    fn written(&self, span: Span) -> Result<Span> {
        let may = match span.place {
            Place::Param(i) => self.program.results.iter().any(|r| r.takes == Some(i)),
            Place::Constant(_) => false,
            Place::Result(_) | Place::Arena => true,
        };
        if may { self.within(span) } else { Err(self.wrong(format_args!("{span:?} is written"))) }
    }

    /// The same, of a number of `bytes` bytes.
    fn number(&self, span: Span, bytes: usize) -> Result<Span> {
        if span.bytes != bytes || !span.offset.is_multiple_of(bytes) {
            return Err(self.wrong(format_args!("{span:?} is no number of {bytes} bytes")));
        }
        self.within(span)
    }

    /// The kernels that are launched, each with the most shared memory that it is given.
    fn kernels(&self) -> Result<HashMap<&'a str, u32>> {
        fn gather<'a>(steps: &'a [Step], found: &mut HashMap<&'a str, u32>) {
            for step in steps {
                match step {
                    Step::Launch(Launch { kernel, shared, .. }) => {
                        let most = found.entry(kernel).or_default();
                        *most = (*most).max(*shared);
                    }
                    Step::Copy { .. } | Step::Fill { .. } | Step::Call { .. } => {}
                    Step::While { cond, body, .. } => [cond, body].into_iter().for_each(|s| gather(s, found)),
                    Step::Repeat { body, .. } => gather(body, found),
                    Step::Switch { branches, .. } => branches.iter().for_each(|s| gather(s, found)),
                }
            }
        }
        let mut found = HashMap::new();
        gather(&self.program.steps, &mut found);
        Ok(found)
    }

    fn nodes(&self, steps: &[Step], functions: &HashMap<&str, Function>) -> Result<Vec<Node>> {
        let (mut nodes, mut ops) = (Vec::new(), Vec::new());
        for step in steps {
            let node = match step {
                Step::Launch(launch) => {
                    ops.push(self.launch(launch, functions)?);
                    continue;
                }
                Step::Copy { from, to } => {
                    ops.extend(self.copy(*from, *to)?);
                    continue;
                }
                Step::Fill { to, byte } => {
                    let to = self.written(*to)?;
                    ops.extend((to.bytes > 0).then_some(Op::Fill { to, byte: *byte }));
                    continue;
                }
                Step::Call { routine, reads, writes } => {
                    let reads = reads.iter().map(|s| self.within(*s)).collect::<Result<_>>()?;
                    let writes = writes.iter().map(|s| self.written(*s)).collect::<Result<_>>()?;
                    Node::Call { call: (self.prepare)(routine)?, reads, writes }
                }
                Step::While { cond, flag, body } => Node::While {
                    cond: self.nodes(cond, functions)?,
                    flag: self.number(*flag, 1)?,
                    body: self.nodes(body, functions)?,
                },
                Step::Repeat { count, counter, body } => {
                    let counter = self.written(self.number(*counter, 8)?)?;
                    Node::Repeat { count: *count, counter, body: self.nodes(body, functions)? }
                }
                Step::Switch { branches, .. } if branches.is_empty() => return Err(self.wrong("no branch")),
                Step::Switch { index, branches } => Node::Switch {
                    index: self.number(*index, 4)?,
                    branches: branches.iter().map(|s| self.nodes(s, functions)).collect::<Result<_>>()?,
                },
            };
            nodes.extend(Segment::of(std::mem::take(&mut ops)).map(Node::Straight));
            nodes.push(node);
        }
        nodes.extend(Segment::of(ops).map(Node::Straight));
        Ok(nodes)
    }

    fn copy(&self, from: Span, to: Span) -> Result<Option<Op>> {
        let (from, to) = (self.within(from)?, self.written(to)?);
        let apart =
            from.place != to.place || from.offset + from.bytes <= to.offset || to.offset + to.bytes <= from.offset;
        if from.bytes != to.bytes || !apart {
            return Err(self.wrong(format_args!("a copy from {from:?} to {to:?}")));
        }
        Ok((to.bytes > 0).then_some(Op::Copy { from, to }))
    }

    fn launch(&self, launch: &Launch, functions: &HashMap<&str, Function>) -> Result<Op> {
        let Launch { kernel, grid, block, shared, args } = launch;
        let threads: u64 = block.iter().map(|n| u64::from(*n)).fold(1, u64::saturating_mul);
        if threads > THREADS || threads == 0 || grid.contains(&0) {
            return Err(self.wrong(format_args!("{kernel} is launched on {grid:?} blocks of {block:?} threads")));
        }
        for arg in args {
            if let Argument::Memory(span) = arg {
                self.within(*span)?;
            }
        }
        let Some(function) = functions.get(kernel.as_str()) else {
            bail!(Internal, "the program's source has no kernel {kernel}");
        };
        let shape = Shape { function: *function, grid: *grid, block: *block, shared: *shared };
        Ok(Op::Launch { shape, args: args.iter().copied().collect() })
    }
}
