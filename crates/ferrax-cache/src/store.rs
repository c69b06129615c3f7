//! Bytes on disk by key, for other processes and later runs: a file an entry.
//!
//! A file is written under a name of its own and then renamed, so that nobody reads half an entry, whoever else writes.
//! Its name has a digest of the key; the whole key stands in it and is compared, and a digest over all tells whether it is as it
//! was written. When the files together pass the limit, those used the longest ago go first: reading one sets its time.
//!
//! Read next: `ferrax/src/engine/kept.rs`, which keeps XLA's programs here.

use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;
use std::{fs, process};

/// What an entry begins with; another one when its form changes.
const FORM: &[u8] = b"ferrax 1";
/// What the names of entries end with, and of files that become some.
const ENTRY: &str = "-cache";
const UNFINISHED: &str = "-unfinished";

/// A folder of entries.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    most: Option<u64>,
}

impl Store {
    /// The entries of a folder, which need not be there yet, and the most bytes that they may take.
    pub fn new(folder: impl Into<PathBuf>, most: Option<u64>) -> Store {
        Store { folder: folder.into(), most }
    }

    fn path(&self, name: &str, key: &[u8]) -> PathBuf {
        self.folder.join(format!("{name}-{:016x}{ENTRY}", digest(key)))
    }

    /// What was put there for a key. An entry that is not whole goes, with an error of the kind `InvalidData`.
    pub fn get(&self, name: &str, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let path = self.path(name, key);
        let entry = match fs::read(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let Some((of, value)) = decode(&entry) else {
            self.remove(name, key)?;
            return Err(Error::new(ErrorKind::InvalidData, format!("{} is damaged", path.display())));
        };
        if of != key {
            return Ok(None);
        }
        // a folder that cannot be written to serves all the same
        let _ = fs::File::options().append(true).open(&path).and_then(|f| f.set_modified(SystemTime::now()));
        Ok(Some(value.to_vec()))
    }

    /// Puts an entry there, and takes others away when all take too many bytes.
    pub fn put(&self, name: &str, key: &[u8], value: &[u8]) -> Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let entry = encode(key, value);
        if let Some(most) = self.most.filter(|most| entry.len() as u64 > *most) {
            let text = format!("an entry of {} bytes is larger than all may be: {most} bytes", entry.len());
            return Err(Error::other(text));
        }
        fs::create_dir_all(&self.folder)?;
        let path = self.path(name, key);
        let unfinished = path.with_extension(format!("{}.{}{UNFINISHED}", process::id(), NEXT.fetch_add(1, Relaxed)));
        let written = fs::write(&unfinished, entry).and_then(|()| fs::rename(&unfinished, &path));
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written.and_then(|()| self.most.map_or(Ok(()), |most| self.shrink(most, &path)))
    }

    /// Takes an entry away, if it is there.
    pub fn remove(&self, name: &str, key: &[u8]) -> Result<()> {
        gone(fs::remove_file(self.path(name, key)))
    }

    /// Takes entries away, those used the longest ago first and `newest` never, until the rest fits.
    fn shrink(&self, most: u64, newest: &Path) -> Result<()> {
        let (mut all, mut total) = (Vec::new(), 0);
        for file in fs::read_dir(&self.folder)? {
            let file = file?;
            let name = file.file_name();
            let ours = [ENTRY, UNFINISHED].iter().any(|end| name.to_string_lossy().ends_with(end));
            // others may take it away meanwhile
            if let (true, Ok(about)) = (ours, file.metadata()) {
                total += about.len();
                all.push((about.modified()?, about.len(), file.path()));
            }
        }
        all.sort();
        for (_, bytes, path) in all.into_iter().filter(|(.., path)| path != newest) {
            if total <= most {
                break;
            }
            gone(fs::remove_file(path))?;
            total -= bytes;
        }
        Ok(())
    }
}

/// A removal that somebody else may have made.
fn gone(removed: Result<()>) -> Result<()> {
    removed.or_else(|e| if e.kind() == ErrorKind::NotFound { Ok(()) } else { Err(e) })
}

/// FNV-1a: the same in every process; for names and accidents, not for enemies.
pub fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

fn encode(key: &[u8], value: &[u8]) -> Vec<u8> {
    let body = [&(key.len() as u64).to_le_bytes(), key, value].concat();
    [FORM, &digest(&body).to_le_bytes(), &body].concat()
}

/// Key and value of an entry that is whole.
fn decode(entry: &[u8]) -> Option<(&[u8], &[u8])> {
    let (sum, body) = entry.strip_prefix(FORM)?.split_first_chunk()?;
    let (bytes, rest) = body.split_first_chunk()?;
    (u64::from_le_bytes(*sum) == digest(body)).then(|| rest.split_at_checked(u64::from_le_bytes(*bytes) as usize))?
}
