//! Topologies: devices that need not be there, for which programs can be compiled.

use super::{Client, CompileOptions, Compiled, DeviceDescription, Plugin};
use crate::result::{self as r, OptionValue};
use crate::sys::*;
use ferrax_base::{Result, bail};
use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

/// Devices as a compiler sees them.
pub struct Topology {
    api: &'static PJRT_Api,
    raw: NonNull<PJRT_TopologyDescription>,
    /// The client whose topology it is; otherwise it is freed with this object.
    client: Option<Arc<Client>>,
}

// SAFETY: topologies do not change, and may be used from any thread.
unsafe impl Send for Topology {}
// SAFETY: as above.
unsafe impl Sync for Topology {}

impl Topology {
    /// The topology that a plugin knows by a name.
    pub fn new(plugin: &Plugin, name: &str, options: &[(String, OptionValue)]) -> Result<Arc<Topology>> {
        // SAFETY: a `Plugin` was prepared.
        Self::own(plugin.api, unsafe { r::topology_create(plugin.api, name, options)? }, None)
    }

    /// A topology from [`Topology::serialize`]'s bytes.
    pub fn load(plugin: &Plugin, bytes: &[u8]) -> Result<Arc<Topology>> {
        // SAFETY: a `Plugin` was prepared; the bytes outlive the call.
        let raw = unsafe { r::topology_deserialize(plugin.api, bytes.as_ptr().cast(), bytes.len())? };
        Self::own(plugin.api, raw, None)
    }

    /// The topology of a client's devices.
    pub fn of(client: &Arc<Client>) -> Result<Arc<Topology>> {
        // SAFETY: the client is alive, and its topology lives as long.
        let raw = unsafe { r::client_topology(client.api(), client.raw())? };
        Self::own(client.api(), raw, Some(client.clone()))
    }

    fn own(
        api: &'static PJRT_Api,
        raw: *mut PJRT_TopologyDescription,
        client: Option<Arc<Client>>,
    ) -> Result<Arc<Topology>> {
        match NonNull::new(raw) {
            Some(raw) => Ok(Arc::new(Topology { api, raw, client })),
            None => bail!(Runtime, "the PJRT plugin gave no topology and no error"),
        }
    }

    /// The platform: `"cpu"`, `"cuda"`.
    pub fn platform_name(&self) -> Result<String> {
        // SAFETY: the topology is alive, here and below.
        unsafe { r::topology_platform_name(self.api, self.raw.as_ptr()) }
    }

    /// Versions of what the platform is made of, as text.
    pub fn platform_version(&self) -> Result<String> {
        // SAFETY: as above.
        unsafe { r::topology_platform_version(self.api, self.raw.as_ptr()) }
    }

    /// What the plugin says of it.
    pub fn attributes(&self) -> Result<Vec<(String, OptionValue)>> {
        // SAFETY: as above.
        unsafe { r::topology_attributes(self.api, self.raw.as_ptr()) }
    }

    /// Its devices.
    pub fn devices(self: &Arc<Self>) -> Result<Vec<DeviceDescription>> {
        // SAFETY: as above.
        let all = unsafe { r::topology_devices(self.api, self.raw.as_ptr())? };
        let keep: Arc<dyn Any + Send + Sync> = self.clone();
        // SAFETY: descriptions live as long as the topology.
        Ok(all.into_iter().map(|raw| unsafe { DeviceDescription::new(self.api, raw, keep.clone()) }).collect())
    }

    /// The topology as bytes.
    pub fn serialize(&self) -> Result<Vec<u8>> {
        // SAFETY: as above.
        unsafe { r::topology_serialize(self.api, self.raw.as_ptr()) }
    }

    /// Compiles a StableHLO program for these devices, none of which has to be there.
    pub fn compile(self: &Arc<Self>, program: impl AsRef<[u8]>, options: &CompileOptions) -> Result<Compiled> {
        let options = options.encoded();
        // SAFETY: as above; the program is given to us.
        unsafe {
            let raw = r::compile(self.api, self.raw.as_ptr(), program.as_ref(), "mlir", &options)?;
            Compiled::own(self.api, raw, self.clone())
        }
    }
}

impl Drop for Topology {
    fn drop(&mut self) {
        if self.client.is_none() {
            // SAFETY: nobody uses the topology after this. There is nobody to tell of an error.
            let _ = unsafe { r::topology_destroy(self.api, self.raw.as_ptr()) };
        }
    }
}
