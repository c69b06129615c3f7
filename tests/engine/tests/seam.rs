//! Programs on an engine that is not the embedded CPU: the same bits, and faults at every step of a run.

use ferrax::executable::Executable;
use ferrax::{Array, Aval, DType, DeviceId, ErrorKind, Result, Value, device, ops};
use ferrax_base::source::{Location, SourceHost, set_host};
use ferrax_base::{Shape, Source};
use ferrax_interpreter::faults::{self, Point};
use ferrax_interpreter::{DEVICES, PLATFORM, memory};
use ferrax_ir::DebugInfo;
use ferrax_transform::staging::stage_closed;
use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

thread_local! {
    /// The line of the program that runs now.
    static LINE: Cell<u32> = const { Cell::new(0) };
}

/// One test at a time: faults are the process's.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    static ONCE: Once = Once::new();
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    ONCE.call_once(|| {
        ferrax::init();
        ferrax_interpreter::install(true).unwrap();
        set_host(SourceHost {
            capture: || Source { unit: 1, offset: LINE.get(), made: 0, scope: 0 },
            describe: |s| {
                Some(Location { file: "program.py".into(), line: s.offset, function: "main".into(), text: None })
            },
        });
    });
    nothing_left(0, "from other tests");
    guard
}

fn device(index: usize) -> DeviceId {
    let platform = ferrax::engine::platform(PLATFORM).expect("the platform is registered");
    device::get(platform, index).unwrap()
}

const SHAPE: [usize; 2] = [6, 5];

/// Numbers on the CPU, uncommitted.
fn numbers() -> Array {
    let bytes: Vec<u8> = (0..30).flat_map(|i| ((i * 7 % 11) as f32 / 8.0 - 0.5).to_le_bytes()).collect();
    ferrax::dispatch::array_from_bytes(Aval::new(DType::F32, &SHAPE), &bytes).unwrap()
}

/// Numbers on a device, committed.
fn there(index: usize) -> Result<Value> {
    device::copied(&numbers(), false, device(index), true).map(Value::Array)
}

/// sin(x)ᵀ·x + cos(x).sum(), row by row sorted, and x itself: several nodes, one result that is an argument.
fn compute(x: &Value) -> Result<Vec<Value>> {
    let product = ops::dot::dot(&ops::transpose(&ops::sin(x)?, &[1, 0])?, x, None, None)?;
    let total = ops::reduce_sum(&ops::cos(x)?, &[0, 1])?;
    let shifted = ops::add(&product, &ops::broadcast_in_dim(&total, &[5, 5], &[])?)?;
    Ok(vec![shifted, ops::exp(x)?])
}

fn program() -> Arc<Executable> {
    let aval = Aval { shape: Shape::from_slice(&SHAPE), dtype: DType::F32, weak: false, vary: 0, spread: 0 };
    let jaxpr = stage_closed("jit", DebugInfo::named("f"), &[aval], |x| compute(&x[0])).unwrap();
    Arc::new(Executable::new(&jaxpr).unwrap())
}

fn array(v: &Value) -> &Array {
    let Value::Array(a) = v else { panic!("an array") };
    a
}

fn bytes(values: &[Value]) -> Result<Vec<Vec<u8>>> {
    values.iter().map(|v| Ok(array(v).pin()?.bytes().to_vec())).collect()
}

/// What a whole program does: elements go to the device, a program runs there, its results come back.
fn whole(run: &Arc<Executable>) -> Result<Vec<Vec<u8>>> {
    LINE.set(10);
    let x = there(1)?;
    LINE.set(20);
    let results = run.run(&[x], &[])?;
    LINE.set(30);
    bytes(&results)
}

/// Errors unless memory in use is what it was: a device's thread may let go of a run a moment after its results are there.
fn nothing_left(before: usize, what: &str) {
    for _ in 0..500 {
        if memory::in_use() == before {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{} bytes are in use {what}, {before} before", memory::in_use());
}

#[test]
fn results_have_the_cpus_bits_on_every_device() {
    let _alone = alone();
    let run = program();
    let expected = bytes(&run.run(&[Value::Array(numbers())], &[]).unwrap()).unwrap();
    for index in 0..DEVICES {
        let x = there(index).unwrap();
        let results = run.run(std::slice::from_ref(&x), &[]).unwrap();
        for r in &results {
            assert_eq!((array(r).device(), array(r).committed()), (device(index), true));
        }
        assert_eq!(bytes(&results).unwrap(), expected);
        assert_eq!(bytes(&compute(&x).unwrap()).unwrap(), expected, "operation by operation");
    }
    let both = run.run(&[there(0).unwrap()], &[]).unwrap();
    let e = ops::add(&both[0], &run.run(&[there(1).unwrap()], &[]).unwrap()[0]).unwrap_err().to_string();
    assert!(e.contains("incompatible devices") && e.contains("on platform INTERPRETER"), "{e}");
}

#[test]
fn uncommitted_operands_follow_committed_ones() {
    let _alone = alone();
    let far = there(2).unwrap();
    let sum = ops::add(&Value::Array(numbers()), &far).unwrap();
    assert_eq!(array(&sum).device(), device(2));
    assert_eq!(bytes(&[sum]).unwrap(), bytes(&[ops::add(&far, &far).unwrap()]).unwrap());
}

#[test]
fn every_fault_surfaces_once_names_the_call_and_leaves_nothing_behind() {
    let _alone = alone();
    let before = memory::in_use();
    let expected = whole(&program()).unwrap();
    for point in faults::POINTS {
        let mut met = 0;
        for after in 0.. {
            faults::inject(point, after);
            let fresh = program();
            let result = whole(&fresh);
            if faults::withdraw(point) {
                assert_eq!(result.unwrap(), expected, "the fault lies behind the program");
                break;
            }
            met += 1;
            let error = result.expect_err("a fault");
            assert!(matches!(*error.0, ErrorKind::Runtime(_)), "{error}");
            let text = error.to_string();
            assert!(text.starts_with(&format!("injected fault: {point:?}")), "{text}");
            if matches!(point, Point::Node | Point::Download) {
                assert!(text.ends_with("started at program.py:20 (main)."), "{text}");
            }
            nothing_left(before, &format!("after {point:?} failed, {after} passed"));
            assert_eq!(whole(&fresh).unwrap(), expected, "the next call works");
        }
        assert!(met > 0, "{point:?} is never met");
    }
    nothing_left(before, "at the end");
}

#[test]
fn what_reads_a_failed_result_fails_alike() {
    let _alone = alone();
    let (run, x) = (program(), there(0).unwrap());
    bytes(&run.run(std::slice::from_ref(&x), &[]).unwrap()).unwrap();
    faults::inject(Point::Node, 0);
    LINE.set(5);
    let failed = run.run(std::slice::from_ref(&x), &[]).unwrap();
    LINE.set(6);
    let next = ops::sin(&failed[1]).unwrap();
    for value in [&failed[0], &failed[1], &next, &failed[0]] {
        let errors = [array(value).pin().err(), array(value).block_until_ready().err()];
        for e in errors {
            let text = e.expect("an error").to_string();
            assert!(text.starts_with("injected fault: Node") && text.contains("program.py:"), "{text}");
        }
        assert!(array(value).is_ready());
    }
    assert!(bytes(&run.run(&[x], &[]).unwrap()).is_ok());
}

#[test]
fn calls_return_before_their_results_are_there() {
    let _alone = alone();
    let (run, x) = (program(), there(0).unwrap());
    let expected = bytes(&run.run(std::slice::from_ref(&x), &[]).unwrap()).unwrap();
    faults::delay(Duration::from_millis(20));
    let results = run.run(std::slice::from_ref(&x), &[]).unwrap();
    assert!(!array(&results[0]).is_ready() && !array(&results[0]).is_pending());
    array(&x).delete();
    let kept = array(&results[1]).clone();
    drop(results);
    assert_eq!(kept.pin().unwrap().bytes(), expected[1], "arguments live as long as the run");
    faults::delay(Duration::ZERO);
    assert!(kept.is_ready() && kept.block_until_ready().is_ok());
}

#[test]
fn donated_memory_goes_to_a_result() {
    let _alone = alone();
    let run = program();
    assert_eq!(run.unusable_donations(&[true]).unwrap(), Vec::<usize>::new());
    let expected = whole(&run).unwrap();
    let x = there(1).unwrap();
    let results = run.run(std::slice::from_ref(&x), &[true]).unwrap();
    assert!(array(&x).is_deleted());
    assert_eq!(bytes(&results).unwrap(), expected);
    let e = ops::sin(&x).unwrap_err();
    assert!(matches!(*e.0, ErrorKind::Deleted(_)) && e.to_string().contains("donated to"), "{e}");
    // what is elsewhere is copied, and stays
    let (near, far) = (Value::Array(numbers()), there(1).unwrap());
    let aval = near.aval();
    let pair = stage_closed("jit", DebugInfo::named("g"), &[aval.clone(), aval], |v| Ok(vec![ops::add(&v[0], &v[1])?]));
    let pair = Arc::new(Executable::new(&pair.unwrap()).unwrap());
    pair.run(&[near.clone(), far], &[true, false]).unwrap();
    assert!(!array(&near).is_deleted());
}

#[test]
fn threads_compute_on_several_devices_at_once() {
    let _alone = alone();
    let (run, before) = (program(), memory::in_use());
    let expected = whole(&run).unwrap();
    std::thread::scope(|s| {
        for t in 0..6 {
            let (run, expected) = (&run, &expected);
            s.spawn(move || {
                for _ in 0..20 {
                    let x = there(t % DEVICES).unwrap();
                    assert_eq!(bytes(&run.run(&[x], &[]).unwrap()).unwrap(), *expected);
                }
            });
        }
    });
    nothing_left(before, "after the threads");
}
