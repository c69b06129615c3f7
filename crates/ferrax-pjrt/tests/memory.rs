//! Memory of many runs against a real plugin, in a process of its own, since others would be counted too.

mod support;

use std::sync::Arc;
use support::{add, client, compiled, floats, increment, only};

/// Bytes of memory that this process has now.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: usize = statm.split_whitespace().nth(1).and_then(|p| p.parse().ok()).expect("a number of pages");
    pages * 4096
}

/// Runs whose arguments are donated use the same memory.
fn a_chain_of_donations_stays_where_it_is() {
    let client = client();
    let program = compiled(&client, increment(1 << 20));
    let mut x = floats(&client, &vec![0.0; 1 << 20]);
    let before = resident_bytes();
    for _ in 0..200 {
        x = program.execute(&[&x], &[], None).unwrap().into_iter().next().unwrap();
    }
    assert_eq!(x.to_host().unwrap().typed::<f32>()[12345], 200.0);
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes for 4 MB that are used again");
    assert_eq!(client.live_buffers(), 1);
}

/// Runs on four threads at once leave nothing behind.
fn four_threads_leave_nothing_behind() {
    let client = client();
    let program = Arc::new(compiled(&client, add(10)));
    let x = Arc::new(floats(&client, &[1.5; 10]));
    let round = |count: usize| {
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for i in 0..count {
                        let out = program.execute(&[&x, &x], &[], None).unwrap();
                        if i % 16 == 0 {
                            assert_eq!(only(&out), [3.0; 10]);
                        }
                    }
                });
            }
        });
    };
    round(1000);
    let before = resident_bytes();
    round(5000);
    let grown = resident_bytes().saturating_sub(before);
    assert_eq!(client.live_buffers(), 1);
    assert!(grown < 16 << 20, "{grown} bytes more after 20,000 runs");
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn memory_stays_the_same() {
    a_chain_of_donations_stays_where_it_is();
    four_threads_leave_nothing_behind();
}
