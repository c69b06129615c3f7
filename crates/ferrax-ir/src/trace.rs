//! Traces, tracers and `bind`.
//!
//! A trace is live or ended; there are no levels. Every trace has an id that grows with creation, so the
//! innermost of several is the one with the largest id. `bind` hands an operation to the innermost live trace
//! among its operands and the staging trace in force on this thread; with neither, the operation runs.
//! Using a tracer whose trace has ended is the leak error.

use crate::array::Array;
use crate::jaxpr::{Atom, DebugInfo, Effects, Jaxpr, Mapped, Var};
use crate::manual;
use crate::op::{Op, OpRef};
use crate::value::{Lit, Value, Values};
use ferrax_base::fork::Lock;
use ferrax_base::{Aval, Error, ErrorKind, Result, Source, config, error};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};

/// Order of creation; larger is further in. Zero is "no trace".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceId(pub u64);

static NEXT: AtomicU64 = AtomicU64::new(1);

impl TraceId {
    /// A fresh id, larger than all before it.
    pub fn fresh() -> TraceId {
        TraceId(NEXT.fetch_add(1, Relaxed))
    }

    /// The largest id so far.
    pub fn latest() -> TraceId {
        TraceId(NEXT.load(Relaxed) - 1)
    }
}

/// A transformation in progress.
pub trait Trace: Send + Sync {
    /// Its place among traces.
    fn id(&self) -> TraceId;
    /// Whether it may still process operations.
    fn is_live(&self) -> bool;
    /// Processes an operation; `this` is the trace itself, for making tracers.
    fn process(&self, this: &TraceRef, op: &OpRef, args: &[Value]) -> Result<Values>;
    /// The trace whose values it takes for its own too: the `vmap` that it continues; itself otherwise.
    fn family(&self) -> TraceId {
        self.id()
    }
    /// The transformation's name as users know it: `jit`, `grad`, `vmap`, ….
    fn transform(&self) -> &'static str;
    /// The transformed function, for messages.
    fn debug(&self) -> &DebugInfo;
    /// What a staged value depends on, in the user's terms ("the value of the argument x").
    fn explain(&self, _tracer: &Tracer) -> Option<String> {
        None
    }
    /// Shows the program that a staged value stands in, as far as it has been recorded, and the value's variable.
    fn recorded(&self, _tracer: &Tracer, _see: &mut dyn FnMut(&Jaxpr, Var)) {}
    /// Notes an axis of a value that a `vmap` further in has added; the checks of numbers ask for it.
    fn note_mapped(&self, _tracer: &Tracer, _axis: &Mapped) {}
    /// A value of the trace that stands for an older one, apart from all others that do, and its number among what the
    /// trace captured; `None` where the trace captures nothing.
    fn stand_in(&self, _this: &TraceRef, _value: &Value) -> Option<(Value, usize)> {
        None
    }
    /// A tracer of its own for data that the function has made: what a program works on is traced, whoever asks.
    fn constant(&self, _this: &TraceRef, _value: &Value) -> Option<Result<Value>> {
        None
    }
    /// The array behind a tracer that [`Trace::constant`] gave, for a program inside that reads it.
    fn data(&self, _tracer: &Tracer) -> Option<Array> {
        None
    }
    /// A further parameter of the program, behind those that the function was called with; `None` where what the trace
    /// makes is called with these alone.
    fn new_arg(&self, _this: &TraceRef, _aval: &Aval) -> Option<Value> {
        None
    }
}

/// A shared trace.
pub type TraceRef = Arc<dyn Trace>;

/// What a tracer stands for; the trace that made it knows which variant it holds.
#[derive(Clone, Debug)]
pub enum Payload {
    /// A variable or literal of the program being recorded (staging and tape traces).
    Staged(Atom),
    /// A value with its tangent; `None` is a symbolic zero.
    #[allow(missing_docs)]
    Jvp { primal: Value, tangent: Option<Value> },
    /// A value with its batch axis; `None` is unbatched.
    #[allow(missing_docs)]
    Batched { value: Value, axis: Option<usize> },
    /// An object of the host's, of a transformation that is defined there.
    Hosted(Arc<dyn Any + Send + Sync>),
}

struct Inner {
    trace: TraceRef,
    aval: Aval,
    payload: Payload,
    source: Source,
}

/// A stand-in for a value under a transformation; cloning shares it.
#[derive(Clone)]
pub struct Tracer(Arc<Inner>);

impl Tracer {
    /// A tracer of `trace`, created where user code stands now.
    pub fn new(trace: TraceRef, aval: Aval, payload: Payload) -> Tracer {
        Tracer::at(trace, aval, payload, Source::here())
    }

    /// A tracer of `trace`, created at a known place.
    pub fn at(trace: TraceRef, aval: Aval, payload: Payload, source: Source) -> Tracer {
        Tracer(Arc::new(Inner { trace, aval, payload, source }))
    }

    /// Shape, dtype and weak type.
    #[inline]
    pub fn aval(&self) -> &Aval {
        &self.0.aval
    }

    /// The trace it belongs to.
    #[inline]
    pub fn trace(&self) -> &TraceRef {
        &self.0.trace
    }

    /// What it stands for.
    #[inline]
    pub fn payload(&self) -> &Payload {
        &self.0.payload
    }

    /// Where it was made.
    pub fn source(&self) -> Source {
        self.0.source
    }

    /// Whether two handles are the same tracer.
    pub fn ptr_eq(&self, other: &Tracer) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A handle that does not keep it alive.
    pub fn downgrade(&self) -> WeakTracer {
        WeakTracer(Arc::downgrade(&self.0))
    }

    /// Number of handles to the tracer.
    pub fn handles(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// Address that identifies the tracer while it lives.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// The number that it stands for in a program that is being recorded, unless it is to be seen as a constant.
    pub fn literal(&self) -> Option<Lit> {
        match self.payload() {
            Payload::Staged(Atom::Lit(l)) if self.trace().is_live() && self.trace().id() >= Showing::since() => {
                Some(*l)
            }
            _ => None,
        }
    }

    /// The concrete value behind it, looking through jvp tracers of concrete values.
    pub fn concrete(&self) -> Option<Value> {
        match &self.0.payload {
            Payload::Jvp { primal: Value::Tracer(t), .. } => t.concrete(),
            Payload::Jvp { primal, .. } => Some(primal.clone()),
            _ => None,
        }
    }
}

/// A tracer that is not kept alive.
pub struct WeakTracer(Weak<Inner>);

impl WeakTracer {
    /// The tracer, if it is still there.
    pub fn upgrade(&self) -> Option<Tracer> {
        self.0.upgrade().map(Tracer)
    }
}

impl Value {
    /// Notes an axis that a `vmap` has added, with the trace that the value belongs to.
    pub fn note_mapped(&self, axis: &Mapped) {
        if let Value::Tracer(t) = self {
            t.trace().note_mapped(t, axis);
        }
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Traced<{}>", self.aval())
    }
}

thread_local! {
    /// The staging trace in force, innermost last; `None` entries force evaluation.
    static BASE: RefCell<Vec<(TraceId, Option<TraceRef>)>> = const { RefCell::new(Vec::new()) };
}

thread_local! {
    /// The transformation whose function runs on this thread.
    static CURRENT: Cell<TraceId> = const { Cell::new(TraceId(0)) };
}

/// The transformation whose function runs on this thread, zero for none: hosts ask where their objects were made.
pub fn current() -> TraceId {
    CURRENT.get()
}

/// Makes a transformation the [`current`] one until dropped.
pub struct CurrentGuard(TraceId);

impl CurrentGuard {
    /// Enters the function of a transformation.
    pub fn enter(id: TraceId) -> CurrentGuard {
        CurrentGuard(CURRENT.replace(id))
    }
}

impl Drop for CurrentGuard {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// What was in force before something else is, to go back to.
#[derive(Clone, Copy, Debug)]
pub struct Before {
    depth: usize,
    current: TraceId,
}

/// Puts a staging trace, or none, in force on this thread, with the transformation whose function runs.
pub fn enter(base: Option<TraceRef>, current: TraceId) -> Before {
    let depth = BASE.with_borrow_mut(|b| {
        b.push((base.as_ref().map_or(TraceId(0), |t| t.id()), base));
        b.len() - 1
    });
    Before { depth, current: CURRENT.replace(current) }
}

/// Goes back to what was in force; what a host has entered since and not left, because an error went by, is left too.
pub fn leave(before: Before) {
    let left = BASE.with_borrow_mut(|b| b.split_off(before.depth.min(b.len())));
    CURRENT.set(before.current);
    drop(left); // not while the list is borrowed: a trace may be the host's
}

thread_local! {
    /// The newest trace in force that shows constants.
    static SHOWING: Cell<TraceId> = const { Cell::new(TraceId(0)) };
}

/// While it lives, a program is recorded that shows the constants it has: numbers from outside of it are among them.
pub struct Showing(TraceId);

impl Showing {
    /// Puts a trace that shows them in force, on this thread.
    pub fn from(trace: TraceId) -> Self {
        Showing(SHOWING.replace(trace))
    }

    /// The newest one in force: what belongs to an older trace is outside.
    pub fn since() -> TraceId {
        SHOWING.get()
    }
}

impl Drop for Showing {
    fn drop(&mut self) {
        SHOWING.set(self.0);
    }
}

/// Puts a staging trace in force on this thread until dropped.
pub struct BaseGuard(Before);

impl BaseGuard {
    /// Stages every operation into `trace`, those on plain arrays too.
    pub fn stage(trace: TraceRef) -> BaseGuard {
        let id = trace.id();
        BaseGuard(enter(Some(trace), id))
    }

    /// Runs operations on plain arrays at once, even while a function is being staged.
    pub fn eager() -> BaseGuard {
        BaseGuard(enter(None, TraceId(0)))
    }
}

impl Drop for BaseGuard {
    fn drop(&mut self) {
        leave(self.0);
    }
}

/// The staging trace in force on this thread.
pub fn base() -> Option<TraceRef> {
    BASE.with_borrow(|b| b.last().and_then(|(_, t)| t.clone()))
}

/// The id of the staging trace in force on this thread; zero when there is none.
pub fn base_id() -> TraceId {
    BASE.with_borrow(|b| b.last().map_or(TraceId(0), |(id, _)| *id))
}

/// Data that a function makes while it is being staged, as a tracer of its program; the same value elsewhere.
pub fn made(value: Value) -> Result<Value> {
    if matches!(value, Value::Tracer(_)) {
        return Ok(value);
    }
    base().and_then(|base| base.constant(&base, &value)).unwrap_or(Ok(value))
}

/// Whether operations on plain arrays run at once on this thread.
#[inline]
pub fn is_eager() -> bool {
    BASE.with_borrow(|b| b.last().is_none_or(|(_, t)| t.is_none()))
}

/// Whether a function of plain arrays runs at once on this thread, whatever it is made of: outside named axes, too.
#[inline]
pub fn is_plain() -> bool {
    AXES_DEPTH.get() == 0 && is_eager()
}

thread_local! {
    /// The traces in force on this thread that run a function over a batch, innermost last.
    static MAPPING: RefCell<Vec<TraceRef>> = const { RefCell::new(Vec::new()) };
    /// Whether one of them continues another.
    static CONTINUED: Cell<bool> = const { Cell::new(false) };
}

/// Changes which traces that run a function over a batch are in force on this thread, until dropped.
pub struct MappingGuard(Vec<TraceRef>);

impl MappingGuard {
    /// Puts a trace in force.
    pub fn enter(trace: TraceRef) -> MappingGuard {
        MappingGuard::change(|all| all.push(trace))
    }

    /// Leaves in force what is further out than a trace, whose rules work there.
    pub fn outside(id: TraceId) -> MappingGuard {
        MappingGuard::change(|all| all.retain(|t| t.id() < id))
    }

    fn change(f: impl FnOnce(&mut Vec<TraceRef>)) -> MappingGuard {
        MAPPING.with_borrow_mut(|all| {
            let before = all.clone();
            f(all);
            CONTINUED.set(all.iter().any(|t| t.family() != t.id()));
            MappingGuard(before)
        })
    }
}

impl Drop for MappingGuard {
    fn drop(&mut self) {
        let before = std::mem::take(&mut self.0);
        CONTINUED.set(before.iter().any(|t| t.family() != t.id()));
        drop(MAPPING.replace(before));
    }
}

/// The trace in force that takes a value of `trace` for its own: the last that continues the same `vmap`.
#[cold]
fn continued(trace: &TraceRef) -> Option<TraceRef> {
    let family = trace.family();
    MAPPING.with_borrow(|all| all.iter().rev().find(|t| t.family() == family && t.id() > trace.id()).cloned())
}

/// The innermost of these traces, when it is further in than `floor` and than the staging trace in force.
fn mapping_trace(floor: TraceId) -> Option<TraceRef> {
    let staging = base_id();
    MAPPING.with_borrow(|all| all.last().filter(|t| t.id() > floor && t.id() > staging).cloned())
}

struct NamedAxis {
    name: Arc<str>,
    size: usize,
    trace: TraceRef,
    /// The bit of a manual axis.
    manual: u32,
}

thread_local! {
    /// The named mapped axes in force on this thread, innermost last.
    static AXES: RefCell<Vec<NamedAxis>> = const { RefCell::new(Vec::new()) };
    static AXES_DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The bits of the manual axes among them.
    static MANUAL: Cell<u32> = const { Cell::new(0) };
}

/// Keeps a named axis in force on this thread until dropped.
pub struct AxisGuard(config::Saved);

impl AxisGuard {
    /// Puts a named axis in force: operations across it go to `trace`, and what is traced depends on it.
    pub fn enter(name: Arc<str>, size: usize, manual: u32, trace: TraceRef) -> Result<AxisGuard> {
        let key: AxisEnv = AXES.with_borrow_mut(|axes| {
            axes.push(NamedAxis { name, size, trace, manual });
            axes.iter().map(|a| (a.name.clone(), a.size, a.manual)).collect()
        });
        AXES_DEPTH.set(AXES_DEPTH.get() + 1);
        MANUAL.set(MANUAL.get() | manual);
        match env_number(key) {
            Some(number) => Ok(AxisGuard(config::set_axes_local(number))),
            None => {
                leave_axis();
                Err(error!(Runtime, "too many combinations of named axes and sizes in one process"))
            }
        }
    }
}

impl Drop for AxisGuard {
    fn drop(&mut self) {
        leave_axis();
        config::restore(self.0);
    }
}

fn leave_axis() {
    let manual = AXES.with_borrow_mut(|axes| {
        axes.pop();
        axes.iter().fold(0, |bits, a| bits | a.manual)
    });
    MANUAL.set(manual);
    AXES_DEPTH.set(AXES_DEPTH.get() - 1);
}

type AxisEnv = Vec<(Arc<str>, usize, u32)>;

/// A number for a combination of named axes; `None` when they are used up.
fn env_number(key: AxisEnv) -> Option<u32> {
    static NUMBERS: Lock<BTreeMap<AxisEnv, u32>> = Lock::new(BTreeMap::new());
    let mut numbers = NUMBERS.lock();
    let next = u32::try_from(numbers.len() + 1).ok().filter(|n| *n <= config::MAX_AXES);
    match numbers.get(&key) {
        Some(&n) => Some(n),
        None => {
            let n = next?;
            numbers.insert(key, n);
            Some(n)
        }
    }
}

/// The innermost trace in force on this thread that runs a function over a batch.
pub fn mapping() -> Option<TraceRef> {
    MAPPING.with_borrow(|all| all.last().cloned())
}

/// The name of the axis in force that a trace maps over.
pub fn axis_of(id: TraceId) -> Option<Arc<str>> {
    AXES.with_borrow(|axes| axes.iter().find(|a| a.trace.id() == id).map(|a| a.name.clone()))
}

/// Whether code runs for the rows of a named axis with all of its values known: outside staging, and outside callbacks.
pub fn is_mapped_eagerly() -> bool {
    AXES_DEPTH.get() > 0 && BASE.with_borrow(Vec::is_empty)
}

/// Size of the innermost mapped axis of this name on this thread.
pub fn named_axis(name: &str) -> Option<usize> {
    AXES.with_borrow(|axes| axes.iter().rev().find(|a| &*a.name == name).map(|a| a.size))
}

/// The bit of the innermost mapped axis of this name on this thread; zero when it is none whose values are checked.
pub fn manual_bit(name: &str) -> u32 {
    if MANUAL.get() == 0 {
        return 0;
    }
    AXES.with_borrow(|axes| axes.iter().rev().find(|a| &*a.name == name).map_or(0, |a| a.manual))
}

/// Whether a trace maps over the innermost manual axis in force: its values have types that say what sums are due.
pub fn is_innermost_manual(id: TraceId) -> bool {
    AXES.with_borrow(|axes| axes.iter().rev().find(|a| a.manual != 0).is_some_and(|a| a.trace.id() == id))
}

/// The bits of the manual axes in force that are further out than a trace: what its values may vary over. Not one that is
/// in force further in, too: there a program that the trace records is being mapped over it, and is outside of it.
pub fn manual_outside(id: TraceId) -> u32 {
    if MANUAL.get() == 0 {
        return 0;
    }
    let bits = |of: &dyn Fn(&NamedAxis) -> bool| {
        AXES.with_borrow(|axes| axes.iter().filter(|a| of(a)).fold(0, |bits, a| bits | a.manual))
    };
    bits(&|a| a.trace.id() < id) & !bits(&|a| a.trace.id() > id)
}

/// The named mapped axes in force on this thread with their sizes, innermost last.
pub fn named_axes() -> Vec<(Arc<str>, usize)> {
    AXES.with_borrow(|axes| axes.iter().map(|a| (a.name.clone(), a.size)).collect())
}

/// Whether an operation, or a program in it, works across the axis of this name.
pub fn works_across(op: &dyn Op, name: &str) -> bool {
    op.effects().contains(Effects::NAMED_AXIS)
        && (op.axes().iter().any(|n| &**n == name)
            || op.subjaxprs().iter().any(|j| j.eqns.iter().any(|e| works_across(&*e.op, name))))
}

/// The trace of the innermost named axis that an operation works across, when it is further in than `floor` and
/// than the staging trace in force.
#[cold]
fn axis_trace(op: &OpRef, floor: TraceId) -> Option<TraceRef> {
    let staging = base_id();
    AXES.with_borrow(|axes| {
        let inner = axes.iter().rev().take_while(|a| a.trace.id() > floor && a.trace.id() > staging);
        // An outer axis of the same name is hidden, and then further out than the one that hides it.
        inner.filter(|a| works_across(&**op, &a.name)).map(|a| a.trace.clone()).next()
    })
}

/// Runs an operation on concrete values; installed by the dispatcher.
pub type Evaluator = fn(&OpRef, &[Value]) -> Result<Values>;

static EVALUATOR: OnceLock<Evaluator> = OnceLock::new();

/// Installs the dispatcher's evaluator; the first call counts.
pub fn set_evaluator(f: Evaluator) {
    let _ = EVALUATOR.set(f);
}

/// Runs an operation on concrete values through the dispatcher.
pub fn evaluate(op: &OpRef, args: &[Value]) -> Result<Values> {
    match EVALUATOR.get() {
        Some(f) => f(op, args),
        None => Err(ferrax_base::error!(Internal, "no dispatcher is installed: call ferrax::init() first")),
    }
}

/// Applies a primitive to values: the one entrance of every operation.
pub fn bind(op: &OpRef, args: &[Value]) -> Result<Values> {
    let mut innermost: Option<TraceRef> = None;
    for arg in args {
        if let Value::Tracer(t) = arg {
            let trace = t.trace();
            if !trace.is_live() {
                return Err(leaked(t));
            }
            let own = if CONTINUED.get() { continued(trace) } else { None };
            let trace = own.as_ref().unwrap_or(trace);
            if innermost.as_ref().is_none_or(|i| trace.id() > i.id()) {
                innermost = Some(trace.clone());
            }
        }
    }
    let floor = innermost.as_ref().map_or(TraceId(0), |t| t.id());
    if MANUAL.get() != 0
        && let Some(args) = manual::widened(op, args)?
    {
        return bind(op, &args);
    }
    if AXES_DEPTH.get() > 0
        && op.effects().contains(Effects::NAMED_AXIS)
        && let Some(trace) = axis_trace(op, floor)
    {
        return trace.process(&trace, op, args);
    }
    // What its function and rules close over, no operand says.
    if op.is_unrecorded()
        && let Some(trace) = mapping_trace(floor)
    {
        return trace.process(&trace, op, args);
    }
    let base = BASE.with_borrow(|b| b.last().filter(|(id, _)| *id > floor).and_then(|(_, t)| t.clone()));
    match (base, innermost) {
        (Some(base), _) => base.process(&base, op, args),
        (None, Some(trace)) => trace.process(&trace, op, args),
        (None, None) => evaluate(op, args),
    }
}

/// Applies a primitive with one result.
pub fn bind1(op: &OpRef, args: &[Value]) -> Result<Value> {
    bind(op, args)?.pop().ok_or_else(|| ferrax_base::error!(Internal, "{} gave no result", op.name()))
}

/// Says where a leaked tracer is kept, in the host's terms ("`store.d['k'][0]`"); installed by the host.
pub type LeakFinder = fn(&Tracer) -> Option<String>;

static LEAK_FINDER: OnceLock<LeakFinder> = OnceLock::new();

/// Installs the host's leak finder; the first call counts.
pub fn set_leak_finder(f: LeakFinder) {
    let _ = LEAK_FINDER.set(f);
}

impl Tracer {
    /// Where the value comes from, as a sentence for an error: the function being traced, and which of its arguments
    /// the value depends on. Empty when nothing is known.
    pub fn origin(&self) -> String {
        let trace = self.trace();
        let about = |work: &str| {
            format!(
                "The error occurred while {work} the function {} for {}.",
                trace.debug().describe(),
                trace.transform()
            )
        };
        let created = || match self.source().location() {
            Some(at) => {
                let line = at.text.as_ref().map_or(String::new(), |text| format!("\n    {}", text.trim()));
                format!(" This value became a tracer due to JAX operations on these lines:\n\n  {at}{line}")
            }
            None => String::new(),
        };
        match self.payload() {
            Payload::Jvp { primal: Value::Tracer(inner), .. } => inner.origin(),
            Payload::Jvp { .. } | Payload::Hosted(_) => String::new(),
            Payload::Batched { .. } => about("batching") + &created(),
            Payload::Staged(_) => match trace.explain(self) {
                Some(what) => {
                    about("tracing")
                        + " This concrete value was not available in Python because it depends on "
                        + &what
                        + "."
                }
                None => about("tracing") + &created(),
            },
        }
    }
}

struct Leak(Tracer);

impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trace = self.0.trace();
        writeln!(
            f,
            "Encountered an unexpected tracer. The function {} traced for {} has a side effect: it kept an \
             intermediate value with type {} beyond its own end, and that value was used now.",
            trace.debug().describe(),
            trace.transform(),
            self.0.aval().long_text()
        )?;
        if let Some(at) = self.0.source().location() {
            writeln!(f, "The leaked value was created on line {at}")?;
            if let Some(text) = &at.text {
                writeln!(f, "    {}", text.trim())?;
            }
        }
        if let Some(place) = LEAK_FINDER.get().and_then(|find| find(&self.0)) {
            writeln!(f, "It is kept in {place}.")?;
        }
        f.write_str(
            "To fix this, return the value from the transformed function instead of storing it in global state. To find \
             the line that stores it, run under `with jax.checking_leaks():`.",
        )
    }
}

/// The error of using a tracer after its trace ended.
#[cold]
pub fn leaked(t: &Tracer) -> Error {
    ErrorKind::UnexpectedTracer(Box::new(Leak(t.clone()))).into()
}
