//! Windows whose place is known only at run time: `dynamic_slice` and `dynamic_update_slice`.
//!
//! Starts are rank-0 integers of one dtype, clamped so that the window lies inside the operand. The lax-level
//! functions wrap negative starts first, unless told not to. A window per row of a batch is a gather or scatter.
//! Read next: `gather_scatter/mod.rs`.

use crate::common::{FROM_KERNEL, NO_REWRITE};
use crate::gather_scatter::{GatherOptions, ScatterOptions, gather, scatter};
use crate::registry::Primitive;
use crate::shape::{reshape, size_value, squeeze};
use crate::slice::{concatenate, index_in_dim};
use crate::{add, convert_element_type, lt, max, min, select};
use ferrax_base::shape::Tuple;
use ferrax_base::symbolic::{all_at_least, difference, is_symbolic};
use ferrax_base::{Aval, DType, Result, Scalar, Shape, bail};
use ferrax_ir::op::{BatchAxis, BatchDims};
use ferrax_ir::reference::RefTensor;
use ferrax_ir::trace::{bind1, is_eager};
use ferrax_ir::{Def, Lit, OpRef, Slot, Special, TransposeArg, Value, Values, params};
use ferrax_loops::{GatherDims, IndexMode, Kind, ScatterDims, ScatterOp, Type};
use ferrax_transform::structural::{broadcast_batch, broadcast_in_dim, instantiate, zeros};
use smallvec::{SmallVec, smallvec};

/// The checks that both primitives make of their start indices.
fn check_starts(name: &str, x: &Aval, starts: &[&Aval]) -> Result<()> {
    if starts.len() != x.rank() {
        bail!(
            Value,
            "Length of slice indices must match number of operand dimensions ({} vs {})",
            starts.len(),
            Tuple(&x.shape)
        );
    }
    if starts.iter().any(|s| !s.dtype.is_integer() || s.dtype != starts[0].dtype) {
        let dtypes: Vec<&str> = starts.iter().map(|s| s.dtype.name()).collect();
        bail!(Type, "index arguments to {name} must be integers of the same type, got: {}", dtypes.join(", "));
    }
    if starts.iter().any(|s| s.rank() != 0) {
        let avals: Vec<String> = starts.iter().map(ToString::to_string).collect();
        bail!(Type, "start_indices arguments to {name} must be scalars, got indices ({})", avals.join(", "));
    }
    Ok(())
}

/// Window starts of the reference: clamped so that the window lies inside.
fn clamped(starts: &[RefTensor], shape: &[usize], window: &[usize]) -> Shape {
    let clamp = |(d, s): (usize, &RefTensor)| s.data[0].to_i64().clamp(0, (shape[d] - window[d]) as i64) as usize;
    starts.iter().enumerate().map(clamp).collect()
}

/// Rows of start indices as one array `[rows, rank]`, or `[rank]` when no start is batched.
fn stack_starts(starts: &[Value], dims: &[Option<usize>], size: usize) -> Result<Value> {
    let batched = dims.iter().any(Option::is_some);
    let column = |(s, d): (&Value, &Option<usize>)| {
        if batched {
            let rows = broadcast_batch(s, *d, size, 0)?;
            broadcast_in_dim(&rows, &[size, 1], &[0])
        } else {
            broadcast_in_dim(s, &[1], &[])
        }
    };
    let columns = starts.iter().zip(dims).map(column).collect::<Result<Vec<_>>>()?;
    concatenate(&columns, usize::from(batched))
}

// ---- dynamic_slice -------------------------------------------------------------------------------------------------

params! {
    /// Parameters of `dynamic_slice`.
    pub struct DynamicSliceParams {
        /// The window's size on each axis.
        slice_sizes: Shape,
    }
}

/// The window of a static size that starts at a dynamic place.
pub static DYNAMIC_SLICE: Def<DynamicSliceParams> = Def {
    name: "dynamic_slice",
    doc: "A window of static size at a dynamic place; starts are clamped so that it lies inside.",
    arity: None,
    shape: |p, args| {
        let [x, starts @ ..] = args else { bail!(Type, "dynamic_slice takes an operand and start indices, got none") };
        check_starts("dynamic_slice", x, starts)?;
        if p.slice_sizes.len() != x.rank() {
            bail!(
                Type,
                "slice slice_sizes must have length equal to the number of dimensions of the operand, got slice_sizes \
                 {} for operand shape {}.",
                Tuple(&p.slice_sizes),
                Tuple(&x.shape)
            );
        }
        if !all_at_least(&x.shape, &p.slice_sizes) {
            bail!(
                Type,
                "slice slice_sizes must be less than or equal to operand shape, got slice_sizes {} for operand shape \
                 {}.",
                Tuple(&p.slice_sizes),
                Tuple(&x.shape)
            );
        }
        Ok(smallvec![x.with_shape(&p.slice_sizes)])
    },
    jvp: Slot::Rule(|op, _, primals, tangents| {
        let out = bind1(op, primals)?;
        let Some(t) = &tangents[0] else { return Ok((smallvec![out], smallvec![None])) };
        let mut args = primals.to_vec();
        args[0] = t.clone();
        Ok((smallvec![out], smallvec![Some(bind1(op, &args)?)]))
    }),
    transpose: Slot::Rule(|_, _, cts, args| {
        let mut out: SmallVec<[Option<Value>; 1]> = args.iter().map(|_| None).collect();
        if let (Some(ct), TransposeArg::Linear(x)) = (&cts[0], &args[0]) {
            let mut operands = vec![zeros(x)?, ct.clone()];
            for a in &args[1..] {
                operands.push(a.known()?.clone());
            }
            out[0] = Some(bind1(&DYNAMIC_UPDATE_SLICE.op(), &operands)?);
        }
        Ok(out)
    }),
    batch: Slot::Rule(dynamic_slice_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, _, b, args, outs| Ok(smallvec![b.push(Kind::DynamicSlice, args, Type::from(&outs[0]))])),
    reference: Slot::Rule(|p, args, outs| {
        let start = clamped(&args[1..], &args[0].aval.shape, &p.slice_sizes);
        Ok(vec![RefTensor::build(&outs[0], |i| {
            let at: Shape = i.iter().zip(&start).map(|(i, s)| i + s).collect();
            args[0].at(&at)
        })])
    }),
    special: Special::WEIGHTED,
};

fn dynamic_slice_batch(
    _: &OpRef,
    p: &DynamicSliceParams,
    axis: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
) -> Result<(Values, BatchDims)> {
    if dims[1..].iter().all(Option::is_none) {
        let at = dims[0].unwrap_or(0);
        let mut sizes = p.slice_sizes.clone();
        sizes.insert(at, axis.size);
        let mut operands = args.to_vec();
        operands.insert(1 + at, Value::int(index_dtype(&args[1..]), 0));
        let op = OpRef::new(&DYNAMIC_SLICE, DynamicSliceParams { slice_sizes: sizes });
        return Ok((smallvec![bind1(&op, &operands)?], smallvec![Some(at)]));
    }
    let rank = p.slice_sizes.len();
    let indices = stack_starts(&args[1..], &dims[1..], axis.size)?;
    let mut sizes = p.slice_sizes.clone();
    let mut spec = GatherDims { offset_dims: (1..=rank).collect(), ..GatherDims::default() };
    let x = match dims[0] {
        Some(d) => {
            sizes.insert(0, axis.size.min(1));
            spec.start_index_map = (1..=rank).collect();
            spec.operand_batching_dims = smallvec![0];
            spec.start_indices_batching_dims = smallvec![0];
            broadcast_batch(&args[0], Some(d), axis.size, 0)?
        }
        None => {
            spec.start_index_map = (0..rank).collect();
            args[0].clone()
        }
    };
    let options = GatherOptions { mode: IndexMode::Clip, ..GatherOptions::default() };
    Ok((smallvec![gather(&x, &indices, &spec, &sizes, options)?], smallvec![Some(0)]))
}

fn index_dtype(starts: &[Value]) -> DType {
    starts.first().map_or(DType::I32, Value::dtype)
}

// ---- dynamic_update_slice ------------------------------------------------------------------------------------------

/// An array with a window at a dynamic place replaced.
pub static DYNAMIC_UPDATE_SLICE: Def<()> = Def {
    name: "dynamic_update_slice",
    doc: "An array with a window at a dynamic place replaced; starts are clamped so that it lies inside.",
    arity: None,
    shape: |(), args| {
        let [x, update, starts @ ..] = args else {
            bail!(
                Type,
                "dynamic_update_slice takes an operand, an update and start indices, got {} operands",
                args.len()
            )
        };
        if update.rank() != x.rank() {
            bail!(
                Type,
                "dynamic_update_slice update must have the same rank as operand, got update shape {} for operand \
                 shape {}.",
                Tuple(&update.shape),
                Tuple(&x.shape)
            );
        }
        check_starts("dynamic_update_slice", x, starts)?;
        if !all_at_least(&x.shape, &update.shape) {
            bail!(
                Type,
                "dynamic_update_slice update shape must be smaller than operand shape, got update shape {} for \
                 operand shape {}.",
                Tuple(&update.shape),
                Tuple(&x.shape)
            );
        }
        if x.dtype != update.dtype {
            bail!(
                Type,
                "lax.dynamic_update_slice requires arguments to have the same dtypes, got {}, {}.",
                x.dtype,
                update.dtype
            );
        }
        Ok(smallvec![x.with_weak(false)])
    },
    jvp: Slot::Rule(|op, (), primals, tangents| {
        let out = bind1(op, primals)?;
        if tangents[0].is_none() && tangents[1].is_none() {
            return Ok((smallvec![out], smallvec![None]));
        }
        let mut args = primals.to_vec();
        for i in 0..2 {
            args[i] = instantiate(tangents[i].clone(), &primals[i].aval().tangent())?;
        }
        Ok((smallvec![out], smallvec![Some(bind1(op, &args)?)]))
    }),
    transpose: Slot::Rule(|op, (), cts, args| {
        let mut out: SmallVec<[Option<Value>; 1]> = args.iter().map(|_| None).collect();
        let Some(ct) = &cts[0] else { return Ok(out) };
        let starts = args[2..].iter().map(|a| a.known().cloned()).collect::<Result<Vec<_>>>()?;
        let update = args[1].aval();
        if args[0].is_linear() {
            let mut operands = vec![ct.clone(), zeros(&update)?];
            operands.extend_from_slice(&starts);
            out[0] = Some(bind1(op, &operands)?);
        }
        if args[1].is_linear() {
            out[1] = Some(bind_slice(ct, &starts, &update.shape)?);
        }
        Ok(out)
    }),
    batch: Slot::Rule(dynamic_update_slice_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), b, args, outs| {
        Ok(smallvec![b.push(Kind::DynamicUpdateSlice, args, Type::from(&outs[0]))])
    }),
    reference: Slot::Rule(|(), args, outs| {
        let (x, update) = (&args[0], &args[1]);
        let start = clamped(&args[2..], &x.aval.shape, &update.aval.shape);
        Ok(vec![RefTensor::build(&outs[0], |i| {
            let at: Shape = i.iter().zip(&start).map(|(i, s)| i.wrapping_sub(*s)).collect();
            let inside = at.iter().zip(&update.aval.shape).all(|(i, n)| i < n);
            if inside { update.at(&at) } else { x.at(i) }
        })])
    }),
    special: Special::WEIGHTED,
};

fn dynamic_update_slice_batch(
    op: &OpRef,
    (): &(),
    axis: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
) -> Result<(Values, BatchDims)> {
    let x = broadcast_batch(&args[0], dims[0], axis.size, 0)?;
    let update = broadcast_batch(&args[1], dims[1], axis.size, 0)?;
    if dims[2..].iter().all(Option::is_none) {
        let mut operands = vec![x, update, Value::int(index_dtype(&args[2..]), 0)];
        operands.extend_from_slice(&args[2..]);
        return Ok((smallvec![bind1(op, &operands)?], smallvec![Some(0)]));
    }
    let rank = args.len() - 2;
    let indices = stack_starts(&args[2..], &dims[2..], axis.size)?;
    let spec = ScatterDims {
        update_window_dims: (1..=rank).collect(),
        inserted_window_dims: smallvec![],
        scatter_dims_to_operand_dims: (1..=rank).collect(),
        operand_batching_dims: smallvec![0],
        scatter_indices_batching_dims: smallvec![0],
    };
    let options = ScatterOptions { sorted: true, unique: true, mode: IndexMode::Clip };
    let out = scatter(ScatterOp::Set, &x, &indices, &update, &spec, options)?;
    Ok((smallvec![out], smallvec![Some(0)]))
}

// ---- lax-level functions -------------------------------------------------------------------------------------------

fn bind_slice(x: &Value, starts: &[Value], sizes: &[usize]) -> Result<Value> {
    let op = OpRef::new(&DYNAMIC_SLICE, DynamicSliceParams { slice_sizes: Shape::from_slice(sizes) });
    let mut args = vec![x.clone()];
    args.extend_from_slice(starts);
    bind1(&op, &args)
}

/// The number of a start index that is known now and may be written into a program.
fn known_start(start: &Value) -> Option<Scalar> {
    match start {
        Value::Lit(l) => Some(l.scalar),
        Value::Array(a) if is_eager() && a.aval().rank() == 0 => a.item().ok(),
        _ => None,
    }
}

/// A start index with negative values counted from the end of an axis of `size` entries.
pub fn wrap_index(start: &Value, size: usize) -> Result<Value> {
    wrap_to(start, size, false)
}

/// [`wrap_index`]; a `strong` result has no weak type.
fn wrap_to(start: &Value, size: usize, strong: bool) -> Result<Value> {
    let dtype = start.dtype();
    if !dtype.is_integer() || dtype.is_unsigned() {
        return Ok(start.clone());
    }
    // A narrow index dtype may not hold the axis's size.
    let most = if is_symbolic(size) { i32::MAX as u64 } else { size as u64 };
    let holds = dtype.bits() >= 64 || most < 1 << (dtype.bits() - 1);
    let dtype = if holds { dtype } else { DType::I32 };
    if let Some(s) = known_start(start) {
        let n = s.to_i64();
        return if n < 0 {
            size_value(difference(&[n, size as i64], &[])? as usize, dtype)
        } else {
            Ok(Value::int(dtype, n))
        };
    }
    let start = if start.dtype() == dtype { start.clone() } else { convert_element_type(start, dtype)? };
    let negative = lt(&start, &Value::int(dtype, 0))?;
    let base = if strong { convert_element_type(&start, dtype)? } else { start.clone() };
    select(&negative, &add(&base, &size_value(size, dtype)?)?, &start)
}

/// The starts in one dtype: Python integers take the dtype of the others, of which different ones meet in a wider one.
fn starts_for(x: &Value, starts: &[Value], wrap: &[bool]) -> Result<Vec<Value>> {
    if starts.len() != x.rank() {
        let (n, shape) = (starts.len(), Tuple(x.shape()));
        bail!(Value, "Length of slice indices must match number of operand dimensions ({n} vs {shape})");
    }
    // Python integers take the dtype of the other starts.
    let rank = |s: &&Value| (s.weak(), matches!(s, Value::Lit(_)));
    let dtype = starts.iter().min_by_key(rank).map_or(DType::I32, Value::dtype);
    let mut out = Vec::with_capacity(starts.len());
    for (d, start) in starts.iter().enumerate() {
        let wraps = *wrap.get(d).or(wrap.last()).unwrap_or(&true);
        let start = match start {
            Value::Lit(l) if l.weak && l.scalar.dtype.is_integer() && dtype.is_integer() => {
                Value::scalar(l.scalar.convert(dtype))
            }
            Value::Tracer(_) if wraps && start.dtype() == dtype => start.clone(),
            s if s.weak() && s.dtype().is_integer() && dtype.is_integer() => convert_element_type(s, dtype)?,
            s => s.clone(),
        };
        out.push(if wraps { wrap_to(&start, x.shape()[d], true)? } else { start });
    }
    in_one_dtype(&mut out, x.shape())?;
    Ok(out)
}

/// Converts starts of several integer dtypes to one; what is beyond the end of an axis stays there.
fn in_one_dtype(starts: &mut [Value], shape: &[usize]) -> Result<()> {
    let dtypes: SmallVec<[DType; 4]> = starts.iter().map(Value::dtype).collect();
    if dtypes.windows(2).all(|d| d[0] == d[1]) || !dtypes.iter().all(|d| d.is_integer()) {
        return Ok(());
    }
    let wide = if dtypes.iter().any(|d| d.bits() == 64) { DType::I64 } else { DType::I32 };
    for (start, &size) in starts.iter_mut().zip(shape) {
        *start = index_as(start, size, wide)?;
    }
    Ok(())
}

/// An index into an axis of `size` entries as i32 or i64. What the dtype does not hold stays beyond the end that it is
/// beyond.
pub fn index_as(index: &Value, size: usize, to: DType) -> Result<Value> {
    let from = index.dtype();
    let past = || size_value(size, from);
    let held = if from.is_unsigned() && from.bits() >= to.bits() {
        min(index, &past()?)?
    } else if from.bits() > to.bits() {
        max(&min(index, &past()?)?, &Value::int(from, -1))?
    } else {
        index.clone()
    };
    convert_element_type(&held, to)
}

/// The window of `sizes` that starts at `starts`. `wrap[d]` says whether negative starts of an axis count from its
/// end; the last entry stands for the axes after it.
pub fn dynamic_slice(x: &Value, starts: &[Value], sizes: &[usize], wrap: &[bool]) -> Result<Value> {
    bind_slice(x, &starts_for(x, starts, wrap)?, sizes)
}

/// `x` with the window that starts at `starts` replaced by `update`; `wrap` as in [`dynamic_slice`].
pub fn dynamic_update_slice(x: &Value, update: &Value, starts: &[Value], wrap: &[bool]) -> Result<Value> {
    let mut args = vec![x.clone(), update.clone()];
    args.extend(starts_for(x, starts, wrap)?);
    bind1(&DYNAMIC_UPDATE_SLICE.op(), &args)
}

/// Start indices of a rank-1 array, one value an axis.
pub fn unstack_starts(starts: &Value) -> Result<Vec<Value>> {
    if starts.rank() != 1 {
        bail!(
            Type,
            "start_indices must be a sequence of scalars or a rank-1 array, got an array of shape {}",
            Tuple(starts.shape())
        );
    }
    (0..starts.shape()[0]).map(|i| squeeze(&index_in_dim(starts, i as i64, 0)?, &[0])).collect()
}

fn along(x: &Value, start: &Value, axis: usize) -> Vec<Value> {
    let zero = Value::Lit(Lit { scalar: Scalar::zero(DType::I32), weak: true });
    (0..x.rank()).map(|d| if d == axis { start.clone() } else { zero.clone() }).collect()
}

/// `size` entries of one axis from a dynamic start.
pub fn dynamic_slice_in_dim(x: &Value, start: &Value, size: usize, axis: usize, wrap: bool) -> Result<Value> {
    let mut sizes = Shape::from_slice(x.shape());
    sizes[axis] = size;
    dynamic_slice(x, &along(x, start, axis), &sizes, &[wrap])
}

/// One entry of an axis at a dynamic place; `keepdims` keeps the axis with size one.
pub fn dynamic_index_in_dim(x: &Value, index: &Value, axis: usize, keepdims: bool, wrap: bool) -> Result<Value> {
    let out = dynamic_slice_in_dim(x, index, 1, axis, wrap)?;
    if keepdims { Ok(out) } else { squeeze(&out, &[axis]) }
}

/// `x` with consecutive entries of one axis replaced, from a dynamic start.
pub fn dynamic_update_slice_in_dim(x: &Value, update: &Value, start: &Value, axis: usize, wrap: bool) -> Result<Value> {
    dynamic_update_slice(x, update, &along(x, start, axis), &[wrap])
}

/// `x` with one entry of an axis replaced; the update may leave the axis out.
pub fn dynamic_update_index_in_dim(x: &Value, update: &Value, index: &Value, axis: usize, wrap: bool) -> Result<Value> {
    if update.rank() == x.rank() {
        return dynamic_update_slice_in_dim(x, update, index, axis, wrap);
    }
    let mut shape = Shape::from_slice(update.shape());
    shape.insert(axis.min(shape.len()), 1);
    dynamic_update_slice_in_dim(x, &reshape(update, &shape)?, index, axis, wrap)
}

/// The primitives of this file.
pub(crate) static PRIMITIVES: &[&'static dyn Primitive] = &[&DYNAMIC_SLICE, &DYNAMIC_UPDATE_SLICE];
