//! What a compiled program is, loaded or not: its results, its costs, its code.

use super::{dtype, hlo, offered};
use crate::result::{self as r, OptionValue};
use crate::sys::*;
use ferrax_base::{DType, Result, Shape, bail};
use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

/// A compiled program without devices to run on.
pub struct Compiled {
    api: &'static PJRT_Api,
    raw: NonNull<PJRT_Executable>,
    /// The client or topology that it was compiled for.
    _keep: Arc<dyn Any + Send + Sync>,
}

// SAFETY: compiled programs do not change, and may be read from any thread.
unsafe impl Send for Compiled {}
// SAFETY: as above.
unsafe impl Sync for Compiled {}

impl Compiled {
    /// Takes a compiled program over.
    ///
    /// # Safety
    /// `raw` is null, or one of this plugin that the caller owns.
    pub(crate) unsafe fn own(
        api: &'static PJRT_Api,
        raw: *mut PJRT_Executable,
        keep: Arc<dyn Any + Send + Sync>,
    ) -> Result<Compiled> {
        match NonNull::new(raw) {
            Some(raw) => Ok(Compiled { api, raw, _keep: keep }),
            None => bail!(Runtime, "the PJRT plugin gave no compiled program and no error"),
        }
    }

    fn raw(&self) -> *mut PJRT_Executable {
        self.raw.as_ptr()
    }

    /// The program's name.
    pub fn name(&self) -> Result<String> {
        // SAFETY: the program is alive, here and below.
        unsafe { r::executable_name(self.api, self.raw()) }
    }

    /// How many replicas it runs.
    pub fn replicas(&self) -> Result<usize> {
        // SAFETY: as above.
        unsafe { r::executable_num_replicas(self.api, self.raw()) }
    }

    /// How many partitions it runs.
    pub fn partitions(&self) -> Result<usize> {
        // SAFETY: as above.
        unsafe { r::executable_num_partitions(self.api, self.raw()) }
    }

    /// Dtype and dimensions of each result of a device.
    pub fn outputs(&self) -> Result<Vec<(DType, Shape)>> {
        // SAFETY: as above.
        let (count, types, dims) = unsafe {
            let count = r::executable_num_outputs(self.api, self.raw())?;
            (count, r::executable_output_types(self.api, self.raw())?, r::executable_output_dims(self.api, self.raw())?)
        };
        if types.len() != count || dims.len() != count {
            bail!(Runtime, "the PJRT plugin gives {} types and {} shapes of {count} results", types.len(), dims.len());
        }
        let output = |(ty, dims): (&PJRT_Buffer_Type, Vec<i64>)| {
            Ok((dtype::dtype(*ty)?, dims.into_iter().map(|d| d as usize).collect()))
        };
        types.iter().zip(dims).map(output).collect()
    }

    /// Kinds of the memories of its results.
    pub fn output_memory_kinds(&self) -> Result<Vec<String>> {
        // SAFETY: as above.
        unsafe { r::executable_output_memory_kinds(self.api, self.raw()) }
    }

    /// A name that programs compiled from equal texts, with equal options and compilers, have in common.
    pub fn fingerprint(&self) -> Result<String> {
        // SAFETY: as above.
        unsafe { r::executable_fingerprint(self.api, self.raw()) }
    }

    /// Bytes of its machine code; -1 where the plugin does not know.
    pub fn code_size(&self) -> Result<i64> {
        // SAFETY: as above.
        unsafe { r::executable_code_size(self.api, self.raw()) }
    }

    /// What a run costs, by XLA's names: `"flops"`, `"bytes accessed"`; `None` where the plugin does not know.
    pub fn costs(&self) -> Result<Option<Vec<(String, OptionValue)>>> {
        // SAFETY: as above.
        offered(unsafe { r::executable_costs(self.api, self.raw()) })
    }

    /// Bytes that a run needs; `None` where the plugin does not know.
    pub fn memory(&self) -> Result<Option<CompiledMemory>> {
        // SAFETY: as above.
        let known = offered(unsafe { r::executable_memory(self.api, self.raw()) })?;
        Ok(known.map(|a| CompiledMemory {
            code: a.generated_code_size_in_bytes,
            arguments: a.argument_size_in_bytes,
            results: a.output_size_in_bytes,
            reused: a.alias_size_in_bytes,
            temporary: a.temp_size_in_bytes,
            peak: a.peak_memory_in_bytes,
        }))
    }

    /// The program as the compiler left it: the format of the bytes (`"hlo_with_config"`), and the bytes.
    pub fn optimized(&self) -> Result<(String, Vec<u8>)> {
        // SAFETY: as above.
        unsafe { r::executable_program(self.api, self.raw()) }
    }

    /// The program as the compiler left it, as text for people: instructions with their shapes and operands.
    pub fn text(&self) -> Result<String> {
        let (format, bytes) = self.optimized()?;
        hlo::text(&format, &bytes)
    }

    /// The program as bytes, for [`super::Client::load`].
    pub fn serialize(&self) -> Result<Vec<u8>> {
        // SAFETY: as above.
        unsafe { r::executable_serialize(self.api, self.raw()) }
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        // SAFETY: nobody uses the program after this. There is nobody to tell of an error.
        let _ = unsafe { r::executable_destroy(self.api, self.raw()) };
    }
}

/// Bytes that a run of a program needs on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompiledMemory {
    /// Of its machine code.
    pub code: i64,
    /// Of its arguments.
    pub arguments: i64,
    /// Of its results.
    pub results: i64,
    /// Of arguments that become results.
    pub reused: i64,
    /// In between.
    pub temporary: i64,
    /// At once, at most.
    pub peak: i64,
}
