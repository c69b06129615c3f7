//! Elements on a device: uploaded, computed or still to come.

use super::{Client, Event, Memory};
use crate::result as r;
use crate::sys::*;
use ferrax_base::{DType, Error, ErrorKind, Result, Shape, bail, shape};
use smallvec::SmallVec;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Elements on a device, freed with it. Donating them to a run takes them away and leaves the object.
pub struct Buffer {
    client: Arc<Client>,
    raw: NonNull<PJRT_Buffer>,
    dims: Shape,
    dtype: DType,
    /// Whether the elements are known to be there.
    there: AtomicBool,
}

// SAFETY: the functions on buffers may be called from any thread, several at once.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Takes a buffer over.
    ///
    /// # Safety
    /// `raw` is null, or a buffer of this client with these dimensions that the caller owns.
    #[inline]
    pub(crate) unsafe fn own(client: &Arc<Client>, raw: *mut PJRT_Buffer, dtype: DType, dims: Shape) -> Result<Buffer> {
        let Some(raw) = NonNull::new(raw) else { bail!(Runtime, "the PJRT plugin gave no buffer and no error") };
        client.live.fetch_add(1, Relaxed);
        Ok(Buffer { client: client.clone(), raw, dims, dtype, there: AtomicBool::new(false) })
    }

    pub(crate) fn raw(&self) -> *mut PJRT_Buffer {
        self.raw.as_ptr()
    }

    fn api(&self) -> &'static PJRT_Api {
        self.client.api()
    }

    /// The client.
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// The dtype of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The dimensions.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Bytes of the elements in the host's memory.
    pub fn bytes(&self) -> usize {
        shape::size(&self.dims).saturating_mul(self.dtype.size())
    }

    /// Whether the elements were deleted or donated.
    pub fn is_deleted(&self) -> Result<bool> {
        // SAFETY: the buffer is alive.
        unsafe { r::buffer_is_deleted(self.api(), self.raw()) }
    }

    /// Frees the elements, and keeps the object; whatever uses them ends before.
    pub fn delete(&self) -> Result<()> {
        // SAFETY: the buffer is alive.
        unsafe { r::buffer_delete(self.api(), self.raw()) }
    }

    /// Bytes that the elements take on the device.
    pub fn on_device_bytes(&self) -> Result<usize> {
        // SAFETY: the buffer is alive.
        unsafe { r::buffer_on_device_size(self.api(), self.raw()) }.map_err(|e| self.blame(e))
    }

    /// The dimensions as the plugin has them now.
    pub fn logical_dims(&self) -> Result<Shape> {
        // SAFETY: the buffer is alive.
        let dims = unsafe { r::buffer_logical_dims(self.api(), self.raw()) }.map_err(|e| self.blame(e))?;
        Ok(dims.into_iter().map(|d| d as usize).collect())
    }

    /// The place of its device among those of the client; `None` where that belongs to another process.
    pub fn device(&self) -> Result<Option<usize>> {
        // SAFETY: the buffer is alive.
        let raw = unsafe { r::buffer_device(self.api(), self.raw())? };
        Ok(self.client.addressable.iter().position(|d| *d == raw))
    }

    /// The memory that it is in.
    pub fn memory(&self) -> Result<Memory> {
        // SAFETY: the buffer is alive, and its memory lives as long as the client.
        unsafe { Ok(Memory::new(&self.client, r::buffer_memory(self.api(), self.raw())?)) }
    }

    /// Whether the host can read the elements at [`Held::address`].
    pub fn is_on_cpu(&self) -> Result<bool> {
        // SAFETY: the buffer is alive.
        unsafe { r::buffer_is_on_cpu(self.api(), self.raw()) }
    }

    /// A copy on another device of the client, which starts when the elements are there.
    pub fn copy_to(&self, device: usize) -> Result<Buffer> {
        let device = self.client.device_at(device)?;
        // SAFETY: the buffer is alive, and the copy is ours.
        unsafe {
            let copy = r::buffer_copy_to_device(self.api(), self.raw(), device).map_err(|e| self.blame(e))?;
            Buffer::own(&self.client, copy, self.dtype, self.dims.clone())
        }
    }

    /// A copy in another memory of the client.
    pub fn copy_to_memory(&self, memory: &Memory) -> Result<Buffer> {
        let memory = memory.raw_of(&self.client)?;
        // SAFETY: the buffer is alive, and the copy is ours.
        unsafe {
            let copy = r::buffer_copy_to_memory(self.api(), self.raw(), memory).map_err(|e| self.blame(e))?;
            Buffer::own(&self.client, copy, self.dtype, self.dims.clone())
        }
    }

    /// Keeps the elements where they are, neither freed nor donated, for as long as the guard lives.
    pub fn hold(self: &Arc<Self>) -> Result<Held> {
        // SAFETY: the buffer is alive.
        unsafe { r::buffer_hold(self.api(), self.raw()) }.map_err(|e| self.blame(e))?;
        Ok(Held { buffer: self.clone() })
    }

    /// An error of this buffer's use: one of deletion if the elements are gone.
    #[cold]
    pub(crate) fn blame(&self, error: Error) -> Error {
        match self.is_deleted() {
            Ok(true) if !matches!(*error.0, ErrorKind::Memory(_)) => {
                ErrorKind::Deleted(Box::new(error.to_string())).into()
            }
            _ => error,
        }
    }

    /// The event of the elements being there.
    pub fn ready_event(&self) -> Result<Option<Event>> {
        // SAFETY: the buffer is alive, and the event is ours.
        let event = unsafe { r::buffer_ready_event(self.api(), self.raw()).map(|e| Event::own(&self.client, e)) };
        event.map_err(|e| self.blame(e))
    }

    /// Whether the elements are there, or will never be; does not wait.
    pub fn ready(&self) -> Result<bool> {
        if self.there.load(Relaxed) {
            return Ok(true);
        }
        self.ready_event()?.map_or(Ok(true), |e| e.ready())
    }

    /// Waits until the elements are there; gives the error of the run that was to compute them.
    pub fn wait(&self) -> Result<()> {
        if self.there.load(Relaxed) {
            return Ok(());
        }
        if let Some(event) = self.ready_event()? {
            event.wait()?;
        }
        self.there.store(true, Relaxed);
        Ok(())
    }

    /// Starts to copy the elements, row by row, to the host.
    pub fn copy_to_host(&self) -> Result<HostCopy> {
        if self.is_deleted()? {
            // XLA would tell when the copy ends, as an error of value
            bail!(Deleted, "{self:?} was deleted or donated to an earlier run");
        }
        let mut host = ferrax_base::Buffer::allocate(self.bytes())?;
        let order: SmallVec<[i64; 6]> = (0..self.dims.len() as i64).rev().collect();
        let tiled = PJRT_Buffer_MemoryLayout_Tiled {
            minor_to_major: order.as_ptr(),
            minor_to_major_size: order.len(),
            ..Args::new()
        };
        let r#type = PJRT_Buffer_MemoryLayout_Type_Tiled;
        let mut layout = PJRT_Buffer_MemoryLayout { tiled, r#type, ..Args::new() };
        let (api, size) = (self.api(), host.len());
        // SAFETY: the block has `size` bytes and lives until the event has happened, which `HostCopy` sees to; the
        // layout outlives the call.
        let event = unsafe {
            r::buffer_to_host(api, self.raw(), &raw mut layout, host.as_mut_ptr().cast(), size)
                .map(|e| Event::own(&self.client, e))
        };
        Ok(HostCopy { event: event.map_err(|e| self.blame(e))?, host: Some(host), dtype: self.dtype })
    }

    /// The elements, row by row, in the host's memory; waits for them.
    pub fn to_host(&self) -> Result<ferrax_base::Buffer> {
        self.copy_to_host()?.wait()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: nobody uses the buffer after this. There is nobody to tell of an error.
        let _ = unsafe { r::buffer_destroy(self.api(), self.raw()) };
        self.client.live.fetch_sub(1, Relaxed);
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({}{})", self.dtype, shape::Tuple(&self.dims))
    }
}

/// Elements that stay where they are.
pub struct Held {
    buffer: Arc<Buffer>,
}

impl Held {
    /// The buffer.
    pub fn buffer(&self) -> &Arc<Buffer> {
        &self.buffer
    }

    /// The address of the elements on the device, as soon as they are there ([`Buffer::wait`]).
    pub fn address(&self) -> Result<usize> {
        // SAFETY: the buffer is alive.
        unsafe { r::buffer_unsafe_pointer(self.buffer.api(), self.buffer.raw()) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the buffer is alive, and was held once for this. There is nobody to tell of an error.
        let _ = unsafe { r::buffer_release(self.buffer.api(), self.buffer.raw()) };
    }
}

/// A copy to the host that is under way. Dropping it waits, since the plugin writes into its memory.
pub struct HostCopy {
    event: Option<Event>,
    host: Option<ferrax_base::Buffer>,
    dtype: DType,
}

impl HostCopy {
    /// Whether it has ended; does not wait.
    pub fn ready(&self) -> Result<bool> {
        self.event.as_ref().map_or(Ok(true), Event::ready)
    }

    /// The elements; waits for them.
    pub fn wait(mut self) -> Result<ferrax_base::Buffer> {
        self.settle()?;
        match self.host.take() {
            Some(mut host) => {
                widen(self.dtype, &mut host);
                Ok(host)
            }
            None => bail!(Internal, "a copy to the host was taken twice"),
        }
    }

    fn settle(&mut self) -> Result<()> {
        // an event that fails has happened too, and is not waited for again
        self.event.take().map_or(Ok(()), |e| e.wait())
    }
}

impl Drop for HostCopy {
    fn drop(&mut self) {
        // whether the copy failed no longer matters
        let _ = self.settle();
    }
}

/// Makes bytes of elements narrower than a byte what the host has: plugins leave the bits above them as they like.
fn widen(dtype: DType, host: &mut ferrax_base::Buffer) {
    let above = 8usize.saturating_sub(dtype.bits());
    if above == 0 {
        return;
    }
    for byte in host.bytes_mut() {
        *byte = if dtype.is_signed() { ((*byte << above) as i8 >> above) as u8 } else { *byte << above >> above };
    }
}
