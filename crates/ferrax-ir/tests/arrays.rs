//! Arrays that are pending, donated, deleted and listed.

use ferrax_base::{Aval, Buffer, DType, ErrorKind, Source, error};
use ferrax_ir::array::Taker;
use ferrax_ir::{Array, DebugInfo, DeviceId};
use std::sync::Arc;

fn array(n: usize) -> Array {
    let aval = Aval { shape: [n].into_iter().collect(), dtype: DType::F32, weak: false, vary: 0, spread: 0 };
    Array::new(aval, Buffer::allocate(4 * n).unwrap())
}

/// A listing holds every array for a moment, those of other tests too: one test at a time.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Arrays alive whose length is one that no other test uses.
fn live(n: usize) -> usize {
    Array::live().iter().filter(|a| a.aval().shape.as_slice() == [n]).count()
}

fn taker() -> Taker {
    Taker { function: Arc::new(DebugInfo::named("f")), argument: 0, call: Source::default() }
}

fn pending(n: usize) -> Array {
    Array::pending(
        Aval { shape: [n].into_iter().collect(), dtype: DType::F32, weak: false, vary: 0, spread: 0 },
        DeviceId(0),
        false,
    )
}

#[test]
fn pending_arrays_are_reserved_settled_donated_and_deleted() {
    let taker = taker();
    let a = pending(3);
    let reader = a.reserve().unwrap();
    let donated = a.reserve_donated(&taker).unwrap();
    assert!(a.is_deleted() && a.is_pending() && a.reserve().is_err() && a.donate(&taker).is_none());
    assert!(reader.memory().is_err(), "it is not there yet");
    // SAFETY: settled once, here.
    unsafe { a.settle(Ok(Buffer::allocate(12).unwrap().into())) };
    assert!(!a.is_pending() && reader.memory().is_ok() && donated.take().is_none(), "somebody reads it");
    drop(reader);
    assert_eq!(donated.take().map(|m| m.bytes()), Some(12));
    let b = pending(3);
    b.delete();
    // SAFETY: as above.
    unsafe { b.settle(Ok(Buffer::allocate(12).unwrap().into())) };
    assert!(b.pin().is_err() && b.is_deleted());
}

#[test]
fn failures_stay_in_the_array() {
    let a = pending(3);
    let reader = a.reserve().unwrap();
    // SAFETY: settled once, here.
    unsafe { a.settle(Err(Arc::new(error!(Memory, "no memory")))) };
    let errors = [reader.memory().err(), a.pin().err(), a.pin_owned().err()];
    for e in errors {
        assert!(matches!(*e.unwrap().0, ErrorKind::Memory(_)));
    }
    assert!(!a.is_deleted() && a.donate(&taker()).is_none());
}

#[test]
fn live_arrays_are_listed_until_dropped_or_deleted() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let all: Vec<Array> = (0..1000).map(|_| array(1237)).collect();
    let again = all[0].clone();
    assert_eq!((live(1237), again.handles()), (1000, 2));
    all[1].delete();
    assert_eq!(live(1237), 999);
    drop(all);
    assert_eq!((live(1237), again.handles()), (1, 1));
}

#[test]
fn cells_move_between_threads_while_others_list_them() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    std::thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                for round in 0..200 {
                    let made: Vec<Array> = (0..20).map(|_| array(1239)).collect();
                    if round % 20 == 0 {
                        assert!(live(1239) >= made.len());
                    }
                    s.spawn(move || drop(made));
                }
            });
        }
    });
    assert_eq!(live(1239), 0);
}
