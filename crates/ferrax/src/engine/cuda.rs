//! NVIDIA GPUs behind the seam: kernel graphs are planned, printed and compiled by `ferrax-cuda`, and run through the driver.
//!
//! The engine is there where a machine has NVIDIA's driver, as far as its files tell ([`is_here`]). The driver is loaded when
//! somebody first asks for a GPU, a GPU's context is made with its first array or program, NVRTC is loaded with the first
//! program, other libraries with the first that has work for them. What has no kernel is an error of compilation. Runs return
//! when the GPU has their steps; what fails later surfaces where a result is used. Tests use a driver that computes on the host.
//!
//! Read next: `ferrax_cuda::plan` for what is compiled, `ferrax_cuda::driver` for what runs it.

use super::{Compiled, Engine, Source, Stats, driven, kept};
use ferrax_base::fork::Lock;
use ferrax_base::{Arg, Buffer, Error, ErrorKind, Memory, Outputs, Result, bail};
use ferrax_cuda::driver::{Compiler, Cubins, Device, DeviceArray, Driver, Executable, Libraries, library};
use ferrax_cuda::plan::plan_with;
use ferrax_cuda::routine;
use ferrax_loops::Type;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The platform's name.
pub const PLATFORM: &str = "cuda";

/// Files that a machine with NVIDIA's driver has: on Linux, on boards of Tegra, in Windows' subsystem for Linux.
const FILES: [&str; 3] = ["/dev/nvidiactl", "/dev/nvhost-ctrl-gpu", "/usr/lib/wsl/lib/libcuda.so.1"];

/// The engine.
#[derive(Clone)]
struct Gpus;

/// The driver and what was made with it.
struct Started {
    driver: Arc<Driver>,
    devices: Box<[OnceLock<Arc<Device>>]>,
    cubins: OnceLock<Cubins>,
    libraries: OnceLock<Libraries>,
}

static REGISTERED: AtomicBool = AtomicBool::new(false);
static STARTED: OnceLock<Started> = OnceLock::new();
/// Held by whoever starts something.
static STARTING: Mutex<()> = Mutex::new(());
/// Folders of the host's packages, where NVIDIA's libraries may be.
static FOLDERS: Lock<Vec<PathBuf>> = Lock::new(Vec::new());

/// Whether the machine has NVIDIA's driver, as far as its files tell; `FERRAX_LIBCUDA` says that there is one. Loads nothing.
pub fn is_here() -> bool {
    let windows = || {
        let system = std::env::var_os("SystemRoot").map(PathBuf::from);
        cfg!(windows) && system.is_some_and(|at| at.join("System32").join("nvcuda.dll").exists())
    };
    library::named_by("FERRAX_LIBCUDA").is_some() || FILES.iter().any(|file| Path::new(file).exists()) || windows()
}

/// Registers the engine where the driver is. Plugins that are registered later under its name get another one.
pub fn register_where_it_is() -> Result<()> {
    if !is_here() || is_registered() {
        return Ok(());
    }
    super::register(Box::new(Gpus))?;
    REGISTERED.store(true, Relaxed);
    Ok(())
}

/// Whether the platform of this name is this engine.
pub fn is_registered() -> bool {
    REGISTERED.load(Relaxed)
}

/// Says in which folders of the host's packages NVIDIA's libraries are looked for.
pub fn look_for_libraries_in(folders: Vec<PathBuf>) {
    *FOLDERS.lock() = folders;
}

/// Why there is no such engine, where it is not registered; loads the driver if there is one after all.
pub(super) fn missing() -> Option<Error> {
    if is_registered() { None } else { Driver::load(None).err() }
}

/// What a place holds; made by one thread, where there is nothing.
fn made<T>(place: &'static OnceLock<T>, make: impl FnOnce() -> Result<T>) -> Result<&'static T> {
    if let Some(found) = place.get() {
        return Ok(found);
    }
    let _one = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = place.get() {
        return Ok(found);
    }
    let new = make()?;
    Ok(place.get_or_init(|| new))
}

fn started() -> Result<&'static Started> {
    made(&STARTED, || {
        let driver = Driver::load(None)?;
        let count = driver.devices()?;
        if count == 0 {
            return Err(driver.no_device());
        }
        let devices = (0..count).map(|_| OnceLock::new()).collect();
        Ok(Started { driver, devices, cubins: OnceLock::new(), libraries: OnceLock::new() })
    })
}

fn device(number: usize) -> Result<&'static Arc<Device>> {
    let Started { driver, devices, .. } = started()?;
    match devices.get(number) {
        Some(place) => made(place, || Device::new(driver, number)),
        None => bail!(Internal, "there is no GPU {number}"),
    }
}

fn cubins() -> Result<&'static Cubins> {
    let Started { driver, cubins, .. } = started()?;
    made(cubins, || {
        let folders = FOLDERS.lock().clone();
        let compiler = Compiler::load(driver.version(), &folders)?;
        Ok(Cubins::new(compiler, Some(Box::new(kept::Folder))))
    })
}

fn libraries() -> Result<&'static Libraries> {
    let Started { driver, libraries, .. } = started()?;
    made(libraries, || Ok(Libraries::new(driver.version(), FOLDERS.lock().clone())))
}

pub use ferrax_cuda::driver::Lent;

/// An array that is in a GPU's memory as this engine's.
pub fn array(memory: &Memory) -> Option<&DeviceArray> {
    memory.of()
}

/// The number of the stream that a GPU's programs run on, for libraries that hand their arrays to it.
pub fn stream(number: usize) -> Result<u64> {
    Ok(device(number)?.stream())
}

/// Another library's memory on a GPU as an array's, as [`Device::borrow`] has it.
pub fn borrowed(number: usize, address: u64, bytes: usize, owner: Box<dyn Send>) -> Result<Memory> {
    device(number)?.borrow(address, bytes, owner).map(Memory::device)
}

impl Engine for Gpus {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn devices(&self) -> Result<usize> {
        Ok(started()?.devices.len())
    }

    fn device_kind(&self, number: usize) -> String {
        device(number).map_or_else(|_| PLATFORM.to_owned(), |d| d.context().name().to_owned())
    }

    fn about(&self) -> Result<Vec<(&'static str, String)>> {
        let Started { driver, devices, .. } = started()?;
        let mut rows = vec![
            ("engine", "ferrax's own".to_owned()),
            ("driver", format!("for CUDA {} at {}", driver.version(), driver.path().display())),
        ];
        let compiler = cubins()?.compiler();
        rows.push(("NVRTC", format!("{} at {}", compiler.version(), compiler.path().display())));
        rows.extend(libraries()?.about());
        for number in 0..devices.len() {
            let context = device(number)?.context();
            let ((major, minor), gib) = (context.capability(), context.bytes() as f64 / (1 << 30) as f64);
            let target = compiler.target(context.capability())?;
            rows.push((
                "GPU",
                format!("{number}: compute capability {major}.{minor}, {gib:.1} GiB, compiled for as {target}"),
            ));
        }
        Ok(rows)
    }

    fn compile(&self, source: &Source<'_>) -> Result<Box<dyn Compiled>> {
        source.without_options()?;
        if source.graph.calls_host() {
            return driven::compile(self, source);
        }
        let libraries = libraries()?;
        let there = libraries.there(routine::Libraries::wanted(source.graph))?;
        let planned = |there| -> Result<Box<dyn Compiled>> {
            let program = plan_with(source.graph, source.donated, there)?;
            let executable = Executable::load(device(source.device)?, cubins()?, libraries, &program, source.name)?;
            Ok(Box::new(Planned { executable, source: program.source(), number: source.device }))
        };
        let none = routine::Libraries::default();
        match planned(there) {
            // a library does not take everything that it is there for
            Err(error) if there != none && matches!(*error.0, ErrorKind::NotImplemented(_)) => planned(none),
            done => done,
        }
    }

    fn upload(&self, elements: &Buffer, ty: &Type, number: usize) -> Result<Memory> {
        if elements.len() != ty.bytes() {
            bail!(Internal, "{} bytes were to be uploaded as {ty}", elements.len());
        }
        device(number)?.upload(elements.bytes()).map(Memory::device)
    }

    fn copy(&self, memory: &Memory, number: usize) -> Result<Option<Memory>> {
        match memory.of::<DeviceArray>() {
            Some(array) => array.copy_to(device(number)?).map(|copy| Some(Memory::device(copy))),
            None => Ok(None),
        }
    }

    fn stats(&self, number: usize) -> Stats {
        let none = Stats { in_use: 0, peak: 0, kept: 0, limit: None };
        let started = STARTED.get().and_then(|s| s.devices.get(number)?.get());
        started.map_or(none, |device| {
            let stats = device.stats();
            Stats { in_use: stats.in_use, peak: stats.peak, kept: stats.kept, limit: Some(stats.limit) }
        })
    }
}

/// A compiled program.
struct Planned {
    executable: Executable,
    /// Its kernels, as CUDA C.
    source: String,
    number: usize,
}

impl Compiled for Planned {
    fn reusable(&self) -> &[bool] {
        self.executable.reusable()
    }

    fn run(&self, args: &mut [Arg<'_>], number: usize) -> Result<Outputs> {
        if number != self.number {
            bail!(Internal, "a program for GPU {} was run on GPU {number}", self.number);
        }
        self.executable.run(args)
    }

    fn queues_itself(&self) -> bool {
        !self.executable.waits()
    }

    fn text(&self) -> Result<String> {
        Ok(self.source.clone())
    }

    fn temporary_bytes(&self) -> Option<usize> {
        Some(self.executable.temporary_bytes())
    }
}
