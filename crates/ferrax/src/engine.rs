//! Engines: what computes, each on the devices of one platform.
//!
//! An engine compiles kernel graphs, takes the elements of arrays into its memory and runs what it compiled. The embedded
//! CPU ([`cpu`]) is always there and is platform 0; others are registered before the first use of a device. Whoever
//! dispatches a computation knows engines by the two traits here and nothing else, with one exception: small eager
//! operations on CPU devices go straight to that engine's kernels (`direct.rs`).
//!
//! Read next: `device.rs` for the devices and where a computation runs, `executable.rs` for who compiles and runs.

mod cpu;
pub mod cuda;
mod cut;
pub mod driven;
pub mod kept;
pub mod xla;

use ferrax_base::{Arg, Buffer, Error, Memory, Outputs, Result, bail, error};
use ferrax_ir::{DeviceId, Tiles};
use ferrax_loops::{Graph, Type};
pub use ferrax_pjrt::safe::OptionValue;
use std::sync::{Arc, OnceLock};

/// A program to compile.
pub struct Source<'a> {
    /// What it computes. A run must have called the host, where it does ([`Graph::calls_host`]), when it returns: engines
    /// whose programs cannot leave that to [`driven`].
    pub graph: &'a Arc<Graph>,
    /// Parameters whose memory it may use for results; empty when there are none.
    pub donated: &'a [bool],
    /// The device that it will run on, by its number on the platform.
    pub device: usize,
    /// What the function is called, for people.
    pub name: &'a str,
    /// Options of the engine's compiler, by name.
    pub options: &'a Options,
}

/// How a program is cut over several devices with memories of their own.
pub struct Cut {
    /// The devices.
    pub devices: Arc<[DeviceId]>,
    /// How each parameter lies on them.
    pub params: Vec<&'static Tiles>,
    /// And each result.
    pub results: Vec<&'static Tiles>,
    /// How an array lies on them that each has all of.
    pub whole: &'static Tiles,
    /// Values inside of the program of which it says how they lie.
    pub inside: Vec<Inside>,
}

/// A value inside of a program of which the program says how it lies on the devices.
pub struct Inside {
    /// What is called to give it, its parameter.
    pub call: Arc<Graph>,
    /// How it lies on the devices.
    pub tiles: Tiles,
    /// Axes that may be divided further; `None` for all.
    pub open: Option<&'static [usize]>,
}

/// Options of a compiler, by name.
pub type Options = [(String, OptionValue)];

/// Options of XLA's executables that are no flags.
const XLAS: [&str; 4] =
    ["exec_time_optimization_effort", "memory_fitting_effort", "memory_fitting_level", "optimization_level"];

/// What the names of XLA's flags begin with that are yes or no.
const SWITCHES: &str = "xla_allow_excess_precision xla_cpu_copy_insertion_use_ xla_cpu_enable_ xla_cpu_fast_math_honor_ \
    xla_cpu_multi_thread_eigen xla_cpu_strict_dot_conv_math xla_cpu_use_ xla_detailed_logging xla_dump_compress_ \
    xla_dump_fusion_ xla_dump_hlo_as_ xla_dump_hlo_snapshots xla_dump_include_ xla_dump_large_ xla_dump_module_ \
    xla_eliminate_hlo_implicit_broadcast xla_embed_ir_in_executable xla_enable_dumping xla_hlo_profile xla_llvm_ \
    xla_test_all_";

impl Source<'_> {
    /// Errors where an engine whose compiler has no options is given one. Those of XLA, which programs for XLA's CPU bring
    /// along, say nothing to it.
    pub fn without_options(&self) -> Result<()> {
        for (name, value) in self.options {
            if !name.starts_with("xla_") && !XLAS.contains(&name.as_str()) {
                bail!(Runtime, "INVALID_ARGUMENT: No such compile option: '{name}'");
            }
            let said = match value {
                OptionValue::Text(text) if text != "True" && text != "False" => text.clone(),
                OptionValue::Int(number) => number.to_string(),
                OptionValue::Float(number) => number.to_string(),
                _ => continue,
            };
            if SWITCHES.split(' ').any(|switch| name.starts_with(switch)) {
                bail!(Runtime, "INVALID_ARGUMENT: While setting option {name}, '{said}' is not a valid bool value.");
            }
        }
        Ok(())
    }
}

/// Bytes in the memory of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// In arrays that live.
    pub in_use: usize,
    /// The most that has been in use.
    pub peak: usize,
    /// Kept for reuse.
    pub kept: usize,
    /// That there can be, where the device says so.
    pub limit: Option<usize>,
}

/// What computes on the devices of a platform.
pub trait Engine: Send + Sync {
    /// The platform's name, in small letters: `"cpu"`.
    fn platform(&self) -> &'static str;

    /// Whether there is such an engine, or only its name.
    fn present(&self) -> bool {
        true
    }

    /// How many devices there are. Whoever asks first starts what the engine stands on.
    fn devices(&self) -> Result<usize>;

    /// How many all processes of a program have together, where the engine knows those of others; they come after its own.
    fn all_devices(&self) -> Result<usize> {
        self.devices()
    }

    /// What a device is called among those of all processes: its number, and that of its process.
    fn known_as(&self, device: usize) -> (usize, usize) {
        let process = crate::device::process();
        (process * crate::device::PLACES + device, process)
    }

    /// What the maker calls a device.
    fn device_kind(&self, _device: usize) -> String {
        self.platform().to_owned()
    }

    /// What stands behind the engine, as names and texts: where it was found, its versions. Starts it.
    fn about(&self) -> Result<Vec<(&'static str, String)>> {
        Ok(Vec::new())
    }

    /// Compiles a program.
    fn compile(&self, source: &Source<'_>) -> Result<Box<dyn Compiled>>;

    /// Compiles a program that several devices run together, each on its parts of the arguments; runs of it are given the
    /// memory of whole arrays. The source's device says nothing.
    fn compile_cut(&self, _source: &Source<'_>, _cut: &Cut) -> Result<Box<dyn Compiled>> {
        Err(self.one_device())
    }

    /// A copy of elements of the host, of this type, in the memory of a device.
    fn upload(&self, elements: &Buffer, ty: &Type, device: usize) -> Result<Memory>;

    /// A copy of elements of the host, of this type, cut over several devices.
    fn upload_cut(&self, _elements: &Buffer, _ty: &Type, _over: (&[DeviceId], &Tiles)) -> Result<Memory> {
        Err(self.one_device())
    }

    /// An array over several devices, of what those of this process have of it, in their order.
    fn assemble(&self, _parts: &[&Buffer], _ty: &Type, _over: (&[DeviceId], &Tiles)) -> Result<Memory> {
        Err(self.one_device())
    }

    /// What one of several devices has of an array over them, in the host's memory; by the device's place among them.
    fn part(&self, _memory: &Memory, _place: usize) -> Result<Buffer> {
        Err(self.one_device())
    }

    /// The error of an engine that cuts nothing over devices.
    #[cold]
    fn one_device(&self) -> Error {
        error!(NotImplemented, "arrays over several devices of platform {} are not implemented yet", self.platform())
    }

    /// A copy of an array of a device of the engine's, without the host; nothing where the host has to be between.
    fn copy(&self, _memory: &Memory, _device: usize) -> Result<Option<Memory>> {
        Ok(None)
    }

    /// The memory of a device.
    fn stats(&self, device: usize) -> Stats;
}

/// A program that an engine compiled.
pub trait Compiled: Send + Sync {
    /// For each parameter, whether its memory is used for a result when it is donated.
    fn reusable(&self) -> &[bool];

    /// Runs on one argument per parameter, each in memory of this device.
    fn run(&self, args: &mut [Arg<'_>], device: usize) -> Result<Outputs>;

    /// Whether a run returns before its results are there. Engines that say no have long runs queued for them.
    fn queues_itself(&self) -> bool {
        false
    }

    /// What it runs, as text.
    fn text(&self) -> Result<String>;

    /// Bytes that a run takes beside its arguments and results, where that is known.
    fn temporary_bytes(&self) -> Option<usize> {
        None
    }
}

/// The engines by the numbers of their platforms.
static ENGINES: [OnceLock<Box<dyn Engine>>; DeviceId::PLATFORMS] = [const { OnceLock::new() }; DeviceId::PLATFORMS];

/// The engine of a platform's number.
pub fn numbered(platform: usize) -> Option<&'static dyn Engine> {
    if platform == 0 {
        return Some(&cpu::Embedded);
    }
    ENGINES.get(platform)?.get().map(|engine| &**engine)
}

/// The engine of a device.
pub fn of(device: DeviceId) -> Result<&'static dyn Engine> {
    match numbered(device.platform()) {
        Some(engine) => Ok(engine),
        None => bail!(Internal, "no engine has device {device:?}"),
    }
}

/// Names of platforms that are GPUs; `"gpu"` means the one that computes when nobody says where, or the first of them.
const GPUS: [&str; 4] = ["cuda", "xla_cuda", "rocm", "xla_rocm"];

/// The number of the platform with this name; `"gpu"` is a platform of GPUs, whoever's they are.
pub fn platform(name: &str) -> Option<usize> {
    let present = |name: &str| numbered_as(name).filter(|&p| numbered(p).is_some_and(Engine::present));
    let gpus = || {
        let default = numbered(crate::device::default_platform()).map(Engine::platform);
        let first = GPUS.iter().filter(|gpu| default == Some(**gpu));
        first.chain(&GPUS).find_map(|&gpu| present(gpu))
    };
    present(name).or_else(|| if name == "gpu" { gpus() } else { None })
}

/// The number of the platform with this name, whether its engine is present or not.
fn numbered_as(name: &str) -> Option<usize> {
    (0..DeviceId::PLATFORMS).find(|&p| numbered(p).is_some_and(|engine| engine.platform() == name))
}

/// The names of all platforms, in order of their numbers.
pub fn platforms() -> Vec<&'static str> {
    (0..DeviceId::PLATFORMS).filter_map(numbered).filter(|e| e.present()).map(<dyn Engine>::platform).collect()
}

/// The error for a platform that is not there.
#[cold]
pub fn unknown(name: &str) -> Error {
    let why = match name {
        "cuda" | "gpu" => cuda::missing().map_or_else(String::new, |why| format!("\n{why}")),
        _ => String::new(),
    };
    error!(Runtime, "Unknown backend {name}. Available backends are ['{}']{why}", platforms().join("', '"))
}

/// Adds an engine; gives the number of its platform. Errors when there is one of its name.
pub fn register(engine: Box<dyn Engine>) -> Result<usize> {
    if numbered_as(engine.platform()).is_some() {
        bail!(Value, "there is a platform {} already", engine.platform());
    }
    let mut engine = Some(engine);
    for (number, place) in ENGINES.iter().enumerate().skip(1) {
        let added = engine.take().map(|e| place.set(e));
        match added {
            Some(Err(back)) => engine = Some(back),
            _ => return Ok(number),
        }
    }
    Err(error!(Runtime, "a process can have {} platforms", DeviceId::PLATFORMS))
}
