//! Machine code that was compiled before: in memory, and on a shelf that outlives the process.
//!
//! A key is all that the compiler sees: the source, the options with the GPU's architecture, its own version. What a shelf
//! gives and no driver takes is taken off it and compiled again.
//! Read next: `executable.rs`.

use super::compiler::{Compiler, Target};
use super::context::Context;
use super::module::{Module, Unloaded};
use crate::program::Unit;
use ferrax_base::{Error, Result, error};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
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

    /// Kernels as machine code on a GPU, in their order. What nobody has compiled yet is compiled on all of the host's
    /// processors; `name` is what messages call the program.
    pub fn modules(&self, context: &Arc<Context>, units: &[&Unit], name: &str) -> Result<Vec<Module>> {
        let target = self.compiler.target(context.capability())?;
        let settings = self.compiler.settings(target);
        let mut modules: Vec<Option<Module>> = Vec::new();
        let mut missing = Vec::new();
        for (at, unit) in units.iter().enumerate() {
            let source = unit.source();
            let key: Key = [settings.as_bytes(), b"\0", source.as_bytes()].concat().into();
            let known = self.memory.lock().unwrap_or_else(PoisonError::into_inner).codes.get(&key).cloned();
            modules.push(match known {
                Some(code) => Some(Module::load(context, &code)?),
                None => self.kept(context, name, &key)?,
            });
            if modules[at].is_none() {
                missing.push((at, source, key));
            }
        }
        let sources: Vec<&str> = missing.iter().map(|(_, source, _)| source.as_str()).collect();
        for ((at, _, key), made) in missing.iter().zip(self.compile(&sources, name, target)) {
            let (code, took) = made?;
            modules[*at] = Some(Module::load(context, &code)?);
            if let Some(shelf) = &self.shelf {
                shelf.put(name, key, &code, took)?;
            }
            self.remember(key.clone(), code);
        }
        Ok(modules.into_iter().flatten().collect())
    }

    /// Compiles sources, each with the time that it took.
    fn compile(&self, sources: &[&str], name: &str, target: Target) -> Vec<Result<(Vec<u8>, Duration)>> {
        let one = |source: &str| {
            let start = Instant::now();
            self.compiler.compile(source, name, target).map(|code| (code, start.elapsed()))
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(sources.len());
        if threads < 2 {
            return sources.iter().map(|source| one(source)).collect();
        }
        let (next, made) = (AtomicUsize::new(0), sources.iter().map(|_| OnceLock::new()).collect::<Vec<_>>());
        let work = || {
            while let Some((source, made)) = {
                let at = next.fetch_add(1, Relaxed);
                sources.get(at).zip(made.get(at))
            } {
                let _ = made.set(one(source));
            }
        };
        std::thread::scope(|scope| {
            (1..threads).for_each(|_| {
                scope.spawn(work);
            });
            work();
        });
        let none = || Err(error!(Internal, "a kernel was not compiled"));
        made.into_iter().map(|made| made.into_inner().unwrap_or_else(none)).collect()
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
