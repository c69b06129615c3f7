//! Devices and placement: which devices there are, the default one, where a computation runs, and how arrays get there.
//!
//! Several CPU devices are one memory and one engine under several names; they exist so that programs for many
//! devices can be written and tested anywhere. How many devices a platform has is fixed when it is first asked, and its
//! engine starts then: nothing starts what nobody asked for.
//! Read next: `engine.rs` for what computes on them.

use crate::{dispatch, engine};
use ferrax_base::{Aval, Buffer, Memory, Result, bail, error};
use ferrax_ir::trace::is_eager;
use ferrax_ir::{Array, DeviceId, Jaxpr, OpRef, Value};
use ferrax_loops::Type;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Devices asked for by [`set_cpu_count`]; zero when nobody asked.
static WANTED: AtomicU32 = AtomicU32::new(0);
/// How many devices the platforms have, as far as they were asked.
static COUNTS: [OnceLock<usize>; DeviceId::PLATFORMS] = [const { OnceLock::new() }; DeviceId::PLATFORMS];
/// Where what follows no device goes: twice the device, and one more when somebody chose it.
static DEFAULT: AtomicU32 = AtomicU32::new(0);
/// The number of the platform that computes when nobody says where.
static PLATFORM: AtomicU32 = AtomicU32::new(0);

/// The number of this process in its program.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Where an engine does not number the devices of all processes, a device's number is that of its process times this, and
/// its own.
pub(crate) const PLACES: usize = 1 << 17;

thread_local! {
    /// This thread's default device: `None` follows the process, `Some(None)` is "no default".
    static LOCAL_DEFAULT: Cell<Option<Option<DeviceId>>> = const { Cell::new(None) };
}

/// How many devices a platform has. Starts its engine; errors when that fails, and may be asked again.
pub fn count(platform: usize) -> Result<usize> {
    let Some((engine, known)) = engine::numbered(platform).zip(COUNTS.get(platform)) else {
        bail!(Internal, "no engine has the number {platform}");
    };
    if let Some(&count) = known.get() {
        return Ok(count);
    }
    let count = engine.devices()?.min(DeviceId::MOST);
    Ok(*known.get_or_init(|| count))
}

/// The devices of a platform.
pub fn of_platform(platform: usize) -> Result<impl Iterator<Item = DeviceId>> {
    Ok((0..count(platform)?).map(move |i| DeviceId::new(platform, i)))
}

/// The devices of a platform, those of other processes too, where its engine knows them.
pub fn of_all_processes(platform: usize) -> Result<impl Iterator<Item = DeviceId>> {
    let own = count(platform)?;
    let all = engine::numbered(platform).map_or(Ok(own), engine::Engine::all_devices)?;
    Ok((0..all.min(DeviceId::MOST)).map(move |i| DeviceId::new(platform, i)))
}

/// Whether a device is one of this process.
pub fn is_own(device: DeviceId) -> Result<bool> {
    Ok(device.index() < count(device.platform())?)
}

/// Whether the devices of this process have all of an array at a place.
#[inline]
pub fn has_all(device: DeviceId) -> Result<bool> {
    let Some((sharding, tiles)) = device.cut() else { return Ok(true) };
    let own = count(device.platform())?;
    Ok(tiles.order.chunks(tiles.copies).all(|tile| tile.iter().any(|&place| sharding.devices[place].index() < own)))
}

/// What a device is called among those of all processes: its number, and that of its process.
pub fn known_as(device: DeviceId) -> Result<(usize, usize)> {
    Ok(engine::of(device)?.known_as(device.index()))
}

/// The number of this process in its program.
pub fn process() -> usize {
    PROCESS.load(Relaxed) as usize
}

/// Says which process of its program this is.
pub fn set_process(number: usize) {
    PROCESS.store(number as u32, Relaxed);
}

/// How many CPU devices there are.
pub(crate) fn cpu_count() -> usize {
    let wanted = WANTED.load(Relaxed) as usize;
    let count = if wanted > 0 { wanted } else { count_from_xla_flags().unwrap_or(1) };
    count.clamp(1, DeviceId::MOST)
}

/// The count in `XLA_FLAGS=--xla_force_host_platform_device_count=N`.
fn count_from_xla_flags() -> Option<usize> {
    let flags = std::env::var("XLA_FLAGS").ok()?;
    let value = flags.split_whitespace().rev().find_map(|f| f.strip_prefix("--xla_force_host_platform_device_count="));
    value?.parse().ok()
}

/// Whether the devices of any platform were looked at, so that their number is fixed.
pub fn were_counted() -> bool {
    COUNTS.iter().any(|c| c.get().is_some())
}

/// Asks for this many CPU devices; errors once they were looked at.
pub fn set_cpu_count(count: usize) -> Result<()> {
    if let Some(&now) = COUNTS[0].get() {
        if now == count {
            return Ok(());
        }
        bail!(
            Runtime,
            "jax_num_cpu_devices config should be updated before backends are initialized i.e. before any JAX \
             operation is executed. You should initialize this config immediately after `import ferrax`."
        );
    }
    WANTED.store(count as u32, Relaxed);
    Ok(())
}

/// A device by the number of its platform and its own.
pub fn get(platform: usize, index: usize) -> Result<DeviceId> {
    let count = count(platform)?;
    if index < count {
        return Ok(DeviceId::new(platform, index));
    }
    let name = engine::numbered(platform).map_or("unknown", |e| e.platform());
    Err(error!(
        Value,
        "there is no device {index}: the devices of platform {name} are numbered from 0 on, {count} in all"
    ))
}

/// The number of the platform that computes when nobody says where.
pub fn default_platform() -> usize {
    PLATFORM.load(Relaxed) as usize
}

/// Chooses the platform that computes when nobody says where, by its number.
pub fn set_default_platform(number: usize) {
    PLATFORM.store(number as u32, Relaxed);
    let follow = |now: u32| (now & 1 == 0).then_some(first() << 1);
    let _ = DEFAULT.fetch_update(Relaxed, Relaxed, follow);
}

/// The first device of the default platform.
fn first() -> u32 {
    DeviceId::new(default_platform(), 0).0
}

/// The device that uncommitted computations run on, as far as one was chosen.
#[inline]
pub fn default_device() -> Option<DeviceId> {
    LOCAL_DEFAULT.get().unwrap_or_else(|| match DEFAULT.load(Relaxed) {
        n if n & 1 == 0 => None,
        n => Some(DeviceId(n >> 1)),
    })
}

/// Chooses the process-wide default device.
pub fn set_default(device: Option<DeviceId>) {
    DEFAULT.store(device.map_or_else(|| first() << 1, |d| d.single().0 << 1 | 1), Relaxed);
}

/// Whether an operation moves an array to the mesh in use, which it is not committed to.
#[inline]
pub fn moves(a: &Array) -> bool {
    matches!(LOCAL_DEFAULT.get(), Some(Some(to)) if to.is_sharded()) && !a.committed()
}

/// Runs a function as if no mesh was in use: new arrays are those of one device.
pub fn outside_of_meshes<T>(f: impl FnOnce() -> T) -> T {
    let in_use = matches!(LOCAL_DEFAULT.get(), Some(Some(to)) if to.is_sharded());
    let _before = in_use.then(|| Before(set_local_default(None)));
    f()
}

/// Overrides the default device on this thread and gives the override before; `None` follows the process.
pub fn set_local_default(device: Option<Option<DeviceId>>) -> Option<Option<DeviceId>> {
    LOCAL_DEFAULT.replace(device)
}

/// This thread's override of the default device before another one, which ends when this is dropped.
struct Before(Option<Option<DeviceId>>);

impl Drop for Before {
    fn drop(&mut self) {
        set_local_default(self.0);
    }
}

/// While a program calls the host, what that code computes goes to the CPU: the program's own device waits for it.
pub struct OnCpu {
    _before: Option<Before>,
}

impl OnCpu {
    /// From now on, until dropped.
    pub fn start() -> OnCpu {
        let elsewhere = !Placement::uncommitted().device.on_cpu();
        OnCpu { _before: elsewhere.then(|| Before(set_local_default(Some(Some(DeviceId::default()))))) }
    }
}

/// Where results go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The device.
    pub device: DeviceId,
    /// Whether operations on the result must follow it there.
    pub committed: bool,
}

impl Placement {
    /// The same, or where constants are committed if no operand says where to go.
    #[inline]
    pub fn or_home(self, home: Option<DeviceId>) -> Placement {
        match home {
            Some(device) if !self.committed => Placement { device, committed: true },
            _ => self,
        }
    }

    /// The default device, uncommitted: where new arrays go. To the devices of a mesh in use they are committed.
    #[inline]
    pub fn uncommitted() -> Placement {
        let device = match LOCAL_DEFAULT.get() {
            None => DeviceId(DEFAULT.load(Relaxed) >> 1),
            Some(Some(device)) => device,
            Some(None) => DeviceId(first()),
        };
        Placement { device, committed: device.is_sharded() }
    }

    /// An array of these elements of the host: on a CPU device it has the buffer itself, elsewhere a copy. Several devices
    /// hold all of it each.
    #[inline]
    pub fn array(self, aval: Aval, elements: Buffer) -> Result<Array> {
        if self.device.is_sharded() {
            return Placement { device: self.device.replicated(), ..self }.put(aval, elements);
        }
        self.put(aval, elements)
    }

    fn put(self, aval: Aval, elements: Buffer) -> Result<Array> {
        let memory = if self.device.on_cpu() { elements.into() } else { upload(&aval, &elements, self.device)? };
        Ok(Array::placed(aval, memory, self.device, self.committed))
    }
}

/// A copy of elements of the host in the memory of a device.
pub(crate) fn upload(aval: &Aval, elements: &Buffer, device: DeviceId) -> Result<Memory> {
    if device.on_cpu() {
        return Buffer::from_bytes(elements.bytes()).map(Memory::Host);
    }
    let (engine, ty) = (engine::of(device)?, Type::new(aval.dtype, &aval.shape));
    match device.cut() {
        Some((sharding, tiles)) => engine.upload_cut(elements, &ty, (&sharding.devices, tiles)),
        None if is_own(device)? => engine.upload(elements, &ty, device.index()),
        None => {
            let (number, process) = known_as(device)?;
            bail!(
                Value,
                "device {number} is one of process {process}, and this is process {}: an array goes to devices of other \
                 processes by a sharding alone, which has devices of this one too",
                self::process()
            )
        }
    }
}

/// An array over several devices with memories of their own, of what those of this process have of it, in their order.
pub fn assembled(aval: Aval, parts: &[Array], device: DeviceId) -> Result<Array> {
    let Some((sharding, tiles)) = device.cut() else { bail!(Internal, "{device:?} is not over several devices") };
    let pins = parts.iter().map(Array::pin).collect::<Result<Vec<_>>>()?;
    let buffers: Vec<&Buffer> = pins.iter().map(|pin| &**pin).collect();
    let ty = Type::new(aval.dtype, &aval.shape);
    let memory = engine::of(device)?.assemble(&buffers, &ty, (&sharding.devices, tiles))?;
    Ok(Array::placed(aval, memory, device, true))
}

/// What one of several devices has of an array over them, in an array of the host; by the device's place among them.
pub fn part(a: &Array, place: usize) -> Result<Array> {
    let device = a.device();
    let Some((_, tiles)) = device.cut() else { bail!(Internal, "{device:?} is not over several devices") };
    let spans = tiles.spans(tiles.tile_of(place), &a.aval().shape);
    let shape = spans.iter().map(|s| s.1).collect();
    let part = engine::of(device)?.part(&*a.pin_memory()?, place)?;
    Ok(Array::placed(Aval { shape, ..a.aval().clone() }, part, DeviceId::default(), false))
}

/// A copy on a device of an array's own platform, where its engine makes one without the host.
fn beside(a: &Array, device: DeviceId) -> Result<Option<Memory>> {
    let from = a.device();
    if from.on_cpu() || from.platform() != device.platform() {
        return Ok(None);
    }
    if from.cut().is_some() || device.cut().is_some() {
        return dispatch::moved(a, device);
    }
    engine::of(device)?.copy(&*a.pin_memory()?, device.index())
}

/// The same elements in another array on a device, committed to it or not.
pub fn copied(a: &Array, weak: bool, device: DeviceId, committed: bool) -> Result<Array> {
    let memory = match beside(a, device)? {
        Some(memory) => memory,
        None => upload(a.aval(), &*a.pin()?, device)?,
    };
    Ok(Array::placed(a.aval().with_weak(weak), memory, device, committed))
}

/// Where a computation runs: the device its committed operands agree on, else the default device. `names`
/// describes an operand when they disagree.
#[inline]
pub fn place(args: &[Value], names: impl Fn(usize) -> String) -> Result<Placement> {
    let arrays = args.iter().enumerate().filter_map(|(i, v)| if let Value::Array(a) = v { Some((i, a)) } else { None });
    place_arrays(arrays, names)
}

/// The device that the constants of a program are committed to, where one is: what takes no operands from elsewhere runs
/// there. Constants over several devices decide nothing.
pub fn home(jaxpr: &Jaxpr) -> Option<DeviceId> {
    let own = jaxpr.consts.iter().find(|c| c.committed() && !c.device().is_sharded());
    own.map(Array::device).or_else(|| jaxpr.eqns.iter().find_map(|e| home_of_op(&e.op)))
}

/// As [`home`], of the programs of an operation.
pub fn home_of_op(op: &OpRef) -> Option<DeviceId> {
    op.subjaxprs().iter().find_map(|j| home(j))
}

/// As [`place`], of numbered arrays.
#[inline]
pub fn place_arrays<'a>(
    arrays: impl Iterator<Item = (usize, &'a Array)>,
    names: impl Fn(usize) -> String,
) -> Result<Placement> {
    let mut found: Option<(usize, &Array)> = None;
    for (i, a) in arrays.filter(|(_, a)| a.committed()) {
        match found {
            None => found = Some((i, a)),
            Some((j, first)) if first.device() != a.device() => {
                if !same_devices(first.device(), a.device()) {
                    return Err(mixed(&names(j), first, &names(i), a));
                }
            }
            Some(_) => {}
        }
    }
    Ok(match found {
        Some((_, a)) => Placement { device: a.device(), committed: true },
        None => Placement::uncommitted(),
    })
}

/// An operand committed to the device that what tells places in it is committed to, where it is not itself and the
/// operation runs now: places that are known are read, and say nothing of devices any more. `None` where it stays.
pub fn where_told<'a>(
    x: &'a Value,
    places: impl Iterator<Item = &'a Value> + Clone,
    operation: &str,
) -> Result<Option<Value>> {
    let Value::Array(a) = x else { return Ok(None) };
    if !places.clone().any(|v| matches!(v, Value::Array(i) if i.committed())) || !is_eager() {
        return Ok(None);
    }
    let all: Vec<Value> = std::iter::once(x).chain(places).cloned().collect();
    let told = place(&all, |i| format!("argument {i} of {operation}"))?.device;
    if a.committed() || told.is_sharded() {
        return Ok(None);
    }
    Ok(Some(Value::Array(copied(a, a.aval().weak, told, true)?)))
}

/// Whether two shardings are over the same devices, in one order.
#[cold]
fn same_devices(a: DeviceId, b: DeviceId) -> bool {
    (a.is_sharded() || b.is_sharded()) && a.devices() == b.devices()
}

/// The error of committed operands on two devices.
#[cold]
fn mixed(first_name: &str, first: &Array, second_name: &str, second: &Array) -> ferrax_base::Error {
    let describe = |name: &str, a: &Array| {
        let platform = engine::of(a.device()).map_or("unknown", |e| e.platform()).to_uppercase();
        format!(
            "{name} with shape {} and with device ids {:?} on platform {platform}",
            a.aval().long_text(),
            a.device().devices().iter().map(|d| d.index()).collect::<Vec<_>>()
        )
    };
    error!(
        Value,
        "Received incompatible devices for jitted computation. Got {} and {}. Move one of them with \
         jax.device_put first.",
        describe(first_name, first),
        describe(second_name, second)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrax_base::Scalar;

    fn on(device: u32, committed: bool) -> Value {
        let one = Array::from_scalar(Scalar::zero(ferrax_base::DType::F32), false).unwrap();
        Value::Array(copied(&one, false, DeviceId(device), committed).unwrap())
    }

    #[test]
    fn committed_operands_decide() {
        let place = |args: &[Value]| place(args, |i| format!("argument {i}"));
        assert_eq!(place(&[on(1, false), on(0, false)]).unwrap(), Placement::default());
        let there = Placement { device: DeviceId(2), committed: true };
        assert_eq!(place(&[on(1, false), on(2, true)]).unwrap(), there);
        let text = place(&[on(1, true), on(2, true)]).unwrap_err().to_string();
        assert!(text.starts_with("Received incompatible devices"), "{text}");
    }

    #[test]
    fn the_thread_default_wins() {
        let before = set_local_default(Some(Some(DeviceId(3))));
        assert_eq!(Placement::uncommitted().device, DeviceId(3));
        set_local_default(before);
        assert_eq!(Placement::uncommitted().device, DeviceId(0));
    }
}
