//! Calls back into the host from a running program: `pure_callback`, `io_callback`, debug prints.

use crate::Type;
use ferrax_base::{Aval, Buffer, Result, bail};
use std::sync::Arc;

/// Host code that a program calls.
pub trait HostCall: Send + Sync {
    /// Runs with the operands' buffers (row-major) and avals; gives one buffer per result.
    fn call(&self, args: &[(&Aval, &Buffer)], results: &[Aval]) -> Result<Vec<Buffer>>;

    /// As [`call`](Self::call), from the elements where they are into those of the results, whose bytes hold anything
    /// before. `false` says that the code wants buffers of its own, and that nothing was done.
    fn call_in_place(&self, _args: &[(&Type, &[u8])], _results: &mut [(&Type, &mut [u8])]) -> Result<bool> {
        Ok(false)
    }

    /// A name for printing.
    fn name(&self) -> String;

    /// What stands for the code in printed programs, one text for each of the parameters that say it.
    fn printed(&self) -> Vec<String> {
        vec![self.name()]
    }

    /// The registered name of what is no code of this process's host language but a function of a foreign library.
    fn target(&self) -> Option<&str> {
        None
    }
}

/// A shared [`HostCall`]; equal when it is the same object.
#[derive(Clone)]
pub struct HostRef(pub Arc<dyn HostCall>);

impl HostRef {
    /// Calls the host with these operands; gives a buffer of the right size for each result.
    pub fn call(&self, args: &[(&Type, &Buffer)], results: &[&Type]) -> Result<Vec<Buffer>> {
        let aval = |ty: &Type| Aval::new(ty.dtype, &ty.shape);
        let avals: Vec<Aval> = args.iter().map(|(ty, _)| aval(ty)).collect();
        let args: Vec<(&Aval, &Buffer)> = avals.iter().zip(args.iter().map(|(_, buffer)| *buffer)).collect();
        let wanted: Vec<Aval> = results.iter().map(|ty| aval(ty)).collect();
        let given = self.0.call(&args, &wanted)?;
        if given.len() != wanted.len() {
            bail!(Value, "{} gave {} results instead of {}", self.0.name(), given.len(), wanted.len());
        }
        match given.iter().zip(results).zip(&wanted).find(|((buffer, ty), _)| buffer.len() != ty.bytes()) {
            None => Ok(given),
            Some(((buffer, _), aval)) => {
                bail!(Value, "{} gave {} bytes for a result of type {aval}", self.0.name(), buffer.len())
            }
        }
    }
}

impl PartialEq for HostRef {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for HostRef {}

impl std::hash::Hash for HostRef {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).cast::<u8>().hash(state);
    }
}

impl std::fmt::Debug for HostRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.name())
    }
}
