//! Nodes on the CPU engine and where they are compared with it: as expansions on the CPU engine, or on a plugin.
#![allow(dead_code, reason = "every test binary uses a part")]

use crate::common::Array;
use crate::support;
use ferrax_base::{Arg, Buffer};
use ferrax_cpu::Program;
use ferrax_loops::{Builder, Graph, Kind, Type, ValueId};
use ferrax_pjrt::safe::Client;
use ferrax_pjrt::stablehlo::{Target, expansion, module};
use std::sync::Arc;

/// Where a node is tried.
pub enum Place {
    /// Its expansion on the CPU engine.
    Expanded,
    /// A plugin.
    Plugin(Arc<Client>),
}

impl Place {
    pub fn plugin() -> Place {
        Place::Plugin(support::client())
    }

    /// One node's results there.
    pub fn node(&self, kind: &Kind, operands: &[&Array], results: &[Type]) -> Vec<Array> {
        let types: Vec<Type> = operands.iter().map(|a| a.ty.clone()).collect();
        match self {
            Place::Expanded => {
                let graph = expansion(kind, &types, results).unwrap_or_else(|e| panic!("{kind:?}: {e}"));
                on_cpu(graph.unwrap_or_else(|| panic!("{kind:?} has no expansion")), operands)
            }
            Place::Plugin(client) => on_plugin(client, &single(kind, &types, results, &[]), operands),
        }
    }

    /// One node's results there, where the operands of some numbers are constants of the program.
    pub fn with_constants(&self, kind: &Kind, operands: &[&Array], known: &[usize], results: &[Type]) -> Vec<Array> {
        let Place::Plugin(client) = self else { panic!("constants are known to plugins alone") };
        let types: Vec<Type> = operands.iter().map(|a| a.ty.clone()).collect();
        let constants: Vec<(usize, &Array)> = known.iter().map(|&i| (i, operands[i])).collect();
        let others: Vec<&Array> = (0..operands.len()).filter(|i| !known.contains(i)).map(|i| operands[i]).collect();
        on_plugin(client, &single(kind, &types, results, &constants), &others)
    }
}

/// A graph of one node; operands of rank 0 may be constants.
fn single(kind: &Kind, operands: &[Type], results: &[Type], constants: &[(usize, &Array)]) -> Graph {
    let known = |i: usize| constants.iter().find(|c| c.0 == i).map(|c| c.1.data[0]);
    let params = operands.iter().enumerate().filter(|&(i, _)| known(i).is_none()).map(|(_, ty)| ty.clone());
    let mut b = Builder::new(params);
    let mut params = b.params();
    let inputs: Vec<ValueId> =
        (0..operands.len()).map(|i| known(i).map_or_else(|| params.next().unwrap(), |c| b.scalar(c))).collect();
    let outs = b.push_many(kind.clone(), &inputs, results);
    b.finish(&outs)
}

/// A graph's results on the CPU engine.
pub fn on_cpu(graph: Graph, operands: &[&Array]) -> Vec<Array> {
    let types: Vec<Type> = graph.outputs.iter().map(|&v| graph.ty(v).clone()).collect();
    let program = Program::compile(Arc::new(graph)).unwrap();
    let buffers: Vec<Buffer> = operands.iter().map(|a| a.buffer()).collect();
    let mut args: Vec<Arg<'_>> = buffers.iter().map(Arg::Host).collect();
    let out = program.run(&mut args).unwrap();
    out.iter().zip(&types).map(|(b, ty)| Array::of(ty, b)).collect()
}

/// A graph's results on a plugin.
pub fn on_plugin(client: &Arc<Client>, graph: &Graph, operands: &[&Array]) -> Vec<Array> {
    let target = Target { platform: client.platform_name().to_owned(), version: (1, 13, 7) };
    let text = module(graph, &[], &target).unwrap_or_else(|e| panic!("{e}"));
    if std::env::var_os("FERRAX_SHOW_STABLEHLO").is_some() {
        eprintln!("{text}");
    }
    let program = client.compile(&text, &support::on(client, 0)).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let buffers: Vec<_> = operands
        .iter()
        .map(|a| client.upload(a.buffer().bytes(), a.ty.dtype, &a.ty.shape, 0).expect("an upload"))
        .collect();
    let results = program.execute(&buffers.iter().collect::<Vec<_>>(), &[], None).expect("a run");
    let types = graph.outputs.iter().map(|&v| graph.ty(v).clone());
    results.iter().zip(types).map(|(b, ty)| Array::of(&ty, &b.to_host().expect("a copy"))).collect()
}
