//! Arrays to a GPU and back, and what its memory counts.

use crate::harness::*;
use ferrax_base::memory::DeviceMemory;
use ferrax_cuda::driver::staging::LARGEST;

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 7 + i / 251) as u8).collect()
}

#[test]
fn elements_come_back_as_they_went() {
    let fake = Fake::new();
    let device = fake.device(0);
    for bytes in [0, 1, 4096, LARGEST - 1, LARGEST, 4 * LARGEST + 5] {
        let elements = pattern(bytes);
        let array = device.upload(&elements).unwrap();
        assert_eq!(array.to_host().unwrap().bytes(), elements, "{bytes} bytes");
        assert_eq!(array.bytes(), bytes);
    }
    drop(device);
    fake.is_clean();
}

#[test]
fn uploads_go_on_after_their_call() {
    let fake = Fake::new();
    let device = fake.device(0);
    let mut elements = pattern(5000);
    let array = device.upload(&elements).unwrap();
    assert!(fake.get("queued") > 0);
    // the caller's memory is the caller's again
    elements.fill(0);
    assert!(!array.ready());
    array.wait().unwrap();
    assert!(array.ready());
    assert_eq!(array.to_host().unwrap().bytes(), pattern(5000));
    // an array may go while it is still on its way
    drop(device.upload(&pattern(100)).unwrap());
    drop((array, device));
    fake.is_clean();
}

#[test]
fn pinned_pieces_are_used_again_once_their_copies_are_done() {
    let fake = Fake::new();
    let device = fake.device(0);
    let arrays: Vec<_> = (0..40).map(|i| device.upload(&vec![i; 3000]).unwrap()).collect();
    let pieces = fake.get("pinned");
    for (i, array) in arrays.iter().enumerate() {
        assert_eq!(array.to_host().unwrap().bytes(), vec![i as u8; 3000]);
    }
    let more: Vec<_> = (0..40).map(|i| device.upload(&vec![i; 3000]).unwrap()).collect();
    assert!(fake.get("pinned") <= pieces + 1);
    // so much at once has uploads wait for one another
    let large: Vec<_> = (0..40).map(|i| device.upload(&vec![i; LARGEST]).unwrap()).collect();
    assert!(fake.get("pinned") <= pieces + 20, "{}", fake.get("pinned"));
    assert!(large.iter().enumerate().all(|(i, a)| a.to_host().unwrap().bytes() == vec![i as u8; LARGEST]));
    drop((arrays, more, large, device));
    fake.is_clean();
}

#[test]
fn bytes_are_counted() {
    let fake = Fake::new();
    fake.set("memory", 1 << 20);
    let device = fake.device(0);
    let (a, b) = (device.upload(&[1; 1000]).unwrap(), device.upload(&[2; 500]).unwrap());
    let stats = device.stats();
    assert_eq!((stats.in_use, stats.peak, stats.limit), (1500, 1500, 1 << 20));
    drop(a);
    device.synchronize().unwrap();
    let stats = device.stats();
    assert_eq!((stats.in_use, stats.peak, stats.kept), (500, 1500, 1000));
    drop((b, device));
    fake.is_clean();
}

#[test]
fn an_allocation_too_many_lists_the_largest_arrays() {
    let fake = Fake::new();
    fake.set("memory", 100 << 10);
    let device = fake.device(1);
    let small: Vec<_> = (0..9).map(|_| device.upload(&[0; 1 << 10]).unwrap()).collect();
    let large = device.upload(&vec![0; 60 << 10]).unwrap();
    let (kind, text) = failure(device.upload(&vec![0; 50 << 10]));
    assert_eq!(kind, "Memory");
    let first = "CUDA_ERROR_OUT_OF_MEMORY: 50.0 KiB more do not fit in the memory of GPU 1 (Fake GPU): of its 100.0 KiB, \
                 ferrax uses 69.0 KiB.\n  an array of 60.0 KiB\n  an array of 1.0 KiB\n";
    assert!(text.starts_with(first) && text.ends_with("\n  and 2 smaller ones"), "{text}");
    // what is freed but not yet given back is waited for
    drop(large);
    let again = device.upload(&vec![7; 50 << 10]).unwrap();
    assert_eq!(again.to_host().unwrap().bytes(), vec![7; 50 << 10]);
    drop((small, again, device));
    fake.is_clean();
}

#[test]
fn arrays_go_from_gpu_to_gpu() {
    for peers in [1, 0] {
        let fake = Fake::new();
        fake.set("peers", peers);
        let driver = fake.driver().unwrap();
        let [one, two] = [0, 1].map(|i| ferrax_cuda::driver::Device::new(&driver, i).unwrap());
        let array = one.upload(&pattern(9000)).unwrap();
        let copies = [array.copy_to(&two).unwrap(), array.copy_to(&two).unwrap()];
        // the copies have begun at the most
        drop(array);
        let back = copies[0].copy_to(&one).unwrap();
        assert_eq!(copies[1].to_host().unwrap().bytes(), pattern(9000));
        assert_eq!(back.to_host().unwrap().bytes(), pattern(9000));
        assert_eq!(fake.calls("cuMemcpyPeerAsync"), if peers == 1 { 3 } else { 0 });
        drop((copies, back, one, two));
        fake.is_clean();
    }
}

#[test]
fn threads_upload_and_download_at_the_same_time() {
    let fake = Fake::new();
    let device = fake.device(0);
    std::thread::scope(|scope| {
        for t in 0..4u8 {
            let device = &device;
            scope.spawn(move || {
                for i in 0..30 {
                    let elements = vec![t.wrapping_mul(50).wrapping_add(i); 2000 + usize::from(t)];
                    assert_eq!(device.upload(&elements).unwrap().to_host().unwrap().bytes(), elements);
                }
            });
        }
    });
    drop(device);
    fake.is_clean();
}
