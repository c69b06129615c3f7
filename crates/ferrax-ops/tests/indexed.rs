//! Kernels of slices, gathers, scatters, dots, sorts and random bits, run by the CPU engine, against references.

mod support;

use ferrax_base::{Aval, DType, Scalar};
use ferrax_ir::reference::RefTensor;
use ferrax_ir::{Def, OpRef, Params};
use ferrax_loops::{DotDims, GatherDims, IndexMode, ScatterDims, ScatterOp};
use ferrax_ops::dot::{DOT_GENERAL, DotParams};
use ferrax_ops::dynamic_slice::*;
use ferrax_ops::gather_scatter::*;
use ferrax_ops::rng::*;
use ferrax_ops::slice::*;
use ferrax_ops::sort::*;
use smallvec::smallvec;
use support::{assert_close, run};

const DTYPES: [DType; 10] = [
    DType::Bool,
    DType::I8,
    DType::U16,
    DType::I32,
    DType::I64,
    DType::BF16,
    DType::F32,
    DType::F64,
    DType::C64,
    DType::C128,
];

/// Small numbers that repeat, so that ties and collisions occur.
fn sample(dtype: DType, shape: &[usize], salt: usize) -> RefTensor {
    let aval = Aval::new(dtype, shape);
    let at = |i: usize| ((i * 7 + salt * 3) % 11) as i64;
    let number = |i: usize| match dtype {
        DType::Bool => Scalar::from_bool(at(i) % 3 == 0),
        d if d.is_complex() => Scalar::from_complex(d, at(i) as f64 - 4.0, at(i / 2) as f64),
        d if d.is_float() => Scalar::from_f64(d, at(i) as f64 * 0.5 - 2.0),
        d => Scalar::from_i64(d, at(i)),
    };
    RefTensor { data: (0..aval.size()).map(number).collect(), aval }
}

fn integers(dtype: DType, shape: &[usize], data: &[i64]) -> RefTensor {
    let aval = Aval::new(dtype, shape);
    assert_eq!(aval.size(), data.len());
    RefTensor { aval, data: data.iter().map(|&v| Scalar::from_i64(dtype, v)).collect() }
}

fn check(op: &OpRef, args: &[RefTensor]) {
    check_within(op, args, 0.0);
}

fn check_within(op: &OpRef, args: &[RefTensor], rtol: f64) {
    let name = format!("{} {:?}", op.name(), args.iter().map(|a| a.aval.to_string()).collect::<Vec<_>>());
    let got = run(op, args).unwrap_or_else(|e| panic!("{name}: {e}"));
    let avals: Vec<Aval> = got.iter().map(|g| g.aval.clone()).collect();
    let want = op.reference(args, &avals).unwrap_or_else(|e| panic!("{name}: {e}"));
    for (g, w) in got.iter().zip(&want) {
        assert_close(&name, g, w, &[], rtol);
    }
}

fn op<P: Params>(def: &'static Def<P>, params: P) -> OpRef {
    OpRef::new(def, params)
}

#[test]
fn static_slices() {
    for d in DTYPES {
        let x = sample(d, &[5, 7], 1);
        for (start, limit, strides) in [
            ([1, 2], [4, 7], None),
            ([0, 0], [5, 7], Some([2, 3])),
            ([2, 6], [2, 7], None),
            ([4, 1], [5, 6], Some([1, 2])),
        ] {
            let params = SliceParams {
                start_indices: smallvec![start[0], start[1]],
                limit_indices: smallvec![limit[0], limit[1]],
                strides: strides.map(|s: [usize; 2]| s.into_iter().collect()),
            };
            check(&op(&SLICE, params), std::slice::from_ref(&x));
        }
        check(&op(&SPLIT, SplitParams { axis: 1, sizes: smallvec![3, 0, 4] }), std::slice::from_ref(&x));
        let parts = [x.clone(), sample(d, &[5, 2], 2), sample(d, &[5, 0], 0)];
        check(&op(&CONCATENATE, ConcatenateParams { dimension: 1 }), &parts);
        for config in [[(1, 2, 0), (0, 0, 0)], [(-1, 2, 1), (3, -2, 2)], [(0, 0, 2), (-3, -3, 0)]] {
            let padding_config = config.iter().map(|c| PadDim(c.0, c.1, c.2)).collect();
            check(&op(&PAD, PadParams { padding_config }), &[x.clone(), sample(d, &[], 5)]);
        }
    }
}

#[test]
fn dynamic_slices_clamp() {
    for d in DTYPES {
        for dtype in [DType::I32, DType::I64, DType::U8] {
            for (i, j) in [(1, 2), (9, 0), (-3, 100)] {
                let (i, j) = if dtype == DType::U8 { (i.max(0), j) } else { (i, j) };
                let starts = [integers(dtype, &[], &[i]), integers(dtype, &[], &[j])];
                let x = sample(d, &[5, 7], 1);
                let slice = op(&DYNAMIC_SLICE, DynamicSliceParams { slice_sizes: smallvec![2, 3] });
                check(&slice, &[x.clone(), starts[0].clone(), starts[1].clone()]);
                let update = sample(d, &[3, 1], 4);
                check(&DYNAMIC_UPDATE_SLICE.op(), &[x, update, starts[0].clone(), starts[1].clone()]);
            }
        }
    }
}

fn gathered(dims: &GatherDims, sizes: &[usize], mode: IndexMode) -> OpRef {
    op(
        &GATHER,
        GatherParams {
            dimension_numbers: GatherNumbers(dims.clone()),
            fill_value: Fill((mode == IndexMode::FillOrDrop).then(|| Scalar::from_i64(DType::I32, 1))),
            indices_are_sorted: false,
            mode: Mode(mode),
            slice_sizes: sizes.iter().copied().collect(),
            unique_indices: false,
        },
    )
}

fn scattered(dims: &ScatterDims, how: ScatterOp, mode: IndexMode, dtype: DType) -> OpRef {
    let params = ScatterParams {
        dimension_numbers: ScatterNumbers(dims.clone()),
        indices_are_sorted: false,
        mode: Mode(mode),
        unique_indices: false,
        op: how,
        dtype,
    };
    match how {
        ScatterOp::Set => op(&SCATTER, params),
        ScatterOp::Add => op(&SCATTER_ADD, params),
        ScatterOp::Sub => op(&SCATTER_SUB, params),
        ScatterOp::Mul => op(&SCATTER_MUL, params),
        ScatterOp::Min => op(&SCATTER_MIN, params),
        ScatterOp::Max => op(&SCATTER_MAX, params),
    }
}

const MODES: [IndexMode; 3] = [IndexMode::Clip, IndexMode::FillOrDrop, IndexMode::PromiseInBounds];
const OPS: [ScatterOp; 6] =
    [ScatterOp::Set, ScatterOp::Add, ScatterOp::Sub, ScatterOp::Mul, ScatterOp::Min, ScatterOp::Max];

/// (gather dimension numbers, operand, window, indices shape, indices, updates shape)
type Case = (GatherDims, Vec<usize>, Vec<usize>, Vec<usize>, Vec<i64>, Vec<usize>);

fn cases() -> Vec<Case> {
    let rows = GatherDims {
        offset_dims: smallvec![1],
        collapsed_slice_dims: smallvec![0],
        start_index_map: smallvec![0],
        ..GatherDims::default()
    };
    let points =
        GatherDims { collapsed_slice_dims: smallvec![0, 1], start_index_map: smallvec![1, 0], ..GatherDims::default() };
    let windows =
        GatherDims { offset_dims: smallvec![0, 2], start_index_map: smallvec![0, 1], ..GatherDims::default() };
    let batched = GatherDims {
        offset_dims: smallvec![2],
        collapsed_slice_dims: smallvec![1],
        start_index_map: smallvec![1],
        operand_batching_dims: smallvec![0],
        start_indices_batching_dims: smallvec![0],
    };
    let columns = GatherDims {
        offset_dims: smallvec![0],
        collapsed_slice_dims: smallvec![1],
        start_index_map: smallvec![1],
        ..GatherDims::default()
    };
    vec![
        (rows, vec![5, 7], vec![1, 7], vec![4, 1], vec![1, 9, -1, 1], vec![4, 7]),
        (points, vec![5, 7], vec![1, 1], vec![2, 2, 2], vec![0, 0, 6, 4, 7, 0, 6, -2], vec![2, 2]),
        (windows, vec![5, 7], vec![2, 3], vec![3, 2], vec![0, 0, 3, 4, 4, 5], vec![2, 3, 3]),
        (batched, vec![3, 4, 2], vec![1, 1, 2], vec![3, 2, 1], vec![0, 3, 1, 1, 5, -1], vec![3, 2, 2]),
        (columns, vec![5, 7], vec![5, 1], vec![3, 1], vec![0, 6, 2], vec![5, 3]),
    ]
}

#[test]
fn gathers_and_scatters() {
    for d in DTYPES {
        for (dims, shape, window, at, data, updates) in cases() {
            for index_dtype in [DType::I32, DType::I64] {
                let x = sample(d, &shape, 1);
                let indices = integers(index_dtype, &at, &data);
                for mode in MODES {
                    check(&gathered(&dims, &window, mode), &[x.clone(), indices.clone()]);
                    for how in OPS {
                        if d.is_bool() && matches!(how, ScatterOp::Sub) {
                            continue;
                        }
                        let dims = ScatterDims {
                            update_window_dims: dims.offset_dims.clone(),
                            inserted_window_dims: dims.collapsed_slice_dims.clone(),
                            scatter_dims_to_operand_dims: dims.start_index_map.clone(),
                            operand_batching_dims: dims.operand_batching_dims.clone(),
                            scatter_indices_batching_dims: dims.start_indices_batching_dims.clone(),
                        };
                        let args = [x.clone(), indices.clone(), sample(d, &updates, 6)];
                        let rtol = if d == DType::BF16 { 8e-3 } else { 0.0 };
                        check_within(&scattered(&dims, how, mode, d), &args, rtol);
                    }
                }
            }
        }
    }
}

#[test]
fn dot_products() {
    let dims = |lc: &[usize], rc: &[usize], lb: &[usize], rb: &[usize]| DotDims {
        lhs_contract: lc.iter().copied().collect(),
        rhs_contract: rc.iter().copied().collect(),
        lhs_batch: lb.iter().copied().collect(),
        rhs_batch: rb.iter().copied().collect(),
        ..DotDims::default()
    };
    let shapes: [(&[usize], &[usize], DotDims); 8] = [
        (&[5, 7], &[7, 3], dims(&[1], &[0], &[], &[])),
        (&[7], &[7], dims(&[0], &[0], &[], &[])),
        (&[2, 5, 7], &[2, 7, 3], dims(&[2], &[1], &[0], &[0])),
        (&[5, 2, 7], &[7, 3, 2], dims(&[2], &[0], &[1], &[2])),
        (&[3, 4, 5], &[5, 4, 2], dims(&[1, 2], &[1, 0], &[], &[])),
        (&[3, 4, 5], &[5, 4, 2], dims(&[2, 1], &[0, 1], &[], &[])),
        (&[3], &[4], dims(&[], &[], &[], &[])),
        (&[3, 0], &[0, 2], dims(&[1], &[0], &[], &[])),
    ];
    for d in [
        DType::Bool,
        DType::I8,
        DType::I32,
        DType::U64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::C64,
        DType::C128,
    ] {
        for (a, b, dims) in &shapes {
            for preferred in [None, Some(DType::F32), Some(DType::I32)] {
                if preferred.is_some() && !matches!(d, DType::BF16 | DType::I8 | DType::Bool) {
                    continue;
                }
                let params =
                    DotParams { dimension_numbers: dims.clone(), precision: None, preferred_element_type: preferred };
                let rtol = if matches!(d, DType::BF16 | DType::F16) { 1e-2 } else { 1e-6 };
                check_within(&op(&DOT_GENERAL, params), &[sample(d, a, 1), sample(d, b, 2)], rtol);
            }
        }
    }
    let params = |preferred| DotParams {
        dimension_numbers: dims(&[1], &[0], &[], &[]),
        precision: None,
        preferred_element_type: preferred,
    };
    check_within(
        &op(&DOT_GENERAL, params(None)),
        &[sample(DType::F32, &[2, 3], 1), sample(DType::I8, &[3, 2], 2)],
        1e-6,
    );
}

#[test]
fn sorts() {
    for d in DTYPES {
        for (shape, axis) in [(&[23][..], 0), (&[5, 7], 0), (&[3, 8, 2], 1), (&[0, 4], 1)] {
            let keys = sample(d, shape, 1);
            let second = sample(DType::F32, shape, 3);
            let index = integers(DType::I32, shape, &(0..keys.data.len() as i64).collect::<Vec<_>>());
            for num_keys in 1..=2 {
                let params = SortParams { dimension: axis, is_stable: true, num_keys };
                check(&op(&SORT, params), &[keys.clone(), second.clone(), index.clone()]);
            }
            if !d.is_complex() {
                for k in [0, 1, shape[axis].min(4)] {
                    check(&op(&TOP_K, TopKParams { axis, k }), std::slice::from_ref(&keys));
                }
            }
        }
    }
    let odd = [f64::NAN, 1.0, f64::INFINITY, -0.0, 0.0, f64::NEG_INFINITY, -f64::NAN, 2.0];
    for d in [DType::F32, DType::F64, DType::BF16] {
        let x = RefTensor { aval: Aval::new(d, &[8]), data: odd.iter().map(|&v| Scalar::from_f64(d, v)).collect() };
        let index = integers(DType::I32, &[8], &[0, 1, 2, 3, 4, 5, 6, 7]);
        check(&op(&SORT, SortParams { dimension: 0, is_stable: true, num_keys: 1 }), &[x.clone(), index]);
        check(&op(&TOP_K, TopKParams { axis: 0, k: 8 }), &[x]);
    }
}

fn keys(shape: &[usize]) -> RefTensor {
    let aval = Aval::new(DType::KeyFry, shape);
    let key = |i: usize| Scalar { dtype: DType::KeyFry, bits: (i as u128 + 1) * 0x0123_4567_89ab_cdef % (1 << 64) };
    RefTensor { data: (0..aval.size()).map(key).collect(), aval }
}

#[test]
fn random_bits_and_keys() {
    for shape in [&[][..], &[1], &[3], &[2, 2], &[0]] {
        for drawn in [&[][..], &[5], &[2, 3], &[0]] {
            for bit_width in [8, 16, 32, 64] {
                check(
                    &op(&RANDOM_BITS, BitsParams { bit_width, shape: drawn.iter().copied().collect() }),
                    &[keys(shape)],
                );
            }
            check(&op(&RANDOM_SPLIT, SplitKeys { shape: drawn.iter().copied().collect() }), &[keys(shape)]);
        }
        check(&RANDOM_UNWRAP.op(), &[keys(shape)]);
        check(&RANDOM_CLONE.op(), &[keys(shape)]);
        check(&RANDOM_FOLD_IN.op(), &[keys(shape), integers(DType::U32, &[], &[77])]);
        check(&RANDOM_FOLD_IN.op(), &[keys(shape), sample(DType::U32, shape, 2)]);
    }
    check(&RANDOM_FOLD_IN.op(), &[keys(&[]), sample(DType::U32, &[4], 2)]);
    let tag = || KeyImpl { tag: "fry".into() };
    check(&op(&RANDOM_WRAP, tag()), &[sample(DType::U32, &[3, 2], 2)]);
    for d in [DType::I32, DType::U32, DType::I8, DType::I64, DType::U64] {
        check(&op(&RANDOM_SEED, tag()), &[integers(d, &[3], &[0, 1, -2])]);
    }
    let word = |salt| sample(DType::U32, &[6], salt);
    check(&THREEFRY2X32.op(), &[word(1), word(2), word(3), word(4)]);
    let single = |v| integers(DType::U32, &[], &[v]);
    check(&THREEFRY2X32.op(), &[single(1), single(2), word(3), word(4)]);
}

#[test]
fn the_cipher_gives_its_published_vectors() {
    // Salmon et al., the test vectors of Threefry-2x32 with 20 rounds.
    assert_eq!(threefry_block([0, 0], [0, 0]), [0x6b20_0159, 0x99ba_4efe]);
    assert_eq!(threefry_block([u32::MAX; 2], [u32::MAX; 2]), [0x1cb9_96fc, 0xbb00_2be7]);
    assert_eq!(threefry_block([0x1319_8a2e, 0x0370_7344], [0x243f_6a88, 0x85a3_08d3]), [0xc492_3a9c, 0x483d_f7a0]);
}
