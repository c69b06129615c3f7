//! Programs compiled for GPUs that are not there, by XLA's CUDA plugin: `make test-cuda-compile`.
//!
//! A plugin takes the description of a GPU in a client's place. One that lacks a field which the compiler reads ends the
//! process, so the descriptions are whole: what NVIDIA's driver answers for each of these GPUs, as its data sheets and
//! XLA's own list of targets give it. The programs are those of the folder `FERRAX_STABLEHLO_PROGRAMS`, which the tests of
//! kinds (`against/mod.rs`) and `tests/xla/write_programs.py` fill.

#![allow(clippy::print_stdout, reason = "a process answers another one")]

use ferrax_pjrt::safe::{CompileOptions, OptionValue, Plugin, Topology};
use ferrax_pjrt::stablehlo::OPTIONS;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A GPU of compute capability 9.0 as XLA's `GpuTargetConfigProto`: its name, bytes of memory, bytes a second.
fn description(name: &str, memory: u64, bandwidth: u64) -> String {
    let limits = [
        ("threads_per_block_limit", 1024),
        ("threads_per_warp", 32),
        ("shared_memory_per_block", 48 << 10),
        ("shared_memory_per_block_optin", 227 << 10),
        ("shared_memory_per_core", 228 << 10),
        ("threads_per_core_limit", 2048),
        ("core_count", 132),
        ("fpus_per_core", 128),
        ("block_dim_limit_x", (1 << 31) - 1),
        ("block_dim_limit_y", (1 << 16) - 1),
        ("block_dim_limit_z", (1 << 16) - 1),
        ("thread_dim_limit_x", 1024),
        ("thread_dim_limit_y", 1024),
        ("thread_dim_limit_z", 64),
        ("registers_per_core_limit", 1 << 16),
        ("registers_per_block_limit", 1 << 16),
        ("l2_cache_size", 50 << 20),
        ("device_memory_size", memory),
        ("memory_bandwidth", bandwidth),
    ];
    let limits: Vec<String> = limits.iter().map(|(field, value)| format!("{field}: {value}")).collect();
    let limits = limits.join(" ");
    let versions = "driver_version: '13.0.0' runtime_version: '13.0.0' compile_time_toolkit_version: '13.0.0' dnn_version: '9.10.0'";
    format!(
        "gpu_device_info {{ {limits} clock_rate_ghz: 1.98 cuda_compute_capability {{ major: 9 }} \
         device_vendor: 'NVIDIA Corporation' name: '{name}' {versions} }} platform_name: 'CUDA' \
         dnn_version_info {{ major: 9 minor: 10 }} device_description_str: '{name}'"
    )
}

/// The GPUs that are compiled for, in turns.
fn topologies(plugin: &Plugin) -> Vec<Arc<Topology>> {
    let gpus = [
        ("NVIDIA H100 80GB HBM3", 85_000_000_000, 3_352_000_000_000),
        ("NVIDIA H200", 150_000_000_000, 4_800_000_000_000),
    ];
    gpus.map(|(name, memory, bandwidth)| {
        let text = |name: &str, text: String| (name.to_owned(), OptionValue::Text(text));
        let options = [text("target_config", description(name, memory, bandwidth)), text("topology", "1x1x1".into())];
        Topology::new(plugin, "", &options).expect("a topology")
    })
    .into()
}

fn options() -> CompileOptions {
    let mut options = CompileOptions::on(0);
    options.overrides.extend(OPTIONS.map(|(name, value)| (name.into(), OptionValue::Bool(value))));
    options
}

/// Bit casts of one operand to elements of 8 bytes and of half a byte, fused to one kernel, end XLA's process.
fn ends_the_compiler(text: &str) -> bool {
    text.contains("xi1>) -> (") && text.contains("xf4E2M1FN>") && text.contains("bitcast_convert")
}

/// Compiles the programs that its input names, a line each, and answers each by a line: that of a process, since there are
/// programs that end it.
#[test]
#[ignore = "a part of the other test"]
fn answer() {
    let Ok(path) = std::env::var("FERRAX_CUDA_PLUGIN") else { return };
    let plugin = Plugin::load("cuda", Path::new(&path)).expect("a plugin that loads");
    let (topologies, options) = (topologies(&plugin), options());
    for (path, topology) in std::io::stdin().lines().map_while(Result::ok).zip(topologies.iter().cycle()) {
        let text = std::fs::read_to_string(path).expect("a program");
        if ends_the_compiler(&text) {
            println!("{ANSWER}1");
            continue;
        }
        match topology.compile(&text, &options).and_then(|compiled| compiled.serialize()) {
            Ok(code) => println!("{ANSWER}{}", code.len()),
            Err(error) => println!("{ANSWER}{}", error.to_string().replace('\n', " ")),
        }
    }
}

/// What stands before an answer, among all that compilers write.
const ANSWER: &str = "compiled: ";

/// A process that compiles, with its answers.
struct Compiler {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Compiler {
    fn start() -> Compiler {
        let mut child = Command::new(std::env::current_exe().expect("a path"))
            .args(["--ignored", "--exact", "answer", "--nocapture"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a process");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Compiler { child, lines }
    }

    /// What it says of a program; nothing if the program ended it.
    fn compile(&mut self, path: &Path) -> Option<String> {
        writeln!(self.child.stdin.as_mut()?, "{}", path.display()).ok()?;
        self.lines.by_ref().map_while(Result::ok).find_map(|line| Some(line.split_once(ANSWER)?.1.to_owned()))
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "needs XLA's CUDA plugin: make test-cuda-compile"]
fn programs_compile_for_gpus_that_are_not_there() {
    std::env::var("FERRAX_CUDA_PLUGIN").expect("FERRAX_CUDA_PLUGIN names a library");
    let folder = std::env::var_os("FERRAX_STABLEHLO_PROGRAMS").expect("FERRAX_STABLEHLO_PROGRAMS names a folder");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no program");
    let next = AtomicUsize::new(0);
    let worker = || {
        let (mut wrong, mut compiler) = (Vec::new(), Compiler::start());
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            match compiler.compile(path) {
                Some(answer) if answer.parse::<usize>().is_ok_and(|bytes| bytes > 0) => {}
                Some(answer) => wrong.push(format!("{}: {answer}", path.display())),
                None => {
                    wrong.push(format!("{}: ended the process", path.display()));
                    compiler = Compiler::start();
                }
            }
        }
        wrong
    };
    let wrong = std::thread::scope(|scope| {
        let workers = [(); 2].map(|()| scope.spawn(worker));
        workers.into_iter().flat_map(|w| w.join().expect("a worker")).collect::<Vec<_>>()
    });
    assert!(wrong.is_empty(), "{} of {} programs:\n{}", wrong.len(), paths.len(), wrong.join("\n"));
}
