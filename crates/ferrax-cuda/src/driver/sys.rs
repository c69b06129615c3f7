//! What is used of the driver's API and of NVRTC's, declared: types, constants and tables of functions.
//!
//! Names are those of the headers, with the suffix that the library exports: a name with its suffix never changes its
//! meaning. Codes are plain integers, since newer libraries give codes that this one does not know.
//! Source: the CUDA Driver API and NVRTC manuals. Read next: `result.rs`.
#![allow(non_snake_case, non_camel_case_types)]
#![allow(missing_docs)]

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ulonglong, c_ushort, c_void};

pub type CUresult = c_int;
pub type CUdevice = c_int;
pub type CUdeviceptr = u64;

macro_rules! handles {
    ($($name:ident)*) => { $(pub type $name = *mut c_void;)* };
}
handles!(CUcontext CUstream CUevent CUmodule CUfunction CUkernel CUmemoryPool CUgraph CUgraphNode CUgraphExec CUarray);

pub const CUDA_SUCCESS: CUresult = 0;
pub const CUDA_ERROR_OUT_OF_MEMORY: CUresult = 2;
pub const CUDA_ERROR_NO_DEVICE: CUresult = 100;
pub const CUDA_ERROR_INVALID_IMAGE: CUresult = 200;
pub const CUDA_ERROR_NO_BINARY_FOR_GPU: CUresult = 209;
pub const CUDA_ERROR_NOT_FOUND: CUresult = 500;
pub const CUDA_ERROR_NOT_READY: CUresult = 600;
pub const CUDA_ERROR_NOT_SUPPORTED: CUresult = 801;
/// Codes after which a context can no longer be used.
pub const LOST: [CUresult; 12] = [214, 220, 700, 702, 710, 714, 715, 716, 717, 718, 719, 999];

pub const CU_STREAM_NON_BLOCKING: c_uint = 1;
pub const CU_EVENT_DISABLE_TIMING: c_uint = 2;
pub const CU_MEMHOSTALLOC_PORTABLE: c_uint = 1;
pub const CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: c_int = 4;
pub const CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: c_int = 5;
pub const CU_MEMPOOL_ATTR_USED_MEM_CURRENT: c_int = 7;
pub const CU_MEM_ALLOCATION_TYPE_PINNED: c_int = 1;
pub const CU_MEM_LOCATION_TYPE_DEVICE: c_int = 1;
pub const CU_MEM_ACCESS_FLAGS_PROT_READWRITE: c_int = 3;
pub const CU_MEMORYTYPE_DEVICE: c_int = 2;
pub const CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: c_int = 8;
pub const CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: c_int = 16;
pub const CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: c_int = 75;
pub const CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: c_int = 76;
pub const CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: c_int = 97;
pub const CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: c_int = 115;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUmemLocation {
    pub kind: c_int,
    pub id: c_int,
}

#[repr(C)]
pub struct CUmemPoolProps {
    pub allocType: c_int,
    pub handleTypes: c_int,
    pub location: CUmemLocation,
    pub win32SecurityAttributes: *mut c_void,
    pub maxSize: usize,
    pub usage: c_ushort,
    pub reserved: [c_uchar; 54],
}

#[repr(C)]
pub struct CUmemAccessDesc {
    pub location: CUmemLocation,
    pub flags: c_int,
}

#[repr(C)]
pub struct CUDA_KERNEL_NODE_PARAMS {
    pub func: CUfunction,
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub sharedMemBytes: c_uint,
    pub kernelParams: *mut *mut c_void,
    pub extra: *mut *mut c_void,
    pub kern: CUkernel,
    pub ctx: CUcontext,
}

#[repr(C)]
pub struct CUDA_MEMCPY3D {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcZ: usize,
    pub srcLOD: usize,
    pub srcMemoryType: c_int,
    pub srcHost: *const c_void,
    pub srcDevice: CUdeviceptr,
    pub srcArray: CUarray,
    pub reserved0: *mut c_void,
    pub srcPitch: usize,
    pub srcHeight: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstZ: usize,
    pub dstLOD: usize,
    pub dstMemoryType: c_int,
    pub dstHost: *mut c_void,
    pub dstDevice: CUdeviceptr,
    pub dstArray: CUarray,
    pub reserved1: *mut c_void,
    pub dstPitch: usize,
    pub dstHeight: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
    pub Depth: usize,
}

#[repr(C)]
pub struct CUDA_MEMSET_NODE_PARAMS {
    pub dst: CUdeviceptr,
    pub pitch: usize,
    pub value: c_uint,
    pub elementSize: c_uint,
    pub width: usize,
    pub height: usize,
}

// the sizes that the header's structs have where addresses have eight bytes
const _: () = assert!(size_of::<CUmemPoolProps>() == 88 && size_of::<CUmemAccessDesc>() == 12);
const _: () = assert!(size_of::<CUDA_KERNEL_NODE_PARAMS>() == 72 && size_of::<CUDA_MEMSET_NODE_PARAMS>() == 40);
const _: () = assert!(size_of::<CUDA_MEMCPY3D>() == 200);

/// A table of functions of a library, each with its type, and how it is filled.
macro_rules! declare {
    ($(#[$about:meta])* $table:ident -> $code:ty; $(fn $name:ident($($arg:ident: $ty:ty),*);)*) => {
        $(#[$about])*
        pub struct $table {
            $(pub $name: unsafe extern "C" fn($($ty),*) -> $code,)*
        }

        impl $table {
            /// Fills the table.
            ///
            /// # Safety
            /// `find` gives the library's function of the name.
            pub unsafe fn find<E>(mut find: impl FnMut(&'static str) -> Result<*mut c_void, E>) -> Result<Self, E> {
                Ok($table {
                    $($name: {
                        let address = find(stringify!($name))?;
                        // SAFETY: the caller's promise; the library's function of this name has this type.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($ty),*) -> $code>(address) }
                    },)*
                })
            }
        }
    };
}

/// Methods of a type that has such a table as `functions`, one a function: what it gives is an error unless it is success,
/// which the type's `failed` makes of a function's name and code.
macro_rules! checked {
    ($owner:ident $(#[$about:meta])* $table:ident -> $code:ty; $(fn $name:ident($($arg:ident: $ty:ty),*);)*) => {
        // some are called by themselves: by what is owned, or where a code decides which error it is
        #[allow(non_snake_case, dead_code)]
        impl $owner {
            $(
                #[inline]
                pub(super) unsafe fn $name(&self, $($arg: $ty),*) -> Result<()> {
                    // SAFETY: the caller passes what the function of this name wants.
                    match unsafe { (self.functions.$name)($($arg),*) } {
                        0 => Ok(()),
                        code => Err(self.failed(stringify!($name), code)),
                    }
                }
            )*
        }
    };
}

/// Hands the functions of the driver to a macro.
macro_rules! driver_functions {
    ($then:ident $($owner:ident)?) => {
        $then! {
            $($owner)?
            /// Functions of the driver.
            DriverFunctions -> CUresult;
            fn cuInit(flags: c_uint);
            fn cuGetErrorName(error: CUresult, text: *mut *const c_char);
            fn cuGetErrorString(error: CUresult, text: *mut *const c_char);
            fn cuDeviceGetCount(count: *mut c_int);
            fn cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
            fn cuDeviceGetName(name: *mut c_char, len: c_int, device: CUdevice);
            fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: CUdevice);
            fn cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
            fn cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice);
            fn cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
            fn cuDevicePrimaryCtxRelease_v2(device: CUdevice);
            fn cuCtxPushCurrent_v2(context: CUcontext);
            fn cuCtxPopCurrent_v2(context: *mut CUcontext);
            fn cuStreamCreate(stream: *mut CUstream, flags: c_uint);
            fn cuStreamDestroy_v2(stream: CUstream);
            fn cuStreamSynchronize(stream: CUstream);
            fn cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
            fn cuEventCreate(event: *mut CUevent, flags: c_uint);
            fn cuEventDestroy_v2(event: CUevent);
            fn cuEventRecord(event: CUevent, stream: CUstream);
            fn cuEventQuery(event: CUevent);
            fn cuEventSynchronize(event: CUevent);
            fn cuModuleLoadData(module: *mut CUmodule, image: *const c_void);
            fn cuModuleUnload(module: CUmodule);
            fn cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
            fn cuFuncSetAttribute(function: CUfunction, attribute: c_int, value: c_int);
            fn cuLaunchKernel(function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
                block_x: c_uint, block_y: c_uint, block_z: c_uint, shared: c_uint, stream: CUstream,
                params: *mut *mut c_void, extra: *mut *mut c_void);
            fn cuMemPoolCreate(pool: *mut CUmemoryPool, props: *const CUmemPoolProps);
            fn cuMemPoolDestroy(pool: CUmemoryPool);
            fn cuMemPoolSetAttribute(pool: CUmemoryPool, attribute: c_int, value: *mut c_void);
            fn cuMemPoolGetAttribute(pool: CUmemoryPool, attribute: c_int, value: *mut c_void);
            fn cuMemPoolTrimTo(pool: CUmemoryPool, keep: usize);
            fn cuMemPoolSetAccess(pool: CUmemoryPool, map: *const CUmemAccessDesc, count: usize);
            fn cuMemAllocFromPoolAsync(address: *mut CUdeviceptr, bytes: usize, pool: CUmemoryPool, stream: CUstream);
            fn cuMemFreeAsync(address: CUdeviceptr, stream: CUstream);
            fn cuMemHostAlloc(address: *mut *mut c_void, bytes: usize, flags: c_uint);
            fn cuMemFreeHost(address: *mut c_void);
            fn cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
            fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
            fn cuMemcpyDtoDAsync_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream);
            fn cuMemcpyPeerAsync(to: CUdeviceptr, to_context: CUcontext, from: CUdeviceptr, from_context: CUcontext,
                bytes: usize, stream: CUstream);
            fn cuMemsetD8Async(to: CUdeviceptr, byte: c_uchar, count: usize, stream: CUstream);
            fn cuMemsetD32Async(to: CUdeviceptr, word: c_uint, count: usize, stream: CUstream);
            fn cuGraphCreate(graph: *mut CUgraph, flags: c_uint);
            fn cuGraphDestroy(graph: CUgraph);
            fn cuGraphAddKernelNode_v2(node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize,
                params: *const CUDA_KERNEL_NODE_PARAMS);
            fn cuGraphAddMemcpyNode(node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize,
                params: *const CUDA_MEMCPY3D, context: CUcontext);
            fn cuGraphAddMemsetNode(node: *mut CUgraphNode, graph: CUgraph, after: *const CUgraphNode, count: usize,
                params: *const CUDA_MEMSET_NODE_PARAMS, context: CUcontext);
            fn cuGraphInstantiateWithFlags(exec: *mut CUgraphExec, graph: CUgraph, flags: c_ulonglong);
            fn cuGraphExecDestroy(exec: CUgraphExec);
            fn cuGraphExecKernelNodeSetParams_v2(exec: CUgraphExec, node: CUgraphNode,
                params: *const CUDA_KERNEL_NODE_PARAMS);
            fn cuGraphExecMemcpyNodeSetParams(exec: CUgraphExec, node: CUgraphNode, params: *const CUDA_MEMCPY3D,
                context: CUcontext);
            fn cuGraphExecMemsetNodeSetParams(exec: CUgraphExec, node: CUgraphNode,
                params: *const CUDA_MEMSET_NODE_PARAMS, context: CUcontext);
            fn cuGraphLaunch(exec: CUgraphExec, stream: CUstream);
        }
    };
}
pub(crate) use checked;
pub(crate) use declare;
pub(crate) use driver_functions;
driver_functions!(declare);

pub type nvrtcResult = c_int;
pub type nvrtcProgram = *mut c_void;
pub const NVRTC_ERROR_OUT_OF_MEMORY: nvrtcResult = 1;
pub const NVRTC_ERROR_COMPILATION: nvrtcResult = 6;

/// Hands the functions of NVRTC to a macro.
macro_rules! nvrtc_functions {
    ($then:ident $($owner:ident)?) => {
        $then! {
            $($owner)?
            /// Functions of NVRTC.
            NvrtcFunctions -> nvrtcResult;
            fn nvrtcGetNumSupportedArchs(count: *mut c_int);
            fn nvrtcGetSupportedArchs(archs: *mut c_int);
            fn nvrtcCreateProgram(program: *mut nvrtcProgram, source: *const c_char, name: *const c_char, count: c_int,
                headers: *const *const c_char, names: *const *const c_char);
            fn nvrtcDestroyProgram(program: *mut nvrtcProgram);
            fn nvrtcCompileProgram(program: nvrtcProgram, count: c_int, options: *const *const c_char);
            fn nvrtcGetProgramLogSize(program: nvrtcProgram, bytes: *mut usize);
            fn nvrtcGetProgramLog(program: nvrtcProgram, log: *mut c_char);
            fn nvrtcGetCUBINSize(program: nvrtcProgram, bytes: *mut usize);
            fn nvrtcGetCUBIN(program: nvrtcProgram, cubin: *mut c_char);
            fn nvrtcGetPTXSize(program: nvrtcProgram, bytes: *mut usize);
            fn nvrtcGetPTX(program: nvrtcProgram, ptx: *mut c_char);
        }
    };
}
pub(crate) use nvrtc_functions;
nvrtc_functions!(declare);

/// The driver's version, 1,000 times its major number and 10 times its minor one.
pub type DriverGetVersion = unsafe extern "C" fn(version: *mut c_int) -> CUresult;
/// NVRTC's version.
pub type NvrtcVersion = unsafe extern "C" fn(major: *mut c_int, minor: *mut c_int) -> nvrtcResult;
/// The text of a code of NVRTC.
pub type NvrtcGetErrorString = unsafe extern "C" fn(code: nvrtcResult) -> *const c_char;
