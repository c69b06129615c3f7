//! Products in the geometry of every instruction set, on vectors that any machine has.
//!
//! How a product is cut up depends on the lanes of a vector and the rows of a tile: which panels are packed, how high
//! the last ones are, where a narrower kernel takes over. An element type for each geometry computes with arrays of that
//! many lanes, so that the cutting up of an instruction set is tested on machines that do not have it. The bits are those
//! of plain loops in the stated order, whatever the geometry.

use super::tests::check;
use super::*;
use crate::cases::cases;
use crate::pool::trial::{self, Trial};
use crate::simd::lanes::Plain;
use proptest::prelude::*;
use std::ops::{Add, Mul, Neg, Sub};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// An element whose products are cut up as with vectors of `$n` lanes and tiles of `$r` rows, and with half of them
/// where those take narrower vectors.
macro_rules! geometry {
    ($($Name:ident, $T:ty, lanes $n:literal, rows $r:literal, narrow $narrow:literal $low:literal;)*) => {$(
        #[derive(Clone, Copy, Debug, PartialEq)]
        struct $Name($T);

        impl Add for $Name {
            type Output = Self;
            fn add(self, b: Self) -> Self {
                $Name(self.0 + b.0)
            }
        }
        impl Sub for $Name {
            type Output = Self;
            fn sub(self, b: Self) -> Self {
                $Name(self.0 - b.0)
            }
        }
        impl Mul for $Name {
            type Output = Self;
            fn mul(self, b: Self) -> Self {
                $Name(self.0 * b.0)
            }
        }
        impl Neg for $Name {
            type Output = Self;
            fn neg(self) -> Self {
                $Name(-self.0)
            }
        }

        impl Real for $Name {
            const ZERO: Self = $Name(0.0);
            // Fused where the machine's own products are.
            fn fma<const F: bool>(a: Self, b: Self, c: Self) -> Self {
                $Name(tests::fma(a.0, b.0, c.0))
            }
        }

        impl Kernels for $Name {
            fn width() -> usize {
                2 * $n
            }
            fn height(rows: usize) -> usize {
                tile::height::<Plain<Self, $n, true, $r>>(rows)
            }
            unsafe fn part(p: &Part<Self>) {
                // SAFETY: the caller's contract, here and below.
                unsafe {
                    if p.suits_half() {
                        tile::part::<Plain<Self, $narrow, true, $low>>(p);
                    } else {
                        tile::part::<Plain<Self, $n, true, $r>>(p);
                    }
                }
            }
            unsafe fn vector(p: &vector::Times<Self>) {
                // SAFETY: as above.
                unsafe { vector::times::<Plain<Self, $n, true, $r>>(p) }
            }
        }
    )*};
}
geometry! {
    WideF32, f32, lanes 16, rows 14, narrow 8 6;
    WideF64, f64, lanes 8, rows 14, narrow 4 6;
    HalfF32, f32, lanes 8, rows 6, narrow 8 6;
    HalfF64, f64, lanes 4, rows 6, narrow 4 6;
    NeonF32, f32, lanes 4, rows 12, narrow 4 12;
    NeonF64, f64, lanes 2, rows 12, narrow 2 12;
    PlainF32, f32, lanes 8, rows 4, narrow 8 4;
}

/// A product in every geometry.
fn everywhere(sizes: (usize, usize, usize), layouts: (usize, usize), seed: u64) {
    check::<WideF32>(sizes, layouts, seed, |x| WideF32(x as f32));
    check::<WideF64>(sizes, layouts, seed, WideF64);
    check::<HalfF32>(sizes, layouts, seed, |x| HalfF32(x as f32));
    check::<HalfF64>(sizes, layouts, seed, HalfF64);
    check::<NeonF32>(sizes, layouts, seed, |x| NeonF32(x as f32));
    check::<NeonF64>(sizes, layouts, seed, NeonF64);
    check::<PlainF32>(sizes, layouts, seed, |x| PlainF32(x as f32));
}

/// A size around the edges of tiles and blocks of `unit`: some whole ones and a bit more or less.
fn ragged(unit: usize, most: usize) -> impl Strategy<Value = usize> {
    (0..=most, -3isize..=3).prop_map(move |(whole, more)| (whole * unit).saturating_add_signed(more).max(1))
}

/// A size around those of tiles.
fn tiles(most: usize) -> impl Strategy<Value = usize> {
    prop::sample::select(vec![4usize, 6, 12, 14, 16, 32]).prop_flat_map(move |unit| ragged(unit, most))
}

fn threads() -> impl Strategy<Value = usize> {
    1usize..=trial::THREADS
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(60), failure_persistence: None, ..ProptestConfig::default() })]

    /// Sizes around tiles, every layout of the operands, every number of threads.
    #[test]
    fn edges_of_tiles(
        m in tiles(4), n in tiles(5), k in tiles(3), a in 0usize..4, b in 0usize..4, threads in threads(), seed: u64,
    ) {
        let _trial = Trial::begin(threads, seed);
        everywhere((m, n, k), (a, b), seed);
    }

    /// Products that are deep, so that operands are packed, with columns past whole tiles.
    #[test]
    fn packed_operands(
        m in tiles(5), n in ragged(64, 3), k in ragged(DEPTH, 3), a in 0usize..4, b in 0usize..4, threads in threads(),
        seed: u64,
    ) {
        let _trial = Trial::begin(threads, seed);
        check::<WideF32>((m, n, k), (a, b), seed, |x| WideF32(x as f32));
        check::<WideF64>((m, n, k), (a, b), seed, WideF64);
        check::<HalfF32>((m, n, k), (a, b), seed, |x| HalfF32(x as f32));
        check::<NeonF64>((m, n, k), (a, b), seed, NeonF64);
    }
}

/// Blocks of rows and of columns with little left over, deep enough to be packed: what went wrong once is among them.
#[test]
fn blocks_with_little_left_over() {
    let sizes = [
        (32, 70, 1025),
        (64, 70, 784),
        (17, 130, 2000),
        (8, 72, 4096),
        (64, 515, 512),
        (ROWS + 1, 33, 300),
        (2 * ROWS + 3, COLUMNS + 5, 40),
        (15, COLUMNS + 1, 257),
    ];
    for (seed, sizes) in sizes.into_iter().enumerate() {
        for threads in [1, 2, 7] {
            let _trial = Trial::begin(threads, seed as u64);
            check::<WideF32>(sizes, (0, 0), 3, |x| WideF32(x as f32));
            check::<WideF64>(sizes, (1, 0), 3, WideF64);
            check::<HalfF32>(sizes, (0, 1), 3, |x| HalfF32(x as f32));
        }
    }
}

/// Rows of a product as they are made: each once, whole when it is given out.
#[test]
fn rows_are_given_out_whole() {
    for (m, n, k) in [(1300, 210, 19), (600, 515, 40)] {
        for threads in [1, 3, 8] {
            let _trial = Trial::begin(threads, 5);
            let a = tests::values(m * k, 1, |x| WideF32(x as f32));
            let b = tests::values(k * n, 2, |x| WideF32(x as f32));
            let mut c = vec![WideF32(f32::NAN); m * n];
            let p = Product {
                m,
                n,
                k,
                a: Matrix { ptr: a.as_ptr(), row: k as isize, column: 1 },
                b: Matrix { ptr: b.as_ptr(), row: n as isize, column: 1 },
                c: c.as_mut_ptr(),
            };
            assert!(p.suits_rows());
            let seen: Vec<AtomicUsize> = (0..m).map(|_| AtomicUsize::default()).collect();
            let rows = |_: usize, first: usize, end: usize| {
                for i in first..end {
                    seen[i].fetch_add(1, Relaxed);
                    let p = &p;
                    // SAFETY: the rows are done, and nobody writes them any more.
                    let row = unsafe { std::slice::from_raw_parts(p.c.wrapping_add(i * n), n) };
                    assert!(row.iter().all(|x| !x.0.is_nan()), "row {i}");
                }
            };
            // SAFETY: the strides are those of the arrays.
            unsafe { p.run_rows(&rows) }.unwrap();
            assert!(seen.into_iter().all(|count| count.into_inner() == 1));
            for (at, &got) in c.iter().enumerate().step_by(7) {
                assert_eq!(got, tests::in_blocks(k, |q| (a[at / n * k + q], b[q * n + at % n])));
            }
        }
    }
}

/// Panels are filled by tasks in any order: each element by one of them, and nothing beside them.
#[test]
fn panels_are_whole_and_disjoint() {
    for (n, k) in [(1, 1), (13, 300), (70, 1025), (515, 512), (900, 257)] {
        for pitch in [None, Some(WideF32::width())] {
            let x: Vec<f32> = (0..n * k).map(|i| i as f32 + 1.0).collect();
            let matrix = Matrix { ptr: x.as_ptr(), row: k as isize, column: 1 };
            let height: fn(usize) -> usize = match pitch {
                None => WideF32::height,
                Some(_) => |left| left.min(WideF32::width()),
            };
            let panels = Panels::new(matrix, (n, k), (height, pitch)).unwrap();
            let mut seen = vec![0u32; n * k];
            for task in (0..panels.tasks()).rev() {
                panels.clear(0.0);
                // SAFETY: the operand is the array.
                unsafe { panels.fill(task) };
                for &value in panels.values().iter().filter(|v| **v != 0.0) {
                    seen[value as usize - 1] += 1;
                }
            }
            assert!(seen.iter().all(|&count| count == 1), "{n}x{k}, {pitch:?}");
        }
    }
}
