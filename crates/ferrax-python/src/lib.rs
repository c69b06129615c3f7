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
pub mod dtypes;
pub mod errors;
pub mod fastcall;
pub mod host;
pub mod indexing;
pub mod lax;
pub mod numpy_interop;
pub mod tracer;
pub mod tree;
pub mod ufunc;
pub mod value;

#[pymodule]
fn _ferrax(m: &Bound<'_, PyModule>) -> PyResult<()> {
    ferrax::init();
    errors::register(m)?;
    boundary::register(m)?;
    dtypes::register(m)?;
    aval::register(m)?;
    array::register(m)?;
    host::register(m)?;
    indexing::register(m)?;
    lax::register(m)?;
    tracer::register(m)?;
    devices::register(m)?;
    config::register(m)?;
    creation::register(m)?;
    ufunc::register(m)?;
    tree::register(m)?;
    api::register(m)?;
    Ok(())
}
