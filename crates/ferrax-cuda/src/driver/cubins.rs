//! Machine code that was compiled before: in memory, and on a shelf that outlives the process.
//!
//! A key is all that the compiler sees: the source, the options with the GPU's architecture, its own version. What a shelf
//! gives and no driver takes is taken off it and compiled again.
//! Read next: `executable.rs`.

use super::compiler::Compiler;
use super::context::Context;
use super::module::{Module, Unloaded};
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

type Key = Arc<[u8]>;

#[derive(Default)]
struct Memory {
    codes: HashMap<Key, Arc<[u8]>>,
    /// The keys, oldest first.
    order: VecDeque<Key>,
    bytes: usize,
}

impl Memory {
    fn add(&mut self, key: Key, code: Arc<[u8]>) {
        let bytes = key.len() + code.len();
        if self.codes.insert(key.clone(), code).is_some() {
            return;
        }
        self.order.push_back(key);
        self.bytes += bytes;
        while self.bytes > MOST
            && let Some(oldest) = self.order.pop_front()
            && let Some(code) = self.codes.remove(&oldest)
        {
            self.bytes -= oldest.len() + code.len();
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

    /// A source as machine code on a GPU.
    pub fn module(&self, context: &Arc<Context>, source: &str, name: &str) -> Result<Module> {
        let target = self.compiler.target(context.capability())?;
        let settings = self.compiler.settings(target);
        let key: Key = [settings.as_bytes(), b"\0", source.as_bytes()].concat().into();
        let known = self.memory.lock().unwrap_or_else(PoisonError::into_inner).codes.get(&key).cloned();
        if let Some(code) = known {
            return Ok(Module::load(context, &code)?);
        }
        if let Some(module) = self.kept(context, name, &key)? {
            return Ok(module);
        }
        let start = Instant::now();
        let code = self.compiler.compile(source, name, target)?;
        let took = start.elapsed();
        let module = Module::load(context, &code)?;
        if let Some(shelf) = &self.shelf {
            shelf.put(name, &key, &code, took)?;
        }
        self.remember(key, code);
        Ok(module)
    }

    fn kept(&self, context: &Arc<Context>, name: &str, key: &Key) -> Result<Option<Module>> {
        let Some(shelf) = &self.shelf else { return Ok(None) };
        let Some(code) = shelf.get(name, key)? else { return Ok(None) };
        match Module::load(context, &code) {
            Ok(module) => {
                self.remember(key.clone(), code);
                Ok(Some(module))
            }
            Err(Unloaded::Image(why)) => {
                shelf.remove(name, key, why)?;
                Ok(None)
            }
            Err(unloaded) => Err(unloaded.into()),
        }
    }

    fn remember(&self, key: Key, code: Vec<u8>) {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).add(key, code.into());
    }
}
