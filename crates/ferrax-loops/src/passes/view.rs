//! Views: values whose elements lie in another value's memory at regular distances.
//!
//! Slices, reversals, broadcasts and transpositions that keep whole rows together move nothing: they are read where
//! the elements are. A view knows its elements in order, as few axes of an extent and a distance; what shape the value
//! has does not matter until it is cut again. `order/places.rs` makes views.

use crate::kind::SliceDims;
use ferrax_base::shape::strides;
use smallvec::SmallVec;

/// Signed strides, in elements.
pub type Strides = SmallVec<[isize; 4]>;

/// Row-major strides as signed numbers.
pub fn signed_strides(shape: &[usize]) -> Strides {
    strides(shape).iter().map(|&s| s as isize).collect()
}

/// Axes of a view, outermost first: extent, and distance in elements.
pub type Axes = SmallVec<[(usize, isize); 4]>;

/// The elements of a value, counted in elements of its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The first one.
    pub first: isize,
    /// The others; never more axes than it takes.
    pub axes: Axes,
}

impl View {
    /// Elements of an array of this shape at these distances.
    pub fn new(first: isize, shape: &[usize], strides: &[isize]) -> View {
        let mut axes = Axes::new();
        for (&n, &stride) in shape.iter().zip(strides) {
            if n == 1 {
                continue;
            }
            match axes.last_mut() {
                Some(last) if last.1 == stride * n as isize => *last = (last.0 * n, stride),
                _ => axes.push((n, stride)),
            }
        }
        View { first, axes }
    }

    /// All of `n` elements in `axes`.
    pub fn of(axes: &[(usize, isize)]) -> View {
        View { first: 0, axes: axes.iter().copied().filter(|a| a.0 != 1).collect() }
    }

    /// The distances along the axes of a shape; `None` if an axis of it covers parts of several.
    pub fn strides(&self, shape: &[usize]) -> Option<Strides> {
        let mut out: Strides = SmallVec::from_elem(0, shape.len());
        if shape.contains(&0) {
            return Some(out);
        }
        let (mut at, mut taken) = (self.axes.len(), 1);
        for (k, &n) in shape.iter().enumerate().rev().filter(|a| *a.1 != 1) {
            let (extent, stride) = *self.axes.get(at.checked_sub(1)?)?;
            if extent % (taken * n) != 0 {
                return None;
            }
            out[k] = stride * taken as isize;
            taken *= n;
            if taken == extent {
                (at, taken) = (at - 1, 1);
            }
        }
        Some(out)
    }

    /// What a slice takes of the value of this shape.
    pub fn slice(&self, dims: &SliceDims, shape: &[usize], to: &[usize]) -> Option<View> {
        let strides = self.strides(shape)?;
        let first = self.first + dims.start.iter().zip(&strides).map(|(&s, &x)| s as isize * x).sum::<isize>();
        let strides: Strides = dims.stride.iter().zip(&strides).map(|(&s, &x)| s as isize * x).collect();
        Some(View::new(first, to, &strides))
    }

    /// The value of this shape with some axes turned round.
    pub fn rev(&self, axes: &[usize], shape: &[usize]) -> Option<View> {
        let (mut strides, mut first) = (self.strides(shape)?, self.first);
        for &a in axes {
            first += (shape[a] as isize - 1) * strides[a];
            strides[a] = -strides[a];
        }
        Some(View::new(first, shape, &strides))
    }

    /// The value with its axes at `dims` of a larger shape.
    pub fn broadcast(&self, dims: &[usize], shape: &[usize], to: &[usize]) -> Option<View> {
        let strides = self.strides(shape)?;
        let mut all: Strides = SmallVec::from_elem(0, to.len());
        for (k, &d) in dims.iter().enumerate().filter(|(k, _)| shape[*k] != 1) {
            all[d] = strides[k];
        }
        Some(View::new(self.first, to, &all))
    }

    /// The value with its axes in another order.
    pub fn transpose(&self, perm: &[usize], shape: &[usize], to: &[usize]) -> Option<View> {
        let strides = self.strides(shape)?;
        let strides: Strides = perm.iter().map(|&p| strides[p]).collect();
        Some(View::new(self.first, to, &strides))
    }

    /// Extent and distance of the innermost axis.
    pub fn innermost(&self) -> (usize, isize) {
        self.axes.last().copied().unwrap_or((1, 0))
    }

    /// Whether the elements have one distance all along.
    pub fn is_line(&self) -> bool {
        self.axes.len() < 2
    }
}
