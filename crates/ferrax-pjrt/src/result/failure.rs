//! Errors of a plugin as errors of ferrax: the kind by XLA's code, the text as XLA writes it, with the code before it.

use super::text;
use crate::sys::*;
use ferrax_base::{Error, ErrorKind, error};
use std::ffi::c_int;

/// The names of XLA's codes, by number.
const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The name of one of XLA's codes; `None` where it has none by this number.
pub fn code_name(code: PJRT_Error_Code) -> Option<&'static str> {
    CODES.get(usize::try_from(code).ok()?).copied()
}

/// The number of one of XLA's codes by its name.
pub(crate) fn code_number(name: &str) -> Option<PJRT_Error_Code> {
    CODES.iter().position(|code| *code == name)?.try_into().ok()
}

/// What an error of the plugin says; it is freed.
///
/// # Safety
/// `failed` is an error that the caller owns.
#[cold]
pub unsafe fn take_error(api: &PJRT_Api, failed: *mut PJRT_Error) -> Error {
    // SAFETY: the caller's promise.
    let (code, message) = unsafe { (code(api, failed), message(api, failed)) };
    if let Some(destroy) = api.PJRT_Error_Destroy {
        let mut args = PJRT_Error_Destroy_Args { error: failed, ..Args::new() };
        // SAFETY: the caller owns the error, which nobody uses after this.
        unsafe { destroy(&raw mut args) };
    }
    described(code, &message)
}

/// An error with a code of XLA and its text.
fn described(code: c_int, message: &str) -> Error {
    let name = code_name(code).map_or_else(|| format!("error {code}"), str::to_owned);
    let text = Box::new(format!("{name}: {message}"));
    let kind = match name.as_str() {
        "RESOURCE_EXHAUSTED" => ErrorKind::Memory,
        "UNIMPLEMENTED" => ErrorKind::NotImplemented,
        _ => ErrorKind::Runtime,
    };
    kind(text).into()
}

/// # Safety
/// `failed` is alive.
unsafe fn code(api: &PJRT_Api, failed: *const PJRT_Error) -> c_int {
    const UNKNOWN: c_int = 2;
    let Some(get) = api.PJRT_Error_GetCode else { return UNKNOWN };
    let mut args = PJRT_Error_GetCode_Args { error: failed, ..Args::new() };
    // SAFETY: the error is alive.
    let none = unsafe { get(&raw mut args) };
    if none.is_null() {
        return args.code;
    }
    if let Some(destroy) = api.PJRT_Error_Destroy {
        let mut args = PJRT_Error_Destroy_Args { error: none, ..Args::new() };
        // SAFETY: the call gave this second error to us.
        unsafe { destroy(&raw mut args) };
    }
    UNKNOWN
}

/// # Safety
/// `failed` is alive.
unsafe fn message(api: &PJRT_Api, failed: *const PJRT_Error) -> String {
    let Some(get) = api.PJRT_Error_Message else { return "the plugin gives no text".into() };
    let mut args = PJRT_Error_Message_Args { error: failed, ..Args::new() };
    // SAFETY: the error is alive, and so is its text until it is freed.
    unsafe {
        get(&raw mut args);
        text(args.message, args.message_size)
    }
}

/// An error for a table of functions that cannot be used.
#[cold]
pub(crate) fn unusable(name: &str, path: &std::path::Path, what: impl std::fmt::Display) -> Error {
    error!(Runtime, "the PJRT plugin {name:?} at {} cannot be used: {what}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_become_kinds_and_stay_in_the_text() {
        let kind = |code| described(code, "text");
        assert!(matches!(*kind(8).0, ErrorKind::Memory(_)));
        assert!(matches!(*kind(3).0, ErrorKind::Runtime(_)));
        assert!(matches!(*kind(12).0, ErrorKind::NotImplemented(_)));
        assert!(matches!(*kind(13).0, ErrorKind::Runtime(_)));
        assert_eq!(kind(13).to_string(), "INTERNAL: text");
        assert_eq!(kind(99).to_string(), "error 99: text");
        assert_eq!(kind(-1).to_string(), "error -1: text");
    }
}
