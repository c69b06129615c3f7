//! What the values of a loop's body are: lanes of a register, elements one by one, or an array in memory.
//!
//! Scalars, and the vectors of the one length that the loop has, are lanes. Other small values are cells: each element
//! is a scalar of its own, so that slices, concatenations and broadcasts of them cost nothing. Arrays that are only
//! read and written at an index stay where they are (`windows.rs`).
//! Read next: `shapes.rs` for nodes that move elements, `cells.rs` for those that join them, `windows.rs`.

use super::shapes;
use super::translate::{Translator, bits};
use crate::machine::loops::assemble::{Op, Val};
use crate::machine::loops::families::{Two, Width};
use crate::plan::constants;
use ferrax_base::{DType, Scalar};
use ferrax_loops::{Graph, Kind, Node, Type, ValueId};
use smallvec::SmallVec;

/// Elements that a value of cells has at most.
pub(super) const MOST_CELLS: usize = 64;

/// A value of a body.
#[derive(Clone, Debug)]
pub(super) enum Form {
    /// A scalar, or the elements of a vector.
    Lanes(Val),
    /// Scalars, in row-major order.
    Cells(SmallVec<[Val; 8]>),
    /// An array after this many writes.
    Array { array: usize, version: u32 },
    /// Nothing reads it.
    Dead,
}

impl Form {
    fn lanes(&self) -> Option<Val> {
        match self {
            Form::Lanes(v) => Some(*v),
            _ => None,
        }
    }

    /// Element `i` of a scalar or of cells.
    pub fn cell(&self, i: usize) -> Option<Val> {
        match self {
            Form::Lanes(v) => Some(*v),
            Form::Cells(all) => all.get(i).copied(),
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
            n if self.vectors && (self.elements == 1 || self.elements == n) => {
                self.elements = n;
                Some(Fit::Vector)
            }
            n if n <= MOST_CELLS => {
                self.has_cells = true;
                Some(Fit::Cells(n))
            }
            _ => None,
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
                _ if node.results != 1 => return None,
                _ => map.push(self.form(g, node, &x)?),
            }
        }
        Some(g.outputs.iter().map(|v| map[v.0 as usize].clone()).collect())
    }

    /// One node of one result.
    fn form(&mut self, g: &Graph, node: &Node, x: &[Form]) -> Option<Form> {
        if let Some(found) = self.window(g, node, x) {
            return found;
        }
        let ty = g.ty(node.first);
        match self.fit(ty)? {
            Fit::Cells(n) => self.cells(g, node, x, n).map(Form::Cells),
            Fit::Scalar if x.iter().any(|f| f.lanes().is_none()) || joins_elements(&node.kind) => {
                self.cells(g, node, x, 1).map(|all| Form::Lanes(all[0]))
            }
            Fit::Scalar if matches!(node.kind, Kind::Iota(_)) => Some(Form::Lanes(self.constant(0))),
            fit => {
                let x: SmallVec<[Val; 4]> = x.iter().map(Form::lanes).collect::<Option<_>>()?;
                // A vector has no single element to give.
                let wide = x.iter().any(|&v| self.vector[v as usize]);
                (fit == Fit::Vector || !wide).then(|| self.node(g, node, &x))?.map(Form::Lanes)
            }
        }
    }

    /// The `n` elements of a node's result.
    fn cells(&mut self, g: &Graph, node: &Node, x: &[Form], n: usize) -> Option<SmallVec<[Val; 8]>> {
        let vector = |v: Val| self.vector[v as usize];
        if x.iter().any(|f| matches!(f, Form::Array { .. }) || f.lanes().is_some_and(vector)) {
            return None;
        }
        if node.kind.is_elementwise() {
            return (0..n)
                .map(|i| {
                    let x: SmallVec<[Val; 4]> = x.iter().map(|f| f.cell(i)).collect::<Option<_>>()?;
                    self.node(g, node, &x)
                })
                .collect();
        }
        let ty = g.ty(node.first);
        match &node.kind {
            Kind::Barrier => (0..n).map(|i| x[0].cell(i)).collect(),
            Kind::Const(s) => Some(SmallVec::from_elem(self.constant(bits(*s)), n)),
            Kind::Dense(bytes) => Some(
                (bytes.chunks(ty.dtype.size()).map(|b| bits(Scalar::from_bytes(ty.dtype, b))))
                    .map(|lane| self.constant(lane))
                    .collect(),
            ),
            Kind::Iota(axis) => {
                let inner: usize = ty.shape[axis + 1..].iter().product();
                let number = |i: usize| bits(Scalar::from_i64(ty.dtype, (i / inner % ty.shape[*axis]) as i64));
                Some((0..n).map(|i| self.constant(number(i))).collect())
            }
            Kind::Reduce { op, axes } => self.reduced(*op, axes, g.ty(node.inputs[0]), &x[0]),
            Kind::Dot(_) => self.product(g, node, x),
            Kind::Gather(_) | Kind::Scatter { .. } => self.moved(g, node, x),
            _ => shapes::sources(g, node)?.iter().map(|&(operand, i)| x[operand].cell(i)).collect(),
        }
    }

    /// A choice among branches: all are computed, but only the chosen one's writes to arrays are done.
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
            let outs = self.graph(&constants::fold(branch.clone()), &now)?;
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
            (Form::Cells(a), Form::Cells(b)) => {
                a.iter().zip(b).map(|(&a, &b)| self.choose(which, a, b)).collect::<Option<_>>().map(Form::Cells)
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

/// Whether a node makes an element of several.
fn joins_elements(kind: &Kind) -> bool {
    matches!(kind, Kind::Reduce { .. } | Kind::Dot(_) | Kind::Gather(_) | Kind::Scatter { .. })
}

/// Whether a graph's output is its parameter unchanged.
pub(super) fn passes(g: &Graph, output: usize, param: usize) -> bool {
    g.outputs[output] == ValueId(param as u32)
}

/// Whether an index of this type is a lane that the machine reads as it is.
pub(super) fn is_index(d: DType, lane: Width) -> bool {
    d == DType::I32 || (d == DType::I64 && lane == Width::Eight)
}
