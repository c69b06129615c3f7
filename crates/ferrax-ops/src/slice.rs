//! Static slicing, splitting, joining and padding: `slice`, `split`, `concatenate`, `pad`.
//!
//! All four are linear, and each is another's transpose: slice and pad, split and concatenate.
//! Read next: `dynamic_slice.rs` for windows whose place is known only at run time.

use crate::common::{FROM_KERNEL, constant_int, dilated, places};
use crate::registry::Primitive;
use crate::{select, sub};
use ferrax_base::shape::{Tuple, total};
use ferrax_base::symbolic::{Operation, all_at_least, at_least, difference, dims, is_symbolic};
use ferrax_base::{Aval, Result, Scalar, Shape, bail};
use ferrax_ir::op::{BatchAxis, BatchDims};
use ferrax_ir::params::split_tuple;
use ferrax_ir::reference::RefTensor;
use ferrax_ir::trace::bind1;
use ferrax_ir::{
    Avals, Def, OpRef, Param, ParamValue, Slot, Special, Tangents, TransposeArg, Value, Values, bind, params,
};
use ferrax_loops::{Kind, PadConfig, SliceDims, Type};
use ferrax_transform::structural::{broadcast_batch, broadcast_in_dim, instantiate, linear_jvp, reduce_sum, zeros};
use smallvec::{SmallVec, smallvec};

/// Shapes in the form `(2, 3), (3,)`, for messages.
fn list_shapes(args: &[&Aval]) -> String {
    args.iter().map(|a| Tuple(&a.shape).to_string()).collect::<Vec<_>>().join(", ")
}

// ---- slice ---------------------------------------------------------------------------------------------------------

params! {
    /// Parameters of `slice`.
    pub struct SliceParams {
        /// End of the slice on each axis.
        limit_indices: Shape,
        /// Start of the slice on each axis.
        start_indices: Shape,
        /// Step on each axis; `None` is one everywhere.
        strides: Option<Shape>,
    }
}

impl SliceParams {
    fn stride(&self, axis: usize) -> usize {
        self.strides.as_ref().map_or(1, |s| s[axis])
    }

    fn ones(&self) -> Shape {
        self.strides.clone().unwrap_or_else(|| smallvec![1; self.start_indices.len()])
    }
}

/// `x[start:limit:stride]` on every axis.
pub static SLICE: Def<SliceParams> = Def {
    name: "slice",
    doc: "A static, strided window of an array.",
    arity: Some(1),
    shape: slice_shape,
    jvp: Slot::Rule(linear_jvp),
    transpose: Slot::Rule(|_, p, cts, args| {
        let Some(ct) = &cts[0] else { return Ok(smallvec![None]) };
        let x = args[0].aval();
        let config = (0..x.rank()).map(|d| {
            let (start, stride) = (p.start_indices[d] as i64, p.stride(d) as i64);
            let high = difference(&[x.shape[d] as i64], &[start, dilated(ct.shape()[d], p.stride(d))?])?;
            Ok(PadDim(start, high, difference(&[stride], &[1])?))
        });
        let zero = constant_int(ct, 0);
        Ok(smallvec![Some(pad(ct, &zero, &config.collect::<Result<PadDims>>()?)?)])
    }),
    batch: Slot::Rule(|_, p, axis, args, dims| {
        let at = dims[0].unwrap_or(0);
        let mut q = p.clone();
        q.start_indices.insert(at, 0);
        q.limit_indices.insert(at, axis.size);
        if let Some(s) = &mut q.strides {
            s.insert(at, 1);
        }
        Ok((smallvec![bind1(&OpRef::new(&SLICE, q), args)?], smallvec![Some(at)]))
    }),
    simplify: Slot::Rule(|_, p, cx, inputs| {
        let x = cx.aval(&inputs[0]);
        let unit = p.strides.as_ref().is_none_or(|s| s.iter().all(|&s| s == 1));
        let whole = unit && p.start_indices.iter().all(|&s| s == 0) && p.limit_indices == x.shape;
        Ok(whole.then(|| smallvec![inputs[0]]))
    }),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        let dims = SliceDims { start: p.start_indices.clone(), limit: p.limit_indices.clone(), stride: p.ones() };
        Ok(smallvec![b.push(Kind::Slice(Box::new(dims)), args, Type::from(&outs[0]))])
    }),
    reference: Slot::Rule(|p, args, outs| {
        Ok(vec![RefTensor::build(&outs[0], |i| {
            let at: Shape = i.iter().enumerate().map(|(d, n)| p.start_indices[d] + n * p.stride(d)).collect();
            args[0].at(&at)
        })])
    }),
    special: Special::WEIGHTED,
};

fn slice_shape(p: &SliceParams, args: &[&Aval]) -> Result<Avals> {
    let x = args[0];
    let shape = Tuple(&x.shape);
    for (name, given) in [("start_indices", &p.start_indices), ("limit_indices", &p.limit_indices)] {
        if given.len() != x.rank() {
            bail!(
                Type,
                "slice {name} must have length equal to the number of dimensions of the operand, got {name} {} for \
                 operand shape {shape}.",
                Tuple(given)
            );
        }
    }
    if let Some(s) = &p.strides {
        if s.len() != x.rank() {
            bail!(
                Type,
                "slice strides must have length equal to the number of dimensions of the operand, got strides {} for \
                 operand shape {shape}.",
                Tuple(s)
            );
        }
        if s.contains(&0) {
            bail!(Type, "slice strides must be positive, got {}", Tuple(s));
        }
    }
    if !all_at_least(&x.shape, &p.limit_indices) {
        bail!(
            Type,
            "slice limit_indices must be less than or equal to operand shape, got limit_indices {} for operand shape \
             {shape}.",
            Tuple(&p.limit_indices)
        );
    }
    if !all_at_least(&p.limit_indices, &p.start_indices) {
        bail!(
            Type,
            "slice limit_indices must be greater than or equal to start_indices, got start_indices {} and \
             limit_indices {}.",
            Tuple(&p.start_indices),
            Tuple(&p.limit_indices)
        );
    }
    let out = (0..x.rank()).map(|d| strided(p.limit_indices[d], p.start_indices[d], p.stride(d)));
    Ok(smallvec![x.with_shape(&out.collect::<Result<Shape>>()?)])
}

/// How many steps there are from a start up to a limit.
fn strided(limit: usize, start: usize, stride: usize) -> Result<usize> {
    let n = dims(Operation::Sub, limit, start)?;
    if stride == 1 || !is_symbolic(n) {
        return Ok(if stride == 1 { n } else { n.div_ceil(stride) });
    }
    places(n as i64, 1, stride)
}

/// `x[start:limit:stride]` on every axis; the same value when that is all of it.
pub fn slice(x: &Value, start: &[usize], limit: &[usize], strides: Option<&[usize]>) -> Result<Value> {
    let unit = strides.is_none_or(|s| s.iter().all(|&s| s == 1) && s.len() == x.rank());
    if unit && start.len() == x.rank() && start.iter().all(|&s| s == 0) && limit == x.shape() {
        return Ok(x.clone());
    }
    let params = SliceParams {
        start_indices: Shape::from_slice(start),
        limit_indices: Shape::from_slice(limit),
        strides: strides.map(Shape::from_slice),
    };
    bind1(&OpRef::new(&SLICE, params), std::slice::from_ref(x))
}

/// `x[start:limit:stride]` on one axis, bounds as Python slices them (negative, absent, clamped).
pub fn slice_in_dim(x: &Value, start: Option<i64>, limit: Option<i64>, stride: usize, axis: usize) -> Result<Value> {
    let n = x.shape()[axis] as i64;
    let bound = |b: i64| if b < 0 { difference(&[b, n], &[]) } else { Ok(b) };
    let (lo, hi) = (start.map_or(Ok(0), bound)?, limit.map_or(Ok(n), bound)?);
    if lo < 0 || hi < 0 {
        bail!(Type, "slice start_indices must be greater than or equal to zero, got start {lo} and limit {hi}");
    }
    let mut starts: Shape = smallvec![0; x.rank()];
    let mut limits = Shape::from_slice(x.shape());
    let mut strides: Shape = smallvec![1; x.rank()];
    (starts[axis], limits[axis], strides[axis]) = (lo as usize, hi as usize, stride);
    slice(x, &starts, &limits, Some(&strides))
}

/// One entry along an axis, kept as an axis of size one.
pub fn index_in_dim(x: &Value, index: i64, axis: usize) -> Result<Value> {
    let n = x.shape()[axis] as i64;
    let wrapped = if index < 0 { difference(&[index, n], &[])? } else { index };
    let next = difference(&[wrapped, 1], &[])?;
    if !at_least(wrapped, 0)? || !at_least(n, next)? {
        bail!(Index, "index {index} is out of bounds for axis {axis} with size {n}");
    }
    slice_in_dim(x, Some(wrapped), Some(next), 1, axis)
}

// ---- split ---------------------------------------------------------------------------------------------------------

params! {
    /// Parameters of `split`.
    pub struct SplitParams {
        /// The axis that is divided.
        axis: usize,
        /// The length of each part along it.
        sizes: Shape,
    }
}

/// An array cut into consecutive parts along an axis.
pub static SPLIT: Def<SplitParams> = Def {
    name: "split",
    doc: "Consecutive parts of an array along one axis.",
    arity: Some(1),
    shape: |p, args| {
        let x = args[0];
        if p.axis >= x.rank() {
            bail!(Value, "axis {} is out of bounds for array of dimension {}", p.axis, x.rank());
        }
        let total = total(p.sizes.iter().copied());
        if total != x.shape[p.axis] {
            bail!(
                Value,
                "Sum of sizes {total} must be equal to dimension {} of the operand shape {:?}",
                p.axis,
                x.shape.as_slice()
            );
        }
        let part = |&n: &usize| {
            let mut shape = x.shape.clone();
            shape[p.axis] = n;
            x.with_shape(&shape)
        };
        Ok(p.sizes.iter().map(part).collect())
    },
    jvp: Slot::Rule(|op, p, primals, tangents| {
        let outs = bind(op, primals)?;
        let out_tangents = match &tangents[0] {
            Some(t) => bind(op, std::slice::from_ref(t))?.into_iter().map(Some).collect(),
            None => p.sizes.iter().map(|_| None).collect(),
        };
        Ok((outs, out_tangents))
    }),
    transpose: Slot::Rule(|_, p, cts, args| {
        if cts.iter().all(Option::is_none) {
            return Ok(smallvec![None]);
        }
        let x = args[0].aval();
        let mut parts = Vec::with_capacity(cts.len());
        for (ct, &n) in cts.iter().zip(&p.sizes) {
            let mut shape = x.shape.clone();
            shape[p.axis] = n;
            parts.push(instantiate(ct.clone(), &x.with_shape(&shape))?);
        }
        Ok(smallvec![Some(concatenate(&parts, p.axis)?)])
    }),
    batch: Slot::Rule(|_, p, _, args, dims| {
        let at = dims[0].unwrap_or(0);
        let axis = if p.axis < at { p.axis } else { p.axis + 1 };
        let outs = bind(&OpRef::new(&SPLIT, SplitParams { axis, sizes: p.sizes.clone() }), args)?;
        let dims = smallvec![Some(at); outs.len()];
        Ok((outs, dims))
    }),
    simplify: Slot::Rule(|_, p, _, inputs| Ok((p.sizes.len() == 1).then(|| smallvec![inputs[0]]))),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        let shape = b.ty(args[0]).shape.clone();
        let mut start: Shape = smallvec![0; shape.len()];
        let mut results = SmallVec::new();
        for out in outs {
            let mut limit = shape.clone();
            limit[p.axis] = start[p.axis] + out.shape[p.axis];
            let next = limit[p.axis];
            let dims = SliceDims { start: start.clone(), limit, stride: smallvec![1; shape.len()] };
            results.push(b.push(Kind::Slice(Box::new(dims)), args, Type::from(out)));
            start[p.axis] = next;
        }
        Ok(results)
    }),
    reference: Slot::Rule(|p, args, outs| {
        let mut start = 0;
        let part = |out: &Aval| {
            let t = RefTensor::build(out, |i| {
                let mut at = Shape::from_slice(i);
                at[p.axis] += start;
                args[0].at(&at)
            });
            start += out.shape[p.axis];
            t
        };
        Ok(outs.iter().map(part).collect())
    }),
    special: Special::WEIGHTED,
};

/// Consecutive parts of the given sizes along an axis.
pub fn split(x: &Value, sizes: &[usize], axis: usize) -> Result<Values> {
    bind(&OpRef::new(&SPLIT, SplitParams { axis, sizes: Shape::from_slice(sizes) }), std::slice::from_ref(x))
}

// ---- concatenate ---------------------------------------------------------------------------------------------------

params! {
    /// Parameters of `concatenate`.
    pub struct ConcatenateParams {
        /// The axis along which the operands are joined.
        dimension: usize,
    }
}

/// Arrays joined along an axis.
pub static CONCATENATE: Def<ConcatenateParams> = Def {
    name: "concatenate",
    doc: "Arrays joined along one axis.",
    arity: None,
    shape: concatenate_shape,
    jvp: Slot::Rule(|op, _, primals, tangents| {
        let out = bind1(op, primals)?;
        if tangents.iter().all(Option::is_none) {
            return Ok((smallvec![out], smallvec![None]));
        }
        let parts = primals.iter().zip(tangents).map(|(x, t)| instantiate(t.clone(), &x.aval().tangent()));
        let t = bind1(op, &parts.collect::<Result<Vec<_>>>()?)?;
        Ok((smallvec![out], smallvec![Some(t)]))
    }),
    transpose: Slot::Rule(|_, p, cts, args| {
        let Some(ct) = &cts[0] else { return Ok(args.iter().map(|_| None).collect()) };
        let mut start: Shape = smallvec![0; ct.rank()];
        let mut out = Tangents::new();
        for arg in args {
            let mut limit = Shape::from_slice(ct.shape());
            limit[p.dimension] = dims(Operation::Add, start[p.dimension], arg.aval().shape[p.dimension])?;
            out.push(if arg.is_linear() { Some(slice(ct, &start, &limit, None)?) } else { None });
            start[p.dimension] = limit[p.dimension];
        }
        Ok(out)
    }),
    batch: Slot::Rule(|_, p, axis, args, dims| {
        let parts = args.iter().zip(dims).map(|(x, d)| broadcast_batch(x, *d, axis.size, 0));
        let out = concatenate(&parts.collect::<Result<Vec<_>>>()?, p.dimension + 1)?;
        Ok((smallvec![out], smallvec![Some(0)]))
    }),
    simplify: Slot::Rule(|_, _, _, inputs| Ok((inputs.len() == 1).then(|| smallvec![inputs[0]]))),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        Ok(smallvec![b.push(Kind::Concat(p.dimension), args, Type::from(&outs[0]))])
    }),
    reference: Slot::Rule(|p, args, outs| {
        Ok(vec![RefTensor::build(&outs[0], |i| {
            let mut at = Shape::from_slice(i);
            let mut part = 0;
            while at[p.dimension] >= args[part].aval.shape[p.dimension] {
                at[p.dimension] -= args[part].aval.shape[p.dimension];
                part += 1;
            }
            args[part].at(&at)
        })])
    }),
    special: Special::WEIGHTED,
};

fn concatenate_shape(p: &ConcatenateParams, args: &[&Aval]) -> Result<Avals> {
    let Some(&first) = args.first() else { bail!(Type, "concatenate expects at least one operand, got 0.") };
    if args.iter().any(|a| a.rank() != first.rank()) {
        bail!(Type, "Cannot concatenate arrays with different numbers of dimensions: got {}.", list_shapes(args));
    }
    if p.dimension >= first.rank() {
        bail!(Type, "concatenate dimension out of bounds: dimension {} for shapes {}.", p.dimension, list_shapes(args));
    }
    let agrees = |a: &&Aval| a.shape.iter().zip(&first.shape).enumerate().all(|(d, (m, n))| d == p.dimension || m == n);
    if !args.iter().all(agrees) {
        bail!(
            Type,
            "Cannot concatenate arrays with shapes that differ in dimensions other than the one being concatenated: \
             concatenating along dimension {} for shapes {}.",
            p.dimension,
            list_shapes(args)
        );
    }
    if args.iter().any(|a| a.dtype != first.dtype) {
        let dtypes: Vec<&str> = args.iter().map(|a| a.dtype.name()).collect();
        bail!(
            Type,
            "lax.concatenate requires arguments to have the same dtypes, got {}. (Tip: jnp.concatenate is a similar \
             function that does automatic type promotion on inputs).",
            dtypes.join(", ")
        );
    }
    let mut shape = first.shape.clone();
    shape[p.dimension] = total(args.iter().map(|a| a.shape[p.dimension]));
    if isize::try_from(shape[p.dimension]).is_err() {
        bail!(Value, "concatenate: shapes {} are together longer than an array can be.", list_shapes(args));
    }
    Ok(smallvec![Aval { shape, dtype: first.dtype, weak: args.iter().all(|a| a.weak), vary: 0, spread: 0 }])
}

/// Arrays joined along an axis; one array is itself.
pub fn concatenate(parts: &[Value], dimension: usize) -> Result<Value> {
    if let [one] = parts
        && dimension < one.rank()
    {
        return Ok(one.clone());
    }
    bind1(&OpRef::new(&CONCATENATE, ConcatenateParams { dimension }), parts)
}

// ---- pad -----------------------------------------------------------------------------------------------------------

/// Low, high and interior padding of one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PadDim(pub i64, pub i64, pub i64);

/// Padding of every axis.
pub type PadDims = SmallVec<[PadDim; 4]>;

impl ParamValue for PadDim {
    fn print(&self) -> Param {
        Param::Text(format!("({}, {}, {})", self.0, self.1, self.2))
    }
    fn parse(text: &Param) -> Option<Self> {
        let Param::Text(t) = text else { return None };
        match split_tuple(t)?.as_slice() {
            [a, b, c] => Some(PadDim(a.parse().ok()?, b.parse().ok()?, c.parse().ok()?)),
            _ => None,
        }
    }
}

params! {
    /// Parameters of `pad`.
    pub struct PadParams {
        /// Low, high and interior padding of each axis.
        padding_config: PadDims,
    }
}

/// An array surrounded and interleaved with a value; negative edges crop.
pub static PAD: Def<PadParams> = Def {
    name: "pad",
    doc: "An array with low, high and interior padding on each axis; negative low or high padding crops.",
    arity: Some(2),
    shape: pad_shape,
    jvp: Slot::Rule(|op, _, primals, tangents| {
        let out = bind1(op, primals)?;
        let tangent = match (&tangents[0], &tangents[1]) {
            (None, None) => None,
            (x, v) => {
                let x = instantiate(x.clone(), &primals[0].aval().tangent())?;
                let v = instantiate(v.clone(), &primals[1].aval().tangent())?;
                Some(bind1(op, &[x, v])?)
            }
        };
        Ok((smallvec![out], smallvec![tangent]))
    }),
    transpose: Slot::Rule(pad_transpose),
    batch: Slot::Rule(pad_batch),
    simplify: Slot::Rule(|_, p, _, inputs| {
        let nothing = p.padding_config.iter().all(|c| *c == PadDim(0, 0, 0));
        Ok(nothing.then(|| smallvec![inputs[0]]))
    }),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        let config = p.padding_config.iter().map(|c| PadConfig { low: c.0, high: c.1, interior: c.2 as usize });
        Ok(smallvec![b.push(Kind::Pad(config.collect()), args, Type::from(&outs[0]))])
    }),
    reference: Slot::Rule(|p, args, outs| {
        let x = &args[0];
        Ok(vec![RefTensor::build(&outs[0], |i| {
            let mut at = Shape::new();
            for (d, c) in p.padding_config.iter().enumerate() {
                let (place, step) = (i[d] as i64 - c.0, c.2 + 1);
                if place < 0 || place % step != 0 || place / step >= x.aval.shape[d] as i64 {
                    return args[1].data[0];
                }
                at.push((place / step) as usize);
            }
            x.at(&at)
        })])
    }),
    special: Special::WEIGHTED,
};

fn print_config(config: &PadDims) -> String {
    match config.print() {
        Param::Text(t) => t,
        _ => String::new(),
    }
}

fn pad_shape(p: &PadParams, args: &[&Aval]) -> Result<Avals> {
    let (x, v) = (args[0], args[1]);
    let config = &p.padding_config;
    if x.dtype != v.dtype {
        bail!(Type, "pad operand and padding_value must be same dtype: got {} and {}.", x.dtype, v.dtype);
    }
    if v.rank() != 0 {
        bail!(Value, "padding_value must be a scalar; got np.shape(padding_value)={}", Tuple(&v.shape));
    }
    if config.len() != x.rank() {
        bail!(
            Value,
            "length of padding_config must equal the number of axes of operand, got padding_config {} for operand \
             shape {}",
            print_config(config),
            Tuple(&x.shape)
        );
    }
    if config.iter().any(|c| c.2 < 0) {
        bail!(
            Value,
            "interior padding in padding_config must be nonnegative, got padding_config {}",
            print_config(config)
        );
    }
    // saturating: what is larger than memory can be is found by its size
    let padded =
        |(&n, c): (&usize, &PadDim)| difference(&[dilated(n, difference(&[c.2, 1], &[])? as usize)?, c.0, c.1], &[]);
    let dims: Vec<i64> = x.shape.iter().zip(config).map(padded).collect::<Result<_>>()?;
    if !dims.iter().try_fold(true, |all, &d| Ok::<_, ferrax_base::Error>(all && at_least(d, 0)?))? {
        bail!(
            Value,
            "Dimension size after padding is not at least 0, got result shape {}, for padding_config {} and operand \
             shape {}",
            Tuple(&dims),
            print_config(config),
            Tuple(&x.shape)
        );
    }
    let shape: Shape = dims.iter().map(|&d| d as usize).collect();
    Ok(smallvec![Aval { shape, dtype: x.dtype, weak: x.weak && v.weak, vary: 0, spread: 0 }])
}

fn pad_transpose(_: &OpRef, p: &PadParams, cts: &[Option<Value>], args: &[TransposeArg]) -> Result<Tangents> {
    let Some(ct) = &cts[0] else { return Ok(smallvec![None, None]) };
    // The operand's place in the result: crop what was padded, then step over the interior.
    let less = |n: i64| difference(&[], &[n]);
    let cropped =
        p.padding_config.iter().map(|c| Ok(PadDim(less(c.0)?, less(c.1)?, 0))).collect::<Result<PadDims>>()?;
    let strides =
        p.padding_config.iter().map(|c| Ok(difference(&[c.2, 1], &[])? as usize)).collect::<Result<Shape>>()?;
    let zero = constant_int(ct, 0);
    let x = args[0].aval();
    let inner = if x.size() == 0 {
        zeros(&x)?
    } else {
        let inner = pad(ct, &zero, &cropped)?;
        let start: Shape = smallvec![0; x.rank()];
        let limit = Shape::from_slice(inner.shape());
        slice(&inner, &start, &limit, Some(&strides))?
    };
    let v = if args[1].is_linear() {
        let all = |v: &Value| reduce_sum(v, &(0..v.rank()).collect::<Shape>());
        Some(sub(&all(ct)?, &all(&inner)?)?)
    } else {
        None
    };
    Ok(smallvec![args[0].is_linear().then_some(inner), v])
}

fn pad_batch(
    _: &OpRef,
    p: &PadParams,
    axis: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
) -> Result<(Values, BatchDims)> {
    let at = dims[0].unwrap_or(0);
    let x = broadcast_batch(&args[0], dims[0], axis.size, at)?;
    let mut config = p.padding_config.clone();
    config.insert(at, PadDim(0, 0, 0));
    let Some(_) = dims[1] else {
        return Ok((smallvec![pad(&x, &args[1], &config)?], smallvec![Some(at)]));
    };
    // Each row has a padding value of its own: pad a mask, and choose by it.
    let zero = constant_int(&args[1], 0);
    let padded = pad(&x, &zero, &config)?;
    let inside = broadcast_in_dim(&Value::scalar(Scalar::from_bool(true)), x.shape(), &[])?;
    let mask = pad(&inside, &Value::scalar(Scalar::from_bool(false)), &config)?;
    let rows = broadcast_in_dim(&args[1], padded.shape(), &[at])?;
    Ok((smallvec![select(&mask, &padded, &rows)?], smallvec![Some(at)]))
}

/// `x` with low, high and interior padding on each axis; the same value when there is none.
pub fn pad(x: &Value, value: &Value, config: &[PadDim]) -> Result<Value> {
    if config.len() == x.rank() && config.iter().all(|c| *c == PadDim(0, 0, 0)) && value.dtype() == x.dtype() {
        return Ok(x.clone());
    }
    bind1(&OpRef::new(&PAD, PadParams { padding_config: config.into() }), &[x.clone(), value.clone()])
}

/// The primitives of this file.
pub(crate) static PRIMITIVES: &[&'static dyn Primitive] = &[&SLICE, &SPLIT, &CONCATENATE, &PAD];
