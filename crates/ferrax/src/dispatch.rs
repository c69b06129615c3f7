//! How one operation on concrete values runs.
//!
//! Elementwise operations go straight to their kernels ([`direct`]). Operations with a hook of their own (calls,
//! callbacks) run through it. All others run through a program for their operand types, lowered once and kept.
//!
//! Read next: `executable.rs` for whole programs.

use crate::device::{self, Placement};
use crate::{debug, direct, long_work};
use ferrax_base::shape::{size, total};
use ferrax_base::{Aval, Buffer, Result, Shape, error};
use ferrax_cache::{Cache, Entry, cache::hash_of};
use ferrax_cpu::{Arg, Program};
use ferrax_ir::array::Pin;
use ferrax_ir::lower::lower_op;
use ferrax_ir::{Array, Avals, Lit, OpRef, Value, Values};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

/// An operation on operands of one list of types.
struct OpKey {
    hash: u64,
    op: OpRef,
    args: SmallVec<[Aval; 3]>,
}

impl Hash for OpKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl PartialEq for OpKey {
    fn eq(&self, o: &OpKey) -> bool {
        self.op == o.op && self.args == o.args
    }
}

impl Eq for OpKey {}

/// The program of one operation.
struct OpProgram {
    outs: Avals,
    program: Program,
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
    if let Some(results) = op.eager(op, args) {
        return results;
    }
    let placement = device::place(args, |i| format!("operand {i} of {}", op.name()))?;
    let compiled = op_program(op, args)?;
    let results = run(&compiled.value, args, placement)?;
    if debug::checking() {
        debug::check(op, args, &results)?;
    }
    Ok(results)
}

fn op_program(op: &OpRef, args: &[Value]) -> Result<Arc<Entry<OpKey, OpProgram>>> {
    let mut hasher = rustc_hash::FxHasher::default();
    op.hash(&mut hasher);
    for a in args {
        (a.dtype(), a.shape(), a.weak()).hash(&mut hasher);
    }
    let hash = hasher.finish();
    let same = |k: &OpKey| {
        let types = |(a, v): (&Aval, &Value)| a.dtype == v.dtype() && a.weak == v.weak() && *a.shape == *v.shape();
        k.op == *op && k.args.len() == args.len() && k.args.iter().zip(args).all(types)
    };
    if let Some(found) = OP_PROGRAMS.get_hashed(hash_of(&hash), same) {
        return Ok(found);
    }
    let avals: SmallVec<[Aval; 3]> = args.iter().map(Value::aval).collect();
    let refs: SmallVec<[&Aval; 4]> = avals.iter().collect();
    let outs = op.abstract_eval(&refs)?;
    let program = Program::compile(Arc::new(lower_op(op, &refs, &outs)?))?;
    drop(refs);
    let inner: usize = op.subjaxprs().iter().map(|j| j.bytes()).sum();
    let bytes = size_of::<Entry<OpKey, OpProgram>>() + 2000 + inner;
    Ok(OP_PROGRAMS.insert(OpKey { hash, op: op.clone(), args: avals }, OpProgram { outs, program }, bytes, None))
}

/// Borrows operands' buffers for a run; constants get buffers of their own.
pub(crate) struct Operands<'a> {
    pins: SmallVec<[Pin<'a>; 6]>,
    constants: SmallVec<[Buffer; 4]>,
    /// Per operand: index into `pins`, or into `constants` from the end.
    places: SmallVec<[i32; 8]>,
}

impl<'a> Operands<'a> {
    pub(crate) fn new() -> Self {
        Operands { pins: SmallVec::new(), constants: SmallVec::new(), places: SmallVec::new() }
    }

    pub(crate) fn push_array(&mut self, a: &'a Array) -> Result<()> {
        self.places.push(self.pins.len() as i32);
        self.pins.push(a.pin()?);
        Ok(())
    }

    pub(crate) fn push(&mut self, v: &'a Value) -> Result<()> {
        match v {
            Value::Array(a) => self.push_array(a),
            Value::Lit(l) => {
                self.places.push(-1 - self.constants.len() as i32);
                self.constants.push(constant(l)?);
                Ok(())
            }
            Value::Tracer(_) => Err(error!(Internal, "a traced value reached the dispatcher")),
        }
    }

    pub(crate) fn get(&self, i: usize) -> &Buffer {
        match self.places[i] {
            p if p >= 0 => &self.pins[p as usize],
            p => &self.constants[(-1 - p) as usize],
        }
    }
}

pub(crate) fn constant(l: &Lit) -> Result<Buffer> {
    Buffer::from_bytes(&l.scalar.to_bytes()[..l.scalar.dtype.size()])
}

fn run(compiled: &OpProgram, args: &[Value], placement: Placement) -> Result<Values> {
    let mut operands = Operands::new();
    for a in args {
        operands.push(a)?;
    }
    let mut buffers: SmallVec<[Arg<'_>; 6]> = (0..args.len()).map(|i| Arg::Borrowed(operands.get(i))).collect();
    let elements = total(args.iter().map(|a| size(a.shape())).chain(compiled.outs.iter().map(Aval::size)));
    let outs = long_work::run(elements, || compiled.program.run(&mut buffers))?;
    Ok(placed(outs, &compiled.outs, placement))
}

/// Result arrays of buffers.
pub(crate) fn placed(buffers: impl IntoIterator<Item = Buffer>, avals: &[Aval], placement: Placement) -> Values {
    let array = |(buffer, aval): (Buffer, &Aval)| {
        Value::Array(Array::placed(aval.clone(), buffer, placement.device, placement.committed))
    };
    buffers.into_iter().zip(avals).map(array).collect()
}

/// A new array of these bytes on the default device; errors when they are not just its elements.
pub fn array_from_bytes(aval: Aval, bytes: &[u8]) -> Result<Array> {
    if aval.bytes() != bytes.len() {
        return Err(error!(Value, "{} bytes cannot be the elements of {}", bytes.len(), aval.long_text()));
    }
    let place = Placement::uncommitted();
    Ok(Array::placed(aval, Buffer::from_bytes(bytes)?, place.device, place.committed))
}

/// A rank-0 array on the default device.
pub fn scalar_array(lit: &Lit) -> Result<Array> {
    let aval = Aval { shape: Shape::new(), dtype: lit.scalar.dtype, weak: lit.weak };
    array_from_bytes(aval, &lit.scalar.to_bytes()[..lit.scalar.dtype.size()])
}

/// Makes the cache, as [`crate::init`] does.
pub(crate) fn make_caches() {
    LazyLock::force(&OP_PROGRAMS);
}

/// Forgets every program of a single operation.
pub fn clear_cache() {
    OP_PROGRAMS.clear();
}
