//! Threads of a service that call one compiled program each and wait for its result: what do more threads give?
//!
//! `cargo bench --package ferrax --bench service`. Each row is a program; calls a second at 1, 2, 4 and 8 threads, the best
//! of three runs, and the ratio to one thread. Run it with `FERRAX_NUM_THREADS=1` as well: then a program uses one CPU, and
//! the ratio shows what callers cost each other; otherwise a large program alone uses all CPUs already.

use ferrax::function::{Data, jit};
use ferrax::{Result, Value, numpy, ops};
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Time of one run.
const RUN: Duration = Duration::from_millis(400);
const THREADS: [usize; 4] = [1, 2, 4, 8];

/// x -> the sum of tanh(x w), `depth` times.
fn layers(depth: usize) -> impl Fn(&[Value]) -> Result<Vec<Value>> + Send + Sync + 'static {
    move |v: &[Value]| {
        let (mut x, w) = (v[0].clone(), &v[1]);
        for _ in 0..depth {
            x = numpy::tanh(&ops::dot::matmul(&x, w, None, None)?)?;
        }
        Ok(vec![ops::reduce_sum(&x, &[0, 1])?])
    }
}

/// Calls a second of all threads together; each has a program and operands of its own.
fn rate(threads: usize, size: usize, depth: usize) -> Result<f64> {
    let barrier = Barrier::new(threads);
    let caller = |t: usize| -> Result<f64> {
        let program = jit("service", layers(depth));
        let numbers: Vec<f32> = (0..size * size).map(|i| ((i * 7 + t) % 13) as f32 / 13.0 - 0.5).collect();
        let args = [Value::array(&numbers, &[size, size])?, Value::array(&numbers, &[size, size])?];
        for _ in 0..3 {
            program.call(&args)?[0].to_f64()?;
        }
        barrier.wait();
        let (start, mut calls) = (Instant::now(), 0u32);
        while start.elapsed() < RUN {
            program.call(&args)?[0].to_f64()?;
            calls += 1;
        }
        Ok(f64::from(calls) / start.elapsed().as_secs_f64())
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|t| scope.spawn(move || caller(t))).collect();
        all.into_iter().map(|t| t.join().unwrap_or_else(|p| std::panic::resume_unwind(p))).sum()
    })
}

/// A bench talks to its user on standard output.
#[allow(clippy::print_stdout)]
fn main() -> Result<()> {
    println!("calls a second, and the ratio to one thread");
    println!("{:28}{}", "program", THREADS.map(|n| format!("{n:>8} thread(s)")).concat());
    for (name, size, depth) in
        [("4 x 4, one layer", 4, 1), ("64 x 64, ten layers", 64, 10), ("256 x 256, ten layers", 256, 10)]
    {
        let mut one = 0.0;
        let mut line = format!("{name:28}");
        for threads in THREADS {
            let mut best = 0.0f64;
            for _ in 0..3 {
                best = best.max(rate(threads, size, depth)?);
            }
            if threads == 1 {
                one = best;
            }
            line += &format!("{best:>11.0} {:5.2}x", best / one);
        }
        println!("{line}");
    }
    Ok(())
}
