//! Arrays and their cells over all interleavings of two or three threads, by loom: nobody reads elements that are not
//! there yet, nobody frees or takes what another one reads, and a cell that is free is nobody's.

#[allow(dead_code)]
#[path = "../src/array.rs"]
mod array;
#[allow(dead_code)]
#[path = "../src/cells.rs"]
mod cells;
#[path = "model/mod.rs"]
mod sync;

mod device {
    pub use ferrax_ir::DeviceId;
}
mod jaxpr {
    pub use ferrax_ir::DebugInfo;
}

use array::{Array, Taker};
use ferrax_base::{Aval, Buffer, DType, Error, Source, error};
use loom::thread::{self, JoinHandle};
use std::sync::Arc;
use sync::explore;

fn aval() -> Aval {
    Aval { shape: [1].into_iter().collect(), dtype: DType::F32, weak: false, vary: 0, spread: 0 }
}

fn elements() -> Buffer {
    Buffer::from_slice(&[7f32]).unwrap()
}

fn there() -> Array {
    Array::new(aval(), elements())
}

fn pending() -> Array {
    array::set_wait(|_| thread::yield_now());
    Array::pending(aval(), ferrax_ir::DeviceId(0), false)
}

fn taker() -> Taker {
    Taker { function: Arc::new(ferrax_ir::DebugInfo::named("f")), argument: 0, call: Source::default() }
}

/// Reads an array, unless it is deleted.
fn read(array: &Array) -> bool {
    let Ok(pin) = array.pin() else { return false };
    assert_eq!(pin.bytes(), 7f32.to_ne_bytes());
    true
}

fn on_thread(array: &Array, work: impl FnOnce(Array) + 'static) -> JoinHandle<()> {
    let array = array.clone();
    thread::spawn(move || work(array))
}

fn settle(array: &Array, result: Result<(), Arc<Error>>) {
    // SAFETY: models settle an array once.
    unsafe { array.settle(result.map(|()| elements().into())) };
}

#[test]
fn the_last_of_several_handles_frees_a_cell() {
    explore(3, || {
        let array = there();
        let threads = [(); 2].map(|()| on_thread(&array, |a| assert!(read(&a.clone()))));
        assert!(read(&array));
        drop(array);
        // perhaps in the cell that has become free
        assert!(read(&there()));
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
}

#[test]
fn a_listing_sees_whole_arrays() {
    explore(3, || {
        let thread = thread::spawn(|| {
            for _ in 0..2 {
                assert!(read(&there()));
            }
        });
        assert!(Array::live().iter().all(|a| a.aval() == &aval() && read(a)));
        thread.join().unwrap();
        assert!(Array::live().is_empty());
    });
}

#[test]
fn free_cells_move_between_threads() {
    explore(2, || {
        let work = || {
            let all = [(); 3].map(|()| there());
            assert!(all.iter().all(read));
        };
        let threads = [thread::spawn(work), thread::spawn(work)];
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert!(Array::live().is_empty());
    });
}

#[test]
fn who_waits_sees_what_was_settled() {
    explore(3, || {
        let array = pending();
        let reader = on_thread(&array, |a| assert!(read(&a)));
        let promised = array.reserve().unwrap();
        settle(&array, Ok(()));
        assert!(promised.memory().is_ok());
        reader.join().unwrap();
    });
}

#[test]
fn who_waits_sees_a_failure() {
    explore(3, || {
        let array = pending();
        let reader = on_thread(&array, |a| assert!(!read(&a)));
        settle(&array, Err(Arc::new(error!(Runtime, "it failed"))));
        reader.join().unwrap();
    });
}

#[test]
fn an_array_is_deleted_while_others_read_it() {
    explore(3, || {
        let array = there();
        let readers = [(); 2].map(|()| on_thread(&array, |a| _ = read(&a)));
        array.delete();
        assert!(!read(&array));
        readers.into_iter().for_each(|t| t.join().unwrap());
    });
}

#[test]
fn an_array_is_deleted_while_it_is_settled() {
    explore(3, || {
        let array = pending();
        let settler = on_thread(&array, |a| {
            settle(&a, Ok(()));
            assert!(read(&a) || a.is_deleted());
        });
        array.delete();
        assert!(array.reserve().is_err());
        settler.join().unwrap();
        assert!(!read(&array) && !array.is_pending());
    });
}

#[test]
fn a_failure_is_deleted_while_it_is_read() {
    explore(3, || {
        let array = pending();
        settle(&array, Err(Arc::new(error!(Runtime, "it failed"))));
        let reader = on_thread(&array, |a| assert!(!read(&a)));
        array.delete();
        assert!(!read(&array));
        reader.join().unwrap();
    });
}

#[test]
fn memory_is_donated_when_nobody_reads_it() {
    explore(3, || {
        let array = there();
        let reader = on_thread(&array, |a| _ = read(&a));
        let taken = array.donate(&taker());
        let read = read(&array);
        assert_ne!(taken.is_some(), read);
        reader.join().unwrap();
    });
}

#[test]
fn memory_that_is_promised_is_taken_by_one() {
    explore(3, || {
        let array = pending();
        let promised = array.reserve_donated(&taker()).unwrap();
        let settler = on_thread(&array, |a| {
            let other = a.reserve();
            settle(&a, Ok(()));
            assert!(other.is_err(), "it is donated");
        });
        while array.is_pending() {
            thread::yield_now();
        }
        // while the other thread looks in vain for more
        let taken = promised.take().is_some();
        settler.join().unwrap();
        assert!(taken || promised.take().is_some());
    });
}
