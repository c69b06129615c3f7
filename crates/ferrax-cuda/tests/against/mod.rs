//! Kernel graphs as CUDA C on the host, compared with the CPU engine.
#![allow(dead_code, unused_imports, unused_macros, reason = "every test binary uses a part")]

#[path = "../host/mod.rs"]
pub mod host;
#[path = "../../../ferrax-cpu/tests/compare/near.rs"]
mod near;

pub use common::{Array, Rng, same};
use ferrax_base::Result;
use ferrax_cuda::plan::plan;
use ferrax_cuda::program::Program;
use ferrax_loops::{Builder, DotDims, Graph, Kind};
use host::Host;
pub use near::*;
use smallvec::SmallVec;
use std::sync::Arc;

/// Subnormal numbers are numbers.
pub const FLUSHES: bool = false;

/// Runs of a program in different orders of threads.
const RUNS: u64 = 3;

/// Functions of rows as tests.
macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                rows::$name();
            }
        )*
    };
}
pub(crate) use tests;

/// A product over these axes of both operands, of the batches along these.
pub fn dims(lhs: &[usize], rhs: &[usize], lb: &[usize], rb: &[usize]) -> Kind {
    let of = SmallVec::from_slice;
    Kind::Dot(Box::new(DotDims {
        lhs_contract: of(lhs),
        rhs_contract: of(rhs),
        lhs_batch: of(lb),
        rhs_batch: of(rb),
        tf32: false,
    }))
}

/// A program with its arguments and what it must give.
struct Job {
    program: Program,
    args: Vec<Array>,
    /// For each result: what it is, how near it must be, and what the CPU engine gives.
    want: Vec<(String, Near, Array)>,
}

/// Comparisons that are made together, so that the compiler runs once.
#[derive(Default)]
pub struct Report {
    jobs: Vec<Job>,
    refused: Vec<String>,
}

impl Report {
    /// A graph of all the cases over the same arguments; a graph for each where one is refused.
    pub fn check(&mut self, cases: &[Case], args: &[Array]) {
        if self.together(cases, args).is_err() {
            for case in cases {
                if let Err(e) = self.together(std::slice::from_ref(case), args) {
                    self.refused.push(format!("{}: {e}", case.what));
                }
            }
        }
    }

    fn together(&mut self, cases: &[Case], args: &[Array]) -> Result<()> {
        let mut builder = Builder::new(args.iter().map(|a| a.ty.clone()));
        let params: Vec<_> = builder.params().collect();
        let mut outputs = Vec::new();
        for case in cases {
            let inputs: Vec<_> = case.inputs.iter().map(|&i| params[i]).collect();
            outputs.extend(builder.push_many(case.kind.clone(), &inputs, &case.results));
        }
        let program = plan(&builder.finish(&outputs), &[])?;
        let mut want = Vec::new();
        for case in cases {
            let inputs: Vec<&Array> = case.inputs.iter().map(|&i| &args[i]).collect();
            want.extend(alone(case, &inputs).into_iter().map(|a| (case.what.clone(), case.near, a)));
        }
        self.jobs.push(Job { program, args: args.to_vec(), want });
        Ok(())
    }

    /// A graph whose donated arguments lend their memory.
    pub fn donating(&mut self, what: &str, graph: Graph, donated: &[bool], args: &[&Array], how: Near) {
        let graph = Arc::new(graph);
        let want = on_cpu(&graph, args).unwrap_or_else(|e| panic!("{what}: {e}"));
        match plan(&graph, donated) {
            Ok(program) => {
                let name = |(k, a)| (format!("{what}, result {k}"), how, a);
                let want = want.into_iter().enumerate().map(name).collect();
                self.jobs.push(Job { program, args: args.iter().map(|&a| a.clone()).collect(), want });
            }
            Err(e) => self.refused.push(format!("{what}: {e}")),
        }
    }

    /// The programs so far.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        self.jobs.iter().map(|j| &j.program)
    }

    /// Fails if anything differs, or if something is refused.
    #[track_caller]
    pub fn finish(self) {
        self.finish_refusing(&[]);
    }

    /// As `finish`, with what is known to be refused.
    #[track_caller]
    pub fn finish_refusing(self, refused: &[&str]) {
        let host = Host::build(self.jobs.iter().map(|j| j.program.clone()).collect());
        let mut wrong = Vec::new();
        for (k, job) in self.jobs.iter().enumerate() {
            let args: Vec<&Array> = job.args.iter().collect();
            for seed in 0..RUNS {
                let got = host.run(k, &args, seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + k as u64);
                for ((what, how, want), got) in job.want.iter().zip(&got) {
                    if let Some(why) = difference(*how, got, want, &args) {
                        wrong.push(format!("{what} (run {seed}): {why}"));
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
        assert_eq!(self.refused, refused);
    }
}

/// Compares a graph.
pub fn compare(report: &mut Report, what: &str, graph: Graph, args: &[&Array], how: Near) {
    report.donating(what, graph, &[], args, how);
}
