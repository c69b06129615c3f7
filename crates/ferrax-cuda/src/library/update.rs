//! Updates of a window of an array, in place where nothing else reads it.

use crate::plan::frame::Frame;
use crate::print::kernel::{BLOCK, blocks, element_loop, finish};
use ferrax_base::Result;
use ferrax_loops::Node;

/// `DynamicUpdateSlice`.
pub fn dynamic_update_slice(f: &mut Frame<'_>, node: &Node) -> Result<()> {
    let (g, update) = (f.g, node.inputs[1]);
    let to = f.result_over_first(node)?;
    let (whole, window) = (g.ty(node.first), g.ty(update));
    let n = window.size();
    if n == 0 {
        return Ok(());
    }
    let kernel = f.print(|mut body| {
        body.open(&element_loop(n));
        let at = body.linear("i");
        let axes = body.axes(at, &window.shape);
        let starts = body.starts(&node.inputs[2..], &whole.shape, &window.shape)?;
        let place = starts.iter().zip(&axes).map(|(s, a)| body.index(format!("{s} + {a}"))).collect::<Vec<_>>();
        let place = body.at_axes(place);
        let place = body.number(place, &whole.shape);
        let element = body.element(update, at)?;
        body.line(&format!("o0[{place}] = {element};"));
        body.close();
        Ok(finish(body, &[whole.dtype], 0, false, [blocks(n), 1, 1], BLOCK))
    })?;
    f.launch(kernel, &[to], &[])
}
