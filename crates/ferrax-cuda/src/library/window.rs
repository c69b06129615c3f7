//! Reductions over windows: a thread folds one window, beginning with the initial value, which cells of the padding and
//! between elements hold, too.

use crate::plan::frame::Frame;
use crate::print::elementwise::binary;
use crate::print::kernel::{BLOCK, blocks, element_loop, finish};
use crate::print::types::{c_type, compute, is_narrow, narrowed, widened};
use ferrax_base::{Result, bail};
use ferrax_loops::{Node, ReduceOp, WindowDims};

/// `ReduceWindow`.
pub fn reduce_window(f: &mut Frame<'_>, node: &Node, op: ReduceOp, dims: &WindowDims) -> Result<()> {
    let (g, x, init) = (f.g, node.inputs[0], node.inputs[1]);
    let (from, ty) = (g.ty(x), g.ty(node.first));
    let Some(join) = op.joining() else { bail!(NotImplemented, "the CUDA engine has no windows reduced by {op:?}") };
    let d = ty.dtype;
    let acc = if is_narrow(d) { compute(d) } else { d };
    let to = f.result(node.first);
    let n = ty.size();
    let rank = from.shape.len();
    let kernel = f.print(|mut body| {
        body.open(&element_loop(n));
        let at = body.linear("i");
        let out = body.axes(at, &ty.shape);
        let scalar = body.scalar();
        let start = body.element(init, scalar)?;
        body.line(&format!("const {} first = {};", c_type(acc), widened(d, &start)));
        body.line(&format!("{} a = first;", c_type(acc)));
        (0..rank).for_each(|s| body.open(&format!("for (I c{s} = 0; c{s} < {}; ++c{s})", dims.window[s])));
        let (mut place, mut inside) = (Vec::new(), vec!["true".to_owned()]);
        for s in 0..rank {
            let (step, low) = (dims.base_dilation[s], dims.padding[s].0);
            let text = format!("{} * {} + c{s} * {} - ({low})", out[s], dims.strides[s], dims.window_dilation[s]);
            let j = body.index(text);
            inside.push(format!("{j} >= 0 && {j} < {}", from.shape[s] * step));
            if step > 1 {
                inside.push(format!("{j} % {step} == 0"));
            }
            place.push(if step > 1 { body.index(format!("{j} / {step}")) } else { j });
        }
        body.line(&format!("{} b = first;", c_type(acc)));
        if from.size() > 0 {
            body.open(&format!("if ({})", inside.join(" && ")));
            let place = body.at_axes(place);
            let element = body.element(x, place)?;
            body.line(&format!("b = {};", widened(d, &element)));
            body.close();
        }
        body.line(&format!("a = {};", binary(join, "a", "b", acc)?));
        (0..rank).for_each(|_| body.close());
        body.line(&format!("o0[i] = {};", narrowed(d, "a")));
        body.close();
        Ok(finish(body, &[d], 0, true, [blocks(n), 1, 1], BLOCK))
    })?;
    f.launch(kernel, &[to], &[])
}
