//! Opening NVIDIA's libraries: which files are tried, and what is said when none will do.
//!
//! A library that was opened stays for the life of the process: its threads may run on. Every file that was tried is kept
//! with what was wrong with it, so that the error of a machine without one says all that there is to know.
//! Read next: `result.rs` for the driver, `compiler.rs` for NVRTC.

use ferrax_base::{Error, error};
use libloading::Library;
use std::ffi::c_void;
use std::fmt;
use std::path::{Path, PathBuf};

/// A version: major, minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub i32, pub i32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// A library that was opened.
pub struct Opened {
    library: Library,
    path: PathBuf,
}

impl Opened {
    /// Opens one; the error is what the system says of it.
    pub fn open(path: &Path) -> Result<Opened, String> {
        // SAFETY: loading runs the library's own start, which whoever asks for a GPU wants.
        match unsafe { Library::new(path) } {
            Ok(library) => Ok(Opened { library, path: path.to_owned() }),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Where it was found: a path, or a name by which the system knew it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The address of a function.
    pub fn function(&self, name: &str) -> Result<*mut c_void, String> {
        // SAFETY: the address is given on as it is, and read as a function by those who know its type.
        match unsafe { self.library.get::<*mut c_void>(format!("{name}\0").as_bytes()) } {
            Ok(symbol) if !symbol.is_null() => Ok(*symbol),
            _ => Err(format!("it has no function {name}")),
        }
    }

    /// Keeps the library open for good.
    pub fn keep(self) -> PathBuf {
        std::mem::forget(self.library);
        self.path
    }
}

/// Files that were tried, each with what was wrong with it.
pub struct Search {
    what: &'static str,
    wanted: String,
    tried: Vec<(PathBuf, String)>,
}

impl Search {
    /// A search for a library; `wanted` are the versions that will do.
    pub fn new(what: &'static str, wanted: String) -> Search {
        Search { what, wanted, tried: Vec::new() }
    }

    /// The first of some files that opens and that `take` takes; what it refuses is let go of again.
    pub fn first<T>(
        &mut self,
        files: impl IntoIterator<Item = PathBuf>,
        mut take: impl FnMut(&Opened) -> Result<T, String>,
    ) -> Option<(T, PathBuf)> {
        for file in files {
            match Opened::open(&file).and_then(|opened| Ok((take(&opened)?, opened))) {
                Ok((taken, opened)) => return Some((taken, opened.keep())),
                Err(wrong) => self.tried.push((file, wrong)),
            }
        }
        None
    }

    /// The error for a search in vain; `fix` says what to do.
    #[cold]
    pub fn failed(self, fix: &str) -> Error {
        let Search { what, wanted, tried } = self;
        let mut text = format!("{what} {wanted} is wanted for NVIDIA GPUs, and there is none that can be used.");
        for (path, wrong) in &tried {
            text += &format!("\n  {}: {wrong}", path.display());
        }
        error!(Runtime, "{text}\n{fix}")
    }
}

/// The place that a variable of the environment names; an empty one names none.
pub fn named_by(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|place| !place.is_empty()).map(PathBuf::from)
}

/// What the system calls version `major` of a library; without one, the library of no version in particular.
pub fn file_name(stem: &str, major: Option<i32>) -> String {
    match (cfg!(windows), major) {
        (true, Some(major)) => format!("{stem}64_{major}0_0.dll"),
        (true, None) => format!("{stem}.dll"),
        (false, Some(major)) => format!("lib{stem}.so.{major}"),
        (false, None) => format!("lib{stem}.so"),
    }
}

/// Where a library of CUDA's may be that comes in packages, of which a machine may have several versions.
pub struct Places {
    /// The library's name.
    pub stem: &'static str,
    /// The variable of the environment that names a file or a folder.
    pub variable: &'static str,
    /// Major versions that will do.
    pub newest: i32,
    /// As `newest`.
    pub oldest: i32,
}

impl Places {
    /// Files that may be the library: where the variable says, where the system looks, in folders, and where CUDA is installed.
    pub fn files(&self, folders: &[PathBuf]) -> Vec<PathBuf> {
        let majors = (self.oldest..=self.newest).rev().map(Some);
        let names: Vec<String> = majors.chain([None]).map(|major| file_name(self.stem, major)).collect();
        let within = |folder: &Path| names.iter().map(|name| folder.join(name)).collect::<Vec<_>>();
        match named_by(self.variable) {
            Some(place) if place.is_dir() => within(&place),
            Some(place) => vec![place],
            None => {
                let installed = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os);
                let installed = installed.map(|at| Path::new(&at).join(if cfg!(windows) { "bin" } else { "lib64" }));
                let usual = (!cfg!(windows)).then(|| PathBuf::from("/usr/local/cuda/lib64"));
                let folders = folders.iter().cloned().chain(installed).chain(usual);
                names.iter().map(PathBuf::from).chain(folders.flat_map(|f| within(&f))).collect()
            }
        }
    }
}
