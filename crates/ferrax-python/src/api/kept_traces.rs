//! Programs that control flow, `eval_shape` and stages of `jit` traced, by the function they are of: a body that is met
//! again is not called again, and a jitted function that was lowered or called is not traced again to be lowered. A call
//! traces where its own cache has no program: what the function captures is noted then (`guards`).
//!
//! A program is found by the function object, the structure and avals of its arguments, and the settings in force, as in
//! JAX. One that refers to values from outside counts only in the transformation that it was traced in, since the function
//! may find other values there in the next one. Functions are held weakly, and their programs go with them; tracers that a
//! program refers to are held weakly too. Nothing is kept of functions that use references, whose trace has to note them,
//! nor while leaks or changes of captured values are looked for.
//!
//! Read next: [`super::flat`] and [`super::jit`], which ask.

use super::explicit;
use super::guards::{Captured, Guards, checks_captures, is_method};
use super::jaxpr::PyClosed;
use super::references::used_since;
use crate::tree::TreeDef;
use ferrax_base::Aval;
use ferrax_base::config::{self, Flag};
use ferrax_cache::{Cache, OwnerId};
use ferrax_ir::trace::{TraceId, WeakTracer, base_id, current};
use ferrax_ir::{JaxprRef, Value};
use ferrax_transform::{arrays_since, note_array};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyWeakrefReference};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

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
        (self.owner, self.config, self.asked) == (o.owner, o.config, o.asked)
            && self.avals == o.avals
            && Python::attach(|py| self.tree.equals(py, &o.tree).unwrap_or(false))
    }
}

impl Eq for Key {}

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
    /// What the function captured then, where that is known.
    captured: Option<Arc<Captured>>,
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

/// Where the program of one call is kept.
pub struct Place {
    key: Key,
    clock: TraceId,
}

impl Place {
    /// Of a call of a function; `None` where nothing is kept.
    pub fn of(fun: &Bound<'_, PyAny>, tree: &TreeDef, avals: &[Aval], asked: Asked) -> Option<Self> {
        let (py, config) = (fun.py(), config::trace_key());
        if Flag::CheckTracerLeaks.get() || explicit::in_use() || checks_captures(py, config).unwrap_or(true) {
            return None;
        }
        let owner = owner_of(fun)?;
        let mut h = FxHasher::default();
        (owner, tree.hash(py).ok()?, avals, config, asked).hash(&mut h);
        let key = Key { hash: h.finish(), owner, tree: tree.clone(), avals: avals.to_vec(), config, asked };
        Some(Place { key, clock: TraceId::latest() })
    }

    /// The program that is there.
    pub fn get(&self) -> Option<PyClosed> {
        lock(&KEPT.get(&self.key)?.value).as_ref()?.program()
    }

    /// The program that is there, with the structure of its result and what the function captured, where it refers to
    /// nothing outside.
    pub fn whole(&self) -> Option<(JaxprRef, TreeDef, Guards)> {
        let entry = KEPT.get(&self.key)?;
        let kept = lock(&entry.value);
        let (kept, captured) = (kept.as_ref()?, kept.as_ref()?.captured.clone()?);
        let program = kept.program().filter(|program| program.captured.is_empty())?;
        Some((program.jaxpr().clone(), kept.out_tree.clone(), Guards::of_captured(captured)))
    }

    /// Keeps a program that was traced since this place was asked for, and what the function captured.
    pub fn keep(self, program: &PyClosed, out_tree: &TreeDef, captured: Option<Arc<Captured>>) {
        if used_since(self.clock.0) {
            return;
        }
        let outside = |value: &Value| match value {
            Value::Tracer(tracer) => Outside::Traced(tracer.downgrade()),
            value => Outside::Known(value.clone()),
        };
        let jaxpr = program.jaxpr().clone();
        let within = (!program.captured.is_empty() || arrays_since(self.clock)).then(current);
        let (bytes, owner) = (size_of::<Kept>() + jaxpr.bytes(), self.key.owner);
        let outside = program.captured.iter().map(outside).collect();
        let entry = KEPT.insert(self.key, Mutex::default(), bytes, Some(owner));
        let before = lock(&entry.value).replace(Kept { within, jaxpr, outside, out_tree: out_tree.clone(), captured });
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

/// Forgets the programs of a function.
pub fn forget(fun: &Bound<'_, PyAny>) {
    let owner = lock(&OWNERS).as_ref().and_then(|table| table.get(&(fun.as_ptr() as usize)).map(|(owner, _)| *owner));
    if let Some(owner) = owner {
        KEPT.forget(owner);
    }
}

/// Forgets all programs.
pub fn clear() {
    KEPT.clear();
}
