//! Kernels of the rows of every engine (`ferrax-cpu/tests/compare/movement.rs`), on the host, against the CPU engine.

mod against;
#[path = "../../ferrax-cpu/tests/compare/movement.rs"]
mod rows;

against::tests!(sources, movement, dynamic_slices, gathers, gathers_that_wrap, scatters, movements_one_after_another);
