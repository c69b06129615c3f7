//! Convolutions: one operation of the dialect, or what stands for it on GPUs, whose compilers have it for floats alone.
//!
//! A convolution of complex numbers is two of their parts; one of integers is a sum of products of matrices, one for each
//! cell of the window, in a loop.

use super::body::{Body, Val};
use super::control::loop_over;
use super::elementwise::compute_dtype;
use super::library::transposed;
use super::types::{array, list};
use super::{convert, dot};
use dot::precision;
use ferrax_base::{DType, Result, Scalar};
use ferrax_loops::{ConvDims, DotDims, Type};

/// `Conv`; floats below 32 bits are summed in f32, truth values as numbers.
pub(super) fn node(body: &mut Body<'_, '_>, dims: &ConvDims, inputs: &[Val], ty: &Type) -> Result<Val> {
    let (x, kernel) = (&inputs[0], &inputs[1]);
    if ty.size() == 0 || x.ty.size() == 0 || kernel.ty.size() == 0 {
        return Ok(body.splat(Scalar::zero(ty.dtype), &ty.shape));
    }
    let compute = if ty.dtype.is_bool() { DType::F32 } else { compute_dtype(ty.dtype) };
    let (x, kernel) = (convert::convert(body, x, compute)?, convert::convert(body, kernel, compute)?);
    // "" is what is shown of a program of the embedded engine.
    let whole = matches!(body.module.target.platform.as_str(), "" | "cpu" | "tpu");
    let y = if whole || compute.is_float() {
        convolution(body, dims, &x, &kernel, &ty.shape)
    } else if compute.is_complex() {
        by_parts(body, dims, &x, &kernel, &ty.shape)
    } else {
        by_cells(body, dims, &x, &kernel, &ty.shape)?
    };
    convert::convert(body, &y, ty.dtype)
}

/// The operation.
fn convolution(body: &mut Body<'_, '_>, dims: &ConvDims, x: &Val, kernel: &Val, shape: &[usize]) -> Val {
    let n = dims.strides.len();
    let spatial: Vec<String> = (0..n).map(|i| i.to_string()).collect();
    let axes = |before: &[&str], behind: &[&str]| {
        list(
            &before
                .iter()
                .copied()
                .chain(spatial.iter().map(String::as_str))
                .chain(behind.iter().copied())
                .collect::<Vec<_>>(),
        )
    };
    let (data, cells) = (axes(&["b"], &["f"]), axes(&[], &["i", "o"]));
    let (none, reversal) = match n {
        0 => ("dense<> : tensor<0x2xi64>".to_owned(), "array<i1>".to_owned()),
        n => (format!("dense<0> : tensor<{n}x2xi64>"), format!("array<i1: {}>", list(&vec!["false"; n]))),
    };
    let precision = precision(dims.tf32);
    let rest = format!(
        "{{window_strides = {}, padding = {none}, lhs_dilation = {}, rhs_dilation = {}, \
         window_reversal = {reversal}, dimension_numbers = #stablehlo.conv<[{data}]x[{cells}]->[{data}]>, \
         feature_group_count = {} : i64, batch_group_count = 1 : i64, \
         {precision}}}",
        array(&dims.strides),
        array(&vec![1; n]),
        array(&dims.rhs_dilation),
        dims.groups
    );
    body.op("stablehlo.convolution", &[x, kernel], &rest, &Type::new(x.dtype(), shape))
}

/// Of complex numbers: the real parts and behind them, as more of the batch, the imaginary ones, with each part of the kernel.
fn by_parts(body: &mut Body<'_, '_>, dims: &ConvDims, x: &Val, kernel: &Val, shape: &[usize]) -> Val {
    let (re, im) = (body.real(x), body.imag(x));
    let both = body.concat(&[&re, &im], 0);
    let mut twice = shape.to_vec();
    twice[0] *= 2;
    let mut second = vec![0; shape.len()];
    second[0] = shape[0];
    let [[rr, ir], [ri, ii]] = [body.real(kernel), body.imag(kernel)].map(|part| {
        let y = convolution(body, dims, &both, &part, &twice);
        [body.slice(&y, &vec![0; shape.len()], shape), body.slice(&y, &second, shape)]
    });
    let (re, im) = (body.bin("stablehlo.subtract", &rr, &ii), body.bin("stablehlo.add", &ri, &ir));
    body.complex(&re, &im)
}

/// Of integers: the sum over the window's cells of what each sees of the image, multiplied by its matrix.
fn by_cells(body: &mut Body<'_, '_>, dims: &ConvDims, x: &Val, kernel: &Val, shape: &[usize]) -> Result<Val> {
    let (rank, groups) = (shape.len(), dims.groups);
    let (window, channels) = kernel.shape().split_at(rank - 2);
    let (ins, outs) = (channels[0], channels[1] / groups);
    let (cells, window) = (window.iter().product::<usize>(), window.to_vec());
    let kernel = body.reshape(kernel, &[cells, ins, groups, outs]);
    // Groups come first in a product, as its batch.
    let mut product = [&[groups], &shape[..rank - 1], &[outs]].concat();
    let sum = body.splat(Scalar::zero(x.dtype()), &product);
    let first = body.splat(Scalar::zero(DType::I32), &[]);
    let go = |body: &mut Body<'_, '_>, now: &[Val]| {
        let end = body.splat(Scalar::from_i64(DType::I32, cells as i64), &[]);
        Ok(body.compare("LT", &now[0], &end))
    };
    let step = |body: &mut Body<'_, '_>, now: &[Val]| {
        let [at, x, kernel, sum] = now else { unreachable!("what is carried below") };
        let seen = seen(body, dims, (x, shape), (at, &window));
        let seen = body.reshape(&seen, &[&shape[..rank - 1], &[groups, ins]].concat());
        let zero = body.like(at, 0.0);
        let cell = body.dynamic_slice(kernel, &[at, &zero, &zero, &zero], &[1, ins, groups, outs]);
        let cell = body.reshape(&cell, &[ins, groups, outs]);
        let numbers = DotDims {
            lhs_batch: [rank - 1].as_slice().into(),
            rhs_batch: [1].as_slice().into(),
            lhs_contract: [rank].as_slice().into(),
            rhs_contract: [0].as_slice().into(),
            tf32: false,
        };
        let part = dot::node(body, &numbers, &[seen, cell], &sum.ty)?;
        let (one, sum) = (body.like(at, 1.0), body.bin("stablehlo.add", sum, &part));
        Ok(vec![body.bin("stablehlo.add", at, &one), x.clone(), kernel.clone(), sum])
    };
    let sum = loop_over(body, &[first, x.clone(), kernel, sum], go, step)?.swap_remove(3);
    product.rotate_left(1);
    let order: Vec<usize> = (1..rank).chain([0, rank]).collect();
    let sum = transposed(body, &sum, &order);
    Ok(body.reshape(&sum, shape))
}

/// What the cell of a number sees of an image: where it stands in each of a result's windows.
fn seen(
    body: &mut Body<'_, '_>,
    dims: &ConvDims,
    (x, shape): (&Val, &[usize]),
    (cell, window): (&Val, &[usize]),
) -> Val {
    let zero = body.like(cell, 0.0);
    let (mut starts, mut extent, mut left) = (vec![zero; shape.len()], x.shape().to_vec(), cell.clone());
    let mut strides = vec![1; shape.len()];
    for (axis, &n) in window.iter().enumerate().rev() {
        let (count, by) = (body.like(cell, n as f64), body.like(cell, dims.rhs_dilation[axis] as f64));
        let place = body.bin("stablehlo.remainder", &left, &count);
        left = body.bin("stablehlo.divide", &left, &count);
        starts[1 + axis] = body.bin("stablehlo.multiply", &place, &by);
        strides[1 + axis] = dims.strides[axis];
        extent[1 + axis] = (shape[1 + axis] - 1) * dims.strides[axis] + 1;
    }
    let part = body.dynamic_slice(x, &starts.iter().collect::<Vec<_>>(), &extent);
    let shape: Vec<usize> = shape[..shape.len() - 1].iter().chain(extent.last()).copied().collect();
    body.strided_slice(&part, (&vec![0; extent.len()], &extent, &strides), &shape)
}
