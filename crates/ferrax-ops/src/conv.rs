//! Convolutions: `conv_general_dilated`, of which every other is a special case.
//!
//! `y[n, o, t] = Σ x̃[n, c, t·s + k·r] · w[o, c, k]` over input features c and kernel cells k, where x̃ is the left
//! operand dilated by `lhs_dilation` and padded, s are the window strides and r is `rhs_dilation`. With G feature
//! groups, group g of the outputs sees group g of the input features; with G batch groups, group g of the batch. Which
//! axis of each operand is which is said by [`ConvSpecs`].
//!
//! Both transposes are convolutions again: in x, of the cotangent dilated by s with the flipped kernel; in w, of x with
//! the cotangent as the kernel, the batch taking the part of the features. Read next: `crates/ferrax-cpu/src/library/conv/mod.rs`.

use crate::common::{FROM_KERNEL, NO_REWRITE, bilinear_jvp, cells, dilated, places};
use crate::convert_element_type;
use crate::dot::{DotPrecision, compute_dtype};
use crate::registry::Primitive;
use crate::shape::{reshape, rev};
use crate::window::Padding;
use ferrax_base::shape::Tuple;
use ferrax_base::symbolic::{Operation, at_least, difference, dims};
use ferrax_base::{Aval, DType, Result, Scalar, Shape, bail};
use ferrax_ir::op::{BatchAxis, BatchDims};
use ferrax_ir::params::split_tuple;
use ferrax_ir::reference::{RefTensor, advance};
use ferrax_ir::trace::bind1;
use ferrax_ir::{Avals, Def, OpRef, Param, ParamValue, Slot, Special, Tangents, TransposeArg, Value, Values};
use ferrax_loops::{Builder, ConvDims, Kind, PadConfig, Type, ValueId};
use ferrax_transform::structural::move_axis;
use smallvec::smallvec;

/// Which axis of each array is which.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConvSpecs {
    /// Batch, feature, spatial axes of the left operand.
    pub lhs: Shape,
    /// Output feature, input feature, spatial axes of the kernel.
    pub rhs: Shape,
    /// Batch, feature, spatial axes of the result.
    pub out: Shape,
}

impl ParamValue for ConvSpecs {
    fn print(&self) -> Param {
        let [lhs, rhs, out] = [&self.lhs, &self.rhs, &self.out].map(|s| Tuple(s).to_string());
        Param::Text(format!("ConvDimensionNumbers(lhs_spec={lhs}, rhs_spec={rhs}, out_spec={out})"))
    }

    fn parse(text: &Param) -> Option<Self> {
        let Param::Text(t) = text else { return None };
        let parts = split_tuple(t.strip_prefix("ConvDimensionNumbers")?)?;
        let spec = |i: usize, name: &str| -> Option<Shape> {
            let axes = parts.get(i)?.strip_prefix(name)?.strip_prefix('=')?;
            ParamValue::parse(&Param::Text(axes.into()))
        };
        Some(ConvSpecs { lhs: spec(0, "lhs_spec")?, rhs: spec(1, "rhs_spec")?, out: spec(2, "out_spec")? })
    }
}

ferrax_ir::params! {
    /// Parameters of `conv_general_dilated`.
    pub struct ConvParams {
        /// Steps of the window, one a spatial axis.
        window_strides: Shape,
        /// Low and high padding of each spatial axis; negative padding crops.
        padding: Padding,
        /// Spacing of the left operand's elements.
        lhs_dilation: Shape,
        /// Spacing of the kernel's cells.
        rhs_dilation: Shape,
        /// Which axis is which.
        dimension_numbers: ConvSpecs,
        /// Groups of features.
        feature_group_count: usize,
        /// Groups of the batch.
        batch_group_count: usize,
        /// The precision asked for; the CPU computes in full.
        precision: Option<DotPrecision>,
        /// The dtype to accumulate in and to give; `None` is the operands'.
        preferred_element_type: Option<DType>,
    }
    print: |_: &ConvParams, out| with_out_sharding(out)
}

/// The parameters with the one that JAX prints though results have their sharding in their types here.
fn with_out_sharding(mut params: Vec<(&'static str, Param)>) -> Vec<(&'static str, Param)> {
    params.push(("out_sharding", Param::Text("None".into())));
    params.sort_by_key(|(name, _)| *name);
    params
}

/// Convolution with strides, padding, dilations and groups.
pub static CONV_GENERAL_DILATED: Def<ConvParams> = Def {
    name: "conv_general_dilated",
    doc: "Convolution with strides, padding, dilations and groups.",
    arity: Some(2),
    shape: conv_shape,
    jvp: Slot::Rule(bilinear_jvp),
    transpose: Slot::Rule(conv_transpose),
    batch: Slot::Rule(conv_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| Ok(smallvec![conv_kernel(p, b, args, &outs[0])])),
    reference: Slot::Rule(conv_reference),
    special: Special::WEIGHTED,
};

// ---- shape ---------------------------------------------------------------------------------------------------------

fn sizes(shape: &[usize], axes: &[usize]) -> Shape {
    axes.iter().map(|&a| shape[a]).collect()
}

fn check_specs(p: &ConvParams, x: &Aval, w: &Aval) -> Result<()> {
    let spatial = x.rank().saturating_sub(2);
    if x.rank() < 2 || w.rank() != x.rank() {
        bail!(
            Type,
            "conv_general_dilated lhs and rhs must have the same number of axes, at least 2, got shapes {} and {}.",
            Tuple(&x.shape),
            Tuple(&w.shape)
        );
    }
    let d = &p.dimension_numbers;
    for (name, spec) in [("lhs_spec", &d.lhs), ("rhs_spec", &d.rhs), ("out_spec", &d.out)] {
        let mut sorted = spec.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..x.rank()) {
            bail!(
                Type,
                "conv_general_dilated {name} must name each of the {} axes once, got {}.",
                x.rank(),
                Tuple(spec)
            );
        }
    }
    let lengths = [
        (p.window_strides.len(), "window_strides"),
        (p.padding.len(), "padding"),
        (p.lhs_dilation.len(), "lhs_dilation"),
        (p.rhs_dilation.len(), "rhs_dilation"),
    ];
    for (n, what) in lengths {
        if n != spatial {
            bail!(
                Type,
                "conv_general_dilated window and {what} must have the same number of dimensions: got {n} {what} for \
                 {spatial} spatial dimensions."
            );
        }
    }
    for (what, values) in
        [("window_strides", &p.window_strides), ("lhs_dilation", &p.lhs_dilation), ("rhs_dilation", &p.rhs_dilation)]
    {
        if values.contains(&0) {
            bail!(Type, "All components of {what} must be positive. Got {}.", Tuple(values));
        }
    }
    Ok(())
}

fn check_groups(p: &ConvParams, x: &Aval, w: &Aval) -> Result<()> {
    let d = &p.dimension_numbers;
    let (features, groups, batches) = (x.shape[d.lhs[1]], p.feature_group_count, p.batch_group_count);
    let (outputs, inputs, batch) = (w.shape[d.rhs[0]], w.shape[d.rhs[1]], x.shape[d.lhs[0]]);
    for (what, n) in [("feature_group_count", groups), ("batch_group_count", batches)] {
        if n == 0 {
            bail!(Value, "conv_general_dilated {what} must be a positive integer, got {n}.");
        }
    }
    if dims(Operation::Rem, features, groups)? != 0 || dims(Operation::Div, features, groups)? != inputs {
        bail!(
            Value,
            "conv_general_dilated lhs feature dimension size divided by feature_group_count must equal the rhs input \
             feature dimension size, but {features} // {groups} != {inputs} (lhs shape {}, rhs shape {}).",
            Tuple(&x.shape),
            Tuple(&w.shape)
        );
    }
    for (what, n) in [("feature_group_count", groups), ("batch_group_count", batches)] {
        if dims(Operation::Rem, outputs, n)? != 0 {
            bail!(
                Value,
                "conv_general_dilated rhs output feature dimension size must be a multiple of {what}, but {outputs} is \
                 not a multiple of {n}."
            );
        }
    }
    if dims(Operation::Rem, batch, batches)? != 0 {
        bail!(
            Value,
            "conv_general_dilated batch_group_count must divide lhs batch dimension size, but {batches} does not \
             divide {batch}."
        );
    }
    if groups > 1 && batches > 1 {
        bail!(
            Value,
            "At most one of batch_group_count and feature_group_count may be > 1, got {batches} and {groups}."
        );
    }
    Ok(())
}

fn conv_shape(p: &ConvParams, args: &[&Aval]) -> Result<Avals> {
    let (x, w) = (args[0], args[1]);
    if x.dtype != w.dtype {
        bail!(
            Type,
            "lax.conv_general_dilated requires arguments to have the same dtypes, got {}, {}.",
            x.dtype,
            w.dtype
        );
    }
    if x.dtype.is_key() || x.dtype == DType::Float0 {
        bail!(Type, "conv_general_dilated does not accept dtype {}; it takes numbers", x.dtype);
    }
    check_specs(p, x, w)?;
    check_groups(p, x, w)?;
    let d = &p.dimension_numbers;
    let mut shape: Shape = smallvec![0; x.rank()];
    shape[d.out[0]] = dims(Operation::Div, x.shape[d.lhs[0]], p.batch_group_count)?;
    shape[d.out[1]] = w.shape[d.rhs[0]];
    for i in 0..x.rank() - 2 {
        let (lo, hi) = p.padding[i];
        let size = dilated(x.shape[d.lhs[i + 2]], p.lhs_dilation[i])?;
        let padded = difference(&[size, lo, hi], &[])?;
        if !at_least(padded, 0)? {
            bail!(
                Value,
                "conv_general_dilated crops spatial axis {i} by more than it has: its size is {size} (dilated by \
                 lhs_dilation), its padding ({lo}, {hi})"
            );
        }
        let span = dilated(w.shape[d.rhs[i + 2]], p.rhs_dilation[i])?;
        shape[d.out[i + 2]] = places(padded, span, p.window_strides[i])?;
    }
    let dtype = crate::dot::preferred(x.dtype, p.preferred_element_type)?;
    let weak = x.weak && w.weak && p.preferred_element_type.is_none();
    Ok(smallvec![Aval { shape, dtype, weak, vary: 0, spread: 0 }])
}

// ---- groups --------------------------------------------------------------------------------------------------------

/// Splits `groups` off the front of an axis.
fn split(x: &Value, axis: usize, groups: usize) -> Result<Value> {
    let mut shape = Shape::from_slice(x.shape());
    shape[axis] = dims(Operation::Div, shape[axis], groups)?;
    shape.insert(axis, groups);
    reshape(x, &shape)
}

/// Joins an axis with the next one.
fn join(x: &Value, axis: usize) -> Result<Value> {
    let mut shape = Shape::from_slice(x.shape());
    shape[axis] = dims(Operation::Mul, shape[axis], shape[axis + 1])?;
    shape.remove(axis + 1);
    reshape(x, &shape)
}

/// Moves `groups` from the front of one axis to the front of another.
fn regroup(x: &Value, from: usize, to: usize, groups: usize) -> Result<Value> {
    if groups == 1 {
        return Ok(x.clone());
    }
    // the groups' own axis, once it is taken out, leaves the others where they were: it goes in before `to`
    join(&move_axis(&split(x, from, groups)?, from, to)?, to)
}

/// The same convolution with groups of features in place of groups of the batch.
fn with_feature_groups(p: &ConvParams, x: &Value) -> Result<(ConvParams, Value)> {
    let d = &p.dimension_numbers;
    let mut q = p.clone();
    if p.batch_group_count > 1 {
        (q.feature_group_count, q.batch_group_count) = (p.batch_group_count, 1);
    }
    Ok((q, regroup(x, d.lhs[0], d.lhs[1], p.batch_group_count)?))
}

// ---- rules ---------------------------------------------------------------------------------------------------------

fn swapped(spec: &Shape) -> Shape {
    let mut out = spec.clone();
    out.swap(0, 1);
    out
}

fn in_dtype(x: Value, dtype: DType) -> Result<Value> {
    if x.dtype() == dtype { Ok(x) } else { convert_element_type(&x, dtype) }
}

/// The cotangent of the left operand, of a convolution without batch groups.
fn lhs_cotangent(p: &ConvParams, ct: &Value, x: &[usize], w: &Value) -> Result<Value> {
    let d = &p.dimension_numbers;
    let (n, k, t) = (sizes(x, &d.lhs[2..]), sizes(w.shape(), &d.rhs[2..]), sizes(ct.shape(), &d.out[2..]));
    let padding = (0..n.len()).map(|i| {
        let span = dilated(k[i], p.rhs_dilation[i])?;
        let lo = difference(&[span], &[1, p.padding[i].0])?;
        let (own, seen) = (dilated(n[i], p.lhs_dilation[i])?, dilated(t[i], p.window_strides[i])?);
        Ok((lo, difference(&[own, span], &[1, lo, seen])?))
    });
    let q = ConvParams {
        padding: padding.collect::<Result<_>>()?,
        window_strides: p.lhs_dilation.clone(),
        lhs_dilation: p.window_strides.clone(),
        dimension_numbers: ConvSpecs { lhs: d.out.clone(), rhs: swapped(&d.rhs), out: d.lhs.clone() },
        ..p.clone()
    };
    let flipped = rev(w, &d.rhs[2..])?;
    conv(q, ct, &regroup(&flipped, d.rhs[0], d.rhs[1], p.feature_group_count)?)
}

/// The cotangent of the kernel, of a convolution without batch groups.
fn rhs_cotangent(p: &ConvParams, ct: &Value, x: &Value, w: &[usize]) -> Result<Value> {
    let d = &p.dimension_numbers;
    let (n, k, t) = (sizes(x.shape(), &d.lhs[2..]), sizes(w, &d.rhs[2..]), sizes(ct.shape(), &d.out[2..]));
    let padding = (0..n.len()).map(|i| {
        let lo = p.padding[i].0;
        let reach = [dilated(k[i], p.rhs_dilation[i])?, dilated(t[i], p.window_strides[i])?];
        Ok((lo, difference(&reach, &[1, lo, dilated(n[i], p.lhs_dilation[i])?])?))
    });
    let q = ConvParams {
        padding: padding.collect::<Result<_>>()?,
        window_strides: p.rhs_dilation.clone(),
        rhs_dilation: p.window_strides.clone(),
        dimension_numbers: ConvSpecs { lhs: swapped(&d.lhs), rhs: swapped(&d.out), out: swapped(&d.rhs) },
        feature_group_count: 1,
        batch_group_count: p.feature_group_count,
        ..p.clone()
    };
    conv(q, x, ct)
}

fn conv_transpose(_: &OpRef, p: &ConvParams, cts: &[Option<Value>], args: &[TransposeArg]) -> Result<Tangents> {
    let Some(ct) = &cts[0] else { return Ok(smallvec![None, None]) };
    let (x, w) = (args[0].aval(), args[1].aval());
    let ct = &in_dtype(ct.clone(), x.dtype)?;
    let d = &p.dimension_numbers;
    let groups = p.batch_group_count;
    let empty = x.size() == 0 || w.size() == 0 || ct.size() == 0;
    match (&args[0], &args[1]) {
        (TransposeArg::Linear(x), TransposeArg::Known(_)) if empty => {
            Ok(smallvec![Some(ferrax_transform::structural::zeros(x)?), None])
        }
        (TransposeArg::Known(_), TransposeArg::Linear(w)) if empty => {
            Ok(smallvec![None, Some(ferrax_transform::structural::zeros(w)?)])
        }
        (TransposeArg::Linear(x), TransposeArg::Known(w)) => {
            let mut shape = x.shape.clone();
            shape[d.lhs[0]] = dims(Operation::Div, shape[d.lhs[0]], groups)?;
            shape[d.lhs[1]] = dims(Operation::Mul, shape[d.lhs[1]], groups)?;
            let feature_groups = p.feature_group_count.max(groups);
            let q = ConvParams { feature_group_count: feature_groups, batch_group_count: 1, ..p.clone() };
            let out = regroup(&lhs_cotangent(&q, ct, &shape, w)?, d.lhs[1], d.lhs[0], groups)?;
            Ok(smallvec![Some(in_dtype(out, x.dtype)?), None])
        }
        (TransposeArg::Known(x), TransposeArg::Linear(w)) => {
            let (q, x) = with_feature_groups(p, x)?;
            Ok(smallvec![None, Some(in_dtype(rhs_cotangent(&q, ct, &x, &w.shape)?, w.dtype)?)])
        }
        _ => bail!(
            Value,
            "conv_general_dilated of two values that both depend on the arguments is not linear, and cannot be transposed"
        ),
    }
}

/// Brings the mapped axis in front of an axis and joins both.
fn fold(x: &Value, dim: usize, axis: usize) -> Result<Value> {
    join(&move_axis(x, dim, axis)?, axis)
}

fn conv_batch(
    _: &OpRef,
    p: &ConvParams,
    axis: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
) -> Result<(Values, BatchDims)> {
    let d = &p.dimension_numbers;
    // the mapped axis first, so that the operand's own axes keep their order behind it
    let front = |i: usize| dims[i].map(|dim| move_axis(&args[i], dim, 0)).transpose();
    let (mapped_x, mapped_w) = (front(0)?, front(1)?);
    let mut q = p.clone();
    let mut x = mapped_x.clone().unwrap_or_else(|| args[0].clone());
    if p.batch_group_count > 1 {
        let shift = usize::from(mapped_x.is_some());
        x = regroup(&x, d.lhs[0] + shift, d.lhs[1] + shift, p.batch_group_count)?;
        (q.feature_group_count, q.batch_group_count) = (p.batch_group_count, 1);
    }
    let groups = q.feature_group_count;
    let (out, at) = match (mapped_x.is_some(), mapped_w) {
        (true, None) => (conv(q, &fold(&x, 0, d.lhs[0])?, &args[1])?, d.out[0]),
        (true, Some(w)) => {
            q.feature_group_count *= axis.size;
            (conv(q, &fold(&x, 0, d.lhs[1])?, &fold(&w, 0, d.rhs[0])?)?, d.out[1])
        }
        (false, Some(w)) if groups == 1 => (conv(q, &x, &fold(&w, 0, d.rhs[0])?)?, d.out[1]),
        (false, Some(w)) => {
            // output features: groups, then the mapped axis, then the features of a group
            let w = split(&w, d.rhs[0] + 1, groups)?;
            let w = join(&join(&move_axis(&w, 0, d.rhs[0] + 1)?, d.rhs[0])?, d.rhs[0])?;
            let out = split(&conv(q, &x, &w)?, d.out[1], groups)?;
            let out = join(&move_axis(&split(&out, d.out[1] + 1, axis.size)?, d.out[1] + 1, 0)?, d.out[1] + 1)?;
            return Ok((smallvec![out], smallvec![Some(0)]));
        }
        (false, None) => {
            return ferrax_transform::structural::unbatched(&OpRef::new(&CONV_GENERAL_DILATED, q), args, axis);
        }
    };
    Ok((smallvec![split(&out, at, axis.size)?], smallvec![Some(at)]))
}

// ---- lowering ------------------------------------------------------------------------------------------------------

fn permuted(b: &mut Builder, x: ValueId, perm: &[usize]) -> ValueId {
    if perm.iter().copied().eq(0..perm.len()) {
        return x;
    }
    let ty = Type::new(b.ty(x).dtype, &sizes(&b.ty(x).shape, perm));
    b.push(Kind::Transpose(perm.into()), &[x], ty)
}

/// The left operand as (batch, spatial…, features), padded and dilated, its batch groups among the features.
fn lhs_kernel(p: &ConvParams, b: &mut Builder, x: ValueId) -> ValueId {
    let d = &p.dimension_numbers;
    let order: Shape = [d.lhs[0]].into_iter().chain(d.lhs[2..].iter().copied()).chain([d.lhs[1]]).collect();
    let mut x = permuted(b, x, &order);
    let groups = p.batch_group_count;
    if groups > 1 {
        let shape = b.ty(x).shape.clone();
        let (rank, batch, features) = (shape.len(), shape[0] / groups, shape[shape.len() - 1]);
        let mut cut = shape.clone();
        cut[0] = batch;
        cut.insert(0, groups);
        let split = b.reshape(x, &cut);
        let perm: Shape = (1..rank).chain([0, rank]).collect();
        let moved = permuted(b, split, &perm);
        let mut joined = shape;
        joined[0] = batch;
        joined[rank - 1] = groups * features;
        x = b.reshape(moved, &joined);
    }
    if p.padding.iter().all(|&pad| pad == (0, 0)) && p.lhs_dilation.iter().all(|&n| n == 1) {
        return x;
    }
    let none = PadConfig { low: 0, high: 0, interior: 0 };
    let spatial = p.padding.iter().zip(&p.lhs_dilation);
    let spatial = spatial.map(|(&(low, high), &by)| PadConfig { low, high, interior: by - 1 });
    let config: Box<[PadConfig]> = [none].into_iter().chain(spatial).chain([none]).collect();
    let ty = b.ty(x).clone();
    let padded = |(&n, c): (&usize, &PadConfig)| (cells(n, c.interior + 1) + c.low + c.high) as usize;
    let shape: Shape = ty.shape.iter().zip(&config).map(padded).collect();
    let zero = b.scalar(Scalar::zero(ty.dtype));
    b.push(Kind::Pad(config), &[x, zero], Type::new(ty.dtype, &shape))
}

fn conv_kernel(p: &ConvParams, b: &mut Builder, args: &[ValueId], out: &Aval) -> ValueId {
    if out.size() == 0 || b.ty(args[0]).size() == 0 || b.ty(args[1]).size() == 0 {
        let zero = b.scalar(Scalar::zero(out.dtype));
        return b.broadcast(zero, &out.shape, &[]);
    }
    let d = &p.dimension_numbers;
    // sums of half-precision products are taken in f32
    let (dtype, half) = match compute_dtype(b.ty(args[0]).dtype, out.dtype) {
        DType::F16 | DType::BF16 => (DType::F32, true),
        wide => (wide, false),
    };
    let allowed = dtype == DType::F32 && p.precision.as_ref().is_some_and(DotPrecision::allows_tf32);
    let sides = [args[0], args[1]].map(|a| b.convert(a, dtype));
    let x = lhs_kernel(p, b, sides[0]);
    let order: Shape = d.rhs[2..].iter().copied().chain([d.rhs[1], d.rhs[0]]).collect();
    let w = permuted(b, sides[1], &order);
    let dims = ConvDims {
        strides: p.window_strides.clone(),
        rhs_dilation: p.rhs_dilation.clone(),
        groups: p.feature_group_count.max(p.batch_group_count),
        // numbers of 16 bits are numbers of TF32
        tf32: half || allowed,
    };
    let axes: Shape = [d.out[0]].into_iter().chain(d.out[2..].iter().copied()).chain([d.out[1]]).collect();
    let y = b.push(Kind::Conv(Box::new(dims)), &[x, w], Type::new(dtype, &sizes(&out.shape, &axes)));
    let mut back: Shape = smallvec![0; axes.len()];
    axes.iter().enumerate().for_each(|(from, &to)| back[to] = from);
    let y = permuted(b, y, &back);
    b.convert(y, out.dtype)
}

fn conv_reference(p: &ConvParams, args: &[RefTensor], outs: &[Aval]) -> Result<Vec<RefTensor>> {
    let (x, w) = (&args[0], &args[1]);
    let d = &p.dimension_numbers;
    let spatial = x.aval.rank() - 2;
    let inputs = w.aval.shape[d.rhs[1]];
    let cells: Shape = [inputs].into_iter().chain(sizes(&w.aval.shape, &d.rhs[2..])).collect();
    let (batch, outputs) = (outs[0].shape[d.out[0]], w.aval.shape[d.rhs[0]]);
    let dtype = outs[0].dtype;
    let inexact = x.aval.dtype.is_inexact();
    Ok(vec![RefTensor::build(&outs[0], |at| {
        let (n, o) = (at[d.out[0]], at[d.out[1]]);
        let feature_group = o / (outputs / p.feature_group_count);
        let batch_group = o / (outputs / p.batch_group_count);
        let mut cell = vec![0; cells.len()];
        let (mut re, mut im, mut int) = (0.0, 0.0, 0i64);
        for _ in 0..ferrax_base::shape::size(&cells) {
            let place = |i: usize| {
                let j = (at[d.out[i + 2]] * p.window_strides[i] + cell[i + 1] * p.rhs_dilation[i]) as i64;
                let (j, by) = (j - p.padding[i].0, p.lhs_dilation[i] as i64);
                let inside = j >= 0 && j % by == 0 && j / by < x.aval.shape[d.lhs[i + 2]] as i64;
                inside.then_some((j / by) as usize)
            };
            if let Some(places) = (0..spatial).map(place).collect::<Option<Vec<usize>>>() {
                let (mut from, mut with) = (vec![0; spatial + 2], vec![0; spatial + 2]);
                (from[d.lhs[0]], from[d.lhs[1]]) = (batch_group * batch + n, feature_group * inputs + cell[0]);
                (with[d.rhs[0]], with[d.rhs[1]]) = (o, cell[0]);
                for i in 0..spatial {
                    (from[d.lhs[i + 2]], with[d.rhs[i + 2]]) = (places[i], cell[i + 1]);
                }
                let (s, t) = (x.at(&from), w.at(&with));
                let (a, b, c, e) = (s.to_f64(), s.imag(), t.to_f64(), t.imag());
                (re, im) = (re + a * c - b * e, im + a * e + b * c);
                int = int.wrapping_add(s.to_i64().wrapping_mul(t.to_i64()));
            }
            advance(&mut cell, &cells);
        }
        if inexact {
            Scalar::from_complex(DType::C128, re, im).convert(dtype)
        } else {
            Scalar::from_i64(DType::I64, int).convert(dtype)
        }
    })])
}

/// The convolution of `x` with the kernel `w`.
pub fn conv(p: ConvParams, x: &Value, w: &Value) -> Result<Value> {
    bind1(&OpRef::new(&CONV_GENERAL_DILATED, p), &[x.clone(), w.clone()])
}

/// The primitives of this file.
pub(crate) static PRIMITIVES: &[&'static dyn Primitive] = &[&CONV_GENERAL_DILATED];
