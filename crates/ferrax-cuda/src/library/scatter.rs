//! Scatters: updates of an array at indices, in place where nothing else reads it.
//!
//! Where no two updates can meet, a thread makes each, and so it does where they can, if their order does not matter:
//! integers of 32 and 64 bits are joined by atomic operations, and booleans are set by whichever updates set them. Otherwise
//! updates are first sorted by the elements that they meet, and a thread joins all those of one element in their order:
//! results are those of doing one after the other, to the bit, and of several that overwrite an element the last one wins.
//! Sums of narrow floats are rounded once.

use super::radix::sorted;
use super::sort::{Key, Lines};
use crate::plan::BufferId;
use crate::plan::frame::Frame;
use crate::print::body::Body;
use crate::print::elementwise::binary;
use crate::print::kernel::{BLOCK, Kernel, blocks, element_loop, finish};
use crate::print::types::{c_type, compute, is_narrow, narrowed, unsigned, widened};
use ferrax_base::{DType, Result, bail};
use ferrax_loops::{BinaryOp, IndexMode, Node, ScatterDims, ScatterOp, Type};

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
    if unique || window == n {
        let kernel = f.print(|body| s.alone(body, n))?;
        return f.launch(kernel, &[to], &[]);
    }
    if let Some(act) = s.in_any_order() {
        let kernel = f.print(|body| s.at_once(body, n, &act))?;
        return f.launch(kernel, &[to], &[]);
    }
    s.in_order(f, to, n)
}

impl Scatter<'_> {
    /// Updates sorted by what they meet, then joined.
    fn in_order(&self, f: &mut Frame<'_>, to: BufferId, n: usize) -> Result<()> {
        let (d, size) = (self.whole.dtype, self.whole.size());
        let bits = usize::BITS - size.leading_zeros();
        // What lies outside comes behind all elements.
        let dtype = if bits <= 32 { DType::U32 } else { DType::U64 };
        let places = f.temporary(n * dtype.size());
        let kernel = f.print(|mut body| {
            body.open(&element_loop(n));
            let place = self.place(&mut body)?;
            body.line(&format!("o0[i] = ({})({place} < 0 ? {size} : {place});", c_type(dtype)));
            body.close();
            Ok(finish(body, &[dtype], 0, true, [blocks(n), 1, 1], BLOCK))
        })?;
        f.launch(kernel, &[places], &[])?;
        let keys = [Key { array: places, dtype, bits }];
        let sorted = sorted(f, &Lines { keys: &keys, outer: 1, length: n, inner: 1 }, bits <= 32)?;
        // Places of one word are sorted with the numbers.
        let by = sorted.words.unwrap_or(places);
        let place = |k: &str| if by == places { format!("o1[o2[{k}]]") } else { format!("o1[{k}]") };
        let kernel = f.print(|mut body| {
            body.open(&element_loop(n));
            body.line(&format!("const {} place = {};", c_type(dtype), place("i")));
            if self.op == ScatterOp::Set {
                body.line(&format!("if (place == {size} || (i + 1 < {n} && {} == place)) continue;", place("i + 1")));
                body.line("const I k = (I)o2[i];");
            } else {
                // The first of an element's updates goes on to the others.
                body.line(&format!("if (place == {size} || (i > 0 && {} == place)) continue;", place("i - 1")));
                body.line(&format!("{} a = {};", self.state(), self.loaded()));
                body.open(&format!("for (I j = i; j < {n} && {} == place; ++j)", place("j")));
                body.line("const I k = (I)o2[j];");
            }
            let at = body.linear("k");
            let update = body.element(self.node.inputs[2], at)?;
            if self.op == ScatterOp::Set {
                body.line(&format!("o0[place] = {update};"));
            } else {
                body.line(&format!("a = {};", self.joined("a", &update)?));
                body.close();
                body.line(&format!("o0[place] = {};", self.stored("a")));
            }
            body.close();
            Ok(finish(body, &[d, dtype, DType::U32], 0, false, [blocks(n), 1, 1], BLOCK))
        })?;
        f.launch(kernel, &[to, by, sorted.order], &[])
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

    /// Updates in whatever order, a thread each.
    fn at_once(&self, mut body: Body<'_>, n: usize, act: &str) -> Result<Kernel> {
        body.open(&element_loop(n));
        let place = self.place(&mut body)?;
        body.open(&format!("if ({place} >= 0)"));
        let at = body.linear("i");
        let update = body.element(self.node.inputs[2], at)?;
        body.line(&act.replace('#', &format!("o0[{place}]")).replace('@', &update));
        body.close();
        body.close();
        Ok(finish(body, &[self.whole.dtype], 0, false, [blocks(n), 1, 1], BLOCK))
    }

    /// Updates that never meet, a thread each.
    fn alone(&self, mut body: Body<'_>, n: usize) -> Result<Kernel> {
        let d = self.whole.dtype;
        body.open(&element_loop(n));
        let place = self.place(&mut body)?;
        body.open(&format!("if ({place} >= 0)"));
        let at = body.linear("i");
        let update = body.element(self.node.inputs[2], at)?;
        let before = format!("o0[{place}]");
        let new =
            self.joined(&if self.op == ScatterOp::Set { before.clone() } else { widened(d, &before) }, &update)?;
        body.line(&format!("{before} = {};", self.stored(&new)));
        body.close();
        body.close();
        Ok(finish(body, &[d], 0, false, [blocks(n), 1, 1], BLOCK))
    }

    /// The type of a thread's sum.
    fn state(&self) -> &'static str {
        let d = self.whole.dtype;
        c_type(if is_narrow(d) { compute(d) } else { d })
    }

    fn loaded(&self) -> String {
        widened(self.whole.dtype, "o0[place]")
    }

    fn stored(&self, x: &str) -> String {
        if self.op == ScatterOp::Set { x.to_owned() } else { narrowed(self.whole.dtype, x) }
    }

    /// What an update makes of what is there.
    fn joined(&self, before: &str, update: &str) -> Result<String> {
        let d = self.whole.dtype;
        let op = match self.op {
            ScatterOp::Set => return Ok(update.to_owned()),
            ScatterOp::Add => BinaryOp::Add,
            ScatterOp::Sub => BinaryOp::Sub,
            ScatterOp::Mul => BinaryOp::Mul,
            ScatterOp::Min => BinaryOp::Min,
            ScatterOp::Max => BinaryOp::Max,
        };
        if !d.is_number() && !d.is_bool() {
            bail!(NotImplemented, "the CUDA engine has no scatter of {d} by {:?}", self.op);
        }
        binary(op, before, &widened(d, update), if is_narrow(d) { compute(d) } else { d })
    }

    /// The number of the element that update `i` meets, or -1.
    fn place(&self, body: &mut Body<'_>) -> Result<String> {
        let (dims, shape, indices) = (self.dims, &self.whole.shape, self.node.inputs[1]);
        let at = body.linear("i");
        let axes = body.axes(at, &self.updates.shape);
        let batch: Vec<String> =
            (0..axes.len()).filter(|a| !dims.update_window_dims.contains(a)).map(|a| axes[a].clone()).collect();
        let window: Vec<usize> = (0..shape.len())
            .filter(|d| !dims.inserted_window_dims.contains(d) && !dims.operand_batching_dims.contains(d))
            .collect();
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
