//! The driver's library, once it is one that will do, and one `Result` a call.
//!
//! An error has CUDA's own name and text for the code, and the function that gave it. Read next: `context.rs`.

use super::library::{Opened, Search, Version, file_name, named_by};
use super::sys::*;
use ferrax_base::{Error, ErrorKind, Result, bail, error, fork};
use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_ulonglong, c_void};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Once};

/// The oldest driver that will do: the first whose functions are all declared here with the forms that they have now.
pub const OLDEST: Version = Version(12, 0);

/// How many forks this process has come out of as the child.
static FORKS: AtomicU32 = AtomicU32::new(0);
static WATCH: Once = Once::new();

/// The driver, opened and started.
pub struct Driver {
    pub(super) functions: DriverFunctions,
    version: Version,
    path: PathBuf,
    forks: u32,
}

driver_functions!(checked Driver);

impl Driver {
    /// Opens and starts the driver: that at `path`, or where the system has it, or `FERRAX_LIBCUDA` says it is.
    pub fn load(path: Option<&Path>) -> Result<Arc<Driver>> {
        WATCH.call_once(|| fork::at_fork(|| (), || FORKS.store(FORKS.load(Relaxed) + 1, Relaxed)));
        let mut search = Search::new("NVIDIA's driver", format!("for CUDA {OLDEST} or newer"));
        let named = path.map(Path::to_owned).or_else(|| named_by("FERRAX_LIBCUDA"));
        let Some(((functions, version), path)) = search.first(places(named), table) else {
            return Err(search.failed(
                "The driver comes with the GPU's machine, not with a package of Python: install or update it, or say with \
                 FERRAX_LIBCUDA where its library is.",
            ));
        };
        let driver = Driver { functions, version, path, forks: FORKS.load(Relaxed) };
        // SAFETY: the flags have to be zero.
        unsafe { driver.cuInit(0)? };
        Ok(Arc::new(driver))
    }

    /// The newest version of CUDA that the driver runs programs of.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Where its library was found.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many GPUs there are.
    pub fn devices(&self) -> Result<usize> {
        let mut count = 0;
        // SAFETY: the place outlives the call.
        unsafe { self.cuDeviceGetCount(&raw mut count)? };
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// The error of a driver that finds no GPU.
    #[cold]
    pub fn no_device(&self) -> Error {
        error!(
            Runtime,
            "NVIDIA's driver ({self:?}) finds no GPU. Does `nvidia-smi` list one, and does CUDA_VISIBLE_DEVICES leave it \
             visible?"
        )
    }

    /// Errors in a process that was forked from the one that opened the driver, where CUDA cannot be used.
    #[inline]
    pub fn usable(&self) -> Result<()> {
        if self.forked() {
            bail!(
                Runtime,
                "CUDA cannot be used in a process that was forked from one that has used it. Start processes with the \
                 start method 'spawn', or use the GPU only in the children"
            );
        }
        Ok(())
    }

    /// Whether this is a process that was forked from the one that opened the driver.
    #[inline]
    pub(super) fn forked(&self) -> bool {
        FORKS.load(Relaxed) != self.forks
    }

    #[inline]
    pub(super) fn check(&self, function: &'static str, code: CUresult) -> Result<()> {
        if code == CUDA_SUCCESS { Ok(()) } else { Err(self.failed(function, code)) }
    }

    /// The error of a code.
    #[cold]
    pub(super) fn failed(&self, function: &'static str, code: CUresult) -> Error {
        let mut text = format!("{}: {} ({function})", self.name(code), self.says(code));
        if LOST.contains(&code) {
            text += ". What is in the GPU's memory is lost, and this process cannot use the GPU any more";
        }
        let kind = match code {
            CUDA_ERROR_OUT_OF_MEMORY => ErrorKind::Memory,
            CUDA_ERROR_NOT_SUPPORTED => ErrorKind::NotImplemented,
            _ => ErrorKind::Runtime,
        };
        kind(Box::new(text)).into()
    }

    /// CUDA's name of a code.
    fn name(&self, code: CUresult) -> String {
        text(self.functions.cuGetErrorName, code).unwrap_or_else(|| format!("CUDA error {code}"))
    }

    /// CUDA's text for a code.
    fn says(&self, code: CUresult) -> String {
        text(self.functions.cuGetErrorString, code).unwrap_or_else(|| "the driver has no text for it".into())
    }
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Driver({} at {})", self.version, self.path.display())
    }
}

fn text(ask: unsafe extern "C" fn(CUresult, *mut *const c_char) -> CUresult, code: CUresult) -> Option<String> {
    let mut text = std::ptr::null();
    // SAFETY: the place outlives the call.
    let asked = unsafe { ask(code, &raw mut text) };
    // SAFETY: the driver's texts are constants.
    (asked == CUDA_SUCCESS && !text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Files that may be the driver.
fn places(named: Option<PathBuf>) -> Vec<PathBuf> {
    if let Some(path) = named {
        return vec![path];
    }
    if cfg!(windows) {
        return vec!["nvcuda.dll".into()];
    }
    let one = file_name("cuda", Some(1));
    vec![one.clone().into(), file_name("cuda", None).into(), Path::new("/usr/lib/wsl/lib").join(one)]
}

/// The functions of a driver that is new enough, and its version.
fn table(library: &Opened) -> Result<(DriverFunctions, Version), String> {
    let ask = library.function("cuDriverGetVersion")?;
    // SAFETY: the driver's function of this name has this type.
    let ask = unsafe { std::mem::transmute::<*mut c_void, DriverGetVersion>(ask) };
    let mut number: c_int = 0;
    // SAFETY: the place outlives the call.
    let code = unsafe { ask(&raw mut number) };
    if code != CUDA_SUCCESS {
        return Err(format!("asked for its version, it gives the error {code}"));
    }
    let version = Version(number / 1000, number % 1000 / 10);
    if version < OLDEST {
        return Err(format!("it is for CUDA {version}, and {OLDEST} or newer is wanted"));
    }
    // SAFETY: these are functions of the driver.
    let functions = unsafe { DriverFunctions::find(|name| library.function(name)) };
    Ok((functions.map_err(|wrong| format!("it is for CUDA {version}, but {wrong}"))?, version))
}
