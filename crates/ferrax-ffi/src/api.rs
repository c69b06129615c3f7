//! The functions that handlers call: errors, state, types, tasks and futures.
//!
//! Every function checks the size of the struct that it gets, and answers what this runtime has not with an error.
//! Tasks of a handler run at once, in the thread that schedules them: the interface allows it, and nothing waits for
//! threads that a fork has not. Read next: `call.rs`.

use crate::context;
use crate::sys::*;
use crate::targets;
use ferrax_base::{Error, error};
use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// An error of a handler, or for one.
pub struct Failure {
    code: c_int,
    message: CString,
}

impl Failure {
    /// An error with one of the interface's codes.
    pub(crate) fn new(code: c_int, message: &str) -> Failure {
        let message = message.replace('\0', " ");
        Failure { code, message: CString::new(message).unwrap_or_default() }
    }

    /// The error as this library's, with the name of its code in front, as XLA writes them.
    pub(crate) fn into_error(self) -> Error {
        let name = CODES.get(self.code.max(0) as usize).unwrap_or(&"UNKNOWN");
        let message = self.message.to_string_lossy().into_owned();
        error!(Runtime, "{name}: {message}")
    }

    fn into_raw(self) -> *mut Failure {
        Box::into_raw(Box::new(self))
    }

    /// What a handler returned.
    ///
    /// # Safety
    /// `raw` must be null or come from the interface's `XLA_FFI_Error_Create`, and belong to the caller.
    pub(crate) unsafe fn take(raw: *mut Failure) -> Option<Failure> {
        // SAFETY: as said above
        (!raw.is_null()).then(|| *unsafe { Box::from_raw(raw) })
    }
}

/// The names of the codes.
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

/// What signals the end of an asynchronous handler. Two own it: who signals, and the call that waits.
pub struct Future {
    end: Mutex<Option<Result<(), Failure>>>,
    ended: Condvar,
}

impl Future {
    fn end(&self, with: Result<(), Failure>) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(with);
        self.ended.notify_all();
    }

    /// Waits for the end.
    ///
    /// # Safety
    /// `raw` must come from the interface's `XLA_FFI_Future_Create`, and nobody may have waited for it.
    pub(crate) unsafe fn wait(raw: *mut Future) -> Result<(), Failure> {
        // SAFETY: as said above; this is the reference of the one who waits
        let future = unsafe { Arc::from_raw(raw.cast_const()) };
        let mut end = future.end.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(end) = end.take() {
                return end;
            }
            end = future.ended.wait(end).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Implements the functions: `name(args: Struct) body`, whose error goes to the caller.
macro_rules! functions {
    ($(fn $name:ident($args:ident: $ty:ident) $body:block)*) => {$(
        unsafe extern "C" fn $name(raw: *mut $ty) -> *mut Failure {
            answer(|| {
                // SAFETY: handlers give the address of a struct of theirs, which nobody else uses meanwhile
                let $args: &mut $ty = unsafe { whole(raw)? };
                $body
            })
        }
    )*};
}

/// The caller's struct.
///
/// # Safety
/// `raw` must be null or point to a struct that may be written, as long as it says.
unsafe fn whole<'a, T: Struct>(raw: *mut T) -> Result<&'a mut T, Failure> {
    // SAFETY: as said above
    let args =
        unsafe { raw.as_mut() }.ok_or_else(|| Failure::new(XLA_FFI_Error_Code_INVALID_ARGUMENT, "no arguments"))?;
    if args.struct_size() < T::SIZE {
        let text = format!("a struct of {} bytes where one of {} is expected", args.struct_size(), T::SIZE);
        return Err(Failure::new(XLA_FFI_Error_Code_INVALID_ARGUMENT, &text));
    }
    Ok(args)
}

/// Runs what may fail or panic; no panic reaches foreign code.
fn answer(f: impl FnOnce() -> Result<(), Failure>) -> *mut Failure {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
    let panicked = || Err(Failure::new(XLA_FFI_Error_Code_INTERNAL, "a panic in ferrax's FFI"));
    result.unwrap_or_else(|_| panicked()).err().map_or(std::ptr::null_mut(), Failure::into_raw)
}

/// The context of a call.
fn context_of(raw: *const XLA_FFI_ExecutionContext) -> Result<&'static XLA_FFI_ExecutionContext, Failure> {
    // SAFETY: handlers pass on the address that their call frame has, during the call
    unsafe { raw.as_ref() }.ok_or_else(|| Failure::new(XLA_FFI_Error_Code_INVALID_ARGUMENT, "no execution context"))
}

fn type_id(raw: *const XLA_FFI_TypeId) -> Result<i64, Failure> {
    // SAFETY: handlers give the address of a type id that lives as long as their library
    let id = unsafe { raw.as_ref() };
    id.map(|id| id.type_id).ok_or_else(|| Failure::new(XLA_FFI_Error_Code_INVALID_ARGUMENT, "no type id"))
}

fn text(span: XLA_FFI_ByteSpan) -> Result<String, Failure> {
    let invalid = || Failure::new(XLA_FFI_Error_Code_INVALID_ARGUMENT, "a name that is no UTF-8");
    if span.ptr.is_null() {
        return Err(invalid());
    }
    // SAFETY: handlers give the address of as many bytes as they say
    let bytes = unsafe { std::slice::from_raw_parts(span.ptr.cast::<u8>(), span.len) };
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| invalid())
}

functions! {
    fn handler_register(args: XLA_FFI_Handler_Register_Args) {
        targets::add(&text(args.name)?, &text(args.platform)?, args.bundle)
    }

    fn type_register(args: XLA_FFI_Type_Register_Args) {
        // SAFETY: handlers give the addresses of an id and of functions that live as long as their library
        let (id, info) = unsafe { (args.type_id.as_mut(), args.type_info.as_ref()) };
        let Some(id) = id else {
            return Err(Failure::new(XLA_FFI_Error_Code_INVALID_ARGUMENT, "no type id"));
        };
        id.type_id = context::register_type(&text(args.name)?, id.type_id, info.and_then(|i| i.deleter))?;
        Ok(())
    }

    fn context_get(args: XLA_FFI_ExecutionContext_Get_Args) {
        let id = type_id(args.type_id)?;
        let text = format!("The execution context holds no data of the type with id {id}");
        Err(Failure::new(XLA_FFI_Error_Code_NOT_FOUND, &text))
    }

    fn schedule(args: XLA_FFI_ThreadPool_Schedule_Args) {
        let Some(task) = args.task else {
            return Err(Failure::new(XLA_FFI_Error_Code_INVALID_ARGUMENT, "no task"));
        };
        // SAFETY: the handler's own function and data
        unsafe { task(args.data) };
        Ok(())
    }

    fn num_threads(args: XLA_FFI_ThreadPool_NumThreads_Args) {
        // SAFETY: handlers give the address of a number of theirs
        if let Some(n) = unsafe { args.num_threads.as_mut() } {
            *n = 1;
        }
        Ok(())
    }

    fn future_create(args: XLA_FFI_Future_Create_Args) {
        let future = Arc::new(Future { end: Mutex::new(None), ended: Condvar::new() });
        args.future = Arc::into_raw(future.clone()).cast_mut();
        std::mem::forget(future); // the reference of the one who signals
        Ok(())
    }

    fn future_set(args: XLA_FFI_Future_SetAvailable_Args) {
        signal(args.future, Ok(()))
    }

    fn future_fail(args: XLA_FFI_Future_SetError_Args) {
        // SAFETY: the handler hands its error over
        let failure = unsafe { Failure::take(args.error) };
        signal(args.future, failure.map_or(Ok(()), Err))
    }

    fn run_id(args: XLA_FFI_RunId_Get_Args) {
        args.run_id = context_of(args.ctx)?.run;
        Ok(())
    }

    fn device_ordinal(args: XLA_FFI_DeviceOrdinal_Get_Args) {
        context_of(args.ctx)?;
        args.device_ordinal = 0;
        Ok(())
    }
}

fn signal(future: *mut Future, end: Result<(), Failure>) -> Result<(), Failure> {
    if future.is_null() {
        return Err(Failure::new(XLA_FFI_Error_Code_INVALID_ARGUMENT, "no future"));
    }
    // SAFETY: the reference of the one who signals, which `future_create` made; who signals does so once
    unsafe { Arc::from_raw(future.cast_const()) }.end(end);
    Ok(())
}

unsafe extern "C" fn state_set(raw: *mut XLA_FFI_State_Args) -> *mut Failure {
    answer(|| {
        // SAFETY: handlers give the address of a struct of theirs
        let args = unsafe { whole(raw)? };
        context_of(args.ctx)?.set(args.stage, type_id(args.type_id)?, args.state)
    })
}

unsafe extern "C" fn state_get(raw: *mut XLA_FFI_State_Args) -> *mut Failure {
    answer(|| {
        // SAFETY: handlers give the address of a struct of theirs
        let args = unsafe { whole(raw)? };
        args.state = context_of(args.ctx)?.get(args.stage, type_id(args.type_id)?)?;
        Ok(())
    })
}

/// What a device of its own has, and the CPU has not.
unsafe extern "C" fn no_device(_: *mut c_void) -> *mut Failure {
    let text = "The CPU has no streams and no device memory: allocate with malloc or new";
    Failure::new(XLA_FFI_Error_Code_UNIMPLEMENTED, text).into_raw()
}

unsafe extern "C" fn error_create(raw: *mut XLA_FFI_Error_Create_Args) -> *mut Failure {
    // SAFETY: handlers give the address of a struct of theirs, whose message ends with a zero byte
    let made = unsafe { raw.as_ref() }.map(|args| Failure {
        code: args.errc,
        message: if args.message.is_null() {
            CString::default()
        } else {
            // SAFETY: as above
            unsafe { CStr::from_ptr(args.message) }.to_owned()
        },
    });
    made.map_or(std::ptr::null_mut(), Failure::into_raw)
}

unsafe extern "C" fn error_message(raw: *mut XLA_FFI_Error_GetMessage_Args) {
    // SAFETY: handlers give the address of a struct of theirs, with an error of `error_create`
    if let Some(args) = unsafe { raw.as_mut() } {
        // SAFETY: as above
        args.message = unsafe { args.error.as_ref() }.map_or(std::ptr::null(), |e| e.message.as_ptr());
    }
}

unsafe extern "C" fn error_destroy(raw: *mut XLA_FFI_Error_Destroy_Args) {
    // SAFETY: handlers give the address of a struct of theirs, with an error that is theirs
    if let Some(args) = unsafe { raw.as_ref() } {
        // SAFETY: as above
        drop(unsafe { Failure::take(args.error) });
    }
}

/// The table of functions.
pub(crate) static API: Table = Table(XLA_FFI_Api {
    struct_size: size_of::<XLA_FFI_Api>(),
    extension_start: std::ptr::null_mut(),
    api_version: XLA_FFI_Api_Version {
        struct_size: size_of::<XLA_FFI_Api_Version>(),
        extension_start: std::ptr::null_mut(),
        major_version: XLA_FFI_API_MAJOR,
        minor_version: XLA_FFI_API_MINOR,
    },
    internal_api: std::ptr::null(),
    XLA_FFI_Error_Create: error_create,
    XLA_FFI_Error_GetMessage: error_message,
    XLA_FFI_Error_Destroy: error_destroy,
    XLA_FFI_Handler_Register: handler_register,
    XLA_FFI_Stream_Get: no_device,
    XLA_FFI_Type_Register: type_register,
    XLA_FFI_ExecutionContext_Get: context_get,
    XLA_FFI_State_Set: state_set,
    XLA_FFI_State_Get: state_get,
    XLA_FFI_DeviceMemory_Allocate: no_device,
    XLA_FFI_DeviceMemory_Free: no_device,
    XLA_FFI_ThreadPool_Schedule: schedule,
    XLA_FFI_ThreadPool_NumThreads: num_threads,
    XLA_FFI_Future_Create: future_create,
    XLA_FFI_Future_SetAvailable: future_set,
    XLA_FFI_Future_SetError: future_fail,
    XLA_FFI_RunId_Get: run_id,
    XLA_FFI_DeviceOrdinal_Get: device_ordinal,
});

/// A table that threads share.
pub(crate) struct Table(pub(crate) XLA_FFI_Api);

// SAFETY: functions and numbers that nobody changes.
unsafe impl Sync for Table {}
