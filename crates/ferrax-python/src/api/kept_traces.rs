//! Programs that control flow and `eval_shape` traced, by the function they are of: a body that is met again is not
//! called again.
//!
//! A program is found by the function object, the structure and avals of its arguments, and the settings in force, as in
//! JAX. One that refers to values from outside counts only in the transformation that it was traced in, since the function
//! may find other values there in the next one. Functions are held weakly, and their programs go with them; tracers that a
//! program refers to are held weakly too. Nothing is kept of functions that use references, whose trace has to note them,
//! nor while leaks are looked for.
//!
//! Read next: [`super::flat`], which asks.

use super::explicit;
use super::guards::is_method;
use super::jaxpr::PyClosed;
use super::references::used_since;
use crate::tree::TreeDef;
use ferrax_base::Aval;
use ferrax_base::config::{self, Flag};
use ferrax_cache::{Cache, OwnerId, cache::hash_of};
use ferrax_ir::trace::{TraceId, WeakTracer, base_id, current};
use ferrax_ir::{JaxprRef, Value};
use ferrax_transform::{arrays_since, note_array};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyWeakrefReference};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// Bytes of programs kept at most.
const LIMIT: usize = 64 << 20;

static KEPT: LazyLock<Cache<Key, Mutex<Option<Kept>>>> = LazyLock::new(|| Cache::with_shards(LIMIT, 1));

/// The owner of each function's programs, by its address; the weak reference takes the row away with the function.
type Owners = FxHashMap<usize, (OwnerId, Py<PyWeakrefReference>)>;

static OWNERS: Mutex<Option<Owners>> = Mutex::new(None);

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The transformation that a program is for, and whether the function is called by one of ours that stands for it.
pub type Asked = (&'static str, bool);

struct Key {
    hash: u64,
    owner: OwnerId,
    tree: TreeDef,
    avals: Vec<Aval>,
    config: u64,
    asked: Asked,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl PartialEq for Key {
    fn eq(&self, o: &Key) -> bool {
        let call = Call { tree: &o.tree, avals: &o.avals, config: o.config, asked: o.asked };
        self.owner == o.owner && Python::attach(|py| self.is_of(py, &call))
    }
}

impl Eq for Key {}

impl Key {
    fn is_of(&self, py: Python<'_>, call: &Call<'_>) -> bool {
        self.config == call.config
            && self.asked == call.asked
            && self.avals == call.avals
            && self.tree.equals(py, call.tree).unwrap_or(false)
    }
}

/// What a program refers to from outside.
enum Outside {
    Known(Value),
    Traced(WeakTracer),
}

struct Kept {
    /// The transformation that it counts in; `None` for all.
    within: Option<TraceId>,
    jaxpr: JaxprRef,
    outside: Vec<Outside>,
    out_tree: TreeDef,
}

impl Kept {
    /// The program, if it counts here and all that it refers to is still there.
    fn program(&self) -> Option<PyClosed> {
        if let Some(id) = self.within {
            if id != current() {
                return None;
            }
            note_array(base_id());
        }
        let value = |outside: &Outside| match outside {
            Outside::Known(value) => Some(value.clone()),
            Outside::Traced(tracer) => tracer.upgrade().map(Value::Tracer),
        };
        let captured = self.outside.iter().map(value).collect::<Option<Vec<Value>>>()?;
        Some(PyClosed::traced(self.jaxpr.clone(), captured, self.out_tree.clone()))
    }
}

/// One call, apart from its function.
#[derive(Clone, Copy)]
struct Call<'a> {
    tree: &'a TreeDef,
    avals: &'a [Aval],
    config: u64,
    asked: Asked,
}

/// Where the program of one call is kept.
pub struct Place<'a> {
    call: Call<'a>,
    owner: OwnerId,
    hash: u64,
    clock: TraceId,
}

impl<'a> Place<'a> {
    /// Of a call of a function; `None` where nothing is kept.
    pub fn of(fun: &Bound<'_, PyAny>, tree: &'a TreeDef, avals: &'a [Aval], asked: Asked) -> Option<Self> {
        if Flag::CheckTracerLeaks.get() || explicit::in_use() {
            return None;
        }
        let owner = owner_of(fun)?;
        let config = config::trace_key();
        let mut h = FxHasher::default();
        (owner, tree.hash(fun.py()).ok()?, avals, config, asked).hash(&mut h);
        let clock = TraceId::latest();
        Some(Place { call: Call { tree, avals, config, asked }, owner, hash: h.finish(), clock })
    }

    /// The program that is there.
    pub fn get(&self, py: Python<'_>) -> Option<PyClosed> {
        let here = |key: &Key| key.owner == self.owner && key.is_of(py, &self.call);
        let found = KEPT.get_hashed(hash_of(&self.hash), here)?;
        lock(&found.value).as_ref()?.program()
    }

    /// Keeps a program that was traced since this place was asked for.
    pub fn keep(self, program: &PyClosed, out_tree: &TreeDef) {
        if used_since(self.clock.0) {
            return;
        }
        let outside = |value: &Value| match value {
            Value::Tracer(tracer) => Outside::Traced(tracer.downgrade()),
            value => Outside::Known(value.clone()),
        };
        let jaxpr = program.jaxpr().clone();
        let within = (!program.captured.is_empty() || arrays_since(self.clock)).then(current);
        let bytes = size_of::<Kept>() + jaxpr.bytes();
        let outside = program.captured.iter().map(outside).collect();
        let Call { tree, avals, config, asked } = self.call;
        let (tree, avals) = (tree.clone(), avals.to_vec());
        let key = Key { hash: self.hash, owner: self.owner, tree, avals, config, asked };
        let kept = Kept { within, jaxpr, outside, out_tree: out_tree.clone() };
        let entry = KEPT.insert(key, Mutex::default(), bytes, Some(self.owner));
        let before = lock(&entry.value).replace(kept);
        drop(before);
    }
}

/// The owner of a function's programs; `None` for one that is made anew at each use, or that cannot be referred to weakly.
fn owner_of(fun: &Bound<'_, PyAny>) -> Option<OwnerId> {
    let id = fun.as_ptr() as usize;
    if let Some((owner, _)) = lock(&OWNERS).get_or_insert_default().get(&id) {
        return Some(*owner);
    }
    if is_method(fun) {
        return None;
    }
    let owner = OwnerId::fresh();
    let forget = PyCFunction::new_closure(fun.py(), None, None, move |_, _| {
        let gone = lock(&OWNERS).as_mut().and_then(|table| table.remove(&id));
        KEPT.forget(owner);
        drop(gone);
    });
    let gone = PyWeakrefReference::new_with(fun, forget.ok()?).ok()?.unbind();
    let before = lock(&OWNERS).get_or_insert_default().insert(id, (owner, gone));
    drop(before);
    Some(owner)
}

/// Forgets all programs.
pub fn clear() {
    KEPT.clear();
}
