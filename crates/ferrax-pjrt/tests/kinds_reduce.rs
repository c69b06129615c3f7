//! Reductions and dot products on the plugin against the CPU engine; the rows are those of every engine.

mod against;
#[path = "../../ferrax-cpu/tests/compare/reduce.rs"]
mod rows;

against::tests!(reductions, nan_and_infinities_in_sums, half_sums_are_single, arg_reductions, reductions_with_a_body, dots, products_are_of_full_precision);
