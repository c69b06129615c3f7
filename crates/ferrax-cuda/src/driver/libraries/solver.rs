//! Factorizations by cuSOLVER, one matrix after another but where it takes many.
//!
//! It counts columns first; what that means for our rows is the plan's (`plan/factors.rs`). Its handle has a stream, and calls of
//! a handle do not run at the same time: one thread at a time gives calls away. Its default is the same bits in every run.

use super::sys::*;
use super::{Call, Found, Libraries, counted, failed};
use crate::driver::context::Context;
use crate::driver::library::{Opened, Version};
use crate::driver::stream::Stream;
use crate::driver::sys::checked;
use crate::routine::Factor;
use ferrax_base::{DType, Error, Result, bail};
use ferrax_loops::linalg::LinalgOp;
use std::ffi::{c_int, c_schar, c_void};
use std::sync::{Arc, Mutex, PoisonError};

/// cuSOLVER.
pub struct Solver {
    functions: SolverFunctions,
    pub many: Option<Spectra>,
    /// Functions of reflections, of the dtypes of `DTYPES`.
    reflections: [(OrgqrBufferSize, Orgqr); 4],
    pub opened: Found,
    /// One for each GPU that it was asked to work on.
    handles: Mutex<Vec<Arc<Handle>>>,
}

/// What later versions have.
pub struct Spectra {
    functions: SpectraFunctions,
}

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::C64, DType::C128];
const REFLECTIONS: [&str; 4] = ["cusolverDnSorgqr", "cusolverDnDorgqr", "cusolverDnCungqr", "cusolverDnZungqr"];

/// The library's state on a GPU.
struct Handle {
    context: Arc<Context>,
    raw: Mutex<Raw>,
    destroy: [unsafe extern "C" fn(*mut c_void) -> cusolverStatus_t; 2],
}

/// A handle and its parameters.
#[derive(Clone, Copy)]
struct Raw([*mut c_void; 2]);

// SAFETY: they may be used from any thread, one at a time, which the lock around them sees to.
unsafe impl Send for Raw {}

impl Drop for Handle {
    fn drop(&mut self) {
        let Raw(raw) = *self.raw.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.context.give_back(|_| {
            for (object, destroy) in raw.into_iter().zip(self.destroy).filter(|(object, _)| !object.is_null()) {
                // SAFETY: nobody uses it after this. There is nobody to tell of an error.
                unsafe { destroy(object) };
            }
            Ok(())
        });
    }
}

solver_functions!(checked Solver);
spectra_functions!(checked Spectra);

impl Spectra {
    #[cold]
    fn failed(&self, function: &'static str, code: c_int) -> Error {
        error(function, code)
    }
}

#[cold]
fn error(function: &'static str, code: c_int) -> Error {
    failed("cuSOLVER", function, code, code == CUSOLVER_STATUS_ALLOC_FAILED)
}

impl Solver {
    pub fn load(libraries: &Libraries) -> Result<Solver> {
        // that of CUDA 12 is version 11
        let ((functions, many, reflections), opened) = libraries.open(super::SOLVER, 1, table)?;
        Ok(Solver { functions, many, reflections, opened, handles: Mutex::default() })
    }

    /// The handle of a GPU, whose context is entered.
    fn handle(&self, context: &Arc<Context>) -> Result<Arc<Handle>> {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = handles.iter().find(|h| Arc::ptr_eq(&h.context, context)) {
            return Ok(handle.clone());
        }
        let destroy = [self.functions.cusolverDnDestroyParams, self.functions.cusolverDnDestroy];
        let (mut raw, mut params) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the place outlives the call, and a context is current.
        unsafe { self.cusolverDnCreate(&raw mut raw)? };
        // SAFETY: the place outlives the call.
        let with = unsafe { self.cusolverDnCreateParams(&raw mut params) };
        let raw = Mutex::new(Raw([params, raw]));
        let handle = Arc::new(Handle { context: context.clone(), raw, destroy });
        with?;
        handles.push(handle.clone());
        Ok(handle)
    }

    #[cold]
    fn failed(&self, function: &'static str, code: c_int) -> Error {
        error(function, code)
    }
}

type Table = (SolverFunctions, Option<Spectra>, [(OrgqrBufferSize, Orgqr); 4]);

fn table(library: &Opened) -> std::result::Result<(Table, Version), String> {
    // SAFETY: these are functions of the library.
    let functions = unsafe { SolverFunctions::find(|name| library.function(name))? };
    // SAFETY: as above.
    let many = unsafe { SpectraFunctions::find(|name| library.function(name)) };
    let mut reflections = Vec::new();
    for name in REFLECTIONS {
        let (size, run) = (library.function(&format!("{name}_bufferSize"))?, library.function(name)?);
        // SAFETY: the library's functions of these names have these types.
        reflections.push(unsafe {
            (std::mem::transmute::<*mut c_void, OrgqrBufferSize>(size), std::mem::transmute::<*mut c_void, Orgqr>(run))
        });
    }
    let reflections = reflections.try_into().map_err(|_| "it lacks products of reflections")?;
    let mut number = 0;
    // SAFETY: the place outlives the call.
    match unsafe { (functions.cusolverGetVersion)(&raw mut number) } {
        0 => {
            let many = many.ok().map(|functions| Spectra { functions });
            Ok(((functions, many, reflections), Version(number / 1000, number % 1000 / 100)))
        }
        code => Err(format!("asked for its version, it gives the error {code}")),
    }
}

/// Factorizations that were prepared.
pub struct Factorization {
    solver: Arc<Solver>,
    handle: Arc<Handle>,
    f: Factor,
    /// Where the dtype stands in `DTYPES`.
    kind: usize,
    bytes: usize,
    /// What it works in on the host, which one thread at a time uses: that of the handle.
    host: usize,
}

/// The library's numbers of a factorization.
struct Numbers {
    m: i64,
    n: i64,
    k: i64,
    batch: i64,
    dtype: c_int,
    real: c_int,
    triangle: c_int,
    jobs: [i8; 2],
}

impl Factorization {
    /// Prepares one on a GPU, whose context is entered.
    pub fn new(solver: &Arc<Solver>, context: &Arc<Context>, f: &Factor) -> Result<Factorization> {
        let Some(kind) = DTYPES.iter().position(|d| *d == f.dtype) else {
            bail!(Internal, "a matrix of {} was planned for cuSOLVER", f.dtype)
        };
        let (handle, f) = (solver.handle(context)?, f.clone());
        let mut made = Factorization { solver: solver.clone(), handle, f, kind, bytes: 0, host: 0 };
        (made.bytes, made.host) = made.sizes()?;
        Ok(made)
    }

    fn numbers(&self) -> Result<Numbers> {
        let [dtype, real] =
            [[CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F], [CUDA_R_32F, CUDA_R_64F, CUDA_R_32F, CUDA_R_64F]]
                .map(|of| of[self.kind]);
        let (jobs, triangle) = match self.f.op {
            LinalgOp::Svd { vectors: false } => ([b'N'; 2], CUBLAS_FILL_MODE_UPPER),
            // a square matrix has no thin vectors
            LinalgOp::Svd { .. } if self.f.k == self.f.m => ([b'A'; 2], CUBLAS_FILL_MODE_UPPER),
            LinalgOp::Eigh { lower: false } => ([b'S'; 2], CUBLAS_FILL_MODE_LOWER),
            _ => ([b'S'; 2], CUBLAS_FILL_MODE_UPPER),
        };
        let jobs = jobs.map(|job| job as i8);
        let Factor { m, n, k, batch, .. } = self.f;
        let (m, n, k, batch) = (counted(m)?, counted(n)?, counted(k)?, counted(batch)?);
        Ok(Numbers { m, n, k, batch, dtype, real, triangle, jobs })
    }

    /// The function for all matrices at once, where there is one and there are several.
    fn many(&self) -> Option<&Spectra> {
        let many = self.f.batch > 1 && matches!(self.f.op, LinalgOp::Eigh { .. });
        self.solver.many.as_ref().filter(|_| many)
    }

    /// Bytes that it works in, on the GPU and on the host.
    fn sizes(&self) -> Result<(usize, usize)> {
        let Numbers { m, n, k, batch, dtype, real, triangle, jobs: [u, vt] } = self.numbers()?;
        let (s, vectors) = (&self.solver, CUSOLVER_EIG_MODE_VECTOR);
        let Raw([params, raw]) = *self.handle.raw.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut on_device, mut on_host, mut elements) = (0, 0, 0);
        let (device, host) = (&raw mut on_device, &raw mut on_host);
        // SAFETY: the handle is alive, the places outlive the call, and sizes follow from shapes alone.
        unsafe {
            match self.f.op {
                LinalgOp::Cholesky => {
                    s.cusolverDnXpotrf_bufferSize(raw, params, triangle, n, dtype, 0, n, dtype, device, host)?;
                }
                LinalgOp::Lu => s.cusolverDnXgetrf_bufferSize(raw, params, m, n, dtype, 0, m, dtype, device, host)?,
                LinalgOp::Qr { .. } => {
                    s.cusolverDnXgeqrf_bufferSize(raw, params, m, n, dtype, 0, m, dtype, 0, dtype, device, host)?;
                }
                LinalgOp::HouseholderProduct => {
                    let [m, n, k] = [m, n, k].map(|e| e as c_int);
                    let code = (s.reflections[self.kind].0)(raw, m, n, k, 0, m, 0, &raw mut elements);
                    if code != 0 {
                        return Err(error(REFLECTIONS[self.kind], code));
                    }
                    on_device = elements as usize * self.f.dtype.size();
                }
                LinalgOp::Eigh { .. } => match self.many() {
                    Some(many) => many.cusolverDnXsyevBatched_bufferSize(
                        raw, params, vectors, triangle, n, dtype, 0, n, real, 0, dtype, device, host, batch,
                    )?,
                    None => s.cusolverDnXsyevd_bufferSize(
                        raw, params, vectors, triangle, n, dtype, 0, n, real, 0, dtype, device, host,
                    )?,
                },
                _ => s.cusolverDnXgesvd_bufferSize(
                    raw, params, u, vt, m, n, dtype, 0, m, real, 0, dtype, 0, m, dtype, 0, n, dtype, device, host,
                )?,
            }
        }
        Ok((on_device, on_host))
    }

    /// Gives one call to the handle's stream: that of matrix `i`, or of all.
    ///
    /// # Safety
    /// As [`Call::start`] says, and the host's memory is as large as it was asked for.
    unsafe fn one(
        &self,
        raw: Raw,
        i: usize,
        reads: &[u64],
        writes: &[u64],
        work: u64,
        host: *mut c_void,
    ) -> Result<()> {
        let Numbers { m, n, k, batch, dtype, real, triangle, jobs: [u, vt] } = self.numbers()?;
        let (s, vectors, bytes, host_bytes) = (&self.solver, CUSOLVER_EIG_MODE_VECTOR, self.bytes, self.host);
        let Raw([params, raw]) = raw;
        let (size, short) = (self.f.dtype.size(), self.f.m.min(self.f.n));
        let at = |base: u64, bytes: usize| base + (i * bytes) as u64;
        let a = at(writes[0], self.f.m * self.f.n * size);
        let info = at(writes[writes.len() - 1], 4);
        // SAFETY: the caller's promise.
        unsafe {
            match self.f.op {
                LinalgOp::Cholesky => s.cusolverDnXpotrf(
                    raw, params, triangle, n, dtype, a, n, dtype, work, bytes, host, host_bytes, info,
                ),
                LinalgOp::Lu => {
                    let pivots = at(writes[1], short * 8);
                    s.cusolverDnXgetrf(
                        raw, params, m, n, dtype, a, m, pivots, dtype, work, bytes, host, host_bytes, info,
                    )
                }
                LinalgOp::Qr { .. } => {
                    let tau = at(writes[1], short * size);
                    s.cusolverDnXgeqrf(
                        raw, params, m, n, dtype, a, m, dtype, tau, dtype, work, bytes, host, host_bytes, info,
                    )
                }
                LinalgOp::HouseholderProduct => {
                    let tau = at(reads[0], self.f.k * size);
                    let [m, n, k] = [m, n, k].map(|e| e as c_int);
                    let run = s.reflections[self.kind].1;
                    match run(raw, m, n, k, a, m, tau, work, (bytes / size) as c_int, info) {
                        0 => Ok(()),
                        code => Err(error(REFLECTIONS[self.kind], code)),
                    }
                }
                LinalgOp::Eigh { .. } => {
                    let w = at(writes[1], self.f.n * self.f.dtype.real().size());
                    match self.many() {
                        Some(many) => many.cusolverDnXsyevBatched(
                            raw, params, vectors, triangle, n, dtype, a, n, real, w, dtype, work, bytes, host,
                            host_bytes, info, batch,
                        ),
                        None => s.cusolverDnXsyevd(
                            raw, params, vectors, triangle, n, dtype, a, n, real, w, dtype, work, bytes, host,
                            host_bytes, info,
                        ),
                    }
                }
                _ => {
                    let values = at(writes[1], short * self.f.dtype.real().size());
                    let (long, square) = match writes {
                        [_, _, long, square, _] => {
                            (at(*long, self.f.k * self.f.m * size), at(*square, short * short * size))
                        }
                        _ => (0, 0),
                    };
                    s.cusolverDnXgesvd(
                        raw, params, u, vt, m, n, dtype, a, m, real, values, dtype, long, m, dtype, square, n, dtype,
                        work, bytes, host, host_bytes, info,
                    )
                }
            }
        }
    }
}

impl Call for Factorization {
    fn bytes(&self) -> usize {
        self.bytes
    }

    unsafe fn start(&self, stream: &Stream, reads: &[u64], writes: &[u64], work: u64) -> Result<()> {
        let raw = self.handle.raw.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the handle is alive and this thread's.
        unsafe { self.solver.cusolverDnSetStream(raw.0[1], stream.raw())? };
        let mut host = vec![0u64; self.host.div_ceil(8)];
        let calls = if self.many().is_some() { 1 } else { self.f.batch };
        // SAFETY: the caller's promise; the host's memory is as large as was asked for, and the library has it no longer when a call returns.
        (0..calls).try_for_each(|i| unsafe { self.one(*raw, i, reads, writes, work, host.as_mut_ptr().cast()) })
    }
}
