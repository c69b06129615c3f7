//! Declarations of the PJRT C API, as its header gives them (version 0.90); nothing here does anything.
//!
//! Names are the header's, so that both can be read side by side. Every argument struct starts with its size, by which
//! a plugin knows how much of it the caller has: the macro `structs` computes it as the header's `PJRT_STRUCT_SIZE`
//! does, up to the end of the last field. `tests/layout.rs` compares all sizes and offsets with the header's.
//! The table of functions is only ever read as far as the plugin's own `struct_size` says ([`PJRT_Api::read`]).
//! Read next: `args.rs`, then [`crate::result`].

#![allow(
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    missing_docs,
    reason = "the header's names, documented there"
)]

mod args;

pub use args::*;
use std::ffi::{c_int, c_void};

/// The major version of the interface; plugins of another one are laid out differently.
pub const PJRT_API_MAJOR: c_int = 0;
/// The minor version whose declarations these are.
pub const PJRT_API_MINOR: c_int = 90;
/// The oldest minor version with this order of functions: 0.57 rearranged them.
pub const PJRT_API_OLDEST_MINOR: c_int = 57;

/// What the interface hands out by address alone.
macro_rules! opaque {
    ($($name:ident)*) => {
        $(#[repr(C)]
        pub struct $name {
            _opaque: [u8; 0],
        })*
    };
}

opaque! {
    PJRT_Extension_Base PJRT_Error PJRT_Event PJRT_Client PJRT_Device PJRT_Memory PJRT_DeviceDescription
    PJRT_TopologyDescription PJRT_Executable PJRT_LoadedExecutable PJRT_Buffer PJRT_ExecuteContext
    PJRT_SerializedExecutable PJRT_SerializedTopology
}

/// Where the fields of a struct lie, for the comparison with the header.
pub struct Layout {
    /// The header's name of the struct.
    pub name: &'static str,
    /// Its `PJRT_STRUCT_SIZE`.
    pub size: usize,
    /// Its fields in order, each with its offset.
    pub fields: &'static [(&'static str, usize)],
}

/// A struct that starts with its size.
pub trait Args: Copy {
    /// The struct with its size in it and nothing else: null pointers, zeros, `false`.
    fn new() -> Self;
}

/// The largest of the ends of a struct's fields.
pub(crate) const fn last_end(ends: &[usize]) -> usize {
    let (mut i, mut last) = (0, 0);
    while i < ends.len() {
        if ends[i] > last {
            last = ends[i];
        }
        i += 1;
    }
    last
}

/// Declares structs that start with their size and a list of extensions.
macro_rules! structs {
    ($($name:ident { $($field:ident: $ty:ty),* $(,)? })*) => {
        $(
            #[repr(C)]
            #[derive(Clone, Copy)]
            pub struct $name {
                pub struct_size: usize,
                pub extension_start: *mut PJRT_Extension_Base,
                $(pub $field: $ty,)*
            }

            impl $name {
                /// Bytes up to the end of the last field.
                pub const SIZE: usize = crate::sys::last_end(&[
                    std::mem::offset_of!($name, extension_start) + size_of::<*mut PJRT_Extension_Base>(),
                    $(std::mem::offset_of!($name, $field) + size_of::<$ty>(),)*
                ]);
            }

            impl Args for $name {
                fn new() -> Self {
                    // SAFETY: the fields are numbers, addresses, optional functions and unions and structs of those,
                    // for all of which zeros are a value.
                    let empty: Self = unsafe { std::mem::zeroed() };
                    Self { struct_size: Self::SIZE, ..empty }
                }
            }
        )*

        /// The layout of every struct that starts with its size.
        pub const LAYOUTS: &[Layout] = &[$(Layout {
            name: stringify!($name),
            size: $name::SIZE,
            fields: &[
                ("extension_start", std::mem::offset_of!($name, extension_start)),
                $((stringify!($field), std::mem::offset_of!($name, $field)),)*
            ],
        },)*];
    };
}
pub(crate) use structs;

/// A function that may fail; `None` where the plugin has none.
pub type Call<A> = Option<unsafe extern "C" fn(*mut A) -> *mut PJRT_Error>;
/// A function that cannot fail.
pub type Sure<A> = Option<unsafe extern "C" fn(*mut A)>;
/// A function that nothing here calls.
pub type Unused = Option<unsafe extern "C" fn(*mut c_void) -> *mut PJRT_Error>;

/// The function that a plugin exports.
pub type GetPjrtApi = unsafe extern "C" fn() -> *const PJRT_Api;

/// Declares the table of functions.
macro_rules! functions {
    ($($name:ident: $ty:ty,)*) => {
        /// The table of functions of a plugin.
        #[repr(C)]
        #[derive(Clone, Copy)]
        pub struct PJRT_Api {
            pub struct_size: usize,
            pub extension_start: *mut PJRT_Extension_Base,
            pub pjrt_api_version: PJRT_Api_Version,
            $(pub $name: $ty,)*
        }

        /// The functions of the table in order, each with its offset.
        pub const FUNCTIONS: &[(&str, usize)] = &[$((stringify!($name), std::mem::offset_of!(PJRT_Api, $name)),)*];
    };
}

// SAFETY: the table is never written after it was read, and its functions may be called from any thread.
unsafe impl Send for PJRT_Api {}
// SAFETY: as above.
unsafe impl Sync for PJRT_Api {}

impl PJRT_Api {
    /// Bytes before the first function: what every plugin's table has.
    pub const HEAD: usize = std::mem::offset_of!(PJRT_Api, PJRT_Error_Destroy);

    /// A copy of a plugin's table, in which functions beyond its `struct_size` are missing; `None` when that is too
    /// small for the version.
    ///
    /// # Safety
    /// `table` starts with its size in bytes, and has as many.
    pub unsafe fn read(table: *const PJRT_Api) -> Option<PJRT_Api> {
        // SAFETY: the caller's promise.
        let size = unsafe { table.cast::<usize>().read() };
        if size < Self::HEAD {
            return None;
        }
        // whole functions only
        let whole = Self::HEAD + (size - Self::HEAD) / size_of::<Unused>() * size_of::<Unused>();
        // SAFETY: numbers, addresses and optional functions, for all of which zeros are a value.
        let mut copy: PJRT_Api = unsafe { std::mem::zeroed() };
        // SAFETY: both have so many bytes, and the copy is on this stack.
        unsafe {
            std::ptr::copy_nonoverlapping(
                table.cast::<u8>(),
                (&raw mut copy).cast::<u8>(),
                whole.min(size_of::<PJRT_Api>()),
            );
        };
        Some(copy)
    }
}

functions! {
    PJRT_Error_Destroy: Sure<PJRT_Error_Destroy_Args>,
    PJRT_Error_Message: Sure<PJRT_Error_Message_Args>,
    PJRT_Error_GetCode: Call<PJRT_Error_GetCode_Args>,
    PJRT_Plugin_Initialize: Call<PJRT_Plugin_Initialize_Args>,
    PJRT_Plugin_Attributes: Call<PJRT_Plugin_Attributes_Args>,
    PJRT_Event_Destroy: Call<PJRT_Event_Destroy_Args>,
    PJRT_Event_IsReady: Call<PJRT_Event_IsReady_Args>,
    PJRT_Event_Error: Call<PJRT_Event_Error_Args>,
    PJRT_Event_Await: Call<PJRT_Event_Await_Args>,
    PJRT_Event_OnReady: Call<PJRT_Event_OnReady_Args>,
    PJRT_Client_Create: Call<PJRT_Client_Create_Args>,
    PJRT_Client_Destroy: Call<PJRT_Client_Destroy_Args>,
    PJRT_Client_PlatformName: Call<PJRT_Client_PlatformName_Args>,
    PJRT_Client_ProcessIndex: Call<PJRT_Client_ProcessIndex_Args>,
    PJRT_Client_PlatformVersion: Call<PJRT_Client_PlatformVersion_Args>,
    PJRT_Client_Devices: Call<PJRT_Client_Devices_Args>,
    PJRT_Client_AddressableDevices: Call<PJRT_Client_AddressableDevices_Args>,
    PJRT_Client_LookupDevice: Unused,
    PJRT_Client_LookupAddressableDevice: Unused,
    PJRT_Client_AddressableMemories: Call<PJRT_Client_AddressableMemories_Args>,
    PJRT_Client_Compile: Call<PJRT_Client_Compile_Args>,
    PJRT_Client_DefaultDeviceAssignment: Call<PJRT_Client_DefaultDeviceAssignment_Args>,
    PJRT_Client_BufferFromHostBuffer: Call<PJRT_Client_BufferFromHostBuffer_Args>,
    PJRT_DeviceDescription_Id: Call<PJRT_DeviceDescription_Id_Args>,
    PJRT_DeviceDescription_ProcessIndex: Call<PJRT_DeviceDescription_ProcessIndex_Args>,
    PJRT_DeviceDescription_Attributes: Call<PJRT_DeviceDescription_Attributes_Args>,
    PJRT_DeviceDescription_Kind: Call<PJRT_DeviceDescription_Kind_Args>,
    PJRT_DeviceDescription_DebugString: Call<PJRT_DeviceDescription_DebugString_Args>,
    PJRT_DeviceDescription_ToString: Call<PJRT_DeviceDescription_ToString_Args>,
    PJRT_Device_GetDescription: Call<PJRT_Device_GetDescription_Args>,
    PJRT_Device_IsAddressable: Call<PJRT_Device_IsAddressable_Args>,
    PJRT_Device_LocalHardwareId: Call<PJRT_Device_LocalHardwareId_Args>,
    PJRT_Device_AddressableMemories: Call<PJRT_Device_AddressableMemories_Args>,
    PJRT_Device_DefaultMemory: Call<PJRT_Device_DefaultMemory_Args>,
    PJRT_Device_MemoryStats: Call<PJRT_Device_MemoryStats_Args>,
    PJRT_Memory_Id: Call<PJRT_Memory_Id_Args>,
    PJRT_Memory_Kind: Call<PJRT_Memory_Kind_Args>,
    PJRT_Memory_DebugString: Call<PJRT_Memory_DebugString_Args>,
    PJRT_Memory_ToString: Call<PJRT_Memory_ToString_Args>,
    PJRT_Memory_AddressableByDevices: Call<PJRT_Memory_AddressableByDevices_Args>,
    PJRT_Executable_Destroy: Call<PJRT_Executable_Destroy_Args>,
    PJRT_Executable_Name: Call<PJRT_Executable_Name_Args>,
    PJRT_Executable_NumReplicas: Call<PJRT_Executable_NumReplicas_Args>,
    PJRT_Executable_NumPartitions: Call<PJRT_Executable_NumPartitions_Args>,
    PJRT_Executable_NumOutputs: Call<PJRT_Executable_NumOutputs_Args>,
    PJRT_Executable_SizeOfGeneratedCodeInBytes: Call<PJRT_Executable_SizeOfGeneratedCodeInBytes_Args>,
    PJRT_Executable_GetCostAnalysis: Call<PJRT_Executable_GetCostAnalysis_Args>,
    PJRT_Executable_OutputMemoryKinds: Call<PJRT_Executable_OutputMemoryKinds_Args>,
    PJRT_Executable_OptimizedProgram: Call<PJRT_Executable_OptimizedProgram_Args>,
    PJRT_Executable_Serialize: Call<PJRT_Executable_Serialize_Args>,
    PJRT_LoadedExecutable_Destroy: Call<PJRT_LoadedExecutable_Destroy_Args>,
    PJRT_LoadedExecutable_GetExecutable: Call<PJRT_LoadedExecutable_GetExecutable_Args>,
    PJRT_LoadedExecutable_AddressableDevices: Call<PJRT_LoadedExecutable_AddressableDevices_Args>,
    PJRT_LoadedExecutable_Delete: Call<PJRT_LoadedExecutable_Delete_Args>,
    PJRT_LoadedExecutable_IsDeleted: Call<PJRT_LoadedExecutable_IsDeleted_Args>,
    PJRT_LoadedExecutable_Execute: Call<PJRT_LoadedExecutable_Execute_Args>,
    PJRT_Executable_DeserializeAndLoad: Call<PJRT_Executable_DeserializeAndLoad_Args>,
    PJRT_LoadedExecutable_Fingerprint: Unused,
    PJRT_Buffer_Destroy: Call<PJRT_Buffer_Destroy_Args>,
    PJRT_Buffer_ElementType: Call<PJRT_Buffer_ElementType_Args>,
    PJRT_Buffer_Dimensions: Call<PJRT_Buffer_Dimensions_Args>,
    PJRT_Buffer_UnpaddedDimensions: Call<PJRT_Buffer_UnpaddedDimensions_Args>,
    PJRT_Buffer_DynamicDimensionIndices: Unused,
    PJRT_Buffer_GetMemoryLayout: Unused,
    PJRT_Buffer_OnDeviceSizeInBytes: Call<PJRT_Buffer_OnDeviceSizeInBytes_Args>,
    PJRT_Buffer_Device: Call<PJRT_Buffer_Device_Args>,
    PJRT_Buffer_Memory: Call<PJRT_Buffer_Memory_Args>,
    PJRT_Buffer_Delete: Call<PJRT_Buffer_Delete_Args>,
    PJRT_Buffer_IsDeleted: Call<PJRT_Buffer_IsDeleted_Args>,
    PJRT_Buffer_CopyToDevice: Call<PJRT_Buffer_CopyToDevice_Args>,
    PJRT_Buffer_ToHostBuffer: Call<PJRT_Buffer_ToHostBuffer_Args>,
    PJRT_Buffer_IsOnCpu: Call<PJRT_Buffer_IsOnCpu_Args>,
    PJRT_Buffer_ReadyEvent: Call<PJRT_Buffer_ReadyEvent_Args>,
    PJRT_Buffer_UnsafePointer: Call<PJRT_Buffer_UnsafePointer_Args>,
    PJRT_Buffer_IncreaseExternalReferenceCount: Call<PJRT_Buffer_IncreaseExternalReferenceCount_Args>,
    PJRT_Buffer_DecreaseExternalReferenceCount: Call<PJRT_Buffer_DecreaseExternalReferenceCount_Args>,
    PJRT_Buffer_OpaqueDeviceMemoryDataPointer: Unused,
    PJRT_CopyToDeviceStream_Destroy: Unused,
    PJRT_CopyToDeviceStream_AddChunk: Unused,
    PJRT_CopyToDeviceStream_TotalBytes: Unused,
    PJRT_CopyToDeviceStream_GranuleSize: Unused,
    PJRT_CopyToDeviceStream_CurrentBytes: Unused,
    PJRT_TopologyDescription_Create: Call<PJRT_TopologyDescription_Create_Args>,
    PJRT_TopologyDescription_Destroy: Call<PJRT_TopologyDescription_Destroy_Args>,
    PJRT_TopologyDescription_PlatformName: Call<PJRT_TopologyDescription_PlatformName_Args>,
    PJRT_TopologyDescription_PlatformVersion: Call<PJRT_TopologyDescription_PlatformVersion_Args>,
    PJRT_TopologyDescription_GetDeviceDescriptions: Call<PJRT_TopologyDescription_GetDeviceDescriptions_Args>,
    PJRT_TopologyDescription_Serialize: Call<PJRT_TopologyDescription_Serialize_Args>,
    PJRT_TopologyDescription_Attributes: Call<PJRT_TopologyDescription_Attributes_Args>,
    PJRT_Compile: Call<PJRT_Compile_Args>,
    PJRT_Executable_OutputElementTypes: Call<PJRT_Executable_OutputElementTypes_Args>,
    PJRT_Executable_OutputDimensions: Call<PJRT_Executable_OutputDimensions_Args>,
    PJRT_Buffer_CopyToMemory: Call<PJRT_Buffer_CopyToMemory_Args>,
    PJRT_Client_CreateViewOfDeviceBuffer: Call<PJRT_Client_CreateViewOfDeviceBuffer_Args>,
    PJRT_Executable_Fingerprint: Call<PJRT_Executable_Fingerprint_Args>,
    PJRT_Client_TopologyDescription: Call<PJRT_Client_TopologyDescription_Args>,
    PJRT_Executable_GetCompiledMemoryStats: Call<PJRT_Executable_GetCompiledMemoryStats_Args>,
    PJRT_Memory_Kind_Id: Unused,
    PJRT_ExecuteContext_Create: Unused,
    PJRT_ExecuteContext_Destroy: Unused,
    PJRT_Buffer_CopyRawToHost: Unused,
    PJRT_AsyncHostToDeviceTransferManager_Destroy: Unused,
    PJRT_AsyncHostToDeviceTransferManager_TransferData: Unused,
    PJRT_Client_CreateBuffersForAsyncHostToDevice: Unused,
    PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer: Unused,
    PJRT_AsyncHostToDeviceTransferManager_Device: Unused,
    PJRT_AsyncHostToDeviceTransferManager_BufferCount: Unused,
    PJRT_AsyncHostToDeviceTransferManager_BufferSize: Unused,
    PJRT_AsyncHostToDeviceTransferManager_SetBufferError: Unused,
    PJRT_AsyncHostToDeviceTransferManager_AddMetadata: Unused,
    PJRT_Client_DmaMap: Unused,
    PJRT_Client_DmaUnmap: Unused,
    PJRT_Client_CreateUninitializedBuffer: Unused,
    PJRT_Client_UpdateGlobalProcessInfo: Unused,
    PJRT_TopologyDescription_Deserialize: Call<PJRT_TopologyDescription_Deserialize_Args>,
    PJRT_Client_CreateAliasBuffer: Unused,
    PJRT_Client_FulfillAliasBuffer: Unused,
    PJRT_LoadedExecutable_GetDeviceAssignment: Unused,
    PJRT_Client_CreateErrorBuffer: Unused,
    PJRT_AsyncHostToDeviceTransferManager_TransferLiteral: Unused,
    PJRT_Buffer_CopyRawToHostFuture: Unused,
    PJRT_Device_PoisonExecution: Unused,
    PJRT_Device_CreateAsyncTrackingEvent: Unused,
    PJRT_AsyncTrackingEvent_Destroy: Unused,
    PJRT_Executable_GetCompileOptions: Unused,
    PJRT_Buffer_DonateWithControlDependency: Unused,
    PJRT_Event_Create: Unused,
    PJRT_Event_Set: Unused,
}
