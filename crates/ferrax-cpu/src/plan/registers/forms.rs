//! What the values of a loop's body are: lanes of a register, elements one by one, registers of them, or an array in memory.
//!
//! Scalars, and the vectors of the one length that the loop has, are lanes. Other small values are cells: each element
//! is a scalar of its own, so that slices, concatenations and broadcasts of them cost nothing, or they fill registers, as
//! many as they need. Loops are planned both ways, and the cheaper program is taken. Arrays that are only read and written
//! at an index stay where they are (`windows.rs`).
//! Read next: `shapes.rs` for nodes that move elements, `cells.rs` for those that join them, `packed.rs`, `windows.rs`.

use super::cost;
use super::packed::Places;
use super::translate::Translator;
use crate::fused::registers::Part;
use crate::machine::loops::assemble::{Op, Val};
use crate::machine::loops::families::{Two, Width};
use crate::plan::constants;
use ferrax_base::DType;
use ferrax_loops::{Graph, Kind, Node, Type, ValueId};
use smallvec::SmallVec;

/// Elements that a value of cells has at most, and one whose cells are registers.
pub(super) const MOST_CELLS: usize = 64;
const MOST_PACKED: usize = 128;
/// Steps of a scan inside of a loop's body that are done one after the other in it.
pub(super) const MOST_TURNS: usize = 16;
/// What a branch costs that is left out by a jump where it is not chosen.
const WORTH_A_JUMP: f64 = 24.0;
/// Elements of a value that are apart even where others fill registers.
pub(super) const FEW_CELLS: usize = 4;

/// What small values of a loop are, scalars aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Vectors of the first length that there is, and cells.
    Vectors,
    /// Cells.
    Cells,
    /// Cells, which are registers of elements where there are more than a few.
    Packed,
}

/// Scalars, or registers, of one value.
pub(super) type Cells = SmallVec<[Val; 8]>;

/// A value of a body.
#[derive(Clone, Debug)]
pub(super) enum Form {
    /// A scalar, or the elements of a vector.
    Lanes(Val),
    /// Scalars, or registers of so many elements, in row-major order; what is in the last one beyond them is of no use.
    Cells(Cells, usize),
    /// An array after this many writes.
    Array { array: usize, version: u32 },
    /// Nothing reads it.
    Dead,
}

impl Form {
    pub fn lanes(&self) -> Option<Val> {
        match self {
            Form::Lanes(v) => Some(*v),
            _ => None,
        }
    }

    /// Number `i` of the cells; a scalar is every one.
    pub fn nth(&self, i: usize) -> Option<Val> {
        match self {
            Form::Lanes(v) => Some(*v),
            Form::Cells(all, _) => all.get(i).copied(),
            _ => None,
        }
    }
}

/// What the values of a type are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    Scalar,
    Vector,
    Cells(usize),
}

impl Translator {
    /// What the values of a type are, if they fit at all.
    pub fn fit(&mut self, ty: &Type) -> Option<Fit> {
        self.lanes(ty.dtype)?;
        match ty.size() {
            0 => None,
            1 => Some(Fit::Scalar),
            n if self.style == Style::Vectors && (self.elements == 1 || self.elements == n) => {
                self.elements = n;
                Some(Fit::Vector)
            }
            n if n <= if self.style == Style::Packed { MOST_PACKED } else { MOST_CELLS } => {
                self.has_cells = true;
                if self.per(n) > 1 {
                    self.widest = self.widest.max(n);
                }
                Some(Fit::Cells(n))
            }
            _ => None,
        }
    }

    /// The cells of a type, each by its first element; `apart` from each other, or as many as registers hold.
    pub fn parts(&mut self, ty: &Type, apart: bool) -> Option<Vec<(usize, Part)>> {
        Some(match self.fit(ty)? {
            Fit::Scalar => vec![(0, Part::One)],
            Fit::Vector => vec![(0, Part::Turn)],
            Fit::Cells(n) if apart || self.per(n) == 1 => (0..n).map(|i| (i, Part::One)).collect(),
            Fit::Cells(n) => self.groups(n).map(|g| (g.start, Part::Few(g.len()))).collect(),
        })
    }

    /// The value of a type that has the cells of such parts.
    pub fn form_of(&mut self, ty: &Type, all: Cells) -> Option<Form> {
        match self.fit(ty)? {
            Fit::Cells(n) => {
                let per = if all.len() == n { 1 } else { self.per(n) };
                self.packed(n, Form::Cells(all, per))
            }
            _ => all.first().copied().map(Form::Lanes),
        }
    }

    /// Translates a graph with its parameters bound to `args`; gives its outputs, or nothing if it does not fit.
    pub fn graph(&mut self, g: &Graph, args: &[Form]) -> Option<Vec<Form>> {
        let mut map: Vec<Form> = args.to_vec();
        let live = ferrax_loops::passes::live_nodes(g);
        for (node, live) in g.nodes.iter().zip(live) {
            if !live {
                map.extend(node.outputs().map(|_| Form::Dead));
                continue;
            }
            let x: SmallVec<[Form; 4]> = node.inputs.iter().map(|v| map[v.0 as usize].clone()).collect();
            match &node.kind {
                Kind::Call(inner) => map.extend(self.graph(&constants::fold(inner.clone()), &x)?),
                Kind::Switch(branches) => map.extend(self.switch(branches, &x)?),
                Kind::Scan { length, .. } if *length <= MOST_TURNS => map.extend(self.turns(g, node, &x)?),
                Kind::Scan { .. } | Kind::While { .. } => map.extend(self.inner(node, &x)?),
                Kind::Threefry2x32 => map.extend(self.cipher(g.ty(node.first), &x)?),
                Kind::Linalg(op) => map.extend(self.matrices(*op, g, node, &x)?),
                _ if node.results != 1 => return None,
                _ => map.push(self.form(g, node, &x)?),
            }
        }
        Some(g.outputs.iter().map(|v| map[v.0 as usize].clone()).collect())
    }

    /// All steps of a short scan: its results.
    fn turns(&mut self, g: &Graph, node: &Node, x: &[Form]) -> Option<Vec<Form>> {
        let Kind::Scan { body, length, reverse, consts, carry } = &node.kind else { return None };
        let body = &*constants::fold(body.clone());
        let (first, mut state) = (consts + carry, x[*consts..consts + carry].to_vec());
        let mut stacked: Vec<Vec<Form>> = vec![Vec::new(); body.outputs.len() - carry];
        for step in 0..*length {
            let i = if *reverse { length - 1 - step } else { step };
            let mut args = x[..*consts].to_vec();
            args.append(&mut state);
            for (x, ty) in x[first..].iter().zip(&body.types[first..body.params]) {
                args.push(self.slice(x, ty, i)?);
            }
            state = self.graph(body, &args)?;
            stacked.iter_mut().zip(state.split_off(*carry)).for_each(|(all, y)| all.push(y));
        }
        for (mut all, out) in stacked.into_iter().zip(node.outputs().skip(*carry)) {
            if *reverse {
                all.reverse();
            }
            state.push(self.stack(&all, g.ty(out)).unwrap_or(Form::Dead));
        }
        Some(state)
    }

    /// Number `i` of the slices along the first axis, of a type.
    fn slice(&mut self, x: &Form, ty: &Type, i: usize) -> Option<Form> {
        let n = ty.size();
        if self.is_whole(x) {
            return None;
        }
        Some(match self.fit(ty)? {
            Fit::Scalar => Form::Lanes(self.picked(x, i..=i)?),
            Fit::Vector => return None,
            Fit::Cells(_) => {
                let groups = self.groups(n);
                let cells = groups.map(|group| self.picked(x, i * n + group.start..i * n + group.end));
                Form::Cells(cells.collect::<Option<_>>()?, self.per(n))
            }
        })
    }

    /// Values along a new first axis, as one of a type.
    fn stack(&mut self, all: &[Form], ty: &Type) -> Option<Form> {
        if all.iter().any(|x| self.is_whole(x)) {
            return None;
        }
        let n = ty.size() / all.len().max(1);
        let places = all.iter().flat_map(|x| (0..n).map(move |i| (x, i)));
        let places: Option<Places> = places.map(|(x, i)| self.place(x, i)).collect();
        Some(match self.fit(ty)? {
            Fit::Scalar => all.first()?.clone(),
            Fit::Vector => return None,
            Fit::Cells(n) => Form::Cells(self.together(&places?)?, self.per(n)),
        })
    }

    /// Whether no single element of a value is known.
    pub fn is_whole(&self, form: &Form) -> bool {
        match form {
            Form::Lanes(v) => self.vector[*v as usize],
            Form::Cells(..) => false,
            _ => true,
        }
    }

    /// One node of one result.
    fn form(&mut self, g: &Graph, node: &Node, x: &[Form]) -> Option<Form> {
        if let Some(found) = self.window(g, node, x) {
            return found;
        }
        let ty = g.ty(node.first);
        let fit = self.fit(ty)?;
        let apart = matches!(fit, Fit::Cells(_)) || x.iter().any(|f| f.lanes().is_none()) || joins_elements(&node.kind);
        if fit != Fit::Vector && apart {
            let all = self.cells(g, node, x)?;
            return Some(if fit == Fit::Scalar { Form::Lanes(all[0]) } else { Form::Cells(all, self.per(ty.size())) });
        }
        if fit == Fit::Scalar && matches!(node.kind, Kind::Iota(_)) {
            return Some(Form::Lanes(self.constant(0)));
        }
        let x: SmallVec<[Val; 4]> = x.iter().map(Form::lanes).collect::<Option<_>>()?;
        // A vector has no single element to give.
        let wide = x.iter().any(|&v| self.vector[v as usize]);
        (fit == Fit::Vector || !wide).then(|| self.node(g, node, &x))?.map(Form::Lanes)
    }

    /// A choice among branches: all are computed, those left out that take long, but only the chosen one's writes to arrays
    /// are done.
    fn switch(&mut self, branches: &[std::sync::Arc<Graph>], x: &[Form]) -> Option<Vec<Form>> {
        let which = x[0].lanes()?;
        let args = &x[1..];
        let last = branches.len() - 1;
        let outer = self.guard;
        let before: Vec<u32> = self.arrays.iter().map(|a| a.version).collect();
        let mut chosen: Option<Vec<Form>> = None;
        for (k, branch) in branches.iter().enumerate() {
            let mine = self.is_branch(which, k, last)?;
            self.guard = Some(match outer {
                Some(outer) => self.two(Two::And, outer, mine)?,
                None => mine,
            });
            let now: Vec<Form> = args.iter().map(|f| self.current(f, &before)).collect();
            let first = self.ops.len();
            let outs = self.graph(&constants::fold(branch.clone()), &now)?;
            if self.number(mine).is_none() && cost(&self.ops[first..]) >= WORTH_A_JUMP {
                self.ops.insert(first, Op::Skip { which: mine });
                self.ops.push(Op::Join);
                self.branches.push(first..self.ops.len());
            }
            chosen = Some(match chosen {
                None => outs,
                Some(so_far) => {
                    so_far.iter().zip(&outs).map(|(a, b)| self.choose_form(mine, a, b)).collect::<Option<_>>()?
                }
            });
        }
        self.guard = outer;
        let chosen = chosen?;
        // An array must be in the state that all branches leave.
        let settled = chosen.iter().all(|f| match f {
            Form::Array { array, version } => self.arrays[*array].version == *version,
            _ => true,
        });
        settled.then_some(chosen)
    }

    /// Whether the clamped index is `k`.
    fn is_branch(&mut self, which: Val, k: usize, last: usize) -> Option<Val> {
        let number = self.integer(k as i64);
        let one = self.constant(1);
        match k {
            _ if last == 0 => Some(one),
            0 => {
                let more = self.two(Two::GtInt, which, number)?;
                self.two(Two::Xor, more, one)
            }
            _ if k == last => {
                let before = self.integer(k as i64 - 1);
                self.two(Two::GtInt, which, before)
            }
            _ => self.two(Two::EqInt, which, number),
        }
    }

    /// An array as the branches before left it, whose writes are not done if this one is chosen.
    fn current(&self, f: &Form, before: &[u32]) -> Form {
        match *f {
            Form::Array { array, version } if version == before[array] => {
                Form::Array { array, version: self.arrays[array].version }
            }
            _ => f.clone(),
        }
    }

    fn choose_form(&mut self, which: Val, on_false: &Form, on_true: &Form) -> Option<Form> {
        match (on_false, on_true) {
            (Form::Lanes(a), Form::Lanes(b)) => self.choose(which, *a, *b).map(Form::Lanes),
            (Form::Cells(a, per), Form::Cells(b, _)) => {
                let all = a.iter().zip(b).map(|(&a, &b)| self.choose(which, a, b)).collect::<Option<_>>()?;
                Some(Form::Cells(all, *per))
            }
            // The later state is that of all branches so far.
            (Form::Array { array: a, .. }, Form::Array { array: b, .. }) if a == b => Some(on_true.clone()),
            (Form::Dead, _) | (_, Form::Dead) => Some(Form::Dead),
            _ => None,
        }
    }

    /// d = `on_true` where `which` is 1, else `on_false`.
    pub fn choose(&mut self, which: Val, on_false: Val, on_true: Val) -> Option<Val> {
        if on_false == on_true {
            return Some(on_true);
        }
        match self.number(which) {
            Some(0) => return Some(on_false),
            Some(_) => return Some(on_true),
            None => {}
        }
        let d = self.result(&[which, on_false, on_true]);
        self.range[d as usize] = self.either(on_false, on_true);
        self.emit(Op::Choose { d, which, on_false, on_true }, d)
    }
}

/// Whether a node makes an element of several, or of those in other places.
fn joins_elements(kind: &Kind) -> bool {
    use Kind::*;
    matches!(kind, Transpose(_) | Slice(_) | Rev(_) | Concat(_) | Pad(_))
        || matches!(kind, Reduce { .. } | Dot(_) | Gather(_) | Scatter { .. } | DynamicSlice | DynamicUpdateSlice)
        || matches!(kind, Cumulative { .. } | ArgReduce { .. })
}

/// Whether a graph's output is its parameter unchanged.
pub(super) fn passes(g: &Graph, output: usize, param: usize) -> bool {
    g.outputs[output] == ValueId(param as u32)
}

/// Whether an index of this type is a lane that the machine reads as it is.
pub(super) fn is_index(d: DType, lane: Width) -> bool {
    d == DType::I32 || (d == DType::I64 && lane == Width::Eight)
}
