//! Running a register loop: its memory is filled, the program runs once for each register of elements, and results
//! are taken from where it left them.

use super::{Held, Input, Limit, Part, RegisterLoop, Trips};
use crate::machine::loops;
use crate::machine::loops::families::Width;
use crate::pool;
use smallvec::SmallVec;
use std::ops::Range;

/// Registers of elements that one task takes, where each takes its own steps.
const TURNS: usize = 8;
/// Steps that a loop is taken to have where that is not known, of operations of a nanosecond.
const APART_STEPS: usize = 16;

/// What tasks share of a loop whose elements go on alone.
struct Shared<'a> {
    registers: &'a RegisterLoop,
    scalars: &'a [u64],
    ins: &'a [*mut u8],
    outs: &'a [*mut u8],
}
// SAFETY: a task reads and writes its own elements alone.
unsafe impl Sync for Shared<'_> {}

impl Shared<'_> {
    unsafe fn turns(&self, turns: Range<usize>) {
        // SAFETY: the caller's contract.
        unsafe { self.registers.turns(turns, self.scalars, None, (self.ins, self.outs)) }
    }
}

/// A place of the loop's memory: lanes of 4 bytes, or half as many of 8.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Place([u32; 16]);

impl Place {
    /// The lanes of 8 bytes.
    fn wide(&mut self) -> &mut [[u32; 2]] {
        self.0.as_chunks_mut().0
    }

    /// Puts the bits of a lane in place.
    fn set(&mut self, lane: Width, i: usize, bits: u64) {
        match lane {
            Width::Four => self.0[i] = bits as u32,
            Width::Eight => self.wide()[i] = halves(bits),
        }
    }

    /// Puts the bits of every lane in place.
    fn fill(&mut self, lane: Width, bits: u64) {
        match lane {
            Width::Four => self.0 = [bits as u32; 16],
            Width::Eight => self.wide().fill(halves(bits)),
        }
    }

    /// Puts elements that lie in memory as lanes do in the first lanes, or takes them from there; whether they lie so.
    ///
    /// # Safety
    /// The array must have these elements.
    unsafe fn move_lanes(
        &mut self,
        lane: Width,
        held: Held,
        (array, from, count): (*mut u8, usize, usize),
        out: bool,
    ) -> bool {
        let bytes = lane.bytes();
        let alike = match held {
            Held::Flag => false,
            Held::Signed | Held::Four => bytes == 4,
            Held::Eight => bytes == 8,
        };
        if alike {
            let (own, there) = (self.0.as_mut_ptr().cast::<u8>(), array.wrapping_add(from * bytes));
            let (src, dst) = if out { (own, there) } else { (there, own) };
            // SAFETY: the caller's contract; a place has room for a register of lanes.
            unsafe { std::ptr::copy_nonoverlapping(src, dst, count * bytes) };
        }
        alike
    }

    /// The bits of a lane.
    fn get(&self, lane: Width, i: usize) -> u64 {
        match lane {
            Width::Four => u64::from(self.0[i]),
            Width::Eight => u64::from(self.0[2 * i]) | u64::from(self.0[2 * i + 1]) << 32,
        }
    }
}

/// The low half and the high half, in the order that memory has them on the machines that there are handlers for.
fn halves(bits: u64) -> [u32; 2] {
    [bits as u32, (bits >> 32) as u32]
}

impl Input {
    /// The first of the elements and their number, where the run is over `turn`.
    fn elements(&self, turn: (usize, usize)) -> (usize, usize) {
        match self.part {
            Part::One => (self.element, 1),
            Part::Turn => turn,
            Part::Few(count) => (self.element, count),
        }
    }
}

impl RegisterLoop {
    /// Runs the loop.
    ///
    /// # Safety
    /// `ins` and `outs` must be the memory of the node's operands and results; a result may be in the memory of the
    /// carried operand that it is the end of, and nowhere else in an operand's.
    pub unsafe fn run(&self, ins: &[*mut u8], outs: &[*mut u8]) {
        // SAFETY: the caller's contract; places, operands and results were numbered by the planner, and a register
        // of elements never reaches past the vectors' ends.
        unsafe {
            let steps = self.steps(ins);
            if steps == Some(0) {
                return copy(&self.carried, ins, outs);
            }
            // Results may be where scalars were, and those are needed for every register of elements.
            let scalars: SmallVec<[u64; 16]> =
                self.inputs.iter().map(|i| number(ins[i.operand], i.held, i.element)).collect();
            // Arrays are worked on where they end up.
            copy(&self.arrays, ins, outs);
            let turns = self.elements.div_ceil(self.lanes());
            if self.apart {
                let shared = Shared { registers: self, scalars: &scalars, ins, outs };
                let time = (turns * self.per_step * APART_STEPS) as u64;
                pool::share(time, turns.div_ceil(TURNS), &|_, k| shared.turns(k * TURNS..turns.min((k + 1) * TURNS)));
            } else {
                self.turns(0..turns, &scalars, steps, (ins, outs));
            }
            self.finish(steps.unwrap_or(0), ins, outs);
        }
    }

    /// Runs the program for some registers of elements.
    unsafe fn turns(
        &self,
        turns: Range<usize>,
        scalars: &[u64],
        steps: Option<usize>,
        (ins, outs): (&[*mut u8], &[*mut u8]),
    ) {
        let mut memory: SmallVec<[Place; 32]> = SmallVec::from_elem(Place([0; 16]), self.places);
        let base: *mut u8 = memory.as_mut_ptr().cast();
        self.constants(&mut memory);
        let lanes = self.lanes();
        for first in turns.map(|turn| turn * lanes) {
            let count = lanes.min(self.elements - first);
            // SAFETY: the caller's contract.
            unsafe {
                self.fill(&mut memory, scalars, (ins, outs), (first, count));
                let code = self.code.as_ptr();
                let start = if self.reverse { steps.unwrap_or(0).wrapping_sub(1) } else { 0 };
                loops::run(self.isa, code, code.add(self.head), base, start, steps.unwrap_or(0));
                let last = first + count == self.elements;
                for o in self.outputs.iter().filter(|o| o.part == Part::Turn || last) {
                    let place = &mut memory[o.at as usize / size_of::<Place>()];
                    let (from, count) = o.elements((first, count));
                    if place.move_lanes(self.lane, o.held, (outs[o.operand], from, count), true) {
                        continue;
                    }
                    (0..count).for_each(|i| put(outs[o.operand], o.held, from + i, place.get(self.lane, i)));
                }
            }
        }
    }

    /// The number of steps, where it is known before.
    unsafe fn steps(&self, ins: &[*mut u8]) -> Option<usize> {
        // SAFETY: the operands are scalars of that kind.
        let read = |operand: usize, held: Held| unsafe { number(ins[operand], held, 0) as i64 };
        match self.trips {
            Trips::Fixed(n) => Some(n),
            Trips::Below { first, limit, held } => {
                let limit = match limit {
                    Limit::Operand(at) => read(at, held),
                    Limit::Number(n) => n,
                };
                Some(usize::try_from(i128::from(limit) - i128::from(read(first, held))).unwrap_or(0))
            }
            Trips::Tested => None,
        }
    }

    /// Puts the constants in place, which nothing writes.
    fn constants(&self, memory: &mut [Place]) {
        for &(at, bits) in &self.constants {
            memory[at as usize / size_of::<Place>()].fill(self.lane, bits);
        }
        for (at, lanes) in &self.patterns {
            let place = &mut memory[*at as usize / size_of::<Place>()];
            lanes.iter().enumerate().for_each(|(i, &bits)| place.set(self.lane, i, bits));
        }
    }

    /// Puts the mask, operands and addresses in place for the elements from `first` on.
    unsafe fn fill(
        &self,
        memory: &mut [Place],
        scalars: &[u64],
        (ins, outs): (&[*mut u8], &[*mut u8]),
        (first, count): (usize, usize),
    ) {
        (0..self.lanes()).for_each(|i| memory[0].set(self.lane, i, if i < count { !0 } else { 0 }));
        for (input, &scalar) in self.inputs.iter().zip(scalars) {
            let place = &mut memory[input.at as usize / size_of::<Place>()];
            if input.part == Part::One {
                place.fill(self.lane, scalar);
                continue;
            }
            let (from, count) = input.elements((first, count));
            // SAFETY: the operand has these elements.
            if unsafe { place.move_lanes(self.lane, input.held, (ins[input.operand], from, count), false) } {
                continue;
            }
            for i in 0..count {
                // SAFETY: as above.
                place.set(self.lane, i, unsafe { number(ins[input.operand], input.held, from + i) });
            }
        }
        let base: *mut u8 = memory.as_mut_ptr().cast();
        for s in &self.streams {
            let array = if s.result { outs[s.index] } else { ins[s.index] };
            let array = array.wrapping_add(s.offset);
            let array = if s.vector { array.wrapping_add(first * self.lane.bytes()) } else { array };
            // SAFETY: the place is in the loop's memory.
            unsafe { base.add(s.at as usize).cast::<*mut u8>().write(array) };
        }
        for w in &self.windows {
            let array = if w.result { outs[w.index] } else { ins[w.index] };
            let lanes = if w.window.vector { first * self.lane.bytes() } else { 0 };
            let address = array.wrapping_add(w.window.offset + lanes) as u64;
            let words = [address, w.window.last as u64, w.window.step as u64];
            // SAFETY: as above.
            unsafe { base.add(w.window.at as usize).cast::<[u64; 3]>().write(words) };
        }
    }

    /// What needs no steps: carried values that stay, and counters.
    unsafe fn finish(&self, steps: usize, ins: &[*mut u8], outs: &[*mut u8]) {
        // SAFETY: the caller's contract; counters are scalars.
        unsafe {
            copy(&self.copies, ins, outs);
            for c in &self.counters {
                let first = number(ins[c.operand], c.held, 0);
                put(outs[c.result], c.held, 0, first.wrapping_add((c.step as u64).wrapping_mul(steps as u64)));
            }
        }
    }
}

unsafe fn copy(which: &[(usize, usize, usize)], ins: &[*mut u8], outs: &[*mut u8]) {
    for &(operand, result, bytes) in which {
        if ins[operand] != outs[result] {
            // SAFETY: both hold the carried value's bytes.
            unsafe { std::ptr::copy_nonoverlapping(ins[operand], outs[result], bytes) };
        }
    }
}

/// The lane of an element.
unsafe fn number(array: *const u8, held: Held, at: usize) -> u64 {
    // SAFETY: the caller's array has the element.
    unsafe {
        match held {
            Held::Flag => u64::from(*array.add(at)),
            Held::Signed => *array.cast::<i32>().add(at) as u64,
            Held::Four => u64::from(*array.cast::<u32>().add(at)),
            Held::Eight => *array.cast::<u64>().add(at),
        }
    }
}

/// Writes a lane as an element.
unsafe fn put(array: *mut u8, held: Held, at: usize, lane: u64) {
    // SAFETY: the caller's array has the element.
    unsafe {
        match held {
            Held::Flag => *array.add(at) = lane as u8,
            Held::Signed | Held::Four => *array.cast::<u32>().add(at) = lane as u32,
            Held::Eight => *array.cast::<u64>().add(at) = lane,
        }
    }
}
