//! Arrays that a loop reads and writes at an index while they stay in memory.
//!
//! A window is the part of an array that a slice at an index names: its address is that of the array plus the index,
//! clamped, times a step. A read or a write is one instruction, which finds the address, the largest index and the step
//! in the loop's memory. Elements at several indices are gathered by their numbers, and several updates are written one after
//! the other. Reads must see the array as the writes before them left it, and every write must be of the
//! latest state, so that there is never more than one array; anything else does not fit.

use super::forms::{Cells, Fit, Form, MOST_CELLS, is_index};
use super::indexed::{Along, offsets};
use super::translate::Translator;
use crate::fused::registers::{Part, Window, lanes_of};
use crate::machine::loops::assemble::{Op, PLACE, Val};
use crate::machine::loops::families::{Access, Two};
use ferrax_base::Shape;
use ferrax_base::shape::strides;
use ferrax_loops::kind::{Gathering, IndexMode, ScatterDims, ScatterOp};
use ferrax_loops::{Graph, Kind, Node, Type, ValueId};
use smallvec::SmallVec;

/// An array of a loop.
pub(super) struct Array {
    pub ty: Type,
    /// The operand, or for a carried one the result.
    pub index: usize,
    pub carried: bool,
    /// Writes so far.
    pub version: u32,
}

/// 64-bit words of a window in the loop's memory: the address, the largest index, the step.
pub(super) const WORDS: u32 = 4;

/// Where the elements of a window are: an index to add to a constant place.
struct Position {
    index: Val,
    last: usize,
    step: usize,
    /// Whether every index is inside; nothing if it does not matter.
    inside: Option<Val>,
}

/// The start of a window along an axis.
pub(super) struct Start {
    pub index: Val,
    pub last: usize,
    pub stride: usize,
}

/// The window that a node names, as extents on the array's axes.
struct Extent<'a> {
    sizes: &'a [usize],
    /// Whether an index outside is not clamped.
    checked: bool,
}

impl Translator {
    /// A node that reads or writes an array; the inner option is nothing if it does not fit.
    pub fn window(&mut self, g: &Graph, node: &Node, x: &[Form]) -> Option<Option<Form>> {
        let &Form::Array { array, version } = x.first()? else { return None };
        Some(self.window_node(g, node, x, array, version))
    }

    fn window_node(&mut self, g: &Graph, node: &Node, x: &[Form], array: usize, version: u32) -> Option<Form> {
        if matches!(node.kind, Kind::Barrier) {
            return Some(x[0].clone());
        }
        if self.arrays[array].version != version {
            return None;
        }
        let axes: SmallVec<[usize; 4]> = (0..self.arrays[array].ty.shape.len()).collect();
        match &node.kind {
            Kind::DynamicSlice => {
                let extent = Extent { sizes: &g.ty(node.first).shape, checked: false };
                let at = self.position(g, array, &extent, (&axes, &x[1..], &node.inputs[1..]))?;
                self.read_window(array, &extent, &at, g.ty(node.first))
            }
            Kind::DynamicUpdateSlice => {
                let extent = Extent { sizes: &g.ty(node.inputs[1]).shape, checked: false };
                let at = self.position(g, array, &extent, (&axes, &x[2..], &node.inputs[2..]))?;
                self.write_window(array, &extent, &at, &x[1])
            }
            Kind::Gather(gathering) => self.gather(g, node, x, array, gathering),
            Kind::Scatter { op, dims, mode, .. } => {
                let ty = g.ty(node.inputs[2]);
                let whole = dims.update_window_dims.len() == ty.shape.len()
                    && dims.operand_batching_dims.is_empty()
                    && dims.update_window_dims.iter().enumerate().all(|(k, &d)| k == d);
                let sizes = spread(&ty.shape, &dims.inserted_window_dims, axes.len());
                let extent = Extent { sizes: &sizes, checked: *mode == IndexMode::FillOrDrop };
                let found = whole.then(|| vector_of(&x[1], dims.scatter_dims_to_operand_dims.len())).flatten();
                let Some(starts) = found else { return self.scatter(g, node, x, array, (*op, dims, extent.checked)) };
                let types = SmallVec::<[ValueId; 4]>::from_elem(node.inputs[1], starts.len());
                let at = self.position(g, array, &extent, (&dims.scatter_dims_to_operand_dims, &starts, &types))?;
                let update = self.combined(*op, array, (&extent, &at), (&x[2], ty))?;
                self.write_window(array, &extent, &at, &update)
            }
            Kind::Slice(dims) if dims.stride.iter().all(|&s| s == 1) => {
                let extent = Extent { sizes: &g.ty(node.first).shape, checked: false };
                let zero = self.constant(0);
                let at = Position { index: zero, last: 0, step: 0, inside: None };
                let first = offset_of(&self.arrays[array].ty, &dims.start);
                self.read_at(array, &extent, &at, (first, g.ty(node.first)))
            }
            _ => None,
        }
    }

    fn gather(&mut self, g: &Graph, node: &Node, x: &[Form], array: usize, gathering: &Gathering) -> Option<Form> {
        let (dims, out) = (&gathering.dims, g.ty(node.first));
        let whole = dims.offset_dims.len() == out.shape.len()
            && dims.operand_batching_dims.is_empty()
            && dims.offset_dims.iter().enumerate().all(|(k, &d)| k == d);
        let extent = Extent { sizes: &gathering.slice_sizes, checked: gathering.mode == IndexMode::FillOrDrop };
        let Some(mut starts) = whole.then(|| vector_of(&x[1], dims.start_index_map.len())).flatten() else {
            return self.gathered_form(g, node, x, gathering);
        };
        if gathering.wrap {
            let n = self.arrays[array].ty.shape[dims.start_index_map[0]];
            let Form::Lanes(index) = starts[0] else { return None };
            starts[0] = Form::Lanes(self.wrapped(index, n)?);
        }
        let types = SmallVec::<[ValueId; 4]>::from_elem(node.inputs[1], starts.len());
        let at = self.position(g, array, &extent, (&dims.start_index_map, &starts, &types))?;
        let found = self.read_window(array, &extent, &at, out)?;
        let Some(inside) = at.inside else { return Some(found) };
        let fill = self.constant(super::translate::bits(gathering.fill));
        let mut either = |v: Val| self.choose(inside, fill, v);
        Some(match found {
            Form::Lanes(v) => Form::Lanes(either(v)?),
            Form::Cells(all, per) => Form::Cells(all.iter().map(|&v| either(v)).collect::<Option<_>>()?, per),
            other => other,
        })
    }

    /// Elements of an array at several indices.
    fn gathered_form(&mut self, g: &Graph, node: &Node, x: &[Form], gathering: &Gathering) -> Option<Form> {
        let out = g.ty(node.first);
        if self.fit(out)? == Fit::Vector || self.has_vector(&x[1..]) {
            return None;
        }
        let all = self.gathered(g, node, x, gathering)?;
        Some(if out.size() == 1 { Form::Lanes(all[0]) } else { Form::Cells(all, self.per(out.size())) })
    }

    /// The elements of an array in memory that have these numbers, which are inside.
    pub fn numbered(&mut self, array: usize, numbers: Val) -> Option<Val> {
        let ty = self.arrays[array].ty.clone();
        let size = ty.dtype.size();
        if ty.dtype.is_bool() || size != self.lane.bytes() {
            return None;
        }
        let at = self.numbered_at(array, numbers, None);
        let (access, window, mask) = self.make_window(array, &at, 0, (Part::One, false))?;
        let fixed = !self.arrays[array].carried && self.fixed[numbers as usize];
        let several = self.vector[numbers as usize];
        let d = self.value(fixed, several);
        let op = if several {
            Op::Gather { window, numbers, d }
        } else {
            Op::Fetch { access, window, mask, index: numbers, d }
        };
        self.emit(op, d)
    }

    /// An index that counts from the end where it is below 0.
    pub fn wrapped(&mut self, i: Val, extent: usize) -> Option<Val> {
        let (zero, extent) = (self.constant(0), self.integer(extent as i64));
        let below = self.two(Two::GtInt, zero, i)?;
        let raised = self.two(Two::AddInt, i, extent)?;
        self.choose(below, i, raised)
    }

    /// The array after several updates, one after the other.
    fn scatter(
        &mut self,
        g: &Graph,
        node: &Node,
        x: &[Form],
        array: usize,
        (op, dims, checked): (ScatterOp, &ScatterDims, bool),
    ) -> Option<Form> {
        let (ty, updates, kept) = (self.arrays[array].ty.clone(), g.ty(node.inputs[2]), &dims.update_window_dims);
        if ty.dtype.is_bool() || !is_index(g.ty(node.inputs[1]).dtype, self.lane) || self.has_vector(&x[1..]) {
            return None;
        }
        let shape: Shape = kept.iter().map(|&a| updates.shape[a]).collect();
        let alone: Shape = dims.inserted_window_dims.iter().chain(&dims.operand_batching_dims).copied().collect();
        let sizes = spread(&shape, &alone, ty.shape.len());
        let batch: Shape = (0..updates.shape.len()).filter(|a| !kept.contains(a)).collect();
        let extents: Shape = batch.iter().map(|&a| updates.shape[a]).collect();
        let (numbers, insides) = self.update_numbers(&ty, dims, (&sizes, checked), &extents, &x[1])?;
        let (window, extent) = (offsets(&shape, kept, &strides(&updates.shape)), Extent { sizes: &sizes, checked });
        let (window_ty, mut state) = (Type { dtype: ty.dtype, shape }, None);
        for (j, first) in offsets(&extents, &batch, &strides(&updates.shape)).into_iter().enumerate() {
            let index = self.picked(&numbers, j..=j)?;
            let inside = match &insides {
                Some(insides) => Some(self.picked(insides, j..=j)?),
                None => None,
            };
            let at = self.numbered_at(array, index, inside);
            let groups = self.groups(window.len());
            let update: Cells = groups
                .map(|group| self.picked(&x[2], window[group].iter().map(|&offset| first + offset)))
                .collect::<Option<_>>()?;
            let one = window.len() == 1;
            let update = if one { Form::Lanes(update[0]) } else { Form::Cells(update, self.per(window.len())) };
            let update = self.combined(op, array, (&extent, &at), (&update, &window_ty))?;
            state = Some(self.write_window(array, &extent, &at, &update)?);
        }
        state
    }

    /// The numbers of the first elements that updates of these extents go to, and whether these are inside, where that matters.
    fn update_numbers(
        &mut self,
        ty: &Type,
        dims: &ScatterDims,
        (sizes, checked): (&[usize], bool),
        extents: &[usize],
        index: &Form,
    ) -> Option<(Form, Option<Form>)> {
        // What the axes of the updates add by themselves.
        let (mut adds, steps) = (Shape::from_elem(0, extents.len()), strides(&ty.shape));
        let pairs = dims.scatter_indices_batching_dims.iter().zip(&dims.operand_batching_dims);
        pairs.for_each(|(&a, &operand)| adds[a] += steps[operand]);
        let all: Shape = (0..extents.len()).collect();
        let own = offsets(extents, &all, &adds);
        if own.len() > MOST_CELLS {
            return None;
        }
        let axes = &dims.scatter_dims_to_operand_dims;
        let along = Along { axes, sizes, checked };
        let (mut numbers, mut insides, mut some_outside) = (Cells::new(), Cells::new(), false);
        for group in self.groups(own.len()) {
            let own = &own[group.clone()];
            let start = |s: &mut Self, k: usize| s.picked(index, group.clone().map(|j| j * axes.len() + k));
            let (number, inside) = self.element_numbers(&ty.shape, &along, own, start)?;
            numbers.push(number);
            some_outside |= inside.is_some();
            insides.push(inside.unwrap_or_else(|| self.constant(1)));
        }
        let per = self.per(own.len());
        Some((Form::Cells(numbers, per), some_outside.then_some(Form::Cells(insides, per))))
    }

    /// Whether elements of some value are in lanes each.
    fn has_vector(&self, forms: &[Form]) -> bool {
        forms.iter().any(|f| matches!(f, Form::Lanes(v) if self.vector[*v as usize]))
    }

    /// Where the element, or the window from it on, is that has a number, which is inside or left out.
    fn numbered_at(&self, array: usize, index: Val, inside: Option<Val>) -> Position {
        let ty = &self.arrays[array].ty;
        Position { index, last: ty.size() - 1, step: ty.dtype.size(), inside }
    }

    /// What a scatter writes: the update, or what it makes of the elements that are there.
    fn combined(
        &mut self,
        op: ScatterOp,
        array: usize,
        (extent, at): (&Extent<'_>, &Position),
        (update, ty): (&Form, &Type),
    ) -> Option<Form> {
        let Some(op) = op.joining() else { return Some(update.clone()) };
        let old = self.read_window(array, extent, at, ty)?;
        let mut join = |i: usize| self.binary(op, ty.dtype, old.nth(i)?, update.nth(i)?);
        Some(match &old {
            Form::Cells(all, per) => Form::Cells((0..all.len()).map(join).collect::<Option<_>>()?, *per),
            _ => Form::Lanes(join(0)?),
        })
    }

    /// Where a window starts: an index along each of some axes.
    fn position(
        &mut self,
        g: &Graph,
        array: usize,
        extent: &Extent<'_>,
        (axes, starts, types): (&[usize], &[Form], &[ValueId]),
    ) -> Option<Position> {
        let shape: Shape = self.arrays[array].ty.shape.clone();
        let steps = strides(&shape);
        let mut live: SmallVec<[Start; 4]> = SmallVec::new();
        for ((&axis, start), &v) in axes.iter().zip(starts).zip(types) {
            let last = shape[axis].checked_sub(extent.sizes[axis])?;
            let Form::Lanes(index) = *start else { return None };
            if self.vector[index as usize] || !is_index(g.ty(v).dtype, self.lane) {
                return None;
            }
            if last > 0 || extent.checked {
                live.push(Start { index, last, stride: steps[axis] });
            }
        }
        let size = self.arrays[array].ty.dtype.size();
        let mut inside = None;
        if extent.checked {
            for s in &live {
                let found = self.inside(s)?;
                inside = match (inside, found) {
                    (Some(a), Some(b)) => Some(self.two(Two::And, a, b)?),
                    (a, b) => a.or(b),
                };
            }
        }
        live.retain(|s| s.last > 0);
        Some(match &live[..] {
            [] => Position { index: self.constant(0), last: 0, step: 0, inside },
            [only] => Position { index: only.index, last: only.last, step: only.stride * size, inside },
            several => {
                // The last of the axes has the smallest stride, and the others' are its multiples.
                let unit = several.iter().map(|s| s.stride).min()?;
                let mut sum = None;
                let mut most = 0;
                for s in several {
                    let clamped = self.clamped(s)?;
                    let times = s.stride / unit;
                    let stride = self.integer(times as i64);
                    let scaled = if times == 1 { clamped } else { self.two(Two::MulInt, clamped, stride)? };
                    most += s.last * times;
                    sum = Some(sum.map_or(Some(scaled), |sum| self.two(Two::AddInt, sum, scaled))?);
                }
                Position { index: sum?, last: most, step: unit * size, inside }
            }
        })
    }

    /// Whether an index is inside; nothing where it is known to be.
    pub fn inside(&mut self, s: &Start) -> Option<Option<Val>> {
        let (low, high) = (self.integer(-1), self.integer(s.last as i64 + 1));
        let above = self.two(Two::GtInt, s.index, low)?;
        let below = self.two(Two::GtInt, high, s.index)?;
        let both = self.two(Two::And, above, below)?;
        Some((self.number(both) != Some(1)).then_some(both))
    }

    pub fn clamped(&mut self, s: &Start) -> Option<Val> {
        let (zero, last) = (self.constant(0), self.integer(s.last as i64));
        let above = self.two(Two::MaxInt, s.index, zero)?;
        self.two(Two::MinInt, above, last)
    }

    fn read_window(&mut self, array: usize, extent: &Extent<'_>, at: &Position, out: &Type) -> Option<Form> {
        self.read_at(array, extent, at, (0, out))
    }

    fn read_at(
        &mut self,
        array: usize,
        extent: &Extent<'_>,
        at: &Position,
        (first, out): (usize, &Type),
    ) -> Option<Form> {
        let (places, flag) = (self.elements_of(array, extent, out.size())?, out.dtype.is_bool());
        let fixed = !self.arrays[array].carried && self.fixed[at.index as usize];
        let mut found = Cells::new();
        for &(_, offset, part) in &places {
            let (access, window, mask) = self.make_window(array, at, first + offset, (part, flag))?;
            let d = self.value(fixed, part.is_vector());
            found.push(self.emit(Op::Fetch { access, window, mask, index: at.index, d }, d)?);
        }
        if !matches!(self.fit(out)?, Fit::Cells(_)) {
            return Some(Form::Lanes(found[0]));
        }
        let per = if places[0].2 == Part::One { 1 } else { self.per(out.size()) };
        self.packed(out.size(), Form::Cells(found, per))
    }

    fn write_window(&mut self, array: usize, extent: &Extent<'_>, at: &Position, update: &Form) -> Option<Form> {
        let count: usize = extent.sizes.iter().product();
        let ty = self.arrays[array].ty.clone();
        let flag = ty.dtype.is_bool();
        let places = self.elements_of(array, extent, count)?;
        let inside = match (at.inside, self.guard) {
            (Some(a), Some(b)) => Some(self.two(Two::And, a, b)?),
            (a, b) => a.or(b),
        };
        // An index outside is not written.
        let (index, checked) = match inside {
            None => (at.index, false),
            Some(inside) => {
                let (zero, last) = (self.constant(0), self.integer(at.last as i64));
                let (mut index, outside) = (at.index, self.integer(-1));
                if at.inside.is_none() {
                    index = self.two(Two::MaxInt, index, zero)?;
                    index = self.two(Two::MinInt, index, last)?;
                }
                (self.choose(inside, outside, index)?, true)
            }
        };
        for (i, offset, part) in places {
            let a = self.part(update, i, part)?;
            if self.vector[a as usize] && part == Part::One {
                return None;
            }
            let (access, window, mask) = self.make_window(array, at, offset, (part, flag))?;
            self.write(Op::Put { access, window, mask, index, a, checked })?;
        }
        self.arrays[array].version += 1;
        Some(Form::Array { array, version: self.arrays[array].version })
    }

    /// The parts of a window: the first element, bytes from the window's start, and how many there are.
    fn elements_of(&mut self, array: usize, extent: &Extent<'_>, count: usize) -> Option<Places> {
        let ty = self.arrays[array].ty.clone();
        let window = Type { dtype: ty.dtype, shape: extent.sizes.into() };
        let (fit, size) = (self.fit(&window)?, ty.dtype.size());
        let in_one_piece = in_one_piece(&ty.shape, extent.sizes);
        if fit == Fit::Vector {
            return in_one_piece.then(|| SmallVec::from_elem((0, 0, Part::Turn), 1));
        }
        if self.per(count) > 1 && in_one_piece && !ty.dtype.is_bool() {
            return Some(self.groups(count).map(|g| (g.start, g.start * size, Part::Few(g.len()))).collect());
        }
        let (st, inner) = (strides(&ty.shape), strides(extent.sizes));
        let place = |i: usize| {
            let axes = inner.iter().zip(extent.sizes).zip(&st);
            (i, axes.map(|((&s, &n), &step)| i / s.max(1) % n.max(1) * step).sum::<usize>() * size, Part::One)
        };
        Some((0..count).map(place).collect())
    }

    /// Whether each element of an array that is written is always of the same lane, so that one part of the lanes can run
    /// through all steps before the next: windows then lie a multiple of their length apart.
    pub fn lanes_apart(&self) -> bool {
        (0..self.arrays.len()).filter(|&k| self.arrays[k].version > 0).all(|k| {
            let length = self.elements * self.arrays[k].ty.dtype.size();
            let mut windows = self.windows.iter().filter(|w| w.array == k);
            let first = windows.clone().next().map_or(0, |w| w.offset % length);
            windows.all(|w| w.vector && w.offset % length == first && (w.last == 0 || w.step % length == 0))
        })
    }

    fn make_window(
        &mut self,
        array: usize,
        at: &Position,
        offset: usize,
        (part, flag): (Part, bool),
    ) -> Option<(Access, u32, u32)> {
        let (access, mask) = self.access(part, flag)?;
        let found = Window { at: 0, array, offset, last: at.last, step: at.step, vector: part.is_vector() };
        if let Some(same) = self.windows.iter().find(|w| Window { at: 0, ..**w } == found) {
            return Some((access, same.at, mask));
        }
        let per_place = PLACE as usize / (8 * WORDS as usize);
        let place = match self.windows.last() {
            Some(last) if !self.windows.len().is_multiple_of(per_place) => last.at + 8 * WORDS,
            _ => self.asm.place(),
        };
        self.windows.push(Window { at: place, ..found });
        Some((access, place, mask))
    }

    /// How a part of an array in memory is reached, and the place of the mask.
    pub fn access(&mut self, part: Part, flag: bool) -> Option<(Access, u32)> {
        Some(match (part, flag) {
            (Part::One, true) => (Access::Flag, 0),
            (Part::One, false) => (Access::Scalar, 0),
            (_, true) => return None,
            (Part::Turn, false) => (Access::Masked, 0),
            (Part::Few(n), false) if n == lanes_of(self.isa, self.lane) => (Access::Whole, 0),
            (Part::Few(n), false) => {
                let mask = self.pattern(|l| if l < n { !0 } else { 0 });
                (Access::Masked, self.asm.memory_of(mask)?)
            }
        })
    }
}

/// Parts of a window.
type Places = SmallVec<[(usize, usize, Part); 8]>;

/// The bytes before an index.
fn offset_of(ty: &Type, start: &[usize]) -> usize {
    start.iter().zip(&strides(&ty.shape)).map(|(&i, &s)| i * s).sum::<usize>() * ty.dtype.size()
}

/// A window's extents on all axes, of which those that the other array does not have are 1.
pub(super) fn spread(shape: &[usize], left_out: &[usize], rank: usize) -> Shape {
    let mut rest = shape.iter();
    (0..rank).map(|a| if left_out.contains(&a) { 1 } else { rest.next().copied().unwrap_or(1) }).collect()
}

/// Whether the elements of a window lie one after the other.
fn in_one_piece(shape: &[usize], sizes: &[usize]) -> bool {
    let partial = sizes.iter().position(|&n| n != 1).unwrap_or(sizes.len());
    (partial + 1..sizes.len()).all(|a| sizes[a] == shape[a])
}

/// The numbers of an index vector.
fn vector_of(indices: &Form, count: usize) -> Option<SmallVec<[Form; 4]>> {
    match indices {
        Form::Lanes(_) if count == 1 => Some(SmallVec::from_elem(indices.clone(), 1)),
        Form::Cells(all, 1) if all.len() == count => Some(all.iter().map(|&v| Form::Lanes(v)).collect()),
        _ => None,
    }
}

/// Whether an array that enters a graph is only read at an index there, and where it may be written too, and leaves as
/// these outputs.
pub(super) fn only_indexed(g: &Graph, param: usize, writes: bool, outputs: &[usize]) -> bool {
    let Some(states) = states(g, param, writes) else { return false };
    let leaves = g.outputs.iter().enumerate().filter(|(_, v)| states.contains(v));
    leaves.map(|(k, _)| k).eq(outputs.iter().copied())
}

/// The values that are states of an array.
fn states(g: &Graph, param: usize, writes: bool) -> Option<Vec<ValueId>> {
    let mut states = vec![ValueId(param as u32)];
    for node in &g.nodes {
        let uses: SmallVec<[usize; 4]> = (0..node.inputs.len()).filter(|&i| states.contains(&node.inputs[i])).collect();
        if uses.is_empty() {
            continue;
        }
        let inner = |graph: &Graph, skip: usize, states: &mut Vec<ValueId>| -> Option<()> {
            for &i in &uses {
                let found = self::states(graph, i.checked_sub(skip)?, writes)?;
                let leaves = graph.outputs.iter().zip(node.outputs()).filter(|(v, _)| found.contains(v));
                states.extend(leaves.map(|(_, result)| result));
            }
            Some(())
        };
        match &node.kind {
            Kind::Call(graph) => inner(graph, 0, &mut states)?,
            // an inner loop reads what it does not change
            Kind::While { cond_consts, .. } if uses.iter().all(|&i| i < *cond_consts) => {}
            Kind::Switch(branches) => branches.iter().try_for_each(|b| inner(b, 1, &mut states))?,
            _ if uses[..] != [0] => return None,
            Kind::Barrier if node.results == 1 => states.push(node.first),
            Kind::DynamicSlice | Kind::Gather(_) => {}
            Kind::Slice(dims) if dims.stride.iter().all(|&s| s == 1) => {}
            Kind::DynamicUpdateSlice | Kind::Scatter { .. } if writes => states.push(node.first),
            _ => return None,
        }
    }
    Some(states)
}
