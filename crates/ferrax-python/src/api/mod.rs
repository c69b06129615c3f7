//! The transformations as Python sees them: `jit`, `grad`, `vmap`, `jvp`, `vjp` and what they share.
//!
//! Wrapped functions are callables of the [`crate::fastcall`] type, so calling one takes no Python frame of
//! ferrax's. Trees are flattened here; the work is done by `ferrax_transform` on flat lists of values.
//!
//! Read next: [`function`] for how a Python function becomes one of flat values, then [`jit`].

use pyo3::prelude::*;

pub mod analysis;
mod atoms;
mod auxiliary;
mod control;
pub mod custom;
mod donation;
pub mod explain;
pub mod explicit;
pub mod flat;
mod foreign;
pub mod function;
pub mod grad;
pub mod guards;
pub mod held;
pub mod hosted;
pub mod jaxpr;
mod jaxpr_build;
pub mod jit;
pub mod jit_cache;
mod kept_traces;
pub mod leaks;
pub mod placement;
pub mod primitive;
pub mod references;
mod residuals;
mod scopes;
pub mod source;
pub mod statics;
pub mod trees;
mod typed_args;
pub mod vmap;

/// Adds the names of this module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    source::install();
    leaks::register(m)?;
    placement::register(m)?;
    explicit::register(m)?;
    references::register(m)?;
    jaxpr::register(m)?;
    jaxpr_build::register(m)?;
    scopes::register(m)?;
    primitive::register(m)?;
    hosted::register(m)?;
    jit::register(m)?;
    analysis::register(m)?;
    grad::register(m)?;
    vmap::register(m)?;
    flat::register(m)?;
    control::register(m)?;
    custom::register(m)?;
    foreign::register(m)
}
