//! Trying a plugin in another process, since one that crashes or exits at load takes its process with it.
//!
//! A library has no program of its own to start, so the caller says which command answers for a path: it calls
//! [`answer`], whose line [`Probe::try_plugin`] reads. A plugin that loads is remembered in a file, by its path, size and
//! time of change and by our own version; one that does not is tried again the next time, as the reason may lie in the
//! environment (a driver, a library beside it).

use super::Plugin;
use crate::result::unusable;
use crate::sys::{PJRT_API_MAJOR, PJRT_API_MINOR};
use ferrax_base::{Result, error};
use std::ffi::OsString;
use std::hash::{Hash, Hasher};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What starts the line of an answer, among all that a plugin may print.
const MARK: &str = "ferrax PJRT probe: ";
/// How much of what a plugin printed is kept for messages.
const TAIL: usize = 2048;

/// What became of a plugin in another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It loads, and has this version of the API.
    Loads(i32, i32),
    /// It is no plugin that can be used, for this reason.
    Refused(String),
    /// The process ended before it answered: how, and the last that it printed.
    Ended(String),
    /// The process did not answer in this time.
    Hangs(Duration),
}

impl Verdict {
    /// An error for a plugin that does not load.
    pub fn usable(&self, name: &str, path: &Path) -> Result<()> {
        match self {
            Verdict::Loads(..) => Ok(()),
            // which names the plugin and its path already
            Verdict::Refused(why) => Err(error!(Runtime, "{why}")),
            Verdict::Ended(how) => {
                let what = format_args!("loading it ends the process, as a trial in another one shows: {how}");
                Err(unusable(name, path, what))
            }
            Verdict::Hangs(time) => {
                let what = format_args!("in a trial in another process it did not load within {time:?}");
                Err(unusable(name, path, what))
            }
        }
    }
}

/// Tries a plugin in this process and writes what came of it; for the command of a [`Probe`].
pub fn answer(name: &str, path: &Path, out: &mut impl Write) -> std::io::Result<()> {
    let line = match Plugin::load(name, path) {
        Ok(plugin) => format!("loads {}", version_text(plugin.api_version())),
        Err(error) => format!("refused {:?}", error.to_string()),
    };
    // what the plugin printed may lack the end of its line
    write!(out, "\n{MARK}{line}\n")?;
    out.flush()
}

/// How plugins are tried.
#[derive(Clone, Debug)]
pub struct Probe {
    /// A program with its arguments that calls [`answer`]; the plugin's name and path are added to them.
    pub command: Vec<OsString>,
    /// The folder where plugins that load are remembered, if anywhere.
    pub cache: Option<PathBuf>,
    /// How long an answer may take.
    pub patience: Duration,
}

impl Probe {
    /// Tries the plugin at a path, unless it is known to load. Errors where the command cannot be started.
    pub fn try_plugin(&self, name: &str, path: &Path) -> Result<Verdict> {
        let entry = self.cache.as_ref().and_then(|folder| Entry::of(folder, path));
        if let Some(known) = entry.as_ref().and_then(Entry::read) {
            return Ok(known);
        }
        let verdict = self.ask(name, path)?;
        if let (Some(entry), Verdict::Loads(major, minor)) = (&entry, &verdict) {
            // without the file the plugin is tried again, nothing more
            let _ = entry.write((*major, *minor));
        }
        Ok(verdict)
    }

    fn ask(&self, name: &str, path: &Path) -> Result<Verdict> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(error!(Value, "trying the PJRT plugin at {} takes a command, and it is empty", path.display()));
        };
        let child = Command::new(program)
            .args(arguments)
            .arg(name)
            .arg(path)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.map_err(|e| {
            let program = program.display();
            error!(Runtime, "trying the PJRT plugin at {} failed: {program:?} cannot be started: {e}", path.display())
        })?;
        let printed = collect(child.stdout.take());
        let complaints = collect(child.stderr.take());
        let Some(status) = wait(&mut child, self.patience) else { return Ok(Verdict::Hangs(self.patience)) };
        let printed = printed.text();
        match printed.lines().rev().find_map(|line| parse(line.strip_prefix(MARK)?)) {
            Some(verdict) => Ok(verdict),
            None => Ok(Verdict::Ended(how(status, &complaints.text()))),
        }
    }
}

/// How a process ended, and the last that it said.
fn how(status: ExitStatus, complaints: &str) -> String {
    let complaints = complaints.trim();
    let start = complaints.len().saturating_sub(TAIL);
    let start = (start..complaints.len()).find(|at| complaints.is_char_boundary(*at)).unwrap_or(0);
    match &complaints[start..] {
        "" => status.to_string(),
        last => format!("{status}; the last it printed: {last}"),
    }
}

/// A verdict from its line.
fn parse(line: &str) -> Option<Verdict> {
    match line.split_once(' ')? {
        ("loads", version) => parse_version(version).map(|(major, minor)| Verdict::Loads(major, minor)),
        ("refused", why) => Some(Verdict::Refused(unquoted(why)?)),
        _ => None,
    }
}

/// A string from its form in Rust.
fn unquoted(text: &str) -> Option<String> {
    let mut rest = text.strip_prefix('"')?.strip_suffix('"')?.chars();
    let mut out = String::new();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match rest.next()? {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            '0' => out.push('\0'),
            'u' => {
                let digits: String = rest.by_ref().skip(1).take_while(|c| *c != '}').collect();
                out.push(char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?);
            }
            other => out.push(other),
        }
    }
    Some(out)
}

fn version_text((major, minor): (i32, i32)) -> String {
    format!("{major}.{minor}")
}

fn parse_version(text: &str) -> Option<(i32, i32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Waits for a process, and ends it after a time.
fn wait(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if start.elapsed() < patience => std::thread::sleep(Duration::from_millis(2)),
            _ => break,
        }
    }
    // it may have ended just now, and then there is nothing to end
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// What a process prints, read by a thread, as a process with a full pipe does not go on.
struct Printed {
    so_far: Arc<Mutex<Vec<u8>>>,
    reader: std::thread::JoinHandle<()>,
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> Printed {
    let so_far = Arc::new(Mutex::new(Vec::new()));
    let shared = so_far.clone();
    let reader = std::thread::spawn(move || {
        let Some(mut pipe) = pipe else { return };
        let mut chunk = [0; 4096];
        while let Ok(n @ 1..) = pipe.read(&mut chunk) {
            shared.lock().unwrap_or_else(PoisonError::into_inner).extend(&chunk[..n]);
        }
    });
    Printed { so_far, reader }
}

impl Printed {
    /// All of it, once the process has ended; processes that it left behind may hold the pipe, and are not waited for.
    fn text(self) -> String {
        let start = Instant::now();
        while !self.reader.is_finished() && start.elapsed() < Duration::from_secs(1) {
            std::thread::sleep(Duration::from_millis(1));
        }
        String::from_utf8_lossy(&self.so_far.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

/// Where a plugin that loads is remembered.
struct Entry {
    file: PathBuf,
    /// What the file starts with: all that the verdict depends on.
    key: String,
}

impl Entry {
    /// The entry of the file at a path as it is now; `None` where there is no such file.
    fn of(folder: &Path, path: &Path) -> Option<Entry> {
        let path = path.canonicalize().ok()?;
        let file = path.metadata().ok()?;
        let changed = file.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        let mut hasher = rustc_hash::FxHasher::default();
        path.hash(&mut hasher);
        let key = format!(
            "ferrax {} with PJRT {PJRT_API_MAJOR}.{PJRT_API_MINOR}\n{}\n{} bytes, changed {}\n",
            env!("CARGO_PKG_VERSION"),
            path.as_os_str().as_encoded_bytes().escape_ascii(),
            file.len(),
            changed.as_nanos()
        );
        Some(Entry { file: folder.join(format!("pjrt-{:016x}", hasher.finish())), key })
    }

    /// What is remembered; `None` for no file, for another plugin's, and for one that is not whole.
    fn read(&self) -> Option<Verdict> {
        let text = std::fs::read_to_string(&self.file).ok()?;
        let verdict = parse(text.strip_prefix(&self.key)?.strip_suffix('\n')?)?;
        matches!(verdict, Verdict::Loads(..)).then_some(verdict)
    }

    /// Replaces the file at once, so that nobody reads half of it.
    fn write(&self, version: (i32, i32)) -> std::io::Result<()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        if let Some(folder) = self.file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let unique = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let draft = self.file.with_extension(unique);
        std::fs::write(&draft, format!("{}loads {}\n", self.key, version_text(version)))?;
        std::fs::rename(&draft, &self.file).inspect_err(|_| {
            let _ = std::fs::remove_file(&draft);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_as_they_went() {
        assert_eq!(parse("loads 0.90"), Some(Verdict::Loads(0, 90)));
        for why in ["plain", "a \"quoted\" path\nand\ta line \\ \u{1b}[1m é 'x' \0"] {
            assert_eq!(parse(&format!("refused {why:?}")), Some(Verdict::Refused(why.into())));
        }
        for line in ["", "loads", "loads x.1", "loads 1", "refused", "refused x", "other 1"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
