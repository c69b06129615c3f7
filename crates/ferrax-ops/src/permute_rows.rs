//! `permute_rows`: rows along an axis, in the place of others; what a `ppermute` over mapped rows is.
//!
//! It is lowered to what partitioners know as one message from each device to another: neighbours padded, or joined, or axes
//! of two reversed. Any other order is a gather of known rows.
//!
//! Read next: `collective.rs`, whose operations come to this.

use crate::common::{FROM_KERNEL, NO_REWRITE};
use ferrax_base::{Aval, DType, Result, Scalar, Shape, bail};
use ferrax_ir::reference::RefTensor;
use ferrax_ir::trace::bind1;
use ferrax_ir::{Def, OpRef, Slot, Special, Value};
use ferrax_loops::kind::{Bytes, GatherDims, Gathering, PadConfig, SliceDims};
use ferrax_loops::{Builder, IndexMode, Kind, Type, ValueId};
use ferrax_transform::structural::linear_jvp;
use smallvec::{SmallVec, smallvec};

/// The primitives of this file.
pub static PRIMITIVES: &[&dyn crate::registry::Primitive] = &[&PERMUTE_ROWS];

ferrax_ir::params! {
    /// Parameters of `permute_rows`.
    pub struct PermuteRows {
        /// The axis that the rows are along.
        axis: usize,
        /// Pairs of a row and the place that it gets; places that get none have zeros.
        perm: Vec<(usize, usize)>,
    }
}

impl PermuteRows {
    /// The row that each place gets. Errors where two get into one place, or there is no such row.
    fn sources(&self, size: usize) -> Result<Vec<Option<usize>>> {
        let mut sources = vec![None; size];
        for &(from, to) in &self.perm {
            if from >= size || to >= size || sources[to].replace(from).is_some() {
                bail!(Value, "ppermute sources and destinations must be unique and within the axis of size {size}");
            }
        }
        Ok(sources)
    }
}

/// Rows along an axis, in the place of others.
pub static PERMUTE_ROWS: Def<PermuteRows> = Def {
    name: "permute_rows",
    doc: "Rows along an axis, in the place of others.",
    arity: Some(1),
    shape: |p, args| match args[0].shape.get(p.axis) {
        Some(&size) => p.sources(size).map(|_| smallvec![args[0].clone()]),
        None => bail!(Value, "permute_rows along axis {} of an array with {} axes", p.axis, args[0].rank()),
    },
    jvp: Slot::Rule(linear_jvp),
    transpose: Slot::Rule(|_, p, cts, _| {
        let back: Vec<(usize, usize)> = p.perm.iter().map(|&(from, to)| (to, from)).collect();
        Ok(smallvec![cts[0].as_ref().map(|ct| permute_rows(ct, p.axis, back)).transpose()?])
    }),
    batch: Slot::Rule(|_, p, _, args, dims| {
        let at = dims[0].unwrap_or(0);
        let axis = p.axis + usize::from(p.axis >= at);
        Ok((smallvec![permute_rows(&args[0], axis, p.perm.clone())?], smallvec![Some(at)]))
    }),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        let sources = p.sources(outs[0].shape[p.axis])?;
        Ok(smallvec![lowered(b, args[0], &outs[0], p.axis, &sources)])
    }),
    reference: Slot::Rule(|p, args, outs| {
        let sources = p.sources(outs[0].shape[p.axis])?;
        Ok(vec![RefTensor::build(&outs[0], |i| {
            let mut at = i.to_vec();
            let Some(from) = sources[i[p.axis]] else { return Scalar::zero(outs[0].dtype) };
            at[p.axis] = from;
            args[0].at(&at)
        })])
    }),
    special: Special::WEIGHTED,
};

/// The rows along an axis in the places that pairs of a row and a place say, and zeros in others.
pub fn permute_rows(x: &Value, axis: usize, perm: Vec<(usize, usize)>) -> Result<Value> {
    bind1(&OpRef::new(&PERMUTE_ROWS, PermuteRows { axis, perm }), std::slice::from_ref(x))
}

fn lowered(b: &mut Builder, x: ValueId, out: &Aval, axis: usize, sources: &[Option<usize>]) -> ValueId {
    let size = sources.len();
    let each = || sources.iter().enumerate().filter_map(|(to, from)| Some((to, (*from)?)));
    let Some((to, from)) = each().next() else {
        let zero = b.scalar(Scalar::zero(out.dtype));
        return b.push(Kind::Broadcast(SmallVec::new()), &[zero], out.into());
    };
    let (count, offset, bits) = (each().count(), (from + size - to) % size, from ^ to);
    if each().enumerate().all(|(k, pair)| pair == (to + k, from + k)) {
        return shifted(b, x, out, axis, (from, to, count));
    }
    if each().all(|(to, from)| (to + offset) % size == from) {
        let turned = rotated(b, x, out, axis, offset);
        return if count == size { turned } else { only(b, turned, out, axis, sources) };
    }
    let blocks = count == size && size.is_multiple_of(1 << (usize::BITS - bits.leading_zeros()));
    if blocks && each().all(|(to, from)| to ^ bits == from) {
        return reversed(b, x, out, axis, bits);
    }
    gathered(b, x, out, axis, sources)
}

/// So many neighbours from one row on.
fn part(b: &mut Builder, x: ValueId, out: &Aval, axis: usize, (from, count): (usize, usize)) -> ValueId {
    if count == out.shape[axis] {
        return x;
    }
    let (mut shape, stride) = (out.shape.clone(), Shape::from_elem(1, out.rank()));
    let mut dims = SliceDims { start: Shape::from_elem(0, out.rank()), limit: out.shape.clone(), stride };
    (shape[axis], dims.start[axis], dims.limit[axis]) = (count, from, from + count);
    b.push(Kind::Slice(Box::new(dims)), &[x], Type::new(out.dtype, &shape))
}

/// So many neighbours in places from one on, between zeros.
fn shifted(b: &mut Builder, x: ValueId, out: &Aval, axis: usize, run: (usize, usize, usize)) -> ValueId {
    let (from, to, count) = run;
    let kept = part(b, x, out, axis, (from, count));
    let mut config = vec![PadConfig::default(); out.rank()];
    (config[axis].low, config[axis].high) = (to as i64, (out.shape[axis] - to - count) as i64);
    if config[axis] == PadConfig::default() {
        return kept;
    }
    let zero = b.scalar(Scalar::zero(out.dtype));
    b.push(Kind::Pad(config.into()), &[kept, zero], out.into())
}

/// The rows from one on, then those before it.
fn rotated(b: &mut Builder, x: ValueId, out: &Aval, axis: usize, first: usize) -> ValueId {
    if first == 0 {
        return x;
    }
    let parts = [(first, out.shape[axis] - first), (0, first)].map(|run| part(b, x, out, axis, run));
    b.push(Kind::Concat(axis), &parts, out.into())
}

/// Zeros in the places that get nothing.
fn only(b: &mut Builder, x: ValueId, out: &Aval, axis: usize, sources: &[Option<usize>]) -> ValueId {
    let gets: Vec<u8> = sources.iter().map(|from| u8::from(from.is_some())).collect();
    let gets = b.push(Kind::Dense(Bytes::of(gets)), &[], Type::new(DType::Bool, &[sources.len()]));
    let gets = b.push(Kind::Broadcast(smallvec![axis]), &[gets], Type::new(DType::Bool, &out.shape));
    let zero = b.scalar(Scalar::zero(out.dtype));
    let zeros = b.push(Kind::Broadcast(SmallVec::new()), &[zero], out.into());
    b.push(Kind::Select, &[gets, zeros, x], out.into())
}

/// For each place the row whose number differs in these bits: an axis for each bit, reversed.
fn reversed(b: &mut Builder, x: ValueId, out: &Aval, axis: usize, bits: usize) -> ValueId {
    let count = (usize::BITS - bits.leading_zeros()) as usize;
    let axes = (0..count).filter(|bit| bits >> bit & 1 == 1).map(|bit| axis + count - bit).collect();
    let mut shape: Shape = out.shape[..axis].into();
    shape.push(out.shape[axis] >> count);
    shape.extend(std::iter::repeat_n(2, count));
    shape.extend_from_slice(&out.shape[axis + 1..]);
    let ty = Type::new(out.dtype, &shape);
    let split = b.push(Kind::Reshape, &[x], ty.clone());
    let turned = b.push(Kind::Rev(axes), &[split], ty);
    b.push(Kind::Reshape, &[turned], out.into())
}

/// Rows by their numbers; those that are none are zeros.
fn gathered(b: &mut Builder, x: ValueId, out: &Aval, axis: usize, sources: &[Option<usize>]) -> ValueId {
    let number = |from: &Option<usize>| (from.unwrap_or(sources.len()) as i32).to_ne_bytes();
    let numbers: Vec<u8> = sources.iter().flat_map(number).collect();
    let indices = b.push(Kind::Dense(Bytes::of(numbers)), &[], Type::new(DType::I32, &[sources.len(), 1]));
    let mut slice_sizes = out.shape.clone();
    slice_sizes[axis] = 1;
    let gathering = Gathering {
        dims: GatherDims {
            offset_dims: (0..out.rank()).filter(|&i| i != axis).collect(),
            collapsed_slice_dims: smallvec![axis],
            start_index_map: smallvec![axis],
            ..GatherDims::default()
        },
        slice_sizes,
        mode: IndexMode::FillOrDrop,
        fill: Scalar::zero(out.dtype),
        sorted: false,
        unique: false,
        wrap: false,
    };
    b.push(Kind::Gather(Box::new(gathering)), &[x, indices], out.into())
}
