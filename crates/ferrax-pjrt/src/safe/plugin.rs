//! A plugin: a library that exports `GetPjrtApi`, loaded and checked.
//!
//! A plugin is loaded once for each path and stays for the life of the process. Every way in which a file can fail to be
//! a plugin has an error of its own, which names the path, what was found and what is wanted.
//! Read next: `client.rs`; `probe.rs` for plugins that end the process.

use crate::result::{self as r, OptionValue, unusable};
use crate::sys::*;
use ferrax_base::Result;
use libloading::{Library, Symbol};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A plugin that was loaded and prepared.
pub struct Plugin {
    pub(crate) api: &'static PJRT_Api,
    name: String,
    path: PathBuf,
    attributes: Vec<(String, OptionValue)>,
}

/// Plugins that are loaded, each with its table: one for each library, whatever names and paths it is loaded by.
///
/// The lock is held while one loads, which runs code of the plugin: a plugin may be prepared only once.
static LOADED: Mutex<Vec<(usize, Arc<Plugin>)>> = Mutex::new(Vec::new());

impl Plugin {
    /// Loads the library at a path and prepares it; `name` is for messages.
    pub fn load(name: &str, path: &Path) -> Result<Arc<Plugin>> {
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        let table = table(name, path)?;
        if let Some((_, plugin)) = loaded.iter().find(|(t, _)| *t == table.addr()) {
            return Ok(plugin.clone());
        }
        let api = checked(name, path, table)?;
        // SAFETY: the table is whole and of the version that is declared here; nothing was called before.
        unsafe { r::plugin_initialize(api) }.map_err(|e| unusable(name, path, format_args!("preparing it: {e}")))?;
        let attributes = match api.PJRT_Plugin_Attributes {
            // SAFETY: the plugin is prepared.
            Some(_) => unsafe { r::plugin_attributes(api) }
                .map_err(|e| unusable(name, path, format_args!("asking for its attributes: {e}")))?,
            None => Vec::new(),
        };
        let plugin = Arc::new(Plugin { api, name: name.into(), path: path.into(), attributes });
        loaded.push((table.addr(), plugin.clone()));
        Ok(plugin)
    }

    /// The name that it was first loaded by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The path that it was first loaded from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The version of its API: major, minor.
    pub fn api_version(&self) -> (i32, i32) {
        let version = &self.api.pjrt_api_version;
        (version.major_version, version.minor_version)
    }

    /// What it says of itself.
    pub fn attributes(&self) -> &[(String, OptionValue)] {
        &self.attributes
    }

    /// One of its attributes.
    pub fn attribute(&self, name: &str) -> Option<&OptionValue> {
        self.attributes.iter().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    /// The newest version of StableHLO that it reads.
    pub fn stablehlo_version(&self) -> Option<[i64; 3]> {
        self.version("stablehlo_current_version")
    }

    /// The oldest version of StableHLO that it reads.
    pub fn stablehlo_minimum_version(&self) -> Option<[i64; 3]> {
        self.version("stablehlo_minimum_version")
    }

    fn version(&self, name: &str) -> Option<[i64; 3]> {
        match self.attribute(name)? {
            OptionValue::Ints(list) => list.as_slice().try_into().ok(),
            _ => None,
        }
    }
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Plugin({:?} at {})", self.name, self.path.display())
    }
}

/// Loads the library and asks for its table.
fn table(name: &str, path: &Path) -> Result<*const PJRT_Api> {
    let fail = |what: &dyn std::fmt::Display| unusable(name, path, what);
    let file = std::fs::metadata(path).map_err(|e| fail(&format_args!("the file cannot be read: {e}")))?;
    if !file.is_file() {
        return Err(fail(&"it is not a file, and a shared library is wanted"));
    }
    // without a slash the system would look in its own folders
    let absolute = std::path::absolute(path).map_err(|e| fail(&format_args!("no absolute path: {e}")))?;
    // SAFETY: loading runs the library's own start, which is what the caller asks for.
    let library = unsafe { Library::new(&absolute) }
        .map_err(|e| fail(&format_args!("a shared library that loads is wanted, and the system says: {e}")))?;
    // SAFETY: the symbol has this type in every plugin.
    let get: Symbol<'_, GetPjrtApi> = unsafe { library.get(b"GetPjrtApi\0") }
        .map_err(|_| fail(&"it is a library without the function `GetPjrtApi`, which every PJRT plugin exports"))?;
    // SAFETY: the function takes nothing.
    let table = unsafe { get() };
    // a plugin that was started cannot be unloaded: its threads may run on
    std::mem::forget(library);
    if table.is_null() {
        return Err(fail(&"its function `GetPjrtApi` gives null, where the table of its functions is wanted"));
    }
    Ok(table)
}

/// The table, once it is one that can be read; it lives as long as the process.
fn checked(name: &str, path: &Path, table: *const PJRT_Api) -> Result<&'static PJRT_Api> {
    // SAFETY: a table starts with its size.
    let size = unsafe { table.cast::<usize>().read() };
    // SAFETY: the table says that it has so many bytes.
    let Some(api) = (unsafe { PJRT_Api::read(table) }) else {
        let want = PJRT_Api::HEAD;
        let what = format_args!("its table of functions has {size} bytes, and at least {want} are wanted");
        return Err(unusable(name, path, what));
    };
    let (major, minor) = (api.pjrt_api_version.major_version, api.pjrt_api_version.minor_version);
    if major != PJRT_API_MAJOR || minor < PJRT_API_OLDEST_MINOR {
        let what = format_args!(
            "its API has version {major}.{minor}, and a version from {PJRT_API_MAJOR}.{PJRT_API_OLDEST_MINOR} on is \
             wanted, below {}.0",
            PJRT_API_MAJOR + 1
        );
        return Err(unusable(name, path, what));
    }
    Ok(Box::leak(Box::new(api)))
}
