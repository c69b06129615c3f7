//! Programs that take long run after their calls have returned, in the order of the calls.

use ferrax::{Array, Aval, DType, Value, dispatch, executable, ops, queue};
use ferrax_base::config::Flag;
use ferrax_ir::{DebugInfo, JaxprRef};
use ferrax_transform::staging::stage_closed;

const N: usize = 300_000;

fn floats() -> Array {
    let bytes: Vec<u8> = (0..N).flat_map(|i| (i as f32 / N as f32).to_le_bytes()).collect();
    dispatch::array_from_bytes(Aval { shape: [N].into_iter().collect(), dtype: DType::F32, weak: false }, &bytes)
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

#[test]
fn chains_of_jobs_give_what_calls_one_by_one_give() {
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
