//! Elements to a GPU, from it, and from one to another.
//!
//! Copies go through pinned pieces: an upload returns when the last piece is filled, a download when the last one is read. On an
//! error the stream is waited for, so that no copy uses a piece or a block that goes.

use super::array::DeviceArray;
use super::context::Entered;
use super::device::Device;
use super::memory::{Block, Use};
use super::staging::{LARGEST, Pinned};
use super::stream::{Event, Stream};
use super::sys::CUdeviceptr;
use ferrax_base::{Buffer, Result};
use std::sync::Arc;

impl Device {
    /// A copy of elements of the host.
    pub fn upload(self: &Arc<Self>, elements: &[u8]) -> Result<DeviceArray> {
        let here = self.context().enter()?;
        let (block, event) = self.place(&here, elements, Use::Array)?;
        Ok(DeviceArray::new(block, event))
    }

    /// A block with a copy of bytes of the host, and the event of its being there.
    pub(super) fn place(
        self: &Arc<Self>,
        here: &Entered<'_>,
        bytes: &[u8],
        of: Use,
    ) -> Result<(Arc<Block>, Option<Arc<Event>>)> {
        let stream = self.uploads();
        let block = self.allocate(here, bytes.len(), of, stream)?;
        let event = settled(stream, self.send(here, block.address(), bytes))?;
        if let Some(event) = &event {
            block.used_until(event);
        }
        Ok((block, event))
    }

    fn send(&self, here: &Entered<'_>, to: CUdeviceptr, bytes: &[u8]) -> Result<Option<Arc<Event>>> {
        let stream = self.uploads();
        let mut last = None;
        for (i, piece) in bytes.chunks(LARGEST).enumerate() {
            let mut pinned = self.staging().take(piece.len())?;
            pinned.bytes()[..piece.len()].copy_from_slice(piece);
            let to = to + (i * LARGEST) as u64;
            let copied = || {
                let from = pinned.address().cast();
                // SAFETY: the block has room for the piece, which stays until the event.
                unsafe { here.driver().cuMemcpyHtoDAsync_v2(to, from, piece.len(), stream.raw())? };
                stream.record(here)
            };
            // a piece must not go before its copy, if that has begun
            let event = Arc::new(settled(stream, copied())?);
            self.staging().give_after(pinned, &event);
            last = Some(event);
        }
        Ok(last)
    }

    /// The elements of a block, once it is ready.
    pub(super) fn fetch(&self, block: &Block, ready: Option<&Event>) -> Result<Buffer> {
        let mut host = Buffer::allocate(block.bytes())?;
        let here = self.context().enter()?;
        let stream = self.downloads();
        let mut flights = Vec::new();
        let fetched = ready.map_or(Ok(()), |event| stream.wait(&here, event)).and_then(|()| {
            for (i, piece) in host.bytes_mut().chunks_mut(LARGEST).enumerate() {
                let from = block.address() + (i * LARGEST) as u64;
                flights.push((self.start(&here, stream, from, piece.len())?, piece));
                if flights.len() > 2 {
                    self.land(flights.remove(0))?;
                }
            }
            flights.drain(..).try_for_each(|flight| self.land(flight))
        });
        // pieces that are on their way go after this
        settled(stream, fetched)?;
        Ok(host)
    }

    /// Starts to copy bytes to a piece.
    fn start(&self, here: &Entered<'_>, stream: &Stream, from: CUdeviceptr, bytes: usize) -> Result<(Pinned, Event)> {
        let pinned = self.staging().take(bytes)?;
        let copied = || {
            // SAFETY: the block is alive until the copy has ended, which all callers wait for, and so is the piece.
            unsafe { here.driver().cuMemcpyDtoHAsync_v2(pinned.address().cast(), from, bytes, stream.raw())? };
            stream.record(here)
        };
        let event = settled(stream, copied())?;
        Ok((pinned, event))
    }

    /// Waits for a copy to a piece, and takes the bytes from there.
    fn land(&self, flight: ((Pinned, Event), &mut [u8])) -> Result<()> {
        let ((mut pinned, event), to) = flight;
        settled(self.downloads(), event.wait())?;
        to.copy_from_slice(&pinned.bytes()[..to.len()]);
        self.staging().give(pinned);
        Ok(())
    }

    /// Bytes that programs have written by now, at most those of a piece.
    pub(super) fn read(&self, here: &Entered<'_>, from: CUdeviceptr, to: &mut [u8]) -> Result<()> {
        let (mut pinned, event) = self.start(here, self.compute(), from, to.len())?;
        settled(self.compute(), event.wait())?;
        to.copy_from_slice(&pinned.bytes()[..to.len()]);
        self.staging().give(pinned);
        Ok(())
    }

    /// A copy of a block of its own.
    pub(super) fn copy_of(self: &Arc<Self>, block: &Block) -> Result<DeviceArray> {
        let here = self.context().enter()?;
        let stream = self.compute();
        block.join(&here)?;
        let copy = self.allocate(&here, block.bytes(), Use::Array, stream)?;
        let started = || {
            // SAFETY: both blocks have so many bytes, and are freed after this on this stream.
            unsafe { stream.copy(&here, copy.address(), block.address(), block.bytes())? };
            stream.record(&here)
        };
        let event = settled(stream, started())?;
        Ok(DeviceArray::new(copy, Some(Arc::new(event))))
    }

    /// A copy of another GPU's block, once it is ready; `None` where this GPU does not reach it.
    pub(super) fn fetch_from(self: &Arc<Self>, block: &Block, ready: Option<&Event>) -> Result<Option<DeviceArray>> {
        let other = block.device();
        if !self.context().reaches(other.context())? {
            return Ok(None);
        }
        let here = self.context().enter()?;
        {
            let mut peers = other.peers();
            if !peers.contains(&self.context().ordinal()) {
                other.pool().open_to(&here, self.context())?;
                peers.push(self.context().ordinal());
            }
        }
        let stream = self.uploads();
        let copy = self.allocate(&here, block.bytes(), Use::Array, stream)?;
        let started = || {
            if let Some(event) = ready {
                stream.wait(&here, event)?;
            }
            let (to, from, bytes) = (copy.address(), block.address(), block.bytes());
            let (ours, theirs) = (self.context().raw(), other.context().raw());
            if bytes > 0 {
                // SAFETY: both blocks have so many bytes; theirs is neither written nor freed before the event.
                unsafe { here.driver().cuMemcpyPeerAsync(to, ours, from, theirs, bytes, stream.raw())? };
            }
            stream.record(&here)
        };
        let event = Arc::new(settled(stream, started())?);
        copy.used_until(&event);
        // at once rather than at the block's next use: only the last of several copies would be remembered
        let waits = other.context().enter().and_then(|there| other.compute().wait(&there, &event));
        settled(stream, waits)?;
        Ok(Some(DeviceArray::new(copy, Some(event))))
    }
}

/// What was done on a stream; where that failed, the stream is waited for first.
fn settled<T>(stream: &Stream, done: Result<T>) -> Result<T> {
    if done.is_err() {
        stream.settle();
    }
    done
}
