//! Arrays in a GPU's memory: computed, or still to come.

use super::device::Device;
use super::memory::Block;
use super::stream::Event;
use ferrax_base::memory::DeviceMemory;
use ferrax_base::{Buffer, Result, error};
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Elements in a GPU's memory.
pub struct DeviceArray {
    device: Arc<Device>,
    bytes: usize,
    /// Nothing once it was donated.
    block: Mutex<Option<Arc<Block>>>,
    /// When the elements are there; nothing where there is nothing to wait for.
    event: Option<Arc<Event>>,
    /// Whether they are known to be there.
    there: AtomicBool,
}

impl DeviceArray {
    pub(super) fn new(block: Arc<Block>, event: Option<Arc<Event>>) -> DeviceArray {
        let (device, bytes) = (block.device().clone(), block.bytes());
        DeviceArray { device, bytes, block: Mutex::new(Some(block)), event, there: AtomicBool::new(false) }
    }

    /// The GPU.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Block>>> {
        self.block.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The memory; errors when it was donated.
    pub(super) fn block(&self) -> Result<Arc<Block>> {
        let block = self.lock().clone();
        block.ok_or_else(|| error!(Deleted, "the array was donated to an earlier run"))
    }

    /// Takes the memory away, where nobody uses it but the caller, who holds it once.
    ///
    /// References are made under this array's lock alone, so that a number of them that is found under it stays.
    pub(super) fn donate(&self) -> Option<Arc<Block>> {
        self.lock().take_if(|block| Arc::strong_count(block) == 2 && block.is_ours())
    }

    /// Gives back what was taken.
    pub(super) fn restore(&self, block: Arc<Block>) {
        *self.lock() = Some(block);
    }

    /// When the elements are there.
    pub(super) fn event(&self) -> Option<&Event> {
        self.event.as_deref()
    }

    /// A copy on a GPU, which starts when the elements are there: straight on their own, and where another one reaches its
    /// memory, through the host otherwise.
    pub fn copy_to(&self, device: &Arc<Device>) -> Result<DeviceArray> {
        let block = self.block()?;
        if Arc::ptr_eq(device, &self.device) {
            return device.copy_of(&block);
        }
        match device.fetch_from(&block, self.event.as_deref())? {
            Some(copy) => Ok(copy),
            None => device.upload(self.to_host()?.bytes()),
        }
    }
}

impl DeviceMemory for DeviceArray {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn ready(&self) -> bool {
        let Some(event) = self.event.as_ref().filter(|_| !self.there.load(Relaxed)) else { return true };
        // what has failed comes no more, as a wait says
        let ready = event.ready();
        self.there.store(matches!(ready, Ok(true)), Relaxed);
        ready.unwrap_or(true)
    }

    fn wait(&self) -> Result<()> {
        if let Some(event) = self.event.as_ref().filter(|_| !self.there.load(Relaxed)) {
            event.wait()?;
            self.there.store(true, Relaxed);
        }
        Ok(())
    }

    fn to_host(&self) -> Result<Buffer> {
        let block = self.block()?;
        self.device.fetch(&block, self.event.as_deref())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl std::fmt::Debug for DeviceArray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DeviceArray({} bytes on {:?})", self.bytes, self.device)
    }
}
