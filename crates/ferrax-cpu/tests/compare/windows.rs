//! Random windows for reductions.

use crate::against::Rng;
use ferrax_loops::WindowDims;

/// Windows that fit an operand, of every stride, dilation and padding.
pub fn windows(rng: &mut Rng, shape: &[usize]) -> (WindowDims, Vec<usize>) {
    loop {
        let mut any =
            |low: usize, high: usize| -> Vec<usize> { shape.iter().map(|_| low + rng.below(high - low + 1)).collect() };
        let (window, strides, base, dilation) = (any(1, 3), any(1, 3), any(1, 2), any(1, 2));
        let padding: Vec<(i64, i64)> =
            shape.iter().map(|_| (rng.below(5) as i64 - 1, rng.below(5) as i64 - 1)).collect();
        let extent = |i: usize| {
            let n = shape[i] as i64;
            let held = if n == 0 { 0 } else { (n - 1) * base[i] as i64 + 1 };
            let reach = (window[i] as i64 - 1) * dilation[i] as i64 + 1;
            (held + padding[i].0 + padding[i].1 - reach).div_euclid(strides[i] as i64) + 1
        };
        let out: Vec<i64> = (0..shape.len()).map(extent).collect();
        if out.iter().all(|&n| n >= 1) {
            let dims = WindowDims {
                window: window.as_slice().into(),
                strides: strides.as_slice().into(),
                padding: padding.as_slice().into(),
                base_dilation: base.as_slice().into(),
                window_dilation: dilation.as_slice().into(),
            };
            return (dims, out.into_iter().map(|n| n as usize).collect());
        }
    }
}
