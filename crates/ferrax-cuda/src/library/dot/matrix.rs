//! Operands of products as matrices in memory: rows of numbers side by side, one matrix for each batch.
//!
//! Kernels that copy whole pieces of 16 bytes take operands of this form alone; `mod.rs` has one for all others.

use super::Side;
use crate::print::body::Body;
use crate::routine::Layout;

/// An operand whose free axes are one, whose contracted axes are one, and one of the two has neighbours.
pub struct Matrix {
    /// Whether contracted elements lie side by side; elements of the free axis do otherwise.
    pub contracts_rows: bool,
    /// The distance from a row to the next one.
    pub stride: usize,
    /// Extents and strides of the batch axes.
    batch: Vec<(usize, usize)>,
}

/// Several axes as one: its extent and stride, where their elements lie at regular distances.
fn merged(axes: &[usize], shape: &[usize], strides: &[usize]) -> Option<(usize, usize)> {
    let mut one: Option<(usize, usize)> = None;
    for &a in axes.iter().rev().filter(|&&a| shape[a] != 1) {
        one = match one {
            None => Some((shape[a], strides[a])),
            Some((extent, stride)) if strides[a] == extent * stride => Some((extent * shape[a], stride)),
            Some(_) => return None,
        };
    }
    Some(one.unwrap_or((1, 0)))
}

impl Matrix {
    /// The matrices of an operand, whose rows can be read by pieces of `piece` elements; none where they cannot.
    pub fn of(side: &Side, piece: usize) -> Option<Matrix> {
        let mut strides = vec![1; side.shape.len()];
        for a in (1..side.shape.len()).rev() {
            strides[a - 1] = strides[a] * side.shape[a];
        }
        let (free, free_stride) = merged(&side.free, &side.shape, &strides)?;
        let (contract, contract_stride) = merged(&side.contract, &side.shape, &strides)?;
        let (contracts_rows, length, stride) = match (free_stride, contract_stride) {
            (stride, 1) => (true, contract, stride),
            (1, stride) => (false, free, stride),
            _ => return None,
        };
        let batch: Vec<(usize, usize)> = side.batch.iter().map(|&a| (side.shape[a], strides[a])).collect();
        let regular = |n: usize| n.is_multiple_of(piece);
        let all = regular(length) && regular(stride) && batch.iter().all(|b| b.0 == 1 || regular(b.1));
        all.then_some(Matrix { contracts_rows, stride, batch })
    }

    /// The matrices as a library takes them; none where they are not at one distance from each other.
    pub fn layout(&self) -> Option<Layout> {
        let (extents, strides): (Vec<usize>, Vec<usize>) = self.batch.iter().copied().unzip();
        let axes: Vec<usize> = (0..extents.len()).collect();
        let (_, batch_stride) = merged(&axes, &extents, &strides)?;
        Some(Layout { contracts_rows: self.contracts_rows, stride: self.stride, batch_stride })
    }

    /// The number of the first element of a batch's matrix.
    pub fn first(&self, body: &mut Body<'_>, batch: &str) -> String {
        let extents: Vec<usize> = self.batch.iter().map(|b| b.0).collect();
        let at = body.linear(batch);
        let indices = body.axes(at, &extents);
        let far = self.batch.iter().zip(indices).filter(|(b, _)| b.0 != 1);
        let terms: Vec<String> = far.map(|(b, index)| format!("{index} * {}", b.1)).collect();
        if terms.is_empty() { "0".to_owned() } else { body.index(terms.join(" + ")) }
    }
}
