//! Reductions over axes.
//!
//! What is reduced is `outputs` × `length` elements. Short reductions, and those whose elements of one result lie apart, are
//! folded by a thread each, neighbours reading neighbours; rows of some length by a warp each, long ones by a block each.
//! Where there are too few results to keep a GPU busy, each is cut into pieces, whose results a second kernel joins. The
//! shape alone decides all this, so that a reduction gives the same bits in every run.
//!
//! Narrow floats are summed in single precision and rounded once.

use crate::plan::BufferId;
use crate::plan::frame::Frame;
use crate::print::body::{At, Body, inlines};
use crate::print::convert::convert;
use crate::print::elementwise::binary;
use crate::print::kernel::{BLOCK, Kernel, NAME, blocks, finish};
use crate::print::types::{c_type, compute, is_narrow, literal, narrowed, widened};
use ferrax_base::{DType, Result, Scalar, bail, error};
use ferrax_loops::{BinaryOp, Graph, Kind, Node, ReduceOp, ValueId};
use std::fmt::Write;

/// Elements up to which a thread folds a row by itself.
const SHORT: usize = 32;
/// Elements up to which a warp folds a row.
const WARP_ROW: usize = 1024;
/// Threads that keep a GPU busy.
const BUSY: usize = 1 << 18;
/// Elements that a thread folds at least before work is cut into more pieces.
const PIECE: usize = 64;

/// Length of a loop's text up to which it is unrolled.
const UNROLLED: usize = 512;

/// How values are folded: a state of some parts, joined by a function of the kernel's text.
struct Fold {
    /// The dtypes of the state's parts.
    parts: Vec<DType>,
    /// What the parts begin with; without it a fold begins with its first element.
    start: Option<Vec<String>>,
    /// The function's body: joins `b0`, … , which come later, to `a0`, ….
    join: String,
}

/// Which elements belong to which result.
struct Extent {
    /// Extents of the operand's axes, neighbours that are both kept or both reduced as one, with whether they are reduced.
    axes: Vec<(usize, bool)>,
    outputs: usize,
    length: usize,
}

impl Extent {
    fn of(shape: &[usize], reduced: &[usize]) -> Extent {
        let mut axes: Vec<(usize, bool)> = Vec::new();
        for (k, &n) in shape.iter().enumerate().filter(|(_, n)| **n != 1) {
            let goes = reduced.contains(&k);
            match axes.last_mut() {
                Some(last) if last.1 == goes => last.0 *= n,
                _ => axes.push((n, goes)),
            }
        }
        let count = |goes: bool| axes.iter().filter(|a| a.1 == goes).map(|a| a.0).product();
        Extent { outputs: count(false), length: count(true), axes }
    }

    fn work(&self) -> Work {
        let rows = self.axes.last().is_none_or(|a| a.1);
        Work { outputs: self.outputs, length: self.length, rows }
    }

    /// The place of the operand's element `r` of result `o`.
    fn place(&self, body: &mut Body<'_>, o: &str, r: &str) -> At {
        let (mut at_o, mut at_r) = {
            let shape = |goes: bool| self.axes.iter().filter(|a| a.1 == goes).map(|a| a.0).collect::<Vec<usize>>();
            let (o, r) = (body.linear(o), body.linear(r));
            (body.axes(o, &shape(false)).into_iter(), body.axes(r, &shape(true)).into_iter())
        };
        let axes: Vec<String> =
            self.axes.iter().map(|a| if a.1 { at_r.next() } else { at_o.next() }.unwrap_or_default()).collect();
        let shape: Vec<usize> = self.axes.iter().map(|a| a.0).collect();
        let place = body.at_axes(axes);
        let number = body.number(place, &shape);
        body.linear(&number)
    }
}

/// How much there is to reduce, and whether the elements of a result lie side by side.
#[derive(Clone, Copy)]
struct Work {
    outputs: usize,
    length: usize,
    rows: bool,
}

/// Who folds a result, or a piece of one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Team {
    Thread,
    Warp,
    Block,
}

impl Team {
    fn size(self) -> usize {
        match self {
            Team::Thread => 1,
            Team::Warp => 32,
            Team::Block => BLOCK as usize,
        }
    }
}

/// What a kernel of a reduction does.
struct Pass<'p> {
    fold: &'p Fold,
    team: Team,
    outputs: usize,
    length: usize,
    /// Pieces that each result is cut into.
    pieces: usize,
    /// Whether neighbouring threads fold neighbouring results.
    columns: bool,
}

/// `Reduce`.
pub fn reduce(f: &mut Frame<'_>, node: &Node, op: ReduceOp, axes: &[usize]) -> Result<()> {
    let (x, d) = (node.inputs[0], f.dtype(node.inputs[0]));
    let Some(join) = op.joining() else { bail!(NotImplemented, "the CUDA engine has no reduction by {op:?}") };
    let acc = if is_narrow(d) { compute(d) } else { d };
    let extent = Extent::of(&f.g.ty(x).shape, axes);
    let start = if extent.length == 0 { op.identity(acc) } else { op.start(acc) };
    let fold = Fold {
        parts: vec![acc],
        start: Some(vec![literal(start)]),
        join: format!("a0 = {};", binary(join, "a0", "b0", acc)?),
    };
    let load = |body: &mut Body<'_>, o: &str, r: &str| {
        let at = extent.place(body, o, r);
        let element = body.element(x, at)?;
        Ok(vec![widened(d, &element)])
    };
    let store = move |_: &mut Body<'_>, o: &str| Ok(vec![format!("o0[{o}] = {};", narrowed(d, "a0"))]);
    run(f, node, extent.work(), &fold, &load, &store)
}

/// `ArgReduce`: the first of the largest, or smallest; NaN comes before all.
pub fn arg_reduce(f: &mut Frame<'_>, node: &Node, max: bool, axis: usize) -> Result<()> {
    let (x, d) = (node.inputs[0], f.dtype(node.inputs[0]));
    if !(d.is_number() || d.is_bool()) {
        bail!(NotImplemented, "the CUDA engine has no ArgReduce of {d}");
    }
    let acc = if is_narrow(d) { compute(d) } else { d };
    let extent = Extent::of(&f.g.ty(x).shape, &[axis]);
    let order = if max { ">" } else { "<" };
    let better = |a: &str, b: &str| {
        if d.is_complex() {
            let (x, y) = if max { (b, a) } else { (a, b) };
            let none = |z: &str| format!("({z}.re != {z}.re || {z}.im != {z}.im)");
            // Without NaN the order is total.
            return format!("({} ? !{1} : !{1} && fx_c_less({x}, {y}))", none(a), none(b));
        }
        format!("({a} {order} {b} || ({a} != {a} && {b} == {b}))")
    };
    // An index below 0 stands for no element.
    let join = format!(
        "if (b1 >= 0 && (a1 < 0 || {} || (!{} && b1 < a1))) {{ a0 = b0; a1 = b1; }}",
        better("b0", "a0"),
        better("a0", "b0")
    );
    let start = vec![literal(Scalar::zero(acc)), literal(Scalar::from_i64(DType::I64, -1))];
    let fold = Fold { parts: vec![acc, DType::I64], start: Some(start), join };
    let load = |body: &mut Body<'_>, o: &str, r: &str| {
        let at = extent.place(body, o, r);
        let element = body.element(x, at)?;
        Ok(vec![widened(d, &element), format!("(long long){r}")])
    };
    let index = f.dtype(node.first);
    let store = move |_: &mut Body<'_>, o: &str| Ok(vec![format!("o0[{o}] = {};", convert("a1", DType::I64, index)?)]);
    run(f, node, extent.work(), &fold, &load, &store)
}

/// `ReduceWith`: elements are folded in order, each piece by one thread; the initial values come before the first.
pub fn reduce_with(f: &mut Frame<'_>, node: &Node, with: &Graph, axes: &[usize]) -> Result<()> {
    let n = node.inputs.len() / 2;
    let g = f.g;
    let (xs, inits) = (node.inputs[..n].to_vec(), node.inputs[n..].to_vec());
    let extent = Extent::of(&g.ty(xs[0]).shape, axes);
    let fold = Fold {
        parts: xs.iter().map(|&x| g.ty(x).dtype).collect(),
        start: None,
        join: joined_by(&crate::plan::simpler(with)?, n)?,
    };
    let load = |body: &mut Body<'_>, o: &str, r: &str| {
        let at = extent.place(body, o, r);
        xs.iter().map(|&x| body.element(x, at)).collect()
    };
    let store = move |body: &mut Body<'_>, o: &str| {
        let scalar = body.scalar();
        let mut lines = Vec::new();
        for (k, &v) in inits.iter().enumerate() {
            let element = body.element(v, scalar)?;
            lines.push(format!("{} c{k} = {element};", c_type(body.g.ty(v).dtype)));
        }
        let both: Vec<String> = ["c", "a"].iter().flat_map(|s| (0..n).map(move |k| format!("{s}{k}"))).collect();
        // Without elements nothing is joined to the initial values.
        lines.push(format!("if (some) {NAME}_join({});", both.join(", ")));
        lines.extend((0..n).map(|k| format!("o{k}[{o}] = c{k};")));
        Ok(lines)
    };
    run(f, node, extent.work(), &fold, &load, &store)
}

/// A graph over rank-0 values as a function's body.
fn joined_by(with: &Graph, n: usize) -> Result<String> {
    if let Some(node) = with.nodes.iter().find(|node| !inlines(node) || matches!(node.kind, Kind::Gather(_))) {
        bail!(NotImplemented, "the CUDA engine has no reduction by a function with {:?} in it", node.kind);
    }
    let held = |_: ValueId| false;
    let mut body = Body::new(with, &held);
    let scalar = body.scalar();
    for (s, first) in [("a", 0), ("b", n)] {
        (0..n).for_each(|k| body.bind(ValueId((first + k) as u32), scalar, &format!("{s}{k}")));
    }
    let mut lines = Vec::new();
    for (k, &v) in with.outputs.iter().enumerate() {
        let element = body.element(v, scalar)?;
        lines.push((k, format!("const {} r{k} = {element};", c_type(with.ty(v).dtype))));
    }
    lines.iter().for_each(|(_, line)| body.line(line));
    lines.iter().for_each(|(k, _)| body.line(&format!("a{k} = r{k};")));
    Ok(format!("typedef int I;\n  typedef unsigned U;\n{}", body.text))
}

/// The parts of element `r` of result `o`, by their names in the kernel.
type Load<'l> = dyn Fn(&mut Body<'_>, &str, &str) -> Result<Vec<String>> + 'l;
/// What is done with the state of result `o`.
type Store<'l> = dyn Fn(&mut Body<'_>, &str) -> Result<Vec<String>> + 'l;

/// A sum of `length` numbers for each of the elements of a node's only result. `rows` says whether a result's numbers lie
/// side by side.
pub fn sums(
    f: &mut Frame<'_>,
    node: &Node,
    (length, rows): (usize, bool),
    acc: DType,
    load: &dyn Fn(&mut Body<'_>, &str, &str) -> Result<String>,
) -> Result<()> {
    let fold = Fold {
        parts: vec![acc],
        start: Some(vec![literal(ReduceOp::Sum.identity(acc))]),
        join: format!("a0 = {};", binary(BinaryOp::Add, "a0", "b0", acc)?),
    };
    let out = f.dtype(node.first);
    let work = Work { outputs: f.g.ty(node.first).size(), length, rows };
    let store = move |_: &mut Body<'_>, o: &str| Ok(vec![format!("o0[{o}] = {};", convert("a0", acc, out)?)]);
    run(f, node, work, &fold, &|b, o, r| Ok(vec![load(b, o, r)?]), &store)
}

/// The kernels of a reduction.
fn run(f: &mut Frame<'_>, node: &Node, work: Work, fold: &Fold, load: &Load<'_>, store: &Store<'_>) -> Result<()> {
    let results: Vec<BufferId> = node.outputs().map(|v| f.result(v)).collect();
    let dtypes: Vec<DType> = node.outputs().map(|v| f.dtype(v)).collect();
    let Work { outputs, length, rows } = work;
    let in_order = fold.start.is_none();
    let team = if !rows || length <= SHORT || in_order {
        Team::Thread
    } else if length <= WARP_ROW {
        Team::Warp
    } else {
        Team::Block
    };
    let wanted = (BUSY / (outputs * team.size()).max(1)).min(length / (PIECE * team.size()));
    let mut first = Pass { fold, team, outputs, length, pieces: wanted.max(1), columns: !rows };
    // The last piece has elements, too.
    first.pieces = length.div_ceil(first.piece()).max(1);
    if first.pieces == 1 {
        let kernel = f.print(|body| first.print(body, &dtypes, false, load, store))?;
        return f.launch(kernel, &results, &[]);
    }
    let size = |d: &DType| outputs * first.pieces * d.size();
    let partial: Vec<BufferId> = fold.parts.iter().map(|d| f.temporary(size(d))).collect();
    let pieces = first.pieces;
    let keep = |_: &mut Body<'_>, o: &str| Ok((0..fold.parts.len()).map(|k| format!("o{k}[{o}] = a{k};")).collect());
    let kernel = f.print(|body| first.print(body, &fold.parts, true, load, &keep))?;
    f.launch(kernel, &partial, &[])?;
    let team = if in_order || pieces <= SHORT {
        Team::Thread
    } else if pieces <= WARP_ROW {
        Team::Warp
    } else {
        Team::Block
    };
    let second = Pass { fold, team, outputs, length: pieces, pieces: 1, columns: false };
    let all: Vec<DType> = dtypes.iter().chain(&fold.parts).copied().collect();
    let count = dtypes.len();
    let kernel = f.print(|body| {
        second.print(
            body,
            &all,
            false,
            &|b, o, r| {
                let number = b.index(format!("{o} * {pieces} + {r}"));
                Ok((0..fold.parts.len()).map(|k| format!("o{}[{number}]", count + k)).collect())
            },
            store,
        )
    })?;
    let arrays: Vec<BufferId> = results.into_iter().chain(partial).collect();
    f.launch(kernel, &arrays, &[])
}

impl Pass<'_> {
    fn piece(&self) -> usize {
        self.length.div_ceil(self.pieces).max(1)
    }

    /// A kernel that folds every piece of every result.
    fn print(
        &self,
        mut body: Body<'_>,
        writes: &[DType],
        partial: bool,
        load: &Load<'_>,
        store: &Store<'_>,
    ) -> Result<Kernel> {
        let (team, total) = (self.team.size(), self.outputs * self.pieces);
        let parts = self.fold.parts.len();
        body.largest = body.largest.max(total.saturating_mul(self.piece()));
        match self.team {
            Team::Block => body.open(&format!("for (I w = blockIdx.x; w < {total}; w += gridDim.x)")),
            _ => {
                let me = |x: &str| if team == 1 { x.to_owned() } else { format!("({x}) / {team}") };
                let first = me("(I)blockIdx.x * blockDim.x + threadIdx.x");
                body.open(&format!("for (I w = {first}; w < {total}; w += {})", me("(I)gridDim.x * blockDim.x")));
            }
        }
        let (o, c) = match (self.pieces, self.columns) {
            (1, _) => ("w".to_owned(), "0".to_owned()),
            (pieces, false) => (body.index(format!("w / {pieces}")), body.index(format!("w % {pieces}"))),
            (_, true) => (body.index(format!("w % {}", self.outputs)), body.index(format!("w / {}", self.outputs))),
        };
        let (begin, end) = self.bounds(&mut body, &c);
        for k in 0..parts {
            let start = self.fold.start.as_ref().map_or(String::new(), |s| format!(" = {}", s[k]));
            body.line(&format!("{} a{k}{start};", c_type(self.fold.parts[k])));
        }
        let lane = if team == 1 { "0".to_owned() } else { format!("threadIdx.x % {team}") };
        if self.fold.start.is_none() {
            body.line("bool some = false;");
        }
        let first = if team == 1 { begin } else { format!("{begin} + (I)({lane})") };
        let before = std::mem::take(&mut body.text);
        body.open(&format!("for (I r = {first}; r < {end}; r += {team})"));
        let elements = load(&mut body, &o, "r")?;
        self.join(&mut body, &elements);
        body.close();
        let inside = std::mem::replace(&mut body.text, before);
        if inside.len() < UNROLLED {
            // So many loads are on their way at a time.
            body.line("#pragma unroll 8");
        }
        body.text.push_str(&inside);
        self.together(&mut body, &lane);
        let place = if partial && self.pieces > 1 { body.index(format!("{o} * {} + {c}", self.pieces)) } else { o };
        if team > 1 {
            body.open(&format!("if ({lane} == 0)"));
        }
        let lines = store(&mut body, &place)?;
        lines.iter().for_each(|line| body.line(line));
        if team > 1 {
            body.close();
        }
        if self.team == Team::Block {
            body.line("__syncthreads();");
        }
        body.close();
        let threads = total * team;
        let grid = if self.team == Team::Block { total.clamp(1, 1 << 16) as u32 } else { blocks(threads) };
        let mut kernel = finish(body, writes, 0, true, [grid, 1, 1], BLOCK);
        kernel.text = self.function()? + &kernel.text;
        Ok(kernel)
    }

    fn bounds(&self, body: &mut Body<'_>, c: &str) -> (String, String) {
        if self.pieces == 1 {
            return ("0".to_owned(), self.length.to_string());
        }
        let piece = self.piece();
        let begin = body.index(format!("{c} * {piece}"));
        let end = body.index(format!("{begin} + {piece} < {0} ? {begin} + {piece} : {0}", self.length));
        (begin, end)
    }

    /// Joins elements to the state.
    fn join(&self, body: &mut Body<'_>, elements: &[String]) {
        let state: Vec<String> = (0..elements.len()).map(|k| format!("a{k}")).collect();
        let call = format!("{NAME}_join({}, {});", state.join(", "), elements.join(", "));
        if self.fold.start.is_some() {
            body.line(&call);
            return;
        }
        let set: Vec<String> = elements.iter().enumerate().map(|(k, e)| format!("a{k} = {e};")).collect();
        body.line(&format!("if (some) {call} else {{ {} some = true; }}", set.join(" ")));
    }

    /// Joins the states of a team; the first thread has the result.
    fn together(&self, body: &mut Body<'_>, lane: &str) {
        let parts = self.fold.parts.len();
        let list = |f: &dyn Fn(usize) -> String| (0..parts).map(f).collect::<Vec<_>>().join(", ");
        let halve = |body: &mut Body<'_>| {
            body.open("for (int d = 16; d > 0; d /= 2)");
            for k in 0..parts {
                body.line(&format!("const {} b{k} = fx_shuffle(a{k}, d);", c_type(self.fold.parts[k])));
            }
            let (a, b) = (list(&|k| format!("a{k}")), list(&|k| format!("b{k}")));
            body.line(&format!("{NAME}_join({a}, {b});"));
            body.close();
        };
        if self.team == Team::Thread {
            return;
        }
        halve(body);
        if self.team == Team::Warp {
            return;
        }
        for k in 0..parts {
            body.line(&format!("__shared__ {} s{k}[{}];", c_type(self.fold.parts[k]), BLOCK / 32));
        }
        body.open("if (threadIdx.x % 32 == 0)");
        (0..parts).for_each(|k| body.line(&format!("s{k}[threadIdx.x / 32] = a{k};")));
        body.close();
        body.line("__syncthreads();");
        body.open("if (threadIdx.x < 32)");
        for k in 0..parts {
            let start = self.fold.start.as_ref().map_or(String::new(), |s| s[k].clone());
            body.line(&format!("a{k} = {lane} < {} ? s{k}[{lane}] : {start};", BLOCK / 32));
        }
        halve(body);
        body.close();
    }

    fn function(&self) -> Result<String> {
        let mut params = Vec::new();
        for (letter, by) in [("a", "&"), ("b", "")] {
            for (k, d) in self.fold.parts.iter().enumerate() {
                params.push(format!("{}{by} {letter}{k}", c_type(*d)));
            }
        }
        let mut text = String::new();
        write!(text, "FX void {NAME}_join({}) {{\n  {}\n}}\n", params.join(", "), self.fold.join)
            .map_err(|e| error!(Internal, "{e}"))?;
        Ok(text)
    }
}
