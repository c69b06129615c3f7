//! Where values are without a copy: other names of the same elements, views, and rows and columns that are spread.

use super::{COPIED, Order, Place, SMALL, STEPS, Spread, Viewed};
use crate::passes::view::View;
use crate::{Kind, Node, ValueId};
use ferrax_base::DType;

impl Order<'_> {
    /// Whether the target holds a dtype.
    fn holds(&self, d: DType) -> bool {
        self.target.is_some_and(|target| target.holds(d))
    }

    /// Whether a piece can be copied from where the value is: strides along its axes say which elements it has.
    pub fn in_strides(&self, v: ValueId) -> bool {
        self.g.ty(v).size() == 1 || self.as_view(v).strides(&self.g.ty(v).shape).is_some()
    }

    /// The root from which a value is copied, and which elements it has there.
    pub fn elements(&self, v: ValueId) -> (u32, View) {
        if self.in_strides(v) {
            (self.place(v).root, self.as_view(v))
        } else {
            (self.dense_root(v), View::of(&[(self.g.ty(v).size(), 1)]))
        }
    }

    /// The elements of a value as a view of its root.
    pub fn as_view(&self, v: ValueId) -> View {
        let n = self.g.ty(v).size();
        match self.place(v).spread {
            Spread::Full => View::of(&[(n, 1)]),
            Spread::Splat => View::of(&[(n, 0)]),
            Spread::Row(k) => View::of(&[(n / k as usize, 1), (k as usize, 0)]),
            Spread::Col(k) => View::of(&[(n / k as usize, 0), (k as usize, 1)]),
            Spread::View(k) => self.views[k as usize].view.clone(),
        }
    }

    /// Makes a node that only chooses elements a view of its operand, where regions can read that; whether it is one.
    fn view(&mut self, i: u32, node: &Node) -> bool {
        let g = self.g;
        let (x, out) = (node.inputs[0], node.first);
        let (from, to) = (g.ty(x), g.ty(out));
        let fits = to.size() > COPIED && u32::try_from(to.size()).is_ok() && u32::try_from(from.size()).is_ok();
        if !fits || !self.holds(to.dtype) {
            return false;
        }
        let view = match &node.kind {
            Kind::Slice(dims) => self.as_view(x).slice(dims, &from.shape, &to.shape),
            Kind::Rev(axes) => self.as_view(x).rev(axes, &from.shape),
            Kind::Broadcast(dims) => self.as_view(x).broadcast(dims, &from.shape, &to.shape),
            Kind::Transpose(perm) => self.as_view(x).transpose(perm, &from.shape, &to.shape),
            _ => return false,
        };
        let Some(view) = view else { return false };
        let step = view.innermost().1.unsigned_abs();
        if view.axes.len() > 4 || step > STEPS || (view.innermost().1 != step.min(1) as isize && to.dtype.size() < 4) {
            return false;
        }
        let spread = Spread::View(self.views.len() as u32);
        self.views.push(Viewed { view, value: out.0, node: i });
        self.places[out.0 as usize] = Place { root: self.place(x).root, spread };
        true
    }

    /// How a broadcast spreads its operand, where rows or columns say it.
    fn broadcast(&self, node: &Node, dims: &[usize]) -> Option<Spread> {
        let x = node.inputs[0];
        let (from, to) = (self.g.ty(x), self.g.ty(node.first));
        let dense = self.place(x).spread == Spread::Full;
        let fits = u32::try_from(to.size()).is_ok() && to.size() >= SMALL;
        if !dense || !fits || !dims.is_sorted() || !self.holds(to.dtype) {
            return None;
        }
        let mapped = |k: usize| dims.iter().zip(&from.shape).any(|(&d, &size)| d == k && size != 1);
        let own = (0..to.shape.len()).filter(|&k| to.shape[k] != 1 && mapped(k));
        let new = (0..to.shape.len()).filter(|&k| to.shape[k] != 1 && !mapped(k));
        let (first_own, last_own) = (own.clone().min()?, own.max()?);
        let (first_new, last_new) = (new.clone().min()?, new.max()?);
        if last_own < first_new {
            return Some(Spread::Row((to.size() / from.size()) as u32));
        }
        (last_new < first_own).then_some(Spread::Col(from.size() as u32))
    }

    /// Handles nodes that move no bytes; whether this was one.
    pub(super) fn rename(&mut self, i: u32, node: &Node) -> bool {
        if node.results == 0 {
            return false;
        }
        let out = node.first.0 as usize;
        let ty = self.g.ty(node.first);
        match &node.kind {
            Kind::Const(_) => {
                self.places[out].spread = if ty.size() > 1 { Spread::Splat } else { Spread::Full };
                self.constants.push((node.first.0, i));
                return true;
            }
            Kind::Dense(_) => {
                self.constants.push((node.first.0, i));
                return true;
            }
            Kind::Barrier => {
                for (k, &v) in node.inputs.iter().enumerate() {
                    self.places[out + k] = self.place(v);
                    self.dense[out + k] = self.dense[v.0 as usize];
                }
                return true;
            }
            _ => {}
        }
        let Some(&x) = node.inputs.first() else { return false };
        let (from, place) = (self.g.ty(x), self.place(x));
        let one = self.is_one(x);
        let same = match &node.kind {
            Kind::Reshape => true,
            Kind::Bitcast => {
                let whole = |d: DType| d.bits() == 8 * d.size() || d.is_bool();
                let same = from.dtype == ty.dtype;
                if !same {
                    self.leave_lanes(place.root, from.dtype.size());
                }
                same || (from.dtype.size() == ty.dtype.size() && whole(from.dtype) && whole(ty.dtype))
            }
            Kind::Convert => from.dtype == ty.dtype,
            Kind::Broadcast(dims) => one || (from.size() == ty.size() && dims.is_sorted()),
            Kind::Transpose(perm) => one || perm.iter().filter(|&&p| from.shape[p] != 1).is_sorted(),
            Kind::Slice(_) => one || (from.size() == ty.size()),
            Kind::Rev(axes) => one || axes.iter().all(|&a| from.shape[a] == 1),
            Kind::Concat(_) => node.inputs.len() == 1,
            _ => false,
        };
        if same {
            let spread = match place.spread {
                _ if one && ty.size() > 1 => Spread::Splat,
                Spread::Splat => Spread::Full,
                spread => spread,
            };
            self.places[out] = Place { root: place.root, spread };
            // Of a number that stands for all there may be dense copies of several sizes.
            if from.size() == ty.size() {
                self.dense[out] = self.dense[x.0 as usize];
            }
            return true;
        }
        if let Kind::Broadcast(dims) = &node.kind
            && let Some(spread) = self.broadcast(node, dims)
        {
            self.places[out] = Place { root: place.root, spread };
            return true;
        }
        self.view(i, node)
    }
}
