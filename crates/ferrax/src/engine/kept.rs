//! Programs that outlive the process: XLA's, kept on disk as their plugin serializes them, and machine code of GPUs' kernels.
//!
//! A program's key is all that the compiler sees of it: its text, its options, XLA's own flags, the versions of the plugin and the
//! machines that it compiles for. What cannot be read, or what a plugin does not take back, is dropped with a warning and compiled anew.
//! Read next: `ferrax_cache::store` for the files.

use ferrax_base::fork::Lock;
use ferrax_base::{Error, Result, error, warning};
use ferrax_cache::Store;
use ferrax_cuda::driver::Shelf;
use ferrax_pjrt::safe::{Client, CompileOptions, Executable, Topology};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Where programs are kept, and which.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The folder; nothing is kept without one.
    pub folder: Option<PathBuf>,
    /// The most bytes that they may take together.
    pub most: Option<u64>,
    /// Programs that compile faster are not kept.
    pub at_least: Duration,
    /// Smaller programs are not kept.
    pub bytes: usize,
    /// Whether what goes wrong is an error rather than a warning.
    pub strict: bool,
}

static SETTINGS: Lock<Settings> =
    Lock::new(Settings { folder: None, most: None, at_least: Duration::ZERO, bytes: 0, strict: false });
/// Programs that were found, and that were looked for in vain.
static FOUND: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

/// Says where programs are kept from now on.
pub fn set(settings: Settings) {
    *SETTINGS.lock() = settings;
}

/// How many programs were found, and how many were looked for in vain.
pub fn counts() -> [usize; 2] {
    [0, 1].map(|i| FOUND[i].load(Relaxed))
}

/// Counts from zero again.
pub fn reset() {
    FOUND.iter().for_each(|n| n.store(0, Relaxed));
}

impl Settings {
    fn complain(&self, what: &str, name: &str, why: impl std::fmt::Display) -> Result<()> {
        let text = format!("the compilation cache could not {what} {name}: {why}");
        if self.strict { Err(error!(Runtime, "{text}")) } else { warning::warn(&text) }
    }
}

/// Compiles a program, unless it was before.
pub(super) fn compile(client: &Arc<Client>, name: &str, text: &str, options: &CompileOptions) -> Result<Executable> {
    if SETTINGS.lock().folder.is_none() {
        return client.compile(text, options);
    }
    let key = key(client, text, options)?;
    if let Some(bytes) = Folder.get(name, &key)? {
        match client.load(&bytes, Some(options)) {
            Ok(executable) => return Ok(executable),
            Err(error) => Folder.remove(name, &key, error)?,
        }
    }
    let start = Instant::now();
    let executable = client.compile(text, options)?;
    let took = start.elapsed();
    if took >= SETTINGS.lock().at_least {
        match executable.about().serialize() {
            Ok(bytes) => Folder.put(name, &key, &bytes, took)?,
            Err(error) => {
                let settings = SETTINGS.lock().clone();
                settings.complain("keep", &plain(name), error)?;
            }
        }
    }
    Ok(executable)
}

/// A name as part of a file's.
fn plain(name: &str) -> String {
    name.chars().take(64).map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// The folder where programs and machine code of kernels are kept, if there is one.
pub(super) struct Folder;

impl Shelf for Folder {
    fn get(&self, name: &str, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let settings = SETTINGS.lock().clone();
        let Some(folder) = &settings.folder else { return Ok(None) };
        let name = &plain(name);
        let got = Store::new(folder, settings.most).get(name, key);
        let got = got.or_else(|error| settings.complain("read", name, error).map(|()| None))?;
        FOUND[usize::from(got.is_none())].fetch_add(1, Relaxed);
        Ok(got)
    }

    fn put(&self, name: &str, key: &[u8], code: &[u8], took: Duration) -> Result<()> {
        let settings = SETTINGS.lock().clone();
        match &settings.folder {
            Some(folder) if took >= settings.at_least && code.len() >= settings.bytes => {
                let name = &plain(name);
                let put = Store::new(folder, settings.most).put(name, key, code);
                put.or_else(|error| settings.complain("write", name, error))
            }
            _ => Ok(()),
        }
    }

    fn remove(&self, name: &str, key: &[u8], why: Error) -> Result<()> {
        // it was found in vain
        FOUND[0].fetch_sub(1, Relaxed);
        FOUND[1].fetch_add(1, Relaxed);
        let settings = SETTINGS.lock().clone();
        let Some(folder) = &settings.folder else { return Ok(()) };
        let name = &plain(name);
        settings.complain("load", name, why)?;
        let removed = Store::new(folder, settings.most).remove(name, key);
        removed.or_else(|error| settings.complain("remove", name, error))
    }
}

/// All that decides what a program is compiled to.
fn key(client: &Arc<Client>, text: &str, options: &CompileOptions) -> Result<Vec<u8>> {
    let api = format!("{:?}", client.plugin().api_version());
    let machines = Topology::of(client).and_then(|t| t.serialize()).unwrap_or_default();
    let (platform, version, kind) = (client.platform_name(), client.platform_version()?, client.device_kind(0)?);
    let flags = ["XLA_FLAGS", "LIBTPU_INIT_ARGS"].map(|name| std::env::var_os(name).unwrap_or_default());
    let parts: [&[u8]; 9] = [
        api.as_bytes(),
        platform.as_bytes(),
        version.as_bytes(),
        kind.as_bytes(),
        &machines,
        flags[0].as_encoded_bytes(),
        flags[1].as_encoded_bytes(),
        &options.encoded(),
        text.as_bytes(),
    ];
    // each with its length, so that no two lists of parts look alike
    Ok(parts.iter().flat_map(|p| [&(p.len() as u64).to_le_bytes()[..], *p].concat()).collect())
}
