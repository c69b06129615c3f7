//! Kernels of rows that are read once: softmax, normalisation and the like (`plan/rows.rs` says which values are rows).
//!
//! A team of threads has a row: some lanes of a warp, a warp, or a block. It passes over the row once for the reductions
//! that need no other's result, then for those that need theirs, and so on, and last for what it writes. Elements of arrays
//! that several passes read, and costly functions of them, stay in registers between the passes, as far as there are
//! registers; what does not fit is read or computed again.
//!
//! The order of a reduction is decided by the row's length and the arrays that the group reads: thread t of T takes vectors
//! t, t + T, … of the row's elements one after another, lanes join in halves, far ones first, then warps likewise. Every
//! thread joins the warps' results itself, so that one barrier does. Narrow floats are summed in single precision, as
//! other reductions are. A thread writes an element after all its reads of that element, in the last pass, so that results
//! may take the place of operands that are read at the same place.

use crate::plan::group::COSTLY;
use crate::plan::rows::{Along, Rows};
use crate::print::body::Body;
use crate::print::elementwise::binary;
use crate::print::kernel::{BLOCK, Kernel, finish};
use crate::print::types::{c_type, compute, is_narrow, literal, narrowed, widened};
use ferrax_base::{DType, Result, bail};
use ferrax_loops::{BinaryOp, Graph, Kind, Node, ReduceOp, ValueId};
use std::collections::{BTreeSet, HashMap};

/// Threads of a block at most.
const THREADS: usize = 1024;
/// Elements of a row that a thread of a block takes, if they fit, and of a short row's team.
const LONG: usize = 16;
const SHORT: usize = 8;
/// Elements that a thread keeps at most.
const MOST: usize = 32;
/// Bytes of registers in which a thread keeps elements: where there is a choice of how many threads there are, and else.
const BYTES: usize = 128;
const MOST_BYTES: usize = 192;

/// A reduction along the rows.
struct Reduction<'g> {
    node: &'g Node,
    op: ReduceOp,
    join: BinaryOp,
    /// What it is computed in.
    acc: DType,
    /// The passes over the row before its own.
    level: usize,
}

/// What is written, and by whom.
struct Plan<'g> {
    g: &'g Graph,
    rows: &'g Rows,
    held: &'g dyn Fn(ValueId) -> bool,
    reductions: Vec<Reduction<'g>>,
    /// Arrays read at the element's place in each pass, the last one that writes results.
    loads: Vec<BTreeSet<ValueId>>,
    /// Costly values computed in each pass.
    costly: Vec<BTreeSet<ValueId>>,
    /// What registers keep, with the pass that computes it; none of what is read.
    kept: Vec<(ValueId, Option<usize>)>,
    aligned: &'g dyn Fn(ValueId) -> bool,
    /// Threads of a row, elements of a vector, and vectors that a thread takes.
    team: usize,
    vector: usize,
    steps: usize,
}

/// The kernel of a group. `aligned` says which arrays begin where vectors may; `apart` that no two arrays overlap.
pub fn kernel(
    g: &Graph,
    held: &dyn Fn(ValueId) -> bool,
    rows: &Rows,
    apart: bool,
    aligned: &dyn Fn(ValueId) -> bool,
) -> Result<Kernel> {
    let mut plan = Plan {
        g,
        rows,
        held,
        reductions: Vec::new(),
        loads: Vec::new(),
        costly: Vec::new(),
        kept: Vec::new(),
        aligned,
        team: 1,
        vector: 1,
        steps: 1,
    };
    plan.find_passes()?;
    plan.find_layout();
    plan.print(apart)
}

impl Plan<'_> {
    fn is_element(&self, v: ValueId) -> bool {
        self.rows.of(self.g, v) == Some(Along::Element)
    }

    /// The passes over a row, and what each needs.
    fn find_passes(&mut self) -> Result<()> {
        let g = self.g;
        let mut levels: HashMap<ValueId, usize> = HashMap::new();
        for &i in &self.rows.members {
            let node = &g.nodes[i];
            let mut level = node.inputs.iter().filter_map(|x| levels.get(x)).copied().max().unwrap_or(0);
            if let Kind::Reduce { op, .. } = &node.kind {
                let Some(join) = op.joining() else { bail!(Internal, "{op:?} in a group of rows") };
                let d = g.ty(node.first).dtype;
                let acc = if is_narrow(d) { compute(d) } else { d };
                self.reductions.push(Reduction { node, op: *op, join, acc, level });
                level += 1;
            }
            levels.insert(node.first, level);
        }
        for pass in 0..=self.passes() {
            let (mut loads, mut costly, mut seen) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
            for v in self.targets(pass) {
                self.walk(v, &mut loads, &mut costly, &mut seen);
            }
            self.loads.push(loads);
            self.costly.push(costly);
        }
        Ok(())
    }

    /// Passes that reduce.
    fn passes(&self) -> usize {
        self.reductions.iter().map(|r| r.level + 1).max().unwrap_or(0)
    }

    /// What a pass computes elements of.
    fn targets(&self, pass: usize) -> Vec<ValueId> {
        if pass == self.passes() {
            return self.rows.outputs.iter().copied().filter(|&v| self.is_element(v)).collect();
        }
        self.reductions.iter().filter(|r| r.level == pass).map(|r| r.node.inputs[0]).collect()
    }

    fn walk(
        &self,
        v: ValueId,
        loads: &mut BTreeSet<ValueId>,
        costly: &mut BTreeSet<ValueId>,
        seen: &mut BTreeSet<ValueId>,
    ) {
        if !seen.insert(v) {
            return;
        }
        if (self.held)(v) {
            loads.insert(v);
            return;
        }
        let Some(node) = self.g.maker(v) else { return };
        if node.kind.is_elementwise() && node.kind.cost() >= COSTLY {
            costly.insert(v);
        }
        for &x in &node.inputs {
            if self.rows.operand(self.g, node, x, Along::Element) == Some(Along::Element) {
                self.walk(x, loads, costly, seen);
            }
        }
    }

    /// How many threads have a row, and what they keep.
    fn find_layout(&mut self) {
        let length = self.rows.length;
        let again = |sets: &[BTreeSet<ValueId>], v: ValueId| sets.iter().filter(|s| s.contains(&v)).count() > 1;
        let loads: BTreeSet<ValueId> = self.loads.iter().flatten().copied().collect();
        let costly: BTreeSet<ValueId> = self.costly.iter().flatten().copied().collect();
        let mut kept: Vec<(ValueId, Option<usize>)> =
            loads.iter().filter(|&&v| again(&self.loads, v)).map(|&v| (v, None)).collect();
        for &v in costly.iter().filter(|&&v| again(&self.costly, v)) {
            kept.push((v, self.costly.iter().position(|s| s.contains(&v))));
        }
        let size = |v: ValueId| self.g.ty(v).dtype.size();
        let bytes: usize = kept.iter().map(|k| size(k.0)).sum();
        let fits = BYTES.checked_div(bytes).unwrap_or(MOST).clamp(4, MOST);
        let arrays: Vec<ValueId> = loads.into_iter().chain(self.targets(self.passes())).collect();
        let widest = arrays.iter().map(|&v| size(v)).max().unwrap_or(16);
        self.vector = 16 / widest.clamp(1, 16);
        while !length.is_multiple_of(self.vector) {
            self.vector /= 2;
        }
        if !arrays.iter().all(|&v| (self.aligned)(v)) {
            self.vector = 1;
        }
        self.team = if length <= 32 * fits.min(LONG) {
            length.div_ceil(fits.min(SHORT)).next_power_of_two().min(32)
        } else {
            length.div_ceil(fits.min(LONG)).next_multiple_of(32).min(THREADS)
        };
        self.steps = length.div_ceil(self.team * self.vector);
        let each = self.steps * self.vector;
        let mut room = if each <= MOST + self.vector { MOST_BYTES } else { 0 };
        kept.retain(|k| {
            let fits = each * size(k.0) <= room;
            room -= if fits { each * size(k.0) } else { 0 };
            fits
        });
        self.kept = kept;
    }

    fn print(&self, apart: bool) -> Result<Kernel> {
        let (rows, team) = (self.rows.rows, self.team);
        let block = if team > 32 { team } else { BLOCK as usize };
        let at_once = block / team;
        let mut body = Body::new(self.g, self.held);
        body.largest = rows * self.rows.length;
        body.open(&format!("for (I w = (I)blockIdx.x * {at_once}; w < {rows}; w += (I)gridDim.x * {at_once})"));
        body.line(&format!("const int lane = threadIdx.x % {team};"));
        if at_once == 1 {
            body.line("const bool there = true;");
            body.line("const I r = w;");
        } else {
            body.line(&format!("const bool there = w + threadIdx.x / {team} < {rows};"));
            body.line(&format!("const I r = there ? w + (I)(threadIdx.x / {team}) : {rows} - 1;"));
        }
        body.line(&format!("const I first = r * {};", self.rows.length));
        self.begin(&mut body);
        for pass in 0..self.passes() {
            self.pass(&mut body, pass)?;
            self.reduce(&mut body, pass)?;
        }
        if !self.targets(self.passes()).is_empty() {
            self.pass(&mut body, self.passes())?;
        }
        self.finish_row(&mut body)?;
        body.close();
        let writes: Vec<DType> = self.rows.outputs.iter().map(|&v| self.g.ty(v).dtype).collect();
        let grid = rows.div_ceil(at_once).clamp(1, 1 << 16) as u32;
        Ok(finish(body, &writes, 0, apart, [grid, 1, 1], block as u32).crowded())
    }

    fn pack(&self, v: ValueId) -> String {
        format!("fx_pack<{}, {}>", c_type(self.g.ty(v).dtype), self.vector)
    }

    /// Opens the loop over a thread's vectors; `b` is the first element of one.
    fn open_steps(&self, body: &mut Body<'_>) {
        let each = self.team * self.vector;
        body.line(if self.steps * self.vector <= MOST + self.vector { "#pragma unroll" } else { "#pragma unroll 4" });
        body.open(&format!("for (int k = 0; k < {}; ++k)", self.steps));
        body.line(&format!("const I b = k * {each} + lane * {};", self.vector));
        let all = self.steps * each == self.rows.length;
        body.open(&if all { String::new() } else { format!("if (b < {})", self.rows.length) });
    }

    fn close_steps(body: &mut Body<'_>) {
        body.close();
        body.close();
    }

    /// What is read before the passes, and places of what they keep.
    fn begin(&self, body: &mut Body<'_>) {
        for (n, (v, _)) in self.kept.iter().enumerate() {
            body.line(&format!("{} keep{n}[{}];", self.pack(*v), self.steps));
        }
        if self.kept.iter().all(|k| k.1.is_some()) {
            return;
        }
        self.open_steps(body);
        for (n, (v, _)) in self.kept.iter().enumerate().filter(|(_, k)| k.1.is_none()) {
            let load = self.load(body, *v);
            body.line(&format!("keep{n}[k] = {load};"));
        }
        Self::close_steps(body);
    }

    fn load(&self, body: &mut Body<'_>, v: ValueId) -> String {
        format!("*(const {}*)(p{} + first + b)", self.pack(v), body.pointer(v))
    }

    /// A pass over the row: elements are joined to the pass's reductions, or written.
    fn pass(&self, body: &mut Body<'_>, pass: usize) -> Result<()> {
        let last = pass == self.passes();
        for (n, r) in self.reductions.iter().enumerate().filter(|(_, r)| !last && r.level == pass) {
            body.line(&format!("{} acc{n} = {};", c_type(r.acc), literal(r.op.start(r.acc))));
        }
        self.open_steps(body);
        let keeps = |v: ValueId| self.kept.iter().any(|k| k.0 == v);
        let loads: Vec<ValueId> = self.loads[pass].iter().copied().filter(|&v| !keeps(v)).collect();
        for (n, &v) in loads.iter().enumerate() {
            let load = self.load(body, v);
            body.line(&format!("const {} load{n} = {load};", self.pack(v)));
        }
        let results = if last { self.targets(pass) } else { Vec::new() };
        for (n, &v) in results.iter().enumerate() {
            body.line(&format!("{} out{n};", self.pack(v)));
        }
        // Which vectors of columns are read is known when the statements inside are written, and stands before them.
        let before = std::mem::take(&mut body.text);
        body.line("#pragma unroll");
        body.open(&format!("for (int u = 0; u < {}; ++u)", self.vector));
        body.line("const I c = b + u, i = first + c;");
        let length = self.rows.length;
        body.bind_index(&format!("(I)((U)i / {length}u)"), "r");
        body.bind_index(&format!("(I)((U)i % {length}u)"), "c");
        let at = body.linear("i");
        for (n, &v) in loads.iter().enumerate() {
            body.bind(v, at, &format!("load{n}.x[u]"));
        }
        let computed = |from: &Option<usize>| from.is_none_or(|p| p < pass);
        for (n, (v, _)) in self.kept.iter().enumerate().filter(|(_, k)| computed(&k.1)) {
            body.bind(*v, at, &format!("keep{n}[k].x[u]"));
        }
        let targets = self.targets(pass);
        let names: Vec<String> = targets.iter().map(|&v| body.element(v, at)).collect::<Result<_>>()?;
        for (n, (v, _)) in self.kept.iter().enumerate().filter(|(_, k)| k.1 == Some(pass)) {
            let name = body.element(*v, at)?;
            body.line(&format!("keep{n}[k].x[u] = {name};"));
        }
        if last {
            names.iter().enumerate().for_each(|(n, name)| body.line(&format!("out{n}.x[u] = {name};")));
        } else {
            self.join(body, pass, &names)?;
        }
        body.close();
        let inside = std::mem::replace(&mut body.text, before);
        let inside = self.columns(body, inside);
        body.text.push_str(&inside);
        for (n, &v) in results.iter().enumerate() {
            let number = self.rows.outputs.iter().position(|&o| o == v).unwrap_or(0);
            body.line(&format!("if (there) *({}*)(o{number} + first + b) = out{n};", self.pack(v)));
        }
        Self::close_steps(body);
        Ok(())
    }

    /// Statements that read arrays as long as a row, by the element's number in it, as those that read vectors of them.
    fn columns(&self, body: &mut Body<'_>, mut inside: String) -> String {
        if self.vector == 1 {
            return inside;
        }
        for k in 0..body.reads.len() {
            let (v, one) = (body.reads[k], format!("p{k}[c]"));
            if self.g.ty(v).size() == self.rows.length && (self.aligned)(v) && inside.contains(&one) {
                body.line(&format!("const {0} column{k} = *(const {0}*)(p{k} + b);", self.pack(v)));
                inside = inside.replace(&one, &format!("column{k}.x[u]"));
            }
        }
        inside
    }

    /// Joins elements to the reductions of a pass.
    fn join(&self, body: &mut Body<'_>, pass: usize, names: &[String]) -> Result<()> {
        let reductions = self.reductions.iter().enumerate().filter(|(_, r)| r.level == pass);
        for ((n, r), name) in reductions.zip(names) {
            let element = widened(self.g.ty(r.node.first).dtype, name);
            let joined = binary(r.join, &format!("acc{n}"), &element, r.acc)?;
            body.line(&format!("acc{n} = {joined};"));
        }
        Ok(())
    }

    /// Joins what the threads of a team have of a pass's reductions, so that each has the results.
    fn reduce(&self, body: &mut Body<'_>, pass: usize) -> Result<()> {
        let now: Vec<(usize, &Reduction<'_>)> =
            self.reductions.iter().enumerate().filter(|(_, r)| r.level == pass).collect();
        self.halves(body, &now, self.team.min(32))?;
        let warps = self.team / 32;
        if warps > 1 {
            for (n, r) in &now {
                body.line(&format!("__shared__ {} part{n}[{warps}];", c_type(r.acc)));
                body.line(&format!("if (lane % 32 == 0) part{n}[lane / 32] = acc{n};"));
            }
            body.line("__syncthreads();");
            let lanes = warps.next_power_of_two();
            for (n, r) in &now {
                let start = literal(r.op.start(r.acc));
                body.line(&format!("acc{n} = lane % {lanes} < {warps} ? part{n}[lane % {lanes}] : {start};"));
            }
            self.halves(body, &now, lanes)?;
        }
        for (n, r) in &now {
            let d = self.g.ty(r.node.first).dtype;
            body.line(&format!("const {} red{n} = {};", c_type(d), narrowed(d, &format!("acc{n}"))));
            body.known.insert(r.node.first, format!("red{n}"));
        }
        self.find_numbers(body)
    }

    fn halves(&self, body: &mut Body<'_>, now: &[(usize, &Reduction<'_>)], lanes: usize) -> Result<()> {
        if lanes == 1 {
            return Ok(());
        }
        body.line("#pragma unroll");
        body.open(&format!("for (int d = {}; d > 0; d /= 2)", lanes / 2));
        for (n, r) in now {
            body.line(&format!("const {} other{n} = fx_shuffle_xor(acc{n}, d);", c_type(r.acc)));
            let joined = binary(r.join, &format!("acc{n}"), &format!("other{n}"), r.acc)?;
            body.line(&format!("acc{n} = {joined};"));
        }
        body.close();
        Ok(())
    }

    /// Computes the members that have one number a row, as far as reductions are known.
    fn find_numbers(&self, body: &mut Body<'_>) -> Result<()> {
        let at = body.linear("r");
        for &i in &self.rows.members {
            let node = &self.g.nodes[i];
            let v = node.first;
            let ready = node.inputs.iter().all(|x| body.known.contains_key(x) || !self.is_member(*x));
            if self.is_element(v) || body.known.contains_key(&v) || !ready || matches!(node.kind, Kind::Reduce { .. }) {
                continue;
            }
            let name = body.element(v, at)?;
            body.known.insert(v, name);
        }
        Ok(())
    }

    fn is_member(&self, v: ValueId) -> bool {
        self.rows.members.iter().any(|&i| self.g.nodes[i].first == v)
    }

    /// Writes the numbers of a row.
    fn finish_row(&self, body: &mut Body<'_>) -> Result<()> {
        let at = body.linear("r");
        for (n, &v) in self.rows.outputs.iter().enumerate().filter(|(_, v)| !self.is_element(**v)) {
            let name = body.element(v, at)?;
            body.line(&format!("if (lane == 0 && there) o{n}[r] = {name};"));
        }
        if self.team > 32 && self.passes() == 1 {
            // With more passes, a barrier stands between a pass's reads of what warps have and the next row's writes.
            body.line("__syncthreads();");
        }
        Ok(())
    }
}
