//! NVRTC itself, which compiles for GPUs that are not here: `make test-nvrtc` says where it is.

use crate::harness::{ADD, units};
use ferrax_base::ErrorKind;
use ferrax_cuda::driver::library::Version;
use ferrax_cuda::driver::{Compiler, Target};
use ferrax_cuda::program::source;

/// The compiler of `FERRAX_NVRTC`, for whichever driver.
fn compiler() -> Compiler {
    assert!(std::env::var_os("FERRAX_NVRTC").is_some(), "FERRAX_NVRTC names NVRTC's library or its folder");
    Compiler::load(Version(13, 9), &[]).expect("NVRTC loads")
}

#[test]
#[ignore = "needs NVRTC: make test-nvrtc"]
fn sources_compile_for_real_gpus() {
    // as one source, as what a program lacks is
    let (compiler, text) = (compiler(), source(&units()));
    for (capability, target) in [((8, 0), "sm_80"), ((9, 0), "sm_90"), ((10, 0), "sm_100")] {
        let found = compiler.target(capability).unwrap();
        assert_eq!(found.to_string(), target);
        let code = compiler.compile(&text, "f", found).unwrap();
        assert!(code.starts_with(b"\x7fELF"), "{:?}", &code[..4]);
        for kernel in ["add", "add_count", "less"] {
            let name = format!("\0.text.{kernel}\0").into_bytes();
            assert!(code.windows(name.len()).any(|w| w == name), "{kernel} for {target}");
        }
    }
    let ptx = compiler.compile(&text, "f", Target::Ptx(90)).unwrap();
    assert!(ptx.ends_with(b"\0") && String::from_utf8_lossy(&ptx).contains(".visible .entry add_count("));
}

/// The sources that the planner's tests wrote into the folder of `FERRAX_CUDA_SOURCES`: all that it prints for their graphs.
/// They have nothing in them that is for one GPU alone, so that each is compiled for one, in turns; one of `FERRAX_TEST_SHARE`
/// is compiled at all.
#[test]
#[ignore = "needs NVRTC: make test-nvrtc"]
fn planned_programs_compile_for_real_gpus() {
    let folder = std::env::var_os("FERRAX_CUDA_SOURCES").expect("FERRAX_CUDA_SOURCES names a folder of sources");
    let compiler = compiler();
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no source");
    let mut wrong = Vec::new();
    let share = std::env::var("FERRAX_TEST_SHARE").map_or(1, |share| share.parse().expect("a number"));
    for (path, target) in paths.iter().step_by(share).zip([80, 90, 100].map(Target::Cubin).into_iter().cycle()) {
        match compiler.compile(&std::fs::read_to_string(path).unwrap(), "f", target) {
            Ok(code) => assert!(code.starts_with(b"\x7fELF"), "{} for {target}", path.display()),
            Err(error) => wrong.push(format!("{} for {target}: {error}", path.display())),
        }
    }
    assert!(wrong.is_empty(), "{} of {} sources:\n{}", wrong.len(), paths.len(), wrong.join("\n"));
}

#[test]
#[ignore = "needs NVRTC: make test-nvrtc"]
fn what_nvrtc_refuses_is_told_with_its_log() {
    let source = ADD.replace("c[i] = a[i]", "c[i] = nothing[i]");
    let error = compiler().compile(&source, "f", Target::Cubin(90)).expect_err("an unknown name");
    assert!(matches!(*error.0, ErrorKind::Internal(_)));
    assert!(error.to_string().contains("f.cu(4): error: identifier \"nothing\" is undefined"), "{error}");
}
