//! Memory that is shared with other libraries on a GPU: arrays of ours that they use, and theirs that are arrays of ours.
//!
//! Both sides order their work by streams: theirs waits until our elements are there, and our compute stream for what theirs
//! does before memory is freed. What is theirs is never donated. Numbers of streams are those of CUDA's own interface: 1 is the
//! default stream of old, 2 that of the thread, others are handles.

use super::array::DeviceArray;
use super::context::Entered;
use super::device::Device;
use super::memory::Block;
use super::stream::Event;
use super::sys::CUstream;
use ferrax_base::Result;
use std::sync::Arc;

/// Memory of an array that another library uses, until this is dropped.
pub struct Lent {
    block: Arc<Block>,
    stream: u64,
}

impl Lent {
    /// Where the elements begin; zero where there are none.
    pub fn address(&self) -> u64 {
        self.block.address()
    }

    /// The GPU's number.
    pub fn ordinal(&self) -> usize {
        self.block.device().context().ordinal()
    }

    /// Has the compute stream wait for what the other library has given to its stream by now.
    fn end(&self, here: &Entered<'_>) -> Result<()> {
        let device = self.block.device();
        // SAFETY: who borrows keeps its stream as long as the memory.
        let event = unsafe { Event::record(device.context(), here, handle(self.stream))? };
        device.compute().wait(here, &event)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let context = self.block.device().context();
        context.give_back(|_| {
            let here = context.enter()?;
            // what cannot be waited for by the stream is waited for here
            self.end(&here).or_else(|_| self.block.device().synchronize())
        });
    }
}

fn handle(stream: u64) -> CUstream {
    std::ptr::without_provenance_mut(stream as usize)
}

impl DeviceArray {
    /// Lends the memory to a library that works on a stream, which waits until the elements are there; on none, which
    /// waits by itself, where `waits` does not hold.
    pub fn lend(&self, stream: u64, waits: bool) -> Result<Lent> {
        let block = self.block()?;
        let here = self.device().context().enter()?;
        if let Some(event) = self.event().filter(|_| waits) {
            // SAFETY: who asks has a stream of this number.
            unsafe { event.hold(&here, handle(stream))? };
        }
        Ok(Lent { block, stream })
    }

    /// Where the elements begin, and the number of a stream behind whose work they are there.
    pub fn place(&self) -> Result<(u64, u64)> {
        let block = self.block()?;
        block.join(&self.device().context().enter()?)?;
        Ok((block.address(), self.device().stream()))
    }
}

impl Device {
    /// The number of the stream that programs run on.
    pub fn stream(&self) -> u64 {
        self.compute().raw() as u64
    }

    /// An array of another library's memory, whose elements are there when what the compute stream has by now is done. The
    /// memory begins at a multiple of 256 bytes, nobody writes it, and `owner` keeps it.
    pub fn borrow(self: &Arc<Self>, address: u64, bytes: usize, owner: Box<dyn Send>) -> Result<DeviceArray> {
        let event = self.compute().record(&self.context().enter()?)?;
        Ok(DeviceArray::new(self.adopt(address, bytes, owner), Some(Arc::new(event))))
    }
}
