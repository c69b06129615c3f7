//! Programs that take long run after their calls have returned, in the order of the calls.

use ferrax::{Array, Aval, DType, Value, dispatch, executable, ops, queue};
use ferrax_base::config::Flag;
use ferrax_ir::{DebugInfo, JaxprRef};
use ferrax_transform::staging::stage_closed;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

const N: usize = 300_000;

fn floats() -> Array {
    let bytes: Vec<u8> = (0..N).flat_map(|i| (i as f32 / N as f32).to_le_bytes()).collect();
    dispatch::array_from_bytes(
        Aval { shape: [N].into_iter().collect(), dtype: DType::F32, weak: false, vary: 0, spread: 0 },
        &bytes,
    )
    .unwrap()
}

fn program() -> JaxprRef {
    let aval = floats().aval().clone();
    stage_closed("jit", DebugInfo::named("f"), &[aval], |x| {
        let mut y = x[0].clone();
        for _ in 0..8 {
            y = ops::sin(&y)?;
        }
        Ok(vec![ops::add(&y, &x[0])?])
    })
    .unwrap()
}

fn bytes(v: &Value) -> Vec<u8> {
    let Value::Array(a) = v else { panic!("an array") };
    a.pin().unwrap().bytes().to_vec()
}

/// The tests change and time what the process has one of.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn chains_of_jobs_give_what_calls_one_by_one_give() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    ferrax::init();
    let exe = executable(&program()).unwrap();
    let start = Value::Array(floats());
    let chain = |calls: usize| {
        let mut x = start.clone();
        let mut pending = 0;
        for _ in 0..calls {
            x = exe.run(&[x], &[]).unwrap().remove(0);
            pending += usize::from(matches!(&x, Value::Array(a) if a.is_pending()));
        }
        (bytes(&x), pending)
    };
    Flag::AsyncDispatch.set_global(false);
    let (expected, none) = chain(50);
    Flag::AsyncDispatch.set_global(true);
    assert_eq!(none, 0);
    let (got, pending) = chain(50);
    assert!(got == expected && pending > 10, "{pending} calls returned early");
    queue::drain();
    let before = ferrax_base::buffer::stats().live;
    for donated in [true, false] {
        // The donated array is taken, whether it is there yet or not; the other one stays.
        let first = exe.run(std::slice::from_ref(&start), &[]).unwrap().remove(0);
        let second = exe.run(std::slice::from_ref(&first), &[donated]).unwrap().remove(0);
        let Value::Array(a) = &first else { panic!("an array") };
        assert_eq!((bytes(&second), a.is_deleted()), (chain(2).0, donated));
    }
    queue::drain();
    assert_eq!(ferrax_base::buffer::stats().live, before);
}

/// A program that takes its time: a loop of many steps.
fn slow(steps: usize) -> JaxprRef {
    let aval = Aval::new(DType::F32, &[64]);
    let body = stage_closed("jit", DebugInfo::named("step"), std::slice::from_ref(&aval), |x| {
        Ok(vec![ops::sin(&ops::exp(&ops::sin(&x[0])?)?)?])
    })
    .unwrap();
    let params = ops::control::scan::Scan {
        jaxpr: body,
        length: steps,
        num_carry: 1,
        num_consts: 0,
        reverse: false,
        unroll: 1,
        linear_carry: false,
        of: ops::control::Loop::default(),
    };
    stage_closed("jit", DebugInfo::named("slow"), &[aval], |x| ops::control::scan::scan(params.clone(), x)).unwrap()
}

#[test]
fn callers_who_wait_do_not_wait_for_each_other() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    ferrax::init();
    const STEPS: usize = 2000;
    let short = executable(&slow(STEPS)).unwrap();
    let x = Value::Array(Array::new(Aval::new(DType::F32, &[64]), ferrax::Buffer::from_slice(&[0.5_f32; 64]).unwrap()));
    let x = std::slice::from_ref(&x);
    // The first run says that the next are worth a job, and how many steps take half a second, whatever the machine does.
    let first = bytes(&short.run(x, &[]).unwrap()[0]);
    let start = Instant::now();
    assert!(bytes(&short.run(x, &[]).unwrap()[0]) == first);
    let steps = 0.5 / start.elapsed().as_secs_f64().max(1e-6) * STEPS as f64;
    let long = executable(&slow(steps as usize + STEPS)).unwrap();
    let expected = [bytes(&long.run(x, &[]).unwrap()[0]), first];
    let running = long.run(x, &[]).unwrap().remove(0);
    let Value::Array(pending) = &running else { panic!("an array") };
    for _ in 0..3 {
        std::thread::scope(|s| {
            s.spawn(|| assert!(bytes(&short.run(x, &[]).unwrap()[0]) == expected[1]));
        });
    }
    assert!(pending.is_pending(), "others waited for the long program");
    assert!(bytes(&running) == expected[0]);
    // What reads a pending result is computed after it, whoever waits.
    let chained = long.run(&[short.run(x, &[]).unwrap().remove(0)], &[]).unwrap().remove(0);
    let all: Vec<Vec<u8>> = std::thread::scope(|s| {
        let readers: Vec<_> = (0..4).map(|_| s.spawn(|| bytes(&chained))).collect();
        readers.into_iter().map(|r| r.join().unwrap()).collect()
    });
    assert!(all.iter().all(|a| *a == all[0]));
}
