//! A child of a fork computes whatever other threads were doing at that moment: it finds no lock that they held.

#![cfg(unix)]

use ferrax::function::{Data, Jit, grad, jit};
use ferrax::{Result, Value, numpy, ops};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
    fn alarm(seconds: u32) -> u32;
}

/// Threads that compute while the process forks.
const THREADS: usize = 8;

type Program = Jit<fn(&[Value]) -> Result<Vec<Value>>>;

fn wave(v: &[Value]) -> Result<Vec<Value>> {
    let x = numpy::sin(&numpy::multiply(&v[0], &v[0])?)?;
    Ok(vec![ops::reduce_sum(&x, &[0])?, x])
}

/// Eager and compiled work on small and large arrays, with programs old and new.
fn compute(shared: &Program, round: usize) -> Result<f64> {
    let mut sum = 0.0;
    for n in [10 + round % 7, 3_000, 60_000] {
        let x = Value::vector(&vec![0.25; n])?;
        let eager = wave(std::slice::from_ref(&x))?;
        let compiled = shared.call(std::slice::from_ref(&x))?;
        let own = jit("own", |v: &[Value]| Ok(vec![numpy::add(&v[0], &Value::from(round as f32))?]));
        let slope = grad(|v: &[Value]| Ok(wave(v)?.remove(0)))(std::slice::from_ref(&x))?;
        assert!((eager[0].to_f64()? - compiled[0].to_f64()?).abs() < 1e-2 * n as f64);
        sum += f64::from(own.call(&[x])?[0].to_vec()?[0] + slope[0].to_vec()?[0]);
    }
    Ok(sum)
}

#[test]
fn children_compute_while_threads_of_the_parent_do() {
    ferrax::init();
    let shared: Program = jit("wave", wave);
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        for t in 0..THREADS {
            let (shared, stop) = (&shared, &stop);
            s.spawn(move || {
                let mut round = t;
                while !stop.load(Relaxed) {
                    assert!(compute(shared, round).unwrap().is_finite());
                    round += THREADS;
                }
            });
        }
        let start = Instant::now();
        let mut forks = 0;
        while forks < 200 && start.elapsed() < Duration::from_secs(4) {
            // SAFETY: the child runs this test's own code, and leaves without running what belongs to the parent.
            unsafe {
                let child = fork();
                if child == 0 {
                    alarm(60);
                    let fine = std::panic::catch_unwind(|| compute(&shared, forks).is_ok_and(f64::is_finite));
                    _exit(i32::from(!matches!(fine, Ok(true))));
                }
                assert!(child > 0);
                let mut status = -1;
                assert_eq!((waitpid(child, &raw mut status, 0), status), (child, 0), "fork {forks}");
            }
            forks += 1;
        }
        stop.store(true, Relaxed);
        assert!(forks > 0);
    });
}
