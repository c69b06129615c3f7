//! Our declarations of the C API against its header.
//!
//! With `PJRT_C_API_H` naming the header, a C file made of our tables is compiled: it asserts every size and offset.
//! Without it, the tables are compared with `layout.txt`, which was recorded when both agreed. To record it anew, delete
//! it and run this test with the header.

use ferrax_pjrt::sys::{FUNCTIONS, LAYOUTS, PJRT_API_MAJOR, PJRT_API_MINOR, PJRT_Api};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The header's name of a field: Rust's keywords are marked, and unions are unnamed there.
fn field<'a>(of: &str, name: &'a str) -> &'a str {
    match (of, name) {
        ("PJRT_NamedValue", "value") => "string_value",
        _ => name.trim_start_matches("r#"),
    }
}

/// Sizes and offsets, a line for each.
fn table() -> String {
    let mut text = format!("version {PJRT_API_MAJOR}.{PJRT_API_MINOR}\n");
    for layout in LAYOUTS {
        let _ = writeln!(text, "{} {}", layout.name, layout.size);
        for (name, offset) in layout.fields {
            let _ = writeln!(text, "{}.{} {offset}", layout.name, field(layout.name, name));
        }
    }
    let _ = writeln!(text, "PJRT_Api {}", size_of::<PJRT_Api>());
    for (name, offset) in FUNCTIONS {
        let _ = writeln!(text, "PJRT_Api.{name} {offset}");
    }
    text
}

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/layout.txt")
}

/// A C file that compiles only if the header has these sizes and offsets.
fn assertions(header: &str) -> String {
    let mut code = format!("#include \"{header}\"\n");
    for line in table().lines() {
        let (what, number) = line.split_once(' ').expect("a name and a number");
        let assertion = match what.split_once('.') {
            _ if what == "version" => {
                let (major, minor) = number.split_once('.').expect("two numbers");
                format!("PJRT_API_MAJOR == {major} && PJRT_API_MINOR == {minor}")
            }
            Some((of, field)) => format!("offsetof({of}, {field}) == {number}"),
            None => format!("{what}_STRUCT_SIZE == {number}"),
        };
        let _ = writeln!(code, "_Static_assert({assertion}, \"{what}\");");
    }
    code
}

#[test]
fn sizes_and_offsets_are_the_headers() {
    let Ok(header) = std::env::var("PJRT_C_API_H") else {
        let known = std::fs::read_to_string(recorded()).expect("tests/layout.txt");
        assert_eq!(table(), known, "the declarations differ from those that agreed with the header");
        return;
    };
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("layout.c");
    std::fs::write(&file, assertions(&header)).expect("a C file");
    let compiled = Command::new("gcc").args(["-std=c11", "-fsyntax-only"]).arg(&file).output().expect("gcc");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    if !recorded().exists() {
        std::fs::write(recorded(), table()).expect("tests/layout.txt");
    }
    let known = std::fs::read_to_string(recorded()).expect("tests/layout.txt");
    assert_eq!(table(), known, "tests/layout.txt is of another header: delete it and run this again");
}

#[test]
fn tables_of_other_lengths_are_read_as_far_as_they_go() {
    let whole = size_of::<PJRT_Api>();
    // a table longer than ours, every word of it an address that is not called
    let mut words = vec![0x1234_5678_usize; whole / size_of::<usize>() + 40];
    let cases = [
        (whole + 320, FUNCTIONS.len()),
        (whole, FUNCTIONS.len()),
        (whole - 8, FUNCTIONS.len() - 1),
        // half a function is none
        (whole - 3, FUNCTIONS.len() - 1),
        (PJRT_Api::HEAD + 16, 2),
        (PJRT_Api::HEAD, 0),
    ];
    for (size, functions) in cases {
        words[0] = size;
        // SAFETY: the list has more bytes than every size here.
        let api = unsafe { PJRT_Api::read(words.as_ptr().cast()) }.expect("a table");
        let there = FUNCTIONS.iter().filter(|(_, offset)| {
            // SAFETY: the offset is one of a function, which is a word.
            let word = unsafe { (&raw const api).cast::<u8>().add(*offset).cast::<usize>().read() };
            word != 0
        });
        assert_eq!(there.count(), functions, "{size}");
    }
    for size in [0, 8, PJRT_Api::HEAD - 1] {
        words[0] = size;
        // SAFETY: as above.
        assert!(unsafe { PJRT_Api::read(words.as_ptr().cast()) }.is_none(), "{size}");
    }
}
