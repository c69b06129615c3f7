//! Devices and placement: the table of CPU devices, the default device, and where a computation runs.
//!
//! Several CPU devices are one memory and one engine under several names; they exist so that programs for many
//! devices can be written and tested anywhere. The table is fixed when it is first looked at.

use ferrax_base::{Result, bail, error};
use ferrax_ir::{Array, DeviceId, Value};
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// What is known of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    /// Its number in the table, and the id that users see.
    pub id: DeviceId,
    /// `"cpu"`.
    pub platform: &'static str,
}

/// Devices asked for by [`set_cpu_count`]; zero when nobody asked.
static WANTED: AtomicU32 = AtomicU32::new(0);
static TABLE: OnceLock<Box<[Device]>> = OnceLock::new();
/// The process-wide default device plus one; zero when there is none.
static DEFAULT: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// This thread's default device: `None` follows the process, `Some(None)` is "no default".
    static LOCAL_DEFAULT: Cell<Option<Option<DeviceId>>> = const { Cell::new(None) };
}

/// Every device.
pub fn devices() -> &'static [Device] {
    TABLE.get_or_init(|| {
        let wanted = WANTED.load(Relaxed) as usize;
        let count = if wanted > 0 { wanted } else { count_from_xla_flags().unwrap_or(1) };
        (0..count.clamp(1, 1 << 15)).map(|i| Device { id: DeviceId(i as u16), platform: "cpu" }).collect()
    })
}

/// The count in `XLA_FLAGS=--xla_force_host_platform_device_count=N`.
fn count_from_xla_flags() -> Option<usize> {
    let flags = std::env::var("XLA_FLAGS").ok()?;
    let value = flags.split_whitespace().rev().find_map(|f| f.strip_prefix("--xla_force_host_platform_device_count="));
    value?.parse().ok()
}

/// Asks for this many CPU devices; errors once the table is in use.
pub fn set_cpu_count(count: usize) -> Result<()> {
    if let Some(table) = TABLE.get() {
        if table.len() == count {
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

/// A device by its number.
pub fn get(id: usize) -> Result<Device> {
    let table = devices();
    table
        .get(id)
        .copied()
        .ok_or_else(|| error!(Value, "there is no device {id}: the devices are numbered 0 to {}", table.len() - 1))
}

/// The device that uncommitted computations run on, as far as one was chosen.
#[inline]
pub fn default_device() -> Option<DeviceId> {
    LOCAL_DEFAULT.get().unwrap_or_else(|| match DEFAULT.load(Relaxed) {
        0 => None,
        n => Some(DeviceId(n as u16 - 1)),
    })
}

/// Chooses the process-wide default device.
pub fn set_default(device: Option<DeviceId>) {
    DEFAULT.store(device.map_or(0, |d| u32::from(d.0) + 1), Relaxed);
}

/// Overrides the default device on this thread and gives the override before; `None` follows the process.
pub fn set_local_default(device: Option<Option<DeviceId>>) -> Option<Option<DeviceId>> {
    LOCAL_DEFAULT.replace(device)
}

/// This thread's override of the default device.
pub fn local_default() -> Option<Option<DeviceId>> {
    LOCAL_DEFAULT.get()
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
    /// The default device, uncommitted: where new arrays go.
    #[inline]
    pub fn uncommitted() -> Placement {
        Placement { device: default_device().unwrap_or_default(), committed: false }
    }
}

/// Where a computation runs: the device its committed operands agree on, else the default device. `names`
/// describes an operand when they disagree.
#[inline]
pub fn place(args: &[Value], names: impl Fn(usize) -> String) -> Result<Placement> {
    let arrays = args.iter().enumerate().filter_map(|(i, v)| if let Value::Array(a) = v { Some((i, a)) } else { None });
    place_arrays(arrays, names)
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
            Some((j, first)) if first.device() != a.device() => return Err(mixed(&names(j), first, &names(i), a)),
            Some(_) => {}
        }
    }
    Ok(match found {
        Some((_, a)) => Placement { device: a.device(), committed: true },
        None => Placement::uncommitted(),
    })
}

/// The error of committed operands on two devices.
#[cold]
fn mixed(first_name: &str, first: &Array, second_name: &str, second: &Array) -> ferrax_base::Error {
    let describe = |name: &str, a: &Array| {
        let (dtype, shape) = (a.aval().dtype, &a.aval().shape);
        format!("{name} with shape {dtype}{shape:?} and with device ids [{}] on platform CPU", a.device().0)
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

    fn on(device: u16, committed: bool) -> Value {
        let one = Array::from_scalar(Scalar::zero(ferrax_base::DType::F32), false).unwrap();
        Value::Array(one.copied(false, DeviceId(device), committed).unwrap())
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
