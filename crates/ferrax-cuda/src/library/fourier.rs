//! Fourier transforms by NVIDIA's library; without it they are products (`plan/rewrite.rs`).
//!
//! What the library makes of halved lines over several axes it also writes over what it reads, so that those are copied first.

use crate::plan::frame::Frame;
use crate::routine::{Routine, Transform};
use ferrax_base::{DType, Result};
use ferrax_loops::Node;
use ferrax_loops::fft::FftKind;

/// `Fft`, divided by nothing.
pub fn fourier(f: &mut Frame<'_>, node: &Node, kind: FftKind, axes: usize) -> Result<()> {
    let x = node.inputs[0];
    let whole = if kind == FftKind::Real { f.g.ty(x) } else { f.g.ty(node.first) };
    let (batch, lengths) = whole.shape.split_at(whole.shape.len() - axes);
    let double = matches!(whole.dtype, DType::F64 | DType::C128);
    let transform = Transform { kind, double, lengths: lengths.to_vec(), batch: batch.iter().product() };
    let mut from = f.span(x)?;
    if kind == FftKind::RealInverse {
        let (kept, copy) = (f.array(x)?, f.temporary(from.bytes));
        f.copy(kept, copy);
        from = f.p.span(copy);
    }
    f.call(Routine::Transform(transform), vec![from], node.first)
}
