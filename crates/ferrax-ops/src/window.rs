//! Reductions over sliding windows: sum, maximum, minimum, and with any function.
//!
//! Windows are JAX's: the operand is dilated by `base_dilation`, padded (with the reduction's initial value),
//! then covered by windows of `window_dimensions` cells that are `window_dilation` apart, every
//! `window_strides` cells. The sum is linear; maximum and minimum give the tangent of the first element that
//! wins. Read next: `sort.rs`.

use crate::common::{
    Accept, FROM_KERNEL, NO_REWRITE, NOT_LINEAR, cells, constant_scalar, dilated, one, places, unary_aval, zero_jvp,
};
use crate::elementwise::binary::bitwise_or;
use crate::elementwise::compare::{gt, lt, ne};
use crate::elementwise::select::select;
use crate::reduce::{fold_reference, reduced_operands, scalar_graph};
use crate::slice::{PadDim, pad, slice};
use ferrax_base::shape::Tuple;
use ferrax_base::symbolic::{self, difference};
use ferrax_base::{Aval, DType, Result, Scalar, Shape, bail};
use ferrax_ir::op::{BatchAxis, BatchDims};
use ferrax_ir::reference::{RefTensor, advance};
use ferrax_ir::trace::bind1;
use ferrax_ir::{
    Avals, Def, JaxprRef, OpRef, Param, ParamValue, Params, Slot, Special, Tangents, TransposeArg, Value, Values, bind,
};
use ferrax_loops::{Builder, Graph, Kind, PadConfig, ReduceOp, SliceDims, Type, ValueId, WindowDims};
use ferrax_transform::structural::{broadcast_batch, linear_jvp, zeros};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeMap;

/// Low and high padding of each axis.
pub type Padding = SmallVec<[(i64, i64); 4]>;

ferrax_ir::params! {
    /// Where windows lie.
    pub struct Window {
        /// Spacing of the operand's elements.
        base_dilation: Shape,
        /// Low and high padding of each axis.
        padding: Padding,
        /// Spacing of a window's cells.
        window_dilation: Shape,
        /// Cells of a window.
        window_dimensions: Shape,
        /// Spacing of windows.
        window_strides: Shape,
    }
}

impl Window {
    fn dims(&self) -> WindowDims {
        WindowDims {
            window: self.window_dimensions.clone(),
            strides: self.window_strides.clone(),
            padding: self.padding.clone(),
            base_dilation: self.base_dilation.clone(),
            window_dilation: self.window_dilation.clone(),
        }
    }

    /// Windows of these sizes, one cell apart, with nothing dilated or padded.
    pub fn new(dimensions: &[usize]) -> Window {
        let ones: Shape = smallvec![1; dimensions.len()];
        Window {
            base_dilation: ones.clone(),
            padding: smallvec![(0, 0); dimensions.len()],
            window_dilation: ones.clone(),
            window_dimensions: Shape::from_slice(dimensions),
            window_strides: ones,
        }
    }

    /// The number of windows along each axis.
    pub fn counts(&self, shape: &[usize]) -> Result<Shape> {
        (0..shape.len())
            .map(|d| {
                let (lo, hi) = self.padding[d];
                let size = dilated(shape[d], self.base_dilation[d])?;
                let padded = difference(&[size, lo, hi], &[])?;
                let span = dilated(self.window_dimensions[d], self.window_dilation[d])?;
                places(padded, span, self.window_strides[d])
            })
            .collect()
    }

    fn with_axis(&self, at: usize) -> Window {
        let mut w = self.clone();
        w.base_dilation.insert(at, 1);
        w.padding.insert(at, (0, 0));
        w.window_dilation.insert(at, 1);
        w.window_dimensions.insert(at, 1);
        w.window_strides.insert(at, 1);
        w
    }

    fn check(&self, name: &str, x: &Aval) -> Result<()> {
        let lengths = [
            (self.window_dimensions.len(), "window_dimensions"),
            (self.window_strides.len(), "window_strides"),
            (self.base_dilation.len(), "base_dilation"),
            (self.window_dilation.len(), "window_dilation"),
            (self.padding.len(), "padding"),
        ];
        for (n, what) in lengths {
            if n != x.rank() {
                bail!(Type, "{name} got {n} {what} for an operand of shape {}.", Tuple(&x.shape));
            }
        }
        let sizes = [
            (&self.window_dimensions, "window_dimensions"),
            (&self.window_strides, "window_strides"),
            (&self.base_dilation, "base_dilation"),
            (&self.window_dilation, "window_dilation"),
        ];
        for (sizes, what) in sizes {
            if sizes.contains(&0) {
                bail!(Type, "reduce_window {what} must have every element be strictly positive, got {}.", Tuple(sizes));
            }
        }
        Ok(())
    }

    /// Padding that puts the dilated operand under the windows.
    fn pads(&self) -> SmallVec<[PadDim; 4]> {
        self.padding.iter().zip(&self.base_dilation).map(|(&(lo, hi), &d)| PadDim(lo, hi, d as i64 - 1)).collect()
    }

    /// For every cell of a window: where its strided slice of the padded operand starts and ends; nothing where there
    /// are no windows.
    fn cells(&self, counts: &[usize]) -> Result<Vec<(Shape, Shape)>> {
        if counts.contains(&0) {
            return Ok(Vec::new());
        }
        if symbolic::any(&self.window_dimensions) {
            bail!(NotImplemented, "windows of symbolic sizes are not implemented here");
        }
        let mut index: Shape = smallvec![0; counts.len()];
        (0..ferrax_base::shape::size(&self.window_dimensions))
            .map(|_| {
                let start: Shape = index.iter().zip(&self.window_dilation).map(|(i, d)| i * d).collect();
                let span = |d: usize| dilated(counts[d], self.window_strides[d]);
                let limit = (0..start.len()).map(|d| Ok(difference(&[start[d] as i64, span(d)?], &[])? as usize));
                let limit = limit.collect::<Result<Shape>>()?;
                advance(&mut index, &self.window_dimensions);
                Ok((start, limit))
            })
            .collect()
    }
}

fn window_shape(name: &str, accept: Accept, w: &Window, args: &[&Aval]) -> Result<Avals> {
    let x = unary_aval(name, accept, args)?;
    w.check(name, &x)?;
    Ok(smallvec![x.with_shape(&w.counts(&x.shape)?)])
}

fn window_reference(op: ReduceOp, w: &Window, x: &RefTensor, out: &Aval) -> RefTensor {
    let rank = out.rank();
    let size = ferrax_base::shape::size(&w.window_dimensions);
    RefTensor::build(out, |o| {
        let mut cell = vec![0; rank];
        let items: Vec<Scalar> = (0..size)
            .filter_map(|_| {
                let mut at = Vec::with_capacity(rank);
                for d in 0..rank {
                    let place = (o[d] * w.window_strides[d] + cell[d] * w.window_dilation[d]) as i64 - w.padding[d].0;
                    let step = w.base_dilation[d] as i64;
                    if place >= 0 && place % step == 0 && place / step < x.aval.shape[d] as i64 {
                        at.push((place / step) as usize);
                    }
                }
                advance(&mut cell, &w.window_dimensions);
                (at.len() == rank).then(|| x.at(&at))
            })
            .collect();
        fold_reference(op, out.dtype, items.into_iter())
    })
}

/// Writes the block of a window reduction with a monoid, and the function that binds it.
macro_rules! window {
    ($NAME:ident, $fun:ident, $name:literal, $accept:ident, $kernel:ident, $doc:literal, jvp: $jvp:expr, transpose: $transpose:expr) => {
        #[doc = $doc]
        pub static $NAME: Def<Window> = Def {
            name: $name,
            doc: $doc,
            arity: Some(1),
            shape: |p, args| window_shape($name, Accept::$accept, p, args),
            jvp: $jvp,
            transpose: $transpose,
            batch: Slot::Rule(|_, p, _, args, dims| {
                let at = dims[0].unwrap_or(0);
                Ok((smallvec![$fun(&args[0], p.with_axis(at))?], smallvec![Some(at)]))
            }),
            simplify: Slot::None(NO_REWRITE),
            stablehlo: Slot::None(FROM_KERNEL),
            kernel: Slot::Rule(|_, p, b, args, outs| {
                let init = b.scalar(ReduceOp::$kernel.identity(outs[0].dtype));
                let kind = Kind::ReduceWindow { op: ReduceOp::$kernel, window: Box::new(p.dims()) };
                Ok(smallvec![b.push(kind, &[args[0], init], (&outs[0]).into())])
            }),
            reference: Slot::Rule(|p, args, outs| Ok(vec![window_reference(ReduceOp::$kernel, p, &args[0], &outs[0])])),
            special: Special::WEIGHTED,
        };

        #[doc = $doc]
        pub fn $fun(x: &Value, window: Window) -> Result<Value> {
            bind1(&OpRef::new(&$NAME, window), std::slice::from_ref(x))
        }
    };
}

window!(
    REDUCE_WINDOW_SUM, reduce_window_sum, "reduce_window_sum", NUMBER, Sum, "Sums over sliding windows.",
    jvp: Slot::Rule(linear_jvp), transpose: Slot::Rule(window_sum_transpose)
);
window!(
    REDUCE_WINDOW_MAX, reduce_window_max, "reduce_window_max", ORDERED, Max, "Maxima over sliding windows.",
    jvp: Slot::Rule(|op, p, x, t| chooser_jvp(op, p, x, t, ReduceOp::Max)), transpose: Slot::None(NOT_LINEAR)
);
window!(
    REDUCE_WINDOW_MIN, reduce_window_min, "reduce_window_min", ORDERED, Min, "Minima over sliding windows.",
    jvp: Slot::Rule(|op, p, x, t| chooser_jvp(op, p, x, t, ReduceOp::Min)), transpose: Slot::None(NOT_LINEAR)
);

/// An element's cotangent is the sum over the windows that cover it: a window sum over the cotangent, with the roles of
/// strides and base dilation swapped.
fn window_sum_transpose(_: &OpRef, p: &Window, cts: &[Option<Value>], args: &[TransposeArg]) -> Result<Tangents> {
    let Some(ct) = &cts[0] else { return Ok(smallvec![None]) };
    let shape = args[0].aval().shape;
    if shape.contains(&0) || ct.size() == 0 {
        return Ok(smallvec![Some(zeros(&args[0].aval())?)]);
    }
    let mut back =
        Window { base_dilation: p.window_strides.clone(), window_strides: p.base_dilation.clone(), ..p.clone() };
    for d in 0..shape.len() {
        let span = dilated(p.window_dimensions[d], p.window_dilation[d])?;
        let low = difference(&[span], &[1, p.padding[d].0])?;
        let (own, seen) = (dilated(shape[d], p.base_dilation[d])?, dilated(ct.shape()[d], p.window_strides[d])?);
        back.padding[d] = (low, difference(&[own, span], &[1, low, seen])?);
    }
    Ok(smallvec![Some(reduce_window_sum(ct, back)?)])
}

/// The tangent of the first element of each window that wins.
fn chooser_jvp(
    op: &OpRef,
    p: &Window,
    primals: &[Value],
    tangents: &[Option<Value>],
    kind: ReduceOp,
) -> Result<(Values, Tangents)> {
    let out = bind1(op, primals)?;
    let Some(t) = &tangents[0] else { return Ok(one(out, None)) };
    let x = &primals[0];
    let fill = kind.identity(x.dtype());
    let padded = pad(x, &constant_scalar(x, fill), &p.pads())?;
    let padded_t = pad(t, &constant_scalar(t, Scalar::zero(t.dtype())), &p.pads())?;
    let mut best: Option<(Value, Value)> = None;
    for (start, limit) in p.cells(out.shape())? {
        let part = |v: &Value| slice(v, &start, &limit, Some(&p.window_strides));
        let (y, dy) = (part(&padded)?, part(&padded_t)?);
        best = Some(match best {
            None => (y, dy),
            Some((b, db)) => {
                let wins = if kind == ReduceOp::Max { gt(&y, &b)? } else { lt(&y, &b)? };
                let wins = bitwise_or(&wins, &ne(&y, &y)?)?;
                (select(&wins, &y, &b)?, select(&wins, &dy, &db)?)
            }
        });
    }
    Ok(one(out, best.map(|(_, db)| db)))
}

// ---- reduce_window with any function -------------------------------------------------------------------------------

/// Parameters of `reduce_window`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReduceWindow {
    /// The function of scalars: (accumulators, elements) → accumulators.
    pub jaxpr: JaxprRef,
    /// Where windows lie.
    pub window: Window,
}

impl Params for ReduceWindow {
    fn print(&self) -> Vec<(&'static str, Param)> {
        let mut out = self.window.print();
        out.push(("consts", Param::Text("()".into())));
        out.push(("jaxpr", Param::Jaxpr(self.jaxpr.clone())));
        out.sort_by_key(|(name, _)| *name);
        out
    }

    fn parse(fields: &BTreeMap<String, Param>) -> Option<Self> {
        Some(ReduceWindow { jaxpr: ParamValue::parse(fields.get("jaxpr")?)?, window: Window::parse(fields)? })
    }

    fn subjaxprs(&self) -> Vec<JaxprRef> {
        vec![self.jaxpr.clone()]
    }
}

/// Reduction over sliding windows with any function.
pub static REDUCE_WINDOW: Def<ReduceWindow> = Def {
    name: "reduce_window",
    doc: "Operands reduced together over sliding windows with a function of scalars, from initial values.",
    arity: None,
    shape: |p, args| {
        let (xs, inits) = reduced_operands("reduce_window", &p.jaxpr, args)?;
        for (x, init) in xs.iter().zip(inits) {
            p.window.check("reduce_window", x)?;
            if x.shape != xs[0].shape || x.dtype != init.dtype || init.rank() != 0 {
                bail!(
                    Type,
                    "reduce_window operands must have one shape and scalar initial values of their dtypes, got {x} and {init}"
                );
            }
        }
        let shape = p.window.counts(&xs[0].shape)?;
        Ok(xs.iter().map(|x| x.with_shape(&shape).with_weak(false)).collect())
    },
    jvp: Slot::Rule(|op, _, primals, tangents| {
        if tangents.iter().all(Option::is_none) {
            return zero_jvp(op, &(), primals, tangents);
        }
        bail!(NotImplemented, "differentiation of lax.reduce_window with a function other than add, max and min")
    }),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(reduce_window_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(reduce_window_kernel),
    reference: Slot::None("the function runs only as a kernel; tests compare with NumPy"),
    special: Special::NONE,
};

fn reduce_window_batch(
    _: &OpRef,
    p: &ReduceWindow,
    axis: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
) -> Result<(Values, BatchDims)> {
    let count = args.len() / 2;
    if dims[count..].iter().any(Option::is_some) {
        bail!(NotImplemented, "vmap over the initial values of lax.reduce_window");
    }
    let mut moved = Values::new();
    for (x, &d) in args[..count].iter().zip(dims) {
        moved.push(broadcast_batch(x, d, axis.size, 0)?);
    }
    moved.extend(args[count..].iter().cloned());
    let params = ReduceWindow { jaxpr: p.jaxpr.clone(), window: p.window.with_axis(0) };
    Ok((bind(&OpRef::new(&REDUCE_WINDOW, params), &moved)?, smallvec![Some(0); count]))
}

/// One strided slice for each cell of a window, combined with the function on whole arrays.
fn reduce_window_kernel(
    _: &OpRef,
    p: &ReduceWindow,
    b: &mut Builder,
    args: &[ValueId],
    outs: &[Aval],
) -> Result<SmallVec<[ValueId; 1]>> {
    let (xs, inits) = args.split_at(args.len() / 2);
    let body = scalar_graph(&p.jaxpr)?;
    let w = &p.window;
    let config: Box<[PadConfig]> =
        w.pads().iter().map(|c| PadConfig { low: c.0, high: c.1, interior: c.2 as usize }).collect();
    let mut padded: SmallVec<[ValueId; 2]> = SmallVec::new();
    for (&x, &init) in xs.iter().zip(inits) {
        let ty = b.ty(x).clone();
        let shape: Shape = (0..ty.shape.len())
            .map(|d| (cells(ty.shape[d], w.base_dilation[d]) + w.padding[d].0 + w.padding[d].1).max(0) as usize)
            .collect();
        padded.push(b.push(Kind::Pad(config.clone()), &[x, init], Type::new(ty.dtype, &shape)));
    }
    let mut acc: SmallVec<[ValueId; 1]> =
        inits.iter().zip(outs).map(|(&init, o)| b.broadcast(init, &o.shape, &[])).collect();
    let real = real_cells(b, w, &config, &xs[0]);
    for (start, limit) in w.cells(&outs[0].shape)? {
        let before = acc.clone();
        let mut operands = acc.clone();
        for (&x, out) in padded.iter().zip(outs) {
            let dims = SliceDims { start: start.clone(), limit: limit.clone(), stride: w.window_strides.clone() };
            operands.push(b.push(Kind::Slice(Box::new(dims)), &[x], out.into()));
        }
        acc = inline_elementwise(b, &body, &operands, &outs[0].shape)?;
        if let Some(real) = real {
            let dims = SliceDims { start, limit, stride: w.window_strides.clone() };
            let here = b.push(Kind::Slice(Box::new(dims)), &[real], Type::new(DType::Bool, &outs[0].shape));
            for ((new, old), out) in acc.iter_mut().zip(before).zip(outs) {
                *new = b.push(Kind::Select, &[here, old, *new], out.into());
            }
        }
    }
    Ok(acc)
}

/// Which cells of the dilated, padded operand are elements; `None` when all are. A window passes over the others: the
/// initial value counts once, even where it is no identity of the function.
fn real_cells(b: &mut Builder, w: &Window, config: &[PadConfig], x: &ValueId) -> Option<ValueId> {
    if config.iter().all(|c| (c.low, c.high, c.interior) == (0, 0, 0)) {
        return None;
    }
    let shape = b.ty(*x).shape.clone();
    let (yes, no) = (b.scalar(Scalar::from_bool(true)), b.scalar(Scalar::from_bool(false)));
    let all = b.broadcast(yes, &shape, &[]);
    let padded: Shape = (0..shape.len())
        .map(|d| (cells(shape[d], w.base_dilation[d]) + w.padding[d].0 + w.padding[d].1).max(0) as usize)
        .collect();
    Some(b.push(Kind::Pad(config.into()), &[all, no], Type::new(DType::Bool, &padded)))
}

/// Appends a graph of scalar operations, applied elementwise to arrays of one shape.
fn inline_elementwise(
    b: &mut Builder,
    graph: &Graph,
    args: &[ValueId],
    shape: &[usize],
) -> Result<SmallVec<[ValueId; 1]>> {
    let mut map: Vec<ValueId> = args.to_vec();
    for node in &graph.nodes {
        if !node.kind.is_elementwise() && !matches!(node.kind, Kind::Const(_)) {
            bail!(
                NotImplemented,
                "a reduce_window function with operations that are not elementwise ({:?})",
                node.kind
            );
        }
        let inputs: SmallVec<[ValueId; 3]> = node.inputs.iter().map(|v| map[v.0 as usize]).collect();
        let shaped = inputs.iter().any(|&v| !b.ty(v).shape.is_empty());
        let ty = |v: ValueId| Type::new(graph.ty(v).dtype, if shaped { shape } else { &[] });
        let types: SmallVec<[Type; 1]> = node.outputs().map(ty).collect();
        map.extend(b.push_many(node.kind.clone(), &inputs, &types));
    }
    let mut outs: SmallVec<[ValueId; 1]> = SmallVec::new();
    for v in &graph.outputs {
        let v = map[v.0 as usize];
        outs.push(if b.ty(v).shape.as_slice() == shape { v } else { b.broadcast(v, shape, &[]) });
    }
    Ok(outs)
}

/// Operands reduced together over sliding windows with a function of scalars, from initial values.
pub fn reduce_window(operands: &[Value], inits: &[Value], jaxpr: JaxprRef, window: Window) -> Result<Values> {
    let args: Values = operands.iter().chain(inits).cloned().collect();
    bind(&OpRef::new(&REDUCE_WINDOW, ReduceWindow { jaxpr, window }), &args)
}

/// The primitives of this family.
pub(crate) static PRIMITIVES: &[&'static dyn crate::registry::Primitive] =
    &[&REDUCE_WINDOW_SUM, &REDUCE_WINDOW_MAX, &REDUCE_WINDOW_MIN, &REDUCE_WINDOW];
