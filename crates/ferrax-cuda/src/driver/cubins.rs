//! Machine code that was compiled before: in memory, and on a shelf that outlives the process.
//!
//! NVRTC works for one caller at a time, and what it does for any source takes longer than most kernels: what a program lacks is
//! compiled as one source. In memory its kernels are found one by one, so that each is compiled once in a process. On the shelf they
//! are one entry, whose key is all that the compiler sees (the source, the options with the GPU's architecture, its own
//! version): a process that does what an earlier one did lacks the same kernels, and reads and loads one thing for each of
//! its programs. What a shelf gives and no driver takes is taken off it and compiled again.
//! Read next: `executable.rs`.

use super::compiler::{Compiler, Target};
use super::context::Context;
use super::module::{Module, Unloaded};
use crate::program::{Unit, source};
use ferrax_base::{Error, Result};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Where machine code outlives the process. What it cannot read it takes for absent, unless whoever made it wants an error.
pub trait Shelf: Send + Sync {
    /// What was put there for a key.
    fn get(&self, name: &str, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Puts something there that took so long to compile.
    fn put(&self, name: &str, key: &[u8], code: &[u8], took: Duration) -> Result<()>;

    /// Takes something away that is of no use, and why it is not.
    fn remove(&self, name: &str, key: &[u8], why: Error) -> Result<()>;
}

/// Bytes of machine code that stay in memory, with their keys.
const MOST: usize = 64 << 20;

/// What a kernel is compiled for, and its text.
type Key = (Target, Arc<str>);

#[derive(Default)]
struct Memory {
    codes: HashMap<Key, Arc<[u8]>>,
    /// What was compiled together, oldest first.
    order: VecDeque<(Vec<Key>, Arc<[u8]>)>,
    bytes: usize,
}

impl Memory {
    fn add(&mut self, keys: Vec<Key>, code: Arc<[u8]>) {
        let size = |keys: &[Key], code: &[u8]| code.len() + keys.iter().map(|key| key.1.len()).sum::<usize>();
        self.codes.extend(keys.iter().map(|key| (key.clone(), code.clone())));
        self.bytes += size(&keys, &code);
        self.order.push_back((keys, code));
        while self.bytes > MOST
            && let Some((keys, code)) = self.order.pop_front()
        {
            self.bytes -= size(&keys, &code);
            // others may have compiled one of them again meanwhile
            self.codes.retain(|key, of| !(Arc::ptr_eq(of, &code) && keys.contains(key)));
        }
    }
}

/// A compiler that remembers.
pub struct Cubins {
    compiler: Compiler,
    shelf: Option<Box<dyn Shelf>>,
    memory: Mutex<Memory>,
}

impl Cubins {
    /// Remembers nothing yet but what is on the shelf.
    pub fn new(compiler: Compiler, shelf: Option<Box<dyn Shelf>>) -> Cubins {
        Cubins { compiler, shelf, memory: Mutex::default() }
    }

    /// The compiler.
    pub fn compiler(&self) -> &Compiler {
        &self.compiler
    }

    /// Kernels as machine code on a GPU, in their order. What nobody has compiled yet is compiled together; `name` is what
    /// messages call the program.
    pub fn modules(&self, context: &Arc<Context>, units: &[&Unit], name: &str) -> Result<Vec<Arc<Module>>> {
        let target = self.compiler.target(context.capability())?;
        let (mut loaded, mut missing) = (Vec::<(Arc<[u8]>, Arc<Module>)>::new(), Vec::new());
        let mut modules = Vec::new();
        for unit in units {
            let key = (target, Arc::from(unit.text.as_str()));
            let known = self.memory.lock().unwrap_or_else(PoisonError::into_inner).codes.get(&key).cloned();
            modules.push(match known {
                Some(code) => Some(match loaded.iter().find(|(of, _)| Arc::ptr_eq(of, &code)) {
                    Some((_, module)) => module.clone(),
                    None => {
                        let module = Arc::new(Module::load(context, &code)?);
                        loaded.push((code, module.clone()));
                        module
                    }
                }),
                None => {
                    missing.push((*unit, key));
                    None
                }
            });
        }
        if missing.is_empty() {
            return Ok(modules.into_iter().flatten().collect());
        }
        let text = source(missing.iter().map(|(unit, _)| *unit));
        let (code, module) = self.made(context, &text, name, target)?;
        let keys = missing.into_iter().map(|(_, key)| key).collect();
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).add(keys, code.into());
        let module = Arc::new(module);
        Ok(modules.into_iter().map(|known| known.unwrap_or_else(|| module.clone())).collect())
    }

    /// A source's machine code, from the shelf or the compiler.
    fn made(&self, context: &Arc<Context>, text: &str, name: &str, target: Target) -> Result<(Vec<u8>, Module)> {
        let key = [self.compiler.settings(target).as_bytes(), b"\0", text.as_bytes()].concat();
        if let Some(shelf) = &self.shelf
            && let Some(code) = shelf.get(name, &key)?
        {
            match Module::load(context, &code) {
                Ok(module) => return Ok((code, module)),
                Err(Unloaded::Image(why)) => shelf.remove(name, &key, why)?,
                Err(unloaded) => return Err(unloaded.into()),
            }
        }
        let start = Instant::now();
        let code = self.compiler.compile(text, name, target)?;
        let took = start.elapsed();
        let module = Module::load(context, &code)?;
        if let Some(shelf) = &self.shelf {
            shelf.put(name, &key, &code, took)?;
        }
        Ok((code, module))
    }
}
