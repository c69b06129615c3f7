//! Products of matrices by cuBLASLt.
//!
//! It counts columns first, so that it is asked for the transposition of what we have: our right operand is its first one, and
//! our rows are its columns. The first way that its heuristic names is taken, among those that add parts of sums up in the
//! precision of the sums.

use super::sys::*;
use super::{Call, Found, Libraries, counted, failed};
use crate::driver::context::Context;
use crate::driver::library::{Opened, Version};
use crate::driver::stream::Stream;
use crate::driver::sys::checked;
use crate::routine::{Layout, Product};
use ferrax_base::{DType, Error, Result, bail};
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that a product may work in, as NVIDIA's manual advises for its largest GPUs.
const WORK: usize = 32 << 20;

/// cuBLASLt.
pub struct Blas {
    functions: BlasFunctions,
    pub opened: Found,
    /// One for each GPU that it was asked to work on.
    handles: Mutex<Vec<Arc<Handle>>>,
}

/// The library's state on a GPU.
struct Handle {
    context: Arc<Context>,
    raw: cublasLtHandle_t,
    destroy: Destroy,
}

// SAFETY: handles may be used from any thread, several at once.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        self.context.give_back(|_| {
            // SAFETY: nobody uses it after this. There is nobody to tell of an error.
            unsafe { (self.destroy)(self.raw) };
            Ok(())
        });
    }
}

blas_functions!(checked Blas);

impl Blas {
    pub fn load(libraries: &Libraries) -> Result<Blas> {
        let (functions, opened) = libraries.open(super::BLAS, 0, table)?;
        Ok(Blas { functions, opened, handles: Mutex::default() })
    }

    /// The handle of a GPU, whose context is entered.
    fn handle(&self, context: &Arc<Context>) -> Result<Arc<Handle>> {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = handles.iter().find(|h| Arc::ptr_eq(&h.context, context)) {
            return Ok(handle.clone());
        }
        let mut raw = std::ptr::null_mut();
        // SAFETY: the place outlives the call.
        unsafe { self.cublasLtCreate(&raw mut raw)? };
        let handle = Handle { context: context.clone(), raw, destroy: self.functions.cublasLtDestroy };
        handles.push(Arc::new(handle));
        Ok(handles[handles.len() - 1].clone())
    }

    #[cold]
    fn failed(&self, function: &'static str, code: c_int) -> Error {
        failed("cuBLASLt", function, code, code == CUBLAS_STATUS_ALLOC_FAILED)
    }
}

fn table(library: &Opened) -> std::result::Result<(BlasFunctions, Version), String> {
    let ask = library.function("cublasLtGetVersion")?;
    // SAFETY: the library's function of this name has this type.
    let number = unsafe { std::mem::transmute::<*mut c_void, BlasVersion>(ask)() } as c_int;
    // SAFETY: these are functions of the library.
    let functions = unsafe { BlasFunctions::find(|name| library.function(name))? };
    Ok((functions, Version(number / 10_000, number % 10_000 / 100)))
}

/// What a library's object is destroyed by.
type Destroy = unsafe extern "C" fn(*mut c_void) -> cublasStatus_t;

/// An object of the library, destroyed with this.
struct Owned(*mut c_void, Destroy);

impl Drop for Owned {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: nobody uses it after this. There is nobody to tell of an error.
            unsafe { (self.1)(self.0) };
        }
    }
}

/// A product that was prepared.
pub struct Matmul {
    blas: Arc<Blas>,
    handle: Arc<Handle>,
    desc: Owned,
    layouts: [Owned; 3],
    algo: cublasLtMatmulAlgo_t,
    bytes: usize,
    /// Whether sums are in double precision.
    double: bool,
}

// SAFETY: the library's objects may be used from any thread, and those of a product are only read once it was prepared.
unsafe impl Send for Matmul {}
// SAFETY: as above.
unsafe impl Sync for Matmul {}

/// One, in both precisions, and zero: twice as many bytes as a real number has, so that sums of any dtype find their own.
static ONE: [f64; 2] = [1.0, 0.0];
static SINGLE_ONE: [f32; 2] = [1.0, 0.0];
static ZERO: [f64; 2] = [0.0; 2];

impl Matmul {
    /// Prepares one on a GPU, whose context is entered.
    pub fn new(blas: &Arc<Blas>, context: &Arc<Context>, p: &Product) -> Result<Matmul> {
        let handle = blas.handle(context)?;
        let (compute, scale) = computed(p)?;
        let mut desc = Owned(std::ptr::null_mut(), blas.functions.cublasLtMatmulDescDestroy);
        // SAFETY: the place outlives the call.
        unsafe { blas.cublasLtMatmulDescCreate(&raw mut desc.0, compute, scale)? };
        // ours with contracted elements side by side are the transpositions of what it multiplies
        let (a, b) = (p.right.contracts_rows, !p.left.contracts_rows);
        for (which, turned) in [(CUBLASLT_MATMUL_DESC_TRANSA, a), (CUBLASLT_MATMUL_DESC_TRANSB, b)] {
            let op = if turned { CUBLAS_OP_T } else { CUBLAS_OP_N };
            // SAFETY: the attribute is such a number.
            set(|v, n| unsafe { blas.cublasLtMatmulDescSetAttribute(desc.0, which, v, n) }, op)?;
        }
        let result = Layout { contracts_rows: true, stride: p.n, batch_stride: p.m * p.n };
        let layouts = [
            layout(blas, p.dtype, &p.right, [p.n, p.k], p.batch)?,
            layout(blas, p.dtype, &p.left, [p.m, p.k], p.batch)?,
            layout(blas, p.out, &result, [p.m, p.n], p.batch)?,
        ];
        let (algo, bytes) = way(blas, handle.raw, desc.0, &layouts, p)?;
        let double = matches!(p.dtype, DType::F64 | DType::C128);
        Ok(Matmul { blas: blas.clone(), handle, desc, layouts, algo, bytes, double })
    }
}

impl Call for Matmul {
    fn bytes(&self) -> usize {
        self.bytes
    }

    unsafe fn start(&self, stream: &Stream, reads: &[u64], writes: &[u64], work: u64) -> Result<()> {
        let one: *const c_void = if self.double { ONE.as_ptr().cast() } else { SINGLE_ONE.as_ptr().cast() };
        let [a, b, d] = self.layouts.each_ref().map(|l| l.0);
        let (left, right, to) = (reads[0], reads[1], writes[0]);
        // SAFETY: the caller's promise; the objects are alive.
        unsafe {
            self.blas.cublasLtMatmul(
                self.handle.raw,
                self.desc.0,
                one,
                right,
                a,
                left,
                b,
                ZERO.as_ptr().cast(),
                to,
                d,
                to,
                d,
                &raw const self.algo,
                work,
                self.bytes,
                stream.raw(),
            )
        }
    }
}

/// How a product is computed, and the dtype of its sums.
fn computed(p: &Product) -> Result<(c_int, c_int)> {
    Ok(match p.dtype {
        DType::F32 if p.tf32 => (CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F),
        DType::BF16 | DType::F16 | DType::F32 => (CUBLAS_COMPUTE_32F, CUDA_R_32F),
        DType::F64 => (CUBLAS_COMPUTE_64F, CUDA_R_64F),
        DType::C64 => (CUBLAS_COMPUTE_32F_PEDANTIC, CUDA_C_32F),
        DType::C128 => (CUBLAS_COMPUTE_64F, CUDA_C_64F),
        d => bail!(Internal, "a product of {d} was planned for cuBLASLt"),
    })
}

/// The library's number of a dtype.
fn number(d: DType) -> Result<c_int> {
    Ok(match d {
        DType::F32 => CUDA_R_32F,
        DType::F64 => CUDA_R_64F,
        DType::F16 => CUDA_R_16F,
        DType::BF16 => CUDA_R_16BF,
        DType::C64 => CUDA_C_32F,
        DType::C128 => CUDA_C_64F,
        d => bail!(Internal, "a matrix of {d} was planned for cuBLASLt"),
    })
}

/// Sets an attribute.
fn set<T>(call: impl FnOnce(*const c_void, usize) -> Result<()>, value: T) -> Result<()> {
    call((&raw const value).cast(), size_of::<T>())
}

/// Matrices whose rows, of `free` or `side` elements, are the library's columns.
fn layout(blas: &Blas, dtype: DType, l: &Layout, [free, side]: [usize; 2], batch: usize) -> Result<Owned> {
    let (length, count) = if l.contracts_rows { (side, free) } else { (free, side) };
    let mut made = Owned(std::ptr::null_mut(), blas.functions.cublasLtMatrixLayoutDestroy);
    let stride: i64 = counted(l.stride.max(length))?;
    // SAFETY: the place outlives the call.
    unsafe { blas.cublasLtMatrixLayoutCreate(&raw mut made.0, number(dtype)?, length as u64, count as u64, stride)? };
    // SAFETY: these attributes are such numbers.
    let attribute = |which, value, bytes| unsafe { blas.cublasLtMatrixLayoutSetAttribute(made.0, which, value, bytes) };
    set(|v, n| attribute(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, v, n), counted::<i32>(batch)?)?;
    set(|v, n| attribute(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, v, n), counted::<i64>(l.batch_stride)?)?;
    Ok(made)
}

/// The way that a product is computed in, and the bytes that it works in.
fn way(
    blas: &Blas,
    handle: *mut c_void,
    desc: *mut c_void,
    [a, b, d]: &[Owned; 3],
    p: &Product,
) -> Result<(cublasLtMatmulAlgo_t, usize)> {
    let mut wishes = Owned(std::ptr::null_mut(), blas.functions.cublasLtMatmulPreferenceDestroy);
    // SAFETY: the place outlives the call.
    unsafe { blas.cublasLtMatmulPreferenceCreate(&raw mut wishes.0)? };
    // SAFETY: these attributes are such numbers.
    let wish =
        |which, value, bytes| unsafe { blas.cublasLtMatmulPreferenceSetAttribute(wishes.0, which, value, bytes) };
    set(|v, n| wish(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, v, n), WORK)?;
    let adding = CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK;
    set(|v, n| wish(adding, v, n), CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)?;
    for which in 0..4 {
        set(|v, n| wish(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + which, v, n), 16u32)?;
    }
    let (mut found, mut count) = (cublasLtMatmulHeuristicResult_t::default(), 0);
    // SAFETY: the objects are alive, and there is room for one result.
    unsafe {
        let (found, count) = (&raw mut found, &raw mut count);
        blas.cublasLtMatmulAlgoGetHeuristic(handle, desc, a.0, b.0, d.0, d.0, wishes.0, 1, found, count)?;
    }
    if count == 0 || found.state != 0 {
        bail!(NotImplemented, "cuBLASLt {} has no way for {p:?}", blas.opened);
    }
    Ok((found.algo, found.workspaceSize))
}
