//! The Python extension module `ferrax._ferrax`: types, conversions and error mapping over the Rust crates.
//!
//! Each submodule has a `register(m)` that adds its names. Start with [`errors`] (the one place where Rust
//! errors become exceptions) and [`fastcall`] (the callable type that `jit` wrappers and ufuncs are made of).

use pyo3::prelude::*;

pub mod api;
pub mod array;
pub mod aval;
pub mod boundary;
pub mod config;
pub mod creation;
pub mod devices;
pub mod dlpack;
pub mod dtypes;
pub mod errors;
pub mod fastcall;
pub mod host;
pub mod indexing;
mod interpreter;
pub mod lax;
pub mod numpy_interop;
pub mod objects;
pub mod processes;
mod rows;
pub mod sharded;
pub mod shortcut;
pub mod shorten;
pub mod symbolic;
#[cfg(feature = "test-engine")]
mod test_engine;
pub mod tracer;
pub mod tree;
pub mod ufunc;
pub mod value;
pub mod warning;
mod watch;

/// Runs long work with the GIL given up, if this thread has it.
fn without_gil(work: &mut dyn FnMut()) {
    struct OfThisThread<'a>(&'a mut dyn FnMut());
    // SAFETY: `detach` runs the closure on the thread that calls it; nothing is sent anywhere.
    unsafe impl Send for OfThisThread<'_> {}
    // SAFETY: asks the interpreter about this thread only.
    if unsafe { pyo3::ffi::PyGILState_Check() } == 0 {
        return work();
    }
    let work = OfThisThread(work);
    Python::attach(|py| {
        py.detach(move || {
            let work = work;
            (work.0)();
        });
    });
}

/// Waits until every program that was started has ended.
#[pyfunction]
fn drain() {
    ferrax::queue::drain();
}

#[pyfunction]
fn before_fork() {
    ferrax::queue::before_fork();
}

/// Programs that still run must have ended when the process forks, and before the interpreter goes.
fn register_queue(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(drain, m)?,))?;
    let os = py.import("os")?;
    if os.hasattr("register_at_fork")? {
        let handlers = pyo3::types::PyDict::new(py);
        handlers.set_item("before", wrap_pyfunction!(before_fork, m)?)?;
        os.call_method("register_at_fork", (), Some(&handlers))?;
    }
    Ok(())
}

#[pymodule]
fn _ferrax(m: &Bound<'_, PyModule>) -> PyResult<()> {
    ferrax::init();
    ferrax::long_work::install(without_gil);
    register_queue(m)?;
    errors::register(m)?;
    boundary::register(m)?;
    dtypes::register(m)?;
    aval::register(m)?;
    array::register(m)?;
    host::register(m)?;
    indexing::register(m)?;
    lax::register(m)?;
    tracer::register(m)?;
    errors::IntoPyResult::py(ferrax::engine::cuda::register_where_it_is())?;
    errors::IntoPyResult::py(ferrax::engine::xla::register_from_environment())?;
    devices::register(m)?;
    processes::register(m)?;
    sharded::register(m)?;
    symbolic::register(m)?;
    dlpack::register(m)?;
    config::register(m)?;
    creation::register(m)?;
    warning::register(m)?;
    watch::register(m)?;
    ufunc::register(m)?;
    shortcut::register(m)?;
    shorten::register(m)?;
    tree::register(m)?;
    api::register(m)?;
    #[cfg(feature = "test-engine")]
    test_engine::register(m)?;
    Ok(())
}
