//! Scatters: updates of an array at indices, in place where nothing else reads it.
//!
//! Where no two updates can meet, a thread makes each. Otherwise updates are first sorted by the elements that they meet,
//! and a thread joins all those of one element in their order: results are those of doing one after the other, to the bit,
//! and of several that overwrite an element the last one wins. Sums of narrow floats are rounded once.

use super::sort::Lines;
use crate::plan::frame::Frame;
use crate::print::body::Body;
use crate::print::elementwise::binary;
use crate::print::kernel::{BLOCK, blocks, element_loop, finish};
use crate::print::types::{c_type, compute, is_narrow, narrowed, widened};
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
    let d = s.whole.dtype;
    if unique || window == n {
        let kernel = f.print(|mut body| {
            body.open(&element_loop(n));
            let place = s.place(&mut body)?;
            body.open(&format!("if ({place} >= 0)"));
            let at = body.linear("i");
            let update = body.element(node.inputs[2], at)?;
            let new = s.joined(&widened(d, &format!("o0[{place}]")), &update)?;
            body.line(&format!("o0[{place}] = {};", s.stored(&new)));
            body.close();
            body.close();
            Ok(finish(body, &[d], 0, false, [blocks(n), 1, 1], BLOCK))
        })?;
        return f.launch(kernel, &[to], &[]);
    }
    let places = f.temporary(n * 8);
    let kernel = f.print(|mut body| {
        body.open(&element_loop(n));
        let place = s.place(&mut body)?;
        body.line(&format!("o0[i] = {place};"));
        body.close();
        Ok(finish(body, &[DType::I64], 0, true, [blocks(n), 1, 1], BLOCK))
    })?;
    f.launch(kernel, &[places], &[])?;
    let keys = [(places, DType::I64)];
    let order = Lines { keys: &keys, outer: 1, length: n, inner: 1 }.sorted(f)?;
    let kernel = f.print(|mut body| {
        body.open(&element_loop(n));
        body.line("const long long place = o1[o2[i]];");
        // The first of an element's updates goes on to the others.
        body.line("if (place < 0 || (i > 0 && o1[o2[i - 1]] == place)) continue;");
        body.line(&format!("{} a = {};", s.state(), s.loaded()));
        body.open(&format!("for (I j = i; j < {n} && o1[o2[j]] == place; ++j)"));
        body.line("const I k = (I)o2[j];");
        let at = body.linear("k");
        let update = body.element(node.inputs[2], at)?;
        body.line(&format!("a = {};", s.joined("a", &update)?));
        body.close();
        body.line(&format!("o0[place] = {};", s.stored("a")));
        body.close();
        Ok(finish(body, &[d, DType::I64, DType::U32], 0, false, [blocks(n), 1, 1], BLOCK))
    })?;
    f.launch(kernel, &[to, places, order], &[])
}

impl Scatter<'_> {
    /// The type of a thread's sum.
    fn state(&self) -> &'static str {
        let d = self.whole.dtype;
        c_type(if self.op != ScatterOp::Set && is_narrow(d) { compute(d) } else { d })
    }

    fn loaded(&self) -> String {
        if self.op == ScatterOp::Set { "o0[place]".into() } else { widened(self.whole.dtype, "o0[place]") }
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
