//! A GPU's memory: blocks in the order of streams, from a pool that takes what it needs and keeps what it had.
//!
//! Nothing is taken ahead. Blocks that live are listed with the line that made them: that list is the error of an
//! allocation that cannot be made. Every block is freed on the compute stream, after whatever was done with it.
//! Read next: `array.rs`.

use super::context::{Context, Entered};
use super::device::Device;
use super::stream::{Event, Stream};
use super::sys::*;
use ferrax_base::{Error, ErrorKind, Result, Source};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The driver's pool of a GPU's memory, ours alone.
pub struct Pool {
    context: Arc<Context>,
    raw: CUmemoryPool,
}

// SAFETY: pools may be used from any thread, several at once.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl Pool {
    /// An empty pool.
    pub fn new(context: &Arc<Context>) -> Result<Pool> {
        let here = context.enter()?;
        let props = CUmemPoolProps {
            allocType: CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: 0,
            location: location(context),
            win32SecurityAttributes: std::ptr::null_mut(),
            maxSize: 0,
            usage: 0,
            reserved: [0; 54],
        };
        let mut raw = std::ptr::null_mut();
        // SAFETY: both places outlive the call.
        unsafe { here.driver().cuMemPoolCreate(&raw mut raw, &raw const props)? };
        let pool = Pool { context: context.clone(), raw };
        // what was freed stays with the pool, where the system would have it back at every wait for a stream
        let mut keep = u64::MAX;
        let attribute = CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: the attribute is a number of eight bytes.
        unsafe { here.driver().cuMemPoolSetAttribute(raw, attribute, (&raw mut keep).cast())? };
        Ok(pool)
    }

    /// Memory from where the stream is now; `None` where there is not so much.
    fn allocate(&self, here: &Entered<'_>, bytes: usize, stream: &Stream) -> Result<Option<CUdeviceptr>> {
        let mut address = 0;
        let allocate = here.driver().functions.cuMemAllocFromPoolAsync;
        // SAFETY: the place outlives the call.
        match unsafe { allocate(&raw mut address, bytes, self.raw, stream.raw()) } {
            CUDA_ERROR_OUT_OF_MEMORY => Ok(None),
            code => here.driver().check("cuMemAllocFromPoolAsync", code).map(|()| Some(address)),
        }
    }

    /// Gives the system what nobody uses.
    pub fn trim(&self, here: &Entered<'_>) -> Result<()> {
        // SAFETY: the pool is alive.
        unsafe { here.driver().cuMemPoolTrimTo(self.raw, 0) }
    }

    /// Bytes that the pool has for nobody.
    pub fn kept(&self) -> Result<usize> {
        let here = self.context.enter()?;
        let number = |attribute: c_int| {
            let mut value = 0u64;
            // SAFETY: these attributes are numbers of eight bytes.
            unsafe { here.driver().cuMemPoolGetAttribute(self.raw, attribute, (&raw mut value).cast())? };
            Ok::<_, Error>(value)
        };
        let (reserved, used) = (CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
        Ok(number(reserved)?.saturating_sub(number(used)?) as usize)
    }

    /// Lets another GPU at the pool's memory.
    pub fn open_to(&self, here: &Entered<'_>, other: &Context) -> Result<()> {
        let access = CUmemAccessDesc { location: location(other), flags: CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
        // SAFETY: one description, which outlives the call.
        unsafe { here.driver().cuMemPoolSetAccess(self.raw, &raw const access, 1) }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: nobody uses the pool after this; memory that is still being freed keeps it until then.
        self.context.give_back(|driver| unsafe { driver.cuMemPoolDestroy(self.raw) });
    }
}

fn location(context: &Context) -> CUmemLocation {
    CUmemLocation { kind: CU_MEM_LOCATION_TYPE_DEVICE, id: context.device() }
}

/// What a block is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// The elements of an array.
    Array,
    /// A program's constant.
    Constant,
    /// What a run works in.
    Temporary,
}

/// Bytes of a GPU's memory; freed with the last reference.
pub struct Block {
    device: Arc<Device>,
    address: CUdeviceptr,
    bytes: usize,
    /// What another stream than the compute stream does with it.
    elsewhere: Mutex<Option<Arc<Event>>>,
    /// What keeps another library's memory, where it is that.
    owner: Option<Mutex<Box<dyn Send>>>,
}

impl Block {
    /// The GPU.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Where it begins; zero for one without bytes.
    pub fn address(&self) -> CUdeviceptr {
        self.address
    }

    /// How many bytes there are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it is memory of the pool's.
    pub(super) fn is_ours(&self) -> bool {
        self.owner.is_none()
    }

    /// Has the compute stream wait for an event, before it next uses or frees the block.
    pub(super) fn used_until(&self, event: &Arc<Event>) {
        *self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner) = Some(event.clone());
    }

    /// Has the compute stream wait for what others do with the block.
    pub(super) fn join(&self, here: &Entered<'_>) -> Result<()> {
        let mut elsewhere = self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(event) = &*elsewhere {
            self.device.compute().wait(here, event)?;
            *elsewhere = None;
        }
        Ok(())
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // in a forked child there is nothing to free, and locks may be those of threads that it does not have
        if self.address == 0 || self.device.context().driver().forked() {
            return;
        }
        if self.is_ours() {
            self.device.live().remove(self.address);
        }
        let elsewhere = self.elsewhere.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let context = self.device.context();
        context.give_back(|driver| {
            if let (Some(event), Ok(here)) = (elsewhere, context.enter())
                && self.device.compute().wait(&here, &event).is_err()
            {
                let _ = event.wait();
            }
            if let Some(owner) = self.owner.take() {
                let end = Arc::new(self.device.compute().record(&context.enter()?)?);
                self.device.retire(end, Box::new(owner));
                return Ok(());
            }
            // SAFETY: nobody uses the memory after what the stream has by now.
            unsafe { driver.cuMemFreeAsync(self.address, self.device.compute().raw()) }
        });
    }
}

impl Device {
    /// A block from where a stream is now. Its bytes are anything.
    pub(super) fn allocate(
        self: &Arc<Self>,
        here: &Entered<'_>,
        bytes: usize,
        of: Use,
        stream: &Stream,
    ) -> Result<Arc<Block>> {
        let address = if bytes == 0 { 0 } else { self.room(here, bytes, stream)? };
        let block = Block { device: self.clone(), address, bytes, elsewhere: Mutex::new(None), owner: None };
        if address != 0 {
            let made = Made { bytes, of, by: Source::here() };
            self.live().add(address, made);
        }
        Ok(Arc::new(block))
    }

    /// A block of another library's memory, which `owner` keeps until the compute stream has done what uses it.
    pub(super) fn adopt(self: &Arc<Self>, address: CUdeviceptr, bytes: usize, owner: Box<dyn Send>) -> Arc<Block> {
        let elsewhere = Mutex::new(None);
        Arc::new(Block { device: self.clone(), address, bytes, elsewhere, owner: Some(Mutex::new(owner)) })
    }

    fn room(&self, here: &Entered<'_>, bytes: usize, stream: &Stream) -> Result<CUdeviceptr> {
        if let Some(address) = self.pool().allocate(here, bytes, stream)? {
            return Ok(address);
        }
        // what is being freed is there once the stream has come to it, and what is kept may be in pieces
        self.sweep();
        self.compute().synchronize()?;
        self.pool().trim(here)?;
        let again = self.pool().allocate(here, bytes, stream)?;
        again.ok_or_else(|| self.live().too_much(bytes, self.context()))
    }
}

/// A block that lives.
#[derive(Clone, Copy)]
struct Made {
    bytes: usize,
    of: Use,
    by: Source,
}

/// The blocks of a GPU that live, by their addresses.
#[derive(Default)]
pub struct Live {
    blocks: BTreeMap<CUdeviceptr, Made>,
    in_use: usize,
    peak: usize,
}

/// How many blocks an error lists.
const LISTED: usize = 8;

impl Live {
    fn add(&mut self, address: CUdeviceptr, made: Made) {
        self.in_use += made.bytes;
        self.peak = self.peak.max(self.in_use);
        self.blocks.insert(address, made);
    }

    fn remove(&mut self, address: CUdeviceptr) {
        if let Some(made) = self.blocks.remove(&address) {
            self.in_use -= made.bytes;
        }
    }

    /// Says that a block was made anew by the line that runs now.
    pub(super) fn made_again(&mut self, address: CUdeviceptr, by: Source) {
        if let Some(made) = self.blocks.get_mut(&address) {
            made.by = by;
        }
    }

    /// Bytes in blocks that live, and the most that there have been.
    pub fn bytes(&self) -> (usize, usize) {
        (self.in_use, self.peak)
    }

    /// The error of an allocation that cannot be made.
    #[cold]
    fn too_much(&self, bytes: usize, context: &Context) -> Error {
        let mut largest: Vec<Made> = self.blocks.values().copied().collect();
        largest.sort_by_key(|made| std::cmp::Reverse(made.bytes));
        let smaller = largest.len().saturating_sub(LISTED);
        largest.truncate(LISTED);
        let (gpu, limit) = (format!("{context:?}"), context.bytes());
        ErrorKind::Memory(Box::new(TooMuch { bytes, gpu, limit, in_use: self.in_use, largest, smaller })).into()
    }
}

/// An allocation that cannot be made, with what takes the room. Lines are looked up when it is shown, as for every error.
struct TooMuch {
    bytes: usize,
    gpu: String,
    limit: usize,
    in_use: usize,
    largest: Vec<Made>,
    smaller: usize,
}

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (more, limit, in_use) = (Bytes(self.bytes), Bytes(self.limit), Bytes(self.in_use));
        write!(f, "CUDA_ERROR_OUT_OF_MEMORY: {more} more do not fit in the memory of {}: of its {limit}, ", self.gpu)?;
        write!(f, "ferrax uses {in_use}.")?;
        for made in &self.largest {
            let what = match made.of {
                Use::Array => "an array",
                Use::Constant => "a constant of a program",
                Use::Temporary => "temporary memory of a run",
            };
            write!(f, "\n  {what} of {}", Bytes(made.bytes))?;
            if let Some(at) = made.by.location() {
                write!(f, ", made at {at}")?;
            }
        }
        match self.smaller {
            0 => Ok(()),
            more => write!(f, "\n  and {more} smaller ones"),
        }
    }
}

/// A number of bytes for people.
struct Bytes(usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut value, mut unit) = (self.0 as f64, 0);
        while value >= 1024.0 && unit < 4 {
            (value, unit) = (value / 1024.0, unit + 1);
        }
        let digits = usize::from(unit > 0);
        write!(f, "{value:.digits$} {}", ["bytes", "KiB", "MiB", "GiB", "TiB"][unit])
    }
}
