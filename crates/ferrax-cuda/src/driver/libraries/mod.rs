//! NVIDIA's libraries of products, transforms and factorizations, each opened when a program first has work for it.
//!
//! A library that is not there is no error: the plan has kernels of our own then ([`Libraries::there`]). A call is prepared
//! when its program is loaded, works in temporary memory of the program, and is the same work
//! every time, so that results keep their bits.
//! Read next: `blas.rs`, `fft.rs`, `solver.rs`.

mod blas;
mod fft;
mod solver;
pub mod sys;

use super::context::Context;
use super::library::{Opened, Places, Search, Version, named_by};
use super::stream::Stream;
use crate::routine::{self, Routine};
use ferrax_base::{Error, ErrorKind, Result, error};
use std::ffi::c_int;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// A library, or what was said when it could not be opened.
type Loaded<T> = std::result::Result<Arc<T>, String>;

/// Names of a library: in texts, of its file, of the variable of the environment that says where it is.
type Names = [&'static str; 3];

const BLAS: Names = ["NVIDIA's cuBLASLt", "cublasLt", "FERRAX_CUBLASLT"];
const FFT: Names = ["NVIDIA's cuFFT", "cufft", "FERRAX_CUFFT"];
const SOLVER: Names = ["NVIDIA's cuSOLVER", "cusolver", "FERRAX_CUSOLVER"];

/// The libraries of a process.
pub struct Libraries {
    driver: Version,
    folders: Vec<PathBuf>,
    blas: OnceLock<Loaded<blas::Blas>>,
    fft: OnceLock<Loaded<fft::Fft>>,
    solver: OnceLock<Loaded<solver::Solver>>,
}

/// A call that was prepared.
pub(super) trait Call: Send + Sync {
    /// Bytes of the memory that it works in.
    fn bytes(&self) -> usize;

    /// Gives the call to a stream.
    ///
    /// # Safety
    /// The addresses are those of what the routine reads and writes and of memory to work in, which is alive when the stream
    /// comes to the call.
    unsafe fn start(&self, stream: &Stream, reads: &[u64], writes: &[u64], work: u64) -> Result<()>;
}

impl Libraries {
    /// Those of a driver of this version; `folders` are those of the host's packages.
    pub fn new(driver: Version, folders: Vec<PathBuf>) -> Libraries {
        Libraries { driver, folders, blas: OnceLock::new(), fft: OnceLock::new(), solver: OnceLock::new() }
    }

    /// Which of those that are wanted there are. One whose place the environment names has to be there.
    pub fn there(&self, wanted: routine::Libraries) -> Result<routine::Libraries> {
        let factors = wanted.factors && is_there(SOLVER, self.solver())?;
        Ok(routine::Libraries {
            factors,
            spectra: factors && self.solver().is_ok_and(|s| s.many.is_some()),
            products: wanted.products && is_there(BLAS, self.blas())?,
            transforms: wanted.transforms && is_there(FFT, self.fft())?,
        })
    }

    /// What there is, a line each: a name, and a version with its place or what was looked for in vain.
    pub fn about(&self) -> [(&'static str, String); 3] {
        let said = |found: Result<String>| found.unwrap_or_else(|e| format!("ferrax's own kernels instead: {e}"));
        [
            ("cuBLASLt", said(self.blas().map(|b| b.opened.to_string()))),
            ("cuFFT", said(self.fft().map(|f| f.opened.to_string()))),
            ("cuSOLVER", said(self.solver().map(|s| s.opened.to_string()))),
        ]
    }

    /// Prepares a call on a GPU.
    pub(super) fn prepare(&self, context: &Arc<Context>, routine: &Routine) -> Result<Box<dyn Call>> {
        let _here = context.enter()?;
        Ok(match routine {
            Routine::Product(product) => Box::new(blas::Matmul::new(self.blas()?, context, product)?),
            Routine::Transform(transform) => Box::new(fft::Plan::new(self.fft()?, context, transform)?),
            Routine::Factor(factor) => Box::new(solver::Factorization::new(self.solver()?, context, factor)?),
        })
    }

    fn blas(&self) -> Result<&Arc<blas::Blas>> {
        loaded(&self.blas, || blas::Blas::load(self))
    }

    fn fft(&self) -> Result<&Arc<fft::Fft>> {
        loaded(&self.fft, || fft::Fft::load(self))
    }

    fn solver(&self) -> Result<&Arc<solver::Solver>> {
        loaded(&self.solver, || solver::Solver::load(self))
    }

    /// Opens a library. `behind` says by how much its major version is behind that of CUDA.
    fn open<T>(
        &self,
        [what, stem, variable]: Names,
        behind: i32,
        take: impl FnMut(&Opened) -> std::result::Result<(T, Version), String>,
    ) -> Result<(T, Found)> {
        let newest = self.driver.0 - behind;
        let mut search = Search::new(what, format!("of a version up to {newest}.x"));
        let places = Places { stem, variable, newest, oldest: super::compiler::OLDEST.0 - behind };
        let files = places.files(&self.folders);
        match search.first(files, take) {
            Some(((table, version), path)) => Ok((table, Found { version, path })),
            None => Err(search.failed(&format!("{variable} says where one is."))),
        }
    }
}

/// Whether a library is there; an error where it is not and the environment says that it is.
fn is_there<T>([_, _, variable]: Names, found: Result<T>) -> Result<bool> {
    match found {
        Ok(_) => Ok(true),
        Err(_) if named_by(variable).is_none() => Ok(false),
        Err(error) => Err(error),
    }
}

/// What a place has, where there is nothing yet what `load` gives.
fn loaded<T>(place: &OnceLock<Loaded<T>>, load: impl FnOnce() -> Result<T>) -> Result<&Arc<T>> {
    let there = place.get_or_init(|| load().map(Arc::new).map_err(|e| e.to_string()));
    there.as_ref().map_err(|said| error!(Runtime, "{said}"))
}

/// A library that was found.
struct Found {
    version: Version,
    path: PathBuf,
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}", self.version, self.path.display())
    }
}

/// The error of a library's code.
#[cold]
fn failed(library: &str, function: &'static str, code: c_int, no_memory: bool) -> Error {
    let text = Box::new(format!("NVIDIA's {library} gives the error {code} ({function})"));
    if no_memory { ErrorKind::Memory(text).into() } else { ErrorKind::Runtime(text).into() }
}

/// A number that a library counts with.
fn counted<T: TryFrom<usize>>(n: usize) -> Result<T> {
    T::try_from(n).map_err(|_| error!(Internal, "a library's call of {n} elements"))
}
