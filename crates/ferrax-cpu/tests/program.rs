//! Programs as wholes: grouping, memory planning, donation, control flow, host calls.

use ferrax_base::{Arg, Buffer, DType, Scalar, error};
use ferrax_cpu::{Program, eager};
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{BinaryOp, Builder, HostCall, HostRef, Kind, ReduceOp, Type, UnaryOp};
use std::sync::Arc;

const F32: DType = DType::F32;

fn floats(v: &[f32]) -> Buffer {
    Buffer::from_slice(v).unwrap()
}

fn run(program: &Program, args: &[&Buffer]) -> Vec<Vec<f32>> {
    let mut args: Vec<Arg<'_>> = args.iter().map(|b| Arg::Host(b)).collect();
    program.run(&mut args).unwrap().iter().map(|b| b.typed::<f32>().to_vec()).collect()
}

fn ramp(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i as f32) * 0.25 - 3.0).collect()
}

#[test]
fn chains_of_any_length_and_size() {
    for n in [0, 1, 3, 10, 1023, 1024, 1025, 5000, 40_000] {
        let mut b = Builder::new([Type::new(F32, &[n]), Type::new(F32, &[n])]);
        let p: Vec<_> = b.params().collect();
        let two = b.float(F32, 2.0);
        let one = b.float(F32, 1.0);
        let t = b.binary(BinaryOp::Mul, p[0], two);
        let t = b.binary(BinaryOp::Add, t, one);
        let u = b.binary(BinaryOp::Sub, t, p[1]);
        let pos = b.compare(CompareOp::Gt, u, one);
        let w = b.select(pos, t, u);
        let g = Program::compile(Arc::new(b.finish(&[w, t]))).unwrap();
        let (x, y) = (ramp(n), vec![0.5f32; n]);
        let got = run(&g, &[&floats(&x), &floats(&y)]);
        for i in 0..n {
            let t = x[i] * 2.0 + 1.0;
            let u = t - y[i];
            assert_eq!(got[0][i], if u > 1.0 { u } else { t });
            assert_eq!(got[1][i], t);
        }
    }
}

#[test]
fn narrow_floats_round_after_every_operation() {
    let mut b = Builder::new([Type::new(DType::BF16, &[3])]);
    let x = b.params().next().unwrap();
    let k = b.float(DType::BF16, 1.0 / 3.0);
    let y = b.binary(BinaryOp::Mul, x, k);
    let z = b.binary(BinaryOp::Add, y, x);
    let p = Program::compile(Arc::new(b.finish(&[z]))).unwrap();
    let v = [1.0f32, 7.5, -100.0].map(half::bf16::from_f32);
    let x = Buffer::from_slice(&v).unwrap();
    let out = p.run(&mut [Arg::Host(&x)]).unwrap();
    let third = half::bf16::from_f32(1.0 / 3.0).to_f32();
    for (o, v) in out[0].typed::<half::bf16>().iter().zip(v) {
        let y = half::bf16::from_f32(v.to_f32() * third);
        assert_eq!(*o, half::bf16::from_f32(y.to_f32() + v.to_f32()));
    }
}

#[test]
fn splats_stay_scalars_until_needed() {
    let mut b = Builder::new([Type::new(F32, &[]), Type::new(F32, &[2, 3])]);
    let p: Vec<_> = b.params().collect();
    let wide = b.broadcast(p[0], &[2, 3], &[]);
    let e = b.unary(UnaryOp::Neg, wide);
    let sum = b.binary(BinaryOp::Add, e, p[1]);
    let total = b.reduce(ReduceOp::Sum, e, &[0, 1]);
    let program = Program::compile(Arc::new(b.finish(&[sum, total, e, wide]))).unwrap();
    let got = run(&program, &[&floats(&[2.0]), &floats(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])]);
    assert_eq!(got[0], [-2.0, -1.0, 0.0, 1.0, 2.0, 3.0]);
    assert_eq!(got[1], [-12.0]);
    assert_eq!(got[2], [-2.0; 6]);
    assert_eq!(got[3], [2.0; 6]);
}

#[test]
fn outputs_may_repeat_and_be_parameters() {
    let mut b = Builder::new([Type::new(F32, &[2])]);
    let x = b.params().next().unwrap();
    let y = b.unary(UnaryOp::Neg, x);
    let r = b.reshape(y, &[2, 1]);
    let program = Program::compile(Arc::new(b.finish(&[x, y, r, y, x]))).unwrap();
    let got = run(&program, &[&floats(&[1.0, -2.0])]);
    assert_eq!(got, [[1.0, -2.0], [-1.0, 2.0], [-1.0, 2.0], [-1.0, 2.0], [1.0, -2.0]]);
}

#[test]
fn donated_buffers_become_outputs() {
    for n in [4, 50_000] {
        let mut b = Builder::new([Type::new(F32, &[n]), Type::new(F32, &[n])]);
        let p: Vec<_> = b.params().collect();
        let s = b.binary(BinaryOp::Add, p[0], p[1]);
        let t = b.binary(BinaryOp::Mul, s, p[0]);
        let program = Program::compile_donating(Arc::new(b.finish(&[t])), &[true, false]).unwrap();
        assert_eq!(program.donations().as_slice(), &[true, false]);
        let (x, y) = (floats(&ramp(n)), floats(&vec![1.0; n]));
        let at = x.as_ptr();
        let mut args = [Arg::Owned(x.into()), Arg::Host(&y)];
        let out = program.run(&mut args).unwrap();
        assert_eq!(out[0].as_ptr(), at);
        assert!(matches!(args[0], Arg::Taken));
        for (o, x) in out[0].typed::<f32>().iter().zip(ramp(n)) {
            assert_eq!(*o, (x + 1.0) * x);
        }
        // A borrowed argument in a donated place is left as it was.
        let x = floats(&ramp(n));
        let out = program.run(&mut [Arg::Host(&x), Arg::Host(&y)]).unwrap();
        assert_eq!(x.typed::<f32>(), ramp(n));
        assert_eq!(out[0].typed::<f32>()[1], (ramp(n)[1] + 1.0) * ramp(n)[1]);
    }
}

/// (i, x) → (i + 1, x with x[i] replaced by i) while i < n
fn counting_loop(n: usize, length: usize) -> Program {
    let i32s = Type::new(DType::I32, &[]);
    let xs = Type::new(F32, &[length]);
    let mut c = Builder::new([i32s.clone(), xs.clone()]);
    let p: Vec<_> = c.params().collect();
    let limit = c.scalar(Scalar::from_i64(DType::I32, n as i64));
    let more = c.compare(CompareOp::Lt, p[0], limit);
    let cond = Arc::new(c.finish(&[more]));
    let mut b = Builder::new([i32s.clone(), xs.clone()]);
    let p: Vec<_> = b.params().collect();
    let one = b.scalar(Scalar::one(DType::I32));
    let next = b.binary(BinaryOp::Add, p[0], one);
    let f = b.convert(p[0], F32);
    let f = b.reshape(f, &[1]);
    let x = b.push(Kind::DynamicUpdateSlice, &[p[1], f, p[0]], xs.clone());
    let body = Arc::new(b.finish(&[next, x]));
    let mut g = Builder::new([i32s.clone(), xs.clone()]);
    let p: Vec<_> = g.params().collect();
    let kind = Kind::While { cond, body, cond_consts: 0, body_consts: 0 };
    let out = g.push_many(kind, &p, &[i32s, xs]);
    Program::compile(Arc::new(g.finish(&out))).unwrap()
}

#[test]
fn while_loops_update_in_place() {
    for n in [0usize, 1, 2, 7, 20_000] {
        let program = counting_loop(n, 20_000);
        let x = floats(&vec![-1.0; 20_000]);
        let i = Buffer::from_slice(&[0i32]).unwrap();
        let started = std::time::Instant::now();
        let out = program.run(&mut [Arg::Host(&i), Arg::Host(&x)]).unwrap();
        assert!(started.elapsed().as_secs() < 2, "the loop copies its carry");
        assert_eq!(out[0].typed::<i32>(), [n as i32]);
        for (k, v) in out[1].typed::<f32>().iter().enumerate() {
            assert_eq!(*v, if k < n { k as f32 } else { -1.0 });
        }
        assert_eq!(x.typed::<f32>()[0], -1.0);
    }
}

#[test]
fn loops_can_swap_their_carry() {
    // (a, b, i) → (b, a + b, i + 1): Fibonacci, with vectors large enough for the heap.
    for n in [2, 20_000] {
        let v = Type::new(F32, &[n]);
        let mut body = Builder::new([v.clone(), v.clone()]);
        let p: Vec<_> = body.params().collect();
        let s = body.binary(BinaryOp::Add, p[0], p[1]);
        let body = Arc::new(body.finish(&[p[1], s, s]));
        for length in [0, 1, 2, 9] {
            let stacked = Type::new(F32, &[length, n]);
            let mut b = Builder::new([v.clone(), v.clone()]);
            let p: Vec<_> = b.params().collect();
            let kind = Kind::Scan { body: body.clone(), length, reverse: false, consts: 0, carry: 2 };
            let out = b.push_many(kind, &p, &[v.clone(), v.clone(), stacked]);
            let program = Program::compile(Arc::new(b.finish(&out))).unwrap();
            let got = run(&program, &[&floats(&vec![0.0; n]), &floats(&vec![1.0; n])]);
            let fib = [0.0, 1.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 34.0, 55.0];
            assert_eq!(got[0], vec![fib[length]; n]);
            assert_eq!(got[1], vec![fib[length + 1]; n]);
            for i in 0..length {
                assert_eq!(got[2][i * n], fib[i + 2]);
            }
        }
    }
}

#[test]
fn scans_run_backwards_too() {
    let s = Type::new(F32, &[]);
    let mut body = Builder::new([s.clone(), s.clone(), s.clone()]);
    let p: Vec<_> = body.params().collect();
    let k = body.binary(BinaryOp::Mul, p[0], p[2]);
    let c = body.binary(BinaryOp::Add, p[1], k);
    let body = Arc::new(body.finish(&[c, c]));
    let xs = Type::new(F32, &[4]);
    let mut b = Builder::new([s.clone(), s.clone(), xs.clone()]);
    let p: Vec<_> = b.params().collect();
    let kind = Kind::Scan { body, length: 4, reverse: true, consts: 1, carry: 1 };
    let out = b.push_many(kind, &p, &[s, xs]);
    let program = Program::compile(Arc::new(b.finish(&out))).unwrap();
    let got = run(&program, &[&floats(&[10.0]), &floats(&[0.5]), &floats(&[1.0, 2.0, 3.0, 4.0])]);
    assert_eq!(got[0], [100.5]);
    assert_eq!(got[1], [100.5, 90.5, 70.5, 40.5]);
}

#[test]
fn switch_clamps_its_index() {
    let v = Type::new(F32, &[3]);
    let branch = |op| {
        let mut b = Builder::new([v.clone()]);
        let x = b.params().next().unwrap();
        let y = b.unary(op, x);
        Arc::new(b.finish(&[y]))
    };
    let branches = vec![branch(UnaryOp::Neg), branch(UnaryOp::Abs)];
    let mut b = Builder::new([Type::new(DType::I32, &[]), v.clone()]);
    let p: Vec<_> = b.params().collect();
    let y = b.push(Kind::Switch(branches), &p, v.clone());
    let program = Program::compile(Arc::new(b.finish(&[y]))).unwrap();
    for (index, want) in [(-5, [-1.0, 2.0, -3.0]), (0, [-1.0, 2.0, -3.0]), (1, [1.0, 2.0, 3.0]), (9, [1.0, 2.0, 3.0])] {
        let i = Buffer::from_slice(&[index]).unwrap();
        assert_eq!(run(&program, &[&i, &floats(&[1.0, -2.0, 3.0])])[0], want);
    }
}

struct Doubler;
impl HostCall for Doubler {
    fn call(
        &self,
        args: &[(&ferrax_base::Aval, &Buffer)],
        _: &[ferrax_base::Aval],
    ) -> ferrax_base::Result<Vec<Buffer>> {
        let x = args[0].1.typed::<f32>();
        if x[0] < 0.0 {
            return Err(error!(Value, "the host refuses {}", x[0]));
        }
        Ok(vec![floats(&x.iter().map(|v| v * 2.0).collect::<Vec<_>>())])
    }

    fn name(&self) -> String {
        "doubler".into()
    }
}

#[test]
fn host_calls_run_and_their_errors_come_out() {
    let v = Type::new(F32, &[2]);
    let mut b = Builder::new([v.clone()]);
    let x = b.params().next().unwrap();
    let n = b.unary(UnaryOp::Neg, x);
    let y = b.push(Kind::Host(HostRef(Arc::new(Doubler))), &[n], v.clone());
    let program = Program::compile(Arc::new(b.finish(&[y]))).unwrap();
    assert_eq!(run(&program, &[&floats(&[-1.0, -2.0])])[0], [2.0, 4.0]);
    let bad = floats(&[1.0, 2.0]);
    let e = program.run(&mut [Arg::Host(&bad)]).unwrap_err();
    assert_eq!(e.to_string(), "the host refuses -1");
}

#[test]
fn allocation_failures_are_memory_errors() {
    let mut b = Builder::new([Type::new(F32, &[])]);
    let x = b.params().next().unwrap();
    let huge = b.broadcast(x, &[1 << 40, 1 << 15], &[]);
    let program = Program::compile(Arc::new(b.finish(&[huge]))).unwrap();
    let x = floats(&[1.0]);
    let e = program.run(&mut [Arg::Host(&x)]).unwrap_err();
    assert!(matches!(*e.0, ferrax_base::ErrorKind::Memory(_)), "{e}");
}

#[test]
fn eager_calls_match_programs() {
    for n in [0usize, 1, 10, 3000] {
        let (x, y) = (floats(&ramp(n)), floats(&vec![1.5; n]));
        let s = floats(&[2.0]);
        let sum = eager::binary(BinaryOp::Add, F32, (&x, false), (&y, false), n).unwrap();
        let scaled = eager::binary(BinaryOp::Mul, F32, (&s, true), (&x, false), n).unwrap();
        let positive = eager::compare(CompareOp::Gt, F32, (&x, false), (&s, true), n).unwrap();
        let chosen = eager::select(F32, (&positive, false), (&s, true), (&x, false), n).unwrap();
        let half = eager::convert(F32, DType::F16, &x, n).unwrap();
        let total = eager::binary(BinaryOp::Add, DType::F16, (&half, false), (&half, false), n).unwrap();
        for (i, v) in ramp(n).into_iter().enumerate() {
            assert_eq!(sum.typed::<f32>()[i], v + 1.5);
            assert_eq!(scaled.typed::<f32>()[i], v * 2.0);
            assert_eq!(positive.bytes()[i], u8::from(v > 2.0));
            assert_eq!(chosen.typed::<f32>()[i], if v > 2.0 { v } else { 2.0 });
            let h = half::f16::from_f32(v).to_f32();
            assert_eq!(total.typed::<half::f16>()[i].to_f32(), half::f16::from_f32(h + h).to_f32());
        }
    }
}
