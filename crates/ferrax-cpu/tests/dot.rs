//! Dot products against sums of products.

mod common;

use common::{Array, NUMBERS, Rng, cases, node, unravel};
use ferrax_base::{DType, Scalar};
use ferrax_loops::{DotDims, Kind, Type};
use proptest::prelude::*;
use smallvec::SmallVec;

fn product(a: Scalar, b: Scalar, acc: (f64, f64), ints: i128) -> ((f64, f64), i128) {
    let (x, i, y, j) = (a.to_f64(), a.imag(), b.to_f64(), b.imag());
    ((acc.0 + x * y - i * j, acc.1 + x * j + i * y), ints + i128::from(a.to_i64()) * i128::from(b.to_i64()))
}

fn reference(dims: &DotDims, a: &Array, b: &Array, out: DType) -> Array {
    let free = |x: &Array, batch: &[usize], contract: &[usize]| -> Vec<usize> {
        (0..x.ty.shape.len()).filter(|i| !batch.contains(i) && !contract.contains(i)).collect()
    };
    let (fa, fb) = (free(a, &dims.lhs_batch, &dims.lhs_contract), free(b, &dims.rhs_batch, &dims.rhs_contract));
    let mut shape: Vec<usize> = dims.lhs_batch.iter().map(|&i| a.ty.shape[i]).collect();
    shape.extend(fa.iter().map(|&i| a.ty.shape[i]));
    shape.extend(fb.iter().map(|&i| b.ty.shape[i]));
    let inner: Vec<usize> = dims.lhs_contract.iter().map(|&i| a.ty.shape[i]).collect();
    let nb = dims.lhs_batch.len();
    Array::from_fn(out, &shape, |at| {
        let (mut ia, mut ib) = (vec![0; a.ty.shape.len()], vec![0; b.ty.shape.len()]);
        for k in 0..nb {
            ia[dims.lhs_batch[k]] = at[k];
            ib[dims.rhs_batch[k]] = at[k];
        }
        fa.iter().enumerate().for_each(|(k, &x)| ia[x] = at[nb + k]);
        fb.iter().enumerate().for_each(|(k, &x)| ib[x] = at[nb + fa.len() + k]);
        let (mut acc, mut ints) = ((0.0, 0.0), 0i128);
        for c in 0..inner.iter().product() {
            let c = unravel(c, &inner);
            dims.lhs_contract.iter().zip(&c).for_each(|(&x, &v)| ia[x] = v);
            dims.rhs_contract.iter().zip(&c).for_each(|(&x, &v)| ib[x] = v);
            (acc, ints) = product(a.at(&ia), b.at(&ib), acc, ints);
        }
        if out.is_integer() { Scalar::from_i64(out, ints as i64) } else { Scalar::from_complex(out, acc.0, acc.1) }
    })
}

fn check(dims: DotDims, a: &Array, b: &Array, out: DType) {
    let want = reference(&dims, a, b, out);
    let got = &node(&Kind::Dot(Box::new(dims.clone())), &[a, b], std::slice::from_ref(&want.ty))[0];
    let tolerance = match out {
        d if d.is_integer() => 0.0,
        DType::BF16 => 0.01,
        DType::F16 => 0.002,
        DType::F64 | DType::C128 => 1e-13,
        _ => 1e-5,
    };
    for (i, (g, w)) in got.data.iter().zip(&want.data).enumerate() {
        let close = |x: f64, y: f64| (x - y).abs() <= tolerance * (1.0 + y.abs());
        assert!(
            close(g.to_f64(), w.to_f64()) && close(g.imag(), w.imag()),
            "{dims:?} {} {} at {i}: {g}, {w}",
            a.ty,
            b.ty
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(300), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_dimension_numbers(seed: u64, batch in 0usize..3, contract in 0usize..3, fa in 0usize..3, fb in 0usize..3) {
        let rng = &mut Rng(seed);
        let d = NUMBERS[rng.below(NUMBERS.len())];
        let out = match d {
            DType::I8 if rng.below(2) == 0 => DType::I32,
            DType::BF16 | DType::F16 if rng.below(2) == 0 => DType::F32,
            other => other,
        };
        let (sb, sc) = (rng.shape(batch, 4), rng.shape(contract, 5));
        let side = |rng: &mut Rng, free: usize| {
            let rank = batch + contract + free;
            let order = rng.permutation(rank);
            let mut shape = rng.shape(rank, 4);
            let b: SmallVec<[usize; 2]> = order[..batch].into();
            let c: SmallVec<[usize; 2]> = order[batch..batch + contract].into();
            b.iter().zip(&sb).for_each(|(&i, &n)| shape[i] = n);
            c.iter().zip(&sc).for_each(|(&i, &n)| shape[i] = n);
            (Array::tame(rng, d, &shape), b, c)
        };
        let (a, lhs_batch, lhs_contract) = side(rng, fa);
        let (b, rhs_batch, rhs_contract) = side(rng, fb);
        check(DotDims { lhs_contract, rhs_contract, lhs_batch, rhs_batch, ..DotDims::default() }, &a, &b, out);
    }

    #[test]
    fn matrices(seed: u64, m in 1usize..40, n in 1usize..40, k in 1usize..70, ta: bool, tb: bool) {
        let rng = &mut Rng(seed);
        let d = [DType::F32, DType::F64, DType::C64, DType::C128, DType::BF16, DType::I32][rng.below(6)];
        let a = Array::tame(rng, d, &if ta { [k, m] } else { [m, k] });
        let b = Array::tame(rng, d, &if tb { [n, k] } else { [k, n] });
        let dims = DotDims {
            lhs_contract: SmallVec::from_slice(&[usize::from(!ta)]),
            rhs_contract: SmallVec::from_slice(&[usize::from(tb)]),
            ..DotDims::default()
        };
        check(dims, &a, &b, d);
    }

    /// Many small matrices are multiplied at once, with the bits of each product alone.
    #[test]
    fn many_small_products(seed: u64, count in 16usize..70, m in 1usize..6, n in 1usize..6, k in 1usize..40, ta: bool, tb: bool) {
        let rng = &mut Rng(seed);
        let d = [DType::F32, DType::F64][rng.below(2)];
        let (rows, columns) = (if ta { [k, m] } else { [m, k] }, if tb { [n, k] } else { [k, n] });
        let a = Array::tame(rng, d, &[count, rows[0], rows[1]]);
        let b = Array::tame(rng, d, &[count, columns[0], columns[1]]);
        let axes = |a: usize| SmallVec::from_slice(&[a]);
        let alone = DotDims { lhs_contract: axes(usize::from(!ta)), rhs_contract: axes(usize::from(tb)), ..DotDims::default() };
        let many = DotDims {
            lhs_contract: axes(1 + usize::from(!ta)),
            rhs_contract: axes(1 + usize::from(tb)),
            lhs_batch: axes(0),
            rhs_batch: axes(0),
            ..DotDims::default()
        };
        let got = node(&Kind::Dot(Box::new(many)), &[&a, &b], &[Type::new(d, &[count, m, n])]);
        for i in 0..count {
            let of = |x: &Array, shape: [usize; 2]| Array::from_fn(d, &shape, |at| x.at(&[i, at[0], at[1]]));
            let one = node(&Kind::Dot(Box::new(alone.clone())), &[&of(&a, rows), &of(&b, columns)], &[Type::new(d, &[m, n])]);
            let bits = |x: &[Scalar]| x.iter().map(|s| s.bits).collect::<Vec<_>>();
            assert_eq!(bits(&got[0].data[i * m * n..][..m * n]), bits(&one[0].data), "{m} {n} {k} {ta} {tb} at {i}");
        }
        // Batches side by side.
        let last = |x: &Array| Array::from_fn(d, &[x.ty.shape[1], x.ty.shape[2], count], |i| x.at(&[i[2], i[0], i[1]]));
        let dims = DotDims { lhs_batch: axes(2), rhs_batch: axes(2), ..alone };
        check(dims, &last(&a), &last(&b), d);
    }
}

#[test]
fn bool_products_are_or_of_ands() {
    let a = Array::integers(DType::Bool, &[2, 2], &[1, 0, 0, 0]);
    let b = Array::integers(DType::Bool, &[2, 2], &[1, 1, 0, 1]);
    let dims = DotDims {
        lhs_contract: SmallVec::from_slice(&[1]),
        rhs_contract: SmallVec::from_slice(&[0]),
        ..DotDims::default()
    };
    let got = node(&Kind::Dot(Box::new(dims)), &[&a, &b], &[Type::new(DType::Bool, &[2, 2])]);
    assert_eq!(got[0].data.iter().map(|s| s.bits).collect::<Vec<_>>(), [1, 1, 0, 0]);
}
