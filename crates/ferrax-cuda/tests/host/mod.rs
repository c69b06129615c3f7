//! Programs on the host: their source as C++, compiled by the host's compiler, their steps one by one.
//!
//! What the driver does on a device is done here with plain memory. Memory that nothing wrote yet is full of a pattern, and
//! what a program may not write is compared with what it was.

use super::Array;
use ferrax_base::Buffer;
use ferrax_cuda::plan::walk;
use ferrax_cuda::program::{Argument, Launch, Place, Program, Span, Step};
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes around the temporary memory that nothing may write.
const GUARD: usize = 4096;
/// What memory holds before it is written.
const UNWRITTEN: u8 = 0xa5;

type Kernel = unsafe extern "C" fn();
type Start = unsafe extern "C" fn(Kernel, *const u32, *const u64, u64, i32);

/// The kernels of some programs. Fibers and shared memory are global to a library.
pub struct Host {
    library: Mutex<libloading::Library>,
    programs: Vec<Program>,
    /// Kernels whose threads wait for each other.
    waiting: HashMap<String, bool>,
}

/// A kernel's name among those of several programs.
fn among(program: usize, kernel: &str) -> String {
    kernel.replacen("fx_k", &format!("fx_p{program}k"), 1)
}

/// Writes a source into the folder of `FERRAX_CUDA_SOURCES`, for a compiler of NVIDIA's.
fn keep(source: &str) {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    if let (Ok(folder), false) = (std::env::var("FERRAX_CUDA_SOURCES"), source.is_empty()) {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let file = format!("{folder}/{}-{number}.cu", std::process::id());
        std::fs::write(&file, source).unwrap_or_else(|e| panic!("{file}: {e}"));
    }
}

impl Host {
    /// Compiles programs in one call of the compiler.
    pub fn build(programs: Vec<Program>) -> Host {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let mut text = include_str!("cuda.h").to_owned();
        let mut waiting = HashMap::new();
        for (i, program) in programs.iter().enumerate() {
            let source = program.source();
            assert!(!source.contains("#include"), "sources need no include file");
            keep(&source);
            let source = source.replace("fx_k", &format!("fx_p{i}k"));
            text.push_str(&format!("\nnamespace fx_program_{i} {{\n{source}\n}}\n"));
            walk(&program.steps, &mut |step| {
                if let Step::Launch(launch) = step {
                    let name = among(i, &launch.kernel);
                    let begin = source.find(&format!("void {name}(")).expect("a kernel of the source");
                    let end = source[begin..].find("\n}\n").map_or(source.len(), |at| begin + at);
                    let waits = ["__syncthreads", "__syncwarp", "fx_shuffle", "__ballot", "fx_matrices", "fx_multiply"];
                    waiting.insert(name, waits.iter().any(|w| source[begin..end].contains(w)));
                }
            });
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let stem = format!("{}/kernels-{}-{number}", env!("CARGO_TARGET_TMPDIR"), std::process::id());
        let (from, to) = (format!("{stem}.cc"), format!("{stem}.so"));
        std::fs::write(&from, &text).expect("the source on disk");
        let flags = ["-x", "c++", "-std=c++17", "-O1", "-w", "-fPIC", "-shared", "-ffp-contract=off"];
        let more = ["-fno-strict-aliasing", "-fno-exceptions", "-U_FORTIFY_SOURCE", "-o", &to, &from, "-lm"];
        let made = Command::new("cc").args(flags).args(more).output();
        let made = made.expect("these tests need a C++ compiler by the name of cc");
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "{from}:\n{}", said.lines().take(30).collect::<Vec<_>>().join("\n"));
        // SAFETY: the library is ours, and has no initialisers.
        let library = unsafe { libloading::Library::new(Path::new(&to)) }.expect("the library that was just made");
        let _ = std::fs::remove_file(&from);
        let _ = std::fs::remove_file(&to);
        Host { library: Mutex::new(library), programs, waiting }
    }

    /// The results of a program; `seed` decides the order of threads and how many blocks there are.
    pub fn run(&self, program: usize, args: &[&Array], seed: u64) -> Vec<Array> {
        let library = self.library.lock().expect("no test failed inside a launch");
        let p = &self.programs[program];
        let params: Vec<Memory> = args.iter().map(|a| Memory::of(a.buffer().bytes())).collect();
        for (a, ty) in args.iter().zip(&p.params) {
            assert_eq!(a.ty, *ty);
        }
        let results = p.results.iter().map(|r| Memory::filled(r.ty.bytes())).collect();
        let constants = p.constants.iter().map(|c| Memory::of(c)).collect();
        let mut run = Run {
            host: self,
            library: &library,
            program,
            memory: Memories { params, results, constants, arena: Memory::filled(p.arena) },
            seed,
        };
        run.steps(&p.steps);
        let Memories { params, results, constants, arena } = run.memory;
        assert!(arena.is_guarded(), "something was written beside the temporary memory");
        for (i, (a, memory)) in args.iter().zip(&params).enumerate() {
            assert!(memory.is_guarded(), "something was written beside parameter {i}");
            if !p.results.iter().any(|r| r.takes == Some(i)) {
                assert_eq!(memory.bytes(), a.buffer().bytes(), "parameter {i} was written");
            }
        }
        for (c, memory) in p.constants.iter().zip(&constants) {
            assert!(memory.is_guarded() && memory.bytes() == &**c, "a constant was written");
        }
        let of = |(k, r): (usize, &ferrax_cuda::program::Output)| {
            let memory = r.takes.map_or(&results[k], |i| &params[i]);
            assert!(memory.is_guarded(), "something was written beside result {k}");
            Array::of(&r.ty, &Buffer::from_bytes(memory.bytes()).expect("a buffer"))
        };
        p.results.iter().enumerate().map(of).collect()
    }
}

/// Bytes between guards, at an address that vectors may be read from.
struct Memory {
    words: Vec<u128>,
    bytes: usize,
}

impl Memory {
    fn filled(bytes: usize) -> Memory {
        let words = (bytes + 2 * GUARD).div_ceil(16);
        Memory { words: vec![u128::from_ne_bytes([UNWRITTEN; 16]); words], bytes }
    }

    fn of(bytes: &[u8]) -> Memory {
        let mut memory = Memory::filled(bytes.len());
        memory.all_mut()[GUARD..GUARD + bytes.len()].copy_from_slice(bytes);
        memory
    }

    fn all(&self) -> &[u8] {
        // SAFETY: any bytes are bytes.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.words.len() * 16) }
    }

    fn all_mut(&mut self) -> &mut [u8] {
        // SAFETY: any bytes are bytes.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.words.len() * 16) }
    }

    fn bytes(&self) -> &[u8] {
        &self.all()[GUARD..GUARD + self.bytes]
    }

    fn is_guarded(&self) -> bool {
        let all = self.all();
        all[..GUARD].iter().chain(&all[GUARD + self.bytes..]).all(|&b| b == UNWRITTEN)
    }
}

struct Memories {
    params: Vec<Memory>,
    results: Vec<Memory>,
    constants: Vec<Memory>,
    arena: Memory,
}

struct Run<'a> {
    host: &'a Host,
    library: &'a libloading::Library,
    program: usize,
    memory: Memories,
    seed: u64,
}

impl Run<'_> {
    fn place(&mut self, place: Place) -> &mut Memory {
        let m = &mut self.memory;
        match place {
            Place::Param(i) => &mut m.params[i],
            Place::Result(k) => match self.host.programs[self.program].results[k].takes {
                Some(i) => &mut m.params[i],
                None => &mut m.results[k],
            },
            Place::Constant(c) => &mut m.constants[c],
            Place::Arena => &mut m.arena,
        }
    }

    fn slice(&mut self, span: Span) -> &mut [u8] {
        let memory = self.place(span.place);
        assert!(span.offset + span.bytes <= memory.bytes, "{span:?} is outside of its place");
        &mut memory.all_mut()[GUARD + span.offset..GUARD + span.offset + span.bytes]
    }

    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Launch(launch) => self.launch(launch),
                Step::Copy { from, to } => {
                    let bytes = self.slice(*from).to_vec();
                    self.slice(*to).copy_from_slice(&bytes);
                }
                Step::Fill { to, byte } => self.slice(*to).fill(*byte),
                Step::Call { routine, .. } => panic!("plans for the host call no library: {routine:?}"),
                Step::While { cond, flag, body } => loop {
                    self.steps(cond);
                    if self.slice(*flag)[0] == 0 {
                        break;
                    }
                    self.steps(body);
                },
                Step::Repeat { count, counter, body } => {
                    for k in 0..*count {
                        self.slice(*counter).copy_from_slice(&(k as i64).to_ne_bytes());
                        self.steps(body);
                    }
                }
                Step::Switch { index, branches } => {
                    let index = i32::from_ne_bytes(self.slice(*index).try_into().expect("four bytes"));
                    let which = index.clamp(0, branches.len() as i32 - 1);
                    self.steps(&branches[which as usize]);
                }
            }
        }
    }

    fn launch(&mut self, launch: &Launch) {
        let mut args = [0u64; 48];
        assert!(launch.args.len() <= args.len(), "{} takes too many arguments", launch.kernel);
        for (to, arg) in args.iter_mut().zip(&launch.args) {
            *to = match arg {
                Argument::Memory(span) => self.slice(*span).as_mut_ptr() as u64,
                Argument::Int(i) => *i as u64,
            };
        }
        assert_eq!((launch.grid[1], launch.grid[2], launch.block[1], launch.block[2]), (1, 1, 1, 1));
        assert!(launch.block[0] <= 1024 && launch.block[0].is_multiple_of(32) && launch.grid[0] > 0);
        self.seed = self.seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let grid = match self.seed >> 60 {
            0..4 => 1,
            4..8 => launch.grid[0] + 2,
            _ => launch.grid[0],
        };
        let name = among(self.program, &launch.kernel);
        let waits = self.host.waiting[&name];
        // SAFETY: the library has these functions; a kernel's arguments are pointers into memory of the sizes that the
        // program says, or integers.
        unsafe {
            let kernel = *self.library.get::<Kernel>(name.as_bytes()).expect("a kernel of the program");
            let start = *self.library.get::<Start>(b"fx_host_launch").expect("the header's function");
            start(kernel, [grid, launch.block[0]].as_ptr(), args.as_ptr(), self.seed, i32::from(waits));
        }
    }
}
