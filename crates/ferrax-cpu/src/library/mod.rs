//! Kernels of their own: what a node that is neither elementwise nor control flow computes.
//!
//! Each file takes operands and results as [`In`](crate::elementwise::kernel::In) and
//! [`Out`](crate::elementwise::kernel::Out) and shares out its work over the pool. Plans and programs are not known
//! here. Read next: `movement.rs`, `reduce.rs`, `matmul/mod.rs`.

pub mod columns;
pub mod conv;
pub mod dot;
pub mod fft;
pub mod finite;
pub mod gather;
pub(crate) mod known;
pub mod linalg;
pub mod matmul;
pub mod movement;
pub mod moves;
pub mod places;
pub mod random;
pub mod reduce;
pub mod scan;
pub mod scatter;
pub mod short_rows;
pub mod sort;
pub mod sums;
pub mod touch;
pub mod transposition;
pub mod views;
pub mod windows;
