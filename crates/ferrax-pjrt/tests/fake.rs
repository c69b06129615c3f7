//! The safe layer against plugins that fail: every call in turn, old tables, files that are no plugin.

mod support;

#[path = "support/fake.rs"]
mod fake;

use fake::{Fake, build};
use ferrax_base::{DType, ErrorKind, Result};
use ferrax_pjrt::safe::{Client, CompileOptions, OptionValue, Plugin, Topology};
use ferrax_pjrt::sys::PJRT_Api;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use support::bytes;

const ONES: [f32; 3] = [1.0; 3];

/// Says when it is dropped.
struct Keep(Arc<AtomicBool>);

impl Drop for Keep {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

fn options() -> Vec<(String, OptionValue)> {
    vec![
        ("text".into(), "x".into()),
        ("number".into(), 1.into()),
        ("list".into(), OptionValue::Ints(vec![1, 2])),
        ("float".into(), OptionValue::Float(0.5)),
        ("bool".into(), true.into()),
    ]
}

/// Everything that can be done, once.
fn everything(plugin: &Arc<Plugin>) -> Result<()> {
    let client = Client::new(plugin, &options())?;
    assert_eq!((&*client.platform_version()?, client.process_index()?), ("fake 1", 0));
    for device in client.devices()? {
        let description = device.description()?;
        assert_eq!(description.coordinates()?, Some(vec![1, 2, 3]));
        assert!(description.id()? > 40 && description.process_index()? == 0);
        assert_eq!((&*description.text()?, &*description.debug_text()?), ("Fake(0)", "a fake device"));
        assert_eq!((device.is_addressable()?, device.local_hardware_id()?), (true, -1));
        assert_eq!(device.default_memory()?.id()?, 7);
        assert_eq!(device.memory_stats()?.map(|s| s.bytes_in_use), Some(100));
    }
    assert_eq!(client.device_kind(1)?, "fake device");
    for memory in client.memories()?.into_iter().chain(client.device(0)?.memories()?) {
        let texts = (memory.kind()?, memory.text()?, memory.debug_text()?);
        assert_eq!((&*texts.0, &*texts.1, &*texts.2), ("device", "FakeMemory(7)", "a fake memory"));
        assert_eq!((memory.id()?, memory.devices()?.len()), (7, 2));
    }
    let program = client.compile("text", &CompileOptions::on(client.device_id(0)?))?;
    let about = program.about();
    assert_eq!((&*about.name()?, about.replicas()?, about.partitions()?, about.code_size()?), ("main", 1, 1, -1));
    assert_eq!(about.costs()?, Some(vec![("flops".to_owned(), OptionValue::Float(3.0))]));
    assert_eq!(about.memory()?.map(|m| m.temporary), Some(64));
    assert_eq!(about.optimized()?, ("text".to_owned(), b"HloModule".to_vec()));
    assert_eq!(client.load(&about.serialize()?, None)?.outputs(), program.outputs());
    let x = Arc::new(client.upload(bytes(&ONES), DType::F32, &[3], 0)?);
    // SAFETY: the elements are constants.
    let kept = unsafe { client.upload_kept(bytes(&ONES), DType::F32, &[3], 1, Keep(Arc::default()))? };
    let out = program.execute(&[&x, &kept], &[0], Some(1))?;
    let all = program.execute_all(&[&[&x], &[&kept]], &[])?;
    let (_, end) = program.execute_with_end(&[&x], &[0], None)?;
    end.expect("an event").wait()?;
    assert_eq!(all.len(), 2);
    out[0].wait()?;
    assert!(x.ready()?);
    assert_eq!(out[0].to_host()?.typed::<f32>(), ONES);
    assert_eq!(kept.copy_to_host()?.wait()?.typed::<f32>(), ONES);
    assert_eq!((x.on_device_bytes()?, &x.logical_dims()?[..]), (16, &[3][..]));
    assert_eq!((x.device()?, x.is_on_cpu()?), (Some(0), false));
    for copy in [x.copy_to(1)?, x.copy_to_memory(&x.memory()?)?] {
        assert_eq!((copy.dims(), copy.dtype()), (&[3][..], DType::F32));
    }
    assert_eq!(x.hold()?.address()?, 4096);
    let topology = Topology::new(plugin, "fake", &options())?;
    assert_eq!((&*topology.platform_name()?, &*topology.platform_version()?), ("fake", "fake 1"));
    assert_eq!(topology.devices()?.len(), 2);
    assert_eq!(topology.compile("text", &CompileOptions::on(0))?.serialize()?, b"saved");
    assert_eq!(Topology::load(plugin, &topology.serialize()?)?.serialize()?, b"topology");
    Ok(())
}

#[test]
fn everything_works_and_nothing_is_left() {
    let fake = Fake::new("whole", &[]);
    everything(&fake.plugin).unwrap();
    assert_eq!((fake.alive(), fake.broken()), (vec![], 0));
}

/// The object that stays when this call fails, for calls that end objects.
fn left_by(name: &str) -> Option<&'static str> {
    let kind = name.strip_suffix("_Destroy")?.strip_prefix("PJRT_")?.trim_end_matches("Description");
    fake::KINDS.into_iter().find(|k| *k == kind)
}

#[test]
fn every_call_may_fail_and_nothing_is_left() {
    let fake = Fake::new("failing", &[]);
    fake.calls();
    everything(&fake.plugin).unwrap();
    let calls = fake.calls();
    assert!(calls.len() > 100, "{}", calls.len());
    let mut left: Vec<(&str, i32)> = fake::KINDS.iter().map(|k| (*k, 0)).collect();
    for (at, name) in calls.iter().enumerate() {
        let before = calls[..at].iter().filter(|c| *c == name).count();
        fake.fail(name, before, 13, "injected");
        let done = everything(&fake.plugin);
        // calls that end something have nobody to tell
        let ends = left_by(name).is_some() || name.ends_with("DecreaseExternalReferenceCount");
        match done {
            Ok(()) => assert!(ends, "{name} number {before} failed and nobody heard of it"),
            Err(error) => {
                assert!(!ends, "{name}: {error}");
                assert_eq!(error.to_string(), "INTERNAL: injected", "{name}");
                assert!(matches!(*error.0, ErrorKind::Runtime(_)));
            }
        }
        // what could not be ended is still there: that one object, and no other
        left.iter_mut().filter(|(kind, _)| Some(*kind) == left_by(name)).for_each(|(_, count)| *count += 1);
        let all: Vec<_> = left.iter().copied().filter(|(_, count)| *count != 0).collect();
        assert_eq!((fake.alive(), fake.broken()), (all, 0), "after {name} number {before} failed");
    }
}

#[test]
fn codes_become_kinds() {
    let fake = Fake::new("codes", &[]);
    let client = Client::new(&fake.plugin, &[]).unwrap();
    let error = |code| {
        fake.fail("PJRT_Client_Compile", 0, code, "text");
        client.compile("", &CompileOptions::on(0)).unwrap_err()
    };
    assert!(matches!(*error(8).0, ErrorKind::Memory(_)));
    assert!(matches!(*error(3).0, ErrorKind::Runtime(_)));
    assert!(matches!(*error(12).0, ErrorKind::NotImplemented(_)));
    assert_eq!(error(14).to_string(), "UNAVAILABLE: text");
    assert_eq!(error(77).to_string(), "error 77: text");
    drop(client);
    fake.mend();
    assert_eq!((fake.alive(), fake.broken()), (vec![], 0));
}

#[test]
fn errors_without_a_code_keep_their_text() {
    let fake = Fake::new("codeless", &[]);
    let client = Client::new(&fake.plugin, &[]).unwrap();
    let topology = Topology::of(&client).err().expect("the fake plugin has none");
    assert_eq!(topology.to_string(), "UNIMPLEMENTED: fake: PJRT_Client_TopologyDescription");
    fake.fail("PJRT_Error_GetCode", 0, 13, "no code");
    let topology = Topology::of(&client).err().expect("an error");
    assert_eq!(topology.to_string(), "UNKNOWN: fake: PJRT_Client_TopologyDescription");
    drop(client);
    assert_eq!((fake.alive(), fake.broken()), (vec![], 0));
}

#[test]
fn errors_of_runs_surface_where_results_are_used() {
    let fake = Fake::new("poisoned", &[]);
    let client = Client::new(&fake.plugin, &[]).unwrap();
    let program = client.compile("", &CompileOptions::on(0)).unwrap();
    let x = client.upload(bytes(&ONES), DType::F32, &[3], 0).unwrap();
    fake.set("fake_poison", 13);
    let out = program.execute(&[&x], &[], None).unwrap();
    assert!(out[0].ready().unwrap());
    for _ in 0..2 {
        assert_eq!(out[0].wait().unwrap_err().to_string(), "INTERNAL: the run failed");
        assert_eq!(out[0].to_host().unwrap_err().to_string(), "INTERNAL: the run failed");
    }
    let (send, receive) = std::sync::mpsc::channel();
    let event = out[0].ready_event().unwrap().unwrap();
    event.on_ready(move |ended| send.send(ended.unwrap_err().to_string()).unwrap()).unwrap();
    assert_eq!(receive.recv().unwrap(), "INTERNAL: the run failed");
    event.on_ready(|_| panic!("a panic of a callback stays here")).unwrap();
    drop((event, out, x, program, client));
    assert_eq!((fake.alive(), fake.broken()), (vec![], 0));
}

#[test]
fn donated_arguments_are_known() {
    let fake = Fake::new("donating", &[]);
    let client = Client::new(&fake.plugin, &[]).unwrap();
    let program = client.compile("", &CompileOptions::on(0)).unwrap();
    let x = client.upload(bytes(&ONES), DType::F32, &[3], 0).unwrap();
    fake.set("fake_donate", 1);
    program.execute(&[&x], &[0], None).unwrap();
    assert!(!x.is_deleted().unwrap());
    program.execute(&[&x], &[], None).unwrap();
    assert!(x.is_deleted().unwrap());
    for error in [program.execute(&[&x], &[], None).unwrap_err(), x.to_host().unwrap_err()] {
        assert!(matches!(*error.0, ErrorKind::Deleted(_)), "{error}");
    }
}

#[test]
fn owners_are_let_go_with_the_buffer() {
    let fake = Fake::new("keeping", &[]);
    let client = Client::new(&fake.plugin, &[]).unwrap();
    let upload = || {
        let gone = Arc::new(AtomicBool::new(false));
        // SAFETY: the elements are constants.
        (unsafe { client.upload_kept(bytes(&ONES), DType::F32, &[3], 0, Keep(gone.clone())) }, gone)
    };
    let (buffer, gone) = upload();
    assert!(!gone.load(SeqCst));
    drop(buffer.unwrap());
    assert!(gone.load(SeqCst));
    // no upload, no use of the bytes
    fake.fail("PJRT_Client_BufferFromHostBuffer", 0, 8, "full");
    let (refused, gone) = upload();
    assert!(matches!(*refused.unwrap_err().0, ErrorKind::Memory(_)) && gone.load(SeqCst));
    // a plugin that will not say when it is done may read on
    fake.fail("PJRT_Event_OnReady", 0, 13, "no callbacks");
    let (refused, gone) = upload();
    assert!(refused.is_err() && !gone.load(SeqCst));
    let error = {
        // SAFETY: the plugin has no views, and calls back no one.
        unsafe { client.view(std::ptr::null_mut(), DType::F32, &[3], 0, Keep(gone.clone())) }.unwrap_err()
    };
    assert_eq!(error.to_string(), "UNIMPLEMENTED: fake: PJRT_Client_CreateViewOfDeviceBuffer");
    assert!(gone.load(SeqCst));
}

#[test]
fn nothing_where_something_is_due_is_an_error() {
    let fake = Fake::new("empty", &[]);
    let client = Client::new(&fake.plugin, &[]).unwrap();
    fake.set("fake_empty_handed", 1);
    let error = Client::new(&fake.plugin, &[]).unwrap_err();
    assert_eq!(error.to_string(), "the PJRT plugin \"empty\" gave no client and no error");
    let error = client.compile("", &CompileOptions::on(0)).unwrap_err();
    assert_eq!(error.to_string(), "the PJRT plugin gave no executable and no error");
}

#[test]
fn what_is_not_offered_is_none() {
    let fake = Fake::new("poor", &[]);
    let client = Client::new(&fake.plugin, &[]).unwrap();
    let stats = client.memory_stats(0).unwrap().unwrap();
    assert_eq!((stats.bytes_in_use, stats.bytes_limit, stats.pool_bytes), (100, Some(1000), None));
    fake.fail("PJRT_Device_MemoryStats", 0, 12, "no");
    assert_eq!(client.memory_stats(0).unwrap(), None);
    assert_eq!(fake.plugin.stablehlo_version(), Some([1, 2, 3]));
    assert_eq!((fake.plugin.stablehlo_minimum_version(), fake.plugin.attributes().len()), (None, 1));
}

#[test]
fn functions_that_an_older_plugin_lacks_are_named() {
    let at = |name: &str| PJRT_Api::HEAD + 8 * ferrax_pjrt::sys::FUNCTIONS.iter().position(|f| f.0 == name).unwrap();
    let size = at("PJRT_TopologyDescription_Create");
    let fake = Fake::new("older", &["MINOR=57", &format!("SIZE={size}")]);
    assert_eq!(fake.plugin.api_version(), (0, 57));
    let client = Client::new(&fake.plugin, &[]).unwrap();
    let error = Topology::new(&fake.plugin, "x", &[]).err().expect("an error");
    assert!(matches!(*error.0, ErrorKind::NotImplemented(_)));
    let want = "the PJRT plugin has no function PJRT_TopologyDescription_Create: its API has version 0.57, this one \
                would need a newer one";
    assert_eq!(error.to_string(), want);
    // results of unknown types are no use
    let error = client.compile("", &CompileOptions::on(0)).unwrap_err();
    assert!(error.to_string().contains("PJRT_Executable_OutputElementTypes"), "{error}");
    drop(client);
    assert_eq!((fake.alive(), fake.broken()), (vec![], 0));
}

#[test]
fn newer_plugins_are_read_as_far_as_we_know_them() {
    let size = size_of::<PJRT_Api>() + 40;
    let fake = Fake::new("newer", &["MINOR=200", &format!("SIZE={size}")]);
    everything(&fake.plugin).unwrap();
    assert_eq!((fake.alive(), fake.broken()), (vec![], 0));
}

/// The error of a file that is no plugin, without the path.
fn refusal(path: &Path) -> String {
    let error = Plugin::load("mine", path).unwrap_err();
    assert!(matches!(*error.0, ErrorKind::Runtime(_)), "{error}");
    let start = format!("the PJRT plugin \"mine\" at {} cannot be used: ", path.display());
    let text = error.to_string();
    text.strip_prefix(&start).unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[test]
fn files_that_are_no_plugins_are_told_apart() {
    let no_such = refusal(Path::new("/no/such/plugin.so"));
    assert!(no_such.starts_with("the file cannot be read: No such file"), "{no_such}");
    assert_eq!(refusal(&std::env::temp_dir()), "it is not a file, and a shared library is wanted");
    let text = build("text", &[]).with_file_name("layout.h");
    let refused = refusal(&text);
    assert!(refused.starts_with("a shared library that loads is wanted, and the system says: "), "{refused}");
    assert_eq!(
        refusal(&build("symbol", &["NO_SYMBOL"])),
        "it is a library without the function `GetPjrtApi`, which every PJRT plugin exports"
    );
    assert_eq!(
        refusal(&build("null", &["NULL_TABLE"])),
        "its function `GetPjrtApi` gives null, where the table of its functions is wanted"
    );
    assert_eq!(
        refusal(&build("nothing", &["SIZE=0"])),
        "its table of functions has 0 bytes, and at least 40 are wanted"
    );
    let versions = "and a version from 0.57 on is wanted, below 1.0";
    assert_eq!(refusal(&build("major", &["MAJOR=1"])), format!("its API has version 1.90, {versions}"));
    assert_eq!(refusal(&build("minor", &["MINOR=56"])), format!("its API has version 0.56, {versions}"));
    let failing = |name: &str, call: &str| refusal(&build(name, &[&format!("FAIL_AT_START=\"{call}\"")]));
    assert_eq!(failing("start", "PJRT_Plugin_Initialize"), "preparing it: INTERNAL: no such device");
    assert_eq!(failing("tell", "PJRT_Plugin_Attributes"), "asking for its attributes: INTERNAL: no such device");
}

#[test]
fn a_plugin_is_loaded_once() {
    let fake = Fake::new("once", &[]);
    let again = Plugin::load("twice", fake.plugin.path()).unwrap();
    assert!(Arc::ptr_eq(&fake.plugin, &again));
    let prepared = fake.calls().iter().filter(|c| *c == "PJRT_Plugin_Initialize").count();
    assert_eq!((prepared, again.name()), (1, "once"));
}
