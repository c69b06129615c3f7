//! A compiled program, and its runs.
//!
//! [`Executable::execute`] is the hot path: what does not change from run to run is made once, lists of handles live on
//! the stack, and a result is a handle with the type that the program gives it.

use super::{Buffer, Client, Compiled, Event};
use crate::result as r;
use crate::sys::*;
use ferrax_base::{DType, Error, Result, Shape, bail};
use smallvec::{SmallVec, smallvec};
use std::ptr::NonNull;
use std::sync::Arc;

/// Results of a run on one device.
pub type Results = SmallVec<[Buffer; 1]>;

/// Handles of arguments or results.
type Handles = SmallVec<[*mut PJRT_Buffer; 16]>;

/// A compiled program.
pub struct Executable {
    client: Arc<Client>,
    raw: NonNull<PJRT_LoadedExecutable>,
    /// `None` only while it is being made.
    about: Option<Compiled>,
    /// Dtype and dimensions of each result.
    outputs: Vec<(DType, Shape)>,
    devices: Vec<*mut PJRT_Device>,
    /// Options of a run and its arguments, but for what a run sets.
    options: PJRT_ExecuteOptions,
    args: PJRT_LoadedExecutable_Execute_Args,
}

// SAFETY: the functions on executables may be called from any thread, several at once; the templates are only read.
unsafe impl Send for Executable {}
// SAFETY: as above.
unsafe impl Sync for Executable {}

impl Executable {
    /// Takes an executable over.
    ///
    /// # Safety
    /// `raw` is null, or an executable of this client that the caller owns.
    pub(crate) unsafe fn own(client: &Arc<Client>, raw: *mut PJRT_LoadedExecutable) -> Result<Executable> {
        let api = client.api();
        let Some(raw) = NonNull::new(raw) else { bail!(Runtime, "the PJRT plugin gave no executable and no error") };
        // from here on it is destroyed when something fails
        let mut executable = Executable {
            client: client.clone(),
            raw,
            about: None,
            outputs: Vec::new(),
            devices: Vec::new(),
            options: Args::new(),
            args: PJRT_LoadedExecutable_Execute_Args { executable: raw.as_ptr(), ..Args::new() },
        };
        // SAFETY: the executable is alive, and its description given to us.
        let about = unsafe {
            executable.devices = r::loaded_devices(api, raw.as_ptr())?;
            Compiled::own(api, r::loaded_executable(api, raw.as_ptr())?, client.clone())?
        };
        executable.outputs = about.outputs()?;
        executable.about = Some(about);
        Ok(executable)
    }

    pub(crate) fn api(&self) -> &'static PJRT_Api {
        self.client.api()
    }

    /// The client.
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Dtype and dimensions of each result of a device.
    pub fn outputs(&self) -> &[(DType, Shape)] {
        &self.outputs
    }

    /// Lets go of the machine code; runs that have started end, and others fail.
    pub fn delete(&self) -> Result<()> {
        // SAFETY: the executable is alive.
        unsafe { r::loaded_delete(self.api(), self.raw.as_ptr()) }
    }

    /// Whether [`Executable::delete`] was called.
    pub fn is_deleted(&self) -> Result<bool> {
        // SAFETY: the executable is alive.
        unsafe { r::loaded_is_deleted(self.api(), self.raw.as_ptr()) }
    }

    /// How many devices of this process it runs on; none for an executable that runs on any.
    pub fn devices(&self) -> usize {
        self.devices.len()
    }

    /// Runs on one device and returns at once; errors of the run surface where its results are used.
    ///
    /// Arguments that the program takes as donated are gone after this, except those whose places are in `keep`.
    /// `device` is the place of the client's device to run on, where the executable leaves it open or has several.
    #[inline]
    pub fn execute(&self, args: &[&Buffer], keep: &[i64], device: Option<usize>) -> Result<Results> {
        self.execute_on(args, keep, device, std::ptr::null_mut())
    }

    /// [`Executable::execute`] with the event of its end, by which a run without results tells of its errors.
    pub fn execute_with_end(
        &self,
        args: &[&Buffer],
        keep: &[i64],
        device: Option<usize>,
    ) -> Result<(Results, Option<Event>)> {
        let mut end = std::ptr::null_mut();
        let results = self.execute_on(args, keep, device, &raw mut end)?;
        // SAFETY: the run succeeded, so the plugin gave its event.
        Ok((results, unsafe { Event::own(&self.client, end) }))
    }

    #[inline]
    fn execute_on(
        &self,
        args: &[&Buffer],
        keep: &[i64],
        device: Option<usize>,
        end: *mut *mut PJRT_Event,
    ) -> Result<Results> {
        let handles = self.handles(args)?;
        let mut results: Handles = smallvec![std::ptr::null_mut(); self.outputs.len()];
        let execute_device = match device {
            Some(device) => self.client.device_at(device)?,
            None => std::ptr::null_mut(),
        };
        let how = PJRT_LoadedExecutable_Execute_Args { execute_device, device_complete_events: end, ..self.args };
        let (arguments, outputs) = (handles.as_ptr(), results.as_mut_ptr());
        // SAFETY: one list of handles that are alive, one of as many places as there are results, one of one event.
        unsafe { self.run(&[arguments], args.len(), &[outputs], keep, how) }.map_err(|e| blame(args.iter(), e))?;
        // SAFETY: the run succeeded, so the plugin has written its results.
        unsafe { self.results(&results) }
    }

    /// Runs on all of its devices at once, with a list of arguments for each, and returns at once.
    pub fn execute_all(&self, args: &[&[&Buffer]], keep: &[i64]) -> Result<Vec<Results>> {
        if args.len() != self.devices.len() {
            bail!(Value, "a program for {} devices was given arguments for {}", self.devices.len(), args.len());
        }
        let count = args.first().map_or(0, |first| first.len());
        if let Some(other) = args.iter().find(|a| a.len() != count) {
            bail!(Value, "one device was given {count} arguments and another {}", other.len());
        }
        let handles = args.iter().map(|a| self.handles(a)).collect::<Result<Vec<_>>>()?;
        let mut results: Vec<Handles> = vec![smallvec![std::ptr::null_mut(); self.outputs.len()]; args.len()];
        let arguments: SmallVec<[_; 8]> = handles.iter().map(SmallVec::as_ptr).collect();
        let outputs: SmallVec<[_; 8]> = results.iter_mut().map(SmallVec::as_mut_ptr).collect();
        // SAFETY: as in `execute`, a list of each for every device.
        unsafe { self.run(&arguments, count, &outputs, keep, self.args) }
            .map_err(|e| blame(args.iter().flat_map(|a| a.iter()), e))?;
        // SAFETY: the run succeeded, so the plugin has written its results.
        results.iter().map(|r| unsafe { self.results(r) }).collect()
    }

    fn handles(&self, args: &[&Buffer]) -> Result<Handles> {
        if args.iter().any(|a| !Arc::ptr_eq(a.client(), &self.client)) {
            bail!(Value, "an argument belongs to another client than the program");
        }
        Ok(args.iter().map(|a| a.raw()).collect())
    }

    /// # Safety
    /// A list of `count` arguments and a list of places for results for each device.
    #[inline]
    unsafe fn run(
        &self,
        arguments: &[*const *mut PJRT_Buffer],
        count: usize,
        outputs: &[*mut *mut PJRT_Buffer],
        keep: &[i64],
        how: PJRT_LoadedExecutable_Execute_Args,
    ) -> Result<()> {
        let mut options = PJRT_ExecuteOptions {
            non_donatable_input_indices: keep.as_ptr(),
            num_non_donatable_input_indices: keep.len(),
            ..self.options
        };
        let mut args = PJRT_LoadedExecutable_Execute_Args {
            options: &raw mut options,
            argument_lists: arguments.as_ptr(),
            num_devices: arguments.len(),
            num_args: count,
            output_lists: outputs.as_ptr(),
            ..how
        };
        let api = self.api();
        // SAFETY: the caller's promise; everything outlives the call.
        unsafe { r::call(api, api.PJRT_LoadedExecutable_Execute, "PJRT_LoadedExecutable_Execute", &mut args) }
    }

    /// # Safety
    /// The handles are results of this program that the caller owns.
    #[inline]
    unsafe fn results(&self, handles: &Handles) -> Result<Results> {
        let own = |(raw, (dtype, dims)): (&*mut PJRT_Buffer, &(DType, Shape))| {
            // SAFETY: the caller's promise.
            unsafe { Buffer::own(&self.client, *raw, *dtype, dims.clone()) }
        };
        handles.iter().zip(&self.outputs).map(own).collect()
    }

    /// What it is: its costs, its code, its serialized form.
    pub fn about(&self) -> &Compiled {
        self.about.as_ref().expect("every finished executable has a description")
    }
}

/// An error of a run, as one of deletion if one of its arguments is gone.
#[cold]
fn blame<'a>(args: impl Iterator<Item = &'a &'a Buffer>, error: Error) -> Error {
    args.fold(error, |error, arg| arg.blame(error))
}

impl Drop for Executable {
    fn drop(&mut self) {
        // the description first, as its code belongs to the executable
        self.about = None;
        // SAFETY: nobody uses the executable after this. There is nobody to tell of an error.
        let _ = unsafe { r::loaded_destroy(self.api(), self.raw.as_ptr()) };
    }
}

impl std::fmt::Debug for Executable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Executable({} results on {} devices of {:?})", self.outputs.len(), self.devices.len(), self.client)
    }
}
