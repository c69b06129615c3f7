//! How explicit axes of a mesh divide traced values: types with shardings.
//!
//! While a mesh with such axes is in use, the aval of a traced value says which mesh axis divides which of its axes, by a
//! number ([`Aval::spread`](ferrax_base::Aval)) of a sharding that the host knows. Operations get theirs where they are
//! recorded ([`note`]), so that an operation that has to be told raises at its line. Arrays have a placement instead,
//! from which their type follows ([`typed`]).
//!
//! Source: JAX's "Explicit sharding". Read next: `python/ferrax/sharding/_typed.py`, which has the rules.

use crate::device::DeviceId;
use crate::manual;
use crate::op::OpRef;
use crate::value::Value;
use ferrax_base::config::{Flag, note_due, trace_key};
use ferrax_base::fork::Lock;
use ferrax_base::source::is_making;
use ferrax_base::{Aval, Result};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::{Arc, LazyLock, OnceLock};

/// What the host is asked; zero is a type that says nothing.
pub struct Host {
    /// The number of arrays of this rank at a placement.
    pub placed: fn(DeviceId, usize) -> Result<u32>,
    /// The numbers of the results of an operation. Errors when it has to be told.
    pub results: fn(&OpRef, &[Aval], &[Aval]) -> Result<Vec<u32>>,
    /// The number of what has one more axis at a place, divided as an axis's number says, or (`None`) one less.
    pub moved: fn(u32, usize, Option<u32>) -> Result<u32>,
    /// The value, divided as a number says.
    pub settled: fn(&Value, u32) -> Result<Value>,
    /// The sharding over devices that a number stands for in a program over as many of them; `None` if it stands for none.
    pub place: fn(u32) -> Result<Option<DeviceId>>,
}

/// Names of axes of a mesh.
pub type Axes = SmallVec<[Arc<str>; 1]>;

static HOST: OnceLock<Host> = OnceLock::new();

/// Installs the host; the first call counts.
pub fn set_host(host: Host) {
    let _ = HOST.set(host);
}

/// What is printed of a number: what divides each axis, and the sums that are due.
#[derive(Clone, Debug)]
struct Text {
    axes: Vec<Option<Box<str>>>,
    due: Due,
    /// The sharding and its mesh, as the dialect `sdy` of MLIR writes them.
    sdy: (Box<str>, Box<str>),
}

/// The axes of the mesh that a type says sums to be due over: of the value, or of what its gradient is made of.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Due {
    pub unreduced: Vec<String>,
    pub reduced: Vec<String>,
}

impl Due {
    fn is_none(&self) -> bool {
        self.unreduced.is_empty() && self.reduced.is_empty()
    }
}

/// By number, from 1 on. They stay for the process.
static TEXTS: Lock<Vec<Arc<Text>>> = Lock::new(Vec::new());

/// A new number; the host keeps equal shardings apart.
pub fn intern(axes: Vec<Option<String>>, due: Due, sdy: (String, String)) -> u32 {
    let axes = axes.into_iter().map(|a| a.map(String::into_boxed_str)).collect();
    if !due.is_none() {
        note_due();
    }
    let mut texts = TEXTS.lock();
    texts.push(Arc::new(Text { axes, due, sdy: (sdy.0.into(), sdy.1.into()) }));
    texts.len() as u32
}

fn text_of(spread: u32) -> Option<Arc<Text>> {
    TEXTS.lock().get(spread.checked_sub(1)? as usize).cloned()
}

/// A sharding and its mesh, as the dialect `sdy` of MLIR writes them.
pub fn sdy(spread: u32) -> Option<(String, String)> {
    text_of(spread).map(|t| (t.sdy.0.to_string(), t.sdy.1.to_string()))
}

/// The type as programs print it, `f32[8@x,4]{V:y}`.
pub fn text(aval: &Aval) -> String {
    if aval.spread == 0 && aval.vary == 0 {
        return aval.to_string();
    }
    let (dims, marks) = sizes(aval, aval.shape.iter().map(ToString::to_string));
    format!("{}[{dims}]{marks}", aval.dtype.short_name())
}

/// Sizes of a type's axes with what divides them, and what it says of manual axes and of sums that are due: `{V:x, U:y}`.
pub fn sizes(aval: &Aval, dims: impl Iterator<Item = String>) -> (String, String) {
    let text = text_of(aval.spread);
    let due = text.as_ref().map_or_else(Due::default, |t| t.due.clone());
    let mut varies: Vec<String> = manual::names(aval.vary).iter().map(ToString::to_string).collect();
    varies.retain(|n| !due.unreduced.contains(n));
    let reduced = due.reduced.into_iter().filter(|n| !varies.contains(n)).collect();
    let one = |(letter, names): (char, Vec<String>)| match &*names {
        [] => None,
        [name] => Some(format!("{letter}:{name}")),
        names => Some(format!("{letter}:({})", names.join(","))),
    };
    let said: Vec<String> = [('V', varies), ('U', due.unreduced), ('R', reduced)].into_iter().filter_map(one).collect();
    let dims = match text {
        Some(text) => joined(dims, &text),
        None => dims.collect::<Vec<_>>().join(","),
    };
    (dims, if said.is_empty() { String::new() } else { format!("{{{}}}", said.join(", ")) })
}

fn joined(dims: impl Iterator<Item = String>, text: &Text) -> String {
    let with = |(i, d): (usize, String)| match text.axes.get(i) {
        Some(Some(names)) => format!("{d}@{names}"),
        _ => d,
    };
    dims.enumerate().map(with).collect::<Vec<_>>().join(",")
}

static PLACED: LazyLock<Lock<FxHashMap<(DeviceId, usize), u32>>> = LazyLock::new(|| Lock::new(FxHashMap::default()));

/// Notes in the type of an array how its placement divides it, while explicit axes are in use.
pub fn typed(mut aval: Aval, device: DeviceId) -> Aval {
    if device.is_sharded() && Flag::Explicit.get() {
        aval.spread = of_place(device, aval.rank());
    }
    aval
}

/// The number in the types of arrays of a rank at a placement.
#[cold]
pub fn of_place(device: DeviceId, rank: usize) -> u32 {
    if let Some(&found) = PLACED.lock().get(&(device, rank)) {
        return found;
    }
    let found = HOST.get().and_then(|h| (h.placed)(device, rank).ok()).unwrap_or_default();
    PLACED.lock().insert((device, rank), found);
    found
}

/// Notes in the types of an operation's results how they are divided. Errors when it has to be told.
#[inline]
pub fn note(op: &OpRef, args: &[Aval], outs: &mut [Aval]) -> Result<()> {
    if Flag::Explicit.get() || args.iter().any(|a| is_marked(a.spread)) || marks_results(op) {
        return noted(op, args, outs);
    }
    // axes are of another type here: types say nothing of them
    outs.iter_mut().for_each(|out| out.spread = 0);
    Ok(())
}

/// Errors where an operation on these values that nobody made for another one has to be told how its results are divided:
/// what is made of it for its derivative need not.
#[inline]
pub fn require_told(op: &OpRef, args: &[Value]) -> Result<()> {
    let placed = |v: &Value| matches!(v, Value::Array(a) if a.device().is_sharded());
    if Flag::Explicit.get() || args.iter().any(placed) { require(op, args) } else { Ok(()) }
}

#[cold]
fn require(op: &OpRef, args: &[Value]) -> Result<()> {
    if is_making() || !op.subjaxprs().is_empty() || op.name().starts_with("custom_") {
        return Ok(());
    }
    let of = |v: &Value| match v {
        Value::Array(a) if a.device().is_sharded() => {
            Aval { spread: of_place(a.device(), a.aval().rank()), ..a.aval().clone() }
        }
        other => other.aval(),
    };
    let avals: SmallVec<[Aval; 3]> = args.iter().map(of).collect();
    let Some(host) = HOST.get().filter(|_| avals.iter().any(|a| a.spread != 0)) else { return Ok(()) };
    let refs: SmallVec<[&Aval; 3]> = avals.iter().collect();
    let outs: SmallVec<[Aval; 2]> = op.abstract_eval(&refs)?.into_iter().map(|out| Aval { spread: 0, ..out }).collect();
    results(host, op, &avals, &outs).map(|_| ())
}

/// An operation, the types of its operands, the settings in force, and whether it is made as part of another one.
type Asked = (OpRef, SmallVec<[Aval; 3]>, u64, bool);

thread_local! {
    /// What the host said of operations.
    static RESULTS: RefCell<FxHashMap<Asked, Vec<u32>>> = RefCell::default();
}

/// Entries of [`RESULTS`] at most.
const MOST_RESULTS: usize = 4096;

/// Whether the host has to be asked of an operation each time: it notes of products that are made what they sum over.
pub fn is_noted(op: &OpRef) -> bool {
    is_making() && op.name() == "dot_general"
}

/// What the host says of an operation's results, asked once where that is enough; code of users is not kept alive.
fn results(host: &Host, op: &OpRef, args: &[Aval], outs: &[Aval]) -> Result<Vec<u32>> {
    if is_noted(op) || op.name().ends_with("callback") {
        return (host.results)(op, args, outs);
    }
    let key = (op.clone(), SmallVec::from(args), trace_key(), is_making());
    if let Some(found) = RESULTS.with_borrow(|all| all.get(&key).cloned()) {
        return Ok(found);
    }
    let found = (host.results)(op, args, outs)?;
    RESULTS.with_borrow_mut(|all| {
        if all.len() >= MOST_RESULTS {
            all.clear();
        }
        all.insert(key, found.clone());
    });
    Ok(found)
}

#[cold]
fn noted(op: &OpRef, args: &[Aval], outs: &mut [Aval]) -> Result<()> {
    let Some(host) = HOST.get() else { return Ok(()) };
    if !op.subjaxprs().is_empty() {
        return Ok(()); // the types of its programs' results say it
    }
    outs.iter_mut().for_each(|out| out.spread = 0);
    let found = results(host, op, args, outs)?;
    outs.iter_mut().zip(found).for_each(|(out, spread)| out.spread = spread);
    Ok(())
}

/// Whether the type of this number says of manual axes that a sum over them is due, of the value or of its gradient.
#[inline]
pub fn is_marked(spread: u32) -> bool {
    spread != 0 && text_of(spread).is_some_and(|t| !t.due.is_none())
}

/// The operations that change nothing but what the type says of sums that are due.
pub const MARKING: [&str; 2] = ["preduced", "vary_unreduced_cast_p"];

/// Whether types of results say of sums that are due what those of operands do not.
pub fn marks_results(op: &OpRef) -> bool {
    MARKING.contains(&op.name())
}

/// Of these axes, the ones that the type of this number says sums to be due over, as `kind` picks them, and the others.
pub fn due_over(spread: u32, kind: fn(&Due) -> &[String], axes: &[Arc<str>]) -> (Axes, Axes) {
    let text = if spread == 0 { None } else { text_of(spread) };
    let is_due = |axis: &&Arc<str>| text.as_ref().is_some_and(|t| kind(&t.due).iter().any(|n| **n == ***axis));
    (axes.iter().filter(is_due).cloned().collect(), axes.iter().filter(|a| !is_due(a)).cloned().collect())
}

/// The numbers of an operation's results inside of a function that is mapped over a mesh, 0 where they say nothing of
/// sums that are due. Errors where the operation cannot be done to the terms of one.
#[cold]
pub fn marks(op: &OpRef, args: &[Aval]) -> Result<Vec<u32>> {
    let refs: SmallVec<[&Aval; 3]> = args.iter().collect();
    let outs: SmallVec<[Aval; 2]> = op.abstract_eval(&refs)?.into_iter().map(|out| Aval { spread: 0, ..out }).collect();
    match HOST.get() {
        Some(host) if op.subjaxprs().is_empty() => {
            let found = results(host, op, args, &outs)?;
            Ok(found.into_iter().map(marked_alone).collect())
        }
        Some(_) => Ok(op.abstract_eval(&refs)?.into_iter().map(|out| marked_alone(out.spread)).collect()),
        None => Ok(vec![0; outs.len()]),
    }
}

fn marked_alone(spread: u32) -> u32 {
    if is_marked(spread) { spread } else { 0 }
}

/// The number of a type; 0 where it says of sums that are due.
pub fn without_marks(spread: u32) -> u32 {
    spread - marked_alone(spread)
}

/// The sharding over a program's devices that a type says; `None` if it says none.
pub fn place(aval: &Aval) -> Result<Option<DeviceId>> {
    HOST.get().filter(|_| aval.spread != 0).map_or(Ok(None), |host| (host.place)(aval.spread))
}

/// The type with an axis more, divided as its number says.
pub fn with_axis(mut aval: Aval, at: usize, size: usize, axis: u32) -> Aval {
    aval.shape.insert(at, size);
    aval.spread = moved(aval.spread, at, Some(axis));
    aval
}

/// The type without an axis.
pub fn without_axis(mut aval: Aval, at: usize) -> Aval {
    aval.shape.remove(at);
    aval.spread = if Flag::Explicit.get() { moved(aval.spread, at, None) } else { 0 };
    aval
}

#[inline]
fn moved(spread: u32, at: usize, more: Option<u32>) -> u32 {
    if spread == 0 { 0 } else { HOST.get().and_then(|h| (h.moved)(spread, at, more).ok()).unwrap_or_default() }
}

/// The value, divided as its type must say: what goes back to a value has its sharding.
#[inline]
pub fn settled(v: Value, aval: &Aval) -> Result<Value> {
    if aval.spread == 0 { Ok(v) } else { settle(v, aval) }
}

#[cold]
fn settle(v: Value, aval: &Aval) -> Result<Value> {
    if v.aval().spread == aval.spread {
        return Ok(v);
    }
    HOST.get().map_or(Ok(v.clone()), |h| (h.settled)(&v, aval.spread))
}

/// Whether two types are divided alike, or nobody says how one of them is.
pub fn alike(a: &Aval, b: &Aval) -> bool {
    a.spread == b.spread || a.spread == 0 || b.spread == 0
}
