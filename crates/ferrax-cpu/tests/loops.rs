//! Random loops: in registers where they fit, and step by step, against the same loops run kernel by kernel.

mod common;

use common::{Array, Rng, cases, has_machine};
use ferrax_base::{Arg, Buffer, DType, Scalar};
use ferrax_cpu::Program;
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{BinaryOp, Builder, DotDims, Graph, Kind, ReduceOp, Type, UnaryOp, ValueId};
use proptest::prelude::*;
use std::sync::Arc;

/// Floats, signed and unsigned integers of a loop: all of one width, so that they fit the lanes of registers.
#[derive(Clone, Copy)]
struct Lanes([DType; 3]);

const FOUR: Lanes = Lanes([DType::F32, DType::I32, DType::U32]);
const EIGHT: Lanes = Lanes([DType::F64, DType::I64, DType::U64]);

impl Lanes {
    fn any(self, rng: &mut Rng) -> DType {
        let Lanes([float, int, unsigned]) = self;
        pick(rng, &[float, float, float, int, int, unsigned, DType::Bool])
    }

    fn float(self) -> DType {
        self.0[0]
    }

    fn int(self) -> DType {
        self.0[1]
    }
}

const FLOAT_UNARY: [UnaryOp; 16] = [
    UnaryOp::Neg,
    UnaryOp::Abs,
    UnaryOp::Sign,
    UnaryOp::Floor,
    UnaryOp::Ceil,
    UnaryOp::RoundEven,
    UnaryOp::Exp,
    UnaryOp::Log1p,
    UnaryOp::Sqrt,
    UnaryOp::Rsqrt,
    UnaryOp::Sin,
    UnaryOp::Cos,
    UnaryOp::Tan,
    UnaryOp::Tanh,
    UnaryOp::Logistic,
    UnaryOp::IsFinite,
];
const NUMBERS: [BinaryOp; 8] = [
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::Rem,
    BinaryOp::Max,
    BinaryOp::Min,
    BinaryOp::Pow,
];
const COMPARE: [CompareOp; 6] =
    [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];

fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len())]
}

/// A body being made: values are scalars, or have `n` elements.
struct Body<'a> {
    rng: &'a mut Rng,
    b: Builder,
    values: Vec<ValueId>,
    n: usize,
    lanes: Lanes,
}

impl Body<'_> {
    fn operand(&mut self, dtype: Option<DType>) -> ValueId {
        let v = if self.rng.below(8) == 0 {
            let s = self.rng.tame(dtype.unwrap_or(self.lanes.float()));
            self.b.scalar(s)
        } else {
            pick(self.rng, &self.values)
        };
        dtype.map_or(v, |d| self.b.convert(v, d))
    }

    /// Both operands with the same shape, or a scalar.
    fn matched(&mut self, x: ValueId, y: ValueId) -> (ValueId, ValueId) {
        let (mut x, mut y) = (x, y);
        for v in [&mut x, &mut y] {
            if self.n > 1 && self.b.ty(*v).size() == 1 && self.rng.below(2) == 0 {
                *v = self.b.broadcast(*v, &[self.n], &[]);
            }
        }
        (x, y)
    }

    fn step(&mut self) {
        let made = match self.rng.below(10) {
            0 | 1 => {
                let x = self.operand(None);
                let d = self.b.ty(x).dtype;
                let op = match d {
                    d if d.is_float() => pick(self.rng, &FLOAT_UNARY),
                    DType::Bool => UnaryOp::Not,
                    _ => pick(self.rng, &[UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Not, UnaryOp::PopulationCount]),
                };
                self.b.unary(op, x)
            }
            2..=5 => {
                let x = self.operand(None);
                let d = self.b.ty(x).dtype;
                let y = self.operand(Some(d));
                let (x, y) = self.matched(x, y);
                let op = match d {
                    d if d.is_float() => pick(self.rng, &NUMBERS),
                    DType::Bool => pick(self.rng, &[BinaryOp::And, BinaryOp::Or, BinaryOp::Xor, BinaryOp::Add]),
                    _ if self.rng.below(3) == 0 => pick(
                        self.rng,
                        &[BinaryOp::And, BinaryOp::Xor, BinaryOp::ShiftLeft, BinaryOp::ShiftRightLogical],
                    ),
                    _ => pick(self.rng, &NUMBERS),
                };
                self.b.binary(op, x, y)
            }
            6 => {
                let x = self.operand(None);
                let y = self.operand(Some(self.b.ty(x).dtype));
                let op = pick(self.rng, &COMPARE);
                self.b.compare(op, x, y)
            }
            7 => {
                let p = self.operand(Some(DType::Bool));
                let x = self.operand(None);
                let y = self.operand(Some(self.b.ty(x).dtype));
                // A predicate of several elements needs cases of as many.
                let (x, y) = (self.full(x), self.full(y));
                let p = self.full(p);
                self.b.select(p, x, y)
            }
            8 => {
                let (x, d) = (self.operand(None), self.lanes.any(self.rng));
                self.b.convert(x, d)
            }
            _ => {
                let x = self.operand(None);
                let ty = self.b.ty(x).clone();
                match ty.dtype {
                    d if d.is_float() => {
                        let n = self.rng.below(9) as i32 - 3;
                        self.b.push(Kind::IntegerPow(n), &[x], ty)
                    }
                    DType::Bool => return,
                    d => {
                        let (lo, hi) = (self.operand(Some(d)), self.operand(Some(d)));
                        let (lo, x, hi) = (self.full(lo), self.full(x), self.full(hi));
                        let ty = self.b.ty(x).clone();
                        self.b.push(Kind::Clamp, &[lo, x, hi], ty)
                    }
                }
            }
        };
        self.values.push(made);
    }

    fn full(&mut self, v: ValueId) -> ValueId {
        if self.n > 1 && self.b.ty(v).size() == 1 { self.b.broadcast(v, &[self.n], &[]) } else { v }
    }

    /// A value of this type.
    fn of_type(&mut self, ty: &Type) -> ValueId {
        let fits: Vec<ValueId> =
            self.values.iter().copied().filter(|&v| self.b.ty(v).size() == 1 || ty.size() > 1).collect();
        let v = pick(self.rng, &fits[fits.len().saturating_sub(6)..]);
        let v = self.b.convert(v, ty.dtype);
        if ty.size() > 1 { self.full(v) } else { v }
    }
}

/// The types of a loop's constants, carried values and stepped arrays.
struct Types {
    consts: Vec<Type>,
    carry: Vec<Type>,
    xs: Vec<Type>,
    n: usize,
    lanes: Lanes,
}

fn types(rng: &mut Rng, n: usize, lanes: Lanes) -> Types {
    let mut some = |most: usize, least: usize, flags: bool| -> Vec<Type> {
        (0..least + rng.below(most))
            .map(|_| {
                let shape: &[usize] = if n > 1 && rng.below(2) == 0 { &[n] } else { &[] };
                let d = lanes.any(rng);
                let d = if d.is_bool() && !flags && !shape.is_empty() { lanes.float() } else { d };
                Type::new(d, shape)
            })
            .collect()
    };
    Types { consts: some(3, 0, true), carry: some(8, 1, true), xs: some(3, 0, false), n, lanes }
}

/// A body over (consts, carry, xs) that gives (carry, ys), and the ys' types.
fn body(rng: &mut Rng, t: &Types, steps: usize, ys: usize) -> (Graph, Vec<Type>) {
    let b = Builder::new(t.consts.iter().chain(&t.carry).chain(&t.xs).cloned());
    let values: Vec<ValueId> = b.params().collect();
    let mut m = Body { rng, b, values, n: t.n, lanes: t.lanes };
    (0..steps).for_each(|_| m.step());
    let mut outs: Vec<ValueId> = Vec::new();
    for (k, ty) in t.carry.iter().enumerate() {
        // Some carried values stay or trade places.
        let same = ValueId((t.consts.len() + k) as u32);
        outs.push(if m.rng.below(6) == 0 { same } else { m.of_type(ty) });
    }
    for _ in 0..ys {
        let v = pick(m.rng, &m.values);
        let v = if m.b.ty(v).dtype.is_bool() && t.n > 1 { m.b.convert(v, t.lanes.int()) } else { v };
        outs.push(v);
    }
    let types = outs[t.carry.len()..].iter().map(|&v| m.b.ty(v).clone()).collect();
    (m.b.finish(&outs), types)
}

fn arguments(rng: &mut Rng, types: &[Type]) -> Vec<Buffer> {
    types.iter().map(|t| Array::random(rng, t.dtype, &t.shape).buffer()).collect()
}

fn stacked(t: &Type, length: usize) -> Type {
    let shape: Vec<usize> = std::iter::once(length).chain(t.shape.iter().copied()).collect();
    Type::new(t.dtype, &shape)
}

fn scan(rng: &mut Rng, (n, lanes): (usize, Lanes), steps: usize, length: usize) -> (Graph, Vec<Type>) {
    let t = types(rng, n, lanes);
    let ys = rng.below(3);
    let (body, ys) = body(rng, &t, steps, ys);
    let mut params: Vec<Type> = t.consts.iter().chain(&t.carry).cloned().collect();
    params.extend(t.xs.iter().map(|x| stacked(x, length)));
    let mut b = Builder::new(params.clone());
    let args: Vec<ValueId> = b.params().collect();
    let mut results: Vec<Type> = t.carry.clone();
    results.extend(ys.iter().map(|y| stacked(y, length)));
    let kind = Kind::Scan {
        body: Arc::new(body),
        length,
        reverse: rng.below(2) == 0,
        consts: t.consts.len(),
        carry: t.carry.len(),
    };
    let outs = b.push_many(kind, &args, &results);
    (b.finish(&outs), params)
}

/// A while loop whose first carried value counts to a limit, with or without a further condition.
fn while_loop(rng: &mut Rng, (n, lanes): (usize, Lanes), steps: usize, limit: usize) -> (Graph, Vec<Type>) {
    let mut t = types(rng, n, lanes);
    t.xs.clear();
    let (inner, _) = body(rng, &t, steps, 0);
    let int = Type::new(lanes.int(), &[]);
    let carry: Vec<Type> = [int.clone(), int.clone()].into_iter().chain(t.carry.clone()).collect();
    let mut b = Builder::new(t.consts.iter().chain(&carry).cloned());
    let p: Vec<ValueId> = b.params().collect();
    let (consts, state) = p.split_at(t.consts.len());
    let one = b.scalar(Scalar::from_i64(lanes.int(), 1));
    let next = b.binary(BinaryOp::Add, state[0], one);
    let args: Vec<ValueId> = consts.iter().chain(&state[2..]).copied().collect();
    let types: Vec<Type> = inner.outputs.iter().map(|&v| inner.ty(v).clone()).collect();
    let rest = if rng.below(2) == 0 {
        b.inline(&inner, &args).to_vec()
    } else {
        b.push_many(Kind::Call(Arc::new(inner)), &args, &types).to_vec()
    };
    let outs: Vec<ValueId> = [next, state[1]].into_iter().chain(rest).collect();
    let body = b.finish(&outs);
    let mut b = Builder::new(carry.iter().cloned());
    let p: Vec<ValueId> = b.params().collect();
    let mut go = b.compare(CompareOp::Lt, p[0], p[1]);
    let scalar = carry[2..].iter().position(|t| t.shape.is_empty() && t.dtype == lanes.float());
    if let Some(k) = scalar.filter(|_| rng.below(2) == 0) {
        let limit = b.float(lanes.float(), 2.0);
        let small = b.compare(CompareOp::Lt, p[2 + k], limit);
        go = b.binary(BinaryOp::And, go, small);
    }
    let cond = b.finish(&[go]);
    let params: Vec<Type> = t.consts.iter().chain(&carry[2..]).cloned().collect();
    let mut b = Builder::new(params.clone());
    let p: Vec<ValueId> = b.params().collect();
    let (consts, init) = p.split_at(t.consts.len());
    let start = b.scalar(Scalar::from_i64(lanes.int(), rng.below(3) as i64 - 1));
    let end = b.scalar(Scalar::from_i64(lanes.int(), limit as i64));
    let args: Vec<ValueId> = consts.iter().copied().chain([start, end]).chain(init.iter().copied()).collect();
    let kind = Kind::While { cond: Arc::new(cond), body: Arc::new(body), cond_consts: 0, body_consts: t.consts.len() };
    let outs = b.push_many(kind, &args, &carry);
    (b.finish(&outs), params)
}

/// A while loop whose elements go on alone: each counts to its own limit, and then stays as it is.
fn alone(rng: &mut Rng, (n, lanes): (usize, Lanes), steps: usize) -> (Graph, Vec<Type>) {
    let mut t = types(rng, n, lanes);
    t.xs.clear();
    t.carry.iter_mut().for_each(|ty| *ty = Type::new(ty.dtype, &[n]));
    let (inner, _) = body(rng, &t, steps, 0);
    let int = Type::new(lanes.int(), &[n]);
    let carry: Vec<Type> = [&int].into_iter().chain(&t.carry).cloned().collect();
    let mut b = Builder::new([&int].into_iter().chain(&t.consts).chain(&carry).cloned());
    let p: Vec<ValueId> = b.params().collect();
    let (consts, state) = p.split_at(1 + t.consts.len());
    let going = b.compare(CompareOp::Lt, state[0], consts[0]);
    let one = b.scalar(Scalar::from_i64(lanes.int(), 1));
    let one = b.broadcast(one, &[n], &[]);
    let next = b.binary(BinaryOp::Add, state[0], one);
    let args: Vec<ValueId> = consts[1..].iter().chain(&state[1..]).copied().collect();
    let rest = b.inline(&inner, &args).to_vec();
    let outs: Vec<ValueId> =
        [next].into_iter().chain(rest).zip(state).map(|(v, &old)| b.select(going, old, v)).collect();
    let body = b.finish(&outs);
    let mut b = Builder::new([&int].into_iter().chain(&carry).cloned());
    let p: Vec<ValueId> = b.params().collect();
    let going = b.compare(CompareOp::Lt, p[1], p[0]);
    let any = if rng.below(2) == 0 {
        b.push(
            Kind::Reduce { op: ReduceOp::Or, axes: [0].into_iter().collect() },
            &[going],
            Type::new(DType::Bool, &[]),
        )
    } else {
        let numbers = b.convert(going, DType::I32);
        let sum = Kind::Reduce { op: ReduceOp::Sum, axes: [0].into_iter().collect() };
        let count = b.push(sum, &[numbers], Type::new(DType::I32, &[]));
        let zero = b.scalar(Scalar::from_i64(DType::I32, 0));
        b.compare(CompareOp::Ne, count, zero)
    };
    let cond = b.finish(&[any]);
    let params: Vec<Type> = [&int].into_iter().chain(&t.consts).chain(&t.carry).cloned().collect();
    let mut b = Builder::new(params.clone());
    let p: Vec<ValueId> = b.params().collect();
    let number = |b: &mut Builder, x: i64| {
        let x = b.scalar(Scalar::from_i64(lanes.int(), x));
        b.broadcast(x, &[n], &[])
    };
    let (most, start) = (number(&mut b, 7), number(&mut b, rng.below(3) as i64));
    let limit = b.binary(BinaryOp::And, p[0], most);
    let (consts, init) = p[1..].split_at(t.consts.len());
    let args: Vec<ValueId> = [limit, limit].iter().chain(consts).chain([&start]).chain(init).copied().collect();
    let kind =
        Kind::While { cond: Arc::new(cond), body: Arc::new(body), cond_consts: 1, body_consts: 1 + t.consts.len() };
    let outs = b.push_many(kind, &args, &carry);
    (b.finish(&outs), params)
}

fn run(p: &Program, args: &[Buffer]) -> Vec<Buffer> {
    let mut args: Vec<Arg<'_>> = args.iter().map(Arg::Host).collect();
    p.run(&mut args).unwrap().into_vec()
}

#[track_caller]
fn same_bits(g: &Graph, a: &[Buffer], b: &[Buffer]) {
    for (k, (a, b)) in a.iter().zip(b).enumerate() {
        let ty = g.ty(g.outputs[k]);
        let (Kind::Scan { body, .. } | Kind::While { body, .. }) = &g.nodes[g.nodes.len() - 1].kind else { panic!() };
        let (a, b) = (Array::of(ty, a), Array::of(ty, b));
        common::assert_same(&a, &b, &format_args!("output {k} of\n{g}\n{body}"));
    }
}

#[track_caller]
fn check(rng: &mut Rng, graph: Graph, params: &[Type]) -> Program {
    let args = arguments(rng, params);
    let graph = Arc::new(graph);
    let program = Program::compile(graph.clone()).unwrap();
    let plain = run(&Program::compile_plain(graph.clone()).unwrap(), &args);
    same_bits(&graph, &run(&program, &args), &plain);
    let donated = Program::compile_donating(graph.clone(), &vec![true; params.len()]).unwrap();
    let mut owned: Vec<Arg<'_>> =
        args.iter().map(|b| Arg::Owned(Buffer::from_bytes(b.bytes()).unwrap().into())).collect();
    same_bits(&graph, &donated.run(&mut owned).unwrap(), &plain);
    program
}

#[track_caller]
fn in_registers(p: &Program) {
    assert!(!has_machine() || p.kernels().contains("loop in registers"), "{}", p.kernels());
}

/// As `in_registers` where there are handlers for lanes of 8 bytes.
#[track_caller]
fn wide_in_registers(p: &Program) {
    if cfg!(target_arch = "x86_64") {
        in_registers(p);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(400)))]

    #[test]
    fn scans_in_registers(seed: u64, n in 0usize..4, steps in 1usize..25, length in 0usize..9) {
        let mut rng = Rng(seed);
        let n = [1, 1 + rng.below(8), 1 + rng.below(16), 1 + rng.below(60)][n];
        let (graph, params) = scan(&mut rng, (n, FOUR), steps, length);
        in_registers(&check(&mut rng, graph, &params));
    }

    #[test]
    fn whiles_in_registers(seed: u64, n in 0usize..4, steps in 1usize..25, limit in 0usize..9) {
        let mut rng = Rng(seed);
        let n = [1, 1 + rng.below(8), 1 + rng.below(16), 1 + rng.below(60)][n];
        let (graph, params) = while_loop(&mut rng, (n, FOUR), steps, limit);
        in_registers(&check(&mut rng, graph, &params));
    }

    #[test]
    fn wide_scans_in_registers(seed: u64, n in 0usize..4, steps in 1usize..25, length in 0usize..9) {
        let mut rng = Rng(seed);
        let n = [1, 1 + rng.below(8), 1 + rng.below(16), 1 + rng.below(60)][n];
        let (graph, params) = scan(&mut rng, (n, EIGHT), steps, length);
        wide_in_registers(&check(&mut rng, graph, &params));
    }

    #[test]
    fn wide_whiles_in_registers(seed: u64, n in 0usize..4, steps in 1usize..25, limit in 0usize..9) {
        let mut rng = Rng(seed);
        let n = [1, 1 + rng.below(8), 1 + rng.below(16), 1 + rng.below(60)][n];
        let (graph, params) = while_loop(&mut rng, (n, EIGHT), steps, limit);
        wide_in_registers(&check(&mut rng, graph, &params));
    }

    #[test]
    fn elements_alone_in_registers(seed: u64, n in 0usize..4, steps in 1usize..25, wide: bool) {
        let mut rng = Rng(seed);
        let n = [2 + rng.below(7), 2 + rng.below(60), 65 + rng.below(150), 2 + rng.below(3000)][n];
        let (graph, params) = alone(&mut rng, (n, if wide { EIGHT } else { FOUR }), steps);
        let program = check(&mut rng, graph, &params);
        if !wide || cfg!(target_arch = "x86_64") {
            prop_assert!(!has_machine() || program.kernels().contains("holds for an element"), "{}", program.kernels());
        }
    }
}

fn floats(rng: &mut Rng, shape: &[usize]) -> Buffer {
    Array::tame(rng, DType::F32, shape).buffer()
}

fn dot(b: &mut Builder, x: ValueId, y: ValueId, contract: (&[usize], &[usize]), shape: &[usize]) -> ValueId {
    let dims = DotDims { lhs_contract: contract.0.into(), rhs_contract: contract.1.into(), ..DotDims::default() };
    b.push(Kind::Dot(Box::new(dims)), &[x, y], Type::new(DType::F32, shape))
}

/// A recurrent step, and that of its gradient: products with vectors, small groups, sums of outer products.
fn recurrent(n: usize, m: usize, length: usize, reverse: bool) -> (Graph, Vec<Type>) {
    let f = |shape: &[usize]| Type::new(DType::F32, shape);
    let (w, h, x, u) = (f(&[n, n]), f(&[n]), f(&[m]), f(&[n, m]));
    let carry = [w.clone(), h.clone(), u.clone(), u.clone()];
    let all = [&[w.clone(), u.clone()][..], &carry, &[x.clone(), h.clone()]].concat();
    let mut b = Builder::new(all);
    let p: Vec<ValueId> = b.params().collect();
    let (sum, state, mixed, total) = (p[2], p[3], p[4], p[5]);
    let by_rows = dot(&mut b, p[0], state, (&[1], &[0]), &[n]);
    let by_columns = dot(&mut b, state, p[0], (&[0], &[0]), &[n]);
    let input = dot(&mut b, p[1], p[6], (&[1], &[0]), &[n]);
    let all = b.binary(BinaryOp::Sub, by_rows, by_columns);
    let all = b.binary(BinaryOp::Add, all, input);
    let all = b.binary(BinaryOp::Mul, all, p[7]);
    let next = b.unary(UnaryOp::Tanh, all);
    let outer = dot(&mut b, next, state, (&[], &[]), &[n, n]);
    let again = dot(&mut b, state, next, (&[], &[]), &[n, n]);
    // A sum of two products, neither of which is there before.
    let outer = b.binary(BinaryOp::Add, outer, again);
    let third = dot(&mut b, state, state, (&[], &[]), &[n, n]);
    let sum = b.binary(BinaryOp::Add, sum, third);
    let sum = b.binary(BinaryOp::Sub, sum, outer);
    // The other operand of this sum is needed again.
    let other = dot(&mut b, state, p[6], (&[], &[]), &[n, m]);
    let both = b.binary(BinaryOp::Add, other, mixed);
    let mixed = b.binary(BinaryOp::Max, both, mixed);
    // Nothing else is done with this one.
    let outer = dot(&mut b, next, p[6], (&[], &[]), &[n, m]);
    let total = b.binary(BinaryOp::Add, outer, total);
    let body = b.finish(&[sum, next, mixed, total, state, all]);
    let params = [&[w.clone(), u.clone()][..], &carry, &[stacked(&x, length), stacked(&h, length)]].concat();
    let mut b = Builder::new(params.clone());
    let args: Vec<ValueId> = b.params().collect();
    let kind = Kind::Scan { body: Arc::new(body), length, reverse, consts: 2, carry: 4 };
    let outs = b.push_many(kind, &args, &[w, h.clone(), u.clone(), u, stacked(&h, length), stacked(&h, length)]);
    (b.finish(&outs), params)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(60)))]

    #[test]
    fn steps_with_matrices(seed: u64, n in 1usize..90, m in 1usize..90, length in 0usize..20) {
        let mut rng = Rng(seed);
        let (graph, params) = recurrent(n, m, length, seed % 2 == 0);
        let args: Vec<Buffer> = params.iter().map(|t| floats(&mut rng, &t.shape)).collect();
        let graph = Arc::new(graph);
        let plain = run(&Program::compile_plain(graph.clone()).unwrap(), &args);
        same_bits(&graph, &run(&Program::compile(graph.clone()).unwrap(), &args), &plain);
        let donated = Program::compile_donating(graph.clone(), &vec![true; params.len()]).unwrap();
        let mut owned: Vec<Arg<'_>> = args.iter().map(|b| Arg::Owned(Buffer::from_bytes(b.bytes()).unwrap().into())).collect();
        same_bits(&graph, &donated.run(&mut owned).unwrap(), &plain);
    }
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
        .args(["in_registers", "matrices"])
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
}
