//! A GPU and its primary context, which all users of CUDA in the process share.
//!
//! Whoever calls the driver enters the context before and leaves it after, so that a library beside us that made another one
//! current on the thread still finds it there. Read next: `stream.rs`.

use super::result::Driver;
use super::sys::*;
use ferrax_base::{Result, bail};
use std::ffi::{CStr, c_int};
use std::sync::Arc;

/// A GPU with its context, which is kept as long as the object lives.
pub struct Context {
    driver: Arc<Driver>,
    ordinal: usize,
    device: CUdevice,
    raw: CUcontext,
    name: String,
    /// Major and minor number of what the processor can do.
    capability: (i32, i32),
    bytes: usize,
}

// SAFETY: contexts may be used from any thread, several at once.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// The context is the thread's current one until this is dropped.
pub struct Entered<'a> {
    context: &'a Context,
    /// Which context is current is the thread's own matter.
    _here: std::marker::PhantomData<*const ()>,
}

impl Context {
    /// The context of a GPU by its number.
    pub fn new(driver: &Arc<Driver>, ordinal: usize) -> Result<Arc<Context>> {
        let count = driver.devices()?;
        if count == 0 {
            return Err(driver.no_device());
        }
        if ordinal >= count {
            bail!(Value, "there is no GPU {ordinal}: there are {count}");
        }
        let mut device = 0;
        // SAFETY: the place outlives the call.
        unsafe { driver.cuDeviceGet(&raw mut device, ordinal as c_int)? };
        let name = name(driver, device)?;
        if attribute(driver, device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? == 0 {
            bail!(NotImplemented, "the GPU {name} has no pools of memory ordered by streams, which ferrax wants");
        }
        let capability = (
            attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        let (mut bytes, mut raw) = (0, std::ptr::null_mut());
        // SAFETY: the places outlive the calls.
        unsafe {
            driver.cuDeviceTotalMem_v2(&raw mut bytes, device)?;
            driver.cuDevicePrimaryCtxRetain(&raw mut raw, device)?;
        }
        Ok(Arc::new(Context { driver: driver.clone(), ordinal, device, raw, name, capability, bytes }))
    }

    /// Makes the context the thread's current one.
    #[inline]
    pub fn enter(&self) -> Result<Entered<'_>> {
        self.driver.usable()?;
        // SAFETY: the context is retained.
        unsafe { self.driver.cuCtxPushCurrent_v2(self.raw)? };
        Ok(Entered { context: self, _here: std::marker::PhantomData })
    }

    /// Gives something back to the driver; there is nobody to tell of an error. A forked child has nothing to give back.
    pub(super) fn give_back(&self, what: impl FnOnce(&Driver) -> Result<()>) {
        if self.driver.forked() {
            return;
        }
        // once more where that failed: what is not given back is lost for good
        let _here = self.enter().or_else(|_| self.enter());
        let _ = what(&self.driver);
    }

    /// The driver.
    pub fn driver(&self) -> &Arc<Driver> {
        &self.driver
    }

    /// Its number among the GPUs that the driver shows.
    pub fn ordinal(&self) -> usize {
        self.ordinal
    }

    pub(super) fn device(&self) -> CUdevice {
        self.device
    }

    pub(super) fn raw(&self) -> CUcontext {
        self.raw
    }

    /// Its model: `"NVIDIA H100 80GB HBM3"`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its compute capability.
    pub fn capability(&self) -> (i32, i32) {
        self.capability
    }

    /// Bytes of its memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many processors it has.
    pub fn multiprocessors(&self) -> Result<usize> {
        let count = attribute(&self.driver, self.device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// The most bytes of shared memory that a block can have.
    pub fn shared_bytes(&self) -> Result<usize> {
        let bytes = attribute(&self.driver, self.device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        Ok(usize::try_from(bytes).unwrap_or(0))
    }

    /// Whether this GPU can reach the memory of another one by itself.
    pub fn reaches(&self, other: &Context) -> Result<bool> {
        let mut can = 0;
        // SAFETY: the place outlives the call.
        unsafe { self.driver.cuDeviceCanAccessPeer(&raw mut can, self.device, other.device)? };
        Ok(can != 0)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.driver.forked() {
            // SAFETY: it was retained once for this. There is nobody to tell of an error.
            let _ = unsafe { self.driver.cuDevicePrimaryCtxRelease_v2(self.device) };
        }
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GPU {} ({})", self.ordinal, self.name)
    }
}

impl Entered<'_> {
    /// The driver.
    #[inline]
    pub fn driver(&self) -> &Driver {
        &self.context.driver
    }

    pub(super) fn context(&self) -> CUcontext {
        self.context.raw
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut left = std::ptr::null_mut();
        // SAFETY: the place outlives the call. There is nobody to tell of an error.
        let _ = unsafe { self.driver().cuCtxPopCurrent_v2(&raw mut left) };
    }
}

fn name(driver: &Driver, device: CUdevice) -> Result<String> {
    let mut text = [0; 256];
    // SAFETY: the text has room for so many characters, and a zero behind them.
    unsafe { driver.cuDeviceGetName(text.as_mut_ptr(), text.len() as c_int - 1, device)? };
    // SAFETY: the last character is a zero.
    Ok(unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned())
}

fn attribute(driver: &Driver, device: CUdevice, attribute: c_int) -> Result<c_int> {
    let mut value = 0;
    // SAFETY: the place outlives the call.
    unsafe { driver.cuDeviceGetAttribute(&raw mut value, attribute, device)? };
    Ok(value)
}
