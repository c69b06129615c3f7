//! Plugins tried in another process: those that load, and those that would take this one with them.

#![cfg(unix)]

#[path = "support/fake.rs"]
mod fake;

use fake::build;
use ferrax_pjrt::safe::{Probe, Verdict, answer};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The other process: this program, asked for this test alone, with a name and a path behind.
#[test]
#[ignore = "the other tests start it"]
fn child() {
    let args: Vec<String> = std::env::args().collect();
    let Some(at) = args.iter().position(|a| a == "--answer") else { return };
    answer(&args[at + 1], Path::new(&args[at + 2]), &mut std::io::stdout()).unwrap();
    std::process::exit(0);
}

fn probe(cache: Option<PathBuf>) -> Probe {
    let program = std::env::current_exe().unwrap().into_os_string();
    let rest = ["--exact", "child", "--ignored", "--nocapture", "--", "--answer"].map(Into::into);
    let command = std::iter::once(program).chain(rest).collect();
    Probe { command, cache, patience: Duration::from_mins(1) }
}

fn verdict(name: &str, defines: &[&str]) -> (Verdict, PathBuf) {
    let path = build(name, defines);
    (probe(None).try_plugin("mine", &path).unwrap(), path)
}

#[test]
fn plugins_that_load_have_a_version() {
    let (verdict, path) = verdict("sound", &[]);
    assert_eq!(verdict, Verdict::Loads(0, 90));
    verdict.usable("mine", &path).unwrap();
}

#[test]
fn what_a_plugin_prints_is_no_answer() {
    let loud = "AT_LOAD=printf(\"ferrax PJRT probe: loads 9.9\\nno end of line\"); fflush(stdout)";
    assert_eq!(verdict("loud", &[loud]).0, Verdict::Loads(0, 90));
}

#[test]
fn plugins_that_are_refused_say_why() {
    let (verdict, path) = verdict("major", &["MAJOR=1"]);
    let text = verdict.usable("mine", &path).unwrap_err().to_string();
    assert!(text.contains("its API has version 1.90") && text.contains(&*path.to_string_lossy()), "{text}");
}

#[test]
fn plugins_that_end_the_process_do_not_end_this_one() {
    let error = |name: &str, defines: &[&str]| {
        let (verdict, path) = verdict(name, defines);
        assert!(matches!(verdict, Verdict::Ended(_)), "{verdict:?}");
        verdict.usable("mine", &path).unwrap_err().to_string()
    };
    let text = error("exits", &["AT_LOAD=_exit(0)"]);
    assert!(text.ends_with("shows: exit status: 0"), "{text}");
    let text = error("crashes", &["AT_LOAD=fputs(\"cannot find the driver\\n\", stderr); abort()"]);
    assert!(text.contains("signal: 6") && text.ends_with("the last it printed: cannot find the driver"), "{text}");
}

#[test]
fn plugins_that_hang_are_given_up() {
    let path = build("hangs", &["AT_LOAD=for (;;) sleep(1)"]);
    let probe = Probe { patience: Duration::from_millis(500), ..probe(None) };
    let verdict = probe.try_plugin("mine", &path).unwrap();
    assert_eq!(verdict, Verdict::Hangs(Duration::from_millis(500)));
    assert!(verdict.usable("mine", &path).unwrap_err().to_string().contains("within 500ms"));
}

#[test]
fn commands_that_cannot_be_started_are_errors() {
    let path = build("unasked", &[]);
    let of = |command: Vec<std::ffi::OsString>| {
        Probe { command, ..probe(None) }.try_plugin("mine", &path).unwrap_err().to_string()
    };
    assert!(of(vec!["/no/such/program".into()]).contains("cannot be started"));
    assert!(of(vec![]).contains("it is empty"));
}

#[test]
fn what_loads_is_remembered_until_it_changes() {
    let path = build("cached", &[]);
    let folder = path.with_file_name("cache");
    // what runs in another checkout have left
    let _ = std::fs::remove_dir_all(&folder);
    // a command that would fail shows when nobody is asked
    let nobody = Probe { command: vec!["/no/such/program".into()], ..probe(Some(folder.clone())) };
    let asking = probe(Some(folder.clone()));
    assert!(nobody.try_plugin("mine", &path).is_err());
    assert_eq!(asking.try_plugin("mine", &path).unwrap(), Verdict::Loads(0, 90));
    assert_eq!(nobody.try_plugin("mine", &path).unwrap(), Verdict::Loads(0, 90));
    let entries: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    // another size, another time
    let library = std::fs::read(&path).unwrap();
    std::fs::write(&path, [&library[..], b"x"].concat()).unwrap();
    assert!(nobody.try_plugin("mine", &path).is_err());
    assert_eq!(asking.try_plugin("mine", &path).unwrap(), Verdict::Loads(0, 90));
    // half a file, and one of something else
    let whole = std::fs::read(&entries[0]).unwrap();
    for broken in [&whole[..whole.len() - 3], b"", b"\xff\xfe", &[&whole[..], b"loads 1.1\n"].concat()] {
        std::fs::write(&entries[0], broken).unwrap();
        assert!(nobody.try_plugin("mine", &path).is_err());
    }
    assert_eq!(asking.try_plugin("mine", &path).unwrap(), Verdict::Loads(0, 90));
    // what does not load is tried again
    let bad = build("uncached", &["MAJOR=1"]);
    assert!(matches!(asking.try_plugin("mine", &bad).unwrap(), Verdict::Refused(_)));
    assert!(nobody.try_plugin("mine", &bad).is_err());
}
