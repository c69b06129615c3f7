//! Elementwise operations straight to their kernels: no graph, no program, one buffer for the result.
//!
//! Which kernel an operation is comes from its own lowering, asked once for each combination of operand dtypes
//! and kept in a small table of this thread. An operation that lowers to anything but one elementwise node on its
//! operands is not for this path.
//!
//! Read next: `dispatch.rs`, which tries this path first.

use crate::debug;
use crate::device::{self, Placement};
use ferrax_base::config::watched;
use ferrax_base::{Aval, Buffer, DType, Result, Shape, error, long_work};
use ferrax_cpu::eager;
use ferrax_ir::lower::lower_op;
use ferrax_ir::{Array, Lit, OpRef, Value};
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{BinaryOp, Kind, Type, UnaryOp, ValueId};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::hash::Hasher;

/// An operand of a direct call.
#[derive(Clone, Copy)]
pub enum Operand<'a> {
    /// Data.
    Array(&'a Array),
    /// A rank-0 constant.
    Lit(&'a Lit),
}

impl<'a> Operand<'a> {
    /// The operand of a concrete value.
    #[inline]
    pub fn of(v: &'a Value) -> Option<Operand<'a>> {
        match v {
            Value::Array(a) => Some(Operand::Array(a)),
            Value::Lit(l) => Some(Operand::Lit(l)),
            Value::Tracer(_) => None,
        }
    }

    #[inline]
    fn key(self) -> u8 {
        let (dtype, weak) = match self {
            Operand::Array(a) => (a.aval().dtype, a.aval().weak),
            Operand::Lit(l) => (l.scalar.dtype, l.weak),
        };
        (dtype as u8) << 1 | u8::from(weak)
    }

    fn aval(self) -> Aval {
        let (dtype, weak) = match self {
            Operand::Array(a) => (a.aval().dtype, a.aval().weak),
            Operand::Lit(l) => (l.scalar.dtype, l.weak),
        };
        Aval::new(dtype, &[2]).with_weak(weak)
    }
}

/// A kernel of the engine, and which operands it takes.
#[derive(Clone, Copy)]
enum Call {
    Unary(UnaryOp, u8),
    Binary(BinaryOp, [u8; 2]),
    Compare(CompareOp, [u8; 2]),
    Select,
    Clamp,
    IntegerPow(i32),
    Convert,
}

/// Operands a direct call can have.
const MAX: usize = 3;

/// What a row of the table says of an operation.
enum Answer {
    /// It is this kernel.
    Direct { op: OpRef, call: Call, out: DType, weak: bool },
    /// It is not for this path, nor is any other with its hash: the operation itself is not kept, because it may hold
    /// programs with large constants, or functions of the host.
    Other,
}

/// One row of the table.
struct Entry {
    hash: u64,
    keys: [u8; MAX],
    answer: Answer,
}

const ROWS: usize = 512;

thread_local! {
    static TABLE: RefCell<Vec<Option<Entry>>> = const { RefCell::new(Vec::new()) };
}

#[inline]
fn hash_of(op: &OpRef) -> u64 {
    let def = op.def_id() as u64 >> 4;
    match op {
        OpRef::Static(_) => def,
        OpRef::Shared(shared) => {
            let mut hasher = rustc_hash::FxHasher::default();
            shared.params_hash(&mut hasher);
            def ^ hasher.finish() >> 7
        }
    }
}

#[inline]
fn row(hash: u64, keys: [u8; MAX]) -> usize {
    let h = hash as usize ^ usize::from(keys[0]) << 3 ^ usize::from(keys[1]) << 1 ^ usize::from(keys[2]);
    (h ^ h >> 9) % ROWS
}

#[inline]
fn same_op(a: &OpRef, b: &OpRef) -> bool {
    a.def_id() == b.def_id() && (matches!(a, OpRef::Static(_)) || a.params_eq(&**b))
}

/// What an operation on operands of these dtypes is; its lowering says.
#[cold]
fn resolve(op: &OpRef, args: &[Operand<'_>]) -> Answer {
    find_call(op, args).unwrap_or(Answer::Other)
}

fn find_call(op: &OpRef, args: &[Operand<'_>]) -> Option<Answer> {
    // a program goes with the function that it was made of
    if !op.subjaxprs().is_empty() || op.asks_host() {
        return None;
    }
    let avals: SmallVec<[Aval; MAX]> = args.iter().map(|a| a.aval()).collect();
    let refs: SmallVec<[&Aval; MAX]> = avals.iter().collect();
    let outs = op.abstract_eval(&refs).ok()?;
    if outs.len() != 1 || outs[0].shape != avals[0].shape {
        return None;
    }
    let graph = lower_op(op, &refs, &outs).ok()?;
    let [node] = graph.nodes.as_slice() else { return None };
    if graph.outputs.as_slice() != [node.first] || node.results != 1 {
        return None;
    }
    let inputs: SmallVec<[u8; MAX]> = node.inputs.iter().map(|v| v.0 as u8).collect();
    let in_order = node.inputs.iter().enumerate().all(|(i, v)| *v == ValueId(i as u32)) && inputs.len() == args.len();
    let bool_which = args.len() == 3 && avals[0].dtype == DType::Bool;
    let call = match (&node.kind, inputs.as_slice()) {
        (Kind::Unary(op), [x]) => Call::Unary(*op, *x),
        (Kind::Binary(op), [x, y]) => Call::Binary(*op, [*x, *y]),
        (Kind::Compare(op), [x, y]) => Call::Compare(*op, [*x, *y]),
        (Kind::Select, _) if in_order && bool_which => Call::Select,
        (Kind::Clamp, _) if in_order => Call::Clamp,
        (Kind::IntegerPow(n), [0]) => Call::IntegerPow(*n),
        (Kind::Convert, [0]) => Call::Convert,
        _ => return None,
    };
    Some(Answer::Direct { op: op.clone(), call, out: outs[0].dtype, weak: outs[0].weak })
}

/// The table's answer for an operation: kernel, result dtype and weak type.
#[inline]
fn look_up(op: &OpRef, args: &[Operand<'_>]) -> Option<(Call, DType, bool)> {
    let mut keys = [u8::MAX; MAX];
    for (k, a) in keys.iter_mut().zip(args) {
        *k = a.key();
    }
    let hash = hash_of(op);
    let at = row(hash, keys);
    TABLE.with_borrow_mut(|table| {
        if table.is_empty() {
            table.resize_with(ROWS, || None);
        }
        let slot = &mut table[at];
        let known = |e: &Entry| {
            let same = || if let Answer::Direct { op: own, .. } = &e.answer { same_op(own, op) } else { true };
            e.hash == hash && e.keys == keys && same()
        };
        if !slot.as_ref().is_some_and(known) {
            *slot = Some(Entry { hash, keys, answer: resolve(op, args) });
        }
        match slot.as_ref()?.answer {
            Answer::Direct { call, out, weak, .. } => Some((call, out, weak)),
            Answer::Other => None,
        }
    })
}

/// The shape of the result: that of the operands that are no scalars, or `None` when they differ.
#[inline]
fn common_shape<'a>(args: &[Operand<'a>]) -> Option<&'a [usize]> {
    let mut shape: &[usize] = &[];
    for a in args {
        let Operand::Array(a) = a else { continue };
        let own: &'a [usize] = &a.aval().shape;
        if shape.is_empty() {
            shape = own;
        } else if !own.is_empty() && own != shape {
            return None;
        }
    }
    Some(shape)
}

/// Where the result goes, a CPU device; `None` when that is another one, or committed operands disagree (the slow path
/// says so).
#[inline]
fn placement(args: &[Operand<'_>]) -> Option<Placement> {
    let mut found: Option<&Array> = None;
    for a in args {
        if let Operand::Array(a) = a
            && a.committed()
        {
            if found.is_some_and(|f| f.device() != a.device()) {
                return None;
            }
            found = Some(a);
        }
    }
    let place = found.map_or_else(Placement::uncommitted, |a| Placement { device: a.device(), committed: true });
    place.device.is_cpu().then_some(place)
}

/// Runs an operation by its kernel; `None` when this path is not for it, or a check finds its result bad: the slow path
/// says so.
#[inline]
pub fn run(op: &OpRef, args: &[Operand<'_>]) -> Result<Option<Array>> {
    if args.is_empty() || args.len() > MAX {
        return Ok(None);
    }
    let Some(shape) = common_shape(args) else { return Ok(None) };
    let Some((call, dtype, weak)) = look_up(op, args) else { return Ok(None) };
    let Some(place) = placement(args) else { return Ok(None) };
    let n = ferrax_base::shape::size(shape);
    let buffer = long_work::run(n, || invoke(call, dtype, args, n, shape.is_empty()).map(|b| checked(b, dtype)))?;
    let Some(buffer) = buffer else { return Ok(None) };
    let aval = Aval { shape: Shape::from_slice(shape), dtype, weak, vary: 0, spread: 0 };
    Ok(Some(Array::placed(aval, buffer, place.device, place.committed)))
}

/// The elements of a result; `None` when a check is on and finds them bad, or somebody looks at what runs.
#[inline]
fn checked(out: Buffer, dtype: DType) -> Option<Buffer> {
    if debug::checking() && (watched() || debug::spoilt(&out, dtype)) { None } else { Some(out) }
}

/// Calls `f` with an operand's buffer, and whether it stands for every element.
#[inline]
fn with<R>(a: Operand<'_>, scalar: bool, f: impl FnOnce(eager::Operand<'_>, DType) -> Result<R>) -> Result<R> {
    match a {
        Operand::Array(a) => {
            let pin = a.pin()?;
            f((&pin, !scalar && a.aval().shape.is_empty()), a.aval().dtype)
        }
        Operand::Lit(l) => {
            let buffer = Buffer::from_bytes(&l.scalar.to_bytes()[..l.scalar.dtype.size()])?;
            f((&buffer, !scalar), l.scalar.dtype)
        }
    }
}

#[inline]
fn invoke(call: Call, out: DType, args: &[Operand<'_>], n: usize, scalar: bool) -> Result<Buffer> {
    match call {
        Call::Unary(op, x) => with(args[x as usize], true, |x, d| eager::unary(op, d, x.0, n)),
        Call::IntegerPow(p) => with(args[0], true, |x, d| eager::integer_pow(d, p, x.0, n)),
        Call::Convert => with(args[0], true, |x, d| eager::convert(d, out, x.0, n)),
        Call::Binary(op, [x, y]) => {
            with(args[x as usize], scalar, |x, d| with(args[y as usize], scalar, |y, _| eager::binary(op, d, x, y, n)))
        }
        Call::Compare(op, [x, y]) => {
            with(args[x as usize], scalar, |x, d| with(args[y as usize], scalar, |y, _| eager::compare(op, d, x, y, n)))
        }
        Call::Select => with(args[0], scalar, |p, _| {
            with(args[1], scalar, |x, d| with(args[2], scalar, |y, _| eager::select(d, p, x, y, n)))
        }),
        Call::Clamp => with(args[0], scalar, |lo, _| {
            with(args[1], scalar, |x, d| with(args[2], scalar, |hi, _| eager::clamp(d, lo, x, hi, n)))
        }),
    }
}

/// Runs an operation on values by its kernel; `None` as for [`run`].
#[inline]
pub fn run_values(op: &OpRef, args: &[Value]) -> Result<Option<Array>> {
    if args.len() > MAX {
        return Ok(None);
    }
    let mut operands: SmallVec<[Operand<'_>; MAX]> = SmallVec::new();
    for a in args {
        match Operand::of(a) {
            Some(o) => operands.push(o),
            None => return Ok(None),
        }
    }
    run(op, &operands)
}

/// Runs a node that is a kernel of its own on whole arrays; `None` when committed operands disagree, or a check finds the
/// result bad.
///
/// # Safety
/// The node must take operands of these types, and give a result of type `out`: kernels read and write what the types
/// say.
#[inline]
pub unsafe fn node(kind: &Kind, args: &[&Array], out: Aval) -> Result<Option<Array>> {
    run_node(kind, args, None, out)
}

/// As [`node`], on arrays read in another shape of the same size.
///
/// # Safety
/// As for [`node`].
#[inline]
pub unsafe fn node_as(kind: &Kind, args: &[&Array], shape: &[usize], out: Aval) -> Result<Option<Array>> {
    run_node(kind, args, Some(shape), out)
}

fn run_node(kind: &Kind, args: &[&Array], shape: Option<&[usize]>, out: Aval) -> Result<Option<Array>> {
    let operands: SmallVec<[Operand<'_>; 4]> = args.iter().map(|a| Operand::Array(a)).collect();
    let Some(place) = placement(&operands) else { return Ok(None) };
    let types: SmallVec<[Type; 4]> =
        args.iter().map(|a| Type::new(a.aval().dtype, shape.unwrap_or(&a.aval().shape))).collect();
    let pins: SmallVec<[_; 4]> = args.iter().map(|a| a.pin()).collect::<Result<_>>()?;
    let inputs: SmallVec<[(&Type, &Buffer); 4]> = types.iter().zip(&pins).map(|(t, p)| (t, &**p)).collect();
    let mut results = eager::run_node(kind, &inputs, &[Type::new(out.dtype, &out.shape)])?;
    let Some(buffer) = results.pop().and_then(|b| checked(b, out.dtype)) else { return Ok(None) };
    Ok(Some(Array::placed(out, buffer, place.device, place.committed)))
}

/// The elements of an array in another shape of the same size; errors when the size is another one.
#[inline]
pub fn reshape(a: &Array, shape: Shape) -> Result<Array> {
    if ferrax_base::shape::checked_size(&shape) != Some(a.aval().size()) {
        let new = ferrax_base::shape::Tuple(&shape);
        return Err(error!(Type, "reshape total size must be unchanged, got {new} for {}.", a.aval().long_text()));
    }
    let aval = Aval { shape, ..a.aval().clone() };
    let memory = device::upload(&aval, &*a.pin()?, a.device())?;
    Ok(Array::placed(aval, memory, a.device(), a.committed()))
}
