//! Fourier transforms of the kernel IR.

/// What a [`crate::Kind::Fft`] node computes over the last axes of its operand, which the inverse ones divide by their
/// length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FftKind {
    /// Complex to complex.
    Forward,
    /// Complex to complex, inverse.
    Inverse,
    /// Real to the first half (n / 2 + 1) of its transform along the last axis.
    Real,
    /// The inverse of that; the result's shape says the length.
    RealInverse,
}
