//! Dynamic slices, gather and scatter.
//!
//! Indices of any integer dtype become int32, or int64 where that does not hold them. Gather clamps in XLA, so that the fill
//! value is selected afterwards; scatter drops windows outside, so that clipping is done before.

use super::body::{Body, Val};
use super::convert;
use super::elementwise::{self, compute_dtype};
use super::reduce;
use super::types::{array, list};
use ferrax_base::{DType, Result, Scalar, bail};
use ferrax_loops::{BinaryOp, Gathering, IndexMode, Kind, ReduceOp, ScatterDims, ScatterOp, Type, UnaryOp};

pub(super) fn node(body: &mut Body<'_, '_>, kind: &Kind, inputs: &[Val], ty: &Type) -> Result<Val> {
    match kind {
        Kind::DynamicSlice => {
            let starts = starts(body, &inputs[1..])?;
            Ok(body.dynamic_slice(&inputs[0], &starts.iter().collect::<Vec<_>>(), &ty.shape))
        }
        Kind::DynamicUpdateSlice => {
            if inputs[1].ty.size() == 0 {
                return Ok(inputs[0].clone());
            }
            let starts = starts(body, &inputs[2..])?;
            let operands: Vec<&Val> = inputs[..2].iter().chain(&starts).collect();
            Ok(body.op("stablehlo.dynamic_update_slice", &operands, "", ty))
        }
        Kind::Gather(gathering) => gather(body, gathering, &inputs[0], &inputs[1], ty),
        Kind::Scatter { op, dims, mode, sorted, unique } => {
            let scatter = Scatter { op: *op, dims, mode: *mode, sorted: *sorted, unique: *unique };
            scatter.print(body, &inputs[0], &inputs[1], &inputs[2])
        }
        other => bail!(Internal, "{other:?} has no indices"),
    }
}

/// The dtype that indices of a dtype become.
fn index_dtype(d: DType) -> DType {
    if d.size() < 4 || d == DType::I32 { DType::I32 } else { DType::I64 }
}

/// Indices as int32 or int64; what neither holds is far outside anyway.
fn widened(body: &mut Body<'_, '_>, x: &Val) -> Result<Val> {
    if x.dtype() == DType::U64 {
        let most = body.splat(Scalar::from_u64(DType::U64, i64::MAX as u64), x.shape());
        let held = body.bin("stablehlo.minimum", x, &most);
        return Ok(body.convert(&held, DType::I64));
    }
    convert::convert(body, x, index_dtype(x.dtype()))
}

/// The starts of a dynamic slice, of one dtype.
fn starts(body: &mut Body<'_, '_>, starts: &[Val]) -> Result<Vec<Val>> {
    let wide = starts.iter().any(|s| index_dtype(s.dtype()) == DType::I64);
    let to = if wide { DType::I64 } else { DType::I32 };
    starts
        .iter()
        .map(|s| {
            let s = widened(body, s)?;
            Ok(body.convert(&s, to))
        })
        .collect()
}

/// Index vectors, and the dimension numbers that go with them: in dialects without batching dimensions these are further
/// components of the vectors.
struct Vectors {
    indices: Val,
    map: Vec<usize>,
    /// What the operand axes of the map leave for starts; batching dimensions that became components have no limit of theirs.
    operand_batching: Vec<usize>,
    index_batching: Vec<usize>,
    /// Operand axes that batching dimensions were and that now have windows of extent 1 that are dropped.
    dropped: Vec<usize>,
}

impl Vectors {
    fn new(body: &mut Body<'_, '_>, indices: Val, map: &[usize], batching: (&[usize], &[usize])) -> Result<Vectors> {
        let (operand_batching, index_batching) = (batching.0.to_vec(), batching.1.to_vec());
        let mut all = Vectors { indices, map: map.to_vec(), operand_batching, index_batching, dropped: Vec::new() };
        if all.operand_batching.is_empty() || body.module.target.version >= BATCHING {
            return Ok(all);
        }
        let mut shape = all.indices.shape().to_vec();
        let vector = shape.len() - 1;
        shape[vector] = 1;
        let axes: Vec<Val> =
            all.index_batching.iter().map(|&axis| body.iota(all.indices.dtype(), &shape, axis)).collect();
        let parts: Vec<&Val> = axes.iter().chain([&all.indices]).collect();
        all.indices = body.concat(&parts, vector);
        all.map.splice(0..0, all.operand_batching.iter().copied());
        all.dropped = std::mem::take(&mut all.operand_batching);
        all.index_batching.clear();
        Ok(all)
    }

    /// Dropped axes of the operand: these and what batching dimensions became.
    fn collapsed(&self, own: &[usize]) -> String {
        let mut axes: Vec<usize> = own.iter().chain(&self.dropped).copied().collect();
        axes.sort_unstable();
        list(&axes)
    }
}

/// The first version of the dialect whose gather and scatter have batching dimensions.
const BATCHING: [i64; 3] = [1, 1, 0];

/// A limit a component of index vectors: the largest start that keeps the window inside.
fn limits(shape: &[usize], map: &[usize], window: &[usize]) -> Vec<i64> {
    map.iter().map(|&a| shape[a] as i64 - window[a] as i64).collect()
}

/// Numbers along the last axis of index vectors.
fn along(body: &mut Body<'_, '_>, indices: &Val, numbers: &[i64]) -> Val {
    let dtype = indices.dtype();
    let parts: Vec<Val> = numbers.iter().map(|&n| body.splat(Scalar::from_i64(dtype, n), &[1])).collect();
    let line = match &parts[..] {
        [] => body.splat(Scalar::zero(dtype), &[0]),
        parts => body.concat(&parts.iter().collect::<Vec<_>>(), 0),
    };
    body.broadcast(&line, indices.shape(), &[indices.shape().len() - 1])
}

/// Whether each index vector lies between zeros and the limits.
fn inside(body: &mut Body<'_, '_>, indices: &Val, limits: &[i64]) -> Result<Val> {
    let (low, high) = (body.like(indices, 0.0), along(body, indices, limits));
    let above = body.compare("GE", indices, &low);
    let below = body.compare("LE", indices, &high);
    let both = body.bin("stablehlo.and", &above, &below);
    reduce::reduce(body, ReduceOp::And, &both, &[indices.shape().len() - 1])
}

fn gather(body: &mut Body<'_, '_>, g: &Gathering, operand: &Val, indices: &Val, ty: &Type) -> Result<Val> {
    let limits = limits(operand.shape(), &g.dims.start_index_map, &g.slice_sizes);
    let fills = g.mode == IndexMode::FillOrDrop;
    if ty.size() == 0 || operand.ty.size() == 0 || (fills && limits.iter().any(|&l| l < 0)) {
        return Ok(body.splat(g.fill, &ty.shape));
    }
    let mut vectors = widened(body, indices)?;
    if g.wrap {
        let n = operand.shape()[g.dims.start_index_map[0]];
        let zero = body.like(&vectors, 0.0);
        let extent = body.splat(Scalar::from_i64(vectors.dtype(), n as i64), vectors.shape());
        let behind = body.compare("LT", &vectors, &zero);
        let moved = body.bin("stablehlo.add", &vectors, &extent);
        vectors = body.select(&behind, &moved, &vectors);
        let mut shape = vectors.shape().to_vec();
        shape.push(1);
        vectors = body.reshape(&vectors, &shape);
    }
    let valid = if fills { Some(inside(body, &vectors, &limits)?) } else { None };
    let batching = (&g.dims.operand_batching_dims[..], &g.dims.start_indices_batching_dims[..]);
    let v = Vectors::new(body, vectors, &g.dims.start_index_map, batching)?;
    let numbers = format!(
        "#stablehlo.gather<offset_dims = [{}], collapsed_slice_dims = [{}], operand_batching_dims = [{}], \
         start_indices_batching_dims = [{}], start_index_map = [{}], index_vector_dim = {}>",
        list(&g.dims.offset_dims),
        v.collapsed(&g.dims.collapsed_slice_dims),
        list(&v.operand_batching),
        list(&v.index_batching),
        list(&v.map),
        v.indices.shape().len() - 1
    );
    let rest = format!(
        "{{dimension_numbers = {numbers}, slice_sizes = {}, indices_are_sorted = {}}}",
        array(&g.slice_sizes),
        g.sorted && !g.wrap && v.dropped.is_empty()
    );
    let taken = body.op("stablehlo.gather", &[operand, &v.indices], &rest, ty);
    let Some(valid) = valid else { return Ok(taken) };
    let batch: Vec<usize> = (0..ty.shape.len()).filter(|a| !g.dims.offset_dims.contains(a)).collect();
    let valid = body.broadcast(&valid, &ty.shape, &batch);
    let fill = body.splat(g.fill, &ty.shape);
    Ok(body.select(&valid, &taken, &fill))
}

struct Scatter<'n> {
    op: ScatterOp,
    dims: &'n ScatterDims,
    mode: IndexMode,
    sorted: bool,
    unique: bool,
}

impl Scatter<'_> {
    fn print(&self, body: &mut Body<'_, '_>, operand: &Val, indices: &Val, updates: &Val) -> Result<Val> {
        if operand.ty.size() == 0 || updates.ty.size() == 0 {
            return Ok(operand.clone());
        }
        let window = self.window(operand.shape(), updates.shape());
        let free = (0..window.len()).find(|a| !self.dims.operand_batching_dims.contains(a));
        if let (true, Some(axis)) = (self.dims.scatter_dims_to_operand_dims.is_empty(), free) {
            // Windows that all begin at the origin: XLA's compilers want an index that says so.
            let mut shape = indices.shape().to_vec();
            shape[indices.shape().len() - 1] = 1;
            let origin = body.splat(Scalar::zero(DType::I32), &shape);
            let mut dims = self.dims.clone();
            dims.scatter_dims_to_operand_dims.push(axis);
            return Scatter { dims: &dims, ..*self }.print(body, operand, &origin, updates);
        }
        let (d, map) = (operand.dtype(), &self.dims.scatter_dims_to_operand_dims[..]);
        let limits = limits(operand.shape(), map, &window);
        if limits.iter().any(|&l| l < 0) {
            return Ok(operand.clone());
        }
        let vectors = widened(body, indices)?;
        let vectors = self.placed(body, vectors, operand.shape(), &window, &limits)?;
        let batching = (&self.dims.operand_batching_dims[..], &self.dims.scatter_indices_batching_dims[..]);
        let v = Vectors::new(body, vectors, map, batching)?;
        if self.op == ScatterOp::Set {
            return self.joined(body, &v, operand, updates);
        }
        let updates =
            if self.op == ScatterOp::Sub { elementwise::unary(body, UnaryOp::Neg, updates)? } else { updates.clone() };
        let c = compute_dtype(d);
        let (wide, updates) = (convert::convert(body, operand, c)?, convert::convert(body, &updates, c)?);
        let result = self.joined(body, &v, &wide, &updates)?;
        convert::convert(body, &result, d)
    }

    /// The extents of a window on the operand's axes.
    fn window(&self, operand: &[usize], updates: &[usize]) -> Vec<usize> {
        let mut window = vec![1; operand.len()];
        let dropped =
            |a: &usize| self.dims.inserted_window_dims.contains(a) || self.dims.operand_batching_dims.contains(a);
        let kept = (0..operand.len()).filter(|a| !dropped(a));
        kept.zip(&self.dims.update_window_dims).for_each(|(a, &u)| window[a] = updates[u]);
        window
    }

    /// Index vectors whose windows lie inside, or wholly outside where they are to be dropped.
    fn placed(
        &self,
        body: &mut Body<'_, '_>,
        vectors: Val,
        operand: &[usize],
        window: &[usize],
        limits: &[i64],
    ) -> Result<Val> {
        let map = &self.dims.scatter_dims_to_operand_dims;
        if self.mode != IndexMode::FillOrDrop {
            let low = body.like(&vectors, 0.0);
            let high = along(body, &vectors, limits);
            return Ok(body.op("stablehlo.clamp", &[&low, &vectors, &high], "", &vectors.ty));
        }
        if map.iter().all(|&a| window[a] == 1) {
            return Ok(vectors);
        }
        let valid = inside(body, &vectors, limits)?;
        let axes: Vec<usize> = (0..vectors.shape().len() - 1).collect();
        let valid = body.broadcast(&valid, vectors.shape(), &axes);
        let ends: Vec<i64> = map.iter().map(|&a| operand[a] as i64).collect();
        let outside = along(body, &vectors, &ends);
        Ok(body.select(&valid, &vectors, &outside))
    }

    fn joined(&self, body: &mut Body<'_, '_>, v: &Vectors, operand: &Val, updates: &Val) -> Result<Val> {
        let numbers = format!(
            "#stablehlo.scatter<update_window_dims = [{}], inserted_window_dims = [{}], input_batching_dims = [{}], \
             scatter_indices_batching_dims = [{}], scatter_dims_to_operand_dims = [{}], index_vector_dim = {}>",
            list(&self.dims.update_window_dims),
            v.collapsed(&self.dims.inserted_window_dims),
            list(&v.operand_batching),
            list(&v.index_batching),
            list(&v.map),
            v.indices.shape().len() - 1
        );
        let cell = Type::new(operand.dtype(), &[]);
        let op = match self.op {
            ScatterOp::Set => None,
            ScatterOp::Add | ScatterOp::Sub => Some(BinaryOp::Add),
            ScatterOp::Mul => Some(BinaryOp::Mul),
            ScatterOp::Min => Some(BinaryOp::Min),
            ScatterOp::Max => Some(BinaryOp::Max),
        };
        let region = body.region(&[cell.clone(), cell], |body, cells| {
            Ok(vec![match op {
                None => cells[1].clone(),
                Some(op) => elementwise::binary(body, op, &cells[0], &cells[1])?,
            }])
        })?;
        // Clamping keeps one component in order, not several.
        let sorted = self.sorted && v.dropped.is_empty() && v.map.len() == 1;
        let unique = self.unique && self.mode == IndexMode::FillOrDrop;
        let rest = format!(
            "({region}) {{scatter_dimension_numbers = {numbers}, indices_are_sorted = {sorted}, \
             unique_indices = {unique}}}"
        );
        Ok(body.op("stablehlo.scatter", &[operand, &v.indices, updates], &rest, &operand.ty))
    }
}
