//! ferrax for Rust programs: devices, the dispatcher that runs operations, and executables of whole programs.
//!
//! [`init`] connects the dispatcher to `ferrax_ir::bind`; everything else in the workspace stages or transforms
//! operations, this crate runs them. There is no Python here.
//!
//! Read next: [`dispatch`] for how one operation runs, [`executable`] for programs, [`queue`] for those that take long, [`device`] for placement, [`engine`] for what computes,
//! [`function`] for transformations of closures, [`numpy`] for functions of arrays.

mod blame;
pub mod debug;
pub mod device;
pub mod direct;
pub mod dispatch;
pub mod engine;
pub mod executable;
pub mod function;
pub mod numpy;
mod partitioned;
pub mod queue;
mod report;
pub mod sharded;
mod sync;
pub mod watch;

pub use executable::{Executable, executable};
pub use ferrax_base::{Aval, Buffer, DType, Error, ErrorKind, Result, Scalar, Shape};
pub use ferrax_base::{error, long_work};
pub use ferrax_ir::{Array, DeviceId, JaxprRef, Value, Values};
pub use ferrax_ops as ops;
pub use function::{grad, jit, jvp, value_and_grad, vjp, vmap};

/// Makes operations on concrete values run through this crate. Cheap, and needed once; later calls do nothing.
pub fn init() {
    ferrax_ir::trace::set_evaluator(dispatch::evaluate);
    ferrax_ir::array::set_wait(queue::wait);
    ops::install();
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        queue::install();
        // What is made at its first use is made now: a fork meanwhile would leave the child waiting for the maker.
        dispatch::make_caches();
        executable::make_caches();
        ferrax_transform::programs::make_caches();
    });
}
