//! The scatters: windows written into an operand, or combined with what is there.
//!
//! Windows outside the operand are dropped, or moved inside in mode `Clip`. A promise that there are none is not
//! trusted: such windows are dropped too, as XLA does. Of several writes to one element the last counts.

use super::gather::{GatherOptions, gather};
use super::multiply::{mul_jvp, mul_transpose};
use super::{Mode, ScatterNumbers, Windows, remaining};
use crate::common::{FROM_KERNEL, NO_REWRITE, NOT_LINEAR};
use crate::shape::iota;
use crate::{convert_element_type, div, eq, mul, neg, select};
use ferrax_base::shape::Tuple;
use ferrax_base::symbolic::{Operation, all_at_least, dims};
use ferrax_base::{Aval, DType, Result, Scalar, Shape, bail};
use ferrax_ir::op::{BatchAxis, BatchDims};
use ferrax_ir::params::ParamValue;
use ferrax_ir::reference::{RefTensor, advance};
use ferrax_ir::trace::bind1;
use ferrax_ir::{
    Atom, Avals, Def, Eqn, Jaxpr, OpRef, Param, Params, Slot, Special, Tangents, TransposeArg, Value, Values,
};
use ferrax_loops::{GatherDims, IndexMode, Kind, ScatterDims, ScatterOp, Type};
use ferrax_transform::structural::{broadcast_batch, instantiate, move_axis, zeros};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeMap;

/// What a scatter does beyond its dimension numbers.
#[derive(Clone, Copy, Debug)]
pub struct ScatterOptions {
    /// What happens to windows outside the operand.
    pub mode: IndexMode,
    /// Whether the index vectors are promised to be sorted.
    pub sorted: bool,
    /// Whether the windows are promised not to overlap.
    pub unique: bool,
}

impl Default for ScatterOptions {
    fn default() -> Self {
        ScatterOptions { mode: IndexMode::FillOrDrop, sorted: false, unique: false }
    }
}

/// Parameters of the scatters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScatterParams {
    /// Which axes are what.
    pub dimension_numbers: ScatterNumbers,
    /// Whether the index vectors are promised to be sorted.
    pub indices_are_sorted: bool,
    /// What happens to windows outside the operand.
    pub mode: Mode,
    /// Whether the windows are promised not to overlap.
    pub unique_indices: bool,
    /// How an update combines with what is there; the primitive's.
    pub op: ScatterOp,
    /// The dtype of the printed update function: the operand's, and `F32` where none is printed.
    pub dtype: DType,
}

impl ScatterParams {
    fn options(&self) -> ScatterOptions {
        ScatterOptions { mode: self.mode.0, sorted: self.indices_are_sorted, unique: self.unique_indices }
    }

    /// The update function that jaxprs show.
    fn update_jaxpr(&self) -> Param {
        let combine = match self.op {
            ScatterOp::Set => return Param::Text("None".into()),
            ScatterOp::Add => crate::ADD.op(),
            ScatterOp::Sub => crate::SUB.op(),
            ScatterOp::Mul => crate::MUL.op(),
            ScatterOp::Min => crate::MIN.op(),
            ScatterOp::Max => crate::MAX.op(),
        };
        let mut j = Jaxpr::default();
        let mut var = || j.new_var(Aval::scalar(self.dtype));
        let (x, y, out) = (var(), var(), var());
        j.invars = vec![x, y];
        j.outvars = vec![Atom::Var(out)];
        j.eqns.push(Eqn {
            op: combine,
            inputs: smallvec![Atom::Var(x), Atom::Var(y)],
            outputs: smallvec![out],
            source: ferrax_base::Source::default(),
        });
        j.into()
    }
}

impl Params for ScatterParams {
    fn print(&self) -> Vec<(&'static str, Param)> {
        vec![
            ("dimension_numbers", self.dimension_numbers.print()),
            ("indices_are_sorted", self.indices_are_sorted.print()),
            ("mode", self.mode.print()),
            ("unique_indices", self.unique_indices.print()),
            ("update_consts", Param::Text("()".into())),
            ("update_jaxpr", self.update_jaxpr()),
        ]
    }

    fn parse(fields: &BTreeMap<String, Param>) -> Option<Self> {
        let (op, dtype) = match fields.get("update_jaxpr")? {
            Param::Jaxpr(j) => {
                let op = match j.eqns.first()?.op.name() {
                    "add" => ScatterOp::Add,
                    "sub" => ScatterOp::Sub,
                    "mul" => ScatterOp::Mul,
                    "min" => ScatterOp::Min,
                    "max" => ScatterOp::Max,
                    _ => return None,
                };
                (op, j.aval(*j.invars.first()?).dtype)
            }
            _ => (ScatterOp::Set, DType::F32),
        };
        Some(ScatterParams {
            dimension_numbers: ParamValue::parse(fields.get("dimension_numbers")?)?,
            indices_are_sorted: ParamValue::parse(fields.get("indices_are_sorted")?)?,
            mode: ParamValue::parse(fields.get("mode")?)?,
            unique_indices: ParamValue::parse(fields.get("unique_indices")?)?,
            op,
            dtype,
        })
    }
}

macro_rules! scatters {
    ($($(#[$doc:meta])* $id:ident = $name:literal, $text:literal, $jvp:expr, $transpose:expr;)*) => {$(
        $(#[$doc])*
        pub static $id: Def<ScatterParams> = Def {
            name: $name,
            doc: $text,
            arity: Some(3),
            shape: scatter_shape,
            jvp: Slot::Rule($jvp),
            transpose: $transpose,
            batch: Slot::Rule(scatter_batch),
            simplify: Slot::None(NO_REWRITE),
            stablehlo: Slot::None(FROM_KERNEL),
            kernel: Slot::Rule(|_, p, b, args, outs| {
                let mode = match p.mode.0 {
                    IndexMode::Clip => IndexMode::Clip,
                    IndexMode::FillOrDrop | IndexMode::PromiseInBounds => IndexMode::FillOrDrop,
                };
                let dims = Box::new(p.dimension_numbers.0.clone());
                let kind = Kind::Scatter { op: p.op, dims, mode, sorted: p.indices_are_sorted, unique: p.unique_indices };
                Ok(smallvec![b.push(kind, args, Type::from(&outs[0]))])
            }),
            reference: Slot::Rule(scatter_reference),
            special: Special::WEIGHTED,
        };
    )*};
}

scatters! {
    /// Windows overwritten.
    SCATTER = "scatter", "An array with windows at dynamic places overwritten.", set_jvp, Slot::Rule(set_transpose);
    /// Windows added to.
    SCATTER_ADD = "scatter-add", "An array with updates added to windows at dynamic places.", linear_scatter_jvp, Slot::Rule(add_transpose);
    /// Windows subtracted from.
    SCATTER_SUB = "scatter-sub", "An array with updates subtracted from windows at dynamic places.", linear_scatter_jvp, Slot::Rule(add_transpose);
    /// Windows multiplied.
    SCATTER_MUL = "scatter-mul", "An array with windows at dynamic places multiplied by updates.", mul_jvp, Slot::Rule(mul_transpose);
    /// Windows replaced by the smaller.
    SCATTER_MIN = "scatter-min", "An array with the minimum of windows at dynamic places and updates.", extremum_jvp, Slot::None(NOT_LINEAR);
    /// Windows replaced by the larger.
    SCATTER_MAX = "scatter-max", "An array with the maximum of windows at dynamic places and updates.", extremum_jvp, Slot::None(NOT_LINEAR);
}

// ---- shape ---------------------------------------------------------------------------------------------------------

/// The window size on every operand axis; inserted and batching axes have size one.
fn window_sizes(d: &ScatterDims, operand_rank: usize, updates: &[usize]) -> Shape {
    let mut sizes: Shape = smallvec![1; operand_rank];
    let axes = remaining(operand_rank, &d.inserted_window_dims, &d.operand_batching_dims);
    for (a, &u) in axes.into_iter().zip(&d.update_window_dims) {
        sizes[a] = updates[u];
    }
    sizes
}

fn scatter_shape(p: &ScatterParams, args: &[&Aval]) -> Result<Avals> {
    let [x, indices, updates] = args else { bail!(Internal, "scatter takes three operands") };
    let d = &p.dimension_numbers.0;
    if !indices.dtype.is_integer() {
        bail!(Value, "scatter: indices must have an integer type, got {}.", indices.dtype);
    }
    if x.dtype != updates.dtype {
        let (a, b) = (x.dtype, updates.dtype);
        bail!(Type, "lax.scatter requires arguments to have the same dtypes, got {a}, {b}.");
    }
    let fail = |what: &str| -> Result<Avals> {
        bail!(Type, "scatter: {what}; operand {x}, indices {indices}, updates {updates}, {:?}", p.dimension_numbers.0)
    };
    if indices.rank() == 0 {
        return fail("indices must have at least one dimension, the index vector's");
    }
    for (name, dims) in [
        ("update_window_dims", &d.update_window_dims[..]),
        ("inserted_window_dims", &d.inserted_window_dims),
        ("operand_batching_dims", &d.operand_batching_dims),
    ] {
        if dims.windows(2).any(|w| w[0] >= w[1]) {
            return fail(&format!("{name} must be sorted and without duplicates"));
        }
    }
    if updates.rank() != d.update_window_dims.len() + indices.rank() - 1 {
        return fail("updates must have one axis for each window dimension and each axis of indices but the last");
    }
    if d.update_window_dims.iter().any(|&u| u >= updates.rank()) {
        return fail("update_window_dims must be below the updates' rank");
    }
    if d.update_window_dims.len() + d.inserted_window_dims.len() + d.operand_batching_dims.len() != x.rank() {
        return fail(
            "update_window_dims, inserted_window_dims and operand_batching_dims must account for every dimension",
        );
    }
    let map = &d.scatter_dims_to_operand_dims;
    let axes = map.iter().chain(&d.inserted_window_dims).chain(&d.operand_batching_dims);
    if axes.clone().any(|&a| a >= x.rank()) {
        return fail("a dimension number is out of range for the operand");
    }
    if map.len() != indices.shape[indices.rank() - 1] {
        return fail("scatter_dims_to_operand_dims must have as many entries as the index vector");
    }
    if map.iter().enumerate().any(|(i, a)| map[..i].contains(a)) {
        return fail("scatter_dims_to_operand_dims must not have duplicates");
    }
    if d.operand_batching_dims.iter().any(|a| map.contains(a) || d.inserted_window_dims.contains(a)) {
        return fail("operand_batching_dims must differ from the other dimensions");
    }
    if d.operand_batching_dims.len() != d.scatter_indices_batching_dims.len()
        || d.operand_batching_dims
            .iter()
            .zip(&d.scatter_indices_batching_dims)
            .any(|(&o, &i)| i + 1 >= indices.rank() || x.shape[o] != indices.shape[i])
    {
        return fail("batching dimensions of operand and indices must have equal sizes");
    }
    let sizes = window_sizes(d, x.rank(), &updates.shape);
    let windows = remaining(x.rank(), &d.inserted_window_dims, &d.operand_batching_dims);
    let of_windows = |shape: &[usize]| windows.iter().map(|&a| shape[a]).collect::<Shape>();
    if !all_at_least(&of_windows(&x.shape), &of_windows(&sizes)) {
        return fail("the updates' window must fit the operand");
    }
    let rows = remaining(updates.rank(), &d.update_window_dims, &[]);
    if rows.iter().zip(&indices.shape).any(|(&u, &n)| updates.shape[u] != n) {
        bail!(
            Type,
            "Updates scatter sizes must be equal to the sizes of indices without the index vector; got updates {} and \
             indices {}.",
            Tuple(&updates.shape),
            Tuple(&indices.shape)
        );
    }
    Ok(smallvec![(*x).clone()])
}

// ---- rules ---------------------------------------------------------------------------------------------------------

/// The gather that reads the windows a scatter writes.
fn inverse(d: &ScatterDims) -> GatherDims {
    GatherDims {
        offset_dims: d.update_window_dims.clone(),
        collapsed_slice_dims: d.inserted_window_dims.clone(),
        start_index_map: d.scatter_dims_to_operand_dims.clone(),
        operand_batching_dims: d.operand_batching_dims.clone(),
        start_indices_batching_dims: d.scatter_indices_batching_dims.clone(),
    }
}

/// `x` at the windows of a scatter with updates of this shape; zeros outside.
pub(super) fn read_windows(p: &ScatterParams, x: &Value, indices: &Value, updates: &[usize]) -> Result<Value> {
    let d = &p.dimension_numbers.0;
    let mode = match p.mode.0 {
        IndexMode::Clip => IndexMode::Clip,
        _ => IndexMode::FillOrDrop,
    };
    let options = GatherOptions {
        mode,
        fill: Some(Scalar::zero(x.dtype())),
        sorted: p.indices_are_sorted,
        unique: p.unique_indices,
    };
    let mut sizes = window_sizes(d, x.rank(), updates);
    for (size, &n) in sizes.iter_mut().zip(x.shape()) {
        *size = dims(Operation::Min, *size, n)?;
    }
    gather(x, indices, &inverse(d), &sizes, options)
}

pub(super) fn again(p: &ScatterParams, op: ScatterOp, x: &Value, indices: &Value, updates: &Value) -> Result<Value> {
    scatter(op, x, indices, updates, &p.dimension_numbers.0, p.options())
}

fn both_tangents(primals: &[Value], tangents: &[Option<Value>]) -> Result<Option<(Value, Value)>> {
    if tangents[0].is_none() && tangents[2].is_none() {
        return Ok(None);
    }
    let x = instantiate(tangents[0].clone(), &primals[0].aval().tangent())?;
    let updates = instantiate(tangents[2].clone(), &primals[2].aval().tangent())?;
    Ok(Some((x, updates)))
}

fn linear_scatter_jvp(
    op: &OpRef,
    p: &ScatterParams,
    primals: &[Value],
    tangents: &[Option<Value>],
) -> Result<(Values, Tangents)> {
    let out = bind1(op, primals)?;
    let tangent = match both_tangents(primals, tangents)? {
        Some((x, updates)) => Some(again(p, p.op, &x, &primals[1], &updates)?),
        None => None,
    };
    Ok((smallvec![out], smallvec![tangent]))
}

/// Of overlapping writes only the last has a derivative. Each update gets a number; the number that arrives tells
/// which update counts, and the others' tangents are masked before adding.
fn set_jvp(op: &OpRef, p: &ScatterParams, primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
    let out = bind1(op, primals)?;
    let Some((x, updates)) = both_tangents(primals, tangents)? else { return Ok((smallvec![out], smallvec![None])) };
    let indices = &primals[1];
    if p.unique_indices || tangents[2].is_none() {
        return Ok((smallvec![out], smallvec![Some(again(p, ScatterOp::Set, &x, indices, &updates)?)]));
    }
    let d = &p.dimension_numbers.0;
    let dtype = DType::U32;
    let mut shape = Shape::from_slice(updates.shape());
    for &u in &d.update_window_dims {
        shape[u] = 1;
    }
    let rows = ferrax_base::shape::size(&shape);
    let number = crate::add(&iota(dtype, &[rows], 0)?, &Value::int(dtype, 1))?;
    let number = crate::common::stretch(&crate::shape::reshape(&number, &shape)?, updates.shape())?;
    let blank = zeros(&Aval::new(dtype, x.shape()))?;
    let arrived = again(p, ScatterOp::Set, &blank, indices, &number)?;
    let read = read_windows(p, &arrived, indices, updates.shape())?;
    let zero = |v: &Value| zeros(&v.aval());
    let x = select(&eq(&arrived, &blank)?, &x, &zero(&x)?)?;
    let updates = select(&eq(&number, &read)?, &updates, &zero(&updates)?)?;
    Ok((smallvec![out], smallvec![Some(again(p, ScatterOp::Add, &x, indices, &updates)?)]))
}

fn set_transpose(_: &OpRef, p: &ScatterParams, cts: &[Option<Value>], args: &[TransposeArg]) -> Result<Tangents> {
    let Some(ct) = &cts[0] else { return Ok(smallvec![None, None, None]) };
    if !p.unique_indices && args[2].is_linear() && args[0].is_linear() {
        bail!(NotImplemented, "scatter transpose is only implemented where unique_indices=True");
    }
    let indices = args[1].known()?;
    let updates = args[2].aval();
    let x = if args[0].is_linear() { Some(again(p, ScatterOp::Set, ct, indices, &zeros(&updates)?)?) } else { None };
    let u = if args[2].is_linear() { Some(read_windows(p, ct, indices, &updates.shape)?) } else { None };
    Ok(smallvec![x, None, u])
}

fn add_transpose(_: &OpRef, p: &ScatterParams, cts: &[Option<Value>], args: &[TransposeArg]) -> Result<Tangents> {
    let Some(ct) = &cts[0] else { return Ok(smallvec![None, None, None]) };
    let updates = if args[2].is_linear() {
        let read = read_windows(p, ct, args[1].known()?, &args[2].aval().shape)?;
        Some(if p.op == ScatterOp::Sub { neg(&read)? } else { read })
    } else {
        None
    };
    Ok(smallvec![args[0].is_linear().then(|| ct.clone()), None, updates])
}

/// The derivative is shared equally by all operands that reach the extremum.
fn extremum_jvp(
    op: &OpRef,
    p: &ScatterParams,
    primals: &[Value],
    tangents: &[Option<Value>],
) -> Result<(Values, Tangents)> {
    let out = bind1(op, primals)?;
    let Some((gx, gu)) = both_tangents(primals, tangents)? else { return Ok((smallvec![out], smallvec![None])) };
    let [x, indices, updates] = primals else { bail!(Internal, "scatter takes three operands") };
    let dtype = x.dtype();
    let hit_x = convert_element_type(&eq(x, &out)?, dtype)?;
    let hit_u = eq(updates, &read_windows(p, &out, indices, updates.shape())?)?;
    let hit_u = convert_element_type(&hit_u, dtype)?;
    let counts = again(p, ScatterOp::Add, &hit_x, indices, &hit_u)?;
    let gx = mul(&gx, &div(&hit_x, &counts)?)?;
    let share = read_windows(p, &counts, indices, updates.shape())?;
    // Dropped updates read a count of zero; their weight is zero whatever it is divided by.
    let one = crate::common::constant(&share, 1.0);
    let share = select(&eq(&share, &zeros(&share.aval())?)?, &crate::common::stretch(&one, share.shape())?, &share)?;
    let gu = mul(&gu, &div(&hit_u, &share)?)?;
    Ok((smallvec![out], smallvec![Some(again(p, ScatterOp::Add, &gx, indices, &gu)?)]))
}

fn shift<const N: usize>(dims: &mut SmallVec<[usize; N]>) {
    dims.iter_mut().for_each(|d| *d += 1);
}

fn scatter_batch(
    _: &OpRef,
    p: &ScatterParams,
    axis: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
) -> Result<(Values, BatchDims)> {
    let x = broadcast_batch(&args[0], dims[0], axis.size, 0)?;
    let updates = broadcast_batch(&args[2], dims[2], axis.size, 0)?;
    let mut d = p.dimension_numbers.0.clone();
    let mut options = p.options();
    shift(&mut d.update_window_dims);
    shift(&mut d.inserted_window_dims);
    shift(&mut d.scatter_dims_to_operand_dims);
    shift(&mut d.operand_batching_dims);
    let indices = match dims[1] {
        Some(at) => {
            shift(&mut d.scatter_indices_batching_dims);
            d.operand_batching_dims.insert(0, 0);
            d.scatter_indices_batching_dims.insert(0, 0);
            options.sorted = false;
            move_axis(&args[1], at, 0)?
        }
        None => {
            d.update_window_dims.insert(0, 0);
            args[1].clone()
        }
    };
    Ok((smallvec![scatter(p.op, &x, &indices, &updates, &d, options)?], smallvec![Some(0)]))
}

fn combine(op: ScatterOp, x: Scalar, u: Scalar) -> Scalar {
    let d = x.dtype;
    if d.is_complex() {
        let (a, b, c, e) = (x.to_f64(), x.imag(), u.to_f64(), u.imag());
        return match op {
            ScatterOp::Add => Scalar::from_complex(d, a + c, b + e),
            ScatterOp::Sub => Scalar::from_complex(d, a - c, b - e),
            ScatterOp::Mul => Scalar::from_complex(d, a * c - b * e, a * e + b * c),
            ScatterOp::Min if (x.to_f64(), x.imag()) < (c, e) => x,
            ScatterOp::Max if (x.to_f64(), x.imag()) > (c, e) => x,
            _ => u,
        };
    }
    if d.is_float() {
        let (a, b) = (x.to_f64(), u.to_f64());
        let extremum = |keep: bool| if a.is_nan() || (keep && !b.is_nan()) { x } else { u };
        return match op {
            ScatterOp::Set => u,
            ScatterOp::Add => Scalar::from_f64(d, a + b),
            ScatterOp::Sub => Scalar::from_f64(d, a - b),
            ScatterOp::Mul => Scalar::from_f64(d, a * b),
            ScatterOp::Min => extremum(a < b),
            ScatterOp::Max => extremum(a > b),
        };
    }
    let (a, b) = (x.to_i64(), u.to_i64());
    let less = if d.is_signed() { a < b } else { x.bits < u.bits };
    match op {
        ScatterOp::Set => u,
        ScatterOp::Add => Scalar::from_i64(d, a.wrapping_add(b)),
        ScatterOp::Sub => Scalar::from_i64(d, a.wrapping_sub(b)),
        ScatterOp::Mul => Scalar::from_i64(d, a.wrapping_mul(b)),
        ScatterOp::Min => {
            if less {
                x
            } else {
                u
            }
        }
        ScatterOp::Max => {
            if less {
                u
            } else {
                x
            }
        }
    }
}

fn scatter_reference(p: &ScatterParams, args: &[RefTensor], _: &[Aval]) -> Result<Vec<RefTensor>> {
    let (mut out, indices, updates) = (args[0].clone(), &args[1], &args[2]);
    let d = &p.dimension_numbers.0;
    let sizes = window_sizes(d, out.aval.rank(), &updates.aval.shape);
    let shape = out.aval.shape.clone();
    let mode = if p.mode.0 == IndexMode::Clip { IndexMode::Clip } else { IndexMode::FillOrDrop };
    let windows = Windows {
        operand: &shape,
        sizes: &sizes,
        map: &d.scatter_dims_to_operand_dims,
        operand_batch: &d.operand_batching_dims,
        indices_batch: &d.scatter_indices_batching_dims,
        mode,
    };
    let axes = remaining(shape.len(), &d.inserted_window_dims, &d.operand_batching_dims);
    let rows = remaining(updates.aval.rank(), &d.update_window_dims, &[]);
    let strides = ferrax_base::shape::strides(&shape);
    let mut i = vec![0; updates.aval.rank()];
    for &u in &updates.data {
        let batch: Shape = rows.iter().map(|&r| i[r]).collect();
        if let Some(mut at) = windows.start(indices, &batch) {
            for (&a, &w) in axes.iter().zip(&d.update_window_dims) {
                at[a] += i[w];
            }
            let at: usize = at.iter().zip(&strides).map(|(n, s)| n * s).sum();
            out.data[at] = combine(p.op, out.data[at], u);
        }
        advance(&mut i, &updates.aval.shape);
    }
    Ok(vec![out])
}

/// `x` with `updates` written into, or combined with, the windows at `indices`.
pub fn scatter(
    op: ScatterOp,
    x: &Value,
    indices: &Value,
    updates: &Value,
    dims: &ScatterDims,
    options: ScatterOptions,
) -> Result<Value> {
    let def = match op {
        ScatterOp::Set => &SCATTER,
        ScatterOp::Add => &SCATTER_ADD,
        ScatterOp::Sub => &SCATTER_SUB,
        ScatterOp::Mul => &SCATTER_MUL,
        ScatterOp::Min => &SCATTER_MIN,
        ScatterOp::Max => &SCATTER_MAX,
    };
    let params = ScatterParams {
        dimension_numbers: ScatterNumbers(dims.clone()),
        indices_are_sorted: options.sorted,
        mode: Mode(options.mode),
        unique_indices: options.unique,
        op,
        dtype: if op == ScatterOp::Set { DType::F32 } else { x.dtype() },
    };
    bind1(&OpRef::new(def, params), &[x.clone(), indices.clone(), updates.clone()])
}
