//! A client: devices of a plugin, and everything that is made on them.

use super::store::Keys;
use super::{Buffer, CompileOptions, Device, Event, Executable, Memory, MemoryStats, Plugin, Store, dtype};
use crate::result::{self as r, OptionValue};
use crate::sys::*;
use ferrax_base::{DType, Result, bail, shape};
use smallvec::SmallVec;
use std::any::Any;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Devices of a plugin.
pub struct Client {
    plugin: Arc<Plugin>,
    raw: NonNull<PJRT_Client>,
    /// Those that this process can use.
    pub(crate) addressable: Vec<*mut PJRT_Device>,
    /// The number and the process of each of them, and then of those of other processes.
    known: Vec<(i32, i32)>,
    platform_name: String,
    /// Buffers that are alive.
    pub(crate) live: AtomicUsize,
    /// What the client calls back for; boxed, as it knows the address.
    _keys: Option<Box<Keys>>,
}

// SAFETY: the functions on clients may be called from any thread, several at once; devices live as long as the client.
unsafe impl Send for Client {}
// SAFETY: as above.
unsafe impl Sync for Client {}

impl Client {
    /// Makes a client. Which options there are is up to the plugin, which refuses those that it does not know.
    pub fn new(plugin: &Arc<Plugin>, options: &[(String, OptionValue)]) -> Result<Arc<Client>> {
        Client::among(plugin, options, None)
    }

    /// As [`Client::new`], in a program of several processes, whose clients tell each other of themselves by a store. Which
    /// process this is of how many, the options say.
    pub fn among(
        plugin: &Arc<Plugin>,
        options: &[(String, OptionValue)],
        store: Option<Arc<dyn Store>>,
    ) -> Result<Arc<Client>> {
        let keys = store.map(|store| Box::new(Keys { folder: format!("pjrt/{}", plugin.name()), store }));
        let told = keys.as_ref().map_or_else(Args::new, |keys| keys.told(Args::new()));
        // SAFETY: a `Plugin` was prepared; the client keeps the keys.
        let raw = unsafe { r::client_create(plugin.api, options, told)? };
        let Some(raw) = NonNull::new(raw) else {
            bail!(Runtime, "the PJRT plugin {:?} gave no client and no error", plugin.name())
        };
        // from here on the client is destroyed when something fails
        let mut client = Client {
            plugin: plugin.clone(),
            raw,
            addressable: Vec::new(),
            known: Vec::new(),
            platform_name: String::new(),
            live: AtomicUsize::new(0),
            _keys: keys,
        };
        let api = client.api();
        // SAFETY: the client is alive.
        unsafe {
            client.platform_name = r::client_platform_name(api, raw.as_ptr())?;
            client.addressable = r::client_addressable_devices(api, raw.as_ptr())?;
            let all = r::client_devices(api, raw.as_ptr())?;
            let others = all.iter().filter(|d| !client.addressable.contains(d));
            for &device in client.addressable.iter().chain(others) {
                let description = r::device_description(api, device)?;
                client
                    .known
                    .push((r::description_id(api, description)?, r::description_process_index(api, description)?));
            }
        }
        Ok(Arc::new(client))
    }

    pub(crate) fn api(&self) -> &'static PJRT_Api {
        self.plugin.api
    }

    pub(crate) fn raw(&self) -> *mut PJRT_Client {
        self.raw.as_ptr()
    }

    /// The plugin.
    pub fn plugin(&self) -> &Arc<Plugin> {
        &self.plugin
    }

    /// The platform: `"cpu"`, `"cuda"`.
    pub fn platform_name(&self) -> &str {
        &self.platform_name
    }

    /// Versions of what the platform is made of, as text.
    pub fn platform_version(&self) -> Result<String> {
        // SAFETY: the client is alive.
        unsafe { r::client_platform_version(self.api(), self.raw()) }
    }

    /// How many devices this process can use; a device's place among them is its name in this module.
    pub fn addressable_devices(&self) -> usize {
        self.addressable.len()
    }

    /// The handle of a device by its place.
    pub(crate) fn device_at(&self, device: usize) -> Result<*mut PJRT_Device> {
        match self.addressable.get(device) {
            Some(raw) => Ok(*raw),
            None => bail!(Value, "there is no device {device}: the client has {}", self.addressable.len()),
        }
    }

    /// The number that programs know a device by, and that of its process: those of other processes come after those
    /// that this one can use.
    pub fn known_device(&self, device: usize) -> Result<(i32, i32)> {
        match self.known.get(device) {
            Some(&known) => Ok(known),
            None => bail!(Value, "there is no device {device}: the client has {}", self.known.len()),
        }
    }

    /// The number that programs know a device by.
    pub fn device_id(&self, device: usize) -> Result<i32> {
        Ok(self.known_device(device)?.0)
    }

    /// How many devices all processes have.
    pub fn known_devices(&self) -> usize {
        self.known.len()
    }

    /// One of the devices that this process can use.
    pub fn device(self: &Arc<Self>, device: usize) -> Result<Device> {
        // SAFETY: the device is the client's.
        Ok(unsafe { Device::new(self, self.device_at(device)?) })
    }

    /// All devices, those of other processes included.
    pub fn devices(self: &Arc<Self>) -> Result<Vec<Device>> {
        // SAFETY: the client is alive, and the devices are its.
        let all = unsafe { r::client_devices(self.api(), self.raw())? };
        // SAFETY: as above.
        Ok(all.into_iter().map(|raw| unsafe { Device::new(self, raw) }).collect())
    }

    /// The memories that this process can use.
    pub fn memories(self: &Arc<Self>) -> Result<Vec<Memory>> {
        // SAFETY: the client is alive, and the memories are its.
        let all = unsafe { r::client_addressable_memories(self.api(), self.raw())? };
        // SAFETY: as above.
        Ok(all.into_iter().map(|raw| unsafe { Memory::new(self, raw) }).collect())
    }

    /// The model of a device.
    pub fn device_kind(self: &Arc<Self>, device: usize) -> Result<String> {
        self.device(device)?.description()?.kind()
    }

    /// What the allocator of a device has counted; `None` where the plugin does not count.
    pub fn memory_stats(self: &Arc<Self>, device: usize) -> Result<Option<MemoryStats>> {
        self.device(device)?.memory_stats()
    }

    /// The number of this process among those of the client.
    pub fn process_index(&self) -> Result<i32> {
        // SAFETY: the client is alive.
        unsafe { r::client_process_index(self.api(), self.raw()) }
    }

    /// Numbers of the devices that so many replicas and partitions get where nobody chooses: a row for each replica.
    pub fn default_devices(&self, replicas: usize, partitions: usize) -> Result<Vec<Vec<i32>>> {
        // SAFETY: the client is alive.
        let all = unsafe { r::client_default_assignment(self.api(), self.raw(), replicas, partitions)? };
        Ok(all.chunks(partitions.max(1)).map(<[i32]>::to_vec).collect())
    }

    /// How many buffers of this client are alive.
    pub fn live_buffers(&self) -> usize {
        self.live.load(Relaxed)
    }

    /// Compiles a StableHLO program, as text or as bytecode.
    pub fn compile(self: &Arc<Self>, program: impl AsRef<[u8]>, options: &CompileOptions) -> Result<Executable> {
        let options = options.encoded();
        // SAFETY: the client is alive.
        let raw = unsafe { r::client_compile(self.api(), self.raw(), program.as_ref(), "mlir", &options)? };
        // SAFETY: the executable is this client's, and was given to us.
        unsafe { Executable::own(self, raw) }
    }

    /// Loads an executable that [`super::Compiled::serialize`] wrote with the same version of the same plugin.
    pub fn load(self: &Arc<Self>, bytes: &[u8], options: Option<&CompileOptions>) -> Result<Executable> {
        let options = options.map(CompileOptions::encoded);
        // SAFETY: the client is alive.
        let raw = unsafe { r::deserialize_and_load(self.api(), self.raw(), bytes, options.as_deref())? };
        // SAFETY: the executable is this client's, and was given to us.
        unsafe { Executable::own(self, raw) }
    }

    /// Copies elements, row by row, to a device. The bytes are the plugin's no longer when the call returns.
    pub fn upload(self: &Arc<Self>, bytes: &[u8], dtype: DType, dims: &[usize], device: usize) -> Result<Buffer> {
        let how = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
        // SAFETY: the bytes are borrowed for longer than the plugin reads them.
        let (buffer, done) = unsafe { self.from_host(bytes, dtype, dims, device, how)? };
        drop(done);
        Ok(buffer)
    }

    /// Brings elements, row by row, to a device; where it can read the host's memory, without a copy.
    ///
    /// `keep` is dropped as soon as the plugin no longer reads the bytes, on whichever thread finds that out; if the
    /// call fails, at once.
    ///
    /// # Safety
    /// The bytes stay valid and do not change until `keep` is dropped.
    pub unsafe fn upload_kept(
        self: &Arc<Self>,
        bytes: &[u8],
        dtype: DType,
        dims: &[usize],
        device: usize,
        keep: impl Send + 'static,
    ) -> Result<Buffer> {
        let how = PJRT_HostBufferSemantics_kImmutableZeroCopy;
        // SAFETY: the caller's promise.
        let (buffer, done) = unsafe { self.from_host(bytes, dtype, dims, device, how)? };
        // the owner stays for ever where nobody can say when the bytes are free
        let keep = ManuallyDrop::new(keep);
        let Some(done) = done else { bail!(Runtime, "the PJRT plugin gave no event for the end of an upload") };
        done.on_ready(move |_| drop(ManuallyDrop::into_inner(keep)))?;
        Ok(buffer)
    }

    /// Shows elements in a device's memory that somebody else owns as a buffer; `keep` is dropped with it.
    ///
    /// # Safety
    /// The address is one of this device, has the elements row by row, and stays valid and unchanged until `keep` is
    /// dropped, which may be on any thread.
    pub unsafe fn view(
        self: &Arc<Self>,
        address: *mut c_void,
        dtype: DType,
        dims: &[usize],
        device: usize,
        keep: impl Send + 'static,
    ) -> Result<Buffer> {
        let sizes = dims_of(dims);
        let place = self.device_at(device)?;
        let keep: *mut Box<dyn Any + Send> = Box::into_raw(Box::new(Box::new(keep)));
        // SAFETY: the caller's promise; dimensions outlive the call.
        let made = unsafe {
            let ty = dtype::raw(dtype);
            let (api, raw) = (self.api(), self.raw());
            r::client_create_view(api, raw, address, sizes.as_ptr(), sizes.len(), ty, place, Some(unseen), keep.cast())
        };
        if made.is_err() {
            // SAFETY: a plugin that refuses does not call back.
            drop(unsafe { Box::from_raw(keep) });
        }
        // SAFETY: the buffer is this client's, and was given to us.
        unsafe { Buffer::own(self, made?, dtype, dims.into()) }
    }

    /// # Safety
    /// The bytes are valid for as long as `how` says.
    unsafe fn from_host(
        self: &Arc<Self>,
        bytes: &[u8],
        dtype: DType,
        dims: &[usize],
        device: usize,
        how: PJRT_HostBufferSemantics,
    ) -> Result<(Buffer, Option<Event>)> {
        let want = shape::size(dims).saturating_mul(dtype.size());
        if bytes.len() != want {
            bail!(Value, "an array {dtype}{} has {want} bytes, and {} were given", shape::Tuple(dims), bytes.len());
        }
        let sizes = dims_of(dims);
        let mut args = PJRT_Client_BufferFromHostBuffer_Args {
            client: self.raw(),
            data: bytes.as_ptr().cast(),
            r#type: dtype::raw(dtype),
            dims: sizes.as_ptr(),
            num_dims: sizes.len(),
            host_buffer_semantics: how,
            device: self.device_at(device)?,
            ..Args::new()
        };
        let api = self.api();
        // SAFETY: the caller's promise; dimensions outlive the call.
        unsafe {
            r::call(api, api.PJRT_Client_BufferFromHostBuffer, "PJRT_Client_BufferFromHostBuffer", &mut args)?;
            let done = Event::own(self, args.done_with_host_buffer);
            Ok((Buffer::own(self, args.buffer, dtype, dims.into())?, done))
        }
    }
}

/// Dimensions as the C API has them.
fn dims_of(dims: &[usize]) -> SmallVec<[i64; 6]> {
    dims.iter().map(|&d| d as i64).collect()
}

/// What plugins call when a buffer of [`Client::view`] is gone.
unsafe extern "C" fn unseen(_: *mut c_void, keep: *mut c_void) {
    // SAFETY: `view` made it, for this one call.
    let keep = unsafe { Box::from_raw(keep.cast::<Box<dyn Any + Send>>()) };
    // a panic may not pass through the plugin; the hook has told of it
    let _ = catch_unwind(AssertUnwindSafe(|| drop(keep)));
}

impl Drop for Client {
    fn drop(&mut self) {
        // SAFETY: everything that the client made keeps it alive, so there is nothing left. There is nobody to tell of
        // an error.
        let _ = unsafe { r::client_destroy(self.api(), self.raw()) };
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({} of {:?}, {} devices)", self.platform_name, self.plugin, self.addressable.len())
    }
}
