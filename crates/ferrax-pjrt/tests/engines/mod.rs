//! Nodes on the CPU engine and where they are compared with it: as expansions on the CPU engine, or on a plugin.
#![allow(dead_code, reason = "every test binary uses a part")]

use crate::against::{Array, Peer, on_cpu, peer};
use ferrax_loops::expand::expansion;
use ferrax_loops::{Builder, Graph, Kind, Type, ValueId};
use ferrax_pjrt::stablehlo::Target;
use std::sync::Arc;

/// Where a node is tried.
pub enum Place {
    /// Its expansion on the CPU engine.
    Expanded,
    /// A plugin, with programs printed for a target.
    Plugin(&'static Peer, Target),
}

impl Place {
    pub fn plugin() -> Place {
        Place::Plugin(peer(), peer().target.clone())
    }

    /// The plugin, with programs as they are printed for a platform of another name.
    pub fn printed_for(platform: &str) -> Place {
        Place::Plugin(peer(), Target { platform: platform.into(), ..peer().target.clone() })
    }

    /// One node's results there.
    pub fn node(&self, kind: &Kind, operands: &[&Array], results: &[Type]) -> Vec<Array> {
        let types: Vec<Type> = operands.iter().map(|a| a.ty.clone()).collect();
        match self {
            Place::Expanded => {
                let graph = expansion(kind, &types, results).unwrap_or_else(|e| panic!("{kind:?}: {e}"));
                let graph = Arc::new(graph.unwrap_or_else(|| panic!("{kind:?} has no expansion")));
                on_cpu(&graph, operands).unwrap_or_else(|e| panic!("{kind:?}: {e}"))
            }
            Place::Plugin(peer, target) => {
                let graph = single(kind, &types, results, &[]);
                peer.run_for(target, &graph, operands).unwrap_or_else(|e| panic!("{kind:?}: {e}"))
            }
        }
    }

    /// One node's results there, where the operands of some numbers are constants of the program.
    pub fn with_constants(&self, kind: &Kind, operands: &[&Array], known: &[usize], results: &[Type]) -> Vec<Array> {
        let Place::Plugin(peer, target) = self else { panic!("constants are known to plugins alone") };
        let types: Vec<Type> = operands.iter().map(|a| a.ty.clone()).collect();
        let constants: Vec<(usize, &Array)> = known.iter().map(|&i| (i, operands[i])).collect();
        let others: Vec<&Array> = (0..operands.len()).filter(|i| !known.contains(i)).map(|i| operands[i]).collect();
        let graph = single(kind, &types, results, &constants);
        peer.run_for(target, &graph, &others).unwrap_or_else(|e| panic!("{kind:?}: {e}"))
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
