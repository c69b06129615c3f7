//! Steps without a decision between them, which the driver is told once and then starts by one call.
//!
//! A segment is given to the stream step by step twice; whoever runs it a third time makes a graph of it, a chain of nodes. Runs
//! after that start the graph, and tell it first where the addresses of a node have changed: what was started before keeps the
//! old ones. Programs that run once or twice do not pay for a graph.

use super::context::{Context, Entered};
use super::executable::Op;
use super::run::Frame;
use super::stream::Stream;
use super::sys::*;
use crate::program::Argument;
use ferrax_base::Result;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

/// Runs before a graph is made.
const RUNS: u8 = 2;
/// Steps from which on a graph is less work than they are.
const WORTH: usize = 2;

/// Steps that follow one another.
pub(super) struct Segment {
    ops: Vec<Op>,
    recorded: Mutex<Recorded>,
}

#[derive(Default)]
struct Recorded {
    runs: u8,
    graph: Option<Graph>,
}

impl Op {
    /// What changes from run to run, of each step in order: the arguments of a kernel, addresses to and from.
    fn resolve(&self, frame: &Frame<'_>, values: &mut Vec<u64>) {
        match self {
            Op::Launch { args, .. } => values.extend(args.iter().map(|arg| match arg {
                Argument::Memory(span) => frame.at(*span),
                Argument::Int(value) => *value as u64,
            })),
            Op::Copy { from, to } => values.extend([frame.at(*to), frame.at(*from)]),
            Op::Fill { to, .. } => values.push(frame.at(*to)),
        }
    }

    /// Gives the step to a stream.
    ///
    /// # Safety
    /// The values are those of a frame whose memory is alive when the stream comes to the step.
    unsafe fn start(&self, here: &Entered<'_>, stream: &Stream, values: &mut [u64], room: &mut Room) -> Result<()> {
        // SAFETY: the caller's promise; spans are within their places, and kernels keep to theirs.
        unsafe {
            match self {
                Op::Launch { shape, .. } => stream.launch(here, shape, values, room),
                Op::Copy { from, .. } => stream.copy(here, values[0], values[1], from.bytes),
                Op::Fill { to, byte } => stream.fill(here, values[0], *byte, to.bytes),
            }
        }
    }
}

/// Room for the addresses of arguments.
type Room = Vec<*mut c_void>;

impl Segment {
    /// The segment of some steps; none where there are none.
    pub fn of(ops: Vec<Op>) -> Option<Segment> {
        (!ops.is_empty()).then(|| Segment { ops, recorded: Mutex::default() })
    }

    /// Gives the steps to a stream, by themselves or as a graph.
    ///
    /// # Safety
    /// The memory of the frame is alive when the stream comes to the steps.
    pub unsafe fn run(
        &self,
        context: &Arc<Context>,
        here: &Entered<'_>,
        stream: &Stream,
        frame: &Frame<'_>,
    ) -> Result<()> {
        if self.ops.len() >= WORTH {
            let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
            if recorded.runs == RUNS {
                // a graph that could not be told everything is made again
                let graph = match recorded.graph.take() {
                    Some(mut graph) => {
                        graph.tell(here, &self.ops, frame)?;
                        graph
                    }
                    None => Graph::new(context, here, &self.ops, frame)?,
                };
                let graph = recorded.graph.insert(graph);
                // SAFETY: the graph is alive, and its addresses are those of the frame.
                return unsafe { here.driver().cuGraphLaunch(graph.exec, stream.raw()) };
            }
            recorded.runs += 1;
        }
        let (mut values, mut room) = (Vec::new(), Vec::new());
        self.ops.iter().try_for_each(|op| {
            values.clear();
            op.resolve(frame, &mut values);
            // SAFETY: the caller's promise.
            unsafe { op.start(here, stream, &mut values, &mut room) }
        })
    }
}

/// Steps as the driver has them.
struct Graph {
    context: Arc<Context>,
    graph: CUgraph,
    exec: CUgraphExec,
    nodes: Vec<CUgraphNode>,
    /// What the nodes were last told, as [`Op::resolve`] gives it.
    values: Vec<u64>,
}

// SAFETY: graphs may be used from any thread, one at a time, which the lock around them sees to.
unsafe impl Send for Graph {}

impl Graph {
    fn new(context: &Arc<Context>, here: &Entered<'_>, ops: &[Op], frame: &Frame<'_>) -> Result<Graph> {
        let (graph, exec) = (std::ptr::null_mut(), std::ptr::null_mut());
        // from here on what there is of it is destroyed when something fails
        let mut made = Graph { context: context.clone(), graph, exec, nodes: Vec::new(), values: Vec::new() };
        // SAFETY: the place outlives the call.
        unsafe { here.driver().cuGraphCreate(&raw mut made.graph, 0)? };
        let mut room = Vec::new();
        for op in ops {
            let start = made.values.len();
            op.resolve(frame, &mut made.values);
            let node = add(here, made.graph, made.nodes.last(), op, &mut made.values[start..], &mut room)?;
            made.nodes.push(node);
        }
        // SAFETY: the place outlives the call, and the graph is alive.
        unsafe { here.driver().cuGraphInstantiateWithFlags(&raw mut made.exec, made.graph, 0)? };
        Ok(made)
    }

    /// Tells the nodes what has changed.
    fn tell(&mut self, here: &Entered<'_>, ops: &[Op], frame: &Frame<'_>) -> Result<()> {
        let (mut values, mut room) = (Vec::with_capacity(self.values.len()), Vec::new());
        for (op, node) in ops.iter().zip(&self.nodes) {
            let start = values.len();
            op.resolve(frame, &mut values);
            if values[start..] != self.values[start..values.len()] {
                change(here, self.exec, *node, op, &mut values[start..], &mut room)?;
            }
        }
        self.values = values;
        Ok(())
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        self.context.give_back(|driver| {
            // SAFETY: nobody uses them after this; the driver keeps what runs until it has ended.
            unsafe {
                let exec = if self.exec.is_null() { Ok(()) } else { driver.cuGraphExecDestroy(self.exec) };
                let graph = if self.graph.is_null() { Ok(()) } else { driver.cuGraphDestroy(self.graph) };
                exec.and(graph)
            }
        });
    }
}

/// Adds a step to a graph, after the last one.
fn add(
    here: &Entered<'_>,
    graph: CUgraph,
    after: Option<&CUgraphNode>,
    op: &Op,
    values: &mut [u64],
    room: &mut Room,
) -> Result<CUgraphNode> {
    let (driver, context) = (here.driver(), here.context());
    let (after, count) = after.map_or((std::ptr::null(), 0), |node| (std::ptr::from_ref(node), 1));
    let mut node = std::ptr::null_mut();
    // SAFETY: the graph is alive, and so are places, arguments and the node before during the calls.
    unsafe {
        match op {
            Op::Launch { shape, .. } => {
                let params = shape.node(values, room);
                driver.cuGraphAddKernelNode_v2(&raw mut node, graph, after, count, &raw const params)?;
            }
            Op::Copy { from, .. } => {
                let params = copy(values[0], values[1], from.bytes);
                driver.cuGraphAddMemcpyNode(&raw mut node, graph, after, count, &raw const params, context)?;
            }
            Op::Fill { to, byte } => {
                let params = fill(values[0], *byte, to.bytes);
                driver.cuGraphAddMemsetNode(&raw mut node, graph, after, count, &raw const params, context)?;
            }
        }
    }
    Ok(node)
}

/// Tells a node what its step is now.
fn change(
    here: &Entered<'_>,
    exec: CUgraphExec,
    node: CUgraphNode,
    op: &Op,
    values: &mut [u64],
    room: &mut Room,
) -> Result<()> {
    let (driver, context) = (here.driver(), here.context());
    // SAFETY: the graph is alive, the node is one of its own, and so are the arguments during the calls.
    unsafe {
        match op {
            Op::Launch { shape, .. } => {
                let params = shape.node(values, room);
                driver.cuGraphExecKernelNodeSetParams_v2(exec, node, &raw const params)
            }
            Op::Copy { from, .. } => {
                let params = copy(values[0], values[1], from.bytes);
                driver.cuGraphExecMemcpyNodeSetParams(exec, node, &raw const params, context)
            }
            Op::Fill { to, byte } => {
                let params = fill(values[0], *byte, to.bytes);
                driver.cuGraphExecMemsetNodeSetParams(exec, node, &raw const params, context)
            }
        }
    }
}

/// Bytes in a row, as the driver's copies of three dimensions have them.
fn copy(to: CUdeviceptr, from: CUdeviceptr, bytes: usize) -> CUDA_MEMCPY3D {
    CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: CU_MEMORYTYPE_DEVICE,
        srcHost: std::ptr::null(),
        srcDevice: from,
        srcArray: std::ptr::null_mut(),
        reserved0: std::ptr::null_mut(),
        srcPitch: bytes,
        srcHeight: 1,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: CU_MEMORYTYPE_DEVICE,
        dstHost: std::ptr::null_mut(),
        dstDevice: to,
        dstArray: std::ptr::null_mut(),
        reserved1: std::ptr::null_mut(),
        dstPitch: bytes,
        dstHeight: 1,
        WidthInBytes: bytes,
        Height: 1,
        Depth: 1,
    }
}

fn fill(to: CUdeviceptr, byte: u8, bytes: usize) -> CUDA_MEMSET_NODE_PARAMS {
    CUDA_MEMSET_NODE_PARAMS { dst: to, pitch: bytes, value: u32::from(byte), elementSize: 1, width: bytes, height: 1 }
}
