//! NVRTC: CUDA C to machine code for a GPU.
//!
//! NVRTC comes in packages that a machine may have several of. The first is taken whose major version is not above the driver's:
//! a driver runs what newer compilers of its own major version made, and no machine code of later ones. Where a GPU is newer
//! than the compiler, the driver translates PTX for it.
//! Read next: `cubins.rs`, which keeps what was compiled.

use super::library::{Opened, Places, Search, Version};
use super::sys::*;
use ferrax_base::{Error, ErrorKind, Result, bail, error};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};

/// The oldest NVRTC that will do.
pub(super) const OLDEST: Version = Version(12, 0);
/// Options of every compilation. A product and a sum are one rounding only where the source says so.
const OPTIONS: [&str; 2] = ["--std=c++17", "--fmad=false"];

/// NVRTC.
pub struct Compiler {
    functions: NvrtcFunctions,
    says: NvrtcGetErrorString,
    version: Version,
    path: PathBuf,
    /// What it compiles for: ten times the major number of a compute capability, and the minor one; ascending.
    archs: Vec<c_int>,
}

/// What a source is compiled to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Machine code, for this compute capability and later ones of its major number.
    Cubin(c_int),
    /// Code that the driver translates, for this compute capability and all later ones.
    Ptx(c_int),
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Cubin(arch) => write!(f, "sm_{arch}"),
            Target::Ptx(arch) => write!(f, "compute_{arch}"),
        }
    }
}

nvrtc_functions!(checked Compiler);

impl Compiler {
    /// Opens the compiler for a driver of this version.
    ///
    /// `FERRAX_NVRTC`, a file or a folder, says where it is; otherwise the system is asked, then `folders` are looked through (those of
    /// the host's packages), then the places of CUDA's own installation.
    pub fn load(driver: Version, folders: &[PathBuf]) -> Result<Compiler> {
        let places = Places { stem: "nvrtc", variable: "FERRAX_NVRTC", newest: driver.0, oldest: OLDEST.0 };
        Compiler::first(driver, places.files(folders))
    }

    /// Opens the first of some files that is a compiler for a driver of this version.
    pub fn first(driver: Version, files: Vec<PathBuf>) -> Result<Compiler> {
        let wanted = format!("of a version from {OLDEST} to {}.x", driver.0);
        let mut search = Search::new("NVIDIA's compiler NVRTC", wanted);
        let Some(((functions, says, version), path)) = search.first(files, |library| table(library, driver)) else {
            return Err(search.failed(&format!(
                "`pip install nvidia-cuda-nvrtc-cu{}` brings one; FERRAX_NVRTC says where another one is.",
                driver.0
            )));
        };
        open_builtins(&path);
        let mut compiler = Compiler { functions, says, version, path, archs: Vec::new() };
        let mut count = 0;
        // SAFETY: the place outlives the call.
        unsafe { compiler.nvrtcGetNumSupportedArchs(&raw mut count)? };
        let mut archs = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: there is room for as many as it has said.
        unsafe { compiler.nvrtcGetSupportedArchs(archs.as_mut_ptr())? };
        archs.sort_unstable();
        compiler.archs = archs;
        Ok(compiler)
    }

    /// Its version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Where it was found.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What to compile to for a GPU of this compute capability.
    pub fn target(&self, (major, minor): (i32, i32)) -> Result<Target> {
        let arch = 10 * major + minor;
        let Some(nearest) = self.archs.iter().copied().filter(|a| *a <= arch).max() else {
            let oldest = self.archs.first().copied().unwrap_or(0);
            bail!(
                NotImplemented,
                "the GPU has compute capability {major}.{minor}, and NVRTC {} at {} compiles for {}.{} and later ones. An \
                 older NVRTC is wanted",
                self.version,
                self.path.display(),
                oldest / 10,
                oldest % 10
            );
        };
        Ok(if nearest / 10 == major { Target::Cubin(nearest) } else { Target::Ptx(nearest) })
    }

    /// Compiles a source; `name` is what messages call it.
    pub fn compile(&self, source: &str, name: &str, target: Target) -> Result<Vec<u8>> {
        let text = |text: &str| {
            CString::new(text).map_err(|_| error!(Internal, "a source for NVRTC has a character that ends it"))
        };
        let (source, name) = (text(source)?, text(&format!("{}.cu", name.replace('\0', " ")))?);
        let mut program = Program { compiler: self, raw: std::ptr::null_mut() };
        let (place, none) = (&raw mut program.raw, std::ptr::null());
        // SAFETY: the place and the texts outlive the call, and there are no headers.
        unsafe { self.nvrtcCreateProgram(place, source.as_ptr(), name.as_ptr(), 0, none, none)? };
        let options: Vec<CString> = options(target).map(|option| text(&option)).collect::<Result<_>>()?;
        let options: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        // SAFETY: as many options as is said, which outlive the call.
        let code =
            unsafe { (self.functions.nvrtcCompileProgram)(program.raw, options.len() as c_int, options.as_ptr()) };
        if code == NVRTC_ERROR_COMPILATION {
            let log = program.log().unwrap_or_else(|e| format!("no log: {e}"));
            bail!(Internal, "NVRTC {} refuses a source of ferrax's for {target}:\n{log}", self.version);
        }
        if code != 0 {
            return Err(self.failed("nvrtcCompileProgram", code));
        }
        program.code(target)
    }

    /// Everything beside the source that decides what it is compiled to.
    pub(super) fn settings(&self, target: Target) -> String {
        let options: Vec<String> = options(target).collect();
        format!("NVRTC {} {}", self.version, options.join(" "))
    }

    #[cold]
    fn failed(&self, function: &'static str, code: nvrtcResult) -> Error {
        // SAFETY: the compiler's texts are constants, or null.
        let text = unsafe { (self.says)(code).as_ref().map(|text| CStr::from_ptr(text).to_string_lossy()) };
        let text = format!("{} ({function})", text.unwrap_or_else(|| format!("NVRTC error {code}").into()));
        if code == NVRTC_ERROR_OUT_OF_MEMORY {
            return ErrorKind::Memory(Box::new(text)).into();
        }
        ErrorKind::Runtime(Box::new(text)).into()
    }
}

impl std::fmt::Debug for Compiler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NVRTC {} at {}", self.version, self.path.display())
    }
}

/// Options of a compilation.
fn options(target: Target) -> impl Iterator<Item = String> {
    std::iter::once(format!("--gpu-architecture={target}")).chain(OPTIONS.map(str::to_owned))
}

/// A program of the compiler.
struct Program<'a> {
    compiler: &'a Compiler,
    raw: nvrtcProgram,
}

impl Program<'_> {
    fn log(&self) -> Result<String> {
        let mut bytes = 0;
        // SAFETY: the place outlives the call.
        unsafe { self.compiler.nvrtcGetProgramLogSize(self.raw, &raw mut bytes)? };
        let mut log = vec![0u8; bytes];
        // SAFETY: there is room for as many bytes as it has said.
        unsafe { self.compiler.nvrtcGetProgramLog(self.raw, log.as_mut_ptr().cast())? };
        Ok(String::from_utf8_lossy(&log).trim_end_matches('\0').trim_end().to_owned())
    }

    fn code(&self, target: Target) -> Result<Vec<u8>> {
        let mut bytes = 0;
        // SAFETY: the place outlives the call.
        unsafe {
            match target {
                Target::Cubin(_) => self.compiler.nvrtcGetCUBINSize(self.raw, &raw mut bytes)?,
                Target::Ptx(_) => self.compiler.nvrtcGetPTXSize(self.raw, &raw mut bytes)?,
            }
        }
        let mut code = vec![0u8; bytes];
        // SAFETY: there is room for as many bytes as it has said.
        unsafe {
            match target {
                Target::Cubin(_) => self.compiler.nvrtcGetCUBIN(self.raw, code.as_mut_ptr().cast())?,
                Target::Ptx(_) => self.compiler.nvrtcGetPTX(self.raw, code.as_mut_ptr().cast())?,
            }
        }
        Ok(code)
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: nobody uses the program after this. There is nobody to tell of an error.
            let _ = unsafe { self.compiler.nvrtcDestroyProgram(&raw mut self.raw) };
        }
    }
}

/// Opens the library of declarations that a compiler asks the system for by its name, where it lies beside the compiler: the
/// system does not look there by itself.
fn open_builtins(compiler: &Path) {
    let beside = compiler.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    for file in beside.into_iter().flatten().flatten() {
        if file.file_name().to_string_lossy().contains("nvrtc-builtins") {
            // what cannot be opened is not the one that is asked for
            let _ = Opened::open(&file.path()).map(Opened::keep);
        }
    }
}

type Table = (NvrtcFunctions, NvrtcGetErrorString, Version);

/// The functions of a compiler that will do, and its version.
fn table(library: &Opened, driver: Version) -> Result<Table, String> {
    let (ask, says) = (library.function("nvrtcVersion")?, library.function("nvrtcGetErrorString")?);
    // SAFETY: the compiler's functions of these names have these types.
    let (ask, says) = unsafe {
        (
            std::mem::transmute::<*mut c_void, NvrtcVersion>(ask),
            std::mem::transmute::<*mut c_void, NvrtcGetErrorString>(says),
        )
    };
    let (mut major, mut minor) = (0, 0);
    // SAFETY: the places outlive the call.
    let code = unsafe { ask(&raw mut major, &raw mut minor) };
    if code != 0 {
        return Err(format!("asked for its version, it gives the error {code}"));
    }
    let version = Version(major, minor);
    if version < OLDEST || version.0 > driver.0 {
        return Err(format!("it is NVRTC {version}, and the driver is for CUDA {driver}"));
    }
    // SAFETY: these are functions of the compiler.
    let functions = unsafe { NvrtcFunctions::find(|name| library.function(name)) };
    Ok((functions.map_err(|wrong| format!("it is NVRTC {version}, but {wrong}"))?, says, version))
}
