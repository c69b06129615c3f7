//! Owned objects over the PJRT C API: plugins, clients, devices, buffers, executables.
//!
//! Whatever a client makes keeps it alive, so that objects may be dropped in any order. A plugin is never unloaded: its
//! threads may run on. All types may be used from any thread. Errors of a run surface where its results are used.
//! Read next: `plugin.rs`, `client.rs`, `executable.rs`.

mod buffer;
mod client;
mod compiled;
mod device;
mod dtype;
mod event;
mod executable;
mod hlo;
mod options;
mod plugin;
mod probe;
mod proto;
mod store;
mod topology;

pub use crate::result::OptionValue;
pub use buffer::{Buffer, Held, HostCopy};
pub use client::Client;
pub use compiled::{Compiled, CompiledMemory};
pub use device::{Device, DeviceDescription, Memory, MemoryStats};
pub use event::Event;
pub use executable::{Executable, Results};
pub use options::CompileOptions;
pub use plugin::Plugin;
pub use probe::{Probe, Verdict, answer};
pub use store::Store;
pub use topology::Topology;

use ferrax_base::{ErrorKind, Result};

/// What a plugin need not offer: `None` where it does not.
fn offered<T>(asked: Result<T>) -> Result<Option<T>> {
    match asked {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if matches!(*error.0, ErrorKind::NotImplemented(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
