//! Running reductions along an axis.
//!
//! A block takes a tile: stretches of one or several lines that together are contiguous in memory, or of neighbouring
//! columns. Threads read it as it lies there, neighbours neighbours, and leave it in shared memory, where each joins some
//! consecutive elements of a line; lanes of a warp pass on what they joined, then warps, then tiles of the same lines.
//! Where there are few lines, they are cut into pieces: blocks first join each piece, the pieces' totals become running
//! ones, and each piece then begins with what came before it. The shape alone decides all this, so that the bits of sums
//! are the same in every run.
//!
//! Sums of floats below double precision are kept in double precision, other narrow floats in single.

use crate::plan::BufferId;
use crate::plan::frame::Frame;
use crate::print::body::Body;
use crate::print::convert::convert;
use crate::print::elementwise::binary;
use crate::print::kernel::{BLOCK, Kernel, finish};
use crate::print::types::{c_type, compute, is_narrow, literal};
use ferrax_base::{DType, Result, bail};
use ferrax_loops::{BinaryOp, Node, ReduceOp, ValueId};

/// Threads of a block.
const THREADS: usize = BLOCK as usize;
/// Threads of a warp.
const WARP: usize = 32;
/// Blocks that leave most of a GPU idle: lines of fewer are cut.
const FEW: usize = 256;
/// Pieces that keep it busy.
const BUSY: usize = 2048;
/// Elements that a thread takes at a time.
const EACH: usize = 16;
/// Statements of a tile's elements are repeated where they are this short.
const PLAIN: usize = 1024;

struct Scan {
    /// What is read; without it, the array that is written.
    x: Option<ValueId>,
    d: DType,
    acc: DType,
    join: BinaryOp,
    start: String,
    /// Lines before the axis, its length, lines behind it.
    dims: [usize; 3],
    reverse: bool,
}

/// `Cumulative`.
pub fn cumulative(f: &mut Frame<'_>, node: &Node, op: ReduceOp, axis: usize, reverse: bool) -> Result<()> {
    let x = node.inputs[0];
    let (shape, d) = (&f.g.ty(x).shape, f.dtype(x));
    let acc = match op {
        ReduceOp::Sum if d.is_float() => DType::F64,
        _ if is_narrow(d) => compute(d),
        _ => d,
    };
    let Some(join) = op.joining() else { bail!(Internal, "a running {op:?} is other nodes") };
    let dims = [shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product()];
    let scan = Scan { x: Some(x), d, acc, join, start: literal(op.start(acc)), dims, reverse };
    let to = f.result(node.first);
    scan.run(f, to)
}

/// Running sums of lines of uint32, in place.
pub fn running_sums(f: &mut Frame<'_>, array: BufferId, lines: usize, length: usize) -> Result<()> {
    let (d, start) = (DType::U32, "0u".to_owned());
    Scan { x: None, d, acc: d, join: BinaryOp::Add, start, dims: [lines, length, 1], reverse: false }.run(f, array)
}

/// What a block takes at a time, as numbers of elements: `outers` × `length` × `inners` next to each other.
struct Tile {
    /// Consecutive elements of a line that a thread joins.
    each: usize,
    /// Threads of a line, a power of two.
    team: usize,
    outers: usize,
    inners: usize,
    /// Tiles side by side along the lines behind the axis.
    columns: usize,
    /// Tiles that do not follow one another along the axis.
    groups: usize,
    /// Elements of a line that a block goes along.
    piece: usize,
    /// Pieces of a line.
    pieces: usize,
}

impl Tile {
    fn of([outer, n, inner]: [usize; 3], size: usize) -> Tile {
        let each = EACH.min(64 / size).min(n.next_power_of_two());
        let most = THREADS / inner.min(WARP).next_power_of_two();
        let team = n.div_ceil(each).next_power_of_two().min(most);
        let (lines, length) = (THREADS / team, team * each);
        let inners = inner.min(lines);
        let columns = inner.div_ceil(inners);
        let outers = if columns == 1 && n <= length { lines / inner } else { 1 };
        let groups = outer.div_ceil(outers) * columns;
        let wanted = if groups < FEW && n > 4 * length { BUSY / groups } else { 1 };
        let piece = n.div_ceil(wanted).next_multiple_of(length);
        Tile { each, team, outers, inners, columns, groups, piece, pieces: n.div_ceil(piece) }
    }

    /// Elements of a line.
    fn length(&self) -> usize {
        self.team * self.each
    }

    fn grid(&self) -> [u32; 3] {
        [(self.groups * self.pieces).clamp(1, 1 << 16) as u32, 1, 1]
    }
}

/// Where element `at` of a tile lies in shared memory, in which threads that read `EACH` elements apart meet no conflicts.
fn slot(at: &str, size: usize) -> String {
    format!("{at} + {at} / {} * {}", 128 / size, (4 / size).max(1))
}

/// What is done with an element of a tile, of this number in its array, with this place in shared memory.
type Act<'a> = dyn Fn(&mut Body<'_>, &str, &str) -> Result<()> + 'a;

impl Scan {
    fn run(&self, f: &mut Frame<'_>, to: BufferId) -> Result<()> {
        let tile = Tile::of(self.dims, self.d.size());
        if tile.pieces == 1 {
            let kernel = f.print(|body| self.running(body, &tile))?;
            return f.launch(kernel, &[to], &[]);
        }
        let lines = self.dims[0] * self.dims[2];
        let totals = f.temporary(lines * tile.pieces * self.acc.size());
        let kernel = f.print(|body| self.totals(body, &tile))?;
        let arrays = [totals, to];
        f.launch(kernel, if self.x.is_some() { &arrays[..1] } else { &arrays }, &[])?;
        let of_totals = Scan {
            x: None,
            d: self.acc,
            start: self.start.clone(),
            dims: [lines, tile.pieces, 1],
            reverse: false,
            ..*self
        };
        of_totals.run(f, totals)?;
        let kernel = f.print(|body| self.running(body, &tile))?;
        f.launch(kernel, &[to, totals], &[])
    }

    /// The number of element `k` of line (a, b).
    fn number(&self, body: &mut Body<'_>, a: &str, k: &str, b: &str) -> String {
        let k = if self.reverse { body.index(format!("{} - {k}", self.dims[1] - 1)) } else { k.to_owned() };
        let at = body.at_axes([a, &k, b].map(str::to_owned));
        body.number(at, &self.dims)
    }

    /// An element of what is read, which without a value is the array `array`.
    fn element(&self, body: &mut Body<'_>, number: &str, array: &str) -> Result<String> {
        let Some(x) = self.x else { return Ok(body.named(c_type(self.d), 't', format!("{array}[{number}]"))) };
        let at = body.linear(number);
        body.element(x, at)
    }

    fn joined(&self, a: &str, b: &str) -> Result<String> {
        binary(self.join, a, b, self.acc)
    }

    /// Begins the loop over groups of lines and their pieces: `outer0` and `inner0` are the group's first line, `first` and
    /// `end` the piece's elements.
    fn open(&self, body: &mut Body<'_>, tile: &Tile) {
        let [outer, n, inner] = self.dims;
        body.largest = body.largest.max(outer * n * inner).max(outer * inner * tile.pieces);
        body.line("const unsigned me = threadIdx.x;");
        body.open(&format!("for (I w = blockIdx.x; w < {}; w += gridDim.x)", tile.groups * tile.pieces));
        body.line(&format!("const I group = w / {0}, c = w % {0}, first = c * {1};", tile.pieces, tile.piece));
        body.line(&format!("const I end = {n} - first < {0} ? {n} : first + {0};", tile.piece));
        body.line(&format!("const I outer0 = group / {} * {};", tile.columns, tile.outers));
        body.line(&format!("const I inner0 = group % {} * {};", tile.columns, tile.inners));
    }

    /// The loop over a tile's elements, as they lie in memory; without conditions where the tile is whole.
    fn each(&self, body: &mut Body<'_>, tile: &Tile, act: &Act<'_>) -> Result<()> {
        let slots = THREADS * tile.each;
        if tile.outers > 1 || tile.inners * tile.length() != slots {
            return self.each_of(body, tile, false, act);
        }
        body.open(&format!("if (k0 + {} <= end && inner0 + {} <= {})", tile.length(), tile.inners, self.dims[2]));
        self.each_of(body, tile, true, act)?;
        body.close();
        body.open("else");
        self.each_of(body, tile, false, act)?;
        body.close();
        Ok(())
    }

    fn each_of(&self, body: &mut Body<'_>, tile: &Tile, whole: bool, act: &Act<'_>) -> Result<()> {
        let [outer, n, inner] = self.dims;
        let (inners, length, size) = (tile.inners, tile.length(), self.d.size());
        let before = std::mem::take(&mut body.text);
        let count = if tile.outers > 1 { tile.outers * inners * n } else { inners * length };
        body.open(&format!("for (int j = 0; j < {}; ++j)", count.div_ceil(THREADS)));
        body.line(&format!("const unsigned e = me + j * {THREADS}u;"));
        let mut valid = vec![format!("e < {count}")];
        let mut outer_name = "outer0".to_owned();
        let mut inside = "e".to_owned();
        if tile.outers > 1 {
            outer_name = body.index(format!("outer0 + (I)(e / {}u)", n * inners));
            inside = body.named("unsigned", 'j', format!("e % {}u", n * inners));
            valid.push(format!("{outer_name} < {outer}"));
        }
        let k = body.named("unsigned", 'j', format!("{inside} / {inners}u"));
        let step = body.index(format!("k0 + (I){k}"));
        let column = body.index(format!("inner0 + (I)({inside} % {inners}u)"));
        valid.push(format!("{step} < end"));
        if tile.columns > 1 {
            valid.push(format!("{column} < {inner}"));
        }
        if !whole {
            body.open(&format!("if ({})", valid.join(" && ")));
        }
        let number = self.number(body, &outer_name, &step, &column);
        // A multiple of the elements between gaps stays one when the threads' number is added.
        let slot = if tile.outers == 1 && inners == 1 {
            format!("{} + j * {}", slot("me", size), THREADS + THREADS * size / 128 * (4 / size).max(1))
        } else {
            let row = if tile.outers > 1 { format!("e / {}u * {inners} + ", n * inners) } else { String::new() };
            let at = body.named("unsigned", 'j', format!("({row}{inside} % {inners}u) * {length} + {k}"));
            slot(&at, size)
        };
        act(body, &number, &slot)?;
        if !whole {
            body.close();
        }
        body.close();
        let inside = std::mem::replace(&mut body.text, before);
        if inside.len() < PLAIN {
            body.line(if whole { "#pragma unroll" } else { "#pragma unroll 4" });
        }
        body.text.push_str(&inside);
        Ok(())
    }

    /// Each piece of each line joined.
    fn totals(&self, mut body: Body<'_>, tile: &Tile) -> Result<Kernel> {
        let t = c_type(self.acc);
        let lines = THREADS / tile.team;
        body.line(&format!("__shared__ {t} s[{THREADS}];"));
        self.open(&mut body, tile);
        body.line(&format!("const I inner = inner0 + (I)(me % {lines});"));
        body.line(&format!("const bool mine = me % {lines} < {} && inner < {};", tile.inners, self.dims[2]));
        body.line(&format!("{t} a = {};", self.start));
        body.line("#pragma unroll 8");
        body.open(&format!("for (I k = first + (I)(me / {lines}); mine && k < end; k += {})", tile.team));
        let number = self.number(&mut body, "outer0", "k", "inner");
        let element = self.element(&mut body, &number, "o1")?;
        body.line(&format!("a = {};", self.joined("a", &convert(&element, self.d, self.acc)?)?));
        body.close();
        body.line("s[me] = a;");
        body.line("__syncthreads();");
        body.open(&format!("for (unsigned d = {}; d >= {lines}; d /= 2)", THREADS / 2));
        body.line(&format!("if (me < d) s[me] = {};", self.joined("s[me]", "s[me + d]")?));
        body.line("__syncthreads();");
        body.close();
        let place = format!("(outer0 * {} + inner) * {} + c", self.dims[2], tile.pieces);
        body.line(&format!("if (me < {lines} && mine) o0[{place}] = s[me];"));
        body.line("__syncthreads();");
        body.close();
        let writes = [self.acc, self.d];
        Ok(finish(body, &writes[..if self.x.is_some() { 1 } else { 2 }], 0, true, tile.grid(), BLOCK))
    }

    /// The running reductions; with pieces, `o1` has the running totals.
    fn running(&self, mut body: Body<'_>, tile: &Tile) -> Result<Kernel> {
        let inner = self.dims[2];
        let (t, size) = (c_type(self.acc), self.d.size());
        let slots = THREADS * tile.each;
        body.line(&format!("__shared__ {} s[{}];", c_type(self.d), slots + slots * size / 128 * (4 / size).max(1)));
        if tile.team > WARP {
            body.line(&format!("__shared__ {t} tops[{}];", THREADS / WARP));
        }
        self.open(&mut body, tile);
        body.line(&format!("const unsigned lane = me % {0}, row = me / {0};", tile.team));
        body.line(&format!("{t} before = {};", self.start));
        if tile.pieces > 1 {
            let mine = format!("c > 0 && row < {} && inner1 < {inner}", tile.inners);
            let place = format!("(outer0 * {inner} + inner1) * {} + c - 1", tile.pieces);
            body.line("const I inner1 = inner0 + (I)row;");
            body.line(&format!("if ({mine}) before = o1[{place}];"));
        }
        body.open(&format!("for (I k0 = first; k0 < end; k0 += {})", tile.length()));
        self.each(&mut body, tile, &|body, number, slot| {
            let element = self.element(body, number, "o0")?;
            body.line(&format!("s[{slot}] = {element};"));
            Ok(())
        })?;
        body.line("__syncthreads();");
        self.own(&mut body, tile)?;
        body.line("__syncthreads();");
        self.each(&mut body, tile, &|body, number, slot| {
            body.line(&format!("o0[{number}] = s[{slot}];"));
            Ok(())
        })?;
        // The next tile is written where this one is still read.
        body.line("__syncthreads();");
        body.close();
        body.close();
        let writes = [self.d, self.acc];
        Ok(finish(body, &writes[..tile.pieces.min(2)], 0, true, tile.grid(), BLOCK))
    }

    /// What a thread does to its elements in shared memory, once all are there; `before` becomes that of the next tile.
    /// What lies behind a line's last element is joined too, and reaches nothing that is kept.
    fn own(&self, body: &mut Body<'_>, tile: &Tile) -> Result<()> {
        let (t, each, team) = (c_type(self.acc), tile.each, tile.team);
        body.line(&format!("{}* own = s + {};", c_type(self.d), slot(&format!("me * {each}"), self.d.size())));
        body.line(&format!("{t} a = {}, part[{each}];", self.start));
        body.line("#pragma unroll");
        let element = self.joined("a", &convert("own[u]", self.d, self.acc)?)?;
        body.line(&format!("for (int u = 0; u < {each}; ++u) part[u] = a = {element};"));
        if team > 1 {
            body.line("#pragma unroll");
            body.open(&format!("for (unsigned d = 1; d < {}; d *= 2)", team.min(WARP)));
            body.line(&format!("const {t} b = fx_shuffle_up(a, d);"));
            body.line(&format!("if (lane % {WARP} >= d) a = {};", self.joined("b", "a")?));
            body.close();
        }
        body.line(&format!("{t} sum = before;"));
        if team > WARP {
            let warps = team / WARP;
            body.line(&format!("if (me % {WARP} == {}) tops[me / {WARP}] = a;", WARP - 1));
            body.line("__syncthreads();");
            body.line("#pragma unroll");
            body.open(&format!("for (unsigned q = 0; q < {warps}; ++q)"));
            body.line(&format!("if (q == lane / {WARP}) sum = before;"));
            body.line(&format!("before = {};", self.joined("before", &format!("tops[row * {warps} + q]"))?));
            body.close();
        }
        if team > 1 {
            body.line(&format!("const {t} up = fx_shuffle_up(a, 1);"));
            body.line(&format!("if (lane % {WARP} > 0) sum = {};", self.joined("sum", "up")?));
        }
        if team <= WARP {
            let last = format!("fx_shuffle_of(a, me % {WARP} / {team} * {team} + {})", team - 1);
            body.line(&format!("const {t} all = {};", if team > 1 { &last } else { "a" }));
            body.line(&format!("before = {};", self.joined("before", "all")?));
        }
        let sum = convert(&format!("({})", self.joined("sum", "part[u]")?), self.acc, self.d)?;
        body.line("#pragma unroll");
        body.line(&format!("for (int u = 0; u < {each}; ++u) own[u] = {sum};"));
        Ok(())
    }
}
