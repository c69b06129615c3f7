//! Owned objects over the PJRT C API: plugins, clients, devices, buffers, executables.
//!
//! Whatever a client makes keeps it alive, so that objects may be dropped in any order. A plugin is never unloaded: its
//! threads may run on. All types may be used from any thread. Errors of a run surface where its results are used.
//! Read next: `plugin.rs`, `client.rs`, `executable.rs`.

mod buffer;
mod client;
mod dtype;
mod event;
mod executable;
mod options;
mod plugin;

pub use crate::result::OptionValue;
pub use buffer::{Buffer, HostCopy};
pub use client::Client;
pub use event::Event;
pub use executable::{Executable, Results};
pub use options::CompileOptions;
pub use plugin::Plugin;
