//! One function per call of the PJRT C API: arguments in, `Result` out.
//!
//! A function that the plugin's table lacks, and an error that the plugin gives, are errors of ferrax; XLA's code and
//! text stay as they are. Handles are plain addresses here, and strings and lists are copied before they can end.
//! Source: the header's comments. Read next: `calls.rs`, then [`crate::safe`].

mod calls;
mod failure;
mod value;

pub use calls::*;
pub use failure::{code_name, take_error};
pub(crate) use failure::{code_number, unusable};
pub use value::{NamedValues, OptionValue, named_values};

use crate::sys::{Args, Call, PJRT_Api};
use ferrax_base::{Result, error};
use std::ffi::c_char;

/// Calls a function of the table.
///
/// # Safety
/// The arguments are as the function wants them.
#[inline]
pub unsafe fn call<A>(api: &PJRT_Api, function: Call<A>, name: &'static str, args: &mut A) -> Result<()> {
    let Some(function) = function else { return Err(missing(api, name)) };
    // SAFETY: the caller's promise; the arguments are alive during the call.
    let failed = unsafe { function(args) };
    if failed.is_null() {
        return Ok(());
    }
    // SAFETY: the function gave the error to its caller.
    Err(unsafe { take_error(api, failed) })
}

#[cold]
fn missing(api: &PJRT_Api, name: &str) -> ferrax_base::Error {
    let version = &api.pjrt_api_version;
    error!(
        NotImplemented,
        "the PJRT plugin has no function {name}: its API has version {}.{}, this one would need a newer one",
        version.major_version,
        version.minor_version
    )
}

/// Empty arguments of the type that a function takes.
#[inline]
fn arguments<A: Args>(_: Call<A>) -> A {
    A::new()
}

/// A string of the plugin, copied.
///
/// # Safety
/// `start` has `len` bytes, or is null and there are none.
pub unsafe fn text(start: *const c_char, len: usize) -> String {
    // SAFETY: the caller's promise.
    String::from_utf8_lossy(unsafe { list(start.cast::<u8>(), len) }).into_owned()
}

/// A list of the plugin.
///
/// # Safety
/// `start` has `len` elements that outlive the borrow, or there are none.
pub unsafe fn list<'a, T>(start: *const T, len: usize) -> &'a [T] {
    if start.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(start, len) }
}
