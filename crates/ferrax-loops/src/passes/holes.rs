//! Convolutions of arrays with holes: transposed convolutions, and gradients of convolutions with strides.
//!
//! An array with `d - 1` zeros between its elements is convolved as `d` arrays without: result `d q + f` sees every `d`-th cell of
//! the kernel alone, from one that `f` says. So each phase `f` of the results is a convolution of the array as it is with a part
//! of the kernel, and the phases are put side by side; what a kernel's cell makes of a hole is left out of the sums.

use super::{live_nodes, rewritten};
use crate::kind::{ConvDims, SliceDims};
use crate::{Builder, Graph, Kind, Node, PadConfig, Type, ValueId};
use ferrax_base::{Scalar, Shape};
use smallvec::SmallVec;
use std::sync::Arc;

/// Phases that one convolution becomes, at most.
const MOST: usize = 64;
/// Products that a convolution takes, at least: fewer cost less than several convolutions.
const LEAST: usize = 1 << 16;

/// The graph with convolutions of arrays without holes; itself where there are none with.
pub fn holes(graph: Arc<Graph>) -> Arc<Graph> {
    let g = &*graph;
    if !g.nodes.iter().any(|node| padding(g, node).is_some()) {
        return graph;
    }
    rewritten(g, &live_nodes(g), |_, node, b, map| {
        let (Some((of, config)), Kind::Conv(dims)) = (padding(g, node), &node.kind) else { return false };
        let at = |v: ValueId| map[v.0 as usize];
        let [x, fill] = [at(of.inputs[0]), at(of.inputs[1])];
        let made = Phases { x, fill, kernel: at(node.inputs[1]), config, dims, out: g.ty(node.first) }.all(b);
        map.push(made);
        true
    })
}

/// The node that puts holes between the elements of what a node convolves, and how.
fn padding<'g>(g: &'g Graph, node: &Node) -> Option<(&'g Node, &'g [PadConfig])> {
    let Kind::Conv(dims) = &node.kind else { return None };
    let of = g.maker(node.inputs[0])?;
    let Kind::Pad(config) = &of.kind else { return None };
    let Kind::Const(fill) = g.maker(of.inputs[1])?.kind else { return None };
    let rank = config.len() - 2;
    let plain = |k: usize| dims.strides[k] == 1 && dims.rhs_dilation[k] == 1;
    let taken = (0..rank).all(|k| config[k + 1].interior == 0 || plain(k));
    let phases: usize = (0..rank).map(|k| config[k + 1].interior + 1).product();
    let kernel = g.ty(node.inputs[1]);
    let products = g.ty(node.first).size().saturating_mul(kernel.size() / kernel.shape[rank + 1].max(1));
    let empty = g.ty(of.inputs[0]).size() == 0;
    let fits = taken && (2..=MOST).contains(&phases) && products >= LEAST && !empty;
    let outer = |c: &PadConfig| c.interior == 0;
    (fits && fill.to_f64() == 0.0 && outer(&config[0]) && outer(&config[rank + 1])).then_some((of, config))
}

/// A convolution by phases.
struct Phases<'a> {
    x: ValueId,
    fill: ValueId,
    kernel: ValueId,
    config: &'a [PadConfig],
    dims: &'a ConvDims,
    out: &'a Type,
}

impl Phases<'_> {
    /// The whole result.
    fn all(&self, b: &mut Builder) -> ValueId {
        let whole = self.side_by_side(b, 0, &mut Shape::new());
        if b.ty(whole) == self.out {
            return whole;
        }
        // The last phases have a result too many.
        let rank = self.out.shape.len();
        let dims = SliceDims {
            start: Shape::from_elem(0, rank),
            limit: self.out.shape.clone(),
            stride: Shape::from_elem(1, rank),
        };
        b.push(Kind::Slice(Box::new(dims)), &[whole], self.out.clone())
    }

    /// The results of all phases along the spatial axes from `axis` on, those before being in phases as `chosen` says.
    fn side_by_side(&self, b: &mut Builder, axis: usize, chosen: &mut Shape) -> ValueId {
        if axis == self.dims.strides.len() {
            return self.phase(b, chosen);
        }
        let count = self.config[axis + 1].interior + 1;
        let parts: SmallVec<[ValueId; 4]> = (0..count)
            .map(|f| {
                chosen.push(f);
                let part = self.side_by_side(b, axis + 1, chosen);
                chosen.pop();
                part
            })
            .collect();
        if count == 1 {
            return parts[0];
        }
        // A new axis behind this one, of one phase each.
        let mut ty = b.ty(parts[0]).clone();
        ty.shape.insert(axis + 2, 1);
        let parts: SmallVec<[ValueId; 4]> = parts.iter().map(|&part| b.reshape(part, &ty.shape)).collect();
        ty.shape[axis + 2] = count;
        let mut merged = ty.shape.clone();
        let all = b.push(Kind::Concat(axis + 2), &parts, ty);
        merged[axis + 1] *= merged.remove(axis + 2);
        b.reshape(all, &merged)
    }

    /// The results of one phase.
    fn phase(&self, b: &mut Builder, chosen: &[usize]) -> ValueId {
        let (x, kernel) = (b.ty(self.x).clone(), b.ty(self.kernel).clone());
        let rank = chosen.len();
        let (mut config, mut padded) = (SmallVec::<[PadConfig; 5]>::from_slice(self.config), x.clone());
        let mut cells = SliceDims {
            start: Shape::from_elem(0, rank + 2),
            limit: kernel.shape.clone(),
            stride: Shape::from_elem(1, rank + 2),
        };
        let (mut part, mut out) = (kernel.clone(), self.out.clone());
        for (k, &f) in chosen.iter().enumerate() {
            let (n, taps, d) = (x.shape[k + 1], kernel.shape[k], config[k + 1].interior + 1);
            if d == 1 {
                continue;
            }
            let low = config[k + 1].low;
            let first = (low - f as i64).rem_euclid(d as i64);
            // Where the first cell lies beside the first result.
            let begin = (f as i64 + first - low) / d as i64;
            let count = taps.saturating_sub(first as usize).div_ceil(d);
            out.shape[k + 1] = self.out.shape[k + 1].div_ceil(d);
            (cells.start[k], cells.stride[k], part.shape[k]) = ((first as usize).min(taps), d, count);
            let high = (out.shape[k + 1] + count) as i64 - 1 - n as i64 + begin;
            config[k + 1] = PadConfig { low: -begin, high, interior: 0 };
        }
        if part.size() == 0 {
            let zero = b.scalar(Scalar::zero(out.dtype));
            return b.broadcast(zero, &out.shape, &[]);
        }
        for (extent, c) in padded.shape.iter_mut().zip(&config) {
            *extent = (*extent as i64 + c.low + c.high) as usize;
        }
        let taken = b.push(Kind::Slice(Box::new(cells)), &[self.kernel], part);
        let around = b.push(Kind::Pad(config.as_slice().into()), &[self.x, self.fill], padded);
        b.push(Kind::Conv(Box::new(self.dims.clone())), &[around, taken], out)
    }
}
