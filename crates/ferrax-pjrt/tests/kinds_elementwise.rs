//! Elementwise nodes on the plugin against the CPU engine; the rows are those of every engine.

mod against;
#[path = "../../ferrax-cpu/tests/compare/elementwise.rs"]
mod rows;

against::tests!(unary, binary, comparisons_and_choices, conversions, conversions_near_ties, powers_divisions_and_precisions, bits);
