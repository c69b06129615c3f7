//! Bytes on disk: found again, never mistaken, never half, and bounded.

use ferrax_cache::Store;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{env, fs, process};

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        Folder(env::temp_dir().join(format!("ferrax-store-{}-{name}", process::id())))
    }

    fn files(&self) -> Vec<PathBuf> {
        fs::read_dir(&self.0).map(|all| all.map(|f| f.unwrap().path()).collect()).unwrap_or_default()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Sets the time of a file's last use.
fn used(path: &Path, hours_ago: u64) {
    let then = SystemTime::now() - Duration::from_secs(3600 * hours_ago);
    fs::File::options().append(true).open(path).unwrap().set_modified(then).unwrap();
}

#[test]
fn what_was_put_is_found_by_name_and_key() {
    let folder = Folder::new("found");
    let store = Store::new(&folder.0, None);
    assert_eq!(store.get("f", b"key").unwrap(), None);
    store.put("f", b"key", b"value").unwrap();
    store.put("f", b"", b"").unwrap();
    let again = Store::new(&folder.0, None);
    assert_eq!(again.get("f", b"key").unwrap().unwrap(), b"value");
    assert_eq!(again.get("f", b"").unwrap().unwrap(), b"");
    assert_eq!((again.get("g", b"key").unwrap(), again.get("f", b"other").unwrap()), (None, None));
    store.put("f", b"key", b"newer").unwrap();
    assert_eq!(again.get("f", b"key").unwrap().unwrap(), b"newer");
    assert_eq!(folder.files().len(), 2);
    again.remove("f", b"key").unwrap();
    again.remove("f", b"key").unwrap();
    assert_eq!(store.get("f", b"key").unwrap(), None);
}

#[test]
fn an_entry_of_another_key_is_no_answer() {
    let folder = Folder::new("mistaken");
    let store = Store::new(&folder.0, None);
    store.put("f", b"one", b"1").unwrap();
    let one = folder.files().remove(0);
    store.put("f", b"two", b"2").unwrap();
    let two = folder.files().into_iter().find(|p| *p != one).unwrap();
    // as if both digests were the same
    fs::copy(&one, &two).unwrap();
    assert_eq!(store.get("f", b"two").unwrap(), None);
}

#[test]
fn damaged_entries_go_with_an_error() {
    let folder = Folder::new("damaged");
    let store = Store::new(&folder.0, None);
    store.put("f", b"key", &[7; 100]).unwrap();
    let path = folder.files().remove(0);
    let whole = fs::read(&path).unwrap();
    let cut = (0..whole.len()).map(|n| whole[..n].to_vec());
    let changed = (0..whole.len()).map(|i| {
        let mut bytes = whole.clone();
        bytes[i] ^= 1;
        bytes
    });
    for bytes in cut.chain(changed) {
        fs::write(&path, bytes).unwrap();
        assert_eq!(store.get("f", b"key").unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!((store.get("f", b"key").unwrap(), folder.files().len()), (None, 0));
    }
}

#[test]
fn the_entry_used_the_longest_ago_goes_first() {
    let folder = Folder::new("bounded");
    let store = Store::new(&folder.0, Some(400));
    let mut paths = Vec::new();
    for (i, key) in [b"a", b"b", b"c"].into_iter().enumerate() {
        store.put("f", key, &[0; 100]).unwrap();
        paths.push(folder.files().into_iter().find(|p| !paths.contains(p)).unwrap());
        used(&paths[i], 9 - i as u64);
    }
    // reading is a use
    assert!(store.get("f", b"a").unwrap().is_some());
    store.put("f", b"d", &[0; 100]).unwrap();
    let there = |key: &[u8]| store.get("f", key).unwrap().is_some();
    assert_eq!([there(b"a"), there(b"b"), there(b"c"), there(b"d")], [true, false, true, true]);
    let large = store.put("f", b"e", &[0; 400]).unwrap_err();
    assert!(large.to_string().contains("larger than all may be"), "{large}");
    assert_eq!(folder.files().len(), 3);
}

#[test]
fn writers_and_readers_meet_whole_entries() {
    let folder = Folder::new("shared");
    std::thread::scope(|s| {
        for t in 0..4u8 {
            let store = Store::new(&folder.0, Some(20_000));
            s.spawn(move || {
                for i in 0..100u8 {
                    let key = [i % 10];
                    store.put("f", &key, &vec![key[0]; 1000 + usize::from(t)]).unwrap();
                    let found = store.get("f", &[(i + t) % 10]).unwrap();
                    assert!(found.is_none_or(|v| v.iter().all(|b| *b == (i + t) % 10)));
                }
            });
        }
    });
    assert!(folder.files().iter().all(|p| p.to_str().unwrap().ends_with("-cache")));
}
