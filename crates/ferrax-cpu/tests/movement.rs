//! Nodes that move elements, against index arithmetic one element at a time.

mod common;

use common::{Array, Rng, assert_same, cases, node, ravel};
use ferrax_base::{DType, Scalar, Shape};
use ferrax_loops::{Kind, PadConfig, SliceDims, Type};
use proptest::prelude::*;

const DTYPES: [DType; 7] = [DType::Bool, DType::I4, DType::BF16, DType::F32, DType::F64, DType::C128, DType::KeyFry];

fn array(rng: &mut Rng, d: DType, shape: &[usize]) -> Array {
    let n = shape.iter().product();
    if d.is_key() {
        return Array::new(d, shape, (0..n).map(|_| Scalar { dtype: d, bits: u128::from(rng.next()) }).collect());
    }
    Array::random(rng, d, shape)
}

fn dtype(rng: &mut Rng) -> DType {
    DTYPES[rng.below(DTYPES.len())]
}

fn check(kind: &Kind, ins: &[&Array], want: &Array) {
    let got = node(kind, ins, std::slice::from_ref(&want.ty));
    assert_same(&got[0], want, kind);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(300), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn transpose(seed: u64, rank in 0usize..6) {
        let rng = &mut Rng(seed);
        let (d, shape, perm) = (dtype(rng), rng.shape(rank, 7), rng.permutation(rank));
        let x = array(rng, d, &shape);
        let out: Vec<usize> = perm.iter().map(|&p| shape[p]).collect();
        let want = Array::from_fn(d, &out, |i| {
            let mut from = vec![0; rank];
            perm.iter().zip(i).for_each(|(&p, &i)| from[p] = i);
            x.at(&from)
        });
        check(&Kind::Transpose(perm.into()), &[&x], &want);
    }

    #[test]
    fn large_transpose(seed: u64, a in 1usize..90, b in 1usize..90, c in 1usize..5) {
        let rng = &mut Rng(seed);
        let (shape, perm) = ([c, a, b], rng.permutation(3));
        let d = [DType::F32, DType::F64, DType::BF16, DType::C128][rng.below(4)];
        let x = array(rng, d, &shape);
        let out: Vec<usize> = perm.iter().map(|&p| shape[p]).collect();
        let want = Array::from_fn(d, &out, |i| {
            let mut from = vec![0; 3];
            perm.iter().zip(i).for_each(|(&p, &i)| from[p] = i);
            x.at(&from)
        });
        check(&Kind::Transpose(perm.into()), &[&x], &want);
    }

    #[test]
    fn transpose_of_many_bytes(seed: u64, a in 1usize..400, b in 400usize..700) {
        let rng = &mut Rng(seed);
        let d = [DType::F32, DType::F64, DType::U8][rng.below(3)];
        let x = Array::from_fn(d, &[a, b], |i| Scalar::from_i64(d, (i[0] * 700 + i[1]) as i64));
        check(&Kind::Transpose(vec![1, 0].into()), &[&x], &Array::from_fn(d, &[b, a], |i| x.at(&[i[1], i[0]])));
    }

    /// A few arrays whose elements alternate are taken apart and put together.
    #[test]
    fn alternating_arrays(seed: u64, k in 1usize..7, n in 1usize..150, outer in 1usize..4, apart: bool) {
        let rng = &mut Rng(seed);
        let d = [DType::F32, DType::F64, DType::C64, DType::U8][rng.below(4)];
        let x = Array::random(rng, d, &if apart { [outer, n, k] } else { [outer, k, n] });
        let want = Array::from_fn(d, &[x.ty.shape[0], x.ty.shape[2], x.ty.shape[1]], |i| x.at(&[i[0], i[2], i[1]]));
        check(&Kind::Transpose(vec![0, 2, 1].into()), &[&x], &want);
    }

    /// Rows of all widths, many of them.
    #[test]
    fn concatenate_rows(seed: u64, rows in 1usize..500, count in 1usize..6, widest in 1usize..150) {
        let rng = &mut Rng(seed);
        let d = dtype(rng);
        let widest = if rng.below(2) == 0 { 1 + rng.below(3) } else { widest };
        let mut xs = Vec::with_capacity(count);
        for _ in 0..count {
            let width = rng.below(widest + 1);
            xs.push(array(rng, d, &[rows, width]));
        }
        let width: usize = xs.iter().map(|x| x.ty.shape[1]).sum();
        let mut data = Vec::with_capacity(rows * width);
        for row in 0..rows {
            xs.iter().for_each(|x| data.extend((0..x.ty.shape[1]).map(|c| x.at(&[row, c]))));
        }
        check(&Kind::Concat(1), &xs.iter().collect::<Vec<_>>(), &Array::new(d, &[rows, width], data));
    }

    #[test]
    fn broadcast(seed: u64, rank in 0usize..5) {
        let rng = &mut Rng(seed);
        let (d, out) = (dtype(rng), rng.shape(rank, 5));
        let dims = rng.axes(rank);
        let shape: Vec<usize> = dims.iter().map(|&i| if rng.below(3) == 0 { 1 } else { out[i] }).collect();
        let x = array(rng, d, &shape);
        let want = Array::from_fn(d, &out, |i| {
            let from: Vec<usize> = dims.iter().zip(&shape).map(|(&a, &n)| if n == 1 { 0 } else { i[a] }).collect();
            x.at(&from)
        });
        check(&Kind::Broadcast(dims.clone().into()), &[&x], &want);
    }

    #[test]
    fn slice_and_reverse(seed: u64, rank in 0usize..5) {
        let rng = &mut Rng(seed);
        let (d, shape) = (dtype(rng), rng.shape(rank, 7));
        let x = array(rng, d, &shape);
        let (mut start, mut limit, mut stride, mut out) = (Shape::new(), Shape::new(), Shape::new(), vec![]);
        for &n in &shape {
            let s = rng.below(n + 1);
            let l = s + rng.below(n - s + 1);
            let step = 1 + rng.below(3);
            start.push(s);
            limit.push(l);
            stride.push(step);
            out.push((l - s).div_ceil(step));
        }
        let want = Array::from_fn(d, &out, |i| {
            let from: Vec<usize> = (0..rank).map(|a| start[a] + i[a] * stride[a]).collect();
            x.at(&from)
        });
        check(&Kind::Slice(Box::new(SliceDims { start, limit, stride })), &[&x], &want);
        let axes = rng.axes(rank);
        let want = Array::from_fn(d, &shape, |i| {
            let from: Vec<usize> = (0..rank).map(|a| if axes.contains(&a) { shape[a] - 1 - i[a] } else { i[a] }).collect();
            x.at(&from)
        });
        check(&Kind::Rev(axes.clone().into()), &[&x], &want);
    }

    #[test]
    fn pad(seed: u64, rank in 0usize..4) {
        let rng = &mut Rng(seed);
        let (d, mut shape) = (dtype(rng), rng.shape(rank, 5));
        // Long rows are written at once, unless elements are apart.
        let long = rank > 0 && rng.below(2) == 0;
        if long {
            shape[rank - 1] = 30 + rng.below(300);
        }
        let x = array(rng, d, &shape);
        let value = array(rng, d, &[]);
        let mut config = vec![];
        let mut out = vec![];
        for &n in &shape {
            let c = PadConfig { low: rng.below(7) as i64 - 3, high: rng.below(7) as i64 - 3, interior: if long { 0 } else { rng.below(3) } };
            let spread = if n == 0 { 0 } else { n + (n - 1) * c.interior } as i64;
            out.push((spread + c.low + c.high).max(0) as usize);
            config.push(c);
        }
        // Crops that would leave a negative extent are not programs.
        let valid = shape.iter().zip(&config).all(|(&n, c)| {
            (if n == 0 { 0 } else { n + (n - 1) * c.interior }) as i64 + c.low + c.high >= 0
        });
        prop_assume!(valid);
        let want = Array::from_fn(d, &out, |i| {
            let mut from = vec![];
            for (a, c) in config.iter().enumerate() {
                let place = i[a] as i64 - c.low;
                let step = c.interior as i64 + 1;
                if place < 0 || place % step != 0 || place / step >= shape[a] as i64 {
                    return value.data[0];
                }
                from.push((place / step) as usize);
            }
            x.at(&from)
        });
        check(&Kind::Pad(config.into()), &[&x, &value], &want);
    }

    #[test]
    fn concatenate(seed: u64, rank in 1usize..4, count in 1usize..5) {
        let rng = &mut Rng(seed);
        let (d, shape, axis) = (dtype(rng), rng.shape(rank, 5), rng.below(rank));
        let xs: Vec<Array> = (0..count).map(|_| {
            let mut s = shape.clone();
            s[axis] = rng.below(4);
            array(rng, d, &s)
        }).collect();
        let mut out = shape.clone();
        out[axis] = xs.iter().map(|x| x.ty.shape[axis]).sum();
        let want = Array::from_fn(d, &out, |i| {
            let mut from = i.to_vec();
            for x in &xs {
                if from[axis] < x.ty.shape[axis] {
                    return x.at(&from);
                }
                from[axis] -= x.ty.shape[axis];
            }
            unreachable!()
        });
        check(&Kind::Concat(axis), &xs.iter().collect::<Vec<_>>(), &want);
    }

    #[test]
    fn dynamic_slices(seed: u64, rank in 0usize..4) {
        let rng = &mut Rng(seed);
        let (d, shape) = (dtype(rng), rng.shape(rank, 6));
        let window: Vec<usize> = shape.iter().map(|&n| rng.below(n + 1)).collect();
        let x = array(rng, d, &shape);
        let u = array(rng, d, &window);
        let id = [DType::I32, DType::I64, DType::U8][rng.below(3)];
        let starts: Vec<Array> = (0..rank).map(|_| Array::new(id, &[], vec![rng.tame(id)])).collect();
        let at: Vec<usize> = (0..rank)
            .map(|a| starts[a].data[0].to_i64().clamp(0, (shape[a] - window[a]) as i64) as usize)
            .collect();
        let want = Array::from_fn(d, &window, |i| {
            let from: Vec<usize> = at.iter().zip(i).map(|(s, i)| s + i).collect();
            x.at(&from)
        });
        let mut ins = vec![&x];
        ins.extend(&starts);
        check(&Kind::DynamicSlice, &ins, &want);
        let want = Array::from_fn(d, &shape, |i| {
            let inside = (0..rank).all(|a| (at[a]..at[a] + window[a]).contains(&i[a]));
            let from: Vec<usize> = (0..rank).map(|a| i[a].wrapping_sub(at[a])).collect();
            if inside { u.at(&from) } else { x.at(i) }
        });
        ins.insert(1, &u);
        check(&Kind::DynamicUpdateSlice, &ins, &want);
    }

    #[test]
    fn iota(seed: u64, rank in 1usize..4) {
        let rng = &mut Rng(seed);
        let d = common::NUMBERS[rng.below(common::NUMBERS.len())];
        let (shape, axis) = (rng.shape(rank, 6), rng.below(rank));
        let want = Array::from_fn(d, &shape, |i| Scalar::from_i64(d, i[axis] as i64));
        check(&Kind::Iota(axis), &[], &want);
    }
}

#[test]
fn bitcasts_change_the_minor_axis() {
    let x = Array::integers(DType::U32, &[2], &[0x0403_0201, -2]);
    let got = node(&Kind::Bitcast, &[&x], &[Type::new(DType::U8, &[2, 4])]);
    let want = Array::integers(DType::U8, &[2, 4], &[1, 2, 3, 4, 254, 255, 255, 255]);
    assert_same(&got[0], &want, &"u32 to u8");
    let back = node(&Kind::Bitcast, &[&want], std::slice::from_ref(&x.ty));
    assert_same(&back[0], &x, &"u8 to u32");
    let nibbles = node(&Kind::Bitcast, &[&Array::integers(DType::I8, &[1], &[-14])], &[Type::new(DType::I4, &[1, 2])]);
    assert_same(&nibbles[0], &Array::integers(DType::I4, &[1, 2], &[2, -1]), &"i8 to i4");
    let bytes = node(&Kind::Bitcast, &[&nibbles[0]], &[Type::new(DType::I8, &[1])]);
    assert_same(&bytes[0], &Array::integers(DType::I8, &[1], &[-14]), &"i4 to i8");
    let one = Array::floats(DType::F32, &[], &[1.0]);
    let bits = node(&Kind::Bitcast, &[&one], &[Type::new(DType::I32, &[])]);
    assert_eq!(bits[0].data[0].to_i64(), 0x3f80_0000);
    assert_eq!(ravel(&[1, 2], &[3, 4]), 6);
}
