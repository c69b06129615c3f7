//! Nodes that move elements, and those with indices, against the CPU engine: bit for bit.

use crate::against::{Array, Case, Near, Report, Rng, compare};
use ferrax_base::{DType, Scalar, Shape};
use ferrax_loops::kind::Bytes;
use ferrax_loops::{
    Builder, GatherDims, Gathering, IndexMode, Kind, PadConfig, ScatterDims, ScatterOp, SliceDims, Type,
};
use smallvec::SmallVec;

const DTYPES: [DType; 30] = {
    let mut all = [DType::Bool; 30];
    let mut i = 0;
    while i < 30 {
        all[i] = DType::ALL[i];
        i += 1;
    }
    all
};

fn case(kind: Kind, inputs: &[usize], result: Type) -> Case {
    let what = format!("{kind:?} {}{:?}", result.dtype, result.shape);
    Case { what, kind, inputs: inputs.to_vec(), results: vec![result], near: Near::Same }
}

/// Random elements; those of dtypes without numbers as bits.
pub fn array(rng: &mut Rng, d: DType, shape: &[usize]) -> Array {
    if d.is_number() || d.is_bool() {
        return Array::random(rng, d, shape);
    }
    let mask = if d.is_key() { u128::from(u64::MAX) } else { 0 };
    Array::from_fn(d, shape, |_| Scalar { dtype: d, bits: u128::from(rng.next()) & mask })
}

pub fn sources() {
    let mut report = Report::default();
    let mut rng = Rng(11);
    for d in DTYPES {
        let mut cases = Vec::new();
        for shape in [vec![3, 5], vec![], vec![1], vec![0, 2], vec![7]] {
            let bytes = array(&mut rng, d, &shape).buffer().bytes().to_vec();
            cases.push(case(Kind::Dense(Bytes::of(bytes)), &[], Type::new(d, &shape)));
            // The CPU engine keeps the bytes of a constant as they are, without the sign of sub-byte integers.
            let small = d.is_signed() && d.bits() < 8;
            let scalar = if small { Scalar::one(d) } else { array(&mut rng, d, &[]).data[0] };
            cases.push(case(Kind::Const(scalar), &[], Type::new(d, &shape)));
        }
        let same = [array(&mut rng, d, &[]).data[0]; 6];
        let same = Array::new(d, &[6], same.to_vec()).buffer().bytes().to_vec();
        cases.push(case(Kind::Dense(Bytes::of(same)), &[], Type::new(d, &[6])));
        // The engines round to powers of two in different ways, and keep signed sub-byte integers so.
        let counts = d.is_number() && d != DType::F8E8M0FNU && (d.is_unsigned() || d.bits() >= 8);
        if counts || d.is_bool() {
            for (axis, shape) in [(0, vec![300, 2]), (1, vec![2, 300]), (1, vec![3, 0]), (0, vec![1])] {
                cases.push(case(Kind::Iota(axis), &[], Type::new(d, &shape)));
            }
        }
        report.check(&cases, &[]);
    }
    report.finish();
}

pub fn movement() {
    let mut report = Report::default();
    let mut rng = Rng(12);
    for d in DTYPES {
        for n in [3usize, 0] {
            let x = array(&mut rng, d, &[4, n, 5]);
            let args = [x, array(&mut rng, d, &[]), array(&mut rng, d, &[4, 2, 5]), array(&mut rng, d, &[4, 1])];
            let ty = |shape: &[usize]| Type::new(d, shape);
            let slice = |start: [usize; 3], limit: [usize; 3], stride: [usize; 3]| {
                let of = |v: [usize; 3]| Shape::from_slice(&v);
                Kind::Slice(Box::new(SliceDims { start: of(start), limit: of(limit), stride: of(stride) }))
            };
            let pad = |low, high, interior| PadConfig { low, high, interior };
            let cases = [
                case(Kind::Broadcast(SmallVec::from_slice(&[1, 3])), &[3], ty(&[2, 4, 3, n])),
                case(Kind::Broadcast(SmallVec::from_slice(&[2, 0, 1])), &[0], ty(&[n, 5, 4])),
                case(Kind::Broadcast(SmallVec::new()), &[1], ty(&[n, 2])),
                case(Kind::Reshape, &[0], ty(&[5, 4 * n])),
                case(Kind::Transpose(SmallVec::from_slice(&[2, 0, 1])), &[0], ty(&[5, 4, n])),
                case(slice([1, 0, 0], [4, n, 5], [2, 1, 3]), &[0], ty(&[2, n, 2])),
                case(slice([2, 0, 1], [2, n, 5], [1, 1, 1]), &[0], ty(&[0, n, 4])),
                case(
                    Kind::Pad([pad(-1, 2, 0), pad(1, 1, 1), pad(2, -3, 0)].into()),
                    &[0, 1],
                    ty(&[5, if n == 0 { 2 } else { 2 * n + 1 }, 4]),
                ),
                case(Kind::Rev(SmallVec::from_slice(&[0, 2])), &[0], ty(&[4, n, 5])),
                case(Kind::Concat(1), &[0, 2, 0], ty(&[4, 2 * n + 2, 5])),
            ];
            report.check(&cases, &args);
            let two = vec![args[0].ty.clone(), args[1].ty.clone()];
            let barrier = Case {
                what: format!("Barrier {d}"),
                kind: Kind::Barrier,
                inputs: vec![0, 1],
                results: two,
                near: Near::Same,
            };
            report.check(&[barrier], &args);
        }
    }
    report.finish();
}

pub fn dynamic_slices() {
    let mut report = Report::default();
    let mut rng = Rng(13);
    let indices = [DType::I8, DType::U8, DType::I16, DType::I32, DType::U32, DType::I64, DType::U64];
    for d in [DType::F32, DType::Bool, DType::I4, DType::F8E5M2, DType::C128, DType::KeyFry] {
        for i in indices {
            for far in [0, 1] {
                let at = |v: i64| Array::new(i, &[], vec![Scalar::from_i64(i, v)]);
                let starts = if far == 0 {
                    [at(rng.below(5) as i64 - 1), at(rng.below(300) as i64)]
                } else {
                    let bits = |k| Scalar { dtype: i, bits: (1u128 << (i.bits() - k)) - 1 };
                    [Array::new(i, &[], vec![bits(0)]), Array::new(i, &[], vec![bits(1)])]
                };
                let [a, b] = starts;
                let args = [
                    array(&mut rng, d, &[4, 200]),
                    array(&mut rng, d, &[2, 9]),
                    a,
                    b,
                    array(&mut rng, d, &[0, 9]),
                    Array::new(DType::I32, &[], vec![Scalar::from_i64(DType::I32, 1)]),
                ];
                let cases = [
                    case(Kind::DynamicSlice, &[0, 2, 3], Type::new(d, &[3, 7])),
                    case(Kind::DynamicSlice, &[0, 5, 3], Type::new(d, &[1, 200])),
                    case(Kind::DynamicSlice, &[0, 2, 3], Type::new(d, &[0, 7])),
                    case(Kind::DynamicUpdateSlice, &[0, 1, 2, 3], Type::new(d, &[4, 200])),
                    case(Kind::DynamicUpdateSlice, &[0, 1, 3, 5], Type::new(d, &[4, 200])),
                    case(Kind::DynamicUpdateSlice, &[0, 4, 2, 3], Type::new(d, &[4, 200])),
                ];
                report.check(&cases, &args);
            }
        }
    }
    report.finish();
}

/// Random dimension numbers over an operand.
pub struct Numbers {
    batching: Vec<usize>,
    collapsed: Vec<usize>,
    start_map: Vec<usize>,
    batch: Vec<usize>,
    index_batching: Vec<usize>,
    window: Vec<usize>,
    /// Where the operand axes that stay axes of a window lie in the other array, and its shape.
    window_dims: Vec<usize>,
    pub other: Vec<usize>,
}

impl Numbers {
    pub fn random(rng: &mut Rng, shape: &[usize]) -> Numbers {
        let rank = shape.len();
        let roles: Vec<usize> = (0..rank).map(|_| [0, 1, 1, 2, 2][rng.below(5)]).collect();
        let of = |role: usize| (0..rank).filter(|&a| roles[a] == role).collect::<Vec<_>>();
        let (batching, collapsed, kept) = (of(0), of(1), of(2));
        let window: Vec<usize> = (0..rank).map(|a| if roles[a] == 2 { rng.below(shape[a]) + 1 } else { 1 }).collect();
        let mapped: Vec<usize> = (0..rank).filter(|&a| roles[a] == 1 || (roles[a] == 2 && rng.below(2) == 0)).collect();
        let start_map = rng.permutation(mapped.len()).iter().map(|&i| mapped[i]).collect();
        let extra = rng.below(3);
        let places = rng.permutation(extra + batching.len());
        let mut batch = vec![0; places.len()];
        for (k, &p) in places.iter().enumerate() {
            batch[p] = if k < batching.len() { shape[batching[k]] } else { rng.below(4) };
        }
        let rank = batch.len() + kept.len();
        let mut window_dims = rng.permutation(rank)[..kept.len()].to_vec();
        window_dims.sort_unstable();
        let (mut b, mut w) = (batch.iter(), kept.iter());
        let other = (0..rank)
            .map(|a| if window_dims.contains(&a) { window[*w.next().unwrap()] } else { *b.next().unwrap() })
            .collect();
        let index_batching = places[..batching.len()].to_vec();
        Numbers { batching, collapsed, start_map, batch, index_batching, window, window_dims, other }
    }

    pub fn indices(&self, rng: &mut Rng, shape: &[usize]) -> Array {
        let mut s = self.batch.clone();
        s.push(self.start_map.len());
        let d = [DType::I32, DType::I64, DType::I8, DType::U8, DType::U32, DType::U64][rng.below(6)];
        Array::from_fn(d, &s, |at| {
            let n = shape[self.start_map[at[at.len() - 1]]] as i64;
            let wild = rng.below(12) == 0;
            if wild {
                return Scalar { dtype: d, bits: u128::from(rng.next()) & ((1u128 << d.bits()) - 1) };
            }
            Scalar::from_i64(d, rng.below(n as usize + 3) as i64 - 1)
        })
    }

    pub fn gathering(&self, mode: IndexMode, fill: Scalar) -> Gathering {
        Gathering {
            dims: GatherDims {
                offset_dims: self.window_dims.iter().copied().collect(),
                collapsed_slice_dims: self.collapsed.iter().copied().collect(),
                start_index_map: self.start_map.iter().copied().collect(),
                operand_batching_dims: self.batching.iter().copied().collect(),
                start_indices_batching_dims: self.index_batching.iter().copied().collect(),
            },
            slice_sizes: Shape::from_slice(&self.window),
            mode,
            fill,
            sorted: false,
            unique: false,
            wrap: false,
        }
    }

    pub fn scatter(&self, op: ScatterOp, mode: IndexMode) -> Kind {
        let dims = ScatterDims {
            update_window_dims: self.window_dims.iter().copied().collect(),
            inserted_window_dims: self.collapsed.iter().copied().collect(),
            scatter_dims_to_operand_dims: self.start_map.iter().copied().collect(),
            operand_batching_dims: self.batching.iter().copied().collect(),
            scatter_indices_batching_dims: self.index_batching.iter().copied().collect(),
        };
        Kind::Scatter { op, dims: Box::new(dims), mode, sorted: false, unique: false }
    }
}

const MODES: [IndexMode; 3] = [IndexMode::Clip, IndexMode::FillOrDrop, IndexMode::PromiseInBounds];
const MOVED: [DType; 10] = [
    DType::F32,
    DType::Bool,
    DType::I4,
    DType::U2,
    DType::I64,
    DType::BF16,
    DType::F8E4M3FN,
    DType::F64,
    DType::C64,
    DType::KeyFry,
];

pub fn gathers() {
    let mut report = Report::default();
    let mut rng = Rng(14);
    for round in 0..60 {
        let rank = 1 + rng.below(4);
        let shape: Vec<usize> = (0..rank).map(|_| 1 + rng.below(5)).collect();
        let d = MOVED[round % MOVED.len()];
        let numbers = Numbers::random(&mut rng, &shape);
        let args = [array(&mut rng, d, &shape), numbers.indices(&mut rng, &shape)];
        // The CPU engine keeps the bytes of a fill value as they are, without the sign of sub-byte integers.
        let fill = if d.bits() < 8 && d.is_integer() { Scalar::one(d) } else { array(&mut rng, d, &[]).data[0] };
        let cases: Vec<Case> = MODES
            .into_iter()
            .map(|mode| {
                let kind = Kind::Gather(Box::new(numbers.gathering(mode, fill)));
                case(kind, &[0, 1], Type::new(d, &numbers.other))
            })
            .collect();
        report.check(&cases, &args);
    }
    report.finish();
}

pub fn gathers_that_wrap() {
    let mut report = Report::default();
    let mut rng = Rng(15);
    for d in [DType::F32, DType::I8] {
        for index in [DType::I32, DType::I64, DType::I8, DType::U32] {
            let x = array(&mut rng, d, &[6, 3]);
            let indices = Array::from_fn(index, &[2, 5], |_| Scalar::from_i64(index, rng.below(20) as i64 - 9));
            let cases: Vec<Case> = MODES
                .into_iter()
                .map(|mode| {
                    let dims = GatherDims {
                        offset_dims: SmallVec::from_slice(&[2]),
                        collapsed_slice_dims: SmallVec::from_slice(&[0]),
                        start_index_map: SmallVec::from_slice(&[0]),
                        ..GatherDims::default()
                    };
                    let slice_sizes = Shape::from_slice(&[1, 3]);
                    let fill = Scalar::from_i64(d, 77);
                    let g = Gathering { dims, slice_sizes, mode, fill, sorted: false, unique: false, wrap: true };
                    case(Kind::Gather(Box::new(g)), &[0, 1], Type::new(d, &[2, 5, 3]))
                })
                .collect();
            report.check(&cases, &[x, indices]);
        }
    }
    report.finish();
}

pub fn scatters() {
    let mut report = Report::default();
    let mut rng = Rng(16);
    let ops = [ScatterOp::Set, ScatterOp::Add, ScatterOp::Sub, ScatterOp::Mul, ScatterOp::Min, ScatterOp::Max];
    for round in 0..60 {
        let rank = 1 + rng.below(4);
        let shape: Vec<usize> = (0..rank).map(|_| 1 + rng.below(5)).collect();
        let d = MOVED[round % MOVED.len()];
        let numbers = Numbers::random(&mut rng, &shape);
        let args = [array(&mut rng, d, &shape), numbers.indices(&mut rng, &shape), array(&mut rng, d, &numbers.other)];
        let cases: Vec<Case> = MODES
            .into_iter()
            .flat_map(|mode| ops.into_iter().map(move |op| (mode, op)))
            .filter(|(_, op)| *op == ScatterOp::Set || d.is_number() || (d.is_bool() && *op != ScatterOp::Sub))
            .map(|(mode, op)| {
                let near = if d.is_inexact() { Near::Norm(2.0) } else { Near::Same };
                Case { near, ..case(numbers.scatter(op, mode), &[0, 1, 2], Type::new(d, &shape)) }
            })
            .collect();
        report.check(&cases, &args);
    }
    report.finish();
}

pub fn movements_one_after_another() {
    let mut report = Report::default();
    let mut rng = Rng(18);
    let x = array(&mut rng, DType::F32, &[3, 4]);
    let mut builder = Builder::new([x.ty.clone()]);
    let p = builder.params().next().unwrap();
    let t = builder.push(Kind::Transpose(SmallVec::from_slice(&[1, 0])), &[p], Type::new(DType::F32, &[4, 3]));
    let r = builder.reshape(t, &[2, 6]);
    let v = builder.push(Kind::Rev(SmallVec::from_slice(&[1])), &[r], Type::new(DType::F32, &[2, 6]));
    let graph = builder.finish(&[v, p, v, t]);
    compare(&mut report, "transpose, reshape, reverse", graph, &[&x], Near::Same);
    report.finish();
}
