//! The functions of `ferrax.lax` in Rust, one file a family; `python/ferrax/lax` adds signatures and docstrings.

use pyo3::prelude::*;

pub mod args;
mod collective;
mod conv;
mod dot;
mod elementwise;
mod gather_scatter;
mod linalg;
mod reduce;
mod rng;
mod shape;
mod slice;
mod sort;

/// Adds the submodule `_ferrax.lax`.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let lax = PyModule::new(m.py(), "ferrax._ferrax.lax")?;
    elementwise::register(&lax)?;
    shape::register(&lax)?;
    reduce::register(&lax)?;
    slice::register(&lax)?;
    gather_scatter::register(&lax)?;
    linalg::register(&lax)?;
    dot::register(&lax)?;
    conv::register(&lax)?;
    collective::register(&lax)?;
    sort::register(&lax)?;
    rng::register(&lax)?;
    m.add("lax", &lax)?;
    m.py().import("sys")?.getattr("modules")?.set_item("ferrax._ferrax.lax", &lax)
}
