//! What handlers keep between stages, and the types of it.
//!
//! A handler that keeps state sets it in one stage and finds it in later ones: what it sets while it is instantiated
//! lives as long as the program's call site, the rest as long as one call. The type says how state ends.

use crate::api::Failure;
use crate::sys::*;
use ferrax_base::fork::Lock;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

/// How an object of a type ends.
pub(crate) type Deleter = Option<unsafe extern "C" fn(*mut c_void)>;

struct Known {
    id: i64,
    deleter: Deleter,
}

/// Types by name.
static TYPES: Lock<BTreeMap<String, Known>> = Lock::new(BTreeMap::new());

/// The first number given to a type here; small ones may be those of another runtime in the process.
const FIRST_ID: i64 = 1 << 32;

/// Registers a type by name, and gives its number: `asked`, unless that is 0.
pub(crate) fn register_type(name: &str, asked: i64, deleter: Deleter) -> Result<i64, Failure> {
    let mut types = TYPES.lock();
    if let Some(known) = types.get(name) {
        if asked != 0 && asked != known.id {
            let text = format!("Type {name} is registered with id {}, not {asked}", known.id);
            return Err(Failure::new(XLA_FFI_Error_Code_INVALID_ARGUMENT, &text));
        }
        return Ok(known.id);
    }
    if asked != 0
        && let Some((other, _)) = types.iter().find(|(_, known)| known.id == asked)
    {
        let text = format!("Type id {asked} of {name} is that of {other} already");
        return Err(Failure::new(XLA_FFI_Error_Code_ALREADY_EXISTS, &text));
    }
    let next = types.values().map(|known| known.id + 1).max().unwrap_or(0).max(FIRST_ID);
    let id = if asked == 0 { next } else { asked };
    types.insert(name.to_owned(), Known { id, deleter });
    Ok(id)
}

fn deleter_of(id: i64) -> Option<Deleter> {
    TYPES.lock().values().find(|known| known.id == id).map(|known| known.deleter)
}

/// An object that a handler keeps.
struct State {
    type_id: i64,
    object: *mut c_void,
    deleter: Deleter,
}

// SAFETY: the FFI lets any thread of the runtime use and end a handler's state.
unsafe impl Send for State {}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(deleter) = self.deleter {
            // SAFETY: the object is of the type whose deleter this is, and nobody has it any more.
            unsafe { deleter(self.object) }
        }
    }
}

/// Room for the state of one stage.
#[derive(Default)]
pub(crate) struct Slot(Mutex<Option<State>>);

impl Slot {
    fn set(&self, type_id: i64, object: *mut c_void) -> Result<(), Failure> {
        let Some(deleter) = deleter_of(type_id) else {
            let text = format!(
                "Type id {type_id} of a handler's state is not registered; register the type with \
                 jax.ffi.register_ffi_type before its handlers run"
            );
            return Err(Failure::new(XLA_FFI_Error_Code_INVALID_ARGUMENT, &text));
        };
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_some() {
            return Err(Failure::new(XLA_FFI_Error_Code_ALREADY_EXISTS, "State is already set"));
        }
        *state = Some(State { type_id, object, deleter });
        Ok(())
    }

    fn get(&self, type_id: i64) -> Result<*mut c_void, Failure> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            None => Err(Failure::new(XLA_FFI_Error_Code_NOT_FOUND, "State is not set")),
            Some(state) if state.type_id != type_id => {
                let text = format!("State is of the type with id {}, not {type_id}", state.type_id);
                Err(Failure::new(XLA_FFI_Error_Code_INVALID_ARGUMENT, &text))
            }
            Some(state) => Ok(state.object),
        }
    }
}

/// The state of a call. Handlers hand it back to the functions of the interface, from any thread.
pub struct Context<'a> {
    /// What the call site keeps.
    pub(crate) instance: &'a Slot,
    pub(crate) prepared: Slot,
    pub(crate) initialized: Slot,
    /// The number of the call.
    pub(crate) run: i64,
}

impl Context<'_> {
    fn slot(&self, stage: c_int) -> Result<&Slot, Failure> {
        match stage {
            XLA_FFI_STAGE_INSTANTIATE => Ok(self.instance),
            XLA_FFI_STAGE_PREPARE => Ok(&self.prepared),
            XLA_FFI_STAGE_INITIALIZE => Ok(&self.initialized),
            other => {
                let text = format!("Handlers keep no state of execution stage {other}");
                Err(Failure::new(XLA_FFI_Error_Code_INVALID_ARGUMENT, &text))
            }
        }
    }

    /// Keeps an object of a type for later stages.
    pub(crate) fn set(&self, stage: c_int, type_id: i64, object: *mut c_void) -> Result<(), Failure> {
        self.slot(stage)?.set(type_id, object)
    }

    /// The object that a stage kept.
    pub(crate) fn get(&self, stage: c_int, type_id: i64) -> Result<*mut c_void, Failure> {
        self.slot(stage)?.get(type_id)
    }
}
