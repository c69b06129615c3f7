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
use ferrax_base::{DType, Result, bail, error};

/// Bits of a word.
const WORD: u32 = 32;
/// Bits of a digit, at most.
const DIGIT: u32 = 8;
/// Elements of the longest tile.
const TILE: usize = 8192;
/// Where element `u` of a thread goes in its tile.
const RANK: &str = "rank[u / 2] >> u % 2 * 16 & 0xffff";

/// A line's elements in order.
pub struct Sorted {
    /// Their numbers in the line.
    pub order: BufferId,
    /// The last words that they were sorted by, in order, where they were asked for.
    pub words: Option<BufferId>,
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
            1025..=2048 => (256, 8),
            2049..=4096 => (256, 16),
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

/// The numbers of every line's elements in the order of its keys, as uint32, a line behind the other; `keep` asks for the last
/// words too.
pub fn sorted(f: &mut Frame<'_>, lines: &Lines<'_>, keep: bool) -> Result<Sorted> {
    let count = lines.outer * lines.inner;
    let words = |key: &Key| (0..key.bits.div_ceil(WORD)).rev();
    let mut left: Vec<(&Key, u32)> = lines.keys.iter().flat_map(|key| words(key).map(move |w| (key, w))).collect();
    let mut last: Option<Sorted> = None;
    while let Some((key, word)) = left.pop() {
        let bits = (key.bits - word * WORD).min(WORD);
        let before = last.map(|l| l.order);
        let plain = key.dtype == DType::U32 && before.is_none() && lines.inner == 1;
        let words = if plain { key.array } else { words_of(f, lines, key, word, before)? };
        let radix = Radix::of(count, lines.length, bits);
        let keep = keep && left.is_empty();
        let sorted = if radix.tiles() == 1 {
            radix.within(f, words, before, keep)?
        } else {
            radix.across(f, words, before, keep)?
        };
        last = Some(sorted);
    }
    last.ok_or_else(|| error!(Internal, "a sort by no bits"))
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
        body.line(&format!("o0[i] = {};", key.word(word, &format!("o1[{number}]"))));
        body.close();
        Ok(finish(body, &writes[..arrays.len()], 0, true, [blocks(n), 1, 1], BLOCK))
    })?;
    f.launch(kernel, &arrays, &[])?;
    Ok(to)
}

impl Radix {
    /// Lines of one tile, by all digits at once.
    fn within(&self, f: &mut Frame<'_>, words: BufferId, before: Option<BufferId>, keep: bool) -> Result<Sorted> {
        let size = self.lines * self.length * 4;
        let to = Sorted { order: f.temporary(size), words: keep.then(|| f.temporary(size)) };
        let arrays: Vec<BufferId> = [to.order, words].into_iter().chain(before).chain(to.words).collect();
        let kernel = f.print(|mut body| {
            self.open(&mut body, self.lines);
            body.line(&format!("const I first = w * {};", self.length));
            body.line(&format!("const int ahead = {} - (int)base;", self.length));
            body.line("const unsigned* in = o1 + first + base;");
            self.load(&mut body, "key", "(int)(u * 32) < ahead ? in[u * 32] : 0xffffffffu");
            if before.is_some() {
                body.line("const unsigned* from = o2 + first + base;");
            }
            let number = if before.is_some() { "(int)(u * 32) < ahead ? from[u * 32] : 0" } else { "base + u * 32" };
            self.load(&mut body, "number", number);
            let end = self.passes * self.width;
            body.open(&format!("for (unsigned shift = 0; shift < {end}; shift += {})", self.width));
            self.ranks(&mut body, "");
            for name in ["key", "number"] {
                self.each(&mut body, &format!("s[{RANK}] = {name}[u];"));
                body.line("__syncthreads();");
                self.each(&mut body, &format!("{name}[u] = s[base + u * 32];"));
                body.line("__syncthreads();");
            }
            body.close();
            for (array, name) in [(Some(0), "number"), (keep.then_some(arrays.len() - 1), "key")] {
                if let Some(k) = array {
                    let put = format!("o{k}[first + base + u * 32] = {name}[u];");
                    self.each(&mut body, &format!("if ((int)(u * 32) < ahead) {put}"));
                }
            }
            body.close();
            Ok(self.finish(body, arrays.len(), 0, self.lines))
        })?;
        f.launch(kernel, &arrays, &[])?;
        Ok(to)
    }

    /// Lines of several tiles, a digit after the other.
    fn across(
        &self,
        f: &mut Frame<'_>,
        mut words: BufferId,
        mut before: Option<BufferId>,
        keep: bool,
    ) -> Result<Sorted> {
        let size = self.lines * self.length * 4;
        let counts = self.radix() * self.tiles();
        for pass in 0..self.passes {
            let shift = [i64::from(pass * self.width)];
            let keeps = keep || pass + 1 < self.passes;
            let starts = f.temporary(self.lines * counts * 4);
            let kernel = f.print(|body| Ok(self.counts(body)))?;
            f.launch(kernel, &[starts, words], &shift)?;
            running_sums(f, starts, self.lines, counts)?;
            let order = f.temporary(size);
            let to = keeps.then(|| f.temporary(size));
            let arrays: Vec<BufferId> = [order, words, starts].into_iter().chain(before).chain(to).collect();
            let kernel = f.print(|body| Ok(self.pass(body, before.is_some(), keeps)))?;
            f.launch(kernel, &arrays, &shift)?;
            (words, before) = (to.unwrap_or(words), Some(order));
        }
        let Some(order) = before else { bail!(Internal, "a sort by no digit") };
        Ok(Sorted { order, words: keep.then_some(words) })
    }

    /// Begins the loop over tiles.
    fn open(&self, body: &mut Body<'_>, tiles: usize) {
        body.largest = body.largest.max(self.lines * self.tiles() * self.tile().max(self.radix()));
        let slots = self.tile().max(self.warps() * self.radix());
        body.line(&format!("__shared__ unsigned s[{slots}], begin[{}], tops[{}];", self.radix(), self.warps()));
        body.line("const unsigned me = threadIdx.x, warp = me / 32, lane = me % 32;");
        // A warp has elements side by side, its lanes neighbours.
        body.line(&format!("const unsigned base = warp * {} + lane;", self.each * 32));
        body.open(&format!("for (I w = blockIdx.x; w < {tiles}; w += gridDim.x)"));
    }

    /// The line and the tile of `w`, and how many elements that has.
    fn place(&self, body: &mut Body<'_>) {
        body.line(&format!("const I line = w / {0}, tile = w % {0};", self.tiles()));
        body.line(&format!("const I begins = tile * {}, first = line * {} + begins;", self.tile(), self.length));
        body.line(&format!("const I left = {} - begins;", self.length));
        body.line(&format!("const int count = left < {0} ? (int)left : {0};", self.tile()));
    }

    fn finish(&self, body: Body<'_>, arrays: usize, ints: usize, tiles: usize) -> Kernel {
        let (grid, threads) = ([tiles.clamp(1, 1 << 16) as u32, 1, 1], self.threads as u32);
        finish(body, &vec![DType::U32; arrays], ints, true, grid, threads).crowded()
    }

    /// A statement for each of a thread's elements.
    fn each(&self, body: &mut Body<'_>, act: &str) {
        body.line("#pragma unroll");
        body.line(&format!("for (unsigned u = 0; u < {}; ++u) {{ {act} }}", self.each));
    }

    /// A name for something of each of a thread's elements.
    fn load(&self, body: &mut Body<'_>, name: &str, from: &str) {
        body.line(&format!("unsigned {name}[{}];", self.each));
        self.each(body, &format!("{name}[u] = {from};"));
    }

    /// `RANK`: where each of a thread's elements goes in the tile, by the digit at `shift`; `digits` is done by the threads of
    /// digits, of which `total` elements begin at `start`.
    fn ranks(&self, body: &mut Body<'_>, digits: &str) {
        let (radix, warps) = (self.radix(), self.warps());
        body.line(&format!("for (unsigned q = me; q < {}; q += {}) s[q] = 0;", warps * radix, self.threads));
        body.line("__syncthreads();");
        // Two in a register.
        body.line(&format!("unsigned rank[{}];", self.each / 2));
        body.line(&format!("unsigned* mine = s + warp * {radix};"));
        let digit = format!("const unsigned digit = key[u] >> shift & {};", radix - 1);
        body.line("#pragma unroll");
        body.open(&format!("for (unsigned u = 0; u < {}; ++u)", self.each));
        body.line(&digit);
        body.line(&format!("const unsigned same = fx_same<{}>(digit);", self.width));
        body.line("const unsigned before = __popc(same & ((1u << lane) - 1)), so_far = mine[digit];");
        body.line("if (u % 2 == 0) rank[u / 2] = so_far + before; else rank[u / 2] |= so_far + before << 16;");
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
        self.each(body, &format!("{digit} rank[u / 2] += begin[digit] + mine[digit] << u % 2 * 16;"));
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
        body.line("const unsigned* in = o1 + first + me;");
        body.line("const int ahead = count - (int)me;");
        let here = format!("(int)(u * {0}) < ahead", self.threads);
        self.load(&mut body, "key", &format!("{here} ? in[u * {}] : 0", self.threads));
        body.line("__syncthreads();");
        self.each(&mut body, &format!("if ({here}) atomicAdd(&s[key[u] >> shift & {}], 1u);", radix - 1));
        body.line("__syncthreads();");
        body.line(&format!("if (me < {radix}) o0[(line * {radix} + me) * {} + tile] = s[me];", self.tiles()));
        body.line("__syncthreads();");
        body.close();
        self.finish(body, 2, 1, tiles)
    }

    /// Puts elements where the running sums of counts (`o2`) say.
    fn pass(&self, mut body: Body<'_>, has_order: bool, keep: bool) -> Kernel {
        let tiles = self.lines * self.tiles();
        let (radix, tile) = (self.radix(), self.tile());
        body.line(&format!("__shared__ unsigned to[{radix}];"));
        self.open(&mut body, tiles);
        body.line("const unsigned shift = (unsigned)a0;");
        self.place(&mut body);
        body.line("const int ahead = count - (int)base, behind = count - (int)me;");
        body.line("const unsigned* in = o1 + first + base;");
        // What fills up the tile has the last digit and comes behind all others of it.
        self.load(&mut body, "key", "(int)(u * 32) < ahead ? in[u * 32] : 0xffffffffu");
        let all = format!("(me == {} ? total - ({tile} - count) : total)", radix - 1);
        let sum = format!("o2[(line * {radix} + me) * {} + tile]", self.tiles());
        self.ranks(&mut body, &format!("to[me] = {sum} - {all} - start;"));
        self.each(&mut body, &format!("s[{RANK}] = key[u];"));
        body.line("__syncthreads();");
        body.line(&format!("unsigned* order = o0 + line * {};", self.length));
        let here = format!("if ((int)(u * {0}) < behind)", self.threads);
        let at = format!("me + u * {}", self.threads);
        let mut put = format!("const unsigned x = s[{at}]; key[u] = to[x >> shift & {}] + {at};", radix - 1);
        if keep {
            body.line(&format!("unsigned* words = o{} + line * {};", 3 + usize::from(has_order), self.length));
            put += " words[key[u]] = x;";
        }
        self.each(&mut body, &format!("{here} {{ {put} }}"));
        body.line("__syncthreads();");
        if has_order {
            body.line("const unsigned* from = o3 + first + base;");
        }
        let number =
            if has_order { "(int)(u * 32) < ahead ? from[u * 32] : 0" } else { "(unsigned)begins + base + u * 32" };
        self.each(&mut body, &format!("s[{RANK}] = {number};"));
        body.line("__syncthreads();");
        self.each(&mut body, &format!("{here} order[key[u]] = s[{at}];"));
        body.line("__syncthreads();");
        body.close();
        self.finish(body, 3 + usize::from(has_order) + usize::from(keep), 1, tiles)
    }
}
