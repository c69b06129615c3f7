//! Sorting by digits, the lowest first: each pass puts a line's elements in the order of one digit and leaves those of equal
//! digits as they were (D. E. Knuth, The Art of Computer Programming, volume 3, 5.2.5).
//!
//! Keys are taken as words of 32 bits, and the words travel with the elements' numbers. A block has a tile of a line: each
//! warp ranks its elements among those of the same digit by ballots, counts of warps in shared memory become ranks in the
//! tile, and elements are exchanged there so that those of a digit are written side by side. Lines of one tile stay in
//! shared memory for all digits. For longer ones, tiles are counted first, and running sums over the counts of all tiles,
//! digit by digit, say where each goes: nothing depends on the order in which blocks run.
//!
//! Read next: `sort.rs`.

use super::scan::running_sums;
use super::sort::{Key, Lines};
use crate::plan::BufferId;
use crate::plan::frame::Frame;
use crate::print::body::Body;
use crate::print::kernel::{BLOCK, Kernel, blocks, element_loop, finish};
use crate::print::types::unsigned;
use ferrax_base::{DType, Result};

/// Bits of a word.
const WORD: u32 = 32;
/// Bits of a digit, at most.
const DIGIT: u32 = 8;
/// Elements of the longest tile.
const TILE: usize = 8192;

/// A line's elements in order.
pub struct Sorted {
    /// Their numbers in the line.
    pub order: BufferId,
    /// The last words that they were sorted by, in order.
    pub words: BufferId,
}

/// How lines are sorted by a word.
struct Radix {
    lines: usize,
    length: usize,
    /// Threads of a block, and elements of each.
    threads: usize,
    each: usize,
    /// Bits of a digit.
    width: u32,
    /// Digits.
    passes: u32,
}

impl Radix {
    fn of(lines: usize, length: usize, bits: u32) -> Radix {
        let (threads, each) = match length {
            0..=1024 => (256, 4),
            ..=2048 => (256, 8),
            ..=4096 => (256, 16),
            _ => (TILE / 16, 16),
        };
        let passes = bits.div_ceil(DIGIT).max(1);
        Radix { lines, length, threads, each, width: bits.div_ceil(passes).max(1), passes }
    }

    fn tile(&self) -> usize {
        self.threads * self.each
    }

    fn tiles(&self) -> usize {
        self.length.div_ceil(self.tile())
    }

    fn radix(&self) -> usize {
        1 << self.width
    }

    fn warps(&self) -> usize {
        self.threads / WORD as usize
    }
}

/// The numbers of every line's elements in the order of its keys, as uint32, a line behind the other.
pub fn sorted(f: &mut Frame<'_>, lines: &Lines<'_>) -> Result<Sorted> {
    let count = lines.outer * lines.inner;
    let mut last: Option<Sorted> = None;
    for key in lines.keys.iter().rev() {
        for word in 0..key.bits.div_ceil(WORD) {
            let bits = (key.bits - word * WORD).min(WORD);
            let before = last.map(|l| l.order);
            let plain = key.dtype == DType::U32 && before.is_none() && lines.inner == 1;
            let words = if plain { key.array } else { words_of(f, lines, key, word, before)? };
            let radix = Radix::of(count, lines.length, bits);
            last = Some(if radix.tiles() == 1 {
                radix.within(f, words, before)?
            } else {
                radix.across(f, words, before)?
            });
        }
    }
    last.ok_or_else(|| ferrax_base::error!(Internal, "a sort by no bits"))
}

/// A word of every element's key, in an order, as unsigned integers that order as the keys do.
fn words_of(f: &mut Frame<'_>, lines: &Lines<'_>, key: &Key, word: u32, order: Option<BufferId>) -> Result<BufferId> {
    let &Lines { outer, length, inner, .. } = lines;
    let n = outer * length * inner;
    let to = f.temporary(n * 4);
    let mut arrays = vec![to, key.array];
    arrays.extend(order);
    let writes = [DType::U32, key.dtype, DType::U32];
    let kernel = f.print(|mut body| {
        body.open(&element_loop(n));
        let at = body.linear("i");
        let place = body.axes(at, &[outer, inner, length]);
        let k = if order.is_some() { body.index("(I)o2[i]".to_owned()) } else { place[2].clone() };
        let at = body.at_axes([place[0].clone(), k, place[1].clone()]);
        let number = body.number(at, &[outer, length, inner]);
        let sign = if key.dtype.is_signed() { 1u64 << (key.dtype.bits() - 1) } else { 0 };
        let shift = word * WORD;
        body.line(&format!("const {0} key = ({0})o1[{number}];", unsigned(key.dtype)));
        body.line(&format!("o0[i] = (unsigned)(key >> {shift}) ^ {}u;", (sign >> shift) as u32));
        body.close();
        Ok(finish(body, &writes[..arrays.len()], 0, true, [blocks(n), 1, 1], BLOCK))
    })?;
    f.launch(kernel, &arrays, &[])?;
    Ok(to)
}

impl Radix {
    /// Lines of one tile, by all digits at once.
    fn within(&self, f: &mut Frame<'_>, words: BufferId, before: Option<BufferId>) -> Result<Sorted> {
        let size = self.lines * self.length * 4;
        let to = Sorted { order: f.temporary(size), words: f.temporary(size) };
        let mut arrays = vec![to.order, to.words, words];
        arrays.extend(before);
        let kernel = f.print(|mut body| {
            self.open(&mut body, self.lines);
            body.line(&format!("const I first = w * {};", self.length));
            body.line(&format!("const unsigned count = {};", self.length));
            self.load(&mut body, "key", "at < count ? o2[first + at] : 0xffffffffu");
            let number = if before.is_some() { "at < count ? o3[first + at] : at" } else { "at" };
            self.load(&mut body, "number", number);
            body.open(&format!("for (unsigned shift = 0; shift < {}; shift += {})", self.passes * self.width, self.width));
            self.ranks(&mut body, "");
            for name in ["key", "number"] {
                self.each(&mut body, &format!("s[rank[u]] = {name}[u];"));
                body.line("__syncthreads();");
                self.load(&mut body, &format!("={name}"), "s[at]");
                body.line("__syncthreads();");
            }
            body.close();
            let put = "const unsigned at = base + u * 32; if (at < count) { o0[first + at] = number[u]; o1[first + at] = key[u]; }";
            self.each(&mut body, put);
            body.close();
            let writes = vec![DType::U32; arrays.len()];
            Ok(self.finish(body, &writes, 0, self.lines))
        })?;
        f.launch(kernel, &arrays, &[])?;
        Ok(to)
    }

    /// Lines of several tiles, a digit after the other.
    fn across(&self, f: &mut Frame<'_>, mut words: BufferId, mut before: Option<BufferId>) -> Result<Sorted> {
        let size = self.lines * self.length * 4;
        let counts = self.radix() * self.tiles();
        for pass in 0..self.passes {
            let shift = [i64::from(pass * self.width)];
            let starts = f.temporary(self.lines * counts * 4);
            let kernel = f.print(|body| Ok(self.counts(body)))?;
            f.launch(kernel, &[starts, words], &shift)?;
            running_sums(f, starts, self.lines, counts)?;
            let to = Sorted { order: f.temporary(size), words: f.temporary(size) };
            let mut arrays = vec![to.order, to.words, words, starts];
            arrays.extend(before);
            let kernel = f.print(|body| Ok(self.pass(body, before.is_some())))?;
            f.launch(kernel, &arrays, &shift)?;
            (words, before) = (to.words, Some(to.order));
        }
        Ok(Sorted { order: before.unwrap_or(words), words })
    }

    /// Begins the loop over tiles.
    fn open(&self, body: &mut Body<'_>, tiles: usize) {
        body.largest = body.largest.max(self.lines * self.tiles() * self.tile().max(self.radix()));
        let slots = self.tile().max(self.warps() * self.radix());
        body.line(&format!("__shared__ unsigned s[{slots}], begin[{}], tops[{}];", self.radix(), self.warps()));
        body.line("const unsigned me = threadIdx.x, warp = me / 32, lane = me % 32;");
        body.line(&format!("const unsigned base = warp * {} + lane;", self.each * 32));
        body.open(&format!("for (I w = blockIdx.x; w < {tiles}; w += gridDim.x)"));
    }

    /// The line and the tile of `w`, and how many elements that has.
    fn place(&self, body: &mut Body<'_>) {
        body.line(&format!("const I line = w / {0}, tile = w % {0};", self.tiles()));
        body.line(&format!("const I begins = tile * {}, first = line * {} + begins;", self.tile(), self.length));
        body.line(&format!("const unsigned left = (unsigned)({} - begins);", self.length));
        body.line(&format!("const unsigned count = left < {0} ? left : {0};", self.tile()));
    }

    fn finish(&self, body: Body<'_>, writes: &[DType], ints: usize, tiles: usize) -> Kernel {
        finish(body, writes, ints, true, [tiles.clamp(1, 1 << 16) as u32, 1, 1], self.threads as u32)
    }

    /// A statement for each of a thread's elements.
    fn each(&self, body: &mut Body<'_>, act: &str) {
        body.line("#pragma unroll");
        body.line(&format!("for (unsigned u = 0; u < {}; ++u) {{ {act} }}", self.each));
    }

    /// A thread's part of what lies in the order of the tile: a warp has elements side by side, its lanes neighbours. `=` says
    /// that the name is known.
    fn load(&self, body: &mut Body<'_>, name: &str, from: &str) {
        let known = name.strip_prefix('=');
        if known.is_none() {
            body.line(&format!("unsigned {name}[{}];", self.each));
        }
        let act = format!("const unsigned at = base + u * 32; {}[u] = {from};", known.unwrap_or(name));
        self.each(body, &act);
    }

    /// `rank[u]`: where each of a thread's elements goes in the tile, by the digit at `shift`; `digits` is done by the threads
    /// of digits, of which `total` elements come first at `start`.
    fn ranks(&self, body: &mut Body<'_>, digits: &str) {
        let (radix, warps) = (self.radix(), self.warps());
        body.line(&format!("for (unsigned q = me; q < {}; q += {}) s[q] = 0;", warps * radix, self.threads));
        body.line("__syncthreads();");
        body.line(&format!("unsigned rank[{}];", self.each));
        body.line(&format!("unsigned* mine = s + warp * {radix};"));
        body.line("#pragma unroll");
        body.open(&format!("for (unsigned u = 0; u < {}; ++u)", self.each));
        body.line(&format!("const unsigned digit = key[u] >> shift & {};", radix - 1));
        body.line(&format!("const unsigned same = fx_same<{}>(digit);", self.width));
        body.line("const unsigned before = __popc(same & ((1u << lane) - 1)), so_far = mine[digit];");
        body.line("rank[u] = so_far + before;");
        body.line("__syncwarp();");
        body.line("if (before == 0) mine[digit] = so_far + __popc(same);");
        body.line("__syncwarp();");
        body.close();
        body.line("__syncthreads();");
        // Counts of warps become those of the warps before.
        body.line("unsigned total = 0;");
        body.open(&format!("for (unsigned q = 0; q < {warps} && me < {radix}; ++q)"));
        body.line(&format!("const unsigned c = s[q * {radix} + me];"));
        body.line(&format!("s[q * {radix} + me] = total;"));
        body.line("total += c;");
        body.close();
        body.line("unsigned sum = total;");
        body.line("#pragma unroll");
        body.open("for (unsigned d = 1; d < 32; d *= 2)");
        body.line("const unsigned below = fx_shuffle_up(sum, d);");
        body.line("if (lane >= d) sum += below;");
        body.close();
        body.line("if (lane == 31) tops[warp] = sum;");
        body.line("__syncthreads();");
        body.open(&format!("if (me < {radix})"));
        body.line("unsigned start = sum - total;");
        body.line("for (unsigned q = 0; q < warp; ++q) start += tops[q];");
        body.line("begin[me] = start;");
        if !digits.is_empty() {
            body.line(digits);
        }
        body.close();
        body.line("__syncthreads();");
        let place =
            format!("const unsigned digit = key[u] >> shift & {}; rank[u] += begin[digit] + mine[digit];", radix - 1);
        self.each(body, &place);
        body.line("__syncthreads();");
    }

    /// How many elements of each tile have each digit.
    fn counts(&self, mut body: Body<'_>) -> Kernel {
        let tiles = self.lines * self.tiles();
        let radix = self.radix();
        body.largest = body.largest.max(tiles * self.tile().max(radix));
        body.line(&format!("__shared__ unsigned s[{radix}];"));
        body.line("const unsigned me = threadIdx.x, shift = (unsigned)a0;");
        body.open(&format!("for (I w = blockIdx.x; w < {tiles}; w += gridDim.x)"));
        self.place(&mut body);
        body.line(&format!("if (me < {radix}) s[me] = 0;"));
        body.line("__syncthreads();");
        let act = format!(
            "const unsigned at = me + u * {}; if (at < count) atomicAdd(&s[o1[first + at] >> shift & {}], 1u);",
            self.threads,
            radix - 1
        );
        self.each(&mut body, &act);
        body.line("__syncthreads();");
        body.line(&format!("if (me < {radix}) o0[(line * {radix} + me) * {} + tile] = s[me];", self.tiles()));
        body.line("__syncthreads();");
        body.close();
        self.finish(body, &[DType::U32; 2], 1, tiles)
    }

    /// Puts elements where the running sums of counts say.
    fn pass(&self, mut body: Body<'_>, has_order: bool) -> Kernel {
        let tiles = self.lines * self.tiles();
        let (radix, tile) = (self.radix(), self.tile());
        body.line(&format!("__shared__ unsigned to[{radix}];"));
        self.open(&mut body, tiles);
        body.line("const unsigned shift = (unsigned)a0;");
        self.place(&mut body);
        // What fills up the tile has the last digit and comes behind all others of it.
        self.load(&mut body, "key", "at < count ? o2[first + at] : 0xffffffffu");
        let digits = format!(
            "to[me] = o3[(line * {radix} + me) * {} + tile] - (me == {} ? total - ({tile} - count) : total) - start;",
            self.tiles(),
            radix - 1
        );
        self.ranks(&mut body, &digits);
        let number = if has_order { "at < count ? o4[first + at] : 0" } else { "(unsigned)begins + at" };
        self.load(&mut body, "number", number);
        self.each(&mut body, "s[rank[u]] = key[u];");
        body.line("__syncthreads();");
        body.line(&format!("const I whole = line * {};", self.length));
        let digit = format!("s[at] >> shift & {}", radix - 1);
        let here = format!("const unsigned at = me + u * {};", self.threads);
        let put = format!("if (at < count) {{ key[u] = to[{digit}] + at; o1[whole + key[u]] = s[at]; }}");
        self.each(&mut body, &format!("{here} {put}"));
        body.line("__syncthreads();");
        self.each(&mut body, "s[rank[u]] = number[u];");
        body.line("__syncthreads();");
        self.each(&mut body, &format!("{here} if (at < count) o0[whole + key[u]] = s[at];"));
        body.line("__syncthreads();");
        body.close();
        self.finish(body, &[DType::U32; 5][..4 + usize::from(has_order)], 1, tiles)
    }
}
