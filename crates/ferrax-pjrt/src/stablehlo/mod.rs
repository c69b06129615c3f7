//! Kernel graphs as StableHLO text.
//!
//! [`module`] prints a graph as a module with one public function. [`Module`] holds what a whole module shares (functions
//! of nested graphs, each printed once), [`Body`] prints the operations of one function or region, and [`node`] hands each
//! node to the file of its family. Every operation is printed in MLIR's generic form, which all versions of the dialect
//! read. Scalars (rank 0) that stand for every element in the kernel graph are broadcast here, since StableHLO asks for
//! equal shapes.
//!
//! Read next: `body.rs` for the vocabulary that families use, `types.rs` for types and constants.

mod body;
mod complex;
mod control;
mod conv;
mod convert;
mod dot;
mod elementwise;
mod index;
mod library;
mod reduce;
mod shape;
mod special;
mod types;
mod verify;
mod window;

use body::{Body, Val};
use ferrax_base::{Result, bail};
use ferrax_loops::{Graph, Kind, Node};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use types::tensor;
use verify::Region;

/// What a program is printed for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The name that the plugin calls its platform by: `"cpu"`, `"cuda"`, `"tpu"`.
    pub platform: String,
    /// The newest version of StableHLO that the plugin reads.
    pub version: [i64; 3],
}

/// The version that is printed for plugins that do not say which they read.
pub const OLDEST: [i64; 3] = [0, 9, 0];

impl Target {
    /// Any platform, and the newest version that this crate prints.
    pub fn newest() -> Target {
        Target { platform: String::new(), version: [1, 13, 0] }
    }
}

/// What a compiler has to be told with every program, by the names of XLA's options: that narrow floats are rounded where
/// the program says so, and that NaN and signed zeros count.
pub const OPTIONS: [(&str, bool); 3] = [
    ("xla_allow_excess_precision", false),
    ("xla_cpu_enable_fast_math", false),
    ("xla_cpu_enable_fast_min_max", false),
];

/// Where a graph comes from, for people.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Names of the parameters; empty for those without.
    pub parameters: Vec<String>,
    /// What the values up to a number are made for: a name, and a file and a line where they are known. In order.
    pub values: Vec<(u32, String, Option<(String, u32)>)>,
    /// The mesh that shardings are over, as the dialect `sdy` writes it.
    pub mesh: Option<String>,
    /// Shardings of the parameters, as `sdy` writes them; empty for those without.
    pub parameter_shardings: Vec<String>,
    /// Values with the shardings that the program says they have, one behind the other.
    pub shardings: Vec<(u32, String)>,
    /// How the program is cut over several devices, where it is.
    pub partitions: Option<Partitions>,
    /// Graphs that are called for operations with notes for compilers: their notes, and the composite that they are.
    pub noted: Vec<(Arc<Graph>, Arc<str>, Option<Arc<str>>)>,
}

/// A program cut over devices, of which each runs a part.
#[derive(Clone, Debug, Default)]
pub struct Partitions {
    /// How many devices there are.
    pub count: usize,
    /// How each parameter lies on them, as an attribute: `sdy.sharding` over the mesh of the places, or `mhlo.sharding`.
    pub parameters: Vec<String>,
    /// And each result.
    pub results: Vec<String>,
    /// And what calls of these graphs give, their only parameter: an operation that says so, and its attributes.
    pub inside: Vec<(Arc<Graph>, &'static str, String)>,
}

/// A text as MLIR quotes it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

impl Places {
    /// Behind a parameter.
    fn parameter(&self, i: usize) -> String {
        self.parameters.get(i).filter(|n| !n.is_empty()).map_or(String::new(), |n| format!(" loc({})", quoted(n)))
    }

    /// How a parameter is sharded, as attributes.
    fn sharding(&self, i: usize) -> Option<String> {
        if let Some(cut) = &self.partitions {
            return Some(cut.parameters[i].clone());
        }
        let found = self.parameter_shardings.get(i).filter(|s| !s.is_empty())?;
        Some(format!("sdy.sharding = #sdy.sharding{found}"))
    }

    /// Behind the operations that compute a value.
    fn value(&self, value: u32) -> String {
        match self.values.iter().find(|(end, ..)| value <= *end) {
            Some((_, name, Some((file, line)))) => format!(" loc({}({}:{line}:0))", quoted(name), quoted(file)),
            Some((_, name, None)) => format!(" loc({})", quoted(name)),
            None => String::new(),
        }
    }
}

/// What a module shares: nested graphs by their address, printed as private functions.
pub(crate) struct Module<'a> {
    pub(crate) target: &'a Target,
    places: Option<&'a Places>,
    functions: String,
    names: FxHashMap<*const Graph, String>,
    /// Names by the text of the function: graphs that print alike are one function.
    texts: FxHashMap<String, String>,
    /// The types of functions, by name.
    signatures: FxHashMap<String, Region>,
    /// The graphs behind the addresses, which stay theirs as long as they live.
    kept: Vec<Arc<Graph>>,
    /// What is wrong with the types of the first ill-typed operation since this was last looked at.
    fault: Option<String>,
}

/// A graph as a module whose public function `main` takes the graph's parameters and gives its results. `donated` says
/// which parameters' memory may be used for results; empty when none may. Those that [`Graph::aliases`] gives a result are
/// printed with it, the others as memory that the compiler may find a use for.
pub fn module(graph: &Graph, donated: &[bool], target: &Target) -> Result<String> {
    placed_module(graph, donated, target, None)
}

/// As [`module`], with locations behind arguments and operations of the main function.
pub fn placed_module<'a>(
    graph: &Graph,
    donated: &[bool],
    target: &'a Target,
    places: Option<&'a Places>,
) -> Result<String> {
    let mut shared = Module {
        target,
        places,
        functions: String::new(),
        names: FxHashMap::default(),
        texts: FxHashMap::default(),
        signatures: FxHashMap::default(),
        kept: Vec::new(),
        fault: None,
    };
    let main = shared.function(graph, donated, places)?;
    let mesh = places.and_then(|p| p.mesh.as_ref()).map_or(String::new(), |m| format!("  sdy.mesh @mesh = {m}\n"));
    let count = match places.and_then(|p| p.partitions.as_ref()) {
        Some(cut) => Some(cut.count),
        None => mesh.is_empty().then_some(1),
    };
    let counts = count.map_or(String::new(), |n| {
        format!("attributes {{mhlo.num_partitions = {n} : i32, mhlo.num_replicas = 1 : i32}} ")
    });
    Ok(format!("module @jit {counts}{{\n{mesh}  func.func public @main{main}{}}}\n", shared.functions))
}

impl Module<'_> {
    /// A whole function behind its name, as text.
    fn function(&mut self, graph: &Graph, donated: &[bool], places: Option<&Places>) -> Result<String> {
        let aliases = graph.aliases(donated);
        let mut body = Body::new(self, 2);
        let args: Vec<Val> = graph.param_types().iter().enumerate().map(|(i, ty)| Val::argument(i, ty)).collect();
        let results = body.inline_at(graph, &args, places)?;
        body.finish("func.return", &results);
        let text = body.into_text();
        let listed = args.iter().enumerate().map(|(i, a)| {
            let donor = match aliases[i] {
                Some(k) => Some(format!("tf.aliasing_output = {k} : i32")),
                None if donated.get(i) == Some(&true) => Some("jax.buffer_donor = true".into()),
                None => None,
            };
            let said: Vec<String> = donor.into_iter().chain(places.and_then(|p| p.sharding(i))).collect();
            let donor = if said.is_empty() { String::new() } else { format!(" {{{}}}", said.join(", ")) };
            let place = places.map_or(String::new(), |p| p.parameter(i));
            format!("{}: {}{donor}{place}", a.name, tensor(&a.ty))
        });
        let cut = places.and_then(|p| p.partitions.as_ref());
        let lies = |i: usize| cut.map_or(String::new(), |c| format!(" {{{}}}", c.results[i]));
        let given: Vec<String> = results.iter().enumerate().map(|(i, r)| tensor(&r.ty) + &lies(i)).collect();
        let (listed, given) = (listed.collect::<Vec<_>>().join(", "), given.join(", "));
        Ok(format!("({listed}) -> ({given}) {{\n{text}  }}\n"))
    }

    /// The operation that says how what a call of a graph gives lies on devices, and its attributes.
    pub(crate) fn lies(&self, graph: &Arc<Graph>) -> Option<(&'static str, String)> {
        let inside = &self.places?.partitions.as_ref()?.inside;
        inside.iter().find(|(g, ..)| Arc::ptr_eq(g, graph)).map(|(_, name, how)| (*name, how.clone()))
    }

    /// The notes of a graph that is called, and the composite that it is.
    pub(crate) fn notes(&self, graph: &Arc<Graph>) -> Option<(Arc<str>, Option<Arc<str>>)> {
        let (_, notes, composite) = self.places?.noted.iter().find(|(g, ..)| Arc::ptr_eq(g, graph))?;
        Some((notes.clone(), composite.clone()))
    }

    /// The name of the private function of a nested graph.
    pub(crate) fn function_of(&mut self, graph: &Arc<Graph>) -> Result<String> {
        if let Some(name) = self.names.get(&Arc::as_ptr(graph)) {
            return Ok(name.clone());
        }
        let text = self.function(graph, &[], None)?;
        let name = match self.texts.get(&text) {
            Some(name) => name.clone(),
            None => {
                let name = format!("@f{}", self.texts.len());
                self.functions.push_str("  func.func private ");
                self.functions.push_str(&name);
                self.functions.push_str(&text);
                self.texts.insert(text, name.clone());
                let results = graph.outputs.iter().map(|&v| graph.ty(v).clone()).collect();
                self.signatures.insert(name.clone(), Region { params: graph.param_types().to_vec(), results });
                name
            }
        };
        self.names.insert(Arc::as_ptr(graph), name.clone());
        self.kept.push(graph.clone());
        Ok(name)
    }
}

/// Prints one node with these operands; gives its results.
fn node(body: &mut Body<'_, '_>, graph: &Graph, node: &Node, inputs: &[Val]) -> Result<Vec<Val>> {
    let types: Vec<_> = node.outputs().map(|v| graph.ty(v).clone()).collect();
    // Compilers multiply sizes without a look at what that gives, or end the process.
    if let Some(ty) = types.iter().find(|ty| ty.bytes() > isize::MAX as usize) {
        bail!(Memory, "out of memory: an intermediate result of {ty} has more bytes than can be addressed");
    }
    match &node.kind {
        Kind::Const(_) | Kind::Dense(_) | Kind::Iota(_) => shape::source(body, &node.kind, &types[0]).map(|v| vec![v]),
        Kind::Unary(_)
        | Kind::Binary(_)
        | Kind::Compare(_)
        | Kind::Select
        | Kind::Clamp
        | Kind::IntegerPow(_)
        | Kind::DivideBy(_)
        | Kind::Convert
        | Kind::Bitcast
        | Kind::ReducePrecision { .. } => elementwise::node(body, &node.kind, inputs, &types[0]).map(|v| vec![v]),
        Kind::Broadcast(_)
        | Kind::Reshape
        | Kind::Transpose(_)
        | Kind::Slice(_)
        | Kind::Pad(_)
        | Kind::Rev(_)
        | Kind::Concat(_)
        | Kind::Barrier => shape::node(body, &node.kind, inputs, &types),
        Kind::DynamicSlice | Kind::DynamicUpdateSlice | Kind::Gather(_) | Kind::Scatter { .. } => {
            index::node(body, &node.kind, inputs, &types[0]).map(|v| vec![v])
        }
        Kind::Reduce { .. } | Kind::ArgReduce { .. } | Kind::ReduceWith { .. } => {
            reduce::node(body, &node.kind, inputs, &types)
        }
        Kind::Dot(dims) => dot::node(body, dims, inputs, &types[0]).map(|v| vec![v]),
        Kind::While { .. } | Kind::Scan { .. } | Kind::Switch(_) | Kind::Call(_) => {
            control::node(body, &node.kind, inputs, &types)
        }
        Kind::ReduceWindow { op, window: w } => {
            window::reduce_window(body, (graph, node), (*op, w), inputs, &types[0]).map(|v| vec![v])
        }
        Kind::Cumulative { .. }
        | Kind::Conv(_)
        | Kind::Sort { .. }
        | Kind::TopK { .. }
        | Kind::Fft { .. }
        | Kind::Linalg(_)
        | Kind::Threefry2x32
        | Kind::Host(_) => library::node(body, &node.kind, inputs, &types),
    }
}
