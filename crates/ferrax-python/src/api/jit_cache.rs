//! What `jit` remembers: traced programs by the signature of a call.
//!
//! A signature is the structure of the arguments, the avals of the leaves, the static arguments and the settings
//! that change tracing. Lookups compare everything; a hash collision costs time, never a wrong program.
//!
//! All programs of the process are in one cache that is bounded in bytes. Each belongs to the [`Programs`] of one
//! function with one set of options; jitting the same function object again finds them ([`programs_of`]), and they go when the
//! function goes: the table below holds functions weakly.
//!
//! Read next: [`super::explain`] for why a call had to be traced.

use super::explicit;
use super::function::{Function, ParamNames};
use super::guards::Guards;
use super::statics::{Static, same_statics};
use crate::tree::TreeDef;
use ferrax::engine::OptionValue;
use ferrax::executable::Executable;
use ferrax_base::{Aval, Result};
use ferrax_cache::{Cache, Entry, OwnerId, cache::hash_of};
use ferrax_ir::{JaxprRef, Value, manual};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyWeakrefReference};
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// Bytes of programs kept at most.
pub const DEFAULT_LIMIT: usize = 256 << 20;

static PROGRAMS: LazyLock<Cache<Key, Program>> = LazyLock::new(|| Cache::new(DEFAULT_LIMIT));

/// What a call looks like from outside.
pub struct Signature {
    /// Structure of the dynamic arguments; `None` when all are positional leaves.
    pub tree: Option<TreeDef>,
    /// Avals of the leaves.
    pub avals: SmallVec<[Aval; 4]>,
    /// Static arguments.
    pub statics: Vec<Static>,
    /// Settings in force.
    pub config: u64,
    /// Where the leaves are, as far as the trace depends on it.
    pub places: explicit::Places,
}

impl Signature {
    /// Whether a call with these parts is one of this signature.
    fn matches(&self, py: Python<'_>, call: &Parts<'_>) -> PyResult<bool> {
        Ok(self.config == call.config
            && self.places == explicit::places(call.values)
            && same_avals(&self.avals, call.values)
            && same_tree(py, self.tree.as_ref(), call.tree)?
            && same_statics(py, &self.statics, call.statics)?)
    }
}

/// The parts of a call that its signature is made of.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    /// Structure of the dynamic arguments; `None` when all are positional leaves.
    pub tree: Option<&'a TreeDef>,
    /// The leaves.
    pub values: &'a [Value],
    /// Static arguments.
    pub statics: &'a [Static],
    /// Settings in force.
    pub config: u64,
}

/// A signature of one function; equal keys have one program.
pub struct Key {
    hash: u64,
    owner: OwnerId,
    /// The signature.
    pub signature: Signature,
    /// Names of the arguments, for explanations.
    pub params: ParamNames,
    /// Structure of the arguments, for explanations.
    pub tree: TreeDef,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl PartialEq for Key {
    fn eq(&self, o: &Key) -> bool {
        let (a, b) = (&self.signature, &o.signature);
        self.owner == o.owner
            && a.config == b.config
            && a.places == b.places
            && a.avals == b.avals
            && Python::attach(|py| {
                same_tree(py, a.tree.as_ref(), b.tree.as_ref()).unwrap_or(false)
                    && same_statics(py, &a.statics, &b.statics).unwrap_or(false)
            })
    }
}

impl Eq for Key {}

/// A traced program.
pub struct Program {
    /// The program.
    pub jaxpr: JaxprRef,
    /// Structure of the result.
    pub out_tree: TreeDef,
    /// The result is one leaf.
    pub single: bool,
    /// Which leaves are donated; empty when none is.
    pub donate: Vec<bool>,
    /// What it was made from beside its arguments.
    pub guards: Guards,
    /// What the engine's compiler is told.
    options: Vec<(String, OptionValue)>,
    executable: OnceLock<Arc<Executable>>,
}

impl Program {
    /// A traced program, not compiled yet.
    pub fn new(jaxpr: JaxprRef, out_tree: TreeDef, donate: Vec<bool>, guards: Guards, options: &Options) -> Program {
        let (options, executable) = (options.compiler_options.clone(), OnceLock::new());
        Program { single: out_tree.is_leaf(), jaxpr, out_tree, donate, guards, options, executable }
    }

    /// The compiled program.
    #[inline]
    pub fn executable(&self) -> Result<&Arc<Executable>> {
        if let Some(e) = self.executable.get() {
            return Ok(e);
        }
        let made = Arc::new(Executable::new(&self.jaxpr)?.with_options(&self.options));
        Ok(self.executable.get_or_init(|| made))
    }
}

/// A program with the key it is kept under.
pub type Kept = Entry<Key, Program>;

/// Counters of a jitted function's programs.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// Calls that found their program.
    pub hits: usize,
    /// Calls that traced.
    pub misses: usize,
    /// Programs kept.
    pub entries: usize,
    /// Bytes they take, about.
    pub bytes: usize,
}

/// The programs of one function with one set of options.
pub struct Programs {
    owner: OwnerId,
    hits: AtomicUsize,
    misses: AtomicUsize,
    /// Calls that traced, those before a `clear` too.
    traced: AtomicUsize,
    /// The program that ran last.
    last: Mutex<Weak<Kept>>,
}

impl Programs {
    fn new() -> Arc<Programs> {
        Arc::new(Programs {
            owner: OwnerId::fresh(),
            hits: AtomicUsize::new(0),
            misses: AtomicUsize::new(0),
            traced: AtomicUsize::new(0),
            last: Mutex::default(),
        })
    }

    /// The program that ran last, if it is still kept: what most calls want.
    #[inline]
    pub fn last(&self) -> Option<Arc<Kept>> {
        lock(&self.last).upgrade()
    }

    /// Counts a call that [`Self::last`] served.
    #[inline]
    pub fn hit(&self) {
        self.hits.fetch_add(1, Relaxed);
    }

    fn hash(&self, py: Python<'_>, call: &Parts<'_>) -> PyResult<u64> {
        let mut h = FxHasher::default();
        self.owner.hash(&mut h);
        if let Some(t) = call.tree {
            t.hash(py)?.hash(&mut h);
        }
        for v in call.values {
            (v.dtype() as u8, v.weak(), v.shape()).hash(&mut h);
        }
        for s in call.statics {
            s.hash.hash(&mut h);
        }
        call.config.hash(&mut h);
        explicit::places(call.values).hash(&mut h);
        Ok(h.finish())
    }

    /// The program for a call, if there is one; errors when what it was made from has changed since.
    pub fn find(&self, py: Python<'_>, call: &Parts<'_>, function: &Function) -> PyResult<Option<Arc<Kept>>> {
        let hash = self.hash(py, call)?;
        let failed = Cell::new(None);
        let same = |key: &Key| {
            key.owner == self.owner
                && key.signature.matches(py, call).unwrap_or_else(|e| {
                    failed.set(Some(e));
                    false
                })
        };
        let found = PROGRAMS.get_hashed(hash_of(&hash), same);
        if let Some(e) = failed.take() {
            return Err(e);
        }
        let Some(found) = found else { return Ok(None) };
        found.value.guards.check(py, function, call.statics)?;
        self.hit();
        *lock(&self.last) = Arc::downgrade(&found);
        Ok(Some(found))
    }

    /// The key of a call that was not found.
    pub fn key(
        &self,
        py: Python<'_>,
        signature: Signature,
        values: &[Value],
        params: ParamNames,
        call_tree: &TreeDef,
    ) -> PyResult<Key> {
        let Signature { tree, statics, config, .. } = &signature;
        let hash = self.hash(py, &Parts { tree: tree.as_ref(), values, statics, config: *config })?;
        self.misses.fetch_add(1, Relaxed);
        self.traced.fetch_add(1, Relaxed);
        Ok(Key { hash, owner: self.owner, signature, params, tree: call_tree.clone() })
    }

    /// Keeps a program.
    pub fn insert(&self, py: Python<'_>, key: Key, program: Program) -> Arc<Kept> {
        let bytes = size_of::<Kept>() + program.jaxpr.bytes() + program.guards.bytes(py);
        let kept = PROGRAMS.insert(key, program, bytes, Some(self.owner));
        *lock(&self.last) = Arc::downgrade(&kept);
        kept
    }

    /// The programs kept now.
    pub fn entries(&self) -> Vec<Arc<Kept>> {
        PROGRAMS.entries(Some(self.owner))
    }

    /// How often the function was traced.
    pub fn traced(&self) -> usize {
        self.traced.load(Relaxed)
    }

    /// Counters.
    pub fn counts(&self) -> Counts {
        let entries = self.entries();
        Counts {
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            entries: entries.len(),
            bytes: entries.iter().map(|e| e.bytes).sum(),
        }
    }

    /// Forgets everything.
    pub fn clear(&self) {
        PROGRAMS.forget(self.owner);
        self.hits.store(0, Relaxed);
        self.misses.store(0, Relaxed);
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        PROGRAMS.forget(self.owner);
    }
}

/// The most bytes of programs that are kept.
pub fn set_limit(bytes: usize) {
    PROGRAMS.set_limit(bytes);
}

/// (programs, bytes, limit) of the process.
pub fn totals() -> (usize, usize, usize) {
    let info = PROGRAMS.info();
    (info.entries, info.bytes, PROGRAMS.limit())
}

/// Forgets all programs.
pub fn clear() {
    PROGRAMS.clear();
}

/// The options of a `jit` that its programs depend on.
#[derive(Clone, PartialEq)]
pub struct Options {
    /// Positions of static arguments.
    pub static_argnums: Vec<i64>,
    /// Names of static arguments.
    pub static_argnames: Vec<String>,
    /// Positions of donated arguments.
    pub donate_argnums: Vec<i64>,
    /// Names or paths of donated arguments.
    pub donate_argnames: Vec<String>,
    /// Whether donation that is not possible is an error.
    pub must_donate: bool,
    /// Whether the program is copied into programs that call it.
    pub inline: bool,
    /// What the engine's compiler is told, by name.
    pub compiler_options: Vec<(String, OptionValue)>,
}

impl Options {
    /// The positions of static arguments among `n`, in order, each once.
    pub fn static_positions(&self, n: i64) -> Vec<usize> {
        let is_static = |i: &i64| self.static_argnums.iter().any(|&s| s == *i || s + n == *i);
        (0..n).filter(is_static).map(|i| i as usize).collect()
    }
}

/// The programs of a function object by options; the weak reference takes the row away with the function.
struct Known {
    _gone: Py<PyWeakrefReference>,
    by_options: SmallVec<[(Options, Arc<Programs>); 1]>,
}

static FUNCTIONS: Mutex<Option<FxHashMap<usize, Known>>> = Mutex::new(None);

/// The other programs of a function object: of a `jit` with other options.
pub fn other_programs(fun: &Bound<'_, PyAny>, than: &Arc<Programs>) -> Vec<(Options, Arc<Programs>)> {
    let table = lock(&FUNCTIONS);
    let known = table.as_ref().and_then(|t| t.get(&(fun.as_ptr() as usize)));
    let others = known.into_iter().flat_map(|k| &k.by_options).filter(|(_, p)| !Arc::ptr_eq(p, than));
    others.cloned().collect()
}

/// The programs of a function with these options: those it has already, if this very object was jitted before.
pub fn programs_of(fun: &Bound<'_, PyAny>, options: &Options) -> PyResult<Arc<Programs>> {
    let id = fun.as_ptr() as usize;
    if let Some(known) = lock(&FUNCTIONS).get_or_insert_default().get_mut(&id) {
        if let Some((_, programs)) = known.by_options.iter().find(|(o, _)| o == options) {
            return Ok(programs.clone());
        }
        let programs = Programs::new();
        known.by_options.push((options.clone(), programs.clone()));
        return Ok(programs);
    }
    let programs = Programs::new();
    let forget = PyCFunction::new_closure(fun.py(), None, None, move |_, _| {
        let gone = lock(&FUNCTIONS).as_mut().and_then(|table| table.remove(&id));
        drop(gone);
    })?;
    // an object that cannot be referred to weakly keeps its programs in its wrapper alone
    if let Ok(gone) = PyWeakrefReference::new_with(fun, forget) {
        let known =
            Known { _gone: gone.unbind(), by_options: smallvec::smallvec![(options.clone(), programs.clone())] };
        let before = lock(&FUNCTIONS).get_or_insert_default().insert(id, known);
        drop(before);
    }
    Ok(programs)
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

fn same_tree(py: Python<'_>, a: Option<&TreeDef>, b: Option<&TreeDef>) -> PyResult<bool> {
    match (a, b) {
        (None, None) => Ok(true),
        (Some(a), Some(b)) => a.equals(py, b),
        _ => Ok(false),
    }
}

#[inline]
fn same_avals(avals: &[Aval], values: &[Value]) -> bool {
    let same = |(a, v): (&Aval, &Value)| {
        a.dtype == v.dtype() && a.weak == v.weak() && a.shape.as_slice() == v.shape() && a.vary == manual::of(v)
    };
    avals.len() == values.len() && avals.iter().zip(values).all(same)
}
