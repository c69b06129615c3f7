//! Kernels of the rows of every engine (`ferrax-cpu/tests/compare/control.rs`), on the host, against the CPU engine.

mod against;
#[path = "../../ferrax-cpu/tests/compare/control.rs"]
mod rows;

against::tests!(whiles, scans, scans_of_nothing_and_without_state, switches);
