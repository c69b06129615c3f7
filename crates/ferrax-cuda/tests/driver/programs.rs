//! Programs run on the fake: their steps, graphs, memory, and how they end.

use crate::harness::*;
use ferrax_base::{Arg, DType, Memory, checks};
use ferrax_cuda::driver::{Device, Executable};
use ferrax_cuda::program::*;
use ferrax_loops::Type;
use std::sync::Arc;

use Place::{Arena, Constant, Param, Result as Out};

fn loaded(device: &Arc<Device>, fake: &Fake, program: &Program) -> Executable {
    load(device, &fake.cubins(), program, "f").unwrap()
}

/// `(a + b) + c` by way of the arena, and a second result that is a copy of `b` whose first four bytes are zero.
fn two_sums() -> Program {
    let steps = vec![
        sum(Param(0), Param(1), Arena),
        sum(Arena, Constant(0), Out(0)),
        Step::Copy { from: all(Param(1)), to: all(Out(1)) },
        Step::Fill { to: all(Out(1)), byte: 0 },
    ];
    Program { constants: vec![constant(100.0)], ..program(2, 2, 4 * N, steps) }
}

#[test]
fn steps_run_in_order() {
    let fake = Fake::new().with_kernels();
    let device = fake.device(0);
    let executable = loaded(&device, &fake, &two_sums());
    assert!(!executable.waits());
    let (a, b) = (array(&device, 1.0), array(&device, 20.0));
    let results = run(&executable, &[&a, &b]).unwrap();
    assert!(fake.take("ran").is_empty(), "a run returns before it is done");
    assert_eq!((value(&results[0]), value(&results[1])), (121.0, 0.0));
    assert_eq!(fake.take("ran"), ["add [2, 1, 1] [256, 1, 1]"; 2]);
    drop((a, b, results, executable, device));
    fake.is_clean();
}

#[test]
fn the_third_run_makes_a_graph_and_later_ones_start_it() {
    let fake = Fake::new().with_kernels();
    let device = fake.device(0);
    let executable = loaded(&device, &fake, &two_sums());
    fake.take("log");
    let b = array(&device, 20.0);
    for i in 0..6 {
        let a = array(&device, i as f32);
        let results = run(&executable, &[&a, &b]).unwrap();
        let log = fake.take("log");
        let count = |name: &str| log.iter().filter(|l| *l == name).count();
        assert_eq!(count("cuLaunchKernel"), if i < 2 { 2 } else { 0 }, "run {i}");
        assert_eq!(count("cuGraphInstantiateWithFlags"), usize::from(i == 2), "run {i}");
        assert_eq!(count("cuGraphLaunch"), usize::from(i > 1), "run {i}");
        // the argument, the arena and the results are elsewhere every time; the fill and the copy too
        assert_eq!(count("cuGraphExecKernelNodeSetParams_v2"), if i > 2 { 2 } else { 0 }, "run {i}");
        assert_eq!((value(&results[0]), value(&results[1])), (120.0 + i as f32, 0.0), "run {i}");
    }
    drop((b, executable, device));
    fake.is_clean();
}

#[test]
fn runs_that_are_under_way_keep_their_addresses() {
    let fake = Fake::new().with_kernels();
    let device = fake.device(0);
    let executable = loaded(&device, &fake, &two_sums());
    let b = array(&device, 20.0);
    // nothing is done before the first result is waited for
    let arrays: Vec<Memory> = (0..7).map(|i| array(&device, i as f32)).collect();
    let runs: Vec<Vec<Memory>> = arrays.iter().map(|a| run(&executable, &[a, &b]).unwrap()).collect();
    drop(arrays);
    for (i, results) in runs.iter().enumerate().rev() {
        assert_eq!(value(&results[0]), 120.0 + i as f32);
    }
    drop((b, runs, executable, device));
    fake.is_clean();
}

#[test]
fn a_graph_is_told_only_what_has_changed() {
    let fake = Fake::new().with_kernels();
    fake.set("recycle", 1);
    let device = fake.device(0);
    let executable = loaded(&device, &fake, &two_sums());
    let (a, b) = (array(&device, 1.0), array(&device, 2.0));
    for i in 0..6 {
        fake.take("log");
        let results = run(&executable, &[&a, &b]).unwrap();
        let told = fake.take("log").iter().filter(|l| l.ends_with("SetParams") || l.ends_with("SetParams_v2")).count();
        assert!(i < 4 || told == 0, "run {i}: {told} nodes were told");
        drop(results);
    }
    let results = run(&executable, &[&a, &b]).unwrap();
    assert_eq!(value(&results[0]), 103.0);
    drop((a, b, results, executable, device));
    fake.is_clean();
}

#[test]
fn donated_memory_becomes_a_result() {
    let fake = Fake::new().with_kernels();
    let device = fake.device(0);
    let mut plan = program(2, 1, 0, vec![sum(Param(0), Param(1), Out(0))]);
    plan.results[0].takes = Some(0);
    let executable = loaded(&device, &fake, &plan);
    assert_eq!(executable.reusable(), [true, false]);
    let b = array(&device, 5.0);
    let mut state = array(&device, 1.0);
    for i in 1..5 {
        fake.take("log");
        let mut args = [Arg::Owned(state), Arg::Borrowed(&b)];
        let mut results = executable.run(&mut args).unwrap();
        assert!(matches!(args[0], Arg::Taken));
        state = results.pop().unwrap();
        assert_eq!(fake.calls("cuMemAllocFromPoolAsync"), 0);
        assert_eq!(value(&state), 1.0 + 5.0 * i as f32);
    }
    // an argument that is not donated stays, and one that is used twice too
    let results = run(&executable, &[&state, &b]).unwrap();
    assert_eq!((value(&results[0]), value(&state)), (26.0, 21.0));
    drop(results);
    let both = state;
    let Memory::Device(remote) = &both else { unreachable!("arrays of a GPU") };
    let mut args = [Arg::Owned(Memory::Device(remote.clone())), Arg::Borrowed(&both)];
    let results = executable.run(&mut args).unwrap();
    assert_eq!((value(&results[0]), value(&both)), (42.0, 21.0));
    drop(args);
    drop((both, b, results, executable, device));
    fake.is_clean();
}

#[test]
fn an_array_that_was_donated_is_gone() {
    let fake = Fake::new().with_kernels();
    let device = fake.device(0);
    let mut plan = program(2, 1, 0, vec![sum(Param(0), Param(1), Out(0))]);
    plan.results[0].takes = Some(0);
    let executable = loaded(&device, &fake, &plan);
    let (a, b) = (array(&device, 1.0), array(&device, 2.0));
    let Memory::Device(remote) = &a else { unreachable!("arrays of a GPU") };
    let mut args = [Arg::Owned(Memory::Device(remote.clone())), Arg::Borrowed(&b)];
    let results = executable.run(&mut args).unwrap();
    assert_eq!(value(&results[0]), 3.0);
    assert_eq!(failure(a.host()).0, "Deleted");
    assert_eq!(failure(run(&executable, &[&a, &b])).0, "Deleted");
    assert_eq!(failure(executable.run(&mut args)).0, "Deleted");
    drop(args);
    drop((a, b, results, executable, device));
    fake.is_clean();
}

const COUNTER: Span = Span { place: Arena, offset: 8, bytes: 8 };
const FLAG: Span = Span { place: Arena, offset: 0, bytes: 1 };

/// While `x < limit`: three times `x += counter`, then `x += 1`. The state is the result.
fn loops(limit: i64) -> Program {
    let state = Argument::Memory(all(Out(0)));
    let add = launch("add_count", &[state, Argument::Memory(COUNTER), Argument::Int(N as i64)]);
    let cond = vec![launch("less", &[state, Argument::Memory(FLAG), Argument::Int(limit)])];
    let body = vec![Step::Repeat { count: 3, counter: COUNTER, body: vec![add] }, sum(Out(0), Constant(0), Out(0))];
    let steps = vec![Step::Copy { from: all(Param(0)), to: all(Out(0)) }, Step::While { cond, flag: FLAG, body }];
    Program { constants: vec![constant(1.0)], ..program(1, 1, 16, steps) }
}

#[test]
fn loops_go_on_as_long_as_their_flag_says() {
    let fake = Fake::new().with_kernels();
    let device = fake.device(0);
    let executable = loaded(&device, &fake, &loops(30));
    assert!(executable.waits());
    for (start, end) in [(0.0, 32.0), (1.0, 33.0), (29.0, 33.0), (30.0, 30.0)] {
        let results = run(&executable, &[&array(&device, start)]).unwrap();
        assert_eq!(value(&results[0]), end, "from {start}");
    }
    drop((executable, device));
    fake.is_clean();
}

#[test]
fn counters_have_eight_bytes() {
    let fake = Fake::new().with_kernels();
    let device = fake.device(0);
    let counter = Span { place: Out(0), offset: 8, bytes: 8 };
    let mut plan = program(0, 1, 0, vec![Step::Repeat { count: 5, counter, body: Vec::new() }]);
    plan.results[0].ty = Type::new(DType::I64, &[2]);
    let executable = loaded(&device, &fake, &plan);
    let results = run(&executable, &[]).unwrap();
    assert_eq!(results[0].host().unwrap().typed::<i64>()[1], 4);
    drop((results, executable, device));
    fake.is_clean();
}

#[test]
fn switches_take_the_nearest_branch() {
    let fake = Fake::new().with_kernels();
    let device = fake.device(0);
    let branch = |i: usize| vec![Step::Copy { from: all(Constant(i)), to: all(Out(0)) }];
    let index = Span { place: Param(0), offset: 4, bytes: 4 };
    let steps = vec![Step::Switch { index, branches: (0..3).map(branch).collect() }];
    let plan = Program { constants: (0..3).map(|i| constant(i as f32)).collect(), ..program(1, 1, 0, steps) };
    let executable = loaded(&device, &fake, &plan);
    for (index, branch) in [(0, 0.0), (1, 1.0), (2, 2.0), (3, 2.0), (i32::MAX, 2.0), (-1, 0.0), (i32::MIN, 0.0)] {
        let args = [index; N].iter().flat_map(|i: &i32| i.to_ne_bytes()).collect::<Vec<u8>>();
        let args = Memory::device(device.upload(&args).unwrap());
        assert_eq!(value(&run(&executable, &[&args]).unwrap()[0]), branch, "{index}");
    }
    drop((executable, device));
    fake.is_clean();
}

#[test]
fn programs_run_on_two_devices_and_from_many_threads() {
    let fake = Fake::new().with_kernels();
    let driver = fake.driver().unwrap();
    let devices = [0, 1].map(|i| Device::new(&driver, i).unwrap());
    let programs = [&devices[0], &devices[1]].map(|d| [loaded(d, &fake, &two_sums()), loaded(d, &fake, &loops(9))]);
    std::thread::scope(|scope| {
        for t in 0..4 {
            let (device, [sums, loops]) = (&devices[t % 2], &programs[t % 2]);
            scope.spawn(move || {
                for i in 0..15 {
                    let (a, b) = (array(device, i as f32), array(device, t as f32));
                    let results = run(sums, &[&a, &b]).unwrap();
                    let looped = run(loops, &[&b]).unwrap();
                    assert_eq!(value(&results[0]), 100.0 + (i + t) as f32);
                    assert_eq!(value(&looped[0]), t as f32 + if t == 0 { 12.0 } else { 8.0 });
                }
            });
        }
    });
    let other = array(&devices[1], 0.0);
    let (kind, text) = failure(run(&programs[0][1], &[&other]));
    assert_eq!((kind, text.contains("is on GPU 1")), ("Internal", true), "{text}");
    drop((other, programs, devices));
    fake.is_clean();
}

#[test]
fn a_program_may_go_while_it_runs() {
    let fake = Fake::new().with_kernels();
    let device = fake.device(0);
    for runs in [1, 4] {
        let executable = loaded(&device, &fake, &two_sums());
        let (a, b) = (array(&device, 1.0), array(&device, 2.0));
        let results: Vec<Vec<Memory>> = (0..runs).map(|_| run(&executable, &[&a, &b]).unwrap()).collect();
        drop((executable, a, b));
        assert_eq!(fake.get("modules"), 1, "the code stays until it has run");
        results.iter().for_each(|r| assert_eq!(value(&r[0]), 103.0));
        drop(loaded(&device, &fake, &program(0, 0, 0, Vec::new())));
        assert_eq!(fake.get("modules"), 0);
    }
    drop(device);
    fake.is_clean();
}

#[test]
fn what_fails_on_the_gpu_surfaces_where_it_is_used() {
    let fake = Fake::new().with_kernels();
    let device = fake.device(0);
    let executable = loaded(&device, &fake, &two_sums());
    let (a, b) = (array(&device, 1.0), array(&device, 2.0));
    fake.set("fault", 2);
    let results = run(&executable, &[&a, &b]).unwrap();
    let (kind, text) = failure(results[0].block_until_ready());
    assert_eq!(kind, "Runtime");
    assert!(
        text.starts_with("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered (cuEventSynchronize)"),
        "{text}"
    );
    assert!(text.contains("this process cannot use the GPU any more"), "{text}");
    assert_eq!(failure(results[1].host()).0, "Runtime");
    assert_eq!(failure(run(&executable, &[&a, &b])).0, "Runtime");
    assert_eq!(failure(device.upload(&[1])).0, "Runtime");
    drop((a, b, results, executable, device));
    assert_eq!(fake.get("modules") + fake.get("pinned") + fake.get("blocks") + fake.get("events"), 0);
}

#[test]
fn memory_that_no_step_has_written_is_no_number_under_checks() {
    let fake = Fake::new().with_kernels();
    let device = fake.device(0);
    let executable = loaded(&device, &fake, &program(0, 1, 64, Vec::new()));
    let on = checks::on();
    checks::set(true);
    let results = run(&executable, &[]).unwrap();
    checks::set(on);
    assert!(results[0].host().unwrap().typed::<f32>().iter().all(|x| x.is_nan()));
    drop((results, executable, device));
    fake.is_clean();
}

#[test]
fn plans_that_leave_their_places_are_refused() {
    let fake = Fake::new().with_kernels();
    let device = fake.device(0);
    let past = |place| Span { place, offset: 4, bytes: 4 * N };
    let copy = |from, to| Step::Copy { from, to };
    let huge = Span { place: Arena, offset: usize::MAX, bytes: 2 };
    let short = Span { place: Arena, offset: 0, bytes: 4 };
    let mut wide = launch("add", &[]);
    if let Step::Launch(launch) = &mut wide {
        launch.block = [1024, 2, 1];
    }
    let wrong = [
        sum(Param(0), Param(1), Arena),
        launch("less", &[Argument::Memory(past(Out(0)))]),
        copy(all(Param(0)), past(Out(0))),
        copy(all(Param(0)), all(Param(0))),
        copy(all(Param(0)), short),
        copy(all(Constant(0)), all(Arena)),
        copy(short, Span { offset: 2, ..short }),
        Step::Fill { to: huge, byte: 0 },
        Step::While { cond: Vec::new(), flag: short, body: Vec::new() },
        Step::Repeat { count: 1, counter: Span { place: Arena, offset: 4, bytes: 8 }, body: Vec::new() },
        Step::Switch { index: short, branches: Vec::new() },
        Step::Switch { index: short, branches: vec![vec![copy(all(Param(1)), all(Out(0)))]] },
        launch("unknown", &[]),
        wide,
    ];
    for (i, step) in wrong.into_iter().enumerate() {
        let plan = program(1, 1, 4 * N, vec![step]);
        let (kind, text) = failure(load(&device, &fake.cubins(), &plan, "f"));
        assert_eq!(kind, "Internal", "step {i}: {text}");
    }
    // the memory of a parameter is written where a result takes it
    let mut plan = program(1, 1, 0, vec![Step::Fill { to: all(Param(0)), byte: 0 }]);
    plan.results[0].takes = Some(0);
    let executable = loaded(&device, &fake, &plan);
    assert_eq!(value(&run(&executable, &[&array(&device, 1.0)]).unwrap()[0]), 0.0);
    drop(executable);
    for takes in [1, 0] {
        let mut plan = program(1, 2, 0, Vec::new());
        plan.results.iter_mut().for_each(|r| r.takes = Some(takes));
        assert_eq!(failure(load(&device, &fake.cubins(), &plan, "f")).0, "Internal");
    }
    assert!(fake.take("ran").is_empty());
    drop(device);
    fake.is_clean();
}
