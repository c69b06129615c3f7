//! Products and convolutions as the products that kernels of whole matrices take (`library/dot`).
//!
//! Operands whose elements do not lie as they should are brought in order, and filled up with zeros to whole pieces. Where a
//! product has few results but long sums, the sums are cut into parts of one length, which are products of their own, and
//! then added up: the shape alone decides how. A convolution is the product of its window with the elements under it, which
//! are written down for every place unless the matrix units' kernel finds them itself; one with few places but a large window, as that of a gradient by a window, is a
//! product for every place. Small ones stay what they are.

use crate::library::conv::windows;
use crate::library::dot::{FEW, Matrix, Side, TILE};
use crate::routine::{Libraries, is_worth};
use ferrax_base::shape::product as extent;
use ferrax_base::{DType, Scalar};
use ferrax_loops::kind::PadConfig;
use ferrax_loops::{Builder, ConvDims, DotDims, Kind, ReduceOp, SliceDims, Type, ValueId};

/// Products and sums of a product that is worth bringing operands in order.
const LARGE: usize = 1 << 22;
/// Tiles that keep a GPU busy, and the length of a sum that is not cut.
const BUSY: usize = 128;
const LONG: usize = 512;
/// Bytes of a convolution's elements under all windows, and places of one that is a product for each.
const PATCHES: usize = 1 << 30;
const PLACES: usize = 32;

/// Whether kernels of whole matrices are for these dtypes.
fn takes(x: DType, y: DType, out: DType) -> bool {
    x == y && matches!(x, DType::F32 | DType::BF16 | DType::F16) && (out == x || out == DType::F32)
}

/// Whether a library's are.
fn library_takes(l: Libraries, x: DType, y: DType, out: DType) -> bool {
    let wide = matches!(x, DType::F64 | DType::C64 | DType::C128) && x == y && out == x;
    l.products && (wide || takes(x, y, out))
}

/// Whether a library computes a product of these dtypes whose operands are in order.
pub fn by_library(l: Libraries, [x, y, out]: [DType; 3], extents: [usize; 4]) -> bool {
    is_worth(extents) && library_takes(l, x, y, out)
}

/// A product; in its best form where it is large.
pub fn product(b: &mut Builder, dims: &DotDims, [x, y]: [ValueId; 2], ty: &Type, l: Libraries) -> ValueId {
    let d = b.ty(x).dtype;
    let left = Side::of(x, b.ty(x), &dims.lhs_batch, &dims.lhs_contract);
    let right = Side::of(y, b.ty(y), &dims.rhs_batch, &dims.rhs_contract);
    let [batch, m, n, k] =
        [left.extent(&left.batch), left.extent(&left.free), right.extent(&right.free), left.extent(&left.contract)];
    let small = batch * m * n <= FEW || m == 1 || n == 1 || batch.saturating_mul(m * n).saturating_mul(k) < LARGE;
    let piece = 16 / d.size().max(1);
    let called = by_library(l, [d, b.ty(y).dtype, ty.dtype], [batch, m, n, k]);
    let splits = if called { 1 } else { splits(batch * m.div_ceil(TILE) * n.div_ceil(TILE), k) };
    let regular = |side: &Side| Matrix::of(side, piece).is_some_and(|m| !called || m.layout().is_some());
    if small || !(called || takes(d, b.ty(y).dtype, ty.dtype)) || (splits == 1 && regular(&left) && regular(&right)) {
        return b.push(Kind::Dot(Box::new(dims.clone())), &[x, y], ty.clone());
    }
    let (x, y) = (in_order(b, &left, piece, splits), in_order(b, &right, piece, splits));
    let whole = |contract: usize, batch: &[usize]| DotDims {
        lhs_contract: [contract].as_slice().into(),
        rhs_contract: [contract].as_slice().into(),
        lhs_batch: batch.into(),
        rhs_batch: batch.into(),
        tf32: dims.tf32,
    };
    let result = if splits == 1 {
        b.push(Kind::Dot(Box::new(whole(2, &[0]))), &[x, y], Type::new(ty.dtype, &[batch, m, n]))
    } else {
        let parts = Type::new(DType::F32, &[batch, splits, m, n]);
        let parts = b.push(Kind::Dot(Box::new(whole(3, &[0, 2]))), &[x, y], parts);
        let sum = b.reduce(ReduceOp::Sum, parts, &[1]);
        b.convert(sum, ty.dtype)
    };
    b.reshape(result, &ty.shape)
}

/// How many parts sums of `k` products are cut into where there are so many tiles.
fn splits(tiles: usize, k: usize) -> usize {
    let most = (BUSY / tiles.max(1)).min(k / LONG);
    if tiles > BUSY / 2 || most < 2 { 1 } else { 1 << most.ilog2() }
}

/// An operand as \[batch, free, contracted\], or \[batch, free, parts, contracted of a part\].
fn in_order(b: &mut Builder, side: &Side, piece: usize, splits: usize) -> ValueId {
    let axes: Vec<usize> = [&side.batch[..], &side.free, &side.contract].concat();
    let mut v = side.value;
    if !axes.is_sorted() {
        let shape: Vec<usize> = axes.iter().map(|&a| side.shape[a]).collect();
        v = b.push(Kind::Transpose(axes.as_slice().into()), &[v], Type::new(side.dtype, &shape));
    }
    let (batch, free, k) = (side.extent(&side.batch), side.extent(&side.free), side.extent(&side.contract));
    v = b.reshape(v, &[batch, free, k]);
    let filled = k.next_multiple_of(piece * splits);
    if filled > k {
        let zero = b.scalar(Scalar::zero(side.dtype));
        let behind = PadConfig { low: 0, high: (filled - k) as i64, interior: 0 };
        let pads = Box::new([PadConfig::default(), PadConfig::default(), behind]);
        v = b.push(Kind::Pad(pads), &[v, zero], Type::new(side.dtype, &[batch, free, filled]));
    }
    if splits > 1 { b.reshape(v, &[batch, free, splits, filled / splits]) } else { v }
}

/// A convolution as products; none where it is small, or neither way is for it.
pub fn convolution(b: &mut Builder, dims: &ConvDims, [x, w]: [ValueId; 2], ty: &Type, l: Libraries) -> Option<ValueId> {
    let (image, window) = (b.ty(x).clone(), b.ty(w).clone());
    let spatial = image.shape.len() - 2;
    let (taps, places) =
        (extent(window.shape[..spatial].iter().copied()), extent(ty.shape[1..=spatial].iter().copied()));
    let under = image.shape[0].saturating_mul(places).saturating_mul(taps * image.shape[spatial + 1]);
    let large = under.saturating_mul(ty.shape[spatial + 1]) >= LARGE;
    let forms = |x, w, y| takes(x, w, y) || library_takes(l, x, w, y);
    if windows(dims, [&image, &window, ty]).is_some()
        || dims.groups != 1
        || !large
        || !forms(image.dtype, window.dtype, ty.dtype)
    {
        return None;
    }
    if under.saturating_mul(image.dtype.size()) <= PATCHES && taps <= TILE {
        let patches = patches(b, dims, x, &window.shape[..spatial], &ty.shape[1..=spatial]);
        let first = spatial + 1;
        let contracting = contracting(first..=first + spatial, spatial, dims.tf32);
        return Some(product(b, &contracting, [patches, w], ty, l));
    }
    (places <= PLACES).then(|| by_places(b, dims, [x, w], ty, l))
}

/// All these axes of the left operand, and all but the last of the right one.
fn contracting(left: std::ops::RangeInclusive<usize>, spatial: usize, tf32: bool) -> DotDims {
    DotDims {
        lhs_contract: left.collect(),
        rhs_contract: (0..=spatial).collect(),
        lhs_batch: [].as_slice().into(),
        rhs_batch: [].as_slice().into(),
        tf32,
    }
}

/// Every `stride`-th of `count` indices from `start` on along an axis.
fn sliced(b: &mut Builder, v: ValueId, axis: usize, [start, count, stride]: [usize; 3]) -> ValueId {
    let ty = b.ty(v).clone();
    let (mut dims, mut shape) = (
        SliceDims {
            start: ty.shape.iter().map(|_| 0).collect(),
            limit: ty.shape.clone(),
            stride: ty.shape.iter().map(|_| 1).collect(),
        },
        ty.shape.clone(),
    );
    (dims.start[axis], dims.limit[axis], dims.stride[axis]) = (start, start + (count - 1) * stride + 1, stride);
    if start == 0 && stride == 1 && count == shape[axis] {
        return v;
    }
    shape[axis] = count;
    b.push(Kind::Slice(Box::new(dims)), &[v], Type { dtype: ty.dtype, shape })
}

/// The elements under the window at every place: \[batch, places…, window…, features\].
fn patches(b: &mut Builder, dims: &ConvDims, x: ValueId, window: &[usize], places: &[usize]) -> ValueId {
    let mut v = x;
    for s in 0..window.len() {
        let parts: Vec<ValueId> = (0..window[s])
            .map(|t| {
                let part = sliced(b, v, s + 1, [t * dims.rhs_dilation[s], places[s], dims.strides[s]]);
                let mut shape = b.ty(part).shape.to_vec();
                shape.insert(shape.len() - 1, 1);
                b.reshape(part, &shape)
            })
            .collect();
        let axis = b.ty(parts[0]).shape.len() - 2;
        v = super::rewrite::concat(b, &parts, axis);
    }
    v
}

/// A product for every place of the window.
fn by_places(b: &mut Builder, dims: &ConvDims, [x, w]: [ValueId; 2], ty: &Type, l: Libraries) -> ValueId {
    let (window, spatial) = (b.ty(w).shape.clone(), ty.shape.len() - 2);
    let (batch, features) = (ty.shape[0], ty.shape[spatial + 1]);
    let places = &ty.shape[1..=spatial];
    let parts: Vec<ValueId> = (0..extent(places.iter().copied()))
        .map(|number| {
            let (mut v, mut rest) = (x, number);
            for s in (0..spatial).rev() {
                let at = rest % places[s] * dims.strides[s];
                rest /= places[s];
                v = sliced(b, v, s + 1, [at, window[s], dims.rhs_dilation[s]]);
            }
            let one = Type::new(ty.dtype, &[batch, features]);
            let one = product(b, &contracting(1..=spatial + 1, spatial, dims.tf32), [v, w], &one, l);
            b.reshape(one, &[batch, 1, features])
        })
        .collect();
    let all = super::rewrite::concat(b, &parts, 1);
    b.reshape(all, &ty.shape)
}
