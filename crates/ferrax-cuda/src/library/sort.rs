//! Sorting by integers (`ferrax_loops::expand` makes integers of other keys).
//!
//! What is sorted are the numbers of a line's elements; operands are then read in their order. Short lines go through a
//! bitonic network (K. E. Batcher, "Sorting networks and their applications", 1968), several in the shared memory of a
//! block: it exchanges numbers by their keys, and equal keys by the numbers themselves, so that every sort is stable. Lines
//! are filled up to a power of two by numbers that come last. Longer lines are sorted by digits (`radix.rs`).

use super::radix;
use crate::plan::BufferId;
use crate::plan::frame::Frame;
use crate::print::kernel::{BLOCK, Kernel, NAME, blocks, element_loop, finish};
use crate::print::types::{c_type, unsigned};
use ferrax_base::{DType, Result, bail};
use ferrax_loops::{Node, ValueId};

/// Elements of lines that go through a network.
const SHORT: usize = 512;
/// Numbers that a block has in shared memory.
const STRETCH: usize = 2048;

/// A key: an array of integers.
pub struct Key {
    /// The array.
    pub array: BufferId,
    /// Its dtype.
    pub dtype: DType,
    /// Bits that tell keys apart, the lowest ones: others are 0.
    pub bits: u32,
}

impl Key {
    /// A word of a key, the lowest is 0, as an unsigned integer that orders as the key does.
    pub fn word(&self, word: u32, key: &str) -> String {
        let sign = if self.dtype.is_signed() { 1u64 << (self.dtype.bits() - 1) } else { 0 };
        let shift = 32 * word;
        format!("((unsigned)(({}){key} >> {shift}) ^ {}u)", unsigned(self.dtype), (sign >> shift) as u32)
    }
}

/// Lines of keys: element `k` of line (a, b) has the number (a · length + k) · inner + b.
pub struct Lines<'k> {
    /// The keys, the first decides.
    pub keys: &'k [Key],
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
        let dtype = f.dtype(v);
        keys.push(Key { array: f.array(v)?, dtype, bits: dtype.bits() as u32 });
    }
    let lines = Lines { keys: &keys, outer, length, inner };
    let order = lines.sorted(f)?;
    let room = lines.room();
    // What is sorted by is often not asked for.
    let wanted: Vec<(ValueId, ValueId)> =
        node.inputs.iter().copied().zip(node.outputs()).filter(|(_, out)| f.is_read(*out)).collect();
    let results: Vec<BufferId> = wanted.iter().map(|(_, out)| f.result(*out)).collect();
    let mut writes: Vec<DType> = wanted.iter().map(|(_, out)| f.dtype(*out)).collect();
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
        for (k, &(v, _)) in wanted.iter().enumerate() {
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
    /// Numbers of a line in order, with those that fill it up.
    fn room(&self) -> usize {
        if self.length > SHORT { self.length } else { self.length.next_power_of_two().max(2) }
    }

    /// The numbers of every line's elements in order, as uint32.
    fn sorted(&self, f: &mut Frame<'_>) -> Result<BufferId> {
        if self.length > 1 << 31 {
            bail!(NotImplemented, "the CUDA engine has no sort of more than 2**31 elements, as of {}", self.length);
        }
        if self.length > SHORT {
            return Ok(radix::sorted(f, self, false)?.order);
        }
        let total = self.outer * self.inner * self.room();
        let order = f.temporary(total * 4);
        let arrays: Vec<BufferId> = std::iter::once(order).chain(self.keys.iter().map(|k| k.array)).collect();
        let kernel = self.network(f, total)?;
        f.launch(kernel, &arrays, &[])?;
        Ok(order)
    }

    fn writes(&self) -> Vec<DType> {
        std::iter::once(DType::U32).chain(self.keys.iter().map(|k| k.dtype)).collect()
    }

    /// A function that says whether number `x` comes after number `y` in a line.
    fn after(&self) -> String {
        let mut params = Vec::new();
        let mut text = String::new();
        for (k, key) in self.keys.iter().enumerate() {
            let t = c_type(key.dtype);
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

    /// Stretches of whole lines, each by one block. A key of one word lies in shared memory, above its number.
    fn network(&self, f: &Frame<'_>, total: usize) -> Result<Kernel> {
        let (stretches, room) = (total.div_ceil(STRETCH), self.room());
        let packed = match self.keys {
            [key] if key.bits <= 32 => Some(key),
            _ => None,
        };
        let mut kernel = f.print(|mut body| {
            body.largest = body.largest.max(total).max(self.outer * self.inner * self.length);
            let t = if packed.is_some() { "unsigned long long" } else { "unsigned" };
            body.line(&format!("__shared__ {t} s[{STRETCH}];"));
            body.open(&format!("for (I w = blockIdx.x; w < {stretches}; w += gridDim.x)"));
            body.line(&format!("const I first = w * {STRETCH}, left = {total} - first;"));
            body.line(&format!("const int count = left < {STRETCH} ? (int)left : {STRETCH};"));
            let each = format!("for (int e = threadIdx.x; e < count; e += {BLOCK})");
            body.open(&each);
            body.line(&format!("const unsigned k = (unsigned)e % {room}u;"));
            if let Some(key) = packed {
                let (length, inner) = (self.length, self.inner);
                body.line(&format!("const I line = (first + e) / {room};"));
                let element = format!("o1[line / {inner} * {} + line % {inner} + (I)k * {inner}]", length * inner);
                body.line(&format!("const {t} word = k < {length} ? {} : 0xffffffffu;", key.word(0, &element)));
                body.line("s[e] = word << 32 | k;");
            } else {
                body.line("s[e] = k;");
            }
            body.close();
            body.line("__syncthreads();");
            body.open(&format!("for (int run = 2; run <= {room}; run *= 2)"));
            body.open("for (int apart = run / 2; apart > 0; apart /= 2)");
            body.open(&format!("for (int e = threadIdx.x; e < {}; e += {BLOCK})", STRETCH / 2));
            body.line("const int low = 2 * e - (e & (apart - 1)), high = low + apart;");
            body.line("if (high >= count) continue;");
            body.line(&format!("const bool down = (low & {} & run) != 0;", room - 1));
            body.line(&format!("const {t} x = s[low], y = s[high];"));
            let after = if packed.is_some() {
                "(x > y)".to_owned()
            } else {
                self.call(&format!("(first + low) / {room}"), "x", "y")
            };
            body.line(&format!("if ({after} != down) {{ s[low] = y; s[high] = x; }}"));
            body.close();
            body.line("__syncthreads();");
            body.close();
            body.close();
            body.line(&format!("{each} o0[first + e] = (unsigned)s[e];"));
            body.line("__syncthreads();");
            body.close();
            Ok(finish(body, &self.writes(), 0, true, [stretches.clamp(1, 1 << 16) as u32, 1, 1], BLOCK))
        })?;
        if packed.is_none() {
            kernel.text = self.after() + &kernel.text;
        }
        Ok(kernel)
    }
}
