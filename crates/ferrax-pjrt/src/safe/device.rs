//! Devices and their memories, as plugins describe them.

use super::{Client, offered};
use crate::result::{self as r, OptionValue};
use crate::sys::*;
use ferrax_base::{Result, bail};
use std::any::Any;
use std::sync::Arc;

/// What a plugin says of a device, which need not be there.
pub struct DeviceDescription {
    api: &'static PJRT_Api,
    raw: *mut PJRT_DeviceDescription,
    /// The client or topology that it belongs to.
    _keep: Arc<dyn Any + Send + Sync>,
}

// SAFETY: descriptions do not change, and may be read from any thread.
unsafe impl Send for DeviceDescription {}
// SAFETY: as above.
unsafe impl Sync for DeviceDescription {}

impl DeviceDescription {
    /// # Safety
    /// `raw` is a description that lives as long as `keep`.
    pub(crate) unsafe fn new(
        api: &'static PJRT_Api,
        raw: *mut PJRT_DeviceDescription,
        keep: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        DeviceDescription { api, raw, _keep: keep }
    }

    /// The number that programs know the device by.
    pub fn id(&self) -> Result<i32> {
        // SAFETY: the description is alive, here and below.
        unsafe { r::description_id(self.api, self.raw) }
    }

    /// The process that it belongs to.
    pub fn process_index(&self) -> Result<i32> {
        // SAFETY: as above.
        unsafe { r::description_process_index(self.api, self.raw) }
    }

    /// Its model: `"cpu"`, `"NVIDIA H100 80GB HBM3"`.
    pub fn kind(&self) -> Result<String> {
        // SAFETY: as above.
        unsafe { r::description_kind(self.api, self.raw) }
    }

    /// What the plugin says of it beyond that.
    pub fn attributes(&self) -> Result<Vec<(String, OptionValue)>> {
        // SAFETY: as above.
        unsafe { r::description_attributes(self.api, self.raw) }
    }

    /// Its place in the network of devices, where it has one.
    pub fn coordinates(&self) -> Result<Option<Vec<i64>>> {
        let coordinates = self.attributes()?.into_iter().find_map(|(name, value)| match value {
            OptionValue::Ints(list) if name == "coords" => Some(list),
            _ => None,
        });
        Ok(coordinates)
    }

    /// A few words for people.
    pub fn text(&self) -> Result<String> {
        // SAFETY: as above.
        unsafe { r::description_to_string(self.api, self.raw) }
    }

    /// All there is, for logs.
    pub fn debug_text(&self) -> Result<String> {
        // SAFETY: as above.
        unsafe { r::description_debug_string(self.api, self.raw) }
    }
}

/// A device of a client.
pub struct Device {
    client: Arc<Client>,
    raw: *mut PJRT_Device,
}

// SAFETY: devices live as long as their client, and their functions may be called from any thread.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl Device {
    /// # Safety
    /// `raw` is a device of the client.
    pub(crate) unsafe fn new(client: &Arc<Client>, raw: *mut PJRT_Device) -> Self {
        Device { client: client.clone(), raw }
    }

    /// What the plugin says of it.
    pub fn description(&self) -> Result<DeviceDescription> {
        let api = self.client.api();
        // SAFETY: the device lives as long as the client, and so does its description.
        unsafe { Ok(DeviceDescription::new(api, r::device_description(api, self.raw)?, self.client.clone())) }
    }

    /// Its place among the devices that this process can use; `None` where it belongs to another process.
    pub fn place(&self) -> Option<usize> {
        self.client.addressable.iter().position(|d| *d == self.raw)
    }

    /// Whether this process can use it.
    pub fn is_addressable(&self) -> Result<bool> {
        // SAFETY: the device is alive.
        unsafe { r::device_is_addressable(self.client.api(), self.raw) }
    }

    /// The number that its driver gives it; -1 where it has none.
    pub fn local_hardware_id(&self) -> Result<i32> {
        // SAFETY: the device is alive.
        unsafe { r::device_local_hardware_id(self.client.api(), self.raw) }
    }

    /// The memories that it can use.
    pub fn memories(&self) -> Result<Vec<Memory>> {
        // SAFETY: the device is alive.
        let all = unsafe { r::device_memories(self.client.api(), self.raw)? };
        // SAFETY: they live as long as the client.
        Ok(all.into_iter().map(|raw| unsafe { Memory::new(&self.client, raw) }).collect())
    }

    /// The memory that it uses where nobody names one.
    pub fn default_memory(&self) -> Result<Memory> {
        // SAFETY: the device is alive, and its memory lives as long as the client.
        unsafe { Ok(Memory::new(&self.client, r::device_default_memory(self.client.api(), self.raw)?)) }
    }

    /// What its allocator has counted; `None` where the plugin does not count.
    pub fn memory_stats(&self) -> Result<Option<MemoryStats>> {
        // SAFETY: the device is alive.
        let counted = offered(unsafe { r::device_memory_stats(self.client.api(), self.raw) })?;
        Ok(counted.map(|c| MemoryStats::new(&c)))
    }
}

/// A memory of a client.
pub struct Memory {
    client: Arc<Client>,
    raw: *mut PJRT_Memory,
}

// SAFETY: memories live as long as their client, and their functions may be called from any thread.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// # Safety
    /// `raw` is a memory of the client.
    pub(crate) unsafe fn new(client: &Arc<Client>, raw: *mut PJRT_Memory) -> Self {
        Memory { client: client.clone(), raw }
    }

    /// The handle, for a call on this client.
    pub(crate) fn raw_of(&self, client: &Arc<Client>) -> Result<*mut PJRT_Memory> {
        if !Arc::ptr_eq(&self.client, client) {
            bail!(Value, "the memory belongs to another client than the buffer");
        }
        Ok(self.raw)
    }

    /// Its number.
    pub fn id(&self) -> Result<i32> {
        // SAFETY: the memory is alive, here and below.
        unsafe { r::memory_id(self.client.api(), self.raw) }
    }

    /// Its kind: `"device"`, `"pinned_host"`.
    pub fn kind(&self) -> Result<String> {
        // SAFETY: as above.
        unsafe { r::memory_kind(self.client.api(), self.raw) }
    }

    /// A few words for people.
    pub fn text(&self) -> Result<String> {
        // SAFETY: as above.
        unsafe { r::memory_to_string(self.client.api(), self.raw) }
    }

    /// All there is, for logs.
    pub fn debug_text(&self) -> Result<String> {
        // SAFETY: as above.
        unsafe { r::memory_debug_string(self.client.api(), self.raw) }
    }

    /// The devices that can use it.
    pub fn devices(&self) -> Result<Vec<Device>> {
        // SAFETY: as above.
        let all = unsafe { r::memory_devices(self.client.api(), self.raw)? };
        // SAFETY: they live as long as the client.
        Ok(all.into_iter().map(|raw| unsafe { Device::new(&self.client, raw) }).collect())
    }
}

/// Counters of a device's allocator; those that it does not keep are `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryStats {
    /// Bytes in use.
    pub bytes_in_use: i64,
    /// The most bytes that were in use.
    pub peak_bytes_in_use: Option<i64>,
    /// Allocations so far.
    pub allocations: Option<i64>,
    /// Bytes of the largest one.
    pub largest_allocation: Option<i64>,
    /// Bytes that can be in use.
    pub bytes_limit: Option<i64>,
    /// Bytes set aside.
    pub bytes_reserved: Option<i64>,
    /// The most bytes that were set aside.
    pub peak_bytes_reserved: Option<i64>,
    /// Bytes that can be set aside.
    pub bytes_reservable_limit: Option<i64>,
    /// Bytes of the largest free block.
    pub largest_free_block: Option<i64>,
    /// Bytes that the allocator holds, in use or not.
    pub pool_bytes: Option<i64>,
    /// The most bytes that it held.
    pub peak_pool_bytes: Option<i64>,
}

impl MemoryStats {
    fn new(a: &PJRT_Device_MemoryStats_Args) -> Self {
        let set = |is: bool, value: i64| is.then_some(value);
        MemoryStats {
            bytes_in_use: a.bytes_in_use,
            peak_bytes_in_use: set(a.peak_bytes_in_use_is_set, a.peak_bytes_in_use),
            allocations: set(a.num_allocs_is_set, a.num_allocs),
            largest_allocation: set(a.largest_alloc_size_is_set, a.largest_alloc_size),
            bytes_limit: set(a.bytes_limit_is_set, a.bytes_limit),
            bytes_reserved: set(a.bytes_reserved_is_set, a.bytes_reserved),
            peak_bytes_reserved: set(a.peak_bytes_reserved_is_set, a.peak_bytes_reserved),
            bytes_reservable_limit: set(a.bytes_reservable_limit_is_set, a.bytes_reservable_limit),
            largest_free_block: set(a.largest_free_block_bytes_is_set, a.largest_free_block_bytes),
            pool_bytes: set(a.pool_bytes_is_set, a.pool_bytes),
            peak_pool_bytes: set(a.peak_pool_bytes_is_set, a.peak_pool_bytes),
        }
    }
}
