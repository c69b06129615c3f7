//! Builds and loads the fake driver, each time as a library of its own, and makes programs to run on it.

use ferrax_base::{Arg, Buffer, DType, ErrorKind, Memory, Result};
use ferrax_cuda::driver::{Compiler, Cubins, Device, Driver, Executable, Libraries};
use ferrax_cuda::program::*;
use ferrax_loops::Type;
use ferrax_loops::kind::Bytes;
use libloading::{Library, Symbol};
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

pub type Kernel = extern "C" fn(params: *const u64, count: usize, grid: *const u32, block: *const u32);

/// A fake driver.
pub struct Fake {
    library: Library,
    pub path: PathBuf,
}

/// The library's file, built once.
fn built() -> &'static [u8] {
    static BUILT: OnceLock<Vec<u8>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let to = scratch("libfake.so");
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        rustc.args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "fake", "-C", "opt-level=1"]);
        rustc
            .args(["-C", "panic=abort", "-C", "strip=symbols", "-o"])
            .arg(&to)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake/lib.rs"));
        let out = rustc.output().expect("rustc runs");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let file = std::fs::read(&to).expect("the library was built");
        remove(&to);
        file
    })
}

/// A path that nobody else uses.
pub fn scratch(name: &str) -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let folder = format!("driver-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder.join(name)
}

/// Takes away what [`scratch`] gave, with its folder.
fn remove(path: &Path) {
    // what cannot be removed stays in the folder for what tests leave
    let _ = std::fs::remove_dir_all(path.parent().expect("a folder"));
}

impl Drop for Fake {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

impl Fake {
    pub fn new() -> Fake {
        Fake::of(built())
    }

    /// One that lacks a function: its name is another one in the file.
    pub fn without(function: &str) -> Fake {
        let mut file = built().to_vec();
        let name = format!("\0{function}\0").into_bytes();
        let places: Vec<usize> = (0..file.len() - name.len()).filter(|i| file[*i..].starts_with(&name)).collect();
        assert!(!places.is_empty(), "{function} is not in the library");
        places.into_iter().for_each(|i| file[i + name.len() - 2] = b'!');
        Fake::of(&file)
    }

    fn of(file: &[u8]) -> Fake {
        let path = scratch("libcuda.so.1");
        std::fs::write(&path, file).expect("a file");
        // SAFETY: the library is ours.
        let library = unsafe { Library::new(&path) }.expect("the library loads");
        Fake { library, path }
    }

    fn function<T>(&self, name: &str) -> Symbol<'_, T> {
        // SAFETY: callers know the type.
        unsafe { self.library.get(name.as_bytes()) }.expect("the fake has it")
    }

    /// Sets something; `lib.rs` of the fake says what there is.
    pub fn set(&self, name: &str, value: i64) {
        let name = CString::new(name).unwrap();
        // SAFETY: the function has this type, here and below.
        unsafe { self.function::<unsafe extern "C" fn(*const i8, i64)>("fake_set")(name.as_ptr(), value) };
    }

    pub fn get(&self, name: &str) -> i64 {
        let name = CString::new(name).unwrap();
        // SAFETY: as above.
        unsafe { self.function::<unsafe extern "C" fn(*const i8) -> i64>("fake_get")(name.as_ptr()) }
    }

    /// Takes a list.
    pub fn take(&self, name: &str) -> Vec<String> {
        let name = CString::new(name).unwrap();
        let take = self.function::<unsafe extern "C" fn(*const i8, *mut u8, usize) -> usize>("fake_take");
        let mut text = vec![0; 1 << 20];
        // SAFETY: as above.
        let bytes = unsafe { take(name.as_ptr(), text.as_mut_ptr(), text.len()) };
        assert!(bytes <= text.len(), "a list of {bytes} bytes");
        String::from_utf8_lossy(&text[..bytes]).lines().map(str::to_owned).collect()
    }

    /// How often a function was called since somebody last took the log.
    pub fn calls(&self, function: &str) -> usize {
        self.take("log").iter().filter(|name| *name == function).count()
    }

    pub fn fail(&self, n: i64, code: i32) {
        // SAFETY: as above.
        unsafe { self.function::<unsafe extern "C" fn(i64, i32)>("fake_fail")(n, code) };
    }

    pub fn kernel(&self, name: &str, kernel: Kernel) {
        let name = CString::new(name).unwrap();
        // SAFETY: as above.
        unsafe { self.function::<unsafe extern "C" fn(*const i8, Kernel)>("fake_kernel")(name.as_ptr(), kernel) };
    }

    /// Registers the kernels of [`units`].
    pub fn with_kernels(self) -> Fake {
        self.kernel("add", add);
        self.kernel("add_count", add_count);
        self.kernel("less", less);
        self
    }

    /// The library.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn driver(&self) -> Result<Arc<Driver>> {
        Driver::load(Some(&self.path))
    }

    pub fn device(&self, ordinal: usize) -> Arc<Device> {
        Device::new(&self.driver().unwrap(), ordinal).unwrap()
    }

    pub fn compiler(&self) -> Result<Compiler> {
        Compiler::first(self.driver()?.version(), vec![self.path.clone()])
    }

    pub fn cubins(&self) -> Cubins {
        Cubins::new(self.compiler().unwrap(), None)
    }

    /// Asserts that nothing lives any more, and that nothing was done that must not be.
    #[track_caller]
    pub fn is_clean(&self) {
        self.is_clean_after("everything");
    }

    #[track_caller]
    pub fn is_clean_after(&self, what: &str) {
        assert_eq!(self.take("violations"), [""; 0], "after {what}");
        let kinds = ["streams", "events", "modules", "pools", "pinned", "graphs", "execs", "sources", "contexts"];
        for kind in kinds.into_iter().chain(["blocks", "depth"]) {
            assert_eq!(self.get(kind), 0, "{kind} that live after {what}");
        }
    }
}

/// Kernels over float32: `c = a + b`; `a += counter` with a counter of eight bytes; a flag of one byte, `a[0] < limit`.
pub const ADD: &str = r#"
extern "C" __global__ void add(const float* a, const float* b, float* c, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
"#;
const ADD_COUNT: &str = r#"
extern "C" __global__ void add_count(float* a, const long long* counter, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) a[i] += (float)*counter;
}
"#;
const LESS: &str = r#"
extern "C" __global__ __launch_bounds__(256) void less(const float* a, unsigned char* flag, long long limit) {
    *flag = a[0] < (float)limit;
}
"#;

/// The kernels of the programs here.
pub fn units() -> Vec<Unit> {
    [("add", ADD), ("add_count", ADD_COUNT), ("less", LESS)]
        .map(|(kernel, text)| Unit { kernel: kernel.into(), text: text.into() })
        .into()
}

extern "C" fn add(params: *const u64, _: usize, _: *const u32, _: *const u32) {
    // SAFETY: the fake passes four parameters, of which three are arrays of so many elements.
    unsafe {
        let [a, b, c, n] = params.cast::<[u64; 4]>().read();
        let (a, b, c) = (a as *const f32, b as *const f32, c as *mut f32);
        (0..n as usize).for_each(|i| c.add(i).write(*a.add(i) + *b.add(i)));
    }
}

extern "C" fn add_count(params: *const u64, _: usize, _: *const u32, _: *const u32) {
    // SAFETY: as above, with an array, a number and a length.
    unsafe {
        let [a, counter, n] = params.cast::<[u64; 3]>().read();
        let (a, counter) = (a as *mut f32, *(counter as *const i64));
        (0..n as usize).for_each(|i| *a.add(i) += counter as f32);
    }
}

extern "C" fn less(params: *const u64, _: usize, _: *const u32, _: *const u32) {
    // SAFETY: as above, with an array, a flag and a number.
    unsafe {
        let [a, flag, limit] = params.cast::<[u64; 3]>().read();
        *(flag as *mut u8) = u8::from(*(a as *const f32) < limit as f32);
    }
}

/// Elements of the arrays of the programs here.
pub const N: usize = 300;

pub fn floats() -> Type {
    Type::new(DType::F32, &[N])
}

/// All bytes of an array of floats in a place.
pub fn all(place: Place) -> Span {
    Span { place, offset: 0, bytes: 4 * N }
}

/// A launch of a kernel on arrays and numbers.
pub fn launch(kernel: &str, args: &[Argument]) -> Step {
    let args = args.to_vec();
    Step::Launch(Launch { kernel: kernel.into(), grid: [2, 1, 1], block: [256, 1, 1], shared: 0, args })
}

/// `c = a + b` over whole arrays.
pub fn sum(a: Place, b: Place, c: Place) -> Step {
    let memory = |place| Argument::Memory(all(place));
    launch("add", &[memory(a), memory(b), memory(c), Argument::Int(N as i64)])
}

/// A program of [`units`] with as many results as it says, which take no memory of parameters.
pub fn program(params: usize, results: usize, arena: usize, steps: Vec<Step>) -> Program {
    Program {
        units: units(),
        params: vec![floats(); params],
        results: vec![Output { ty: floats(), takes: None }; results],
        constants: Vec::new(),
        arena,
        steps,
    }
}

/// The constant with all elements the same.
pub fn constant(value: f32) -> Bytes {
    Bytes::of([value; N].iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<u8>>())
}

/// An array on a device with all elements the same.
pub fn array(device: &Arc<Device>, value: f32) -> Memory {
    let elements = Buffer::from_slice(&[value; N]).unwrap();
    Memory::device(device.upload(elements.bytes()).unwrap())
}

/// The one value of all elements.
#[track_caller]
pub fn value(memory: &Memory) -> f32 {
    let host = memory.host().unwrap();
    let elements = host.typed::<f32>();
    assert!(elements.iter().all(|x| *x == elements[0]), "{:?}", &elements[..4]);
    elements[0]
}

/// Runs on arrays that stay.
pub fn run(executable: &Executable, args: &[&Memory]) -> Result<Vec<Memory>> {
    let mut args: Vec<Arg<'_>> = args.iter().map(|m| Arg::Borrowed(m)).collect();
    Ok(executable.run(&mut args)?.into_iter().collect())
}

/// The kind and text of an error.
#[track_caller]
pub fn failure<T>(result: Result<T>) -> (&'static str, String) {
    let error = result.err().expect("an error");
    let kind = match &*error.0 {
        ErrorKind::Memory(_) => "Memory",
        ErrorKind::NotImplemented(_) => "NotImplemented",
        ErrorKind::Runtime(_) => "Runtime",
        ErrorKind::Value(_) => "Value",
        ErrorKind::Deleted(_) => "Deleted",
        ErrorKind::Internal(_) => "Internal",
        _ => "another one",
    };
    (kind, error.to_string())
}

/// A program that calls no library, loaded.
pub fn load(device: &Arc<Device>, cubins: &Cubins, program: &Program, name: &str) -> Result<Executable> {
    Executable::load(device, cubins, &Libraries::new(device.context().driver().version(), Vec::new()), program, name)
}
