//! Running a register loop: its memory is filled, the program runs once for each register of elements, and results
//! are taken from where it left them.

use super::{Input, Limit, RegisterLoop, Trips};
use crate::machine::loops;
use smallvec::SmallVec;

/// A place of the loop's memory.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Place([u32; 16]);

/// Lanes of a place.
const LANES: usize = 16;

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
            let mut memory: SmallVec<[Place; 32]> = SmallVec::from_elem(Place([0; LANES]), self.places);
            let base: *mut u8 = memory.as_mut_ptr().cast();
            // Results may be where scalars were, and those are needed for every register of elements.
            let scalars: SmallVec<[u32; 16]> =
                self.inputs.iter().map(|i| number(ins[i.operand], i.flag, i.element)).collect();
            // Arrays are worked on where they end up.
            copy(&self.arrays, ins, outs);
            let lanes = self.lanes();
            for first in (0..self.elements).step_by(lanes) {
                let count = lanes.min(self.elements - first);
                self.fill(&mut memory, &scalars, (ins, outs), (first, count));
                let code = self.code.as_ptr();
                let start = if self.reverse { steps.unwrap_or(0).wrapping_sub(1) } else { 0 };
                loops::run(self.isa, code, code.add(self.head), base, start, steps.unwrap_or(0));
                let last = first + count == self.elements;
                for o in self.outputs.iter().filter(|o| o.vector || last) {
                    let place = &memory[o.at as usize / size_of::<Place>()].0;
                    put(o, &place[..if o.vector { count } else { 1 }], outs[o.operand], first);
                }
            }
            self.finish(steps.unwrap_or(0), ins, outs);
        }
    }

    /// The number of steps, where it is known before.
    unsafe fn steps(&self, ins: &[*mut u8]) -> Option<usize> {
        // SAFETY: the operands are i32 scalars.
        let read = |operand: usize| i64::from(unsafe { *ins[operand].cast::<i32>() });
        match self.trips {
            Trips::Fixed(n) => Some(n),
            Trips::Below { first, limit } => {
                let limit = match limit {
                    Limit::Operand(at) => read(at),
                    Limit::Number(n) => i64::from(n),
                };
                Some(usize::try_from(limit - read(first)).unwrap_or(0))
            }
            Trips::Tested => None,
        }
    }

    /// Puts the mask, constants, operands and addresses in place for the elements from `first` on.
    unsafe fn fill(
        &self,
        memory: &mut [Place],
        scalars: &[u32],
        (ins, outs): (&[*mut u8], &[*mut u8]),
        (first, count): (usize, usize),
    ) {
        memory[0].0.iter_mut().enumerate().for_each(|(i, lane)| *lane = if i < count { !0 } else { 0 });
        for (at, lanes) in &self.constants {
            memory[*at as usize / size_of::<Place>()].0 = *lanes;
        }
        for (input, &scalar) in self.inputs.iter().zip(scalars) {
            let place = &mut memory[input.at as usize / size_of::<Place>()].0;
            if input.vector {
                for (i, lane) in place[..count].iter_mut().enumerate() {
                    // SAFETY: the operand has elements up to `first + count`.
                    *lane = unsafe { number(ins[input.operand], input.flag, first + i) };
                }
            } else {
                *place = [scalar; LANES];
            }
        }
        let base: *mut u8 = memory.as_mut_ptr().cast();
        for s in &self.streams {
            let array = if s.result { outs[s.index] } else { ins[s.index] };
            let array = array.wrapping_add(s.offset);
            let array = if s.vector { array.wrapping_add(first * size_of::<u32>()) } else { array };
            // SAFETY: the place is in the loop's memory.
            unsafe { base.add(s.at as usize).cast::<*mut u8>().write(array) };
        }
        for w in &self.windows {
            let array = if w.result { outs[w.index] } else { ins[w.index] };
            let lanes = if w.window.vector { first * size_of::<u32>() } else { 0 };
            let address = array.wrapping_add(w.window.offset + lanes) as u64;
            let words = [address, w.window.last as u64, w.window.step as u64];
            // SAFETY: as above.
            unsafe { base.add(w.window.at as usize).cast::<[u64; 3]>().write(words) };
        }
    }

    /// What needs no steps: carried values that stay, and counters.
    unsafe fn finish(&self, steps: usize, ins: &[*mut u8], outs: &[*mut u8]) {
        // SAFETY: the caller's contract; counters are scalars of 4 bytes.
        unsafe {
            copy(&self.copies, ins, outs);
            for c in &self.counters {
                let first = *ins[c.operand].cast::<i32>();
                *outs[c.result].cast::<i32>() = first.wrapping_add(c.step.wrapping_mul(steps as i32));
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
unsafe fn number(array: *const u8, flag: bool, at: usize) -> u32 {
    // SAFETY: the caller's array has the element.
    unsafe { if flag { u32::from(*array.add(at)) } else { *array.cast::<u32>().add(at) } }
}

/// Writes lanes as elements from `first` on.
unsafe fn put(o: &Input, lanes: &[u32], array: *mut u8, first: usize) {
    let first = if o.vector { first } else { o.element };
    for (i, &lane) in lanes.iter().enumerate() {
        // SAFETY: the result has the elements.
        unsafe {
            if o.flag {
                *array.add(first + i) = lane as u8;
            } else {
                *array.cast::<u32>().add(first + i) = lane;
            }
        }
    }
}
