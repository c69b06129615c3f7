//! Scatters: updates of an array at indices, in place where nothing else reads it.
//!
//! Where no two updates can meet, a thread makes each, and so it does where they can, if their order does not matter:
//! integers of 32 and 64 bits are joined by atomic operations, and booleans are set by whichever updates set them. Otherwise
//! updates are first sorted by the elements that they meet, windows of whole rows as one, and a thread joins all those of an
//! element in their order: results are those of doing one after the other, to the bit, and of several that overwrite an
//! element the last one wins. Where many meet, a warp reads them for it. Sums of narrow floats are rounded once.

use super::radix::sorted;
use super::sort::{Key, Lines};
use crate::plan::BufferId;
use crate::plan::frame::Frame;
use crate::print::body::Body;
use crate::print::elementwise::binary;
use crate::print::kernel::{BLOCK, Kernel, blocks, element_loop, finish};
use crate::print::types::{c_type, compute, is_narrow, narrowed, unsigned, widened};
use ferrax_base::{DType, Result, bail};
use ferrax_loops::{IndexMode, Node, ScatterDims, ScatterOp, Type};

/// Updates of an element that a thread reads by itself.
const ALONE: usize = 32;

/// How updates are sorted.
struct Rows {
    /// What is sorted.
    count: usize,
    /// Updates of each, which meet others all together or not at all.
    window: usize,
    /// Bits of the elements' numbers, and of one behind them.
    bits: u32,
    /// The dtype of those numbers.
    dtype: DType,
}

struct Scatter<'s> {
    node: &'s Node,
    op: ScatterOp,
    dims: &'s ScatterDims,
    mode: IndexMode,
    whole: Type,
    updates: Type,
}

/// `Scatter`.
pub fn scatter(
    f: &mut Frame<'_>,
    node: &Node,
    op: ScatterOp,
    dims: &ScatterDims,
    mode: IndexMode,
    unique: bool,
) -> Result<()> {
    let (whole, updates) = (f.g.ty(node.first).clone(), f.g.ty(node.inputs[2]).clone());
    let n = updates.size();
    let s = Scatter { node, op, dims, mode, whole, updates };
    let to = f.result_over_first(node)?;
    if n == 0 {
        return Ok(());
    }
    let window: usize = dims.update_window_dims.iter().map(|&a| s.updates.shape[a]).product();
    let meets = !unique && window != n;
    let act = if meets { s.in_any_order() } else { None };
    if act.is_some() || !meets {
        let kernel = f.print(|body| s.at_once(body, n, act.as_deref()))?;
        return f.launch(kernel, &[to], &[]);
    }
    s.in_order(f, to, n)
}

impl Scatter<'_> {
    /// Updates sorted by what they meet, then joined.
    fn in_order(&self, f: &mut Frame<'_>, to: BufferId, n: usize) -> Result<()> {
        let size = self.whole.size();
        let bits = usize::BITS - size.leading_zeros();
        let window = self.row();
        let dtype = if bits <= 32 { DType::U32 } else { DType::U64 };
        let rows = Rows { count: n / window, window, bits, dtype };
        let places = f.temporary(rows.count * dtype.size());
        let kernel = f.print(|mut body| {
            body.open(&element_loop(rows.count));
            let axes = self.axes(&mut body, &rows, "i", "0");
            let place = self.place(&mut body, &axes)?;
            // What lies outside comes behind all elements.
            body.line(&format!("o0[i] = ({})({place} < 0 ? {size} : {place});", c_type(dtype)));
            body.close();
            Ok(finish(body, &[dtype], 0, true, [blocks(rows.count), 1, 1], BLOCK))
        })?;
        f.launch(kernel, &[places], &[])?;
        let keys = [Key { array: places, dtype, bits }];
        let lines = Lines { keys: &keys, outer: 1, length: rows.count, inner: 1 };
        let sorted = sorted(f, &lines, bits <= 32)?;
        let kernel = f.print(|body| {
            if self.op == ScatterOp::Set || window > 1 {
                self.by_threads(body, &rows)
            } else {
                self.by_warps(body, &rows)
            }
        })?;
        f.launch(kernel, &[to, sorted.words.unwrap_or(places), sorted.order], &[])
    }

    /// Updates of a window that meets other windows wholly or not at all, at the same places of both; 1 where windows are
    /// not like that.
    fn row(&self) -> usize {
        let (dims, shape) = (self.dims, &self.whole.shape);
        let whole = self.window_dims().zip(&dims.update_window_dims).all(|(d, &a)| {
            let extent = self.updates.shape[a];
            extent == 1 || (extent == shape[d] && !dims.scatter_dims_to_operand_dims.contains(&d))
        });
        let sizes = dims.update_window_dims.iter().map(|&a| self.updates.shape[a]);
        if whole { sizes.product() } else { 1 }
    }

    /// The operand's axes that windows extend along.
    fn window_dims(&self) -> impl Iterator<Item = usize> + '_ {
        let dims = self.dims;
        (0..self.whole.shape.len())
            .filter(|d| !dims.inserted_window_dims.contains(d) && !dims.operand_batching_dims.contains(d))
    }

    /// The indices of update `w` of row `r`.
    fn axes(&self, body: &mut Body<'_>, rows: &Rows, r: &str, w: &str) -> Vec<String> {
        let (shape, window) = (&self.updates.shape, &self.dims.update_window_dims);
        let at = body.linear(r);
        if rows.window == 1 {
            return body.axes(at, shape).into_vec();
        }
        let extents =
            |inside: bool| (0..shape.len()).filter(|a| window.contains(a) == inside).map(|a| shape[a]).collect();
        let (outer, inner): (Vec<usize>, Vec<usize>) = (extents(false), extents(true));
        let mut outer = body.axes(at, &outer).into_iter();
        let at = body.linear(w);
        let mut inner = body.axes(at, &inner).into_iter();
        let axis = |a: usize| if window.contains(&a) { inner.next() } else { outer.next() }.unwrap_or_default();
        (0..shape.len()).map(axis).collect()
    }

    /// The sorted place with this number: places of one word are sorted with the numbers.
    fn sorted_place(rows: &Rows, k: &str) -> String {
        if rows.bits <= 32 { format!("o1[{k}]") } else { format!("o1[o2[{k}]]") }
    }

    fn joining(&self, body: Body<'_>, rows: &Rows) -> Kernel {
        let threads = rows.count * rows.window;
        finish(body, &[self.whole.dtype, rows.dtype, DType::U32], 0, false, [blocks(threads), 1, 1], BLOCK)
    }

    /// A thread for each row's first update of each element, or its last where that wins.
    fn by_threads(&self, mut body: Body<'_>, rows: &Rows) -> Result<Kernel> {
        let (n, size, place) = (rows.count, self.whole.size(), |k: &str| Self::sorted_place(rows, k));
        body.open(&element_loop(n * rows.window));
        let r = body.index(if rows.window > 1 { format!("i / {}", rows.window) } else { "i".to_owned() });
        let w = if rows.window > 1 { body.index(format!("i % {}", rows.window)) } else { "0".to_owned() };
        body.line(&format!("const {} place = {};", c_type(rows.dtype), place(&r)));
        let set = self.op == ScatterOp::Set;
        let other = if set {
            format!("({r} + 1 < {n} && {} == place)", place(&format!("{r} + 1")))
        } else {
            format!("({r} > 0 && {} == place)", place(&format!("{r} - 1")))
        };
        body.line(&format!("if (place == {size} || {other}) continue;"));
        // The window's own part of the element's number.
        let axes = self.axes(&mut body, rows, "0", &w);
        let mut inside = vec!["0".to_owned(); self.whole.shape.len()];
        if rows.window > 1 {
            self.window_dims().zip(&self.dims.update_window_dims).for_each(|(d, &a)| inside[d].clone_from(&axes[a]));
        }
        let at = body.at_axes(inside);
        let part = body.number(at, &self.whole.shape);
        body.line(&format!("const long long to = (long long)place + {part};"));
        if !set {
            body.line(&format!("{} a = {};", self.state(), self.loaded("to")));
            // How far the element's updates go is found first, so that they are read ahead of their sum.
            let goes = format!("last + step < {n} && {} == place", place("last + step"));
            body.line(&format!("I last = {r}, step = 1;"));
            body.line(&format!("for (; {goes}; step *= 2) last += step;"));
            body.line(&format!("for (; step > 0; step /= 2) if ({goes}) last += step;"));
            body.line("#pragma unroll 4");
            body.open(&format!("for (I j = {r}; j <= last; ++j)"));
        }
        body.line(&format!("const I k = (I)o2[{}];", if set { &r } else { "j" }));
        let update = self.update(&mut body, rows, &w)?;
        if set {
            body.line(&format!("o0[to] = {update};"));
        } else {
            body.line(&format!("a = {};", self.joined("a", &update)?));
            body.close();
            body.line(&format!("o0[to] = {};", self.stored("a")));
        }
        body.close();
        Ok(self.joining(body, rows))
    }

    /// Update `w` of row `k`.
    fn update(&self, body: &mut Body<'_>, rows: &Rows, w: &str) -> Result<String> {
        let axes = self.axes(body, rows, "k", w);
        let at = body.at_axes(axes);
        body.element(self.node.inputs[2], at)
    }

    /// The same for rows of one update: of an element's updates beyond the first ones, lanes read one each, and all lanes join
    /// them one after the other. Of 32 neighbours one alone can have so many.
    fn by_warps(&self, mut body: Body<'_>, rows: &Rows) -> Result<Kernel> {
        let (n, size, place) = (rows.count, self.whole.size(), |k: &str| Self::sorted_place(rows, k));
        let (p, s, d) = (c_type(rows.dtype), self.state(), c_type(self.whole.dtype));
        body.line("const int lane = threadIdx.x % 32;");
        let begin = "((I)blockIdx.x * blockDim.x + threadIdx.x) / 32 * 32";
        body.open(&format!("for (I b = {begin}; b < {n}; b += (I)gridDim.x * blockDim.x)"));
        body.line("const I i = b + lane;");
        body.line(&format!("const {p} place = i < {n} ? {} : {size};", place("i")));
        body.line(&format!("const bool first = place != {size} && !(i > 0 && {} == place);", place("i - 1")));
        body.line(&format!("{s} a = {{}};"));
        body.line("I j = i;");
        body.open("if (first)");
        body.line(&format!("a = {};", self.loaded("place")));
        body.open(&format!("for (; j < {n} && j < i + {ALONE} && {} == place; ++j)", place("j")));
        body.line("const I k = (I)o2[j];");
        let update = self.update(&mut body, rows, "0")?;
        body.line(&format!("a = {};", self.joined("a", &update)?));
        body.close();
        body.close();
        let more = format!("first && j == i + {ALONE} && j < {n} && {} == place", place("j"));
        body.line(&format!("const unsigned who = __ballot_sync(0xffffffffu, {more});"));
        body.open("if (who)");
        body.line("const int leader = __popc((who & (0u - who)) - 1);");
        body.line(&format!("const {p} shared = fx_shuffle_of(place, leader);"));
        body.line("I from = fx_shuffle_of(j, leader);");
        body.line(&format!("{s} sum = fx_shuffle_of(a, leader);"));
        body.open("for (int count = 32; count == 32; from += 32)");
        body.line("const I next = from + lane;");
        body.line(&format!("const bool here = next < {n} && {} == shared;", place("next")));
        body.line(&format!("{d} own = {{}};"));
        body.open("if (here)");
        body.line("const I k = (I)o2[next];");
        let update = self.update(&mut body, rows, "0")?;
        body.line(&format!("own = {update};"));
        body.close();
        body.line("count = __popc(__ballot_sync(0xffffffffu, here));");
        body.line("#pragma unroll");
        body.open("for (int t = 0; t < 32; ++t)");
        body.line(&format!("const {d} update = fx_shuffle_of(own, t);"));
        body.line(&format!("if (t < count) sum = {};", self.joined("sum", "update")?));
        body.close();
        body.close();
        body.line("if (lane == leader) a = sum;");
        body.close();
        body.line(&format!("if (first) o0[place] = {};", self.stored("a")));
        body.close();
        Ok(self.joining(body, rows))
    }

    /// What joins an update (`@`) to an element (`#`) whatever else is joined to it, if its order does not matter.
    fn in_any_order(&self) -> Option<String> {
        let d = self.whole.dtype;
        if d.is_bool() {
            return match self.op {
                ScatterOp::Add | ScatterOp::Max => Some("if (@) # = 1;".to_owned()),
                ScatterOp::Mul | ScatterOp::Min => Some("if (!@) # = 0;".to_owned()),
                ScatterOp::Set | ScatterOp::Sub => None,
            };
        }
        if !matches!(d, DType::I32 | DType::U32 | DType::I64 | DType::U64) {
            return None;
        }
        let (word, own) = (unsigned(d), c_type(d));
        match self.op {
            ScatterOp::Add => Some(format!("atomicAdd(({word}*)&#, ({word})@);")),
            ScatterOp::Sub => Some(format!("atomicAdd(({word}*)&#, 0 - ({word})@);")),
            ScatterOp::Min => Some(format!("atomicMin(({own}*)&#, @);")),
            ScatterOp::Max => Some(format!("atomicMax(({own}*)&#, @);")),
            ScatterOp::Set | ScatterOp::Mul => None,
        }
    }

    /// Updates that never meet, or that act in whatever order, a thread each.
    fn at_once(&self, mut body: Body<'_>, n: usize, act: Option<&str>) -> Result<Kernel> {
        let d = self.whole.dtype;
        body.open(&element_loop(n));
        let place = self.own_place(&mut body)?;
        body.open(&format!("if ({place} >= 0)"));
        let at = body.linear("i");
        let update = body.element(self.node.inputs[2], at)?;
        let before = format!("o0[{place}]");
        if let Some(act) = act {
            body.line(&act.replace('#', &before).replace('@', &update));
        } else {
            let old = if self.op == ScatterOp::Set { before.clone() } else { widened(d, &before) };
            let new = self.joined(&old, &update)?;
            body.line(&format!("{before} = {};", self.stored(&new)));
        }
        body.close();
        body.close();
        Ok(finish(body, &[d], 0, false, [blocks(n), 1, 1], BLOCK))
    }

    /// The type of a thread's sum.
    fn state(&self) -> &'static str {
        let d = self.whole.dtype;
        c_type(if is_narrow(d) { compute(d) } else { d })
    }

    fn loaded(&self, place: &str) -> String {
        widened(self.whole.dtype, &format!("o0[{place}]"))
    }

    fn stored(&self, x: &str) -> String {
        if self.op == ScatterOp::Set { x.to_owned() } else { narrowed(self.whole.dtype, x) }
    }

    /// What an update makes of what is there.
    fn joined(&self, before: &str, update: &str) -> Result<String> {
        let d = self.whole.dtype;
        let Some(op) = self.op.joining() else { return Ok(update.to_owned()) };
        if !d.is_number() && !d.is_bool() {
            bail!(NotImplemented, "the CUDA engine has no scatter of {d} by {:?}", self.op);
        }
        binary(op, before, &widened(d, update), if is_narrow(d) { compute(d) } else { d })
    }

    /// The number of the element that update `i` meets, or -1.
    fn own_place(&self, body: &mut Body<'_>) -> Result<String> {
        let at = body.linear("i");
        let axes = body.axes(at, &self.updates.shape);
        self.place(body, &axes)
    }

    /// The number of the element that the update at some indices meets, or -1.
    fn place(&self, body: &mut Body<'_>, axes: &[String]) -> Result<String> {
        let (dims, shape, indices) = (self.dims, &self.whole.shape, self.node.inputs[1]);
        let batch: Vec<String> =
            (0..axes.len()).filter(|a| !dims.update_window_dims.contains(a)).map(|a| axes[a].clone()).collect();
        let window: Vec<usize> = self.window_dims().collect();
        let (mut of, mut inside) = (Vec::new(), Vec::new());
        for d in 0..shape.len() {
            let mut terms = Vec::new();
            if let Some(p) = dims.operand_batching_dims.iter().position(|&o| o == d) {
                terms.push(batch[dims.scatter_indices_batching_dims[p]].clone());
            }
            let own = window.iter().position(|&o| o == d).map(|w| dims.update_window_dims[w]);
            if let Some(k) = dims.scatter_dims_to_operand_dims.iter().position(|&o| o == d) {
                let at = body.at_axes(batch.iter().cloned().chain([k.to_string()]));
                let index = body.element(indices, at)?;
                let most = shape[d] as i64 - own.map_or(1, |a| self.updates.shape[a]) as i64;
                let start = body.named("long long", 'j', format!("fx_index({index})"));
                if self.mode == IndexMode::FillOrDrop {
                    inside.push(format!("{start} >= 0 && {start} <= {most}ll"));
                }
                terms.push(format!("(I)fx_within({start}, {most}ll)"));
            }
            terms.extend(own.map(|a| axes[a].clone()));
            of.push(if terms.is_empty() { "0".to_owned() } else { body.index(terms.join(" + ")) });
        }
        let at = body.at_axes(of);
        let number = body.number(at, shape);
        let test = if inside.is_empty() { "true".to_owned() } else { inside.join(" && ") };
        Ok(body.named("long long", 'j', format!("{test} ? (long long)({number}) : -1ll")))
    }
}
