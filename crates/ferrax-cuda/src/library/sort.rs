//! Sorting by integers (`ferrax_loops::expand` makes integers of other keys).
//!
//! What is sorted are the numbers of a line's elements: a bitonic network (K. E. Batcher, "Sorting networks and their
//! applications", 1968) exchanges them by their keys, and equal keys by the numbers themselves, so that every sort is
//! stable. Lines are filled up to a power of two by numbers that come last. Steps between neighbours of a stretch run in
//! shared memory, a block a stretch; farther ones are a kernel each.

use crate::plan::BufferId;
use crate::plan::frame::Frame;
use crate::print::kernel::{BLOCK, Kernel, NAME, blocks, element_loop, finish};
use crate::print::types::c_type;
use ferrax_base::{DType, Result, bail};
use ferrax_loops::Node;

/// Numbers of a stretch.
const STRETCH: usize = 2048;

/// Lines of keys: element `k` of line (a, b) has the number (a · length + k) · inner + b.
pub struct Lines<'k> {
    /// The keys, the first decides; integers.
    pub keys: &'k [(BufferId, DType)],
    /// Lines before the axis.
    pub outer: usize,
    /// Elements of a line.
    pub length: usize,
    /// Lines behind the axis.
    pub inner: usize,
}

/// `Sort`.
pub fn sort(f: &mut Frame<'_>, node: &Node, axis: usize, num_keys: usize) -> Result<()> {
    let shape = &f.g.ty(node.inputs[0]).shape;
    let (outer, length) = (shape[..axis].iter().product(), shape[axis]);
    let inner: usize = shape[axis + 1..].iter().product();
    let mut keys = Vec::new();
    for &v in &node.inputs[..num_keys] {
        keys.push((f.array(v)?, f.dtype(v)));
    }
    let lines = Lines { keys: &keys, outer, length, inner };
    let order = lines.sorted(f)?;
    let room = lines.room();
    let results: Vec<BufferId> = node.outputs().map(|v| f.result(v)).collect();
    let mut writes: Vec<DType> = node.outputs().map(|v| f.dtype(v)).collect();
    writes.push(DType::U32);
    let n = outer * length * inner;
    let kernel = f.print(|mut body| {
        body.open(&element_loop(n));
        let at = body.linear("i");
        let place = body.axes(at, &[outer, length, inner]);
        let line = body.index(format!("{} * {inner} + {}", place[0], place[2]));
        let k = body.index(format!("(I)o{}[{line} * {room} + {}]", results.len(), place[1]));
        let from = body.index(format!("({} * {length} + {k}) * {inner} + {}", place[0], place[2]));
        let from = body.linear(&from);
        for (k, &v) in node.inputs.iter().enumerate() {
            let element = body.element(v, from)?;
            body.line(&format!("o{k}[i] = {element};"));
        }
        body.close();
        body.largest = body.largest.max(outer * inner * room);
        Ok(finish(body, &writes, 0, true, [blocks(n), 1, 1], BLOCK))
    })?;
    let arrays: Vec<BufferId> = results.into_iter().chain([order]).collect();
    f.launch(kernel, &arrays, &[])
}

impl Lines<'_> {
    /// Numbers of a line, with those that fill it up.
    pub fn room(&self) -> usize {
        self.length.next_power_of_two().max(2)
    }

    /// The numbers of every line's elements in order, as uint32.
    pub fn sorted(&self, f: &mut Frame<'_>) -> Result<BufferId> {
        if self.length > 1 << 31 {
            bail!(NotImplemented, "the CUDA engine sorts up to 2**31 elements, not {}", self.length);
        }
        let (room, lines) = (self.room(), self.outer * self.inner);
        let order = f.temporary(lines * room * 4);
        let arrays: Vec<BufferId> = std::iter::once(order).chain(self.keys.iter().map(|k| k.0)).collect();
        // A stretch holds several short lines, or a part of a long one.
        let stretch = (lines * room).next_power_of_two().min(STRETCH);
        let near = self.near(f, stretch, true)?;
        f.launch(near, &arrays, &[2, room.min(stretch) as i64])?;
        let mut run = 2 * stretch;
        while run <= room {
            let mut apart = run / 2;
            while apart >= stretch {
                let far = self.far(f)?;
                f.launch(far, &arrays, &[run as i64, apart as i64])?;
                apart /= 2;
            }
            let near = self.near(f, stretch, false)?;
            f.launch(near, &arrays, &[run as i64, run as i64])?;
            run *= 2;
        }
        Ok(order)
    }

    fn writes(&self) -> Vec<DType> {
        std::iter::once(DType::U32).chain(self.keys.iter().map(|k| k.1)).collect()
    }

    /// A function that says whether number `x` comes after number `y` in a line.
    fn after(&self) -> String {
        let mut params = Vec::new();
        let mut text = String::new();
        for (k, (_, d)) in self.keys.iter().enumerate() {
            let t = c_type(*d);
            params.push(format!("const {t}* o{}", k + 1));
            text += &format!(
                "  const {t} a{k} = o{0}[first + (long long)x * {1}], b{k} = o{0}[first + (long long)y * {1}];\n",
                k + 1,
                self.inner
            );
            text += &format!("  if (a{k} != b{k}) return a{k} > b{k};\n");
        }
        let n = self.length;
        format!(
            "FX bool {NAME}_after({}, long long first, unsigned x, unsigned y) {{\n  if (x >= {n}u || y >= {n}u) return x > y;\n{text}  return x > y;\n}}\n",
            params.join(", ")
        )
    }

    /// The call of that function on two numbers of a line.
    fn call(&self, line: &str, x: &str, y: &str) -> String {
        let pointers: Vec<String> = (1..=self.keys.len()).map(|k| format!("o{k}")).collect();
        let (length, inner) = (self.length, self.inner);
        let first = format!("(long long)({line}) / {inner} * {} + ({line}) % {inner}", length * inner);
        format!("{NAME}_after({}, {first}, {x}, {y})", pointers.join(", "))
    }

    /// Steps of runs of `a0` to `a1` numbers, as far as they stay within a stretch; `fresh` begins with numbers in order.
    fn near(&self, f: &Frame<'_>, stretch: usize, fresh: bool) -> Result<Kernel> {
        let total = self.outer * self.inner * self.room();
        let (stretches, room) = (total.div_ceil(stretch), self.room());
        let mut kernel = f.print(|mut body| {
            body.largest = body.largest.max(total).max(self.outer * self.inner * self.length);
            body.line(&format!("__shared__ unsigned s[{stretch}];"));
            body.open(&format!("for (I w = blockIdx.x; w < {stretches}; w += gridDim.x)"));
            body.line(&format!("const I first = w * {stretch}, left = {total} - first;"));
            body.line(&format!("const int count = left < {stretch} ? (int)left : {stretch};"));
            let each = format!("for (int e = threadIdx.x; e < count; e += {BLOCK})");
            let number = if fresh { format!("(unsigned)((first + e) % {room})") } else { "o0[first + e]".into() };
            body.line(&format!("{each} s[e] = {number};"));
            body.line("__syncthreads();");
            body.open("for (long long run = a0; run <= a1; run *= 2)");
            body.line(&format!("long long apart = run / 2 < {0} ? run / 2 : {0};", stretch / 2));
            body.open("for (; apart > 0; apart /= 2)");
            body.open(&format!("for (int e = threadIdx.x; e < {}; e += {BLOCK})", stretch / 2));
            body.line("const int low = e / (int)apart * 2 * (int)apart + e % (int)apart, high = low + (int)apart;");
            body.line("if (high >= count) continue;");
            body.line(&format!("const I line = (first + low) / {room};"));
            body.line(&format!("const bool down = ((first + low) % {room} & run) != 0 && run < {room};"));
            body.line("const unsigned x = s[low], y = s[high];");
            body.line(&format!("if ({} != down) {{ s[low] = y; s[high] = x; }}", self.call("line", "x", "y")));
            body.close();
            body.line("__syncthreads();");
            body.close();
            body.close();
            body.line(&format!("{each} o0[first + e] = s[e];"));
            body.line("__syncthreads();");
            body.close();
            Ok(finish(body, &self.writes(), 2, false, [stretches.clamp(1, 1 << 16) as u32, 1, 1], BLOCK))
        })?;
        kernel.text = self.after() + &kernel.text;
        Ok(kernel)
    }

    /// One step: runs of `a0` numbers, exchanged with those `a1` further on.
    fn far(&self, f: &Frame<'_>) -> Result<Kernel> {
        let (room, pairs) = (self.room(), self.outer * self.inner * self.room() / 2);
        let mut kernel = f.print(|mut body| {
            body.largest = body.largest.max(2 * pairs).max(self.outer * self.inner * self.length);
            body.open(&element_loop(pairs));
            body.line("const I apart = (I)a1, low = i / apart * 2 * apart + i % apart, high = low + apart;");
            body.line(&format!("const I line = low / {room};"));
            body.line(&format!("const bool down = (low % {room} & (I)a0) != 0 && a0 < {room};"));
            body.line("const unsigned x = o0[low], y = o0[high];");
            body.line(&format!("if ({} != down) {{ o0[low] = y; o0[high] = x; }}", self.call("line", "x", "y")));
            body.close();
            Ok(finish(body, &self.writes(), 2, false, [blocks(pairs), 1, 1], BLOCK))
        })?;
        kernel.text = self.after() + &kernel.text;
        Ok(kernel)
    }
}
