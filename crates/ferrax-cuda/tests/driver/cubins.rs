//! Machine code that is kept: in memory, and in a folder that outlives the process.

use crate::harness::*;
use ferrax_base::{Error, Result, error};
use ferrax_cache::Store;
use ferrax_cuda::driver::{Cubins, Shelf};
use ferrax_cuda::program::{Argument, Place, Program, Span, Step, Unit};
use std::io::ErrorKind::InvalidData;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A shelf that is a folder.
struct Folder(Store);

impl Shelf for Folder {
    fn get(&self, name: &str, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.0.get(name, key) {
            Err(e) if e.kind() == InvalidData => Ok(None),
            got => got.map_err(|e| error!(Runtime, "{e}")),
        }
    }

    fn put(&self, name: &str, key: &[u8], code: &[u8], _: Duration) -> Result<()> {
        self.0.put(name, key, code).map_err(|e| error!(Runtime, "{e}"))
    }

    fn remove(&self, name: &str, key: &[u8], _: Error) -> Result<()> {
        self.0.remove(name, key).map_err(|e| error!(Runtime, "{e}"))
    }
}

/// A compiler that keeps what it made in a folder.
pub fn keeping(fake: &Fake, folder: &Path) -> Cubins {
    Cubins::new(fake.compiler().unwrap(), Some(Box::new(Folder(Store::new(folder, None)))))
}

fn a_program() -> Program {
    program(2, 1, 0, vec![sum(Place::Param(0), Place::Param(1), Place::Result(0))])
}

/// How often the compiler runs for a program that is loaded.
fn compilations(fake: &Fake, cubins: &Cubins) -> i64 {
    let before = fake.get("compilations");
    let device = fake.device(0);
    let executable = load(&device, cubins, &a_program(), "f").unwrap();
    let (a, b) = (array(&device, 1.0), array(&device, 2.0));
    assert_eq!(value(&run(&executable, &[&a, &b]).unwrap()[0]), 3.0);
    fake.get("compilations") - before
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect()
}

#[test]
fn a_source_is_compiled_once() {
    let fake = Fake::new().with_kernels();
    let cubins = fake.cubins();
    assert_eq!([0, 1].map(|_| compilations(&fake, &cubins)), [1, 0]);
    // for another architecture it is another program
    fake.set("capability", 80);
    assert_eq!([0, 1].map(|_| compilations(&fake, &cubins)), [1, 0]);
    fake.is_clean();
}

#[test]
fn a_kernel_serves_all_programs_that_have_it() {
    let fake = Fake::new().with_kernels();
    let (cubins, device) = (fake.cubins(), fake.device(0));
    let counter = Argument::Memory(Span { place: Place::Arena, offset: 0, bytes: 8 });
    let result = Argument::Memory(all(Place::Result(0)));
    let counted = Step::Repeat {
        count: 3,
        counter: Span { place: Place::Arena, offset: 0, bytes: 8 },
        body: vec![launch("add_count", &[result, counter, Argument::Int(N as i64)])],
    };
    let longer = program(2, 1, 256, vec![sum(Place::Param(0), Place::Param(1), Place::Result(0)), counted]);
    for (plan, compiled) in [(a_program(), 1), (longer.clone(), 1), (longer, 0)] {
        let before = fake.get("compilations");
        let executable = load(&device, &cubins, &plan, "f").unwrap();
        assert_eq!(fake.get("compilations") - before, compiled);
        let (a, b) = (array(&device, 1.0), array(&device, 2.0));
        let sums = value(&run(&executable, &[&a, &b]).unwrap()[0]);
        assert_eq!(sums, if plan.steps.len() == 1 { 3.0 } else { 6.0 });
    }
    drop(device);
    fake.is_clean();
}

/// A program with so many kernels more.
fn longer(count: usize) -> Program {
    let mut plan = a_program();
    for k in 0..count {
        let kernel = format!("add{k}");
        plan.units.push(Unit { text: ADD.replace("add(", &format!("{kernel}(")), kernel: kernel.clone() });
        let memory = |place| Argument::Memory(all(place));
        let args =
            [memory(Place::Param(0)), memory(Place::Param(1)), memory(Place::Result(0)), Argument::Int(N as i64)];
        plan.steps.push(launch(&kernel, &args));
    }
    plan
}

#[test]
fn kernels_that_a_program_lacks_are_compiled_as_one_source() {
    let fake = Fake::new().with_kernels();
    let (device, folder) = (fake.device(0), scratch("cubins"));
    let cubins = keeping(&fake, &folder);
    let of = |cubins: &Cubins, plan: &Program| {
        let before = fake.get("compilations");
        fake.take("log");
        let executable = load(&device, cubins, plan, "f").unwrap();
        let made = [fake.get("compilations") - before, fake.calls("cuModuleLoadData") as i64];
        let (a, b) = (array(&device, 1.0), array(&device, 2.0));
        assert_eq!(value(&run(&executable, &[&a, &b]).unwrap()[0]), 3.0);
        made
    };
    // one by one they are found in memory; what was compiled together is loaded as one
    assert_eq!(of(&cubins, &longer(3)), [1, 1]);
    assert_eq!(of(&cubins, &longer(2)), [0, 1]);
    assert_eq!(of(&cubins, &longer(6)), [1, 2]);
    assert_eq!(of(&cubins, &longer(6)), [0, 2]);
    // what does the same in another process finds it again; what lacks other kernels does not
    assert_eq!(entries(&folder).len(), 2);
    let again = keeping(&fake, &folder);
    assert_eq!([3, 6].map(|k| of(&again, &longer(k))), [[0, 1], [0, 2]]);
    assert_eq!(of(&keeping(&fake, &folder), &longer(6)), [1, 1]);
    let mut plan = longer(6);
    plan.units[3].text += "#error the fourth\n";
    let (_, text) = failure(load(&device, &cubins, &plan, "f"));
    assert!(text.contains("#error the fourth"), "{text}");
    drop(device);
    fake.is_clean();
}

#[test]
fn what_was_compiled_outlives_the_process() {
    let fake = Fake::new().with_kernels();
    let folder = scratch("cubins");
    assert_eq!([0, 1].map(|_| compilations(&fake, &keeping(&fake, &folder))), [1, 0]);
    // another version of the compiler makes other code
    fake.set("nvrtc", 12020);
    assert_eq!([0, 1].map(|_| compilations(&fake, &keeping(&fake, &folder))), [1, 0]);
    assert_eq!(entries(&folder).len(), 2);
    fake.is_clean();
}

#[test]
fn damaged_entries_are_dropped_and_compiled_again() {
    let fake = Fake::new().with_kernels();
    let folder = scratch("cubins");
    assert_eq!(compilations(&fake, &keeping(&fake, &folder)), 1);
    let file = entries(&folder).pop().unwrap();
    let whole = std::fs::read(&file).unwrap();
    for cut in [0, 7, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&file, &whole[..cut]).unwrap();
        assert_eq!([0, 1].map(|_| compilations(&fake, &keeping(&fake, &folder))), [1, 0], "cut at {cut}");
    }
    let mut changed = whole.clone();
    changed[whole.len() - 3] ^= 1;
    std::fs::write(&file, &changed).unwrap();
    assert_eq!([0, 1].map(|_| compilations(&fake, &keeping(&fake, &folder))), [1, 0]);
    assert_eq!(std::fs::read(&file).unwrap(), whole);
    fake.is_clean();
}

/// Gives code that no driver takes, until it is taken away.
struct Useless(std::sync::Mutex<Option<Vec<u8>>>);

impl Shelf for &'static Useless {
    fn get(&self, _: &str, _: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn put(&self, _: &str, _: &[u8], code: &[u8], _: Duration) -> Result<()> {
        *self.0.lock().unwrap() = Some(code.to_vec());
        Ok(())
    }

    fn remove(&self, _: &str, _: &[u8], _: Error) -> Result<()> {
        *self.0.lock().unwrap() = None;
        Ok(())
    }
}

#[test]
fn code_that_the_driver_refuses_is_compiled_again() {
    static SHELF: Useless = Useless(std::sync::Mutex::new(None));
    *SHELF.0.lock().unwrap() = Some(b"no cubin for this GPU".to_vec());
    let fake = Fake::new().with_kernels();
    let cubins = || Cubins::new(fake.compiler().unwrap(), Some(Box::new(&SHELF)));
    assert_eq!([0, 1].map(|_| compilations(&fake, &cubins())), [1, 0]);
    assert!(SHELF.0.lock().unwrap().as_ref().unwrap().starts_with(b"CUBIN"));
    fake.is_clean();
}

#[test]
fn a_gpu_that_is_newer_than_the_compiler_is_given_ptx() {
    let fake = Fake::new().with_kernels();
    fake.set("capability", 130);
    let folder = scratch("cubins");
    assert_eq!([0, 1].map(|_| compilations(&fake, &keeping(&fake, &folder))), [1, 0]);
    fake.is_clean();
}

#[test]
fn a_source_that_does_not_compile_says_why() {
    let fake = Fake::new();
    let device = fake.device(0);
    let mut plan = a_program();
    plan.units[0].text += "#error a kernel that is wrong\n";
    let (kind, text) = failure(load(&device, &fake.cubins(), &plan, "f"));
    assert_eq!(kind, "Internal");
    assert!(text.contains("sm_90:\ndefault_program(1): error: #error a kernel that is wrong"), "{text}");
    drop(device);
    fake.is_clean();
}
