//! Declarations of XLA's FFI as its C header gives them (version 0.3); nothing here does anything.
//!
//! Names are the header's, so that both can be read side by side. Enumerations are numbers, since foreign code may hand
//! in any. Every struct starts with its size, by which each side knows how much of it the other has.
//! Read next: `api.rs`.

#![allow(
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    missing_docs,
    reason = "the header's names, documented there"
)]

use std::ffi::{c_char, c_int, c_void};

pub const XLA_FFI_API_MAJOR: c_int = 0;
pub const XLA_FFI_API_MINOR: c_int = 3;
/// The oldest minor version of handlers that XLA still calls.
pub const XLA_FFI_API_OLDEST_MINOR: c_int = 1;

pub const XLA_FFI_Extension_Metadata: c_int = 1;

/// The kind of operands, and of results.
pub const XLA_FFI_BUFFER: c_int = 1;

pub const XLA_FFI_AttrType_ARRAY: c_int = 1;
pub const XLA_FFI_AttrType_DICTIONARY: c_int = 2;
pub const XLA_FFI_AttrType_SCALAR: c_int = 3;
pub const XLA_FFI_AttrType_STRING: c_int = 4;

pub const XLA_FFI_STAGE_INSTANTIATE: c_int = 0;
pub const XLA_FFI_STAGE_PREPARE: c_int = 1;
pub const XLA_FFI_STAGE_INITIALIZE: c_int = 2;
pub const XLA_FFI_STAGE_EXECUTE: c_int = 3;

pub const XLA_FFI_Error_Code_INVALID_ARGUMENT: c_int = 3;
pub const XLA_FFI_Error_Code_NOT_FOUND: c_int = 5;
pub const XLA_FFI_Error_Code_ALREADY_EXISTS: c_int = 6;
pub const XLA_FFI_Error_Code_UNIMPLEMENTED: c_int = 12;
pub const XLA_FFI_Error_Code_INTERNAL: c_int = 13;

#[repr(C)]
pub struct XLA_FFI_Extension_Base {
    pub struct_size: usize,
    pub r#type: c_int,
    pub next: *mut XLA_FFI_Extension_Base,
}

/// A struct that starts with its size.
pub trait Struct {
    /// The header's size of the struct: up to the end of its last field, or of the one that the header takes for it.
    const SIZE: usize;
    /// The size that its maker gives.
    fn struct_size(&self) -> usize;
}

/// Declares structs that start with their size and a list of extensions.
macro_rules! structs {
    (@last $name:ident, $($field:ident: $ty:ty),*) => {{
        let ends = [$(std::mem::offset_of!($name, $field) + size_of::<$ty>()),*];
        ends[ends.len() - 1]
    }};
    ($($name:ident $(up to $end:literal)? { $($field:ident: $ty:ty),* $(,)? })*) => {$(
        #[repr(C)]
        pub struct $name {
            pub struct_size: usize,
            pub extension_start: *mut XLA_FFI_Extension_Base,
            $(pub $field: $ty,)*
        }

        impl Struct for $name {
            const SIZE: usize = {
                let whole = structs!(@last $name, $($field: $ty),*);
                $(let whole = if $end < whole { $end } else { whole };)?
                whole
            };
            fn struct_size(&self) -> usize {
                self.struct_size
            }
        }
    )*};
}

structs! {
    XLA_FFI_Api_Version { major_version: c_int, minor_version: c_int }
    XLA_FFI_Error_Create_Args { message: *const c_char, errc: c_int }
    XLA_FFI_Error_GetMessage_Args { error: *mut XLA_FFI_Error, message: *const c_char }
    XLA_FFI_Error_Destroy_Args { error: *mut XLA_FFI_Error }
    XLA_FFI_Buffer { dtype: c_int, data: *mut c_void, rank: i64, dims: *mut i64 }
    XLA_FFI_TypeInfo { deleter: Option<unsafe extern "C" fn(*mut c_void)> }
    XLA_FFI_Future_Create_Args up to 16 { future: *mut XLA_FFI_Future }
    XLA_FFI_Future_SetAvailable_Args { future: *mut XLA_FFI_Future }
    XLA_FFI_Future_SetError_Args { future: *mut XLA_FFI_Future, error: *mut XLA_FFI_Error }
    XLA_FFI_Args { size: i64, types: *const c_int, args: *const *mut c_void }
    XLA_FFI_Rets { size: i64, types: *const c_int, rets: *const *mut c_void }
    XLA_FFI_Attrs {
        size: i64,
        types: *const c_int,
        names: *const *const XLA_FFI_ByteSpan,
        attrs: *const *const c_void,
    }
    XLA_FFI_CallFrame up to 168 {
        api: *const XLA_FFI_Api,
        ctx: *const XLA_FFI_ExecutionContext,
        stage: c_int,
        args: XLA_FFI_Args,
        rets: XLA_FFI_Rets,
        attrs: XLA_FFI_Attrs,
        future: *mut XLA_FFI_Future,
    }
    XLA_FFI_Handler_Register_Args {
        name: XLA_FFI_ByteSpan,
        platform: XLA_FFI_ByteSpan,
        bundle: XLA_FFI_Handler_Bundle,
        traits: u32,
    }
    XLA_FFI_Type_Register_Args up to 40 {
        name: XLA_FFI_ByteSpan,
        type_id: *mut XLA_FFI_TypeId,
        type_info: *const XLA_FFI_TypeInfo,
    }
    XLA_FFI_ExecutionContext_Get_Args {
        ctx: *const XLA_FFI_ExecutionContext,
        type_id: *const XLA_FFI_TypeId,
        data: *mut c_void,
    }
    XLA_FFI_State_Args {
        ctx: *const XLA_FFI_ExecutionContext,
        stage: c_int,
        type_id: *const XLA_FFI_TypeId,
        state: *mut c_void,
    }
    XLA_FFI_ThreadPool_Schedule_Args {
        ctx: *const XLA_FFI_ExecutionContext,
        task: Option<unsafe extern "C" fn(*mut c_void)>,
        data: *mut c_void,
    }
    XLA_FFI_ThreadPool_NumThreads_Args { ctx: *const XLA_FFI_ExecutionContext, num_threads: *mut i64 }
    XLA_FFI_RunId_Get_Args { ctx: *const XLA_FFI_ExecutionContext, run_id: i64 }
    XLA_FFI_DeviceOrdinal_Get_Args { ctx: *const XLA_FFI_ExecutionContext, device_ordinal: i32 }
    XLA_FFI_Api {
        api_version: XLA_FFI_Api_Version,
        internal_api: *const c_void,
        XLA_FFI_Error_Create: unsafe extern "C" fn(*mut XLA_FFI_Error_Create_Args) -> *mut XLA_FFI_Error,
        XLA_FFI_Error_GetMessage: unsafe extern "C" fn(*mut XLA_FFI_Error_GetMessage_Args),
        XLA_FFI_Error_Destroy: unsafe extern "C" fn(*mut XLA_FFI_Error_Destroy_Args),
        XLA_FFI_Handler_Register: Call<XLA_FFI_Handler_Register_Args>,
        XLA_FFI_Stream_Get: Call<c_void>,
        XLA_FFI_Type_Register: Call<XLA_FFI_Type_Register_Args>,
        XLA_FFI_ExecutionContext_Get: Call<XLA_FFI_ExecutionContext_Get_Args>,
        XLA_FFI_State_Set: Call<XLA_FFI_State_Args>,
        XLA_FFI_State_Get: Call<XLA_FFI_State_Args>,
        XLA_FFI_DeviceMemory_Allocate: Call<c_void>,
        XLA_FFI_DeviceMemory_Free: Call<c_void>,
        XLA_FFI_ThreadPool_Schedule: Call<XLA_FFI_ThreadPool_Schedule_Args>,
        XLA_FFI_ThreadPool_NumThreads: Call<XLA_FFI_ThreadPool_NumThreads_Args>,
        XLA_FFI_Future_Create: Call<XLA_FFI_Future_Create_Args>,
        XLA_FFI_Future_SetAvailable: Call<XLA_FFI_Future_SetAvailable_Args>,
        XLA_FFI_Future_SetError: Call<XLA_FFI_Future_SetError_Args>,
        XLA_FFI_RunId_Get: Call<XLA_FFI_RunId_Get_Args>,
        XLA_FFI_DeviceOrdinal_Get: Call<XLA_FFI_DeviceOrdinal_Get_Args>,
    }
}

/// A function of the table that gives an error or null.
pub type Call<A> = unsafe extern "C" fn(*mut A) -> *mut XLA_FFI_Error;

/// An error that a handler returns: a box of this side's.
pub type XLA_FFI_Error = crate::api::Failure;
/// What signals the end of an asynchronous handler: this side's.
pub type XLA_FFI_Future = crate::api::Future;
/// The state of a call: this side's.
pub type XLA_FFI_ExecutionContext = crate::context::Context<'static>;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct XLA_FFI_ByteSpan {
    pub ptr: *const c_char,
    pub len: usize,
}

#[repr(C)]
pub struct XLA_FFI_Scalar {
    pub dtype: c_int,
    pub value: *const c_void,
}

#[repr(C)]
pub struct XLA_FFI_Array {
    pub dtype: c_int,
    pub size: usize,
    pub data: *const c_void,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct XLA_FFI_TypeId {
    pub type_id: i64,
}

/// A handler of an execution stage.
pub type XLA_FFI_Handler = unsafe extern "C" fn(*mut XLA_FFI_CallFrame) -> *mut XLA_FFI_Error;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct XLA_FFI_Handler_Bundle {
    pub instantiate: Option<XLA_FFI_Handler>,
    pub prepare: Option<XLA_FFI_Handler>,
    pub initialize: Option<XLA_FFI_Handler>,
    pub execute: Option<XLA_FFI_Handler>,
}

#[repr(C)]
pub struct XLA_FFI_Metadata {
    pub struct_size: usize,
    pub api_version: XLA_FFI_Api_Version,
    pub traits: u32,
    pub state_type_id: XLA_FFI_TypeId,
}

impl XLA_FFI_Metadata {
    /// The header's size of the struct: up to its traits.
    pub const SIZE: usize = std::mem::offset_of!(Self, traits) + size_of::<u32>();
}

#[repr(C)]
pub struct XLA_FFI_Metadata_Extension {
    pub extension_base: XLA_FFI_Extension_Base,
    pub metadata: *mut XLA_FFI_Metadata,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes that the header's `XLA_FFI_STRUCT_SIZE` computes on machines with 64-bit addresses.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn sizes_are_the_headers() {
        let ends = std::mem::offset_of!(XLA_FFI_CallFrame, future);
        assert_eq!((XLA_FFI_CallFrame::SIZE, ends, XLA_FFI_Api::SIZE), (168, 168, 192));
        assert_eq!((XLA_FFI_DeviceOrdinal_Get_Args::SIZE, XLA_FFI_Handler_Register_Args::SIZE), (28, 84));
        assert_eq!((XLA_FFI_Future_Create_Args::SIZE, XLA_FFI_Type_Register_Args::SIZE), (16, 40));
        assert_eq!((size_of::<XLA_FFI_Args>(), size_of::<XLA_FFI_Rets>(), size_of::<XLA_FFI_Attrs>()), (40, 40, 48));
        assert_eq!((size_of::<XLA_FFI_Buffer>(), size_of::<XLA_FFI_Api_Version>()), (48, 24));
        assert_eq!((XLA_FFI_Metadata::SIZE, size_of::<XLA_FFI_Metadata_Extension>()), (36, 32));
    }
}
