//! Targets: handlers by name and platform.
//!
//! A handler is asked for its version when it is registered: one that was compiled for another layout of the structs
//! is refused there, not when it runs.

use crate::api::{API, Failure};
use crate::sys::*;
use ferrax_base::fork::Lock;
use std::collections::BTreeMap;

/// Handlers by platform and name.
static TARGETS: Lock<BTreeMap<(String, String), Bundle>> = Lock::new(BTreeMap::new());

/// The handlers of a target, of which the last is always there.
#[derive(Clone, Copy)]
pub(crate) struct Bundle {
    pub(crate) instantiate: Option<XLA_FFI_Handler>,
    pub(crate) prepare: Option<XLA_FFI_Handler>,
    pub(crate) initialize: Option<XLA_FFI_Handler>,
    pub(crate) execute: XLA_FFI_Handler,
}

impl Bundle {
    fn addresses(&self) -> [usize; 4] {
        let of = |h: Option<XLA_FFI_Handler>| h.map_or(0, |h| h as usize);
        [of(self.instantiate), of(self.prepare), of(self.initialize), of(Some(self.execute))]
    }
}

/// A platform's own name: XLA calls the CPU `Host`.
fn canonical(platform: &str) -> String {
    match platform.to_lowercase().as_str() {
        "host" => "cpu".to_owned(),
        other => other.to_owned(),
    }
}

/// Adds a target. The same handlers may be added again.
pub(crate) fn add(name: &str, platform: &str, bundle: XLA_FFI_Handler_Bundle) -> Result<(), Failure> {
    let invalid = |text: String| Err(Failure::new(XLA_FFI_Error_Code_INVALID_ARGUMENT, &text));
    let Some(execute) = bundle.execute else {
        return invalid(format!(
            "FFI handler for {name} on a platform {platform} must provide an execute implementation"
        ));
    };
    let XLA_FFI_Handler_Bundle { instantiate, prepare, initialize, .. } = bundle;
    let bundle = Bundle { instantiate, prepare, initialize, execute };
    let (major, minor) = version(execute)?;
    if major != XLA_FFI_API_MAJOR || !(XLA_FFI_API_OLDEST_MINOR..=XLA_FFI_API_MINOR).contains(&minor) {
        return invalid(format!(
            "XLA FFI handler registration for {name} on platform {platform} failed because the handler's API version \
             ({major}.{minor}) is incompatible with the framework's API version \
             ({XLA_FFI_API_MAJOR}.{XLA_FFI_API_MINOR}). Minimum supported API version is \
             ({XLA_FFI_API_MAJOR}.{XLA_FFI_API_OLDEST_MINOR}). A handler tells its version through the metadata \
             extension of its call frame."
        ));
    }
    let key = (canonical(platform), name.to_owned());
    let mut targets = TARGETS.lock();
    match targets.get(&key) {
        Some(known) if known.addresses() != bundle.addresses() => invalid(format!(
            "Duplicate FFI handler registration for {name} on platform {platform} with different bundle addresses"
        )),
        Some(_) => Ok(()),
        None => {
            targets.insert(key, bundle);
            Ok(())
        }
    }
}

/// The handlers of a target. A program's operations run in its order: what asks for an order has nothing to do.
pub(crate) fn find(name: &str, platform: &str) -> Option<Bundle> {
    let known = TARGETS.lock().get(&(canonical(platform), name.to_owned())).copied();
    known.or((name == "control_dep").then_some(Bundle {
        instantiate: None,
        prepare: None,
        initialize: None,
        execute: nothing,
    }))
}

unsafe extern "C" fn nothing(_: *mut XLA_FFI_CallFrame) -> *mut XLA_FFI_Error {
    std::ptr::null_mut()
}

/// The version of the interface that a handler was compiled for: (major, minor).
fn version(handler: XLA_FFI_Handler) -> Result<(i32, i32), Failure> {
    let mut metadata = XLA_FFI_Metadata {
        struct_size: XLA_FFI_Metadata::SIZE,
        api_version: XLA_FFI_Api_Version {
            struct_size: size_of::<XLA_FFI_Api_Version>(),
            extension_start: std::ptr::null_mut(),
            major_version: 0,
            minor_version: 0,
        },
        traits: 0,
        state_type_id: XLA_FFI_TypeId { type_id: 0 },
    };
    let mut extension = XLA_FFI_Metadata_Extension {
        extension_base: XLA_FFI_Extension_Base {
            struct_size: size_of::<XLA_FFI_Metadata_Extension>(),
            r#type: XLA_FFI_Extension_Metadata,
            next: std::ptr::null_mut(),
        },
        metadata: &raw mut metadata,
    };
    let mut frame = empty_frame();
    frame.extension_start = (&raw mut extension).cast();
    // SAFETY: a handler of the interface, by the contract of `register`; the frame outlives the call
    let failure = unsafe { Failure::take(handler(&raw mut frame)) };
    failure.map_or(Ok((metadata.api_version.major_version, metadata.api_version.minor_version)), Err)
}

/// A call frame without operands, results and attributes.
pub(crate) fn empty_frame() -> XLA_FFI_CallFrame {
    let none = std::ptr::null_mut();
    XLA_FFI_CallFrame {
        struct_size: XLA_FFI_CallFrame::SIZE,
        extension_start: none,
        api: &raw const API.0,
        ctx: std::ptr::null(),
        stage: XLA_FFI_STAGE_EXECUTE,
        args: XLA_FFI_Args {
            struct_size: size_of::<XLA_FFI_Args>(),
            extension_start: none,
            size: 0,
            types: std::ptr::null(),
            args: std::ptr::null(),
        },
        rets: XLA_FFI_Rets {
            struct_size: size_of::<XLA_FFI_Rets>(),
            extension_start: none,
            size: 0,
            types: std::ptr::null(),
            rets: std::ptr::null(),
        },
        attrs: XLA_FFI_Attrs {
            struct_size: size_of::<XLA_FFI_Attrs>(),
            extension_start: none,
            size: 0,
            types: std::ptr::null(),
            names: std::ptr::null(),
            attrs: std::ptr::null(),
        },
        future: std::ptr::null_mut(),
    }
}
