//! NVIDIA's driver and compiler, from their shared libraries up to a program that runs.
//!
//! Nothing is linked: [`library`] opens what is on the machine when somebody asks for a GPU, and says what it looked for where
//! that fails. [`sys`] declares, [`result`] turns codes into errors, and above it are owned objects: a context with its
//! streams, memory and arrays ([`Device`]), the compiler with its kept cubins ([`Compiler`]), a program ([`Executable`]).
//!
//! Invariants: an object keeps alive what it was made from. A call of the driver stands between
//! [`context::Context::enter`] and the end of what that gives, so that other users of CUDA in the process find their own context as
//! they left it. All work on arrays is ordered by the device's compute stream: whatever another stream does to an array, that
//! one waits for before it uses or frees it.
//!
//! Read next: `device.rs`, then `executable.rs` and `run.rs`.

pub mod array;
pub mod compiler;
pub mod context;
pub mod cubins;
pub mod device;
pub mod executable;
mod graph;
mod lend;
pub mod libraries;
pub mod library;
pub mod memory;
pub mod module;
pub mod result;
mod run;
pub mod staging;
pub mod stream;
pub mod sys;
mod transfer;

pub use array::DeviceArray;
pub use compiler::{Compiler, Target};
pub use context::Context;
pub use cubins::{Cubins, Shelf};
pub use device::{Device, Stats};
pub use executable::Executable;
pub use lend::Lent;
pub use libraries::Libraries;
pub use result::Driver;
