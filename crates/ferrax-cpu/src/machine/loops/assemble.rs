//! Puts a register loop together: operations on numbered values become instructions, values get registers.
//!
//! One pass over a straight line of operations. A value is in a register, in a place of the loop's memory, or both;
//! when registers run out, the value whose next use is farthest goes to memory. Carried values have a home, a
//! register or a place, where each step finds them and the end of a step puts the next ones. Registers 0 and 1 are
//! never homes: handlers compiled from Rust work there.
//! Read next: `plan/registers/mod.rs`, which drives this.

use super::families::{self, Access, Family, One, Two, Width, registers};
use super::fuse::{Fused, Span, fuse};
use crate::machine::handler::{Handler, Instr};
use crate::simd::Isa;
use smallvec::SmallVec;

/// The number of a value.
pub type Val = u32;

/// One operation; `d` is the value it makes.
#[derive(Clone, Copy, PartialEq)]
#[allow(missing_docs)]
pub enum Op {
    Two {
        op: Two,
        d: Val,
        a: Val,
        b: Val,
    },
    One {
        op: One,
        d: Val,
        a: Val,
    },
    /// d = a · b + c, rounded once.
    Fma {
        d: Val,
        a: Val,
        b: Val,
        c: Val,
    },
    /// d = `on_true` where `which` is 1, else `on_false`.
    Choose {
        d: Val,
        which: Val,
        on_false: Val,
        on_true: Val,
    },
    /// A handler on register 0, for this many lanes.
    Call {
        code: Handler,
        imm: u64,
        lanes: u16,
        d: Val,
        a: Val,
    },
    /// A handler on registers 0 and 1.
    CallTwo {
        code: Handler,
        imm: u64,
        lanes: u16,
        d: Val,
        a: Val,
        b: Val,
    },
    /// d = this step's element of the array whose address is at `pointer`. A masked access has its mask at `mask`.
    Read {
        access: Access,
        pointer: u32,
        mask: u32,
        stride: usize,
        d: Val,
    },
    /// This step's element = a.
    Write {
        access: Access,
        pointer: u32,
        mask: u32,
        stride: usize,
        a: Val,
    },
    /// d = the element of an array at an index, clamped; `window` is the place of its address, largest index and step.
    Fetch {
        access: Access,
        window: u32,
        mask: u32,
        index: Val,
        d: Val,
    },
    /// d = the elements of an array that the lanes of `numbers` name; `window` is the place of its address.
    Gather {
        window: u32,
        numbers: Val,
        d: Val,
    },
    /// The element of an array at an index, clamped, or left as it is where the index is `checked` and outside, = a.
    Put {
        access: Access,
        window: u32,
        mask: u32,
        index: Val,
        a: Val,
        checked: bool,
    },
    /// What comes before the `Join` that belongs to it is left out where `which` is 0: only a choice by that may read what
    /// it makes.
    Skip {
        which: Val,
    },
    Join,
    /// The place at `at` = a.
    Set {
        at: u32,
        a: Val,
    },
    /// The loop inside of the step that has this number begins: what it carries is where `Set` or the last step put it.
    Head {
        number: u32,
    },
    /// a is what a step of the loop leaves of what it carries; `Next` puts all of that where the next step finds it.
    Out {
        a: Val,
    },
    Next {
        number: u32,
    },
    /// Back to the head where `done` is 0.
    Again {
        number: u32,
        done: Val,
    },
}

/// A value that an inner loop carries.
#[derive(Clone, Copy)]
pub struct Kept {
    /// What it is in a step, what the step makes of it, and how that is called afterwards.
    pub param: Val,
    pub out: Val,
    pub next: Val,
    /// What it is after the loop, and the place that has it then, and before it.
    pub result: Val,
    pub at: u32,
}

/// An inner loop.
#[derive(Default)]
struct Inner {
    carried: Vec<Kept>,
    /// Its first instruction.
    start: usize,
}

impl Inner {
    /// Where what it carries is at the start of a step, by values of these.
    fn homes(&self, of: impl Fn(&Kept) -> Val) -> Vec<(Val, Home)> {
        self.carried.iter().enumerate().map(|(k, kept)| (of(kept), nth_home(k, kept.at))).collect()
    }
}

/// The home of a loop's carried value number `k`, whose place would be at `at`.
fn nth_home(k: usize, at: u32) -> Home {
    if k < HOMES { Home::Register(FIRST_HOME + k as u8) } else { Home::Memory(at) }
}

impl Op {
    /// The operands.
    pub fn operands(&self) -> ([Val; 3], usize) {
        match *self {
            Op::Two { a, b, .. } | Op::CallTwo { a, b, .. } => ([a, b, 0], 2),
            Op::One { a, .. } | Op::Call { a, .. } | Op::Write { a, .. } => ([a, 0, 0], 1),
            Op::Fetch { index: a, .. } | Op::Gather { numbers: a, .. } => ([a, 0, 0], 1),
            Op::Put { index, a, .. } => ([index, a, 0], 2),
            Op::Choose { which, on_false, on_true, .. } => ([which, on_false, on_true], 3),
            Op::Fma { a, b, c, .. } => ([a, b, c], 3),
            Op::Skip { which: a } | Op::Set { a, .. } | Op::Out { a } | Op::Again { done: a, .. } => ([a, 0, 0], 1),
            Op::Read { .. } | Op::Join | Op::Head { .. } | Op::Next { .. } => ([0; 3], 0),
        }
    }

    /// Whether it reads a value.
    pub fn reads(&self, v: Val) -> bool {
        let (all, count) = self.operands();
        all[..count].contains(&v)
    }

    /// The value it makes.
    pub fn result(&self) -> Option<Val> {
        match *self {
            Op::Two { d, .. }
            | Op::One { d, .. }
            | Op::Fma { d, .. }
            | Op::Choose { d, .. }
            | Op::Call { d, .. }
            | Op::CallTwo { d, .. }
            | Op::Read { d, .. }
            | Op::Fetch { d, .. }
            | Op::Gather { d, .. } => Some(d),
            Op::Write { .. } | Op::Put { .. } | Op::Skip { .. } | Op::Join | Op::Set { .. } => None,
            Op::Head { .. } | Op::Out { .. } | Op::Next { .. } | Op::Again { .. } => None,
        }
    }

    /// Whether it makes what another one makes. Memory may have changed in between.
    pub fn same_as(&self, other: &Op) -> bool {
        let (mut a, b) = (*self, *other);
        if let (
            Op::Two { d, .. }
            | Op::One { d, .. }
            | Op::Fma { d, .. }
            | Op::Choose { d, .. }
            | Op::Call { d, .. }
            | Op::CallTwo { d, .. },
            Some(of),
        ) = (&mut a, b.result())
        {
            *d = of;
            return a == b;
        }
        false
    }
}

/// Where a carried value is at the start of each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// A register.
    Register(u8),
    /// An offset in the loop's memory.
    Memory(u32),
}

/// Bytes of a place.
pub const PLACE: u32 = 64;
/// The first register that may be a home.
const FIRST_HOME: u8 = 2;
/// Registers that may be homes: what is left is enough for any operation.
pub const HOMES: usize = 5;
const REGISTERS: usize = 8;

#[derive(Clone, Copy, Default)]
struct Info {
    register: Option<u8>,
    memory: Option<u32>,
    /// Whether it went to memory because registers ran out: its place is another value's once it is not needed.
    spilled: bool,
    /// When the section's last operation that reads it is done; `usize::MAX` if it lives on.
    last: usize,
    /// The register where it should be at the end of the section.
    wanted: Option<u8>,
}

/// The immediate that names two places.
fn places(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// A loop being put together.
pub struct Assembler {
    isa: Isa,
    lane: Width,
    values: Vec<Info>,
    held: [Option<Val>; REGISTERS],
    /// Registers that keep their values.
    pinned: [bool; REGISTERS],
    /// Registers where values of the section should end up.
    wanted: [bool; REGISTERS],
    /// The instructions.
    pub code: Vec<Instr>,
    /// The bytes that their handlers take.
    spans: Vec<Span>,
    /// Bytes of the loop's memory in use.
    pub memory: u32,
    /// Places of values that ran out of registers and are not needed any more.
    free: Vec<u32>,
    /// When the section's operations read each value, one value after the other, and where those of each begin.
    reads: Vec<u32>,
    first_read: Vec<u32>,
    /// Instructions that jump ahead to where it is not known yet.
    skips: Vec<usize>,
    /// Instructions that are jumped to.
    joins: Vec<usize>,
    inner: Vec<Inner>,
}

impl Assembler {
    /// An empty loop, whose memory begins with `memory` bytes in use.
    pub fn new(isa: Isa, lane: Width, memory: u32) -> Self {
        Assembler {
            isa,
            lane,
            values: Vec::new(),
            held: [None; REGISTERS],
            pinned: [false; REGISTERS],
            wanted: [false; REGISTERS],
            code: Vec::new(),
            spans: Vec::new(),
            memory,
            free: Vec::new(),
            reads: Vec::new(),
            first_read: Vec::new(),
            skips: Vec::new(),
            joins: Vec::new(),
            inner: Vec::new(),
        }
    }

    /// A new value.
    pub fn value(&mut self) -> Val {
        self.values.push(Info::default());
        self.values.len() as Val - 1
    }

    /// A new place of the loop's memory.
    pub fn place(&mut self) -> u32 {
        self.memory += PLACE;
        self.memory - PLACE
    }

    /// Gives a value a place of its own, from which it can always be read.
    pub fn in_memory(&mut self, v: Val) -> u32 {
        let at = self.place();
        self.values[v as usize].memory = Some(at);
        at
    }

    /// Forgets which registers hold what, and says where carried values are.
    pub fn at_home(&mut self, carried: &[(Val, Home)]) {
        for v in self.held.iter_mut().filter_map(Option::take) {
            self.values[v as usize].register = None;
        }
        for &(v, home) in carried {
            let info = &mut self.values[v as usize];
            (info.register, info.memory) = (None, None);
            match home {
                Home::Register(r) => {
                    info.register = Some(r);
                    self.held[r as usize] = Some(v);
                }
                Home::Memory(at) => info.memory = Some(at),
            }
        }
    }

    /// The home of the carried value number `k`.
    pub fn home(&mut self, k: usize) -> Home {
        let at = if k < HOMES { 0 } else { self.place() };
        nth_home(k, at)
    }

    /// The number of a new loop inside of a step.
    pub fn inner_loop(&mut self) -> u32 {
        self.inner.push(Inner::default());
        self.inner.len() as u32 - 1
    }

    /// How many there are.
    pub fn inner_loops(&self) -> usize {
        self.inner.len()
    }

    /// Says what an inner loop carries.
    pub fn carries(&mut self, number: u32, carried: Vec<Kept>) {
        self.inner[number as usize].carried = carried;
    }

    /// An instruction of a family.
    pub fn push(&mut self, family: Family, all: &[u8], imm: u64, stride: usize) {
        self.spans.push(Span::Next(family.bytes()));
        let code = family.code(self.isa, registers(all));
        let part = |k: usize| (stride >> (16 * k)) as u16;
        self.code.push(Instr { code, imm, p: part(0), q: part(1), ps: part(2), qs: part(3) });
    }

    /// An instruction that moves control.
    pub fn control(&mut self, family: Family, all: &[u8], imm: u64) {
        self.push(family, all, imm, 0);
        if let Some(last) = self.spans.last_mut() {
            *last = Span::Control(family.bytes());
        }
    }

    /// Lets the handlers of the finished program run without jumps between them. `targets` are the instructions that are
    /// jumped to beside those of branches.
    pub fn fuse(&mut self, targets: &[usize]) -> Option<Fused> {
        self.joins.extend(targets);
        fuse(&mut self.code, &self.spans, &self.joins)
    }

    /// Ends the program.
    pub fn finish(&mut self, h: Handler) {
        self.foreign(Instr { code: self.isa.code(h), imm: 0, p: 0, q: 0, ps: 0, qs: 0 });
    }

    /// An instruction of a handler that is in no family.
    fn foreign(&mut self, instr: Instr) {
        self.spans.push(Span::Foreign);
        self.code.push(instr);
    }

    /// A register from memory.
    pub fn load(&mut self, r: u8, at: u32) {
        self.push(families::load(), &[r], u64::from(at), 0);
    }

    /// Memory from a register.
    pub fn store(&mut self, r: u8, at: u32) {
        self.push(families::store(), &[r], u64::from(at), 0);
    }

    /// Keeps a value in memory, out of registers.
    pub fn keep(&mut self, v: Val) {
        self.save(v);
        self.values[v as usize].spilled = false;
        if let Some(r) = self.register(v) {
            self.forget(r);
        }
    }

    /// The place of a value that has one.
    pub fn memory_of(&self, v: Val) -> Option<u32> {
        self.values[v as usize].memory
    }

    /// Says that a home keeps its value.
    pub fn pin(&mut self, home: Home) {
        if let Home::Register(r) = home {
            self.pinned[r as usize] = true;
        }
    }

    /// A register that holds a value, loaded if need be.
    pub fn held_in(&mut self, v: Val) -> u8 {
        match self.register(v) {
            Some(r) => r,
            None => {
                self.load(0, self.values[v as usize].memory.unwrap_or(0));
                0
            }
        }
    }

    fn register(&self, v: Val) -> Option<u8> {
        self.values[v as usize].register
    }

    fn set(&mut self, r: u8, v: Val) {
        if let Some(old) = self.held[r as usize].replace(v)
            && self.values[old as usize].register == Some(r)
        {
            self.values[old as usize].register = None;
        }
        if let Some(other) = self.values[v as usize].register.replace(r)
            && other != r
        {
            self.held[other as usize] = None;
        }
    }

    /// Whether nothing that comes after time `done` needs what a register holds. Operation `i` reads its operands
    /// at time `i` and is done at `i + 1`.
    fn is_free(&self, r: u8, done: usize) -> bool {
        !self.pinned[r as usize] && self.held[r as usize].is_none_or(|v| self.values[v as usize].last <= done)
    }

    /// Makes sure that a value survives the loss of its register.
    fn save(&mut self, v: Val) {
        let info = self.values[v as usize];
        if let (Some(r), None) = (info.register, info.memory) {
            let at = self.free.pop().unwrap_or_else(|| self.place());
            let info = &mut self.values[v as usize];
            (info.memory, info.spilled) = (Some(at), true);
            self.store(r, at);
        }
    }

    /// Frees the places of what operation `i` was the last to need.
    fn release(&mut self, i: usize, op: &Op) {
        let (all, count) = op.operands();
        for &v in &all[..count] {
            let info = &mut self.values[v as usize];
            if info.spilled && info.last <= i + 1 {
                info.spilled = false;
                self.free.extend(info.memory.take());
            }
        }
    }

    fn forget(&mut self, r: u8) {
        if let Some(v) = self.held[r as usize].take() {
            self.values[v as usize].register = None;
        }
    }

    /// Which operation of the section, from one on, is the next to read a value.
    fn next_read(&self, v: Val, from: usize) -> Option<usize> {
        let (start, end) = (self.first_read[v as usize] as usize, self.first_read[v as usize + 1] as usize);
        let reads = &self.reads[start..end];
        reads.get(reads.partition_point(|&i| (i as usize) < from)).map(|&i| i as usize)
    }

    /// What an inner loop reads that was made before it is needed up to its end, and what it leaves until it is in place.
    fn note_loops(&mut self, ops: &[Op]) {
        if !ops.iter().any(|op| matches!(op, Op::Head { .. })) {
            return;
        }
        let mut made = vec![0; self.values.len()];
        let mut heads = Vec::new();
        for (i, op) in ops.iter().enumerate() {
            match *op {
                Op::Head { number } => {
                    heads.push(i);
                    self.inner[number as usize].carried.iter().for_each(|kept| made[kept.param as usize] = i + 1);
                }
                Op::Next { number } => {
                    for kept in &self.inner[number as usize].carried {
                        made[kept.next as usize] = i + 1;
                        let last = &mut self.values[kept.out as usize].last;
                        *last = (*last).max(i + 1);
                    }
                }
                _ => {}
            }
            if let Some(d) = op.result() {
                made[d as usize] = i + 1;
            }
            if matches!(op, Op::Again { .. }) {
                let head = heads.pop().unwrap_or(0);
                for op in &ops[head..=i] {
                    let (all, count) = op.operands();
                    for &v in all[..count].iter().filter(|&&v| made[v as usize] <= head) {
                        self.values[v as usize].last = self.values[v as usize].last.max(i + 1);
                    }
                }
            }
        }
    }

    /// Notes which operations read what.
    fn note_reads(&mut self, ops: &[Op]) {
        let mut ends = vec![0u32; self.values.len() + 1];
        let each = |f: &mut dyn FnMut(usize, Val)| {
            for (i, op) in ops.iter().enumerate() {
                let (all, count) = op.operands();
                all[..count].iter().for_each(|&v| f(i, v));
            }
        };
        each(&mut |_, v| ends[v as usize + 1] += 1);
        for v in 0..self.values.len() {
            ends[v + 1] += ends[v];
        }
        self.first_read.clone_from(&ends);
        self.reads = vec![0; ends[self.values.len()] as usize];
        each(&mut |i, v| {
            self.reads[ends[v as usize] as usize] = i as u32;
            ends[v as usize] += 1;
        });
    }

    /// A register to overwrite at time `done`: a free one, or that of the value needed last.
    fn take(&mut self, done: usize, avoid: &[u8]) -> u8 {
        let order = [7u8, 6, 5, 4, 3, 2, 0, 1];
        let free = |s: &Self, r: u8| !avoid.contains(&r) && s.is_free(r, done);
        if let Some(&r) = order.iter().find(|&&r| free(self, r) && !self.wanted[r as usize]) {
            return r;
        }
        if let Some(&r) = order.iter().find(|&&r| free(self, r)) {
            return r;
        }
        let next_use = |v: Val| self.next_read(v, done).unwrap_or(usize::MAX);
        let candidates = order.iter().filter(|&&r| !avoid.contains(&r) && !self.pinned[r as usize]);
        let farthest = candidates.max_by_key(|&&r| self.held[r as usize].map_or(0, next_use));
        let r = farthest.copied().unwrap_or(0);
        if let Some(v) = self.held[r as usize] {
            self.save(v);
        }
        self.forget(r);
        r
    }

    /// The register of an operand of operation `i`, loaded if need be.
    fn operand(&mut self, i: usize, v: Val, avoid: &[u8]) -> u8 {
        if let Some(r) = self.register(v) {
            return r;
        }
        let r = self.take(i, avoid);
        self.load(r, self.values[v as usize].memory.unwrap_or(0));
        self.set(r, v);
        r
    }

    /// The register for the result of operation `i`.
    fn target(&mut self, ops: &[Op], i: usize, d: Val, avoid: &[u8]) -> u8 {
        let wanted = self.values[d as usize].wanted;
        if let Some(r) = wanted.filter(|r| self.is_free(*r, i + 1) && !avoid.contains(r)) {
            return r;
        }
        // What a handler of Rust takes next is best made where it takes it.
        let called = |op: &Op| match *op {
            Op::Call { a, .. } | Op::CallTwo { a, .. } if a == d => Some(0),
            Op::CallTwo { b, .. } if b == d => Some(1),
            _ => None,
        };
        if let Some(r) = ops.get(i + 1).and_then(called)
            && self.is_free(r, i + 1)
            && !avoid.contains(&r)
        {
            return r;
        }
        self.take(i + 1, avoid)
    }

    /// Appends a straight line of operations. Values in `live_out` are needed after it, the others that it makes
    /// are not; `wanted` says where some should end up.
    pub fn section(&mut self, ops: &[Op], live_out: &[Val], wanted: &[(Val, Home)]) {
        for info in &mut self.values {
            (info.last, info.wanted) = (0, None);
        }
        self.wanted = [false; REGISTERS];
        for (i, op) in ops.iter().enumerate() {
            let (all, count) = op.operands();
            all[..count].iter().for_each(|&v| self.values[v as usize].last = i + 1);
        }
        self.note_loops(ops);
        self.note_reads(ops);
        for &v in live_out {
            self.values[v as usize].last = usize::MAX;
        }
        for &(v, home) in wanted {
            if let Home::Register(r) = home {
                self.values[v as usize].wanted = Some(r);
                self.wanted[r as usize] = true;
            }
        }
        for (i, op) in ops.iter().enumerate() {
            self.emit(ops, i, op);
            self.release(i, op);
        }
    }

    fn emit(&mut self, ops: &[Op], i: usize, op: &Op) {
        match *op {
            Op::Two { op, d, a, b } => self.two(ops, i, op, (d, a, b)),
            Op::One { op, d, a } => {
                let x = self.operand(i, a, &[]);
                let r = self.target(ops, i, d, &[]);
                self.push(op.family(self.lane), &[r, x], 0, 0);
                self.set(r, d);
            }
            Op::Fma { d, a, b, c } => self.fma(ops, i, d, (a, b, c)),
            Op::Choose { d, which, on_false, on_true } => self.choose(ops, i, d, (which, on_false, on_true)),
            Op::Call { code, imm, lanes, d, a } => {
                self.bring(i, a, None);
                self.call(code, imm, lanes, d);
            }
            Op::CallTwo { code, imm, lanes, d, a, b } => {
                self.bring(i, a, Some(b));
                self.call(code, imm, lanes, d);
            }
            Op::Read { access, pointer, mask, stride, d } => {
                let r = self.target(ops, i, d, &[]);
                self.push(families::read(access, self.lane), &[r], places(pointer, mask), stride);
                self.set(r, d);
            }
            Op::Write { access, pointer, mask, stride, a } => {
                let r = self.operand(i, a, &[]);
                self.push(families::write(access, self.lane), &[r], places(pointer, mask), stride);
            }
            Op::Fetch { access, window, mask, index, d } => {
                let x = self.operand(i, index, &[]);
                let r = self.target(ops, i, d, &[]);
                self.push(families::fetch(access, self.lane), &[r, x], places(window, mask), 0);
                self.set(r, d);
            }
            Op::Gather { window, numbers, d } => {
                let x = self.operand(i, numbers, &[]);
                let r = self.target(ops, i, d, &[]);
                self.push(families::gather(self.lane), &[r, x], u64::from(window), 0);
                self.set(r, d);
            }
            Op::Put { access, window, mask, index, a, checked } => {
                let held: Vec<u8> = [index, a].iter().filter_map(|&v| self.register(v)).collect();
                let x = self.operand(i, index, &held);
                let r = self.operand(i, a, &[x]);
                self.push(families::put(access, checked, self.lane), &[r, x], places(window, mask), 0);
            }
            Op::Skip { which } => self.skip(i, which),
            Op::Join => self.join(),
            Op::Set { at, a } => {
                let r = self.operand(i, a, &[]);
                self.store(r, at);
            }
            Op::Head { number } => self.head(i, number as usize),
            Op::Out { .. } => {}
            Op::Next { number } => self.next(i, number as usize),
            Op::Again { number, done } => self.again(i, number as usize, done),
        }
    }

    /// Sees to it that what is needed after operation `i` is in memory.
    fn save_needed(&mut self, i: usize) {
        for v in self.held.iter().flatten().copied().collect::<SmallVec<[Val; REGISTERS]>>() {
            if self.values[v as usize].last > i + 1 {
                self.save(v);
            }
        }
    }

    /// The head of an inner loop: it is jumped to with what the loop carries at home, and all else in memory.
    fn head(&mut self, i: usize, number: usize) {
        self.save_needed(i);
        let homes = self.inner[number].homes(|kept| kept.param);
        self.at_home(&homes);
        for (k, (_, home)) in homes.into_iter().enumerate() {
            if let Home::Register(r) = home {
                self.load(r, self.inner[number].carried[k].at);
            }
        }
        self.inner[number].start = self.code.len();
        self.joins.push(self.code.len());
    }

    /// The end of an inner loop's step; the condition, which follows, leaves what the loop carries where it is.
    fn next(&mut self, i: usize, number: usize) {
        self.save_needed(i);
        self.settle(&self.inner[number].homes(|kept| kept.out));
        let homes = self.inner[number].homes(|kept| kept.next);
        self.at_home(&homes);
        homes.iter().for_each(|h| self.pin(h.1));
    }

    /// The jump back. After the loop, what it carries is in its places.
    fn again(&mut self, i: usize, number: usize, done: Val) {
        let r = self.operand(i, done, &[]);
        let back = (self.code.len() - self.inner[number].start) * size_of::<Instr>();
        self.control(families::skip(), &[r], (back as u64).wrapping_neg());
        for (k, (_, home)) in self.inner[number].homes(|kept| kept.next).into_iter().enumerate() {
            if let Home::Register(r) = home {
                self.store(r, self.inner[number].carried[k].at);
                self.pinned[r as usize] = false;
                self.forget(r);
            }
        }
    }

    /// The jump over operations. What is needed after it is in memory from here on: registers differ at the join.
    fn skip(&mut self, i: usize, which: Val) {
        let r = self.operand(i, which, &[]);
        self.save_needed(i);
        self.skips.push(self.code.len());
        self.control(families::skip(), &[r], 0);
    }

    /// Where the jump goes: what has no place in memory was made after it, and means nothing to who came that way.
    fn join(&mut self) {
        let here = self.code.len();
        if let Some(at) = self.skips.pop() {
            self.code[at].imm = ((here - at) * size_of::<Instr>()) as u64;
        }
        self.joins.push(here);
        for r in 0..REGISTERS as u8 {
            if self.held[r as usize].is_some_and(|v| self.values[v as usize].memory.is_some()) {
                self.forget(r);
            }
        }
    }

    fn two(&mut self, ops: &[Op], i: usize, op: Two, (d, a, b): (Val, Val, Val)) {
        if self.register(a).is_none() && self.register(b).is_none() {
            self.operand(i, a, &[]);
        }
        let pair = op.pair(self.lane);
        let at = |s: &Self, v: Val| u64::from(s.values[v as usize].memory.unwrap_or(0));
        let (x, y) = (self.register(a), self.register(b));
        let (ma, mb) = (at(self, a), at(self, b));
        let r = self.target(ops, i, d, &[]);
        match (x, y) {
            (Some(x), Some(y)) => self.push(pair.registers, &[r, x, y], 0, 0),
            (Some(x), None) => self.push(pair.memory, &[r, x], mb, 0),
            (None, Some(y)) if op.commutes() => self.push(pair.memory, &[r, y], ma, 0),
            (_, y) => self.push(pair.memory_first, &[r, y.unwrap_or(0)], ma, 0),
        }
        self.set(r, d);
    }

    fn choose(&mut self, ops: &[Op], i: usize, d: Val, (which, on_false, on_true): (Val, Val, Val)) {
        let mut kept: Vec<u8> = [which, on_false, on_true].iter().filter_map(|&v| self.register(v)).collect();
        let p = self.operand(i, which, &kept);
        kept.push(p);
        let t = self.operand(i, on_true, &kept);
        let r = self.over(ops, i, d, on_false, &[(which, p), (on_true, t)]);
        self.push(families::choose(self.lane), &[r, p, t], 0, 0);
        self.set(r, d);
    }

    fn fma(&mut self, ops: &[Op], i: usize, d: Val, (a, b, c): (Val, Val, Val)) {
        // The factor that is in memory may stay there.
        let (a, b) = if self.register(a).is_none() && self.register(b).is_some() { (b, a) } else { (a, b) };
        let kept: Vec<u8> = [a, b, c].iter().filter_map(|&v| self.register(v)).collect();
        let x = self.operand(i, a, &kept);
        match self.register(b) {
            Some(y) => {
                let r = self.over(ops, i, d, c, &[(a, x), (b, y)]);
                self.push(families::fma(self.lane).registers, &[r, x, y], 0, 0);
                self.set(r, d);
            }
            None => {
                let at = u64::from(self.values[b as usize].memory.unwrap_or(0));
                let r = self.over(ops, i, d, c, &[(a, x)]);
                self.push(families::fma(self.lane).memory, &[r, x], at, 0);
                self.set(r, d);
            }
        }
    }

    /// The register of the result of operation `i`, in which the value is that it works on; `others` are the operands
    /// beside it.
    fn over(&mut self, ops: &[Op], i: usize, d: Val, worked_on: Val, others: &[(Val, u8)]) -> u8 {
        let held = self.register(worked_on);
        let dies = self.values[worked_on as usize].last <= i + 1 && others.iter().all(|other| other.0 != worked_on);
        if let Some(r) = held.filter(|&r| dies && !self.pinned[r as usize]) {
            return r;
        }
        let avoid: SmallVec<[u8; 2]> = others.iter().map(|other| other.1).collect();
        let r = self.target(ops, i, d, &avoid);
        match held {
            Some(f) if f == r => {}
            Some(f) => self.push(One::Move.family(self.lane), &[r, f], 0, 0),
            None => self.load(r, self.values[worked_on as usize].memory.unwrap_or(0)),
        }
        r
    }

    /// A register beyond those of calls that is free at time `done`.
    fn spare(&self, done: usize) -> Option<u8> {
        (FIRST_HOME..REGISTERS as u8).rev().find(|&r| self.is_free(r, done))
    }

    /// Makes sure that what a register holds, if it is needed after time `done`, is elsewhere too.
    fn vacate(&mut self, r: u8, i: usize, done: usize) {
        if let Some(v) = self.held[r as usize]
            && self.values[v as usize].last > done
            && self.values[v as usize].memory.is_none()
        {
            if let Some(x) = self.spare(i) {
                self.push(One::Move.family(self.lane), &[x, r], 0, 0);
                self.set(x, v);
                return;
            }
            self.save(v);
        }
        self.forget(r);
    }

    /// Brings the operands of a call to registers 0 and 1; the first survives elsewhere if it is needed.
    fn bring(&mut self, i: usize, a: Val, b: Option<Val>) {
        if self.held[0] != Some(a) {
            self.vacate(0, i, i);
        }
        if let Some(b) = b.filter(|&b| self.held[1] != Some(b)) {
            self.vacate(1, i, i);
            self.fetch(1, b);
        }
        if self.held[0] == Some(a) {
            self.vacate(0, i, i + 1);
        } else {
            self.fetch(0, a);
        }
    }

    /// Copies a value to an empty register for the call that comes next.
    fn fetch(&mut self, r: u8, v: Val) {
        match self.register(v) {
            Some(x) => self.push(One::Move.family(self.lane), &[r, x], 0, 0),
            None => self.load(r, self.values[v as usize].memory.unwrap_or(0)),
        }
    }

    fn call(&mut self, code: Handler, imm: u64, lanes: u16, d: Val) {
        self.foreign(Instr { code: self.isa.code(code), imm, p: lanes, q: 0, ps: 0, qs: 0 });
        self.set(0, d);
    }

    /// Moves values to their homes, all at once.
    pub fn settle(&mut self, outs: &[(Val, Home)]) {
        let from = |s: &Self, v: Val| {
            let info = s.values[v as usize];
            info.register.map_or(Home::Memory(info.memory.unwrap_or(0)), Home::Register)
        };
        let mut moves: Vec<(Home, Home)> = outs.iter().map(|&(v, to)| (from(self, v), to)).collect();
        loop {
            moves.retain(|m| m.0 != m.1);
            if moves.is_empty() {
                return;
            }
            let blocked = |to: Home| moves.iter().any(|m| m.0 == to);
            if let Some(k) = moves.iter().position(|m| !blocked(m.1)) {
                let (from, to) = moves.swap_remove(k);
                self.transfer(from, to);
            } else {
                // A ring: one of its values waits in memory.
                let at = Home::Memory(self.place());
                self.transfer(moves[0].0, at);
                moves[0].0 = at;
            }
        }
    }

    fn transfer(&mut self, from: Home, to: Home) {
        match (from, to) {
            (Home::Register(x), Home::Register(r)) => self.push(One::Move.family(self.lane), &[r, x], 0, 0),
            (Home::Register(x), Home::Memory(at)) => self.store(x, at),
            (Home::Memory(at), Home::Register(r)) => self.load(r, at),
            (Home::Memory(x), Home::Memory(at)) => self.push(families::copy(), &[], u64::from(x), at as usize),
        }
    }
}
