//! Shapes: reshape, squeeze, expand_dims, rev, tile, stack, unstack, iota, dim_as_value. `broadcast_in_dim` and `transpose` are in
//! `ferrax-transform`, which needs them.
//!
//! All but `iota` and `dim_as_value` are linear. Read next: `slice.rs`.

use crate::common::{FROM_KERNEL, NO_REWRITE, canonical_axis, with_unit_axes, zero_jvp};
use ferrax_base::shape::{Tuple, checked_size};
use ferrax_base::symbolic::{self, Operation};
use ferrax_base::{Aval, DType, Result, Scalar, Shape, bail};
use ferrax_ir::op::{BatchAxis, BatchDims, Rewriter};
use ferrax_ir::reference::RefTensor;
use ferrax_ir::trace::bind1;
use ferrax_ir::{
    Atom, Avals, Def, OpRef, Param, ParamValue, Params, Slot, Special, Tangents, TransposeArg, Value, Values, bind,
};
use ferrax_loops::{Builder, Kind, SliceDims, Type, ValueId};
use ferrax_transform::structural::{
    Axes, BROADCAST_IN_DIM, BroadcastInDim, batched_axes, broadcast_batch, instantiate, linear_jvp, move_axis,
    reduce_sum,
};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeMap;

type Simplified = Result<Option<SmallVec<[Atom; 1]>>>;

// ---- reshape -------------------------------------------------------------------------------------------------------

/// Parameters of `reshape`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reshape {
    /// The result's shape.
    pub new_sizes: Shape,
}

impl Params for Reshape {
    fn print(&self) -> Vec<(&'static str, Param)> {
        let none = || Param::Text("None".into());
        vec![("dimensions", none()), ("new_sizes", self.new_sizes.print()), ("sharding", none())]
    }

    fn parse(fields: &BTreeMap<String, Param>) -> Option<Self> {
        Some(Reshape { new_sizes: ParamValue::parse(fields.get("new_sizes")?)? })
    }
}

/// The same elements in row-major order with another shape.
pub static RESHAPE: Def<Reshape> = Def {
    name: "reshape",
    doc: "The same elements in row-major order, with another shape.",
    arity: Some(1),
    shape: |p, args| {
        if checked_size(&p.new_sizes) != Some(args[0].size()) {
            bail!(
                Type,
                "reshape total size must be unchanged, got new_sizes {} for shape {}.",
                Tuple(&p.new_sizes),
                Tuple(&args[0].shape)
            );
        }
        Ok(smallvec![args[0].with_shape(&p.new_sizes)])
    },
    jvp: Slot::Rule(linear_jvp),
    transpose: Slot::Rule(|_, _, cts, args| {
        Ok(smallvec![cts[0].as_ref().map(|ct| reshape(ct, &args[0].aval().shape)).transpose()?])
    }),
    batch: Slot::Rule(|_, p, _, args, dims| {
        let x = move_axis(&args[0], dims[0].unwrap_or(0), 0)?;
        let mut shape: Shape = smallvec![x.shape()[0]];
        shape.extend_from_slice(&p.new_sizes);
        Ok((smallvec![reshape(&x, &shape)?], smallvec![Some(0)]))
    }),
    simplify: Slot::Rule(reshape_simplify),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, _| Ok(smallvec![b.reshape(args[0], &p.new_sizes)])),
    reference: Slot::Rule(|_, args, outs| Ok(vec![RefTensor { aval: outs[0].clone(), data: args[0].data.clone() }])),
    special: Special::WEIGHTED,
};

/// To the operand's own shape: nothing. Of a reshape: one reshape. Of a broadcast scalar: the scalar broadcast.
fn reshape_simplify(_: &OpRef, p: &Reshape, cx: &mut dyn Rewriter, inputs: &[Atom]) -> Simplified {
    if cx.aval(&inputs[0]).shape == p.new_sizes {
        return Ok(Some(smallvec![inputs[0]]));
    }
    let Some((inner, args)) = cx.producer(&inputs[0]) else { return Ok(None) };
    if inner.is(&RESHAPE) {
        return Ok(Some(smallvec![cx.emit(OpRef::new(&RESHAPE, p.clone()), &args)?]));
    }
    if inner.is(&BROADCAST_IN_DIM) && cx.aval(&args[0]).shape.is_empty() {
        let params = BroadcastInDim { shape: p.new_sizes.clone(), broadcast_dimensions: Axes::new() };
        return Ok(Some(smallvec![cx.emit(OpRef::new(&BROADCAST_IN_DIM, params), &args)?]));
    }
    Ok(None)
}

/// The same elements in row-major order, with another shape; the same value when that is its own.
pub fn reshape(x: &Value, shape: &[usize]) -> Result<Value> {
    if x.shape() == shape {
        return Ok(x.clone());
    }
    bind1(&OpRef::new(&RESHAPE, Reshape { new_sizes: Shape::from_slice(shape) }), std::slice::from_ref(x))
}

// ---- squeeze -------------------------------------------------------------------------------------------------------

ferrax_ir::params! {
    /// Parameters of `squeeze`.
    pub struct Squeeze {
        /// Axes of size one that go away.
        dimensions: Axes,
    }
}

/// Drops axes of size one.
pub static SQUEEZE: Def<Squeeze> = Def {
    name: "squeeze",
    doc: "The array without some of its axes of size one.",
    arity: Some(1),
    shape: |p, args| {
        let x = args[0];
        if let Some(d) = p.dimensions.iter().find(|&&d| d >= x.rank()) {
            bail!(Value, "axis {d} is out of bounds for array of dimension {}", x.rank());
        }
        if p.dimensions.iter().any(|&d| x.shape[d] != 1) {
            bail!(
                Value,
                "cannot select an axis to squeeze out which has size not equal to one, got shape={} and dimensions={}",
                Tuple(&x.shape),
                Tuple(&p.dimensions)
            );
        }
        let kept: Shape = (0..x.rank()).filter(|d| !p.dimensions.contains(d)).map(|d| x.shape[d]).collect();
        Ok(smallvec![x.with_shape(&kept)])
    },
    jvp: Slot::Rule(linear_jvp),
    transpose: Slot::Rule(|_, _, cts, args| {
        Ok(smallvec![cts[0].as_ref().map(|ct| reshape(ct, &args[0].aval().shape)).transpose()?])
    }),
    batch: Slot::Rule(|_, p, _, args, dims| {
        let (axes, out) = batched_axes(&p.dimensions, dims[0].unwrap_or(0));
        Ok((smallvec![squeeze(&args[0], &axes)?], smallvec![Some(out)]))
    }),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, _, b, args, outs| Ok(smallvec![b.reshape(args[0], &outs[0].shape)])),
    reference: Slot::Rule(|_, args, outs| Ok(vec![RefTensor { aval: outs[0].clone(), data: args[0].data.clone() }])),
    special: Special::WEIGHTED,
};

/// The array without these axes of size one.
pub fn squeeze(x: &Value, dimensions: &[usize]) -> Result<Value> {
    if dimensions.is_empty() {
        return Ok(x.clone());
    }
    let params = Squeeze { dimensions: Axes::from_slice(dimensions) };
    bind1(&OpRef::new(&SQUEEZE, params), std::slice::from_ref(x))
}

/// The array with new axes of size one at these places of the result; negative ones count from its end.
pub fn expand_dims(x: &Value, dimensions: &[i64]) -> Result<Value> {
    let rank = x.rank() + dimensions.len();
    let mut at = Axes::new();
    for &d in dimensions {
        let d = canonical_axis(d, rank)?;
        if at.contains(&d) {
            bail!(Value, "repeated axis in lax.expand_dims: {dimensions:?}");
        }
        at.push(d);
    }
    with_unit_axes(x, &at)
}

// ---- rev -----------------------------------------------------------------------------------------------------------

ferrax_ir::params! {
    /// Parameters of `rev`.
    pub struct Rev {
        /// Axes that are reversed.
        dimensions: Axes,
    }
}

/// Reverses axes.
pub static REV: Def<Rev> = Def {
    name: "rev",
    doc: "The array with the order of elements reversed along axes.",
    arity: Some(1),
    shape: |p, args| {
        let repeated = p.dimensions.iter().enumerate().any(|(i, d)| p.dimensions[..i].contains(d));
        if repeated {
            bail!(Type, "rev dimensions must be unique, got {}.", Tuple(&p.dimensions));
        }
        if p.dimensions.iter().any(|&d| d >= args[0].rank()) {
            bail!(
                Type,
                "rev dimensions must all be less than operand ndim, got dimensions {} for operand ndim {}.",
                Tuple(&p.dimensions),
                args[0].rank()
            );
        }
        Ok(smallvec![args[0].clone()])
    },
    jvp: Slot::Rule(linear_jvp),
    transpose: Slot::Rule(|_, p, cts, _| Ok(smallvec![cts[0].as_ref().map(|ct| rev(ct, &p.dimensions)).transpose()?])),
    batch: Slot::Rule(|_, p, _, args, dims| {
        let at = dims[0].unwrap_or(0);
        let (axes, _) = batched_axes(&p.dimensions, at);
        Ok((smallvec![rev(&args[0], &axes)?], smallvec![Some(at)]))
    }),
    simplify: Slot::Rule(|op, _, cx, inputs| {
        Ok(cx.producer(&inputs[0]).filter(|(inner, _)| inner == op).map(|(_, args)| smallvec![args[0]]))
    }),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        Ok(smallvec![b.push(Kind::Rev(p.dimensions.clone()), args, (&outs[0]).into())])
    }),
    reference: Slot::Rule(|p, args, outs| {
        let shape = &outs[0].shape;
        Ok(vec![RefTensor::build(&outs[0], |i| {
            let flip = |(d, &n): (usize, &usize)| if p.dimensions.contains(&d) { shape[d] - 1 - n } else { n };
            args[0].at(&i.iter().enumerate().map(flip).collect::<Vec<_>>())
        })])
    }),
    special: Special::WEIGHTED,
};

/// The array with the order of elements reversed along these axes.
pub fn rev(x: &Value, dimensions: &[usize]) -> Result<Value> {
    if dimensions.is_empty() {
        return Ok(x.clone());
    }
    bind1(&OpRef::new(&REV, Rev { dimensions: Axes::from_slice(dimensions) }), std::slice::from_ref(x))
}

// ---- tile ----------------------------------------------------------------------------------------------------------

ferrax_ir::params! {
    /// Parameters of `tile`.
    pub struct Tile {
        /// Copies along each axis.
        reps: Axes,
    }
}

/// Repeats an array.
pub static TILE: Def<Tile> = Def {
    name: "tile",
    doc: "The array repeated a number of times along each axis.",
    arity: Some(1),
    shape: |p, args| {
        if p.reps.len() != args[0].rank() {
            bail!(
                Value,
                "tile reps {} must have one entry for each axis of an operand of type {}",
                Tuple(&p.reps),
                args[0]
            );
        }
        // what has more elements than can be counted does not fit memory either
        let sizes = args[0].shape.iter().zip(&p.reps).map(|(&n, &r)| symbolic::dims(Operation::Mul, n, r));
        Ok(smallvec![args[0].with_shape(&sizes.collect::<Result<Shape>>()?)])
    },
    jvp: Slot::Rule(linear_jvp),
    transpose: Slot::Rule(|_, p, cts, args| {
        let Some(ct) = &cts[0] else { return Ok(smallvec![None]) };
        let (split, copies) = interleaved(&args[0].aval().shape, &p.reps);
        Ok(smallvec![Some(reduce_sum(&reshape(ct, &split)?, &copies)?)])
    }),
    batch: Slot::Rule(|_, p, _, args, dims| {
        let at = dims[0].unwrap_or(0);
        let mut reps = p.reps.clone();
        reps.insert(at, 1);
        Ok((smallvec![tile(&args[0], &reps)?], smallvec![Some(at)]))
    }),
    simplify: Slot::Rule(|_, p, _, inputs| Ok(p.reps.iter().all(|&r| r == 1).then(|| smallvec![inputs[0]]))),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        let (split, _) = interleaved(&b.ty(args[0]).shape, &p.reps);
        let dims: Axes = (0..p.reps.len()).map(|d| 2 * d + 1).collect();
        let repeated = b.broadcast(args[0], &split, &dims);
        Ok(smallvec![b.reshape(repeated, &outs[0].shape)])
    }),
    reference: Slot::Rule(|_, args, outs| {
        let x = &args[0];
        Ok(vec![RefTensor::build(&outs[0], |i| {
            x.at(&i.iter().zip(&x.aval.shape).map(|(i, n)| i % n).collect::<Vec<_>>())
        })])
    }),
    special: Special::WEIGHTED,
};

/// The shape (copies, size, copies, size, …) and the axes of the copies.
fn interleaved(shape: &[usize], reps: &[usize]) -> (Shape, Axes) {
    let split = reps.iter().zip(shape).flat_map(|(&r, &n)| [r, n]).collect();
    (split, (0..reps.len()).map(|d| 2 * d).collect())
}

/// The array repeated `reps[i]` times along axis i.
pub fn tile(x: &Value, reps: &[usize]) -> Result<Value> {
    bind1(&OpRef::new(&TILE, Tile { reps: Axes::from_slice(reps) }), std::slice::from_ref(x))
}

// ---- stack and unstack ---------------------------------------------------------------------------------------------

ferrax_ir::params! {
    /// Parameters of `stack` and `unstack`.
    pub struct Stack {
        /// The axis that counts the arrays.
        axis: usize,
    }
}

/// Joins arrays along a new axis.
pub static STACK: Def<Stack> = Def {
    name: "stack",
    doc: "Arrays of one shape joined along a new axis.",
    arity: None,
    shape: |p, args| {
        let Some(first) = args.first() else { bail!(Value, "stack requires at least one operand") };
        crate::common::check_same_dtypes("stack", args)?;
        if args.iter().any(|a| a.shape != first.shape) {
            let shapes: Vec<String> = args.iter().map(|a| Tuple(&a.shape).to_string()).collect();
            bail!(Type, "All input arrays to lax.stack must have the same shape, got {}.", shapes.join(", "));
        }
        if p.axis > first.rank() {
            bail!(Value, "stack axis {} is out of bounds for operands of rank {}", p.axis, first.rank());
        }
        let mut shape = first.shape.clone();
        shape.insert(p.axis, args.len());
        Ok(smallvec![first.with_shape(&shape).with_weak(args.iter().all(|a| a.weak))])
    },
    jvp: Slot::Rule(|op, _, primals, tangents| {
        let out = bind1(op, primals)?;
        if tangents.iter().all(Option::is_none) {
            return Ok((smallvec![out], smallvec![None]));
        }
        let full = instantiated(tangents, primals.iter().map(Value::aval))?;
        Ok((smallvec![out], smallvec![Some(bind1(op, &full)?)]))
    }),
    transpose: Slot::Rule(|_, p, cts, args| {
        let Some(ct) = &cts[0] else { return Ok(smallvec![None; args.len()]) };
        Ok(unstack(ct, p.axis)?.into_iter().zip(args).map(|(c, a)| a.is_linear().then_some(c)).collect())
    }),
    batch: Slot::Rule(|_, p, axis, args, dims| {
        let front: Result<Values> = args.iter().zip(dims).map(|(x, &d)| broadcast_batch(x, d, axis.size, 0)).collect();
        Ok((smallvec![stack(&front?, p.axis + 1)?], smallvec![Some(0)]))
    }),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        let mut unit = outs[0].shape.clone();
        unit[p.axis] = 1;
        let parts: SmallVec<[ValueId; 4]> = args.iter().map(|&v| b.reshape(v, &unit)).collect();
        Ok(smallvec![b.push(Kind::Concat(p.axis), &parts, (&outs[0]).into())])
    }),
    reference: Slot::Rule(|p, args, outs| {
        Ok(vec![RefTensor::build(&outs[0], |i| {
            let mut at = i.to_vec();
            let which = at.remove(p.axis);
            args[which].at(&at)
        })])
    }),
    special: Special::WEIGHTED,
};

/// Zeros in place of symbolic ones.
fn instantiated(tangents: &[Option<Value>], avals: impl Iterator<Item = Aval>) -> Result<Values> {
    tangents.iter().zip(avals).map(|(t, a)| instantiate(t.clone(), &a)).collect()
}

/// Arrays of one shape joined along a new axis.
pub fn stack(parts: &[Value], axis: usize) -> Result<Value> {
    bind1(&OpRef::new(&STACK, Stack { axis }), parts)
}

/// Splits an array into its slices along an axis.
pub static UNSTACK: Def<Stack> = Def {
    name: "unstack",
    doc: "The slices of an array along an axis, without that axis.",
    arity: Some(1),
    shape: unstack_shape,
    jvp: Slot::Rule(|op, _, primals, tangents| {
        let outs = bind(op, primals)?;
        let none = smallvec![None; outs.len()];
        let tangents = match &tangents[0] {
            Some(t) => bind(op, std::slice::from_ref(t))?.into_iter().map(Some).collect(),
            None => none,
        };
        Ok((outs, tangents))
    }),
    transpose: Slot::Rule(unstack_transpose),
    batch: Slot::Rule(unstack_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        let shape = b.ty(args[0]).shape.clone();
        Ok((0..outs.len()).map(|i| unstack_kernel(b, args[0], p.axis, i, &shape, &outs[i])).collect())
    }),
    reference: Slot::Rule(|p, args, outs| {
        let slice = |(n, aval): (usize, &Aval)| {
            RefTensor::build(aval, |i| {
                let mut at = i.to_vec();
                at.insert(p.axis, n);
                args[0].at(&at)
            })
        };
        Ok(outs.iter().enumerate().map(slice).collect())
    }),
    special: Special::WEIGHTED,
};

fn unstack_shape(p: &Stack, args: &[&Aval]) -> Result<Avals> {
    let x = args[0];
    if p.axis >= x.rank() {
        bail!(Value, "unstack axis {} is out of bounds for an operand of rank {}", p.axis, x.rank());
    }
    let mut shape = x.shape.clone();
    let count = shape.remove(p.axis);
    Ok(smallvec![x.with_shape(&shape); count])
}

fn unstack_transpose(_: &OpRef, p: &Stack, cts: &[Option<Value>], args: &[TransposeArg]) -> Result<Tangents> {
    if cts.iter().all(Option::is_none) {
        return Ok(smallvec![None]);
    }
    let slice = ferrax_ir::spread::without_axis(args[0].aval(), p.axis);
    let full = instantiated(cts, std::iter::repeat_n(slice, cts.len()))?;
    Ok(smallvec![Some(stack(&full, p.axis)?)])
}

fn unstack_batch(
    _: &OpRef,
    p: &Stack,
    _: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
) -> Result<(Values, BatchDims)> {
    let at = dims[0].unwrap_or(0);
    let (axes, out) = batched_axes(&[p.axis], at);
    let outs = unstack(&args[0], axes[0])?;
    let dims = smallvec![Some(out); outs.len()];
    Ok((outs, dims))
}

fn unstack_kernel(b: &mut Builder, x: ValueId, axis: usize, i: usize, shape: &Shape, out: &Aval) -> ValueId {
    let (mut start, mut limit): (Shape, Shape) = (smallvec![0; shape.len()], shape.clone());
    (start[axis], limit[axis]) = (i, i + 1);
    let mut unit = shape.clone();
    unit[axis] = 1;
    let stride = smallvec![1; shape.len()];
    let slice = b.push(Kind::Slice(Box::new(SliceDims { start, limit, stride })), &[x], Type::new(out.dtype, &unit));
    b.reshape(slice, &out.shape)
}

/// The slices of an array along an axis, without that axis.
pub fn unstack(x: &Value, axis: usize) -> Result<Values> {
    bind(&OpRef::new(&UNSTACK, Stack { axis }), std::slice::from_ref(x))
}

// ---- iota ----------------------------------------------------------------------------------------------------------

/// Parameters of `iota`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Iota {
    /// The axis that is counted along.
    pub dimension: usize,
    /// The result's dtype.
    pub dtype: DType,
    /// The result's shape.
    pub shape: Shape,
}

impl Params for Iota {
    fn print(&self) -> Vec<(&'static str, Param)> {
        vec![
            ("dimension", self.dimension.print()),
            ("dtype", self.dtype.print()),
            ("shape", self.shape.print()),
            ("sharding", Param::Text("None".into())),
        ]
    }

    fn parse(fields: &BTreeMap<String, Param>) -> Option<Self> {
        Some(Iota {
            dimension: ParamValue::parse(fields.get("dimension")?)?,
            dtype: ParamValue::parse(fields.get("dtype")?)?,
            shape: ParamValue::parse(fields.get("shape")?)?,
        })
    }
}

/// Counts along an axis.
pub static IOTA: Def<Iota> = Def {
    name: "iota",
    doc: "0, 1, 2, … along an axis.",
    arity: Some(0),
    shape: |p, _| {
        if !p.dtype.is_number() {
            bail!(
                Type,
                "iota does not accept dtype {}. Accepted dtypes are subtypes of integer, floating, complexfloating.",
                p.dtype
            );
        }
        if p.dimension >= p.shape.len() {
            bail!(
                Value,
                "iota dimension must be between 0 and len(shape), got dimension={} for shape={}",
                p.dimension,
                Tuple(&p.shape)
            );
        }
        Ok(smallvec![Aval::new(p.dtype, &p.shape)])
    },
    jvp: Slot::Rule(zero_jvp),
    transpose: Slot::None("no operands"),
    batch: Slot::None("no operands"),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, _, _| Ok(smallvec![b.iota(p.dtype, &p.shape, p.dimension)])),
    reference: Slot::Rule(|p, _, outs| {
        Ok(vec![RefTensor::build(&outs[0], |i| Scalar::from_i64(p.dtype, i[p.dimension] as i64))])
    }),
    special: Special::NONE,
};

/// 0, 1, 2, … along an axis.
pub fn iota(dtype: DType, shape: &[usize], dimension: usize) -> Result<Value> {
    bind1(&OpRef::new(&IOTA, Iota { dimension, dtype, shape: Shape::from_slice(shape) }), &[])
}

// ---- dim_as_value --------------------------------------------------------------------------------------------------

ferrax_ir::params! {
    /// Parameters of `dim_as_value`.
    pub struct DimAsValue {
        /// The size, which may be symbolic.
        dim: usize,
    }
}

/// A size as a number to calculate with.
pub static DIM_AS_VALUE: Def<DimAsValue> = Def {
    name: "dim_as_value",
    doc: "The size of an axis as a scalar, known once the program's sizes are.",
    arity: Some(0),
    shape: |_, _| Ok(smallvec![dim_aval()]),
    jvp: Slot::Rule(zero_jvp),
    transpose: Slot::None("no operands"),
    batch: Slot::None("no operands"),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, _, outs| {
        if symbolic::is_symbolic(p.dim) {
            return Err(ferrax_ir::op::open_program());
        }
        Ok(smallvec![b.scalar(Scalar::from_i64(outs[0].dtype, p.dim as i64))])
    }),
    reference: Slot::Rule(|p, _, outs| {
        Ok(vec![RefTensor::build(&outs[0], |_| Scalar::from_i64(outs[0].dtype, p.dim as i64))])
    }),
    special: Special::NONE,
};

/// The type of sizes as values.
fn dim_aval() -> Aval {
    Aval::scalar(DType::I64.canonical(ferrax_base::config::x64())).with_weak(true)
}

/// A size, which may be symbolic, as a scalar of the default integer dtype.
pub fn dim_as_value(dim: usize) -> Result<Value> {
    bind1(&OpRef::new(&DIM_AS_VALUE, DimAsValue { dim }), &[])
}

/// A size, which may be symbolic, as a scalar of a dtype.
pub fn size_value(size: usize, dtype: DType) -> Result<Value> {
    if symbolic::is_symbolic(size) {
        return crate::convert_element_type(&dim_as_value(size)?, dtype);
    }
    Ok(Value::int(dtype, size as i64))
}

/// The primitives of this family.
pub(crate) static PRIMITIVES: &[&'static dyn crate::registry::Primitive] =
    &[&RESHAPE, &SQUEEZE, &REV, &TILE, &STACK, &UNSTACK, &IOTA, &DIM_AS_VALUE];
