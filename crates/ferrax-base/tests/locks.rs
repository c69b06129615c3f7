//! What threads share for longer than a call lies behind `fork::Lock`, so that the child of a fork finds it open. The
//! Python crate is left out: its locks are taken under the interpreter's, which the thread that forks holds.

use std::fs;
use std::path::{Path, PathBuf};

/// Locks of another kind, each with why a fork may find it held.
const OTHERS: [(&str, &str, &str); 5] = [
    ("ferrax-base/src/fork.rs", "REGISTRY", "forks take it themselves"),
    ("ferrax/src/engine/cuda.rs", "STARTING", "held while NVIDIA's driver starts, which does not outlive a fork"),
    ("ferrax/src/engine/cut.rs", "RUNS", "held for a count, and of plugins' runs, which do not outlive a fork"),
    ("ferrax/src/engine/xla.rs", "ALL", "plugins have threads of their own, and do not outlive a fork"),
    ("ferrax-pjrt/src/safe/plugin.rs", "LOADED", "as above"),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        match entry.is_dir() {
            true => sources(&entry, found),
            false if entry.extension().is_some_and(|e| e == "rs") => found.push(entry),
            false => {}
        }
    }
}

#[test]
fn statics_are_behind_locks_that_forks_open() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for entry in fs::read_dir(crates).unwrap().map(|e| e.unwrap().path()) {
        if !entry.ends_with("ferrax-python") {
            sources(&entry.join("src"), &mut files);
        }
    }
    let (mut seen, mut wrong) = (0, Vec::new());
    for file in files {
        let name = file.strip_prefix(crates).unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&file).unwrap();
        // tests come last in a file
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
        for line in text.lines().map(str::trim_start) {
            let item = line.strip_prefix("pub ").unwrap_or(line);
            let Some((variable, ty)) = item.strip_prefix("static ").and_then(|i| i.split_once(": ")) else { continue };
            let ty = ty.split(" = ").next().unwrap();
            if !["Mutex<", "RwLock<"].iter().any(|lock| ty.contains(lock)) {
                continue;
            }
            seen += 1;
            if !OTHERS.iter().any(|(at, other, _)| name == *at && variable == *other) {
                wrong.push(format!("{name}: {variable}"));
            }
        }
    }
    assert_eq!(wrong, [""; 0], "use ferrax_base::fork::Lock, or say here why not");
    assert_eq!(seen, OTHERS.len(), "one of the others is gone");
}
