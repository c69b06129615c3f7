//! Kernel graphs on the plugin of the environment, compared with the CPU engine.
#![allow(dead_code, unused_imports, unused_macros, reason = "every test binary uses a part")]
#![allow(clippy::print_stderr, reason = "tests say what a plugin refuses")]

#[path = "../../../ferrax-cpu/tests/compare/near.rs"]
mod near;

pub use common::{Array, Rng, same};
use ferrax_base::{Buffer, DType, Result, Scalar};
use ferrax_loops::{Builder, Graph};
use ferrax_pjrt::safe::{Client, CompileOptions, OptionValue, Plugin};
use ferrax_pjrt::stablehlo::{OPTIONS, Target, module};
pub use near::*;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Plugins may take subnormal numbers for zeros.
pub const FLUSHES: bool = true;

/// Functions of rows as tests.
macro_rules! tests {
    ($($name:ident),*) => {
        $(
            #[test]
            #[ignore = "needs a plugin: make test-xla"]
            fn $name() {
                rows::$name();
            }
        )*
    };
}
pub(crate) use tests;

/// The plugin of the environment, with a client.
pub struct Peer {
    client: Arc<Client>,
    pub target: Target,
}

/// The one that all tests of a binary use.
pub fn peer() -> &'static Peer {
    static PEER: OnceLock<Peer> = OnceLock::new();
    PEER.get_or_init(|| {
        let named = std::env::var("FERRAX_PJRT_PLUGIN").expect("FERRAX_PJRT_PLUGIN=name:path");
        let (name, path) = named.split_once(':').expect("name:path");
        let plugin = Plugin::load(name, Path::new(path)).expect("a plugin that loads");
        let version = plugin.stablehlo_version().unwrap_or([1, 0, 0]);
        let client = Client::new(&plugin, &[]).expect("a client");
        let platform = client.platform_name().to_owned();
        Peer { client, target: Target { platform, version } }
    })
}

impl Peer {
    /// The results of a graph; every result is rounded where the graph says so.
    pub fn run(&self, graph: &Graph, args: &[&Array]) -> Result<Vec<Array>> {
        self.run_for(&self.target, graph, args)
    }

    /// As `run`, printed for another target.
    pub fn run_for(&self, target: &Target, graph: &Graph, args: &[&Array]) -> Result<Vec<Array>> {
        let text = module(graph, &[], target)?;
        keep(graph, target)?;
        let mut options = CompileOptions::on(self.client.device_id(0)?);
        options.overrides.extend(OPTIONS.map(|(name, value)| (name.into(), OptionValue::Bool(value))));
        let executable = self.client.compile(&text, &options)?;
        let upload = |a: &&Array| self.client.upload(a.buffer().bytes(), a.ty.dtype, &a.ty.shape, 0);
        let buffers = args.iter().map(upload).collect::<Result<Vec<_>>>()?;
        let results = executable.execute(&buffers.iter().collect::<Vec<_>>(), &[], None)?;
        let types = graph.outputs.iter().map(|&v| graph.ty(v));
        results.iter().zip(types).map(|(r, ty)| Ok(Array::of(ty, &extended(ty.dtype, &r.to_host()?)?))).collect()
    }
}

/// Writes a program, as it is printed for GPUs of NVIDIA, into the folder of `FERRAX_STABLEHLO_PROGRAMS`, for compilers of
/// devices that are not there.
fn keep(graph: &Graph, target: &Target) -> Result<()> {
    if let Some(folder) = std::env::var_os("FERRAX_STABLEHLO_PROGRAMS") {
        let text = module(graph, &[], &Target { platform: "cuda".into(), ..target.clone() })?;
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let path = Path::new(&folder).join(format!("{:016x}.mlir", hasher.finish()));
        std::fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    Ok(())
}

/// Sub-byte integers as the host keeps them: plugins give bytes whose upper bits are zeros, or copies of the sign.
fn extended(d: DType, host: &Buffer) -> Result<Buffer> {
    if d.bits() >= 8 || !d.is_integer() {
        return Buffer::from_bytes(host.bytes());
    }
    let mask = (1u128 << d.bits()) - 1;
    let value = |b: &u8| Scalar { dtype: d, bits: u128::from(*b) & mask }.to_i64() as u8;
    Buffer::from_bytes(&host.bytes().iter().map(value).collect::<Vec<u8>>())
}

/// Of how many cases one is run on the plugin, which compiles each for tens of milliseconds: with `FERRAX_XLA_SHARE`.
fn share() -> usize {
    number("FERRAX_XLA_SHARE").unwrap_or(1)
}

/// Whether the k-th case is in the share that is run: another one for each `FERRAX_FUZZ_SEED`.
pub fn in_share(k: usize) -> bool {
    (k + number("FERRAX_FUZZ_SEED").unwrap_or(0)).is_multiple_of(share())
}

fn number(name: &str) -> Option<usize> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// Graphs of one node each, or all as one where the plugin takes that.
#[derive(Default)]
pub struct Report {
    seen: usize,
    pub wrong: Vec<String>,
    pub refused: Vec<String>,
}

impl Report {
    /// Compares all cases over the same arguments, if they are in the share.
    pub fn check(&mut self, cases: &[Case], args: &[Array]) {
        self.seen += 1;
        if !in_share(self.seen) {
            return;
        }
        if !self.together(cases, args) {
            for case in cases {
                if !self.together(std::slice::from_ref(case), args) {
                    self.refused.push(case.what.clone());
                }
            }
        }
    }

    /// Compares a graph of all the cases; whether the plugin takes it.
    fn together(&mut self, cases: &[Case], args: &[Array]) -> bool {
        let mut builder = Builder::new(args.iter().map(|a| a.ty.clone()));
        let params: Vec<_> = builder.params().collect();
        let mut outputs = Vec::new();
        for case in cases {
            let inputs: Vec<_> = case.inputs.iter().map(|&i| params[i]).collect();
            outputs.extend(builder.push_many(case.kind.clone(), &inputs, &case.results));
        }
        let graph = builder.finish(&outputs);
        let args: Vec<&Array> = args.iter().collect();
        let got = match peer().run(&graph, &args) {
            Ok(got) => got,
            Err(e) => {
                if let [one] = cases {
                    let text = e.to_string();
                    eprintln!("refused {}: {}", one.what, text.lines().next().unwrap_or_default());
                }
                return false;
            }
        };
        let mut got = got.iter();
        for case in cases {
            let inputs: Vec<&Array> = case.inputs.iter().map(|&i| args[i]).collect();
            let want = alone(case, &inputs);
            for want in &want {
                let got = got.next().expect("a result for each");
                if let Some(why) = difference(case.near, got, want, &inputs) {
                    self.wrong.push(format!("{}: {why}", case.what));
                }
            }
        }
        true
    }

    /// Fails if anything differs, or if something is refused.
    #[track_caller]
    pub fn finish(self) {
        self.finish_refusing(&[]);
    }

    /// As `finish`, with what the plugin is known to refuse.
    #[track_caller]
    pub fn finish_refusing(self, refused: &[&str]) {
        assert!(self.wrong.is_empty(), "{} wrong:\n{}", self.wrong.len(), self.wrong.join("\n"));
        if share() == 1 {
            assert_eq!(self.refused, refused);
        } else {
            assert!(self.refused.iter().all(|what| refused.contains(&what.as_str())), "refused: {:?}", self.refused);
        }
    }
}

/// Compares a graph.
pub fn compare(report: &mut Report, what: &str, graph: Graph, args: &[&Array], how: Near) {
    let graph = Arc::new(graph);
    let want = on_cpu(&graph, args).unwrap_or_else(|e| panic!("{what}: {e}"));
    match peer().run(&graph, args) {
        Ok(got) => {
            for (k, (got, want)) in got.iter().zip(&want).enumerate() {
                if let Some(why) = difference(how, got, want, &[]) {
                    report.wrong.push(format!("{what}, result {k}: {why}"));
                }
            }
        }
        Err(e) => {
            eprintln!("refused {what}: {}", e.to_string().lines().next().unwrap_or_default());
            report.refused.push(what.to_owned());
        }
    }
}
