//! The engine's rooms stand one on the other: each uses only those before it, and `plan` and `run` never meet.
//!
//! Sources are read as text: paths that begin with `crate` and `super`, without comments and modules of tests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// From the ground up.
const ROOMS: [&str; 10] =
    ["simd", "math", "pool", "elementwise", "library", "machine", "fused", "program", "plan", "run"];
/// What stands beside the rooms: the trial of an instruction set, on top of all, and what tests share.
const BESIDE: [&str; 3] = ["self_test", "cases", "sanitized"];
/// The one door to the top: an instruction set is tried before it is used.
const DOORS: [(&str, &str); 1] = [("simd/isa.rs", "self_test")];

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// A file's code: no comments, nothing from its module of tests on.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
    text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// The first names after `prefix`, those of a group in braces too.
fn names_after(code: &str, prefix: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices(prefix) {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
            continue;
        }
        let rest = &code[at + prefix.len()..];
        let name = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
        let Some(group) = rest.strip_prefix('{') else {
            names.insert(name(rest));
            continue;
        };
        let (mut depth, mut first) = (0, true);
        for (k, c) in group.char_indices() {
            if first && !c.is_whitespace() {
                names.insert(name(&group[k..]));
                first = false;
            }
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => first = true,
                _ => {}
            }
        }
    }
    names.remove("");
    names
}

/// The modules at the root that a file uses.
fn uses(path: &Path) -> BTreeSet<String> {
    let inside = path.strip_prefix(sources()).unwrap();
    let code = code(&std::fs::read_to_string(path).unwrap());
    let mut depth = inside.components().count();
    if inside.file_name().is_some_and(|name| name == "mod.rs") {
        depth -= 1;
    }
    let mut found = names_after(&code, "crate::");
    // In a module inside a file `super` is the file.
    let is_room = |name: &String| ROOMS.contains(&&**name) || BESIDE.contains(&&**name);
    found.extend(names_after(&code, &"super::".repeat(depth)).into_iter().filter(is_room));
    found
}

fn floor(room: &str) -> Option<usize> {
    ROOMS.iter().position(|r| *r == room)
}

#[test]
fn rooms_use_only_those_before_them() {
    let (mut all, mut faults) = (Vec::new(), Vec::new());
    files(&sources(), &mut all);
    let mut edges = 0;
    for path in &all {
        let inside = path.strip_prefix(sources()).unwrap().to_string_lossy().replace('\\', "/");
        let Some(own) = inside.split_once('/').map(|(room, _)| room) else { continue };
        let Some(at) = floor(own) else {
            faults.push(format!("{inside} is in no room"));
            continue;
        };
        for used in uses(path) {
            edges += 1;
            let fault = match floor(&used) {
                Some(other) if other > at => "stands above it",
                Some(other) if (ROOMS[other], own) == ("plan", "run") => "is for the driver",
                None if BESIDE.contains(&used.as_str()) && !DOORS.contains(&(&*inside, &*used)) && used != "cases" => {
                    "stands on top"
                }
                None if !BESIDE.contains(&used.as_str()) => "is no room",
                _ => continue,
            };
            faults.push(format!("{inside} uses `{used}`, which {fault}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(all.len() > 100 && edges > 150, "{} files, {edges} edges", all.len());
}

#[test]
fn the_root_holds_rooms_and_what_stands_beside_them() {
    let code = code(&std::fs::read_to_string(sources().join("lib.rs")).unwrap());
    let declared = code.lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod "));
    let declared: BTreeSet<&str> = declared.map(|name| name.trim_end_matches([';', '{', ' '])).collect();
    assert_eq!(declared, ROOMS.into_iter().chain(BESIDE).collect());
}

#[test]
fn paths_are_found() {
    let code = code(
        "use crate::a::{b, c};\nuse crate::{d::{e, f}, g};\n// crate::h\nfn x() { $crate::i!(); my_crate::j(); super::super::k() }",
    );
    let wanted = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    assert_eq!(names_after(&code, "crate::"), wanted(&["a", "d", "g", "i"]));
    assert_eq!(names_after(&code, "super::super::"), wanted(&["k"]));
}
