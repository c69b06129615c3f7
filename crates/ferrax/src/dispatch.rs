//! How one operation on concrete values runs.
//!
//! Elementwise operations go straight to their kernels ([`direct`]). Operations with a hook of their own (calls,
//! callbacks) run through it. All others run through a program for their operand types, lowered once and kept.
//!
//! Read next: `executable.rs` for whole programs.

use crate::device::{self, Placement};
use crate::engine::{Compiled, Source};
use crate::partitioned::{self, Layout};
use crate::watch::{self, Ran};
use crate::{debug, direct, sharded};
use ferrax_base::config::watched;
use ferrax_base::shape::{size, total};
use ferrax_base::source::is_making;
use ferrax_base::{Arg, Aval, Buffer, Memory, Outputs, Result, Shape, error, long_work};
use ferrax_cache::{Cache, Entry, cache::hash_of};
use ferrax_ir::array::MemoryPin;
use ferrax_ir::lower::lower_op;
use ferrax_ir::{Array, Avals, DeviceId, Lit, OpRef, Value, Values};
use ferrax_ops::callback::{DEBUG_CALLBACK, DEBUG_PRINT, IO_CALLBACK, PURE_CALLBACK};
use ferrax_ops::control::remat::REMAT;
use ferrax_ops::elementwise::identity::COPY;
use ferrax_ops::placed::SHARDING_CONSTRAINT;
use ferrax_transform::eval_jaxpr;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

/// An operation on operands of one list of types, on a device.
struct OpKey {
    hash: u64,
    op: OpRef,
    args: SmallVec<[Aval; 3]>,
    device: DeviceId,
    /// How it lies on several devices, where it does.
    layout: Option<Layout>,
}

impl OpKey {
    /// Whether it is that of this call.
    fn is(&self, op: &OpRef, args: &[Value], device: DeviceId, layout: Option<&Layout>) -> bool {
        let types = |(a, v): (&Aval, &Value)| a.dtype == v.dtype() && a.weak == v.weak() && *a.shape == *v.shape();
        let here = self.device == device && self.layout.as_ref() == layout;
        self.op == *op && self.args.len() == args.len() && here && self.args.iter().zip(args).all(types)
    }
}

/// The hash of an operation on operands of some types.
fn hash_of_call(op: &OpRef, args: &[Value]) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    op.hash(&mut hasher);
    for a in args {
        (a.dtype(), a.shape(), a.weak()).hash(&mut hasher);
    }
    hasher.finish()
}

impl Hash for OpKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl PartialEq for OpKey {
    fn eq(&self, o: &OpKey) -> bool {
        self.op == o.op && self.args == o.args && self.device == o.device && self.layout == o.layout
    }
}

impl Eq for OpKey {}

/// The program of one operation.
struct OpProgram {
    outs: Avals,
    compiled: Box<dyn Compiled>,
    /// Whether a program in the operation says or asks how values are sharded.
    says_where: bool,
    /// The device that constants of such a program are committed to.
    home: Option<DeviceId>,
    /// Where results went, by the shardings of the operands: of what a user asked for, and of what is made for it.
    places: [sharded::Known; 2],
}

/// Bytes of programs of single operations that are kept.
const LIMIT: usize = 32 << 20;

/// Programs by operation and operand types.
static OP_PROGRAMS: LazyLock<Cache<OpKey, OpProgram>> = LazyLock::new(|| Cache::new(LIMIT));

/// Runs an operation on concrete values.
pub fn evaluate(op: &OpRef, args: &[Value]) -> Result<Values> {
    if let Some(a) = direct::run_values(op, args)? {
        return Ok(smallvec::smallvec![Value::Array(a)]);
    }
    if watched() {
        return watch::around(&Ran::Operation(op), args, || evaluate(op, args));
    }
    if let Some(results) = op.eager(op, args) {
        return results;
    }
    if let Some(p) = op.of(&REMAT).filter(|p| p.jaxpr.eqns.iter().any(|eqn| eqn.op.runs_itself())) {
        return Ok(eval_jaxpr(&p.jaxpr, args)?.into());
    }
    if let Some(p) = op.of(&SHARDING_CONSTRAINT) {
        let array = crate::executable::materialize(args[0].clone())?;
        return Ok(smallvec::smallvec![Value::Array(device::copied(&array, array.aval().weak, p.sharding.0, true)?)]);
    }
    let told = device::place(args, |i| format!("argument {i} of {}", op.name()))?;
    let results = match told.device.cut() {
        Some(_) => {
            let asked = asked(op, args)?;
            let Asked { outs, places } = &asked.value;
            let places = sharded::of_operation(&places[usize::from(is_making())], op, args, outs, told)?;
            run_over(op, args, told, &places)?.ok_or_else(|| error!(Internal, "operands over devices lie on one"))?
        }
        None => over_one(op, args, told)?,
    };
    if debug::checking() {
        debug::check(op, args, &results)?;
    }
    Ok(results)
}

/// Runs an operation on one device, or on those that share a memory.
fn over_one(op: &OpRef, args: &[Value], told: Placement) -> Result<Values> {
    let mut program = op_program(op, args, compiled_for(told.device), None)?;
    let placement = told.or_home(program.value.home);
    if compiled_for(placement.device) != compiled_for(told.device) {
        program = op_program(op, args, compiled_for(placement.device), None)?;
    }
    run(&program.value, op, args, placement)
}

/// Runs an operation over several devices with memories of their own; `None` where neither its place nor its results' are.
fn run_over(op: &OpRef, args: &[Value], place: Placement, places: &[Placement]) -> Result<Option<Values>> {
    let Some(layout) = Layout::of(place, args.iter().map(partitioned::place_of), places) else { return Ok(None) };
    let (outs, program) = run_by(layout, op, args)?;
    Ok(Some(placed_each(outs, &program.value.outs, places)))
}

fn run_by(layout: Layout, op: &OpRef, args: &[Value]) -> Result<(Outputs, Arc<Entry<OpKey, OpProgram>>)> {
    let place = layout.place();
    let program = op_program(op, args, compiled_for(place.device), Some(layout))?;
    Ok((run_program(&program.value, args, place)?, program))
}

/// The memory of an array by another sharding over its devices, whose memories are their own: they exchange what they have.
/// `None` for other devices.
pub(crate) fn moved(a: &Array, device: DeviceId) -> Result<Option<Memory>> {
    let over = |d: DeviceId| d.cut().map(|(sharding, _)| &sharding.devices);
    if over(a.device()).is_none() || over(a.device()) != over(device) {
        return Ok(None);
    }
    let place = |device| Placement { device, committed: true };
    let layout = Layout::of(place(a.device()), std::iter::once(Some(a.device())), &[place(device)]);
    layout.map_or(Ok(None), |layout| Ok(run_by(layout, &COPY.op(), &[Value::Array(a.clone())])?.0.pop()))
}

/// An operation on operands over several devices with memories of their own: its results' types, and where they went.
struct Asked {
    outs: Avals,
    places: [sharded::Known; 2],
}

/// Those by operation and operand types; nothing is compiled for them.
static ASKED: LazyLock<Cache<OpKey, Asked>> = LazyLock::new(|| Cache::new(LIMIT / 8));

fn asked(op: &OpRef, args: &[Value]) -> Result<Arc<Entry<OpKey, Asked>>> {
    let (hash, device) = (hash_of_call(op, args), DeviceId::default());
    if let Some(found) = ASKED.get_hashed(hash_of(&hash), |k| k.is(op, args, device, None)) {
        return Ok(found);
    }
    let avals: SmallVec<[Aval; 3]> = args.iter().map(Value::aval).collect();
    let outs = op.abstract_eval(&avals.iter().collect::<SmallVec<[&Aval; 4]>>())?;
    let key = OpKey { hash, op: op.clone(), args: avals, device, layout: None };
    let asked = Asked { outs, places: Default::default() };
    if calls_back(op) {
        return Ok(Entry::apart(key, asked));
    }
    Ok(ASKED.insert(key, asked, size_of::<Entry<OpKey, Asked>>() + 500, None))
}

/// The device that programs for this one are compiled for: CPU devices share them.
#[inline]
pub(crate) fn compiled_for(device: DeviceId) -> DeviceId {
    if device.on_cpu() { DeviceId::default() } else { device.single() }
}

/// Whether host code was made for this very operation, or for one of its programs: no other call finds what is kept of
/// it, which would only keep alive what that code closes over.
fn calls_back(op: &OpRef) -> bool {
    let callback = [&PURE_CALLBACK, &IO_CALLBACK, &DEBUG_CALLBACK, &DEBUG_PRINT].into_iter().any(|def| op.is(def));
    callback || op.subjaxprs().iter().any(|program| program.eqns.iter().any(|eqn| calls_back(&eqn.op)))
}

fn op_program(
    op: &OpRef,
    args: &[Value],
    device: DeviceId,
    layout: Option<Layout>,
) -> Result<Arc<Entry<OpKey, OpProgram>>> {
    let hash = hash_of_call(op, args);
    if let Some(found) = OP_PROGRAMS.get_hashed(hash_of(&hash), |k| k.is(op, args, device, layout.as_ref())) {
        return Ok(found);
    }
    let avals: SmallVec<[Aval; 3]> = args.iter().map(Value::aval).collect();
    let refs: SmallVec<[&Aval; 4]> = avals.iter().collect();
    let outs = op.abstract_eval(&refs)?;
    let graph = Arc::new(lower_op(op, &refs, &outs)?);
    let source = Source { graph: &graph, donated: &[], device: device.index(), name: op.name(), options: &[] };
    let compiled = partitioned::compile(layout.as_ref(), device, &source, Vec::new())?;
    drop(refs);
    let inner: usize = op.subjaxprs().iter().map(|j| j.bytes()).sum();
    let (key, program) = (
        OpKey { hash, op: op.clone(), args: avals, device, layout },
        OpProgram {
            outs,
            compiled,
            says_where: sharded::op_says_where(op),
            home: device::home_of_op(op),
            places: Default::default(),
        },
    );
    if calls_back(op) {
        return Ok(Entry::apart(key, program));
    }
    Ok(OP_PROGRAMS.insert(key, program, size_of::<Entry<OpKey, OpProgram>>() + 2000 + inner, None))
}

/// The memory of operands for a run on a device: that of arrays there is borrowed, others are copied to it.
pub(crate) struct Operands<'a> {
    device: DeviceId,
    pins: SmallVec<[MemoryPin<'a>; 6]>,
    constants: SmallVec<[Memory; 4]>,
    /// Per operand: index into `pins`, or into `constants` from the end.
    places: SmallVec<[i32; 8]>,
}

impl<'a> Operands<'a> {
    pub(crate) fn new(device: DeviceId) -> Self {
        Operands { device, pins: SmallVec::new(), constants: SmallVec::new(), places: SmallVec::new() }
    }

    pub(crate) fn push_array(&mut self, a: &'a Array) -> Result<()> {
        if !reachable(a, self.device) {
            let copy = device::upload(a.aval(), &*a.pin()?, self.device)?;
            self.push_constant(copy);
            return Ok(());
        }
        self.places.push(self.pins.len() as i32);
        self.pins.push(a.pin_memory()?);
        Ok(())
    }

    pub(crate) fn push(&mut self, v: &'a Value) -> Result<()> {
        match v {
            Value::Array(a) => self.push_array(a)?,
            Value::Lit(l) => self.push_constant(constant(l, self.device)?),
            Value::Tracer(_) => return Err(error!(Internal, "a traced value reached the dispatcher")),
        }
        Ok(())
    }

    fn push_constant(&mut self, memory: Memory) {
        self.places.push(-1 - self.constants.len() as i32);
        self.constants.push(memory);
    }

    pub(crate) fn get(&self, i: usize) -> &Memory {
        match self.places[i] {
            p if p >= 0 => &self.pins[p as usize],
            p => &self.constants[(-1 - p) as usize],
        }
    }
}

/// Whether a run on a device can use an array's memory; CPU devices use the host's copy of any.
#[inline]
pub(crate) fn reachable(a: &Array, device: DeviceId) -> bool {
    device.on_cpu() || partitioned::reachable(a.device(), device)
}

pub(crate) fn constant(l: &Lit, device: DeviceId) -> Result<Memory> {
    let buffer = Buffer::from_bytes(&l.scalar.to_bytes()[..l.scalar.dtype.size()])?;
    if device.on_cpu() { Ok(buffer.into()) } else { device::upload(&Aval::scalar(l.scalar.dtype), &buffer, device) }
}

/// The memory of an operation's results.
fn run_program(program: &OpProgram, args: &[Value], placement: Placement) -> Result<Outputs> {
    let mut operands = Operands::new(placement.device);
    for a in args {
        operands.push(a)?;
    }
    let mut buffers: SmallVec<[Arg<'_>; 6]> = (0..args.len()).map(|i| Arg::Borrowed(operands.get(i))).collect();
    let elements = total(args.iter().map(|a| size(a.shape())).chain(program.outs.iter().map(Aval::size)));
    long_work::run(elements, || program.compiled.run(&mut buffers, placement.device.index()))
}

fn run(program: &OpProgram, op: &OpRef, args: &[Value], placement: Placement) -> Result<Values> {
    if placement.device.is_sharded() || program.says_where {
        let known = &program.places[usize::from(is_making())];
        let places = sharded::of_operation(known, op, args, &program.outs, placement)?;
        if let Some(results) = run_over(op, args, placement, &places)? {
            return Ok(results);
        }
        return Ok(placed_each(run_program(program, args, placement)?, &program.outs, &places));
    }
    Ok(placed(run_program(program, args, placement)?, &program.outs, placement))
}

/// Result arrays of what a run gave.
pub(crate) fn placed(outs: impl IntoIterator<Item = Memory>, avals: &[Aval], placement: Placement) -> Values {
    let array = |(memory, aval): (Memory, &Aval)| {
        Value::Array(Array::placed(aval.clone(), memory, placement.device, placement.committed))
    };
    outs.into_iter().zip(avals).map(array).collect()
}

/// As [`placed`], each where it goes.
pub(crate) fn placed_each(outs: impl IntoIterator<Item = Memory>, avals: &[Aval], places: &[Placement]) -> Values {
    let array = |((memory, aval), to): ((Memory, &Aval), &Placement)| {
        Value::Array(Array::placed(aval.clone(), memory, to.device, to.committed))
    };
    outs.into_iter().zip(avals).zip(places).map(array).collect()
}

/// A new array of these bytes on the default device; errors when they are not just its elements.
pub fn array_from_bytes(aval: Aval, bytes: &[u8]) -> Result<Array> {
    if aval.bytes() != bytes.len() {
        return Err(error!(Value, "{} bytes cannot be the elements of {}", bytes.len(), aval.long_text()));
    }
    Placement::uncommitted().array(aval, Buffer::from_bytes(bytes)?)
}

/// A rank-0 array on the default device.
pub fn scalar_array(lit: &Lit) -> Result<Array> {
    let aval = Aval { shape: Shape::new(), dtype: lit.scalar.dtype, weak: lit.weak, vary: 0, spread: 0 };
    array_from_bytes(aval, &lit.scalar.to_bytes()[..lit.scalar.dtype.size()])
}

/// Makes the cache, as [`crate::init`] does.
pub(crate) fn make_caches() {
    LazyLock::force(&OP_PROGRAMS);
    LazyLock::force(&ASKED);
}

/// Forgets every program of a single operation.
pub fn clear_cache() {
    OP_PROGRAMS.clear();
    ASKED.clear();
}
