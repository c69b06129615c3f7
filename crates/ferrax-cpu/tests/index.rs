//! Sort, top-k, gather and scatter, against plain loops over XLA's definitions.

mod common;

use common::{Array, NUMBERS, Rng, assert_same, cases, node, unravel};
use ferrax_base::{DType, Scalar, Shape};
use ferrax_loops::{GatherDims, Gathering, IndexMode, Kind, ScatterDims, ScatterOp, Type};
use proptest::prelude::*;
use smallvec::SmallVec;
use std::cmp::Ordering;

/// The order of sorting: -0.0 equals 0.0, NaN is last, complex by real part first.
fn order_of(a: Scalar, b: Scalar) -> Ordering {
    let d = a.dtype;
    if !d.is_inexact() {
        return if d.is_signed() { a.to_i64().cmp(&b.to_i64()) } else { a.bits.cmp(&b.bits) };
    }
    let part = |x: f64, y: f64| match (x.is_nan(), y.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        _ => x.partial_cmp(&y).unwrap(),
    };
    part(a.to_f64(), b.to_f64()).then(part(a.imag(), b.imag()))
}

fn row(x: &Array, start: &[usize], axis: usize) -> Vec<Scalar> {
    (0..x.ty.shape[axis])
        .map(|r| {
            let mut at = start.to_vec();
            at[axis] = r;
            x.at(&at)
        })
        .collect()
}

fn mode(rng: &mut Rng) -> IndexMode {
    [IndexMode::Clip, IndexMode::FillOrDrop, IndexMode::PromiseInBounds][rng.below(3)]
}

/// Random dimension numbers over an operand: which axes are batching, collapsed, indexed, in what order.
struct Numbers {
    batching: Vec<usize>,
    collapsed: Vec<usize>,
    start_map: Vec<usize>,
    /// Extents of the batch axes of the indices, and which of them are batching.
    batch: Vec<usize>,
    index_batching: Vec<usize>,
    /// Window extents by operand axis, and those that remain in the other array.
    window: Vec<usize>,
    kept: Vec<usize>,
}

fn numbers(rng: &mut Rng, shape: &[usize]) -> Numbers {
    let rank = shape.len();
    let mut role: Vec<usize> = (0..rank).map(|_| rng.below(3)).collect();
    let batching: Vec<usize> = (0..rank).filter(|&a| role[a] == 0 && rng.below(2) == 0).collect();
    for a in 0..rank {
        if role[a] == 0 && !batching.contains(&a) {
            role[a] = 2;
        }
    }
    let collapsed: Vec<usize> = (0..rank).filter(|&a| role[a] == 1).collect();
    let kept: Vec<usize> = (0..rank).filter(|&a| role[a] == 2).collect();
    let window: Vec<usize> = (0..rank).map(|a| if role[a] == 2 { rng.below(shape[a]) + 1 } else { 1 }).collect();
    let mut start_map: Vec<usize> =
        (0..rank).filter(|a| collapsed.contains(a) || (kept.contains(a) && rng.below(2) == 0)).collect();
    let order = rng.permutation(start_map.len());
    start_map = order.iter().map(|&i| start_map[i]).collect();
    let extra = rng.below(3);
    let places = rng.permutation(extra + batching.len());
    let mut batch = vec![0; places.len()];
    let index_batching: Vec<usize> = places[..batching.len()].to_vec();
    for (k, &p) in places.iter().enumerate() {
        batch[p] = if k < batching.len() { shape[batching[k]] } else { rng.below(4) };
    }
    Numbers { batching, collapsed, start_map, batch, index_batching, window, kept }
}

impl Numbers {
    fn indices(&self, rng: &mut Rng, shape: &[usize]) -> Array {
        let mut s = self.batch.clone();
        s.push(self.start_map.len());
        let d = [DType::I32, DType::I64][rng.below(2)];
        Array::from_fn(d, &s, |at| {
            let n = shape[self.start_map[at[at.len() - 1]]] as i64;
            Scalar::from_i64(d, rng.below(n as usize + 3) as i64 - 1)
        })
    }

    /// The operand index of window element `w` at batch index `b`, and whether the window is inside.
    fn place(&self, shape: &[usize], indices: &Array, b: &[usize], w: &[usize], clip: bool) -> Option<Vec<usize>> {
        let mut at = vec![0i64; shape.len()];
        for (k, &a) in self.batching.iter().enumerate() {
            at[a] = b[self.index_batching[k]] as i64;
        }
        for (k, &a) in self.start_map.iter().enumerate() {
            let mut i = b.to_vec();
            i.push(k);
            let (v, limit) = (indices.at(&i).to_i64(), (shape[a] - self.window[a]) as i64);
            if !clip && !(0..=limit).contains(&v) {
                return None;
            }
            at[a] += v.clamp(0, limit);
        }
        for (k, &a) in self.kept.iter().enumerate() {
            at[a] += w[k] as i64;
        }
        Some(at.into_iter().map(|v| v as usize).collect())
    }

    /// Splits the other array's index into batch and window parts.
    fn split(&self, at: &[usize], window_dims: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let b = (0..at.len()).filter(|a| !window_dims.contains(a)).map(|a| at[a]).collect();
        (b, window_dims.iter().map(|&a| at[a]).collect())
    }

    /// Window axes of the other array, increasing, and its shape.
    fn other(&self, rng: &mut Rng) -> (Vec<usize>, Vec<usize>) {
        let rank = self.batch.len() + self.kept.len();
        let mut dims = rng.permutation(rank)[..self.kept.len()].to_vec();
        dims.sort_unstable();
        let (mut b, mut w) = (self.batch.iter(), self.kept.iter());
        let shape = (0..rank)
            .map(|a| if dims.contains(&a) { self.window[*w.next().unwrap()] } else { *b.next().unwrap() })
            .collect();
        (dims, shape)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(400), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sort(seed: u64, rank in 1usize..4, operands in 1usize..4) {
        let rng = &mut Rng(seed);
        let mut shape = rng.shape(rank, 5);
        let axis = rng.below(rank);
        if rng.below(8) == 0 {
            shape = vec![1; rank];
            shape[axis] = 1500;
        }
        let keys = 1 + rng.below(operands);
        let xs: Vec<Array> = (0..operands).map(|_| {
            let d = NUMBERS[rng.below(NUMBERS.len())];
            if rng.below(2) == 0 { Array::random(rng, d, &shape) } else { Array::tame(rng, d, &shape) }
        }).collect();
        let mut want = xs.clone();
        for i in 0..xs[0].data.len() {
            let at = unravel(i, &shape);
            if at[axis] != 0 { continue; }
            let rows: Vec<Vec<Scalar>> = xs.iter().map(|x| row(x, &at, axis)).collect();
            let mut perm: Vec<usize> = (0..shape[axis]).collect();
            perm.sort_by(|&a, &b| {
                rows[..keys].iter().map(|r| order_of(r[a], r[b])).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
            });
            for (w, r) in want.iter_mut().zip(&rows) {
                for (k, &p) in perm.iter().enumerate() {
                    let mut to = at.clone();
                    to[axis] = k;
                    let to = common::ravel(&to, &shape);
                    w.data[to] = r[p];
                }
            }
        }
        let types: Vec<Type> = xs.iter().map(|x| x.ty.clone()).collect();
        let kind = Kind::Sort { axis, num_keys: keys, stable: true };
        let got = node(&kind, &xs.iter().collect::<Vec<_>>(), &types);
        for (g, w) in got.iter().zip(&want) {
            assert_same(g, w, &(&kind, &shape));
        }
    }

    #[test]
    fn top_k(seed: u64, rank in 1usize..4) {
        let rng = &mut Rng(seed);
        let d = NUMBERS[rng.below(12)];
        let (shape, axis) = (rng.shape(rank, 9), rng.below(rank));
        let k = rng.below(shape[axis] + 1);
        let x = Array::random(rng, d, &shape);
        let mut out = shape.clone();
        out[axis] = k;
        let (mut values, mut indices) = (Array::from_fn(d, &out, |_| Scalar::zero(d)), Array::from_fn(DType::I32, &out, |_| Scalar::zero(DType::I32)));
        for i in 0..x.data.len() {
            let at = unravel(i, &shape);
            if at[axis] != 0 { continue; }
            let r = row(&x, &at, axis);
            let mut perm: Vec<usize> = (0..r.len()).collect();
            // Of zeros, +0.0 is the larger.
            let sign = |s: Scalar| d.is_float() && s.to_f64() == 0.0 && s.to_f64().is_sign_negative();
            perm.sort_by(|&a, &b| order_of(r[b], r[a]).then_with(|| {
                if d.is_float() && r[a].to_f64() == 0.0 && r[b].to_f64() == 0.0 { sign(r[a]).cmp(&sign(r[b])) } else { Ordering::Equal }
            }));
            for (to, &p) in perm.iter().take(k).enumerate() {
                let mut place = at.clone();
                place[axis] = to;
                let place = common::ravel(&place, &out);
                values.data[place] = r[p];
                indices.data[place] = Scalar::from_i64(DType::I32, p as i64);
            }
        }
        let got = node(&Kind::TopK { k, axis }, &[&x], &[values.ty.clone(), indices.ty.clone()]);
        assert_same(&got[0], &values, &(k, axis, &x));
        assert_same(&got[1], &indices, &(k, axis, &x));
    }

    #[test]
    fn top_k_of_long_rows(seed: u64, rows in 1usize..20, n in 1usize..3000, k in 1usize..80) {
        let rng = &mut Rng(seed);
        let d = [DType::F32, DType::I32, DType::F64, DType::BF16][rng.below(4)];
        let (x, k) = (Array::random(rng, d, &[rows, n]), k.min(n));
        let (mut values, mut places) = (vec![], vec![]);
        for r in 0..rows {
            let mut order: Vec<usize> = (0..n).collect();
            let row = &x.data[r * n..(r + 1) * n];
            let key = |s: Scalar| if s.to_f64() == 0.0 && s.to_f64().is_sign_negative() { -1 } else { 0 };
            order.sort_by(|&a, &b| order_of(row[b], row[a]).then(key(row[b]).cmp(&key(row[a]))).then(a.cmp(&b)));
            values.extend(order[..k].iter().map(|&i| row[i]));
            places.extend(order[..k].iter().map(|&i| i as i64));
        }
        let (values, places) =
            (Array::new(d, &[rows, k], values), Array::integers(DType::I32, &[rows, k], &places));
        let got = node(&Kind::TopK { k, axis: 1 }, &[&x], &[values.ty.clone(), places.ty.clone()]);
        assert_same(&got[1], &places, &k);
        assert_same(&got[0], &values, &k);
    }

    #[test]
    fn sort_of_many_rows(seed: u64, rows in 1usize..50, n in 1usize..2000) {
        let rng = &mut Rng(seed);
        let d = [DType::F32, DType::I32, DType::F64, DType::U8][rng.below(4)];
        let x = Array::random(rng, d, &[rows, n]);
        let mut want = x.data.clone();
        want.chunks_mut(n).for_each(|row| row.sort_by(|&a, &b| order_of(a, b)));
        let kind = Kind::Sort { axis: 1, num_keys: 1, stable: true };
        assert_same(&node(&kind, &[&x], std::slice::from_ref(&x.ty))[0], &Array::new(d, &[rows, n], want), &n);
    }

    #[test]
    fn gather(seed: u64, rank in 1usize..5) {
        let rng = &mut Rng(seed);
        let d = NUMBERS[rng.below(NUMBERS.len())];
        let shape: Vec<usize> = rng.shape(rank, 4).iter().map(|n| n + 1).collect();
        let x = Array::tame(rng, d, &shape);
        let n = numbers(rng, &shape);
        let indices = n.indices(rng, &shape);
        let (offset_dims, out) = n.other(rng);
        let (mode, fill) = (mode(rng), rng.scalar(d));
        let want = Array::from_fn(d, &out, |at| {
            let (b, w) = n.split(at, &offset_dims);
            n.place(&shape, &indices, &b, &w, mode != IndexMode::FillOrDrop).map_or(fill, |i| x.at(&i))
        });
        let dims = GatherDims {
            offset_dims: offset_dims.into(),
            collapsed_slice_dims: n.collapsed.clone().into(),
            start_index_map: n.start_map.clone().into(),
            operand_batching_dims: n.batching.clone().into(),
            start_indices_batching_dims: n.index_batching.clone().into(),
        };
        let slice_sizes: Shape = n.window.iter().copied().collect();
        let kind = Kind::Gather(Box::new(Gathering { dims, slice_sizes, mode, fill, sorted: false, unique: false, wrap: false }));
        let got = node(&kind, &[&x, &indices], std::slice::from_ref(&want.ty));
        assert_same(&got[0], &want, &(kind, &x.ty, &indices));
    }

    #[test]
    fn scatter(seed: u64, rank in 1usize..5) {
        let rng = &mut Rng(seed);
        let d = NUMBERS[rng.below(NUMBERS.len())];
        let shape: Vec<usize> = rng.shape(rank, 4).iter().map(|n| n + 1).collect();
        let x = Array::tame(rng, d, &shape);
        let n = numbers(rng, &shape);
        let indices = n.indices(rng, &shape);
        let (window_dims, out) = n.other(rng);
        let updates = Array::from_fn(d, &out, |_| {
            // Products of these stay exact.
            let v = rng.below(4) as f64;
            if d.is_integer() { Scalar::from_i64(d, v as i64) } else { Scalar::from_f64(d, v) }
        });
        // Which of several overwrites of one element wins is not specified: `Set` has a test of its own below.
        let ops = [ScatterOp::Add, ScatterOp::Sub, ScatterOp::Mul, ScatterOp::Min, ScatterOp::Max];
        let op = ops[rng.below(if d.is_complex() { 3 } else { 5 })];
        let mode = mode(rng);
        let wide = if matches!(d, DType::F16 | DType::BF16) { DType::F32 } else { d };
        let mut want: Vec<Scalar> = x.data.iter().map(|s| s.convert(wide)).collect();
        for (i, &u) in updates.data.iter().enumerate() {
            let (b, w) = n.split(&unravel(i, &out), &window_dims);
            if let Some(at) = n.place(&shape, &indices, &b, &w, mode != IndexMode::FillOrDrop) {
                let at = common::ravel(&at, &shape);
                want[at] = combine(op, want[at], u.convert(wide));
            }
        }
        let want = Array::new(d, &shape, want.into_iter().map(|s| s.convert(d)).collect());
        let dims = ScatterDims {
            update_window_dims: window_dims.into(),
            inserted_window_dims: n.collapsed.clone().into(),
            scatter_dims_to_operand_dims: n.start_map.clone().into(),
            operand_batching_dims: n.batching.clone().into(),
            scatter_indices_batching_dims: n.index_batching.clone().into(),
        };
        let kind = Kind::Scatter { op, dims: Box::new(dims), mode, sorted: false, unique: false };
        let got = node(&kind, &[&x, &indices, &updates], std::slice::from_ref(&want.ty));
        for (i, (g, w)) in got[0].data.iter().zip(&want.data).enumerate() {
            let close = (g.to_f64() - w.to_f64()).abs() <= 1e-2 * w.to_f64().abs() && matches!(d, DType::BF16 | DType::F16);
            let zeros = d.is_inexact() && g.to_f64() == 0.0 && w.to_f64() == 0.0 && g.imag() == w.imag();
            let same = common::same(*g, *w) || close || zeros || (d.is_complex() && g.to_f64() == w.to_f64() && g.imag() == w.imag());
            assert!(same, "{kind:?} {} {indices:?} at {i}: {g}, {w}", x.ty);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(60), failure_persistence: None, ..ProptestConfig::default() })]

    /// Elements and rows at many indices, all of them inside or some not, on several threads where there are enough.
    #[test]
    fn many_indices(seed: u64, n in 1usize..300, count in 1usize..40_000, width in 1usize..40, outside: bool) {
        let rng = &mut Rng(seed);
        let d = [DType::F32, DType::I32, DType::F64, DType::U8][rng.below(4)];
        let count = if width > 1 { count / width + 1 } else { count };
        let at: Vec<i64> =
            (0..count).map(|_| rng.below(n) as i64 + if outside && rng.below(50) == 0 { n as i64 } else { 0 }).collect();
        let indices = Array::integers(DType::I32, &[count, 1], &at);
        let (mode, fill) = (mode(rng), Scalar::from_i64(d, 7));
        let place = |i: usize| match at[i] as usize {
            i if i < n => Some(i),
            _ if mode == IndexMode::FillOrDrop => None,
            _ => Some(n - 1),
        };
        let (shape, out) = if width > 1 { (vec![n, width], vec![count, width]) } else { (vec![n], vec![count]) };
        let x = Array::from_fn(d, &shape, |i| Scalar::from_i64(d, (i[0] * 31 + i[i.len() - 1]) as i64 % 100));
        let want = Array::from_fn(d, &out, |i| {
            place(i[0]).map_or(fill, |p| x.data[p * width + if width > 1 { i[1] } else { 0 }])
        });
        let kept: SmallVec<[usize; 4]> = (1..shape.len()).collect();
        let dims = GatherDims {
            offset_dims: kept.clone().into_iter().collect(),
            collapsed_slice_dims: SmallVec::from_slice(&[0]),
            start_index_map: SmallVec::from_slice(&[0]),
            ..GatherDims::default()
        };
        let slice_sizes: Shape = std::iter::once(1).chain(shape[1..].iter().copied()).collect();
        let kind = Kind::Gather(Box::new(Gathering { dims, slice_sizes, mode, fill, sorted: false, unique: false, wrap: false }));
        assert_same(&node(&kind, &[&x, &indices], std::slice::from_ref(&want.ty))[0], &want, &mode);

        let op = [ScatterOp::Set, ScatterOp::Add][rng.below(2)];
        let mut joined = x.clone();
        for (i, &u) in want.data.iter().enumerate() {
            if let Some(p) = place(i / width) {
                let to = &mut joined.data[p * width + i % width];
                *to = combine(op, *to, u);
            }
        }
        let dims = ScatterDims {
            update_window_dims: kept.into_iter().collect(),
            inserted_window_dims: SmallVec::from_slice(&[0]),
            scatter_dims_to_operand_dims: SmallVec::from_slice(&[0]),
            ..ScatterDims::default()
        };
        let kind = Kind::Scatter { op, dims: Box::new(dims), mode, sorted: false, unique: false };
        assert_same(&node(&kind, &[&x, &indices, &want], std::slice::from_ref(&x.ty))[0], &joined, &(op, mode));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(12), failure_persistence: None, ..ProptestConfig::default() })]

    /// So many updates that threads share them: elements at sorted or unique indices, promised or not, and rows.
    #[test]
    fn shared_updates(seed: u64, width in 1usize..30, promise in 0usize..4) {
        let rng = &mut Rng(seed);
        let d = [DType::F32, DType::I32, DType::F64, DType::U8, DType::C64][rng.below(5)];
        let count = 300_000 / width;
        let (sorted, unique) = (promise == 1 || promise == 3, promise >= 2);
        let n = if unique { 2 * count } else { count / 3 + 1 };
        let mut at: Vec<i64> = if unique { (0..n as i64).collect() } else { (0..count).map(|_| rng.below(n) as i64).collect() };
        if unique {
            let order = rng.permutation(n);
            at = order[..count].iter().map(|&i| i as i64).collect();
        } else if rng.below(2) == 0 {
            at.iter_mut().for_each(|i| *i += if rng.below(50) == 0 { n as i64 } else { 0 });
        }
        // A promise of sorted indices that is not kept is no harm either.
        if sorted && rng.below(4) > 0 {
            at.sort_unstable();
        }
        let mode = if unique { IndexMode::FillOrDrop } else { mode(rng) };
        let (shape, from) = if width > 1 { (vec![n, width], vec![count, width]) } else { (vec![n], vec![count]) };
        let x = Array::from_fn(d, &shape, |i| Scalar::from_i64(d, (i[0] * 31 + i[i.len() - 1]) as i64 % 100));
        let updates = Array::from_fn(d, &from, |i| Scalar::from_i64(d, (i[0] * 17 + i[i.len() - 1]) as i64 % 10));
        let op = [ScatterOp::Set, ScatterOp::Add][rng.below(2)];
        let mut want = x.clone();
        for (i, &u) in updates.data.iter().enumerate() {
            let p = at[i / width] as usize;
            if p < n || mode != IndexMode::FillOrDrop {
                let to = &mut want.data[p.min(n - 1) * width + i % width];
                *to = combine(op, *to, u);
            }
        }
        let dims = ScatterDims {
            update_window_dims: (1..shape.len()).collect(),
            inserted_window_dims: SmallVec::from_slice(&[0]),
            scatter_dims_to_operand_dims: SmallVec::from_slice(&[0]),
            ..ScatterDims::default()
        };
        let kind = Kind::Scatter { op, dims: Box::new(dims), mode, sorted, unique };
        let indices = Array::integers(DType::I32, &[count, 1], &at);
        assert_same(&node(&kind, &[&x, &indices, &updates], std::slice::from_ref(&x.ty))[0], &want, &(op, mode, promise));
    }
}

fn combine(op: ScatterOp, a: Scalar, b: Scalar) -> Scalar {
    let d = a.dtype;
    if d.is_integer() {
        let (x, y) =
            if d.is_signed() { (a.to_i64() as i128, b.to_i64() as i128) } else { (a.bits as i128, b.bits as i128) };
        return match op {
            ScatterOp::Set => b,
            ScatterOp::Add => Scalar::from_i64(d, (x + y) as i64),
            ScatterOp::Sub => Scalar::from_i64(d, (x - y) as i64),
            ScatterOp::Mul => Scalar::from_i64(d, x.wrapping_mul(y) as i64),
            ScatterOp::Min => {
                if y < x {
                    b
                } else {
                    a
                }
            }
            ScatterOp::Max => {
                if x < y {
                    b
                } else {
                    a
                }
            }
        };
    }
    let (x, y, i, j) = (a.to_f64(), b.to_f64(), a.imag(), b.imag());
    match op {
        ScatterOp::Set => b,
        ScatterOp::Add => Scalar::from_complex(d, x + y, i + j),
        ScatterOp::Sub => Scalar::from_complex(d, x - y, i - j),
        ScatterOp::Mul => Scalar::from_complex(d, x * y - i * j, x * j + i * y),
        ScatterOp::Min => {
            if y < x {
                b
            } else {
                a
            }
        }
        ScatterOp::Max => {
            if x < y {
                b
            } else {
                a
            }
        }
    }
}

#[test]
fn repeated_indices_are_applied_in_order() {
    let x = Array::floats(DType::F32, &[3], &[0.0; 3]);
    let i = Array::integers(DType::I32, &[4, 1], &[1, 1, 2, 1]);
    let u = Array::floats(DType::F32, &[4], &[1.0, 2.0, 3.0, 4.0]);
    let dims = ScatterDims {
        inserted_window_dims: SmallVec::from_slice(&[0]),
        scatter_dims_to_operand_dims: SmallVec::from_slice(&[0]),
        ..ScatterDims::default()
    };
    let run = |op| {
        let kind = Kind::Scatter {
            op,
            dims: Box::new(dims.clone()),
            mode: IndexMode::FillOrDrop,
            sorted: false,
            unique: false,
        };
        node(&kind, &[&x, &i, &u], std::slice::from_ref(&x.ty)).remove(0)
    };
    assert_same(&run(ScatterOp::Set), &Array::floats(DType::F32, &[3], &[0.0, 4.0, 3.0]), &"set");
    assert_same(&run(ScatterOp::Add), &Array::floats(DType::F32, &[3], &[0.0, 7.0, 3.0]), &"add");
}
