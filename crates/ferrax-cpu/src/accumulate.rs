//! c + a ⊗ b in one pass, in the memory of c where that is free: what the gradient of a matrix is summed with in a loop.
//!
//! The bits are those of the product followed by the sum: each product is rounded, then added. In a scan whose body does
//! nothing else with the matrix, the factors of a few steps are kept and added together, in the order of the steps, so
//! that the matrix is read and written once for all of them.

use crate::dot::planned::Planned;
use crate::kernel::{FUSED, fma};
use crate::order::Order;
use crate::plan::{Donation, Planner};
use crate::program::Step;
use ferrax_base::DType;
use ferrax_loops::{BinaryOp, Graph, Kind, ValueId};

/// Elements of a sum at most: threads may share larger ones.
const MOST: usize = 1 << 16;

/// Steps whose factors are kept.
const KEPT: usize = 8;
/// Elements of a matrix that is worth it.
const WORTH: usize = 1 << 10;

/// A product that only a sum reads, by their nodes.
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    pub dot: u32,
    pub add: u32,
}

/// The pairs of a graph, in the order of their sums.
pub(crate) fn find(g: &Graph, live: &[bool]) -> Vec<Pair> {
    let mut uses: Vec<u32> = Vec::new();
    let mut pairs = Vec::new();
    for (i, node) in g.nodes.iter().enumerate().filter(|(i, _)| live[*i]) {
        let Kind::Dot(dims) = &node.kind else { continue };
        let out = g.ty(node.first);
        let outer = |p: Planned| p.is_outer() && out.size() <= MOST;
        if !Planned::new(dims, g.ty(node.inputs[0]), g.ty(node.inputs[1]), out).is_some_and(outer) {
            continue;
        }
        if uses.is_empty() {
            uses.resize(g.types.len(), 0);
            let inputs = g.nodes.iter().zip(live).filter(|n| *n.1).flat_map(|n| &n.0.inputs);
            inputs.chain(&g.outputs).for_each(|v| uses[v.0 as usize] += 1);
        }
        if uses[node.first.0 as usize] != 1 {
            continue;
        }
        let sum = g.nodes[i + 1..].iter().position(|n| n.inputs.contains(&node.first)).map(|at| i + 1 + at);
        let fits = |at: &usize| {
            let add = &g.nodes[*at];
            matches!(add.kind, Kind::Binary(BinaryOp::Add)) && add.inputs.iter().all(|v| g.ty(*v).size() == out.size())
        };
        // Of two products that one sum reads, the second is its other operand.
        let taken = |at: &usize| pairs.iter().any(|p: &Pair| p.add as usize == *at);
        if let Some(add) = sum.filter(|at| live[*at]).filter(fits).filter(|at| !taken(at)) {
            pairs.push(Pair { dot: i as u32, add: add as u32 });
        }
    }
    pairs
}

impl Pair {
    /// The sum's other operand.
    pub fn other(self, g: &Graph) -> ValueId {
        let (dot, add) = (&g.nodes[self.dot as usize], &g.nodes[self.add as usize]);
        if add.inputs[0] == dot.first { add.inputs[1] } else { add.inputs[0] }
    }

    /// All that the two read.
    pub fn inputs(self, g: &Graph) -> [ValueId; 3] {
        let dot = &g.nodes[self.dot as usize];
        [dot.inputs[0], dot.inputs[1], self.other(g)]
    }
}

/// A sum of this kind as it runs.
pub(crate) struct Accumulate {
    slots: [u32; 4],
    rows: usize,
    columns: usize,
    /// Elements from one row's factor to the next.
    step: isize,
    pub dot: u32,
    /// Where in the frame's memory the factors of some steps are kept, if they are.
    kept: Option<usize>,
}

impl Order<'_> {
    /// Makes a sum of this kind an item.
    pub fn accumulate(&mut self, pair: Pair) {
        let g = self.g;
        self.other(&g.nodes[pair.dot as usize]);
        self.other(&g.nodes[pair.add as usize]);
        self.items.push(crate::order::Item::Accumulate(pair));
    }
}

impl Planner<'_> {
    /// Appends a sum of this kind.
    pub fn emit_accumulate(&mut self, s: u32, pair: Pair) {
        let g = self.g;
        let out = g.nodes[pair.add as usize].first;
        let dot = &g.nodes[pair.dot as usize];
        let Kind::Dot(dims) = &dot.kind else { return };
        let (a, b) = (g.ty(dot.inputs[0]), g.ty(dot.inputs[1]));
        let Some((rows, columns, step)) = Planned::new(dims, a, b, g.ty(dot.first)).map(|p| p.outer()) else { return };
        let roots = pair.inputs(g).map(|v| self.order.dense_root(v));
        let [a, b, c] = roots.map(|r| self.slot[r as usize]);
        // Rows of the result are written before all of the factors are read.
        let free = roots[2] != roots[0] && roots[2] != roots[1];
        let bytes = g.ty(out).size() * DType::F32.size();
        let to = self.new_slot(s, out.0, bytes, if free { &roots[2..] } else { &[] });
        let waits = c == to && rows * columns >= WORTH && self.only_summed(roots[2], out);
        let kept = waits.then(|| {
            let bytes = KEPT * (rows + columns) * size_of::<f32>();
            self.out.kept_bytes += bytes.next_multiple_of(64);
            self.out.kept_bytes - bytes.next_multiple_of(64)
        });
        let sum = Accumulate { slots: [a, b, c, to], rows, columns, step, dot: pair.dot, kept };
        self.out.steps.push(Step::Accumulate(self.out.sums.len() as u32));
        self.out.sums.push(sum);
    }
}

impl Planner<'_> {
    /// Whether a scan carries a matrix that its body only adds to: what it is before the scan ends is not seen.
    fn only_summed(&self, before: u32, after: ValueId) -> bool {
        let Donation::Tied { waits: true, .. } = self.donation else { return false };
        let g = self.g;
        let root = |v: ValueId| self.order.plain_place(v).root;
        let inputs = g.nodes.iter().flat_map(|n| &n.inputs).map(|&v| root(v));
        let outputs = || g.outputs.iter().map(|&v| root(v));
        let (mut reads, mut others) = (0, 0);
        for r in inputs {
            reads += usize::from(r == before);
            others += usize::from(r == after.0);
        }
        reads == 1 && others == 0 && outputs().filter(|&r| r == after.0).count() == 1 && outputs().all(|r| r != before)
    }
}

impl Accumulate {
    /// The slots of the product's operands, of the other operand and of the result.
    pub fn slots(&self) -> [u32; 4] {
        self.slots
    }

    /// Computes the sum, or keeps its factors: `kept` is the memory for those of sums that wait, `waiting` counts them.
    ///
    /// # Safety
    /// `slots` must have the memory of the operands and of the result, which overlaps nothing but the other operand.
    pub unsafe fn run(&self, slots: &[*mut u8], kept: *mut u8, waiting: &mut usize) {
        let [a, b, c, out] = self.slots.map(|s| slots[s as usize].cast::<f32>());
        let (rows, columns) = (self.rows, self.columns);
        if let Some(at) = self.kept {
            // SAFETY: the caller's contract; the memory has room for the factors of `KEPT` steps.
            unsafe {
                let rest = kept.add(at).cast::<f32>();
                let (left, right) = (rest.add(*waiting * rows), rest.add(KEPT * rows + *waiting * columns));
                if self.step == 1 {
                    std::ptr::copy_nonoverlapping(a, left, rows);
                } else {
                    (0..rows).for_each(|i| left.add(i).write(*a.offset(i as isize * self.step)));
                }
                std::ptr::copy_nonoverlapping(b, right, columns);
                *waiting += 1;
                if *waiting == KEPT {
                    self.catch_up(slots, kept, waiting);
                }
            }
            return;
        }
        // SAFETY: the caller's contract; the factors are a row apart by `step`.
        unsafe {
            if c != out {
                std::ptr::copy_nonoverlapping(c, out, rows * columns);
            }
            let out = std::slice::from_raw_parts_mut(out, rows * columns);
            let b = std::slice::from_raw_parts(b, columns);
            #[cfg(target_arch = "x86_64")]
            match crate::machine::isa() {
                Some(crate::machine::Isa::Avx512) => return add_512(out, a, self.step, b),
                Some(crate::machine::Isa::Avx2) => return add_256(out, a, self.step, b),
                None => {}
            }
            add::<FUSED>(out, a, self.step, b);
        }
    }

    /// Adds what waits.
    ///
    /// # Safety
    /// As for `run`.
    pub unsafe fn catch_up(&self, slots: &[*mut u8], kept: *mut u8, waiting: &mut usize) {
        let Some(at) = self.kept.filter(|_| *waiting > 0) else { return };
        let (rows, columns, count) = (self.rows, self.columns, std::mem::take(waiting));
        // SAFETY: the factors of `count` steps are there; the caller's contract.
        unsafe {
            let left = std::slice::from_raw_parts(kept.add(at).cast::<f32>(), KEPT * rows);
            let right = std::slice::from_raw_parts(kept.add(at).cast::<f32>().add(KEPT * rows), count * columns);
            let out = std::slice::from_raw_parts_mut(slots[self.slots[3] as usize].cast::<f32>(), rows * columns);
            #[cfg(target_arch = "x86_64")]
            match crate::machine::isa() {
                Some(crate::machine::Isa::Avx512) => return several_512(out, left, right, columns),
                Some(crate::machine::Isa::Avx2) => return several_256(out, left, right, columns),
                None => {}
            }
            several::<FUSED, WIDE>(out, left, right, columns);
        }
    }
}

/// Columns that are summed together: two rows of them fit the registers, here those of 64 bytes.
#[cfg(target_arch = "x86_64")]
const WIDEST: usize = 64;
/// The same for smaller registers.
const WIDE: usize = 32;

/// Adds the products of the factors of some steps, one step after the other, W columns together.
#[inline(always)]
fn several<const F: bool, const W: usize>(out: &mut [f32], left: &[f32], right: &[f32], columns: usize) {
    let rows = out.len() / columns;
    for i in (0..rows / 2 * 2).step_by(2) {
        some_rows::<F, W, 2>(&mut out[i * columns..], (&left[i..], rows), right, columns);
    }
    if rows % 2 == 1 {
        some_rows::<F, W, 1>(&mut out[(rows - 1) * columns..], (&left[rows - 1..], rows), right, columns);
    }
}

/// `several` for the first rows: their factors are `step` apart.
#[inline(always)]
fn some_rows<const F: bool, const W: usize, const R: usize>(
    out: &mut [f32],
    (left, step): (&[f32], usize),
    right: &[f32],
    columns: usize,
) {
    let whole = columns / W * W;
    for c in (0..whole).step_by(W) {
        let mut sums = [[0.0; W]; R];
        for (r, sum) in sums.iter_mut().enumerate() {
            sum.copy_from_slice(&out[r * columns + c..][..W]);
        }
        for (k, y) in right.chunks_exact(columns).enumerate() {
            let y: &[f32; W] = y[c..].first_chunk().unwrap_or(&[0.0; W]);
            let x: &[f32; R] = left[k * step..].first_chunk().unwrap_or(&[0.0; R]);
            for r in 0..R {
                for j in 0..W {
                    sums[r][j] += fma::<F>(x[r], y[j], 0.0);
                }
            }
        }
        for (r, sum) in sums.iter().enumerate() {
            out[r * columns + c..][..W].copy_from_slice(sum);
        }
    }
    for r in 0..R {
        let rest = &mut out[r * columns + whole..(r + 1) * columns];
        for (k, y) in right.chunks_exact(columns).enumerate() {
            let x = left[k * step + r];
            for (o, y) in rest.iter_mut().zip(&y[whole..]) {
                *o += fma::<F>(x, *y, 0.0);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx2,fma")]
fn several_512(out: &mut [f32], left: &[f32], right: &[f32], columns: usize) {
    several::<true, WIDEST>(out, left, right, columns);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn several_256(out: &mut [f32], left: &[f32], right: &[f32], columns: usize) {
    several::<true, WIDE>(out, left, right, columns);
}

#[inline(always)]
unsafe fn add<const F: bool>(out: &mut [f32], a: *const f32, step: isize, b: &[f32]) {
    for (i, row) in out.chunks_exact_mut(b.len()).enumerate() {
        // SAFETY: the caller's factors are one a row.
        let x = unsafe { *a.offset(i as isize * step) };
        for (o, &y) in row.iter_mut().zip(b) {
            // A product's sum begins with 0, which makes -0 a 0.
            *o += fma::<F>(x, y, 0.0);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx2,fma")]
unsafe fn add_512(out: &mut [f32], a: *const f32, step: isize, b: &[f32]) {
    // SAFETY: the caller's contract.
    unsafe { add::<true>(out, a, step, b) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn add_256(out: &mut [f32], a: *const f32, step: isize, b: &[f32]) {
    // SAFETY: the caller's contract.
    unsafe { add::<true>(out, a, step, b) }
}
