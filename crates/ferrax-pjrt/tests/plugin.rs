//! The safe layer against a real plugin: `FERRAX_PJRT_PLUGIN=name:path`, `make test-xla`.

mod support;

use ferrax_base::{DType, Error, ErrorKind};
use ferrax_pjrt::safe::{Client, CompileOptions, OptionValue, Plugin, Results, Topology};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use support::{add, bytes, client, compiled, devices, floats, increment, on, only, plugin};

/// The error of a run, which may come from the call or from the use of its result.
fn failure(run: ferrax_base::Result<Results>) -> Error {
    match run {
        Err(error) => error,
        Ok(results) => results.iter().find_map(|r| r.to_host().err()).expect("an error"),
    }
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn a_sum_goes_there_and_comes_back() {
    let client = client();
    let program = compiled(&client, add(3));
    let x = floats(&client, &[1.0, 2.0, 3.0]);
    let y = floats(&client, &[10.0, 20.0, 30.0]);
    let sum = program.execute(&[&x, &y], &[], None).unwrap();
    assert_eq!((sum[0].dtype(), sum[0].dims(), sum[0].bytes()), (DType::F32, &[3][..], 12));
    assert_eq!(only(&sum), [11.0, 22.0, 33.0]);
    sum[0].wait().unwrap();
    assert!(sum[0].ready().unwrap());
    assert_eq!(sum[0].device().unwrap(), Some(0));
    assert_eq!(sum[0].logical_dims().unwrap()[..], [3]);
    assert_eq!(sum[0].on_device_bytes().unwrap(), 12);
}

/// Bytes that are elements of a dtype, whatever their bits are.
fn elements(dtype: DType, count: usize) -> Vec<u8> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        (state >> 24) as u8
    };
    let mut all: Vec<u8> = (0..count * dtype.size()).map(|_| next()).collect();
    for byte in &mut all {
        let narrow = (*byte << 4) as i8;
        *byte = match dtype {
            DType::Bool | DType::Float0 => *byte & 1,
            DType::U2 => *byte & 3,
            DType::U4 | DType::F4E2M1FN => *byte & 15,
            DType::I4 => (narrow >> 4) as u8,
            DType::I2 => ((*byte << 6) as i8 >> 6) as u8,
            _ => *byte,
        };
    }
    all
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn every_dtype_goes_there_and_comes_back_bit_for_bit() {
    let client = client();
    for &dtype in DType::ALL {
        for dims in [&[][..], &[7], &[3, 5, 2], &[4, 0, 2], &[1, 1, 1, 1, 1, 2]] {
            let want = elements(dtype, dims.iter().product());
            let there = client.upload(&want, dtype, dims, 0).unwrap_or_else(|e| panic!("{dtype}: {e}"));
            assert_eq!((there.dtype(), there.dims(), there.bytes()), (dtype, dims, want.len()));
            let back = there.to_host().unwrap_or_else(|e| panic!("{dtype}: {e}"));
            assert_eq!(back.bytes(), want, "{dtype} {dims:?}");
        }
    }
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn results_in_columns_come_back_in_rows() {
    let client = client();
    let text = "func.func @main(%x: tensor<2x3xi32>) -> tensor<3x2xi32> {\n\
                %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>\n\
                return %0 : tensor<3x2xi32>\n}\n";
    let x = client.upload(bytes(&[0i32, 1, 2, 3, 4, 5]), DType::I32, &[2, 3], 0).unwrap();
    let out = compiled(&client, text).execute(&[&x], &[], None).unwrap();
    assert_eq!(out[0].to_host().unwrap().typed::<i32>(), [0, 3, 1, 4, 2, 5]);
}

/// Says when it is dropped.
struct Owner {
    data: ferrax_base::Buffer,
    gone: Arc<AtomicBool>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.gone.store(true, SeqCst);
    }
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn memory_of_others_is_used_in_place_and_let_go() {
    let client = client();
    let n = 1 << 16;
    let gone = Arc::new(AtomicBool::new(false));
    let data = ferrax_base::Buffer::from_slice(&vec![2.0f32; n]).unwrap();
    let owner = Arc::new(Owner { data, gone: gone.clone() });
    // SAFETY: the owner has the bytes, and is dropped by the plugin.
    let x = unsafe { client.upload_kept(owner.data.bytes(), DType::F32, &[n], 0, owner.clone()).unwrap() };
    let x = Arc::new(x);
    let held = x.hold().unwrap();
    assert_eq!(held.address().unwrap(), owner.data.as_ptr().addr(), "the plugin copied");
    assert!(x.is_on_cpu().unwrap());
    drop(held);
    // a donated argument must not be written where the owner reads
    let out = compiled(&client, increment(n)).execute(&[&x], &[], None).unwrap();
    assert_eq!(only(&out), vec![3.0; n]);
    assert!(owner.data.typed::<f32>().iter().all(|v| *v == 2.0), "the owner's elements were overwritten");
    drop(owner);
    drop(x);
    drop(out);
    wait_for(&gone);
}

fn wait_for(gone: &AtomicBool) {
    let start = std::time::Instant::now();
    while !gone.load(SeqCst) {
        assert!(start.elapsed().as_secs() < 20, "the owner was never let go");
        std::thread::yield_now();
    }
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn views_keep_their_owner() {
    let client = client();
    let gone = Arc::new(AtomicBool::new(false));
    let data = ferrax_base::Buffer::from_slice(&[1.0f32, 2.0, 3.0]).unwrap();
    let address = data.as_ptr().cast_mut().cast();
    let owner = Owner { data, gone: gone.clone() };
    // SAFETY: the owner has the elements, and they do not change.
    let view = unsafe { client.view(address, DType::F32, &[3], 0, owner).unwrap() };
    let sum = compiled(&client, add(3)).execute(&[&view, &view], &[], None).unwrap();
    assert_eq!(only(&sum), [2.0, 4.0, 6.0]);
    assert!(!gone.load(SeqCst));
    drop((view, sum));
    wait_for(&gone);
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn wrong_sizes_and_places_are_refused_before_the_plugin_sees_them() {
    let client = client();
    let error = client.upload(&[0; 8], DType::F32, &[3], 0).unwrap_err();
    assert_eq!(error.to_string(), "an array float32(3,) has 12 bytes, and 8 were given");
    let error = client.upload(&[0; 12], DType::F32, &[3], 7).unwrap_err();
    assert_eq!(error.to_string(), "there is no device 7: the client has 1");
    let other = support::client();
    let (x, y) = (floats(&client, &[1.0]), floats(&other, &[1.0]));
    let error = compiled(&client, add(1)).execute(&[&x, &y], &[], None).unwrap_err();
    assert_eq!(error.to_string(), "an argument belongs to another client than the program");
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn bad_programs_say_where() {
    let client = client();
    let text = "module @bad {\n  func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {\n    \
                %0 = stablehlo.nonsense %x\n    return %0 : tensor<3xf32>\n  }\n}\n";
    let error = client.compile(text, &CompileOptions::on(0)).unwrap_err();
    assert!(matches!(*error.0, ErrorKind::Runtime(_)), "{error}");
    assert!(error.to_string().starts_with("UNKNOWN: -:3:10: error: custom op 'stablehlo.nonsense'"), "{error}");
    let text = "func.func @main(%x: tensor<3xf32>) -> tensor<4xf32> {\n  return %x : tensor<3xf32>\n}\n";
    let error = client.compile(text, &CompileOptions::on(0)).unwrap_err();
    assert!(error.to_string().contains(":2:3: error:"), "{error}");
    let error = client.compile(add(3), &CompileOptions::on(17)).unwrap_err();
    assert!(error.to_string().contains("17"), "{error}");
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn wrong_arguments_are_errors() {
    let client = client();
    let program = compiled(&client, add(3));
    let (x, y) = (floats(&client, &[1.0; 3]), floats(&client, &[1.0; 4]));
    for args in [&[&x][..], &[&x, &y], &[&x, &x, &x], &[]] {
        let error = failure(program.execute(args, &[], None));
        assert!(matches!(*error.0, ErrorKind::Runtime(_)), "{} arguments: {error}", args.len());
        assert!(error.to_string().starts_with("INVALID_ARGUMENT: "), "{error}");
    }
    assert_eq!(only(&program.execute(&[&x, &x], &[], None).unwrap()), [2.0; 3]);
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn donated_memory_becomes_the_result() {
    let client = client();
    let n = 1 << 12;
    let program = compiled(&client, increment(n));
    let x = Arc::new(floats(&client, &vec![1.0; n]));
    x.wait().unwrap();
    let address = x.hold().unwrap().address().unwrap();
    let y = program.execute(&[&x], &[], None).unwrap();
    assert!(x.is_deleted().unwrap());
    assert_eq!(only(&y), vec![2.0; n]);
    let y = Arc::new(y.into_iter().next().unwrap());
    assert_eq!(y.hold().unwrap().address().unwrap(), address, "the memory was not reused");
    for error in [x.to_host().unwrap_err(), failure(program.execute(&[&x], &[], None)), x.copy_to(0).unwrap_err()] {
        assert!(matches!(*error.0, ErrorKind::Deleted(_)), "{error}");
        assert!(error.to_string().contains("deleted or donated"), "{error}");
    }
    // the same program, asked not to take its argument
    let z = program.execute(&[&y], &[0], None).unwrap();
    assert!(!y.is_deleted().unwrap());
    assert_eq!((only(&z), y.to_host().unwrap().typed::<f32>()[0]), (vec![3.0; n], 2.0));
    y.delete().unwrap();
    assert!(y.is_deleted().unwrap());
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn memory_that_is_not_there_is_an_error() {
    let client = client();
    let t = "tensor<1048576x1048576x16xf32>";
    let text = format!(
        "func.func @main(%x: tensor<f32>) -> {t} {{\n\
         %0 = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> {t}\n  return %0 : {t}\n}}\n"
    );
    let one = client.upload(bytes(&[1.0f32]), DType::F32, &[], 0).unwrap();
    let error = failure(compiled(&client, text).execute(&[&one], &[], None));
    assert!(matches!(*error.0, ErrorKind::Memory(_)), "{error}");
    assert!(error.to_string().starts_with("RESOURCE_EXHAUSTED: "), "{error}");
    let x = floats(&client, &[1.0]);
    assert_eq!(only(&compiled(&client, add(1)).execute(&[&x, &x], &[], None).unwrap()), [2.0]);
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn faults_in_a_row_leave_no_buffer_and_the_next_run_works() {
    let client = client();
    let program = compiled(&client, add(3));
    let taking = compiled(&client, increment(3));
    for _ in 0..3 {
        let (x, y) = (floats(&client, &[1.0; 3]), floats(&client, &[1.0; 4]));
        client.compile("no module", &CompileOptions::on(0)).expect_err("an ill-formed program");
        failure(program.execute(&[&x, &y], &[], None));
        assert_eq!(only(&taking.execute(&[&x], &[], None).unwrap()), [2.0; 3]);
        for error in [failure(taking.execute(&[&x], &[], None)), failure(program.execute(&[&x, &x], &[], None))] {
            assert!(matches!(*error.0, ErrorKind::Deleted(_)), "{error}");
        }
        let z = floats(&client, &[2.0; 3]);
        assert_eq!(only(&program.execute(&[&z, &z], &[], None).unwrap()), [4.0; 3]);
        drop((x, y, z));
        assert_eq!(client.live_buffers(), 0);
    }
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn objects_may_be_dropped_in_any_order() {
    let client = client();
    let program = compiled(&client, add(1 << 20));
    let x = floats(&client, &vec![1.0; 1 << 20]);
    let sum = program.execute(&[&x, &x], &[], None).unwrap();
    let copy = sum[0].copy_to_host().unwrap();
    let event = sum[0].ready_event().unwrap();
    drop(client);
    drop(program);
    drop(x);
    drop(sum);
    assert_eq!(copy.wait().unwrap().typed::<f32>()[77], 2.0);
    event.expect("an event").wait().unwrap();
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn runs_go_to_the_device_that_is_asked_for() {
    let client = devices(4);
    assert_eq!((client.addressable_devices(), client.devices().unwrap().len()), (4, 4));
    let portable = client.compile(add(2), &CompileOptions::portable()).unwrap();
    for place in 0..4 {
        let device = client.device(place).unwrap();
        let description = device.description().unwrap();
        assert_eq!((device.place(), device.is_addressable().unwrap()), (Some(place), true));
        assert_eq!(description.id().unwrap(), client.device_id(place).unwrap());
        assert_eq!(description.process_index().unwrap(), client.process_index().unwrap());
        let x = client.upload(bytes(&[1.0f32, 2.0]), DType::F32, &[2], place).unwrap();
        let own = client.compile(add(2), &on(&client, place)).unwrap();
        for out in [portable.execute(&[&x, &x], &[], Some(place)).unwrap(), own.execute(&[&x, &x], &[], None).unwrap()]
        {
            assert_eq!((out[0].device().unwrap(), only(&out)), (Some(place), vec![2.0, 4.0]));
        }
        let moved = x.copy_to((place + 1) % 4).unwrap();
        assert_eq!(moved.device().unwrap(), Some((place + 1) % 4));
        assert_eq!(moved.to_host().unwrap().typed::<f32>(), [1.0, 2.0]);
        let memory = device.default_memory().unwrap();
        assert_eq!(moved.copy_to_memory(&memory).unwrap().device().unwrap(), Some(place));
        assert!(!memory.kind().unwrap().is_empty() && !device.memories().unwrap().is_empty());
    }
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn devices_run_together() {
    let client = devices(4);
    let text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n\
                %0 = \"stablehlo.all_reduce\"(%x) <{replica_groups = dense<[[0, 1, 2]]> : tensor<1x3xi64>}> ({\n\
                ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n  %s = stablehlo.add %a, %b : tensor<f32>\n\
                stablehlo.return %s : tensor<f32>\n}) : (tensor<2xf32>) -> tensor<2xf32>\n\
                return %0 : tensor<2xf32>\n}\n";
    let ids: Vec<i32> = [3, 0, 1].iter().map(|d| client.device_id(*d).unwrap()).collect();
    let program = client.compile(text, &CompileOptions::replicated(&ids)).unwrap();
    assert_eq!((program.devices(), program.about().replicas().unwrap()), (3, 3));
    let args: Vec<_> =
        [3, 0, 1].iter().map(|d| client.upload(bytes(&[1.0f32, *d as f32]), DType::F32, &[2], *d).unwrap()).collect();
    let lists: Vec<Vec<_>> = args.iter().map(|a| vec![a]).collect();
    let lists: Vec<&[_]> = lists.iter().map(Vec::as_slice).collect();
    let results = program.execute_all(&lists, &[]).unwrap();
    for (out, device) in results.iter().zip([3, 0, 1]) {
        assert_eq!((out[0].device().unwrap(), only(out)), (Some(device), vec![3.0, 4.0]));
    }
    let error = program.execute_all(&lists[..2], &[]).unwrap_err();
    assert_eq!(error.to_string(), "a program for 3 devices was given arguments for 2");
    assert_eq!(client.default_devices(2, 2).unwrap().len(), 2);
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn partitions_are_cut_by_shardings() {
    let client = devices(2);
    let text = "module @cut attributes {mhlo.num_partitions = 2 : i32} {\n\
                func.func @main(%x: tensor<4xf32> {mhlo.sharding = \"{devices=[2]<=[2]}\"}) -> (tensor<4xf32> \
                {mhlo.sharding = \"{devices=[2]<=[2]}\"}) {\n  %0 = stablehlo.add %x, %x : tensor<4xf32>\n\
                return %0 : tensor<4xf32>\n}\n}\n";
    let ids: Vec<i32> = (0..2).map(|d| client.device_id(d).unwrap()).collect();
    let program = client.compile(text, &CompileOptions::partitioned(&ids)).unwrap();
    assert_eq!((program.about().partitions().unwrap(), &program.outputs()[0].1[..]), (2, &[2][..]));
    let halves: Vec<_> =
        (0..2).map(|d| client.upload(bytes(&[d as f32, 10.0]), DType::F32, &[2], d).unwrap()).collect();
    let results = program.execute_all(&[&[&halves[0]], &[&halves[1]]], &[]).unwrap();
    assert_eq!((only(&results[0]), only(&results[1])), (vec![0.0, 20.0], vec![2.0, 20.0]));
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn programs_are_saved_and_loaded() {
    let client = client();
    let saved = compiled(&client, add(3)).about().serialize().unwrap();
    let other = support::client();
    for options in [None, Some(on(&other, 0))] {
        let program = other.load(&saved, options.as_ref()).unwrap();
        let x = floats(&other, &[1.0, 2.0, 3.0]);
        assert_eq!(only(&program.execute(&[&x, &x], &[], None).unwrap()), [2.0, 4.0, 6.0]);
    }
    let error = other.load(&saved[..saved.len() / 2], None).unwrap_err();
    assert!(!error.to_string().is_empty());
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn programs_and_plugins_say_what_they_are() {
    let plugin = plugin();
    assert!(plugin.stablehlo_version() >= plugin.stablehlo_minimum_version());
    assert!(plugin.stablehlo_version().is_some() && plugin.attribute("xla_version").is_some());
    assert!(Arc::ptr_eq(&plugin, &Plugin::load("again", plugin.path()).unwrap()));
    let client = client();
    assert!(!client.platform_name().is_empty() && !client.platform_version().unwrap().is_empty());
    assert!(!client.device_kind(0).unwrap().is_empty());
    let program = compiled(&client, add(1000).into_bytes());
    let about = program.about();
    assert_eq!((about.replicas().unwrap(), about.partitions().unwrap()), (1, 1));
    // XLA's CPU client counts no costs; those that do count an addition for each element
    if let Some(costs) = about.costs().unwrap() {
        assert!(costs.contains(&("flops".to_owned(), OptionValue::Float(1000.0))), "{costs:?}");
    }
    let memory = about.memory().unwrap().expect("memory");
    assert_eq!((memory.arguments, memory.results), (8000, 4000));
    let (format, bytes) = about.optimized().unwrap();
    assert_eq!(format, "hlo_with_config");
    assert!(!bytes.is_empty() && !about.name().unwrap().is_empty());
    let text = about.text().unwrap();
    assert!(text.contains("ENTRY %main") && text.contains("f32[1000]{0} add("), "{text}");
    // the allocator of XLA's CPU client does not count
    let stats = client.memory_stats(0);
    assert!(matches!(stats, Ok(None)) || stats.is_ok_and(|s| s.is_some_and(|s| s.bytes_in_use >= 0)));
    program.delete().unwrap();
    program.is_deleted().unwrap();
    let topology = Topology::of(&client).unwrap();
    assert_eq!(topology.platform_name().unwrap(), client.platform_name());
    assert_eq!(topology.devices().unwrap().len(), 1);
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn what_the_plugin_lacks_is_named() {
    let error = Topology::new(&plugin(), "v5e:2x2", &[]).err().expect("an error");
    assert!(matches!(*error.0, ErrorKind::NotImplemented(_)), "{error}");
    assert!(error.to_string().contains("PJRT_TopologyDescription_Create"), "{error}");
    let error = Client::new(&plugin(), &[("no_such_option".into(), true.into())]).unwrap_err();
    assert!(matches!(*error.0, ErrorKind::Runtime(_)), "{error}");
    assert!(error.to_string().contains("no_such_option"), "{error}");
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn options_reach_the_compiler() {
    let client = client();
    let with = |name: &str, value: OptionValue| {
        let options = CompileOptions { overrides: vec![(name.to_owned(), value)], ..on(&client, 0) };
        client.compile(add(3), &options)
    };
    with("xla_cpu_enable_fast_math", false.into()).unwrap();
    with("xla_dump_to", "".into()).unwrap();
    with("xla_backend_optimization_level", 1.into()).unwrap();
    let error = with("xla_no_such_flag", true.into()).unwrap_err();
    assert!(error.to_string().contains("xla_no_such_flag"), "{error}");
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn runs_have_an_end() {
    let client = client();
    let text = "func.func @main(%x: tensor<2xf32>) {\n  return\n}\n";
    let x = floats(&client, &[1.0, 2.0]);
    let (results, end) = compiled(&client, text).execute_with_end(&[&x], &[], None).unwrap();
    assert_eq!(results.len(), 0);
    end.expect("an event").wait().unwrap();
    let (results, end) = compiled(&client, add(2)).execute_with_end(&[&x, &x], &[], Some(0)).unwrap();
    end.expect("an event").wait().unwrap();
    assert_eq!(only(&results), [2.0, 4.0]);
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn other_threads_are_told_of_the_end() {
    let client = client();
    let program = compiled(&client, add(1 << 22));
    let x = floats(&client, &vec![1.0; 1 << 22]);
    let out = program.execute(&[&x, &x], &[], None).unwrap();
    let (send, receive) = std::sync::mpsc::channel();
    let event = out[0].ready_event().unwrap().expect("an event");
    event.on_ready(move |ended| send.send(ended.is_ok()).unwrap()).unwrap();
    drop(event);
    assert!(receive.recv_timeout(std::time::Duration::from_secs(30)).unwrap());
    assert!(out[0].ready().unwrap());
}
