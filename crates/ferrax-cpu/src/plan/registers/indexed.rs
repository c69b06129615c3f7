//! Elements of small arrays in registers at places that the loop computes.
//!
//! The number of each element that is read is computed lane by lane, clamped as the kernels do, and names a lane of each
//! register of the array; which register it is decides among these. What is written goes to the lanes whose own
//! coordinates are in the window. Read next: `windows.rs`, which is for arrays that stay in memory.

use super::forms::{Cells, Form, is_index};
use super::shapes::indices;
use super::translate::{Translator, bits};
use super::windows::{Start, spread};
use crate::machine::loops::assemble::Val;
use crate::machine::loops::families::Two;
use ferrax_base::Shape;
use ferrax_base::shape::strides;
use ferrax_loops::kind::{Gathering, IndexMode};
use ferrax_loops::{BinaryOp, Graph, Kind, Node, Type};
use smallvec::SmallVec;

/// Where the elements of an array are.
enum Table {
    /// In registers, of so many elements.
    Cells(Cells, usize),
    /// In memory: an array of the loop.
    Memory(usize),
}

/// Index vectors, an element each of the axes that they go along.
pub(super) struct Along<'a> {
    pub axes: &'a [usize],
    /// Extents of a window on all axes.
    pub sizes: &'a [usize],
    /// Whether a window outside is left out, not clamped.
    pub checked: bool,
}

impl Translator {
    /// A node that reads or writes at an index.
    pub fn indexed(&mut self, g: &Graph, node: &Node, x: &[Form]) -> Option<Cells> {
        let (ty, out) = (g.ty(node.inputs[0]), g.ty(node.first));
        let first_index = if matches!(node.kind, Kind::DynamicUpdateSlice) { 2 } else { 1 };
        let all =
            if matches!(node.kind, Kind::DynamicSlice | Kind::DynamicUpdateSlice) { node.inputs.len() } else { 2 };
        if !node.inputs[first_index..all].iter().all(|&v| is_index(g.ty(v).dtype, self.lane)) {
            return None;
        }
        let axes: SmallVec<[usize; 4]> = (0..ty.shape.len()).collect();
        match &node.kind {
            Kind::DynamicSlice => {
                let along = Along { axes: &axes, sizes: &out.shape, checked: false };
                let offsets = offsets(&out.shape, &axes, &strides(&ty.shape));
                let starts = |s: &mut Self, _: &[usize], k: usize| s.picked(&x[1 + k], 0..=0);
                self.read_elements((ty, &x[0]), &along, &offsets, starts, None)
            }
            Kind::DynamicUpdateSlice => {
                let sizes = &g.ty(node.inputs[1]).shape;
                let along = Along { axes: &axes, sizes, checked: false };
                let starts: SmallVec<[Val; 4]> = x[2..].iter().map(|f| self.picked(f, 0..=0)).collect::<Option<_>>()?;
                let window = self.registers(&x[1], sizes.iter().product())?;
                let before = self.registers(&x[0], ty.size())?;
                self.written(ty, before, &along, &starts, (&window, None))
            }
            Kind::Gather(gathering) => self.gathered(g, node, x, gathering),
            Kind::Scatter { op, dims, mode, .. } if dims.operand_batching_dims.is_empty() => {
                let updates = g.ty(node.inputs[2]);
                let (kept, steps) = (&dims.update_window_dims, strides(&updates.shape));
                let shape: Shape = kept.iter().map(|&a| updates.shape[a]).collect();
                let sizes = spread(&shape, &dims.inserted_window_dims, axes.len());
                let batch: Shape = (0..updates.shape.len()).filter(|a| !kept.contains(a)).collect();
                let along = Along {
                    axes: &dims.scatter_dims_to_operand_dims,
                    sizes: &sizes,
                    checked: *mode == IndexMode::FillOrDrop,
                };
                let window = offsets(&shape, kept, &steps);
                let extents: Shape = batch.iter().map(|&a| updates.shape[a]).collect();
                let mut made = self.registers(&x[0], ty.size())?;
                // In the order of the updates: of several of one element the last one wins.
                for (j, first) in offsets(&extents, &batch, &steps).into_iter().enumerate() {
                    let many = along.axes.len();
                    let starts: SmallVec<[Val; 4]> =
                        (j * many..(j + 1) * many).map(|i| self.picked(&x[1], i..=i)).collect::<Option<_>>()?;
                    let update: Cells = self
                        .groups(window.len())
                        .map(|group| self.picked(&x[2], window[group].iter().map(|&offset| first + offset)))
                        .collect::<Option<_>>()?;
                    made = self.written(ty, made, &along, &starts, (&update, op.joining()))?;
                }
                Some(made)
            }
            _ => None,
        }
    }

    /// The elements of a gather's result.
    pub fn gathered(&mut self, g: &Graph, node: &Node, x: &[Form], gathering: &Gathering) -> Option<Cells> {
        if !is_index(g.ty(node.inputs[1]).dtype, self.lane) {
            return None;
        }
        let (dims, ty, out) = (&gathering.dims, g.ty(node.inputs[0]), g.ty(node.first));
        let steps = strides(&ty.shape);
        let kept: SmallVec<[usize; 4]> = (0..ty.shape.len())
            .filter(|a| !dims.collapsed_slice_dims.contains(a) && !dims.operand_batching_dims.contains(a))
            .collect();
        let batch: SmallVec<[usize; 4]> = (0..out.shape.len()).filter(|a| !dims.offset_dims.contains(a)).collect();
        // What each axis of the result adds to an element's number by itself.
        let mut adds: Shape = out.shape.iter().map(|_| 0).collect();
        dims.offset_dims.iter().zip(&kept).for_each(|(&a, &operand)| adds[a] += steps[operand]);
        let pairs = dims.start_indices_batching_dims.iter().zip(&dims.operand_batching_dims);
        pairs.for_each(|(&a, &operand)| adds[batch[a]] += steps[operand]);
        let all: Vec<usize> = (0..out.shape.len()).collect();
        let fixed = offsets(&out.shape, &all, &adds);
        // And which index vector it has.
        let extents: Shape = batch.iter().map(|&a| out.shape[a]).collect();
        let mut vectors: Shape = out.shape.iter().map(|_| 0).collect();
        batch.iter().zip(&strides(&extents)).for_each(|(&a, &step)| vectors[a] = step);
        let vectors = offsets(&out.shape, &all, &vectors);
        let many = dims.start_index_map.len();
        let checked = gathering.mode == IndexMode::FillOrDrop;
        let along = Along { axes: &dims.start_index_map, sizes: &gathering.slice_sizes, checked };
        let fill = self.constant(bits(gathering.fill));
        let starts = |s: &mut Self, elements: &[usize], k: usize| {
            let index = s.picked(&x[1], elements.iter().map(|&i| vectors[i] * many + k))?;
            if gathering.wrap { s.wrapped(index, ty.shape[along.axes[0]]) } else { Some(index) }
        };
        self.read_elements((ty, &x[0]), &along, &fixed, starts, Some(fill))
    }

    /// The elements of an array whose numbers are `offsets` and what the indices add: `starts` gives those along the
    /// axis number k for some elements of the result.
    fn read_elements(
        &mut self,
        (ty, array): (&Type, &Form),
        along: &Along<'_>,
        offsets: &[usize],
        mut starts: impl FnMut(&mut Self, &[usize], usize) -> Option<Val>,
        fill: Option<Val>,
    ) -> Option<Cells> {
        let table = match *array {
            Form::Array { array, .. } => Table::Memory(array),
            _ => Table::Cells(self.registers(array, ty.size())?, self.per(ty.size())),
        };
        let mut results = Cells::new();
        for group in self.groups(offsets.len()) {
            let own = &offsets[group.clone()];
            let elements: SmallVec<[usize; 16]> = group.collect();
            let (number, inside) = self.element_numbers(&ty.shape, along, own, |s, k| starts(s, &elements, k))?;
            let found = match &table {
                Table::Cells(cells, per) => self.looked_up((cells, *per), number)?,
                Table::Memory(array) => self.numbered(*array, number)?,
            };
            results.push(match (inside, fill) {
                (Some(inside), Some(fill)) => self.choose(inside, fill, found)?,
                _ => found,
            });
        }
        Some(results)
    }

    /// The numbers of elements, or of windows' first ones, of an array of a shape: `own` and what the indices add, which `starts` gives
    /// along the axis number k; and whether they are inside, where that matters.
    pub fn element_numbers(
        &mut self,
        shape: &[usize],
        along: &Along<'_>,
        own: &[usize],
        mut starts: impl FnMut(&mut Self, usize) -> Option<Val>,
    ) -> Option<(Val, Option<Val>)> {
        let steps = strides(shape);
        let mut number = self.pattern(|l| own[l.min(own.len() - 1)] as u64);
        let mut inside = None;
        for (k, &axis) in along.axes.iter().enumerate() {
            let last = shape[axis].checked_sub(along.sizes[axis])?;
            let start = Start { index: starts(self, k)?, last, stride: steps[axis] };
            if along.checked {
                inside = self.both(inside, &start)?;
            }
            if last > 0 {
                let (clamped, step) = (self.clamped(&start)?, self.integer(start.stride as i64));
                let scaled = self.two(Two::MulInt, clamped, step)?;
                number = self.two(Two::AddInt, number, scaled)?;
            }
        }
        Some((number, inside))
    }

    /// Whether an index is inside, and what was asked before.
    fn both(&mut self, before: Option<Val>, start: &Start) -> Option<Option<Val>> {
        Some(match (before, self.inside(start)?) {
            (Some(a), Some(b)) => Some(self.two(Two::And, a, b)?),
            (a, b) => a.or(b),
        })
    }

    /// The elements of an array that have these numbers, by its cells.
    fn looked_up(&mut self, (table, per): (&[Val], usize), number: Val) -> Option<Val> {
        let mut found = None;
        for (k, &register) in table.iter().enumerate() {
            let here =
                if self.vector[register as usize] { self.two(Two::Permute, register, number)? } else { register };
            found = Some(match found {
                None => here,
                Some(before) => {
                    let last = self.integer((k * per) as i64 - 1);
                    let beyond = self.two(Two::GtInt, number, last)?;
                    self.choose(beyond, before, here)?
                }
            });
        }
        found
    }

    /// An array of which a window was replaced, or joined to something by an operation.
    fn written(
        &mut self,
        ty: &Type,
        before: Cells,
        along: &Along<'_>,
        starts: &[Val],
        (window, op): (&Cells, Option<BinaryOp>),
    ) -> Option<Cells> {
        let (sizes, steps) = (along.sizes, strides(along.sizes));
        let mut firsts: SmallVec<[Val; 4]> = SmallVec::from_elem(self.constant(0), sizes.len());
        let mut inside = None;
        for (&axis, &index) in along.axes.iter().zip(starts) {
            let start = Start { index, last: ty.shape[axis].checked_sub(sizes[axis])?, stride: 1 };
            if along.checked {
                inside = self.both(inside, &start)?;
            }
            firsts[axis] = self.clamped(&start)?;
        }
        let coordinates: Vec<_> = indices(&ty.shape).collect();
        let mut results = Cells::new();
        for (group, old) in self.groups(ty.size()).zip(before) {
            let (mut within, mut number) = (inside, self.constant(0));
            for (axis, &first) in firsts.iter().enumerate() {
                let own = self.pattern(|l| coordinates[(group.start + l).min(group.end - 1)][axis] as u64);
                let ahead = self.two(Two::SubInt, own, first)?;
                if sizes[axis] < ty.shape[axis] {
                    let start = Start { index: ahead, last: sizes[axis] - 1, stride: 1 };
                    within = self.both(within, &start)?;
                }
                let step = self.integer(steps[axis] as i64);
                let scaled = if sizes[axis] == 1 { self.constant(0) } else { self.two(Two::MulInt, ahead, step)? };
                number = self.two(Two::AddInt, number, scaled)?;
            }
            let update = self.looked_up((window, self.per(sizes.iter().product())), number)?;
            let new = match op {
                None => update,
                Some(op) => self.binary(op, ty.dtype, old, update)?,
            };
            results.push(match within {
                None => new,
                Some(within) => self.choose(within, old, new)?,
            });
        }
        Some(results)
    }
}

/// For each index of a shape the sum of what some axes of another one add, the k-th axis being `axes[k]` there.
pub(super) fn offsets(shape: &[usize], axes: &[usize], steps: &[usize]) -> Vec<usize> {
    indices(shape).map(|at| at.iter().zip(axes).map(|(&i, &axis)| i * steps[axis]).sum()).collect()
}
