//! Libraries that are missing, too old, or not what they should be.

use crate::harness::*;
use ferrax_cuda::driver::library::Version;
use ferrax_cuda::driver::{Compiler, Context, Driver, Target};

#[test]
fn a_missing_library_is_named_with_what_the_system_says() {
    let path = scratch("nowhere.so");
    let (kind, text) = failure(Driver::load(Some(&path)));
    assert_eq!(kind, "Runtime");
    assert!(text.contains(path.to_str().unwrap()) && text.contains("CUDA 12.0 or newer"), "{text}");
    std::fs::write(&path, "no library").unwrap();
    let (_, text) = failure(Driver::load(Some(&path)));
    assert!(text.contains("nowhere.so: "), "{text}");
}

/// NVRTC asks the system for this library by its name, and the system does not look into folders of wheels.
#[cfg(target_os = "linux")]
#[test]
fn the_compilers_builtins_are_opened_beside_it() {
    let fake = Fake::new();
    let file = fake.path().with_file_name("libnvrtc-builtins.so.12.4");
    std::fs::copy(fake.path(), &file).unwrap();
    std::fs::write(fake.path().with_file_name("libnvrtc-builtins.alt.so"), "no library").unwrap();
    let open = || std::fs::read_to_string("/proc/self/maps").unwrap().contains(file.to_str().unwrap());
    assert!(!open());
    fake.compiler().unwrap();
    assert!(open());
}

#[test]
fn a_driver_that_is_too_old_says_its_version() {
    let fake = Fake::new();
    fake.set("version", 11080);
    let (kind, text) = failure(fake.driver());
    assert_eq!(kind, "Runtime");
    assert!(text.contains("it is for CUDA 11.8, and 12.0 or newer is wanted"), "{text}");
    fake.set("version", 12000);
    assert_eq!(fake.driver().unwrap().version(), Version(12, 0));
}

#[test]
fn a_driver_without_a_function_is_an_error_that_names_it() {
    let (kind, text) = failure(Fake::without("cuMemPoolTrimTo").driver());
    assert_eq!(kind, "Runtime");
    assert!(text.contains("it is for CUDA 12.4, but it has no function cuMemPoolTrimTo"), "{text}");
    let (_, text) = failure(Fake::without("cuDriverGetVersion").driver());
    assert!(text.contains("it has no function cuDriverGetVersion"), "{text}");
}

#[test]
fn machines_without_a_gpu_say_so() {
    let fake = Fake::new();
    fake.set("devices", 0);
    let (kind, text) = failure(fake.driver());
    assert_eq!(kind, "Runtime");
    assert!(text.contains("CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected (cuInit)"), "{text}");
    fake.set("devices", 1);
    let driver = fake.driver().unwrap();
    let (kind, text) = failure(Context::new(&driver, 1));
    assert_eq!((kind, &*text), ("Value", "there is no GPU 1: there are 1"));
    fake.set("devices", 0);
    let (_, text) = failure(Context::new(&driver, 0));
    assert!(text.contains("finds no GPU") && text.contains("nvidia-smi"), "{text}");
    fake.set("devices", 1);
    fake.set("pools_supported", 0);
    assert_eq!(failure(Context::new(&driver, 0)).0, "NotImplemented");
    fake.is_clean();
}

#[test]
fn a_compiler_fits_its_driver() {
    let fake = Fake::new();
    let other = Fake::new();
    fake.set("nvrtc", 13000);
    let files = vec![scratch("libnvrtc.so.12"), fake.path.clone()];
    let (kind, text) = failure(Compiler::first(Version(12, 4), files.clone()));
    assert_eq!(kind, "Runtime");
    assert!(text.contains("of a version from 12.0 to 12.x"), "{text}");
    assert!(
        text.contains("libnvrtc.so.12: ") && text.contains("it is NVRTC 13.0, and the driver is for CUDA 12.4"),
        "{text}"
    );
    assert!(text.contains("nvidia-cuda-nvrtc-cu12") && text.contains("FERRAX_NVRTC"), "{text}");
    // the next one is taken
    let compiler = Compiler::first(Version(12, 4), [files, vec![other.path.clone()]].concat()).unwrap();
    assert_eq!((compiler.version(), compiler.path()), (Version(12, 4), &*other.path));
    assert_eq!(Compiler::first(Version(13, 1), vec![fake.path.clone()]).unwrap().version(), Version(13, 0));
    let lacking = Fake::without("nvrtcGetCUBIN");
    let (_, text) = failure(Compiler::first(Version(12, 4), vec![lacking.path.clone()]));
    assert!(text.contains("it is NVRTC 12.4, but it has no function nvrtcGetCUBIN"), "{text}");
}

#[test]
fn targets_are_the_nearest_that_the_gpu_runs() {
    let compiler = Fake::new().compiler().unwrap();
    assert_eq!(compiler.target((8, 6)).unwrap(), Target::Cubin(86));
    assert_eq!(compiler.target((8, 7)).unwrap(), Target::Cubin(86));
    assert_eq!(compiler.target((10, 3)).unwrap(), Target::Cubin(100));
    assert_eq!(compiler.target((11, 0)).unwrap(), Target::Ptx(100));
    let (kind, text) = failure(compiler.target((3, 5)));
    assert_eq!(kind, "NotImplemented");
    assert!(text.contains("compute capability 3.5") && text.contains("for 5.0 and later"), "{text}");
    assert_eq!([Target::Cubin(90), Target::Ptx(90)].map(|t| t.to_string()), ["sm_90", "compute_90"]);
}
