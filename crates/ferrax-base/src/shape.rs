//! Shapes: a short vector of dimensions, kept inline up to rank four.
//!
//! A dimension is a [`Dim`]: a number, which may stand for an expression (`symbolic.rs`).

use crate::symbolic::{self, Operation};
use smallvec::SmallVec;

/// The size of one axis, in elements.
pub type Dim = usize;

/// Row-major dimensions of an array; a scalar has none.
pub type Shape = SmallVec<[Dim; 4]>;

/// Number of elements, or `None` when it does not fit `isize`.
pub fn checked_size(shape: &[Dim]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    if symbolic::any(shape) {
        return Some(size(shape));
    }
    let n = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d))?;
    isize::try_from(n).is_ok().then_some(n)
}

/// Number of elements; the largest number where it is larger, which no memory has.
pub fn size(shape: &[Dim]) -> usize {
    product(shape.iter().copied())
}

/// The product of sizes; the largest number where it is larger, unless one of them is 0.
pub fn product(sizes: impl Iterator<Item = Dim> + Clone) -> usize {
    let n = sizes.clone().fold(1, usize::saturating_mul);
    // no array has as many elements, unless a size is symbolic
    if n < symbolic::LEAST { n } else { symbolic::fold(Operation::Mul, 1, sizes) }
}

/// The sum of sizes, each of an array that need not fit into memory: the largest number stands for all beyond it.
pub fn total(sizes: impl Iterator<Item = usize> + Clone) -> usize {
    let n = sizes.clone().fold(0, usize::saturating_add);
    if n < symbolic::LEAST { n } else { symbolic::fold(Operation::Add, 0, sizes) }
}

/// Row-major strides, in elements; the largest number where one is larger, which an array without elements may have.
pub fn strides(shape: &[Dim]) -> Shape {
    let mut out: Shape = smallvec::smallvec![1; shape.len()];
    for i in (0..shape.len().saturating_sub(1)).rev() {
        out[i] = out[i + 1].saturating_mul(shape[i + 1].max(1));
    }
    out
}

/// Writes a shape, or other numbers, the way Python prints a tuple: `()`, `(3,)`, `(2, 3)`.
pub struct Tuple<'a, T = Dim>(pub &'a [T]);

impl<T: std::fmt::Display> std::fmt::Display for Tuple<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(")?;
        for (i, d) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{d}")?;
        }
        f.write_str(if self.0.len() == 1 { ",)" } else { ")" })
    }
}

/// NumPy's broadcast of two shapes, or `None` where they do not combine.
pub fn broadcast(a: &[Dim], b: &[Dim]) -> Option<Shape> {
    let rank = a.len().max(b.len());
    let mut out = Shape::with_capacity(rank);
    for i in 0..rank {
        let x = if i + a.len() >= rank { a[i + a.len() - rank] } else { 1 };
        let y = if i + b.len() >= rank { b[i + b.len() - rank] } else { 1 };
        out.push(match (x, y) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            _ => return None,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_of_arrays_without_elements_end_at_the_largest_number() {
        assert_eq!(strides(&[0, usize::MAX, 2]).as_slice(), [usize::MAX, 2, 1]);
    }

    #[test]
    fn tuples_print_like_python() {
        assert_eq!(Tuple::<Dim>(&[]).to_string(), "()");
        assert_eq!(Tuple(&[3]).to_string(), "(3,)");
        assert_eq!(Tuple(&[2, 3]).to_string(), "(2, 3)");
    }

    #[test]
    fn broadcasting_follows_numpy() {
        assert_eq!(broadcast(&[3, 1], &[4]).unwrap().as_slice(), &[3, 4]);
        assert_eq!(broadcast(&[], &[2]).unwrap().as_slice(), &[2]);
        assert_eq!(broadcast(&[0, 1], &[1, 5]).unwrap().as_slice(), &[0, 5]);
        assert!(broadcast(&[2], &[3]).is_none());
    }

    #[test]
    fn sizes_are_checked() {
        assert_eq!(checked_size(&[]), Some(1));
        assert_eq!(checked_size(&[usize::MAX, 2]), None);
        assert_eq!(checked_size(&[usize::MAX, 0]), Some(0));
        assert_eq!((size(&[2, 3]), size(&[usize::MAX, 2]), size(&[usize::MAX, 2, 0])), (6, usize::MAX, 0));
    }
}
