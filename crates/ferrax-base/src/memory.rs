//! Where the elements of an array lie: in the host's memory, or in that of a device.
//!
//! What the host has is a [`Buffer`], which everybody may read. What a device has is behind [`DeviceMemory`]: only its
//! engine knows more of it than how to wait for it and how to copy it to the host. A copy that was made is kept, since
//! arrays do not change. Read next: `ferrax::engine` for who makes and takes both.

use crate::{Buffer, Result, Source, bail, long_work};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::{Arc, OnceLock};

/// Elements in the memory of a device, computed or still to come; freed with the last reference.
pub trait DeviceMemory: Any + Send + Sync {
    /// Bytes of the elements.
    fn bytes(&self) -> usize;

    /// Whether the elements are there, or will never be; does not wait.
    fn ready(&self) -> bool;

    /// Waits for the elements; gives the error of the run that was to compute them.
    fn wait(&self) -> Result<()>;

    /// Errors where this process does not have all elements, whatever becomes of the run that computes them.
    fn require_all(&self) -> Result<()> {
        Ok(())
    }

    /// The elements row by row in the host's memory, once they are there; waits as [`DeviceMemory::wait`] does.
    fn to_host(&self) -> Result<Buffer>;

    /// For the engine to take its own memory back.
    fn as_any(&self) -> &dyn Any;
}

/// Device memory, the host's copy of it as soon as somebody asked for one, and the call that made it.
pub struct Remote {
    memory: Box<dyn DeviceMemory>,
    host: OnceLock<Buffer>,
    call: Source,
}

impl Remote {
    /// The memory as its engine knows it.
    pub fn memory(&self) -> &dyn DeviceMemory {
        &*self.memory
    }

    /// Waits for the elements, without the host's lock; gives the error of their run, with the line of the call.
    pub fn wait(&self) -> Result<()> {
        let waited = long_work::run(long_work::LONG, || self.memory.wait());
        waited.map_err(|e| e.started_at(self.call))
    }

    /// The host's copy, once it was made.
    #[inline]
    pub fn copy(&self) -> Option<&Buffer> {
        self.host.get()
    }

    /// The host's copy; made now if there is none.
    pub fn host(&self) -> Result<&Buffer> {
        if let Some(copy) = self.host.get() {
            return Ok(copy);
        }
        self.memory.require_all()?;
        let copied = long_work::run(long_work::LONG, || self.memory.to_host());
        let copy = copied.map_err(|e| e.started_at(self.call))?;
        if copy.len() != self.memory.bytes() {
            bail!(Internal, "a device gave {} bytes of {}", copy.len(), self.memory.bytes());
        }
        // of two threads' copies the first counts
        Ok(self.host.get_or_init(|| copy))
    }
}

/// Memory of an array.
#[derive(Debug)]
pub enum Memory {
    /// The host's.
    Host(Buffer),
    /// A device's.
    Device(Arc<Remote>),
}

impl From<Buffer> for Memory {
    #[inline]
    fn from(buffer: Buffer) -> Memory {
        Memory::Host(buffer)
    }
}

impl Memory {
    /// Memory of a device, made by the call that runs now.
    pub fn device(memory: impl DeviceMemory) -> Memory {
        Memory::Device(Arc::new(Remote { memory: Box::new(memory), host: OnceLock::new(), call: Source::here() }))
    }

    /// Bytes of the elements.
    #[inline]
    pub fn bytes(&self) -> usize {
        match self {
            Memory::Host(buffer) => buffer.len(),
            Memory::Device(remote) => remote.memory.bytes(),
        }
    }

    /// The elements in the host's memory: those of a device are copied, once they are there.
    #[inline]
    pub fn host(&self) -> Result<&Buffer> {
        match self {
            Memory::Host(buffer) => Ok(buffer),
            Memory::Device(remote) => remote.host(),
        }
    }

    /// Waits until the elements are there, wherever that is; gives the error of their run.
    pub fn block_until_ready(&self) -> Result<()> {
        match self {
            Memory::Host(_) => Ok(()),
            Memory::Device(remote) => remote.wait(),
        }
    }

    /// The memory as an engine's own type; `None` when it is the host's or another engine's.
    pub fn of<T: DeviceMemory>(&self) -> Option<&T> {
        match self {
            Memory::Host(_) => None,
            Memory::Device(remote) => remote.memory.as_any().downcast_ref(),
        }
    }
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Remote({} bytes)", self.memory.bytes())
    }
}

/// An argument of a run.
#[derive(Debug)]
pub enum Arg<'a> {
    /// Read only.
    Borrowed(&'a Memory),
    /// Read only, in the host's memory.
    Host(&'a Buffer),
    /// Donated: it may become a result, and is then replaced by [`Arg::Taken`].
    Owned(Memory),
    /// Donated memory that was used.
    Taken,
}

impl Arg<'_> {
    /// Device memory as its engine's own type; `None` when it is the host's, another engine's or used.
    pub fn device<T: DeviceMemory>(&self) -> Option<&T> {
        match self {
            Arg::Borrowed(memory) => memory.of(),
            Arg::Owned(memory) => memory.of(),
            Arg::Host(_) | Arg::Taken => None,
        }
    }

    /// The elements in the host's memory; errors when they were used before.
    #[inline]
    pub fn host(&self) -> Result<&Buffer> {
        match self {
            Arg::Borrowed(memory) => memory.host(),
            Arg::Host(buffer) => Ok(buffer),
            Arg::Owned(memory) => memory.host(),
            Arg::Taken => bail!(Deleted, "an argument was donated to an earlier run"),
        }
    }
}

/// Memory of the results of a run, row by row.
pub type Outputs = SmallVec<[Memory; 1]>;
