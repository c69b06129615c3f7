//! Functions of other languages as operations: the C interface of XLA's FFI.
//!
//! A library compiled against XLA's headers (or declarations of its own with that layout) exports handlers.
//! [`register`] makes one a target by name; [`ForeignCall`] is a call of a target in a kernel graph, which the embedded
//! CPU engine runs as any call of the host. Files, each using those before it: `sys` (declarations), `types`,
//! `attributes`, `context`, `api` (what handlers call), `targets`, `call`.
//!
//! The old interface of XLA's custom calls, version 0, whose functions take untyped addresses, is not here.
//! Read next: `sys.rs`, then `call.rs`.

mod api;
mod attributes;
mod call;
mod context;
mod sys;
mod targets;
mod types;

pub use attributes::{Attribute, Attributes};
pub use call::ForeignCall;

use ferrax_base::Result;

/// The addresses of a target's handlers; 0 where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handlers {
    /// Called once for a call site.
    pub instantiate: usize,
    /// Called before each run.
    pub prepare: usize,
    /// Called before each run, after `prepare`.
    pub initialize: usize,
    /// Called to run; always there.
    pub execute: usize,
}

/// Makes handlers a target.
///
/// # Errors
/// Without `execute`, of another version of the interface, and where the name has other handlers already.
///
/// # Safety
/// Each address must be that of a function of the interface (`XLA_FFI_Handler`) that stays loaded.
pub unsafe fn register(name: &str, platform: &str, handlers: Handlers) -> Result<()> {
    let function = |address: usize| {
        // SAFETY: the address of a handler, by the caller's contract; 0 becomes `None`
        unsafe { std::mem::transmute::<usize, Option<sys::XLA_FFI_Handler>>(address) }
    };
    let Handlers { instantiate, prepare, initialize, execute } = handlers;
    let bundle = sys::XLA_FFI_Handler_Bundle {
        instantiate: function(instantiate),
        prepare: function(prepare),
        initialize: function(initialize),
        execute: function(execute),
    };
    targets::add(name, platform, bundle).map_err(api::Failure::into_error)
}

/// Registers a type of objects that handlers keep, by the addresses of its id and of how its objects end (or 0).
///
/// # Errors
/// Where the name has another id already, or the id another name.
///
/// # Safety
/// `id` must be the address of an `XLA_FFI_TypeId` that may be written, `info` that of an `XLA_FFI_TypeInfo` or 0.
pub unsafe fn register_type(name: &str, id: usize, info: usize) -> Result<()> {
    let (id, info) = (id as *mut sys::XLA_FFI_TypeId, info as *const sys::XLA_FFI_TypeInfo);
    // SAFETY: by the caller's contract
    let (id, info) = unsafe { (&mut *id, info.as_ref()) };
    let deleter = info.and_then(|info| info.deleter);
    id.type_id = context::register_type(name, id.type_id, deleter).map_err(api::Failure::into_error)?;
    Ok(())
}
