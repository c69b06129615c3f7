//! Devices and single-device shardings as Python objects.

use crate::errors::IntoPyResult;
use crate::sharded::PyPlace;
use ferrax::engine::xla::{OptionValue, Probe};
use ferrax::{device, engine};
use ferrax_ir::{Array, DeviceId};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyList, PySet, PyTuple};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A device: what computes, with memory of its own.
#[pyclass(frozen, eq, hash, module = "ferrax", name = "Device", from_py_object)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Device(pub DeviceId);

impl Device {
    fn engine(&self) -> PyResult<&'static dyn engine::Engine> {
        engine::of(self.0).py()
    }
}

/// The objects of the platforms' devices.
static OBJECTS: [PyOnceLock<Vec<Py<Device>>>; DeviceId::PLATFORMS] = [const { PyOnceLock::new() }; DeviceId::PLATFORMS];

/// The Python objects of a platform's devices, one each: this process's own, then those of others.
fn objects(py: Python<'_>, platform: usize) -> PyResult<&Vec<Py<Device>>> {
    OBJECTS[platform].get_or_try_init(py, || {
        let all = py.detach(|| device::of_all_processes(platform).map(Iterator::collect::<Vec<_>>)).py()?;
        all.into_iter().map(|d| Py::new(py, Device(d))).collect()
    })
}

/// The object of a device.
pub fn object(py: Python<'_>, id: DeviceId) -> PyResult<Bound<'_, Device>> {
    let found = objects(py, id.platform())?.get(id.index());
    Ok(found.ok_or_else(|| PyRuntimeError::new_err(format!("there is no device {}", id.index())))?.bind(py).clone())
}

/// The device that an argument names: a device, a single-device sharding, or `None`.
pub fn parse(object: &Bound<'_, PyAny>) -> PyResult<Option<DeviceId>> {
    if object.is_none() {
        return Ok(None);
    }
    if let Ok(d) = object.cast::<Device>() {
        return Ok(Some(d.get().0));
    }
    if let Ok(s) = object.cast::<SingleDeviceSharding>() {
        return Ok(Some(s.get().device));
    }
    if let Ok(place) = object.cast::<PyPlace>() {
        return Ok(Some(place.get().0));
    }
    if let Ok(platform) = object.extract::<&str>() {
        return Ok(Some(DeviceId::new(platform_number(platform)?, 0)));
    }
    Err(PyTypeError::new_err(format!("a device or a sharding is expected; got {}", crate::shorten::repr(object))))
}

fn platform_number(name: &str) -> PyResult<usize> {
    engine::platform(name).ok_or_else(|| PyRuntimeError::new_err(engine::unknown(name).to_string()))
}

#[pymethods]
impl Device {
    /// Number of the device on its platform, among those of all processes.
    #[getter]
    fn id(&self) -> PyResult<usize> {
        Ok(device::known_as(self.0).py()?.0)
    }

    /// Number of the device in its process; `None` of another process's.
    #[getter]
    fn local_hardware_id(&self) -> PyResult<Option<usize>> {
        Ok(device::is_own(self.0).py()?.then(|| self.0.index()))
    }

    /// What computes, such as `"cpu"`.
    #[getter]
    fn platform(&self) -> PyResult<&'static str> {
        Ok(self.engine()?.platform())
    }

    /// Kind of the device, such as `"cpu"`.
    #[getter]
    fn device_kind(&self) -> PyResult<String> {
        Ok(self.engine()?.device_kind(self.0.index()))
    }

    /// Number of the process that has the device.
    #[getter]
    fn process_index(&self) -> PyResult<usize> {
        Ok(device::known_as(self.0).py()?.1)
    }

    /// Number of the host that has the device.
    #[getter]
    fn host_id(&self) -> PyResult<usize> {
        self.process_index()
    }

    /// Number of the process that has the device.
    #[getter]
    fn task_id(&self) -> PyResult<usize> {
        self.process_index()
    }

    /// Bytes in use, at most and kept; of all CPU devices together.
    fn memory_stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        // Programs that still run hold their arguments.
        ferrax::queue::drain();
        let stats = self.engine()?.stats(self.0.index());
        let out = PyDict::new(py);
        out.set_item("bytes_in_use", stats.in_use)?;
        out.set_item("peak_bytes_in_use", stats.peak)?;
        out.set_item("pool_bytes", stats.kept)?;
        if let Some(limit) = stats.limit {
            out.set_item("bytes_limit", limit)?;
        }
        Ok(out)
    }

    fn __repr__(&self) -> PyResult<String> {
        let (first, rest) = self.platform()?.split_at(1);
        Ok(format!("{}{rest}Device(id={})", first.to_uppercase(), self.id()?))
    }

    fn __str__(&self) -> PyResult<String> {
        Ok(format!("{}:{}", self.platform()?, self.id()?))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str, usize))> {
        Ok((py.import("ferrax._ferrax")?.getattr("_device")?, (self.platform()?, self.id()?)))
    }

    fn __enter__(_slf: &Bound<'_, Self>) -> PyResult<()> {
        Err(PyTypeError::new_err("a device is no context manager: use `with jax.default_device(device):`"))
    }

    fn __exit__(&self, _kind: &Bound<'_, PyAny>, _value: &Bound<'_, PyAny>, _trace: &Bound<'_, PyAny>) {}
}

/// All of an array on one device.
#[pyclass(frozen, eq, hash, subclass, module = "ferrax.sharding", name = "SingleDeviceSharding", from_py_object)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SingleDeviceSharding {
    /// The device.
    pub device: DeviceId,
    /// The kind of memory, as users asked for it: a device of the CPU has one memory.
    pub memory: Memory,
}

/// Kinds of memory.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Memory {
    #[default]
    Device,
    PinnedHost,
    UnpinnedHost,
}

impl Memory {
    fn name(self) -> &'static str {
        match self {
            Memory::Device => "device",
            Memory::PinnedHost => "pinned_host",
            Memory::UnpinnedHost => "unpinned_host",
        }
    }

    fn parse(device: DeviceId, kind: &str) -> PyResult<Self> {
        let all = [Memory::Device, Memory::PinnedHost, Memory::UnpinnedHost];
        let found = all.into_iter().find(|m| m.name() == kind);
        found.ok_or_else(|| {
            let name = engine::of(device).map_or_else(|_| "unknown".to_owned(), |e| e.device_kind(device.index()));
            PyValueError::new_err(format!(
                "Could not find memory addressable by device {name}. Device {name} can address the following memory \
                 kinds: device, pinned_host, unpinned_host. Got memory kind: {kind}"
            ))
        })
    }
}

#[pymethods]
impl SingleDeviceSharding {
    #[new]
    #[pyo3(signature = (device, *, memory_kind=None))]
    fn new(device: &Bound<'_, PyAny>, memory_kind: Option<&str>) -> PyResult<Self> {
        match parse(device)? {
            Some(device) if !device.is_sharded() => {
                let memory = memory_kind.map(|kind| Memory::parse(device, kind)).transpose()?.unwrap_or_default();
                Ok(SingleDeviceSharding { device, memory })
            }
            _ => Err(PyTypeError::new_err("SingleDeviceSharding needs a device")),
        }
    }

    #[getter]
    fn _device<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Device>> {
        object(py, self.device)
    }

    /// The devices that hold the array.
    #[getter]
    fn device_set<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PySet>> {
        PySet::new(py, [object(py, self.device)?])
    }

    /// The devices of this process that hold the array.
    #[getter]
    fn addressable_devices<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PySet>> {
        self.device_set(py)
    }

    /// Always one.
    #[getter]
    fn num_devices(&self) -> usize {
        1
    }

    /// The kind of memory.
    #[getter]
    fn memory_kind(&self) -> &'static str {
        self.memory.name()
    }

    /// Whether each device holds all of the array.
    #[getter]
    fn is_fully_replicated(&self) -> bool {
        true
    }

    /// Whether this process can reach every device.
    #[getter]
    fn is_fully_addressable(&self) -> bool {
        true
    }

    /// Whether this process can reach a device.
    #[getter]
    fn has_addressable_devices(&self) -> bool {
        true
    }

    /// The same sharding in another kind of memory.
    fn with_memory_kind(&self, kind: &str) -> PyResult<Self> {
        Ok(SingleDeviceSharding { device: self.device, memory: Memory::parse(self.device, kind)? })
    }

    /// The devices, in order.
    #[getter(_device_assignment)]
    fn device_assignment<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, Device>,)> {
        Ok((object(py, self.device)?,))
    }

    /// The devices that this process can reach, in order: all of them.
    #[getter(_addressable_device_assignment)]
    fn addressable_device_assignment<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, Device>,)> {
        self.device_assignment(py)
    }

    /// Errors where arrays of a shape cannot have this sharding: never.
    #[allow(unused_variables)]
    fn check_compatible_aval(&self, aval_shape: &Bound<'_, PyAny>) {}

    /// Shape of the part on a device: all of it.
    fn shard_shape<'py>(&self, global_shape: &Bound<'py, PyTuple>) -> Bound<'py, PyTuple> {
        global_shape.clone()
    }

    /// Whether another sharding lays an array out in the same way.
    fn is_equivalent_to(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>, ndim: usize) -> PyResult<bool> {
        if let Ok(o) = other.cast::<SingleDeviceSharding>() {
            return Ok(o.get() == slf.get());
        }
        let sharding = slf.py().import("ferrax.sharding._named")?.getattr("Sharding")?;
        if !other.is_instance(&sharding)? {
            return Ok(false);
        }
        other.call_method1("is_equivalent_to", (slf, ndim))?.extract()
    }

    /// Which part of an array each device holds.
    fn devices_indices_map<'py>(&self, global_shape: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyDict>> {
        let py = global_shape.py();
        let full = pyo3::types::PySlice::full(py);
        let out = PyDict::new(py);
        out.set_item(object(py, self.device)?, PyTuple::new(py, vec![full; global_shape.len()])?)?;
        Ok(out)
    }

    /// Which part of an array each device of this process holds.
    fn addressable_devices_indices_map<'py>(&self, global_shape: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyDict>> {
        self.devices_indices_map(global_shape)
    }

    fn __repr__(&self) -> PyResult<String> {
        let (device, memory) = (Device(self.device).__repr__()?, self.memory.name());
        Ok(format!("SingleDeviceSharding(device={device}, memory_kind={memory})"))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, Device>, &'static str))> {
        let make = py.import("ferrax.sharding._named")?.getattr("on_device")?;
        Ok((make, (object(py, self.device)?, self.memory.name())))
    }
}

/// The device of this platform and number among those of all processes.
#[pyfunction]
fn _device<'py>(py: Python<'py>, platform: &str, id: usize) -> PyResult<Bound<'py, Device>> {
    let number = platform_number(platform)?;
    let mut all = device::of_all_processes(number).py()?;
    match all.find(|d| device::known_as(*d).is_ok_and(|known| known.0 == id)) {
        Some(found) => object(py, found),
        None => object(py, device::get(number, id).py()?),
    }
}

/// Every device of this process on a platform, or on the one that computes when nobody says where.
#[pyfunction]
#[pyo3(signature = (backend=None))]
fn devices<'py>(py: Python<'py>, backend: Option<&str>) -> PyResult<Bound<'py, PyList>> {
    let number = backend.map_or_else(|| Ok(device::default_platform()), platform_number)?;
    let own = device::count(number).py()?;
    PyList::new(py, &objects(py, number)?[..own])
}

/// As `devices`, of all processes, as far as the platform's engine knows others; in order of their numbers.
#[pyfunction]
#[pyo3(signature = (backend=None))]
fn devices_of_all<'py>(py: Python<'py>, backend: Option<&str>) -> PyResult<Bound<'py, PyList>> {
    let number = backend.map_or_else(|| Ok(device::default_platform()), platform_number)?;
    let mut all: Vec<_> = objects(py, number)?.iter().map(|d| Ok((d.get().id()?, d))).collect::<PyResult<_>>()?;
    all.sort_by_key(|(id, _)| *id);
    PyList::new(py, all.into_iter().map(|(_, d)| d))
}

/// Makes the first of these platforms the one that computes when nobody says where; the CPU of none. They must be there,
/// unless they may come later: then their first use says that they are not.
#[pyfunction]
#[pyo3(signature = (names, later=false))]
fn set_platforms(names: Vec<String>, later: bool) -> PyResult<()> {
    let number = |name: &String| match engine::platform(name) {
        None if later => engine::xla::expect(name).py(),
        _ => platform_number(name),
    };
    let numbers = names.iter().map(number).collect::<PyResult<Vec<usize>>>()?;
    device::set_default_platform(numbers.first().copied().unwrap_or(0));
    Ok(())
}

/// The names of all platforms.
#[pyfunction]
fn platforms() -> Vec<&'static str> {
    engine::platforms()
}

/// What stands behind a platform, as names and texts; starts it.
#[pyfunction]
fn about_platform(py: Python<'_>, name: &str) -> PyResult<Vec<(&'static str, String)>> {
    let number = platform_number(name)?;
    let Some(engine) = engine::numbered(number) else { return Ok(Vec::new()) };
    py.detach(|| engine.about()).py()
}

/// Has plugins tried by a command before they are loaded here, and remembered in a folder.
#[pyfunction]
fn try_plugins_by(command: Vec<OsString>, cache: Option<PathBuf>, seconds: f64) {
    let patience = Duration::from_secs_f64(seconds);
    engine::xla::try_plugins_by(Probe { command, cache, patience });
}

/// Loads a plugin and prints what came of it, for whoever tries it in this process.
#[pyfunction]
fn answer_probe(name: &str, path: PathBuf) -> PyResult<()> {
    Ok(engine::xla::answer(name, &path, &mut std::io::stdout())?)
}

/// The instruction set that kernels of the embedded CPU use, and on how many threads.
#[pyfunction]
fn cpu_kernels() -> (&'static str, usize) {
    (ferrax_cpu::instruction_set(), ferrax_cpu::pool::threads())
}

/// Says where compiled programs of plugins are kept, how many bytes at most, and from which time of compilation and size
/// on; `strict` makes errors of what otherwise warns.
#[pyfunction]
fn set_compilation_cache(folder: Option<PathBuf>, most: Option<u64>, seconds: f64, bytes: usize, strict: bool) {
    let at_least = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    engine::kept::set(engine::kept::Settings { folder, most, at_least, bytes, strict });
}

/// How many compiled programs were found on disk, and how many were looked for in vain; a reset counts from zero.
#[pyfunction]
fn compilation_cache_counts(reset: bool) -> [usize; 2] {
    let counts = engine::kept::counts();
    if reset {
        engine::kept::reset();
    }
    counts
}

/// What the platform of a plugin of this name is called.
#[pyfunction]
fn plugin_platform(name: &str) -> String {
    engine::xla::platform(name)
}

/// Says in which folders of installed packages the engine of NVIDIA's GPUs looks for NVIDIA's libraries.
#[pyfunction]
fn look_for_libraries_in(folders: Vec<PathBuf>) {
    engine::cuda::look_for_libraries_in(folders);
}

/// Adds a plugin of the PJRT C API as a platform; it is loaded when its devices are asked for.
#[pyfunction]
fn register_plugin(name: &str, path: PathBuf, options: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<()> {
    engine::xla::register(name, path, self::options(options)?).map(drop).py()
}

/// Options of a plugin or of its compiler.
pub fn options(given: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Vec<(String, OptionValue)>> {
    given.into_iter().map(|(key, value)| Ok((key, option(&value)?))).collect()
}

fn option(value: &Bound<'_, PyAny>) -> PyResult<OptionValue> {
    if let Ok(b) = value.cast::<PyBool>() {
        return Ok(OptionValue::Bool(b.is_true()));
    }
    if let Ok(text) = value.extract::<String>() {
        return Ok(OptionValue::Text(text));
    }
    if let Ok(i) = value.extract::<i64>() {
        return Ok(OptionValue::Int(i));
    }
    if let Ok(x) = value.extract::<f32>() {
        return Ok(OptionValue::Float(x));
    }
    match value.extract::<Vec<i64>>() {
        Ok(all) => Ok(OptionValue::Ints(all)),
        Err(_) => Err(PyTypeError::new_err(format!(
            "an option of a plugin is a bool, an integer, a float, a text or a list of integers; got {}",
            crate::shorten::repr(value)
        ))),
    }
}

/// Sets the process-wide default device.
#[pyfunction]
fn set_default_device(device: &Bound<'_, PyAny>) -> PyResult<()> {
    ferrax::device::set_default(parse(device)?);
    Ok(())
}

/// The device that new arrays go to, as far as one was chosen.
#[pyfunction]
fn get_default_device(py: Python<'_>) -> PyResult<Option<Bound<'_, Device>>> {
    device::default_device().filter(|d| !d.is_sharded()).map(|d| object(py, d)).transpose()
}

/// Overrides the default device on this thread; gives a token for `restore_default_device`.
#[pyfunction]
fn enter_default_device(device: &Bound<'_, PyAny>) -> PyResult<i64> {
    Ok(encode(device::set_local_default(Some(parse(device)?))))
}

/// Undoes `enter_default_device`.
#[pyfunction]
fn restore_default_device(token: i64) {
    device::set_local_default(match token {
        -2 => None,
        -1 => Some(None),
        n => Some(Some(DeviceId(n as u32))),
    });
}

/// A thread's override of the default device as the token of `restore_default_device`.
pub fn encode(local: Option<Option<DeviceId>>) -> i64 {
    match local {
        None => -2,
        Some(None) => -1,
        Some(Some(d)) => i64::from(d.0),
    }
}

/// Asks for this many CPU devices, before any is used.
#[pyfunction]
fn set_num_cpu_devices(count: usize) -> PyResult<()> {
    device::set_cpu_count(count).map_err(|e| PyRuntimeError::new_err(e.to_string()))
}

/// Whether the devices of any platform were looked at.
#[pyfunction]
fn devices_were_counted() -> bool {
    device::were_counted()
}

/// Every array that is alive: arrays that Python code holds and those that programs and traces keep.
#[pyfunction]
fn live_arrays(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyAny>>> {
    Array::live().into_iter().map(|a| crate::array::wrap_array(py, a)).collect()
}

/// Adds the classes and functions of this file to the extension module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(live_arrays, m)?)?;
    m.add_function(wrap_pyfunction!(devices_were_counted, m)?)?;
    m.add_class::<Device>()?;
    m.add_class::<SingleDeviceSharding>()?;
    m.add_function(wrap_pyfunction!(_device, m)?)?;
    m.add_function(wrap_pyfunction!(devices, m)?)?;
    m.add_function(wrap_pyfunction!(devices_of_all, m)?)?;
    m.add_function(wrap_pyfunction!(platforms, m)?)?;
    m.add_function(wrap_pyfunction!(about_platform, m)?)?;
    m.add_function(wrap_pyfunction!(plugin_platform, m)?)?;
    m.add_function(wrap_pyfunction!(look_for_libraries_in, m)?)?;
    m.add_function(wrap_pyfunction!(register_plugin, m)?)?;
    m.add_function(wrap_pyfunction!(set_compilation_cache, m)?)?;
    m.add_function(wrap_pyfunction!(compilation_cache_counts, m)?)?;
    m.add_function(wrap_pyfunction!(cpu_kernels, m)?)?;
    m.add_function(wrap_pyfunction!(try_plugins_by, m)?)?;
    m.add_function(wrap_pyfunction!(answer_probe, m)?)?;
    m.add_function(wrap_pyfunction!(set_default_device, m)?)?;
    m.add_function(wrap_pyfunction!(set_platforms, m)?)?;
    m.add_function(wrap_pyfunction!(get_default_device, m)?)?;
    m.add_function(wrap_pyfunction!(enter_default_device, m)?)?;
    m.add_function(wrap_pyfunction!(restore_default_device, m)?)?;
    m.add_function(wrap_pyfunction!(set_num_cpu_devices, m)?)
}
