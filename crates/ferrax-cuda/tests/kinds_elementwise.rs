//! Kernels of the rows of every engine (`ferrax-cpu/tests/compare/elementwise.rs`), on the host, against the CPU engine.

mod against;
#[path = "../../ferrax-cpu/tests/compare/elementwise.rs"]
mod rows;

against::tests!(
    unary,
    binary,
    comparisons_and_choices,
    conversions,
    conversions_near_ties,
    powers_divisions_and_precisions,
    bits
);
