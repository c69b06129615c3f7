//! Temporary arrays that are not needed at the same time share memory.
//!
//! An array is needed from the first step that touches it to the last. One that is touched inside a loop and outside of it
//! is needed while the loop runs; one that is touched inside alone is written anew in each iteration before it is read.
//! Arrays get the smallest gap that takes them, in the order in which they are first needed.

use super::Buffer;
use crate::program::{Argument, Place, Program, Span, Step};

/// Bytes that every array begins at a multiple of.
pub const ALIGNMENT: usize = 256;

/// Steps from the first to the last that an array is needed in.
#[derive(Clone, Copy)]
struct Life {
    first: usize,
    last: usize,
}

/// When arrays are touched.
struct Lives {
    /// Where arrays of the temporary memory begin, in order.
    begins: Vec<usize>,
    lives: Vec<Option<Life>>,
    /// The number of the step.
    now: usize,
}

impl Lives {
    fn find(&self, span: &Span) -> Option<usize> {
        (span.place == Place::Arena).then(|| self.begins.partition_point(|&b| b <= span.offset) - 1)
    }

    fn touch(&mut self, span: &Span) {
        if let Some(k) = self.find(span) {
            let now = self.now;
            let life = self.lives[k].get_or_insert(Life { first: now, last: now });
            (life.first, life.last) = (life.first.min(now), life.last.max(now));
        }
    }

    fn steps(&mut self, steps: &[Step], loops: &mut Vec<Life>) {
        for step in steps {
            self.now += 1;
            match step {
                Step::Launch(launch) => {
                    for arg in &launch.args {
                        if let Argument::Memory(span) = arg {
                            self.touch(span);
                        }
                    }
                }
                Step::Copy { from, to } => {
                    self.touch(from);
                    self.touch(to);
                }
                Step::Fill { to, .. } => self.touch(to),
                Step::Call { reads, writes, .. } => reads.iter().chain(writes).for_each(|span| self.touch(span)),
                Step::While { cond, flag, body } => {
                    let first = self.now;
                    self.touch(flag);
                    self.steps(cond, loops);
                    self.now += 1;
                    self.touch(flag);
                    self.steps(body, loops);
                    loops.push(Life { first, last: self.now });
                }
                Step::Repeat { counter, body, .. } => {
                    // The number is there before an iteration begins, and the next one after it ends.
                    let first = self.now;
                    self.touch(counter);
                    self.steps(body, loops);
                    self.now += 1;
                    self.touch(counter);
                    loops.push(Life { first, last: self.now });
                }
                Step::Switch { index, branches } => {
                    self.touch(index);
                    branches.iter().for_each(|branch| self.steps(branch, loops));
                }
            }
        }
    }
}

/// Gives arrays of the temporary memory their places.
pub fn share(program: &mut Program, buffers: &[Buffer]) {
    let spans: Vec<Span> = buffers.iter().map(|b| b.span).filter(|s| s.place == Place::Arena).collect();
    let begins: Vec<usize> = spans.iter().map(|s| s.offset).collect();
    let mut lives = Lives { lives: vec![None; begins.len()], begins, now: 0 };
    let mut loops = Vec::new();
    lives.steps(&program.steps, &mut loops);
    for life in lives.lives.iter_mut().flatten() {
        // Inner loops end before outer ones do.
        for turn in &loops {
            let touches = life.first <= turn.last && turn.first <= life.last;
            let within = turn.first <= life.first && life.last <= turn.last;
            if touches && !within {
                (life.first, life.last) = (life.first.min(turn.first), life.last.max(turn.last));
            }
        }
    }
    let sizes: Vec<usize> = spans.iter().map(|s| s.bytes.next_multiple_of(ALIGNMENT)).collect();
    let (places, total) = pack(&lives.lives, &sizes);
    let moved = |span: &mut Span| {
        if let Some(k) = lives.find(span) {
            span.offset = span.offset - lives.begins[k] + places[k];
        }
    };
    each_span(&mut program.steps, &moved);
    program.arena = total;
}

/// A place for each array, and what they take together.
fn pack(lives: &[Option<Life>], sizes: &[usize]) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..lives.len()).filter(|&k| lives[k].is_some()).collect();
    order.sort_by_key(|&k| lives[k].map_or(0, |l| l.first));
    let mut places = vec![0; lives.len()];
    let mut total = 0;
    // Arrays that are there, by their places: place, end, last step.
    let mut there: Vec<(usize, usize, usize)> = Vec::new();
    for k in order {
        let Some(life) = lives[k] else { continue };
        there.retain(|a| a.2 >= life.first);
        let (mut best, mut end) = (None, 0);
        for &(begin, until, _) in &there {
            if begin >= end + sizes[k] && best.is_none_or(|(gap, _)| begin - end < gap) {
                best = Some((begin - end, end));
            }
            end = end.max(until);
        }
        let place = best.map_or(end, |(_, place)| place);
        places[k] = place;
        total = total.max(place + sizes[k]);
        if sizes[k] > 0 {
            let at = there.partition_point(|a| a.0 < place);
            there.insert(at, (place, place + sizes[k], life.last));
        }
    }
    (places, total)
}

fn each_span(steps: &mut [Step], see: &dyn Fn(&mut Span)) {
    for step in steps {
        match step {
            Step::Launch(launch) => {
                for arg in &mut launch.args {
                    if let Argument::Memory(span) = arg {
                        see(span);
                    }
                }
            }
            Step::Copy { from, to } => {
                see(from);
                see(to);
            }
            Step::Fill { to, .. } => see(to),
            Step::Call { reads, writes, .. } => reads.iter_mut().chain(writes).for_each(see),
            Step::While { cond, flag, body } => {
                see(flag);
                each_span(cond, see);
                each_span(body, see);
            }
            Step::Repeat { counter, body, .. } => {
                see(counter);
                each_span(body, see);
            }
            Step::Switch { index, branches } => {
                see(index);
                branches.iter_mut().for_each(|branch| each_span(branch, see));
            }
        }
    }
}
