//! XLA behind the seam: a plugin of the PJRT C API, with its devices, memory and programs.
//!
//! A plugin is registered by name and path, and loaded when somebody first asks for its devices: a process that uses
//! none of them starts nothing. A name may also be asked for before anybody says where its plugin is. Programs are printed as StableHLO, compiled by the plugin and run asynchronously by it;
//! an error of a run surfaces where its results are used.
//!
//! Read next: `cut.rs` for several devices, `ferrax_pjrt::stablehlo` for the printing, `ferrax_pjrt::safe` for the plugin's objects.

use super::{Compiled, Cut, Engine, Source, Stats, cuda, cut, driven, kept};
use ferrax_base::fork::Lock;
use ferrax_base::memory::DeviceMemory;
use ferrax_base::{Arg, Buffer, Error, Memory, Outputs, Result, bail, error};
use ferrax_ir::{DeviceId, Tiles};
use ferrax_loops::Type;
pub use ferrax_pjrt::result::code_name;
use ferrax_pjrt::safe::{self, Client, CompileOptions, Executable, Plugin};
pub use ferrax_pjrt::safe::{OptionValue, Probe, Store, answer};
use ferrax_pjrt::stablehlo::{self, Target};
use smallvec::SmallVec;
use std::any::Any;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// A plugin as an engine.
pub(super) struct Xla {
    name: &'static str,
    place: OnceLock<Place>,
    started: OnceLock<Started>,
    /// Held by whoever starts the plugin.
    starting: Mutex<()>,
    /// Programs so far.
    compiled: AtomicUsize,
}

/// Where a plugin is, and what its client is made with.
struct Place {
    path: PathBuf,
    options: Vec<(String, OptionValue)>,
}

/// Every plugin that was registered or asked for.
static ALL: Mutex<Vec<&'static Xla>> = Mutex::new(Vec::new());

/// How plugins are tried in another process before they are loaded here; not at all where nobody said how.
static PROBE: OnceLock<Probe> = OnceLock::new();

/// Has plugins tried in another process before they are loaded in this one, which they might end; the first call counts.
pub fn try_plugins_by(probe: Probe) {
    let _ = PROBE.set(probe);
}

/// The other processes of this one's program.
struct Processes {
    count: usize,
    store: Arc<dyn Store>,
}

static PROCESSES: Lock<Option<Processes>> = Lock::new(None);

/// Errors where a plugin runs already, which knows nothing of other processes.
pub fn require_none() -> Result<()> {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(plugin) = all.iter().find(|plugin| plugin.started.get().is_some()) {
        bail!(
            Runtime,
            "jax.distributed.initialize() must be called before any JAX calls that might initialise the XLA backend. This \
             includes any computation, but also calls to jax.devices, jax.device_put, and others. Platform {} was in use",
            plugin.name
        );
    }
    Ok(())
}

/// Says how many processes the program has, and by which store they tell each other of themselves: plugins that start from
/// now on have the devices of all. `None` for a process alone.
pub fn set_processes(others: Option<(usize, Arc<dyn Store>)>) {
    let others = others.map(|(count, store)| Processes { count, store });
    *PROCESSES.lock() = others;
}

/// Waits until no run over several processes goes on here, or for so long; gives whether none does.
pub fn wait_for_runs(patience: Duration) -> bool {
    cut::wait_for_runs(patience)
}

/// A client, among those of other processes if there are any: it is told its number and how many there are by the options
/// that plugins for GPUs take, unless whoever registered the plugin said it. Plugins that have no such options know their
/// processes by themselves.
fn client(plugin: &Arc<Plugin>, options: &[(String, OptionValue)]) -> Result<Arc<Client>> {
    let known = PROCESSES.lock().as_ref().map(|p| (p.count, p.store.clone()));
    let Some((count, store)) = known.filter(|(count, _)| *count > 1) else {
        return Client::new(plugin, options);
    };
    let told = [("node_id", crate::device::process()), ("num_nodes", count)];
    let unsaid = told.iter().filter(|(name, _)| !options.iter().any(|(known, _)| known == name));
    let said = unsaid.map(|&(name, value)| (name.to_owned(), OptionValue::Int(value as i64)));
    let all: Vec<_> = options.iter().cloned().chain(said).collect();
    let store = Some(store);
    Client::among(plugin, &all, store.clone()).or_else(|error| {
        let text = error.to_string();
        let unknown = told.iter().any(|(name, _)| text.contains(name));
        if unknown { Client::among(plugin, options, store).or(Err(error)) } else { Err(error) }
    })
}

/// A plugin that runs.
struct Started {
    client: Arc<Client>,
    target: Target,
    counts: Arc<[Counts]>,
}

/// Bytes of arrays on a device.
#[derive(Default)]
pub(super) struct Counts {
    in_use: AtomicUsize,
    peak: AtomicUsize,
}

/// The platform of a plugin of this name: `xla_cuda` for `cuda` where that is ferrax's own engine.
pub fn platform(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    if name == cuda::PLATFORM && cuda::is_registered() { format!("xla_{name}") } else { name }
}

/// Registers a plugin under a name, which becomes its platform's ([`platform`]); gives the platform's number. Nothing is
/// loaded yet.
pub fn register(name: &str, path: PathBuf, options: Vec<(String, OptionValue)>) -> Result<usize> {
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        bail!(Value, "a platform's name has letters, digits and '_'; got '{name}'");
    }
    let (number, plugin) = named(&platform(name))?;
    match plugin.place.set(Place { path, options }) {
        Ok(()) => Ok(number),
        Err(_) => bail!(Value, "there is a platform {name} already"),
    }
}

/// The number of a platform whose plugin may be registered later; using its devices before that is an error.
pub fn expect(name: &str) -> Result<usize> {
    Ok(named(name)?.0)
}

/// The plugin of a name, and the number of its platform; made if there is none.
fn named(name: &str) -> Result<(usize, &'static Xla)> {
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((plugin, number)) = all.iter().find(|x| x.name == name).zip(super::numbered_as(name)) {
        return Ok((number, plugin));
    }
    // as long as the process: engines never go
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    let plugin = Box::leak(Box::new(Xla {
        name,
        place: OnceLock::new(),
        started: OnceLock::new(),
        starting: Mutex::new(()),
        compiled: AtomicUsize::new(0),
    }));
    let number = super::register(Box::new(&*plugin))?;
    all.push(plugin);
    Ok((number, plugin))
}

/// Registers the plugins that the environment names: `FERRAX_PJRT_PLUGIN` is a list of `name:path` with commas between.
pub fn register_from_environment() -> Result<()> {
    let Some(list) = std::env::var_os("FERRAX_PJRT_PLUGIN") else { return Ok(()) };
    let list = list.to_string_lossy();
    for entry in list.split(',').map(str::trim).filter(|e| !e.is_empty()) {
        let Some((name, path)) = entry.split_once(':') else {
            bail!(Value, "FERRAX_PJRT_PLUGIN is a list of name:path with commas between; got '{entry}'");
        };
        register(name, path.into(), Vec::new())?;
    }
    Ok(())
}

impl Xla {
    fn started(&self) -> Result<&Started> {
        if let Some(started) = self.started.get() {
            return Ok(started);
        }
        let _one = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(started) = self.started.get() {
            return Ok(started);
        }
        let Some(Place { path, options }) = self.place.get() else { return Err(super::unknown(self.name)) };
        if let Some(probe) = PROBE.get() {
            probe.try_plugin(self.name, path)?.usable(self.name, path)?;
        }
        let plugin = Plugin::load(self.name, path)?;
        let version = plugin.stablehlo_version().unwrap_or(stablehlo::OLDEST);
        let client = client(&plugin, options)?;
        let count = client.addressable_devices();
        if count == 0 {
            bail!(Runtime, "platform {}: the plugin {} found no device", self.name, path.display());
        }
        let target = Target { platform: client.platform_name().to_ascii_lowercase(), version };
        let counts = (0..count).map(|_| Counts::default()).collect();
        Ok(self.started.get_or_init(|| Started { client, target, counts }))
    }
}

impl Xla {
    /// What the plugin compiles of a text.
    fn executable(&self, source: &Source<'_>, text: &str, mut options: CompileOptions) -> Result<Executable> {
        let client = &self.started()?.client;
        options.overrides = stablehlo::OPTIONS.map(|(name, on)| (name.to_owned(), OptionValue::Bool(on))).into();
        options.overrides.extend_from_slice(source.options);
        if self.compiled.fetch_add(1, Relaxed) % LOOKED_AT == LOOKED_AT - 1 && few_mappings_left() {
            make_room();
        }
        match kept::compile(client, source.name, text, &options) {
            Err(error) if lacks_room(&error) => {
                make_room();
                kept::compile(client, source.name, text, &options)
            }
            made => made,
        }
    }
}

impl Engine for &'static Xla {
    fn platform(&self) -> &'static str {
        self.name
    }

    fn present(&self) -> bool {
        self.place.get().is_some()
    }

    fn devices(&self) -> Result<usize> {
        Ok(self.started()?.client.addressable_devices())
    }

    fn all_devices(&self) -> Result<usize> {
        Ok(self.started()?.client.known_devices())
    }

    fn known_as(&self, device: usize) -> (usize, usize) {
        let known = self.started().and_then(|s| s.client.known_device(device));
        known.map_or((device, 0), |(id, process)| (id as usize, process as usize))
    }

    fn device_kind(&self, device: usize) -> String {
        // those of other processes are of the same kind
        let device = if self.devices().is_ok_and(|own| device < own) { device } else { 0 };
        let kind = self.started().and_then(|s| s.client.device_kind(device));
        kind.unwrap_or_else(|_| self.name.to_owned())
    }

    fn about(&self) -> Result<Vec<(&'static str, String)>> {
        let Started { client, target, .. } = self.started()?;
        let (major, minor) = client.plugin().api_version();
        let [a, b, c] = target.version;
        let path = self.place.get().map(|p| p.path.display().to_string()).unwrap_or_default();
        Ok(vec![
            ("path", path),
            ("platform", format!("{} {}", client.platform_name(), client.platform_version()?)),
            ("PJRT C API", format!("{major}.{minor}")),
            ("StableHLO", format!("{a}.{b}.{c}")),
        ])
    }

    fn compile(&self, source: &Source<'_>) -> Result<Box<dyn Compiled>> {
        if source.graph.calls_host() {
            return driven::compile(self, source);
        }
        let Started { client, target, counts } = self.started()?;
        let text = stablehlo::module(source.graph, source.donated, target)?;
        let executable = self.executable(source, &text, CompileOptions::on(client.device_id(source.device)?))?;
        let aliases = source.graph.aliases(source.donated);
        let results = source.graph.outputs.iter().map(|v| source.graph.ty(*v).bytes()).collect();
        Ok(Box::new(Program {
            executable,
            reusable: aliases.iter().map(Option::is_some).collect(),
            donated: source.donated.to_vec(),
            results,
            device: source.device,
            counts: counts.clone(),
        }))
    }

    fn compile_cut(&self, source: &Source<'_>, over: &Cut) -> Result<Box<dyn Compiled>> {
        if source.graph.calls_host() {
            return cut::driven(self, source, over);
        }
        let Started { client, target, counts } = self.started()?;
        let donated = cut::taken(over, source.graph, source.donated);
        let places = cut::places(over, source.graph, target);
        let text = stablehlo::placed_module(source.graph, &donated, target, Some(&places))?;
        let ids = over.devices.iter().map(|d| client.device_id(d.index())).collect::<Result<Vec<_>>>()?;
        let options = CompileOptions { shardy: places.mesh.is_some(), ..CompileOptions::partitioned(&ids) };
        let executable = self.executable(source, &text, options)?;
        let types = source.graph.outputs.iter().map(|&v| source.graph.ty(v).clone());
        let own: Vec<usize> = over.devices.iter().map(|d| d.index()).filter(|&d| d < counts.len()).collect();
        let lying = |ty, tiles: &Tiles| cut::Lying::new(ty, (&over.devices, tiles), counts.len());
        Ok(Box::new(cut::Program {
            executable,
            reusable: source.graph.aliases(&donated).iter().map(Option::is_some).collect(),
            donated,
            others: own.len() < over.devices.len(),
            own,
            results: types.zip(&over.results).map(|(ty, tiles)| lying(ty, tiles)).collect(),
            counts: counts.clone(),
        }))
    }

    fn assemble(&self, parts: &[&Buffer], ty: &Type, over: (&[DeviceId], &Tiles)) -> Result<Memory> {
        let Started { client, counts, .. } = self.started()?;
        cut::Parts::assemble(client, (parts, ty), over, counts)
    }

    fn part(&self, memory: &Memory, place: usize) -> Result<Buffer> {
        cut::Parts::part(memory, place)
    }

    fn upload_cut(&self, elements: &Buffer, ty: &Type, over: (&[DeviceId], &Tiles)) -> Result<Memory> {
        let Started { client, counts, .. } = self.started()?;
        cut::Parts::upload(client, (elements, ty), over, counts)
    }

    fn upload(&self, elements: &Buffer, ty: &Type, device: usize) -> Result<Memory> {
        let Started { client, counts, .. } = self.started()?;
        let buffer = client.upload(elements.bytes(), ty.dtype, &ty.shape, device)?;
        Ok(Memory::device(Held::new(buffer, ty.bytes(), device, counts)))
    }

    fn stats(&self, device: usize) -> Stats {
        let none = Stats { in_use: 0, peak: 0, kept: 0, limit: None };
        let Some(started) = self.started.get() else { return none };
        let Some(counts) = started.counts.get(device) else { return none };
        let limit = started.client.memory_stats(device).ok().flatten().and_then(|s| s.bytes_limit);
        let limit = limit.and_then(|bytes| usize::try_from(bytes).ok());
        Stats { in_use: counts.in_use.load(Relaxed), peak: counts.peak.load(Relaxed), kept: 0, limit }
    }
}

/// Whether a compiler had no memory left, or no mappings of it: those that XLA's CPU client has for one large program are
/// hundreds, and a process has 65,530.
fn lacks_room(error: &Error) -> bool {
    let text = error.to_string();
    ["RESOURCE_EXHAUSTED", "Failed to materialize symbols", "Cannot allocate memory"].iter().any(|s| text.contains(s))
}

/// Of so many programs one looks at the mappings that are left: to count them takes milliseconds.
const LOOKED_AT: usize = 32;

/// Whether the process has three quarters of the mappings that its system gives it. A compiler that gets none may end
/// the process instead of saying so. Systems that do not tell have none to count.
fn few_mappings_left() -> bool {
    let most = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok().and_then(|text| text.trim().parse().ok());
    most.is_some_and(|most: usize| {
        let taken = std::fs::read_to_string("/proc/self/maps").map_or(0, |maps| maps.lines().count());
        taken > most / 4 * 3
    })
}

/// Drops the programs that only caches hold.
fn make_room() {
    crate::dispatch::clear_cache();
    crate::executable::clear_cache();
}

/// What an array holds of a device's memory.
pub(super) struct Held {
    buffer: safe::Buffer,
    bytes: usize,
    device: usize,
    counts: Arc<[Counts]>,
}

impl Held {
    pub(super) fn new(buffer: safe::Buffer, bytes: usize, device: usize, counts: &Arc<[Counts]>) -> Held {
        let Counts { in_use, peak } = &counts[device];
        peak.fetch_max(in_use.fetch_add(bytes, Relaxed) + bytes, Relaxed);
        Held { buffer, bytes, device, counts: counts.clone() }
    }

    pub(super) fn buffer(&self) -> &safe::Buffer {
        &self.buffer
    }

    pub(super) fn device(&self) -> usize {
        self.device
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.counts[self.device].in_use.fetch_sub(self.bytes, Relaxed);
    }
}

impl DeviceMemory for Held {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn ready(&self) -> bool {
        // what cannot be asked for has failed, as a wait will say
        self.buffer.ready().unwrap_or(true)
    }

    fn wait(&self) -> Result<()> {
        self.buffer.wait()
    }

    fn to_host(&self) -> Result<Buffer> {
        self.buffer.to_host()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A compiled program.
struct Program {
    executable: Executable,
    reusable: Vec<bool>,
    /// Parameters that the program may take the memory of; empty when there are none.
    donated: Vec<bool>,
    /// Bytes of the results.
    results: SmallVec<[usize; 4]>,
    device: usize,
    counts: Arc<[Counts]>,
}

impl Compiled for Program {
    fn reusable(&self) -> &[bool] {
        &self.reusable
    }

    fn run(&self, args: &mut [Arg<'_>], device: usize) -> Result<Outputs> {
        if device != self.device {
            bail!(Internal, "a program for device {} was run on device {device}", self.device);
        }
        let mut buffers: SmallVec<[&safe::Buffer; 8]> = SmallVec::with_capacity(args.len());
        for arg in args.iter() {
            let held =
                arg.device::<Held>().ok_or_else(|| error!(Internal, "an argument is not in the plugin's memory"))?;
            if held.device != device {
                bail!(Internal, "an argument of device {device} is on device {}", held.device);
            }
            buffers.push(&held.buffer);
        }
        let results = self.executable.execute(&buffers, &kept(args, &self.donated), None)?;
        drop(buffers);
        take(args, &self.reusable);
        let held = |(buffer, &bytes)| Memory::device(Held::new(buffer, bytes, device, &self.counts));
        Ok(results.into_iter().zip(&self.results).map(held).collect())
    }

    fn queues_itself(&self) -> bool {
        true
    }

    fn text(&self) -> Result<String> {
        self.executable.about().text()
    }

    fn temporary_bytes(&self) -> Option<usize> {
        temporary_bytes(&self.executable)
    }
}

/// The arguments of parameters whose memory a program would take, and that are not given away.
pub(super) fn kept(args: &[Arg<'_>], donated: &[bool]) -> SmallVec<[i64; 8]> {
    let pairs = args.iter().zip(donated).enumerate();
    let lent = pairs.filter(|(_, (arg, donated))| **donated && !matches!(arg, Arg::Owned(_)));
    lent.map(|(i, _)| i as i64).collect()
}

/// Marks the arguments whose memory a run has taken.
pub(super) fn take(args: &mut [Arg<'_>], reusable: &[bool]) {
    for (arg, reused) in args.iter_mut().zip(reusable) {
        if *reused && matches!(arg, Arg::Owned(_)) {
            *arg = Arg::Taken;
        }
    }
}

/// Bytes that a run takes beside its arguments and results, on a device.
pub(super) fn temporary_bytes(executable: &Executable) -> Option<usize> {
    let memory = executable.about().memory().ok().flatten()?;
    usize::try_from(memory.temporary).ok()
}
