//! Our own code beside a crate's, on the same work in one run: `cargo run --release` in this folder, or `make bench-crates`.
//!
//! What the project exists for is its own where that pays: products, factorizations, transforms, sorts, the pool of threads,
//! the cells of arrays. Each row times ours and theirs in turns and prints the median of the ratios ours / theirs; below 1
//! ours is quicker. Both may use all threads. Rows that lose stay in the table.

use faer::Mat;
use ferrax_base::{Aval, Buffer, DType};
use ferrax_cpu::{eager, pool};
use ferrax_loops::linalg::LinalgOp;
use ferrax_loops::{DotDims, Kind, Type, fft::FftKind};
use rayon::prelude::*;
use rustfft::num_complex::Complex;
use std::hint::black_box;
use std::time::{Duration, Instant};
use voracious_radix_sort::RadixSort;

/// Rounds of a row, and the time that each side takes in a round, about.
const ROUNDS: usize = 15;
const ROUND: Duration = Duration::from_millis(40);

/// Seconds that a call takes, over as many calls as fill a round.
fn seconds(calls: usize, f: &mut dyn FnMut()) -> f64 {
    let start = Instant::now();
    (0..calls).for_each(|_| f());
    start.elapsed().as_secs_f64() / calls as f64
}

/// Times both sides in turns and prints a row.
fn row(what: &str, peer: &str, mut ours: impl FnMut(), mut theirs: impl FnMut()) {
    let calls = |f: &mut dyn FnMut()| (ROUND.as_secs_f64() / seconds(2, f).max(1e-9)).clamp(1.0, 1e6) as usize;
    let (n, m) = (calls(&mut ours), calls(&mut theirs));
    let (mut a, mut b, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (x, y) = (seconds(n, &mut ours), seconds(m, &mut theirs));
        a.push(x);
        b.push(y);
        ratios.push(x / y);
    }
    let median = |v: &mut Vec<f64>| {
        v.sort_by(f64::total_cmp);
        v[v.len() / 2]
    };
    let (a, b, ratio) = (median(&mut a), median(&mut b), median(&mut ratios));
    println!("{what:34} {:>11} {:>11}  {ratio:5.2}x of {peer}", time(a), time(b));
}

fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-6 => format!("{:.1} ns", s * 1e9),
        s if s < 1e-3 => format!("{:.1} us", s * 1e6),
        s => format!("{:.2} ms", s * 1e3),
    }
}

/// Numbers that look random, in [-1, 1).
fn numbers(n: usize) -> Vec<f64> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

fn run(kind: &Kind, operands: &[(&Type, &Buffer)], results: &[Type]) {
    black_box(eager::run_node(kind, operands, results).expect("the engine runs"));
}

fn products() {
    let dims = DotDims { lhs_contract: [1][..].into(), rhs_contract: [0][..].into(), ..DotDims::default() };
    let kind = Kind::Dot(Box::new(dims));
    for n in [64, 256, 1024] {
        let x: Vec<f32> = numbers(n * n).into_iter().map(|x| x as f32).collect();
        let (ty, b) = (Type::new(DType::F32, &[n, n]), Buffer::from_slice(&x).expect("memory"));
        let mut out = vec![0f32; n * n];
        let all = if n > 64 { gemm::Parallelism::Rayon(0) } else { gemm::Parallelism::None };
        row(&format!("product f32 {n}x{n}"), "gemm", || run(&kind, &[(&ty, &b), (&ty, &b)], std::slice::from_ref(&ty)), || {
            let (p, s) = (x.as_ptr(), n as isize);
            // SAFETY: three arrays of n × n elements, row-major.
            unsafe { gemm::gemm(n, n, n, out.as_mut_ptr(), 1, s, false, p, 1, s, p, 1, s, 0.0, 1.0, false, false, false, all) };
            black_box(&out);
        });
    }
}

fn factorizations() {
    for n in [32, 256, 1024] {
        let mut x = numbers(n * n);
        (0..n).for_each(|i| x[i * n + i] += n as f64);
        let a = Mat::from_fn(n, n, |i, j| x[i * n + j]);
        let symmetric = Mat::from_fn(n, n, |i, j| x[i * n + j] + x[j * n + i]);
        let s: Vec<f64> = (0..n * n).map(|k| symmetric[(k / n, k % n)]).collect();
        let (ty, b) = (Type::new(DType::F64, &[n, n]), Buffer::from_slice(&x).expect("memory"));
        let b_symmetric = Buffer::from_slice(&s).expect("memory");
        let (rows, taus) = (Type::new(DType::I32, &[n]), Type::new(DType::F64, &[n]));
        let lu = [ty.clone(), rows.clone(), rows];
        row(&format!("lu f64 {n}x{n}"), "faer", || run(&Kind::Linalg(LinalgOp::Lu), &[(&ty, &b)], &lu), || {
            black_box(a.partial_piv_lu());
        });
        let cholesky = || run(&Kind::Linalg(LinalgOp::Cholesky), &[(&ty, &b_symmetric)], std::slice::from_ref(&ty));
        row(&format!("cholesky f64 {n}x{n}"), "faer", cholesky, || {
            black_box(symmetric.llt(faer::Side::Lower).expect("positive definite"));
        });
        let qr = || run(&Kind::Linalg(LinalgOp::Qr { pivoted: false }), &[(&ty, &b)], &[ty.clone(), taus.clone()]);
        row(&format!("qr f64 {n}x{n}"), "faer", qr, || {
            black_box(a.qr());
        });
    }
}

fn transforms() {
    let mut planner = rustfft::FftPlanner::<f32>::new();
    for (rows, n) in [(1, 1024), (1000, 64), (256, 1024), (1, 1 << 20), (64, 1009)] {
        let x = numbers(2 * rows * n);
        let x: Vec<Complex<f32>> = x.chunks(2).map(|c| Complex::new(c[0] as f32, c[1] as f32)).collect();
        let flat: Vec<f32> = x.iter().flat_map(|c| [c.re, c.im]).collect();
        let (ty, b) = (Type::new(DType::C64, &[rows, n]), Buffer::from_slice(&flat).expect("memory"));
        let (kind, plan) = (Kind::Fft { kind: FftKind::Forward, axes: 1 }, planner.plan_fft_forward(n));
        row(&format!("fft c64 {rows} of {n}"), "rustfft", || run(&kind, &[(&ty, &b)], std::slice::from_ref(&ty)), || {
            let mut y = x.clone();
            plan.process(&mut y);
            black_box(y);
        });
    }
}

fn sorts() {
    for n in [1000, 100_000, 1_000_000] {
        let x: Vec<f32> = numbers(n).into_iter().map(|x| x as f32).collect();
        let (ty, b) = (Type::new(DType::F32, &[n]), Buffer::from_slice(&x).expect("memory"));
        let kind = Kind::Sort { axis: 0, num_keys: 1, stable: false };
        let ours = || run(&kind, &[(&ty, &b)], std::slice::from_ref(&ty));
        let name = format!("sort f32 {n}");
        row(&name, "voracious", ours, || {
            let mut y = x.clone();
            if n < 100_000 { y.voracious_sort() } else { y.voracious_mt_sort(rayon::current_num_threads()) }
            black_box(y);
        });
        row(&name, "glidesort", ours, || {
            let mut y = x.clone();
            glidesort::sort_by(&mut y, f32::total_cmp);
            black_box(y);
        });
        row(&name, "std's sort_unstable", ours, || {
            let mut y = x.clone();
            y.sort_unstable_by(f32::total_cmp);
            black_box(y);
        });
    }
}

/// Work of about a microsecond for each thousand.
fn work(n: usize) {
    black_box((0..n).fold(1.0f64, |x, i| x.mul_add(0.999, black_box(i as f64))));
}

fn threads() {
    for (tasks, each) in [(2, 20_000), (16, 20_000), (64, 200_000)] {
        let ours = || pool::share(10_000_000, tasks, &|_, _| work(each));
        row(&format!("{tasks} tasks of {} us", each / 1000), "rayon", ours, || {
            (0..tasks).into_par_iter().for_each(|_| work(each));
        });
    }
}

fn cells() {
    let (aval, buffer) = (Aval::new(DType::F32, &[8]), || Buffer::from_slice(&[1f32; 8]).expect("memory"));
    let ours = || drop(black_box(ferrax_ir::Array::new(aval.clone(), buffer())));
    row("make and drop an array", "Arc", ours, || drop(black_box(std::sync::Arc::new((aval.clone(), buffer())))));
    let (a, b) = (ferrax_ir::Array::new(aval.clone(), buffer()), std::sync::Arc::new((aval.clone(), buffer())));
    row("share an array", "Arc", || drop(black_box(a.clone())), || drop(black_box(b.clone())));
}

fn main() {
    println!("{} threads; {:?}", pool::threads(), std::env::var("FERRAX_CPU_ISA").ok());
    println!("{:34} {:>11} {:>11}", "", "ours", "theirs");
    products();
    factorizations();
    transforms();
    sorts();
    threads();
    cells();
}
