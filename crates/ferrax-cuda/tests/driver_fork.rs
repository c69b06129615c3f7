//! A process that was forked from one that uses a GPU: an error where it uses the GPU too, and nothing where it lets go.
#![cfg(target_os = "linux")]

// what is not used here, other tests use
#[allow(dead_code)]
#[path = "driver/harness.rs"]
mod harness;

use ferrax_base::memory::DeviceMemory;
use harness::{Fake, failure};

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(child: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(code: i32) -> !;
}

#[test]
fn a_forked_child_cannot_use_the_gpu_and_leaves_it_alone() {
    let fake = Fake::new();
    let device = fake.device(0);
    let array = device.upload(&[7; 100]).unwrap();
    // SAFETY: the child does nothing that another thread of the parent may be in the midst of, and ends at once.
    let child = unsafe { fork() };
    if child == 0 {
        let (kind, text) = failure(array.to_host());
        let as_it_should = kind == "Runtime" && text.contains("start method 'spawn'");
        let refused = failure(device.upload(&[1])).1.contains("forked");
        let before = fake.get("calls");
        drop((array, device));
        let silent = fake.get("calls") == before;
        // SAFETY: it ends the child.
        unsafe { _exit(i32::from(!(as_it_should && refused && silent))) };
    }
    let mut status = -1;
    // SAFETY: the child is ours, and the place outlives the call.
    assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    assert_eq!(array.to_host().unwrap().bytes(), [7; 100]);
    drop((array, device));
    fake.is_clean();
}
