//! Programs that call the host, in segments driven from the host: what they compute, and what they call, beside the CPU
//! engine, which runs them whole.

use ferrax::engine::{self, Engine, Source};
use ferrax_base::{Arg, Aval, Buffer, DType, Memory, Result, Scalar, error};
use ferrax_interpreter::{PLATFORM, memory};
use ferrax_loops::{BinaryOp, Builder, CompareOp, Graph, HostCall, HostRef, Kind, Type, UnaryOp, ValueId};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

/// The bytes of what the host was called with, in order, with the name of the call.
static CALLS: Mutex<Vec<(String, Vec<u8>)>> = Mutex::new(Vec::new());

/// Notes what it is called with, and gives it back, or fails at a call of some number.
struct Noted {
    name: String,
    fails: bool,
}

impl HostCall for Noted {
    fn call(&self, args: &[(&Aval, &Buffer)], results: &[Aval]) -> Result<Vec<Buffer>> {
        let all = args.iter().flat_map(|(_, b)| b.bytes().to_vec()).collect();
        CALLS.lock().unwrap().push((self.name.clone(), all));
        if self.fails {
            return Err(error!(Value, "{} fails", self.name));
        }
        results.iter().zip(args).map(|(_, (_, b))| Buffer::from_bytes(b.bytes())).collect()
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

fn host(b: &mut Builder, name: &str, x: ValueId, gives: bool) -> ValueId {
    let call = Kind::Host(HostRef(Arc::new(Noted { name: name.into(), fails: name == "bad" })));
    let ty = b.ty(x).clone();
    b.push_many(call, &[x], if gives { std::slice::from_ref(&ty) } else { &[] }).first().copied().unwrap_or(x)
}

/// One test at a time: calls and memory are the process's.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    static ONCE: Once = Once::new();
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    ONCE.call_once(|| {
        ferrax::init();
        ferrax_interpreter::install(true).unwrap();
    });
    guard
}

fn interpreter() -> &'static dyn Engine {
    engine::numbered(engine::platform(PLATFORM).unwrap()).unwrap()
}

fn embedded() -> &'static dyn Engine {
    engine::numbered(0).unwrap()
}

type Ran = (Result<Vec<Vec<u8>>, String>, Vec<(String, Vec<u8>)>);

/// Results and calls of a graph on an engine; `donated` arguments are handed over.
fn run(engine: &dyn Engine, graph: &Arc<Graph>, args: &[Buffer], donated: &[bool]) -> Ran {
    CALLS.lock().unwrap().clear();
    let source = Source { graph, donated, device: 1, name: "f", options: &[] };
    let ran = engine.compile(&source).and_then(|program| {
        let there = |(x, ty): (&Buffer, &Type)| engine.upload(x, ty, 1);
        let mut owned: Vec<Option<Memory>> =
            args.iter().zip(graph.param_types()).map(there).map(|m| m.map(Some)).collect::<Result<_>>()?;
        let given: Vec<Option<Memory>> = (0..owned.len())
            .map(|i| if program.reusable()[i] && donated.get(i) == Some(&true) { owned[i].take() } else { None })
            .collect();
        let mut args: Vec<Arg<'_>> = owned
            .iter()
            .zip(given)
            .map(|(kept, given)| given.map_or_else(|| Arg::Borrowed(kept.as_ref().unwrap()), Arg::Owned))
            .collect();
        let results = program.run(&mut args, 1)?;
        results.iter().map(|m| Ok(m.host()?.bytes().to_vec())).collect()
    });
    (ran.map_err(|e| e.to_string()), std::mem::take(&mut *CALLS.lock().unwrap()))
}

/// Runs on both engines, with arguments kept and donated; the results and the calls are the same, and no memory is left.
fn same(graph: Graph, args: &[Buffer]) -> Ran {
    let graph = Arc::new(graph);
    let expected = run(embedded(), &graph, args, &[]);
    assert!(expected.0.is_ok() || !expected.1.is_empty(), "{:?}", expected.0);
    for donated in [vec![], vec![true; graph.params]] {
        let got = run(interpreter(), &graph, args, &donated);
        assert_eq!(got, expected, "donated: {donated:?}\n{graph}");
    }
    for _ in 0..500 {
        if memory::in_use() == 0 {
            return expected;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{} bytes are left of\n{graph}", memory::in_use());
}

fn vector() -> Type {
    Type::new(DType::F32, &[3])
}

fn values(n: usize) -> Vec<Buffer> {
    (0..n).map(|i| Buffer::from_slice(&[0.5 + i as f32, -1.25, 3.0 - i as f32]).unwrap()).collect()
}

#[test]
fn results_may_be_arguments_and_one_another() {
    let _alone = alone();
    let mut b = Builder::new([vector(), vector()]);
    let [x, y] = b.params().collect::<Vec<_>>()[..] else { unreachable!() };
    let sin = b.unary(UnaryOp::Sin, x);
    let told = host(&mut b, "first", sin, true);
    let sum = b.binary(BinaryOp::Add, told, y);
    host(&mut b, "second", sum, false);
    let (results, calls) = same(b.finish(&[sum, x, told, sum, x, y]), &values(2));
    assert_eq!(results.unwrap().len(), 6);
    assert_eq!(calls.iter().map(|c| &*c.0).collect::<Vec<_>>(), ["first", "second"]);
}

#[test]
fn an_error_of_the_host_ends_the_run() {
    let _alone = alone();
    let mut b = Builder::new([vector()]);
    let x = b.params().next().unwrap();
    let mut body = Builder::new([vector()]);
    let inner = body.params().next().unwrap();
    host(&mut body, "good", inner, false);
    let worse = host(&mut body, "bad", inner, true);
    let body = Arc::new(body.finish(&[worse]));
    let y = b.push(Kind::Scan { body, length: 4, reverse: false, consts: 0, carry: 1 }, &[x], vector());
    let (results, calls) = same(b.finish(&[y]), &values(1));
    assert_eq!(results.unwrap_err(), "bad fails");
    assert_eq!(calls.iter().map(|c| &*c.0).collect::<Vec<_>>(), ["good", "bad"]);
}

/// Draws programs.
struct Draw {
    state: u64,
    calls: usize,
}

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as usize % n
    }

    fn pick(&mut self, values: &[ValueId]) -> ValueId {
        values[self.below(values.len())]
    }

    fn host(&mut self, b: &mut Builder, x: ValueId, gives: bool) -> ValueId {
        self.calls += 1;
        host(b, &format!("h{}", self.calls), x, gives)
    }

    /// A graph over vectors, with loops and branches up to a depth.
    fn graph(&mut self, params: usize, outputs: usize, depth: usize) -> Arc<Graph> {
        let mut b = Builder::new((0..params).map(|_| vector()));
        let mut values: Vec<ValueId> = b.params().collect();
        if values.is_empty() {
            values.push(b.push(Kind::Const(Scalar::from_f64(DType::F32, 0.75)), &[], vector()));
        }
        for _ in 0..3 + self.below(4) {
            let made = self.node(&mut b, &values, depth);
            values.extend(made);
        }
        let outputs: Vec<ValueId> = (0..outputs).map(|_| self.pick(&values)).collect();
        Arc::new(b.finish(&outputs))
    }

    fn node(&mut self, b: &mut Builder, values: &[ValueId], depth: usize) -> Vec<ValueId> {
        let (x, y) = (self.pick(values), self.pick(values));
        let of = |n: usize| vec![vector(); n];
        match self.below(if depth > 0 { 10 } else { 5 }) {
            0 => vec![b.unary(UnaryOp::Cos, x)],
            1 => vec![b.binary(BinaryOp::Mul, x, y)],
            2 => vec![b.push(Kind::Const(Scalar::from_f64(DType::F32, 1.5)), &[], vector())],
            3 => vec![self.host(b, x, true)],
            4 => {
                self.host(b, y, false);
                Vec::new()
            }
            5 => {
                let callee = self.graph(2, 2, depth - 1);
                b.push_many(Kind::Call(callee), &[x, y], &of(2)).to_vec()
            }
            6 => {
                let index = b.scalar(Scalar::from_i64(DType::I32, self.below(5) as i64 - 1));
                let branches = (0..=self.below(3)).map(|_| self.graph(2, 2, depth - 1)).collect();
                b.push_many(Kind::Switch(branches), &[index, x, y], &of(2)).to_vec()
            }
            7 => self.while_loop(b, [x, y], depth),
            _ => self.scan(b, [x, y], depth),
        }
    }

    /// A loop that counts to a small number; its condition may call the host.
    fn while_loop(&mut self, b: &mut Builder, [x, y]: [ValueId; 2], depth: usize) -> Vec<ValueId> {
        let counter = Type::new(DType::I32, &[]);
        let mut cond = Builder::new([vector(), counter.clone(), vector()]);
        let [fixed, n, _] = cond.params().collect::<Vec<_>>()[..] else { unreachable!() };
        if self.below(3) == 0 {
            self.host(&mut cond, fixed, false);
        }
        let most = cond.scalar(Scalar::from_i64(DType::I32, self.below(4) as i64));
        let go = cond.compare(CompareOp::Lt, n, most);
        let inner = self.graph(2, 1, depth - 1);
        let mut body = Builder::new([vector(), counter.clone(), vector()]);
        let [fixed, n, now] = body.params().collect::<Vec<_>>()[..] else { unreachable!() };
        let one = body.scalar(Scalar::one(DType::I32));
        let (next, made) = (body.binary(BinaryOp::Add, n, one), body.inline(&inner, &[fixed, now]));
        let (cond, body) = (Arc::new(cond.finish(&[go])), Arc::new(body.finish(&[next, made[0]])));
        let kind = Kind::While { cond, body, cond_consts: 1, body_consts: 1 };
        let zero = b.scalar(Scalar::zero(DType::I32));
        let results = b.push_many(kind, &[x, y, zero, x], &[counter, vector()]);
        vec![results[1]]
    }

    /// A scan over rows of a stack, whose rows are a result too.
    fn scan(&mut self, b: &mut Builder, [x, y]: [ValueId; 2], depth: usize) -> Vec<ValueId> {
        let length = self.below(4);
        let stack = Type::new(DType::F32, &[length, 3]);
        let rows = b.push(Kind::Broadcast([1][..].into()), &[y], stack.clone());
        let count = b.push(Kind::Iota(0), &[], stack.clone());
        let rows = b.binary(BinaryOp::Add, rows, count);
        let kind =
            Kind::Scan { body: self.graph(3, 2, depth - 1), length, reverse: self.below(2) == 0, consts: 1, carry: 1 };
        let results = b.push_many(kind, &[y, x, rows], &[vector(), stack]);
        let total = b.reduce(ferrax_loops::ReduceOp::Max, results[1], &[0]);
        vec![results[0], total]
    }
}

#[test]
fn random_programs_compute_and_call_the_same_in_segments() {
    let _alone = alone();
    let (mut called, mut looped) = (0, 0);
    for seed in 0..300 {
        let mut draw = Draw { state: seed, calls: 0 };
        let graph = Arc::unwrap_or_clone(draw.graph(2, 3, 3));
        if !graph.calls_host() {
            continue;
        }
        let (results, calls) = same(graph, &values(2));
        results.unwrap();
        called += calls.len();
        looped += usize::from(calls.len() > draw.calls);
    }
    assert!(called > 2000 && looped > 20, "{called} calls, {looped} programs with more calls than places of calls");
}
