//! The first program of a process, on a thread with little stack: what the engine tries of itself before fits there too, also
//! in a build without an optimizer, as a service's own debug build is (`make unoptimized`).

use ferrax::function::{Data, jit};
use ferrax::{Value, numpy, ops};

/// Half a mebibyte: a quarter of what Rust gives threads, and what macOS gives them.
const STACK: usize = 512 << 10;

#[test]
fn a_first_program_fits_a_small_stack() {
    let first = || {
        let x = Value::vector(&(0..1000).map(|i| i as f32).collect::<Vec<_>>())?;
        let program = jit("first", |v: &[Value]| {
            let y = numpy::sin(&numpy::exp(&numpy::negative(&v[0])?)?)?;
            Ok(vec![ops::reduce_sum(&numpy::multiply(&y, &v[0])?, &[0])?])
        });
        program.call(&[x])?[0].to_f64()
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(first).unwrap();
    let want: f64 = (0..1000).map(|i| f64::from(i) * f64::exp(-f64::from(i)).sin()).sum();
    assert!((thread.join().unwrap().unwrap() - want).abs() < 1e-5);
}
