//! Machine code on a GPU, and its kernels.

use super::context::{Context, Entered};
use super::stream::Stream;
use super::sys::*;
use ferrax_base::{Error, Result, error};
use std::ffi::{CString, c_int, c_void};
use std::sync::Arc;

/// Dynamic shared memory that every kernel may have without asking.
const SHARED_FOR_ALL: u32 = 48 << 10;
/// The code of PTX that the driver cannot translate, and of PTX newer than the driver.
const REFUSED_PTX: [CUresult; 2] = [218, 222];

/// Machine code that a GPU holds. Whoever drops one sees to it that none of its kernels runs any more.
pub struct Module {
    context: Arc<Context>,
    raw: CUmodule,
}

// SAFETY: modules may be used from any thread, several at once.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

/// Why there is no module.
pub enum Unloaded {
    /// The image is none for this GPU and driver, or is damaged.
    Image(Error),
    /// The driver could not.
    Other(Error),
}

impl From<Unloaded> for Error {
    fn from(unloaded: Unloaded) -> Error {
        let (Unloaded::Image(error) | Unloaded::Other(error)) = unloaded;
        error
    }
}

/// A kernel of a module.
#[derive(Clone, Copy)]
pub struct Function(CUfunction);

// SAFETY: functions are names, which may be used from any thread as long as their module lives.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Module {
    /// Loads a cubin, or PTX with a zero behind it.
    pub fn load(context: &Arc<Context>, image: &[u8]) -> Result<Module, Unloaded> {
        if image.is_empty() {
            return Err(Unloaded::Image(error!(Runtime, "the machine code of a module is empty")));
        }
        let here = context.enter().map_err(Unloaded::Other)?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the place outlives the call, and an image says itself where it ends.
        let code = unsafe { (here.driver().functions.cuModuleLoadData)(&raw mut raw, image.as_ptr().cast::<c_void>()) };
        let loaded = here.driver().check("cuModuleLoadData", code);
        let images =
            [CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_NO_BINARY_FOR_GPU].contains(&code) || REFUSED_PTX.contains(&code);
        loaded.map_err(if images { Unloaded::Image } else { Unloaded::Other })?;
        Ok(Module { context: context.clone(), raw })
    }

    /// The kernel of a name, which is started with so much dynamic shared memory at the most.
    pub fn function(&self, name: &str, shared: u32) -> Result<Function> {
        let here = self.context.enter()?;
        let driver = here.driver();
        let text = CString::new(name).map_err(|_| error!(Internal, "a kernel is called {name:?}"))?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the place and the text outlive the call, and the module is alive.
        let code = unsafe { (driver.functions.cuModuleGetFunction)(&raw mut raw, self.raw, text.as_ptr()) };
        if code == CUDA_ERROR_NOT_FOUND {
            return Err(error!(Internal, "the program's source has no kernel {name}"));
        }
        driver.check("cuModuleGetFunction", code)?;
        if shared > SHARED_FOR_ALL {
            let attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function is alive.
            unsafe { driver.cuFuncSetAttribute(raw, attribute, shared as c_int)? };
        }
        Ok(Function(raw))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: nobody uses the module after this.
        self.context.give_back(|driver| unsafe { driver.cuModuleUnload(self.raw) });
    }
}

/// A kernel with its shape: all of a launch but its arguments.
#[derive(Clone, Copy)]
pub struct Shape {
    /// The kernel.
    pub function: Function,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory of a block.
    pub shared: u32,
}

impl Shape {
    /// The launch as a graph's node has it. `pointers` becomes the addresses of the arguments, and outlives the node's use.
    pub(super) fn node(&self, args: &mut [u64], pointers: &mut Vec<*mut c_void>) -> CUDA_KERNEL_NODE_PARAMS {
        point(args, pointers);
        CUDA_KERNEL_NODE_PARAMS {
            func: self.function.0,
            grid: self.grid,
            block: self.block,
            sharedMemBytes: self.shared,
            kernelParams: pointers.as_mut_ptr(),
            extra: std::ptr::null_mut(),
            kern: std::ptr::null_mut(),
            ctx: std::ptr::null_mut(),
        }
    }
}

fn point(args: &mut [u64], pointers: &mut Vec<*mut c_void>) {
    pointers.clear();
    pointers.extend(args.iter_mut().map(|arg| std::ptr::from_mut(arg).cast::<c_void>()));
}

impl Stream {
    /// Starts a kernel with these arguments, each of eight bytes; `pointers` is room to work in.
    ///
    /// # Safety
    /// The kernel has so many parameters of eight bytes, its module is alive until it has ended, and it keeps to memory that
    /// is alive when the stream comes to it.
    pub unsafe fn launch(
        &self,
        here: &Entered<'_>,
        shape: &Shape,
        args: &mut [u64],
        pointers: &mut Vec<*mut c_void>,
    ) -> Result<()> {
        point(args, pointers);
        let Shape { function, grid: [x, y, z], block: [a, b, c], shared } = *shape;
        let none = std::ptr::null_mut();
        // SAFETY: the caller's promise; the driver reads the arguments before it returns.
        unsafe {
            here.driver().cuLaunchKernel(function.0, x, y, z, a, b, c, shared, self.raw(), pointers.as_mut_ptr(), none)
        }
    }
}
