//! The primitives that transformations themselves need: `add_any`, `broadcast_in_dim`, `transpose` and
//! `reduce_sum` (the transpose of broadcasting). `ferrax-ops` re-exports them beside their families.
//!
//! Read next: `ferrax-ops/src/common.rs` for helpers shared by all other blocks.

use ferrax_base::{Aval, Result, Scalar, Shape, bail};
use ferrax_ir::op::{BatchAxis, BatchDims, Rewriter};
use ferrax_ir::params::split_tuple;
use ferrax_ir::reference::RefTensor;
use ferrax_ir::spread;
use ferrax_ir::trace::bind1;
use ferrax_ir::{
    Atom, Avals, Def, OpRef, Param, ParamValue, Params, Slot, Special, Tangents, TransposeArg, Value, Values,
};
use ferrax_loops::{BinaryOp, Kind, ReduceOp, Type};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeMap;

/// Axis numbers.
pub type Axes = SmallVec<[usize; 4]>;

const FROM_KERNEL: &str = "from its kernel";

/// The jvp of an operation linear in its one operand: the operation applied to the tangent.
pub fn linear_jvp<P>(op: &OpRef, _: &P, primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
    let out = bind1(op, primals)?;
    let tangent = match &tangents[0] {
        Some(t) => Some(bind1(op, std::slice::from_ref(t))?),
        None => None,
    };
    Ok((smallvec![out], smallvec![tangent]))
}

// ---- add_any -------------------------------------------------------------------------------------------------------

/// Sum of two values of one type; how cotangents accumulate.
pub static ADD_ANY: Def<()> = Def {
    name: "add_any",
    doc: "Sum of two tangents or cotangents of one type.",
    arity: Some(2),
    shape: |(), args| {
        if !args[0].same_type(args[1]) {
            bail!(Type, "add_any got operands of types {} and {}", args[0], args[1]);
        }
        Ok(smallvec![args[0].with_weak(args[0].weak && args[1].weak)])
    },
    jvp: Slot::Rule(|op, (), primals, tangents| {
        let out = bind1(op, primals)?;
        let tangent = match (&tangents[0], &tangents[1]) {
            (Some(a), Some(b)) => Some(bind1(op, &[a.clone(), b.clone()])?),
            (a, b) => a.clone().or_else(|| b.clone()),
        };
        Ok((smallvec![out], smallvec![tangent]))
    }),
    transpose: Slot::Rule(|_, (), cts, args| {
        Ok(args.iter().map(|a| if a.is_linear() { cts[0].clone() } else { None }).collect())
    }),
    batch: Slot::Rule(|op, (), axis, args, dims| {
        let at = dims.iter().flatten().next().copied().unwrap_or(0);
        let x = broadcast_batch(&args[0], dims[0], axis.size, at)?;
        let y = broadcast_batch(&args[1], dims[1], axis.size, at)?;
        Ok((smallvec![bind1(op, &[x, y])?], smallvec![Some(at)]))
    }),
    simplify: Slot::None("no rewrite applies"),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), b, args, _| Ok(smallvec![b.binary(BinaryOp::Add, args[0], args[1])])),
    reference: Slot::Rule(|(), args, outs| {
        let add = |row: &[Scalar]| {
            let (x, y) = (row[0], row[1]);
            if x.dtype.is_integer() {
                return Scalar::from_i64(x.dtype, x.to_i64().wrapping_add(y.to_i64()));
            }
            Scalar::from_complex(x.dtype, x.to_f64() + y.to_f64(), x.imag() + y.imag())
        };
        Ok(vec![RefTensor::map(&outs[0], args, add)])
    }),
    special: Special::ELEMENTWISE,
};

/// Sum of two cotangents of one type.
pub fn add_any(x: &Value, y: &Value) -> Result<Value> {
    bind1(&ADD_ANY.op(), &[x.clone(), y.clone()])
}

// ---- broadcast_in_dim ----------------------------------------------------------------------------------------------

/// Parameters of `broadcast_in_dim`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BroadcastInDim {
    /// The result's shape.
    pub shape: Shape,
    /// The result axis of each operand axis, increasing.
    pub broadcast_dimensions: Axes,
}

impl Params for BroadcastInDim {
    fn print(&self) -> Vec<(&'static str, Param)> {
        // As JAX prints it: the shape stands in the result's type, empty dimensions are left out.
        if self.broadcast_dimensions.is_empty() {
            return Vec::new();
        }
        vec![("broadcast_dimensions", self.broadcast_dimensions.print())]
    }

    fn parse(fields: &BTreeMap<String, Param>) -> Option<Self> {
        let Some(Param::Text(shape)) = fields.get("shape") else {
            return None;
        };
        let shape = split_tuple(shape)?.iter().map(|d| d.parse().ok()).collect::<Option<Shape>>()?;
        let broadcast_dimensions = match fields.get("broadcast_dimensions") {
            Some(p) => ParamValue::parse(p)?,
            None => Axes::new(),
        };
        Some(BroadcastInDim { shape, broadcast_dimensions })
    }
}

/// Duplicates an array along new or unit axes.
pub static BROADCAST_IN_DIM: Def<BroadcastInDim> = Def {
    name: "broadcast_in_dim",
    doc: "Duplicates an array along new axes and axes of size one.",
    arity: Some(1),
    shape: broadcast_shape,
    jvp: Slot::Rule(linear_jvp),
    transpose: Slot::Rule(broadcast_transpose),
    batch: Slot::Rule(|_, p, axis, args, dims| {
        let x = broadcast_batch(&args[0], dims[0], axis.size, 0)?;
        let mut shape: Shape = smallvec![axis.size];
        shape.extend_from_slice(&p.shape);
        let dims: Axes = std::iter::once(0).chain(p.broadcast_dimensions.iter().map(|d| d + 1)).collect();
        Ok((smallvec![broadcast_in_dim(&x, &shape, &dims)?], smallvec![Some(0)]))
    }),
    simplify: Slot::Rule(|_, p, cx, inputs| {
        let same = cx.aval(&inputs[0]).shape == p.shape;
        Ok(same.then(|| smallvec![inputs[0]]))
    }),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, _| Ok(smallvec![b.broadcast(args[0], &p.shape, &p.broadcast_dimensions)])),
    reference: Slot::Rule(|p, args, outs| {
        let x = &args[0];
        Ok(vec![RefTensor::build(&outs[0], |i| {
            let at: Vec<usize> = p
                .broadcast_dimensions
                .iter()
                .zip(&x.aval.shape)
                .map(|(&d, &n)| if n == 1 { 0 } else { i[d] })
                .collect();
            x.at(&at)
        })])
    }),
    special: Special::WEIGHTED,
};

fn broadcast_shape(p: &BroadcastInDim, args: &[&Aval]) -> Result<Avals> {
    let x = args[0];
    let dims = &p.broadcast_dimensions;
    if dims.len() != x.rank() {
        bail!(
            Type,
            "broadcast_in_dim broadcast_dimensions must have length equal to operand ndim; got {} for operand of shape {}",
            dims.len(),
            x
        );
    }
    if dims.windows(2).any(|w| w[0] >= w[1]) || dims.iter().any(|&d| d >= p.shape.len()) {
        bail!(
            Type,
            "broadcast_in_dim broadcast_dimensions {dims:?} must be increasing and within the shape {:?}",
            p.shape
        );
    }
    for (&d, &n) in dims.iter().zip(&x.shape) {
        if n != 1 && n != p.shape[d] {
            bail!(
                Type,
                "Incompatible shapes for broadcasting: {} and requested shape {}",
                ferrax_base::shape::Tuple(&x.shape),
                ferrax_base::shape::Tuple(&p.shape)
            );
        }
    }
    Ok(smallvec![x.with_shape(&p.shape)])
}

fn broadcast_transpose(
    _: &OpRef,
    p: &BroadcastInDim,
    cts: &[Option<Value>],
    args: &[TransposeArg],
) -> Result<Tangents> {
    let Some(ct) = &cts[0] else {
        return Ok(smallvec![None]);
    };
    let x = args[0].aval();
    let stretched = |d: usize| match p.broadcast_dimensions.iter().position(|&b| b == d) {
        Some(i) => x.shape[i] == 1 && p.shape[d] != 1,
        None => true,
    };
    let axes: Axes = (0..p.shape.len()).filter(|&d| stretched(d)).collect();
    let summed = reduce_sum(ct, &axes)?;
    let kept: Axes = (0..x.rank()).filter(|&i| !axes.contains(&p.broadcast_dimensions[i])).collect();
    Ok(smallvec![Some(broadcast_in_dim(&summed, &x.shape, &kept)?)])
}

/// `x` with its axes mapped into `shape` by `dims`; the same value when nothing changes.
pub fn broadcast_in_dim(x: &Value, shape: &[usize], dims: &[usize]) -> Result<Value> {
    if x.shape() == shape && dims.len() == shape.len() {
        return Ok(x.clone());
    }
    let params = BroadcastInDim { shape: Shape::from_slice(shape), broadcast_dimensions: Axes::from_slice(dims) };
    bind1(&OpRef::new(&BROADCAST_IN_DIM, params), std::slice::from_ref(x))
}

/// Zeros of a type, as a broadcast literal.
pub fn zeros(aval: &Aval) -> Result<Value> {
    full(aval, Scalar::zero(aval.dtype))
}

/// A splatted scalar of a type; rank-0 ones are literals.
pub fn full(aval: &Aval, s: Scalar) -> Result<Value> {
    let lit = Value::Lit(ferrax_ir::Lit { scalar: s, weak: aval.weak });
    broadcast_in_dim(&lit, &aval.shape, &[])
}

/// The value, or zeros of the type where it is a symbolic zero.
pub fn instantiate(v: Option<Value>, aval: &Aval) -> Result<Value> {
    v.map_or_else(|| spread::settled(zeros(aval)?, aval), Ok)
}

// ---- transpose -----------------------------------------------------------------------------------------------------

ferrax_ir::params! {
    /// Parameters of `transpose`.
    pub struct Transpose {
        /// Result axis i is operand axis permutation[i].
        permutation: Axes,
    }
}

/// Permutes axes.
pub static TRANSPOSE: Def<Transpose> = Def {
    name: "transpose",
    doc: "Permutes the axes of an array.",
    arity: Some(1),
    shape: |p, args| {
        let x = args[0];
        let mut seen: Axes = p.permutation.clone();
        seen.sort_unstable();
        if seen.len() != x.rank() || seen.iter().enumerate().any(|(i, &d)| i != d) {
            bail!(
                Type,
                "transpose permutation {:?} isn't a permutation of the axes of an operand of type {x}",
                p.permutation
            );
        }
        Ok(smallvec![x.with_shape(&p.permutation.iter().map(|&d| x.shape[d]).collect::<Shape>())])
    },
    jvp: Slot::Rule(linear_jvp),
    transpose: Slot::Rule(|_, p, cts, _| {
        let Some(ct) = &cts[0] else {
            return Ok(smallvec![None]);
        };
        let mut inverse: Axes = smallvec![0; p.permutation.len()];
        p.permutation.iter().enumerate().for_each(|(i, &d)| inverse[d] = i);
        Ok(smallvec![Some(transpose(ct, &inverse)?)])
    }),
    batch: Slot::Rule(|_, p, _, args, dims| {
        let at = dims[0].unwrap_or(0);
        let perm: Axes =
            std::iter::once(at).chain(p.permutation.iter().map(|&d| if d < at { d } else { d + 1 })).collect();
        Ok((smallvec![transpose(&args[0], &perm)?], smallvec![Some(0)]))
    }),
    simplify: Slot::Rule(transpose_simplify),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        Ok(smallvec![b.push(Kind::Transpose(p.permutation.clone()), args, Type::from(&outs[0]))])
    }),
    reference: Slot::Rule(|p, args, outs| {
        Ok(vec![RefTensor::build(&outs[0], |i| {
            let mut at = vec![0; i.len()];
            p.permutation.iter().zip(i).for_each(|(&d, &n)| at[d] = n);
            args[0].at(&at)
        })])
    }),
    special: Special::WEIGHTED,
};

/// transpose(transpose(x)) is one transpose; an identity permutation is nothing. No bits change.
fn transpose_simplify(
    _: &OpRef,
    p: &Transpose,
    cx: &mut dyn Rewriter,
    inputs: &[Atom],
) -> Result<Option<SmallVec<[Atom; 1]>>> {
    if p.permutation.iter().enumerate().all(|(i, &d)| i == d) {
        return Ok(Some(smallvec![inputs[0]]));
    }
    let Some((inner, args)) = cx.producer(&inputs[0]) else {
        return Ok(None);
    };
    let Some(q) = inner.of(&TRANSPOSE) else {
        return Ok(None);
    };
    let permutation: Axes = p.permutation.iter().map(|&d| q.permutation[d]).collect();
    Ok(Some(smallvec![cx.emit(OpRef::new(&TRANSPOSE, Transpose { permutation }), &args)?]))
}

/// `x` with its axes permuted; the same value for the identity.
pub fn transpose(x: &Value, permutation: &[usize]) -> Result<Value> {
    if permutation.iter().enumerate().all(|(i, &d)| i == d) && permutation.len() == x.rank() {
        return Ok(x.clone());
    }
    let params = Transpose { permutation: Axes::from_slice(permutation) };
    bind1(&OpRef::new(&TRANSPOSE, params), std::slice::from_ref(x))
}

/// `x` with one axis moved.
pub fn move_axis(x: &Value, from: usize, to: usize) -> Result<Value> {
    if from == to {
        return Ok(x.clone());
    }
    let mut perm: Axes = (0..x.rank()).filter(|&d| d != from).collect();
    perm.insert(to, from);
    transpose(x, &perm)
}

/// `x` with its batch axis at `at`; broadcast there when it has none.
pub fn broadcast_batch(x: &Value, dim: Option<usize>, size: usize, at: usize) -> Result<Value> {
    match dim {
        Some(d) => move_axis(x, d, at),
        None => {
            let mut shape = Shape::from_slice(x.shape());
            shape.insert(at, size);
            let dims: Axes = (0..shape.len()).filter(|&d| d != at).collect();
            broadcast_in_dim(x, &shape, &dims)
        }
    }
}

// ---- reduce_sum ----------------------------------------------------------------------------------------------------

/// Parameters of `reduce_sum`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReduceSum {
    /// Axes that are summed away, increasing.
    pub axes: Axes,
}

impl Params for ReduceSum {
    fn print(&self) -> Vec<(&'static str, Param)> {
        vec![("axes", self.axes.print()), ("out_sharding", Param::Text("None".into()))]
    }

    fn parse(fields: &BTreeMap<String, Param>) -> Option<Self> {
        Some(ReduceSum { axes: ParamValue::parse(fields.get("axes")?)? })
    }
}

/// Sum over axes.
pub static REDUCE_SUM: Def<ReduceSum> = Def {
    name: "reduce_sum",
    doc: "Sum of an array over axes.",
    arity: Some(1),
    shape: |p, args| {
        if args[0].dtype.is_key() {
            bail!(Type, "reduce_sum does not accept dtype {}. Accepted dtypes are subtypes of number.", args[0].dtype);
        }
        Ok(smallvec![reduced(args[0], &p.axes, "reduce_sum")?])
    },
    jvp: Slot::Rule(linear_jvp),
    transpose: Slot::Rule(|_, p, cts, args| {
        let Some(ct) = &cts[0] else {
            return Ok(smallvec![None]);
        };
        let shape = args[0].aval().shape;
        let kept: Axes = (0..shape.len()).filter(|d| !p.axes.contains(d)).collect();
        Ok(smallvec![Some(broadcast_in_dim(ct, &shape, &kept)?)])
    }),
    batch: Slot::Rule(|_, p, _, args, dims| {
        let (axes, out) = batched_axes(&p.axes, dims[0].unwrap_or(0));
        Ok((smallvec![reduce_sum(&args[0], &axes)?], smallvec![Some(out)]))
    }),
    simplify: Slot::None("no rewrite applies"),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, _| Ok(smallvec![b.reduce(ReduceOp::Sum, args[0], &p.axes)])),
    reference: Slot::Rule(|p, args, outs| {
        let x = &args[0];
        let mut sums = vec![(0f64, 0f64, 0i64); outs[0].size()];
        let strides = ferrax_base::shape::strides(&outs[0].shape);
        let mut index = vec![0; x.aval.rank()];
        for s in &x.data {
            let kept = index.iter().enumerate().filter(|(d, _)| !p.axes.contains(d)).map(|(_, &i)| i);
            let at: usize = kept.zip(&strides).map(|(i, s)| i * s).sum();
            let sum = &mut sums[at];
            *sum = (sum.0 + s.to_f64(), sum.1 + s.imag(), sum.2.wrapping_add(s.to_i64()));
            ferrax_ir::reference::advance(&mut index, &x.aval.shape);
        }
        let dtype = outs[0].dtype;
        let finish = |(re, im, n): (f64, f64, i64)| {
            if dtype.is_inexact() { Scalar::from_complex(dtype, re, im) } else { Scalar::from_i64(dtype, n) }
        };
        Ok(vec![RefTensor { aval: outs[0].clone(), data: sums.into_iter().map(finish).collect() }])
    }),
    special: Special::WEIGHTED,
};

/// The aval of a reduction over `axes`; errors on axes out of range or repeated.
pub fn reduced(x: &Aval, axes: &[usize], name: &str) -> Result<Aval> {
    if axes.iter().any(|&a| a >= x.rank()) {
        bail!(Value, "{name} axes {axes:?} are out of range for an operand of type {x}");
    }
    if axes.iter().enumerate().any(|(i, a)| axes[..i].contains(a)) {
        bail!(Value, "duplicate value in 'axes' of {name}: {axes:?}");
    }
    let shape: Shape = x.shape.iter().enumerate().filter(|(d, _)| !axes.contains(d)).map(|(_, &n)| n).collect();
    Ok(x.with_shape(&shape))
}

/// Reduction axes of a batched operand, and where its batch axis ends up.
pub fn batched_axes(axes: &[usize], at: usize) -> (Axes, usize) {
    let moved: Axes = axes.iter().map(|&a| if a < at { a } else { a + 1 }).collect();
    let out = at - moved.iter().filter(|&&a| a < at).count();
    (moved, out)
}

/// Sum over axes; the same value when there are none.
pub fn reduce_sum(x: &Value, axes: &[usize]) -> Result<Value> {
    if axes.is_empty() {
        return Ok(x.clone());
    }
    let params = ReduceSum { axes: Axes::from_slice(axes) };
    bind1(&OpRef::new(&REDUCE_SUM, params), std::slice::from_ref(x))
}

/// The results and batch axes of an operation none of whose operands is batched.
pub fn unbatched(op: &OpRef, args: &[Value], _axis: &BatchAxis) -> Result<(Values, BatchDims)> {
    let outs = ferrax_ir::bind(op, args)?;
    let dims = smallvec![None; outs.len()];
    Ok((outs, dims))
}
