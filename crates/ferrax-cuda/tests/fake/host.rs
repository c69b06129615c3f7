//! Kernels that compute: a source as C++ of the host, compiled by the host's compiler, where the environment asks for it.
//!
//! `FAKE_CUDA_KERNELS` names the folder of what was compiled, by the source's digest: nothing is compiled twice. Threads of a block run
//! one after another, in an order that a number shuffles (`../host/cuda.h`).

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, id};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

unsafe extern "C" {
    fn dlopen(path: *const c_char, how: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlclose(library: *mut c_void) -> c_int;
    fn dlerror() -> *const c_char;
}

const NOW_AND_LOCAL: c_int = 2;
/// Arguments that the header's launch reads.
const ARGUMENTS: usize = 48;
/// Bytes of the stacks of a block's threads.
const STACKS: usize = 1024 << 16;

type Start = unsafe extern "C" fn(*mut c_void, *const u32, *const u64, u64, c_int);

/// The folder of compiled sources, where kernels are to compute.
pub fn folder() -> Option<PathBuf> {
    std::env::var_os("FAKE_CUDA_KERNELS").map(PathBuf::from)
}

/// Compiles a source; gives the library's path, or what the compiler says.
pub fn compile(folder: &Path, source: &str) -> Result<PathBuf, String> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let text = format!("{}\nnamespace fx_program {{\n{source}\n}}\n", include_str!("../host/cuda.h"));
    let mut digest = DefaultHasher::new();
    text.hash(&mut digest);
    let library = folder.join(format!("{:016x}.so", digest.finish()));
    if library.exists() {
        return Ok(library);
    }
    let own = folder.join(format!("{}-{}", id(), NEXT.fetch_add(1, Relaxed)));
    let (from, to) = (own.with_extension("cc"), own.with_extension("so"));
    let made = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&from, &text)).and_then(|()| {
        let flags = ["-x", "c++", "-std=c++17", "-O1", "-w", "-fPIC", "-shared", "-ffp-contract=off"];
        let more = ["-fno-strict-aliasing", "-fno-exceptions", "-U_FORTIFY_SOURCE", "-o"];
        Command::new("cc").args(flags).args(more).arg(&to).arg(&from).arg("-lm").output()
    });
    let result = match made {
        Err(error) => Err(error.to_string()),
        Ok(done) if done.status.success() => std::fs::rename(&to, &library).map_err(|e| e.to_string()),
        Ok(done) => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
    };
    let _ = std::fs::remove_file(&from);
    result.map(|()| library)
}

/// Whether threads of a kernel wait for each other.
pub fn waits(source: &str, kernel: &str) -> bool {
    let Some(begin) = source.find(&format!("void {kernel}(")) else { return false };
    let end = source[begin..].find("\n}\n").map_or(source.len(), |at| begin + at);
    let words = ["__syncthreads", "__syncwarp", "fx_shuffle", "__ballot", "fx_matrices", "fx_multiply"];
    words.iter().any(|word| source[begin..end].contains(word))
}

/// A compiled source.
pub struct Library(*mut c_void);

// It is used under the fake's lock.
unsafe impl Send for Library {}

impl Library {
    /// Opens one; nothing where it is gone.
    pub fn open(path: &str) -> Option<Library> {
        let path = CString::new(path).expect("a path");
        let library = unsafe { dlopen(path.as_ptr(), NOW_AND_LOCAL) };
        if library.is_null() {
            return None;
        }
        let library = Library(library);
        // all sources have the same stacks, of which one is used at a time
        static STACK: AtomicU64 = AtomicU64::new(0);
        if STACK.load(Relaxed) == 0 {
            let layout = std::alloc::Layout::from_size_align(STACKS, 4096).expect("a size");
            STACK.store(unsafe { std::alloc::alloc(layout) } as u64, Relaxed);
        }
        unsafe { library.find("fx_host_stacks").cast::<u64>().write(STACK.load(Relaxed)) };
        Some(library)
    }

    fn find(&self, name: &str) -> *mut c_void {
        let text = CString::new(name).expect("a name");
        let found = unsafe { dlsym(self.0, text.as_ptr()) };
        assert!(!found.is_null(), "{}", unsafe { CStr::from_ptr(dlerror()) }.to_string_lossy());
        found
    }

    /// Runs a kernel; `seed` decides the order of threads and, mostly, that there is one block.
    pub fn run(&self, name: &str, params: &[u64], [grid, ..]: [u32; 3], [block, ..]: [u32; 3], waits: bool, seed: u64) {
        let mut args = [0; ARGUMENTS];
        args[..params.len()].copy_from_slice(params);
        let blocks = match seed >> 60 {
            0..10 => 1,
            10..12 => grid + 2,
            _ => grid,
        };
        unsafe {
            let start = std::mem::transmute::<*mut c_void, Start>(self.find("fx_host_launch"));
            start(self.find(name), [blocks, block].as_ptr(), args.as_ptr(), seed, c_int::from(waits));
        }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        unsafe { dlclose(self.0) };
    }
}
