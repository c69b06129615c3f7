//! Convolutions: on matrix units where operands are for those, else a thread computes one result, cell by cell of its window.

use super::dot::{self, Windows, accumulation, multiply_add};
use crate::plan::frame::Frame;
use crate::print::convert::convert;
use crate::print::kernel::{BLOCK, blocks, element_loop, finish};
use crate::print::types::{c_type, literal};
use ferrax_base::{Result, Scalar};
use ferrax_loops::{ConvDims, Node, Type};

/// Results, times cells and features under a window, of a convolution that is worth a kernel for matrix units.
const LARGE: usize = 1 << 22;

/// How a convolution of an image with a window to a result is a product on matrix units; none where it is not.
pub fn windows(dims: &ConvDims, [image, window, result]: [&Type; 3]) -> Option<Windows> {
    let spatial = image.shape.len() - 2;
    let windows = Windows {
        image: image.shape.to_vec(),
        window: window.shape[..spatial].to_vec(),
        places: result.shape[1..=spatial].to_vec(),
        strides: dims.strides.to_vec(),
        dilation: dims.rhs_dilation.to_vec(),
    };
    let work = result.size().saturating_mul(window.shape[..=spatial].iter().product());
    let dtypes = [image.dtype, result.dtype];
    let takes = dims.groups == 1 && image.dtype == window.dtype && work >= LARGE;
    (takes && dot::takes_windows(&windows, result.shape[spatial + 1], dtypes, dims.tf32)).then_some(windows)
}

/// `Conv`.
pub fn conv(f: &mut Frame<'_>, node: &Node, dims: &ConvDims) -> Result<()> {
    let (g, x, w) = (f.g, node.inputs[0], node.inputs[1]);
    let (image, window, ty) = (g.ty(x), g.ty(w), g.ty(node.first));
    let acc = accumulation(image.dtype, window.dtype, ty.dtype);
    let spatial = image.shape.len() - 2;
    let (inputs, per_group) = (window.shape[spatial], ty.shape[spatial + 1] / dims.groups.max(1));
    if let Some(windows) = windows(dims, [image, window, ty])
        && [x, w].iter().all(|&v| f.span(v).is_ok_and(|s| s.offset.is_multiple_of(16)))
    {
        let (features, dtypes) = (ty.shape[spatial + 1], [image.dtype, ty.dtype]);
        let kernel = f.print(|body| dot::convolution(body, [x, w], &windows, features, dtypes))?;
        let to = f.result(node.first);
        return f.launch(kernel, &[to], &[]);
    }
    let to = f.result(node.first);
    let n = ty.size();
    let kernel = f.print(|mut body| {
        body.open(&element_loop(n));
        let at = body.linear("i");
        let out = body.axes(at, &ty.shape);
        body.line(&format!("{} a = {};", c_type(acc), literal(Scalar::zero(acc))));
        let group = body.index(format!("{} / {}", out[spatial + 1], per_group.max(1)));
        for s in 0..spatial {
            body.open(&format!("for (I c{s} = 0; c{s} < {}; ++c{s})", window.shape[s]));
        }
        body.open(&format!("for (I q = 0; q < {inputs}; ++q)"));
        let (mut from, mut cell) = (vec![out[0].clone()], Vec::new());
        for s in 0..spatial {
            let place = format!("{} * {} + c{s} * {}", out[s + 1], dims.strides[s], dims.rhs_dilation[s]);
            from.push(body.index(place));
            cell.push(format!("c{s}"));
        }
        from.push(body.index(format!("{group} * {inputs} + q")));
        cell.extend(["q".to_owned(), out[spatial + 1].clone()]);
        let (from, cell) = (body.at_axes(from), body.at_axes(cell));
        let a = body.element(x, from)?;
        let b = body.element(w, cell)?;
        let (a, b) = (convert(&a, image.dtype, acc)?, convert(&b, window.dtype, acc)?);
        body.line(&format!("a = {};", multiply_add("a", &a, &b, acc)?));
        (0..=spatial).for_each(|_| body.close());
        body.line(&format!("o0[i] = {};", convert("a", acc, ty.dtype)?));
        body.close();
        Ok(finish(body, &[ty.dtype], 0, true, [blocks(n), 1, 1], BLOCK))
    })?;
    f.launch(kernel, &[to], &[])
}
