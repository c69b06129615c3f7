//! The Python extension module `ferrax._ferrax`: types, conversions and error mapping over the Rust crates.
//!
//! Each submodule has a `register(m)` that adds its names. Start with [`errors`] (the one place where Rust
//! errors become exceptions) and [`fastcall`] (the callable type that `jit` wrappers and ufuncs are made of).

use pyo3::prelude::*;

pub mod errors;
pub mod fastcall;

#[pymodule]
fn _ferrax(m: &Bound<'_, PyModule>) -> PyResult<()> {
    errors::register(m)?;
    Ok(())
}
