//! Random programs on the threaded machine against the same programs run kernel by kernel: the same bits.

mod common;

use common::{Array, Rng, cases, has_machine};
use ferrax_base::{Arg, Buffer, DType};
use ferrax_cpu::Program;
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{BinaryOp, Builder, Graph, Kind, ReduceOp, Type, UnaryOp, ValueId};
use proptest::prelude::*;
use std::sync::Arc;

const DTYPES: [DType; 14] = [
    DType::F32,
    DType::F32,
    DType::F32,
    DType::I32,
    DType::U32,
    DType::Bool,
    DType::BF16,
    DType::F16,
    DType::U8,
    DType::I16,
    DType::F64,
    DType::F64,
    DType::I64,
    DType::U64,
];
const UNARY: [UnaryOp; 24] = [
    UnaryOp::Neg,
    UnaryOp::Abs,
    UnaryOp::Sign,
    UnaryOp::Floor,
    UnaryOp::RoundEven,
    UnaryOp::RoundAway,
    UnaryOp::IsFinite,
    UnaryOp::Exp,
    UnaryOp::Exp2,
    UnaryOp::Expm1,
    UnaryOp::Log,
    UnaryOp::Log1p,
    UnaryOp::Sqrt,
    UnaryOp::Rsqrt,
    UnaryOp::Sin,
    UnaryOp::Cos,
    UnaryOp::Tan,
    UnaryOp::Tanh,
    UnaryOp::Logistic,
    UnaryOp::Erf,
    UnaryOp::ErfInv,
    UnaryOp::Lgamma,
    UnaryOp::Not,
    UnaryOp::PopulationCount,
];
const BINARY: [BinaryOp; 15] = [
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::Rem,
    BinaryOp::Pow,
    BinaryOp::Max,
    BinaryOp::Min,
    BinaryOp::Atan2,
    BinaryOp::And,
    BinaryOp::Or,
    BinaryOp::Xor,
    BinaryOp::ShiftLeft,
    BinaryOp::ShiftRightArithmetic,
    BinaryOp::ShiftRightLogical,
];
/// Total orders of floats are left out: they see the sign of a computed NaN, which no path promises.
const COMPARE: [CompareOp; 6] =
    [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];

fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len())]
}

fn allowed_unary(op: UnaryOp, d: DType) -> bool {
    match op {
        UnaryOp::Not => d.is_bool() || d.is_integer(),
        UnaryOp::PopulationCount => d.is_integer(),
        UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Sign => !d.is_bool(),
        _ => d.is_float(),
    }
}

fn allowed_binary(op: BinaryOp, d: DType) -> bool {
    use BinaryOp::*;
    match op {
        Atan2 => d.is_float(),
        And | Or | Xor => !d.is_float(),
        ShiftLeft | ShiftRightArithmetic | ShiftRightLogical => d.is_integer(),
        Add | Mul | Max | Min => true,
        _ => !d.is_bool(),
    }
}

struct Maker<'a> {
    rng: &'a mut Rng,
    b: Builder,
    /// Values of `rows × inner` elements, of one a row, of one a column, and scalars.
    full: Vec<ValueId>,
    row: Vec<ValueId>,
    col: Vec<ValueId>,
    rows: usize,
    inner: usize,
}

impl Maker<'_> {
    /// An operand of all elements, of this dtype if one is asked for.
    fn operand(&mut self, dtype: Option<DType>) -> ValueId {
        let shape = [self.rows, self.inner];
        let v = match self.rng.below(8) {
            0 if !self.row.is_empty() => {
                let x = pick(self.rng, &self.row);
                self.b.broadcast(x, &shape, &[0])
            }
            1 if !self.col.is_empty() => {
                let x = pick(self.rng, &self.col);
                self.b.broadcast(x, &shape, &[1])
            }
            2 => {
                let d = dtype.unwrap_or(DType::F32);
                let s = self.rng.tame(d);
                let x = self.b.scalar(s);
                self.b.broadcast(x, &shape, &[])
            }
            _ => pick(self.rng, &self.full),
        };
        match dtype {
            Some(d) => self.b.convert(v, d),
            None => v,
        }
    }

    fn row_operand(&mut self, dtype: DType) -> ValueId {
        let v = pick(self.rng, &self.row);
        self.b.convert(v, dtype)
    }

    fn step(&mut self) {
        match self.rng.below(12) {
            0 | 1 => {
                let x = self.operand(None);
                let d = self.b.ty(x).dtype;
                let op = pick(self.rng, &UNARY);
                if allowed_unary(op, d) {
                    let y = self.b.unary(op, x);
                    self.full.push(y);
                }
            }
            2..=5 => {
                let x = self.operand(None);
                let d = self.b.ty(x).dtype;
                let y = self.operand(Some(d));
                let op = pick(self.rng, &BINARY);
                if allowed_binary(op, d) {
                    let z = self.b.binary(op, x, y);
                    self.full.push(z);
                }
            }
            6 => {
                let x = self.operand(None);
                let y = self.operand(Some(self.b.ty(x).dtype));
                let op = pick(self.rng, &COMPARE);
                let z = self.b.compare(op, x, y);
                self.full.push(z);
            }
            7 => {
                let p = self.operand(Some(DType::Bool));
                let x = self.operand(None);
                let y = self.operand(Some(self.b.ty(x).dtype));
                let z = self.b.select(p, x, y);
                self.full.push(z);
            }
            8 => {
                let (x, d) = (self.operand(None), pick(self.rng, &DTYPES));
                let y = self.b.convert(x, d);
                self.full.push(y);
            }
            9 => {
                let x = self.operand(None);
                let ty = self.b.ty(x).clone();
                if ty.dtype.is_float() {
                    let n = self.rng.below(9) as i32 - 3;
                    let y = self.b.push(Kind::IntegerPow(n), &[x], ty);
                    self.full.push(y);
                } else if !ty.dtype.is_bool() {
                    let (lo, hi) = (self.operand(Some(ty.dtype)), self.operand(Some(ty.dtype)));
                    let y = self.b.push(Kind::Clamp, &[lo, x, hi], ty);
                    self.full.push(y);
                }
            }
            10 => {
                let x = pick(self.rng, &self.full);
                let d = self.b.ty(x).dtype;
                let op = match self.rng.below(7) {
                    0 => ReduceOp::Max,
                    1 => ReduceOp::Min,
                    2 if !d.is_float() => ReduceOp::Xor,
                    3 if !d.is_float() => ReduceOp::And,
                    4 if !d.is_float() => ReduceOp::Or,
                    5 => ReduceOp::Prod,
                    _ => ReduceOp::Sum,
                };
                if self.rng.below(3) == 0 {
                    let y = self.b.reduce(op, x, &[0]);
                    self.col.push(y);
                } else {
                    let y = self.b.reduce(op, x, &[1]);
                    self.row.push(y);
                }
            }
            _ if !self.row.is_empty() => {
                let x = self.row_operand(DType::F32);
                let y = self.row_operand(DType::F32);
                let z = self.b.binary(BinaryOp::Sub, x, y);
                let w = self.b.unary(UnaryOp::Tanh, z);
                self.row.push(w);
            }
            _ => {}
        }
    }
}

/// A random program, and arguments for it.
fn program(rng: &mut Rng, rows: usize, inner: usize, steps: usize) -> (Graph, Vec<Buffer>) {
    let mut types = Vec::new();
    for shape in [&[rows, inner][..], &[rows, inner], &[rows, inner], &[rows], &[inner]] {
        types.push(Type::new(pick(rng, &DTYPES), shape));
    }
    let args: Vec<Buffer> = types.iter().map(|t| Array::random(rng, t.dtype, &t.shape).buffer()).collect();
    let b = Builder::new(types);
    let p: Vec<ValueId> = b.params().collect();
    let (full, row, col) = (p[..3].to_vec(), vec![p[3]], vec![p[4]]);
    let mut m = Maker { rng, b, full, row, col, rows, inner };
    (0..steps).for_each(|_| m.step());
    let last = |of: &[ValueId], or: usize| *of.last().unwrap_or(&p[or]);
    let mut outputs = vec![last(&m.full, 0), last(&m.row, 3), last(&m.col, 4)];
    for _ in 0..2 {
        outputs.push(pick(m.rng, &m.full));
    }
    (m.b.finish(&outputs), args)
}

#[track_caller]
fn same_bits(g: &Graph, a: &[Buffer], b: &[Buffer]) {
    for (k, (a, b)) in a.iter().zip(b).enumerate() {
        let ty = g.ty(g.outputs[k]);
        let (a, b) = (Array::of(ty, a), Array::of(ty, b));
        common::assert_same(&a, &b, &format_args!("output {k} of\n{g}"));
    }
}

fn check(seed: u64, rows: usize, inner: usize, steps: usize) {
    // Half of the programs are shared out whatever their size.
    ferrax_base::checks::set(seed.is_multiple_of(2));
    let mut rng = Rng(seed);
    let (graph, args) = program(&mut rng, rows, inner, steps);
    let graph = Arc::new(graph);
    let run = |p: Program| {
        let mut args: Vec<Arg<'_>> = args.iter().map(Arg::Host).collect();
        p.run(&mut args).unwrap()
    };
    let fused = run(Program::compile(graph.clone()).unwrap());
    let plain = run(Program::compile_plain(graph.clone()).unwrap());
    same_bits(&graph, &fused, &plain);
    // Donated arguments are replaced in place.
    let donated = Program::compile_donating(graph.clone(), &[true; 5]).unwrap();
    let mut owned: Vec<Arg<'_>> =
        args.iter().map(|b| Arg::Owned(Buffer::from_bytes(b.bytes()).unwrap().into())).collect();
    same_bits(&graph, &donated.run(&mut owned).unwrap(), &plain);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(300)))]

    #[test]
    fn small_programs(seed: u64, rows in 1usize..9, inner in 1usize..300, steps in 1usize..30) {
        check(seed, rows, inner, steps);
    }

    #[test]
    fn blocks(seed: u64, rows in 20usize..300, inner in 10usize..150, steps in 4usize..30) {
        check(seed, rows, inner, steps);
    }

    #[test]
    fn long_rows(seed: u64, rows in 1usize..4, inner in 500usize..6000, steps in 1usize..12) {
        check(seed, rows, inner, steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(12)))]

    #[test]
    fn many_rows(seed: u64, rows in 1000usize..3000, inner in 1usize..80, steps in 4usize..16) {
        check(seed, rows, inner, steps);
    }

    #[test]
    fn spans(seed: u64, rows in 1usize..3, inner in 100_000usize..400_000, steps in 1usize..8) {
        check(seed, rows, inner, steps);
    }

    /// Rows that stay in the caches from one phase to the next, and that threads may cut all the same.
    #[test]
    fn spans_of_several_phases(seed: u64, rows in 1usize..4, inner in 15_000usize..36_000, steps in 4usize..12) {
        check(seed, rows, inner, steps);
    }
}

/// Sums of squares, of products, and of squares about a value of the row, beside another reduction of the row.
fn sums(d: DType, rows: usize, inner: usize, form: usize) -> Graph {
    let shape = [rows, inner];
    let mut b = Builder::new([Type::new(d, &shape), Type::new(d, &shape)]);
    let p: Vec<ValueId> = b.params().collect();
    let largest = b.reduce(ReduceOp::Max, p[0], &[1]);
    let about = b.broadcast(largest, &shape, &[0]);
    let term = match form {
        0 => b.binary(BinaryOp::Mul, p[0], p[0]),
        1 => b.binary(BinaryOp::Mul, p[0], p[1]),
        2 => {
            let distance = b.binary(BinaryOp::Sub, p[0], about);
            b.push(Kind::IntegerPow(2), &[distance], Type::new(d, &shape))
        }
        // The distance has another reader.
        _ => {
            let distance = b.binary(BinaryOp::Sub, p[0], about);
            let square = b.binary(BinaryOp::Mul, distance, distance);
            let sum = b.reduce(ReduceOp::Sum, square, &[1]);
            return b.finish(&[sum, distance, largest]);
        }
    };
    let sum = b.reduce(ReduceOp::Sum, term, &[1]);
    b.finish(&[sum, largest])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(100)))]

    #[test]
    fn terms_of_sums(seed: u64, rows in 1usize..9, inner in 100usize..9000, form in 0usize..4) {
        for d in [DType::F32, DType::F64, DType::BF16] {
            same_as_plain(&mut Rng(seed), sums(d, rows, inner, form));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(12)))]

    #[test]
    fn terms_of_long_sums(seed: u64, rows in 1usize..3, inner in 10_000usize..300_000, form in 0usize..4) {
        same_as_plain(&mut Rng(seed), sums(DType::F32, rows, inner, form));
    }
}

/// Exponentials about the largest of a row over their sum: three phases, of which each reads what the one before leaves.
fn softmax(rows: usize, inner: usize, d: DType) -> Graph {
    let shape = [rows, inner];
    let mut b = Builder::new([Type::new(d, &shape)]);
    let x = b.params().next().unwrap();
    let x = b.unary(UnaryOp::Tanh, x);
    let most = b.reduce(ReduceOp::Max, x, &[1]);
    let most = b.broadcast(most, &shape, &[0]);
    let distance = b.binary(BinaryOp::Sub, x, most);
    let e = b.unary(UnaryOp::Exp, distance);
    let sum = b.reduce(ReduceOp::Sum, e, &[1]);
    let sum = b.broadcast(sum, &shape, &[0]);
    let y = b.binary(BinaryOp::Div, e, sum);
    b.finish(&[y])
}

/// Whatever is shared out, of whatever length: around the lengths of runs, of spans, and of rows that stay in the caches.
#[test]
fn phases_of_rows_that_threads_share() {
    for long in [128, 4096, 8192, 16_384, 32_768, 49_152, 65_536] {
        for (rows, inner) in
            [(1, long - 1), (1, long), (1, long + 1), (2, long + 37), (3, long - 64), (13, long / 4 + 1)]
        {
            for d in [DType::F32, DType::F64, DType::BF16] {
                // `same_as_plain` shares for even seeds.
                same_as_plain(&mut Rng(2 * (rows * inner) as u64), softmax(rows, inner, d));
            }
        }
    }
}

fn same_as_plain(rng: &mut Rng, graph: Graph) {
    ferrax_base::checks::set(rng.0.is_multiple_of(2));
    let graph = Arc::new(graph);
    let args: Vec<Buffer> =
        graph.types[..graph.params].iter().map(|t| Array::random(rng, t.dtype, &t.shape).buffer()).collect();
    let run = |p: Program| p.run(&mut args.iter().map(Arg::Host).collect::<Vec<_>>()).unwrap();
    let fused = run(Program::compile(graph.clone()).unwrap());
    same_bits(&graph, &fused, &run(Program::compile_plain(graph.clone()).unwrap()));
}

/// The tests above with the narrower instruction set, in a process of their own.
#[test]
#[cfg(target_arch = "x86_64")]
fn the_narrow_instruction_set_gives_the_same_bits() {
    if std::env::var_os("FERRAX_CPU_ISA").is_some() {
        return;
    }
    let me = std::env::current_exe().unwrap();
    let out = std::process::Command::new(me)
        .env("FERRAX_CPU_ISA", "avx2")
        .args(["small_programs", "terms_of_sums"])
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
}

/// Results larger than the caches are written past them, in whole tiles and at a ragged end.
#[test]
fn large_results_are_the_same() {
    let n = 9_000_003;
    let x = Buffer::from_slice(&(0..n).map(|i| i as f32 * 0.5 - 1e6).collect::<Vec<f32>>()).unwrap();
    let mut b = Builder::new([Type::new(DType::F32, &[n])]);
    let p = b.params().next().unwrap();
    let y = b.binary(BinaryOp::Add, p, p);
    let z = b.binary(BinaryOp::Mul, y, p);
    let graph = Arc::new(b.finish(&[z, y]));
    let fused = Program::compile(graph.clone()).unwrap().run(&mut [Arg::Host(&x)]).unwrap();
    let plain = Program::compile_plain(graph.clone()).unwrap().run(&mut [Arg::Host(&x)]).unwrap();
    assert!(fused.iter().zip(&plain).all(|(a, b)| a.bytes() == b.bytes()));
}

#[test]
fn softmax_is_one_kernel() {
    let mut b = Builder::new([Type::new(DType::F32, &[64, 300])]);
    let x = b.params().next().unwrap();
    let m = b.reduce(ReduceOp::Max, x, &[1]);
    let m = b.broadcast(m, &[64, 300], &[0]);
    let d = b.binary(BinaryOp::Sub, x, m);
    let e = b.unary(UnaryOp::Exp, d);
    let s = b.reduce(ReduceOp::Sum, e, &[1]);
    let s = b.broadcast(s, &[64, 300], &[0]);
    let y = b.binary(BinaryOp::Div, e, s);
    let program = Program::compile(Arc::new(b.finish(&[y]))).unwrap();
    let text = program.kernels();
    // handlers are no tail calls under the sanitizer
    if cfg!(ferrax_exact_buffers) {
        return;
    }
    if has_machine() {
        assert_eq!(text.matches("kernel[").count(), 1, "{text}");
    }
}
