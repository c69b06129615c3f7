//! Sorting: multi-operand `sort` and `top_k`.
//!
//! Keys compare lexicographically; NaN comes last, -0.0 equals 0.0, complex numbers compare by real, then by
//! imaginary part. Derivatives follow the permutation: an index operand is sorted along and tangents are gathered by it.
//! Read next: `take_along_axis` in `gather_scatter/take.rs`.

use crate::common::{Accept, FROM_KERNEL, NO_REWRITE, NOT_LINEAR, check_operand};
use crate::gather_scatter::{GatherOptions, take_along_axis};
use crate::registry::Primitive;
use crate::shape::iota;
use crate::slice::slice_in_dim;
use ferrax_base::shape::{Tuple, strides};
use ferrax_base::symbolic::is_symbolic;
use ferrax_base::{Aval, DType, Result, Scalar, Shape, bail};
use ferrax_ir::reference::RefTensor;
use ferrax_ir::{Avals, Def, OpRef, Slot, Special, Tangents, Value, Values, bind, params};
use ferrax_loops::{IndexMode, Kind, Type};
use ferrax_transform::structural::broadcast_batch;
use smallvec::smallvec;
use std::cmp::Ordering;

params! {
    /// Parameters of `sort`.
    pub struct SortParams {
        /// The axis to sort along.
        dimension: usize,
        /// Whether equal keys keep their order.
        is_stable: bool,
        /// How many operands, from the first, are keys.
        num_keys: usize,
    }
}

/// Arrays sorted together by the first of them.
pub static SORT: Def<SortParams> = Def {
    name: "sort",
    doc: "Arrays sorted together along one axis by the first `num_keys` of them.",
    arity: None,
    shape: |p, args| {
        let Some(first) = args.first() else { bail!(Type, "Sort requires at least one operand") };
        if args.iter().any(|a| a.shape != first.shape) {
            let shapes: Vec<String> = args.iter().map(|a| Tuple(&a.shape).to_string()).collect();
            bail!(Type, "Arguments to sort must have equal shapes, got: {}", shapes.join(" "));
        }
        if !(1..=args.len()).contains(&p.num_keys) {
            bail!(Value, "num_keys={} must be between 1 and len(operand)={}", p.num_keys, args.len());
        }
        if p.dimension >= first.rank() {
            bail!(Value, "axis {} is out of bounds for array of dimension {}", p.dimension, first.rank());
        }
        (0..p.num_keys).try_for_each(|i| check_operand("sort", Accept::ANY, args, i))?;
        Ok(args.iter().map(|a| (*a).clone()).collect())
    },
    jvp: Slot::Rule(sort_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(|_, p, axis, args, dims| {
        let at = dims.iter().flatten().next().copied().unwrap_or(0);
        let parts = args.iter().zip(dims).map(|(x, d)| broadcast_batch(x, *d, axis.size, at));
        let dimension = if p.dimension < at { p.dimension } else { p.dimension + 1 };
        let outs = sort(&parts.collect::<Result<Vec<_>>>()?, dimension, p.is_stable, p.num_keys)?;
        let dims = smallvec![Some(at); outs.len()];
        Ok((outs, dims))
    }),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        let types: Vec<Type> = outs.iter().map(Type::from).collect();
        let kind = Kind::Sort { axis: p.dimension, num_keys: p.num_keys, stable: p.is_stable };
        Ok(b.push_many(kind, args, &types))
    }),
    reference: Slot::Rule(|p, args, outs| {
        let mut results: Vec<RefTensor> = args.to_vec();
        for row in rows(&outs[0].shape, p.dimension) {
            let mut order = row.clone();
            order.sort_by(|&i, &j| {
                let by = |x: &RefTensor| compare(x.data[i], x.data[j]);
                args[..p.num_keys].iter().map(by).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
            });
            for (out, x) in results.iter_mut().zip(args) {
                row.iter().zip(&order).for_each(|(&to, &from)| out.data[to] = x.data[from]);
            }
        }
        Ok(results)
    }),
    special: Special::NONE,
};

/// Flat positions of every line along an axis.
fn rows(shape: &[usize], axis: usize) -> Vec<Vec<usize>> {
    let step = strides(shape)[axis];
    let total = ferrax_base::shape::size(shape);
    (0..total)
        .filter(|i| (i / step).is_multiple_of(shape[axis]))
        .map(|first| (0..shape[axis]).map(|n| first + n * step).collect())
        .collect()
}

/// Sort's order of two numbers.
fn compare(x: Scalar, y: Scalar) -> Ordering {
    let float = |a: f64, b: f64| match (a.is_nan(), b.is_nan()) {
        (false, false) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        (a, b) => a.cmp(&b),
    };
    match x.dtype {
        d if d.is_complex() => float(x.to_f64(), y.to_f64()).then(float(x.imag(), y.imag())),
        d if d.is_float() => float(x.to_f64(), y.to_f64()),
        d if d.is_signed() => x.to_i64().cmp(&y.to_i64()),
        _ => x.bits.cmp(&y.bits),
    }
}

/// Tangents moved as the operands were, by a permutation along an axis.
fn follow(tangents: &[Option<Value>], permutation: &Value, axis: usize) -> Result<Tangents> {
    let options = GatherOptions { mode: IndexMode::PromiseInBounds, ..GatherOptions::default() };
    tangents.iter().map(|t| t.as_ref().map(|t| take_along_axis(t, permutation, axis, options)).transpose()).collect()
}

fn sort_jvp(op: &OpRef, p: &SortParams, primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
    if tangents.iter().all(Option::is_none) {
        let outs = bind(op, primals)?;
        let none = smallvec![None; outs.len()];
        return Ok((outs, none));
    }
    let mut args = primals.to_vec();
    args.push(iota(DType::I32, primals[0].shape(), p.dimension)?);
    let mut outs = sort(&args, p.dimension, p.is_stable, p.num_keys)?;
    let Some(permutation) = outs.pop() else { bail!(Internal, "sort gave no result") };
    let moved = follow(tangents, &permutation, p.dimension)?;
    Ok((outs, moved))
}

/// Arrays sorted together along an axis by the first `num_keys` of them.
pub fn sort(args: &[Value], dimension: usize, is_stable: bool, num_keys: usize) -> Result<Values> {
    bind(&OpRef::new(&SORT, SortParams { dimension, is_stable, num_keys }), args)
}

/// The permutation that sorts an array along an axis, in `dtype`.
pub fn argsort(x: &Value, dimension: usize, is_stable: bool, dtype: DType) -> Result<Value> {
    let index = iota(dtype, x.shape(), dimension)?;
    let mut outs = sort(&[x.clone(), index], dimension, is_stable, 1)?;
    match outs.pop() {
        Some(index) => Ok(index),
        None => bail!(Internal, "sort gave no result"),
    }
}

// ---- top_k ---------------------------------------------------------------------------------------------------------

params! {
    /// Parameters of `top_k`.
    pub struct TopKParams {
        /// The axis to select along.
        axis: usize,
        /// How many entries to keep.
        k: usize,
    }
}

/// The largest entries along an axis and where they are.
pub static TOP_K: Def<TopKParams> = Def {
    name: "top_k",
    doc: "The k largest entries along one axis, in descending order, and their indices.",
    arity: Some(1),
    shape: top_k_shape,
    jvp: Slot::Rule(|op, p, primals, tangents| {
        let outs = bind(op, primals)?;
        let moved = follow(tangents, &outs[1], p.axis)?;
        let first = moved.into_iter().next().flatten();
        Ok((outs, smallvec![first, None]))
    }),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(|_, p, _, args, dims| {
        let at = dims[0].unwrap_or(0);
        let axis = if p.axis < at { p.axis } else { p.axis + 1 };
        let outs = bind(&OpRef::new(&TOP_K, TopKParams { axis, k: p.k }), args)?;
        Ok((outs, smallvec![Some(at), Some(at)]))
    }),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        let types: Vec<Type> = outs.iter().map(Type::from).collect();
        Ok(b.push_many(Kind::TopK { k: p.k, axis: p.axis }, args, &types))
    }),
    reference: Slot::Rule(|p, args, outs| {
        let x = &args[0];
        let (mut values, mut indices) = (Vec::new(), Vec::new());
        for mut order in rows(&x.aval.shape, p.axis) {
            let step = strides(&x.aval.shape)[p.axis];
            order.sort_by(|&i, &j| descending(x.data[i], x.data[j]));
            values.push(order[..p.k].iter().map(|&i| x.data[i]).collect::<Vec<_>>());
            let place = |i: &usize| Scalar::from_i64(outs[1].dtype, ((i / step) % x.aval.shape[p.axis]) as i64);
            indices.push(order[..p.k].iter().map(place).collect::<Vec<_>>());
        }
        let gather = |aval: &Aval, lines: &[Vec<Scalar>]| {
            let others: Shape = without(&aval.shape, p.axis);
            let line_strides = strides(&others);
            RefTensor::build(aval, |i| {
                let line: usize = without(i, p.axis).iter().zip(&line_strides).map(|(n, s)| n * s).sum();
                lines[line][i[p.axis]]
            })
        };
        Ok(vec![gather(&outs[0], &values), gather(&outs[1], &indices)])
    }),
    special: Special::NONE,
};

fn without(dims: &[usize], axis: usize) -> Shape {
    dims.iter().enumerate().filter(|(d, _)| *d != axis).map(|(_, &n)| n).collect()
}

/// Largest first, in the total order of floats (0.0 above -0.0); NaN above all.
fn descending(x: Scalar, y: Scalar) -> Ordering {
    let key = |s: Scalar| if s.to_f64().is_nan() { f64::NAN } else { s.to_f64() };
    if x.dtype.is_float() { key(y).total_cmp(&key(x)) } else { compare(y, x) }
}

fn top_k_shape(p: &TopKParams, args: &[&Aval]) -> Result<Avals> {
    let x = args[0];
    if x.dtype.is_complex() {
        bail!(Value, "top_k is not compatible with complex inputs.");
    }
    if !Accept::ORDERED.has(x.dtype) {
        bail!(Value, "top_k is not compatible with inputs of dtype {}.", x.dtype);
    }
    if p.axis >= x.rank() {
        bail!(Value, "axis {} is out of bounds for array of dimension {}", p.axis, x.rank());
    }
    if p.k > x.shape[p.axis] {
        bail!(
            Value,
            "k argument to top_k must be no larger than size along axis; got k={} with shape={:?} and axis={}",
            p.k,
            x.shape.as_slice(),
            p.axis
        );
    }
    if x.shape[p.axis] > i32::MAX as usize && !is_symbolic(x.shape[p.axis]) {
        bail!(
            Value,
            "top_k returns int32 indices, which will overflow for array dimensions larger than the maximum int32 ({}). \
             Got operand.shape={}",
            i32::MAX,
            Tuple(&x.shape)
        );
    }
    let mut shape = x.shape.clone();
    shape[p.axis] = p.k;
    Ok(smallvec![x.with_shape(&shape), Aval::new(DType::I32, &shape)])
}

/// The `k` largest entries along an axis, largest first, and their int32 indices.
pub fn top_k(x: &Value, k: usize, axis: usize) -> Result<Values> {
    bind(&OpRef::new(&TOP_K, TopKParams { axis, k }), std::slice::from_ref(x))
}

/// The `k` smallest entries along an axis, smallest first, and their int32 indices.
pub fn bottom_k(x: &Value, k: usize, axis: usize) -> Result<Values> {
    let index = iota(DType::I32, x.shape(), axis)?;
    let sorted = sort(&[x.clone(), index], axis, true, 1)?;
    sorted.iter().map(|v| slice_in_dim(v, Some(0), Some(k as i64), 1, axis)).collect()
}

/// As [`top_k`] or [`bottom_k`] for floating operands: what `approx_max_k` and `approx_min_k` give on a CPU.
pub fn approx_k(x: &Value, k: usize, axis: usize, largest: bool) -> Result<Values> {
    if !x.dtype().is_float() {
        bail!(Value, "operand must be a floating type");
    }
    if k > x.shape()[axis] {
        bail!(Value, "k must be smaller than the size of reduction_dim {}, got {k}", x.shape()[axis]);
    }
    if largest { top_k(x, k, axis) } else { bottom_k(x, k, axis) }
}

/// The primitives of this file.
pub(crate) static PRIMITIVES: &[&'static dyn Primitive] = &[&SORT, &TOP_K];
