//! Holds the crate table of `docs/architecture.md`: which crate may use which, over `cargo metadata`.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const BASE: &str = "ferrax-base";
const TREE: &str = "ferrax-tree";
const CACHE: &str = "ferrax-cache";
const LOOPS: &str = "ferrax-loops";
const LINALG: &str = "ferrax-linalg";
const CPU: &str = "ferrax-cpu";
const PJRT: &str = "ferrax-pjrt";
const CUDA: &str = "ferrax-cuda";
const FFI: &str = "ferrax-ffi";
const IR: &str = "ferrax-ir";
const TRANSFORM: &str = "ferrax-transform";
const OPS: &str = "ferrax-ops";
const FERRAX: &str = "ferrax";
/// The engine for tests, in `tests/engine`; the extension has it with the feature `test-engine` alone.
const TEST_ENGINE: &str = "ferrax-interpreter";

/// Crate → the workspace crates it may use.
const ALLOWED: &[(&str, &[&str])] = &[
    (BASE, &[]),
    (TREE, &[BASE]),
    (CACHE, &[BASE]),
    (LOOPS, &[BASE]),
    (LINALG, &[]),
    (CPU, &[BASE, LOOPS, LINALG]),
    (PJRT, &[BASE, LOOPS]),
    (CUDA, &[BASE, CACHE, LOOPS]),
    (FFI, &[BASE, LOOPS]),
    (IR, &[BASE, LOOPS]),
    (TRANSFORM, &[BASE, CACHE, LOOPS, IR]),
    (OPS, &[BASE, LOOPS, FFI, IR, TRANSFORM]),
    (FERRAX, &[BASE, TREE, CACHE, LOOPS, CPU, PJRT, CUDA, FFI, IR, TRANSFORM, OPS]),
    (TEST_ENGINE, &[BASE, LOOPS, CPU, FERRAX]),
    ("ferrax-python", &[BASE, TREE, CACHE, LOOPS, CPU, FFI, IR, TRANSFORM, OPS, FERRAX, TEST_ENGINE]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn packages() -> Vec<Value> {
    let out = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo metadata runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let v: Value = serde_json::from_slice(&out.stdout).expect("cargo metadata prints JSON");
    v["packages"].as_array().expect("packages").clone()
}

fn text<'a>(v: &'a Value, key: &str) -> &'a str {
    v[key].as_str().unwrap_or_default()
}

/// The dependencies of a package, each with whether tests alone use it.
fn dependencies(package: &Value) -> Vec<(String, bool)> {
    let deps = package["dependencies"].as_array().expect("dependencies");
    deps.iter().map(|d| (text(d, "name").to_owned(), text(d, "kind") == "dev")).collect()
}

#[test]
fn crates_use_only_what_the_table_allows() {
    let mut wrong = Vec::new();
    for package in packages() {
        let name = text(&package, "name");
        let Some((_, allowed)) = ALLOWED.iter().find(|(n, _)| *n == name) else {
            wrong.push(format!("{name} is not in the table"));
            continue;
        };
        for (dep, dev) in dependencies(&package) {
            if !dev && dep.starts_with("ferrax") && !allowed.contains(&dep.as_str()) {
                wrong.push(format!("{name} may not use {dep}"));
            }
            if dep.starts_with("pyo3") && name != "ferrax-python" {
                wrong.push(format!("{name} may not use {dep}: Python stays in ferrax-python"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_outside_dependency_is_explained() {
    let page = std::fs::read_to_string(root().join("docs/dependencies.md")).expect("docs/dependencies.md");
    let mut missing = Vec::new();
    for package in packages() {
        for (dep, _) in dependencies(&package) {
            if !dep.starts_with("ferrax") && !page.contains(&format!("| `{dep}` |")) {
                missing.push(format!("{dep}, used by {}", text(&package, "name")));
            }
        }
    }
    assert!(missing.is_empty(), "no line in docs/dependencies.md for: {}", missing.join("; "));
}

#[test]
fn versions_are_written_once() {
    for package in packages() {
        let manifest = std::fs::read_to_string(text(&package, "manifest_path")).expect("manifest");
        for line in manifest.lines() {
            assert!(!line.contains("version = \""), "{}: {line}: put it in the workspace", text(&package, "name"));
        }
    }
}

/// The Rust files of a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Packages whose unit tests run in `make sanitize`, not in `make test`: each build of them compiles the library once more.
const SANITIZED: [&str; 1] = ["ferrax-cpu"];

/// Libraries that are not compiled for tests, or whose examples are not, have none: they would never run.
#[test]
fn no_test_is_left_out() {
    let mut lost = Vec::new();
    for package in packages() {
        let targets = package["targets"].as_array().expect("targets");
        let is_library =
            |t: &&Value| t["kind"].as_array().is_some_and(|k| k.iter().any(|k| k == "lib" || k == "cdylib"));
        let Some(library) = targets.iter().find(is_library) else { continue };
        let folder = Path::new(text(library, "src_path")).parent().expect("a folder").to_owned();
        let mut files = Vec::new();
        sources(&folder, &mut files);
        for file in files {
            let code = std::fs::read_to_string(&file).expect("a source file");
            let is_example = |line: &str| matches!(line.trim_start(), "/// ```" | "//! ```");
            if library["test"] == false && code.contains("#[test]") && !SANITIZED.contains(&text(&package, "name"))
                || library["doctest"] == false && code.lines().any(is_example)
            {
                lost.push(file.display().to_string());
            }
        }
    }
    assert!(lost.is_empty(), "tests that `cargo test` passes over: {}", lost.join(", "));
}
