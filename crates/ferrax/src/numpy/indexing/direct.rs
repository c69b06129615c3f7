//! Static indexing of concrete arrays by copying bytes, with no operation dispatched.

use super::Part;
use ferrax_base::symbolic::is_symbolic;
use ferrax_base::{Aval, Buffer, Result, Shape};
use ferrax_ir::trace::is_eager;
use ferrax_ir::{Array, Value};
use smallvec::{SmallVec, smallvec};

/// `x[i]` of a concrete array outside of every trace; `None` where that is not so, or `i` is out of bounds.
#[inline]
pub fn row(x: &Value, i: i64) -> Result<Option<Array>> {
    let Value::Array(a) = x else { return Ok(None) };
    let aval = a.aval();
    let Some((&n, rest)) = aval.shape.split_first() else { return Ok(None) };
    let i = if i < 0 { i + n as i64 } else { i };
    if !(0..n as i64).contains(&i) || !a.device().is_cpu() || !is_eager() || crate::device::moves(a) {
        return Ok(None);
    }
    let bytes = ferrax_base::shape::size(rest) * aval.dtype.size();
    let buffer = Buffer::from_bytes(&a.pin()?.bytes()[i as usize * bytes..][..bytes])?;
    let out = Aval { shape: Shape::from_slice(rest), dtype: aval.dtype, weak: aval.weak, vary: 0, spread: 0 };
    Ok(Some(Array::placed(out, buffer, a.device(), a.committed())))
}

/// A regular region of an array: byte offset of its first element, and size and byte step of each axis.
pub(super) struct Region {
    offset: usize,
    sizes: Shape,
    steps: SmallVec<[isize; 4]>,
    /// The region's shape as the result of indexing: without integer axes, with new ones.
    pub shape: Shape,
}

impl Region {
    /// The region of static parts; `None` when an integer is out of bounds and `clip` does not move it inside, or
    /// when a part is dynamic.
    pub fn of(aval: &Aval, parts: &[Part], clip: bool) -> Option<Region> {
        let size = aval.dtype.size();
        let mut out = Region { offset: 0, sizes: Shape::new(), steps: smallvec![], shape: Shape::new() };
        let mut stride = aval.size() * size;
        let mut dims = aval.shape.iter();
        for part in parts {
            if matches!(part, Part::New) {
                out.shape.push(1);
                continue;
            }
            let &n = dims.next()?;
            // Strides from the left: what is left of the array, divided by the axis.
            stride = stride.checked_div(n).unwrap_or(0);
            match *part {
                Part::Int(i) if is_symbolic(i as usize) => return None,
                Part::Slice { start, len, .. } if is_symbolic(start) || is_symbolic(len) => return None,
                Part::Int(i) if clip => out.offset += i.clamp(0, n as i64 - 1) as usize * stride,
                Part::Int(i) if (0..n as i64).contains(&i) => out.offset += i as usize * stride,
                Part::Slice { start, step, len } => {
                    out.offset += if len == 0 { 0 } else { start * stride };
                    out.sizes.push(len);
                    out.steps.push(step * stride as isize);
                    out.shape.push(len);
                }
                _ => return None,
            }
        }
        Some(out)
    }

    fn size(&self) -> usize {
        ferrax_base::shape::size(&self.sizes)
    }

    /// Calls `f` with (byte offset in the array, element number in the region) of every run of `run` elements.
    fn runs(&self, element: usize, mut f: impl FnMut(usize, usize, usize)) {
        let total = self.size();
        if total == 0 {
            return;
        }
        // Trailing axes that lie densely are one run.
        let mut run = 1;
        let mut outer = self.sizes.len();
        while outer > 0 && (self.sizes[outer - 1] == 1 || self.steps[outer - 1] == (run * element) as isize) {
            run *= self.sizes[outer - 1];
            outer -= 1;
        }
        if outer == 0 {
            return f(self.offset, 0, run);
        }
        let mut index: Shape = smallvec![0; outer];
        let mut at = self.offset as isize;
        for n in 0..total / run {
            f(at as usize, n * run, run);
            for d in (0..outer).rev() {
                index[d] += 1;
                at += self.steps[d];
                if index[d] < self.sizes[d] {
                    break;
                }
                at -= self.steps[d] * self.sizes[d] as isize;
                index[d] = 0;
            }
        }
    }

    /// A copy of the region as an array.
    pub fn read(&self, x: &Array) -> Result<Array> {
        let element = x.aval().dtype.size();
        let pin = x.pin()?;
        let from = pin.bytes();
        let mut buffer = Buffer::allocate(self.size() * element)?;
        let to = buffer.bytes_mut();
        self.runs(element, |at, n, run| {
            to[n * element..(n + run) * element].copy_from_slice(&from[at..at + run * element]);
        });
        let aval = Aval { shape: self.shape.clone(), dtype: x.aval().dtype, weak: x.aval().weak, vary: 0, spread: 0 };
        Ok(Array::placed(aval, buffer, x.device(), x.committed()))
    }

    /// A copy of the array with the region replaced: by the elements of `values` in order, or by its one element.
    pub fn written(&self, x: &Array, values: &[u8]) -> Result<Array> {
        let element = x.aval().dtype.size();
        let pin = x.pin()?;
        let mut buffer = Buffer::from_bytes(pin.bytes())?;
        let to = buffer.bytes_mut();
        let splat = values.len() == element;
        self.runs(element, |at, n, run| {
            let to = &mut to[at..at + run * element];
            if splat {
                to.chunks_exact_mut(element).for_each(|e| e.copy_from_slice(values));
            } else {
                to.copy_from_slice(&values[n * element..(n + run) * element]);
            }
        });
        let aval =
            Aval { shape: x.aval().shape.clone(), dtype: x.aval().dtype, weak: x.aval().weak, vary: 0, spread: 0 };
        Ok(Array::placed(aval, buffer, x.device(), x.committed()))
    }
}
