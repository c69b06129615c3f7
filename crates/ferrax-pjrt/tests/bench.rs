//! What a run costs beyond the plugin's own time: `cargo test -p ferrax-pjrt --release --test bench -- --ignored
//! --nocapture` prints it. It never fails for being slow.

mod support;

use ferrax_base::Result;
use ferrax_pjrt::result as r;
use ferrax_pjrt::sys::*;
use std::ffi::c_int;
use std::io::Write;
use std::time::Instant;
use support::{add, client, floats, on};

/// The shortest rounds of several calls that take turns, in nanoseconds for each call: others use the machine too.
fn times<const N: usize>(mut calls: [&mut dyn FnMut(); N]) -> [f64; N] {
    const CALLS: u32 = 200;
    let mut shortest = [f64::INFINITY; N];
    for _ in 0..300 {
        for (call, shortest) in calls.iter_mut().zip(&mut shortest) {
            let start = Instant::now();
            (0..CALLS).for_each(|_| call());
            *shortest = shortest.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS));
        }
    }
    shortest
}

/// The same add by the bare C API: handles and structs made once, nothing checked but null errors.
struct Bare {
    api: PJRT_Api,
    args: [*mut PJRT_Buffer; 2],
    program: *mut PJRT_LoadedExecutable,
}

impl Bare {
    /// # Safety
    /// The path is a plugin that was loaded and prepared before.
    unsafe fn new(path: &std::path::Path) -> Result<Bare> {
        // SAFETY: the caller's promise; handles stay alive until the process ends.
        unsafe {
            let library = libloading::Library::new(path).expect("a library");
            let get: libloading::Symbol<'_, GetPjrtApi> = library.get(b"GetPjrtApi").expect("a plugin");
            let api = PJRT_Api::read(get()).expect("a table");
            std::mem::forget(library);
            let client = r::client_create(&api, &[], ferrax_pjrt::sys::Args::new())?;
            let device = r::client_addressable_devices(&api, client)?[0];
            let id: c_int = r::description_id(&api, r::device_description(&api, device)?)?;
            let options = ferrax_pjrt::safe::CompileOptions::on(id).encoded();
            let program = r::client_compile(&api, client, add(10).as_bytes(), "mlir", &options)?;
            let (data, dims) = ([1.0f32; 10], [10i64]);
            let mut upload = PJRT_Client_BufferFromHostBuffer_Args {
                client,
                data: data.as_ptr().cast(),
                r#type: 11,
                dims: dims.as_ptr(),
                num_dims: 1,
                device,
                ..Args::new()
            };
            let name = "PJRT_Client_BufferFromHostBuffer";
            r::call(&api, api.PJRT_Client_BufferFromHostBuffer, name, &mut upload)?;
            Ok(Bare { api, args: [upload.buffer; 2], program })
        }
    }

    fn run(&self) {
        let mut options: PJRT_ExecuteOptions = Args::new();
        let (arguments, mut result) = (self.args.as_ptr(), std::ptr::null_mut());
        let outputs: *mut *mut PJRT_Buffer = &raw mut result;
        let mut args = PJRT_LoadedExecutable_Execute_Args {
            executable: self.program,
            options: &raw mut options,
            argument_lists: &raw const arguments,
            num_devices: 1,
            num_args: 2,
            output_lists: &raw const outputs,
            ..Args::new()
        };
        // SAFETY: all handles are alive.
        unsafe {
            assert!((self.api.PJRT_LoadedExecutable_Execute.expect("execute"))(&raw mut args).is_null());
            let mut args = PJRT_Buffer_Destroy_Args { buffer: result, ..Args::new() };
            assert!((self.api.PJRT_Buffer_Destroy.expect("destroy"))(&raw mut args).is_null());
        }
    }
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn a_run_of_ten_elements() {
    let client = client();
    let program = client.compile(add(10), &on(&client, 0)).unwrap();
    let x = floats(&client, &[1.0; 10]);
    // SAFETY: the plugin was loaded and prepared just now.
    let bare = unsafe { Bare::new(client.plugin().path()).unwrap() };
    let mut out = std::io::stdout();
    for _ in 0..3 {
        let [theirs, ours, copied] =
            times([&mut || bare.run(), &mut || drop(program.execute(&[&x, &x], &[], None).unwrap()), &mut || {
                drop(program.execute(&[&x, &x], &[], None).unwrap()[0].to_host().unwrap());
            }]);
        writeln!(
            out,
            "add of 10 elements, run and freed: bare C API {theirs:.0} ns, here {ours:.0} ns ({:+.0} ns); with its copy \
             to the host {copied:.0} ns",
            ours - theirs
        )
        .unwrap();
    }
    assert_eq!(client.live_buffers(), 1);
}
