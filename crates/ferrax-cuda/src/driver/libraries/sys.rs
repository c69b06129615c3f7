//! What is used of cuBLASLt's, cuFFT's and cuSOLVER's APIs, declared: types, constants and tables of functions.
//!
//! Names are those of the headers. Source: the manuals of cuBLAS, cuFFT and cuSOLVER. Read next: `mod.rs`.
#![allow(non_snake_case, non_camel_case_types)]
#![allow(missing_docs)]

pub use crate::driver::sys::CUstream;
use crate::driver::sys::declare;
use std::ffi::{c_float, c_int, c_longlong, c_schar, c_void};

pub type cublasStatus_t = c_int;
pub type cublasLtHandle_t = *mut c_void;
pub type cublasLtMatmulDesc_t = *mut c_void;
pub type cublasLtMatrixLayout_t = *mut c_void;
pub type cublasLtMatmulPreference_t = *mut c_void;

/// A way of computing a product.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct cublasLtMatmulAlgo_t {
    pub data: [u64; 8],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct cublasLtMatmulHeuristicResult_t {
    pub algo: cublasLtMatmulAlgo_t,
    pub workspaceSize: usize,
    pub state: cublasStatus_t,
    pub wavesCount: c_float,
    pub reserved: [c_int; 4],
}

const _: () = assert!(size_of::<cublasLtMatmulHeuristicResult_t>() == 96);

pub const CUBLAS_STATUS_ALLOC_FAILED: cublasStatus_t = 3;
pub const CUDA_R_32F: c_int = 0;
pub const CUDA_R_64F: c_int = 1;
pub const CUDA_R_16F: c_int = 2;
pub const CUDA_C_32F: c_int = 4;
pub const CUDA_C_64F: c_int = 5;
pub const CUDA_R_16BF: c_int = 14;
pub const CUBLAS_COMPUTE_32F: c_int = 68;
pub const CUBLAS_COMPUTE_32F_PEDANTIC: c_int = 69;
pub const CUBLAS_COMPUTE_64F: c_int = 70;
pub const CUBLAS_COMPUTE_32F_FAST_TF32: c_int = 77;
pub const CUBLAS_OP_N: c_int = 0;
pub const CUBLAS_OP_T: c_int = 1;
pub const CUBLASLT_MATMUL_DESC_TRANSA: c_int = 3;
pub const CUBLASLT_MATMUL_DESC_TRANSB: c_int = 4;
pub const CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: c_int = 5;
pub const CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: c_int = 6;
pub const CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: c_int = 1;
pub const CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: c_int = 3;
/// The first of four, for both operands, what is added and the result.
pub const CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: c_int = 5;
pub const CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE: u32 = 2;

/// Hands the functions of cuBLASLt to a macro.
macro_rules! blas_functions {
    ($then:ident $($owner:ident)?) => {
        $then! {
            $($owner)?
            /// Functions of cuBLASLt.
            BlasFunctions -> cublasStatus_t;
            fn cublasLtCreate(handle: *mut cublasLtHandle_t);
            fn cublasLtDestroy(handle: cublasLtHandle_t);
            fn cublasLtMatmulDescCreate(desc: *mut cublasLtMatmulDesc_t, compute: c_int, scale: c_int);
            fn cublasLtMatmulDescDestroy(desc: cublasLtMatmulDesc_t);
            fn cublasLtMatmulDescSetAttribute(desc: cublasLtMatmulDesc_t, attribute: c_int, value: *const c_void,
                bytes: usize);
            fn cublasLtMatrixLayoutCreate(layout: *mut cublasLtMatrixLayout_t, dtype: c_int, rows: u64, columns: u64,
                ld: i64);
            fn cublasLtMatrixLayoutDestroy(layout: cublasLtMatrixLayout_t);
            fn cublasLtMatrixLayoutSetAttribute(layout: cublasLtMatrixLayout_t, attribute: c_int, value: *const c_void,
                bytes: usize);
            fn cublasLtMatmulPreferenceCreate(preference: *mut cublasLtMatmulPreference_t);
            fn cublasLtMatmulPreferenceDestroy(preference: cublasLtMatmulPreference_t);
            fn cublasLtMatmulPreferenceSetAttribute(preference: cublasLtMatmulPreference_t, attribute: c_int,
                value: *const c_void, bytes: usize);
            fn cublasLtMatmulAlgoGetHeuristic(handle: cublasLtHandle_t, desc: cublasLtMatmulDesc_t,
                a: cublasLtMatrixLayout_t, b: cublasLtMatrixLayout_t, c: cublasLtMatrixLayout_t,
                d: cublasLtMatrixLayout_t, preference: cublasLtMatmulPreference_t, wanted: c_int,
                results: *mut cublasLtMatmulHeuristicResult_t, count: *mut c_int);
            fn cublasLtMatmul(handle: cublasLtHandle_t, desc: cublasLtMatmulDesc_t, alpha: *const c_void,
                a: u64, a_layout: cublasLtMatrixLayout_t, b: u64, b_layout: cublasLtMatrixLayout_t,
                beta: *const c_void, c: u64, c_layout: cublasLtMatrixLayout_t, d: u64, d_layout: cublasLtMatrixLayout_t,
                algo: *const cublasLtMatmulAlgo_t, workspace: u64, bytes: usize, stream: CUstream);
        }
    };
}
pub(crate) use blas_functions;
blas_functions!(declare);

/// cuBLASLt's version: 10,000 times its major number, 100 times its minor one.
pub type BlasVersion = unsafe extern "C" fn() -> usize;

pub type cufftResult = c_int;
pub type cufftHandle = c_int;

pub const CUFFT_ALLOC_FAILED: cufftResult = 2;
pub const CUFFT_R2C: c_int = 0x2a;
pub const CUFFT_C2R: c_int = 0x2c;
pub const CUFFT_C2C: c_int = 0x29;
pub const CUFFT_D2Z: c_int = 0x6a;
pub const CUFFT_Z2D: c_int = 0x6c;
pub const CUFFT_Z2Z: c_int = 0x69;
pub const CUFFT_FORWARD: c_int = -1;
pub const CUFFT_INVERSE: c_int = 1;

/// Hands the functions of cuFFT to a macro.
macro_rules! fft_functions {
    ($then:ident $($owner:ident)?) => {
        $then! {
            $($owner)?
            /// Functions of cuFFT.
            FftFunctions -> cufftResult;
            fn cufftGetVersion(version: *mut c_int);
            fn cufftCreate(plan: *mut cufftHandle);
            fn cufftDestroy(plan: cufftHandle);
            fn cufftSetAutoAllocation(plan: cufftHandle, automatic: c_int);
            fn cufftMakePlanMany64(plan: cufftHandle, rank: c_int, n: *mut c_longlong, inembed: *mut c_longlong,
                istride: c_longlong, idist: c_longlong, onembed: *mut c_longlong, ostride: c_longlong,
                odist: c_longlong, kind: c_int, batch: c_longlong, bytes: *mut usize);
            fn cufftSetStream(plan: cufftHandle, stream: CUstream);
            fn cufftSetWorkArea(plan: cufftHandle, area: u64);
            fn cufftExecC2C(plan: cufftHandle, from: u64, to: u64, direction: c_int);
            fn cufftExecR2C(plan: cufftHandle, from: u64, to: u64);
            fn cufftExecC2R(plan: cufftHandle, from: u64, to: u64);
            fn cufftExecZ2Z(plan: cufftHandle, from: u64, to: u64, direction: c_int);
            fn cufftExecD2Z(plan: cufftHandle, from: u64, to: u64);
            fn cufftExecZ2D(plan: cufftHandle, from: u64, to: u64);
        }
    };
}
pub(crate) use fft_functions;
fft_functions!(declare);

pub type cusolverStatus_t = c_int;
pub type cusolverDnHandle_t = *mut c_void;
pub type cusolverDnParams_t = *mut c_void;

pub const CUSOLVER_STATUS_ALLOC_FAILED: cusolverStatus_t = 2;
pub const CUSOLVER_EIG_MODE_VECTOR: c_int = 1;
pub const CUBLAS_FILL_MODE_LOWER: c_int = 0;
pub const CUBLAS_FILL_MODE_UPPER: c_int = 1;

/// Hands the functions of cuSOLVER to a macro.
macro_rules! solver_functions {
    ($then:ident $($owner:ident)?) => {
        $then! {
            $($owner)?
            /// Functions of cuSOLVER.
            SolverFunctions -> cusolverStatus_t;
            fn cusolverGetVersion(version: *mut c_int);
            fn cusolverDnCreate(handle: *mut cusolverDnHandle_t);
            fn cusolverDnDestroy(handle: cusolverDnHandle_t);
            fn cusolverDnSetStream(handle: cusolverDnHandle_t, stream: CUstream);
            fn cusolverDnCreateParams(params: *mut cusolverDnParams_t);
            fn cusolverDnDestroyParams(params: cusolverDnParams_t);
            fn cusolverDnXpotrf_bufferSize(handle: cusolverDnHandle_t, params: cusolverDnParams_t, uplo: c_int, n: i64,
                a_type: c_int, a: u64, lda: i64, compute: c_int, device: *mut usize, host: *mut usize);
            fn cusolverDnXpotrf(handle: cusolverDnHandle_t, params: cusolverDnParams_t, uplo: c_int, n: i64,
                a_type: c_int, a: u64, lda: i64, compute: c_int, device: u64, bytes: usize, host: *mut c_void,
                host_bytes: usize, info: u64);
            fn cusolverDnXgetrf_bufferSize(handle: cusolverDnHandle_t, params: cusolverDnParams_t, m: i64, n: i64,
                a_type: c_int, a: u64, lda: i64, compute: c_int, device: *mut usize, host: *mut usize);
            fn cusolverDnXgetrf(handle: cusolverDnHandle_t, params: cusolverDnParams_t, m: i64, n: i64, a_type: c_int,
                a: u64, lda: i64, pivots: u64, compute: c_int, device: u64, bytes: usize, host: *mut c_void,
                host_bytes: usize, info: u64);
            fn cusolverDnXgeqrf_bufferSize(handle: cusolverDnHandle_t, params: cusolverDnParams_t, m: i64, n: i64,
                a_type: c_int, a: u64, lda: i64, tau_type: c_int, tau: u64, compute: c_int, device: *mut usize,
                host: *mut usize);
            fn cusolverDnXgeqrf(handle: cusolverDnHandle_t, params: cusolverDnParams_t, m: i64, n: i64, a_type: c_int,
                a: u64, lda: i64, tau_type: c_int, tau: u64, compute: c_int, device: u64, bytes: usize,
                host: *mut c_void, host_bytes: usize, info: u64);
            fn cusolverDnXsyevd_bufferSize(handle: cusolverDnHandle_t, params: cusolverDnParams_t, mode: c_int,
                uplo: c_int, n: i64, a_type: c_int, a: u64, lda: i64, w_type: c_int, w: u64, compute: c_int,
                device: *mut usize, host: *mut usize);
            fn cusolverDnXsyevd(handle: cusolverDnHandle_t, params: cusolverDnParams_t, mode: c_int, uplo: c_int,
                n: i64, a_type: c_int, a: u64, lda: i64, w_type: c_int, w: u64, compute: c_int, device: u64,
                bytes: usize, host: *mut c_void, host_bytes: usize, info: u64);
            fn cusolverDnXgesvd_bufferSize(handle: cusolverDnHandle_t, params: cusolverDnParams_t, u_job: c_schar,
                vt_job: c_schar, m: i64, n: i64, a_type: c_int, a: u64, lda: i64, s_type: c_int, s: u64,
                u_type: c_int, u: u64, ldu: i64, vt_type: c_int, vt: u64, ldvt: i64, compute: c_int,
                device: *mut usize, host: *mut usize);
            fn cusolverDnXgesvd(handle: cusolverDnHandle_t, params: cusolverDnParams_t, u_job: c_schar,
                vt_job: c_schar, m: i64, n: i64, a_type: c_int, a: u64, lda: i64, s_type: c_int, s: u64,
                u_type: c_int, u: u64, ldu: i64, vt_type: c_int, vt: u64, ldvt: i64, compute: c_int, device: u64,
                bytes: usize, host: *mut c_void, host_bytes: usize, info: u64);
        }
    };
}
pub(crate) use solver_functions;
solver_functions!(declare);

/// Hands the functions to a macro that later versions have: eigenvalues of many matrices.
macro_rules! spectra_functions {
    ($then:ident $($owner:ident)?) => {
        $then! {
            $($owner)?
            /// Functions of cuSOLVER from version 11.7 on.
            SpectraFunctions -> cusolverStatus_t;
            fn cusolverDnXsyevBatched_bufferSize(handle: cusolverDnHandle_t, params: cusolverDnParams_t, mode: c_int,
                uplo: c_int, n: i64, a_type: c_int, a: u64, lda: i64, w_type: c_int, w: u64, compute: c_int,
                device: *mut usize, host: *mut usize, batch: i64);
            fn cusolverDnXsyevBatched(handle: cusolverDnHandle_t, params: cusolverDnParams_t, mode: c_int, uplo: c_int,
                n: i64, a_type: c_int, a: u64, lda: i64, w_type: c_int, w: u64, compute: c_int, device: u64,
                bytes: usize, host: *mut c_void, host_bytes: usize, info: u64, batch: i64);
        }
    };
}
pub(crate) use spectra_functions;
spectra_functions!(declare);

/// The product of reflections has a function for each dtype, all of this form but for the types of pointers.
pub type Orgqr = unsafe extern "C" fn(
    handle: cusolverDnHandle_t,
    m: c_int,
    n: c_int,
    k: c_int,
    a: u64,
    lda: c_int,
    tau: u64,
    work: u64,
    elements: c_int,
    info: u64,
) -> cusolverStatus_t;
/// How many elements it works in.
pub type OrgqrBufferSize = unsafe extern "C" fn(
    handle: cusolverDnHandle_t,
    m: c_int,
    n: c_int,
    k: c_int,
    a: u64,
    lda: c_int,
    tau: u64,
    elements: *mut c_int,
) -> cusolverStatus_t;
