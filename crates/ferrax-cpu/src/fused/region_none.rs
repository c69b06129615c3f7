//! Where the machine is not: no regions.

use crate::library::touch::See;
use ferrax_base::{Result, bail};
use ferrax_loops::Graph;

/// No regions.
#[derive(Default)]
pub(crate) struct Regions {}

impl Regions {
    pub unsafe fn run(&self, _: u32, _: &[*mut u8], _: *mut u8) -> Result<()> {
        bail!(Internal, "a region without a machine")
    }

    pub unsafe fn run_after(
        &self,
        _: u32,
        _: (&[*mut u8], *mut u8),
        _: &dyn Fn(&(dyn Fn(usize, usize, usize) + Sync)) -> Result<()>,
    ) -> Result<()> {
        bail!(Internal, "a region without a machine")
    }

    pub fn touches(&self, _: u32, _: See<'_>) -> Result<()> {
        bail!(Internal, "a region without a machine")
    }

    pub fn describe(&self, _: &Graph, _: u32, _: &mut String) -> std::fmt::Result {
        Ok(())
    }
}
