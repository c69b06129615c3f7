//! Operations across the rows of a named mapped axis: `psum`, `all_gather`, `ppermute` and their relatives.
//!
//! `bind` hands each of them to the trace of the `vmap` that names the axis, even when no operand is batched there
//! (see `ferrax_ir::trace`); its batching rule turns it into reductions and rearrangements of the whole batch. An
//! operation over several axes is resolved one axis at a time. Under a `vmap` of another axis it passes through.
//!
//! Source: the semantics of JAX's collectives under `vmap`. Read next: `crates/ferrax-transform/src/batching.rs`.

use crate::common::{FROM_KERNEL, NO_REWRITE, NOT_LINEAR, constant, full_like};
use crate::elementwise::binary::mul;
use crate::elementwise::select::select;
use crate::permute_rows::permute_rows;
use crate::reduce::{reduce_max, reduce_min};
use crate::shape::{iota, reshape};
use crate::slice::index_in_dim;
use ferrax_base::{Aval, DType, Result, Shape, bail, error};
use ferrax_ir::manual::{self, Vary};
use ferrax_ir::op::{BatchAxis, BatchDims};
use ferrax_ir::params::split_tuple;
use ferrax_ir::spread::due_over;
use ferrax_ir::trace::{bind1, manual_bit};
use ferrax_ir::{Avals, Def, Effects, OpRef, Param, ParamValue, Slot, Special, Tangents, Value, Values, bind};
use ferrax_transform::structural::{broadcast_batch, linear_jvp, move_axis, reduce_sum, transpose};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// The collectives.
pub static PRIMITIVES: &[&dyn crate::registry::Primitive] = &[
    &PSUM,
    &PSUM_INVARIANT,
    &PMAX,
    &PMIN,
    &PVARY,
    &PREDUCED,
    &VARY_UNREDUCED,
    &ALL_GATHER,
    &REDUCE_SCATTER,
    &ALL_TO_ALL,
    &PPERMUTE,
    &PBROADCAST,
    &AXIS_INDEX,
];

const BOUND_BY_VMAP: &str = "the vmap that names the axis resolves it";

/// Names of mapped axes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AxisNames(pub SmallVec<[Arc<str>; 1]>);

impl ParamValue for AxisNames {
    fn print(&self) -> Param {
        let names: Vec<String> = self.0.iter().map(|n| format!("'{n}'")).collect();
        Param::Text(if names.len() == 1 { format!("({},)", names[0]) } else { format!("({})", names.join(", ")) })
    }
    fn parse(text: &Param) -> Option<Self> {
        let Param::Text(text) = text else { return None };
        let names = split_tuple(text).unwrap_or_else(|| vec![text.as_str()]);
        Some(AxisNames(names.into_iter().map(|n| Arc::from(n.trim_matches('\''))).collect()))
    }
}

impl AxisNames {
    /// The names without one, when it is among them.
    fn without(&self, axis: &BatchAxis) -> Option<AxisNames> {
        let name = axis.name.as_ref()?;
        let at = self.0.iter().position(|n| n == name)?;
        let mut rest = self.0.clone();
        rest.remove(at);
        Some(AxisNames(rest))
    }
}

/// The bits of those of the axes that are manual and whose values are checked.
fn bits(names: &[Arc<str>]) -> u32 {
    names.iter().fold(0, |all, n| all | manual_bit(n))
}

/// Works on what varies over the axes, and gives what does.
fn varying(names: &[Arc<str>], operands: u32) -> Vary {
    let all = operands | bits(names);
    Vary { operands: all, results: all }
}

/// Works on what varies over the axes, and gives what is the same all over them.
fn invariant(names: &[Arc<str>], operands: u32) -> Vary {
    let bits = bits(names);
    Vary { operands: operands | bits, results: operands & !bits }
}

/// JAX prints a parameter that `vmap` has no use for.
fn with_groups(mut out: Vec<(&'static str, Param)>) -> Vec<(&'static str, Param)> {
    out.push(("axis_index_groups", Param::Text("None".into())));
    out.sort_by_key(|(name, _)| *name);
    out
}

/// The error of a name that no mapped axis has, of an operation.
#[cold]
pub fn unbound(name: &str, operation: &str) -> ferrax_base::Error {
    error!(
        UnboundAxis,
        "Found an unbound axis name: {name}. To fix this, please call {operation} under `jax.shard_map` or `jax.vmap` with \
         that axis name."
    )
}

fn is_bound_by(name: &str, axis: &BatchAxis) -> bool {
    axis.name.as_deref() == Some(name)
}

/// The operation on rows of another axis: it passes through, with the batch axis first.
fn pass(op: &OpRef, args: &[Value], dims: &[Option<usize>]) -> Result<(Values, BatchDims)> {
    Ok((bind(op, args)?, dims.iter().copied().collect()))
}

/// An operand with its batch axis first; one that has none gets one.
fn rows(x: &Value, dim: Option<usize>, axis: &BatchAxis) -> Result<Value> {
    match dim {
        Some(d) => move_axis(x, d, 0),
        None => broadcast_batch(x, None, axis.size, 0),
    }
}

// ---- reductions ----------------------------------------------------------------------------------------------------

ferrax_ir::params! {
    /// Parameters of the reductions.
    pub struct Across {
        /// The axes to reduce over.
        axes: AxisNames,
    }
    print: |_: &Across, out| with_groups(out)
}

macro_rules! across {
    ($NAME:ident, $fun:ident, $name:literal, $doc:literal, vary: $vary:expr, jvp: $jvp:expr, transpose: $transpose:expr, batch: $batch:expr) => {
        #[doc = $doc]
        pub static $NAME: Def<Across> = Def {
            name: $name,
            doc: $doc,
            arity: Some(1),
            shape: |_, args| Ok(smallvec![args[0].clone()]),
            jvp: $jvp,
            transpose: $transpose,
            batch: Slot::Rule(|op, p, axis, args, dims| {
                let Some(rest) = p.axes.without(axis) else { return pass(op, args, dims) };
                let own: fn(&Value, Option<usize>, usize) -> Result<(Value, Option<usize>)> = $batch;
                let (made, at) = own(&args[0], dims[0], axis.size)?;
                Ok((smallvec![$fun(&made, rest)?], smallvec![at]))
            }),
            simplify: Slot::None(NO_REWRITE),
            stablehlo: Slot::None(FROM_KERNEL),
            kernel: Slot::None(BOUND_BY_VMAP),
            reference: Slot::None(BOUND_BY_VMAP),
            special: Special {
                eager: Some(|op, p, _| Err(unbound(&p.axes.0[0], op.name()))),
                effects: Some(|_| Effects::NAMED_AXIS),
                axes: Some(|p| &p.axes.0),
                vary: Some(|p, operands| ($vary)(&p.axes.0, operands)),
                ..Special::NONE
            },
        };

        #[doc = $doc]
        pub fn $fun(x: &Value, axes: AxisNames) -> Result<Value> {
            if axes.0.is_empty() {
                return Ok(x.clone());
            }
            bind1(&OpRef::new(&$NAME, Across { axes }), std::slice::from_ref(x))
        }
    };
}

/// The cotangent of the only operand.
fn pulled(cts: &[Option<Value>], pull: impl FnOnce(&Value) -> Result<Value>) -> Result<Tangents> {
    Ok(smallvec![cts[0].as_ref().map(pull).transpose()?])
}

/// The sum of all rows, which no row has to itself.
fn summed(x: &Value, dim: Option<usize>, size: usize) -> Result<(Value, Option<usize>)> {
    let sum = match dim {
        Some(d) => reduce_sum(x, &[d]),
        None => mul(x, &constant(x, size as f64)),
    };
    Ok((sum?, None))
}

/// All rows as they are.
fn unchanged(x: &Value, dim: Option<usize>, _: usize) -> Result<(Value, Option<usize>)> {
    Ok((x.clone(), dim))
}

across!(
    PSUM, plain_psum, "psum", "Sum over the rows of mapped axes.",
    vary: varying,
    jvp: Slot::Rule(linear_jvp),
    transpose: Slot::Rule(|op, _, cts, _| pulled(cts, |ct| bind1(op, std::slice::from_ref(ct)))),
    batch: summed
);
across!(
    PSUM_INVARIANT, psum_invariant, "psum_invariant", "Sum over manual axes, the same all over them.",
    vary: invariant,
    jvp: Slot::Rule(linear_jvp),
    transpose: Slot::Rule(|_, p, cts, args| {
        // over axes that the operand is unreduced over its cotangent is reduced
        let (due, rest) = due_over(args[0].aval().spread, |d| &d.unreduced, &p.axes.0);
        pulled(cts, |ct| pvary(&preduced(ct, AxisNames(due))?, AxisNames(rest)))
    }),
    batch: summed
);
across!(
    PMAX, pmax, "pmax", "Maximum over the rows of mapped axes.",
    vary: invariant,
    jvp: Slot::None("JAX has none"), transpose: Slot::None(NOT_LINEAR),
    batch: |x, dim, _| Ok((dim.map_or_else(|| Ok(x.clone()), |d| reduce_max(x, &[d]))?, None))
);
across!(
    PMIN, pmin, "pmin", "Minimum over the rows of mapped axes.",
    vary: invariant,
    jvp: Slot::None("JAX has none"), transpose: Slot::None(NOT_LINEAR),
    batch: |x, dim, _| Ok((dim.map_or_else(|| Ok(x.clone()), |d| reduce_min(x, &[d]))?, None))
);

/// Sum over the rows of mapped axes; over manual axes whose values are checked, one that is the same all over them.
pub fn psum(x: &Value, axes: AxisNames) -> Result<Value> {
    let (checked, plain): (SmallVec<[_; 1]>, SmallVec<[_; 1]>) = axes.0.into_iter().partition(|n| manual_bit(n) != 0);
    psum_invariant(&plain_psum(x, AxisNames(plain))?, AxisNames(checked))
}

// Identities that change what types say of manual axes.
across!(
    PVARY, pvary, "pvary", "The operand, which counts as varying over manual axes from now on.",
    vary: |axes, operands| Vary { operands: 0, results: operands | bits(axes) },
    jvp: Slot::Rule(linear_jvp),
    transpose: Slot::Rule(|_, p, cts, args| {
        // over axes that the operand is reduced over its cotangent is the sum's terms
        let (due, rest) = due_over(args[0].aval().spread, |d| &d.reduced, &p.axes.0);
        pulled(cts, |ct| psum_invariant(&vary_unreduced(ct, AxisNames(due))?, AxisNames(rest)))
    }),
    batch: unchanged
);
across!(
    PREDUCED, preduced, "preduced", "The operand, whose gradient is due over manual axes from now on.",
    vary: |_, operands| Vary { operands: 0, results: operands },
    jvp: Slot::Rule(linear_jvp),
    transpose: Slot::Rule(|_, p, cts, _| pulled(cts, |ct| {
        let varies = manual::of(ct);
        psum_invariant(ct, AxisNames(p.axes.0.iter().filter(|n| manual_bit(n) & varies != 0).cloned().collect()))
    })),
    batch: unchanged
);
across!(
    VARY_UNREDUCED, vary_unreduced, "vary_unreduced_cast_p",
    "The operand, which counts as terms of a sum that is due over manual axes from now on.",
    vary: varying,
    jvp: Slot::Rule(linear_jvp),
    transpose: Slot::Rule(|_, p, cts, _| pulled(cts, |ct| manual::widen(ct, bits(&p.axes.0)))),
    batch: unchanged
);

/// As [`pvary`], over the axes of these bits.
pub(crate) fn widen(x: &Value, bits: u32) -> Result<Value> {
    pvary(x, AxisNames(ferrax_ir::manual::names(bits).into()))
}

// ---- gathering and scattering --------------------------------------------------------------------------------------

/// Writes the block of a linear rearrangement and the function that binds it.
macro_rules! rearrangement {
    ($NAME:ident, $fun:ident, $Params:ident, $name:literal, $doc:literal, shape: $shape:expr, transpose: $transpose:expr, batch: $batch:expr) => {
        #[doc = $doc]
        pub static $NAME: Def<$Params> = Def {
            name: $name,
            doc: $doc,
            arity: Some(1),
            shape: $shape,
            jvp: Slot::Rule(linear_jvp),
            transpose: Slot::Rule(|_, p, cts, _| -> Result<Tangents> {
                let back: fn(&$Params, &Value) -> Result<Value> = $transpose;
                pulled(cts, |ct| back(p, ct))
            }),
            batch: Slot::Rule($batch),
            simplify: Slot::None(NO_REWRITE),
            stablehlo: Slot::None(FROM_KERNEL),
            kernel: Slot::None(BOUND_BY_VMAP),
            reference: Slot::None(BOUND_BY_VMAP),
            special: Special {
                eager: Some(|op, p, _| Err(unbound(&p.axis_name.0[0], op.name()))),
                effects: Some(|_| Effects::NAMED_AXIS),
                axes: Some(|p| &p.axis_name.0),
                vary: Some(|p, operands| varying(&p.axis_name.0, operands)),
                ..Special::NONE
            },
        };

        #[doc = $doc]
        pub fn $fun(x: &Value, params: $Params) -> Result<Value> {
            // A vmap resolves it without asking for its shape.
            ($NAME.shape)(&params, &[&x.aval()])?;
            bind1(&OpRef::new(&$NAME, params), std::slice::from_ref(x))
        }
    };
}

ferrax_ir::params! {
    /// Parameters of `all_gather`.
    pub struct AllGather {
        /// Where the rows go.
        all_gather_dimension: usize,
        /// The axis.
        axis_name: AxisNames,
        /// Its size.
        axis_size: usize,
        /// Whether rows are joined along the dimension instead of stacked.
        tiled: bool,
    }
    print: |_: &AllGather, out| with_groups(out)
}

/// `shape` with one axis replaced by `first` and `second`.
fn split_at(shape: &[usize], axis: usize, first: usize, second: usize) -> Shape {
    let mut out = Shape::from_slice(&shape[..axis]);
    out.extend([first, second]);
    out.extend(shape[axis + 1..].iter().copied());
    out
}

/// An array with an axis and the next joined.
fn join_axes(x: &Value, axis: usize) -> Result<Value> {
    let mut shape = Shape::from_slice(x.shape());
    let n = shape.remove(axis + 1);
    shape[axis] *= n;
    reshape(x, &shape)
}

fn all_gather_shape(p: &AllGather, args: &[&Aval]) -> Result<Avals> {
    let mut out = args[0].clone();
    let at = p.all_gather_dimension;
    if at >= out.shape.len() + usize::from(!p.tiled) {
        bail!(Value, "all_gather dimension {at} is out of bounds for an operand of type {}", args[0]);
    }
    if p.tiled {
        out.shape[at] *= p.axis_size;
    } else {
        out.shape.insert(at, p.axis_size);
    }
    Ok(smallvec![out])
}

rearrangement!(
    ALL_GATHER, all_gather, AllGather, "all_gather", "The rows of a mapped axis, stacked or joined.",
    shape: all_gather_shape,
    transpose: |p, ct| {
        let params = Scatter {
            axis_name: p.axis_name.clone(),
            axis_size: p.axis_size,
            scatter_dimension: p.all_gather_dimension,
            tiled: p.tiled,
        };
        reduce_scatter(ct, params)
    },
    batch: |_, p, axis, args, dims| {
        if !is_bound_by(&p.axis_name.0[0], axis) {
            let x = rows(&args[0], dims[0], axis)?;
            let params = AllGather { all_gather_dimension: p.all_gather_dimension + 1, ..p.clone() };
            return Ok((smallvec![all_gather(&x, params)?], smallvec![Some(0)]));
        }
        let stacked = move_axis(&rows(&args[0], dims[0], axis)?, 0, p.all_gather_dimension)?;
        let out = if p.tiled { join_axes(&stacked, p.all_gather_dimension)? } else { stacked };
        Ok((smallvec![out], smallvec![None]))
    }
);

ferrax_ir::params! {
    /// Parameters of `reduce_scatter`.
    pub struct Scatter {
        /// The axis.
        axis_name: AxisNames,
        /// Its size.
        axis_size: usize,
        /// What is divided among the rows.
        scatter_dimension: usize,
        /// Whether each row keeps a part of the dimension instead of one entry.
        tiled: bool,
    }
    print: |_: &Scatter, out| with_groups(out)
}

fn reduce_scatter_shape(p: &Scatter, args: &[&Aval]) -> Result<Avals> {
    let mut out = args[0].clone();
    let at = p.scatter_dimension;
    let Some(&n) = out.shape.get(at) else {
        bail!(Value, "reduce_scatter dimension {at} is out of bounds for an operand of type {}", args[0]);
    };
    if p.tiled {
        if !n.is_multiple_of(p.axis_size) {
            bail!(
                Value,
                "tiled reduce_scatter operand scatter dimension size {n} must be divisible by shard count {}",
                p.axis_size
            );
        }
        out.shape[at] /= p.axis_size;
    } else {
        if n != p.axis_size {
            bail!(
                Value,
                "reduce_scatter operand scatter dimension size {n} must match shard count {} when tiled=False",
                p.axis_size
            );
        }
        out.shape.remove(at);
    }
    Ok(smallvec![out])
}

rearrangement!(
    REDUCE_SCATTER, reduce_scatter, Scatter, "reduce_scatter",
    "Sum over the rows of a mapped axis, of which each row keeps its part.",
    shape: reduce_scatter_shape,
    transpose: |p, ct| {
        let params = AllGather {
            all_gather_dimension: p.scatter_dimension,
            axis_name: p.axis_name.clone(),
            axis_size: p.axis_size,
            tiled: p.tiled,
        };
        all_gather(ct, params)
    },
    batch: |_, p, axis, args, dims| {
        let at = p.scatter_dimension;
        if !is_bound_by(&p.axis_name.0[0], axis) {
            let x = rows(&args[0], dims[0], axis)?;
            let params = Scatter { scatter_dimension: at + 1, ..p.clone() };
            return Ok((smallvec![reduce_scatter(&x, params)?], smallvec![Some(0)]));
        }
        let sum = reduce_sum(&rows(&args[0], dims[0], axis)?, &[0])?;
        let parts = if p.tiled {
            let part = sum.shape()[at] / axis.size;
            reshape(&sum, &split_at(sum.shape(), at, axis.size, part))?
        } else {
            sum
        };
        Ok((smallvec![parts], smallvec![Some(at)]))
    }
);

ferrax_ir::params! {
    /// Parameters of `all_to_all`.
    pub struct AllToAll {
        /// The axis.
        axis_name: AxisNames,
        /// Its size.
        axis_size: usize,
        /// Where the parts of the other rows go.
        concat_axis: usize,
        /// What is divided among the rows.
        split_axis: usize,
        /// Whether parts are joined along the axis instead of stacked.
        tiled: bool,
    }
    print: |p: &AllToAll, mut out: Vec<(&'static str, Param)>| {
        out.retain(|(name, _)| *name != "axis_size");
        out.iter_mut().filter(|(name, _)| *name == "axis_name").for_each(|(_, v)| *v = p.axis_name.0[0].print());
        with_groups(out)
    }
}

fn all_to_all_shape(p: &AllToAll, args: &[&Aval]) -> Result<Avals> {
    let mut out = args[0].clone();
    if p.split_axis >= out.rank() || p.concat_axis >= out.rank() {
        bail!(
            Value,
            "all_to_all axes {} and {} must be axes of an operand of type {}",
            p.split_axis,
            p.concat_axis,
            args[0]
        );
    }
    let n = out.shape[p.split_axis];
    if p.tiled {
        if !n.is_multiple_of(p.axis_size) {
            bail!(
                Value,
                "The size of all_to_all split_axis ({n}) has to be divisible by the size of the named axis ({})",
                p.axis_size
            );
        }
        out.shape[p.split_axis] /= p.axis_size;
        out.shape[p.concat_axis] *= p.axis_size;
        return Ok(smallvec![out]);
    }
    if n != p.axis_size {
        bail!(
            Value,
            "all_to_all requires the size of the mapped axis axis_name to equal x.shape[split_axis], but they are {} \
             and {n} respectively.",
            p.axis_size
        );
    }
    out.shape.remove(p.split_axis);
    out.shape.insert(p.concat_axis, n);
    Ok(smallvec![out])
}

/// The batch of results of `all_to_all`, batch axis first.
fn exchange(p: &AllToAll, x: &Value) -> Result<Value> {
    // [from, …, to, …] → [to, …, from, …]
    let split = p.split_axis + 1;
    let x = if p.tiled {
        let part = x.shape()[split] / p.axis_size;
        reshape(x, &split_at(x.shape(), split, p.axis_size, part))?
    } else {
        x.clone()
    };
    let mut order: Vec<usize> = (1..x.rank()).filter(|&d| d != split).collect();
    // With tiles the part that stays has taken the place of the split axis, so the axes keep their numbers.
    order.insert(p.concat_axis, 0);
    order.insert(0, split);
    let moved = transpose(&x, &order)?;
    if p.tiled { join_axes(&moved, p.concat_axis + 1) } else { Ok(moved) }
}

rearrangement!(
    ALL_TO_ALL, all_to_all, AllToAll, "all_to_all",
    "Parts of every row of a mapped axis, exchanged among the rows.",
    shape: all_to_all_shape,
    transpose: |p, ct| {
        let params = AllToAll { split_axis: p.concat_axis, concat_axis: p.split_axis, ..p.clone() };
        all_to_all(ct, params)
    },
    batch: |_, p, axis, args, dims| {
        let x = rows(&args[0], dims[0], axis)?;
        if !is_bound_by(&p.axis_name.0[0], axis) {
            let params =
                AllToAll { split_axis: p.split_axis + 1, concat_axis: p.concat_axis + 1, ..p.clone() };
            return Ok((smallvec![all_to_all(&x, params)?], smallvec![Some(0)]));
        }
        Ok((smallvec![exchange(p, &x)?], smallvec![Some(0)]))
    }
);

ferrax_ir::params! {
    /// Parameters of `ppermute`.
    pub struct Permute {
        /// The axis.
        axis_name: AxisNames,
        /// Pairs of the row that sends and the row that gets; rows that get nothing have zeros.
        perm: Vec<(usize, usize)>,
    }
}

rearrangement!(
    PPERMUTE, ppermute, Permute, "ppermute", "Rows of a mapped axis sent to other rows.",
    shape: |_, args| Ok(smallvec![args[0].clone()]),
    transpose: |p, ct| {
        let perm = p.perm.iter().map(|&(from, to)| (to, from)).collect();
        ppermute(ct, Permute { perm, ..p.clone() })
    },
    batch: |op, p, axis, args, dims| {
        if !is_bound_by(&p.axis_name.0[0], axis) {
            return pass(op, args, dims);
        }
        let x = rows(&args[0], dims[0], axis)?;
        Ok((smallvec![permute_rows(&x, 0, p.perm.clone())?], smallvec![Some(0)]))
    }
);

ferrax_ir::params! {
    /// Parameters of `pbroadcast`.
    pub struct Broadcast {
        /// The axis.
        axis_name: AxisNames,
        /// The row that all rows get.
        source: usize,
    }
}

rearrangement!(
    PBROADCAST, pbroadcast, Broadcast, "pbroadcast", "One row of a mapped axis, for all rows.",
    shape: |_, args| Ok(smallvec![args[0].clone()]),
    transpose: |p, ct| {
        // All rows' cotangents arrive at the source.
        let sum = psum(ct, p.axis_name.clone())?;
        let here = crate::elementwise::compare::eq(
            &axis_index(p.axis_name.0[0].clone())?,
            &Value::int(DType::I32, p.source as i64),
        )?;
        select(&here, &sum, &full_like(&sum, 0.0)?)
    },
    batch: |op, p, axis, args, dims| {
        if !is_bound_by(&p.axis_name.0[0], axis) {
            return pass(op, args, dims);
        }
        let out = match dims[0] {
            Some(d) if p.source < axis.size => index_in_dim(&move_axis(&args[0], d, 0)?, p.source as i64, 0)?,
            Some(_) => bail!(Value, "pbroadcast source {} is no row of the axis of size {}", p.source, axis.size),
            None => return Ok((smallvec![args[0].clone()], smallvec![None])),
        };
        let row: Shape = Shape::from_slice(&out.shape()[1..]);
        Ok((smallvec![reshape(&out, &row)?], smallvec![None]))
    }
);

// ---- the number of the row -----------------------------------------------------------------------------------------

ferrax_ir::params! {
    /// Parameters of `axis_index`.
    pub struct AxisIndex {
        /// The axis.
        axis_name: AxisNames,
    }
    print: |p: &AxisIndex, _| vec![("axis_name", p.axis_name.0[0].print())]
}

/// () → the row's number along a mapped axis, int32.
pub static AXIS_INDEX: Def<AxisIndex> = Def {
    name: "axis_index",
    doc: "The row's number along a mapped axis.",
    arity: Some(0),
    shape: |_, _| Ok(smallvec![Aval::scalar(DType::I32)]),
    jvp: Slot::None("it has no operands"),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(|op, p, axis, args, dims| {
        if !is_bound_by(&p.axis_name.0[0], axis) {
            return pass(op, args, dims);
        }
        Ok((smallvec![iota(DType::I32, &[axis.size], 0)?], smallvec![Some(0)]))
    }),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::None(BOUND_BY_VMAP),
    reference: Slot::None(BOUND_BY_VMAP),
    special: Special {
        eager: Some(|op, p, _| Err(unbound(&p.axis_name.0[0], op.name()))),
        effects: Some(|_| Effects::NAMED_AXIS),
        axes: Some(|p| &p.axis_name.0),
        vary: Some(|p, operands| varying(&p.axis_name.0, operands)),
        ..Special::NONE
    },
};

/// The row's number along a mapped axis.
pub fn axis_index(name: Arc<str>) -> Result<Value> {
    bind1(&OpRef::new(&AXIS_INDEX, AxisIndex { axis_name: AxisNames(smallvec![name]) }), &[])
}
