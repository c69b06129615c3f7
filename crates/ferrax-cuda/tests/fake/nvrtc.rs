//! NVRTC's calls: a cubin is the list of a source's kernels, with the library that computes them if they are to.

use crate::{Thing, call, host, state, text};
use std::ffi::{c_char, c_int, c_void};

/// What a cubin begins with; its length and text follow.
pub const CUBIN: &[u8; 8] = b"CUBIN 1\n";
const ARCHS: [c_int; 8] = [50, 70, 75, 80, 86, 90, 100, 120];

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) -> c_int {
    let version = state().setting("nvrtc", 12040) as c_int;
    unsafe {
        *major = version / 1000;
        *minor = version % 1000 / 10;
    }
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn nvrtcGetErrorString(code: c_int) -> *const c_char {
    let text = match code {
        1 => c"NVRTC_ERROR_OUT_OF_MEMORY",
        6 => c"NVRTC_ERROR_COMPILATION",
        11 => c"NVRTC_ERROR_INTERNAL_ERROR",
        _ => return std::ptr::null(),
    };
    text.as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetNumSupportedArchs(count: *mut c_int) -> c_int {
    unsafe { *count = ARCHS.len() as c_int };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetSupportedArchs(archs: *mut c_int) -> c_int {
    unsafe { archs.copy_from_nonoverlapping(ARCHS.as_ptr(), ARCHS.len()) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcCreateProgram(
    program: *mut u64,
    source: *const c_char,
    _name: *const c_char,
    _count: c_int,
    _headers: *const c_void,
    _names: *const c_void,
) -> c_int {
    let (mut held, code) = call("nvrtcCreateProgram");
    if code == 0 {
        let text = unsafe { text(source) }.to_owned();
        unsafe { *program = held.add(Thing::Source { text, code: Vec::new(), log: String::new() }) };
    }
    code
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcDestroyProgram(program: *mut u64) -> c_int {
    let (mut held, code) = call("nvrtcDestroyProgram");
    if held.things.remove(unsafe { &*program }).is_none() {
        held.violate("a program was destroyed twice".into());
    }
    code
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcCompileProgram(program: u64, count: c_int, options: *const *const c_char) -> c_int {
    let (mut held, code) = call("nvrtcCompileProgram");
    if code != 0 {
        return code;
    }
    held.compilations += 1;
    let options = unsafe { std::slice::from_raw_parts(options, count as usize) };
    let options: Vec<&str> = options.iter().map(|o| unsafe { text(*o) }).collect();
    let Some(arch) = options.iter().find_map(|o| o.strip_prefix("--gpu-architecture=")) else { return 5 };
    let Some(Thing::Source { text, code, log }) = held.things.get_mut(&program) else { return 4 };
    if let Some(line) = text.lines().find(|line| line.contains("#error")) {
        *log = format!("default_program(1): error: {line}\n");
        return 6;
    }
    let (source, arch) = (text.clone(), arch.to_owned());
    let Some(folder) = host::folder() else {
        *code = image(&arch, &source, None);
        return 0;
    };
    // others may call meanwhile
    drop(held);
    let made = host::compile(&folder, &source);
    let mut held = state();
    let Some(Thing::Source { code, log, .. }) = held.things.get_mut(&program) else { return 4 };
    match made {
        Ok(library) => {
            *code = image(&arch, &source, library.to_str());
            0
        }
        Err(said) => {
            *log = said;
            6
        }
    }
}

/// The code of a source: a cubin, or PTX with a zero behind it.
fn image(arch: &str, source: &str, library: Option<&str>) -> Vec<u8> {
    let mut lines = format!("{arch}\n");
    for kernel in source.split("__global__").skip(1) {
        let kernel = kernel.split_once("void").expect("kernels give nothing").1;
        let (name, rest) = kernel.split_once('(').expect("kernels have parameters");
        let params = rest.split_once(')').expect("lists of parameters end").0.trim();
        let count = if params.is_empty() { 0 } else { params.split(',').count() };
        let name = name.trim();
        lines += &format!("{name} {count} {}\n", host::waits(source, name));
    }
    lines.extend(library.map(|path| format!("library {path}\n")));
    if arch.starts_with("compute") {
        return format!("//PTX {lines}\0").into_bytes();
    }
    [&CUBIN[..], &(lines.len() as u64).to_le_bytes(), lines.as_bytes()].concat()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetProgramLogSize(program: u64, bytes: *mut usize) -> c_int {
    let (held, code) = call("nvrtcGetProgramLogSize");
    let Some(Thing::Source { log, .. }) = held.things.get(&program) else { return 4 };
    unsafe { *bytes = log.len() + 1 };
    code
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetProgramLog(program: u64, to: *mut u8) -> c_int {
    let (held, code) = call("nvrtcGetProgramLog");
    let Some(Thing::Source { log, .. }) = held.things.get(&program) else { return 4 };
    unsafe {
        to.copy_from_nonoverlapping(log.as_ptr(), log.len());
        *to.add(log.len()) = 0;
    }
    code
}

fn size(name: &str, program: u64, bytes: *mut usize) -> c_int {
    let (held, code) = call(name);
    let Some(Thing::Source { code: image, .. }) = held.things.get(&program) else { return 4 };
    unsafe { *bytes = image.len() };
    code
}

fn copy(name: &str, program: u64, to: *mut u8) -> c_int {
    let (held, code) = call(name);
    let Some(Thing::Source { code: image, .. }) = held.things.get(&program) else { return 4 };
    unsafe { to.copy_from_nonoverlapping(image.as_ptr(), image.len()) };
    code
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetCUBINSize(program: u64, bytes: *mut usize) -> c_int {
    size("nvrtcGetCUBINSize", program, bytes)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetCUBIN(program: u64, to: *mut u8) -> c_int {
    copy("nvrtcGetCUBIN", program, to)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetPTXSize(program: u64, bytes: *mut usize) -> c_int {
    size("nvrtcGetPTXSize", program, bytes)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetPTX(program: u64, to: *mut u8) -> c_int {
    copy("nvrtcGetPTX", program, to)
}
