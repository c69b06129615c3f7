//! Host memory for arrays: 64-byte aligned blocks, recycled through a thread-local and a shared cache.
//!
//! A page fault costs more than a small kernel, so freed blocks are kept in size classes (four a power of
//! two) up to a byte bound. Counters are exact: tests compare live bytes before and after.
//! Source: the measurements in the design notes of the CPU engine.

use crate::fork::Lock;
use crate::{Result, error};
use std::any::Any;
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Alignment of every block that ferrax allocates, in bytes.
pub const ALIGNMENT: usize = 64;
const CLASSES: usize = 4 * 48;
/// Blocks up to this size are cached per thread; larger ones in the shared cache.
const LOCAL_LIMIT: usize = 64 << 10;
/// Bytes of blocks of one class a thread keeps, within these numbers of blocks.
const LOCAL_BYTES: usize = 64 << 10;
const LOCAL_DEPTH: (usize, usize) = (16, 512);

/// With `--cfg ferrax_exact_buffers` every buffer is an allocation of just its bytes and nothing is recycled, so that
/// address sanitizer sees reads past the end and after the end of life (`make sanitize`).
const EXACT: bool = cfg!(ferrax_exact_buffers);

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static CACHED: AtomicUsize = AtomicUsize::new(0);
/// The shared cache keeps less than this: a process that held one huge array for a moment does not stay huge.
const LIMIT: usize = 512 << 20;
static SHARED: Lock<Bins> = Lock::new(Bins::new());

/// Bytes in use and kept for reuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Bytes in live buffers that ferrax allocated.
    pub live: usize,
    /// The largest `live` has been.
    pub peak: usize,
    /// Bytes kept in the shared cache.
    pub cached: usize,
}

/// Current memory counters.
pub fn stats() -> Stats {
    Stats { live: LIVE.load(Relaxed), peak: PEAK.load(Relaxed), cached: CACHED.load(Relaxed) }
}

struct Block(NonNull<u8>);
// SAFETY: a block in a cache is owned by the cache alone and is plain memory.
unsafe impl Send for Block {}

struct Bins(Vec<Vec<Block>>);

impl Bins {
    const fn new() -> Self {
        Bins(Vec::new())
    }

    fn pop(&mut self, class: usize) -> Option<Block> {
        self.0.get_mut(class)?.pop()
    }

    fn push(&mut self, class: usize, block: Block) {
        if self.0.len() <= class {
            self.0.resize_with(CLASSES, Vec::new);
        }
        self.0[class].push(block);
    }
}

impl Drop for Bins {
    fn drop(&mut self) {
        for (class, bin) in self.0.iter_mut().enumerate() {
            for block in bin.drain(..) {
                // SAFETY: the block came from `allocate_block` with this class's size.
                unsafe { std::alloc::dealloc(block.0.as_ptr(), layout(class_bytes(class))) };
            }
        }
    }
}

thread_local! {
    static LOCAL: RefCell<Bins> = const { RefCell::new(Bins::new()) };
}

/// Size class of a request: four classes a power of two, from 64 bytes.
#[inline]
fn class_of(bytes: usize) -> usize {
    let units = bytes.div_ceil(ALIGNMENT).max(1);
    if units <= 4 {
        return units - 1;
    }
    let log = (usize::BITS - 1 - (units - 1).leading_zeros()) as usize;
    let quarter = (units - 1) >> (log - 2);
    4 * (log - 1) + quarter - 4
}

/// Bytes a class holds.
fn class_bytes(class: usize) -> usize {
    if class < 4 {
        return (class + 1) * ALIGNMENT;
    }
    let log = class / 4 + 1;
    ((class % 4 + 5) << (log - 2)) * ALIGNMENT
}

/// Blocks from this size on are aligned to huge pages and ask for them: 512 times fewer page faults.
const HUGE: usize = 4 << 20;
const HUGE_PAGE: usize = 2 << 20;

fn layout(bytes: usize) -> std::alloc::Layout {
    let align = if bytes >= HUGE { HUGE_PAGE } else { ALIGNMENT };
    // SAFETY: the alignment is a power of two and class sizes stay below isize::MAX (checked in `allocate`).
    unsafe { std::alloc::Layout::from_size_align_unchecked(bytes, align) }
}

/// Asks the system to back a fresh block with huge pages; it may decline.
#[cfg(target_os = "linux")]
fn want_huge_pages(block: &Block, bytes: usize) {
    const MADV_HUGEPAGE: std::ffi::c_int = 14;
    unsafe extern "C" {
        fn madvise(address: *mut std::ffi::c_void, length: usize, advice: std::ffi::c_int) -> std::ffi::c_int;
    }
    if bytes >= HUGE {
        // SAFETY: the block is ours, page-aligned, and the advice changes no content.
        unsafe { madvise(block.0.as_ptr().cast(), bytes, MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn want_huge_pages(_: &Block, _: usize) {}

#[cold]
fn out_of_memory(bytes: usize) -> crate::Error {
    error!(Memory, "out of memory: allocating {bytes} bytes for an array failed")
}

/// Memory for `bytes` bytes, which count as live; `None` where the system has no such memory.
fn allocate_block(bytes: usize) -> Option<Block> {
    if bytes > isize::MAX as usize / 2 {
        return None;
    }
    let block = block_of(bytes)?;
    // SAFETY: the block is new and has so many bytes.
    unsafe { crate::checks::poison(block.0.as_ptr(), bytes) };
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    if live > PEAK.load(Relaxed) {
        PEAK.fetch_max(live, Relaxed);
    }
    Some(block)
}

fn block_of(request: usize) -> Option<Block> {
    let class = class_of(request);
    let bytes = class_bytes(class);
    if EXACT {
        // SAFETY: the layout has a nonzero size.
        return NonNull::new(unsafe { std::alloc::alloc(layout(request.max(1))) }).map(Block);
    }
    let local = bytes <= LOCAL_LIMIT;
    let reused = if local {
        LOCAL.try_with(|c| c.borrow_mut().pop(class)).ok().flatten()
    } else {
        let block = SHARED.lock().pop(class);
        if block.is_some() {
            CACHED.fetch_sub(bytes, Relaxed);
        }
        block
    };
    if reused.is_some() {
        return reused;
    }
    // SAFETY: the layout has a nonzero size.
    let block = NonNull::new(unsafe { std::alloc::alloc(layout(bytes)) }).map(Block)?;
    want_huge_pages(&block, bytes);
    Some(block)
}

fn free_block(class: usize, block: Block) {
    let bytes = class_bytes(class);
    let mut block = Some(block);
    if bytes <= LOCAL_LIMIT {
        let _ = LOCAL.try_with(|c| {
            let mut bins = c.borrow_mut();
            let depth = (LOCAL_BYTES / bytes).clamp(LOCAL_DEPTH.0, LOCAL_DEPTH.1);
            if bins.0.get(class).is_none_or(|b| b.len() < depth)
                && let Some(b) = block.take()
            {
                bins.push(class, b);
            }
        });
    } else if CACHED.load(Relaxed) + bytes <= LIMIT
        && let Some(b) = block.take()
    {
        CACHED.fetch_add(bytes, Relaxed);
        SHARED.lock().push(class, b);
    }
    if let Some(b) = block {
        // SAFETY: the block came from `allocate_block` with this class's layout.
        unsafe { std::alloc::dealloc(b.0.as_ptr(), layout(bytes)) };
    }
}

enum Owner {
    /// From the cache, of this class.
    Cache(usize),
    /// Memory of somebody else, kept alive by this object (NumPy, DLPack, …).
    Foreign { _keep: Box<dyn Any + Send + Sync> },
}

/// A block of host memory: `len` bytes at an aligned address.
pub struct Buffer {
    ptr: NonNull<u8>,
    len: usize,
    owner: Owner,
}

// SAFETY: a buffer owns its memory; shared access is read-only and mutation needs `&mut`.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// An uninitialized block of `bytes` bytes. Errors when the system has no such memory.
    // the address comes in a register: a buffer that is returned through memory and moved at once stalls the load
    #[inline]
    pub fn allocate(bytes: usize) -> Result<Buffer> {
        match allocate_block(bytes) {
            Some(block) => Ok(Buffer { ptr: block.0, len: bytes, owner: Owner::Cache(class_of(bytes)) }),
            None => Err(out_of_memory(bytes)),
        }
    }

    /// A block holding a copy of `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Buffer> {
        let mut b = Buffer::allocate(bytes.len())?;
        b.bytes_mut().copy_from_slice(bytes);
        Ok(b)
    }

    /// A block holding a copy of a slice of plain numbers.
    pub fn from_slice<T: Copy>(data: &[T]) -> Result<Buffer> {
        // SAFETY: callers pass plain numbers; any initialized memory can be read as bytes.
        Buffer::from_bytes(unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), std::mem::size_of_val(data)) })
    }

    /// Borrows foreign memory for as long as `keep` lives.
    ///
    /// # Safety
    /// `ptr` must be valid for reads of `len` bytes, and the bytes must not change, while `keep` lives.
    pub unsafe fn foreign(ptr: NonNull<u8>, len: usize, keep: Box<dyn Any + Send + Sync>) -> Buffer {
        Buffer { ptr, len, owner: Owner::Foreign { _keep: keep } }
    }

    /// Whether ferrax owns the memory, so that it may be written in place and reused.
    pub fn is_owned(&self) -> bool {
        matches!(self.owner, Owner::Cache(_))
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the buffer holds no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Address of the first byte.
    pub fn as_ptr(&self) -> *const u8 {
        self.ptr.as_ptr()
    }

    /// Address of the first byte, for writing.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        debug_assert!(self.is_owned());
        self.ptr.as_ptr()
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the buffer owns `len` bytes; ferrax never hands out a buffer before it is written.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }

    /// The bytes, for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        debug_assert!(self.is_owned());
        // SAFETY: `&mut self` is exclusive and the buffer owns `len` bytes.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }

    /// The elements as plain numbers of type `T`, whose size must divide the length.
    pub fn typed<T: Copy>(&self) -> &[T] {
        debug_assert!(self.ptr.as_ptr().cast::<T>().is_aligned());
        // SAFETY: `T` is a plain number (callers match it to the dtype); the length is rounded down to whole elements.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr().cast(), self.len / size_of::<T>()) }
    }

    /// The elements as plain numbers of type `T`, for writing.
    pub fn typed_mut<T: Copy>(&mut self) -> &mut [T] {
        debug_assert!(self.is_owned());
        // SAFETY: as in `typed`, and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr().cast(), self.len / size_of::<T>()) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Owner::Cache(class) = self.owner {
            LIVE.fetch_sub(self.len, Relaxed);
            // SAFETY: the buffer owns the bytes, and this is its end.
            unsafe { crate::checks::poison(self.ptr.as_ptr(), self.len) };
            if EXACT {
                // SAFETY: the block came from `block_of` with this layout.
                unsafe { std::alloc::dealloc(self.ptr.as_ptr(), layout(self.len.max(1))) };
            } else {
                free_block(class, Block(self.ptr));
            }
        }
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_their_requests_and_waste_little() {
        for bytes in (0..5000).chain([1 << 20, (1 << 20) + 1, 3 << 30]) {
            let class = class_of(bytes);
            assert!(class_bytes(class) >= bytes, "{bytes}");
            assert!(class == 0 || class_bytes(class - 1) < bytes, "{bytes} class {class}");
            assert!(class < CLASSES);
        }
    }

    #[test]
    #[cfg(not(ferrax_exact_buffers))]
    fn blocks_are_aligned_and_reused() {
        let a = Buffer::allocate(1000).unwrap();
        let p = a.as_ptr();
        assert_eq!(p as usize % ALIGNMENT, 0);
        drop(a);
        assert_eq!(Buffer::allocate(990).unwrap().as_ptr(), p);
    }

    #[test]
    fn large_blocks_start_at_huge_pages() {
        let a = Buffer::allocate(HUGE + 1).unwrap();
        assert_eq!(a.as_ptr() as usize % HUGE_PAGE, 0);
    }

    #[test]
    fn absurd_sizes_error() {
        assert!(Buffer::allocate(usize::MAX).is_err());
        assert!(Buffer::allocate(1 << 60).is_err());
    }
}
