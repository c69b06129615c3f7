//! Every call of a whole session fails once: an error of its kind, nothing left behind, and the next session works.

use crate::cubins::keeping;
use crate::harness::*;
use ferrax_base::{Arg, Memory, Result};
use ferrax_cuda::driver::{Cubins, Device};
use ferrax_cuda::program::*;
use std::sync::Arc;

use Place::{Arena, Constant, Param, Result as Out};

/// `a + b + 1` where the sum is below 10, a copy of `b` otherwise, and a counter's last value beside it.
fn plan() -> Program {
    let memory = |place| Argument::Memory(all(place));
    let at = |offset, bytes| Span { place: Arena, offset: 4 * N + offset, bytes };
    let flag = Argument::Memory(at(0, 1));
    let cond = vec![launch("less", &[memory(Arena), flag, Argument::Int(10)])];
    let body = vec![sum(Arena, Constant(0), Arena), sum(Arena, Constant(0), Arena)];
    let counted = launch("add_count", &[memory(Out(0)), Argument::Memory(at(8, 8)), Argument::Int(N as i64)]);
    let branch = |from| vec![Step::Copy { from: all(from), to: all(Out(0)) }];
    let steps = vec![
        sum(Param(0), Param(1), Arena),
        Step::Fill { to: at(0, 16), byte: 0 },
        Step::While { cond, flag: at(0, 1), body },
        Step::Switch { index: at(0, 4), branches: vec![branch(Arena), branch(Param(1))] },
        Step::Repeat { count: 4, counter: at(8, 8), body: vec![counted] },
    ];
    let mut plan = Program { constants: vec![constant(1.0)], ..program(2, 1, 4 * N + 16, steps) };
    plan.results[0].takes = Some(0);
    plan
}

/// Everything there is, from a fresh device on; gives the last result.
fn session(fake: &Fake, cubins: &Cubins) -> Result<f32> {
    let driver = fake.driver()?;
    let (device, other) = (Device::new(&driver, 0)?, Device::new(&driver, 1)?);
    let executable = load(&device, cubins, &plan(), "f")?;
    let elements = |value: f32| [value; N].iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<u8>>();
    let upload = |device: &Arc<Device>, value| device.upload(&elements(value));
    let b = Memory::device(upload(&device, 2.0)?);
    let mut last = 0.0;
    for _ in 0..4 {
        let a = Memory::device(upload(&device, 1.0)?);
        let kept = executable.run(&mut [Arg::Borrowed(&a), Arg::Borrowed(&b)])?;
        let mut results = executable.run(&mut [Arg::Owned(a), Arg::Borrowed(&b)])?;
        let Some(result) = results.pop() else { unreachable!("one result") };
        assert_eq!(value_of(&kept[0])?, value_of(&result)?);
        last = value_of(&result)?;
    }
    let copy = upload(&other, last)?.copy_to(&device)?;
    value_of(&Memory::device(copy))
}

fn value_of(memory: &Memory) -> Result<f32> {
    memory.block_until_ready()?;
    let elements = memory.host()?.typed::<f32>();
    assert!(elements.iter().all(|x| *x == elements[0]), "{:?}", &elements[..4]);
    Ok(elements[0])
}

/// 1 + 2, two more until it is not below 10, and 0 + 1 + 2 + 3.
const RESULT: f32 = 11.0 + 6.0;

#[test]
fn every_call_may_fail_once() {
    let fake = Fake::new().with_kernels();
    let before = fake.get("calls");
    assert_eq!(session(&fake, &keeping(&fake, &scratch("cubins"))).unwrap(), RESULT);
    let calls = fake.get("calls") - before;
    let log = fake.take("log");
    fake.is_clean();
    assert!(calls > 200, "{calls} calls");
    let mut errors = 0;
    for n in 1..=calls {
        let name = &log[log.len() - (calls - n + 1) as usize];
        let at = format!("call {n}, {name}");
        let folder = scratch("cubins");
        let cubins = keeping(&fake, &folder);
        fake.fail(n, if n % 2 == 0 { 2 } else { 719 });
        match session(&fake, &cubins) {
            Ok(result) => assert_eq!(result, RESULT, "{at}"),
            Err(error) => {
                errors += 1;
                let (kind, text) = failure(Err::<(), _>(error));
                assert!(["Memory", "Runtime"].contains(&kind), "{at}: {kind}: {text}");
                assert!(text.contains("ERROR") || text.contains("error"), "{at}: {text}");
            }
        }
        fake.fail(0, 0);
        fake.take("log");
        fake.is_clean_after(&at);
        if n % 10 == 0 {
            assert_eq!(session(&fake, &cubins).unwrap(), RESULT, "after {at}");
            fake.is_clean_after(&at);
        }
        std::fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    }
    assert!(errors > calls / 3, "{errors} errors of {calls} calls");
}

/// The same arrays, program and device go on after a run that could not be started.
#[test]
fn a_run_that_fails_leaves_everything_usable() {
    let fake = Fake::new().with_kernels();
    let device = fake.device(0);
    let executable = load(&device, &fake.cubins(), &plan(), "f").unwrap();
    let (a, b) = (array(&device, 1.0), array(&device, 2.0));
    let mut n = 1;
    loop {
        fake.take("log");
        fake.fail(n, 719);
        let ran = run(&executable, &[&a, &b]);
        let reached = fake.take("log").len() as i64 >= n;
        fake.fail(0, 0);
        if let Ok(results) = ran {
            assert_eq!(value(&results[0]), RESULT, "call {n}");
        }
        assert_eq!(value(&run(&executable, &[&a, &b]).unwrap()[0]), RESULT, "after call {n}");
        assert_eq!(fake.take("violations"), [""; 0], "call {n}");
        if !reached {
            break;
        }
        n += 1;
    }
    assert!(n > 20, "{n} calls");
    drop((a, b, executable, device));
    fake.is_clean();
}

/// A donated argument is there after a run for which there was no memory, and gone after one that had begun.
#[test]
fn donated_arguments_of_runs_that_fail_are_gone_once_something_has_begun() {
    let fake = Fake::new().with_kernels();
    let device = fake.device(0);
    let executable = load(&device, &fake.cubins(), &plan(), "f").unwrap();
    let b = array(&device, 2.0);
    let (mut kept, mut gone) = (0, 0);
    for n in 1..60 {
        let a = array(&device, 1.0);
        a.block_until_ready().unwrap();
        let Memory::Device(remote) = &a else { unreachable!("arrays of a GPU") };
        let mut args = [Arg::Owned(Memory::Device(remote.clone())), Arg::Borrowed(&b)];
        fake.fail(n, 719);
        let ran = executable.run(&mut args);
        fake.fail(0, 0);
        if ran.is_ok() {
            continue;
        }
        if matches!(args[0], Arg::Taken) {
            assert_eq!(failure(a.host()).0, "Deleted", "call {n}");
            gone += 1;
        } else {
            assert_eq!(value(&a), 1.0, "call {n}");
            kept += 1;
        }
    }
    assert!(kept >= 2 && gone >= 5, "{kept} kept, {gone} gone");
    drop((b, executable, device));
    fake.is_clean();
}
