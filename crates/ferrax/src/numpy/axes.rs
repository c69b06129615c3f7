//! Axes as NumPy's functions take them: negative ones count from the end, and none given stands for all.

use ferrax_base::shape::Tuple;
use ferrax_base::{Result, bail};
use smallvec::SmallVec;

pub use ferrax_ops::common::canonical_axis;

/// Axes counted from the front.
pub type Axes = SmallVec<[usize; 4]>;

/// Distinct axes counted from the front, in the given order; all of them for `None`.
///
/// Errors when one is out of bounds for the rank, or there twice.
///
/// ```
/// use ferrax::numpy::canonical_axes;
/// assert_eq!(canonical_axes(Some(&[-1, 0]), 3)?.as_slice(), [2, 0]);
/// assert_eq!(canonical_axes(None, 2)?.as_slice(), [0, 1]);
/// assert!(canonical_axes(Some(&[0, -2]), 2).is_err());
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn canonical_axes(given: Option<&[i64]>, rank: usize) -> Result<Axes> {
    let Some(given) = given else { return Ok((0..rank).collect()) };
    let axes: Axes = given.iter().map(|&a| canonical_axis(a, rank)).collect::<Result<_>>()?;
    if (1..axes.len()).any(|i| axes[..i].contains(&axes[i])) {
        bail!(Value, "duplicate value in 'axis': {} for an array of dimension {rank}", Tuple(given));
    }
    Ok(axes)
}
