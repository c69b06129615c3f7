//! Control flow: while, scan, switch, call, and reductions with a body. Subprograms run in frames that live
//! as long as the loop, and carried values alternate between two places unless the body works in place.
//! Loops that fit the machine's registers run there instead (`registers`).

use super::frame::Frame;
use crate::library::movement::Walk;
use crate::program::{OutputPlace, Program};
use ferrax_base::shape::total;
use ferrax_base::{Buffer, Result, bail};
use ferrax_loops::{Graph, Kind, Node, ValueId};
use smallvec::SmallVec;

type Pointers = SmallVec<[*mut u8; 8]>;

/// Runs a node with subprograms.
///
/// # Safety
/// The frame's pointers must be those of a run of `program`.
pub(crate) unsafe fn run(frame: &Frame, program: &Program, node: u32, args: u32, sub: u32) -> Result<()> {
    let g = &*program.graph;
    let node = &g.nodes[node as usize];
    let slots = &program.slots[args as usize..];
    let (mut ins, mut outs) = (Pointers::new(), Pointers::new());
    let address = |&s: &u32| frame.ptrs[s as usize];
    ins.extend(slots[..node.inputs.len()].iter().map(address));
    outs.extend(slots[node.inputs.len()..][..node.results as usize].iter().map(address));
    let subs = &program.subs[sub as usize..];
    // SAFETY: operands and results are memory of the types that the subprograms' parameters and outputs have.
    unsafe {
        match &node.kind {
            Kind::Call(_) => Frame::new(&subs[0])?.exec(&subs[0], &ins, &outs),
            Kind::Switch(branches) => {
                let index = (*ins[0].cast::<i32>()).clamp(0, branches.len() as i32 - 1);
                let chosen = &subs[index as usize];
                Frame::new(chosen)?.exec(chosen, &ins[1..], &outs)
            }
            Kind::While { cond_consts, body_consts, .. } => {
                let consts = (&ins[..*cond_consts], &ins[*cond_consts..cond_consts + body_consts]);
                while_loop(&subs[0], &subs[1], consts, &ins[cond_consts + body_consts..], &outs)
            }
            Kind::Scan { length, reverse, consts, carry, .. } => {
                let shape = ScanShape { length: *length, reverse: *reverse, consts: *consts, carry: *carry };
                scan(&subs[0], g, node, shape, &ins, &outs)
            }
            Kind::ReduceWith { axes, .. } => reduce_with(&subs[0], g, node, axes, &ins, &outs),
            other => bail!(Internal, "{other:?} has no subprograms"),
        }
    }
}

/// Carried values: the two places of each, and in which of them all are now; the body puts their next state into the other.
struct Carry {
    places: SmallVec<[[*mut u8; 2]; 8]>,
    turn: usize,
    bytes: SmallVec<[usize; 8]>,
    _spare: Option<Buffer>,
}

impl Carry {
    /// Starts from `init`, so that after `steps` iterations (where known) the state is in `outs`.
    ///
    /// # Safety
    /// `init` and `outs` must be valid for the bytes of the body's carried outputs.
    unsafe fn new(
        body: &Program,
        first: usize,
        init: &[*mut u8],
        outs: &[*mut u8],
        steps: Option<usize>,
    ) -> Result<Carry> {
        let g = &*body.graph;
        let bytes: SmallVec<[usize; 8]> = (0..init.len()).map(|k| g.ty(g.outputs[k]).bytes()).collect();
        let in_place = |k: usize| body.outputs[k] == OutputPlace::Param((first + k) as u32);
        let total = total((0..init.len()).filter(|&k| !in_place(k)).map(|k| bytes[k].next_multiple_of(64).max(64)));
        let mut spare = if total > 0 { Some(Buffer::allocate(total)?) } else { None };
        let mut at = spare.as_mut().map_or(std::ptr::null_mut(), Buffer::as_mut_ptr);
        let mut carry = Carry { places: SmallVec::new(), turn: 0, bytes, _spare: spare };
        for k in 0..init.len() {
            let mut places = [outs[k]; 2];
            if !in_place(k) {
                places[1] = at;
                at = at.wrapping_add(carry.bytes[k].next_multiple_of(64).max(64));
                if steps.is_some_and(|n| n % 2 == 1) {
                    places.reverse();
                }
            }
            if places[0] != init[k] {
                // SAFETY: both hold the carried value's bytes; different values never overlap.
                unsafe { std::ptr::copy_nonoverlapping(init[k], places[0], carry.bytes[k]) };
            }
            carry.places.push(places);
        }
        Ok(carry)
    }

    /// Where the state is.
    #[inline]
    fn now(&self) -> impl Iterator<Item = *mut u8> {
        self.places.iter().map(|places| places[self.turn])
    }

    /// Where the next state goes.
    #[inline]
    fn next(&self) -> impl Iterator<Item = *mut u8> {
        self.places.iter().map(|places| places[1 - self.turn])
    }

    fn advance(&mut self) {
        self.turn = 1 - self.turn;
    }

    /// Moves the state to where it belongs.
    ///
    /// # Safety
    /// `outs` must be those given to `new`.
    unsafe fn finish(&self, outs: &[*mut u8]) {
        for ((now, &out), &bytes) in self.now().zip(outs).zip(&self.bytes) {
            if now != out {
                // SAFETY: the state is either in `outs` or in the spare memory.
                unsafe { std::ptr::copy_nonoverlapping(now, out, bytes) };
            }
        }
    }
}

unsafe fn while_loop(
    cond: &Program,
    body: &Program,
    consts: (&[*mut u8], &[*mut u8]),
    init: &[*mut u8],
    outs: &[*mut u8],
) -> Result<()> {
    let of = (consts.0.len(), consts.1.len());
    // SAFETY: the caller passes memory of the carried types; the bodies' contract follows from `Carry`.
    unsafe {
        let mut carry = Carry::new(body, of.1, init, outs, None)?;
        let (mut cond_frame, mut body_frame) = (Frame::new(cond)?, Frame::new(body)?);
        let mut flag = 0u8;
        cond_frame.set(0, consts.0.iter().copied());
        cond_frame.set(of.0 + init.len(), std::iter::once(&raw mut flag));
        body_frame.set(0, consts.1.iter().copied());
        loop {
            cond_frame.set(of.0, carry.now());
            cond_frame.again(cond)?;
            if (&raw const flag).read() == 0 {
                break;
            }
            body_frame.set(of.1, carry.now());
            body_frame.set(of.1 + init.len(), carry.next());
            body_frame.again(body)?;
            carry.advance();
        }
        carry.finish(outs);
    }
    Ok(())
}

/// The numbers of a scan node.
#[derive(Clone, Copy)]
struct ScanShape {
    length: usize,
    reverse: bool,
    consts: usize,
    carry: usize,
}

unsafe fn scan(
    body: &Program,
    g: &Graph,
    node: &Node,
    shape: ScanShape,
    ins: &[*mut u8],
    outs: &[*mut u8],
) -> Result<()> {
    let ScanShape { length, reverse, consts, carry: carried } = shape;
    let stride = |v: ValueId| g.ty(v).bytes() / length.max(1);
    let xs: SmallVec<[(*mut u8, usize); 4]> =
        ins.iter().zip(&node.inputs).skip(consts + carried).map(|(&p, &v)| (p, stride(v))).collect();
    let ys: SmallVec<[(*mut u8, usize); 4]> =
        outs.iter().zip(node.outputs()).skip(carried).map(|(&p, v)| (p, stride(v))).collect();
    // SAFETY: the caller passes memory of the node's types; slice i of a stacked array starts at i strides.
    unsafe {
        let init = &ins[consts..consts + carried];
        let mut carry = Carry::new(body, consts, init, &outs[..carried], Some(length))?;
        let mut frame = Frame::new(body)?;
        frame.set(0, ins[..consts].iter().copied());
        for step in 0..length {
            let i = if reverse { length - 1 - step } else { step };
            let slice = |&(base, stride): &(*mut u8, usize)| base.add(i * stride);
            frame.set(consts, carry.now());
            frame.set(consts + carried, xs.iter().map(slice));
            frame.set(ins.len(), carry.next());
            frame.set(ins.len() + carried, ys.iter().map(slice));
            frame.again(body)?;
            carry.advance();
        }
        frame.catch_up(body);
        carry.finish(&outs[..carried]);
    }
    Ok(())
}

/// Generic reduction: the body runs once an element, on scalars.
unsafe fn reduce_with(
    body: &Program,
    g: &Graph,
    node: &Node,
    axes: &[usize],
    ins: &[*mut u8],
    outs: &[*mut u8],
) -> Result<()> {
    let count = outs.len();
    let shape = &g.ty(node.inputs[0]).shape;
    let sizes: SmallVec<[usize; 4]> = (0..count).map(|k| g.ty(node.inputs[k]).dtype.size()).collect();
    let strides = ferrax_base::shape::strides(shape);
    let (mut kept, mut reduced) = (Walk::default(), Walk::default());
    for i in 0..shape.len() {
        let walk = if axes.contains(&i) { &mut reduced } else { &mut kept };
        walk.extents.push(shape[i]);
        walk.strides.push(strides[i]);
    }
    let mut frame = Frame::new(body)?;
    // Accumulators alternate between two rows of 16-byte cells.
    let mut cells = vec![[0u64; 2]; 2 * count];
    let base: *mut u8 = cells.as_mut_ptr().cast();
    let cell = |row: usize, k: usize| base.wrapping_add(16 * (row * count + k));
    let mut args: Pointers = SmallVec::from_elem(std::ptr::null_mut(), 2 * count);
    let mut results: Pointers = SmallVec::from_elem(std::ptr::null_mut(), count);
    for (o, start) in kept.offsets().enumerate() {
        let mut row = 0;
        // SAFETY: operands hold `shape` elements, results the kept ones; cells hold one element of any dtype.
        unsafe {
            for k in 0..count {
                std::ptr::copy_nonoverlapping(ins[count + k], cell(0, k), sizes[k]);
            }
            for step in reduced.offsets() {
                for k in 0..count {
                    args[k] = cell(row, k);
                    args[count + k] = ins[k].add((start + step) * sizes[k]);
                    results[k] = cell(1 - row, k);
                }
                frame.exec(body, &args, &results)?;
                row = 1 - row;
            }
            for k in 0..count {
                std::ptr::copy_nonoverlapping(cell(row, k), outs[k].add(o * sizes[k]), sizes[k]);
            }
        }
    }
    Ok(())
}
