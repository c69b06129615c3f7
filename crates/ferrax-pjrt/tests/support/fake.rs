//! Fake plugins: `tests/fake/plugin.c`, compiled in some variant, loaded, and told what to do.
#![allow(dead_code, reason = "every test binary uses a part")]

use ferrax_pjrt::safe::Plugin;
use ferrax_pjrt::sys::{FUNCTIONS, LAYOUTS, PJRT_Api};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// What the fake plugin counts, by its number there.
pub const KINDS: [&str; 8] =
    ["Error", "Event", "Client", "LoadedExecutable", "Executable", "Buffer", "Topology", "bytes"];

/// Our tables as a C header.
fn layout(code: &str) -> String {
    let mut text = format!("#define TABLE_SIZE {}\n", size_of::<PJRT_Api>());
    let version = std::mem::offset_of!(PJRT_Api, pjrt_api_version);
    let major = LAYOUTS.iter().find(|l| l.name == "PJRT_Api_Version").expect("a version").fields[1].1;
    let _ = writeln!(text, "#define VERSION_AT {}", version + major);
    for layout in LAYOUTS {
        let _ =
            writeln!(text, "#define SIZE_{} {}\n#define AT_{}_struct_size 0", layout.name, layout.size, layout.name);
        for (field, offset) in layout.fields {
            let _ = writeln!(text, "#define AT_{}_{} {offset}", layout.name, field.trim_start_matches("r#"));
        }
    }
    let (mut called, mut uncalled) = (String::new(), String::new());
    for (name, offset) in FUNCTIONS {
        let _ = writeln!(text, "#define AT_PJRT_Api_{name} {offset}");
        let acts = [format!("({name})"), format!("({name},"), format!("act_{name}(")];
        let acts = acts.iter().any(|act| code.contains(act));
        let written =
            if acts { write!(called, " X({name}, SIZE_{name}_Args)") } else { write!(uncalled, " X({name})") };
        written.expect("text");
    }
    let _ = writeln!(text, "#define CALLED(X){called}\n#define UNCALLED(X){uncalled}");
    text
}

/// Compiles a variant; each name is a library of its own, with counts of its own.
pub fn build(name: &str, defines: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(concat!("fake-", env!("CARGO_CRATE_NAME"))).join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    let code = include_str!("../fake/plugin.c");
    std::fs::write(folder.join("layout.h"), layout(code)).expect("a header");
    std::fs::write(folder.join("plugin.c"), code).expect("a C file");
    let library = folder.join("plugin.so");
    let compiled = Command::new("gcc")
        .args(["-shared", "-fPIC", "-O0", "-w", "-o"])
        .arg(&library)
        .arg(folder.join("plugin.c"))
        .args(defines.iter().map(|d| format!("-D{d}")))
        .output()
        .expect("gcc");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    library
}

/// A loaded fake plugin.
pub struct Fake {
    /// As ferrax has it.
    pub plugin: Arc<Plugin>,
    library: Library,
}

impl Fake {
    /// Compiles and loads a variant.
    pub fn new(name: &str, defines: &[&str]) -> Fake {
        let path = build(name, defines);
        let plugin = Plugin::load(name, &path).expect("a plugin that loads");
        // SAFETY: it is loaded already.
        Fake { plugin, library: unsafe { Library::new(&path).expect("a library") } }
    }

    /// Makes a call fail, after some of the same name.
    pub fn fail(&self, function: &str, after: usize, code: c_int, message: &str) {
        type Fail = unsafe extern "C" fn(*const c_char, c_int, c_int, *const c_char);
        let (function, message) = (CString::new(function).unwrap(), CString::new(message).unwrap());
        // SAFETY: the function of the C file has this type, here and below.
        unsafe {
            let fail = self.library.get::<Fail>(b"fake_fail").unwrap();
            fail(function.as_ptr(), after as c_int, code, message.as_ptr());
        }
    }

    /// Lets every call succeed.
    pub fn mend(&self) {
        self.fail("", 0, 0, "");
        self.set("fake_poison", 0);
        self.set("fake_donate", 0);
        self.set("fake_empty_handed", 0);
    }

    /// Sets one of its switches.
    pub fn set(&self, switch: &str, value: c_int) {
        // SAFETY: as above.
        unsafe { self.library.get::<unsafe extern "C" fn(c_int)>(switch.as_bytes()).unwrap()(value) }
    }

    /// How many objects of each kind are alive.
    pub fn alive(&self) -> Vec<(&'static str, i32)> {
        let count = |kind: usize| {
            // SAFETY: as above.
            unsafe { self.library.get::<unsafe extern "C" fn(c_int) -> c_int>(b"fake_count").unwrap()(kind as c_int) }
        };
        let all = KINDS.iter().enumerate().map(|(kind, name)| (*name, count(kind)));
        all.filter(|(_, count)| *count != 0).collect()
    }

    /// How often a handle was used after its end.
    pub fn broken(&self) -> i32 {
        // SAFETY: as above.
        unsafe { self.library.get::<unsafe extern "C" fn() -> c_int>(b"fake_broken").unwrap()() }
    }

    /// The calls since the last time.
    pub fn calls(&self) -> Vec<String> {
        // SAFETY: as above; the text is copied before it changes.
        unsafe {
            let text = self.library.get::<unsafe extern "C" fn() -> *const c_char>(b"fake_record").unwrap()();
            let calls = CStr::from_ptr(text).to_str().unwrap().lines().map(str::to_owned).collect();
            self.library.get::<unsafe extern "C" fn()>(b"fake_forget").unwrap()();
            calls
        }
    }
}
