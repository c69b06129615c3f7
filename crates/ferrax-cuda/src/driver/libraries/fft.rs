//! Fourier transforms by cuFFT.

use super::sys::*;
use super::{Call, Found, Libraries, counted, failed};
use crate::driver::context::Context;
use crate::driver::library::{Opened, Version};
use crate::driver::stream::Stream;
use crate::driver::sys::checked;
use crate::routine::Transform;
use ferrax_base::{Error, Result, bail};
use ferrax_loops::fft::FftKind;
use std::ffi::{c_int, c_longlong};
use std::sync::{Arc, Mutex, PoisonError};

/// cuFFT.
pub struct Fft {
    functions: FftFunctions,
    pub opened: Found,
}

fft_functions!(checked Fft);

impl Fft {
    pub fn load(libraries: &Libraries) -> Result<Fft> {
        // that of CUDA 12 is version 11
        let (functions, opened) = libraries.open(super::FFT, 1, table)?;
        Ok(Fft { functions, opened })
    }

    #[cold]
    fn failed(&self, function: &'static str, code: c_int) -> Error {
        failed("cuFFT", function, code, code == CUFFT_ALLOC_FAILED)
    }
}

fn table(library: &Opened) -> std::result::Result<(FftFunctions, Version), String> {
    // SAFETY: these are functions of the library.
    let functions = unsafe { FftFunctions::find(|name| library.function(name))? };
    let mut number = 0;
    // SAFETY: the place outlives the call.
    match unsafe { (functions.cufftGetVersion)(&raw mut number) } {
        0 => Ok((functions, Version(number / 1000, number % 1000 / 100))),
        code => Err(format!("asked for its version, it gives the error {code}")),
    }
}

/// A transform that was prepared. Its stream and the memory that it works in belong to the library's object, so that one
/// thread at a time gives it away.
pub struct Plan {
    fft: Arc<Fft>,
    context: Arc<Context>,
    raw: Mutex<cufftHandle>,
    bytes: usize,
    kind: FftKind,
    double: bool,
}

impl Plan {
    /// Prepares one on a GPU, whose context is entered.
    pub fn new(fft: &Arc<Fft>, context: &Arc<Context>, t: &Transform) -> Result<Plan> {
        let kind = match (t.kind, t.double) {
            (FftKind::Forward | FftKind::Inverse, false) => CUFFT_C2C,
            (FftKind::Forward | FftKind::Inverse, true) => CUFFT_Z2Z,
            (FftKind::Real, false) => CUFFT_R2C,
            (FftKind::Real, true) => CUFFT_D2Z,
            (FftKind::RealInverse, false) => CUFFT_C2R,
            (FftKind::RealInverse, true) => CUFFT_Z2D,
        };
        let mut lengths: Vec<c_longlong> = t.lengths.iter().map(|&n| counted(n)).collect::<Result<_>>()?;
        let mut raw = 0;
        // SAFETY: the place outlives the call, and a context is current.
        unsafe {
            fft.cufftCreate(&raw mut raw)?;
        }
        let (fft, context) = (fft.clone(), context.clone());
        let mut plan = Plan { fft, context, raw: Mutex::new(raw), bytes: 0, kind: t.kind, double: t.double };
        let none = std::ptr::null_mut();
        let (rank, n, batch) = (lengths.len() as c_int, lengths.as_mut_ptr(), counted(t.batch)?);
        // SAFETY: the plan is alive.
        unsafe { plan.fft.cufftSetAutoAllocation(raw, 0)? };
        let make = plan.fft.functions.cufftMakePlanMany64;
        // SAFETY: the lengths and the place outlive the call; arrays without gaps need no further description.
        match unsafe { make(raw, rank, n, none, 1, 0, none, 1, 0, kind, batch, &raw mut plan.bytes) } {
            0 => {}
            CUFFT_ALLOC_FAILED => return Err(plan.fft.failed("cufftMakePlanMany64", CUFFT_ALLOC_FAILED)),
            code => bail!(NotImplemented, "cuFFT {} has no plan for {t:?}: error {code}", plan.fft.opened),
        }
        Ok(plan)
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        let raw = *self.raw.get_mut().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: nobody uses the plan after this.
        self.context.give_back(|_| unsafe { self.fft.cufftDestroy(raw) });
    }
}

impl Call for Plan {
    fn bytes(&self) -> usize {
        self.bytes
    }

    unsafe fn start(&self, stream: &Stream, reads: &[u64], writes: &[u64], work: u64) -> Result<()> {
        let raw = self.raw.lock().unwrap_or_else(PoisonError::into_inner);
        let (plan, from, to) = (*raw, reads[0], writes[0]);
        let direction = if self.kind == FftKind::Inverse { CUFFT_INVERSE } else { CUFFT_FORWARD };
        let fft = &self.fft;
        // SAFETY: the caller's promise; the plan is alive and this thread's.
        unsafe {
            fft.cufftSetStream(plan, stream.raw())?;
            if self.bytes > 0 {
                fft.cufftSetWorkArea(plan, work)?;
            }
            match (self.kind, self.double) {
                (FftKind::Forward | FftKind::Inverse, false) => fft.cufftExecC2C(plan, from, to, direction),
                (FftKind::Forward | FftKind::Inverse, true) => fft.cufftExecZ2Z(plan, from, to, direction),
                (FftKind::Real, false) => fft.cufftExecR2C(plan, from, to),
                (FftKind::Real, true) => fft.cufftExecD2Z(plan, from, to),
                (FftKind::RealInverse, false) => fft.cufftExecC2R(plan, from, to),
                (FftKind::RealInverse, true) => fft.cufftExecZ2D(plan, from, to),
            }
        }
    }
}
