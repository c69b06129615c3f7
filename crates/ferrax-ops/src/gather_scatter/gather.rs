//! `gather`: windows of an operand, one for each index vector.

use super::scatter::{ScatterOptions, scatter};
use super::{GatherNumbers, Mode, Windows, default_fill, remaining};
use crate::common::{FROM_KERNEL, NO_REWRITE};
use ferrax_base::shape::Tuple;
use ferrax_base::symbolic::all_at_least;
use ferrax_base::{Aval, DType, Result, Scalar, Shape, bail};
use ferrax_ir::op::{BatchAxis, BatchDims};
use ferrax_ir::reference::RefTensor;
use ferrax_ir::trace::bind1;
use ferrax_ir::{Avals, Def, OpRef, Param, ParamValue, Slot, Special, Tangents, TransposeArg, Value, Values, params};
use ferrax_loops::{GatherDims, Gathering, IndexMode, Kind, ScatterDims, ScatterOp, Type};
use ferrax_transform::structural::{move_axis, zeros};
use smallvec::smallvec;

/// The fill value, if the mode uses one; prints as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fill(pub Option<Scalar>);

impl Fill {
    /// The value as its text is read, so that text tells the operation: whole numbers, NaN and infinities of any width.
    fn of(fill: Option<Scalar>) -> Fill {
        let wide = |s: Scalar| {
            let (d, v) = (s.dtype, s.to_f64());
            match d {
                _ if d.is_inexact() && s.imag() == 0.0 && (v.fract() == 0.0 && v.abs() < 1e7 || !v.is_finite()) => {
                    Scalar::from_f64(DType::F64, v)
                }
                _ if d.is_signed() && d.is_integer() => Scalar::from_i64(DType::I64, s.to_i64()),
                _ if d.is_unsigned() && s.bits <= i64::MAX as u128 => Scalar::from_i64(DType::I64, s.bits as i64),
                _ => s,
            }
        };
        Fill(fill.map(wide))
    }
}

impl ParamValue for Fill {
    fn print(&self) -> Param {
        Param::Text(self.0.map_or_else(|| "None".into(), |s| s.to_string()))
    }

    fn parse(text: &Param) -> Option<Self> {
        let Param::Text(t) = text else { return None };
        Some(Fill(match t.as_str() {
            "None" => None,
            "True" => Some(Scalar::from_bool(true)),
            "False" => Some(Scalar::from_bool(false)),
            t => Some(match t.parse() {
                Ok(n) => Scalar::from_i64(DType::I64, n),
                Err(_) => Scalar::from_f64(ferrax_base::DType::F64, t.parse().ok()?),
            }),
        }))
    }
}

params! {
    /// Parameters of `gather`.
    pub struct GatherParams {
        /// Which axes are what.
        dimension_numbers: GatherNumbers,
        /// What windows outside the operand hold.
        fill_value: Fill,
        /// Whether the index vectors are promised to be sorted.
        indices_are_sorted: bool,
        /// What happens to windows outside the operand.
        mode: Mode,
        /// The window's size on every operand axis.
        slice_sizes: Shape,
        /// Whether the windows are promised not to overlap.
        unique_indices: bool,
    }
}

/// What a gather does beyond its dimension numbers.
#[derive(Clone, Copy, Debug)]
pub struct GatherOptions {
    /// What happens to windows outside the operand.
    pub mode: IndexMode,
    /// What they hold in mode `FillOrDrop`; `None` is [`default_fill`].
    pub fill: Option<Scalar>,
    /// Whether the index vectors are promised to be sorted.
    pub sorted: bool,
    /// Whether the windows are promised not to overlap.
    pub unique: bool,
}

impl Default for GatherOptions {
    fn default() -> Self {
        GatherOptions { mode: IndexMode::PromiseInBounds, fill: None, sorted: false, unique: false }
    }
}

/// Windows of an operand.
pub static GATHER: Def<GatherParams> = Def {
    name: "gather",
    doc: "Windows of an array, one for each index vector.",
    arity: Some(2),
    shape: gather_shape,
    jvp: Slot::Rule(|op, p, primals, tangents| {
        let out = bind1(op, primals)?;
        let Some(t) = &tangents[0] else { return Ok((smallvec![out], smallvec![None])) };
        let mut q = p.clone();
        q.fill_value = Fill::of(p.fill_value.0.map(|_| Scalar::zero(t.dtype())));
        let tangent = bind1(&OpRef::new(&GATHER, q), &[t.clone(), primals[1].clone()])?;
        Ok((smallvec![out], smallvec![Some(tangent)]))
    }),
    transpose: Slot::Rule(gather_transpose),
    batch: Slot::Rule(gather_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        let gathering = Gathering {
            dims: p.dimension_numbers.0.clone(),
            slice_sizes: p.slice_sizes.clone(),
            mode: p.mode.0,
            fill: p.fill_value.0.unwrap_or(Scalar::zero(outs[0].dtype)).convert(outs[0].dtype),
            sorted: p.indices_are_sorted,
            unique: p.unique_indices,
            wrap: false,
        };
        Ok(smallvec![b.push(Kind::Gather(Box::new(gathering)), args, Type::from(&outs[0]))])
    }),
    reference: Slot::Rule(gather_reference),
    special: Special::WEIGHTED,
};

fn strictly_increasing(dims: &[usize]) -> bool {
    dims.windows(2).all(|w| w[0] < w[1])
}

/// The conditions that XLA puts on gather's dimension numbers.
fn check(p: &GatherParams, x: &Aval, indices: &Aval) -> Result<()> {
    let d = &p.dimension_numbers.0;
    let sizes = &p.slice_sizes;
    if !indices.dtype.is_integer() {
        bail!(Value, "gather: indices must have an integer type, got {}.", indices.dtype);
    }
    if indices.rank() == 0 {
        bail!(Type, "Gather indices must have at least one dimension, the index vector's; got a scalar.");
    }
    let fail = |what: &str| -> Result<()> {
        bail!(
            Type,
            "gather: {what}; operand {x}, indices {indices}, slice_sizes {}, {:?}",
            Tuple(sizes),
            p.dimension_numbers.0
        )
    };
    for (name, dims) in [
        ("offset_dims", &d.offset_dims[..]),
        ("collapsed_slice_dims", &d.collapsed_slice_dims),
        ("operand_batching_dims", &d.operand_batching_dims),
    ] {
        if !strictly_increasing(dims) {
            return fail(&format!("{name} must be sorted and without duplicates"));
        }
    }
    let output_rank = d.offset_dims.len() + indices.rank() - 1;
    if d.offset_dims.iter().any(|&o| o >= output_rank) {
        return fail(&format!("offset_dims must be below the output's rank {output_rank}"));
    }
    let vector = indices.shape[indices.rank() - 1];
    if d.start_index_map.len() != vector {
        return fail(&format!(
            "start_index_map must have as many entries as the index vector: {} and {vector}",
            d.start_index_map.len()
        ));
    }
    let axes = d.start_index_map.iter().chain(&d.collapsed_slice_dims).chain(&d.operand_batching_dims);
    if axes.clone().any(|&a| a >= x.rank()) {
        return fail("a dimension number is out of range for the operand");
    }
    if (0..x.rank()).any(|a| d.start_index_map.iter().filter(|&&m| m == a).count() > 1) {
        return fail("start_index_map must not have duplicates");
    }
    if d.operand_batching_dims.iter().any(|a| d.collapsed_slice_dims.contains(a) || d.start_index_map.contains(a)) {
        return fail("operand_batching_dims must differ from collapsed_slice_dims and start_index_map");
    }
    if d.operand_batching_dims.len() != d.start_indices_batching_dims.len() {
        return fail("operand_batching_dims and start_indices_batching_dims must have equal lengths");
    }
    for (&o, &i) in d.operand_batching_dims.iter().zip(&d.start_indices_batching_dims) {
        if i + 1 >= indices.rank() || x.shape[o] != indices.shape[i] {
            return fail("batching dimensions of operand and indices must have equal sizes");
        }
    }
    if sizes.len() != x.rank() {
        return fail("slice_sizes must have one entry for each operand dimension");
    }
    if d.offset_dims.len() + d.collapsed_slice_dims.len() + d.operand_batching_dims.len() != x.rank() {
        return fail("offset_dims, collapsed_slice_dims and operand_batching_dims must account for every dimension");
    }
    if !all_at_least(&x.shape, sizes) {
        return fail("slice_sizes must be within the operand's shape");
    }
    if d.collapsed_slice_dims.iter().chain(&d.operand_batching_dims).any(|&a| sizes[a] > 1) {
        return fail("collapsed and batching dimensions must have slice size 0 or 1");
    }
    Ok(())
}

fn gather_shape(p: &GatherParams, args: &[&Aval]) -> Result<Avals> {
    let (x, indices) = (args[0], args[1]);
    check(p, x, indices)?;
    let d = &p.dimension_numbers.0;
    let mut window =
        remaining(x.rank(), &d.collapsed_slice_dims, &d.operand_batching_dims).into_iter().map(|a| p.slice_sizes[a]);
    let mut batch = indices.shape[..indices.rank() - 1].iter().copied();
    let rank = d.offset_dims.len() + indices.rank() - 1;
    let shape: Option<Shape> =
        (0..rank).map(|o| if d.offset_dims.contains(&o) { window.next() } else { batch.next() }).collect();
    match shape {
        Some(shape) => Ok(smallvec![x.with_shape(&shape)]),
        None => bail!(Type, "gather: offset_dims {:?} do not fit the output", d.offset_dims),
    }
}

/// The scatter that puts a gather's windows back where they came from.
pub(super) fn inverse(d: &GatherDims) -> ScatterDims {
    ScatterDims {
        update_window_dims: d.offset_dims.clone(),
        inserted_window_dims: d.collapsed_slice_dims.clone(),
        scatter_dims_to_operand_dims: d.start_index_map.clone(),
        operand_batching_dims: d.operand_batching_dims.clone(),
        scatter_indices_batching_dims: d.start_indices_batching_dims.clone(),
    }
}

fn gather_transpose(_: &OpRef, p: &GatherParams, cts: &[Option<Value>], args: &[TransposeArg]) -> Result<Tangents> {
    let (Some(ct), TransposeArg::Linear(x)) = (&cts[0], &args[0]) else { return Ok(smallvec![None, None]) };
    let options = ScatterOptions { mode: p.mode.0, sorted: p.indices_are_sorted, unique: p.unique_indices };
    let into = zeros(x)?;
    let out = scatter(ScatterOp::Add, &into, args[1].known()?, ct, &inverse(&p.dimension_numbers.0), options)?;
    Ok(smallvec![Some(out), None])
}

fn shift<const N: usize>(dims: &mut smallvec::SmallVec<[usize; N]>) {
    dims.iter_mut().for_each(|d| *d += 1);
}

fn gather_batch(
    _: &OpRef,
    p: &GatherParams,
    axis: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
) -> Result<(Values, BatchDims)> {
    let mut q = p.clone();
    let d = &mut q.dimension_numbers.0;
    shift(&mut d.offset_dims);
    let (mut x, mut indices) = (args[0].clone(), args[1].clone());
    if let Some(at) = dims[0] {
        x = move_axis(&x, at, 0)?;
        shift(&mut d.collapsed_slice_dims);
        shift(&mut d.start_index_map);
        shift(&mut d.operand_batching_dims);
    }
    if let Some(at) = dims[1] {
        indices = move_axis(&indices, at, 0)?;
        shift(&mut d.start_indices_batching_dims);
        q.indices_are_sorted = false;
    }
    match (dims[0], dims[1]) {
        (Some(_), Some(_)) => {
            d.operand_batching_dims.insert(0, 0);
            d.start_indices_batching_dims.insert(0, 0);
            q.slice_sizes.insert(0, axis.size.min(1));
        }
        (Some(_), None) => {
            d.offset_dims.insert(0, 0);
            q.slice_sizes.insert(0, axis.size);
        }
        // Rows read one operand, so their windows may overlap.
        _ => q.unique_indices = false,
    }
    Ok((smallvec![bind1(&OpRef::new(&GATHER, q), &[x, indices])?], smallvec![Some(0)]))
}

fn gather_reference(p: &GatherParams, args: &[RefTensor], outs: &[Aval]) -> Result<Vec<RefTensor>> {
    let (x, indices) = (&args[0], &args[1]);
    let d = &p.dimension_numbers.0;
    let windows = Windows {
        operand: &x.aval.shape,
        sizes: &p.slice_sizes,
        map: &d.start_index_map,
        operand_batch: &d.operand_batching_dims,
        indices_batch: &d.start_indices_batching_dims,
        mode: p.mode.0,
    };
    let axes = remaining(x.aval.rank(), &d.collapsed_slice_dims, &d.operand_batching_dims);
    let fill = p.fill_value.0.unwrap_or(Scalar::zero(x.aval.dtype)).convert(x.aval.dtype);
    Ok(vec![RefTensor::build(&outs[0], |i| {
        let pick = |offset: bool| -> Shape {
            i.iter().enumerate().filter(|(o, _)| d.offset_dims.contains(o) == offset).map(|(_, &n)| n).collect()
        };
        let Some(mut at) = windows.start(indices, &pick(false)) else { return fill };
        for (&a, n) in axes.iter().zip(pick(true)) {
            at[a] += n;
        }
        x.at(&at)
    })])
}

/// Windows of `x`, one for each vector along the last axis of `indices`.
pub fn gather(
    x: &Value,
    indices: &Value,
    dims: &GatherDims,
    slice_sizes: &[usize],
    options: GatherOptions,
) -> Result<Value> {
    let fill = match options.mode {
        IndexMode::FillOrDrop => Some(options.fill.map_or_else(|| default_fill(x.dtype()), |f| f.convert(x.dtype()))),
        _ => None,
    };
    let params = GatherParams {
        dimension_numbers: GatherNumbers(dims.clone()),
        fill_value: Fill::of(fill),
        indices_are_sorted: options.sorted,
        mode: Mode(options.mode),
        slice_sizes: Shape::from_slice(slice_sizes),
        unique_indices: options.unique,
    };
    bind1(&OpRef::new(&GATHER, params), &[x.clone(), indices.clone()])
}
