//! A run of a program: memory for it, its steps given to the compute stream, results that are ready by an event.
//!
//! A run returns when the stream has its steps; only a program whose steps depend on what was computed waits for the GPU. What fails
//! later surfaces where a result is used. A run that fails while it is started waits for what was started, and the arrays that
//! were donated to it are gone.
//! Read next: `graph.rs`.

use super::array::DeviceArray;
use super::context::Entered;
use super::executable::{Executable, Node};
use super::memory::{Block, Use};
use super::stream::Event;
use crate::program::{Place, Span};
use ferrax_base::{Arg, Memory, Outputs, Result, Source, bail, checks, error};
use smallvec::SmallVec;
use std::sync::Arc;

type Blocks = SmallVec<[Arc<Block>; 8]>;

/// Where the places of a program are in a run.
pub(super) struct Frame<'a> {
    params: SmallVec<[u64; 8]>,
    results: SmallVec<[u64; 8]>,
    constants: &'a [Arc<Block>],
    arena: u64,
}

impl Frame<'_> {
    /// The address of the first of some bytes.
    #[inline]
    pub fn at(&self, span: Span) -> u64 {
        let base = match span.place {
            Place::Param(i) => self.params[i],
            Place::Result(i) => self.results[i],
            Place::Constant(i) => self.constants[i].address(),
            Place::Arena => self.arena,
        };
        base + span.offset as u64
    }
}

/// Memory of a run.
struct Room {
    results: Blocks,
    arena: Arc<Block>,
    /// Parameters whose memory was taken for a result.
    donated: SmallVec<[usize; 8]>,
}

impl Executable {
    /// Runs on one argument per parameter, each in the memory of the program's GPU. Donated arguments whose memory became
    /// a result's are taken.
    pub fn run(&self, args: &mut [Arg<'_>]) -> Result<Outputs> {
        if args.len() != self.params.len() {
            bail!(Internal, "a program of {} parameters was given {} arguments", self.params.len(), args.len());
        }
        self.device.sweep();
        let here = self.device.context().enter()?;
        let params = args.iter().zip(&self.params).map(|(arg, bytes)| self.block(arg, *bytes));
        let params = params.collect::<Result<Blocks>>()?;
        let room = self.room(&here, args, &params)?;
        let started = self.start(&here, &params, &room);
        for &p in &room.donated {
            args[p] = Arg::Taken;
        }
        let end = match started {
            Ok(end) => Arc::new(end),
            Err(error) => {
                self.device.compute().settle();
                return Err(error);
            }
        };
        let array = |block| Memory::device(DeviceArray::new(block, Some(end.clone())));
        Ok(room.results.into_iter().map(array).collect())
    }

    /// The memory of an argument.
    fn block(&self, arg: &Arg<'_>, bytes: usize) -> Result<Arc<Block>> {
        let block = array(arg)?.block()?;
        if !Arc::ptr_eq(block.device(), &self.device) {
            bail!(Internal, "an argument of a program on {:?} is on {:?}", self.device, block.device());
        }
        if block.bytes() != bytes {
            bail!(Internal, "an argument has {} bytes, and its parameter {bytes}", block.bytes());
        }
        Ok(block)
    }

    /// Memory for the results and to work in. Where there is too little, nothing was donated.
    fn room(&self, here: &Entered<'_>, args: &[Arg<'_>], params: &[Arc<Block>]) -> Result<Room> {
        let (mut results, mut donated) = (Blocks::new(), SmallVec::<[usize; 8]>::new());
        let stream = self.device.compute();
        let mut allocate = || {
            for (bytes, takes) in &self.results {
                let owned = takes.filter(|p| matches!(args[*p], Arg::Owned(_)));
                let taken = owned.and_then(|p| Some((p, array(&args[p]).ok()?.donate()?)));
                results.push(match taken {
                    Some((p, block)) => {
                        donated.push(p);
                        block
                    }
                    None => self.device.allocate(here, *bytes, Use::Array, stream)?,
                });
            }
            self.device.allocate(here, self.arena, Use::Temporary, stream)
        };
        let arena = allocate().inspect_err(|_| {
            for &p in &donated {
                if let Ok(array) = array(&args[p]) {
                    array.restore(params[p].clone());
                }
            }
        })?;
        if !donated.is_empty() {
            let by = Source::here();
            let mut live = self.device.live();
            donated.iter().for_each(|&p| live.made_again(params[p].address(), by));
        }
        Ok(Room { results, arena, donated })
    }

    /// Gives the steps to the stream; gives the event of their end.
    fn start(&self, here: &Entered<'_>, params: &[Arc<Block>], room: &Room) -> Result<Event> {
        let stream = self.device.compute();
        for block in params.iter().chain(&self.constants) {
            block.join(here)?;
        }
        let mut frame = Frame {
            params: params.iter().map(|b| b.address()).collect(),
            results: room.results.iter().map(|b| b.address()).collect(),
            constants: &self.constants,
            arena: room.arena.address(),
        };
        if checks::on() {
            self.poison(here, room)?;
        }
        for ((bytes, takes), &result) in self.results.iter().zip(&frame.results) {
            let Some(p) = takes.filter(|p| !room.donated.contains(p)) else { continue };
            // the plan has both in one place: the argument, which others keep, is copied there
            // SAFETY: both blocks have so many bytes, and are freed after this on this stream.
            unsafe { stream.copy(here, result, frame.params[p], *bytes)? };
            frame.params[p] = result;
        }
        self.run_all(here, &frame, self.steps())?;
        stream.record(here)
    }

    /// Fills memory that no step has written with what is no number.
    fn poison(&self, here: &Entered<'_>, room: &Room) -> Result<()> {
        let donated = |i: usize| self.results[i].1.is_some_and(|p| room.donated.contains(&p));
        let fresh = room.results.iter().enumerate().filter(|(i, _)| !donated(*i)).map(|(_, block)| block);
        fresh.chain([&room.arena]).try_for_each(|block| {
            // SAFETY: the block is freed after this on this stream, and has nothing that anybody needs.
            unsafe { self.device.compute().fill(here, block.address(), checks::POISON, block.bytes()) }
        })
    }

    fn run_all(&self, here: &Entered<'_>, frame: &Frame<'_>, nodes: &[Node]) -> Result<()> {
        nodes.iter().try_for_each(|node| self.run_node(here, frame, node))
    }

    fn run_node(&self, here: &Entered<'_>, frame: &Frame<'_>, node: &Node) -> Result<()> {
        let device = &self.device;
        match node {
            // SAFETY: the blocks of the frame are freed after this on this stream.
            Node::Straight(segment) => unsafe { segment.run(device.context(), here, device.compute(), frame) },
            Node::Call { call, reads, writes } => {
                let work = frame.arena + self.work as u64;
                let at = |spans: &[Span]| spans.iter().map(|s| frame.at(*s)).collect::<SmallVec<[u64; 4]>>();
                // SAFETY: the blocks of the frame are freed after this on this stream.
                unsafe { call.start(device.compute(), &at(reads), &at(writes), work) }
            }
            Node::While { cond, flag, body } => loop {
                self.run_all(here, frame, cond)?;
                let mut go_on = [0];
                device.read(here, frame.at(*flag), &mut go_on)?;
                if go_on == [0] {
                    return Ok(());
                }
                self.run_all(here, frame, body)?;
            },
            Node::Repeat { count, counter, body } => (0..*count).try_for_each(|i| {
                self.count(here, frame.at(*counter), i)?;
                self.run_all(here, frame, body)
            }),
            Node::Switch { index, branches } => {
                let mut bytes = [0; 4];
                device.read(here, frame.at(*index), &mut bytes)?;
                let last = branches.len() - 1;
                let index = usize::try_from(i32::from_ne_bytes(bytes)).unwrap_or(0).min(last);
                self.run_all(here, frame, &branches[index])
            }
        }
    }

    /// Writes the number of an iteration, in halves, as the driver sets words of four bytes.
    fn count(&self, here: &Entered<'_>, at: u64, i: u64) -> Result<()> {
        let stream = self.device.compute().raw();
        // SAFETY: the plan has eight bytes there, which begin at a multiple of eight.
        unsafe {
            here.driver().cuMemsetD32Async(at, i as u32, 1, stream)?;
            // the upper half changes when the lower one begins anew
            if i as u32 == 0 {
                here.driver().cuMemsetD32Async(at + 4, (i >> 32) as u32, 1, stream)?;
            }
        }
        Ok(())
    }
}

fn array<'a>(arg: &'a Arg<'_>) -> Result<&'a DeviceArray> {
    if matches!(arg, Arg::Taken) {
        bail!(Deleted, "an argument was donated to an earlier run");
    }
    arg.device::<DeviceArray>().ok_or_else(|| error!(Internal, "an argument is not in a GPU's memory"))
}
